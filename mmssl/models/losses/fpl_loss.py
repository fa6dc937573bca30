"""The registered form of fuzzy positive learning."""

from typing import Any

from torch import Tensor

from mmssl.functional.fpl import K_RULES, WEIGHT_BOUNDS, WEIGHT_MODES, check_pixel_inputs
from mmssl.functional.fpl_fused import FPLOptions, fpl_loss
from mmssl.registry import MODELS

from .pixel_loss import PixelLoss, valid_mean


@MODELS.register_module()
class FPLLoss(PixelLoss):
    r"""FPL (Qiao et al., CVPR 2023): several fuzzy positive classes per pixel instead of one pseudo label.

    .. math:: L = \frac{1}{S} \sum_s w_s \log\Big(1 + \sum_{i \in Y_s} e^{-z_{si}} \sum_{j \notin Y_s} e^{z_{sj}}\Big)

    (Eq. 7), :math:`Y_s` the K most probable classes of the teacher (Alg. 1) and :math:`w_s` the adaptive weight
    (Eq. 10-12). The defaults are the paper's text; the released code, which made the published numbers, is
    ``max_k=3, weight_bound='top_k_plus_1', balance='ce_value'``.

    Args:
        cum_prob: T of Alg. 1, in (0, 1]; the paper picks from 0.95, 0.9 and 0.85. Default 0.9.
        max_k: Largest K, >= 1. Default ``None``: no cap but C - 1, which always leaves a negative class.
        k_rule: With n the number of classes that reach T together, ``'n-1'``: K = max(n - 1, 1) (paper, default);
            ``'n'``: K = n (the paper's ablation, with vanishing gradient); ``'ratio'``: K = max(floor(k_ratio n), 1).
        k_ratio: alpha of ``'ratio'``, in (0, 1]. Default 0.5.
        weight_mode: ``'concave'`` (paper, default), ``'linear'``, ``'convex'``, ``'convex_ael'`` or ``'none'``.
        weight_scale: A of the concave weight, > 0. Default 50.
        weight_bound: M, the largest possible probability outside Y: ``'positive_mean'`` (paper, default) or
            ``'top_k_plus_1'``.
        balance: ``'ce_value'`` multiplies by the detached ratio of the mean cross entropy against the teacher's arg-max
            to the mean of :math:`w L^f`, so the value is that of cross entropy and only the direction is FPL's. The
            ratio is that of all ranks together (the released code takes each process's own). Default ``None``.
        loss_weight: Factor of the result.
        reduction: See :class:`PixelLoss`.
        loss_name: Key in the log.

    ``statistics``: ``mean_k``; ``k1_ratio``, the share of pixels with K = 1; ``pixel_weight``, the mean adaptive weight;
    ``mask_ratio``, the share of pixels with a weight above 0; ``balance``, the ratio, where it is on.

    Raises:
        ValueError: If an argument is outside its range.
    """

    def __init__(
        self,
        cum_prob: float = 0.9,
        max_k: int | None = None,
        k_rule: str = 'n-1',
        k_ratio: float = 0.5,
        weight_mode: str = 'concave',
        weight_scale: float = 50.0,
        weight_bound: str = 'positive_mean',
        balance: str | None = None,
        loss_weight: float = 1.0,
        reduction: str = 'mean',
        loss_name: str = 'loss_fpl',
    ) -> None:
        super().__init__(loss_weight, reduction, loss_name)
        self.check_range('cum_prob', cum_prob, 0, 1, low_open=True)
        self.check_range('k_ratio', k_ratio, 0, 1, low_open=True)
        self.check_range('weight_scale', weight_scale, 0, 1e6, low_open=True)
        if max_k is not None and (isinstance(max_k, bool) or not isinstance(max_k, int) or max_k < 1):
            raise ValueError(f'{self.title}: `max_k` must be an integer >= 1 or None, got {max_k!r}')
        for name, value, allowed in (
            ('k_rule', k_rule, K_RULES),
            ('weight_mode', weight_mode, WEIGHT_MODES),
            ('weight_bound', weight_bound, WEIGHT_BOUNDS),
            ('balance', balance, ('ce_value', None)),
        ):
            if value not in allowed:
                raise ValueError(f'{self.title}: `{name}` must be one of {list(allowed)}, got {value!r}')
        self.options = FPLOptions(cum_prob, max_k, k_rule, k_ratio, weight_mode, weight_scale, weight_bound)
        self.balance = balance

    def pixel_loss(self, logits: Tensor, target_logits: Tensor) -> Any:
        """Not used: the fused function computes loss, gradient and statistics together."""
        raise NotImplementedError('FPLLoss reduces inside mmssl.functional.fpl_fused.fpl_loss')

    def forward(
        self,
        logits: Tensor,
        target_logits: Tensor,
        weight: Tensor | None = None,
        valid: Tensor | None = None,
        avg_factor: float | Tensor | None = None,
        reduction_override: str | None = None,
    ) -> Tensor:
        """See :meth:`PixelLoss.forward`."""
        check_pixel_inputs(self.title, logits, target_logits, weight, valid)
        result = fpl_loss(
            logits, target_logits, **self.options._asdict(), balance=self.balance, weight=weight, valid=valid,
            reduction=reduction_override or self.reduction, avg_factor=avg_factor, loss_scale=self.loss_weight,
        )  # fmt: skip
        self.statistics = dict(
            mean_k=valid_mean(result.k, valid),
            k1_ratio=valid_mean(result.k == 1, valid),
            pixel_weight=valid_mean(result.weight, valid),
            mask_ratio=valid_mean(result.weight > 0, valid),
        )
        if self.balance is not None:
            self.statistics['balance'] = result.balance.detach()
        return result.loss
