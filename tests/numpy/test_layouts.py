"""Results are a number, an array or a view where NumPy's are, and have the same memory order.

This decides which objects see a write to the result, to a view of the result, or to its ``ravel``.
"""

import numpy as np
import pytest
from operations import cases

import funcgrad.numpy as fnp
from funcgrad import as_written, jvp, vmap
from funcgrad.core import Tracer
from funcgrad.views import array_with_layout_of
from funcgrad.writable import View, is_buffer, is_number

#: Cases that differ: the order follows from intermediate steps of NumPy, or a number is an array in funcgrad.
DIFFER = (
    *("nanquantile", "nanpercentile", "linalg.det", "cross-3x2-3x2-axis0", "linalg.cross-3x2-3x2-axis0"),
    *("einsum-bij,bjk->kbi", "einsum-bj,bij->ib", "einsum-ij,jk,kl", "einsum-ijk,l->jl", "einsum-2x3-0_"),
    *("real-0.52", "imag-scalar", "imag-0.52", "i0-0.5", "piecewise-scalar-scalar"),
    "getitem-2x3x4-scalarint64_slice1,3,None_scalarint64",
)


def is_compared(case):
    """Return whether the test compares ``case``."""
    other = case.id.startswith(("scipy.", "polynomial.", *DIFFER))
    return bool(case.live) and case.numpy is not None and not other


ROWS = [row for row in cases.rows() if any(map(is_compared, row.cases))]
#: Results of NumPy's broadcasts cannot be written to, so their order does not matter; batches are not broadcast.
BROADCAST = ("broadcast_to", "broadcast_arrays")


def described(out, given):
    """Describe ``out``, made from ``given``: number, view or new array, and its memory order."""
    if isinstance(out, Tracer):
        like, number = array_with_layout_of(out), is_number(out)
        view = any(
            out is x or root(out) is x or (is_buffer(out) and is_buffer(x) and shares(out._val, x._val)) for x in given
        )
    else:
        like, number = np.asarray(out), isinstance(out, (np.generic, float))
        view = any(shares(out, x) for x in given)
    if number:
        return "a number"
    kind = "a view" if view else "new"
    if like.ndim == 0:
        return f"{kind}, no axes"
    return f"{kind}, C order {like.flags.c_contiguous}" if like.size else "empty"


def root(x):
    return x.alias.root if type(getattr(x, "alias", None)) is View else None


def shares(a, b):
    return type(a) is type(b) is np.ndarray and a.size > 0 and np.shares_memory(a, b)


def results(case, fun, library, live):
    """Return the results of ``fun`` and their descriptions; a ``library`` copies the array arguments."""
    full = [x.copy() if isinstance(x, np.ndarray) else x for x in case.values]
    for i, x in zip(case.live, live, strict=True):
        full[i] = library.array(x) if isinstance(case.values[i], np.ndarray) and library else x
    outs = case.call(fun, full)
    return outs, [described(out, full) for out in outs]


MODES = {
    "jvp": lambda f, live: jvp(f, live, live),
    "vmap": lambda f, live: vmap(f)(*[np.stack([x, x]) for x in live]),
    "jvp of vmap": lambda f, live: jvp(vmap(f), *[tuple([np.stack([x, x]) for x in live])] * 2),
    "vmap, last axis": lambda f, live: vmap(f, in_axes=-1)(*[np.stack([x, x], -1) for x in live]),
    "jvp of vmap, last axis": lambda f, live: jvp(
        vmap(f, in_axes=-1), *[tuple([np.stack([x, x], -1) for x in live])] * 2
    ),
    "vmap of vmap, last axis": lambda f, live: vmap(vmap(f, in_axes=-1), in_axes=-1)(
        *[np.stack([np.stack([x, x], -1)] * 3, -1) for x in live]
    ),
}


def described_pair(case, mode, *, gaps=False):
    """Return descriptions for NumPy and for ``mode``, with ``gaps`` in memory or not; None if it does not run."""
    live, found = tuple(case.primals), []
    each = [np.stack([x, x], -1)[..., 0] if isinstance(x, np.ndarray) else x for x in live]

    def noted(*args):
        outs, described_pair = results(case, case.fun, None if gaps else fnp, args)
        found.append(described_pair)
        return [out for out in outs if cases.kind_of(out) in "fc"]

    try:
        _, expected = results(case, case.numpy, None if gaps else np, each if gaps else live)
        with as_written():  # ``described`` looks at types of tracers
            MODES[mode](noted, live)
    except Exception:  # for example a read-only array, or a missing vmap
        if not found:
            return None
    return expected, found[0]


@pytest.mark.parametrize("row", ROWS, ids=[row.op.name for row in ROWS])
def test_memory_layout_matches_numpy(row):
    ran = 0
    for mode in MODES:
        if "vmap" in mode and row.op.name in BROADCAST:
            continue
        for case in filter(is_compared, row.cases):
            if (pair := described_pair(case, mode)) is not None:
                ran += 1
                assert pair[1] == pair[0], f"{case.id}, {mode}"
    assert ran


@pytest.mark.parametrize("row", ROWS, ids=[row.op.name for row in ROWS])
def test_memory_layout_with_batch_axis_last(row):
    for mode in MODES:
        if "last" in mode and row.op.name not in BROADCAST:
            for case in filter(is_compared, row.cases):
                if (
                    pair := described_pair(case, mode, gaps=True)
                ) is not None:  # views of arguments cannot be written to
                    new = [i for i, text in enumerate(pair[0]) if "view" not in text]
                    assert [pair[1][i] for i in new] == [pair[0][i] for i in new], f"{case.id}, {mode}"


OF_TRANSPOSED = {
    "repeat": lambda np, x: np.repeat(x, 2, axis=0),
    "repeat by counts": lambda np, x: np.repeat(x, [2, 1, 1], axis=0),
    "sum of a list": lambda np, x: np.sum([x, x * 2], axis=0),
    "array of a list": lambda np, x: np.array([x, x * 2])[1],
    "stack": lambda np, x: np.stack([x, x * 2])[1],
    "vectorize": lambda np, x: np.vectorize(lambda t: t * t)(x),
    "vectorize of two": lambda np, x: np.vectorize(lambda t, s: t * s)(x, x[0]),
    "select": lambda np, x: np.select([x > 0.5], [x], x * 2),
    "piecewise": lambda np, x: np.piecewise(x, [x > 0.5], [lambda t: t * t, 1.0]),
    "astype": lambda np, x: x.astype(float),
    "astype in C order": lambda np, x: x.astype(float, order="C"),
    "astype in Fortran's order": lambda np, x: x.T.astype(complex, order="F").real * 1.0,
}


@pytest.mark.parametrize("name", OF_TRANSPOSED)
def test_results_of_transposed_arrays(name):
    def order(out):
        flags = array_with_layout_of(out).flags
        return flags.c_contiguous, flags.f_contiguous

    def noted(x):
        found.append(order(OF_TRANSPOSED[name](fnp, (x * 2).T)))
        return x

    found = []
    x = np.linspace(0.1, 1.3, 12).reshape(4, 3)
    jvp(noted, (x,), (x,))
    vmap(noted)(np.stack([x, x]))
    assert found == [order(OF_TRANSPOSED[name](np, (x * 2).T))] * 2


def test_strides_of_constants():
    x = np.arange(6.0)
    np.testing.assert_array_equal(fnp.lib.stride_tricks.as_strided(x, (3,), (16,)), [0.0, 2.0, 4.0], strict=True)
    np.testing.assert_array_equal(fnp.reshape([1.0, 2.0], (2, 1), copy=True), [[1.0], [2.0]], strict=True)
