"""Measures what strategies cost a model: loss and answers over KV bytes.

Prints one table; --json and --plot keep the figures.
"""

import dataclasses
import sys

from evaluation import command_line, question_answering, questions
from evaluation import strategy_list, tables, text, text_loss
from evaluation.failure import BadInput
from evaluation.progress import Progress


def parse_arguments(argv: list[str]):
    parser = command_line.parser("eval", __doc__)
    add = parser.add_argument
    add("--strategies", default="full;every=2;every=4",
        help="SPEC or NAME=SPEC, with semicolons between [%(default)s]")
    add("--text", metavar="FILE.txt", help="measures loss and perplexity")
    add("--window", type=command_line.positive, default=512,
        help="tokens that are scored together [%(default)s]")
    add("--max_tokens", type=command_line.natural, default=0,
        help="of the text; 0: all [%(default)s]")
    add("--qa", metavar="FILE.json",
        help="measures answers: questions of SQuAD v2 or HotpotQA")
    add("--max_questions", type=command_line.natural, default=200,
        help="chosen at random, by --seed; 0: all [%(default)s]")
    add("--prompt_style", choices=question_answering.PROMPTS, default="plain",
        help="chat: by the model's chat template [%(default)s]")
    add("--max_answer_tokens", type=command_line.positive, default=32,
        help="[%(default)s]")
    arguments = parser.parse_args(argv)
    if not arguments.text and not arguments.qa:
        raise BadInput("needs --text or --qa, or both")
    if arguments.window < 2:
        raise BadInput("--window must be 2 or more")
    command_line.check(arguments)
    strategy_list.split(arguments.strategies)
    return arguments


def load_windows(connection, arguments, content: str) -> list[list[int]]:
    if arguments.window > connection.model.max_model_len:
        raise BadInput(f"--window={arguments.window} is more than the model's "
                       f"context of {connection.model.max_model_len} tokens")
    ids = text.tokenize(connection, content, arguments.max_tokens)
    found = text.windows(ids, arguments.window)
    if not found:
        raise BadInput(f"{arguments.text}: {len(ids)} tokens are less than one "
                       f"window of {arguments.window}; set --window")
    return found


def measure(connection, arguments, content, chosen) -> dict:
    """`content` is the text, `chosen` the questions; None: not asked for."""
    strategies = strategy_list.resolve(connection, arguments.strategies)
    windows = (load_windows(connection, arguments, content)
               if content is not None else [])
    prompts = question_answering.prepare(
        connection, chosen, arguments.prompt_style,
        arguments.max_answer_tokens) if chosen is not None else []
    rows = []
    for strategy in strategies:
        row = dataclasses.asdict(strategy)
        row["saved"] = 1 - strategy.num_leaders / connection.model.num_layers
        if windows:
            progress = Progress(f"{strategy.label}: text", len(windows))
            row["text"] = dataclasses.asdict(text_loss.measure(
                connection, strategy, windows, progress))
            progress.end()
        if prompts:
            progress = Progress(f"{strategy.label}: questions", len(prompts))
            row["qa"] = dataclasses.asdict(question_answering.measure(
                connection, strategy, prompts, arguments.max_answer_tokens,
                progress))
            progress.end()
        rows.append(row)
    settings = {name: getattr(arguments, name) for name in (
        "text", "window", "max_tokens", "qa", "max_questions", "prompt_style",
        "max_answer_tokens")}
    result = command_line.facts(arguments, connection.model)
    result["settings"] = settings
    if chosen is not None:
        result["questions_too_long"] = len(chosen) - len(prompts)
    return {**result, "strategies": rows}


COLUMNS = [  # heading, part of a row, key, format
    ("leaders", None, "num_leaders", "{}"),
    ("KV bytes/token", None, "kv_bytes_per_token", "{:,}"),
    ("saved", None, "saved", "{:.0%}"),
    ("loss", "text", "loss", "{:.4f}"),
    ("perplexity", "text", "perplexity", "{:,.2f}"),
    ("scored tok/s", "text", "tokens_per_second", "{:,.0f}"),
    ("exact match", "qa", "exact_match", "{:.3f}"),
    ("F1", "qa", "f1", "{:.3f}"),
    ("answerable", "qa", "f1_answerable", "{:.3f}"),
    ("unanswerable", "qa", "f1_unanswerable", "{:.3f}"),
    ("answer loss", "qa", "loss", "{:.4f}"),
    ("decode tok/s, each", "qa", "decode_tokens_per_second", "{:,.0f}"),
]


def table(result: dict) -> str:
    rows = result["strategies"]
    columns = [column for column in COLUMNS
               if column[1] is None or column[1] in rows[0]]

    def cell(row, part, key, form):
        value = (row[part] if part else row)[key]
        return "-" if value is None else form.format(value)

    return tables.render(
        ["strategy", *(column[0] for column in columns)],
        [[f"`{row['label']}`", *(cell(row, *column[1:]) for column in columns)]
         for row in rows], num_left=1)


def show(result: dict):
    model = result["model"]
    print(f"\n{model['name']}, weights {model['weight_format']}, KV cache "
          f"{model['kv_format']}, {model['num_layers']} layers\n")
    print(table(result))
    first = result["strategies"][0]
    if "text" in first:
        print(f"\nloss: nats per token, {first['text']['num_tokens']:,} tokens")
    if "qa" in first:
        print(f"\nanswers: {first['qa']['num_questions']:,} questions")
        if result["questions_too_long"]:
            print(f"{result['questions_too_long']:,} questions left out: longer"
                  " than the model's context")


def main():
    arguments = parse_arguments(sys.argv[1:])
    content = text.read_text(arguments.text) if arguments.text else None
    chosen = questions.choose(
        questions.read_questions(arguments.qa), arguments.max_questions,
        arguments.seed) if arguments.qa else None
    if arguments.check_only:
        return
    plots = command_line.load_plots(arguments)
    with command_line.connection(arguments) as connection:
        result = measure(connection, arguments, content, chosen)
    show(result)
    if arguments.json:
        command_line.write_json(arguments.json, result)
    if plots:
        plots.plot_evaluation(result, arguments.plot)


if __name__ == "__main__":
    sys.exit(command_line.run("eval", main))
