"""Fast Hankel transforms of logarithmically spaced samples, by SciPy's Python code."""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.numpy.creation import as_value
from funcgrad.numpy_code import run_anywhere
from funcgrad.optional import import_scipy
from funcgrad.scipy.own_code import mirrors
from funcgrad.typing import Array, ArrayLike

__all__ = ["fht", "ifht"]


def _transformed(name: str, a: Any, dln: Any, mu: Any, offset: Any, bias: Any) -> Array:
    """Run the code behind SciPy's public function, which only looks for it, or its parts.

    SciPy's function leaves out the powers of the points if the exponent ``bias`` is 0, where they have a derivative.
    """
    backend = import_scipy(f"fft.{name}", "scipy.fft._fftlog_backend")
    found: Array
    if not isinstance(bias, Tracer):
        found = run_anywhere(getattr(backend, name), (a, dln, mu, offset, bias), {})
        return found
    a, inverse = as_value(a), name == "ifht"
    r = (np.arange(a.shape[-1]) - (a.shape[-1] - 1) / 2) * dln
    before, after = (r + offset, r) if inverse else (-r, -r - offset)
    factors = run_anywhere(backend.fhtcoeff, (a.shape[-1], dln, mu, offset, bias, inverse), {})
    found = run_anywhere(backend._fhtq, (a * fnp.exp(bias * before), factors, inverse), {})
    return found * fnp.exp(bias * after)


@mirrors
def fht(a: ArrayLike, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Array:
    """Compute the Hankel transform of order ``mu`` of samples at ``r[0] * exp(dln * j)``, at as many points.

    Args:
        a: samples, along the last axis.
        dln: the logarithmic distance of samples.
        mu: the order of the Bessel function.
        offset: the offset of the points of the result, see SciPy's ``fhtoffset``.
        bias: the exponent of a power law that is removed from the samples.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.fht([1.0, 2.0, 1.0], 0.5, 0.0).round(6)
        array([0.870996, 1.14855 , 1.980454])
    """
    return _transformed("fht", a, dln, mu, offset, bias)


@mirrors
def ifht(A: ArrayLike, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Array:
    """Compute the inverse of ``fht``; arguments as for ``fht``.

    Example:
        >>> from funcgrad.scipy import fft
        >>> fft.ifht(fft.fht([1.0, 2.0, 1.0], 0.5, 0.0), 0.5, 0.0).round(6)
        array([1., 2., 1.])
    """
    return _transformed("ifht", A, dln, mu, offset, bias)
