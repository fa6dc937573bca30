"""A config of a mean teacher that trains in seconds on generated images."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mmengine.config import Config

TINY_NORM = dict(type='BN')


@pytest.fixture
def mean_teacher_config(
    segmentation_data: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Config:
    """``mmssl.MeanTeacherSegmentor`` with a weak and a strong view, 6 iterations, validation of 4 images every 3."""
    # The runner formats the config five times, which takes longer than the training.
    monkeypatch.setattr(Config, 'pretty_text', property(lambda config: repr(config._cfg_dict.to_dict())))
    head = dict(type='FCNHead', num_convs=1, channels=8, num_classes=4, norm_cfg=TINY_NORM, dropout_ratio=0.1)
    preprocessor = dict(type='SegDataPreProcessor', mean=[127.5] * 3, std=[60.0] * 3, size=(32, 32), seg_pad_val=255)
    segmentor = dict(
        type='EncoderDecoder',
        data_preprocessor=preprocessor,
        backbone=dict(type='ResNetV1c', depth=18, stem_channels=4, base_channels=4, strides=(1, 2, 1, 1),
                      norm_cfg=TINY_NORM),
        decode_head=dict(head, in_channels=32, in_index=3,
                         loss_decode=dict(type='CrossEntropyLoss', avg_non_ignore=True)),
        train_cfg=dict(),
        test_cfg=dict(mode='whole'))  # fmt: skip
    data = segmentation_data
    meta = dict(classes=data.classes, palette=data.palette)
    branches = ['sup', 'unsup_weak', 'unsup_strong']
    geometry = [dict(type='RandomCrop', crop_size=(32, 32)), dict(type='RandomFlip', prob=0.5)]
    labeled = dict(
        type='mmssl.SplitSegDataset', data_root=str(data.root), metainfo=meta, ann_file='splits/labeled.txt',
        data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'),
        pipeline=[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), *geometry,
                  dict(type='mmssl.MultiBranch', branches=branches, sup=[dict(type='PackSegInputs')])])  # fmt: skip
    pack = dict(type='mmssl.PackSemiSegInputs')
    unlabeled = dict(
        type='mmssl.UnlabeledImageDataset', data_root=str(data.root), ann_file='splits/unlabeled.txt',
        img_path='img_dir/train',
        pipeline=[dict(type='LoadImageFromFile'), *geometry,
                  dict(type='mmssl.MultiBranch', branches=branches, unsup_weak=[pack],
                       unsup_strong=[dict(type='PhotoMetricDistortion'), pack])])  # fmt: skip
    validation = dict(
        batch_size=1, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False),
        dataset=dict(
            type='mmssl.SplitSegDataset', data_root=str(data.root), metainfo=meta, ann_file='splits/val.txt',
            data_prefix=dict(img_path='img_dir/val', seg_map_path='ann_dir/val'),
            pipeline=[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')]))
    config: dict[str, Any] = dict(
        default_scope='mmseg',
        custom_imports=dict(imports=['mmssl'], allow_failed_imports=False),
        randomness=dict(seed=1),
        log_level='WARNING',
        work_dir=str(tmp_path / 'work'),
        experiment_name=tmp_path.name,
        model=dict(type='mmssl.MeanTeacherSegmentor', segmentor=segmentor,
                   semi_train_cfg=dict(teacher_mode='eval')),
        custom_hooks=[dict(type='mmssl.MeanTeacherHook', momentum=0.1)],
        optim_wrapper=dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.05, momentum=0.9)),
        train_dataloader=dict(
            batch_size=6, num_workers=0, sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1, 2]),
            dataset=dict(type='mmssl.MultiSourceDataset', sources=dict(labeled=labeled, unlabeled=unlabeled))),
        train_cfg=dict(type='IterBasedTrainLoop', max_iters=6, val_interval=3),
        val_dataloader=validation,
        val_evaluator=dict(type='IoUMetric'),
        val_cfg=dict(type='ValLoop'),
        default_hooks=dict(
            logger=dict(type='LoggerHook', interval=1),
            checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=3)),
        visualizer=dict(type='SegLocalVisualizer', vis_backends=[dict(type='LocalVisBackend')],
                        name=tmp_path.name))  # fmt: skip
    return Config(config)
