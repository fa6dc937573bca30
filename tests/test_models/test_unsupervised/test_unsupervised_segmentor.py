"""Unsupervised segmentation: the loss, its training to few labels, resume, and what is refused."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner
from mmengine.structures import BaseDataElement, PixelData

from mmssl.engine.hooks import MinLabelsHook
from mmssl.functional.unsupervised_segmentation import continuity_loss
from mmssl.models.unsupervised import UnsupervisedSegmentor


def scribbled(values: Any) -> list[BaseDataElement]:
    sample = BaseDataElement(metainfo=dict(img_path='a.png'))
    return [sample.set_data(dict(gt_scribbles=PixelData(data=torch.tensor([values])))) or sample]


def test_loss_is_the_sum_of_its_terms() -> None:
    model = UnsupervisedSegmentor(num_labels=6, channels=4, similarity_weight=0.5, continuity_weight=5.0)
    image = torch.rand(1, 3, 5, 4)
    response = model(image)
    assert response.shape == (1, 6, 5, 4)
    losses = model(image, mode='loss')
    assert list(losses) == ['num_labels', 'loss_similarity', 'loss_continuity']
    expected = 0.5 * torch.nn.functional.cross_entropy(response, response.argmax(dim=1))
    torch.testing.assert_close(losses['loss_similarity'], expected)
    torch.testing.assert_close(losses['loss_continuity'], 5 * continuity_loss(response))
    assert losses['num_labels'] == len(response.argmax(dim=1).unique())
    total, log = model.parse_losses(losses)
    torch.testing.assert_close(total, losses['loss_similarity'] + losses['loss_continuity'])
    assert 'num_labels' in log


def test_network_is_the_published_one() -> None:
    model = UnsupervisedSegmentor(num_convs=3)
    names = [type(layer).__name__ for layer in model.network]
    assert names == ['Conv2d', 'ReLU', 'BatchNorm2d'] * 3 + ['Conv2d', 'BatchNorm2d']
    convs = (3 + 100 + 100) * 100 * 9 + 100 * 100 + 4 * 100
    assert sum(parameter.numel() for parameter in model.parameters()) == convs + 4 * 200
    # Training and prediction see the same statistics.
    image = torch.rand(1, 3, 8, 8)
    torch.testing.assert_close(model.eval()(image), model.train()(image), rtol=0, atol=0)


def test_scribbled_pixels_learn_their_label_instead_of_their_own() -> None:
    model = UnsupervisedSegmentor(num_labels=6, channels=4)
    image = torch.rand(1, 3, 2, 3)
    response = model(image)[0].movedim(0, -1)
    losses = model(image, scribbled([[5, -1, -1], [-1, 0, -1]]), mode='loss')
    pixels = torch.stack([response[0, 0], response[1, 1]])
    expected = 0.5 * torch.nn.functional.cross_entropy(pixels, torch.tensor([5, 0]))
    torch.testing.assert_close(losses['loss_scribble'], expected)
    rest = torch.stack([response[0, 1], response[0, 2], response[1, 0], response[1, 2]])
    torch.testing.assert_close(
        losses['loss_similarity'], torch.nn.functional.cross_entropy(rest, rest.argmax(dim=1)))
    with pytest.raises(ValueError, match=r"'a\.png' have the label 6, but model\.num_labels is 6"):
        model(image, scribbled([[6, -1, -1], [-1, 0, -1]]), mode='loss')


class Spread(torch.nn.Module):
    """Stands for a regularizer."""

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        return 3 * logits.square().mean()


def test_regularizer_sees_the_response() -> None:
    model = UnsupervisedSegmentor(num_labels=6, channels=4)
    image = torch.rand(1, 3, 5, 4)
    model.regularizer = Spread()
    torch.testing.assert_close(model(image, mode='loss')['loss_regularizer'], 3 * model(image).square().mean())


def test_prediction_comes_in_the_size_of_the_original() -> None:
    model = UnsupervisedSegmentor(num_labels=6, channels=4)
    image = torch.rand(1, 3, 2, 3)
    (plain,) = model(image, mode='predict')
    sample = BaseDataElement(metainfo=dict(ori_shape=(4, 6)))
    (large,) = model(image, [sample], mode='predict')
    np.testing.assert_array_equal(
        large.pred_segments.data[0], np.kron(plain.pred_segments.data[0].numpy(), np.ones((2, 2), int)))


def test_what_is_refused() -> None:
    model = UnsupervisedSegmentor(num_labels=6, channels=4)
    with pytest.raises(ValueError, match=r'train_dataloader\.batch_size must be 1'):
        model(torch.rand(2, 3, 4, 4))
    with pytest.raises(ValueError, match='single pixel'):
        model(torch.rand(1, 3, 1, 1))
    for key, value in (('num_labels', 1), ('channels', 0), ('num_convs', 2.0), ('continuity_weight', -1)):
        with pytest.raises(ValueError, match=rf'model\.{key} must be .*got {value}'):
            UnsupervisedSegmentor(**{key: value})


@pytest.mark.parametrize('size', [(1, 2), (1, 30), (30, 1)])
def test_images_one_pixel_wide(size: tuple[int, int]) -> None:
    model = UnsupervisedSegmentor(num_labels=6, channels=4)
    total, _ = model.parse_losses(model(torch.rand(1, 3, *size), mode='loss'))
    total.backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Three colors in vertical stripes, with noise."""
    # The runner formats the config several times, which takes longer than the training.
    monkeypatch.setattr(Config, 'pretty_text', property(lambda config: repr(config._cfg_dict.to_dict())))
    image = np.zeros((24, 36, 3), np.float64)
    for index, color in enumerate([(200, 40, 40), (40, 200, 40), (40, 40, 200)]):
        image[:, 12 * index:12 * index + 12] = color
    image += np.random.default_rng(0).normal(0, 5, image.shape)
    cv2.imwrite(str(tmp_path / 'a.png'), image.clip(0, 255).astype(np.uint8))
    (tmp_path / 'truth').mkdir()
    cv2.imwrite(str(tmp_path / 'truth/a.png'), np.arange(36, dtype=np.uint8)[None].repeat(24, axis=0) // 12)
    dataset = dict(
        type='mmssl.UnlabeledImageDataset', img_path=str(tmp_path / 'a.png'), seg_map_path=str(tmp_path / 'truth'),
        pipeline=[dict(type='LoadImageFromFile'), dict(type='mmssl.LoadSegments'), dict(type='mmssl.PackSegments')])
    loader = dict(batch_size=1, num_workers=0, dataset=dataset)
    return dict(
        default_scope='mmengine',
        randomness=dict(seed=0),
        log_level='WARNING',
        experiment_name=tmp_path.name,
        work_dir=str(tmp_path / 'work'),
        model=dict(type='mmssl.UnsupervisedSegmentor', num_labels=20, channels=20, continuity_weight=10.0),
        train_dataloader=dict(loader, sampler=dict(type='InfiniteSampler')),
        val_dataloader=dict(loader, sampler=dict(type='DefaultSampler', shuffle=False)),
        val_evaluator=dict(type='mmssl.SegmentMatchingIoU'),
        train_cfg=dict(type='IterBasedTrainLoop', max_iters=60, val_interval=60),
        val_cfg=dict(),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1, momentum=0.9)),
        default_hooks=dict(checkpoint=dict(type='mmssl.AtomicCheckpointHook', by_epoch=False, interval=60)),
        custom_hooks=[dict(type='mmssl.MinLabelsHook', min_labels=3)])


def test_training_ends_whole_when_few_labels_are_left(config: dict[str, Any], tmp_path: Path) -> None:
    runner = Runner.from_cfg(config)
    model = runner.train()
    assert 1 < runner.iter < 60
    # Saved and validated as the last iteration is.
    checkpoint = tmp_path / 'work' / f'iter_{runner.iter}.pth'
    assert checkpoint.is_file()
    assert runner.message_hub.get_scalar('val/segments/mIoU').current() > 90
    assert runner.message_hub.get_scalar('train/num_labels').current() <= 3
    # The same seed gives the same weights.
    again = Runner.from_cfg(dict(config, work_dir=str(tmp_path / 'again'), experiment_name='again')).train()
    for key, value in model.state_dict().items():
        assert torch.equal(value, again.state_dict()[key])
    # Resumed, it stays at its end.
    resumed = Runner.from_cfg(dict(config, resume=True, experiment_name='resumed'))
    weights = resumed.train().state_dict()
    assert resumed.iter == runner.iter
    assert all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())


def test_hook_without_a_count_is_refused() -> None:
    runner = SimpleNamespace(model=torch.nn.Identity())
    for outputs in (None, dict(loss=torch.zeros(()))):
        with pytest.raises(ValueError, match=r'MinLabelsHook needs a model that counts .* got model\.type=Identity'):
            MinLabelsHook().after_train_iter(runner, 0, outputs=outputs)
    with pytest.raises(ValueError, match=r'MinLabelsHook\.min_labels must be an integer >= 1, got 0'):
        MinLabelsHook(0)
