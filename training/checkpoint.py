"""What a run needs to go on after an interruption."""

import os

import torch

from training.sharding import split_as, whole


class CheckpointError(ValueError):
    """A checkpoint that does not fit; the message is for users."""


def _path(folder):
    return os.path.join(folder, "checkpoint", "state.pt")


def save(
    folder: str, model, optimizer, step: int, flags: dict, is_writer: bool
):
    """Writes trained parameters, optimizer, step and the flags that led to
    them; replaces the last one.

    Every process calls: with --fsdp each has a part.
    """
    trained = {
        name: whole(parameter) for name, parameter in _trained(model).items()
    }
    state = _mapped(optimizer, lambda tensor, _: whole(tensor))
    if not is_writer:
        return
    os.makedirs(os.path.dirname(_path(folder)), exist_ok=True)
    try:
        torch.save(
            {
                "step": step,
                "trained": trained,
                "optimizer": state,
                "flags": flags,
            },
            _path(folder) + ".new",
        )
    except RuntimeError as error:  # torch's, where the disk is full
        os.remove(_path(folder) + ".new")
        raise OSError(
            f"{_path(folder)} cannot be written; is the disk full?"
        ) from error
    os.replace(_path(folder) + ".new", _path(folder))


def load(folder: str, model, optimizer) -> tuple[int, dict]:
    """Restores what save() wrote; the number of steps done and the flags.

    The optimizer keeps its own rate, betas and decay.
    """
    if not os.path.exists(_path(folder)):
        raise CheckpointError(f"--resume: {_path(folder)} is not there")
    try:
        state = torch.load(_path(folder), map_location="cpu", weights_only=True)
        trained = state["trained"]
    except Exception:  # pylint: disable=broad-except
        raise CheckpointError(
            f"--resume: {_path(folder)} is damaged"
        ) from None
    parameters = _trained(model)
    shapes = {name: tensor.shape for name, tensor in trained.items()}
    if shapes != {name: p.shape for name, p in parameters.items()}:
        raise CheckpointError(
            f"--resume: {_path(folder)} is of another model or "
            "other --lora flags"
        )
    with torch.no_grad():
        for name, tensor in trained.items():
            parameters[name].copy_(split_as(tensor, parameters[name]))
    settings = [
        {key: value for key, value in group.items() if key != "params"}
        for group in optimizer.param_groups
    ]
    optimizer.load_state_dict(state["optimizer"])
    optimizer.load_state_dict(_mapped(optimizer, split_as))
    for group, own in zip(optimizer.param_groups, settings):
        group.update(own)
    return state["step"], state.get("flags", {})


def remove(folder: str):
    """So that --resume does not go on from what a run before left."""
    if os.path.exists(_path(folder)):
        os.remove(_path(folder))


def _trained(model):
    return {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }


def _mapped(optimizer, function):
    """The optimizer's state with function(tensor, parameter) of each moment."""
    groups = optimizer.param_groups
    parameters = [p for group in groups for p in group["params"]]
    state = optimizer.state_dict()
    state["state"] = {
        index: {
            key: function(value, parameters[index]) if value.ndim else value
            for key, value in moments.items()
        }
        for index, moments in state["state"].items()
    }
    return state
