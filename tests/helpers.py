"""Helpers of several test files: comparisons of results, values of traced runs, differences, samples."""

from itertools import product

import jax
import numpy as np

from funcgrad import vjp


def in_one_test(arguments):
    """Run a test with all values of its arguments as one test, and report all failures together.

    For checks of less than a millisecond, which pytest's own work for one test exceeds.

    Args:
        arguments: values by the name of the argument, or tuples of values by "name, name"; all combinations are run.
    """
    choices = [
        [dict(zip(names.split(", "), value if ", " in names else (value,), strict=True)) for value in values]
        for names, values in arguments.items()
    ]

    def decorate(test):
        def together():
            runs, missed = list(product(*choices)), []
            assert runs, "there is nothing to check"
            for parts in runs:
                given = {name: value for part in parts for name, value in part.items()}
                try:
                    test(**given)
                except Exception as error:
                    error.add_note(f"With {', '.join(f'{name}={value!r}' for name, value in given.items())}.")
                    missed.append(error)
            if missed:
                raise ExceptionGroup(f"{len(missed)} of {len(runs)} failed", missed)

        together.__name__, together.__doc__, together.__module__ = test.__name__, test.__doc__, test.__module__
        return together

    return decorate


def close(got, want, rtol=1e-12, atol=None):
    """Check that numbers equal the expected ones, to ``rtol`` of each or to ``atol``, by default ``rtol``."""
    atol = rtol if atol is None else atol
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=rtol, atol=atol)


def close_leaves(got, want, rtol=1e-12, atol=None, kind=object, dtypes=True):
    """Check a pytree: structure, shapes, dtypes and values; its leaves are of the class ``kind``."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    pairs = list(zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True))
    assert pairs, "there is nothing to compare"
    for g, w in pairs:
        assert isinstance(g, kind), type(g)
        assert np.shape(g) == np.shape(w)
        assert not dtypes or np.asarray(g).dtype == np.asarray(w).dtype
        close(g, w, rtol, atol)


def identical(got, want):
    """Check equality of value, class, shape and dtype, also inside tuples and lists; NaN equals NaN."""
    assert type(got) is type(want), (type(got), type(want))
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            identical(g, w)
    elif isinstance(want, (np.ndarray, np.generic)):
        np.testing.assert_array_equal(got, want, strict=True)
    else:
        assert got == want


def at_least(library, version):
    """Return whether a library has at least ``version``; features of that version are not tested with older ones."""
    return np.lib.NumpyVersion(library.__version__) >= version


def traced(fun, *args):
    """Return the value of ``fun`` with every argument traced."""
    return vjp(fun, *args)[0]


def differences(fun, x, step=1e-4):
    """Return the Jacobian by central differences of fourth order: shape of the result, then shape of ``x``.

    The step is relative to numbers larger than one.
    """
    x = np.asarray(x, float)
    columns = []
    for place in np.ndindex(x.shape):
        h = step * max(1.0, abs(x[place]))
        away = np.zeros(x.shape)
        away[place] = h
        at = lambda k, away=away: np.asarray(fun((x + k * away)[()]))
        columns.append((8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h))
    return np.stack(columns, axis=-1).reshape(columns[0].shape + x.shape)


def normal(*shape, seed=0):
    """Return normally distributed numbers, which depend on the shape and the seed."""
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def complex_normal(*shape, seed=0):
    """Return complex numbers with normally distributed real and imaginary parts."""
    return normal(*shape, seed=seed) + 1j * normal(*shape, seed=seed + 100)
