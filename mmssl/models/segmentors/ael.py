"""Adaptive equalization learning: a mean teacher that turns to the classes it has not yet learned."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from mmengine.dataset import pseudo_collate
from mmengine.dist import all_reduce, get_world_size
from mmengine.structures import PixelData
from mmseg.models.segmentors import BaseSegmentor
from mmseg.structures import SegDataSample
from torch import Tensor

from mmssl.functional.ael import box_masks, class_presence, confidence_weight
from mmssl.models.ael import ConfidenceBank, EqualizationSampling, PresenceBank
from mmssl.models.layerwise import SeenLayer
from mmssl.models.mixing import AdaptiveCopyPaste, AdaptiveCutMix
from mmssl.models.mixing.adaptive_cutmix import CutMixPlan
from mmssl.models.seeded import global_indices
from mmssl.models.semi_base import (
    check_choice,
    check_count,
    check_node,
    check_weight,
    get_branch,
    resolve_options,
    scale_losses,
)
from mmssl.registry import MODELS

from .mean_teacher import ConsistencyTerm, MeanTeacherSegmentor

BANK_DEFAULTS = dict(momentum=0.001, warmup=True, absent='skip', sync=True, init='zeros')


@dataclass
class Mixing:
    """Adaptive CutMix of one iteration.

    Attributes:
        plans: One for each receiving image.
        donors: Place of each donor in the batch with the donors behind it; empty while donors are of the batch itself
            and not yet chosen.
        count: Unlabeled images of the batch, without donors.
        images: ``sample_idx`` of batch and donors, or ``None`` if no presence bank is kept.
        places: Places that order the images of all ranks.
        masks: Where the donors show, bool, (n, 1, H, W), once the teacher has seen the images.
    """

    plans: list[CutMixPlan]
    donors: list[int]
    count: int
    images: list[int] | None
    places: list[int]
    masks: Tensor | None = None


@MODELS.register_module()
class AELSegmentor(MeanTeacherSegmentor):
    r"""AEL (Hu et al., NeurIPS 2021), and with ``unsup_loss=dict(type='mmssl.FPLLoss')`` FPL on it (Qiao et al., 2023).

    A mean teacher with a confidence bank ``Conf``, the mean probability that the student gives to the true class of
    labeled pixels, by class. With student :math:`f`, teacher :math:`g`, labeled images :math:`x_l` after adaptive
    copy-paste and unlabeled images :math:`x_u` after adaptive CutMix,

    .. math:: L = w_s L^{sup} + \lambda [L^{cons}(x_l) + L^{cons}(x_u)], \qquad
              L^{cons}(x) = \sum_s \frac{m_s c_s^\gamma}{\sum_r m_r c_r^\gamma}\, \ell(f(x)_s, g(x)_s)

    over pixels s, c being the teacher's confidence and m the mask of adaptive equalization sampling. The sums run over
    the pixels of all processes.

    It needs two hooks: ``mmssl.MeanTeacherHook``, and ``mmssl.AELHook``, which gives it the data to choose donors from.
    The banks are in the checkpoint. BatchNorm: see :class:`MeanTeacherSegmentor`; the teacher sees the unlabeled images
    and their donors in one forward and the labeled ones in another.

    ``semi_train_cfg`` takes what :class:`MeanTeacherSegmentor` takes, and each part below can be switched off; with all
    of them off (``None``, ``False`` and ``mix=None``) this is that model.

    - ``mix``: adaptive CutMix, ``dict(type='mmssl.AdaptiveCutMix')``, the default; any other mixing; or ``None``.
    - ``copy_paste``: adaptive copy-paste, ``dict(type='mmssl.AdaptiveCopyPaste')``, the default; or ``None``.
    - ``sampling``: adaptive equalization sampling, ``dict(type='mmssl.EqualizationSampling')``, the default; or
      ``None``.
    - ``reweight_exponent``: :math:`\gamma` >= 0 of dynamic re-weighting. Default 2; ``None`` or 0 is off.
    - ``labeled_consistency``: whether the labeled images have a consistency loss too. Default ``True``, as published.
    - ``confidence_bank``: options of the bank: ``momentum``, ``warmup``, ``absent``, ``sync``, ``init``; see
      ``mmssl.models.ael.ConfidenceBank``.
    - ``strong_branches``: default ``('unsup_weak',)``, as published: mixing is the only strong augmentation.
    - ``normalize``: over which pixels the weights sum to 1: ``'global'``, of all processes (default), or ``'process'``,
      as in the released code.
    - ``padding_label``: class of the labeled pixels that the data preprocessor pads; 0 in the released code. Default
      ``None``: they are ignored.
    - ``official_grad_scale``: whether all losses are divided by the number of processes before gradients are averaged
      over them, as in the released code. Default ``False``.

    A threshold on the teacher's confidence, 0.7 in the released VOC settings, is that of the loss:
    ``unsup_loss=dict(type='mmssl.HardPseudoLabelLoss', threshold=0.7)``. The released teacher is the default one, with
    ``mmssl.MeanTeacherHook(momentum=0.01)``: in train mode, with BatchNorm statistics of its own.

    Args:
        segmentor: Config of a stock mmseg segmentor.
        data_preprocessor: See :class:`SemiBaseSegmentor`.
        semi_train_cfg: See above.
        semi_test_cfg: ``predict_on`` is ``'teacher'`` (default, as published), ``'student'`` or ``'ensemble'``.
        init_cfg: As in mmengine.
    """

    EXTRA_MIXING: ClassVar[tuple[type, ...]] = (AdaptiveCutMix,)
    TRAIN_DEFAULTS: ClassVar[dict[str, Any]] = dict(
        MeanTeacherSegmentor.TRAIN_DEFAULTS,
        mix=dict(type='mmssl.AdaptiveCutMix'),
        strong_branches=('unsup_weak',),
        copy_paste=dict(type='mmssl.AdaptiveCopyPaste'),
        sampling=dict(type='mmssl.EqualizationSampling'),
        reweight_exponent=2.0,
        labeled_consistency=True,
        confidence_bank=None,
        normalize='global',
        padding_label=None,
        official_grad_scale=False,
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
        for key in ('copy_paste', 'sampling'):
            check_node(cfg[key], f'semi_train_cfg.{key}', optional=True)
        for key in ('labeled_consistency', 'official_grad_scale'):
            check_choice(cfg[key], (True, False), f'semi_train_cfg.{key}')
        check_choice(cfg['normalize'], ('global', 'process'), 'semi_train_cfg.normalize')
        self.reweight_exponent = 0.0 if cfg['reweight_exponent'] is None else cfg['reweight_exponent']
        check_weight(self.reweight_exponent, 'semi_train_cfg.reweight_exponent')
        if cfg['padding_label'] is not None:
            check_count(cfg['padding_label'], 'semi_train_cfg.padding_label')
            check_choice(cfg['padding_label'], range(self.num_classes), 'semi_train_cfg.padding_label')
        self.copy_paste = self._build_part('copy_paste', AdaptiveCopyPaste)
        self.sampling = self._build_part('sampling', EqualizationSampling)
        self.adapts_mix = isinstance(self.mix, AdaptiveCutMix)
        bank = resolve_options(cfg['confidence_bank'], BANK_DEFAULTS, 'semi_train_cfg.confidence_bank')
        used = self.adapts_mix or self.copy_paste is not None or self.sampling is not None
        self.confidence_bank = ConfidenceBank(self.num_classes, **bank) if used else None
        from_dataset = self.adapts_mix and self.mix.donor == 'dataset'
        self.presence_bank = PresenceBank(self.num_classes) if from_dataset else None
        self.labeled_source: Any = None
        self.unlabeled_source: Any = None
        self._labeled_per_unit: int | None = None
        self._mixing: Mixing | None = None
        self._units = 1
        self._statistics: dict[str, Tensor] = {}

    def _build_part(self, key: str, kind: type) -> Any:
        node = self.semi_train_cfg[key]
        part = None if node is None else MODELS.build(node)
        if part is not None and not isinstance(part, kind):
            raise ValueError(
                f'model.semi_train_cfg.{key} must be None or a mmssl.{kind.__name__}, got {type(part).__name__}'
            )
        return part

    # --- the data -------------------------------------------------------------------------------------------------

    @classmethod
    def required_hooks(cls, semi_train_cfg: Mapping[str, Any]) -> tuple[str, ...]:
        """Those of the mean teacher, and ``mmssl.AELHook`` if donors come from the data set."""
        mix, copy_paste = ({**cls.TRAIN_DEFAULTS, **semi_train_cfg}[key] for key in ('mix', 'copy_paste'))
        adapts = isinstance(mix, Mapping) and str(mix.get('type')).endswith('AdaptiveCutMix')
        loads = copy_paste is not None or (adapts and mix.get('donor', 'dataset') == 'dataset')
        return (*super().required_hooks(semi_train_cfg), *(('mmssl.AELHook',) if loads else ()))

    @property
    def copy_paste_pipeline(self) -> list[dict] | None:
        """Transforms of the images that copy-paste takes from, where they are not those of the labeled source."""
        return None if self.copy_paste is None else self.copy_paste.pipeline

    def attach_sources(
        self,
        labeled: Any,
        unlabeled: Any,
        class_names: Sequence[str] | None,
        labeled_per_unit: int | None = None,
        resumed: bool = False,
    ) -> None:
        """Take the sources that donors are loaded from; ``mmssl.AELHook`` calls this before training.

        Args:
            labeled: Has ``len``, ``load`` and ``fingerprint`` as ``mmssl.datasets.DonorSource``.
            unlabeled: Likewise.
            class_names: Classes of the labeled source, or ``None`` if it states none.
            labeled_per_unit: Its share in ``train_dataloader.sampler.source_ratio``. Default: ``None``, found from the
                batch.
            resumed: Whether training goes on from a checkpoint.

        Raises:
            ValueError: If a class that the config names does not exist, a resumed run has another unlabeled list, or
                donors come without their label or their place in the data set.
        """
        # One donor of each kind is loaded now, since the first one may be needed only long after the start.
        if self.copy_paste is not None:
            self.copy_paste.resolve_classes(class_names, self.num_classes)
            if 'gt_sem_seg' not in labeled.load(0, 0, 0, 0)['data_samples']['sup']:
                key = f'{labeled.key}.pipeline'
                if self.copy_paste.pipeline is not None:
                    key = 'model.semi_train_cfg.copy_paste.pipeline'
                raise ValueError(f'{key} loads no label (LoadAnnotations), but adaptive copy-paste pastes it too')
        if self.presence_bank is not None:
            sample_indices([unlabeled.load(0, 0, 0, 0)['data_samples']['unsup_weak']], unlabeled.key)
            self.presence_bank.resize(len(unlabeled), unlabeled.fingerprint(), resumed)
        self.labeled_source, self.unlabeled_source = labeled, unlabeled
        self._labeled_per_unit = labeled_per_unit

    def _check_sources(self) -> None:
        missing = self.labeled_source is None and (self.copy_paste is not None or self.presence_bank is not None)
        if missing:
            parts = [key for key in ('mix', 'copy_paste') if self.semi_train_cfg[key] is not None]
            raise ValueError(
                f"custom_hooks must hold mmssl.AELHook: model.semi_train_cfg.{' and '.join(parts)} of mmssl."
                f"AELSegmentor load images from the training data, which only the hook knows: add "
                "dict(type='mmssl.AELHook'). (A list of custom_hooks in an inheriting config replaces the inherited "
                'one.)'
            )

    def _places(self, count: int) -> list[int]:
        """Places, in the batch of all processes, of ``count`` images that belong in equal parts to this one's units.

        Where they do not (one mixed image for each process), the places are still unique.
        """
        return global_indices(count, count // self._units if count % self._units == 0 else 1)

    # --- the loss -------------------------------------------------------------------------------------------------

    def loss(self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]) -> dict[str, Any]:
        """Losses and statistics of one batch, as :meth:`MeanTeacherSegmentor.loss`.

        Returns:
            In addition the statistics ``sup_pasted_ratio`` and ``unsup_pasted_ratio`` (share of the pixels that were
            pasted), ``unsup_component_ratio`` (share of the CutMix boxes that hold a component of their class),
            ``unsup_kept_ratio`` (pixels that sampling keeps), ``unsup_mean_weight`` (of kept pixels, before they are
            normalized), and ``sup_confidence_{min,mean,max}`` of the bank.
        """
        self._check_sources()
        self._statistics = {}
        labeled, unlabeled = get_branch(inputs, 'sup'), get_branch(inputs, 'unsup_weak')
        if self.adapts_mix and self.presence_bank is None and len(unlabeled) < 2:
            raise ValueError(
                "model.semi_train_cfg.mix.donor='batch' needs at least 2 unlabeled images per GPU, got 1; change "
                "train_dataloader.batch_size or train_dataloader.sampler.source_ratio, or take donor='dataset'"
            )
        self._units = (
            math.gcd(len(labeled), len(unlabeled))
            if self._labeled_per_unit is None
            else max(len(labeled) // self._labeled_per_unit, 1)
        )
        if self.semi_train_cfg['padding_label'] is not None:
            samples = [self._label_padding(sample) for sample in get_branch(data_samples, 'sup')]
            data_samples = dict(data_samples, sup=samples)
        if self.copy_paste is not None:
            labeled, samples = self.paste(labeled, get_branch(data_samples, 'sup'))
            inputs, data_samples = dict(inputs, sup=labeled), dict(data_samples, sup=samples)
        losses = super().loss(inputs, data_samples)
        if self.confidence_bank is not None:
            self._note('sup', self.confidence_bank.statistics())
        losses.update(self._statistics)
        if self.semi_train_cfg['official_grad_scale']:
            losses = scale_losses(losses, 1 / get_world_size())
        return losses

    def _label_padding(self, sample: SegDataSample) -> SegDataSample:
        label = sample.gt_sem_seg.data.clone()
        height, width = label.shape[-2:]
        left, right, top, bottom = sample.metainfo.get('padding_size', (0, 0, 0, 0))
        inside = label[:, top : height - bottom, left : width - right].clone()
        label.fill_(self.semi_train_cfg['padding_label'])
        label[:, top : height - bottom, left : width - right] = inside
        sample = sample.clone()
        sample.gt_sem_seg = PixelData(data=label)
        return sample

    def _note(self, prefix: str, statistics: Mapping[str, Tensor]) -> None:
        self._statistics.update({f'{prefix}_{name}': value.detach().clone() for name, value in statistics.items()})

    def supervised_loss(
        self,
        student: BaseSegmentor,
        inputs: Tensor,
        data_samples: list[SegDataSample],
        with_logits: bool,
        for_unsupervised: bool = True,
    ) -> tuple[dict[str, Tensor], Tensor | None, list[SeenLayer]]:
        """The student's own losses; what it is sure of goes into the confidence bank."""
        for_bank = self.confidence_bank is not None
        losses, logits, seen = super().supervised_loss(
            student, inputs, data_samples, with_logits or for_bank, with_logits and for_unsupervised
        )
        if self.confidence_bank is not None:
            labels = torch.cat([sample.gt_sem_seg.data for sample in data_samples]).to(inputs.device).long()
            self.confidence_bank.update(logits, labels, self.ignore_index)
        return losses, logits, seen

    def needs_labeled_logits(self, weight: float) -> bool:
        """Whether there is a consistency loss on labeled images."""
        return self.semi_train_cfg['labeled_consistency'] and weight > 0

    def labeled_term(
        self, inputs: Tensor, data_samples: list[SegDataSample], logits: Tensor | None
    ) -> ConsistencyTerm | None:
        """The labeled images against the teacher, which sees them as the student does."""
        if not self.semi_train_cfg['labeled_consistency']:
            return None
        return ConsistencyTerm(
            name='labeled',
            share=1.0,
            images=inputs,
            target_logits=self.teacher_logits(inputs),
            valid=self.valid_mask(data_samples, inputs),
            logits=logits,
        )

    def pixel_arguments(self, term: ConsistencyTerm) -> dict[str, Any]:
        """Weights of sum 1: the teacher's confidence to the power of ``reweight_exponent``, on the sampled pixels."""
        if self.sampling is None and not self.reweight_exponent:
            return super().pixel_arguments(term)
        weight = confidence_weight(term.target_logits, self.reweight_exponent)
        counted = torch.ones_like(weight) if term.valid is None else term.valid.to(weight.dtype)
        kept = counted
        if self.sampling is not None:
            places = self._places(len(term.images))
            kept = kept * self.sampling(term.logits.detach().argmax(dim=1), self.confidence_bank.confidence, places)
        weight = weight * kept
        total, num_kept, num_counted = weight.sum(), kept.sum(), counted.sum()
        if term.name != 'labeled' and 'unsup_kept_ratio' not in self._statistics:
            self._note('unsup', dict(
                kept_ratio=num_kept / num_counted.clamp(min=1),
                mean_weight=total / num_kept.clamp(min=1),
            ))  # fmt: skip
        if self.semi_train_cfg['normalize'] == 'global':
            # The mean over processes, since gradients are averaged over them.
            all_reduce(total, 'mean')
        arguments = dict(weight=weight, avg_factor=total)
        return arguments if term.valid is None else dict(arguments, valid=term.valid)

    # --- adaptive copy-paste --------------------------------------------------------------------------------------

    def paste(self, inputs: Tensor, data_samples: list[SegDataSample]) -> tuple[Tensor, list[SegDataSample]]:
        """Paste pixels of other labeled images onto those of the batch.

        Args:
            inputs: Labeled images, shape (N, 3, H, W).
            data_samples: With ``gt_sem_seg``.

        Returns:
            New images and data samples.
        """
        places = self._places(len(inputs))
        plans = self.copy_paste.plan(places, self.confidence_bank.confidence, len(self.labeled_source))
        pasted = inputs.new_zeros((), dtype=torch.float32)
        if plans:
            packed = pseudo_collate([self.labeled_source.load(plan.donor, *plan.key) for plan in plans])
            extra = self.data_preprocessor.extra(packed, inputs.shape[-2:])
            donors, donor_samples = extra['inputs']['sup'], extra['data_samples']['sup']
            inputs, data_samples = inputs.clone(), list(data_samples)
            for plan, donor, donor_sample in zip(plans, donors, donor_samples, strict=True):
                sample = data_samples[plan.target].clone()
                label, donor_label = (item.gt_sem_seg.data[0].to(inputs.device) for item in (sample, donor_sample))
                image, label, mask = self.copy_paste(inputs[plan.target], label, donor, donor_label, plan.classes)
                inputs[plan.target] = image
                sample.gt_sem_seg = PixelData(data=label[None])
                data_samples[plan.target] = sample
                pasted = pasted + mask.float().mean()
        self._note('sup', dict(pasted_ratio=pasted / len(inputs)))
        return inputs, data_samples

    # --- adaptive CutMix ------------------------------------------------------------------------------------------

    def unlabeled_terms(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> list[ConsistencyTerm]:
        """As :meth:`MeanTeacherSegmentor.unlabeled_terms`, with the donors of adaptive CutMix behind the batch.

        So the teacher sees both in one forward; :meth:`mix_view` then mixes them, and the student sees the mixed ones.
        """
        if self.adapts_mix:
            inputs, data_samples = self.with_donors(inputs, data_samples)
        terms = super().unlabeled_terms(inputs, data_samples)
        self._mixing = None
        return terms

    def with_donors(
        self, inputs: dict[str, Tensor], data_samples: dict[str, list[SegDataSample]]
    ) -> tuple[dict[str, Tensor], dict[str, list[SegDataSample]]]:
        """Choose this iteration's donors, and append them to the branches of the unlabeled images.

        Raises:
            ValueError: If the images of the batch do not say which they are.
        """
        weak = get_branch(inputs, 'unsup_weak')
        count = len(weak)
        places = self._places(count)
        plans = self.mix.plan(places, self.confidence_bank.confidence)
        self._mixing = Mixing(plans=plans, donors=[], count=count, images=None, places=places)
        if self.presence_bank is None:
            return inputs, data_samples
        everyone = range(len(self.presence_bank))
        chosen = [
            self.mix.choose_donor(plan, self.presence_bank.images_with(plan.class_id), everyone) for plan in plans
        ]
        packed = pseudo_collate(
            [self.unlabeled_source.load(image, *plan.key) for image, plan in zip(chosen, plans, strict=True)]
        )
        extra = self.data_preprocessor.extra(packed, weak.shape[-2:])
        self._mixing.donors = list(range(count, count + len(plans)))
        branches = ('unsup_weak', *self.semi_train_cfg['strong_branches'])
        inputs, data_samples = dict(inputs), dict(data_samples)
        for branch in dict.fromkeys(branches):
            inputs[branch] = torch.cat([get_branch(inputs, branch), get_branch(extra['inputs'], branch)])
            data_samples[branch] = [
                *get_branch(data_samples, branch), *get_branch(extra['data_samples'], branch),
            ]  # fmt: skip
        self._mixing.images = sample_indices(data_samples['unsup_weak'], self.unlabeled_source.key)
        # Donors were looked at after the images of the batch, on every rank.
        behind = get_world_size() * count
        self._mixing.places = [*places, *(behind + plan.key[-1] for plan in plans)]
        return inputs, data_samples

    def mix_view(self, view: ConsistencyTerm, data_samples: Sequence[SegDataSample]) -> ConsistencyTerm:
        """Paste the regions of the donors onto the images of the batch, alike in every view."""
        if not self.adapts_mix:
            return super().mix_view(view, data_samples)
        mixing = self._mixing
        if mixing.masks is None:
            mixing.masks = self._masks(mixing, view.target_logits)
        targets = [plan.target for plan in mixing.plans]

        def paste(batch: Tensor) -> Tensor:
            return self.mix(batch[targets], batch[mixing.donors], mixing.masks)

        return replace(
            view,
            images=paste(view.images),
            target_logits=paste(view.target_logits),
            valid=None if view.valid is None else paste(view.valid[:, None])[:, 0],
            truth=None if view.truth is None else paste(view.truth[:, None])[:, 0],
        )

    @torch.no_grad()
    def _masks(self, mixing: Mixing, target_logits: Tensor) -> Tensor:
        """Where the donors show, by what the teacher sees in them; the presence bank takes in what it sees."""
        label = target_logits.argmax(dim=1)
        present = class_presence(label, self.num_classes, self.mix.presence_thresh)
        if self.presence_bank is not None:
            self.presence_bank.update(mixing.images, mixing.places, present)
        else:
            present = present.cpu()
            for plan in mixing.plans:
                others = [i for i in range(mixing.count) if i != plan.target]
                having = [i for i in others if present[i, plan.class_id]]
                mixing.donors.append(self.mix.choose_donor(plan, having, others))
        donor_labels = label[mixing.donors].cpu().numpy()
        found = [self.mix.box(plan, donor) for plan, donor in zip(mixing.plans, donor_labels, strict=True)]
        height, width = label.shape[-2:]
        areas = [(bottom - top) * (right - left) for (top, left, bottom, right), _ in found]
        self._note('unsup', dict(
            pasted_ratio=torch.tensor(sum(areas) / (len(found) * height * width), device=label.device),
            component_ratio=torch.tensor(sum(hit for _, hit in found) / len(found), device=label.device),
        ))  # fmt: skip
        return box_masks([box for box, _ in found], height, width).to(label.device)


def sample_indices(data_samples: Sequence[SegDataSample], key: str) -> list[int]:
    """Places of the images in their data set.

    Args:
        data_samples: With ``sample_idx`` in their meta information.
        key: Config key of the data set, for the message.

    Raises:
        ValueError: If one does not say.
    """
    if not all('sample_idx' in sample.metainfo for sample in data_samples):
        raise ValueError(
            f'{key}.pipeline: mmssl.AdaptiveCutMix keeps account of each unlabeled image, so its data sample must '
            "say which it is (`sample_idx`): pack with dict(type='mmssl.PackSemiSegInputs'), or add 'sample_idx' to "
            '`meta_keys`'
        )
    return [int(sample.metainfo['sample_idx']) for sample in data_samples]
