"""ReliabilityEstimator: how well each label goes with a sample's features."""

import torch
from mmengine.model import BaseModule
from torch import Tensor, nn

from mmssl.registry import MODELS
from mmssl.utils.values import check_number


@MODELS.register_module()
class ReliabilityEstimator(BaseModule):
    r"""Scores of sample and label in interaction, of RGD-PLL (Wei et al., 2026; the concrete form is ours).

    .. math:: u_i = \tanh(W_x h_i + b_x), \qquad s_{ic} = w \cdot (u_i \odot e_c) + b

    With 512 features, 128 dimensions and 10 classes it has 67,073 parameters.

    Args:
        in_channels: Size of the features h, >= 1.
        num_classes: C >= 2.
        embed_dims: Size of u and of the label embeddings e, >= 1. Default: 128.
        init_cfg: As in mmengine.

    Raises:
        ValueError: An argument is out of its range.
    """

    def __init__(
        self, in_channels: int, num_classes: int, embed_dims: int = 128, init_cfg: dict | list[dict] | None = None
    ) -> None:
        super().__init__(init_cfg)
        for name, value, least in (('in_channels', in_channels, 1), ('num_classes', num_classes, 2),
                                   ('embed_dims', embed_dims, 1)):  # yapf: disable
            check_number(value, f'mmssl.ReliabilityEstimator: `{name}`', lambda v, low=least: v >= low,
                         f'an integer >= {least}', int)
        self.in_channels, self.num_classes = in_channels, num_classes
        self.project = nn.Linear(in_channels, embed_dims)
        # Of length one on average, whatever their size.
        self.embeddings = nn.Parameter(torch.randn(num_classes, embed_dims) / embed_dims**0.5)
        self.score = nn.Linear(embed_dims, 1)

    def forward(self, features: Tensor) -> Tensor:
        """Scores of every label.

        Args:
            features: h, shape (N, in_channels).

        Returns:
            s, shape (N, C).
        """
        # w . (u * e_c) as one product of matrices, without a tensor of shape (N, C, D).
        return self.project(features).tanh() @ (self.embeddings * self.score.weight).T + self.score.bias
