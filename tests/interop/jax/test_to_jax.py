"""``to_jax``: functions written for NumPy and funcgrad under JAX's transforms."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import close_leaves
from toolz import compose_left, pipe

import funcgrad.numpy as fnp
from funcgrad import as_written, custom_jvp, custom_vjp, grad, hessian, scan, vmap
from funcgrad.errors import InputError, StagingError
from funcgrad.interop.jax.lift import to_jax
from funcgrad.optional import precision_switch

close = partial(close_leaves, kind=jax.Array)

X = np.array([0.3, 0.7, 1.1])
W = np.array([[0.2, -0.4, 0.9], [1.3, 0.1, -0.6]])


def wave(x):
    return np.sum(np.sin(x) * x**2)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (lambda f: f, lambda f: f),
        (jax.jit, lambda f: f),
        (jax.grad, grad),
        (lambda f: jax.jit(jax.grad(f)), grad),
        (lambda f: jax.jit(jax.hessian(f)), hessian),
        (lambda f: jax.jacfwd(jax.jacrev(f)), hessian),
    ],
)
@pytest.mark.parametrize(
    "fun", [wave, compose_left(np.cos, lambda x: W @ x, np.tanh, np.sum), lambda x: np.sum(vmap(grad(np.tanh))(x) ** 2)]
)
def test_to_jax_under_jax_transforms(theirs, ours, fun):
    close(theirs(to_jax(fun))(X), ours(fun)(X))
    close(theirs(to_jax(fun))(jnp.asarray(X)), ours(fun)(X))


def test_to_jax_under_jax_vmap():
    close(jax.vmap(jax.grad(to_jax(wave)))(jnp.stack([X, 2 * X])), vmap(grad(wave))(np.stack([X, 2 * X])))


def test_funcgrad_transforms_inside_and_outside():
    close(to_jax(grad(wave))(X), grad(wave)(X))
    close(jax.jit(to_jax(hessian(wave)))(X), hessian(wave)(X))
    np.testing.assert_allclose(grad(to_jax(wave))(jnp.asarray(X)), grad(wave)(X), rtol=1e-12)


def test_custom_rules_are_used():
    @custom_vjp
    def doubled(x):
        return np.sin(x)

    doubled.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (2 * ct * np.cos(x),))
    f = to_jax(lambda x: np.sum(doubled(x)))
    close(jax.jit(jax.grad(f))(X), 2 * np.cos(X))
    close(jax.jit(f)(X), np.sum(np.sin(X)))
    close(jax.jit(to_jax(grad(lambda x: np.sum(doubled(x)))))(X), 2 * np.cos(X))

    @custom_jvp
    def tripled(x):
        return np.sin(x)

    tripled.defjvp(lambda xs, ts: (np.sin(xs[0]), 3 * ts[0] * np.cos(xs[0])))
    close(jax.jit(jax.jacfwd(to_jax(tripled)))(X), np.diag(3 * np.cos(X)))
    close(jax.vmap(jax.grad(to_jax(lambda x: np.exp(tripled(x)))))(X), 3 * np.cos(X) * np.exp(np.sin(X)))


def test_containers_numbers_and_keywords():
    def f(p, x, n, *, mode="a"):
        return {"y": p["w"] @ x * n if mode == "a" else x, "none": None}

    close(to_jax(f)({"w": W}, X, 2), f({"w": W}, X, 2))
    close(to_jax(f)({"w": W}, X, 2, mode="b"), f({"w": W}, X, 2, mode="b"))
    close(jax.jit(to_jax(f), static_argnames="mode")({"w": W}, X, 2.0, mode="a"), f({"w": W}, X, 2))
    # Python integers stay Python integers without compilation
    close(to_jax(lambda x, n: sum(x for _ in range(n)))(X, 3), 3 * X)


class Pair:
    """Container that only JAX knows."""

    def __init__(self, a, b):
        self.a, self.b = a, b


jax.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, children: Pair(*children))


def test_jax_pytree_nodes():
    f = to_jax(lambda p: Pair(np.sin(p.a), p.b * 2))
    out = jax.jit(f)(Pair(X, 1.0))
    assert type(out) is Pair
    close((out.a, out.b), (np.sin(X), 2.0))
    close(jax.grad(lambda p: f(p).a.sum())(Pair(X, 1.0)).a, np.cos(X))


def test_concrete_values_can_be_branched_on():
    f = to_jax(lambda x: x / 2 if np.sum(x) > 1 else float(x[0]) * x)
    close(f(X), X / 2)
    close(f(X / 10), 0.03 * X / 10)
    close(jax.grad(lambda x: f(x).sum())(X), np.full(3, 0.5))


def _branch(x):
    return pipe(x, np.sin, lambda y: y if y[0] > 0 else -y)


def test_branches_on_values_that_are_not_known():
    f, total, slope = to_jax(_branch), lambda x: np.sum(_branch(x) ** 2), lambda x: np.sin(2 * x)
    for x in (X, -X):
        close(jax.jit(f)(x), _branch(x))
        for g in (jax.grad(to_jax(total)), to_jax(grad(total))):
            close(jax.jit(g)(x), slope(x))
    xs = np.stack([X, -X])
    close(jax.vmap(f)(xs), np.stack([_branch(x) for x in xs]))
    close(jax.vmap(jax.grad(to_jax(total)))(xs), slope(xs))
    steps = to_jax(lambda x: scan(lambda c, y: (c * y if c > 0.25 else c - y, None), x[0], x)[0])
    for x in xs:
        close(jax.jit(steps)(x), steps(x))


def test_an_error_on_a_path_gives_nan_and_derivatives_of_nan():
    def log(x):
        if x <= 0:
            raise ValueError(f"got {x:.2f}")
        return np.log(x)

    f, xs = to_jax(log), np.array([2.0, -1.0])
    close(jax.vmap(f)(xs), np.array([np.log(2), np.nan]))
    close(jax.vmap(jax.grad(f))(xs), np.array([0.5, np.nan]))
    with pytest.raises(ValueError, match=r"got -1\.00"):
        f(-1.0)
    with pytest.raises(StagingError, match=r"a result that is NaN, got int.*, at .*test_to_jax.py:\d+ `raise ValueE"):
        jax.jit(to_jax(lambda x: (log(x), 3)))(2.0)


def test_abstract_value_error_names_line_and_remedy():
    with pytest.raises(StagingError) as caught:
        jax.jit(grad(to_jax(lambda x: np.sum(_branch(x)))))(X)
    line = _branch.__code__.co_firstlineno + 1
    assert f"test_to_jax.py:{line} `return pipe(x, np.sin, lambda y: y if y[0] > 0 else -y)`" in str(caught.value)
    assert "Use where(condition, a, b)" in str(caught.value)
    assert str(caught.value).startswith("to_jax: ")
    with pytest.raises(StagingError, match="mask"):
        jax.jit(to_jax(lambda x: x[x > 0]))(X)
    with as_written(), pytest.raises(StagingError, match="stack"):
        jax.jit(to_jax(lambda x: np.asarray(x) + 1))(X)


def test_arguments_are_read_only_buffers_are_writable():
    def f(x):
        out = fnp.zeros(3)
        out[1] = x[0] * 2
        out[2:] += x[2]
        return out

    def g(x):
        x[0] = 1.0
        return x

    close(to_jax(f)(X), np.array([0, 0.6, 1.1]))
    close(jax.jit(jax.jacfwd(to_jax(f)))(X), np.array([[0.0, 0, 0], [2, 0, 0], [0, 0, 1]]))
    with pytest.raises(InputError):
        jax.jit(to_jax(g))(X)


def test_memory_is_not_shared():
    x = X.copy()
    y = to_jax(lambda x: x)(x)
    z = to_jax(lambda x: x.reshape(1, 3))(x)
    x[:] = 0
    close((y, z), (X, X[None]))


def test_precision_matches_jax():
    with precision_switch(jax)(False):
        assert to_jax(np.sin)(X.astype("float32")).dtype == np.float32
        assert jax.jit(to_jax(np.sin))(X).dtype == np.float32
    assert to_jax(np.sin)(X).dtype == np.float64


def test_noncallable_raises():
    with pytest.raises(InputError, match="to_jax: the first argument must be a function"):
        to_jax(X)
