"""AEL: the published vectors, second implementations, gradients, and what each draw is distributed like."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from mmssl.functional import ael

BANK = torch.tensor([0.9, 0.5, 0.2], dtype=torch.float64)


def close(actual, expected):
    torch.testing.assert_close(actual, torch.tensor(expected, dtype=actual.dtype), rtol=0, atol=1e-9)


def test_vectors():
    close(ael.cutmix_class_probs(BANK), [0.2219471358, 0.3311062187, 0.4469466455])
    close(ael.copy_paste_class_probs(BANK), [0.2346809058, 0.346924008, 0.4183950863])
    close(ael.sampling_keep_probs(BANK), [0.125, 0.625, 1])
    close(ael.update_confidence(BANK, torch.tensor([0.8, 0.6, 0.4], dtype=torch.float64), 0.001),
          [0.8999, 0.5001, 0.2002])
    # Three pixels whose teacher is sure to 0.9, 0.7 and 0.6.
    top = torch.tensor([[0.9, 0.1], [0.7, 0.3], [0.6, 0.4]], dtype=torch.float64)
    weight = ael.confidence_weight(top.log(), 2)
    close(weight / weight.sum(), [0.4879518072, 0.2951807229, 0.2168674699])


def test_confidence_of_a_class_is_the_mean_probability_of_its_pixels():
    logits = torch.randn(2, 3, 5, 4, dtype=torch.float64)
    label = torch.randint(0, 2, (2, 5, 4))  # class 2 is absent
    label[0, :2] = 255
    sums, counts = ael.class_confidence_sums(logits, label)
    prob = logits.softmax(1)
    for c in range(3):
        inside = label == c
        assert counts[c] == inside.sum()
        torch.testing.assert_close(sums[c], prob[:, c][inside].sum())
    assert sums[2] == 0
    # Processes that share the batch add up to the whole.
    halves = [ael.class_confidence_sums(logits[i:i + 1], label[i:i + 1]) for i in range(2)]
    torch.testing.assert_close(halves[0][0] + halves[1][0], sums)
    assert torch.equal(halves[0][1] + halves[1][1], counts)


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_float32(dtype):
    logits = torch.zeros(1, 2, 300, 300, dtype=dtype)
    sums, counts = ael.class_confidence_sums(logits, torch.zeros(1, 300, 300, dtype=torch.long))
    assert sums.dtype == torch.float32
    close(sums / counts.clamp(min=1), [0.5, 0.])


def test_update_leaves_classes_of_momentum_zero_alone():
    new = ael.update_confidence(BANK, torch.zeros(3, dtype=torch.float64), torch.tensor([0., 0.001, 1.]).double())
    close(new, [0.9, 0.4995, 0.])


def test_pick_draws_each_class_with_its_probability():
    probs = np.array([0.5, 0., 0.25, 0.25])
    grid = (np.arange(1000) + 0.5) / 1000
    assert (np.bincount([ael.pick(probs, u) for u in grid], minlength=4) == [500, 0, 250, 250]).all()
    # Rounding of a float32 softmax must not make a class beyond the last.
    assert ael.pick(np.full(3, 1 / 3, np.float32), np.nextafter(1., 0.)) == 2
    assert ael.pick(np.array([0., 1.]), 0.) == 1


def test_presence():
    label = torch.zeros(2, 10, 10, dtype=torch.long)
    label[0, 0, :3] = 1
    present = ael.class_presence(label, 3, area_thresh=0.03)
    assert present.tolist() == [[True, True, False], [True, False, False]]
    assert ael.class_presence(label, 3, area_thresh=0.031)[0].tolist() == [True, False, False]
    assert ael.class_presence(label, 3, area_thresh=0.).all()


def flood_boxes(mask, min_area):
    """Second implementation of the components, by flood fill."""
    mask, boxes = mask.copy(), []
    for start in np.argwhere(mask):
        if not mask[tuple(start)]:
            continue
        stack, pixels = [tuple(start)], []
        mask[tuple(start)] = False
        while stack:
            row, column = stack.pop()
            pixels.append((row, column))
            for r in range(max(row - 1, 0), min(row + 2, mask.shape[0])):
                for c in range(max(column - 1, 0), min(column + 2, mask.shape[1])):
                    if mask[r, c]:
                        mask[r, c] = False
                        stack.append((r, c))
        rows, columns = zip(*pixels, strict=True)
        if len(pixels) > min_area:
            boxes.append((min(rows), min(columns), max(rows) + 1, max(columns) + 1))
    return boxes


@pytest.mark.parametrize('min_area', [0, 4])
def test_components_equal_a_flood_fill(min_area):
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(20):
        mask = rng.random((17, 23)) < 0.2
        boxes = ael.component_boxes(mask, min_area)
        assert sorted(boxes) == sorted(flood_boxes(mask, min_area))
        found += len(boxes)
    assert found > 20
    assert ael.component_boxes(np.zeros((5, 6), bool), 0) == []


def test_component_of_exactly_the_threshold_is_too_small():
    mask = np.zeros((8, 8), bool)
    mask[1:3, 1:4] = True
    assert ael.component_boxes(mask, 6) == []
    assert ael.component_boxes(mask, 5) == [(1, 1, 3, 4)]


def test_random_box_has_half_the_area_and_lies_inside():
    heights = []
    for seed in range(400):
        top, left, bottom, right = ael.random_box(200, 300, np.random.default_rng(seed))
        assert 0 <= top < bottom <= 200
        assert 0 <= left < right <= 300
        assert abs((bottom - top) * (right - left) / 60000 - 0.5) < 0.01
        heights.append((bottom - top) / 200)
    u = np.log(heights) / np.log(0.5)
    assert np.allclose(np.quantile(u, [0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=0.08)


def test_box_masks():
    masks = ael.box_masks([(0, 1, 2, 3), (1, 0, 1, 4)], 3, 4)
    assert masks.shape == (2, 1, 3, 4)
    assert masks[0, 0].int().tolist() == [[0, 1, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]]
    assert not masks[1].any()


def test_class_mask():
    label = torch.tensor([[0, 1, 2], [255, 1, 0]])
    assert ael.class_mask(label, torch.tensor([1, 1, 2])).tolist() == [[False, True, True], [False, True, False]]


def test_keep_probs_at_the_ends():
    assert ael.sampling_keep_probs(torch.ones(3)).tolist() == [1, 1, 1]
    assert ael.sampling_keep_probs(torch.tensor([0.3, 0.3])).tolist() == [1, 1]
    assert ael.sampling_keep_probs(torch.tensor([1., 0.5])).tolist() == [0, 1]
    assert ael.sampling_keep_probs(BANK, exponent=0).tolist() == [1, 1, 1]
    close(ael.sampling_keep_probs(BANK, exponent=0.5) ** 2, [0.125, 0.625, 1])


def test_sampling_keeps_each_class_at_its_rate():
    keep = torch.tensor([0., 0.25, 1.])
    label = torch.arange(3).repeat_interleave(40000).view(1, 300, 400)
    uniform = torch.rand(label.shape, generator=torch.Generator().manual_seed(0))
    kept = ael.equalization_mask(label, keep, uniform).view(3, -1).float().mean(dim=1)
    assert kept[0] == 0
    assert abs(kept[1] - 0.25) < 0.01
    assert kept[2] == 1
    # As it is published, U > 1 - s, but that 1 - U is drawn.
    assert torch.equal(ael.equalization_mask(label, keep, uniform), (1 - uniform) > 1 - keep[label])


def test_consistency_is_the_weighted_mean_of_the_cross_entropy():
    logits = torch.randn(2, 3, 4, 5, dtype=torch.float64, requires_grad=True)
    target = torch.randn(2, 3, 4, 5, dtype=torch.float64) * 3
    weight = ael.confidence_weight(target, 2) * (torch.rand(2, 4, 5) < 0.5)
    loss = ael.weighted_consistency(logits, target, weight, threshold=0.7)
    total = torch.zeros((), dtype=torch.float64)
    for n in range(2):
        for row in range(4):
            for column in range(5):
                prob = target[n, :, row, column].softmax(0)
                if prob.max() >= 0.7:
                    total = total - weight[n, row, column] * logits[n, :, row, column].log_softmax(0)[prob.argmax()]
    torch.testing.assert_close(loss, total / weight.sum())
    assert torch.autograd.gradcheck(lambda z: ael.weighted_consistency(z, target, weight, 0.7), (logits,))
    # Equal weights are the plain mean.
    torch.testing.assert_close(ael.weighted_consistency(logits, target, torch.ones(2, 4, 5).double()),
                               F.cross_entropy(logits, target.argmax(1)))
    # Nothing sampled: zero, attached.
    nothing = ael.weighted_consistency(logits, target, torch.zeros(2, 4, 5).double())
    assert nothing == 0
    assert torch.autograd.grad(nothing, logits)[0].abs().sum() == 0
