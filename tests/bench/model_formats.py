"""One model in several weight formats, for what compares them."""

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).absolute().parents[2]
sys.path.insert(0, str(ROOT))

from evaluation.failure import BadInput, Failure  # noqa: E402

FORMATS = ("q4_0", "q4_1", "q8_0", "bf16", "f16", "f32")
DEFAULT_FORMATS = FORMATS[:4]


def formats(text: str) -> list[str]:
    """The value of a flag."""
    names = text.split(",")
    if not set(names) <= set(FORMATS) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(
            f"'{text}': must be some of {', '.join(FORMATS)}, with commas")
    return names


def requantize(arguments, name: str, folder: str) -> str:
    """The path of arguments.model in the format; arguments.requantize_python
    runs what writes it."""
    path = os.path.join(folder, f"{name}.gguf")
    done = subprocess.run(
        [str(arguments.requantize_python), "-B",
         str(ROOT / "requantize/requantize.py"),
         f"--model={arguments.model}", f"--type={name}", f"--out={path}"],
        stdin=subprocess.DEVNULL, text=True, stderr=subprocess.PIPE,
        check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it says nothing"]
        kind = BadInput if done.returncode == 2 else Failure
        raise kind(lines[-1].removeprefix("strata requantize: "))
    return path
