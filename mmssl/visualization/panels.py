"""Draws rows of labeled pictures (image, label map, heat map) into one array."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

IGNORED_COLOR = (0, 0, 0)
# Of the color bar beside a heat map: gap, bar, and its numbers, in inches.
BAR_GAP, BAR_WIDTH, BAR_NUMBERS = 0.03, 0.07, 0.3


@dataclass
class Panel:
    """One picture of a row.

    Attributes:
        title: What stands above it.
        values: uint8 (H, W, 3) for an RGB image, integer (H, W) for labels, float (H, W) for a heat map. NaN is drawn
            gray.
        value_range: Lower and upper end of a heat map's colors.
        diverging: Whether the heat map's zero is neutral, as for a score in [-1, 1].
        counts: Whether the heat map's values are whole numbers, so that its color bar has no others.
    """

    title: str
    values: np.ndarray
    value_range: tuple[float, float] = (0.0, 1.0)
    diverging: bool = False
    counts: bool = False


def pseudo_label_row(
    image: np.ndarray,
    pseudo_label: np.ndarray,
    k: np.ndarray,
    prediction: np.ndarray,
    truth: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    score: np.ndarray | None = None,
    max_k: float = 2,
) -> list[Panel]:
    """What fuzzy positive learning makes of one image, as a row of :func:`draw_panels`.

    Args:
        image: RGB, uint8, (H, W, 3).
        pseudo_label: The teacher's classes, integer, (H, W).
        k: Number of positives of each pixel, float, (H, W).
        prediction: The student's classes, integer, (H, W).
        truth: True classes, integer, (H, W). Default: None, no such panel.
        weight: Weight of each pixel, in [0, 1], float, (H, W). Default: None, no such panel.
        score: Positive-gradient score R, in [-1, 1], float, (H, W). Default: None, no such panel.
        max_k: Upper end of the colors of ``k``, so that all rows have the same.
    """
    row = [Panel('image', image)]
    if truth is not None:
        row.append(Panel('truth (hidden)', truth))
    row += [Panel('pseudo label', pseudo_label), Panel('K', k, (1, max(2, max_k)), counts=True)]
    if weight is not None:
        row.append(Panel('weight', weight))
    row.append(Panel('prediction', prediction))
    if score is not None:
        row.append(Panel('R', score, (-1, 1), diverging=True))
    return row


def colorize(labels: np.ndarray, palette: Sequence[Sequence[int]]) -> np.ndarray:
    """Colors of a label map; a label outside the palette (the ignored one) is black.

    Args:
        labels: Integer, shape (H, W).
        palette: RGB of each class.

    Returns:
        uint8, shape (H, W, 3).
    """
    table = np.zeros((256, 3), dtype=np.uint8)
    table[:] = IGNORED_COLOR
    table[: len(palette)] = np.asarray(palette, dtype=np.uint8)
    return table[np.clip(labels, 0, 255)]


def _is_heat_map(panel: Panel) -> bool:
    return panel.values.ndim == 2 and not np.issubdtype(panel.values.dtype, np.integer)


def draw_panels(
    rows: Sequence[Sequence[Panel]],
    classes: Sequence[str] = (),
    palette: Sequence[Sequence[int]] = (),
    width: float = 2.4,
) -> np.ndarray:
    """Draw rows of panels with titles, a color bar per heat map and a legend of the classes.

    Args:
        rows: Equally long rows.
        classes: Class names for the legend; none draws no legend.
        palette: RGB of each class.
        width: Inches of one panel at 100 dots per inch.

    Returns:
        RGB picture, uint8, shape (H, W, 3).
    """
    # A figure of its own, not pyplot's, so that a user's own plots and backend are left alone.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator

    columns = max(len(row) for row in rows)
    height, image_width = rows[0][0].values.shape[:2]
    row_height = width * height / image_width + 0.35
    legend_height = 0.3 * (1 + (len(classes) - 1) // 8) if classes else 0.0
    # Beside every panel, so that those with a bar are as large as their neighbors.
    has_bars = any(_is_heat_map(panel) for row in rows for panel in row)
    gap = BAR_GAP + BAR_WIDTH + BAR_NUMBERS if has_bars else 0.04 * width
    figure_width = columns * (width + gap) + 0.1
    figure = Figure(figsize=(figure_width, len(rows) * row_height + legend_height + 0.1), dpi=100)
    canvas = FigureCanvasAgg(figure)
    top = 1 - 0.1 / figure.get_figheight()
    grid = figure.add_gridspec(
        len(rows), columns, left=0.05 / figure_width, right=1 - (gap + 0.05) / figure_width,
        top=top - 0.2 / figure.get_figheight(), bottom=(legend_height + 0.05) / figure.get_figheight(),
        wspace=gap / width, hspace=0.3 / row_height,
    )  # fmt: skip
    for y, row in enumerate(rows):
        for x, panel in enumerate(row):
            axes = figure.add_subplot(grid[y, x])
            axes.set_axis_off()
            axes.set_title(panel.title, fontsize=8, pad=2)
            if panel.values.ndim == 3:
                axes.imshow(panel.values)
            elif not _is_heat_map(panel):
                axes.imshow(colorize(panel.values, palette), interpolation='nearest')
            else:
                low, high = panel.value_range
                axes.set_facecolor('gray')
                picture = axes.imshow(
                    panel.values, vmin=low, vmax=high, cmap='RdBu_r' if panel.diverging else 'viridis',
                    interpolation='nearest',
                )  # fmt: skip
                # In the panel's own coordinates, which takes none of its space.
                bar = axes.inset_axes((1 + BAR_GAP / width, 0, BAR_WIDTH / width, 1))
                figure.colorbar(picture, cax=bar, ticks=MaxNLocator(5, steps=[1, 2, 5, 10], integer=panel.counts))
                bar.tick_params(labelsize=6, length=2, pad=1)
    if classes:
        handles = [
            Patch(color=np.asarray(color) / 255, label=name) for name, color in zip(classes, palette, strict=False)
        ]
        figure.legend(handles=handles, loc='lower center', ncols=8, fontsize=7, frameon=False)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
