"""mmssl.CalibrationError: images and pixels, against plain arithmetic; what it refuses; the picture; several ranks."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from mmengine.evaluator import Evaluator
from mmengine.logging import MessageHub
from mmengine.visualization import Visualizer

from mmssl.evaluation import CalibrationError
from mmssl.registry import METRICS
from mmssl.visualization import draw_reliability

CONFIDENCE = [0.95, 0.91, 0.81, 0.65, 0.55, 0.51, 0.35, 0.31]
HIT = [1, 1, 0, 1, 0, 1, 0, 0]


def images(confidence=CONFIDENCE, hit=HIT, num_classes=4):
    """Predictions of class 0 with the given confidence, as mmpretrain's data samples look as a dict."""
    return [
        dict(pred_score=torch.tensor([c] + [(1 - c) / (num_classes - 1)] * (num_classes - 1)),
             gt_label=torch.tensor([0 if h else 1]), img_path=f'{i}.jpg')
        for i, (c, h) in enumerate(zip(confidence, hit, strict=True))
    ]  # fmt: skip


def pixels(logits, label, prediction=None):
    prediction = logits.argmax(0, keepdim=True) if prediction is None else prediction
    return dict(seg_logits=dict(data=logits), gt_sem_seg=dict(data=label[None]), pred_sem_seg=dict(data=prediction),
                img_path='a.png')  # fmt: skip


def evaluate(samples, **options):
    metric = CalibrationError(diagram=False, **options)
    for start in range(0, len(samples), 3):
        metric.process(None, samples[start:start + 3])
    return metric.evaluate(len(samples))


@pytest.mark.parametrize('num_bins, ece', [(5, 0.2175), (15, 0.375)])
def test_vectors(num_bins, ece):
    found = evaluate(images(), num_bins=num_bins)
    assert list(found) == [f'calibration/{key}' for key in ('ECE', 'MCE', 'accuracy', 'confidence')]
    assert found['calibration/ECE'] == pytest.approx(ece, abs=1e-6)
    assert found['calibration/accuracy'] == 0.5
    assert found['calibration/confidence'] == pytest.approx(np.mean(CONFIDENCE), abs=1e-6)


def test_adaptive_bins_of_images():
    # Two samples a bin, in the order of the confidence.
    found = evaluate(images(), num_bins=4, binning=['width', 'mass'])
    gaps = [abs(np.mean(HIT[i:i + 2]) - np.mean(CONFIDENCE[i:i + 2])) for i in range(0, 8, 2)]
    assert found['calibration/adaptive_ECE'] == pytest.approx(np.mean(gaps), abs=1e-6)
    assert found['calibration/adaptive_MCE'] == pytest.approx(max(gaps), abs=1e-6)
    assert found['calibration/ECE'] == evaluate(images(), num_bins=4)['calibration/ECE']
    assert 'calibration/ECE' not in evaluate(images(), binning='mass')


@pytest.mark.parametrize('num_classes', [2, 5])
def test_pixels_equal_images(num_classes):
    logits, labels = torch.randn(2, num_classes, 6, 7) * 2, torch.randint(0, num_classes, (2, 6, 7))
    labels[:, 0] = 255
    found = evaluate([pixels(z, y) for z, y in zip(logits, labels, strict=True)], binning=['width', 'mass'])
    flat, label = logits.movedim(1, -1).reshape(-1, num_classes), labels.flatten()
    one_by_one = [
        dict(pred_score=z.softmax(0), gt_label=y[None])
        for z, y in zip(flat[label != 255], label[label != 255], strict=True)
    ]
    expected = evaluate(one_by_one, binning=['width', 'mass'])
    for key in ('ECE', 'MCE', 'accuracy', 'confidence'):
        assert found[f'calibration/{key}'] == pytest.approx(expected[f'calibration/{key}'], abs=1e-6), key
    assert 0 < found['calibration/adaptive_ECE'] < 1


def test_binary_pixels_are_sure_of_what_they_predict():
    score = torch.tensor([[[0.9, 0.4, 0.2]]])  # mmseg has applied the sigmoid; its threshold is 0.3
    sample = pixels(score, torch.tensor([[1, 0, 0]]), prediction=torch.tensor([[[1.0, 1.0, 0.0]]]))
    found = evaluate([sample])
    assert found['calibration/confidence'] == pytest.approx((0.9 + 0.4 + 0.8) / 3)
    assert found['calibration/accuracy'] == pytest.approx(2 / 3)


def test_memory_of_an_image_does_not_grow_with_its_pixels():
    sizes = []
    for side in (4, 64):
        metric = CalibrationError(binning=['width', 'mass'])
        metric.process(None, [pixels(torch.randn(3, side, side), torch.zeros(side, side, dtype=torch.long))])
        sizes.append(sum(tensor.numel() for tensor in metric.results[0].values()))
    assert sizes[0] == sizes[1]


def test_label_255_of_an_image_is_a_class():
    assert evaluate([dict(pred_score=torch.eye(300)[255], gt_label=torch.tensor([255]))])['calibration/accuracy'] == 1


def test_image_without_a_valid_pixel_changes_nothing():
    torch.manual_seed(1)
    sample = pixels(torch.randn(3, 4, 4), torch.randint(0, 3, (4, 4)))
    empty = pixels(torch.randn(3, 4, 4), torch.full((4, 4), 255))
    assert evaluate([sample, empty]) == evaluate([sample])
    assert np.isnan(evaluate([empty])['calibration/ECE'])


def changed(sample, **changes):
    return {key: value for key, value in {**sample, **changes}.items() if value is not None}


IMAGE = images()[0]
PIXELS = pixels(torch.eye(3)[:, :, None] * 4, torch.tensor([[0], [1], [2]]))


@pytest.mark.parametrize('sample, error, words', [
    (changed(IMAGE, pred_score=None), KeyError, r"`pred_score`.*`seg_logits`.*\['gt_label', 'img_path'\]"),
    (changed(IMAGE, gt_label=None), KeyError, "needs `gt_label`, which '0.jpg' does not have"),
    (changed(IMAGE, pred_score=torch.tensor([0.5, float('nan'), 0.2])), ValueError, "'0.jpg' are not finite"),
    (changed(IMAGE, pred_score=torch.tensor([0.9, 0.8, 0.7])), ValueError, 'with the sum 2.4'),
    (changed(IMAGE, pred_score=torch.tensor([1.5, -0.5])), ValueError, 'probabilities'),
    (changed(IMAGE, gt_label=torch.tensor([0, 1])), ValueError, 'one label an image'),
    (changed(IMAGE, gt_label=torch.tensor([4])), ValueError, r'labels \[4\]; allowed are 0 to 3'),
    (changed(PIXELS, gt_sem_seg=None), KeyError, '`gt_sem_seg`'),
    (changed(PIXELS, seg_logits=dict(data=torch.full((3, 3, 1), float('nan')))), ValueError, "'a.png' are not finite"),
    (changed(PIXELS, gt_sem_seg=dict(data=torch.tensor([[[0], [1], [7]]]))), ValueError, r'labels \[7\]'),
    (changed(PIXELS, gt_sem_seg=dict(data=torch.zeros(1, 6, 2))), ValueError, 'after the resize'),
    (changed(PIXELS, pred_sem_seg=dict(data=torch.tensor([[[1], [1], [2]]]))), ValueError, 'augmentation'),
])  # fmt: skip
def test_what_is_no_confidence_is_refused(sample, error, words):
    with pytest.raises(error, match=words):
        evaluate([sample])


@pytest.mark.parametrize('options, words', [
    (dict(num_bins=0), 'num_bins must be an integer >= 1, got 0'),
    (dict(num_bins=2.5), 'num_bins'),
    (dict(binning='log'), r"binning must be one of \['width', 'mass'\], got 'log'"),
    (dict(binning=[]), 'at least one'),
])  # fmt: skip
def test_wrong_options(options, words):
    with pytest.raises(ValueError, match=rf'mmssl\.CalibrationError\.{words}|{words}'):
        METRICS.build(dict(type='CalibrationError', **options))


def test_picture_goes_to_the_visualizer_and_none_is_replaced(tmp_path):
    Visualizer.get_instance('calibration', vis_backends=[dict(type='LocalVisBackend')], save_dir=str(tmp_path))
    MessageHub.get_instance('calibration').update_info('iter', 6)
    evaluator = Evaluator([dict(type='mmssl.CalibrationError', binning=['width', 'mass'])])
    for _ in range(2):  # as for a student and its teacher
        evaluator.process(images())
        evaluator.evaluate(8)
    names = sorted(path.name for path in tmp_path.rglob('*.png'))
    assert names == ['calibration_reliability_2_7.png', 'calibration_reliability_7.png']


def test_no_picture_without_a_run():
    metric = CalibrationError()
    metric.process(None, images())
    metric.evaluate(8)


def test_points_show_accuracy():
    sums = torch.zeros(3, 2, dtype=torch.float64)
    sums[:, 1] = torch.tensor([10, 7.5, 10])  # all right, confidence 0.75
    heights = []
    for hits in (10, 0):
        sums[2, 1] = hits
        picture = draw_reliability({'title': sums})
        assert picture.dtype == np.uint8 and picture.shape[2] == 3 and picture.shape[0] > picture.shape[1]
        rows, columns = np.nonzero((picture == (31, 119, 180)).all(axis=2))
        heights.append(rows[columns > picture.shape[1] // 2].mean())  # not the legend, on the left
    assert heights[0] < heights[1] - 100


WORKER = """
import sys, torch
import torch.distributed as dist
from mmengine.dist import get_dist_info
dist.init_process_group('gloo')
rank, world = get_dist_info()
import importlib.util
spec = importlib.util.spec_from_file_location('tests_of_calibration', sys.argv[1])
tests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tests)
generator = torch.Generator().manual_seed(0)
size = 7
cls = tests.images(torch.rand(size, generator=generator).mul(0.7).add(0.3).tolist(), [1, 0, 1, 1, 0, 1, 1])
seg = [tests.pixels(torch.randn(3, 5, 4, generator=generator), torch.randint(0, 3, (5, 4), generator=generator))
       for _ in range(size)]
for samples in (cls, seg):
    metric = tests.CalibrationError(diagram=False, binning=['width', 'mass'])
    # As mmengine's sampler deals them out, the last one repeating a sample so that all ranks have as many.
    count = -(-size // world)
    metric.process(None, [samples[(rank + i * world) % size] for i in range(count)])
    found = metric.evaluate(size)
    if rank == 0:
        print(sorted((key, round(value, 12)) for key, value in found.items()), flush=True)
dist.barrier()
"""


@pytest.mark.dist
def test_two_processes_equal_one(tmp_path):
    root = Path(__file__).resolve().parents[2]
    (tmp_path / 'worker.py').write_text(WORKER)
    env = dict(os.environ, PYTHONPATH=f'{root}{os.pathsep}{os.environ.get("PYTHONPATH", "")}', OMP_NUM_THREADS='1')
    outputs = []
    for processes in (1, 2):
        command = [sys.executable, '-m', 'torch.distributed.run', '--standalone', f'--nproc_per_node={processes}']
        done = subprocess.run([*command, 'worker.py', __file__], cwd=tmp_path, env=env, capture_output=True, text=True,
                              timeout=200)  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        outputs.append([line for line in done.stdout.splitlines() if 'adaptive_ECE' in line])
    assert outputs[0] == outputs[1] and len(outputs[0]) == 2
