"""The weak annotator of instance-dependent candidate sets: a classifier that says what it takes each image for."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS
from mmengine.runner import Runner
from torch.utils.data import DataLoader

from mmssl.utils.label_file import labels_hash


def annotate(cfg: Config, work_dir: str | os.PathLike, dataset: Any) -> np.ndarray:
    """Train a classifier on its own labels and return its softmax on images, not augmented, in eval mode.

    Args:
        cfg: A supervised config: its training set is ``dataset``, or has it as a part; the pipeline of its validation
            set loads images as they are.
        work_dir: Folder of the training.
        dataset: Config node of the data set whose samples are annotated, in its order.

    Returns:
        Float32, shape (N, C).

    Raises:
        KeyError: The config has no validation set to take a pipeline from.
    """
    pipeline = cfg.get('val_dataloader', {}).get('dataset', {}).get('pipeline')
    if pipeline is None:
        raise KeyError('--annotator: the config has no val_dataloader.dataset.pipeline, which loads images as they are')
    cfg.work_dir = os.fspath(work_dir)
    runner = Runner.from_cfg(cfg)
    samples = DATASETS.build(with_pipeline(dataset, pipeline))  # before hours of training
    model = runner.train().eval()
    loader = DataLoader(samples, batch_size=256, collate_fn=pseudo_collate)
    probs = []
    with torch.no_grad():
        for batch in loader:
            probs += [sample.pred_score.cpu().numpy() for sample in model.val_step(batch)]
    return np.asarray(probs, np.float32)


def with_pipeline(dataset: Mapping[str, Any], pipeline: Any) -> dict[str, Any]:
    """A data set's node with another pipeline; that of a part of a data set is one level below."""
    if isinstance(dataset.get('dataset'), Mapping):
        return {**dataset, 'dataset': with_pipeline(dataset['dataset'], pipeline)}
    return {**dataset, 'pipeline': pipeline}


def save_annotation(path: str | os.PathLike, probs: np.ndarray, labels: list[int]) -> None:
    """Keep what an annotator said, with the labels that it learned from; a file that is there is an error.

    Raises:
        FileExistsError: There is such a file.
    """
    path = Path(path)
    if path.exists():
        raise FileExistsError(f'--annotation {path} exists: it is used without --annotator, or choose another name')
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open('wb') as file:
        np.savez(file, probs=probs, source_sha256=np.array(labels_hash(labels)))


def load_annotation(path: str | os.PathLike, labels: list[int], num_classes: int) -> np.ndarray:
    """What :func:`save_annotation` kept, checked against the labels.

    Raises:
        FileNotFoundError: No such file.
        ValueError: It is no such file, or one of other labels.
    """
    if not os.path.isfile(path):
        raise FileNotFoundError(f'--annotation: there is no file {os.fspath(path)!r}; --annotator CONFIG makes one')
    try:
        with np.load(path, allow_pickle=False) as file:
            probs, source = file['probs'], str(file['source_sha256'])
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f'--annotation: {os.fspath(path)!r} is no annotation: {error}') from error
    if probs.shape != (len(labels), num_classes):
        raise ValueError(f'--annotation: {os.fspath(path)!r} has shape {probs.shape}, the data set has {len(labels)} '
                         f'samples and {num_classes} classes')
    if source != labels_hash(labels):
        raise ValueError(f'--annotation: {os.fspath(path)!r} was made from other labels (sha256 {source[:12]}..., '
                         f'those of the data set are {labels_hash(labels)[:12]}...)')
    if not np.isfinite(probs).all():
        raise ValueError(f'--annotation: {os.fspath(path)!r} has probabilities that are not finite')
    return probs


def annotation_hash(probs: np.ndarray) -> str:
    """SHA-256 of the probabilities."""
    return hashlib.sha256(np.ascontiguousarray(probs, np.float32).tobytes()).hexdigest()
