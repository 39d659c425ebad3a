"""Rows for polynomials: NumPy's functions of coefficients, and the families of ``numpy.polynomial``."""

import jax.numpy as jnp
import numpy as np

import funcgrad.numpy as fnp
import funcgrad.numpy.polynomial as families
from operations.spec import Sample, array, op, positive

S = Sample
P, Q = array(4, seed=1), array(3, seed=2)
DIVISOR = np.array([2.0, 0.75, -1.25])  # division by its leading coefficient is exact
X = array(2, 3, seed=3)
Z = array(3, seed=4, kind="complex")
#: These polynomials have complex roots, so NumPy's result has JAX's dtype.
QUADRATIC = np.array([1.5, 2.0, 3.0])
QUINTIC = np.array([1.0, 0.4, 2.1, -0.7, 3.0, 1.2])
REAL_ZEROS = np.array([1.0, -2.5, -1.0, 2.0])
T, Y, W = np.linspace(-1.0, 1.2, 5), array(5, seed=5), positive(5, seed=6)


NO_SECOND = "JAX has no second derivative of eigenvalues"


def divided(u, v):
    """Return JAX's quotient and remainder, without the leading zeros of the remainder."""
    quotient, remainder = jnp.polydiv(u, v)
    return quotient, remainder[-(len(v) - 1) :]


OLD = [
    op(
        "poly",
        (array(3),),
        complex_samples=[(Z,)],
    ),
    op(
        "poly",
        (array(3, 3),),
        complex_samples=[(array(2, 2, kind="complex"),)],
        jax=None,
        reason=NO_SECOND,
    ),
    op(
        "roots",
        (QUADRATIC,),
        complex_samples=[(Z,)],
        jax=lambda p: jnp.roots(p, strip_zeros=False),
        order=1,
        reason=NO_SECOND,
    ),
    op("roots", (QUINTIC,), complex_samples=[(Z,)], jax=None, reason=NO_SECOND),
    op(
        "roots",
        (REAL_ZEROS,),
        (np.array([2.0, -3.0]),),
        fun=lambda p: fnp.real(fnp.roots(p)),  # JAX's roots are always complex
        numpy=lambda p: np.roots(p).real,
        jax=None,
        reason=NO_SECOND,
    ),
    op(
        "polyval",
        (P, X),
        (P, 1.5),
        (array(1), X),
        (array(3, 2, 3), X),
        complex_samples=[(P, Z), (Z, array(3))],
    ),
    op("polyadd", (P, Q), (Q, P), complex_samples=[(Z, Q)]),
    op("polysub", (P, Q), (Q, P), complex_samples=[(Z, Q)]),
    op("polymul", (P, Q), complex_samples=[(Z, Q)]),
    op("polydiv", (P, DIVISOR), (array(3), DIVISOR), complex_samples=[(P, DIVISOR * (1 + 1j))], jax=divided),
    op("polydiv", (P, np.array([2.0])), (Q, P), jax=None, reason="JAX keeps the remainder in full length"),
    op("polyder", (P,), (P, 2), (P, 0), (P, 5), complex_samples=[(Z,)]),
    op("polyint", (P,), S((P,), {"m": 2}), (P, 2, array(2)), (P, 2, 1.5), complex_samples=[(Z, 1, 0.5)]),
]

#: Fits: points, values, degree.
FIT = S((T, Y, 2), unbatched=(2,))
OLD += [
    op("polyfit", FIT),
    op(
        "polyfit",
        S((T, array(5, 2), 1), {"w": W}, unbatched=(2,)),
        S((T, Y, 2, None, False, W, True), unbatched=(2, 3, 4, 6)),
        S((T, Y, 1), {"cov": "unscaled"}, unbatched=(2,)),
        S((T, Y, 1), {"full": True}, unbatched=(2,)),
        jax=None,
        reason="as above, and JAX takes long to compile it",
    ),
    op(
        "poly1d",
        (array(3),),
        fun=lambda x: fnp.poly1d([1.5, -2.0, 0.5])(x),
        numpy=lambda x: np.poly1d([1.5, -2.0, 0.5])(x),
        jax=None,
        jit=False,
        portable=False,
        reason="JAX has none, and NumPy's class makes NumPy's arrays of JAX's",
    ),
]

#: Module of a family, and the prefix of its functions' names.
PREFIXES = {
    "polynomial": "poly",
    "chebyshev": "cheb",
    "legendre": "leg",
    "hermite": "herm",
    "hermite_e": "herme",
    "laguerre": "lag",
}
#: Functions of every family, and their samples.
SHARED = {
    "val": [(X, P), (1.5, array(3, 2)), S((array(3), array(4, 3)), {"tensor": False})],
    "val2d": [(array(3), array(3, seed=1), array(2, 3))],
    "val3d": [(array(2), array(2, seed=1), array(2, seed=2), array(2, 1, 3))],
    "grid2d": [(array(2), array(3, seed=1), array(2, 3))],
    "grid3d": [(array(2), array(2, seed=1), array(1, seed=2), array(2, 1, 3))],
    "vander": [(X, 3), (1.5, 0)],
    "vander2d": [S((array(3), array(3, seed=1), [1, 2]), unbatched=(2,))],
    "vander3d": [S((array(2), array(2, seed=1), array(2, seed=2), [1, 0, 2]), unbatched=(3,))],
    "der": [(P,), S((array(3, 4), 2, 1.5), {"axis": 1}, unbatched=(2,)), (P, 5)],
    "int": [(P,), S((array(2, 3), 2), {"axis": 1, "k": [0.5], "lbnd": -0.5, "scl": 2.0})],
    "line": [S((0.5, 1.5), unbatched=())],
    "add": [(P, Q)],
    "sub": [(Q, P)],
    "mulx": [(P,)],
    "mul": [(P, Q)],
    "div": [(P, Q), (Q, P)],
    "pow": [(Q, 3)],
    "trim": [S((np.array([1.0, -2.0, 0.5, 0.25]), 0.3), unbatched=(0, 1))],
    "fromroots": [(array(3),)],
    "companion": [(P,)],
}
ALONE = "jax.numpy has no series"


def real_part(function):
    """Return ``function`` with the real part of its result: JAX's roots are always complex."""
    return lambda *args: fnp.real(function(*args))


def family_rows(module, prefix):
    """Yield the rows of one family; functions shared by all families have all samples in two families only."""
    ours, theirs = getattr(families, module), getattr(np.polynomial, module)
    many = None if module in ("polynomial", "laguerre") else 1

    def row(name, *samples, wrap=lambda function: function, **options):
        return op(
            f"polynomial.{module}.{name}",
            *samples,
            fun=wrap(getattr(ours, name)),
            **{"numpy": wrap(getattr(theirs, name, None)), "jax": None, "reason": ALONE, **options},
        )

    for name, samples in SHARED.items():
        static = {"jit": False, "portable": False, "reason": "the length depends on the values"}
        yield row(prefix + name, *samples[:many], **(static if name == "trim" else {}))
    together = getattr(theirs, f"{prefix}val3d")  # older NumPy versions have this function, too
    points = array(2), array(2, seed=1), array(2, seed=2)
    yield row(f"{prefix}valnd", (points, array(2, 1, 3)), numpy=lambda pts, c: together(*pts, c))
    yield row(f"{prefix}fit", FIT, S((T, array(5, 2), [0, 2], None, False, W), unbatched=(2, 3, 4)))
    yield row(f"{prefix}roots", (QUINTIC,), (REAL_ZEROS,), wrap=real_part)
    if module == "polynomial":
        yield row("polyroots", (QUADRATIC,), complex_samples=[(Z,)])
        yield row("polyvalfromroots", (X, P), S((array(3), array(2, 4, 3)), {"tensor": True}))
        yield row("polyval", (Z, P), complex_samples=[(P, Z)])
        return
    yield row(f"{prefix}weight", (array(3, low=-0.9, high=0.9),))
    yield row(f"{prefix}gauss", (3,))
    yield row(f"{prefix}2poly", (P,))
    yield row(f"poly2{prefix}", (P,))
    if module == "chebyshev":
        yield row("chebpts1", (4,))
        yield row("chebpts2", (4,))
        yield row("chebinterpolate", S((wavy, 3, (1.5,)), unbatched=(0, 1)))


def wavy(x, factor):
    return fnp.sin(x * factor)


OPS = OLD + [row for module, prefix in PREFIXES.items() for row in family_rows(module, prefix)]
