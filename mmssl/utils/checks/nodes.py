"""Reading config nodes: types with or without scope, nested transforms, model heads."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mmengine.config import Config

Node = Mapping[str, Any]


def type_name(node: Any) -> str:
    """The class name in `node['type']` without scope or module; empty if there is none."""
    kind = node.get('type', '') if isinstance(node, Mapping) else ''
    return kind.rsplit('.', 1)[-1] if isinstance(kind, str) else getattr(kind, '__name__', str(kind))


def is_sequence(value: Any) -> bool:
    """Whether `value` is a list or tuple, of a config or of Python."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def get(node: Any, path: str, default: Any = None) -> Any:
    """The value at a dotted path, or `default` where the path ends early."""
    for name in path.split('.'):
        # A Config is no Mapping, but reads like one.
        if not isinstance(node, (Mapping, Config)) or node.get(name) is None:
            return default
        node = node[name]
    return node


def walk(node: Any, key: str) -> Iterator[tuple[str, Node]]:
    """Every mapping below `node` that has a `type`, outermost first, with its config key."""
    if isinstance(node, Mapping):
        if 'type' in node:
            yield key, node
        for name, child in node.items():
            yield from walk(child, f'{key}.{name}')
    elif is_sequence(node):
        for index, child in enumerate(node):
            yield from walk(child, f'{key}.{index}')


def without_pipelines(node: Node) -> dict[str, Any]:
    """A copy of a data set's config whose samples, and those of the data sets inside it, are not loaded."""
    node = copy.deepcopy(dict(node))
    for _, inner in list(walk(node, '')):
        if 'pipeline' in inner:
            inner['pipeline'] = []
    return node


def find_heads(model: Any, key: str = 'model') -> Iterator[tuple[str, Node]]:
    """Every head of a model that states `num_classes`, wherever it is nested, with its config key."""
    if isinstance(model, Mapping):
        for name, child in model.items():
            child_key = f'{key}.{name}'
            if name in ('decode_head', 'auxiliary_head', 'head'):
                heads = enumerate(child) if is_sequence(child) else [(None, child)]
                for index, head in heads:
                    if isinstance(head, Mapping):
                        yield (child_key if index is None else f'{child_key}.{index}'), head
            else:
                yield from find_heads(child, child_key)
    elif is_sequence(model):
        for index, child in enumerate(model):
            yield from find_heads(child, f'{key}.{index}')


def find_preprocessor(model: Any) -> tuple[str, Node] | None:
    """The data preprocessor that normalizes and pads, with its config key: inside the multi-branch one, if any."""
    inside = ('segmentor.data_preprocessor', 'classifier.data_preprocessor')
    for path in ('data_preprocessor.data_preprocessor', 'data_preprocessor', *inside):
        node = get(model, path)
        if isinstance(node, Mapping) and type_name(node) != 'MultiBranchDataPreprocessor':
            return f'model.{path}', node
    return None


def branches_of(pipeline: Any, key: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Every `MultiBranch` of a pipeline: its key, the branches it declares, the branches it makes."""
    for transform_key, transform in walk(pipeline, key):
        if type_name(transform) == 'MultiBranch':
            declared = [str(name) for name in transform.get('branches') or []]
            made = [name for name in transform if name not in ('type', '_scope_', 'branches')]
            yield transform_key, declared, made
