"""Cost of a CPS step against the student forwards and backwards that it is made of, measured in one run.

    python benchmarks/cps_step.py --config configs/fpl/camvid/cps-cutmix_resnet18w16_1xb12-2k_camvid-1over8.py

The parts are the stock student's supervised loss, its forward on the images of the unsupervised term and, with CutMix,
its forward without gradient on the unmixed images, each with its backward. The parts and the whole step take turns,
so that a change of the machine's speed meets both. ``with loss`` adds the unsupervised loss to the parts. The model is
set to an iteration at which the unsupervised loss has its full weight.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import bench_results
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.structures import PixelData
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample


def seconds(step: Callable[[], object], model: torch.nn.Module) -> float:
    """Wall time of one call, the gradients emptied before it."""
    model.zero_grad(set_to_none=True)
    begin = time.perf_counter()
    step()
    return time.perf_counter() - begin


def main(argv: list[str] | None = None) -> int:
    """Measure, print the figures and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--config', required=True)
    parser.add_argument('--rounds', type=int, default=15)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--out', help='file for the results (default: benchmarks/results/bench/cps_step.json)')
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    cfg = Config.fromfile(args.config)
    init_default_scope('mmseg')
    model = MODELS.build(cfg.model).train()
    # Before that, a step is a supervised one, and afterwards its weight may still rise.
    model.iteration.fill_(model.semi_train_cfg['unsup_begin'] + model.semi_train_cfg['unsup_ramp'])
    ratio = cfg.train_dataloader.sampler.source_ratio
    units = cfg.train_dataloader.batch_size // sum(ratio)
    size = tuple(cfg.crop_size)

    def batch(count: int) -> tuple[torch.Tensor, list[SegDataSample]]:
        samples = [SegDataSample(metainfo=dict(img_shape=size)) for _ in range(count)]
        for sample in samples:
            sample.gt_sem_seg = PixelData(data=torch.randint(0, model.num_classes, (1, *size)))
        return torch.randn(count, 3, *size), samples

    labeled, unlabeled = batch(units * ratio[0]), batch(units * ratio[1])
    inputs = dict(sup=labeled[0], unsup_weak=unlabeled[0])
    samples = dict(sup=labeled[1], unsup_weak=unlabeled[1])
    images = unlabeled[0] if model.mix is None else model.mix(unlabeled[0], model.mix.sample(unlabeled[0]))
    labeled_logits = model.semi_train_cfg['unsup_on'] == 'all'

    def whole() -> None:
        losses = model.loss(inputs, samples)
        if not losses['unsup_loss'] > 0:
            raise RuntimeError(f'the step has no unsupervised loss (unsup_loss = {losses["unsup_loss"]})')
        model.parse_losses(losses)[0].backward()

    def supervised(student: torch.nn.Module) -> None:
        # As mmengine does it: a loss may come with one value for each pixel.
        sum(value.mean() for name, value in student.loss(*labeled).items() if 'loss' in name).backward()

    def unsupervised(student: torch.nn.Module) -> None:
        logits = model.segment(student, images)
        logits.backward(torch.ones_like(logits))

    def pseudo(student: torch.nn.Module) -> None:
        with torch.no_grad():
            model.segment(student, unlabeled[0])

    count = len(images) + (len(labeled[0]) if labeled_logits else 0)
    logits = torch.randn(2 * count, model.num_classes, *size, requires_grad=True)
    targets = torch.randn(2 * count, model.num_classes, *size)

    def loss_alone() -> None:
        model.unsup_loss(logits, targets).backward()
        logits.grad = None

    separate = model.mix is not None or model.semi_train_cfg['pseudo_label_mode'] == 'eval'
    parts = [supervised, unsupervised, *([pseudo] if separate else [])]
    times: dict[str, list[float]] = {'step': [], 'parts': [], 'loss': []}
    for index in range(args.rounds + 2):
        row = {
            'step': seconds(whole, model),
            'parts': sum(
                seconds(lambda p=part, s=student: p(s), model) for part in parts for student in model.models_held
            ),
            'loss': seconds(loss_alone, model),
        }
        if index >= 2:
            for name, value in row.items():
                times[name].append(value)
    median = {name: statistics.median(values) for name, values in times.items()}
    ratios = [step / parts for step, parts in zip(times['step'], times['parts'], strict=True)]
    with_loss = [
        step / (parts + loss) for step, parts, loss in zip(times['step'], times['parts'], times['loss'], strict=True)
    ]
    result = dict(
        config=args.config, batch={name: len(value) for name, value in inputs.items()}, size=size,
        step_ms=1e3 * median['step'], parts_ms=1e3 * median['parts'], unsup_loss_ms=1e3 * median['loss'],
        ratio=statistics.median(ratios), ratio_with_loss=statistics.median(with_loss), rounds=args.rounds,
    )  # fmt: skip
    print(f'step {result["step_ms"]:.0f} ms; student passes {result["parts_ms"]:.0f} ms; '
          f'unsupervised loss {result["unsup_loss_ms"]:.0f} ms')
    print(f'step / passes {result["ratio"]:.3f}; step / (passes + loss) {result["ratio_with_loss"]:.3f}')
    name = Path(args.config).stem
    bench_results.save(
        'cps_step', seed=args.seed, threads=args.threads, details=result, out=args.out, argv=argv,
        rows=[
            bench_results.row(f'training step of {name}', result['step_ms'], 'ms',
                              'its student passes', result['parts_ms']),
            bench_results.row('the same', result['step_ms'], 'ms', 'its student passes and unsupervised loss',
                              result['parts_ms'] + result['unsup_loss_ms'])
        ])  # fmt: skip
    return 0


if __name__ == '__main__':
    sys.exit(main())
