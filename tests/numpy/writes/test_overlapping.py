"""Writes whose two sides share memory: traced arrays end up with the contents of NumPy's arrays, in every mode.

NumPy reads everything before it writes, except for masks of all axes and ``x.flat``.
"""

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jvp, linearize, trace, vjp, vmap
from funcgrad.errors import InputError

X = np.array([0.5, -1.0, 2.0, 3.0])
M = np.ones(4, bool)
SQUARE = np.ones((2, 2), bool)

WRITES = {
    "mask": lambda v, a: v.__setitem__(M, v[::-1]),
    "mask in a tuple": lambda v, a: v.__setitem__((M,), v[::-1]),
    "mask in a list": lambda v, a: v.__setitem__(M.tolist(), v[::-1]),
    "mask and ellipsis": lambda v, a: v.__setitem__((M, ...), v[::-1]),
    "mask made inside": lambda v, a: v.__setitem__(fnp.zeros(4) < 1, v[::-1]),
    "mask of some": lambda v, a: v.__setitem__(np.array([False, True, True, True]), v[2::-1]),
    "mask to a view": lambda v, a: v[::-1].__setitem__(M, v),
    "mask in a part": lambda v, a: v[1:].__setitem__(M[1:], v[:-1]),
    "mask of itself": lambda v, a: v.__setitem__(M, v),
    "mask of one element": lambda v, a: v.__setitem__(M, v[1:2]),
    "mask of two axes": lambda v, a: a.__setitem__(SQUARE, a.reshape(-1)[::-1]),
    "mask of a transpose": lambda v, a: a.T.__setitem__(SQUARE, a.reshape(-1)),
    "mask of rows": lambda v, a: a.__setitem__(SQUARE[0], a[::-1]),
    "mask, in place": lambda v, a: v.__setitem__(M, v[M] + v[::-1]),
    "slice": lambda v, a: v.__setitem__(slice(None), v[::-1]),
    "integers": lambda v, a: v.__setitem__([0, 1, 2, 3], v[::-1]),
    "flat": lambda v, a: v.flat.__setitem__(slice(None), v[::-1]),
    "flat, backwards": lambda v, a: v.flat.__setitem__(slice(None, None, -1), v),
    "flat with a mask": lambda v, a: v.flat.__setitem__(M, v[::-1]),
    "flat with integers": lambda v, a: v.flat.__setitem__([0, 1, 2, 3], v[::-1]),
    "flat of two axes": lambda v, a: a.flat.__setitem__(slice(None), a.T),
    "putmask": lambda v, a: np.putmask(v, M, v[::-1]),
    "place": lambda v, a: np.place(v, M, v[::-1]),
    "copyto": lambda v, a: np.copyto(v, v[::-1], where=M),
    "put": lambda v, a: np.put(v, [0, 1, 2, 3], v[::-1]),
    "put_along_axis": lambda v, a: np.put_along_axis(v, np.arange(4), v[::-1], 0),
    "add.at": lambda v, a: np.add.at(v, [0, 1, 2, 3], v[::-1]),
    "out": lambda v, a: np.add(v[:3], v[1:], out=v[1:]),
    "out, where": lambda v, a: np.add(v, v[::-1], out=v, where=M),
    "in place": lambda v, a: v[1:].__iadd__(v[:-1]),
}


def written(write):
    def f(x):
        v, a = x * 1.0, (x * 2.0).reshape(2, 2)
        b = fnp.asfortranarray(a) * 1.0
        write(v, a)
        write(v[:] * 1.0, b)
        return np.concatenate([v, a.reshape(-1), b.reshape(-1)])

    return f


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_overlapping_writes_match_numpy(write):
    f = written(write)
    want = f(X)
    basis = np.stack([f(e) for e in np.eye(4)], 1)  # writes are linear
    for got in (vjp(f, X)[0], jvp(f, (X,), (X,))[0], linearize(f, X)[0], vmap(f)(X[None])[0], trace(f)(X)(X)):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(jvp(f, (X,), (X,))[1], basis @ X)
    np.testing.assert_array_equal(linearize(f, X)[1](X), basis @ X)
    weights = np.linspace(0.5, 1.5, len(want))
    np.testing.assert_allclose(grad(lambda x: fnp.dot(weights, f(x)))(X), weights @ basis, rtol=1e-14)
    np.testing.assert_allclose(
        hessian(lambda x: fnp.dot(weights, f(x) ** 2))(X), 2 * basis.T @ (weights[:, None] * basis), rtol=1e-14
    )


def test_overlapping_write_to_real_part_raises():
    def f(x):
        z = x * (1.0 + 2.0j)
        z.real[M] = z.real[::-1]
        return fnp.sum(z.real)

    with pytest.raises(InputError, match=r"both are real or imaginary parts .* x\[mask\] = y\.copy\(\)"):
        grad(f)(X)
