"""Reliability diagrams: accuracy against confidence, bin by bin."""

from collections.abc import Mapping

import numpy as np
from torch import Tensor


def draw_reliability(diagrams: Mapping[str, Tensor], width: float = 4.0) -> np.ndarray:
    """Draw reliability diagrams side by side.

    A bar stands at the mean confidence of each bin that is not empty and reaches to its accuracy; the gap to the
    diagonal is what the calibration error averages. Below, the share of the samples that each bin has.

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
        bar = 0.8 / sums.shape[1]
        above, below = grid[0, column], grid[1, column]
        above.bar(confidence, accuracy, bar, color='tab:blue', label='accuracy')
        above.bar(confidence, confidence - accuracy, bar, accuracy, color='tab:red', alpha=0.3, label='gap')
        above.plot((0, 1), (0, 1), 'k--', linewidth=1)
        above.set(title=title, ylabel='accuracy', xlim=(0, 1), ylim=(0, 1))
        above.title.set_fontsize(9)
        above.legend(loc='upper left', fontsize=8)
        below.bar(confidence, count / count.sum(), bar, color='gray')
        below.set(xlabel='confidence', ylabel='share of samples', ylim=(0, 1))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
