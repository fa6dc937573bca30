"""PartialLabelClassifier: a stock classifier that learns from sets of candidate labels."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from mmpretrain.structures import DataSample
from torch import Tensor

from mmssl.functional.fpl import compute_dtype
from mmssl.functional.partial_label import (
    candidate_entropy,
    candidate_kl,
    candidate_probs,
    candidate_reliability,
    soft_cross_entropy,
)
from mmssl.models.ema_teacher import EMATeacher
from mmssl.models.partial_label import PartialLabelBatch, PartialLabelObjective
from mmssl.models.semi_base import (
    check_choice,
    check_node,
    check_weight,
    class_of,
    get_branch,
    options_in,
    with_sizes,
    zero_loss,
)
from mmssl.registry import MODELS
from mmssl.utils.values import check_number

from .base import ClassificationRecord, SemiBaseClassifier
from .pseudo_label import sample_ids


@MODELS.register_module()
class PartialLabelClassifier(EMATeacher, SemiBaseClassifier):
    r"""RGD-PLL (Wei et al., 2026) around any mmpretrain classifier; only a summary of the paper is known.

    Every image comes in a weak and a strong view with its candidate set S. The teacher's target on the weak view,
    restricted to the candidates, is :math:`\pi_i`; :math:`\alpha_i = (1 - H_i)^\kappa` says how sure it is, H the
    entropy over the candidates in units of its largest value; an estimator makes another distribution :math:`q_i` over
    the candidates from the student's features on the strong view. With the student's probabilities p there:

    .. math:: L_{pred} = \text{mean}_i\, {-\textstyle\sum_c} \pi_{ic} \log p_{ic}, \quad
              L_{soft} = \text{mean}_i\, \alpha_i \big({-\textstyle\sum_c} q_{ic} \log p_{ic}\big), \quad
              L_{rel} = \text{mean}_i\, \alpha_i\, KL(\pi_i \| q_i)

    :math:`L_{pred} + \lambda_t L_{soft}` is the primary loss, :math:`L_{rel}` the auxiliary one: train with
    ``mmssl.RGDOptimWrapper(primary=['prediction_loss', 'soft_loss'], auxiliary=['reliability_loss'],
    shared=['student.backbone'], reliability='reliability')``; a plain wrapper gives the ablation without surgery.
    :math:`\lambda_t` is 0 for ``unsup_begin`` iterations, in which the estimator learns on detached features, then
    rises to ``unsup_weight`` over ``unsup_ramp``. Teacher and estimator are no part of an exported classifier.

    BatchNorm: the student sees strong views alone, in one forward; the teacher, in train mode, weak views alone.

    With ``objective``, a baseline trains the same classifier in place of all this: ``mmssl.CCLoss``,
    ``mmssl.PRODENLoss``, ``mmssl.LWSLoss``, ``mmssl.CAVLLoss``, ``mmssl.CRDPLLLoss`` or ``mmssl.PiCOLoss``. It says
    which views it reads and whether there is a teacher, and keeps all its state, per-sample targets included, in the
    checkpoint (``mmssl.SampleTargetsHook``). BatchNorm of the student then sees those views, one after the other. Of
    ``semi_train_cfg``, ``teacher`` and ``teacher_mode`` are for objectives as well.

    ``semi_train_cfg`` takes

    - ``sup_weight``: factor of :math:`L_{pred}` >= 0. Default 1.
    - ``unsup_weight``, ``unsup_begin``, ``unsup_ramp``: :math:`\lambda` >= 0 and its schedule in iterations. Default 1,
      0 and 0.
    - ``teacher``: ``'ema'``, or ``None``: targets come from the student's own weak view. Default ``'ema'``.
    - ``teacher_mode``: as for every teacher. Default ``'train'``.
    - ``temperature``: of :math:`\pi`, > 0. Default 1.
    - ``estimator_temperature``: of q, > 0. Default 1.
    - ``entropy_weighting``: whether :math:`\alpha` is used; ``False``: 1. Default ``True``.
    - ``reliability_power``: :math:`\kappa` >= 0. Default 1.
    - ``soft_loss``: whether there is :math:`L_{soft}`. Default ``True``.

    Args:
        classifier: Config of a stock mmpretrain classifier whose head makes logits from a vector of features
            (``pre_logits``), such as ``LinearClsHead``.
        estimator: ``dict(type='mmssl.ReliabilityEstimator')``; ``in_channels`` and ``num_classes`` are those of the
            head unless given. ``None``: no estimator, so :math:`L_{pred}` alone. Default: that.
        objective: Config of a baseline; needs ``estimator=None``. Default: ``None``, RGD-PLL.
        data_preprocessor: See :class:`SemiBaseClassifier`.
        semi_train_cfg: See above.
        semi_test_cfg: ``predict_on`` is ``'student'`` (default), ``'teacher'`` or ``'ensemble'``.
        init_cfg: As in mmengine.

    Raises:
        KeyError: If an option is unknown.
        ValueError: If an option has a value that is not allowed or no effect, or estimator or objective do not fit the
            head, each other, or the teacher.
    """

    MODELS_HELD: ClassVar[tuple[str, ...]] = ('student', 'teacher')
    PREDICT_ON: ClassVar[str] = 'student'
    REQUIRED_BRANCHES: ClassVar[tuple[str, ...]] = ('unsup_weak', 'unsup_strong')
    TRAIN_DEFAULTS: ClassVar[dict[str, Any]] = dict(
        SemiBaseClassifier.TRAIN_DEFAULTS,
        teacher='ema',
        teacher_mode='train',
        temperature=1.0,
        estimator_temperature=1.0,
        entropy_weighting=True,
        reliability_power=1.0,
        soft_loss=True,
    )

    def __init__(
        self,
        classifier: dict,
        estimator: dict | None = dict(type='mmssl.ReliabilityEstimator'),  # noqa: B006  (never changed)
        data_preprocessor: dict | None = None,
        semi_train_cfg: dict | None = None,
        semi_test_cfg: dict | None = None,
        init_cfg: dict | list[dict] | None = None,
        objective: dict | None = None,
    ) -> None:
        super().__init__(classifier, data_preprocessor, semi_train_cfg, semi_test_cfg, init_cfg)
        cfg = self.semi_train_cfg
        check_choice(cfg['teacher'], ('ema', None), 'semi_train_cfg.teacher')
        for key in ('temperature', 'estimator_temperature'):
            check_number(cfg[key], f'model.semi_train_cfg.{key}', lambda value: 0 < value < float('inf'), 'finite, > 0')
        for key in ('entropy_weighting', 'soft_loss'):
            check_choice(cfg[key], (True, False), f'semi_train_cfg.{key}')
        check_weight(cfg['reliability_power'], 'semi_train_cfg.reliability_power')
        check_node(estimator, 'estimator', optional=True)
        check_node(objective, 'objective', optional=True)
        if objective is not None and estimator is not None:
            raise ValueError(
                'model.estimator belongs to RGD-PLL and must be None with model.objective '
                f'({objective["type"]}), got {estimator!r}'
            )
        # An attribute, no empty sub-module: what a checkpoint holds for it would be dropped without a word.
        self.objective: PartialLabelObjective | None = None
        if objective is not None:
            self.objective = self._build_objective(objective)
        self.estimator = None if estimator is None else MODELS.build(self._fit_to_head(estimator, 'estimator'))
        self.init_teacher()

    def _fit_to_head(self, node: Mapping[str, Any], key: str, reads_features: bool = True) -> dict[str, Any]:
        """The config of estimator or objective with the numbers of the head's classes and, if it reads them, features.

        Raises:
            ValueError: It states others, or nobody states the features.
        """
        sizes = dict(num_classes=self.num_classes)
        if reads_features:
            sizes['in_channels'] = getattr(self.student.head, 'in_channels', None)
            if sizes['in_channels'] is None and 'in_channels' not in node:
                raise ValueError(
                    f'model.{key}.in_channels must be given: {type(self.student.head).__name__} does not say how many '
                    'features it has'
                )
        return with_sizes(node, key, 'classifier.head', **sizes)

    def _build_objective(self, node: Mapping[str, Any]) -> PartialLabelObjective:
        cfg, defaults = self.semi_train_cfg, self.TRAIN_DEFAULTS
        for key, value in cfg.items():
            if key not in ('teacher', 'teacher_mode') and value != defaults[key]:
                raise ValueError(
                    f'model.semi_train_cfg.{key} is an option of RGD-PLL and has no effect with model.objective '
                    f'({node["type"]}), whose own options are in model.objective; remove it'
                )
        kind = objective_class(node)
        if kind is None:
            raise ValueError(
                'model.objective.type must be a loss over candidate sets (mmssl.CCLoss, mmssl.PRODENLoss, ...), got '
                f'{node["type"]!r}'
            )
        name = f'mmssl.{kind.__name__}'
        if self.has_teacher and kind.TEACHER == 'never':
            raise ValueError(
                f'model.semi_train_cfg.teacher must be None with {name}, which reads no teacher, got {cfg["teacher"]!r}'
            )
        if not self.has_teacher and kind.TEACHER == 'always':
            raise ValueError(
                f"model.semi_train_cfg.teacher must be 'ema' with {name}, which needs one, got {cfg['teacher']!r}"
            )
        return MODELS.build(self._fit_to_head(node, 'objective', kind.READS_FEATURES))

    @classmethod
    def branches_read(cls, model: Mapping[str, Any]) -> tuple[str, ...]:
        """The weak and the strong view, or what the objective reads."""
        node = model.get('objective')
        kind = objective_class(node)
        if kind is None:
            return super().branches_read(model)
        return kind.required_branches(node, len(cls.sub_models(options_in(model))) > 1)

    @classmethod
    def hooks_needed(cls, model: Mapping[str, Any]) -> tuple[str, ...]:
        """``mmssl.MeanTeacherHook`` if there is a teacher, and what the objective needs."""
        kind = objective_class(model.get('objective'))
        return (*super().hooks_needed(model), *(() if kind is None else kind.required_hooks()))

    def averaged_modules(self) -> list[tuple[torch.nn.Module, torch.nn.Module]]:
        """The teacher with the student, and what the objective averages."""
        return [*super().averaged_modules(), *([] if self.objective is None else self.objective.averaged_modules())]

    def restart_count(self) -> None:
        """Count iterations from 0 and forget all targets, for a new run that started from another's weights."""
        super().restart_count()
        if self.objective is not None:
            self.objective.reset()

    @classmethod
    def sub_models(cls, semi_train_cfg: Mapping[str, Any]) -> tuple[str, ...]:
        """The student, and the teacher if there is one."""
        return cls.MODELS_HELD if semi_train_cfg.get('teacher', 'ema') else ('student',)

    @classmethod
    def required_hooks(cls, semi_train_cfg: Mapping[str, Any]) -> tuple[str, ...]:
        """``mmssl.MeanTeacherHook`` if there is a teacher."""
        return ('mmssl.MeanTeacherHook',) if semi_train_cfg.get('teacher', 'ema') else ()

    def loss(self, inputs: dict[str, Tensor], data_samples: dict[str, list[DataSample]]) -> dict[str, Any]:
        r"""Losses and statistics of one batch.

        Args:
            inputs: Branches ``unsup_weak`` and ``unsup_strong``, normalized images of shape (N, 3, H, W).
            data_samples: The same branches, with ``candidates``, bool, (C,).

        Returns:
            ``prediction_loss``, ``soft_loss`` and ``reliability_loss``, which add up to the total, and the statistics
            ``reliability`` (mean of :math:`\alpha`), ``candidate_entropy`` (mean of H) and, where the truth is in the
            meta information, ``target_acc`` and ``estimator_acc``. With an objective, its losses and statistics, and
            ``candidate_entropy`` and ``target_acc`` of the targets as the batch leaves them.

        Raises:
            ValueError: If a branch is missing, samples have no candidate sets, or nothing updates the teacher.
        """
        if self.has_teacher:
            self.check_that_teacher_follows()
        if self.objective is not None:
            return self._objective_losses(self.objective, inputs, data_samples)
        cfg = self.semi_train_cfg
        weak, strong = get_branch(inputs, 'unsup_weak'), get_branch(inputs, 'unsup_strong')
        samples = get_branch(data_samples, 'unsup_weak')
        candidates = candidates_of(samples, self.num_classes).to(strong.device)
        weight = self.next_unsup_weight()
        with torch.no_grad():
            target_logits = self.classify(self.teacher if self.has_teacher else self.student, weak)
        features = self.student.extract_feat(strong)
        logits = self.logits_of(self.student, features)
        scores = None
        if self.estimator is not None:
            vector = self.student.head.pre_logits(features)
            # While warming up, the estimator learns without touching the encoder, whichever wrapper trains.
            scores = self.estimator(vector.detach() if weight == 0 else vector)
        with torch.autocast(device_type=strong.device.type, enabled=False):
            dtype = compute_dtype(logits)
            z, t = logits.to(dtype), target_logits.to(dtype)
            target = candidate_probs(t, candidates, cfg['temperature'])
            alpha = torch.ones_like(target[:, 0])
            if cfg['entropy_weighting']:
                alpha = candidate_reliability(target, candidates, cfg['reliability_power'])
            losses = dict(prediction_loss=cfg['sup_weight'] * soft_cross_entropy(z, target).mean())
            truth = truth_of(samples, strong.device)
            if scores is not None:
                s = scores.to(dtype) / cfg['estimator_temperature']
                estimated = candidate_probs(s.detach(), candidates)
                soft = zero_loss(losses)
                if cfg['soft_loss'] and weight > 0:
                    soft = weight * (alpha * soft_cross_entropy(z, estimated)).mean()
                losses.update(
                    soft_loss=soft, reliability_loss=(alpha * candidate_kl(target, s, candidates)).mean()
                )
                if truth is not None:
                    losses['estimator_acc'] = (estimated.argmax(dim=1) == truth).to(dtype).mean()
            losses.update(
                reliability=alpha.mean(), candidate_entropy=candidate_entropy(target, candidates).mean()
            )
            if truth is not None:
                losses['target_acc'] = (target.argmax(dim=1) == truth).to(dtype).mean()
        if self.recording:
            self.record = ClassificationRecord(
                inputs=strong.detach(),
                logits=logits.detach(),
                target_logits=t.masked_fill(~candidates, torch.finfo(dtype).min),
                weight=alpha,
                truth=truth,
                class_thresholds=None,
            )
        return losses

    def _objective_losses(
        self, objective: PartialLabelObjective, inputs: dict[str, Tensor], data_samples: dict[str, list[DataSample]]
    ) -> dict[str, Any]:
        """Losses and statistics of one batch under an objective; see :meth:`loss`."""
        views = {branch: get_branch(inputs, branch) for branch in objective.branches}
        teacher_view = get_branch(inputs, objective.TEACHER_BRANCH) if self.has_teacher else None
        first = views[objective.branches[0]]
        samples = get_branch(data_samples, objective.branches[0])
        candidates = candidates_of(samples, self.num_classes).to(first.device)
        iteration = self.iterations_done
        self.next_unsup_weight()  # counts
        vectors, outputs, teacher_vector, teacher_logits = {}, {}, None, None
        if teacher_view is not None:
            with torch.no_grad():
                features = self.teacher.extract_feat(teacher_view)
                teacher_logits = self.logits_of(self.teacher, features)
                if objective.READS_FEATURES:
                    teacher_vector = self.teacher.head.pre_logits(features)
        for branch, view in views.items():
            features = self.student.extract_feat(view)
            outputs[branch] = self.logits_of(self.student, features)
            if objective.READS_FEATURES:
                vectors[branch] = self.student.head.pre_logits(features)
        with torch.autocast(device_type=first.device.type, enabled=False):
            dtype = compute_dtype(*outputs.values())
            batch = PartialLabelBatch(
                candidates=candidates,
                logits={branch: output.to(dtype) for branch, output in outputs.items()},
                sample_ids=sample_ids(samples),
                iteration=iteration,
                teacher_logits=None if teacher_logits is None else teacher_logits.to(dtype),
                features={branch: vector.to(dtype) for branch, vector in vectors.items()},
                teacher_features=None if teacher_vector is None else teacher_vector.to(dtype),
            )
            losses, targets = objective(batch)
            # Targets that are not finite would be read an epoch later, or by another process.
            finite = torch.isfinite(targets).all()
            losses = {
                name: torch.where(finite, value, torch.nan) if 'loss' in name else value
                for name, value in losses.items()
            }
            losses['candidate_entropy'] = candidate_entropy(targets, candidates).mean()
            truth = truth_of(samples, first.device)
            if truth is not None:
                losses['target_acc'] = (targets.argmax(dim=1) == truth).to(dtype).mean()
        if self.recording:
            self.record = ClassificationRecord(
                inputs=first.detach(),
                logits=outputs[objective.branches[0]].detach(),
                target_logits=targets.clamp_min(torch.finfo(dtype).tiny).log(),
                weight=torch.ones_like(targets[:, 0]),
                truth=truth,
                class_thresholds=None,
            )
        return losses


def objective_class(node: Any) -> type[PartialLabelObjective] | None:
    """Class of an objective's config; ``None`` where there is none, or nothing known."""
    kind = class_of(node['type']) if isinstance(node, Mapping) and 'type' in node else None
    return kind if isinstance(kind, type) and issubclass(kind, PartialLabelObjective) else None


def candidates_of(data_samples: Sequence[DataSample], num_classes: int) -> Tensor:
    """The candidate sets of a batch: bool, (N, C).

    Raises:
        ValueError: If a sample has none, an empty one, or one of another number of classes.
    """
    sets = []
    for sample in data_samples:
        mask = sample.get('candidates')
        if mask is None:
            raise ValueError(
                'the samples have no candidate sets: put mmssl.PartialLabelDataset around the data set of '
                "train_dataloader, or mmssl.CandidateLabels and PackInputs(algorithm_keys=['candidates']) into its "
                'pipeline'
            )
        mask = torch.as_tensor(mask).bool()
        if mask.shape != (num_classes,) or not mask.any():
            raise ValueError(
                f'a candidate set must be a mask of {num_classes} classes, those of model.classifier.head, with one '
                f'label at least; got the shape {tuple(mask.shape)} and {int(mask.sum())} labels'
            )
        sets.append(mask)
    return torch.stack(sets)


def truth_of(data_samples: Sequence[DataSample], device: torch.device) -> Tensor | None:
    """``true_label`` of all samples, int64, (N,); ``None`` if one has none. No loss reads it."""
    labels = [sample.metainfo.get('true_label') for sample in data_samples]
    return None if any(label is None for label in labels) else torch.tensor(labels, device=device)
