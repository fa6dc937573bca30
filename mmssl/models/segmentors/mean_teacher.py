"""Mean teacher: a student that learns from the pseudo labels of its moving average; UniMatch by configuration."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from mmseg.structures import SegDataSample
from torch import Tensor, nn

from mmssl.models.ema_teacher import EMATeacher
from mmssl.models.layerwise import SeenLayer
from mmssl.models.semi_base import (
    check_node,
    check_pseudo_label_loss,
    check_weight,
    get_branch,
    prefixed,
    zero_loss,
)
from mmssl.registry import MODELS

from .base import SemiBaseSegmentor, UnsupervisedRecord
from .consistency import check_mixing, check_perturbation, valid_arguments


@dataclass(frozen=True)
class ConsistencyTerm:
    """Images that the student learns from, and what the teacher says about them: one mean in the unsupervised loss.

    Attributes:
        name: The branch that the images are from, or ``'feature'`` for perturbed features.
        share: Factor of its mean, >= 0.
        images: Normalized images that the student sees, shape (N, 3, H, W).
        target_logits: The teacher's logits, shape (N, C, H, W), without gradient.
        valid: False on padding, bool, shape (N, H, W), or ``None`` if padding counts.
        truth: Hidden labels while recording, int64, shape (N, H, W), or ``None``.
        logits: The student's logits, shape (N, C, H, W); ``None`` until the student has seen the images.
        seen: What the student's averaged layer saw in the forward that made them, if there is one.
        place: Place of the term's first image in that forward.
    """

    name: str
    share: float
    images: Tensor
    target_logits: Tensor
    valid: Tensor | None = None
    truth: Tensor | None = None
    logits: Tensor | None = None
    seen: SeenLayer | None = None
    place: int = 0


@MODELS.register_module()
class MeanTeacherSegmentor(EMATeacher, SemiBaseSegmentor):
    r"""Mean teacher (Tarvainen & Valpola, NeurIPS 2017) for segmentation, around a stock student.

    The teacher is a second copy of the student whose weights are the student's moving average; it gets no gradient, and
    ``mmssl.MeanTeacherHook`` updates it. With the supervised loss :math:`L^{sup}`, the pixel-wise unsupervised loss
    :math:`\ell`, teacher :math:`g`, student :math:`f`, weak views :math:`x` and strong views :math:`x_v` of the
    unlabeled images,

    .. math:: L = w_s L^{sup} + \lambda \Big[\sum_v w_v\, \ell(f(x_v), g(x)) + w_p\, \ell(f_p(x), g(x))\Big].

    The second term, with perturbed features in place of the encoder's, is there if ``feature_perturbation`` is. With
    ``mix``, strong views and the teacher's logits are mixed alike, each view with masks of its own; the weak view whose
    features are perturbed is not mixed.

    BatchNorm: the student sees labeled images, all strong views together, and the perturbed view in separate forwards;
    each moves its running statistics. The teacher sees weak views alone; it moves its statistics in ``'train'`` mode.

    ``semi_train_cfg`` takes

    - ``sup_weight``: :math:`w_s` >= 0. Default 1.
    - ``unsup_weight``: :math:`\lambda` >= 0. Default 1.
    - ``unsup_begin``, ``unsup_ramp``: iterations >= 0 on labels alone, and iterations over which the weight then rises
      linearly. Default 0.
    - ``unsup_loss``: a loss with ``forward(logits, target_logits, weight, valid, avg_factor)`` that returns a mean over
      pixels; called once for each term. Default ``mmssl.HardPseudoLabelLoss``.
    - ``mix``: ``None`` or ``dict(type='mmssl.CutMix')``. Default ``None``.
    - ``strong_branches``: branches that the student learns from, each with the geometry of ``unsup_weak``; may be
      ``('unsup_weak',)`` itself. Default ``('unsup_strong',)``.
    - ``strong_weights``: :math:`w_v` >= 0, one for each strong branch. Default: equal shares that sum to 1.
    - ``feature_perturbation``: ``None`` or ``dict(type='mmssl.FeatureDropout')``. Default ``None``.
    - ``feature_weight``: :math:`w_p` >= 0. Default 0.5.
    - ``teacher_mode``: the teacher's mode while the model is in train mode. ``'train'``: pseudo labels come from the
      statistics of the unlabeled batch, and with dropout on, as in AEL; it holds where unlabeled images look different
      from labeled ones. ``'eval'``: from running statistics, without dropout. Default ``'train'``.
    - ``ignore_padding``: whether padded pixels of unlabeled images are left out. Default ``False``.

    A method built on this one overrides :meth:`mix_view`, :meth:`labeled_term` (with :meth:`needs_labeled_logits`) and
    :meth:`pixel_arguments`.

    Args:
        segmentor: Config of a stock mmseg segmentor.
        data_preprocessor: See :class:`SemiBaseSegmentor`.
        semi_train_cfg: See above.
        semi_test_cfg: ``predict_on`` is ``'teacher'`` (default), ``'student'`` or ``'ensemble'``.
        init_cfg: As in mmengine.
    """

    MODELS_HELD: ClassVar[tuple[str, ...]] = ('student', 'teacher')
    PREDICT_ON: ClassVar[str] = 'teacher'
    REQUIRED_HOOKS: ClassVar[tuple[str, ...]] = ('mmssl.MeanTeacherHook',)
    # Classes of `mix` that `mix_view` knows beside the mixing of pairs.
    EXTRA_MIXING: ClassVar[tuple[type, ...]] = ()
    TRAIN_DEFAULTS: ClassVar[dict[str, Any]] = dict(
        SemiBaseSegmentor.TRAIN_DEFAULTS,
        unsup_loss=dict(type='mmssl.HardPseudoLabelLoss'),
        mix=None,
        strong_branches=('unsup_strong',),
        strong_weights=None,
        feature_perturbation=None,
        feature_weight=0.5,
        teacher_mode='train',
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
        cfg['strong_branches'] = check_branch_names(cfg['strong_branches'])
        self.strong_weights = strong_weights(cfg['strong_weights'], cfg['strong_branches'])
        check_weight(cfg['feature_weight'], 'semi_train_cfg.feature_weight')
        if not any(self.strong_weights) and (cfg['feature_perturbation'] is None or not cfg['feature_weight']):
            raise ValueError(
                'model.semi_train_cfg.strong_weights must not all be 0, or nothing is learned from unlabeled images '
                f'(semi_train_cfg.unsup_weight=0 would say so), got {list(self.strong_weights)}'
            )
        check_node(cfg['unsup_loss'], 'semi_train_cfg.unsup_loss')
        for key in ('mix', 'feature_perturbation'):
            check_node(cfg[key], f'semi_train_cfg.{key}', optional=True)
        self.unsup_loss = MODELS.build(cfg['unsup_loss'])
        check_pseudo_label_loss(self.unsup_loss)
        self.mix = None if cfg['mix'] is None else MODELS.build(cfg['mix'])
        check_mixing(self.mix, self.EXTRA_MIXING)
        perturbation = cfg['feature_perturbation']
        self.feature_perturbation = None if perturbation is None else MODELS.build(perturbation)
        check_perturbation(self.feature_perturbation)
        self.init_teacher()

    # --- the teacher ----------------------------------------------------------------------------------------------

    @classmethod
    def required_branches(cls, semi_train_cfg: Mapping[str, Any]) -> tuple[str, ...]:
        """Branches that a batch must have: the labeled, the weak and the strong ones."""
        strong = semi_train_cfg.get('strong_branches', cls.TRAIN_DEFAULTS['strong_branches'])
        return tuple(dict.fromkeys([*cls.REQUIRED_BRANCHES, *check_branch_names(strong)]))

    @torch.no_grad()
    def teacher_logits(self, inputs: Tensor) -> Tensor:
        """The teacher's logits, without gradient.

        Args:
            inputs: Normalized images, shape (N, 3, H, W).

        Returns:
            Shape (N, C, H, W).
        """
        return self.segment(self.teacher, inputs)

    # --- the loss ---------------------------------------------------------------------------------------------------

    def loss(self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]) -> dict[str, Any]:
        """Losses and statistics of one batch.

        Args:
            inputs: Branches ``sup``, ``unsup_weak`` and the strong ones, each normalized images of shape (N, 3, H, W).
            data_samples: The same branches; ``sup`` with ``gt_sem_seg``.

        Returns:
            ``sup_student.*``, ``unsup_loss`` and, with ``mmssl.EMAHeadHook``, ``unsup_avg_loss``, which add up to the
            total, and statistics ``unsup_*``. With several terms, the statistics are means over them by their weight,
            and ``unsup_value_<term>`` is a term's own mean.

        Raises:
            ValueError: If a branch is missing, the batch cannot be mixed, or nothing updates the teacher.
        """
        self.check_that_teacher_follows()
        labeled, labeled_samples = get_branch(inputs, 'sup'), get_branch(data_samples, 'sup')
        for branch in self.required_branches(self.semi_train_cfg):
            get_branch(inputs, branch)  # missing branches are found before the loss begins to use them
        weight = self.next_unsup_weight()
        with_logits = self.needs_labeled_logits(weight)
        sup_losses, sup_logits, sup_seen = self.supervised_loss(self.student, labeled, labeled_samples, with_logits)
        losses = self.named_supervised_losses(sup_losses, 'student')
        if weight == 0:
            # Attached to the graph: no rank may find a loss missing.
            losses['unsup_loss'] = zero_loss(losses)
            return losses

        terms = self.unlabeled_terms(inputs, data_samples)
        self.watch_pseudo_labels(labeled_samples, [terms[0].target_logits], terms[0].valid)
        labeled_term = self.labeled_term(labeled, labeled_samples, sup_logits)
        if labeled_term is not None:
            terms.append(replace(labeled_term, seen=one_or_none(sup_seen)))
        total, statistics = 0, {}
        shares = max(sum(term.share for term in terms), torch.finfo(torch.float32).tiny)
        arguments = [self.pixel_arguments(term) for term in terms]
        for term, own in zip(terms, arguments, strict=True):
            value = self.unsup_loss(term.logits, term.target_logits, **own)
            total = total + term.share * value
            for name, number in getattr(self.unsup_loss, 'statistics', {}).items():
                statistics[name] = statistics.get(name, 0) + term.share / shares * number
            if len(terms) > 1:
                statistics[f'value_{term.name}'] = value.detach()
        # An arg-max hides what is not finite: without this the student would go on with labels of a broken teacher.
        finite = torch.stack([term.target_logits.isfinite().all() for term in terms]).all()
        losses['unsup_loss'] = torch.where(finite, weight * total, torch.nan)
        losses.update(prefixed(statistics, 'unsup_'))
        if self.average_head is not None:
            passes = list({id(term.seen): term.seen for term in terms}.values())

            def average(*outputs: Tensor) -> Tensor:
                total = 0
                for term, own in zip(terms, arguments, strict=True):
                    output = next(out for out, seen in zip(outputs, passes, strict=True) if seen is term.seen)
                    output = self.resized(output[term.place : term.place + len(term.images)], term.images)
                    total = total + term.share * self.unsup_loss(output, term.target_logits, **own)
                return total

            ramp = weight / self.semi_train_cfg['unsup_weight']
            losses['unsup_avg_loss'] = self.average_loss(passes, average, ramp)
        if self.recording:
            first = terms[0]
            self.record = UnsupervisedRecord(
                inputs=first.images.detach(),
                logits=first.logits.detach(),
                target_logits=first.target_logits,
                truth=first.truth,
                valid=first.valid,
                ignore_index=self.ignore_index,
            )
        return losses

    def unlabeled_terms(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> list[ConsistencyTerm]:
        """One term for each strong branch, mixed if ``mix`` is set, and one for perturbed features.

        Args:
            inputs: Images by branch.
            data_samples: Data samples by branch.
        """
        cfg = self.semi_train_cfg
        weak, weak_samples = get_branch(inputs, 'unsup_weak'), get_branch(data_samples, 'unsup_weak')
        # The strong views share the weak one's geometry, and with it labels, padding and truth.
        view = ConsistencyTerm(
            name='feature',
            share=cfg['feature_weight'],
            images=weak,
            target_logits=self.teacher_logits(weak),
            valid=self.valid_mask(weak_samples, weak),
            truth=self.hidden_truth(weak_samples) if self.recording else None,
        )
        terms = []
        for branch, share in zip(cfg['strong_branches'], self.strong_weights, strict=True):
            images = get_branch(inputs, branch)
            if images.shape != weak.shape:
                raise ValueError(
                    f'branch `{branch}` has images of shape {tuple(images.shape)}, `unsup_weak` of '
                    f'{tuple(weak.shape)}: strong views must show the same pixels, so in '
                    'train_dataloader.dataset the transforms of geometry stand before `mmssl.MultiBranch`'
                )
            strong = replace(view, name=branch, share=share, images=images)
            terms.append(self.mix_view(strong, get_branch(data_samples, branch)))
        # One forward for all strong views, as in UniMatch: BatchNorm sees them together.
        logits, seen = self.segment_unlabeled(self.student, torch.cat([term.images for term in terms]))
        place = 0
        for index, term in enumerate(terms):
            part = logits[place : place + len(term.images)]
            terms[index] = replace(term, logits=part, seen=one_or_none(seen), place=place)
            place += len(part)
        if self.feature_perturbation is not None:
            with perturbed_features(self.student.backbone, self.feature_perturbation):
                logits, seen = self.segment_unlabeled(self.student, weak)
            terms.append(replace(view, logits=logits, seen=one_or_none(seen)))
        return terms

    def mix_view(self, view: ConsistencyTerm, data_samples: Sequence[SegDataSample]) -> ConsistencyTerm:
        """Mix images, teacher logits, valid mask and truth of one strong view alike; as they are without ``mix``.

        Args:
            view: Without student logits.
            data_samples: Of the view's images.
        """
        if self.mix is None:
            return view
        masks = self.mix.sample(view.images)
        return replace(
            view,
            images=self.mix(view.images, masks),
            target_logits=self.mix(view.target_logits, masks),
            valid=None if view.valid is None else self.mix(view.valid[:, None], masks)[:, 0],
            truth=None if view.truth is None else self.mix(view.truth[:, None], masks)[:, 0],
        )

    def needs_labeled_logits(self, weight: float) -> bool:
        """Whether the student's logits on labeled images are needed, ``weight`` being that of the unsupervised loss."""
        return False

    def labeled_term(
        self, inputs: Tensor, data_samples: list[SegDataSample], logits: Tensor | None
    ) -> ConsistencyTerm | None:
        """The labeled images' part of the unsupervised loss; none here.

        Args:
            inputs: Labeled images, shape (N, 3, H, W).
            data_samples: With ``gt_sem_seg``.
            logits: The student's, with gradient, shape (N, C, H, W); ``None`` unless :meth:`needs_labeled_logits`.
        """
        return None

    def pixel_arguments(self, term: ConsistencyTerm) -> dict[str, Any]:
        """Arguments ``weight``, ``valid`` and ``avg_factor`` of the unsupervised loss: how its pixels count.

        Args:
            term: With student logits.
        """
        return {} if term.valid is None else valid_arguments(term.valid)


def one_or_none(seen: Sequence[SeenLayer]) -> SeenLayer | None:
    """What an averaged layer saw in one forward; ``None`` if there is no such layer."""
    return seen[0] if seen else None


@contextmanager
def perturbed_features(encoder: nn.Module, perturbation: nn.Module) -> Iterator[None]:
    """Inside the block, what ``encoder`` returns passes ``perturbation`` before the rest of the model sees it."""
    handle = encoder.register_forward_hook(lambda module, inputs, features: perturbation(features))
    try:
        yield
    finally:
        handle.remove()


def check_branch_names(names: Any) -> tuple[str, ...]:
    """The strong branches as a tuple.

    Raises:
        ValueError: If they are no list of different names, or name the labeled branch.
    """
    key = 'model.semi_train_cfg.strong_branches'
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    if not is_list or not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"{key} must be a list of branch names, such as ['unsup_strong'], got {names!r}")
    if len(set(names)) != len(names) or 'sup' in names:
        raise ValueError(f'{key} must name different branches of unlabeled images, got {list(names)}')
    return tuple(names)


def strong_weights(weights: Any, branches: Sequence[str]) -> tuple[float, ...]:
    """The weight of each strong branch: equal shares of 1 for ``None``.

    Raises:
        ValueError: If they are no numbers >= 0, or not one for each branch.
    """
    if weights is None:
        return (1 / len(branches),) * len(branches)
    key = 'model.semi_train_cfg.strong_weights'
    if isinstance(weights, str) or not isinstance(weights, Sequence) or len(weights) != len(branches):
        raise ValueError(
            f'{key} must be None or one weight for each of strong_branches={list(branches)}, got {weights!r}'
        )
    for index, weight in enumerate(weights):
        check_weight(weight, f'semi_train_cfg.strong_weights[{index}]')
    return tuple(float(weight) for weight in weights)
