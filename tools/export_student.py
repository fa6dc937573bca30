"""Write one sub-model of a semi-supervised checkpoint as a plain checkpoint and config, usable without mmssl."""

import argparse
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from mmssl.utils.stack import trust_checkpoints

trust_checkpoints()  # has to be settled before torch reads a checkpoint

import numpy as np  # noqa: E402
import torch  # noqa: E402
from mmengine.config import Config  # noqa: E402
from torch import Tensor  # noqa: E402

from mmssl.utils.cli import read_checkpoint, run_tool  # noqa: E402

WRAPPED = ('segmentor', 'classifier')  # where a semi-supervised model's config holds the stock model
TEST_PARTS = ('dataloader', 'evaluator', 'cfg')
KEPT = ('default_scope', 'env_cfg', 'visualizer', 'vis_backends', 'log_processor', 'log_level', 'default_hooks',
        'tta_model', 'tta_pipeline', 'test_pipeline')  # yapf: disable
STOCK_DATASETS = {'mmssl.VOCDataset': 'PascalVOCDataset', 'mmssl.CityscapesDataset': 'CityscapesDataset'}
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
        wanted = (cfg.model.get('semi_test_cfg') or {}).get('predict_on', names[0])
        if wanted not in names:
            raise ValueError(f'--student: model.semi_test_cfg.predict_on is {wanted!r}, which is no single model; '
                             f'choose one of {", ".join(names)}')
    if wanted not in names:
        raise ValueError(f'--student: the checkpoint has no {wanted!r}; there are: {", ".join(names)}')
    return wanted


def is_ours(node: Any) -> bool:
    """Whether a config node builds something of mmssl."""
    if not isinstance(node, Mapping):
        return False
    kind = node.get('type')
    kind = kind if isinstance(kind, str) or kind is None else f'{kind.__module__}.{kind.__name__}'
    return bool(kind and kind.startswith('mmssl.')) or node.get('_scope_') == 'mmssl'


def ours_in(node: Any, prefix: str = '') -> Iterator[str]:
    """Dotted keys of everything of mmssl below ``node``."""
    if is_ours(node):
        yield f'{prefix} ({node.get("type")})'
    items = node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, (list, tuple)) else ()
    for key, value in items:
        yield from ours_in(value, f'{prefix}.{key}'.lstrip('.'))


def plain_model(model: Mapping[str, Any]) -> dict[str, Any]:
    """The stock model's config inside a semi-supervised model's.

    Losses of ours are taken out (they have no part in prediction), and so are pre-trained weights to start from.

    Raises:
        ValueError: If ``model`` wraps no stock model, or that contains a piece of ours other than a loss.
    """
    key = next((key for key in WRAPPED if isinstance(model.get(key), Mapping)), None)
    if key is None:
        raise ValueError(f'config: model.type is {model.get("type")!r}, which holds no stock model under '
                         f'{" or ".join(f"model.{key}" for key in WRAPPED)}')
    plain = deepcopy(dict(model[key]))
    outer = model.get('data_preprocessor')
    if outer:
        # Evaluation went through the outer one, so that is the one whose numbers are to be reproduced.
        plain['data_preprocessor'] = deepcopy(outer['data_preprocessor'] if is_ours(outer) else outer)
    plain = _without_training(plain)
    rest = list(ours_in(plain, f'model.{key}'))
    if rest:
        raise ValueError(f'config: {", ".join(rest)} exists in mmssl only, so the model cannot do without it')
    return plain


def _without_training(node: Any) -> Any:
    if isinstance(node, (list, tuple)):
        return type(node)(_without_training(entry) for entry in node)
    if not isinstance(node, Mapping):
        return node
    clean = {}
    for key, value in node.items():
        if key == 'pretrained' or (key == 'init_cfg' and 'Pretrained' in str(value)):
            continue
        if key in ('loss', 'loss_decode') and list(ours_in(value)):
            entries = [entry for entry in (value if isinstance(value, (list, tuple)) else [value])
                       if not list(ours_in(entry))]
            value = entries if entries else dict(type='CrossEntropyLoss')
        clean[key] = _without_training(value)
    return clean


def plain_dataset(dataset: Mapping[str, Any]) -> dict[str, Any]:
    """The stock data set that reads the same files, with wrapped data sets translated as well.

    Raises:
        ValueError: If there is none.
    """
    plain = dict(deepcopy(dataset))
    for key in ('dataset', 'datasets'):
        if key in plain:
            plain[key] = [plain_dataset(e) for e in plain[key]] if key == 'datasets' else plain_dataset(plain[key])
    if not is_ours(dataset):
        return plain
    from mmengine.dataset import BaseDataset
    from mmseg.registry import DATASETS as STOCK

    from mmssl.registry import DATASETS
    kind = dataset['type']
    cls = DATASETS.get(kind)
    if cls is None or not issubclass(cls, BaseDataset):
        raise ValueError(f'{kind} has no stock counterpart')
    plain['type'] = STOCK_DATASETS.get(kind, PLAIN_DATASET)
    known = {**_parameters(STOCK.get(PLAIN_DATASET)), **_parameters(STOCK.get(plain['type']))}
    # The stock class has defaults of its own and knows no classes: what ours takes for granted becomes explicit.
    for name, parameter in _parameters(cls).items():
        if name in known and parameter.default not in (inspect.Parameter.empty, known[name].default, None):
            plain.setdefault(name, parameter.default)
    if plain['type'] == PLAIN_DATASET:
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


def plain_config(cfg: Config) -> tuple[Config, list[str]]:
    """The config that tests the exported model with stock libraries only.

    Args:
        cfg: Config of the semi-supervised training.

    Returns:
        The config, and one sentence for each thing that had to be left out.
    """
    plain: dict[str, Any] = {key: deepcopy(cfg[key]) for key in KEPT if cfg.get(key) is not None}
    plain.setdefault('default_scope', 'mmseg')
    plain['model'] = plain_model(cfg.model)
    left_out: list[str] = []
    for phase in ('val', 'test'):
        names = [f'{phase}_{part}' for part in TEST_PARTS]
        if any(cfg.get(name) is None for name in names):
            continue
        try:
            loader, evaluator, loop = (deepcopy(cfg[name]) for name in names)
            loader['dataset'] = plain_dataset(loader['dataset'])
            metrics = evaluator if isinstance(evaluator, (list, tuple)) else [evaluator]
            stock = [metric for metric in metrics if not list(ours_in(metric))]
            if not stock:
                raise ValueError('none of its metrics is a stock one')
            rest = [*ours_in(loader, names[0]), *ours_in(loop, names[2])]
            if rest:
                raise ValueError(f'{", ".join(rest)} exists in mmssl only')
        except ValueError as error:
            left_out.append(f'{", ".join(names)}: {error}')
            continue
        if len(stock) < len(metrics):
            left_out.append(f'{names[1]}: metrics of mmssl')
        plain.update(zip(names, (loader, stock[0] if len(metrics) == 1 else stock, loop), strict=True))
    if 'test_dataloader' in plain and 'pipeline' in plain['test_dataloader']['dataset']:
        plain.setdefault('test_pipeline', deepcopy(plain['test_dataloader']['dataset']['pipeline']))
    hooks = plain.get('default_hooks', {})
    for name in [name for name, hook in hooks.items() if list(ours_in(hook))]:
        del hooks[name]
    for name in [name for name in plain if name != 'model' and list(ours_in(plain[name], name))]:
        left_out.append(f'{name}: it is of mmssl')
        del plain[name]
    imports = [name for name in (cfg.get('custom_imports') or {}).get('imports', []) if name.split('.')[0] != 'mmssl']
    if imports:
        plain['custom_imports'] = dict(imports=imports, allow_failed_imports=False)
    return Config(dict(plain, load_from=None, resume=False)), left_out


def plain_weights(state_dict: Mapping[str, Tensor], student: str, cfg: Config) -> dict[str, Tensor]:
    """The weights of one student under the stock model's names, checked against that model.

    Raises:
        ValueError: If they are not exactly what the stock model holds.
    """
    # A copy of each: a view would drag the storage of its neighbors into the file.
    weights = {key[len(student) + 1:]: value.detach().clone().contiguous() for key, value in state_dict.items()
               if key.startswith(f'{student}.')}  # yapf: disable
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


def output_paths(out: str, student: str, force: bool) -> tuple[Path, Path]:
    """Paths of the checkpoint and of the config.

    Raises:
        FileExistsError: If one exists and ``force`` is false.
    """
    path = Path(out)
    weights = path if path.suffix == '.pth' else path / f'{student}.pth'
    paths = weights, weights.with_suffix('.py')
    existing = [str(path) for path in paths if path.exists()]
    if existing and not force:
        raise FileExistsError(f'--out: {" and ".join(existing)} exist already; choose another path or add --force')
    return paths


def export(args: argparse.Namespace, *_: Any) -> None:
    """Check everything, then write both files, each in one step."""
    checkpoint = read_checkpoint(args.checkpoint, 'checkpoint')
    state_dict = checkpoint.get('state_dict', checkpoint)
    meta = checkpoint.get('meta') or {}
    if args.config is not None:
        if not Path(args.config).is_file():
            raise FileNotFoundError(f'--config: no file {args.config!r}')
        cfg = Config.fromfile(args.config)
    elif isinstance(meta.get('cfg'), str):
        cfg = Config.fromstring(meta['cfg'], '.py')
    else:
        raise ValueError('--config: the checkpoint does not say its config, so name it')
    student = choose_student(cfg, state_dict, args.student)
    weights_path, config_path = output_paths(args.out, student, args.force)
    plain_cfg, left_out = plain_config(cfg)
    weights = plain_weights(state_dict, student, plain_cfg)
    plain_meta = {key: _plain(meta[key]) for key in ('dataset_meta', 'iter', 'epoch') if key in meta}
    plain_meta['mmssl_student'] = student

    weights_path.parent.mkdir(parents=True, exist_ok=True)
    temporary = [path.with_name(f'.{path.stem}.{os.getpid()}{path.suffix}') for path in (weights_path, config_path)]
    try:
        torch.save(dict(meta=plain_meta, state_dict=weights), temporary[0])
        plain_cfg.dump(temporary[1])
        for source, target in zip(temporary, (weights_path, config_path), strict=True):
            os.replace(source, target)
    finally:
        for path in temporary:
            path.unlink(missing_ok=True)
    print(f'{student} of {args.checkpoint}: {len(weights)} weights -> {weights_path}, config -> {config_path}')
    for sentence in left_out:
        print(f'left out of the config: {sentence}', file=sys.stderr)


if __name__ == '__main__':
    sys.exit(run_tool(export, parse_args()))
