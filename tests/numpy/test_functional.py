"""Functions that take functions, where they differ from a plain loop or refuse."""

import math
import pickle
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import close

import funcgrad.numpy as fnp
from funcgrad import as_written, check_grads, grad, jacfwd, jacrev, jvp, value_and_grad, vjp, vmap
from funcgrad.errors import InputError, NotDifferentiableError
from funcgrad.optional import precision_switch

X = np.array([[0.3, 1.2, -0.5], [1.0, 2.0, 3.0]])


# ---- along axes -----------------------------------------------------------------------------------------------


def test_apply_along_axis_with_closure_over_tracers():
    fun = lambda w: fnp.apply_along_axis(lambda v: fnp.dot(v, w), 1, X)
    close(jacrev(fun)(np.ones(3)), X)
    close(jacfwd(fun)(np.ones(3)), X)
    close(vmap(fun)(np.eye(3)), X.T)


def test_apply_along_axis_first_result_sets_dtype():
    first = lambda v: v[0] if v[0] > 0.5 else np.int64(1)
    want = np.apply_along_axis(first, 1, X)
    assert fnp.apply_along_axis(first, 1, X).dtype == want.dtype == int
    found = fnp.apply_along_axis(lambda v: 2.5, 1, X)
    assert type(found) is np.ndarray
    close(found, [2.5, 2.5])


def test_apply_along_axis_without_vectors_raises():
    with pytest.raises(ValueError, match="iteration dimensions are 0"):
        grad(lambda x: fnp.sum(fnp.apply_along_axis(fnp.sum, 1, x)))(np.ones((0, 3)))
    with pytest.raises(np.exceptions.AxisError):
        fnp.apply_along_axis(fnp.sum, 2, X)


def test_apply_along_axis_branches_per_vector():
    fun = lambda x: fnp.apply_along_axis(lambda v: v[0] if v[0] > 0.5 else -v[1], 1, x)
    close(grad(lambda x: fnp.sum(fun(x)))(X), [[0, -1, 0], [1, 0, 0]])
    close(grad(lambda x: fnp.sum(np.apply_along_axis(lambda v: v[0] * v[1], 1, x)))(X), [[1.2, 0.3, 0], [2, 1, 0]])


def test_apply_over_axes_with_wrong_shape_raises():
    with pytest.raises(ValueError, match="correct shape"):
        grad(lambda x: fnp.apply_over_axes(lambda a, axis: fnp.sum(a), x, [0]))(np.ones((2, 2, 2)))
    close(grad(lambda x: fnp.sum(np.apply_over_axes(np.sum, x, 0) ** 2))(X), 2 * np.stack([X.sum(0)] * 2))


# ---- pieces ---------------------------------------------------------------------------------------------------


def rooted(x):
    return fnp.piecewise(x, [x > 0], [fnp.sqrt, lambda v: -v])


def test_piecewise_branches_do_not_spread_nan():
    x = np.array([-4.0, 0.0, 4.0])
    close(grad(lambda x: fnp.sum(rooted(x)))(x), [-1.0, -1.0, 0.25])
    close(jvp(rooted, (x,), (np.ones(3),))[1], [-1.0, -1.0, 0.25])


def test_piecewise_under_vmap():
    x = np.array([-4.0, 1.0, 4.0])
    close(vmap(rooted)(x), rooted(x))
    close(vmap(grad(rooted))(x), [-1.0, 0.5, 0.25])
    close(vmap(lambda x: jvp(rooted, (x,), (1.0,))[1])(x), [-1.0, 0.5, 0.25])


def test_piecewise_under_jit():
    x = np.array([-4.0, 1.0, 4.0])
    with precision_switch(jax)(True):
        close(jax.jit(rooted)(jnp.asarray(x)), rooted(x))
        close(rooted(jnp.asarray(x)), rooted(x))


@pytest.mark.parametrize(
    ("conditions", "functions"),
    [
        (lambda x: x > 0, [1.0, 2.0]),
        (lambda x: [x > 0], [fnp.sin]),
        (lambda x: [x > 1, x < 0, x > -0.4], [fnp.sin, 5.0, fnp.cos, 7.0]),
        (lambda x: [x > 1], [fnp.sin, fnp.cos]),
        (lambda x: np.stack([x > 1, x < 0]), [lambda v: v * np.mean(v), fnp.cos]),
        (lambda x: [x > 9], [fnp.sin, 2]),
    ],
)
def test_piecewise_matches_numpy(conditions, functions):
    for x in (X[0], np.array(0.5), np.arange(-2, 3)):
        plain = [getattr(np, f.__name__, f) if callable(f) else f for f in functions]
        want = np.piecewise(x, conditions(x), plain)
        got = fnp.piecewise(x, conditions(x), functions)
        assert type(got) is type(want)
        assert got.dtype == want.dtype
        close(got, want)
        if x.dtype == float:
            close(vjp(lambda x: fnp.piecewise(x, conditions(x), functions), x)[0], want)


def test_piecewise_constants_and_arguments_have_derivatives():
    x = np.array([-1.0, 2.0, 3.0])
    scaled = lambda v, s, power=1: v * s**power
    fun = lambda c, s: fnp.piecewise(x, [x < 0, x > 2.5], [c, scaled, 0.0], s, power=2)
    check_grads(fun, (4.0, 5.0), order=2)
    close(jacrev(fun, (0, 1))(4.0, 5.0), [[1.0, 0.0, 0.0], [0.0, 0.0, 30.0]])
    found = jacrev(lambda c: fnp.piecewise(x, [x < 0], [c, lambda v: v * c]))(4.0)
    close(found, [1.0, 2.0, 3.0])


def test_invalid_piecewise_raises():
    with pytest.raises(ValueError, match="with 1 condition"):
        grad(lambda x: fnp.sum(fnp.piecewise(x, [x > 0], [1, 2, 3])))(X)
    with pytest.raises(InputError, match="piecewise: the result has the dtype of x"):
        grad(lambda c: fnp.sum(fnp.piecewise(np.arange(3), [np.arange(3) > 1], [c])))(1.5)


# ---- element by element ---------------------------------------------------------------------------------------


@fnp.vectorize
def ramp(x, slope=1.0):
    """Branch on a number."""
    return x * slope if x > 0 else 0.0


def test_vectorize_branches_per_element():
    close(grad(lambda x: fnp.sum(ramp(x)))(X), X > 0)
    close(jvp(ramp, (X,), (X,))[1], np.maximum(X, 0))
    close(grad(lambda s: fnp.sum(ramp(X, s)))(2.0), np.maximum(X, 0).sum())
    close(grad(lambda s: fnp.sum(ramp(X, slope=s)))(2.0), np.maximum(X, 0).sum())
    assert ramp.__doc__ == "Branch on a number."
    assert ramp.__name__ == "ramp"


def test_vectorize_of_plain_values_matches_numpy():
    want = np.vectorize(ramp.pyfunc)(X)
    found = ramp(X)
    assert found.dtype == want.dtype
    close(found, want)
    assert fnp.vectorize(lambda x: x + 1, otypes="f")(1).dtype == np.float32
    assert fnp.vectorize(lambda: 3)() == 3


def test_vectorize_with_closure_over_tracers():
    fun = lambda c: fnp.vectorize(lambda x: x * c)(X)
    close(jacrev(fun)(2.0), X)
    close(vmap(fun)(np.array([1.0, 2.0])), np.stack([X, 2 * X]))


def test_vectorize_of_objects_and_of_constants_without_axes():
    half = SimpleNamespace(factor=0.5)
    scaled = np.vectorize(lambda owner, x, y: owner.factor * math.sin(x) + y)

    def f(x):
        return scaled(half, x, np.zeros(())).sum()

    for at in (0.3, np.array(0.3), np.full(2, 0.3)):
        np.testing.assert_allclose(grad(f)(at), np.full(np.shape(at), 0.5 * math.cos(0.3)))


def test_vectorize_as_decorator_with_arguments():
    @fnp.vectorize(otypes=[float, np.float32], excluded={1, "flag"}, doc="Two.")
    def two(x, rest, flag=True):
        return (x * rest[1], 1) if flag else (x, 0)

    assert two.__doc__ == "Two."
    first, second = vjp(lambda x, r: two(x, r, flag=True), X, np.array([1.0, 2.0]))[0]
    close(first, 2 * X)
    assert second.dtype == np.float32
    close(jacrev(lambda r: two(X, r)[0])(np.array([1.0, 2.0]))[..., 1], X)
    assert vjp(lambda x: two(x, [1.0, 2.0]), np.ones((0, 2)))[0][0].shape == (0, 2)


def test_vectorize_with_signature():
    solve = fnp.vectorize(lambda a, b: (a @ b, fnp.sum(b)), signature="(m,n),(n)->(m),()")
    a, b = np.arange(12.0).reshape(2, 2, 3), np.ones((2, 3))
    product, total = vjp(solve, a, b)[0]
    close(product, a.sum(-1))
    close(total, [3.0, 3.0])
    close(grad(lambda a: fnp.sum(solve(a, b)[0]))(a), np.ones((2, 2, 3)))
    assert vmap(lambda a: solve(a, b[0])[0])(np.stack([a, a, a])).shape == (3, 2, 2)


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        ((np.ones((2, 3)),), TypeError, "wrong number of positional arguments"),
        ((np.ones((2, 3)), np.ones(2)), ValueError, "inconsistent size for core dimension"),
        ((np.ones(3), np.ones(3)), ValueError, "enough dimensions"),
    ],
)
def test_vectorize_checks_signature(args, error, message):
    fun = fnp.vectorize(lambda a, b: a @ b, signature="(m,n),(n)->(m)")
    with pytest.raises(error, match=message):
        vjp(fun, *args)


def test_vectorize_checks_results():
    short = fnp.vectorize(lambda a: a[0], signature="(n)->(n)")
    pair = fnp.vectorize(lambda a: (a, a), signature="(n)->(n)")
    changing = fnp.vectorize(lambda a: a[1:], signature="(n)->(n)")
    for fun, message in ((short, "0-dimensional result"), (pair, "number of outputs"), (changing, "inconsistent size")):
        with pytest.raises(ValueError, match=message):
            vjp(fun, np.ones(3))


def test_vectorize_of_empty_arrays():
    with pytest.raises(ValueError, match="size 0 inputs unless"):
        vjp(ramp, np.ones(0))
    longer = fnp.vectorize(lambda a: a, otypes="d", signature="(n)->(m)")
    with pytest.raises(ValueError, match="new output dimensions"):
        vjp(longer, np.ones((0, 2)))
    same = fnp.vectorize(lambda a: a, otypes="d", signature="(n)->(n)")
    assert vjp(same, np.ones((0, 2)))[0].shape == (0, 2)


def test_vectorize_pickles():
    again = pickle.loads(pickle.dumps(fnp.vectorize(fnp.sin, otypes="d")))
    close(grad(lambda x: fnp.sum(again(x)))(X), np.cos(X))


def test_vectorize_of_noncallable_raises():
    with pytest.raises(TypeError, match="keyword arguments"):
        fnp.vectorize("text")


# ---- ufuncs of Python functions, positions --------------------------------------------------------------------


def test_frompyfunc():
    fun = fnp.frompyfunc(lambda x: x * x + 1, 1, 1)
    assert isinstance(fun, np.ufunc)
    assert fun([1, 2]).dtype == object
    assert grad(lambda x: fun(x))(1.5) == 3.0
    with as_written(), pytest.raises(NotDifferentiableError, match="funcgrad has no rule for it"):
        grad(lambda x: fun(x))(1.0)


def test_fromfunction():
    fun = lambda c: fnp.fromfunction(lambda i, j, power: c * i + j**power, (2, 2), dtype=int, power=2)
    close(jacrev(fun)(1.5), [[0, 0], [1, 1]])
    close(fun(1.5), [[0, 1], [1.5, 2.5]])


def reciprocal(v, w=1):
    try:
        return w / v
    except ZeroDivisionError:
        return 3.0 * v + 7.0


def weighted_float(v, w=2):
    return w * v if type(v) is float and type(w) is int else 0.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", [np.vectorize, lambda f: np.frompyfunc(f, 2, 1)], ids=["vectorize", "frompyfunc"])
@pytest.mark.parametrize("function", [reciprocal, weighted_float])
def test_functions_of_elements_get_python_numbers(function, make, dtype):
    """Check that elements are Python's numbers, which raise errors and have Python's types, as in NumPy's loops."""
    x, weights = np.array([0.0, 0.5, 2.0], dtype), np.array([1, 2, 3])
    each = make(function)

    def f(x):
        return each(x, weights).astype(float).sum()

    with np.errstate(divide="ignore"):  # NumPy's first call of ``vectorize`` divides its own numbers
        value, slope = value_and_grad(f)(x)
        assert value == f(x)
    expected = [3.0, -8.0, -0.75] if function is reciprocal else [1.0, 2.0, 3.0]
    np.testing.assert_allclose(slope, expected, rtol=1e-6)
    assert slope.dtype == dtype


def test_dtype_of_vectorize_is_that_of_the_first_numpy_element():
    x = np.array([0.5, 2.0], np.float32)
    each = np.vectorize(lambda v: 2 * v)
    out, pullback = vjp(lambda x: each(x), x)
    assert out.dtype == each(x).dtype == np.float32
    assert pullback(np.ones(2, np.float32))[0].tolist() == [2.0, 2.0]


def test_nditer_writes_to_arrays_of_its_shape_only():
    def f(x):
        y = fnp.zeros(1)
        with fnp.nditer([x, y], op_flags=[["readonly"], ["writeonly"]]) as walk:
            for a, b in walk:
                b[...] = a
        return y

    for run in (f, lambda x: vjp(f, x)):
        with pytest.raises(ValueError, match="output operand"):
            run(np.array([0.5, 2.1, -1.3]))
