"""The real server with a model that reads text, and inputs for it."""

import contextlib
import json
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import tritonclient.grpc as triton

ROOT = pathlib.Path(__file__).absolute().parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/evaluation")]
import tiny_models  # noqa: E402
from evaluation.server_process import ServerProcess  # noqa: E402

SERVER = "server/strata_server"
MODEL = "tiny"


@contextlib.contextmanager
def served(*flags: str) -> Iterator[ServerProcess]:
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model"
        tiny_models.write_text_model(model)
        with ServerProcess(
            SERVER,
            [
                f"--model={model}",
                f"--served_model_name={MODEL}",
                "--threads=1",
                "--kv_memory=16MiB",
                *flags,
            ],
        ) as server:
            yield server


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
