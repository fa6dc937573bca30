"""Blend an image with its mean gray level."""

from mmpretrain.datasets.transforms import Contrast as MMPretrainContrast

from mmssl.registry import TRANSFORMS

from .histograms import contrast


@TRANSFORMS.register_module()
class Contrast(MMPretrainContrast):
    """mmpretrain's ``Contrast``, with the same arguments and results, by a lookup table."""

    def transform(self, results: dict) -> dict:
        """Replace ``img``, uint8, BGR, (H, W, 3), or (H, W)."""
        if not self.random_disable():
            magnitude = self.random_magnitude() if self.magnitude is None else self.magnitude
            results['img'] = contrast(results['img'], 1 + self.random_negative(magnitude))
        return results
