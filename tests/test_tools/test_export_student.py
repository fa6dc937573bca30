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


def load(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


export_student = load('export_student', REPO / 'tools/export_student.py')
write_segmentation_data = load('shared_fixtures', REPO / 'tests/conftest.py').write_segmentation_data

# What both sides do with their model, so that every number can be compared.
PREDICT = """
import json, sys
import torch
from mmengine.config import Config
from mmengine.runner import Runner

def evaluate(runner, folder, name):
    metrics = {key: float(value) for key, value in runner.test().items()}
    runner.model.eval()
    with torch.no_grad():
        samples = runner.model.predict(torch.load(f'{folder}/inputs.pth'))
    torch.save([sample.seg_logits.data for sample in samples], f'{folder}/{name}_logits.pth')
    return metrics

def with_tta(cfg, weights, work_dir):  # as mmseg's tools/test.py does it
    cfg.test_dataloader.dataset.pipeline = cfg.tta_pipeline
    cfg.tta_model.module = cfg.model
    cfg.model = cfg.tta_model
    cfg.load_from, cfg.work_dir = weights, work_dir
    return {key: float(value) for key, value in Runner.from_cfg(cfg).test().items()}
"""
# The semi-supervised side: a model with weights of its own, its checkpoint and its evaluation.
OURS = PREDICT + """
from mmengine.dataset import Compose, pseudo_collate
folder = sys.argv[1]
cfg = Config.fromfile(f'{folder}/config.py')
cfg.work_dir, cfg.randomness = f'{folder}/ours', dict(seed=1)
runner = Runner.from_cfg(cfg)
for key, value in runner.model.state_dict().items():
    if value.is_floating_point():
        noise = torch.randn_like(value) * 0.1
        value += noise.abs() if 'running_var' in key else noise
torch.save(dict(meta=dict(cfg=cfg.pretty_text), state_dict=runner.model.state_dict()), f'{folder}/semi.pth')
torch.save(torch.randn(2, 3, 40, 48), f'{folder}/inputs.pth')
result = dict(metrics=evaluate(runner, folder, 'ours'))
if cfg.get('tta_pipeline'):
    result['tta'] = with_tta(Config.fromfile(f'{folder}/config.py'), f'{folder}/semi.pth', f'{folder}/ours_tta')
pipeline = [step for step in cfg.test_dataloader.dataset.pipeline if 'LoadAnnotations' not in step['type']]
with torch.no_grad():
    (sample,) = runner.model.test_step(pseudo_collate([Compose(pipeline)(dict(img_path=sys.argv[2]))]))
result['image'] = sample.pred_sem_seg.data.tolist()
json.dump(result, open(f'{folder}/ours.json', 'w'))
"""
# The stock side runs where importing mmssl is impossible, as for a user who never installed it.
STOCK = PREDICT + """
import mmseg.apis
folder, name, image = sys.argv[1:]
config, weights = f'{folder}/out/{name}.py', f'{folder}/out/{name}.pth'
cfg = Config.fromfile(config)
cfg.work_dir, cfg.load_from = f'{folder}/stock', weights
runner = Runner.from_cfg(cfg)
runner.model.load_state_dict(torch.load(weights, weights_only=True)['state_dict'], strict=True)
for value in runner.model.parameters():
    value.data.fill_(float('nan'))  # the test has to load them by itself
result = dict(metrics=evaluate(runner, folder, 'stock'))
if cfg.get('tta_pipeline'):
    result['tta'] = with_tta(Config.fromfile(config), weights, f'{folder}/stock_tta')
model = mmseg.apis.init_model(config, weights, device='cpu')
result['image'] = mmseg.apis.inference_model(model, image).pred_sem_seg.data.tolist()
result['dataset_meta'] = {key: model.dataset_meta[key] for key in ('classes', 'palette')}
json.dump(result, open(f'{folder}/stock.json', 'w'))
assert not [name for name in sys.modules if name.split('.')[0] == 'mmssl']
"""


def forked(folder: Path, **plan: Any) -> dict[str, dict[str, Any]]:
    """Run jobs with ``run_forked.py``; all have to succeed."""
    (folder / 'jobs.json').write_text(json.dumps(plan))
    environment = {**os.environ, 'PYTHONPATH': str(REPO), 'CUDA_VISIBLE_DEVICES': ''}
    process = subprocess.run([sys.executable, '-W', 'ignore', str(REPO / 'tests/run_forked.py'), 'jobs.json'],
                             cwd=folder, env=environment, capture_output=True, text=True, timeout=1500)  # yapf: disable
    assert process.returncode == 0, process.stderr
    results = json.loads(process.stdout.splitlines()[-1])
    for name, result in results.items():
        assert result['rc'] == 0, f'{name}: {result["output"][-3000:]}'
    return results


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
    torch.save(dict(state_dict=state, meta=meta, optimizer=dict(x=torch.zeros(10**6))), folder / 'semi.pth')
    cfg.dump(folder / 'config.py')
    return {name: student.eval() for name, student in students.items()}


def run(folder: Path, *extra: str) -> None:
    export_student.export(export_student.parse_args(
        [str(folder / 'semi.pth'), '--config', str(folder / 'config.py'), '--out', str(folder / 'out'), *extra]))


def slide(cfg: Config) -> None:
    cfg.model.segmentor.test_cfg = dict(mode='slide', crop_size=(24, 24), stride=(16, 16))


def cascade(cfg: Config) -> None:
    head = cfg.model.segmentor.decode_head
    cfg.model.segmentor.update(
        type='CascadeEncoderDecoder', num_stages=2,
        decode_head=[head, dict(type='OCRHead', in_channels=64, in_index=3, channels=8, ocr_channels=8, num_classes=4)],
        auxiliary_head=[dict(head, in_channels=32, in_index=2), dict(head, in_channels=16, in_index=1)])


def sync_bn(cfg: Config) -> None:
    norm = dict(type='SyncBN', requires_grad=True)
    for part in ('backbone', 'decode_head'):
        cfg.model.segmentor[part].norm_cfg = norm


def our_loss(cfg: Config) -> None:
    cfg.model.segmentor.decode_head.loss_decode = [
        dict(type='CrossEntropyLoss'), dict(type='mmssl.OHEMCrossEntropyLoss', loss_name='loss_ohem')]


def no_default_scope(cfg: Config) -> None:
    """As in a project whose scope is its own: every stock type with its prefix or inside a ``_scope_``."""
    cfg.pop('default_scope')
    cfg.model._scope_ = 'mmseg'
    for phase in ('val', 'test'):
        dataset = cfg[f'{phase}_dataloader'].dataset
        dataset.type = 'mmssl.SplitSegDataset'
        dataset.pipeline = [dict(step, type=f'mmseg.{step["type"]}') for step in dataset.pipeline]
    cfg.val_evaluator.type = 'mmseg.IoUMetric'
    cfg.test_evaluator = cfg.val_evaluator
    cfg.default_hooks = dict(visualization=dict(type='mmseg.SegVisualizationHook'))
    cfg.visualizer = dict(type='mmseg.SegLocalVisualizer', name='own')


def test_time_augmentation(cfg: Config) -> None:
    flips = [dict(type='RandomFlip', prob=float(prob), direction='horizontal') for prob in (0, 1)]
    cfg.tta_model = dict(type='SegTTAModel')
    cfg.tta_pipeline = [dict(type='LoadImageFromFile'), dict(type='TestTimeAug', transforms=[
        [dict(type='Resize', scale_factor=factor, keep_ratio=True) for factor in (0.75, 1.25)], flips,
        [dict(type='LoadAnnotations')], [dict(type='PackSegInputs')]])]  # yapf: disable


test_time_augmentation.__test__ = False
# Several changes in one case, since each case trains nothing but costs seconds.
CASES = {'student1': ([], 'student1'), 'slide': ([slide], 'student1'),
         'cascade, SyncBN, TTA': ([sync_bn, cascade, test_time_augmentation], 'student2'),
         'our loss, no default scope': ([our_loss, no_default_scope], 'student2')}  # yapf: disable


@pytest.fixture(scope='module')
def sides(tmp_path_factory: pytest.TempPathFactory) -> dict[str, SimpleNamespace]:
    """For every case, the files of the semi-supervised side and of the stock side, which had no mmssl."""
    root = tmp_path_factory.mktemp('sides')
    data = write_segmentation_data(root / 'data')
    image = str(data.root / 'img_dir' / 'val' / f'val_000{data.img_suffix}')
    folders = {name: root / name for name in CASES}
    for name, (changes, student) in CASES.items():
        folders[name].mkdir()
        cfg = config(data, semi_test_cfg=dict(predict_on=student))
        cfg.test_evaluator = cfg.val_evaluator
        for change in changes:
            change(cfg)
        cfg.dump(folders[name] / 'config.py')
    preload = ['mmseg.apis', 'mmseg.models', 'mmseg.datasets', 'mmseg.engine', 'mmseg.evaluation', 'mmengine.runner']
    forked(root, preload=preload, jobs=[
        dict(name=name, code=OURS, argv=[str(folder), image]) for name, folder in folders.items()])
    for folder in folders.values():
        export_student.export(export_student.parse_args([str(folder / 'semi.pth'), '--out', str(folder / 'out')]))
    forked(root, preload=preload, blocked=['mmssl'], jobs=[
        dict(name=name, code=STOCK, argv=[str(folder), CASES[name][1], image]) for name, folder in folders.items()])
    return {name: SimpleNamespace(
        folder=folder, data=data, student=CASES[name][1],
        ours=json.loads((folder / 'ours.json').read_text()), stock=json.loads((folder / 'stock.json').read_text()))
            for name, folder in folders.items()}  # yapf: disable


@pytest.mark.parametrize('case', CASES)
def test_a_stock_user_gets_the_same_predictions(case: str, sides: dict[str, SimpleNamespace]) -> None:
    side = sides[case]
    assert side.stock['metrics'] == side.ours['metrics'] and side.ours['metrics']['mIoU'] > 0
    ours, theirs = (torch.load(side.folder / f'{who}_logits.pth') for who in ('ours', 'stock'))
    assert all(torch.equal(*pair) for pair in zip(ours, theirs, strict=True)) and ours[0].std() > 0
    # mmseg's inference API knows classes and palette, though the checkpoint was written before any training
    assert side.stock['image'] == side.ours['image']
    assert side.stock['dataset_meta'] == dict(classes=side.data.classes, palette=side.data.palette)
    assert ('tta' in side.stock) == ('TTA' in case) and side.stock.get('tta') == side.ours.get('tta')
    text = (side.folder / 'out' / f'{side.student}.py').read_text()
    assert 'mmssl' not in text


def test_the_sides_differ_where_they_should(sides: dict[str, SimpleNamespace]) -> None:
    logits = {name: torch.load(side.folder / 'stock_logits.pth')[0] for name, side in sides.items()}
    assert not torch.equal(logits['student1'], logits['slide'])
    with_tta = sides['cascade, SyncBN, TTA'].stock
    assert with_tta['tta'] != with_tta['metrics']


def test_checkpoint_and_config_hold_nothing_of_ours(tmp_path: Path, segmentation_data: SimpleNamespace) -> None:
    students = save(tmp_path, config(segmentation_data))
    run(tmp_path)  # predict_on is student2
    checkpoint = torch.load(tmp_path / 'out/student2.pth', weights_only=True)
    expected = students['student2'].state_dict()
    assert set(checkpoint['state_dict']) == set(expected)
    assert all(torch.equal(checkpoint['state_dict'][key], expected[key]) for key in expected)
    assert checkpoint['meta']['dataset_meta'] == dict(classes=['a', 'b'], palette=[[0, 0, 0]], odd=None)
    assert set(checkpoint) == {'meta', 'state_dict'} and checkpoint['meta']['iter'] == 7
    assert checkpoint['state_dict']._metadata == expected._metadata
    torch.save(expected, tmp_path / 'weights.pth')  # nothing else is in the file: no optimizer, no other student
    assert (tmp_path / 'out/student2.pth').stat().st_size < 1.1 * (tmp_path / 'weights.pth').stat().st_size
    text = (tmp_path / 'out/student2.py').read_text()
    assert 'mmssl' not in text and '/no/such/file' not in text
    cfg = Config.fromfile(tmp_path / 'out/student2.py')
    assert cfg.model.type == 'EncoderDecoder' and cfg.default_scope == 'mmseg'
    # the numbers that evaluation used: those of the wrapper, not those of the segmentor inside
    assert cfg.model.data_preprocessor.mean == [120.] * 3
    assert cfg.test_evaluator == [dict(type='IoUMetric', iou_metrics=['mIoU'])]
    evaluated = cfg.test_dataloader.dataset.pipeline
    assert cfg.test_pipeline == [step for step in evaluated if step.type != 'LoadAnnotations']
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


def test_without_a_name_the_model_that_predicts_is_exported(tmp_path: Path, segmentation_data: SimpleNamespace) -> None:
    cfg = config(segmentation_data, type='mmssl.MeanTeacherSegmentor', semi_train_cfg={})
    del cfg.model['semi_test_cfg']
    save(tmp_path, cfg, names=('student', 'teacher'))
    run(tmp_path)
    assert [path.name for path in sorted((tmp_path / 'out').iterdir())] == ['teacher.pth', 'teacher.py']


def test_losses_of_ours_are_taken_out(tmp_path: Path, segmentation_data: SimpleNamespace) -> None:
    ours = dict(type='mmssl.ADRLoss')
    save(tmp_path, config(segmentation_data, segmentor=segmentor(loss_decode=[dict(type='DiceLoss'), ours])))
    run(tmp_path)
    assert Config.fromfile(tmp_path / 'out/student2.py').model.decode_head.loss_decode == [dict(type='DiceLoss')]
    save(tmp_path, config(segmentation_data, segmentor=segmentor(loss_decode=ours)))
    run(tmp_path, '--force')
    loss = Config.fromfile(tmp_path / 'out/student2.py').model.decode_head.loss_decode
    assert loss == dict(type='CrossEntropyLoss')


def test_the_inference_pipeline_is_the_evaluated_one(segmentation_data: SimpleNamespace) -> None:
    cfg = config(segmentation_data)
    cfg.test_pipeline = cfg.test_dataloader.dataset.pipeline
    cfg.merge_from_dict({'test_dataloader.dataset.pipeline.1.scale': (24, 20)})  # as --cfg-options do
    cfg.test_dataloader.dataset = dict(type='ConcatDataset', datasets=[cfg.test_dataloader.dataset])
    pipeline = export_student.plain_config(cfg)[0].test_pipeline
    assert [step.type for step in pipeline] == ['LoadImageFromFile', 'Resize', 'PackSegInputs']
    assert tuple(pipeline[1].scale) == (24, 20)
    cfg.pop('test_dataloader')
    assert tuple(export_student.plain_config(cfg)[0].test_pipeline[1].scale) == (48, 40)  # of the validation


def test_types_may_be_classes_and_scopes_may_be_ours(segmentation_data: SimpleNamespace) -> None:
    from mmssl.datasets import CamVidDataset
    from mmssl.models.segmentors import CrossPseudoSupervision
    cfg = config(segmentation_data, segmentor=dict(segmentor(), _scope_='mmssl'))
    cfg.model.type, cfg.test_dataloader.dataset.type = CrossPseudoSupervision, CamVidDataset
    cfg.custom_imports = dict(imports='mmssl')
    for as_text in (False, True):
        if as_text:  # what a dumped config holds instead of the classes
            cfg.model.type = 'mmssl.models.segmentors.cps.CrossPseudoSupervision'
            cfg.test_dataloader.dataset.type = 'mmssl.datasets.camvid_dataset.CamVidDataset'
        plain, left_out = export_student.plain_config(cfg)
        assert left_out == ['test_evaluator: metrics of mmssl'] and 'mmssl' not in plain.pretty_text
        assert plain.model.type == 'EncoderDecoder' and plain.test_dataloader.dataset.type == 'BaseSegDataset'
    cfg.model.segmentor = dict(_scope_='mmssl', type='CrossPseudoSupervision')
    with pytest.raises(ValueError, match=r'model\.segmentor \(CrossPseudoSupervision\)'):
        export_student.plain_config(cfg)


def test_loops_and_hooks_of_ours_are_replaced(segmentation_data: SimpleNamespace) -> None:
    cfg = config(segmentation_data)
    cfg.val_cfg = dict(type='mmssl.SubModelValLoop')
    cfg.default_hooks = dict(checkpoint=dict(type='mmssl.AtomicCheckpointHook'), timer=dict(type='IterTimerHook'))
    plain, left_out = export_student.plain_config(cfg)
    assert plain.val_cfg == dict(type='ValLoop', fp16=False) and plain.val_dataloader
    assert plain.default_hooks == dict(timer=dict(type='IterTimerHook'))
    assert left_out == ['test_evaluator: metrics of mmssl']


def test_another_config_than_the_trained_one_is_said(tmp_path: Path, segmentation_data: SimpleNamespace,
                                                     capsys: pytest.CaptureFixture) -> None:
    cfg = config(segmentation_data)
    cfg.model.segmentor.test_cfg = dict(mode='slide', crop_size=(24, 24), stride=(16, 16))  # as --cfg-options do
    save(tmp_path, cfg)
    config(segmentation_data).dump(tmp_path / 'config.py')  # the file, without them
    run(tmp_path)
    assert 'warning: --config: model.test_cfg.crop_size, model.test_cfg.mode' in capsys.readouterr().err
    assert Config.fromfile(tmp_path / 'out/student2.py').model.test_cfg.mode == 'whole'
    export_student.export(export_student.parse_args([str(tmp_path / 'semi.pth'), '--out', str(tmp_path / 'own')]))
    assert 'warning' not in capsys.readouterr().err
    assert Config.fromfile(tmp_path / 'own/student2.py').model.test_cfg.mode == 'slide'


def test_names_with_the_prefix_of_a_wrapper(tmp_path: Path, segmentation_data: SimpleNamespace,
                                            capsys: pytest.CaptureFixture) -> None:
    student = save(tmp_path, config(segmentation_data))['student2']
    content = torch.load(tmp_path / 'semi.pth', weights_only=False)
    content['state_dict'] = {f'module.{key}': value for key, value in content['state_dict'].items()}
    torch.save(dict(content, ema_state_dict={}), tmp_path / 'semi.pth')
    run(tmp_path)
    assert 'averages of EMAHook' in capsys.readouterr().err
    state = torch.load(tmp_path / 'out/student2.pth', weights_only=True)['state_dict']
    assert torch.equal(state['decode_head.conv_seg.weight'], student.decode_head.conv_seg.weight)


def test_what_is_exported_is_not_overwritten(tmp_path: Path, segmentation_data: SimpleNamespace) -> None:
    save(tmp_path, config(segmentation_data))
    before = (tmp_path / 'semi.pth').read_bytes()
    with pytest.raises(FileExistsError, match=r'--out: would overwrite .*semi\.pth'):
        run(tmp_path, '--out', str(tmp_path / 'semi.pth'), '--force')
    with pytest.raises(FileExistsError, match=r'--out: would overwrite .*config\.py'):
        run(tmp_path, '--out', str(tmp_path / 'config.pth'), '--force')
    with pytest.raises(NotADirectoryError, match=r"--out: .*semi\.pth' is a file"):
        run(tmp_path, '--out', str(tmp_path / 'semi.pth' / 'folder.pth'))
    assert (tmp_path / 'semi.pth').read_bytes() == before


def test_existing_files_are_kept(tmp_path: Path, segmentation_data: SimpleNamespace,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, config(segmentation_data))
    run(tmp_path)
    before = (tmp_path / 'out/student2.pth').read_bytes()
    save(tmp_path, config(segmentation_data))
    with pytest.raises(FileExistsError, match=r'student2\.pth.*--force'):
        run(tmp_path)
    with monkeypatch.context() as patch:  # a disk that is full at the last moment
        patch.setattr(os, 'fsync', lambda file: (_ for _ in ()).throw(OSError(28, 'No space left on device')))
        with pytest.raises(OSError, match='No space left'):
            run(tmp_path, '--force')
    assert (tmp_path / 'out/student2.pth').read_bytes() == before
    assert sorted(path.name for path in (tmp_path / 'out').iterdir()) == ['student2.pth', 'student2.py']
    run(tmp_path, '--force')
    assert (tmp_path / 'out/student2.pth').read_bytes() != before


def test_bad_input_names_what_is_wrong(tmp_path: Path, segmentation_data: SimpleNamespace) -> None:
    save(tmp_path, config(segmentation_data))
    with pytest.raises(ValueError, match=r"--student: .*'student3'.*student1, student2"):
        run(tmp_path, '--student', 'student3')
    with pytest.raises(FileNotFoundError, match='--config'):
        run(tmp_path, '--config', str(tmp_path / 'none.py'))
    (tmp_path / 'bad.py').write_text("custom_imports = dict(imports=['absent_project'], allow_failed_imports=False)")
    with pytest.raises(ValueError, match=r'--config: .*bad\.py cannot be read .*absent_project'):
        run(tmp_path, '--config', str(tmp_path / 'bad.py'))
    (tmp_path / 'bad.py').write_text('models = dict()')
    with pytest.raises(ValueError, match=r'--config: model is None'):
        run(tmp_path, '--config', str(tmp_path / 'bad.py'))
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


def training_config(data: SimpleNamespace) -> Config:
    """CPS for four iterations, validated twice, with the best checkpoint kept."""
    cfg = config(data, semi_test_cfg=dict(predict_on='student1'))
    branches, load = ['sup', 'unsup_weak'], [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
    cfg.train_dataloader = dict(
        batch_size=4, num_workers=0, sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1, 1]),
        dataset=dict(type='mmssl.MultiSourceDataset', sources=dict(
            labeled=dict(
                type='mmssl.SplitSegDataset', data_root=str(data.root), ann_file='splits/labeled.txt',
                metainfo=dict(classes=data.classes, palette=data.palette),
                data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'),
                pipeline=[*load, dict(type='mmssl.MultiBranch', branches=branches, sup=[dict(type='PackSegInputs')])]),
            unlabeled=dict(
                type='mmssl.UnlabeledImageDataset', data_root=str(data.root), ann_file='splits/unlabeled.txt',
                img_path='img_dir/train',
                pipeline=[load[0], dict(type='mmssl.MultiBranch', branches=branches,
                                        unsup_weak=[dict(type='PackSegInputs')])]))))  # yapf: disable
    del cfg.model.segmentor.backbone['init_cfg']
    cfg.val_cfg = dict(type='mmssl.SubModelValLoop')
    cfg.update(
        optim_wrapper=dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.05, momentum=0.9)),
        train_cfg=dict(type='IterBasedTrainLoop', max_iters=4, val_interval=2), test_evaluator=cfg.val_evaluator,
        default_hooks=dict(logger=dict(type='LoggerHook', interval=1, log_metric_by_epoch=False),
                           checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=2, save_best='mIoU')),
        log_processor=dict(by_epoch=False), randomness=dict(seed=0), custom_hooks=[])  # yapf: disable
    return cfg


def logged(work_dir: Path, key: str, step: int) -> float:
    """A metric that a training run wrote after so many iterations."""
    (path,) = work_dir.glob('*/vis_data/scalars.json')
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    (value,) = [entry[key] for entry in entries if key in entry and entry['step'] == step]
    return value


@pytest.mark.slow
@pytest.mark.dist
def test_training_evaluation_and_stock_evaluation_agree(tmp_path: Path, segmentation_data: SimpleNamespace) -> None:
    """A run's last and best metric, ``tools/test.py`` on its checkpoint, and the export under stock mmseg."""
    cps = training_config(segmentation_data)
    ema = training_config(segmentation_data)
    ema.custom_hooks = [dict(type='EMAHook', momentum=0.3)]
    teacher = training_config(segmentation_data)
    teacher.model = dict(
        type='mmssl.MeanTeacherSegmentor', segmentor=cps.model.segmentor, data_preprocessor=cps.model.data_preprocessor,
        semi_train_cfg=dict(strong_branches=['unsup_weak']))  # yapf: disable
    teacher.custom_hooks = [dict(type='mmssl.MeanTeacherHook', momentum=0.3)]
    for name, cfg in dict(cps=cps, ema=ema, teacher=teacher).items():
        cfg.dump(tmp_path / f'{name}.py')
    tools = {name: str(REPO / 'tools' / f'{name}.py') for name in ('train', 'test', 'export_student')}
    jobs = [dict(name=f'train {name}', script=tools['train'], argv=[f'{name}.py', '--work-dir', name])
            for name in ('cps', 'ema', 'teacher')]  # yapf: disable
    forked(tmp_path, preload=['mmseg.apis'], jobs=jobs)
    process = subprocess.run(
        ['bash', str(REPO / 'tools/dist_train.sh'), 'cps.py', '2', '--work-dir', 'ddp'], cwd=tmp_path,
        env={**os.environ, 'PYTHON': sys.executable, 'CUDA_VISIBLE_DEVICES': ''}, capture_output=True, text=True,
        timeout=1500)  # yapf: disable
    assert process.returncode == 0, process.stderr[-3000:]

    (best,) = (tmp_path / 'cps').glob('best_mIoU_iter_*.pth')
    # name -> (config, checkpoint, sub-model, what was logged for it)
    step = int(best.stem.rpartition('_')[2])
    cases = {
        'cps': ('cps.py', 'cps/iter_4.pth', 'student1', logged(tmp_path / 'cps', 'mIoU', 4)),
        'best': ('cps.py', f'cps/{best.name}', 'student1', logged(tmp_path / 'cps', 'mIoU', step)),
        'other': ('cps.py', 'cps/iter_4.pth', 'student2', logged(tmp_path / 'cps', 'student2/mIoU', 4)),
        'ema': ('ema.py', 'ema/iter_4.pth', 'student1', logged(tmp_path / 'ema', 'student1/mIoU', 4)),
        'teacher': ('teacher.py', 'teacher/iter_4.pth', 'teacher', logged(tmp_path / 'teacher', 'mIoU', 4)),
        'student': ('teacher.py', 'teacher/iter_4.pth', 'student', logged(tmp_path / 'teacher', 'student/mIoU', 4)),
        'ddp': ('cps.py', 'ddp/iter_4.pth', 'student2', logged(tmp_path / 'ddp', 'student2/mIoU', 4)),
    }
    jobs = []
    for name, (path, checkpoint, student, _) in cases.items():
        option = f'model.semi_test_cfg.predict_on={student}'
        jobs += [dict(name=f'test {name}', script=tools['test'],
                      argv=[path, checkpoint, '--work-dir', f'test_{name}', '--cfg-options', option]),
                 dict(name=f'export {name}', script=tools['export_student'],
                      argv=[checkpoint, '--out', f'{name}/out', '--student', student])]  # yapf: disable
    forked(tmp_path, preload=['mmseg.apis'], jobs=jobs)
    image = str(segmentation_data.root / 'img_dir/val/val_000.jpg')
    for name in cases:
        (tmp_path / name).mkdir(exist_ok=True)
        torch.save(torch.randn(1, 3, 40, 48), tmp_path / name / 'inputs.pth')
    jobs = [dict(name=f'stock {name}', code=STOCK, argv=[name, case[2], image]) for name, case in cases.items()]
    forked(tmp_path, preload=['mmseg.apis'], blocked=['mmssl'], jobs=jobs)
    for name, (_, checkpoint, student, expected) in cases.items():
        (path,) = (tmp_path / f'test_{name}').glob('*/*.json')
        tested = json.loads(path.read_text())
        stock = json.loads((tmp_path / name / 'stock.json').read_text())
        assert stock['metrics']['mIoU'] == pytest.approx(tested['mIoU'], abs=1e-6), name
        assert tested['mIoU'] == pytest.approx(expected, abs=1e-6), name
        assert stock['dataset_meta']['classes'] == segmentation_data.classes
        exported = tmp_path / name / 'out' / f'{student}.pth'
        assert exported.stat().st_size < 0.5 * (tmp_path / checkpoint).stat().st_size
    weights = {name: torch.load(tmp_path / name / 'out' / f'{student}.pth', weights_only=True)['state_dict']
               for name, (*_, student, _) in cases.items()}  # yapf: disable
    for first, second in (('cps', 'other'), ('cps', 'ema'), ('other', 'ddp'), ('student', 'teacher')):
        key = 'decode_head.conv_seg.weight'
        assert not torch.equal(weights[first][key], weights[second][key])
