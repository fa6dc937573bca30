"""Looks up every `type` of loaders, data sets, transforms, hooks and loops, which training would find unknown later."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from mmengine.registry import (
    DATA_SAMPLERS,
    DATASETS,
    HOOKS,
    LOOPS,
    METRICS,
    MODELS,
    OPTIM_WRAPPERS,
    OPTIMIZERS,
    PARAM_SCHEDULERS,
    TRANSFORMS,
    VISUALIZERS,
    Registry,
)

import mmssl.registry

from .nodes import get, is_sequence, type_name
from .report import Report
from .sources import is_known

# Transforms that hold others, and the arguments in which they do (None: all of them). What else has a `type` inside a
# transform may be of another library (albumentations), so it is not looked up.
NESTING = {
    'MultiBranch': None, 'Compose': ('transforms',), 'KeyMapper': ('transforms',), 'RandomApply': ('transforms',),
    'RandomChoice': ('transforms',), 'TransformBroadcaster': ('transforms',), 'TestTimeAug': ('transforms',),
    'Cached': ('transforms',),
}  # fmt: skip
SINGLE = (
    ('model', MODELS), ('model.segmentor', MODELS), ('model.classifier', MODELS), ('model.data_preprocessor', MODELS),
    ('model.estimator', MODELS), ('model.objective', MODELS),
    ('train_cfg', LOOPS), ('val_cfg', LOOPS), ('test_cfg', LOOPS), ('optim_wrapper', OPTIM_WRAPPERS),
    ('optim_wrapper.optimizer', OPTIMIZERS), ('visualizer', VISUALIZERS),
)  # fmt: skip
LOADERS = ('train_dataloader', 'val_dataloader', 'test_dataloader', 'val_cfg.held_out_dataloader')
EVALUATORS = ('val_evaluator', 'test_evaluator', 'val_cfg.held_out_evaluator')
Typed = Iterator[tuple[str, Mapping[str, Any], Registry]]


def check_types(cfg: Any, report: Report) -> None:
    """Each name must be registered, in the default scope unless it states another; the caller has set that scope.

    Args:
        cfg: An mmengine `Config`; what its `custom_imports` register was imported when it was read.
        report: Receives an error for each unknown name, with the one that seems to be meant.
    """
    seen = set()
    for key, node, registry in typed_nodes(cfg):
        kind = node.get('type')
        if not isinstance(kind, str) or key in seen or is_known(registry, node):
            continue
        seen.add(key)
        report.error(f'{key}.type', f'{kind!r} is not a known {registry.name}{_hint(kind, node, registry)}')


def typed_nodes(cfg: Any) -> Typed:
    """Config key, node and registry of everything that is looked up."""
    for key, registry in SINGLE:
        node = get(cfg, key)
        if isinstance(node, Mapping):
            yield key, node, registry
    for loader in LOADERS:
        for name in ('sampler', 'batch_sampler'):
            node = get(cfg, f'{loader}.{name}')
            if isinstance(node, Mapping):
                yield f'{loader}.{name}', node, DATA_SAMPLERS
        yield from _datasets(get(cfg, f'{loader}.dataset'), f'{loader}.dataset')
    for name in ('default_hooks', 'custom_hooks', 'param_scheduler'):
        yield from _each(cfg.get(name), name, PARAM_SCHEDULERS if name == 'param_scheduler' else HOOKS)
    for name in EVALUATORS:
        evaluator = get(cfg, name)
        metrics = get(evaluator, 'metrics')
        yield from _each(evaluator, name, METRICS) if metrics is None else _each(metrics, f'{name}.metrics', METRICS)


def _each(nodes: Any, key: str, registry: Registry) -> Typed:
    """The entries of a list or of a dict, or the node itself if it has a type."""
    if isinstance(nodes, Mapping) and 'type' in nodes:
        yield key, nodes, registry
        return
    entries = nodes.items() if isinstance(nodes, Mapping) else enumerate(nodes if is_sequence(nodes) else [])
    for name, node in entries:
        if isinstance(node, Mapping):
            yield f'{key}.{name}', node, registry


def _datasets(node: Any, key: str) -> Typed:
    """A data set, those inside it, and their pipelines."""
    if not isinstance(node, Mapping):
        return
    yield key, node, DATASETS
    yield from _transforms(node.get('pipeline'), f'{key}.pipeline')
    if isinstance(node.get('dataset'), Mapping):
        yield from _datasets(node['dataset'], f'{key}.dataset')
    for index, child in enumerate(node['datasets'] if is_sequence(node.get('datasets')) else []):
        yield from _datasets(child, f'{key}.datasets.{index}')
    for name, child in node['sources'].items() if isinstance(node.get('sources'), Mapping) else ():
        yield from _datasets(child, f'{key}.sources.{name}')


def _transforms(node: Any, key: str) -> Typed:
    """The transforms of a pipeline, and those inside them."""
    if is_sequence(node):
        for index, child in enumerate(node):
            yield from _transforms(child, f'{key}.{index}')
    elif isinstance(node, Mapping) and 'type' in node:
        yield key, node, TRANSFORMS
        names = NESTING.get(type_name(node), ())
        for name in node if names is None else names:
            if name != 'branches':
                yield from _transforms(node.get(name), f'{key}.{name}')


def _hint(kind: str, node: Mapping[str, Any], registry: Registry) -> str:
    """What seems to be meant: our name with its scope, or the closest name that can be written there."""
    ours = next((r for r in vars(mmssl.registry).values() if isinstance(r, Registry) and r.parent is registry), None)
    written: dict[str, str] = {}
    with registry.switch_scope_and_registry(node.get('_scope_')) as present:
        while present is not None:
            written = {**{name: name for name in present.module_dict}, **written}
            present = present.parent
    if ours is not None:
        ours.import_from_location()
        written.update({name: f'mmssl.{name}' for name in ours.module_dict})
    bare = kind.rpartition('.')[2]
    if bare in written:
        return f'; write {written[bare]}' if written[bare] != kind else ''
    close = difflib.get_close_matches(bare, written, n=1)
    return f'; did you mean {written[close[0]]}?' if close else ''
