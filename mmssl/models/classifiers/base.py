"""Base of the semi-supervised classifiers: stock students, their supervised loss, and prediction by one of them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from mmpretrain.models.classifiers import BaseClassifier
from mmpretrain.models.heads import ClsHead
from mmpretrain.structures import DataSample
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from mmssl.models.collapse_guard import CollapseGuard
from mmssl.models.semi_base import SemiModel, multi_branch_preprocessor


@dataclass
class ClassificationRecord:
    """What the unsupervised loss of one iteration saw, for hooks; everything detached.

    Attributes:
        inputs: Normalized images that the student learned from, shape (N, 3, H, W).
        logits: Student logits, shape (N, C).
        target_logits: Logits that made the pseudo labels, shape (N, C).
        weight: How much each pseudo label counts, in [0, 1], shape (N,).
        truth: Hidden labels, int64, shape (N,), or ``None`` where the data set has none.
        class_thresholds: Threshold of each class, shape (C,), or ``None`` where the method has none.
    """

    inputs: Tensor
    logits: Tensor
    target_logits: Tensor
    weight: Tensor
    truth: Tensor | None
    class_thresholds: Tensor | None


class SemiBaseClassifier(SemiModel, BaseClassifier):
    """Wraps stock classifiers that learn from labeled and unlabeled images.

    A sub-class names its sub-models in ``MODELS_HELD``, the one that predicts by default in ``PREDICT_ON`` if it is not
    the first, its options in ``TRAIN_DEFAULTS``, and writes ``loss``.

    Args:
        classifier: Config of a stock mmpretrain classifier, unchanged; each sub-model is built from it. Its head may be
            any that is derived from ``ClsHead`` and returns logits.
        data_preprocessor: Config of a data preprocessor; any but a ``mmssl.MultiBranchDataPreprocessor`` is wrapped in
            one. Default: the classifier's own.
        semi_train_cfg: Options of the method; an unknown key is an error.
        semi_test_cfg: ``dict(predict_on=...)``: the sub-model that predicts, or ``'ensemble'`` for the mean of their
            probabilities. Default: ``PREDICT_ON``, or the first sub-model.
        init_cfg: As in mmengine.

    Raises:
        KeyError: If ``semi_train_cfg`` or ``semi_test_cfg`` has an unknown key.
        ValueError: If an option has a value that is not allowed, the classifier's head makes no logits of at least two
            classes, or images are to be mixed with their labels (``train_cfg.augments``).
    """

    def __init__(
        self,
        classifier: dict,
        data_preprocessor: dict | None = None,
        semi_train_cfg: dict | None = None,
        semi_test_cfg: dict | None = None,
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        key = 'classifier'
        if isinstance(classifier, Mapping):
            check_no_batch_augments(classifier.get('train_cfg'), f'model.{key}.train_cfg')
            classifier = with_preprocessor_type(classifier)
        preprocessor = multi_branch_preprocessor(
            typed_preprocessor(data_preprocessor), classifier, 'an mmpretrain classifier', key
        )
        if getattr(preprocessor.data_preprocessor, 'batch_augments', None) is not None:
            check_no_batch_augments(dict(augments='...'), 'model.data_preprocessor.batch_augments')
        super().__init__(data_preprocessor=preprocessor, init_cfg=init_cfg)
        self.init_semi(classifier, semi_train_cfg, semi_test_cfg)
        self.num_classes = number_of_classes(self.models_held[0], f'model.{key}')
        self.collapse_guard = CollapseGuard(self.num_classes)

    # --- training -----------------------------------------------------------------------------------------------

    def classify(self, student: BaseClassifier, inputs: Tensor) -> Tensor:
        """Logits of ``student``.

        Args:
            student: A stock classifier.
            inputs: Normalized images, shape (N, 3, H, W).

        Returns:
            Shape (N, C).
        """
        return self.logits_of(student, student.extract_feat(inputs))

    def logits_of(self, student: BaseClassifier, features: Any) -> Tensor:
        """What the head of ``student`` makes of ``features``, shape (N, C).

        Raises:
            ValueError: If that is no tensor.
        """
        logits = student.head(features)
        if not isinstance(logits, Tensor):
            raise ValueError(
                f'model.classifier.head must return logits, one tensor of shape (N, {self.num_classes}); '
                f'{type(student.head).__name__} returns a {type(logits).__name__}'
            )
        return logits

    def supervised_loss(
        self,
        student: BaseClassifier,
        features: Any,
        data_samples: list[DataSample],
        with_logits: bool = False,
        keep: Any = None,
    ) -> tuple[dict[str, Tensor], Tensor | None]:
        """The student's own losses on labeled images, and its logits where they are needed.

        Args:
            student: A stock classifier.
            features: What ``extract_feat`` made of the images.
            data_samples: With ``gt_label``.
            with_logits: Whether to return the logits as well.
            keep: ``None``, or a function from logits (N, C) to a factor of each sample, (N,); the mean stays one over
                all samples.

        Returns:
            The losses under the names the stock head gives them, and detached logits of shape (N, C) or ``None``.

        Raises:
            ValueError: With ``keep``, if the head computes its loss in a way of its own.
        """
        head = student.head
        if type(head).loss is not ClsHead.loss:
            if keep is not None:
                raise ValueError(
                    'model.semi_train_cfg.tsa needs a head that computes its loss as ClsHead does, got '
                    f'{type(head).__name__}'
                )
            # The head computes its loss in its own way (margins): for logits, it has to run once more.
            losses = head.loss(features, data_samples)
            with torch.no_grad():
                return losses, self.logits_of(student, features) if with_logits else None
        logits = self.logits_of(student, features)
        arguments = {} if keep is None else dict(weight=keep(logits.detach()))
        return head._get_loss(logits, data_samples, **arguments), logits.detach()

    def hidden_truth(self, data_samples: Sequence[DataSample]) -> Tensor | None:
        """Labels of unlabeled images where the data set gives them for analysis: int64, (N,), or ``None``."""
        return labels_of(data_samples)

    def watch_pseudo_labels(self, labeled_samples: Sequence[DataSample], target_logits: Tensor) -> None:
        """Warn once if one class takes nearly all pseudo labels, see :class:`CollapseGuard`.

        Args:
            labeled_samples: With ``gt_label``.
            target_logits: What the pseudo labels are made from, shape (N, C).
        """
        labels = labels_of(labeled_samples)
        if labels is not None:
            self.collapse_guard(self.iterations_done, [labels], [target_logits])

    # --- prediction: the stock student's, unchanged ----------------------------------------------------------------

    def forward(self, inputs: Any, data_samples: Any = None, mode: str = 'tensor') -> Any:
        """As of every mmpretrain classifier: ``'loss'`` on a batch by branch, ``'predict'`` or ``'tensor'``.

        Raises:
            ValueError: If ``mode`` is none of these.
        """
        if mode == 'loss':
            return self.loss(inputs, data_samples)
        if mode == 'predict':
            return self.predict(inputs, data_samples)
        if mode == 'tensor':
            return self.predictor(inputs, mode='tensor')
        raise ValueError(f"`mode` must be 'loss', 'predict' or 'tensor', got {mode!r}")

    def predict(self, inputs: Tensor, data_samples: list[DataSample] | None = None, **kwargs: Any) -> list[DataSample]:
        """Classify images as the stock classifier does.

        Args:
            inputs: Normalized images, shape (N, 3, H, W).
            data_samples: Receive ``pred_label`` and ``pred_score``.
            kwargs: Of the stock classifier's ``predict``.
        """
        if self.semi_test_cfg['predict_on'] != 'ensemble':
            return self.predictor.predict(inputs, data_samples, **kwargs)
        probs = torch.stack([self.classify(model, inputs).softmax(dim=1) for model in self.models_held]).mean(dim=0)
        # Logits again, since the stock post-processing takes the softmax.
        logits = probs.clamp_min(torch.finfo(probs.dtype).tiny).log()
        return self.predictor.head._get_predictions(logits, data_samples)

    def get_layer_depth(self, param_name: str) -> tuple[int, int]:
        """Depth of a parameter's layer and the number of layers, for layer-wise decay of the learning rate."""
        name, _, inner = param_name.partition('.')
        return getattr(self, name).get_layer_depth(inner)


def typed_preprocessor(preprocessor: Any) -> Any:
    """``preprocessor`` with the type that mmpretrain takes for granted."""
    if isinstance(preprocessor, Mapping) and 'type' not in preprocessor:
        return dict(preprocessor, type='mmpretrain.ClsDataPreprocessor')
    return preprocessor


def with_preprocessor_type(classifier: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a classifier's config whose data preprocessor, if there is one, has a type."""
    copy = deepcopy(dict(classifier))
    if copy.get('data_preprocessor'):
        copy['data_preprocessor'] = typed_preprocessor(copy['data_preprocessor'])
    return copy


def check_no_batch_augments(train_cfg: Any, key: str) -> None:
    """Refuse Mixup and its like, which mix images with labels; unlabeled images have none.

    Raises:
        ValueError: If ``train_cfg`` has ``augments``.
    """
    if isinstance(train_cfg, Mapping) and train_cfg.get('augments'):
        raise ValueError(
            f'{key} must have no `augments` (Mixup, CutMix, ...): they mix images together with their labels, which '
            'unlabeled images do not have; remove them, for example by train_cfg=None'
        )


def number_of_classes(model: nn.Module, key: str) -> int:
    """Classes of a stock classifier.

    Raises:
        ValueError: If it is none, its head is not a single-label one, or the number is unknown or less than 2.
    """
    head = getattr(model, 'head', None)
    if not isinstance(model, BaseClassifier) or not isinstance(head, ClsHead):
        raise ValueError(
            f'{key} must be an mmpretrain classifier with a head derived from ClsHead, which predicts one of the '
            f'classes, got {type(model).__name__} with the head {type(head).__name__}'
        )
    # LeNet-5 and its like make the logits in the backbone.
    count = getattr(head, 'num_classes', None) or getattr(model.backbone, 'num_classes', None)
    if not isinstance(count, int) or count < 2:
        raise ValueError(
            f'{key}.head.num_classes must be an integer >= 2, since pseudo labels are drawn from a softmax over the '
            f'classes, got {count!r}'
        )
    return count


def labels_of(data_samples: Sequence[DataSample]) -> Tensor | None:
    """``gt_label`` of all samples, int64, (N,); ``None`` if one has none or not exactly one."""
    labels = [sample.get('gt_label') for sample in data_samples]
    if any(label is None or label.numel() != 1 for label in labels):
        return None
    return torch.cat([label.flatten() for label in labels]).long()


def split_batch(features: Any, sizes: Sequence[int]) -> list[Any]:
    """Split what a backbone or neck returned (tensors, nested in tuples, lists and dicts) along the batch.

    Args:
        features: Tensors of shape (N, *).
        sizes: Of the parts, which sum to N.

    Returns:
        The parts, each nested as ``features``.

    Raises:
        ValueError: If something in ``features`` is not of this kind.
    """
    if isinstance(features, Tensor) and len(features) == sum(sizes):
        return list(features.split(list(sizes)))
    if isinstance(features, Mapping):
        parts = [split_batch(value, sizes) for value in features.values()]
        return [dict(zip(features, group, strict=True)) for group in zip(*parts, strict=True)]
    if isinstance(features, (tuple, list)):
        parts = [split_batch(value, sizes) for value in features]
        return [type(features)(group) for group in zip(*parts, strict=True)] if parts else [features] * len(sizes)
    raise ValueError(
        'model.semi_train_cfg.concatenate must be False for this classifier, whose features hold '
        f'{f"a tensor of shape {tuple(features.shape)}" if isinstance(features, Tensor) else type(features).__name__}, '
        f'which cannot be split into the {len(sizes)} parts of the batch'
    )


@contextmanager
def frozen_statistics(module: nn.Module) -> Iterator[None]:
    """Inside the block, BatchNorm in train mode normalizes by the batch and leaves its running statistics alone."""
    layers = [layer for layer in module.modules() if isinstance(layer, _BatchNorm) and layer.track_running_stats]
    for layer in layers:
        layer.track_running_stats = False
    try:
        yield
    finally:
        for layer in layers:
            layer.track_running_stats = True
