"""SampleTargets: a row of running targets for each sample of the data set, in the checkpoint."""

import logging
from typing import Any

import torch
from mmengine.logging import print_log
from torch import Tensor, nn

from mmssl.functional.partial_label import uniform_targets
from mmssl.models.thresholds.batch import gather_in_order

KEY = 'model.objective'


class SampleTargets(nn.Module):
    """Running targets by the number of the sample, equal on all processes, and known to be those of one data set.

    A row of zeros is that of a sample which has not been seen; it reads as the start. The checkpoint holds the rows, a
    digest of the candidate sets with their samples' numbers, and where they came from, for messages.

    Args:
        num_classes: C.
        start: ``'candidates'``: uniform on the set; ``'all'``: 1/C for every class.
    """

    def __init__(self, num_classes: int, start: str) -> None:
        super().__init__()
        self.num_classes, self.start = num_classes, start
        self.register_buffer('values', torch.zeros(0, num_classes))
        self.register_buffer('digest', torch.zeros(0, dtype=torch.uint8))
        self.register_buffer('origin', torch.zeros(0, dtype=torch.uint8))
        # Where the targets of a checkpoint came from that were not loaded, since they are of other data.
        self.refused: str | None = None
        self.is_loaded = False

    @torch.no_grad()
    def set_samples(self, length: int, digest: bytes, origin: str) -> None:
        """Make room for the samples of a data set; what was there is forgotten.

        Args:
            length: Numbers that samples can have: 0 to length - 1.
            digest: Of the candidate sets and their samples' numbers.
            origin: Where the sets came from, in words.
        """
        self.values = self.values.new_zeros(length, self.num_classes)
        self.digest = as_bytes(digest, self.values)
        self.origin = as_bytes(origin.encode(), self.values)

    @torch.no_grad()
    def reset(self) -> None:
        """Let all samples be unseen."""
        self.values.zero_()

    def read(self, sample_ids: Tensor | None, candidates: Tensor) -> Tensor:
        """The present targets of some samples.

        Args:
            sample_ids: Their numbers, int64, shape (N,).
            candidates: Their sets, bool, shape (N, C).

        Returns:
            Float, shape (N, C).

        Raises:
            ValueError: The samples have no numbers, one is not in the table, or there is no table.
        """
        self._check(sample_ids)
        rows = self.values[sample_ids.to(self.values.device, non_blocking=True)]
        start = uniform_targets(candidates) if self.start == 'candidates' else torch.full_like(
            rows, 1 / self.num_classes
        )
        return torch.where((rows > 0).any(dim=1, keepdim=True), rows, start.to(rows.dtype))

    @torch.no_grad()
    def write(self, sample_ids: Tensor, targets: Tensor) -> None:
        """Store the targets of the samples of all processes; of a sample that is there twice, those of the later place.

        Args:
            sample_ids: Numbers of this process's samples, int64, shape (N,).
            targets: Shape (N, C).
        """
        ids = gather_in_order(sample_ids.to(self.values.device, non_blocking=True))
        targets = gather_in_order(targets.to(self.values.dtype))
        # Equal numbers get equal rows, so that the order in which they are written does not matter.
        last = ids.new_full((len(self.values),), -1)
        last.scatter_reduce_(0, ids, torch.arange(len(ids), device=ids.device), 'amax')
        self.values.index_copy_(0, ids, targets[last[ids]])

    def _check(self, sample_ids: Tensor | None) -> None:
        if len(self.values) == 0:
            raise ValueError(
                f"{KEY} keeps targets for each sample and does not know the samples: add dict(type='mmssl."
                "SampleTargetsHook') to custom_hooks (in a training loop of your own, call "
                'mmssl.datasets.register_samples(model, dataset) before the first iteration)'
            )
        if sample_ids is None:
            raise ValueError(
                f'{KEY} keeps targets for each sample and needs its number in the data set: `sample_idx` must be in '
                'the meta_keys of the packing transform (PackInputs has it by default)'
            )
        low, high = int(sample_ids.min()), int(sample_ids.max())
        if low < 0 or high >= len(self.values):
            raise ValueError(
                f'{KEY}: a sample has the number {low if low < 0 else high}, but there are targets for '
                f'{len(self.values)} samples, those of {self.described()}'
            )

    def described(self) -> str:
        """Where the samples came from, in words."""
        return bytes(self.origin.tolist()).decode()

    def check_resumed(self) -> None:
        """Check, once a checkpoint was resumed from, that its targets were those of the same data.

        Raises:
            ValueError: They were not, or there were none.
        """
        if self.refused is not None:
            raise ValueError(
                f'{KEY}: the targets in the checkpoint are those of {self.refused}, but train_dataloader.dataset has '
                f'{self.described()}: restore the data, or start a new run (load_from)'
            )
        if not self.is_loaded:
            raise ValueError(
                f'{KEY}: the checkpoint that is resumed holds no targets of samples, so it is of a run with another '
                'objective: restore the config, or start a new run (load_from)'
            )

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any, **kwargs: Any) -> None:
        names = {name: f'{prefix}{name}' for name in ('values', 'digest', 'origin')}
        self.refused, self.is_loaded = None, all(key in state_dict for key in names.values())
        if self.is_loaded:
            found = {name: state_dict[key] for name, key in names.items()}
            if len(self.values) == 0:  # for evaluation, or before the data is known
                for name, value in found.items():
                    own = getattr(self, name)
                    setattr(self, name, own.new_empty(value.shape))
            elif found['digest'].tolist() != self.digest.tolist() or found['values'].shape != self.values.shape:
                self.refused, self.is_loaded = bytes(found['origin'].tolist()).decode() or 'no data', False
                for name, key in names.items():
                    state_dict[key] = getattr(self, name)
                print_log(
                    f'{KEY}: the targets in the checkpoint are those of {self.refused}, the data is '
                    f'{self.described()}: they begin anew',
                    logger='current',
                    level=logging.WARNING,
                )
            else:
                # The same sets may have moved to another folder.
                state_dict[names['origin']] = self.origin
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def extra_repr(self) -> str:
        """Show the size."""
        return f'{len(self.values)} samples, {self.num_classes} classes'


def as_bytes(text: bytes, like: Tensor) -> Tensor:
    """Bytes as a uint8 tensor on the device of ``like``."""
    return torch.tensor(list(text), dtype=torch.uint8, device=like.device)
