"""Speed of the weak + strong pipelines: images per second and core, and where the time goes.

    python benchmarks/data_pipeline.py data/camvid
    python benchmarks/data_pipeline.py data/camvid --config configs/fpl/camvid/<name>.py
    python benchmarks/data_pipeline.py data/camvid --work-dir work_dirs/<name>

Without ``--config`` it reads the images of ``DATA_ROOT/img_dir/train`` and makes a weak and a strong (color-changed)
view of each; with one it uses the config's own sources. In the same run, as the baseline: the same transforms as one
plain mmseg pipeline with one view and its mask. One process and one thread, unless the table says otherwise; times are
medians over rounds in which the pipelines take turns. With ``--work-dir``, the work dir of a training, it also says
which share of an iteration that training waited for data: ``data_time / time`` of its log.
"""

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bench_results
import cv2
import torch
from mmengine.config import Config
from mmengine.dataset import Compose, pseudo_collate
from mmengine.registry import DATASETS, init_default_scope
from proof_harness import collect
from torch.utils.data import DataLoader

from mmssl.datasets import MultiBranch, MultiSourceSampler, stateless_randomness
from mmssl.models.data_preprocessors import MultiBranchDataPreprocessor

BRANCHES = ['unsup_weak', 'unsup_strong']
LOAD = dict(type='LoadImageFromFile')
GEOMETRY = [
    dict(type='RandomResize', scale=(480, 360), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=(320, 320), cat_max_ratio=1.0),
    dict(type='RandomFlip', prob=0.5),
]


def builtin_sources(root: str) -> dict[str, dict]:
    """Labeled and unlabeled source on one folder of images."""
    pack = dict(type='mmssl.PackSemiSegInputs')
    strong = [dict(type='PhotoMetricDistortion'), pack]
    branches = ['sup', *BRANCHES]
    return dict(
        labeled=dict(
            type='mmssl.CamVidDataset',
            data_root=root,
            data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'),
            pipeline=[
                LOAD,
                dict(type='LoadAnnotations'), *GEOMETRY,
                dict(type='mmssl.MultiBranch', branches=branches, sup=[dict(type='PackSegInputs')])
            ]),
        unlabeled=dict(
            type='mmssl.UnlabeledImageDataset',
            data_root=root,
            img_path='img_dir/train',
            pipeline=[
                LOAD,
                dict(type='mmssl.TrackPadding'), *GEOMETRY,
                dict(type='mmssl.MultiBranch', branches=branches, unsup_weak=[pack], unsup_strong=strong)
            ]))


class Timed:
    """Stands in for a transform and adds up its time."""

    def __init__(self, transform: Callable, label: str, table: dict[str, float]) -> None:
        self.transform, self.label, self.table = transform, label, table

    def __call__(self, results: dict) -> Any:
        """Run the transform on one sample."""
        begin = time.perf_counter()
        results = self.transform(results)
        self.table[self.label] += time.perf_counter() - begin
        return results


def time_transforms(pipeline: Compose, table: dict[str, float], prefix: str = '') -> None:
    """Replace each transform of a pipeline by one that is timed, those within branches too."""
    for number, transform in enumerate(pipeline.transforms):
        label = f'{prefix}{type(transform).__name__}'
        if isinstance(transform, MultiBranch):
            for branch, inner in transform.branch_pipelines.items():
                time_transforms(inner, table, prefix=f'{branch}: ')
            label = f'{prefix}MultiBranch in all'
        pipeline.transforms[number] = Timed(transform, label, table)


def seconds_per_image(pipeline: Callable, infos: list[dict], seed: int) -> float:
    """Mean time of one pass."""
    begin = time.perf_counter()
    for number, info in enumerate(infos):
        with stateless_randomness(seed, 0, number):
            pipeline(dict(info, seg_fields=[]))
    return (time.perf_counter() - begin) / len(infos)


def waiting_share(work_dir: Path) -> dict[str, float]:
    """How long the iterations of a training took, and how long of that it waited for data.

    Args:
        work_dir: Work dir of the run, with ``*/vis_data/scalars.json``.

    Returns:
        Milliseconds per iteration, of which loading, and the share. The first logged line is left out: its mean has
        the start of the workers in it.

    Raises:
        FileNotFoundError: If the log has fewer than two lines of training.
    """
    lines = [line for session in collect.read_lines(work_dir)
             for line in [line for line in session if 'data_time' in line and 'lr' in line][1:]]
    if not lines:
        raise FileNotFoundError(f'--work-dir: {work_dir} has no */vis_data/scalars.json with two logged iterations')
    time_, data_time = (statistics.fmean(line[key] for line in lines) for key in ('time', 'data_time'))
    return dict(ms_per_iteration=1e3 * time_, loading_ms_per_iteration=1e3 * data_time, loading_share=data_time / time_,
                lines=len(lines))


def main(argv: list[str] | None = None) -> dict:
    """Measure, print the tables and return the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('data_root', help='folder with img_dir/train and ann_dir/train')
    parser.add_argument('--config', help='use the sources, batch size and ratio of this config')
    parser.add_argument('--images', type=int, default=100)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--workers', type=int, default=2)
    parser.add_argument('--batches', type=int, default=30, help='batches for the measurement of the whole loader')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--work-dir', type=Path, help='a finished training: which share of it was waiting for data')
    parser.add_argument('--out', help='file for the results (default: benchmarks/results/bench/data_pipeline.json)')
    args = parser.parse_args(argv)
    waiting = waiting_share(args.work_dir) if args.work_dir else None
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    init_default_scope('mmseg')

    batch_size, ratio = 8, [1, 1]
    if args.config:
        cfg = Config.fromfile(args.config)
        loader = cfg.train_dataloader
        batch_size, ratio = loader.batch_size, list(loader.sampler.source_ratio)
        dataset_cfg = loader.dataset.to_dict()
        for source in dataset_cfg['sources'].values():
            source['data_root'] = args.data_root
        preprocessor_cfg = cfg.model.data_preprocessor.data_preprocessor
    else:
        dataset_cfg = dict(
            type='mmssl.MultiSourceDataset', sources=builtin_sources(args.data_root), allow_overlap=True)
        preprocessor_cfg = dict(type='SegDataPreProcessor', size=(320, 320), mean=[123.] * 3, std=[58.] * 3)
    data = DATASETS.build(dataset_cfg)
    if len(data.datasets) != 2:
        parser.error('the config must have two sources, labeled and unlabeled')
    labeled, unlabeled = data.datasets
    infos = [unlabeled.get_data_info(i % len(unlabeled)) for i in range(args.images)]
    truth = [labeled.get_data_info(i % len(labeled)) for i in range(args.images)]

    # Baseline: what one view costs in a stock pipeline (the labeled one, without the branches).
    *common, branching = labeled.pipeline.transforms
    stock = Compose([*common, *branching.branch_pipelines['sup'].transforms])
    views = len(unlabeled.pipeline.transforms[-1].branch_pipelines)
    timed: dict[str, float] = defaultdict(float)
    rounds: dict[str, list[float]] = defaultdict(list)
    for number in range(args.rounds + 1):
        row = dict(
            stock=seconds_per_image(stock, truth, args.seed + number),
            semi=seconds_per_image(unlabeled.pipeline, infos, args.seed + number))
        if number:  # The first round warms the file cache.
            for key, value in row.items():
                rounds[key].append(value)
    median = {key: statistics.median(values) for key, values in rounds.items()}
    spread = {key: [min(values), max(values)] for key, values in rounds.items()}

    begin = time.perf_counter()
    for number in range(1000):
        with stateless_randomness(args.seed, 0, number):
            pass
    seeding = (time.perf_counter() - begin) / 1000

    time_transforms(unlabeled.pipeline, timed)
    for number in range(args.rounds):
        seconds_per_image(unlabeled.pipeline, infos, args.seed + number)
    per_transform = {key: value / (args.rounds * len(infos)) for key, value in timed.items()}
    inside = sum(value for key, value in per_transform.items() if ': ' in key)
    whole = next((key for key in per_transform if key == 'MultiBranch in all'), None)
    if whole:
        per_transform['MultiBranch: copies and the rest'] = per_transform.pop(whole) - inside

    sampler = MultiSourceSampler(data, ratio, seed=args.seed)
    begin = time.perf_counter()
    iterator = iter(sampler)
    for _ in range(100_000):
        next(iterator)
    per_draw = (time.perf_counter() - begin) / 100_000

    preprocessor = MultiBranchDataPreprocessor(preprocessor_cfg)
    loader = DataLoader(
        data, batch_size, sampler=sampler, num_workers=args.workers, collate_fn=pseudo_collate,
        persistent_workers=args.workers > 0)
    batches = iter(loader)
    for _ in range(2 * max(args.workers, 1) + 1):  # What was made ahead while the workers started.
        batch = next(batches)
    begin = time.perf_counter()
    for _ in range(args.batches):
        batch = next(batches)
    loading = (time.perf_counter() - begin) / args.batches
    times = []
    for _ in range(10):
        begin = time.perf_counter()
        preprocessor({key: dict(value) for key, value in batch.items()}, True)
        times.append(time.perf_counter() - begin)

    result = dict(
        config=args.config,
        images=args.images,
        rounds=args.rounds,
        views=views,
        stock_ms_per_image=1e3 * median['stock'],
        semi_ms_per_image=1e3 * median['semi'],
        ratio_to_stock=median['semi'] / median['stock'],
        spread_ms={key: [1e3 * value for value in values] for key, values in spread.items()},
        images_per_second_per_core=1 / median['semi'],
        views_per_second_per_core=views / median['semi'],
        seeding_ms_per_image=1e3 * seeding,
        sampler_us_per_draw=1e6 * per_draw,
        batch_size=batch_size,
        workers=args.workers,
        loader_ms_per_batch=1e3 * loading,
        loader_images_per_second=batch_size / loading,
        preprocessor_ms_per_batch=1e3 * statistics.median(times),
        transforms_ms_per_image={key: 1e3 * value for key, value in per_transform.items()},
        waiting=waiting)
    report(result)
    bench_results.save(
        'data_pipeline', seed=args.seed, threads=1, rows=table_rows(result), details=result, out=args.out,
        argv=argv)
    return result


def table_rows(result: dict) -> list[dict]:
    """What goes into the page of benchmarks."""
    views = f'{result["views"]} view' + 's' * (result['views'] > 1)
    rows = [
        bench_results.row(f'unlabeled pipeline, {views}', result['semi_ms_per_image'], 'ms/image',
                          'stock pipeline, 1 view', result['stock_ms_per_image']),
        bench_results.row(f'unlabeled pipeline, {views}', result['images_per_second_per_core'], 'images/s on one core'),
        bench_results.row(f'loader, {result["workers"]} workers, batches of {result["batch_size"]}',
                          result['loader_images_per_second'], 'images/s'),
    ]  # yapf: disable
    if result['waiting']:
        rows.append(bench_results.row('of a training: waiting for data', result['waiting']['loading_ms_per_iteration'],
                                      'ms', 'a whole iteration', result['waiting']['ms_per_iteration']))
    return rows


def report(result: dict) -> None:
    """Print the tables."""
    print(f'{"":34}{"ms/image":>10}{"images/s/core":>15}')
    labels = dict(stock='stock mmseg pipeline, 1 view', semi=f'unlabeled pipeline, {result["views"]} view(s)')
    for key, label in labels.items():
        value = result[f'{key}_ms_per_image']
        print(f'{label:34}{value:10.2f}{1e3 / value:15.1f}')
    print(f'{"ratio":34}{result["ratio_to_stock"]:10.2f}\n')
    print('where the time of the unlabeled pipeline goes (timed in a pass of its own):')
    whole = sum(result['transforms_ms_per_image'].values())
    for label, value in sorted(result['transforms_ms_per_image'].items(), key=lambda pair: -pair[1]):
        print(f'  {label:46}{value:8.3f} ms {100 * value / whole:5.1f} %')
    print(f'  {"stateless seeding":46}{result["seeding_ms_per_image"]:8.3f} ms')
    print(f'  {"sampler":46}{result["sampler_us_per_draw"] / 1e3:8.3f} ms')
    print(f'\nloader, {result["workers"]} workers: {result["loader_ms_per_batch"]:.1f} ms per batch of '
          f'{result["batch_size"]} ({result["loader_images_per_second"]:.0f} images/s); '
          f'preprocessor {result["preprocessor_ms_per_batch"]:.1f} ms\n')
    if result['waiting']:
        print('of a training, {loading_ms_per_iteration:.1f} of {ms_per_iteration:.1f} ms per iteration went into '
              'waiting for data ({loading_share:.1%})\n'.format(**result['waiting']))


if __name__ == '__main__':
    main()
