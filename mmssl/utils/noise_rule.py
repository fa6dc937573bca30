"""Rules of label noise as a config or a command states them: checks, and the noisy labels that they give."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from mmssl.functional.label_noise import CIFAR10_CONFUSIONS, asymmetric_noise, symmetric_noise
from mmssl.utils.values import check_choice

KINDS = ('symmetric', 'asymmetric')


def check_noise(noise: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Values of a rule, with what is left out filled in.

    Args:
        noise: The rule.
        key: Config key, for messages.

    Raises:
        KeyError: An unknown key, or one that is missing.
        ValueError: A wrong value.
    """
    allowed = ('kind', 'rate', 'seed', 'confusions')
    unknown = sorted(set(noise) - set(allowed))
    if unknown:
        raise KeyError(f'{key} has {unknown}; allowed: {list(allowed)}')
    for name in ('kind', 'rate'):
        if name not in noise:
            raise KeyError(f'{key} lacks {name!r}; allowed: {list(allowed)}')
    check_choice(noise['kind'], KINDS, f'{key}.kind')
    seed = noise.get('seed', 123)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise ValueError(f'{key}.seed must be an integer >= 0, got {seed!r}')
    if (noise.get('confusions') is None) == (noise['kind'] == 'asymmetric'):
        raise ValueError(f"{key}.confusions goes with kind='asymmetric', and only with it; got "
                         f'kind={noise["kind"]!r}, confusions={noise.get("confusions")!r}')
    rate = exact_rate(noise['rate'], f'{key}.rate')
    return dict(kind=noise['kind'], rate=rate, seed=seed, confusions=noise.get('confusions'))


def exact_rate(value: Any, key: str) -> Fraction:
    """A share as it is written: 0.29 is 29/100, not the nearest binary number.

    Raises:
        ValueError: It is no number in [0, 1].
    """
    try:
        rate = None if isinstance(value, bool) else Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        rate = None
    if rate is None or not 0 <= rate <= 1:
        raise ValueError(f'{key} must be a number in [0, 1], got {value!r}')
    return rate


def make_noise(true: Sequence[int], num_classes: int, classes: Sequence[str] | None, noise: Mapping[str, Any],
               key: str) -> list[int]:
    """Noisy labels by a rule that :func:`check_noise` has seen.

    Args:
        true: True labels.
        num_classes: Number of classes.
        classes: Their names, if they have some.
        noise: The rule.
        key: Config key, for messages.

    Raises:
        ValueError: A class that does not exist.
    """
    if noise['kind'] == 'symmetric':
        if num_classes < 2:
            raise ValueError(f'{key}: with one class there is no other label')
        return symmetric_noise(true, num_classes, noise['rate'], noise['seed'])
    confusions = resolve_confusions(noise['confusions'], num_classes, classes, f'{key}.confusions')
    return asymmetric_noise(true, confusions, noise['rate'], noise['seed'])


def resolve_confusions(confusions: Any, num_classes: int, classes: Sequence[str] | None, key: str) -> dict[int, int]:
    """Class numbers of confusions that are given by name, by number, or as ``'cifar10'`` or ``'next'``.

    Raises:
        ValueError: A class that does not exist, or that is taken for itself.
    """
    if confusions == 'next':
        return {label: (label + 1) % num_classes for label in range(num_classes)}
    if confusions == 'cifar10':
        confusions = CIFAR10_CONFUSIONS
    if not isinstance(confusions, Mapping) or not confusions:
        raise ValueError(f"{key} must be 'cifar10', 'next' or a dict from class to class, got {confusions!r}")
    names = {name: number for number, name in enumerate(classes or [])}
    found = {}
    for pair in confusions.items():
        numbers = []
        for value in pair:
            number = names.get(value, value)
            number = int(number) if isinstance(number, str) and number.isdigit() else number
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < num_classes:
                raise ValueError(f'{key}: {value!r} is no class; allowed are 0 to {num_classes - 1}'
                                 + (f' and {list(classes)}' if classes and len(classes) <= 20 else ''))
            numbers.append(number)
        if numbers[0] == numbers[1]:
            raise ValueError(f'{key}: class {pair[0]!r} is taken for itself')
        found[numbers[0]] = numbers[1]
    return found
