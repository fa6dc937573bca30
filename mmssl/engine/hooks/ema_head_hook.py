"""Avg-Clustering of LayerMatch: draws features to an averaged classifier that hardly moves."""

import logging
from typing import Any

from mmengine.hooks import Hook
from mmengine.logging import print_log
from mmengine.optim import OptimWrapperDict
from mmengine.runner import Runner
from torch import nn

from mmssl.models.layerwise import LayerwiseMixin
from mmssl.registry import HOOKS
from mmssl.utils.model import unwrap_model
from mmssl.utils.values import check_number


@HOOKS.register_module()
class EMAHeadHook(Hook):
    r"""Avg-Clustering (LayerMatch, Sec. 4.2.2) for the semi-supervised models of mmssl.

    The final layer gets an averaged copy :math:`\bar\beta`, and the model a further loss, ``unsup_avg_loss``: the
    unsupervised one, with the same pseudo labels, masks, weights and normalization, on the logits of the averaged
    layer. Its gradient reaches the features and :math:`\bar\beta`, never the layer itself. In the first and then in
    every N-th step with such a loss, :math:`\bar\beta` starts anew from the layer; after each optimizer step

    .. math:: \bar\beta \leftarrow m \bar\beta + (1 - m)(\bar\beta - \alpha \nabla_{\bar\beta} L_{ac})
              = \bar\beta - (1 - m)\,\alpha\,\nabla_{\bar\beta} L_{ac},

    with the gradient of the unweighted loss, averaged over processes and over the batches of an optimizer step. With
    the published constants a step is 5e-7 times the gradient: in effect :math:`\bar\beta` is a snapshot of the layer
    that is taken every N steps.

    :math:`\bar\beta` and its counter are buffers of the model, ``average_head.*``: in the checkpoint, in no optimizer,
    not in an exported student. The model is evaluated with its own layer. See :class:`AverageHead` for what it costs
    and for its precision. In a training loop without this hook, call ``model.set_average_head(layer)`` before weights
    are loaded and ``model.update_average_head()`` after each optimizer step.

    Args:
        layer: The final layer, a dotted path with ``fnmatch`` patterns: ``'head.fc'`` or ``'decode_head.conv_seg'``. It
            is looked for in each sub-model that is trained (``student.head.fc``), and must be one there.
        momentum: :math:`1 - m`, in [0, 1], as in mmengine: the published m of 0.999 is 0.001, the default.
        reset_interval: N >= 1. Default: 2048. 1 makes the average equal to the layer.
        lr: :math:`\alpha` >= 0. Default: 5e-4.
        loss_weight: :math:`w_{ac}` >= 0, weight of the loss; times the share of ``unsup_weight`` that a ramp has
            reached. Default: 1.
        lookahead: Whether iteration t moves :math:`\bar\beta` by the gradient of its own batch before it computes the
            loss, with a second pass through layer and loss. Default: ``False``, the gradient moves it for the next
            iteration, as the paper's indices read.

    Raises:
        ValueError: If an argument is out of its range; before training, if the model is none of mmssl's, the layer is
            not found, or ``lookahead`` meets gradient accumulation; in the first iteration, if the layer does not make
            the logits.
    """

    # The averaged layer must be there before EMAHook copies the model, and has moved before it does so again.
    priority = 'VERY_HIGH'

    def __init__(
        self,
        layer: str,
        momentum: float = 0.001,
        reset_interval: int = 2048,
        lr: float = 5e-4,
        loss_weight: float = 1.0,
        lookahead: bool = False,
    ) -> None:
        self.key = f'custom_hooks: mmssl.{type(self).__name__}'
        if not isinstance(layer, str) or not layer:
            raise ValueError(f"{self.key}.layer must be the name of a layer, such as 'head.fc', got {layer!r}")
        in_unit = 'in [0, 1], the weight of the new state (a decay of 0.999 is 0.001)'
        check_number(momentum, f'{self.key}.momentum', lambda number: 0 <= number <= 1, in_unit)
        check_number(reset_interval, f'{self.key}.reset_interval', lambda n: n >= 1, 'an integer >= 1', int)
        for name, value in (('lr', lr), ('loss_weight', loss_weight)):
            check_number(value, f'{self.key}.{name}', lambda number: 0 <= number < float('inf'), 'a finite number >= 0')
        if not isinstance(lookahead, bool):
            raise ValueError(f'{self.key}.lookahead must be True or False, got {lookahead!r}')
        if 0.5 < momentum < 1:
            print_log(
                f'{self.key}.momentum is {momentum}: a decay of {momentum} is momentum={1 - momentum:.3g}',
                logger='current',
                level=logging.WARNING,
            )
        self.layer = layer
        self.options = dict(
            momentum=float(momentum), reset_interval=reset_interval, lr=float(lr), loss_weight=float(loss_weight),
            lookahead=lookahead,
        )  # fmt: skip

    def before_run(self, runner: Runner) -> None:
        """Attach the averaged layer, before checkpoints are loaded."""
        if sum(isinstance(hook, EMAHeadHook) for hook in runner.hooks) > 1:
            raise ValueError(f'{self.key} is there twice, but a model has one averaged layer; remove one')
        self.add_weights(unwrap_model(runner.model))

    def add_weights(self, model: nn.Module) -> None:
        """Give the model its averaged layer, unless it has one.

        Raises:
            ValueError: The model is none of mmssl's, or the layer is not found.
        """
        if not isinstance(model, LayerwiseMixin):
            raise ValueError(
                f'{self.key} needs a model whose unsupervised loss it can repeat, a semi-supervised one of mmssl, got '
                f'model.type={type(model).__name__}; remove the hook'
            )
        # A runner that has trained may be asked to test: what was learned stays.
        if model.average_head is None:
            model.set_average_head(self.layer, f'{self.key}.layer', **self.options)

    def before_train(self, runner: Runner) -> None:
        """Check the accumulation; a new run, whatever it was loaded from, starts from its own layer."""
        counts = getattr(first_wrapper(runner), '_accumulative_counts', 1)
        if self.options['lookahead'] and counts > 1:
            raise ValueError(
                f'{self.key}.lookahead=True moves the averaged layer by the whole batch of an optimizer step before '
                f'its loss is computed, but optim_wrapper.accumulative_counts={counts} splits that batch; set one of '
                'them back'
            )
        if runner.iter == 0:
            unwrap_model(runner.model).average_head.restart()

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        """Move the averaged layer if the optimizer has made a step."""
        if first_wrapper(runner).should_update():
            unwrap_model(runner.model).update_average_head()


def first_wrapper(runner: Runner) -> Any:
    """The optimizer wrapper, or one of several, which count alike."""
    wrapper = runner.optim_wrapper
    return next(iter(wrapper.values())) if isinstance(wrapper, OptimWrapperDict) else wrapper
