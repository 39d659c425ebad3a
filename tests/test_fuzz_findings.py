"""What random programs found wrong in funcgrad, made small: each stays a test."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import checkpoint, custom_jvp, custom_vjp, grad, jvp, vmap
from funcgrad.errors import ReadOnlyError
from funcgrad.interop import jit, to_jax

X = np.array([2.0, 3.0])


def test_a_view_without_axes_of_an_array_of_jax():
    """It sees what is written to its base, as in NumPy."""

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
def test_kept_axes_of_constants_can_be_written_to(name):
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


def test_constant_numbers_under_jit_know_functions_of_numpy():
    def f(x):
        number = np.ones_like(x)[0]
        before = number
        number += 1  # a number has no memory: the name gets a new value
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


def test_a_rule_that_calls_its_function_under_vmap_and_transforms_of_jax():
    square = own(lambda x: x * x, lambda x: 3 * x)

    def f(x):
        return fnp.sum(vmap(square, in_axes=(0, None))(x, x[1]))

    want = grad(f)(X)
    np.testing.assert_allclose(want, [3 * 2 * 3, 3 * 3 * 3 + 4 + 9], rtol=1e-15)
    np.testing.assert_allclose(jax.grad(to_jax(f))(X), want, rtol=1e-15)
    np.testing.assert_allclose(jax.jit(jax.grad(to_jax(f)))(X), want, rtol=1e-15)
    np.testing.assert_allclose(jax.vmap(jax.grad(to_jax(f)))(jnp.stack([X, X])), [want, want], rtol=1e-15)


def test_own_rules_that_are_run_again():
    cube = custom_vjp(lambda x, s: x**3 * s)
    cube.defvjp(lambda x, s: (cube(x, s), (x, s)), lambda kept, ct: (ct * 2 * kept[0] * kept[1], ct * kept[0] ** 3))

    def slope(x):
        return grad(cube)(x, x)

    assert slope(1.5) == 4.5
    assert grad(slope)(1.5) == 6.0
    assert grad(checkpoint(slope))(1.5) == 6.0


def test_the_product_of_a_polynomial_without_coefficients():
    for first, second in (([], []), ([], [1.0, 2.0]), ([3.0], [])):
        first, second = np.array(first), np.array(second)
        value, slope = jvp(fnp.polymul, (first, second), (first, second))
        np.testing.assert_array_equal(value, np.polymul(first, second), strict=True)
        np.testing.assert_array_equal(slope, 0 * value)


def test_elements_of_an_argument_in_the_order_of_columns_are_a_copy():
    """They can be written to, on arrays of JAX too; those of a vector are a view, which cannot."""

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
def test_reshaped_parts_are_views_as_in_numpy(make):
    def f(x, np=fnp):
        made = make(np, x)
        made.reshape(-1)[::-1] *= 2 * x[0, 0]
        return np.sum(made**2)

    x = np.array([[0.5, 2.0, 1.5], [-1.0, 3.0, 0.5]])
    want = f(x, np)
    np.testing.assert_allclose(jvp(f, (x,), (x,)), [want, 4 * want], rtol=1e-14)
    np.testing.assert_allclose(vmap(f)(x[None]), [want], rtol=1e-14)
    np.testing.assert_allclose(grad(f)(x), jax.grad(to_jax(f))(x), rtol=1e-14)
