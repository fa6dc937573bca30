"""Started by torchrun: gradients and states of losses on labels, with the whole batch spread over the ranks."""

import sys

import torch
from mmengine.dist import get_dist_info
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from mmssl.models.losses import ADRLoss, EntropyLoss, OnlineLabelSmoothLoss

CLASSES, SAMPLES, STEPS = 6, 8, 3
CASES = {
    'batch': (ADRLoss, dict()),
    'batch_detached': (ADRLoss, dict(detach_phi=True)),
    'batch_variance': (ADRLoss, dict(uncertainty='variance', topk=1)),
    'sample': (ADRLoss, dict(phi='sample')),
    'sum_of_pixels': (ADRLoss, dict(reduction='none')),
    'entropy': (EntropyLoss, dict()),
    'online_label_smoothing': (OnlineLabelSmoothLoss, dict(num_classes=CLASSES, updates='manual')),
}


class Model(nn.Module):
    """A linear layer with a loss on labels."""

    def __init__(self, loss: nn.Module, ignore: bool) -> None:
        super().__init__()
        self.layer, self.loss, self.ignore = nn.Linear(5, CLASSES), loss, ignore

    def forward(self, inputs: torch.Tensor, label: torch.Tensor, **kwargs: object) -> torch.Tensor:
        logits = self.layer(inputs)
        if inputs.dim() == 3:
            logits = logits.transpose(1, 2)
        return self.loss(logits, label, ignore_index=255 if self.ignore else None, **kwargs)


def data(step: int, maps: bool, ignore: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The whole batch of a step; all ignored labels are those of rank 0."""
    generator = torch.Generator().manual_seed(step)
    shape = (SAMPLES, 7) if maps else (SAMPLES, )
    inputs = 3 * torch.randn(*shape, 5, generator=generator, dtype=torch.float64)
    label = torch.randint(0, CLASSES, shape, generator=generator)
    label[1] = 3
    if ignore:
        label[::2][:3] = 255
    return inputs, label


def shared(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor, which must be the same on all ranks."""
    first = tensor.clone()
    torch.distributed.broadcast(first, 0)
    assert torch.equal(first, tensor)
    return first


def main(out: str) -> None:
    torch.distributed.init_process_group('gloo')  # mmengine's init_dist wants a GPU
    rank, world_size = get_dist_info()
    torch.set_num_threads(1)
    saved = {}
    for name, (kind, options) in CASES.items():
        for maps in (False, True):
            for ignore in (False, True):
                torch.manual_seed(0)
                model = Model(kind(loss_weight=1., **options), ignore).double()
                wrapped = DistributedDataParallel(model, find_unused_parameters=False)
                for step in range(STEPS):
                    model.zero_grad()
                    inputs, label = (tensor[rank::world_size] for tensor in data(step, maps, ignore))
                    loss = wrapped(inputs, label)
                    if loss.dim() > 0:  # a gradient to every pixel that differs between pixels
                        loss = (loss * inputs[..., 0]).mean()
                    loss.backward()
                    gradients = {key: p.grad.clone() for key, p in model.named_parameters()}
                    saved[f'{name}.maps={maps}.ignore={ignore}.{step}'] = gradients
                    if kind is OnlineLabelSmoothLoss:
                        # Within an epoch and at its end: a checkpoint of rank 0 may be written at either.
                        saved[f'{name}.maps={maps}.ignore={ignore}.{step}.sums'] = dict(sums=shared(model.loss.sums))
                        if step % 2:
                            model.loss.update_targets()
                            targets = shared(model.loss.targets)
                            saved[f'{name}.maps={maps}.ignore={ignore}.{step}.targets'] = dict(targets=targets)
    if rank == 0:
        torch.save(saved, out)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == '__main__':
    main(sys.argv[1])
