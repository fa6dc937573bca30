"""Draw ADR's penalty and its gradient against the confidence, to choose tau and gamma with open eyes.

    python tools/analysis/plot_adr.py --topk 1 2 3 5 --num-classes 10 --out adr.png
    python tools/analysis/plot_adr.py --topk 3 --num-classes 10 --phi 0.1 0.3 1 --out adr_phi.png

On the path where one class has probability p and the others share the rest, from equal probabilities (left) to
certainty (right). The upper panel is the penalty F, times --gamma; the lower one is the derivative of gamma F and of
cross entropy to the logit of that class: below 0, a step of training makes the prediction more certain. Without
--phi, phi is that of the prediction itself, as of a batch of equal samples; with it, one curve for each number, the
phi that a batch might have. Printed: where each curve turns around, and its value there and at both ends.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from mmssl.functional.adr import NORMS, UNCERTAINTIES, penalty_along_confidence
from mmssl.utils.errors import one_line

POINTS = 2000


def confidences(num_classes: int) -> Tensor:
    """From equal probabilities to near certainty."""
    return torch.linspace(1 / num_classes, 1 - 1e-4, POINTS, dtype=torch.float64)


def curve(args: argparse.Namespace, topk: int, phi: float | None) -> tuple[Tensor, Tensor, Tensor]:
    """Confidence, gamma F, and its derivative to the logit of the class, one curve.

    With p the softmax of one logit against C - 1 equal ones, the derivative of p to it is p (1 - p).
    """
    p = confidences(args.num_classes).requires_grad_()
    penalty = args.gamma * penalty_along_confidence(p, args.num_classes, topk, args.uncertainty, phi, args.norm)
    slope, = torch.autograd.grad(penalty.sum(), p)
    return p.detach(), penalty.detach(), (slope * p * (1 - p)).detach()


def check(args: argparse.Namespace) -> None:
    """Values of the options.

    Raises:
        ValueError: If one is out of range.
        FileNotFoundError: If the folder of the picture does not exist.
    """
    if args.num_classes < 2:
        raise ValueError(f'--num-classes: must be at least 2, got {args.num_classes}')
    for topk in args.topk:
        if not 1 <= topk <= args.num_classes:
            raise ValueError(f'--topk: must be in [1, {args.num_classes}] (--num-classes), got {topk}')
    for phi in args.phi or []:
        if not 0 < phi <= 1:
            raise ValueError(f'--phi: must be in (0, 1], got {phi:g}')
    if not math.isfinite(args.gamma) or args.gamma <= 0:
        raise ValueError(f'--gamma: must be > 0, got {args.gamma:g}')
    if not Path(args.out).resolve().parent.is_dir():
        raise FileNotFoundError(f'--out: no folder {str(Path(args.out).parent)!r}')


def plot(args: argparse.Namespace) -> list[str]:
    """Draw the picture.

    Returns:
        One line for each curve.
    """
    check(args)
    # A figure of its own, not pyplot's, needs no display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 6.8), dpi=args.dpi, layout='constrained')
    FigureCanvasAgg(figure)
    upper, lower = figure.add_subplot(2, 1, 1), figure.add_subplot(2, 1, 2)
    lines = []
    for index, (topk, phi) in enumerate((topk, phi) for topk in args.topk for phi in args.phi or [None]):
        p, penalty, slope = curve(args, topk, phi)
        name = f'topk={topk}' + ('' if phi is None else f', phi={phi:g}')
        for axes, values in ((upper, penalty), (lower, slope)):
            axes.plot(p, values, color=f'C{index % 10}', linewidth=1.4, label=name)
        best = int(penalty.argmax())
        upper.plot(p[best], penalty[best], 'o', color=f'C{index % 10}', markersize=4)
        lines.append(f'{name}: largest at p = {p[best]:.3f}: {penalty[best]:.4g}; equal probabilities '
                     f'{penalty[0]:.4g}, certainty {penalty[-1]:.4g}')
    p = confidences(args.num_classes)
    lower.plot(p, p - 1, color='0.5', linestyle='--', linewidth=1, label='cross entropy')
    lower.axhline(0, color='0.7', linewidth=0.8)
    gamma = '' if args.gamma == 1 else f'{args.gamma:g} '
    upper.set_title(f'{args.num_classes} classes, {args.uncertainty}, l{args.norm}', fontsize=10)
    upper.set_ylabel(f'penalty {gamma}F')
    lower.set_ylabel(f'derivative of {gamma}F to the logit')
    lower.set_xlabel('probability of one class, the others equal')
    if args.log:
        upper.set_yscale('log')
        lower.set_yscale('symlog', linthresh=1e-3)
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    figure.savefig(args.out)
    return lines


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog='plot_adr.py')
    parser.add_argument('--topk', nargs='+', type=int, required=True, help='tau, one or more')
    parser.add_argument('--num-classes', type=int, required=True, help='c')
    parser.add_argument('--phi', nargs='+', type=float, help='phi of a batch, one or more (default: of the sample)')
    parser.add_argument('--gamma', type=float, default=1., help='factor of the penalty, loss_weight (default: 1)')
    parser.add_argument('--uncertainty', choices=UNCERTAINTIES, default='entropy')
    parser.add_argument('--norm', type=int, choices=NORMS, default=2)
    parser.add_argument('--log', action='store_true', help='logarithmic axes')
    parser.add_argument('--out', required=True, help='picture to write: .png, .pdf, .svg')
    parser.add_argument('--dpi', type=int, default=120, help='dots per inch (default: 120)')
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool.

    Returns:
        0, or 2 after an error of the user's.
    """
    args = build_parser().parse_args(argv)
    try:
        lines = plot(args)
    except (OSError, ValueError) as error:
        print(f'plot_adr: error: {one_line(error)}', file=sys.stderr)
        return 2
    print('\n'.join([*lines, f'written: {args.out}']))
    return 0


if __name__ == '__main__':
    sys.exit(main())
