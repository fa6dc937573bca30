"""Mean teacher against a plain second implementation; the teacher's mode, its updates, and what is refused."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mmengine.runner import load_checkpoint
from mmengine.structures import PixelData
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

from mmssl.models.segmentors import MeanTeacherSegmentor

STRONG = ('unsup_strong', 'unsup_strong2')


def build(segmentor: dict, follow: bool = True, **semi_train_cfg: Any) -> MeanTeacherSegmentor:
    model = MODELS.build(dict(type='mmssl.MeanTeacherSegmentor', segmentor=segmentor, semi_train_cfg=semi_train_cfg))
    if follow:
        model.follow_teacher()
    return model.train()


@pytest.fixture
def make_views(make_batch: Callable) -> Callable[..., tuple[dict, dict]]:
    """A batch whose weak view has strong ones: the same pixels with noise."""

    def make(*args: Any, strong: tuple[str, ...] = ('unsup_strong',), **kwargs: Any) -> tuple[dict, dict]:
        inputs, samples = make_batch(*args, **kwargs)
        generator = torch.Generator().manual_seed(2)
        for branch in strong:
            noise = torch.randn(inputs['unsup_weak'].shape, generator=generator)
            inputs[branch] = inputs['unsup_weak'] + 0.5 * noise
            samples[branch] = deepcopy(samples['unsup_weak'])
        return inputs, samples

    return make


def total(losses: dict[str, Any]) -> Tensor:
    return sum(value for name, value in losses.items() if 'loss' in name)


def plain_segment(student: torch.nn.Module, images: Tensor) -> Tensor:
    low = student.decode_head(student.backbone(images))
    return F.interpolate(low, size=images.shape[2:], mode='bilinear', align_corners=False)


def plain_sup(student: torch.nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    features = student.backbone(images)
    logits, aux = (
        F.interpolate(head(features), size=images.shape[2:], mode='bilinear', align_corners=False)
        for head in (student.decode_head, student.auxiliary_head)
    )
    return F.cross_entropy(logits, labels) + 0.4 * F.cross_entropy(aux, labels)


def assert_same_gradients_and_buffers(ours: torch.nn.Module, plain: torch.nn.Module) -> None:
    for (name, a), b in zip(ours.named_parameters(), plain.parameters(), strict=True):
        if name.startswith('teacher.'):
            assert a.grad is None and b.grad is None and not a.requires_grad, name
        else:
            assert a.grad.abs().sum() > 0, name
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-5, msg=lambda m, n=name: f'{n}: {m}')
    for (name, a), b in zip(ours.named_buffers(), plain.buffers(), strict=True):
        if name != 'iteration':  # counted by the loss alone
            torch.testing.assert_close(a, b, msg=lambda m, n=name: f'{n}: {m}')


def separate(model: MeanTeacherSegmentor) -> None:
    """Give the teacher weights and statistics of its own."""
    with torch.no_grad():
        for parameter in model.teacher.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
        for buffer in model.teacher.buffers():
            if buffer.is_floating_point():
                buffer += 0.2 * torch.rand_like(buffer)


@pytest.mark.parametrize('strong', [('unsup_weak',), ('unsup_strong',), STRONG])
@pytest.mark.parametrize('mixed', [False, True])
@pytest.mark.parametrize('mode', ['train', 'eval'])
def test_loss_and_gradient_equal_a_plain_implementation(
    tiny_segmentor: dict, make_views: Callable, strong: tuple[str, ...], mixed: bool, mode: str
) -> None:
    inputs, samples = make_views(strong=tuple(name for name in strong if name != 'unsup_weak'))
    labels = torch.cat([sample.gt_sem_seg.data for sample in samples['sup']])
    weights = (0.25, 0.5) if len(strong) == 2 else (1.0,)
    model = build(
        tiny_segmentor,
        unsup_weight=1.5,
        sup_weight=0.7,
        strong_branches=strong,
        strong_weights=weights,
        teacher_mode=mode,
        unsup_loss=dict(type='mmssl.HardPseudoLabelLoss', threshold=0.3),
        mix=dict(type='mmssl.CutMix', seed=3) if mixed else None,
    )
    separate(model)
    plain = deepcopy(model)

    total(model.loss(inputs, samples)).backward()

    loss = 0.7 * plain_sup(plain.student, inputs['sup'], labels)
    plain.teacher.train(mode == 'train')
    with torch.no_grad():
        target = plain_segment(plain.teacher, inputs['unsup_weak'])
    images, targets = [], []
    for name in strong:
        view, label = inputs[name], target
        if mixed:
            mask = plain.mix.sample(view).float()
            view, label = (x[0::2] * (1 - mask) + x[1::2] * mask for x in (view, label))
        images.append(view)
        targets.append(label)
    logits = plain_segment(plain.student, torch.cat(images)).chunk(len(images))
    for weight, output, label in zip(weights, logits, targets, strict=True):
        confidence, hard = label.softmax(1).max(1)
        pixels = F.cross_entropy(output, hard, reduction='none') * (confidence >= 0.3)
        loss = loss + 1.5 * weight * pixels.mean()
    loss.backward()
    assert_same_gradients_and_buffers(model, plain)


def test_log_keys(tiny_segmentor: dict, make_views: Callable) -> None:
    batch = make_views(strong=STRONG)
    model = build(tiny_segmentor, unsup_loss=dict(type='mmssl.FPLLoss'))
    losses = model.loss(*batch)
    summed = {name for name in losses if 'loss' in name}
    assert summed == {'sup_student.decode.loss_ce', 'sup_student.aux.loss_ce', 'unsup_loss'}
    statistics = {name for name in losses.keys() - summed if name.startswith('unsup_')}
    assert statistics == {'unsup_mean_k', 'unsup_k1_ratio', 'unsup_pixel_weight', 'unsup_mask_ratio'}
    model = build(tiny_segmentor, strong_branches=STRONG, unsup_loss=dict(type='mmssl.FPLLoss'))
    losses = model.loss(*batch)
    assert losses['unsup_loss'].item() == pytest.approx(
        (losses['unsup_value_unsup_strong'] + losses['unsup_value_unsup_strong2']).item() / 2
    )
    assert losses['unsup_mask_ratio'] == 1


@pytest.mark.parametrize('mode', ['train', 'eval'])
def test_teacher_keeps_its_mode(tiny_segmentor: dict, make_views: Callable, mode: str) -> None:
    model = build(tiny_segmentor, teacher_mode=mode)
    for call in (model.train, model.eval, model.train, lambda: model.train(True), lambda: model.loss(*make_views())):
        call()
        modes = {module.training for module in model.teacher.modules()}
        assert modes == {model.training and mode == 'train'}
        assert {module.training for module in model.student.modules()} == {model.training}


def test_teacher_in_eval_mode_moves_nothing(tiny_segmentor: dict, make_views: Callable) -> None:
    model = build(tiny_segmentor, teacher_mode='eval')
    before = deepcopy(model.teacher.state_dict())
    total(model.loss(*make_views())).backward()
    assert all(torch.equal(value, before[name]) for name, value in model.teacher.state_dict().items())


def test_one_extra_copy_of_the_model_is_held(tiny_segmentor: dict, make_views: Callable) -> None:
    model, plain = build(tiny_segmentor), MODELS.build(tiny_segmentor)
    model.initialize_teacher()
    for _ in range(2):
        total(model.loss(*make_views())).backward()
        model.update_teacher(0.5)

    def size(module: torch.nn.Module) -> int:
        return sum(tensor.numel() for tensor in [*module.parameters(), *module.buffers()])

    own = sum(buffer.numel() for buffer in model.buffers(recurse=False))
    own += size(model.data_preprocessor) + size(model.collapse_guard)
    assert size(model) - own == 2 * size(plain)
    # Nothing hides in plain attributes, which `.to(device)` would not move.
    held = {id(tensor) for tensor in [*model.parameters(), *model.buffers()]}
    assert not [name for name, value in vars(model).items() if isinstance(value, Tensor) and id(value) not in held]


def test_update_is_the_average_of_parameters(tiny_segmentor: dict) -> None:
    model = build(tiny_segmentor)
    model.initialize_teacher()
    expected = deepcopy(model.teacher)
    for momentum in (0.5, 0.1):
        separate_student(model)
        model.update_teacher(momentum)
        for name, value in expected.state_dict().items():
            student = model.student.state_dict()[name]
            if value.is_floating_point():
                value.mul_(1 - momentum).add_(student, alpha=momentum)
            else:
                value.copy_(student)
            torch.testing.assert_close(model.teacher.state_dict()[name], value, msg=lambda m, n=name: f'{n}: {m}')
    assert model.num_teacher_updates == int(model.teacher_updates) == 2


def separate_student(model: MeanTeacherSegmentor) -> None:
    with torch.no_grad():
        for value in model.student.state_dict().values():
            value += torch.rand(value.shape) if value.is_floating_point() else 3


@pytest.mark.parametrize('rule', ['average', 'copy', 'own'])
def test_rules_of_buffers(tiny_segmentor: dict, make_views: Callable, rule: str) -> None:
    model = build(tiny_segmentor, teacher_mode='train' if rule == 'own' else 'eval', unsup_begin=1)
    model.initialize_teacher()
    separate_student(model)
    model.loss(*make_views())
    start = model.teacher.backbone.stem[1].running_mean.clone()
    student = model.student.backbone.stem[1].running_mean.clone()
    model.update_teacher(0.25, rule)
    got = model.teacher.backbone.stem[1]
    if rule == 'average':
        torch.testing.assert_close(got.running_mean, 0.75 * start + 0.25 * student)
    else:  # the teacher has seen no image yet, so it has no statistics of its own
        assert torch.equal(got.running_mean, student)
    assert got.num_batches_tracked == model.student.backbone.stem[1].num_batches_tracked
    model.loss(*make_views())
    own = got.running_mean.clone()
    assert torch.equal(own, student) == (rule == 'copy')
    separate_student(model)
    model.update_teacher(0.25, rule)
    assert torch.equal(got.running_mean, own) == (rule == 'own')
    with pytest.raises(ValueError, match=r"`buffers` must be one of .* got 'mean'"):
        model.update_teacher(0.5, 'mean')


def test_infinite_constants_stay(tiny_segmentor: dict) -> None:
    model = build(tiny_segmentor)
    for part in (model.student, model.teacher):
        part.register_buffer('mask', torch.tensor([0.0, -torch.inf]), persistent=False)
    model.update_teacher(0.5)
    assert model.teacher.mask.tolist() == [0, -torch.inf]


@pytest.mark.parametrize('loss', ['HardPseudoLabelLoss', 'FPLLoss', 'SoftPseudoLabelLoss', 'NegativeLearningLoss'])
def test_a_teacher_that_is_not_finite_stops_the_run(tiny_segmentor: dict, make_views: Callable, loss: str) -> None:
    model = build(tiny_segmentor, unsup_loss=dict(type=f'mmssl.{loss}'))
    model.teacher.decode_head.conv_seg.bias.data[1] = torch.nan
    losses = model.loss(*make_views())
    assert losses['unsup_loss'].requires_grad
    with pytest.raises(FloatingPointError, match=r"iteration 1: {'unsup_loss': nan} is not finite"):
        model.parse_losses(losses)


def test_plain_checkpoint_reaches_both(tiny_segmentor: dict, tmp_path: Any, logged: list[str]) -> None:
    plain = MODELS.build(tiny_segmentor)
    torch.save(dict(state_dict=plain.state_dict()), tmp_path / 'plain.pth')
    model = build(tiny_segmentor)
    load_checkpoint(model, str(tmp_path / 'plain.pth'), map_location='cpu')
    for part in (model.student, model.teacher):
        assert all(torch.equal(value, plain.state_dict()[name]) for name, value in part.state_dict().items())
    assert [line.split(':')[0] for line in logged] == ['plain checkpoint -> student', 'plain checkpoint -> teacher']


def test_own_checkpoint_goes_on_from_its_updates(tiny_segmentor: dict, make_views: Callable, tmp_path: Any) -> None:
    model = build(tiny_segmentor, mix=dict(type='mmssl.CutMix', seed=5))
    total(model.loss(*make_views())).backward()
    model.update_teacher(1.0)
    torch.save(model.state_dict(), tmp_path / 'own.pth')
    other = build(tiny_segmentor, mix=dict(type='mmssl.CutMix', seed=9))
    assert other.num_teacher_updates == 0
    other.load_state_dict(torch.load(tmp_path / 'own.pth', weights_only=True), strict=True)
    assert other.num_teacher_updates == 1
    for name, value in model.state_dict().items():
        assert torch.equal(other.state_dict()[name], value), name


def test_before_it_begins_the_teacher_sees_nothing(tiny_segmentor: dict, make_views: Callable) -> None:
    model = build(tiny_segmentor, unsup_begin=1, teacher_mode='train')
    before = deepcopy(model.teacher.state_dict())
    losses = model.loss(*make_views())
    assert losses['unsup_loss'] == 0 and losses['unsup_loss'].requires_grad
    assert all(torch.equal(value, before[name]) for name, value in model.teacher.state_dict().items())
    assert model.loss(*make_views())['unsup_loss'] > 0


def test_without_its_hook_the_second_iteration_fails(tiny_segmentor: dict, make_views: Callable) -> None:
    model = build(tiny_segmentor, follow=False)
    model.loss(*make_views())
    with pytest.raises(ValueError, match=r'custom_hooks must hold mmssl\.MeanTeacherHook'):
        model.loss(*make_views())
    model.update_teacher(0.5)
    model.loss(*make_views())


def test_padding_is_left_out_on_request(tiny_segmentor: dict, make_views: Callable) -> None:
    inputs, samples = make_views()
    for sample in samples['unsup_weak']:
        sample.set_metainfo(dict(padding_size=(0, 12, 0, 0)))
    model = build(tiny_segmentor, ignore_padding=True)
    reference = deepcopy(model)
    loss = model.loss(inputs, samples)['unsup_loss']
    target = plain_segment(reference.teacher, inputs['unsup_weak'])[..., :20].argmax(1)
    expected = F.cross_entropy(plain_segment(reference.student, inputs['unsup_strong'])[..., :20], target)
    torch.testing.assert_close(loss, expected)


def test_record_holds_what_the_loss_saw(tiny_segmentor: dict, make_views: Callable) -> None:
    inputs, samples = make_views(truth=True, strong=STRONG)
    model = build(tiny_segmentor, mix=dict(type='mmssl.CutMix', seed=2), strong_branches=STRONG)
    masks = deepcopy(model.mix).sample(inputs['unsup_weak'])
    model.recording = True
    model.loss(inputs, samples)
    truth = torch.cat([sample.gt_sem_seg.data for sample in samples['unsup_weak']])
    strong = inputs['unsup_strong']
    assert torch.equal(model.record.truth, torch.where(masks[:, 0], truth[1::2], truth[0::2]))
    assert torch.equal(model.record.inputs, torch.where(masks, strong[1::2], strong[0::2]))
    with torch.no_grad():
        target = plain_segment(model.teacher, inputs['unsup_weak'])
    assert torch.equal(model.record.target_logits, torch.where(masks, target[1::2], target[0::2]))
    assert not model.record.logits.requires_grad


@pytest.mark.parametrize('name', ['student', 'teacher', None])
def test_prediction_is_the_stock_models(tiny_segmentor: dict, make_batch: Callable, name: str | None) -> None:
    images = make_batch()[0]['sup']
    test_cfg = None if name is None else dict(predict_on=name)
    model = MODELS.build(dict(type='mmssl.MeanTeacherSegmentor', segmentor=tiny_segmentor, semi_test_cfg=test_cfg))
    separate(model)
    model.eval()
    with torch.no_grad():
        ours, stock = (
            torch.stack([sample.seg_logits.data for sample in part.predict(images)])
            for part in (model, getattr(model, name or 'teacher'))
        )
    assert torch.equal(ours, stock)


@pytest.mark.parametrize(
    ('options', 'error', 'message'),
    [
        (dict(mixx=None), KeyError, 'semi_train_cfg: unknown key `mixx`; did you mean `mix`'),
        (dict(teacher_mode='test'), ValueError, "semi_train_cfg.teacher_mode must be one of .*, got 'test'"),
        (dict(strong_branches='unsup_strong'), ValueError, 'semi_train_cfg.strong_branches must be a list of branch'),
        (dict(strong_branches=[]), ValueError, 'semi_train_cfg.strong_branches must be a list of branch names'),
        (dict(strong_branches=['a', 'a']), ValueError, 'strong_branches must name different branches'),
        (dict(strong_branches=['sup']), ValueError, 'strong_branches must name different branches of unlabeled'),
        (dict(strong_weights=[0.5, 0.5]), ValueError, r'strong_weights must be None or one .*, got \[0.5, 0.5\]'),
        (dict(strong_weights=0.5), ValueError, 'semi_train_cfg.strong_weights must be None or one weight'),
        (dict(strong_weights=[0.0]), ValueError, r'strong_weights must not all be 0.*unsup_weight=0.*got \[0.0\]'),
        (
            dict(strong_weights=[0], feature_perturbation=dict(type='mmssl.FeatureDropout'), feature_weight=0),
            ValueError,
            'strong_weights must not all be 0',
        ),
        (dict(strong_weights=[-1]), ValueError, r'semi_train_cfg.strong_weights\[0\] must be a finite number >= 0'),
        (dict(feature_weight=-1), ValueError, 'semi_train_cfg.feature_weight must be a finite number >= 0'),
        (dict(feature_perturbation='x'), ValueError, 'semi_train_cfg.feature_perturbation must be None or a dict'),
        (dict(mix='mmssl.CutMix'), ValueError, 'semi_train_cfg.mix must be None or a dict'),
        (dict(mix=dict(type='mmssl.FPLLoss')), ValueError, 'mix must be None or mix pairs.* got FPLLoss'),
        (dict(mix=dict(type='mmssl.AdaptiveCutMix')), ValueError, 'mix must be .*CutMix, got AdaptiveCutMix'),
        (dict(feature_perturbation=dict(type='mmssl.CutMix')), ValueError, 'perturbation must have .*got CutMix'),
        (dict(unsup_loss=dict(type='CrossEntropyLoss')), ValueError, 'must be a loss between .*CrossEntropyL'),
    ],
)
def test_wrong_options_name_their_key(tiny_segmentor: dict, options: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        build(tiny_segmentor, **options)


def test_teacher_without_forwards_has_the_statistics_of_its_student(tiny_segmentor: dict, make_views: Callable) -> None:
    model = build(tiny_segmentor, unsup_weight=0)
    model.initialize_teacher()
    model.loss(*make_views())
    model.update_teacher(0.5, 'own')
    moved = 0
    for own, value in zip(model.teacher.buffers(), model.student.buffers(), strict=True):
        assert torch.equal(own, value)
        moved += own.is_floating_point() and bool((own != 0).any() and (own != 1).any())
    assert moved


def test_new_run_from_weights_of_another_counts_from_zero(tiny_segmentor: dict, make_views: Callable) -> None:
    before = build(tiny_segmentor)
    for _ in range(3):
        before.loss(*make_views())
        before.update_teacher(0.5)
    state = before.state_dict()
    resumed = build(tiny_segmentor, unsup_begin=2)
    resumed.load_state_dict(state)
    assert (resumed.num_teacher_updates, resumed.next_unsup_weight()) == (3, 1)
    model = build(tiny_segmentor, unsup_begin=2)
    model.load_state_dict(state)
    model.initialize_teacher()
    assert (model.num_teacher_updates, int(model.teacher_updates), int(model.iteration)) == (0, 0, 0)
    assert [model.next_unsup_weight() for _ in range(3)] == [0, 0, 1]


def test_views_of_other_pixels_are_refused(tiny_segmentor: dict, make_views: Callable) -> None:
    inputs, samples = make_views()
    del inputs['unsup_strong']
    with pytest.raises(ValueError, match='no sample of branch `unsup_strong`'):
        build(tiny_segmentor).loss(inputs, samples)
    inputs['unsup_strong'] = inputs['unsup_weak'][..., :16]
    with pytest.raises(ValueError, match='must show the same pixels'):
        build(tiny_segmentor).loss(inputs, samples)


def test_samples_without_metainfo_train(tiny_segmentor: dict, make_views: Callable) -> None:
    inputs, samples = make_views()
    samples['sup'] = [
        SegDataSample(gt_sem_seg=PixelData(data=sample.gt_sem_seg.data)) for sample in samples['sup']
    ]
    for branch in ('unsup_weak', 'unsup_strong'):
        samples[branch] = [SegDataSample() for _ in samples[branch]]
    assert build(tiny_segmentor).loss(inputs, samples)['unsup_loss'].requires_grad


def test_unimatch_equals_a_plain_implementation(tiny_segmentor: dict, make_views: Callable) -> None:
    """Yang et al., CVPR 2023: L = (L_x + 0.25 L_s1 + 0.25 L_s2 + 0.5 L_fp) / 2, the student being its own teacher."""
    inputs, samples = make_views(strong=STRONG)
    for index, sample in enumerate(samples['unsup_weak']):
        sample.set_metainfo(dict(padding_size=(0, 2 * index, 0, 0)))
    labels = torch.cat([sample.gt_sem_seg.data for sample in samples['sup']])
    model = build(
        tiny_segmentor,
        sup_weight=0.5,
        unsup_weight=0.5,
        strong_branches=STRONG,
        strong_weights=(0.25, 0.25),
        feature_weight=0.5,
        feature_perturbation=dict(type='mmssl.FeatureDropout', seed=4),
        mix=dict(type='mmssl.CutMix', seed=3, num_boxes=1, area_range=(0.02, 0.4), aspect_range=(0.3, 10 / 3), prob=0.9,
                 both_ways=True),
        ignore_padding=True,
        teacher_mode='eval',
    )  # fmt: skip
    torch.nn.init.normal_(model.student.decode_head.conv_seg.weight, std=0.5)
    model.initialize_teacher()
    model.update_teacher(1.0, 'copy')
    plain = deepcopy(model)
    student, weak = plain.student, inputs['unsup_weak']
    with torch.no_grad():
        prob, pseudo = plain_segment(deepcopy(student).eval(), weak).softmax(1).max(1)
    threshold = model.unsup_loss.threshold = prob.median().item()

    losses = model.loss(inputs, samples)
    total(losses).backward()

    valid = torch.ones(len(weak), 32, 32, dtype=torch.bool)
    for index, mask in enumerate(valid):
        mask[:, 32 - 2 * index:] = False
    loss_x = plain_sup(student, inputs['sup'], labels)

    partner = [1, 0, 3, 2]
    views, kept = [], []
    for name in STRONG:
        boxes = plain.mix.sample(weak)[:, 0].repeat_interleave(2, dim=0)
        assert boxes.any() and not boxes.all()
        view = inputs[name].clone()
        view.movedim(1, -1)[boxes] = inputs[name][partner].movedim(1, -1)[boxes]
        parts = [part.clone() for part in (prob, pseudo, valid)]
        for part, original in zip(parts, (prob, pseudo, valid), strict=True):
            part[boxes] = original[partner][boxes]
        views.append(view)
        kept.append(parts)
    outputs = list(plain_segment(student, torch.cat(views)).chunk(2))
    perturbed = student.decode_head(plain.feature_perturbation(student.backbone(weak)))
    outputs.append(F.interpolate(perturbed, size=(32, 32), mode='bilinear', align_corners=False))
    kept.append([prob, pseudo, valid])
    terms = []
    for output, (confidence, hard, counted) in zip(outputs, kept, strict=True):
        used = (confidence >= threshold) & counted
        assert used.any() and not used.all()
        terms.append((F.cross_entropy(output, hard, reduction='none') * used).sum() / counted.sum())
    loss = (loss_x + 0.25 * terms[0] + 0.25 * terms[1] + 0.5 * terms[2]) / 2
    loss.backward()

    torch.testing.assert_close(total(losses), loss)
    values = [losses[f'unsup_value_{name}'] for name in (*STRONG, 'feature')]
    torch.testing.assert_close(torch.stack(values), torch.stack(terms).detach())
    assert_same_gradients_and_buffers(model, plain)


@pytest.mark.parametrize('loss', ['FPLLoss', 'SoftPseudoLabelLoss', 'NegativeLearningLoss'])
def test_every_pseudo_label_loss_takes_every_view(tiny_segmentor: dict, make_views: Callable, loss: str) -> None:
    options = dict(balance='ce_value') if loss == 'FPLLoss' else {}
    model = build(
        tiny_segmentor,
        strong_branches=STRONG,
        feature_perturbation=dict(type='mmssl.FeatureDropout'),
        mix=dict(type='mmssl.CutMix'),
        ignore_padding=True,
        unsup_loss=dict(type=f'mmssl.{loss}', **options),
    )
    losses = model.loss(*make_views(strong=STRONG))
    total(losses).backward()
    assert all(torch.isfinite(p.grad).all() for p in model.student.parameters())
    assert losses['unsup_loss'] > 0


def test_perturbed_features_leave_the_student_as_it_was(tiny_segmentor: dict, make_views: Callable) -> None:
    model = build(tiny_segmentor, feature_perturbation=dict(type='mmssl.FeatureDropout'))
    model.loss(*make_views())
    assert not model.student.backbone._forward_hooks
    images = make_views()[0]['sup']
    model.eval()
    assert torch.equal(model.segment(model.student, images), plain_segment(model.student, images))


@pytest.mark.parametrize('kind', ['MeanTeacherSegmentor', 'CrossPseudoSupervision'])
def test_pseudo_labels_are_watched(
    tiny_segmentor: dict, make_views: Callable, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    messages: list[str] = []
    monkeypatch.setattr('mmssl.models.collapse_guard.print_log', lambda text, **_: messages.append(text))
    model = MODELS.build(dict(type=f'mmssl.{kind}', segmentor=tiny_segmentor)).train()
    model.collapse_guard.interval, model.collapse_guard.patience = 1, 2
    if kind == 'MeanTeacherSegmentor':
        model.follow_teacher()
    with torch.no_grad():
        for part in model.models_held:
            part.decode_head.conv_seg.bias[2] += 50
    for _ in range(4):
        model.loss(*make_views())
    assert len(messages) == 1 and 'class 2' in messages[0]


def test_half_precision_trains_a_full_precision_teacher(tiny_segmentor: dict, make_views: Callable) -> None:
    model = build(
        tiny_segmentor, mix=dict(type='mmssl.CutMix'), feature_perturbation=dict(type='mmssl.FeatureDropout'),
        unsup_loss=dict(type='mmssl.FPLLoss'),
    )  # fmt: skip
    model.initialize_teacher()
    with torch.autocast('cpu', dtype=torch.bfloat16):
        losses = model.loss(*make_views())
    total(losses).backward()
    separate_student(model)
    before = model.teacher.decode_head.conv_seg.weight.clone()
    model.update_teacher(1e-3)
    after, student = model.teacher.decode_head.conv_seg.weight, model.student.decode_head.conv_seg.weight
    assert after.dtype == torch.float32 and torch.isfinite(losses['unsup_loss'])
    assert all(torch.isfinite(p.grad).all() for p in model.student.parameters())
    torch.testing.assert_close(after - before, 1e-3 * (student - before), rtol=1e-2, atol=1e-6)
