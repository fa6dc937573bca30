"""Cost of a whole training step of RGD-PLL, against PRODEN with the same teacher, in one run.

    python benchmarks/pll_step.py [--rounds 12]

ResNet-18 at 32 x 32 pixels, batch 64, by the config of CIFAR-10, after its warm-up, so that both backward passes go
through the encoder; images as the data loader hands them over, through ``train_step``. PRODEN learns from the weak
view, and the teacher, of which it reads nothing but its prediction, sees the weak view too. Both update the average of
the weights. The kinds of step take turns, in the other order every other round, so that a change of the machine's speed
meets all. Data loading and logging are left out.
"""

import argparse
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bench_results
import torch
from cls_step import build, in_turns
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmpretrain.structures import DataSample

RGD_PLL = bench_results.REPO / 'configs/rgd_pll/cifar10/rgd-pll_resnet18_1xb256-500e_cifar10-uniform0.3.py'
PRODEN = bench_results.REPO / 'configs/rgd_pll/cifar10/proden_resnet18_1xb256-500e_cifar10-uniform0.3.py'


def make_batch(cfg: Config, branches: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Random images and candidate sets, by branch, of the samples 0 to N - 1."""
    generator = torch.Generator().manual_seed(args.seed)
    classes = cfg.model.classifier.head.num_classes
    sets = torch.rand(args.batch, classes, generator=generator) < 0.3
    sets[torch.arange(args.batch), torch.arange(args.batch) % classes] = True
    inputs, samples = {}, {}
    for branch in branches:
        inputs[branch] = list(torch.randint(0, 256, (args.batch, 3, args.size, args.size), dtype=torch.uint8,
                                            generator=generator))  # fmt: skip
        samples[branch] = [DataSample(metainfo=dict(sample_idx=index, true_label=index % classes))
                           for index in range(args.batch)]  # fmt: skip
        for sample, candidates in zip(samples[branch], sets, strict=True):
            sample.candidates = candidates
    return dict(inputs=inputs, data_samples=samples)


def training_step(cfg: Config, args: argparse.Namespace) -> Callable[[], None]:
    """One iteration of a config, with the update of the teacher."""
    cfg.custom_hooks = []
    runner = build(cfg, args)
    model, wrapper = runner.model, runner.optim_wrapper
    data = make_batch(cfg, model.branches_read(cfg.model), args)
    if model.objective is not None:
        model.objective.targets.set_samples(args.batch, b'', 'a benchmark')
    if model.has_teacher:
        model.initialize_teacher()

    def step() -> None:
        model.train_step(data, optim_wrapper=wrapper)
        if model.has_teacher:
            model.update_teacher(0.001)

    return step


def rgd_pll(path: Path, **options: Any) -> Config:
    """RGD-PLL from the first iteration on as it is after the ramp, in a mode of the surgery."""
    cfg = Config.fromfile(path)
    cfg.model.semi_train_cfg.update(unsup_begin=0, unsup_ramp=0)
    cfg.optim_wrapper.update(warmup=0, ramp=0, **options)
    return cfg


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Measure, print and return the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rgd-pll', type=Path, default=RGD_PLL, help='a config with mmssl.RGDOptimWrapper')
    parser.add_argument('--proden', type=Path, default=PRODEN, help='a config of PRODEN with the same network')
    parser.add_argument('--rounds', type=int, default=12, help='turns of eight steps that each kind has')
    parser.add_argument('--batch', type=int, default=64)
    parser.add_argument('--size', type=int, default=32, help='side of the images')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--out', help='file for the results (default: benchmarks/results/bench/pll_step.json)')
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    load_before = os.getloadavg() if hasattr(os, 'getloadavg') else None
    init_default_scope('mmpretrain')
    proden, alone = Config.fromfile(args.proden), Config.fromfile(args.proden)
    proden.model.semi_train_cfg.teacher = 'ema'
    steps = {
        'exact': training_step(rgd_pll(args.rgd_pll, mode='exact'), args),
        'feature': training_step(rgd_pll(args.rgd_pll, mode='feature'), args),
        'lazy': training_step(rgd_pll(args.rgd_pll, mode='lazy', lazy_interval=8), args),
        'proden': training_step(proden, args),
        'proden alone': training_step(alone, args),
    }
    times, _ = in_turns(steps, args.rounds, args.device, calls=8)
    ms = {kind: statistics.median(values) for kind, values in times.items()}
    ratio = {kind: statistics.median(x / y for x, y in zip(times[kind], times['proden'], strict=True))
             for kind in steps}  # fmt: skip
    result = dict(batch=args.batch, size=args.size, rounds=args.rounds, device=args.device, load_before=load_before,
                  ms=ms, ratio_to_proden=ratio)  # fmt: skip
    for key, value in result.items():
        print(f'{key}: {value}')
    names = {'exact': 'RGD-PLL, whole step, `exact`', 'feature': 'the same, `feature`', 'lazy': 'the same, `lazy` (8)',
             'proden alone': 'PRODEN without a teacher'}  # fmt: skip
    rows = [bench_results.row(title, ms[kind], 'ms', 'PRODEN with the same teacher', ms['proden'])
            for kind, title in names.items()]  # fmt: skip
    bench_results.save('pll_step', seed=args.seed, threads=args.threads, rows=rows, details=result, out=args.out,
                       argv=argv)
    return result


if __name__ == '__main__':
    main()
