"""The warning about pseudo labels that collapse into one class."""

from types import SimpleNamespace

import pytest
import torch
from mmengine.visualization import Visualizer

from mmssl.models.collapse_guard import CollapseGuard

SIZE = (16, 16)


@pytest.fixture
def messages(monkeypatch):
    found = []
    monkeypatch.setattr('mmssl.models.collapse_guard.print_log', lambda text, **_: found.append(text))
    return found


def maps(share_of_first, classes=4, seed=0):
    """Two label maps in which class 0 has about this share, the rest being even."""
    generator = torch.Generator().manual_seed(seed)
    others = torch.randint(1, classes, (2, 64, 64), generator=generator)
    return others.masked_fill(torch.rand(2, 64, 64, generator=generator) < share_of_first, 0)


def logits_of(labels, classes=4):
    return torch.nn.functional.one_hot(labels, classes).movedim(-1, 1).float()


def watch(guard, labels, pseudo, iterations, start=0, **kwargs):
    for iteration in range(start, start + iterations):
        guard(iteration, [label[None] for label in labels], [logits_of(pseudo)], **kwargs)


@pytest.mark.parametrize(('labels', 'pseudo', 'warns'), [
    (0.25, 0.99, True), (0.25, 0.85, False), (0.25, 0.25, False), (0.75, 0.99, True), (0.75, 0.92, False),
    (0.97, 0.98, False), (0.97, 1.0, True)])
def test_collapse_is_measured_against_the_labels(messages, labels, pseudo, warns):
    guard = CollapseGuard(4, interval=2, patience=5)
    watch(guard, maps(labels), maps(pseudo, seed=1), 60)
    assert len(messages) == warns  # once, however long it lasts
    if warns:
        assert 'class 0' in messages[0] and 'unsup_begin' in messages[0]


def test_a_moment_is_no_collapse(messages):
    guard = CollapseGuard(4, interval=1, patience=5, momentum=0.05)
    watch(guard, maps(0.25), maps(0.25, seed=1), 40)
    watch(guard, maps(0.25), maps(1., seed=1), 15)
    assert not messages
    watch(guard, maps(0.25), maps(1., seed=1), 60)
    assert len(messages) == 1


def test_either_model_and_padding_and_ignored_labels(messages):
    labels, good, bad = maps(0.25), maps(0.25, seed=1), maps(1., seed=1)
    guard = CollapseGuard(4, interval=1, patience=2)
    for _ in range(4):
        guard(0, [label[None] for label in labels], [logits_of(good), logits_of(bad)])
    assert not messages and guard.shares[1, 0].item() == pytest.approx(0.625, abs=0.1)
    padded = good.clone()
    padded[..., 8:] = 0
    valid = torch.ones_like(padded, dtype=torch.bool)
    valid[..., 8:] = False
    guard = CollapseGuard(4, interval=1, patience=2)
    ignored = labels.masked_fill(labels == 0, 255)
    watch(guard, ignored, padded, 4, valid=valid)
    assert not messages
    assert guard.shares[0, 0] == 0
    torch.testing.assert_close(guard.shares.sum(dim=1), torch.ones(2))


def test_it_looks_rarely_and_its_state_is_in_no_checkpoint(monkeypatch):
    guard = CollapseGuard(4, interval=10)
    looked = []
    monkeypatch.setattr(torch.Tensor, 'argmax', lambda self, *a, **k: looked.append(1) or self.max(*a, **k)[1])
    watch(guard, maps(0.25), maps(0.25), 40)
    assert len(looked) == guard.looks == 4
    assert not guard.state_dict()


def test_the_class_has_its_name(messages):
    Visualizer.get_instance('collapse').dataset_meta = dict(classes=('road', 'car', 'sky', 'pole'))
    try:
        watch(CollapseGuard(4, interval=1, patience=1), maps(0.25), maps(1.), 1)
    finally:
        Visualizer._instance_dict.pop('collapse')
    assert "class 'road' (0)" in messages[0]


def test_unusual_metainfo_does_no_harm(messages, monkeypatch):
    monkeypatch.setitem(Visualizer._instance_dict, 'odd', SimpleNamespace(dataset_meta=None))
    watch(CollapseGuard(4, interval=1, patience=1), maps(0.25), maps(1.), 1)
    assert 'class 0,' in messages[0]
