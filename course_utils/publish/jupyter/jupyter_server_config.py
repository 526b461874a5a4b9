"""Settings of the Jupyter server that ``course lab`` starts; they come before the user's own."""


def forget_python_version(model: dict, **_) -> None:
    """Save a notebook without its kernel's version of Python, so that opening a lesson does not change its file."""
    if model["type"] == "notebook" and model["content"]:
        model["content"]["metadata"].get("language_info", {}).pop("version", None)


get_config().ContentsManager.pre_save_hook = forget_python_version  # noqa: F821 (Jupyter gives it)
