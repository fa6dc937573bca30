"""``draw_panels``: panels of one size, color bars with numbers that nothing covers."""

import matplotlib.figure
import numpy as np
import pytest

from mmssl.visualization import draw_panels, pseudo_label_row
from mmssl.visualization.panels import Panel


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[matplotlib.figure.Figure]:
    """Every figure that is made."""
    made = []

    class Noted(matplotlib.figure.Figure):

        def __init__(self, *args, **kwargs) -> None:
            super().__init__(*args, **kwargs)
            made.append(self)

    monkeypatch.setattr(matplotlib.figure, 'Figure', Noted)
    return made


def row(height: int, width: int, max_k: int) -> list[Panel]:
    labels = np.zeros((height, width), np.int64)
    values = np.linspace(0, 1, height * width).reshape(height, width)
    return pseudo_label_row(np.zeros((height, width, 3), np.uint8), labels, 1 + values * (max_k - 1), labels, labels,
                            weight=values, score=2 * values - 1, max_k=max_k)  # yapf: disable


@pytest.mark.parametrize('size', [(30, 40), (24, 24), (60, 30)])
@pytest.mark.parametrize('max_k', [1, 2, 3, 18])
def test_panels_are_equally_large_and_numbers_are_seen(figures: list, size: tuple[int, int], max_k: int) -> None:
    picture = draw_panels([row(*size, max_k), row(*size, max_k)], ['a', 'b'], [[0, 0, 0], [255, 0, 0]])
    assert picture.dtype == np.uint8 and picture.shape[2] == 3
    (figure,) = figures
    images = [axes.get_window_extent() for axes in figure.axes]
    assert len(images) == 14
    assert np.ptp([box.width for box in images]) < 1 and np.ptp([box.height for box in images]) < 1
    bars = {axes.get_title(): axes.child_axes[0] for axes in figure.axes if axes.child_axes}
    assert set(bars) == {'K', 'weight', 'R'}
    for axes in figure.axes:
        for bar in axes.child_axes:
            numbers = [label for label in bar.get_yticklabels() if label.get_text()]
            shown = [label.get_window_extent() for label in numbers]
            low, high = bar.get_ylim()
            places = [place for place in bar.get_yticks() if low <= place <= high]
            assert 2 <= len(places) <= 6
            for box in shown:
                assert box.x0 >= 0 and box.x1 <= picture.shape[1]
                assert not any(box.overlaps(image) for image in images)
    assert all(float(place).is_integer() for place in bars['K'].get_yticks())


def test_without_heat_maps_no_space_is_kept_for_bars(figures: list) -> None:
    panel = Panel('image', np.zeros((30, 40, 3), np.uint8))
    narrow = draw_panels([[panel] * 3])
    wide = draw_panels([[panel, panel, Panel('weight', np.zeros((30, 40)))]])
    assert narrow.shape[1] < wide.shape[1]
    assert figures[0].axes[0].get_window_extent().width == pytest.approx(
        figures[1].axes[0].get_window_extent().width, abs=1)
