"""mmssl.FaceVerification on drawn faces, end to end: data set, loop, model, metric; and what each of them refuses."""

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

pytest.importorskip('mmpretrain')
from mmengine.registry import DATASETS, DefaultScope
from mmengine.registry import MODELS as MMENGINE_MODELS
from mmengine.runner import Runner
from torch import nn

from mmssl.evaluation import FaceVerification

SIZE = 8
# Hue of each person, in degrees.
PEOPLE = {'Ann': 0, 'Bob': 72, 'Cy': 144, 'Dee': 216, 'Eve': 288}


@MMENGINE_MODELS.register_module(force=True)
class ColorsOfHalves(nn.Module):
    """Mean color of the left and of the right half: a feature that knows left from right."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, inputs):
        halves = [half.mean(dim=(2, 3)) for half in inputs.chunk(2, dim=3)]
        return (torch.cat(halves, dim=1) * self.scale,)


def color(hue: float) -> np.ndarray:
    angles = np.deg2rad(hue) + np.array([0, 2, 4]) * np.pi / 3
    return 128 + 100 * np.cos(angles)


def draw(path: Path, hue: float, noise: np.random.Generator, mirrored: bool = False) -> None:
    """A face: its color on the left, gray on the right."""
    image = np.full((SIZE, SIZE, 3), 128.0)
    image[:, :SIZE // 2] = color(hue)
    image += noise.normal(0, 4, image.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    image = image.clip(0, 255).astype(np.uint8)
    cv2.imwrite(str(path), image[:, ::-1] if mirrored else image)


@pytest.fixture
def faces(tmp_path: Path) -> Path:
    """Five people with four images each, the third and fourth mirrored; list of LFW with ten pairs a fold."""
    noise = np.random.default_rng(0)
    for name, hue in PEOPLE.items():
        for number in range(1, 5):
            draw(tmp_path / name / f'{name}_{number:04d}.png', hue, noise, mirrored=number > 2)
    names, lines = list(PEOPLE), ['10\t5']
    for fold in range(10):
        lines += [f'{name}\t1\t2' for name in names]
        lines += [f'{a}\t1\t{names[(i + 1 + fold % 4) % 5]}\t2' for i, a in enumerate(names)]
    (tmp_path / 'lfw.txt').write_text('\n'.join(lines) + '\n')
    return tmp_path


def pairs_dataset(faces: Path, ann_file: str = 'lfw.txt', **options: object) -> dict:
    return dict(type='mmssl.FacePairsDataset', data_root=str(faces), ann_file=ann_file, img_suffix='.png',
                pipeline=[dict(type='LoadImageFromFile'), dict(type='PackInputs')], **options)  # fmt: skip


CLASSIFIER = dict(
    type='ImageClassifier',
    data_preprocessor=dict(type='ClsDataPreprocessor', mean=[128] * 3, std=[100] * 3, to_rgb=True, num_classes=5),
    backbone=dict(type='mmengine.ColorsOfHalves'),
    head=dict(type='ArcFaceClsHead', num_classes=5, in_channels=6),
)


def verify(faces: Path, dataset: dict, loop: dict | None = None, model: dict = CLASSIFIER) -> dict[str, float]:
    config = dict(
        work_dir=str(faces / 'work'), default_scope='mmpretrain', experiment_name=f'verify{np.random.randint(1 << 30)}',
        model=model, test_cfg=dict(type='mmssl.FeatureTestLoop', **(loop or {})),
        test_dataloader=dict(batch_size=16, num_workers=0, dataset=dataset,
                             sampler=dict(type='DefaultSampler', shuffle=False)),
        test_evaluator=dict(type='mmssl.FaceVerification'))  # fmt: skip
    return Runner.from_cfg(config).test()


def test_all_pairs_are_told_apart(faces):
    found = verify(faces, pairs_dataset(faces))
    assert found['verification/lfw/accuracy'] == 100 and found['verification/lfw/std'] == 0
    assert 0 < found['verification/lfw/threshold'] < 2 and found['verification/accuracy'] == 100


def test_accuracy_counts_wrong_pairs(faces):
    # In every other fold, one of the ten pairs is called the same though it is not: at any good threshold it is wrong.
    lines = (faces / 'lfw.txt').read_text().splitlines()
    paths = []
    for fold in range(10):
        for place, line in enumerate(lines[1 + 10 * fold:11 + 10 * fold]):
            words = line.split()
            first, second = (words[0], words[1]), (words[0], words[2]) if len(words) == 3 else (words[2], words[3])
            same = int(len(words) == 3 or (place == 9 and fold % 2))
            paths.append(' '.join(f'{name}/{name}_{int(n):04d}.png' for name, n in (first, second)) + f' {same}')
    (faces / 'wrong.txt').write_text('\n'.join(paths))
    both = dict(type='ConcatDataset', datasets=[pairs_dataset(faces), pairs_dataset(faces, 'wrong.txt', name='odd')])
    found = verify(faces, both)
    assert found['verification/odd/accuracy'] == pytest.approx(95)
    assert found['verification/odd/std'] == pytest.approx(5)
    assert found['verification/lfw/accuracy'] == 100 and found['verification/accuracy'] == pytest.approx(97.5)


@pytest.mark.parametrize('flip, accuracy', [(False, 50), (True, 100)])
def test_mirrored_images_need_the_sum_with_their_mirror_image(faces, flip, accuracy):
    # Every pair has one mirrored image: without the sum of both views all pairs look alike.
    text = (faces / 'lfw.txt').read_text().splitlines()
    (faces / 'mirrored.txt').write_text('\n'.join([text[0], *(line[:-1] + '3' for line in text[1:])]))
    found = verify(faces, pairs_dataset(faces, 'mirrored.txt'), dict(flip=flip))['verification/accuracy']
    assert found == 100 if flip else abs(found - accuracy) <= 10


def test_retriever_without_prototypes(faces):
    retriever = dict(
        type='ImageToImageRetriever', image_encoder=[dict(type='mmengine.ColorsOfHalves')], prototype='unused.pth',
        data_preprocessor=dict(type='ClsDataPreprocessor', mean=[128] * 3, std=[100] * 3, to_rgb=True))  # fmt: skip
    assert verify(faces, pairs_dataset(faces), model=retriever)['verification/accuracy'] == 100


def test_feature_maps_are_refused(faces):
    backbone = dict(type='ResNet', depth=18, base_channels=8, stem_channels=8, num_stages=1, out_indices=(0,),
                    strides=(1,), dilations=(1,))  # fmt: skip
    model = dict(CLASSIFIER, backbone=backbone, head=dict(type='LinearClsHead', num_classes=5, in_channels=8))
    with pytest.raises(ValueError, match=r'test_cfg: features must be vectors.*\(16, 8, 2, 2\); pool them'):
        verify(faces, pairs_dataset(faces), model=model)
    with pytest.raises(ValueError, match=r"test_cfg\.stage must be one of .* got 'head'"):
        verify(faces, pairs_dataset(faces), dict(stage='head'))


def test_data_set_refuses_missing_images(faces):
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        dataset = DATASETS.build(pairs_dataset(faces))
        assert len(dataset) == 200
        sample = dataset[11]['data_samples']
        assert {key: sample.get(key) for key in ('benchmark', 'pair', 'side', 'same')} == dict(
            benchmark='lfw', pair=5, side=1, same=False)
        (faces / 'Bob/Bob_0002.png').unlink()
        with pytest.raises(FileNotFoundError, match=r'lfw\.txt.*: 1 \(first: Bob/Bob_0002.png\) are not in'):
            DATASETS.build(pairs_dataset(faces))


def features(count=20, **changes):
    return [{'feat': torch.eye(2)[i % 2], 'benchmark': 'a', 'pair': i // 2, 'side': i % 2, 'same': False, **changes}
            for i in range(count)]  # yapf: disable


def evaluate(samples, **options):
    metric = FaceVerification(**options)
    metric.process(None, samples)
    return metric.evaluate(len(samples))


@pytest.mark.parametrize('samples, error, words', [
    ([dict(pred_score=torch.ones(2))], KeyError, r"val_cfg.type='mmssl.FeatureValLoop'"),
    ([dict(feat=torch.ones(2), pair=1)], KeyError, r"\['benchmark', 'side', 'same'\]"),
    (features(feat=torch.ones(2, 2)), ValueError, r'shape \(2, 2\)'),
    (features(feat=torch.tensor([0, float('nan')])), ValueError, 'not finite'),
    (features(18), ValueError, "'a' has 9 pairs, fewer than the 10 folds"),
    (features(21), ValueError, "of pair 10 of 'a' only one image"),
    (features(20) * 2, ValueError, "pair 0 of 'a' occurs twice"),
])  # fmt: skip
def test_metric_refuses(samples, error, words):
    with pytest.raises(error, match=words):
        evaluate(samples)


@pytest.mark.parametrize('options, words', [
    (dict(num_folds=1), 'num_folds must be an integer >= 2, got 1'),
    (dict(threshold_step=0), r'threshold_step must be in \(0, 1\], got 0'),
])  # fmt: skip
def test_wrong_options(options, words):
    with pytest.raises(ValueError, match=rf'mmssl\.FaceVerification\.{words}'):
        FaceVerification(**options)
