"""Estimates the memory of training: counts parameters and measures saved activations on a small crop."""

import copy
import math
from collections.abc import Mapping
from typing import Any

import torch
from mmengine.dataset import pseudo_collate
from mmengine.model.utils import revert_sync_batchnorm
from mmengine.registry import DATASETS, MODELS
from torch import Tensor, nn

from mmssl.datasets.donor_source import attach_sources

from .nodes import get, is_sequence, type_name
from .report import Report

# Tensors of the size of the parameter that an optimizer keeps.
OPTIMIZER_TENSORS = {
    'Adam': 2, 'AdamW': 2, 'NAdam': 2, 'RAdam': 2, 'Adamax': 2, 'Adadelta': 2, 'Adagrad': 1, 'RMSprop': 1, 'Lion': 1,
}  # fmt: skip
CROP = 128


def estimate_memory(cfg: Any, report: Report | None = None) -> dict[str, Any]:
    """Estimate the memory of one training process in bytes.

    Parameters, gradients, optimizer state and buffers are counted. Activations are measured: one training forward on
    the CPU, on real samples of the pipeline cropped to at most 128 x 128, counting what autograd keeps for the
    backward; the sum is scaled by the number of images and of pixels.

    Args:
        cfg: An mmengine `Config`; the caller has set its scope.
        report: Receives an error if the model or a sample of the pipeline cannot be made, so that nothing could train;
            none if it holds an error already, which may be the reason. Default: None, only `how` says so.

    Returns:
        `parameters`, `gradients`, `optimizer_state`, `buffers`, `activations` and `total` in bytes, as far as they
        could be found, and `how`, a sentence about how or why not.
    """
    try:
        model = revert_sync_batchnorm(MODELS.build(copy.deepcopy(cfg.get('model'))))
    except Exception as error:
        _note(report, 'model', f'cannot be built: {type(error).__name__}: {error}')
        return dict(how=f'not estimated: the model cannot be built ({type(error).__name__}: {error})')
    parameters = list(model.parameters())
    trained = sum(_bytes(p) for p in parameters if p.requires_grad)
    result: dict[str, Any] = dict(
        parameters=sum(_bytes(p) for p in parameters),
        gradients=trained,
        optimizer_state=trained * _optimizer_tensors(get(cfg, 'optim_wrapper.optimizer', {})),
        buffers=sum(_bytes(b) for b in model.buffers()),
    )
    try:
        batch = _samples(cfg)
    except Exception as error:
        _note(report, 'train_dataloader.dataset', f'makes no sample: {type(error).__name__}: {error}')
        result['how'] = f'activations not estimated: {type(error).__name__}: {error}'
        return result
    try:
        activations, how = _activations(cfg, model, *batch)
    except Exception as error:
        result['how'] = f'activations not estimated: {type(error).__name__}: {error}'
        return result
    result['activations'] = activations
    result['total'] = sum(result.values())
    result['how'] = how
    return result


def _bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _optimizer_tensors(optimizer: Mapping[str, Any]) -> int:
    name = type_name(optimizer)
    if name == 'SGD':
        return 1 if optimizer.get('momentum') else 0
    return OPTIMIZER_TENSORS.get(name, 2)


def _note(report: Report | None, key: str, message: str) -> None:
    if report is not None and not report.errors:
        report.error(key, message)


def _samples(cfg: Any) -> tuple[Any, list[Any]]:
    """The training data set, and some samples in the ratio of its sources."""
    loader = cfg.get('train_dataloader')
    dataset = DATASETS.build(copy.deepcopy(loader['dataset']))
    ratio = get(loader, 'sampler.source_ratio')
    batch_size = loader['batch_size']
    parts = getattr(dataset, 'datasets', None)
    if is_sequence(ratio) and parts is not None:
        # Two units, so that normalization and mixing get the even number of images that they need.
        units = min(2, batch_size // sum(ratio)) or 1
        samples = [part[i % len(part)] for part, r in zip(parts, ratio, strict=True) for i in range(units * r)]
    else:
        samples = [dataset[i % len(dataset)] for i in range(min(2, batch_size))]
    return dataset, samples


def _activations(cfg: Any, model: nn.Module, dataset: Any, samples: list[Any]) -> tuple[int, str]:
    """Bytes kept for the backward of one batch, and how that was found."""
    batch_size, ratio = get(cfg, 'train_dataloader.batch_size'), get(cfg, 'train_dataloader.sampler.source_ratio')
    model.train()
    # As in the middle of training: before `unsup_begin` the unlabeled images are not forwarded.
    options = get(cfg, 'model.semi_train_cfg', {})
    if isinstance(getattr(model, 'iteration', None), Tensor):
        model.iteration.fill_((options.get('unsup_begin') or 0) + (options.get('unsup_ramp') or 0))
    if hasattr(model, 'attach_sources'):
        attach_sources(model, dataset, ratio)
    data = model.data_preprocessor(pseudo_collate(samples), training=True)
    full = _pixels(data['inputs'])
    data = _crop(data, CROP)
    measured = _pixels(data['inputs'])
    own = {p.untyped_storage().data_ptr() for p in [*model.parameters(), *model.buffers()]}
    # The tensors themselves are held, so that no freed address is counted for two.
    saved: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        address = tensor.untyped_storage().data_ptr()
        if address not in own:
            saved.setdefault(address, tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        losses = model(**data, mode='loss')
    kept = sum(tensor.untyped_storage().nbytes() for tensor in saved.values())
    del losses
    scale = full / measured * batch_size / len(samples)
    half = 'Amp' in type_name(cfg.get('optim_wrapper'))
    how = (
        f'counted: parameters, gradients, optimizer state, buffers; activations measured on {len(samples)} images '
        f'cropped to at most {CROP}x{CROP} on the CPU and scaled by {scale:.1f} to {batch_size} images of the full crop'
        f'{", halved for AMP" if half else ""}; temporary buffers and fragmentation come on top, often 10 to 30 %'
    )
    return math.ceil(kept * scale * (0.5 if half else 1)), how


def _pixels(inputs: Any) -> int:
    """Images times pixels of a batch or of all branches of one."""
    if isinstance(inputs, Mapping):
        return sum(_pixels(branch) for branch in inputs.values())
    return inputs.shape[0] * inputs.shape[-1] * inputs.shape[-2]


def _crop(data: Any, size: int) -> Any:
    """Cut inputs and pixel data of a preprocessed batch to its upper left corner."""
    if isinstance(data, Tensor):
        return data[..., :size, :size].contiguous() if data.dim() >= 3 else data
    if isinstance(data, Mapping):
        return {name: _crop(value, size) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_crop(value, size) for value in data]
    if hasattr(data, 'all_items'):
        shape = None
        for name, value in list(data.items()):
            # A label of classification is a tensor itself.
            if not isinstance(value, Tensor) and isinstance(getattr(value, 'data', None), Tensor):
                cut = type(value)(data=value.data[..., :size, :size].contiguous())
                setattr(data, name, cut)
                shape = tuple(cut.data.shape[-2:])
        if shape is not None:
            data.set_metainfo(dict(img_shape=shape, pad_shape=shape))
    return data
