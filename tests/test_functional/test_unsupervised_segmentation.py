"""Losses and score of unsupervised segmentation, against loops written out."""

import math

import pytest
import torch
from torch import Tensor

from mmssl.functional.unsupervised_segmentation import (
    best_ious,
    continuity_loss,
    count_labels,
    segment_labels,
    similarity_loss,
)


def random_response(shape: tuple[int, ...] = (1, 5, 4, 3)) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def test_similarity_is_cross_entropy_to_the_own_label() -> None:
    response = random_response()
    labels = segment_labels(response)
    total = 0.0
    for y in range(4):
        for x in range(3):
            pixel = response[0, :, y, x].tolist()
            total += math.log(sum(math.exp(value) for value in pixel)) - max(pixel)
    loss = similarity_loss(response, labels)
    assert loss.item() == pytest.approx(total / 12, rel=1e-12)
    # Its gradient: softmax minus one-hot, over the number of pixels.
    (gradient,) = torch.autograd.grad(loss, response)
    one_hot = torch.nn.functional.one_hot(labels, 5).movedim(-1, 1)
    torch.testing.assert_close(gradient, (response.softmax(dim=1) - one_hot) / 12)


def test_similarity_of_some_pixels_is_their_mean() -> None:
    response = random_response()
    labels, selected = segment_labels(response), torch.zeros(1, 4, 3, dtype=torch.bool)
    selected[0, 1, 2] = selected[0, 3, 0] = True
    pixels = torch.stack([response[0, :, 1, 2], response[0, :, 3, 0]])
    expected = torch.nn.functional.cross_entropy(pixels, pixels.argmax(dim=1))
    torch.testing.assert_close(similarity_loss(response, labels, selected), expected)
    nothing = similarity_loss(response, labels, torch.zeros_like(selected))
    assert nothing.item() == 0
    assert torch.autograd.grad(nothing, response)[0].abs().sum() == 0


def test_continuity_is_the_sum_of_two_means() -> None:
    response = random_response()
    values = response.detach()
    down = [abs(float(values[0, c, y + 1, x] - values[0, c, y, x]))
            for c in range(5) for y in range(3) for x in range(3)]
    right = [abs(float(values[0, c, y, x + 1] - values[0, c, y, x]))
             for c in range(5) for y in range(4) for x in range(2)]
    expected = sum(down) / len(down) + sum(right) / len(right)
    assert continuity_loss(response).item() == pytest.approx(expected, rel=1e-12)
    assert torch.autograd.gradcheck(continuity_loss, (response,))


@pytest.mark.parametrize('shape', [(1, 5, 1, 7), (1, 5, 7, 1)])
def test_images_one_pixel_wide_have_one_direction(shape: tuple[int, ...]) -> None:
    response = random_response(shape)
    dim = 3 if shape[2] == 1 else 2
    torch.testing.assert_close(continuity_loss(response), response.diff(dim=dim).abs().mean())


def test_continuity_of_one_pixel_is_an_attached_zero() -> None:
    response = random_response((1, 5, 1, 1))
    loss = continuity_loss(response)
    assert loss.item() == 0
    assert torch.autograd.grad(loss, response)[0].abs().sum() == 0


def test_labels_are_counted_once() -> None:
    assert count_labels(torch.tensor([[3, 3], [0, 9]]), 10) == 3
    assert count_labels(torch.zeros(4, 4, dtype=torch.long), 100) == 1


def slow_best_ious(prediction: Tensor, truth: Tensor) -> list[float]:
    best = []
    for segment in sorted({value for value in truth.flatten().tolist() if value != -1}):
        scores = []
        for label in set(prediction.flatten().tolist()):
            a, b = (truth == segment), (prediction == label) & (truth != -1)
            scores.append(int((a & b).sum()) / int((a | b).sum()))
        best.append(max(scores))
    return best


def test_best_ious_against_loops() -> None:
    prediction, truth = torch.randint(0, 6, (9, 7)), torch.randint(-1, 4, (9, 7))
    assert best_ious(prediction, truth).tolist() == pytest.approx(slow_best_ious(prediction, truth), rel=1e-12)
    # Names of labels mean nothing.
    renamed = torch.randperm(6)[prediction] * 1000
    torch.testing.assert_close(best_ious(renamed, truth), best_ious(prediction, truth))


def test_best_ious_by_hand() -> None:
    truth = torch.tensor([[1, 1, 2, 2], [1, 1, 2, -1]])
    assert best_ious(truth, truth).tolist() == [1, 1]
    # One label everywhere: 4 and 3 of the 7 known pixels.
    assert best_ious(torch.zeros_like(truth), truth).tolist() == pytest.approx([4 / 7, 3 / 7])
    assert best_ious(truth, torch.full_like(truth, -1)).tolist() == []
