"""``custom_vjp`` and ``custom_jvp``: arguments and results of rules, composition, and errors."""

import dataclasses
import functools
import gc
import math
import pickle
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fuzz.eager import run_eagerly

import funcgrad.numpy as fnp
from funcgrad import (
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    no_grad,
    psum,
    register_dataclass,
    stop_gradient,
    tree,
    value_and_grad,
    vjp,
    vmap,
)

X = np.array([0.3, -1.2, 2.0])


def plain(x, y):
    return fnp.sin(x) * y + x * y * y


def with_rules(rules):
    """Return ``plain`` with custom rules, which are right."""
    made = (custom_jvp if rules == "jvp" else custom_vjp)(lambda x, y: plain(x, y))
    if "vjp" in rules:
        made.defvjp(
            lambda x, y: (made(x, y), (x, y)),
            lambda kept, ct: (
                ct * (fnp.cos(kept[0]) * kept[1] + kept[1] ** 2),
                ct * (fnp.sin(kept[0]) + 2 * kept[0] * kept[1]),
            ),
        )
    if rules.endswith("jvp"):
        made.defjvp(
            lambda primals, tangents: (
                made(*primals),
                tangents[0] * (fnp.cos(primals[0]) * primals[1] + primals[1] ** 2)
                + tangents[1] * (fnp.sin(primals[0]) + 2 * primals[0] * primals[1]),
            )
        )
    return made


KINDS = ("vjp", "jvp", "vjp and jvp")

# Transforms of a function of a number into another, which can be stacked in any order.
STACK = {
    "grad": grad,
    "value_and_grad": lambda f: lambda x: sum(value_and_grad(f)(x)),
    "vjp": lambda f: lambda x: vjp(f, x)[1](0.5 * stop_gradient(x) / stop_gradient(x))[0],
    "jvp": lambda f: lambda x: jvp(f, (x,), (0.5 * x,))[1],
    "linearize": lambda f: lambda x: linearize(f, x)[1](2.0 * x),
    "vmap": lambda f: lambda x: fnp.sum(vmap(f)(fnp.stack([x, 0.5 * x]))),
    "jacrev": lambda f: lambda x: fnp.sum(jacrev(lambda v: vmap(f)(v * x))(np.array([1.0, 0.5]))),
    "jacfwd": lambda f: lambda x: fnp.sum(jacfwd(lambda v: vmap(f)(v * x))(np.array([1.0, 0.5]))),
    "hvp": lambda f: lambda x: hvp(f, (x,), (x,))[0],
    "hessian": hessian,
}
IN_JAX = {
    "grad": jax.grad,
    "value_and_grad": lambda f: lambda x: sum(jax.value_and_grad(f)(x)),
    "vjp": lambda f: lambda x: jax.vjp(f, x)[1](0.5 * jnp.ones_like(x))[0],
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (0.5 * x,))[1],
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](2.0 * x),
    "vmap": lambda f: lambda x: jnp.sum(jax.vmap(f)(jnp.stack([x, 0.5 * x]))),
    "jacrev": lambda f: lambda x: jnp.sum(jax.jacrev(lambda v: jax.vmap(f)(v * x))(jnp.array([1.0, 0.5]))),
    "jacfwd": lambda f: lambda x: jnp.sum(jax.jacfwd(lambda v: jax.vmap(f)(v * x))(jnp.array([1.0, 0.5]))),
    "hvp": lambda f: lambda x: jax.jvp(jax.grad(f), (x,), (x,))[1],
    "hessian": jax.hessian,
}


@functools.cache
def jax_stack(outer, inner, at):
    """Return JAX's result for the plain function, closed over a second argument."""
    return float(run_eagerly(IN_JAX[outer](IN_JAX[inner](lambda x: jnp.sin(x) * 0.7 + x * 0.7**2)), at))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inner", STACK)
@pytest.mark.parametrize("outer", STACK)
def test_pairs_of_transforms(outer, inner, kind):
    made = with_rules(kind)
    ours = STACK[outer](STACK[inner](lambda x: made(x, 0.7)))(1.3)
    like = STACK[outer](STACK[inner](lambda x: plain(x, 0.7)))(1.3)
    np.testing.assert_allclose(ours, like, rtol=1e-12)
    np.testing.assert_allclose(ours, jax_stack(outer, inner, 1.3), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stack", [("grad", "vmap", "jvp"), ("jvp", "grad", "grad"), ("vmap", "jacfwd", "vjp")])
def test_triples_of_transforms(stack, kind):
    made = with_rules(kind)
    ours, like = (lambda x: made(x, 0.7)), (lambda x: plain(x, 0.7))
    for name in reversed(stack):
        ours, like = STACK[name](ours), STACK[name](like)
    np.testing.assert_allclose(ours(1.3), like(1.3), rtol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("in_axes", [(0, 0), (0, None), (None, 0), (1, None)])
def test_vmap_of_each_argument(kind, in_axes):
    made = with_rules(kind)
    args = [np.arange(9.0).reshape(3, 3) / 5 if axis == 1 else X * (i + 1) for i, axis in enumerate(in_axes)]
    args = [
        a if axis is not None else X if 1 in in_axes else np.float64(0.7) for a, axis in zip(args, in_axes, strict=True)
    ]
    of = {
        "value": lambda f: f,
        "grad": lambda f: grad(lambda *a: fnp.sum(f(*a)), (0, 1)),
        "jvp": lambda f: lambda a, b: jvp(f, (a, b), (2 * a, 3 * b))[1],
    }
    for lift in of.values():
        ours, like = vmap(lift(made), in_axes)(*args), vmap(lift(plain), in_axes)(*args)
        for a, b in zip(tree.leaves(ours), tree.leaves(like), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    ours, like = (grad(lambda *a, f=f: fnp.sum(vmap(f, in_axes)(*a)), (0, 1))(*args) for f in (made, plain))
    for a, b in zip(ours, like, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_rules_match_jax():
    """Check that rules, right or not, mean the same in JAX: a straight-through rounding and its slope."""

    def build(vjp_of, xp):
        rounded = vjp_of(lambda x: xp.round(x))
        rounded.defvjp(lambda x: (xp.round(x), x), lambda x, ct: (ct * x,))
        return rounded

    ours, theirs = build(custom_vjp, fnp), build(jax.custom_vjp, jnp)
    np.testing.assert_array_equal(
        grad(lambda x: fnp.sum(ours(x) ** 2))(X), jax.grad(lambda x: jnp.sum(theirs(x) ** 2))(X)
    )
    np.testing.assert_array_equal(vmap(grad(ours))(X), jax.vmap(jax.grad(theirs))(X))
    np.testing.assert_array_equal(vmap(grad(grad(ours)))(X), jax.vmap(jax.grad(jax.grad(theirs)))(X))


# Small cases, each against known results.


def test_rule_of_multiply():
    multiply = custom_vjp(lambda a, b: a * b)
    multiply.defvjp(lambda a, b: (a * b, (a, b)), lambda kept, ct: (ct * kept[1], ct * kept[0]))
    assert grad(multiply, (0, 1))(3.0, 4.0) == (4.0, 3.0)
    assert grad(grad(multiply), 1)(3.0, 4.0) == 1.0


def test_rule_of_clamp():
    @custom_vjp
    def relu(x):
        return fnp.clip(x, 0, None)

    relu.defvjp(lambda x: (relu(x), x < 0), lambda negative, ct: (fnp.where(negative, 0, ct),))
    np.testing.assert_array_equal(grad(lambda x: fnp.sum(relu(x)))(X), [1, 0, 1])
    assert grad(relu)(0.0) == 1.0  # the rule's convention
    np.testing.assert_array_equal(jvp(relu, (X,), (X,))[1], [0.3, 0, 2.0])


@custom_vjp
def cell(x, h, wx, wh, b):
    return fnp.tanh(x @ wx + h @ wh + b)


def cell_bwd(kept, ct):
    x, h, wx, wh, new = kept
    pre = ct * (1 - new * new)
    return pre @ wx.T, pre @ wh.T, x.T @ pre, h.T @ pre, fnp.sum(pre, axis=0)


def cell_fwd(x, h, wx, wh, b):
    new = cell(x, h, wx, wh, b)
    return new, (x, h, wx, wh, new)


cell.defvjp(cell_fwd, cell_bwd)


def test_recurrent_cell_over_sequences_of_any_length():
    rng = np.random.default_rng(0)
    params = (rng.normal(size=(3, 4)), rng.normal(size=(4, 4)) / 2, rng.normal(size=4))

    def loss(step, params, xs):
        h = np.zeros((2, 4))
        for x in xs:
            h = step(x, h, *params)
        return fnp.sum(h * h)

    def jax_loss(params, xs):
        h = jnp.zeros((2, 4))
        for x in xs:
            h = jnp.tanh(x @ params[0] + h @ params[1] + params[2])
        return jnp.sum(h * h)

    for length in (1, 2, 5):
        xs = [rng.normal(size=(2, 3)) for _ in range(length)]
        ours = grad(lambda p, xs=xs: loss(cell, p, xs))(params)
        for a, b in zip(ours, jax.grad(jax_loss)(params, xs), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
        steps = jvp(lambda p, xs=xs: grad(lambda q: loss(cell, q, xs))(p), (params,), (params,))[1]
        theirs = jax.jvp(lambda p, xs=xs: jax.grad(jax_loss)(p, xs), (params,), (params,))[1]
        for a, b in zip(steps, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_power_with_an_integer_exponent():
    power = custom_vjp(lambda x, n: x**n)
    power.defvjp(lambda x, n: (x**n, (x, n)), lambda kept, ct: (ct * kept[1] * kept[0] ** (kept[1] - 1), None))
    assert grad(power)(2.0, 5) == 80.0
    assert grad(grad(power))(2.0, 5) == 160.0
    assert vjp(power, 2.0, 5)[1](1.0)[1].dtype == np.dtype([("float0", "V")])
    fixed = custom_vjp(lambda x, n: x**n, nondiff_argnums=(1,))
    fixed.defvjp(lambda x, n: (x**n, x), lambda n, x, ct: (ct * n * x ** (n - 1),))
    assert grad(fixed)(2.0, 5) == 80.0
    assert grad(fixed)(2.0, n=3) == 12.0
    assert jvp(lambda x: fixed(x, 5), (2.0,), (1.0,))[1] == 80.0


def test_cube_and_its_second_derivative():
    cube = custom_vjp(lambda x: x**3)
    cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * ct * x * x,))
    assert [f(2.0) for f in (cube, grad(cube), grad(grad(cube)), grad(grad(grad(cube))))] == [8.0, 12.0, 12.0, 6.0]
    assert hessian(cube)(2.0) == jacrev(jacrev(cube))(2.0) == jacfwd(jacfwd(cube))(2.0) == 12.0


def test_rule_that_depends_on_a_branch():
    @custom_vjp
    def f(x):
        return x * x if x > 1 else 3 * x

    def fwd(x):
        return f(x), (("square", x) if x > 1 else ("line", None))

    def bwd(kept, ct):
        kind, x = kept
        return (ct * 2 * x if kind == "square" else ct * 3.0,)

    f.defvjp(fwd, bwd)
    assert [grad(f)(x) for x in (0.5, 2.0)] == [3.0, 4.0]
    assert [jvp(f, (x,), (1.0,))[1] for x in (0.5, 2.0)] == [3.0, 4.0]
    assert [grad(grad(f))(x) for x in (0.5, 2.0)] == [0.0, 2.0]


# Arguments and results of rules.


def test_rule_using_function_with_custom_rules():
    sine = custom_vjp(fnp.sin)
    cosine = custom_vjp(fnp.cos)
    sine.defvjp(lambda x: (sine(x), x), lambda x, ct: (ct * cosine(x),))
    cosine.defvjp(lambda x: (cosine(x), x), lambda x, ct: (-ct * 10 * sine(x),))  # the slope is ten times too large
    assert grad(sine)(1.0) == np.cos(1.0)
    assert grad(grad(sine))(1.0) == -10 * np.sin(1.0)
    assert jvp(grad(sine), (1.0,), (1.0,))[1] == pytest.approx(-10 * np.sin(1.0))


MIX = np.array([[2.0, 1.0, 0.5], [0.3, -1.0, 0.2], [0.0, 0.1, 3.0]])


@custom_jvp
def mixed(x):
    return MIX @ x


@mixed.defjvp
def _(primals, tangents):
    return mixed(*primals), mixed(*tangents)


@custom_jvp
def mixed_by_writes(n, x):
    out = np.zeros(n)
    for i in range(n):
        out[i] = np.sum(MIX[i] * x)
    return out


@mixed_by_writes.defjvp
def _(primals, tangents):
    return mixed_by_writes(*primals), mixed_by_writes(primals[0], tangents[1])


@pytest.mark.parametrize("linear", [mixed, lambda x: mixed_by_writes(3, x)], ids=["matrix", "writes"])
def test_rule_that_calls_its_linear_function_with_the_tangent(linear):
    ours, same = (lambda x, f=f: fnp.sum(fnp.sin(f(x * x)) * x) for f in (linear, lambda x: MIX @ x))
    batch = np.stack([X, 2 * X])
    calls = [
        lambda f: (vjp(f, X)[1](1.0), jvp(f, (X,), (X,))),
        lambda f: (grad(f)(X), hessian(f)(X), jacrev(jacrev(f))(X), linearize(f, X)[1](X)),
        lambda f: (vmap(grad(f))(batch), grad(lambda x: fnp.sum(vmap(f)(x)))(batch)),
        lambda f: grad(lambda x: fnp.sum(grad(lambda y: fnp.sum(grad(f)(y)))(x)))(X),
        lambda f: jax.hessian(f)(jnp.asarray(X)),
    ]
    for call in calls[: None if linear is mixed else -1]:  # JAX takes no writes
        for found, expected in zip(tree.leaves(call(ours)), tree.leaves(call(same)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_rules_may_give_the_zero_of_an_integer_as_jax_does():
    @custom_vjp
    def times(n, x):
        return n * x

    zero = np.zeros((), jax.dtypes.float0)
    times.defvjp(lambda n, x: (n * x, n), lambda n, ct: (zero, n * ct))
    assert grad(lambda x: times(3, x))(2.0) == 3.0
    times.defvjp(lambda n, x: (n * x, n), lambda n, ct: (zero, zero))
    with pytest.raises(TypeError, match=r"^times: the bwd rule gave no array for argument 1"):
        grad(lambda x: times(3, x))(2.0)


def test_both_rules_on_one_function():
    f = custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (ct * 2,))
    f.defjvp(lambda primals, tangents: (primals[0], tangents[0] * 3))
    assert grad(f)(1.0) == 2.0
    assert jvp(f, (1.0,), (1.0,))[1] == 3.0
    np.testing.assert_array_equal(vmap(grad(f))(X), [2, 2, 2])
    np.testing.assert_array_equal(jvp(vmap(f), (X,), (X,))[1], 3 * X)
    assert (jacrev(f)(1.0), jacfwd(f)(1.0)) == (2.0, 3.0)


def test_rule_for_one_argument_each():
    f = custom_jvp(lambda x, y, n: x**n * y)
    f.defjvps(lambda t, ans, x, y, n: t * n * x ** (n - 1) * y, lambda t, ans, x, y, n: t * x**n, lambda t, *_: t * 1.0)
    assert grad(f, (0, 1))(2.0, 3.0, 2) == (12.0, 4.0)  # the integer's rule is not called
    none = custom_jvp(lambda x: x * x)
    none.defjvps(None)
    assert (jvp(none, (3.0,), (1.0,))[1], grad(none)(3.0)) == (0.0, 0.0)


def test_trees_in_and_out():
    f = custom_vjp(lambda p, x: {"a": p["w"] * x, "b": (p["v"] + x, 2)})
    f.defvjp(
        lambda p, x: (f(p, x), (p["w"], x, "text", len)),
        lambda kept, ct: ({"w": ct["a"] * kept[1], "v": ct["b"][0]}, ct["a"] * kept[0] + ct["b"][0]),
    )
    p = {"w": X, "v": X + 1}
    out, pull = vjp(f, p, X)
    assert out["b"][1] == 2
    (dp, dx) = pull({"a": X, "b": (X * 2, np.zeros((), [("float0", "V")]))})
    np.testing.assert_array_equal(dp["w"], X * X)
    np.testing.assert_array_equal(dp["v"], 2 * X)
    np.testing.assert_array_equal(dx, X * X + 2 * X)
    tangent = jvp(f, (p, X), (p, X))[1]
    np.testing.assert_allclose(tangent["a"], 2 * X * X)
    assert grad(lambda p: fnp.sum(f(p, X)["a"]))(p)["v"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "given", [(None, None), ({"w": None, "v": None}, None), ({"w": (None, None), "v": None}, None)], ids=str
)
def test_none_is_zero_for_any_subtree(given):
    f = custom_vjp(lambda p, x: p["w"][0] * x)
    f.defvjp(lambda p, x: (f(p, x), None), lambda _, ct: given)
    dp, dx = vjp(f, {"w": (X, X), "v": 1.0}, X)[1](X)
    assert dx.tolist() == dp["w"][1].tolist() == [0, 0, 0]
    assert dp["v"] == 0.0
    assert jvp(lambda x: f({"w": (X, X), "v": 1.0}, x), (X,), (X,))[1].tolist() == [0, 0, 0]


@custom_vjp
def doubled_first(x, y):
    return x * 2.0


doubled_first.defvjp(lambda x, y: (x * 2.0, None), lambda _, ct: (ct * 2.0, None))


def zero_among_reads(x):
    y = x * 1.0
    return doubled_first(x, y).sum() + y[0] * y[1] + doubled_first(x, y).sum() + y[2]


def zero_among_products(x):
    y = x * 1.0
    return (fnp.asarray(np.eye(3)) @ y).sum() + doubled_first(x, y).sum() + y[1]


def zero_for_eigenvectors(x):
    parts = *fnp.linalg.eigh(fnp.outer(x, x) + np.diag([1.0, 2.0, 3.0])), *fnp.linalg.qr(fnp.outer(x, x) + np.eye(3))
    return sum(doubled_first(x, part[..., 0]).sum() for part in parts)


@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (zero_among_reads, lambda x: [4.0 + x[1], 4.0 + x[0], 5.0]),
        (zero_among_products, lambda x: [3.0, 4.0, 3.0]),
        (zero_for_eigenvectors, lambda x: [8.0, 8.0, 8.0]),
    ],
)
def test_none_is_zero_where_cotangents_add_up(f, slope):
    x = np.array([0.5, 2.1, -1.3])
    np.testing.assert_allclose(grad(f)(x), slope(x), rtol=1e-14)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([x, 2 * x])), [slope(x), slope(2 * x)], rtol=1e-14)


def test_none_as_tangent_or_cotangent_in_a_batch():
    x = np.array([0.5, 2.1, -1.3])

    @custom_jvp
    def both(x, y):
        return x * 2.0, y * 1.0

    both.defjvp(lambda primals, tangents: (both(*primals), (tangents[0] * 2.0, None)))
    assert jvp(vmap(lambda a: both(a, a)), (x,), (x,))[1][1].tolist() == [0.0, 0.0, 0.0]
    assert grad(lambda x: vmap(lambda a: both(a, a * a))(x)[1].sum())(x).tolist() == [0.0, 0.0, 0.0]
    assert grad(lambda x: vmap(lambda a: doubled_first(2.0, a))(x).sum())(x).tolist() == [0.0, 0.0, 0.0]
    assert grad(lambda x: vmap(lambda a: doubled_first(a, a))(x).sum())(x).tolist() == [2.0, 2.0, 2.0]


def test_nonarray_arguments():
    f = custom_vjp(lambda x, name, fun=fnp.sin, scale=2.0: fun(x) * scale)
    f.defvjp(
        lambda x, name, fun, scale: (f(x, name, fun, scale), (x, scale)),
        lambda kept, ct: (ct * kept[1], None, None, None),
    )
    assert grad(f)(1.0, "name") == 2.0
    assert grad(f)(1.0, name="name", scale=5.0) == 5.0
    assert grad(f)(1.0, "name", fnp.cos) == 2.0


def test_static_arguments_by_name_and_position():
    f = custom_jvp(lambda n, x, kind: x**n, nondiff_argnums=0, nondiff_argnames="kind")
    f.defjvp(lambda n, kind, primals, tangents: (f(n, *primals, kind), tangents[0] * n * primals[0] ** (n - 1)))
    assert grad(f, 1)(3, 2.0, "any") == 12.0
    assert grad(lambda x: f(3, kind="any", x=x))(2.0) == 12.0
    last = custom_vjp(lambda x, *rest: x * rest[0], nondiff_argnums=(-1,))
    last.defvjp(lambda x, *rest: (x * rest[0], rest), lambda *given: (None,) * 3)
    assert last(2.0, 3.0, 4.0) == 6.0


def test_methods():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @custom_vjp
        def apply(self, x):
            return self.factor * x

        apply.defvjp(lambda self, x: (self.factor * x, self), lambda self, ct: (None, 10 * self.factor * ct))

    assert grad(Scale(3.0).apply)(1.0) == 30.0
    assert Scale(3.0).apply.__name__ == "apply"


def test_registered_objects_are_trees():
    import dataclasses

    @register_dataclass
    @dataclasses.dataclass
    class Line:
        slope: float
        offset: float

    at = custom_vjp(lambda line, x: line.slope * x + line.offset)
    at.defvjp(lambda line, x: (at(line, x), (line, x)), lambda kept, ct: (Line(ct * kept[1], ct), ct * kept[0].slope))
    found = grad(at)(Line(2.0, 1.0), 3.0)
    assert (found.slope, found.offset) == (3.0, 1.0)


def test_integers_and_weak_numbers():
    f = custom_vjp(lambda i, x, a: x * a[i])
    f.defvjp(lambda i, x, a: (f(i, x, a), (x, a, i)), lambda kept, ct: (0.0, ct * kept[1][kept[2]], 0 * kept[1]))
    a = X.astype(np.float32)
    dx, da = grad(f, (1, 2))(1, 2.0, a)
    assert (dx.dtype, da.dtype, da.shape) == (np.float64, np.float32, (3,))
    g = custom_vjp(lambda x: x * 1)
    g.defvjp(lambda x: (g(x), None), lambda _, ct: (0,))
    assert type(grad(g)(np.float32(2.0))) is np.float32


def test_returned_arguments():
    f = custom_vjp(lambda x, y: (x, y * 2, 1))
    f.defvjp(lambda x, y: ((x, y * 2, 1), None), lambda _, cts: (cts[0], 2 * cts[1]))
    x = X.copy()
    out = f(x, X)
    assert out[0] is x
    assert out[0].flags.writeable
    (first, _, _), pull = vjp(f, x, X)
    assert first is not x  # the caller owns the result of a transform
    np.testing.assert_array_equal(first, x)
    assert grad(lambda x: fnp.sum(f(x, X)[1]))(X).tolist() == [0, 0, 0]
    ct = (X.copy(), X.copy(), np.zeros((), [("float0", "V")]))
    found = pull(ct)[0]
    found += 1  # the caller owns the result
    np.testing.assert_array_equal(ct[0], X)


def test_arguments_are_not_kept_alive():
    f = custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct * 2,))

    x = np.ones(5)
    held = []

    def fun(y):
        hidden = y * 1.0
        held.append(weakref.ref(hidden._val))
        return f(hidden)

    _, pull = vjp(fun, x)
    gc.collect()
    assert held[0]() is None
    assert pull(x)[0].tolist() == [2, 2, 2, 2, 2]


def test_pickling():
    again = pickle.loads(pickle.dumps(cell))
    assert again is cell
    parts = custom_jvp(fnp.sin)
    parts.defjvps(_sine_rule)
    other = pickle.loads(pickle.dumps(parts))
    assert other is not parts
    assert jvp(other, (1.0,), (1.0,))[1] == np.cos(1.0)
    assert pickle.loads(pickle.dumps(grad(cell))).fun is cell


def _sine_rule(t, ans, x):
    return t * fnp.cos(x)


@custom_vjp
def _tripled(x):
    return x * 3.0


_tripled.defvjp(lambda x: (_tripled(x), None), lambda _, ct: (ct * 3.0,))


def _sum_of_written(x):
    out = np.zeros(2)
    out[0] = math.sin(x)
    out[1] = _tripled(x)
    return out.sum()


def test_rebuilding_a_caller_changes_no_function_with_rules():
    before = _tripled.fun, _tripled._vjp
    assert grad(_sum_of_written)(0.3) == math.cos(0.3) + 3.0
    assert (_tripled.fun, _tripled._vjp) == before


def test_name_and_docstring_are_kept():
    @custom_vjp
    def named(x):
        """What it does."""
        return x

    assert (named.__name__, named.__doc__) == ("named", "What it does.")
    assert repr(named) == "<named with own derivative rules>"
    assert named.__wrapped__ is named.fun


def test_collectives_inside_rules():
    f = custom_vjp(lambda x: x / psum(x, "i"))
    f.defvjp(lambda x: (x / psum(x, "i"), psum(x, "i")), lambda total, ct: (ct / total,))
    x = np.array([1.0, 3.0])
    np.testing.assert_array_equal(vmap(f, axis_name="i")(x), [0.25, 0.75])
    np.testing.assert_array_equal(vmap(grad(f), axis_name="i")(x), [0.25, 0.25])


def test_collectives_in_a_pullback_after_the_end_of_the_vmap():
    def share(module, lib, xp):
        f = module.custom_vjp(lambda x: x / lib.psum(x, "i"))
        f.defvjp(
            lambda x: (x / lib.psum(x, "i"), x),
            lambda x, ct: ((ct - lib.psum(ct * x, "i") / lib.psum(x, ("i", "j"))) / lib.psum(x, "i"),),
        )
        return module.vmap(module.vmap(lambda x: xp.sin(x) * f(x), axis_name="i"), axis_name="j")

    class Lib:
        custom_vjp, vmap, psum = custom_vjp, vmap, psum

    x = np.array([[1.0, 3.0, 0.5], [2.0, 0.1, 0.7]])
    ours, theirs = share(Lib, Lib, fnp), share(jax, jax.lax, jnp)
    np.testing.assert_allclose(vjp(ours, x)[1](x * x)[0], jax.vjp(theirs, x)[1](x * x)[0], rtol=1e-12)
    np.testing.assert_allclose(jacrev(ours)(x), jax.jacrev(theirs)(x), rtol=1e-12)
    np.testing.assert_allclose(
        vmap(grad(lambda x: ours(x).sum()))(np.stack([x, x]))[1], jax.grad(lambda x: theirs(x).sum())(x), rtol=1e-12
    )


def test_no_grad_and_stop_gradient():
    f = with_rules("vjp")
    assert grad(lambda x: no_grad(f)(x, 1.0) + x)(2.0) == 1.0
    assert grad(lambda x: f(stop_gradient(x), 1.0) + x)(2.0) == 1.0
    assert no_grad(grad(lambda x: f(x, 1.0)))(2.0) == pytest.approx(np.cos(2.0) + 1)


# JAX arrays, and JAX's own transforms.


@pytest.mark.parametrize("kind", KINDS)
def test_on_jax_arrays(kind):
    made = with_rules(kind)
    x = jnp.asarray(X)
    np.testing.assert_allclose(jax.jit(vmap(grad(made)))(x, x), vmap(grad(plain))(X, X), rtol=1e-12)
    np.testing.assert_allclose(
        jax.jit(lambda x: jvp(lambda a: made(a, a), (x,), (x,))[1])(x), jvp(lambda a: plain(a, a), (X,), (X,))[1]
    )
    assert isinstance(grad(made)(x[0], 2.0), jax.Array)


@pytest.mark.parametrize("kind", KINDS)
def test_transforms_of_jax_use_the_rules(kind):
    f = (custom_jvp if kind == "jvp" else custom_vjp)(lambda x, n: fnp.round(x), nondiff_argnums=(1,))
    if "vjp" in kind:
        f.defvjp(lambda x, n: (fnp.round(x), ("text", None, x)), lambda n, kept, ct: (ct * kept[2] * n,))
    if kind.endswith("jvp"):
        f.defjvp(lambda n, primals, tangents: (fnp.round(primals[0]), tangents[0] * primals[0] * n))
    assert jax.grad(f)(2.25, 2) == 4.5
    assert jax.jit(jax.grad(lambda x: f(x, 2)))(2.25) == 4.5
    np.testing.assert_allclose(jax.vmap(jax.grad(lambda x: f(x, 2)))(jnp.asarray(X)), 2 * X)
    assert jax.jacrev(jax.grad(f))(2.25, 2) == 2.0
    if kind == "jvp":
        assert jax.jvp(lambda x: f(x, 2), (2.25,), (1.0,))[1] == 4.5


def test_residuals_in_objects_keep_their_values():
    """A write after the call does not change the pullback, also not to an array in a registered class."""

    @register_dataclass
    @dataclasses.dataclass
    class Kept:
        scale: object
        parts: object

    @custom_vjp
    def scaled(x, scale):
        return x * scale

    scaled.defvjp(
        lambda x, scale: (x * scale, Kept(scale, {"twice": (scale, 2.0)})),
        lambda kept, ct: (ct * kept.scale + ct * kept.parts["twice"][0], None),
    )
    scale = np.array([1.0, 2.0, 3.0])
    _, pullback = vjp(lambda x: scaled(x, scale), np.ones(3))
    scale[:] = 100.0
    assert pullback(np.ones(3))[0].tolist() == [2.0, 4.0, 6.0]
