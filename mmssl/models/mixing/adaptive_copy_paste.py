"""Adaptive copy-paste: labeled images receive the pixels of classes that the student is not yet sure of."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mmssl.functional.ael import class_mask, copy_paste_class_probs, numbers_of, pick
from mmssl.models.seeded import SeededModule
from mmssl.registry import MODELS
from mmssl.utils.values import check_number

STREAM = 0xAC9
KEY = 'mmssl.AdaptiveCopyPaste'


@dataclass(frozen=True)
class PastePlan:
    """What one labeled image is to receive.

    Attributes:
        target: Place of the receiving image in the batch of this process.
        donor: Number of the labeled image that gives.
        classes: Classes whose pixels are pasted, some perhaps twice.
        key: Seed, iteration, and place of the receiving image in the batch of all processes, which fix how its donor is
            augmented.
    """

    target: int
    donor: int
    classes: list[int]
    key: tuple[int, int, int]


@MODELS.register_module()
class AdaptiveCopyPaste(SeededModule):
    """Pastes all pixels of a few classes of another labeled image, with their labels, onto a labeled image.

    With probability ``prob`` an image receives pixels. The giving image is any labeled image, loaded by the training
    process, since the classes depend on what was just learned: ``num_draws`` of them, drawn with replacement from the
    target classes with probability ``softmax((1 - Conf)^exponent)``.

    Only for ``mmssl.AELSegmentor``, whose confidence bank it uses. Each choice depends on the seed, the iteration and
    the image's place in the batch of all processes.

    Args:
        prob: In [0, 1].
        num_draws: Classes drawn for an image, >= 1. Released settings: 3 for Cityscapes, 1 for VOC.
        exponent: > 0.
        target_classes: Names or ids of the classes that may be pasted. Default: ``None``, all but those excluded.
        exclude_classes: Names or ids of the classes that may not, in place of ``target_classes``; the background, or
            what fills most images anyway. Default: none.
        pipeline: Transforms of the giving image, from loading to packing with its label, where its range of scales
            shall be another one than in training (released: 0.1 to 2). Default: ``None``, those of the labeled source.
        seed: Seed of the draws. ``None`` takes torch's seed at construction.

    Raises:
        ValueError: If an argument is outside its range.
    """

    def __init__(
        self,
        prob: float = 0.5,
        num_draws: int = 3,
        exponent: float = 0.5,
        target_classes: Sequence[str | int] | None = None,
        exclude_classes: Sequence[str | int] | None = None,
        pipeline: list[dict] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed)
        check_number(prob, f'{KEY}: `prob`', lambda share: 0 <= share <= 1, 'in [0, 1]')
        check_number(num_draws, f'{KEY}: `num_draws`', lambda count: count >= 1, 'an integer >= 1', int)
        check_number(exponent, f'{KEY}: `exponent`', lambda power: 0 < power < float('inf'), 'a finite number > 0')
        if target_classes is not None and exclude_classes is not None:
            raise ValueError(f'{KEY}: give `target_classes` or `exclude_classes`, not both')
        for key, value in (('target_classes', target_classes), ('exclude_classes', exclude_classes)):
            is_list = isinstance(value, Sequence) and not isinstance(value, str)
            kinds = is_list and all(isinstance(item, (str, int)) and not isinstance(item, bool) for item in value)
            if value is not None and not kinds:
                raise ValueError(f'{KEY}: `{key}` must be a list of class names or ids, got {value!r}')
        self.prob, self.num_draws, self.exponent = float(prob), num_draws, float(exponent)
        self.target_classes, self.exclude_classes, self.pipeline = target_classes, exclude_classes, pipeline
        self.class_ids: list[int] | None = None

    def resolve_classes(self, names: Sequence[str] | None, num_classes: int) -> None:
        """Find the ids of the named classes.

        Args:
            names: Classes of the labeled data set, or ``None`` if it states none.
            num_classes: C.

        Raises:
            ValueError: If a name or id does not exist, or no class is left.
        """
        key = 'exclude_classes' if self.target_classes is None else 'target_classes'
        named = self.exclude_classes if self.target_classes is None else self.target_classes
        ids = [_class_id(item, key, names, num_classes) for item in named or []]
        if key == 'exclude_classes':
            ids = [index for index in range(num_classes) if index not in ids]
        if not ids:
            raise ValueError(f'model.semi_train_cfg.copy_paste.{key} leaves no class to paste')
        self.class_ids = sorted(set(ids))

    def plan(self, places: list[int], confidence: Tensor, num_donors: int) -> list[PastePlan]:
        """Choose who receives what in this iteration, and advance the step.

        Args:
            places: Place of each labeled image of this process in the batch of all processes.
            confidence: The confidence bank, (C,).
            num_donors: Labeled images to choose from.
        """
        assert self.class_ids is not None  # resolved when the data was attached
        seed, step = self.next_step()
        probs = copy_paste_class_probs(confidence[self.class_ids].double(), self.exponent).cpu().numpy()
        plans = []
        for target, place in enumerate(places):
            rng = numbers_of(STREAM, seed, step, place)
            if rng.random() >= self.prob:
                continue
            donor = int(rng.random() * num_donors)
            classes = [self.class_ids[pick(probs, rng.random())] for _ in range(self.num_draws)]
            plans.append(PastePlan(target, donor, classes, (seed, step, place)))
        return plans

    def forward(
        self, image: Tensor, label: Tensor, donor: Tensor, donor_label: Tensor, classes: list[int]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Paste onto one image.

        Args:
            image: (3, H, W).
            label: int64, (H, W).
            donor: (3, H, W).
            donor_label: int64, (H, W).
            classes: Classes whose pixels are pasted.

        Returns:
            Image, label, and the mask of the pasted pixels, bool, (H, W).
        """
        mask = class_mask(donor_label, torch.tensor(classes, device=donor_label.device))
        return torch.where(mask, donor, image), torch.where(mask, donor_label, label), mask


def _class_id(item: str | int, key: str, names: Sequence[str] | None, num_classes: int) -> int:
    """Id of one class by name or id."""
    key = f'model.semi_train_cfg.copy_paste.{key}'
    if isinstance(item, int):
        if not 0 <= item < num_classes:
            raise ValueError(f'{key}: there is no class {item}; ids are 0 to {num_classes - 1}')
        return item
    if not names:
        raise ValueError(f'{key} names {item!r}, but the labeled data set states no metainfo.classes; use ids')
    if item not in names:
        raise ValueError(f'{key}: the labeled data set has no class {item!r}; its classes are {list(names)}')
    return list(names).index(item)
