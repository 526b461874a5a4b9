"""Widgets: attention that can be looked at and touched, in a notebook, in slides and in an exported page."""

from .ask import Ask
from .attention_view import AttentionView
from .base import strip_widget_state
from .decoding_tree import DecodingTree
from .image_attention import ImageAttention
from .mask_explorer import MaskExplorer, mask_pattern
from .position_explorer import PositionExplorer
from .quiz import Question, Quiz
from .softmax_lab import SoftmaxLab
from .step_through import StepThrough
from .tokenizer_view import TokenizerView
from .translator import Translator
from .two_translators import TwoTranslators

__all__ = [
    "Ask", "AttentionView", "DecodingTree", "ImageAttention", "MaskExplorer", "PositionExplorer", "Question", "Quiz",
    "SoftmaxLab", "StepThrough", "TokenizerView", "Translator", "TwoTranslators", "mask_pattern", "strip_widget_state",
]
