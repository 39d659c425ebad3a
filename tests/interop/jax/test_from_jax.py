"""``from_jax``: functions of JAX under funcgrad's transforms, on NumPy values."""

import pickle
import subprocess
import sys
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import close_leaves

import funcgrad.numpy as fnp
from funcgrad import (
    check_grads,
    checkpoint,
    compose,
    custom_vjp,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    no_grad,
    stop_gradient,
    trace,
    vjp,
    vmap,
)
from funcgrad.errors import FuncgradError, InputError
from funcgrad.interop.jax.conversion import adopt
from funcgrad.interop.jax.programs import from_jax
from funcgrad.optional import precision_switch

close = partial(close_leaves, kind=(np.ndarray, np.float64, np.float32))

X = np.array([0.3, 0.7, 1.1])
W = np.array([[0.2, -0.4, 0.9], [1.3, 0.1, -0.6]])


@jax.custom_vjp
def doubled_slope(x):
    return jnp.sin(x)


doubled_slope.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (2 * ct * jnp.cos(x),))


@jax.custom_jvp
def tripled_slope(x):
    return jnp.sin(x)


tripled_slope.defjvp(lambda xs, ts: (jnp.sin(xs[0]), 3 * ts[0] * jnp.cos(xs[0])))


def plus_one(x):
    return x + 1


#: Cases by name: a function of JAX and its NumPy version.
FUNCTIONS = {
    "plain": (lambda x: jnp.sin(x) * x**2, lambda x: np.sin(x) * x**2),
    "compiled": (jax.jit(lambda x: jnp.sin(x) * x**2), lambda x: np.sin(x) * x**2),
    "matrix": (lambda x: jnp.tanh(W @ x), lambda x: np.tanh(W @ x)),
    "scan": (
        lambda x: jax.lax.scan(lambda c, y: (c * 0.5 + y, c * y), 1.0, x)[1],
        lambda x: fnp.stack([x[0], (0.5 + x[0]) * x[1], (0.25 + 0.5 * x[0] + x[1]) * x[2]]),
    ),
}
functions = pytest.mark.parametrize("name", FUNCTIONS)


def total(fun):
    return lambda x: fnp.sum(fun(x) ** 2)


TRANSFORMS = {
    "value": lambda f: f(X),
    "grad": lambda f: grad(total(f))(X),
    "jacrev": lambda f: jacrev(f)(X),
    "jacfwd": lambda f: jacfwd(f)(X),
    "hessian": lambda f: hessian(total(f))(X),
    "reverse over reverse": lambda f: jacrev(grad(total(f)))(X),
    "reverse over forward": lambda f: jacrev(jacfwd(f))(X),
    "third order": lambda f: jacfwd(jacrev(grad(total(f))))(X),
    "jvp": lambda f: jvp(f, (X,), (X,)),
    "linearize": lambda f: linearize(f, X)[1](X),
    "hvp": lambda f: hvp(total(f), (X,), (X,)),
    "vmap": lambda f: vmap(f)(np.stack([X, 2 * X])),
    "vmap of grad": lambda f: vmap(grad(total(f)))(np.stack([X, 2 * X])),
    "grad of vmap": lambda f: grad(lambda x: fnp.sum(vmap(f)(x) ** 2))(np.stack([X, 2 * X])),
    "vmap of vmap": lambda f: vmap(vmap(f))(np.ones((2, 2, 3)) * X),
    "vmap of hessian": lambda f: vmap(hessian(total(f)))(np.stack([X, 2 * X])),
    "checkpoint": lambda f: grad(checkpoint(total(f)))(X),
    "trace": lambda f: trace(total(f))(X)(2 * X),
    "trace of grad": lambda f: trace(grad(total(f)))(X)(2 * X),
}


@functions
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_transforms_of_jax_function(name, transform):
    theirs, ours = FUNCTIONS[name]
    close(TRANSFORMS[transform](from_jax(theirs)), TRANSFORMS[transform](ours))


@pytest.mark.parametrize("name", ["plain", "compiled"])
def test_derivatives_match_differences(name):
    check_grads(from_jax(FUNCTIONS[name][0]), (X,))


def test_custom_rules_of_jax_are_used():
    close(grad(from_jax(doubled_slope))(0.5), np.float64(2 * np.cos(0.5)))
    close(grad(grad(from_jax(doubled_slope)))(0.5), np.float64(-2 * np.sin(0.5)))
    for transform in (grad, jacfwd):
        close(transform(from_jax(tripled_slope))(0.5), np.float64(3 * np.cos(0.5)))
    with pytest.raises(TypeError, match=r"JAX .* has no forward mode"):
        jvp(from_jax(doubled_slope), (0.5,), (1.0,))


def test_jax_function_between_funcgrad_functions():
    @custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1, 1),))
    f = compose(fnp.sum, from_jax(lambda x: 3 * x), clipped, from_jax(jnp.sin))
    close(grad(f)(X), np.cos(X))


def test_branches_on_values_without_jit():
    f = from_jax(lambda x: x**2 if x > 0 else -x)
    assert (grad(f)(3.0), grad(f)(-3.0)) == (6.0, -1.0)
    assert grad(grad(f))(3.0) == 2.0


def test_container_arguments_and_results():
    Pair = namedtuple("Pair", "a b")

    def g(params, x, *, scale):
        return {"y": params["w"] @ x * scale, "rest": (Pair(params["w"].sum(), None), x)}

    def f(params, x, *, scale):
        return {"y": params["w"] @ x * scale, "rest": (Pair(np.sum(params["w"]), None), x)}

    args = {"w": W}, X
    out = from_jax(g)(*args, scale=2.0)
    assert type(out["rest"][0]).__name__ == "Pair"
    close(out, f(*args, scale=2.0))
    close(jacrev(partial(from_jax(g), scale=2.0), (0, 1))(*args), jacrev(partial(f, scale=2.0), (0, 1))(*args))


def test_nonarray_arguments_pass_unchanged():
    seen = []

    def g(x, n, rate, mode, skip=None):
        seen.append((n, rate, mode, skip))
        return x**n * rate, mode, 7, None

    value, mode, seven, nothing = from_jax(g)(X, 2, 0.5, "fast", skip=None)
    assert seen == [(2, 0.5, "fast", None)]
    assert list(map(type, seen[0])) == [int, float, str, type(None)]
    close(value, X**2 * 0.5)
    assert (mode, nothing) == ("fast", None)
    assert seven == 7


def test_static_arguments_of_jitted_function():
    power = from_jax(jax.jit(lambda x, n: x**n, static_argnums=1))
    close(power(X, 3), X**3)
    close(grad(lambda x: fnp.sum(power(x, 3)))(X), 3 * X**2)


def test_integers_and_float0():
    f = from_jax(lambda n, x: (n + 1, jnp.argmax(x), n * x))
    (a, b, c), pullback = vjp(f, np.arange(3), X)
    assert (a.tolist(), b) == ([1, 2, 3], 2)
    zero, ct = pullback((np.zeros(3, int), 0, np.ones(3)))
    assert zero.dtype == jax.dtypes.float0
    close(ct, np.arange(3.0))
    close(c, np.arange(3) * X)
    value, tangent = jvp(lambda x: f(np.arange(3), x), (X,), (X,))
    assert tangent[1].dtype == jax.dtypes.float0
    close(tangent[2], value[2])
    assert vmap(f)(np.arange(3), np.ones((3, 2)))[0].tolist() == [1, 2, 3]


def test_unused_results_and_arguments():
    f = from_jax(lambda x, y: (jnp.sin(x), jnp.exp(x), jnp.zeros(3)))
    close(grad(lambda x: fnp.sum(f(x, X)[0]))(X), np.cos(X))
    close(grad(lambda y: fnp.sum(f(X, y)[0]))(X), np.zeros(3))
    close(grad(lambda x: fnp.sum(f(x, X)[2]))(X), np.zeros(3))


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_dtypes_are_kept(dtype):
    x = (X + 0.5j * X if dtype.startswith("c") else X).astype(dtype)
    f = from_jax(lambda x: jnp.abs(x * jnp.sin(x)).sum())
    value, slope = f(x), grad(f)(x)
    assert (value.dtype, slope.dtype) == (np.finfo(dtype).dtype, dtype)
    np.testing.assert_allclose(slope, grad(lambda x: fnp.sum(fnp.abs(x * fnp.sin(x))))(x), rtol=1e-5)


def test_x64_mode_is_entered_and_left():
    f = from_jax(lambda x: jnp.sin(x) * jnp.linspace(0.0, 1.0, 3))
    with precision_switch(jax)(False):
        close(f(X), np.sin(X) * np.linspace(0, 1, 3))
        close(hessian(total(f))(X), hessian(total(lambda x: np.sin(x) * np.linspace(0, 1, 3)))(X))
        assert jnp.ones(2).dtype == np.float32
        with pytest.raises(TypeError):
            from_jax(lambda x: x @ jnp.zeros(5))(X)
        with pytest.raises(ZeroDivisionError):
            grad(from_jax(lambda x: x * (1 // 0)))(1.0)
        assert jnp.ones(2).dtype == np.float32


def test_cached_jax_conversion_is_not_used():
    # JAX keeps conversions of an ndarray, in every precision, while something refers to the conversions.
    x = np.array([0.1, 0.2, 0.3])
    with precision_switch(jax)(False):
        held = jax.vjp(lambda x: jnp.multiply(x, x), x)
        close(from_jax(lambda x: x + 0)(x), x)
        x[:] = 5.0
        close(from_jax(lambda x: x + 0)(x), x)
    assert held


def test_memory_is_not_shared():
    for g in (lambda x: x, lambda x: x.reshape(1, 3), jax.jit(lambda x: x), lambda x: jnp.sin(x)):
        x = X.copy()
        y, pullback = vjp(from_jax(g), x)
        assert y.flags.writeable  # the array is the caller's, not JAX's
        before = y.copy()
        x[:] = 0
        np.testing.assert_array_equal(y, before)
    x = X.copy()
    _, pullback = vjp(from_jax(lambda x: x * x), x)
    x[:] = 0
    close(pullback(np.ones(3))[0], 2 * X)


def test_closed_over_array_may_change():
    table = X.copy()
    f = from_jax(lambda x: x * table)
    _, pullback = vjp(f, X)
    table[:] = 0
    close(pullback(np.ones(3))[0], X)
    close(f(X), np.zeros(3))


def test_caller_owns_gradients():
    slope = grad(lambda x: fnp.sum(from_jax(jnp.sin)(x)))(X)
    slope += 1
    close(slope, np.cos(X) + 1)


def test_jax_arrays_stay_jax_arrays():
    x = jnp.asarray(X)
    f = from_jax(lambda x: jnp.sin(x) * x)
    assert isinstance(f(x), jax.Array)
    assert isinstance(grad(total(f))(x), jax.Array)
    expected = grad(total(lambda x: np.sin(x) * x))(X)
    np.testing.assert_allclose(jax.jit(grad(total(f)))(X), expected, rtol=1e-12)
    np.testing.assert_allclose(jax.grad(total(f))(x), expected, rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(jax.grad(total(f)))(jnp.stack([x, x]))[1], expected, rtol=1e-12)
    with precision_switch(jax)(False):
        assert f(jnp.ones(2, "float32")).dtype == np.float32


@pytest.mark.parametrize("key", [jax.random.key(0), jax.random.PRNGKey(0)])
def test_random_keys_are_arguments(key):
    f = from_jax(lambda x, key: x * jax.random.normal(key, x.shape))
    noise = f(np.ones(3), key)
    assert type(noise) is np.ndarray
    close(f(X, key), X * noise)
    close(grad(lambda x: fnp.sum(f(x, key)))(X), noise)
    keys = jax.random.split(key, 2)
    assert from_jax(jax.random.split)(key, 2).shape == keys.shape


def test_stop_gradient_and_no_grad():
    f = from_jax(jnp.sin)
    close(grad(lambda x: fnp.sum(x * stop_gradient(f(x))))(X), np.sin(X))
    close(grad(lambda x: fnp.sum(x * no_grad(f)(x)))(X), np.sin(X))


def test_names_pickles_and_prints():
    f = from_jax(plus_one)
    assert (f.__name__, repr(f)) == ("plus_one", "<from_jax of plus_one>")
    close(pickle.loads(pickle.dumps(f))(X), X + 1)
    assert "call=plus_one" in str(trace(f)(X))


def test_linear_functions_transpose():
    close(linear_transpose(from_jax(lambda x: W @ x), X)(np.ones(2))[0], W.sum(axis=0))


class Line:
    """Container that only JAX knows."""

    def __init__(self, slope, height, name="line"):
        self.slope, self.height, self.name = slope, height, name


jax.tree_util.register_pytree_node(
    Line, lambda x: ((x.slope, x.height), x.name), lambda name, children: Line(*children, name)
)


class Curve(Line):
    """Another container, which funcgrad will adopt."""


jax.tree_util.register_pytree_node(
    Curve, lambda x: ((x.slope, x.height), x.name), lambda name, children: Curve(*children, name)
)


def test_jax_pytree_nodes():
    g = from_jax(lambda line, x: Line(line.slope * x, line.height, "out"))
    out = g(Line(X, 2.0), X)
    assert (type(out), out.name) == (Line, "out")
    close(out.slope, X**2)
    # the container may hold values that are being differentiated
    close(grad(lambda x: fnp.sum(g(Line(x, 2.0), X).slope))(X), X)
    close(grad(lambda line: fnp.sum(g(line, X).slope))(Line(X, 2.0)).slope, X)


def test_adopted_jax_pytree_nodes():
    curve = adopt([Curve(X, Curve(None, 2.0)), Curve(X, 1.0)])[0]
    slope = grad(lambda c: fnp.sum(from_jax(lambda c: c.slope**2 * c.height.height)(c)))(curve)
    assert (type(slope), type(slope.height), slope.height.slope) == (Curve, Curve, None)
    close((slope.slope, slope.height.height), (4 * X, np.sum(X**2)))
    assert adopt(curve) is curve


def test_invalid_arguments_raise():
    with pytest.raises(InputError, match="from_jax: the first argument must be a function"):
        from_jax(X)
    with pytest.raises(FuncgradError):
        grad(from_jax(lambda x: x))(X)


def test_threads():
    f = from_jax(lambda x: jnp.sin(x) * x)
    with precision_switch(jax)(False), ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda i: grad(total(f))(X * i), range(16)))
    for i, result in enumerate(results):
        close(result, grad(total(lambda x: np.sin(x) * x))(X * i))


def test_error_without_jax_names_the_extra():
    code = """
import sys
sys.modules["jax"] = sys.modules["jax.numpy"] = None
import numpy as np
from funcgrad.errors import MissingExtraError
from funcgrad.interop.jax.conversion import adopt
from funcgrad.interop.jax.devices import default_device, device_put
from funcgrad.interop.jax.programs import from_jax
from funcgrad.interop.jax.jit import jit

for call in (from_jax(np.sin), jit(np.sin), lambda x: device_put(x, "cpu"), default_device("cpu").__enter__, adopt):
    try:
        call(*[1.0] * (call.__class__.__name__ != "method"))
    except MissingExtraError as error:
        print(str(error).partition(":")[0], "pip install 'funcgrad[jax]'" in str(error))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], text=True, capture_output=True, check=True)
    names = ("from_jax", "jit", "device_put", "default_device", "adopt")
    assert done.stdout.splitlines() == [f"{name} True" for name in names], done.stderr
