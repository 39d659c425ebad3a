"""Arrays that share memory in NumPy share it under every transform, and no others do.

For every row of the table of operations: write to each result of NumPy's function and to each argument in turn, and
note which other arrays change. On traced values the same arrays must change.
"""

import copy
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from operations import cases
from operations.cases import flatten, kind_of

import funcgrad.numpy as fnp
from funcgrad import grad, jvp, value_and_grad, vjp, vmap
from funcgrad.core import Tracer
from funcgrad.writable import is_number

ROWS = cases.rows()
# In rewritten code, the test's own helpers would see other classes than the operations do.
pytestmark = pytest.mark.usefixtures("written")


def numbers(x):
    """Return a copy of the plain array that ``x`` finally represents."""
    while isinstance(x, Tracer):
        x = x._val
    return np.array(x)


def is_array(x):
    """Return whether ``x`` has memory, as arrays without axes do and numbers do not."""
    return issubclass(type(x), np.ndarray) or (issubclass(type(x), Tracer) and not is_number(x))


def write(x, marker):
    """Change all of ``x``, and return whether that is allowed."""
    kind = kind_of(x)
    number = marker if kind in "fc" else 77
    if issubclass(type(x), np.ndarray):  # a constant: it accepts plain numbers only
        number = ~numbers(x) if kind == "b" else numbers(number).flat[0]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            x[...] = number
    except (ValueError, DeprecationWarning):  # read-only
        return False
    return True


def observed(fun, arrays, one):
    """Note which values change when each result, and then each argument, is written to; arguments come first.

    Returns:
        The notes, and the positions of the results that are constants and accept no traced numbers.
    """
    outs = list(flatten(fun(arrays)))
    everything = [*arrays, *outs]
    notes = {}
    for k in (*range(len(arrays), len(everything)), *range(len(arrays))):
        if not is_array(everything[k]) or not everything[k].size:
            continue
        before = [numbers(x) for x in everything]
        allowed = write(everything[k], (100.0 + k) * one)
        if not allowed and not everything[k].shape:
            continue  # behaves like a number
        after = [numbers(x) for x in everything]
        changed = [
            i
            for i, (a, b) in enumerate(zip(before, after, strict=True))
            if i != k and not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
        ]
        notes[k] = tuple(changed) if allowed else "read-only"
    plain = [k for k, note in notes.items() if issubclass(type(everything[k]), np.ndarray) and note != "read-only"]
    return notes, [k for k in plain if kind_of(everything[k]) in "fc"]


def made_inside(given, values):
    """Return the arguments as a function would make them: traced if a transform passed them, otherwise constant."""
    return [fnp.array(x) if isinstance(v, np.ndarray) else x for x, v in zip(given, values, strict=True)]


def run(transform, fun, arrays):
    """Run ``fun(one, *arrays)`` under a transform, or with the arrays as constants."""
    if transform == "vjp":
        vjp(lambda *args: (fun(*args), args[0])[1], 1.0, *arrays)
    elif transform == "jvp":
        jvp(lambda *args: (fun(*args), args[0])[1], (1.0, *arrays), (1.0, *arrays))
    elif transform == "vmap":
        vmap(lambda *args: (fun(*args), args[0])[1])(np.ones(2), *[np.stack([a, a]) for a in arrays])
    else:
        vjp(lambda one: (fun(one, *arrays), one)[1], 1.0)


def under(transform, fun, values, mapped, frozen=()):
    """Return what ``observed`` notes under a transform, or None without traced values; ``frozen`` has no derivative."""
    found = []
    live = [
        i
        for i, v in enumerate(values)
        if kind_of(v) in "fc" and (mapped[i] and isinstance(v, np.ndarray) if transform == "vmap" else i not in frozen)
    ]

    def inside(one, *traced):
        full = list(values)
        for i, x in zip(live, traced, strict=True):
            full[i] = x
        found.append(observed(fun, made_inside(full, values), one))

    if transform == "constants" and not any(is_array(v) for v in values):
        return None  # numbers stay constant
    if live:
        run(transform, inside, [values[i] for i in live])
    return found[0] if found else None


TRANSFORMS = ("vjp", "jvp", "vmap", "constants")


def differences(fun, numpy, values, mapped, frozen=()):
    """Yield a text for each difference between NumPy's notes and those under a transform."""
    arrays = [np.copy(v) if is_array(v) else v for v in values]
    with np.errstate(all="ignore"):
        want, _ = observed(numpy, arrays, 1.0)
        for transform in TRANSFORMS:
            got = under(transform, fun, values, mapped, frozen)
            if got is not None and got[0] != want:
                yield f"{transform}: {want} in NumPy, {got[0]} here"
            if got is not None and got[1] and transform != "constants":
                yield f"{transform}: the results {got[1]} take no traced numbers"


@pytest.mark.parametrize("row", [row for row in ROWS if row.cases[0].numpy is not None], ids=lambda row: row.op.name)
def test_operations_alias_like_numpy(row):
    bad = [
        f"{case.id}, {problem}"
        for case in row.cases
        for problem in differences(
            lambda arrays, case=case: case.call(case.fun, arrays),
            lambda arrays, case=case: case.call(case.numpy, arrays),
            case.values,
            [leaf.mapped for leaf in case.leaves],
            {i for i, leaf in enumerate(case.leaves) if row.op.differentiable and not leaf.live},
        )
    ]
    assert not bad, "\n".join(bad)


A, C = np.arange(6.0).reshape(2, 3) + 0.5, np.arange(6.0).reshape(2, 3) * (1 + 2j)
METHODS = {
    "astype": lambda x: x.astype(x.dtype),
    "astype without a copy": lambda x: x.astype(x.dtype, copy=False),
    "clip": lambda x: x.real.clip(None, 3.0),
    "compress": lambda x: x.compress([True, True], axis=0),
    "conj": lambda x: x.conj(),
    "copy": lambda x: x.copy(),
    "copy of the transpose": lambda x: (x.T.copy(), x.T.copy().reshape(-1)),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "diagonal": lambda x: x.diagonal(),
    "flatten": lambda x: x.flatten(),
    "flatten in F order": lambda x: x.flatten("F"),
    "flat": lambda x: (x.flat[1:3], x.flat[[0, 1]], x.flat[:]),
    "imag": lambda x: x.imag,
    "iteration": lambda x: list(x),
    "iteration of the transpose": lambda x: list(x.T),
    "mT": lambda x: x.mT,
    "minus": lambda x: -x,
    "new axis": lambda x: x[:, None],
    "all": lambda x: x[...],
    "empty index": lambda x: x[()],
    "mask": lambda x: x[np.ones((2, 3), bool)],
    "numbers and slices": lambda x: (x[0], x[:, 1], x[-1, ::-1], x[0:1, 1:]),
    "positions": lambda x: (x[[0, 1]], x[np.array([0, 1])], x[:, [0]], x[np.array(0)]),
    "plus": lambda x: +x,
    "ravel": lambda x: x.ravel(),
    "ravel of what has gaps": lambda x: (x[:, 1].ravel(), x[::-1].ravel(), x[0, ::-1].reshape(-1)),
    "ravel of the transpose": lambda x: x.T.ravel(),
    "ravel in F order": lambda x: x.ravel("F"),
    "real": lambda x: x.real,
    "repeat": lambda x: x.repeat(1),
    "reshape": lambda x: x.reshape(3, 2),
    "reshape, copied": lambda x: x.reshape(3, 2, copy=True),
    "reshape of the transpose": lambda x: x.T.reshape(2, 3),
    "round": lambda x: x.round(3),
    "squeeze": lambda x: x.squeeze(),
    "sum over nothing": lambda x: x.sum(axis=()),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "T": lambda x: x.T,
    "T twice": lambda x: x.T.T,
    "take": lambda x: (x.take([0, 1], axis=0), x.take(0, axis=0)),
    "transpose": lambda x: (x.transpose(), x.transpose(1, 0), x.transpose((0, 1))),
    "view of a view": lambda x: (x[:, 1:], x[:, 1:].T, x[:, 1:].T[0]),
    "abs": abs,
    "a row, reversed twice": lambda x: x[0][::-1][::-1],
    "parts of the parts": lambda x: (x.real[0], x.T.imag[:, 1], x[1].real),
    "Fortran order": lambda x: (x.T * 2).T.reshape(-1),
}


@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("name", METHODS)
def test_methods_alias_like_numpy(name, kind):
    method = METHODS[name]
    values = [A if kind == "real" else C]
    bad = list(differences(lambda arrays: method(*arrays), lambda arrays: method(*arrays), values, [True]))
    assert not bad, "\n".join(bad)


# ---- numbers and arrays without axes -------------------------------------------------------------------------


NUMBERS = {
    "take": lambda x: np.take(x, 1),
    "take of a place": lambda x: np.take(x, np.argmax(x)),
    "take of an axis": lambda x: np.take(np.ravel(x), 0, axis=0),
    "median": np.median,
    "nanmedian": np.nanmedian,
    "quantile": lambda x: np.quantile(x, 0.3),
    "percentile": lambda x: np.percentile(x, 30.0),
    "nanquantile": lambda x: np.nanquantile(x, 0.3),
    "sum": np.sum,
    "max": np.max,
    "item": lambda x: x[1],
    "product": lambda x: np.dot(x, x),
    "trace": lambda x: np.trace(np.outer(x, x)),
    "norm": np.linalg.norm,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_scalars_share_no_memory(name):
    """A scalar of NumPy cannot be written to through another name or a view."""

    def f(x):
        number = NUMBERS[name](x)
        row = np.ravel(number)
        np.sin(row, out=row)
        other = number
        other += 2.0
        return np.sum(number) + 0.0 * np.sum(row)

    x = np.array([0.3, 0.7, 0.5])
    value, gradient = value_and_grad(f)(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-14)
    np.testing.assert_allclose(gradient, grad(lambda x: NUMBERS[name](x))(x), rtol=1e-14)


def test_tensordot_without_axes_returns_array():
    def f(x):
        made = np.tensordot(x, x, 1)
        other = made
        other += 1.0
        return made * 1.0

    x = np.array([0.3, 0.7])
    np.testing.assert_allclose(value_and_grad(f)(x)[0], f(x))


# ---- arrays without axes ---------------------------------------------------------------------------------------

#: Results that NumPy makes of an array ``v`` without axes, or of a number ``n``.
WITHOUT_AXES = {
    "astype": lambda np_, v, n: v.astype(float),
    "astype of a number": lambda np_, v, n: n.astype(float),
    "asarray": lambda np_, v, n: np_.asarray(n),
    "broadcast_arrays": lambda np_, v, n: np_.broadcast_arrays(n, n)[0],
    "copy": lambda np_, v, n: np_.copy(n),
    "clip": lambda np_, v, n: np_.clip(v, 0.0, 9.0),
    "full": lambda np_, v, n: np_.full((), n),
    "i0": lambda np_, v, n: np_.i0(n),
    "nan_to_num": lambda np_, v, n: np_.nan_to_num(v),
    "piecewise": lambda np_, v, n: np_.piecewise(v, [v > 0], [lambda t: t * t]),
    "product": lambda np_, v, n: v * n,
    "real_if_close": lambda np_, v, n: np_.real_if_close(n),
    "reshape": lambda np_, v, n: np_.reshape(n, ()),
    "select": lambda np_, v, n: np_.select([v > 0], [n]),
    "sum": lambda np_, v, n: np_.sum(v),
    "tensordot": lambda np_, v, n: np_.tensordot(v, n, 0),
    "transpose": lambda np_, v, n: v.T,
    "where": lambda np_, v, n: np_.where(v > 0, n, 0.0),
}


@pytest.mark.parametrize("transform", ["vjp", "jvp", "vmap"])
@pytest.mark.parametrize("name", WITHOUT_AXES)
def test_write_through_view_of_zero_dimensional_array(name, transform):
    """An array sees a write to its view; a number does not."""

    def f(np_, x):
        v = np_.array(np_.sum(x))
        made = WITHOUT_AXES[name](np_, v, np_.sum(x))
        row = np_.atleast_1d(made)
        row[0] = 7.0 * x[0]
        return made * 1.0, v * 1.0

    x = np.array([0.4, 0.3])
    if transform == "vjp":
        got = vjp(lambda x: f(fnp, x), x)[0]
    elif transform == "jvp":
        got = jvp(lambda x: f(fnp, x), (x,), (x,))[0]
    else:
        got = [out[0] for out in vmap(lambda x: f(fnp, x))(x[None])]
    np.testing.assert_array_equal(got, f(np, x))


def views_without_axes(np, z, square, x):
    one, part, other = z[1:2].reshape(()), z[:1].reshape(1, 1), np.reshape(z[:1], ())
    corner, row = np.squeeze(square[:1, :1]), np.expand_dims(square[0], 0)
    diagonal, turned = np.diagonal(square), np.moveaxis(square, 0, 1)
    z[1], z[0], square[0, 0], square[1, 0] = x[0], x[1], x[2] ** 2, x[1]
    return np.sum(z * x) + one * 2.0 + part[0, 0] + other + corner * 3.0 + np.sum(row + diagonal) + turned[0, 1] * x[2]


def test_views_without_axes_of_jax_arrays():
    """A view without axes of an array of JAX looks like a number, and still sees later writes."""
    x = np.array([0.5, 2.1, -1.3])
    plain = lambda x: views_without_axes(np, np.zeros(3), np.zeros((2, 2)), x)
    slope = [(plain(x + 1e-6 * e) - plain(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    for zeros in (fnp.zeros, lambda shape: fnp.copy(jnp.zeros(shape))):
        f = lambda x, zeros=zeros: views_without_axes(fnp, zeros(3), zeros((2, 2)), x)
        np.testing.assert_allclose(grad(f)(x), slope, rtol=1e-8)
        np.testing.assert_allclose(jvp(f, (x,), (x,))[1], slope @ x, rtol=1e-8)
