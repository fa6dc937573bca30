"""Adaptive CutMix: unlabeled images receive regions of classes that the student is not yet sure of."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from mmssl.functional.ael import Box, component_boxes, cutmix_class_probs, numbers_of, pick, random_box
from mmssl.functional.cutmix import mix
from mmssl.models.seeded import SeededModule
from mmssl.registry import MODELS
from mmssl.utils.values import check_choice, check_number

STREAM = 0xACC
DONORS = ('dataset', 'batch')
IMAGES = ('all', 'one')


@dataclass(frozen=True)
class CutMixPlan:
    """What one image is to receive.

    Attributes:
        target: Place of the receiving image in the batch of this process.
        class_id: Class that is looked for.
        key: Seed, iteration, and place of the receiving image in the batch of all processes, which fix how its donor is
            augmented.
        rng: Random numbers of this image, for the choices that follow.
    """

    target: int
    class_id: int
    key: tuple[int, int, int]
    rng: np.random.Generator


@MODELS.register_module()
class AdaptiveCutMix(SeededModule):
    """Pastes, onto unlabeled images, the surroundings of a class that the student is not yet sure of.

    For each image a class is drawn from ``softmax(1 - Conf)``, then a donor among the images in which the teacher last
    saw that class (any image if there is none). A connected component of the class in the teacher's prediction of the
    donor is drawn, and its bounding box is pasted at the same place; without a component that is large enough, a random
    box of half the image.

    Only for ``mmssl.AELSegmentor``, whose confidence bank it uses. Each choice depends on the seed, the iteration and
    the image's place in the batch of all processes, and on banks that are equal on all ranks. One iteration waits for
    the GPU: what to load depends on what was just learned.

    Args:
        component_thresh: Share of the image that a component must exceed, in [0, 1). Released settings: 0.005 for
            Cityscapes, 0.03 for VOC.
        presence_thresh: Share of the image that a class must reach to be counted as present, in (0, 1]. Released
            settings: 0.01 for Cityscapes, 0.03 for VOC.
        donor: ``'dataset'``, as published: any unlabeled image may be the donor. The training process loads it through
            its data set's own pipeline, one for each image that receives. Or ``'batch'``: another unlabeled image of
            the same batch of this process, at no cost for loading, with little choice; then the result depends on the
            number of processes.
        images: ``'all'`` unlabeled images receive a region; or ``'one'``, as in the released code: one of them, drawn
            at random, and the student sees no other.
        seed: Seed of the draws. ``None`` takes torch's seed at construction, which the runner has set from
            ``randomness.seed``.

    Raises:
        ValueError: If an argument is outside its range.
    """

    def __init__(
        self,
        component_thresh: float = 0.005,
        presence_thresh: float = 0.01,
        donor: str = 'dataset',
        images: str = 'all',
        seed: int | None = None,
    ) -> None:
        super().__init__(seed)
        check_number(
            component_thresh,
            'mmssl.AdaptiveCutMix: `component_thresh`',
            lambda share: 0 <= share < 1,
            'a share of the image in [0, 1)',
        )
        check_number(
            presence_thresh,
            'mmssl.AdaptiveCutMix: `presence_thresh`',
            lambda share: 0 < share <= 1,
            'a share of the image in (0, 1]',
        )
        check_choice(donor, DONORS, 'mmssl.AdaptiveCutMix: `donor`')
        check_choice(images, IMAGES, 'mmssl.AdaptiveCutMix: `images`')
        self.component_thresh, self.presence_thresh = float(component_thresh), float(presence_thresh)
        self.donor, self.images = donor, images

    def plan(self, places: list[int], confidence: Tensor) -> list[CutMixPlan]:
        """Choose the receiving images of this iteration and the class for each, and advance the step.

        Args:
            places: Place of each unlabeled image of this process in the batch of all processes.
            confidence: The confidence bank, (C,).
        """
        seed, step = self.next_step()
        probs = cutmix_class_probs(confidence.double()).cpu().numpy()
        numbers = [numbers_of(STREAM, seed, step, place) for place in places]
        targets = range(len(places))
        if self.images == 'one':
            targets = [int(numbers[0].random() * len(places))]
        return [
            CutMixPlan(i, pick(probs, numbers[i].random()), (seed, step, places[i]), numbers[i]) for i in targets
        ]

    def choose_donor(self, plan: CutMixPlan, having_class: Sequence[int], others: Sequence[int]) -> int:
        """One of the images that have the class, or of all others if there is none.

        Args:
            plan: Of the receiving image.
            having_class: Images in which the class was seen.
            others: Images to choose from otherwise, not empty.
        """
        images = having_class or others
        return images[int(plan.rng.random() * len(images))]

    def box(self, plan: CutMixPlan, label: np.ndarray) -> tuple[Box, bool]:
        """The region that is pasted.

        Args:
            plan: Of the receiving image.
            label: The teacher's prediction of the donor, integers, (H, W).

        Returns:
            The box, and whether it is that of a component of the class.
        """
        height, width = label.shape
        boxes = component_boxes(label == plan.class_id, self.component_thresh * height * width)
        choice = plan.rng.random()
        if boxes:
            return boxes[int(choice * len(boxes))], True
        return random_box(height, width, plan.rng), False

    def forward(self, target: Tensor, donor: Tensor, masks: Tensor) -> Tensor:
        """Paste; for images, logits and label maps alike.

        Args:
            target: Receiving images, (N, *, H, W); any dtype.
            donor: (N, *, H, W).
            masks: True where the donor shows, bool, (N, 1, H, W).

        Returns:
            Shape and dtype of ``target``.
        """
        return mix(target, donor, masks)
