"""CRDPLLLoss and PiCOLoss: against a plain second implementation over several steps, their state, and at the edges."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from mmssl.models.partial_label import CRDPLLLoss, PartialLabelBatch, PiCOLoss

F64 = torch.float64
N, C, D = 7, 4, 5
SETS = torch.tensor([[1, 1, 0, 1], [0, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1], [1, 0, 0, 1], [1, 1, 1, 0], [0, 1, 1, 0]],
                    dtype=torch.bool)
# The last batch is smaller, and a sample is there twice.
ORDER = [[0, 1, 2], [3, 4, 5], [6, 0, 2], [5, 1, 5], [2, 3]]


def sized(objective: Any, length: int = N) -> Any:
    objective.double().targets.set_samples(length, b'digest', 'some.txt')
    return objective


def uniform(i: int) -> list[float]:
    return [float(m) / int(SETS[i].sum()) for m in SETS[i]]


def test_crdpll_against_a_plain_implementation() -> None:
    objective = sized(CRDPLLLoss(C, weight=0.7, ramp=3, branches=['unsup_weak', 'unsup_strong', 'third']))
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(3, N, D, generator=generator, dtype=F64)
    weight = torch.randn(D, C, generator=generator, dtype=F64)
    table: dict[int, list[float]] = {}
    for step, ids in enumerate(ORDER):
        own, other = weight.clone().requires_grad_(), weight.clone().requires_grad_()
        views = {name: images[v, ids] @ own for v, name in enumerate(objective.branches)}
        losses, targets = objective(PartialLabelBatch(SETS[ids], views, torch.tensor(ids), iteration=step))
        outside, consistency, new = 0, 0, {}
        for row, i in enumerate(ids):
            p = [(images[v, i] @ other).softmax(0) for v in range(3)]
            w = table.get(i) or uniform(i)
            outside = outside - sum(torch.log(1 - p[0][c]) for c in range(C) if not SETS[i, c])
            for v in range(3):
                consistency = consistency + sum(w[c] * (math.log(w[c]) - p[v][c].log()) for c in range(C) if w[c] > 0)
            mean = [float(p[0][c] * p[1][c] * p[2][c]) ** (1 / 3) * float(SETS[i, c]) for c in range(C)]
            new[i] = [value / sum(mean) for value in mean]
            torch.testing.assert_close(targets[row], torch.tensor(new[i], dtype=F64))
        table.update(new)
        wanted = [outside / len(ids), 0.7 * min(step / 3, 1) * consistency / len(ids)]
        assert list(losses) == ['complementary_loss', 'consistency_loss']
        for found, value in zip(losses.values(), wanted, strict=True):
            torch.testing.assert_close(found, value)
        gradient, = torch.autograd.grad(sum(losses.values()), own)
        torch.testing.assert_close(gradient, torch.autograd.grad(sum(wanted), other)[0])
        for i, row in table.items():
            torch.testing.assert_close(objective.targets.values[i], torch.tensor(row, dtype=F64))
        weight -= 0.3 * gradient


def pico(**options: Any) -> PiCOLoss:
    torch.manual_seed(0)
    options = dict(dict(embed_dims=3, hidden_dims=6, queue_size=5, keep_ramp=4, prot_start=2), **options)
    return sized(PiCOLoss(C, D, **options))


class PlainPiCO:
    """PiCO once more, one sample at a time; the queue is a list."""

    def __init__(self) -> None:
        self.table: dict[int, list[float]] = {}
        self.queue: list[tuple[Tensor, int]] = []
        self.prototypes = [torch.zeros(3, dtype=F64) for _ in range(C)]

    def loss(self, step: int, ids: list[int], logits: Tensor, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        guesses = [max((c for c in range(C) if SETS[i, c]), key=lambda c, r=row: float(logits[r, c]))
                   for row, i in enumerate(ids)]  # fmt: skip
        for row, label in enumerate(guesses):
            moved = 0.9 * self.prototypes[label] + 0.1 * q[row].detach()
            self.prototypes[label] = moved / moved.norm()
        phi = 0.95 - 0.15 * min(step / 4, 1)
        prediction, contrast, new = 0, 0, {}
        for row, i in enumerate(ids):
            w = self.table.get(i) or uniform(i)
            if step >= 2:
                near = max((c for c in range(C) if SETS[i, c]), key=lambda c, r=row: float(q[r] @ self.prototypes[c]))
                w = [phi * value + (1 - phi) * (c == near) for c, value in enumerate(w)]
                new[i] = w
                rest = [(q[j], guesses[j]) for j in range(len(ids)) if j != row]
                rest += [(k[j], guesses[j]) for j in range(len(ids))] + self.queue
                total = sum((q[row] @ other / 0.5).exp() for other, _ in rest)
                terms = [torch.log((q[row] @ o / 0.5).exp() / total) for o, label in rest if label == guesses[row]]
            else:
                total = sum((q[row] @ other / 0.5).exp() for other in [k[row], *(old for old, _ in self.queue)])
                terms = [torch.log((q[row] @ k[row] / 0.5).exp() / total)]
            contrast = contrast - sum(terms) / len(terms)
            prediction = prediction - sum(w[c] * logits[row].log_softmax(0)[c] for c in range(C))
        self.table.update(new)
        self.queue = (self.queue + [(k[j].detach(), guesses[j]) for j in range(len(ids))])[-5:]
        return prediction / len(ids), 0.4 * contrast / len(ids)


def inputs_of(step: int, ids: list[int], teacher: Tensor, weight: Tensor) -> tuple[PartialLabelBatch, Tensor]:
    generator = torch.Generator().manual_seed(step)
    x, other = torch.randn(2, len(ids), D, generator=generator, dtype=F64)
    batch = PartialLabelBatch(
        SETS[ids], dict(unsup_weak=x @ weight), torch.tensor(ids), iteration=step, teacher_logits=other @ teacher,
        features=dict(unsup_weak=x), teacher_features=other)  # fmt: skip
    return batch, x


def test_pico_against_a_plain_implementation() -> None:
    objective, plain = pico(temperature=0.5, weight=0.4, prototype_momentum=0.1), PlainPiCO()
    weight = torch.randn(D, C, dtype=F64)
    for step, ids in enumerate(ORDER):
        own = weight.clone().requires_grad_()
        batch, x = inputs_of(step, ids, weight, own)
        losses, targets = objective(batch)
        q = F.normalize(objective.projection(x), dim=1)
        k = F.normalize(objective.teacher_projection(batch.teacher_features), dim=1)
        wanted = plain.loss(step, ids, x @ own, q, k)
        assert list(losses) == ['prediction_loss', 'contrastive_loss']
        parameters = [own, *objective.projection.parameters()]
        for found, value in zip(losses.values(), wanted, strict=True):
            torch.testing.assert_close(found, value)
        found, again = (torch.autograd.grad(sum(total), parameters) for total in (losses.values(), wanted))
        for a, b in zip(found, again, strict=True):
            torch.testing.assert_close(a, b)
        torch.testing.assert_close(objective.prototypes, torch.stack(plain.prototypes))
        kept = {tuple(round(v, 9) for v in row.tolist()) for row in objective.queue if row.any()}
        assert kept == {tuple(round(v, 9) for v in row.tolist()) for row, _ in plain.queue}
        torch.testing.assert_close(targets.sum(1), torch.ones(len(ids), dtype=F64))
        for i, row in plain.table.items():
            torch.testing.assert_close(objective.targets.values[i], torch.tensor(row, dtype=F64))
        with torch.no_grad():
            for parameter, gradient in zip(objective.projection.parameters(), found[1:], strict=True):
                parameter -= 0.2 * gradient
    assert not any(p.requires_grad for p in objective.teacher_projection.parameters())


def test_pico_goes_on_from_its_state_and_forgets_it() -> None:
    """Bit for bit, with tensors alone in the checkpoint."""
    weight = torch.randn(D, C, dtype=F64)
    whole = pico()
    for step in range(3):
        whole(inputs_of(step, ORDER[step], weight, weight)[0])
    again = pico()
    again.load_state_dict({key: value.clone() for key, value in whole.state_dict().items()})
    for step in (3, 4):
        for first, second in zip(*(o(inputs_of(step, ORDER[step], weight, weight)[0])[0].values()
                                   for o in (whole, again)), strict=True):  # fmt: skip
            assert torch.equal(first, second)
    for key, value in whole.state_dict().items():
        assert torch.equal(value, again.state_dict()[key]), key
    whole.reset()
    for key in ('prototypes', 'queue', 'enqueued', 'targets.values'):
        assert not whole.state_dict()[key].any()
    assert (whole.queue_labels == -1).all()
    fresh = pico()
    for first, second in zip(*(o(inputs_of(0, ORDER[0], weight, weight)[0])[0].values() for o in (whole, fresh)),
                             strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize('kind', [CRDPLLLoss, PiCOLoss])
def test_edges(kind: type) -> None:
    """One candidate, all of them, two classes, large logits and features, a batch of one or above the queue."""
    for classes, sets in ((2, [[1, 1], [1, 0]]), (4, [[1, 1, 1, 1], [0, 0, 1, 0]]), (3, [[0, 1, 1]])):
        objective = (CRDPLLLoss(classes, ramp=0) if kind is CRDPLLLoss else
                     PiCOLoss(classes, D, embed_dims=3, queue_size=1, keep_ramp=1, prot_start=1))  # fmt: skip
        sized(objective).float()
        for step, scale in enumerate((1.0, 1e4, 1e30, 1.0)):
            mask = torch.tensor(sets, dtype=torch.bool)
            z = (scale * torch.linspace(-1, 1, classes).repeat(len(sets), 1)).requires_grad_()
            x = (min(scale, 1e15) * torch.ones(len(sets), D)).requires_grad_()
            batch = PartialLabelBatch(mask, dict(unsup_weak=z, unsup_strong=z), torch.arange(len(sets)), step,
                                      z.detach(), dict(unsup_weak=x), x.detach())
            losses, targets = objective(batch)
            gradient = torch.autograd.grad(sum(losses.values()), z)[0]
            assert all(torch.isfinite(value) for value in losses.values()) and torch.isfinite(gradient).all()
            assert (targets[~mask] == 0).all()
            torch.testing.assert_close(targets.sum(1), torch.ones(len(sets)))


def test_what_follows_the_length_of_the_training() -> None:
    z = torch.randn(1, C, dtype=F64)
    batch = PartialLabelBatch(SETS[:1], dict(unsup_weak=z, unsup_strong=z), torch.tensor([0]), 3, z,
                              dict(unsup_weak=torch.randn(1, D, dtype=F64)), torch.randn(1, D, dtype=F64))
    crdpll = sized(CRDPLLLoss(C))
    with pytest.raises(ValueError, match=r"model.objective.ramp is None, .* add dict\(type='mmssl.SampleTargetsHook'"):
        crdpll(batch)
    crdpll.max_iters = 12
    half = crdpll(batch)[0]['consistency_loss']
    torch.testing.assert_close(2 * half, sized(CRDPLLLoss(C, ramp=0))(batch)[0]['consistency_loss'])
    with pytest.raises(ValueError, match=r'model.objective.prot_start is None'):
        pico(prot_start=None)(batch)
    free = pico(prot_start=None, keep_ramp=None)
    free.epoch_iters, free.max_iters = 3, 6
    _, targets = free(batch)
    keep = 0.95 - 0.15 * 0.5
    assert sorted(targets[0].tolist()) == pytest.approx(sorted([0, keep / 3, keep / 3, keep / 3 + 1 - keep]))


@pytest.mark.parametrize(('build', 'message'), [
    (lambda: CRDPLLLoss(C, weight=-1), r'mmssl.CRDPLLLoss: `weight` must be a finite number >= 0, got -1'),
    (lambda: CRDPLLLoss(C, ramp=0.5), '`ramp` must be None or an integer >= 0'),
    (lambda: CRDPLLLoss(C, branches=['unsup_weak', 'unsup_weak']), 'different ones'),
    (lambda: CRDPLLLoss(C, branches=3), 'different ones'),
    (lambda: PiCOLoss(C, 0), '`in_channels` must be an integer >= 1'),
    (lambda: PiCOLoss(C, D, queue_size=0), '`queue_size` must be an integer >= 1'),
    (lambda: PiCOLoss(C, D, keep=0.9), '`keep` must be two numbers'),
    (lambda: PiCOLoss(C, D, keep=(0.9, 1.1)), r'`keep` must be in \[0, 1\]'),
    (lambda: PiCOLoss(C, D, temperature=0), '`temperature` must be finite, > 0'),
    (lambda: PiCOLoss(C, D, prototype_momentum=0), r'`prototype_momentum` must be in \(0, 1\]'),
    (lambda: PiCOLoss(C, D, prot_start=-1), '`prot_start` must be None or an integer >= 0'),
])  # fmt: skip
def test_wrong_options(build: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize('name', ['CCLoss', 'PRODENLoss', 'LWSLoss', 'CAVLLoss', 'CRDPLLLoss', 'PiCOLoss'])
def test_in_a_classifier_under_autocast(name: str) -> None:
    """The losses are float32 maths on what the classifier makes in bfloat16; state stays float32."""
    pytest.importorskip('mmpretrain')
    from mmengine.registry import DefaultScope
    from mmpretrain.registry import MODELS
    from mmpretrain.structures import DataSample
    options = dict(CRDPLLLoss=dict(ramp=0), PiCOLoss=dict(prot_start=0, keep_ramp=1)).get(name, {})
    backbone = dict(type='ResNet_CIFAR', depth=18, stem_channels=4, base_channels=4)
    head = dict(type='LinearClsHead', num_classes=C, in_channels=32)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        model = MODELS.build(dict(
            type='mmssl.PartialLabelClassifier', estimator=None, objective=dict(type=f'mmssl.{name}', **options),
            classifier=dict(type='ImageClassifier', backbone=backbone, neck=dict(type='GlobalAveragePooling'),
                            head=head),
            semi_train_cfg=dict(teacher='ema' if name == 'PiCOLoss' else None))).train()
    if model.objective.targets is not None:
        model.objective.targets.set_samples(N, b'digest', 'some.txt')
    if model.has_teacher:
        model.initialize_teacher()
    samples = []
    for i, mask in enumerate(SETS):
        samples.append(DataSample(metainfo=dict(sample_idx=i, true_label=int(mask.int().argmax()))))
        samples[-1].set_field(mask, 'candidates')
    inputs = {branch: torch.randn(N, 3, 8, 8) for branch in ('unsup_weak', 'unsup_strong')}
    seen = []
    model.student.head.fc.register_forward_hook(lambda module, args, output: seen.append(output.dtype))
    for _ in range(2):
        with torch.autocast('cpu', dtype=torch.bfloat16):
            losses = model.loss(inputs, dict.fromkeys(inputs, samples))
        total, log = model.parse_losses(losses)
        total.backward()
        assert total.dtype == torch.float32 and 0 <= log['target_acc'] <= 1 and total > 0
    assert set(seen) == {torch.bfloat16}
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)
    assert all(value.dtype != torch.bfloat16 for value in model.state_dict().values())
