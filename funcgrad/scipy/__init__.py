"""Differentiable versions of SciPy's functions, with the same names, arguments and results.

NumPy values are computed by SciPy's kernels, JAX arrays by JAX's kernels where JAX has them. SciPy is needed
when a function is called, not when this package is imported. ``funcgrad[scipy]`` installs SciPy.
"""

from typing import TYPE_CHECKING

from funcgrad.optional import lazy_attributes

__all__ = [
    "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial", "special",
    "stats",
]  # fmt: skip

if TYPE_CHECKING:
    from funcgrad.scipy import (
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )
else:  # each module is imported at its first use
    __getattr__, __dir__ = lazy_attributes(__name__, globals(), {name: f"{__name__}.{name}" for name in __all__})
