"""Widgets: attention that can be looked at and touched, in a notebook, in slides and in an exported page.

The names below are imported on first use: a plot that needs the colours loads no widget.
"""

from importlib import import_module

_FROM = {"Ask": "ask", "AttentionView": "attention_view", "DecodingTree": "decoding_tree",
         "ImageAttention": "image_attention", "MaskExplorer": "mask_explorer", "PositionExplorer": "position_explorer",
         "Question": "quiz", "Quiz": "quiz", "SoftmaxLab": "softmax_lab", "StepThrough": "step_through",
         "TokenizerView": "tokenizer_view", "Translator": "translator", "TwoTranslators": "two_translators",
         "mask_pattern": "mask_explorer", "strip_widget_state": "base"}
__all__ = [*_FROM]


def __getattr__(name: str):
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_FROM[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
