"""Random programs of views and writes: inside a transform every array ends up with its contents in NumPy.

The effects of writes show which objects are views, copies, or numbers without memory. The generator keeps each
statement that NumPy runs; if a transform refuses a program, the error must be one of those that say what to do.
"""

import warnings

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import jvp, linearize, vjp, vmap
from funcgrad.errors import ConcretizationError, InputError, ReadOnlyError

PROGRAMS, PER_TEST = 240, 20
X = np.linspace(0.4, 1.3, 4)
X.flags.writeable = False

BEGUN = """np.zeros((3, 4)); np.outer(x[:3], x); np.ones(4); x * 2.0; np.zeros((2, 3, 2))
    np.outer(x, x[:3]).T * 1.0; np.outer(x[:3], x)[None] * 1.0; np.zeros(()) + 0.0; np.zeros((1, 4))
    np.full((2, 2), 0.5); np.array(x[1]) * 1.0; x[:0] * 1.0; np.outer(x, x)[:, ::-1].copy()"""
INDICES = """0; -1; 1:; ::2; ::-1; ...; None; ..., 0; :, 1; 2:1; None, ...; [0, 1]; 1:3, 0; (); ..., None; :-1
    [-1]; 0, ::2; 3:; ::-2; -1::-1; 5::-1"""
MADE = """{a}[{i}]; {a}[{i}]; {a}[{i}][{j}]; {a}[{i}]; {a}.T; {a}.ravel(); {a}.reshape(-1); np.ravel({a})
    np.squeeze({a}); np.atleast_1d({a}); np.atleast_2d({a}); np.expand_dims({a}, 0); {a}.reshape(2, -1)
    {a}.swapaxes(0, -1); np.moveaxis({a}, 0, -1); {a}.flatten(); {a}.copy(); {a} * 1.0; np.transpose({a})
    np.flip({a}); np.roll({a}, 1); np.take({a}, 0); np.median({a}); np.sum({a}); np.sum({a}, axis=0)
    np.max({a}); np.real({a}); np.diagonal({a}); np.broadcast_to({a}, (2, *{a}.shape))
    np.reshape({a}, -1, order='F'); np.concatenate([np.ravel({a})]); np.stack([{a}, {a}]); np.array({a})
    np.copy({a}); np.split(np.ravel({a}), [1])[0]; np.hsplit({a}, 1)[0]; {a}.astype(float)
    {a}.astype(float, copy=False); np.nan_to_num({a}, copy=False); np.cumsum({a}); np.sort({a}); -{a}
    np.rot90({a}); np.rollaxis({a}, {a}.ndim - 1); np.clip({a}, -9, 9); np.trace(np.atleast_2d({a}))
    np.dot(np.ravel({a}), np.ravel({a})); np.einsum('...->...', {a}); np.squeeze({a}.T); np.append({a}, 1.0)
    np.vstack([{a}]); np.array_split(np.ravel({a}), 2)[1]; np.mean({a}, keepdims=True); np.quantile({a}, 0.5)
    np.fliplr(np.atleast_2d({a})); next(iter({a})); np.swapaxes({a}, -1, 0); np.delete(np.ravel({a}), 0)"""
WRITTEN = """{a}[{i}] = {b}; {a}[{i}] = x[0] * 0.7; {a}[{i}] += x[1]; {a}[{i}] *= 0.5; {a} += 0.3; {a} *= x[2]
    {a} -= {b}; np.sin({a}, out={a}); np.multiply({a}, x[1], out={a}); {a}[{i}] = np.sum({b}) * 0.1
    {a}.fill(0.25); {a}[{i}][{j}] = x[3]; np.copyto({a}, x[0]); np.put({a}, [0], x[2])
    {a}[{a} > 0.5] = x[0] * 0.1; np.add.at({a}, {i}, x[0]); {a}.sort(); {a}[{i}] = {a}[{j}]; {a}[...] = {b}
    {a}.T[{i}] = x[0]; np.fill_diagonal({a}, x[1]); {a}.reshape(-1)[0] = x[2]; np.negative({a}, out={a})
    {a} **= 2; {a} /= 1.5; {a}[{i}], {a}[{j}] = x[0], x[1]; np.cumsum({a}, axis=0, out={a})
    {a}.ravel()[-1] = x[1]; np.putmask({a}, {a} > 0.3, x[2]); np.exp({b} * 0.1, out={a})
    np.add({a}[{i}], 1.0, out={a}[{i}]); {a}[{i}] -= {a}[{j}]"""
BEGUN, INDICES, MADE, WRITTEN = [text.replace("\n", ";").split(";") for text in (BEGUN, INDICES, MADE, WRITTEN)]

MODES = {
    "vjp": lambda f: vjp(f, X)[0],
    "jvp": lambda f: jvp(f, (X,), (X,))[0],
    "linearize": lambda f: linearize(f, X)[0],
    "vmap": lambda f: [made[0] for made in vmap(f)(np.stack([X, X * 0.9]))],
    "vmap, last axis": lambda f: [made[0] for made in vmap(f, in_axes=-1)(np.stack([X, X * 0.9], -1))],
    "vjp of vmap, last axis": lambda f: [made[0] for made in vjp(vmap(f, in_axes=-1), np.stack([X, X * 0.9], -1))[0]],
    "vmap of jvp": lambda f: [made[0] for made in vmap(lambda x: jvp(f, (x,), (X,))[0])(np.stack([X, X * 0.9]))],
    "vmap of vmap, last axis": lambda f: [
        made[0, 0] for made in vmap(vmap(f, in_axes=-1), in_axes=-1)(np.stack([np.stack([X, X * 0.9], -1)] * 3, -1))
    ],
}


def run(lines, library, x):
    """Return everything that the program has made, by name."""
    scope = {"np": library, "x": x}
    for line in lines:
        exec(line, scope)
    return {name: value for name, value in scope.items() if name[0] == "v"}


def suits(lines):
    """Return whether NumPy runs the program with finite and small results."""
    try:
        made = run(lines, np, X)
    except Exception:
        return False
    return all(v.dtype == float and v.size < 200 and np.all(np.isfinite(v)) for v in made.values())


def program(number):
    rng = np.random.default_rng([0, number])
    pick = lambda texts: texts[rng.integers(len(texts))].strip()
    lines = [f"v0 = {pick(BEGUN)}", f"v1 = {pick(BEGUN)}"]
    names = ["v0", "v1"]
    for _ in range(rng.integers(4, 12)):
        a, b = (names[-min(rng.geometric(0.4), len(names))] for _ in range(2))
        new = rng.random() < 0.55
        text = pick(MADE if new else WRITTEN).format(a=a, b=b, i=pick(INDICES), j=pick(INDICES))
        name = f"v{len(names)}"
        line = f"{name} = {text}" if new else text
        if suits([*lines, line]):
            lines.append(line)
            names += [name] * new
    return lines


@pytest.mark.parametrize("first", range(0, PROGRAMS, PER_TEST))
def test_array_contents_match_numpy(first):
    ran = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(first, first + PER_TEST):
            lines = program(number)
            expected = list(run(lines, np, X).values())
            for mode, derive in MODES.items():
                try:
                    found = derive(lambda x, lines=lines: [v + 0.0 * x[0] for v in run(lines, fnp, x).values()])
                except (ConcretizationError, InputError, ReadOnlyError):
                    continue
                except (np.exceptions.AxisError, TypeError, ValueError):  # NumPy accepts these calls for numbers
                    if any(np.ndim(v) == 0 for v in expected):
                        continue
                    raise
                ran += 1
                for name, a, b in zip(run(lines, np, X), found, expected, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12, err_msg=f"{name}, {mode}: {lines}")
    assert ran > 2 * PER_TEST
