"""Measures what 8-bit activations cost: log-probabilities of a text against
those of the same file computed in f32.

For every weight format: the mean and the largest difference of the chosen
token's log-probability, and how much larger the perplexity is; with --peer
llama.cpp's as well, on the same file and the same tokens.

Prints the table and writes OUT.md and OUT.json.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).absolute().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

from evaluation import command_line  # noqa: E402
from evaluation.connection import Connection  # noqa: E402
from evaluation.failure import BadInput, Failure  # noqa: E402
from evaluation.server_process import ServerProcess  # noqa: E402
from evaluation.tables import render  # noqa: E402
from model_formats import (  # noqa: E402
    DEFAULT_FORMATS, formats, requantize)
from results import now, say, write  # noqa: E402

WINDOW = 1024  # tokens that are scored together


def parse_arguments(argv: list[str]):
    parser = command_line.Parser(
        prog="./strata bench accuracy", description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--text", metavar="FILE.txt", type=pathlib.Path, required=True,
        help="what is scored")
    add("--tokens", type=command_line.positive, default=2048,
        help="of the text, at most [%(default)s]")
    add("--peer", action="store_true",
        help="llama.cpp as well, which is compiled the first time (minutes)")
    add("--formats", type=formats, default=list(DEFAULT_FORMATS),
        help="with commas [q4_0,q4_1,q8_0,bf16]")
    add("--out", type=pathlib.Path, default=ROOT / "docs/accuracy",
        help="path of the results without extension [docs/accuracy]")
    add("--model", metavar="FILE.gguf", required=True,
        help="[the demo model]")
    add("--check_only", action="store_true", help=argparse.SUPPRESS)
    for name, default in (
            ("server", ROOT / "bazel-bin/server/strata_server"),
            ("peer_python", sys.executable),
            ("requantize_python", sys.executable)):
        add(f"--{name}", default=default, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if not arguments.out.absolute().parent.is_dir():
        raise BadInput(f"--out={arguments.out}: its folder is not there")
    if not arguments.text.is_file():
        raise BadInput(f"--text={arguments.text}: is not there")
    return arguments


def windows(ids: list[int]) -> list[list[int]]:
    parts = [ids[i:i + WINDOW] for i in range(0, len(ids), WINDOW)]
    return [part for part in parts if len(part) > 1]


def score(arguments, path: str, precision: str
          ) -> tuple[list[int], list[float]]:
    """The text's tokens, and the log-probabilities of all but the first of
    each window."""
    flags = [f"--model={path}", "--adapter=", f"--precision={precision}",
             "--kv_memory=256MiB"]
    text = arguments.text.read_text(encoding="utf-8")
    with ServerProcess(arguments.server, flags) as server, \
            Connection(server.address, 1) as connection:
        ids = connection.tokenize(text)[:arguments.tokens]
        if len(ids) < 2:
            raise BadInput(f"--text={arguments.text}: has no two tokens")
        return ids, [entry.chosen.logprob for part in windows(ids)
                     for entry in connection.score(part, "full").logprobs]


def score_by_peer(arguments, path: str, ids: list[int]) -> list[float]:
    done = subprocess.run(
        [str(arguments.peer_python), "-B", str(HERE / "llama_cpp_score.py"),
         path], input=json.dumps(windows(ids)), text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it says nothing"]
        raise Failure(f"llama.cpp does not score: {lines[-1]}")
    return json.loads(done.stdout)


def compare(found: list[float], exact: list[float]) -> dict:
    differences = [abs(a - b) for a, b in zip(found, exact, strict=True)]
    if not all(map(math.isfinite, differences)):
        raise Failure("a log-probability is not finite")
    number = len(differences)
    return {"mean": math.fsum(differences) / number, "max": max(differences),
            "perplexity": math.exp((math.fsum(exact) - math.fsum(found))
                                   / number) - 1}


def measure(arguments) -> dict:
    result = {}
    (ROOT / ".cache").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / ".cache",
                                     prefix="accuracy.") as folder:
        for name in arguments.formats:
            say(name)
            path = requantize(arguments, name, folder)
            ids, exact = score(arguments, path, "f32")
            rows = {"Strata": compare(score(arguments, path, "auto")[1],
                                      exact)}
            if arguments.peer:
                rows["llama.cpp"] = compare(
                    score_by_peer(arguments, path, ids), exact)
            result[name] = rows
            os.remove(path)
    return {"date": now(),
            "model": os.path.basename(arguments.model),
            "text": arguments.text.name, "tokens": len(ids),
            "formats": result}


def document(result: dict) -> str:
    rows = [[name.upper(), engine, f"{found['mean']:.4f}",
             f"{found['max']:.2f}", f"{found['perplexity']:+.2%}"]
            for name, engines in result["formats"].items()
            for engine, found in engines.items()]
    heads = ["format", "engine", "mean difference", "largest", "perplexity"]
    return "\n".join([
        f"{result['model']}, {result['tokens']} tokens of {result['text']}; "
        f"{result['date']}.", "",
        "Log-probability of each token in default precision against "
        "`--precision=f32` on the same file, in nats.", "",
        render(heads, rows)]) + "\n"


def main():
    arguments = parse_arguments(sys.argv[1:])
    if arguments.check_only:
        return
    result = measure(arguments)
    write(arguments.out, result, document(result))


if __name__ == "__main__":
    sys.exit(command_line.run("bench accuracy", main))
