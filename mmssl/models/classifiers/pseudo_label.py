"""Pseudo labels for classification: FixMatch and its family by configuration."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from mmengine.dist import all_reduce, get_world_size
from mmpretrain.structures import DataSample
from torch import Tensor

from mmssl.functional.fpl import compute_dtype
from mmssl.functional.thresholds import (
    class_shares,
    fairness_loss,
    sharpened_logits,
    training_signal_threshold,
)
from mmssl.models.ema_teacher import EMATeacher
from mmssl.models.losses import ConsistencyMSELoss, HardPseudoLabelLoss, SoftPseudoLabelLoss
from mmssl.models.semi_base import (
    check_choice,
    check_node,
    check_pseudo_label_loss,
    check_weight,
    class_of,
    get_branch,
    prefixed,
    with_sizes,
    zero_loss,
)
from mmssl.models.thresholds import DistributionAlignment, SelfAdaptiveThreshold, Threshold
from mmssl.registry import MODELS
from mmssl.utils.values import check_number

from .base import ClassificationRecord, SemiBaseClassifier, frozen_statistics, labels_of, split_batch

DEFAULT_LOSSES = dict(hard='mmssl.HardPseudoLabelLoss', soft='mmssl.SoftPseudoLabelLoss')


@MODELS.register_module()
class PseudoLabelClassifier(EMATeacher, SemiBaseClassifier):
    r"""Learns from labels, and from the pseudo labels of unlabeled images: FixMatch and its family.

    With labeled images :math:`x_l`, weak views :math:`x` and student views :math:`x'` of unlabeled images, the loss
    :math:`\ell` between the student's logits and those that make the pseudo label, and the weights :math:`w_b` of the
    threshold,

    .. math:: L = w_s L^{sup}(x_l) + \frac{\lambda}{B} \sum_b w_b\, \ell(f(x'_b), t_b) + \lambda_f L_f,
              \qquad t_b = z(x_b) / T,

    where :math:`z(x)` are the logits of the weak view, of the student itself or of its moving average (``teacher``),
    without gradient; after ``alignment`` they are the logarithm of the aligned probabilities.

    BatchNorm: with ``concatenate``, labeled, weak and student views go through the backbone in one batch, and its
    statistics are those of all of them; the head runs on labeled and on unlabeled features apart. Without it, each has
    a forward of its own and moves the running statistics in turn: labeled, weak, student view; with
    ``freeze_bn_on_unlabeled`` those of unlabeled images leave the running statistics alone. A teacher sees weak views
    alone.

    ``semi_train_cfg`` takes

    - ``sup_weight``: :math:`w_s` >= 0. Default 1.
    - ``unsup_weight``: :math:`\lambda` >= 0. Default 1.
    - ``unsup_begin``, ``unsup_ramp``: iterations >= 0 on labels alone, and iterations over which the weight then rises
      linearly. Default 0.
    - ``threshold``: how much each pseudo label counts, one of ``mmssl.FixedThreshold``, ``FlexMatchThreshold``,
      ``SelfAdaptiveThreshold``, ``SoftMatchWeight``, ``DashThreshold`` and ``AdaMatchThreshold``. Default
      ``mmssl.FixedThreshold`` with 0.95.
    - ``alignment``: ``None`` or ``dict(type='mmssl.DistributionAlignment')``. Default ``None``.
    - ``target``: ``'hard'``, the class of the largest logit; or ``'soft'``, the softmax. Default ``'hard'``.
    - ``temperature``: T > 0 of soft targets; below 1 sharpens. Default 1.
    - ``unsup_loss``: :math:`\ell`, a loss with ``forward(logits, target_logits, weight, valid, avg_factor)``. Default:
      ``mmssl.HardPseudoLabelLoss`` for hard targets, ``mmssl.SoftPseudoLabelLoss`` for soft ones, which both are the
      cross entropy.
    - ``normalize``: B, ``'batch'``: all unlabeled images of the batch; or ``'selected'``: the sum of their weights, at
      least 1. Default ``'batch'``.
    - ``concatenate``: one forward for all views. Default ``True``.
    - ``fairness_weight``: :math:`\lambda_f` >= 0 of FreeMatch's fairness loss, which is negative; needs
      ``mmssl.SelfAdaptiveThreshold``. Default 0.
    - ``teacher``: ``None``, or ``'ema'``: pseudo labels come from the student's moving average, which
      ``mmssl.MeanTeacherHook`` updates. Default ``None``.
    - ``teacher_mode``: the teacher's mode while the model is in train mode, ``'train'`` or ``'eval'``, as in
      :class:`MeanTeacherSegmentor`. Default ``'train'``.
    - ``student_branch``: branch that the student learns from. ``'unsup_weak'`` is the very view that made the pseudo
      labels. Default ``'unsup_strong'``.
    - ``freeze_bn_on_unlabeled``: see above; needs ``concatenate=False``. Default ``False``.
    - ``tsa``: ``None``, or ``dict(schedule='linear' | 'exp' | 'log', iterations=...)``: training signal annealing of
      UDA, which leaves labeled images out of the supervised loss whose class is more probable than a threshold that
      rises over so many iterations. Default ``None``.

    Args:
        classifier: Config of a stock mmpretrain classifier.
        data_preprocessor: See :class:`SemiBaseClassifier`.
        semi_train_cfg: See above.
        semi_test_cfg: ``predict_on`` is ``'student'`` (default without a teacher), ``'teacher'`` (default with one) or
            ``'ensemble'``.
        init_cfg: As in mmengine.
    """

    MODELS_HELD: ClassVar[tuple[str, ...]] = ('student',)
    TRAIN_DEFAULTS: ClassVar[dict[str, Any]] = dict(
        SemiBaseClassifier.TRAIN_DEFAULTS,
        threshold=dict(type='mmssl.FixedThreshold', threshold=0.95),
        alignment=None,
        target='hard',
        temperature=1.0,
        unsup_loss=None,
        normalize='batch',
        concatenate=True,
        fairness_weight=0.0,
        teacher=None,
        teacher_mode='train',
        student_branch='unsup_strong',
        freeze_bn_on_unlabeled=False,
        tsa=None,
    )

    def __init__(
        self,
        classifier: dict,
        data_preprocessor: dict | None = None,
        semi_train_cfg: dict | None = None,
        semi_test_cfg: dict | None = None,
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        super().__init__(classifier, data_preprocessor, semi_train_cfg, semi_test_cfg, init_cfg)
        cfg = self.semi_train_cfg
        check_options(cfg)
        check_node(cfg['threshold'], 'semi_train_cfg.threshold')
        check_node(cfg['alignment'], 'semi_train_cfg.alignment', optional=True)
        check_node(cfg['unsup_loss'], 'semi_train_cfg.unsup_loss', optional=True)
        loss = cfg['unsup_loss'] or dict(type=DEFAULT_LOSSES[cfg['target']])
        self.unsup_loss = MODELS.build(loss)
        check_pseudo_label_loss(self.unsup_loss)
        check_target(self.unsup_loss, cfg['target'])
        self.threshold = self._build_piece('threshold')
        self.alignment = None if cfg['alignment'] is None else self._build_piece('alignment')
        self._check_threshold()
        self.init_teacher()

    def _build_piece(self, key: str) -> Any:
        """Build the threshold or the alignment, which have to know the number of classes."""
        node = self.semi_train_cfg[key]
        check_piece(node['type'], key)
        return MODELS.build(with_sizes(node, f'semi_train_cfg.{key}', 'classifier', num_classes=self.num_classes))

    def _check_threshold(self) -> None:
        cfg, name = self.semi_train_cfg, type(self.threshold).__name__
        if getattr(self.threshold, 'NEEDS_WARMUP', False) and not cfg['unsup_begin']:
            raise ValueError(
                f'model.semi_train_cfg.unsup_begin must be at least 1 with mmssl.{name}, which measures the loss of '
                'labeled images before the unsupervised loss begins, got 0'
            )
        if hasattr(self.threshold, 'target_logits') and (cfg['target'] != 'soft' or cfg['temperature'] != 1):
            raise ValueError(
                f"model.semi_train_cfg.target must be 'soft', and temperature 1, with mmssl.{name}, which makes the "
                f'targets itself, got {cfg["target"]!r} and {cfg["temperature"]}'
            )
        if cfg['fairness_weight'] and not isinstance(self.threshold, SelfAdaptiveThreshold):
            raise ValueError(
                'model.semi_train_cfg.fairness_weight needs the averages of mmssl.SelfAdaptiveThreshold, got the '
                f'threshold {name}'
            )

    # --- what the options ask for -----------------------------------------------------------------------------------

    @classmethod
    def sub_models(cls, semi_train_cfg: Mapping[str, Any]) -> tuple[str, ...]:
        """The student, and the teacher if there is one."""
        return cls.MODELS_HELD if semi_train_cfg.get('teacher') is None else ('student', 'teacher')

    @classmethod
    def default_predictor(cls, semi_train_cfg: Mapping[str, Any]) -> str:
        """The teacher if there is one, else the student."""
        return cls.sub_models(semi_train_cfg)[-1]

    @classmethod
    def required_branches(cls, semi_train_cfg: Mapping[str, Any]) -> tuple[str, ...]:
        """Branches that a batch must have: the labeled, the weak, and the student's."""
        branch = semi_train_cfg.get('student_branch', cls.TRAIN_DEFAULTS['student_branch'])
        return tuple(dict.fromkeys([*cls.REQUIRED_BRANCHES, check_branch_name(branch)]))

    @classmethod
    def required_hooks(cls, semi_train_cfg: Mapping[str, Any]) -> tuple[str, ...]:
        """``mmssl.MeanTeacherHook`` if there is a teacher, and what the threshold needs."""
        hooks = [] if semi_train_cfg.get('teacher') is None else ['mmssl.MeanTeacherHook']
        node = semi_train_cfg.get('threshold')
        if isinstance(node, Mapping):  # anything else is refused when the model is built
            needed = getattr(class_of(node.get('type')), 'required_hooks', None)
            hooks += () if needed is None else needed(node)
        return tuple(hooks)

    def check_grad_relu(self, key: str) -> None:
        """With one forward for all views, only layers of the head can be kept apart.

        Raises:
            ValueError: If another one is to learn from labels alone.
        """
        if self.semi_train_cfg['concatenate'] and self.holds_layers_outside('head'):
            raise ValueError(
                f'{key}: {", ".join(self.grad_relu_layers)} must lie in the head, since the backbone sees labeled and '
                'unlabeled images in one forward; or set model.semi_train_cfg.concatenate=False'
            )

    def restart_count(self) -> None:
        """Count iterations from 0 and forget all statistics, for a new run that started from another's weights."""
        super().restart_count()
        for piece in (self.threshold, self.alignment):
            if piece is not None:
                piece.reset()

    # --- the loss ---------------------------------------------------------------------------------------------------

    def loss(self, inputs: dict[str, Tensor], data_samples: dict[str, list[DataSample]]) -> dict[str, Any]:
        """Losses and statistics of one batch.

        Args:
            inputs: Branches ``sup``, ``unsup_weak`` and the student's, each normalized images of shape (N, 3, H, W).
            data_samples: The same branches; ``sup`` with ``gt_label``.

        Returns:
            ``sup_student.*``, ``unsup_loss`` and, for FreeMatch, ``unsup_fairness_loss`` and, with
            ``mmssl.EMAHeadHook``, ``unsup_avg_loss``, which add up to the total, and statistics ``unsup_*``.

        A logit of a weak view, or an average of a threshold, that is not finite makes ``unsup_loss`` NaN, which stops
        the run in :meth:`parse_losses`.

        Raises:
            ValueError: If a branch is missing, or nothing updates the teacher.
        """
        if self.has_teacher:
            self.check_that_teacher_follows()
        cfg = self.semi_train_cfg
        labeled, labeled_samples = get_branch(inputs, 'sup'), get_branch(data_samples, 'sup')
        for branch in self.required_branches(cfg):
            get_branch(inputs, branch)  # missing branches are found before the loss begins to use them
        weight = self.next_unsup_weight()
        if weight == 0:
            features = self.student.extract_feat(labeled)
            sup_losses, logits = self._supervised(features, labeled_samples, self._observes)
            losses = self.named_supervised_losses(sup_losses, 'student')
            # Attached to the graph: no rank may find a loss missing.
            losses['unsup_loss'] = zero_loss(losses)
            if self._observes:
                self.threshold.observe_labeled(self._cross_entropy(logits, labeled_samples))
            return losses

        forward = self._forward_together if cfg['concatenate'] else self._forward_apart
        (sup_losses, labeled_logits), label_logits, logits, seen = forward(inputs, labeled_samples)
        losses = self.named_supervised_losses(sup_losses, 'student')
        if self.has_teacher:
            with torch.no_grad():
                label_logits = self.classify(self.teacher, get_branch(inputs, 'unsup_weak'))
        weak_samples = get_branch(data_samples, 'unsup_weak')
        target_logits, weights = self.pseudo_labels(label_logits, labeled_logits, sample_ids(weak_samples))
        self.watch_pseudo_labels(labeled_samples, target_logits)

        arguments = dict(weight=weights)
        if cfg['normalize'] == 'selected':
            arguments['avg_factor'] = selected_count(weights)
        # A comparison with NaN selects nothing, and an arg-max hides it: the run would go on with labels of a broken
        # teacher, or without any. By the averages, which are of all processes, the others stop as well.
        finite = self._pseudo_labels_are_finite(label_logits, labeled_logits)
        losses['unsup_loss'] = torch.where(
            finite, weight * self.unsup_loss(logits, target_logits, **arguments), torch.nan
        )
        statistics = dict(getattr(self.unsup_loss, 'statistics', {}))
        statistics.update(self.threshold.statistics(), mask_ratio=weights.mean())
        losses.update(prefixed(statistics, 'unsup_'))
        ramp = weight / cfg['unsup_weight']
        if cfg['fairness_weight']:
            losses['unsup_fairness_loss'] = ramp * cfg['fairness_weight'] * self.fairness(logits, weights)
        if self.average_head is not None:
            self.check_final(seen, logits)

            def average(output: Tensor) -> Tensor:
                return self.unsup_loss(output, target_logits, **arguments)

            losses['unsup_avg_loss'] = self.average_loss(seen, average, ramp)
        if self.recording:
            self.record = ClassificationRecord(
                inputs=get_branch(inputs, cfg['student_branch']).detach(),
                logits=logits.detach(),
                target_logits=target_logits,
                weight=weights,
                truth=self.hidden_truth(weak_samples),
                class_thresholds=self.threshold.class_thresholds(),
            )
        return losses

    @property
    def _observes(self) -> bool:
        """Whether the threshold looks at labeled images before the unsupervised loss begins."""
        return getattr(self.threshold, 'NEEDS_WARMUP', False)

    @property
    def _needs_labeled_logits(self) -> bool:
        return self.alignment is not None or getattr(self.threshold, 'NEEDS_LABELED', False)

    def _supervised(
        self, features: Any, data_samples: list[DataSample], with_logits: bool
    ) -> tuple[dict[str, Tensor], Tensor | None]:
        return self.supervised_loss(self.student, features, data_samples, with_logits, self._annealing(data_samples))

    def _annealing(self, data_samples: list[DataSample]) -> Callable[[Tensor], Tensor] | None:
        """What training signal annealing makes of labeled logits: a factor of each sample; None without it."""
        tsa = self.semi_train_cfg['tsa']
        if tsa is None:
            return None
        progress = (self.iterations_done - 1) / tsa['iterations']
        threshold = training_signal_threshold(progress, self.num_classes, tsa['schedule'])
        labels = labels_of(data_samples)
        if labels is None:
            raise ValueError('model.semi_train_cfg.tsa needs labeled images with one `gt_label` each')

        def keep(logits: Tensor) -> Tensor:
            probs = logits.to(compute_dtype(logits)).softmax(dim=1)
            return (probs.gather(1, labels[:, None])[:, 0] <= threshold).to(logits.dtype)

        return keep

    def _cross_entropy(self, logits: Tensor, data_samples: list[DataSample]) -> Tensor:
        labels = labels_of(data_samples)
        if labels is None:
            raise ValueError(
                f'model.semi_train_cfg.threshold: mmssl.{type(self.threshold).__name__} needs labeled images with one '
                '`gt_label` each'
            )
        return F.cross_entropy(logits.to(compute_dtype(logits)), labels, reduction='none')

    def _forward_together(self, inputs: dict[str, Tensor], data_samples: list[DataSample]) -> tuple:
        """One forward for all views: supervised losses and labeled logits, weak logits, student logits, seen layers."""
        names = self._student_views()
        images = [get_branch(inputs, name) for name in ('sup', *names)]
        features = self.student.extract_feat(torch.cat(images))
        labeled, *rest = split_batch(features, [len(part) for part in images])
        unlabeled = dict(zip(names, rest, strict=True))
        supervised = self._supervised(labeled, data_samples, self._needs_labeled_logits)
        label_logits = None
        branch = self.semi_train_cfg['student_branch']
        if 'unsup_weak' in unlabeled and branch != 'unsup_weak':
            with torch.no_grad():
                label_logits = self.logits_of(self.student, unlabeled['unsup_weak'])
        with self.unsupervised_forward() as seen:
            logits = self.logits_of(self.student, unlabeled[branch])
        return supervised, logits.detach() if label_logits is None else label_logits, logits, seen

    def _forward_apart(self, inputs: dict[str, Tensor], data_samples: list[DataSample]) -> tuple:
        """A forward for each view; the same results as :meth:`_forward_together`."""
        features = self.student.extract_feat(get_branch(inputs, 'sup'))
        supervised = self._supervised(features, data_samples, self._needs_labeled_logits)
        frozen = frozen_statistics if self.semi_train_cfg['freeze_bn_on_unlabeled'] else nullcontext
        label_logits = None
        branch = self.semi_train_cfg['student_branch']
        with frozen(self.student):
            if 'unsup_weak' in self._student_views() and branch != 'unsup_weak':
                with torch.no_grad():
                    label_logits = self.classify(self.student, get_branch(inputs, 'unsup_weak'))
            with self.unsupervised_forward() as seen:
                logits = self.classify(self.student, get_branch(inputs, branch))
        return supervised, logits.detach() if label_logits is None else label_logits, logits, seen

    def _student_views(self) -> tuple[str, ...]:
        """Branches of unlabeled images that the student sees: the weak one if it makes the labels, and its own."""
        own = self.semi_train_cfg['student_branch']
        return (own,) if self.has_teacher else tuple(dict.fromkeys(['unsup_weak', own]))

    @torch.no_grad()
    def pseudo_labels(
        self, logits: Tensor, labeled_logits: Tensor | None, ids: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """What the student is to learn, and how much each of it counts; updates all statistics.

        Args:
            logits: Of the weak views, (N, C).
            labeled_logits: Of the labeled images, (M, C); ``None`` where nothing needs them.
            ids: Number of each unlabeled image in its data set, int64 on the CPU, (N,), or ``None``.

        Returns:
            Logits of the targets, (N, C), and weights in [0, 1], (N,), both at least float32.
        """
        with torch.autocast(device_type=logits.device.type, enabled=False):
            logits = logits.detach().to(compute_dtype(logits))
            probs = logits.softmax(dim=1)
            labeled_probs = None
            if labeled_logits is not None:
                labeled_probs = labeled_logits.detach().to(logits.dtype).softmax(dim=1)
            if self.alignment is not None:
                probs = self.alignment(probs, labeled_probs)
                if self.alignment.apply_to == 'all':
                    logits = probs.clamp_min(torch.finfo(probs.dtype).tiny).log()
            if hasattr(self.threshold, 'target_logits'):
                target_logits = self.threshold.target_logits(logits)
            else:
                target_logits = sharpened_logits(logits, self.semi_train_cfg['temperature'])
            weights = self.threshold(probs, logits=logits, labeled_probs=labeled_probs, sample_ids=ids)
        return target_logits, weights

    def _pseudo_labels_are_finite(self, *logits: Tensor | None) -> Tensor:
        """Whether what made the pseudo labels, logits and averages, is finite: bool, scalar."""
        averages = [*self.threshold.buffers(), *(() if self.alignment is None else self.alignment.buffers())]
        used = [values for values in (*logits, *averages) if values is not None and values.is_floating_point()]
        return torch.stack([values.isfinite().all() for values in used]).all()

    def fairness(self, logits: Tensor, weights: Tensor) -> Tensor:
        """FreeMatch's fairness loss over the selected images of all processes.

        Args:
            logits: Of the student, with gradient, (N, C).
            weights: Of the pseudo labels, (N,).

        Returns:
            Scalar, whose gradient, averaged over processes, is that of the loss over all of them.
        """
        with torch.autocast(device_type=logits.device.type, enabled=False):
            probs = logits.to(compute_dtype(logits)).softmax(dim=1)
            selected = (weights > 0).to(probs.dtype)
            prob_sum = (probs * selected[:, None]).sum(dim=0)
            count = class_shares(probs.argmax(dim=1), self.num_classes, selected)
            if get_world_size() > 1:
                total = torch.stack([prob_sum.detach(), count])
                all_reduce(total, 'sum')
                # The value of all processes; the gradient of this one, times their number since gradients are averaged.
                prob_sum = total[0] + get_world_size() * (prob_sum - prob_sum.detach())
                count = total[1]
            return fairness_loss(prob_sum, count, self.threshold.model_prob, self.threshold.label_hist)


def sample_ids(data_samples: Sequence[DataSample]) -> Tensor | None:
    """Number of each image in its data set, int64, (N,); ``None`` if a sample does not say."""
    ids = [sample.metainfo.get('sample_idx') for sample in data_samples]
    return None if any(number is None for number in ids) else torch.tensor(ids)


def selected_count(weights: Tensor) -> Tensor:
    """Denominator that makes a sum the mean over the selected images, at least 1, of all processes.

    Args:
        weights: Of this process, (N,).
    """
    count = weights.sum()
    if get_world_size() > 1:
        all_reduce(count, 'sum')
    # Gradients are averaged over processes, so each one divides by its share.
    return count.clamp(min=1) / get_world_size()


def check_branch_name(branch: Any) -> str:
    """The student's branch.

    Raises:
        ValueError: If it is no name of a branch of unlabeled images.
    """
    if not isinstance(branch, str) or not branch or branch == 'sup':
        raise ValueError(
            'model.semi_train_cfg.student_branch must be the name of a branch of unlabeled images, such as '
            f"'unsup_strong', got {branch!r}"
        )
    return branch


def check_target(loss: Any, target: str) -> None:
    """Refuse a loss that reads the target in the other way than ``semi_train_cfg.target`` says.

    Raises:
        ValueError: Names both keys.
    """
    reads = {HardPseudoLabelLoss: 'hard', SoftPseudoLabelLoss: 'soft', ConsistencyMSELoss: 'soft'}
    for kind, wanted in reads.items():
        if isinstance(loss, kind) and target != wanted:
            raise ValueError(
                f'model.semi_train_cfg.target must be {wanted!r} with unsup_loss mmssl.{kind.__name__}, got {target!r}'
            )


def check_piece(name: str | type, key: str) -> None:
    """Raise ValueError, naming the key, unless ``name`` is the type of a threshold, or of the alignment."""
    kind = class_of(name)
    if key == 'alignment':
        fits = isinstance(kind, type) and issubclass(kind, DistributionAlignment)
    else:
        fits = callable(getattr(kind, 'statistics', None))
    if not fits:
        base = DistributionAlignment if key == 'alignment' else Threshold
        known = (name for name, kind in MODELS.module_dict.items() if isinstance(kind, type) and issubclass(kind, base))
        raise ValueError(
            f'model.semi_train_cfg.{key}.type must be one of {[f"mmssl.{name}" for name in sorted(known)]} or a type '
            f'of your own that works like them, got {name!r}'
        )


def check_options(cfg: Mapping[str, Any]) -> None:
    """Check the values that are no config of a piece.

    Raises:
        ValueError: Names the key.
    """
    key = 'semi_train_cfg'
    check_choice(cfg['target'], ('hard', 'soft'), f'{key}.target')
    check_choice(cfg['normalize'], ('batch', 'selected'), f'{key}.normalize')
    check_choice(cfg['concatenate'], (True, False), f'{key}.concatenate')
    check_choice(cfg['teacher'], (None, 'ema'), f'{key}.teacher')
    check_choice(cfg['freeze_bn_on_unlabeled'], (True, False), f'{key}.freeze_bn_on_unlabeled')
    check_weight(cfg['fairness_weight'], f'{key}.fairness_weight')
    check_branch_name(cfg['student_branch'])
    check_number(
        cfg['temperature'], f'model.{key}.temperature', lambda value: 0 < value < float('inf'), '> 0 and finite'
    )
    if cfg['target'] == 'hard' and cfg['temperature'] != 1:
        raise ValueError(
            f"model.{key}.temperature must be 1 with target='hard', whose class it does not change, got "
            f"{cfg['temperature']}; set target='soft'"
        )
    if cfg['freeze_bn_on_unlabeled'] and cfg['concatenate']:
        raise ValueError(
            f'model.{key}.freeze_bn_on_unlabeled needs concatenate=False: in one forward BatchNorm sees labeled and '
            'unlabeled images together'
        )
    tsa = cfg['tsa']
    if tsa is None:
        return
    if not isinstance(tsa, Mapping) or set(tsa) != {'schedule', 'iterations'}:
        raise ValueError(
            f"model.{key}.tsa must be None or dict(schedule='linear' | 'exp' | 'log', iterations=...), got {tsa!r}"
        )
    check_choice(tsa['schedule'], ('linear', 'exp', 'log'), f'{key}.tsa.schedule')
    check_number(tsa['iterations'], f'model.{key}.tsa.iterations', lambda n: n >= 1, 'an integer >= 1', int)
