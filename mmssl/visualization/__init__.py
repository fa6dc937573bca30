"""Pictures of what the methods do."""

from .panels import Panel, draw_panels, pseudo_label_row

__all__ = ['Panel', 'draw_panels', 'pseudo_label_row']
