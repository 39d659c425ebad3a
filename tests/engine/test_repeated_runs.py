"""A run that a backward pass repeats makes the records of the first run: every operation, also under vmap."""

import warnings
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from fuzz.eager import run_eagerly
from operations.batched import Batch
from operations.cases import rows

import funcgrad.numpy as fnp
from funcgrad import checkpoint, no_grad, vjp, vmap
from funcgrad.writable import outside_transforms

ROWS = [row for row in rows() if any(case.live and any(leaf.mapped for leaf in case.leaves) for case in row.cases)]


def arranging():
    """Return the rows of operations that make views, or whose results have the same memory layout as the arguments."""
    from operations import indexing, joining, shaping

    names = {op.name for module in (indexing, joining, shaping) for op in module.OPS}
    return [row for row in ROWS if row.op.name in names and row.op.on_jax]


def cotangents(case, batch, wrap, lift):
    """Return the arguments' cotangents, with examples along the last axis and copies in the results' layout."""
    axes = [-1 if case.leaves[i].mapped else None for i in case.live]
    inner = wrap(lambda *leaves: [fnp.copy(out) for out in case.smooth(*leaves)])
    primals = [
        lift(case.values[i] if axis is None else np.stack(batch.examples[i], axis))
        for i, axis in zip(case.live, axes, strict=True)
    ]
    outs, pullback = vjp(vmap(inner, in_axes=tuple(axes), out_axes=-1), *primals)
    return pullback([lift(np.ones(out.shape, out.dtype)) for out in outs])


def check(row, lift, run=lambda fun: fun(), block=False):
    for case in row.cases:
        if case.live and any(case.leaves[i].mapped for i in case.live):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # arguments outside of a domain
                batch = Batch(case)
                expected = run(partial(cotangents, case, batch, lambda fun: fun, lift))
                ways = [run(partial(cotangents, case, batch, checkpoint, lift))]
                if block:
                    with no_grad():
                        ways.append(cotangents(case, batch, checkpoint, lift))
            for found in ways:
                for a, b in zip(found, expected, strict=True):
                    assert a.dtype == b.dtype, case.id
                    assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), case.id


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.op.name)
def test_repeated_run_on_numpy_arrays(row):
    """The general rules run each operation in ``no_grad``, and must make the records of the fast paths."""
    check(row, lambda x: x, block=True)


EXAMPLES = np.linspace(0.3, 1.1, 6).reshape(2, 3)
WRITES = {
    "whole": lambda v, x: v.__setitem__(..., x),
    "number": lambda v, x: v.__setitem__(0, x[1]),
    "number, broadcast": lambda v, x: v.__setitem__(slice(None), x[1]),
    "part": lambda v, x: v.__setitem__(slice(0, 2), x[1:]),
    "constant": lambda v, x: v.__setitem__(slice(0, 2), 2.0),
    "mask": lambda v, x: v.__setitem__(np.array([True, False, True]), x[:2]),
    "mask of what was computed": lambda v, x: v.__setitem__(v > 0.3, 0.2),
    "constants at a mask": lambda v, x: v.__setitem__(np.array([True, False, True]), [1.0, 2.0]),
    "list": lambda v, x: v.__setitem__([2, 0], x[:2]),
    "column": lambda v, x: v[:, None].__setitem__((slice(0, 2), 0), x[1:]),
    "part, added": lambda v, x: v[1:].__iadd__(x[:2]),
    "places": lambda v, x: v.__setitem__(np.array([2, 0]), x[:2]),
    "added": lambda v, x: v.__iadd__(x),
    "fill": lambda v, x: v.fill(x[0]),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("made", ["copy", "zeros", "product"])
@pytest.mark.parametrize("batched", [True, False])
def test_repeated_run_with_writes(name, made, batched):
    """Programs write to a copy, to an array of constants, and to a result."""

    def written(x):
        v = {"copy": fnp.copy, "zeros": fnp.zeros_like, "product": lambda x: x * x}[made](x)
        WRITES[name](v, x)
        return v * x

    def pulled(wrap):
        if batched:
            return vjp(vmap(wrap(written)), EXAMPLES)[1](EXAMPLES)[0]
        return vjp(wrap(written), EXAMPLES[0])[1](EXAMPLES[0])[0]

    expected = pulled(lambda fun: fun)
    np.testing.assert_array_equal(pulled(checkpoint), expected)
    with no_grad():
        np.testing.assert_array_equal(pulled(checkpoint), expected)


@pytest.mark.parametrize("row", arranging(), ids=lambda row: row.op.name)
def test_repeated_run_on_jax_arrays(row):
    """The memory order of a JAX array cannot be observed, so views must know it."""
    check(row, jnp.asarray, run_eagerly)


@pytest.mark.parametrize("row", arranging()[::32], ids=lambda row: row.op.name)
def test_repeated_run_computed_by_jax(row):
    """Run some of the rows with JAX itself, without ``run_eagerly``."""
    check(row, jnp.asarray)


def test_repetition_is_not_seen_outside_of_transforms():
    """Check that functions which never see traced values make plain arrays in a repeated run too."""
    made = []

    def fun(x):
        with outside_transforms():
            made.append(fnp.zeros(2))
        made.append(fnp.zeros(2))
        return x * x

    vjp(checkpoint(fun), 3.0)[1](1.0)
    assert [type(x) is np.ndarray for x in made] == [True, False, True, False]
