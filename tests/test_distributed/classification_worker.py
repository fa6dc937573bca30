"""Started by torchrun: saves gradients and statistics of classifiers, with the whole batch spread over the ranks."""

import sys

import torch
from mmengine.dist import get_dist_info
from mmengine.registry import init_default_scope
from mmpretrain.registry import MODELS
from mmpretrain.structures import DataSample
from torch.nn.parallel import DistributedDataParallel

UNITS, LABELED, UNLABELED, SIZE, STEPS = 4, 2, 6, 12, 3
BRANCHES = dict(sup=LABELED, unsup_weak=UNLABELED, unsup_strong=UNLABELED)


def classifier() -> dict:
    # GroupNorm, since BatchNorm on CPU cannot be synchronized.
    return dict(
        type='ImageClassifier',
        backbone=dict(
            type='ResNet_CIFAR', depth=18, stem_channels=4, base_channels=4, norm_cfg=dict(type='GN', num_groups=2)
        ),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=4, in_channels=32, loss=dict(type='CrossEntropyLoss')),
    )


def of(name: str, **options: object) -> dict:
    return dict(type=f'mmssl.{name}', **options)


FIXED = of('FixedThreshold', threshold=0.5)
ADAPTIVE = of('SelfAdaptiveThreshold', momentum=0.3)
CASES = {
    'fixmatch': dict(threshold=FIXED),
    'fixmatch_selected': dict(threshold=FIXED, normalize='selected'),
    'fixmatch_apart': dict(threshold=FIXED, concatenate=False),
    # The first step is before the unsupervised loss starts.
    'fixmatch_begins_later': dict(threshold=FIXED, unsup_begin=1),
    'freematch': dict(threshold=ADAPTIVE, fairness_weight=0.1, normalize='selected'),
    'freematch_quantile': dict(threshold=dict(ADAPTIVE, quantile=0.6)),
    'softmatch': dict(
        threshold=of('SoftMatchWeight', momentum=0.3),
        alignment=of('DistributionAlignment', momentum=0.3, apply_to='confidence'),
        normalize='selected',
    ),
    'adamatch': dict(
        threshold=of('AdaMatchThreshold', threshold=0.8),
        alignment=of('DistributionAlignment', target='labeled', momentum=0.3),
    ),
    'flexmatch': dict(threshold=of('FlexMatchThreshold', threshold=0.5, num_samples=40)),
    'dash': dict(threshold=of('DashThreshold', interval=1), target='soft', unsup_begin=1),
    'uda': dict(threshold=FIXED, target='soft', temperature=0.4, tsa=dict(schedule='linear', iterations=4)),
    'fpl': dict(threshold=FIXED, target='soft', unsup_loss=of('FPLLoss')),
    'layermatch': dict(threshold=ADAPTIVE),
    'layermatch_selected': dict(threshold=ADAPTIVE, normalize='selected', unsup_begin=1),
    'layermatch_apart_lookahead': dict(threshold=FIXED, concatenate=False),
    'mean_teacher': dict(
        teacher='ema', target='soft', unsup_loss=of('ConsistencyMSELoss'), unsup_weight=50.0,
        threshold=of('FixedThreshold', threshold=0.0),
    ),
}  # fmt: skip


def unit(index: int, step: int) -> tuple[dict, dict]:
    """Labeled and unlabeled images, as unit ``index`` of the sampler's global stream; an image may come twice."""
    generator = torch.Generator().manual_seed(100 * step + index)
    inputs = {
        name: torch.randn(count, 3, SIZE, SIZE, generator=generator, dtype=torch.float64)
        for name, count in BRANCHES.items()
    }
    numbers = torch.randint(0, 40, (UNLABELED,), generator=generator).tolist()
    samples = {name: [DataSample(metainfo=dict(sample_idx=i)) for i in numbers[:n]] for name, n in BRANCHES.items()}
    for number, sample in enumerate(samples['sup']):
        sample.set_gt_label((index + number) % 4)
    return inputs, samples


def batch_of(rank: int, world_size: int, step: int) -> tuple[dict, dict]:
    mine = [unit(index, step) for index in range(rank, UNITS, world_size)]
    inputs = {name: torch.cat([part[0][name] for part in mine]) for name in BRANCHES}
    samples = {name: [item for part in mine for item in part[1][name]] for name in BRANCHES}
    return inputs, samples


def main(out: str) -> None:
    torch.distributed.init_process_group('gloo')  # mmengine's init_dist wants a GPU
    rank, world_size = get_dist_info()
    torch.set_num_threads(1)
    init_default_scope('mmpretrain')
    saved = {}
    for name, options in CASES.items():
        torch.manual_seed(0)
        config = dict(type='mmssl.PseudoLabelClassifier', classifier=classifier(), semi_train_cfg=options)
        # Three steps of training enlarge what rounding differs by; in float64 that stays small.
        model = MODELS.build(config).train().double()
        with torch.no_grad():  # some images are confident and some are not
            weight = torch.nn.init.normal_(model.student.head.fc.weight, std=0.2)
            weight -= weight.mean(dim=1, keepdim=True)
        if model.has_teacher:
            model.initialize_teacher()
            with torch.no_grad():
                for parameter in model.teacher.parameters():
                    parameter += 0.05 * torch.randn_like(parameter)
        if 'layermatch' in name:
            model.set_grad_relu(['head.fc'])
            # Steps that show: after the first, the loss is that of an averaged layer which all ranks have moved.
            model.set_average_head(
                'head.fc', momentum=1.0, lr=0.05, reset_interval=2, loss_weight=0.7, lookahead='lookahead' in name
            )
        wrapped = DistributedDataParallel(model, find_unused_parameters=False)
        optimizer = torch.optim.SGD(model.student.parameters(), lr=0.01)
        for step in range(STEPS):
            optimizer.zero_grad()
            losses = wrapped(*batch_of(rank, world_size, step), mode='loss')
            loss, log = model.parse_losses(losses)
            loss.backward()
            saved[f'{name}.{step}.gradient'] = {
                key: p.grad.clone() for key, p in model.named_parameters() if p.requires_grad
            }  # fmt: skip
            optimizer.step()
            model.update_average_head()
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
