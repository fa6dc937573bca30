"""Builds mmssl: the package, its configs as real files inside it, and the copy that OpenMMLab's `mim` looks for."""

import os
import re
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
IGNORED = shutil.ignore_patterns('__pycache__', '*.py[cod]')

# The two sets of versions that the tests run on. They import under the same names (mmengine, mmcv, mmseg, mmpretrain),
# so neither may be in `install_requires`: pip would put one over the other.
ONEDL = ['onedl-mmengine==0.10.12', 'onedl-mmcv==2.3.6', 'onedl-mmsegmentation==1.4.2', 'onedl-mmpretrain==1.3.6']
OPENMMLAB = [
    'mmengine==0.10.7', 'mmcv==2.1.0', 'mmsegmentation==1.2.2', 'mmpretrain==1.2.0',
    'numpy<2',  # torch 2.1 is built against numpy 1
    'setuptools<81',  # mmengine 0.10.7 imports pkg_resources
    'opencv-python<4.11',  # later wheels need numpy 2
    'ftfy', 'regex',  # imported by mmsegmentation 1.2.2 but not declared by it
]  # yapf: disable


def version() -> str:
    """The version, read without importing the package."""
    return re.search(r"__version__ = '(.+)'", (ROOT / 'mmssl' / 'version.py').read_text(encoding='utf-8'))[1]


def config_files() -> list[str]:
    """Every file under mmssl/configs, relative to the package; in git that folder is a link to ../configs."""
    package = ROOT / 'mmssl'
    return [
        os.path.relpath(os.path.join(folder, name), package)
        for folder, _, names in os.walk(package / 'configs', followlinks=True) for name in names
        if '__pycache__' not in folder
    ]


class BuildPyWithMim(build_py):
    """Also writes ``mmssl/.mim``: configs, tools and the index of model files, where ``mim`` looks for them."""

    def run(self) -> None:
        """Build the modules, then put ``.mim`` beside them (beside the sources for an editable install)."""
        super().run()
        editable = getattr(self, 'editable_mode', False)
        package = ROOT / 'mmssl' if editable else Path(self.build_lib) / 'mmssl'
        mim = package / '.mim'
        shutil.rmtree(mim, ignore_errors=True)
        mim.mkdir(parents=True)
        for folder in ('configs', 'tools'):
            if editable:
                try:
                    (mim / folder).symlink_to(os.path.join('..', '..', folder), target_is_directory=True)
                    continue
                except OSError:  # Windows without the right to make links
                    pass
            shutil.copytree(ROOT / folder, mim / folder, ignore=IGNORED)
        metafiles = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / 'configs').rglob('metafile.yml'))
        lines = ['Import:', *(f'  - {path}' for path in metafiles)] if metafiles else ['Import: []']
        (mim / 'model-index.yml').write_text('\n'.join(lines) + '\n', encoding='utf-8')
        # A checkout on Windows holds the link as a small text file: copy the folder that it names instead.
        if not editable and not (ROOT / 'mmssl' / 'configs').is_dir():
            (package / 'configs').unlink(missing_ok=True)
            shutil.copytree(ROOT / 'configs', package / 'configs', ignore=IGNORED)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """The files written by :meth:`run`, so that installers which record them can remove them again."""
        outputs = super().get_outputs(include_bytecode)
        mim = Path(self.build_lib) / 'mmssl' / '.mim'
        return outputs + [str(path) for path in mim.rglob('*') if path.is_file()]


readme = ROOT / 'README.md'
setup(
    name='mmssl',
    version=version(),
    description='Learning from few, ambiguous or noisy labels, for OpenMMLab: segmentation and classification',
    long_description=readme.read_text(encoding='utf-8') if readme.exists() else '',
    long_description_content_type='text/markdown',
    license='Apache-2.0',
    python_requires='>=3.10',
    packages=find_packages(include=['mmssl', 'mmssl.*']),
    package_data={'mmssl': ['py.typed', *config_files()]},
    include_package_data=False,
    install_requires=['torch>=2.1', 'torchvision', 'numpy', 'packaging'],
    extras_require={
        'onedl': ONEDL,
        'openmmlab': OPENMMLAB,
        'test': ['pytest>=7.4', 'pytest-xdist', 'ruff>=0.17,<0.18', 'wheel'],
        'docs': ['sphinx>=7', 'myst-parser>=3'],
    },
    classifiers=[
        'Development Status :: 4 - Beta',
        'Intended Audience :: Science/Research',
        'Operating System :: POSIX',
        'Programming Language :: Python :: 3.10',
        'Programming Language :: Python :: 3.11',
        'Programming Language :: Python :: 3.12',
        'Programming Language :: Python :: 3.13',
        'Topic :: Scientific/Engineering :: Artificial Intelligence',
    ],
    cmdclass={'build_py': BuildPyWithMim},
    zip_safe=False,
)
