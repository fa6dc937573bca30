"""The FPL loss in one pass over the pixels: same numbers as ``fpl.py``.

What it costs against cross entropy and against ``fpl.py`` is measured by ``benchmarks/fpl_loss.py``.

Four ideas carry it:

1. Loss, weight, statistics and the gradient (Eq. 8, closed form) are computed together, block of pixels by block of
   pixels, in buffers that stay in the processor's cache. Only the gradient is kept, so the peak is one tensor of the
   size of the logits; backward only scales it. On a CPU, each thread works through blocks of its own: about a thousand
   small operations that all threads had to begin and end together would wait for the slowest a thousand times, on a
   machine that is busy with loading data.
2. Classes are ranked by a sorting network: a fixed list of max/min pairs, each done for all pixels of a block at once.
   A general sort of (N, C, H, W) along C would treat pixel by pixel.
3. Where the two most probable classes reach T, K is 1 and two maxima say all: those pixels, most of them with a
   trained teacher, skip the network (CPU only; on a GPU the extra synchronization would cost more).
4. Y enters as a threshold on the teacher's logits, and masks are floats: no gather, no index, no infinity.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .blocks import Piece, as_images, blocks, columns_of, for_each, parts
from .fpl import (
    MAX_PIXEL_LOSS,
    accurate_log1p,
    check_pixel_inputs,
    compute_dtype,
    fuzzy_positive_weight,
    k_from_n,
    mean_denominator,
)

__all__ = ['fpl_loss']  # the rest is how

# On a CPU: pixels that a thread takes at a time; pixels whose classes are ranked together (operations on single rows,
# which must be long enough to hide the cost of a call); and pixels in all other operations (on all rows, whose buffers
# must fit the cache of one core).
CPU_BLOCK, CPU_RANK_BLOCK, CPU_ROWS_BLOCK = 1 << 16, 1 << 15, 1 << 13
# On a GPU every operation is a kernel launch, so blocks are as large as the memory of two tensors of logits allows.
GPU_BLOCK = 1 << 19


class FPLOptions(NamedTuple):
    """Hyper-parameters of the FPL loss, as documented at :func:`fpl_loss`."""

    cum_prob: float = 0.9
    max_k: int | None = None
    k_rule: str = 'n-1'
    k_ratio: float = 0.5
    weight_mode: str = 'concave'
    weight_scale: float = 50.
    weight_bound: str = 'positive_mean'


class FPLResult(NamedTuple):
    """What :func:`fpl_loss` returns.

    Attributes:
        loss: The reduced loss, a scalar; (N, *) for ``reduction='none'``.
        k: K of each pixel, int32, (N, *).
        weight: Adaptive weight of each pixel, (N, *), in [0, 1].
        balance: Detached scalar that the loss was multiplied with; 1 without balancing.
    """

    loss: Tensor
    k: Tensor
    weight: Tensor
    balance: Tensor


class Ranked(NamedTuple):
    """Assignment of the pixels of a block, rows of length n.

    Attributes:
        last_positive: Teacher logit of the K-th class.
        k: K.
        positive_prob: Summed probability of Y.
        negative_prob: Probability of the (K+1)-th class.
        tied: 1 where the (K+1)-th class has the same logit as the K-th, else 0.
    """

    last_positive: Tensor
    k: Tensor
    positive_prob: Tensor
    negative_prob: Tensor
    tied: Tensor


@lru_cache(maxsize=64)
def sorting_network(size: int, top: int) -> tuple[tuple[int, int], ...]:
    """Comparators that bring the ``top`` largest of ``size`` values to the front, in descending order.

    Batcher's merge exchange (Knuth, TAOCP vol. 3, 5.2.2, algorithm M), less the comparators that no wanted output
    depends on.

    Args:
        size: Number of values.
        top: How many of the outputs are wanted.

    Returns:
        Pairs (i, j), i < j: put the larger value at i and the smaller at j. What is left behind the first ``top``
        outputs is a permutation of the other values.
    """
    comparators: list[tuple[int, int]] = []
    highest = 1 << max((size - 1).bit_length() - 1, 0)
    p = highest if size > 1 else 0
    while p > 0:
        q, r, d = highest, 0, p
        while True:
            comparators += [(i, i + d) for i in range(size - d) if i & p == r]
            if q == p:
                break
            d, q, r = q - p, q >> 1, p
        p >>= 1
    wanted, kept = set(range(top)), []
    for i, j in reversed(comparators):
        if i in wanted or j in wanted:
            wanted |= {i, j}
            kept.append((i, j))
    return tuple(reversed(kept))


class Workspace:
    """Buffers of one block and the sorting network of one call."""

    def __init__(self, num_classes: int, block: int, like: Tensor, options: FPLOptions, shortcut: int) -> None:
        self.on_cpu = like.device.type == 'cpu'
        self.rank_block = min(CPU_RANK_BLOCK, block) if self.on_cpu else block
        self.rows_block = min(CPU_ROWS_BLOCK, block) if self.on_cpu else block
        self.options = options
        self.shortcut = shortcut
        self.num_classes = num_classes
        table = k_from_n(num_classes, options.max_k, options.k_rule, options.k_ratio)
        self.max_k = max(table)
        # n matters up to the first value that gives the largest K, and K + 1 ranks are read.
        self.num_sums = max(table.index(self.max_k), 1)
        self.network = sorting_network(num_classes, max(self.num_sums, self.max_k) + 1)
        self.k_table = torch.tensor(table, device=like.device)
        self.buffers = [like.new_empty(num_classes + 1, max(self.rank_block, self.rows_block)) for _ in range(3)]
        self.buffers.append(like.new_empty(num_classes, self.rows_block))

    def rows(self, index: int, width: int, extra: int = 0) -> Tensor:
        """The first ``width`` columns of a buffer, with one row per class (and ``extra`` rows)."""
        return self.buffers[index][:self.num_classes + extra, :width]


def rank_all(target: Tensor, work: Workspace) -> Ranked:
    """Alg. 1 for columns ``target`` (C, n), by sorting each column."""
    num_classes, width = target.shape
    ranked = work.rows(0, width, extra=1)
    ranked[:num_classes].copy_(target)
    # A comparator writes its maximum to the spare row, and the row that it frees is the next spare: nothing is copied.
    slots = list(range(num_classes + 1))
    rows = list(ranked.unbind(0))
    for i, j in work.network:
        a, b, spare = rows[slots[i]], rows[slots[j]], rows[slots[-1]]
        torch.maximum(a, b, out=spare)
        torch.minimum(a, b, out=b)
        slots[i], slots[-1] = slots[-1], slots[i]
    rows[slots[-1]].copy_(rows[slots[0]])  # the spare row must hold no infinity for the next line
    exps = torch.sub(ranked, rows[slots[0]], out=work.rows(1, width, extra=1)).exp_()
    exp_rows = exps.unbind(0)

    cumulative = work.rows(2, width)
    sums = cumulative.unbind(0)
    sums[0].copy_(exp_rows[slots[0]])
    for rank in range(1, num_classes):
        torch.add(sums[rank - 1], exp_rows[slots[rank]], out=sums[rank])
    total = sums[-1]
    reached, below = total * work.options.cum_prob, torch.empty_like(total)
    n_minus_1 = torch.zeros_like(total)
    for row in sums[:work.num_sums]:
        n_minus_1 += torch.lt(row, reached, out=below)  # as floats: comparisons that make booleans are slow
    k = work.k_table.index_select(0, n_minus_1.long())

    slot_of_rank = torch.tensor(slots, device=target.device)
    last_slot = slot_of_rank.index_select(0, k - 1).unsqueeze(0)
    next_slot = slot_of_rank.index_select(0, k).unsqueeze(0)
    last_positive = ranked.gather(0, last_slot).squeeze(0)
    return Ranked(
        last_positive, k.to(target.dtype),
        cumulative.gather(0, (k - 1).unsqueeze(0)).squeeze(0) / total,
        exps.gather(0, next_slot).squeeze(0) / total,
        (ranked.gather(0, next_slot).squeeze(0) == last_positive).to(target.dtype))


def rank_columns(target: Tensor, work: Workspace) -> tuple[Ranked, Tensor | None]:
    """Alg. 1 for columns ``target`` (C, n), with the shortcut for pixels whose first class(es) reach T.

    Returns:
        The assignment, and the indices of the columns that the shortcut did not serve (None: it was not tried).
    """
    width = target.shape[1]
    ranked = Ranked(*target.new_empty(5, width).unbind(0))
    if not work.shortcut:
        for part in parts(width, work.rank_block):
            for row, values in zip(ranked, rank_all(target[:, part], work), strict=True):
                row[part] = values
        return ranked, None
    total = torch.empty_like(ranked.k)
    for part in parts(width, work.rows_block):
        columns = target[:, part]
        first = torch.amax(columns, dim=0, out=ranked.last_positive[part])
        exps = torch.sub(columns, first, out=work.rows(0, columns.shape[1])).exp_()
        torch.sum(exps, dim=0, out=total[part])
        second = torch.lt(exps, 1, out=work.rows(1, columns.shape[1])).mul_(exps)
        torch.amax(second, dim=0, out=ranked.negative_prob[part])
    # exp(0) of the first class is 1, and all is still to be divided by the total.
    top_sum = ranked.negative_prob + 1 if work.shortcut == 2 else 1
    unsure = torch.nonzero(total * work.options.cum_prob > top_sum).squeeze(1)
    ranked.negative_prob.div_(total)
    torch.reciprocal(total, out=ranked.positive_prob)
    ranked.k.fill_(1)
    ranked.tied.zero_()
    for part in parts(unsure.numel(), work.rank_block):
        for row, values in zip(ranked, rank_all(target.index_select(1, unsure[part]), work), strict=True):
            row.index_copy_(0, unsure[part], values)
    return ranked, unsure


def choose_shortcut(teacher: Tensor, options: FPLOptions) -> int:
    """How many first classes must reach T for K = 1 without ranking all of them; 0 for no shortcut (CPU only).

    With K = max(n - 1, 1) it is two, with K = n one. The shortcut tells the first class from the second by a smaller
    probability. Were they equal, the third, 1 at most relative to them, would be taken for the second: then
    (1 + 1) / 3 of the probability or less would have to reach T. It pays where most pixels can take it, judged on a
    thousand of each image. One answer for all blocks keeps the result independent of which thread takes which block.
    """
    count = 2 if k_from_n(teacher.shape[1], options.max_k, options.k_rule, options.k_ratio)[1] == 1 else 1
    if options.cum_prob <= count / (count + 1) or teacher.numel() == 0:
        return 0
    sample = teacher[:, :, ::max(teacher.shape[2] // 1024, 1)]
    top_sum = sample.to(compute_dtype(sample)).softmax(dim=1).topk(count, dim=1).values.sum(dim=1)
    return count if (top_sum >= options.cum_prob).double().mean() > 0.5 else 0


def class_masks(target: Tensor, ranked: Ranked, work: Workspace) -> tuple[Tensor, Tensor]:
    """Y and its complement as float masks, (C, n); Y has exactly K classes, equal ones at its border in class order."""
    width = target.shape[1]
    positive = torch.ge(target, ranked.last_positive, out=work.rows(0, width))
    negative = torch.lt(target, ranked.last_positive, out=work.rows(1, width))
    if not work.on_cpu:
        positive.copy_(without_surplus(target, ranked.last_positive, ranked.k))
        torch.eq(positive, 0, out=negative)
    else:
        tied = torch.nonzero(ranked.tied).squeeze(1)
        if tied.numel():
            columns, last = target.index_select(1, tied), ranked.last_positive.index_select(0, tied)
            exact = without_surplus(columns, last, ranked.k.index_select(0, tied)).to(positive.dtype)
            positive.index_copy_(1, tied, exact)
            negative.index_copy_(1, tied, 1 - exact)
    return positive, negative


def without_surplus(target: Tensor, last_positive: Tensor, k: Tensor) -> Tensor:
    """Mask of exactly ``k`` classes per column: those above ``last_positive``, then equal ones in class order."""
    above, equal = target > last_positive, target == last_positive
    return above | (equal & (equal.cumsum(dim=0) <= k - above.sum(dim=0)))


def block_cross_entropy(logits: Tensor, target: Tensor, fpl: Tensor, unsure: Tensor | None) -> Tensor:
    """Cross entropy of each column against the teacher's first class; where K = 1 it is ``fpl`` already (Eq. 9)."""
    columns = logits if unsure is None else logits.index_select(1, unsure)
    target = target if unsure is None else target.index_select(1, unsure)
    label = target.max(dim=0).indices.unsqueeze(0)
    entropy = (columns.logsumexp(dim=0) - columns.gather(0, label).squeeze(0)).clamp_(max=MAX_PIXEL_LOSS)
    return entropy if unsure is None else fpl.index_copy(0, unsure, entropy)


def exponentials(logits: Tensor, positive: Tensor, negative: Tensor, work: Workspace) -> tuple[Tensor, ...]:
    """The terms of Eq. 7 for columns ``logits`` (C, n), in the place of the two masks.

    Returns:
        exp(-z) of the positives and exp(z) of the negatives, (C, n), zero elsewhere, scaled per column to a largest
        value of 1; the column sums of both, (n,); and the logarithm of the product of the unscaled sums, (n,).
    """
    # y = -z for positives and z for negatives, so that both sums are sums of exp(y), each shifted by its own maximum.
    # A shift by the largest number hides the other side's values; infinity would give 0 * inf.
    y = torch.sub(negative, positive, out=work.rows(2, logits.shape[1])).mul_(logits)
    largest = torch.finfo(logits.dtype).max
    scratch = work.rows(3, logits.shape[1])
    max_positive = torch.add(y, negative, alpha=-largest, out=scratch).amax(dim=0)
    max_negative = torch.add(y, positive, alpha=-largest, out=scratch).amax(dim=0)
    y.addcmul_(positive, max_positive, value=-1).addcmul_(negative, max_negative, value=-1).exp_()
    pull, push = positive.mul_(y), negative.mul_(y)
    # Both sums are >= 1, except where logits beyond half of the largest number could not be hidden.
    tiny = torch.finfo(logits.dtype).tiny
    sum_pull, sum_push = pull.sum(dim=0).clamp_(min=tiny), push.sum(dim=0).clamp_(min=tiny)
    x = max_positive + max_negative + sum_pull.log() + sum_push.log()
    return pull, push, sum_pull, sum_push, x.clamp_(max=MAX_PIXEL_LOSS)


def block_loss(logits: Tensor, target: Tensor, work: Workspace, factor: Tensor | float | None, grad: Tensor | None,
               with_cross_entropy: bool) -> tuple[Tensor, Ranked, Tensor, Tensor | None]:
    """Loss, assignment, weight and gradient of the columns of one block.

    Args:
        logits: Student logits, (C, n), unit stride along n or close to it.
        target: Teacher logits, (C, n).
        work: Buffers for at least n columns.
        factor: Factor of the gradient, (n,) or one number; None for 1.
        grad: Where the gradient goes, (C, n); None for no gradient.
        with_cross_entropy: Whether to compute the cross entropy of each column as well.

    Returns:
        Unweighted loss L^f, (n,), its assignment, the adaptive weight, (n,), and the cross entropy, (n,), or None.
    """
    options = work.options
    ranked, unsure = rank_columns(target, work)
    weight = fuzzy_positive_weight(ranked.positive_prob, ranked.negative_prob, ranked.k, options.weight_mode,
                                   options.weight_scale, options.weight_bound)
    grad_factor = weight if factor is None else weight * factor
    x = torch.empty_like(weight)
    for part in parts(logits.shape[1], work.rows_block):
        z, assigned = logits[:, part], Ranked(*(row[part] for row in ranked))
        positive, negative = class_masks(target[:, part], assigned, work)
        pull, push, sum_pull, sum_push, x[part] = exponentials(z, positive, negative, work)
        if grad is not None:  # Eq. 8
            size = torch.sigmoid(x[part]).mul_(grad_factor[part])
            torch.mul(push, size / sum_push, out=grad[:, part]).addcmul_(pull, size / sum_pull, value=-1)
    # Softplus, written in operations on whole rows.
    loss = x.clamp(min=0) + accurate_log1p(torch.exp(-x.abs()))
    entropy = block_cross_entropy(logits, target, loss, unsure) if with_cross_entropy else None
    return loss, ranked, weight, entropy


class FusedFPL(torch.autograd.Function):
    """Reduced FPL loss whose gradient is ready when forward returns."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, target_logits: Tensor, options: FPLOptions, pixel_weight: Tensor | None,
                valid: Tensor | None, denominator: Tensor | None, loss_scale: float, balance: bool,
                with_grad: bool, reduce: Callable[[Tensor], Tensor] | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Compute everything; see :func:`fpl_loss`. ``denominator``: None for the loss of each pixel."""
        dtype = compute_dtype(logits, target_logits)
        student, teacher = as_images(logits), as_images(target_logits)
        num_images, num_classes, num_pixels = student.shape
        # The peak is this one tensor. In half precision a gradient divided by a million pixels would be 0.
        grad = torch.empty(student.shape, dtype=dtype, device=logits.device) if with_grad else None
        losses = torch.empty(num_images, num_pixels, dtype=dtype, device=logits.device)
        weights, entropies = torch.empty_like(losses), torch.empty_like(losses) if balance else None
        ks = torch.empty(losses.shape, dtype=torch.int32, device=logits.device)
        factors = None if pixel_weight is None else pixel_weight.reshape(losses.shape)
        valids = None if valid is None else valid.reshape(losses.shape)
        scale = loss_scale if denominator is None else loss_scale / denominator

        on_cpu = logits.device.type == 'cpu'
        num_threads = torch.get_num_threads() if on_cpu else 1
        # A share for every thread, unless it is not worth waking one.
        size = min(CPU_BLOCK, max(-(-losses.numel() // num_threads), CPU_ROWS_BLOCK)) if on_cpu else GPU_BLOCK
        shortcut = choose_shortcut(teacher, options) if on_cpu else 0

        def make_worker() -> Callable[[Piece], None]:
            work = Workspace(num_classes, min(size, losses.numel()), losses, options, shortcut)

            def worker(piece: Piece) -> None:
                z, t = columns_of(student, piece, dtype), columns_of(teacher, piece, dtype)
                factor = None if factors is None else factors[piece].reshape(-1).to(dtype)
                if grad is not None and not balance:
                    factor = scale if factor is None else factor * scale
                # One image is written in place; several lie class by class in the block, image by image in memory.
                in_place, block_grad = piece[0].stop - piece[0].start == 1, None
                if grad is not None:
                    block_grad = grad[piece[0].start, :, piece[1]] if in_place else torch.empty_like(z)
                loss, ranked, weight, entropy = block_loss(z, t, work, factor, block_grad, balance)
                losses[piece].view(-1).copy_(loss.mul_(weight))
                weights[piece].view(-1).copy_(weight)
                ks[piece].view(-1).copy_(ranked.k)
                if entropies is not None:
                    entropies[piece].view(-1).copy_(entropy)
                if block_grad is not None:
                    if valids is not None:
                        invalid = ~valids[piece].reshape(-1)
                        if not on_cpu or bool(invalid.any()):
                            # Not a product with the mask: padding may hold anything, NaN too.
                            block_grad.masked_fill_(invalid, 0)
                    if not in_place:
                        grad[piece[0]].copy_(block_grad.unflatten(1, (-1, num_pixels)).transpose(0, 1))

            return worker

        for_each(list(blocks(num_images, num_pixels, size)), make_worker, num_threads)

        if valids is not None:
            losses.masked_fill_(~valids, 0)
        ratio = losses.new_ones(())
        if balance:
            entropy = (entropies if valids is None else entropies.masked_fill_(~valids, 0)).sum()
            count = entropy.new_tensor(losses.numel()) if valids is None else valids.sum().to(dtype)
            sums = torch.stack([entropy, losses.sum(), count])
            entropy, fuzzy, count = sums if reduce is None else reduce(sums)
            count = count.clamp(min=1)
            ratio = ((entropy / count) / (fuzzy / count).clamp(min=1e-12)).clamp(max=MAX_PIXEL_LOSS)
            scale = scale * ratio
            if grad is not None:
                grad.mul_(scale)
        if factors is not None:
            losses = losses * factors
            if valids is not None:
                losses.masked_fill_(~valids, 0)
        shape = logits.shape[:1] + logits.shape[2:]
        result = losses.view(shape) * scale if denominator is None else losses.sum() * scale

        ctx.input_dtype = logits.dtype
        if grad is not None:
            # In its final shape: backward must hand out this very tensor, whose count of owners keeps autograd from
            # accumulating into it while the graph is retained. A view made there would hide the owners.
            ctx.save_for_backward(grad.squeeze(0).T if logits.dim() == 2 else grad.view(logits.shape))
        weights, ks = weights.view(shape), ks.view(shape)
        ctx.mark_non_differentiable(ks, weights, ratio)
        return result, ks, weights, ratio

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the gradient that forward left behind."""
        if torch.is_grad_enabled():  # only under create_graph=True; its second derivative would silently be 0
            raise RuntimeError('fpl_loss can not be differentiated twice (create_graph=True): its gradient is a closed '
                               'form without a graph; mmssl.functional.fpl.fuzzy_positive_loss can')
        grad, = ctx.saved_tensors
        if grad_loss.dim() > 0:
            grad = grad * grad_loss.unsqueeze(1)
        elif grad.device.type != 'cpu' or grad_loss != 1:  # the comparison would make a GPU wait
            grad = grad * grad_loss
        return grad.to(ctx.input_dtype), *[None] * 9


def fpl_loss(logits: Tensor,
             target_logits: Tensor,
             *,
             cum_prob: float = 0.9,
             max_k: int | None = None,
             k_rule: str = 'n-1',
             k_ratio: float = 0.5,
             weight_mode: str = 'concave',
             weight_scale: float = 50.,
             weight_bound: str = 'positive_mean',
             balance: str | None = None,
             weight: Tensor | None = None,
             valid: Tensor | None = None,
             reduction: str = 'mean',
             avg_factor: float | Tensor | None = None,
             loss_scale: float = 1.,
             reduce: Callable[[Tensor], Tensor] | None = None) -> FPLResult:
    r"""Fuzzy positive learning: assignment (Alg. 1), adaptive weight (Eq. 10-12) times loss (Eq. 7), reduced.

    .. math:: L = \frac{1}{S} \sum_{s} w_s L^f_s

    Computed in float32 (float64 if an input is), also under autocast. The gradient is exact and in closed form; it
    cannot be differentiated again (an error says so). No gradient flows to the teacher, to ``weight`` or to the
    adaptive weight. The result is finite for all finite logits; a pixel's loss is cut at 1e30.

    Args:
        logits: Student logits, float, (N, C, *), C >= 2.
        target_logits: Teacher logits at the same pixels, same shape.
        cum_prob: T of Alg. 1, in (0, 1). The paper picks from 0.95, 0.9 and 0.85.
        max_k: Largest K; None for no cap but C - 1. The released code has 3.
        k_rule: ``'n-1'`` (paper), ``'n'`` (its ablation, vanishing gradient) or ``'ratio'``.
        k_ratio: alpha of ``'ratio'``, K = max(floor(alpha n), 1), in (0, 1].
        weight_mode: See :func:`mmssl.functional.fpl.fuzzy_positive_weight`.
        weight_scale: A of the concave weight, > 0.
        weight_bound: ``'positive_mean'`` (paper) or ``'top_k_plus_1'`` (released code).
        balance: ``'ce_value'`` multiplies by the detached ratio of the mean cross entropy against the teacher's
            arg-max to the mean of w L^f, both over valid pixels and without ``weight`` (released code): the value of
            cross entropy, the direction of FPL. None: off (paper).
        weight: Further factor of each pixel, (N, *).
        valid: Pixels that count, bool, (N, *). The others are in no sum, mean or ratio, whatever their logits.
        reduction: ``'mean'`` over valid pixels, ``'sum'`` or ``'none'``.
        avg_factor: Replaces the number of valid pixels as the denominator of ``'mean'``.
        loss_scale: Constant factor of the result.
        reduce: Adds a vector over all processes, so that ``balance`` is one ratio for all of them; called once, by
            every process, if ``balance`` is on. None: each process has its own (released code).

    Returns:
        Loss and assignment. With no valid pixel the loss is exactly 0, attached to the graph.

    Raises:
        ValueError: Fewer than two classes, or shapes that do not fit.
    """
    check_pixel_inputs('fpl_loss', logits, target_logits, weight, valid)
    options = FPLOptions(cum_prob, max_k, k_rule, k_ratio, weight_mode, weight_scale, weight_bound)
    denominator = mean_denominator(logits, valid, reduction, avg_factor, compute_dtype(logits, target_logits))
    with_grad = torch.is_grad_enabled() and logits.requires_grad
    with torch.autocast(device_type=logits.device.type, enabled=False):
        return FPLResult(*FusedFPL.apply(
            logits, target_logits.detach(), options, None if weight is None else weight.detach(), valid, denominator,
            loss_scale, balance is not None, with_grad, reduce))
