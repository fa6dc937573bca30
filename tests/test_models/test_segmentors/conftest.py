"""Segmentors small enough to train in milliseconds, and batches for them."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip('mmseg')
import torch
from mmengine.registry import init_default_scope
from mmengine.structures import PixelData
from mmseg.structures import SegDataSample


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Messages of the models, in order."""
    messages: list[str] = []
    for module in ('mmssl.models.semi_base', 'mmssl.models.segmentors.base'):
        monkeypatch.setattr(f'{module}.print_log', lambda message, **_: messages.append(message))
    return messages


@pytest.fixture(autouse=True)
def mmseg_scope() -> None:
    """The scope that a user's config has."""
    init_default_scope('mmseg')
    torch.manual_seed(0)


@pytest.fixture
def tiny_segmentor() -> dict[str, Any]:
    """A ResNet-18 of width 4 with an FCN head, an auxiliary head and four classes."""
    norm_cfg = dict(type='BN')
    head = dict(type='FCNHead', num_convs=1, channels=4, num_classes=4, norm_cfg=norm_cfg, dropout_ratio=0.0)
    loss = dict(type='CrossEntropyLoss', avg_non_ignore=True)
    return dict(
        type='EncoderDecoder',
        data_preprocessor=dict(
            type='SegDataPreProcessor', mean=[127.5] * 3, std=[60.0] * 3, size=(32, 32), seg_pad_val=255
        ),
        backbone=dict(
            type='ResNetV1c', depth=18, stem_channels=4, base_channels=4, strides=(1, 2, 1, 1), norm_cfg=norm_cfg
        ),
        decode_head=dict(head, in_channels=32, in_index=3, loss_decode=loss),
        auxiliary_head=dict(head, in_channels=16, in_index=2, loss_decode=dict(loss, loss_weight=0.4)),
        train_cfg=dict(),
        test_cfg=dict(mode='whole'),
    )


@pytest.fixture
def make_batch() -> Callable[..., tuple[dict, dict]]:
    """Inputs and data samples by branch, as the data preprocessor hands them to ``model.loss``."""

    def make(labeled: int = 2, unlabeled: int = 4, size: tuple[int, int] = (32, 32), truth: bool = False) -> tuple:
        generator = torch.Generator().manual_seed(1)

        def sample(with_label: bool) -> SegDataSample:
            item = SegDataSample(metainfo=dict(img_shape=size, ori_shape=size, padding_size=(0, 0, 0, 0)))
            if with_label:
                item.gt_sem_seg = PixelData(data=torch.randint(0, 4, (1, *size), generator=generator))
            return item

        inputs = dict(
            sup=torch.randn(labeled, 3, *size, generator=generator),
            unsup_weak=torch.randn(unlabeled, 3, *size, generator=generator),
        )
        samples = dict(
            sup=[sample(True) for _ in range(labeled)], unsup_weak=[sample(truth) for _ in range(unlabeled)]
        )
        return inputs, samples

    return make
