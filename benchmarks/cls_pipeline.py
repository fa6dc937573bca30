"""Speed of the weak + strong pipelines of classification: images per second and core, beside torchvision on PIL images.

    python benchmarks/cls_pipeline.py
    python benchmarks/cls_pipeline.py --config configs/_base_/datasets/stl10_semi.py

It runs the unlabeled pipeline of a data config (CIFAR-10's by default) on random images in memory, of the size that its
crop says, as the sampler's draws run it in training: two views, packed, under stateless random numbers. In the same
run, as the baseline: both views by torchvision's transforms on PIL images (crop, flip, and for the strong view
RandAugment with as many operations), to tensors, without a square and without packing; and its strong view alone. All
of it in one worker of a data loader, with one thread; times are CPU times, medians over rounds in which the pipelines
take turns.
"""

import argparse
import itertools
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import bench_results
import cv2
import numpy as np
import torch
import torchvision.transforms as tv
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.registry import init_default_scope
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.functional import pil_to_tensor

from mmssl.datasets import Draw, MultiSourceDataset

DEFAULT = Path(__file__).resolve().parents[1] / 'configs/_base_/datasets/cifar10_semi.py'


class Images(BaseDataset):
    """Random images that the data set holds itself."""

    def __init__(self, images: np.ndarray, pipeline: list) -> None:
        self.images = images
        super().__init__(pipeline=pipeline, serialize_data=False)

    def load_data_list(self) -> list[dict]:
        """One dict for each image."""
        return [dict(img=image) for image in self.images]


class Rounds(Dataset):
    """A round of measurements is an item: CPU time of one image of each pipeline, by name."""

    def __init__(self, args: argparse.Namespace, **pipelines: Callable[[int], object]) -> None:
        self.args, self.pipelines = args, pipelines

    def __len__(self) -> int:
        return self.args.rounds + 1

    def __getitem__(self, number: int) -> dict[str, float]:
        cv2.setNumThreads(1)
        torch.manual_seed(self.args.seed + number)
        return {name: cpu_seconds(run, self.args.images) for name, run in self.pipelines.items()}


def torchvision_views(size: int, padding: int, operations: int) -> tuple[Callable, Callable]:
    """Weak and strong view of a PIL image, as tensors."""
    geometry = [tv.RandomCrop(size, padding=padding, padding_mode='reflect'), tv.RandomHorizontalFlip()]
    weak = tv.Compose([*geometry, pil_to_tensor])
    strong = tv.Compose([*geometry, tv.RandAugment(num_ops=operations), pil_to_tensor])
    return weak, strong


def cpu_seconds(run: Callable[[int], object], count: int) -> float:
    """CPU time of one image, over `count` of them."""
    begin = time.process_time()
    for index in range(count):
        run(index)
    return (time.process_time() - begin) / count


def find(nodes: list, kind: str) -> dict:
    """The first transform of a type, wherever it is nested.

    Raises:
        ValueError: There is none.
    """
    for node in nodes:
        if node['type'].rpartition('.')[2] == kind:
            return node
    raise ValueError(f'--config: the strong view has no {kind}; it has {[node["type"] for node in nodes]}')


def main(argv: list[str] | None = None) -> dict:
    """Measure, print and return the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--config', type=Path, default=DEFAULT, help='a data config with RandomPadCrop and RandAugment')
    parser.add_argument('--images', type=int, default=1000)
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--out', help='file for the results (default: benchmarks/results/bench/cls_pipeline.json)')
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    init_default_scope('mmpretrain')
    from PIL import Image

    cfg = Config.fromfile(args.config)
    pipeline = [node.to_dict() for node in cfg.train_dataloader.dataset.sources.unlabeled.pipeline]
    pipeline[-1]['branches'] = ['unsup_weak', 'unsup_strong']  # there is no labeled source here
    strong = pipeline[-1]['unsup_strong']
    crop, augment = find(strong, 'RandomPadCrop'), find(strong, 'RandAugment')
    size = crop['crop_size']
    # Smooth, since the cost of some operations depends on the histogram.
    random = np.random.default_rng(args.seed)
    coarse = random.integers(0, 256, (args.images, 8, 8, 3), np.uint8)
    images = np.stack([cv2.resize(image, (size, size), interpolation=cv2.INTER_CUBIC) for image in coarse])
    data = MultiSourceDataset(dict(unlabeled=Images(images, pipeline)))
    draws = itertools.count()
    weak_pil, strong_pil = torchvision_views(size, crop['padding'], augment['num_policies'])

    def ours(index: int) -> object:
        return data[Draw(index, 0, next(draws), args.seed)]

    def both_pil(index: int) -> object:
        image = Image.fromarray(images[index])
        return weak_pil(image), strong_pil(image)

    def pil(index: int) -> object:
        return strong_pil(Image.fromarray(images[index]))

    rounds: dict[str, list[float]] = defaultdict(list)
    # Where training runs the pipeline; there, the random state need not be restored after each sample.
    for number, row in enumerate(DataLoader(Rounds(args, ours=ours, pil_both=both_pil, pil_strong=pil), None,
                                            num_workers=1)):
        if number:  # The first round imports and warms up.
            for key, value in row.items():
                rounds[key].append(value)
    median = {key: statistics.median(values) for key, values in rounds.items()}
    result = dict(
        config=str(args.config.name),
        images=args.images,
        rounds=args.rounds,
        side=size,
        us_per_image={key: 1e6 * value for key, value in median.items()},
        spread_us={key: [1e6 * min(values), 1e6 * max(values)] for key, values in rounds.items()},
        ratio_to_both=median['pil_both'] / median['ours'],
        ratio_to_strong=median['pil_strong'] / median['ours'])
    for key, value in result.items():
        print(f'{key}: {value}')
    rows = [
        bench_results.row(f'weak + strong views of {size}x{size}, packed', 1 / median['ours'], 'images/s on one core',
                          baseline, 1 / median[key])
        for baseline, key in (('torchvision on PIL images, both views', 'pil_both'),
                              ('torchvision on PIL images, the strong view alone', 'pil_strong'))
    ]
    bench_results.save('cls_pipeline', seed=args.seed, threads=1, rows=rows, details=result, out=args.out, argv=argv)
    return result


if __name__ == '__main__':
    main()
