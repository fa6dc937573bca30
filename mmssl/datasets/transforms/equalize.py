"""Spread the values of each channel of an image evenly."""

from mmpretrain.datasets.transforms import Equalize as MMPretrainEqualize

from mmssl.registry import TRANSFORMS

from .histograms import equalize


@TRANSFORMS.register_module()
class Equalize(MMPretrainEqualize):
    """mmpretrain's ``Equalize``, with the same arguments and results, by a lookup table."""

    def transform(self, results: dict) -> dict:
        """Replace ``img``, uint8, (H, W, C) or (H, W)."""
        if not self.random_disable():
            results['img'] = equalize(results['img'])
        return results
