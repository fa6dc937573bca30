"""What adaptive equalization learning remembers and draws: banks, and random numbers that a resumed run repeats."""

from .confidence_bank import ConfidenceBank
from .equalization_sampling import EqualizationSampling
from .presence_bank import PresenceBank
from .seeded_module import SeededModule

__all__ = ['ConfidenceBank', 'EqualizationSampling', 'PresenceBank', 'SeededModule']
