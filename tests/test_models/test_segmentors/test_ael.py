"""AEL against a plain second implementation, with each part switched off, with FPL, and with what a user gets wrong."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from mmengine.structures import PixelData
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch import Tensor

SIZE = (32, 32)
OFF = dict(mix=None, copy_paste=None, sampling=None, reweight_exponent=None, labeled_consistency=False)
ALL_PARTS = dict(
    mix=dict(type='mmssl.AdaptiveCutMix', component_thresh=0.01, presence_thresh=0.05, seed=1),
    copy_paste=dict(type='mmssl.AdaptiveCopyPaste', prob=0.8, num_draws=2, seed=1),
    sampling=dict(type='mmssl.EqualizationSampling', seed=1),
)


class Source:
    """Donors that depend on their number and on nothing else."""

    key = 'train_dataloader.dataset.sources.fake'

    def __init__(self, size: int = 10, branches: tuple[str, ...] = ('unsup_weak',), labeled: bool = False) -> None:
        self.size, self.branches, self.labeled = size, branches, labeled
        self.loaded: list[tuple[int, ...]] = []

    def __len__(self) -> int:
        return self.size

    def fingerprint(self) -> int:
        return 1000 + self.size

    def load(self, index: int, seed: int, step: int, place: int) -> dict:
        self.loaded.append((index, seed, step, place))
        generator = torch.Generator().manual_seed(index)
        packed: dict = dict(inputs={}, data_samples={})
        for branch in self.branches:
            packed['inputs'][branch] = torch.randint(0, 256, (3, *SIZE), generator=generator, dtype=torch.uint8)
            sample = SegDataSample(metainfo=dict(img_shape=SIZE, ori_shape=SIZE, sample_idx=index))
            if self.labeled:
                sample.gt_sem_seg = PixelData(data=torch.randint(0, 4, (1, *SIZE), generator=generator))
            packed['data_samples'][branch] = sample
        return packed


def attach(model: Any, unlabeled: int = 10, names: tuple[str, ...] | None = ('a', 'b', 'c', 'd')) -> Any:
    return attach_sources(model, Source(unlabeled), names)


def attach_sources(model: Any, unlabeled: 'Source', names: tuple[str, ...] | None = None, resumed: bool = False) -> Any:
    labeled = Source(6, ('sup',), labeled=True)
    model.attach_sources(labeled, unlabeled, names, resumed=resumed)
    for source in (labeled, unlabeled):  # those that were loaded to see whether they can be
        source.loaded.clear()
    return model


def build(segmentor: dict, kind: str = 'mmssl.AELSegmentor', **semi_train_cfg: Any) -> Any:
    torch.manual_seed(0)
    model = MODELS.build(dict(type=kind, segmentor=segmentor, semi_train_cfg=semi_train_cfg))
    for name, module in model.named_modules():
        if name.endswith('conv_seg'):  # sharper, so that classes, confidences and components differ
            torch.nn.init.normal_(module.weight, std=1.5)
    model.initialize_teacher()
    with torch.no_grad():
        for parameter in model.teacher.parameters():
            parameter += 0.03 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3))
    return model.train()


@pytest.fixture
def batch(make_batch: Callable) -> tuple[dict, dict]:
    inputs, samples = make_batch()
    for index, sample in enumerate(samples['unsup_weak']):
        sample.set_metainfo(dict(sample_idx=index))
    return inputs, samples


def total(losses: dict[str, Any]) -> Tensor:
    return sum(value for name, value in losses.items() if 'loss' in name)


def gradients(model: Any) -> dict[str, Tensor]:
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


# --- against other implementations --------------------------------------------------------------------------------


def test_with_every_part_off_it_is_the_mean_teacher(tiny_segmentor: dict, batch: tuple) -> None:
    for mix in (None, dict(type='mmssl.CutMix', seed=3)):
        ours = build(tiny_segmentor, **dict(OFF, mix=mix))
        plain = build(tiny_segmentor, 'mmssl.MeanTeacherSegmentor', mix=mix, strong_branches=('unsup_weak',))
        assert ours.state_dict().keys() == plain.state_dict().keys()
        losses, expected = ours.loss(*batch), plain.loss(*batch)
        assert losses.keys() == expected.keys()
        for name, value in expected.items():
            assert torch.equal(torch.as_tensor(losses[name]), torch.as_tensor(value)), name
        total(losses).backward()
        total(expected).backward()
        for name, grad in gradients(plain).items():
            assert torch.equal(gradients(ours)[name], grad), name


def plain_segment(model: torch.nn.Module, images: Tensor) -> Tensor:
    low = model.decode_head(model.backbone(images))
    return F.interpolate(low, size=images.shape[2:], mode='bilinear', align_corners=False)


def plain_consistency(student: Tensor, teacher: Tensor, keep: Tensor, threshold: float) -> Tensor:
    confidence, label = teacher.softmax(1).max(1)
    weight = confidence**2 * keep
    loss = F.cross_entropy(student, label, reduction='none') * (confidence >= threshold)
    return (weight / weight.sum() * loss).sum()


@pytest.mark.parametrize('teacher_mode', ['eval', 'train'])
def test_loss_and_gradient_equal_a_plain_implementation(
    tiny_segmentor: dict, batch: tuple, teacher_mode: str
) -> None:
    inputs, samples = batch
    model = attach(build(
        tiny_segmentor, **ALL_PARTS, teacher_mode=teacher_mode, unsup_weight=0.7,
        unsup_loss=dict(type='mmssl.HardPseudoLabelLoss', threshold=0.4), confidence_bank=dict(momentum=0.2),
    ))  # fmt: skip
    plain = deepcopy(model)
    for step in range(2):  # the second one has a bank that remembers
        model.zero_grad()
        plain.zero_grad()
        losses = model.loss(inputs, samples)
        total(losses).backward()

        # Copy-paste.
        images, labels = inputs['sup'].clone(), torch.cat([s.gt_sem_seg.data for s in samples['sup']])
        bank = plain.confidence_bank.confidence.clone()
        plans = plain.copy_paste.plan([0, 1], bank, 6)
        assert plans and all(set(plan.classes) <= {0, 1, 2, 3} for plan in plans)
        for plan in plans:
            packed = Source(6, ('sup',), labeled=True).load(plan.donor, 0, 0, 0)
            donor = (packed['inputs']['sup'].float() - 127.5) / 60
            donor_label = packed['data_samples']['sup'].gt_sem_seg.data[0]
            for c in plan.classes:
                images[plan.target] = torch.where(donor_label == c, donor, images[plan.target])
                labels[plan.target] = torch.where(donor_label == c, donor_label, labels[plan.target])
        student, teacher = plain.student, plain.teacher
        features = student.backbone(images)
        logits, auxiliary = (
            F.interpolate(head(features), size=SIZE, mode='bilinear', align_corners=False)
            for head in (student.decode_head, student.auxiliary_head)
        )
        expected = F.cross_entropy(logits, labels) + 0.4 * F.cross_entropy(auxiliary, labels)

        # The bank: the plain mean in the first iteration, then momentum max(1 / n, 0.2).
        prob = logits.detach().softmax(1)
        now = torch.stack([prob[:, c][labels == c].mean() for c in range(4)])
        bank = now if step == 0 else bank + 0.5 * (now - bank)
        torch.testing.assert_close(model.confidence_bank.confidence, bank)
        plain.confidence_bank.confidence.copy_(bank)

        # CutMix.
        plans = plain.mix.plan([0, 1, 2, 3], bank)
        source = Source(10)
        present = plain.presence_bank.presence
        indices, donors = [], []
        for plan in plans:
            having = [i for i in range(10) if present[plan.class_id, i]]
            indices.append(plain.mix.choose_donor(plan, having, range(10)))
            donors.append((source.load(indices[-1], 0, 0, 0)['inputs']['unsup_weak'].float() - 127.5) / 60)
        with torch.no_grad():
            seen = plain_segment(teacher, torch.cat([inputs['unsup_weak'], torch.stack(donors)]))
        mixed, targets = inputs['unsup_weak'].clone(), seen[:4].clone()
        for plan, donor, donor_seen in zip(plans, donors, seen[4:], strict=True):
            (top, left, bottom, right), _ = plain.mix.box(plan, donor_seen.argmax(0).numpy())
            mixed[plan.target, :, top:bottom, left:right] = donor[:, top:bottom, left:right]
            targets[plan.target, :, top:bottom, left:right] = donor_seen[:, top:bottom, left:right]
        for index, seen_in_it in zip([0, 1, 2, 3, *indices], seen, strict=True):
            for c in range(4):
                present[c, index] = (seen_in_it.argmax(0) == c).sum() >= 0.05 * 32 * 32
        assert torch.equal(model.presence_bank.presence, present)

        student_unlabeled = plain_segment(student, mixed)
        with torch.no_grad():
            labeled_targets = plain_segment(teacher, images)
        for seen_by_student, target in ((student_unlabeled, targets), (logits, labeled_targets)):
            keep = plain.sampling(
                seen_by_student.argmax(1), bank, list(range(len(target)))
            )
            assert 0 < keep.float().mean() < 1
            expected = expected + 0.7 * plain_consistency(seen_by_student, target, keep, 0.4)
        expected.backward()

        torch.testing.assert_close(total(losses), expected)
        for name, grad in gradients(plain).items():
            torch.testing.assert_close(gradients(model)[name], grad, rtol=1e-3, atol=1e-5, msg=lambda m, n=name: n + m)
        for (name, ours), theirs in zip(model.teacher.named_buffers(), teacher.buffers(), strict=True):
            torch.testing.assert_close(ours, theirs, msg=lambda m, n=name: n + m)
    assert model.mix.step == plain.mix.step == 2
    assert model.sampling.step == plain.sampling.step == 4


def test_fpl_with_one_label_equals_cross_entropy(tiny_segmentor: dict, batch: tuple) -> None:
    results = []
    for loss in (dict(type='mmssl.HardPseudoLabelLoss'), dict(type='mmssl.FPLLoss', max_k=1, weight_mode='none')):
        model = attach(build(tiny_segmentor, **ALL_PARTS, unsup_loss=loss))
        losses = model.loss(*batch)
        total(losses).backward()
        results.append((losses['unsup_loss'], gradients(model)))
    torch.testing.assert_close(*(loss for loss, _ in results))
    for name, grad in results[0][1].items():
        torch.testing.assert_close(results[1][1][name], grad, rtol=1e-3, atol=1e-6, msg=lambda m, n=name: n + m)


def test_released_fpl(tiny_segmentor: dict, batch: tuple) -> None:
    """Balancing is by the plain means of each term, then the normalized weights are applied."""
    fpl = dict(type='mmssl.FPLLoss', max_k=3, weight_bound='top_k_plus_1', balance='ce_value')
    parts = dict(OFF, reweight_exponent=2.0, labeled_consistency=True)
    model = build(tiny_segmentor, **parts, unsup_loss=fpl)
    inputs, _ = batch
    losses = model.loss(*batch)
    expected = 0
    pixel = MODELS.build(dict(fpl, balance=None, reduction='none'))
    plain = build(tiny_segmentor, **parts, unsup_loss=fpl)
    for branch in ('sup', 'unsup_weak'):
        student = plain_segment(plain.student, inputs[branch])
        with torch.no_grad():
            teacher = plain_segment(plain.teacher, inputs[branch])
        loss = pixel(student, teacher)
        weight = teacher.softmax(1).amax(1) ** 2
        balance = F.cross_entropy(student, teacher.argmax(1)) / loss.mean()
        expected = expected + balance * (weight / weight.sum() * loss).sum()
    torch.testing.assert_close(losses['unsup_loss'], expected)


# --- parts, alone and switched off --------------------------------------------------------------------------------

STATISTICS = {
    'mix': {'unsup_pasted_ratio', 'unsup_component_ratio'},
    'copy_paste': {'sup_pasted_ratio'},
    'sampling': {'unsup_kept_ratio', 'unsup_mean_weight'},
    'reweight_exponent': {'unsup_kept_ratio', 'unsup_mean_weight'},
    'labeled_consistency': {'unsup_value_labeled'},
}
BANK = {'sup_confidence_min', 'sup_confidence_mean', 'sup_confidence_max'}


@pytest.mark.parametrize('part', list(STATISTICS))
def test_each_part_alone(tiny_segmentor: dict, batch: tuple, part: str) -> None:
    on = dict(ALL_PARTS, reweight_exponent=2.0, labeled_consistency=True)[part]
    model = attach(build(tiny_segmentor, **dict(OFF, **{part: on})))
    losses = model.loss(*batch)
    every = set().union(BANK, *STATISTICS.values())
    assert losses.keys() & every == STATISTICS[part] | (BANK if part in ALL_PARTS else set())
    assert {name for name in losses if 'loss' in name} == {
        'sup_student.decode.loss_ce', 'sup_student.aux.loss_ce', 'unsup_loss',
    }  # fmt: skip
    base = build(tiny_segmentor, **OFF).loss(*batch)
    assert not torch.equal(total(losses), total(base)), 'the part does something'
    total(losses).backward()
    assert not any(p.requires_grad or p.grad is not None for p in model.teacher.parameters())


@pytest.mark.parametrize('part', list(STATISTICS))
def test_each_part_off(tiny_segmentor: dict, batch: tuple, part: str) -> None:
    model = attach(build(tiny_segmentor, **dict(ALL_PARTS, **{part: OFF[part]})))
    losses = model.loss(*batch)
    total(losses).backward()
    assert all(torch.isfinite(grad).all() for grad in gradients(model).values())
    gone = STATISTICS[part] - set().union(*(names for name, names in STATISTICS.items() if name != part))
    assert not losses.keys() & gone


def test_before_the_unsupervised_loss_begins_the_bank_learns_already(tiny_segmentor: dict, batch: tuple) -> None:
    model = attach(build(tiny_segmentor, **ALL_PARTS, unsup_begin=1))
    losses = model.loss(*batch)
    total(losses).backward()
    assert losses['unsup_loss'] == 0
    assert (model.confidence_bank.confidence > 0).all()
    assert not model.presence_bank.presence.any()
    assert not model.unlabeled_source.loaded
    model.loss(*batch)
    assert model.presence_bank.presence.any()


def test_one_image_for_each_process(tiny_segmentor: dict, batch: tuple) -> None:
    """As in the released code: one image receives, and the student sees no other."""
    mix = dict(ALL_PARTS['mix'], images='one', component_thresh=0.9)
    model = attach(build(tiny_segmentor, **dict(ALL_PARTS, mix=mix)))
    seen: list[Tensor] = []
    model.student.backbone.register_forward_hook(lambda module, inputs, features: seen.append(inputs[0]))
    chosen = set()
    for _ in range(12):
        seen.clear()
        model.loss(*batch)
        labeled, mixed = seen
        assert labeled.shape[0] == 2 and mixed.shape[0] == 1
        same = [(mixed[0] == image).float().mean() for image in batch[0]['unsup_weak']]
        assert max(same) > 0.2
        chosen.add(int(np.argmax(same)))
    assert len(chosen) > 1
    assert len(model.unlabeled_source.loaded) == 12


def test_donors_of_the_batch(tiny_segmentor: dict, batch: tuple) -> None:
    """Nothing is loaded and no hook is needed; an image is never its own donor."""
    inputs, _ = batch
    model = build(
        tiny_segmentor, **dict(OFF, mix=dict(ALL_PARTS['mix'], donor='batch', component_thresh=0.0))
    )
    assert model.presence_bank is None
    seen: list[Tensor] = []
    model.student.backbone.register_forward_hook(lambda module, inputs, features: seen.append(inputs[0]))
    losses = model.loss(*batch)
    assert 0 < losses['unsup_pasted_ratio'] < 1
    for index, image in enumerate(seen[1]):
        own = (image == inputs['unsup_weak'][index]).all(0)
        foreign = torch.stack([(image == other).all(0) for other in inputs['unsup_weak']])
        foreign[index] = False
        assert (own | foreign.any(0)).all()
        assert foreign.any(), 'something was pasted'
    one = {'unsup_weak': inputs['unsup_weak'][:1], 'sup': inputs['sup'][:1]}
    with pytest.raises(ValueError, match=r"mix\.donor='batch' needs at least 2 unlabeled images per GPU, got 1"):
        model.loss(one, {name: samples[:1] for name, samples in batch[1].items()})


def test_no_pixel_is_sampled(tiny_segmentor: dict, batch: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zero, attached to the graph, and no gradient but the supervised one."""
    for loss in ('mmssl.HardPseudoLabelLoss', 'mmssl.FPLLoss'):
        model = build(tiny_segmentor, **dict(OFF, sampling=ALL_PARTS['sampling'], unsup_loss=dict(type=loss)))
        monkeypatch.setattr(model.sampling, 'forward', lambda label, *_: torch.zeros_like(label, dtype=torch.bool))
        losses = model.loss(*batch)
        assert losses['unsup_loss'] == 0 and losses['unsup_loss'].requires_grad
        assert losses['unsup_kept_ratio'] == 0 and losses['unsup_mean_weight'] == 0
        total(losses).backward()
        plain = build(tiny_segmentor, **dict(OFF, unsup_begin=9))
        total(plain.loss(*batch)).backward()
        for name, grad in gradients(plain).items():
            torch.testing.assert_close(gradients(model)[name], grad)


def test_strong_views_have_donors_of_their_own(tiny_segmentor: dict, batch: tuple) -> None:
    """The student sees the strong view of the donor inside the box, the teacher the weak one."""
    inputs, samples = batch
    inputs = dict(inputs, unsup_strong=inputs['unsup_weak'] + 100)
    samples = dict(samples, unsup_strong=samples['unsup_weak'])
    branches = ('unsup_weak', 'unsup_strong')
    model = build(tiny_segmentor, **dict(OFF, mix=ALL_PARTS['mix']), strong_branches=('unsup_strong',))
    attach_sources(model, Source(10, branches))
    seen: dict[str, list[Tensor]] = dict(student=[], teacher=[])
    for name in seen:
        getattr(model, name).backbone.register_forward_hook(
            lambda module, inputs, features, name=name: seen[name].append(inputs[0])
        )
    model.loss(inputs, samples)
    (_, mixed), (teacher,) = seen['student'], seen['teacher']
    assert torch.equal(teacher[:4], inputs['unsup_weak']) and len(teacher) == 8
    for index, (donor, *_) in enumerate(model.unlabeled_source.loaded):
        packed = Source(10, branches).load(donor, 0, 0, 0)['inputs']
        weak, strong = ((packed[branch].float() - 127.5) / 60 for branch in branches)
        torch.testing.assert_close(teacher[4 + index], weak)
        inside = (mixed[index] == strong).all(0)
        assert torch.equal(mixed[index][:, ~inside], inputs['unsup_strong'][index][:, ~inside])
        assert inside.any()


def test_mixed_precision(tiny_segmentor: dict, batch: tuple) -> None:
    fpl = dict(type='mmssl.FPLLoss')
    full = attach(build(tiny_segmentor, **ALL_PARTS, unsup_loss=fpl))
    half = attach(build(tiny_segmentor, **ALL_PARTS, unsup_loss=fpl))
    expected = full.loss(*batch)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        losses = half.loss(*batch)
    total(losses).backward()
    assert losses['unsup_loss'].dtype == torch.float32
    torch.testing.assert_close(half.confidence_bank.confidence, full.confidence_bank.confidence, rtol=0, atol=0.05)
    torch.testing.assert_close(losses['sup_student.decode.loss_ce'].float(), expected['sup_student.decode.loss_ce'],
                               rtol=0.1, atol=0.05)
    assert all(torch.isfinite(grad).all() for grad in gradients(half).values())


def test_what_hooks_see_is_what_the_student_sees(tiny_segmentor: dict, batch: tuple) -> None:
    inputs, samples = batch
    for sample in samples['unsup_weak']:
        sample.gt_sem_seg = PixelData(data=torch.randint(0, 4, (1, *SIZE)))
    model = build(tiny_segmentor, **ALL_PARTS)
    attach_sources(model, Source(10, labeled=True))
    model.recording = True
    seen: list[Tensor] = []
    model.student.backbone.register_forward_hook(lambda module, inputs, features: seen.append(inputs[0]))
    model.loss(inputs, samples)
    record = model.record
    assert torch.equal(record.inputs, seen[1])
    assert record.logits.shape == record.target_logits.shape == (4, 4, *SIZE)
    for index, (donor, *_) in enumerate(model.unlabeled_source.loaded):
        theirs = Source(10, labeled=True).load(donor, 0, 0, 0)['data_samples']['unsup_weak'].gt_sem_seg.data[0]
        own = samples['unsup_weak'][index].gt_sem_seg.data[0]
        pasted = (record.inputs[index] != inputs['unsup_weak'][index]).all(0)
        assert torch.equal(record.truth[index][pasted], theirs[pasted])
        assert torch.equal(record.truth[index][~pasted], own[~pasted])


def test_padding_can_be_left_out(tiny_segmentor: dict, batch: tuple) -> None:
    """What is under the padding has no influence on the consistency loss of the labeled images."""
    inputs, samples = batch
    for sample in samples['sup']:
        sample.set_metainfo(dict(padding_size=(0, 8, 0, 0)))
    parts = dict(OFF, labeled_consistency=True, reweight_exponent=2.0, ignore_padding=True, unsup_weight=1.0)
    model = build(tiny_segmentor, **parts)
    valid = torch.zeros(2, *SIZE, dtype=torch.bool)
    valid[..., :-8] = True
    losses = model.loss(inputs, samples)
    plain = build(tiny_segmentor, **parts)
    student, teacher = (plain_segment(m, inputs['sup']) for m in (plain.student, plain.teacher))
    expected = plain_consistency(student, teacher, valid, 0.0)
    torch.testing.assert_close(losses['unsup_value_labeled'], expected.detach())


def test_official_behaviours(tiny_segmentor: dict, batch: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('mmssl.models.segmentors.ael.get_world_size', lambda: 8)
    official, ours = (
        build(tiny_segmentor, **dict(OFF, official_grad_scale=flag)).loss(*batch) for flag in (True, False)
    )
    torch.testing.assert_close(total(official), total(ours) / 8)
    torch.manual_seed(0)
    inputs, samples = batch
    for sample in samples['sup']:
        sample.gt_sem_seg.data.clamp_(max=2)  # class 3 is absent
    bank = dict(absent='zero', init='random', warmup=False, sync=False)
    model = build(tiny_segmentor, **dict(OFF, sampling=dict(type='mmssl.EqualizationSampling')), confidence_bank=bank)
    before = model.confidence_bank.confidence.clone()
    assert before.unique().numel() == 4 and (before >= 0).all() and (before <= 1).all()
    model.loss(inputs, samples)
    after = model.confidence_bank.confidence
    torch.testing.assert_close(after[3], 0.999 * before[3])
    assert ((after - before).abs() < 0.0011).all()
    # Ours leaves the absent class alone.
    model = build(tiny_segmentor, **dict(OFF, sampling=dict(type='mmssl.EqualizationSampling')))
    model.loss(inputs, samples)
    assert model.confidence_bank.confidence[3] == 0
    assert model.confidence_bank.updates.tolist() == [1, 1, 1, 0]


def test_padding_may_be_a_class_as_in_the_released_code(tiny_segmentor: dict, batch: tuple) -> None:
    _, samples = batch
    labels = torch.cat([sample.gt_sem_seg.data for sample in samples['sup']])
    for sample in samples['sup']:
        sample.gt_sem_seg.data[:, 2:, -8:] = 255
        sample.gt_sem_seg.data[:, :2] = 255
        sample.gt_sem_seg.data[:, 5, 5] = 255  # ignored by the annotator: stays so
        sample.set_metainfo(dict(padding_size=(0, 8, 2, 0)))
    official = build(tiny_segmentor, **dict(OFF, padding_label=0)).loss(*batch)
    for sample, label in zip(samples['sup'], labels, strict=True):
        assert sample.gt_sem_seg.data.eq(255).sum() == 32 * 2 + 30 * 8 + 1, 'the batch is left alone'
        label[2:, -8:], label[:2], label[5, 5] = 0, 0, 255
        sample.gt_sem_seg = PixelData(data=label[None])
    expected = build(tiny_segmentor, **OFF).loss(*batch)
    for name in ('sup_student.decode.loss_ce', 'sup_student.aux.loss_ce'):
        assert torch.equal(official[name], expected[name])


def test_classes_to_paste(tiny_segmentor: dict, batch: tuple) -> None:
    paste = dict(type='mmssl.AdaptiveCopyPaste', prob=1.0, seed=0)
    model = attach(build(tiny_segmentor, **dict(OFF, copy_paste=dict(paste, target_classes=['c', 1]))))
    assert model.copy_paste.class_ids == [1, 2]
    model = attach(build(tiny_segmentor, **dict(OFF, copy_paste=dict(paste, exclude_classes=['a']))))
    assert model.copy_paste.class_ids == [1, 2, 3]
    drawn = [c for _ in range(200) for plan in model.copy_paste.plan([0], torch.tensor([.9, .9, .5, .2]), 3)
             for c in plan.classes]
    share = np.bincount(drawn, minlength=4) / len(drawn)
    # The published vector, up to the first class.
    expected = torch.tensor([0.1, 0.5, 0.8]).sqrt().softmax(0).numpy()
    assert share[0] == 0 and np.allclose(share[1:], expected, atol=0.06)


def test_pasting_changes_image_and_label_alike_and_leaves_the_batch_alone(tiny_segmentor: dict, batch: tuple) -> None:
    model = attach(build(tiny_segmentor, **dict(OFF, copy_paste=dict(ALL_PARTS['copy_paste'], prob=1.0))))
    inputs, samples = batch
    image_before, label_before = inputs['sup'].clone(), torch.cat([s.gt_sem_seg.data for s in samples['sup']])
    images, pasted_samples = model.paste(inputs['sup'], samples['sup'])
    labels = torch.cat([s.gt_sem_seg.data for s in pasted_samples])
    assert torch.equal(inputs['sup'], image_before)
    assert torch.equal(torch.cat([s.gt_sem_seg.data for s in samples['sup']]), label_before)
    changed = (images != image_before).any(1)
    assert 0.1 < changed.float().mean() < 0.9
    torch.testing.assert_close(model._statistics['sup_pasted_ratio'], changed.float().mean())
    assert torch.equal(labels[~changed], label_before[~changed])
    for index, (donor, _, _, _) in enumerate(list(model.labeled_source.loaded)):
        packed = model.labeled_source.load(donor, 0, 0, 0)
        truth = packed['data_samples']['sup'].gt_sem_seg.data[0]
        assert torch.equal(labels[index][changed[index]], truth[changed[index]])


# --- state --------------------------------------------------------------------------------------------------------


def test_checkpoint_holds_the_banks(tiny_segmentor: dict, batch: tuple) -> None:
    model = attach(build(tiny_segmentor, **ALL_PARTS))
    for _ in range(2):
        model.loss(*batch)
    other = build(tiny_segmentor, **ALL_PARTS)
    assert len(other.presence_bank) == 0
    state = {name: value.clone() for name, value in model.state_dict().items()}
    other.load_state_dict(state)
    attach(other)
    attach_sources(other, Source(10), resumed=True)
    for name, value in other.state_dict().items():
        assert torch.equal(value, state[name]), name
    ours, theirs = model.loss(*batch), other.loss(*batch)
    assert all(torch.equal(value, torch.as_tensor(theirs[name])) for name, value in ours.items())


def test_another_unlabeled_list(tiny_segmentor: dict, batch: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    model = attach(build(tiny_segmentor, **ALL_PARTS))
    model.loss(*batch)
    for size, what in ((11, '11 instead of 10 images'), (10, 'other images')):
        source = Source(size)
        monkeypatch.setattr(source, 'fingerprint', lambda: 5)
        with pytest.raises(ValueError, match=rf'train_dataloader\.dataset: the unlabeled source has {what}'):
            attach_sources(model, source, resumed=True)
    # A new run from these weights starts with an empty bank.
    attach_sources(model, Source(11))
    assert model.presence_bank.presence.shape == (4, 11) and not model.presence_bank.presence.any()


def test_plain_checkpoint_reaches_student_and_teacher(tiny_segmentor: dict) -> None:
    model = attach(build(tiny_segmentor, **ALL_PARTS))
    plain = MODELS.build(tiny_segmentor)
    model.load_state_dict(plain.state_dict())
    for name, value in plain.state_dict().items():
        assert torch.equal(model.student.state_dict()[name], value)
        assert torch.equal(model.teacher.state_dict()[name], value)


def test_of_an_image_seen_twice_the_last_look_counts(tiny_segmentor: dict) -> None:
    bank = attach(build(tiny_segmentor, **ALL_PARTS)).presence_bank
    present = torch.tensor([[True, False, False, False], [False, True, False, False], [False, False, True, True]])
    bank.update([3, 3, 7], [5, 2, 0], present)
    assert bank.images_with(0) == [3] and bank.images_with(1) == [] and bank.images_with(2) == [7]
    with pytest.raises(IndexError, match='sample_idx'):
        bank.update([10], [0], present[:1])


def test_places(tiny_segmentor: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many processes share four units, each image has the place that it has in the whole batch."""
    model = build(tiny_segmentor, **OFF)
    model._units = 4
    assert model._places(8) == list(range(8))
    model._units = 2
    together, odd = [], []
    for rank in range(2):
        monkeypatch.setattr('mmssl.models.seeded.get_dist_info', lambda r=rank: (r, 2))
        together.append(model._places(4))
        odd += model._places(3)
    assert together == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert len(set(odd)) == 6


# --- what a user gets wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(('options', 'error', 'message'), [
    (dict(copy_paste=dict(type='mmssl.CutMix')), ValueError, r'semi_train_cfg\.copy_paste must be None or a mmssl\.Ad'),
    (dict(sampling='on'), ValueError, r'semi_train_cfg\.sampling must be None or a dict with `type`'),
    (dict(sampling=dict(type='mmssl.EqualizationSampling', exponent=-1)), ValueError, '`exponent` must be'),
    (dict(reweight_exponent=-2), ValueError, r'semi_train_cfg\.reweight_exponent must be a finite number >= 0'),
    (dict(labeled_consistency='yes'), ValueError, r'semi_train_cfg\.labeled_consistency must be one of'),
    (dict(normalize='batch'), ValueError, r"semi_train_cfg\.normalize must be one of \['global', 'process'\]"),
    (dict(padding_label=4), ValueError, r'semi_train_cfg\.padding_label must be one of range\(0, 4\)|\[0, 1, 2, 3\]'),
    (dict(padding_label=-1), ValueError, r'semi_train_cfg\.padding_label must be an integer >= 0'),
    (dict(official_grad_scale=8), ValueError, r'semi_train_cfg\.official_grad_scale'),
    (dict(confidence_bank=dict(decay=0.999)), KeyError, r'semi_train_cfg\.confidence_bank: unknown key `decay`'),
    (dict(confidence_bank=dict(momentum=0)), ValueError, r'confidence_bank\.momentum must be in \(0, 1\]'),
    (dict(confidence_bank=dict(momentum='0.1')), ValueError, r'confidence_bank\.momentum must be in \(0, 1\]'),
    (dict(confidence_bank=dict(absent='keep')), ValueError, r'confidence_bank\.absent must be one of'),
    (dict(confidence_bank=dict(init='ones')), ValueError, r'confidence_bank\.init must be one of'),
    (dict(confidence_bank=dict(sync=None)), ValueError, r'confidence_bank\.sync must be one of'),
    (dict(confidence_bank=dict(warmup=3)), ValueError, r'confidence_bank\.warmup must be one of'),
    (dict(mix=dict(type='mmssl.AdaptiveCutMix', donor='disk')), ValueError, '`donor` must be one of'),
    (dict(mix=dict(type='mmssl.AdaptiveCutMix', images=1)), ValueError, '`images` must be one of'),
    (dict(mix=dict(type='mmssl.AdaptiveCutMix', component_thresh=1)), ValueError, '`component_thresh` must be a share'),
    (dict(mix=dict(type='mmssl.AdaptiveCutMix', presence_thresh=0)), ValueError, '`presence_thresh` must be a share'),
    (dict(mix=dict(type='mmssl.AdaptiveCutMix', seed=-1)), ValueError, '`seed` must be an integer >= 0'),
    (dict(copy_paste=dict(type='mmssl.AdaptiveCopyPaste', prob=2)), ValueError, '`prob` must be in'),
    (dict(copy_paste=dict(type='mmssl.AdaptiveCopyPaste', num_draws=0)), ValueError, '`num_draws` must be'),
    (dict(copy_paste=dict(type='mmssl.AdaptiveCopyPaste', exponent=0)), ValueError, '`exponent` must be'),
    (dict(copy_paste=dict(type='mmssl.AdaptiveCopyPaste', target_classes='road')), ValueError,
     '`target_classes` must be a list'),
    (dict(copy_paste=dict(type='mmssl.AdaptiveCopyPaste', target_classes=['a'], exclude_classes=['b'])), ValueError,
     'not both'),
])  # fmt: skip
def test_wrong_options(tiny_segmentor: dict, options: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        build(tiny_segmentor, **options)


@pytest.mark.parametrize(('named', 'names', 'message'), [
    (dict(target_classes=['rode']), ('road', 'car', 'sky', 'tree'), r"copy_paste\.target_classes: .*no class 'rode'"),
    (dict(exclude_classes=[4]), ('road', 'car', 'sky', 'tree'), r'copy_paste\.exclude_classes: there is no class 4'),
    (dict(exclude_classes=['road']), None, r'copy_paste\.exclude_classes .*states no metainfo\.classes'),
    (dict(exclude_classes=[0, 1, 2, 3]), None, r'copy_paste\.exclude_classes leaves no class'),
    (dict(target_classes=[]), None, r'copy_paste\.target_classes leaves no class'),
])  # fmt: skip
def test_wrong_classes(tiny_segmentor: dict, named: dict, names: tuple | None, message: str) -> None:
    model = build(tiny_segmentor, **dict(OFF, copy_paste=dict(type='mmssl.AdaptiveCopyPaste', **named)))
    with pytest.raises(ValueError, match=message):
        attach(model, names=names)


@pytest.mark.parametrize('part', ['mix', 'copy_paste'])
def test_missing_hook(tiny_segmentor: dict, batch: tuple, part: str) -> None:
    model = build(tiny_segmentor, **dict(OFF, **{part: ALL_PARTS[part]}))
    with pytest.raises(ValueError, match=rf'custom_hooks must hold mmssl\.AELHook.*semi_train_cfg\.{part}'):
        model.loss(*batch)


def test_images_that_do_not_say_which_they_are(tiny_segmentor: dict, make_batch: Callable) -> None:
    model = attach(build(tiny_segmentor, **ALL_PARTS))
    with pytest.raises(ValueError, match=r'sources\.fake\.pipeline: .*PackSemiSegInputs'):
        model.loss(*make_batch())


def test_donors_are_looked_at_before_training(tiny_segmentor: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one may be needed only when the unsupervised loss begins, hours later."""
    labeled, unlabeled = Source(6, ('sup',), labeled=True), Source(10)
    model = build(tiny_segmentor, **ALL_PARTS)
    with pytest.raises(ValueError, match=r'sources\.fake\.pipeline loads no label'):
        model.attach_sources(Source(6, ('sup',)), unlabeled, None)
    model.copy_paste.pipeline = []
    with pytest.raises(ValueError, match=r'semi_train_cfg\.copy_paste\.pipeline loads no label'):
        model.attach_sources(Source(6, ('sup',)), unlabeled, None)
    load = unlabeled.load

    def without_index(*numbers: int) -> dict:
        packed = load(*numbers)
        packed['data_samples']['unsup_weak'] = SegDataSample()
        return packed

    monkeypatch.setattr(unlabeled, 'load', without_index)
    with pytest.raises(ValueError, match=r'sources\.fake\.pipeline: .*PackSemiSegInputs'):
        model.attach_sources(labeled, unlabeled, None)


@pytest.mark.parametrize(('options', 'needed'), [
    (dict(), True),
    (OFF, False),
    (dict(OFF, copy_paste=dict(type='mmssl.AdaptiveCopyPaste')), True),
    (dict(OFF, mix=dict(type='mmssl.AdaptiveCutMix')), True),
    (dict(OFF, mix=dict(type='mmssl.AdaptiveCutMix', donor='batch')), False),
    (dict(OFF, mix=dict(type='mmssl.CutMix')), False),
])  # fmt: skip
def test_which_hooks_are_needed(options: dict, needed: bool) -> None:
    hooks = MODELS.get('mmssl.AELSegmentor').required_hooks(options)
    assert hooks == ('mmssl.MeanTeacherHook', 'mmssl.AELHook')[: 1 + needed]
