"""OnlineLabelSmoothLoss: cross entropy with soft targets that the model's own predictions make, epoch by epoch."""

from typing import Any

import torch
from torch import Tensor

from mmssl.functional.fpl import compute_dtype
from mmssl.functional.online_label_smoothing import class_sums, first_targets, next_targets, smoothed_cross_entropy
from mmssl.registry import MODELS

from .base_loss import sum_over_ranks
from .label_loss import LabelLoss


@MODELS.register_module()
class OnlineLabelSmoothLoss(LabelLoss):
    r"""Online label smoothing (OLS, Zhang et al. 2021), in the place of cross entropy.

    .. math:: L = \alpha \, \mathrm{CE}(y) + (1 - \alpha) \, \mathrm{CE}(S_y)

    Row y of S is the mean softmax of the correctly classified samples of class y in the epoch before; see
    :mod:`mmssl.functional.online_label_smoothing`. S and the sums of the running epoch are buffers: they are saved, and
    equal on all processes, whose sums are added up at every step. They hold 3 C^2 numbers.

    ``mmssl.OnlineLabelSmoothHook`` makes the new S at the end of an epoch, or every so many iterations; without it the
    first training step is an error, unless ``updates='manual'``. The fine-grained code's variant is ``freeze_at=0.88,
    loss_weight=2`` (both terms have weight 1).

    Args:
        num_classes: C, >= 2.
        alpha: Weight of the hard label, in [0, 1].
        first_epoch: S of the first epoch: ``'uniform'`` (paper and fine-grained code) or ``'none'``, without the soft
            term (CIFAR code).
        freeze_at: Rows of S whose maximum has reached this are kept, in (0, 1]; None: none are.
        updates: ``'hook'``, or ``'manual'`` if your own loop calls :meth:`update_targets`.
        loss_weight: Factor of the loss, finite.
        reduction: ``'mean'`` over valid pixels, ``'sum'`` or ``'none'``.
        loss_name: Key of the loss in mmseg's log.

    Raises:
        ValueError: An argument is out of its range.
    """

    def __init__(self,
                 num_classes: int,
                 alpha: float = 0.5,
                 first_epoch: str = 'uniform',
                 freeze_at: float | None = None,
                 updates: str = 'hook',
                 loss_weight: float = 1.,
                 reduction: str = 'mean',
                 loss_name: str = 'loss_ols') -> None:
        super().__init__(loss_weight, reduction, loss_name)
        self.check_number('num_classes', num_classes, lambda number: number >= 2, 'an integer >= 2', kind=int)
        self.check_number('alpha', alpha, lambda share: 0 <= share <= 1, 'in [0, 1]')
        self.check_choice('first_epoch', first_epoch, ('uniform', 'none'))
        if freeze_at is not None:
            self.check_number('freeze_at', freeze_at, lambda largest: 0 < largest <= 1, 'in (0, 1], or None')
        self.check_choice('updates', updates, ('hook', 'manual'))
        self.num_classes, self.alpha, self.freeze_at = num_classes, alpha, freeze_at
        self.followed = updates == 'manual'
        self.register_buffer('targets', first_targets(num_classes, first_epoch))
        self.register_buffer('sums', torch.zeros(num_classes, num_classes + 1, dtype=torch.float64))

    def extra_repr(self) -> str:
        """Show the hyper-parameters."""
        return f'num_classes={self.num_classes}, alpha={self.alpha}, freeze_at={self.freeze_at}'

    def forward(self,
                logits: Tensor,
                label: Tensor,
                weight: Tensor | None = None,
                ignore_index: int | None = None,
                avg_factor: float | Tensor | None = None,
                reduction_override: str | None = None,
                **kwargs: Any) -> Tensor:
        """Loss of a batch; in training, also adds its predictions to the sums of the epoch.

        Args:
            logits: Float, (N, C, *).
            label: Class indices, (N, *).
            weight: Factor of each pixel, (N, *); not in the sums.
            ignore_index: Label of pixels that are in no sum and no mean.
            avg_factor: Denominator of ``'mean'`` in place of the number of valid pixels.
            reduction_override: Replaces ``reduction`` in this call.
            kwargs: Not used.

        Returns:
            Scalar, or (N, *) for ``'none'``. With no valid pixel exactly 0, attached to the graph.

        Raises:
            ValueError: If something does not fit, or with soft targets (of mixup or cutmix).
            RuntimeError: In training without the hook.
        """
        if logits.dim() < 2 or logits.shape[1] != self.num_classes:
            raise ValueError(f'{self.config_name}: `num_classes` is {self.num_classes}, but the logits have shape '
                             f'{tuple(logits.shape)}')
        valid = self.valid_pixels(logits, label, weight, ignore_index)
        if label.is_floating_point() or label.shape == logits.shape:
            raise ValueError(f'{self.config_name} learns a soft target for each class, so it needs class indices; '
                             'remove mixup, cutmix and other augmentations that mix labels')
        reduction = self.choose_reduction(reduction_override, avg_factor)
        with torch.autocast(device_type=logits.device.type, enabled=False):
            logits = logits.to(compute_dtype(logits))
            if valid is not None:
                # Before, not after: NaN in the padding would come back as the gradient 0 * NaN.
                logits, label = logits.masked_fill(~valid.unsqueeze(1), 0), label.masked_fill(~valid, 0)
            loss = smoothed_cross_entropy(logits, label, self.targets, self.alpha)
            if self.training and torch.is_grad_enabled():
                self.watch(logits, label, valid)
            return self.reduce_pixels(loss, logits, weight, valid, reduction, avg_factor)

    @torch.no_grad()
    def watch(self, logits: Tensor, label: Tensor, valid: Tensor | None) -> None:
        """Add a batch to the sums of the epoch.

        Raises:
            RuntimeError: Without the hook, with which S would never change.
        """
        if not self.followed:
            raise RuntimeError(f"{self.config_name} needs custom_hooks=[dict(type='mmssl.OnlineLabelSmoothHook')], "
                               'which makes its soft targets after each epoch (with `interval`, in iterations); or '
                               "updates='manual', if your own loop calls `update_targets`")
        self.sums += sum_over_ranks(class_sums(logits, label, valid))

    @torch.no_grad()
    def update_targets(self) -> None:
        """End of an epoch: the means become S, and the sums start again."""
        self.targets.copy_(next_targets(self.sums, self.targets, self.freeze_at))
        self.sums.zero_()
