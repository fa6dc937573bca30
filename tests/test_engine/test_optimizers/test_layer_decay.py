"""Layer-wise learning rates and the 7/16 cosine, as the configs set them."""

import math

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, PARAM_SCHEDULERS
from torch import nn

pytest.importorskip('mmpretrain')


class Semi(nn.Module):
    """A semi-supervised model, as far as an optimizer sees it."""

    def __init__(self, student, teacher=None):
        super().__init__()
        self.student = student
        if teacher is not None:
            self.teacher = teacher.requires_grad_(False)


@pytest.fixture(scope='module')
def cfg(repo_root):
    base = repo_root / 'configs' / '_base_'
    return [Config.fromfile(base / name) for name in ('models/vit_t_p2_32.py', 'schedules/cosine_7_16_vit.py')]


def build(cfg):
    import mmpretrain.models  # noqa: F401
    from mmengine.registry import DefaultScope
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        return MODELS.build({**cfg.model, 'backbone': {**cfg.model.backbone, 'img_size': 8}})


@pytest.mark.parametrize('held', ['alone', 'student', 'student and teacher'])
def test_groups_of_a_vision_transformer(cfg, held):
    """C.4: stem 0, layers 1 to 12, last norm with the last layer, head 13; no weight decay on vectors and tokens."""
    model = build(cfg[0])
    if held != 'alone':
        model = Semi(model, build(cfg[0]) if 'teacher' in held else None)
    wrapper = build_optim_wrapper(model, cfg[1].optim_wrapper)
    groups = {group['param_name'].removeprefix('student.'): group for group in wrapper.optimizer.param_groups}
    assert len(groups) == len(list(build(cfg[0]).parameters()))
    for name, group in groups.items():
        part = name.removeprefix('backbone.')
        if part.startswith('layers.'):
            expected = int(part.split('.')[1]) + 1
        else:
            expected = {'ln1': 12, 'head': 13}.get(part.split('.')[0], 0)
        assert group['layer_id'] == expected, name
        assert group['lr'] == pytest.approx(5e-4 * 0.5**(13 - expected)), name
        vector = group['params'][0].ndim == 1 or part in ('cls_token', 'pos_embed')
        assert group['weight_decay'] == (0 if vector else 5e-4), name
    assert {group['layer_id'] for group in groups.values()} == set(range(14))


def test_backbone_without_layers(cfg):
    with pytest.raises(ValueError, match=r'needs a backbone that tells its layers apart .* Semi has the parts'):
        build_optim_wrapper(Semi(nn.Linear(2, 2)), cfg[1].optim_wrapper)


def test_known_size_of_the_transformer(cfg):
    """DeiT-T for 224 pixels and 1,000 classes has 5,717,416 parameters; patches, positions and classes are others."""
    import mmpretrain.models  # noqa: F401
    from mmengine.registry import DefaultScope
    with DefaultScope.overwrite_default_scope('mmpretrain'), torch.device('meta'):
        model = MODELS.build(cfg[0].model)
    known = 5_717_416 - 3 * 16 * 16 * 192 + 3 * 2 * 2 * 192 - 197 * 192 + 257 * 192 - 1000 * 193 + 10 * 193
    assert sum(parameter.numel() for parameter in model.parameters()) == known
    layers = [layer.attn.out_drop for layer in model.backbone.layers]
    drop = [layer.drop_prob for layer in layers if hasattr(layer, 'drop_prob')]
    assert len(drop) >= 11
    assert drop == pytest.approx([0.1 * i / 11 for i in range(12)][-len(drop):])
    assert model.backbone.ln1.eps == 1e-6


@pytest.mark.parametrize('name, base, warmup', [('cosine_7_16', 0.03, 0), ('cosine_7_16_vit', 5e-4, 50)])
def test_schedule(repo_root, name, base, warmup):
    """C.4: lr * cos(7 pi (k - w) / 16 (K - w)) after a linear warm-up; here with K = 1,000."""
    cfg = Config.fromfile(repo_root / 'configs' / '_base_' / 'schedules' / f'{name}.py')
    total = 1000
    assert cfg.max_iters == (2**20 if not warmup else 204_800) == cfg.train_cfg.max_iters
    assert cfg.param_scheduler[-1].T_max == pytest.approx(16 * (cfg.max_iters - cfg.get('warmup', 0)) / 7)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=base)
    schedulers = []
    for node in cfg.param_scheduler:
        node = dict(node)
        if 'T_max' in node:
            node.update(T_max=16 * (total - warmup) / 7, begin=warmup, end=total)
        else:
            node.update(end=warmup + 1)
        schedulers.append(PARAM_SCHEDULERS.build(node, default_args=dict(optimizer=optimizer)))
    for k in range(total):
        expected = k / warmup if k < warmup else math.cos(7 * math.pi * (k - warmup) / (16 * (total - warmup)))
        assert optimizer.param_groups[0]['lr'] == pytest.approx(base * expected, abs=1e-7 * base), k
        optimizer.step()
        for scheduler in schedulers:
            scheduler.step()


def test_no_weight_decay_on_norms_and_biases(repo_root):
    cfg = Config.fromfile(repo_root / 'configs' / '_base_' / 'schedules' / 'cosine_7_16.py')
    from mmssl.models.backbones import WideResNet
    network = WideResNet(depth=10)
    wrapper = build_optim_wrapper(network, cfg.optim_wrapper)
    assert wrapper.optimizer.defaults['nesterov'] and wrapper.optimizer.defaults['lr'] == 0.03
    decays = {}
    for group in wrapper.optimizer.param_groups:
        for parameter in group['params']:
            decays[parameter] = group['weight_decay']
    for name, parameter in network.named_parameters():
        assert decays[parameter] == (0 if parameter.ndim == 1 else 5e-4), name
