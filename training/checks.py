"""What does not fit is told before the long part of a run."""

import os

import torch

from training.model import ModelError


class RunError(ValueError):
    """Flags that do not fit what is there; the message is for users."""


def check_surroundings(options):
    """REQUIRES: the process group, if there is one, exists."""
    if options.fsdp and not torch.distributed.is_initialized():
        raise RunError(
            "--fsdp needs processes to split over: torchrun -m "
            "training.train ..."
        )
    model = os.path.realpath(options.model)
    folder = os.path.dirname(model) if os.path.isfile(model) else model
    if os.path.realpath(options.out) == folder:
        raise RunError(f"--out={options.out} is the model's own folder")


def check_tokens(path: str, largest_token: int, vocab_size: int):
    """That the tokenizer of the model at `path` is its own."""
    if largest_token >= vocab_size:
        raise ModelError(
            f"--model={path}: the tokenizer makes token {largest_token}, the "
            f"model has {vocab_size}"
        )
