"""Write a file of noisy labels for a data set: symmetric or asymmetric, seeded, the same on every machine.

    python tools/datasets/make_noisy_labels.py --config CONFIG --kind symmetric --rate 0.4 --out sym40.txt
    python tools/datasets/make_noisy_labels.py --labels train.txt --kind asymmetric --confusions cifar10 --rate 0.4 ...

The true labels come from the training data set of a config, or from a text file (the label is the last column, as in
mmpretrain's annotation files). The file has one label a line, in the order of the data set, below a header with kind,
rate, seed and a hash of the true labels; `mmssl.NoisyLabelDataset(noise_file=...)` refuses it for any other data set.

symmetric: of each class the share `--rate` of the samples gets another class, evenly drawn from all others.
asymmetric: the share `--rate` of each class that `--confusions` names gets the class that it is taken for: `cifar10`
(truck automobile, bird airplane, cat dog, dog cat, deer horse), `next` (each class becomes the next one), or pairs of
names or numbers such as `cat:dog 3:5`.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from mmssl.functional.label_noise import transition_counts
from mmssl.utils.cli import USER_ERRORS
from mmssl.utils.errors import one_line
from mmssl.utils.label_file import labels_hash, render_header, write_new
from mmssl.utils.labels_of import add_source_arguments, labels_of
from mmssl.utils.noise_rule import KINDS, check_noise, make_noise


def parse_confusions(words: Sequence[str] | None) -> Any:
    """`cifar10`, `next`, or a dict out of words such as `cat:dog`.

    Raises:
        ValueError: A word that is none of these.
    """
    if not words:
        return None
    if len(words) == 1 and ':' not in words[0]:
        return words[0]
    pairs = [word.split(':') for word in words]
    wrong = [word for word, pair in zip(words, pairs, strict=True) if len(pair) != 2 or not all(pair)]
    if wrong:
        raise ValueError(f'--confusions: {wrong[0]!r} is no pair such as cat:dog')
    twice = [pair[0] for number, pair in enumerate(pairs) if pair[0] in [first for first, _ in pairs[:number]]]
    if twice:
        raise ValueError(f'--confusions: class {twice[0]!r} is taken for two others')
    return dict(pairs)


def make(args: argparse.Namespace) -> list[str]:
    """Make the file that the arguments ask for.

    Returns:
        What was done, one line each.
    """
    rule = dict(kind=args.kind, rate=args.rate, seed=args.seed)
    if args.confusions is not None:
        rule['confusions'] = parse_confusions(args.confusions)
    noise = check_noise(rule, 'make_noisy_labels')
    source = labels_of(args)
    true, num_classes = source.values, source.num_classes
    noisy = make_noise(true, num_classes, source.classes, noise, 'make_noisy_labels')
    counts = transition_counts(true, noisy, num_classes)
    changed = int(counts.sum() - counts.trace())
    header = dict(kind=args.kind, rate=str(args.rate), seed=args.seed, num_samples=len(true), num_classes=num_classes,
                  changed=changed, source_sha256=labels_hash(true))  # fmt: skip
    if args.confusions is not None:
        header['confusions'] = ' '.join(args.confusions)
    text = render_header('make_noisy_labels', header) + ''.join(f'{label}\n' for label in noisy)
    done = write_new(args.out, text, args.force)
    return [f'{changed} of {len(true)} labels changed ({changed / len(true):.2%}), {num_classes} classes', done]


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog='make_noisy_labels.py'
    )
    add_source_arguments(parser)
    parser.add_argument('--kind', choices=KINDS, required=True)
    parser.add_argument('--rate', required=True, help='share of wrong labels, in [0, 1]')
    parser.add_argument('--confusions', nargs='+', metavar='A:B', help='for --kind asymmetric: cifar10, next, or pairs')
    parser.add_argument('--seed', type=int, default=123, help='default 123, that of Wang et al. 2019')
    parser.add_argument('--out', required=True, metavar='FILE', help='the file to write')
    parser.add_argument('--force', action='store_true', help='overwrite a file that differs')
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
        print(f'make_noisy_labels: error: {one_line(error)}', file=sys.stderr)
        return 2
    print('\n'.join(lines))
    return 0


if __name__ == '__main__':
    sys.exit(main())
