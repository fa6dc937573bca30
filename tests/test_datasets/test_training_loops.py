"""The data flow under mmengine's own loops: order, resume and errors, with and without workers."""

import json
import time
from types import SimpleNamespace

import pytest
import torch
from mmengine.hooks import Hook
from mmengine.logging import MessageHub
from mmengine.model import BaseModel
from mmengine.registry import init_default_scope
from mmengine.runner import Runner
from torch import nn

from mmssl.datasets import MultiSourceDataset, MultiSourceSampler
from mmssl.models.data_preprocessors import MultiBranchDataPreprocessor

pytest.importorskip('mmseg')

BRANCHES = ['sup', 'unsup_weak', 'unsup_strong']


class Toy(BaseModel):
    """One weight, and a record of what each iteration sees."""

    def __init__(self):
        super().__init__(
            data_preprocessor=MultiBranchDataPreprocessor(
                dict(type='mmseg.SegDataPreProcessor', size=(32, 32), mean=[0.] * 3, std=[1.] * 3)))
        self.weight = nn.Parameter(torch.ones(()))
        self.seen = []

    def forward(self, inputs, data_samples=None, mode='tensor'):
        record = {
            branch: [(sample.img_path.rsplit('/', 1)[1], float(image.double().sum()))
                     for image, sample in zip(images, data_samples[branch], strict=True)]
            for branch, images in inputs.items()
        }
        self.seen.append(record)
        return dict(loss=self.weight * sum(images.mean() for images in inputs.values()))


class StopAt(Hook):
    """Ends the process of training after an iteration, as a kill would."""

    def __init__(self, iteration):
        self.iteration = iteration

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        if runner.iter + 1 == self.iteration:
            runner.train_loop.stop_training = True


def loader(data, workers=0, batch_size=6, ratio=(1, 2), **sampler):
    load = dict(type='LoadImageFromFile')
    geometric = [
        dict(type='RandomResize', scale=(48, 40), ratio_range=(0.5, 1.5), keep_ratio=True),
        dict(type='RandomCrop', crop_size=(32, 32)),
        dict(type='RandomFlip', prob=0.5)
    ]
    pack = dict(type='mmssl.PackSemiSegInputs')
    return dict(
        batch_size=batch_size,
        num_workers=workers,
        persistent_workers=workers > 0,
        sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=list(ratio), **sampler),
        dataset=dict(
            type='mmssl.MultiSourceDataset',
            sources=dict(
                labeled=dict(
                    type='mmssl.SplitSegDataset',
                    data_root=str(data.root),
                    ann_file='splits/labeled.txt',
                    data_prefix=dict(img_path='img_dir/train', seg_map_path='ann_dir/train'),
                    metainfo=dict(classes=data.classes, palette=data.palette),
                    pipeline=[
                        load,
                        dict(type='LoadAnnotations'), *geometric,
                        dict(type='mmssl.MultiBranch', branches=BRANCHES, sup=[dict(type='PackSegInputs')])
                    ]),
                unlabeled=dict(
                    type='mmssl.UnlabeledImageDataset',
                    data_root=str(data.root),
                    img_path='img_dir/train',
                    ann_file='splits/unlabeled.txt',
                    pipeline=[
                        load,
                        dict(type='mmssl.TrackPadding'), *geometric,
                        dict(
                            type='mmssl.MultiBranch',
                            branches=BRANCHES,
                            unsup_weak=[pack],
                            unsup_strong=[dict(type='PhotoMetricDistortion'), pack])
                    ]))))


def train(data, work_dir, loop, workers=0, resume=None, hooks=(), seed=7, **kwargs):
    runner = Runner(
        model=Toy(),
        work_dir=str(work_dir),
        train_dataloader=loader(data, workers, **kwargs),
        train_cfg=loop,
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=1e-6)),
        default_hooks=dict(
            logger=None, checkpoint=dict(type='CheckpointHook', by_epoch=False, interval=1, max_keep_ckpts=20)),
        custom_hooks=list(hooks),
        default_scope='mmseg',
        log_level='ERROR',
        load_from=resume,
        resume=resume is not None,
        randomness=dict(seed=seed),
        experiment_name=f'toy-{time.perf_counter_ns()}')
    runner.train()
    if workers:
        # Left to the garbage collector, torch waits 5 seconds for each worker.
        runner.train_dataloader._iterator._shutdown_workers()
    return SimpleNamespace(seen=runner.model.seen, weight=runner.model.weight.detach(), runner=runner)


ITERATIONS = dict(type='IterBasedTrainLoop', max_iters=8, val_interval=100)


def test_iterations_workers_and_resume(segmentation_data, tmp_path):
    """Straight = with workers = killed and resumed: the same images, the same augmentation, the same weight."""
    straight = train(segmentation_data, tmp_path / 'a', ITERATIONS)
    assert len(straight.seen) == 8
    for record in straight.seen:
        assert {branch: len(items) for branch, items in record.items()} == dict(sup=2, unsup_weak=4, unsup_strong=4)
        assert [name for name, _ in record['unsup_weak']] == [name for name, _ in record['unsup_strong']]
        assert {name for name, _ in record['sup']} <= {f'{stem}.jpg' for stem in segmentation_data.labeled}
        assert {name for name, _ in record['unsup_weak']} <= {f'{stem}.jpg' for stem in segmentation_data.unlabeled}
    sums = [total for record in straight.seen for items in record.values() for _, total in items]
    assert len(set(sums)) > 0.9 * len(sums), 'augmentation differs from draw to draw'

    with_workers = train(segmentation_data, tmp_path / 'b', ITERATIONS, workers=2)
    assert with_workers.seen == straight.seen

    killed = train(segmentation_data, tmp_path / 'c', ITERATIONS, workers=2, hooks=[StopAt(5)])
    assert len(killed.seen) == 5
    for workers in (0, 2):
        resumed = train(
            segmentation_data, tmp_path / f'd{workers}', ITERATIONS, workers, resume=str(tmp_path / 'c' / 'iter_5.pth'))
        assert resumed.seen == straight.seen[5:]
        assert torch.equal(resumed.weight, straight.weight)


@pytest.mark.parametrize('workers', [0, 2])
def test_epochs(segmentation_data, tmp_path, workers):
    """S4: the epoch-based loop reaches its last epoch, and the stream goes on from epoch to epoch."""
    loop = dict(type='EpochBasedTrainLoop', max_epochs=2)
    epochs = train(segmentation_data, tmp_path, loop, workers, infinite=False)
    # 4 labeled, 8 unlabeled, ratio 1:2 -> 4 units, 12 indices: 2 iterations of 6.
    assert len(epochs.seen) == 4
    straight = train(segmentation_data, tmp_path / 'straight', dict(ITERATIONS, max_iters=4))
    assert epochs.seen == straight.seen
    labeled = {f'{stem}.jpg' for stem in segmentation_data.labeled}
    for epoch in (epochs.seen[:2], epochs.seen[2:]):
        assert {name for record in epoch for name, _ in record['sup']} == labeled


def test_last_batch_of_an_epoch_may_be_smaller(segmentation_data, tmp_path):
    loop = dict(type='EpochBasedTrainLoop', max_epochs=2)
    seen = train(segmentation_data, tmp_path, loop, infinite=False, batch_size=9).seen
    assert [len(record['sup']) for record in seen] == [3, 1, 3, 1]
    assert [len(record['unsup_weak']) for record in seen] == [6, 2, 6, 2]


def test_infinite_sampler_under_epochs_is_refused(segmentation_data, tmp_path):
    with pytest.raises(ValueError, match=r'train_dataloader\.sampler\.infinite=False'):
        train(segmentation_data, tmp_path, dict(type='EpochBasedTrainLoop', max_epochs=2))


@pytest.mark.parametrize('batch_size', [1, 2, 4, 5])
def test_batch_size_that_the_ratio_does_not_divide(segmentation_data, tmp_path, batch_size):
    """The preprocessor catches what the sampler cannot know: the batch size of the loader."""
    with pytest.raises(ValueError, match=r'train_dataloader\.batch_size must be a multiple'):
        train(segmentation_data, tmp_path, ITERATIONS, batch_size=batch_size)


def test_far_resume_loads_nothing(segmentation_data):
    """R1: iteration 10,000,000 begins at once, with workers, and with the right images."""
    init_default_scope('mmseg')
    cfg = loader(segmentation_data, workers=2)
    data_loader = Runner.build_dataloader(cfg, seed=7)
    start = time.perf_counter()
    data_loader.sampler.skip(10_000_000 * 6)
    batches = iter(data_loader)
    batch = next(batches)
    assert time.perf_counter() - start < 5
    batches._shutdown_workers()
    expected = MultiSourceSampler(data_loader.dataset, [1, 2], seed=7)
    expected.skip(10_000_000 * 6)
    iterator = iter(expected)
    names = [data_loader.dataset.get_data_info(next(iterator))['img_path'] for _ in range(6)]
    got = [(sup or weak).img_path
           for sup, weak in zip(batch['data_samples']['sup'], batch['data_samples']['unsup_weak'], strict=True)]
    assert got == names


def test_message_hub_is_not_left_behind():
    """The epoch check reads mmengine's current message hub: outside a runner it must not refuse anything."""
    MessageHub.get_instance('outside')
    data = MultiSourceDataset(dict(a=json_source(), b=json_source()), allow_overlap=True)
    MultiSourceSampler(data, [1, 1], seed=0).set_epoch(3)


def json_source():
    from mmengine.dataset import BaseDataset

    class Items(BaseDataset):

        def load_data_list(self):
            return json.loads('[{"number": 1}, {"number": 2}]')

    return Items(data_prefix={})
