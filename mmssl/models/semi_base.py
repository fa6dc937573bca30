"""What every semi-supervised model shares, whatever the task: options, branches, and loading a plain checkpoint."""

import inspect
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, ClassVar

import torch
from mmengine.config import ConfigDict
from mmengine.logging import print_log
from torch import Tensor, nn

from mmssl.models.data_preprocessors import MultiBranchDataPreprocessor
from mmssl.models.layerwise import LayerwiseMixin
from mmssl.registry import MODELS
from mmssl.utils import values


def resolve_options(options: Mapping[str, Any] | None, defaults: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Complete a config node with its defaults and refuse what it does not know.

    Args:
        options: The node as the user wrote it, or ``None``.
        defaults: Every key that is allowed, with its default.
        key: Name of the node in the config, for the message.

    Returns:
        A new dict with exactly the keys of ``defaults``.

    Raises:
        KeyError: If ``options`` has a key that ``defaults`` lacks.
        ValueError: If ``options`` is no dict.
    """
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(f'model.{key} must be a dict, got {options!r}')
    options = dict(options or {})
    for name in options:
        if name not in defaults:
            close = values.closest_option(str(name), defaults)
            hint = f'; did you mean `{close}`?' if close else '.'
            raise KeyError(f'model.{key}: unknown key `{name}`{hint} Allowed: {", ".join(sorted(defaults))}')
    return {**defaults, **options}


def options_in(model: Mapping[str, Any]) -> Mapping[str, Any]:
    """``semi_train_cfg`` of a model's config; empty where it is no dict, which :func:`resolve_options` refuses."""
    options = model.get('semi_train_cfg')
    return options if isinstance(options, Mapping) else {}


def check_choice(value: Any, choices: Iterable[Any], key: str) -> None:
    """Raise ValueError, naming ``key``, unless ``value`` is one of ``choices``."""
    values.check_choice(value, choices, f'model.{key}')


def check_weight(value: Any, key: str) -> None:
    """Raise ValueError, naming ``key``, unless ``value`` is a finite number >= 0."""
    values.check_number(value, f'model.{key}', lambda weight: 0 <= weight < float('inf'), 'a finite number >= 0')


def check_count(value: Any, key: str) -> None:
    """Raise ValueError, naming ``key``, unless ``value`` is an integer >= 0."""
    values.check_number(value, f'model.{key}', lambda count: count >= 0, 'an integer >= 0', int)


def check_node(value: Any, key: str, optional: bool = False) -> None:
    """Raise ValueError, naming ``key``, unless ``value`` is the config of a piece; ``None`` if ``optional``."""
    if (value is None and optional) or (isinstance(value, Mapping) and 'type' in value):
        return
    raise ValueError(f'model.{key} must be {"None or " if optional else ""}a dict with `type`, got {value!r}')


def class_of(kind: Any) -> Any:
    """The class that a config's ``type`` names, or is; ``None`` if no such model is registered."""
    return MODELS.get(kind) if isinstance(kind, str) else kind


def with_sizes(node: Mapping[str, Any], key: str, owner: str, **sizes: Any) -> dict[str, Any]:
    """The config of a piece, with sizes that another part of the model has.

    Args:
        node: Config of the piece.
        key: Its key below ``model``.
        owner: Key of the part that has the sizes, below ``model``.
        sizes: By argument of the piece; ``None`` for one that is not known.

    Raises:
        ValueError: The config states another size.
    """
    node = dict(node)
    for name, size in sizes.items():
        if size is not None and node.setdefault(name, size) != size:
            raise ValueError(
                f'model.{key}.{name} must be that of model.{owner}, {size}, or left out, got {node[name]!r}'
            )
    return node


def check_pseudo_label_loss(loss: nn.Module) -> None:
    """Refuse a loss that cannot be the unsupervised one.

    Raises:
        ValueError: It takes no teacher logits (mmseg's cross entropy would take them for class probabilities and train
            on nonsense), or it does not return the mean over the valid pixels.
    """
    key, kind = 'model.semi_train_cfg.unsup_loss', type(loss).__name__
    arguments = set(inspect.signature(loss.forward).parameters)
    if not {'target_logits', 'valid'} <= arguments:
        raise ValueError(
            f'{key} must be a loss between two sets of logits, with `forward(logits, target_logits, weight, valid)`, '
            f'such as mmssl.HardPseudoLabelLoss or mmssl.FPLLoss, got {kind} with the arguments {sorted(arguments)}'
        )
    reduction = getattr(loss, 'reduction', 'mean')
    if reduction != 'mean':
        raise ValueError(
            f"{key}.reduction must be 'mean', over the valid pixels of all ranks, got {reduction!r}; "
            'model.semi_train_cfg.unsup_weight scales the loss'
        )


def get_branch(batch: Mapping[str, Any], branch: str) -> Any:
    """One branch of a batch that :class:`MultiBranchDataPreprocessor` has grouped.

    Raises:
        ValueError: If the batch is not grouped by branch or lacks this branch.
    """
    if not isinstance(batch, Mapping):
        raise ValueError(
            f'the model needs a batch grouped by branch, got {type(batch).__name__}: end the pipelines of '
            'train_dataloader.dataset with `mmssl.MultiBranch` and set model.data_preprocessor to '
            '`mmssl.MultiBranchDataPreprocessor`'
        )
    if batch.get(branch) is None:
        raise ValueError(
            f'the batch has no sample of branch `{branch}` (found: {sorted(batch)}): check the branch names of '
            '`mmssl.MultiBranch` in train_dataloader.dataset, and that train_dataloader.sampler.source_ratio draws '
            'from every source in each batch'
        )
    return batch[branch]


def prefixed(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """``values`` with ``prefix`` before every key."""
    return {f'{prefix}{name}': value for name, value in values.items()}


def scale_losses(losses: Mapping[str, Any], weight: float) -> dict[str, Any]:
    """Multiply what ``parse_losses`` would sum (keys with ``loss``) and leave the statistics as they are."""
    scaled = {}
    for name, value in losses.items():
        if 'loss' in name:
            value = [item * weight for item in value] if isinstance(value, list) else value * weight
        scaled[name] = value
    return scaled


def zero_loss(losses: Mapping[str, Any]) -> Tensor:
    """A zero that is attached to the graph of every loss, so that no rank finds a loss missing."""
    total = 0
    for name, value in losses.items():
        if 'loss' in name:
            total = total + sum(item.sum() for item in (value if isinstance(value, list) else [value]))
    return 0 * total


@contextmanager
def statistics_kept(module: nn.Module) -> Iterator[None]:
    """Inside the block, running statistics of BatchNorm stay as they are: what passes has been counted before."""
    norms = [child for child in module.modules() if isinstance(child, nn.modules.batchnorm._BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum


@contextmanager
def eval_mode(module: nn.Module) -> Iterator[None]:
    """Put ``module`` into eval mode inside the block and restore every sub-module's own mode after it."""
    modes = [(child, child.training) for child in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for child, mode in modes:
            child.training = mode


class PlainCheckpointLoader:
    """Load-state-dict pre-hook that hands a plain checkpoint to every sub-model of a semi-supervised model.

    A plain checkpoint is one of the stock model (``backbone.*``, ``decode_head.*``), or of its backbone alone, with or
    without the ``backbone.`` prefix. A checkpoint of the semi-supervised model itself passes untouched. For each
    sub-model one log line says how many keys matched and which are missing or unexpected.

    Args:
        model: The semi-supervised model.
        names: Attribute names of the sub-models that take the weights, such as ``['student1', 'student2']``.
    """

    def __init__(self, model: nn.Module, names: list[str]) -> None:
        self.model = model
        self.names = names

    def __call__(self, state_dict: dict[str, Tensor], prefix: str, *_: Any) -> None:
        """Rewrite ``state_dict`` in place.

        Raises:
            ValueError: If not one weight fits the sub-models.
        """
        own = tuple(f'{prefix}{name}.' for name in self.names)
        plain = {name[len(prefix) :]: value for name, value in state_dict.items() if name.startswith(prefix)}
        if not plain or any(name.startswith(own) for name in state_dict):
            return
        expected = getattr(self.model, self.names[0]).state_dict()
        if not any(name in expected for name in plain):
            with_prefix = {f'backbone.{name}': value for name, value in plain.items()}
            if not any(name in expected for name in with_prefix):
                raise ValueError(
                    'load_from: the checkpoint fits neither the semi-supervised model nor its plain model nor the '
                    f'backbone: it has keys such as {sorted(plain)[:3]}, the plain model such as {sorted(expected)[:3]}'
                )
            plain = with_prefix
        wrong = [name for name in plain if name in expected and plain[name].shape != expected[name].shape]
        # Layers of another shape are left out (another number of classes), but something has to fit: counters always do
        if wrong and not any(v.dim() and name in expected and name not in wrong for name, v in plain.items()):
            name = wrong[0]
            raise ValueError(
                f'load_from: the checkpoint is of a model with layers of other sizes, and nothing of it fits: {name} '
                f'has shape {tuple(plain[name].shape)} instead of {tuple(expected[name].shape)}'
            )
        for name in list(state_dict):
            if name.startswith(prefix):
                del state_dict[name]
        for student in self.names:
            state_dict.update(prefixed(plain, f'{prefix}{student}.'))
            self._report(student, plain)
        # State of ours that no plain checkpoint has keeps its present value instead of being reported as missing.
        for name, value in self.model.state_dict().items():
            if not name.startswith(tuple(f'{student}.' for student in self.names)):
                state_dict[f'{prefix}{name}'] = value

    def _report(self, student: str, plain: Mapping[str, Tensor]) -> None:
        expected = getattr(self.model, student).state_dict()
        matched = [name for name in plain if name in expected and plain[name].shape == expected[name].shape]
        wrong_shape = [name for name in plain if name in expected and plain[name].shape != expected[name].shape]
        missing = [name for name in expected if name not in plain]
        unexpected = [name for name in plain if name not in expected]
        parts = [f'{len(matched)} keys matched']
        for what, keys in (('missing', missing), ('unexpected', unexpected), ('of another shape', wrong_shape)):
            some = f' ({", ".join(keys[:5])}{", ..." if len(keys) > 5 else ""})' if keys else ''
            parts.append(f'{len(keys)} {what}{some}')
        print_log(f'plain checkpoint -> {student}: {"; ".join(parts)}', logger='current', level=logging.INFO)


def same_parameters(first: nn.Module, second: nn.Module) -> bool:
    """Whether two modules of one architecture hold equal parameters."""
    return all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


class SemiModel(LayerwiseMixin):
    """Mix-in of the semi-supervised models: sub-models built from one stock config, options, and counted iterations.

    It comes before the stock base class (``BaseSegmentor``, ``BaseClassifier``). A sub-class names its sub-models in
    ``MODELS_HELD``, the one that predicts by default in ``PREDICT_ON`` if it is not the first, and its options in
    ``TRAIN_DEFAULTS``, and runs forwards of unlabeled images as :class:`LayerwiseMixin` says; its ``__init__`` calls
    :func:`multi_branch_preprocessor`, the stock ``__init__`` and :meth:`init_semi`, in this order.
    """

    MODELS_HELD: ClassVar[tuple[str, ...]] = ()
    PREDICT_ON: ClassVar[str | None] = None
    REQUIRED_BRANCHES: ClassVar[tuple[str, ...]] = ('sup', 'unsup_weak')
    REQUIRED_HOOKS: ClassVar[tuple[str, ...]] = ()
    TRAIN_DEFAULTS: ClassVar[dict[str, Any]] = dict(sup_weight=1.0, unsup_weight=1.0, unsup_begin=0, unsup_ramp=0)

    def init_semi(self, stock: Mapping[str, Any], semi_train_cfg: dict | None, semi_test_cfg: dict | None) -> None:
        """Resolve and check the options, and build the sub-models.

        Args:
            stock: Config of the stock model that each sub-model is built from.
            semi_train_cfg: Options of the method; an unknown key is an error.
            semi_test_cfg: ``dict(predict_on=...)``: the sub-model that predicts, or ``'ensemble'`` for the mean of
                their probabilities.

        Raises:
            KeyError: If an option is unknown.
            ValueError: If an option has a value that is not allowed.
        """
        self.semi_train_cfg = resolve_options(semi_train_cfg, self.TRAIN_DEFAULTS, 'semi_train_cfg')
        # What a model holds may depend on its options: the instance says what it does hold.
        self.MODELS_HELD = self.sub_models(self.semi_train_cfg)
        test_defaults = dict(predict_on=self.default_predictor(self.semi_train_cfg))
        self.semi_test_cfg = resolve_options(semi_test_cfg, test_defaults, 'semi_test_cfg')
        for key in ('sup_weight', 'unsup_weight'):
            check_weight(self.semi_train_cfg[key], f'semi_train_cfg.{key}')
        for key in ('unsup_begin', 'unsup_ramp'):
            check_count(self.semi_train_cfg[key], f'semi_train_cfg.{key}')
        check_choice(self.semi_test_cfg['predict_on'], (*self.MODELS_HELD, 'ensemble'), 'semi_test_cfg.predict_on')
        for name in self.MODELS_HELD:
            # A copy, since builders pop from what they are given; a ConfigDict, since mmseg reads `test_cfg.mode`.
            setattr(self, name, MODELS.build(ConfigDict(deepcopy(stock))))
        # Iterations trained so far, for what depends on time; in the checkpoint, so a resumed run goes on from there.
        self.register_buffer('iteration', torch.zeros((), dtype=torch.long))
        self._host_iteration: int | None = None
        self.recording = False
        self.record: Any = None
        self._register_load_state_dict_pre_hook(PlainCheckpointLoader(self, list(self.MODELS_HELD)))

    @classmethod
    def sub_models(cls, semi_train_cfg: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of the sub-models that a model with these options holds; the options may be incomplete."""
        return cls.MODELS_HELD

    @classmethod
    def default_predictor(cls, semi_train_cfg: Mapping[str, Any]) -> str:
        """The sub-model that predicts unless ``semi_test_cfg.predict_on`` says otherwise."""
        return cls.PREDICT_ON or cls.sub_models(semi_train_cfg)[0]

    @classmethod
    def required_branches(cls, semi_train_cfg: Mapping[str, Any]) -> tuple[str, ...]:
        """Branches that a batch must have for a model with these options, which may be incomplete."""
        return cls.REQUIRED_BRANCHES

    @classmethod
    def required_hooks(cls, semi_train_cfg: Mapping[str, Any]) -> tuple[str, ...]:
        """Types of the hooks that ``custom_hooks`` must hold for a model with these options."""
        return cls.REQUIRED_HOOKS

    @classmethod
    def branches_read(cls, model: Mapping[str, Any]) -> tuple[str, ...]:
        """Branches that a batch must have for a model of this config, which may be incomplete."""
        return cls.required_branches(options_in(model))

    @classmethod
    def hooks_needed(cls, model: Mapping[str, Any]) -> tuple[str, ...]:
        """Types of the hooks that ``custom_hooks`` must hold for a model of this config."""
        return cls.required_hooks(options_in(model))

    @property
    def models_held(self) -> list[nn.Module]:
        """The sub-models in the order of ``MODELS_HELD``."""
        return [getattr(self, name) for name in self.MODELS_HELD]

    @property
    def predictor(self) -> Any:
        """The sub-model that predicts (the first one for ``'ensemble'``)."""
        name = self.semi_test_cfg['predict_on']
        return self.models_held[0] if name == 'ensemble' else getattr(self, name)

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._host_iteration = None

    def named_supervised_losses(self, losses: dict[str, Tensor], student: str) -> dict[str, Tensor]:
        """Weight a student's supervised losses and give them their log keys, ``sup_<student>.<stock key>``."""
        return prefixed(scale_losses(losses, self.semi_train_cfg['sup_weight']), f'sup_{student}.')

    @property
    def iterations_done(self) -> int:
        """Iterations trained so far, the present one included once its weight was asked for."""
        if self._host_iteration is None:
            self._host_iteration = int(self.iteration)
        return self._host_iteration

    def restart_count(self) -> None:
        """Count iterations from 0, for a new run that started from the weights of another (``load_from``)."""
        self._host_iteration = 0
        self.iteration.zero_()

    def next_unsup_weight(self) -> float:
        """Count an iteration and return the weight of its unsupervised loss.

        It is 0 in the first ``unsup_begin`` iterations, rises linearly over the next ``unsup_ramp`` and then stays at
        ``semi_train_cfg.unsup_weight``.
        """
        cfg, iteration = self.semi_train_cfg, self.iterations_done
        # The buffer follows the host's number, so that no iteration waits for the GPU to read it.
        self._host_iteration = iteration + 1
        self.iteration.fill_(self._host_iteration)
        if iteration < cfg['unsup_begin']:
            return 0.0
        return cfg['unsup_weight'] * min(1.0, (iteration - cfg['unsup_begin'] + 1) / max(cfg['unsup_ramp'], 1))

    def loss(self, inputs: dict[str, Tensor], data_samples: dict[str, list[Any]]) -> dict[str, Any]:
        """Losses and statistics of one batch, by branch."""
        raise NotImplementedError(f'{type(self).__name__} must define `loss`')

    def parse_losses(self, losses: dict[str, Any]) -> tuple[Tensor, dict[str, Tensor]]:
        """Sum the losses, as mmengine does, and stop before the update if the sum is not finite.

        Raises:
            FloatingPointError: Names the losses that are not finite, and the iteration.
        """
        total, log_vars = super().parse_losses(losses)
        if not torch.isfinite(total):
            wrong = {
                name: value.item() for name, value in log_vars.items()
                if 'loss' in name and name != 'loss' and not torch.isfinite(value)
            }  # fmt: skip
            raise FloatingPointError(
                f'iteration {int(self.iteration)}: {wrong or dict(loss=total.item())} is not finite; stopped before '
                'the update, so the last checkpoint is good. Lower optim_wrapper.optimizer.lr or clip gradients '
                '(optim_wrapper.clip_grad)'
            )
        return total, log_vars

    def extract_feat(self, inputs: Tensor, **kwargs: Any) -> Any:
        """Features of the predicting sub-model."""
        return self.predictor.extract_feat(inputs, **kwargs)


def multi_branch_preprocessor(
    data_preprocessor: Any, stock: Any, kind: str, key: str
) -> MultiBranchDataPreprocessor:
    """The data preprocessor of a semi-supervised model.

    Args:
        data_preprocessor: What the model was given: a module, a config, or ``None`` for the stock model's own. Any but
            a :class:`MultiBranchDataPreprocessor` is wrapped in one: mmengine hands a config's top-level
            ``data_preprocessor``, which all stock configs have, to a model that has none.
        stock: Config of the stock model, which is checked first.
        kind: What it should be, for the message.
        key: Its key in the config, below ``model``.

    Raises:
        ValueError: If ``stock`` is no config.
    """
    if not isinstance(stock, Mapping) or 'type' not in stock:
        raise ValueError(f'model.{key} must be the config of {kind}, got {stock!r}')
    preprocessor = data_preprocessor or stock.get('data_preprocessor') or dict(type='BaseDataPreprocessor')
    if isinstance(preprocessor, Mapping):
        preprocessor = MODELS.build(ConfigDict(deepcopy(preprocessor)))
    if not isinstance(preprocessor, MultiBranchDataPreprocessor):
        preprocessor = MultiBranchDataPreprocessor(preprocessor)
    return preprocessor
