"""CutMix between neighbours of an unlabeled batch, with randomness that a resumed run repeats."""

from collections.abc import Sequence
from typing import Any

import torch
from mmengine.dist import get_dist_info
from torch import Tensor, nn

from mmssl.functional.cutmix import cutmix_masks, mix
from mmssl.registry import MODELS


@MODELS.register_module()
class CutMix(nn.Module):
    """Pairs images ``(0, 1), (2, 3), ...`` of a batch and pastes boxes of the second onto the first.

    The masks depend only on the seed, the number of calls so far and the pair's place in the *global* batch, and a
    resumed run draws the masks that an uninterrupted one would have. Seed and call counter are buffers and thus part of
    the checkpoint. Pairs and masks are the same for any number of processes if each unit of
    ``mmssl.MultiSourceSampler`` holds ``2 * pairs_per_unit`` unlabeled images, as with the published ratio [1, 2]; with
    an odd share, such as [1, 1], which images make a pair depends on the number of processes.

    Args:
        num_boxes: Boxes per mask, >= 1. CPS draws 3.
        area_range: Range of the share of the image that one box would take alone, inside (0, 1]; each box's sides are
            scaled by ``sqrt(1 / num_boxes)``.
        both_ways: Whether the first image is pasted onto the second as well. ``False``, as published, makes ``B / 2``
            mixed images of ``B``; ``True`` makes ``B``.
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
        both_ways: bool = False,
        pairs_per_unit: int = 1,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        if isinstance(num_boxes, bool) or not isinstance(num_boxes, int) or num_boxes < 1:
            raise ValueError(f'mmssl.CutMix: `num_boxes` must be an integer >= 1, got {num_boxes!r}')
        if not _is_range(area_range):
            raise ValueError(
                f'mmssl.CutMix: `area_range` must be two numbers with 0 < low <= high <= 1, got {area_range!r}'
            )
        low, high = area_range
        if not isinstance(both_ways, bool):
            raise ValueError(f'mmssl.CutMix: `both_ways` must be True or False, got {both_ways!r}')
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
            raise ValueError(f'mmssl.CutMix: `seed` must be an integer >= 0 or None, got {seed!r}')
        if isinstance(pairs_per_unit, bool) or not isinstance(pairs_per_unit, int) or pairs_per_unit < 1:
            raise ValueError(f'mmssl.CutMix: `pairs_per_unit` must be an integer >= 1, got {pairs_per_unit!r}')
        self.num_boxes = num_boxes
        self.pairs_per_unit = pairs_per_unit
        self.area_range = (float(low), float(high))
        self.both_ways = both_ways
        seed = torch.initial_seed() if seed is None else seed
        self.register_buffer('seed', torch.tensor(seed % 2**63, dtype=torch.long))
        self.register_buffer('step', torch.zeros((), dtype=torch.long))
        # The host's copies of both, so that no iteration waits for the GPU to read them.
        self._host: tuple[int, int] | None = None

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        self._host = None

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
        rank, world_size = get_dist_info()
        pairs = len(batch) // 2
        # The sampler deals units to the ranks in turn: local unit u is global unit rank + world_size * u.
        units = [(rank + world_size * (i // self.pairs_per_unit), i % self.pairs_per_unit) for i in range(pairs)]
        indices = [unit * self.pairs_per_unit + place for unit, place in units]
        seed, step = self._host or (int(self.seed), int(self.step))
        self._host = (seed, step + 1)
        self.step.fill_(step + 1)
        return cutmix_masks(
            pairs,
            height=batch.shape[-2],
            width=batch.shape[-1],
            seed=seed,
            step=step,
            indices=indices,
            num_boxes=self.num_boxes,
            area_range=self.area_range,
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
        return torch.cat([mixed, mix(second, first, masks)]) if self.both_ways else mixed


def _is_range(value: Any) -> bool:
    """Whether ``value`` is two numbers with 0 < low <= high <= 1; numbers in quotes are none."""
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        return False
    if not all(isinstance(number, (int, float)) for number in value):
        return False
    return 0 < value[0] <= value[1] <= 1
