"""OnlineLabelSmoothHook: soft targets change where they should, and a resumed run ends in the same numbers."""

import pytest
import torch
from mmengine.model import BaseModel
from mmengine.registry import DATASETS, MODELS
from mmengine.runner import Runner

from mmssl.models.losses import ADRLoss, CombinedLoss, OnlineLabelSmoothLoss


@DATASETS.register_module('OLSData', force=True)
class Data(torch.utils.data.Dataset):
    """Ten points of three classes."""

    def __len__(self):
        return 10

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        inputs = torch.randn(4, generator=generator)
        return dict(inputs=inputs, label=inputs[:3].argmax())


@MODELS.register_module('OLSModel', force=True)
class Model(BaseModel):
    """A linear classifier with OLS and ADR."""

    def __init__(self, smooth=True):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        torch.nn.init.eye_(self.layer.weight)
        base = OnlineLabelSmoothLoss(num_classes=3) if smooth else torch.nn.CrossEntropyLoss()
        self.loss_module = CombinedLoss([base, ADRLoss(topk=2)]) if smooth else base

    def forward(self, inputs, label, mode='tensor'):
        return dict(loss=self.loss_module(self.layer(inputs), label))


def make_runner(folder, hooks, by_epoch=True, length=3, resume=False, **model):
    loop = dict(by_epoch=True, max_epochs=length) if by_epoch else dict(type='IterBasedTrainLoop', max_iters=length)
    return Runner(
        model=dict(type='OLSModel', **model), work_dir=str(folder), train_cfg=loop, custom_hooks=hooks, resume=resume,
        train_dataloader=dict(batch_size=5, num_workers=0, dataset=dict(type='OLSData'),
                              sampler=dict(type='DefaultSampler', shuffle=True) if by_epoch else
                              dict(type='InfiniteSampler', shuffle=True),
                              collate_fn=dict(type='default_collate')),
        default_hooks=dict(checkpoint=dict(type='CheckpointHook', interval=1, by_epoch=by_epoch),
                           logger=dict(type='LoggerHook', interval=1)),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.5)), randomness=dict(seed=1), default_scope='mmengine',
        experiment_name=folder.name)  # yapf: disable


HOOK = [dict(type='mmssl.OnlineLabelSmoothHook')]


def test_targets_change_at_the_end_of_an_epoch(tmp_path):
    runner = make_runner(tmp_path, HOOK, length=2)
    runner.train()
    base = runner.model.loss_module.losses[0]
    assert (base.sums == 0).all() and base.targets.std() > 0.1
    saved = torch.load(tmp_path / 'epoch_2.pth', weights_only=False)['state_dict']
    assert torch.equal(saved['loss_module.losses.0.targets'], base.targets)
    assert 'part_adr' in next(tmp_path.glob('*/vis_data/scalars.json')).read_text()


def test_a_resumed_run_ends_in_the_same_numbers(tmp_path):
    """Resumed in the middle of an interval, where the sums are not 0."""
    hook = [dict(type='mmssl.OnlineLabelSmoothHook', interval=4)]
    whole = make_runner(tmp_path / 'whole', hook, by_epoch=False, length=9)
    whole.train()
    make_runner(tmp_path / 'part', hook, by_epoch=False, length=6).train()
    middle = torch.load(tmp_path / 'part' / 'iter_6.pth', weights_only=False)['state_dict']
    assert middle['loss_module.losses.0.sums'].sum() > 0 and middle['loss_module.losses.0.targets'].std() > 0
    resumed = make_runner(tmp_path / 'part', hook, by_epoch=False, length=9, resume=True)
    resumed.train()
    states = whole.model.state_dict(), resumed.model.state_dict()
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0]) and len(states[0]) == 4


def test_errors_before_training(tmp_path):
    with pytest.raises(ValueError, match=r'OnlineLabelSmoothHook\.interval must be given under an iteration-based'):
        make_runner(tmp_path / 'a', HOOK, by_epoch=False).train()
    with pytest.raises(ValueError, match=r'OnlineLabelSmoothHook found no mmssl\.OnlineLabelSmoothLoss'):
        make_runner(tmp_path / 'b', HOOK, smooth=False).train()
    with pytest.raises(ValueError, match=r'OnlineLabelSmoothHook\.interval must be an integer >= 1.*got 0'):
        make_runner(tmp_path / 'c', [dict(HOOK[0], interval=0)])
    with pytest.raises(RuntimeError, match=r"custom_hooks=\[dict\(type='mmssl\.OnlineLabelSmoothHook'"):
        make_runner(tmp_path / 'd', []).train()
