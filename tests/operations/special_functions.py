"""Rows for special functions: error functions, gamma and beta, entropies, losses, incomplete integrals."""

import jax.numpy as jnp
import numpy as np

from operations.spec import Sample, array, op, positive

S = Sample
NO_JAX = "JAX has no such function"
NO_KERNEL = "JAX has no such function, and no kernel for it: JAX arrays are refused"
X = array(2, low=-1.9, high=1.7)
UNIT = array(2, low=0.15, high=0.9)
POSITIVE = positive(2)
COMPLEX = array(2, kind="complex")


def row(name, *args, complex_samples=(), **options):
    """Return a row with one sample; without a counterpart in JAX, the reason says so."""
    if options.get("jax", "") is None:
        options.setdefault("reason", NO_JAX)
    return op(f"scipy.special.{name}", tuple(args), complex_samples=complex_samples, **options)


def alone(name, *args, **options):
    """Return a row for which JAX has neither a function nor a kernel."""
    return row(name, *args, jax=None, on_jax=False, reason=NO_KERNEL, **options)


ERROR_FUNCTIONS = [
    row("erf", X),
    row("erfc", X),
    row("erfcx", np.array([-1.2, 0.4, 2.3])),
    row("erfi", X, jax=None),
    row("erfinv", UNIT),
    row("erfcinv", UNIT, jax=None),
    op("scipy.special.wofz", complex_samples=[(COMPLEX,)]),
    row("dawsn", np.array([-1.2, 0.4, 8.3])),
    row("ndtr", X),
    row("log_ndtr", np.array([-7.5, 0.6])),
    row("ndtri", UNIT),
    row("ndtri_exp", -POSITIVE, jax=None),
    row("owens_t", X, array(2, 1, seed=1, low=-1.5, high=1.5)),
    row("fresnel", X),
]

GAMMA_FUNCTIONS = [
    row("gamma", POSITIVE),
    row("gammaln", POSITIVE),
    row("loggamma", POSITIVE),
    op("scipy.special.gammasgn", (X,), differentiable=False),
    row("rgamma", np.array([-1.3, 0.2, 2.5]), jax=None),
    row("digamma", POSITIVE),
    row("psi", POSITIVE, jax="scipy.special.digamma"),
    op("scipy.special.polygamma", S((1, POSITIVE), unbatched=(0,)), jax="scipy.special.polygamma"),
    op("scipy.special.multigammaln", S((POSITIVE + 1, 2), unbatched=(1,))),
    row("beta", POSITIVE, UNIT),
    row("betaln", POSITIVE, UNIT),
    row("poch", POSITIVE, UNIT),
    row("binom", POSITIVE + 2, UNIT, jax=None),
    op("scipy.special.comb", (POSITIVE + 2, UNIT), S((POSITIVE, UNIT), {"repetition": True}), jax=None, reason=NO_JAX),
    row("factorial", POSITIVE),
    row("perm", POSITIVE + 2, UNIT, jax=None),
    row("zeta", POSITIVE + 1.2, UNIT, jax=None),
    op("scipy.special.zeta", S((POSITIVE + 1.2, UNIT), frozen=(0,), unbatched=(0,))),
    op("scipy.special.zeta", (POSITIVE + 1.2,), jax=None, reason="JAX has Hurwitz's only"),
    row("zetac", POSITIVE + 1.2, jax=None, order=1),
]

LOGARITHMS = [
    row("cbrt", X, jax=jnp.cbrt),
    row("exp2", X, jax=jnp.exp2),
    row("expm1", X, jax=jnp.expm1, complex_samples=[(COMPLEX,)]),
    row("log1p", POSITIVE, jax=jnp.log1p, complex_samples=[(COMPLEX,)]),
    row("xlogy", POSITIVE, UNIT),
    row("xlog1py", POSITIVE, UNIT),
    row("entr", POSITIVE),
    row("rel_entr", POSITIVE, UNIT),
    row("kl_div", POSITIVE, UNIT),
    row("expit", X),
    row("log_expit", X, jax=None),
    row("logit", UNIT),
    op(
        "scipy.special.boxcox",
        (POSITIVE, np.array([0.4, 1.2])),
        jax=None,
        reason="JAX's derivative in the exponent is wrong at 0 and less accurate beside it",
    ),
    row("boxcox1p", POSITIVE, X, jax=None),
    row("inv_boxcox", UNIT, X / 3, jax=None),
    row("inv_boxcox1p", UNIT, X / 3, jax=None),
    row("huber", np.array([1.3, 0.4]), X, jax=None),
    row("pseudo_huber", POSITIVE, X, jax=None),
    row("exprel", X, jax=None),
    row("cosm1", X, jax=None),
    row("powm1", POSITIVE, UNIT, jax=None),
    alone("wrightomega", X),
    op("scipy.special.lambertw", (UNIT,), complex_samples=[(COMPLEX,)], jax=None, on_jax=False, reason=NO_KERNEL),
    row("softplus", X, jax=lambda x: jnp.logaddexp(0, x)),
    row("logsumexp", array(2, 2)),
    row("softmax", array(2, 2)),
    row("log_softmax", array(2, 2)),
    row("exp10", X, jax=None),
    row("sindg", 90 * X, jax=None),
    row("cosdg", 90 * X, jax=None),
    row("tandg", 30 * X, jax=None),
    row("cotdg", 30 * X, jax=None),
    row("radian", 30 * X, X, X[::-1], jax=None),
]

INCOMPLETE = [
    op("scipy.special.gammainc", (POSITIVE, UNIT), jax=None, reason="JAX has no second derivative in the parameter"),
    row("gammaincc", POSITIVE, UNIT, jax=None),
    alone("gammaincinv", POSITIVE, UNIT),
    alone("gammainccinv", POSITIVE, UNIT),
    op("scipy.special.betainc", S((POSITIVE, UNIT, UNIT[::-1]), frozen=(0, 1), unbatched=(0, 1))),
    op("scipy.special.betainc", (POSITIVE, UNIT, UNIT[::-1]), jax=None, reason="JAX has no derivatives in a and b"),
    row("betaincc", POSITIVE, UNIT, UNIT[::-1], jax=None),
    alone("betaincinv", POSITIVE, UNIT, UNIT[::-1]),
    alone("betainccinv", POSITIVE, UNIT, UNIT[::-1]),
]

OPS = [*ERROR_FUNCTIONS, *GAMMA_FUNCTIONS, *LOGARITHMS, *INCOMPLETE]
