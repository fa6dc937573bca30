"""What every semi-supervised model shares, whatever the task: options, branches, and loading a plain checkpoint."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from mmengine.logging import print_log
from torch import Tensor, nn

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
            ValueError: If not one key fits the sub-models.
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
