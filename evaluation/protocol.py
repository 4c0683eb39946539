"""The messages and stubs of proto/strata.proto, as protoc makes them.

protoc takes a twentieth of a second, so it runs in every process that asks and
nothing generated can be older than its source.
"""

import functools
import importlib
import pathlib
import subprocess
import sys
import tempfile

from evaluation.failure import Failure

PROTO = pathlib.Path(__file__).absolute().parents[1] / "proto/strata.proto"


@functools.cache
def load():
    """The modules strata_pb2 and strata_pb2_grpc."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "protoc", f"-I{PROTO.parent}", f"--python_out={folder}",
            f"--grpc_out={folder}",
            "--plugin=protoc-gen-grpc=/usr/bin/grpc_python_plugin", str(PROTO)]
        try:
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True)
        except FileNotFoundError:
            raise Failure("needs Debian's protobuf-compiler (no protoc here)"
                          ) from None
        except subprocess.CalledProcessError as error:
            raise Failure(f"protoc failed: {error.stderr.strip()}") from None
        sys.path.insert(0, folder)
        try:
            return (importlib.import_module("strata_pb2"),
                    importlib.import_module("strata_pb2_grpc"))
        except ImportError as error:
            raise Failure("needs Debian's python3-grpcio and python3-protobuf "
                          f"({error})") from None
        finally:
            sys.path.remove(folder)
