"""The gamma function, its logarithm and derivatives, beta, Pochhammer's symbol, binomials and zeta."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.backend import dtype_of, shape_of
from funcgrad.core import describe
from funcgrad.errors import InputError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import any_true, concrete_or_none
from funcgrad.numpy.reducing import as_scalar
from funcgrad.numpy.writes.output import write_out
from funcgrad.optional import import_scipy
from funcgrad.scipy.own_code import mirrors
from funcgrad.scipy.special.operations import gamma_functions as prim
from funcgrad.scipy.special.ufunc import table
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "gamma", "gammaln", "loggamma", "gammasgn", "rgamma", "digamma", "psi", "beta", "betaln", "poch", "binom", "zetac",
    "polygamma", "multigammaln", "zeta", "comb", "perm", "factorial",
]  # fmt: skip

row = table(__name__)

# fmt: off
gamma = row("gamma(z)", prim.gamma,
    "The gamma function (DLMF 5.2.1), real or complex. Its derivatives at the poles are NaN.", "fsp.gamma([1.0, 5.0])",
    "array([ 1., 24.])")
gammaln = row("gammaln(x)", prim.gammaln, "The logarithm of ``abs(gamma(x))``, for real ``x``; inf at the poles.",
    "fsp.gammaln(1e5).round(6)", "np.float64(1051287.708974)")
loggamma = row("loggamma(z)", prim.loggamma,
    """The principal branch of the logarithm of the gamma function; NaN for negative real numbers.

    At complex arguments there is only a first derivative, because SciPy has no complex ``polygamma``.""",
    "fsp.loggamma(5.0).round(6)", "np.float64(3.178054)")
gammasgn = row("gammasgn(x)", prim.gammasgn, "The sign of the gamma function; its derivative is zero.",
    "fsp.gammasgn([-0.5, 0.5])", "array([-1.,  1.])")
rgamma = row("rgamma(z)", prim.rgamma,
    "The reciprocal ``1 / gamma(z)``, an entire function: 0 at the poles of gamma, with exact derivatives there.",
    "grad(fsp.rgamma)(-2.0).round(12)", "np.float64(2.0)")
digamma = row("digamma(z)", partial(prim.psi, order=0),
    "The logarithmic derivative of the gamma function (DLMF 5.2.2). There are no derivatives at complex ``z``.",
    "fsp.digamma(1.0).round(6)", "np.float64(-0.577216)")
psi = row("psi(z)", partial(prim.psi, order=0), "The function ``digamma`` under another name.", "fsp.psi(1.0).round(6)",
    "np.float64(-0.577216)")
beta = row("beta(a, b)", prim.beta, "The beta function ``gamma(a) * gamma(b) / gamma(a + b)`` (DLMF 5.12.1).",
    "fsp.beta(2.0, 3.0).round(12)", "np.float64(0.083333333333)")
betaln = row("betaln(a, b)", prim.betaln, "The logarithm of ``abs(beta(a, b))``.", "fsp.betaln(2.0, 3.0).round(6)",
    "np.float64(-2.484907)")
poch = row("poch(z, m)", prim.poch,
    """Pochhammer's symbol or rising factorial, ``gamma(z + m) / gamma(z)`` (DLMF 5.2.5).

    Both derivatives are NaN at the poles of ``gamma(z + m)``.""", "fsp.poch(3.0, 2.0)", "np.float64(12.0)")
binom = row("binom(x, y)", prim.binom,
    """The binomial coefficient ``gamma(x + 1) / (gamma(y + 1) * gamma(x - y + 1))`` of real numbers.

    Both derivatives are NaN at the poles of ``gamma(x + 1)``.""", "fsp.binom(5.0, 2.0)", "np.float64(10.0)")
zetac = row("zetac(x)", prim.zetac, "Riemann's zeta function minus 1.", "fsp.zetac(2.0).round(6)",
    "np.float64(0.644934)")
# fmt: on


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Return the derivative of order ``n`` of ``digamma`` (DLMF 5.15), for real ``x``.

    Args:
        n: a whole number, or an array of whole numbers; it has no derivative.
        x: an array.

    Raises:
        NotDifferentiableError: a derivative in ``n`` is requested.

    Example:
        >>> fsp.polygamma(1, [1.0, 2.0]).round(6)
        array([1.644934, 0.644934])
    """
    return prim.polygamma(as_value(n), as_value(x))


def multigammaln(a: ArrayLike, d: int) -> Array:
    """Return the logarithm of the multivariate gamma function: ``sum_j gammaln(a - j / 2)`` plus a constant.

    Args:
        a: an array, greater than ``(d - 1) / 2``.
        d: the dimension.

    Raises:
        ValueError: ``d`` is not a positive whole number, or ``a`` is too small for ``d``.

    Example:
        >>> fsp.multigammaln(23.5, 10).round(6)
        np.float64(457.176675)
    """
    if shape_of(as_value(d)) or np.floor(d) != d or d < 1:
        raise ValueError(f"multigammaln: d must be a positive whole number, got {d!r}. It is a dimension.")
    a, d = as_value(a), int(d)
    if any_true(lambda a: a <= 0.5 * (d - 1), a):
        raise ValueError(
            f"multigammaln: a must be greater than (d - 1) / 2 = {0.5 * (d - 1)}, got {concrete_or_none(a)}."
        )
    total = prim.gammaln(a)
    for j in range(1, d):
        total = total + prim.gammaln(a - 0.5 * j)
    return total + np.float64(0.25 * d * (d - 1) * math.log(math.pi))  # float64 gives double precision, as in SciPy


def zeta(x: ArrayLike, q: ArrayLike | None = None, out: Any = None) -> Array:
    """Return Riemann's zeta function, or with ``q`` Hurwitz's: ``sum_k 1 / (k + q)**x`` (DLMF 25.2.1, 25.11.1).

    Differentiable in both arguments, for ``x > 1`` and ``q > 0``; Riemann's function also to the left of 1. The
    derivative in ``q`` is DLMF 25.11.17. Derivatives in ``x`` differentiate the Euler-Maclaurin formula (DLMF 25.11.5)
    term by term, to the left of -0.2 the functional equation (DLMF 25.4.1). JAX has Hurwitz's for positive ``q``.

    Args:
        x: an array.
        q: an array that broadcasts with ``x``.
        out: where to write the result.

    Example:
        >>> fsp.zeta([2.0, 4.0]).round(6)
        array([1.644934, 1.082323])
    """
    if q is None:
        result = prim.riemann_zeta(as_value(x), order=0)
    else:
        result = prim.hurwitz_zeta(as_value(x), as_value(q), order=0)
    return result if out is None else write_out("zeta", out, result, stretch=True)


def comb(N: ArrayLike, k: ArrayLike, *, exact: bool = False, repetition: bool = False) -> Any:
    """Return the number of ways to choose ``k`` of ``N`` things: ``binom``, and 0 where there is none.

    Args:
        N: an array.
        k: an array that broadcasts with ``N``.
        exact: whether to compute with Python integers; then both arguments are integers.
        repetition: whether a thing may be chosen again.

    Example:
        >>> fsp.comb([5, 2], 3), fsp.comb(50, 25, exact=True)
        (array([10.,  0.]), 126410606437752)
    """
    if exact:
        return import_scipy("scipy.special.comb", "scipy.special").comb(N, k, exact=True, repetition=repetition)
    N, k = as_value(N), as_value(k)
    if repetition:
        none = (k == 0) & (N == 0)  # no things, none chosen: one way
        return as_scalar(fnp.where(none, 1.0, prim.binom(fnp.where(none, 0.0, N + k - 1), k)))
    possible = (k <= N) & (N >= 0) & (k >= 0)
    ways = prim.binom(fnp.where(possible, N, 1), fnp.where(possible, k, 0))
    return as_scalar(fnp.where(possible, ways, 0.0))


def perm(N: ArrayLike, k: ArrayLike, exact: bool = False) -> Any:
    """Return the number of sequences of ``k`` of ``N`` things: ``poch(N - k + 1, k)``, and 0 where there is none.

    Arguments as for ``comb``.

    Example:
        >>> fsp.perm([5, 2], 3), fsp.perm(10, 3, exact=True)
        (array([60.,  0.]), 720)
    """
    if exact:
        return import_scipy("scipy.special.perm", "scipy.special").perm(N, k, exact=True)
    N, k = as_value(N), as_value(k)
    possible = (k <= N) & (N >= 0) & (k >= 0)
    ways = prim.poch(fnp.where(possible, N - k + 1, 1), fnp.where(possible, k, 0))
    return as_scalar(fnp.where(possible, ways, 0.0))


@mirrors
def factorial(n: ArrayLike, exact: bool = False, extend: str = "zero") -> Any:
    """Return ``gamma(n + 1)``, and 0 for negative ``n``.

    Args:
        n: an array.
        exact: whether to compute Python integers.
        extend: ``"zero"``, or ``"complex"`` for ``gamma(n + 1)`` of negative and complex numbers too.

    Raises:
        InputError: ``exact`` is True, and ``n`` is traced or a JAX array.

    Example:
        >>> fsp.factorial([3, 4]), fsp.factorial(25, exact=True)
        (array([ 6., 24.]), 15511210043330985984000000)
    """
    if exact:
        raise InputError(f"factorial: exact=True is for plain integers, got {describe(n)}. Leave it out.")
    n = as_value(n)
    if extend == "complex":
        return prim.gamma(fnp.where(n == -1, n - 1, n) + 1)  # NaN at all poles: ``gamma`` is infinite at 0
    if shape_of(n) or dtype_of(n).kind != "f":
        n = n * np.float64(1.0)  # SciPy computes arrays in double precision, a single number in its own dtype
    return fnp.where(n < 0, 0.0, prim.gamma(fnp.where(n < 0, 0, n) + 1))
