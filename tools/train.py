"""Train a model from a config."""

import argparse
import logging
import os
import sys
from collections.abc import Callable

# Threads that wait for each other sleep instead of spinning: on cores that are shared, be it with workers of the data
# loader, spinning keeps them busy with nothing. Read when torch is loaded.
os.environ.setdefault('OMP_WAIT_POLICY', 'PASSIVE')

from mmssl.utils.stack import trust_checkpoints

trust_checkpoints()  # has to be settled before torch reads a checkpoint

from mmengine.config import Config  # noqa: E402
from mmengine.device import get_device  # noqa: E402
from mmengine.dist import get_rank  # noqa: E402
from mmengine.registry import RUNNERS  # noqa: E402
from mmengine.runner import Runner  # noqa: E402

from mmssl.datasets.samplers import described_elsewhere  # noqa: E402
from mmssl.engine.resumable import make_resumable  # noqa: E402
from mmssl.utils.checks import quick_check  # noqa: E402
from mmssl.utils.cli import (  # noqa: E402
    SetupIsOver,
    add_common_arguments,
    load_config,
    prepare_devices,
    run_tool,
    settle_resume,
    warn,
    warn_of_lost_gradients,
    world_size_of,
)
from mmssl.utils.lifetime import claim_work_dir, end_with_launcher  # noqa: E402

AMP_WRAPPERS = {'OptimWrapper': 'AmpOptimWrapper'}


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description='Train a model from a config')
    parser.add_argument('config', help='path of the config')
    parser.add_argument('--work-dir', help='folder for logs and checkpoints (default: work_dirs/<name of the config>)')
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
        help='continue from this checkpoint, or from the last one in the work dir')
    parser.add_argument(
        '--allow-changes',
        action='store_true',
        help='resume though seed, batch size, source ratio or number of processes are others than before')
    parser.add_argument('--amp', action='store_true', help='train in mixed precision (needs a GPU)')
    parser.add_argument(
        '--auto-scale-lr',
        action='store_true',
        help='scale the learning rate by (batch size of all GPUs) / auto_scale_lr.base_batch_size')
    add_common_arguments(parser)
    return parser.parse_args(argv)


def use_amp(cfg: Config) -> None:
    """Switch the optimizer wrapper to its mixed-precision form.

    Raises:
        ValueError: Without a GPU, or for a wrapper that has no such form.
    """
    if get_device() == 'cpu':
        raise ValueError('--amp: mixed precision needs a GPU, and none is visible; leave --amp out to train on the CPU')
    kind = cfg.optim_wrapper.get('type', 'OptimWrapper')
    if kind not in AMP_WRAPPERS.values():
        if kind not in AMP_WRAPPERS:
            raise ValueError(f'--amp: optim_wrapper.type is {kind!r}; it has to be one of {sorted(AMP_WRAPPERS)}')
        cfg.optim_wrapper.type = AMP_WRAPPERS[kind]
    cfg.optim_wrapper.setdefault('loss_scale', 'dynamic')


def check_amp(cfg: Config) -> None:
    """Refuse a config in mixed precision where there is no GPU for it.

    Raises:
        ValueError: Naming the key.
    """
    kind = (cfg.get('optim_wrapper') or {}).get('type')
    name = kind.rpartition('.')[2] if isinstance(kind, str) else getattr(kind, '__name__', '')
    if name.startswith('Amp') and get_device() == 'cpu':
        raise ValueError(f'optim_wrapper.type: {name} trains in mixed precision, which needs a GPU, and none is '
                         f'visible; on the CPU, use {name.removeprefix("Amp")}')


def use_auto_scale_lr(cfg: Config) -> None:
    """Turn on mmengine's scaling of the learning rate.

    Raises:
        ValueError: If the config doesn't say for which batch size its learning rate is.
    """
    if 'base_batch_size' not in (cfg.get('auto_scale_lr') or {}):
        raise ValueError('--auto-scale-lr: the config has no auto_scale_lr.base_batch_size, the batch size of all GPUs '
                         'together that its learning rate is meant for')
    cfg.auto_scale_lr.enable = True


def not_about_a_teacher(record: logging.LogRecord) -> bool:
    """Filter of mmengine's warning, one for each parameter, that a teacher's are not optimized: they never are."""
    message = record.getMessage()
    return not (message.startswith('teacher.') and 'is skipped since its requires_grad=False' in message)


def train(args: argparse.Namespace, setup_is_over: Callable[[], None]) -> None:
    """Check everything that can be checked, then build the runner (which creates the work dir) and train."""
    end_with_launcher()
    cfg = load_config(args)
    if args.amp:
        use_amp(cfg)
    check_amp(cfg)
    if args.auto_scale_lr:
        use_auto_scale_lr(cfg)
    cfg.world_size = world_size_of(cfg.launcher)  # into the checkpoint, for the next `--resume`
    settle_resume(cfg, args.resume, args.allow_changes)
    warn_of_lost_gradients(cfg)
    report = quick_check(cfg, world_size=cfg.world_size)
    for warning in report.warnings:
        warn(str(warning))
    prepare_devices(cfg)
    if get_rank() == 0:
        claim_work_dir(cfg.work_dir)
    runner = RUNNERS.build(cfg) if 'runner_type' in cfg else Runner.from_cfg(cfg)
    for source in report.sources:
        runner.logger.info(f'source {source}')
    runner.register_hook(SetupIsOver(setup_is_over))
    runner.logger.addFilter(not_about_a_teacher)
    for line in make_resumable(runner):  # killed and resumed, it ends in the same weights
        runner.logger.info(line)
    with described_elsewhere():
        runner.train()


if __name__ == '__main__':
    sys.exit(run_tool(train, parse_args()))
