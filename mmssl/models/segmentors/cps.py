"""Cross pseudo supervision: two students that teach each other on unlabeled images."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

import torch
from mmseg.structures import SegDataSample
from torch import Tensor

from mmssl.models.layerwise import SeenLayer
from mmssl.models.semi_base import (
    check_choice,
    check_node,
    check_pseudo_label_loss,
    eval_mode,
    get_branch,
    prefixed,
    zero_loss,
)
from mmssl.registry import MODELS

from .base import SemiBaseSegmentor, UnsupervisedRecord
from .consistency import check_mixing, join_pixels, valid_arguments


@MODELS.register_module()
class CrossPseudoSupervision(SemiBaseSegmentor):
    r"""CPS (Chen et al., CVPR 2021), and with ``unsup_loss=dict(type='mmssl.FPLLoss')`` FPL on it (Qiao et al., 2023).

    Two differently initialised students :math:`f_1, f_2` of one architecture. With supervised losses
    :math:`L^{sup}_k`, the pixel-wise unsupervised loss :math:`\ell` and detached targets,

    .. math:: L = w_s (L^{sup}_1 + L^{sup}_2) + \lambda [\ell(f_1(x), f_2(x)) + \ell(f_2(x), f_1(x))].

    Without ``mix``, :math:`x` are all images of the batch or the unlabeled ones (``unsup_on``) and the targets come
    from the very forward that is trained. With ``mix``, :math:`x` are mixed unlabeled images and the targets are the
    equally mixed logits of the unmixed images, from a forward without gradient.

    BatchNorm: each student sees the labeled batch and the unlabeled (mixed) batch in separate forwards, and with
    ``mix`` and ``pseudo_label_mode='train'`` the unmixed unlabeled images as well, which move its running statistics.

    ``semi_train_cfg`` takes

    - ``sup_weight``: :math:`w_s` >= 0. Default 1.
    - ``unsup_weight``: :math:`\lambda` >= 0. Default 1.
    - ``unsup_begin``: iterations >= 0 of supervised training before the unsupervised loss starts; until then the
      unlabeled images are not even forwarded. Default 0, as published, for students that start from pre-trained
      weights. Students that start from random ones first teach each other noise: let them learn from labels until their
      validation says that there is something to teach.
    - ``unsup_ramp``: iterations >= 0 over which the weight then rises linearly. Default 0, as published.
    - ``unsup_loss``: a loss with ``forward(logits, target_logits, weight, valid, avg_factor)`` that returns a mean over
      pixels; what it leaves in ``statistics``, if anything, is logged. Default ``mmssl.HardPseudoLabelLoss``, which is
      CPS.
    - ``mix``: ``None`` or ``dict(type='mmssl.CutMix')``. Default ``None``.
    - ``unsup_on``: ``'all'`` (labeled images, never mixed, and unlabeled ones, one mean over all pixels) or
      ``'unlabeled'``. Default, as published: ``'all'`` without ``mix``, ``'unlabeled'`` with it.
    - ``pseudo_label_mode``: ``'train'`` or ``'eval'``, the mode of the students while they make pseudo labels. Default
      ``'train'``, as published: labels come from batch statistics and with dropout on. ``'eval'`` costs one more
      forward where ``mix`` is ``None``.
    - ``ignore_padding``: whether padded pixels of unlabeled images are left out of the unsupervised loss. Default
      ``False``, as published.

    Args:
        segmentor: Config of a stock mmseg segmentor.
        data_preprocessor: See :class:`SemiBaseSegmentor`.
        semi_train_cfg: See above.
        semi_test_cfg: ``predict_on`` is ``'student1'`` (default, as published), ``'student2'`` or ``'ensemble'``.
        init_cfg: As in mmengine.
    """

    MODELS_HELD: ClassVar[tuple[str, ...]] = ('student1', 'student2')
    TRAIN_DEFAULTS: ClassVar[dict[str, Any]] = dict(
        SemiBaseSegmentor.TRAIN_DEFAULTS,
        unsup_loss=dict(type='mmssl.HardPseudoLabelLoss'),
        mix=None,
        unsup_on=None,
        pseudo_label_mode='train',
    )

    def __init__(
        self,
        segmentor: dict,
        data_preprocessor: dict | None = None,
        semi_train_cfg: dict | None = None,
        semi_test_cfg: dict | None = None,
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        super().__init__(segmentor, data_preprocessor, semi_train_cfg, semi_test_cfg, init_cfg)
        cfg = self.semi_train_cfg
        if cfg['unsup_on'] is None:
            cfg['unsup_on'] = 'all' if cfg['mix'] is None else 'unlabeled'
        check_choice(cfg['unsup_on'], ('all', 'unlabeled'), 'semi_train_cfg.unsup_on')
        check_choice(cfg['pseudo_label_mode'], ('train', 'eval'), 'semi_train_cfg.pseudo_label_mode')
        check_node(cfg['unsup_loss'], 'semi_train_cfg.unsup_loss')
        check_node(cfg['mix'], 'semi_train_cfg.mix', optional=True)
        self.unsup_loss = MODELS.build(cfg['unsup_loss'])
        check_pseudo_label_loss(self.unsup_loss)
        self.mix = None if cfg['mix'] is None else MODELS.build(cfg['mix'])
        check_mixing(self.mix)

    def loss(self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]) -> dict[str, Any]:
        """Losses and statistics of one batch.

        Args:
            inputs: Branches ``sup`` and ``unsup_weak``, each normalized images of shape (N, 3, H, W).
            data_samples: The same branches; ``sup`` with ``gt_sem_seg``.

        Returns:
            ``sup_student{1,2}.*``, ``unsup_loss`` and, with ``mmssl.EMAHeadHook``, ``unsup_avg_loss``, which add up to
            the total, and statistics ``unsup_*``.

        Raises:
            ValueError: If a branch is missing from the batch or the batch cannot be mixed.
        """
        self.warn_if_same('student1', 'student2')
        labeled, unlabeled = get_branch(inputs, 'sup'), get_branch(inputs, 'unsup_weak')
        labeled_samples, unlabeled_samples = get_branch(data_samples, 'sup'), get_branch(data_samples, 'unsup_weak')
        weight = self.next_unsup_weight()
        on_labeled = weight > 0 and self.semi_train_cfg['unsup_on'] == 'all'

        losses: dict[str, Any] = {}
        logits: list[list[Tensor]] = [[], []]
        seen: list[list[SeenLayer]] = [[], []]
        for index, (name, student) in enumerate(zip(self.MODELS_HELD, self.models_held, strict=True)):
            sup_losses, sup_logits, sup_seen = self.supervised_loss(
                student, labeled, labeled_samples, with_logits=on_labeled
            )
            losses.update(self.named_supervised_losses(sup_losses, name))
            if on_labeled:
                logits[index].append(sup_logits)
                seen[index].extend(sup_seen)

        if weight == 0:
            # Attached to the graph: no rank may find a loss missing.
            losses['unsup_loss'] = zero_loss(losses)
            return losses

        images, valid, truth = unlabeled, self.valid_mask(unlabeled_samples, unlabeled), None
        if self.recording:
            truth = self.hidden_truth(unlabeled_samples)
        if self.mix is None:
            targets = None if self.semi_train_cfg['pseudo_label_mode'] == 'train' else self.pseudo_logits(unlabeled)
        else:
            masks = self.mix.sample(unlabeled)
            targets = [self.mix(target, masks) for target in self.pseudo_logits(unlabeled)]
            images = self.mix(unlabeled, masks)
            valid = None if valid is None else self.mix(valid[:, None], masks)[:, 0]
            truth = None if truth is None else self.mix(truth[:, None], masks)[:, 0]
        for index, student in enumerate(self.models_held):
            own_logits, own_seen = self.segment_unlabeled(student, images)
            logits[index].append(own_logits)
            seen[index].extend(own_seen)
        if targets is None:
            # The forward that is trained makes the labels too: no second pass, as published without mixing.
            target_parts = [[part.detach() for part in parts] for parts in logits]
        else:
            target_parts = [[target] for target in targets]
            if on_labeled:
                labeled_targets = (
                    [parts[0].detach() for parts in logits]
                    if self.semi_train_cfg['pseudo_label_mode'] == 'train'
                    else self.pseudo_logits(labeled)
                )
                target_parts = [[labeled_targets[index], *parts] for index, parts in enumerate(target_parts)]
        self.watch_pseudo_labels(labeled_samples, [parts[-1] for parts in target_parts], valid)
        all_valid = valid
        if on_labeled and valid is not None:
            all_valid = join_pixels([self.valid_mask(labeled_samples, labeled), valid])

        # One call over both directions, so that a loss that balances itself against cross entropy does it with one
        # ratio for both, as FPL's released code. The mean over both halves is doubled to the sum of the two terms.
        target_logits = torch.cat([join_pixels(parts) for parts in target_parts][::-1])
        arguments = {} if all_valid is None else valid_arguments(torch.cat([all_valid, all_valid]))

        def both_ways(logits: Sequence[Sequence[Tensor]]) -> Tensor:
            return 2 * self.unsup_loss(torch.cat([join_pixels(parts) for parts in logits]), target_logits, **arguments)

        losses['unsup_loss'] = weight * both_ways(logits)
        losses.update(prefixed(getattr(self.unsup_loss, 'statistics', {}), 'unsup_'))
        if self.average_head is not None:
            batches = [labeled, images] if on_labeled else [images]

            def average(*outputs: Tensor) -> Tensor:
                halves = outputs[: len(batches)], outputs[len(batches) :]
                return both_ways([[self.resized(*pair) for pair in zip(half, batches, strict=True)] for half in halves])

            ramp = weight / self.semi_train_cfg['unsup_weight']
            losses['unsup_avg_loss'] = self.average_loss([*seen[0], *seen[1]], average, ramp)
        if self.recording:
            self.record = UnsupervisedRecord(
                inputs=images.detach(),
                logits=logits[0][-1].detach(),
                target_logits=target_parts[1][-1],
                truth=truth,
                valid=valid,
                ignore_index=self.ignore_index,
            )
        return losses

    @torch.no_grad()
    def pseudo_logits(self, inputs: Tensor) -> list[Tensor]:
        """Logits of each student without gradient, in the mode of ``pseudo_label_mode``.

        Args:
            inputs: Normalized images, shape (N, 3, H, W).

        Returns:
            Two tensors of shape (N, C, H, W), of student 1 and student 2.
        """
        # In train mode the students stay as training has them: what the user froze in eval mode stays frozen.
        context = eval_mode if self.semi_train_cfg['pseudo_label_mode'] == 'eval' else nullcontext
        targets = []
        for student in self.models_held:
            with context(student):
                targets.append(self.segment(student, inputs))
        return targets
