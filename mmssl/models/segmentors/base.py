"""Base of the semi-supervised segmentors: stock students, their supervised loss, and prediction by one of them."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from mmengine.logging import print_log
from mmseg.models.decode_heads.decode_head import BaseDecodeHead
from mmseg.models.segmentors import BaseSegmentor, EncoderDecoder
from mmseg.models.utils import resize
from mmseg.structures import SegDataSample
from mmseg.utils import add_prefix
from torch import Tensor, nn

from mmssl.models.collapse_guard import CollapseGuard
from mmssl.models.layerwise import SeenLayer
from mmssl.models.semi_base import (
    SemiModel,
    check_choice,
    multi_branch_preprocessor,
    same_parameters,
    statistics_kept,
)


@dataclass
class UnsupervisedRecord:
    """What the unsupervised loss of one iteration saw, for hooks; everything detached.

    Attributes:
        inputs: Normalized images that the students saw, shape (N, 3, H, W).
        logits: Student logits, shape (N, C, H, W).
        target_logits: Logits that made the pseudo labels, shape (N, C, H, W).
        truth: Hidden labels, int64, shape (N, H, W), or ``None`` where the data set has none.
        valid: False on padding, bool, shape (N, H, W), or ``None`` if padding is not tracked or not left out.
        ignore_index: The label in ``truth`` that does not count.
    """

    inputs: Tensor
    logits: Tensor
    target_logits: Tensor
    truth: Tensor | None
    valid: Tensor | None
    ignore_index: int


class SemiBaseSegmentor(SemiModel, BaseSegmentor):
    """Wraps stock segmentors that learn from labeled and unlabeled images.

    A sub-class names its sub-models in ``MODELS_HELD``, the one that predicts by default in ``PREDICT_ON`` if it is not
    the first, its options in ``TRAIN_DEFAULTS``, and writes ``loss``.

    Args:
        segmentor: Config of a stock mmseg segmentor, unchanged; each sub-model is built from it.
        data_preprocessor: Config of a data preprocessor; any but a ``mmssl.MultiBranchDataPreprocessor`` is wrapped in
            one. Default: the segmentor's own.
        semi_train_cfg: Options of the method; an unknown key is an error.
        semi_test_cfg: ``dict(predict_on=...)``: the sub-model that predicts, or ``'ensemble'`` for the mean of their
            probabilities. Default: ``PREDICT_ON``, or the first sub-model.
        init_cfg: As in mmengine.

    Raises:
        KeyError: If ``semi_train_cfg`` or ``semi_test_cfg`` has an unknown key.
        ValueError: If an option has a value that is not allowed, or the segmentor has a single output channel.
    """

    TRAIN_DEFAULTS: ClassVar[dict[str, Any]] = dict(SemiModel.TRAIN_DEFAULTS, ignore_padding=False)

    def __init__(
        self,
        segmentor: dict,
        data_preprocessor: dict | None = None,
        semi_train_cfg: dict | None = None,
        semi_test_cfg: dict | None = None,
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        preprocessor = multi_branch_preprocessor(data_preprocessor, segmentor, 'an mmseg segmentor', 'segmentor')
        super().__init__(data_preprocessor=preprocessor, init_cfg=init_cfg)
        self.init_semi(segmentor, semi_train_cfg, semi_test_cfg)
        check_choice(self.semi_train_cfg['ignore_padding'], (True, False), 'semi_train_cfg.ignore_padding')
        first = self.models_held[0]
        if not isinstance(first, BaseSegmentor):
            raise ValueError(f'model.segmentor must be an mmseg segmentor, got {type(first).__name__}')
        if first.out_channels < 2:
            raise ValueError(
                'model.segmentor.decode_head.out_channels must be at least 2, since pseudo labels are drawn from a '
                f'softmax over the classes, got {first.out_channels}; give a binary task two classes'
            )
        self.num_classes, self.out_channels = first.num_classes, first.out_channels
        self.align_corners = first.align_corners
        self.collapse_guard = CollapseGuard(self.out_channels)
        self._checked_difference = False

    @property
    def ignore_index(self) -> int:
        """Label that no loss counts, as the decode head has it."""
        head = self.models_held[0].decode_head
        return (head[-1] if isinstance(head, nn.ModuleList) else head).ignore_index

    # --- training -----------------------------------------------------------------------------------------------

    def segment(self, student: BaseSegmentor, inputs: Tensor) -> Tensor:
        """Logits of ``student`` at input resolution.

        Args:
            student: A stock segmentor.
            inputs: Normalized images, shape (N, 3, H, W).

        Returns:
            Shape (N, C, H, W).
        """
        # A torch.Size is what makes a decode head of any mmseg version resize to exactly this shape.
        metas = [dict(img_shape=inputs.shape[2:])] * len(inputs)
        return student.encode_decode(inputs, metas)

    def resized(self, logits: Tensor, inputs: Tensor) -> Tensor:
        """What a layer returned as logits, at the resolution of ``inputs``, as the stock segmentor resizes them."""
        return resize(logits, size=inputs.shape[2:], mode='bilinear', align_corners=self.align_corners)

    def segment_unlabeled(self, student: BaseSegmentor, inputs: Tensor) -> tuple[Tensor, list[SeenLayer]]:
        """As :meth:`segment`, for a forward whose logits the unsupervised loss alone learns from.

        Args:
            student: A stock segmentor.
            inputs: Normalized images, shape (N, 3, H, W).

        Returns:
            Logits of shape (N, C, H, W), and what the averaged layer saw, if there is one.
        """
        with self.unsupervised_forward() as seen:
            logits = self.segment(student, inputs)
        self.check_final(seen, logits, lambda output: self.resized(output, inputs))
        return logits, seen

    def supervised_loss(
        self,
        student: BaseSegmentor,
        inputs: Tensor,
        data_samples: list[SegDataSample],
        with_logits: bool,
        for_unsupervised: bool = True,
    ) -> tuple[dict[str, Tensor], Tensor | None, list[SeenLayer]]:
        """The student's own losses on labeled images, and its logits where the unsupervised loss needs them.

        One forward makes both, unless the head has a loss of its own making or layers are treated apart
        (``mmssl.GradReLUHook``, ``mmssl.EMAHeadHook``). Then the logits come from a second pass of the features through
        the head, or from a second forward, if the head cannot be run alone or Grad-ReLU names layers outside it. It
        draws its own dropout, and where layers are treated apart it leaves running statistics as they are.

        Args:
            student: A stock segmentor.
            inputs: Normalized images, shape (N, 3, H, W).
            data_samples: With ``gt_sem_seg``.
            with_logits: Whether to return the logits as well.
            for_unsupervised: Whether the unsupervised loss learns from these logits.

        Returns:
            The losses under the names the stock segmentor gives them, logits of shape (N, C, H, W) or ``None``, and
            what the averaged layer saw on their way, if there is one.
        """
        if not with_logits:
            return student.loss(inputs, data_samples), None, []
        head = getattr(student, 'decode_head', None)
        shareable = (
            type(student).loss is EncoderDecoder.loss
            and isinstance(head, BaseDecodeHead)
            and type(head).loss is BaseDecodeHead.loss
            and type(head).predict is BaseDecodeHead.predict
            and type(head).predict_by_feat is BaseDecodeHead.predict_by_feat
        )
        apart = self.is_layerwise and for_unsupervised
        if not shareable or (apart and self.holds_layers_outside('decode_head')):
            # The head computes its loss in its own way (cascades, queries, points): it has to run once more.
            losses = student.loss(inputs, data_samples)
            if not apart:
                return losses, self.segment(student, inputs), []
            with statistics_kept(student):
                return losses, *self.segment_unlabeled(student, inputs)
        features = student.extract_feat(inputs)
        output = head.forward(features)
        losses = add_prefix(head.loss_by_feat(output, data_samples), 'decode')
        if student.with_auxiliary_head:
            losses.update(student._auxiliary_head_forward_train(features, data_samples))
        seen: list[SeenLayer] = []
        if apart:
            with self.unsupervised_forward() as seen, statistics_kept(head):
                output = head.forward(features)
        logits = self.resized(output, inputs)
        if apart:
            self.check_final(seen, logits, lambda layer_output: self.resized(layer_output, inputs))
        return losses, logits, seen

    def valid_mask(self, data_samples: Sequence[SegDataSample], inputs: Tensor) -> Tensor | None:
        """Where the images are not padding, if ``semi_train_cfg.ignore_padding`` asks for it.

        Args:
            data_samples: Their ``valid_mask`` (from ``mmssl.TrackPadding``) or ``padding_size`` says what is padding.
            inputs: Shape (N, 3, H, W).

        Returns:
            Bool, shape (N, H, W), or ``None`` if padding counts like any pixel.
        """
        if not self.semi_train_cfg['ignore_padding']:
            return None
        height, width = inputs.shape[2:]
        valid = inputs.new_ones((len(inputs), height, width), dtype=torch.bool)
        for mask, sample in zip(valid, data_samples, strict=True):
            left, right, top, bottom = sample.metainfo.get('padding_size', (0, 0, 0, 0))
            mask[:top], mask[height - bottom :] = False, False
            mask[:, :left], mask[:, width - right :] = False, False
            if 'valid_mask' in sample:
                mask &= sample.valid_mask.data.to(mask.device).view(height, width)
        return valid

    def hidden_truth(self, data_samples: Sequence[SegDataSample]) -> Tensor | None:
        """Labels of unlabeled images where the data set gives them for analysis: int64, (N, H, W), or ``None``."""
        if not all('gt_sem_seg' in sample for sample in data_samples):
            return None
        return torch.cat([sample.gt_sem_seg.data for sample in data_samples]).long()

    def watch_pseudo_labels(
        self, labeled_samples: Sequence[SegDataSample], target_logits: Sequence[Tensor], valid: Tensor | None
    ) -> None:
        """Warn once if one class takes nearly all pseudo labels, see :class:`CollapseGuard`.

        Args:
            labeled_samples: With ``gt_sem_seg``.
            target_logits: What the pseudo labels are made from, shape (N, C, H, W), for each model that makes some.
            valid: False on padding, bool, shape (N, H, W), or ``None``.
        """
        labels = [sample.gt_sem_seg.data for sample in labeled_samples]
        self.collapse_guard(self.iterations_done, labels, target_logits, valid)

    def warn_if_same(self, first: str, second: str) -> None:
        """Warn once if two students that should teach each other hold the same decode head."""
        if self._checked_difference:
            return
        self._checked_difference = True
        if same_parameters(getattr(self, first).decode_head, getattr(self, second).decode_head):
            print_log(
                f'{first} and {second} start from the same decode head, so their pseudo labels differ through dropout '
                'alone and the unsupervised loss teaches almost nothing: start from a checkpoint of the backbone '
                '(model.segmentor.backbone.init_cfg) instead of a whole segmentor',
                logger='current',
                level=logging.WARNING,
            )

    # --- prediction: the stock student's, unchanged ----------------------------------------------------------------

    def predict(self, inputs: Tensor, data_samples: list[SegDataSample] | None = None) -> list[SegDataSample]:
        """Segment images as the stock segmentor does.

        Args:
            inputs: Normalized images, shape (N, 3, H, W).
            data_samples: Receive ``pred_sem_seg`` and ``seg_logits``.
        """
        if self.semi_test_cfg['predict_on'] != 'ensemble':
            return self.predictor.predict(inputs, data_samples)
        if data_samples is None:
            metas = [
                dict(ori_shape=shape, img_shape=shape, pad_shape=shape, padding_size=[0, 0, 0, 0])
                for shape in [inputs.shape[2:]] * len(inputs)
            ]
        else:
            metas = [sample.metainfo for sample in data_samples]
        probs = torch.stack([model.inference(inputs, metas).softmax(dim=1) for model in self.models_held]).mean(dim=0)
        # Logits again, since the stock post-processing resizes logits and takes their arg-max.
        logits = probs.clamp_min(torch.finfo(probs.dtype).tiny).log()
        return self.predictor.postprocess_result(logits, data_samples)

    def _forward(self, inputs: Tensor, data_samples: list[SegDataSample] | None = None) -> Tensor:
        return self.predictor._forward(inputs, data_samples)

    def encode_decode(self, inputs: Tensor, batch_img_metas: list[dict]) -> Tensor:
        """Logits of the predicting sub-model."""
        return self.predictor.encode_decode(inputs, batch_img_metas)
