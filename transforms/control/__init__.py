"""Structured control flow: loops and branches that are plain Python on values and ``jax.lax`` when compiled.

Names and arguments are the same as in ``jax.lax``.

Example:
    >>> import numpy as np
    >>> from funcgrad import control, grad
    >>> grad(lambda x: control.fori_loop(0, 3, lambda i, v: v * x, 1.0))(2.0)
    np.float64(12.0)
"""

from funcgrad.transforms.control.branching import cond, switch
from funcgrad.transforms.control.loops import fori_loop, scan, while_loop
from funcgrad.transforms.control.mapping import associative_scan, map

__all__ = ["associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop"]
