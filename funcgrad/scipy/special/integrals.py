"""Exponential, sine, cosine and hyperbolic integrals, and Spence's function."""

from __future__ import annotations

from funcgrad.scipy.special.operations import exponential_integrals as prim
from funcgrad.scipy.special.ufunc import table

__all__ = ["expi", "exp1", "expn", "sici", "shichi", "spence"]

row = table(__name__)

# fmt: off
expi = row("expi(x)", prim.expi,
    "The exponential integral Ei, ``int_-inf^x exp(t) / t dt``; real or complex (DLMF 6.2.5).",
    "fsp.expi(1.0).round(6)", "np.float64(1.895118)")
exp1 = row("exp1(z)", prim.exp1,
    "The exponential integral E1, ``int_z^inf exp(-t) / t dt``; real or complex (DLMF 6.2.1).",
    "fsp.exp1(1.0).round(6)", "np.float64(0.219384)")
expn = row("expn(n, x)", prim.expn,
    """The generalised exponential integral ``int_1^inf exp(-x t) / t**n dt``, for ``x >= 0`` (DLMF 8.19.3).

    The order ``n`` is an integer, or an array of such; it has no derivative, and asking for one raises.""",
    "fsp.expn(2, 1.0).round(6)", "np.float64(0.148496)")
spence = row("spence(z)", prim.spence,
    "Spence's function or dilogarithm, ``int_1^z log(t) / (1 - t) dt``; real or complex (DLMF 25.12.2).",
    "fsp.spence([0.0, 1.0]).round(6)", "array([1.644934, 0.      ])")
sici = row("sici(x) -> tuple[Array, Array]", prim.sici,
    "The sine and the cosine integral, of ``sin(t) / t`` from 0 and of ``cos(t) / t`` from infinity (DLMF 6.2).",
    "si, ci = fsp.sici(1.0)\nsi.round(6), ci.round(6)", "(np.float64(0.946083), np.float64(0.337404))")
shichi = row("shichi(x) -> tuple[Array, Array]", prim.shichi,
    "The hyperbolic sine and cosine integrals (DLMF 6.2.15, 6.2.16).",
    "shi, chi = fsp.shichi(1.0)\nshi.round(6), chi.round(6)", "(np.float64(1.057251), np.float64(0.837867))")
# fmt: on
