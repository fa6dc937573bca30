"""ADRLoss: adaptive discriminative regularization, beside cross entropy in any head."""

import logging
from typing import Any

import torch
from mmengine.dist import get_world_size
from mmengine.logging import print_log
from torch import Tensor

from mmssl.functional.adr import (
    DEFAULT_TOPK,
    MAX_LOG_PENALTY,
    NORMS,
    PHIS,
    UNCERTAINTIES,
    log_peak,
    penalty_along_confidence,
    turning_point,
)
from mmssl.functional.adr_fused import adr_loss
from mmssl.registry import MODELS

from .base_loss import sum_over_ranks
from .label_loss import LabelLoss


@MODELS.register_module()
class ADRLoss(LabelLoss):
    r"""Adaptive discriminative regularization (ADR): a penalty on uncertain predictions, without labels.

    .. math:: F_i = (2 \pi \varphi)^{-\tau/2} \exp\Big(-\frac{T_i}{2 \varphi}\Big) \qquad
              L = \gamma \frac{1}{B} \sum_i F_i

    T holds the :math:`\tau` most probable classes, :math:`\varphi` is the normalized entropy (Eq. 4); see
    :mod:`mmssl.functional.adr`. It is one entry of mmseg's ``loss_decode``, and of ``mmssl.CombinedLoss`` in heads that
    take one loss. Computed in float32, also under AMP. With several processes, phi and the mean are those of
    the batches of all of them, so that the gradient does not depend on how many share a batch.

    With ``topk`` > 1 the penalty is largest at some confidence and *falls* below it: there it pushes towards
    uncertainty. The first call says where, once; ``tools/analysis/plot_adr.py`` draws it.

    ``statistics`` after a call: ``phi``, its mean.

    Args:
        topk: tau, the assumed number of similar classes, in [1, C]; None for C / 10, rounded, in [1, 10].
        uncertainty: ``'entropy'`` (paper) or ``'variance'`` (its alternative, one minus the normalized variance).
        phi: ``'batch'``: mean uncertainty of the batch (Eq. 4); ``'sample'``: that of each sample (Eq. 7, 8).
        norm: T is the squared l2 norm (2, paper) or the l1 norm (1) of the ``topk`` largest probabilities.
        detach_phi: Whether phi is a constant for the gradient.
        max_log_penalty: F is cut at exp of this, with gradient 0 above; at most 50. The peak of F grows without bound
            with ``topk``, and with ``phi='batch'`` also where one sample is unsure among sure ones.
        margin_logits: Of a head with margins (``mmssl.ArcFaceClsHead``, ``mmssl.CosFaceClsHead``): True for the logits
            with margin, those of cross entropy; False for those without. Other heads have one kind.
        loss_weight: gamma, finite. The paper finds 0.01 to 0.1 good on CIFAR-10.
        reduction: ``'mean'`` over valid pixels, ``'sum'`` or ``'none'``.
        loss_name: Key of the loss in mmseg's log.

    Raises:
        ValueError: An argument is out of its range.
    """

    def __init__(self,
                 topk: int | None = DEFAULT_TOPK,
                 uncertainty: str = 'entropy',
                 phi: str = 'batch',
                 norm: int = 2,
                 detach_phi: bool = False,
                 max_log_penalty: float = MAX_LOG_PENALTY,
                 margin_logits: bool = True,
                 loss_weight: float = 0.05,
                 reduction: str = 'mean',
                 loss_name: str = 'loss_adr') -> None:
        super().__init__(loss_weight, reduction, loss_name)
        if topk is not None:
            self.check_number('topk', topk, lambda tau: tau >= 1, 'an integer >= 1, or None for C / 10', kind=int)
        self.check_choice('uncertainty', uncertainty, UNCERTAINTIES)
        self.check_choice('phi', phi, PHIS)
        self.check_number('norm', norm, lambda number: number in NORMS, '1 or 2', kind=int)
        self.check_number('max_log_penalty', max_log_penalty, lambda cap: -MAX_LOG_PENALTY <= cap <= MAX_LOG_PENALTY,
                          f'in [-{MAX_LOG_PENALTY:g}, {MAX_LOG_PENALTY:g}]')
        for key, value in (('detach_phi', detach_phi), ('margin_logits', margin_logits)):
            self.check_flag(key, value)
        self.topk, self.margin_logits, self.described = topk, margin_logits, False
        self.options = dict(uncertainty=uncertainty, phi=phi, norm=norm, detach_phi=detach_phi,
                            max_log_penalty=float(max_log_penalty))

    def extra_repr(self) -> str:
        """Show the hyper-parameters."""
        return ', '.join(f'{key}={value!r}' for key, value in dict(topk=self.topk, **self.options).items())

    def choose_topk(self, num_classes: int) -> int:
        """Tau for a number of classes.

        Raises:
            ValueError: If there are fewer classes.
        """
        if self.topk is None:
            return min(max(round(num_classes / 10), 1), 10)
        if self.topk > num_classes:
            raise ValueError(f'{self.config_name}: `topk` must be at most the number of classes, {num_classes}, got '
                             f'{self.topk}')
        return self.topk

    def forward(self,
                logits: Tensor,
                label: Tensor | None = None,
                weight: Tensor | None = None,
                ignore_index: int | None = None,
                avg_factor: float | Tensor | None = None,
                reduction_override: str | None = None,
                margin_free_logits: Tensor | None = None,
                **kwargs: Any) -> Tensor:
        """Penalty of a batch.

        Args:
            logits: Float, (N, C, *), C >= 2.
            label: Only says which pixels count: class indices, (N, *), or soft targets, (N, C, *).
            weight: Factor of each pixel, (N, *); not in phi.
            ignore_index: Label of pixels that are in no sum and no mean.
            avg_factor: Denominator of ``'mean'`` in place of the number of valid pixels.
            reduction_override: Replaces ``reduction`` in this call.
            margin_free_logits: Logits without margin, (N, C), from a head that has both; see ``margin_logits``.
            kwargs: Not used: what a head passes to its other losses.

        Returns:
            Scalar, or (N, *) for ``'none'``. With no valid pixel exactly 0, attached to the graph.

        Raises:
            ValueError: If something does not fit.
        """
        logits = self.choose_logits(logits, margin_free_logits)
        valid = self.valid_pixels(logits, label, weight, ignore_index)
        reduction = self.choose_reduction(reduction_override, avg_factor)
        topk = self.choose_topk(logits.shape[1])
        if not self.described:
            self.described = True
            self.describe(topk, logits.shape[1])
        result = adr_loss(logits, topk=topk, weight=weight, valid=valid, reduction=reduction, avg_factor=avg_factor,
                          loss_scale=self.loss_weight, reduce=sum_over_ranks if get_world_size() > 1 else None,
                          **self.options)
        self.statistics = {'phi': result.phi if result.phi.dim() == 0 else result.phi.mean()}
        return result.loss

    def describe(self, topk: int, num_classes: int) -> None:
        """Log where the penalty turns around or explodes, if it does."""
        lines, level = describe_penalty(topk, num_classes, self.options['uncertainty'], self.options['phi'],
                                        self.options['norm'], self.options['max_log_penalty'])
        if lines:
            print_log(f'{self.config_name}: ' + ' '.join(lines), logger='current', level=level)


def describe_penalty(topk: int, num_classes: int, uncertainty: str, phi: str, norm: int,
                     max_log_penalty: float) -> tuple[list[str], int]:
    """What a user should know of the penalty for these options.

    Returns:
        Sentences, none if the penalty falls monotonically with the confidence and never exceeds 1; and a log level.
    """
    lines, level = [], logging.INFO
    confidences = torch.linspace(1 / num_classes, 1 - 1e-4, 2000, dtype=torch.float64)
    values = penalty_along_confidence(confidences, num_classes, topk, uncertainty, None, norm)
    best = int(values.argmax())
    if best > 0 and values[best] > values[0] * (1 + 1e-6):
        lines.append(
            f'with topk={topk} and {num_classes} classes the penalty is largest, {values[best]:.3g}, where one class '
            f'has probability {confidences[best]:.2f} and the others share the rest (at phi = T / topk, at most '
            f'{turning_point(topk):.3g}); with less confidence it falls, to {values[0]:.3g} for equal probabilities, '
            'and pushes towards uncertainty.')
    peak = log_peak(topk)
    if peak > 0:
        level = logging.WARNING
        lines.append(
            f'From topk=18 on the peak of the penalty exceeds 1 and grows without bound: for topk={topk} it is '
            f'exp({peak:.3g}) at phi = {turning_point(topk):.3g}, cut at exp(max_log_penalty={max_log_penalty:g}); a '
            'smaller topk or max_log_penalty bounds it.')
    if phi == 'batch':
        # A sample with equal probabilities, in the batch whose phi is worst for it.
        confidence = topk / num_classes**norm
        peak = log_peak(topk, confidence)
        if peak > 0:
            lines.append(
                f"With phi='batch', a sample with equal probabilities among sure ones has up to exp({peak:.3g}), at "
                f'phi = {turning_point(topk, confidence):.3g}, cut at exp(max_log_penalty={max_log_penalty:g}); '
                "phi='sample' or max_log_penalty=0 bounds it.")
    return lines, level
