"""What the project registers: in mmseg's registries, as a project of mmseg does."""

import torch
from mmengine.model import BaseModule
from mmseg.datasets import BaseSegDataset
from mmseg.models import EncoderDecoder
from mmseg.registry import DATASETS, MODELS


@DATASETS.register_module()
class OwnDataset(BaseSegDataset):
    """Four classes; the images that a list names."""

    METAINFO = dict(classes=('background', 'a', 'b', 'c'), palette=[[0, 0, 0], [255, 0, 0], [0, 255, 0], [0, 0, 255]])

    def __init__(self, img_suffix='.jpg', seg_map_suffix='.png', **kwargs):
        super().__init__(img_suffix=img_suffix, seg_map_suffix=seg_map_suffix, **kwargs)


@MODELS.register_module()
class OwnBackbone(BaseModule):
    """Two convolutions."""

    def __init__(self, channels=8, init_cfg=None):
        super().__init__(init_cfg)
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, channels, 3, padding=1, stride=2), torch.nn.BatchNorm2d(channels), torch.nn.ReLU(),
            torch.nn.Conv2d(channels, channels, 3, padding=1))

    def forward(self, x):
        return (self.layers(x), )


@MODELS.register_module()
class OwnSemiSegmentor(EncoderDecoder):
    """A semi-supervised method of the project's own, with mmssl's loss, transform and preprocessor."""

    def __init__(self, unsup_loss, **kwargs):
        super().__init__(**kwargs)
        self.unsup_loss = MODELS.build(unsup_loss)

    def loss(self, inputs, data_samples):
        losses = super().loss(inputs['sup'], data_samples['sup'])
        metas = [sample.metainfo for sample in data_samples['unsup_weak']]
        with torch.no_grad():
            target_logits = self.encode_decode(inputs['unsup_weak'], metas)
        logits = self.encode_decode(inputs['unsup_strong'], metas)
        losses['unsup_loss'] = self.unsup_loss(logits, target_logits)
        losses.update(self.unsup_loss.statistics)
        return losses
