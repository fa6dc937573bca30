"""ValLoop over features instead of predictions."""

from typing import Any

from mmengine.runner import Runner, ValLoop
from torch.utils.data import DataLoader

from mmssl.registry import LOOPS

from .features import FeatureIteration


@LOOPS.register_module()
class FeatureValLoop(FeatureIteration, ValLoop):
    """ValLoop whose metrics see the features that the model extracts, for ``mmssl.FaceVerification``.

    The model is any of mmpretrain with ``extract_feat``. Data samples get the field ``feat``, (D,).

    Args:
        runner: The runner.
        dataloader: As in ValLoop.
        evaluator: As in ValLoop.
        fp16: As in ValLoop.
        flip: Whether to add the features of the mirrored image. Default: False.
        stage: Which features of a classifier: ``'pre_logits'`` (input of its last layer), ``'neck'`` or ``'backbone'``.
            Default: ``'pre_logits'``.

    Raises:
        ValueError: Another ``stage``; a model without features, or whose features are no vectors.
    """

    hooks = ('before_val_iter', 'after_val_iter')

    def __init__(self,
                 runner: Runner,
                 dataloader: DataLoader | dict,
                 evaluator: Any,
                 fp16: bool = False,
                 flip: bool = False,
                 stage: str = 'pre_logits') -> None:
        super().__init__(runner, dataloader, evaluator, fp16)
        self.set_options('val_cfg', flip, stage)
