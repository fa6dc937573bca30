"""Adaptive equalization sampling: pixels of classes that are already learned are trained on less often."""

import torch
from torch import Tensor

from mmssl.functional.ael import equalization_mask, numbers_of, sampling_keep_probs
from mmssl.models.seeded import SeededModule
from mmssl.registry import MODELS
from mmssl.utils.values import check_number

STREAM = 0xAE5


@MODELS.register_module()
class EqualizationSampling(SeededModule):
    """Keeps each pixel with probability ``((1 - Conf) / max(1 - Conf))^exponent`` of the class the student sees in it.

    The numbers depend on the seed, the iteration and the image's place in the batch of all processes.

    Args:
        exponent: >= 0; 1 in the released settings.
        seed: Seed of the draws. ``None`` takes torch's seed at construction.

    Raises:
        ValueError: If an argument is outside its range.
    """

    def __init__(self, exponent: float = 1.0, seed: int | None = None) -> None:
        super().__init__(seed)
        check_number(
            exponent,
            'mmssl.EqualizationSampling: `exponent`',
            lambda power: 0 <= power < float('inf'),
            'a finite number >= 0',
        )
        self.exponent = exponent

    @torch.no_grad()
    def forward(self, label: Tensor, confidence: Tensor, places: list[int]) -> Tensor:
        """Choose the pixels of one batch, and advance the step.

        Args:
            label: Classes that the student sees, int64, (N, H, W).
            confidence: The confidence bank, (C,).
            places: Place of each image in the batch of all processes, N numbers.

        Returns:
            Bool, (N, H, W).
        """
        seed, step = self.next_step()
        uniform = torch.empty(label.shape, device=label.device)
        generator = torch.Generator(device=label.device)
        for image, place in zip(uniform, places, strict=True):
            generator.manual_seed(numbers_of(STREAM, seed, step, place).bit_generator.random_raw() >> 1)
            image.uniform_(generator=generator)
        return equalization_mask(label, sampling_keep_probs(confidence, self.exponent), uniform)
