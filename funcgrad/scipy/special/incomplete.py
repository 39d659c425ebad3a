"""Incomplete gamma and beta functions and their inverses, differentiable in every argument, to any order.

The derivatives in the parameters have no closed form. Gauss's formula computes them as integrals, to 10 digits
or better, see ``operations.incomplete``. JAX arrays are supported, except by the inverses, which JAX does not have. At
the ends of the domain, for instance at ``x = 0``, derivatives in the parameters are 0; outside the domain they are NaN.
"""

from __future__ import annotations

from funcgrad.scipy.special.operations import incomplete as prim
from funcgrad.scipy.special.ufunc import table

__all__ = ["gammainc", "gammaincc", "gammaincinv", "gammainccinv", "betainc", "betaincc", "betaincinv", "betainccinv"]

row = table(__name__)

# fmt: off
gammainc = row("gammainc(a, x)", prim.gammainc,
    "The regularised lower incomplete gamma function P (DLMF 8.2.4), for ``a >= 0`` and ``x >= 0``.",
    "fsp.gammainc(2.0, 3.0).round(6), grad(fsp.gammainc)(2.0, 3.0).round(6)",
    "(np.float64(0.800852), np.float64(-0.197425))")
gammaincc = row("gammaincc(a, x)", prim.gammaincc,
    "The regularised upper incomplete gamma function Q, ``1 - gammainc(a, x)`` without cancellation.",
    "fsp.gammaincc(2.0, 100.0) < 1e-41", "np.True_")
gammaincinv = row("gammaincinv(a, y)", prim.gammaincinv, """The inverse of ``gammainc`` in its second argument.

    The derivatives follow from those of ``gammainc`` by the implicit function theorem.""",
    "fsp.gammaincinv(2.0, 0.5).round(6)", "np.float64(1.678347)")
gammainccinv = row("gammainccinv(a, y)", prim.gammainccinv, "The inverse of ``gammaincc`` in its second argument.",
    "fsp.gammainccinv(2.0, 1e-30).round(6)", "np.float64(73.386832)")
betainc = row("betainc(a, b, x)", prim.betainc,
    "The regularised incomplete beta function (DLMF 8.17.2), for positive ``a`` and ``b``, and ``0 <= x <= 1``.",
    "grad(fsp.betainc, (0, 1))(2.0, 3.0, 0.5)", "(np.float64(-0.1952886...), np.float64(0.1541084...))")
betaincc = row("betaincc(a, b, x)", prim.betaincc, "The complement ``1 - betainc(a, b, x)``, without cancellation.",
    "fsp.betaincc(2.0, 30.0, 0.9).round(35)", "np.float64(2.8e-29)")
betaincinv = row("betaincinv(a, b, y)", prim.betaincinv, """The inverse of ``betainc`` in its third argument.

    The derivatives follow from those of ``betainc`` by the implicit function theorem.""",
    "fsp.betaincinv(2.0, 3.0, 0.5).round(6)", "np.float64(0.385728)")
betainccinv = row("betainccinv(a, b, y)", prim.betainccinv, "The inverse of ``betaincc`` in its third argument.",
    "fsp.betainccinv(2.0, 3.0, 0.5).round(6)", "np.float64(0.385728)")
# fmt: on
