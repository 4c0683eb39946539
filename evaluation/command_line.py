"""What the programs of this folder have in common: flags, servers, endings."""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import shlex
import signal
import sys

from evaluation.connection import Connection, Credentials
from evaluation.failure import BadInput, Failure, told
from evaluation.server_process import ServerProcess

ROOT = pathlib.Path(__file__).absolute().parents[1]


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message):
        raise BadInput(f"{message} (--help lists the flags)")


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


# argparse names them in its messages: "invalid ... value".
positive.__name__ = "number above 0"
natural.__name__ = "number, 0 or above,"


def parser(verb: str, description: str, figures: bool = True) -> Parser:
    """With the flags that all have; `figures`: has some to keep."""
    made = Parser(prog=f"./strata {verb}", description=description,
                  allow_abbrev=False,
                  formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--target", metavar="HOST:PORT",
                      help="a running server")
    made.add_argument("--api_key_file", metavar="FILE", default="",
                      help="with --target: the key to send, its first line "
                      "that is no comment")
    made.add_argument("--tls_ca", metavar="FILE", default="",
                      help="with --target: PEM of the authority that signed "
                      "the server's certificate; set: TLS")
    made.add_argument("--tls_cert", metavar="FILE", default="",
                      help="PEM of the certificate to show")
    made.add_argument("--tls_key", metavar="FILE", default="",
                      help="PEM of its private key")
    made.add_argument("--model", metavar="PATH",
                      help="without --target: a directory or .gguf file, for "
                      "a server of one's own [the demo model]")
    made.add_argument("--adapter", metavar="DIR",
                      help="LoRA that the own server merges into the model")
    made.add_argument("--server_flags", default="", metavar='"--FLAG=..."',
                      help="more flags for the own server")
    made.add_argument("--server", default=ROOT / "bazel-bin/server/"
                      "strata_server", help=argparse.SUPPRESS)
    # What the wrong flags and files are, before the long part of ./strata.
    made.add_argument("--check_only", action="store_true",
                      help=argparse.SUPPRESS)
    made.add_argument("--concurrency", type=positive, default=16,
                      help="calls in flight [%(default)s]")
    made.add_argument("--seed", type=int, default=1, help="[%(default)s]")
    if not figures:
        made.set_defaults(json=None, plot=None)
        return made
    made.add_argument("--json", metavar="FILE", help="all figures")
    made.add_argument("--plot", metavar="FILE.png", help="needs matplotlib")
    return made


def credential_files(arguments) -> list[str]:
    """In the order of Credentials."""
    return [arguments.api_key_file, arguments.tls_ca, arguments.tls_cert,
            arguments.tls_key]


@contextlib.contextmanager
def connection(arguments):
    """To --target, or to a server of one's own that lives as long."""
    with contextlib.ExitStack() as stack:
        target = arguments.target
        credentials = credential_files(arguments)
        if not target:
            flags = [f"--model={arguments.model}"]
            if arguments.adapter:
                flags.append(f"--adapter={arguments.adapter}")
            print("starting a server", file=sys.stderr)
            target = stack.enter_context(ServerProcess(
                arguments.server,
                flags + shlex.split(arguments.server_flags))).address
        yield stack.enter_context(Connection(
            target, arguments.concurrency, Credentials(*credentials)))


def check(arguments):
    """Mistakes show before the long part."""
    if arguments.target and (arguments.model or arguments.adapter
                             or arguments.server_flags):
        raise BadInput("--target names a server that has its model: --model, "
                       "--adapter and --server_flags do not go with it")
    if not arguments.target and any(credential_files(arguments)):
        raise BadInput("--api_key_file, --tls_ca, --tls_cert and --tls_key go "
                       "with --target")
    # Without --model ./strata adds the demo model's, which it fetches later.
    if not (arguments.target or arguments.model or arguments.check_only):
        raise BadInput("needs --target or --model")
    for name in ("model", "adapter"):
        path = getattr(arguments, name)
        if path and not pathlib.Path(path).exists():
            raise BadInput(f"--{name}={path}: no such file or directory")
    try:
        shlex.split(arguments.server_flags)
    except ValueError as error:
        raise BadInput(f"--server_flags={arguments.server_flags}: {error}"
                       ) from None
    for path in (arguments.json, arguments.plot,
                 getattr(arguments, "out", None)):
        if path and not pathlib.Path(path).absolute().parent.is_dir():
            raise BadInput(f"{path}: its folder is not there")
        if path and pathlib.Path(path).is_dir():
            raise BadInput(f"{path}: is a folder")
        if path and not can_write(path):
            raise BadInput(f"{path}: cannot be written")
    if arguments.plot and not arguments.plot.endswith(".png"):
        raise BadInput(f"--plot={arguments.plot}: must end with .png")


def can_write(path: str) -> bool:
    """Whether a file or folder can be made or changed at `path`, as far as the
    permissions of what is there say."""
    at = pathlib.Path(path).absolute()
    while not at.exists():
        at = at.parent
    is_there = at == pathlib.Path(path).absolute()
    return os.access(at, os.W_OK) and (is_there or at.is_dir())


def load_plots(arguments):
    """The module plots, if a plot is wanted, before the long part."""
    if not arguments.plot:
        return None
    try:
        from evaluation import plots
    except ImportError:
        raise Failure("--plot needs Debian's python3-matplotlib") from None
    return plots


def facts(arguments, model) -> dict:
    """What a reader needs to judge figures."""
    own = {name: getattr(arguments, name)
           for name in ("adapter", "server_flags") if not arguments.target}
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(
            timespec="seconds"),
        "model": {name: getattr(model, name) for name in (
            "name", "architecture", "num_layers", "weight_format", "kv_format",
            "backend", "max_model_len")},
        **own, "seed": arguments.seed, "concurrency": arguments.concurrency}


def write_json(path: str, result: dict):
    pathlib.Path(path).write_text(json.dumps(result, indent=1) + "\n",
                                  encoding="utf-8")


def _end(number, _):
    """Ends the program in order, which closes the channel and stops a server
    of its own.  Another signal would break that off: gRPC's close() never
    returns then."""
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(143)


def run(verb: str, main) -> int:
    """main(), whose failures become one line and an exit status."""
    signal.signal(signal.SIGTERM, _end)
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # nohup's
        signal.signal(signal.SIGINT, _end)
    try:
        main()
    except Failure as failure:
        print(f"strata {verb}: {failure}", file=sys.stderr)
        return failure.status
    except OSError as error:
        print(f"strata {verb}: {told(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
