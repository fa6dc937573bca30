"""``tools/export_student.py``: what it writes is a plain mmseg model, to the last bit, where no mmssl is installed."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS

REPO = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location('export_student', REPO / 'tools/export_student.py')
export_student = importlib.util.module_from_spec(spec)
spec.loader.exec_module(export_student)

# Runs where importing mmssl is impossible, as for a user who never installed it.
STOCK_USER = """
import json, sys
class NoMmssl:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] == 'mmssl':
            raise ModuleNotFoundError(f'{name} is blocked')
sys.meta_path.insert(0, NoMmssl())
import torch
from mmengine.config import Config
from mmengine.runner import Runner
config, weights, inputs, out, work_dir = sys.argv[1:]
cfg = Config.fromfile(config)
cfg.work_dir = work_dir
checkpoint = torch.load(weights, weights_only=True)
runner = Runner.from_cfg(cfg)
runner.model.load_state_dict(checkpoint['state_dict'], strict=True)
runner.model.eval()
with torch.no_grad():
    samples = runner.model.predict(torch.load(inputs, weights_only=True))
torch.save([sample.seg_logits.data for sample in samples], out)
metrics = runner.test() if cfg.get('test_dataloader') else {}
print('RESULT', json.dumps({key: float(value) for key, value in metrics.items()}))
assert not [name for name in sys.modules if name.split('.')[0] == 'mmssl']
"""


def segmentor(num_classes: int = 4, **head: Any) -> dict[str, Any]:
    return dict(
        type='EncoderDecoder',
        data_preprocessor=dict(type='SegDataPreProcessor', mean=[0.] * 3, std=[1.] * 3, bgr_to_rgb=True, size=(40, 48)),
        backbone=dict(type='ResNetV1c', depth=18, stem_channels=8, base_channels=8, num_stages=4,
                      init_cfg=dict(type='Pretrained', checkpoint='/no/such/file.pth')),
        decode_head=dict(type='FCNHead', in_channels=64, channels=8, num_convs=1, num_classes=num_classes,
                         loss_decode=dict(type='CrossEntropyLoss')) | head,
        train_cfg=dict(), test_cfg=dict(mode='whole'))  # yapf: disable


def config(data: SimpleNamespace, **model: Any) -> Config:
    pipeline = [dict(type='LoadImageFromFile'), dict(type='Resize', scale=(48, 40), keep_ratio=False),
                dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
    loader = dict(
        batch_size=1, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False),
        dataset=dict(type='BaseSegDataset', data_root=str(data.root), img_suffix=data.img_suffix,
                     metainfo=dict(classes=data.classes, palette=data.palette), pipeline=pipeline,
                     data_prefix=dict(img_path='img_dir/val', seg_map_path='ann_dir/val')))  # yapf: disable
    preprocessor = dict(type='SegDataPreProcessor', mean=[120.] * 3, std=[60.] * 3, bgr_to_rgb=True, size=(40, 48))
    return Config(dict(
        default_scope='mmseg',
        custom_imports=dict(imports=['mmssl'], allow_failed_imports=False),
        model=dict(
            type='mmssl.CrossPseudoSupervision', segmentor=segmentor(),
            data_preprocessor=dict(type='mmssl.MultiBranchDataPreprocessor', data_preprocessor=preprocessor),
            semi_train_cfg=dict(unsup_loss=dict(type='mmssl.FPLLoss')),
            semi_test_cfg=dict(predict_on='student2')) | model,
        custom_hooks=[dict(type='mmssl.FPLDiagnosticsHook')],
        test_dataloader=loader, val_dataloader=loader,
        test_evaluator=[dict(type='IoUMetric', iou_metrics=['mIoU']), dict(type='mmssl.PseudoLabelQuality')],
        val_evaluator=dict(type='IoUMetric', iou_metrics=['mIoU']),
        test_cfg=dict(type='TestLoop'), val_cfg=dict(type='ValLoop')))  # yapf: disable


def build_stock(model: dict[str, Any]) -> torch.nn.Module:
    with MODELS.switch_scope_and_registry('mmseg') as registry:
        return registry.build(Config(dict(model=model)).model)


def save(folder: Path, cfg: Config, names: tuple[str, ...] = ('student1', 'student2')) -> dict[str, torch.nn.Module]:
    """Write ``config.py`` and ``semi.pth`` with different students, as a training run leaves them."""
    students = {name: build_stock(segmentor()) for name in names}
    state = {'step': torch.zeros(1), 'mix.count': torch.zeros(1)}
    for name, student in students.items():
        for key, value in student.state_dict().items():
            noise = torch.randn_like(value) * 0.1 if value.is_floating_point() else 0
            student.state_dict()[key].copy_(value + abs(noise) if 'running_var' in key else value + noise)
        state.update({f'{name}.{key}': value for key, value in student.state_dict().items()})
    meta = dict(dataset_meta=dict(classes=('a', 'b'), palette=[[0, 0, 0]], odd=object()), iter=7, cfg=cfg.pretty_text)
    torch.save(dict(state_dict=state, meta=meta, optimizer=dict(x=1)), folder / 'semi.pth')
    cfg.dump(folder / 'config.py')
    return {name: student.eval() for name, student in students.items()}


def run(folder: Path, *extra: str) -> None:
    export_student.export(export_student.parse_args(
        [str(folder / 'semi.pth'), '--config', str(folder / 'config.py'), '--out', str(folder / 'out'), *extra]))


@pytest.mark.parametrize('student', ['student1', 'student2'])
def test_a_stock_user_gets_the_same_predictions(student: str, tmp_path: Path,
                                                segmentation_data: SimpleNamespace) -> None:
    cfg = config(segmentation_data)
    students = save(tmp_path, cfg)
    run(tmp_path, '--student', student)
    images = torch.randn(2, 3, 40, 48)
    torch.save(images, tmp_path / 'inputs.pth')
    names = (f'out/{student}.py', f'out/{student}.pth', 'inputs.pth', 'logits.pth', 'work')
    env = {key: value for key, value in os.environ.items() if key != 'PYTHONPATH'}
    command = [sys.executable, '-c', STOCK_USER, *(str(tmp_path / name) for name in names)]
    process = subprocess.run(command, cwd=tmp_path, env=env,
                             capture_output=True, text=True)  # yapf: disable
    assert process.returncode == 0, process.stderr[-2000:]
    with torch.no_grad():
        expected = students[student].predict(images)
    for ours, theirs in zip(expected, torch.load(tmp_path / 'logits.pth', weights_only=True), strict=True):
        assert torch.equal(ours.seg_logits.data, theirs)
    metrics = json.loads(process.stdout.split('RESULT ')[1].splitlines()[0])
    assert 0 <= metrics['mIoU'] <= 100


def test_evaluation_of_the_semi_model_equals_that_of_its_student(tmp_path: Path,
                                                                 segmentation_data: SimpleNamespace) -> None:
    from mmengine.runner import Runner
    cfg = config(segmentation_data)
    cfg.test_evaluator = cfg.val_evaluator
    save(tmp_path, cfg)
    cfg.load_from, cfg.work_dir = str(tmp_path / 'semi.pth'), str(tmp_path / 'semi_work')
    runner = Runner.from_cfg(cfg)
    metrics = runner.test()
    images = torch.randn(2, 3, 40, 48)
    torch.save(images, tmp_path / 'inputs.pth')
    with torch.no_grad():
        expected = runner.model.eval().predict(images)
    run(tmp_path)
    names = ('out/student2.py', 'out/student2.pth', 'inputs.pth', 'logits.pth', 'work')
    command = [sys.executable, '-c', STOCK_USER, *(str(tmp_path / name) for name in names)]
    env = {key: value for key, value in os.environ.items() if key != 'PYTHONPATH'}
    process = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr[-2000:]
    assert json.loads(process.stdout.split('RESULT ')[1].splitlines()[0]) == {
        key: pytest.approx(float(value), abs=0) for key, value in metrics.items()
    }
    for ours, theirs in zip(expected, torch.load(tmp_path / 'logits.pth', weights_only=True), strict=True):
        assert torch.equal(ours.seg_logits.data, theirs)


def test_checkpoint_and_config_hold_nothing_of_ours(tmp_path: Path, segmentation_data: SimpleNamespace) -> None:
    students = save(tmp_path, config(segmentation_data))
    run(tmp_path)  # predict_on is student2
    checkpoint = torch.load(tmp_path / 'out/student2.pth', weights_only=True)
    expected = students['student2'].state_dict()
    assert set(checkpoint['state_dict']) == set(expected)
    assert all(torch.equal(checkpoint['state_dict'][key], expected[key]) for key in expected)
    assert checkpoint['meta']['dataset_meta'] == dict(classes=['a', 'b'], palette=[[0, 0, 0]], odd=None)
    assert set(checkpoint) == {'meta', 'state_dict'} and checkpoint['meta']['iter'] == 7
    text = (tmp_path / 'out/student2.py').read_text()
    assert 'mmssl' not in text and '/no/such/file' not in text
    cfg = Config.fromfile(tmp_path / 'out/student2.py')
    assert cfg.model.type == 'EncoderDecoder' and cfg.default_scope == 'mmseg'
    # the numbers that evaluation used: those of the wrapper, not those of the segmentor inside
    assert cfg.model.data_preprocessor.mean == [120.] * 3
    assert cfg.test_evaluator == [dict(type='IoUMetric', iou_metrics=['mIoU'])]
    assert cfg.test_pipeline == cfg.test_dataloader.dataset.pipeline
    assert not [path.name for path in (tmp_path / 'out').iterdir() if path.name.startswith('.')]


def test_the_config_in_the_checkpoint_serves_too(tmp_path: Path, segmentation_data: SimpleNamespace) -> None:
    save(tmp_path, config(segmentation_data))
    export_student.export(export_student.parse_args([str(tmp_path / 'semi.pth'), '--out', str(tmp_path / 'x.pth')]))
    assert (tmp_path / 'x.pth').is_file() and (tmp_path / 'x.py').is_file()


def test_a_teacher_is_exported_by_name(tmp_path: Path, segmentation_data: SimpleNamespace) -> None:
    teacher = save(tmp_path, config(segmentation_data), names=('student', 'teacher'))['teacher']
    run(tmp_path, '--student', 'teacher')
    state = torch.load(tmp_path / 'out/teacher.pth', weights_only=True)['state_dict']
    assert torch.equal(state['decode_head.conv_seg.weight'], teacher.decode_head.conv_seg.weight)


def test_losses_of_ours_are_taken_out(tmp_path: Path, segmentation_data: SimpleNamespace) -> None:
    ours = dict(type='mmssl.ADRLoss')
    save(tmp_path, config(segmentation_data, segmentor=segmentor(loss_decode=[dict(type='DiceLoss'), ours])))
    run(tmp_path)
    assert Config.fromfile(tmp_path / 'out/student2.py').model.decode_head.loss_decode == [dict(type='DiceLoss')]
    save(tmp_path, config(segmentation_data, segmentor=segmentor(loss_decode=ours)))
    run(tmp_path, '--force')
    loss = Config.fromfile(tmp_path / 'out/student2.py').model.decode_head.loss_decode
    assert loss == dict(type='CrossEntropyLoss')


def test_existing_files_are_kept(tmp_path: Path, segmentation_data: SimpleNamespace) -> None:
    save(tmp_path, config(segmentation_data))
    run(tmp_path)
    before = (tmp_path / 'out/student2.pth').read_bytes()
    save(tmp_path, config(segmentation_data))
    with pytest.raises(FileExistsError, match=r'student2\.pth.*--force'):
        run(tmp_path)
    assert (tmp_path / 'out/student2.pth').read_bytes() == before
    run(tmp_path, '--force')
    assert (tmp_path / 'out/student2.pth').read_bytes() != before


def test_bad_input_names_what_is_wrong(tmp_path: Path, segmentation_data: SimpleNamespace) -> None:
    save(tmp_path, config(segmentation_data))
    with pytest.raises(ValueError, match=r"--student: .*'student3'.*student1, student2"):
        run(tmp_path, '--student', 'student3')
    with pytest.raises(FileNotFoundError, match='--config'):
        run(tmp_path, '--config', str(tmp_path / 'none.py'))
    with pytest.raises(FileNotFoundError, match='checkpoint'):
        export_student.export(export_student.parse_args([str(tmp_path / 'none.pth'), '--out', 'x']))
    config(segmentation_data, semi_test_cfg=dict(predict_on='ensemble')).dump(tmp_path / 'config.py')
    with pytest.raises(ValueError, match=r'predict_on.*ensemble.*student1, student2'):
        run(tmp_path)
    config(segmentation_data, segmentor=segmentor(num_classes=7)).dump(tmp_path / 'config.py')
    with pytest.raises(ValueError, match=r'--config: student2.*decode_head\.conv_seg'):
        run(tmp_path)
    config(segmentation_data, segmentor=segmentor(type='mmssl.OurHead')).dump(tmp_path / 'config.py')
    with pytest.raises(ValueError, match=r'model\.segmentor\.decode_head \(mmssl\.OurHead\)'):
        run(tmp_path)
    config(segmentation_data).dump(tmp_path / 'config.py')
    torch.save(dict(state_dict=build_stock(segmentor()).state_dict()), tmp_path / 'semi.pth')
    with pytest.raises(ValueError, match='plain checkpoint already'):
        run(tmp_path)
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize('kind, arguments, expected', [
    ('mmssl.CamVidDataset', {}, dict(type='BaseSegDataset')),
    ('mmssl.SplitSegDataset', dict(img_suffix=['.png'], metainfo=dict(classes=['a', 'b'])),
     dict(type='BaseSegDataset', img_suffix='.png', metainfo=dict(classes=['a', 'b']))),
    ('mmssl.VOCDataset', {}, dict(type='PascalVOCDataset')),
    ('mmssl.CityscapesDataset', {}, dict(type='CityscapesDataset')),
])  # yapf: disable
def test_data_sets_of_ours_become_stock_ones(kind: str, arguments: dict[str, Any], expected: dict[str, Any]) -> None:
    from mmseg.registry import DATASETS as STOCK

    from mmssl.registry import DATASETS
    ours = dict(type=kind, pipeline=[], data_prefix=dict(img_path='img', seg_map_path='ann'), **arguments)
    plain = export_student.plain_dataset(ours)
    assert expected.items() <= plain.items()
    if plain['type'] == 'PascalVOCDataset':  # which looks for its list at once
        return
    stock, own = STOCK.build(dict(plain, lazy_init=True)), DATASETS.build(dict(ours, lazy_init=True))
    for name in ('img_suffix', 'seg_map_suffix', 'reduce_zero_label', 'ignore_index'):
        assert getattr(stock, name) == getattr(own, name)
    assert list(stock.metainfo['classes']) == list(own.metainfo['classes'])
    assert 'palette' in arguments.get('metainfo', {}) or stock.metainfo['palette'] is not None


@pytest.mark.parametrize('text, message', [('# header\na\n', 'header'), ('a.jpg b.png\n', r'a\.jpg b\.png')])
def test_a_list_that_mmseg_would_misread_is_said(text: str, message: str, tmp_path: Path,
                                                 segmentation_data: SimpleNamespace,
                                                 capsys: pytest.CaptureFixture) -> None:
    (segmentation_data.root / 'list.txt').write_text(text)
    cfg = config(segmentation_data)
    cfg.test_dataloader.dataset.type = 'mmssl.SplitSegDataset'
    cfg.test_dataloader.dataset.ann_file = 'list.txt'
    with pytest.raises(ValueError, match=message):
        export_student.plain_dataset(cfg.test_dataloader.dataset)
    save(tmp_path, cfg)
    run(tmp_path)
    assert 'test_dataloader' in capsys.readouterr().err
    assert 'test_dataloader' not in Config.fromfile(tmp_path / 'out/student2.py')
