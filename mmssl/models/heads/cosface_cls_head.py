"""CosFaceClsHead: large margin cosine loss as a head of mmpretrain."""

from collections.abc import Mapping, Sequence
from typing import Any

from mmpretrain.models.losses import convert_to_one_hot
from torch import Tensor

from mmssl.registry import MODELS
from mmssl.utils.values import check_number

from .arcface_cls_head import ArcFaceClsHead


@MODELS.register_module()
class CosFaceClsHead(ArcFaceClsHead):
    r"""CosFace (Wang et al., CVPR 2018): a margin on the cosine of the true class.

    Cross entropy is on :math:`s (\cos \theta_y - m)` for the true class and :math:`s \cos \theta_j` for the others.
    Like mmpretrain's ``ArcFaceClsHead``, from which it takes the rest, it gives :math:`s \cos \theta` when it predicts.

    Args:
        num_classes: C.
        in_channels: Channels of the feature.
        num_subcenters: Centers of each class, of which the nearest counts, >= 1.
        scale: s, > 0.
        margins: m: one number, a number for each class, or the path of a ``.txt`` file with a number in each line.
        loss: Config of the loss; ``mmssl.CombinedLoss`` for several.
        init_cfg: Initialization, as in mmengine.

    Raises:
        ValueError: If ``scale`` or ``margins`` is out of range.
    """

    def __init__(self,
                 num_classes: int,
                 in_channels: int,
                 num_subcenters: int = 1,
                 scale: float = 64.,
                 margins: float | Sequence[float] | str = 0.35,
                 loss: Mapping[str, Any] | None = None,
                 init_cfg: Mapping[str, Any] | None = None) -> None:
        check_number(scale, 'mmssl.CosFaceClsHead: `scale`', lambda s: s > 0, '> 0')
        if isinstance(margins, str) and not margins.endswith('.txt'):
            raise ValueError('mmssl.CosFaceClsHead: `margins` must be numbers or the path of a .txt file, got '
                             f'{margins!r}')
        if not isinstance(margins, str):
            listed = margins if isinstance(margins, Sequence) else [margins]
            if isinstance(margins, Sequence) and len(margins) != num_classes:
                raise ValueError(f'mmssl.CosFaceClsHead: `margins` must be one number or {num_classes} (num_classes), '
                                 f'got {len(margins)}')
            for margin in listed:
                check_number(margin, 'mmssl.CosFaceClsHead: `margins`', lambda m: 0 <= m < 2, 'in [0, 2)')
            margins = [float(margin) for margin in listed] if len(listed) > 1 else float(listed[0])
        loss = dict(type='CrossEntropyLoss', loss_weight=1.0) if loss is None else loss
        super().__init__(num_classes, in_channels, num_subcenters, scale, margins, loss=loss, init_cfg=init_cfg)

    def _get_logit_with_margin(self, pre_logits: Tensor, target: Tensor) -> Tensor:
        """Cosines, less the margin at the true class; the parent multiplies by the scale."""
        return self.norm_product(pre_logits) - convert_to_one_hot(target, self.num_classes) * self.margins
