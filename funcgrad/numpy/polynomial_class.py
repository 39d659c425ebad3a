"""``poly1d`` with coefficients that are traced, or another library's."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.errors import InputError
from funcgrad.numpy import polynomials as functions
from funcgrad.numpy.creation import asarray, copy
from funcgrad.numpy.elementwise import array_equal, negative
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.peeking import is_plain
from funcgrad.numpy.shaping import atleast_1d
from funcgrad.typing import Array, ArrayLike

__all__ = ["poly1d"]


def poly1d(c_or_r: ArrayLike, r: bool = False, variable: str | None = None) -> np.poly1d:
    """A polynomial as ``numpy.poly1d`` has it: it can be called, added, multiplied, derived and integrated.

    The coefficients may be traced. Leading ones that are 0 then stay, for they need not be 0 a moment later: ``order``
    is one less than the number of coefficients.

    Args:
        c_or_r: the coefficients, that of the highest power first; or another polynomial.
        r: whether these are the zeros instead.
        variable: what it is printed with.

    Raises:
        ValueError: coefficients of several axes.

    Example:
        >>> fnp.poly1d([1, 2])
        poly1d([1, 2])
        >>> grad(lambda c: (fnp.poly1d(c) ** 2).deriv()(1.0))(np.array([1.0, 2.0]))
        array([8., 2.])
    """
    plain = is_plain(c_or_r) and not isinstance(c_or_r, _Traced)
    return np.poly1d(c_or_r, r, variable) if plain else _Traced(c_or_r, r, variable)


class _Traced(np.poly1d):
    """A polynomial whose coefficients NumPy's class cannot take: it cuts those off that are 0."""

    coeffs: Any

    def __init__(self, c_or_r: Any, r: bool = False, variable: str | None = None) -> None:
        if isinstance(c_or_r, np.poly1d):
            coefficients, variable = c_or_r.coeffs, variable or c_or_r.variable
        else:
            coefficients = functions.poly(c_or_r) if r else atleast_1d(c_or_r)
        if len(backend.shape_of(coefficients)) > 1:
            raise ValueError("Polynomial must be 1d only.")
        self.__dict__["coeffs"] = coefficients
        self._variable = variable or "x"

    def _with(self, coefficients: Any) -> _Traced:
        return _Traced(coefficients, False, self._variable)

    @property
    def roots(self) -> Array:
        """Where it is zero."""
        return functions.roots(self.coeffs)

    r = roots

    def __call__(self, val: Any) -> Any:
        """Its value at ``val``; of a polynomial the composition."""
        if not isinstance(val, np.poly1d):
            return functions.polyval(self.coeffs, val)
        made: Any = self._with([0.0])
        for c in self.coeffs:
            made = made * val + c
        return made

    def __repr__(self) -> str:
        return f"poly1d({self.coeffs!r})"

    __str__ = __repr__

    def __neg__(self) -> _Traced:
        return self._with(negative(self.coeffs))

    def __add__(self, other: Any) -> _Traced:
        return self._with(functions.polyadd(self.coeffs, _coefficients(other)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> _Traced:
        return self._with(functions.polysub(self.coeffs, _coefficients(other)))

    def __rsub__(self, other: Any) -> _Traced:
        return self._with(functions.polysub(_coefficients(other), self.coeffs))

    def __mul__(self, other: Any) -> _Traced:
        return self._with(functions.polymul(self.coeffs, _coefficients(other)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if not backend.shape_of(asarray(_coefficients(other))):
            return self._with(self.coeffs / other)
        return self._divided(self.coeffs, _coefficients(other))

    def __rtruediv__(self, other: Any) -> Any:
        return self._divided(_coefficients(other), self.coeffs)

    def _divided(self, u: Any, v: Any) -> tuple[_Traced, _Traced]:
        quotient, remainder = functions.polydiv(atleast_1d(u), atleast_1d(v))
        return self._with(quotient), self._with(remainder)

    def __pow__(self, val: Any) -> _Traced:
        n = operator.index(val)
        if n < 0:
            raise ValueError("Power to non-negative integers only.")
        made: Any = [1.0]
        for _ in range(n):
            made = functions.polymul(self.coeffs, made)
        return self._with(made)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, np.poly1d):
            return NotImplemented
        return array_equal((self - other).coeffs, 0 * (self - other).coeffs)

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = None

    def __getitem__(self, val: Any) -> Any:
        """The coefficient of a power."""
        n = operator.index(val)
        return self.coeffs[self.order - n] if 0 <= n <= self.order else 0

    def __setitem__(self, key: Any, val: Any) -> None:
        n = operator.index(key)
        if n < 0:
            raise ValueError("Does not support negative powers.")
        more = np.zeros(max(n - self.order, 0))
        made = concatenate([more, self.coeffs]) if more.size else copy(self.coeffs)
        made[len(made) - 1 - n] = val
        self.__dict__["coeffs"] = made

    def __iter__(self) -> Iterator[Any]:
        return iter(self.coeffs)

    def deriv(self, m: Any = 1) -> _Traced:
        """The derivative of order ``m`` with respect to the variable."""
        return self._with(functions.polyder(self.coeffs, m))

    def integ(self, m: Any = 1, k: Any = 0) -> _Traced:
        """The integral of order ``m``, with the constants ``k``."""
        return self._with(functions.polyint(self.coeffs, m, k))


def _coefficients(other: Any) -> Any:
    """Those of a polynomial; a number or a list of them as it is."""
    if isinstance(other, np.poly1d):
        return other.coeffs
    if other is None or isinstance(other, (str, dict)):
        raise InputError(f"poly1d: a polynomial, a number or coefficients are needed, got {other!r}. Pass one of them.")
    return other
