"""Mean teacher on unlabeled images that look different from the labeled ones: which rule of BatchNorm holds."""

import inspect

import pytest
import torch
from mmengine.structures import PixelData
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

from mmssl.engine.hooks import MeanTeacherHook
from mmssl.functional.ema import ema_momentum, ema_update_
from mmssl.models.segmentors import MeanTeacherSegmentor

PALETTE = torch.tensor([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.5], [-1.0, 1.0, -0.5], [1.0, 1.0, 0.0]])


def build(**semi_train_cfg):
    norm = dict(type='BN')
    segmentor = dict(
        type='EncoderDecoder',
        backbone=dict(type='ResNetV1c', depth=18, stem_channels=16, base_channels=16, num_stages=1, strides=(1,),
                      dilations=(1,), out_indices=(0,), norm_cfg=norm),
        decode_head=dict(type='FCNHead', in_channels=16, in_index=0, num_convs=1, channels=16, num_classes=4,
                         norm_cfg=norm, dropout_ratio=0.0,
                         loss_decode=dict(type='CrossEntropyLoss', avg_non_ignore=True)),
        train_cfg=dict(), test_cfg=dict(mode='whole'))  # fmt: skip
    options = dict(strong_branches=('unsup_weak',), unsup_begin=20, **semi_train_cfg)
    return MODELS.build(dict(type='mmssl.MeanTeacherSegmentor', segmentor=segmentor, semi_train_cfg=options)).train()


def images(count, shift, generator):
    """Blocks of four colors with noise; the shifted ones are brighter by ``shift`` and of more contrast."""
    labels = torch.randint(0, 4, (count, 1, 4, 4), generator=generator).repeat_interleave(8, 2).repeat_interleave(8, 3)
    pixels = PALETTE[labels[:, 0]].movedim(-1, 1) + 0.5 * torch.randn(count, 3, 32, 32, generator=generator)
    return pixels * (1.5 if shift else 1) + shift, labels


def pseudo_label_accuracy(mode, rule, shift):
    """Share of right pseudo labels after a short training; 'never' is an average of parameters alone."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = build(teacher_mode=mode)
    model.initialize_teacher()
    optimizer = torch.optim.SGD(model.student.parameters(), 0.1, momentum=0.9)
    for step in range(60):
        labeled, labels = images(4, 0.0, generator)
        unlabeled, _ = images(4, shift, generator)
        samples = dict(
            sup=[SegDataSample(gt_sem_seg=PixelData(data=label)) for label in labels],
            unsup_weak=[SegDataSample() for _ in unlabeled],
        )
        total, _ = model.parse_losses(model.loss(dict(sup=labeled, unsup_weak=unlabeled), samples))
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        if rule == 'never':
            parameters = (list(part.parameters()) for part in (model.teacher, model.student))
            ema_update_(*parameters, ema_momentum(step, 0.05))
        else:
            model.update_teacher(ema_momentum(step, 0.05), rule)
    unlabeled, labels = images(16, shift, generator)
    return (model.teacher_logits(unlabeled).argmax(dim=1) == labels[:, 0]).float().mean().item()


def test_the_defaults_hold_on_shifted_data():
    mode = MeanTeacherSegmentor.TRAIN_DEFAULTS['teacher_mode']
    assert (mode, inspect.signature(MeanTeacherHook).parameters['buffers'].default) == ('train', None)  # thus 'own'
    assert pseudo_label_accuracy('train', 'own', shift=3.0) > 0.9
    assert pseudo_label_accuracy('train', 'own', shift=0.0) > 0.9


@pytest.mark.parametrize('rule', ['average', 'copy'])
def test_running_statistics_of_mixed_kinds_do_not(rule):
    """The student's running statistics are between labeled and unlabeled images, and fit neither."""
    assert pseudo_label_accuracy('eval', rule, shift=3.0) < 0.75


def test_a_teacher_whose_statistics_never_move_is_broken_without_a_shift():
    assert pseudo_label_accuracy('eval', 'never', shift=0.0) < pseudo_label_accuracy('eval', 'average', 0.0) - 0.1
