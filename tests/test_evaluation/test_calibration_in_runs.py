"""mmssl.CalibrationError by its name in stock configs of mmseg and of mmpretrain, beside their own metrics."""

from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner

METRIC = dict(type='mmssl.CalibrationError', binning=['width', 'mass'])


def evaluate(config: dict, folder: Path) -> dict[str, float]:
    torch.manual_seed(0)
    runner = Runner.from_cfg(Config(dict(
        config, work_dir=str(folder / 'work'), experiment_name=folder.name, test_cfg=dict(type='TestLoop'),
        visualizer=dict(type='Visualizer', vis_backends=[dict(type='LocalVisBackend')]))))  # fmt: skip
    found = runner.test()
    assert len(list((folder / 'work').rglob('calibration_reliability_0.png'))) == 1
    return found


def loader(dataset: dict) -> dict:
    return dict(batch_size=2, num_workers=0, dataset=dataset, sampler=dict(type='DefaultSampler', shuffle=False))


@pytest.mark.parametrize('classes', [4, 2])
def test_segmentation(segmentation_data: SimpleNamespace, tmp_path: Path, classes: int) -> None:
    pytest.importorskip('mmseg')
    data = segmentation_data
    for path in (data.root / 'ann_dir/val').glob('*.png'):
        label = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
        cv2.imwrite(str(path), np.where(label == 255, 255, label.clip(max=classes - 1)).astype(np.uint8))
    pipeline = [dict(type='LoadImageFromFile'), dict(type='Resize', scale=(40, 40)), dict(type='LoadAnnotations'),
                dict(type='PackSegInputs')]  # fmt: skip
    head = dict(type='FCNHead', in_channels=8, channels=8, in_index=0, num_convs=0, concat_input=False,
                num_classes=classes)  # fmt: skip
    if classes == 2:  # one output, through a sigmoid, with a threshold of its own
        head.update(out_channels=1, threshold=0.3, loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=True))
    found = evaluate(dict(
        default_scope='mmseg',
        model=dict(
            type='EncoderDecoder', test_cfg=dict(mode='whole'), decode_head=head,
            data_preprocessor=dict(type='SegDataPreProcessor', mean=[127.] * 3, std=[9.] * 3),
            backbone=dict(type='ResNetV1c', depth=18, base_channels=8, stem_channels=8, num_stages=1, strides=(1,),
                          dilations=(1,), out_indices=(0,))),
        test_dataloader=loader(dict(
            type='BaseSegDataset', data_root=str(data.root), pipeline=pipeline, img_suffix='.jpg',
            data_prefix=dict(img_path='img_dir/val', seg_map_path='ann_dir/val'),
            metainfo=dict(classes=data.classes[:classes], palette=data.palette[:classes]))),
        test_evaluator=[dict(type='IoUMetric', iou_metrics=['mIoU']), METRIC]), tmp_path)  # fmt: skip
    assert 100 * found['calibration/accuracy'] == pytest.approx(found['aAcc'], abs=0.01)
    assert 0 < found['calibration/ECE'] <= found['calibration/MCE'] <= 1
    assert 1 / classes * (classes > 2) < found['calibration/confidence'] < 1


def test_images(tmp_path: Path) -> None:
    pytest.importorskip('mmpretrain')
    for index in range(6):
        path = tmp_path / f'img/{"ab"[index % 2]}/{index}.png'
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), np.random.randint(0, 255, (16, 16, 3), np.uint8))
    found = evaluate(dict(
        default_scope='mmpretrain',
        model=dict(
            type='ImageClassifier', neck=dict(type='GlobalAveragePooling'),
            backbone=dict(type='ResNet', depth=18, base_channels=8, stem_channels=8),
            head=dict(type='LinearClsHead', num_classes=2, in_channels=64)),
        test_dataloader=loader(dict(
            type='CustomDataset', data_root=str(tmp_path / 'img'),
            pipeline=[dict(type='LoadImageFromFile'), dict(type='PackInputs')])),
        test_evaluator=[dict(type='Accuracy', topk=(1,)), METRIC]), tmp_path)  # fmt: skip
    assert 100 * found['calibration/accuracy'] == pytest.approx(found['accuracy/top1'], abs=1e-3)
    assert 0 < found['calibration/ECE'] <= found['calibration/MCE'] <= 1 and found['calibration/confidence'] >= 0.5
