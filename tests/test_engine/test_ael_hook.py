"""AEL through mmengine's runner: donors from the data set, banks in the checkpoint, exact resume."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

pytest.importorskip('mmseg')

from mmssl.datasets import MultiSourceDataset
from mmssl.datasets.donor_source import DonorSource, find_source
from mmssl.engine.hooks import IterationSeedHook
from mmssl.utils.checks import estimate_memory
from mmssl.utils.checks.sources import config_scope

BRANCHES = ['sup', 'unsup_weak']
CROP = (32, 32)
LOAD = dict(type='LoadImageFromFile')
PASTE_PIPELINE = [
    LOAD,
    dict(type='LoadAnnotations'),
    dict(type='RandomResize', scale=(48, 40), ratio_range=(0.1, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=CROP),
    dict(type='PackSegInputs'),
]


class StopAt(Hook):
    """Ends training after an iteration, as a kill would."""

    def __init__(self, iteration: int) -> None:
        self.iteration = iteration

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        if runner.iter + 1 == self.iteration:
            runner.train_loop.stop_training = True


class Watch(Hook):
    """Remembers what is logged."""

    def __init__(self) -> None:
        self.logs: list[dict[str, float]] = []

    def after_train_iter(self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:
        self.logs.append({name: float(value.detach()) for name, value in outputs.items()})


def geometric() -> list[dict]:
    return [
        dict(type='RandomResize', scale=(48, 40), ratio_range=(0.5, 1.5), keep_ratio=True),
        dict(type='RandomCrop', crop_size=CROP),
        dict(type='RandomFlip', prob=0.5),
    ]


def sources(data: SimpleNamespace) -> dict:
    return dict(
        labeled=dict(
            type='mmssl.SplitSegDataset',
            data_root=str(data.root),
            ann_file='splits/labeled.txt',
            data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'),
            metainfo=dict(classes=data.classes, palette=data.palette),
            pipeline=[
                LOAD, dict(type='LoadAnnotations'), *geometric(),
                dict(type='mmssl.MultiBranch', branches=BRANCHES, sup=[dict(type='PackSegInputs')]),
            ],
        ),
        unlabeled=dict(
            type='mmssl.UnlabeledImageDataset',
            data_root=str(data.root),
            img_path='img_dir/train',
            ann_file='splits/unlabeled.txt',
            pipeline=[
                LOAD, dict(type='mmssl.TrackPadding'), *geometric(),
                dict(type='mmssl.MultiBranch', branches=BRANCHES, unsup_weak=[dict(type='mmssl.PackSemiSegInputs')]),
            ],
        ),
    )  # fmt: skip


def ael(**semi_train_cfg: Any) -> dict:
    head = dict(type='FCNHead', num_convs=1, channels=4, num_classes=4, norm_cfg=dict(type='BN'), dropout_ratio=0.1)
    segmentor = dict(
        type='EncoderDecoder',
        data_preprocessor=dict(
            type='SegDataPreProcessor', mean=[127.5] * 3, std=[60.0] * 3, size=CROP, seg_pad_val=255
        ),
        backbone=dict(type='ResNetV1c', depth=18, stem_channels=4, base_channels=4, strides=(1, 2, 1, 1)),
        decode_head=dict(head, in_channels=32, in_index=3, loss_decode=dict(type='CrossEntropyLoss')),
        train_cfg=dict(),
        test_cfg=dict(mode='whole'),
    )
    options = dict(
        mix=dict(type='mmssl.AdaptiveCutMix', component_thresh=0.01, presence_thresh=0.02),
        copy_paste=dict(
            type='mmssl.AdaptiveCopyPaste', exclude_classes=['background'], pipeline=PASTE_PIPELINE, num_draws=2
        ),
        unsup_loss=dict(type='mmssl.FPLLoss'),
        teacher_mode='train',
        ignore_padding=True,
    )
    return dict(type='mmssl.AELSegmentor', segmentor=segmentor, semi_train_cfg={**options, **semi_train_cfg})


def loader(named_sources: dict, workers: int = 0) -> dict:
    return dict(
        batch_size=6,
        num_workers=workers,
        persistent_workers=workers > 0,
        sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1, 2]),
        dataset=dict(type='mmssl.MultiSourceDataset', sources=named_sources),
    )


def train(
    data: SimpleNamespace, work_dir: Any, iterations: int = 6, workers: int = 0, resume: str | None = None,
    hooks: tuple = (), model: dict | None = None, named_sources: dict | None = None,
) -> Runner:  # fmt: skip
    listed = [
        dict(type='mmssl.MeanTeacherHook', momentum=0.01, buffers='own'), dict(type='mmssl.AELHook'),
        IterationSeedHook(), *hooks,
    ]  # fmt: skip
    runner = Runner(
        model=model or ael(),
        work_dir=str(work_dir),
        train_dataloader=loader(named_sources or sources(data), workers),
        train_cfg=dict(type='IterBasedTrainLoop', max_iters=iterations, val_interval=1000),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.05, momentum=0.9)),
        default_hooks=dict(
            logger=None, checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=1, max_keep_ckpts=20)
        ),
        custom_hooks=listed,
        default_scope='mmseg',
        log_level='ERROR',
        load_from=resume,
        resume=resume is not None,
        randomness=dict(seed=3),
        experiment_name=f'ael-{time.perf_counter_ns()}',
    )
    runner.train()
    if workers:
        # Left to the garbage collector, torch waits 5 seconds for each worker.
        runner.train_dataloader._iterator._shutdown_workers()
    return runner


def load(path: Any) -> dict:
    return torch.load(path, weights_only=False)


def assert_equal(one: Any, two: Any, where: str = '') -> None:
    """Bit for bit, tensors in dicts and lists included."""
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, two), where
    elif isinstance(one, dict):
        assert one.keys() == two.keys(), where
        for key in one:
            assert_equal(one[key], two[key], f'{where}.{key}')
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(two), where
        for index, (a, b) in enumerate(zip(one, two, strict=True)):
            assert_equal(a, b, f'{where}[{index}]')
    else:
        assert one == two, where


def test_killed_and_resumed_ends_in_the_same_state(segmentation_data: SimpleNamespace, tmp_path: Any) -> None:
    """With and without workers: weights, teacher, banks, counters, optimizer and logs."""
    whole, killed = Watch(), Watch()
    train(segmentation_data, tmp_path / 'whole', hooks=(whole,))
    train(segmentation_data, tmp_path / 'killed', hooks=(killed, StopAt(3)), workers=2)
    assert killed.logs == whole.logs[:3]
    expected = load(tmp_path / 'whole' / 'iter_6.pth')
    for workers in (0, 2):
        resumed = Watch()
        folder = tmp_path / f'resumed{workers}'
        train(segmentation_data, folder, workers=workers, resume=str(tmp_path / 'killed' / 'iter_3.pth'),
              hooks=(resumed,))
        assert resumed.logs == whole.logs[3:]
        found = load(folder / 'iter_6.pth')
        for part in ('state_dict', 'optimizer'):
            assert_equal(found[part], expected[part], part)

    # And the run is one in which everything happened.
    state = expected['state_dict']
    assert state['presence_bank.presence'].shape == (4, 8)
    assert state['presence_bank.presence'].any()
    assert 0 < state['confidence_bank.confidence'].max() < 1
    assert state['mix.step'] == state['copy_paste.step'] == 6 and state['sampling.step'] == 12
    assert any(0 < log['sup_pasted_ratio'] < 1 for log in whole.logs)
    assert all(0 < log['unsup_pasted_ratio'] <= 1 for log in whole.logs)
    assert any(log['unsup_component_ratio'] > 0 for log in whole.logs)
    assert all(0 < log['unsup_kept_ratio'] <= 1 for log in whole.logs)
    assert all(torch.isfinite(torch.tensor(list(log.values()))).all() for log in whole.logs)
    torch.save(state, tmp_path / 'state.pth')
    assert torch.load(tmp_path / 'state.pth', weights_only=True).keys() == state.keys()


def test_donors_depend_on_their_numbers_alone(segmentation_data: SimpleNamespace) -> None:
    from mmengine.registry import init_default_scope

    init_default_scope('mmseg')
    dataset = MultiSourceDataset(sources(segmentation_data))
    labeled, key, number = find_source(dataset, 'sup')
    unlabeled, unlabeled_key, unlabeled_number = find_source(dataset, 'unsup_weak')
    assert (key, number) == ('train_dataloader.dataset.sources.labeled', 0)
    assert (unlabeled_key, unlabeled_number) == ('train_dataloader.dataset.sources.unlabeled', 1)
    source = DonorSource(unlabeled, unlabeled_key, 'unsup_weak')
    assert len(source) == 8

    def image(*numbers: int) -> torch.Tensor:
        return source.load(*numbers)['inputs']['unsup_weak']

    torch.manual_seed(0)
    state = torch.get_rng_state()
    first = image(3, 1, 2, 0)
    assert torch.equal(torch.get_rng_state(), state), 'the stream of training is left alone'
    torch.rand(5)
    assert torch.equal(image(3, 1, 2, 0), first)
    assert not torch.equal(image(3, 1, 3, 0), first)
    assert not torch.equal(image(3, 1, 2, 1), first)
    assert source.load(3, 1, 2, 0)['data_samples']['unsup_weak'].sample_idx == 3

    paste = DonorSource(labeled, key, 'sup', PASTE_PIPELINE)
    shapes = {paste.load(1, 0, step, 0)['inputs']['sup'].shape[-2:] for step in range(10)}
    assert len(shapes) >= 3, 'a range of scales of its own, padded later'
    assert 'gt_sem_seg' in paste.load(1, 0, 0, 0)['data_samples']['sup']
    with pytest.raises(ValueError, match=r'copy_paste\.pipeline must end in a packing transform'):
        DonorSource(labeled, key, 'sup', [LOAD]).load(0, 0, 0, 0)


def test_fingerprint_is_of_the_list_not_of_the_folder(make_segmentation_data: Any, tmp_path: Any) -> None:
    from mmengine.registry import init_default_scope

    init_default_scope('mmseg')

    def fingerprint(data: SimpleNamespace) -> int:
        return DonorSource(find_source(MultiSourceDataset(sources(data)), 'unsup_weak')[0], '', '').fingerprint()

    here, there = (make_segmentation_data(tmp_path / name) for name in ('here', 'there'))
    assert fingerprint(here) == fingerprint(there)
    lines = (there.root / 'splits' / 'unlabeled.txt').read_text().split()
    (there.root / 'splits' / 'unlabeled.txt').write_text('\n'.join(reversed(lines)))
    assert fingerprint(here) != fingerprint(there)


def test_resume_with_another_list_is_refused(segmentation_data: SimpleNamespace, tmp_path: Any) -> None:
    train(segmentation_data, tmp_path / 'a', iterations=2)
    split = segmentation_data.root / 'splits' / 'unlabeled.txt'
    split.write_text('\n'.join(split.read_text().split()[:-1]))
    with pytest.raises(ValueError, match='the unlabeled source has 7 instead of 8 images'):
        train(segmentation_data, tmp_path / 'b', iterations=4, resume=str(tmp_path / 'a' / 'iter_2.pth'))


def test_memory_is_estimated_with_donors(segmentation_data: SimpleNamespace) -> None:
    cfg = Config(dict(
        default_scope='mmseg', model=ael(), train_dataloader=loader(sources(segmentation_data)),
        optim_wrapper=dict(optimizer=dict(type='SGD')),
    ))  # fmt: skip
    with config_scope(cfg):
        result = estimate_memory(cfg)
    assert result['activations'] > 0, result['how']


def test_what_the_hook_refuses(segmentation_data: SimpleNamespace, tmp_path: Any) -> None:
    stock = ael()['segmentor']
    named = sources(segmentation_data)
    for source in named.values():  # a supervised model has no branches
        source['pipeline'] = [LOAD, dict(type='PackSegInputs')]
    with pytest.raises(ValueError, match=r'custom_hooks: mmssl\.(AEL|MeanTeacher)Hook needs a model'):
        train(segmentation_data, tmp_path, model=stock, named_sources=named)

    model = ael(copy_paste=dict(type='mmssl.AdaptiveCopyPaste', exclude_classes=['backround']))
    with pytest.raises(ValueError, match=r"copy_paste\.exclude_classes: .*no class 'backround'; its classes are"):
        train(segmentation_data, tmp_path, model=model)

    whole = sources(segmentation_data)
    nested = dict(whole, unlabeled=dict(type='ConcatDataset', datasets=[whole['unlabeled']]))
    with pytest.raises(ValueError, match=r'sources\.unlabeled is made of several data sets'):
        train(segmentation_data, tmp_path, named_sources=nested)
