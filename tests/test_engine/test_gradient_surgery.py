"""The surgery wrappers against gradients taken one by one, on toy models and on stock ones."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from mmengine.config import ConfigDict
from mmengine.logging import MessageHub
from mmengine.model import BaseModel
from mmengine.registry import OPTIM_WRAPPERS, DefaultScope
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mmssl.functional.gradient_surgery import inner_products, pcgrad_combination, rgd_combination

PATTERNS = dict(primary=['loss_main'], auxiliary=['aux.*'], shared=['encoder'])


class Checkpointed(nn.Module):
    """A block whose activations are computed again in the backward pass, as with ``with_cp=True``."""

    def __init__(self, block: nn.Module, kind: str | None) -> None:
        super().__init__()
        self.block, self.kind = block, kind

    def forward(self, inputs: Tensor) -> Tensor:
        if self.kind is None or not torch.is_grad_enabled():
            return self.block(inputs)
        return checkpoint(self.block, inputs, use_reentrant=self.kind == 'reentrant')


class TwoTasks(BaseModel):
    """An encoder and two heads; the second task pulls against the first."""

    def __init__(self, kind: str | None = None, against: float = 1.0) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 8), Checkpointed(nn.Sequential(nn.Tanh(), nn.Linear(8, 5)), kind))
        self.head = nn.Linear(5, 3)
        self.estimator = nn.Linear(5, 3)
        self.unused = nn.Linear(2, 2)
        self.against = against

    def forward(self, inputs: Tensor, data_samples: Any = None, mode: str = 'tensor') -> Any:
        features = self.encoder(inputs)
        if mode != 'loss':
            return self.head(features)
        labels = torch.arange(len(inputs)) % 3
        # Two terms that only together are a task, and a statistic.
        return {
            'loss_main': F.cross_entropy(self.head(features), labels),
            'aux.loss_a': -self.against * F.cross_entropy(self.estimator(features), labels),
            'aux.loss_b': [self.estimator(features).square().mean(), 0.1 * self.head(features).mean()],
            'reliability': features.detach().sigmoid().mean(),
        }


@pytest.fixture(autouse=True)
def own_hub() -> Iterator[None]:
    hubs = dict(MessageHub._instance_dict)
    MessageHub._instance_dict.clear()
    yield
    MessageHub._instance_dict.clear()
    MessageHub._instance_dict.update(hubs)


def build(model: nn.Module, optimizer: torch.optim.Optimizer | None = None, **options: Any) -> Any:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=1.0)
    wrapper = OPTIM_WRAPPERS.build(ConfigDict(
        {'type': 'mmssl.RGDOptimWrapper', **PATTERNS, **options}), default_args=dict(optimizer=optimizer))
    wrapper.initialize_count_status(model, 0, 1000)
    return wrapper


def batch(size: int = 8, seed: int = 1) -> dict:
    return dict(inputs=torch.randn(size, 6, generator=torch.Generator().manual_seed(seed)))


def step(model: nn.Module, wrapper: Any, data: dict) -> dict[str, Tensor | None]:
    """One training step with SGD of rate 1; returns what was subtracted from the parameters."""
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    model.train_step(data, wrapper)
    return {name: before[name] - value.detach() for name, value in model.named_parameters()}


def separate(model: nn.Module, data: dict) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The gradients of the two tasks, one after the other."""
    gradients = []
    for names in (['loss_main'], ['aux.loss_a', 'aux.loss_b']):
        model.zero_grad()
        losses = model(**data, mode='loss')
        sum(sum(item.mean() for item in (v if isinstance(v, list) else [v]))
            for v in (losses[n] for n in names)).backward()
        gradients.append({n: torch.zeros_like(p) if p.grad is None else p.grad.clone()
                          for n, p in model.named_parameters()})
    model.zero_grad()
    return tuple(gradients)


def flat(gradients: dict[str, Tensor], prefix: str = 'encoder') -> Tensor:
    return torch.cat([value.flatten() for name, value in gradients.items() if name.startswith(prefix)])


def expected(g_p: dict[str, Tensor], g_r: dict[str, Tensor], coefficient: float = 1.0, **options: Any) -> dict:
    symmetric = options.pop('symmetric', False)
    products = inner_products(flat(g_p), flat(g_r))
    chosen = (pcgrad_combination(*products, coefficient) if symmetric
              else rgd_combination(*products, coefficient, **options))
    a, b = float(chosen.primary), float(chosen.auxiliary)
    return {name: a * g_p[name] + b * g_r[name] if name.startswith('encoder') else g_p[name] + g_r[name]
            for name in g_p}


def assert_same(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value, atol=1e-6, rtol=1e-5, msg=lambda text, n=name: f'{n}: {text}')


@pytest.mark.parametrize(('options', 'reference'), [
    ({}, {}),
    (dict(coefficient=0.3), dict(coefficient=0.3)),
    (dict(balance=False), dict(balance=None)),
    (dict(balance='ratio', ratio=0.5), dict(balance='ratio', ratio=0.5)),
    (dict(projection=None, balance=False), dict(projection=False, balance=None)),
    (dict(projection='symmetric'), dict(symmetric=True)),
])  # yapf: disable
@pytest.mark.parametrize('against', [1.0, -1.0])
def test_exact(options: dict, reference: dict, against: float) -> None:
    model = TwoTasks(against=against)
    data = batch()
    wanted = expected(*separate(model, data), **reference)
    assert_same(step(model, build(model, **options), data), wanted)


def test_the_toy_has_a_conflict_and_the_projection_removes_it() -> None:
    model = TwoTasks()
    g_p, g_r = separate(model, batch())
    assert torch.dot(flat(g_p), flat(g_r)) < 0
    wrapper = build(model)
    g = flat(step(model, wrapper, batch()))
    assert torch.dot(g, flat(g_p)) >= flat(g_p).square().sum() * (1 - 1e-5)
    logged = {name: wrapper.message_hub.get_scalar(f'train/surgery_{name}').current()
              for name in ('conflict', 'cosine', 'cosine_after', 'norm_ratio', 'coefficient')}
    assert logged['conflict'] == 1 and logged['cosine'] < 0
    assert logged['cosine_after'] == pytest.approx(0, abs=1e-6)
    assert logged['norm_ratio'] == pytest.approx(float(flat(g_r).norm() / flat(g_p).norm()), rel=1e-5)
    assert 0 < logged['coefficient'] <= 1


def test_each_layer_by_itself() -> None:
    model = TwoTasks()
    g_p, g_r = separate(model, batch())
    found = step(model, build(model, granularity='layer'), batch())
    for name in g_p:
        wanted = g_p[name] + g_r[name]
        if name.startswith('encoder'):
            chosen = rgd_combination(*inner_products(g_p[name].flatten(), g_r[name].flatten()))
            wanted = float(chosen.primary) * g_p[name] + float(chosen.auxiliary) * g_r[name]
        torch.testing.assert_close(found[name], wanted, atol=1e-6, rtol=1e-5)


def test_warm_up_then_ramp() -> None:
    model = TwoTasks()
    wrapper = build(model, warmup=2, ramp=3, coefficient=0.8)
    for iteration in range(7):
        g_p, g_r = separate(model, batch(seed=iteration))
        share = max(0, min(1, (iteration - 1) / 4))
        assert wrapper.coefficient_at(iteration) == pytest.approx(0.8 * share)
        wanted = expected(g_p, g_r, 0.8 * share)
        if share == 0:
            torch.testing.assert_close(flat(wanted), flat(g_p))
        assert_same(step(model, wrapper, batch(seed=iteration)), wanted)


def test_warm_up_in_epochs() -> None:
    model = TwoTasks()
    wrapper = build(model, warmup=2, ramp=1, by_epoch=True)
    with pytest.raises(ValueError, match='by_epoch=True needs a training that counts epochs'):
        wrapper.coefficient_at(0)
    wrapper.message_hub.update_info_dict(dict(max_epochs=5, max_iters=50))
    assert [wrapper.coefficient_at(i) for i in (19, 20, 30)] == [0, pytest.approx(1 / 11), 1]


@pytest.mark.parametrize('mode', ['exact', 'lazy'])
def test_accumulation_equals_the_whole_batch(mode: str) -> None:
    whole, parts = TwoTasks(), TwoTasks()
    parts.load_state_dict(whole.state_dict())
    # The statistic is not linear in the batch, but its mean over parts of one size is.
    options = dict(mode=mode, lazy_interval=2, reliability='reliability')
    one, several = build(whole, **options), build(parts, accumulative_counts=2, **options)
    for seed in range(4):
        inputs = batch(12, seed)['inputs']
        inputs = inputs[:6].repeat(2, 1) if seed % 2 else inputs
        # Labels go by position, so both halves of six have those of the whole.
        wanted = step(whole, one, dict(inputs=inputs))
        before = {name: value.detach().clone() for name, value in parts.named_parameters()}
        for half in inputs.chunk(2):
            parts.train_step(dict(inputs=half), several)
        assert_same({name: before[name] - value for name, value in parts.named_parameters()}, wanted)


def test_reliability_scales_the_coefficient() -> None:
    model = TwoTasks()
    data = batch()
    alpha = float(model(**data, mode='loss')['reliability'])
    wanted = expected(*separate(model, data), alpha)
    assert_same(step(model, build(model, reliability='relia*'), data), wanted)


def test_lazy_uses_the_factors_of_the_last_exact_step() -> None:
    model = TwoTasks()
    wrapper = build(model, mode='lazy', lazy_interval=3, warmup=1)
    factors = None
    for iteration in range(8):
        g_p, g_r = separate(model, batch(seed=iteration))
        if iteration == 0:
            wanted = expected(g_p, g_r, 0.0)
        elif (iteration - 1) % 3 == 0:
            wanted = expected(g_p, g_r)
            chosen = rgd_combination(*inner_products(flat(g_p), flat(g_r)))
            factors = float(chosen.primary), float(chosen.auxiliary)
        else:
            a, b = factors
            wanted = {n: a * g_p[n] + b * g_r[n] if n.startswith('encoder') else g_p[n] + g_r[n] for n in g_p}
        assert_same(step(model, wrapper, batch(seed=iteration)), wanted)


@pytest.mark.parametrize('against', [1.0, -1.0])
def test_surgery_at_the_features(against: float) -> None:
    model = TwoTasks(against=against)
    data = batch()
    losses = model(**data, mode='loss')
    features = model.encoder(data['inputs'])
    labels = torch.arange(8) % 3
    main = F.cross_entropy(model.head(features), labels)
    aux = (-against * F.cross_entropy(model.estimator(features), labels)
           + model.estimator(features).square().mean() + 0.1 * model.head(features).mean())
    torch.testing.assert_close(main, losses['loss_main'])
    d_p, d_r = (torch.autograd.grad(loss, features, retain_graph=True)[0] for loss in (main, aux))
    chosen = rgd_combination(*inner_products(d_p.flatten(), d_r.flatten()))
    d = float(chosen.primary) * d_p + float(chosen.auxiliary) * d_r
    encoder = torch.autograd.grad(features, list(model.encoder.parameters()), d)
    g_p, g_r = separate(model, data)
    found = step(model, build(model, mode='feature'), data)
    for (name, _), value in zip(model.encoder.named_parameters(), encoder, strict=True):
        torch.testing.assert_close(found[f'encoder.{name}'], value, atol=1e-6, rtol=1e-5)
    for name in ('head.weight', 'estimator.bias'):
        torch.testing.assert_close(found[name], g_p[name] + g_r[name], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize('kind', ['reentrant', 'plain'])
@pytest.mark.parametrize('options', [{}, dict(mode='feature'), dict(mode='lazy', lazy_interval=2), dict(warmup=1)])
def test_checkpointed_activations(kind: str, options: dict) -> None:
    plain, saving = TwoTasks(), TwoTasks(kind)
    saving.load_state_dict(plain.state_dict())
    wrappers = build(plain, **options), build(saving, **options)
    for iteration in range(3):
        wanted = step(plain, wrappers[0], batch(seed=iteration))
        assert_same(step(saving, wrappers[1], batch(seed=iteration)), wanted)


def test_parameters_that_no_loss_reaches_are_left_alone() -> None:
    model = TwoTasks()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, weight_decay=0.5)
    found = step(model, build(model, optimizer), batch())
    assert found['unused.weight'].abs().sum() == 0
    assert found['head.weight'].abs().sum() > 0


def test_frozen_parameters() -> None:
    model = TwoTasks()
    model.encoder[0].weight.requires_grad = False
    wrapper = build(model)
    model.head.bias.requires_grad = False  # as a hook may do in the middle of training
    found = step(model, wrapper, batch())
    assert found['encoder.0.weight'].abs().sum() == 0 and found['head.bias'].abs().sum() == 0
    assert found['encoder.0.bias'].abs().sum() > 0


def test_hooks_on_parameters_see_both_gradients() -> None:
    model = TwoTasks()
    seen = []
    model.encoder[0].weight.register_hook(lambda gradient: seen.append(gradient) or gradient * 0)
    assert step(model, build(model), batch())['encoder.0.weight'].abs().sum() == 0
    assert len(seen) == 2


def test_clipping_comes_after_the_surgery() -> None:
    model = TwoTasks()
    wanted = expected(*separate(model, batch()))
    norm = torch.cat([value.flatten() for value in wanted.values()]).norm()
    found = step(model, build(model, clip_grad=dict(max_norm=0.1)), batch())
    assert_same(found, {name: value * 0.1 / norm for name, value in wanted.items()})


@pytest.mark.parametrize('mode', ['exact', 'lazy'])
def test_resumed_training_is_the_same(mode: str) -> None:
    def run(model: nn.Module, wrapper: Any, iterations: range) -> None:
        wrapper.initialize_count_status(model, iterations.start, 100)
        for iteration in iterations:
            model.train_step(batch(seed=iteration), wrapper)

    options = dict(mode=mode, lazy_interval=4, warmup=1, ramp=2)
    straight = TwoTasks()
    first = deepcopy(straight)
    momentum = dict(lr=0.1, momentum=0.9)
    wrapper = build(straight, torch.optim.SGD(straight.parameters(), **momentum), **options)
    run(straight, wrapper, range(9))
    run(first, before := build(first, torch.optim.SGD(first.parameters(), **momentum), **options), range(5))
    second = deepcopy(first)
    resumed = build(second, torch.optim.SGD(second.parameters(), **momentum), **options)
    resumed.load_state_dict(before.state_dict())
    run(second, resumed, range(5, 9))
    for own, other in zip(straight.parameters(), second.parameters(), strict=True):
        assert torch.equal(own, other)
    assert list(resumed._conflicts) == list(wrapper._conflicts)


def test_states_go_to_and_from_a_plain_wrapper() -> None:
    model = TwoTasks()
    plain = OPTIM_WRAPPERS.build(dict(type='OptimWrapper', optimizer=torch.optim.SGD(model.parameters(), lr=1.0)))
    plain.load_state_dict(build(model).state_dict())
    build(model).load_state_dict(plain.state_dict())


def test_two_parameter_groups() -> None:
    model = TwoTasks()
    groups = [dict(params=list(model.encoder.parameters())),
              dict(params=[*model.head.parameters(), *model.estimator.parameters()], lr=0.5)]
    wanted = expected(*separate(model, batch()))
    wrapper = build(model, torch.optim.SGD(groups, lr=1.0))
    found = step(model, wrapper, batch())
    torch.testing.assert_close(found['encoder.0.weight'], wanted['encoder.0.weight'], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(found['head.weight'], 0.5 * wanted['head.weight'], atol=1e-6, rtol=1e-5)
    build(model, torch.optim.SGD(groups, lr=1.0)).load_state_dict(wrapper.state_dict())


@pytest.mark.skipif(not hasattr(torch.amp, 'GradScaler'), reason='this PyTorch has no gradient scaler for CPU')
@pytest.mark.parametrize('mode', ['exact', 'feature', 'lazy'])
def test_mixed_precision(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from mmengine.optim.optimizer import amp_optimizer_wrapper as amp
    monkeypatch.setattr(amp, 'is_cuda_available', lambda: True)
    monkeypatch.setattr(amp, 'GradScaler', lambda **options: torch.amp.GradScaler('cpu', **options))
    plain, mixed = TwoTasks(), TwoTasks()
    mixed.load_state_dict(plain.state_dict())
    scaled = build(mixed, type='mmssl.AmpRGDOptimWrapper', dtype='bfloat16', loss_scale=1024.0, mode=mode,
                   clip_grad=dict(max_norm=100.0))
    wanted = step(plain, build(plain, mode=mode), batch())
    found = step(mixed, scaled, batch())
    for name, value in wanted.items():
        assert (found[name] - value).norm() <= 0.05 * value.norm() + 1e-4, name

    # A loss that is not finite: the scaler skips the step, and the next one is as if nothing had been.
    before = deepcopy(mixed.state_dict())
    bad = batch(seed=5)
    bad['inputs'][0, 0] = float('inf')
    mixed.train_step(bad, scaled)
    assert all(torch.equal(value, before[name]) for name, value in mixed.state_dict().items())
    assert all(torch.isfinite(value).all() for value in step(mixed, scaled, batch(seed=6)).values())


@pytest.mark.parametrize(('options', 'message'), [
    (dict(primary=['nothing']), r"primary=\['nothing'\] matches no loss .*'loss_main'"),
    (dict(auxiliary=['nothing']), r"auxiliary=\['nothing'\] matches no loss"),
    (dict(auxiliary=['aux.loss_a']), "neither `primary` nor `auxiliary` matches the loss 'aux.loss_b'"),
    (dict(primary=['*loss*']), 'both `primary` and `auxiliary` match'),
    (dict(reliability='nothing'), r"reliability='nothing' must match exactly one statistic .* \['reliability'\]"),
])  # yapf: disable
def test_losses_that_do_not_fit(options: dict, message: str) -> None:
    model = TwoTasks()
    with pytest.raises(ValueError, match=message):
        step(model, build(model, **options), batch())


@pytest.mark.parametrize(('options', 'message'), [
    (dict(shared=['decoder']), r"shared: 'decoder' matches no trainable parameter; the model has .*encoder"),
    (dict(shared=['encoder.0.weight'], mode='feature'), "'encoder.0.weight' is no module"),
    (dict(shared=[]), 'shared must be a list of names'),
    (dict(primary=3), 'primary must be a list of names'),
    (dict(coefficient=-1), 'coefficient must be a finite number >= 0, got -1'),
    (dict(warmup=1.5), 'warmup must be an integer >= 0'),
    (dict(balance='max'), 'balance must be one of'),
    (dict(mode='fast'), 'mode must be one of'),
    (dict(mode='lazy', granularity='layer'), "granularity='layer' needs mode='exact'"),
    (dict(lazy_interval=0), 'lazy_interval must be an integer >= 1'),
])  # yapf: disable
def test_wrong_options(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(TwoTasks(), **options)


def test_what_cannot_be_wrapped() -> None:
    wrapper = build(TwoTasks())
    with pytest.raises(NotImplementedError, match='FullyShardedDataParallel does not give'):
        wrapper.initialize_count_status(type('FullyShardedDataParallel', (TwoTasks,), {})(), 0, 10)
    static = TwoTasks()
    static.static_graph = True
    with pytest.raises(NotImplementedError, match='static_graph=True'):
        wrapper.initialize_count_status(static, 0, 10)
    with pytest.raises(ValueError, match='in the middle of'):
        build(TwoTasks(), accumulative_counts=2).initialize_count_status(TwoTasks(), 3, 10)
    with pytest.raises(ValueError, match='found no loss dict'):
        wrapper.update_params(torch.zeros((), requires_grad=True))


def train(scope: str, config: dict, data: dict, **options: Any) -> tuple[dict[str, Tensor], nn.Module]:
    from mmengine.registry import MODELS
    with DefaultScope.overwrite_default_scope(scope):
        model = MODELS.build(ConfigDict(config))
        wrapper = build(model, torch.optim.SGD(model.parameters(), lr=1.0), **options)
        return step(model, wrapper, data), model


def test_a_stock_segmentor_with_an_auxiliary_head() -> None:
    pytest.importorskip('mmseg')
    import mmseg.models  # noqa: F401
    from mmengine.structures import PixelData
    from mmseg.structures import SegDataSample
    head = dict(type='FCNHead', num_convs=1, channels=4, num_classes=4, norm_cfg=dict(type='BN'), dropout_ratio=0.0,
                loss_decode=dict(type='CrossEntropyLoss'))
    config = dict(
        type='EncoderDecoder', train_cfg=dict(), test_cfg=dict(mode='whole'),
        data_preprocessor=dict(type='SegDataPreProcessor', size=(32, 32)),
        backbone=dict(type='ResNetV1c', depth=18, stem_channels=4, base_channels=4, norm_cfg=dict(type='BN'),
                      with_cp=True),
        decode_head=dict(head, in_channels=32, in_index=3),
        auxiliary_head=dict(head, in_channels=16, in_index=2))
    samples = []
    for _ in range(2):
        samples.append(SegDataSample(metainfo=dict(img_shape=(32, 32))))
        samples[-1].gt_sem_seg = PixelData(data=torch.randint(0, 4, (1, 32, 32)))
    data = dict(inputs=[torch.randint(0, 255, (3, 32, 32), dtype=torch.uint8) for _ in samples], data_samples=samples)
    found, model = train('mmseg', config, data, primary=['decode.*'], auxiliary=['aux.*'], shared=['backbone'])
    assert found['backbone.layer1.0.conv1.weight'].abs().sum() > 0
    assert found['auxiliary_head.conv_seg.weight'].abs().sum() > 0
    assert 'optim' not in ''.join(model.state_dict())


def test_a_stock_classifier_with_two_tasks() -> None:
    pytest.importorskip('mmpretrain')
    import mmpretrain.models  # noqa: F401
    from mmpretrain.structures import DataSample, MultiTaskDataSample
    config = dict(
        type='ImageClassifier', backbone=dict(type='ResNet_CIFAR', depth=18, base_channels=4, stem_channels=4),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='MultiTaskHead', in_channels=32, task_heads=dict(
            color=dict(type='LinearClsHead', num_classes=3), shape=dict(type='LinearClsHead', num_classes=2))))
    samples = []
    for index in range(4):
        sample = MultiTaskDataSample()
        sample.set_field(DataSample().set_gt_label(index % 3), 'color')
        sample.set_field(DataSample().set_gt_label(index % 2), 'shape')
        samples.append(sample)
    data = dict(inputs=torch.randn(4, 3, 16, 16), data_samples=samples)
    found, _ = train('mmpretrain', config, data, primary=['color*'], auxiliary=['shape*'],
                     shared=['backbone.*'], mode='feature')
    assert found['head.task_heads.shape.fc.weight'].abs().sum() > 0
    assert found['backbone.conv1.weight'].abs().sum() > 0
