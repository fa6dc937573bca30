"""Load what is known of an image's segments: the truth of one or several people, and scribbles."""

import os
from typing import Any

import numpy as np
from mmcv.transforms import BaseTransform
from PIL import Image

from mmssl.functional.unsupervised_segmentation import IGNORED
from mmssl.registry import TRANSFORMS
from mmssl.utils.values import check_number


@TRANSFORMS.register_module()
class LoadSegments(BaseTransform):
    """Read true segments, each with a number of its own, and labels of some pixels (scribbles).

    The truth is the sample's ``seg_map_path`` (``mmssl.UnlabeledImageDataset(seg_map_path=...)``): a picture of
    numbers as in VOC's ``SegmentationObject``, or a ``.mat`` file of BSDS500, which holds one map for each of several
    people. Without ``seg_map_path`` there is no truth, and nothing is added.

    Args:
        ignore_index: Number in a picture that means: nobody knows. It does not apply to ``.mat`` files, whose numbers
            are all segments. Default: 255.
        scribbles: A picture, or a folder of pictures that are named like the image, whose pixels hold the label of a
            scribble or ``ignore_index``. Images without one in the folder have no scribbles. Default: None.

    Raises:
        ValueError: A file does not hold what it should, or has another size than the image.
        FileNotFoundError: ``scribbles`` does not exist.
    """

    def __init__(self, ignore_index: int = 255, scribbles: str | os.PathLike | None = None) -> None:
        check_number(ignore_index, 'mmssl.LoadSegments: `ignore_index`', lambda n: n >= 0, 'an integer >= 0', int)
        if scribbles is not None and not os.path.exists(scribbles):
            raise FileNotFoundError(f'mmssl.LoadSegments: `scribbles`={os.fspath(scribbles)!r} is no file and no '
                                    'folder')
        self.ignore_index = ignore_index
        self.scribbles = None if scribbles is None else os.fspath(scribbles)

    def transform(self, results: dict) -> dict:
        """Add ``gt_segments``, (A, H, W), and ``gt_scribbles``, (H, W), as far as they exist; -1 is unknown.

        Args:
            results: Sample with ``img`` and perhaps ``seg_map_path``.
        """
        size = results['img'].shape[:2]
        path = results.get('seg_map_path')
        if path is not None:
            maps = read_mat(path) if path.endswith('.mat') else [self._read_picture(path)]
            results['gt_segments'] = np.stack([_checked(one, size, path, results) for one in maps])
        scribbles = self._scribbles_of(results)
        if scribbles is not None:
            results['gt_scribbles'] = _checked(self._read_picture(scribbles), size, scribbles, results)
        return results

    def _scribbles_of(self, results: dict) -> str | None:
        if self.scribbles is None or not os.path.isdir(self.scribbles):
            return self.scribbles
        stem = os.path.splitext(os.path.basename(results['img_path']))[0]
        path = os.path.join(self.scribbles, f'{stem}.png')
        return path if os.path.isfile(path) else None

    def _read_picture(self, path: str) -> np.ndarray:
        """Numbers of a picture; of one with a palette, not its colors."""
        try:
            with Image.open(path) as picture:
                values = np.asarray(picture)
        except OSError as error:
            raise ValueError(f'mmssl.LoadSegments: {path!r} is no picture that can be read: {error}') from error
        if values.ndim != 2 or values.dtype.kind not in 'buif' or (values % 1).any():
            raise ValueError(f'mmssl.LoadSegments: {path!r} must hold one whole number for each pixel, got an array of '
                             f'shape {values.shape} and type {values.dtype}')
        values = values.astype(np.int64)
        values[values == self.ignore_index] = IGNORED
        return values

    def __repr__(self) -> str:
        return f'{type(self).__name__}(ignore_index={self.ignore_index}, scribbles={self.scribbles!r})'


def read_mat(path: str) -> list[np.ndarray]:
    """The segmentations of all people in a file of BSDS500.

    Raises:
        ValueError: It has no ``groundTruth`` with ``Segmentation``.
    """
    from scipy.io import loadmat
    try:
        people = loadmat(path)['groundTruth'].ravel()
        return [np.asarray(person['Segmentation'].ravel()[0]).astype(np.int64) for person in people]
    except Exception as error:  # scipy raises what it likes on a damaged file
        raise ValueError(f'mmssl.LoadSegments: {path!r} is no truth of BSDS500, a .mat file with `groundTruth`, each '
                         f'with `Segmentation`: {type(error).__name__}: {error}') from error


def _checked(values: np.ndarray, size: tuple[int, int], path: str, results: dict[str, Any]) -> np.ndarray:
    if values.shape != size:
        raise ValueError(f'mmssl.LoadSegments: {path!r} has the size {values.shape}, but the image '
                         f'{results.get("img_path")!r} has {tuple(size)} (height, width)')
    return values
