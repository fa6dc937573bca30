"""Features of images in evaluation loops: what a metric sees is what the model extracts, not what it predicts."""

import inspect
from typing import Any

import torch
from mmengine.runner.amp import autocast
from torch import Tensor

from mmssl.utils.model import unwrap_model


class FeatureIteration:
    """An iteration of a ValLoop or TestLoop that gives the evaluator data samples with their features, as ``feat``.

    Works with any model that has mmpretrain's ``extract_feat``: classifiers, retrievers, and wrappers of them.
    """

    # Set by the constructors of the loops.
    flip: bool
    stage: str
    key: str
    hooks: tuple[str, str]

    def set_options(self, key: str, flip: bool, stage: str) -> None:
        """Check and keep the options; ``key`` is that of the loop in a config."""
        if not isinstance(flip, bool):
            raise ValueError(f'{key}.flip must be True or False, got {flip!r}')
        if stage not in ('backbone', 'neck', 'pre_logits'):
            raise ValueError(f"{key}.stage must be one of ['backbone', 'neck', 'pre_logits'], got {stage!r}")
        self.key, self.flip, self.stage = key, flip, stage

    @torch.no_grad()
    def run_iter(self, idx: int, data_batch: Any) -> None:
        """Extract features and hand them to the evaluator."""
        before, after = self.hooks
        self.runner.call_hook(before, batch_idx=idx, data_batch=data_batch)
        model = unwrap_model(self.runner.model)
        if not hasattr(model, 'extract_feat'):
            raise ValueError(f'{self.key}: the loop needs a model with `extract_feat` (mmpretrain), got '
                             f'{type(model).__name__}')
        with autocast(enabled=self.fp16):
            data = model.data_preprocessor(data_batch, False)
            feats = self._extract(model, data['inputs'])
            if self.flip:
                feats = feats + self._extract(model, data['inputs'].flip(-1))
        for sample, feat in zip(data['data_samples'], feats, strict=True):
            sample.set_field(feat, 'feat', dtype=Tensor)
        self.evaluator.process(data_samples=data['data_samples'], data_batch=data_batch)
        self.runner.call_hook(after, batch_idx=idx, data_batch=data_batch, outputs=data['data_samples'])

    def _extract(self, model: Any, inputs: Tensor) -> Tensor:
        """Features of a batch, float32, (N, D)."""
        options = {'stage': self.stage} if 'stage' in inspect.signature(model.extract_feat).parameters else {}
        feats = model.extract_feat(inputs, **options)
        while isinstance(feats, tuple | list):
            feats = feats[-1]
        if not isinstance(feats, Tensor) or feats.ndim != 2:
            found = f'shape {tuple(feats.shape)}' if isinstance(feats, Tensor) else type(feats).__name__
            raise ValueError(f'{self.key}: features must be vectors, (N, D), but those of {type(model).__name__} have '
                             f'{found}; pool them with a neck (GlobalAveragePooling), or choose another `stage`')
        return feats.float()
