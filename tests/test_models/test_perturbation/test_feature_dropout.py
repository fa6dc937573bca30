"""Channel dropout on features: whole channels, the right share, and stateless."""

import pytest
import torch

from mmssl.models.perturbation import FeatureDropout


def dropped(features):
    """Which channels are 0, and a check that a channel is dropped as a whole or scaled as a whole."""
    flat = features.flatten(2)
    assert ((flat == 0).all(dim=2) | (flat != 0).all(dim=2)).all()
    return (flat == 0).all(dim=2)


@pytest.mark.parametrize('prob', [0.2, 0.5])
def test_whole_channels_with_the_right_share(prob):
    module = FeatureDropout(prob, seed=1).eval()
    features = (torch.ones(4, 500, 2, 3), torch.ones(4, 300, 1, 1))
    out = module(features)
    assert isinstance(out, tuple)
    for part in out:
        off = dropped(part)
        assert off.float().mean().item() == pytest.approx(prob, abs=0.05)
        torch.testing.assert_close(part[~off], torch.ones_like(part[~off]) / (1 - prob))
    # Images, levels and calls are independent of each other.
    first, second = dropped(out[0]), dropped(module(features)[0])
    for a, b in ((first[0], first[1]), (first[0, :300], dropped(out[1])[0]), (first[0], second[0])):
        assert (a == b).float().mean().item() == pytest.approx(prob**2 + (1 - prob)**2, abs=0.1)


def test_gradient_goes_through_what_is_left():
    features = torch.randn(2, 6, 3, 3, dtype=torch.float64, requires_grad=True)
    out = FeatureDropout(0.5, seed=0)(features)
    out.sum().backward()
    assert torch.equal(features.grad, (out / features).detach().round())
    assert set(features.grad.unique().tolist()) == {0., 2.}


def test_a_resumed_run_drops_the_same():
    features = [torch.ones(2, 40, 1, 1)]
    whole = FeatureDropout(seed=3)
    whole(features)
    state = {name: value.clone() for name, value in whole.state_dict().items()}
    torch.manual_seed(5)
    expected = whole(features)[0]
    other = FeatureDropout(seed=8)
    other.load_state_dict(state)
    torch.manual_seed(6)
    assert torch.equal(other(features)[0], expected)


@pytest.mark.parametrize('per_unit', [1, 2])
def test_the_number_of_processes_does_not_matter(monkeypatch, per_unit):
    features = torch.ones(4 * per_unit, 60, 1, 1)

    def drop(rank, world_size):
        monkeypatch.setattr('mmssl.models.seeded.get_dist_info', lambda: (rank, world_size))
        out = FeatureDropout(images_per_unit=per_unit, seed=2)(features[:len(features) // world_size])
        return out.view(-1, per_unit, 60)

    whole = drop(0, 1)
    assert len({tuple(row) for row in whole.flatten(0, 1).tolist()}) == len(features)
    for rank in (0, 1):
        assert torch.equal(drop(rank, 2), whole[rank::2])


def test_wrong_arguments():
    for prob in (0, 1, '0.5', True):
        with pytest.raises(ValueError, match=r'mmssl.FeatureDropout: `drop_prob` must be in \(0, 1\)'):
            FeatureDropout(prob)
    with pytest.raises(ValueError, match='`images_per_unit` must be an integer >= 1, got 0'):
        FeatureDropout(images_per_unit=0)
    with pytest.raises(ValueError, match='`seed` must be an integer >= 0 or None, got -1'):
        FeatureDropout(seed=-1)
    with pytest.raises(ValueError, match='returns feature maps, got dict'):
        FeatureDropout()({'low': torch.ones(1, 2, 1, 1)})
