"""The real server with a model that reads text, and the stubs of both APIs.

Those of vllm.grpc.engine are smg-grpc-proto's, unmodified.
"""

import contextlib
import pathlib
import re
import sys
import tempfile
import time
import unittest
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

import grpc
from smg_grpc_proto import vllm_engine_pb2, vllm_engine_pb2_grpc

ROOT = pathlib.Path(__file__).absolute().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/evaluation")]
import tiny_models  # noqa: E402
from evaluation import protocol  # noqa: E402
from evaluation.server_process import ServerProcess  # noqa: E402

MODEL = "tiny"
VOCAB, CONTEXT, NUM_LAYERS = tiny_models.VOCAB, 512, tiny_models.NUM_LAYERS
SERVICE = "vllm.grpc.engine.VllmEngine"
# Of the model's folder, which the server itself does not read: some chunks.
MERGES = bytes(range(256)) * 800
PROMPT = (17, 4, 300, 999, 25, 4, 8)

native_pb2, native_pb2_grpc = protocol.load()


@contextlib.contextmanager
def served(*flags: str) -> Iterator[ServerProcess]:
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model"
        tiny_models.write_text_model(model)
        (model / "merges.txt").write_bytes(MERGES)
        with ServerProcess(
            "server/strata_server",
            [
                f"--model={model}",
                f"--served_model_name={MODEL}",
                "--threads=1",
                "--kv_memory=16MiB",
                "--strategies=half=every=2",
                *flags,
            ],
        ) as server:
            yield server


def request(
    prompt: Sequence[int] | str = PROMPT,
    *,
    stream: bool = False,
    request_id: str = "",
    **sampling: Any,
) -> vllm_engine_pb2.GenerateRequest:
    """Greedy and of a fixed length, unless `sampling` says otherwise."""
    sampling = {
        "temperature": 0,
        "max_tokens": 8,
        "ignore_eos": True,
        **sampling,
    }
    message = vllm_engine_pb2.GenerateRequest(
        request_id=request_id,
        stream=stream,
        sampling_params=vllm_engine_pb2.SamplingParams(**sampling),
    )
    if isinstance(prompt, str):
        message.text = prompt
    else:
        message.tokenized.input_ids.extend(prompt)
    return message


def strategy_metadata(spec: str, floor: str = "") -> list[tuple[str, str]]:
    entries = [("x-kv-strategy", spec), ("x-kv-floor", floor)]
    return [(key, value) for key, value in entries if value]


def completes(responses) -> dict[int, vllm_engine_pb2.GenerateComplete]:
    """By index, of a call that is not streamed."""
    by_index = {}
    for response in responses:
        assert response.WhichOneof("response") == "complete", response
        assert response.complete.index not in by_index
        by_index[response.complete.index] = response.complete
    return by_index


class ServerTest(unittest.TestCase):
    """Of one server for all its tests."""

    FLAGS: tuple[str, ...] = ()

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(served(*cls.FLAGS))
        cls.channel = grpc.insecure_channel(cls.server.address)
        cls.addClassCleanup(cls.channel.close)
        cls.engine = vllm_engine_pb2_grpc.VllmEngineStub(cls.channel)
        cls.native = native_pb2_grpc.InferenceStub(cls.channel)

    def complete(self, message, **call) -> vllm_engine_pb2.GenerateComplete:
        (complete,) = completes(self.engine.Generate(message, **call)).values()
        return complete

    def assert_refused(self, code: str, pattern: str, call, *args, **kwargs):
        with self.assertRaisesRegex(grpc.RpcError, pattern) as caught:
            answer = call(*args, **kwargs)
            if isinstance(answer, grpc.Call):  # a stream
                list(answer)
        self.assertEqual(caught.exception.code().name, code)
        return caught.exception

    def wait_until_idle(self):
        for _ in range(2000):
            load = self.native.GetLoad(native_pb2.GetLoadRequest())
            held = load.kv_used_bytes + load.kv_reserved_bytes
            if (load.running, load.waiting, held) == (0, 0, 0):
                return
            time.sleep(0.01)
        self.fail("a request still lives")

    def metric(self, name: str, label: str = "") -> float:
        page = f"http://{self.server.http_address}/metrics"
        with urllib.request.urlopen(page) as answer:
            lines = answer.read().decode().splitlines()
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in lines
            if re.match(rf"{name}[{{ ]", line) and label in line
        )
