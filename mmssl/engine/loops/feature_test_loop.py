"""TestLoop over features instead of predictions."""

from typing import Any

from mmengine.runner import Runner, TestLoop
from torch.utils.data import DataLoader

from mmssl.registry import LOOPS

from .features import FeatureIteration


@LOOPS.register_module()
class FeatureTestLoop(FeatureIteration, TestLoop):
    """TestLoop whose metrics see the features that the model extracts, for ``mmssl.FaceVerification``.

    The model is any of mmpretrain with ``extract_feat``. Data samples get the field ``feat``, (D,).

    Args:
        runner: The runner.
        dataloader: As in TestLoop.
        evaluator: As in TestLoop.
        fp16: As in TestLoop.
        flip: Whether to add the features of the mirrored image. Default: False.
        stage: Which features of a classifier: ``'pre_logits'`` (input of its last layer), ``'neck'`` or ``'backbone'``.
            Default: ``'pre_logits'``.

    Raises:
        ValueError: Another ``stage``; a model without features, or whose features are no vectors.
    """

    hooks = ('before_test_iter', 'after_test_iter')

    def __init__(self,
                 runner: Runner,
                 dataloader: DataLoader | dict,
                 evaluator: Any,
                 fp16: bool = False,
                 flip: bool = False,
                 stage: str = 'pre_logits') -> None:
        super().__init__(runner, dataloader, evaluator, fp16)
        self.set_options('test_cfg', flip, stage)
