"""Cost of a training step under gradient surgery, against the plain step on the sum of the two losses, in one run.

    python benchmarks/surgery_step.py [--torchjd]

A ResNet-18 for 32 x 32 images with a classifier and an estimator head, batch 64, SGD with momentum, trained through
``train_step``. The kinds of step take turns, so that a change of the machine's speed meets all. ``--torchjd`` adds
torchjd's ``mtl_backward`` with PCGrad, which has to be installed for this alone. ``own work`` is what the wrapper does
beside the backward passes: a step less the forward and the passes alone. Memory is the peak of a process of its own,
model, optimizer and libraries included.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bench_results
import torch
import torch.nn.functional as F
from fpl_loss import resident
from mmengine.config import ConfigDict
from mmengine.model import BaseModel
from mmengine.registry import MODELS, OPTIM_WRAPPERS, init_default_scope
from torch import Tensor, nn

SURGERY = dict(type='mmssl.RGDOptimWrapper', primary=['main_loss'], auxiliary=['aux_loss'], shared=['encoder'])
KINDS = {
    'plain': dict(type='OptimWrapper'),
    'exact': SURGERY,
    'feature': dict(SURGERY, mode='feature'),
    'lazy': dict(SURGERY, mode='lazy', lazy_interval=8),
}
CLASSES, FEATURES = 10, 512


class TwoHeads(BaseModel):
    """A classifier, and an estimator of its labels' reliability that shares the encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = MODELS.build(dict(type='ResNet_CIFAR', depth=18))
        self.head = nn.Linear(FEATURES, CLASSES)
        self.estimator = nn.Sequential(nn.Linear(FEATURES, 128), nn.Tanh(), nn.Linear(128, CLASSES))

    def features(self, inputs: Tensor) -> Tensor:
        """Pooled features, shape (N, 512)."""
        return self.encoder(inputs)[-1].mean(dim=(2, 3))

    def forward(self, inputs: Tensor, data_samples: Tensor, mode: str = 'tensor') -> dict[str, Tensor]:
        """The two losses."""
        features = self.features(inputs)
        return dict(main_loss=F.cross_entropy(self.head(features), data_samples),
                    aux_loss=F.cross_entropy(self.estimator(features), data_samples.flip(0)))


def build(kind: str, seed: int) -> tuple[BaseModel, Any]:
    """A model and its wrapper, the same weights for every kind."""
    torch.manual_seed(seed)
    init_default_scope('mmpretrain')
    model = TwoHeads().train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    wrapper = OPTIM_WRAPPERS.build(ConfigDict(KINDS[kind]), default_args=dict(optimizer=optimizer))
    wrapper.initialize_count_status(model, 0, 10**6)
    return model, wrapper


def batch(size: int, seed: int) -> dict[str, Tensor]:
    """Random images and labels."""
    generator = torch.Generator().manual_seed(seed)
    return dict(inputs=torch.randn(size, 3, 32, 32, generator=generator),
                data_samples=torch.randint(0, CLASSES, (size,), generator=generator))


def bare_passes(model: BaseModel, data: dict[str, Tensor]) -> Callable[[], None]:
    """The forward and the two backward passes that an exact step needs, and nothing else."""
    parameters = list(model.parameters())

    def step() -> None:
        losses = model(**data, mode='loss')
        torch.autograd.grad(losses['aux_loss'], parameters, retain_graph=True, allow_unused=True)
        torch.autograd.grad(losses['main_loss'], parameters, allow_unused=True)

    return step


def torchjd_step(model: BaseModel, optimizer: torch.optim.Optimizer, data: dict[str, Tensor]) -> Callable[[], None]:
    """The same two losses by torchjd."""
    from torchjd.aggregation import PCGrad
    try:
        from torchjd.autojac import jac_to_grad, mtl_backward
    except ImportError:
        from torchjd.autojac import mtl_backward
        jac_to_grad = None
    aggregator = PCGrad()

    def step() -> None:
        features = model.features(data['inputs'])
        losses = [F.cross_entropy(model.head(features), data['data_samples']),
                  F.cross_entropy(model.estimator(features), data['data_samples'].flip(0))]
        if jac_to_grad is None:
            mtl_backward(losses=losses, features=features, aggregator=aggregator)
        else:
            mtl_backward(losses, features=features)
            jac_to_grad(model.encoder.parameters(), aggregator)
        optimizer.step()
        optimizer.zero_grad()

    return step


def memory_of(kind: str, args: argparse.Namespace) -> float:
    """Peak MiB of a process of its own that makes a step, model, optimizer and libraries included."""
    command = [sys.executable, __file__, '--memory-of', kind, '--batch', str(args.batch), '--seed', str(args.seed)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main(argv: list[str] | None = None) -> int:
    """Measure, print the figures and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rounds', type=int, default=12, help='turns of eight steps that each kind has')
    parser.add_argument('--batch', type=int, default=64)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--torchjd', action='store_true', help='compare with torchjd as well')
    parser.add_argument('--out', help='file for the results (default: benchmarks/results/bench/surgery_step.json)')
    parser.add_argument('--memory-of', choices=KINDS, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    data = batch(args.batch, args.seed)
    if args.memory_of:
        model, wrapper = build(args.memory_of, args.seed)
        model.train_step(batch(2, args.seed), wrapper)  # libraries, threads, and what stays: momentum, buffers
        Path('/proc/self/clear_refs').write_text('5', encoding='utf-8')  # VmHWM becomes VmRSS
        model.train_step(data, wrapper)
        print(resident('VmHWM'))
        return 0
    steps: dict[str, Callable[[], Any]] = {}
    for kind in KINDS:
        model, wrapper = build(kind, args.seed)
        steps[kind] = lambda model=model, wrapper=wrapper: model.train_step(data, wrapper)
    steps['passes'] = bare_passes(build('plain', args.seed)[0], data)
    if args.torchjd:
        model, wrapper = build('plain', args.seed)
        steps['torchjd'] = torchjd_step(model, wrapper.optimizer, data)
    times: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(args.rounds + 1):
        for name, step in steps.items():
            begin = time.perf_counter()
            for _ in range(8):  # one exact and seven cheap steps of the lazy kind
                step()
            if number:
                times[name].append(1e3 * (time.perf_counter() - begin) / 8)
        print(f'round {number} of {args.rounds}', file=sys.stderr)
    ms = {name: statistics.median(values) for name, values in times.items()}
    memory = {kind: memory_of(kind, args) for kind in KINDS}
    own = statistics.median(whole - passes for whole, passes in zip(times['exact'], times['passes'], strict=True))
    rows = [bench_results.row('plain joint step', ms['plain'], 'ms')]
    for kind in ('exact', 'feature', 'lazy'):
        rows.append(bench_results.row(f'`{kind}` step', ms[kind], 'ms', 'the plain joint step', ms['plain']))
    rows.append(bench_results.row('own work of an `exact` step', own, 'ms', 'the step', ms['exact']))
    if args.torchjd:
        rows.append(bench_results.row("torchjd's `mtl_backward` + PCGrad", ms['torchjd'], 'ms', 'an `exact` step',
                                      ms['exact']))
    for kind in ('exact', 'feature', 'lazy'):
        rows.append(bench_results.row(f'`{kind}`: peak memory', memory[kind], 'MiB', 'plain', memory['plain']))
    for row in rows:
        against = '' if row['baseline_value'] is None else f' ({row["value"] / row["baseline_value"]:.3f} x)'
        print(f'{row["what"]:<36} {row["value"]:9.1f} {row["unit"]}{against}')
    bench_results.save('surgery_step', seed=args.seed, threads=args.threads, rows=rows, argv=argv, out=args.out,
                       details=dict(ms=ms, memory_mib=memory, own_ms=own, batch=args.batch, rounds=args.rounds))
    return 0


if __name__ == '__main__':
    sys.exit(main())
