"""Make labeled / unlabeled list files from a list or a folder: seeded, nested, the same on every machine.

    python tools/datasets/make_splits.py --source train.txt --out splits --fractions 1/16 1/8 1/4 1/2 --seed 0

The order of the samples comes from SHA-256 of (seed, sample), never from a random number generator, so it depends on no
version of Python or NumPy; a split is the beginning of that order, so each is contained in every larger one. A fraction
f of n samples is ceil(f * n) of them, which gives the published counts: 662 / 1323 / 2646 / 5291 of 10582 (VOC),
92 / 183 / 366 / 732 of 1464 (VOC, low data), 186 / 372 / 744 / 1488 of 2975 (Cityscapes), 46 of 367 (CamVid, 1/8).

Classification: `--per-class` takes as many images of each class, the first in the order of the class. The classes are
the folders (`--class-folders`), the second column of the list, or what the labeled data set of a config says:

    python tools/datasets/make_splits.py --source data/own/train --class-folders --out splits --per-class 4 25
    python tools/datasets/make_splits.py --config configs/_base_/datasets/cifar10.py --out splits --per-class 4

`--balanced` stratifies: image by image it takes the class whose share of images taken so far is smallest, and the next
image in the seeded order that shows it. Every class occurs as soon as there is room for it, and keeps its share.
"""

import argparse
import hashlib
import math
import os
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from mmssl.utils.split_list import IMAGE_SUFFIXES, SplitEntry, read_split_list, scan_folder, strip_suffix

# Raised when the same arguments would give other lists; it is in the header instead of the version of mmssl, so that a
# release does not change files that it does not change.
FORMAT_VERSION = 1
NAMING = {
    'train_aug': ('train_aug_labeled_{name}.txt', 'train_aug_unlabeled_{name}.txt'),
    'pseudoseg': ('pseudoseg_labeled_{name}.txt', 'pseudoseg_unlabeled_{name}.txt'),
    'train': ('train_labeled_{name}.txt', 'train_unlabeled_{name}.txt'),
    'plain': ('labeled_{name}.txt', 'unlabeled_{name}.txt'),
}


def read_folder(path: Path, suffixes: Sequence[str]) -> list[SplitEntry]:
    """Ids (relative paths without suffix, `/` on every system) of the images below a folder.

    Raises:
        ValueError: If there is no image, or two images differ in their suffix only.
    """
    files = scan_folder(str(path), suffixes)
    if not files:
        raise ValueError(f'no file with a suffix of {list(suffixes)} below {path}')
    ids: dict[str, str] = {}
    for file in files:
        name = strip_suffix(file, suffixes).replace(os.sep, '/')
        if name in ids:
            raise ValueError(
                f'{path / ids[name]} and {path / file} have the same id {name!r}: choose one with --suffix'
            )
        ids[name] = file
    return [SplitEntry(name, None, number, name) for number, name in enumerate(sorted(ids), 1)]


def read_source(path: str, suffixes: Sequence[str]) -> list[SplitEntry]:
    """Read a list file or a folder of images.

    Raises:
        FileNotFoundError: If there is neither.
    """
    source = Path(path)
    if source.is_dir():
        return read_folder(source, suffixes)
    if source.is_file():
        return read_split_list(source, suffixes, owner='--source')
    raise FileNotFoundError(f'--source {path}: neither a list file nor a folder')


def read_config_source(path: str) -> tuple[list[SplitEntry], str]:
    """Samples of the labeled data set of a config, with their labels, and what it is called.

    Raises:
        ValueError: If it states no labels.
    """
    from mmengine.registry import DATASETS

    from mmssl.datasets.labeled_subset import sample_ids
    from mmssl.utils.checks.sources import config_scope
    from mmssl.utils.cli import read_config

    cfg = read_config(path, None)
    if cfg.get('default_scope') is None:  # the base of a data set alone
        cfg.default_scope = 'mmpretrain'
    node = cfg.train_dataloader.dataset
    node = node.sources.labeled if 'sources' in node else node
    # The whole that labeled samples are to be taken of.
    node = {**(node.dataset if str(node.type).endswith('LabeledSubset') else node), 'pipeline': []}
    with config_scope(cfg):
        dataset = DATASETS.build(node)
    infos = [dataset.get_data_info(index) for index in range(len(dataset))]
    if not infos or 'gt_label' not in infos[0]:
        raise ValueError(f'--config: {node["type"]} of train_dataloader.dataset states no `gt_label`')
    named = zip(sample_ids(dataset, infos), infos, strict=True)
    entries = [(name, str(int(info['gt_label']))) for name, info in named]
    name = ' '.join(str(node[key]) for key in ('type', 'split') if node.get(key))
    return [SplitEntry(image, label, line, f'{image}\t{label}') for line, (image, label) in enumerate(entries, 1)], name


def class_of(samples: Sequence[SplitEntry], folders: bool) -> dict[str, str]:
    """Class of each sample, by image.

    Raises:
        ValueError: If a sample has none.
    """
    found = {}
    for sample in samples:
        label = sample.image.partition('/')[0] if folders and '/' in sample.image else sample.label
        if label is None or (folders and '/' not in sample.image):
            what = 'lies in no class folder' if folders else 'has no class'
            raise ValueError(f'--per-class: {sample.image!r} {what}; classes are folders below --source '
                             '(--class-folders), a second column of the list, or those of a --config')
        found[sample.image] = label
    return found


def first_of_each(order: Sequence[SplitEntry], classes: dict[str, str], count: int) -> list[SplitEntry]:
    """The first `count` samples of each class.

    Raises:
        ValueError: If a class has fewer.
    """
    taken: dict[str, list[SplitEntry]] = {label: [] for label in classes.values()}
    for sample in order:
        if len(taken[classes[sample.image]]) < count:
            taken[classes[sample.image]].append(sample)
    short = {label: len(found) for label, found in taken.items() if len(found) < count}
    if short:
        label, size = next(iter(sorted(short.items())))
        raise ValueError(f'--per-class {count}: class {label} has only {size} samples')
    return [sample for found in taken.values() for sample in found]


def source_hash(samples: Sequence[SplitEntry]) -> str:
    """SHA-256 of the sorted lines, each ended by a newline: what `LC_ALL=C sort LIST | sha256sum` prints."""
    text = ''.join(line + '\n' for line in sorted(sample.text for sample in samples))
    return hashlib.sha256(text.encode()).hexdigest()


def seeded_order(samples: Sequence[SplitEntry], seed: int) -> list[SplitEntry]:
    """The samples sorted by SHA-256 of (seed, image)."""
    return sorted(samples, key=lambda s: (hashlib.sha256(f'{seed}\n{s.image}'.encode()).hexdigest(), s.image))


def balanced_order(samples: Sequence[SplitEntry], classes: Sequence[frozenset[int]]) -> list[SplitEntry]:
    """Reorder so that in every beginning of the list each class has about its share of images.

    Args:
        samples: In seeded order.
        classes: The classes that each sample shows.
    """
    total: dict[int, int] = {}
    waiting: dict[int, list[int]] = {}
    for index, shown in enumerate(classes):
        for label in shown:
            total[label] = total.get(label, 0) + 1
            waiting.setdefault(label, []).append(index)
    for queue in waiting.values():
        queue.reverse()
    count = dict.fromkeys(total, 0)
    taken: set[int] = set()
    order: list[int] = []
    while waiting:
        # Least covered class first; between equals the rarest, which has the fewest images to choose from.
        label = min(waiting, key=lambda c: (Fraction(count[c], total[c]), total[c], c))
        queue = waiting[label]
        while queue and queue[-1] in taken:
            queue.pop()
        if not queue:
            del waiting[label]
            continue
        index = queue.pop()
        taken.add(index)
        order.append(index)
        for shown in classes[index]:
            count[shown] += 1
    # Images that show no class at all come last.
    return [samples[i] for i in order] + [s for i, s in enumerate(samples) if i not in taken]


def read_classes(
    samples: Sequence[SplitEntry], ann_dir: Path, seg_map_suffix: str, num_classes: int, ignore_index: int
) -> list[frozenset[int]]:
    """The classes that the label file of each sample shows.

    Raises:
        FileNotFoundError: If a label file is missing.
        ValueError: If a label is neither a class nor `ignore_index`, or the file is not a class index map.
    """
    import numpy as np
    from PIL import Image

    found = []
    for number, sample in enumerate(samples, 1):
        file = ann_dir / (sample.label or strip_suffix(sample.image, ()) + seg_map_suffix)
        if not file.is_file():
            raise FileNotFoundError(f'--ann-dir: label file {file} of {sample.image!r} does not exist')
        with Image.open(file) as image:
            labels = np.asarray(image)
        if labels.ndim != 2:
            raise ValueError(f'{file} has {labels.ndim} dimensions: a class index per pixel is needed, not a color')
        values = {int(v) for v in np.unique(labels)} - {ignore_index}
        wrong = sorted(v for v in values if not 0 <= v < num_classes)
        if wrong:
            raise ValueError(
                f'{file} has labels {wrong}: allowed are 0 to {num_classes - 1} (--num-classes '
                f'{num_classes}) and {ignore_index} (--ignore-index)'
            )
        found.append(frozenset(values))
        if sys.stderr.isatty() and (number % 50 == 0 or number == len(samples)):
            print(
                f'\rlabel files: {number}/{len(samples)}',
                end='\n' if number == len(samples) else '',
                file=sys.stderr,
                flush=True,
            )
    return found


def parse_sizes(
    fractions: Sequence[str] | None, counts: Sequence[int] | None, total: int, largest: int
) -> dict[str, int]:
    """Name and number of labeled samples of each split.

    Args:
        fractions: As texts.
        counts: As numbers.
        total: Samples that there are.
        largest: The largest number of labeled samples that is allowed.

    Raises:
        ValueError: If one is not in [1, largest].
    """
    sizes: dict[str, int] = {}
    for text in fractions or []:
        try:
            fraction = Fraction(text)
        except (ValueError, ZeroDivisionError):
            raise ValueError(f'--fractions: {text!r} is not a fraction such as 1/8 or 0.125') from None
        if not 0 < fraction < 1:
            raise ValueError(f'--fractions: {text!r} is not between 0 and 1')
        sizes[f'{fraction.numerator}-{fraction.denominator}'] = math.ceil(fraction * total)
    for count in counts or []:
        sizes[str(count)] = count
    for name, count in sizes.items():
        if not 0 < count <= largest:
            raise ValueError(f'{name}: {count} labeled samples of {total}; allowed are 1 to {largest}')
    return sizes


def render(samples: Sequence[SplitEntry], header: Sequence[str]) -> str:
    """The text of a list file: the header as comments, then the sorted lines."""
    return ''.join(f'# {line}\n' for line in header) + ''.join(f'{line}\n' for line in sorted(s.text for s in samples))


def write_all(files: dict[Path, str], force: bool) -> list[str]:
    """Write the files; one that already has this content is left alone.

    Returns:
        One line for each file, saying what was done.

    Raises:
        FileExistsError: If a file with other content exists and `force` is not set. Nothing is written then.
    """
    content = {path: text.encode() for path, text in files.items()}
    existing = {path: path.read_bytes() for path in files if path.exists()}
    different = [str(path) for path, old in existing.items() if old != content[path]]
    if different and not force:
        raise FileExistsError(
            f'{", ".join(different)} exist(s) with other content; nothing was written: '
            'choose another --out, or --force to overwrite'
        )
    messages = []
    for path, new in content.items():
        if existing.get(path) == new:
            messages.append(f'{path}: unchanged')
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(path.name + f'.{os.getpid()}.tmp')
        temporary.write_bytes(new)
        temporary.replace(path)
        messages.append(f'{path}: {"overwritten" if path in existing else "written"}')
    return messages


def make_splits(args: argparse.Namespace) -> list[str]:
    """Make the list files that the arguments ask for.

    Returns:
        What was done, one line for each file.
    """
    suffixes = [s.lower() for s in args.suffix]
    if args.config is not None:
        samples, source_name = read_config_source(args.config)
    elif args.per_class is not None and Path(args.source).is_file():
        samples = read_split_list(args.source, suffixes, owner='--source', label_files=False)
        source_name = Path(args.source).resolve().name
    else:
        samples, source_name = read_source(args.source, suffixes), Path(args.source).resolve().name
    # All of the source may be labeled only if the unlabeled samples come from elsewhere.
    largest = len(samples) - (args.unlabeled_source is None)
    order = seeded_order(samples, args.seed)
    rule = 'sha256(seed, image)'
    if args.per_class is not None:
        if args.balanced or min(args.per_class) < 1:
            raise ValueError('--per-class: numbers >= 1, and not together with --balanced')
        classes_of = class_of(samples, args.class_folders)
        sizes = {f'{count}-per-class': count * len(set(classes_of.values())) for count in args.per_class}
        rule += f', the first of each of {len(set(classes_of.values()))} classes'
    else:
        sizes = parse_sizes(args.fractions, args.counts, len(samples), largest)
    if args.balanced:
        if args.ann_dir is None or args.num_classes is None:
            raise ValueError('--balanced needs --ann-dir and --num-classes')
        if not Path(args.ann_dir).is_dir():
            raise FileNotFoundError(f'--ann-dir {args.ann_dir} is not a folder')
        classes = read_classes(order, Path(args.ann_dir), args.seg_map_suffix, args.num_classes, args.ignore_index)
        shown = dict(zip((s.image for s in order), classes, strict=True))
        absent = sorted(set(range(args.num_classes)) - set().union(*classes))
        if absent:
            print(f'make_splits: warning: classes {absent} occur in no label file of --source', file=sys.stderr)
        order = balanced_order(order, classes)
        rule += f', balanced over {args.num_classes} classes'
        for name, count in sizes.items():
            missing = sorted(set().union(*classes) - set().union(*(shown[s.image] for s in order[:count])))
            if missing:
                print(
                    f'make_splits: warning: {name}: {count} images are too few to show classes {missing}',
                    file=sys.stderr,
                )
    pool, pool_name = samples, source_name
    if args.unlabeled_source is not None:
        pool = read_source(args.unlabeled_source, suffixes)
        pool_name = Path(args.unlabeled_source).resolve().name

    files: dict[Path, str] = {}
    summary = []
    for name, count in sizes.items():
        labeled = order[:count]
        if args.per_class is not None:
            labeled = first_of_each(order, classes_of, int(name.partition('-')[0]))
        labeled_images = {s.image for s in labeled}
        unlabeled = [s for s in pool if s.image not in labeled_images]
        if not unlabeled:
            raise ValueError(f'{name}: no unlabeled sample is left of {pool_name}')
        for kind, part, origin, origin_name, template in (
            ('labeled', labeled, samples, source_name, NAMING[args.naming][0]),
            ('unlabeled', unlabeled, pool, pool_name, NAMING[args.naming][1]),
        ):
            header = [
                f'mmssl make_splits, version {FORMAT_VERSION}: {kind}, {name}',
                f'count: {len(part)} of {len(origin)}',
                f'seed: {args.seed}; order: {rule}',
                f'source: {origin_name}, sha256 of the sorted lines {source_hash(origin)}',
            ]
            files[Path(args.out) / template.format(name=name)] = render(part, [] if args.no_header else header)
        summary.append(f'{name}: {len(labeled)} labeled + {len(unlabeled)} unlabeled')
    return summary + write_all(files, args.force)


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog='make_splits.py'
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        '--source',
        help='list file (`id`, `image<TAB>label` or `image label` a line) '
        'or folder of images (ids are paths below it, without suffix)',
    )
    source.add_argument(
        '--config', help='config whose labeled data set is split, also one without image files: ids are indices then'
    )
    parser.add_argument('--out', required=True, help='folder for the lists')
    sizes = parser.add_mutually_exclusive_group(required=True)
    sizes.add_argument('--fractions', nargs='+', metavar='F', help='labeled shares: 1/16 1/8 ...')
    sizes.add_argument('--counts', nargs='+', type=int, metavar='N', help='labeled counts: 92 183 ...')
    sizes.add_argument(
        '--per-class', nargs='+', type=int, metavar='N', help='labeled images of each class (classification): 4 25 ...'
    )
    parser.add_argument('--class-folders', action='store_true', help='the first folder of an id is its class')
    parser.add_argument('--seed', type=int, default=0, help='default 0')
    parser.add_argument(
        '--naming',
        choices=sorted(NAMING),
        default='plain',
        help='file names: labeled_1-8.txt (plain), train_aug_labeled_1-8.txt, ...',
    )
    parser.add_argument(
        '--unlabeled-source',
        help='list or folder that the unlabeled samples come from, less the '
        'labeled ones (default: the rest of --source)',
    )
    parser.add_argument(
        '--balanced', action='store_true', help='keep the share of every class; needs --ann-dir and --num-classes'
    )
    parser.add_argument('--ann-dir', help='folder of the label files (class index per pixel)')
    parser.add_argument('--seg-map-suffix', default='.png', help='suffix of label files of ids (default .png)')
    parser.add_argument('--num-classes', type=int)
    parser.add_argument('--ignore-index', type=int, default=255, help='label that is no class (default 255)')
    parser.add_argument('--suffix', nargs='+', default=list(IMAGE_SUFFIXES), help='image suffixes of a folder source')
    parser.add_argument(
        '--no-header',
        action='store_true',
        help='leave the comment lines out: stock mmseg data sets take them for images',
    )
    parser.add_argument('--force', action='store_true', help='overwrite lists that differ')
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        0, or 2 after an error of the user's.
    """
    args = build_parser().parse_args(argv)
    try:
        lines = make_splits(args)
    except (OSError, ValueError, SyntaxError) as error:
        print(f'make_splits: error: {error}', file=sys.stderr)
        return 2
    print('\n'.join(lines))
    return 0


if __name__ == '__main__':
    sys.exit(main())
