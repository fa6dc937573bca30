"""What adaptive equalization learning remembers: its banks, and the sampling that they steer."""

from .confidence_bank import ConfidenceBank
from .equalization_sampling import EqualizationSampling
from .presence_bank import PresenceBank

__all__ = ['ConfidenceBank', 'EqualizationSampling', 'PresenceBank']
