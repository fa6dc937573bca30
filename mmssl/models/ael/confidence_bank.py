"""The confidence bank: how sure the student is of each class, on labeled pixels, as a moving average."""

import torch
from mmengine.dist import all_reduce, get_world_size
from torch import Tensor, nn

from mmssl.functional.ael import class_confidence_sums, update_confidence
from mmssl.models.semi_base import check_choice
from mmssl.utils.values import check_number

KEY = 'semi_train_cfg.confidence_bank'


class ConfidenceBank(nn.Module):
    """``Conf``: mean probability that the student gives to the true class, for each class, averaged over iterations.

    The bank is a buffer: it is in the checkpoint and, with ``sync``, equal on all ranks.

    Args:
        num_classes: C.
        momentum: In (0, 1]; ``new = (1 - momentum) * old + momentum * current``. The authors' decay 0.999 is 0.001.
        warmup: Whether the first observations of a class are averaged plainly, with momentum ``1 / n`` for the n-th
            one until that falls below ``momentum``. Without it the bank keeps its start for about ``1 / momentum``
            iterations.
        absent: What a class without a labeled pixel in the iteration does: ``'skip'``, its confidence stays; or
            ``'zero'``, as in the released code: it is averaged with 0, so that rare classes look worse than they are.
        sync: Whether the iteration's confidence is that of all processes together. ``False``, as in the released code:
            each process has a bank of its own, of which rank 0's is in the checkpoint, so that a resumed run on several
            processes is not exact.
        init: ``'zeros'``: all classes alike, nothing learned; or ``'random'``, uniform in [0, 1], as in the released
            code.

    Raises:
        ValueError: If an argument is outside its range.
    """

    def __init__(
        self,
        num_classes: int,
        momentum: float = 0.001,
        warmup: bool = True,
        absent: str = 'skip',
        sync: bool = True,
        init: str = 'zeros',
    ) -> None:
        super().__init__()
        check_number(momentum, f'model.{KEY}.momentum', lambda share: 0 < share <= 1, 'in (0, 1]')
        check_choice(warmup, (True, False), f'{KEY}.warmup')
        check_choice(absent, ('skip', 'zero'), f'{KEY}.absent')
        check_choice(sync, (True, False), f'{KEY}.sync')
        check_choice(init, ('zeros', 'random'), f'{KEY}.init')
        self.momentum, self.warmup, self.absent, self.sync = momentum, warmup, absent, sync
        start = torch.zeros(num_classes) if init == 'zeros' else torch.rand(num_classes)
        self.register_buffer('confidence', start)
        # Iterations that each class was updated in.
        self.register_buffer('updates', torch.zeros(num_classes, dtype=torch.long))

    @torch.no_grad()
    def update(self, logits: Tensor, label: Tensor, ignore_index: int = 255) -> None:
        """Take in one labeled batch.

        Args:
            logits: Student logits, (N, C, H, W).
            label: int64, (N, H, W).
            ignore_index: The label of pixels that do not count.
        """
        totals = torch.stack(class_confidence_sums(logits, label, ignore_index))
        if self.sync and get_world_size() > 1:
            all_reduce(totals, 'sum')
        sums, counts = totals
        updated = torch.ones_like(counts, dtype=torch.bool) if self.absent == 'zero' else counts > 0
        self.updates += updated
        momentum = torch.full_like(self.confidence, self.momentum)
        if self.warmup:
            momentum = torch.maximum(momentum, 1 / self.updates.clamp(min=1).to(momentum.dtype))
        confidence = (sums / counts.clamp(min=1)).to(self.confidence.dtype)
        self.confidence.copy_(update_confidence(self.confidence, confidence, momentum * updated))

    def statistics(self) -> dict[str, Tensor]:
        """Smallest, mean and largest confidence, for the log."""
        return dict(
            confidence_min=self.confidence.min(),
            confidence_mean=self.confidence.mean(),
            confidence_max=self.confidence.max(),
        )
