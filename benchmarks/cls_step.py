"""Cost of a classifier's training step: LayerMatch against the method without its hooks, FixMatch against its passes.

    python benchmarks/cls_step.py [--rounds 15]

WRN-28-2 at 32 x 32 pixels with 8 labeled and 56 unlabeled images, through ``train_step``, by the published configs. The
kinds of step take turns, in the other order every other round, so that a change of the machine's speed meets all:

* ``layermatch``: the config as it is, with what ``mmssl.GradReLUHook`` and ``mmssl.EMAHeadHook`` do in an iteration.
* ``no hooks``: the same without these two.
* ``fixmatch``: FixMatch's config.
* ``passes``: what FixMatch cannot do without. The forwards that its config asks for (one for all views, or one each),
  on images that are normalized already, two cross entropies with labels that are there, the backward pass and the
  optimizer; no threshold, no mask, no statistics, nothing logged.

Moving averages of the model, data loading and logging are left out; they are the same for all.
"""

import argparse
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import bench_results
import torch
import torch.nn.functional as F
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import HOOKS, init_default_scope
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample

FOLDER = bench_results.REPO / 'configs/layermatch/cifar10'
LAYERMATCH = FOLDER / 'layermatch_wrn28-2_1xb512-1m_cifar10-40.py'
FIXMATCH = FOLDER / 'fixmatch_wrn28-2_1xb512-1m_cifar10-40.py'
HOOK_TYPES = ('mmssl.GradReLUHook', 'mmssl.EMAHeadHook')


def build(cfg: Config, args: argparse.Namespace) -> SimpleNamespace:
    """Model and optimizer of a config, the same weights for each; what its hooks see of a runner."""
    torch.manual_seed(args.seed)
    model = MODELS.build(cfg.model).to(args.device).train()
    logging.disable(logging.INFO)  # a line for each parameter
    try:
        wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    finally:
        logging.disable(logging.NOTSET)
    wrapper.initialize_count_status(model, 0, cfg.train_cfg.max_iters)
    return SimpleNamespace(model=model, optim_wrapper=wrapper, hooks=[], cfg=cfg, iter=0)


def make_batch(cfg: Config, args: argparse.Namespace) -> dict[str, Any]:
    """Random images as the data loader hands them over: uint8, by branch, in the config's mixture."""
    generator = torch.Generator().manual_seed(args.seed)
    ratio = cfg.train_dataloader.sampler.source_ratio
    units, rest = divmod(args.batch, sum(ratio))
    if rest:
        raise ValueError(f'--batch must be a multiple of {sum(ratio)}, as train_dataloader.sampler.source_ratio='
                         f'{list(ratio)} wants it, got {args.batch}')
    kind = MODELS.get(cfg.model.type)
    inputs, samples = {}, {}
    for branch in kind.required_branches(cfg.model.semi_train_cfg):
        count = units * ratio[branch != 'sup']
        inputs[branch] = list(torch.randint(0, 256, (count, 3, args.size, args.size), dtype=torch.uint8,
                                            generator=generator))  # fmt: skip
        samples[branch] = [DataSample(metainfo=dict(sample_idx=index)) for index in range(count)]
    for index, sample in enumerate(samples['sup']):
        sample.set_gt_label(index % cfg.model.classifier.head.num_classes)
    return dict(inputs=inputs, data_samples=samples)


def training_step(cfg: Config, args: argparse.Namespace, with_hooks: bool) -> Callable[[], dict[str, Any]]:
    """One iteration of a config, through ``train_step`` and the hooks of LayerMatch, if there are to be any."""
    runner, data = build(cfg, args), make_batch(cfg, args)
    nodes = [node for node in cfg.get('custom_hooks', []) if node.type in HOOK_TYPES]
    if with_hooks:
        runner.hooks = [HOOKS.build(node) for node in nodes]
        if not runner.hooks:
            raise ValueError(f'--layermatch: {cfg.filename} has none of {", ".join(HOOK_TYPES)} in custom_hooks')
    for event in ('before_run', 'before_train'):
        for hook in runner.hooks:
            getattr(hook, event)(runner)

    def step() -> dict[str, Any]:
        outputs = runner.model.train_step(data, optim_wrapper=runner.optim_wrapper)
        for hook in runner.hooks:
            hook.after_train_iter(runner, runner.iter, data, outputs)
        runner.iter += 1
        return outputs

    return step


def bare_passes(cfg: Config, args: argparse.Namespace) -> Callable[[], None]:
    """The forwards, the backward pass and the update that a step of the config needs, and nothing else."""
    runner = build(cfg, args)
    model, optimizer, options = runner.model, runner.optim_wrapper.optimizer, runner.model.semi_train_cfg
    if options['teacher'] is not None:
        raise ValueError(f'--fixmatch: {cfg.filename} has a teacher, whose passes are not counted here')
    with torch.no_grad():
        images = model.data_preprocessor(make_batch(cfg, args), training=True)['inputs']
    labeled, weak, own = (images[branch] for branch in ('sup', 'unsup_weak', options['student_branch']))
    views = [own] if own is weak else [weak, own]
    classes = torch.arange(len(labeled) + len(own), device=args.device) % model.num_classes
    student = model.student

    def step() -> None:
        optimizer.zero_grad()
        if options['concatenate']:
            logits = student(torch.cat([labeled, *views]))
            first, last = logits[: len(labeled)], logits[-len(own) :]
        else:
            first = student(labeled)
            for view in views[:-1]:
                with torch.no_grad():
                    student(view)
            last = student(own)
        loss = F.cross_entropy(first, classes[: len(labeled)]) + F.cross_entropy(last, classes[len(labeled) :])
        loss.backward()
        optimizer.step()

    return step


def measure(step: Callable[[], Any], device: str) -> tuple[float, float]:
    """Milliseconds of one call: by the clock, and of the processors."""
    begin, begin_cpu = time.perf_counter(), time.process_time()
    step()
    if device != 'cpu':
        torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - begin), 1e3 * (time.process_time() - begin_cpu)


def in_turns(
    steps: Mapping[str, Callable[[], Any]], rounds: int, device: str, calls: int = 1
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Milliseconds of a call, by the clock and of the processors, in each round: the mean of some calls in a row.

    The kinds of step take turns, in the other order every other round.
    """
    wall: dict[str, list[float]] = {kind: [] for kind in steps}
    cpu: dict[str, list[float]] = {kind: [] for kind in steps}
    for number in range(rounds + 1):
        for kind in list(steps)[:: 1 if number % 2 else -1]:
            times = [measure(steps[kind], device) for _ in range(calls)]
            if number:  # the first round allocates and warms up
                for values, column in zip((wall, cpu), zip(*times, strict=True), strict=True):
                    values[kind].append(statistics.mean(column))
        print(f'\rround {number} of {rounds} ', end='', file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return wall, cpu


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Measure, print and return the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--layermatch', type=Path, default=LAYERMATCH, help='a config with the two hooks')
    parser.add_argument('--fixmatch', type=Path, default=FIXMATCH, help='a config of mmssl.PseudoLabelClassifier')
    parser.add_argument('--rounds', type=int, default=15)
    parser.add_argument('--batch', type=int, default=64, help='labeled and unlabeled images together')
    parser.add_argument('--size', type=int, default=32, help='side of the images')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--out', help='file for the results (default: benchmarks/results/bench/cls_step.json)')
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    load_before = os.getloadavg() if hasattr(os, 'getloadavg') else None
    init_default_scope('mmpretrain')
    layermatch, fixmatch = Config.fromfile(args.layermatch), Config.fromfile(args.fixmatch)
    steps = {
        'layermatch': training_step(layermatch, args, with_hooks=True),
        'no hooks': training_step(layermatch, args, with_hooks=False),
        'fixmatch': training_step(fixmatch, args, with_hooks=False),
        'passes': bare_passes(fixmatch, args),
    }
    wall, cpu = in_turns(steps, args.rounds, args.device)
    pairs = (('layermatch', 'no hooks'), ('layermatch', 'fixmatch'), ('fixmatch', 'passes'))
    result = dict(
        layermatch=args.layermatch.name, fixmatch=args.fixmatch.name, batch=args.batch, size=args.size,
        rounds=args.rounds, device=args.device, load_before=load_before,
        ms={kind: statistics.median(values) for kind, values in wall.items()},
        cpu_ms={kind: statistics.median(values) for kind, values in cpu.items()},
        spread_ms={kind: [min(values), max(values)] for kind, values in wall.items()},
        ratio={f'{a} / {b}': statistics.median(x / y for x, y in zip(wall[a], wall[b], strict=True)) for a, b in pairs},
        cpu_ratio={f'{a} / {b}': statistics.median(x / y for x, y in zip(cpu[a], cpu[b], strict=True))
                   for a, b in pairs},
    )  # fmt: skip
    for key, value in result.items():
        print(f'{key}: {value}')
    ms, network = result['ms'], args.layermatch.stem.split('_')[1]
    what = {'layermatch': f'LayerMatch, step of {network}', 'fixmatch': f'FixMatch, step of {network}'}
    baselines = {'no hooks': 'without its two hooks', 'fixmatch': "FixMatch's step",
                 'passes': 'its forward, backward and optimizer passes'}  # fmt: skip
    rows = [bench_results.row(what[a], ms[a], 'ms', baselines[b], ms[b]) for a, b in pairs]
    bench_results.save('cls_step', seed=args.seed, threads=args.threads, rows=rows, details=result, out=args.out,
                       argv=argv)
    return result


if __name__ == '__main__':
    main()
