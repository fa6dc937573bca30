"""Stretch each channel of an image to the full range."""

from mmpretrain.datasets.transforms import AutoContrast as MMPretrainAutoContrast

from mmssl.registry import TRANSFORMS

from .histograms import auto_contrast


@TRANSFORMS.register_module()
class AutoContrast(MMPretrainAutoContrast):
    """mmpretrain's ``AutoContrast``, with the same arguments and results, by a lookup table."""

    def transform(self, results: dict) -> dict:
        """Replace ``img``, uint8, (H, W, C) or (H, W)."""
        if not self.random_disable():
            results['img'] = auto_contrast(results['img'])
        return results
