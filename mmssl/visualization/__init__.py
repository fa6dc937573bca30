"""Pictures of what the methods do."""

from .panels import Panel, draw_panels

__all__ = ['Panel', 'draw_panels']
