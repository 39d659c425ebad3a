"""SciPy's functions, differentiable: the same names, arguments and results.

The kernels are SciPy's for NumPy values, and JAX's for JAX arrays where it has them. SciPy is needed when
a function is called, not to import it; it comes with ``funcgrad[scipy]``.
"""

from typing import TYPE_CHECKING

from funcgrad.optional import later

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
else:  # each is imported when it is first asked for
    __getattr__, __dir__ = later(__name__, globals(), {name: f"{__name__}.{name}" for name in __all__})
