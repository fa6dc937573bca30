"""mmssl.utils.checks: every mistake is found before training, and the message names the key, what and what else."""

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mmengine.config import Config
from mmengine.registry import DefaultScope
from PIL import Image

from mmssl.utils.checks import Report, full_check, quick_check
from mmssl.utils.checks.labels import evenly
from mmssl.utils.checks.nodes import find_heads
from mmssl.utils.values import closest_option

pytest.importorskip('mmseg')


def head(num_classes: int = 4, **kwargs: Any) -> dict:
    return dict(
        type='FCNHead',
        in_channels=8,
        channels=8,
        in_index=0,
        num_convs=1,
        num_classes=num_classes,
        loss_decode=dict(type='CrossEntropyLoss'),
        **kwargs,
    )


def segmentor(**kwargs: Any) -> dict:
    return dict(
        type='EncoderDecoder',
        backbone=dict(
            type='ResNetV1c', depth=18, base_channels=8, stem_channels=8, num_stages=1, strides=(1,), dilations=(1,),
            out_indices=(0,),
        ),
        decode_head=head(),
        train_cfg=dict(),
        test_cfg=dict(mode='whole'),
        **kwargs,
    )  # fmt: skip


def data_set(data: SimpleNamespace, split: str, pipeline: list, **kwargs: Any) -> dict:
    folder = 'val' if split == 'val' else 'train'
    prefix = dict(img_path=f'img_dir/{folder}')
    if split != 'unlabeled':
        prefix['seg_map_path'] = f'ann_dir/{folder}'
    return dict(
        type='BaseSegDataset',
        data_root=str(data.root),
        ann_file=f'splits/{split}.txt',
        img_suffix=data.img_suffix,
        data_prefix=prefix,
        metainfo=dict(classes=data.classes, palette=data.palette),
        pipeline=pipeline,
        **kwargs,
    )


LOAD = dict(type='LoadImageFromFile')
LABELS = dict(type='LoadAnnotations')
CROP = dict(type='RandomCrop', crop_size=(32, 32))


def val_loader(data: SimpleNamespace) -> dict:
    return dict(
        batch_size=1,
        sampler=dict(type='DefaultSampler', shuffle=False),
        dataset=data_set(data, 'val', [LOAD, LABELS, dict(type='PackSegInputs')]),
    )


def preprocessor(**kwargs: Any) -> dict:
    return dict(type='SegDataPreProcessor', mean=[127.0] * 3, std=[60.0] * 3, size=(32, 32), **kwargs)


@pytest.fixture
def supervised(segmentation_data: SimpleNamespace) -> Config:
    return Config(
        dict(
            default_scope='mmseg',
            model=segmentor(data_preprocessor=preprocessor(), auxiliary_head=[head(), head()]),
            train_dataloader=dict(
                batch_size=2,
                sampler=dict(type='InfiniteSampler'),
                dataset=data_set(segmentation_data, 'labeled', [LOAD, LABELS, CROP, dict(type='PackSegInputs')]),
            ),
            val_dataloader=val_loader(segmentation_data),
            test_dataloader=val_loader(segmentation_data),
            train_cfg=dict(type='IterBasedTrainLoop', max_iters=100),
            optim_wrapper=dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1, momentum=0.9)),
            default_hooks=dict(checkpoint=dict(type='CheckpointHook', by_epoch=False)),
        )
    )


@pytest.fixture
def semi(supervised: Config, segmentation_data: SimpleNamespace) -> Config:
    cfg = supervised
    branches = ['sup', 'unsup_weak']
    sup = dict(type='mmssl.MultiBranch', branches=branches, sup=[dict(type='PackSegInputs')])
    weak = dict(type='mmssl.MultiBranch', branches=branches, unsup_weak=[dict(type='mmssl.PackSemiSegInputs')])
    cfg.model = dict(
        type='mmssl.CrossPseudoSupervision',
        segmentor=segmentor(),
        data_preprocessor=dict(type='mmssl.MultiBranchDataPreprocessor', data_preprocessor=preprocessor()),
        semi_train_cfg=dict(unsup_weight=1.5),
    )
    cfg.train_dataloader = dict(
        batch_size=6,
        sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1, 2]),
        dataset=dict(
            type='mmssl.MultiSourceDataset',
            sources=dict(
                labeled=data_set(segmentation_data, 'labeled', [LOAD, LABELS, CROP, sup]),
                unlabeled=data_set(segmentation_data, 'unlabeled', [LOAD, CROP, weak]),
            ),
        ),
    )
    return cfg


def set_key(cfg: Config, key: str, value: Any) -> None:
    """Set a dotted key; numbers index lists; a value of `...` removes it."""
    node: Any = cfg
    *path, last = key.split('.')
    for name in path:
        node = node[int(name)] if isinstance(node, (list, tuple)) else node[name]
    if value is ...:
        node.pop(last)
    else:
        node[int(last) if isinstance(node, (list, tuple)) else last] = value


def write_label(data: SimpleNamespace, folder: str, stem: str, values: np.ndarray) -> Path:
    path = data.root / 'ann_dir' / folder / f'{stem}.png'
    Image.fromarray(values).save(path)
    return path


def blank(data: SimpleNamespace, value: int = 0, dtype: type = np.uint8) -> np.ndarray:
    return np.full(data.size[::-1], value, dtype)


# --- what is right passes ----------------------------------------------------------------------------------------


def test_valid_supervised_config_passes(supervised: Config) -> None:
    report = quick_check(supervised)
    assert report.findings == []
    assert [(s.name, s.images, s.per_gpu, s.passes_per_run) for s in report.sources] == [('train', 4, 2, 50)]


def test_valid_semi_config_passes_and_sizes_are_right(semi: Config) -> None:
    report = quick_check(semi, world_size=2)
    assert report.findings == []
    labeled, unlabeled = report.sources
    assert (labeled.name, labeled.images, labeled.per_gpu, labeled.global_batch) == ('labeled', 4, 2, 4)
    assert (unlabeled.name, unlabeled.images, unlabeled.per_gpu, unlabeled.global_batch) == ('unlabeled', 8, 4, 8)
    # 4 units are one pass over either source; 2 processes x 2 units make it one iteration.
    assert labeled.passes_per_epoch == unlabeled.passes_per_epoch == 1
    assert labeled.passes_per_run == 100 and unlabeled.passes_per_run == 100
    assert '8 in the global batch' in str(unlabeled)


def test_passes_under_an_epoch_based_loop(semi: Config) -> None:
    semi.train_cfg = dict(by_epoch=True, max_epochs=5)
    semi.train_dataloader.sampler = dict(type='mmssl.MultiSourceSampler', source_ratio=[2, 1], infinite=False)
    report = quick_check(semi, world_size=1)
    labeled, unlabeled = report.sources
    # 8 units cover the unlabeled source, 2 a batch: 4 iterations, in which the 4 labeled images come 16 times.
    assert (labeled.per_gpu, unlabeled.per_gpu) == (4, 2)
    assert (labeled.passes_per_epoch, unlabeled.passes_per_epoch) == (4, 1)
    assert (labeled.passes_per_run, unlabeled.passes_per_run) == (20, 5)


def test_world_size_comes_from_the_launcher(semi: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('WORLD_SIZE', '4')
    assert quick_check(semi).sources[0].global_batch == 8


def test_default_scope_is_left_alone(semi: Config) -> None:
    before = dict(DefaultScope._instance_dict)
    quick_check(semi)
    assert list(DefaultScope._instance_dict) == list(before)


def test_config_is_left_alone(semi: Config) -> None:
    before = semi.pretty_text
    quick_check(semi)
    full_check(semi, memory=False)
    assert semi.pretty_text == before


# --- settings: (key, value, what the message must say) ------------------------------------------------------------

SEMI = 'train_dataloader.dataset.sources'
SEMI_CASES = [
    ('train_dataloader.batch_size', 7, ['train_dataloader.batch_size', '7', 'source_ratio', '6 and 9']),
    ('train_dataloader.batch_size', 2, ['train_dataloader.batch_size', 'nearest valid: 3']),
    ('train_dataloader.batch_size', 0, ['train_dataloader.batch_size', '>= 1', '0']),
    ('train_dataloader.batch_size', ..., ['train_dataloader.batch_size', 'None']),
    ('train_dataloader.sampler.batch_size', 8, ['train_dataloader.sampler.batch_size', '8', '6']),
    ('train_dataloader.sampler.source_ratio', [1, 0], ['source_ratio', '[1, 0]', '>= 1']),
    ('train_dataloader.sampler.source_ratio', [1, 1, 1], ['source_ratio', '3 numbers', '2 sources', 'labeled']),
    ('train_dataloader.sampler', dict(type='InfiniteSampler'), ['train_dataloader.sampler.type', 'MultiSourceSampler']),
    ('train_cfg', dict(by_epoch=True, max_epochs=2), ['train_dataloader.sampler', 'infinite=False', 'IterBased']),
    ('train_cfg.type', 'EpochBasedTrainLoop', ['train_dataloader.sampler', 'never ends']),
    ('default_scope', 'mmssl', ['default_scope', "'mmseg'"]),
    ('model.semi_train_cfg.unsup_wieght', 2.0, ['model.semi_train_cfg.unsup_wieght', "'unsup_weight'"]),
    ('model.segmentor.decode_head.num_classes', 5, ['model.segmentor.decode_head.num_classes', '5', '4', 'background']),
    ('model.segmentor.decode_head.out_channels', 1, ['model.segmentor.decode_head.out_channels', '1', '4']),
    ('model.segmentor.auxiliary_head', [head(), head(3)], ['model.segmentor.auxiliary_head.1.num_classes', '3', '4']),
    ('model.segmentor.decode_head', [head(3), head()], ['model.segmentor.decode_head.0.num_classes', '3']),
    ('model.segmentor.decode_head.loss_decode.class_weight', [1.0] * 3, ['loss_decode.class_weight', '3', '4']),
    ('model.segmentor.decode_head.ignore_index', 0, ['seg_pad_val', 'decode_head.ignore_index', '255', '0']),
    ('model.data_preprocessor.data_preprocessor.seg_pad_val', 0, ['data_preprocessor.seg_pad_val', '0', '255']),
    ('model.data_preprocessor.data_preprocessor.size', (64, 64), ['data_preprocessor.size', '(64, 64)', '(32, 32)']),
    (f'{SEMI}.labeled.pipeline.1', dict(type='RandomFlip', prob=0.5), [f'{SEMI}.labeled.pipeline', 'LoadAnnotations']),
    (f'{SEMI}.labeled.pipeline.3.branches', ['sup'], ['branches', "['sup']", 'make them equal']),
    (f'{SEMI}.labeled.ignore_index', 254, [f'{SEMI}.labeled.ignore_index', '254', '255']),
    (f'{SEMI}.labeled.data_root', '/no/where', [f'{SEMI}.labeled.data_root', '/no/where']),
    (f'{SEMI}.labeled.data_root', 'no/where', [f'{SEMI}.labeled.data_root', 'no/where', 'relative to']),
    (f'{SEMI}.unlabeled.ann_file', 'splits/nope.txt', [f'{SEMI}.unlabeled.ann_file', 'splits/nope.txt']),
    (f'{SEMI}.unlabeled.data_prefix.img_path', 'nope', [f'{SEMI}.unlabeled.data_prefix.img_path', 'nope']),
    (f'{SEMI}.unlabeled.type', 'NoSuchDataset', [f'{SEMI}.unlabeled', 'NoSuchDataset']),
    (f'{SEMI}.unlabeled.ann_file', 'splits/labeled.txt', [SEMI, '4 images', 'allow_overlap', 'train_000']),
    (f'{SEMI}.labeled.data_prefix.seg_map_path', ..., [f'{SEMI}.labeled', 'no label file']),
    ('train_dataloader', None, ['train_dataloader.dataset', 'missing']),
    (f'{SEMI}.unlabeled', 3, [f'{SEMI}.unlabeled', '3']),
    ('default_hooks', dict(chekpoint=dict(interval=1), checkpoint=dict(type='CheckpointHook', by_epoch=False)),
     ['default_hooks.chekpoint', 'no `type`', "'checkpoint'"]),
    ('train_dataloader.num_workers', '2', ['train_dataloader.num_workers', 'integer >= 0', "'2'"]),
    ('val_dataloader.batch_size', 0, ['val_dataloader.batch_size', 'integer >= 1', '0']),
    ('train_cfg.max_iters', '4', ['train_cfg.max_iters', 'integer >= 1', "'4'"]),
    ('randomness', dict(seed='a'), ['randomness.seed', 'integer >= 0', "'a'"]),
    ('optim_wrapper', dict(optimizer=dict(type='SGD', lr='0.1')), ['optim_wrapper.optimizer.lr', '>= 0', "'0.1'"]),
    ('custom_hooks', [dict(interval=1)], ['custom_hooks.0', 'no `type`']),
    ('custom_hooks', dict(type='mmssl.MeanTeacherHook'), ['custom_hooks', 'must be a list', 'mmssl.MeanTeacherHook']),
    ('custom_hooks', dict(own=dict(type='EMAHook')), ['custom_hooks', 'must be a list of dicts', 'EMAHook']),
    ('custom_hooks', 'mmssl.MeanTeacherHook', ['custom_hooks', 'must be a list', "'mmssl.MeanTeacherHook'"]),
    ('custom_hooks', ['EMAHook'], ['custom_hooks.0', 'must be a dict with `type`', "'EMAHook'"]),
    ('param_scheduler', ['PolyLR'], ['param_scheduler.0', 'must be a dict with `type`', "'PolyLR'"]),
    ('default_hooks', [dict(type='CheckpointHook')], ['default_hooks', 'must be a dict', 'CheckpointHook']),
    ('model.semi_train_cfg.mix', dict(type='mmssl.CutMix', pairs_per_unit=3),
     ['model.semi_train_cfg.mix.pairs_per_unit', 'is 3', '2 pairs', '4 unlabeled']),
]  # fmt: skip


@pytest.mark.parametrize(('key', 'value', 'expected'), SEMI_CASES, ids=[f'{k}={v}'[:70] for k, v, _ in SEMI_CASES])
def test_semi_mistakes(semi: Config, key: str, value: Any, expected: list[str]) -> None:
    set_key(semi, key, value)
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        quick_check(semi)
    message = str(caught.value)
    assert all(text in message for text in expected), message


@pytest.mark.parametrize(
    'key', [f'{SEMI}.labeled.data_root', f'{SEMI}.labeled.ann_file', f'{SEMI}.unlabeled.data_prefix.img_path']
)
def test_missing_files_raise_file_not_found(semi: Config, key: str) -> None:
    set_key(semi, key, 'nope')
    with pytest.raises(FileNotFoundError, match=key.replace('.', r'\.')):
        quick_check(semi)


SUPERVISED_CASES = [
    ('default_scope', ..., ['default_scope', 'EncoderDecoder', 'mmseg']),
    ('model.decode_head.num_classes', 19, ['model.decode_head.num_classes', '19', '4']),
    ('model.auxiliary_head.1.num_classes', 19, ['model.auxiliary_head.1.num_classes', '19']),
    ('model.data_preprocessor.seg_pad_val', 0, ['model.data_preprocessor.seg_pad_val']),
    ('model.data_preprocessor.size', (16, 32), ['model.data_preprocessor.size', '(16, 32)']),
    ('train_cfg', dict(by_epoch=True, max_epochs=2), ['train_dataloader.sampler', 'DefaultSampler']),
    ('train_dataloader.dataset.pipeline.2', dict(type='Pad', size=(32, 32), pad_val=dict(img=0, seg=0)),
     ['pipeline.2.pad_val.seg', '0', '255']),
    ('train_dataloader.dataset.pipeline.3', dict(type='mmssl.MultiBranch', branches=['sup'], sup=[]),
     ['MultiBranch', 'EncoderDecoder']),
    ('train_dataloader.dataset.pipeline.1', dict(type='RandomFlip', prob=0.5),
     ['train_dataloader.dataset.pipeline', 'LoadAnnotations']),
    ('train_dataloader.dataset.ann_file', 'splits/val.txt', ['do not exist', 'val_000']),
    ('val_dataloader.dataset.metainfo.classes', ['a', 'b', 'c', 'd'], ['val_dataloader', 'metainfo.classes']),
]  # fmt: skip


@pytest.mark.parametrize(('key', 'value', 'expected'), SUPERVISED_CASES, ids=[k for k, _, _ in SUPERVISED_CASES])
def test_supervised_mistakes(supervised: Config, key: str, value: Any, expected: list[str]) -> None:
    set_key(supervised, key, value)
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        quick_check(supervised)
    assert all(text in str(caught.value) for text in expected), str(caught.value)


def test_missing_branch_suggests_the_close_name(semi: Config) -> None:
    branches = ['sup', 'unsup_week']
    for name, branch in (('labeled', 'sup'), ('unlabeled', 'unsup_week')):
        multi = dict(type='mmssl.MultiBranch', branches=branches, **{branch: []})
        semi.train_dataloader.dataset.sources[name].pipeline[-1] = multi
    with pytest.raises(ValueError, match=r"no pipeline makes the branch 'unsup_weak'.*'unsup_week'"):
        quick_check(semi)


@pytest.mark.parametrize('world_size', [1, 2, 3])
@pytest.mark.parametrize(('batch_size', 'ratio'), [(9, [1, 2]), (12, [1, 2]), (6, [2, 1]), (15, [2, 3])])
def test_passes_are_those_of_the_sampler(
    semi: Config, monkeypatch: pytest.MonkeyPatch, world_size: int, batch_size: int, ratio: list[int]
) -> None:
    import mmssl.datasets.samplers.multi_source_sampler as module
    from mmssl.registry import DATASETS

    semi.train_dataloader.batch_size = batch_size
    semi.train_dataloader.sampler = dict(type='mmssl.MultiSourceSampler', source_ratio=ratio, infinite=False)
    semi.train_cfg = dict(by_epoch=True, max_epochs=7)
    sources = quick_check(semi, world_size=world_size).sources
    monkeypatch.setattr(module, 'get_dist_info', lambda: (0, world_size))
    with DefaultScope.overwrite_default_scope('mmseg'):
        dataset = DATASETS.build(semi.train_dataloader.dataset)
    sampler = module.MultiSourceSampler(dataset, ratio, infinite=False, seed=0)
    draws = [draw.source for draw in sampler]
    for index, (source, line) in enumerate(zip(sources, module.describe_sources(sampler, batch_size), strict=True)):
        assert source.passes_per_epoch == draws.count(index) * world_size / source.images
        assert source.passes_per_run == pytest.approx(7 * source.passes_per_epoch)
        assert f'{source.passes_per_epoch:.2f}'.rstrip('0').rstrip('.') in line


def test_missing_strong_view_says_what_to_do(semi: Config) -> None:
    semi.model.type = 'mmssl.MeanTeacherSegmentor'
    semi.custom_hooks = [dict(type='mmssl.MeanTeacherHook')]
    with pytest.raises(ValueError, match=r"the branch 'unsup_strong' that .*; add it to MultiBranch, or set "
                                         r"model\.semi_train_cfg\.strong_branches=\['unsup_weak'\]"):  # fmt: skip
        quick_check(semi)
    semi.model.semi_train_cfg.strong_branches = ['unsup_weak']
    assert quick_check(semi).errors == []


@pytest.mark.parametrize(('name', 'expected'), [
    ('unsup_start', 'unsup_begin'), ('unsup_wieght', 'unsup_weight'), ('unsup_warmup', 'unsup_ramp'),
    ('unsup_beginn', 'unsup_begin'), ('unsup_los', 'unsup_loss'), ('unsupweight', 'unsup_weight'), ('mxi', 'mix'),
    ('unsup_mode', None), ('colour', None),
])  # fmt: skip
def test_closest_option(name: str, expected: str | None) -> None:
    options = ['mix', 'sup_weight', 'unsup_begin', 'unsup_loss', 'unsup_ramp', 'unsup_weight', 'strong_branches']
    assert closest_option(name, options) == expected


@pytest.mark.parametrize('is_set', [False, True])
def test_missing_folder_names_its_environment_variable(
    semi: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_set: bool
) -> None:
    monkeypatch.delenv('TOY_ROOT', raising=False)
    if is_set:
        monkeypatch.setenv('TOY_ROOT', '/no/where')
    semi.train_dataloader.dataset.sources.labeled.data_root = 'PLACE'
    (tmp_path / 'base.py').write_text(semi.pretty_text.replace("'PLACE'", "'{{$TOY_ROOT:data/toy}}'"))
    (tmp_path / 'config.py').write_text("_base_ = 'base.py'\n")
    expected = "; TOY_ROOT is '/no/where'" if is_set else '; set the environment variable TOY_ROOT'
    with pytest.raises(FileNotFoundError, match='no such folder: .*' + expected):
        quick_check(Config.fromfile(tmp_path / 'config.py'))


def test_undeclared_branch(semi: Config) -> None:
    semi.train_dataloader.dataset.sources.unlabeled.pipeline[-1]['unsup_strong'] = []
    with pytest.raises(ValueError, match=r"branches: lacks \['unsup_strong'\]"):
        quick_check(semi)


def test_pipelines_without_branches(semi: Config) -> None:
    for source in semi.train_dataloader.dataset.sources.values():
        source.pipeline = source.pipeline[:-1]
    with pytest.raises(ValueError, match=r'MultiBranch.*unsup_weak'):
        quick_check(semi)


def test_mixing_needs_pairs(semi: Config) -> None:
    semi.model.semi_train_cfg.mix = dict(type='mmssl.CutMix')
    assert quick_check(semi).errors == []
    semi.train_dataloader.batch_size = 2
    semi.train_dataloader.sampler.source_ratio = [1, 1]
    with pytest.raises(ValueError, match=r'model\.semi_train_cfg\.mix.*1 per GPU'):
        quick_check(semi)


def test_feature_perturbation_fits_the_batch(semi: Config) -> None:
    semi.model.type = 'mmssl.MeanTeacherSegmentor'
    semi.custom_hooks = [dict(type='mmssl.MeanTeacherHook')]
    options = semi.model.semi_train_cfg
    options.update(strong_branches=['unsup_weak'], feature_perturbation=dict(type='mmssl.FeatureDropout'))
    for images in (1, 2, 4):
        options.feature_perturbation.images_per_unit = images
        assert quick_check(semi).errors == []
    options.feature_perturbation.images_per_unit = 3
    expected = r'feature_perturbation\.images_per_unit: is 3, .*4 unlabeled images per GPU.*source_ratio.* 2'
    with pytest.raises(ValueError, match=expected):
        quick_check(semi)


def test_labels_that_hold_nothing(semi: Config, segmentation_data: SimpleNamespace) -> None:
    for stem in segmentation_data.labeled[1:]:
        write_label(segmentation_data, 'train', stem, blank(segmentation_data, 255))
    assert quick_check(semi).errors == []
    write_label(segmentation_data, 'train', segmentation_data.labeled[0], blank(segmentation_data, 255))
    with pytest.raises(ValueError, match=rf'{SEMI}\.labeled: the 4 label files read, which are all, hold no class but'):
        quick_check(semi)
    found = quick_check(semi, max_files=2).warnings
    assert any('the 2 label files read hold no class but the ignored label' in str(warning) for warning in found)


def test_binary_sigmoid_is_allowed_when_supervised(
    supervised: Config, make_segmentation_data: Callable[..., SimpleNamespace], tmp_path: Path
) -> None:
    data = make_segmentation_data(tmp_path / 'binary', num_classes=2)
    for loader in (supervised.train_dataloader, supervised.val_dataloader, supervised.test_dataloader):
        loader.dataset.data_root = str(data.root)
        loader.dataset.metainfo = dict(classes=data.classes, palette=data.palette)
    supervised.model.auxiliary_head = None
    supervised.model.decode_head.update(num_classes=2, out_channels=1)
    assert quick_check(supervised).errors == []


def test_warnings_do_not_raise(semi: Config) -> None:
    semi.default_hooks.checkpoint = dict(type='CheckpointHook', interval=10)
    semi.train_dataloader.sampler.infinite = False
    assert {finding.key for finding in quick_check(semi).warnings} == {
        'default_hooks.checkpoint.by_epoch', 'train_dataloader.sampler.infinite'}  # fmt: skip


@pytest.mark.parametrize(('begin', 'ramp', 'expected'), [(99, 1, ''), (100, 0, 'error'), (500, 0, 'error'),
                                                          (90, 11, 'warning'), (0, 101, 'warning'), (90, 10, '')])
def test_unsupervised_loss_must_begin_before_the_end(semi: Config, begin: int, ramp: int, expected: str) -> None:
    semi.model.semi_train_cfg.update(unsup_begin=begin, unsup_ramp=ramp)
    if expected == 'error':
        with pytest.raises(ValueError, match=rf'model\.semi_train_cfg\.unsup_begin: is {begin}.*max_iters is 100.* 99'):
            quick_check(semi)
        return
    warnings = [str(finding) for finding in quick_check(semi).warnings]
    assert len(warnings) == (expected == 'warning'), warnings
    if expected:
        assert 'unsup_ramp' in warnings[0] and 'never reaches its full weight' in warnings[0]


def test_unsupervised_loss_must_begin_before_the_last_epoch_ends(semi: Config) -> None:
    semi.train_cfg = dict(by_epoch=True, max_epochs=5)
    semi.train_dataloader.sampler = dict(type='mmssl.MultiSourceSampler', source_ratio=[2, 1], infinite=False)
    semi.model.semi_train_cfg.unsup_begin = 19  # 5 epochs of 4 iterations
    assert quick_check(semi, world_size=1).findings == []
    with pytest.raises(ValueError, match=r'max_epochs is 5, with 2 iterations each 10 in all'):
        quick_check(semi, world_size=2)


def test_one_image_for_a_head_that_pools_is_warned_about(semi: Config) -> None:
    semi.train_dataloader.batch_size = 3
    semi.train_dataloader.sampler.source_ratio = [1, 2]
    assert quick_check(semi).findings == []
    semi.model.segmentor.decode_head.type = 'DepthwiseSeparableASPPHead'
    (warning,) = quick_check(semi).warnings
    assert "1 image per GPU to 'labeled'" in str(warning) and 'decode_head pools' in str(warning)


def test_top_level_name_that_is_almost_a_setting_is_warned_about(semi: Config) -> None:
    semi.randomnes = dict(seed=1)
    semi.train_pipeline, semi.crop_size, semi.test_pipeline = [], (32, 32), []
    warnings = [str(finding) for finding in quick_check(semi).warnings]
    assert len(warnings) == 1 and 'randomnes' in warnings[0] and "'randomness'" in warnings[0], warnings


def test_all_errors_are_listed_at_once(semi: Config) -> None:
    semi.train_dataloader.batch_size = 7
    semi.model.segmentor.decode_head.num_classes = 3
    semi.train_dataloader.dataset.sources.labeled.data_root = '/no/where'
    with pytest.raises(FileNotFoundError) as caught:
        quick_check(semi)
    for text in ('errors', 'train_dataloader.batch_size', 'sources.labeled.data_root'):
        assert text in str(caught.value)


def test_empty_source(semi: Config, segmentation_data: SimpleNamespace) -> None:
    (segmentation_data.root / 'splits/unlabeled.txt').write_text('')
    with pytest.raises(ValueError, match=r'sources\.unlabeled: the source is empty'):
        quick_check(semi)


def test_heads_are_found_wherever_they_are() -> None:
    students = dict(decode_head=[head(3), head(4)], auxiliary_head=head(5))
    model = dict(segmentor=students, teacher=dict(decode_head=head(6)))
    found = {key: node['num_classes'] for key, node in find_heads(model)}
    assert found == {
        'model.segmentor.decode_head.0': 3, 'model.segmentor.decode_head.1': 4, 'model.segmentor.auxiliary_head': 5,
        'model.teacher.decode_head': 6}  # fmt: skip


def test_classification_config(tmp_path: Path) -> None:
    pytest.importorskip('mmpretrain')
    for name in ('cat', 'dog'):
        (tmp_path / name).mkdir()
        Image.new('RGB', (8, 8)).save(tmp_path / name / f'{name}.png')
    cfg = Config(
        dict(
            default_scope='mmpretrain',
            model=dict(type='ImageClassifier', head=dict(type='LinearClsHead', num_classes=2)),
            train_dataloader=dict(
                batch_size=2,
                sampler=dict(type='DefaultSampler'),
                dataset=dict(type='CustomDataset', data_root=str(tmp_path), pipeline=[LOAD, dict(type='PackInputs')]),
            ),
            train_cfg=dict(by_epoch=True, max_epochs=2),
        )
    )
    report = quick_check(cfg)
    assert report.findings == [] and report.sources[0].images == 2
    cfg.model.head.num_classes = 10
    with pytest.raises(ValueError, match=r'model\.head\.num_classes: is 10, but .* has 2 classes \(cat, dog\)'):
        quick_check(cfg)


# --- lists --------------------------------------------------------------------------------------------------------


def test_overlap_can_be_allowed(semi: Config) -> None:
    semi.train_dataloader.dataset.sources.unlabeled.ann_file = ''
    with pytest.raises(ValueError, match='4 images are in `labeled` and in `unlabeled`'):
        quick_check(semi)
    semi.train_dataloader.dataset.allow_overlap = True
    report = quick_check(semi)
    assert report.errors == [] and any('allow_overlap=True' in fact for fact in report.facts)


@pytest.mark.parametrize('source', ['labeled', 'unlabeled'])
@pytest.mark.parametrize('through_link', ['', 'folder', 'files'])
def test_overlap_with_validation_is_always_an_error(
    semi: Config, segmentation_data: SimpleNamespace, source: str, through_link: str
) -> None:
    semi.train_dataloader.dataset.allow_overlap = True
    root, link = segmentation_data.root, segmentation_data.root.parent / 'link'
    if through_link == 'folder':
        link.symlink_to(root)
    elif through_link == 'files':
        shutil.copytree(root, link)
        for stem in (*segmentation_data.labeled, *segmentation_data.unlabeled):
            image = link / f'img_dir/train/{stem}.jpg'
            image.unlink()
            image.symlink_to(root / f'img_dir/train/{stem}.jpg')
    if through_link:
        semi.val_dataloader.dataset.data_root = str(link)
    semi.val_dataloader.dataset.ann_file = f'splits/{source}.txt'
    semi.val_dataloader.dataset.data_prefix = dict(img_path='img_dir/train', seg_map_path='ann_dir/train')
    with pytest.raises(ValueError, match=r'val_dataloader\.dataset: \d images are also trained on .*allowed is none'):
        quick_check(semi)


def test_overlap_with_test_data(supervised: Config) -> None:
    supervised.test_dataloader.dataset.update(
        ann_file='splits/labeled.txt', data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train')
    )
    with pytest.raises(ValueError, match=r'test_dataloader\.dataset: 4 images'):
        quick_check(supervised)


def test_duplicates_are_a_warning(semi: Config, segmentation_data: SimpleNamespace) -> None:
    (segmentation_data.root / 'splits/labeled.txt').write_text('train_000\ntrain_001\ntrain_000\n')
    (warning,) = quick_check(semi).warnings
    assert warning.key == f'{SEMI}.labeled' and '1 images occur more than once' in warning.message


def test_equal_files_under_two_names(supervised: Config, segmentation_data: SimpleNamespace) -> None:
    folder = segmentation_data.root / 'img_dir'
    shutil.copy(folder / 'train/train_000.jpg', folder / 'val/val_000.jpg')
    (warning,) = full_check(supervised, memory=False).warnings
    assert 'equal bytes are in training and in evaluation' in warning.message and 'val_000.jpg' in warning.message


@pytest.mark.parametrize('wrap', ['repeat', 'concat', 'nested'])
def test_wrapped_data_sets(semi: Config, wrap: str) -> None:
    sources = semi.train_dataloader.dataset.sources
    labeled = sources.labeled
    if wrap == 'repeat':
        sources.labeled = dict(type='RepeatDataset', times=3, dataset=labeled)
    elif wrap == 'concat':
        sources.labeled = dict(type='ConcatDataset', datasets=[labeled, labeled])
    else:
        sources.labeled = dict(
            type='RepeatDataset', times=2, dataset=dict(type='ConcatDataset', datasets=[labeled, labeled])
        )
    report = quick_check(semi)
    assert report.errors == []
    assert report.sources[0].images == 4 * {'repeat': 3, 'concat': 2, 'nested': 4}[wrap]
    labeled.data_root = '/no/where'
    key = {'repeat': 'dataset', 'concat': r'datasets\.1', 'nested': r'dataset\.datasets\.1'}[wrap]
    with pytest.raises(FileNotFoundError, match=rf'sources\.labeled\.{key}\.data_root'):
        quick_check(semi)


def test_plain_concat_of_mmseg(supervised: Config) -> None:
    dataset = supervised.train_dataloader.dataset
    supervised.train_dataloader.dataset = dict(type='ConcatDataset', datasets=[dataset])
    report = quick_check(supervised)
    assert report.errors == [] and report.sources[0].images == 4 and report.histograms[0].files == 4


# --- labels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize('split', ['labeled', 'val'])
def test_labels_out_of_range(semi: Config, segmentation_data: SimpleNamespace, split: str) -> None:
    folder = 'val' if split == 'val' else 'train'
    labels = blank(segmentation_data)
    labels[3, 4] = 11
    path = write_label(segmentation_data, folder, f'{folder}_001', labels)
    with pytest.raises(ValueError) as caught:
        quick_check(semi)
    for text in (str(path), '[11]', '0 to 3', '255', '1 label files'):
        assert text in str(caught.value)


def test_hint_at_labels_that_start_at_one(semi: Config, segmentation_data: SimpleNamespace) -> None:
    write_label(segmentation_data, 'train', 'train_000', np.tile(np.arange(1, 5, dtype=np.uint8), (40, 12)))
    with pytest.raises(ValueError, match='reduce_zero_label'):
        quick_check(semi)
    semi.test_dataloader = semi.val_dataloader
    for source in (semi.train_dataloader.dataset.sources.labeled, semi.val_dataloader.dataset):
        source.reduce_zero_label = True
    for folder in ('train', 'val'):
        for file in (segmentation_data.root / 'ann_dir' / folder).iterdir():
            write_label(segmentation_data, folder, file.stem, np.tile(np.arange(5, dtype=np.uint8), (40, 10))[:, :48])
    assert quick_check(semi).errors == []


def test_binary_masks_of_0_and_255(semi: Config, segmentation_data: SimpleNamespace) -> None:
    for stem in segmentation_data.labeled:
        labels = blank(segmentation_data)
        labels[:9] = 255
        write_label(segmentation_data, 'train', stem, labels)
    (warning,) = quick_check(semi).warnings
    assert warning.key == f'{SEMI}.labeled' and '0/255' in warning.message and 'background' in warning.message


@pytest.mark.parametrize(
    ('labels', 'expected'),
    [
        (np.zeros((40, 48, 3), np.uint8), 'several channels'),
        (np.zeros((20, 24), np.uint8), 'not as large as their images'),
        (np.full((40, 48), 256, np.uint16), 'more than 8 bits'),
    ],
)
def test_label_files_of_the_wrong_form(
    semi: Config, segmentation_data: SimpleNamespace, labels: np.ndarray, expected: str
) -> None:
    path = write_label(segmentation_data, 'train', 'train_002', labels)
    with pytest.raises(ValueError, match=expected) as caught:
        quick_check(semi)
    assert str(path) in str(caught.value)


def test_missing_label_file_and_image(semi: Config, segmentation_data: SimpleNamespace) -> None:
    (segmentation_data.root / 'ann_dir/train/train_001.png').unlink()
    (segmentation_data.root / 'img_dir/train/train_007.jpg').unlink()
    with pytest.raises(FileNotFoundError) as caught:
        quick_check(semi)
    assert 'train_001.png' in str(caught.value) and 'train_007.jpg' in str(caught.value)


def test_broken_files(semi: Config, segmentation_data: SimpleNamespace) -> None:
    (segmentation_data.root / 'ann_dir/train/train_001.png').write_bytes(b'not a picture')
    (segmentation_data.root / 'img_dir/train/train_007.jpg').write_bytes(b'')
    report = full_check(semi, memory=False)
    messages = ' '.join(finding.message for finding in report.errors)
    assert 'train_001.png' in messages and 'train_007.jpg' in messages and 'cannot be read' in messages


def test_hidden_labels_of_unlabeled_images_are_never_opened(semi: Config, segmentation_data: SimpleNamespace) -> None:
    for stem in segmentation_data.unlabeled:
        (segmentation_data.root / f'ann_dir/train/{stem}.png').unlink()
    assert full_check(semi, memory=False).errors == []


def test_histogram_equals_a_count_by_hand(semi: Config, segmentation_data: SimpleNamespace) -> None:
    report = full_check(semi, memory=False)
    folder = segmentation_data.root / 'ann_dir/train'
    maps = [np.asarray(Image.open(folder / f'{stem}.png')) for stem in segmentation_data.labeled]
    labeled = next(h for h in report.histograms if h.name == 'labeled')
    assert labeled.pixels == [sum(int((m == c).sum()) for m in maps) for c in range(4)]
    assert labeled.images == [sum(bool((m == c).any()) for m in maps) for c in range(4)]
    assert labeled.ignored == sum(int((m == 255).sum()) for m in maps) and labeled.invalid == 0
    assert (labeled.files, labeled.total_files) == (4, 4)
    assert {h.name for h in report.histograms} == {'labeled', 'val'}


def test_absent_class_is_a_warning_only_if_all_files_were_read(
    semi: Config, segmentation_data: SimpleNamespace
) -> None:
    for stem in segmentation_data.labeled:
        labels = blank(segmentation_data)
        labels[:5], labels[5:9] = 1, 3
        write_label(segmentation_data, 'train', stem, labels)
    (warning,) = full_check(semi, memory=False).warnings
    assert warning.key == f'{SEMI}.labeled' and "['shape2']" in warning.message
    assert quick_check(semi, max_files=2).warnings == []


def test_image_sizes(semi: Config, segmentation_data: SimpleNamespace) -> None:
    Image.new('RGB', (100, 30)).save(segmentation_data.root / 'img_dir/train/train_008.jpg')
    report = full_check(semi, memory=False)
    sizes = {entry.name: entry for entry in report.image_sizes}
    assert sizes['labeled'].distinct == 1 and sizes['labeled'].sizes == [(48, 40, 4)]
    assert sizes['unlabeled'].smallest == (48, 30) and sizes['unlabeled'].largest == (100, 40)


# --- bounds, report, memory ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(('total', 'count', 'expected'), [
    (5, None, [0, 1, 2, 3, 4]), (5, 9, [0, 1, 2, 3, 4]), (5, 3, [0, 2, 4]), (5, 1, [0]), (0, 4, []), (100, 2, [0, 99]),
])  # fmt: skip
def test_evenly(total: int, count: int | None, expected: list[int]) -> None:
    assert evenly(total, count) == expected


def test_quick_check_reads_few_files(
    semi: Config, make_segmentation_data: Callable[..., SimpleNamespace], tmp_path: Path
) -> None:
    data = make_segmentation_data(tmp_path / 'more', num_images=60, labeled=50, val=20)
    for loader in (semi.val_dataloader, semi.test_dataloader):
        loader.dataset.data_root = str(data.root)
    for source in semi.train_dataloader.dataset.sources.values():
        source.data_root = str(data.root)
    report = quick_check(semi, max_files=16)
    assert {h.name: h.files for h in report.histograms} == {'labeled': 16, 'val': 8}
    report = full_check(semi, max_files=10, memory=False)
    assert {h.name: (h.files, h.total_files) for h in report.histograms} == {'labeled': (10, 50), 'val': (10, 20)}


def test_report_as_json_and_text(semi: Config) -> None:
    semi.train_dataloader.batch_size = 7
    report = full_check(semi, memory=False)
    loaded = json.loads(json.dumps(report.to_dict()))
    assert [error['key'] for error in loaded['errors']] == ['train_dataloader.batch_size']
    assert loaded['sources'][1]['images'] == 8 and loaded['histograms'][0]['classes'][0] == 'background'
    text = report.to_text()
    assert 'labels of labeled (4 files)' in text and '1 error(s)' in text and 'shape3' in text


def test_progress_goes_over_every_file(semi: Config) -> None:
    seen: dict[str, int] = {}

    def progress(indices: list[int], title: str) -> list[int]:
        seen[title] = seen.get(title, 0) + len(indices)
        return indices

    full_check(semi, memory=False, progress=progress)
    assert seen == {'images of labeled': 4, 'images of unlabeled': 8, 'images of val': 4, 'labels of labeled': 4,
                    'labels of val': 4}  # fmt: skip


def test_memory_of_a_supervised_config(supervised: Config) -> None:
    memory = full_check(supervised).memory
    # Optimizer: SGD with momentum keeps one tensor for each parameter.
    assert memory['gradients'] == memory['parameters'] == memory['optimizer_state'] > 0
    assert memory['total'] == sum(memory[k] for k in ('parameters', 'gradients', 'optimizer_state', 'buffers',
                                                      'activations'))  # fmt: skip
    supervised.train_dataloader.batch_size = 4
    supervised.optim_wrapper.optimizer = dict(type='AdamW', lr=0.1)
    larger = full_check(supervised).memory
    assert larger['optimizer_state'] == 2 * memory['parameters']
    assert larger['activations'] == pytest.approx(2 * memory['activations'], rel=0.05)


def test_memory_that_cannot_be_estimated_says_why(supervised: Config) -> None:
    supervised.model.backbone.type = 'NoSuchBackbone'
    report = full_check(supervised)
    assert 'NoSuchBackbone' in report.memory['how'] and 'not estimated' in report.to_text()
    (error,) = report.errors
    assert error.key == 'model' and 'NoSuchBackbone' in error.message


def test_pipeline_that_makes_no_sample_is_an_error_of_the_full_check(supervised: Config) -> None:
    supervised.train_dataloader.dataset.pipeline.insert(2, dict(type='RandomFlip', prop=0.5))
    (error,) = full_check(supervised).errors
    assert error.key == 'train_dataloader.dataset' and "'prop'" in error.message


def test_loader_that_cannot_be_built_is_an_error(supervised: Config) -> None:
    supervised.train_dataloader.dataset.pipeline[1] = dict(type='LoadAnnotations', reduce_zero=True)
    (error,) = full_check(supervised, memory=False).errors
    assert error.key == 'train_dataloader.dataset.pipeline.1' and "'reduce_zero'" in error.message


# --- names of classes ---------------------------------------------------------------------------------------------

UNKNOWN = [
    ('train_dataloader.sampler.type', 'MultiSourceSampler', 'write mmssl.MultiSourceSampler'),
    ('train_dataloader.sampler.type', 'mmssl.MultiSourceSamplr', 'did you mean mmssl.MultiSourceSampler?'),
    (f'{SEMI}.unlabeled.pipeline.2.unsup_weak.0.type', 'mmssl.PackSemiSegInput', 'mean mmssl.PackSemiSegInputs?'),
    (f'{SEMI}.labeled.pipeline.1.type', 'LoadAnnotation', 'did you mean LoadAnnotations?'),
    (f'{SEMI}.labeled.pipeline.0.type', 'LoadImageFromFil', 'did you mean LoadImageFromFile?'),
    (f'{SEMI}.labeled.pipeline.2.type', 'mmssl.RandomCrop', 'write RandomCrop'),
    (f'{SEMI}.labeled.type', 'SplitSegDataset', 'write mmssl.SplitSegDataset'),
    ('train_dataloader.dataset.type', 'MultiSourceDataset', 'write mmssl.MultiSourceDataset'),
    ('val_dataloader.dataset.type', 'BaseSegDatset', 'did you mean BaseSegDataset?'),
    ('val_dataloader.sampler.type', 'DefaultSampl', 'did you mean DefaultSampler?'),
    ('default_hooks.checkpoint.type', 'ChekpointHook', 'did you mean CheckpointHook?'),
    ('custom_hooks.0.type', 'FPLDiagnosticsHook', 'write mmssl.FPLDiagnosticsHook'),
    ('train_cfg.type', 'IterBasedTrainLop', 'did you mean IterBasedTrainLoop?'),
    ('optim_wrapper.optimizer.type', 'AdmaW', 'did you mean AdamW?'),
    ('param_scheduler.0.type', 'PolyLr', 'did you mean PolyLR?'),
    ('val_evaluator.type', 'IoUMetrics', 'did you mean IoUMetric?'),
    ('val_cfg.held_out_evaluator.type', 'CoveringRate', 'write mmssl.CoveringRate'),
    ('val_cfg.held_out_dataloader.dataset.type', 'BaseSegDatset', 'did you mean BaseSegDataset?'),
    ('model.type', 'CrossPseudoSupervision', 'write mmssl.CrossPseudoSupervision'),
    ('custom_hooks.0.type', 'nowhere.at.all.Hook', ''),
]


@pytest.mark.parametrize(('key', 'value', 'hint'), UNKNOWN, ids=[f'{key}={value}' for key, value, _ in UNKNOWN])
def test_unknown_types(semi: Config, key: str, value: str, hint: str) -> None:
    semi.custom_hooks = [dict(type='mmssl.FPLDiagnosticsHook')]
    semi.param_scheduler = [dict(type='PolyLR')]
    semi.val_evaluator = dict(type='IoUMetric')
    semi.val_cfg = dict(type='mmssl.HeldOutValLoop', held_out_evaluator=dict(type='mmssl.CoveringRate'),
                        held_out_dataloader=dict(dataset=dict(type='BaseSegDataset')))
    semi.test_dataloader = None
    assert quick_check(semi).findings == []
    set_key(semi, key, value)
    errors = [error for error in full_check(semi, memory=False).errors if 'known' in error.message]
    assert [error.key for error in errors] == [key]
    assert repr(value) in errors[0].message and errors[0].message.endswith(hint), errors[0].message
    with pytest.raises((ValueError, FileNotFoundError), match=re.escape(str(errors[0]))):
        quick_check(semi)


def test_types_that_are_no_names_of_the_default_scope_are_found(semi: Config) -> None:
    from mmengine.hooks import CheckpointHook
    from mmengine.registry import HOOKS, TRANSFORMS

    class HookOfAUser(CheckpointHook):
        pass

    class Renamed(TRANSFORMS.get('mmseg.RandomFlip')):
        pass

    HOOKS.register_module(module=HookOfAUser)
    TRANSFORMS.register_module(name='torchvision/Renamed', module=Renamed)
    try:
        semi.custom_hooks = [
            dict(type='HookOfAUser', by_epoch=False), dict(type=HookOfAUser), HookOfAUser(),
            dict(type='mmengine.hooks.IterTimerHook'), dict(type='IoUMetric', _scope_='mmseg', by_epoch=False),
        ]  # fmt: skip
        flip = dict(type='torchvision/Renamed', prob=0.5)
        choice = dict(type='RandomChoice', transforms=[[flip], [dict(type='mmcv.RandomGrayscale')]])
        albu = dict(type='Albu', transforms=[dict(type='HorizontalFlip', p=0.5)])
        semi.train_dataloader.dataset.sources.labeled.pipeline[2:2] = [flip, choice, albu]
        unknown = [error.key for error in full_check(semi, memory=False).errors]
        assert unknown == ['custom_hooks.4.type']  # a metric is no hook
        pipeline = semi.train_dataloader.dataset.sources.labeled.pipeline
        pipeline[2]['type'] = pipeline[3]['transforms'][0][0]['type'] = 'torchvision/Renamd'
        errors = [error for error in full_check(semi, memory=False).errors if 'Renamd' in error.message]
        assert [error.key.removeprefix(f'{SEMI}.labeled.pipeline.') for error in errors] == [
            '2.type', '3.transforms.0.0.type']  # fmt: skip
        assert all(error.message.endswith('did you mean torchvision/Renamed?') for error in errors)
    finally:
        HOOKS.module_dict.pop('HookOfAUser')
        TRANSFORMS.module_dict.pop('torchvision/Renamed')


def test_empty_report_raises_nothing() -> None:
    Report().raise_errors()


def test_camvid_is_quick(shared_data: Path, semi: Config, tmp_path: Path) -> None:
    root = shared_data / 'camvid'
    if not root.is_dir():
        pytest.skip('no CamVid')
    metainfo = dict(classes=[str(i) for i in range(11)], palette=[[i, i, i] for i in range(11)])
    stems = sorted(path.stem for path in (root / 'img_dir/train').iterdir())
    for name, part in (('labeled', stems[::8]), ('unlabeled', [s for s in stems if s not in stems[::8]])):
        (tmp_path / f'{name}.txt').write_text('\n'.join(part))
        semi.train_dataloader.dataset.sources[name].update(
            data_root=str(root), ann_file=str(tmp_path / f'{name}.txt'), img_suffix='.jpg', metainfo=metainfo
        )
    semi.val_dataloader.dataset.update(data_root=str(root), ann_file='', metainfo=metainfo)
    semi.test_dataloader = semi.val_dataloader
    semi.model.segmentor.decode_head.num_classes = 11
    quick_check(semi)  # imports mmseg, which training does anyway
    started = time.perf_counter()
    report = quick_check(semi)
    assert time.perf_counter() - started < 2
    assert report.errors == [] and [s.images for s in report.sources] == [46, 321]


def test_memory_of_two_students(semi: Config, supervised: Config) -> None:
    from mmengine.registry import MODELS

    from mmssl.utils.checks.sources import config_scope

    semi.model.semi_train_cfg.mix = dict(type='mmssl.CutMix')
    memory = full_check(semi).memory
    with config_scope(semi):
        student = MODELS.build(semi.model.segmentor)
    assert memory['parameters'] == 2 * sum(p.numel() * p.element_size() for p in student.parameters())
    assert memory['activations'] > 0 and 'scaled by' in memory['how']


def test_memory_counts_the_middle_of_training(semi: Config) -> None:
    from_the_start = full_check(semi).memory['activations']
    semi.train_cfg.max_iters = 1000
    semi.model.semi_train_cfg.update(unsup_begin=600, unsup_ramp=200)
    assert full_check(semi).memory['activations'] == from_the_start


IMAGES = dict(type='mmssl.UnlabeledImageDataset', img_path='img_dir/train', exclude='splits/labeled.txt')


@pytest.mark.parametrize(('options', 'key'), [
    (dict(img_path='nope'), 'img_path'),
    (dict(img_path=['img_dir/train', 'nope']), 'img_path.1'),
    (dict(img_path='nope/*.jpg'), 'img_path'),
    (dict(exclude='nope.txt'), 'exclude'),
    (dict(exclude=['splits/labeled.txt', 'nope.txt']), 'exclude.1'),
    (dict(ann_file=['splits/unlabeled.txt', 'nope.txt']), 'ann_file.1'),
    (dict(seg_map_path='nope'), 'seg_map_path'),
])  # fmt: skip
def test_missing_paths_of_unlabeled_images(
    semi: Config, segmentation_data: SimpleNamespace, options: dict, key: str
) -> None:
    sources = semi.train_dataloader.dataset.sources
    sources.unlabeled = dict(
        IMAGES, data_root=str(segmentation_data.root), pipeline=semi.train_dataloader.dataset.sources.unlabeled.pipeline
    )
    assert quick_check(semi).errors == []
    sources.unlabeled.img_path = 'img_dir/train/train_*.jpg'
    assert quick_check(semi).errors == []
    sources.unlabeled.update(options)
    with pytest.raises(FileNotFoundError, match=rf'sources\.unlabeled\.{key}: no such file or folder: .*nope'):
        quick_check(semi)


def test_warnings_are_not_logged_as_well(semi: Config, caplog: pytest.LogCaptureFixture) -> None:
    semi.train_dataloader.sampler.infinite = False
    with caplog.at_level('DEBUG'):
        assert len(quick_check(semi).warnings) == 1
    assert not [record for record in caplog.records if 'infinite' in record.getMessage()]
