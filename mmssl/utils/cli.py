"""What ``tools/train.py`` and ``tools/test.py`` share: arguments, one-line errors, and what a CPU or a resume needs."""

import argparse
import difflib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config, DictAction
from mmengine.device import get_device
from mmengine.hooks import Hook
from mmengine.registry import MODELS, DefaultScope, Registry, init_default_scope
from mmengine.runner import CheckpointLoader, Runner

import mmssl.registry
from mmssl.utils.errors import message_of, one_line

# What a wrong config or a wrong file raises. Anything else is a fault of the program and shows its traceback.
USER_ERRORS = (ValueError, KeyError, TypeError, AttributeError, ImportError, OSError, SyntaxError, AssertionError)
# Top-level keys that are read from the config though they are no arguments of the Runner.
OTHER_KEYS = {'custom_imports', 'tta_model', 'tta_pipeline', 'find_unused_parameters', 'model_wrapper_cfg', 'sync_bn',
              'compile', 'activation_checkpointing', 'work_dir'}  # yapf: disable

# What a resumed run must not change to end in the same weights; `world_size` is written there by tools/train.py.
COMPARED = ('randomness.seed', 'train_dataloader.batch_size', 'train_dataloader.sampler.source_ratio', 'world_size',
            'train_cfg.max_iters', 'train_cfg.max_epochs', 'optim_wrapper.accumulative_counts')  # yapf: disable
SYNC_BN = ('SyncBN', 'MMSyncBN', 'SyncBatchNorm', 'mmcv.SyncBN', 'mmcv.MMSyncBN')


class OptionsAction(DictAction):
    """``--cfg-options``: mmengine's parser, with an error instead of a traceback for ``key value``."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace,
                 values: str | Sequence[Any] | None, option_string: str | None = None) -> None:
        """Check that each of ``values`` is ``key=value``, then let mmengine parse them."""
        for value in values or []:
            if '=' not in value:
                parser.error(f'argument --cfg-options: {value!r} is not of the form key=value')
        super().__call__(parser, namespace, values, option_string)


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that training and testing have in common, named as in mmseg."""
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=OptionsAction,
        metavar='KEY=VALUE',
        help='override single settings, such as train_cfg.max_iters=100 or model.semi_train_cfg.unsup_weight=1.')
    parser.add_argument(
        '--launcher',
        choices=['none', 'pytorch', 'slurm', 'mpi'],
        default='none',
        help='how the processes of a distributed run are started (default: %(default)s)')
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0, help='set by the launcher')
    parser.add_argument('--debug', action='store_true', help='show the traceback of an error in the config')


def run_tool(tool: Callable[[argparse.Namespace, Callable[[], None]], None], args: argparse.Namespace) -> int:
    """Run a tool, and turn what a user can mend into one line on stderr.

    Args:
        tool: The tool. Its second argument is to be called when set-up is over: from then on every error shows its
            traceback.
        args: Parsed arguments.

    Returns:
        Exit code: 0, or 2 after a one-line error, or 130 after Ctrl-C.
    """
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    started = False

    def setup_is_over() -> None:
        nonlocal started
        started = True

    try:
        tool(args, setup_is_over)
    except KeyboardInterrupt:
        print('interrupted', file=sys.stderr)
        return 130
    except USER_ERRORS as error:
        if started or args.debug:
            raise
        message = message_of(error)
        if 'Original Traceback' in message:  # of a worker of the data loader: its last line is the error
            message = message.strip().splitlines()[-1]
        message = locate(' '.join(message.split()), getattr(args, 'loaded_config', None))
        print(f'{Path(sys.argv[0]).name}: error: {message}  (--debug shows where)', file=sys.stderr)
        return 2
    return 0


class SetupIsOver(Hook):
    """Calls a function before every iteration: a tool passes the one that :func:`run_tool` gave it."""

    priority = 'VERY_HIGH'

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback

    def before_train_iter(self, *args: Any, **kwargs: Any) -> None:
        """Call it."""
        self.callback()

    before_test_iter = before_train_iter


def read_config(path: str, options: Mapping[str, Any] | None = None) -> Config:
    """Read a config and apply ``--cfg-options``.

    Args:
        path: The file.
        options: Dotted keys and their values.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it can't be read, or an option would change nothing.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f'config: no file {path!r}')
    try:
        cfg = Config.fromfile(path)
    except Exception as error:  # a config is a program: it can raise anything
        raise ValueError(f'config: {path}: {type(error).__name__}: {one_line(error)}') from error
    if options:
        check_options(cfg, options)
        cfg.merge_from_dict(dict(options))
    return cfg


def load_config(args: argparse.Namespace) -> Config:
    """Read the config of a tool that runs it, and settle launcher and work dir; raises as :func:`read_config`."""
    cfg = read_config(args.config, args.cfg_options)
    args.loaded_config = cfg  # for the messages of errors
    cfg.launcher = args.launcher
    if args.work_dir is not None:
        cfg.work_dir = args.work_dir
    elif cfg.get('work_dir') is None:
        cfg.work_dir = str(Path('work_dirs') / Path(args.config).stem)
    return cfg


def keys_read() -> set[str]:
    """Top-level keys of a config that something reads; any other name is only a variable of the file."""
    return set(inspect.signature(Runner.__init__).parameters) - {'self', 'cfg'} | OTHER_KEYS


def locate(message: str, cfg: Config | None) -> str:
    """Put the config keys in front of a message of mmengine's or Python's about a wrong name.

    Args:
        message: Of an error while the config is built: an argument that a class does not take, or an unknown type.
        cfg: The config; None if it could not be read.

    Returns:
        The message, after the keys if they are found.
    """
    argument = re.search(r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'", message)
    unknown = re.match(r'(\S+) is not in the \S+ registry', message)
    if cfg is None or not (argument or unknown):
        return message
    leaves = [(key, value) for key, value in _leaves(cfg) if key.split('.')[0] in keys_read()]
    if unknown:
        keys = [key for key, value in leaves if key.rpartition('.')[2] == 'type' and value == unknown[1]]
        if any(unknown[1] in registry.module_dict for registry in our_registries()):
            message = f"write type='mmssl.{unknown[1]}': {message}"
    else:
        assert argument is not None
        owners = [key for key, _ in leaves if key.rpartition('.')[2] == argument[2]]
        # An argument of a base class is named after that, so the class decides only where it is found.
        exact = [key for key in owners if _type_of(cfg, key) == argument[1]]
        keys = exact or owners
    return f'{", ".join(keys[:4])}: {message}' if keys else message


def our_registries() -> list[Registry]:
    """All registries of mmssl."""
    return [value for value in vars(mmssl.registry).values() if isinstance(value, Registry) and value.scope == 'mmssl']


def _type_of(cfg: Config, key: str) -> str:
    """Class name of the node that holds ``key``."""
    node: Any = cfg
    for name in key.split('.')[:-1]:
        node = node[int(name)] if isinstance(node, (list, tuple)) else node[name]
    kind = node.get('type', '') if isinstance(node, (Config, dict)) else ''
    return kind.rpartition('.')[2] if isinstance(kind, str) else getattr(kind, '__name__', '')


def check_options(cfg: Config, options: Mapping[str, Any]) -> None:
    """Refuse options that would be merged without any effect.

    A top-level name that the Runner does not read is only a variable of the file (``data_root``): the settings made
    from it were computed when the file was read.

    Raises:
        ValueError: Naming the keys that do have an effect.
    """
    read = keys_read()
    for option in options:
        top = option.split('.')[0]
        if top in read:
            continue
        if top in cfg:
            using = [key for key, value in _leaves(cfg) if value == cfg[top] and key.split('.')[0] in read]
            hint = f'set {", ".join(using[:6])} instead' if using else 'change it in the config file'
            raise ValueError(f'--cfg-options {option}: {top!r} is only a variable of the config file, which has been '
                             f'read already, so this would change nothing; {hint}')
        same = [key for key, _ in _leaves(cfg) if key.rpartition('.')[2] == option.rpartition('.')[2]]
        near = [key for key in same if key.split('.')[0] in read] or difflib.get_close_matches(top, read, n=3)
        hint = f'did you mean {" or ".join(near[:4])}?' if near else f'top-level keys are {sorted(read)}'
        raise ValueError(f'--cfg-options {option}: nothing reads a top-level key {top!r}; {hint}')


def _leaves(node: Any, prefix: str = '') -> Iterator[tuple[str, Any]]:
    """Dotted keys and values of a config, containers included."""
    items = node.items() if isinstance(node, (Config, dict)) else enumerate(node)
    for name, value in items:
        key = f'{prefix}.{name}' if prefix else str(name)
        yield key, value
        if isinstance(value, (dict, list, tuple)):
            yield from _leaves(value, key)


def without_sync_bn(cfg: Config) -> None:
    """Turn SyncBN, which several processes on CPUs cannot compute, into BN; the weights have the same names."""
    changed = []
    for key, node in _leaves({'model': cfg.get('model') or {}}):
        if isinstance(node, dict) and node.get('type') in SYNC_BN:
            node['type'] = 'BN'
            changed.append(f'{key}.type')
    if cfg.get('sync_bn') is not None:
        changed.append('sync_bn')
        cfg.sync_bn = None
    if changed:
        more = f' and {len(changed) - 1} more' if len(changed) > 1 else ''
        warn(f'{changed[0]}{more}: SyncBN needs a GPU, and none is visible, so BN is used: each process normalizes '
             'with its own images')


def prepare_devices(cfg: Config) -> None:
    """Make a run work without an accelerator: BN for SyncBN; if distributed, gloo, and no ``device_ids`` for DDP.

    Joins the other processes in that case, since mmengine would call ``torch.cuda.set_device`` first; its Runner uses
    the process group that it finds. Call this last, when every process has passed its checks.

    Raises:
        ValueError: If there are more processes on this machine than GPUs, or slurm or MPI started them without GPUs.
    """
    if get_device() == 'cpu':
        without_sync_bn(cfg)
    if cfg.launcher == 'none':
        return
    if get_device() != 'cpu':
        processes = int(os.environ.get('LOCAL_WORLD_SIZE', 1))
        if get_device() == 'cuda' and processes > torch.cuda.device_count():
            raise ValueError(
                f'{processes} processes were started on this machine, which has {torch.cuda.device_count()} GPU(s): '
                'start as many, or hide the GPUs with CUDA_VISIBLE_DEVICES= to train on the CPU')
        return
    if cfg.get('model_wrapper_cfg') is None:
        cfg.model_wrapper_cfg = dict(
            type='MMDistributedDataParallel',
            device_ids=None,
            broadcast_buffers=False,
            find_unused_parameters=cfg.get('find_unused_parameters', False))
    if cfg.launcher != 'pytorch':
        raise ValueError(f'--launcher {cfg.launcher}: no GPU is visible; several processes on CPUs need '
                         '--launcher pytorch (tools/dist_train.sh)')
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group('gloo')


def read_checkpoint(path: str, key: str) -> dict[str, Any]:
    """Load a checkpoint to the CPU.

    Args:
        path: File or URL.
        key: Option that named it, for the message.

    Raises:
        FileNotFoundError: If it doesn't exist.
        ValueError: If it can't be read, or isn't a checkpoint.
    """
    if '://' not in path and not Path(path).is_file():
        raise FileNotFoundError(f'{key}: no file {path!r}')
    try:
        checkpoint = CheckpointLoader.load_checkpoint(path, map_location='cpu')
    except Exception as error:  # a damaged file can raise anything: pickle, zip, runtime and end-of-file errors
        raise ValueError(f'{key}: {path!r} is not a readable checkpoint ({type(error).__name__}: {error})') from error
    if not isinstance(checkpoint, dict):
        raise ValueError(f'{key}: {path!r} holds a {type(checkpoint).__name__} instead of a checkpoint')
    return checkpoint


def check_weights(cfg: Config, state_dict: Mapping[str, torch.Tensor], key: str, exact: bool) -> None:
    """Refuse weights that do not belong to ``cfg.model``: mmengine would load what fits and only log the rest.

    Args:
        cfg: Config with ``model``.
        state_dict: The weights.
        key: Option that named the checkpoint, for the message.
        exact: Whether the names have to be those of the model, as for a resumed run. Otherwise the model may translate
            them (a plain checkpoint in a semi-supervised model), and auxiliary heads, which predict nothing, may be
            missing.

    Raises:
        ValueError: Naming the first missing, surplus or differently shaped weights.
    """
    init_default_scope(cfg.get('default_scope') or 'mmengine')
    try:
        model = MODELS.build(cfg.model)
    finally:
        DefaultScope._instance_dict.pop(getattr(DefaultScope.get_current_instance(), 'instance_name', None), None)
    own = model.state_dict()
    wrong = [
        f'{name} has shape {tuple(value.shape)} instead of {tuple(own[name].shape)}'
        for name, value in state_dict.items() if name in own and own[name].shape != value.shape
    ]
    if exact:
        missing, surplus = own.keys() - state_dict.keys(), state_dict.keys() - own.keys()
    elif not wrong:
        result = model.load_state_dict(dict(state_dict), strict=False)
        missing, surplus = {name for name in result.missing_keys if 'auxiliary_head' not in name}, set()
    else:
        missing, surplus = set(), set()
    wrong += [f'{name} is missing' for name in sorted(missing)]
    wrong += [f'{name} is not a weight of this model' for name in sorted(surplus)]
    if wrong:
        raise ValueError(f'{key}: the checkpoint does not belong to the model of this config: {"; ".join(wrong[:3])}'
                         f'{f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""}')


def world_size_of(launcher: str) -> int:
    """Number of processes of the run, as the launcher's environment says, before they join."""
    names = {'slurm': 'SLURM_NTASKS', 'mpi': 'OMPI_COMM_WORLD_SIZE'}
    return int(os.environ.get(names.get(launcher, 'WORLD_SIZE'), 1))


def warn(message: str) -> None:
    """Print a warning on stderr, from the first process only."""
    ranks = [os.environ[name] for name in ('RANK', 'SLURM_PROCID', 'OMPI_COMM_WORLD_RANK') if name in os.environ]
    if not ranks or int(ranks[0]) == 0:
        print(f'warning: {message}', file=sys.stderr)


def changes_since(cfg: Config, meta: Mapping[str, Any]) -> list[str]:
    """What keeps a resumed run from going on to the numbers that the interrupted one would have had.

    Args:
        cfg: Config of the resumed run.
        meta: ``checkpoint['meta']``, which holds the interrupted run's config as text.

    Returns:
        One line for each such setting.
    """
    lines = []
    if (cfg.get('randomness') or {}).get('seed') is None:
        lines.append('randomness.seed is not set, so the order of the images is another one than before')
    try:
        old = Config.fromstring(meta['cfg'], '.py')
    except Exception:  # a checkpoint of another tool; there is nothing to compare with
        return lines
    defaults = {'optim_wrapper.accumulative_counts': 1}
    for key in COMPARED:
        was, now = (_lookup(config, key, defaults.get(key)) for config in (old, cfg))
        if was is not None and was != now:
            lines.append(f'{key} was {was} in the interrupted run and is {now} now')
    return lines


def _lookup(cfg: Mapping[str, Any], key: str, default: Any = None) -> Any:
    node: Any = cfg
    for name in key.split('.'):
        node = node.get(name) if isinstance(node, (Config, dict)) else None
    return default if node is None else node


def checkpoints_in(work_dir: str) -> list[Path]:
    """Checkpoints of an earlier run in ``work_dir``, newest first."""
    return sorted(Path(work_dir).glob('*.pth'), key=lambda path: path.stat().st_mtime, reverse=True)


def settle_resume(cfg: Config, resume: str | None) -> None:
    """Find and check what ``--resume`` continues from, or make sure that a new run overwrites nothing.

    Args:
        cfg: Config; ``resume`` and ``load_from`` are set in it.
        resume: ``None`` (the config decides), ``'auto'`` (the last checkpoint of the work dir) or a file.

    Raises:
        FileNotFoundError: If there is nothing to resume from, or ``load_from`` does not exist.
        ValueError: If the checkpoint is damaged or of another model.
        FileExistsError: If the work dir holds checkpoints and the run isn't to be resumed.
    """
    if resume is None and cfg.get('resume'):
        resume = cfg.get('load_from') or 'auto'
    if resume is None:
        used = checkpoints_in(cfg.work_dir)
        if used:
            raise FileExistsError(f'work_dir: {cfg.work_dir!r} holds checkpoints of an earlier run (such as '
                                  f'{used[0].name}), which this run would overwrite: continue that run with --resume, '
                                  'or name another folder with --work-dir')
        weights = cfg.get('load_from')
        if weights and '://' not in weights:
            read_checkpoint(weights, 'load_from')
        return
    if resume == 'auto':
        pointer = Path(cfg.work_dir) / 'last_checkpoint'
        if not pointer.is_file():
            raise FileNotFoundError('--resume: nothing to resume from: no file last_checkpoint in the work dir '
                                    f'{cfg.work_dir!r}')
        resume = pointer.read_text(encoding='utf-8').strip()
        if not Path(resume).is_file() and (Path(cfg.work_dir) / Path(resume).name).is_file():
            resume = str(Path(cfg.work_dir) / Path(resume).name)  # the work dir was moved
    checkpoint = read_checkpoint(resume, '--resume')
    absent = [name for name in ('state_dict', 'optimizer', 'meta') if name not in checkpoint]
    if absent:
        raise ValueError(f'--resume: {resume!r} has no {" and no ".join(absent)}: only a checkpoint of a training run '
                         f'can be resumed; to start from its weights, use --cfg-options load_from={resume}')
    check_weights(cfg, checkpoint['state_dict'], '--resume', exact=True)
    for line in changes_since(cfg, checkpoint['meta']):
        warn(f'--resume: {line}')
    cfg.resume = True
    cfg.load_from = resume
