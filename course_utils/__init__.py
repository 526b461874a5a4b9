"""The helper package of the course: what the notebooks use and do not explain line by line."""

import os
import random


def setup(seed: int = 0) -> int:
    """Make a notebook repeatable: one seed everywhere, one core, one look for the plots.

    Models stay on the CPU, also where there is a graphics card: they are miniatures, and the notebooks make their
    batches, masks and positions there.

    Args:
        seed: used for ``random``, NumPy and PyTorch. The environment variable ``COURSE_SEED`` overrides it, so
            that the same notebook can be executed at another seed (``course run 02 --seed 1``).

    Returns:
        The seed that is in force.

    Raises:
        ValueError: if ``COURSE_SEED`` is set to something that is not a whole number.
    """
    import numpy as np
    import torch

    from .course import seed_asked_for
    from .plotting import use_course_style

    asked = seed_asked_for()
    seed = seed if asked is None else asked
    os.environ.setdefault("ACCELERATE_USE_CPU", "true")
    random.seed(seed % 2**32)                               # it takes -1 for 1
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    use_course_style()
    return seed
