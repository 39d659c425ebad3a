"""Products with logarithms, entropies, the logistic function, the Box-Cox transform, Huber's losses."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

import funcgrad.numpy as fnp
from funcgrad.numpy.creation import as_value
from funcgrad.scipy.special.operations import convex as prim
from funcgrad.scipy.special.ufunc import table, widened
from funcgrad.typing import Array, ArrayLike, Axes

__all__ = [
    "xlogy", "xlog1py", "entr", "rel_entr", "kl_div", "expit", "log_expit", "logit", "boxcox", "boxcox1p", "inv_boxcox",
    "inv_boxcox1p", "huber", "pseudo_huber", "exprel", "cosm1", "powm1", "wrightomega", "exp10", "sindg", "cosdg",
    "tandg", "cotdg", "radian", "cbrt", "exp2", "expm1", "log1p", "logsumexp", "softmax", "log_softmax", "lambertw",
]  # fmt: skip

row = table(__name__)


def _radian(d: Any, m: Any, s: Any) -> Any:
    return fnp.multiply((d * 60.0 + m) * 60.0 + s, math.pi / 648_000)


# fmt: off
cbrt = row("cbrt(x)", lambda x: fnp.cbrt(widened(x, "cbrt")), "The cube root.", "fsp.cbrt(-8.0)", "np.float64(-2.0)")
exp2 = row("exp2(x)", lambda x: fnp.exp2(widened(x, "exp2")), "The power ``2**x``.", "fsp.exp2(3.0)", "np.float64(8.0)")
expm1 = row("expm1(x)", lambda x: fnp.expm1(widened(x, "expm1")), "``exp(x) - 1``, without cancellation near 0.",
    "fsp.expm1(1e-30)", "np.float64(1e-30)")
log1p = row("log1p(x)", lambda x: prim.accurate_log1p(widened(x, "log1p")),
    "``log(1 + x)``, without cancellation near 0.", "fsp.log1p(1e-30)", "np.float64(1e-30)")
xlogy = row("xlogy(x, y)", prim.xlogy, """The product ``x * log(y)``, 0 where ``x`` is 0 and ``y`` is not NaN.

    At ``x = y = 0`` the derivative in ``y`` is NaN and the derivative in ``x`` is -inf.""",
    "fsp.xlogy([0.0, 2.0], [0.0, 1.0])", "array([0., 0.])")
xlog1py = row("xlog1py(x, y)", prim.xlog1py, "The product ``x * log1p(y)``, 0 where ``x`` is 0 and ``y`` is not NaN.",
    "fsp.xlog1py(2.0, 1e-30)", "np.float64(2e-30)")
entr = row("entr(x)", prim.entr,
    "The entropy ``-x * log(x)``, 0 at 0, -inf for negative ``x``. The derivative at 0 is inf.",
    "fsp.entr([0.0, 0.5, 1.0]).round(6)", "array([ 0.      ,  0.346574, -0.      ])")
rel_entr = row("rel_entr(x, y)", prim.rel_entr,
    """The relative entropy ``x * log(x / y)``, 0 where ``x`` is 0, inf where ``x`` or ``y`` is negative.

    At ``x = 0 < y`` the derivative in ``x`` is -inf.""", "fsp.rel_entr(0.5, 0.25).round(6)", "np.float64(0.346574)")
kl_div = row("kl_div(x, y)", prim.kl_div,
    """The term ``x * log(x / y) - x + y`` of the Kullback-Leibler divergence, which is never negative.

    At ``x = 0 < y`` the derivative in ``x`` is -inf.""", "fsp.kl_div(0.5, 0.5)", "np.float64(0.0)")
expit = row("expit(x)", prim.expit, "The logistic function, ``1 / (1 + exp(-x))``.",
    "fsp.expit([-1000.0, 0.0, 1000.0])", "array([0. , 0.5, 1. ])")
log_expit = row("log_expit(x)", prim.log_expit, "The logarithm ``log(expit(x))``, without overflow.",
    "fsp.log_expit([-1000.0, 0.0]).round(6)", "array([-1.00000e+03, -6.93147e-01])")
logit = row("logit(x)", prim.logit,
    "The inverse ``log(x / (1 - x))`` of ``expit``: infinite at 0 and 1, NaN outside of [0, 1].",
    "fsp.logit([0.25, 0.5]).round(6)", "array([-1.098612,  0.      ])")
boxcox = row("boxcox(x, lmbda)", prim.boxcox,
    """The Box-Cox transform ``(x**lmbda - 1) / lmbda``, ``log(x)`` for ``lmbda = 0``; NaN for negative ``x``.

    The transform is differentiable in both arguments, at ``lmbda = 0`` too.""",
    "grad(fsp.boxcox, 1)(np.e, 0.0).round(12)", "np.float64(0.5)")
boxcox1p = row("boxcox1p(x, lmbda)", prim.boxcox1p, "The transform ``boxcox(1 + x, lmbda)``, accurate for small ``x``.",
    "fsp.boxcox1p(1e-30, 0.0)", "np.float64(1e-30)")
inv_boxcox = row("inv_boxcox(y, lmbda)", prim.inv_boxcox,
    "The inverse of ``boxcox`` in its first argument: ``(1 + lmbda * y)**(1 / lmbda)``.", "fsp.inv_boxcox(1.5, 2.0)",
    "np.float64(2.0)")
inv_boxcox1p = row("inv_boxcox1p(y, lmbda)", prim.inv_boxcox1p, "The inverse of ``boxcox1p`` in its first argument.",
    "fsp.inv_boxcox1p(1.5, 2.0)", "np.float64(1.0)")
huber = row("huber(delta, r)", prim.huber,
    "Huber's loss: ``r**2 / 2`` up to ``abs(r) = delta``, linear beyond; inf for negative ``delta``.",
    "fsp.huber(1.0, [0.5, 3.0])", "array([0.125, 2.5  ])")
pseudo_huber = row("pseudo_huber(delta, r)", prim.pseudo_huber,
    """A smooth Huber loss, ``delta**2 * (sqrt(1 + (r / delta)**2) - 1)``; inf for negative ``delta``.

    If both arguments are 0, the derivatives are NaN.""", "fsp.pseudo_huber(1.0, [0.0, 1.0]).round(6)",
    "array([0.      , 0.414214])")
exprel = row("exprel(x)", partial(prim.exprel, order=0),
    "The quotient ``(exp(x) - 1) / x``, 1 at 0. All derivatives are accurate near 0 too.",
    "fsp.exprel([0.0, 1.0]).round(6)", "array([1.      , 1.718282])")
cosm1 = row("cosm1(x)", prim.cosm1, "The difference ``cos(x) - 1``, accurate for small ``x``.",
    "(1e20 * fsp.cosm1(1e-10)).round(12)", "np.float64(-0.5)")
powm1 = row("powm1(x, y)", prim.powm1, "The difference ``x**y - 1``, accurate where the power is nearly 1.",
    "fsp.powm1(1.0, 5.0)", "np.float64(0.0)")
wrightomega = row("wrightomega(z)", prim.wrightomega,
    "Wright's omega: the solution w of ``w + log(w) = z``, real or complex. The derivative is ``w / (1 + w)``.",
    "fsp.wrightomega(1.0)", "np.float64(1.0)")
exp10 = row("exp10(x)", prim.exp10, "The power ``10**x``.", "fsp.exp10([0.0, 2.0])", "array([  1., 100.])")
sindg = row("sindg(x)", prim.sindg, "The sine of an angle in degrees; exact at multiples of 30.",
    "fsp.sindg([30.0, 180.0])", "array([ 0.5, -0. ])")
cosdg = row("cosdg(x)", prim.cosdg, "The cosine of an angle in degrees; exact at multiples of 30.",
    "fsp.cosdg([60.0, 90.0])", "array([ 0.5, -0. ])")
tandg = row("tandg(x)", prim.tandg, "The tangent of an angle in degrees.", "fsp.tandg(45.0)", "np.float64(1.0)")
cotdg = row("cotdg(x)", prim.cotdg, "The cotangent of an angle in degrees.", "fsp.cotdg(45.0)", "np.float64(1.0)")
radian = row("radian(d, m, s)",
    lambda d, m, s: _radian(*[widened(part, "radian") for part in (d, m, s)]),
    "The angle in radians of ``d`` degrees, ``m`` minutes and ``s`` seconds.",
    "fsp.radian(180.0, 0.0, 0.0)", "np.float64(3.141592653589793)")
# fmt: on


def lambertw(z: ArrayLike, k: int = 0, tol: float = 1e-8) -> Array:
    """Return Lambert's W: the solution w of ``w * exp(w) = z`` (DLMF 4.13). The result is complex.

    The derivative, ``exp(-w) / (1 + w)``, is infinite at the branch point ``-1 / e``. JAX has no such function.

    Args:
        z: an array, real or complex.
        k: the branch; 0 is the principal one. Branches 0 and -1 take real values.
        tol: the relative tolerance.

    Example:
        >>> fsp.lambertw(np.e).real.round(12)
        np.float64(1.0)
    """
    return prim.lambertw(as_value(z), k=operator.index(k), tol=float(tol))


def logsumexp(
    a: ArrayLike, axis: Axes = None, b: ArrayLike | None = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Return ``log(sum(b * exp(a)))`` along ``axis``, by default over all elements: ``funcgrad.numpy.logsumexp``.

    Example:
        >>> fsp.logsumexp([1000.0, 0.0])
        np.float64(1000.0)
    """
    return fnp.logsumexp(a, axis, b, keepdims, return_sign)


def softmax(x: ArrayLike, axis: Axes = None) -> Array:
    """Return ``exp(x) / sum(exp(x))`` along ``axis``, by default over all elements.

    Example:
        >>> fsp.softmax([[1000.0, 1000.0]])
        array([[0.5, 0.5]])
    """
    return fnp.softmax(x, axis)


def log_softmax(x: ArrayLike, axis: Axes = None) -> Array:
    """Return ``log(softmax(x, axis))``, exact where ``softmax`` underflows.

    Example:
        >>> fsp.log_softmax([0.0, 1000.0])
        array([-1000.,     0.])
    """
    return fnp.log_softmax(x, axis)
