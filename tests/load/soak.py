#!/usr/bin/python3 -B
"""Soaks a server of its own: saturation, with everything that clients do.

For --seconds more calls than fit run at once under a mix of strategies and
floors; some are cancelled, some read slowly, some have short deadlines, some
are switched by Admin.  Fails if memory grows, a page of the KV cache is left
over, the server's counters and the client's differ, or a call ends with an
error that nobody intended.
"""

import argparse
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path.insert(0, str(ROOT))

from evaluation import command_line  # noqa: E402
from evaluation.failure import BadInput, Failure  # noqa: E402
from evaluation.server_process import ServerProcess  # noqa: E402

# Strategies of the mix and what they may be switched to: leader 0 alone is
# kept by every one of them.
MIX = "full:2,every=2:2,full>every=4:2,every=3:1"
SWITCH_TO = "prefix=1"


def parse_arguments() -> argparse.Namespace:
    parser = command_line.Parser(
        prog="./strata load soak", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300,
                        help="calls start for so long [%(default)s]")
    parser.add_argument("--model", help="a directory or .gguf file [the demo "
                        "model]")
    parser.add_argument("--kv_memory", default="24MiB",
                        help="the pool; small, so that calls compete for it "
                        "[%(default)s]")
    parser.add_argument("--concurrency", type=int, default=48,
                        help="calls at once; 16 sequences run [%(default)s]")
    parser.add_argument("--prompt_tokens", default="uniform:8-96",
                        help="[%(default)s]")
    parser.add_argument("--output_tokens", default="uniform:8-96",
                        help="[%(default)s]")
    parser.add_argument("--max_memory_growth_mib", type=float, default=16,
                        help="over the second half; 0: not judged "
                        "[%(default)s]")
    parser.add_argument("--report", help="folder of the report [.cache/soak]",
                        default=ROOT / ".cache/soak")
    parser.add_argument("--threads", type=int, default=0,
                        help="of the server; 0: all cores")
    parser.add_argument("--seed", type=int, default=1, help="[%(default)s]")
    parser.add_argument("--check_only", action="store_true",
                        help=argparse.SUPPRESS)
    parser.add_argument("--server", help=argparse.SUPPRESS,
                        default=ROOT / "bazel-bin/server/strata_server")
    parser.add_argument("--load", help=argparse.SUPPRESS,
                        default=ROOT / "bazel-bin/tests/load/strata_load")
    return parser.parse_args()


def server_flags(arguments: argparse.Namespace) -> list[str]:
    return [f"--model={arguments.model}", f"--kv_memory={arguments.kv_memory}",
            f"--threads={arguments.threads}", "--max_sequences=16",
            "--admission=optimistic", "--max_queued_requests=1024"]


def load_flags(arguments: argparse.Namespace,
               server: ServerProcess) -> list[str]:
    return [f"--address={server.address}",
            f"--metrics={server.http_address}",
            f"--report={arguments.report}", f"--seed={arguments.seed}",
            f"--duration={arguments.seconds}", "--num_prompts=200000",
            f"--concurrency={arguments.concurrency}", f"--mix={MIX}",
            f"--prompt_tokens={arguments.prompt_tokens}",
            f"--output_tokens={arguments.output_tokens}",
            "--shared_prefix_tokens=32", "--cancel_rate=0.1",
            "--slow_reader_rate=0.1", "--slow_reader_delay=0.05",
            "--deadline_rate=0.1", "--deadline_within=5", "--switch_rate=0.1",
            f"--switch_to={SWITCH_TO}", "--switch_recompute=false",
            f"--max_memory_growth_mib={arguments.max_memory_growth_mib}"]


def soak(arguments: argparse.Namespace) -> int:
    with ServerProcess(arguments.server, server_flags(arguments)) as server:
        status = subprocess.run(
            [arguments.load, *load_flags(arguments, server)],
            stdin=subprocess.DEVNULL, check=False).returncode
    if status < 0:
        raise Failure(f"the load client ended by signal {-status}")
    return status


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        arguments = parse_arguments()
        if not arguments.model:
            raise BadInput("needs --model")
        return 0 if arguments.check_only else soak(arguments)
    except Failure as failure:
        print(f"strata load soak: {failure}", file=sys.stderr)
        return failure.status
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
