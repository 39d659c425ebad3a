"""NumPy's old polynomial functions and ``poly1d``; the coefficient of the highest power comes first.

For plain values NumPy computes every result. NumPy trims leading zeros; traced ones are kept, because they may have a
derivative.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from funcgrad import backend
from funcgrad.errors import InputError
from funcgrad.kinds.linear import conj, imag, permute, real, reshape
from funcgrad.numpy import reductions, signals
from funcgrad.numpy.creation import as_buffer, as_value, asarray, copy, zeros_like
from funcgrad.numpy.diagonals import vander
from funcgrad.numpy.elementwise import array_equal, negative
from funcgrad.numpy.indexing import getitem
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.plain_values.concretization import forget_refusal
from funcgrad.numpy.plain_values.peeking import is_plain, shared_truth, warn
from funcgrad.numpy.products import matmul, outer
from funcgrad.numpy.rearranging import flip
from funcgrad.numpy.reducing import as_dtype, as_floating
from funcgrad.numpy.shaping import atleast_1d, result_type
from funcgrad.numpy.sorting import sort
from funcgrad.primitives import polynomials as prim
from funcgrad.primitives.comparison import equal, not_equal, where
from funcgrad.primitives.elementwise import sqrt
from funcgrad.typing import Array, ArrayLike
from funcgrad.writable import Proxy

__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval", "roots", "poly1d",
]  # fmt: skip


_F = TypeVar("_F", bound=Callable[..., Any])
numpy: Any = np  # its annotations do not accept traced values


# ---- helpers shared with the families of numpy.polynomial ----------------------------------------------------


def known_truth(condition: Any) -> bool | None:
    """Return a truth value; None if the examples of a ``vmap`` disagree, or if JAX traces ``condition``."""
    try:
        return shared_truth(condition)
    except TypeError:
        forget_refusal()
        return None


def is_known_true(condition: Any) -> bool:
    """Whether ``condition``, one truth value, is known and true."""
    return known_truth(condition) is True


def coefficients(a: ArrayLike) -> Array:
    """Return ``a`` as an array with at least one axis."""
    a = as_value(a)
    return a if backend.shape_of(a) else reshape(a, to=(1,))


def design_norms(lhs: Array) -> Array:
    """Return the Euclidean norms of the columns of a matrix, with 1 for a zero column."""
    squares = reductions.sum(real(lhs) ** 2 + imag(lhs) ** 2 if backend.dtype_of(lhs).kind == "c" else lhs * lhs, 0)
    return sqrt(where(equal(squares, 0), 1.0, squares))


def solve_scaled(lhs: Array, rhs: Array, scale: Array, rcond: Any) -> tuple[Any, Any, Any, Any]:
    """Call ``lstsq`` with the columns of ``lhs`` divided by ``scale``, which improves the condition."""
    from funcgrad.numpy import linalg  # imported here because few programs need it

    c, residuals, rank, singular = linalg.lstsq(lhs / scale, rhs, rcond)
    by = scale if len(backend.shape_of(rhs)) == 1 else getitem(scale, (slice(None), None))
    return c / by, residuals, rank, singular


def checked_samples(x: ArrayLike, y: ArrayLike, w: ArrayLike | None) -> tuple[Array, Array, Any]:
    """Check the arguments of a fit and return them as floating arrays.

    Raises:
        TypeError: a wrong number of axes, different lengths, or no points.
    """
    x, y = as_floating(as_value(x)), as_floating(as_value(y))
    points, values = backend.shape_of(x), backend.shape_of(y)
    if len(points) != 1:
        raise TypeError("expected 1D vector for x")
    if points[0] == 0:
        raise TypeError("expected non-empty vector for x")
    if len(values) not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if values[0] != points[0]:
        raise TypeError("expected x and y to have same length")
    if w is None:
        return x, y, None
    w = as_floating(as_value(w))
    if len(backend.shape_of(w)) != 1:
        raise TypeError("expected a 1-d array for weights")
    if backend.shape_of(w) != points:
        raise TypeError("expected w and y to have the same length")
    return x, y, w


def weight_rows(a: Array, w: Any) -> Array:
    """Return the rows of ``a`` times ``w``."""
    if w is None:
        return a
    return a * (w if len(backend.shape_of(a)) == 1 else getitem(w, (slice(None), None)))


def default_rcond(x: Array) -> Any:
    """Return the default ``rcond`` of a fit: the number of points times the machine epsilon of ``x``."""
    return backend.shape_of(x)[0] * backend.library_of(x).finfo(backend.dtype_of(x)).eps


def warn_of_rank(rank: Any, order: int, text: str) -> None:
    """Give NumPy's warning ``text`` if the fit is known to be underdetermined."""
    if is_known_true(not_equal(rank, order)):
        warn(text, np.exceptions.RankWarning)


# ---- values and roots ------------------------------------------------------------------------------------------


def poly(seq_of_zeros: ArrayLike) -> Array:
    """Return the polynomial with the zeros ``seq_of_zeros``, or the characteristic polynomial of a square matrix.

    The derivative of the characteristic polynomial is exact for equal eigenvalues too.

    Raises:
        ValueError: the argument is neither a vector nor a square matrix, or is an empty matrix.

    Example:
        >>> fnp.poly([1.0, 2.0])
        array([ 1., -3.,  2.])
    """
    if is_plain(seq_of_zeros):
        return np.poly(seq_of_zeros)
    zeros = coefficients(seq_of_zeros)
    shape = backend.shape_of(zeros)
    if len(shape) == 2 and shape[0] == shape[1] != 0:
        return prim.characteristic(as_floating(zeros))
    if len(shape) != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    if not shape[0]:
        return 1.0
    zeros = as_dtype(zeros, np.dtype(np.mintypecode(backend.dtype_of(zeros).char)))
    dtype = backend.dtype_of(zeros)
    made: Array = np.ones(1, dtype)
    for i in range(shape[0]):
        longer, shifted = concatenate([made, np.zeros(1, dtype)]), concatenate([np.zeros(1, dtype), made])
        made = longer - getitem(zeros, i) * shifted
    if dtype.kind == "c" and is_known_true(reductions.all(equal(sort(zeros), sort(conj(zeros))))):
        return real(made)
    return made


def roots(p: ArrayLike) -> Array:
    """Return the zeros of a polynomial, in no particular order.

    The derivative of a zero ``r`` with respect to the coefficient of the power ``k`` is ``-r**k / p'(r)``, exact for
    a simple zero, also for a zero at 0 and for coefficients that are 0. A multiple zero has no derivative: the slope
    ``p'(r)`` is 0 up to rounding, and the computed derivative is NaN, infinite, or very large.

    The result is real if all zeros are real, else complex, and leading coefficients that are 0 are dropped, as in
    NumPy. On JAX arrays the result is always complex, and leading coefficients that are 0 give NaN.

    Raises:
        ValueError: ``p`` has more than one axis.

    Example:
        >>> from funcgrad import jacrev
        >>> fnp.sort(fnp.roots([1.0, -3.0, 2.0]))
        array([1., 2.])
        >>> jacrev(fnp.roots)(fnp.array([2.0, -8.0]))
        array([[-2. , -0.5]])
    """
    if is_plain(p):
        return np.roots(p)
    p = coefficients(p)
    if len(backend.shape_of(p)) != 1:
        raise ValueError("Input must be a rank-1 array.")
    if not backend.shape_of(p)[0]:
        return np.array([])
    return prim.series_roots(flip(as_floating(p), 0), basis=prim.MONOMIALS, sort=False)


def polyval(p: ArrayLike, x: ArrayLike) -> Array:
    """Return the values of a polynomial at ``x``.

    The derivative flows to the coefficients and to the points.

    Args:
        p: the coefficients along the first axis; further axes broadcast against ``x``.
        x: the points; a ``poly1d`` gives the composition.

    Example:
        >>> fnp.polyval([1.0, 0.0, 2.0], [1.0, 3.0])
        array([ 3., 11.])
    """
    if is_plain(p, x):
        return np.polyval(p, x)
    if isinstance(x, np.poly1d):
        return _TracedPoly1d(p)(x)
    p, x = as_value(_coefficients_of(p)), as_value(x)
    if not backend.shape_of(x):
        x = reshape(x, to=())  # a Python number would take the dtype of p
    if backend.shape_of(p)[:1] == (0,):
        return zeros_like(x)
    if not backend.is_inexact(p) and not backend.is_inexact(x):  # NumPy computes with integers
        y = zeros_like(x)
        for i in range(backend.shape_of(p)[0]):
            y = y * x + getitem(p, i)
        return y
    return prim.evaluate(x, flip(p, 0), basis=prim.MONOMIALS)


def _accepting_poly1d(fun: _F) -> _F:
    """Let ``fun``, a function of coefficients, take ``poly1d`` objects too and then return them, as in NumPy."""

    @wraps(fun)
    def taken(*args: Any, **kwargs: Any) -> Any:
        if not any(isinstance(x, np.poly1d) for x in (*args, *kwargs.values())):
            return fun(*args, **kwargs)
        found = fun(*map(_coefficients_of, args), **{name: _coefficients_of(x) for name, x in kwargs.items()})
        return tuple(map(poly1d, found)) if type(found) is tuple else poly1d(found)

    return taken  # type: ignore[return-value]


def _coefficients_of(x: Any) -> Any:
    return x.coeffs if isinstance(x, np.poly1d) else x


# ---- arithmetic ------------------------------------------------------------------------------------------------


def _with_equal_lengths(a1: ArrayLike, a2: ArrayLike) -> tuple[Array, Array]:
    """Return two polynomials as arrays of one length."""
    arrays = [coefficients(a1), coefficients(a2)]
    lengths = [backend.shape_of(a)[0] for a in arrays]
    most = max(lengths)
    first, second = (
        a if n == most else concatenate([np.zeros(most - n, backend.dtype_of(a)), a])
        for a, n in zip(arrays, lengths, strict=True)
    )
    return first, second


@_accepting_poly1d
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return the sum of two polynomials.

    Example:
        >>> fnp.polyadd([1.0, 2.0], [3.0, 4.0, 5.0])
        array([3., 5., 7.])
    """
    if is_plain(a1, a2):
        return np.polyadd(a1, a2)
    first, second = _with_equal_lengths(a1, a2)
    return first + second


@_accepting_poly1d
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return the difference of two polynomials.

    Example:
        >>> fnp.polysub([1.0, 2.0], [3.0, 4.0, 5.0])
        array([-3., -3., -3.])
    """
    if is_plain(a1, a2):
        return np.polysub(a1, a2)
    first, second = _with_equal_lengths(a1, a2)
    return first - second


@_accepting_poly1d
def polymul(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Return the product of two polynomials; leading coefficients that are 0 are kept if they are traced.

    Example:
        >>> fnp.polymul([1.0, 2.0], [1.0, -2.0])
        array([ 1.,  0., -4.])
    """
    if is_plain(a1, a2):
        return np.polymul(a1, a2)
    given = [np.poly1d(a).coeffs if is_plain(a) else coefficients(a) for a in (a1, a2)]
    a1, a2 = [a if backend.shape_of(a)[0] else np.zeros(1, backend.dtype_of(a)) for a in given]  # the zero polynomial
    return signals.convolve(a1, a2)


@_accepting_poly1d
def polydiv(u: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """Return the quotient and the remainder of two polynomials.

    NumPy's remainder loses leading coefficients of at most 1e-8; a traced one has one coefficient less than ``v``.
    ``v`` must not begin with zero.

    Example:
        >>> fnp.polydiv([3.0, 5.0, 2.0], [2.0, 1.0])
        (array([1.5 , 1.75]), array([0.25]))
    """
    if is_plain(u, v):
        return np.polydiv(u, v)
    u, v = as_floating(coefficients(u)), as_floating(coefficients(v))
    dtype = result_type(u, v)
    rest = as_dtype(u, dtype)
    m, n = backend.shape_of(u)[0] - 1, backend.shape_of(v)[0] - 1
    if m < n:
        return as_buffer(np.zeros(1, dtype)), copy(rest)
    scale, found = 1.0 / getitem(v, 0), []
    for _ in range(m - n + 1):
        found.append(scale * getitem(rest, slice(0, 1)))
        left = getitem(rest, slice(0, n + 1)) - found[-1] * v  # begins with zero, up to rounding
        rest = concatenate([getitem(left, slice(1, None)), getitem(rest, slice(n + 1, None))])
    return concatenate(found), rest if n else left


# ---- derivatives, integrals, fits -------------------------------------------------------------------------------


@_accepting_poly1d
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """Return the polynomial that is the derivative of order ``m``.

    Raises:
        ValueError: a negative order.

    Example:
        >>> fnp.polyder([1.0, 2.0, 3.0])
        array([2., 2.])
    """
    if is_plain(p):
        return np.polyder(p, m)
    m = int(m)
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    p = as_value(p)
    for _ in range(m):
        p = getitem(p, slice(None, -1)) * np.arange(backend.shape_of(p)[0] - 1, 0, -1)
    return p


@_accepting_poly1d
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """Return the polynomial whose derivative of order ``m`` is ``p``.

    Args:
        p: the coefficients.
        m: the order.
        k: the constants of integration, the first for the first integral, or one for all integrals; by default
            zeros. The derivative flows to ``k``.

    Raises:
        ValueError: a negative order, or too few constants.

    Example:
        >>> fnp.polyint([2.0, 2.0], k=3.0)
        array([1., 2., 3.])
    """
    if is_plain(p, k):
        return np.polyint(p, m, k)
    m = int(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    p = as_value(p)
    constants = None if k is None else coefficients(k)
    given = m if constants is None else backend.shape_of(constants)[0]
    if given < m and given != 1:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    for i in range(m):
        p = p / np.arange(backend.shape_of(p)[0], 0, -1)
        if constants is None:
            last: Array = np.zeros(1, backend.dtype_of(p))
        else:
            place = 0 if given == 1 else i
            last = getitem(constants, slice(place, place + 1))
        p = concatenate([p, last])
    return p


def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """Fit a polynomial of degree ``deg`` to ``y`` at ``x`` by least squares.

    The derivative flows to ``x``, ``y`` and ``w``.

    Args:
        x: the points, of one axis.
        y: the values at ``x``, or several columns of values.
        deg: the degree.
        rcond: singular values smaller than ``rcond`` times the largest count as zero.
        full: whether to return the residuals, the rank, the singular values and ``rcond`` too.
        w: weights of the points, which multiply the unsquared residuals.
        cov: whether to return the covariance of the coefficients too; "unscaled" for weights that are inverse
            standard deviations.

    Raises:
        TypeError: arguments of the wrong shape.
        ValueError: a negative degree, or too few points for a scaled covariance.

    Example:
        >>> fnp.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1).round(12)
        array([2., 1.])
    """
    if is_plain(x, y, w):
        return numpy.polyfit(x, y, deg, rcond, full, w, cov)
    order = int(deg) + 1
    if deg < 0:
        raise ValueError("expected deg >= 0")
    x, y, w = checked_samples(x, y, w)
    rcond = default_rcond(x) if rcond is None else rcond
    lhs, rhs = weight_rows(vander(x, order), w), weight_rows(y, w)
    scale = design_norms(lhs)
    c, residuals, rank, singular = solve_scaled(lhs, rhs, scale, rcond)
    if full:
        return c, residuals, rank, singular, rcond
    warn_of_rank(rank, order, "Polyfit may be poorly conditioned")
    if not cov:
        return c
    from funcgrad.numpy import linalg

    lhs = lhs / scale
    base = linalg.inv(matmul(permute(lhs, axes=(1, 0)), lhs)) / outer(scale, scale)
    n = backend.shape_of(x)[0]
    if cov == "unscaled":
        factor: Any = 1
    elif n > order:
        factor = residuals / (n - order)
    else:
        raise ValueError("the number of data points must exceed order to scale the covariance matrix")
    return c, base * factor if len(backend.shape_of(y)) == 1 else getitem(base, (..., None)) * factor


def poly1d(c_or_r: ArrayLike, r: bool = False, variable: str | None = None) -> np.poly1d:
    """Return a ``numpy.poly1d``, which can be called, added, multiplied, differentiated and integrated.

    The coefficients may be traced. Traced leading coefficients are kept even if they are 0, because other values may
    not be 0: ``order`` is one less than the number of coefficients.

    Args:
        c_or_r: the coefficients, the highest power first; or another polynomial.
        r: whether ``c_or_r`` holds the zeros instead.
        variable: the name of the variable for printing.

    Raises:
        ValueError: coefficients of several axes.

    Example:
        >>> fnp.poly1d([1, 2])
        poly1d([1, 2])
        >>> grad(lambda c: (fnp.poly1d(c) ** 2).deriv()(1.0))(np.array([1.0, 2.0]))
        array([8., 2.])
    """
    plain = is_plain(c_or_r) and not isinstance(c_or_r, _TracedPoly1d)
    return np.poly1d(c_or_r, r, variable) if plain else _TracedPoly1d(c_or_r, r, variable)


class _TracedPoly1d(np.poly1d, Proxy):
    """Polynomial with traced coefficients; NumPy's class would cut off leading coefficients that are 0."""

    coeffs: Any

    def __init__(self, c_or_r: Any, r: bool = False, variable: str | None = None) -> None:
        if isinstance(c_or_r, np.poly1d):
            coefficients, variable = c_or_r.coeffs, variable or c_or_r.variable
        else:
            coefficients = poly(c_or_r) if r else atleast_1d(c_or_r)
        if len(backend.shape_of(coefficients)) > 1:
            raise ValueError("Polynomial must be 1d only.")
        self.__dict__["coeffs"] = coefficients
        self._variable = variable or "x"

    def as_array(self) -> Any:
        """Return the coefficients, the array that NumPy's functions take instead of the polynomial."""
        return self.coeffs

    def _with(self, coefficients: Any) -> _TracedPoly1d:
        return _TracedPoly1d(coefficients, False, self._variable)

    @property
    def roots(self) -> Array:
        """Zeros of the polynomial."""
        return roots(self.coeffs)

    r = roots

    def __call__(self, val: Any) -> Any:
        """Return the value at ``val``, or the composition if ``val`` is a polynomial."""
        if not isinstance(val, np.poly1d):
            return polyval(self.coeffs, val)
        made: Any = self._with([0.0])
        for c in self.coeffs:
            made = made * val + c
        return made

    def __repr__(self) -> str:
        return f"poly1d({self.coeffs!r})"

    __str__ = __repr__

    def __neg__(self) -> _TracedPoly1d:
        return self._with(negative(self.coeffs))

    def __add__(self, other: Any) -> _TracedPoly1d:
        return self._with(polyadd(self.coeffs, _coefficients(other)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> _TracedPoly1d:
        return self._with(polysub(self.coeffs, _coefficients(other)))

    def __rsub__(self, other: Any) -> _TracedPoly1d:
        return self._with(polysub(_coefficients(other), self.coeffs))

    def __mul__(self, other: Any) -> _TracedPoly1d:
        return self._with(polymul(self.coeffs, _coefficients(other)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if not backend.shape_of(asarray(_coefficients(other))):
            return self._with(self.coeffs / other)
        return self._divided(self.coeffs, _coefficients(other))

    def __rtruediv__(self, other: Any) -> Any:
        return self._divided(_coefficients(other), self.coeffs)

    def _divided(self, u: Any, v: Any) -> tuple[_TracedPoly1d, _TracedPoly1d]:
        quotient, remainder = polydiv(atleast_1d(u), atleast_1d(v))
        return self._with(quotient), self._with(remainder)

    def __pow__(self, val: Any) -> _TracedPoly1d:
        n = operator.index(val)
        if n < 0:
            raise ValueError("Power to non-negative integers only.")
        made: Any = [1.0]
        for _ in range(n):
            made = polymul(self.coeffs, made)
        return self._with(made)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, np.poly1d):
            return NotImplemented
        return array_equal((self - other).coeffs, 0 * (self - other).coeffs)

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, val: Any) -> Any:
        """Return the coefficient of the power ``val``."""
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

    def deriv(self, m: Any = 1) -> _TracedPoly1d:
        """Return the derivative of order ``m`` with respect to the variable."""
        return self._with(polyder(self.coeffs, m))

    def integ(self, m: Any = 1, k: Any = 0) -> _TracedPoly1d:
        """Return the integral of order ``m``, with the constants ``k``."""
        return self._with(polyint(self.coeffs, m, k))


def _coefficients(other: Any) -> Any:
    """Return the coefficients of a polynomial; return a number or a list of coefficients as it is."""
    if isinstance(other, np.poly1d):
        return other.coeffs
    if other is None or isinstance(other, (str, dict)):
        raise InputError(f"poly1d: a polynomial, a number or coefficients are needed, got {other!r}. Pass one of them.")
    return other
