"""Pieces of mmssl, taken by name into a project outside our tree, in every scope of OpenMMLab."""

import json
import os
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
