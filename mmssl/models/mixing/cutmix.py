"""CutMix between neighbours of an unlabeled batch, with randomness that a resumed run repeats."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mmssl.functional.cutmix import cutmix_masks, mix
from mmssl.models.seeded import SeededModule, check_per_unit, global_indices
from mmssl.registry import MODELS


@MODELS.register_module()
class CutMix(SeededModule):
    """Pairs images ``(0, 1), (2, 3), ...`` of a batch and pastes boxes of the second onto the first.

    The masks depend only on the seed, the number of calls so far and the pair's place in the *global* batch, and a
    resumed run draws the masks that an uninterrupted one would have. Seed and call counter are buffers and thus part of
    the checkpoint. Pairs and masks are the same for any number of processes if each unit of
    ``mmssl.MultiSourceSampler`` holds ``2 * pairs_per_unit`` unlabeled images, as with the published ratio [1, 2]; with
    an odd share, such as [1, 1], which images make a pair depends on the number of processes.

    Args:
        num_boxes: Boxes per mask, >= 1. CPS draws 3.
        area_range: Range of the share of the image that one box would take alone, inside (0, 1]; each box's sides are
            scaled by ``sqrt(1 / num_boxes)``. CPS draws from (0.25, 0.5), UniMatch from (0.02, 0.4).
        aspect_range: ``None``: height shares as in CPS. Otherwise the range of height over width of a box, > 0, which
            is then placed as in UniMatch, whose range is (0.3, 10 / 3).
        prob: Probability that a pair is mixed at all, in (0, 1]. 1 in CPS, 0.5 in UniMatch.
        both_ways: Whether the first image is pasted onto the second as well. ``False``, as published, makes ``B / 2``
            mixed images of ``B``; ``True`` makes ``B``, in order, by an exchange of the same boxes.
        pairs_per_unit: Half of the unlabeled images' share in ``train_dataloader.sampler.source_ratio``, >= 1.
        seed: Seed of the masks. ``None`` takes torch's seed at construction, which the runner has set from
            ``randomness.seed``.

    Raises:
        ValueError: If an argument is outside its range.
    """

    def __init__(
        self,
        num_boxes: int = 3,
        area_range: tuple[float, float] = (0.25, 0.5),
        aspect_range: tuple[float, float] | None = None,
        prob: float = 1.0,
        both_ways: bool = False,
        pairs_per_unit: int = 1,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed)
        if isinstance(num_boxes, bool) or not isinstance(num_boxes, int) or num_boxes < 1:
            raise ValueError(f'mmssl.CutMix: `num_boxes` must be an integer >= 1, got {num_boxes!r}')
        if not _is_range(area_range) or area_range[1] > 1:
            raise ValueError(
                f'mmssl.CutMix: `area_range` must be two numbers with 0 < low <= high <= 1, got {area_range!r}'
            )
        if aspect_range is not None and not _is_range(aspect_range):
            raise ValueError(
                f'mmssl.CutMix: `aspect_range` must be None or two numbers with 0 < low <= high, got {aspect_range!r}'
            )
        if isinstance(prob, bool) or not isinstance(prob, (int, float)) or not 0 < prob <= 1:
            raise ValueError(f'mmssl.CutMix: `prob` must be in (0, 1], got {prob!r}')
        if not isinstance(both_ways, bool):
            raise ValueError(f'mmssl.CutMix: `both_ways` must be True or False, got {both_ways!r}')
        check_per_unit(pairs_per_unit, 'mmssl.CutMix', 'pairs_per_unit')
        self.num_boxes = num_boxes
        self.pairs_per_unit = pairs_per_unit
        self.area_range = (float(area_range[0]), float(area_range[1]))
        self.aspect_range = None if aspect_range is None else (float(aspect_range[0]), float(aspect_range[1]))
        self.prob = float(prob)
        self.both_ways = both_ways

    def sample(self, batch: Tensor) -> Tensor:
        """Draw the masks of one batch and advance the counter.

        Args:
            batch: Images, shape (B, *, H, W), B even.

        Returns:
            Bool, shape (B / 2, 1, H, W); True where the second image of the pair shows.

        Raises:
            ValueError: If B is odd or zero.
        """
        if len(batch) < 2 or len(batch) % 2:
            raise ValueError(
                'semi_train_cfg.mix: mmssl.CutMix pairs the unlabeled images of a batch, so their number must be even '
                f'and at least 2, got {len(batch)} per GPU; change train_dataloader.batch_size or '
                'train_dataloader.sampler.source_ratio (the published setting is [1, 2])'
            )
        pairs = len(batch) // 2
        seed, step = self.next_step()
        return cutmix_masks(
            pairs,
            height=batch.shape[-2],
            width=batch.shape[-1],
            seed=seed,
            step=step,
            indices=global_indices(pairs, self.pairs_per_unit),
            num_boxes=self.num_boxes,
            area_range=self.area_range,
            aspect_range=self.aspect_range,
            prob=self.prob,
            device=batch.device,
            dtype=torch.bool,
        )

    def forward(self, batch: Tensor, masks: Tensor) -> Tensor:
        """Mix one tensor of the batch (images, logits or label maps) with masks from :meth:`sample`.

        Args:
            batch: Shape (B, *, H, W); any dtype.
            masks: Shape (B / 2, 1, H, W).

        Returns:
            Shape (B / 2, *, H, W), or (B, *, H, W) with ``both_ways``; dtype of ``batch``.
        """
        first, second = batch[0::2], batch[1::2]
        mixed = mix(first, second, masks)
        if not self.both_ways:
            return mixed
        # In the order of the batch, so that a view mixed both ways is the view with other pixels in some places.
        return torch.stack([mixed, mix(second, first, masks)], dim=1).flatten(0, 1)


def _is_range(value: Any) -> bool:
    """Whether ``value`` is two finite numbers with 0 < low <= high; numbers in quotes are none."""
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        return False
    if not all(isinstance(number, (int, float)) for number in value):
        return False
    return 0 < value[0] <= value[1] < float('inf')
