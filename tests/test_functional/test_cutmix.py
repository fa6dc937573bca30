"""CutMix masks: stateless, of the right sizes, toggling; and mixing."""

import numpy as np
import pytest
import torch

from mmssl.functional.cutmix import cutmix_masks, mix


def test_masks_depend_on_seed_step_and_global_index_only():
    whole = cutmix_masks(6, 40, 50, seed=3, step=7)
    assert whole.shape == (6, 1, 40, 50)
    assert set(whole.unique().tolist()) == {0., 1.}
    np.random.seed(0)
    torch.manual_seed(0)
    assert torch.equal(cutmix_masks(6, 40, 50, seed=3, step=7), whole)
    # Two processes that share the batch, in either order of sharing.
    assert torch.equal(torch.cat([cutmix_masks(3, 40, 50, 3, 7, index_offset=i) for i in (0, 3)]), whole)
    assert torch.equal(cutmix_masks(3, 40, 50, 3, 7, indices=[5, 1, 3]), whole[[5, 1, 3]])


def test_masks_differ_between_seeds_steps_and_indices():
    masks = cutmix_masks(4, 40, 50, seed=3, step=7)
    assert not torch.equal(masks[0], masks[1])
    assert not torch.equal(cutmix_masks(4, 40, 50, seed=4, step=7), masks)
    assert not torch.equal(cutmix_masks(4, 40, 50, seed=3, step=8), masks)
    # Swapping the roles of the numbers is not the same draw.
    assert not torch.equal(cutmix_masks(4, 40, 50, seed=7, step=3), masks)


def test_masks_leave_global_generators_alone():
    np.random.seed(1)
    torch.manual_seed(1)
    expected = np.random.random(), torch.rand(())
    np.random.seed(1)
    torch.manual_seed(1)
    cutmix_masks(3, 10, 10, 0, 0)
    assert np.random.random() == expected[0]
    assert torch.rand(()) == expected[1]


def test_same_numbers_everywhere():
    """Frozen: another machine, numpy or torch version must draw these masks."""
    masks = cutmix_masks(3, 8, 9, seed=1, step=2)
    assert masks.sum(dim=(1, 2, 3)).tolist() == [19, 19, 22]


def test_one_box_has_the_area_of_the_formula():
    """One box: area share U(0.25, 0.5), height share exp(u ln a), placed inside the image."""
    size = 400
    masks = cutmix_masks(600, size, size, 0, 0, num_boxes=1)[:, 0]
    areas = masks.mean(dim=(1, 2)).numpy()
    assert areas.min() >= 0.25 - 0.01
    assert areas.max() <= 0.5 + 0.01
    quantiles = np.quantile(areas, [0.1, 0.25, 0.5, 0.75, 0.9])
    assert np.allclose(quantiles, 0.25 + 0.25 * np.array([0.1, 0.25, 0.5, 0.75, 0.9]), atol=0.02)
    heights = masks.amax(dim=2).mean(dim=1).numpy()
    u = np.log(heights) / np.log(areas)
    assert np.allclose(np.quantile(u, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.07)
    assert np.allclose(areas, heights * masks.amax(dim=1).mean(dim=1).numpy(), atol=1e-6)  # a rectangle


def test_three_boxes_share_the_area():
    """Each of three boxes has a third of the share, so a pixel is hit by each with probability a / 3 on average."""
    union = cutmix_masks(500, 100, 100, 0, 0, toggle=False)
    toggled = cutmix_masks(500, 100, 100, 0, 0)
    assert (toggled <= union).all()
    assert union.mean() > toggled.mean()
    assert 0.25 * 0.7 < union.mean() < 0.5
    assert (toggled.sum(dim=(1, 2, 3)) <= 0.5 * 100 * 100 * 1.03).all()


def test_boxes_toggle():
    """Where two boxes overlap the mask is 0 again: union minus toggled is what an even number of boxes covers."""
    union = cutmix_masks(200, 30, 30, 5, 0, num_boxes=2, area_range=(0.9, 1.), toggle=False)
    toggled = cutmix_masks(200, 30, 30, 5, 0, num_boxes=2, area_range=(0.9, 1.))
    overlap = union - toggled
    assert overlap.sum() > 0
    # Two boxes of area share near 1/2 each: |A xor B| = |A| + |B| - 2 |A and B|.
    areas = union.sum(dim=(1, 2, 3)) + overlap.sum(dim=(1, 2, 3))
    assert torch.allclose(areas / 900, torch.full((200,), 0.95), atol=0.12)


@pytest.mark.parametrize('size', [(1, 1), (1, 50), (3, 2)])
def test_tiny_images(size):
    assert cutmix_masks(20, *size, 0, 0).shape == (20, 1, *size)


def test_zero_masks_and_types():
    assert cutmix_masks(0, 4, 5, 0, 0).shape == (0, 1, 4, 5)
    assert cutmix_masks(1, 4, 5, 0, 0, dtype=torch.bool).dtype == torch.bool


@pytest.mark.parametrize(('kwargs', 'message'), [
    (dict(area_range=(0., 0.5)), 'area_range'), (dict(area_range=(0.5, 0.25)), 'area_range'),
    (dict(area_range=(0.5, 1.5)), 'area_range'), (dict(num_boxes=0), 'num_boxes'), (dict(seed=-1), 'seed'),
    (dict(indices=[0]), 'indices'), (dict(index_offset=-1), 'negative'), (dict(height=0), 'height')])
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        cutmix_masks(**{**dict(num=2, height=4, width=4, seed=0, step=0), **kwargs})


def test_mix_takes_b_where_the_mask_is_one():
    mask = cutmix_masks(2, 6, 7, 0, 0)
    a, b = torch.randn(2, 3, 6, 7), torch.randn(2, 3, 6, 7)
    assert torch.equal(mix(a, b, mask), a * (1 - mask) + b * mask)
    labels = torch.randint(0, 5, (2, 6, 7)), torch.randint(5, 9, (2, 6, 7))
    mixed = mix(*labels, mask[:, 0])
    assert torch.equal(mixed >= 5, mask[:, 0].bool())
    assert mixed.dtype == torch.int64


def test_mix_hides_what_is_not_taken():
    mask = torch.ones(1, 1, 2, 2)
    assert mix(torch.full((1, 3, 2, 2), float('nan')), torch.ones(1, 3, 2, 2), mask).isfinite().all()


def test_mixed_logits_have_mixed_probabilities():
    a, b = torch.randn(2, 4, 6, 7), torch.randn(2, 4, 6, 7)
    mask = cutmix_masks(2, 6, 7, 0, 0)
    assert torch.allclose(mix(a, b, mask).softmax(1), mix(a.softmax(1), b.softmax(1), mask))


def test_unimatch_boxes_have_area_and_shape_of_the_formula():
    """UniMatch: area share U(0.02, 0.4), height over width U(0.3, 1 / 0.3), one box that fits, with probability 0.5."""
    size, num = 200, 600
    masks = cutmix_masks(num, size, size, 0, 0, num_boxes=1, area_range=(0.02, 0.4), aspect_range=(0.3, 1 / 0.3),
                         prob=0.5)[:, 0]
    mixed = masks.flatten(1).any(dim=1)
    assert abs(mixed.float().mean() - 0.5) < 0.07
    masks = masks[mixed]
    heights, widths = masks.amax(dim=2).sum(dim=1), masks.amax(dim=1).sum(dim=1)
    areas = masks.mean(dim=(1, 2))
    assert torch.allclose(areas, heights * widths / size**2)  # a rectangle
    assert 0.015 < areas.min() < 0.05
    assert 0.35 < areas.max() <= 0.4
    assert np.allclose(np.quantile(areas, [0.25, 0.5, 0.75]), [0.115, 0.21, 0.305], atol=0.035)
    aspects = heights / widths
    assert 0.29 < aspects.min() < 0.5
    assert 2.5 < aspects.max() < 3.6
    # Corners are uniform among those with which the box fits; so is a box's place.
    tops = (masks.amax(dim=2).argmax(dim=1) / (size - heights).clamp(min=1)).numpy()
    assert np.allclose(np.quantile(tops, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.08)


def test_unimatch_boxes_against_its_own_procedure():
    """Area, height and place, against the published procedure with another random generator."""
    rng, size, ours, theirs = np.random.default_rng(1), 100, [], []
    masks = cutmix_masks(800, size, size, 3, 0, num_boxes=1, area_range=(0.02, 0.4), aspect_range=(0.3, 1 / 0.3))[:, 0]
    for mask in masks.numpy():
        rows, columns = mask.any(axis=1).nonzero()[0], mask.any(axis=0).nonzero()[0]
        ours.append((len(rows), len(columns), rows[0], columns[0]))
    while len(theirs) < 800:
        area = rng.uniform(0.02, 0.4) * size * size
        while True:
            ratio = rng.uniform(0.3, 1 / 0.3)
            w, h = int(np.sqrt(area / ratio)), int(np.sqrt(area * ratio))
            x, y = rng.integers(0, size, 2)
            if x + w <= size and y + h <= size:
                break
        theirs.append((h, w, y, x))
    for a, b in zip(np.array(ours).T, np.array(theirs).T, strict=True):
        assert np.allclose(np.quantile(a, [0.1, 0.3, 0.5, 0.7, 0.9]), np.quantile(b, [0.1, 0.3, 0.5, 0.7, 0.9]), atol=6)


def test_boxes_that_do_not_fit_are_cut():
    masks = cutmix_masks(3, 20, 30, 0, 0, num_boxes=1, area_range=(1., 1.), aspect_range=(8., 9.))
    assert masks.amax(dim=3).all()  # as high as the image, and a third as wide
    assert 0.25 < masks.mean() < 0.45


@pytest.mark.parametrize(('kwargs', 'message'), [
    (dict(aspect_range=(0., 1.)), 'aspect_range'), (dict(aspect_range=(2., 1.)), 'aspect_range'),
    (dict(prob=0.), 'prob'), (dict(prob=1.5), 'prob')])
def test_wrong_shapes_of_boxes(kwargs, message):
    with pytest.raises(ValueError, match=message):
        cutmix_masks(1, 4, 4, 0, 0, **kwargs)
