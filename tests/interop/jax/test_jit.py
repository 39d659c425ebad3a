"""``jit``: NumPy arrays in and out, compiled; every transform inside and around."""

import dataclasses
import functools
import gc
import math
import pickle
import re
import subprocess
import sys
import weakref
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from helpers import close_leaves
from jax.experimental.compilation_cache import compilation_cache
from toolz import compose_left, curry

import funcgrad.numpy as fnp
from funcgrad import (
    as_written,
    axis_index,
    check_grads,
    checkpoint,
    custom_jvp,
    custom_vjp,
    debug_nans,
    fori_loop,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    linear_transpose,
    linearize,
    no_grad,
    psum,
    register_dataclass,
    stop_gradient,
    strict,
    tape,
    trace,
    value_and_grad,
    vjp,
    vmap,
)
from funcgrad.errors import (
    AxisNameError,
    ConcretizationError,
    EscapedTracerError,
    InputError,
    ReadOnlyError,
    StagingError,
)
from funcgrad.interop.jax.devices import device_put
from funcgrad.interop.jax.jit import jit
from funcgrad.interop.jax.programs import from_jax
from funcgrad.optional import precision_switch

close = partial(close_leaves, kind=(np.ndarray, np.generic))

X = np.array([0.3, 0.7, 1.1])
W = np.array([[0.2, -0.4, 0.9], [1.3, 0.1, -0.6]])


def wave(x):
    return np.sin(x) * x**2


FUNCTIONS = {
    "numpy": wave,
    "funcgrad.numpy": lambda x: fnp.cumsum(fnp.exp(x)) * x,
    "pipeline": compose_left(np.cos, lambda x: W @ x, np.tanh),
    "inner gradient": vmap(grad(lambda x: np.tanh(x) ** 3)),
}
functions = pytest.mark.parametrize("name", FUNCTIONS)


def total(fun):
    return lambda x: fnp.sum(fun(x) ** 2)


PAIR = np.stack([X, 2 * X])
TRANSFORMS = {
    "value": lambda f, wrap: wrap(f)(X),
    "grad": lambda f, wrap: wrap(grad(total(f)))(X),
    "jacrev": lambda f, wrap: wrap(jacrev(f))(X),
    "jacfwd": lambda f, wrap: wrap(jacfwd(f))(X),
    "hessian": lambda f, wrap: wrap(hessian(total(f)))(X),
    "reverse over reverse": lambda f, wrap: wrap(jacrev(grad(total(f))))(X),
    "third order": lambda f, wrap: wrap(jacfwd(jacrev(grad(total(f)))))(X),
    "vmap": lambda f, wrap: wrap(vmap(f))(PAIR),
    "vmap of grad": lambda f, wrap: wrap(vmap(grad(total(f))))(PAIR),
    "grad of vmap": lambda f, wrap: wrap(grad(lambda x: fnp.sum(vmap(f)(x) ** 2)))(PAIR),
    "jvp": lambda f, wrap: wrap(lambda x: jvp(f, (x,), (x,)))(X),
    "hvp": lambda f, wrap: wrap(lambda x: hvp(total(f), (x,), (x,)))(X),
}


@functions
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_jit_inside_and_around_transforms(name, transform):
    f, run = FUNCTIONS[name], TRANSFORMS[transform]
    expected = run(f, lambda g: g)
    close(run(jit(f), lambda g: g), expected)
    close(run(f, jit), expected)
    if name == "numpy":
        close(run(jit(f), jit), expected)


def test_jit_inside_more_transforms():
    f = jit(wave)
    close(linearize(f, X)[1](X), linearize(wave, X)[1](X))
    close(linear_transpose(jit(lambda x: W @ x), X)(np.ones(2)), linear_transpose(lambda x: W @ x, X)(np.ones(2)))
    close(grad(checkpoint(total(f)))(X), grad(total(wave))(X))
    close(jit(grad(checkpoint(total(wave))))(X), grad(total(wave))(X))
    close(strict(grad(total(f)))(X), grad(total(wave))(X))
    close(trace(total(f))(X)(2 * X), total(wave)(2 * X))
    close(trace(grad(total(f)))(X)(2 * X), grad(total(wave))(2 * X))
    close(vmap(grad(lambda w, x: f(w) * x), in_axes=(None, 0))(0.5, X), grad(wave)(0.5) * X)
    assert next(node.name for node in tape(vjp(f, X)[1])) == "jax_call"
    check_grads(f, (X,))


def test_compiled_once_per_shapes_and_dtypes():
    runs = []

    @jit
    def f(x, scale):
        runs.append((x.shape, x.dtype))
        return x * scale

    for _ in range(3):
        for x in (X, X.astype("float32"), PAIR, X + 1):
            close(f(x, 2.0), x * 2.0)
    assert runs == [((3,), np.float64), ((3,), np.float32), ((2, 3), np.float64)]


def test_forward_and_backward_compile_once():
    runs = []

    def f(x):
        runs.append(1)
        return fnp.sum(np.tanh(x) ** 2)

    compiled = jit(f)
    expected = grad(lambda x: fnp.sum(np.tanh(x) ** 2))(X)
    for _ in range(3):
        close(grad(compiled)(X), expected)
        close(vmap(grad(compiled))(PAIR)[0], expected)
    assert len(runs) == 2
    for _ in range(3):
        compiled(X)
        hessian(compiled)(X)
    assert len(runs) < 8


def test_programs_of_dropped_functions_are_freed():
    """JAX keeps the structures of results in caches, which must not hold what computes the derivatives."""

    def program_and_pullback():
        fun = jit(lambda x: np.sin(x) * 2.0)
        grad(lambda x: np.sum(fun(x) * x))(np.ones(3))
        (program,) = fun._programs.values()
        (derived,) = program._derived.values()
        (static,) = derived.static.values()
        return weakref.ref(program), weakref.ref(static.pullback)

    kept = program_and_pullback()
    gc.collect()
    assert [ref() for ref in kept] == [None, None]


def test_reads_of_one_place_are_added_before_they_are_joined():
    """XLA's time to compile grows with the square of the number of parts of a joined array."""

    def steps(x, n):
        y = x[0]
        for _ in range(n):
            y = np.sin(y) * x[1] + x[2]
        return y

    x = np.array([0.5, 1.5, 0.25])
    with precision_switch(jax)(True):
        text = str(jax.make_jaxpr(jit(grad(partial(steps, n=20))))(x))
    assert "scatter" in text
    assert "[41" not in text  # the number of reads
    close(jit(grad(partial(steps, n=20)))(x), grad(partial(steps, n=20))(x))


def test_residuals_stay_on_the_device():
    y, pullback = vjp(jit(lambda w, x: np.tanh(w @ x)), W, X)
    residuals = [leaf for node in pullback._nodes for leaf in jax.tree.leaves(node[2:]) if hasattr(leaf, "shape")]
    assert residuals
    assert all(isinstance(leaf, jax.Array) for leaf in residuals)
    assert type(y) is np.ndarray
    close(pullback(np.ones(2)), vjp(lambda w, x: np.tanh(w @ x), W, X)[1](np.ones(2)))
    close(jax.tree.map(lambda a, b: a + b, *[pullback(np.eye(2)[i]) for i in range(2)]), pullback(np.ones(2)))


def test_unbatched_residual_is_saved_once():
    f = jit(lambda w, x: np.tanh(w @ x))
    shapes = []

    def of(x):
        _, pullback = vjp(f, W, x)
        shapes.extend(leaf._val.shape if hasattr(leaf, "_val") else leaf.shape for leaf in pullback._nodes[0][2][5])
        return pullback(np.ones(2))

    got = vmap(of)(np.ones((50, 3)) * X)
    assert max(np.prod(shape) for shape in shapes) == 150  # the shape of x; w is not batched
    close(got[0][7], vjp(lambda w, x: np.tanh(w @ x), W, X)[1](np.ones(2))[0])


def test_funcgrad_rules_are_used():
    # JAX's own derivatives of these powers are nan; see funcgrad.interop.crosschecks.divergences
    assert grad(jit(lambda x: x**0.0))(0.0) == 0.0
    assert grad(grad(jit(lambda x: x**1.0)))(0.0) == 0.0
    assert jvp(jit(lambda x: x**0.0), (0.0,), (1.0,))[1] == 0.0
    assert jit(grad(lambda x: x**0.0))(0.0) == 0.0


def test_custom_rules():
    @custom_vjp
    def clipped(x):
        return np.multiply(x, 1.0)

    clipped.defvjp(lambda x: (np.multiply(x, 1.0), None), lambda _, ct: (np.clip(ct, -0.5, 0.5),))

    @custom_jvp
    def tripled(x):
        return fnp.sin(x)

    tripled.defjvp(lambda xs, ts: (fnp.sin(xs[0]), 3 * ts[0] * fnp.cos(xs[0])))
    for f in (clipped, tripled):
        g = lambda x, f=f: fnp.sum(f(x) ** 2)
        close(grad(jit(g))(X), grad(g)(X))
        close(jit(grad(g))(X), grad(g)(X))
        close(hessian(jit(g))(X), hessian(g)(X))
        close(jit(g)(X), g(X))
        np.testing.assert_allclose(jax.grad(jit(g))(X), grad(g)(X), rtol=1e-12)


def test_jax_functions_inside():
    f = from_jax(lambda x: jax.lax.cumlogsumexp(x))
    close(jit(f)(X), f(X))
    close(jit(grad(total(f)))(X), grad(total(f))(X))
    close(grad(jit(total(f)))(X), grad(total(f))(X))
    close(from_jax(jit(wave))(X), wave(X))


def test_stop_gradient_and_no_grad():
    close(grad(jit(lambda x: fnp.sum(x * stop_gradient(x))))(X), X)
    close(grad(jit(lambda x: fnp.sum(x * no_grad(np.sin)(x))))(X), np.sin(X))
    close(grad(lambda x: fnp.sum(x * no_grad(jit(np.sin))(x)))(X), np.sin(X))
    with no_grad():
        close(grad(total(jit(wave)))(X), grad(total(wave))(X))


# closures


def test_closure_over_transformed_values():
    def f(w):
        return jit(lambda x: w * x * w)(3.0)

    assert (grad(f)(2.0), grad(grad(f))(2.0), jvp(f, (2.0,), (1.0,))[1]) == (12.0, 6.0, 12.0)
    close(vmap(f)(X), 3 * X**2)
    assert (jit(f)(2.0), jit(grad(f))(2.0), grad(jit(f))(2.0)) == (12.0, 12.0, 12.0)
    np.testing.assert_allclose(jax.jit(jax.grad(f))(2.0), 12.0)


def test_closure_over_changing_value():
    holder = {}
    g = jit(lambda x: holder["w"] * x)

    def f(w):
        holder["w"] = w * 2
        first = g(3.0)
        holder["w"] = w * w
        return first + g(5.0)

    assert grad(f)(2.0) == 6 + 20
    assert grad(f)(3.0) == 6 + 30
    with pytest.raises(EscapedTracerError):
        g(1.0)


def test_closure_used_in_result_and_with_arguments():
    def f(w):
        a, (b, c) = jit(lambda x: (x + 1, (w, grad(lambda y: y * w * x)(1.0))))(3.0)
        return a + 10 * b + 100 * c

    assert grad(f)(2.0) == 10 + 300


def test_closure_over_arrays():
    table = X.copy()
    close(jit(lambda x: x * table)(X), X**2)
    close(jit(lambda x: x * jnp.asarray(table))(X), X**2)


# containers, dtypes, arguments


@register_dataclass
@dataclasses.dataclass
class Layer:
    w: object
    b: object


Point = namedtuple("Point", "a b")


def test_containers():
    def f(p, rest):
        return {"z": Point(p["w"] * 2, None), "a": [rest[0] @ p["w"], (rest[1],)]}, 1.0

    args = {"w": X, "none": None}, (W, 3)
    out, one = jit(f)(*args)
    assert (type(out["z"]), list(out), one) == (Point, ["z", "a"], 1.0)
    close((out, one), ({"z": Point(X * 2, None), "a": [W @ X, (np.int64(3),)]}, np.float64(1.0)))
    layer = jit(lambda layer: Layer(layer.b, layer.w @ layer.b))(Layer(W, X))
    assert type(layer) is Layer
    close((layer.w, layer.b), (X, W @ X))
    close(jit(lambda *args, **kwargs: args[1] + kwargs["b"])(1.0, X, b=X, c=2), 2 * X)
    close(jit(lambda: np.ones(2))(), np.ones(2))
    assert jit(lambda x: ())(X) == ()


def test_numbers():
    f = jit(lambda x: x * x)
    assert [type(f(x)) for x in (3, 3.0, 3j, np.float32(3), True)] == [
        np.int64,
        np.float64,
        np.complex128,
        np.float32,
        np.bool_,
    ]
    assert (f(3), f(3.0), f(3j)) == (9, 9.0, -9)
    assert f(np.float32(3)) == 9


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "complex64", "complex128", "uint8", "int32", "int64", "bool"]
)
def test_dtypes_match_numpy(dtype):
    x = (X * 3).astype(dtype)
    for f in (lambda x: x * 2, lambda x: x[0], lambda x: x + np.float32(1), lambda x: x / 3, fnp.mean):
        got, expected = jit(f)(x), f(x)
        assert got.shape == expected.shape
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-3)
    if np.dtype(dtype).kind in "fc":
        assert grad(jit(lambda x: fnp.sum(fnp.abs(x * x))))(x).dtype == dtype


def test_integers_have_no_derivative():
    (n, y, above), pullback = vjp(jit(lambda n, x: (n + 1, n * x, x > 0.5)), 3, X)
    zero, ct = pullback((0, np.ones(3), np.zeros(3, bool)))
    assert (n, zero.dtype) == (4, jax.dtypes.float0)
    assert above.tolist() == [False, True, True]
    close(ct, np.full(3, 3.0))
    close(y, 3 * X)
    assert jvp(jit(lambda x: (x > 0.5, x)), (X,), (X,))[1][0].dtype == jax.dtypes.float0


def test_empty_and_broadcast():
    for f in (lambda x, y: x * y + 1, lambda x, y: fnp.sum(x, axis=0) - y):
        args = np.ones((3, 0)), 2.0
        close(jit(f)(*args), f(*args))
        close(jacrev(jit(f))(*args), jacrev(f)(*args))
    close(
        grad(jit(lambda x, y: fnp.sum(x * y)), (0, 1))(X[:, None], X),
        grad(lambda x, y: fnp.sum(x * y), (0, 1))(X[:, None], X),
    )


def test_static_arguments():
    def f(x, n, mode="up"):
        assert type(n) is int
        return sum(x for _ in range(n)) if mode == "up" else -x

    by_number = jit(f, static_argnums=(1, 2))
    close(by_number(X, 3), 3 * X)
    close(by_number(X, 3, "down"), -X)
    close(by_number(X, n=2, mode="up"), 2 * X)
    by_name = jit(f, static_argnames=("n", "mode"))
    close(by_name(X, 3), 3 * X)
    close(by_name(X, n=3, mode="down"), -X)
    close(grad(lambda x: fnp.sum(by_name(x, 3)))(X), np.full(3, 3.0))
    close(jit(lambda *, x, n: x * n[0], static_argnames="n")(x=X, n=(2,)), 2 * X)
    close(jit(lambda n, x: [x, -x][n], static_argnums=-2)(1, X), -X)


def test_static_arguments_are_distinguished_by_type():
    f = jit(lambda n, x: x * n if isinstance(n, bool) else x + n, static_argnums=0)
    close((f(1, X), f(True, X), f(1.0, X)), (X + 1, X, X + 1.0))


@pytest.mark.parametrize("backend", ["xla", "numpy"])
def test_static_containers_and_zeros_are_distinguished(backend):
    kinds = jit(lambda x, n: x ** next(iter(n)), static_argnums=1, backend=backend)
    for n in [(2,), (2.0,), (np.float64(2.0),), frozenset([2]), frozenset([2.0])]:
        assert kinds(np.arange(3), n).dtype == (np.arange(3) ** next(iter(n))).dtype
    sign = jit(lambda x, zero: x * np.copysign(1.0, zero), static_argnames="zero", backend=backend)
    assert [sign(2.0, zero=zero) for zero in (0.0, -0.0, 0.0)] == [2.0, -2.0, 2.0]
    sign = jit(lambda x, zero: x * np.copysign(1.0, zero.imag), static_argnames="zero", backend=backend)
    assert [sign(2.0, zero=zero) for zero in (0j, complex(0.0, -0.0))] == [2.0, -2.0]


def test_invalid_arguments_raise():
    with pytest.raises(InputError, match="jit: the first argument must be a function"):
        jit(X)
    with pytest.raises(InputError, match=r"jit: argument 1\['a'\] of <lambda> is not an array.* 'fast'.*static_argn"):
        jit(lambda x, options: x)(X, {"a": "fast"})
    with pytest.raises(InputError, match=r"argument \['mode'\] of <lambda>"):
        jit(lambda x, mode: x)(X, mode="a")
    with pytest.raises(InputError, match="holds Python objects"):
        jit(np.sin)(np.array([None]))
    with pytest.raises(InputError, match=r"must be hashable, got list \[1\]"):
        jit(lambda x, n: x, static_argnums=1)(X, [1])
    with pytest.raises(InputError, match=r"must return arrays.*got str"):
        jit(lambda x: (x, "name"))(X)
    with pytest.raises(InputError, match="static_argnums must be an int or ints"):
        jit(np.sin, static_argnums="x")
    with pytest.raises(InputError, match=r"no such argument, got 'mod' in static_argnames\. It has x, mode"):
        jit(lambda x, *, mode="a": x, static_argnames=("mode", "mod"))
    with pytest.raises(InputError, match=r"no such argument, got 2 in static_argnums or donate_argnums\. It has x, n"):
        jit(lambda x, n: x, static_argnums=(1, 2))
    with pytest.raises(InputError, match="no such argument, got 1 in"):
        jit(lambda x: x, donate_argnums=1)
    with pytest.raises(InputError, match="no such argument, got -1 in"):
        jit(lambda x, n: x, static_argnums=-3)
    close(jit(lambda *xs, **options: xs[0] * options["n"], 1, "n")(X, None, n=2), 2 * X)


@pytest.mark.parametrize("x", [np.ones(2, np.longdouble), np.longdouble(1.0), np.ones(2, np.clongdouble)])
@pytest.mark.parametrize("call", [jit(np.sin), from_jax(jnp.sin), lambda x: device_put(x, "cpu")])
def test_long_double_raises(call, x):
    with pytest.raises(InputError, match=r"no numbers longer than float64.*got .*Shorten them with astype"):
        call(x)


def test_subclasses_and_other_array_kinds(tmp_path):
    mapped = np.memmap(tmp_path / "x", float, "w+", shape=3)
    mapped[:] = X
    for x in (mapped, X.astype(">f8"), X[::-1][::-1], np.asfortranarray(W), W[:, 1:]):
        got = jit(np.sin)(x)
        assert (type(got), got.dtype) == (np.ndarray, np.float64)
        np.testing.assert_allclose(got, np.sin(x), rtol=1e-15)
        np.testing.assert_allclose(from_jax(jnp.sin)(x), np.sin(x), rtol=1e-15)


# what cannot be compiled


def _branch(x):
    if x[0] > 0:
        return x
    return -x


def _loop(x):
    while np.sum(x) > 1:
        x = x / 2
    return x


def _number(x):
    return float(x[0]) * x


def _mask(x):
    return x[x > 0.5]


def _shape(x):
    return np.nonzero(x > 0.5)[0]


def _range(n):
    return sum(range(n))


def _lookup(x):
    return [1.0, 2.0][x[0].astype(int)]


@pytest.mark.parametrize(
    ("fun", "argument", "line", "remedy"),
    [
        (_loop, X, "while np.sum(x) > 1:", "while_loop"),
        (_mask, X, "return x[x > 0.5]", "where(mask, x, 0)"),
        (_shape, X, "return np.nonzero(x > 0.5)[0]", "where"),
        (_range, 3, "return sum(range(n))", "fori_loop"),
        (_lookup, X, "return [1.0, 2.0][x[0].astype(int)]", "take(table, i, axis=0)"),
    ],
)
def test_staging_error_names_line_and_remedy(fun, argument, line, remedy):
    for compiled in (jit(fun), jit(lambda x: fun(x)), compose_left(jit(fun), np.sin)):
        with pytest.raises(StagingError) as caught:
            compiled(argument)
        message = str(caught.value)
        assert f"test_jit.py:{fun.__code__.co_firstlineno + 1} `{line}`" in message
        assert message.startswith("jit: ")
        assert remedy in message
    assert isinstance(caught.value, TypeError)


def test_staging_error_names_the_line_of_a_package():
    def fun(x):
        return scipy.optimize.bracket(lambda t: (t - x[0]) ** 4)[0]

    with pytest.raises(StagingError) as caught:
        jit(fun)(X)
    message = str(caught.value)
    assert re.search(
        r"the truth value .* by .*scipy.optimize\W.*\.py:\d+ `.*`, at .*test_jit.py:\d+ `return sci", message
    )
    assert message.endswith(
        "Call the function of the package outside of what is compiled, or write its formula with NumPy."
    )


def test_staging_error_inside_and_around_transforms():
    for f in (jit(grad(lambda x: fnp.sum(_loop(x)))), grad(jit(lambda x: fnp.sum(_loop(x)))), vmap(jit(_loop))):
        with pytest.raises(StagingError, match=r"at .*test_jit.py:\d+ `while np.sum\(x\) > 1:`"):
            f(PAIR if f.__name__ == "_loop" else X)
    with as_written(), pytest.raises(ConcretizationError, match="reverse mode"):
        jit(grad(lambda x: fnp.sum(_number(x))))(X)
    close(jit(grad(lambda x: fnp.sum(_number(x)) if x.shape == () else fnp.sum(x)))(X), np.ones(3))


def test_user_errors_pass_through():
    with pytest.raises(ZeroDivisionError):
        jit(lambda x: x * (1 // 0))(X)
    with pytest.raises(TypeError, match="incompatible shapes"):
        jit(lambda x: x + np.ones(5))(X)
    f = jit(lambda x: x / 2 if x.ndim else _branch(x))
    close(f(X), X / 2)


def test_leaked_tracer_raises():
    leaked = []
    jit(lambda x: leaked.append(x * 2) or x)(X)
    with pytest.raises(EscapedTracerError):
        leaked[0] + 1


# memory, devices, JAX


def test_memory_is_not_shared():
    for fun in (lambda x: x, lambda x: x.reshape(1, -1), lambda x: (x, x)[0], wave):
        for n in (3, 4096):
            buffer = np.empty(n + 8)
            offset = -buffer.ctypes.data % 64 // 8
            x = buffer[offset : offset + n]  # aligned as XLA requires
            x[:] = 1.5
            y, pullback = vjp(jit(fun), x)
            assert y.flags.writeable  # the array is the caller's, not JAX's
            before = y.copy()
            direct = jit(fun)(x)
            x[:] = 0
            np.testing.assert_array_equal(y, before)
            np.testing.assert_array_equal(direct, before)
            pulled = pullback(before)[0]
            x[:] = 1.5
            close(pulled, vjp(fun, x)[1](before)[0])


def add_to_view(x):
    rest = x[1:]
    rest += 1.0
    return x.sum()


def add_to_other_name(x):
    same = x
    same *= 2.0
    return x.sum()


@pytest.mark.parametrize("fun", [add_to_view, add_to_other_name])
def test_augmented_assignment_writes_to_the_argument(fun):
    for call in (jit(fun), jit(grad(fun)), grad(jit(fun)), lambda x: jit(vmap(fun))(np.stack([x, x]))):
        with pytest.raises(ReadOnlyError, match=r"x [+*]= y: an argument of a transformed function"):
            call(X)
    np.testing.assert_array_equal(vjp(fun, jnp.asarray(X))[0], fun(jnp.asarray(X)))  # JAX's own arrays are immutable


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: grad(lambda x: fnp.sum(f(x))),
        lambda f: vmap(grad(f)),
        jacrev,
        jacfwd,
        hessian,
        lambda f: lambda x: jvp(f, (x,), (np.ones(3),))[1],
        lambda f: lambda x: linearize(f, x)[1](x),
    ],
)
def test_cotangents_and_tangents_in_custom_rules_are_arrays_of_numpy(transform):
    def doubled(t):
        return t * 2.0 if isinstance(t, (np.ndarray, float)) else t * 3.0

    by_vjp, by_jvp = custom_vjp(lambda x: 2.0 * x), custom_jvp(lambda x: 2.0 * x)
    by_vjp.defvjp(lambda x: (2.0 * x, None), lambda _, ct: (doubled(ct),))
    by_jvp.defjvp(lambda primals, tangents: (2.0 * primals[0], doubled(tangents[0])))
    for fun in (by_vjp, by_jvp):
        close(jit(transform(fun))(X), transform(fun)(X))


def test_functions_of_math_in_a_rule_compile():
    total = custom_vjp(lambda x: fnp.sum(x))
    total.defvjp(lambda x: (fnp.sum(x), None), lambda _, ct: (np.ones(3) * math.sin(ct),))
    close(jit(grad(total))(X), np.full(3, np.sin(1.0)))


def test_cached_jax_conversion_is_not_used():
    x = np.array([0.1, 0.2, 0.3])
    with precision_switch(jax)(False):
        held = jax.vjp(lambda x: jnp.multiply(x, x), x)
        f = jit(lambda x: x + 0)
        close(f(x), x)
        close(grad(lambda x: fnp.sum(f(x) ** 2))(x), 2 * x)
        x[:] = 5.0
        close(f(x), x)
    assert held


def test_caller_owns_gradients():
    slope = grad(jit(total(wave)))(X)
    slope *= 0
    assert slope.tolist() == [0, 0, 0]


@pytest.fixture
def _uncached():
    """Disable JAX's compilation cache: cached programs of older JAX overwrite memory shared with NumPy arrays.

    JAX checks once whether there is a cache, and again after a reset.
    """
    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    yield
    jax.config.update("jax_enable_compilation_cache", before)
    compilation_cache.reset_cache()


@pytest.mark.usefixtures("_uncached")
def test_donated_memory():
    f = jit(lambda x, y: (x + y, x * y), donate_argnums=0)
    x = X.copy()
    for _ in range(2):
        first, second = f(x, X)
        close((first, second), (2 * X, X**2))
    close(x, X)
    given = jnp.asarray(X)
    result = f(given, X)[0]
    assert given.is_deleted()
    np.testing.assert_allclose(result, 2 * X)
    close(grad(lambda x: fnp.sum(f(x, X)[1]))(X), X)
    # a NumPy view of an array keeps its values when the array is donated
    made = jit(lambda: np.full(3, 2.0))()
    jit(lambda x: x + 1, donate_argnums=0)(jnp.asarray(made))
    assert made.tolist() == [2, 2, 2]


def test_jax_arrays_stay_jax_arrays():
    f, x = jit(wave), jnp.asarray(X)
    assert isinstance(f(x), jax.Array)
    np.testing.assert_allclose(f(x), wave(X), rtol=1e-14)
    slope = grad(total(f))(x)
    assert isinstance(slope, jax.Array)
    np.testing.assert_allclose(slope, grad(total(wave))(X), rtol=1e-12)
    assert isinstance(jit(lambda x, y: x + y)(x, X), jax.Array)
    assert type(jit(lambda x, i: x[i])(X, jnp.array([0, 2]))) is np.ndarray
    assert isinstance(jit(lambda i: i + 1)(jnp.arange(3)), jax.Array)


def test_jit_under_jax_transforms():
    f = jit(wave)
    expected = grad(lambda x: fnp.sum(wave(x)))(X)
    np.testing.assert_allclose(jax.jit(f)(X), wave(X), rtol=1e-14)
    np.testing.assert_allclose(jax.grad(lambda x: jnp.sum(f(x)))(X), expected, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(f)))(X), expected, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(grad(lambda x: fnp.sum(f(x))))(X), expected, rtol=1e-12)
    with precision_switch(jax)(False):
        assert jax.jit(f)(X).dtype == np.float32


def test_x64_mode_is_entered_and_left():
    f = jit(lambda x: x * np.linspace(0.0, 1.0, 3))
    with precision_switch(jax)(False):
        for _ in range(2):
            close(f(X), X * np.linspace(0, 1, 3))
            close(hessian(total(f))(X), hessian(total(lambda x: x * np.linspace(0, 1, 3)))(X))
            assert f(X.astype("float32")).dtype == np.float64  # as in NumPy
            assert jnp.ones(2).dtype == np.float32
            with pytest.raises(StagingError):
                jit(_loop)(X)
            assert jnp.ones(2).dtype == np.float32
    close(f(X), X * np.linspace(0, 1, 3))


def test_random_keys_are_arguments():
    normal = from_jax(jax.random.normal)
    f = jit(lambda x, key: x * normal(key, x.shape))
    key = jax.random.key(1)
    assert type(f(X, key)) is np.ndarray
    close(f(X, key), X * f(np.ones(3), key))
    close(grad(lambda x: fnp.sum(f(x, key)))(X), f(np.ones(3), key))


# axis names, inspection, other topics


def test_axis_names():
    f = lambda x: (x / psum(x, "i")) ** 2
    close(vmap(jit(f), axis_name="i")(X), vmap(f, axis_name="i")(X))
    close(vmap(grad(jit(f)), axis_name="i")(X), vmap(grad(f), axis_name="i")(X))
    close(
        grad(lambda x: fnp.sum(vmap(jit(f), axis_name="i")(x)))(X),
        grad(lambda x: fnp.sum(vmap(f, axis_name="i")(x)))(X),
    )
    close(vmap(jit(lambda x: x * axis_index("i")), axis_name="i")(X), X * np.arange(3.0))
    g = jit(lambda x: psum(x, "i"))
    assert vmap(lambda x: g(2.0), axis_name="i")(X).tolist() == [6.0] * 3
    assert vmap(lambda x: g(2.0), axis_name="i")(X[:2]).tolist() == [4.0] * 2
    with pytest.raises(AxisNameError):
        g(2.0)


def test_debug_nans_finds_nan():
    with debug_nans():
        close(jit(grad(total(wave)))(X), grad(total(wave))(X))
        close(grad(total(jit(wave)))(X), grad(total(wave))(X))
        with pytest.raises(FloatingPointError), np.errstate(invalid="ignore"):
            grad(total(jit(np.log)))(-X)


def test_names_pickles_and_methods():
    f = jit(wave)
    assert (f.__name__, repr(f), repr(jit(grad(wave)))) == ("wave", "<jit of wave>", "<jit of grad of wave>")
    assert str(f.__doc__).startswith("wave compiled by XLA.")
    close(pickle.loads(pickle.dumps(f))(X), wave(X))
    assert f == jit(wave)
    assert hash(f) == hash(jit(wave))
    close(jit(functools.partial(np.multiply, 2.0))(X), 2 * X)
    close(jit(curry(lambda a, x: a * x)(2.0))(X), 2 * X)
    close(grad(compose_left(np.cos, jit(np.sin), fnp.sum))(X), grad(lambda x: fnp.sum(np.sin(np.cos(x))))(X))

    class Model:
        w = 3.0

        @functools.partial(jit, static_argnums=0)
        def predict(self, x):
            return self.w * x

    close(Model().predict(X), 3 * X)


def test_threads():
    f = jit(grad(total(wave)))
    with precision_switch(jax)(False), ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda i: f(X * i), range(16)))
    for i, result in enumerate(results):
        close(result, grad(total(wave))(X * i))


def test_has_aux_and_values():
    f = lambda p, x: (fnp.sum((p["w"] @ x) ** 2), {"n": x.shape[0], "y": p["w"]})
    args = {"w": W}, X
    (value, aux), slope = jit(value_and_grad(f, has_aux=True))(*args)
    (v, a), s = value_and_grad(f, has_aux=True)(*args)
    close((value, slope, aux["y"]), (v, s, a["y"]))
    assert aux["n"] == 3
    close(value_and_grad(jit(f), has_aux=True)(*args)[1], s)


DEVICES = """
import numpy as np, jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
import funcgrad.numpy as fnp
from funcgrad import grad, hessian
from funcgrad.interop.jax.jit import jit
from funcgrad.interop.jax.devices import default_device, device_put

mesh = Mesh(np.array(jax.devices()), ("data",))
rows, whole = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())
rng = np.random.default_rng(0)
x, w = rng.normal(size=(16, 3)), rng.normal(size=3)
loss = lambda w, x: fnp.mean(np.tanh(x @ w) ** 2)
expected, curvature = grad(loss)(w, x), hessian(loss)(w, x)
close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)

distributed = jit(grad(loss), in_shardings=(whole, rows), out_shardings=whole)
assert type(distributed(w, x)) is np.ndarray
close(distributed(w, x), expected)
inner = jit(loss, in_shardings=(whole, rows))
close(grad(inner)(w, x), expected)
close(hessian(inner)(w, x), curvature)
xs, ws = device_put(x, rows), device_put(w, whole)
assert len(xs.sharding.device_set) == 4 and xs.dtype == np.float64
out = jit(lambda x: {"a": x * 2, "b": fnp.sum(x)}, out_shardings={"a": rows, "b": whole})(xs)
assert out["a"].sharding.is_equivalent_to(rows, 2) and out["b"].sharding.is_equivalent_to(whole, 0)
close(jit(grad(loss))(ws, xs), expected)

for device in ("cpu:2", jax.devices()[2]):
    assert jit(np.sin, device=device)(device_put(w, "cpu:1")).devices() == {jax.devices()[2]}
    close(jit(np.sin, device=device)(w), np.sin(w))
    close(grad(jit(lambda w: fnp.sum(np.sin(w)), device=device))(w), np.cos(w))
with default_device("cpu:3"):
    assert jit(lambda: np.ones(3)).__call__().tolist() == [1.0] * 3
    assert jax.numpy.ones(2).devices() == {jax.devices()[3]}
assert jax.numpy.ones(2).devices() == {jax.devices()[0]}
slope = grad(lambda x: fnp.sum(jit(np.sin)(device_put(x, "cpu:1"))))
assert type(slope(w)) is np.ndarray
assert slope(device_put(w, "cpu:2")).devices() == {jax.devices()[2]}
close(slope(w), np.cos(w))
try:
    jit(np.sin, in_shardings=(rows, rows))(x)
except TypeError as error:
    assert "in_shardings does not fit the arguments" in str(error)
else:
    raise AssertionError("no error")
print("done")
"""


def test_several_devices():
    environment = {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": "1",
    }
    code = "import os, sys; sys.path[:0] = " + repr(sys.path) + "\n" + DEVICES
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, text=True, capture_output=True, check=False
    )
    assert done.stdout == "done\n", done.stderr


@pytest.mark.parametrize("x", [np.float32(1.0), np.array(1.0, np.float32), np.ones(2, np.float32)])
def test_counter_of_a_loop_keeps_single_precision(x):
    def f(x):
        return fori_loop(0, 3, lambda i, c: c * 0.5 + 0.1 * i - i / 4, x)

    found = jit(f)(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, f(x), rtol=1e-6)
    np.testing.assert_allclose(jit(grad(lambda x: fnp.sum(f(x))))(x), grad(lambda x: fnp.sum(f(x)))(x), rtol=1e-6)
