"""Functions of ``numpy.polynomial``, defined once for all families.

Families differ only in their three-term recurrence (``funcgrad.primitives.polynomials.Basis``). For plain values NumPy
computes every result. NumPy trims trailing zeros; traced ones are kept, because they may have a derivative.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.kinds.linear import permute, reshape
from funcgrad.numpy import signals
from funcgrad.numpy.axes import normalize_axis
from funcgrad.numpy.creation import as_value, copy
from funcgrad.numpy.elementwise import exp, sqrt
from funcgrad.numpy.indexing import flatnonzero, getitem
from funcgrad.numpy.joining import concatenate
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.polynomials import (
    checked_samples,
    coefficients,
    default_rcond,
    design_norms,
    is_known_true,
    solve_scaled,
    warn_of_rank,
    weight_rows,
)
from funcgrad.numpy.products import matmul
from funcgrad.numpy.reducing import as_dtype, as_floating
from funcgrad.numpy.reductions import all as everywhere
from funcgrad.numpy.shaping import moveaxis, result_type
from funcgrad.primitives import polynomials as prim
from funcgrad.primitives.arithmetic import absolute
from funcgrad.primitives.comparison import equal, greater
from funcgrad.primitives.shaping import stack
from funcgrad.typing import Array, ArrayLike

#: Weight functions with which the polynomials of each family are orthogonal, by prefix.
_WEIGHTS: dict[str, Callable[[Array], Array]] = {
    "cheb": lambda x: 1 / (sqrt(1 + x) * sqrt(1 - x)),
    "herm": lambda x: exp(-(x**2)),
    "herme": lambda x: exp(-0.5 * x**2),
    "lag": lambda x: exp(-x),
    "leg": lambda x: x * 0.0 + 1.0,
}


class Series:
    """Functions of one family.

    Example:
        >>> chebyshev = series("cheb")
        >>> chebyshev.val(0.5, [1.0, 2.0, 3.0])
        np.float64(0.5)
        >>> grad(chebyshev.val)(0.5, np.array([1.0, 2.0, 3.0]))
        np.float64(8.0)
    """

    def __init__(self, basis: prim.Basis) -> None:
        self._basis = basis

    def __reduce__(self) -> Any:
        return series, (self._basis.prefix,)

    def __repr__(self) -> str:
        return f"<series {self._basis.prefix}>"

    # ---- values ------------------------------------------------------------------------------------------

    def val(self, x: ArrayLike, c: ArrayLike, tensor: bool = True) -> Array:
        """Return the values of the series ``c`` at the points ``x``; the derivative flows to both.

        Args:
            x: the points.
            c: the coefficients along the first axis; several series along further axes.
            tensor: whether to evaluate every series at every point; otherwise the further axes of ``c`` broadcast
                against ``x``.

        Example:
            >>> fnp.polynomial.chebyshev.chebval(0.5, [1.0, 2.0, 3.0])
            np.float64(0.5)
            >>> grad(lambda c: fnp.polynomial.chebyshev.chebval(0.5, c))([1.0, 2.0, 3.0])
            [np.float64(1.0), np.float64(0.5), np.float64(-0.5)]
        """
        if is_plain(x, c):
            return self._basis.numpy("val")(x, c, tensor)
        x, c = as_value(x), as_floating(coefficients(c))
        points, terms = backend.shape_of(x), backend.shape_of(c)
        if tensor and points:
            c = reshape(c, to=(*terms, *(1,) * len(points)))
        return prim.evaluate(x, c, basis=self._basis)

    def _val_together(self, name: str, c: ArrayLike, *points: ArrayLike) -> Array:
        if is_plain(c, *points):
            return self._basis.numpy(name)(*points, c)
        return self._val_by_val(c, *points)

    def _val_by_val(self, c: ArrayLike, *points: ArrayLike) -> Array:
        """Evaluate in one coordinate after the other; each coordinate uses up the first axis of the coefficients."""
        first, *rest = [as_value(p) for p in points]
        if any(backend.shape_of(p) != backend.shape_of(first) for p in rest):
            what = ", ".join("xyz"[: len(points)]) if len(points) <= 3 else "ordinates"
            raise ValueError(f"{what} are incompatible")
        c = self.val(first, c)
        for p in rest:
            c = self.val(p, c, tensor=False)
        return c

    def val2d(self, x: ArrayLike, y: ArrayLike, c: ArrayLike) -> Array:
        """Return the values of a series in two variables at ``(x, y)``; the first two axes of ``c`` are the degrees.

        Raises:
            ValueError: ``x`` and ``y`` of different shapes.

        Example:
            >>> fnp.polynomial.chebyshev.chebval2d(0.5, 2.0, [[1.0, 2.0], [3.0, 4.0]])
            np.float64(10.5)
        """
        return self._val_together("val2d", c, x, y)

    def val3d(self, x: ArrayLike, y: ArrayLike, z: ArrayLike, c: ArrayLike) -> Array:
        """Return the values of the series ``c`` in three variables at the points ``(x, y, z)``.

        Raises:
            ValueError: coordinates of different shapes.

        Example:
            >>> fnp.polynomial.chebyshev.chebval3d(0.5, 2.0, 3.0, [[[1.0, 2.0]], [[3.0, 4.0]]])
            np.float64(14.5)
        """
        return self._val_together("val3d", c, x, y, z)

    def valnd(self, pts: Sequence[ArrayLike], c: ArrayLike) -> Array:
        """Return the values of a series in several variables at ``pts``; the first axes of ``c`` are the degrees.

        NumPy has this function since 2.5; here it works with every NumPy.

        Raises:
            ValueError: coordinates of different shapes.

        Example:
            >>> fnp.polynomial.chebyshev.chebvalnd((0.5, 2.0, 3.0, 0.0), [[[[1.0], [2.0]]], [[[3.0], [4.0]]]])
            np.float64(14.5)
        """
        return self._val_by_val(c, *pts)

    def _val_on_grid(self, name: str, c: ArrayLike, *points: ArrayLike) -> Array:
        if is_plain(c, *points):
            return self._basis.numpy(name)(*points, c)
        for p in points:
            c = self.val(p, c)
        return c

    def grid2d(self, x: ArrayLike, y: ArrayLike, c: ArrayLike) -> Array:
        """Return the values of the series ``c`` in two variables at every pair of an ``x`` and a ``y``.

        Example:
            >>> fnp.polynomial.chebyshev.chebgrid2d([0.0, 0.5], [1.0, 2.0, 3.0], [[1.0, 2.0], [3.0, 4.0]])
            array([[ 3. ,  5. ,  7. ],
                   [ 6.5, 10.5, 14.5]])
        """
        return self._val_on_grid("grid2d", c, x, y)

    def grid3d(self, x: ArrayLike, y: ArrayLike, z: ArrayLike, c: ArrayLike) -> Array:
        """Return the values of the series ``c`` in three variables at every triple of coordinates.

        Example:
            >>> fnp.polynomial.chebyshev.chebgrid3d([0.0, 0.5], [1.0], [2.0, 3.0], [[[1.0, 2.0]], [[3.0, 4.0]]]).shape
            (2, 1, 2)
        """
        return self._val_on_grid("grid3d", c, x, y, z)

    def vander(self, x: ArrayLike, deg: int) -> Array:
        """Return the polynomials of degree 0 to ``deg`` at ``x``, along a new last axis.

        Raises:
            ValueError: a negative degree.

        Example:
            >>> fnp.polynomial.chebyshev.chebvander([0.0, 0.5], 2)
            array([[ 1. ,  0. , -1. ],
                   [ 1. ,  0.5, -0.5]])
        """
        if is_plain(x):
            return self._basis.numpy("vander")(x, deg)
        x = as_floating(coefficients(x))
        n = as_count(deg, "deg") + 1
        rank = len(backend.shape_of(x))
        return permute(prim.basis_table(x, n=n, basis=self._basis), axes=(*range(1, rank + 1), 0))

    def _vander_together(self, name: str, points: tuple[ArrayLike, ...], deg: Any) -> Array:
        if is_plain(*points):
            return self._basis.numpy(name)(*points, deg)
        if len(deg) != len(points):
            raise ValueError(f"Expected {len(points)} dimensions of degrees, got {len(deg)}")
        made: Any = None
        together = as_floating(as_value([as_value(p) for p in points]))  # raises an error unless the shapes agree
        shape = backend.shape_of(together)[1:]
        for i, d in enumerate(deg):
            factor = self.vander(reshape(getitem(together, i), to=shape or (1,)), d)
            factor = getitem(factor, (..., *[slice(None) if j == i else None for j in range(len(deg))]))
            made = factor if made is None else made * factor
        return reshape(made, to=(*(shape or (1,)), -1 if 0 in shape else int(np.prod([d + 1 for d in deg]))))

    def vander2d(self, x: ArrayLike, y: ArrayLike, deg: Any) -> Array:
        """Return the products of two polynomials of degrees up to the pair ``deg`` at the points ``(x, y)``.

        Example:
            >>> fnp.polynomial.chebyshev.chebvander2d(0.5, 2.0, [1, 1])
            array([[1. , 2. , 0.5, 1. ]])
        """
        return self._vander_together("vander2d", (x, y), deg)

    def vander3d(self, x: ArrayLike, y: ArrayLike, z: ArrayLike, deg: Any) -> Array:
        """Return the products of three polynomials of degrees up to the triple ``deg`` at the points ``(x, y, z)``.

        Example:
            >>> fnp.polynomial.chebyshev.chebvander3d(0.5, 2.0, 3.0, [1, 0, 1])
            array([[1. , 3. , 0.5, 1.5]])
        """
        return self._vander_together("vander3d", (x, y, z), deg)

    def weight(self, x: ArrayLike) -> Array:
        """Return the weight function of the orthogonal polynomials at ``x``.

        Example:
            >>> fnp.polynomial.chebyshev.chebweight(0.0)
            np.float64(1.0)
        """
        return _WEIGHTS[self._basis.prefix](as_floating(as_value(x)))

    # ---- derivatives and integrals -------------------------------------------------------------------------

    def _opened(self, c: ArrayLike, m: Any, what: str, axis: Any) -> tuple[Array, int, int]:
        c = as_floating(coefficients(c))
        return c, as_count(m, what), normalize_axis(axis, len(backend.shape_of(c)))

    def der(self, c: ArrayLike, m: int = 1, scl: ArrayLike = 1, axis: int = 0) -> Array:
        """Return the derivative of order ``m`` of the series ``c``.

        Args:
            c: the coefficients.
            m: the order.
            scl: the factor of each derivative, for a change of variable; the derivative flows to ``scl`` too.
            axis: the axis of the coefficients.

        Raises:
            ValueError: a negative order.

        Example:
            >>> fnp.polynomial.chebyshev.chebder([1.0, 2.0, 3.0])
            array([ 2., 12.])
        """
        if is_plain(c, scl):
            return self._basis.numpy("der")(c, m, scl, axis)
        c, count, along = self._opened(c, m, "the order of derivation", axis)
        if not count:
            return c
        first = moveaxis(c, along, 0)
        made = prim.matmul_first_axis(prim.matrix_of(self._basis, "der", backend.shape_of(first)[0], count), first)
        if not is_plain(scl) or scl != 1:
            made = as_dtype(made * scl**count, backend.dtype_of(c))
        return moveaxis(made, 0, along)

    def integral(
        self, c: ArrayLike, m: int = 1, k: Any = (), lbnd: ArrayLike = 0, scl: ArrayLike = 1, axis: int = 0
    ) -> Array:
        """Return the integral of order ``m``; the derivative flows to ``c``, ``k``, ``lbnd`` and ``scl``.

        Args:
            c: the coefficients.
            m: the order.
            k: the values of the first, second, ... integral at ``lbnd``; missing values are zero.
            lbnd: the lower bound of each integral.
            scl: the factor before each integral, for a change of variable.
            axis: the axis of the coefficients.

        Raises:
            ValueError: a negative order, too many constants, a bound or factor that is not one number.

        Example:
            >>> fnp.polynomial.chebyshev.chebint([1.0, 2.0], k=3.0)
            array([3.5, 1. , 0.5])
        """
        if is_plain(c, k, lbnd, scl):
            return self._basis.numpy("int")(c, m, k, lbnd, scl, axis)
        c, count, along = self._opened(c, m, "the order of integration", axis)
        given = as_value(k) if not isinstance(k, (list, tuple)) else k
        constants = list(given) if isinstance(k, (list, tuple)) or backend.shape_of(given) else [given]
        if len(constants) > count:
            raise ValueError("Too many integration constants")
        for name, value in (("lbnd", lbnd), ("scl", scl)):
            if backend.shape_of(as_value(value)):
                raise ValueError(f"{name} must be a scalar.")
        first = moveaxis(c, along, 0)
        for constant in constants + [0] * (count - len(constants)):
            scaled = first * scl if not is_plain(scl) or scl != 1 else first
            first = as_dtype(self._integral(scaled, constant, lbnd), backend.dtype_of(c))
        return moveaxis(first, 0, along)

    def _integral(self, c: Array, constant: Any, bound: Any) -> Array:
        """Return the integral along the first axis that is ``constant`` at ``bound``."""
        n = backend.shape_of(c)[0]
        made = prim.matmul_first_axis(prim.matrix_of(self._basis, "int", n), c)  # zero at 0
        if not is_plain(bound) or bound != 0:
            constant = constant - self.val(bound, made)
        constant_term = getitem(made, slice(0, 1)) + constant
        if n == 1 and is_known_true(everywhere(equal(c, 0))):  # the integral of the zero series has one term
            return constant_term
        return concatenate([constant_term, getitem(made, slice(1, None))])

    # ---- arithmetic ----------------------------------------------------------------------------------------

    def line(self, off: ArrayLike, scl: ArrayLike) -> Array:
        """Return the series of ``off + scl * x``.

        Example:
            >>> fnp.polynomial.chebyshev.chebline(1.0, 2.0)
            array([1., 2.])
        """
        if is_plain(off, scl):
            return self._basis.numpy("line")(off, scl)
        a, b, _ = self._basis.step(0)
        off, slope = as_value(off), as_value(scl) * (1 / a)
        made = as_value([off - slope * b if b else off, slope])
        return getitem(made, slice(0, 1)) if is_known_true(equal(scl, 0)) else made

    def add(self, c1: ArrayLike, c2: ArrayLike) -> Array:
        """Return the sum of two series.

        Example:
            >>> fnp.polynomial.chebyshev.chebadd([1.0, 2.0], [3.0])
            array([4., 2.])
        """
        if is_plain(c1, c2):
            return self._basis.numpy("add")(c1, c2)
        first, second = as_series(c1, c2)
        n = max(first.shape[0], second.shape[0])
        return pad_series(first, n) + pad_series(second, n)

    def sub(self, c1: ArrayLike, c2: ArrayLike) -> Array:
        """Return the difference of two series.

        Example:
            >>> fnp.polynomial.chebyshev.chebsub([1.0, 2.0], [3.0])
            array([-2.,  2.])
        """
        if is_plain(c1, c2):
            return self._basis.numpy("sub")(c1, c2)
        first, second = as_series(c1, c2)
        n = max(first.shape[0], second.shape[0])
        return pad_series(first, n) - pad_series(second, n)

    def mulx(self, c: ArrayLike) -> Array:
        """Return the series times ``x``.

        Example:
            >>> fnp.polynomial.chebyshev.chebmulx([1.0, 2.0])
            array([1., 1., 1.])
        """
        if is_plain(c):
            return self._basis.numpy("mulx")(c)
        (terms,) = as_series(c)
        return prim.matmul_first_axis(prim.times_x(self._basis, terms.shape[0]), terms)

    def _product(self, c1: Array, c2: Array) -> Array:
        if self._basis is prim.MONOMIALS:
            return signals.convolve(c1, c2)
        table = prim.products_of(self._basis, c1.shape[0], c2.shape[0])
        return matmul(c1, matmul(table.astype(np.zeros(0, c2.dtype).real.dtype), c2))

    def mul(self, c1: ArrayLike, c2: ArrayLike) -> Array:
        """Return the product of two series.

        Example:
            >>> from funcgrad import jacrev
            >>> fnp.polynomial.chebyshev.chebmul([1.0, 2.0], [3.0, 4.0])
            array([ 7., 10.,  4.])
            >>> jacrev(lambda c: fnp.polynomial.chebyshev.chebmul([1.0, 2.0], c))([3.0, 4.0])
            [array([1., 2., 0.]), array([1., 1., 1.])]
        """
        if is_plain(c1, c2):
            return self._basis.numpy("mul")(c1, c2)
        return self._product(*as_series(c1, c2))

    def div(self, c1: ArrayLike, c2: ArrayLike) -> tuple[Array, Array]:
        """Return the quotient and the remainder of two series.

        The last coefficient of ``c2`` that is not known to be zero determines the degree of ``c2``; later coefficients
        are treated as constants.

        Raises:
            ZeroDivisionError: ``c2`` is zero.

        Example:
            >>> fnp.polynomial.chebyshev.chebdiv([7.0, 10.0, 4.0], [1.0, 2.0])
            (array([3., 4.]), array([0.]))
        """
        if is_plain(c1, c2):
            quotient, remainder = self._basis.numpy("div")(c1, c2)
            return quotient, remainder
        rest, divisor = as_series(c1, c2)
        divisor = trim_series(divisor)
        m, n = rest.shape[0], divisor.shape[0]
        if n == 1 and is_known_true(equal(getitem(divisor, 0), 0)):
            raise ZeroDivisionError(f"{self._basis.prefix}div: the divisor is zero")
        if m < n:
            return getitem(rest, slice(0, 1)) * 0, copy(rest)
        if n == 1:
            return rest / getitem(divisor, 0), getitem(rest, slice(0, 1)) * 0
        table = prim.products_of(self._basis, m - n + 1, n).astype(np.zeros(0, rest.dtype).real.dtype)
        multiples, found = matmul(table, divisor), []
        for i in range(m - n, -1, -1):  # each step removes the highest term of the rest
            last = i + n - 1
            found.append(getitem(rest, last) / getitem(multiples, (i, last)))
            rest = getitem(rest, slice(0, last)) - found[-1] * getitem(multiples, (i, slice(0, last)))
        own = self._basis.prefix in ("poly", "cheb")  # NumPy divides these two differently
        return stack(*found[::-1], axis=0), rest if own else as_double_or_wider(rest)

    def pow(self, c: ArrayLike, pow: int, maxpower: int | None = 16) -> Array:
        """Return the series raised to an integer power from 0 to ``maxpower``.

        Raises:
            ValueError: another power.

        Example:
            >>> fnp.polynomial.chebyshev.chebpow([1.0, 2.0], 2)
            array([3., 4., 2.])
        """
        if is_plain(c):
            return self._basis.numpy("pow")(c, pow, maxpower)
        (terms,) = as_series(c)
        power = int(pow)
        if power != pow or power < 0:
            raise ValueError("Power must be a non-negative integer.")
        if maxpower is not None and power > maxpower:
            raise ValueError("Power is too large")
        if not power:
            return np.ones(1, terms.dtype)
        made = terms
        for _ in range(power - 1):
            made = self._product(made, terms)
        return made

    def trim(self, c: ArrayLike, tol: float = 0) -> Array:
        """Return the series without trailing coefficients that are at most ``tol``.

        Raises:
            ValueError: a negative ``tol``.
            ConcretizationError: the coefficients differ between the examples of a ``vmap``.

        Example:
            >>> fnp.polynomial.chebyshev.chebtrim([1.0, 2.0, 0.1], 0.2)
            array([1., 2.])
        """
        if is_plain(c):
            return self._basis.numpy("trim")(c, tol)
        if tol < 0:
            raise ValueError("tol must be non-negative")
        (terms,) = as_series(c)
        large = flatnonzero(greater(absolute(terms), tol))
        if not large.shape[0]:
            return getitem(terms, slice(0, 1)) * 0
        return copy(getitem(terms, slice(0, operator.index(large[-1]) + 1)))

    def to_powers(self, c: ArrayLike) -> Array:
        """Return the coefficients of the same polynomial in powers of ``x``.

        Example:
            >>> fnp.polynomial.chebyshev.cheb2poly([1.0, 2.0, 3.0])
            array([-2.,  2.,  6.])
        """
        name = f"{self._basis.prefix}2poly"
        if is_plain(c):
            return getattr(self._basis.library, name)(c)
        (terms,) = as_series(c)
        return prim.matmul_first_axis(prim.conversion(self._basis, name, terms.shape[0]), terms)

    def from_powers(self, pol: ArrayLike) -> Array:
        """Return the series of the polynomial with the coefficients ``pol`` of the powers of ``x``.

        Example:
            >>> fnp.polynomial.chebyshev.poly2cheb([-2.0, 2.0, 6.0])
            array([1., 2., 3.])
        """
        name = f"poly2{self._basis.prefix}"
        if is_plain(pol):
            return getattr(self._basis.library, name)(pol)
        (terms,) = as_series(pol)
        return as_double_or_wider(prim.matmul_first_axis(prim.conversion(self._basis, name, terms.shape[0]), terms))

    # ---- zeros and fits ------------------------------------------------------------------------------------

    def fromroots(self, roots: ArrayLike) -> Array:
        """Return the series with the zeros ``roots`` whose highest power of ``x`` has the coefficient 1.

        Example:
            >>> fnp.polynomial.chebyshev.chebfromroots([1.0, 2.0])
            array([ 2.5, -3. ,  0.5])
        """
        if is_plain(roots):
            return self._basis.numpy("fromroots")(roots)
        if backend.shape_of(as_value(roots)) == (0,):
            return np.ones(1)
        (zeros,) = as_series(roots)
        made: Array = np.ones(1, zeros.dtype)
        for i in range(zeros.shape[0]):
            by_x = prim.matmul_first_axis(prim.times_x(self._basis, i + 1), made)
            made = by_x - getitem(zeros, i) * pad_series(made, i + 2)
        return as_double_or_wider(made)

    def companion(self, c: ArrayLike) -> Array:
        """Return the companion matrix of a series, scaled to be symmetric if the series is one basis polynomial.

        Raises:
            ValueError: the series is a constant.

        Example:
            >>> fnp.polynomial.chebyshev.chebcompanion([1.0, 2.0])
            array([[-0.5]])
        """
        if is_plain(c):
            return self._basis.numpy("companion")(c)
        (terms,) = as_series(c)
        terms = trim_series(terms)
        n = terms.shape[0] - 1
        if n < 1:
            raise ValueError("Series must have maximum degree of at least 1.")
        constant, weights = (part.astype(terms.dtype) for part in prim.companion_parts(self._basis, n))
        last = weights * (getitem(terms, slice(0, n)) / getitem(terms, n))
        return constant - reshape(last, to=(n, 1)) * np.eye(n, dtype=terms.dtype)[-1]

    def roots(self, c: ArrayLike) -> Array:
        """Return the zeros of a series, sorted; see ``funcgrad.numpy.roots`` for the derivative.

        Example:
            >>> fnp.polynomial.chebyshev.chebroots([1.0, 2.0])
            array([-0.5])
        """
        if is_plain(c):
            return self._basis.numpy("roots")(c)
        (terms,) = as_series(c)
        return prim.series_roots(terms, basis=self._basis, sort=True)

    def fit(
        self,
        x: ArrayLike,
        y: ArrayLike,
        deg: Any,
        rcond: float | None = None,
        full: bool = False,
        w: ArrayLike | None = None,
    ) -> Any:
        """Fit a series to ``y`` at ``x`` by least squares; the derivative flows to ``x``, ``y`` and ``w``.

        Args:
            x: the points, of one axis.
            y: the values at ``x``, or several columns of values.
            deg: the degree, or a list of the degrees of the terms.
            rcond: singular values smaller than ``rcond`` times the largest count as zero.
            full: whether to return a list of the residuals, the rank, the singular values and ``rcond`` too.
            w: weights of the points, which multiply the unsquared residuals.

        Raises:
            TypeError: arguments of the wrong shape or kind.
            ValueError: a negative degree.

        Example:
            >>> fnp.polynomial.chebyshev.chebfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1).round(12)
            array([1., 2.])
        """
        if is_plain(x, y, w):
            return self._basis.numpy("fit")(x, y, deg, rcond, full, w)
        degrees = np.asarray(deg)
        if degrees.ndim > 1 or degrees.dtype.kind not in "iu" or degrees.size == 0:
            raise TypeError("deg must be an int or non-empty 1-D array of int")
        if degrees.min() < 0:
            raise ValueError("expected deg >= 0")
        x, y, w = checked_samples(x, y, w)
        highest = int(degrees.max())
        lhs = self.vander(x, highest)
        if degrees.ndim:
            degrees = np.sort(degrees)
            lhs = getitem(lhs, (slice(None), degrees))
        lhs, rhs = weight_rows(lhs, w), weight_rows(y, w)
        rcond = default_rcond(x) if rcond is None else rcond
        c, *details = solve_scaled(lhs, rhs, design_norms(lhs), rcond)
        if degrees.ndim:
            places = np.eye(highest + 1, dtype=np.zeros(0, c.dtype).real.dtype)[:, degrees]
            c = matmul(places, c)
        if full:
            return c, [*details, rcond]
        warn_of_rank(details[1], lhs.shape[1], "The fit may be poorly conditioned")
        return c


@cache
def series(prefix: str) -> Series:
    """Return the functions of the family whose names in NumPy begin with ``prefix``."""
    return Series(prim.BASES[prefix])


def trim_series(c: Array) -> Array:
    """Return ``c`` without trailing coefficients known to be 0; one coefficient always remains."""
    n = kept = backend.shape_of(c)[0]
    while kept > 1 and is_known_true(equal(getitem(c, kept - 1), 0)):
        kept -= 1
    return c if kept == n else getitem(c, slice(0, kept))


def as_series(*arrays: ArrayLike) -> list[Array]:
    """Return the coefficients of several series, all in one floating dtype.

    Raises:
        ValueError: no coefficient, or more than one axis.
    """
    found = [as_floating(coefficients(a)) for a in arrays]
    for a in found:
        if 0 in backend.shape_of(a):
            raise ValueError("Coefficient array is empty")
        if len(backend.shape_of(a)) != 1:
            raise ValueError("Coefficient array is not 1-d")
    to = result_type(*found)
    return [as_dtype(a, to) for a in found]


def pad_series(c: Array, n: int) -> Array:
    """Return ``c`` padded with trailing zeros to ``n`` terms."""
    missing = n - backend.shape_of(c)[0]
    return concatenate([c, np.zeros(missing, backend.dtype_of(c))]) if missing else c


def as_count(value: Any, what: str) -> int:
    """Return ``value``, a number of derivatives, integrals or terms, as an int.

    Raises:
        TypeError: ``value`` is not an integer.
        ValueError: ``value`` is negative.
    """
    try:
        count = operator.index(value)
    except TypeError as error:
        raise TypeError(f"{what} must be an integer, received {value}") from error
    if count < 0:
        raise ValueError(f"{what} must be non-negative")
    return count


def as_double_or_wider(c: Array) -> Array:
    """Return ``c`` in double precision or more if it is NumPy's, as NumPy's functions that start from 0 and 1 do."""
    return as_dtype(c, np.result_type(backend.dtype_of(c), np.float64)) if backend.library_of(c) is np else c
