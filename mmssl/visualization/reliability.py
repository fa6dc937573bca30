"""Reliability diagrams: accuracy against confidence, bin by bin."""

from collections.abc import Mapping

import numpy as np
from torch import Tensor


def draw_reliability(diagrams: Mapping[str, Tensor], width: float = 4.0) -> np.ndarray:
    """Draw reliability diagrams side by side.

    Each bin that is not empty is a point at its mean confidence and its accuracy; the red line from there to the
    diagonal is the gap that the calibration error averages. Below, the share of the samples that each bin has.

    Args:
        diagrams: By its title, the sums of one diagram as :func:`mmssl.functional.calibration.bin_sums` gives them,
            (3, B).
        width: Inches of one diagram at 100 dots per inch.

    Returns:
        RGB picture, uint8, shape (H, W, 3).
    """
    # A figure of its own, not pyplot's, so that a user's own plots and backend are left alone.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * len(diagrams), 1.35 * width), dpi=100, layout='constrained')
    canvas = FigureCanvasAgg(figure)
    grid = figure.subplots(2, len(diagrams), squeeze=False, sharex=True, gridspec_kw={'height_ratios': (3, 1)})
    for column, (title, sums) in enumerate(diagrams.items()):
        count, confidence, hits = sums[:, sums[0] > 0].cpu().double().numpy()
        confidence, accuracy = confidence / count, hits / count
        above, below = grid[0, column], grid[1, column]
        above.plot((0, 1), (0, 1), 'k--', linewidth=1)
        above.vlines(confidence, confidence, accuracy, color='tab:red', linewidth=3, alpha=0.5, label='gap')
        above.plot(confidence, accuracy, 'o-', color='tab:blue', clip_on=False, label='accuracy')
        above.set(title=title, ylabel='accuracy', xlim=(0, 1), ylim=(0, 1))
        above.title.set_fontsize(9)
        above.legend(loc='upper left', fontsize=8)
        below.vlines(confidence, 0, count / count.sum(), color='gray', linewidth=4)
        below.set(xlabel='confidence', ylabel='share of samples', ylim=(0, 1))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
