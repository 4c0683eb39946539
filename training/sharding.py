"""--fsdp: parameters, gradients and optimizer state split over processes."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor


def shard(step, device: torch.device):
    """Splits the student of `step`, a TrainingStep, by layers; what is outside
    of layers (embedding, last norm, head) is whole during a pass.  A teacher
    that is a copy stays whole.  REQUIRES: a process group."""
    mesh = init_device_mesh(
        device.type, (torch.distributed.get_world_size(),)
    )
    step.to(device)
    for layer in step.decoder.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(step, mesh=mesh)


def whole(tensor: torch.Tensor) -> torch.Tensor:
    """All of a tensor that may be split; every process calls."""
    tensor = tensor.detach()
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def split_as(tensor: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
    """A whole tensor, split as `parameter` is; every process calls."""
    if not isinstance(parameter, DTensor):
        return tensor
    return distribute_tensor(
        tensor.to(parameter.device),
        parameter.device_mesh,
        parameter.placements,
    )
