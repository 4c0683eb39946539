"""The real server with a model that reads text, and inputs for it."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
import tritonclient.grpc as triton

sys.path.insert(0, "tests/evaluation")
import tiny_models  # noqa: E402

SERVER = "server/strata_server"
MODEL = "tiny"


class KServeServer:
    """Runs until stopped; the log is in its folder."""

    def __init__(self, *flags: str):
        self._is_stopping = False
        self._scratch = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self._scratch.name)
        tiny_models.write_text_model(folder / "model")
        self._log = open(folder / "log", "w+")
        self._process = subprocess.Popen(
            [
                SERVER,
                f"--model={folder}/model",
                f"--served_model_name={MODEL}",
                "--host=127.0.0.1",
                "--grpc_port=0",
                "--http_port=0",
                "--threads=1",
                "--kv_memory=16MiB",
                *flags,
            ],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        line = self._process.stdout.readline()
        ports = re.fullmatch(
            r"listening grpc=127\.0\.0\.1:(\d+) http=127\.0\.0\.1:(\d+)\n",
            line,
        )
        if ports is None:
            raise AssertionError(f"the server failed: {self.log()}")
        self.address = f"127.0.0.1:{ports[1]}"
        self.http_port = int(ports[2])

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()

    def signal_stop(self):
        if not self._is_stopping:  # a second signal would end it at once
            self._process.send_signal(signal.SIGTERM)
        self._is_stopping = True

    def stop(self):
        self.signal_stop()
        status = self._process.wait(timeout=60)
        self._process.stdout.close()
        self._log.close()
        self._scratch.cleanup()
        if status != 0:
            raise AssertionError(f"exit status {status} after SIGTERM")


def text(name: str, value: str) -> triton.InferInput:
    tensor = triton.InferInput(name, [1], "BYTES")
    tensor.set_data_from_numpy(np.array([value.encode()], dtype=np.object_))
    return tensor


def flag(name: str, value: bool = True) -> triton.InferInput:
    tensor = triton.InferInput(name, [1], "BOOL")
    tensor.set_data_from_numpy(np.array([value], dtype=bool))
    return tensor


def inputs(
    prompt: str, *more: triton.InferInput, **sampling: Any
) -> list[triton.InferInput]:
    """Greedy and of a fixed length, unless `sampling` says otherwise."""
    sampling = {
        "temperature": 0,
        "max_tokens": 8,
        "ignore_eos": True,
        **sampling,
    }
    return [
        text("text_input", prompt),
        text("sampling_parameters", json.dumps(sampling)),
        *more,
    ]


def text_of(result: triton.InferResult) -> str:
    (value,) = result.as_numpy("text_output")
    return value.decode()
