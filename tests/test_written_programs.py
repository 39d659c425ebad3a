"""Random programs that write to arrays after use agree with programs that make new arrays, in all modes.

A write in place must not change memory that another level uses: a record, a tangent, a batch or a graph may hold it.
"""

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import checkpoint, grad, hessian, jvp, linearize, vmap

SIZE = 4


def program(seed):
    """Return a function of an array that writes in place, or makes a new array for each write."""

    def run(x, in_place):
        rng = np.random.default_rng(seed)
        y = x * 1.0 if rng.random() < 0.5 else fnp.zeros(SIZE) + 0.0
        total, kept = 0.0, []
        for _ in range(rng.integers(2, 8)):
            i, j = (int(k) for k in rng.integers(0, SIZE, 2))
            value = [
                lambda i=i, j=j, y=y: x[i] * y[j],
                lambda i=i, j=j, y=y: fnp.sin(y[i]) + x[j],
                lambda: 0.5,
                lambda j=j, y=y: y[j] * 2.0,
                lambda i=i: x[i] ** 2,
                lambda i=i, j=j, y=y: y[i] * y[j],
            ][rng.integers(6)]()
            kind = rng.integers(4)
            if kind == 3:
                total = total + fnp.sum(y**2) * 0.3
            else:
                y = written(y, kind, min(i, j), max(i, j) + 1, value, in_place)
            if rng.random() < 0.3:
                kept.append(y * x)
            if rng.random() < 0.2:
                total = total + fnp.sum(fnp.tanh(y))
        return total + sum([fnp.sum(z**2) for z in kept], 0.0) + fnp.sum(y**3)

    return run


def written(y, kind, start, stop, value, in_place):
    """Return ``y`` after a write of one of three kinds."""
    if kind == 2:
        place, new = slice(start, stop), fnp.stack([value] * (stop - start))
    else:
        place, new = start, value if kind == 0 else y[start] + value
    if not in_place:
        return y.at[place].set(new)
    y[place] = new
    return y


MODES = {
    "grad": lambda f, x, t: grad(f)(x),
    "jvp": lambda f, x, t: jvp(f, (x,), (t,))[1],
    "jvp of grad": lambda f, x, t: jvp(grad(f), (x,), (t,))[1],
    "grad of jvp": lambda f, x, t: grad(lambda x: jvp(f, (x,), (t,))[1])(x),
    "grad of grad": lambda f, x, t: grad(lambda x: fnp.sum(grad(f)(x) * t))(x),
    "hessian": lambda f, x, t: hessian(f)(x),
    "vmap of grad": lambda f, x, t: vmap(grad(f))(np.stack([x, t])),
    "grad of vmap": lambda f, x, t: grad(lambda xs: fnp.sum(vmap(f)(xs) ** 2))(np.stack([x, t])),
    "linearize": lambda f, x, t: linearize(f, x)[1](t),
    "linearize of grad": lambda f, x, t: linearize(grad(f), x)[1](t),
    "vmap of jvp of grad": lambda f, x, t: vmap(lambda x: jvp(grad(f), (x,), (t,))[1])(np.stack([x, t])),
    "jvp of jvp of grad": lambda f, x, t: jvp(lambda x: jvp(grad(f), (x,), (t,))[1], (x,), (t,))[1],
    "grad of checkpoint": lambda f, x, t: grad(checkpoint(f))(x),
}


@pytest.mark.parametrize("mode", MODES)
def test_in_place_writes_equal_new_arrays(mode):
    rng = np.random.default_rng(1)
    for seed in range(25):
        run, (x, t) = program(seed), rng.normal(size=(2, SIZE)) * 0.7
        found = MODES[mode](lambda x, run=run: run(x, True), x, t)
        expected = MODES[mode](lambda x, run=run: run(x, False), x, t)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=f"program {seed}")
