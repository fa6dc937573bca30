"""``tools/train.py`` and ``tools/test.py``: what they do, and how they fail."""

import hashlib
import importlib.util
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mmengine.logging import MMLogger
from mmengine.optim import build_optim_wrapper

REPO_ROOT = Path(__file__).resolve().parents[2]

CONFIG = """
default_scope = 'mmseg'
data_root = {root!r}
classes = {classes!r}
palette = {palette!r}
num_classes = len(classes)
dataset = dict(type='BaseSegDataset', data_root=data_root, metainfo=dict(classes=classes, palette=palette))
preprocessor = dict(type='SegDataPreProcessor', mean=[127.] * 3, std=[60.] * 3, bgr_to_rgb=True, size=(40, 48),
                    pad_val=0, seg_pad_val=255)
model = dict(
    type='EncoderDecoder',
    data_preprocessor=preprocessor,
    backbone=dict(type='ResNetV1c', depth=18, stem_channels=8, base_channels=8, num_stages=4, out_indices=(0, 1, 2, 3),
                  norm_eval=False, style='pytorch', norm_cfg=dict(type='BN')),
    decode_head=dict(type='FCNHead', in_channels=64, in_index=3, channels=16, num_convs=1, num_classes=num_classes,
                     concat_input=False, norm_cfg=dict(type='BN')),
    train_cfg=dict(), test_cfg=dict(mode='whole'))
train_pipeline = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
test_pipeline = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'), dict(type='PackSegInputs')]
train_dataloader = dict(
    batch_size=2, num_workers=0, sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'), pipeline=train_pipeline,
                 **dataset))
val_dataloader = dict(
    batch_size=1, num_workers=0, sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(data_prefix=dict(img_path='img_dir/val', seg_map_path='ann_dir/val'), pipeline=test_pipeline,
                 **dataset))
test_dataloader = val_dataloader
val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
optim_wrapper = dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.01, momentum=0.9))
train_cfg = dict(type='IterBasedTrainLoop', max_iters=4, val_interval=4)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
default_hooks = dict(
    logger=dict(type='LoggerHook', interval=1, log_metric_by_epoch=False),
    checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=2),
    visualization=dict(type='SegVisualizationHook'))
visualizer = dict(type='SegLocalVisualizer', vis_backends=[dict(type='LocalVisBackend')], name='visualizer')
log_processor = dict(by_epoch=False)
randomness = dict(seed=0)
tta_model = dict(type='SegTTAModel')
tta_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='TestTimeAug', transforms=[[dict(type='RandomFlip', prob=0., direction='horizontal'),
                                          dict(type='RandomFlip', prob=1., direction='horizontal')],
                                         [dict(type='LoadAnnotations')], [dict(type='PackSegInputs')]])]
"""


@pytest.fixture
def project(segmentation_data, tmp_path, monkeypatch):
    """A folder with ``config.py`` for a small data set, and the current directory."""
    data = segmentation_data
    (tmp_path / 'config.py').write_text(CONFIG.format(root=str(data.root), classes=data.classes, palette=data.palette))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load_tool(name):
    spec = importlib.util.spec_from_file_location(f'{name}_tool', REPO_ROOT / 'tools' / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name, *arguments, env=None) -> subprocess.CompletedProcess:
    """Run a tool as a user does."""
    paths = f'{REPO_ROOT}{os.pathsep}{os.environ.get("PYTHONPATH", "")}'
    return subprocess.run([sys.executable, str(REPO_ROOT / 'tools' / f'{name}.py'), *map(str, arguments)],
                          env={**os.environ, 'PYTHONPATH': paths, 'CUDA_VISIBLE_DEVICES': '', **(env or {})},
                          capture_output=True, text=True, timeout=300)  # yapf: disable


def fails(capsys, tool, *arguments) -> str:
    """Run a tool in this process, and return the single line on stderr that it must end with."""
    module = load_tool(tool)
    try:
        code = module.run_tool(getattr(module, tool), module.parse_args([str(argument) for argument in arguments]))
    except SystemExit as error:
        code = error.code
    lines = [line for line in capsys.readouterr().err.splitlines() if ' error: ' in line]
    assert code == 2
    assert len(lines) == 1
    return lines[0]


def contents(folder) -> dict[str, str]:
    return {str(path.relative_to(folder)): hashlib.sha1(path.read_bytes()).hexdigest()
            for path in folder.rglob('*') if path.is_file()}  # yapf: disable


def scalars(work_dir) -> list[dict]:
    """All logged values of the newest run."""
    path = max(Path(work_dir).glob('*/vis_data/scalars.json'))
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_train_resume_and_test(project, capsys):
    first = run('train', 'config.py', '--work-dir', 'out')
    assert first.returncode == 0, first.stderr
    assert {'iter_2.pth', 'iter_4.pth', 'last_checkpoint', 'config.py'} <= {path.name for path in Path('out').iterdir()}
    assert 'eta: ' in first.stdout + first.stderr

    before = contents(project / 'out')
    message = fails(capsys, 'train', 'config.py', '--work-dir', 'out')
    assert "work_dir: 'out' holds checkpoints of an earlier run" in message
    assert '--resume' in message and '--work-dir' in message
    assert contents(project / 'out') == before

    more = ('--cfg-options', 'train_cfg.max_iters=6', 'train_cfg.val_interval=6')
    second = run('train', 'config.py', '--work-dir', 'out', '--resume', *more)
    assert second.returncode == 0, second.stderr
    assert [entry['step'] for entry in scalars('out') if 'loss' in entry] == [5, 6]
    assert {name: value for name, value in contents(project / 'out').items() if name in before and '.pth' in name} == {
        name: value for name, value in before.items() if '.pth' in name}  # yapf: disable

    # The metric of the saved checkpoint is the one that was logged when it was made.
    logged = [entry['mIoU'] for entry in scalars('out') if 'mIoU' in entry][-1]
    tested = run('test', 'config.py', 'out/iter_6.pth', '--work-dir', 'eval', '--out', 'masks', '--show-dir', 'shown')
    assert tested.returncode == 0, tested.stderr
    written = json.loads(max(Path('eval').glob('*/*.json')).read_text())
    assert written['mIoU'] == pytest.approx(logged, abs=1e-6)
    assert {path.name for path in Path('masks').iterdir()} == {f'val_00{i}.png' for i in range(4)}
    assert list(Path('shown').rglob('*.png'))

    resumed = [line for line in second.stderr.splitlines() if 'warning: --resume' in line]
    assert resumed[0] == 'warning: --resume: train_cfg.max_iters was 4 in the interrupted run and is 6 now'
    assert 'warning: --resume: train_dataloader.dataset is a BaseSegDataset' in resumed[1] and len(resumed) == 2

    # A moved work dir still resumes, though `last_checkpoint` holds the old path. Other images need a permission.
    Path('out').rename('moved')
    command = ('config.py', '--work-dir', 'moved', '--resume', '--cfg-options', 'train_cfg.max_iters=7',
               'train_dataloader.batch_size=3', 'randomness.seed=1')  # yapf: disable
    before = contents(project / 'moved')
    message = fails(capsys, 'train', *command)
    assert '--resume: randomness.seed was 0 in the interrupted run and is 1 now; train_dataloader.batch_size' in message
    assert '--allow-changes' in message
    assert contents(project / 'moved') == before
    third = run('train', *command, '--allow-changes')
    assert third.returncode == 0, third.stderr
    assert 'warning: --resume: train_dataloader.batch_size was 2 in the interrupted run and is 3 now' in third.stderr
    assert 'warning: --resume: randomness.seed was 0 in the interrupted run and is 1 now' in third.stderr
    assert [entry['step'] for entry in scalars('moved') if 'loss' in entry] == [7]


@pytest.fixture
def checkpoint(project):
    """A checkpoint of the project's model, written as the Runner does."""
    from mmengine.config import Config
    from mmengine.registry import MODELS, DefaultScope, init_default_scope
    init_default_scope('mmseg')
    model = MODELS.build(Config.fromfile('config.py').model)
    DefaultScope._instance_dict.clear()
    path = project / 'weights.pth'
    meta = dict(iter=2, epoch=0, cfg='')
    torch.save(dict(state_dict=model.state_dict(), optimizer=dict(), message_hub=dict(), meta=meta), path)
    return path


def test_test_time_augmentation(project, checkpoint):
    tested = run('test', 'config.py', checkpoint, '--work-dir', 'eval', '--tta')
    assert tested.returncode == 0, tested.stderr
    assert 'mIoU' in json.loads(max(Path('eval').glob('*/*.json')).read_text())


def test_test_time_augmentation_needs_its_pipeline(project, checkpoint, capsys):
    Path('config.py').write_text(Path('config.py').read_text() + '\ndel tta_pipeline\n')
    message = fails(capsys, 'test', 'config.py', checkpoint, '--tta')
    assert '--tta: the config has no tta_pipeline' in message and 'voc2012.py' in message


def test_changes_since_an_interrupted_run():
    from mmengine.config import Config

    from mmssl.utils.cli import changes_since
    now = dict(randomness=dict(seed=0), world_size=2, train_cfg=dict(max_iters=10), optim_wrapper=dict(type='A'),
               train_dataloader=dict(batch_size=2))
    assert changes_since(Config(now), dict(cfg=Config(now).pretty_text)) == ([], [])
    before = dict(now, world_size=4, train_cfg=dict(max_iters=20), optim_wrapper=dict(accumulative_counts=2))
    images, others = changes_since(Config(now), dict(cfg=Config(before).pretty_text, seed=0))
    assert images == ['world_size was 4 in the interrupted run and is 2 now']
    assert others == [
        'train_cfg.max_iters was 20 in the interrupted run and is 10 now',
        'optim_wrapper.accumulative_counts was 2 in the interrupted run and is 1 now',
    ]
    # The seed that counts is the one that was drawn, where the config had none.
    images, _ = changes_since(Config(now), dict(cfg=Config(dict(now, randomness=dict())).pretty_text, seed=5))
    assert images == ['randomness.seed was 5 in the interrupted run and is 0 now']
    assert changes_since(Config(now), {}) == ([], [])


SEMI = """
branches = ['sup', 'unsup_weak']
model = dict(type='mmssl.CrossPseudoSupervision', segmentor=model, semi_train_cfg=dict(unsup_begin=1, unsup_ramp=4))
train_dataloader = dict(
    batch_size=4, num_workers=0, sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1, 1]),
    dataset=dict(type='mmssl.MultiSourceDataset', sources=dict(
        labeled=dict(type='mmssl.SplitSegDataset', data_root=data_root, ann_file='splits/labeled.txt',
                     metainfo=dict(classes=classes, palette=palette),
                     data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'),
                     pipeline=[dict(type='LoadImageFromFile'), dict(type='LoadAnnotations'),
                               dict(type='mmssl.MultiBranch', branches=branches, sup=[dict(type='PackSegInputs')])]),
        unlabeled=dict(type='mmssl.UnlabeledImageDataset', data_root=data_root, ann_file='splits/unlabeled.txt',
                       img_path='img_dir/train',
                       pipeline=[dict(type='LoadImageFromFile'),
                                 dict(type='mmssl.MultiBranch', branches=branches,
                                      unsup_weak=[dict(type='mmssl.PackSemiSegInputs')])]))))
"""


def test_sources_and_warnings_are_said_once(project):
    Path('config.py').write_text(Path('config.py').read_text() + SEMI)
    result = run('train', 'config.py')
    assert result.returncode == 0, result.stderr
    output = (result.stdout + result.stderr).splitlines()
    lines = [line for line in output if 'source `' in line or 'source labeled' in line or 'source unlabeled' in line]
    assert len(lines) == 2 and 'source labeled: 4 images; 2 per GPU' in lines[0], lines
    assert 'source unlabeled: 8 images' in lines[1] and 'passes over the run' in lines[1]
    warnings = [line for line in output if 'never reaches its full weight' in line]
    assert len(warnings) == 1 and warnings[0].startswith('warning: model.semi_train_cfg.unsup_ramp: is 4'), warnings


def test_a_resumed_run_ends_in_the_same_weights(project):
    config = Path('config.py').read_text() + SEMI + """
model['segmentor']['decode_head']['dropout_ratio'] = 0.5
model['semi_train_cfg'].update(unsup_ramp=2, unsup_on='unlabeled', mix=dict(type='mmssl.CutMix'))
"""
    Path('config.py').write_text(config)
    assert run('train', 'config.py', '--work-dir', 'whole').returncode == 0
    short = ('--cfg-options', 'train_cfg.max_iters=2', 'train_cfg.val_interval=2')
    assert run('train', 'config.py', '--work-dir', 'parts', *short).returncode == 0
    assert run('train', 'config.py', '--work-dir', 'parts', '--resume').returncode == 0
    whole, parts = (torch.load(f'{name}/iter_4.pth', map_location='cpu', weights_only=False)
                    for name in ('whole', 'parts'))  # yapf: disable
    resumed = parts['state_dict']
    different = [name for name, value in whole['state_dict'].items() if not torch.equal(value, resumed[name])]
    assert not different, different[:3]


@pytest.mark.parametrize('variable', ['RANK', 'SLURM_PROCID', 'OMPI_COMM_WORLD_RANK'])
def test_only_the_first_process_warns(monkeypatch, capsys, variable):
    from mmssl.utils.cli import warn
    for name in ('RANK', 'SLURM_PROCID', 'OMPI_COMM_WORLD_RANK'):
        monkeypatch.delenv(name, raising=False)
    for rank, expected in (('1', ''), ('0', 'warning: text\n')):
        monkeypatch.setenv(variable, rank)
        warn('text')
        assert capsys.readouterr().err == expected


SYNC_BN = """
model['backbone']['norm_cfg'] = model['decode_head']['norm_cfg'] = dict(type='SyncBN', requires_grad=True)
"""


def test_sync_bn_becomes_bn_without_a_gpu(project, capsys, monkeypatch):
    from mmengine.config import Config

    from mmssl.utils import cli
    Path('config.py').write_text(Path('config.py').read_text() + SYNC_BN)
    monkeypatch.setattr(cli, 'get_device', lambda: 'cpu')
    cfg = Config.fromfile('config.py')
    cfg.launcher = 'none'
    cli.prepare_devices(cfg)
    assert cfg.model.backbone.norm_cfg == cfg.model.decode_head.norm_cfg == dict(type='BN', requires_grad=True)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith('warning: model.backbone.norm_cfg.type and 1 more: SyncBN needs a GPU')
    monkeypatch.setattr(cli, 'get_device', lambda: 'cuda')
    cfg = Config.fromfile('config.py')
    cfg.launcher = 'none'
    cli.prepare_devices(cfg)
    assert cfg.model.backbone.norm_cfg.type == 'SyncBN' and capsys.readouterr().err == ''


def test_resume_with_nothing_to_resume(project, capsys):
    message = fails(capsys, 'train', 'config.py', '--work-dir', 'new', '--resume')
    assert "--resume: nothing to resume from: no checkpoint in the work dir 'new'" in message
    message = fails(capsys, 'train', 'config.py', '--work-dir', 'new', '--resume', 'absent.pth')
    assert "--resume: no file 'absent.pth'" in message
    assert not Path('new').exists()


@pytest.mark.parametrize('where', ['start', 'middle'])
def test_resume_from_a_damaged_checkpoint(project, checkpoint, capsys, where):
    data = checkpoint.read_bytes()
    checkpoint.write_bytes(b'' if where == 'start' else data[:len(data) // 2])
    message = fails(capsys, 'train', 'config.py', '--work-dir', 'new', '--resume', checkpoint)
    assert f"--resume: '{checkpoint}' is not a readable checkpoint" in message
    assert not Path('new').exists()


def test_resume_from_plain_weights(project, checkpoint, capsys):
    torch.save(dict(state_dict=torch.load(checkpoint)['state_dict']), checkpoint)
    message = fails(capsys, 'train', 'config.py', '--work-dir', 'new', '--resume', checkpoint)
    assert 'has no optimizer and no meta' in message and 'load_from=' in message
    assert not Path('new').exists()


def test_resume_from_another_model(project, checkpoint, capsys):
    text = Path('config.py').read_text().replace('palette = [', 'palette = [[1, 2, 3], ')
    Path('config.py').write_text(text.replace('classes = [', "classes = ['more', "))
    message = fails(capsys, 'train', 'config.py', '--work-dir', 'new', '--resume', checkpoint)
    assert '--resume: the checkpoint does not belong to the model' in message and 'conv_seg.weight has shape' in message
    assert not Path('new').exists()


def test_resume_from_fewer_and_other_weights(project, checkpoint, capsys):
    content = torch.load(checkpoint)
    content['state_dict'].pop('decode_head.conv_seg.bias')
    torch.save(content, checkpoint)
    message = fails(capsys, 'train', 'config.py', '--work-dir', 'new', '--resume', checkpoint)
    assert 'decode_head.conv_seg.bias is missing' in message
    content['state_dict'] = {f'student1.{name}': value for name, value in content['state_dict'].items()}
    torch.save(content, checkpoint)
    message = fails(capsys, 'train', 'config.py', '--work-dir', 'new', '--resume', checkpoint)
    assert 'is missing' in message and 'more' in message
    assert not Path('new').exists()


def test_a_checkpoint_of_another_model_is_not_evaluated(project, checkpoint, capsys):
    state = {name.replace('decode_head', 'head'): value for name, value in torch.load(checkpoint)['state_dict'].items()}
    torch.save(dict(state_dict=state), 'other.pth')
    message = fails(capsys, 'test', 'config.py', 'other.pth')
    assert 'checkpoint: the checkpoint does not belong to the model' in message and 'decode_head' in message
    assert "checkpoint: no file 'absent.pth'" in fails(capsys, 'test', 'config.py', 'absent.pth')


@pytest.mark.parametrize('arguments, expected', [
    (['--cfg-options', 'lr'], "--cfg-options: 'lr' is not of the form key=value"),
    (['--cfg-options', '=9'], "--cfg-options: '=9' is not of the form key=value"),
    (['--cfg-options', 'train_cfg..max_iters=9'], 'is not of the form key=value'),
    (['--cfg-options', 'model.pretrained=[1,2'], "--cfg-options: the brackets of 'model.pretrained=[1,2' do not match"),
    (['--cfg-options', 'train_cfg.max_iters=6', 'model.pretrained=(1),(2)'],
     "--cfg-options: the brackets of 'model.pretrained=(1),(2)' do not match"),
    (['--cfg-options', 'model.pretrained="(1),(2)'], 'do not match'),
    (['--cfg-options', 'max_iters=9'], "nothing reads a top-level key 'max_iters'; did you mean train_cfg.max_iters?"),
    (['--cfg-options', 'train_confg.max_iters=9'], 'did you mean train_cfg.max_iters'),
    (['--cfg-options', 'data_root=elsewhere'], 'set train_dataloader.dataset.data_root, val_dataloader.dataset.'),
    (['--cfg-options', 'train_dataloader.dataset.data_root=elsewhere'], 'elsewhere'),
    (['--auto-scale-lr'], '--auto-scale-lr: the config has no auto_scale_lr.base_batch_size'),
    (['--cfg-options', 'model.backbone.depht=50'], 'model.backbone.depht: ResNet'),
    (['--cfg-options', 'model.decode_head.num_clases=5'], 'model.decode_head.num_clases: BaseDecodeHead'),
    (['--cfg-options', 'train_cfg.max_iter=3'], 'train_cfg.max_iter: '),
    (['--cfg-options', 'train_dataloader.num_worker=1'], 'train_dataloader.num_worker: DataLoader'),
    (['--cfg-options', 'model.type=EncoderDecodr'],
     "model.type: 'EncoderDecodr' is not a known model; did you mean EncoderDecoder?"),
    (['--cfg-options', 'model.decode_head.loss_decode.type=FPLLoss'],
     "model.decode_head.loss_decode.type: write type='mmssl.FPLLoss': FPLLoss is not in"),
    (['--launcher', 'ssh'], "invalid choice: 'ssh'"),
])
def test_wrong_arguments_end_in_one_line(project, capsys, arguments, expected):
    assert expected in fails(capsys, 'train', 'config.py', '--work-dir', 'new', *arguments)


def test_weights_to_start_from_are_read_first(project, capsys):
    start = ('train', 'config.py', '--work-dir', 'new', '--cfg-options')
    assert "load_from: no file 'absent.pth'" in fails(capsys, *start, 'load_from=absent.pth')
    Path('junk.pth').write_bytes(b'junk')
    assert "load_from: 'junk.pth' is not a readable checkpoint" in fails(capsys, *start, 'load_from=junk.pth')
    assert not Path('new').exists()


def test_image_that_a_worker_cannot_read_is_named_in_a_short_line(project, capsys, segmentation_data):
    for path in (segmentation_data.root / 'img_dir' / 'train').iterdir():
        path.write_bytes(path.read_bytes()[:200])  # the header alone
    message = fails(capsys, 'train', 'config.py', '--cfg-options', 'train_dataloader.num_workers=1')
    assert 'Traceback' not in message and str(segmentation_data.root) in message, message


@pytest.mark.skipif(torch.cuda.is_available(), reason='is about a machine without a GPU')
def test_amp_without_a_gpu(project, capsys):
    assert '--amp: mixed precision needs a GPU' in fails(capsys, 'train', 'config.py', '--amp')
    for kind in ('AmpOptimWrapper', 'mmssl.AmpRGDOptimWrapper'):
        before = contents(project)
        message = fails(capsys, 'train', 'config.py', '--cfg-options', f'optim_wrapper.type={kind}')
        assert 'optim_wrapper.type: Amp' in message and 'needs a GPU' in message
        assert contents(project) == before


def test_wrong_config_files_end_in_one_line(project, capsys):
    assert "config: no file 'absent.py'" in fails(capsys, 'train', 'absent.py')
    Path('broken.py').write_text('model = dict(')
    assert 'broken.py' in fails(capsys, 'train', 'broken.py')
    Path('empty.py').write_text('model = dict()')
    assert 'train_dataloader' in fails(capsys, 'train', 'empty.py')
    assert 'test_dataloader' in fails(capsys, 'test', 'empty.py', 'absent.pth')


def test_an_error_of_the_program_shows_where_it_happened(project):
    Path('faulty.py').write_text("""
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
@HOOKS.register_module()
class FaultyHook(Hook):
    def after_train_iter(self, runner, **kwargs):
        raise ValueError('a fault')
""")
    more = "\ncustom_imports = dict(imports=['faulty'])\ncustom_hooks = [dict(type='FaultyHook')]\n"
    Path('config.py').write_text(Path('config.py').read_text() + more)
    result = run('train', 'config.py', env={'PYTHONPATH': f'{REPO_ROOT}{os.pathsep}{project}'})
    assert result.returncode == 1
    assert 'Traceback' in result.stderr and 'after_train_iter' in result.stderr


def test_auto_scale_lr(project):
    Path('config.py').write_text(Path('config.py').read_text() + '\nauto_scale_lr = dict(base_batch_size=8)\n')
    result = run('train', 'config.py', '--auto-scale-lr', '--cfg-options', 'train_cfg.max_iters=1')
    assert result.returncode == 0, result.stderr
    assert [entry['lr'] for entry in scalars('work_dirs/config') if 'lr' in entry] == [pytest.approx(0.01 * 2 / 8)]


@pytest.mark.dist
def test_two_processes_on_a_cpu(project):
    Path('config.py').write_text(Path('config.py').read_text() + SYNC_BN)
    environment = {**os.environ, 'PYTHON': sys.executable, 'CUDA_VISIBLE_DEVICES': '', 'OMP_NUM_THREADS': '1'}

    def launch(*command):
        command = ['bash', *map(str, command)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)

    trained = launch(REPO_ROOT / 'tools' / 'dist_train.sh', 'config.py', 2, '--work-dir', 'a folder')
    assert trained.returncode == 0, trained.stderr
    assert 'Distributed training: True' in trained.stdout + trained.stderr
    assert (trained.stdout + trained.stderr).count('SyncBN needs a GPU') == 1
    assert 'world_size = 2' in Path('a folder/config.py').read_text()
    tested = launch(REPO_ROOT / 'tools' / 'dist_test.sh', 'config.py', 'a folder/iter_4.pth', 2, '--work-dir', 'eval')
    assert tested.returncode == 0, tested.stderr
    logged = [entry['mIoU'] for entry in scalars('a folder') if 'mIoU' in entry][-1]
    assert json.loads(max(Path('eval').glob('*/*.json')).read_text())['mIoU'] == pytest.approx(logged, abs=1e-6)


@pytest.mark.parametrize('script, arguments', [('slurm_train', ['part', 'a job', 'my config.py', '--amp']),
                                               ('slurm_test', ['part', 'a job', 'my config.py', 'my.pth', '--tta'])])
def test_slurm_scripts_keep_their_arguments(tmp_path, script, arguments):
    srun = tmp_path / 'srun'
    srun.write_text('#!/usr/bin/env bash\nprintf "%s\\n" "$@"\n')
    srun.chmod(0o755)
    path = f'{tmp_path}{os.pathsep}{os.environ["PATH"]}'
    environment = {**os.environ, 'PATH': path, 'GPUS': '2', 'SRUN_ARGS': '-x n1'}
    result = subprocess.run(['bash', REPO_ROOT / 'tools' / f'{script}.sh', *arguments], env=environment,
                            capture_output=True, text=True, timeout=60)  # yapf: disable
    lines = result.stdout.splitlines()
    assert {'--partition=part', '--job-name=a job', '--ntasks=2', '--gres=gpu:2', '-x', 'n1'} <= set(lines)
    assert 'my config.py' in lines
    assert lines[-2:] == ['slurm', arguments[-1]]


@pytest.mark.parametrize('script', ['dist_train', 'dist_test', 'slurm_train', 'slurm_test'])
def test_scripts_without_arguments_say_their_usage(script):
    result = subprocess.run(['bash', REPO_ROOT / 'tools' / f'{script}.sh'], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2 and f'tools/{script}.sh' in result.stderr


def test_a_teacher_is_not_warned_of_parameter_by_parameter():
    model = torch.nn.ModuleDict(dict(student=torch.nn.Linear(2, 2), teacher=torch.nn.Linear(2, 2)))
    model.teacher.requires_grad_(False)
    model.student.bias.requires_grad_(False)
    messages = []

    class Keep(logging.Handler):
        def emit(self, record):
            messages.append(record.getMessage())

    logger = MMLogger.get_instance('not_about_a_teacher')
    logger.addHandler(Keep())
    logger.addFilter(load_tool('train').not_about_a_teacher)
    optimizer = dict(type='SGD', lr=0.1, weight_decay=0.1)
    options = dict(type='OptimWrapper', optimizer=optimizer, paramwise_cfg=dict(bias_decay_mult=0.))
    build_optim_wrapper(model, options)
    skipped = [message for message in messages if 'is skipped' in message]
    assert len(skipped) == 1 and skipped[0].startswith('student.bias')
