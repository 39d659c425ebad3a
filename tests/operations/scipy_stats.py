"""Rows for SciPy's distributions: log densities, and other functions where JAX has them."""

import jax.numpy as jnp
import jax.scipy.stats as of_jax
import numpy as np
import scipy.stats

from funcgrad.scipy import stats
from operations.spec import Sample, op

S = Sample
NO_JAX = "JAX has no such function, or no derivative in all of its parameters"
LOC, SCALE = 0.4, 1.3


def row(name, function, x, *shapes, jax="same", frozen=(), standard=(LOC, SCALE), **options):
    """Return a row for one function of a distribution, at points of its standard form."""

    def of(lib):
        return lambda *args: getattr(getattr(lib, name), function)(*args)

    theirs = of(of_jax) if jax == "same" else jax
    moved = np.array(x) * standard[-1] + standard[0] if len(standard) == 2 else np.array(x)
    return op(
        f"scipy.stats.{name}",
        S((moved, *shapes, *standard), frozen=frozen),
        fun=of(stats),
        numpy=of(scipy.stats),
        jax=theirs,
        **{"reason": "" if theirs else NO_JAX, **options},
    )


def alone(name, function, x, *shapes, **options):
    return row(name, function, x, *shapes, jax=None, **options)


def scaled(name):
    """Return JAX's Gumbel density, rescaled: its derivative in the scale raises an internal error."""
    return lambda x, loc, scale: getattr(of_jax, name).logpdf((x - loc) / scale) - jnp.log(scale)


DOUBLE = np.zeros(())
COV = np.array([[2.0, 0.3], [0.3, 1.5]])


def symmetric(a):
    return (a + a.T) / 2


def vectors(name, of, *args, jax="same", **options):
    """Return a row for a distribution of vectors, computed by ``of(library, *args)``."""
    return op(
        f"scipy.stats.{name}",
        S(args, **options),
        fun=lambda *a: of(stats, *a),
        numpy=lambda *a: of(scipy.stats, *a),
        jax=(lambda *a: of(of_jax, *a)) if jax else None,
        reason="" if jax else NO_JAX,
    )


OPS = [
    row("beta", "logpdf", [0.2, 0.7], 2.5, 0.7),
    row("cauchy", "logpdf", [-0.7, 2.0]),
    row("chi2", "logpdf", [0.3, 2.0], 3.4),
    row("expon", "logpdf", [0.3, 2.0]),
    row("gamma", "logpdf", [0.3, 2.0], 2.6),
    row("gamma", "cdf", [0.3, 2.0, 4.0], 2.6, jax=None),
    row("gennorm", "logpdf", [-0.7, 2.0], 1.6, standard=()),
    row("gumbel_l", "logpdf", [-0.7, 2.0], jax=scaled("gumbel_l")),
    row("gumbel_r", "logpdf", [-0.7, 2.0], jax=scaled("gumbel_r")),
    row("laplace", "logpdf", [-0.7, 2.0]),
    row("laplace", "cdf", [-0.7, 0.3, 2.0]),
    row("logistic", "logpdf", [-0.7, 2.0]),
    row("norm", "logpdf", [-0.7, 2.0]),
    row("norm", "logsf", [-0.7, 0.3, 2.0]),
    row("norm", "ppf", [0.1, 0.3, 0.6, 0.8], standard=()),
    row("pareto", "logpdf", [1.3, 2.0], 2.2),
    row("t", "logpdf", [-0.7, 4.0], 1.7),
    row("truncnorm", "logpdf", [-0.7, 0.4], -1.2, 2.5),
    row("truncnorm", "logcdf", [-0.7, 0.4, 2.0], -1.2, 2.5, jax=None, reason="its pieces are those of the density"),
    row("uniform", "logpdf", [0.3, 0.6]),
    row("vonmises", "logpdf", [-0.7, 2.0], 1.8, standard=()),
    row("wrapcauchy", "logpdf", [0.7, 4.0], 0.4, standard=()),
    *[
        alone(name, "logpdf", x, *shapes)
        for name, x, shapes in [
            ("chi", [0.3, 2.0], (2.7,)),
            ("exponnorm", [-0.7, 2.0], (1.7,)),
            ("f", [0.3, 2.0], (3.2, 7.5)),
            ("fisk", [0.3, 2.0], (2.3,)),
            ("genextreme", [-0.7, 2.0], (0.3,)),
            ("genpareto", [0.3, 2.0], (-0.2,)),
            ("halfcauchy", [0.3, 2.0], ()),
            ("halfnorm", [0.3, 2.0], ()),
            ("invgamma", [0.3, 2.0], (2.3,)),
            ("invgauss", [0.3, 2.0], (0.8,)),
            ("loglaplace", [0.3, 2.0], (1.7,)),
            ("lognorm", [0.3, 2.0], (0.6,)),
            ("loguniform", [0.7, 2.0], (0.5, 4.0)),
            ("lomax", [0.3, 2.0], (1.4,)),
            ("maxwell", [0.3, 2.0], ()),
            ("rayleigh", [0.3, 2.0], ()),
            ("skewnorm", [-0.7, 2.0], (1.8,)),
            ("triang", [0.1, 0.7], (0.3,)),
            ("weibull_max", [-0.7, -2.0], (1.7,)),
            ("weibull_min", [0.3, 2.0], (1.7,)),
        ]
    ],
    row("bernoulli", "logpmf", [0, 1], 0.3, frozen=(0,), standard=()),
    row(
        "betabinom",
        "logpmf",
        [0, 3],
        5,
        1.4,
        2.2,
        frozen=(0,),
        standard=(),
        order=1,
        reason="JAX compiles the second order for many seconds; that of betaln is compared in the row of beta",
    ),
    row("binom", "logpmf", [0, 3], 5, 0.3, frozen=(0,), standard=()),
    row("geom", "logpmf", [1, 3], 0.3, frozen=(0,), standard=()),
    row("nbinom", "logpmf", [0, 3], 2.6, 0.4, frozen=(0,), standard=()),
    row("poisson", "logpmf", [0, 3], 2.3, frozen=(0,), standard=()),
    vectors(
        "multivariate_normal",
        lambda lib, x, mean, cov: lib.multivariate_normal.logpdf(x, mean, symmetric(cov)),
        np.array([0.1, 0.4]),
        np.array([0.3, -1.0]),
        COV,
    ),
    vectors(
        "multivariate_t",
        lambda lib, x, loc, shape: lib.multivariate_t.logpdf(x, loc, symmetric(shape), 3.5),
        np.array([0.1, 0.4]),
        np.array([0.3, -1.0]),
        COV,
        jax=None,
    ),
    vectors("dirichlet", lambda lib, a: lib.dirichlet.logpdf(np.array([0.2, 0.8]), a), np.array([1.2, 0.7])),
    vectors(
        "multinomial",
        lambda lib, p: lib.multinomial.logpmf(np.array([2, 1]), 3, (p + DOUBLE) / (p + DOUBLE).sum()),
        np.array([0.3, 0.6]),
    ),
]
