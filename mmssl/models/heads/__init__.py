"""Classification heads with margins, which can also give their logits without margin."""

from .arcface_cls_head import ArcFaceClsHead
from .cosface_cls_head import CosFaceClsHead

__all__ = ['ArcFaceClsHead', 'CosFaceClsHead']
