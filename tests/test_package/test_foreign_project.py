"""Pieces of mmssl, taken by name into a project outside our tree, in every scope of OpenMMLab."""

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO_ROOT = Path(__file__).resolve().parents[2]

# A project that knows mmengine only. Its model is registered in the root registry, so every scope finds it.
OWN_MODEL = """
import torch
from mmengine.model import BaseModel
from mmengine.registry import DATASETS, MODELS


@DATASETS.register_module()
class OwnDataset(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return dict(inputs=torch.rand(3, 8, 8, generator=generator))


@MODELS.register_module()
class OwnModel(BaseModel):
    def __init__(self, unsup_loss):
        super().__init__()
        self.student = torch.nn.Conv2d(3, 5, 1)
        self.teacher = torch.nn.Conv2d(3, 5, 1)
        self.unsup_loss = MODELS.build(unsup_loss)

    def forward(self, inputs, mode='tensor'):
        return dict(unsup_loss=self.unsup_loss(self.student(inputs), self.teacher(inputs)))
"""

CONFIG = """
custom_imports = dict(imports=[{imports}], allow_failed_imports=False)
default_scope = {scope!r}
work_dir = 'out'
model = dict(type='OwnModel', unsup_loss=dict(type={loss!r}))
train_dataloader = dict(batch_size=4, num_workers=0, dataset=dict(type='OwnDataset'),
                        sampler=dict(type='DefaultSampler', shuffle=True), collate_fn=dict(type='default_collate'))
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1))
train_cfg = dict(by_epoch=True, max_epochs=1)
randomness = dict(seed=0)
"""


def run_python(code, cwd) -> str:
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(REPO_ROOT), str(cwd)])}
    result = subprocess.run([sys.executable, '-W', 'ignore', '-c', code], cwd=cwd, env=environment, capture_output=True,
                            text=True, timeout=200)  # yapf: disable
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize('scope, loss, imported', [
    ('mmengine', 'mmssl.FPLLoss', True),
    ('mmseg', 'mmssl.FPLLoss', True),
    ('mmpretrain', 'mmssl.FPLLoss', False),
    ('mmseg', 'mmssl.NegativeLearningLoss', False),
])
def test_a_stock_runner_trains_with_our_loss(tmp_path, scope, loss, imported):
    (tmp_path / 'own_model.py').write_text(OWN_MODEL)
    imports = "'mmssl', 'own_model'" if imported else "'own_model'"
    (tmp_path / 'config.py').write_text(CONFIG.format(imports=imports, scope=scope, loss=loss))
    run_python('from mmengine.config import Config\nfrom mmengine.runner import Runner\n'
               "Runner.from_cfg(Config.fromfile('config.py')).train()", tmp_path)
    assert (tmp_path / 'out' / 'epoch_1.pth').is_file()


@pytest.mark.parametrize('scope', ['mmengine', 'mmseg', 'mmpretrain'])
def test_every_registered_name_is_found(tmp_path, scope):
    surface = json.loads((REPO_ROOT / 'tests' / 'api_surface.json').read_text())
    names = {group: sorted(items) for group, items in surface.items() if group.isupper()}
    assert sum(map(len, names.values())) > 10
    output = run_python(f"""
import importlib
from mmengine.registry import init_default_scope
root, side = importlib.import_module('mmengine.registry'), importlib.import_module('{scope}.registry')
init_default_scope({scope!r})
for group, items in {names!r}.items():
    for name in items:
        for module in (root, side):
            assert not hasattr(module, group) or getattr(module, group).get('mmssl.' + name), (group, name)
print('all found')
""", tmp_path)
    assert 'all found' in output


def test_a_missing_library_is_named_when_a_piece_of_its_side_is_built(tmp_path):
    output = run_python("""
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == 'mmseg' else find_spec(name, *rest)
from mmengine.registry import MODELS
try:
    MODELS.build(dict(type='mmssl.CrossPseudoSupervision', segmentor=dict()))
except ImportError as error:
    print(error)
""", tmp_path)
    assert 'mmssl.CrossPseudoSupervision needs mmseg' in output and 'pip install onedl-mmsegmentation' in output


# What each config of the project must log, beside `mIoU`, or, of a classifier, its accuracy.
PROJECT = {
    'supervised': {'decode.loss_ce'},
    'ohem': {'decode.loss_ce', 'decode.loss_ohem'},
    'surgery': {'decode.loss_ce', 'aux.loss_ce', 'surgery_conflict', 'surgery_coefficient'},
    'adr': {'decode.loss_ce', 'decode.loss_adr'},
    'classifier_adr': {'part_cross_entropy', 'part_adr'},
    'two_sources': {'decode.loss_ce'},
    'own_method': {'decode.loss_ce', 'unsup_loss', 'mean_k'},
    'grad_relu': {'decode.loss_ce', 'unsup_loss', 'mean_k'},
    'grad_relu_by_name': {'decode.loss_ce', 'decode.loss_adr'},
    'cps': {'sup_student1.decode.loss_ce', 'unsup_loss', 'unsup_mean_k', 'unsup_pseudo_acc'},
    'mean_teacher': {'sup_student.decode.loss_ce', 'unsup_loss', 'student/mIoU', 'teacher/mIoU'},
    'no_scope': {'sup_student2.decode.loss_ce', 'unsup_loss'},
    'by_path': {'sup_student1.decode.loss_ce', 'unsup_loss', 'unsup_mean_k', 'unsup_pseudo_acc'},
    'by_config_path': {'sup_student1.decode.loss_ce', 'unsup_loss', 'unsup_mean_k', 'unsup_pseudo_acc'},
    'by_read_base': {'decode.loss_ce', 'unsup_loss', 'mean_k'},
}
# As mmseg's tools/train.py, without its options.
TRAIN = """
import sys
from pathlib import Path
assert 'mmssl' not in sys.modules
from mmengine.config import Config
from mmengine.runner import Runner
name, expected = sys.argv[1:]
cfg = Config.fromfile(f'configs/{name}.py')
cfg.work_dir = f'work_dirs/{name}'
Runner.from_cfg(cfg).train()
if name == 'supervised':
    assert 'mmssl' not in sys.modules
else:
    assert Path(sys.modules['mmssl'].__file__).resolve().parent == Path(expected).resolve()
"""


def foreign_project(folder, path_of_mmssl, vendored, names=tuple(PROJECT)):
    """A copy of the foreign project, and the command and environment that train the named configs of it.

    ``path_of_mmssl`` is put on the path, and ``vendored``, which holds ``configs``, beside the project's own files.
    """
    project = shutil.copytree(Path(__file__).with_name('foreign_project'), folder / 'project')
    (project / 'third_party').mkdir()
    (project / 'third_party' / 'mmssl').symlink_to(vendored)
    jobs = [dict(name=name, code=TRAIN, argv=[name, str(path_of_mmssl / 'mmssl')]) for name in names]
    preload = ['mmseg.apis', 'mmseg.models', 'mmseg.datasets', 'mmseg.engine', 'mmseg.evaluation', 'mmengine.runner']
    (folder / 'jobs.json').write_text(json.dumps(dict(preload=preload, jobs=jobs)))
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join([str(project), str(path_of_mmssl)]),
                   'CUDA_VISIBLE_DEVICES': ''}  # yapf: disable
    command = [sys.executable, '-W', 'ignore', str(REPO_ROOT / 'tests' / 'run_forked.py'), str(folder / 'jobs.json')]
    return project, command, environment


def check_project(project, result):
    assert result.returncode == 0, result.stderr
    for name, job in json.loads(result.stdout.splitlines()[-1]).items():
        assert job['rc'] == 0, f'{name}: {job["output"][-3000:]}'
        (path,) = (project / 'work_dirs' / name).glob('*/vis_data/scalars.json')
        entries = [json.loads(line) for line in path.read_text().splitlines()]
        losses = [entry for entry in entries if 'loss' in entry]
        assert len(losses) == 2 and all(math.isfinite(entry['loss']) for entry in losses)
        logged = set().union(*entries)
        metric = 'accuracy/top1' if name.startswith('classifier') else 'mIoU'
        assert PROJECT[name] | {metric} <= logged, f'{name}: {sorted(logged)}'
        assert (project / 'work_dirs' / name / 'iter_2.pth').is_file()


def test_a_foreign_project_trains_with_whole_configs_and_single_pieces(
        make_segmentation_data, tmp_path, read_base_finds_us):  # yapf: disable
    names = [name for name in PROJECT if name != 'by_read_base' or read_base_finds_us]
    project, command, environment = foreign_project(tmp_path, REPO_ROOT, REPO_ROOT, names)
    make_segmentation_data(project / 'data')
    check_project(project, subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True,
                                          timeout=1500))  # yapf: disable


@pytest.mark.slow
def test_the_foreign_project_trains_with_the_installed_wheel(make_segmentation_data, tmp_path):
    skipped = shutil.ignore_patterns('.git', '.venv*', 'build', 'dist', '*.egg-info', 'work_dirs', 'data', '.mim',
                                     '_build', '__pycache__', '.pytest_cache', '.ruff_cache')  # yapf: disable
    source = shutil.copytree(REPO_ROOT, tmp_path / 'source' / 'mmssl', symlinks=True, ignore=skipped)
    options = ['--no-deps', '--no-build-isolation', '--disable-pip-version-check', '-q', '--target']
    subprocess.run([sys.executable, '-m', 'pip', 'install', *options, str(tmp_path / 'installed'), str(source)],
                   cwd=tmp_path, check=True, timeout=300)  # yapf: disable
    installed = tmp_path / 'installed'
    project, command, environment = foreign_project(tmp_path, installed, installed / 'mmssl')
    make_segmentation_data(project / 'data')
    check_project(project, subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True,
                                          timeout=1500))  # yapf: disable
