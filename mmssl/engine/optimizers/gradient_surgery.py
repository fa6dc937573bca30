"""Gradient surgery between two groups of losses, as a mixin of mmengine's optimizer wrappers."""

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from mmengine.dist import all_reduce, get_world_size
from mmengine.model import is_model_wrapper
from torch import Tensor, nn

from mmssl.functional.gradient_surgery import (
    BALANCES,
    Combination,
    inner_products,
    pcgrad_combination,
    rgd_combination,
)
from mmssl.utils.patterns import check_patterns, matches_any, matches_path
from mmssl.utils.values import check_choice, check_number

MODES = ('exact', 'feature', 'lazy')
GRANULARITIES = ('model', 'layer')
PROJECTIONS = ('asymmetric', 'symmetric', None)
# They shard parameters or own the backward pass, so that no gradient of one loss can be had from outside.
REFUSED_WRAPPERS = (
    'FullyShardedDataParallel', 'FSDPModule', 'DeepSpeedEngine', 'MMDeepSpeedEngineWrapper', 'ColossalAIModelWrapper',
    'MMSeparateDistributedDataParallel',
)  # yapf: disable
CONFLICT_WINDOW = 100


class LossCapture:
    """Forward hook that keeps the loss dict of the last training forward, with its graph."""

    def __init__(self) -> None:
        self.losses: dict[str, Any] | None = None

    def __call__(self, module: nn.Module, args: tuple, kwargs: dict, output: Any) -> None:
        """Keep what ``model(..., mode='loss')`` returned."""
        if kwargs.get('mode') == 'loss' and isinstance(output, Mapping):
            self.losses = dict(output)


class FeatureCapture:
    """Forward hook that keeps every output, attached to a graph, of the shared modules."""

    def __init__(self) -> None:
        self.features: list[Tensor] = []

    def __call__(self, module: nn.Module, inputs: Any, output: Any) -> None:
        """Keep the tensors of ``output`` that need a gradient."""
        self.features.extend(tensor for tensor in tensors_in(output) if tensor.requires_grad)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """All tensors of nested tuples, lists and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)


def checkpoints_reenter(loss: Tensor) -> bool:
    """Whether activations below ``loss`` are checkpointed in PyTorch's re-entrant way."""
    seen, todo = set(), [loss.grad_fn]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        if node.name().startswith('CheckpointFunction'):
            return True
        seen.add(node)
        todo.extend(following for following, _ in node.next_functions)
    return False


@dataclass
class Layout:
    """Where each parameter's gradients stand in one flat buffer: a single all-reduce serves them all.

    The buffer is [primary gradients of shared parameters | gradients of the others | auxiliary gradients of shared
    parameters | reliability | one flag for each parameter: whether any loss reaches it].
    """

    shared: list[nn.Parameter]
    others: list[nn.Parameter]

    def __post_init__(self) -> None:
        self.parameters = [*self.shared, *self.others]
        sizes = [parameter.numel() for parameter in self.parameters]
        self.num_shared = sum(sizes[: len(self.shared)])
        self.num_parameters = sum(sizes)
        self.reliability = self.num_parameters + self.num_shared
        self.total = self.reliability + 1 + len(self.parameters)
        dtypes = {parameter.dtype for parameter in self.parameters}
        self.dtype = torch.float64 if torch.float64 in dtypes else torch.float32
        devices = {parameter.device for parameter in self.parameters}
        if len(devices) > 1:
            raise NotImplementedError(
                f'optim_wrapper: the parameters are on several devices, {sorted(map(str, devices))}; gradient surgery '
                'takes models that are on one'
            )
        self.device = devices.pop()

    def new_buffer(self) -> Tensor:
        """Zeros."""
        return torch.zeros(self.total, dtype=self.dtype, device=self.device)

    def primary(self, buffer: Tensor) -> list[Tensor]:
        """Views of the first part, one for each parameter, shared ones first."""
        return self._views(buffer, 0, self.parameters)

    def auxiliary(self, buffer: Tensor) -> list[Tensor]:
        """Views of the auxiliary gradients, one for each shared parameter."""
        return self._views(buffer, self.num_parameters, self.shared)

    @staticmethod
    def _views(buffer: Tensor, start: int, parameters: Sequence[nn.Parameter]) -> list[Tensor]:
        views = []
        for parameter in parameters:
            views.append(buffer[start : start + parameter.numel()].view(parameter.shape))
            start += parameter.numel()
        return views


class GradientSurgery:
    r"""Splits the losses of any OpenMMLab model in two and combines their gradients on the shared parameters.

    .. math:: g = g_p + \beta_t\, g_r^{dec}, \qquad \beta_t = \lambda_t\, \bar\alpha_t\, \gamma_t

    :math:`g_p` is the gradient of the primary losses, which is never changed; :math:`g_r^{dec}` that of the auxiliary
    ones without the component against :math:`g_p`; :math:`\gamma_t` the norm balance; see
    :func:`mmssl.functional.gradient_surgery.rgd_combination`. :math:`\lambda_t` is 0 for ``warmup``, then rises
    linearly to ``coefficient`` over ``ramp``; :math:`\bar\alpha_t` is the mean of the ``reliability`` statistic.
    Parameters that are not shared get the plain gradient of the sum of both losses, so those of a head get that of
    their own loss, from the first iteration on. Momentum, weight decay and adaptive step sizes come after the surgery
    and keep none of its guarantees.

    The model needs no change: its loss dict is taken by a forward hook on the object that mmengine trains. Gradients
    are averaged over all processes before they are compared, so N processes do what one does on the whole batch.
    ``DistributedDataParallel`` runs under ``no_sync``, and one all-reduce carries both gradients.

    Modes:

    - ``'exact'``: two backward passes.
    - ``'feature'``: the two losses are differentiated down to the outputs of the shared modules, the surgery is done
      there, and one pass goes on through them. :math:`\langle g, g_p \rangle \ge \|g_p\|^2` holds for the features, not
      for the parameters. Under accumulation each part of the batch has a surgery of its own.
    - ``'lazy'``: the combination is :math:`a\, g_p + b\, g_r`; a and b come from an exact step every
      ``lazy_interval`` updates, and between them :math:`a L_p + b L_r` has one ordinary pass. The guarantees hold at
      the exact steps.

    Logged, at each update: ``surgery_conflict`` (share of conflicts among the last 100 updates that were compared),
    ``surgery_cosine`` and ``surgery_cosine_after`` of the two gradients, ``surgery_norm_ratio``
    (:math:`\|g_r\| / \|g_p\|`) and ``surgery_coefficient`` (:math:`\beta_t`); with ``granularity='layer'`` means.

    Args:
        primary: Patterns (``fnmatch``) of the keys of the primary losses.
        auxiliary: Patterns of the auxiliary ones. A key that contains ``loss`` must match exactly one of the two.
        shared: Dotted names, or patterns, of the modules or parameters that both learn.
        coefficient: :math:`\lambda` after warm-up and ramp, >= 0. Default: 1.
        warmup: Iterations (epochs, if ``by_epoch``) >= 0 in which shared parameters learn from the primary losses
            alone. Default: 0.
        ramp: Iterations (epochs) >= 0 over which the coefficient then rises. Default: 0.
        by_epoch: Unit of ``warmup`` and ``ramp``. Default: False.
        balance: ``True``: :math:`\gamma_t \le 1` shrinks an auxiliary gradient that is longer than ``ratio`` times the
            primary one; ``False``: :math:`\gamma_t = 1`; ``'ratio'``: both lengths are made equal. Default: True.
        ratio: :math:`\rho` > 0. Default: 1.
        reliability: Key, or pattern, of the statistic in the loss dict whose mean, in [0, 1], scales the coefficient.
            Default: None, 1.
        projection: ``'asymmetric'`` (RGD), ``'symmetric'`` (PCGrad; ``balance`` does not apply) or None.
        granularity: ``'model'``: one vector of all shared parameters; ``'layer'``: each tensor by itself.
        mode: See above. Default: ``'exact'``.
        lazy_interval: Updates from one exact step to the next in ``'lazy'`` mode, >= 1. Default: 8.
        kwargs: Those of the wrapper that this is mixed into: ``optimizer``, ``accumulative_counts``, ``clip_grad``, and
            under AMP ``loss_scale`` and ``dtype``.

    Raises:
        ValueError: If an argument is out of its range; before the first iteration, if ``shared`` matches no parameter;
            in the first iteration, if a loss matches no pattern or both, or a pattern list matches no loss.
        NotImplementedError: If the model is wrapped by FSDP, DeepSpeed or the like, or DDP has ``static_graph``.
    """

    def __init__(
        self,
        primary: Sequence[str],
        auxiliary: Sequence[str],
        shared: Sequence[str],
        coefficient: float = 1.0,
        warmup: int = 0,
        ramp: int = 0,
        by_epoch: bool = False,
        balance: bool | str = True,
        ratio: float = 1.0,
        reliability: str | None = None,
        projection: str | None = 'asymmetric',
        granularity: str = 'model',
        mode: str = 'exact',
        lazy_interval: int = 8,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        key = f'optim_wrapper (mmssl.{type(self).__name__})'
        self.primary = check_patterns(primary, f'{key}.primary')
        self.auxiliary = check_patterns(auxiliary, f'{key}.auxiliary')
        self.shared = check_patterns(shared, f'{key}.shared')
        check_number(coefficient, f'{key}.coefficient', lambda value: 0 <= value < float('inf'), 'a finite number >= 0')
        check_number(warmup, f'{key}.warmup', lambda value: value >= 0, 'an integer >= 0', int)
        check_number(ramp, f'{key}.ramp', lambda value: value >= 0, 'an integer >= 0', int)
        check_choice(by_epoch, (True, False), f'{key}.by_epoch')
        check_choice(balance, (True, False, 'ratio'), f'{key}.balance')
        check_number(ratio, f'{key}.ratio', lambda value: 0 < value < float('inf'), 'a finite number > 0')
        if reliability is not None and not (isinstance(reliability, str) and reliability):
            raise ValueError(f'{key}.reliability must be None or the key of a statistic, got {reliability!r}')
        check_choice(projection, PROJECTIONS, f'{key}.projection')
        check_choice(granularity, GRANULARITIES, f'{key}.granularity')
        check_choice(mode, MODES, f'{key}.mode')
        check_number(lazy_interval, f'{key}.lazy_interval', lambda value: value >= 1, 'an integer >= 1', int)
        if mode != 'exact' and granularity == 'layer':
            raise ValueError(
                f"{key}.granularity='layer' needs mode='exact': {mode!r} has one pass through the shared layers, with "
                'one pair of factors for all of them'
            )
        self.config_key = key
        self.coefficient, self.warmup, self.ramp, self.by_epoch = float(coefficient), warmup, ramp, by_epoch
        self.balance = {True: BALANCES[0], False: None}.get(balance, balance)
        self.ratio, self.reliability, self.projection = float(ratio), reliability, projection
        self.granularity, self.mode, self.lazy_interval = granularity, mode, lazy_interval
        self._capture, self._features = LossCapture(), FeatureCapture()
        self._handles: list[Any] = []
        self._layout: Layout | None = None
        self._buffer: Tensor | None = None
        self._used: list[bool] = []
        self._parts = 0
        self._present_coefficient = 0.0
        self._is_lazy_step = False
        self._is_checked = False
        # Parameters behind checkpoints that re-enter autograd are not in the graph: only a full backward pass, of the
        # whole model, reaches them.
        self._reentrant = False
        self._combination: tuple[float, float] | None = None
        self._updates_since_exact = 0
        self._conflicts: deque[float] = deque(maxlen=CONFLICT_WINDOW)

    # --- before training --------------------------------------------------------------------------------------------

    def initialize_count_status(self, model: nn.Module, init_counts: int, max_counts: int) -> None:
        """Find the shared parameters and begin to watch the model's losses.

        Args:
            model: The object that mmengine trains, DDP included.
            init_counts: Iterations done.
            max_counts: Iterations of the whole training.
        """
        super().initialize_count_status(model, init_counts, max_counts)
        wrappers = [kind.__name__ for kind in type(model).__mro__]
        refused = [name for name in REFUSED_WRAPPERS if name in wrappers]
        if refused:
            raise NotImplementedError(
                f'{self.config_key} needs the whole gradient of each loss, which {refused[0]} does not give: train '
                'with MMDistributedDataParallel (the default of several processes) or in one process'
            )
        if getattr(model, 'static_graph', False):
            raise NotImplementedError(
                f'{self.config_key} differentiates two losses by themselves, which DistributedDataParallel can not do '
                'with model_wrapper_cfg.static_graph=True; set it to False'
            )
        if init_counts % self._accumulative_counts:
            raise ValueError(
                f'{self.config_key}: training would go on from iteration {init_counts}, in the middle of '
                f'optim_wrapper.accumulative_counts={self._accumulative_counts}, and the gradients of that part are in '
                'no checkpoint: let default_hooks.checkpoint.interval be a multiple of accumulative_counts'
            )
        for handle in self._handles:
            handle.remove()
        self._model = model.module if is_model_wrapper(model) else model
        self._handles = [model.register_forward_hook(self._capture, with_kwargs=True)]
        self._layout = self._find_parameters()
        self._buffer, self._parts, self._is_checked = None, 0, False
        self._used = [False] * len(self._layout.parameters)
        if self.mode == 'feature':
            for module in self._shared_modules():
                self._handles.append(module.register_forward_hook(self._features))

    def _find_parameters(self) -> Layout:
        named = {name: parameter for name, parameter in self._model.named_parameters() if parameter.requires_grad}
        for pattern in self.shared:
            if not any(matches_path(name, pattern) for name in named):
                raise ValueError(
                    f'{self.config_key}.shared: {pattern!r} matches no trainable parameter; the model has '
                    f'{", ".join(name for name, _ in self._model.named_children())}'
                )
        is_shared = {name: any(matches_path(name, pattern) for pattern in self.shared) for name in named}
        return Layout(
            shared=[parameter for name, parameter in named.items() if is_shared[name]],
            others=[parameter for name, parameter in named.items() if not is_shared[name]],
        )

    def _shared_modules(self) -> list[nn.Module]:
        """The outermost modules that ``shared`` names; their outputs are the shared features."""
        found: dict[str, nn.Module] = {}
        for pattern in self.shared:
            matched = [name for name, _ in self._model.named_modules() if name and matches_any(name, [pattern])]
            if not matched:
                raise ValueError(
                    f"{self.config_key}.shared: {pattern!r} is no module, and mode='feature' needs modules, whose "
                    "outputs are the shared features; use mode='exact' for single parameters"
                )
            found.update((name, self._model.get_submodule(name)) for name in matched)
        return [
            module
            for name, module in found.items()
            if not any(name.startswith(f'{other}.') for other in found)
            and any(parameter.requires_grad for parameter in module.parameters())
        ]

    @contextmanager
    def optim_context(self, model: nn.Module) -> Iterator[None]:
        """The context of the forward pass: DDP leaves the gradients to this wrapper.

        Args:
            model: The object that mmengine trains.
        """
        with super().optim_context(model):
            if hasattr(model, 'no_sync'):
                with model.no_sync():
                    yield
            else:
                yield

    # --- one iteration ----------------------------------------------------------------------------------------------

    def update_params(
        self, loss: Tensor, step_kwargs: dict | None = None, zero_kwargs: dict | None = None
    ) -> None:
        """Differentiate the two groups of losses, and step if a batch is complete.

        Args:
            loss: Their sum, as ``parse_losses`` made it; only compared with the captured losses.
            step_kwargs: Of ``step``.
            zero_kwargs: Of ``zero_grad``.
        """
        losses, self._capture.losses = self._capture.losses, None
        if losses is None:
            raise ValueError(
                f'{self.config_key} found no loss dict: the model must be trained by mmengine, whose train_step calls '
                "model(..., mode='loss'), and not be compiled"
            )
        primary, auxiliary = self._group(losses, loss)
        primary, auxiliary = (self.scale_for_backward(self.scale_loss(part)) for part in (primary, auxiliary))
        reliability = None if self.reliability is None else self._read_reliability(losses)
        if self._parts == 0:
            self._begin_batch()
        if reliability is not None:
            self._buffer[self._layout.reliability] += reliability
        self._differentiate(primary, auxiliary, reliability)
        self._features.features.clear()
        self._parts += 1
        self._inner_count += 1
        if self.should_update():
            self._write_gradients()
            self.step(**(step_kwargs or {}))
            self.zero_grad(**(zero_kwargs or {}))

    def _begin_batch(self) -> None:
        """Empty the buffer, and decide what kind of step all parts of this batch make."""
        if self._buffer is None:
            self._buffer = self._layout.new_buffer()
        self._buffer.zero_()
        self._used = [False] * len(self._layout.parameters)
        self._present_coefficient = self.coefficient_at(self._inner_count)
        if self._present_coefficient == 0:
            self._combination = None
        is_due = self._combination is None or self._updates_since_exact >= self.lazy_interval
        self._is_lazy_step = self.mode == 'lazy' and not is_due

    def scale_for_backward(self, loss: Tensor) -> Tensor:
        """The loss as it is differentiated; AMP multiplies it by its scale."""
        return loss

    def coefficient_at(self, iteration: int) -> float:
        r""":math:`\lambda_t`: 0 while warming up, then rising to ``coefficient``.

        Args:
            iteration: Iterations done.
        """
        unit = 1
        if self.by_epoch:
            epochs, iterations = (self.message_hub.get_info(name) for name in ('max_epochs', 'max_iters'))
            if not epochs or not iterations:
                raise ValueError(
                    f'{self.config_key}.by_epoch=True needs a training that counts epochs (EpochBasedTrainLoop); set '
                    'by_epoch=False and give warmup and ramp in iterations'
                )
            unit = iterations // epochs
        done = iteration - self.warmup * unit
        return 0.0 if done < 0 else self.coefficient * min(1.0, (done + 1) / (self.ramp * unit + 1))

    def _group(self, losses: Mapping[str, Any], total: Tensor) -> tuple[Tensor, Tensor]:
        """The sums of the primary and of the auxiliary losses, by the model's own ``parse_losses``."""
        names = [name for name in losses if 'loss' in name]
        groups = {
            'primary': [name for name in names if matches_any(name, self.primary)],
            'auxiliary': [name for name in names if matches_any(name, self.auxiliary)],
        }
        for kind, members in groups.items():
            if not members:
                raise ValueError(
                    f'{self.config_key}.{kind}={getattr(self, kind)} matches no loss of the model; there are {names}'
                )
        for name in names:
            count = sum(name in members for members in groups.values())
            if count != 1:
                what = 'both `primary` and `auxiliary` match' if count else 'neither `primary` nor `auxiliary` matches'
                raise ValueError(f'{self.config_key}: {what} the loss {name!r}; every loss must be in exactly one')
        primary, auxiliary = (
            self._model.parse_losses({name: losses[name] for name in members})[0] for members in groups.values()
        )
        if not self._is_checked:
            self._is_checked = True
            self._reentrant = checkpoints_reenter(primary) or checkpoints_reenter(auxiliary)
            value = (primary + auxiliary).detach()
            if torch.isfinite(value) and not torch.allclose(value, total.detach(), rtol=1e-3, atol=1e-6):
                raise ValueError(
                    f'{self.config_key}: primary and auxiliary losses add up to {float(value):.6g}, but the model '
                    f'trains on {float(total):.6g}; surgery needs a total that is their plain sum'
                )
        return primary, auxiliary

    def _read_reliability(self, losses: Mapping[str, Any]) -> Tensor:
        names = [name for name in losses if 'loss' not in name and matches_any(name, [self.reliability])]
        if len(names) != 1:
            statistics = [name for name in losses if 'loss' not in name]
            raise ValueError(
                f'{self.config_key}.reliability={self.reliability!r} must match exactly one statistic of the model; '
                f'there are {statistics}'
            )
        return losses[names[0]].detach().float().mean()

    # --- gradients ----------------------------------------------------------------------------------------------------

    def _differentiate(self, primary: Tensor, auxiliary: Tensor, reliability: Tensor | None) -> None:
        """Add the gradients of one part of the batch to the buffer."""
        parameters, shared, others = self._layout.parameters, self._layout.shared, self._layout.others
        count = len(shared)
        if self._present_coefficient == 0:
            # The auxiliary loss stops above the shared layers: one backward pass through them.
            own = self._gradients(auxiliary, others, retain_graph=True)
            first = self._gradients(primary, parameters)
            self._add(first[:count], [], first[count:], own)
        elif self.mode == 'feature':
            self._differentiate_features(primary, auxiliary, reliability)
        elif self._is_lazy_step:
            a, b = self._combination
            own = self._gradients(primary + auxiliary, others, retain_graph=True)
            self._add(self._gradients(a * primary + b * auxiliary, shared), [], own)
        else:
            second = self._gradients(auxiliary, parameters, retain_graph=True)
            first = self._gradients(primary, parameters)
            self._add(first[:count], second[:count], first[count:], second[count:])

    def _differentiate_features(self, primary: Tensor, auxiliary: Tensor, reliability: Tensor | None) -> None:
        """Surgery on the gradients of the shared features, then one pass through the shared modules."""
        features, others = self._features.features, self._layout.others
        if not features:
            raise ValueError(
                f"{self.config_key}.shared={self.shared}: no forward pass of these modules was seen, so mode='feature' "
                "has no features; use mode='exact'"
            )
        count = len(features)
        second = self._gradients(auxiliary, [*features, *others], retain_graph=True)
        first = self._gradients(primary, [*features, *others], retain_graph=True)
        products = 0
        for feature, *pair in zip(features, first[:count], second[:count], strict=True):
            pair = [torch.zeros_like(feature) if gradient is None else gradient for gradient in pair]
            products = products + inner_products(*(gradient.flatten() for gradient in pair))
        sums = torch.cat([products, products.new_tensor([1.0 if reliability is None else reliability])])
        # Each process holds its part of the features, so the inner products of all of them are sums.
        if get_world_size() > 1:
            all_reduce(sums, 'sum')
        products, reliability = sums[:3], sums[3] / get_world_size()
        chosen = self._combine(products, reliability)
        self._log(chosen, products)
        outputs, gradients = [], []
        for feature, *pair in zip(features, first[:count], second[:count], strict=True):
            factors = zip((chosen.primary, chosen.auxiliary), pair, strict=True)
            parts = [factor.float() * gradient.float() for factor, gradient in factors if gradient is not None]
            if parts:
                outputs.append(feature)
                gradients.append(sum(parts).to(feature.dtype))
        found = self._gradients(outputs, self._layout.shared, gradients)
        self._add(found, [], first[count:], second[count:])

    def _gradients(
        self,
        loss: Tensor | list[Tensor],
        inputs: list[Tensor],
        grad_outputs: list[Tensor] | None = None,
        retain_graph: bool = False,
    ) -> list[Tensor | None]:
        """The gradients of ``loss``; None where there is none."""
        outputs = [tensor for tensor in (loss if isinstance(loss, list) else [loss]) if tensor.requires_grad]
        wanted = [tensor for tensor in inputs if tensor.requires_grad]
        if not outputs or not wanted:
            return [None] * len(inputs)
        if self._reentrant:
            found = self._gradients_by_backward(outputs, wanted, grad_outputs, retain_graph)
        else:
            found = torch.autograd.grad(outputs, wanted, grad_outputs, retain_graph=retain_graph, allow_unused=True)
        by_id = {id(tensor): gradient for tensor, gradient in zip(wanted, found, strict=True)}
        return [by_id.get(id(tensor)) for tensor in inputs]

    def _gradients_by_backward(
        self, outputs: list[Tensor], wanted: list[Tensor], grad_outputs: list[Tensor] | None, retain_graph: bool
    ) -> list[Tensor | None]:
        leaves = [tensor for tensor in (*self._layout.parameters, *wanted) if tensor.is_leaf]
        before = [leaf.grad for leaf in leaves]
        for tensor in (*leaves, *wanted):
            tensor.grad = None
            if not tensor.is_leaf:
                tensor.retain_grad()
        torch.autograd.backward(outputs, grad_outputs, retain_graph=retain_graph)
        found = [tensor.grad for tensor in wanted]
        for leaf, gradient in zip(leaves, before, strict=True):
            leaf.grad = gradient
        return found

    @torch.no_grad()
    def _add(
        self, first: list[Tensor | None], second: list[Tensor | None], *own: list[Tensor | None]
    ) -> None:
        """Add gradients to the buffer.

        Args:
            first: Primary gradients of the shared parameters, or those of both losses where they are combined already.
            second: Auxiliary gradients of the shared parameters, or none.
            own: Gradients of the other parameters.
        """
        count = len(self._layout.shared)
        primary, auxiliary = self._layout.primary(self._buffer), self._layout.auxiliary(self._buffer)
        groups = [(primary[:count], first, 0), (auxiliary, second, 0)]
        groups += [(primary[count:], part, count) for part in own]
        for views, gradients, start in groups:
            for index, gradient in enumerate(gradients):
                if gradient is not None:
                    views[index].add_(gradient.to_dense() if gradient.is_sparse else gradient)
                    self._used[start + index] = True

    @torch.no_grad()
    def _write_gradients(self) -> None:
        """Average over processes, combine, and set ``grad`` of every parameter that a loss reaches."""
        layout, buffer, used = self._layout, self._buffer, self._used
        buffer[layout.reliability] /= self._parts
        if get_world_size() > 1:
            flags = buffer[layout.reliability + 1 :]
            flags.copy_(torch.tensor(used, dtype=flags.dtype))
            all_reduce(buffer, 'mean')
            used = (flags > 0).tolist()
        if self._present_coefficient == 0:
            self._log_coefficient(0.0)
        elif self._is_lazy_step:
            self._updates_since_exact += 1
        elif self.mode != 'feature':
            self._cut(buffer)
        for parameter, gradient, is_used in zip(layout.parameters, layout.primary(buffer), used, strict=True):
            parameter.grad = gradient.to(parameter.dtype) if is_used else None
        self._parts = 0

    def _cut(self, buffer: Tensor) -> None:
        """Combine the gradients of the shared parameters in the buffer."""
        layout = self._layout
        first = buffer[: layout.num_shared]
        second = buffer[layout.num_parameters : layout.num_parameters + layout.num_shared]
        if self.granularity == 'model':
            pairs, products = [(first, second)], inner_products(first, second)
        else:
            pairs = list(zip(layout.primary(buffer), layout.auxiliary(buffer), strict=False))
            products = torch.stack([inner_products(a.flatten(), b.flatten()) for a, b in pairs]).T
        chosen = self._combine(products, buffer[layout.reliability].to(products.dtype))
        factors = zip(chosen.primary.reshape(-1), chosen.auxiliary.reshape(-1), strict=True)
        for (own, other), (a, b) in zip(pairs, factors, strict=True):
            own.mul_(a.to(own.dtype)).add_(other.mul_(b.to(own.dtype)))
        self._log(chosen, products)
        if self.mode == 'lazy':
            pair = (float(chosen.primary), float(chosen.auxiliary))
            # Under AMP, a step that the scaler skips must not become the rule for those that follow.
            if all(math.isfinite(value) for value in pair):
                self._combination, self._updates_since_exact = pair, 1

    def _combine(self, products: Tensor, reliability: Tensor) -> Combination:
        coefficient = self._present_coefficient
        if self.reliability is not None:
            coefficient = coefficient * reliability
        if self.projection == 'symmetric':
            return pcgrad_combination(*products, coefficient)
        return rgd_combination(
            *products, coefficient, self.balance, self.ratio, projection=self.projection == 'asymmetric'
        )

    def _log(self, chosen: Combination, products: Tensor) -> None:
        ratio = (products[1] / products[0].clamp(min=torch.finfo(products.dtype).tiny)).sqrt()
        values = [chosen.conflict, chosen.cosine, chosen.cosine_after, ratio, chosen.auxiliary]
        conflict, *rest = torch.stack([value.to(products.dtype).mean() for value in values]).tolist()
        self._conflicts.append(conflict)
        self.message_hub.update_scalar('train/surgery_conflict', sum(self._conflicts) / len(self._conflicts))
        for name, value in zip(('cosine', 'cosine_after', 'norm_ratio'), rest, strict=False):
            self.message_hub.update_scalar(f'train/surgery_{name}', value)
        self._log_coefficient(rest[-1])

    def _log_coefficient(self, value: float) -> None:
        self.message_hub.update_scalar('train/surgery_coefficient', value)

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """That of the optimizer, and what the surgery carries from one update to the next, as numbers and lists."""
        state = super().state_dict()
        state['gradient_surgery'] = dict(
            combination=None if self._combination is None else list(self._combination),
            updates_since_exact=self._updates_since_exact,
            conflicts=list(self._conflicts),
        )
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state; one of a wrapper without surgery is taken as well.

        Args:
            state_dict: What :meth:`state_dict` returned.
        """
        state_dict = dict(state_dict)
        own = state_dict.pop('gradient_surgery', None)
        if own is not None:
            self._combination = None if own['combination'] is None else tuple(own['combination'])
            self._updates_since_exact = own['updates_since_exact']
            self._conflicts = deque(own['conflicts'], maxlen=CONFLICT_WINDOW)
        super().load_state_dict(state_dict)
