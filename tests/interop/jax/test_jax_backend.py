"""funcgrad functions on JAX arrays and under JAX's transforms give the results of NumPy arrays."""

import subprocess
import sys
from collections import namedtuple
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import close_leaves

import funcgrad.numpy as fnp
from funcgrad import (
    cond,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linearize,
    no_grad,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)
from funcgrad.optional import precision_switch

assert_close = partial(close_leaves, rtol=1e-10, dtypes=False)  # values in 32 bits are compared with 64 bits

RNG = np.random.default_rng(7)
Layer = namedtuple("Layer", "w b")


def normal(*shape):
    return RNG.normal(size=shape)


def mlp(params, x):
    for layer in params["hidden"]:
        x = fnp.tanh(x @ layer.w + layer.b)
    return fnp.mean((x @ params["out"]) ** 2) + params["penalty"] * fnp.sum(params["out"] ** 2)


def cross_entropy(w, x):
    logits = x @ w
    top = fnp.max(logits, axis=-1, keepdims=True)
    logits = logits - top - fnp.log(fnp.sum(fnp.exp(logits - top), axis=-1, keepdims=True))
    return -fnp.mean(fnp.take_along_axis(logits, np.array([[0], [2], [1]]), axis=-1))


def attention(q, k):
    scores = fnp.einsum("id,jd->ij", q, k)
    return fnp.sum(fnp.softmax(scores, axis=-1) * np.arange(3.0))


def recurrence(w, x):
    h = fnp.zeros(3)
    for _ in range(4):
        h = fnp.tanh(w @ h + x)
    return fnp.sum(h**2)


def indexing(x):
    return fnp.sum(x[np.array([0, 2, 2])] ** 2 * np.arange(3.0)[:, None]) + x[1, -1] * fnp.sum(x[::2, None, 1:] ** 3)


FUNCTIONS = {
    "mlp": (
        mlp,
        {"hidden": [Layer(normal(3, 4), normal(4)), Layer(normal(4, 4), normal(4))], "out": normal(4), "penalty": 0.1},
        normal(5, 3),
    ),
    "cross entropy": (cross_entropy, normal(4, 3), normal(3, 4)),
    "attention": (attention, normal(4, 2), normal(3, 2)),
    "logsumexp": (lambda x: fnp.sum(fnp.logsumexp(x, axis=0) ** 2), normal(3, 4)),
    "indexing": (indexing, normal(3, 4)),
    "where": (lambda x, y: fnp.sum(fnp.where(x > y, x * y, fnp.exp(y))), normal(6), normal(6)),
    "sort": (lambda x: fnp.sum(fnp.sort(x, axis=-1) ** 2 * np.arange(5.0)), normal(2, 5)),
    "cumsum": (lambda x: fnp.sum(fnp.cumsum(x, axis=0) ** 2) + fnp.sum(fnp.cumprod(x) ** 2), normal(5)),
    "einsum": (lambda a, b: fnp.sum(fnp.einsum("ij,jk,ik->i", a, b, a @ b) ** 2), normal(2, 3), normal(3, 4)),
    "joining": (
        lambda x, y: fnp.sum(fnp.concatenate([x, y[::-1]])[1:] ** 3) + fnp.sum(fnp.stack([x, y]).T @ np.ones(2)),
        normal(4),
        normal(4),
    ),
    "statistics": (lambda x: fnp.sum(fnp.std(x, axis=0)) + fnp.var(x) + fnp.prod(x), normal(4, 2)),
    "extrema": (lambda x: fnp.sum(fnp.max(x, axis=1) * fnp.min(x, axis=1)) + fnp.sum(fnp.clip(x, -1, 1)), normal(4, 3)),
    "broadcasting": (lambda x, y: fnp.sum(x * y[:, None] / (1 + x**2)) + fnp.sum(2.0**y), normal(3, 1, 4), normal(3)),
    "two": (lambda x, y: fnp.sum(fnp.arctan2(x, 2.0) + fnp.hypot(3.0, y) * fnp.maximum(x, 0.1)), normal(4), normal(4)),
    "recurrence": (recurrence, normal(3, 3), normal(3)),
    "number": (lambda x: fnp.sin(x) * x**3 / (1 + fnp.exp(-x)), 0.7),
}  # fmt: skip

cases = pytest.mark.parametrize("name", FUNCTIONS)


@pytest.fixture
def x32():
    with precision_switch(jax)(False):
        yield


def on_jax(tree):
    return jax.tree.map(jnp.asarray, tree)


def is_jax(tree):
    return all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(tree))


def squared_slope(fun):
    """Return the squared norm of the gradient, whose derivative is a second derivative."""

    def of_first(x, *rest):
        return sum(fnp.sum(leaf**2) for leaf in jax.tree.leaves(grad(fun)(x, *rest)))

    return of_first


def batched(tree):
    return jax.tree.map(lambda x: np.stack([x, np.multiply(x, 1.1)]), tree)


@cases
def test_gradient_on_jax_arrays(name):
    fun, *args = FUNCTIONS[name]
    value, slope = value_and_grad(fun)(*on_jax(args))
    assert is_jax((value, slope))
    assert_close((value, slope), value_and_grad(fun)(*args))


@cases
def test_jit_of_gradient(name):
    fun, *args = FUNCTIONS[name]
    slope = jax.jit(grad(fun))(*args)
    assert is_jax(slope)
    assert_close(slope, grad(fun)(*args))


@cases
def test_jit_of_jax_vmap_and_of_vmap_of_gradient(name):
    fun, first, *rest = FUNCTIONS[name]
    axes = (0, *[None] * len(rest))
    both = batched(first)
    each = [grad(fun)(jax.tree.map(lambda x: x[i], both), *rest) for i in range(2)]  # noqa: B023
    expected = jax.tree.map(lambda *leaves: np.stack(leaves), *each)
    assert_close(jax.jit(jax.vmap(grad(fun), axes))(both, *rest), expected)
    assert_close(jax.jit(vmap(grad(fun), axes))(both, *rest), expected)


@cases
def test_jax_gradient_of_gradient(name):
    fun, *args = FUNCTIONS[name]
    outer = jax.jit(jax.grad(squared_slope(fun)))(*args)
    assert is_jax(outer)
    assert_close(outer, grad(squared_slope(fun))(*args))


@cases
def test_jax_grad_matches_grad(name):
    """Check JAX's rules for the operations of funcgrad's primitives, without any of funcgrad's rules."""
    fun, *args = FUNCTIONS[name]
    assert_close(jax.jit(jax.grad(fun))(*args), grad(fun)(*args))


@cases
def test_float32_is_kept_under_jit(x32, name):
    fun, *args = FUNCTIONS[name]
    slope = jax.jit(grad(fun))(*args)
    assert {leaf.dtype for leaf in jax.tree.leaves(slope)} == {np.dtype(np.float32)}
    assert_close(slope, grad(fun)(*args), rtol=2e-4)


@pytest.mark.parametrize("name", ["logsumexp", "cumsum", "where", "number"])
def test_float32_is_kept_without_jit(x32, name):
    fun, *args = FUNCTIONS[name]
    slope = grad(fun)(*on_jax(args))
    assert slope.dtype == np.float32
    assert_close(slope, grad(fun)(*args), rtol=2e-4)


@pytest.mark.parametrize("name", ["logsumexp", "cumsum", "where", "statistics", "broadcasting"])
def test_float32_is_kept_in_x64_mode(name):
    fun, *args = FUNCTIONS[name]
    single = [jnp.asarray(x, jnp.float32) for x in args]
    assert jax.jit(grad(fun))(*single).dtype == np.float32
    assert jax.jit(grad(squared_slope(fun)))(*single).dtype == np.float32


def cubic(x):
    return fnp.sum(fnp.sin(x) * x**2)


POINT = np.array([0.3, 0.7, 1.1])


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: hessian(f),
        lambda f: jax.jit(hessian(f)),
        lambda f: jax.jacfwd(jacrev(f)),
        lambda f: jax.jacrev(jacfwd(f)),
        lambda f: jacfwd(jacrev(f)),
        lambda f: jacrev(jacrev(f)),
        lambda f: jax.hessian(f),
        lambda f: jax.jacfwd(grad(f)),
        lambda f: jax.jit(lambda x: vmap(lambda t: hvp(f, (x,), (t,))[0])(jnp.eye(3))),
        lambda f: lambda x: jax.vmap(lambda t: jvp(grad(f), (x,), (t,))[1])(jnp.eye(3)),
        lambda f: lambda x: vmap(linearize(grad(f), x)[1])(jnp.eye(3)),
        lambda f: lambda x: jax.vmap(lambda t: vjp(grad(f), x)[1](t)[0])(jnp.eye(3)),
    ],
)
def test_second_derivatives_mixing_both_libraries(transformed):
    result = transformed(cubic)(jnp.asarray(POINT))
    assert is_jax(result)
    assert_close(result, hessian(cubic)(POINT))


def test_gradient_descent_inside_scan():
    def descend(x, _):
        value, slope = value_and_grad(lambda x: fnp.sum((x - 2.0) ** 4))(x)
        return x - 0.05 * slope, value

    def unrolled(x):
        values = []
        for _ in range(5):
            x, value = descend(x, None)
            values.append(value)
        return x, np.array(values)

    scanned = jax.jit(lambda x: jax.lax.scan(descend, x, None, length=5))
    assert_close(scanned(POINT), unrolled(POINT))


def test_gradient_inside_jax_control_flow():
    slope = jax.jit(lambda x: jax.lax.cond(x[0] > 0, grad(cubic), lambda x: 0.0 * x, x))
    assert_close(slope(POINT), grad(cubic)(POINT))
    assert_close(slope(-POINT), np.zeros(3))


def test_one_jax_leaf_makes_all_results_jax():
    def fun(tree):
        return fnp.sum(tree["jax"] * tree["numpy"] * tree["float"])

    tree = {"jax": jnp.array([1.0, 2.0]), "numpy": np.array([3.0, 4.0]), "float": 5.0}
    value, slope = value_and_grad(fun)(tree)
    assert is_jax((value, slope))
    assert_close(slope, {"float": 11.0, "jax": np.array([15.0, 20.0]), "numpy": np.array([5.0, 10.0])})


def test_numpy_leaves_beside_jax_leaves_without_x64(x32):
    slope = grad(lambda x, y, z: fnp.sum(x * y * z), (0, 1, 2))(2.0, np.ones(3), jnp.ones(3))
    assert is_jax(slope)
    assert {leaf.dtype for leaf in slope} == {np.dtype(np.float32)}
    assert_close(slope, (np.float32(3.0), np.full(3, 2.0), np.full(3, 2.0)))


@pytest.mark.parametrize("left", [True, False])
def test_operators_between_jax_arrays_and_tracers(left):
    x, c = jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])
    slope = grad(lambda x: fnp.sum(c * x if left else x * c))(x)
    assert is_jax(slope)
    assert_close(slope, np.array([3.0, 4.0]))


def test_numpy_functions_on_tracers_of_jax_values():
    slope = jax.jit(grad(lambda x: np.sum(np.sin(x) * np.asarray([1.0, 2.0]))))(jnp.ones(2))
    assert_close(slope, np.cos(1.0) * np.array([1.0, 2.0]), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_dtype_is_kept(dtype):
    x = jnp.array([1.0, 2.0], dtype)
    assert vjp(lambda x: x * x * 0.5, x)[1](jnp.ones(2, dtype))[0].dtype == dtype
    assert jvp(lambda x: x * x * 0.5, (x,), (x,))[1].dtype == dtype


def test_integer_leaves():
    slope = grad(lambda x, n: fnp.sum(x * n), (0, 1), allow_int=True)(jnp.ones(2), jnp.array([3, 4]))
    assert_close(slope[0], np.array([3.0, 4.0]))
    assert slope[1].dtype == jax.grad(lambda n: 1.0 * n, allow_int=True)(3).dtype


@pytest.mark.parametrize("ct", [1.0, np.float32(1.0), np.float64(1.0)])
def test_cotangents_and_tangents_become_jax_values(x32, ct):
    x = jnp.float32(2.0)
    for fun in (lambda x: x, lambda x: x * x):
        assert is_jax(vjp(fun, x)[1](ct))
        assert is_jax(jvp(fun, (x,), (ct,)))


@pytest.mark.parametrize("constant", [stop_gradient, no_grad(lambda x: x * 1.0), no_grad(lambda x: x)])
def test_stop_gradient_is_constant_for_jax(constant):
    def fun(x):
        return x * constant(x)

    assert grad(fun)(jnp.float32(3.0)) == 3.0
    assert jax.grad(fun)(3.0) == 3.0
    assert jax.jvp(fun, (3.0,), (1.0,))[1] == 3.0
    assert jax.jit(jax.grad(fun))(3.0) == 3.0
    assert jax.grad(grad(fun))(3.0) == 0.0


def test_pullback_transfers_nothing():
    """Check that the backward pass moves nothing to or from the device, if the rules need no new constants."""
    x = jnp.array([0.5, 1.0])
    _, pullback = vjp(lambda x: fnp.exp(fnp.sin(x) * x), x)
    ct = jnp.ones(2)
    expected = np.asarray(pullback(ct)[0])
    with jax.transfer_guard("disallow"):
        found = pullback(ct)[0]
    assert_close(found, expected)


MANY_DEVICES = """
import jax, jax.numpy as jnp, numpy as np
import funcgrad.numpy as fnp
from funcgrad import grad

first, second = jax.devices()
f = lambda w, x: fnp.sum(fnp.tanh(x @ w) ** 2)
w, x = np.ones((3, 2)), np.arange(12.0).reshape(4, 3) / 12
on_second = grad(f)(*jax.device_put((w, x), second))
assert on_second.devices() == {second}
mesh = jax.sharding.Mesh(jax.devices(), ("examples",))
rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("examples"))
everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
parted, whole = jax.device_put(x, rows), jax.device_put(w, everywhere)
by_row = jax.jit(grad(f, 1))(whole, parted)
assert by_row.sharding.is_equivalent_to(rows, 2), by_row.sharding
for found in (grad(f)(whole, parted), jax.jit(grad(f))(whole, parted)):
    assert found.devices() == {first, second}
    np.testing.assert_allclose(found, grad(f)(w, x), rtol=1e-5)
np.testing.assert_allclose(by_row, grad(f, 1)(w, x), rtol=1e-5)
"""


def test_results_stay_on_their_devices():
    environment = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    subprocess.run([sys.executable, "-c", MANY_DEVICES], check=True, env=environment)


def test_branch_on_value_under_jit_raises():
    def fun(x):
        return x * x if x > 0 else -x

    assert grad(fun)(jnp.float32(3.0)) == 6.0
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(grad(fun))(3.0)


@pytest.mark.parametrize("reverse", [False, True])
def test_second_derivatives_of_elements_of_running_sums(reverse):
    """Check what XLA computes wrongly for ``jax.numpy.cumsum``: it folds padding into the sum."""
    order = slice(None, None, -1) if reverse else slice(None)
    fun = lambda w: fnp.cumsum((w * np.arange(1.0, 4.0))[order])[1] ** 2 * w
    w = jnp.asarray(0.5)
    want = grad(grad(fun))(0.5)
    np.testing.assert_allclose(jax.jit(jax.hessian(fun))(w), want, rtol=1e-14)
    np.testing.assert_allclose(jax.jit(jax.jacrev(jax.grad(fun)))(w), want, rtol=1e-14)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.hessian(fun)))(jnp.stack([w, w])), [want, want], rtol=1e-14)
    branch = jit(hessian(lambda w: cond(w > 0, fun, lambda w: w, w)))
    np.testing.assert_allclose(branch(0.5), want, rtol=1e-14)
    np.testing.assert_allclose(jax.grad(jax.grad(fun))(w), want, rtol=1e-14)


def test_new_arrays_take_the_device_of_a_jax_array():
    """Code for the array API standard makes its constants on the device of the argument."""

    def fun(x):
        device = x.device
        made = [
            fnp.asarray([1.0, 2.0, 3.0], device=device),
            fnp.full(3, 2.0, device=device),
            fnp.zeros_like(x, device=device) + fnp.ones(3, device=device),
            fnp.arange(3.0, device=device) + fnp.eye(3, device=device)[0],
            fnp.linspace(0.0, 1.0, 3, device=device),
        ]
        return fnp.sum(x**2 * sum(made))

    x = np.array([0.5, -1.0, 2.0], np.float32)
    want = grad(fun)(x)
    np.testing.assert_allclose(grad(fun)(jnp.asarray(x)), want, rtol=1e-6)
    np.testing.assert_allclose(jit(grad(fun))(x), want, rtol=1e-6)
    with pytest.raises(ValueError, match="Device not understood"):
        fnp.zeros(3, device="gpu")
