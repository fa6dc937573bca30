"""The ADR penalty with its gradient in closed form: same numbers as ``adr.py``.

What it costs against cross entropy is measured by ``benchmarks/adr_loss.py``.

Forward keeps a few numbers of each pixel and backward writes the gradient once, so the peak is one tensor of the size
of the logits (three for (N, C), which are small). Maps, (N, C, *), are worked on block by block, see ``blocks.py``,
with the largest classes found by insertion, row by row: a general top-k along C would go pixel by pixel. In (N, C),
where C may be thousands, they are searched only in the groups of classes with the largest maxima.

Of classes that tie at the border of the top tau each gets its share of the gradient: the mean over all choices.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .adr import DEFAULT_TOPK, MAX_LOG_PENALTY, MIN_LOG_PROB, MIN_PHI
from .blocks import Piece, blocks, columns_of, for_each, parts
from .fpl import check_logits, compute_dtype, mean_denominator

__all__ = ['adr_loss']  # the rest is how

# Pixels that a thread takes at a time, on rows of which the largest classes are found, and pixels in operations on all
# rows, whose buffers must fit the cache of one core.
CPU_BLOCK, CPU_ROWS_BLOCK = 1 << 15, 1 << 13
GPU_BLOCK = 1 << 19  # on a GPU every operation is a kernel launch
MAX_INSERTION = 8  # up to this tau by insertion
MAX_SLOPE = 1e30  # derivatives of F are cut here, so that their sums are finite in float32
LARGE_LOGIT = 32.  # of maps; below it, z - logsumexp(z) is exact enough in float32
GROUPS = 64  # rows of samples are cut into a multiple of this many groups, so that maxima are taken of whole vectors
MAX_ROUNDS = 16  # up to this many largest classes of a row are found one after the other

Reduce = Callable[[Tensor], Tensor]


class ADROptions(NamedTuple):
    """Hyper-parameters of the penalty, as documented at :func:`adr_loss`."""

    topk: int = DEFAULT_TOPK
    uncertainty: str = 'entropy'
    phi: str = 'batch'
    norm: int = 2
    detach_phi: bool = False
    max_log_penalty: float = MAX_LOG_PENALTY


class ADRResult(NamedTuple):
    """What :func:`adr_loss` returns.

    Attributes:
        loss: The reduced loss, a scalar; (N, *) for ``reduction='none'``.
        penalty: F of each pixel, detached, (N, *).
        phi: Detached phi: a scalar for ``phi='batch'``, else (N, *).
    """

    loss: Tensor
    penalty: Tensor
    phi: Tensor


class Pixels(NamedTuple):
    """What the first pass over maps keeps of each pixel, (N, P) each.

    Attributes:
        largest: Largest logit.
        log_sum: Logarithm of the sum of exp(z - largest).
        border: The tau-th largest logit.
        above: How many classes are above ``border``.
        uncertainty: phi of the pixel itself, in [0, 1].
        confidence: T.
    """

    largest: Tensor
    log_sum: Tensor
    border: Tensor
    above: Tensor
    uncertainty: Tensor
    confidence: Tensor


def is_any(mask: Tensor) -> bool:
    """Whether something is True; on other devices than a CPU, where asking would wait, always."""
    return mask.device.type != 'cpu' or bool(mask.any())


def top_rows(logits: Tensor, k: int) -> list[Tensor]:
    """The k largest of each column, by insertion.

    Args:
        logits: (C, n), k <= C.
        k: At least 1.

    Returns:
        k rows (n,), in descending order.
    """
    slots: list[Tensor] = []
    spares = list(logits.new_empty(k + 2, logits.shape[1]).unbind(0))
    for row in logits.unbind(0):
        carry, mine = row, False  # what is still to be placed, and whether it is one of the buffers
        for rank, slot in enumerate(slots):
            if rank == k - 1:
                torch.maximum(slot, carry, out=slot)
                break
            larger = spares.pop()
            torch.maximum(slot, carry, out=larger)
            torch.minimum(slot, carry, out=slot)
            if mine:
                spares.append(carry)
            slots[rank], carry, mine = larger, slot, True
        if len(slots) < k:
            slots.append(carry if mine else spares.pop().copy_(carry))
        elif mine:
            spares.append(carry)
    return slots


def largest_of_rows(values: Tensor, k: int) -> Tensor:
    """Positions of the k largest of each row, in descending order of the values.

    A double has room for a float32 and its position in the row, in the bits that a float32 leaves: the maximum of such
    numbers says where it was. A selection as :func:`torch.topk`'s branches at random numbers, which processors guess.

    Args:
        values: Float32, (N, n), on a CPU.
        k: In [1, n].

    Returns:
        (N, k), int64.
    """
    keys, last = values.double(), values.shape[1] - 1
    keys.view(torch.int64).bitwise_or_(torch.arange(last + 1))
    mask = (1 << last.bit_length()) - 1
    columns: list[Tensor] = []
    for _ in range(k):
        if columns:
            keys.scatter_(1, columns[-1], -math.inf)
        # What is not finite leaves no position; the loss is then not finite either.
        columns.append(keys.amax(dim=1, keepdim=True).view(torch.int64).bitwise_and(mask).clamp_(max=last))
    return torch.cat(columns, dim=1)


def top_of_rows(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row, as :func:`torch.topk` finds them.

    Of many classes, the k largest are in the k groups with the largest maxima: so most are compared once, many at a
    time.

    Args:
        logits: (N, C), k <= C.
        k: At least 1.

    Returns:
        Values, in descending order, and positions, (N, k).
    """
    num_classes = logits.shape[1]
    if logits.device.type != 'cpu' or logits.dtype != torch.float32 or k > MAX_ROUNDS:
        return logits.topk(k, dim=1)
    # About as many groups as there are members in k of them.
    num_groups = max(round(math.sqrt(k * num_classes) / GROUPS), 1) * GROUPS
    size = num_classes // num_groups
    if size < 2 or num_groups < k:
        index = largest_of_rows(logits, k)
        return logits.gather(1, index), index
    covered = num_groups * size
    maxima = logits[:, :covered].unflatten(1, (size, num_groups)).amax(dim=1)
    members = torch.arange(0, covered, num_groups)
    candidates = (largest_of_rows(maxima, k).unsqueeze(2) + members).flatten(1)
    if covered < num_classes:
        candidates = torch.cat([candidates, torch.arange(covered, num_classes).expand(len(logits), -1)], dim=1)
    values = logits.gather(1, candidates)
    chosen = largest_of_rows(values, k)
    return values.gather(1, chosen), candidates.gather(1, chosen)


def share_of_ties(tied: Tensor, above: Tensor, topk: int) -> Tensor:
    """The part of each class at the border: places left for it over classes that want one."""
    return (topk - above) / tied.clamp(min=1)


class MapPenalty:
    """Both passes over maps, (N, C, P), classes before pixels."""

    def __init__(self, logits: Tensor, options: ADROptions) -> None:
        self.options = options
        self.dtype, self.on_cpu = compute_dtype(logits), logits.device.type == 'cpu'
        self.num_images, self.num_classes, self.num_pixels = logits.shape
        self.threads = torch.get_num_threads() if self.on_cpu else 1
        pixels = self.num_images * self.num_pixels
        size = min(CPU_BLOCK, max(-(-pixels // self.threads), CPU_ROWS_BLOCK)) if self.on_cpu else GPU_BLOCK
        self.size = max(min(size, pixels), 1)
        self.rows_block = min(CPU_ROWS_BLOCK, self.size) if self.on_cpu else self.size

    def for_each(self, make_worker: Callable[[], Callable[[Piece], None]]) -> None:
        """Hand out the blocks."""
        for_each(list(blocks(self.num_images, self.num_pixels, self.size)), make_worker, self.threads)

    def buffers(self, like: Tensor, count: int) -> list[Tensor]:
        """Space for one part of a block each."""
        return list(like.new_empty(count, self.num_classes, self.rows_block, dtype=self.dtype).unbind(0))

    def summarize(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """First pass: uncertainty and T of each pixel, (N, P)."""
        summary = logits.new_empty(len(Pixels._fields), self.num_images, self.num_pixels, dtype=self.dtype)

        def make_worker() -> Callable[[Piece], None]:
            buffers = self.buffers(logits, 2)

            def worker(piece: Piece) -> None:
                columns = columns_of(logits, piece, self.dtype)
                rows = columns.new_empty(len(summary), columns.shape[1])
                self.summarize_block(columns, Pixels(*rows.unbind(0)), buffers)
                summary[:, piece[0], piece[1]] = rows.view(len(rows), -1, piece[1].stop - piece[1].start)

            return worker

        self.for_each(make_worker)
        self.pixels = Pixels(*summary.unbind(0))
        return self.pixels.uncertainty, self.pixels.confidence

    def summarize_block(self, logits: Tensor, out: Pixels, buffers: list[Tensor]) -> None:
        """:class:`Pixels` of the columns (C, n) of one block, into rows (n,)."""
        topk, norm, everything = self.options.topk, self.options.norm, self.options.topk == self.num_classes
        if everything or topk == 1:
            top = [torch.amax(logits, dim=0)]
        else:
            top = top_rows(logits, topk) if topk <= MAX_INSERTION else list(logits.topk(topk, dim=0).values.unbind(0))
        out.largest.copy_(top[0])
        out.border.copy_(top[-1])
        out.above.copy_(sum(row > top[-1] for row in top))
        for part in parts(logits.shape[1], self.rows_block):
            shifted, other = (buffer[:, :part.stop - part.start] for buffer in buffers)
            torch.sub(logits[:, part], out.largest[part], out=shifted)
            if not self.on_cpu:
                shifted.clamp_(min=MIN_LOG_PROB)
            out.uncertainty[part], total = self.uncertainty_of(shifted, other)
            if self.on_cpu and bool(out.uncertainty[part].isnan().any()):  # 0 times -inf, of an overflow
                torch.sub(logits[:, part], out.largest[part], out=shifted).clamp_(min=MIN_LOG_PROB)
                out.uncertainty[part], total = self.uncertainty_of(shifted, other)
            torch.log(total, out=out.log_sum[part])
            if everything:
                powers = torch.ones_like(total) if norm == 1 else (shifted * 2).exp_().sum(dim=0) / total.square()
                out.confidence[part] = powers
        if not everything:
            log_probs = (row - out.largest - out.log_sum for row in top)
            out.confidence.copy_(sum(torch.exp(row * norm) for row in log_probs))

    def uncertainty_of(self, shifted: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        """Uncertainty of columns z - max(z), and the sums of their exponentials. ``other`` is overwritten."""
        torch.exp(shifted, out=other)
        total = other.sum(dim=0)
        if self.options.uncertainty == 'entropy':
            weighted = other.mul_(shifted).sum(dim=0)
            return (total.log() - weighted / total) / math.log(self.num_classes), total
        # Sum of y (1 - y); 1 - y^2 would cancel where one class is sure.
        weighted = (total - other).mul_(other).sum(dim=0)
        return weighted / total.square() * (self.num_classes / (self.num_classes - 1)), total

    def gradient(self, logits: Tensor, slope_confidence: Tensor, slope_uncertainty: Tensor, valid: Tensor | None,
                 bound: Tensor | None) -> Tensor:
        """Second pass: the gradient to the logits.

        Args:
            logits: As before.
            slope_confidence: Gradient to T, (N, P).
            slope_uncertainty: Gradient to the uncertainty of each pixel, (N, P), or one number for all of them.
            valid: Pixels with a gradient, bool, (N, P), or None for all.
            bound: The result is cut at plus and minus this.
        """
        gradient = torch.empty_like(logits, memory_format=torch.contiguous_format)
        rows = torch.stack([*self.pixels, slope_confidence, slope_uncertainty.expand_as(slope_confidence)])

        def make_worker() -> Callable[[Piece], None]:
            buffers = self.buffers(logits, 3)

            def worker(piece: Piece) -> None:
                columns = columns_of(logits, piece, self.dtype)
                images = piece[0].stop - piece[0].start
                # One image is written in place; several lie class by class in the block, image by image in memory.
                target = gradient[piece[0].start, :, piece[1]] if images == 1 else columns.new_empty(columns.shape)
                *pixels, alpha, beta = rows[:, piece[0], piece[1]].reshape(len(rows), -1).unbind(0)
                self.gradient_block(columns, Pixels(*pixels), alpha, beta, target, buffers, bound)
                if valid is not None:
                    invalid = ~valid[piece].reshape(-1)
                    if is_any(invalid):
                        target.masked_fill_(invalid, 0)  # not a product: padding may hold anything, NaN too
                if images > 1:
                    gradient[piece[0]].copy_(target.unflatten(1, (images, -1)).transpose(0, 1))

            return worker

        self.for_each(make_worker)
        return gradient

    def gradient_block(self, logits: Tensor, pixels: Pixels, alpha: Tensor, beta: Tensor, target: Tensor,
                       buffers: list[Tensor], bound: Tensor | None) -> None:
        """Gradient of the columns (C, n) of one block, into ``target``."""
        options = self.options
        constant, beta = gradient_terms(pixels.uncertainty, pixels.confidence, alpha, beta, options, self.num_classes)
        # The logarithm of a probability in one operation, where neither rounding nor overflow forbids it.
        simple = self.on_cpu and bool((pixels.largest.abs().amax() < LARGE_LOGIT) & (beta.abs().amax() <= 1))
        log_total = pixels.largest + pixels.log_sum
        for part in parts(logits.shape[1], self.rows_block):
            z, border, above = logits[:, part], pixels.border[part], pixels.above[part]
            log_probs, probs, result = (buffer[:, :part.stop - part.start] for buffer in buffers)
            if simple:
                torch.sub(z, log_total[part], out=log_probs)
            else:
                torch.sub(z, pixels.largest[part], out=log_probs).clamp_(min=MIN_LOG_PROB).sub_(pixels.log_sum[part])
            torch.exp(log_probs, out=probs)
            basis = log_probs if options.uncertainty == 'entropy' else probs
            torch.addcmul(constant[part], basis, beta[part], out=result)
            factor = alpha[part] * options.norm
            if options.topk == self.num_classes:
                result += factor * probs if options.norm == 2 else factor
            else:
                mask = torch.ge(z, border, out=log_probs)  # as floats: comparisons that make booleans are slow
                count = mask.sum(dim=0)
                if is_any(count != options.topk):
                    mask -= (1 - share_of_ties(count - above, above, options.topk)) * (z == border)
                mask *= factor
                if options.norm == 2:
                    result.addcmul_(mask, probs)
                else:
                    result += mask
            if bound is None:
                torch.mul(result, probs, out=target[:, part]) if target.dtype == probs.dtype else target[:, part].copy_(
                    result.mul_(probs))
            else:
                target[:, part] = result.mul_(probs).clamp_(-bound, bound)


def gradient_terms(uncertainty: Tensor, confidence: Tensor, alpha: Tensor, beta: Tensor, options: ADROptions,
                   num_classes: int) -> tuple[Tensor, Tensor]:
    r"""What the gradient of a pixel has in common for all classes.

    The gradient to a logit is :math:`y_j (c + b q_j + a\, t_j)`: a is the derivative of the loss to T, t that of T to y
    (2 y or 1 for the top classes and 0 for the others), b that of the loss to the uncertainty, scaled, and q is log y
    (entropy) or y (variance).

    Args:
        uncertainty: (n,).
        confidence: T, same shape.
        alpha: a.
        beta: b, not scaled.
        options: Which uncertainty and norm.
        num_classes: C.

    Returns:
        c and b.
    """
    if options.uncertainty == 'entropy':
        mean = uncertainty * -math.log(num_classes)
    else:
        mean = 1 - uncertainty * ((num_classes - 1) / num_classes)
    beta = beta * uncertainty_scale(options, num_classes)
    return -(beta * mean) - options.norm * alpha * confidence, beta


class RowPenalty:
    """Both passes over samples, (N, C), in few operations on all of them.

    The gradient of the uncertainty is a product of the softmax's Jacobian, which is one operation, and the entropy
    follows from its entry of the largest class, where the shifted logit is 0.
    """

    def __init__(self, logits: Tensor, options: ADROptions) -> None:
        self.options, self.num_classes, self.on_cpu = options, logits.shape[1], logits.device.type == 'cpu'
        self.top = self.border = self.above = None

    def summarize(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """First pass: uncertainty and T of each sample, (N,)."""
        z = logits.to(compute_dtype(logits))
        self.probs = torch.softmax(z, dim=1)
        if self.options.topk < self.num_classes:
            largest, likely = self.find_top(z)
            top = self.top
        else:
            largest, likely = z.max(dim=1, keepdim=True)
            top = self.probs
        self.confidence = (top * top if self.options.norm == 2 else top).sum(dim=1)
        if self.options.uncertainty == 'variance':
            # Sum of y (1 - y); 1 - y^2 would cancel where one class is sure.
            uncertainty = (1 - self.probs).mul_(self.probs).sum(dim=1) * (self.num_classes / (self.num_classes - 1))
            self.direction = softmax_jacobian(self.probs, self.probs)
        else:
            uncertainty = self.entropy(z - largest, likely) * (1 / math.log(self.num_classes))
        return uncertainty, self.confidence

    def find_top(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The top classes: their positions, or, with ties at the border, the border. Returns the largest, (N, 1)."""
        topk = self.options.topk
        # One more than wanted shows whether there are ties.
        values, index = top_of_rows(z, topk + 1)
        self.top_index = index[:, :topk]
        border = values[:, topk - 1:topk]
        if is_any(values[:, topk:] == border):
            self.border, self.above = border, (values > border).sum(dim=1, keepdim=True)
        self.top = self.probs.gather(1, self.top_index)
        return values[:, :1], index[:, :1]

    def entropy(self, shifted: Tensor, likely: Tensor) -> Tensor:
        """Entropy of each sample in nats, (N,), and its gradient to the logits, but for the sign.

        Args:
            shifted: Logits less the largest, (N, C); may be overwritten.
            likely: Position of the largest, (N, 1).
        """
        if not self.on_cpu:
            shifted.clamp_(min=MIN_LOG_PROB)
        self.direction = softmax_jacobian(shifted, self.probs)
        prob = self.probs.gather(1, likely)
        entropy = self.direction.gather(1, likely).div_(prob).sub_(prob.log()).squeeze(1)
        if self.on_cpu and bool(entropy.isnan().any()):  # 0 times -inf, of an overflow
            self.direction = softmax_jacobian(shifted.clamp_(min=MIN_LOG_PROB), self.probs)
            entropy = self.direction.gather(1, likely).div_(prob).sub_(prob.log()).squeeze(1)
        return entropy

    def gradient(self, logits: Tensor, slope_confidence: Tensor, slope_uncertainty: Tensor, valid: Tensor | None,
                 bound: Tensor | None) -> Tensor:
        """Second pass, as in :class:`MapPenalty`."""
        options, probs = self.options, self.probs
        scale = uncertainty_scale(options, self.num_classes)
        result = self.direction * (slope_uncertainty * scale).unsqueeze(-1)
        factor = options.norm * slope_confidence
        # The gradient of T is y_j (t_j - sum of y t), t that of T to y: 2 y or 1 for the top classes and 0 for others.
        result.addcmul_(probs, (factor * self.confidence).neg_().unsqueeze(1))
        factor = factor.unsqueeze(1)
        if self.top is None:
            result.addcmul_(probs, factor * probs if options.norm == 2 else factor)
        elif self.border is None:
            result.scatter_add_(1, self.top_index, factor * (self.top * self.top if options.norm == 2 else self.top))
        else:
            z = logits.to(probs.dtype)
            tied = z == self.border
            share = share_of_ties(tied.sum(dim=1, keepdim=True), self.above, options.topk)
            mask = ((z > self.border) + tied * share) * factor
            result.addcmul_(probs, mask * probs if options.norm == 2 else mask)
        if bound is not None:
            result.clamp_(-bound, bound)
        if valid is not None:
            result.masked_fill_(~valid.unsqueeze(1), 0)
        return result.to(logits.dtype)


def softmax_jacobian(vectors: Tensor, probs: Tensor) -> Tensor:
    """Product of the softmax's Jacobian and a vector, y (v - sum of y v), for each row: one pass, autograd's own."""
    return torch._softmax_backward_data(vectors, probs, 1, probs.dtype)


def uncertainty_scale(options: ADROptions, num_classes: int) -> float:
    """The gradient of the uncertainty to a logit is this times y_j (q_j - sum of y q), q being log y or y."""
    return -1 / math.log(num_classes) if options.uncertainty == 'entropy' else -2 * num_classes / (num_classes - 1)


class FusedADR(torch.autograd.Function):
    """The reduced penalty, whose gradient is in closed form."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, weight: Tensor | None, valid: Tensor | None, options: ADROptions,
                denominator: Tensor | float | None, share: bool, loss_scale: float,
                reduce: Reduce | None) -> tuple[Tensor, Tensor, Tensor]:
        """See :func:`adr_loss`.

        Args:
            ctx: Of autograd.
            logits: (N, C) or (N, C, P).
            weight: (N,) or (N, P), or None.
            valid: Same shape, or None.
            options: Of the penalty.
            denominator: What the sum is divided by; None for the loss of each pixel.
            share: Whether the denominator is the number of valid pixels, so that the processes have one in common.
            loss_scale: Factor.
            reduce: Sum over the processes, or None.

        Returns:
            Loss, F of each pixel, phi.
        """
        passes = RowPenalty(logits, options) if logits.dim() == 2 else MapPenalty(logits, options)
        uncertainty, confidence = passes.summarize(logits)
        count: Tensor | float = max(uncertainty.numel(), 1) if valid is None else valid.sum().to(uncertainty.dtype)
        is_batch = options.phi == 'batch'
        if is_batch:
            phi = (uncertainty if valid is None else uncertainty.masked_fill(~valid, 0)).sum()
        if reduce is not None and (is_batch or (share and valid is not None)):
            own = torch.as_tensor(uncertainty.numel() if valid is None else count, dtype=uncertainty.dtype,
                                  device=logits.device)
            phi_sum = phi if is_batch else torch.zeros_like(own)
            phi_sum, count, processes = reduce(torch.stack([phi_sum, own, torch.ones_like(own)])).unbind(0)
            if is_batch:
                phi = phi_sum
            if share:
                denominator = (count / processes).clamp(min=torch.finfo(count.dtype).eps)
        if isinstance(count, Tensor):
            count = count.clamp(min=1)
        phi = phi / count if is_batch else uncertainty
        safe = phi.clamp(min=MIN_PHI)
        peak = (safe * (2 * math.pi)).log_().mul_(-0.5 * options.topk)
        log_penalty = torch.addcdiv(peak, confidence, safe, value=-0.5)
        penalty = log_penalty.clamp(max=options.max_log_penalty).exp_()

        factor = loss_scale if denominator is None else loss_scale / denominator
        loss = penalty if weight is None else penalty * weight
        if valid is not None:
            loss = loss.masked_fill(~valid, 0)
        loss = (loss if denominator is None else loss.sum()) * factor
        # The logits are an input, which costs no memory; changing them or an output before backward is an error of
        # autograd's.
        ctx.save_for_backward(logits, penalty, phi)
        ctx.state = passes, confidence, weight, valid, log_penalty, count, factor
        ctx.options, ctx.reduce = options, reduce
        ctx.mark_non_differentiable(penalty, phi)
        return loss, penalty, phi

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        """From the gradient to the loss, that to the logits."""
        if torch.is_grad_enabled():  # only under create_graph=True; its second derivative would silently be 0
            raise RuntimeError('adr_loss can not be differentiated twice (create_graph=True): its gradient is a closed '
                               'form without a graph; mmssl.functional.adr.adr_penalty can')
        logits, penalty, phi = ctx.saved_tensors
        passes, confidence, weight, valid, log_penalty, count, factor = ctx.state
        options: ADROptions = ctx.options
        grad = grad * factor if weight is None else grad * factor * weight
        # From here on, F times the gradient to it; 0 where F is cut, so that it is constant.
        change = penalty.masked_fill(log_penalty > options.max_log_penalty, 0) * grad
        if valid is not None:
            change.masked_fill_(~valid, 0)
            confidence = confidence.masked_fill(~valid, 0)
        safe = phi.clamp(min=MIN_PHI)
        to_confidence = (change / safe).mul_(-0.5)
        if options.detach_phi:
            to_uncertainty = torch.zeros_like(phi)
        else:
            # F (T / (2 phi) - tau / 2) / phi, of each sample, or of all of them
            is_batch = options.phi == 'batch'
            share, force = ((change * confidence).sum(), change.sum()) if is_batch else (change * confidence, change)
            slope = torch.add((share / safe).mul_(0.5), force, alpha=-0.5 * options.topk).div_(safe)
            to_uncertainty = slope.clamp_(-MAX_SLOPE, MAX_SLOPE).masked_fill_(phi <= MIN_PHI, 0)
            if is_batch:
                # The mean couples all samples of all processes. Each rank takes the sum of what all ranks have, so that
                # the mean of the ranks' gradients, which DDP takes, is the gradient of one process.
                to_uncertainty = (to_uncertainty if ctx.reduce is None else ctx.reduce(to_uncertainty)) / count
        # Where the penalty explodes, a float16 gradient could be infinite. Cut relative to the incoming gradient, so
        # that a loss scaler still sees the overflow that its own factor makes.
        bound = grad.abs().max() * torch.finfo(torch.float16).max if logits.dtype == torch.float16 else None
        return passes.gradient(logits, to_confidence, to_uncertainty, valid, bound), *[None] * 7


def adr_loss(logits: Tensor,
             *,
             topk: int = DEFAULT_TOPK,
             uncertainty: str = 'entropy',
             phi: str = 'batch',
             norm: int = 2,
             detach_phi: bool = False,
             max_log_penalty: float = MAX_LOG_PENALTY,
             weight: Tensor | None = None,
             valid: Tensor | None = None,
             reduction: str = 'mean',
             avg_factor: float | Tensor | None = None,
             loss_scale: float = 1.,
             reduce: Reduce | None = None) -> ADRResult:
    r"""Adaptive discriminative regularization (Eq. 4), reduced.

    .. math:: F_i = (2 \pi \varphi)^{-\tau/2} \exp\Big(-\frac{T_i}{2 \varphi}\Big)

    Computed in float32 (float64 if the input is), also under autocast. The gradient is exact and in closed form; it
    cannot be differentiated again (an error says so). Loss and gradient are finite for all finite logits.

    Args:
        logits: Float, (N, C, *), C >= 2.
        topk: tau, in [1, C].
        uncertainty: ``'entropy'`` or ``'variance'``, see :func:`mmssl.functional.adr.normalized_gini`.
        phi: ``'batch'``: mean uncertainty of the valid pixels (Eq. 4); ``'sample'``: of each pixel itself.
        norm: T is the squared l2 norm (2) or the l1 norm (1) of the tau largest probabilities.
        detach_phi: Whether phi is a constant for the gradient.
        max_log_penalty: F is cut at exp of this, with gradient 0 above; at most 50.
        weight: Factor of each pixel, (N, *); not in phi. No gradient flows to it.
        valid: Pixels that count, bool, (N, *). The others are in no sum or mean, whatever their logits.
        reduction: ``'mean'`` over valid pixels, ``'sum'`` or ``'none'``.
        avg_factor: Replaces the number of valid pixels as the denominator of ``'mean'``.
        loss_scale: Constant factor of the result.
        reduce: Adds a vector over all processes. Then phi is the mean over the batches of all processes, and the
            denominator of ``'mean'`` their mean number of valid pixels, so that the mean of the processes' gradients is
            the gradient of one process with the whole batch. For ``phi='batch'`` it is called once in forward and,
            unless ``detach_phi``, once in backward; for ``'sample'``, once in forward if there is a ``valid``. Every
            process must do the same. None: each process on its own.

    Returns:
        Loss, F and phi. With no valid pixel the loss is exactly 0, attached to the graph.

    Raises:
        ValueError: Fewer than two classes, more ``topk`` than classes, or shapes that do not fit.
    """
    check_logits('adr_loss', logits, weight, valid)
    if topk > logits.shape[1]:
        raise ValueError(f'adr_loss: `topk` must be at most the number of classes, {logits.shape[1]}, got {topk}')
    options = ADROptions(topk, uncertainty, phi, norm, detach_phi, min(max_log_penalty, MAX_LOG_PENALTY))
    dtype, shape = compute_dtype(logits), logits.shape[:1] + logits.shape[2:]
    is_count = reduction == 'mean' and avg_factor is None
    if is_count and valid is None:
        denominator: Tensor | float | None = max(shape.numel(), 1)
    else:
        denominator = mean_denominator(logits, valid, reduction, avg_factor, dtype)
    flat = shape if logits.dim() == 2 else (shape[0], shape[1:].numel())
    weight, valid = (None if tensor is None else tensor.detach().reshape(flat) for tensor in (weight, valid))
    with torch.autocast(device_type=logits.device.type, enabled=False):
        loss, penalty, value = FusedADR.apply(
            logits if logits.dim() == 2 else logits.flatten(2), None if weight is None else weight.to(dtype), valid,
            options, denominator, is_count, loss_scale, reduce)
    return ADRResult(loss.view(shape) if denominator is None else loss, penalty.view(shape),
                     value if value.dim() == 0 else value.view(shape))
