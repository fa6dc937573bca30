"""RGD-PLL and the baselines under the runner: resuming, other data, export, and what is checked before training."""

import importlib.util
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('mmpretrain')
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.runner import Runner

from mmssl.engine.resumable import make_resumable
from mmssl.utils.checks import quick_check

ROOT = Path(__file__).resolve().parents[2]
METHODS = ('cc', 'proden', 'lws', 'cavl', 'crdpll', 'pico')


def leaf(name: str) -> tuple[dict, list[dict]]:
    """What the shipped leaf of a method says: arguments of the model, and hooks."""
    cfg = Config.fromfile(str(ROOT / f'configs/_base_/methods/{name}.py'))
    hooks = cfg.get(f'{name}_hook', [])
    return cfg[name].to_dict(), list(hooks) if isinstance(hooks, list) else [hooks.to_dict()]


@pytest.fixture
def partial_config(classification_config: Callable, tmp_path: Path) -> Callable[..., Config]:
    """A config that trains on 18 images with candidate sets for 6 iterations of 6, with checkpoints at 3 and 6."""

    def make(method: str, name: str = 'run', sets: str = '0 1 2', hooks: list[dict] | None = None,
             **changes: Any) -> Config:
        cfg = classification_config(name)
        arguments, own_hooks = leaf(method)
        arguments.update(changes)
        cfg.model = dict(type='mmssl.PartialLabelClassifier', classifier=cfg.model.classifier, **arguments)
        cfg.custom_hooks = [dict(type='mmssl.IterationSeedHook'), *(own_hooks if hooks is None else hooks)]
        path = tmp_path / f'{sets.replace(" ", "")}.txt'
        path.write_text('0 1 2\n' * 17 + f'{sets}\n')
        dataset = cfg.train_dataloader.dataset.sources.unlabeled
        last = dataset.pipeline[-1]
        kind = cfg.model.to_dict() if isinstance(cfg.model, Config) else cfg.model
        from mmssl.models.classifiers import PartialLabelClassifier
        branches = list(PartialLabelClassifier.branches_read(kind))
        last.branches = branches
        for branch in ('unsup_weak', 'unsup_strong'):
            if branch not in branches:
                last.pop(branch)
        cfg.train_dataloader.batch_size = 6
        cfg.train_dataloader.sampler = dict(type='mmssl.MultiSourceSampler', source_ratio=[1])
        cfg.train_dataloader.dataset.sources = dict(
            labeled=dict(type='mmssl.PartialLabelDataset', candidate_file=str(path), dataset=dataset))
        return cfg

    return make


def train(cfg: Config) -> Runner:
    runner = Runner.from_cfg(cfg)
    make_resumable(runner)
    runner.train()
    return runner


def resumed_from(cfg: Config, whole: Config) -> Config:
    cfg.load_from, cfg.resume = str(Path(whole.work_dir) / 'iter_3.pth'), True
    return cfg


def state(cfg: Config, name: str) -> dict:
    return torch.load(Path(cfg.work_dir) / name, map_location='cpu', weights_only=False)['state_dict']


@pytest.mark.parametrize('method', METHODS)
def test_a_resumed_run_ends_in_the_same_numbers(partial_config: Callable, method: str) -> None:
    whole = partial_config(method, 'whole')
    quick_check(whole)
    runner = train(whole)
    loss = 'complementary_loss' if method == 'crdpll' else 'prediction_loss'
    assert {f'train/{loss}', 'train/target_acc', 'train/candidate_entropy'} <= set(runner.message_hub.log_scalars)
    resumed = resumed_from(partial_config(method, 'resumed'), whole)
    train(resumed)
    wanted, found, before = state(whole, 'iter_6.pth'), state(resumed, 'iter_6.pth'), state(whole, 'iter_3.pth')
    assert wanted.keys() == found.keys()
    for key, value in wanted.items():
        assert torch.equal(value, found[key]), key
    if method != 'cc':
        values = wanted['objective.targets.values']
        assert values.shape == (18, 3) and (values > 0).any(1).all() and values.isfinite().all()
        assert not torch.equal(values, before['objective.targets.values'])
    if method == 'pico':
        # Prototypes begin after a pass of 3 iterations; the momentum encoder has a projection of its own.
        assert not before['objective.targets.values'].any() and before['objective.prototypes'].any()
        assert wanted['objective.enqueued'] == 36 and wanted['teacher_updates'] == 6
        ours, average = (wanted[f'objective.{name}.0.weight'] for name in ('projection', 'teacher_projection'))
        assert not torch.equal(ours, average)
        assert not torch.equal(average, before['objective.teacher_projection.0.weight'])


def test_other_data_is_refused_on_resume_and_begins_anew_otherwise(partial_config: Callable, tmp_path: Path) -> None:
    first = partial_config('proden', 'first', hooks=[dict(type='mmssl.SampleTargetsHook'),
                                                     dict(type='EMAHook', momentum=0.1)])
    train(first)
    other = resumed_from(partial_config('proden', 'other', sets='1 2'), first)
    with pytest.raises(ValueError, match=r'are those of .*012\.txt \(18 samples.* but .* has .*/12\.txt \(18 samples'):
        train(other)
    new = partial_config('proden', 'new', sets='1 2')
    new.load_from, new.train_cfg.max_iters = str(Path(first.work_dir) / 'iter_6.pth'), 1
    runner = train(new)
    seen = (runner.model.objective.targets.values > 0).any(1)
    assert seen.sum() == 6 and runner.model.objective.targets.described().startswith(str(tmp_path / '12.txt'))
    # The same file in another folder is the same data.
    again = resumed_from(partial_config('proden', 'again'), first)
    (tmp_path / 'moved').mkdir()
    path = again.train_dataloader.dataset.sources.labeled.candidate_file
    shutil.copy(path, tmp_path / 'moved')
    again.train_dataloader.dataset.sources.labeled.candidate_file = str(tmp_path / 'moved' / Path(path).name)
    train(again)
    assert 'moved' in bytes(state(again, 'iter_6.pth')['objective.targets.origin'].tolist()).decode()
    with_cc = partial_config('cc', 'cc')
    train(with_cc)
    with pytest.raises(ValueError, match='is of a run with another objective'):
        train(resumed_from(partial_config('lws', 'lws'), with_cc))


def test_proden_with_a_teacher_on_the_strong_view(partial_config: Callable) -> None:
    hooks = [dict(type='mmssl.MeanTeacherHook', momentum=0.1), dict(type='mmssl.SampleTargetsHook')]
    cfg = partial_config('proden', hooks=hooks, semi_train_cfg=dict(teacher='ema'),
                         objective=dict(type='mmssl.PRODENLoss', branch='unsup_strong'))
    quick_check(cfg)
    runner = train(cfg)
    assert runner.model.num_teacher_updates == 6


@pytest.mark.parametrize('method', ['rgd_pll', 'proden', 'pico'])
def test_export_is_the_trained_classifier_alone(
    partial_config: Callable, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No teacher, estimator, targets, prototypes or queue; and the checkpoint is evaluated without its data set."""
    monkeypatch.chdir(tmp_path)
    cfg = partial_config(method)
    cfg.train_cfg.max_iters = 3
    Path('own.py').write_text(cfg.pretty_text)
    train(cfg)
    trained = state(cfg, 'iter_3.pth')
    others = {key.split('.')[0] for key in trained} - {'student'}
    assert others & {'teacher', 'estimator', 'objective'}
    spec = importlib.util.spec_from_file_location('export_tool', ROOT / 'tools/export_student.py')
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    tool.export(tool.parse_args([str(Path(cfg.work_dir) / 'iter_3.pth'), '--out', 'out']))
    plain = torch.load('out/student.pth', weights_only=True)
    assert {f'student.{key}' for key in plain['state_dict']} == {key for key in trained if key.startswith('student.')}
    assert all(torch.equal(value, trained[f'student.{key}']) for key, value in plain['state_dict'].items())
    assert 'mmssl' not in Path('out/student.py').read_text()
    assert plain['meta']['dataset_meta']['classes'] == ['blue', 'green', 'red']
    cfg.load_from, cfg.work_dir = str(Path(cfg.work_dir) / 'iter_3.pth'), 'tested'
    assert 'accuracy/top1' in Runner.from_cfg(cfg).test()


@pytest.mark.parametrize(('method', 'hooks', 'changes', 'message'), [
    ('pico', [dict(type='mmssl.SampleTargetsHook')], {}, r'custom_hooks.* must hold mmssl.MeanTeacherHook'),
    ('pico', [dict(type='mmssl.MeanTeacherHook')], {}, r'custom_hooks.* must hold mmssl.SampleTargetsHook'),
    ('proden', [], {}, r'custom_hooks.* must hold mmssl.SampleTargetsHook'),
    ('proden', [dict(type='mmssl.SampleTargetsHook')], dict(semi_train_cfg=dict(teacher='ema')),
     r'custom_hooks.* must hold mmssl.MeanTeacherHook'),
    ('cc', [], dict(objective=dict(type='mmssl.NoLoss')), 'mmssl.NoLoss'),
])  # fmt: skip
def test_wrong_configs_are_found_before_training(
    partial_config: Callable, method: str, hooks: list[dict], changes: dict, message: str
) -> None:
    cfg = partial_config(method, hooks=hooks, **changes)
    with pytest.raises(ValueError, match=message):
        quick_check(cfg)


def test_a_missing_view_is_found_before_training(partial_config: Callable) -> None:
    cfg = partial_config('cc')
    cfg.model.objective.branch = 'unsup_strong'
    with pytest.raises(ValueError, match=r"no pipeline makes the branch 'unsup_strong'"):
        quick_check(cfg)


def test_hook_and_model_have_to_fit(partial_config: Callable) -> None:
    with pytest.raises(ValueError, match=r'SampleTargetsHook needs .* with the objective CCLoss; remove the hook'):
        train(partial_config('cc', hooks=[dict(type='mmssl.SampleTargetsHook')]))
    with pytest.raises(ValueError, match=r"add dict\(type='mmssl.SampleTargetsHook'\)"):
        train(partial_config('lws', 'lws', hooks=[]))


@pytest.mark.parametrize(('changes', 'message'), [
    (dict(estimator=dict(type='mmssl.ReliabilityEstimator')), r'model.estimator .* must be None with model.objective'),
    (dict(semi_train_cfg=dict(teacher='ema')), r'teacher must be None with mmssl.CCLoss, which reads no teacher'),
    (dict(semi_train_cfg=dict(teacher=None, unsup_begin=3)), r'unsup_begin is an option of RGD-PLL and has no effect'),
    (dict(objective=dict(type='mmssl.EntropyLoss')), r'model.objective.type must be a loss over candidate sets'),
    (dict(objective=dict(type='mmssl.CCLoss', num_classes=7)), r'model.objective.num_classes must be .* 3'),
    (dict(objective=dict(type='mmssl.PiCOLoss')), r"teacher must be 'ema' with mmssl.PiCOLoss, which needs one"),
    (dict(objective=3), 'model.objective must be None or a dict'),
])  # fmt: skip
def test_wrong_models(partial_config: Callable, changes: dict, message: str) -> None:
    from mmpretrain.registry import MODELS
    cfg = partial_config('cc')
    cfg.model.update(changes)
    init_default_scope('mmpretrain')
    with pytest.raises(ValueError, match=message):
        MODELS.build(cfg.model)
