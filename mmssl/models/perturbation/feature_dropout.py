"""Channel dropout on the features of an encoder, with randomness that a resumed run repeats."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from mmssl.models.seeded import SeededModule, check_per_unit, global_indices
from mmssl.registry import MODELS

# Keeps these draws apart from other streams that are seeded from the same numbers.
STREAM = 0xFD0


@MODELS.register_module()
class FeatureDropout(SeededModule):
    """UniMatch's feature perturbation (Yang et al., CVPR 2023): whole channels of every feature map become 0.

    Each channel of each image is dropped with probability p, and what is left is divided by 1 - p. What is dropped
    depends only on the seed, the number of calls so far, and the image's place in the global batch; it is the same for
    any number of processes if ``images_per_unit`` fits the sampler. It drops in eval mode too, being part of a loss.

    Args:
        drop_prob: p, in (0, 1). UniMatch has 0.5.
        images_per_unit: The unlabeled images' share in ``train_dataloader.sampler.source_ratio``, >= 1.
        seed: Seed of the draws. ``None`` takes torch's seed at construction, which the runner has set from
            ``randomness.seed``.

    Raises:
        ValueError: If an argument is outside its range.
    """

    def __init__(self, drop_prob: float = 0.5, images_per_unit: int = 1, seed: int | None = None) -> None:
        super().__init__(seed)
        if isinstance(drop_prob, bool) or not isinstance(drop_prob, (int, float)) or not 0 < drop_prob < 1:
            raise ValueError(f'mmssl.FeatureDropout: `drop_prob` must be in (0, 1), got {drop_prob!r}')
        check_per_unit(images_per_unit, 'mmssl.FeatureDropout', 'images_per_unit')
        self.drop_prob = float(drop_prob)
        self.images_per_unit = images_per_unit

    def forward(self, features: Any) -> Any:
        """Perturb the features of one batch and advance the counter.

        Args:
            features: A tensor of shape (N, C, *), or a list or tuple of such.

        Returns:
            The same, of the same kind.

        Raises:
            ValueError: If a feature is no tensor with channels.
        """
        seed, step = self.next_step()
        if isinstance(features, Tensor):
            return self._drop(features, seed, step, 0)
        if not isinstance(features, (list, tuple)) or not all(isinstance(part, Tensor) for part in features):
            raise ValueError(
                'semi_train_cfg.feature_perturbation: mmssl.FeatureDropout needs an encoder (model.segmentor.backbone) '
                f'that returns feature maps, got {type(features).__name__}'
            )
        return type(features)([self._drop(part, seed, step, level) for level, part in enumerate(features)])

    def _drop(self, feature: Tensor, seed: int, step: int, level: int) -> Tensor:
        count, channels = feature.shape[:2]
        kept = np.empty((count, channels), dtype=bool)
        for row, index in zip(kept, global_indices(count, self.images_per_unit), strict=True):
            sequence = np.random.SeedSequence((STREAM, seed, step, index, level))
            row[:] = np.random.Generator(np.random.Philox(sequence)).random(channels) >= self.drop_prob
        factor = torch.from_numpy(kept).to(feature.device, non_blocking=True).to(feature.dtype) / (1 - self.drop_prob)
        return feature * factor.view(count, channels, *[1] * (feature.dim() - 2))
