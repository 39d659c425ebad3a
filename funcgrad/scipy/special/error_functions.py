"""The error function and its relatives: Gaussian, Dawson's and Fresnel's integrals, Owen's T; exponential integrals."""

from __future__ import annotations

from functools import partial

from funcgrad.scipy.special.operations import error_functions as prim
from funcgrad.scipy.special.ufunc import table

__all__ = [
    "erf", "erfc", "erfcx", "erfi", "erfinv", "erfcinv", "wofz", "dawsn", "ndtr", "log_ndtr", "ndtri", "ndtri_exp",
    "owens_t", "fresnel", "voigt_profile", "expi", "exp1", "expn", "sici", "shichi", "spence",
]  # fmt: skip


row = table(__name__)

# fmt: off
erf = row("erf(z)", prim.erf,
    "The error function, ``2 / sqrt(pi) * int_0^z exp(-t**2) dt``; real or complex (DLMF 7.2.1).",
    "fsp.erf([0.0, 1.0]).round(6)", "array([0.      , 0.842701])")
erfc = row("erfc(x)", prim.erfc, "The difference ``1 - erf(x)``, without cancellation (DLMF 7.2.2).",
    "fsp.erfc(10.0)", "np.float64(2.0884875837625446e-45)")
erfcx = row("erfcx(x)", partial(prim.erfcx, order=0),
    """The product ``exp(x**2) * erfc(x)``, without overflow or underflow for large ``x``.

    All derivatives are accurate for large ``x`` too. ``x`` must be real.""", "(1e16 * grad(fsp.erfcx)(1e8)).round(9)",
    "np.float64(-0.564189584)")
erfi = row("erfi(z)", prim.erfi,
    "The imaginary error function, ``2 / sqrt(pi) * int_0^z exp(t**2) dt = -1j * erf(1j * z)`` (DLMF 7.5.1).",
    "fsp.erfi(1.0).round(6)", "np.float64(1.650426)")
erfinv = row("erfinv(y)", prim.erfinv, "The inverse of ``erf``: infinite at -1 and 1, NaN outside of [-1, 1].",
    "fsp.erfinv(0.5).round(6)", "np.float64(0.476936)")
erfcinv = row("erfcinv(y)", prim.erfcinv, "The inverse of ``erfc``: infinite at 0 and 2, NaN outside of [0, 2].",
    "fsp.erfcinv(0.5).round(6)", "np.float64(0.476936)")
wofz = row("wofz(z)", partial(prim.wofz, order=0),
    """The Faddeeva function ``exp(-z**2) * erfc(-1j * z)``; the result is complex (DLMF 7.2.3).

    All derivatives are accurate for large ``z`` too.""", "fsp.wofz(0.5j).round(6)", "np.complex128(0.61569+0j)")
dawsn = row("dawsn(x)", partial(prim.dawsn, order=0),
    """Dawson's integral ``exp(-x**2) * int_0^x exp(t**2) dt`` (DLMF 7.2.5), for real ``x``.

    All derivatives are accurate for large ``x`` too.""", "fsp.dawsn(1.0).round(6)", "np.float64(0.53808)")
ndtr = row("ndtr(x)", prim.ndtr, "The distribution function of the standard normal distribution.",
    "fsp.ndtr(1.959963984540054).round(12)", "np.float64(0.975)")
log_ndtr = row("log_ndtr(x)", prim.log_ndtr,
    "The logarithm of ``ndtr``. Value and derivative are accurate where ``ndtr`` underflows too.",
    "grad(fsp.log_ndtr)(-1e6).round(9)", "np.float64(1000000.000001)")
ndtri = row("ndtri(p)", prim.ndtri,
    "The inverse of ``ndtr``: the quantile function of the standard normal distribution.", "fsp.ndtri(0.975).round(6)",
    "np.float64(1.959964)")
ndtri_exp = row("ndtri_exp(y)", prim.ndtri_exp,
    "The inverse of ``log_ndtr``. On JAX arrays, ``exp(y)`` must not round to 0 or 1.",
    "fsp.ndtri_exp(-1e4).round(6)", "np.float64(-141.37984)")
owens_t = row("owens_t(h, a)", prim.owens_t,
    """Owen's T function ``int_0^a exp(-h**2 (1 + t**2) / 2) / (1 + t**2) dt / (2 pi)``.

    The derivatives in both arguments are elementary (D. B. Owen, Ann. Math. Statist. 27, 1956).""",
    "fsp.owens_t(1.0, 1.0).round(6)", "np.float64(0.066742)")
voigt_profile = row("voigt_profile(x, sigma, gamma)", prim.voigt_profile,
    """The density at ``x`` of a normal variable (deviation ``sigma``) plus a Cauchy variable (half-width ``gamma``).

    The density is differentiable in all arguments for positive ``sigma``.""",
    "fsp.voigt_profile(0.5, 1.0, 1.0).round(6)", "np.float64(0.19677)")
fresnel = row("fresnel(z) -> tuple[Array, Array]", prim.fresnel,
    "Fresnel's integrals S and C of ``sin(pi t**2 / 2)`` and ``cos(pi t**2 / 2)`` from 0 to ``z`` (DLMF 7.2.7).",
    "s, c = fsp.fresnel(1.0)\ns.round(6), c.round(6)", "(np.float64(0.438259), np.float64(0.779893))")
# fmt: on


# fmt: off
expi = row("expi(x)", prim.expi,
    "The exponential integral Ei, ``int_-inf^x exp(t) / t dt``; real or complex (DLMF 6.2.5).",
    "fsp.expi(1.0).round(6)", "np.float64(1.895118)")
exp1 = row("exp1(z)", prim.exp1,
    "The exponential integral E1, ``int_z^inf exp(-t) / t dt``; real or complex (DLMF 6.2.1).",
    "fsp.exp1(1.0).round(6)", "np.float64(0.219384)")
expn = row("expn(n, x)", prim.expn,
    """The generalised exponential integral ``int_1^inf exp(-x t) / t**n dt``, for ``x >= 0`` (DLMF 8.19.3).

    The order ``n`` is an integer, or an array of integers. A derivative in ``n`` raises.""",
    "fsp.expn(2, 1.0).round(6)", "np.float64(0.148496)")
spence = row("spence(z)", prim.spence,
    "Spence's function or dilogarithm, ``int_1^z log(t) / (1 - t) dt``; real or complex (DLMF 25.12.2).",
    "fsp.spence([0.0, 1.0]).round(6)", "array([1.644934, 0.      ])")
sici = row("sici(x) -> tuple[Array, Array]", prim.sici,
    "The sine and cosine integrals: of ``sin(t) / t`` from 0 and of ``cos(t) / t`` from infinity to ``x`` (DLMF 6.2).",
    "si, ci = fsp.sici(1.0)\nsi.round(6), ci.round(6)", "(np.float64(0.946083), np.float64(0.337404))")
shichi = row("shichi(x) -> tuple[Array, Array]", prim.shichi,
    "The hyperbolic sine and cosine integrals (DLMF 6.2.15, 6.2.16).",
    "shi, chi = fsp.shichi(1.0)\nshi.round(6), chi.round(6)", "(np.float64(1.057251), np.float64(0.837867))")
# fmt: on
