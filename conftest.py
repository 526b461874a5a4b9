"""What holds for every run of the tests: their marks, their order, and one thread per process."""

import os

import pytest

# Each worker has a core (pytest -n); a worker's kernels and other processes inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    """Mark what runs a notebook or a browser; the notebooks, which take longest, come first."""
    for item in items:
        if item.path.suffix == ".ipynb":
            item.add_marker("notebook")
        elif "browser" in item.fixturenames:
            item.add_marker("browser")
    items.sort(key=lambda item: "notebook" not in item.keywords)  # in their order otherwise
