"""Errors that random programs found in funcgrad, reduced to small tests."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special
from fuzz.eager import run_eagerly
from helpers import at_least, differences, identical, normal, traced
from scipy.spatial import distance

import funcgrad.numpy as fnp
from funcgrad import (
    associative_scan,
    check_grads,
    checkpoint,
    control,
    custom_jvp,
    custom_vjp,
    fori_loop,
    grad,
    hessian,
    hvp,
    jacfwd,
    jvp,
    linearize,
    no_grad,
    scan,
    stop_gradient,
    vjp,
    vmap,
    while_loop,
)
from funcgrad.errors import ConversionError, ReadOnlyError
from funcgrad.interop import jit, to_jax

X = np.array([2.0, 3.0])


def test_zero_dimensional_view_of_jax_array():
    """The view sees writes to its base, as in NumPy."""

    def f(x):
        base = np.ones_like(x)
        view, number = base[..., 0], base[0]
        base *= np.mean(x)
        return view + 10 * number

    assert f(X) == 12.5
    assert to_jax(f)(X) == 12.5
    assert jax.jit(to_jax(f))(X) == 12.5
    assert jvp(f, (X,), (X,)) == (12.5, 2.5)
    assert jax.jvp(to_jax(f), (X,), (X,)) == (12.5, 2.5)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "mean"])
def test_keepdims_result_of_constants_is_writable(name):
    def f(x):
        made = getattr(fnp, name)(fnp.ones_like(x), axis=0, keepdims=True)
        made *= x[:1]
        made[0] -= 0.5
        return fnp.sum(made)

    want = float(np.sum(getattr(np, name)(np.ones(2))) * 2 - 0.5)
    slope = [want / 2 + 0.25, 0.0]
    for fun in (f, to_jax(f), jit(f)):
        assert float(fun(X)) == want
    np.testing.assert_array_equal(grad(f)(X), slope)
    np.testing.assert_array_equal(jax.grad(to_jax(f))(X), slope)


def test_numpy_functions_of_constant_numbers_under_jit():
    def f(x):
        number = np.ones_like(x)[0]
        before = number
        number += 1  # a number has no memory: the name is rebound
        return np.tanh(before) * x + number

    np.testing.assert_allclose(jit(f)(X), np.tanh(1.0) * X + 2, rtol=1e-15)
    np.testing.assert_allclose(jax.jit(to_jax(f))(X), np.tanh(1.0) * X + 2, rtol=1e-15)

    def write(x):
        number = np.ones_like(x)[0]
        number[()] = 3.0
        return number

    with pytest.raises(ReadOnlyError, match="got"):
        jit(write)(X)


def own(fun, slope):
    f = custom_jvp(lambda x, s: fun(x) * s)
    f.defjvp(lambda xs, ts: (f(*xs), slope(xs[0]) * xs[1] * ts[0] + fun(xs[0]) * ts[1]))
    return f


def test_recursive_rule_under_vmap_and_jax_transforms():
    square = own(lambda x: x * x, lambda x: 3 * x)

    def f(x):
        return fnp.sum(vmap(square, in_axes=(0, None))(x, x[1]))

    want = grad(f)(X)
    np.testing.assert_allclose(want, [3 * 2 * 3, 3 * 3 * 3 + 4 + 9], rtol=1e-15)
    np.testing.assert_allclose(jax.grad(to_jax(f))(X), want, rtol=1e-15)
    np.testing.assert_allclose(jax.jit(jax.grad(to_jax(f)))(X), want, rtol=1e-15)
    np.testing.assert_allclose(jax.vmap(jax.grad(to_jax(f)))(jnp.stack([X, X])), [want, want], rtol=1e-15)


def test_custom_rules_run_twice():
    cube = custom_vjp(lambda x, s: x**3 * s)
    cube.defvjp(lambda x, s: (cube(x, s), (x, s)), lambda kept, ct: (ct * 2 * kept[0] * kept[1], ct * kept[0] ** 3))

    def slope(x):
        return grad(cube)(x, x)

    assert slope(1.5) == 4.5
    assert grad(slope)(1.5) == 6.0
    assert grad(checkpoint(slope))(1.5) == 6.0


def test_polymul_of_empty_polynomial():
    for first, second in (([], []), ([], [1.0, 2.0]), ([3.0], [])):
        first, second = np.array(first), np.array(second)
        value, slope = jvp(fnp.polymul, (first, second), (first, second))
        np.testing.assert_array_equal(value, np.polymul(first, second), strict=True)
        np.testing.assert_array_equal(slope, 0 * value)


def test_ravel_in_column_order_of_argument_is_a_copy():
    """The copy can be written to, on JAX arrays too; elements of a vector are a read-only view."""

    def f(x):
        made = np.reshape(x, (-1,), order="F")
        made[:-1] -= made[:-1] ** 2
        return made

    x = np.array([[0.5, 2.0], [-1.0, 3.0]])
    want = np.array([0.25, -2.0, -2.0, 3.0])
    for fun in (to_jax(f), jax.jit(to_jax(f)), lambda x: jvp(f, (x,), (x,))[0], lambda x: vmap(f)(x[None])[0]):
        np.testing.assert_array_equal(fun(x), want)
    with pytest.raises(ReadOnlyError, match="got"):
        to_jax(f)(X)
    with pytest.raises(ReadOnlyError, match="got"):
        jvp(f, (X,), (X,))


@pytest.mark.parametrize("make", [lambda np, x: np.delete(x, 0, axis=1), lambda np, x: np.repeat(x, 2, axis=1)])
def test_reshaped_parts_are_views(make):
    def f(x, np=fnp):
        made = make(np, x)
        made.reshape(-1)[::-1] *= 2 * x[0, 0]
        return np.sum(made**2)

    x = np.array([[0.5, 2.0, 1.5], [-1.0, 3.0, 0.5]])
    want = f(x, np)
    np.testing.assert_allclose(jvp(f, (x,), (x,)), [want, 4 * want], rtol=1e-14)
    np.testing.assert_allclose(vmap(f)(x[None]), [want], rtol=1e-14)
    np.testing.assert_allclose(grad(f)(x), jax.grad(to_jax(f))(x), rtol=1e-14)


@pytest.mark.parametrize(("indices", "axis"), [(7, 1), (0, 2), ([5], 2), ([[]], 2)])
def test_take_from_empty_array(indices, axis):
    """NumPy does not check positions if no element is read."""
    x, indices = np.zeros((0, 3, 0)), np.array(indices, int)
    want = np.take(x, indices, axis).shape
    assert jvp(lambda x: fnp.take(x, indices, axis), (x,), (x,))[1].shape == want
    assert to_jax(lambda x: np.take(x, indices, axis))(x).shape == want
    assert grad(lambda x: fnp.sum(fnp.take(x, indices, axis)))(x).shape == x.shape


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_take_from_empty_axis(mode):
    with pytest.raises(IndexError):
        vmap(lambda x: fnp.take(x, 0, 1, mode=mode))(np.zeros((2, 3, 0)))
    with pytest.raises(IndexError):
        grad(lambda x: fnp.sum(fnp.take(x, 7, 0)))(np.zeros((2, 0)))


def test_zero_dimensional_constants_are_writable():
    def f(x):
        y, z = np.ones_like(x), np.zeros_like(x)
        np.putmask(y, y > 0.3, x * x)
        y[()] *= 2.0
        z += y
        return z

    x = np.array(1.5)
    for fun in (f, to_jax(f), jax.jit(to_jax(f))):
        assert float(fun(x)) == 4.5
    assert grad(f)(x) == jax.grad(to_jax(f))(x) == 6.0


def test_full_write_and_reversed_read():
    """A scatter in place of the write would crash the process when XLA compiles it."""

    def f(x):
        y = np.zeros_like(x)
        y[...] = x * x
        y[None, ::1] *= x[0]
        return y[::-1]

    for fun in (f, jax.jit(to_jax(f)), jit(f)):
        np.testing.assert_array_equal(fun(X), [18.0, 8.0])
    np.testing.assert_array_equal(jit(lambda x: grad(lambda x: x[:] @ x[::-1])(x)[::-1])(X), [4.0, 6.0])


C = np.array([1.0, 2.0, 3.0])
CUBES = {
    "grad": lambda c: grad(lambda z: np.sum(z**4) / 4)(c),
    "grad, aux": lambda c: grad(lambda z: (np.sum(z), z**3), has_aux=True)(c)[1],
    "jvp": lambda c: jvp(lambda z: z**3, (c,), (c,))[0],
    "tangent": lambda c: jvp(lambda z: z**3 / 3, (c,), (c,))[1],
    "vjp": lambda c: vjp(lambda z: z**3, c)[0],
    "pullback": lambda c: vjp(lambda z: z**3 / 3, C)[1](c)[0],
    "linearize": lambda c: linearize(lambda z: z**3 / 3, C)[1](c),
    "hvp": lambda c: hvp(lambda z: np.sum(z**4) / 12, (c,), (c,))[0],
    "vmap": lambda c: vmap(lambda z: z**3)(c),
    "vmap of a number": lambda c: vmap(lambda z: C**z, axis_size=1, in_axes=None)(3.0)[0],
    "jacfwd": lambda c: fnp.sum(jacfwd(lambda z: z**4 / 4)(c), axis=1),
    "fori_loop": lambda c: fori_loop(0, 2, lambda i, v: v * C, c),
    "while_loop": lambda c: while_loop(lambda v: v[2] < 27, lambda v: v * C, c),
    "scan": lambda c: scan(lambda _, x: (_, x**3), 0.0, c)[1],
    "associative_scan": lambda c: associative_scan(lambda a, b: a * b, fnp.stack([c, c, c]))[2],
}


@pytest.mark.parametrize("name", CUBES)
def test_results_of_inner_transforms_are_writable(name):
    """Results are like those of operations, except where only ordinary arrays go in, as for SciPy's functions."""

    def f(x):
        made = CUBES[name](fnp.array(C))
        view = made[1:]
        made[0] = x * x
        view *= x
        return made @ np.array([1.0, 10.0, 100.0])

    assert type(CUBES[name](C)) is np.ndarray
    np.testing.assert_allclose(jvp(f, (2.0,), (1.0,)), (5564.0, 2784.0), rtol=1e-14)
    np.testing.assert_allclose(grad(f)(2.0), 2784.0, rtol=1e-14)
    if name in ("grad", "while_loop"):
        np.testing.assert_allclose(jax.grad(to_jax(f))(2.0), 2784.0, rtol=1e-14)
    np.testing.assert_allclose(vmap(f)(np.array([2.0, 0.0])), [5564.0, 0.0], rtol=1e-14)
    np.testing.assert_array_equal(C, [1.0, 2.0, 3.0])
    given = []
    grad(lambda x: given.append(CUBES["jvp"](C)) or x)(1.0)
    assert type(given[0]) is np.ndarray


def test_write_to_inner_result_keeps_tape():
    def f(x):
        value, pullback = vjp(lambda z: fnp.exp(z) * 1.0, fnp.zeros(2))
        value[0] = x
        return fnp.sum(value) + pullback(np.ones(2))[0] @ X

    assert grad(f)(3.0) == 1.0
    assert jvp(f, (3.0,), (1.0,)) == (9.0, 1.0)


def test_custom_rules_that_make_constants():
    """A function around the rules is being transformed, too."""
    double = custom_vjp(lambda x: np.ones_like(x) * 2)
    double.defvjp(lambda x: (double(x), None), lambda _, ct: (fnp.full_like(ct, 3.0),))

    def f(x):
        made = -double(fnp.ones(2))
        made[0] = x
        return fnp.sum(made * x)

    assert grad(f)(3.0) == 4.0
    ones = jnp.ones(2)
    slope = vmap(lambda z: z * jax.grad(lambda u: jnp.sum(double(u)))(ones))
    np.testing.assert_array_equal(jax.jit(slope)(ones), np.full((2, 2), 3.0))


def test_custom_functions_of_abstract_constants():
    sine = custom_vjp(lambda x, s: np.sin(x) * s)
    sine.defvjp(lambda x, s: (sine(x, s), (x, s)), lambda kept, ct: (ct * np.cos(kept[0]) * kept[1], ct))

    def f(x):
        ones = np.ones_like(x)
        return x * sine(ones, np.mean(ones))

    np.testing.assert_allclose(jax.jit(jax.vmap(to_jax(f)))(np.stack([X, X]))[1], X * np.sin(1.0), rtol=1e-15)


def test_positions_of_complex_extrema_on_jax_arrays():
    z = np.array([[1 + 2j, 1 + 3j, 0j, 1 + 3j], [2, complex(1, np.nan), 3j, 0]])
    for name in ("argmax", "argmin", "nanargmax", "nanargmin"):
        for axis in (None, 1):
            got = getattr(fnp, name)(jnp.asarray(z), axis)
            np.testing.assert_array_equal(got, getattr(np, name)(z, axis))
    np.testing.assert_array_equal(fnp.partition(jnp.asarray(z[0]), 2), np.partition(z[0], 2))


INDICES = [np.s_[0], np.s_[..., 0], np.s_[0, 1, ...], np.s_[None, 1], np.s_[np.array(1)], np.s_[None, np.array(1)]]
INDICES += [np.s_[[0, 1]], np.s_[True], np.s_[..., np.array(0)], np.s_[1:, None, ::2], np.s_[np.array([True, False])]]
STEPS = [np.transpose, np.ravel, np.squeeze, np.real, np.flip, np.copy, lambda y: y[...], lambda y: y.reshape(-1)]


def kept(f, x):
    """Return the results of ``f`` in ``no_grad``, and on constants without a block."""
    found = []

    def g(x):
        found.append(no_grad(f)(x))
        found.append(f(fnp.array(stop_gradient(x))))
        return np.sum(x)

    grad(g)(x)
    return [[np.asarray(stop_gradient(part)) for part in parts] for parts in found]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("to_view", [False, True])
def test_views_of_parts_match_numpy(step, to_view):
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    for index in INDICES:

        def f(x, index=index):
            whole = x * 1.0
            part = step(whole[index])
            if to_view and part.ndim:
                part[...] = 0.5
            else:
                whole *= 2
            return part * 1.0, whole * 1.0

        want = f(x)
        for got in (*kept(f, x), jvp(f, (x,), (x,))[0]):
            for mine, right in zip(got, want, strict=True):
                np.testing.assert_array_equal(mine, right, err_msg=str(index))


def test_empty_polynomial_under_jit():
    np.testing.assert_array_equal(jax.jit(to_jax(lambda x: np.copy(np.polyval([], x)) + x))(X), X)


@pytest.mark.parametrize("reps", [(2, 1), (1, 2), 3, (2, 3)])
@pytest.mark.parametrize("like", [np.array(1.0), X])
def test_tile_result_is_writable(like, reps):
    def f(x):
        tiled = np.tile(np.full_like(x, 0.5), reps)
        np.multiply(tiled, 3.0, out=tiled, where=tiled > 0.3)
        tiled = tiled + np.sum(x)
        return np.sum(tiled**2)

    np.testing.assert_allclose(vjp(f, like)[0], f(like))
    np.testing.assert_allclose(grad(f)(like), run_eagerly(jax.grad(to_jax(f)), like))
    np.testing.assert_allclose(hessian(f)(like), run_eagerly(jax.hessian(to_jax(f)), like))


@pytest.mark.parametrize("part", [np.imag, fnp.imag, lambda x: x.imag])
def test_imag_of_real_array_is_writable(part):
    def fun(x):
        filled = np.ravel(part(2 * x))
        filled[0] = x * x
        return filled.sum()

    assert fun(np.float64(3.0)) == 9.0
    assert grad(fun)(3.0) == 6.0

    def of_array(x):
        part(2 * x)[0] = 1.0
        return x.sum()

    with pytest.raises(ReadOnlyError):
        grad(of_array)(np.ones(2))


def test_imag_of_real_number_in_no_grad():
    assert grad(lambda x: x * no_grad(lambda x: np.imag(x) + 2.0)(x))(3.0) == 2.0
    assert grad(lambda x: np.sum(x * no_grad(lambda x: x.imag + x.T.real)(x)))(np.ones(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("join", [lambda x: fnp.stack([x, x]), lambda x: fnp.concatenate([x[None], x[None]])])
def test_batched_join_along_last_axis_is_contiguous(join):
    def f(x):
        m = join(x)
        m.ravel()[:] *= 10.0
        return m

    xs = np.arange(6.0).reshape(2, 3)
    mapped = vmap(f, in_axes=-1)
    wanted = 10.0 * np.stack([xs.T, xs.T], 1)
    for found in (
        mapped(xs),
        vjp(mapped, xs)[0],
        jvp(mapped, (xs,), (xs,))[1],
        linearize(mapped, xs)[1](xs),
        vmap(mapped)(xs[None])[0],
    ):
        np.testing.assert_array_equal(found, wanted)


# ---- random arguments --------------------------------------------------------------------------------------


REDUCTIONS = (
    "sum prod max min ptp all any argmax argmin argsort nansum nanprod nanmin nanmax nanmean nanvar count_nonzero "
    "cumsum cumprod nancumsum"
)


@pytest.mark.parametrize("name", REDUCTIONS.split())
def test_reductions_of_scalar_accept_axis(name):
    for axis in (0, -1):
        want = getattr(np, name)(np.float64(1.5), axis=axis)
        identical(getattr(fnp, name)(np.float64(1.5), axis=axis), want)
        identical(traced(lambda x, axis=axis: getattr(fnp, name)(x, axis=axis), np.float64(1.5)), want)


def test_take_and_repeat_of_scalar_accept_axis():
    assert grad(lambda x: fnp.sum(fnp.take(x, [0, 0], axis=-1)) + fnp.sum(fnp.repeat(x, 3, axis=0)))(1.5) == 5.0
    for refused in (fnp.mean, fnp.sort, fnp.flip):
        with pytest.raises(np.exceptions.AxisError):
            grad(lambda x, refused=refused: fnp.sum(refused(x, axis=0)))(1.5)


def test_functions_of_python_numbers():
    assert grad(fnp.logsumexp)(0.5) == 1.0
    for f in (lambda x: fnp.interp(0.6, X, [1.0, 2.0], left=x), lambda x: fnp.interp(x, X, [1.0, 2.0], right=1.5)):
        identical(traced(f, 0.6), np.float64(f(0.6)))


def test_norm_of_empty_array_has_zero_derivative():
    nothing = np.zeros((2, 0))
    for norm in (fnp.linalg.norm, fnp.linalg.vector_norm, lambda x: scipy.linalg.norm(x)):
        assert jvp(norm, (nothing,), (nothing,)) == (0.0, 0.0)


@pytest.mark.parametrize("share", [1.0, 1.5])
def test_lstsq_with_large_rcond_uses_default(share):
    """LAPACK uses the rounding unit as the default cutoff."""
    a, b = normal(5, 2), np.ones(5)
    want = grad(lambda a: fnp.linalg.lstsq(a, b, -1.0)[0][0])(a)
    np.testing.assert_allclose(grad(lambda a: fnp.linalg.lstsq(a, b, share)[0][0])(a), want, rtol=1e-12)


def test_sylvester_equation_of_real_and_complex_matrices():
    """SciPy's solution is wrong if the real matrix has complex eigenvalues."""
    turning, other, right = np.array([[0.5, 1.0], [-1.0, 0.3]]), normal(3, 3) + 1j * normal(3, 3, seed=1), normal(2, 3)
    found = traced(scipy.linalg.solve_sylvester, turning, other, right)
    np.testing.assert_allclose(turning @ found + found @ other, right, atol=1e-12)
    total = lambda t: np.real(np.sum(scipy.linalg.solve_sylvester(turning * t, other, right)))
    np.testing.assert_allclose(grad(total)(1.2), differences(lambda t: traced(total, t), 1.2), rtol=1e-9)
    found = traced(scipy.linalg.solve_continuous_lyapunov, turning, np.eye(2) * (1 + 1j))
    np.testing.assert_allclose(turning @ found + found @ turning.T, np.eye(2) * (1 + 1j), atol=1e-12)


A, LONG = normal(2, 3, 3), normal(2, 4)
LU = scipy.linalg.lu_factor(A)


OF_ONE_MATRIX = [
    (scipy.linalg.rq, A),
    (lambda x: np.abs(scipy.linalg.orth(x)), A[:, :, :2]),
    (lambda x: np.abs(scipy.linalg.null_space(x)), A[:, :2]),
    (lambda x: scipy.linalg.ldl(x + np.swapaxes(x, -1, -2))[:2], A),
    (lambda x: scipy.linalg.matrix_balance(x)[0], A),
    (lambda x: scipy.linalg.orthogonal_procrustes(x, A[::-1]), A + np.eye(3)),
    (lambda x: scipy.linalg.eigh_tridiagonal(x, LONG[:, 1:], eigvals_only=True), LONG),
    (lambda x: scipy.linalg.lu_solve(LU, x), A[0]),
    (lambda x: scipy.linalg.lu_solve((LU[0][0], LU[1][0]), x), A),
]
if not at_least(scipy, "1.16.0"):  # older versions accept one
    OF_ONE_MATRIX = [(fun, x[0]) for fun, x in OF_ONE_MATRIX[:5]]


@pytest.mark.parametrize(("fun", "x"), OF_ONE_MATRIX)
def test_matrix_functions_accept_batches_as_scipy(fun, x):
    for got, want in zip(*[[out] if hasattr(out, "shape") else out for out in (traced(fun, x), fun(x))], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    check_grads(fun, (x,), order=1)


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("lower", [False, True])
def test_banded_matrices_of_every_dtype(dtype, lower):
    rows = [np.full(4, 0.3 + 0.2j), 2 + 0.3 * LONG[0]]
    ab = np.array(rows[::-1] if lower else rows)
    ab = (ab if dtype in "FD" else ab.real).astype(dtype)
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if dtype in "fF" else {"rtol": 1e-10, "atol": 1e-12}
    inside = (1, slice(0, 3)) if lower else (0, slice(1, 4))
    for fun in (
        lambda ab: scipy.linalg.cholesky_banded(ab, lower=lower)[inside],
        lambda ab: scipy.linalg.eigvals_banded(ab, lower=lower),
    ):
        got, want = traced(fun, ab), fun(ab)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, **tolerance)
        if dtype in "dD":
            half = ab.copy()
            check_grads(lambda t, fun=fun, half=half: fun(half * (1 + t * np.array([[0.2], [0.1]]))), (0.3,), order=1)


def test_balanced_matrices_keep_their_dtype():
    for dtype in "fF":
        a = normal(3, 3).astype(dtype)
        assert traced(lambda x: scipy.linalg.matrix_balance(x)[0], a).dtype == scipy.linalg.matrix_balance(a)[0].dtype
    np.testing.assert_array_equal(
        vmap(lambda x: scipy.linalg.matrix_balance(x)[0])(A), [scipy.linalg.matrix_balance(a)[0] for a in A]
    )


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("convolve1d", ([1.0, 2.0, 1.0],)),
        ("correlate", (np.ones((3, 3)),)),
        ("gaussian_filter", (1.0,)),
        ("gaussian_laplace", (1.0,)),
        ("grey_closing", (3,)),
        ("maximum_filter", (3,)),
        ("median_filter", (3,)),
        ("morphological_laplace", (3,)),
        ("sobel", ()),
        ("uniform_filter", (3,)),
    ],
)
def test_filters_of_empty_images(name, args):
    image, fun = np.zeros((0, 4)), lambda x: getattr(scipy.ndimage, name)(x, *args)
    identical(traced(fun, image), fun(image))
    assert jvp(fun, (image,), (image,))[1].shape == vjp(fun, image)[1](image)[0].shape == (0, 4)


@pytest.mark.parametrize("name", ["euclidean", "cityblock", "chebyshev", "minkowski"])
def test_distances_of_complex_vectors(name):
    u, v = normal(3) + 1j * normal(3, seed=1), normal(3, seed=2) - 1j
    fun = getattr(distance, name)
    got = traced(lambda u: fun(u, v), u)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, fun(u, v), rtol=1e-14)
    check_grads(lambda u: fun(u, v), (u,))


def test_divergences_of_distributions_that_broadcast():
    p, q = np.array([0.2, 0.5, 0.4]), np.array([[0.3, 0.1, 0.9], [0.4, 0.2, 0.3]])
    for axis in (0, 1, -1):
        a, b = {0: (p[:2, None], q), 1: (p[None], q), -1: (p, q)}[axis]
        fun = lambda a, b, axis=axis: distance.jensenshannon(a, b, 2.0, axis=axis)
        np.testing.assert_allclose(traced(fun, a, b), fun(a, b), rtol=1e-14)
    assert traced(lambda b: distance.jensenshannon(0.6, b), p) == distance.jensenshannon(0.6, p)


def test_sample_frequencies_have_derivatives():
    x = normal(24)
    for fun in (
        lambda fs: scipy.signal.welch(x, fs, nperseg=8)[1],
        lambda fs: np.abs(scipy.signal.csd(x, x[::-1], fs, nperseg=8)[1]),
        lambda fs: scipy.signal.periodogram(x, fs)[1],
        lambda fs: scipy.signal.coherence(x, x[::-1], fs, nperseg=8)[0],
        lambda fs: scipy.signal.istft(np.ones((5, 7)) + 0j, fs, nperseg=8)[0],
        lambda fs: scipy.signal.savgol_filter(x, 5, 2, deriv=1, delta=fs),
        lambda fs: scipy.signal.savgol_filter(x, 5, 2, delta=fs, mode="wrap"),
    ):
        total = lambda fs, fun=fun: np.sum(fun(fs) * np.arange(1.0, 1 + fun(1.5).size))
        np.testing.assert_allclose(grad(total)(1.5), differences(total, 1.5), rtol=1e-8, atol=1e-10)


def test_setflags_write_false():
    def kept(x):
        made = x * 2.0
        made.setflags(write=False)
        return made

    assert grad(lambda x: np.sum(kept(x)))(X).tolist() == [2.0, 2.0]
    with pytest.raises(ReadOnlyError):
        grad(lambda x: np.sum(kept(x).__setitem__(0, 1.0)))(X)


def test_tolerance_of_lambertw_raises_for_tracers():
    with pytest.raises(ConversionError, match="float"):
        grad(lambda t: scipy.special.lambertw(1.0, tol=t).real)(0.1)


def test_qz_of_batch_with_shared_matrix():
    a = normal(2, *[1] * at_least(scipy, "1.16.0"), 3, 3)  # older versions accept one pair
    a = a + np.swapaxes(a, -1, -2)
    fun = lambda a: scipy.linalg.qz(a, np.eye(3) + 0.1, output="complex")[0]
    np.testing.assert_array_equal(vmap(fun)(a), [fun(x) for x in a])


@pytest.mark.parametrize("rtol", [0.5, 1e-9])
def test_traced_tolerances(rtol):
    a, b = np.array([1.0, 2.0, np.inf, np.nan, np.inf]), np.array([1.2, 2.0, np.inf, np.nan, 3.0])
    for options in ({}, {"equal_nan": True}):
        fun = lambda r, options=options: np.isclose(a, b, rtol=r, atol=r / 2, **options)
        identical(traced(fun, rtol), fun(rtol))
    assert traced(lambda r: np.allclose(a[:2], b[:2], r), rtol) == np.allclose(a[:2], b[:2], rtol)


def test_split_and_tile_with_buffer_arguments():
    def fun(x):
        cuts = np.zeros(2, int)
        cuts[:] = 1, 3
        parts = np.split(np.arange(5.0), cuts) + np.array_split(np.arange(4.0), cuts[:1])
        return x * np.concatenate([np.tile(part, cuts) for part in parts], axis=1)

    identical(traced(fun, 2.0), fun(2.0))


FIRST_CALLS = {
    "adjacent slices": "fnp.sin(x[:1]) * x[1:]",
    "batches of a loop": "fnp.sum(control.map(lambda r: fnp.sin(r) * r, x, batch_size=2))",
    "copy of a reversed view": "fnp.copy(fnp.flip(x)) * x",
}


@pytest.mark.parametrize("name", FIRST_CALLS)
def test_repetition_of_first_call(name):
    """The first call of a function is watched, so it runs by the general path; the pullback repeats it by the fast."""
    names = {"fnp": fnp, "control": control, "__name__": "program"}
    exec(f"def fun(x):\n    return fnp.sum({FIRST_CALLS[name]})", names)  # new code each time

    def slope(x):
        return vmap(lambda scale: grad(names["fun"])(x * scale))(np.array([1.0, 0.7]))

    def total(x):
        return fnp.sum(checkpoint(slope)(x) * x)

    first = grad(total)(X := np.array([0.98, 1.16]))
    np.testing.assert_array_equal(first, grad(total)(X))
    np.testing.assert_allclose(first, grad(lambda x: fnp.sum(slope(x) * x))(X), rtol=1e-13)
