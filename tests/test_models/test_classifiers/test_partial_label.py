"""mmssl.PartialLabelClassifier: its losses, who learns from which, its switches, and what it refuses."""

from typing import Any

import pytest

pytest.importorskip('mmpretrain')

import mmpretrain.models  # noqa: F401
import torch
from mmengine.config import ConfigDict
from mmengine.registry import MODELS, OPTIM_WRAPPERS, DefaultScope
from mmpretrain.structures import DataSample

from mmssl.functional import partial_label as pll

CLASSES = 4
CLASSIFIER = dict(
    type='ImageClassifier',
    backbone=dict(
        type='ResNet_CIFAR', depth=18, stem_channels=4, base_channels=4, norm_cfg=dict(type='GN', num_groups=2)),
    neck=dict(type='GlobalAveragePooling'),
    head=dict(type='LinearClsHead', num_classes=CLASSES, in_channels=32),
)
CANDIDATES = torch.tensor([[1, 1, 0, 1], [0, 1, 0, 0], [1, 1, 1, 1]], dtype=torch.bool)


def build(**options: Any) -> Any:
    torch.manual_seed(0)
    arguments = {key: options.pop(key) for key in ('estimator', 'classifier') if key in options}
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(ConfigDict(type='mmssl.PartialLabelClassifier',
                                        **{'classifier': CLASSIFIER, **arguments}, semi_train_cfg=options))
    # Sharper than at the start, so that entropies differ.
    for module in model.models_held:
        torch.nn.init.normal_(module.head.fc.weight, std=3.0)
    if 'teacher' in model.MODELS_HELD:
        model.follow_teacher()
    return model.train()


def batch(truth: bool = True) -> tuple[dict, dict]:
    generator = torch.Generator().manual_seed(1)
    inputs = {name: torch.randn(3, 3, 8, 8, generator=generator) for name in ('unsup_weak', 'unsup_strong')}
    samples = []
    for index, mask in enumerate(CANDIDATES):
        sample = DataSample(metainfo=dict(true_label=1) if truth else dict(sample_idx=index))
        sample.set_field(mask, 'candidates')
        samples.append(sample)
    return inputs, dict(unsup_weak=samples, unsup_strong=samples)


def test_losses_are_those_of_the_formulas() -> None:
    model = build(unsup_weight=0.7, temperature=0.5, estimator_temperature=2.0, reliability_power=0.5)
    inputs, samples = batch()
    losses = model.loss(inputs, samples)
    with torch.no_grad():
        target = pll.candidate_probs(model.classify(model.teacher, inputs['unsup_weak']) / 0.5, CANDIDATES)
        features = model.student.extract_feat(inputs['unsup_strong'])
        logits, scores = model.student.head(features), model.estimator(features[-1]) / 2
        log_p = logits.log_softmax(1)
        alpha, entropy, kl = [], [], []
        estimated = torch.zeros(3, CLASSES)
        for i, mask in enumerate(CANDIDATES):
            estimated[i, mask] = scores[i, mask].softmax(0)
            h = -sum(float(p) * float(p.log()) for p in target[i, mask] if p > 0)
            entropy.append(h / float(mask.sum().float().log()) if mask.sum() > 1 else 0.0)
            alpha.append((1 - entropy[-1]) ** 0.5)
            kl.append(sum(float(p) * float((p / q).log()) for p, q in zip(target[i, mask], estimated[i, mask],
                                                                         strict=True) if p > 0))
    alpha = torch.tensor(alpha)
    assert 0.01 < float(alpha[0]) < 0.99 and alpha[1] == 1
    soft = -(estimated * log_p).sum(1)
    wanted = dict(
        prediction_loss=-(target * log_p).sum(1).mean(), soft_loss=0.7 * (alpha * soft).mean(),
        reliability_loss=(alpha * torch.tensor(kl)).mean(), reliability=alpha.mean(),
        candidate_entropy=torch.tensor(entropy).mean(),
        target_acc=(target.argmax(1) == 1).float().mean(), estimator_acc=(estimated.argmax(1) == 1).float().mean())
    assert losses.keys() == wanted.keys()
    for name, value in wanted.items():
        torch.testing.assert_close(losses[name].detach(), value, atol=1e-5, rtol=1e-4,
                                   msg=lambda text, n=name: f'{n}: {text}')


def test_who_learns_from_what() -> None:
    model = build()
    losses = model.loss(*batch())
    parts = {'backbone': model.student.backbone, 'head': model.student.head, 'estimator': model.estimator}

    def reached(name: str) -> set[str]:
        return {
            part for part, module in parts.items()
            if any(g is not None and g.abs().sum() > 0 for g in torch.autograd.grad(
                losses[name], list(module.parameters()), retain_graph=True, allow_unused=True))
        }  # fmt: skip

    assert reached('prediction_loss') == {'backbone', 'head'}
    assert reached('soft_loss') == {'backbone', 'head'}
    assert reached('reliability_loss') == {'backbone', 'estimator'}
    assert not any(parameter.requires_grad for parameter in model.teacher.parameters())


def test_while_warming_up_the_estimator_learns_on_detached_features() -> None:
    model = build(unsup_begin=1)
    losses = model.loss(*batch())
    assert losses['soft_loss'] == 0 and losses['soft_loss'].requires_grad
    gradients = torch.autograd.grad(losses['reliability_loss'], list(model.student.backbone.parameters()),
                                    retain_graph=True, allow_unused=True)
    assert all(gradient is None for gradient in gradients)
    assert torch.autograd.grad(losses['reliability_loss'], model.estimator.embeddings)[0].abs().sum() > 0
    assert model.loss(*batch())['soft_loss'] > 0


def test_number_of_parameters() -> None:
    from mmssl.models.estimators import ReliabilityEstimator
    counts = [sum(p.numel() for p in ReliabilityEstimator(512, classes).parameters()) for classes in (10, 100)]
    assert counts == [67073, 78593]


def test_scores_against_a_plain_loop() -> None:
    from mmssl.models.estimators import ReliabilityEstimator
    estimator = ReliabilityEstimator(5, 3, embed_dims=4)
    features = torch.randn(2, 5)
    scores = estimator(features)
    for i in range(2):
        u = (estimator.project.weight @ features[i] + estimator.project.bias).tanh()
        for c in range(3):
            plain = (estimator.score.weight[0] * u * estimator.embeddings[c]).sum() + estimator.score.bias[0]
            torch.testing.assert_close(scores[i, c], plain)


def test_switches() -> None:
    assert 'soft_loss' not in build(estimator=None).loss(*batch())
    assert build(soft_loss=False).loss(*batch())['soft_loss'] == 0
    assert build(entropy_weighting=False).loss(*batch())['reliability'] == 1
    alone = build(teacher=None)
    assert alone.MODELS_HELD == ('student',) and not alone.has_teacher
    assert alone.loss(*batch())['prediction_loss'].requires_grad
    losses = build().loss(*batch(truth=False))
    assert 'target_acc' not in losses and 'estimator_acc' not in losses


def test_with_gradient_surgery() -> None:
    model = build()
    inputs, samples = batch()
    wrapper = OPTIM_WRAPPERS.build(dict(
        type='mmssl.RGDOptimWrapper', primary=['prediction_loss', 'soft_loss'], auxiliary=['reliability_loss'],
        shared=['student.backbone'], reliability='reliability',
        optimizer=torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)))
    wrapper.initialize_count_status(model, 0, 10)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    total, _ = model.parse_losses(model(inputs, samples, mode='loss'))
    wrapper.update_params(total)
    changed = {'.'.join(name.split('.')[:2]) for name, value in model.state_dict().items()
               if not torch.equal(value, before[name])}
    assert {'student.backbone', 'student.head'} <= changed and any(name.startswith('estimator') for name in changed)
    assert not any(name.startswith('teacher.') for name in changed)
    assert model.student.backbone.conv1.weight.grad is None, 'the wrapper empties the gradients'


def test_prediction_is_that_of_the_stock_classifier() -> None:
    model = build().eval()
    images = torch.randn(2, 3, 8, 8)
    stock = model.student.predict(images)
    for found, wanted in zip(model.predict(images), stock, strict=True):
        assert torch.equal(found.pred_score, wanted.pred_score)


def test_samples_without_candidates_are_refused() -> None:
    model = build()
    inputs, samples = batch()
    with pytest.raises(ValueError, match=r'no candidate sets: put mmssl\.PartialLabelDataset'):
        model.loss(inputs, dict(unsup_weak=[DataSample()] * 3, unsup_strong=[DataSample()] * 3))
    samples['unsup_weak'][0].candidates = torch.ones(5, dtype=torch.bool)
    with pytest.raises(ValueError, match=r'a mask of 4 classes, .* got the shape \(5,\)'):
        model.loss(inputs, samples)
    samples['unsup_weak'][0].candidates = torch.zeros(4, dtype=torch.bool)
    with pytest.raises(ValueError, match='and 0 labels'):
        model.loss(inputs, samples)
    with pytest.raises(ValueError, match='no sample of branch `unsup_strong`'):
        model.loss(dict(unsup_weak=inputs['unsup_weak']), samples)


@pytest.mark.parametrize(('options', 'message'), [
    (dict(temperature=0), 'temperature must be finite, > 0, got 0'),
    (dict(teacher='copy'), 'teacher must be one of'),
    (dict(reliability_power=-1), 'reliability_power must be'),
    (dict(estimator=dict(type='mmssl.ReliabilityEstimator', num_classes=7)), 'num_classes must be that of .* 4'),
    (dict(estimator=dict(type='mmssl.ReliabilityEstimator', embed_dims=0)), '`embed_dims` must be an integer >= 1'),
    (dict(estimator=3), 'model.estimator must be None or a dict'),
])  # yapf: disable
def test_wrong_options(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(**options)
    with pytest.raises(KeyError, match='unknown key `kappa`'):
        build(kappa=1)
