"""Known divergences: where JAX gives another derivative, and why funcgrad does not follow JAX.

The cross-check looks up each operation here while it runs the function on JAX arrays, and reports the matches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from sys import maxsize
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from funcgrad.core import Primitive
from funcgrad.optional import import_jax

Applies: TypeAlias = Callable[[Sequence[Any], dict[str, Any]], bool]


class Divergence(NamedTuple):
    """One known difference.

    Attributes:
        primitive: name of the primitive.
        applies: ``applies(values, params)`` says whether the difference occurs for these NumPy values and parameters.
        says: what JAX gives, what funcgrad gives, and the reason.
        since: the first version of JAX with the difference.
        until: the first version without it.
    """

    primitive: str
    applies: Applies
    says: str
    since: tuple[int, ...] = ()
    until: tuple[int, ...] = (maxsize,)


def _where(test: Callable[..., Any]) -> Applies:
    """Return the test whether ``test``, a function of the values, holds anywhere."""
    return lambda values, params: bool(np.any(test(*values)))


def _extreme(values: Sequence[Any], params: dict[str, Any]) -> bool:
    sizes = [np.abs(x[np.isfinite(x) & (x != 0)]) for x in values]
    return any(bool(np.any((x > 1e70) | (x < 1e-70))) for x in sizes)


def _on_cut(of_imaginary: bool, where: Callable[[Any], Any]) -> Applies:
    """Return the test whether a complex value is on a branch cut: on an axis, at a place where ``where`` holds."""

    def on_cut(z: Any) -> Any:
        off, along = (z.real, z.imag) if of_imaginary else (z.imag, z.real)
        return (z.dtype.kind == "c") & (off == 0) & where(along)

    return _where(on_cut)


def _coinciding(values: Sequence[Any], params: dict[str, Any]) -> bool:
    """Whether singular values of a matrix (for a Hermitian matrix: absolute eigenvalues) coincide, or are zero."""
    s = np.linalg.svd(values[0], compute_uv=False)
    noise = 1e3 * np.finfo(s.dtype).eps * s.max(-1, keepdims=True, initial=0)
    return bool((s <= noise).any() or (np.abs(np.diff(s)) <= noise).any())


def _cut_short(values: Sequence[Any], params: dict[str, Any]) -> bool:
    """Whether nonzero singular values count as zero."""
    s, share = np.linalg.svd(values[0], compute_uv=False), np.asarray(values[1])[..., None]
    largest = s.max(-1, keepdims=True, initial=0)
    return bool(((s <= share * largest) & (s > 1e3 * np.finfo(s.dtype).eps * largest)).any())


def _without_residuals(values: Sequence[Any], params: dict[str, Any]) -> bool:
    rows, columns = values[0].shape[-2:]
    return rows <= columns or bool((np.linalg.matrix_rank(values[0], rtol=params["rcond"]) < columns).any())


_always = _where(lambda *values: True)
_flat_power = _where(lambda base, exponent: (exponent.dtype.kind in "fc") & (base == 0) & (exponent <= 1))
_infinite = _where(lambda x, y: [np.any(np.isposinf(z) | (np.abs(z) > 1e5)) for z in (x, y)])
_zero = _where(lambda x, *_: x == 0)
_far = _where(lambda x: x > 100)
_of_reals = _where(lambda x: x.dtype.kind == "f")

_POWER = (
    "x**0.0 at x = 0: JAX's derivative is nan, and so is JAX's second derivative of x**1.0. funcgrad gives 0, as both "
    "libraries do for integer exponents. Other powers up to 1 have no second derivatives at 0; the libraries "
    "return different values for them."
)
_CUT = (
    "on a branch cut the sign of a zero tells the side. JAX loses this sign, so JAX's value or derivative belongs to "
    "the other side. funcgrad's derivative belongs to the side of NumPy's value."
)
_LOGADDEXP = (
    "logaddexp of +inf and another number: funcgrad's derivative in the other number is 0, JAX's is not. For large "
    "numbers JAX's derivative is inexact, because JAX computes it from the rounded result; funcgrad computes it from "
    "the difference of the numbers. If both numbers are -inf, JAX's derivative is nan, and funcgrad's is 0."
)
_VECTORS = (
    "equal eigenvalues or singular values: JAX's derivative through their vectors is NaN. funcgrad's derivative is "
    "correct for functions that do not depend on the choice of these vectors."
)
_REAL = (
    "square roots and logarithms of real matrices: JAX returns real results or NaN, because the dtype of a JAX array "
    "may not depend on values."
)
_SQUARES = (
    "very large or small numbers: JAX's derivative squares the numbers, and the squares overflow or underflow. "
    "funcgrad's derivative does not square them."
)
_ENTROPY = "x log(x / y) at x = 0: JAX's derivative in x is finite. funcgrad gives the correct value, -inf."
_CANCELS = (
    "far from 0, JAX computes the derivative as a difference, which loses digits. funcgrad's derivatives of any order "
    "keep their digits."
)

KNOWN = (
    Divergence("power", _flat_power, _POWER),
    Divergence("float_power", _flat_power, _POWER),
    Divergence(
        "partition",
        _always,
        "partition does not define the order on both sides of the pivot. funcgrad follows NumPy's order and NumPy's "
        "choice among equal elements; JAX's differ.",
    ),
    Divergence("logaddexp", _infinite, _LOGADDEXP),
    Divergence("logaddexp2", _infinite, _LOGADDEXP),
    Divergence(
        "hypot",
        lambda values, params: _extreme(values, params) or bool(np.any(np.abs(values[0]) == np.abs(values[1]))),
        _SQUARES
        + " If both numbers have the same size, JAX's second derivative is wrong, because JAX treats one of them "
        "as the larger number.",
        until=(0, 12),
    ),
    Divergence(
        "hypot",
        _where(lambda x, y: (x == 0) & (y == 0)),
        "hypot at (0, 0): JAX's derivative is nan. funcgrad's derivative is 0.5 in each number, as JAX's was "
        "before version 0.12.",
        since=(0, 12),
    ),
    Divergence("arctan2", _extreme, _SQUARES),
    Divergence(
        "bessel_jn_of",
        lambda values, params: bool(np.any(np.abs(values[0]) > params["n_iter"] / 2)),
        "bessel_jn of arguments above n_iter / 2: JAX's recurrence has too few steps, so JAX's value and derivative "
        "are wrong. Pass n_iter=abs(x) + 40.",
    ),
    Divergence(
        "sinc",
        _where(lambda x: (x != 0) & (np.abs(x) < 0.03)),
        "sinc near 0: JAX computes the derivative as a difference divided by a square, which loses all digits. "
        "funcgrad uses a series near 0.",
        until=(0, 11, 2),
    ),
    Divergence(
        "arctanh",
        _where(lambda x: np.abs(x) == 1),
        "arctanh at 1 and -1: JAX's second derivative is nan. funcgrad gives the correct value, infinity.",
        until=(0, 11, 2),
    ),
    Divergence(
        "heaviside",
        _where(lambda x, _: np.isnan(x)),
        "heaviside of NaN: JAX's derivative is 1. funcgrad's derivative is 0, as for all other numbers.",
    ),
    Divergence(
        "angle_of_real",
        _zero,
        "the angle of a real 0: JAX's derivative is nan. funcgrad's is 0, as for all real numbers.",
    ),
    Divergence(
        "absolute",
        _where(lambda x: (x.dtype.kind == "c") & (x == 0)),
        "the second derivative of abs(z) at 0 does not exist. JAX gives the conjugate of the direction, funcgrad 0.",
    ),
    Divergence(
        "logsumexp",
        lambda values, params: bool(np.any(np.all(np.isneginf(values[0]), params["axis"]))),
        "logsumexp of elements that are all -inf: JAX's derivative is nan, or 0 if a mask set them to -inf. funcgrad's "
        "derivative is always 0.",
    ),
    Divergence(
        "reduce_var",
        lambda values, params: math.prod([values[0].shape[i] for i in params["axis"]]) <= params["correction"],
        "the variance is NaN if ddof is not below the number of elements: JAX's derivative is NaN in reverse mode, 0 "
        "in forward mode.",
    ),
    Divergence(
        "arccosh",
        _where(lambda z: (z.dtype.kind == "c") & (z.real < 0)),
        "arccosh of complex numbers with a negative real part: JAX's derivative has the wrong sign.",
        until=(0, 11, 2),
    ),
    Divergence("arccosh", _on_cut(False, lambda x: x < 1), _CUT),
    Divergence(
        "characteristic",
        _always,
        "the coefficients of a characteristic polynomial: JAX's derivative uses eigenvectors, so JAX's derivative is "
        "wrong or NaN where eigenvalues are equal.",
    ),
    Divergence(
        "series_roots",
        lambda values, params: bool(values[0].ndim == 1 and values[0].size and values[0][-1] == 0),
        "the zeros of a series whose highest coefficient is 0: JAX returns NaN, because the shape of a JAX array may "
        "not depend on values. NumPy drops that coefficient.",
    ),
    Divergence("eigh", _coinciding, _VECTORS),
    Divergence("svd", _coinciding, _VECTORS),
    Divergence(
        "polar",
        _coinciding,
        "polar factors of a matrix with equal singular values: JAX computes the derivative from the singular vectors "
        "and returns NaN. funcgrad's derivative divides only by sums of singular values.",
    ),
    Divergence(
        "pinv",
        _cut_short,
        "a pseudo-inverse that omits small singular values: JAX's derivative belongs to the matrix in which these "
        "values are zero. funcgrad's derivative is correct.",
    ),
    Divergence(
        "lstsq",
        _without_residuals,
        "squared residuals of lstsq: JAX always returns them, because the shape of a JAX array may not depend on "
        "values. NumPy omits them unless there are more rows than columns and the rank is full.",
    ),
    Divergence(
        "spence",
        _where(lambda x: (x >= 0) & (x < 2)),
        "Spence's function: JAX's derivative is NaN between 1 and 2, and 0 at 0 and 1. The correct derivative is "
        "log(z) / (1 - z).",
    ),
    Divergence(
        "scaled_bessel_i",
        _zero,
        "i0e and i1e at 0: JAX's derivatives are the means of those on both sides. funcgrad's are those for positive "
        "numbers, as for abs, so that sums of both without a kink, such as log(i0e(x)) + abs(x), have the right ones.",
    ),
    Divergence("rel_entr", _zero, _ENTROPY),
    Divergence("kl_div", _zero, _ENTROPY),
    Divergence(
        "boxcox",
        _where(lambda x, exponent: (np.abs(exponent) < 0.1) | (x == 0)),
        "boxcox: JAX's derivative in a small exponent loses digits, and is 0 at 0. funcgrad's derivative is accurate.",
    ),
    Divergence(
        "loggamma",
        _where(lambda x: (x.dtype.kind != "c") & (x < 0)),
        "loggamma of a negative number is NaN: JAX's derivative is 0, funcgrad's derivative is NaN.",
    ),
    Divergence("erfcx", _far, _CANCELS),
    Divergence("dawsn", _far, _CANCELS),
    Divergence("log_ndtr", _where(lambda x: x < -100), _CANCELS),
    Divergence("sqrtm", _of_reals, _REAL),
    Divergence("logm", _of_reals, _REAL),
    Divergence("sqrt", _on_cut(False, lambda x: x <= 0), _CUT, since=(0, 10)),
    Divergence("arcsin", _on_cut(False, lambda x: np.abs(x) > 1), _CUT),
    Divergence("arccos", _on_cut(False, lambda x: np.abs(x) > 1), _CUT),
    Divergence("arcsinh", _on_cut(True, lambda x: np.abs(x) > 1), _CUT),
)


def divergences_at(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> list[str]:
    """Return the known divergences of JAX's derivative of ``primitive`` at these concrete JAX or NumPy values.

    Example:
        >>> from funcgrad.primitives.arithmetic import power
        >>> [text[:20] for text in divergences_at(power.primitive, (np.zeros(2), 1.0), {})]
        ['x**0.0 at x = 0: JAX']
        >>> divergences_at(power.primitive, (np.ones(2), 1.0), {})
        []
    """
    entries = [entry for entry in KNOWN if entry.primitive == primitive.name]
    if not entries:
        return []
    version = import_jax("crosscheck").__version_info__
    entries = [entry for entry in entries if entry.since <= version < entry.until]
    values = [np.asarray(a) for a in args]
    return [entry.says for entry in entries if entry.applies(values, params)]
