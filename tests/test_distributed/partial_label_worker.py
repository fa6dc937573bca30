"""Started by torchrun: saves gradients, state and statistics of partial-label classifiers, the batch over the ranks."""

import sys

import torch
from classification_worker import SIZE, classifier  # same folder
from mmengine.dist import get_dist_info
from mmengine.registry import init_default_scope
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from torch.nn.parallel import DistributedDataParallel

TOTAL, SAMPLES, STEPS, CLASSES = 8, 10, 4, 4
NO_TEACHER = dict(estimator=None, semi_train_cfg=dict(teacher=None))
WITH_TEACHER = dict(estimator=None)


def objective(name: str, **options: object) -> dict:
    return dict(type=f'mmssl.{name}', **options)


CASES = {
    'rgd_pll': dict(semi_train_cfg=dict(unsup_begin=1)),
    'cc': dict(NO_TEACHER, objective=objective('CCLoss')),
    'proden': dict(NO_TEACHER, objective=objective('PRODENLoss')),
    'proden_teacher': dict(WITH_TEACHER, objective=objective('PRODENLoss', branch='unsup_strong')),
    'lws': dict(NO_TEACHER, objective=objective('LWSLoss')),
    'cavl': dict(NO_TEACHER, objective=objective('CAVLLoss')),
    'crdpll': dict(NO_TEACHER, objective=objective('CRDPLLLoss', ramp=2)),
    # The queue is full in the third step.
    'pico': dict(WITH_TEACHER, objective=objective('PiCOLoss', embed_dims=6, queue_size=20, keep_ramp=5, prot_start=2)),
}


def batch_of(rank: int, world_size: int, step: int) -> tuple[dict, dict]:
    """Samples rank, rank + world_size, ... of the step; some are there twice, also on different ranks."""
    generator = torch.Generator().manual_seed(step)
    inputs, samples = {}, []
    for branch in ('unsup_weak', 'unsup_strong'):
        images = torch.randn(TOTAL, 3, SIZE, SIZE, generator=generator, dtype=torch.float64)
        inputs[branch] = images[rank::world_size]
    numbers = torch.randint(0, SAMPLES, (TOTAL,), generator=generator).tolist()
    for number in numbers[rank::world_size]:
        sample = DataSample(metainfo=dict(sample_idx=number, true_label=number % CLASSES))
        mask = torch.tensor([c in (number % CLASSES, number // CLASSES) for c in range(CLASSES)])
        sample.set_field(mask, 'candidates')
        samples.append(sample)
    return inputs, dict(unsup_weak=samples, unsup_strong=samples)


def main(out: str) -> None:
    torch.distributed.init_process_group('gloo')  # mmengine's init_dist wants a GPU
    rank, world_size = get_dist_info()
    torch.set_num_threads(1)
    init_default_scope('mmpretrain')
    saved = {}
    for name, options in CASES.items():
        torch.manual_seed(0)
        model = MODELS.build(dict(type='mmssl.PartialLabelClassifier', classifier=classifier(), **options))
        model.train().double()
        with torch.no_grad():
            torch.nn.init.normal_(model.student.head.fc.weight, std=0.2)
        if model.has_teacher:
            model.initialize_teacher()
        if getattr(model.objective, 'targets', None) is not None:
            model.objective.targets.set_samples(SAMPLES, b'digest', 'sets.txt')
        wrapped = DistributedDataParallel(model, find_unused_parameters=False)
        optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.05)
        for step in range(STEPS):
            optimizer.zero_grad()
            loss, log = model.parse_losses(wrapped(*batch_of(rank, world_size, step), mode='loss'))
            loss.backward()
            saved[f'{name}.{step}.gradient'] = {
                key: p.grad.clone() for key, p in model.named_parameters() if p.requires_grad
            }  # fmt: skip
            optimizer.step()
            if model.has_teacher:
                model.update_teacher(0.3)
            saved[f'{name}.{step}.state'] = {
                key: value.clone() for key, value in model.state_dict().items() if not key.startswith('student')
            }
            saved[f'{name}.{step}.log'] = {key: value.detach().clone() for key, value in log.items()}
    torch.save(saved, f'{out}.{rank}')
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == '__main__':
    main(sys.argv[1])
