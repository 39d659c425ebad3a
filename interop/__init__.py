"""Bridges from funcgrad to JAX: the cross-check of derivatives, and functions that JAX can transform.

JAX is needed when one of these is called, not to import them. It comes with the extra ``funcgrad[jax]``.

Example:
    >>> import numpy as np
    >>> from funcgrad.interop import crosscheck
    >>> bool(crosscheck(np.tanh)(0.5))
    True
"""

from funcgrad.interop.checking import crosscheck
from funcgrad.interop.lift import to_jax
from funcgrad.interop.report import CrossCheck, Row

__all__ = ["CrossCheck", "Row", "crosscheck", "to_jax"]
