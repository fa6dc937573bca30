"""Cross pseudo supervision against a plain second implementation, and with stock mmseg models as students."""

import os
from collections.abc import Callable
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

import mmseg
import pytest
import torch
import torch.nn.functional as F
from mmengine.config import Config
from mmengine.runner import load_checkpoint
from mmseg.registry import MODELS
from torch import Tensor

from mmssl.engine.hooks import IterationSeedHook
from mmssl.models.segmentors import CrossPseudoSupervision


def build(segmentor: dict, **semi_train_cfg: Any) -> CrossPseudoSupervision:
    model = MODELS.build(
        dict(type='mmssl.CrossPseudoSupervision', segmentor=segmentor, semi_train_cfg=semi_train_cfg)
    )
    return model.train()


def total(losses: dict[str, Any]) -> Tensor:
    return sum(value for name, value in losses.items() if 'loss' in name)


def plain_segment(student: torch.nn.Module, images: Tensor) -> Tensor:
    low = student.decode_head(student.backbone(images))
    return F.interpolate(low, size=images.shape[2:], mode='bilinear', align_corners=False)


def plain_sup(student: torch.nn.Module, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    features = student.backbone(images)
    logits, aux = (
        F.interpolate(head(features), size=images.shape[2:], mode='bilinear', align_corners=False)
        for head in (student.decode_head, student.auxiliary_head)
    )
    return F.cross_entropy(logits, labels) + 0.4 * F.cross_entropy(aux, labels), logits


@pytest.mark.parametrize('unsup_on', ['all', 'unlabeled'])
@pytest.mark.parametrize('mixed', [False, True])
@pytest.mark.parametrize('mode', ['train', 'eval'])
def test_loss_and_gradient_equal_a_plain_implementation(
    tiny_segmentor: dict, make_batch: Callable, unsup_on: str, mixed: bool, mode: str
) -> None:
    inputs, samples = make_batch()
    labels = torch.cat([sample.gt_sem_seg.data for sample in samples['sup']])
    model = build(
        tiny_segmentor,
        unsup_weight=1.5,
        sup_weight=0.7,
        unsup_on=unsup_on,
        pseudo_label_mode=mode,
        mix=dict(type='mmssl.CutMix', seed=3) if mixed else None,
    )
    plain = deepcopy(model)

    total(model.loss(inputs, samples)).backward()

    students = [plain.student1, plain.student2]
    sup, labeled_logits = zip(*[plain_sup(s, inputs['sup'], labels) for s in students], strict=True)

    def pseudo(images: Tensor) -> list[Tensor]:
        result = []
        for student in students:
            student.train(mode == 'train')
            with torch.no_grad():
                result.append(plain_segment(student, images))
            student.train()
        return result

    images = inputs['unsup_weak']
    separate = mixed or mode == 'eval'
    targets = pseudo(images) if separate else None
    if mixed:
        masks = plain.mix.sample(images)
        masks = masks.float()
        images = images[0::2] * (1 - masks) + images[1::2] * masks
        targets = [t[0::2] * (1 - masks) + t[1::2] * masks for t in targets]
    logits = [plain_segment(s, images) for s in students]
    targets = [t.detach() for t in logits] if targets is None else targets
    if unsup_on == 'all':
        labeled_targets = [t.detach() for t in labeled_logits] if mode == 'train' else pseudo(inputs['sup'])
        logits = [torch.cat([a, b]) for a, b in zip(labeled_logits, logits, strict=True)]
        targets = [torch.cat([a, b]) for a, b in zip(labeled_targets, targets, strict=True)]
    cross = F.cross_entropy(logits[0], targets[1].argmax(1)) + F.cross_entropy(logits[1], targets[0].argmax(1))
    (0.7 * sum(sup) + 1.5 * cross).backward()

    for (name, ours), theirs in zip(model.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-5, msg=lambda m, n=name: f'{n}: {m}')
    plain.iteration += 1  # counted by the loss alone
    for (name, ours), theirs in zip(model.named_buffers(), plain.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs, msg=lambda m, n=name: f'{n}: {m}')


def test_log_keys(tiny_segmentor: dict, make_batch: Callable) -> None:
    losses = build(tiny_segmentor, unsup_loss=dict(type='mmssl.FPLLoss')).loss(*make_batch())
    summed = {name for name in losses if 'loss' in name}
    assert summed == {
        'sup_student1.decode.loss_ce', 'sup_student1.aux.loss_ce',
        'sup_student2.decode.loss_ce', 'sup_student2.aux.loss_ce', 'unsup_loss',
    }  # fmt: skip
    assert {'unsup_mean_k', 'unsup_k1_ratio', 'unsup_pixel_weight', 'unsup_mask_ratio'} <= losses.keys() - summed


def test_fpl_with_one_label_equals_cps(tiny_segmentor: dict, make_batch: Callable) -> None:
    batch = make_batch()
    model = build(tiny_segmentor)
    state = deepcopy(model.state_dict())
    total(model.loss(*batch)).backward()
    expected = [p.grad for p in model.parameters()]
    fpl = build(tiny_segmentor, unsup_loss=dict(type='mmssl.FPLLoss', max_k=1, weight_mode='none'))
    fpl.load_state_dict(state)
    total(fpl.loss(*batch)).backward()
    for ours, theirs in zip(fpl.parameters(), expected, strict=True):
        torch.testing.assert_close(ours.grad, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize('mode', ['train', 'eval'])
def test_pseudo_labels_restore_every_mode(tiny_segmentor: dict, make_batch: Callable, mode: str) -> None:
    model = build(tiny_segmentor, mix=dict(type='mmssl.CutMix'), pseudo_label_mode=mode)
    frozen = model.student1.backbone.layer1
    frozen.eval()
    statistics = [buffer.clone() for buffer in frozen.buffers()]
    before = {name: module.training for name, module in model.named_modules()}
    model.loss(*make_batch())
    assert {name: module.training for name, module in model.named_modules()} == before
    assert not frozen.training
    # What is frozen moves in no pass, the one that makes pseudo labels included.
    assert all(torch.equal(a, b) for a, b in zip(frozen.buffers(), statistics, strict=True))


def test_unsupervised_loss_begins_and_rises(tiny_segmentor: dict, make_batch: Callable) -> None:
    inputs, samples = make_batch()
    model = build(tiny_segmentor, unsup_weight=2.0, unsup_begin=2, unsup_ramp=4, unsup_on='unlabeled')
    supervised = deepcopy(model.student1)
    supervised.loss(inputs['sup'], samples['sup'])
    losses = model.loss(inputs, samples)
    # Before it begins, only the labeled images have moved the running statistics, and the loss is a zero with a graph.
    for ours, theirs in zip(model.student1.buffers(), supervised.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs)
    assert losses['unsup_loss'] == 0 and losses['unsup_loss'].requires_grad
    resumed = build(tiny_segmentor, unsup_weight=2.0, unsup_begin=2, unsup_ramp=4)
    resumed.load_state_dict(model.state_dict())
    assert [resumed.next_unsup_weight() for _ in range(6)] == [0.0, 0.5, 1.0, 1.5, 2.0, 2.0]
    immediate = build(tiny_segmentor, unsup_weight=2.0)
    assert immediate.next_unsup_weight() == 2.0


@pytest.mark.parametrize('value', [float('nan'), float('inf')])
def test_non_finite_loss_stops_before_the_update(tiny_segmentor: dict, make_batch: Callable, value: float) -> None:
    inputs, samples = make_batch()
    model = build(tiny_segmentor)
    model.parse_losses(model.loss(inputs, samples))
    with torch.no_grad():
        model.student2.decode_head.conv_seg.bias[0] = value
    with pytest.raises(FloatingPointError, match=r"iteration 2: .*'sup_student2.decode.loss_ce': nan.* is not finite"):
        model.parse_losses(model.loss(inputs, samples))


def test_padding_is_left_out_on_request(tiny_segmentor: dict, make_batch: Callable) -> None:
    inputs, samples = make_batch()
    for sample in samples['unsup_weak']:
        sample.set_metainfo(dict(padding_size=(0, 12, 0, 0)))
    model = build(tiny_segmentor, unsup_on='unlabeled', ignore_padding=True)
    reference = deepcopy(model)
    loss = model.loss(inputs, samples)['unsup_loss']
    logits = [plain_segment(s, inputs['unsup_weak'])[..., :20] for s in (reference.student1, reference.student2)]
    expected = sum(F.cross_entropy(a, b.argmax(1)) for a, b in (logits, logits[::-1]))
    # The labeled forward moves only running statistics, which train mode does not read.
    torch.testing.assert_close(loss, expected)


def test_sources_of_different_size_share_one_mean(tiny_segmentor: dict, make_batch: Callable) -> None:
    inputs, samples = make_batch()
    inputs['unsup_weak'] = inputs['unsup_weak'][..., :24]
    model = build(tiny_segmentor, unsup_on='all')
    reference = deepcopy(model)
    loss = model.loss(inputs, samples)['unsup_loss']
    pixels = [
        torch.cat([plain_segment(s, x).movedim(1, -1).flatten(0, -2) for x in (inputs['sup'], inputs['unsup_weak'])])
        for s in (reference.student1, reference.student2)
    ]
    expected = sum(F.cross_entropy(a, b.argmax(1)) for a, b in (pixels, pixels[::-1]))
    torch.testing.assert_close(loss, expected)


def stock_model(name: str) -> dict:
    path = os.path.join(mmseg.__path__[0], '.mim', 'configs', '_base_', 'models', f'{name}.py')
    model = Config.fromfile(path).model.to_dict()
    for key in ('pretrained',):
        model[key] = None
    model['backbone'].pop('init_cfg', None)
    text_norm = dict(type='BN', requires_grad=True)

    def shrink(node: Any) -> None:
        if isinstance(node, dict):
            if 'norm_cfg' in node and node['norm_cfg']['type'] == 'SyncBN':
                node['norm_cfg'] = text_norm
            if 'num_classes' in node:
                node['num_classes'] = 4
            for value in node.values():
                shrink(value)
        elif isinstance(node, list):
            for value in node:
                shrink(value)

    shrink(model)
    return model


@pytest.mark.parametrize(
    'name', ['deeplabv3plus_r50-d8', 'pspnet_r50-d8', 'upernet_r50', 'segformer_mit-b0', 'ocrnet_hr18']
)
def test_stock_mmseg_models_are_students(name: str, make_batch: Callable) -> None:
    size = (64, 64)
    model = build(
        stock_model(name), mix=dict(type='mmssl.CutMix'), unsup_on='all', unsup_loss=dict(type='mmssl.FPLLoss')
    )
    losses = model.loss(*make_batch(2, 4, size))
    total(losses).backward()
    plain = MODELS.build(stock_model(name)).train()
    stock_losses = plain.loss(*[part['sup'] for part in make_batch(2, 4, size)])
    expected = {f'sup_{student}.{key}' for student in ('student1', 'student2') for key in stock_losses}
    assert expected == {key for key in losses if key.startswith('sup_')}
    trained = {name for name, p in plain.named_parameters() if p.requires_grad}
    total(stock_losses).backward()
    without = {name for name, p in plain.named_parameters() if p.grad is None}
    for student in (model.student1, model.student2):
        got = {name for name, p in student.named_parameters() if p.grad is not None}
        assert got == trained - without


def test_prediction_is_the_stock_students(tiny_segmentor: dict, make_batch: Callable) -> None:
    images = make_batch()[0]['sup']
    for name in ('student1', 'student2', 'ensemble'):
        model = MODELS.build(
            dict(type='mmssl.CrossPseudoSupervision', segmentor=tiny_segmentor, semi_test_cfg=dict(predict_on=name))
        ).eval()
        with torch.no_grad():
            ours = torch.stack([sample.seg_logits.data for sample in model.predict(images)])
            stock = [
                torch.stack([sample.seg_logits.data for sample in student.predict(images)])
                for student in (model.student1, model.student2)
            ]
        if name == 'ensemble':
            probs = (stock[0].softmax(1) + stock[1].softmax(1)) / 2
            torch.testing.assert_close(ours.softmax(1), probs)
        else:
            assert torch.equal(ours, stock[int(name[-1]) - 1])


@pytest.mark.parametrize('part', ['segmentor', 'backbone', 'bare backbone'])
def test_plain_checkpoint_loads_into_both_students(
    tiny_segmentor: dict, tmp_path: Any, part: str, logged: list[str]
) -> None:
    plain = MODELS.build(tiny_segmentor)
    state = plain.state_dict() if part == 'segmentor' else plain.backbone.state_dict(prefix='backbone.')
    if part == 'bare backbone':
        state = plain.backbone.state_dict()
    torch.save(dict(state_dict=dict(state, unknown=torch.zeros(1))), tmp_path / 'plain.pth')
    model = build(tiny_segmentor, mix=dict(type='mmssl.CutMix', seed=5))
    load_checkpoint(model, str(tmp_path / 'plain.pth'), map_location='cpu')
    for student in (model.student1, model.student2):
        for name, value in plain.backbone.state_dict().items():
            assert torch.equal(student.backbone.state_dict()[name], value)
    if part == 'segmentor':
        assert torch.equal(model.student2.decode_head.conv_seg.weight, plain.decode_head.conv_seg.weight)
    assert int(model.mix.seed) == 5
    log = '\n'.join(logged)
    for student in ('student1', 'student2'):
        assert f'plain checkpoint -> {student}: ' in log
    assert f'1 unexpected ({"backbone." if part == "bare backbone" else ""}unknown)' in log


def test_own_checkpoint_loads_strictly(tiny_segmentor: dict, make_batch: Callable) -> None:
    model = build(tiny_segmentor, mix=dict(type='mmssl.CutMix', seed=5))
    model.loss(*make_batch())
    other = build(tiny_segmentor, mix=dict(type='mmssl.CutMix', seed=9))
    other.load_state_dict(model.state_dict(), strict=True)
    for name, value in model.state_dict().items():
        assert torch.equal(other.state_dict()[name], value), name
    assert int(other.mix.step) == 1


def test_checkpoint_of_other_sizes_is_refused(tiny_segmentor: dict) -> None:
    plain = MODELS.build(tiny_segmentor)
    model = build(tiny_segmentor)
    state = {
        name: torch.cat([value, value]) if value.dim() else value for name, value in plain.state_dict().items()
    }
    for weights in (state, {name.removeprefix('backbone.'): value for name, value in state.items()}):
        with pytest.raises(ValueError, match=r'load_from: .* other sizes, and nothing of it fits: .* has shape \('):
            model.load_state_dict(dict(weights), strict=False)
    # A head for other classes is left out, as ever.
    own = plain.state_dict()
    part = {name: value if name.startswith('decode_head') else own[name] for name, value in state.items()}
    with pytest.raises(RuntimeError, match=r'size mismatch for student1\.decode_head'):
        model.load_state_dict(part, strict=False)


def test_foreign_checkpoint_is_refused(tiny_segmentor: dict) -> None:
    with pytest.raises(ValueError, match='load_from: the checkpoint fits neither'):
        build(tiny_segmentor).load_state_dict({'encoder.weight': torch.zeros(2)}, strict=False)


@pytest.mark.parametrize(
    ('options', 'error', 'message'),
    [
        (dict(unsup_wieght=1.0), KeyError, 'semi_train_cfg: unknown key `unsup_wieght`; did you mean `unsup_weight`'),
        (dict(unsup_weight=-1.0), ValueError, 'model.semi_train_cfg.unsup_weight must be a finite number >= 0, got'),
        (dict(sup_weight=float('nan')), ValueError, 'model.semi_train_cfg.sup_weight'),
        ('unsup_weight', ValueError, 'model.semi_train_cfg must be a dict'),
        (dict(unsup_begin=-1), ValueError, 'model.semi_train_cfg.unsup_begin must be an integer >= 0, got -1'),
        (dict(unsup_ramp=1.5), ValueError, 'model.semi_train_cfg.unsup_ramp must be an integer >= 0, got 1.5'),
        (dict(unsup_on='labeled'), ValueError, "model.semi_train_cfg.unsup_on must be one of .*, got 'labeled'"),
        (dict(pseudo_label_mode='test'), ValueError, 'model.semi_train_cfg.pseudo_label_mode must be one of'),
        (dict(mix=dict(type='mmssl.CutMix', num_boxes=0)), ValueError, '`num_boxes` must be an integer >= 1, got 0'),
        (dict(mix=dict(type='mmssl.CutMix', num_boxes=2.5)), ValueError, '`num_boxes` must be an integer >= 1, got 2'),
        (dict(mix=dict(type='mmssl.CutMix', area_range=(0.5, 0.2))), ValueError, '`area_range`'),
        (dict(mix=dict(type='mmssl.CutMix', area_range=0.5)), ValueError, '`area_range` must be two numbers .*, got 0'),
        (dict(mix=dict(type='mmssl.CutMix', area_range=(0.2, 0.3, 0.4))), ValueError, '`area_range` must be two'),
        (dict(mix=dict(type='mmssl.CutMix', area_range=('0.2', '0.3'))), ValueError, '`area_range` must be two'),
        (dict(mix=dict(type='mmssl.CutMix', both_ways='no')), ValueError, '`both_ways` must be True or False'),
        (dict(mix=dict(type='mmssl.CutMix', seed=-1)), ValueError, '`seed` must be an integer >= 0 or None, got -1'),
        (dict(mix='mmssl.CutMix'), ValueError, "semi_train_cfg.mix must be None or a dict .*, got 'mmssl.CutMix'"),
        (dict(mix=True), ValueError, 'model.semi_train_cfg.mix must be None or a dict .*, got True'),
        (dict(unsup_loss='mmssl.FPLLoss'), ValueError, 'model.semi_train_cfg.unsup_loss must be a dict with `type`'),
        (dict(unsup_loss=dict(cum_prob=0.9)), ValueError, 'model.semi_train_cfg.unsup_loss must be a dict with `type`'),
        (dict(unsup_loss=dict(type='CrossEntropyLoss')), ValueError, 'must be a loss between .*CrossEntropyL'),
        (dict(unsup_loss=dict(type='mmssl.FPLLoss', reduction='sum')), ValueError, "must be 'mean'.*got 'sum'"),
        (dict(unsup_loss=None), ValueError, 'model.semi_train_cfg.unsup_loss must be a dict .*, got None'),
    ],
)
def test_wrong_options_name_their_key(tiny_segmentor: dict, options: Any, error: type, message: str) -> None:
    config = dict(type='mmssl.CrossPseudoSupervision', segmentor=tiny_segmentor, semi_train_cfg=options)
    with pytest.raises(error, match=message):
        MODELS.build(config)


def test_wrong_nodes_name_their_key(tiny_segmentor: dict) -> None:
    config = dict(type='mmssl.CrossPseudoSupervision', segmentor=tiny_segmentor)
    with pytest.raises(ValueError, match=r'model\.segmentor must be the config of an mmseg segmentor'):
        MODELS.build(dict(config, segmentor='EncoderDecoder'))
    with pytest.raises(TypeError, match=r'model\.data_preprocessor.* must be a data preprocessor'):
        MODELS.build(dict(config, data_preprocessor=torch.nn.Identity()))


def test_a_plain_data_preprocessor_is_wrapped_wherever_it_stands(tiny_segmentor: dict) -> None:
    plain = tiny_segmentor.pop('data_preprocessor')
    config = dict(type='mmssl.CrossPseudoSupervision')
    wrapped = dict(type='mmssl.MultiBranchDataPreprocessor', data_preprocessor=plain)
    for nodes in (
        dict(segmentor=dict(tiny_segmentor, data_preprocessor=plain)),
        dict(segmentor=tiny_segmentor, data_preprocessor=plain),  # as mmengine adds a config's top-level one
        dict(segmentor=tiny_segmentor, data_preprocessor=wrapped),
    ):
        model = MODELS.build(deepcopy(dict(config, **nodes)))
        assert type(model.data_preprocessor).__name__ == 'MultiBranchDataPreprocessor'
        assert type(model.data_preprocessor.data_preprocessor).__name__ == plain['type'].rpartition('.')[2]
        assert 'data_preprocessor' not in ''.join(model.state_dict())


@pytest.mark.parametrize('pairs_per_unit', [1, 2, 3])
def test_masks_do_not_depend_on_the_number_of_processes(
    monkeypatch: pytest.MonkeyPatch, pairs_per_unit: int
) -> None:
    units, images = 4, torch.zeros(8 * pairs_per_unit, 3, 16, 16)

    def masks(rank: int, world_size: int) -> Tensor:
        monkeypatch.setattr('mmssl.models.seeded.get_dist_info', lambda: (rank, world_size))
        mix = MODELS.build(dict(type='mmssl.CutMix', seed=3, pairs_per_unit=pairs_per_unit))
        mix.sample(images[: len(images) // world_size])
        return mix.sample(images[: len(images) // world_size]).view(-1, pairs_per_unit, 16, 16)

    whole = masks(0, 1)
    assert len(whole) == units
    assert len({tuple(mask.flatten().tolist()) for mask in whole.flatten(0, 1)}) == units * pairs_per_unit
    for rank in (0, 1):
        assert torch.equal(masks(rank, 2), whole[rank::2])


def test_loss_of_ones_own_needs_no_statistics(tiny_segmentor: dict, make_batch: Callable) -> None:
    model = build(tiny_segmentor, ignore_padding=True)
    model.unsup_loss.forward = lambda logits, target_logits, weight=None, valid=None, avg_factor=None: logits.mean()
    del model.unsup_loss.statistics
    losses = model.loss(*make_batch())
    assert losses['unsup_loss'].requires_grad and not [name for name in losses if name.startswith('unsup_mean')]


def test_single_output_channel_is_refused(tiny_segmentor: dict) -> None:
    tiny_segmentor['decode_head'].update(num_classes=2, out_channels=1, threshold=0.5)
    tiny_segmentor['decode_head']['loss_decode'] = dict(type='CrossEntropyLoss', use_sigmoid=True)
    tiny_segmentor.pop('auxiliary_head')
    with pytest.raises(ValueError, match=r'model.segmentor.decode_head.out_channels must be at least 2'):
        build(tiny_segmentor)


def test_odd_number_of_images_to_mix_is_refused(tiny_segmentor: dict, make_batch: Callable) -> None:
    with pytest.raises(ValueError, match=r'even and at least 2, got 3 .*source_ratio'):
        build(tiny_segmentor, mix=dict(type='mmssl.CutMix')).loss(*make_batch(2, 3))


@pytest.mark.parametrize('branch', ['sup', 'unsup_weak'])
def test_missing_branch_is_named(tiny_segmentor: dict, make_batch: Callable, branch: str) -> None:
    inputs, samples = make_batch()
    del inputs[branch]
    with pytest.raises(ValueError, match=f'no sample of branch `{branch}`'):
        build(tiny_segmentor).loss(inputs, samples)
    with pytest.raises(ValueError, match=r'mmssl\.MultiBranch'):
        build(tiny_segmentor).loss(torch.zeros(2, 3, 32, 32), [])


def test_equal_students_are_warned_about(tiny_segmentor: dict, make_batch: Callable, logged: list[str]) -> None:
    model = build(tiny_segmentor)
    model.loss(*make_batch())
    assert not logged
    model = build(tiny_segmentor)
    model.student2.load_state_dict(model.student1.state_dict())
    model.loss(*make_batch())
    model.loss(*make_batch())
    assert len(logged) == 1 and 'start from the same decode head' in logged[0]


def test_record_holds_what_the_loss_saw(tiny_segmentor: dict, make_batch: Callable) -> None:
    inputs, samples = make_batch(truth=True)
    model = build(tiny_segmentor, mix=dict(type='mmssl.CutMix', seed=2))
    masks = deepcopy(model.mix).sample(inputs['unsup_weak'])
    model.recording = True
    model.loss(inputs, samples)
    record = model.record
    truth = torch.cat([sample.gt_sem_seg.data for sample in samples['unsup_weak']])
    expected = torch.where(masks[:, 0], truth[1::2], truth[0::2])
    assert torch.equal(record.truth, expected)
    assert record.logits.shape == record.target_logits.shape == (2, 4, 32, 32)
    assert not record.logits.requires_grad


@pytest.mark.parametrize(('iteration', 'counted'), [(0, 0), (3, 7)])
def test_only_a_new_run_counts_from_zero(tiny_segmentor: dict, iteration: int, counted: int) -> None:
    model = build(tiny_segmentor)
    model.load_state_dict(dict(model.state_dict(), iteration=torch.tensor(7)))
    IterationSeedHook().before_train(SimpleNamespace(model=model, iter=iteration))
    assert (model.iterations_done, int(model.iteration)) == (counted, counted)


def test_mix_that_cannot_mix_is_refused(tiny_segmentor: dict) -> None:
    with pytest.raises(ValueError, match=r'semi_train_cfg.mix must be None or mix pairs.*, got FPLLoss'):
        build(tiny_segmentor, mix=dict(type='mmssl.FPLLoss'))
