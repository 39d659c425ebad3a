"""Products with logarithms, entropies, the logistic function, Box's and Cox's transform, Huber's losses."""

# mypy: disable-error-code="empty-body"
# Functions without a body are what their decorators make of them.

from __future__ import annotations

import operator
from functools import partial
from typing import Any

import funcgrad.numpy as fnp
from funcgrad.numpy.creation import as_value
from funcgrad.scipy.special.operations import convex as prim
from funcgrad.scipy.special.ufunc import ufunc
from funcgrad.typing import Array, ArrayLike, Axes

__all__ = [
    "xlogy",
    "xlog1py",
    "entr",
    "rel_entr",
    "kl_div",
    "expit",
    "log_expit",
    "logit",
    "boxcox",
    "boxcox1p",
    "inv_boxcox",
    "inv_boxcox1p",
    "huber",
    "pseudo_huber",
    "exprel",
    "cosm1",
    "powm1",
    "wrightomega",
    "exp10",
    "sindg",
    "cosdg",
    "tandg",
    "cotdg",
    "softplus",
    "logsumexp",
    "softmax",
    "log_softmax",
    "lambertw",
]


@ufunc(prim.xlogy)
def xlogy(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x * log(y)``, 0 where ``x`` is 0 and ``y`` is not NaN.

    At ``x = y = 0`` the derivative in ``y`` is NaN, that in ``x`` is -inf.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.xlogy([0.0, 2.0], [0.0, 1.0])
        array([0., 0.])
    """


@ufunc(prim.xlog1py)
def xlog1py(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x * log1p(y)``, 0 where ``x`` is 0 and ``y`` is not NaN.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.xlog1py(2.0, 1e-30)
        np.float64(2e-30)
    """


@ufunc(prim.entr)
def entr(x: ArrayLike, /) -> Array:
    """``-x * log(x)``, 0 at 0, -inf for negative ``x``. The derivative at 0 is inf.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.entr([0.0, 0.5, 1.0]).round(6)
        array([ 0.      ,  0.346574, -0.      ])
    """


@ufunc(prim.rel_entr)
def rel_entr(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x * log(x / y)``, the relative entropy; 0 where ``x`` is 0, inf where ``x`` or ``y`` is negative.

    At ``x = 0 < y`` the derivative in ``x`` is -inf.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.rel_entr(0.5, 0.25).round(6)
        np.float64(0.346574)
    """


@ufunc(prim.kl_div)
def kl_div(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x * log(x / y) - x + y``, a term of the Kullback-Leibler divergence, not negative.

    At ``x = 0 < y`` the derivative in ``x`` is -inf.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.kl_div(0.5, 0.5)
        np.float64(0.0)
    """


@ufunc(prim.expit)
def expit(x: ArrayLike, /) -> Array:
    """The logistic function, ``1 / (1 + exp(-x))``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.expit([-1000.0, 0.0, 1000.0])
        array([0. , 0.5, 1. ])
    """


@ufunc(prim.log_expit)
def log_expit(x: ArrayLike, /) -> Array:
    """``log(expit(x))``, without overflow.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.log_expit([-1000.0, 0.0]).round(6)
        array([-1.00000e+03, -6.93147e-01])
    """


@ufunc(prim.logit)
def logit(x: ArrayLike, /) -> Array:
    """``log(x / (1 - x))``, the inverse of ``expit``: infinite at 0 and 1, NaN outside.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.logit([0.25, 0.5]).round(6)
        array([-1.098612,  0.      ])
    """


@ufunc(prim.boxcox)
def boxcox(x: ArrayLike, lmbda: ArrayLike, /) -> Array:
    """``(x**lmbda - 1) / lmbda``, which is ``log(x)`` for ``lmbda = 0``; NaN for negative ``x``.

    Differentiable in both arguments, at ``lmbda = 0`` too.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> import numpy as np
        >>> from funcgrad import grad
        >>> grad(fsp.boxcox, 1)(np.e, 0.0).round(12)
        np.float64(0.5)
    """


@ufunc(prim.boxcox1p)
def boxcox1p(x: ArrayLike, lmbda: ArrayLike, /) -> Array:
    """``boxcox(1 + x, lmbda)``, accurate for small ``x``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.boxcox1p(1e-30, 0.0)
        np.float64(1e-30)
    """


@ufunc(prim.inv_boxcox)
def inv_boxcox(y: ArrayLike, lmbda: ArrayLike, /) -> Array:
    """The inverse of ``boxcox`` in its first argument: ``(1 + lmbda * y)**(1 / lmbda)``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.inv_boxcox(1.5, 2.0)
        np.float64(2.0)
    """


@ufunc(prim.inv_boxcox1p)
def inv_boxcox1p(y: ArrayLike, lmbda: ArrayLike, /) -> Array:
    """The inverse of ``boxcox1p`` in its first argument.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.inv_boxcox1p(1.5, 2.0)
        np.float64(1.0)
    """


@ufunc(prim.huber)
def huber(delta: ArrayLike, r: ArrayLike, /) -> Array:
    """Huber's loss: ``r**2 / 2`` up to ``abs(r) = delta``, straight lines beyond; inf for negative ``delta``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.huber(1.0, [0.5, 3.0])
        array([0.125, 2.5  ])
    """


@ufunc(prim.pseudo_huber)
def pseudo_huber(delta: ArrayLike, r: ArrayLike, /) -> Array:
    """``delta**2 * (sqrt(1 + (r / delta)**2) - 1)``, Huber's loss made smooth; inf for negative ``delta``.

    Where both are 0 the derivatives are NaN.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.pseudo_huber(1.0, [0.0, 1.0]).round(6)
        array([0.      , 0.414214])
    """


@ufunc(partial(prim.exprel, order=0))
def exprel(x: ArrayLike, /) -> Array:
    """``(exp(x) - 1) / x``, 1 at 0. All derivatives are accurate near 0 too.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.exprel([0.0, 1.0]).round(6)
        array([1.      , 1.718282])
    """


@ufunc(prim.cosm1)
def cosm1(x: ArrayLike, /) -> Array:
    """``cos(x) - 1``, accurate for small ``x``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> (1e20 * fsp.cosm1(1e-10)).round(12)
        np.float64(-0.5)
    """


@ufunc(prim.powm1)
def powm1(x: ArrayLike, y: ArrayLike, /) -> Array:
    """``x**y - 1``, accurate where the power is nearly 1.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.powm1(1.0, 5.0)
        np.float64(0.0)
    """


@ufunc(prim.wrightomega)
def wrightomega(z: ArrayLike, /) -> Array:
    """Wright's omega: the solution w of ``w + log(w) = z``; real or complex. The derivative is ``w / (1 + w)``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.wrightomega(1.0)
        np.float64(1.0)
    """


@ufunc(prim.exp10)
def exp10(x: ArrayLike, /) -> Array:
    """``10**x``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.exp10([0.0, 2.0])
        array([  1., 100.])
    """


@ufunc(prim.sindg)
def sindg(x: ArrayLike, /) -> Array:
    """The sine of an angle in degrees; exact at multiples of 30.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.sindg([30.0, 180.0])
        array([ 0.5, -0. ])
    """


@ufunc(prim.cosdg)
def cosdg(x: ArrayLike, /) -> Array:
    """The cosine of an angle in degrees; exact at multiples of 30.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.cosdg([60.0, 90.0])
        array([ 0.5, -0. ])
    """


@ufunc(prim.tandg)
def tandg(x: ArrayLike, /) -> Array:
    """The tangent of an angle in degrees.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.tandg(45.0)
        np.float64(1.0)
    """


@ufunc(prim.cotdg)
def cotdg(x: ArrayLike, /) -> Array:
    """The cotangent of an angle in degrees.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.cotdg(45.0)
        np.float64(1.0)
    """


def softplus(x: ArrayLike, **kwargs: Any) -> Array:
    """``log(1 + exp(x))``, without overflow: ``logaddexp(0, x)``, with the options of that.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.softplus([0.0, 1000.0]).round(6)
        array([6.93147e-01, 1.00000e+03])
    """
    return fnp.logaddexp(0, x, **kwargs)


def lambertw(z: ArrayLike, k: int = 0, tol: float = 1e-8) -> Array:
    """Lambert's W: the solution w of ``w * exp(w) = z`` (DLMF 4.13). The result is complex.

    The derivative, ``exp(-w) / (1 + w)``, is infinite at the branch point ``-1 / e``. JAX has no such function.

    Args:
        z: an array, real or complex.
        k: which branch; 0 is the principal one. Branches 0 and -1 take real values.
        tol: how accurate it is to be.

    Example:
        >>> import numpy as np
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.lambertw(np.e).real.round(12)
        np.float64(1.0)
    """
    return prim.lambertw(as_value(z), k=operator.index(k), tol=tol)


def logsumexp(
    a: ArrayLike,
    axis: Axes = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Any:
    """``log(sum(b * exp(a)))`` along ``axis``, by default of all elements: ``funcgrad.numpy.logsumexp``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.logsumexp([1000.0, 0.0])
        np.float64(1000.0)
    """
    return fnp.logsumexp(a, axis, b, keepdims, return_sign)


def softmax(x: ArrayLike, axis: Axes = None) -> Array:
    """``exp(x) / sum(exp(x))`` along ``axis``, by default over all elements, unlike ``funcgrad.numpy.softmax``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.softmax([[1000.0, 1000.0]])
        array([[0.5, 0.5]])
    """
    return fnp.softmax(x, axis)


def log_softmax(x: ArrayLike, axis: Axes = None) -> Array:
    """``log(softmax(x, axis))``, exact where that underflows.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.log_softmax([0.0, 1000.0])
        array([-1000.,     0.])
    """
    return fnp.log_softmax(x, axis)
