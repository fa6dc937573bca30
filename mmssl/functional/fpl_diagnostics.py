"""How well FPL and vanilla positive learning learn the truth: needs the labels of the unlabeled pixels, for analysis.

Sec. 3.4 and the appendix of the FPL paper: positive-gradient score R in three cases, cosine similarity with the ideal
gradient, gradient lengths, histogram of K. Pure functions without gradient; pixels outside ``valid`` never count.
"""

import torch
from torch import Tensor

from .fpl import compute_dtype, fuzzy_positive_assignment, fuzzy_positive_directions, fuzzy_positive_gradient

CASES = ('case1', 'case2', 'case3')


def one_hot_like(labels: Tensor, like: Tensor) -> Tensor:
    """Mask, bool, of the shape of ``like`` (N, C, *), True at ``labels`` (N, *); values outside [0, C) give class 0."""
    inside = (labels >= 0) & (labels < like.shape[1])
    index = torch.where(inside, labels, 0).long().unsqueeze(1)
    return torch.zeros_like(like, dtype=torch.bool).scatter(1, index, True)


def valid_pixels(gt: Tensor, num_classes: int, ignore_index: int = 255, valid: Tensor | None = None) -> Tensor:
    """Pixels whose truth is a class: not ``ignore_index``, in [0, C), and in ``valid`` where that is given.

    Args:
        gt: True classes, integer, (N, *).
        num_classes: C.
        ignore_index: Label that stands for "no truth here".
        valid: Pixels that count, bool, (N, *), or None.

    Returns:
        Mask, bool, (N, *).
    """
    known = (gt != ignore_index) & (gt >= 0) & (gt < num_classes)
    return known if valid is None else known & valid


def pixel_cases(target_logits: Tensor, positive: Tensor, gt: Tensor) -> Tensor:
    """Which of the three cases of Sec. 3.4 each pixel is; decided on the teacher.

    Args:
        target_logits: Teacher logits, (N, C, *).
        positive: Y, bool, (N, C, *).
        gt: True classes, integer, (N, *).

    Returns:
        int64, (N, *). 1: the pseudo label is right. 2: it is wrong, and the truth is in Y. 3: the truth is outside Y.
    """
    in_positive = (positive & one_hot_like(gt, positive)).any(dim=1)
    case = torch.where(in_positive, 2, 3)
    return torch.where(target_logits.argmax(dim=1) == gt, 1, case)


def positive_gradient_score(logits: Tensor, positive: Tensor, gt: Tensor) -> Tensor:
    r"""R of Sec. 3.4: the gradient of the truth, relative to the summed gradient of all positives.

    .. math:: R = \frac{\partial L / \partial z_{gt}}{\sum_{i \in Y} \partial L / \partial z_i}

    With Y the fuzzy positives it is the score of FPL, with Y the pseudo label alone that of vanilla learning. The
    common size of all gradients is divided out analytically, so that R is defined where they vanish.

    Args:
        logits: Student logits, (N, C, *).
        positive: Y, bool, (N, C, *).
        gt: True classes, integer, (N, *).

    Returns:
        R, (N, *), in [-1, 1]: > 0 where the prediction of the truth is raised, < 0 where it is suppressed.
    """
    _, shares = fuzzy_positive_directions(logits.to(compute_dtype(logits)), positive)
    return -(shares * one_hot_like(gt, positive)).sum(dim=1)


def gradient_norm(logits: Tensor, positive: Tensor) -> Tensor:
    """Euclidean length of the gradient of each pixel's unweighted loss (Eq. 8), (N, *), in [0, sqrt(2)]."""
    return fuzzy_positive_gradient(logits.to(compute_dtype(logits)), positive).norm(dim=1)


def ideal_cosine(logits: Tensor, positive: Tensor, gt: Tensor) -> Tensor:
    """Cosine similarity of the gradient (Eq. 8) with the ideal gradient (appendix).

    Args:
        logits: Student logits, (N, C, *).
        positive: Y, bool, (N, C, *); the pseudo label alone for vanilla learning.
        gt: True classes, integer, (N, *).

    Returns:
        Cosine, (N, *), in [-1, 1]: > 0 where the step also lowers the loss that the truth would give.
    """
    logits = logits.to(compute_dtype(logits))
    # The directions without their sizes have lengths between 1/C and sqrt(2), so vanishing gradients keep an angle.
    shares = fuzzy_positive_directions(logits, positive)[1]
    ideal = fuzzy_positive_directions(logits, one_hot_like(gt, logits))[1]
    cosine = (shares * ideal).sum(dim=1) / (shares.norm(dim=1) * ideal.norm(dim=1))
    return cosine.clamp(-1, 1)


def k_histogram(k: Tensor, num_classes: int, valid: Tensor | None = None) -> Tensor:
    """Number of pixels of each K.

    Args:
        k: K of each pixel, integer, (N, *).
        num_classes: C.
        valid: Pixels that count, bool, (N, *), or None.

    Returns:
        Counts, int64, (C,); entry i counts the pixels with K = i, so entry 0 is 0.
    """
    k = k.flatten() if valid is None else k[valid]
    return torch.bincount(k.long(), minlength=num_classes)


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of ``values`` where ``mask``; NaN where nothing is, since 0 would look like a result."""
    return torch.where(mask, values.to(compute_dtype(values)), 0).sum() / mask.sum()


@torch.no_grad()
def fpl_diagnostics(logits: Tensor,
                    target_logits: Tensor,
                    gt: Tensor,
                    valid: Tensor | None = None,
                    ignore_index: int = 255,
                    cum_prob: float = 0.9,
                    max_k: int | None = None,
                    k_rule: str = 'n-1',
                    k_ratio: float = 0.5) -> dict[str, Tensor]:
    """All of this module over one batch, as means.

    Args:
        logits: Student logits, (N, C, *).
        target_logits: Teacher logits at the same pixels, same shape.
        gt: True classes, integer, (N, *).
        valid: Pixels that count, bool, (N, *), or None for all with a truth.
        ignore_index: Label that stands for "no truth here".
        cum_prob: T of the loss.
        max_k: Cap of K of the loss.
        k_rule: Rule for K of the loss.
        k_ratio: Its alpha.

    Returns:
        ``k_histogram`` (C,) and scalars; a mean over no pixel is NaN. With case in ``case1``, ``case2``, ``case3``:
        ``{case}_ratio`` (share of the pixels), ``{case}_k1_ratio``, and for m in ``fpl``, ``vanilla``
        ``{case}_score_{m}`` (mean R), ``{case}_cosine_{m}``, ``{case}_cosine_positive_{m}`` (share > 0). Over all
        pixels: ``pseudo_acc`` (truth is the pseudo label), ``positive_acc`` (truth is in Y),
        ``gradient_norm_fpl``, ``gradient_norm_vanilla``, ``gradient_norm_k_is_n`` (of FPL with K = n), ``num_pixels``.
    """
    dtype = compute_dtype(logits, target_logits)
    logits, target_logits = logits.to(dtype), target_logits.to(dtype)
    valid = valid_pixels(gt, logits.shape[1], ignore_index, valid)
    fuzzy = fuzzy_positive_assignment(target_logits, cum_prob, max_k, k_rule, k_ratio)
    k_is_n = fuzzy_positive_assignment(target_logits, cum_prob, max_k, 'n')
    positives = {'fpl': fuzzy.positive, 'vanilla': one_hot_like(target_logits.argmax(dim=1), logits)}
    cases = pixel_cases(target_logits, fuzzy.positive, gt)

    result = {'num_pixels': valid.sum(), 'k_histogram': k_histogram(fuzzy.k, logits.shape[1], valid),
              'pseudo_acc': masked_mean(cases == 1, valid), 'positive_acc': masked_mean(cases < 3, valid)}
    masks = {name: valid & (cases == number) for number, name in enumerate(CASES, start=1)}
    for case, mask in masks.items():
        result[f'{case}_ratio'] = masked_mean(mask, valid)
        result[f'{case}_k1_ratio'] = masked_mean(fuzzy.k == 1, mask)
    for method, positive in positives.items():
        score, cosine = positive_gradient_score(logits, positive, gt), ideal_cosine(logits, positive, gt)
        result[f'gradient_norm_{method}'] = masked_mean(gradient_norm(logits, positive), valid)
        for case, mask in masks.items():
            result[f'{case}_score_{method}'] = masked_mean(score, mask)
            result[f'{case}_cosine_{method}'] = masked_mean(cosine, mask)
            result[f'{case}_cosine_positive_{method}'] = masked_mean(cosine > 0, mask)
    result['gradient_norm_k_is_n'] = masked_mean(gradient_norm(logits, k_is_n.positive), valid)
    return result
