"""Started by torchrun: trains a model under gradient surgery, the whole batch spread over the ranks."""

import sys
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.dist import get_dist_info
from mmengine.model import BaseModel, MMDistributedDataParallel
from mmengine.registry import OPTIM_WRAPPERS
from torch import Tensor, nn

BATCH, ITERATIONS = 8, 6
# Warm-up ends after two iterations, the ramp after two more.
OPTIONS = dict(
    type='mmssl.RGDOptimWrapper', primary=['main_loss'], auxiliary=['aux_loss'], shared=['encoder'], warmup=2, ramp=2,
    reliability='reliability',
)  # yapf: disable
CASES = {
    **{f'{mode}-{find}': (dict(mode=mode, lazy_interval=2), dict(find_unused_parameters=find))
       for mode, find in product(('exact', 'lazy', 'feature'), (False, True))},
    'layer': (dict(granularity='layer'), {}),
    'symmetric': (dict(projection='symmetric'), {}),
    'accumulation': (dict(accumulative_counts=2), {}),
    'clip': (dict(clip_grad=dict(max_norm=0.05)), {}),
    'bucket_view': ({}, dict(gradient_as_bucket_view=True)),
}  # yapf: disable


class Model(BaseModel):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 5))
        self.head, self.estimator = nn.Linear(5, 3), nn.Linear(5, 3)
        self.sometimes = nn.Linear(5, 1)
        self.never = nn.Linear(2, 2)

    def forward(self, inputs: Tensor, data_samples: Tensor, mode: str = 'tensor') -> Any:
        features = self.encoder(inputs)
        rank, _ = get_dist_info()
        main = F.cross_entropy(self.head(features), data_samples)
        if rank == 0:  # a head that only one of the processes uses
            main = main + 0 * self.sometimes(features).mean()
        auxiliary = -F.cross_entropy(self.estimator(features), data_samples)
        return dict(main_loss=main, aux_loss=auxiliary, reliability=features.detach().sigmoid().mean())


def main(out: str) -> None:
    torch.distributed.init_process_group('gloo')
    rank, world_size = get_dist_info()
    torch.set_num_threads(1)
    saved = {}
    for name, (options, ddp) in CASES.items():
        torch.manual_seed(0)
        model = Model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, weight_decay=1e-3)
        wrapper = OPTIM_WRAPPERS.build(dict(OPTIONS, **options), default_args=dict(optimizer=optimizer))
        trained = model
        if world_size > 1:
            trained = MMDistributedDataParallel(model, device_ids=None, broadcast_buffers=False, **ddp)
        wrapper.initialize_count_status(trained, 0, ITERATIONS)
        generator = torch.Generator().manual_seed(1)
        for _ in range(ITERATIONS):
            inputs, labels = torch.randn(BATCH, 6, generator=generator), torch.arange(BATCH) % 3
            mine = slice(rank, None, world_size)
            trained.train_step(dict(inputs=inputs[mine], data_samples=labels[mine]), wrapper)
        state = {key: value.clone() for key, value in model.state_dict().items()}
        if world_size > 1:  # all processes hold the same weights
            for key, value in state.items():
                first = value.clone()
                torch.distributed.broadcast(first, 0)
                assert torch.equal(first, value), f'{name}: {key} differs between the processes'
        saved[name] = state
    if rank == 0:
        torch.save(saved, out)
    torch.distributed.destroy_process_group()


if __name__ == '__main__':
    main(sys.argv[1])
