"""A run that is killed and resumed ends like one that never was: weights, teacher, banks, optimizer, logged values."""

import json
import os
import random
import signal
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from mmengine.fileio import LocalBackend

from mmssl.models.segmentors.base import SemiBaseSegmentor
from mmssl.registry import MODELS
from mmssl.utils import atomic

SEGMENTORS = sorted(name for name, kind in MODELS.module_dict.items() if issubclass(kind, SemiBaseSegmentor))
slow = pytest.mark.slow
QUICK = [('AELSegmentor', 2, 7), ('CrossPseudoSupervision', 0, 7)]


@pytest.mark.parametrize('method, workers, at', [
    pytest.param(method, workers, at, marks=[] if (method, workers, at) in QUICK else slow)
    for method in SEGMENTORS for workers in (0, 2) for at in (4, 7, 11)])  # yapf: disable
def test_killed_at_an_iteration(lab, semi, method, workers, at):
    body, values = semi(method)
    config = lab.write(body, workers=workers, **values)
    lab.run(config, 'whole')
    lab.killed(config, 'parts', at=at)
    lab.run(config, 'parts', '--resume')
    assert [entry['step'] for entry in lab.logged('whole') if 'loss' in entry] == list(range(1, 13))
    lab.assert_same('whole', 'parts')


@pytest.mark.parametrize('workers, at', [
    (0, 7), *(pytest.param(workers, at, marks=slow) for workers, at in ((2, 4), (2, 7), (0, 11)))])  # yapf: disable
def test_layermatch_killed_at_an_iteration(lab, layermatch, workers, at):
    """A classifier: thresholds, the averaged layer between two of its starts, the averaged weights."""
    pytest.importorskip('mmpretrain')
    config = layermatch(workers)
    lab.run(config, 'whole')
    lab.killed(config, 'parts', at=at)
    lab.run(config, 'parts', '--resume')
    assert [entry['step'] for entry in lab.logged('whole') if 'loss' in entry] == list(range(1, 13))
    lab.assert_same('whole', 'parts')
    checkpoint = lab.checkpoint('parts', 'iter_12.pth')
    state, average = checkpoint['state_dict'], checkpoint['ema_state_dict']
    # What is compared is not what every run begins with.
    assert state['average_head.step'] == 12 and state['threshold.global_threshold'] != torch.tensor(0.1)
    weight = state['student.head.fc.weight']
    assert not torch.equal(state['average_head.student.weight'], weight)
    assert not torch.equal(average['module.student.head.fc.weight'], weight)
    assert any('accuracy/top1' in entry for entry in lab.logged('parts'))


@pytest.mark.dist
@slow
def test_layermatch_in_two_processes(lab, layermatch):
    pytest.importorskip('mmpretrain')
    config = layermatch()
    lab.run_pair(config, 'whole')
    lab.run_pair(config, 'parts', at=7)
    lab.run_pair(config, 'parts', '--resume')
    lab.assert_same('whole', 'parts')


def die_in_writing(name: str, share: float) -> None:
    """Kill while the temporary file of a checkpoint is being written."""
    builtin_open = open

    def dying(path, *args, **kwargs):
        file = builtin_open(path, *args, **kwargs)
        if Path(path).name.startswith(f'.{name}.'):
            data = Path(__file__).read_bytes() * 100
            file.write(data[:int(len(data) * share)])
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        return file

    atomic.open = dying


def die_before_renaming(name: str) -> None:
    """Kill when a file is complete, under its temporary name."""
    replace = os.replace

    def dying(source, target):
        if Path(target).name == name:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)

    os.replace = dying


def die_after_renaming(name: str) -> None:
    """Kill when a file has just got its name."""
    replace = os.replace

    def dying(source, target):
        replace(source, target)
        if Path(target).name == name:
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = dying


def die_before_removing(name: str) -> None:
    """Kill when an old checkpoint is about to be removed."""
    remove = LocalBackend.remove

    def dying(backend, path):
        if Path(path).name == name:
            os.kill(os.getpid(), signal.SIGKILL)
        remove(backend, path)

    LocalBackend.remove = dying


def checkpoints(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if 'pth' in path.name}


def test_killed_while_checkpoints_are_written(lab, supervised):
    """One run, killed at every kind of moment around a checkpoint; at none of them are all checkpoints lost."""
    # The schedule: 3, 6, 9 and 12 are saved, 4, 8 and 12 validated, and saved again if they are the best so far.
    config = lab.write(supervised + "\ndefault_hooks['checkpoint']['rule'] = 'greater'\n")
    lab.run(config, 'whole')
    expected = checkpoints(lab.folder / 'whole')
    folder = lab.folder / 'parts'

    def dies(kill, *arguments: str) -> None:
        process = lab.start(config, 'parts', *arguments, before=kill)
        assert process.wait() == -signal.SIGKILL, process.text()

    dies(partial(die_in_writing, 'iter_3.pth', 0.5))
    assert not list(folder.glob('*.pth'))
    refused = lab.start(config, 'parts', '--resume')
    assert refused.wait() == 2
    assert '--resume: nothing to resume from' in refused.text()

    dies(partial(die_before_renaming, 'last_checkpoint'))
    assert checkpoints(folder) >= {'iter_3.pth'} and not (folder / 'last_checkpoint').exists()
    dies(partial(die_after_renaming, 'best_mIoU_iter_4.pth'), '--resume')
    assert checkpoints(folder) == {'iter_3.pth', 'best_mIoU_iter_4.pth'}
    dies(partial(die_in_writing, 'iter_6.pth', 0.), '--resume')
    whole = {path.name for path in folder.glob('iter_*.pth')}
    assert whole == {'iter_4.pth'} and (folder / 'last_checkpoint').read_text() == str(folder / 'iter_4.pth')
    dies(partial(die_before_removing, 'iter_4.pth'), '--resume')
    assert {path.name for path in folder.glob('iter_*.pth')} == {'iter_4.pth', 'iter_6.pth'}
    dies(partial(die_before_renaming, 'iter_9.pth'), '--resume')
    assert len(list(folder.glob('iter_*.pth'))) == 1
    lab.run(config, 'parts', '--resume')
    lab.assert_same('whole', 'parts')
    assert checkpoints(folder) == expected


def test_killed_during_a_validation(lab, supervised):
    """The validation of the checkpoint's iteration is made up for; one that is in the checkpoint is not repeated."""
    config = lab.write(supervised + "\ntrain_cfg['val_interval'] = 3\n")

    def arm() -> None:
        from mmengine.runner import ValLoop
        run_iter = ValLoop.run_iter

        def dying(loop, index, data_batch):
            if loop.runner.iter == 6 and index == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            run_iter(loop, index, data_batch)

        ValLoop.run_iter = dying

    lab.run(config, 'whole')
    process = lab.start(config, 'parts', before=arm)
    assert process.wait() == -signal.SIGKILL, process.text()
    assert 6 not in [entry['step'] for entry in lab.logged('parts') if 'mIoU' in entry]
    lab.run(config, 'parts', '--resume')
    lab.assert_same('whole', 'parts')
    hubs = [lab.checkpoint(run, 'iter_12.pth')['message_hub']['runtime_info'] for run in ('whole', 'parts')]
    assert hubs[0]['best_score'] == hubs[1]['best_score'] and hubs[0]['last_validation'] == hubs[1]['last_validation']

    # iter_3 is the first best, so it was saved once more after its validation.
    assert 'last_validation' in hubs[0]
    count = len([1 for path in (lab.folder / 'parts').glob('*/vis_data/scalars.json')
                 for line in path.read_text().splitlines() if 'mIoU' in json.loads(line)])  # yapf: disable
    lab.run(config, 'parts', '--resume', '--cfg-options', 'train_cfg.max_iters=13', 'train_cfg.val_interval=100')
    again = len([1 for path in (lab.folder / 'parts').glob('*/vis_data/scalars.json')
                 for line in path.read_text().splitlines() if 'mIoU' in json.loads(line)])  # yapf: disable
    assert again == count + 1  # of iteration 13, the last one


@pytest.mark.parametrize('at', [pytest.param(6, marks=slow), 7, pytest.param(8, marks=slow)])
def test_epochs(lab, supervised, at):
    """Epochs of 4 iterations, checkpoints every 3: a resumed run goes on in the middle of an epoch, or at its end."""
    config = lab.write(supervised + """
train_dataloader.update(batch_size=1, sampler=dict(type='mmssl.MultiSourceSampler', source_ratio=[1], infinite=False))
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=3)
default_hooks['checkpoint']['interval'] = 3 if {at} != 8 else 8
default_hooks['checkpoint']['save_best'] = None
""", at=at)
    lab.run(config, 'whole')
    lab.killed(config, 'parts', at=at)
    lab.run(config, 'parts', '--resume')
    lab.assert_same('whole', 'parts')
    assert [entry['step'] for entry in lab.logged('parts') if 'mIoU' in entry] == [4, 8, 12]


@slow
def test_accumulated_gradients(lab, semi):
    """The teacher follows optimizer steps, of which there is one every 3 iterations, as there are checkpoints."""
    body, values = semi('MeanTeacherSegmentor')
    config = lab.write(body + "\noptim_wrapper['accumulative_counts'] = 3\n", workers=2, **values)
    assert 'accumulative_counts' not in lab.run(config, 'whole').split('Config:')[0]
    lab.killed(config, 'parts', at=7)
    lab.run(config, 'parts', '--resume')
    lab.assert_same('whole', 'parts')
    other = lab.run(config, 'other', '--cfg-options', 'default_hooks.checkpoint.interval=4', 'train_cfg.max_iters=1')
    assert 'warning: default_hooks.checkpoint.interval=4 is not a multiple of optim_wrapper.accumulative' in other


@pytest.mark.dist
@pytest.mark.parametrize('method', [
    pytest.param(name, marks=[] if name == 'MeanTeacherSegmentor' else slow) for name in SEGMENTORS])
def test_two_processes(lab, semi, method):
    body, values = semi(method)
    config = lab.write(body, workers=0, **values)
    lab.run_pair(config, 'whole')
    lab.run_pair(config, 'parts', at=7)
    lab.run_pair(config, 'parts', '--resume')
    lab.assert_same('whole', 'parts')


@slow
@pytest.mark.parametrize('method', SEGMENTORS)
def test_killed_at_random_moments(lab, semi, method):
    """Kill after random times until the run gets through."""
    body, values = semi(method)
    config = lab.write(body, workers=2, **values)
    start = time.perf_counter()
    lab.run(config, 'whole')
    length = time.perf_counter() - start
    moments = random.Random(method)
    for _ in range(30):
        resumable = list((lab.folder / 'parts').glob('iter_*.pth'))
        process = lab.start(config, 'parts', *(['--resume'] if resumable else []))
        time.sleep(moments.uniform(0.3, 1.) * length)
        if process.kill() == 0:
            break
    else:
        lab.run(config, 'parts', '--resume')
    lab.assert_same('whole', 'parts')


@pytest.mark.parametrize('sampler', [
    pytest.param("dict(type='mmssl.MultiSourceSampler', source_ratio=[1])", marks=slow),
    "dict(type='InfiniteSampler')",
    pytest.param("dict(type='DefaultSampler', shuffle=True)", marks=slow),
])
def test_far_resume_loads_nothing(lab, supervised, sampler):
    """Iteration 10,000 begins without the images before it, with any sampler."""
    config = lab.write(supervised + f"\ntrain_dataloader['sampler'] = {sampler}\nval_cfg = val_dataloader = None\n"
                       "val_evaluator = None\ntrain_cfg['max_iters'] = 1\n"
                       "default_hooks['checkpoint']['save_best'] = None\n")
    if 'MultiSource' not in sampler:
        config.write_text(config.read_text() + "train_dataloader['dataset'] = labeled | dict(pipeline=[load, "
                          "dict(type='LoadAnnotations'), *geometry, dict(type='PackSegInputs')])\n")
    lab.run(config, 'far')
    checkpoint = lab.checkpoint('far', 'iter_1.pth')
    checkpoint['meta']['iter'] = 10_000
    torch.save(checkpoint, lab.folder / 'far' / 'iter_10000.pth')

    def arm() -> None:
        from mmcv.transforms import LoadImageFromFile
        transform, loads = LoadImageFromFile.transform, []

        def counting(self, results):
            loads.append(results['img_path'])
            if len(loads) > 20:
                os._exit(77)
            return transform(self, results)

        LoadImageFromFile.transform = counting

    path = str(lab.folder / 'far' / 'iter_10000.pth')
    process = lab.start(config, 'far', '--resume', path, '--cfg-options', 'train_cfg.max_iters=10003', before=arm)
    assert process.wait() == 0, process.text()
    assert [entry['step'] for entry in lab.logged('far')][1:] == [10_001, 10_002, 10_003]


def test_a_loss_that_is_not_finite_leaves_the_last_good_checkpoint(lab, semi):
    body, values = semi('CrossPseudoSupervision')
    config = lab.write(body, workers=0, **values)

    def arm() -> None:
        from mmseg.models import FCNHead

        from mmssl.models.segmentors import CrossPseudoSupervision
        forward = FCNHead.forward

        def poisoned(head, inputs):
            output = forward(head, inputs)
            return output * float('nan') if poisoned.calls > 0 else output

        loss = CrossPseudoSupervision.loss

        def counting(model, *args):
            poisoned.calls = int(model.iteration) - 7
            return loss(model, *args)

        poisoned.calls = 0
        FCNHead.forward, CrossPseudoSupervision.loss = poisoned, counting

    process = lab.start(config, 'out', before=arm)
    assert process.wait() == 1
    assert 'FloatingPointError: iteration 9: ' in process.text()
    last = (lab.folder / 'out' / 'last_checkpoint').read_text()
    state = torch.load(last, weights_only=False)['state_dict']
    assert all(torch.isfinite(value).all() for value in state.values() if value.is_floating_point())
    # What caused it is gone, so the run goes on from there, to the end of a run that never met it.
    lab.run(config, 'out', '--resume')
    lab.run(config, 'whole')
    lab.assert_same('whole', 'out')


@pytest.mark.parametrize('method', [
    pytest.param(name, marks=[] if name == 'AELSegmentor' else slow) for name in SEGMENTORS])
def test_state_of_every_method_loads_with_weights_only(lab, semi, method):
    """And the whole checkpoint does not need mmengine's unsafe way of loading."""
    body, values = semi(method)
    lab.run(lab.write(body, workers=0, **values), 'out', '--cfg-options', 'train_cfg.max_iters=4')
    checkpoint = lab.checkpoint('out', 'iter_4.pth')
    torch.save({key: checkpoint[key] for key in ('state_dict', 'optimizer')}, 'state.pth')
    torch.load('state.pth', weights_only=True)
    ours = {key: value for key, value in checkpoint['message_hub']['runtime_info'].items()
            if key in ('best_score', 'last_validation', 'outdated_ckpts')}  # yapf: disable
    assert len(ours) == 3
    torch.save(ours, 'hub.pth')
    assert torch.load('hub.pth', weights_only=True) == ours
