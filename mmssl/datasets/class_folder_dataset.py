"""Folders of images, one for each class that a list names."""

import os
from collections.abc import Sequence
from typing import Any

from mmpretrain.datasets import CustomDataset

from mmssl.registry import DATASETS
from mmssl.utils.split_list import IMAGE_SUFFIXES, scan_folder


@DATASETS.register_module()
class ClassFolderDataset(CustomDataset):
    """mmpretrain's ``CustomDataset`` of class folders, with the classes in the order of a list.

    ``CustomDataset`` itself numbers the folders that it finds: with a class missing in the validation folder, the
    labels of all later ones are others there. Here the list says which folders are used, and which label is whose;
    other folders are left out, as for the 100 classes of ImageNet-100.

    Args:
        class_list: File with the name of one folder in each line (what follows a blank is a comment), or the names.
        data_root: Root of ``data_prefix`` and of ``class_list``. Default: ``''``.
        data_prefix: Folder of the class folders. Default: ``''``.
        kwargs: ``pipeline``, ``indices``, ... of ``CustomDataset``.

    Raises:
        FileNotFoundError: There is no such list, or a folder that it names does not exist.
        ValueError: The list is empty or names a folder twice, or a folder holds no image.
    """

    def __init__(self,
                 class_list: str | os.PathLike | Sequence[str],
                 data_root: str = '',
                 data_prefix: str = '',
                 **kwargs: Any) -> None:
        if isinstance(class_list, (str, os.PathLike)):
            path = os.path.join(data_root, class_list)
            if not os.path.isfile(path):
                raise FileNotFoundError(f'mmssl.ClassFolderDataset: `class_list`: there is no file {path!r}')
            with open(path, encoding='utf-8-sig') as file:
                names = [line.split()[0] for line in file if line.strip() and not line.startswith('#')]
        else:
            path, names = 'the list', [str(name) for name in class_list]
        if not names or len(set(names)) != len(names):
            what = 'names no class' if not names else 'names a class twice: ' + next(
                name for name in names if names.count(name) > 1)
            raise ValueError(f'mmssl.ClassFolderDataset: `class_list`: {path} {what}')
        self.folders = names
        super().__init__(
            data_root=data_root, data_prefix=data_prefix, metainfo=dict(classes=tuple(names)), **kwargs)

    def load_data_list(self) -> list[dict]:
        """One dict for each image, class after class, sorted by name within."""
        infos = []
        for label, name in enumerate(self.folders):
            folder = os.path.join(self.img_prefix, name)
            if not os.path.isdir(folder):
                raise FileNotFoundError(f'mmssl.ClassFolderDataset: class {name!r} of `class_list` has no folder '
                                        f'{folder!r}')
            files = scan_folder(folder, IMAGE_SUFFIXES)
            if not files:
                raise ValueError(f'mmssl.ClassFolderDataset: {folder!r} holds no image')
            infos += [dict(img_path=os.path.join(folder, file), gt_label=label) for file in files]
        return infos
