"""What several files of tests use: comparisons of results, values of traced runs, differences, samples."""

import jax
import numpy as np

from funcgrad import vjp


def close(got, want, rtol=1e-12, atol=None):
    """The numbers of an array are the expected ones, to ``rtol`` of each or ``atol``, which is ``rtol`` by default."""
    atol = rtol if atol is None else atol
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=rtol, atol=atol)


def close_leaves(got, want, rtol=1e-12, atol=None, kind=object, dtypes=True):
    """A tree is like the expected one: structure, shapes, dtypes and values; its leaves are of the class ``kind``."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    pairs = list(zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True))
    assert pairs, "there is nothing to compare"
    for g, w in pairs:
        assert isinstance(g, kind), type(g)
        assert np.shape(g) == np.shape(w)
        assert not dtypes or np.asarray(g).dtype == np.asarray(w).dtype
        close(g, w, rtol, atol)


def identical(got, want):
    """Equal in value, class, shape and dtype, inside tuples and lists too; NaN equals NaN."""
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
    """Whether what came with a version of a library is there: with an older one it is not asked for."""
    return np.lib.NumpyVersion(library.__version__) >= version


def traced(fun, *args):
    """The value that ``fun`` has where every argument is traced."""
    return vjp(fun, *args)[0]


def differences(fun, x, step=1e-4):
    """The Jacobian of ``fun`` by central differences of the fourth order: the shape of the result, then that of ``x``.

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
    """Numbers of a normal distribution, others for each shape and seed."""
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def complex_normal(*shape, seed=0):
    """The same with another such array as the imaginary part."""
    return normal(*shape, seed=seed) + 1j * normal(*shape, seed=seed + 100)
