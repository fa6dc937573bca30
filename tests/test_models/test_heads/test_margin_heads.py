"""Heads with margins, and the losses on labels in stock heads of mmpretrain and mmseg."""

import math

import pytest
import torch
import torch.nn.functional as F
from mmengine.registry import DefaultScope, init_default_scope

from mmssl.functional.adr import adr_penalty
from mmssl.registry import MODELS

pytest.importorskip('mmpretrain')
CLASSES, CHANNELS = 6, 8


@pytest.fixture(autouse=True)
def scope():
    init_default_scope('mmpretrain')
    yield
    assert DefaultScope.get_current_instance().scope_name


def combined(**adr):
    return dict(type='mmssl.CombinedLoss', losses=[
        dict(type='CrossEntropyLoss'), dict(type='mmssl.ADRLoss', loss_weight=0.7, **adr)])


def batch(soft=False):
    from mmpretrain.structures import DataSample
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(4, CHANNELS, generator=generator)
    label = torch.tensor([0, 3, 3, 5])
    samples = [DataSample().set_gt_label(int(y)) for y in label]
    scores = F.one_hot(label, CLASSES) * 0.6 + F.one_hot(label.flip(0), CLASSES) * 0.4
    if soft:
        for sample, score in zip(samples, scores, strict=True):
            sample.set_gt_score(score)
    return (features, ), samples, scores if soft else label


def build(**kwargs):
    torch.manual_seed(0)
    return MODELS.build(dict(in_channels=CHANNELS, num_classes=CLASSES, **kwargs))


def cosines(head, feats):
    return F.normalize(feats[-1]) @ F.normalize(head.norm_product.weight).T


@pytest.mark.parametrize('margins', [0.35, 0.2, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 1])
def test_cosface_is_its_formula(margins):
    head = build(type='mmssl.CosFaceClsHead', margins=margins)
    feats, samples, label = batch()
    cosine = cosines(head, feats)
    assert torch.allclose(head(feats), 64 * cosine, atol=1e-4)
    logits = 64 * cosine.detach().clone()
    for row, y in enumerate(label.tolist()):
        m = margins[y] if isinstance(margins, list) else margins
        logits[row, y] = 64 * (cosine[row, y] - m)
    assert torch.allclose(head(feats, label), logits, atol=1e-4)
    assert torch.allclose(head.loss(feats, samples)['loss'], F.cross_entropy(logits, label), atol=1e-4)


def test_cosface_defaults_subcenters_and_margins_that_change():
    head = build(type='mmssl.CosFaceClsHead', num_subcenters=3)
    assert head.scale == 64 and torch.equal(head.margins, torch.full((CLASSES, ), 0.35))
    feats, _, label = batch()
    cosine = (F.normalize(feats[0]) @ F.normalize(head.norm_product.weight).T).view(4, CLASSES, 3).amax(2)
    difference = (cosine - head(feats, label) / 64)
    assert torch.allclose(difference, F.one_hot(label, CLASSES) * 0.35, atol=1e-5)
    head.set_margins([0.1] * CLASSES)  # what SetAdaptiveMarginsHook of mmpretrain calls
    assert torch.allclose(cosine - head(feats, label) / 64, F.one_hot(label, CLASSES) * 0.1, atol=1e-5)


def test_arcface_is_that_of_mmpretrain():
    ours, stock = build(type='mmssl.ArcFaceClsHead'), build(type='ArcFaceClsHead')
    stock.load_state_dict(ours.state_dict())
    feats, samples, label = batch()
    assert torch.equal(ours(feats, label), stock(feats, label))
    assert torch.equal(ours.loss(feats, samples)['loss'], stock.loss(feats, samples)['loss'])
    theta = torch.acos(cosines(ours, feats))
    expected = 64 * torch.cos(theta + 0.5 * F.one_hot(label, CLASSES))
    inside = (theta + 0.5 < math.pi)
    assert torch.allclose(ours(feats, label)[inside], expected[inside], atol=1e-3)


@pytest.mark.parametrize('kind', ['ArcFaceClsHead', 'CosFaceClsHead'])
@pytest.mark.parametrize('soft', [False, True])
def test_adr_with_and_without_margin(kind, soft):
    feats, samples, target = batch(soft)
    label = torch.cat([sample.gt_label for sample in samples])
    for margin in (True, False):
        head = build(type=f'mmssl.{kind}', scale=4., loss=combined(margin_logits=margin))
        logits = head(feats, label)
        free = head.scale * cosines(head, feats)
        expected = F.cross_entropy(logits, target) + 0.7 * adr_penalty(logits if margin else free).mean()
        loss = head.loss(feats, samples)['loss']
        assert torch.allclose(loss, expected, rtol=1e-5)
        gradients = [torch.autograd.grad(value, head.norm_product.weight)[0] for value in (loss, expected)]
        assert torch.allclose(*gradients, atol=1e-6)
    if kind == 'ArcFaceClsHead' and not soft:
        stock = build(type=kind, loss=combined(margin_logits=False))
        with pytest.raises(ValueError, match=r'mmssl\.ArcFaceClsHead or mmssl\.CosFaceClsHead'):
            stock.loss(feats, samples)


@pytest.mark.parametrize('head', [
    dict(type='LinearClsHead'), dict(type='StackedLinearClsHead', mid_channels=[8]),
    dict(type='ArcFaceClsHead', scale=4.), dict(type='mmssl.CosFaceClsHead', scale=4.)], ids=lambda head: head['type'])
@pytest.mark.parametrize('soft', [False, True])
@pytest.mark.parametrize('base', ['CrossEntropyLoss', 'LabelSmoothLoss'])
def test_in_heads_of_mmpretrain(head, soft, base):
    options = dict(label_smooth_val=0.1, num_classes=CLASSES) if base == 'LabelSmoothLoss' else {}
    losses = [dict(type=base, **options), dict(type='mmssl.ADRLoss'), dict(type='mmssl.EntropyLoss')]
    module = build(loss=dict(type='mmssl.CombinedLoss', losses=losses), **head)
    feats, samples, _ = batch(soft)
    loss = module.loss(feats, samples)['loss']
    parts = module.loss_module.statistics
    assert torch.allclose(sum(parts.values()), loss) and len(parts) == 3 and parts['part_adr'] > 0
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in module.parameters())


def test_online_label_smoothing_with_adr_in_a_head_of_mmpretrain():
    loss = dict(type='mmssl.CombinedLoss', losses=[
        dict(type='mmssl.OnlineLabelSmoothLoss', num_classes=CLASSES, updates='manual'), dict(type='mmssl.ADRLoss')])
    head = build(type='LinearClsHead', loss=loss)
    feats, samples, _ = batch()
    assert head.loss(feats, samples)['loss'].isfinite()
    assert 'loss_module.losses.0.targets' in head.state_dict()


def test_a_multi_label_head_is_refused():
    from mmpretrain.structures import DataSample
    head = build(type='MultiLabelLinearClsHead', loss=dict(type='mmssl.CombinedLoss', losses=[
        dict(type='CrossEntropyLoss', use_sigmoid=True), dict(type='mmssl.ADRLoss')]))
    with pytest.raises(ValueError, match=r'mmssl\.ADRLoss is a loss on a softmax'):
        head.loss(batch()[0], [DataSample().set_gt_label([0, 2]) for _ in range(4)])


@pytest.mark.parametrize(('kwargs', 'message'), [
    (dict(scale=0), '`scale` must be > 0, got 0'), (dict(margins='x'), '`margins` must'),
    (dict(margins=-0.1), '`margins` must'), (dict(margins=[0.1, 0.2]), '`margins` must be one number or 6'),
    (dict(margins=[0.1] * 5 + ['x']), '`margins` must')])
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        build(type='mmssl.CosFaceClsHead', **kwargs)


def test_in_a_head_of_mmseg():
    pytest.importorskip('mmseg')
    init_default_scope('mmseg')
    from mmengine.structures import PixelData
    from mmseg.structures import SegDataSample
    losses = [dict(type='CrossEntropyLoss', loss_name='loss_ce', avg_non_ignore=True),
              dict(type='mmssl.ADRLoss', loss_weight=0.5), dict(type='mmssl.EntropyLoss'),
              dict(type='mmssl.CombinedLoss', losses=[dict(type='CrossEntropyLoss', loss_name='loss_ce'),
                                                      dict(type='mmssl.ADRLoss')])]
    head = MODELS.build(dict(type='FCNHead', in_channels=4, channels=4, num_convs=1, num_classes=5, in_index=0,
                             dropout_ratio=0, norm_cfg=dict(type='BN'), loss_decode=losses))
    samples = []
    for index in range(2):
        label = torch.randint(0, 5, (1, 8, 8))
        label[:, :3 + index] = 255
        samples.append(SegDataSample(gt_sem_seg=PixelData(data=label)))
    feats = [torch.randn(2, 4, 8, 8)]
    result = head.loss(feats, samples, dict())
    assert {'loss_ce', 'loss_adr', 'loss_entropy', 'loss_combined'} <= set(result)
    valid = torch.cat([sample.gt_sem_seg.data for sample in samples]) != 255
    assert torch.allclose(result['loss_adr'], 0.5 * adr_penalty(head(feats), valid=valid)[valid].mean(), rtol=1e-4)
    result['loss_adr'].backward()
    assert head.conv_seg.weight.grad.abs().sum() > 0
