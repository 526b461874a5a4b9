"""Sizes of published models: each as its authors say, and none of them in memory."""

import pytest
from torch import nn

from course_utils.sizes import PUBLISHED, millions


def test_a_linear_layer_is_counted():
    assert millions(lambda: nn.Linear(1000, 2000)) == pytest.approx(2.002)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_model_is_as_large_as_its_authors_say(name):
    published, build = PUBLISHED[name]
    assert millions(build) == pytest.approx(published, rel=0.06)
