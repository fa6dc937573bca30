"""The labels that a tool works on: of the training data of a config, or of a text file."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmengine.registry import DATASETS, init_default_scope

from mmssl.datasets.wrapping import check_holds_samples, true_labels
from mmssl.utils.checks.nodes import get, type_name, without_pipelines
from mmssl.utils.cli import OptionsAction, read_config
from mmssl.utils.label_file import read_label_file

KEY = 'train_dataloader.dataset'


@dataclass(frozen=True)
class Labels:
    """Labels of a data set.

    Attributes:
        values: One for each sample, in [0, num_classes).
        num_classes: Number of classes.
        classes: Their names, if they have some.
        dataset: The data set, without pipeline, if the labels are those of one.
    """

    values: list[int]
    num_classes: int
    classes: list[str] | None
    dataset: Any = None


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments that say where the labels come from."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument('--config', help=f'config whose `{KEY}` has the labels')
    source.add_argument('--labels', metavar='FILE', help='text file with one sample a line, the last column its label')
    parser.add_argument('--key', default=KEY, help=f'where the data set is in the config (default {KEY})')
    parser.add_argument('--cfg-options', nargs='+', action=OptionsAction, metavar='KEY=VALUE', help='override settings')
    parser.add_argument('--classes', nargs='+', metavar='NAME', help='with --labels: names of the classes, or how many')


def labels_of(args: argparse.Namespace) -> Labels:
    """The labels that the arguments of :func:`add_source_arguments` name.

    Raises:
        FileNotFoundError: No such config or file.
        KeyError: The config has no such key.
        ValueError: Labels outside the classes, or arguments that do not go together.
    """
    if args.labels is not None:
        return _of_file(args)
    if args.classes is not None:
        raise ValueError('--classes goes with --labels; a config states its classes itself')
    cfg = read_config(args.config, args.cfg_options)
    node = get(cfg, args.key)
    if not isinstance(node, Mapping) or 'type' not in node:
        raise KeyError(f'--key: {args.config} has no data set (a dict with `type`) at {args.key}')
    for name in ('sources', 'datasets'):
        if node.get(name):
            part = next(iter(node[name])) if isinstance(node[name], Mapping) else 0
            raise ValueError(f'--key: {args.key} joins several data sets; name one of them, such as --key '
                             f'{args.key}.{name}.{part}')
    # Noise and candidates are made for what they are around.
    if type_name(node) in ('NoisyLabelDataset', 'PartialLabelDataset'):
        node = node['dataset']
    init_default_scope(cfg.get('default_scope', 'mmpretrain'))
    dataset = DATASETS.build(without_pipelines(node))
    check_holds_samples(dataset, f'--key {args.key}')
    dataset.full_init()
    values, num_classes = true_labels(dataset, f'--key {args.key}')
    classes = dataset.metainfo.get('classes')
    return Labels(values, num_classes, list(classes) if classes else None, dataset)


def _of_file(args: argparse.Namespace) -> Labels:
    values = read_label_file(args.labels, '--labels').labels
    names = None if args.classes is None or (len(args.classes) == 1 and args.classes[0].isdigit()) else args.classes
    count = max(values) + 1 if args.classes is None else len(names) if names else int(args.classes[0])
    wrong = sorted({value for value in values if not 0 <= value < count})
    if wrong:
        raise ValueError(f'--labels: {Path(args.labels)} has the labels {wrong[:8]}; with {count} classes, 0 to '
                         f'{count - 1} are allowed')
    return Labels(values, count, names)
