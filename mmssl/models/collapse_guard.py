"""Warns once if one class takes nearly all pseudo labels."""

import logging
from collections.abc import Sequence

import torch
from mmengine.dist import all_reduce
from mmengine.logging import print_log
from mmengine.visualization import Visualizer
from torch import Tensor, nn


class CollapseGuard(nn.Module):
    """Compares the classes of the pseudo labels with those of the labels, and warns once where they have collapsed.

    Every ``interval`` iterations it looks at every fourth row and column of labels and pseudo labels (arg-max, whatever
    the loss makes of it) and moves two averages of class shares, whose memory is about ``1 / momentum`` looks. Every
    ``patience`` looks it compares them, which is the only time that the host waits for the device. Pseudo labels have
    collapsed if one class has at least ``threshold`` of them, and all others together less than ``margin`` of what they
    have among the labels: in data that is really 97 % background, 97 % background is no collapse.

    The averages belong to no checkpoint; a resumed run gathers them anew.

    Args:
        num_classes: C.
        interval: Iterations between two looks, >= 1.
        patience: Looks between two comparisons, >= 1.
        threshold: Share of the pseudo labels that is nearly all of them, in (0, 1).
        margin: Share of the other classes that is nearly none of them, in (0, 1).
        momentum: Of the averages, in (0, 1].
    """

    STRIDE = 4

    def __init__(
        self,
        num_classes: int,
        interval: int = 10,
        patience: int = 20,
        threshold: float = 0.9,
        margin: float = 0.2,
        momentum: float = 0.05,
    ) -> None:
        super().__init__()
        self.interval, self.patience = interval, patience
        self.threshold, self.margin, self.momentum = threshold, margin, momentum
        # Labels, pseudo labels. Not in the checkpoint, and no reason for DDP to broadcast.
        self.register_buffer('shares', torch.zeros(2, num_classes), persistent=False)
        self.looks = 0
        self.has_warned = False

    @torch.no_grad()
    def forward(
        self,
        iteration: int,
        labels: Sequence[Tensor],
        target_logits: Sequence[Tensor],
        valid: Tensor | None = None,
    ) -> None:
        """Look at one batch.

        Args:
            iteration: Number of the iteration; most return at once.
            labels: Label maps, each (1, H, W), or labels of images, each (n,); what is no class is left out.
            target_logits: What makes the pseudo labels, one tensor (N, C, H, W), or (N, C) for images, for each model
                that makes some.
            valid: False on padding, bool, (N, H, W).
        """
        if self.has_warned or iteration % self.interval:
            return
        # Of images that have one label, each counts.
        thinned = (..., *[slice(None, None, self.STRIDE)] * (target_logits[0].dim() - 2))
        pseudo = torch.stack([logits[thinned].argmax(dim=1) for logits in target_logits])
        if valid is not None:
            pseudo = pseudo.masked_fill(~valid[thinned], -1)
        classes = torch.arange(self.shares.shape[1], device=self.shares.device)
        truth = torch.cat([label[thinned].flatten() for label in labels])
        # A comparison with every class: a histogram on the GPU would wait for it, or not be deterministic.
        counts = torch.stack([
            (part.flatten()[:, None] == classes).sum(dim=0) for part in (truth.to(classes.device), pseudo)
        ]).float()  # fmt: skip
        momentum = max(1 / (self.looks + 1), self.momentum)
        self.shares.lerp_(counts / counts.sum(dim=1, keepdim=True).clamp(min=1), momentum)
        self.looks += 1
        if self.looks % self.patience == 0:
            self._compare()

    def _compare(self) -> None:
        shares = self.shares.clone()
        all_reduce(shares, 'mean')
        labels, pseudo = shares.tolist()
        index = max(range(len(pseudo)), key=pseudo.__getitem__)
        share, share_of_labels = pseudo[index], labels[index]
        if share < self.threshold or 1 - share >= self.margin * (1 - share_of_labels):
            return
        self.has_warned = True
        print_log(
            f'{share:.1%} of the pseudo labels of late are class {class_name(index)}, which has {share_of_labels:.1%} '
            'of the labels: the models are about to unlearn the other classes. Let them learn from labels for longer '
            '(model.semi_train_cfg.unsup_begin), lower model.semi_train_cfg.unsup_weight, or raise the threshold of '
            'unsup_loss. (Said once.)',
            logger='current',
            level=logging.WARNING,
        )


def class_name(index: int) -> str:
    """The name of a class of the training data, as far as a runner is there that knows it, and its index."""
    # The loops hand the data set's metainfo to the visualizer, which is where a model can find it.
    visualizer = next(reversed(Visualizer._instance_dict.values()), None)
    meta = getattr(visualizer, 'dataset_meta', None) or {}
    classes = meta.get('classes') or ()
    return f'{classes[index]!r} ({index})' if index < len(classes) else str(index)
