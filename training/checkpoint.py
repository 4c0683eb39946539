"""What a run needs to go on after an interruption."""

import os

import torch


class CheckpointError(ValueError):
    """A checkpoint that does not fit; the message is for users."""


def _path(folder):
    return os.path.join(folder, "checkpoint", "state.pt")


def save(folder: str, model, optimizer, step: int):
    """Writes trained parameters, optimizer and step; replaces the last one."""
    os.makedirs(os.path.dirname(_path(folder)), exist_ok=True)
    trained = {
        name: parameter.detach()
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }
    torch.save(
        {"step": step, "trained": trained, "optimizer": optimizer.state_dict()},
        _path(folder) + ".new",
    )
    os.replace(_path(folder) + ".new", _path(folder))


def load(folder: str, model, optimizer) -> int:
    """Restores what save() wrote; the number of steps done."""
    if not os.path.exists(_path(folder)):
        raise CheckpointError(f"--resume: {_path(folder)} is not there")
    state = torch.load(_path(folder), map_location="cpu", weights_only=True)
    parameters = {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }
    shapes = {name: tensor.shape for name, tensor in state["trained"].items()}
    if shapes != {name: p.shape for name, p in parameters.items()}:
        raise CheckpointError(
            f"--resume: {_path(folder)} is of another model or "
            "other --lora flags"
        )
    with torch.no_grad():
        for name, tensor in state["trained"].items():
            parameters[name].copy_(tensor)
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]
