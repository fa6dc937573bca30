"""Grad-ReLU by the names of losses: a toy model through mmengine's optimizer wrapper, and stock models of OpenMMLab."""

from copy import deepcopy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mmengine.model import BaseModel
from mmengine.optim import OptimWrapper
from mmengine.registry import init_default_scope
from torch import Tensor, nn

from mmssl.models.supervised_only import SupervisedOnly
from mmssl.utils.layer_names import find_layers

KEY = 'custom_hooks: mmssl.GradReLUHook'


class Model(BaseModel):
    """Two losses under one name, one under another, and one that stands for any further learning signal."""

    def __init__(self, tied: bool = False, with_unsup: bool = True) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body, self.fc, self.spare = nn.Linear(6, 16), nn.Linear(16, 4), nn.Linear(16, 4)
        self.tied, self.with_unsup = tied, with_unsup
        if tied:
            self.spare.weight = self.fc.weight

    def forward(self, inputs: Tensor, labels: Tensor | None = None, mode: str = 'tensor') -> Any:
        features = self.body(inputs).tanh()
        logits = self.fc(features)
        if mode != 'loss':
            return logits
        assert not self.tied or self.spare.weight is self.fc.weight
        losses = dict(
            loss_cls=F.cross_entropy(logits, labels),
            loss_parts=[(logits**2).mean(), self.spare(features).abs()],
            acc=(logits.argmax(1) == labels).float().mean(),
        )
        if self.with_unsup:
            losses['unsup_loss'] = -(logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()
        return losses


def batches(count: int) -> list[dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(3)
    return [
        dict(inputs=torch.randn(12, 6, generator=generator), labels=torch.randint(0, 4, (12,), generator=generator))
        for _ in range(count)
    ]  # fmt: skip


def attach(model: nn.Module, layers: list[str], supervised: list[str] | None = None) -> SupervisedOnly:
    return SupervisedOnly(model, find_layers({'': model}, layers, KEY), supervised, KEY)


def train(model: BaseModel, steps: int, **options: Any) -> list[dict[str, Tensor]]:
    """Gradients after each batch, as they are accumulated; the optimizer moves nothing."""
    wrapper = OptimWrapper(torch.optim.SGD(model.parameters(), lr=0.0), **options)
    wrapper.initialize_count_status(model, 0, steps)
    found = []
    zero_grad = wrapper.zero_grad
    wrapper.zero_grad = lambda **kwargs: (found.append(gradients(model)), zero_grad(**kwargs))
    for batch in batches(steps):
        model.train_step(batch, wrapper)
    return found


def gradients(model: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize('accumulative_counts', [1, 2, 3])
@pytest.mark.parametrize('tied', [False, True])
def test_head_learns_from_supervised_losses_to_the_last_bit(tied: bool, accumulative_counts: int) -> None:
    steps = 2 * accumulative_counts
    ours, plain, alone = Model(tied), Model(tied), Model(tied, with_unsup=False)
    handle = attach(ours, ['fc', 'sp*'])
    results = [train(model.train(), steps, accumulative_counts=accumulative_counts) for model in (ours, plain, alone)]
    assert len(results[0]) == 2 and handle.num_forwards == steps
    for found, everything, supervised in zip(*results, strict=True):
        assert found.keys() == everything.keys()
        for name, value in found.items():
            on_head = name.startswith(('fc', 'spare'))
            assert torch.equal(value, (supervised if on_head else everything)[name]), name
        assert not torch.equal(found['fc.weight'], everything['fc.weight'])
        assert not torch.equal(found['body.weight'], supervised['body.weight'])


def test_patterns_choose_the_losses() -> None:
    ours, plain = Model().train(), Model().train()
    attach(ours, ['fc'], ['loss_c*', 'loss_parts'])
    (batch,) = batches(1)
    losses, expected = (model(**batch, mode='loss') for model in (ours, plain))
    assert losses.keys() == expected.keys()
    for name, value in expected.items():
        for one, other in zip(*(v if isinstance(v, list) else [v] for v in (losses[name], value)), strict=True):
            assert torch.equal(one, other)
    fc = [plain.fc.weight, plain.fc.bias]
    for name, kept in (('loss_cls', True), ('unsup_loss', False)):
        found = torch.autograd.grad(losses[name], [ours.fc.weight, ours.fc.bias], retain_graph=True, allow_unused=True)
        if kept:
            reference = torch.autograd.grad(expected[name], fc, retain_graph=True)
            assert all(torch.equal(a, b) for a, b in zip(found, reference, strict=True))
        else:
            assert found == (None, None)
        body = (torch.autograd.grad(table[name], model.body.weight, retain_graph=True)[0]
                for table, model in ((losses, ours), (expected, plain)))  # fmt: skip
        assert torch.equal(*body)


def test_clipping_sees_the_gradient_that_is_left() -> None:
    ours, plain = Model().train(), Model().train()
    attach(ours, ['fc'])
    (raw,) = train(plain, 1)
    attach(plain, ['fc'])
    (whole,) = train(plain, 1)
    (clipped,) = train(ours, 1, clip_grad=dict(max_norm=0.01))
    norm = torch.cat([value.flatten() for value in whole.values()]).norm()
    assert not torch.equal(raw['fc.weight'], whole['fc.weight'])
    for name, value in whole.items():
        torch.testing.assert_close(clipped[name], value * 0.01 / norm, rtol=1e-4, atol=1e-9)


def test_unscaled_gradients_are_those_without_a_scaler() -> None:
    """What AmpOptimWrapper does to a loss; it refuses to be built without a GPU."""
    ours, alone = Model().train(), Model(with_unsup=False).train()
    attach(ours, ['fc'])
    (batch,) = batches(1)
    for model, scale in ((ours, 2.0**16), (alone, 1.0)):
        with torch.autocast('cpu', dtype=torch.bfloat16):
            total, _ = model.parse_losses(model(**batch, mode='loss'))
        (total * scale).backward()
    for name in ('weight', 'bias'):
        found, expected = (getattr(model.fc, name).grad for model in (ours, alone))
        assert found.dtype == torch.float32 and torch.equal(found / 2.0**16, expected)


def test_outside_training_the_model_is_untouched() -> None:
    model = Model()
    weight, state = model.fc.weight, deepcopy(model.state_dict())
    handle = attach(model, ['fc'])
    (batch,) = batches(1)
    for mode, training in (('loss', False), ('tensor', True), ('tensor', False)):
        model.train(training)
        out = model(**batch, mode=mode)
        (out if mode == 'tensor' else out['unsup_loss']).sum().backward()
        assert weight.grad is not None
        weight.grad = None
    model.train()
    with torch.no_grad():
        model(**batch, mode='loss')
    assert handle.num_forwards == 0
    with pytest.raises(RuntimeError):
        model(torch.zeros(2, 5), batch['labels'], mode='loss')
    assert model.fc.weight is weight  # put back after an error too
    model(**batch, mode='loss')['unsup_loss'].backward()
    assert model.fc.weight is weight and weight.grad is None and model.body.weight.grad is not None
    assert model.state_dict().keys() == state.keys()
    twin = deepcopy(model)
    twin(**batch, mode='loss')['loss_cls'].backward()
    assert twin.fc.weight.grad is not None and weight.grad is None  # EMAHook copies models
    handle.remove()
    model(**batch, mode='loss')['unsup_loss'].backward()
    assert weight.grad is not None


@pytest.mark.parametrize(('layers', 'supervised', 'words'), [
    (['fc'], ['loss_cls', 'decode.*'], ["supervised: 'decode.*' matches no loss", 'loss_cls', 'unsup_loss']),
    (['fc'], ['acc'], ["'acc' matches no loss"]),
    (['spare'], ['loss_cls'], ['spare gets no gradient', "['loss_cls']"]),
])  # fmt: skip
def test_what_cannot_be_is_said_in_the_first_iteration(layers: list, supervised: list, words: list[str]) -> None:
    model = Model().train()
    attach(model, layers, supervised)
    with pytest.raises(ValueError, match=KEY) as error:
        model(**batches(1)[0], mode='loss')
    assert all(word in str(error.value) for word in words), error.value
    assert isinstance(model.fc.weight, nn.Parameter) and model.fc.weight in set(model.parameters())


def test_a_hook_that_changes_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    monkeypatch.setattr('mmssl.models.supervised_only.print_log', lambda message, **_: messages.append(message))
    for with_unsup in (True, False):
        model = Model(with_unsup=with_unsup).train()
        attach(model, ['fc'])
        for batch in batches(2):
            model(**batch, mode='loss')
        assert len(messages) == (0 if with_unsup else 1)
    assert "['loss_cls', 'loss_parts']" in messages[0] and 'changes nothing' in messages[0]


def test_a_model_without_a_dict_of_losses_is_refused() -> None:
    model = Model().train()
    attach(model, ['fc'])
    model.forward = lambda inputs, labels, mode: (torch.zeros(()), {})
    with pytest.raises(ValueError, match='returns a dict of losses, got tuple from Model'):
        model(**batches(1)[0], mode='loss')


def head_gradients(model: Any, layers: list[str], inputs: Tensor, samples: list, supervised: list[str]) -> None:
    """Compare with a backward pass from the supervised losses alone."""
    model.train()
    torch.manual_seed(1)
    losses = model(inputs, samples, mode='loss')
    chosen = {name: value for name, value in losses.items() if name in supervised}
    assert 0 < len(chosen) < sum('loss' in name for name in losses)
    named = find_layers({'': model}, layers, KEY)
    parameters = [p for layer in named.values() for p in layer.parameters()]
    rest = [p for p in model.parameters() if all(p is not own for own in parameters)]
    expected = torch.autograd.grad(model.parse_losses(chosen)[0], parameters, retain_graph=True)
    whole = torch.autograd.grad(model.parse_losses(losses)[0], [*parameters, *rest], allow_unused=True)
    attach(model, layers, supervised)
    torch.manual_seed(1)
    model.zero_grad()
    model.parse_losses(model(inputs, samples, mode='loss'))[0].backward()
    for parameter, value, everything in zip(parameters, expected, whole, strict=False):
        assert torch.equal(parameter.grad, value) and not torch.equal(value, everything)
    for parameter, value in zip(rest, whole[len(parameters) :], strict=True):
        assert (parameter.grad is None and value is None) or torch.equal(parameter.grad, value)


def test_stock_mmseg_segmentor() -> None:
    pytest.importorskip('mmseg')
    from mmengine.structures import PixelData
    from mmseg.registry import MODELS
    from mmseg.structures import SegDataSample
    init_default_scope('mmseg')
    norm_cfg = dict(type='BN')
    losses = [dict(type='CrossEntropyLoss', avg_non_ignore=True), dict(type='DiceLoss', loss_name='loss_dice')]
    head = dict(type='FCNHead', num_convs=1, channels=4, num_classes=3, norm_cfg=norm_cfg, loss_decode=losses)
    config = dict(
        type='EncoderDecoder',
        backbone=dict(
            type='ResNetV1c', depth=18, stem_channels=4, base_channels=4, strides=(1, 2, 1, 1), norm_cfg=norm_cfg
        ),
        decode_head=dict(head, in_channels=32, in_index=3),
        auxiliary_head=dict(head, in_channels=16, in_index=2),
    )
    samples = [SegDataSample(metainfo=dict(img_shape=(32, 32))) for _ in range(2)]
    for sample in samples:
        sample.gt_sem_seg = PixelData(data=torch.randint(0, 3, (1, 32, 32)))
    inputs = torch.randn(2, 3, 32, 32)
    ce = ['decode.loss_ce', 'aux.loss_ce']
    head_gradients(MODELS.build(deepcopy(config)), ['decode_head.conv_seg'], inputs, samples, ['decode.loss_ce'])
    head_gradients(MODELS.build(deepcopy(config)), ['*.conv_seg', 'decode_head.convs.*'], inputs, samples, ce)


def test_stock_mmpretrain_classifier() -> None:
    pytest.importorskip('mmpretrain')
    from mmpretrain.registry import MODELS
    from mmpretrain.structures import DataSample, MultiTaskDataSample
    init_default_scope('mmpretrain')
    loss = dict(type='CrossEntropyLoss')
    heads = dict(one=dict(type='LinearClsHead', num_classes=4, loss=loss), two=dict(
        type='LinearClsHead', num_classes=4, loss=dict(type='LabelSmoothLoss', label_smooth_val=0.3)))
    model = MODELS.build(dict(
        type='ImageClassifier',
        backbone=dict(type='ResNet_CIFAR', depth=18, stem_channels=4, base_channels=4),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='MultiTaskHead', task_heads=heads, in_channels=32),
    ))  # fmt: skip
    samples = []
    for _ in range(4):
        sample = MultiTaskDataSample()
        for name in heads:
            sample.set_field(DataSample().set_gt_label(int(torch.randint(0, 4, ()))), name)
        samples.append(sample)
    # Both tasks share the last block; what is named there learns from one of them.
    names = ['one_loss']
    head_gradients(model, ['backbone.layer4.1.conv2'], torch.randn(4, 3, 32, 32), samples, names)


def test_gradient_surgery_sees_the_gradient_of_the_supervised_losses() -> None:
    """RGDOptimWrapper differentiates groups of losses one after the other, by torch.autograd.grad."""
    from mmengine.registry import OPTIM_WRAPPERS
    gradients_by_model = []
    for named in (True, False):
        model = Model().train()
        if named:
            attach(model, ['fc'])
        wrapper = OPTIM_WRAPPERS.build(
            dict(type='mmssl.RGDOptimWrapper', primary=['loss_*'], auxiliary=['unsup_loss'], shared=['body'],
                 coefficient=1.0, warmup=0, ramp=0),
            default_args=dict(optimizer=torch.optim.SGD(model.parameters(), lr=0.0)))  # fmt: skip
        wrapper.initialize_count_status(model, 0, 1)
        wrapper.zero_grad = lambda model=model, **kwargs: gradients_by_model.append(gradients(model))
        model.train_step(batches(1)[0], wrapper)
    ours, plain = gradients_by_model
    alone = train(Model(with_unsup=False).train(), 1)[0]
    for name, value in ours.items():
        if name.startswith('fc'):
            assert torch.equal(value, alone[name]) and not torch.equal(value, plain[name])
        else:
            assert torch.equal(value, plain[name]), name
