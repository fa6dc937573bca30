"""DashThreshold: a threshold on the loss of a pseudo label, which falls with time."""

import torch
from torch import Tensor

from mmssl.functional.thresholds import dash_threshold, distribution_cross_entropy, one_hot_logits, sharpened_logits
from mmssl.registry import MODELS

from .base import Threshold
from .batch import batch_mean


@MODELS.register_module()
class DashThreshold(Threshold):
    r"""Dynamic threshold of Dash (Xu et al., ICML 2021).

    .. math:: w_b = 1[H(t_b, q_b) \le \rho_k], \qquad \rho_k = \max(C \gamma^{-k} \hat\rho,\ \rho_{min})

    k grows by one every ``interval`` iterations. The target t is :math:`\mathrm{softmax}(z / T)` while
    :math:`\rho_k > \rho_{min}` and the one-hot pseudo label afterwards; the model learns the same target
    (``semi_train_cfg.target='soft'``, without another temperature).

    :math:`\hat\rho` is the cross entropy of the labeled images just before the unsupervised loss begins: a moving
    average over the iterations of ``semi_train_cfg.unsup_begin``, with momentum ``warmup_momentum`` once there were
    enough of them. (The paper takes the loss over the labeled set at that moment.)

    Args:
        num_classes: C; the model sets it.
        base: C > 1 of the formula.
        gamma: > 1.
        minimum: :math:`\rho_{min}` > 0.
        interval: Iterations of one step of k, >= 1.
        temperature: T, in (0, 1].
        warmup_momentum: In (0, 1].

    Raises:
        ValueError: If an argument is out of its range.
    """

    NEEDS_WARMUP = True

    def __init__(
        self,
        num_classes: int,
        base: float = 1.0001,
        gamma: float = 1.27,
        minimum: float = 0.05,
        interval: int = 10240,
        temperature: float = 0.5,
        warmup_momentum: float = 0.05,
    ) -> None:
        super().__init__(num_classes)
        self.check_number('base', base, lambda value: 1 < value < 10, 'in (1, 10)')
        self.check_number('gamma', gamma, lambda value: 1 < value < 10, 'in (1, 10)')
        self.check_number('minimum', minimum, lambda value: 0 < value < float('inf'), '> 0 and finite')
        self.check_number('interval', interval, lambda value: value >= 1, 'an integer >= 1', int)
        self.check_number('temperature', temperature, lambda value: 0 < value <= 1, 'in (0, 1]')
        self.check_number('warmup_momentum', warmup_momentum, lambda value: 0 < value <= 1, 'in (0, 1]')
        self.base, self.gamma, self.minimum, self.interval = base, gamma, minimum, interval
        self.temperature, self.warmup_momentum = temperature, warmup_momentum
        # Only for the log.
        self._used: Tensor | None = None
        self.add_state('labeled_loss', torch.zeros(()))
        self.add_state('observed', torch.zeros((), dtype=torch.long))
        self.add_state('steps', torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def observe_labeled(self, losses: Tensor) -> None:
        """Average the losses of labeled images, (N,), before the unsupervised loss begins."""
        dtype = self.labeled_loss.dtype
        momentum = torch.clamp(1 / (self.observed + 1).to(dtype), min=self.warmup_momentum)
        self.labeled_loss.lerp_(batch_mean(losses.to(dtype)), momentum)
        self.observed += 1

    @property
    def loss_threshold(self) -> Tensor:
        r"""The present :math:`\rho_k`, scalar."""
        step = self.steps.div(self.interval, rounding_mode='floor')
        return dash_threshold(self.labeled_loss, step, self.base, self.gamma, self.minimum)

    def target_logits(self, logits: Tensor) -> Tensor:
        """Logits whose softmax is the present target of the pseudo labels.

        Args:
            logits: Of the weak views, (N, C).

        Returns:
            (N, C).
        """
        soft = sharpened_logits(logits, self.temperature)
        return torch.where(self.loss_threshold > self.minimum, soft, one_hot_logits(logits))

    @torch.no_grad()
    def forward(
        self,
        probs: Tensor,
        logits: Tensor | None = None,
        labeled_probs: Tensor | None = None,
        sample_ids: Tensor | None = None,
    ) -> Tensor:
        """Weights in {0, 1}, then one more iteration is counted; see :meth:`Threshold.forward`."""
        # Softmax of the logarithm is the probability again, so that aligned probabilities are judged as aligned.
        logits = probs.clamp_min(torch.finfo(probs.dtype).tiny).log()
        self._used = self.loss_threshold
        weight = distribution_cross_entropy(logits, self.target_logits(logits)) <= self._used
        self.steps += 1
        return weight.float()

    def statistics(self) -> dict[str, Tensor]:
        """The threshold of the last batch; it is one of the loss, not of the confidence."""
        return {} if self._used is None else dict(threshold=self._used)
