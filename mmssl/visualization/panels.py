"""Draws rows of labeled pictures (image, label map, heat map) into one array."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

IGNORED_COLOR = (0, 0, 0)


@dataclass
class Panel:
    """One picture of a row.

    Attributes:
        title: What stands above it.
        values: uint8 (H, W, 3) for an RGB image, integer (H, W) for labels, float (H, W) for a heat map. NaN is drawn
            gray.
        value_range: Lower and upper end of a heat map's colors.
        diverging: Whether the heat map's zero is neutral, as for a score in [-1, 1].
    """

    title: str
    values: np.ndarray
    value_range: tuple[float, float] = (0.0, 1.0)
    diverging: bool = False


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
    row += [Panel('pseudo label', pseudo_label), Panel('K', k, (1, max(2, max_k)))]
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

    columns = max(len(row) for row in rows)
    height, image_width = rows[0][0].values.shape[:2]
    row_height = width * height / image_width + 0.35
    legend_height = 0.3 * (1 + (len(classes) - 1) // 8) if classes else 0.0
    figure = Figure(figsize=(columns * width, len(rows) * row_height + legend_height + 0.1), dpi=100)
    canvas = FigureCanvasAgg(figure)
    top = 1 - 0.1 / figure.get_figheight()
    grid = figure.add_gridspec(
        len(rows), columns, left=0.01, right=0.99, top=top - 0.2 / figure.get_figheight(),
        bottom=(legend_height + 0.05) / figure.get_figheight(), wspace=0.04, hspace=0.3 / row_height,
    )  # fmt: skip
    for y, row in enumerate(rows):
        for x, panel in enumerate(row):
            axes = figure.add_subplot(grid[y, x])
            axes.set_axis_off()
            axes.set_title(panel.title, fontsize=8, pad=2)
            if panel.values.ndim == 3:
                axes.imshow(panel.values)
            elif np.issubdtype(panel.values.dtype, np.integer):
                axes.imshow(colorize(panel.values, palette), interpolation='nearest')
            else:
                low, high = panel.value_range
                axes.set_facecolor('gray')
                picture = axes.imshow(
                    panel.values, vmin=low, vmax=high, cmap='RdBu_r' if panel.diverging else 'viridis',
                    interpolation='nearest',
                )  # fmt: skip
                figure.colorbar(picture, ax=axes, fraction=0.04, pad=0.01).ax.tick_params(labelsize=6)
    if classes:
        handles = [
            Patch(color=np.asarray(color) / 255, label=name) for name, color in zip(classes, palette, strict=False)
        ]
        figure.legend(handles=handles, loc='lower center', ncols=8, fontsize=7, frameon=False)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
