"""What the tools that look at a config share: reading it, with errors of one line that name the file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmengine.config import Config

from mmssl.utils.cli import check_options


def read_config(path: str, options: Mapping[str, Any] | None = None) -> Config:
    """Read a config and apply `--cfg-options`.

    Args:
        path: The file.
        options: Dotted keys and their values.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it cannot be read, or an option would change nothing.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f'config: no file {path!r}')
    try:
        cfg = Config.fromfile(path)
    except Exception as error:  # a config is a program, so anything can happen
        raise ValueError(f'config {path}: {type(error).__name__}: {one_line(error)}') from error
    if options:
        check_options(cfg, options)
        cfg.merge_from_dict(dict(options))
    return cfg


def one_line(error: BaseException) -> str:
    """The message of an error without line breaks; that of a KeyError without the quotes around it."""
    message = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return ' '.join(message.split()) or type(error).__name__
