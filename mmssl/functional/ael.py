"""Adaptive equalization learning (AEL): confidence per class, and the four things that are steered by it.

Semi-Supervised Semantic Segmentation via Adaptive Equalization Learning (Hu et al., NeurIPS 2021). A class that the
student is sure of is learned; what is not yet learned is shown more often and counts more. ``Conf`` is the confidence
bank, (C,), in [0, 1]; ``p`` are the teacher's probabilities.

* Confidence of each class: :func:`class_confidence_sums`, :func:`update_confidence`
* Adaptive CutMix: :func:`cutmix_class_probs`, :func:`class_presence`, :func:`component_boxes`, :func:`random_box`
* Adaptive copy-paste: :func:`copy_paste_class_probs`, :func:`class_mask`
* Adaptive equalization sampling: :func:`sampling_keep_probs`, :func:`equalization_mask`
* Dynamic re-weighting: :func:`confidence_weight`, and :func:`weighted_consistency`, the loss in one line

Every random choice takes its random numbers from the caller, who has them from :func:`numbers_of`, so that a resumed
run, or another number of processes, makes the same ones.
"""

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

Box = tuple[int, int, int, int]


def numbers_of(stream: int, seed: int, step: int, place: int) -> np.random.Generator:
    """The random numbers of one image in one iteration.

    Args:
        stream: Keeps the draws of one part of the method apart from those of the others.
        seed: Of the run, >= 0.
        step: Iteration, >= 0.
        place: Of the image in the batch of all processes, >= 0.
    """
    return np.random.Generator(np.random.Philox(np.random.SeedSequence((stream, seed, step, place))))


def class_confidence_sums(logits: Tensor, label: Tensor, ignore_index: int = 255) -> tuple[Tensor, Tensor]:
    """Summed probability of the true class, and number of pixels, by class; sums of several processes may be added.

    Args:
        logits: Student logits on labeled images, (N, C, *).
        label: int64, (N, *).
        ignore_index: The label of pixels that do not count.

    Returns:
        Sums and counts, both float64 or float32 as the logits need, (C,).
    """
    num_classes = logits.shape[1]
    valid = label != ignore_index
    prob = logits.detach().to(torch.promote_types(logits.dtype, torch.float32)).softmax(dim=1)
    true_class = label.where(valid, 0)
    true_prob = prob.gather(1, true_class[:, None])[:, 0].masked_fill(~valid, 0)
    # Class by class: scatter_add and bincount add in no fixed order on a GPU, and a one-hot map is large.
    masks = ((label == index) & valid for index in range(num_classes))
    sums = [(true_prob.where(mask, 0).sum(), mask.sum()) for mask in masks]
    return torch.stack([total for total, _ in sums]), torch.stack([count for _, count in sums]).to(prob.dtype)


def update_confidence(bank: Tensor, confidence: Tensor, momentum: Tensor | float) -> Tensor:
    """One step of the bank, ``(1 - momentum) * bank + momentum * confidence``.

    Args:
        bank: ``Conf``, (C,).
        confidence: Mean probability of each class in this iteration, (C,).
        momentum: In [0, 1], a number or one for each class, (C,); 0 leaves a class alone. The paper's decay 0.999 is
            0.001.

    Returns:
        The new bank, (C,).
    """
    return bank + momentum * (confidence - bank)


def cutmix_class_probs(bank: Tensor) -> Tensor:
    """Probability of each class to be looked for in the donor of adaptive CutMix, ``softmax(1 - Conf)``, (C,)."""
    return (1 - bank).softmax(dim=0)


def copy_paste_class_probs(bank: Tensor, exponent: float = 0.5) -> Tensor:
    """Probability of each class to be pasted, ``softmax((1 - Conf)^exponent)``.

    Args:
        bank: ``Conf`` of the classes that may be pasted, (T,), in [0, 1].
        exponent: > 0.

    Returns:
        (T,).
    """
    return (1 - bank).clamp(min=0).pow(exponent).softmax(dim=0)


def pick(probs: np.ndarray, uniform: float) -> int:
    """The class whose part of [0, 1) holds ``uniform``: a draw that no version of numpy makes differently.

    Args:
        probs: (C,), >= 0, sum 1 up to rounding.
        uniform: In [0, 1).
    """
    cumulative = np.cumsum(probs, dtype=np.float64)
    return int(np.searchsorted(cumulative, uniform * cumulative[-1], side='right').clip(0, len(probs) - 1))


def class_presence(label: Tensor, num_classes: int, area_thresh: float) -> Tensor:
    """Which classes take at least ``area_thresh`` of each predicted map, the rows of the presence bank.

    Args:
        label: Predicted classes, int64, (N, H, W).
        num_classes: C.
        area_thresh: Share of the image, in [0, 1]; 0 means every class, seen or not.

    Returns:
        Bool, (N, C).
    """
    counts = torch.stack([(label == index).flatten(1).sum(dim=1) for index in range(num_classes)], dim=1)
    return counts >= area_thresh * label.shape[-2] * label.shape[-1]


def component_boxes(mask: np.ndarray, min_area: float) -> list[Box]:
    """Bounding boxes of the connected components (8 neighbours) with more than ``min_area`` pixels.

    Args:
        mask: Bool, (H, W).
        min_area: In pixels; the component itself is counted, not its box.

    Returns:
        Boxes (top, left, bottom, right), the last two exclusive, in the order of their first pixel, row by row.
    """
    count, _, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=8)
    boxes = []
    for index in range(1, count):  # 0 is what is not in the mask
        left, top, width, height, area = (int(value) for value in stats[index])
        if area > min_area:
            boxes.append((top, left, top + height, left + width))
    return boxes


def random_box(height: int, width: int, rng: np.random.Generator, area: float = 0.5) -> Box:
    """A box of a share of the image at a random place, where no component is large enough.

    The height share is ``exp(u ln area)`` with u ~ U(0, 1), the width share gives the area.

    Args:
        height: In pixels.
        width: In pixels.
        rng: Source of the numbers; three are drawn.
        area: Share of the image, in (0, 1].

    Returns:
        (top, left, bottom, right).
    """
    height_share, top_share, left_share = rng.random(3)
    height_share = float(np.exp(height_share * np.log(area)))
    rows = int(np.round(height_share * height))
    columns = int(np.round(area / height_share * width))
    top = int(np.round(top_share * (height - rows)))
    left = int(np.round(left_share * (width - columns)))
    return top, left, top + rows, left + columns


def box_masks(boxes: list[Box], height: int, width: int) -> Tensor:
    """Masks that are True inside each box, bool, (N, 1, height, width)."""
    masks = torch.zeros(len(boxes), 1, height, width, dtype=torch.bool)
    for mask, (top, left, bottom, right) in zip(masks, boxes, strict=True):
        mask[:, top:bottom, left:right] = True
    return masks


def class_mask(label: Tensor, classes: Tensor) -> Tensor:
    """Pixels of any of ``classes``, what adaptive copy-paste copies.

    Args:
        label: int64, (*).
        classes: int64, (n,).

    Returns:
        Bool, (*).
    """
    return torch.isin(label, classes)


def sampling_keep_probs(bank: Tensor, exponent: float = 1.) -> Tensor:
    """Share of the pixels of each class that is kept, ``((1 - Conf) / max(1 - Conf))^exponent``.

    Args:
        bank: ``Conf``, (C,), in [0, 1].
        exponent: >= 0; 0 keeps all.

    Returns:
        (C,), in [0, 1]; 1 for the least confident class, and for all if there is nothing left to learn.
    """
    missing = (1 - bank).clamp(min=0)
    largest = missing.max()
    return torch.where(largest > 0, missing / largest.where(largest > 0, 1), torch.ones_like(missing)).pow(exponent)


def equalization_mask(label: Tensor, keep_probs: Tensor, uniform: Tensor) -> Tensor:
    """Which pixels are trained on: each with the probability of the class that the student sees in it.

    Args:
        label: The student's predicted classes, int64, (N, *).
        keep_probs: (C,), of :func:`sampling_keep_probs`.
        uniform: Random numbers in [0, 1), (N, *).

    Returns:
        Bool, (N, *).
    """
    return uniform < keep_probs[label]


def confidence_weight(target_logits: Tensor, exponent: float = 2.) -> Tensor:
    """Weight of each pixel before it is normalized, ``(max_c p)^exponent``.

    Args:
        target_logits: Teacher logits, (N, C, *).
        exponent: >= 0; 0 counts every pixel alike.

    Returns:
        (N, *), in [0, 1], float64 or float32.
    """
    dtype = torch.promote_types(target_logits.dtype, torch.float32)
    return target_logits.detach().to(dtype).softmax(dim=1).amax(dim=1).pow(exponent)


def weighted_consistency(logits: Tensor, target_logits: Tensor, weight: Tensor, threshold: float = 0.) -> Tensor:
    """AEL's consistency loss as it is printed: weights of sum 1 times cross entropy with the teacher's classes.

    The definition, made to be read; training reaches the same number through ``unsup_loss``, which FPL may replace.

    Args:
        logits: Student logits, (N, C, *).
        target_logits: Teacher logits, (N, C, *).
        weight: Not normalized, (N, *): :func:`confidence_weight` times :func:`equalization_mask`.
        threshold: Pixels whose teacher is less confident have no loss; their weight stays in the sum.

    Returns:
        Scalar; 0, attached to the graph, if every weight is 0.
    """
    confidence, label = target_logits.detach().softmax(dim=1).max(dim=1)
    loss = F.cross_entropy(logits, label, reduction='none') * (confidence >= threshold)
    return (weight * loss).sum() / (weight.sum() + 1e-12)
