"""Measures what sharing gives at long contexts, in a pool of fixed size.

For every context the pool is just large enough for some sequences under the
first strategy.  Calls with prompts of that length come as a Poisson process at
the rate at which one prompt after the other could be read, and answer 256
tokens; all strategies get the same calls.  Good is a call whose first token
comes within four times the time of a call that is alone, and the others within
--tpot_ms each.

Prints the table and writes OUT.md and OUT.json.  Nothing else should run on
the machine meanwhile.
"""

import argparse
import os
import pathlib
import sys

HERE = pathlib.Path(__file__).absolute().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE)]

import economy_load  # noqa: E402
import economy_machine  # noqa: E402
from evaluation import command_line  # noqa: E402
from evaluation.failure import BadInput  # noqa: E402
from evaluation.server_process import ServerProcess  # noqa: E402
from evaluation.tables import render  # noqa: E402
from results import now, say, warn_of_others, write  # noqa: E402

STRATEGIES = ("full", "every=2", "every=4")
OUTPUT_TOKENS = 256
PATIENCE = 4  # times the TTFT of a call that is alone


def contexts(text: str) -> list[int]:
    try:
        lengths = [int(part) for part in text.split(",")]
    except ValueError:
        lengths = []
    if not lengths or min(lengths) < 16:
        raise argparse.ArgumentTypeError(
            f"'{text}': must be numbers of at least 16, with commas")
    return lengths


def parse_arguments(argv: list[str]):
    parser = command_line.Parser(
        prog="./strata bench contexts", description=__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--contexts", type=contexts, default=contexts("1024,4096,7936"),
        help="tokens of the prompts, with commas [1024,4096,7936]")
    add("--room", type=command_line.positive, default=2,
        help="sequences under `full` that the pool holds [%(default)s]")
    add("--calls", type=command_line.positive, default=8,
        help="of each run [%(default)s]")
    add("--tpot_ms", type=command_line.positive, default=200,
        help="limit of the time between tokens [%(default)s]")
    add("--threads", type=command_line.positive,
        default=economy_machine.num_cores(), help="of the server [all cores]")
    add("--out", type=pathlib.Path, default=ROOT / "docs/contexts",
        help="path of the results without extension [docs/contexts]")
    add("--model", required=True, help="[the demo model]")
    add("--check_only", action="store_true", help=argparse.SUPPRESS)
    add("--server", default=ROOT / "bazel-bin/server/strata_server",
        help=argparse.SUPPRESS)
    add("--load", default=ROOT / "bazel-bin/tests/load/strata_load",
        help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if not arguments.out.absolute().parent.is_dir():
        raise BadInput(f"--out={arguments.out}: its folder is not there")
    return arguments


class Bench:
    """Runs the load client against a fresh server, once for each call of
    run()."""

    def __init__(self, arguments):
        self._arguments = arguments

    def run(self, context: int, pool_bytes: int, strategy: str, calls: int,
            rate: float, ttft_ms: float) -> dict:
        arguments = self._arguments
        with ServerProcess(arguments.server, [
                f"--model={arguments.model}", f"--threads={arguments.threads}",
                f"--kv_memory={pool_bytes}", "--max_queued_requests=1000"
                ]) as server:
            return economy_load.run_load(
                arguments.load, server.address,
                [f"--mix={strategy}", f"--request_rate={rate}",
                 f"--num_prompts={calls}", f"--prompt_tokens={context}",
                 f"--output_tokens={OUTPUT_TOKENS}", "--seed=1",
                 f"--goodput=ttft:{ttft_ms:.0f},tpot:{arguments.tpot_ms}"])

    def bytes_a_token(self) -> int:
        """Of the first strategy, as the server counts them."""
        report = self.run(64, 1 << 30, STRATEGIES[0], 1, 1, 1e6)
        # The last token is never run, but its page is there.
        return round(report["kv_bytes_mean"] / (64 + OUTPUT_TOKENS))


def measure_context(bench: Bench, arguments, context: int, bytes_a_token: int
                    ) -> dict:
    # Prompts may come out some tokens longer.
    pool = arguments.room * bytes_a_token * (context + OUTPUT_TOKENS + 64)
    alone = bench.run(context, pool, STRATEGIES[0], 1, 1, 1e6)["p50_ttft_ms"]
    rate = 1000 / alone
    say(f"{context} tokens: alone the first token comes after {alone:,.0f} ms;"
        f" {rate:.3f} calls/s, pool {pool / 2**20:.0f} MiB")
    runs = {}
    for strategy in STRATEGIES:
        watch = economy_machine.OthersWatch()
        report = bench.run(context, pool, strategy, arguments.calls, rate,
                           PATIENCE * alone)
        report["cpu_share_of_others"] = round(watch.share(), 4)
        runs[strategy] = report
        say(f"   {strategy:8} at most {report['running_peak']} at once, "
            f"{report['output_throughput']:.0f} tok/s, TTFT p50 "
            f"{report['p50_ttft_ms'] / 1000:.1f} s")
    return {"context": context, "pool_bytes": pool, "alone_ttft_ms": alone,
            "calls_per_s": rate, "runs": runs}


def table(result: dict) -> str:
    heads = ["context", "strategy", "pool MiB", "at once", "tok/s",
             "TTFT p50 s", "p99 s", "good"]
    rows = []
    for measured in result["contexts"]:
        for strategy, report in measured["runs"].items():
            good = report["request_goodput"] / report["request_throughput"]
            rows.append([
                f"{measured['context']:,}", f"`{strategy}`",
                f"{measured['pool_bytes'] / 2**20:,.0f}",
                f"{report['running_peak']}",
                f"{report['output_throughput']:,.1f}",
                f"{report['p50_ttft_ms'] / 1000:.1f}",
                f"{report['p99_ttft_ms'] / 1000:.1f}", f"{good:.0%}"])
    return render(heads, rows)


def document(result: dict) -> str:
    machine = result["machine"]
    lines = [
        f"{result['model']} on {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['threads']} threads; {result['date']}.", "",
        f"{result['calls']} calls of each context, {OUTPUT_TOKENS} tokens "
        "each, as fast as prompts can be read one after the other.  The pool "
        f"holds {result['room']} sequences under `{STRATEGIES[0]}`; at once: "
        f"the most that were resident.  Good: first token within {PATIENCE} "
        "times that of a call alone, then "
        f"{result['tpot_ms']} ms a token.", "", table(result)]
    most = max(report["cpu_share_of_others"] for measured in result["contexts"]
               for report in measured["runs"].values())
    return "\n".join(lines + warn_of_others(most)) + "\n"


def measure(arguments) -> dict:
    bench = Bench(arguments)
    bytes_a_token = bench.bytes_a_token()
    return {
        "date": now(),
        "model": os.path.basename(arguments.model),
        "machine": {"cpu": economy_machine.cpu_name(),
                    "cores": economy_machine.num_cores(),
                    "threads": arguments.threads},
        "calls": arguments.calls, "room": arguments.room,
        "tpot_ms": arguments.tpot_ms,
        "contexts": [measure_context(bench, arguments, context, bytes_a_token)
                     for context in arguments.contexts]}


def main():
    arguments = parse_arguments(sys.argv[1:])
    if arguments.check_only:
        return
    result = measure(arguments)
    write(arguments.out, result, document(result))


if __name__ == "__main__":
    sys.exit(command_line.run("bench contexts", main))
