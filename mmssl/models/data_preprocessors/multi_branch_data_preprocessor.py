"""Turns a batch of multi-branch samples into one tensor for each branch."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from mmengine.model import BaseDataPreprocessor
from mmengine.registry import MODELS as MMENGINE_MODELS
from mmengine.structures import BaseDataElement, PixelData
from torch import Tensor, nn

from mmssl.registry import MODELS


@MODELS.register_module()
class MultiBranchDataPreprocessor(BaseDataPreprocessor):
    """Regroups a batch by branch and lets a stock preprocessor handle each branch.

    Training batches come from ``mmssl.MultiBranch``: for each branch a list with ``None`` where the image has no such
    view. The ``None`` are dropped, the inner preprocessor normalizes and stacks the rest, and all branches are padded
    to one size, right and bottom, with the inner preprocessor's values. ``valid_mask`` of the samples is extended by
    what was padded. Unlabeled images of which some have a class label (STL-10's, with the labeled ones among them) get
    the label -1 where it is unknown, since mmpretrain's preprocessor takes all or none. Batches without branches
    (validation, test, inference) go to the inner preprocessor untouched.

    Args:
        data_preprocessor: The stock preprocessor or its config (``SegDataPreProcessor``, ``ClsDataPreprocessor``, ...).
    """

    def __init__(self, data_preprocessor: dict | nn.Module) -> None:
        super().__init__()
        if isinstance(data_preprocessor, Mapping):
            data_preprocessor = MMENGINE_MODELS.build(data_preprocessor)
        if not isinstance(data_preprocessor, BaseDataPreprocessor):
            raise TypeError('model.data_preprocessor.data_preprocessor must be a data preprocessor or the config of '
                            f'one, got {type(data_preprocessor).__name__}')
        self.data_preprocessor = data_preprocessor
        self._composition: dict[str, int] | None = None

    @property
    def _device(self) -> torch.device:
        # mmengine's `to`, `cuda`, ... and the model that holds this module all set this attribute. There is one device:
        # the inner preprocessor's, which moves the data.
        inner = self._modules.get('data_preprocessor') if '_modules' in self.__dict__ else None
        return torch.device('cpu') if inner is None else inner._device

    @_device.setter
    def _device(self, device: torch.device) -> None:
        inner = self._modules.get('data_preprocessor')
        if inner is not None:
            inner._device = device

    def cast_data(self, data: Any) -> Any:
        """Move data to the device, as the inner preprocessor does."""
        return self.data_preprocessor.cast_data(data)

    def forward(self, data: dict, training: bool = False) -> Any:
        """Regroup, normalize, stack and pad one batch.

        Args:
            data: What ``pseudo_collate`` made: ``inputs`` and ``data_samples``, each a dict of lists by branch in
                training.
            training: As for every preprocessor.

        Returns:
            ``inputs``: float tensor (n, C, H, W) by branch, the same H and W in all branches; ``data_samples``: list of
            n samples by branch. Without branches: what the inner preprocessor returns.

        Raises:
            ValueError: A training batch without branches, without an image in one of them, or composed differently from
                the batches before.
        """
        inputs = data.get('inputs') if isinstance(data, Mapping) else None
        if not isinstance(inputs, Mapping):
            if training:
                raise ValueError('model.data_preprocessor (mmssl.MultiBranchDataPreprocessor): the training batch has '
                                 'no branches; the pipelines of train_dataloader.dataset must end in '
                                 '`mmssl.MultiBranch`')
            return self.data_preprocessor(data, training)

        grouped = {branch: _present(branch, items, data.get('data_samples')) for branch, items in inputs.items()}
        if training:
            self._check_composition({branch: len(group['inputs']) for branch, group in grouped.items()})
        for branch, group in grouped.items():
            _mark_unknown_labels(branch, group['data_samples'])
        batches = {branch: dict(self.data_preprocessor(group, training)) for branch, group in grouped.items()}
        height = max(batch['inputs'].shape[-2] for batch in batches.values())
        width = max(batch['inputs'].shape[-1] for batch in batches.values())
        for batch in batches.values():
            self._pad(batch, height, width)
        return {
            'inputs': {branch: batch['inputs'] for branch, batch in batches.items()},
            'data_samples': {branch: batch.get('data_samples') for branch, batch in batches.items()},
        }

    def extra(self, data: dict, size: tuple[int, int]) -> dict:
        """Prepare training images that come on top of a batch, at its size.

        Args:
            data: As in :meth:`forward`; branches without an image are left out.
            size: Height and width of the batch; smaller images are padded, right and bottom, larger ones are cut there.

        Returns:
            ``inputs`` and ``data_samples`` by branch, as :meth:`forward`.
        """
        grouped = {branch: _present(branch, items, data['data_samples']) for branch, items in data['inputs'].items()}
        batches = {
            branch: dict(self.data_preprocessor(group, True)) for branch, group in grouped.items() if group['inputs']
        }
        for batch in batches.values():
            self._pad(batch, *size)
        return {
            'inputs': {branch: batch['inputs'] for branch, batch in batches.items()},
            'data_samples': {branch: batch.get('data_samples') for branch, batch in batches.items()},
        }

    def _check_composition(self, counts: dict[str, int]) -> None:
        """Refuse a batch without a branch, and a mixture that changes from batch to batch."""
        hint = ('train_dataloader.batch_size must be a multiple of sum(train_dataloader.sampler.source_ratio), with '
                'train_dataloader.sampler.type="mmssl.MultiSourceSampler"')
        empty = [branch for branch, count in counts.items() if count == 0]
        if empty:
            raise ValueError(f'the training batch has no image for branch {" and ".join(map(repr, empty))} (images by '
                             f'branch: {counts}): either no pipeline of train_dataloader.dataset.sources fills it, or '
                             f'the batch is too small: {hint}')
        # The last batch of an epoch may be smaller, but its mixture is the same.
        divisor = math.gcd(*counts.values())
        composition = {branch: count // divisor for branch, count in counts.items()}
        if self._composition is None:
            self._composition = composition
        elif composition != self._composition:
            raise ValueError(f'the mixture of the training batches changes: images by branch are in the ratio '
                             f'{composition} now and were {self._composition} before: {hint}')

    def _pad(self, batch: dict[str, Any], height: int, width: int) -> None:
        """Pad one branch to the common size, and ``valid_mask`` to the size of its image."""
        inner, inputs = self.data_preprocessor, batch['inputs']
        below, right = height - inputs.shape[-2], width - inputs.shape[-1]
        if below or right:
            value = getattr(inner, 'pad_val', getattr(inner, 'pad_value', 0))
            batch['inputs'] = F.pad(inputs, (0, right, 0, below), value=value)
        for sample in batch.get('data_samples') or []:
            if not isinstance(sample, BaseDataElement):
                continue
            if below or right:
                _pad_field(sample, 'gt_sem_seg', (0, right, 0, below), getattr(inner, 'seg_pad_val', 255))
            left, old_right, top, old_below = sample.metainfo.get('padding_size', (0, 0, 0, 0))
            if 'valid_mask' in sample:
                rows, columns = sample.valid_mask.data.shape[-2:]
                padding = (left, width - columns - left, top, height - rows - top)
                _pad_field(sample, 'valid_mask', padding, False)
            if 'padding_size' in sample.metainfo or below or right:
                padding = (left, old_right + right, top, old_below + below)
                # mmseg leaves `pad_shape` at None for samples without a mask.
                sample.set_metainfo({'padding_size': padding, 'pad_shape': (height, width)})


def _present(branch: str, items: Any, data_samples: Any) -> dict[str, Any]:
    """Images and samples of one branch, without the gaps."""
    keep = [number for number, item in enumerate(items) if item is not None]
    samples = data_samples.get(branch) if isinstance(data_samples, Mapping) else None
    if isinstance(samples, Sequence):
        samples = [samples[number] for number in keep]
        if all(sample is None for sample in samples):
            samples = None
    return {'inputs': [items[number] for number in keep], 'data_samples': samples}


def _mark_unknown_labels(branch: str, data_samples: Any) -> None:
    """Label -1 for mmpretrain's samples without one, where others of an unlabeled branch have theirs."""
    samples = [sample for sample in data_samples or [] if hasattr(sample, 'set_gt_label')]
    unknown = [sample for sample in samples if 'gt_label' not in sample]
    if branch != 'sup' and len(unknown) < len(samples):
        for sample in unknown:
            sample.set_gt_label(-1)


def _pad_field(sample: BaseDataElement, name: str, padding: tuple[int, int, int, int], value: float) -> None:
    """Pad the pixel data ``name`` of a sample, if it has it."""
    if name not in sample or not any(padding):
        return
    data: Tensor = getattr(sample, name).data
    # A new PixelData: the old one insists on its shape.
    sample.set_field(PixelData(data=F.pad(data, padding, value=value)), name, dtype=PixelData)
