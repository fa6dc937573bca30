"""Pairs of faces for verification."""

import os
from collections.abc import Mapping
from typing import Any

from mmengine.dataset import BaseDataset

from mmssl.registry import DATASETS
from mmssl.utils.pairs_list import read_pairs
from mmssl.utils.split_list import FileIndex, describe_missing

from .wrapping import add_metainfo


@DATASETS.register_module()
class FacePairsDataset(BaseDataset):
    """Images of pairs, one after the other, for ``mmssl.FaceVerification``.

    Images 2i and 2i + 1 are those of pair i. Their data samples have in their meta information ``benchmark`` (the name
    of the data set), ``pair``, ``side`` (0 or 1) and ``same``.

    Args:
        ann_file: List of pairs, in the format of LFW or as two paths with a 0 or a 1 a line, see
            :func:`mmssl.utils.pairs_list.read_pairs`.
        name: Name of the benchmark in the log. Default: None, the name of ``ann_file`` without suffix.
        img_suffix: Suffix of the images of a list of LFW. Default: ``'.jpg'``.
        data_root: Root of all relative paths. Default: ``''``.
        data_prefix: ``img_path``, the folder of the images, or that folder alone. Default: ``''``, the root.
        pipeline: Transforms, for single images.
        kwargs: As for mmengine's ``BaseDataset``.

    Raises:
        FileNotFoundError: The list or an image does not exist.
        ValueError: A line that is none of these formats, or no pair at all.
    """

    def __init__(self,
                 ann_file: str,
                 name: str | None = None,
                 img_suffix: str = '.jpg',
                 data_root: str = '',
                 data_prefix: str | dict = '',
                 **kwargs: Any) -> None:
        self.name = name or os.path.splitext(os.path.basename(ann_file))[0]
        self.img_suffix = img_suffix
        prefix = dict(data_prefix) if isinstance(data_prefix, Mapping) else dict(img_path=data_prefix)
        # A missing or broken image is an error: another one in its place would be another pair.
        kwargs.setdefault('test_mode', True)
        super().__init__(ann_file=ann_file, data_root=data_root, data_prefix=prefix, **kwargs)

    def load_data_list(self) -> list[dict]:
        """Find the images.

        Returns:
            One dict for each image, two for each pair.
        """
        owner = 'mmssl.FacePairsDataset: `ann_file`'
        folder, index = self.data_prefix.get('img_path') or '', FileIndex()
        data_list, missing = [], {}
        for number, pair in enumerate(read_pairs(self.ann_file, self.img_suffix, owner)):
            for side, image in enumerate((pair.first, pair.second)):
                path = index.find(os.path.join(folder, image))
                if path is None:
                    missing[image] = None
                data_list.append(dict(img_path=path, pair=number, side=side, same=pair.same, benchmark=self.name))
        if missing:
            raise FileNotFoundError(f'{owner}={self.ann_file!r}: {describe_missing(missing)} are not in '
                                    f'`data_prefix.img_path`={folder!r}')
        return data_list

    def prepare_data(self, idx: int) -> Any:
        """One image after the pipeline, with what is known of its pair."""
        info = self.get_data_info(idx)
        item = self.pipeline(dict(info))
        add_metainfo(item, **{key: info[key] for key in ('benchmark', 'pair', 'side', 'same')})
        return item
