"""Measures the KV economy: what one small pool serves under several strategies.

Part 1, load: calls arrive as a Poisson process at rising rates; every configuration gets the same calls.
Part 2, prefix: calls that share a system prompt, under mixes of strategies that can share its pages and that cannot.

Prints both tables, and writes OUT.svg and OUT.json.  Nothing else should run on the machine meanwhile.
"""
import argparse
import json
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path.insert(0, str(ROOT))

import economy_load  # noqa: E402
import economy_machine  # noqa: E402
import economy_tables  # noqa: E402
from evaluation import command_line  # noqa: E402
from evaluation.failure import BadInput, Failure  # noqa: E402
from evaluation.server_process import ServerProcess  # noqa: E402
from results import QUIET, warn_of_others  # noqa: E402

CONFIGURATIONS = {  # name: the load client's mix
    "full": "full",
    "every=4": "every=4",
    "full, floor every=4": "full>every=4",
}

# prefix=K agrees with full below layer K, so all its pages are shared; every=N agrees with none of the others beyond
# layer 0.
PREFIX_MIXES = {
    "one strategy": "full",
    "all agree": "full,prefix=20,prefix=10,prefix=5",
    "none agree": "full,every=2,every=3,every=5",
}


def parse_arguments():
    parser = command_line.Parser(prog="./strata bench economy", description=__doc__, allow_abbrev=False,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="a minute in all, to see that it works; figures mean nothing")
    parser.add_argument("--kv_memory", default="12MiB", help="the pool of part 1 [%(default)s]")
    parser.add_argument("--rates", default="0.5,1,2,3,4,5", help="arrivals per second, with commas [%(default)s]")
    parser.add_argument("--seconds", type=float, default=20, help="arrivals of each run of part 1 [%(default)s]")
    parser.add_argument("--prompt_tokens", default="uniform:32-96", help="[%(default)s]")
    parser.add_argument("--output_tokens", default="uniform:128-256", help="[%(default)s]")
    parser.add_argument("--goodput", default="ttft:1000,tpot:60",
                        help="limits in ms that a call must meet to count as good [%(default)s]")
    parser.add_argument("--admission", choices=["reserve", "optimistic"], default="reserve",
                        help="optimistic: each configuration again, under optimistic admission")
    parser.add_argument("--prefix_kv_memory", default="48MiB", help="the pool of part 2 [%(default)s]")
    parser.add_argument("--prefix_calls", type=int, default=32, help="calls of each run of part 2 [%(default)s]")
    parser.add_argument("--threads", type=int, default=0, help="of the server; 0: all cores")
    parser.add_argument("--seed", type=int, default=1, help="of arrivals, lengths and prompts [%(default)s]")
    parser.add_argument("--out", help="path of the results without extension [docs/economy; with --quick "
                                      ".cache/economy; with --from_json that file's]")
    parser.add_argument("--from_json", metavar="FILE", help="tables and plot of an earlier run; measures nothing")
    parser.add_argument("--model", help="a directory or .gguf file [the demo model]")
    parser.add_argument("--check_only", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--server", default=ROOT / "bazel-bin/server/strata_server", help=argparse.SUPPRESS)
    parser.add_argument("--load", default=ROOT / "bazel-bin/tests/load/strata_load", help=argparse.SUPPRESS)
    if "--quick" in sys.argv:
        parser.set_defaults(rates="2,6", seconds=2, prefix_calls=8)
    arguments = parser.parse_args()
    try:
        arguments.rates = sorted(float(rate) for rate in arguments.rates.split(","))
    except ValueError:
        parser.error(f"--rates={arguments.rates}: must be numbers with commas between")
    if arguments.rates[0] <= 0:
        parser.error("--rates: must be above 0")
    if arguments.seconds <= 0 or arguments.prefix_calls < 1:
        parser.error("--seconds and --prefix_calls must be above 0")
    if not arguments.model and not arguments.from_json:
        parser.error("needs --model")
    if arguments.from_json and not pathlib.Path(arguments.from_json).is_file():
        raise BadInput(f"--from_json={arguments.from_json}: is not there")
    if not arguments.out and arguments.from_json:
        arguments.out = pathlib.Path(arguments.from_json).with_suffix("")
    arguments.out = pathlib.Path(arguments.out or ROOT / (".cache/economy" if arguments.quick else "docs/economy"))
    return arguments


class Bench:
    """Runs the load client against a fresh server, once for each call of run()."""

    def __init__(self, arguments, num_runs):
        self._arguments = arguments
        self._num_runs = num_runs
        self._num_begun = 0

    def run(self, what, server_flags, load_flags):
        arguments = self._arguments
        self._num_begun += 1
        begin = time.monotonic()
        watch = economy_machine.OthersWatch()
        print(f"[{self._num_begun}/{self._num_runs}] {what}", file=sys.stderr, flush=True)
        server_flags = [f"--model={arguments.model}", f"--threads={arguments.threads}",
                        "--max_queued_requests=100000", *server_flags]
        with ServerProcess(arguments.server, server_flags) as server:
            report = economy_load.run_load(arguments.load, server.address, [f"--seed={arguments.seed}", *load_flags])
        others = watch.share()
        report["cpu_share_of_others"] = round(others, 4)
        print(f"        TTFT p50 {report['p50_ttft_ms']:.0f} ms, {report['output_throughput']:.0f} tok/s, "
              f"at most {report['running_peak']} resident, {100 * report['prefix_hit_rate']:.0f}% cached; "
              f"{time.monotonic() - begin:.0f} s" +
              (f"; others used {100 * others:.0f}% of the cores" if others > QUIET else ""),
              file=sys.stderr, flush=True)
        return report


def admissions(arguments):
    """Server flags of each, and what it adds to a configuration's name.  The server's own default needs no flag."""
    yield [], ""
    if arguments.admission == "optimistic":
        yield ["--admission=optimistic"], ", optimistic"


def measure_load(arguments, bench):
    runs = []
    for rate in arguments.rates:
        for admission_flags, suffix in admissions(arguments):
            for name, mix in CONFIGURATIONS.items():
                report = bench.run(
                    f"{name}{suffix}: {rate:g} calls/s",
                    [f"--kv_memory={arguments.kv_memory}", *admission_flags],
                    [f"--mix={mix}", f"--request_rate={rate}", f"--num_prompts={max(1, round(rate * arguments.seconds))}",
                     f"--prompt_tokens={arguments.prompt_tokens}", f"--output_tokens={arguments.output_tokens}",
                     f"--goodput={arguments.goodput}"])
                runs.append({"rate": rate, "configuration": name + suffix, "report": report})
    return runs


def measure_prefix(arguments, bench):
    runs = []
    for name, mix in PREFIX_MIXES.items():
        run = {"mix": name, "items": mix}
        for kind in ("cached", "bypassed"):
            run[kind] = bench.run(
                f"shared prompt, {name}, {kind}: {mix}", [f"--kv_memory={arguments.prefix_kv_memory}"],
                [f"--mix={mix}", "--request_rate=2", f"--num_prompts={arguments.prefix_calls}",
                 "--shared_prefix_tokens=256", "--prompt_tokens=uniform:16-32", "--output_tokens=16",
                 f"--bypass_prefix_cache={'true' if kind == 'bypassed' else 'false'}"])
        runs.append(run)
    return runs


def facts(arguments):
    """What a reader needs to judge the figures."""
    return {"model": os.path.basename(arguments.model), "cpu": economy_machine.cpu_name(),
            "cores": economy_machine.num_cores(),
            **{name: getattr(arguments, name) for name in (
                "threads", "kv_memory", "seconds", "prompt_tokens", "output_tokens", "goodput", "prefix_kv_memory",
                "seed")}}


def measure(arguments):
    num_load = len(arguments.rates) * len(CONFIGURATIONS) * len(list(admissions(arguments)))
    bench = Bench(arguments, num_load + 2 * len(PREFIX_MIXES))
    result = {"facts": facts(arguments), "load": measure_load(arguments, bench)}
    result["prefix"] = measure_prefix(arguments, bench)
    return result


def show(result):
    known = result["facts"]
    print(f"\n{known['model']} on {known['cores']} cores ({known['cpu']}); pool {known['kv_memory']}, prompts "
          f"{known['prompt_tokens']}, outputs {known['output_tokens']} tokens, arrivals for {known['seconds']:g} s;\n"
          f"good: within {known['goodput']} ms\n")
    print(economy_tables.load_table(result["load"]))
    print(f"\nA system prompt of 256 tokens before every prompt; pool {known['prefix_kv_memory']}\n")
    print(economy_tables.prefix_table(result["prefix"]))
    most = max(report["cpu_share_of_others"] for report in reports(result))
    for line in warn_of_others(most):
        print(line)


def reports(result):
    """Those of all runs."""
    for run in result["load"]:
        yield run["report"]
    for run in result["prefix"]:
        yield run["cached"]
        yield run["bypassed"]


def main():
    arguments = parse_arguments()
    if arguments.check_only:
        return
    try:
        import economy_plot  # before the long part
    except ImportError:
        raise Failure("needs Debian's python3-matplotlib") from None
    if arguments.from_json:
        try:
            result = json.loads(pathlib.Path(arguments.from_json).read_text(encoding="utf-8"))
        except ValueError as error:
            raise BadInput(f"--from_json={arguments.from_json}: {error}") from None
    else:
        result = measure(arguments)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{arguments.out}.json", "w", encoding="utf-8") as out:
        json.dump(result, out, indent=1)
        out.write("\n")
    economy_plot.plot(result, f"{arguments.out}.svg")
    show(result)
    print(f"\nwrote {arguments.out}.svg and {arguments.out}.json", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(command_line.run("bench economy", main))
