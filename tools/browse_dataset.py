"""Write pictures of what the data pipeline really makes: every branch, labels, padding, and the mixed images.

    python tools/browse_dataset.py CONFIG --out DIR [-n N] [--cfg-options KEY=VALUE ...]

The samples are the first draws of the config's own sampler, under its own seed. A picture shows one sample, each branch
beside the other, label maps laid over the image, classes of whole images in the title (in parentheses where the model
does not see them). Gray: ignored label. Striped: padding (`mmssl.TrackPadding`). Where the model mixes unlabeled images
(`model.semi_train_cfg.mix`), `mixed_*.png` shows a pair, its mask and the result.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mmcv
import numpy as np
import torch
from mmengine.config import Config
from mmengine.registry import DATA_SAMPLERS, DATASETS, MODELS
from mmengine.runner import set_random_seed
from torch import Tensor

from mmssl.utils.checks.nodes import find_preprocessor, get
from mmssl.utils.checks.sources import config_scope
from mmssl.utils.cli import USER_ERRORS, OptionsAction, read_config
from mmssl.utils.errors import one_line
from mmssl.visualization import Panel, draw_panels

LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader')
IGNORED = (128, 128, 128)
STRIPES = ((255, 0, 255), (200, 200, 200))


@dataclass
class View:
    """One branch of one sample, as a picture can show it.

    Attributes:
        branch: Name of the branch; empty for a pipeline without branches.
        image: RGB, uint8, (H, W, 3).
        labels: Integer, (H, W), or None.
        valid: False on padding, bool, (H, W), or None if padding is not tracked.
        label: Class of the image in classification, or None.
    """

    branch: str
    image: np.ndarray
    labels: np.ndarray | None
    valid: np.ndarray | None
    label: int | None = None


def to_rgb(inputs: Tensor, is_bgr: bool) -> np.ndarray:
    """A picture of one image of the pipeline.

    Args:
        inputs: Shape (C, H, W), uint8, or float, which is stretched to the full range.
        is_bgr: Whether its channels are blue, green, red.

    Returns:
        RGB, uint8, shape (H, W, 3).
    """
    image = inputs.detach().cpu()
    if image.dtype != torch.uint8:
        image = image.float()
        low, high = image.min(), image.max()
        if low < 0 or high > 255 or high <= 1:
            image = (image - low) / (high - low).clamp(min=1e-6) * 255
        image = image.round().clamp(0, 255).to(torch.uint8)
    array = image.permute(1, 2, 0).numpy()
    if array.shape[-1] != 3:
        array = np.repeat(array[..., :1], 3, axis=-1)
    elif is_bgr:
        array = array[..., ::-1]
    return np.ascontiguousarray(array)


def views_of(item: Mapping[str, Any], is_bgr: bool) -> list[View]:
    """The branches that one sample of a data set fills.

    Raises:
        ValueError: If the pipeline does not end in packing.
    """
    if not isinstance(item, Mapping) or 'inputs' not in item:
        found = sorted(item) if isinstance(item, Mapping) else type(item).__name__
        raise ValueError(
            'the pipeline must end in a packing transform (PackSegInputs), which returns `inputs` and `data_samples`; '
            f'got {found}'
        )
    inputs, samples = item['inputs'], item.get('data_samples')
    if not isinstance(inputs, Mapping):
        inputs, samples = {'': inputs}, {'': samples}
    views = []
    for branch, image in inputs.items():
        if image is None:
            continue
        maps = {}
        for name in ('gt_sem_seg', 'valid_mask'):
            field = getattr(samples[branch], name, None)
            maps[name] = None if field is None else field.data.squeeze(0).cpu().numpy()
        valid = maps['valid_mask']
        valid = None if valid is None else valid.astype(bool)
        label = getattr(samples[branch], 'gt_label', None)
        label = int(label) if isinstance(label, Tensor) and label.numel() == 1 else None
        views.append(View(branch, to_rgb(image, is_bgr), maps['gt_sem_seg'], valid, label))
    return views


def with_padding(image: np.ndarray, valid: np.ndarray | None) -> np.ndarray:
    """The image, striped where it is padding."""
    if valid is None or valid.all():
        return image
    rows, columns = np.indices(valid.shape)
    stripes = np.asarray(STRIPES, np.uint8)[(rows + columns) // 6 % 2]
    return np.where(valid[..., None], image, stripes)


def with_labels(image: np.ndarray, labels: np.ndarray, palette: Sequence[Sequence[int]]) -> np.ndarray:
    """The image under its labels; labels that are no class are gray."""
    colors = np.empty((256, 3), np.uint8)
    colors[:] = IGNORED
    colors[: len(palette)] = np.asarray(palette, np.uint8).reshape(-1, 3)
    size = labels.shape
    if image.shape[:2] != size:
        # Evaluation pipelines resize the image but not the labels.
        image = mmcv.imresize(image, size[::-1])
    return (0.45 * image + 0.55 * colors[np.clip(labels, 0, 255)]).round().astype(np.uint8)


def panels_of(view: View, palette: Sequence[Sequence[int]], classes: Sequence[str] = ()) -> list[Panel]:
    """The pictures of one branch."""
    title = f'{view.branch or "image"} {view.image.shape[1]}x{view.image.shape[0]}'
    if view.label is not None:
        name = classes[view.label] if 0 <= view.label < len(classes) else view.label
        # In parentheses, as the model never sees it.
        title += f' ({name})' if view.branch.startswith('unsup') else f': {name}'
    panels = [Panel(title, with_padding(view.image, view.valid))]
    if view.labels is not None:
        # On an unlabeled branch the labels are for analysis; the model never sees them.
        what = 'hidden labels' if view.branch.startswith('unsup') else 'labels'
        overlay = with_labels(view.image, view.labels, palette)
        panels.append(Panel(f'{view.branch} {what}'.strip(), overlay))
    return panels


def draw_indices(cfg: Config, loader_key: str, dataset: Any, seed: int) -> Iterator[tuple[str, Any]]:
    """Source name and index of the draws of the config's own sampler, in its order."""
    names = list(getattr(dataset, 'source_names', [])) or [loader_key.split('_')[0]]
    sampler_cfg = get(cfg, f'{loader_key}.sampler')
    if isinstance(sampler_cfg, Mapping):
        sampler = DATA_SAMPLERS.build(deepcopy(sampler_cfg), default_args=dict(dataset=dataset, seed=seed))
    else:
        sampler = range(len(dataset))
    offsets = list(getattr(dataset, 'cumulative_sizes', [len(dataset)])) if len(names) > 1 else [len(dataset)]
    for index in sampler:
        yield names[next(i for i, end in enumerate(offsets) if index < end)], index


def collect(cfg: Config, loader_key: str, count: int, seed: int) -> tuple[dict[str, list[View]], Any]:
    """Make `count` samples of each source.

    Returns:
        The views of each sample under the name of its picture, and the data set.
    """
    dataset = DATASETS.build(deepcopy(cfg[loader_key]['dataset']))
    if hasattr(dataset, 'full_init'):
        dataset.full_init()
    preprocessor = find_preprocessor(cfg.get('model'))
    settings = {} if preprocessor is None else preprocessor[1]
    # ClsDataPreprocessor says what it makes, RGB, of BGR; the others say what they get.
    is_bgr = bool(settings['to_rgb']) if 'to_rgb' in settings else not settings.get('rgb_to_bgr', False)
    sources = list(getattr(dataset, 'source_names', [])) or [loader_key.split('_')[0]]
    taken = dict.fromkeys(sources, 0)
    found: dict[str, list[View]] = {}
    for name, index in draw_indices(cfg, loader_key, dataset, seed):
        if taken[name] < count:
            found[f'{name}_{taken[name]:03d}'] = views_of(dataset[index], is_bgr)
            taken[name] += 1
        if min(taken.values()) >= count:
            break
    return found, dataset


def mixed_rows(cfg: Config, found: Mapping[str, list[View]]) -> dict[str, list[list[Panel]]]:
    """Rows of pictures for each pair of unlabeled images that the model would mix.

    Args:
        cfg: Config; without `model.semi_train_cfg.mix` there are none.
        found: The samples, in the order in which they were drawn.
    """
    mix_cfg = get(cfg, 'model.semi_train_cfg.mix')
    if mix_cfg is None:
        return {}
    views = [view for sample in found.values() for view in sample if view.branch == 'unsup_weak']
    views = views[: len(views) // 2 * 2]
    if not views:
        return {}
    mix = MODELS.build(deepcopy(mix_cfg))
    preprocessor = find_preprocessor(cfg.get('model'))
    size = None if preprocessor is None else preprocessor[1].get('size')
    height, width = (0, 0) if size is None else (size, size) if isinstance(size, int) else tuple(size)
    height = max([height] + [view.image.shape[0] for view in views])
    width = max([width] + [view.image.shape[1] for view in views])
    batch = torch.zeros(len(views), 3, height, width)
    valid = torch.zeros(len(views), 1, height, width, dtype=torch.bool)
    for index, view in enumerate(views):
        rows, columns = view.image.shape[:2]
        batch[index, :, :rows, :columns] = torch.from_numpy(view.image).permute(2, 0, 1)
        valid[index, 0, :rows, :columns] = True if view.valid is None else torch.from_numpy(view.valid)
    masks = mix.sample(batch)
    mixed, mixed_valid = mix(batch, masks), mix(valid, masks)

    def picture(images: Tensor, valids: Tensor, index: int) -> np.ndarray:
        return with_padding(to_rgb(images[index], is_bgr=False), valids[index, 0].bool().numpy())

    rows = {}
    pairs = len(views) // 2
    for pair in range(pairs):
        panels = [
            Panel('first', picture(batch, valid, 2 * pair)),
            Panel('second', picture(batch, valid, 2 * pair + 1)),
            Panel('mask: white = second', to_rgb(masks[pair].mul(255).byte(), is_bgr=False)),
            Panel('mixed', picture(mixed, mixed_valid, pair)),
        ]
        if len(mixed) > pairs:
            panels.append(Panel('mixed the other way', picture(mixed, mixed_valid, pairs + pair)))
        rows[f'mixed_{pair:03d}'] = [panels]
    return rows


def prepare_folder(path: str, force: bool) -> Path:
    """Make the output folder.

    Raises:
        FileExistsError: If it holds something and `force` is not set.
    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f'--out: {path} is a file')
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise FileExistsError(f'--out: {path} is not empty; choose another folder, or --force to write into it')
    return folder


def browse(args: argparse.Namespace) -> None:
    """Write the pictures."""
    cfg = read_config(args.config, args.cfg_options)
    if not isinstance(get(cfg, f'{args.loader}.dataset'), Mapping):
        raise ValueError(f'{args.loader}.dataset: the config has none')
    folder = prepare_folder(args.out, args.force)
    seed = args.seed if args.seed is not None else get(cfg, 'randomness.seed', 0)
    with config_scope(cfg):
        set_random_seed(seed)
        found, dataset = collect(cfg, args.loader, args.number, seed)
        pictures = {}
        metainfo = getattr(dataset, 'metainfo', None) or {}
        classes, palette = list(metainfo.get('classes') or []), list(metainfo.get('palette') or [])
        for name, views in found.items():
            pictures[name] = [[panel for view in views for panel in panels_of(view, palette, classes)]]
        if args.loader == 'train_dataloader':
            pictures.update(mixed_rows(cfg, found))
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, rows) in enumerate(pictures.items(), 1):
        has_labels = any('labels' in panel.title for row in rows for panel in row)
        picture = draw_panels(rows, classes if has_labels else (), palette, width=args.width)
        path = folder / f'{name}.png'
        mmcv.imwrite(np.ascontiguousarray(picture[..., ::-1]), str(path))
        print(f'[{number}/{len(pictures)}] {path}: {", ".join(panel.title for row in rows for panel in row)}')


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog='browse_dataset.py'
    )
    parser.add_argument('config', help='path of the config')
    parser.add_argument('--out', required=True, help='folder for the pictures; must be new or empty')
    parser.add_argument('-n', '--number', type=int, default=4, metavar='N', help='samples of each source (default: 4)')
    parser.add_argument('--loader', choices=LOADERS, default=LOADERS[0], help='which data loader (default: training)')
    parser.add_argument('--seed', type=int, help='default: randomness.seed of the config, or 0')
    parser.add_argument('--width', type=float, default=3.2, help='inches of one panel at 100 dots per inch')
    parser.add_argument('--force', action='store_true', help='write into a folder that is not empty')
    parser.add_argument('--cfg-options', nargs='+', action=OptionsAction, metavar='KEY=VALUE', help='override settings')
    parser.add_argument('--debug', action='store_true', help='show the traceback of an error')
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        0, or 2 after an error of the user's.
    """
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.number < 1:
        parser.error(f'argument -n/--number: must be at least 1, got {args.number}')
    try:
        browse(args)
    except USER_ERRORS as error:
        if args.debug:
            raise
        print(f'browse_dataset: error: {one_line(error)}', file=sys.stderr)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main())
