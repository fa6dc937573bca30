"""ArcFaceClsHead: mmpretrain's, for losses that are on the logits without margin."""

from typing import Any

from mmpretrain.models.heads import ArcFaceClsHead as StockArcFaceClsHead
from torch import Tensor

from mmssl.registry import MODELS


@MODELS.register_module()
class ArcFaceClsHead(StockArcFaceClsHead):
    r"""mmpretrain's ``ArcFaceClsHead``, which also hands its loss the logits without margin, if that asks for them.

    Cross entropy is on :math:`s \cos(\theta_y + m)` for the true class and :math:`s \cos \theta_j` for the others;
    ``mmssl.ADRLoss(margin_logits=False)`` in its ``mmssl.CombinedLoss`` is on :math:`s \cos \theta` for all of them.
    Arguments and checkpoints are those of mmpretrain's head.
    """

    def loss(self, feats: tuple[Tensor], data_samples: list[Any], **kwargs: Any) -> dict[str, Tensor]:
        """Losses of a batch, as in mmpretrain's head."""
        if not getattr(self.loss_module, 'margin_logits', True):
            kwargs['margin_free_logits'] = self(feats)
        return super().loss(feats, data_samples, **kwargs)
