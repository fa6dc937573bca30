"""Write one sub-model of a semi-supervised checkpoint as a plain checkpoint and config, usable without mmssl."""

import argparse
import inspect
import io
import os
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from mmssl.utils.stack import trust_checkpoints

trust_checkpoints()  # has to be settled before torch reads a checkpoint

import numpy as np  # noqa: E402
import torch  # noqa: E402
from mmengine.config import Config  # noqa: E402
from torch import Tensor  # noqa: E402

from mmssl.utils.atomic import write_atomically  # noqa: E402
from mmssl.utils.cli import our_registries, read_checkpoint, run_tool  # noqa: E402
from mmssl.utils.optional import is_importable  # noqa: E402

# Where a semi-supervised model's config holds the stock model, and whose that is.
WRAPPED = dict(segmentor='mmseg', classifier='mmpretrain')
STOCK_SCOPES = ('mmseg', 'mmpretrain')  # under any other default scope, a stock type needs its prefix
TEST_PARTS = ('dataloader', 'evaluator', 'cfg')
KEPT = ('default_scope', 'env_cfg', 'visualizer', 'vis_backends', 'log_processor', 'log_level', 'default_hooks',
        'tta_model', 'tta_pipeline', 'test_pipeline')  # yapf: disable
STOCK_DATASETS = {'VOCDataset': 'PascalVOCDataset', 'CityscapesDataset': 'CityscapesDataset'}
PLAIN_DATASET = 'BaseSegDataset'


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description='Turn a student into a plain mmseg / mmpretrain model')
    parser.add_argument('checkpoint', help='checkpoint of a semi-supervised model')
    parser.add_argument('--config', help='its config (default: the one that is stored in the checkpoint)')
    parser.add_argument('--out', required=True, help='folder (gets STUDENT.pth and STUDENT.py), or path of the .pth')
    parser.add_argument(
        '--student',
        help='sub-model to export, such as student1 or teacher (default: the one that '
        'model.semi_test_cfg.predict_on names)')
    parser.add_argument('--force', action='store_true', help='overwrite existing files')
    parser.add_argument('--debug', action='store_true', help='show the traceback of an error')
    parser.set_defaults(local_rank=0)
    return parser.parse_args(argv)


def students_in(state_dict: Mapping[str, Tensor]) -> list[str]:
    """Names of the whole models inside a checkpoint: what has a backbone of its own."""
    return list(dict.fromkeys(key.split('.')[0] for key in state_dict if key.split('.')[1:2] == ['backbone']))


def choose_student(cfg: Config, state_dict: Mapping[str, Tensor], wanted: str | None) -> str:
    """Settle which sub-model is exported.

    Raises:
        ValueError: If there is none, or none of that name.
    """
    names = students_in(state_dict)
    if not names:
        if any(key.startswith('backbone.') for key in state_dict):
            raise ValueError('checkpoint: this is a plain checkpoint already (its keys start with backbone.), so there '
                             'is nothing to export')
        raise ValueError(f'checkpoint: found no sub-model with a backbone; its keys are like {list(state_dict)[:3]}')
    if wanted is None:
        from mmssl.registry import MODELS
        chosen = getattr(MODELS.get(kind_of(cfg.model)), 'default_predictor', None)
        default = names[0] if chosen is None else chosen(cfg.model.get('semi_train_cfg') or {})
        wanted = (cfg.model.get('semi_test_cfg') or {}).get('predict_on', default)
        if wanted not in names:
            raise ValueError(f'--student: model.semi_test_cfg.predict_on is {wanted!r}, which is no single model; '
                             f'choose one of {", ".join(names)}')
    if wanted not in names:
        raise ValueError(f'--student: the checkpoint has no {wanted!r}; there are: {", ".join(names)}')
    return wanted


def kind_of(node: Mapping[str, Any]) -> str:
    """What a config node builds, as text: a registered name, or a dotted path where the config holds the class."""
    kind = node.get('type') or ''
    return kind if isinstance(kind, str) else f'{kind.__module__}.{kind.__name__}'


def is_ours(node: Any) -> bool:
    """Whether a config node builds something of mmssl."""
    if not isinstance(node, Mapping):
        return False
    kind = kind_of(node)
    # A config that is inherited as `mmssl::...` has this scope on stock types as well.
    in_our_scope = node.get('_scope_') == 'mmssl' and any(kind in registry.module_dict for registry in our_registries())
    return kind.startswith('mmssl.') or in_our_scope


def ours_in(node: Any, prefix: str = '') -> Iterator[str]:
    """Dotted keys of everything of mmssl below ``node``."""
    if is_ours(node):
        yield f'{prefix} ({kind_of(node)})'
    items = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, (list, tuple)) else ()
    for key, value in items:
        yield from ours_in(value, f'{prefix}.{key}'.lstrip('.'))


def wrapped_key(model: Mapping[str, Any]) -> str:
    """The key under which a semi-supervised model's config holds the stock model.

    Raises:
        ValueError: If it holds none.
    """
    key = next((key for key in WRAPPED if isinstance(model.get(key), Mapping)), None)
    if key is None:
        raise ValueError(f'config: model.type is {kind_of(model)!r}, which holds no stock model under '
                         f'{" or ".join(f"model.{key}" for key in WRAPPED)}')
    return key


def plain_model(
        model: Mapping[str, Any], prefix: str = '', preprocessor: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The stock model's config inside a semi-supervised model's.

    Losses of ours are taken out (they have no part in prediction), and so are pre-trained weights to start from.

    Args:
        model: Config of the semi-supervised model.
        prefix: What a stock type needs before its name: ``''``, or the scope and a dot.
        preprocessor: ``data_preprocessor`` of the whole config, which mmengine gives to a model without one.

    Raises:
        ValueError: If ``model`` wraps no stock model, or that contains a piece of ours other than a loss.
    """
    key = wrapped_key(model)
    plain = deepcopy(dict(model[key]))
    outer = model.get('data_preprocessor') or preprocessor
    if outer:
        # Evaluation went through the outer one, so that is the one whose numbers are to be reproduced.
        plain['data_preprocessor'] = deepcopy(outer['data_preprocessor'] if is_ours(outer) else outer)
    plain = _without_training(plain, prefix)
    if model.get('_scope_', 'mmssl') != 'mmssl':
        plain.setdefault('_scope_', model['_scope_'])  # what is inside was built in it
    rest = list(ours_in(plain, f'model.{key}'))
    if rest:
        raise ValueError(f'config: {", ".join(rest)} exists in mmssl only, so the model cannot do without it')
    return plain


def _without_training(node: Any, prefix: str) -> Any:
    if isinstance(node, (list, tuple)):
        return type(node)(_without_training(entry, prefix) for entry in node)
    if not isinstance(node, Mapping):
        return node
    clean = {}
    for key, value in node.items():
        if key == 'pretrained' or (key == 'init_cfg' and 'Pretrained' in str(value)):
            continue
        if key.startswith('loss') and list(ours_in(value)):
            entries = [entry for entry in (value if isinstance(value, (list, tuple)) else [value])
                       if not list(ours_in(entry))]
            value = entries if entries else dict(type=f'{prefix}CrossEntropyLoss')
        clean[key] = _without_training(value, prefix)
    return clean


def without_our_scope(node: Any) -> Any:
    """``node`` without the mark that inheriting as ``mmssl::...`` leaves on stock types."""
    if isinstance(node, (list, tuple)):
        return type(node)(without_our_scope(entry) for entry in node)
    if not isinstance(node, Mapping):
        return node
    return {
        key: without_our_scope(value)
        for key, value in node.items() if key != '_scope_' or value != 'mmssl' or is_ours(node)
    }


def plain_dataset(dataset: Mapping[str, Any], prefix: str = '') -> dict[str, Any]:
    """The stock data set that reads the same files, with wrapped data sets translated as well.

    Args:
        dataset: Config of a data set.
        prefix: What a stock type needs before its name: ``''``, or the scope and a dot.

    Raises:
        ValueError: If there is none.
    """
    plain = dict(deepcopy(dataset))
    for key in ('dataset', 'datasets'):
        if key in plain:
            inner = plain[key]
            plain[key] = ([plain_dataset(entry, prefix) for entry in inner]
                          if key == 'datasets' else plain_dataset(inner, prefix))
    if not is_ours(dataset):
        return plain
    from mmssl.registry import DATASETS
    kind = kind_of(dataset)
    cls = DATASETS.get(kind)
    if not is_segmentation_dataset(cls):
        raise ValueError(f'{kind} has no stock counterpart')
    from mmseg.registry import DATASETS as STOCK
    name = STOCK_DATASETS.get(cls.__name__, PLAIN_DATASET)
    plain['type'] = f'{prefix}{name}'
    known = {**_parameters(STOCK.get(PLAIN_DATASET)), **_parameters(STOCK.get(name))}
    # The stock class has defaults of its own and knows no classes: what ours takes for granted becomes explicit.
    for key, parameter in _parameters(cls).items():
        if key in known and parameter.default not in (inspect.Parameter.empty, known[key].default, None):
            plain.setdefault(key, parameter.default)
    if name == PLAIN_DATASET:
        plain['metainfo'] = {**_plain(cls.METAINFO), **plain.get('metainfo', {})}
        if 'classes' not in plain['metainfo']:
            raise ValueError(f'{kind} names no classes that {PLAIN_DATASET} could be given')
    unknown = sorted(set(plain) - set(known) - {'type', '_scope_'})
    if unknown:
        raise ValueError(f'{kind} has arguments {unknown} that {plain["type"]} lacks')
    if not isinstance(plain.get('img_suffix', ''), str):
        if len(plain['img_suffix']) > 1:
            raise ValueError(f'{kind} reads images of {plain["img_suffix"]}, and {plain["type"]} knows one suffix only')
        plain['img_suffix'] = plain['img_suffix'][0]
    _check_list(plain, kind)
    return plain


def is_segmentation_dataset(cls: type | None) -> bool:
    """Whether a class is derived from mmseg's ``BaseSegDataset``; False without mmseg."""
    if cls is None or not is_importable('mmseg'):
        return False
    from mmseg.datasets import BaseSegDataset
    return issubclass(cls, BaseSegDataset)


def _parameters(cls: type) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(cls.__init__).parameters


def _check_list(dataset: Mapping[str, Any], kind: str) -> None:
    """Refuse split lists that mmseg would misread: it takes each line, comments included, for an id."""
    path = dataset.get('ann_file') or ''
    if not os.path.isabs(path):
        path = os.path.join(dataset.get('data_root') or '', path)
    if not os.path.isfile(path):
        return
    for line in Path(path).read_text(encoding='utf-8-sig').splitlines():
        if line.startswith('#') or len(line.split()) > 1 or line.endswith(dataset.get('img_suffix', '.jpg')):
            raise ValueError(f'{kind} reads the list {path}, in which {dataset["type"]} would take {line!r} for an id')


def leaf_dataset(loader: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The (first) data set below the wrappers of a data loader's config; empty if there is none."""
    dataset = (loader or {}).get('dataset')
    while isinstance(dataset, Mapping) and (dataset.get('dataset') or dataset.get('datasets')):
        dataset = dataset.get('dataset') or dataset['datasets'][0]
    return dataset if isinstance(dataset, Mapping) else {}


def inference_pipeline(cfg: Config) -> list[dict[str, Any]] | None:
    """What a stock ``inference_model`` runs images through: the pipeline of the evaluation, without the labels.

    The top-level ``test_pipeline`` of a config is only the variable that the data loader's was made of, and
    ``--cfg-options`` change the latter; so the data loader decides where it can.
    """
    pipelines = (leaf_dataset(cfg.get(f'{phase}_dataloader')).get('pipeline') for phase in ('test', 'val'))
    pipeline = next((steps for steps in pipelines if steps), cfg.get('test_pipeline'))
    if not pipeline:
        return None
    return [deepcopy(step) for step in pipeline if kind_of(step).rpartition('.')[2] != 'LoadAnnotations']


def plain_config(cfg: Config) -> tuple[Config, list[str]]:
    """The config that tests the exported model with stock libraries only.

    Args:
        cfg: Config of the semi-supervised training.

    Returns:
        The config, and one sentence for each thing that had to be left out.
    """
    plain: dict[str, Any] = {key: deepcopy(cfg[key]) for key in KEPT if cfg.get(key) is not None}
    plain.setdefault('default_scope', 'mmengine')  # as the Runner has it without one
    prefix = '' if plain['default_scope'] in STOCK_SCOPES else f'{WRAPPED[wrapped_key(cfg.model)]}.'
    plain['model'] = plain_model(cfg.model, prefix, cfg.get('data_preprocessor'))
    left_out: list[str] = []
    for phase in ('val', 'test'):
        names = [f'{phase}_{part}' for part in TEST_PARTS]
        if any(cfg.get(name) is None for name in names):
            continue
        try:
            loader, evaluator, loop = (deepcopy(cfg[name]) for name in names)
            loader['dataset'] = plain_dataset(loader['dataset'], prefix)
            metrics = evaluator if isinstance(evaluator, (list, tuple)) else [evaluator]
            stock = [metric for metric in metrics if not list(ours_in(metric))]
            if not stock:
                raise ValueError('none of its metrics is a stock one')
            if is_ours(loop):  # it evaluates every sub-model, and the export is one
                loop = dict(type=f'{phase.title()}Loop', fp16=loop.get('fp16', False))
            rest = [*ours_in(loader, names[0]), *ours_in(loop, names[2])]
            if rest:
                raise ValueError(f'{", ".join(rest)} exists in mmssl only')
        except ValueError as error:
            left_out.append(f'{", ".join(names)}: {error}')
            continue
        if len(stock) < len(metrics):
            left_out.append(f'{names[1]}: metrics of mmssl')
        plain.update(zip(names, (loader, stock[0] if len(metrics) == 1 else stock, loop), strict=True))
    pipeline = inference_pipeline(cfg)
    if pipeline:
        plain['test_pipeline'] = pipeline
    hooks = plain.get('default_hooks', {})
    for name in [name for name, hook in hooks.items() if list(ours_in(hook))]:
        del hooks[name]
    for name in [name for name in plain if name != 'model' and list(ours_in(plain[name], name))]:
        left_out.append(f'{name}: it is of mmssl')
        del plain[name]
    imports = (cfg.get('custom_imports') or {}).get('imports', [])
    imports = [name for name in ([imports] if isinstance(imports, str) else imports) if name.split('.')[0] != 'mmssl']
    if imports:
        plain['custom_imports'] = dict(imports=imports, allow_failed_imports=False)
    return Config(dict(without_our_scope(plain), load_from=None, resume=False)), left_out


def dataset_meta(meta: Mapping[str, Any], cfg: Config) -> dict[str, Any]:
    """Classes and palette for stock inference: the checkpoint's, or else those of the data set of the evaluation.

    Args:
        meta: ``checkpoint['meta']``.
        cfg: The plain config.
    """
    known = _plain(meta.get('dataset_meta') or {})
    if known.get('classes'):
        return known
    dataset = leaf_dataset(cfg.get('test_dataloader')) or leaf_dataset(cfg.get('val_dataloader'))
    if not dataset:
        return known
    from mmengine.registry import DATASETS
    with DATASETS.switch_scope_and_registry(cfg.default_scope) as registry:
        stated = {**getattr(registry.get(kind_of(dataset)), 'METAINFO', {}), **dataset.get('metainfo', {})}
    if dataset.get('classes') and not isinstance(dataset['classes'], str):  # mmpretrain's shorthand
        stated['classes'] = dataset['classes']
    return {**known, **_plain(stated)}


def differences(cfg: Config, trained: str) -> list[str]:
    """Keys of the model that ``--config`` sets otherwise than the config that the checkpoint was trained with.

    Args:
        cfg: The config of ``--config``.
        trained: Text of the other one.
    """
    try:
        old = Config.fromstring(trained, '.py')
        before, now = (
            dict(_leaves(plain_model(config.model, preprocessor=config.get('data_preprocessor'))))
            for config in (old, cfg))
    except Exception:  # of another tool or another model; the weights are compared with the model anyway
        return []
    return [key for key in {**before, **now} if before.get(key) != now.get(key)]


def _leaves(node: Any, prefix: str = 'model') -> Iterator[tuple[str, Any]]:
    if isinstance(node, (list, tuple)) and any(isinstance(entry, Mapping) for entry in node):
        node = dict(enumerate(node))
    if not isinstance(node, Mapping):
        yield prefix, list(node) if isinstance(node, tuple) else node
        return
    for key, value in node.items():
        yield from _leaves(value, f'{prefix}.{key}')


def plain_weights(state_dict: Mapping[str, Tensor], student: str, cfg: Config) -> dict[str, Tensor]:
    """The weights of one student under the stock model's names, checked against that model.

    Raises:
        ValueError: If they are not exactly what the stock model holds.
    """
    # A copy of each: a view would drag the storage of its neighbors into the file.
    weights = OrderedDict((key[len(student) + 1:], value.detach().clone().contiguous())
                          for key, value in state_dict.items() if key.startswith(f'{student}.'))
    from mmengine.registry import MODELS
    with MODELS.switch_scope_and_registry(cfg.default_scope) as registry:
        expected = registry.build(deepcopy(cfg.model)).state_dict()
    for key in [key for key in weights if key not in expected and 'loss' in key]:
        del weights[key]  # state of a loss of ours, which was taken out
    wrong = [f'{key} is missing' for key in expected if key not in weights]
    wrong += [f'{key} is not a weight of the stock model' for key in weights if key not in expected]
    wrong += [
        f'{key} has shape {tuple(value.shape)} instead of {tuple(expected[key].shape)}'
        for key, value in weights.items() if key in expected and value.shape != expected[key].shape
    ]
    if wrong:
        raise ValueError(f'--config: {student} is not the model of this config: {"; ".join(wrong[:3])}'
                         f'{f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""}')
    weights._metadata = expected._metadata  # versions of the layers, which some of them translate old weights by
    return weights


def _plain(value: Any) -> Any:
    """``value`` in types that ``torch.load(weights_only=True)`` and a config file know; others become ``None``."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, (str, int, float, bool)) else None


def output_paths(out: str, student: str, force: bool, inputs: Iterable[str | None] = ()) -> tuple[Path, Path]:
    """Paths of the checkpoint and of the config.

    Args:
        out: What ``--out`` says.
        student: Name of the files if that is a folder.
        force: Whether existing files may be overwritten.
        inputs: Files that are being read; these are never overwritten.

    Raises:
        FileExistsError: If one exists and ``force`` is false, or if it is an input.
        NotADirectoryError: If the folder is a file.
    """
    path = Path(out)
    weights = path if path.suffix == '.pth' else path / f'{student}.pth'
    paths = weights, weights.with_suffix('.py')
    if weights.parent.exists() and not weights.parent.is_dir():
        raise NotADirectoryError(f'--out: {str(weights.parent)!r} is a file; name a folder, or a path ending in .pth')
    for source in (Path(name) for name in inputs if name is not None):
        if any(path.exists() and source.exists() and path.samefile(source) for path in paths):
            raise FileExistsError(f'--out: would overwrite {source}, which is being exported; choose another path')
    existing = [str(path) for path in paths if path.exists()]
    if existing and not force:
        raise FileExistsError(f'--out: {" and ".join(existing)} exist already; choose another path or add --force')
    return paths


def semi_config(path: str | None, meta: Mapping[str, Any]) -> Config:
    """The config of the training: the file, or else what the checkpoint holds.

    Args:
        path: What ``--config`` says.
        meta: ``checkpoint['meta']``.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it cannot be read, says no model, or is needed and not named.
    """
    if path is not None and not Path(path).is_file():
        raise FileNotFoundError(f'--config: no file {path!r}')
    if path is None and not isinstance(meta.get('cfg'), str):
        raise ValueError('--config: the checkpoint does not say its config, so name it')
    try:
        cfg = Config.fromstring(meta['cfg'], '.py') if path is None else Config.fromfile(path)
    except Exception as error:  # a config is a program, and imports what custom_imports names
        what = '--config: the config in the checkpoint' if path is None else f'--config: {path}'
        raise ValueError(f'{what} cannot be read ({type(error).__name__}: {error}); what its custom_imports name has '
                         'to be importable here') from error
    if not isinstance(cfg.get('model'), Mapping):
        raise ValueError(f'--config: model is {cfg.get("model")!r} instead of the config of a model')
    return cfg


def export(args: argparse.Namespace, *_: Any) -> None:
    """Check everything, then write both files, each in one step."""
    checkpoint = read_checkpoint(args.checkpoint, 'checkpoint')
    # Some tools save the wrapper of a distributed run, which prefixes every name.
    state_dict = {key.removeprefix('module.'): value for key, value in checkpoint.get('state_dict', checkpoint).items()}
    meta = checkpoint.get('meta') or {}
    cfg = semi_config(args.config, meta)
    student = choose_student(cfg, state_dict, args.student)
    weights_path, config_path = output_paths(args.out, student, args.force, (args.checkpoint, args.config))
    plain_cfg, left_out = plain_config(cfg)
    weights = plain_weights(state_dict, student, plain_cfg)
    plain_meta = {key: _plain(meta[key]) for key in ('iter', 'epoch') if key in meta}
    plain_meta.update(dataset_meta=dataset_meta(meta, plain_cfg), mmssl_student=student)

    file = io.BytesIO()
    torch.save(dict(meta=plain_meta, state_dict=weights), file)
    text = plain_cfg.pretty_text.encode()
    for path, data in ((weights_path, file.getvalue()), (config_path, text)):
        write_atomically(path, data)
    print(f'{student} of {args.checkpoint}: {len(weights)} weights -> {weights_path}, config -> {config_path}')
    for sentence in left_out:
        print(f'left out of the config: {sentence}', file=sys.stderr)
    changed = differences(cfg, meta['cfg']) if args.config is not None and isinstance(meta.get('cfg'), str) else []
    if changed:
        print(f'warning: --config: {", ".join(changed[:4])} {"differs" if len(changed) == 1 else "differ"} from the '
              'config that the checkpoint was trained with, which is used if --config is left out', file=sys.stderr)
    if 'ema_state_dict' in checkpoint:
        print('the weights are the averages of EMAHook, which validation used', file=sys.stderr)
    if not plain_meta['dataset_meta'].get('classes'):
        print('the checkpoint names no classes: predictions will have numbers or guessed names', file=sys.stderr)


if __name__ == '__main__':
    sys.exit(run_tool(export, parse_args()))
