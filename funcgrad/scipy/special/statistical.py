"""Distribution functions under the names of Cephes, and their inverses.

Those of continuous distributions are differentiable in all arguments; counts, of binomial and Poisson distributions,
are whole numbers, and asking for a derivative in one raises. JAX arrays: distribution functions, not their inverses.
"""

# mypy: disable-error-code="empty-body"
# Functions without a body are what their decorators make of them.

from __future__ import annotations

from funcgrad.scipy.special.operations import distributions as prim
from funcgrad.scipy.special.operations import student
from funcgrad.scipy.special.ufunc import ufunc
from funcgrad.typing import Array, ArrayLike

__all__ = [
    "chdtr",
    "chdtrc",
    "chdtri",
    "chdtriv",
    "gdtr",
    "gdtrc",
    "gdtria",
    "gdtrib",
    "gdtrix",
    "pdtr",
    "pdtrc",
    "pdtri",
    "pdtrik",
    "bdtr",
    "bdtrc",
    "bdtri",
    "nbdtr",
    "nbdtrc",
    "nbdtri",
    "fdtr",
    "fdtrc",
    "fdtri",
    "fdtridfd",
    "btdtria",
    "btdtrib",
    "bdtrin",
    "nbdtrik",
    "nbdtrin",
    "nrdtrimn",
    "nrdtrisd",
    "tklmbda",
    "stdtr",
    "stdtrit",
    "stdtridf",
]


@ufunc(prim.chdtr)
def chdtr(v: ArrayLike, x: ArrayLike, /) -> Array:
    """The distribution function of chi-square with ``v`` degrees of freedom, at ``x``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.chdtr(2.0, 3.0).round(6)
        np.float64(0.77687)
    """


@ufunc(prim.chdtrc)
def chdtrc(v: ArrayLike, x: ArrayLike, /) -> Array:
    """``1 - chdtr(v, x)``, accurate where that vanishes.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.chdtrc(2.0, 3.0).round(6)
        np.float64(0.22313)
    """


@ufunc(prim.chdtri)
def chdtri(v: ArrayLike, p: ArrayLike, /) -> Array:
    """The inverse of ``chdtrc`` in ``x``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.chdtri(2.0, 0.05).round(6)
        np.float64(5.991465)
    """


@ufunc(prim.chdtriv)
def chdtriv(p: ArrayLike, x: ArrayLike, /) -> Array:
    """The inverse of ``chdtr`` in ``v``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.chdtriv(0.5, 2.0).round(6)
        np.float64(2.6285)
    """


@ufunc(prim.gdtr)
def gdtr(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """The distribution function of a gamma distribution with rate ``a`` and shape ``b``, at ``x``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.gdtr(2.0, 1.0, 1.0).round(6)
        np.float64(0.864665)
    """


@ufunc(prim.gdtrc)
def gdtrc(a: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """``1 - gdtr(a, b, x)``, accurate where that vanishes.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.gdtrc(2.0, 1.0, 1.0).round(6)
        np.float64(0.135335)
    """


@ufunc(prim.gdtria)
def gdtria(p: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """The inverse of ``gdtr`` in ``a``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.gdtria(0.5, 1.0, 1.0).round(6)
        np.float64(0.693147)
    """


@ufunc(prim.gdtrib)
def gdtrib(a: ArrayLike, p: ArrayLike, x: ArrayLike, /) -> Array:
    """The inverse of ``gdtr`` in ``b``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.gdtrib(2.0, 0.5, 1.0).round(6)
        np.float64(2.323489)
    """


@ufunc(prim.gdtrix)
def gdtrix(a: ArrayLike, b: ArrayLike, p: ArrayLike, /) -> Array:
    """The inverse of ``gdtr`` in ``x``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.gdtrix(2.0, 1.0, 0.5).round(6)
        np.float64(0.346574)
    """


@ufunc(prim.pdtr)
def pdtr(k: ArrayLike, m: ArrayLike, /) -> Array:
    """The probability that a Poisson variable of mean ``m`` is at most ``k``; differentiable in ``m``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.pdtr(1, 2.0).round(6)
        np.float64(0.406006)
    """


@ufunc(prim.pdtrc)
def pdtrc(k: ArrayLike, m: ArrayLike, /) -> Array:
    """``1 - pdtr(k, m)``, accurate where that vanishes.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.pdtrc(1, 2.0).round(6)
        np.float64(0.593994)
    """


@ufunc(prim.pdtri)
def pdtri(k: ArrayLike, y: ArrayLike, /) -> Array:
    """The inverse of ``pdtr`` in ``m``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.pdtri(1, 0.5).round(6)
        np.float64(1.678347)
    """


@ufunc(prim.pdtrik)
def pdtrik(p: ArrayLike, m: ArrayLike, /) -> Array:
    """The inverse of ``pdtr`` in ``k``, which is a real number here.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.pdtrik(0.5, 2.0).round(6)
        np.float64(1.323489)
    """


@ufunc(prim.bdtr)
def bdtr(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Array:
    """The probability of at most ``k`` events in ``n`` trials, each of probability ``p``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.bdtr(1, 3, 0.5)
        np.float64(0.5)
    """


@ufunc(prim.bdtrc)
def bdtrc(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Array:
    """``1 - bdtr(k, n, p)``, accurate where that vanishes.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.bdtrc(1, 3, 0.5)
        np.float64(0.5)
    """


@ufunc(prim.bdtri)
def bdtri(k: ArrayLike, n: ArrayLike, y: ArrayLike, /) -> Array:
    """The inverse of ``bdtr`` in ``p``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.bdtri(1, 3, 0.5).round(6)
        np.float64(0.5)
    """


@ufunc(prim.nbdtr)
def nbdtr(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Array:
    """The probability of at most ``k`` failures before the ``n``-th success, each of probability ``p``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.nbdtr(1, 2, 0.5)
        np.float64(0.5)
    """


@ufunc(prim.nbdtrc)
def nbdtrc(k: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Array:
    """``1 - nbdtr(k, n, p)``, accurate where that vanishes.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.nbdtrc(1, 2, 0.5)
        np.float64(0.5)
    """


@ufunc(prim.nbdtri)
def nbdtri(k: ArrayLike, n: ArrayLike, y: ArrayLike, /) -> Array:
    """The inverse of ``nbdtr`` in ``p``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.nbdtri(1, 2, 0.5).round(6)
        np.float64(0.5)
    """


@ufunc(prim.fdtr)
def fdtr(dfn: ArrayLike, dfd: ArrayLike, x: ArrayLike, /) -> Array:
    """The F distribution function with ``dfn`` and ``dfd`` degrees of freedom, at ``x``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.fdtr(2.0, 4.0, 1.0).round(6)
        np.float64(0.555556)
    """


@ufunc(prim.fdtrc)
def fdtrc(dfn: ArrayLike, dfd: ArrayLike, x: ArrayLike, /) -> Array:
    """``1 - fdtr(dfn, dfd, x)``, accurate where that vanishes.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.fdtrc(2.0, 4.0, 1.0).round(6)
        np.float64(0.444444)
    """


@ufunc(prim.fdtri)
def fdtri(dfn: ArrayLike, dfd: ArrayLike, p: ArrayLike, /) -> Array:
    """The inverse of ``fdtr`` in ``x``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.fdtri(2.0, 4.0, 0.5).round(6)
        np.float64(0.828427)
    """


@ufunc(prim.fdtridfd)
def fdtridfd(dfn: ArrayLike, p: ArrayLike, x: ArrayLike, /) -> Array:
    """The inverse of ``fdtr`` in ``dfd``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.fdtridfd(2.0, 0.5, 0.8284271247461903).round(6)
        np.float64(4.0)
    """


@ufunc(prim.btdtria)
def btdtria(p: ArrayLike, b: ArrayLike, x: ArrayLike, /) -> Array:
    """The inverse of ``betainc`` in ``a``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.btdtria(0.5, 2.0, 0.5).round(6)
        np.float64(2.0)
    """


@ufunc(prim.btdtrib)
def btdtrib(a: ArrayLike, p: ArrayLike, x: ArrayLike, /) -> Array:
    """The inverse of ``betainc`` in ``b``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.btdtrib(2.0, 0.5, 0.5).round(6)
        np.float64(2.0)
    """


@ufunc(student.stdtr)
def stdtr(df: ArrayLike, t: ArrayLike, /) -> Array:
    """Student's distribution function at ``t``, differentiable in the degrees of freedom ``df`` too, to any order.

    How is told in ``funcgrad.scipy.special.operations.student``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> from funcgrad import grad
        >>> fsp.stdtr(3.0, 1.0).round(6), grad(fsp.stdtr)(3.0, 1.0).round(6)
        (np.float64(0.804499), np.float64(0.01111))
    """


@ufunc(student.stdtrit)
def stdtrit(df: ArrayLike, p: ArrayLike, /) -> Array:
    """The inverse of ``stdtr`` in ``t``: the quantile function of Student's distribution.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.stdtrit(3.0, 0.975).round(6)
        np.float64(3.182446)
    """


@ufunc(student.stdtridf)
def stdtridf(p: ArrayLike, t: ArrayLike, /) -> Array:
    """The inverse of ``stdtr`` in ``df``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.stdtridf(0.975, 3.182446305284263).round(6)
        np.float64(3.0)
    """


@ufunc(prim.bdtrin)
def bdtrin(k: ArrayLike, y: ArrayLike, p: ArrayLike, /) -> Array:
    """The inverse of ``bdtr`` in ``n``, which is a real number here.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.bdtrin(1.0, 0.5, 0.5).round(6)
        np.float64(3.0)
    """


@ufunc(prim.nbdtrik)
def nbdtrik(y: ArrayLike, n: ArrayLike, p: ArrayLike, /) -> Array:
    """The inverse of ``nbdtr`` in ``k``, which is a real number here.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.nbdtrik(0.5, 2.0, 0.5).round(6)
        np.float64(1.0)
    """


@ufunc(prim.nbdtrin)
def nbdtrin(k: ArrayLike, y: ArrayLike, p: ArrayLike, /) -> Array:
    """The inverse of ``nbdtr`` in ``n``, which is a real number here.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.nbdtrin(1.0, 0.5, 0.5).round(6)
        np.float64(2.0)
    """


@ufunc(prim.nrdtrimn)
def nrdtrimn(p: ArrayLike, std: ArrayLike, x: ArrayLike, /) -> Array:
    """The mean of the normal distribution of deviation ``std`` whose distribution function is ``p`` at ``x``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.nrdtrimn(0.5, 2.0, 3.0)
        np.float64(3.0)
    """


@ufunc(prim.nrdtrisd)
def nrdtrisd(mn: ArrayLike, p: ArrayLike, x: ArrayLike, /) -> Array:
    """The deviation of the normal distribution of mean ``mn`` whose distribution function is ``p`` at ``x``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.nrdtrisd(1.0, 0.975, 3.0).round(6)
        np.float64(1.020427)
    """


@ufunc(prim.tklmbda)
def tklmbda(x: ArrayLike, lmbda: ArrayLike, /) -> Array:
    """The distribution function of Tukey's lambda distribution of shape ``lmbda``, at ``x``.

    Example:
        >>> import funcgrad.scipy.special as fsp
        >>> fsp.tklmbda(0.5, 1.0)
        np.float64(0.75)
    """
