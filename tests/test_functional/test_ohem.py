"""Online hard example mining equals its definition, pixel by pixel."""

import pytest
import torch

from mmssl.functional.ohem import ohem_cross_entropy


def plain(logits: torch.Tensor, label: torch.Tensor, thresh: float, min_kept: int) -> float:
    """The definition in a loop: threshold = max(thresh, k-th smallest true-class probability), mean over the kept."""
    pixels = []
    for image, labels in zip(logits.double(), label, strict=True):
        for row in range(labels.shape[0]):
            for column in range(labels.shape[1]):
                true = int(labels[row, column])
                # Ignored pixels count as certain.
                pixels.append(1. if true == 255 else float(image[:, row, column].softmax(0)[true]))
    threshold = max(thresh, sorted(pixels)[min_kept - 1])
    valid = [p for p, true in zip(pixels, label.flatten().tolist(), strict=True) if true != 255]
    kept = valid if len(valid) < min_kept else [p for p in valid if p <= threshold]
    return float(-torch.tensor(kept, dtype=torch.float64).log().mean())


@pytest.mark.parametrize('ignored', [0., 0.3, 0.95])
@pytest.mark.parametrize('thresh, min_kept', [(0.7, 1), (0.7, 60), (0.1, 60), (0., 1), (1., 1), (0.2, 144)])
def test_equals_the_definition(thresh: float, min_kept: int, ignored: float) -> None:
    logits = torch.randn(2, 5, 8, 9) * 3
    label = torch.randint(0, 5, (2, 8, 9)).masked_fill(torch.rand(2, 8, 9) < ignored, 255)
    loss = ohem_cross_entropy(logits, label, thresh, min_kept)
    assert loss.item() == pytest.approx(plain(logits, label, thresh, min_kept), rel=1e-5)


def test_easy_pixels_get_no_gradient_and_do_not_dilute_the_mean() -> None:
    logits = torch.zeros(1, 2, 1, 4)
    logits[0, 0, 0, :3] = 10.  # three certain pixels, one undecided
    logits.requires_grad_()
    loss = ohem_cross_entropy(logits, torch.zeros(1, 1, 4, dtype=torch.long), 0.7, 1)
    loss.backward()
    assert loss.item() == pytest.approx(0.6931472)
    assert logits.grad[..., :3].abs().max() == 0 and logits.grad[0, 0, 0, 3] == -0.5


def test_all_ignored_is_zero_and_attached() -> None:
    logits = torch.randn(1, 3, 4, 4, requires_grad=True)
    loss = ohem_cross_entropy(logits, torch.full((1, 4, 4), 255), 0.7, 10)
    loss.backward()
    assert loss == 0 and logits.grad.abs().max() == 0
