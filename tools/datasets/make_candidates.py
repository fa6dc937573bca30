"""Write candidate sets for a data set: seeded, the same file on every machine.

    python tools/datasets/make_candidates.py --config CONFIG --kind uniform --rate 0.3 --out q30.txt
    python tools/datasets/make_candidates.py --labels train.txt --kind flip --matrix flips.txt --out flip.txt
    python tools/datasets/make_candidates.py --config CONFIG --kind hierarchical --groups groups.txt --rate 0.5 ...
    python tools/datasets/make_candidates.py --config CONFIG --kind instance --rate 0.4 --annotation probs.npz
                                             [--annotator CONFIG] --out id40.txt

The true labels come from the training data set of a config, or from a text file (the label is the last column). The
file has one set a line, in the order of the data set, below a header with kind, rate, seed and a hash of the true
labels; `mmssl.PartialLabelDataset(candidate_file=...)` refuses it for any other data set. The true label is in every
set.

uniform: every other label enters with probability `--rate`; `--at-least-one` draws sets again until one has.
flip: label j enters the set of class i with the probability in row i, column j of `--matrix`, a text file of numbers.
hierarchical: as uniform, but only labels of the same group; `--groups` is a text file with one group for each class.
instance: labels that a weak annotator takes the image for enter more often (VALEN). `--annotation` holds what it said;
`--annotator CONFIG`, a supervised mmpretrain config on the same data, trains one and writes that file first.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mmssl.functional.candidates import (
    ambiguity_degree,
    candidate_mask,
    flip_candidates,
    hierarchical_candidates,
    instance_candidates,
    uniform_candidates,
)
from mmssl.utils.annotator import annotate, annotation_hash, load_annotation, save_annotation
from mmssl.utils.checks.nodes import get
from mmssl.utils.cli import USER_ERRORS, read_config
from mmssl.utils.errors import one_line
from mmssl.utils.label_file import labels_hash, render_header, write_new
from mmssl.utils.labels_of import Labels, add_source_arguments, labels_of
from mmssl.utils.noise_rule import exact_rate

# For each kind, the options that it needs, and those that it may have.
KINDS = {
    'uniform': (('rate',), ('at_least_one',)),
    'flip': (('matrix',), ()),
    'hierarchical': (('groups', 'rate'), ('at_least_one',)),
    'instance': (('rate', 'annotation'), ('annotator', 'work_dir')),
}


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that do not go with the kind.

    Raises:
        ValueError: One is missing, or has no effect.
    """
    needed, possible = KINDS[args.kind]
    for name in needed:
        if getattr(args, name) is None:
            raise ValueError(f'--kind {args.kind} needs --{name.replace("_", "-")}')
    for name in {option for both in KINDS.values() for options in both for option in options}:
        if getattr(args, name) not in (None, False) and name not in (*needed, *possible):
            raise ValueError(f'--{name.replace("_", "-")} has no effect with --kind {args.kind}')


def read_matrix(path: str, num_classes: int) -> np.ndarray:
    """Flip probabilities from a text file.

    Raises:
        FileNotFoundError: No such file.
        ValueError: It is no matrix of probabilities, one row and column for each class.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f'--matrix: there is no file {path!r}')
    try:
        matrix = np.loadtxt(path, ndmin=2)
    except ValueError as error:
        raise ValueError(f'--matrix: {path!r} is no table of numbers: {error}') from error
    if matrix.shape != (num_classes, num_classes) or not ((matrix >= 0) & (matrix <= 1)).all():
        raise ValueError(f'--matrix: {path!r} must have {num_classes} rows and columns of numbers in [0, 1], got shape '
                         f'{matrix.shape}, {matrix.min():g} to {matrix.max():g}')
    return matrix


def read_groups(path: str, num_classes: int) -> list[str]:
    """The group of each class, one a line.

    Raises:
        FileNotFoundError: No such file.
        ValueError: It has another number of lines.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f'--groups: there is no file {path!r}')
    groups = [line.strip() for line in Path(path).read_text(encoding='utf-8').splitlines() if line.strip()]
    if len(groups) != num_classes:
        raise ValueError(f'--groups: {path!r} has {len(groups)} lines; one for each of {num_classes} classes is needed')
    return groups


def annotation(args: argparse.Namespace, source: Labels) -> np.ndarray:
    """What the annotator said, after training one if asked to."""
    if args.annotator is not None:
        if args.config is None:
            raise ValueError('--annotator needs --config: it has to see the images')
        if Path(args.annotation).exists():
            raise FileExistsError(f'--annotation {args.annotation} exists: it is used without --annotator, or choose '
                                  'another name')
        node = get(read_config(args.config, args.cfg_options), args.key)
        work_dir = args.work_dir or f'{args.annotation}.work_dir'
        probs = annotate(read_config(args.annotator, None), work_dir, node)
        save_annotation(args.annotation, probs, source.values)
    return load_annotation(args.annotation, source.values, source.num_classes)


def make(args: argparse.Namespace) -> list[str]:
    """Make the file that the arguments ask for.

    Returns:
        What was done, one line each.
    """
    check_options(args)
    rate = None if args.rate is None else exact_rate(args.rate, '--rate')
    source = labels_of(args)
    true, num_classes = source.values, source.num_classes
    if num_classes < 2:
        raise ValueError('there is one class alone, so there is no other label')
    header = dict(kind=args.kind)
    if rate is not None:
        header['rate'] = str(args.rate)
    header['seed'] = args.seed
    if args.kind == 'uniform':
        sets = uniform_candidates(true, num_classes, rate, args.seed, args.at_least_one)
    elif args.kind == 'flip':
        matrix = read_matrix(args.matrix, num_classes)
        header['matrix'] = ' / '.join(' '.join(f'{value:.12g}' for value in row) for row in matrix)
        sets = flip_candidates(true, matrix, args.seed)
    elif args.kind == 'hierarchical':
        groups = read_groups(args.groups, num_classes)
        header['groups'] = ' / '.join(groups)
        sets = hierarchical_candidates(true, groups, rate, args.seed, args.at_least_one)
    else:
        probs = annotation(args, source)
        header['annotation_sha256'] = annotation_hash(probs)
        sets = instance_candidates(probs, true, float(rate), args.seed)
    if args.at_least_one:
        header['at_least_one'] = 'True'
    header.update(num_samples=len(true), num_classes=num_classes, source_sha256=labels_hash(true))
    text = render_header('make_candidates', header) + ''.join(f'{" ".join(map(str, labels))}\n' for labels in sets)
    done = write_new(args.out, text, args.force)
    mask = candidate_mask(sets, num_classes)
    return [f'{len(true)} sets, {mask.sum(axis=1).mean():.3f} candidates on average, '
            f'{float((mask.sum(axis=1) == 1).mean()):.2%} with one; ambiguity degree '
            f'{ambiguity_degree(mask, true):.3f}', done]  # fmt: skip


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog='make_candidates.py'
    )
    add_source_arguments(parser)
    parser.add_argument('--kind', choices=KINDS, required=True)
    parser.add_argument('--rate', help='in [0, 1]: of uniform and hierarchical the probability of each false label; of '
                        'instance the mean one before clipping')
    parser.add_argument('--at-least-one', action='store_true', help='no set of the true label alone')
    parser.add_argument('--matrix', metavar='FILE', help='flip probabilities')
    parser.add_argument('--groups', metavar='FILE', help='group of each class')
    parser.add_argument('--annotation', metavar='FILE', help='.npz with what the annotator said')
    parser.add_argument('--annotator', metavar='CONFIG', help='config to train an annotator with; writes --annotation')
    parser.add_argument('--work-dir', help="folder of the annotator's training (default: ANNOTATION.work_dir)")
    parser.add_argument('--seed', type=int, default=0)
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
        print(f'make_candidates: error: {one_line(error)}', file=sys.stderr)
        return 2
    print('\n'.join(lines))
    return 0


if __name__ == '__main__':
    sys.exit(main())
