"""Whole training runs through ``tools/train.py``, each in a process of its own that can be killed."""

import importlib.util
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip('mmseg')

from mmengine.config import config as config_module
from mmengine.hooks import Hook
from mmengine.runner import Runner
from mmengine.runner import runner as runner_module
from mmengine.utils import ManagerMixin
from yapf.yapflib import yapf_api

REPO_ROOT = Path(__file__).resolve().parents[2]
# What a checkpoint holds of a run's numbers.
CONTINUED = ('state_dict', 'ema_state_dict', 'optimizer', 'param_schedulers')
# What differs between two runs of the same numbers.
TIMES = ('time', 'data_time', 'eta')

SHARED = """
default_scope = 'mmseg'
custom_imports = dict(imports=['mmssl'], allow_failed_imports=False)
root, classes, palette = {root!r}, {classes!r}, {palette!r}
metainfo = dict(classes=classes, palette=palette)
segmentor = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(type='SegDataPreProcessor', mean=[127.] * 3, std=[60.] * 3, bgr_to_rgb=True, size=(32, 32),
                           pad_val=0, seg_pad_val=255),
    backbone=dict(type='ResNetV1c', depth=18, stem_channels=8, base_channels=4, num_stages=4, out_indices=(0, 1, 2, 3),
                  strides=(1, 2, 1, 1), norm_eval=False, style='pytorch', norm_cfg=dict(type='BN')),
    decode_head=dict(type='FCNHead', in_channels=32, in_index=3, channels=8, num_convs=1, num_classes=len(classes),
                     concat_input=False, dropout_ratio=0.5, norm_cfg=dict(type='BN')),
    train_cfg=dict(), test_cfg=dict(mode='whole'))
load = dict(type='LoadImageFromFile')
geometry = [dict(type='RandomResize', scale=(48, 40), ratio_range=(0.8, 1.5), keep_ratio=True),
            dict(type='RandomCrop', crop_size=(32, 32)), dict(type='RandomFlip', prob=0.5)]
photometric = dict(type='PhotoMetricDistortion')
labeled = dict(type='mmssl.SplitSegDataset', data_root=root, ann_file='splits/labeled.txt', metainfo=metainfo,
               data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'))
val_dataloader = dict(
    batch_size=1, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(type='mmssl.SplitSegDataset', data_root=root, ann_file='splits/val.txt', metainfo=metainfo,
                 data_prefix=dict(img_path='img_dir/val', seg_map_path='ann_dir/val'),
                 pipeline=[load, dict(type='LoadAnnotations'), dict(type='PackSegInputs')]))
val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
val_cfg = dict(type='ValLoop')
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01, momentum=0.9))
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0., begin=0, end=12, by_epoch=False)]
train_cfg = dict(type='IterBasedTrainLoop', max_iters=12, val_interval=4)
default_hooks = dict(
    logger=dict(type='LoggerHook', interval=1, log_metric_by_epoch=False),
    checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=3, max_keep_ckpts=1, save_best='mIoU'))
visualizer = dict(type='SegLocalVisualizer', vis_backends=[dict(type='LocalVisBackend')], name='visualizer')
log_processor = dict(by_epoch=False)
randomness = dict(seed=3)
"""

# A stock model on labeled images: one source, so that augmentation is a function of the draw.
SUPERVISED = """
model = segmentor
train_dataloader = dict(
    batch_size=2, num_workers={workers}, persistent_workers={workers} > 0,
    sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1]),
    dataset=dict(type='mmssl.MultiSourceDataset', sources=dict(labeled=dict(
        **labeled, pipeline=[load, dict(type='LoadAnnotations'), *geometry, photometric,
                             dict(type='PackSegInputs')]))))
"""


# A semi-supervised model with mixing, dropout and strong augmentation.
SEMI = """
branches = ['sup', 'unsup_weak', 'unsup_strong']
pack = dict(type='mmssl.PackSemiSegInputs')
model = dict(
    type='mmssl.{method}', segmentor=segmentor, semi_train_cfg={semi_train_cfg},
    data_preprocessor=dict(type='mmssl.MultiBranchDataPreprocessor', data_preprocessor=segmentor['data_preprocessor']))
custom_hooks = {custom_hooks}
train_dataloader = dict(
    batch_size=3, num_workers={workers}, persistent_workers={workers} > 0,
    sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1, 2]),
    dataset=dict(type='mmssl.MultiSourceDataset', sources=dict(
        labeled=dict(**labeled, pipeline=[
            load, dict(type='LoadAnnotations'), *geometry,
            dict(type='mmssl.MultiBranch', branches=branches, sup=[dict(type='PackSegInputs')])]),
        unlabeled=dict(
            type='mmssl.UnlabeledImageDataset', data_root=root, img_path='img_dir/train',
            ann_file='splits/unlabeled.txt', pipeline=[
                load, dict(type='mmssl.TrackPadding'), *geometry,
                dict(type='mmssl.MultiBranch', branches=branches, unsup_weak=[pack],
                     unsup_strong=[photometric, pack])]))))
"""

# What each registered segmentor needs in `semi_train_cfg` and `custom_hooks`; a new one needs a line here.
FPL, CUTMIX = dict(type='mmssl.FPLLoss'), dict(type='mmssl.CutMix')
TEACHER = dict(type='mmssl.MeanTeacherHook', momentum=0.01)
METHODS = {
    'CrossPseudoSupervision': (dict(unsup_loss=FPL, mix=CUTMIX), []),
    'MeanTeacherSegmentor': (
        dict(unsup_loss=FPL, mix=CUTMIX, feature_perturbation=dict(type='mmssl.FeatureDropout', drop_prob=0.5)),
        [TEACHER]),
    'AELSegmentor': (dict(unsup_loss=FPL), [TEACHER, dict(type='mmssl.AELHook')]),
}

# LayerMatch as it ships, both hooks and the averaged weights of the runs from scratch, on a few digits: the averaged
# layer starts anew at 0, 5 and 10, and moves visibly in between.
LAYERMATCH = """
_base_ = [{base!r}]
custom_hooks = [
    dict(type='EMAHook', momentum=0.1), dict(type='mmssl.PseudoLabelDiagnosticsHook', interval=2),
    dict(type='mmssl.GradReLUHook', layers=['head.fc']),
    dict(type='mmssl.EMAHeadHook', layer='head.fc', momentum=0.5, reset_interval=5, lr=0.1)]
train_dataloader = dict(batch_size=8, num_workers={workers}, persistent_workers={workers} > 0)
val_dataloader = dict(num_workers=0, persistent_workers=False)
train_cfg = dict(max_iters=12, val_interval=4)
default_hooks = dict(logger=dict(interval=1), checkpoint=dict(interval=3, max_keep_ckpts=1))
"""


def write_digits(root: Path) -> None:
    """MNIST's four files with 4 training and 2 test images of each class: noise, and a bright row for the class."""
    rng = np.random.default_rng(0)
    root.mkdir()
    for split, count in dict(train=40, t10k=20).items():
        labels = (np.arange(count) % 10).astype(np.uint8)
        images = rng.integers(0, 120, (count, 28, 28), dtype=np.uint8)
        images[np.arange(count), 2 * labels + 4] += 120
        for name, values in (('images', images), ('labels', labels)):
            header = bytes([0, 0, 8, values.ndim]) + np.array(values.shape, '>i4').tobytes()
            (root / f'{split}-{name}-idx{values.ndim}-ubyte').write_bytes(header + values.tobytes())


def load_tool() -> Any:
    """``tools/train.py`` as a module."""
    spec = importlib.util.spec_from_file_location('train_tool', REPO_ROOT / 'tools' / 'train.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def spare_time() -> None:
    """Leave out what takes most of the time of a tiny run: formatting the config, and asking compilers who they are."""
    yapf_api.FormatCode = config_module.FormatCode = lambda text, **_: (text, True)
    runner_module.collect_env = dict


def forget_runs(kind: type = ManagerMixin) -> None:
    """Drop loggers, visualizers and the like of other tests, which a new process would not know."""
    kind._instance_dict.clear()
    for derived in kind.__subclasses__():
        forget_runs(derived)


class Process:
    """``tools/train.py`` in a forked process: as a command line, without the seconds of its imports."""

    def __init__(self, arguments: list[str], log: Path, before: Callable[[], None] | None = None,
                 env: dict[str, str] | None = None) -> None:
        self.log = log
        self.pid = os.fork()
        if self.pid:
            return
        code = 1
        try:  # never let the child return into pytest
            os.setpgid(0, 0)
            out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            sys.stdout = os.fdopen(1, 'w', buffering=1, closefd=False)
            sys.stderr = os.fdopen(2, 'w', buffering=1, closefd=False)
            os.environ.update(env or {})
            forget_runs()
            tool = load_tool()
            spare_time()
            if before is not None:
                before()
            code = tool.run_tool(tool.train, tool.parse_args(arguments))
        except SystemExit as error:
            code = error.code
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def wait(self) -> int:
        """Exit code; minus the signal if one ended it."""
        status = os.waitpid(self.pid, 0)[1]
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # the workers of a killed process
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> int:
        """SIGKILL from outside."""
        os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def text(self) -> str:
        """What it printed."""
        return self.log.read_text()


def die() -> None:
    """End this process as the kernel or a cluster does."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_iteration(at: int) -> None:
    """Let this process kill itself when it is about to begin iteration ``at``."""

    class Killer(Hook):
        priority = 'VERY_HIGH'

        def before_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None) -> None:
            if runner.iter == at:
                die()

    train = Runner.train

    def armed(runner: Runner) -> Any:
        runner.register_hook(Killer())
        return train(runner)

    Runner.train = armed


class Lab:
    """Writes configs and runs them."""

    def __init__(self, folder: Path, data: SimpleNamespace) -> None:
        self.folder, self.data, self.runs = folder, data, 0

    def write(self, body: str, name: str = 'config.py', **values: Any) -> Path:
        """A config: the shared part, and ``body`` with ``values`` filled in."""
        data = self.data
        shared = SHARED.format(root=str(data.root), classes=data.classes, palette=data.palette)
        for key, value in {'workers': 0, **values}.items():
            body = body.replace(f'{{{key}}}', str(value))
        path = self.folder / name
        path.write_text(shared + body)
        return path

    def start(self, config: Path, work_dir: str, *arguments: str, before: Callable[[], None] | None = None,
              env: dict[str, str] | None = None) -> Process:
        """Start a run."""
        self.runs += 1
        command = [str(config), '--work-dir', str(self.folder / work_dir), *arguments]
        return Process(command, self.folder / f'run{self.runs}.log', before, env)

    def run(self, *args: Any, **kwargs: Any) -> str:
        """Run to the end, successfully; returns what was printed."""
        process = self.start(*args, **kwargs)
        assert process.wait() == 0, process.text()
        return process.text()

    def run_pair(self, config: Path, work_dir: str, *arguments: str, at: int | None = None) -> None:
        """Run in two processes that talk over gloo, to the end or until both kill themselves at an iteration."""
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        shared = dict(WORLD_SIZE='2', LOCAL_WORLD_SIZE='2', MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
        before = None if at is None else partial(die_at_iteration, at)
        arguments = ('--launcher', 'pytorch', *arguments)
        pair = [self.start(config, work_dir, *arguments, before=before, env=dict(shared, RANK=rank, LOCAL_RANK=rank))
                for rank in ('0', '1')]  # yapf: disable
        codes = [process.wait() for process in pair]
        # The one that dies later may first hear that the other is gone.
        assert codes == [0, 0] if at is None else -signal.SIGKILL in codes, pair[0].text() + pair[1].text()

    def killed(self, config: Path, work_dir: str, *arguments: str, at: int, **kwargs: Any) -> None:
        """Run until the process kills itself, when it is about to begin iteration ``at``, counted from 0."""
        process = self.start(config, work_dir, *arguments, before=partial(die_at_iteration, at), **kwargs)
        assert process.wait() == -signal.SIGKILL, process.text()

    def checkpoint(self, work_dir: str, name: str) -> dict[str, Any]:
        """A checkpoint of a run."""
        return torch.load(self.folder / work_dir / name, map_location='cpu', weights_only=False)

    def assert_same(self, work_dir: str, other: str, name: str = 'iter_12.pth') -> None:
        """Two runs end in the same weights, optimizer, schedule and logged values, to the last bit."""
        first, second = self.checkpoint(work_dir, name), self.checkpoint(other, name)
        for part in [key for key in CONTINUED if key in first or key in second]:
            assert differences(first[part], second[part], part) == []
        assert self.logged(work_dir) == self.logged(other)

    def logged(self, work_dir: str) -> list[dict[str, Any]]:
        """Logged values of all parts of a run, without times; where two parts log a step, they must agree."""
        values: dict[tuple, dict[str, Any]] = {}
        for path in sorted((self.folder / work_dir).glob('*/vis_data/scalars.json')):
            for line in path.read_text().splitlines():
                entry = {key: value for key, value in json.loads(line).items() if key not in TIMES}
                key = (entry['step'], 'lr' in entry)
                assert values.setdefault(key, entry) == entry
        return [values[key] for key in sorted(values)]


def differences(first: Any, second: Any, key: str = '') -> list[str]:
    """Keys under which two checkpoints differ, to the last bit."""
    if isinstance(first, torch.Tensor):
        same = isinstance(second, torch.Tensor) and torch.equal(first, second)
        return [] if same else [key]
    if isinstance(first, dict):
        if first.keys() != second.keys():
            return [f'{key}: {sorted(first.keys() ^ second.keys())}']
        return [line for name in first for line in differences(first[name], second[name], f'{key}.{name}')]
    if isinstance(first, (list, tuple)):
        if len(first) != len(second):
            return [key]
        pairs = enumerate(zip(first, second, strict=True))
        return [line for i, (a, b) in pairs for line in differences(a, b, f'{key}.{i}')]
    return [] if first == second else [f'{key}: {first} {second}']


@pytest.fixture
def supervised() -> str:
    """Config of a supervised run."""
    return SUPERVISED


@pytest.fixture
def semi() -> Callable[[str], tuple[str, dict[str, Any]]]:
    """Config of a run of a method by its class name, and the values to fill in."""

    def make(method: str) -> tuple[str, dict[str, Any]]:
        semi_train_cfg, custom_hooks = METHODS[method]
        return SEMI, dict(method=method, semi_train_cfg=semi_train_cfg, custom_hooks=custom_hooks)

    return make


@pytest.fixture
def layermatch(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes the config of a LayerMatch classifier."""
    write_digits(lab.folder / 'mnist')
    monkeypatch.setenv('MNIST_ROOT', str(lab.folder / 'mnist'))
    base = REPO_ROOT / 'configs/layermatch/mnist/layermatch_wrn10-2_cpu-1k_mnist-10.py'

    def write(workers: int = 0) -> Path:
        config = lab.folder / 'layermatch.py'
        config.write_text(LAYERMATCH.format(base=str(base), workers=workers))
        return config

    return write


@pytest.fixture
def lab(tmp_path: Path, make_segmentation_data: Callable[..., SimpleNamespace], monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A folder for runs on a small data set: 12 training images (4 labeled), 4 for validation."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '')
    return Lab(tmp_path, make_segmentation_data(size=(48, 40)))
