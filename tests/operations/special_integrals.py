"""Rows for special functions: exponential integrals and distribution functions."""

import jax
import numpy as np

from funcgrad.scipy.special.operations.distributions import student_density
from operations.spec import Sample, array, op, positive
from operations.special_functions import NO_JAX, NO_KERNEL, POSITIVE, UNIT, alone, row

S = Sample
TRIALS = np.array([5, 9])
EVENTS = np.array([2, 9])


def counts(name, count, *args, on_jax=True, ordered=False):
    """Return a row for a discrete distribution."""
    return op(f"scipy.special.{name}", S((*count, *args), ordered=ordered), jax=None, on_jax=on_jax, reason=NO_JAX)


INTEGRALS = [
    row("expi", np.array([-1.2, 0.7])),
    op("scipy.special.exp1", (POSITIVE,), jax=None, reason="JAX has no second derivative"),
    op("scipy.special.expn", S((np.array([0, 1, 2, 5]), positive(4))), jax=None, reason="JAX has no second derivative"),
    op(
        "scipy.special.expn",
        S((3, POSITIVE), unbatched=(0,)),
        S((1, POSITIVE), unbatched=(0,)),
        order=1,
        reason="JAX has no second derivative",
    ),
    row("sici", np.array([0.4, 1.7])),
    alone("shichi", np.array([0.4, 1.7])),
    op("scipy.special.spence", (np.array([0.3, 1.9]),), jax=None, reason="JAX's derivative is NaN beyond 1.5"),
    row("voigt_profile", array(2), UNIT, POSITIVE, jax=None),
]

DEGREES, MORE, LEVELS = np.array([2.3, 4.0]), np.array([6.1, 9.4]), np.array([0.3, 0.6])
NONCENTRAL = {
    "chndtr": (POSITIVE, DEGREES, UNIT),
    "chndtrix": (LEVELS, DEGREES, UNIT),
    "ncfdtr": (DEGREES, MORE, UNIT, POSITIVE),
    "ncfdtri": (DEGREES, MORE, UNIT, LEVELS),
    "nctdtr": (DEGREES, UNIT, np.array([-0.6, 1.7])),
    "nctdtrit": (DEGREES, UNIT, LEVELS),
}
SEARCHED = {
    "chndtridf": (POSITIVE + 1, LEVELS, UNIT),
    "chndtrinc": (MORE, DEGREES, LEVELS),
    "ncfdtridfn": (LEVELS + 0.2, MORE, UNIT, POSITIVE),
    "ncfdtridfd": (DEGREES, LEVELS, UNIT, POSITIVE),
    "ncfdtrinc": (DEGREES, MORE, LEVELS, POSITIVE + 1),
    "nctdtridf": (LEVELS, UNIT, POSITIVE),
    "nctdtrinc": (DEGREES, LEVELS, POSITIVE),
}

DISTRIBUTIONS = [
    row("chdtr", POSITIVE, UNIT, jax=None),
    row("chdtrc", POSITIVE, UNIT, jax=None),
    alone("chdtri", POSITIVE, UNIT),
    alone("chdtriv", UNIT, POSITIVE),
    row("gdtr", POSITIVE, UNIT, UNIT[::-1], jax=None),
    row("gdtrc", POSITIVE, UNIT, UNIT[::-1], jax=None),
    alone("gdtria", UNIT, POSITIVE, UNIT[::-1]),
    alone("gdtrib", POSITIVE, UNIT, UNIT[::-1]),
    alone("gdtrix", POSITIVE, UNIT[::-1], UNIT),
    counts("pdtr", (EVENTS,), POSITIVE),
    counts("pdtrc", (EVENTS,), POSITIVE),
    counts("pdtri", (EVENTS,), UNIT, on_jax=False),
    alone("pdtrik", UNIT, POSITIVE + 2),
    counts("bdtr", (EVENTS, TRIALS), UNIT),
    counts("bdtrc", (EVENTS, TRIALS), UNIT),
    counts("bdtri", (EVENTS - 1, TRIALS), UNIT, on_jax=False, ordered=True),
    counts("nbdtr", (EVENTS, TRIALS), UNIT),
    counts("nbdtrc", (EVENTS, TRIALS), UNIT),
    counts("nbdtri", (EVENTS, TRIALS), UNIT, on_jax=False),
    row("fdtr", POSITIVE, POSITIVE[::-1] + 1, UNIT, jax=None),
    row("fdtrc", POSITIVE, POSITIVE[::-1] + 1, UNIT, jax=None),
    alone("fdtri", POSITIVE, POSITIVE[::-1] + 1, UNIT),
    # SciPy's values have nine digits: test_special.py tests the derivatives
    op(
        "scipy.special.bdtrik",
        S((UNIT, TRIALS * 1.0, UNIT[::-1]), frozen=(0, 1, 2)),
        jax=None,
        on_jax=False,
        reason=NO_KERNEL,
    ),
    alone("kolmogorov", np.array([0.4, 1.3])),
    alone("kolmogi", UNIT),
    op("scipy.special.smirnov", S((np.array([4, 30]), UNIT / 2)), jax=None, on_jax=False, reason=NO_KERNEL),
    op("scipy.special.smirnovi", S((np.array([4, 30]), UNIT)), jax=None, on_jax=False, reason=NO_KERNEL),
    alone("bdtrin", np.array([2.0, 3.0]), np.array([0.3, 0.4]), UNIT),
    alone("nbdtrik", UNIT, TRIALS * 1.0, UNIT[::-1]),
    alone("nbdtrin", np.array([3.0, 4.0]), np.array([0.4, 0.5]), np.array([0.52, 0.4])),
    row("nrdtrimn", UNIT, POSITIVE, UNIT[::-1], jax=None),
    row("nrdtrisd", UNIT, UNIT, POSITIVE + 1, jax=None),
    alone("tklmbda", np.array([0.3, -0.4]), POSITIVE / 2),
    alone("fdtridfd", np.array([2.3, 4.0]), np.array([0.67, 0.6]), np.array([1.5, 1.2])),
    alone("btdtria", UNIT, POSITIVE, UNIT[::-1]),
    alone("btdtrib", POSITIVE, UNIT, UNIT[::-1]),
    op(
        "scipy.special.stdtr",
        (POSITIVE, np.array([-0.6, 1.7])),
        fun=student_density,
        numpy=None,
        jax=lambda v, t: jax.scipy.stats.t.pdf(t, v),
    ),
    row("stdtr", POSITIVE, np.array([-0.6, 1.7]), jax=None),
    alone("stdtrit", POSITIVE + 1, UNIT),
    alone("stdtridf", np.array([0.85, 0.9]), np.array([1.3, 1.6])),
    *[alone(name, *args, order=1 if "tri" in name else 2) for name, args in NONCENTRAL.items()],
    # SciPy searches for these to seven digits: test_scipy_distributions.py tests the derivatives
    *[
        op(
            f"scipy.special.{name}",
            S(args, frozen=tuple(range(len(args)))),
            jax=None,
            on_jax=False,
            reason=NO_KERNEL,
        )
        for name, args in SEARCHED.items()
    ],
]

OPS = [*INTEGRALS, *DISTRIBUTIONS]
