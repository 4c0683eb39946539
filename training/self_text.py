"""Writes training text with the model itself: `./strata selftext`.

Half of the documents continue a random word of the vocabulary, as LLM-QAT
(arXiv 2305.17888) makes its text; half are conversations whose question the
model writes too, from an empty user turn, as Magpie (arXiv 2406.08464) does.
Document i depends on the seed and i only: the same seed and model make the
same file, however many requests are in flight.  At temperature 1, so that the
text is distributed as the model's own.
"""

import json
import random
import re
import sys
from concurrent import futures

from evaluation import command_line
from evaluation.failure import BadInput
from evaluation.progress import Progress

START_WORD = re.compile(r" ?[A-Z][a-z]{2,}")
MAX_START_TRIES = 200


class SelfText:
    """Asks a connection (evaluation/connection.py) for documents; any thread
    may."""

    def __init__(
        self, connection, seed: int, chat_fraction: float, max_tokens: int
    ):
        self._connection = connection
        self._seed = seed
        self._chat_fraction = chat_fraction
        self._max_tokens = max_tokens
        self._vocab_size = connection.model.vocab_size
        self._context = connection.model.max_model_len
        self._user_header = self._find_user_header() if chat_fraction else []

    def document(self, index: int) -> dict:
        """Document `index`: text, kind and num_tokens."""
        rng = random.Random(f"{self._seed}/{index}")
        if rng.random() < self._chat_fraction:
            kind, tokens = "chat", self._chat(rng)
        else:
            kind, tokens = "plain", self._plain(rng)
        return {
            "text": self._connection.detokenize(tokens),
            "kind": kind,
            "num_tokens": len(tokens),
        }

    def _find_user_header(self):
        """The tokens of a prompt up to where the user's words begin."""
        one, other = (self._connection.tokenize_chat(text) for text in "AB")
        size = 0
        while one[size] == other[size]:
            size += 1
        return one[:size]

    def _sample(self, rng, tokens):
        return self._connection.sample(
            tokens, rng.getrandbits(63), self._max_tokens
        )

    def _plain(self, rng):
        for _ in range(MAX_START_TRIES):
            token = rng.randrange(self._vocab_size)
            if START_WORD.fullmatch(self._connection.detokenize([token])):
                break
        return [token] + self._sample(rng, [token])[0]

    def _chat(self, rng):
        _, question = self._sample(rng, self._user_header)
        prompt = self._connection.tokenize_chat(question.strip() or "Hello!")
        while len(prompt) >= self._context and len(question) > 1:
            question = question[: len(question) // 2]
            prompt = self._connection.tokenize_chat(question)
        answer, _ = self._sample(rng, prompt)
        return prompt + answer


def write_documents(
    source: SelfText, out, num_tokens: int, concurrency: int, progress
):
    """Writes documents 0, 1, ... as JSON lines until they hold `num_tokens`;
    progress(tokens) of each."""
    written = index = 0
    with futures.ThreadPoolExecutor(concurrency) as pool:
        pending = []
        try:
            while written < num_tokens:
                while len(pending) < 2 * concurrency:
                    pending.append(pool.submit(source.document, index))
                    index += 1
                document = pending.pop(0).result()
                out.write(json.dumps(document) + "\n")
                written += document["num_tokens"]
                progress(document["num_tokens"])
        finally:
            pool.shutdown(cancel_futures=True)


def parse_arguments(argv: list[str]):
    parser = command_line.parser("selftext", __doc__, figures=False)
    add = parser.add_argument
    add("--out", required=True, metavar="FILE.jsonl")
    add(
        "--num_tokens",
        type=command_line.positive,
        default=500_000,
        help="[%(default)s]",
    )
    add(
        "--max_tokens",
        type=command_line.positive,
        default=448,
        help="of a question, an answer or a text [%(default)s]",
    )
    add(
        "--chat_fraction",
        type=float,
        default=0.5,
        help="of the documents; 0 for a model without chat template "
        "[%(default)s]",
    )
    arguments = parser.parse_args(argv)
    if not 0 <= arguments.chat_fraction <= 1:
        raise BadInput("--chat_fraction is from 0 to 1")
    if not arguments.out.endswith(".jsonl"):
        raise BadInput("--out ends with .jsonl, as ./strata train wants it")
    command_line.check(arguments)
    return arguments


def main():
    arguments = parse_arguments(sys.argv[1:])
    if arguments.check_only:
        return
    with command_line.connection(arguments) as connection, open(
        arguments.out, "w", encoding="utf-8"
    ) as out:
        progress = Progress("tokens", arguments.num_tokens)
        write_documents(
            SelfText(
                connection,
                arguments.seed,
                arguments.chat_fraction,
                arguments.max_tokens,
            ),
            out,
            arguments.num_tokens,
            arguments.concurrency,
            progress.add,
        )
        progress.end()


if __name__ == "__main__":
    sys.exit(command_line.run("selftext", main))
