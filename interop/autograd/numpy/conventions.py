"""NumPy functions to which HIPS autograd gives another derivative than funcgrad where there is a choice.

The derivative of the absolute value at 0 is 0. Two equal numbers in ``fmax`` or ``fmin`` get half each. At a limit
of ``clip`` the limit gets the derivative. ``0 ** y`` has the derivative 0 with respect to ``y``. ``eigh`` reads one
triangle. These choices hold for the functions here; ``abs(x)``, ``x ** y`` and methods follow funcgrad.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.backend import dtype_of, is_inexact
from funcgrad.core import Tracer
from funcgrad.extend import Operation, elementwise
from funcgrad.numpy.creation import as_value
from funcgrad.typing import Array, ArrayLike

__all__ = ["abs", "absolute", "clip", "eigh", "eigvalsh", "fabs", "fmax", "fmin", "power"]


def _half(x: Any, y: Any, chosen: Any) -> Any:
    """Return the share of the derivative of ``chosen``, which is ``x`` or ``y``, that goes to ``x``."""
    return fnp.where(x == y, 0.5, fnp.where(x == chosen, 1.0, 0.0))


def _number(condition: Any) -> Any:
    return fnp.where(condition, 1.0, 0.0)


_absolute: Operation = elementwise("absolute", dx=lambda x: fnp.sign(x))
_fabs: Operation = elementwise("fabs", dx=lambda x: fnp.sign(x))
_fmax: Operation = elementwise("fmax", dx=lambda x, y, ans: _half(x, y, ans), dy=lambda x, y, ans: _half(y, x, ans))
_fmin: Operation = elementwise("fmin", dx=lambda x, y, ans: _half(x, y, ans), dy=lambda x, y, ans: _half(y, x, ans))
#: Above the upper limit NumPy returns the upper limit, even if the lower limit is larger.
_clip: Operation = elementwise(
    "clip",
    dx=lambda x, y, z: _number(fnp.logical_not(fnp.logical_or(x <= y, x >= z))),
    dy=lambda x, y, z: _number(fnp.logical_and(x <= y, y < z)),
    dz=lambda x, y, z: _number(fnp.logical_or(y >= z, x >= z)),
)
_power: Operation = elementwise(
    "power",
    dx=lambda x, y: fnp.where(y == 0, 0.0, y * fnp.power(x, fnp.where(y == 0, 1.0, y - 1))),
    dy=lambda x, ans: fnp.log(fnp.where(x == 0, 1.0, x)) * ans,
)


def _is_real(*values: Any) -> bool:
    """Return whether all values are floating and not complex, and one of them is traced."""
    traced = Tracer in map(type, values)
    return traced and all(is_inexact(x) and dtype_of(x).kind == "f" for x in values)


def absolute(x: ArrayLike, /, *args: Any, **kwargs: Any) -> Array:
    """Compute ``numpy.absolute``; the derivative at 0 is 0.

    Example:
        >>> from funcgrad.interop.autograd import grad
        >>> grad(absolute)(0.0)
        np.float64(0.0)
    """
    x = as_value(x)
    return _absolute(x) if _is_real(x) and not args and not kwargs else fnp.absolute(x, *args, **kwargs)


abs = absolute


def fabs(x: ArrayLike, /, *args: Any, **kwargs: Any) -> Array:
    """Compute ``numpy.fabs``; the derivative at 0 is 0."""
    x = as_value(x)
    return _fabs(x) if _is_real(x) and not args and not kwargs else fnp.fabs(x, *args, **kwargs)


def fmax(x1: ArrayLike, x2: ArrayLike, /, *args: Any, **kwargs: Any) -> Array:
    """Compute ``numpy.fmax``; two equal numbers get half of the derivative each."""
    x1, x2 = _floats(x1, x2)
    return _fmax(x1, x2) if _is_real(x1, x2) and not args and not kwargs else fnp.fmax(x1, x2, *args, **kwargs)


def fmin(x1: ArrayLike, x2: ArrayLike, /, *args: Any, **kwargs: Any) -> Array:
    """Compute ``numpy.fmin``; two equal numbers get half of the derivative each."""
    x1, x2 = _floats(x1, x2)
    return _fmin(x1, x2) if _is_real(x1, x2) and not args and not kwargs else fnp.fmin(x1, x2, *args, **kwargs)


def power(x1: ArrayLike, x2: ArrayLike, /, *args: Any, **kwargs: Any) -> Array:
    """Compute ``numpy.power``; at a base of 0 the derivative with respect to the exponent is 0."""
    x1, x2 = as_value(x1), as_value(x2)
    if not isinstance(x2, Tracer) or not _is_real(*_floats(x1, x2)) or args or kwargs:
        return fnp.power(x1, x2, *args, **kwargs)
    return _power(*_floats(x1, x2))


def clip(a: ArrayLike, a_min: ArrayLike | None = None, a_max: ArrayLike | None = None, **kwargs: Any) -> Array:
    """Compute ``numpy.clip``; at a limit and beyond it the limit gets the derivative, and ``a`` gets 0.

    Example:
        >>> from funcgrad.interop.autograd import elementwise_grad
        >>> elementwise_grad(lambda x: clip(x, 0.0, 1.0))(np.array([-1.0, 0.0, 0.5, 1.0]))
        array([0., 0., 1., 0.])
    """
    low, high = kwargs.pop("min", a_min), kwargs.pop("max", a_max)
    if kwargs:
        return fnp.clip(a, low, high, **kwargs)
    a, lower, upper = _floats(a, -np.inf if low is None else low, np.inf if high is None else high)
    return _clip(a, lower, upper) if _is_real(a, lower, upper) else fnp.clip(a, low, high)


def _floats(*values: Any) -> list[Any]:
    """Return the values; if one of them is traced, Python integers become floats."""
    found = [as_value(x) for x in values]
    if Tracer not in map(type, found):
        return found
    return [float(x) if type(x) is int else x for x in found]


def _one_triangle(a: Any, uplo: str) -> Any:
    """Return the Hermitian matrix made of one triangle of ``a``, which is how LAPACK reads ``a``."""
    part = fnp.tril(a, -1) if uplo.upper() == "L" else fnp.triu(a, 1)
    diagonal = fnp.real(fnp.diagonal(a, axis1=-2, axis2=-1))
    return part + fnp.conj(fnp.swapaxes(part, -2, -1)) + diagonal[..., None] * np.eye(a.shape[-1])


def eigh(a: ArrayLike, UPLO: str = "L") -> Any:
    """Compute ``numpy.linalg.eigh``; the gradient is nonzero only in the triangle that is read.

    Example:
        >>> from funcgrad.interop.autograd import grad
        >>> grad(lambda a: eigh(a)[0][0])(np.array([[2.0, 1.0], [1.0, 2.0]])).round(3)
        array([[ 0.5,  0. ],
               [-1. ,  0.5]])
    """
    a = as_value(a)
    return fnp.linalg.eigh(_one_triangle(a, UPLO) if isinstance(a, Tracer) else a, UPLO)


def eigvalsh(a: ArrayLike, UPLO: str = "L") -> Array:
    """Compute ``numpy.linalg.eigvalsh``; the gradient is nonzero only in the triangle that is read."""
    a = as_value(a)
    return fnp.linalg.eigvalsh(_one_triangle(a, UPLO) if isinstance(a, Tracer) else a, UPLO)
