"""Grad-ReLU and Avg-Clustering inside a model: a toy one, against the vectors and a plain second implementation."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmssl.models.average_head import AverageHead
from mmssl.models.layerwise import LayerwiseMixin

VECTORS = json.loads((Path(__file__).parents[1] / 'test_functional' / 'layermatch_vectors.json').read_text())
KEY = 'custom_hooks: mmssl.SomeHook.layers'


class Student(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 2))
        self.head = nn.ModuleDict(dict(drop=nn.Dropout(0.0), fc=nn.Linear(2, 3)))

    def forward(self, x: Tensor) -> Tensor:
        return self.head['fc'](self.head['drop'](self.backbone(x)))


class Toy(LayerwiseMixin, nn.Module):
    MODELS_HELD = ('student', 'teacher')

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.student, self.teacher = Student(), Student().requires_grad_(False)

    def losses(self, x: Tensor, y: Tensor, u: Tensor, target: Tensor, ramp: float = 1.0) -> dict[str, Tensor]:
        losses = dict(sup=F.cross_entropy(self.student(x), y))
        with self.unsupervised_forward() as seen:
            logits = self.student(u)
        self.check_final(seen, logits)
        losses['unsup'] = 0.5 * ramp * F.cross_entropy(logits, target)
        if self.average_head is not None:
            losses['average'] = self.average_loss(seen, lambda logits: F.cross_entropy(logits, target), ramp)
        return losses


@pytest.fixture
def batch() -> tuple[Tensor, ...]:
    torch.manual_seed(1)
    return torch.randn(5, 2), torch.randint(0, 3, (5,)), torch.randn(8, 2), torch.randint(0, 3, (8,))


def average(model: Toy) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.average_head.weights('student').items()}


# --- Grad-ReLU ------------------------------------------------------------------------------------------------------


def test_named_layers_learn_from_labels_alone_and_the_rest_from_all(batch: tuple) -> None:
    plain, ours = Toy(), Toy()
    ours.set_grad_relu(['head.fc'], KEY)
    assert ours.grad_relu_layers == ('student.head.fc',)
    plain_losses, losses = plain.losses(*batch), ours.losses(*batch)
    assert all(torch.equal(plain_losses[name], value) for name, value in losses.items())
    sum(losses.values()).backward()
    alone = torch.autograd.grad(plain_losses['sup'], list(plain.student.head.parameters()), retain_graph=True)
    for parameter, expected in zip(ours.student.head.parameters(), alone, strict=True):
        assert torch.equal(parameter.grad, expected)
    sum(plain_losses.values()).backward()
    bodies = (model.student.backbone.parameters() for model in (ours, plain))
    for parameter, expected in zip(*bodies, strict=True):
        assert torch.equal(parameter.grad, expected.grad)
    assert not torch.equal(ours.student.head['fc'].weight.grad, plain.student.head['fc'].weight.grad)


def test_mixed_precision_shares_no_cast_weight_between_the_forwards(batch: tuple) -> None:
    """Autocast keeps a weight's half precision copy for the whole iteration, with its graph."""
    ours, alone = Toy(), Toy()
    ours.set_grad_relu(['head.fc'], KEY)
    ours.set_average_head('head.fc', KEY)
    for model, names in ((ours, ('sup', 'unsup', 'average')), (alone, ('sup',))):
        with torch.autocast('cpu', dtype=torch.bfloat16):
            losses = model.losses(*batch)
        sum(losses[name] for name in names).backward()
    for found, expected in zip(ours.student.head.parameters(), alone.student.head.parameters(), strict=True):
        assert torch.equal(found.grad, expected.grad)
    found, expected = (model.student.backbone[0].weight.grad for model in (ours, alone))
    assert not torch.equal(found, expected)


@pytest.mark.parametrize(('patterns', 'found'), [
    (['head.fc'], {'student.head.fc'}),
    (['student.head.*'], {'student.head.fc'}),
    (['*.0', 'backbone.2'], {'student.backbone.0', 'student.backbone.2'}),
    (['backbone', 'head'], {'student.backbone', 'student.head'}),
])  # fmt: skip
def test_patterns(patterns: list[str], found: set[str]) -> None:
    model = Toy()
    model.set_grad_relu(patterns, KEY)
    assert set(model.grad_relu_layers) == found
    assert model.holds_layers_outside('head') == any('backbone' in path for path in found)


@pytest.mark.parametrize(('patterns', 'words'), [
    (['head.fcc'], ["'head.fcc' matches no layer", "did you mean 'head.fc'", 'backbone.0', KEY]),
    (['teacher.head.fc'], ['matches no layer', 'head.fc']),
    (['head.fc', 'head.drop'], ["'head.drop' matches only what has no parameter", 'Dropout']),
    ('head.fc', ['must be a list of layer names', "'head.fc'"]),
    ([], ['must be a list']),
    ([3], ['must be a list']),
    (None, ['must be a list']),
])  # fmt: skip
def test_names_that_fit_nothing_are_errors_that_say_what_exists(patterns: Any, words: list[str]) -> None:
    with pytest.raises(ValueError, match=KEY) as error:
        Toy().set_grad_relu(patterns, KEY)
    assert all(word in str(error.value) for word in words), error.value


def test_recomputed_layers_are_refused() -> None:
    for name in ('student.backbone', 'student.backbone.0'):
        model = Toy()
        model.get_submodule(name).with_cp = True
        with pytest.raises(ValueError, match='with_cp=False'):
            model.set_grad_relu(['backbone.0'], KEY)
        model.set_grad_relu(['head.fc'], KEY)


# --- Avg-Clustering -------------------------------------------------------------------------------------------------


class Linear(nn.Module):
    """The whole model of the vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 3).double()
        main = torch.tensor(VECTORS['main'], dtype=torch.float64)
        with torch.no_grad():
            self.fc.weight.copy_(main[:, :-1])
            self.fc.bias.copy_(main[:, -1])


@pytest.mark.parametrize('batches', [1, 2])
def test_vector(batches: int) -> None:
    """In one batch, and in two of one optimizer step, whose losses are means over half the samples."""
    model = Linear()
    layers = dict(student=model.fc)
    head = AverageHead(layers, momentum=1 - 0.9, reset_interval=3, lr=0.5, loss_weight=7.0)
    target = torch.tensor(VECTORS['pseudo']).chunk(batches)
    mask = torch.tensor(VECTORS['mask'], dtype=torch.float64).chunk(batches)
    step = torch.tensor(VECTORS['main_step'], dtype=torch.float64)
    for t in range(5):
        feat = torch.tensor(VECTORS['feat'], dtype=torch.float64, requires_grad=True)
        total = 0
        for part, y, m in zip(feat.chunk(batches), target, mask, strict=True):
            def loss(logits: Tensor, y: Tensor = y, m: Tensor = m) -> Tensor:
                return (F.cross_entropy(logits, y, reduction='none') * m).mean()
            total = total + head.loss(layers, [('student', part)], loss) / batches
        held = head.weights('student')
        found = torch.cat([held['weight'], held['bias'][:, None]], dim=1)
        expected = torch.tensor(VECTORS['average'][t], dtype=torch.float64)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
        assert total.item() == pytest.approx(VECTORS['loss'][t], abs=1e-9)
        (total * 1024).backward()
        if str(t) in VECTORS['feat_grad']:
            expected = torch.tensor(VECTORS['feat_grad'][str(t)], dtype=torch.float64)
            torch.testing.assert_close(feat.grad / 1024, expected, rtol=0, atol=1e-9)
        assert model.fc.weight.grad is None and model.fc.bias.grad is None
        with torch.no_grad():
            model.fc.weight += step[:, :-1]
            model.fc.bias += step[:, -1]
        head.update()
    assert head.num_steps == 5


def test_gradient_equals_that_of_a_plain_second_head(batch: tuple) -> None:
    model = Toy()
    model.set_average_head('head.fc', KEY, momentum=0.5, lr=0.3, loss_weight=0.7, reset_interval=100)
    plain = deepcopy(model)
    for step in range(3):
        model.zero_grad()
        losses = model.losses(*batch, ramp=0.5)
        assert 'average' in losses
        (sum(losses.values()) * 3).backward()

        plain.zero_grad()
        x, y, u, target = batch
        if step == 0:
            second = deepcopy(plain.student.head['fc'])
        second.zero_grad()
        features = plain.student.backbone(u)
        unweighted = F.cross_entropy(second(features), target)
        loss = F.cross_entropy(plain.student(x), y) + 0.25 * F.cross_entropy(plain.student.head['fc'](features), target)
        gradient = torch.autograd.grad(unweighted, list(second.parameters()), retain_graph=True)
        ((loss + 0.35 * unweighted) * 3).backward()
        for found, expected in zip(model.student.parameters(), plain.student.parameters(), strict=True):
            torch.testing.assert_close(found.grad, expected.grad)
        torch.testing.assert_close(losses['average'], 0.35 * unweighted)
        with torch.no_grad():
            for parameter, value in zip(second.parameters(), gradient, strict=True):
                parameter -= 0.5 * 0.3 * value
            for both in (model, plain):
                for parameter in both.student.parameters():
                    parameter -= 0.1 * parameter.grad
        model.update_average_head()
        for name, value in second.named_parameters():
            torch.testing.assert_close(average(model)[name], value)


def test_lookahead_moves_first(batch: tuple) -> None:
    model = Toy()
    options = dict(momentum=0.5, lr=0.3, reset_interval=3)
    model.set_average_head('head.fc', KEY, lookahead=True, **options)
    held = None
    _, _, u, target = batch
    for t in range(5):
        losses = model.losses(*batch)
        if t % 3 == 0:
            held = {name: value.detach().clone() for name, value in model.student.head['fc'].named_parameters()}
        else:
            leaves = {name: value.requires_grad_() for name, value in held.items()}
            logits = F.linear(model.student.backbone(u).detach(), **leaves)
            gradient = torch.autograd.grad(F.cross_entropy(logits, target), list(leaves.values()))
            held = {
                name: value.detach() - 0.15 * g for (name, value), g in zip(leaves.items(), gradient, strict=True)
            }  # fmt: skip
        expected = F.cross_entropy(F.linear(model.student.backbone(u), **held), target)
        torch.testing.assert_close(losses['average'], expected)
        model.zero_grad()
        losses['average'].backward()
        found = model.student.backbone[0].weight.grad.clone()
        torch.testing.assert_close(found, torch.autograd.grad(expected, model.student.backbone[0].weight)[0])
        with torch.no_grad():
            for parameter in model.student.parameters():
                parameter += 0.1
        model.update_average_head()
        for name, value in held.items():
            torch.testing.assert_close(average(model)[name], value)


def test_reset_every_step_is_the_main_head(batch: tuple) -> None:
    model = Toy()
    model.set_average_head('head.fc', KEY, momentum=1.0, lr=1.0, reset_interval=1)
    for _ in range(3):
        losses = model.losses(*batch)
        torch.testing.assert_close(losses['average'], 2 * losses['unsup'])
        with torch.no_grad():
            model.student.head['fc'].weight += 1
        model.update_average_head()


def test_steps_without_an_averaged_loss_do_not_count(batch: tuple) -> None:
    model = Toy()
    model.set_average_head('head.fc', KEY, reset_interval=10)
    with torch.no_grad():
        model.student.head['fc'].weight += 1
    for _ in range(3):
        model.update_average_head()
    assert model.average_head.num_steps == 0
    model.losses(*batch)  # the first one starts from the main layer of this moment
    assert torch.equal(average(model)['weight'], model.student.head['fc'].weight)


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_half_precision_features_give_float32_logits_and_a_step(dtype: torch.dtype) -> None:
    layer = nn.Linear(2, 3)
    head = AverageHead(dict(student=layer), momentum=0.001, lr=5e-4)
    features = torch.randn(4096, 2).to(dtype).requires_grad_()
    kinds = []

    def loss(logits: Tensor) -> Tensor:
        kinds.append(logits.dtype)
        return F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))

    with torch.autocast('cpu', dtype=torch.bfloat16):
        value = head.loss(dict(student=layer), [('student', features)], loss)
    (value * 2.0**12).backward()  # as a gradient scaler does; unscaled, most gradients are below half precision
    assert kinds == [torch.float32] and value.dtype == torch.float32
    assert features.grad.dtype == dtype and (features.grad != 0).all()
    head.update()
    moved = (head.weights('student')['weight'] - layer.weight).abs()
    assert 0 < moved.max() < 1e-6


def test_checkpoint_holds_all_of_it(batch: tuple, tmp_path: Path) -> None:
    def step(model: Toy) -> None:
        model.zero_grad()
        sum(model.losses(*batch).values()).backward()
        with torch.no_grad():
            for parameter in model.student.parameters():
                parameter -= 0.1 * parameter.grad
        model.update_average_head()

    def build() -> Toy:
        model = Toy()
        model.set_average_head('head.fc', KEY, momentum=0.5, lr=0.3, reset_interval=4)
        return model

    straight = build()
    for _ in range(3):
        step(straight)
    torch.save(straight.state_dict(), tmp_path / 'x.pth')
    resumed = build()
    assert resumed.average_head.num_steps == 0  # the host's count is that of the checkpoint all the same
    resumed.load_state_dict(torch.load(tmp_path / 'x.pth', weights_only=True))
    for _ in range(3):
        step(straight)
        step(resumed)
    names = {'average_head.student.weight', 'average_head.student.bias', 'average_head.step'}
    assert names == {name for name in straight.state_dict() if name.startswith('average_head')}
    for name, value in straight.state_dict().items():
        assert torch.equal(resumed.state_dict()[name], value), name
    assert not any(name.startswith('average_head') for name, _ in straight.named_parameters())
    result = Toy().load_state_dict(straight.state_dict(), strict=False)
    assert set(result.unexpected_keys) == names and not result.missing_keys
    straight.average_head.restart()
    assert straight.average_head.num_steps == 0


@pytest.mark.parametrize(('pattern', 'words'), [
    ('head.fcc', ['matches no layer']),
    ('backbone.*', ['one layer of each sub-model', 'student.backbone.0', 'student.backbone.2']),
    ('backbone', ['single linear or convolutional layer', 'Sequential']),
    (['head.fc'], ['must be the name of a layer']),
])  # fmt: skip
def test_layers_that_cannot_be_averaged(pattern: Any, words: list[str]) -> None:
    model = Toy()
    with pytest.raises(ValueError, match=KEY) as error:
        model.set_average_head(pattern, KEY)
    assert all(word in str(error.value) for word in words), error.value
    assert model.average_head is None


def test_a_layer_before_the_last_is_noticed(batch: tuple) -> None:
    model = Toy()
    model.set_average_head('backbone.2', KEY)
    with pytest.raises(ValueError, match=r'student.backbone.2 is not the layer that makes the logits'):
        model.losses(*batch)
    with pytest.raises(ValueError, match='takes no part'):
        model.average_loss([], lambda logits: logits.sum())


def test_without_hooks_nothing_changes(batch: tuple) -> None:
    model = Toy()
    assert not model.is_layerwise and model.average_head is None
    with model.unsupervised_forward() as seen:
        out = model.student(batch[2])
    assert seen == [] and out.requires_grad
    out.sum().backward()
    assert all(parameter.grad is not None for parameter in model.student.parameters())
    assert not any('average' in name for name in model.state_dict())
