"""Every shipped segmentation config parses, builds and takes one training step in each method."""

import importlib.util
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip('mmseg')
import cv2
import numpy as np
import torch
import yaml
from mmengine.config import Config
from mmengine.model import revert_sync_batchnorm
from mmengine.optim import build_optim_wrapper
from mmengine.registry import DATASETS, HOOKS, TRANSFORMS, init_default_scope
from mmengine.structures import PixelData
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / 'configs' / 'fpl').rglob('*.py'))
# One network of each kind is enough to build; the splits differ in their lists alone.
BUILT = [
    name for name in CONFIGS
    if 'camvid' in name
    or ('-r50_' in name and '-1over8-' in name and ('cps' in name or '/fpl-' not in name))
    or ('-r50_' in name and '-low92-' in name and 'cps' in name)
    or ('-r101_4xb2' in name and '1over8' in name)
]  # fmt: skip

LAYERMATCH = ('mmssl.GradReLUHook', 'mmssl.EMAHeadHook')

# Model, labeled to unlabeled images at paper size and on CamVid, branches of the unlabeled images.
METHODS = {
    'supervised': ('EncoderDecoder', None, [1], None),
    'cps': ('mmssl.CrossPseudoSupervision', [1, 1], [1, 2], ['unsup_weak']),
    'cps-cutmix': ('mmssl.CrossPseudoSupervision', [1, 2], [1, 2], ['unsup_weak']),
    'mean-teacher-cutmix': ('mmssl.MeanTeacherSegmentor', [1, 2], [1, 2], ['unsup_weak', 'unsup_strong']),
    'unimatch': (
        'mmssl.MeanTeacherSegmentor', [2, 2], [2, 2], ['unsup_weak', 'unsup_strong', 'unsup_strong2'],
    ),
    'ael': ('mmssl.AELSegmentor', [1, 1], [1, 2], ['unsup_weak']),
}


@pytest.fixture(scope='module', params=CONFIGS)
def config(request: pytest.FixtureRequest) -> Iterator[Config]:
    yield Config.fromfile(str(ROOT / request.param))


def nodes(value: Any) -> Iterator[dict]:
    if isinstance(value, dict):
        yield value
        for child in value.values():
            yield from nodes(child)
    elif isinstance(value, (list, tuple)):
        for child in value:
            yield from nodes(child)


def method_of(path: str) -> str:
    """Method of a config by its file name, without FPL and LayerMatch."""
    return Path(path).name.split('_')[0].removeprefix('fpl-').removeprefix('layermatch-')


def test_config_is_consistent(config: Config) -> None:
    init_default_scope('mmseg')
    assert config.default_scope == 'mmseg'
    assert config.train_cfg.max_iters == config.param_scheduler[0].end
    method, camvid = method_of(config.filename), 'camvid' in config.filename
    segmentor = config.model.get('segmentor', config.model)
    loader = config.train_dataloader
    gpus = 1 if camvid else 8 if method == 'ael' else 4
    assert config.auto_scale_lr == dict(enable=False, base_batch_size=gpus * loader.batch_size)
    assert f'_{gpus}xb{loader.batch_size}-' in Path(config.filename).name
    assert tuple(segmentor.data_preprocessor.size) == tuple(config.crop_size)
    assert f'{"x".join(map(str, config.crop_size))}' in Path(config.filename).name or 'camvid' in config.filename
    # A piece of another scope than the default one always carries its prefix; only ours are used.
    for node in nodes(config.to_dict()):
        kind = node.get('type')
        if isinstance(kind, str) and '.' in kind:
            assert kind.startswith(('mmssl.', 'mmpretrain.') if method == 'unimatch' else 'mmssl.'), kind
    kind, paper_ratio, camvid_ratio, branches = METHODS[method]
    assert config.model.type == kind
    if 'segmentor' in config.model:
        semi_train_cfg, ratio = config.model.semi_train_cfg, loader.sampler.source_ratio
        assert loader.batch_size % sum(ratio) == 0
        assert ratio == (camvid_ratio if camvid else paper_ratio)
        for source in loader.dataset.sources.values():
            assert source.pipeline[-1].branches == ['sup', *branches]
        if 'cps' in method:
            mixed = semi_train_cfg.get('mix') is not None
            assert mixed == ('cutmix' in method)
            assert semi_train_cfg.unsup_on == ('unlabeled' if mixed else 'all')
        hooks = [hook.type for hook in config.get('custom_hooks', [])]
        assert hooks.count('mmssl.MeanTeacherHook') == ('cps' not in method)
        assert hooks.count('mmssl.AELHook') == (method == 'ael')
        layermatch = 'layermatch-' in config.filename
        assert [hooks.count(kind) for kind in LAYERMATCH] == [layermatch, layermatch]
        fpl = Path(config.filename).name.startswith('fpl-')
        loss = MODELS.build(semi_train_cfg.get('unsup_loss', dict(type='mmssl.HardPseudoLabelLoss')))
        assert type(loss).__name__ == ('FPLLoss' if fpl else 'HardPseudoLabelLoss')
        lists = [source.ann_file for source in loader.dataset.sources.values()]
        assert lists[0].replace('labeled', 'unlabeled') == lists[1]
        low = '-low' in Path(config.filename).name
        assert loader.dataset.sources.unlabeled.get('exclude') == (lists[0] if low else None)


# Published for VOC and Cityscapes. A change of a value here is a decision.
PUBLISHED = {
    'voc': dict(lr=0.01, crop=(512, 512), classes=21, cps=1.5, cutmix=1.0, stride=(342, 342)),
    'cityscapes': dict(lr=0.02, crop=(800, 800), classes=19, cps=6.0, cutmix=5.0, stride=(534, 534)),
}
ITERATIONS = {
    'voc12aug-1over16': 39680, 'voc12aug-1over8': 39338, 'voc12aug-1over4': 39680, 'voc12aug-1over2': 39660,
    'cityscapes-1over16': 44544, 'cityscapes-1over8': 44525, 'cityscapes-1over4': 44480, 'cityscapes-1over2': 44400,
}  # fmt: skip
# Learning rate, factor of the heads, crop, dilations of the decoder, and iterations of 1/8: epochs x floor(unlabeled /
# unlabeled images of an iteration).
OTHER_PUBLISHED = {
    ('unimatch', 'voc'): (0.001, 10.0, (321, 321), (1, 6, 12, 18), 80 * (9259 // 8)),
    ('unimatch', 'cityscapes'): (0.005, 1.0, (769, 769), (1, 12, 24, 36), 240 * (2603 // 8)),
    ('ael', 'voc'): (0.01, 10.0, (513, 513), (1, 12, 24, 36), 80 * (9259 // 16)),
    ('ael', 'cityscapes'): (0.01, 10.0, (769, 769), (1, 12, 24, 36), 200 * (2603 // 16)),
}


def test_config_has_the_published_settings(config: Config) -> None:
    folder = Path(config.filename).parent.name
    if folder == 'camvid':
        pytest.skip('CPU size: nothing is published')
    expected, name, method = PUBLISHED[folder], Path(config.filename).name, method_of(config.filename)
    segmentor = config.model.get('segmentor', config.model)
    assert segmentor.decode_head.num_classes == expected['classes']
    assert segmentor.backbone.depth == (101 if '-r101_' in name else 50)
    assert config.param_scheduler[0].power == 0.9
    # Per process, which has two labeled images.
    ohem = dict(type='mmssl.OHEMCrossEntropyLoss', thresh=0.7, min_kept=100000)
    if (method, folder) in OTHER_PUBLISHED:
        lr, head, crop, dilations, iterations = OTHER_PUBLISHED[method, folder]
        keys = config.optim_wrapper.paramwise_cfg.pop('custom_keys')
        assert not config.optim_wrapper.paramwise_cfg
        assert keys == {key: dict(lr_mult=head) for key in segmentor if key.endswith('_head')}
        assert segmentor.decode_head.dilations == dilations
        if '-1over8-' in name:
            assert config.train_cfg.max_iters == iterations
        if method == 'ael':
            assert segmentor.decode_head.loss_decode == ohem
            assert segmentor.auxiliary_head.loss_decode == dict(ohem, loss_weight=0.4)
        elif folder == 'cityscapes':
            # 100,000 for the one image of a process in the released code.
            assert segmentor.decode_head.loss_decode == dict(ohem, min_kept=200000)
        else:
            assert segmentor.decode_head.loss_decode.type == 'CrossEntropyLoss'
    else:
        lr, crop = expected['lr'], expected['crop']
        assert tuple(segmentor.test_cfg.stride) == expected['stride']
        assert config.optim_wrapper.paramwise_cfg == dict(norm_decay_mult=0.0, bias_decay_mult=0.0)
        for cell, iterations in ITERATIONS.items():
            if cell in name:
                assert config.train_cfg.max_iters == iterations
        if method in ('cps', 'cps-cutmix'):
            weight = 0.1 if '-low' in name else expected['cutmix' if 'cutmix' in name else 'cps']
            assert config.model.semi_train_cfg.unsup_weight == weight
        if folder == 'cityscapes':
            assert segmentor.decode_head.loss_decode == ohem and 'sampler' not in segmentor.decode_head
    assert config.optim_wrapper.optimizer == dict(type='SGD', lr=lr, momentum=0.9, weight_decay=1e-4)
    assert tuple(config.crop_size) == crop


def test_experiments_are_short() -> None:
    assert all(len((ROOT / name).read_text().splitlines()) <= 25 for name in CONFIGS)


def test_generated_configs_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location('write_fpl_configs', ROOT / 'tools' / 'dev' / 'write_fpl_configs.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main(['--check']) == 0


class DrawnDonors:
    """Stands for a source of AEL's donors."""

    key = 'drawn'

    def __init__(self, branch: str, image: Callable[[], torch.Tensor], sample: Callable[[], SegDataSample]) -> None:
        self.branch, self.image, self.sample = branch, image, sample

    def __len__(self) -> int:
        return 2

    def fingerprint(self) -> int:
        return 0

    def load(self, index: int, seed: int, step: int, place: int) -> dict:
        return dict(inputs={self.branch: self.image()}, data_samples={self.branch: self.sample()})


@pytest.mark.parametrize('name', BUILT)
def test_one_training_step(name: str) -> None:
    torch.manual_seed(0)
    init_default_scope('mmseg')
    config = Config.fromfile(str(ROOT / name))
    model_cfg = deepcopy(config.model)
    segmentor = model_cfg.get('segmentor', model_cfg)
    segmentor.pretrained = None
    if 'segmentor' in model_cfg:
        model_cfg.semi_train_cfg.unsup_begin = 0
        if 'threshold' in model_cfg.semi_train_cfg.get('unsup_loss', {}):
            # A new network is sure of nothing.
            model_cfg.semi_train_cfg.unsup_loss.threshold = 0.0
    size = (64, 64)
    for node in nodes(model_cfg):
        if node.get('type') == 'SegDataPreProcessor':
            node['size'] = size
    model = revert_sync_batchnorm(MODELS.build(model_cfg)).train()
    optim_wrapper = build_optim_wrapper(model, config.optim_wrapper)
    rate = config.optim_wrapper.optimizer.lr
    keys = config.optim_wrapper.get('paramwise_cfg', {}).get('custom_keys', {})
    found = {group['lr'] for group in optim_wrapper.optimizer.param_groups}
    assert found == {rate, *(rate * key['lr_mult'] for key in keys.values())}
    classes = segmentor.decode_head.num_classes

    def sample(labeled: bool) -> SegDataSample:
        item = SegDataSample(metainfo=dict(img_shape=size, ori_shape=size, sample_idx=0))
        if labeled:
            item.gt_sem_seg = PixelData(data=torch.randint(0, classes, (1, *size)))
        return item

    def image() -> torch.Tensor:
        return torch.randint(0, 256, (3, *size), dtype=torch.uint8)

    if 'segmentor' in model_cfg:
        labeled, unlabeled = config.train_dataloader.sampler.source_ratio
        branches = dict.fromkeys(METHODS[method_of(name)][-1], unlabeled * 2)
        branches['sup'] = labeled * 2
        data = dict(
            inputs={branch: [image() for _ in range(count)] for branch, count in branches.items()},
            data_samples={
                branch: [sample(branch == 'sup') for _ in range(count)] for branch, count in branches.items()
            },
        )
    else:
        data = dict(inputs=[image() for _ in range(2)], data_samples=[sample(True) for _ in range(2)])
    if hasattr(model, 'initialize_teacher'):
        model.initialize_teacher()
    if hasattr(model, 'attach_sources'):
        sources = config.train_dataloader.dataset.sources
        names = DATASETS.get(sources.labeled.type).METAINFO['classes']
        donors = [DrawnDonors(branch, image, partial(sample, branch == 'sup')) for branch in ('sup', 'unsup_weak')]
        model.attach_sources(*donors, names)
    layermatch = [hook for hook in config.get('custom_hooks', []) if hook.type in LAYERMATCH]
    for hook in layermatch:
        HOOKS.build(hook).before_run(SimpleNamespace(model=model, hooks=[], cfg=config))
    before = {key: value.clone() for key, value in model.named_parameters()}
    log = model.train_step(data, optim_wrapper)
    assert 'segmentor' not in model_cfg or log['unsup_loss'] > 0
    assert all(torch.isfinite(value).all() for value in log.values())
    assert ('unsup_avg_loss' in log) == bool(layermatch)
    # The teacher is the hook's.
    for key, value in model.named_parameters():
        if value.dim() > 1:
            assert torch.equal(before[key], value) == key.startswith('teacher.')


@pytest.mark.parametrize(
    'name',
    [f'{data}_{kind}' for data in ('camvid', 'voc2012', 'cityscapes') for kind in ('semi', 'weak_strong', 'unimatch')]
    + ['voc2012_ael', 'cityscapes_ael'],
)
def test_pipelines_build(name: str) -> None:
    init_default_scope('mmseg')
    config = Config.fromfile(str(ROOT / 'configs' / '_base_' / 'datasets' / f'{name}.py'))
    for source in config.train_dataloader.dataset.sources.values():
        for transform in source.pipeline:
            TRANSFORMS.build(transform)
        assert DATASETS.get(source.type) is not None


def test_pair_of_lists_that_share_an_image(tmp_path: Path) -> None:
    init_default_scope('mmseg')
    name = 'configs/fpl/voc/cps_deeplabv3plus-r50_4xb4-40k_voc12-low92-512x512.py'
    sources = Config.fromfile(str(ROOT / name)).train_dataloader.dataset
    for folder in ('splits', 'JPEGImages', 'SegmentationClassAug'):
        (tmp_path / folder).mkdir()
    for stem in 'abcde':
        cv2.imwrite(str(tmp_path / f'JPEGImages/{stem}.jpg'), np.zeros((8, 8, 3), np.uint8))
        cv2.imwrite(str(tmp_path / f'SegmentationClassAug/{stem}.png'), np.zeros((8, 8), np.uint8))
    line = 'JPEGImages/{0}.jpg\tSegmentationClassAug/{0}.png\n'
    for kind, stems in (('labeled', 'abc'), ('unlabeled', 'cde')):
        (tmp_path / f'splits/pseudoseg_{kind}_1-16.txt').write_text(''.join(line.format(stem) for stem in stems))
    for source in sources.sources.values():
        source.data_root = str(tmp_path)
    dataset = DATASETS.build(sources)
    assert [len(part) for part in dataset.datasets] == [3, 2]


@pytest.mark.parametrize('name, views', [('voc2012_semi', 12), ('cityscapes', 12), ('shapes_semi', 6)])
def test_test_time_augmentation(name: str, views: int, tmp_path: Path) -> None:
    init_default_scope('mmseg')
    base = ROOT / 'configs' / '_base_'
    config = Config.fromfile(str(base / 'datasets' / f'{name}.py'))
    cv2.imwrite(str(tmp_path / 'a.png'), np.random.default_rng(0).integers(0, 255, (64, 96, 3), dtype=np.uint8))
    cv2.imwrite(str(tmp_path / 'b.png'), np.zeros((64, 96), np.uint8))
    info = dict(img_path=str(tmp_path / 'a.png'), seg_map_path=str(tmp_path / 'b.png'), seg_fields=[], label_map=None,
                reduce_zero_label=False)  # fmt: skip
    for transform in config.tta_pipeline:
        info = TRANSFORMS.build(transform)(info)
    assert len(info['inputs']) == views
    # A semi-supervised model takes the views as a stock one does.
    config = Config.fromfile(str(ROOT / 'configs' / 'demo' / 'cps_shapes.py'))
    config.model.data_preprocessor.data_preprocessor.pop('size')
    tta = MODELS.build(dict(config.tta_model, module=config.model)).eval()
    batch = dict(inputs=[[view] for view in info['inputs']], data_samples=[[view] for view in info['data_samples']])
    with torch.no_grad():
        (result,) = tta.test_step(batch)
    assert result.pred_sem_seg.data.shape == (1, 64, 96)


def test_metafile_lists_every_config() -> None:
    models = yaml.safe_load((ROOT / 'configs' / 'fpl' / 'metafile.yml').read_text())['Models']
    assert sorted(model['Config'] for model in models) == CONFIGS
    assert all(model['Name'] == Path(model['Config']).stem and model['In Collection'] == 'FPL' for model in models)
