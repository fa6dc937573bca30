"""Pictures of what the methods do."""

from .panels import Panel, draw_panels, pseudo_label_row
from .reliability import draw_reliability

__all__ = ['Panel', 'draw_panels', 'draw_reliability', 'pseudo_label_row']
