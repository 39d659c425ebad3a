"""Fast Hankel transforms of logarithmically spaced samples: linear maps with symmetric matrices.

If a number such as ``dln`` is traced, SciPy's Python code computes the transform and is differentiated.
"""

from __future__ import annotations

from typing import Any

from funcgrad.core import Tracer
from funcgrad.numpy.creation import as_value
from funcgrad.scipy.fft.operations.hankel import hankel
from funcgrad.scipy.own_code import mirrors, rebuilt
from funcgrad.typing import Array, ArrayLike

__all__ = ["fht", "ifht"]


def _transformed(name: str, a: ArrayLike, dln: Any, mu: Any, offset: Any, bias: Any) -> Array:
    numbers = {"dln": dln, "mu": mu, "offset": offset, "bias": bias}
    if Tracer in map(type, numbers.values()):
        found: Array = rebuilt("fft._fftlog_backend", name)(a, **numbers)
        return found
    return hankel(as_value(a), name=name, **{what: float(value) for what, value in numbers.items()})


@mirrors
def fht(a: ArrayLike, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Array:
    """Compute the Hankel transform of order ``mu`` of samples at ``r[0] * exp(dln * j)``, at as many points.

    Args:
        a: samples, along the last axis.
        dln: the logarithmic distance of samples.
        mu: the order of the Bessel function.
        offset: the offset of the points of the result, see SciPy's ``fhtoffset``.
        bias: the exponent of a power law that is removed from the samples.

    Raises:
        InputError: ``a`` is a JAX array; JAX has no kernel for it.

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
