"""Which OpenMMLab packages are installed, and whether their versions go together; imports none of them."""

import importlib.util
import os
import re
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from packaging.version import InvalidVersion, Version

# Import name -> name and version of the distribution, for the two sets of versions that the tests run on.
STACKS = {
    'onedl': {
        'mmengine': ('onedl-mmengine', '0.10.12'),
        'mmcv': ('onedl-mmcv', '2.3.6'),
        'mmseg': ('onedl-mmsegmentation', '1.4.2'),
        'mmpretrain': ('onedl-mmpretrain', '1.3.6'),
    },
    'openmmlab': {
        'mmengine': ('mmengine', '0.10.7'),
        'mmcv': ('mmcv', '2.1.0'),
        'mmseg': ('mmsegmentation', '1.2.2'),
        'mmpretrain': ('mmpretrain', '1.2.0'),
    },
}
# The names under which the libraries declare their range (`MMCV_MAX`, `mmcv_maximum_version`) in their `__init__.py`.
_BOUND = re.compile(r"^(mmcv|mmengine)_(min|max)(?:imum_version)? *= *'([^']+)'", re.IGNORECASE | re.MULTILINE)


def installed(module: str) -> dict[str, str]:
    """Version of ``module`` by stack: ``{}`` if absent, two entries if both distributions are installed."""
    found = {}
    for stack, distributions in STACKS.items():
        try:
            found[stack] = version(distributions[module][0])
        except PackageNotFoundError:
            continue
    return found


def source_of(module: str) -> Path | None:
    """The ``__init__.py`` of a package, found without importing it."""
    spec = importlib.util.find_spec(module)
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


def declared_ranges(source: str) -> dict[str, dict[str, str]]:
    """The versions that a library asserts at import, such as ``{'mmcv': {'min': '2.0.0rc4', 'max': '2.2.0'}}``.

    Args:
        source: Text of the library's ``__init__.py``.
    """
    ranges: dict[str, dict[str, str]] = {}
    for module, bound, value in _BOUND.findall(source):
        ranges.setdefault(module.lower(), {})[bound.lower()] = value
    return ranges


def check_stack() -> None:
    """Raise one sentence with the command to run if the OpenMMLab packages are missing or do not fit each other.

    Raises:
        ImportError: Without mmengine; if mmseg or mmpretrain refuses the installed mmcv or mmengine (they would fail
            at import, with an assertion that doesn't say what to install); or if mmengine needs ``pkg_resources`` and
            the installed setuptools no longer has it.
    """
    engine = source_of('mmengine')
    if engine is None:
        raise ImportError(
            "mmssl needs the OpenMMLab packages, which are not installed: run `pip install 'mmssl[onedl]'` for the "
            "maintained ones or `pip install 'mmssl[openmmlab]'` for the original ones")
    home = next(iter(installed('mmengine')), 'onedl')
    for module in STACKS[home]:
        if len(installed(module)) == 2:
            names = [distributions[module][0] for distributions in STACKS.values()]
            warnings.warn(
                f'{" and ".join(names)} are both installed and share the folder {module}: run `pip uninstall -y '
                f'{" ".join(names)}`, then `pip install {_pin(home, module)}`', stacklevel=3)
    for library in ('mmseg', 'mmpretrain'):
        source = source_of(library)
        if source is not None and source.is_file():
            _check_library(library, declared_ranges(source.read_text(encoding='utf-8')), home)
    if home == 'openmmlab' and importlib.util.find_spec('pkg_resources') is None:
        utils = engine.parent / 'utils' / 'package_utils.py'
        if utils.is_file() and 'pkg_resources' in utils.read_text(encoding='utf-8'):
            raise ImportError(f'mmengine {installed("mmengine")[home]} needs pkg_resources, which the installed '
                              "setuptools no longer has: run `pip install 'setuptools<81'`")


def _pin(stack: str, module: str) -> str:
    return '=='.join(STACKS[stack][module])


def _check_library(library: str, ranges: dict[str, dict[str, str]], home: str) -> None:
    library_stack = next(iter(installed(library)), home)
    for module, bounds in ranges.items():
        found = installed(module)
        stack = next(iter(found), None)
        if stack is None:
            continue
        try:
            current = Version(found[stack])
            low, high = Version(bounds.get('min', '0')), Version(bounds.get('max', '9999'))
        except InvalidVersion:
            continue
        if low <= current < high:
            continue
        name = STACKS[library_stack][library][0]
        # Of a pair from different stacks, change the one that isn't from mmengine's.
        if library_stack != stack and library_stack != home:
            remedy = f'`pip uninstall -y {name}`, then `pip install {_pin(home, library)}`'
        elif library_stack != stack:
            remedy = f'`pip uninstall -y {STACKS[stack][module][0]}`, then `pip install {_pin(home, module)}`'
        else:
            remedy = f'`pip install {_pin(stack, module)}`'
        raise ImportError(f'{name} {installed(library).get(library_stack, "")} works with {module} >= {low}, < {high}, '
                          f'but {STACKS[stack][module][0]} {current} is installed: run {remedy}')


def trust_checkpoints() -> None:
    """Let mmengine load the checkpoints that it writes, for our command-line tools.

    mmengine 0.10.7 stores its log history as objects, which ``torch.load`` of torch >= 2.6 refuses by default; the
    maintained mmengine copes by itself. This restores what mmengine 0.10.7 was written for: a checkpoint is trusted.
    """
    engine = installed('mmengine')
    if 'onedl' not in engine and Version(version('torch')) >= Version('2.6'):
        os.environ.setdefault('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
