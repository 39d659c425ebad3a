"""Orthogonal polynomials, associated Legendre functions and spherical harmonics.

Degrees and orders are constants. An integer degree gives a polynomial, any other real degree the function that SciPy
defines for that degree.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from funcgrad.numpy.creation import as_value
from funcgrad.scipy.special.gamma_functions import binom
from funcgrad.scipy.special.operations import hypergeometric as prim
from funcgrad.scipy.special.ufunc import Ufunc, table, widened
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "eval_chebyc", "eval_chebys", "eval_chebyt", "eval_chebyu", "eval_gegenbauer", "eval_genlaguerre", "eval_hermite",
    "eval_hermitenorm", "eval_jacobi", "eval_laguerre", "eval_legendre", "eval_sh_chebyt", "eval_sh_chebyu",
    "eval_sh_jacobi", "eval_sh_legendre", "lpmv", "sph_harm_y", "hyp0f1", "hyp1f1", "hyp2f1", "hyperu",
    "log_wright_bessel", "wright_bessel",
]  # fmt: skip


row = table(__name__)


def _polynomial(
    call: str, what: str, derivative: str, example: str, shows: str, own: Callable[..., Array] | None = None
) -> Ufunc:
    """Return the function of a row for a polynomial of degree n; its operation defaults to the one of the same name."""
    name, arguments = call.rstrip(")").split("(")
    if own is None:
        compute: Callable[..., Array] = partial(getattr(prim, name), orders=(0,) * len(arguments.split(", ")))
    else:
        compute = lambda n, *args: own(n, *map(widened, args))
    formula = derivative and f"\n\nIts derivative in x is {derivative}."
    text = f"{what}.{formula}\n\nRaises:\n    NotDifferentiableError: a derivative in the degree n is requested."
    return row(call, compute, text, f"grad(fsp.{name}, {example}.round(10)", f"np.float64({shows})")


# fmt: off
eval_legendre = _polynomial("eval_legendre(n, x)", "The Legendre polynomial of degree n",
    "``eval_gegenbauer(n - 1, 3 / 2, x)``, DLMF 18.7.9 with 18.9.19", "1)(3, 0.25)", "-1.03125")
eval_chebyt = _polynomial("eval_chebyt(n, x)", "The Chebyshev polynomial of the first kind of degree n",
    "``n * eval_chebyu(n - 1, x)``, DLMF 18.9.21", "1)(3, 0.25)", "-2.25")
eval_chebyu = _polynomial("eval_chebyu(n, x)", "The Chebyshev polynomial of the second kind of degree n",
    "``2 * eval_gegenbauer(n - 1, 2, x)``, DLMF 18.9.19", "1)(3, 0.25)", "-2.5")
eval_hermite = _polynomial("eval_hermite(n, x)", "The physicists' Hermite polynomial of degree n",
    "``2 * n * eval_hermite(n - 1, x)``, DLMF 18.9.25", "1)(3, 0.25)", "-10.5")
eval_hermitenorm = _polynomial("eval_hermitenorm(n, x)", "The probabilists' Hermite polynomial of degree n",
    "``n * eval_hermitenorm(n - 1, x)``, DLMF 18.9.27", "1)(3, 0.25)", "-2.8125")
eval_laguerre = _polynomial("eval_laguerre(n, x)", "The Laguerre polynomial of degree n",
    "``-eval_genlaguerre(n - 1, 1, x)``, DLMF 18.9.23", "1)(3, 0.25)", "-2.28125")
eval_genlaguerre = _polynomial("eval_genlaguerre(n, alpha, x)", "The generalized Laguerre polynomial of degree n",
    "``-eval_genlaguerre(n - 1, alpha + 1, x)``, DLMF 18.9.23; the derivative\nin alpha comes from finite differences",
    "2)(3, 0.5, 0.25)", "-3.53125")
eval_gegenbauer = _polynomial("eval_gegenbauer(n, alpha, x)", "The Gegenbauer polynomial of degree n",
    "``2 * alpha * eval_gegenbauer(n - 1, alpha + 1, x)``, DLMF 18.9.19;\nthe derivative in alpha comes from "
    "finite differences", "2)(3, 0.5, 0.25)", "-1.03125")
eval_jacobi = _polynomial("eval_jacobi(n, alpha, beta, x)", "The Jacobi polynomial of degree n",
    "half of ``(n + alpha + beta + 1) *\neval_jacobi(n - 1, alpha + 1, beta + 1, x)``, DLMF 18.9.15; the derivatives "
    "in the\nparameters come from finite differences", "3)(3, 0.5, 0.5, 0.25)", "-1.3671875")
eval_sh_legendre = _polynomial("eval_sh_legendre(n, x)",
    "The shifted Legendre polynomial: ``eval_legendre(n, 2 * x - 1)``", "", "1)(3, 0.25)", "0.75",
    lambda n, x: eval_legendre(n, 2 * x - 1))
eval_sh_chebyt = _polynomial("eval_sh_chebyt(n, x)",
    "The shifted Chebyshev polynomial of the first kind: ``eval_chebyt(n, 2 * x - 1)``", "", "1)(3, 0.25)", "0.0",
    lambda n, x: eval_chebyt(n, 2 * x - 1))
eval_sh_chebyu = _polynomial("eval_sh_chebyu(n, x)",
    "The shifted Chebyshev polynomial of the second kind: ``eval_chebyu(n, 2 * x - 1)``", "", "1)(3, 0.25)", "4.0",
    lambda n, x: eval_chebyu(n, 2 * x - 1))
eval_sh_jacobi = _polynomial("eval_sh_jacobi(n, p, q, x)",
    "The shifted Jacobi polynomial: ``eval_jacobi(n, p - q, q - 1, 2 * x - 1)`` over ``binom(2 * n + p - 1, n)``", "",
    "3)(3, 1.5, 0.7, 0.25)", "-0.0504020979",
    lambda n, p, q, x: eval_jacobi(n, p - q, q - 1, 2 * x - 1) / binom(2 * widened(n) + p - 1, n))
eval_chebyc = _polynomial("eval_chebyc(n, x)",
    "The Chebyshev polynomial of the first kind on [-2, 2]: ``2 * eval_chebyt(n, x / 2)``", "", "1)(3, 0.25)",
    "-2.8125", lambda n, x: 2 * eval_chebyt(n, x / 2))
eval_chebys = _polynomial("eval_chebys(n, x)",
    "The Chebyshev polynomial of the second kind on [-2, 2]: ``eval_chebyu(n, x / 2)``", "", "1)(3, 0.25)",
    "-1.8125", lambda n, x: eval_chebyu(n, x / 2))
lpmv = row("lpmv(m, v, x)", prim.lpmv,
    """The associated Legendre function of the first kind at ``x``, of whole order ``m`` and degree ``v``.

    The function includes the factor (-1)**m. Its derivative in x is DLMF 14.10.5, which is NaN at -1 and 1.

    Raises:
        NotDifferentiableError: a derivative in m or v is requested.""", "grad(fsp.lpmv, 2)(1, 2, 0.5).round(10)",
    "np.float64(-1.7320508076)")
# fmt: on


def sph_harm_y(n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike) -> Array:
    """Return the spherical harmonic of degree n and order m, complex, with the factor (-1)**m.

    The derivative in theta uses the neighbouring orders and is exact at the poles too. JAX arrays are supported.

    Args:
        n: the degree, a constant.
        m: the order, from -n to n, a constant.
        theta: the polar angle, from 0 to pi.
        phi: the azimuthal angle.

    Raises:
        NotDifferentiableError: a derivative in n or m is requested.

    Example:
        >>> from funcgrad import jvp
        >>> jvp(lambda theta: fsp.sph_harm_y(1, 1, theta, 0.0), (0.0,), (1.0,))[1].round(10)
        np.complex128(-0.3454941495+0j)
    """
    return prim.sph_harm_y(as_value(n), as_value(m), as_value(theta), as_value(phi))


# fmt: off
hyp0f1 = row("hyp0f1(v, z)", lambda v, z: prim.hyp0f1(v, z, orders=(0, 0)),
    """The confluent hypergeometric limit function 0F1.

    The derivative in z is ``hyp0f1(v + 1, z) / v``, DLMF 16.3.1; the derivative in v comes from finite differences.
    Complex z are supported.""", "grad(fsp.hyp0f1)(0.5, 1.0).round(10)", "np.float64(-6.0726969045)")
hyp1f1 = row("hyp1f1(a, b, x)", lambda a, b, x: prim.hyp1f1(a, b, x, orders=(0, 0, 0)), """Kummer's function M, 1F1.

    The derivative in x is ``a / b * hyp1f1(a + 1, b + 1, x)``, DLMF 13.3.15; the derivatives in a and b come from
    finite differences. Complex x are supported, and JAX arrays with the accuracy of JAX's kernel.""",
    "grad(fsp.hyp1f1)(0.5, 1.5, 1.0).round(10)", "np.float64(1.0250371354)")
hyp2f1 = row("hyp2f1(a, b, c, z)", lambda a, b, c, z: prim.hyp2f1(a, b, c, z, orders=(0, 0, 0, 0)),
    """Gauss's function 2F1.

    The derivative in z is ``a * b / c * hyp2f1(a + 1, b + 1, c + 1, z)``, DLMF 15.5.1; the derivatives in a, b and c
    come from finite differences. Complex z are supported, and JAX arrays with the accuracy of JAX's kernel.""",
    "grad(fsp.hyp2f1)(0.5, 1.5, 2.0, 0.3).round(10)", "np.float64(0.3003752441)")
hyperu = row("hyperu(a, b, x)", prim.hyperu, """Tricomi's function U, for x > 0.

    Its derivatives come from the integral DLMF 13.4.4 or, where ``a <= 0`` and the integral does not exist, from the
    derivatives at two larger ``a`` by the recurrence DLMF 13.3.7. Below ``a = -10_000`` those in ``a``, ``b`` are NaN.
    """, "grad(fsp.hyperu)(0.5, 1.5, 1.0).round(10)", "np.float64(-0.3309641863)")
wright_bessel = row("wright_bessel(a, b, x)", prim.wright_bessel,
    """Wright's function ``sum(x**k / k! / gamma(a * k + b))``.

    Its derivative in x is ``wright_bessel(a, a + b, x)``.

    Raises:
        NotDifferentiableError: a derivative in a or b is requested.""",
    "grad(fsp.wright_bessel, 2)(0.5, 1.5, 1.0).round(10)", "np.float64(2.0601257166)")
log_wright_bessel = row("log_wright_bessel(a, b, x)", prim.log_wright_bessel,
    """The logarithm of ``wright_bessel(a, b, x)``.

    Raises:
        NotDifferentiableError: a derivative in a or b is requested.""",
    "grad(fsp.log_wright_bessel, 2)(0.5, 1.5, 1.0).round(10)", "np.float64(0.7917794178)")
# fmt: on
