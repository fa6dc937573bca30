"""Grad-ReLU and Avg-Clustering on CPS, mean teacher, UniMatch and AEL."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from mmseg.registry import MODELS
from torch import Tensor

from mmssl.models.supervised_only import SupervisedOnly
from mmssl.utils.layer_names import find_layers

KEY = 'custom_hooks: mmssl.EMAHeadHook.layer'
CUTMIX = dict(type='mmssl.CutMix', seed=3)
SOFT = dict(type='mmssl.FPLLoss')
CASES = {
    'cps': dict(type='mmssl.CrossPseudoSupervision', unsup_loss=SOFT, unsup_weight=0.7),
    'cps_eval_labels': dict(type='mmssl.CrossPseudoSupervision', pseudo_label_mode='eval', ignore_padding=True),
    'cps_cutmix': dict(type='mmssl.CrossPseudoSupervision', unsup_loss=SOFT, mix=CUTMIX, unsup_weight=1.5),
    'mean_teacher': dict(type='mmssl.MeanTeacherSegmentor', mix=CUTMIX, strong_branches=('unsup_weak',)),
    'unimatch': dict(
        type='mmssl.MeanTeacherSegmentor', mix=CUTMIX, strong_branches=('unsup_strong', 'unsup_strong2'),
        strong_weights=(0.25, 0.5), feature_perturbation=dict(type='mmssl.FeatureDropout', seed=3),
    ),
    'ael': dict(
        type='mmssl.AELSegmentor', copy_paste=None, mix=CUTMIX,
        sampling=dict(type='mmssl.EqualizationSampling', seed=1),
    ),
}  # fmt: skip


def build(segmentor: dict, case: str) -> Any:
    torch.manual_seed(0)
    options = dict(CASES[case])
    model = MODELS.build(dict(type=options.pop('type'), segmentor=segmentor, semi_train_cfg=options))
    for name, module in model.named_modules():
        if name.endswith('conv_seg'):
            torch.nn.init.normal_(module.weight, std=1.5)
    if hasattr(model, 'initialize_teacher'):
        model.initialize_teacher()
        with torch.no_grad():
            for parameter in model.teacher.parameters():
                parameter += 0.05 * torch.randn(parameter.shape)
    return model.train()


@pytest.fixture
def batch(make_batch: Callable) -> tuple[dict, dict]:
    inputs, samples = make_batch(size=(40, 32))  # not square: what is resized goes to the right size
    for index in (1, 2):
        name = 'unsup_strong' + ('2' if index == 2 else '')
        inputs[name], samples[name] = inputs['unsup_weak'] + 0.1 * index, samples['unsup_weak']
    return inputs, samples


def total(losses: dict[str, Any], prefix: str = '') -> Tensor:
    return sum(value for name, value in losses.items() if 'loss' in name and name.startswith(prefix))


def gradients(model: Any, losses: dict, prefix: str = '') -> dict[str, Tensor]:
    model.zero_grad()
    total(losses, prefix).backward(retain_graph=True)
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def distance(found: Tensor, expected: Tensor) -> float:
    return ((found - expected).norm() / expected.norm().clamp(min=1e-6)).item()


@pytest.mark.parametrize('case', CASES)
def test_named_layers_learn_from_labels_alone(tiny_segmentor: dict, batch: tuple, case: str) -> None:
    plain = build(tiny_segmentor, case)
    ours, by_name = deepcopy(plain), deepcopy(plain)
    ours.set_grad_relu(['decode_head.conv_seg'])
    layers = find_layers(by_name.trained_models(), ['decode_head.conv_seg'], 'layers')
    SupervisedOnly(by_name, layers, ['sup_*'], 'hook')
    assert len(layers) == len(plain.trained_models()) and list(layers) == list(ours.grad_relu_layers)
    for model in (plain, ours, by_name):
        model.results = model.loss(*batch) if model is not by_name else model(*batch, mode='loss')
    for name, value in plain.results.items():
        assert torch.equal(torch.as_tensor(ours.results[name]), torch.as_tensor(value)), name
    alone, whole = gradients(plain, plain.results, 'sup_'), gradients(plain, plain.results)
    found, named = gradients(ours, ours.results), gradients(by_name, by_name.results)
    assert found.keys() == whole.keys() == named.keys()
    on_head = [name for name in found if name.rsplit('.', 1)[0] in layers]
    assert len(on_head) == 2 * len(layers)
    for name, value in found.items():
        if name in on_head:
            assert torch.equal(value, alone[name]) and torch.equal(named[name], alone[name])
            assert not torch.equal(value, whole[name])
        else:
            assert distance(value, whole[name]) < 1e-4, name
            assert torch.equal(named[name], whole[name])


@pytest.mark.parametrize('layers', [['backbone.layer4.*'], ['backbone', 'decode_head'], ['decode_head.*', '*.layer1']])
@pytest.mark.parametrize('case', ['cps', 'unimatch'])
def test_layers_in_the_backbone(tiny_segmentor: dict, batch: tuple, case: str, layers: list[str]) -> None:
    """Labeled images have a forward of their own where they serve the unsupervised loss."""
    model = build(tiny_segmentor, case)
    model.set_grad_relu(layers)
    losses = model.loss(*batch)
    alone, found = gradients(model, losses, 'sup_'), gradients(model, losses)
    fixed = {f'{path}.{name}' for path in model.grad_relu_layers
             for name, _ in model.get_submodule(path).named_parameters()}  # fmt: skip
    assert fixed
    for name, value in found.items():
        # What is before a named layer learns from all losses, unless all after the first one is named.
        assert name not in fixed or torch.equal(value, alone[name])
    free = [name for name in found if name not in fixed and 'stem' in name]
    assert all(torch.equal(found[name], alone[name]) != ('backbone' not in layers) for name in free)


@pytest.mark.parametrize('case', CASES)
def test_the_averaged_loss_is_the_unsupervised_one(tiny_segmentor: dict, batch: tuple, case: str) -> None:
    """While the averaged layer is the layer: the same images, labels, weights and normalization, resized alike."""
    model = build(tiny_segmentor, case)
    model.set_grad_relu(['decode_head.conv_seg'])
    model.set_average_head('decode_head.conv_seg', KEY, loss_weight=0.4, reset_interval=1)
    losses = model.loss(*batch)
    expected = 0.4 / model.semi_train_cfg['unsup_weight'] * losses['unsup_loss']
    assert expected > 1e-3
    torch.testing.assert_close(losses['unsup_avg_loss'], expected)
    main, average = gradients(model, losses, 'unsup_loss'), gradients(model, losses, 'unsup_avg')
    assert main.keys() == average.keys() and not any('conv_seg' in name for name in main)
    for name, value in main.items():
        reference = 0.4 / model.semi_train_cfg['unsup_weight'] * value
        assert distance(average[name], reference) < 1e-3, name
    model.update_average_head()
    assert model.average_head.num_steps == 1


def test_before_the_unsupervised_loss_begins_nothing_is_averaged(tiny_segmentor: dict, batch: tuple) -> None:
    for case in ('cps', 'mean_teacher', 'ael'):
        model = build(tiny_segmentor, case)
        model.semi_train_cfg.update(unsup_begin=2, unsup_ramp=4)
        model.set_grad_relu(['decode_head.conv_seg'])
        model.set_average_head('decode_head.conv_seg', KEY, loss_weight=0.4, reset_interval=1)
        for step in range(4):
            losses = model.loss(*batch)
            model.update_average_head()
            assert ('unsup_avg_loss' in losses) == (step >= 2)
            if step >= 2:
                share = 0.4 / model.semi_train_cfg['unsup_weight']
                torch.testing.assert_close(losses['unsup_avg_loss'], share * losses['unsup_loss'])
        assert model.average_head.num_steps == 2


def test_two_students_have_two_averages_that_move(tiny_segmentor: dict, batch: tuple) -> None:
    model = build(tiny_segmentor, 'cps_cutmix')
    model.set_average_head('decode_head.conv_seg', KEY, momentum=1.0, lr=0.5)
    for step in range(2):
        before = deepcopy(model.average_head.state_dict())
        losses = model.loss(*batch)
        if step == 0:
            for name in ('student1', 'student2'):
                layer = getattr(model, name).decode_head.conv_seg
                assert torch.equal(model.average_head.weights(name)['weight'], layer.weight)
            before = deepcopy(model.average_head.state_dict())
        total(losses).backward()
        model.update_average_head()
        for name, value in model.average_head.state_dict().items():
            assert not torch.equal(value, before[name])
    assert set(before) == {'step', *(f'student{i}.{name}' for i in (1, 2) for name in ('weight', 'bias'))}


@pytest.mark.parametrize(('layer', 'words'), [
    ('decode_head.convs.0.conv', ['student1.decode_head.convs.0.conv is not the layer that makes the logits']),
    ('auxiliary_head.conv_seg', ['auxiliary_head.conv_seg', 'ran 0 times']),
])  # fmt: skip
def test_layers_that_are_not_the_last(tiny_segmentor: dict, batch: tuple, layer: str, words: list[str]) -> None:
    model = build(tiny_segmentor, 'cps_cutmix')
    model.set_average_head(layer, KEY)
    with pytest.raises(ValueError, match=KEY) as error:
        model.loss(*batch)
    assert all(word in str(error.value) for word in words), error.value


def test_a_model_that_forgets_the_averaged_loss_is_stopped(tiny_segmentor: dict, batch: tuple) -> None:
    model = build(tiny_segmentor, 'cps_cutmix')
    model.set_average_head('decode_head.conv_seg', KEY)
    model.average_loss = lambda *args: torch.zeros(())
    model.loss(*batch)
    with pytest.raises(RuntimeError, match='added no averaged loss'):
        model.update_average_head()


def test_a_plain_checkpoint_and_a_checkpoint_without_average_load(tiny_segmentor: dict) -> None:
    model = build(tiny_segmentor, 'mean_teacher')
    plain = {name: torch.zeros_like(value) for name, value in model.student.state_dict().items()}
    whole = deepcopy(model.state_dict())
    model.set_average_head('decode_head.conv_seg', KEY)
    kept = model.average_head.weights('student')['weight'].clone()
    result = model.load_state_dict(plain, strict=False)
    assert not result.missing_keys and not result.unexpected_keys
    assert torch.equal(model.average_head.weights('student')['weight'], kept)
    assert model.student.decode_head.conv_seg.weight.abs().sum() == 0
    missing = model.load_state_dict(whole, strict=False).missing_keys
    assert set(missing) == {f'average_head.{name}' for name in ('step', 'student.weight', 'student.bias')}
