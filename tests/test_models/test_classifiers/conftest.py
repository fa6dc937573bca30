"""Classifiers small enough to train in milliseconds, and batches for them."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip('mmpretrain')
import torch
from mmengine.registry import init_default_scope
from mmpretrain.structures import DataSample


@pytest.fixture(autouse=True)
def mmpretrain_scope() -> None:
    """The scope that a user's config has."""
    init_default_scope('mmpretrain')
    torch.manual_seed(0)


@pytest.fixture
def tiny_classifier() -> dict[str, Any]:
    """A ResNet-18 of width 4 for small images, four classes."""
    return dict(
        type='ImageClassifier',
        data_preprocessor=dict(mean=[127.5] * 3, std=[60.0] * 3),
        backbone=dict(type='ResNet_CIFAR', depth=18, stem_channels=4, base_channels=4, out_indices=(3,)),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=4, in_channels=32, loss=dict(type='CrossEntropyLoss')),
    )


@pytest.fixture
def make_batch() -> Callable[..., tuple[dict, dict]]:
    """Inputs and data samples by branch, as the data preprocessor hands them to ``model.loss``."""

    def make(labeled: int = 4, unlabeled: int = 8, truth: bool = False, **extra: int) -> tuple[dict, dict]:
        generator = torch.Generator().manual_seed(1)
        counts = dict(sup=labeled, unsup_weak=unlabeled, unsup_strong=unlabeled, **extra)
        inputs = {name: torch.randn(count, 3, 12, 12, generator=generator) for name, count in counts.items()}
        samples = {
            name: [DataSample(metainfo=dict(sample_idx=index)) for index in range(count)]
            for name, count in counts.items()
        }
        for name, items in samples.items():
            if name == 'sup' or truth:
                for index, item in enumerate(items):
                    item.set_gt_label(index % 4)
        return inputs, samples

    return make
