"""Measures tokens per second by weight format and strategy, in one process.

Decode with one stream and with many, prefill; with --peer llama.cpp beside it,
on the same file and with as many threads.  All stay loaded and are asked in
turn, so that noise hits each alike; the ratio counts, not the figure.

Prints the table and writes OUT.md and OUT.json.  Nothing else should run on
the machine meanwhile.  The model is converted to each format first (./strata
requantize), which takes some seconds and loses what a format cannot hold.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).absolute().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

import economy_machine  # noqa: E402
import speed_tables  # noqa: E402
from evaluation import command_line  # noqa: E402
from evaluation.failure import BadInput  # noqa: E402
from model_formats import (  # noqa: E402
    DEFAULT_FORMATS, formats, requantize)
from results import now, say, write  # noqa: E402
from speed_engines import Engine  # noqa: E402

STRATEGIES = ("full", "every=2", "every=4")
WORKS = ("decode_1x64", "decode_1x1024", "decode_1x4096", "decode_16x256",
         "prefill_512", "prefill_2048")
QUICK_WORKS = ("decode_1x64", "decode_4x64", "prefill_512")
DECODE_STEPS = 64  # of both engines


def parse_arguments(argv: list[str]):
    parser = command_line.Parser(
        prog="./strata bench speed", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--peer", action="store_true",
        help="llama.cpp as well, which is compiled the first time (minutes)")
    add("--formats", type=formats,
        help="with commas [q4_0,q4_1,q8_0,bf16; with --quick q4_1]")
    add("--quick", action="store_true",
        help="a minute in all, to see that it works; figures mean nothing")
    add("--reps", type=command_line.positive,
        help="runs of each work; the best counts [3; with --quick 1]")
    add("--threads", type=command_line.positive,
        default=economy_machine.num_cores(), help="of each engine [all cores]")
    add("--out", type=pathlib.Path,
        help="path of the results without extension [docs/speed; with --quick "
        ".cache/speed; with --from_json that file's]")
    add("--from_json", metavar="FILE", type=pathlib.Path,
        help="the table of an earlier run; measures nothing")
    add("--model", metavar="FILE.gguf", required=True,
        help="[the demo model]")
    add("--check_only", action="store_true", help=argparse.SUPPRESS)
    for name, default in (
            ("engine", ROOT / "bazel-bin/tests/bench/engine_bench"),
            ("peer_python", sys.executable),
            ("requantize_python", sys.executable)):
        add(f"--{name}", default=default, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    quick = arguments.quick
    arguments.formats = arguments.formats or (
        ["q4_1"] if quick else list(DEFAULT_FORMATS))
    arguments.reps = arguments.reps or (1 if quick else 3)
    if not arguments.out and arguments.from_json:
        arguments.out = arguments.from_json.with_suffix("")
    arguments.out = arguments.out or ROOT / (
        ".cache/speed" if quick else "docs/speed")
    check(arguments)
    return arguments


def check(arguments):
    """Mistakes show before the long part."""
    folder = arguments.out.absolute().parent
    if not folder.is_dir() and folder not in (ROOT / ".cache", ROOT / "docs"):
        raise BadInput(f"--out={arguments.out}: its folder is not there")
    if arguments.from_json:
        if not arguments.from_json.is_file():
            raise BadInput(f"--from_json={arguments.from_json}: is not there")
        return
    model = pathlib.Path(arguments.model)
    if model == ROOT / ".cache/models" / model.name and arguments.check_only:
        return  # the demo model may have to be fetched
    if not model.is_file() or model.suffix != ".gguf":
        raise BadInput(f"--model={model}: must be a .gguf file")


class Bench:
    """Measures one format after the other; says on standard error how far it
    is."""

    def __init__(self, arguments):
        self._arguments = arguments
        self.read_gb_per_s = 0.0
        self.peer = None  # its name and version

    def run(self, number: int, name: str, folder: str) -> dict:
        """Facts and all rates of one format; `folder` holds its file."""
        say(f"[{number}/{len(self._arguments.formats)}] {name}")
        path = requantize(self._arguments, name, folder)
        watch = economy_machine.OthersWatch()
        with contextlib.ExitStack() as stack:
            own = stack.enter_context(self._own(path))
            peer = (stack.enter_context(self._peer(path))
                    if self._arguments.peer else None)
            self.read_gb_per_s = max(self.read_gb_per_s,
                                     own.ask("read_bandwidth"))
            works = {}
            for work in self._works(own.facts["max_context"]):
                works[work] = self._measure(work, own, peer)
                say(f"      {speed_tables.describe(work):35}" + ", ".join(
                    f"{column} {max(rates):,.0f}"
                    for column, rates in works[work].items()))
            facts = own.facts
        os.remove(path)
        return {"facts": facts, "works": works,
                "cpu_share_of_others": round(watch.share(), 4)}

    def _own(self, path: str) -> Engine:
        return Engine("engine_bench", [
            self._arguments.engine, f"--model={path}",
            f"--threads={self._arguments.threads}", "--interactive"])

    def _peer(self, path: str) -> Engine:
        return Engine(speed_tables.PEER, [
            self._arguments.peer_python, "-B", HERE / "llama_cpp_peer.py",
            path, f"--threads={self._arguments.threads}", "--interactive"])

    def _works(self, max_context: int) -> list[str]:
        works = QUICK_WORKS if self._arguments.quick else WORKS
        return [work for work in works if DECODE_STEPS + int(
            re.split("[x_]", work)[-1]) < max_context]

    def _measure(self, work: str, own: Engine, peer: Engine | None) -> dict:
        """Rates by strategy and peer, a round of all after the other; each
        round begins with another, since the first finds the caches cold."""
        rates = {name: [] for name in STRATEGIES}
        if peer:
            rates[speed_tables.PEER] = []
            self.peer = ("llama.cpp (llama-cpp-python "
                         f"{peer.facts['llama_cpp_python']})")
        names = list(rates)
        for begin in range(self._arguments.reps):
            begin %= len(names)
            for name in names[begin:] + names[:begin]:
                is_peer = name == speed_tables.PEER
                rate = (peer.ask(work) if is_peer
                        else own.ask(f"{work} {name}"))
                rates[name].append(round(rate, 2))
        return rates


def measure(arguments) -> dict:
    bench = Bench(arguments)
    measured = {}
    (ROOT / ".cache").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / ".cache", prefix="speed."
                                     ) as folder:
        for number, name in enumerate(arguments.formats, 1):
            measured[name] = bench.run(number, name, folder)
    return {
        "date": now(),
        "model": os.path.basename(arguments.model),
        "machine": {"cpu": economy_machine.cpu_name(),
                    "cores": economy_machine.num_cores(),
                    "threads": arguments.threads,
                    "read_gb_per_s": bench.read_gb_per_s},
        "peer": bench.peer, "strategies": list(STRATEGIES),
        "reps": arguments.reps, "quick": arguments.quick,
        "formats": measured}


def main():
    arguments = parse_arguments(sys.argv[1:])
    if arguments.check_only:
        return
    try:
        result = (json.loads(arguments.from_json.read_text(encoding="utf-8"))
                  if arguments.from_json else measure(arguments))
        text = speed_tables.document(result)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if not arguments.from_json:
            raise
        raise BadInput(f"--from_json={arguments.from_json}: holds no results "
                       f"of this benchmark ({error!r})") from None
    write(arguments.out, result, text)


if __name__ == "__main__":
    sys.exit(command_line.run("bench speed", main))
