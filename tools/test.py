"""Evaluate a checkpoint."""

import argparse
import os
import sys
from collections.abc import Callable

# Threads that wait for each other sleep instead of spinning: on cores that are shared, be it with workers of the data
# loader, spinning keeps them busy with nothing. Read when torch is loaded.
os.environ.setdefault('OMP_WAIT_POLICY', 'PASSIVE')

from mmssl.utils.stack import trust_checkpoints

trust_checkpoints()  # has to be settled before torch reads a checkpoint

from mmengine.config import Config  # noqa: E402
from mmengine.registry import RUNNERS  # noqa: E402
from mmengine.runner import Runner  # noqa: E402

from mmssl.utils.cli import (  # noqa: E402
    SetupIsOver,
    add_common_arguments,
    check_weights,
    load_config,
    prepare_devices,
    read_checkpoint,
    run_tool,
)


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description='Evaluate a checkpoint')
    parser.add_argument('config', help='path of the config that the checkpoint was trained with')
    parser.add_argument('checkpoint', help='path of the checkpoint')
    parser.add_argument('--work-dir', help='folder for the metrics (default: work_dirs/<name of the config>)')
    parser.add_argument('--out', help='folder for the predicted masks')
    parser.add_argument('--show', action='store_true', help='show the predictions in a window')
    parser.add_argument('--show-dir', help='folder for pictures of the predictions')
    parser.add_argument('--wait-time', type=float, default=2, help='seconds for each shown picture')
    parser.add_argument('--tta', action='store_true', help='augment at test time (tta_model and tta_pipeline)')
    add_common_arguments(parser)
    return parser.parse_args(argv)


def use_visualization(cfg: Config, args: argparse.Namespace) -> None:
    """Turn on the hook that draws predictions.

    Raises:
        KeyError: If the config has no such hook or no visualizer.
    """
    if 'visualization' not in (cfg.get('default_hooks') or {}):
        raise KeyError('--show, --show-dir: the config has no default_hooks.visualization, such as '
                       "dict(type='SegVisualizationHook')")
    cfg.default_hooks.visualization.update(draw=True, interval=1)  # every image, not each 50th
    if args.show:
        cfg.default_hooks.visualization.update(show=True, wait_time=args.wait_time)
    if args.show_dir:
        if cfg.get('visualizer') is None:
            raise KeyError("--show-dir: the config has no visualizer, such as dict(type='SegLocalVisualizer')")
        cfg.visualizer['save_dir'] = args.show_dir


def use_tta(cfg: Config) -> None:
    """Wrap the model and replace the pipeline as ``tta_model`` and ``tta_pipeline`` say.

    Raises:
        KeyError: If the config lacks one of them.
    """
    for key in ('tta_model', 'tta_pipeline'):
        if key not in cfg:
            raise KeyError(f'--tta: the config has no {key}, which says how to augment; configs/_base_/datasets/'
                           "voc2012.py has a tta_pipeline, and tta_model is dict(type='SegTTAModel')")
    cfg.test_dataloader.dataset.pipeline = cfg.tta_pipeline
    cfg.tta_model.module = cfg.model
    cfg.model = cfg.tta_model


def keep_masks(cfg: Config, folder: str) -> None:
    """Let every metric that can write its predictions do so."""
    evaluators = cfg.test_evaluator if isinstance(cfg.test_evaluator, (list, tuple)) else [cfg.test_evaluator]
    for evaluator in evaluators:
        evaluator.update(output_dir=folder, keep_results=True)


def test(args: argparse.Namespace, setup_is_over: Callable[[], None]) -> None:
    """Evaluate."""
    cfg = load_config(args)
    for key in ('test_dataloader', 'test_cfg', 'test_evaluator'):
        if cfg.get(key) is None:
            raise KeyError(f'the config has no {key}, which an evaluation needs')
    checkpoint = read_checkpoint(args.checkpoint, 'checkpoint')
    # Without this, a checkpoint of another model gives a random mIoU and one line in the log.
    check_weights(cfg, checkpoint.get('state_dict', checkpoint), 'checkpoint', exact=False)
    cfg.load_from = args.checkpoint
    cfg.resume = False
    if args.show or args.show_dir:
        use_visualization(cfg, args)
    if args.tta:
        use_tta(cfg)
    if args.out is not None:
        keep_masks(cfg, args.out)
    prepare_devices(cfg)
    runner = RUNNERS.build(cfg) if 'runner_type' in cfg else Runner.from_cfg(cfg)
    runner.register_hook(SetupIsOver(setup_is_over))
    runner.test()


if __name__ == '__main__':
    sys.exit(run_tool(test, parse_args()))
