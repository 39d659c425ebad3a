"""Distribution functions under the names of the Cephes library, and their inverses.

Functions of continuous distributions are differentiable in all arguments. Counts, of binomial and Poisson
distributions, are whole numbers; a derivative in a count raises. JAX arrays: distribution functions, not inverses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.kinds.rules import Operation
from funcgrad.scipy.special.operations import distributions as prim
from funcgrad.scipy.special.operations import incomplete, noncentral
from funcgrad.scipy.special.ufunc import table

__all__ = [
    "chdtr", "chdtrc", "chdtri", "chdtriv", "gdtr", "gdtrc", "gdtria", "gdtrib", "gdtrix", "pdtr", "pdtrc", "pdtri",
    "pdtrik", "bdtr", "bdtrc", "bdtri", "nbdtr", "nbdtrc", "nbdtri", "fdtr", "fdtrc", "fdtri", "fdtridfd", "btdtria",
    "btdtrib", "bdtrik", "bdtrin", "kolmogi", "kolmogorov", "nbdtrik", "nbdtrin", "nrdtrimn", "nrdtrisd", "tklmbda",
    "smirnov", "smirnovi", "stdtr", "stdtrit", "stdtridf", "chndtr", "chndtridf", "chndtrinc", "chndtrix", "ncfdtr",
    "ncfdtri", "ncfdtridfd", "ncfdtridfn", "ncfdtrinc", "nctdtr", "nctdtridf", "nctdtrinc", "nctdtrit",
]  # fmt: skip

row = table(__name__)


def _x_last(operation: Operation) -> Callable[..., Any]:
    """Return ``operation`` with the arguments in SciPy's order."""
    return lambda *args: operation(args[-1], *args[:-1])


# fmt: off
chdtr = row("chdtr(v, x)", prim.chdtr,
    "The chi-square distribution function with ``v`` degrees of freedom at ``x``.", "fsp.chdtr(2.0, 3.0).round(6)",
    "np.float64(0.77687)")
chdtrc = row("chdtrc(v, x)", prim.chdtrc, "The survival function ``1 - chdtr(v, x)``, without cancellation.",
    "fsp.chdtrc(2.0, 3.0).round(6)", "np.float64(0.22313)")
chdtri = row("chdtri(v, p)", prim.chdtri, "The inverse of ``chdtrc`` in ``x``.", "fsp.chdtri(2.0, 0.05).round(6)",
    "np.float64(5.991465)")
chdtriv = row("chdtriv(p, x)", prim.chdtriv, "The inverse of ``chdtr`` in ``v``.", "fsp.chdtriv(0.5, 2.0).round(6)",
    "np.float64(2.6285)")
gdtr = row("gdtr(a, b, x)", prim.gdtr, "The gamma distribution function with rate ``a`` and shape ``b`` at ``x``.",
    "fsp.gdtr(2.0, 1.0, 1.0).round(6)", "np.float64(0.864665)")
gdtrc = row("gdtrc(a, b, x)", prim.gdtrc, "The survival function ``1 - gdtr(a, b, x)``, without cancellation.",
    "fsp.gdtrc(2.0, 1.0, 1.0).round(6)", "np.float64(0.135335)")
gdtria = row("gdtria(p, b, x)", prim.gdtria, "The inverse of ``gdtr`` in ``a``.", "fsp.gdtria(0.5, 1.0, 1.0).round(6)",
    "np.float64(0.693147)")
gdtrib = row("gdtrib(a, p, x)", prim.gdtrib, "The inverse of ``gdtr`` in ``b``.", "fsp.gdtrib(2.0, 0.5, 1.0).round(6)",
    "np.float64(2.323489)")
gdtrix = row("gdtrix(a, b, p)", prim.gdtrix, "The inverse of ``gdtr`` in ``x``.", "fsp.gdtrix(2.0, 1.0, 0.5).round(6)",
    "np.float64(0.346574)")
pdtr = row("pdtr(k, m)", prim.pdtr,
    "The probability that a Poisson variable of mean ``m`` is at most ``k``; differentiable in ``m``.",
    "fsp.pdtr(1, 2.0).round(6)", "np.float64(0.406006)")
pdtrc = row("pdtrc(k, m)", prim.pdtrc, "The survival function ``1 - pdtr(k, m)``, without cancellation.",
    "fsp.pdtrc(1, 2.0).round(6)", "np.float64(0.593994)")
pdtri = row("pdtri(k, y)", prim.pdtri, "The inverse of ``pdtr`` in ``m``.", "fsp.pdtri(1, 0.5).round(6)",
    "np.float64(1.678347)")
pdtrik = row("pdtrik(p, m)", prim.pdtrik, "The inverse of ``pdtr`` in ``k``, continued to real ``k``.",
    "fsp.pdtrik(0.5, 2.0).round(6)", "np.float64(1.323489)")
bdtr = row("bdtr(k, n, p)", prim.bdtr,
    "The probability of at most ``k`` events in ``n`` trials, each of probability ``p``.", "fsp.bdtr(1, 3, 0.5)",
    "np.float64(0.5)")
bdtrc = row("bdtrc(k, n, p)", prim.bdtrc, "The survival function ``1 - bdtr(k, n, p)``, without cancellation.",
    "fsp.bdtrc(1, 3, 0.5)", "np.float64(0.5)")
bdtri = row("bdtri(k, n, y)", prim.bdtri, "The inverse of ``bdtr`` in ``p``.", "fsp.bdtri(1, 3, 0.5).round(6)",
    "np.float64(0.5)")
nbdtr = row("nbdtr(k, n, p)", prim.nbdtr,
    "The probability of at most ``k`` failures before the ``n``-th success, each of probability ``p``.",
    "fsp.nbdtr(1, 2, 0.5)", "np.float64(0.5)")
nbdtrc = row("nbdtrc(k, n, p)", prim.nbdtrc, "The survival function ``1 - nbdtr(k, n, p)``, without cancellation.",
    "fsp.nbdtrc(1, 2, 0.5)", "np.float64(0.5)")
nbdtri = row("nbdtri(k, n, y)", prim.nbdtri, "The inverse of ``nbdtr`` in ``p``.", "fsp.nbdtri(1, 2, 0.5).round(6)",
    "np.float64(0.5)")
fdtr = row("fdtr(dfn, dfd, x)", prim.fdtr,
    "The F distribution function with ``dfn`` and ``dfd`` degrees of freedom at ``x``.",
    "fsp.fdtr(2.0, 4.0, 1.0).round(6)", "np.float64(0.555556)")
fdtrc = row("fdtrc(dfn, dfd, x)", prim.fdtrc, "The survival function ``1 - fdtr(dfn, dfd, x)``, without cancellation.",
    "fsp.fdtrc(2.0, 4.0, 1.0).round(6)", "np.float64(0.444444)")
fdtri = row("fdtri(dfn, dfd, p)", prim.fdtri, "The inverse of ``fdtr`` in ``x``.", "fsp.fdtri(2.0, 4.0, 0.5).round(6)",
    "np.float64(0.828427)")
fdtridfd = row("fdtridfd(dfn, p, x)", prim.fdtridfd, "The inverse of ``fdtr`` in ``dfd``.",
    "fsp.fdtridfd(2.0, 0.5, 0.8284271247461903).round(6)", "np.float64(4.0)")
btdtria = row("btdtria(p, b, x)", incomplete.btdtria, "The inverse of ``betainc`` in ``a``.",
    "fsp.btdtria(0.5, 2.0, 0.5).round(6)", "np.float64(2.0)")
btdtrib = row("btdtrib(a, p, x)", incomplete.btdtrib, "The inverse of ``betainc`` in ``b``.",
    "fsp.btdtrib(2.0, 0.5, 0.5).round(6)", "np.float64(2.0)")
stdtr = row("stdtr(df, t)", prim.stdtr,
    """Student's distribution function at ``t``, differentiable in the degrees of freedom ``df`` too, to any order.

    See ``funcgrad.scipy.special.operations.distributions`` for the formulas.""",
    "fsp.stdtr(3.0, 1.0).round(6), grad(fsp.stdtr)(3.0, 1.0).round(6)", "(np.float64(0.804499), np.float64(0.01111))")
stdtrit = row("stdtrit(df, p)", prim.stdtrit,
    "The inverse of ``stdtr`` in ``t``: the quantile function of Student's distribution.",
    "fsp.stdtrit(3.0, 0.975).round(6)", "np.float64(3.182446)")
stdtridf = row("stdtridf(p, t)", prim.stdtridf, "The inverse of ``stdtr`` in ``df``.",
    "fsp.stdtridf(0.975, 3.182446305284263).round(6)", "np.float64(3.0)")
bdtrik = row("bdtrik(y, n, p)", prim.bdtrik, "The inverse of ``bdtr`` in ``k``, continued to real ``k``.",
    "fsp.bdtrik(0.5, 3.0, 0.5).round(6)", "np.float64(1.0)")
kolmogorov = row("kolmogorov(y)", lambda y: prim.kolmogorov(y, order=0),
    "The limiting probability, for large sample sizes n, that ``sqrt(n)`` times Kolmogorov's statistic exceeds ``y``.",
    "grad(fsp.kolmogorov)(1.0).round(10)", "np.float64(-1.0719485584)")
kolmogi = row("kolmogi(p)", prim.kolmogi, "The inverse of ``kolmogorov``.", "fsp.kolmogi(0.5).round(6)",
    "np.float64(0.827574)")
smirnov = row("smirnov(n, d)", lambda n, d: prim.smirnov(n, d, order=0),
    """The probability that Smirnov's one-sided statistic of ``n`` numbers exceeds ``d``.

    Raises:
        NotDifferentiableError: a derivative in n is requested.""", "grad(fsp.smirnov, 1)(2, 0.25)", "np.float64(-1.5)")
smirnovi = row("smirnovi(n, p)", prim.smirnovi, "The inverse of ``smirnov`` in ``d``.",
    "fsp.smirnovi(2, 0.5).round(6)", "np.float64(0.366025)")
bdtrin = row("bdtrin(k, y, p)", prim.bdtrin, "The inverse of ``bdtr`` in ``n``, continued to real ``n``.",
    "fsp.bdtrin(1.0, 0.5, 0.5).round(6)", "np.float64(3.0)")
nbdtrik = row("nbdtrik(y, n, p)", prim.nbdtrik, "The inverse of ``nbdtr`` in ``k``, continued to real ``k``.",
    "fsp.nbdtrik(0.5, 2.0, 0.5).round(6)", "np.float64(1.0)")
nbdtrin = row("nbdtrin(k, y, p)", prim.nbdtrin, "The inverse of ``nbdtr`` in ``n``, continued to real ``n``.",
    "fsp.nbdtrin(1.0, 0.5, 0.5).round(6)", "np.float64(2.0)")
nrdtrimn = row("nrdtrimn(p, std, x)", prim.nrdtrimn,
    "The mean of the normal distribution with deviation ``std`` whose distribution function at ``x`` is ``p``.",
    "fsp.nrdtrimn(0.5, 2.0, 3.0)", "np.float64(3.0)")
nrdtrisd = row("nrdtrisd(mn, p, x)", prim.nrdtrisd,
    "The deviation of the normal distribution with mean ``mn`` whose distribution function at ``x`` is ``p``.",
    "fsp.nrdtrisd(1.0, 0.975, 3.0).round(6)", "np.float64(1.020427)")
tklmbda = row("tklmbda(x, lmbda)", prim.tklmbda,
    "The distribution function of Tukey's lambda distribution with shape ``lmbda`` at ``x``.", "fsp.tklmbda(0.5, 1.0)",
    "np.float64(0.75)")
chndtr = row("chndtr(x, df, nc)", noncentral.chndtr,
    """The noncentral chi-square distribution function at ``x``.

    The distribution has ``df`` degrees of freedom and noncentrality ``nc``. See
    ``funcgrad.scipy.special.operations.noncentral`` for the derivatives of all noncentral distribution functions.""",
    "fsp.chndtr(2.0, 3.0, 1.0).round(6), grad(fsp.chndtr, 2)(2.0, 3.0, 1.0).round(6)",
    "(np.float64(0.308253), np.float64(-0.101955))")
chndtrix = row("chndtrix(p, df, nc)", noncentral.chndtrix, "The inverse of ``chndtr`` in ``x``.",
    "fsp.chndtrix(0.5, 3.0, 1.0).round(6)", "np.float64(3.213009)")
chndtridf = row("chndtridf(x, p, nc)", noncentral.chndtridf, "The inverse of ``chndtr`` in ``df``.",
    "fsp.chndtridf(2.0, 0.5, 1.0).round(6)", "np.float64(1.831523)")
chndtrinc = row("chndtrinc(x, df, p)", noncentral.chndtrinc, "The inverse of ``chndtr`` in ``nc``.",
    "fsp.chndtrinc(4.0, 3.0, 0.5).round(6)", "np.float64(1.854459)")
ncfdtr = row("ncfdtr(dfn, dfd, nc, f)", _x_last(noncentral.ncfdtr),
    """The noncentral F distribution function at ``f``.

    The distribution has ``dfn`` and ``dfd`` degrees of freedom and noncentrality ``nc``.""",
    "fsp.ncfdtr(2.0, 4.0, 1.0, 1.5).round(6)", "np.float64(0.545533)")
ncfdtri = row("ncfdtri(dfn, dfd, nc, p)", _x_last(noncentral.ncfdtri), "The inverse of ``ncfdtr`` in ``f``.",
    "fsp.ncfdtri(2.0, 4.0, 1.0, 0.5).round(6)", "np.float64(1.291318)")
ncfdtridfn = row("ncfdtridfn(p, dfd, nc, f)", _x_last(noncentral.ncfdtridfn), "The inverse of ``ncfdtr`` in ``dfn``.",
    "fsp.ncfdtridfn(0.61, 6.0, 0.5, 1.2).round(6)", "np.float64(0.52866)")
ncfdtridfd = row("ncfdtridfd(dfn, p, nc, f)", _x_last(noncentral.ncfdtridfd), "The inverse of ``ncfdtr`` in ``dfd``.",
    "fsp.ncfdtridfd(2.0, 0.5, 1.0, 1.3).round(6)", "np.float64(3.85496)")
ncfdtrinc = row("ncfdtrinc(dfn, dfd, p, f)", _x_last(noncentral.ncfdtrinc), "The inverse of ``ncfdtr`` in ``nc``.",
    "fsp.ncfdtrinc(2.0, 4.0, 0.5, 1.5).round(6)", "np.float64(1.406371)")
nctdtr = row("nctdtr(df, nc, t)", _x_last(noncentral.nctdtr),
    """Student's noncentral distribution function at ``t``.

    The distribution has ``df`` degrees of freedom and noncentrality ``nc``.""",
    "fsp.nctdtr(3.0, 1.0, 1.5).round(6)", "np.float64(0.625756)")
nctdtrit = row("nctdtrit(df, nc, p)", _x_last(noncentral.nctdtrit), "The inverse of ``nctdtr`` in ``t``.",
    "fsp.nctdtrit(3.0, 1.0, 0.5).round(6)", "np.float64(1.091153)")
nctdtridf = row("nctdtridf(p, nc, t)", _x_last(noncentral.nctdtridf), "The inverse of ``nctdtr`` in ``df``.",
    "fsp.nctdtridf(0.6, 1.0, 1.4).round(6)", "np.float64(3.171933)")
nctdtrinc = row("nctdtrinc(df, p, t)", _x_last(noncentral.nctdtrinc), "The inverse of ``nctdtr`` in ``nc``.",
    "fsp.nctdtrinc(3.0, 0.5, 1.5).round(6)", "np.float64(1.369752)")
# fmt: on
