"""A small network that learns to segment one image from that image alone."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.model import BaseModel
from mmengine.structures import BaseDataElement, PixelData
from torch import Tensor, nn

from mmssl.functional.unsupervised_segmentation import (
    IGNORED,
    continuity_loss,
    count_labels,
    segment_labels,
    similarity_loss,
)
from mmssl.registry import MODELS
from mmssl.utils.values import check_number

# Colors in [0, 1] and nothing else.
PREPROCESSOR = dict(type='mmengine.ImgDataPreprocessor', mean=[0.0] * 3, std=[255.0] * 3)


@MODELS.register_module()
class UnsupervisedSegmentor(BaseModel):
    """Unsupervised segmentation by differentiable clustering (Kim et al., IEEE TIP 2020), optionally with ADR.

    Convolutions of 3 x 3, each with ReLU and then batch normalization, and one of 1 x 1 with batch normalization give
    each pixel a response r over ``num_labels`` labels. The label of a pixel is the arg-max of its response, and the
    loss is

        similarity_weight * CE(r, argmax r) + continuity_weight * (mean |r_(y+1) - r_y| + mean |r_(x+1) - r_x|)

    plus the regularizer's on r (paper 002, 4.5). Pixels with a scribble learn its label instead of their own. How many
    labels are in use is logged as ``num_labels``; ``mmssl.MinLabelsHook`` ends the training when they are few.

    Batch normalization always uses the statistics of the image, so training and prediction see the same network.

    Args:
        num_labels: Q, the labels there are at most, >= 2.
        channels: Channels of the 3 x 3 convolutions, >= 1.
        num_convs: 3 x 3 convolutions, >= 1. The released code has 2, the paper 3 for VOC and BSDS500.
        in_channels: Channels of the image, >= 1.
        similarity_weight: Factor of the cross entropy, >= 0.
        continuity_weight: Factor of the continuity, >= 0. The released code has 1, the paper 5 for VOC and BSDS500.
        scribble_weight: Factor of the cross entropy to scribbles, >= 0.
        regularizer: Config of a loss that takes the response alone, such as ``dict(type='mmssl.ADRLoss', topk=7,
            loss_weight=0.1)``. Default: None.
        data_preprocessor: Default: mmengine's ``ImgDataPreprocessor``, which brings colors to [0, 1].
        init_cfg: As in mmengine's ``BaseModel``. Default: None, PyTorch's initialization, as in the released code.

    Raises:
        ValueError: An argument is out of range.
    """

    def __init__(
        self,
        num_labels: int = 100,
        channels: int = 100,
        num_convs: int = 2,
        in_channels: int = 3,
        similarity_weight: float = 1.0,
        continuity_weight: float = 1.0,
        scribble_weight: float = 0.5,
        regularizer: dict | None = None,
        data_preprocessor: dict | None = None,
        init_cfg: dict | list[dict] | None = None,
    ) -> None:
        super().__init__(data_preprocessor or PREPROCESSOR, init_cfg)
        whole = dict(num_labels=(num_labels, 2), channels=(channels, 1), num_convs=(num_convs, 1),
                     in_channels=(in_channels, 1))  # fmt: skip
        for key, (value, smallest) in whole.items():
            allowed = f'an integer >= {smallest}'
            check_number(value, f'model.{key}', lambda number, least=smallest: number >= least, allowed, int)
        weights = dict(similarity_weight=similarity_weight, continuity_weight=continuity_weight,
                       scribble_weight=scribble_weight)  # fmt: skip
        for key, value in weights.items():
            check_number(value, f'model.{key}', lambda n: n >= 0 and math.isfinite(n), 'a finite number >= 0')
        self.num_labels = num_labels
        self.similarity_weight = similarity_weight
        self.continuity_weight = continuity_weight
        self.scribble_weight = scribble_weight
        layers: list[nn.Module] = []
        for index in range(num_convs):
            layers += [nn.Conv2d(channels if index else in_channels, channels, 3, padding=1), nn.ReLU(inplace=True),
                       nn.BatchNorm2d(channels, track_running_stats=False)]  # fmt: skip
        layers += [nn.Conv2d(channels, num_labels, 1), nn.BatchNorm2d(num_labels, track_running_stats=False)]
        self.network = nn.Sequential(*layers)
        self.regularizer = None if regularizer is None else MODELS.build(regularizer)

    def forward(
        self,
        inputs: Tensor,
        data_samples: list[BaseDataElement] | None = None,
        mode: str = 'tensor',
    ) -> dict[str, Tensor] | list[BaseDataElement] | Tensor:
        """Losses, predictions or the response, as mmengine's modes say.

        Args:
            inputs: The image, float in [0, 1], (1, C, H, W).
            data_samples: One sample, with ``gt_scribbles`` (1, H, W) if there are any; -1 is no scribble.
            mode: ``'loss'``, ``'predict'`` or ``'tensor'``.

        Raises:
            ValueError: Several images, one of a single pixel, or a mode that does not exist.
        """
        if len(inputs) != 1:
            raise ValueError('train_dataloader.batch_size must be 1: mmssl.UnsupervisedSegmentor learns from one image '
                             f'alone, got {len(inputs)} at once')
        if inputs.shape[-2:].numel() < 2:
            raise ValueError('mmssl.UnsupervisedSegmentor: an image of a single pixel has nothing to segment')
        response = self.network(inputs)
        if mode == 'loss':
            return self.loss(response, data_samples)
        if mode == 'predict':
            return self.predict(response, data_samples)
        if mode == 'tensor':
            return response
        raise ValueError(f"mode must be 'loss', 'predict' or 'tensor', got {mode!r}")

    def loss(self, response: Tensor, data_samples: list[BaseDataElement] | None = None) -> dict[str, Tensor]:
        """The loss terms and ``num_labels``.

        Args:
            response: (1, Q, H, W).
            data_samples: See :meth:`forward`.
        """
        with torch.autocast(device_type=response.device.type, enabled=False):
            response = response.float()
            labels = segment_labels(response)
            losses = dict(num_labels=count_labels(labels, self.num_labels).float())
            scribbles = self._scribbles(data_samples)
            own = None
            if scribbles is not None:
                own = scribbles == IGNORED
                loss = similarity_loss(response, scribbles.clamp(min=0), ~own)
                losses['loss_scribble'] = self.scribble_weight * loss
            losses['loss_similarity'] = self.similarity_weight * similarity_loss(response, labels, own)
            losses['loss_continuity'] = self.continuity_weight * continuity_loss(response)
            if self.regularizer is not None:
                losses['loss_regularizer'] = self.regularizer(response)
        return losses

    def _scribbles(self, data_samples: list[BaseDataElement] | None) -> Tensor | None:
        """Labels of scribbled pixels, (1, H, W)."""
        scribbles: Any = None if data_samples is None else data_samples[0].get('gt_scribbles')
        if scribbles is None:
            return None
        if int(scribbles.data.max()) >= self.num_labels:
            raise ValueError(f'scribbles of {data_samples[0].get("img_path")!r} have the label '
                             f'{int(scribbles.data.max())}, but model.num_labels is {self.num_labels}: labels are 0 to '
                             f'{self.num_labels - 1}')
        return scribbles.data

    def predict(self, response: Tensor, data_samples: list[BaseDataElement] | None = None) -> list[BaseDataElement]:
        """The label of each pixel, in the size that the image had before it was shrunk.

        Args:
            response: (1, Q, H, W).
            data_samples: The sample that receives ``pred_segments``, (1, h, w). Default: a new one.
        """
        sample = BaseDataElement() if data_samples is None else data_samples[0]
        labels = segment_labels(response)
        size = tuple(sample.get('ori_shape') or labels.shape[-2:])[:2]
        if size != tuple(labels.shape[-2:]):
            # Whole numbers below 2^24 are exact in float32.
            labels = F.interpolate(labels[None].float(), size=size, mode='nearest-exact')[0].long()
        sample.set_data(dict(pred_segments=PixelData(data=labels)))
        return [sample]
