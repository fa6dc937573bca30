"""The tools on a classifier: training, evaluation of its checkpoint, and the export under stock mmpretrain."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('mmpretrain')
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmpretrain.registry import MODELS

REPO = Path(__file__).resolve().parents[2]

# Runs where importing mmssl and mmseg is impossible, as for a user of mmpretrain alone.
STOCK = """
import json, sys
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from mmengine.runner import Runner
from mmpretrain.apis import ImageClassificationInferencer, get_model
folder, name, image = sys.argv[1:]
config, weights = f'{folder}/{name}.py', f'{folder}/{name}.pth'
cfg = Config.fromfile(config)
cfg.work_dir, cfg.load_from = f'{folder}/stock', weights
runner = Runner.from_cfg(cfg)
runner.model.load_state_dict(torch.load(weights, weights_only=True)['state_dict'], strict=True)
for value in runner.model.parameters():
    value.data.fill_(float('nan'))  # the test has to load them by itself
result = dict(metrics=runner.test())
runner.model.eval()
with torch.no_grad():
    scores = [sample.pred_score for sample in runner.model.predict(torch.load(f'{folder}/inputs.pth'))]
torch.save(torch.stack(scores), f'{folder}/scores.pth')
(found,) = ImageClassificationInferencer(get_model(config, weights, device='cpu'))(image)
result['class'] = found['pred_class']
json.dump(result, open(f'{folder}/stock.json', 'w'))
assert not [name for name in sys.modules if name.split('.')[0] == 'mmssl']
"""


def load_tool(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f'{name}_tool', REPO / 'tools' / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name: str, *arguments: object) -> None:
    """Run a tool in this process; it has to succeed."""
    module = load_tool(name)
    function = getattr(module, 'export' if name == 'export_student' else name)
    assert module.run_tool(function, module.parse_args([str(argument) for argument in arguments])) == 0


def metric_in(folder: Path) -> float:
    (path,) = folder.glob('*/*.json')
    return json.loads(path.read_text())['accuracy/top1']


def test_training_evaluation_and_stock_evaluation_agree(
    classification_config: Callable, image_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With EMAHook: its average is what is logged, tested and exported."""
    monkeypatch.chdir(tmp_path)
    cfg = classification_config(
        hooks=[dict(type='EMAHook', momentum=0.3)], threshold=dict(type='mmssl.SelfAdaptiveThreshold', momentum=0.1)
    )
    (tmp_path / 'own.py').write_text(cfg.pretty_text)
    run('train', 'own.py', '--work-dir', 'work')
    (log,) = (tmp_path / 'work').glob('*/vis_data/scalars.json')
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    (logged,) = [entry['accuracy/top1'] for entry in entries if 'accuracy/top1' in entry and entry['step'] == 6]
    run('test', 'own.py', 'work/iter_6.pth', '--work-dir', 'tested')
    assert metric_in(tmp_path / 'tested') == pytest.approx(logged, abs=1e-6)

    run('export_student', 'work/iter_6.pth', '--out', 'out')
    init_default_scope('mmpretrain')
    model = MODELS.build(dict(cfg.model, data_preprocessor=cfg.data_preprocessor))
    model.load_state_dict(torch.load('work/iter_6.pth', weights_only=False)['state_dict'])
    images = torch.randn(3, 3, 16, 16)
    torch.save(images, 'out/inputs.pth')
    with torch.no_grad():
        expected = torch.stack([sample.pred_score for sample in model.eval().predict(images)])
    jobs = [dict(name='stock', code=STOCK, argv=['out', 'student', str(image_folder / 'val' / 'red' / '0.png')])]
    (tmp_path / 'jobs.json').write_text(json.dumps(dict(jobs=jobs, blocked=['mmssl', 'mmseg'])))
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', str(REPO / 'tests/run_forked.py'), 'jobs.json'], cwd=tmp_path,
        env=dict(os.environ, CUDA_VISIBLE_DEVICES=''), capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])['stock']
    assert result['rc'] == 0, result['output'][-3000:]
    stock = json.loads(Path('out/stock.json').read_text())
    assert stock['metrics']['accuracy/top1'] == pytest.approx(logged, abs=1e-6)
    assert stock['class'] in ('blue', 'green', 'red')
    assert torch.equal(torch.load('out/scores.pth'), expected)


def exported(tmp_path: Path, cfg: Config, *arguments: str) -> tuple[Config, dict]:
    """Export an untrained model of ``cfg``."""
    init_default_scope('mmpretrain')
    model = dict(cfg.model)
    model.setdefault('data_preprocessor', cfg.get('data_preprocessor'))
    state = MODELS.build(model).state_dict()
    torch.save(dict(meta=dict(cfg=cfg.pretty_text), state_dict=state), tmp_path / 'semi.pth')
    run('export_student', tmp_path / 'semi.pth', '--out', tmp_path / 'out', *arguments)
    (path,) = (tmp_path / 'out').glob('*.py')
    return Config.fromfile(path), torch.load(path.with_suffix('.pth'), weights_only=True)


def test_what_is_left_out(classification_config: Callable, tmp_path: Path) -> None:
    """Statistics of thresholds, losses of ours, and the student of a teacher that predicts."""
    cfg = classification_config(
        teacher='ema', threshold=dict(type='mmssl.FlexMatchThreshold', num_samples=5),
        alignment=dict(type='mmssl.DistributionAlignment'),
    )  # fmt: skip
    plain, checkpoint = exported(tmp_path, cfg)
    assert checkpoint['meta']['mmssl_student'] == 'teacher'
    assert {key.split('.')[0] for key in checkpoint['state_dict']} == {'backbone', 'head'}
    assert plain.model.type == 'ImageClassifier' and plain.model.data_preprocessor.mean == [127.5] * 3
    assert 'mmssl' not in (tmp_path / 'out' / 'teacher.py').read_text()
    assert checkpoint['meta']['dataset_meta']['classes'] == ['blue', 'green', 'red']


def test_layermatch_leaves_no_trace(classification_config: Callable, tmp_path: Path, monkeypatch: Any) -> None:
    """The averaged layer of a training stays behind, and so do both hooks."""
    monkeypatch.chdir(tmp_path)
    hooks = [dict(type='mmssl.GradReLUHook', layers=['head.fc']), dict(type='mmssl.EMAHeadHook', layer='head.fc')]
    cfg = classification_config(hooks=hooks, threshold=dict(type='mmssl.SelfAdaptiveThreshold'))
    (tmp_path / 'own.py').write_text(cfg.pretty_text)
    run('train', 'own.py', '--work-dir', 'work')
    trained = torch.load('work/iter_6.pth', weights_only=False)['state_dict']
    assert 'average_head.student.weight' in trained
    run('export_student', 'work/iter_6.pth', '--out', 'out')
    plain = torch.load('out/student.pth', weights_only=True)['state_dict']
    assert {f'student.{key}' for key in plain} == {key for key in trained if key.startswith('student.')}
    assert all(torch.equal(value, trained[f'student.{key}']) for key, value in plain.items())
    assert 'mmssl' not in Path('out/student.py').read_text()
    # Evaluation uses the classifier itself, and a model without the hook takes the checkpoint.
    run('test', 'own.py', 'work/iter_6.pth', '--work-dir', 'tested')


def test_stock_types_get_their_prefix(classification_config: Callable, tmp_path: Path) -> None:
    cfg = classification_config()
    cfg.pop('default_scope')
    cfg.model.classifier.type = 'mmpretrain.ImageClassifier'
    for part in ('backbone', 'neck', 'head'):
        cfg.model.classifier[part].type = f'mmpretrain.{cfg.model.classifier[part].type}'
    cfg.model.classifier.head.loss = dict(type='mmssl.SoftPseudoLabelLoss')
    for phase in ('val', 'test'):
        for name in (f'{phase}_dataloader', f'{phase}_evaluator', f'{phase}_cfg'):
            cfg.pop(name)
    cfg.data_preprocessor.type = 'mmpretrain.ClsDataPreprocessor'
    plain, _ = exported(tmp_path, cfg)
    assert plain.model.head.loss.type == 'mmpretrain.CrossEntropyLoss'
