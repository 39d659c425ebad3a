"""Series in families of polynomials: their values and roots, and characteristic polynomials of matrices.

A family is defined by its three-term recurrence, see ``Basis``. Every operation that is linear in the coefficients
with constant numbers (derivatives, integrals, changes of basis) is a matrix: NumPy's function, applied to unit vectors.
Coefficients are along the first axis, the constant term first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, reduce
from importlib import import_module
from math import prod
from operator import add
from types import ModuleType
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.errors import ShapeError
from funcgrad.kinds import primitive
from funcgrad.kinds.linear import astype, conform, permute, promote, reduce_sum, reshape, unbroadcast
from funcgrad.kinds.rules import Operation
from funcgrad.primitives.arithmetic import multiply
from funcgrad.primitives.products import matmul
from funcgrad.primitives.shaping import stack
from funcgrad.typing import Array, Shape


@dataclass(eq=False, repr=False, slots=True)
class Basis:
    """Family of polynomials with ``p[0] = 1`` and ``p[i + 1] = (a x + b) p[i] - c p[i - 1]``.

    Attributes:
        prefix: the prefix of the names of NumPy's functions for this family.
        module: the name, in ``numpy.polynomial``, of NumPy's module with these functions.
        step: ``step(i)`` returns ``a``, ``b`` and ``c``.
    """

    prefix: str
    module: str
    step: Callable[[int], tuple[float, float, float]]

    def __repr__(self) -> str:
        return f"<basis {self.prefix}>"

    @property
    def library(self) -> ModuleType:
        """NumPy's module for this family, imported at first use."""
        return import_module(f"numpy.polynomial.{self.module}")

    def numpy(self, name: str) -> Callable[..., Any]:
        """Return NumPy's function ``name`` (without the prefix) of this family."""
        found: Callable[..., Any] = getattr(self.library, self.prefix + name)
        return found


MONOMIALS = Basis("poly", "polynomial", lambda i: (1.0, 0.0, 0.0))
#: Families by prefix. Recurrences: Abramowitz and Stegun, Handbook of Mathematical Functions, table 22.7.
BASES: dict[str, Basis] = {
    basis.prefix: basis
    for basis in (
        MONOMIALS,
        Basis("cheb", "chebyshev", lambda i: (2.0 if i else 1.0, 0.0, 1.0)),
        Basis("leg", "legendre", lambda i: ((2 * i + 1) / (i + 1), 0.0, i / (i + 1))),
        Basis("herm", "hermite", lambda i: (2.0, 0.0, 2.0 * i)),
        Basis("herme", "hermite_e", lambda i: (1.0, 0.0, float(i))),
        Basis("lag", "laguerre", lambda i: (-1 / (i + 1), (2 * i + 1) / (i + 1), i / (i + 1))),
    )
}


# ---- constant matrices ---------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def matrix_of(basis: Basis, name: str, n: int, *args: Any) -> np.ndarray:
    """Return the matrix of NumPy's linear function ``name`` of the coefficients of a series of ``n`` terms.

    Example:
        >>> matrix_of(MONOMIALS, "der", 3)
        array([[0., 1., 0.],
               [0., 0., 2.]])
    """
    made: np.ndarray = basis.numpy(name)(np.eye(n), *args)
    return made


@lru_cache(maxsize=512)
def times_x(basis: Basis, n: int) -> np.ndarray:
    """Return the matrix that multiplies a series of ``n`` terms by ``x``: the recurrence solved for ``x p[i]``.

    Example:
        >>> times_x(BASES["cheb"], 2)
        array([[0. , 0.5],
               [1. , 0. ],
               [0. , 0.5]])
    """
    made = np.zeros((n + 1, n))
    for i in range(n):
        a, b, c = basis.step(i)
        made[i + 1, i] = 1 / a
        if b:
            made[i, i] = -b / a
        if i:
            made[i - 1, i] = c / a
    return made


@lru_cache(maxsize=512)
def conversion(basis: Basis, name: str, n: int) -> np.ndarray:
    """Return the matrix of NumPy's change of basis ``name`` ("poly2cheb", "cheb2poly", ...) for ``n`` terms.

    Example:
        >>> conversion(BASES["cheb"], "cheb2poly", 3)
        array([[ 1.,  0., -1.],
               [ 0.,  1.,  0.],
               [ 0.,  0.,  2.]])
    """
    made = np.zeros((n, n))
    for i, unit in enumerate(np.eye(n)):
        column = getattr(basis.library, name)(unit)
        made[: len(column), i] = column
    return made


@lru_cache(maxsize=64)
def products_of(basis: Basis, n: int, m: int) -> np.ndarray:
    """Return the matrices that multiply ``m`` terms by ``p[0]`` to ``p[n - 1]``, of shape (n, n + m - 1, m)."""
    size = n + m - 1
    by_x = times_x(basis, size)[:size]
    made = np.zeros((n, size, m))
    made[0] = np.eye(size, m)
    for i in range(n - 1):
        a, b, c = basis.step(i)
        made[i + 1] = a * (by_x @ made[i]) + b * made[i] - (c * made[i - 1] if i else 0)
    return made


@lru_cache(maxsize=512)
def companion_parts(basis: Basis, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ``M, w``: NumPy's companion matrix is ``M`` less ``w * c[:-1] / c[-1]`` in the last column."""
    constant = basis.numpy("companion")([0.0] * n + [1.0])
    return constant, (constant - basis.numpy("companion")([1.0] * (n + 1)))[:, -1]


def matmul_first_axis(matrix: np.ndarray, c: Array) -> Array:
    """Return ``matrix`` times ``c`` along the first axis of ``c``, in the precision of ``c``."""
    shape, dtype = backend.shape_and_dtype_of(c)
    if backend.is_inexact(c):
        matrix = matrix.astype(np.zeros(0, dtype).real.dtype)
    if len(shape) <= 2:
        return matmul(matrix, c)
    flat = matmul(matrix, reshape(c, to=(shape[0], prod(shape[1:]))))
    return reshape(flat, to=(matrix.shape[0], *shape[1:]))


def derivative_of(c: Array, basis: Basis) -> Array:
    """Return the coefficients of the derivative of a series; those of a constant are one zero."""
    return matmul_first_axis(matrix_of(basis, "der", backend.shape_of(c)[0]), c)


# ---- values --------------------------------------------------------------------------------------------------


def _evaluate(xp: Any, x: Any, c: Any, *, basis: Basis) -> Any:
    """Evaluate by Clenshaw's recurrence (Mathematical Tables and Other Aids to Computation 9 (1955) 118), as NumPy."""
    if xp is np:
        return basis.numpy("val")(x, c, tensor=False)
    x, c = xp.asarray(x), xp.asarray(c)
    above: Any = 0.0
    ans = c[-1] + 0.0 * x
    for i in range(c.shape[0] - 2, -1, -1):
        a, b, _ = basis.step(i)
        ans, above = c[i] + (a * x + b) * ans - basis.step(i + 1)[2] * above, ans
    return ans


def _slope(ct: Array, x: Array, c: Array, basis: Basis) -> Array:
    """Return the derivative in ``x``, in the precision of ``ct``."""
    return evaluate(x, derivative_of(promote(c, backend.dtype_of(ct)), basis), basis=basis)


def _evaluate_dc(ct: Array, x: Array, shape: Shape, *, basis: Basis) -> Array:
    """Return the cotangent of the coefficients: each basis polynomial times ``ct``, summed over the points."""
    n, own, points = shape[0], shape[1:], backend.shape_of(x)
    table = basis_table(promote(x, backend.dtype_of(ct)), n=n, basis=basis)
    out = backend.shape_of(ct)
    padded = (*(1,) * (len(out) - len(own)), *own)
    outer = len(out) - len(points)
    if prod(padded[outer:]) == 1 and padded[:outer] == out[:outer]:  # every series is evaluated at every point
        series, size = prod(out[:outer]), prod(points)
        pairs = permute(reshape(ct, to=(series, size)), axes=(1, 0))
        return reshape(matmul(reshape(table, to=(n, size)), pairs), to=shape)
    whole = multiply(reshape(table, to=(n, *(1,) * outer, *points)), ct)
    return reshape(unbroadcast(whole, (n, *padded)), to=shape)


def _batch_evaluate(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    x, c = args
    points, terms = backend.shape_of(x), backend.shape_of(c)
    rank = max(len(points) - batched[0], len(terms) - 1 - batched[1])
    if batched[0]:
        x = reshape(x, to=(size, *(1,) * (rank + 1 - len(points)), *points[1:]))
    if batched[1]:
        c = permute(c, axes=(1, 0, *range(2, len(terms))))
        c = reshape(c, to=(terms[1], size, *(1,) * (rank + 2 - len(terms)), *terms[2:]))
    return evaluate(x, c, **params), True


#: ``evaluate(x, c, *, basis)``: the value at ``x`` of the series with coefficients along the first axis of ``c``. The
#: other axes of ``c`` broadcast against ``x``.
evaluate: Operation = primitive(
    "evaluate",
    _evaluate,
    vjps=[lambda ct, x, y, *, basis: ct * _slope(ct, x, y, basis), _evaluate_dc],
    jvps=[
        lambda t, x, y, *, basis: t * _slope(t, x, y, basis),
        lambda t, x, *, basis: evaluate(x, t, basis=basis),
    ],
    batch=_batch_evaluate,
)


def _basis_table(xp: Any, x: Any, *, n: int, basis: Basis) -> Any:
    x = xp.asarray(x)
    if xp is np:
        made = np.moveaxis(basis.numpy("vander")(x, n - 1), -1, 0)
        return made if x.ndim else made.reshape(n)
    rows = [xp.ones_like(x)]
    for i in range(n - 1):
        a, b, c = basis.step(i)
        rows.append((a * x + b) * rows[i] - (c * rows[i - 1] if i else 0.0))
    return xp.stack(rows)


def _table_slopes(x: Array, n: int, basis: Basis) -> Array:
    """Return the derivatives of ``p[0]`` to ``p[n - 1]`` at ``x``."""
    slopes = matrix_of(basis, "der", n).T
    return matmul_first_axis(slopes, basis_table(x, n=slopes.shape[1], basis=basis))


def _batch_table(size: int, args: Any, batched: Any, params: Any) -> tuple[Any, bool]:
    (x,) = args
    rank = len(backend.shape_of(x))
    return permute(basis_table(x, **params), axes=(1, 0, *range(2, rank + 1))), True


#: ``basis_table(x, *, n, basis)``: the values of ``p[0]`` to ``p[n - 1]`` at ``x``, along a new first axis.
basis_table: Operation = primitive(
    "basis_table",
    _basis_table,
    vjps=[lambda ct, x, *, n, basis: reduce_sum(ct * _table_slopes(x, n, basis), axis=(0,))],
    jvps=[lambda t, x, *, n, basis: t * _table_slopes(x, n, basis)],
    batch=_batch_table,
)


# ---- roots ---------------------------------------------------------------------------------------------------


def _one_by_one(call: Operation, args: Any, params: Any, longer: int, least: Any) -> tuple[Any, bool]:
    """Batch an operation that takes one example.

    In an empty batch a result is by ``longer`` entries longer than its argument and has at least the dtype ``least``.
    """
    (x,) = args
    size, length = backend.shape_of(x)[:2]
    rows = [call(x[i], **params) for i in range(size)]
    if not rows:
        dtype = np.result_type(backend.dtype_of(x), least)
        return backend.library_of(x).zeros((0, max(length + longer, 0)), dtype), True
    if len({backend.shape_of(row) for row in rows}) > 1:
        raise ShapeError(
            f"vmap: {call.__name__} gives results of different lengths where leading coefficients of some examples are "
            f"zero, got {[backend.shape_of(row)[0] for row in rows]}. Call it for each example."
        )
    to = np.result_type(*[backend.dtype_of(row) for row in rows])
    return stack(*[row if backend.dtype_of(row) == to else astype(row, to=to) for row in rows], axis=0), True


def _roots(xp: Any, c: Any, *, basis: Basis, sort: bool) -> Any:
    if xp is np:
        return basis.numpy("roots")(c) if sort else np.roots(c[::-1])
    n = c.shape[0] - 1
    if n < 1:
        return xp.zeros(0, (c + 1j).dtype)
    if not sort:
        return xp.roots(c[::-1], strip_zeros=False)
    constant, weights = companion_parts(basis, n)
    last = constant[:, -1] - weights * c[:-1] / c[-1]
    found = xp.linalg.eigvals(xp.asarray(constant).astype(last.dtype).at[:, -1].set(last)[::-1, ::-1])
    return xp.sort(found)


def _slope_at_roots(c: Array, ans: Array, basis: Basis) -> Array:
    return evaluate(ans, derivative_of(c, basis), basis=basis)


def _roots_vjp(ct: Array, x: Array, ans: Array, *, basis: Basis, sort: bool) -> Array:
    table = basis_table(ans, n=backend.shape_of(x)[0], basis=basis)
    return matmul(table, -ct / _slope_at_roots(x, ans, basis))


#: ``series_roots(c, *, basis, sort)``: the zeros of one series, sorted or in the order of ``numpy.roots``. Derivative
#: (implicit function theorem): minus the change of the series at the root, divided by its slope there.
series_roots: Operation = primitive(
    "series_roots",
    _roots,
    vjps=[_roots_vjp],
    jvps=[lambda t, x, ans, *, basis, sort: -evaluate(ans, t, basis=basis) / _slope_at_roots(x, ans, basis)],
    batch=lambda size, args, batched, params: _one_by_one(series_roots, args, params, -1, np.complex64),
    data_dependent=True,
)


def _characteristic(xp: Any, x: Any) -> Any:
    if xp is np:
        return np.poly(x)
    ans = xp.poly(x)
    return ans if x.dtype.kind == "c" else ans.real


def _adjugate_terms(x: Array, ans: Array) -> list[Array]:
    """Return the matrices ``M[k]`` of ``adj(z - x) = sum(z**(n - k) * M[k])``, k from 1 to n, by Horner's rule.

    Gantmacher, The Theory of Matrices, chapter IV, section 4.
    """
    identity = np.eye(x.shape[-1], dtype=backend.dtype_of(x))
    terms = [identity]
    for k in range(1, x.shape[-1]):
        terms.append(matmul(x, terms[-1]) + ans[k] * identity)
    return terms


def _characteristic_jvp(t: Array, x: Array, ans: Array) -> Array:
    """Apply Jacobi's formula: the determinant of ``z - x`` changes by minus the trace of ``adj(z - x) t``."""
    traces = [reduce_sum(t * permute(term, axes=(1, 0)), axis=(0, 1)) for term in _adjugate_terms(x, ans)]
    tangent = stack(traces[0] * 0, *[-trace for trace in traces], axis=0)
    return conform(tangent, None, backend.dtype_of(ans))


def _characteristic_vjp(ct: Array, x: Array, ans: Array) -> Array:
    return -permute(reduce(add, (ct[k] * term for k, term in enumerate(_adjugate_terms(x, ans), 1))), axes=(1, 0))


#: ``characteristic(x)``: the coefficients of ``det(z - x)``, highest power first. The derivative needs no
#: eigenvalues, so it is exact even if some are equal.
characteristic: Operation = primitive(
    "characteristic",
    _characteristic,
    vjps=[_characteristic_vjp],
    jvps=[_characteristic_jvp],
    batch=lambda size, args, batched, params: _one_by_one(characteristic, args, params, 1, bool),
    data_dependent=True,
)
