"""The presence bank: which unlabeled images the teacher has last seen which classes in."""

import logging
from typing import Any

import torch
from mmengine.dist import all_gather, get_world_size
from mmengine.logging import print_log
from torch import Tensor, nn


class PresenceBank(nn.Module):
    """For each class the unlabeled images that show it, by the teacher's last look at each image.

    A buffer of C times the number of unlabeled images, in the checkpoint and equal on all ranks. An image is known by
    its place in its data set (``sample_idx``). A fingerprint of the file names is kept beside it, so that a bank is
    never applied to another list. The number of images is not known before the data set is: :meth:`resize` sets it
    before training, and loading a checkpoint takes over the checkpoint's.

    Args:
        num_classes: C.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.register_buffer('presence', torch.zeros(num_classes, 0, dtype=torch.bool))
        self.register_buffer('fingerprint', torch.zeros((), dtype=torch.long))

    def __len__(self) -> int:
        """Number of images; 0 before the data set is known."""
        return self.presence.shape[1]

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *args: Any, **kwargs: Any) -> None:
        stored = state_dict.get(f'{prefix}presence')
        if stored is not None and stored.dim() == 2 and stored.shape[0] == self.presence.shape[0]:
            self.presence = self.presence.new_zeros(stored.shape)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def resize(self, num_images: int, fingerprint: int, resumed: bool) -> None:
        """Make room for a data set; what is known of the very same images stays.

        Args:
            num_images: Images of the unlabeled data set, > 0.
            fingerprint: Of their names, int64.
            resumed: Whether the bank must be that of this data set already.

        Raises:
            ValueError: If a resumed run has another data set than the interrupted one.
        """
        if len(self) == num_images and int(self.fingerprint) == fingerprint:
            return
        if resumed and len(self):
            what = f'{num_images} instead of {len(self)} images' if len(self) != num_images else 'other images'
            raise ValueError(
                f'train_dataloader.dataset: the unlabeled source has {what} than in the interrupted run, so the '
                'presence bank of its checkpoint (mmssl.AdaptiveCutMix) does not fit; resume with the same list, or '
                'start a new run with load_from=<checkpoint>'
            )
        if len(self):
            print_log(
                'the presence bank of the checkpoint belongs to other unlabeled images and starts empty',
                logger='current',
                level=logging.WARNING,
            )
        self.presence = self.presence.new_zeros(self.presence.shape[0], num_images)
        self.fingerprint.fill_(fingerprint)

    def images_with(self, class_id: int) -> list[int]:
        """Images that show a class, in ascending order."""
        return self.presence[class_id].nonzero().flatten().tolist()

    @torch.no_grad()
    def update(self, images: list[int], places: list[int], present: Tensor) -> None:
        """Take in what the teacher saw, on all ranks alike.

        Args:
            images: Their ``sample_idx``, n numbers.
            places: Orders the images of all ranks: of an image that was seen twice, the last one counts. n numbers.
            present: Classes of each image, bool, (n, C).

        Raises:
            IndexError: If an image is not in the bank.
        """
        rows = torch.cat([torch.tensor([places, images]).T.to(present.device), present.long()], dim=1)
        if get_world_size() > 1:
            rows = torch.cat(all_gather(rows))
        rows = rows.cpu()
        last: dict[int, int] = {}
        for row in rows[:, 0].argsort().tolist():
            last[int(rows[row, 1])] = row
        if not all(0 <= image < len(self) for image in last):
            raise IndexError(
                f'the unlabeled images {sorted(last)} are not all among the {len(self)} of the presence bank: '
                '`sample_idx` must be the place of the image in its data set'
            )
        columns, order = list(last), list(last.values())
        self.presence[:, columns] = rows[order, 2:].T.bool().to(self.presence.device)
