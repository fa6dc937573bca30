"""Finding the user's model behind wrappers."""

from mmengine.model import is_model_wrapper
from torch import nn


def unwrap_model(model: nn.Module) -> nn.Module:
    """The model inside a DDP-like wrapper, or the model itself."""
    return model.module if is_model_wrapper(model) else model
