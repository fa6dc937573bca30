"""LayerMatch on the FixMatch family: Grad-ReLU and Avg-Clustering on a stock classifier."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mmpretrain.registry import MODELS
from torch import Tensor

from mmssl.models.supervised_only import SupervisedOnly
from mmssl.utils.layer_names import find_layers

KEY = 'custom_hooks: mmssl.EMAHeadHook.layer'
FREEMATCH = dict(threshold=dict(type='mmssl.SelfAdaptiveThreshold'))
CASES = {
    'freematch': FREEMATCH,
    'selected': dict(FREEMATCH, normalize='selected', unsup_weight=0.5),
    'fixmatch_apart': dict(threshold=dict(type='mmssl.FixedThreshold', threshold=0.3), concatenate=False),
    'mean_teacher': dict(
        threshold=dict(type='mmssl.FixedThreshold', threshold=0.0), teacher='ema', target='soft',
        unsup_loss=dict(type='mmssl.ConsistencyMSELoss'),
    ),
}  # fmt: skip


def build(classifier: dict, **options: Any) -> Any:
    torch.manual_seed(0)
    model = MODELS.build(dict(type='mmssl.PseudoLabelClassifier', classifier=classifier, semi_train_cfg=options))
    torch.nn.init.normal_(model.student.head.fc.weight, std=0.5)
    if model.has_teacher:
        model.initialize_teacher()
    return model.train()


def gradients(model: Any, losses: dict, prefix: str = '') -> dict[str, Tensor]:
    model.zero_grad()
    sum(value for name, value in losses.items() if 'loss' in name and name.startswith(prefix)).backward(
        retain_graph=True)  # fmt: skip
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize('case', CASES)
def test_layermatch(tiny_classifier: dict, make_batch: Callable, case: str) -> None:
    plain = build(tiny_classifier, **CASES[case])
    ours, by_name = deepcopy(plain), deepcopy(plain)
    ours.set_grad_relu(['head.fc'])
    ours.set_average_head('head.fc', KEY, loss_weight=0.4, reset_interval=1)
    SupervisedOnly(by_name, find_layers(by_name.trained_models(), ['head.fc'], 'layers'), ['sup_*'], 'hook')
    batch = make_batch()
    before, losses, named = plain.loss(*batch), ours.loss(*batch), by_name(*batch, mode='loss')
    assert before['unsup_loss'] > 1e-3
    assert all(torch.equal(torch.as_tensor(losses[name]), torch.as_tensor(value)) for name, value in before.items())
    share = 0.4 / ours.semi_train_cfg['unsup_weight']
    torch.testing.assert_close(losses['unsup_avg_loss'], share * before['unsup_loss'])

    alone, unsup = gradients(plain, before, 'sup_'), gradients(plain, before, 'unsup')
    found, by_names = gradients(ours, losses), gradients(by_name, named)
    for name, value in found.items():
        if 'head.fc' in name:
            assert torch.equal(value, alone[name]) and torch.equal(by_names[name], alone[name])
            assert unsup[name].norm() > 1e-4
        else:
            expected = alone[name] + (1 + share) * unsup[name]
            assert (value - expected).norm() < 1e-3 * expected.norm() + 1e-6, name


def test_published_step_is_a_plain_descent(tiny_classifier: dict, make_batch: Callable) -> None:
    """Three steps of the whole of LayerMatch, the averaged layer followed by hand."""
    model = build(tiny_classifier, **FREEMATCH)
    model.set_grad_relu(['head.fc'])
    model.set_average_head('head.fc', KEY, momentum=0.5, lr=0.6, reset_interval=2, loss_weight=3.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    held = None
    for step in range(4):
        batch = make_batch()
        twin = deepcopy(model)
        losses = model.loss(*batch)
        fc = twin.student.head.fc
        held = [p.detach().clone() for p in fc.parameters()] if step % 2 == 0 else held
        with torch.no_grad():
            views = torch.cat([batch[0][name] for name in ('sup', 'unsup_weak', 'unsup_strong')])
            features = twin.student.extract_feat(views)[-1]
            weak, strong = features[4:12], features[12:]
            target, weight = twin.pseudo_labels(fc(weak), None)
        leaves = [value.requires_grad_() for value in held]
        loss = (F.cross_entropy(F.linear(strong, *leaves), target.argmax(1), reduction='none') * weight).mean()
        torch.testing.assert_close(losses['unsup_avg_loss'], 3 * loss)
        held = [v.detach() - 0.3 * g for v, g in zip(held, torch.autograd.grad(loss, leaves), strict=True)]
        optimizer.zero_grad()
        model.parse_losses(losses)[0].backward()
        optimizer.step()
        model.update_average_head()
        for name, value in zip(('weight', 'bias'), held, strict=True):
            torch.testing.assert_close(model.average_head.weights('student')[name], value)


def test_layers_that_do_not_fit(tiny_classifier: dict, make_batch: Callable) -> None:
    model = build(tiny_classifier)
    with pytest.raises(ValueError, match=r'backbone.layer4.* must lie in the head.*concatenate=False'):
        model.set_grad_relu(['backbone.layer4'])
    assert not model.grad_relu_layers
    apart = build(tiny_classifier, concatenate=False)
    apart.set_grad_relu(['backbone.layer4', 'head'])
    losses = apart.loss(*make_batch())
    alone, found = gradients(apart, losses, 'sup_'), gradients(apart, losses)
    assert all(torch.equal(found[name], alone[name]) for name in found if 'layer4' in name or 'head' in name)
    tiny_classifier['head'] = dict(type='StackedLinearClsHead', num_classes=4, in_channels=32, mid_channels=[8])
    stacked = build_stacked(tiny_classifier)
    stacked.set_average_head('head.layers.0.fc', KEY)
    with pytest.raises(ValueError, match=r'layers.0.fc is not the layer that makes the logits'):
        stacked.loss(*make_batch())
    stacked = build_stacked(tiny_classifier)
    stacked.set_average_head('head.layers.1.fc', KEY)
    assert 'unsup_avg_loss' in stacked.loss(*make_batch())


def test_vision_transformer(tiny_classifier: dict, make_batch: Callable) -> None:
    """Its head takes a pair of patch and class tokens, and its last layer is `head.layers.head`."""
    arch = dict(embed_dims=16, num_layers=2, num_heads=2, feedforward_channels=32)
    tiny_classifier.update(
        backbone=dict(type='VisionTransformer', arch=arch, img_size=12, patch_size=4),
        neck=None,
        head=dict(type='VisionTransformerClsHead', num_classes=4, in_channels=16, loss=dict(type='CrossEntropyLoss')),
    )
    model = build_stacked(tiny_classifier)
    model.set_grad_relu(['head.layers.head'])
    model.set_average_head('head.layers.head', KEY)
    model.threshold.threshold = 0.0
    losses = model.loss(*make_batch())
    alone, found = gradients(model, losses, 'sup_'), gradients(model, losses)
    assert losses['unsup_avg_loss'] > 0
    for name, value in found.items():
        assert torch.equal(value, alone[name]) == (name.startswith('student.head') or not value.any()), name


def build_stacked(classifier: dict) -> Any:
    return MODELS.build(dict(type='mmssl.PseudoLabelClassifier', classifier=classifier)).train()
