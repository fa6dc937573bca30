"""Coverage, accuracy and class shares of pseudo labels, from counts that add up over batches and processes."""

import torch
from torch import Tensor

# Rows of the counts.
LABELED, SELECTED, RIGHT, SELECTED_RIGHT, KNOWN, SELECTED_KNOWN = range(6)


def pseudo_label_counts(labels: Tensor, selected: Tensor, truth: Tensor | None, num_classes: int) -> Tensor:
    """What there is of each pseudo class.

    Args:
        labels: Pseudo labels, int64, (N,).
        selected: Whether each one counts, bool, (N,).
        truth: True labels, int64, (N,); what is no class is unknown. None: all are unknown.
        num_classes: C.

    Returns:
        float64, (6, C): for each class, pseudo labels, selected ones, right ones, right selected ones, ones with known
        truth, and selected ones with known truth.
    """
    hits = labels[:, None] == torch.arange(num_classes, device=labels.device)
    nothing = torch.zeros_like(selected)
    known = nothing if truth is None else (truth >= 0) & (truth < num_classes)
    right = nothing if truth is None else known & (truth == labels)
    rows = (~nothing, selected, right, right & selected, known, known & selected)
    return torch.stack([(hits & row[:, None]).sum(dim=0) for row in rows]).double()


def pseudo_label_scores(counts: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Scores of all pseudo labels, and of each class.

    Args:
        counts: Of :func:`pseudo_label_counts`, or a sum of such, (6, C).

    Returns:
        Scalars ``coverage`` (share that is selected), ``accuracy`` and ``selected_accuracy``; and by class, (C,),
        ``share`` (of the pseudo labels), ``selected_share`` (of the selected ones) and ``class_accuracy`` (precision of
        the pseudo class). A share of nothing is NaN.
    """
    total = counts.sum(dim=1)
    scores = dict(
        coverage=total[SELECTED] / total[LABELED],
        accuracy=total[RIGHT] / total[KNOWN],
        selected_accuracy=total[SELECTED_RIGHT] / total[SELECTED_KNOWN],
    )
    shares = dict(
        share=counts[LABELED] / total[LABELED],
        selected_share=counts[SELECTED] / total[SELECTED],
        class_accuracy=counts[RIGHT] / counts[KNOWN],
    )
    return scores, shares
