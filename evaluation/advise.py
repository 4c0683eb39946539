"""Searches which layers should keep a KV cache: least loss for every memory.

Removes leaders one by one, always the one whose loss, measured on a part of the
text, grows least, and improves what it found by exchanges.  Judges on another
part of the text, against every=N with as many leaders.
"""

import functools
import random
import re
import sys

from evaluation import command_line, leader_sets, search, tables, text
from evaluation.failure import BadInput
from evaluation.progress import Progress
from evaluation.race import SampleLoss

SEARCH_PART = 0.6  # of the text; the rest is held out


def percentage(content: str) -> float:
    """2% or 0.02."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)(%?)", content)
    if not found:
        raise ValueError
    return float(found[1]) / (100 if found[2] else 1)


def parse_arguments(argv: list[str]):
    parser = command_line.parser("advise", __doc__)
    add = parser.add_argument
    add("--data", metavar="FILE.txt", required=True,
        help="text like what the model shall work on")
    add("--max_kv", type=percentage, default=0.25,
        help="how far to go: part of the KV bytes of full [%(default)s]")
    add("--max_loss_increase", type=percentage, metavar="2%",
        help="names the fewest leaders within it, against full")
    add("--window", type=command_line.positive, default=128,
        help="tokens that are scored together [%(default)s]")
    add("--search_tokens", type=command_line.positive, default=2048,
        help="that losses are measured on to choose [%(default)s]")
    add("--heldout_tokens", type=command_line.positive, default=4096,
        help="that losses are measured on to judge [%(default)s]")
    add("--refinements", type=command_line.natural, default=2,
        help="exchanges tried at the sizes of every=N [%(default)s]")
    add("--register", action="store_true",
        help="registers what was found with the server at --target")
    arguments = parser.parse_args(argv)
    if not 0 < arguments.max_kv <= 1:
        raise BadInput("--max_kv must be above 0, at most 1")
    if arguments.window < 2:
        raise BadInput("--window must be 2 or more")
    if arguments.register and not arguments.target:
        raise BadInput("--register needs --target")
    command_line.check(arguments)
    return arguments


def split(windows: list, arguments) -> tuple[list, list]:
    """Windows to search with, in random order, and held-out ones."""
    border = round(SEARCH_PART * len(windows))
    parts = []
    for part, num_tokens in ((windows[:border], arguments.search_tokens),
                             (windows[border:], arguments.heldout_tokens)):
        count = max(1, num_tokens // arguments.window)
        chosen = random.Random(arguments.seed)
        parts.append(chosen.sample(part, min(count, len(part))))
    if not all(parts):
        raise BadInput(f"{arguments.data}: fills {len(windows)} windows of "
                       f"{arguments.window} tokens, 2 are needed; set --window")
    return parts[0], parts[1]


def sample_loss(connection, windows, progress) -> SampleLoss:
    def score(item):
        leaders, window = item
        ids = windows[window]
        response = connection.score(ids, leader_sets.spec(leaders))
        progress.add()
        return -response.sum_logprob / (len(ids) - 1)

    return SampleLoss(functools.partial(connection.run_all, score),
                      len(windows))


def find(connection, arguments, windows) -> tuple[dict, dict, dict]:
    """Number of leaders to the set found and to that of every=N; all losses."""
    num_layers = connection.model.num_layers
    min_leaders = max(1, int(arguments.max_kv * num_layers + 1e-9))
    refined = {size for size in search.every_sets(num_layers)
               if size < num_layers} | {min_leaders}
    progress = Progress("search", search.estimate_windows(
        num_layers, min_leaders, refined, arguments.refinements, len(windows)))
    sample = sample_loss(connection, windows, progress)
    found = search.search(sample, num_layers, min_leaders, refined,
                          arguments.refinements)
    evenly = {size: leaders for size, leaders
              in search.every_sets(num_layers).items() if size in found}
    losses = sample.mean([*found.values(), *evenly.values()])
    progress.end()
    return found, evenly, losses


def judge(connection, found, evenly, searched, heldout) -> dict:
    """What was found and every=N, with their losses on held-out windows."""
    num_layers = connection.model.num_layers
    progress = Progress("held-out text", len(searched) * len(heldout))
    losses = sample_loss(connection, heldout, progress).mean(searched)
    progress.end()

    def point(name, leaders):
        return {"name": name, "num_leaders": len(leaders),
                "kv": len(leaders) / num_layers,
                "search_loss": searched[leaders],
                "heldout_loss": losses[leaders],
                "spec": leader_sets.spec(leaders)}

    return {
        "full_heldout_loss": losses[leader_sets.full(num_layers)],
        "frontier": [point(name_of(leaders, num_layers), leaders)
                     for leaders in found.values()],
        "every": [point(f"every={leaders[1] if size > 1 else num_layers}",
                        leaders) for size, leaders in evenly.items()]}


def name_of(leaders, num_layers: int) -> str:
    """A name that a server accepts; of 2 sizes never the same."""
    percent = 100 * len(leaders) / num_layers
    return (f"kv{percent:.0f}" if num_layers <= 100
            else f"leaders{len(leaders)}")


def choose(result: dict, max_kv: float, max_increase: float | None):
    """The point to recommend; None if none is within `max_increase`."""
    points = [point for point in result["frontier"] if point["kv"] < 1]
    if max_increase is None:
        within = [point for point in points if point["kv"] <= max_kv + 1e-9]
        return min(within or points, default=None,
                   key=lambda point: point["heldout_loss"])
    limit = result["full_heldout_loss"] * (1 + max_increase)
    within = [point for point in points if point["heldout_loss"] <= limit]
    return min(within, default=None, key=lambda point: point["num_leaders"])


def table(result: dict) -> str:
    evenly = {point["num_leaders"]: point for point in result["every"]
              if point["kv"] < 1}
    full = result["full_heldout_loss"]
    rows = []
    for point in result["frontier"]:
        rival = evenly.get(point["num_leaders"])
        rows.append([
            f"{point['num_leaders']}", f"{point['kv']:.0%}",
            f"{point['search_loss']:.4f}", f"{point['heldout_loss']:.4f}",
            f"{point['heldout_loss'] / full - 1:+.1%}",
            f"{rival['name']}: {rival['heldout_loss']:.4f}" if rival else "",
            f"`{point['name']}={point['spec']}`"])
    return tables.render(
        ["leaders", "KV", "loss, search", "held-out", "to full",
         "every=N, held-out", "strategy"], rows, num_left=0)


def verdicts(result: dict):
    """Where every=N was not beaten, and whether it was elsewhere."""
    found = {point["num_leaders"]: point for point in result["frontier"]}
    beaten = []
    for rival in result["every"]:
        point = found[rival["num_leaders"]]
        if point["kv"] == 1:
            continue
        if point["spec"] == rival["spec"]:
            yield f"{rival['name']} is the best found with its leaders."
        elif point["heldout_loss"] < rival["heldout_loss"]:
            beaten.append(rival["name"])
        else:
            yield (f"Not better than {rival['name']} on held-out text: "
                   f"{point['heldout_loss']:.4f} against "
                   f"{rival['heldout_loss']:.4f}.  More --search_tokens may "
                   "mend it.")
    if beaten:
        yield f"Better on held-out text than {', '.join(beaten)}."


def show(result: dict, chosen):
    print(f"\n{result['model']['name']}; loss in nats per token, on "
          f"{result['num_heldout_windows']} held-out windows of "
          f"{result['settings']['window']} tokens\n")
    print(table(result) + "\n")
    for line in verdicts(result):
        print(line)
    if chosen:
        print(f"\n  --strategies=\"{chosen['name']}={chosen['spec']}\"")
    elif result["settings"]["max_loss_increase"] is not None:
        print("\nOnly full is within "
              f"{result['settings']['max_loss_increase']:.3g} of its loss.")


def measure(connection, arguments, content: str) -> dict:
    model = connection.model
    if arguments.window > model.max_model_len:
        raise BadInput(f"--window={arguments.window} is more than the model's "
                       f"context of {model.max_model_len} tokens")
    ids = text.tokenize(connection, content)
    searched, heldout = split(text.windows(ids, arguments.window), arguments)
    found, evenly, losses = find(connection, arguments, searched)
    return {
        **command_line.facts(arguments, model),
        "settings": {name: getattr(arguments, name) for name in (
            "data", "max_kv", "max_loss_increase", "window", "refinements")},
        "num_search_windows": len(searched),
        "num_heldout_windows": len(heldout),
        **judge(connection, found, evenly, losses, heldout)}


def main():
    arguments = parse_arguments(sys.argv[1:])
    content = text.read_text(arguments.data)
    if arguments.check_only:
        return
    plots = command_line.load_plots(arguments)
    with command_line.connection(arguments) as connection:
        result = measure(connection, arguments, content)
        show(result, choose(result, arguments.max_kv,
                            arguments.max_loss_increase))
        if arguments.json:
            command_line.write_json(arguments.json, result)
        if plots:
            plots.plot_frontier(result, arguments.plot)
        if arguments.register:  # last: the server may refuse
            connection.register({point["name"]: point["spec"]
                                 for point in result["frontier"]
                                 if point["kv"] < 1})


if __name__ == "__main__":
    sys.exit(command_line.run("advise", main))
