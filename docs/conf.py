"""Settings of the documentation; `make docs` builds it."""

from pathlib import Path

project = 'mmssl'
author = 'The mmssl contributors'
copyright = 'the mmssl contributors'
release = (Path(__file__).parents[1] / 'mmssl' / 'version.py').read_text().split("__version__ = '")[1].split("'")[0]
extensions = ['myst_parser']
myst_enable_extensions = ['dollarmath', 'amsmath']
myst_heading_anchors = 3
exclude_patterns = ['_build']
html_theme = 'alabaster'
html_theme_options = {'description': 'Learning from few labels, for OpenMMLab', 'fixed_sidebar': True}
