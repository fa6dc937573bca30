"""Segment images without labels, by cross entropy alone and with ADR, and show both side by side.

python tools/unsupervised_segment.py IMAGE [IMAGE ...] --out DIR [--truth FOLDER] [--scribbles FILE] [--max-side N]

An image is a file or a folder of files. For each of them, one network for each config learns from that image alone and
DIR receives NAME.png (image, truth and segmentations side by side), NAME_ce.png and NAME_adr.png (the label of each
pixel), and scores.json. The same seed gives the same files, on one machine.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Read when torch is loaded, see tools/train.py.
os.environ.setdefault('OMP_WAIT_POLICY', 'PASSIVE')

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS, init_default_scope
from mmengine.runner import Runner
from mmengine.structures import BaseDataElement
from PIL import Image, ImageOps

from mmssl.datasets import UnlabeledImageDataset
from mmssl.engine.hooks import IterationSeedHook
from mmssl.evaluation import SegmentMatchingIoU
from mmssl.functional.unsupervised_segmentation import IGNORED
from mmssl.utils.atomic import write_atomically
from mmssl.utils.cli import OptionsAction, SetupIsOver, prepare_devices, read_config, run_tool
from mmssl.utils.paths import config_path
from mmssl.visualization import Panel, draw_panels

CONFIGS = {
    'ce': 'adr/unsupervised/ce_conv2-c100_1xb1-1k_image.py',
    'adr': 'adr/unsupervised/adr_conv2-c100_1xb1-1k_image.py',
}
TITLES = dict(ce='CE', adr='CE + ADR')
MAX_COLORS = 255


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('images', nargs='+', help='image files, or folders of images')
    parser.add_argument('--out', required=True, type=Path, help='folder of the results')
    parser.add_argument('--truth', help='folder of true segments, named as the images: BSDS500 .mat files or PNG')
    parser.add_argument('--truth-suffix', default='.png', help="'.mat' or '.png' (default: %(default)s)")
    parser.add_argument('--annotators', choices=['all', 'fine', 'coarse'], default='all',
                        help='whose truth counts, where an image has several (default: %(default)s)')
    parser.add_argument('--scribbles', help='a PNG with labels of some pixels (255: none), or a folder of such')
    parser.add_argument('--max-side', type=int, help='shrink larger images; results have the original size')
    parser.add_argument('--config', nargs='+', default=list(CONFIGS), metavar='CONFIG', dest='configs',
                        help='config files, or ce, adr (default: both)')
    parser.add_argument('--seed', type=int, default=0, help='default: %(default)s')
    parser.add_argument('--overwrite', action='store_true', help='replace results that are there already')
    parser.add_argument('--cfg-options', nargs='+', action=OptionsAction, metavar='KEY=VALUE',
                        help='change settings of every config, such as train_cfg.max_iters=200')
    parser.add_argument('--debug', action='store_true', help='show the traceback of an error in the arguments')
    args = parser.parse_args(argv)
    args.local_rank = 0
    return args


def title_of(name: str) -> str:
    """What pictures call a method: a config's file name begins with it."""
    method = name.split('_')[0]
    return TITLES.get(method, method)


def read_configs(args: argparse.Namespace) -> dict[str, Config]:
    """The configs by the names that files and pictures get.

    Raises:
        ValueError: Two have one name, or one is for another model.
    """
    configs: dict[str, Config] = {}
    for given in args.configs:
        name = given if given in CONFIGS else Path(given).stem
        if name in configs:
            raise ValueError(f'--config: two configs are called {name!r}, and so would be their results')
        cfg = read_config(config_path(CONFIGS[given]) if given in CONFIGS else given, args.cfg_options)
        if cfg.model.get('type') != 'mmssl.UnsupervisedSegmentor':
            raise ValueError(f'--config {given}: model.type is {cfg.model.get("type")!r}, it has to be '
                             'mmssl.UnsupervisedSegmentor')
        configs[name] = cfg
    return configs


def list_images(places: list[str]) -> list[str]:
    """Paths of all images, in order.

    Raises:
        FileNotFoundError: A place does not exist.
        ValueError: It holds no image, or two images have one name.
    """
    for place in places:
        if not os.path.exists(place):
            raise FileNotFoundError(f'IMAGE: {place} does not exist')
    dataset = UnlabeledImageDataset([os.path.abspath(place) for place in places])
    paths = [dataset.get_data_info(index)['img_path'] for index in range(len(dataset))]
    stems: dict[str, str] = {}
    for path in paths:
        other = stems.setdefault(Path(path).stem, path)
        if other != path:
            raise ValueError(f'IMAGE: {other} and {path} would have results of one name; segment them separately')
    return paths


def results_of(path: str, names: list[str], out: Path) -> dict[str, Path]:
    """Files that an image leads to: the picture (key ``''``) and the label maps."""
    stem = Path(path).stem
    return {'': out / f'{stem}.png', **{name: out / f'{stem}_{name}.png' for name in names}}


def prepare(cfg: Config, path: str, args: argparse.Namespace, work_dir: Path) -> Config:
    """The config of one image."""
    cfg = Config(cfg.to_dict())
    scribbles = None if args.scribbles is None else os.path.abspath(args.scribbles)
    load = [dict(type='LoadImageFromFile'), dict(type='mmssl.LoadSegments', scribbles=scribbles),
            dict(type='mmssl.ShrinkImage', max_side=args.max_side)]  # fmt: skip
    truth = {} if args.truth is None else dict(seg_map_path=os.path.abspath(args.truth),
                                               seg_map_suffix=args.truth_suffix)  # fmt: skip
    cfg.train_dataloader.dataset = dict(
        type='mmssl.UnlabeledImageDataset', img_path=path, **truth,
        pipeline=[dict(type='mmssl.Cached', transforms=load), dict(type='mmssl.PackSegments')])
    for key in ('val_dataloader', 'val_evaluator', 'val_cfg', 'test_dataloader', 'test_evaluator', 'test_cfg'):
        cfg[key] = None
    if scribbles is not None:
        _stop_at_scribbles(cfg)
    cfg.randomness = dict(cfg.get('randomness') or {}, seed=args.seed)
    cfg.default_hooks.checkpoint = None  # the results are the pictures
    cfg.work_dir = str(work_dir)
    cfg.experiment_name = str(work_dir)
    cfg.log_level = 'WARNING'
    cfg.launcher = 'none'
    return cfg


def _stop_at_scribbles(cfg: Config) -> None:
    """End when as many labels are left as the scribbles have, as the released code does."""
    scribbles = DATASETS.build(cfg.train_dataloader.dataset)[0]['data_samples'].get('gt_scribbles')
    labels = set() if scribbles is None else set(scribbles.data.unique().tolist()) - {IGNORED}
    for hook in cfg.get('custom_hooks') or []:
        if labels and hook.type == 'mmssl.MinLabelsHook':
            hook.min_labels = len(labels)


def segment(cfg: Config, setup_is_over: Callable[[], None]) -> tuple[BaseDataElement, int]:
    """Train on the image of a config.

    Args:
        cfg: From :func:`prepare`.
        setup_is_over: Called before the first iteration.

    Returns:
        The sample with ``pred_segments`` and what is known of the truth, and the number of iterations.
    """
    init_default_scope(cfg.default_scope)
    prepare_devices(cfg)
    runner = Runner.from_cfg(cfg)
    runner.register_hook(IterationSeedHook())
    runner.register_hook(SetupIsOver(setup_is_over))
    model = runner.train().eval()
    batch = pseudo_collate([runner.train_dataloader.dataset[0]])
    with torch.no_grad():
        (sample, ) = model.test_step(batch)
    return sample.cpu(), runner.iter


def by_size(labels: np.ndarray) -> np.ndarray:
    """Numbers 0, 1, ... in order of falling size, so that large segments of several pictures have the same colors."""
    _, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), np.int64)
    rank[np.argsort(-counts, kind='stable')] = np.arange(len(counts))
    return rank[place].reshape(labels.shape)


def palette() -> np.ndarray:
    """Distinct colors, the same in every run."""
    hue = (np.arange(MAX_COLORS) * 0.618034) % 1.0
    value = np.where(np.arange(MAX_COLORS) % 2, 0.95, 0.65)
    from matplotlib.colors import hsv_to_rgb
    return (hsv_to_rgb(np.stack([hue, np.full(MAX_COLORS, 0.65), value], axis=1)) * 255).astype(np.uint8)


def draw(path: str, maps: dict[str, np.ndarray], titles: dict[str, str], truth: np.ndarray | None) -> np.ndarray:
    """The picture of one image.

    Args:
        path: The image.
        maps: Labels by method, (H, W).
        titles: What stands above each method's panel.
        truth: True segments, (H, W); default: no such panel.
    """
    with Image.open(path) as image:
        # Turned as the camera says, which is how it was segmented.
        pixels = np.asarray(ImageOps.exif_transpose(image).convert('RGB'))
    row = [Panel('image', pixels)]
    if truth is not None:
        known = by_size(np.where(truth == IGNORED, -1, truth))
        row.append(Panel('truth', np.where(truth == IGNORED, MAX_COLORS, known)))
    row += [Panel(titles[name], by_size(labels)) for name, labels in maps.items()]
    return draw_panels([row], palette=palette().tolist())


def run(args: argparse.Namespace, setup_is_over: Callable[[], None]) -> None:
    """Segment every image with every config."""
    if args.max_side is not None and args.max_side < 2:
        raise ValueError(f'--max-side must be at least 2, got {args.max_side}')
    if args.seed < 0:
        raise ValueError(f'--seed must be 0 or more, got {args.seed}')
    if args.truth is not None and not os.path.isdir(args.truth):
        raise FileNotFoundError(f'--truth: {args.truth} is no folder')
    configs, paths = read_configs(args), list_images(args.images)
    outputs = {path: results_of(path, list(configs), args.out) for path in paths}
    scores_file = args.out / 'scores.json'
    present = [str(file) for files in outputs.values() for file in files.values() if file.exists()]
    if scores_file.exists():
        present.append(str(scores_file))
    if present and not args.overwrite:
        raise FileExistsError(f'--out: {present[0]}{" and more" if len(present) > 1 else ""} would be overwritten; '
                              'name another folder, or allow it with --overwrite')
    metrics = {name: SegmentMatchingIoU(args.annotators) for name in configs}
    report: dict[str, Any] = dict(seed=args.seed, images={})
    for number, path in enumerate(paths, 1):
        maps, titles, truth, entry = {}, {}, None, {}
        for name, cfg in configs.items():
            work_dir = args.out / 'logs' / Path(path).stem / name
            sample, iterations = segment(prepare(cfg, path, args, work_dir), setup_is_over)
            labels = sample.pred_segments.data[0].numpy()
            maps[name] = labels
            entry[name] = dict(labels=len(np.unique(labels)), iterations=iterations)
            title = f'{title_of(name)}: {entry[name]["labels"]} labels'
            if args.truth is not None:
                metrics[name].process(None, [sample.to_dict()])
                truth = sample.gt_segments.data[0].numpy()
                if (truth != IGNORED).any():
                    entry[name]['mIoU'] = 100 * metrics[name].results[-1][0]
                    title += f', mIoU {entry[name]["mIoU"]:.1f}'
            titles[name] = title
            print(f'[{number}/{len(paths)}] {Path(path).name}: {title}, {iterations} iterations', flush=True)
        for name, labels in maps.items():
            Image.fromarray(labels.astype(np.uint8 if labels.max() < 256 else np.int32)).save(outputs[path][name])
        Image.fromarray(draw(path, maps, titles, truth)).save(outputs[path][''])
        report['images'][Path(path).name] = entry
        write_atomically(scores_file, (json.dumps(report, indent=1) + '\n').encode())
    if args.truth is not None:
        report['mean'] = {name: metric.compute_metrics(metric.results) for name, metric in metrics.items()}
        for name, values in report['mean'].items():
            print(f'{title_of(name)}: mIoU {values["mIoU"]:.2f} over {len(metrics[name].results)} images')
        write_atomically(scores_file, (json.dumps(report, indent=1) + '\n').encode())
    print(f'wrote {args.out}')


if __name__ == '__main__':
    sys.exit(run_tool(run, parse_args()))
