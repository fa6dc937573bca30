"""Write the list of a long-tailed part of a data set: class sizes fall exponentially. The same on every machine.

    python tools/datasets/make_long_tail.py --config CONFIG --ratio 100 --out cifar10_lt100.txt

Of c classes, class k keeps n ratio^(-k / (c - 1)) samples, rounded down (Cui et al., CVPR 2019), chosen by SHA-256 of
(seed, index). The data set is the training data of a config, or a text file (the label is the last column). The list
names a sample by its path below the folder of the images, or by its index where the data set holds the images itself,
and its label, as `mmssl.LabeledSubset(ann_file=...)` reads it.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from mmssl.datasets.labeled_subset import sample_ids
from mmssl.functional.label_noise import long_tail_counts, seeded_members
from mmssl.utils.cli import USER_ERRORS
from mmssl.utils.errors import one_line
from mmssl.utils.label_file import labels_hash, render_header, write_new
from mmssl.utils.labels_of import Labels, add_source_arguments, labels_of


def parse_ratio(text: str) -> Fraction:
    """The imbalance ratio as it is written.

    Raises:
        ValueError: It is no number >= 1.
    """
    try:
        ratio = Fraction(text)
    except (ValueError, ZeroDivisionError):
        ratio = Fraction(0)
    if ratio < 1:
        raise ValueError(f'--ratio: must be a number >= 1, got {text!r}')
    return ratio


def class_sizes(source: Labels, ratio: Fraction, largest: int | None) -> list[int]:
    """How many samples of each class are kept.

    Args:
        source: The labels.
        ratio: Imbalance ratio.
        largest: Size of class 0; None takes as many as the classes allow.

    Raises:
        ValueError: A class has too few samples, or would lose all of them.
    """
    if source.num_classes < 2:
        raise ValueError('a long tail needs at least 2 classes, got 1')
    found = Counter(source.values)
    have = [found[label] for label in range(source.num_classes)]
    if 0 in have:
        raise ValueError(f'{source.num_classes} classes, but none of the {sum(have)} samples is of class '
                         f'{have.index(0)}')
    if largest is None:
        largest, too_many = 0, max(have) + 1
        while too_many - largest > 1:  # sizes grow with the first one, so halving finds the largest that fits
            middle = (largest + too_many) // 2
            fits = all(a <= b for a, b in zip(long_tail_counts(middle, source.num_classes, ratio), have, strict=True))
            largest, too_many = (middle, too_many) if fits else (largest, middle)
    sizes = long_tail_counts(largest, source.num_classes, ratio)
    for label, (size, available) in enumerate(zip(sizes, have, strict=True)):
        name = f'class {label}' + (f' ({source.classes[label]})' if source.classes else '')
        if size > available:
            raise ValueError(f'--largest: {name} would keep {size} samples and has {available}')
        if size < 1:
            raise ValueError(f'--ratio: with {largest} samples in class 0, {name} would keep none')
    return sizes


def make(args: argparse.Namespace) -> list[str]:
    """Make the list that the arguments ask for.

    Returns:
        What was done, one line each.
    """
    ratio = parse_ratio(args.ratio)
    if args.largest is not None and args.largest < 1:
        raise ValueError(f'--largest: must be an integer >= 1, got {args.largest}')
    source = labels_of(args)
    sizes = class_sizes(source, ratio, args.largest)
    members = seeded_members(source.values, args.seed, 'long tail')
    kept = sorted(index for label, size in enumerate(sizes) for index in members[label][:size])
    if source.dataset is None:
        ids = [str(index) for index in range(len(source.values))]
    else:
        ids = sample_ids(source.dataset, [source.dataset.get_data_info(i) for i in range(len(source.values))])
    header = dict(kind='long tail', ratio=args.ratio, seed=args.seed, num_samples=len(kept),
                  num_classes=source.num_classes, sizes=' '.join(map(str, sizes)), source_samples=len(source.values),
                  source_sha256=labels_hash(source.values))  # fmt: skip
    text = render_header('make_long_tail', header)
    text += ''.join(f'{ids[index]}\t{source.values[index]}\n' for index in kept)
    done = write_new(args.out, text, args.force)
    return [f'{len(kept)} of {len(source.values)} samples, classes of {sizes[0]} to {sizes[-1]}', done]


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog='make_long_tail.py'
    )
    add_source_arguments(parser)
    parser.add_argument('--ratio', required=True, help='size of the first class over that of the last, >= 1')
    parser.add_argument('--largest', type=int, metavar='N', help='size of class 0 (default: as large as possible)')
    parser.add_argument('--seed', type=int, default=0, help='default 0')
    parser.add_argument('--out', required=True, metavar='FILE', help='the list to write')
    parser.add_argument('--force', action='store_true', help='overwrite a list that differs')
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        0, or 2 after an error of the user's.
    """
    args = build_parser().parse_args(argv)
    try:
        lines = make(args)
    except USER_ERRORS as error:
        print(f'make_long_tail: error: {one_line(error)}', file=sys.stderr)
        return 2
    print('\n'.join(lines))
    return 0


if __name__ == '__main__':
    sys.exit(main())
