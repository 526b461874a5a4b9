"""The widgets in JupyterLab, with a kernel: one JupyterLab shows one notebook after the other.

What is tested stands beside the other tests of its widget.
"""

import pytest
import test_ask_browser
import test_decoding_tree_browser
import test_image_attention_browser
import test_position_explorer_browser
import test_softmax_lab_browser
import test_step_through_browser
import test_translator_browser
import test_two_translators_browser
import test_widgets_browser
import test_widgets_many_browser


@pytest.mark.parametrize("live", [
    test_ask_browser.live,
    test_decoding_tree_browser.live,
    test_decoding_tree_browser.reopened,
    test_image_attention_browser.live,
    test_position_explorer_browser.live,
    test_softmax_lab_browser.live,
    test_step_through_browser.live,
    test_translator_browser.live,
    test_two_translators_browser.live,
    test_widgets_browser.live,
    test_widgets_browser.reopened_untrusted,
    test_widgets_many_browser.a_closed_view_leaves_and_the_others_stay,
], ids=lambda live: f"{live.__module__}-{live.__name__}".removeprefix("test_").replace("_browser", ""))
def test_in_jupyterlab(jupyter, lab, live):
    live(jupyter, lab)
