"""OHEMCrossEntropyLoss: supervised cross entropy over the hard pixels alone, as CPS trains on Cityscapes."""

from typing import Any

from torch import Tensor, nn

from mmssl.functional.ohem import ohem_cross_entropy
from mmssl.registry import MODELS


@MODELS.register_module()
class OHEMCrossEntropyLoss(nn.Module):
    """Mean cross entropy over the hard pixels of a batch, for the ``loss_decode`` of any mmseg head.

    Kept are the pixels whose true class has a probability of at most ``thresh``, and no fewer than ``min_kept``. With
    mmseg's ``OHEMPixelSampler`` the mean would run over all pixels, so that the loss shrinks with the number of kept
    ones; its ``OhemCrossEntropy`` does not take the arguments that its heads pass.

    Args:
        thresh: In [0, 1].
        min_kept: Pixels of the batch of one process, an integer >= 1.
        loss_weight: Factor of the loss.
        loss_name: Key of the loss in mmseg's log.

    Raises:
        ValueError: If an argument is out of range.
    """

    def __init__(self,
                 thresh: float = 0.7,
                 min_kept: int = 100000,
                 loss_weight: float = 1.,
                 loss_name: str = 'loss_ohem') -> None:
        super().__init__()
        if isinstance(thresh, bool) or not isinstance(thresh, (int, float)) or not 0 <= thresh <= 1:
            raise ValueError(f'mmssl.OHEMCrossEntropyLoss: `thresh` must be in [0, 1], got {thresh!r}')
        if isinstance(min_kept, bool) or not isinstance(min_kept, int) or min_kept < 1:
            raise ValueError(f'mmssl.OHEMCrossEntropyLoss: `min_kept` must be an integer >= 1, got {min_kept!r}')
        self.thresh = thresh
        self.min_kept = min_kept
        self.loss_weight = loss_weight
        self.loss_name = loss_name

    def forward(self,
                cls_score: Tensor,
                label: Tensor,
                weight: Tensor | None = None,
                ignore_index: int = 255,
                **kwargs: Any) -> Tensor:
        """Compute the loss.

        Args:
            cls_score: (N, C, H, W).
            label: int64, (N, H, W).
            weight: Not taken: a pixel sampler's choice would be made twice.
            ignore_index: The label of pixels that never count.
            kwargs: Not used.

        Raises:
            ValueError: With ``weight``.
        """
        if weight is not None:
            raise ValueError('mmssl.OHEMCrossEntropyLoss chooses its pixels: remove the `sampler` of the head')
        return self.loss_weight * ohem_cross_entropy(cls_score, label, self.thresh, self.min_kept, ignore_index)
