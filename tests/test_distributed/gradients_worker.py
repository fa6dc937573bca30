"""Started by torchrun: saves the gradients of several models, with the whole batch spread over the ranks."""

import sys

import torch
from mmengine.dist import get_dist_info
from mmengine.registry import init_default_scope
from mmengine.structures import PixelData
from mmseg.registry import MODELS
from mmseg.structures import SegDataSample
from torch.nn.parallel import DistributedDataParallel

from mmssl.models.supervised_only import SupervisedOnly
from mmssl.utils.layer_names import find_layers

UNITS, RATIO, SIZE = 4, (1, 2), (32, 32)
STRONG = ('unsup_strong', 'unsup_strong2')


def segmentor() -> dict:
    # GroupNorm, since BatchNorm on CPU cannot be synchronized.
    norm_cfg = dict(type='GN', num_groups=2)
    head = dict(type='FCNHead', num_convs=1, channels=4, num_classes=4, norm_cfg=norm_cfg, dropout_ratio=0.0)
    return dict(
        type='EncoderDecoder',
        backbone=dict(
            type='ResNetV1c', depth=18, stem_channels=4, base_channels=4, strides=(1, 2, 1, 1), norm_cfg=norm_cfg
        ),
        decode_head=dict(head, in_channels=32, in_index=3, loss_decode=dict(type='CrossEntropyLoss')),
        auxiliary_head=dict(
            head, in_channels=16, in_index=2, loss_decode=dict(type='CrossEntropyLoss', loss_weight=0.4)
        ),
        train_cfg=dict(),
        test_cfg=dict(mode='whole'),
    )


def cps(**options: object) -> dict:
    return dict(type='mmssl.CrossPseudoSupervision', segmentor=segmentor(), semi_train_cfg=options)


def mean_teacher(**options: object) -> dict:
    return dict(type='mmssl.MeanTeacherSegmentor', segmentor=segmentor(), semi_train_cfg=options)


RELEASED_FPL = dict(type='mmssl.FPLLoss', max_k=3, weight_bound='top_k_plus_1', balance='ce_value')
CUTMIX = dict(type='mmssl.CutMix', seed=7)
CASES = {
    'supervised': segmentor(),
    'cps': cps(unsup_weight=1.5),
    'cps_cutmix_fpl': cps(unsup_loss=dict(type='mmssl.FPLLoss'), mix=CUTMIX),
    'cps_cutmix_released_fpl': cps(unsup_loss=RELEASED_FPL, mix=CUTMIX),
    'cps_fpl_without_padding': cps(unsup_loss=dict(type='mmssl.FPLLoss'), ignore_padding=True, unsup_on='all'),
    # The first of the two steps is before the unsupervised loss starts, the second after.
    'cps_begins_later': cps(unsup_loss=dict(type='mmssl.FPLLoss'), mix=CUTMIX, unsup_begin=1),
    'mean_teacher': mean_teacher(),
    'mean_teacher_cutmix_fpl': mean_teacher(unsup_loss=RELEASED_FPL, mix=CUTMIX, strong_branches=('unsup_weak',)),
    'unimatch': mean_teacher(
        unsup_loss=dict(type='mmssl.HardPseudoLabelLoss', threshold=0.4),
        mix=dict(CUTMIX, both_ways=True),
        strong_branches=('unsup_strong', 'unsup_strong2'),
        strong_weights=(0.25, 0.25),
        feature_perturbation=dict(type='mmssl.FeatureDropout', images_per_unit=RATIO[1], seed=7),
        ignore_padding=True,
    ),
    'cps_layermatch': cps(unsup_loss=dict(type='mmssl.FPLLoss'), mix=CUTMIX, ignore_padding=True),
    'cps_layermatch_all_images': cps(unsup_weight=1.5),
    'cps_layermatch_lookahead': cps(mix=CUTMIX),
    'mean_teacher_layermatch': mean_teacher(mix=CUTMIX, strong_branches=('unsup_weak',)),
    'cps_by_name': cps(mix=CUTMIX),
    'supervised_by_name': segmentor(),
    'cps_threshold': cps(unsup_loss=dict(type='mmssl.HardPseudoLabelLoss', threshold=0.4), mix=CUTMIX),
}


def unit(index: int) -> tuple[dict, dict]:
    """One labeled and two unlabeled images, as unit ``index`` of the sampler's global stream."""
    generator = torch.Generator().manual_seed(index)
    inputs, samples = {}, {}
    for branch, count in zip(('sup', 'unsup_weak'), RATIO, strict=True):
        inputs[branch] = torch.randn(count, 3, *SIZE, generator=generator)
        samples[branch] = []
        for _ in range(count):
            # The padding differs between images, and so the number of valid pixels between ranks.
            sample = SegDataSample(metainfo=dict(img_shape=SIZE, padding_size=(0, 4 * index, 0, 0)))
            if branch == 'sup':
                sample.gt_sem_seg = PixelData(data=torch.randint(0, 4, (1, *SIZE), generator=generator))
            samples[branch].append(sample)
    for branch in STRONG:
        inputs[branch] = inputs['unsup_weak'] + 0.3 * torch.randn(RATIO[1], 3, *SIZE, generator=generator)
        samples[branch] = samples['unsup_weak']
    return inputs, samples


def check_that_ranks_share_a_teacher() -> None:
    """Running statistics differ between the ranks' students, and must not between their teachers."""
    config = mean_teacher()
    for part in ('backbone', 'decode_head', 'auxiliary_head'):
        config['segmentor'][part]['norm_cfg'] = dict(type='BN')
    model = MODELS.build(config)
    model.initialize_teacher()
    rank, _ = get_dist_info()
    model.student.backbone.stem[1].running_mean.fill_(rank)
    for rule in ('average', 'copy'):
        model.update_teacher(0.5, rule)
        mine = torch.cat([b.double().flatten() for b in model.teacher.buffers()])
        shared = mine.clone()
        torch.distributed.broadcast(shared, 0)
        assert torch.equal(mine, shared)
        assert model.teacher.backbone.stem[1].running_mean.unique().tolist() == ([0.25] if rule == 'average' else [0.5])


def main(out: str) -> None:
    torch.distributed.init_process_group('gloo')  # mmengine's init_dist wants a GPU
    rank, world_size = get_dist_info()
    torch.set_num_threads(1)
    init_default_scope('mmseg')
    mine = [unit(index) for index in range(rank, UNITS, world_size)]
    inputs = {name: torch.cat([part[0][name] for part in mine]) for name in mine[0][0]}
    samples = {name: [item for part in mine for item in part[1][name]] for name in mine[0][1]}
    if world_size == 2:
        check_that_ranks_share_a_teacher()
    saved = {}
    for name, config in CASES.items():
        torch.manual_seed(0)
        model = MODELS.build(config)
        # Sharper logits, so that labels, K and thresholds differ between pixels.
        for head in (module for key, module in model.named_modules() if key.endswith('conv_seg')):
            torch.nn.init.normal_(head.weight, std=2.0)
        if hasattr(model, 'teacher'):
            for parameter in model.teacher.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
            model.follow_teacher()
        if 'layermatch' in name:
            model.set_grad_relu(['decode_head.conv_seg'])
            # Steps that show: the second one starts from an averaged layer that all ranks have moved.
            model.set_average_head(
                'decode_head.conv_seg', momentum=1.0, lr=0.5, loss_weight=0.7, lookahead='lookahead' in name
            )
        elif name == 'cps_by_name':
            SupervisedOnly(model, find_layers(model.trained_models(), ['decode_head.*'], name), ['sup_*'], name)
        elif name == 'supervised_by_name':
            layers = find_layers({'': model}, ['decode_head.conv_seg', 'backbone.layer3'], name)
            SupervisedOnly(model, layers, ['decode.*'], name)
        wrapped = DistributedDataParallel(model, find_unused_parameters=False)
        batch = (inputs['sup'], samples['sup']) if name.startswith('supervised') else (inputs, samples)
        for step in range(2):
            model.zero_grad()
            loss, _ = model.parse_losses(wrapped(*batch, mode='loss'))
            loss.backward()
            saved[f'{name}.{step}'] = {
                key: p.grad.clone() for key, p in model.named_parameters() if p.requires_grad
            }  # fmt: skip
            if 'layermatch' in name:
                model.update_average_head()
                if step or not model.average_head.lookahead:  # which starts with a copy that has not moved yet
                    saved[f'{name}.{step}.average'] = {
                        f'{path}.{key}': value - dict(model.get_submodule(path).named_parameters())[key].detach()
                        for student, path in model.average_layers.items()
                        for key, value in model.average_head.weights(student).items()
                    }
            if hasattr(model, 'teacher'):
                model.update_teacher(0.3)
    if rank == 0:
        torch.save(saved, out)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == '__main__':
    main(sys.argv[1])
