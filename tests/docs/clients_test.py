#!/usr/bin/python3 -B
"""Runs what docs/clients.md shows, against a real server."""

import importlib
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

import grpc
from google.protobuf import json_format

ROOT = pathlib.Path.cwd()  # of Bazel's runfiles
HERE = pathlib.Path(__file__).absolute()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1] / "evaluation"),
                str(HERE.parent)]
import markdown  # noqa: E402
import tiny_models  # noqa: E402
from evaluation.server_process import ServerProcess  # noqa: E402

PAGE = (ROOT / "docs/clients.md").read_text()
ADDRESS = "127.0.0.1:8001"  # in the page


def commands(program: str) -> list[list[str]]:
    """The words of the page's command lines that run `program`."""
    lines = [line for _, block in markdown.blocks(PAGE, "sh")
             for line in block.splitlines()]
    return [shlex.split(line) for line in lines
            if line.split()[0].endswith(program)]


def write_model(folder: pathlib.Path):
    """One that generates for long enough to be switched meanwhile."""
    tiny_models.write_text_model(folder)
    config = json.loads((folder / "config.json").read_text())
    config["max_position_embeddings"] = 8192
    (folder / "config.json").write_text(json.dumps(config))


class ClientsTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory()))
        write_model(cls.folder / "model")
        (cls.folder / "proto").symlink_to(ROOT / "proto")
        (stubs, *_) = commands("protoc")  # the first is Python's
        for words in (stubs, [*stubs[:-1], "proto/health.proto"]):
            subprocess.run(words, cwd=cls.folder, check=True)
        sys.path.insert(0, str(cls.folder))
        cls.flags = [f"--model={cls.folder}/model", "--threads=1",
                     "--kv_memory=16MiB"]
        cls.server = cls.enterClassContext(
            ServerProcess(ROOT / "server/strata_server", cls.flags))
        cls.names = {}
        for line, block in markdown.blocks(PAGE, "python"):
            code = block.replace(ADDRESS, cls.server.address)
            exec(compile("\n" * (line - 1) + code, "docs/clients.md", "exec"),
                 cls.names)
        cls.addClassCleanup(cls.names["channel"].close)

    def test_the_python_blocks_did_what_they_show(self):
        usage = self.names["usage"]
        self.assertEqual(usage.strategy, "every=2")
        self.assertEqual(2 * usage.kv_bytes, usage.kv_bytes_full)
        self.assertEqual(set(self.names["loss"]),
                         {"full", "every=2", "prefix=4"})
        self.assertEqual(len(set(self.names["loss"].values())), 3)
        switched = self.names["switched"]
        self.assertEqual(switched.canonical, "every=4")
        self.assertGreater(switched.freed_bytes, 0)
        (switch,) = self.names["response"].done.usage.switches
        self.assertEqual(switch.strategy, "every=4")
        self.assertEqual(self.names["refusal"].code(),
                         grpc.StatusCode.INVALID_ARGUMENT)

    def test_python_over_tls_with_a_key(self):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
             "/CN=server", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
             "server.key", "-out", "server.pem"],
            cwd=self.folder, check=True, stderr=subprocess.DEVNULL)
        (self.folder / "keys").write_text("KEY\n")
        flags = [*self.flags, f"--tls_cert={self.folder}/server.pem",
                 f"--tls_key={self.folder}/server.key",
                 f"--api_key_file={self.folder}/keys"]
        pb = self.names["pb"]
        with ServerProcess(ROOT / "server/strata_server", flags) as server:
            channel = self.names["secure_channel"](
                server.address, (self.folder / "server.pem").read_bytes())
            with channel:
                stub = self.names["strata_pb2_grpc"].InferenceStub(channel)
                with self.assertRaises(grpc.RpcError) as refused:
                    stub.GetModel(pb.GetModelRequest())
                self.assertEqual(refused.exception.code(),
                                 grpc.StatusCode.UNAUTHENTICATED)
                model = stub.GetModel(pb.GetModelRequest(),
                                      metadata=self.names["metadata"])
                self.assertEqual(model.num_layers, tiny_models.NUM_LAYERS)

    def test_the_cpp_client_streams(self):
        (words,) = commands("docs/client")
        words = [ROOT / "docs/client", self.server.address, *words[2:]]
        run = subprocess.run(words, capture_output=True, text=True, check=True)
        self.assertTrue(run.stdout)
        self.assertRegex(run.stderr, r"\d+ tokens under every=2, KV cache of "
                         r"\d+ bytes \(\d+ under full\)\n$")
        words[2] = "every=0"
        run = subprocess.run(words, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, "^client: .*every=0")

    def test_the_bodies_of_grpcurl_are_requests(self):
        modules = {"strata.v1": self.names["pb"],
                   "grpc.health.v1": importlib.import_module("health_pb2")}
        num_calls = 0
        for words in commands("grpcurl"):
            if words[-2] == "describe":
                package, _, name = words[-1].rpartition(".")
                self.assertTrue(hasattr(modules[package], name))
            if "/" not in words[-1]:
                continue
            service, _, method = words[-1].partition("/")
            package, _, service = service.rpartition(".")
            described = modules[package].DESCRIPTOR.services_by_name[
                service].methods_by_name[method]
            request = getattr(modules[package], described.input_type.name)()
            answer = getattr(modules[package], described.output_type.name)
            if "-d" in words:
                json_format.Parse(words[words.index("-d") + 1], request)
            self.assertEqual(words[-2], ADDRESS)
            call = self.names["channel"].unary_stream(
                "/" + words[-1], type(request).SerializeToString,
                answer.FromString)
            with self.subTest(words[-1]):
                self.assertTrue(list(call(request, timeout=60)))
            num_calls += 1
        self.assertGreater(num_calls, 5)


if __name__ == "__main__":
    unittest.main()
