"""PseudoLabelClassifier: every method against a plain second implementation, its forwards, and what is refused."""

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mmengine.model import ExponentialMovingAverage
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from torch import Tensor, nn

from mmssl.models import thresholds
from mmssl.models.classifiers import PseudoLabelClassifier
from mmssl.models.classifiers.base import frozen_statistics, split_batch


def of(name: str, **options: Any) -> dict:
    return dict(type=f'mmssl.{name}', **options)


def build(classifier: dict, **semi_train_cfg: Any) -> PseudoLabelClassifier:
    model = MODELS.build(dict(type='mmssl.PseudoLabelClassifier', classifier=classifier, semi_train_cfg=semi_train_cfg))
    sharpen(model)
    if model.has_teacher:
        model.initialize_teacher()
        with torch.no_grad():
            for parameter in model.teacher.parameters():
                parameter += 0.05 * torch.randn_like(parameter)
    return model.train()


def sharpen(model: nn.Module) -> None:
    """Make the logits of a fresh model differ, so that some are confident and some are not."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.5)
            with torch.no_grad():  # of features >= 0, whose mean would decide alone
                module.weight -= module.weight.mean(dim=1, keepdim=True)


def total(losses: dict[str, Any]) -> Tensor:
    return sum(value for name, value in losses.items() if 'loss' in name)


def labels_of(samples: list) -> Tensor:
    return torch.cat([sample.gt_label for sample in samples])


def together(student: nn.Module, *images: Tensor) -> list[Tensor]:
    """Logits of all images from one forward."""
    logits = student.head.fc(student.neck(student.backbone(torch.cat(images)))[-1])
    return list(logits.split([len(part) for part in images]))


def apart(student: nn.Module, *images: Tensor) -> list[Tensor]:
    return [together(student, part)[0] for part in images]


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    return -(target * logits.log_softmax(dim=1)).sum(dim=1)


def one_hot(logits: Tensor) -> Tensor:
    return F.one_hot(logits.argmax(dim=1), logits.shape[1]).float()


def fixmatch(weak: Tensor, strong: Tensor, labeled: Tensor) -> Tensor:
    mask = weak.softmax(dim=1).amax(dim=1) >= 0.5
    assert 0 < mask.sum() < len(mask)
    return (mask * cross_entropy(strong, one_hot(weak))).mean()


def fixmatch_selected(weak: Tensor, strong: Tensor, labeled: Tensor) -> Tensor:
    mask = weak.softmax(dim=1).amax(dim=1) >= 0.5
    return cross_entropy(strong, one_hot(weak))[mask].mean()


def uda(weak: Tensor, strong: Tensor, labeled: Tensor) -> Tensor:
    mask = weak.softmax(dim=1).amax(dim=1) >= 0.5
    return (mask * cross_entropy(strong, (weak / 0.4).softmax(dim=1))).mean()


def softmatch(weak: Tensor, strong: Tensor, labeled: Tensor) -> Tensor:
    q = weak.softmax(dim=1)
    mean = q.mean(dim=0)
    q = q * (0.25 + 1e-6) / (mean + 1e-6)
    top = (q / q.sum(dim=1, keepdim=True)).amax(dim=1)
    mu, var = 0.5 * 0.25 + 0.5 * top.mean(), 0.5 * 1 + 0.5 * top.var()
    weight = torch.exp(-((top - mu).clamp(max=0) ** 2) * 4 / (2 * var))
    assert weight.min() < 0.99
    return (weight * cross_entropy(strong, one_hot(weak))).mean()


def adamatch(weak: Tensor, strong: Tensor, labeled: Tensor) -> Tensor:
    q, sup = weak.softmax(dim=1), labeled.softmax(dim=1)
    goal = 0.5 * 0.25 + 0.5 * sup.mean(dim=0)
    q = q * (goal + 1e-6) / (q.mean(dim=0) + 1e-6)
    q = q / q.sum(dim=1, keepdim=True)
    mask = q.amax(dim=1) >= 0.8 * sup.amax(dim=1).mean()
    assert 0 < mask.sum() < len(mask)
    return (mask * cross_entropy(strong, one_hot(q))).mean()


def freematch(weak: Tensor, strong: Tensor, labeled: Tensor) -> Tensor:
    q = weak.softmax(dim=1)
    top, label = q.max(dim=1)
    tau = 0.5 * 0.25 + 0.5 * top.mean()
    p = 0.5 * 0.25 + 0.5 * q.mean(dim=0)
    h = 0.5 * 0.25 + 0.5 * one_hot(weak).mean(dim=0)
    mask = top >= (tau * p / p.max())[label]
    assert 0 < mask.sum() < len(mask)
    chosen = strong.softmax(dim=1)[mask]
    counts = one_hot(chosen).mean(dim=0)
    a, b = p / h, torch.where(counts > 0, chosen.mean(dim=0) / counts.clamp(min=1e-9), 0)
    fairness = (a / a.sum() * (b / b.sum() + 1e-12).log()).sum()
    return (mask * cross_entropy(strong, one_hot(weak))).mean() + 0.05 * fairness


METHODS: dict[str, tuple[Callable, dict]] = dict(
    fixmatch=(fixmatch, dict(threshold=of('FixedThreshold', threshold=0.5))),
    fixmatch_selected=(fixmatch_selected, dict(threshold=of('FixedThreshold', threshold=0.5), normalize='selected')),
    uda=(uda, dict(threshold=of('FixedThreshold', threshold=0.5), target='soft', temperature=0.4)),
    softmatch=(softmatch, dict(
        threshold=of('SoftMatchWeight', momentum=0.5), alignment=of('DistributionAlignment', apply_to='confidence'))),
    adamatch=(adamatch, dict(
        threshold=of('AdaMatchThreshold', threshold=0.8),
        alignment=of('DistributionAlignment', target='labeled', momentum=0.5))),
    freematch=(freematch, dict(threshold=of('SelfAdaptiveThreshold', momentum=0.5), fairness_weight=0.05)),
)  # fmt: skip


def assert_same(ours: nn.Module, plain: nn.Module) -> None:
    for (name, a), b in zip(ours.student.named_parameters(), plain.student.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-5, msg=lambda m, n=name: f'{n}: {m}')
    for (name, a), b in zip(ours.student.named_buffers(), plain.student.buffers(), strict=True):
        torch.testing.assert_close(a, b, msg=lambda m, n=name: f'{n}: {m}')


@pytest.mark.parametrize('concatenate', [True, False])
@pytest.mark.parametrize('method', METHODS)
def test_methods_equal_a_plain_implementation(
    tiny_classifier: dict, make_batch: Callable, method: str, concatenate: bool
) -> None:
    unsupervised, options = METHODS[method]
    inputs, samples = make_batch(unlabeled=24)
    model = build(tiny_classifier, sup_weight=0.7, unsup_weight=1.5, concatenate=concatenate, **options)
    plain = deepcopy(model)
    losses = model.loss(inputs, samples)
    total(losses).backward()

    views = [inputs[name] for name in ('sup', 'unsup_weak', 'unsup_strong')]
    labeled, weak, strong = (together if concatenate else apart)(plain.student, *views)
    value = unsupervised(weak.detach(), strong, labeled.detach())
    if method == 'freematch':  # only the first part has the weight of the unsupervised loss
        fairness = losses['unsup_fairness_loss']
        value = value + (1.5 - 1) * (value - fairness)
    else:
        value = 1.5 * value
    loss = 0.7 * F.cross_entropy(labeled, labels_of(samples['sup'])) + value
    torch.testing.assert_close(total(losses).detach(), loss.detach())
    if method != 'freematch':
        loss.backward()
        assert_same(model, plain)


def test_gradient_of_the_fairness_loss(tiny_classifier: dict, make_batch: Callable) -> None:
    inputs, samples = make_batch(unlabeled=24)
    model = build(tiny_classifier, threshold=of('SelfAdaptiveThreshold', momentum=0.5), fairness_weight=0.05)
    plain = deepcopy(model)
    total(model.loss(inputs, samples)).backward()
    labeled, weak, strong = together(plain.student, *(inputs[b] for b in ('sup', 'unsup_weak', 'unsup_strong')))
    (F.cross_entropy(labeled, labels_of(samples['sup'])) + freematch(weak.detach(), strong, labeled)).backward()
    assert_same(model, plain)


@pytest.mark.parametrize('mode', ['train', 'eval'])
def test_mean_teacher_equals_a_plain_implementation(tiny_classifier: dict, make_batch: Callable, mode: str) -> None:
    inputs, samples = make_batch(unsup_weak2=8)
    model = build(
        tiny_classifier, teacher='ema', teacher_mode=mode, target='soft', unsup_loss=of('ConsistencyMSELoss'),
        threshold=of('FixedThreshold', threshold=0.0), student_branch='unsup_weak2', unsup_weight=50.0,
    )  # fmt: skip
    plain = deepcopy(model)
    assert plain.teacher.training == (mode == 'train')
    total(model.loss(inputs, samples)).backward()
    labeled, logits = together(plain.student, inputs['sup'], inputs['unsup_weak2'])
    with torch.no_grad():
        target = together(plain.teacher, inputs['unsup_weak'])[0].softmax(dim=1)
    mse = ((logits.softmax(dim=1) - target) ** 2).mean()
    (F.cross_entropy(labeled, labels_of(samples['sup'])) + 50 * mse).backward()
    assert_same(model, plain)
    assert all(parameter.grad is None for parameter in model.teacher.parameters())
    for a, b in zip(model.teacher.buffers(), plain.teacher.buffers(), strict=True):
        assert torch.equal(a, b)


def test_pseudo_label_learns_on_the_weak_view_and_leaves_statistics_alone(
    tiny_classifier: dict, make_batch: Callable
) -> None:
    inputs, samples = make_batch()
    del inputs['unsup_strong'], samples['unsup_strong']
    model = build(
        tiny_classifier, student_branch='unsup_weak', concatenate=False, freeze_bn_on_unlabeled=True,
        threshold=of('FixedThreshold', threshold=0.5),
    )  # fmt: skip
    plain = deepcopy(model)
    total(model.loss(inputs, samples)).backward()
    labeled = together(plain.student, inputs['sup'])[0]
    after_labeled = [buffer.clone() for buffer in plain.student.buffers()]
    logits = together(plain.student, inputs['unsup_weak'])[0]
    mask = logits.softmax(dim=1).amax(dim=1) >= 0.5
    loss = F.cross_entropy(labeled, labels_of(samples['sup'])) + (mask * cross_entropy(logits, one_hot(logits))).mean()
    loss.backward()
    for buffer, value in zip(plain.student.buffers(), after_labeled, strict=True):
        buffer.copy_(value)
    assert_same(model, plain)
    assert all(layer.track_running_stats for layer in model.modules() if isinstance(layer, nn.BatchNorm2d))


def test_frozen_statistics_keep_what_a_user_froze() -> None:
    layer = nn.BatchNorm2d(2)
    images = 3 + torch.randn(4, 2, 3, 3)
    layer.eval()
    with frozen_statistics(layer):
        assert torch.allclose(layer(images), images, atol=1e-4)  # running statistics, not those of the batch
    layer.train()
    with pytest.raises(RuntimeError), frozen_statistics(layer):
        assert layer(images).mean().abs() < 1e-5
        raise RuntimeError
    assert layer.running_mean.tolist() == [0, 0] and layer.num_batches_tracked == 0 and layer.track_running_stats


def test_dash_warms_up_and_turns_hard(tiny_classifier: dict, make_batch: Callable) -> None:
    inputs, samples = make_batch()
    model = build(
        tiny_classifier, unsup_begin=2, target='soft',
        threshold=of('DashThreshold', interval=1, gamma=5.0, minimum=0.5),
    )  # fmt: skip
    plain = deepcopy(model)
    for _ in range(2):
        losses = model.loss(inputs, samples)
        assert losses['unsup_loss'] == 0 and model.threshold.steps == 0
    labeled = together(plain.student, inputs['sup'])[0]
    assert model.threshold.labeled_loss.item() == pytest.approx(
        F.cross_entropy(labeled, labels_of(samples['sup'])).item(), rel=1e-5
    )
    seen = [model.loss(inputs, samples)['unsup_threshold'].item() for _ in range(3)]
    assert seen[0] > seen[-1] == 0.5


@pytest.mark.parametrize('method', ['fixmatch', 'fixmatch_selected', 'freematch'])
def test_nothing_selected_gives_an_attached_zero(tiny_classifier: dict, make_batch: Callable, method: str) -> None:
    inputs, samples = make_batch()
    model = build(tiny_classifier, **METHODS[method][1])
    model.threshold.forward = lambda probs, **_: probs.new_zeros(len(probs))
    losses = model.loss(inputs, samples)
    loss = losses['unsup_loss'] + losses.get('unsup_fairness_loss', 0)
    loss.backward()
    assert loss.item() == 0 and losses['unsup_mask_ratio'] == 0
    assert all(parameter.grad is not None and not parameter.grad.any() for parameter in model.student.parameters())


def test_before_it_begins_unlabeled_images_are_not_even_forwarded(tiny_classifier: dict, make_batch: Callable) -> None:
    inputs, samples = make_batch()
    model = build(tiny_classifier, unsup_begin=1, unsup_ramp=4)
    before = deepcopy(model)
    losses = model.loss(inputs, samples)
    together(before.student, inputs['sup'])
    for a, b in zip(model.student.buffers(), before.student.buffers(), strict=True):
        assert torch.equal(a, b)
    losses['unsup_loss'].backward()
    assert losses['unsup_loss'] == 0 and all(p.grad is not None for p in model.student.parameters())
    model.threshold.forward = lambda probs, **_: probs.new_ones(len(probs))
    torch.manual_seed(0)
    ramped = [deepcopy(model).loss(inputs, samples)['unsup_loss']]
    model.semi_train_cfg['unsup_ramp'] = 1
    ramped.append(model.loss(inputs, samples)['unsup_loss'])
    assert ramped[0].item() == pytest.approx(ramped[1].item() / 4)


def test_tsa_leaves_out_what_is_known(tiny_classifier: dict, make_batch: Callable) -> None:
    inputs, samples = make_batch(labeled=8)
    model = build(tiny_classifier, tsa=dict(schedule='linear', iterations=10))
    plain = deepcopy(model)
    value = model.loss(inputs, samples)['sup_student.loss']
    logits = together(plain.student, *(inputs[b] for b in ('sup', 'unsup_weak', 'unsup_strong')))[0]
    labels = labels_of(samples['sup'])
    keep = logits.softmax(dim=1)[range(8), labels] <= 0.25
    assert 0 < keep.sum() < 8
    expected = (F.cross_entropy(logits, labels, reduction='none') * keep).mean()
    torch.testing.assert_close(value, expected)


@pytest.mark.parametrize('loss', ['FPLLoss', 'SoftPseudoLabelLoss', 'NegativeLearningLoss', 'ConsistencyMSELoss'])
def test_every_loss_takes_images(tiny_classifier: dict, make_batch: Callable, loss: str) -> None:
    inputs, samples = make_batch()
    model = build(
        tiny_classifier, target='soft', unsup_loss=of(loss), threshold=of('FixedThreshold', threshold=0.3)
    )
    losses = model.loss(inputs, samples)
    losses['unsup_loss'].backward()
    assert losses['unsup_loss'] > 0 and model.student.head.fc.weight.grad.any()


HEADS = dict(
    stacked=dict(type='StackedLinearClsHead', num_classes=4, in_channels=32, mid_channels=[8],
                 norm_cfg=dict(type='BN1d')),
    margin=dict(type='ArcFaceClsHead', num_classes=4, in_channels=32),
)  # fmt: skip


@pytest.mark.parametrize('head', HEADS)
@pytest.mark.parametrize('concatenate', [True, False])
def test_other_heads(tiny_classifier: dict, make_batch: Callable, head: str, concatenate: bool) -> None:
    inputs, samples = make_batch()
    tiny_classifier['head'] = HEADS[head]
    model = build(tiny_classifier, threshold=of('AdaMatchThreshold'), concatenate=concatenate)
    total(model.loss(inputs, samples)).backward()
    assert all(parameter.grad is not None for parameter in model.student.parameters())
    model.eval()
    stock = model.student.predict(inputs['sup'])
    ours = model.predict(inputs['sup'])
    assert all(torch.equal(a.pred_score, b.pred_score) for a, b in zip(ours, stock, strict=True))


def test_vision_transformer_and_its_layer_depths(make_batch: Callable) -> None:
    inputs, samples = make_batch()
    arch = dict(embed_dims=8, num_layers=2, num_heads=2, feedforward_channels=16)
    classifier = dict(
        type='ImageClassifier',
        backbone=dict(type='VisionTransformer', arch=arch, img_size=12, patch_size=4),
        head=dict(type='VisionTransformerClsHead', num_classes=4, in_channels=8),
    )
    model = build(classifier, teacher='ema')
    total(model.loss(inputs, samples)).backward()
    assert all(parameter.grad is not None for parameter in model.student.parameters())
    for name, _ in model.student.named_parameters():
        assert model.get_layer_depth(f'student.{name}') == model.student.get_layer_depth(name)


def test_lenet_makes_logits_in_the_backbone() -> None:
    classifier = dict(type='ImageClassifier', backbone=dict(type='LeNet5', num_classes=10), head=dict(type='ClsHead'))
    assert build(classifier).num_classes == 10


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision_stays_in_its_place(tiny_classifier: dict, make_batch: Callable, dtype: torch.dtype) -> None:
    if dtype == torch.float16 and torch.__version__ < '2.4':
        pytest.skip('autocast of this torch knows bfloat16 alone on a CPU')
    inputs, samples = make_batch()
    model = build(tiny_classifier, **METHODS['freematch'][1], alignment=of('DistributionAlignment'))
    exact = deepcopy(model).loss(inputs, samples)
    with torch.autocast('cpu', dtype=dtype):
        losses = model.loss(inputs, samples)
    for name, value in losses.items():
        assert value.dtype == torch.float32, name
        assert value.item() == pytest.approx(exact[name].item(), abs=0.15), name
    assert all(b.dtype in (torch.float32, torch.long) for b in model.threshold.buffers())


def test_extreme_logits_stay_finite(tiny_classifier: dict) -> None:
    for options in [*(options for _, options in METHODS.values()), dict(target='soft', temperature=0.1)]:
        model = build(tiny_classifier, **options)
        for scale in (1e4, 3e38):
            logits = scale * torch.tensor([[1.0, -1.0, 0, 0], [0.0, 0, 0, 1]])
            target, weights = model.pseudo_labels(logits, logits)
            value = logits.clone().requires_grad_()
            loss = model.unsup_loss(value, target, weight=weights)
            loss.backward()
            assert torch.isfinite(loss) and torch.isfinite(value.grad).all() and torch.isfinite(weights).all()


def test_record_and_statistics(tiny_classifier: dict, make_batch: Callable) -> None:
    inputs, samples = make_batch(truth=True)
    model = build(tiny_classifier, **METHODS['freematch'][1])
    losses = model.loss(inputs, samples)
    assert model.record is None and {'unsup_mask_ratio', 'unsup_threshold'} <= losses.keys()
    model.recording = True
    model.loss(inputs, samples)
    record = model.record
    assert record.truth.tolist() == [index % 4 for index in range(8)] and record.class_thresholds.shape == (4,)
    assert record.logits.shape == record.target_logits.shape == (8, 4) and record.weight.shape == (8,)
    assert not any(value.requires_grad for value in vars(record).values())


def test_hidden_truth_changes_nothing(tiny_classifier: dict, make_batch: Callable) -> None:
    results = []
    for truth in (False, True):
        torch.manual_seed(0)
        model = build(tiny_classifier, **METHODS['adamatch'][1])
        total(model.loss(*make_batch(truth=truth))).backward()
        results.append([parameter.grad for parameter in model.student.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))


def test_collapsed_labels_are_warned_of(
    tiny_classifier: dict, make_batch: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    monkeypatch.setattr('mmssl.models.collapse_guard.print_log', lambda text, **_: messages.append(text))
    _, samples = make_batch()
    model = build(tiny_classifier)
    for _ in range(200):
        model.next_unsup_weight()
        model.watch_pseudo_labels(samples['sup'], torch.tensor([[0.0, 0, 100, 0]] * 8))
    assert len(messages) == 1 and 'class 2' in messages[0]


def test_a_loss_that_is_not_finite_is_named(tiny_classifier: dict, make_batch: Callable) -> None:
    inputs, samples = make_batch()
    inputs['sup'][0] = float('nan')
    model = build(tiny_classifier)
    with pytest.raises(FloatingPointError, match=r'iteration 1.*sup_student\.loss'):
        model.parse_losses(model.loss(inputs, samples))


# Every threshold, with what it needs, and both kinds of alignment.
THRESHOLDS = {
    'fixed': dict(threshold=of('FixedThreshold', threshold=0.5)),
    'fixed_without_loss': dict(threshold=of('FixedThreshold', threshold=1.0)),
    'flexmatch': dict(threshold=of('FlexMatchThreshold', threshold=0.5, num_samples=16)),
    'freematch': dict(threshold=of('SelfAdaptiveThreshold', momentum=0.5), fairness_weight=0.1),
    'freematch_quantile': dict(threshold=of('SelfAdaptiveThreshold', quantile=0.5, clip=(0.0, 0.95))),
    'softmatch': dict(
        threshold=of('SoftMatchWeight'), alignment=of('DistributionAlignment', apply_to='confidence')
    ),
    'adamatch': dict(
        threshold=of('AdaMatchThreshold', threshold=0.5), alignment=of('DistributionAlignment', target='labeled')
    ),
    'dash': dict(threshold=of('DashThreshold'), target='soft', unsup_begin=1),
    'dash_hard': dict(threshold=of('DashThreshold', interval=1, gamma=9.0, minimum=5.0), target='soft', unsup_begin=1),
}  # fmt: skip


@pytest.mark.parametrize('value', [float('nan'), float('inf'), float('-inf')])
@pytest.mark.parametrize('teacher', [None, 'ema'])
@pytest.mark.parametrize('kind', THRESHOLDS)
def test_weak_logits_that_are_not_finite_stop_the_run(
    tiny_classifier: dict, make_batch: Callable, kind: str, teacher: str | None, value: float
) -> None:
    """One logit of one image: student views are finite, so without the check the loss would be."""
    assert {piece['threshold']['type'] for piece in THRESHOLDS.values()} == {
        f'mmssl.{name}' for name in thresholds.__all__ if name not in ('Threshold', 'DistributionAlignment')}
    inputs, samples = make_batch()
    for number, sample in enumerate(samples['unsup_weak']):
        sample.set_metainfo(dict(sample_idx=number))
    model = build(tiny_classifier, teacher=teacher, **THRESHOLDS[kind])
    begin = model.semi_train_cfg['unsup_begin']
    for _ in range(begin + 1):
        model.parse_losses(model.loss(inputs, samples))
    poisoned = model.teacher if teacher else model.student
    logits_of = model.logits_of

    def broken(student: nn.Module, features: Any) -> Tensor:
        logits = logits_of(student, features)
        if student is poisoned and not torch.is_grad_enabled():
            logits[1, 2] = value
        return logits

    model.logits_of = broken
    losses = model.loss(inputs, samples)
    assert losses['unsup_loss'].requires_grad
    with pytest.raises(FloatingPointError, match=rf"iteration {begin + 2}: {{'unsup_loss': nan}} is not finite"):
        model.parse_losses(losses)


@pytest.mark.parametrize('kind', ['freematch', 'softmatch', 'adamatch', 'dash'])
def test_averages_that_are_not_finite_stop_the_run(tiny_classifier: dict, make_batch: Callable, kind: str) -> None:
    """As in a process whose own logits are fine, and another's were not."""
    inputs, samples = make_batch()
    states = [name for name, value in build(tiny_classifier, **THRESHOLDS[kind]).named_buffers()
              if name.startswith(('threshold', 'alignment')) and value.is_floating_point()]  # fmt: skip
    assert len(states) == {'freematch': 3, 'softmatch': 4, 'adamatch': 2, 'dash': 1}[kind]
    for state in states:
        model = build(tiny_classifier, **THRESHOLDS[kind])
        for _ in range(model.semi_train_cfg['unsup_begin'] + 1):
            model.parse_losses(model.loss(inputs, samples))
        buffer = model.get_buffer(state)
        buffer.view(-1)[0] = torch.nan
        with pytest.raises(FloatingPointError, match=r"{'unsup_loss': nan} is not finite"):
            model.parse_losses(model.loss(inputs, samples))


def test_dash_does_not_start_from_a_loss_that_is_not_finite(tiny_classifier: dict, make_batch: Callable) -> None:
    inputs, samples = make_batch()
    model = build(tiny_classifier, **THRESHOLDS['dash'])
    model.student.head.fc.bias.data[1] = torch.nan
    with pytest.raises(FloatingPointError, match=r"iteration 1: {'sup_student\.loss': nan"):
        model.parse_losses(model.loss(inputs, samples))


def test_prediction_of_teacher_and_ensemble(tiny_classifier: dict, make_batch: Callable) -> None:
    inputs, _ = make_batch()
    model = build(tiny_classifier, teacher='ema').eval()
    scores = {}
    for name in ('teacher', 'student', 'ensemble'):
        model.semi_test_cfg['predict_on'] = name
        scores[name] = torch.stack([sample.pred_score for sample in model.predict(inputs['sup'])])
    stock = torch.stack([sample.pred_score for sample in model.teacher.predict(inputs['sup'])])
    assert torch.equal(scores['teacher'], stock) and not torch.equal(scores['teacher'], scores['student'])
    torch.testing.assert_close(scores['ensemble'], (scores['teacher'] + scores['student']) / 2)
    assert build(tiny_classifier).semi_test_cfg['predict_on'] == 'student'
    assert model.semi_test_cfg and model(inputs['sup']).shape == (4, 4)
    assert isinstance(model.extract_feat(inputs['sup'], stage='backbone'), tuple)


def test_plain_checkpoint_reaches_student_and_teacher(tiny_classifier: dict) -> None:
    model = build(tiny_classifier, teacher='ema')
    plain = {key: value + 1 for key, value in model.student.state_dict().items()}
    model.load_state_dict(deepcopy(plain))
    for part in (model.student, model.teacher):
        assert all(torch.equal(value, plain[key]) for key, value in part.state_dict().items())


def test_average_of_the_whole_model_has_the_statistics_of_the_student(
    tiny_classifier: dict, make_batch: Callable
) -> None:
    inputs, samples = make_batch()
    model = build(tiny_classifier, **METHODS['freematch'][1])
    ema = ExponentialMovingAverage(model, momentum=0.5)
    for _ in range(2):
        model.loss(inputs, samples)
        ema.update_parameters(model)
    for (name, a), b in zip(ema.module.named_buffers(), model.buffers(), strict=True):
        assert torch.equal(a, b), name
    sample = ema.module.eval().predict(inputs['sup'])[0]
    assert sample.pred_score.shape == (4,)


def test_new_run_forgets_the_statistics_of_another(tiny_classifier: dict, make_batch: Callable) -> None:
    model = build(tiny_classifier, **METHODS['softmatch'][1])
    start = {name: value.clone() for name, value in model.named_buffers() if not name.startswith('student')}
    model.loss(*make_batch())
    assert model.iteration == 1 and model.alignment.updates == 1
    model.restart_count()
    assert all(torch.equal(dict(model.named_buffers())[name], value) for name, value in start.items())


def test_features_of_any_nesting_are_split() -> None:
    features = (torch.arange(6), [torch.ones(6, 2), dict(a=torch.zeros(6))])
    first, second = split_batch(features, [2, 4])
    assert first[0].tolist() == [0, 1] and second[1][1]['a'].shape == (4,) and isinstance(first[1], list)
    with pytest.raises(ValueError, match='concatenate must be False'):
        split_batch((torch.ones(5),), [2, 4])


@pytest.mark.parametrize(
    ('options', 'error', 'message'),
    [
        (dict(treshold=0.9), KeyError, 'did you mean `threshold`'),
        (dict(threshold=0.95), ValueError, 'semi_train_cfg.threshold must be a dict with `type`'),
        (dict(threshold=of('FixedThreshold', num_classes=7)), ValueError, 'must be that of model.classifier'),
        (dict(threshold=of('HardPseudoLabelLoss')), ValueError, 'threshold.type must be .*mmssl.SoftMatchWeight'),
        (dict(threshold=of('FreeMatchThreshold')), ValueError, 'threshold.type must be .*mmssl.FreeMatchThreshold'),
        (dict(threshold=dict(type='NoThreshold')), ValueError, "threshold.type must be one of .*, got 'NoThreshold'"),
        (dict(alignment=of('FixedThreshold')), ValueError, r"alignment.type must be one of .'mmssl.DistributionAlign"),
        (dict(target='onehot'), ValueError, "target must be one of .'hard', 'soft'."),
        (dict(temperature=0.4), ValueError, "temperature must be 1 with target='hard'"),
        (dict(temperature=0, target='soft'), ValueError, 'temperature must be > 0'),
        (dict(target='soft', unsup_loss=of('HardPseudoLabelLoss')), ValueError, "target must be 'hard' with"),
        (dict(unsup_loss=of('ConsistencyMSELoss')), ValueError, "target must be 'soft' with"),
        (dict(unsup_loss=dict(type='CrossEntropyLoss')), ValueError, 'between two sets of logits'),
        (dict(normalize='mean'), ValueError, 'normalize must be one of'),
        (dict(fairness_weight=0.1), ValueError, 'fairness_weight needs the averages of mmssl.SelfAdaptiveThreshold'),
        (dict(teacher='mean'), ValueError, 'teacher must be one of'),
        (dict(teacher_mode='off'), ValueError, 'teacher_mode must be one of'),
        (dict(student_branch='sup'), ValueError, 'student_branch must be the name of a branch of unlabeled'),
        (dict(freeze_bn_on_unlabeled=True), ValueError, 'needs concatenate=False'),
        (dict(target='soft', threshold=of('DashThreshold')), ValueError, 'unsup_begin must be at least 1'),
        (dict(unsup_begin=1, threshold=of('DashThreshold')), ValueError, "target must be 'soft', and temperature 1"),
        (dict(tsa=dict(schedule='linear')), ValueError, 'tsa must be None or dict'),
        (dict(tsa=dict(schedule='cosine', iterations=1)), ValueError, 'tsa.schedule must be one of'),
    ],
)
def test_wrong_options_name_their_key(tiny_classifier: dict, options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        build(tiny_classifier, **options)


def test_wrong_classifiers_name_their_key(tiny_classifier: dict) -> None:
    def fails(message: str, **changes: Any) -> None:
        with pytest.raises(ValueError, match=message):
            build(dict(tiny_classifier, **changes))

    fails('model.classifier.train_cfg must have no `augments`', train_cfg=dict(augments=[dict(type='Mixup', alpha=1)]))
    fails('head derived from ClsHead', head=dict(type='MultiLabelLinearClsHead', num_classes=4, in_channels=32))
    fails('head.num_classes must be an integer >= 2', head=dict(type='LinearClsHead', num_classes=1, in_channels=32))
    fails('head.num_classes must be an integer >= 2', head=dict(type='ClsHead'))
    with pytest.raises(ValueError, match=r'model\.classifier must be the config of an mmpretrain classifier'):
        MODELS.build(dict(type='mmssl.PseudoLabelClassifier', classifier=None))


def test_missing_branches_and_numbers_are_named(tiny_classifier: dict, make_batch: Callable) -> None:
    inputs, samples = make_batch()
    model = build(tiny_classifier)
    with pytest.raises(ValueError, match='unsup_strong'):
        model.loss({name: inputs[name] for name in ('sup', 'unsup_weak')}, samples)
    with pytest.raises(ValueError, match=r'custom_hooks must hold mmssl\.MeanTeacherHook'):
        fresh = MODELS.build(
            dict(type='mmssl.PseudoLabelClassifier', classifier=tiny_classifier, semi_train_cfg=dict(teacher='ema'))
        )
        for _ in range(2):
            fresh.loss(inputs, samples)
    for sample in samples['unsup_weak']:
        sample.pop('sample_idx')
    model = build(tiny_classifier, threshold=of('FlexMatchThreshold', num_samples=8))
    with pytest.raises(ValueError, match='sample_idx'):
        model.loss(inputs, samples)


def test_branches_and_hooks_that_options_need() -> None:
    kind = PseudoLabelClassifier
    assert kind.required_branches({}) == ('sup', 'unsup_weak', 'unsup_strong')
    assert kind.required_branches(dict(student_branch='unsup_weak')) == ('sup', 'unsup_weak')
    assert kind.required_hooks({}) == ()
    options = dict(teacher='ema', threshold=of('FlexMatchThreshold'))
    assert kind.required_hooks(options) == ('mmssl.MeanTeacherHook', 'mmssl.FlexMatchHook')
    assert kind.sub_models(options) == ('student', 'teacher') and kind.default_predictor(options) == 'teacher'
    assert math.isclose(kind.TRAIN_DEFAULTS['threshold']['threshold'], 0.95)


def test_unlabeled_images_of_which_some_have_labels(tiny_classifier: dict) -> None:
    """As in STL-10, where the labeled images are among the unlabeled ones."""
    model = build(tiny_classifier)
    branches = ('sup', 'unsup_weak', 'unsup_strong')
    samples = {name: [DataSample(), DataSample()] for name in branches}
    for name in branches:
        samples[name][0].set_gt_label(2)
    samples['sup'][1].set_gt_label(1)
    images = {name: [torch.zeros(3, 12, 12, dtype=torch.uint8)] * 2 for name in branches}
    data = model.data_preprocessor(dict(inputs=images, data_samples=samples), training=True)
    assert model.hidden_truth(data['data_samples']['unsup_weak']).tolist() == [2, -1]
    assert model.hidden_truth(data['data_samples']['sup']).tolist() == [2, 1]
    losses = model.loss(**data)
    assert torch.isfinite(losses['unsup_loss'])
