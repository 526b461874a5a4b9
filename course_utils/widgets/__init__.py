"""Widgets: attention that can be looked at and touched, in a notebook, in slides and in an exported page."""

from .attention_view import AttentionView
from .base import strip_widget_state
from .decoding_tree import DecodingTree
from .quiz import Question, Quiz
from .tokenizer_view import TokenizerView

__all__ = ["AttentionView", "DecodingTree", "Question", "Quiz", "TokenizerView", "strip_widget_state"]
