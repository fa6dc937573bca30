"""FPLLoss: fuzzy positive learning in place of cross entropy with pseudo labels."""

import math

import torch
from torch import Tensor

from mmssl.functional.fpl import K_RULES, WEIGHT_BOUNDS, WEIGHT_MODES, check_pixel_inputs
from mmssl.functional.fpl_fused import fpl_loss
from mmssl.registry import MODELS

from .base_loss import sum_over_ranks
from .pseudo_label_loss import PseudoLabelLoss, valid_means


@MODELS.register_module()
class FPLLoss(PseudoLabelLoss):
    r"""Fuzzy positive learning (FPL): learn the K classes that the teacher holds possible, K chosen per pixel.

    .. math:: L^f_s = \log\Big(1 + \sum_{i \in Y_s} e^{-z_i} \sum_{j \notin Y_s} e^{z_j}\Big)
              \qquad L = \frac{1}{S} \sum_s w_s L^f_s

    Y holds the K most probable classes of the teacher (Alg. 1), w is the adaptive pixel weight (Eq. 10-12) and L^f is
    Eq. 7. The defaults are the paper's; the released code is ``max_k=3, weight_bound='top_k_plus_1',
    balance='ce_value'``. See :mod:`mmssl.functional.fpl` for the equations, one function each.

    ``statistics`` after a call, means over valid pixels: ``mean_k``, ``k1_ratio`` (share of K = 1), ``pixel_weight``
    and ``mask_ratio`` (share of valid pixels); with balancing, ``balance`` (its factor).

    Args:
        cum_prob: T of Alg. 1, in (0, 1). The paper picks from 0.95, 0.9 and 0.85.
        max_k: Largest K, >= 1; None for no cap but C - 1, which always leaves a negative class.
        k_rule: ``'n-1'`` (paper); ``'n'``, its ablation with vanishing gradient; or ``'ratio'``:
            K = max(floor(``k_ratio`` n), 1).
        k_ratio: alpha of ``'ratio'``, in (0, 1].
        weight_mode: ``'concave'`` (paper), ``'linear'``, ``'convex'`` and ``'convex_ael'`` (released code), ``'none'``.
        weight_scale: A of the concave weight, > 0.
        weight_bound: Upper bound of the largest negative probability: ``'positive_mean'`` (paper, Eq. 10) or
            ``'top_k_plus_1'`` (released code).
        balance: ``'ce_value'``: times the detached ratio of mean cross entropy against the teacher's arg-max to mean
            w L^f, so that the value is that of CPS and the direction that of FPL (released code). Both means are over
            the valid pixels of the call in all processes, without ``weight``, so that the gradient does not depend on
            how many processes share a batch; the released code takes each process's own ratio. None: off (paper).
        loss_weight: Factor of the loss.
        reduction: ``'mean'`` over valid pixels, ``'sum'`` or ``'none'``.
        loss_name: Key of the loss in mmseg's log.

    Raises:
        ValueError: An argument is out of its range.
    """

    def __init__(self,
                 cum_prob: float = 0.9,
                 max_k: int | None = None,
                 k_rule: str = 'n-1',
                 k_ratio: float = 0.5,
                 weight_mode: str = 'concave',
                 weight_scale: float = 50.,
                 weight_bound: str = 'positive_mean',
                 balance: str | None = None,
                 loss_weight: float = 1.,
                 reduction: str = 'mean',
                 loss_name: str = 'loss_fpl') -> None:
        super().__init__(loss_weight=loss_weight, reduction=reduction, loss_name=loss_name)
        self.check_number('cum_prob', cum_prob, lambda total: 0 < total < 1, 'in (0, 1)')
        if max_k is not None:
            self.check_number('max_k', max_k, lambda cap: cap >= 1, 'an integer >= 1, or None for no cap', kind=int)
        self.check_choice('k_rule', k_rule, K_RULES)
        self.check_number('k_ratio', k_ratio, lambda alpha: 0 < alpha <= 1, 'in (0, 1]')
        self.check_choice('weight_mode', weight_mode, WEIGHT_MODES)
        self.check_number('weight_scale', weight_scale, lambda a: 0 < a < math.inf, '> 0 and finite')
        self.check_choice('weight_bound', weight_bound, WEIGHT_BOUNDS)
        self.check_choice('balance', balance, (None, 'ce_value'))
        self.options = dict(cum_prob=cum_prob, max_k=max_k, k_rule=k_rule, k_ratio=k_ratio, weight_mode=weight_mode,
                            weight_scale=weight_scale, weight_bound=weight_bound, balance=balance)

    def extra_repr(self) -> str:
        """Show the hyper-parameters."""
        return ', '.join(f'{key}={value!r}' for key, value in self.options.items())

    def forward(self,
                logits: Tensor,
                target_logits: Tensor,
                weight: Tensor | None = None,
                valid: Tensor | None = None,
                avg_factor: float | Tensor | None = None,
                reduction_override: str | None = None) -> Tensor:
        """Loss of the student against the teacher, as in :meth:`PseudoLabelLoss.forward`."""
        check_pixel_inputs(self.config_name, logits, target_logits, weight, valid)
        reduction = self.choose_reduction(reduction_override, avg_factor)
        result = fpl_loss(logits, target_logits, weight=weight, valid=valid, reduction=reduction,
                          avg_factor=avg_factor, loss_scale=self.loss_weight, reduce=sum_over_ranks, **self.options)
        with torch.no_grad():
            counted = torch.ones_like(result.weight) if valid is None else valid.to(result.weight.dtype)
            self.statistics = valid_means(
                {'mean_k': result.k, 'k1_ratio': result.k == 1, 'pixel_weight': result.weight}, valid)
            self.statistics['mask_ratio'] = valid_means({'mask_ratio': counted}, None)['mask_ratio']
            if self.options['balance'] is not None:
                self.statistics['balance'] = result.balance
        return result.loss
