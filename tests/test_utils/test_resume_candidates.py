"""Which checkpoint `--resume` takes, and what it does where the newest one is damaged."""

import os
import re

import pytest
import torch
from mmengine.config import Config
from mmengine.hooks import EMAHook

from mmssl.utils.cli import (
    changes_since,
    check_optimizer,
    checkpoints_in,
    newest_checkpoint,
    read_training_checkpoint,
    resume_candidates,
    settle_resume,
)


@pytest.fixture
def folder(tmp_path):
    """A work dir with whole checkpoints iter_2, iter_10 and a best one; the last checkpoint is iter_10."""
    for age, name in enumerate(['iter_2.pth', 'best_mIoU_iter_2.pth', 'iter_10.pth']):
        state = whole()
        state['meta']['seed'] = 0
        if name.startswith('best'):
            del state['optimizer']
        torch.save(state, tmp_path / name)
        os.utime(tmp_path / name, (1000 + age, 1000 + age))
    (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'iter_10.pth'))
    return tmp_path


def names(folder, **settings):
    return [path.name for path in resume_candidates(Config(dict(work_dir=str(folder), **settings)))]


def newest(folder):
    return newest_checkpoint(Config(dict(work_dir=str(folder))))[0]


def test_order(folder):
    assert names(folder) == ['iter_10.pth', 'iter_2.pth']
    # Someone went back to iter_2 by hand, and was killed after the next save: last_checkpoint knows it.
    (folder / 'last_checkpoint').write_text(str(folder / 'iter_2.pth'))
    os.utime(folder / 'iter_2.pth', (2000, 2000))
    assert names(folder) == ['iter_2.pth', 'iter_10.pth']


def test_a_checkpoint_that_last_checkpoint_does_not_know_yet(folder):
    (folder / 'last_checkpoint').write_text(str(folder / 'iter_2.pth'))
    assert names(folder) == ['iter_10.pth', 'iter_2.pth']


@pytest.mark.parametrize('text', ['', '\n', '/gone/iter_7.pth', b'\xff\xfe'.decode('latin1')])
def test_empty_or_dangling_last_checkpoint(folder, text):
    (folder / 'last_checkpoint').write_bytes(text.encode('latin1'))
    assert names(folder) == ['iter_10.pth', 'iter_2.pth']
    (folder / 'last_checkpoint').unlink()
    assert names(folder) == ['iter_10.pth', 'iter_2.pth']


def test_a_copied_work_dir_resumes_within_itself(folder, tmp_path_factory):
    (folder / 'last_checkpoint').write_text(str(folder / 'iter_10.pth'))
    copy = tmp_path_factory.mktemp('copy')
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    assert newest(copy) == str(copy / 'iter_10.pth')


def test_checkpoints_elsewhere(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp('out') / folder.name
    out.mkdir()
    for path in [*folder.glob('*.pth')]:
        path.rename(out / path.name)
    assert names(folder) == []
    settings = dict(default_hooks=dict(checkpoint=dict(type='CheckpointHook', out_dir=str(out.parent))))
    assert names(folder, **settings) == ['iter_10.pth', 'iter_2.pth']
    with pytest.raises(FileExistsError, match='holds checkpoints of an earlier run'):
        settle_resume(Config(dict(work_dir=str(folder), **settings)), None)


@pytest.mark.parametrize('size', [0, 1, 200])
def test_truncated(folder, capsys, size):
    path = folder / 'iter_10.pth'
    path.write_bytes(path.read_bytes()[:size])
    assert newest(folder) == str(folder / 'iter_2.pth')
    told = capsys.readouterr().err
    assert "iter_10.pth' is not a readable checkpoint" in told and 'continues from iter_2.pth' in told
    (folder / 'iter_2.pth').write_bytes(b'')
    with pytest.raises(ValueError, match=r'no checkpoint in the work dir .* can be resumed: .*iter_10.*iter_2'):
        newest(folder)


def test_published_weights_are_passed_over(folder):
    torch.save(dict(state_dict={}, meta={}), folder / 'iter_10-0123abcd.pth')
    assert newest(folder) == str(folder / 'iter_10.pth')


def test_nothing(tmp_path):
    with pytest.raises(FileNotFoundError, match='nothing to resume from'):
        newest(tmp_path)
    assert checkpoints_in(tmp_path) == []


def whole() -> dict:
    return dict(state_dict=dict(w=torch.zeros(1)), meta=dict(iter=2, epoch=0), optimizer=dict(state={}), message_hub={})


@pytest.mark.parametrize(('part', 'value', 'expected'), [
    ('state_dict', None, 'holds no weights'),
    ('state_dict', {}, 'holds no weights'),
    ('state_dict', dict(w='text'), 'holds no weights'),
    ('optimizer', None, 'has no optimizer'),
    ('message_hub', None, 'has no message_hub'),
    ('meta', None, 'has no meta'),
    ('meta', dict(epoch=0), "has no meta['iter']"),
    ('meta', dict(iter=2.5, epoch=0), "has no meta['iter']"),
    ('meta', dict(iter=2), "has no meta['epoch']"),
])
def test_what_lacks_a_part_is_no_checkpoint_of_a_training(tmp_path, part, value, expected):
    torch.save(dict(whole(), **{part: value}), tmp_path / 'iter_2.pth')
    with pytest.raises(ValueError, match=re.escape(expected)):
        read_training_checkpoint(str(tmp_path / 'iter_2.pth'))
    torch.save(whole(), tmp_path / 'iter_1.pth')
    assert newest(tmp_path) == str(tmp_path / 'iter_1.pth')


@pytest.mark.parametrize('content', [{}, dict(state_dict={}), dict(state_dict=[1]), dict(epoch=3)])
def test_load_from_a_file_without_weights(tmp_path, content):
    torch.save(content, tmp_path / 'weights.pth')
    cfg = Config(dict(work_dir=str(tmp_path / 'out'), load_from=str(tmp_path / 'weights.pth')))
    with pytest.raises(ValueError, match=r"load_from: '.*weights.pth' holds no weights"):
        settle_resume(cfg, None)
    torch.save(dict(w=torch.zeros(1)), tmp_path / 'weights.pth')
    settle_resume(cfg, None)


SGD = dict(optimizer=dict(type='SGD', lr=0.1))


@pytest.mark.parametrize(('change', 'expected'), [
    (dict(), []),
    (dict(param_scheduler=[dict(type='PolyLR', end=9)]), ['param_scheduler is another']),
    (dict(param_scheduler=dict(type='PolyLR', end=4)), []),
    (dict(param_scheduler=None), ['param_scheduler is another']),
    (dict(optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.2))), ['optim_wrapper.optimizer.lr is another']),
    (dict(optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1, momentum=0.9))),
     ['optim_wrapper.optimizer.momentum is another']),
])
def test_settings_that_the_checkpoint_overrules(change, expected):
    """Optimizer and schedules take their values from the checkpoint: who changes them in the config has to know."""
    before = Config(dict(optim_wrapper=SGD, param_scheduler=[dict(type='PolyLR', end=4)]))
    meta = dict(cfg=before.pretty_text)
    refused, warned = changes_since(Config(dict(before, **change)), meta)
    assert refused == [] and len(warned) == len(expected)
    assert all(text in line and 'changes nothing' in line for text, line in zip(expected, warned, strict=True))


def test_another_optimizer_cannot_be_resumed(tmp_path):
    before = Config(dict(optim_wrapper=SGD))
    checkpoint = dict(whole(), meta=dict(iter=2, epoch=0, cfg=before.pretty_text))
    cfg = Config(dict(optim_wrapper=dict(optimizer=dict(type='AdamW', lr=0.1))))
    with pytest.raises(ValueError, match=r"optim_wrapper.optimizer.type was 'SGD' .* is 'AdamW' now.*load_from"):
        check_optimizer(cfg, checkpoint)
    check_optimizer(before, checkpoint)
    with pytest.raises(ValueError, match=r'has no param_schedulers'):
        check_optimizer(Config(dict(before, param_scheduler=[dict(type='PolyLR')])), checkpoint)
    with pytest.raises(ValueError, match=r'param_scheduler: .* 2 .* 1'):
        check_optimizer(Config(dict(before, param_scheduler=[dict(type='LinearLR'), dict(type='PolyLR')])),
                        dict(checkpoint, param_schedulers=[{}]))  # yapf: disable


def test_averages_need_their_hook():
    """EMAHook saves the averages as the weights and swaps them back: without it a run would go on from the averages."""
    checkpoint = dict(whole(), ema_state_dict={})
    for settings in ({}, dict(custom_hooks=[dict(type='mmssl.MeanTeacherHook'), dict(type='NoSuchHook')])):
        with pytest.raises(ValueError, match=r'--resume: custom_hooks: .* EMAHook, which saves the averages'):
            check_optimizer(Config(settings), checkpoint)
        check_optimizer(Config(settings), whole())
    for settings in (dict(custom_hooks=[dict(type='EMAHook')]), dict(default_hooks=dict(ema=dict(type=EMAHook)))):
        check_optimizer(Config(settings), checkpoint)
