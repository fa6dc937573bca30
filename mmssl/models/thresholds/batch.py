"""Statistics over the batch of all processes, equal on each of them."""

import torch
from mmengine.dist import all_gather, all_reduce, get_world_size
from torch import Tensor


def batch_mean(values: Tensor) -> Tensor:
    """Mean over the samples of all processes.

    Args:
        values: (N, *), float.

    Returns:
        (*).
    """
    if get_world_size() == 1:
        return values.mean(dim=0)
    total = values.sum(dim=0)
    packed = torch.cat([total.flatten(), total.new_full((1,), len(values))])
    all_reduce(packed, 'sum')
    return (packed[:-1] / packed[-1]).view(total.shape)


def gather_batch(values: Tensor) -> Tensor:
    """The samples of all processes, rank after rank.

    Args:
        values: (N, *); the same N in every process.

    Returns:
        (N * processes, *), without gradient.
    """
    return values.detach() if get_world_size() == 1 else torch.cat(all_gather(values.detach().contiguous()))


def gather_in_order(values: Tensor) -> Tensor:
    """The samples of all processes in the order of one process with the whole batch: the first of each, the second, ...

    Samplers deal samples to the processes in turn.

    Args:
        values: (N, *); the same N in every process.

    Returns:
        (N * processes, *), without gradient.
    """
    if get_world_size() == 1:
        return values.detach()
    return torch.stack(all_gather(values.detach().contiguous()), dim=1).flatten(0, 1)
