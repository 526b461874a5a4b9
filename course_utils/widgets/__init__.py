"""Widgets: attention that can be looked at and touched, in a notebook, in slides and in an exported page."""

from .attention_view import AttentionView
from .base import strip_widget_state

__all__ = ["AttentionView", "strip_widget_state"]
