"""What ``tools/train.py`` and ``tools/test.py`` share: arguments, one-line errors, and what a CPU or a resume needs."""

import argparse
import difflib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config, DictAction
from mmengine.device import get_device
from mmengine.hooks import EMAHook, Hook
from mmengine.registry import HOOKS, MODELS, DefaultScope, Registry, init_default_scope
from mmengine.runner import CheckpointLoader, Runner

import mmssl.registry
from mmssl.utils.errors import message_of, one_line

# Before each of several errors in one message, see `Report.raise_errors`.
BULLET = '\n  - '
# What a wrong config or a wrong file raises. Anything else is a fault of the program and shows its traceback.
USER_ERRORS = (ValueError, KeyError, TypeError, AttributeError, ImportError, OSError, SyntaxError, AssertionError)
# Top-level keys that are read from the config though they are no arguments of the Runner.
OTHER_KEYS = {'custom_imports', 'tta_model', 'tta_pipeline', 'find_unused_parameters', 'model_wrapper_cfg', 'sync_bn',
              'compile', 'activation_checkpointing', 'work_dir'}  # yapf: disable

# With another value of these, a resumed run would see other images: it is refused unless that is allowed.
POSITION = ('randomness.seed', 'train_dataloader.batch_size', 'train_dataloader.sampler.source_ratio', 'world_size')
# With another value of these, it ends in other weights, as whoever changes them wants: a warning.
# A resumed run has these from the checkpoint, whatever the config says: a warning.
OVERRULED = ('optim_wrapper.optimizer', 'param_scheduler')
COMPARED = ('train_cfg.max_iters', 'train_cfg.max_epochs', 'optim_wrapper.accumulative_counts')
SYNC_BN = ('SyncBN', 'MMSyncBN', 'SyncBatchNorm', 'mmcv.SyncBN', 'mmcv.MMSyncBN')


class OptionsAction(DictAction):
    """``--cfg-options``: mmengine's parser, with an error instead of a traceback for what it cannot read."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace,
                 values: str | Sequence[Any] | None, option_string: str | None = None) -> None:
        """Check that each of ``values`` is ``key=value``, and let mmengine parse it."""
        for value in values or []:
            key, equals, _ = value.partition('=')
            if not equals or not all(part.strip() for part in key.split('.')):
                parser.error(f'argument --cfg-options: {value!r} is not of the form key=value')
            try:
                super().__call__(parser, namespace, [value], option_string)
            except (AssertionError, RecursionError):  # a stray bracket, or '(1),(2)', which it takes for one pair
                parser.error(f'argument --cfg-options: the brackets of {value!r} do not match; a list of lists is '
                             "written 'key=[[1,2],[3,4]]', in quotes")


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
        Exit code: 0, or 2 after an error of the user's (one line, or one for each of several), or 130 after Ctrl-C.
    """
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    started = False

    def setup_is_over() -> None:
        nonlocal started
        started = True

    try:
        tool(args, setup_is_over)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            # In order, or the end of one process may abort another whose threads still wait for it.
            torch.distributed.destroy_process_group()
    except KeyboardInterrupt:
        return _interrupted(args)
    except Exception as error:
        if comes_of_interrupt(error):
            return _interrupted(args)
        if started or args.debug or not isinstance(error, USER_ERRORS):
            raise
        message = message_of(error)
        if 'Original Traceback' in message:  # of a worker of the data loader: its last line is the error
            message = message.strip().splitlines()[-1]
        if BULLET in message:  # several errors of a config: one on each line
            message = BULLET.join(' '.join(line.split()) for line in message.split(BULLET)) + '\n'
        else:
            message = locate(' '.join(message.split()), getattr(args, 'loaded_config', None)) + '  '
        print(f'{Path(sys.argv[0]).name}: error: {message}(--debug shows where)', file=sys.stderr)
        return 2
    return 0


def comes_of_interrupt(error: BaseException) -> bool:
    """Whether Ctrl-C led to an error: mmengine turns one that comes while it formats the config into a SyntaxError."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        current = pending.pop()
        if isinstance(current, KeyboardInterrupt):
            return True
        if current is not None and id(current) not in seen:
            seen.add(id(current))
            pending += [current.__cause__, current.__context__]
    return False


def _interrupted(args: argparse.Namespace) -> int:
    """Say that a tool was interrupted, and how a training with a checkpoint goes on; returns the exit code."""
    cfg = getattr(args, 'loaded_config', None)
    resumable = hasattr(args, 'resume') and cfg is not None and checkpoints_in(*checkpoint_folders(cfg))
    print('interrupted' + ('; continue with --resume' if resumable else ''), file=sys.stderr)
    return 130


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
        message: Of an error while the config is built: an argument that a class does not take, a value that one of
            mmssl refuses, or an unknown type; or of the optimizer of a resumed run that does not fit.
        cfg: The config; None if it could not be read.

    Returns:
        The message, after the keys if they are found.
    """
    if message.startswith('loaded state dict') and 'group' in message:  # torch's, about an optimizer
        return ('--resume: optim_wrapper.paramwise_cfg, or which layers of the model train, is another than in the '
                f'interrupted run: {message}')
    argument = re.search(r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'", message)
    refused = re.match(r'mmssl\.(\w+): `(\w+)` ', message)
    unknown = re.match(r'(\S+) is not in the \S+ registry', message)
    if cfg is None or not (argument or refused or unknown):
        return message
    leaves = [(key, value) for key, value in _leaves(cfg) if key.split('.')[0] in keys_read()]
    if unknown:
        keys = [key for key, value in leaves if key.rpartition('.')[2] == 'type' and value == unknown[1]]
        if any(unknown[1] in registry.module_dict for registry in our_registries()):
            message = f"write type='mmssl.{unknown[1]}': {message}"
    elif refused:
        # Our messages end in what was found, which tells several nodes of one type apart.
        keys = [key for key, value in leaves if key.rpartition('.')[2] == refused[2]
                and _type_of(cfg, key) == refused[1] and message.endswith(f' got {value!r}')]  # yapf: disable
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
        ValueError: If it can't be read, isn't a checkpoint, or holds no weights.
    """
    if '://' not in path and not Path(path).is_file():
        raise FileNotFoundError(f'{key}: no file {path!r}')
    try:
        checkpoint = CheckpointLoader.load_checkpoint(path, map_location='cpu')
    except Exception as error:  # a damaged file can raise anything: pickle, zip, runtime and end-of-file errors
        raise ValueError(f'{key}: {path!r} is not a readable checkpoint ({type(error).__name__}: {error})') from error
    if not isinstance(checkpoint, dict):
        raise ValueError(f'{key}: {path!r} holds a {type(checkpoint).__name__} instead of a checkpoint')
    weights = checkpoint.get('state_dict', checkpoint)
    if not isinstance(weights, Mapping) or not any(isinstance(value, torch.Tensor) for value in weights.values()):
        raise ValueError(f'{key}: {path!r} holds no weights (`state_dict`), so it is no checkpoint of a model')
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
        if exact:
            add_weights_of_hooks(cfg, model)
    finally:
        DefaultScope._instance_dict.pop(getattr(DefaultScope.get_current_instance(), 'instance_name', None), None)
    own = model.state_dict()
    if any(name in own and own[name].shape != value.shape for name, value in state_dict.items()):
        # A bank whose size the data decide takes that of the checkpoint; all else is as before.
        with suppress(RuntimeError):
            model.load_state_dict(dict(state_dict), strict=False)
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


def add_weights_of_hooks(cfg: Config, model: torch.nn.Module) -> None:
    """Give ``model`` the weights that ``custom_hooks`` keep in it: those of the hooks with ``add_weights(model)``."""
    for node in cfg.get('custom_hooks') or []:
        kind = node.get('type') if isinstance(node, Mapping) else None
        if hasattr(HOOKS.get(kind) if isinstance(kind, str) else kind, 'add_weights'):
            HOOKS.build(node).add_weights(model)


def world_size_of(launcher: str) -> int:
    """Number of processes of the run, as the launcher's environment says, before they join."""
    names = {'slurm': 'SLURM_NTASKS', 'mpi': 'OMPI_COMM_WORLD_SIZE'}
    return int(os.environ.get(names.get(launcher, 'WORLD_SIZE'), 1))


def warn(message: str) -> None:
    """Print a warning on stderr, from the first process only."""
    ranks = [os.environ[name] for name in ('RANK', 'SLURM_PROCID', 'OMPI_COMM_WORLD_RANK') if name in os.environ]
    if not ranks or int(ranks[0]) == 0:
        print(f'warning: {message}', file=sys.stderr)


def _config_of(meta: Mapping[str, Any]) -> Config:
    try:
        return Config.fromstring(meta['cfg'], '.py')
    except Exception:  # a checkpoint of another tool; there is nothing to compare with
        return Config()


def changes_since(cfg: Config, meta: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """What keeps a resumed run from going on to the numbers that the interrupted one would have had.

    Args:
        cfg: Config of the resumed run.
        meta: ``checkpoint['meta']``, which holds the interrupted run's config as text. (``world_size`` is in it if
            ``tools/train.py`` wrote it.)

    Returns:
        One line for each setting that decides which images come next, and one for each other.
    """
    old = _config_of(meta)
    if meta.get('seed') is not None:
        old.merge_from_dict({'randomness.seed': meta['seed']})  # the seed that was drawn, where none was set
    defaults = {'optim_wrapper.accumulative_counts': 1}
    found: list[list[str]] = []
    for keys in (POSITION, COMPARED):
        found.append([])
        for key in keys:
            was, now = (_lookup(config, key, defaults.get(key)) for config in (old, cfg))
            if was is not None and was != now:
                found[-1].append(f'{key} was {was} in the interrupted run and is {now} now')
    for key in OVERRULED if 'optim_wrapper' in old else ():
        was, now = (dict(_values(_lookup(config, key), key)) for config in (old, cfg))
        changed = [name for name in {**was, **now} if was.get(name) != now.get(name)]
        if changed:
            found[1].append(f'{", ".join(changed)} is another than in the interrupted run, which changes nothing: '
                            'optimizer and schedules go on with what the checkpoint holds')
    return found[0], found[1]


def _values(node: Any, key: str) -> list[tuple[str, Any]]:
    """The settings of a dict by their keys; a list, or a dict in place of a list of one, as a whole."""
    if key == 'param_scheduler':
        return [(key, [dict(entry) for entry in (node if isinstance(node, (list, tuple)) else [node] if node else [])])]
    return [(f'{key}.{name}', value) for name, value in (node or {}).items()]


def _has_ema_hook(cfg: Config) -> bool:
    listed, named = cfg.get('custom_hooks') or [], cfg.get('default_hooks') or {}
    for hook in [*listed, *(named.values() if isinstance(named, Mapping) else [])]:
        kind = hook.get('type') if isinstance(hook, Mapping) else type(hook)
        with suppress(Exception):  # an unknown name is reported later
            kind = HOOKS.get(kind) if isinstance(kind, str) else kind
        if inspect.isclass(kind) and issubclass(kind, EMAHook):
            return True
    return False


def check_optimizer(cfg: Config, checkpoint: Mapping[str, Any]) -> None:
    """Refuse a checkpoint whose optimizer, averages or schedules are not those of the config.

    Raises:
        ValueError: If the optimizer is of another type, the checkpoint holds the averages of an EMAHook and the config
            has none, or there are not as many schedules.
    """
    key = 'optim_wrapper.optimizer.type'
    was, now = (_lookup(config, key) for config in (_config_of(checkpoint['meta']), cfg))
    if was is not None and was != now:
        raise ValueError(f'--resume: {key} was {was!r} in the interrupted run and is {now!r} now, which cannot go on '
                         'with its state; to start anew from the weights, use --cfg-options load_from=CHECKPOINT')
    if 'ema_state_dict' in checkpoint and not _has_ema_hook(cfg):
        raise ValueError('--resume: custom_hooks: the checkpoint was written with EMAHook, which saves the averages in '
                         'the place of the weights, and there is none now, so training would go on from the averages; '
                         "add dict(type='EMAHook') with the settings of the interrupted run")
    schedules, wanted = checkpoint.get('param_schedulers'), cfg.get('param_scheduler')
    wanted = wanted if isinstance(wanted, (list, tuple)) else [wanted] if wanted else []
    if wanted and schedules is None:
        raise ValueError('--resume: the checkpoint has no param_schedulers (save_param_scheduler of CheckpointHook), '
                         'so the learning rate would begin anew; set param_scheduler=None to go on without')
    if isinstance(schedules, (list, tuple)) and len(schedules) != len(wanted):
        raise ValueError(f'--resume: param_scheduler: the config has {len(wanted)} schedules, the checkpoint '
                         f'{len(schedules)}; set it back')


def _lookup(cfg: Mapping[str, Any], key: str, default: Any = None) -> Any:
    node: Any = cfg
    for name in key.split('.'):
        node = node.get(name) if isinstance(node, (Config, dict)) else None
    return default if node is None else node


def checkpoint_folders(cfg: Config) -> list[Path]:
    """The work dir, and the folder that ``default_hooks.checkpoint.out_dir`` makes of its name."""
    folders = [Path(cfg.work_dir)]
    hook = (cfg.get('default_hooks') or {}).get('checkpoint')
    out_dir = hook.get('out_dir') if isinstance(hook, (Config, dict)) else None
    if out_dir and '://' not in str(out_dir):
        folders.append(Path(out_dir) / folders[0].resolve().name)
    return folders


def checkpoints_in(*folders: str | Path) -> list[Path]:
    """Checkpoints of an earlier run, newest first; of those that are equally old, the one with the higher number."""
    found = [path for folder in folders for path in Path(folder).glob('*.pth')]
    return sorted(found, key=lambda path: (path.stat().st_mtime, _number_of(path)), reverse=True)


def _number_of(path: Path) -> int:
    """The iteration or epoch in the name of a checkpoint; -1 if there is none."""
    numbers = re.findall(r'\d+', path.stem)
    return int(numbers[-1]) if numbers else -1


def resume_candidates(cfg: Config) -> list[Path]:
    """What ``--resume`` tries, in this order.

    First the file that ``last_checkpoint`` names, unless a later one of the same kind was completed after it (the kill
    came before ``last_checkpoint`` was written), then all others from the newest on. Best checkpoints, which cannot be
    resumed, are not among them.
    """
    folders = checkpoint_folders(cfg)
    found = [path for path in checkpoints_in(*folders) if not path.name.startswith('best_')]
    try:
        named = Path((folders[0] / 'last_checkpoint').read_text(encoding='utf-8').strip())
    except (OSError, UnicodeDecodeError):
        return found
    # The work dir may have been moved or copied: what is in it comes first.
    named = next((folder / named.name for folder in folders if named.name and (folder / named.name).is_file()), named)
    if not named.is_file():
        return found
    kind = re.sub(r'\d+', '', named.stem)
    later = [path for path in found if re.sub(r'\d+', '', path.stem) == kind and _number_of(path) > _number_of(named)
             and path.stat().st_mtime >= named.stat().st_mtime]  # yapf: disable
    return [*later, named, *(path for path in found if path not in later and path != named)]


def read_training_checkpoint(path: str) -> dict[str, Any]:
    """Load a checkpoint that can be resumed.

    Raises:
        FileNotFoundError: If it doesn't exist.
        ValueError: If it is damaged, or holds weights alone.
    """
    checkpoint = read_checkpoint(path, '--resume')
    parts = ('state_dict', 'optimizer', 'meta', 'message_hub')
    absent = [name for name in parts if not isinstance(checkpoint.get(name), Mapping)]
    if 'meta' not in absent:
        absent += [f'meta[{name!r}]' for name in ('iter', 'epoch') if not isinstance(checkpoint['meta'].get(name), int)]
    if absent:
        raise ValueError(f'--resume: {path!r} has no {" and no ".join(absent)}: only a checkpoint of a training run '
                         f'can be resumed; to start from its weights, use --cfg-options load_from={path}')
    return checkpoint


def newest_checkpoint(cfg: Config) -> tuple[str, dict[str, Any]]:
    """The newest checkpoint of the work dir that is whole; says so where that is not the newest file.

    Raises:
        FileNotFoundError: If there is none.
        ValueError: If none can be read.
    """
    candidates = resume_candidates(cfg)
    if not candidates:
        raise FileNotFoundError(f'--resume: nothing to resume from: no checkpoint in the work dir {cfg.work_dir!r}')
    errors = []
    for path in candidates:
        try:
            checkpoint = read_training_checkpoint(str(path))
        except (OSError, ValueError) as error:
            errors.append(' '.join(str(error).removeprefix('--resume: ').split()))
            continue
        for error in errors:
            warn(f'--resume: {error}')
        if errors or not (Path(cfg.work_dir) / 'last_checkpoint').is_file():
            warn(f'--resume: continues from {path.name}, the newest checkpoint in {str(path.parent)!r} that is whole')
        return str(path), checkpoint
    raise ValueError(f'--resume: no checkpoint in the work dir {cfg.work_dir!r} can be resumed: {"; ".join(errors)}')


def warn_of_lost_gradients(cfg: Config) -> None:
    """Say so if checkpoints come in the middle of an accumulation: its gradients are in none of them."""
    hook, wrapper = ((cfg.get(name) or {}) for name in ('default_hooks', 'optim_wrapper'))
    hook, counts = hook.get('checkpoint') or {}, wrapper.get('accumulative_counts', 1)
    interval = hook.get('interval', -1)
    if hook.get('by_epoch', True) or not isinstance(counts, int) or not isinstance(interval, int) or interval < 1:
        return
    if counts > 1 and interval % counts:
        warn(f'default_hooks.checkpoint.interval={interval} is not a multiple of optim_wrapper.accumulative_counts='
             f'{counts}: the gradients of an unfinished accumulation are in no checkpoint, so a run that is resumed '
             f'ends in other weights; {-(-interval // counts) * counts} would do')


def settle_resume(cfg: Config, resume: str | None, allow_changes: bool = False) -> None:
    """Find and check what ``--resume`` continues from, or make sure that a new run overwrites nothing.

    Args:
        cfg: Config; ``resume`` and ``load_from`` are set in it, and the seed of the interrupted run if it has none.
        resume: ``None`` (the config decides), ``'auto'`` (the newest whole checkpoint of the work dir) or a file.
        allow_changes: Whether to go on though seed, batch size, source ratio or number of processes are others than
            before. Default: False.

    Raises:
        FileNotFoundError: If there is nothing to resume from, or ``load_from`` does not exist.
        ValueError: If the checkpoint is damaged, of another model, or of a run that saw other images.
        FileExistsError: If the work dir holds checkpoints and the run isn't to be resumed.
    """
    if resume is None and cfg.get('resume'):
        resume = cfg.get('load_from') or 'auto'
    if resume is None:
        used = checkpoints_in(*checkpoint_folders(cfg))
        if used:
            raise FileExistsError(f'work_dir: {str(used[0].parent)!r} holds checkpoints of an earlier run (such as '
                                  f'{used[0].name}), which this run would overwrite: continue that run with --resume, '
                                  'or name another folder with --work-dir')
        weights = cfg.get('load_from')
        if weights and '://' not in weights:
            read_checkpoint(weights, 'load_from')
        return
    if resume == 'auto':
        resume, checkpoint = newest_checkpoint(cfg)
    else:
        checkpoint = read_training_checkpoint(resume)
    check_weights(cfg, checkpoint['state_dict'], '--resume', exact=True)
    check_optimizer(cfg, checkpoint)
    meta = checkpoint['meta']
    if (cfg.get('randomness') or {}).get('seed') is None and meta.get('seed') is not None:
        # mmengine takes it over as well, but after it has built the sampler with another one.
        cfg.merge_from_dict({'randomness': dict(cfg.get('randomness') or {}, seed=meta['seed'])})
    position, others = changes_since(cfg, meta)
    kind = _lookup(cfg, 'train_dataloader.dataset.type')
    if isinstance(kind, str) and kind.rpartition('.')[2] != 'MultiSourceDataset':
        others.append(f'train_dataloader.dataset is a {kind}: the images are those that the interrupted run would have '
                      'seen, but random augmentations are others; one source of a mmssl.MultiSourceDataset keeps them')
    if position and not allow_changes:
        raise ValueError(f'--resume: {"; ".join(position)}: it would not see the images that the interrupted run would '
                         'have seen. Set it back, or give --allow-changes to go on all the same')
    for line in [*position, *others]:
        warn(f'--resume: {line}')
    cfg.resume = True
    cfg.load_from = resume
