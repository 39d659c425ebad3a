"""Arrays that a function made can be written to, with NumPy's view semantics, under every transform."""

import contextlib
import copy
import math
import threading
from array import array

import jax
import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import (
    checkpoint,
    checkpoint_chain,
    cond,
    custom_jvp,
    custom_vjp,
    fori_loop,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linearize,
    no_grad,
    scan,
    stop_gradient,
    tree,
    value_and_grad,
    vjp,
    vmap,
    while_loop,
)
from funcgrad.errors import ConcretizationError, EscapedTracerError, InputError, ReadOnlyError
from funcgrad.interop import from_jax, to_jax

pytestmark = pytest.mark.filterwarnings(
    "ignore:Setting the shape:DeprecationWarning"
)  # warning on plain arrays since NumPy 2.5
X = np.array([0.7, -1.2, 2.5, 0.4])


def complex_step(fun, x):
    """Return the Jacobian of a real function by NumPy's complex arithmetic."""
    columns = []
    for i in range(x.size):
        moved = x.astype(complex)
        moved[i] += 1e-30j
        columns.append(np.imag(fun(moved)) / 1e-30)
    return np.stack(columns, -1)


class Program:
    """Random statements over a pool of arrays: views, copies, writes; the same for NumPy and for tracers.

    Args:
        seed: seed of the program.
        statements: number of statements.
        staged: whether JAX can compile it: positions are integers and slices, and all memory is in C order.
    """

    def __init__(self, seed, statements=16, staged=False):
        self.seed, self.statements, self.staged = seed, statements, staged

    def __call__(self, x):
        rng = np.random.default_rng(self.seed)
        numpy = issubclass(type(x), np.ndarray)
        pool = [x * 1.0, (x * x).reshape(2, 2), (np if numpy else fnp).zeros((2, 2), x.dtype), x[:2] + x[2:]]
        if not self.staged:
            pool += [(x * 2.0).reshape(2, 2).T * 0.5, (np if numpy else fnp).zeros_like(pool[1].T)]
        for _ in range(self.statements):
            a, b = (pool[rng.integers(len(pool))] for _ in range(2))
            self.statement(rng, pool, a, b)
        return sum([(p * np.cos(np.arange(p.size).reshape(p.shape) + k)).sum() for k, p in enumerate(pool)])

    def statement(self, rng, pool, a, b):
        number = b.reshape(-1)[int(rng.integers(b.size))]
        index = self.index(rng, a)
        # NumPy's put, place and putmask do not check for overlapping memory: hence the copies
        statements = [
            lambda: pool.append(self.view(rng, a)),
            lambda: pool.append(a.copy()),
            lambda: pool.append((a.copy() if self.staged else a) + number),
            lambda: a.__setitem__(index, number * 0.5),
            lambda: a.__setitem__(index, self.fitting(a[index], b)),
            lambda: self.add(a, index, number * 0.3),
            lambda: self.multiply(a, index, self.fitting(a[index], b)),
            lambda: a.__iadd__(0.1 * self.fitting(a, b)),
            lambda: a.__imul__(0.9),
            lambda: a.__setitem__(..., self.fitting(a, b)),
            lambda: a.fill(number),
            lambda: np.copyto(a, self.fitting(a, b), where=np.arange(a.size).reshape(a.shape) % 2 == 0),
            lambda: np.put(a, [0, -1], b.copy()),
            lambda: np.putmask(a, np.arange(a.size).reshape(a.shape) % 3 == 0, b.copy()),
            lambda: a.flat.__setitem__(slice(None, None, 2), number),
            lambda: setattr(a, "flat", b.copy()),
            lambda: np.fill_diagonal(a, b.copy()) if a.ndim > 1 and len(set(a.shape)) == 1 else None,
        ]
        if not self.staged:
            statements += [
                lambda: pool.append(np.copy(a)),
                lambda: (a.__iadd__(0.37 * np.arange(a.size).reshape(a.shape)), a.sort()),  # avoids ties
                lambda: np.place(a, np.arange(a.size).reshape(a.shape) % 2 == 1, b.copy()),
                lambda: np.put_along_axis(a, np.zeros((1,) * a.ndim, int), number, axis=-1),
                lambda: self.reshape_in_place(a),
            ]
        statements[rng.integers(len(statements))]()

    @staticmethod
    def add(a, index, number):
        a[index] += number

    @staticmethod
    def reshape_in_place(a):
        with contextlib.suppress(AttributeError):  # the memory layout does not allow it
            a.shape = (a.size,) if a.ndim > 1 else (1, -1)

    @staticmethod
    def multiply(a, index, numbers):
        a[index] *= numbers

    @staticmethod
    def fitting(like, b):
        """Return numbers of ``b`` in the shape of ``like``."""
        if not np.ndim(like) if not hasattr(like, "shape") else not like.shape:
            return b.reshape(-1)[0]
        flat = b.reshape(-1)
        return flat[np.arange(like.size) % b.size].reshape(like.shape)

    def view(self, rng, a):
        choices = [
            lambda: a[1:],
            lambda: a[::-1],
            lambda: a.T,
            lambda: a.reshape(-1),
            lambda: a[None],
            lambda: a.ravel(),
        ]
        if a.ndim > 1:
            choices += [lambda: a[0], lambda: a[:, -1], lambda: a.swapaxes(0, 1), lambda: a.T.reshape(-1)]
            choices += [lambda: np.split(a, [1], axis=1)[1], lambda: list(a)[-1], lambda: np.moveaxis(a, 0, -1)]
        chosen = choices[rng.integers(len(choices))]()
        return chosen if chosen.size else a

    def index(self, rng, a):
        n = a.shape[0]
        choices = [0, -1, slice(None, None, 2), slice(1), ...]
        if not self.staged:
            choices += [np.array([0, n - 1, 0]), np.arange(n) % 2 == 0, [n - 1]]
        if a.ndim > 1:
            choices += [(0, 0), (slice(None), 0), (..., -1)]
            choices += [] if self.staged else [(np.array([0, n - 1]), 0)]
        return choices[rng.integers(len(choices))]


SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs(seed):
    program = Program(seed)
    value = program(X.copy())
    wanted = complex_step(program, X)
    scale = max(1.0, np.abs(wanted).max(), abs(value))
    out, pullback = vjp(program, X)
    np.testing.assert_allclose(out, value, rtol=1e-13, atol=1e-13 * scale)
    np.testing.assert_allclose(pullback(1.0)[0], wanted, rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(pullback(1.0)[0], wanted, rtol=1e-12, atol=1e-12 * scale, err_msg="the second time")
    t = np.array([0.3, -1.0, 0.8, 0.1])
    np.testing.assert_allclose(jvp(program, (X,), (t,))[1], wanted @ t, rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(linearize(program, X)[1](t), wanted @ t, rtol=1e-12, atol=1e-12 * scale)


@pytest.mark.parametrize("seed", SEEDS[:25])
def test_random_programs_in_second_order(seed):
    program = Program(seed, 10)
    wanted = complex_step(lambda x: complex_gradient(program, x), X)
    for nested in (hessian, lambda f: jacrev(grad(f)), lambda f: jacrev(jacfwd(f)), lambda f: jacfwd(jacfwd(f))):
        np.testing.assert_allclose(nested(program)(X), wanted, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(wanted).max()))


def complex_gradient(program, x):
    return grad(program, holomorphic=True)(x)


@pytest.mark.parametrize("seed", SEEDS[:25])
def test_random_programs_under_vmap(seed):
    program = Program(seed, 10)
    batch = np.stack([X, X[::-1], X * 1.5])
    values = np.array([program(x.copy()) for x in batch])
    slopes = np.stack([complex_step(program, x) for x in batch])
    scale = max(1.0, np.abs(slopes).max(), np.abs(values).max())
    np.testing.assert_allclose(vmap(program)(batch), values, rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(vmap(program, in_axes=1)(batch.T), values, rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(vmap(grad(program))(batch), slopes, rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(jacrev(lambda b: vmap(program)(b))(batch).sum(1), slopes, rtol=1e-11, atol=1e-11 * scale)


@pytest.mark.parametrize("seed", range(100, 105))
def test_random_programs_in_jax(seed):
    program = Program(seed, 10, staged=True)
    value, slopes = program(X.copy()), complex_step(program, X)
    scale = max(1.0, np.abs(slopes).max(), abs(value))
    # JAX's derivative of funcgrad's operations, and funcgrad's derivative, compiled
    got = jax.jit(jax.value_and_grad(to_jax(program)))(X)
    np.testing.assert_allclose(got[0], value, rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(got[1], slopes, rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(jax.jit(grad(program))(X), slopes, rtol=1e-12, atol=1e-12 * scale)


class ComplexProgram(Program):
    """A ``Program`` with complex arrays that also writes through views of real and imaginary parts."""

    def __call__(self, x):
        rng = np.random.default_rng(self.seed)
        numpy = issubclass(type(x), np.ndarray)
        z = (np if numpy else fnp).zeros((2, 2), complex)
        pool = [x * (1 + 0.5j), (x * x).reshape(2, 2) * 1j, z, (x[:2] + 1j * x[2:])[None].T * 1.0]
        pool += [z.real, pool[1].imag, pool[0].real[::2], pool[3].T.imag]
        for _ in range(self.statements):
            a, b = (pool[rng.integers(len(pool))] for _ in range(2))
            if a.dtype.kind == "f" and b.dtype.kind == "c":
                b = b.imag if rng.integers(2) else b.real
            if rng.integers(4):
                self.statement(rng, pool, a, b)
            elif a.dtype.kind == "c" and b.dtype.kind == "f":
                setattr(a, "imag" if rng.integers(2) else "real", self.fitting(a, b))
            else:
                pool.append(a.real[:1] if rng.integers(2) else a.conj())
        weighted = [p * np.cos(np.arange(p.size).reshape(p.shape) + k) * (1 - 0.7j) for k, p in enumerate(pool)]
        return sum([w.real.sum() for w in weighted])


@pytest.mark.parametrize("seed", SEEDS[:40])
def test_random_programs_with_complex_parts(seed):
    program = ComplexProgram(seed)
    with np.errstate(over="raise", invalid="raise"):
        value = program(X.copy())
        h = 1e-5
        slopes = np.array([program(X + h * e) - program(X - h * e) for e in np.eye(4)]) / (2 * h)
    scale = max(1.0, np.abs(slopes).max(), abs(value))
    out, pullback = vjp(program, X)
    (slope,) = pullback(1.0)
    t = np.array([0.3, -1.0, 0.8, 0.1])
    np.testing.assert_allclose(out, value, rtol=1e-13, atol=1e-13 * scale)
    np.testing.assert_allclose(slope, slopes, rtol=1e-7, atol=1e-7 * scale)
    np.testing.assert_allclose(jvp(program, (X,), (t,))[1], slope @ t, rtol=1e-12, atol=1e-12 * scale)
    np.testing.assert_allclose(vmap(grad(program))(np.stack([X, X]))[1], slope, rtol=1e-12, atol=1e-12 * scale)
    forward = jvp(grad(program), (X,), (t,))[1]
    np.testing.assert_allclose(vjp(grad(program), X)[1](t)[0], forward, rtol=1e-10, atol=1e-10 * scale)


# ---- targets of writes -------------------------------------------------------------------------------------


def check_in_all_modes(fun, x, want):
    """Check that the gradient of ``fun`` in reverse, forward, second-order and batched runs is ``want``."""
    np.testing.assert_allclose(grad(fun)(x), want, rtol=1e-13)
    np.testing.assert_allclose(jacfwd(fun)(x), want, rtol=1e-13)
    np.testing.assert_allclose(vmap(grad(fun))(np.stack([x, x]))[1], want, rtol=1e-13)
    np.testing.assert_allclose(grad(lambda x: vmap(fun)(x[None])[0])(x), want, rtol=1e-13)
    np.testing.assert_allclose(jvp(grad(fun), (x,), (x,))[0], want, rtol=1e-13)
    np.testing.assert_allclose(jax.jit(grad(fun))(x), want, rtol=1e-13)


def filled(x):
    y = fnp.zeros(4)
    for i in range(4):
        y[i] = x[i] ** 2
    return y.sum()


def accumulated(x):
    y = fnp.empty_like(x)
    y[...] = 0.0
    for i in range(4):
        y[i // 2] += x[i] * i
    return fnp.prod(y[:2])


def recurrence(x):
    a = fnp.zeros(5)
    for i in range(4):
        a[i + 1] = a[i] * x[i] + x[i]
    return a[4]


def clipped(x):
    y = x * 3.0
    y[x > 0.5] = 0.0
    return fnp.sum(y * y)


def rows(x):
    m = fnp.ones((3, 4))
    for row, factor in zip(m, (1.0, 2.0, 3.0), strict=True):  # iteration yields views
        row *= x * factor
    return fnp.sum(m * m)


def blocks(x):
    m = fnp.zeros((4, 4))
    upper, lower = np.split(m, 2)
    upper[:, :2] = x[:2]
    lower.T[2:] = x[2:, None] * x[2]
    return fnp.sum(m * m)


def swapped(x):
    y = x.copy()
    y[0], y[3] = y[3] * 2.0, y[0]
    y[[1, 2]] = y[[2, 1]] * 3.0
    return y @ np.arange(1.0, 5.0)


def sorted_in_place(x):
    y = x * 1.0
    y.sort()
    y[1:] -= y[:-1]
    return y @ np.arange(1.0, 5.0)


FILLING = {
    "filled": (filled, 2 * X),
    "accumulated": (accumulated, [0.0, 2 * 2.5 + 3 * 0.4, 2 * -1.2, 3 * -1.2]),
    "recurrence": (recurrence, None),
    "clipped": (clipped, np.where(X > 0.5, 0.0, 18 * X)),
    "rows": (rows, 2 * X * 14.0),
    "blocks": (blocks, None),
    "swapped": (swapped, [4.0, 9.0, 6.0, 2.0]),
    "sorted in place": (sorted_in_place, [-1.0, -1.0, 4.0, -1.0]),
}


@pytest.mark.parametrize("name", FILLING)
def test_loops(name):
    fun, want = FILLING[name]
    if want is None:
        h = 1e-6
        want = np.array([fun(X + h * e) - fun(X - h * e) for e in np.eye(4)]) / (2 * h)
        want = np.where(np.abs(grad(fun)(X) - want) < 1e-7, grad(fun)(X), want)
    if name in ("sorted in place", "clipped"):  # JAX does not know how many entries a mask selects; see the tests below
        np.testing.assert_allclose(grad(fun)(X), want, rtol=1e-13)
        np.testing.assert_allclose(jacfwd(fun)(X), want, rtol=1e-13)
        np.testing.assert_allclose(vmap(grad(fun))(np.stack([X, X]))[1], want, rtol=1e-13)
    else:
        check_in_all_modes(fun, X, want)


def test_write_with_batched_mask():
    batch = np.stack([X, -X, X[::-1]])
    want = np.where(batch > 0.5, 0.0, 18 * batch)
    np.testing.assert_allclose(vmap(grad(clipped))(batch), want, rtol=1e-14)
    np.testing.assert_allclose(jax.jit(vmap(grad(clipped)))(batch), want, rtol=1e-14)

    def assigned(x):  # one value for each True entry: the number of values must match the mask
        y = x * 1.0
        y[x < 0] = fnp.where(x < 0, x * x, 0.0)[x < 0]
        return y.sum()

    np.testing.assert_allclose(grad(assigned)(X), np.where(X < 0, 2 * X, 1.0))
    np.testing.assert_allclose(vmap(grad(assigned))(batch), np.where(batch < 0, 2 * batch, 1.0))


def test_write_with_batched_index():
    def f(x, i, y):
        a = fnp.zeros(4)
        a[i] = y
        a[i[0]] += x[0]
        return a * x

    i = np.array([[0, 1, 0], [3, 2, 2], [1, 1, 1]])
    y = np.arange(9.0).reshape(3, 3) + 0.5
    batch = np.stack([X, 2 * X, 3 * X])

    def one(x, i, y):
        a = np.zeros(4)
        a[i] = y
        a[i[0]] += x[0]
        return a * x

    want = np.stack([one(*args) for args in zip(batch, i, y, strict=True)])
    np.testing.assert_allclose(vmap(f)(batch, i, y), want)
    np.testing.assert_allclose(jax.jit(vmap(lambda x, y: f(x, i[0], y)))(batch, y)[0], want[0])
    pulled = vmap(lambda x, i, y: vjp(lambda y: f(x, i, y), y)[1](np.ones(4))[0])(batch, i, y)
    last = np.array([[False, True, True], [True, False, True], [False, False, True]])
    np.testing.assert_allclose(pulled, np.where(last, np.take_along_axis(batch, i, 1), 0.0))


def test_write_of_batched_value_to_unbatched_array():
    def f(x):
        table = fnp.zeros((2, 4))
        row = table[1]
        constant = fnp.ones(4)
        table[0] = constant
        row[:2] = x[0]
        constant[0] = 5.0  # the constant stays plain
        return table, constant

    table, constant = vmap(f, out_axes=(0, None))(np.stack([X, -X]))
    np.testing.assert_array_equal(table[:, 1], [[0.7, 0.7, 0, 0], [-0.7, -0.7, 0, 0]])
    np.testing.assert_array_equal(table[:, 0], 1.0)
    np.testing.assert_array_equal(constant, [5, 1, 1, 1])


def test_write_with_batch_axis_in_the_middle():
    matrix = np.arange(24.0).reshape(2, 4, 3)

    def f(m):
        a = m * 1.0
        b = a.T * 2.0
        b.T.reshape(-1)[1] = 9.0  # a view, since b has the same memory layout as a.T
        a.reshape(-1)[2] = b[0, 0]
        return a, b

    for axis in range(3):
        got = vmap(f, in_axes=axis)(matrix)
        want = [f_numpy(m) for m in np.moveaxis(matrix, axis, 0)]
        np.testing.assert_array_equal(got[0], np.stack([a for a, _ in want]))
        np.testing.assert_array_equal(got[1], np.stack([b for _, b in want]))


def f_numpy(m):
    a = m * 1.0
    b = a.T * 2.0
    b.T.reshape(-1)[1] = 9.0
    a.reshape(-1)[2] = b[0, 0]
    return a, b


# ---- values that a tape keeps ------------------------------------------------------------------------------


def test_write_to_saved_value():
    def f(x):
        y = x * 2.0
        z = y * y  # saves y
        y[...] = 100.0
        w = fnp.exp(x)  # saves its result
        w[0] = 0.0
        c = fnp.ones(4)
        v = x * c  # saves c
        c[1:] = 50.0
        c.fill(x[0])
        return fnp.sum(z) + fnp.sum(w) + fnp.sum(v) + 0 * fnp.sum(y)

    want = 8 * X + np.where(np.arange(4) == 0, 0.0, np.exp(X)) + 1.0
    check_in_all_modes(f, X, want)
    _, pullback = vjp(f, X)
    np.testing.assert_allclose(pullback(1.0)[0], want)
    np.testing.assert_allclose(pullback(2.0)[0], 2 * want)


def test_write_to_results_and_arguments_after_vjp():
    x = X.copy()

    def f(x):
        y = x * x
        y[0] = x[1] * x[2]
        return y

    out, pullback = vjp(f, x)
    want = pullback(np.ones(4))[0]
    out[...] = 0.0
    np.testing.assert_array_equal(pullback(np.ones(4))[0], want)
    ct = np.ones(4)
    pullback(ct)
    np.testing.assert_array_equal(ct, np.ones(4), err_msg="the caller's cotangent")
    _, push = linearize(f, X)
    np.testing.assert_allclose(push(np.ones(4)) @ np.ones(4), want @ np.ones(4))


@pytest.mark.parametrize("fun", [np.exp, lambda x: np.exp(x)[1:], lambda x: (-x, np.sqrt(x)), lambda x: x * 2.0])
@pytest.mark.parametrize("has_aux", [False, True])
def test_write_to_result_before_pullback(fun, has_aux):
    """A tape may need the result; a loss made in place, ``out -= target; pullback(out)``, is common."""

    def pair(x):
        out = fun(x)
        return (out, {"hidden": np.tanh(x), "out": out}) if has_aux else out

    x = np.array([1.0, 2.0, 3.0])
    for transform in (vjp, linearize):
        out, derivative, *aux = transform(pair, x, has_aux=has_aux)
        at = x if transform is linearize else copy.deepcopy(out)
        want = derivative(at)
        for leaf in tree.leaves((out, aux)):
            leaf[...] = 0.0
        np.testing.assert_array_equal(x, [1.0, 2.0, 3.0])
        for got, right in zip(tree.leaves(derivative(at)), tree.leaves(want), strict=True):
            np.testing.assert_array_equal(got, right)


@pytest.mark.counts
def test_unshared_result_is_not_copied():
    addresses = []

    def f(x):
        out = x * 2.0
        addresses.append(out._val.ctypes.data)
        return out

    assert vjp(f, np.ones(20))[0].ctypes.data == addresses[0]


def test_index_array_changed_after_write():
    index = np.array([0, 1])

    def f(x):
        y = fnp.zeros(4)
        y[index] = x[:2]
        index[...] = 3
        return y @ np.arange(1.0, 5.0)

    _, pullback = vjp(f, X)
    np.testing.assert_array_equal(pullback(1.0)[0], [1.0, 2.0, 0.0, 0.0])


def test_results_are_ndarrays():
    outs = []

    def f(x):
        y, z = fnp.zeros(2), x * 1.0
        z[0] = 3.0
        outs.append(y)
        return z.sum(), (y, z)

    _, aux = grad(f, has_aux=True)(X)
    assert [type(a) for a in aux] == [np.ndarray, np.ndarray]
    aux[0][0] = 7.0
    assert isinstance(jvp(lambda x: fnp.zeros(2), (X,), (X,))[0], np.ndarray)
    assert isinstance(vmap(lambda x: fnp.zeros(2))(np.ones((3, 2))), np.ndarray)


# ---- transforms inside transforms --------------------------------------------------------------------------


def test_inner_transform_writes_to_outer_array():
    def f(x):
        y = x * 2.0

        def inner(z):
            y[0] = x[1] * 3.0  # belongs to the outer transform, so nothing is lost
            return z * z * y[0]

        return grad(inner)(x[0]) + y[0]

    def same(x):
        return 2 * x[0] * x[1] * 3 + x[1] * 3

    np.testing.assert_allclose(grad(f)(X), [6 * X[1], 6 * X[0] + 3, 0, 0])
    np.testing.assert_allclose(hessian(f)(X), hessian(same)(X))


def test_write_of_inner_value_to_outer_array():
    def f(x):
        y = x * 2.0

        def inner(z):
            y[0] = z
            return z * y[0]

        slope = grad(inner)(x[1])
        return slope + y[0]

    with pytest.raises(EscapedTracerError, match="finished reverse transform"):
        grad(f)(X)

    held = []

    def g(x):
        if not held:
            held.append(fnp.zeros(3))
        held[0][0] = x[0]
        return fnp.sum(held[0])

    np.testing.assert_array_equal(grad(g)(X), [1, 0, 0, 0])
    with pytest.raises(EscapedTracerError):
        grad(g)(X)


def test_writes_in_no_grad():
    def f(x):
        y = x * 2.0
        with no_grad():
            view = y[1:]
            view[0] = x[0] * 10.0  # a constant; the other elements keep their derivative
            c = x * 5.0
            c[0] = 1.0
            with pytest.raises(ReadOnlyError):
                x.reshape(2, 2)[0] = 0.0
        c[1] = x[1]
        return fnp.sum(y) + fnp.sum(c)

    np.testing.assert_array_equal(grad(f)(X), [2.0, 1.0, 2.0, 2.0])
    np.testing.assert_array_equal(jacfwd(f)(X), [2.0, 1.0, 2.0, 2.0])

    def g(x):
        y = stop_gradient(x * 1.0)
        with pytest.raises(ReadOnlyError):
            y[0] = 1.0
        y = y.copy()
        y[1] = x[0]
        return fnp.sum(y * y)

    np.testing.assert_allclose(grad(g)(X), [2 * X[0], 0, 0, 0])


def test_ndarray_of_buffer_is_read_only():
    x = X.copy()

    def f(x):
        c = fnp.ones(4)
        y = x * c
        for made in (np.asarray(c), np.asarray(stop_gradient(x))):
            with pytest.raises(ValueError, match="read-only"):
                made[0] = 5.0
        np.array(c)[0] = 5.0
        c.fill(3.0)
        return fnp.sum(y) + fnp.sum(c * x)

    np.testing.assert_array_equal(grad(f)(x), 4.0)
    np.testing.assert_array_equal(x, X)


def test_writes_in_checkpoint():
    @checkpoint
    def step(a, x):
        a = a.copy()
        for i in range(1, 4):
            a[i] = a[i - 1] * x[i] + 1.0
        return a

    def f(x):
        a = fnp.zeros(4)
        a[0] = x[0]
        for _ in range(3):
            a = step(a, x)
        return fnp.sum(a * a)

    def plain(x):
        a = fnp.zeros(4)
        a[0] = x[0]
        for _ in range(3):
            for i in range(1, 4):
                a[i] = a[i - 1] * x[i] + 1.0
        return fnp.sum(a * a)

    np.testing.assert_allclose(grad(f)(X), grad(plain)(X), rtol=1e-13)
    np.testing.assert_allclose(hessian(f)(X), hessian(plain)(X), rtol=1e-12)


def test_custom_rules_that_write():
    @custom_vjp
    def f(x):
        y = fnp.zeros_like(x)
        y[1:] = x[1:] * 2.0
        return y

    def forward(x):
        return f(x), x

    def backward(x, ct):
        g = fnp.zeros_like(ct)
        g[1:] = ct[1:] * 2.0
        return (g,)

    f.defvjp(forward, backward)
    want = [0.0, 2.0, 2.0, 2.0]
    np.testing.assert_array_equal(grad(lambda x: fnp.sum(f(x)))(X), want)
    np.testing.assert_array_equal(vmap(grad(lambda x: fnp.sum(f(x))))(np.stack([X, X]))[1], want)
    np.testing.assert_array_equal(jacrev(lambda x: grad(lambda x: fnp.sum(f(x) * x))(x))(X), np.diag([0.0, 4, 4, 4]))

    @custom_vjp
    def wicked(x):
        x[0] = 1.0
        return x

    wicked.defvjp(lambda x: (wicked(x), None), lambda res, ct: (ct,))
    with pytest.raises(InputError, match="wicked: the function writes into an array that it was given"):
        grad(lambda x: fnp.sum(wicked(x * 1.0)))(X)


def test_writes_in_threads():
    results = {}

    def work(k):
        def f(x):
            a = fnp.zeros(200)
            for i in range(200):
                a[i] = a[i - 1] * 0.5 + x[i % 4] * k
            return fnp.sum(a)

        results[k] = grad(f)(X)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(2, 5):
        np.testing.assert_allclose(results[k], k * results[1], rtol=1e-12)


# ---- refusals ----------------------------------------------------------------------------------------------


def raises(error, change, *parts):
    for run in (grad, lambda f: lambda x: jvp(f, (x,), (x,)), lambda f: lambda x: vmap(f)(x[None])):
        with pytest.raises(error) as caught:
            run(lambda x: (change(x), fnp.sum(x))[1])(X)
        for part in (*parts, f"at {__file__}:"):
            assert part in str(caught.value), part


def assign(a, index, y):
    a[index] = y


def test_write_to_read_only_values_raises():
    pure = "A function that changes its arguments is not pure; write to a copy: x = x.copy()."
    raises(ReadOnlyError, lambda x: assign(x, 0, 1.0), "x[i] = y: an argument of a transformed function", pure)
    raises(ReadOnlyError, lambda x: assign(x[1:], 0, 1.0), pure)
    raises(ReadOnlyError, lambda x: assign(x.reshape(2, 2).T, 0, x[0]), pure)
    raises(ReadOnlyError, lambda x: assign(np.diagonal((x * 1).reshape(2, 2)), 0, 1.0), "that NumPy makes read-only")
    raises(ReadOnlyError, lambda x: assign(fnp.broadcast_to(x * 1, (2, 4)), 0, 1.0), "that NumPy makes read-only")
    number = "a number cannot be written to, got float64[]"
    raises(ReadOnlyError, lambda x: assign(x.sum(), (), 1.0), number, "Give the name a new value instead: x = y.")
    raises(ReadOnlyError, lambda x: assign((x * 1)[0], ..., 1.0), number)


@pytest.mark.usefixtures("written")
def test_unwritable_values_raise():
    raises(
        InputError,
        lambda x: assign(fnp.zeros(4, int), 0, x[0]),
        "traced numbers are written to an array of dtype int64, which would cut the derivative, got float64[]",
        "Make the array with dtype=float; where rounding is meant, write y.astype('int64').",
    )
    raises(
        InputError,
        lambda x: assign(x * 1, 0, x[0] * 1j),
        "complex numbers are written to an array of dtype float64, got complex128[]",
        "Make the array with dtype=complex, or write y.real.",
    )
    raises(InputError, lambda x: assign(x * 1, 0, "text"), "only numbers can be written, got str 'text'")
    raises(InputError, lambda x: assign(fnp.zeros(3, int), 0, None), "only numbers can be written, got None")
    raises(
        ConcretizationError,
        lambda x: assign(np.zeros(4), 0, x[0]),
        "For `a[i] = x` make a with funcgrad.numpy.zeros, empty or copy (not numpy's)",
    )

    def add(x):
        y = fnp.zeros(4, int)
        y += x

    raises(InputError, add, "x += y: the result does not fit the dtype int64 of x", "Write x = x + y and the like")

    def stretch(x):
        y = x[:1] * 1
        y += x

    with pytest.raises(ValueError, match="non-broadcastable output operand with shape"):
        grad(lambda x: (stretch(x), x[0])[1])(X)
    for index, value, error, message in (
        (7, 1.0, IndexError, "index 7 is out of bounds for axis 0 with size 4"),
        ((0, 0), 1.0, IndexError, "too many indices"),
        (slice(0, 2), np.ones(3), ValueError, "could not broadcast input array from shape"),
        (np.array([0, 9]), X[:1], IndexError, "index 9 is out of bounds"),
        (np.ones(3, bool), 1.0, IndexError, "boolean index did not match"),
        (1.5, 1.0, IndexError, "only integers"),
    ):
        for given in (value, lambda x, value=value: value * x[0]):
            with pytest.raises(error, match=message):
                grad(lambda x, i=index, v=given: (assign(x * 1, i, v(x) if callable(v) else v), x[0])[1])(X)


def test_write_of_list_of_tracers():
    def f(x):
        y = fnp.zeros((2, 2))
        y[0] = [x[0], 2.0]
        y[1] = (x[1] * x[1], x[2])
        return fnp.sum(y * y)

    np.testing.assert_allclose(grad(f)(X), [2 * X[0], 4 * X[1] ** 3, 2 * X[2], 0.0])


def test_writes_keep_dtype():
    def f(x):
        y = fnp.zeros(4, np.float32)
        y[:2] = x[:2]
        y *= 2.0
        return y.sum()

    slope = grad(f)(X)
    assert slope.dtype == np.float64
    np.testing.assert_array_equal(slope, [2, 2, 0, 0])
    single = grad(lambda x: fnp.sum(np.add(x, 1.0) * x.at[0].set(3.0)))(X.astype(np.float32))
    assert single.dtype == np.float32
    integers = vmap(lambda n: (lambda a: (assign(a, n, 5), a)[1])(fnp.zeros(3, int)))(np.arange(3))
    np.testing.assert_array_equal(integers, 5 * np.eye(3, dtype=int))


def test_checkpoint_rerun_writes():
    """No transform runs during the backward pass, but the repeated run makes its arrays as the first run did."""

    def fill(x):
        y = fnp.zeros(3)
        y[0] = fnp.sin(x[0])
        y[1:] = x[1:] * y[0]
        fnp.add(y, x, out=y, where=np.array([True, False, True]))
        return fnp.sum(y * y)

    x = np.array([0.3, -0.7, 1.1])
    marked = checkpoint(fill)
    want = grad(fill)(x)
    np.testing.assert_array_equal(grad(marked)(x), want)
    np.testing.assert_array_equal(vjp(marked, x)[1](1.0)[0], want)
    np.testing.assert_allclose(hessian(marked)(x), hessian(fill)(x), rtol=1e-14)
    np.testing.assert_array_equal(vmap(grad(marked))(np.stack([x, x])), [want, want])


VIEWED = {
    "argument": lambda x, mark, f: mark(f)(x),
    "transposed argument": lambda x, mark, f: mark(f)(x.T),
    "intermediate": lambda x, mark, f: mark(f)(x * 2.0),
    "transposed": lambda x, mark, f: mark(f)((x * 2.0).T),
    "a view of a view": lambda x, mark, f: mark(f)((x * 2.0)[1:].T[::-1]),
    "closed over": lambda x, mark, f: (lambda y: mark(lambda x: f(y) * np.sum(x))(x))((x * 2.0).T),
    "a constant": lambda x, mark, f: mark(lambda x, y: f(y) * np.sum(x))(x, fnp.ones((2, 3)).T),
}


def halved(y):
    """Write to a part of a view, which changes the base array."""
    y = y * 1.0
    y.T[0] *= 0.5
    return y


def overwritten(y):
    y[0] = y[1] * y[1]
    y.T[0] *= 0.5
    return y * 1.0


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("step", [np.ravel, np.copy, lambda y: np.ravel(y, "F"), np.transpose, halved, overwritten])
@pytest.mark.parametrize("given", VIEWED)
def test_checkpoint_rerun_keeps_memory_layout(given, step, axis):
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    x = np.moveaxis(x, 0, axis)

    def loss(x, mark):
        each = vmap(lambda x: VIEWED[given](x, mark, step), in_axes=axis)(x)
        return fnp.sum(np.sin(each) ** 2)

    if step is overwritten and "argument" in given:
        with pytest.raises(ReadOnlyError):
            grad(lambda x: loss(x, checkpoint))(x)
        return
    want = grad(lambda x: loss(x, lambda f: f))(x)
    np.testing.assert_allclose(grad(lambda x: loss(x, checkpoint))(x), want, 1e-12)
    one = lambda x, mark: fnp.sum(np.sin(VIEWED[given](x, mark, step)) ** 2)
    first = np.moveaxis(x, axis, 0)[0]
    np.testing.assert_allclose(grad(one)(first, checkpoint), grad(one)(first, lambda f: f), 1e-12)


@pytest.mark.parametrize("n", [3, 2000])
def test_write_to_checkpoint_argument_afterwards(n):
    """The repeated run uses the original values: comparing a few numbers would not detect every change."""

    def argument(x, mark):
        y = x * 2.0
        z = mark(np.sin)(y)
        y[1] = 7.0
        return fnp.sum(z * z)

    def closed_over(x, mark):
        y, ones = x * 2.0, fnp.ones(n)
        z = mark(lambda x: np.sin(x * y) * ones)(x)
        y[1] = ones[2] = 7.0
        return fnp.sum(z * z)

    def view(x, mark):
        y = fnp.ones(n)
        part = y[1:]
        z = mark(lambda x, y: x * y * y)(x, y)
        part *= 3.0
        return fnp.sum(z * z)

    def inside(x, mark):
        def change(y, ones):
            y *= y
            y[1] += 3.0
            ones += y
            return np.sin(y) * ones

        y, ones = x * 2.0, fnp.ones(n)
        z = mark(change)(y, ones)
        return fnp.sum(z * y) + fnp.sum(ones * ones)

    x = np.linspace(0.2, 1.0, n)
    for fun in (argument, closed_over, view, inside):
        want = grad(lambda x, fun=fun: fun(x, lambda f: f))(x)
        np.testing.assert_allclose(grad(fun)(x, checkpoint), want, 1e-12, err_msg=fun.__name__)
        _, pullback = vjp(lambda x, fun=fun: fun(x, checkpoint), x)
        for _ in range(2):
            np.testing.assert_allclose(pullback(np.float64(1.0))[0], want, 1e-12, err_msg=fun.__name__)


@pytest.mark.parametrize("endless", [False, True])
def test_write_to_chain_argument_afterwards(endless):
    def last(x, later):
        w, xs, h = x * 2.0, fnp.stack([x, x * x, x]), x * 1.0
        items = iter(list(xs)) if endless else xs
        out = checkpoint_chain(lambda h, x, w: np.sin(h * x * w), h, items, budget=1, args=(w,))
        if later:
            w[1] = xs[1, 1] = h[1] = 5.0
        return fnp.sum(out * out)

    x = np.linspace(0.2, 1.0, 2000)
    np.testing.assert_array_equal(grad(last)(x, True), grad(last)(x, False))


@pytest.mark.parametrize("budget", [0, 1, 20])
def test_chain_steps_write_to_carry(budget):
    def step(h, w):
        h *= w
        h[1:] += h[:-1]
        return h

    def last(x, budget):
        h, factors = x * 1.0, np.linspace(0.9, 1.1, 12)
        if budget is None:
            for w in factors:
                h = step(h, w)
        else:
            h = checkpoint_chain(step, h, factors, budget=budget)
        return fnp.sum(h * h)

    x = np.linspace(0.2, 1.0, 2000)
    np.testing.assert_array_equal(grad(last)(x, budget), grad(last)(x, None))


def test_zero_dimensional_array_stays_writable():
    """After a traced number was written to it, it can be written to again, and all references see that."""

    def f(x, xp=fnp):
        t = xp.zeros(())
        t[()] = x
        u = t
        t[()] = t * 2
        t += 1.0
        v = t[...]
        v *= x
        return u * x

    assert f(3.0, np) == 63.0
    value, pullback = vjp(f, 3.0)
    assert (value, pullback(1.0)[0]) == (63.0, 60.0)
    assert jvp(f, (3.0,), (1.0,)) == (63.0, pullback(1.0)[0])
    np.testing.assert_array_equal(vmap(f)(np.array([3.0, 4.0])), [63.0, f(4.0, np)])


@pytest.mark.parametrize(
    ("index", "count"),
    [
        (np.array([0, -4]), 2),  # the same element twice: the axis has four
        (np.array([0, -3]), 2),
        ((slice(None), np.array([1, -2])), (4, 2)),
        ((np.array([0, 0, 1]), np.array([1, 2, 1])), 3),
        ((np.array([0, 0, 0]), np.array([1, 2, -2])), 3),
        ((np.array([[0], [1]]), np.array([1, 2])), (2, 2)),
        ((np.array([[0], [0]]), np.array([1, 2])), (2, 2)),
        (np.array([[True, False, True]] * 2 + [[False] * 3] * 2), 4),
        ((slice(1, 3), np.array([True, False, True])), (2, 2)),
    ],
)
def test_write_with_repeated_indices(index, count):
    """The last of several writes to an element counts, for the value and for the gradient of the written values."""
    values = np.arange(1.0, 1.0 + np.prod(count)).reshape(count)
    if type(index) is np.ndarray and index.dtype != bool:
        values = np.outer(values, [1.0, 10.0, 100.0])
    weights = np.random.default_rng(0).normal(size=(4, 3))

    def f(y):
        x = fnp.ones((4, 3))
        x[index] = y
        return fnp.sum(x * weights)

    plain = np.ones((4, 3))
    plain[index] = values
    measured = np.empty_like(values)
    for place in np.ndindex(values.shape):
        moved, other = values.copy(), np.ones((4, 3))
        moved[place] += 1.0
        other[index] = moved
        measured[place] = np.sum(other * weights) - np.sum(plain * weights)
    value, gradient = value_and_grad(f)(values)
    np.testing.assert_allclose(value, np.sum(plain * weights), rtol=1e-15)
    np.testing.assert_allclose(gradient, measured, atol=1e-12)


@pytest.mark.parametrize("index", [np.array([5, -99_995]), np.array([5, -99_994])])
def test_write_with_few_repeated_indices_in_large_array(index):
    def f(y):
        x = fnp.zeros(100_000)
        x[index] = y
        return fnp.sum(x)

    expected = [0.0, 1.0] if index[0] == index[1] % 100_000 else [1.0, 1.0]
    np.testing.assert_array_equal(grad(f)(np.ones(2)), expected)


COPY_ON_WRITE = {
    "at": lambda v: np.add.at(v, [0], 1.0),
    "at of one argument": lambda v: fnp.negative.at(v, [0]),
    "at of a view": lambda v: fnp.add.at(v[:1], [0], 1.0),
    "two outs": lambda v: fnp.modf(np.full(2, 1.5), out=(v, None)),
    "where": lambda v: fnp.add(v, 1.0, out=v, where=np.array([True, False])),
    "reduce": lambda v: fnp.add.reduce(np.ones((3, 2)), axis=0, out=v),
    "accumulate": lambda v: fnp.add.accumulate(np.full(2, 3.0), out=v),
    "matmul": lambda v: fnp.matmul(np.ones((2, 2)), np.ones(2), out=v),
    "cumsum": lambda v: np.cumsum(np.full(2, 3.0), out=v),
    "put": lambda v: np.put(v, [0], 5.0),
    "sort": lambda v: v.sort(),
    "fill": lambda v: v.fill(4.0),
}


@pytest.mark.parametrize("change", COPY_ON_WRITE.values(), ids=list(COPY_ON_WRITE))
def test_tape_keeps_constant_from_before_write(change):
    def f(x):
        v = fnp.array([2.0, 1.0])
        y = fnp.sin(x) * v
        change(v)
        return y

    x = np.array([1.0, 0.5])
    np.testing.assert_allclose(jacrev(f)(x), np.diag(np.cos(x) * [2.0, 1.0]), rtol=1e-14)


@pytest.mark.parametrize("part", [lambda v: v[0], fnp.ravel], ids=["row", "ravel"])
@pytest.mark.parametrize(
    "write",
    [
        lambda v: fnp.multiply(v, 0.5, out=v, where=v > 0.3),
        lambda v: np.multiply(v, 0.5, out=v, where=np.array(True)),
        lambda v: fnp.multiply(v, 0.5, out=v),
        lambda v: fnp.add.at(v, [0, 0], 1.0),
    ],
    ids=["where", "of NumPy", "out", "at"],
)
def test_write_to_view_of_copy_leaves_original(part, write):
    def f(x):
        y = x * 1.0
        with no_grad():
            view = part(fnp.copy(y))
            write(view)
        return fnp.sum(y * y)

    x = np.array([[0.9, 0.8]])
    np.testing.assert_array_equal(grad(f)(x), 2 * x)


def test_write_to_view_in_no_grad_updates_base():
    def f(x):
        with no_grad():
            copied = fnp.copy(x * 1.0)
            row = copied[0]
            assert fnp.multiply(row, 10.0, out=row, where=row > 1.5) is row
            fnp.add.at(row, [0, 0], 1.0)
        return fnp.sum(x) * fnp.sum(copied)

    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(grad(f)(x), np.full((2, 2), 3.0 + 20.0 + 7.0))


def test_scalar_result_has_no_views():
    def f(x):
        y = fnp.interp(x, [-1.0, 0.5, 2.0], [0.0, 3.0, 4.0])
        row = fnp.ravel(y)
        row += x
        return y

    for x in (1.0, np.float64(1.0), np.array(1.0)):
        assert f(x) == value_and_grad(f)(x)[0]
        np.testing.assert_allclose(grad(f)(x), 1 / 1.5, rtol=1e-15)


def test_reading_view_of_argument_writes_nothing():
    def f(x):
        with no_grad():
            fnp.add(x[0], 1.0, dtype=np.float64)
        return fnp.sum(x[1] * 2.0)

    x = np.array([[np.nan, 1.0], [1.0, 2.0]])
    np.testing.assert_array_equal(grad(f)(x), [[0.0, 0.0], [2.0, 2.0]])


@pytest.mark.parametrize("operation", [fnp.multiply, fnp.divide, fnp.power, fnp.arctan2, fnp.maximum, fnp.hypot])
@pytest.mark.parametrize("swapped", [False, True])
def test_write_to_batched_constant_after_use(operation, swapped):
    """The tape keeps the values from before the write."""

    def fun(x, data, change):
        constant = data * 2.0
        y = operation(constant, x) if swapped else operation(x, constant)
        change(constant)
        return fnp.sum(y * y)

    xs, data = np.abs(X) * np.ones((2, 4)), np.arange(1.0, 9.0).reshape(2, 4) / 5.0
    wanted = vmap(grad(lambda x, d: fun(x, d, lambda c: None)))(xs, data)
    found = vmap(grad(lambda x, d: fun(x, d, lambda c: c.__setitem__(..., 0.0))))(xs, data)
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


@custom_vjp
def doubled(x):
    return x * 2.0


doubled.defvjp(lambda x: (x * 2.0, None), lambda _, ct: (ct * 2.0,))


@custom_jvp
def tripled(x):
    return x * 3.0


tripled.defjvp(lambda primals, tangents: (tripled(*primals), tangents[0] * 3.0))

#: Functions that a transform sees as one operation.
WHOLE = {
    "fori_loop": lambda x: fori_loop(0, 2, lambda _, c: 0.8 * c + 0.1, x),
    "scan": lambda x: scan(lambda c, _: (c * 0.8, c), x, None, length=3)[1],
    "cond": lambda x: cond(fnp.sum(x) > 0.0, lambda x: x * 2.0, lambda x: x * 3.0, x),
    "while_loop": lambda x: while_loop(lambda c: fnp.sum(c) < 9.0, lambda c: c * 1.5, x),
    "custom_vjp": doubled,
    "custom_jvp": tripled,
    "from_jax": from_jax(lambda x: jax.numpy.sin(x) * 2.0),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("whole", WHOLE.values(), ids=WHOLE)
def test_write_to_constant_made_in_no_grad(whole, within, compiled):
    """Results behave like those of all other operations, whichever array library computes them."""

    def write(y, x):
        y[..., 0] = x[1] * 5.0
        fnp.multiply(y, 2.0, out=y)

    def f(x):
        with no_grad():
            y = whole(x)
            if within:
                write(y, x)
        if not within:
            write(y, x)
        return fnp.sum(y * x)

    x = X + 1.0
    y = np.array(whole(x))
    write(y, x)
    rows = y.reshape(-1, len(x))
    wanted = rows.sum(0) + (0.0 if within else 10.0 * len(rows) * x[0] * np.eye(len(x))[1])
    np.testing.assert_allclose((jax.jit(grad(f)) if compiled else grad(f))(x), wanted, rtol=1e-12)


def test_last_of_repeated_writes_counts_in_batch():
    """Along several axes NumPy writes in memory order: a batch of reversed indices in reversed order."""
    rows = np.random.default_rng(0).integers(0, 3, (4, 7))
    values = np.arange(7.0)

    def written(places, values):
        out = np.zeros(3)
        out[places[::-1]] = values[::-1]
        return out

    want = [written(row, values) for row in rows]
    np.testing.assert_array_equal(vmap(written, in_axes=(0, None))(rows, values), want)
    np.testing.assert_array_equal(
        vmap(vmap(written, in_axes=(0, None)), in_axes=(0, None))(rows[None], values)[0], want
    )
    moved = jvp(lambda v: vmap(written, in_axes=(0, None))(rows, v), (values,), (values,))
    np.testing.assert_array_equal(moved, [want, want])


def test_resize_in_place():
    def fun(x):
        a, b = x * x, np.ones(2)
        a.resize(3)
        b.resize((2, 2))
        b[1] = a[1:]
        a.resize(1)
        b[:1].resize(2, 1)  # a view, whose memory stays as it is
        return b.sum() * a[0]

    x = np.array([2.0, 3.0])
    assert fun(x) == 44.0
    np.testing.assert_array_equal(grad(fun)(x), [44.0, 24.0])
    np.testing.assert_array_equal(vmap(grad(fun))(np.stack([x, -x])), [[44.0, 24.0], [-44.0, -24.0]])
    for change in (lambda a: a[:2].resize(1), lambda a: a.T.resize(9), lambda a: (a[1:], a.resize(1))):
        with pytest.raises(ValueError, match=r"cannot resize this array|references or is referenced"):
            grad(lambda x, change=change: change(fnp.outer(x, x)[0:]) or x[0])(x)


def test_writing_none_gives_nan():
    for dtype in (float, np.float32, complex):

        def f(x, dtype=dtype):
            y = fnp.zeros(4, dtype)
            y[0] = x
            y[1] = y[2:] = None
            return y

        y = np.zeros(4, dtype)
        y[0], y[1], y[2:] = 2.0, None, None
        value, pull = vjp(f, np.asarray(2.0, dtype))
        np.testing.assert_array_equal(value, y)
        assert pull(np.ones(4, dtype))[0] == 1.0


def test_writes_to_arrays_from_outside_of_a_recorded_function():
    x, y = np.array([0.5, 2.1, -1.3]), np.array([0.7, 1.2, 0.4])

    def around(x):
        def inner(y):
            a, b, c, d = fnp.copy(y), fnp.zeros(3), x * 1.0, fnp.copy(x)
            a[0], b[1], b[2] = x[0], x[1], y[2]
            c[0], c[1], d[1] = y[0], 2.0, y[1]
            return fnp.sum(a * b * c * d)

        return inner

    plain = lambda x: around(x)(y)
    columns = [(plain(x + 1e-5 * e) - plain(x - 1e-5 * e)) / 2e-5 for e in np.eye(3)]
    recorded = lambda x: jit(around(x))(y)
    for slope in (grad(recorded), jacfwd(recorded), lambda x: vmap(grad(recorded))(x[None])[0]):
        np.testing.assert_allclose(slope(x), columns, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("numbers", [range(3, 5), array("d", [3.0, 4.0]), memoryview(np.array([3.0, 4.0]))])
def test_writes_of_ranges_and_of_arrays_of_python(numbers):
    def f(x):
        y = np.zeros(3)
        y[0] = math.sin(x)
        y[1:] = numbers
        return (y * y[::-1]).sum() + y[1] * x

    assert grad(f)(0.5) == pytest.approx(8.0 * math.cos(0.5) + 3.0, rel=1e-14)
    assert vmap(grad(f))(np.array([0.5, 0.5])).tolist() == [grad(f)(0.5)] * 2
