"""AtomicCheckpointHook: the files of mmengine's hook, in an order that a kill cannot hurt."""

import shutil
import time
from types import SimpleNamespace

import pytest
import torch
from mmengine.fileio import LocalBackend, register_backend
from mmengine.hooks import CheckpointHook, Hook
from mmengine.model import BaseModel
from mmengine.runner import IterBasedTrainLoop, Runner
from torch import nn

from mmssl.engine.hooks import AtomicCheckpointHook, IterationSeedHook
from mmssl.engine.resumable import make_resumable
from mmssl.utils import atomic

# Metrics by iteration: `high` gets better at 2 and 6, `error_loss` at 2, 4 and 6.
METRICS = {2: (0.5, 3.), 4: (0.4, 2.), 6: (0.9, 1.), 8: (0.1, 4.)}


class Toy(BaseModel):

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def forward(self, inputs, mode='tensor'):
        return dict(loss=self.layer(inputs).sum())


class Metric:
    """An evaluator that returns numbers of a table."""

    dataset_meta = None

    def __init__(self):
        self.runner = None

    def process(self, **kwargs):
        pass

    def evaluate(self, size):
        high, low = METRICS[self.runner.iter]
        return dict(high=torch.tensor(high).numpy()[()], error_loss=low)


class SavedLoop(IterBasedTrainLoop):
    pass


def make(work_dir, hook, max_iters=8, resume=False, backend_args=None, loop='IterBasedTrainLoop', **kwargs):
    data = torch.utils.data.DataLoader([dict(inputs=torch.ones(1))] * 100)
    settings = dict(type=hook, by_epoch=False, interval=2, rule=['greater', 'less'],
                    save_best=['high', 'error_loss'], backend_args=backend_args)  # yapf: disable
    evaluator = Metric()
    runner = Runner(
        Toy(), str(work_dir), train_dataloader=data, train_cfg=dict(type=loop, max_iters=max_iters, val_interval=2),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
        default_hooks=dict(checkpoint={**settings, **kwargs}, logger=None), val_dataloader=data, val_cfg=dict(),
        val_evaluator=[], log_level='ERROR', randomness=dict(seed=0), resume=resume,
        experiment_name=f'toy-{time.perf_counter_ns()}')  # yapf: disable
    return runner, evaluator


def train(*args, prepare=lambda runner: None, **kwargs):
    runner, evaluator = make(*args, **kwargs)
    evaluator.runner = runner
    runner.val_loop.evaluator = evaluator
    runner.val_loop.run_iter = lambda *_: None
    prepare(runner)
    runner.train()
    return runner


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix == '.pth' or path.name.startswith('.'))


@pytest.mark.parametrize('keep', [-1, 1, 2])
def test_the_files_of_the_stock_hook(tmp_path, keep):
    for name, hook in (('stock', 'CheckpointHook'), ('ours', 'mmssl.AtomicCheckpointHook')):
        train(tmp_path / name, hook, max_keep_ckpts=keep)
    assert files(tmp_path / 'ours') == files(tmp_path / 'stock')
    assert 'best_high_iter_6.pth' in files(tmp_path / 'ours') and 'best_high_iter_2.pth' not in files(tmp_path / 'ours')
    states = [torch.load(tmp_path / name / 'iter_8.pth', weights_only=False) for name in ('stock', 'ours')]
    infos = [state['message_hub']['runtime_info'] for state in states]
    assert infos[0]['keep_ckpt_ids'] == infos[1]['keep_ckpt_ids'] if keep > 0 else 'keep_ckpt_ids' not in infos[1]
    assert infos[1]['best_ckpt_high'] == str(tmp_path / 'ours' / 'best_high_iter_6.pth')
    assert type(infos[1]['best_score_high']) is float and infos[1]['last_validation'] == 6
    assert (tmp_path / 'ours' / 'last_checkpoint').read_text() == str(tmp_path / 'ours' / 'iter_8.pth')


def test_old_files_go_after_new_ones_are_whole(tmp_path, monkeypatch):
    """Whenever a file is removed, its successor and a last_checkpoint that exists are there."""
    remove, removed = LocalBackend.remove, []

    def watching(backend, path):
        names = set(files(tmp_path))
        last = (tmp_path / 'last_checkpoint').read_text()
        removed.append(path.rsplit('/', 1)[1])
        assert last.rsplit('/', 1)[1] in names and last != path
        info = torch.load(last, weights_only=False)['message_hub']['runtime_info']
        assert all(info[key].rsplit('/', 1)[1] in names for key in info if key.startswith('best_ckpt'))
        assert removed[-1] in info['outdated_ckpts']
        remove(backend, path)

    monkeypatch.setattr(LocalBackend, 'remove', watching)
    train(tmp_path, 'mmssl.AtomicCheckpointHook', max_keep_ckpts=1)
    assert sorted(removed) == sorted([
        'iter_2.pth', 'iter_4.pth', 'iter_6.pth', 'best_high_iter_2.pth', 'best_error_loss_iter_2.pth',
        'best_error_loss_iter_4.pth'])  # yapf: disable


def test_a_full_disk_costs_nothing(tmp_path, monkeypatch):
    sync = atomic.os.fsync

    def full(number):
        if (tmp_path / 'iter_4.pth').exists():
            raise OSError(28, 'No space left on device')
        sync(number)

    monkeypatch.setattr(atomic.os, 'fsync', full)
    with pytest.raises(OSError, match='No space left'):
        train(tmp_path, 'mmssl.AtomicCheckpointHook', max_keep_ckpts=1)
    assert 'iter_4.pth' in files(tmp_path) and not [name for name in files(tmp_path) if name.startswith('.')]
    assert torch.load(tmp_path / 'iter_4.pth', weights_only=False)['meta']['iter'] == 4


def test_a_copied_work_dir_touches_nothing_of_the_original(tmp_path):
    train(tmp_path / 'a', 'mmssl.AtomicCheckpointHook', max_iters=4, max_keep_ckpts=1)
    shutil.copytree(tmp_path / 'a', tmp_path / 'b')
    (tmp_path / 'b' / 'last_checkpoint').write_text(str(tmp_path / 'b' / 'iter_4.pth'))
    before = files(tmp_path / 'a')
    runner = train(tmp_path / 'b', 'mmssl.AtomicCheckpointHook', resume=True, max_keep_ckpts=1)
    assert files(tmp_path / 'a') == before
    assert files(tmp_path / 'b') == ['best_error_loss_iter_6.pth', 'best_high_iter_6.pth', 'iter_8.pth']
    assert runner.message_hub.get_info('best_ckpt_high') == str(tmp_path / 'b' / 'best_high_iter_6.pth')


def test_other_storage_keeps_the_order_of_mmengine(tmp_path):
    written = []

    class Storage(LocalBackend):

        def put(self, obj, filepath):
            written.append(filepath)
            super().put(obj, filepath)

    register_backend('test_storage', Storage, force=True)
    train(tmp_path, 'mmssl.AtomicCheckpointHook', backend_args=dict(backend='test_storage'), max_keep_ckpts=1)
    assert str(tmp_path / 'iter_8.pth') in written and files(tmp_path)[-1] == 'iter_8.pth'


def test_make_resumable(tmp_path):
    runner, _ = make(tmp_path / 'a', 'CheckpointHook', max_keep_ckpts=3)
    place = [type(hook) for hook in runner.hooks].index(CheckpointHook) + 1  # IterationSeedHook comes before it
    plain = next(hook for hook in runner.hooks if type(hook) is CheckpointHook)
    lines = make_resumable(runner)
    assert len(lines) == 1 and 'mmssl.AtomicCheckpointHook' in lines[0]
    hook = runner.hooks[place]
    assert type(hook) is AtomicCheckpointHook and hook.priority == plain.priority and hook.max_keep_ckpts == 3
    assert runner._train_loop['type'] == 'IterBasedTrainLoop'
    assert sum(isinstance(hook, IterationSeedHook) for hook in runner.hooks) == 1
    assert make_resumable(runner) == []

    for loop, expected in ((IterBasedTrainLoop, 'mmssl.ResumableIterBasedTrainLoop'),
                           ('mmengine.EpochBasedTrainLoop', 'mmssl.ResumableEpochBasedTrainLoop'),
                           (SavedLoop, SavedLoop)):
        resumed = SimpleNamespace(hooks=[IterationSeedHook()], _resume=True, _train_loop=dict(type=loop, max_iters=3))
        make_resumable(resumed)
        assert resumed._train_loop == dict(type=expected, max_iters=3)
    resumed._train_loop = dict(by_epoch=False, max_iters=3)
    make_resumable(resumed)
    assert resumed._train_loop == dict(type='mmssl.ResumableIterBasedTrainLoop', max_iters=3)


@pytest.mark.parametrize('part', ['weight', 'buffer'])
def test_a_broken_model_is_not_saved_and_the_last_good_checkpoint_stays(tmp_path, part):
    class BreakAtSix(Hook):

        def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
            if runner.iter == 5:
                broken = runner.model.layer.weight.data if part == 'weight' else runner.model.mean
                broken.fill_(float('inf'))

    def prepare(runner):
        runner.model.register_buffer('mean', torch.zeros(1))
        runner.register_hook(BreakAtSix(), priority='VERY_HIGH')

    name = 'layer.weight' if part == 'weight' else 'mean'
    with pytest.raises(FloatingPointError, match=f'iteration 6: 1 parameters or statistics .* \\({name}\\)'):
        train(tmp_path, 'mmssl.AtomicCheckpointHook', prepare=prepare, max_keep_ckpts=1, save_best=None, rule=None)
    assert sorted(path.name for path in tmp_path.glob('*.pth')) == ['iter_4.pth']
    assert (tmp_path / 'last_checkpoint').read_text().endswith('iter_4.pth')
    state = torch.load(tmp_path / 'iter_4.pth', weights_only=False)['state_dict']
    assert all(torch.isfinite(value).all() for value in state.values())
