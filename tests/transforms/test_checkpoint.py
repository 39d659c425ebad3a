"""``checkpoint`` and ``checkpoint_chain``: unchanged values and derivatives, less memory, more recomputation."""

import functools
import gc
import math
import pickle
import threading
import tracemalloc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import (
    blocks,
    compose,
    compose_left,
    curry,
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
    shared_state,
    stop_gradient,
    tree,
    value_and_grad,
    vjp,
    vmap,
)
from funcgrad.errors import EscapedTracerError, InputError, ReplayError, ShapeError
from funcgrad.interop import from_array_api
from funcgrad.kinds import elementwise
from funcgrad.primitives import products
from funcgrad.replay.chain import Placement, split, states_for
from funcgrad.shared_state import open_traces
from funcgrad.transforms import policies
from funcgrad.transforms.checkpointing import checkpoint, checkpoint_chain, checkpoint_name
from funcgrad.writable import is_buffer

rng = np.random.default_rng(7)
W = rng.normal(size=(4, 4)) / 2
X = rng.normal(size=4)
BATCH = rng.normal(size=(3, 4))
XS = rng.normal(size=(23, 4)) / 3


def same_bits(found, expected):
    pairs = list(zip(tree.leaves(found), tree.leaves(expected), strict=True))
    assert pairs
    for a, b in pairs:
        np.testing.assert_array_equal(a, b, strict=True)


def close(found, expected, tolerance=1e-13):
    pairs = list(zip(tree.leaves(found), tree.leaves(expected), strict=True))
    assert pairs
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1e-300, np.abs(b).max()), strict=True)


def layer(w, h):
    return fnp.tanh(h @ w) * fnp.sin(h) + h[::-1] * fnp.sum(w[0])


# Programs that take ``wrap``, which marks the functions to run again, or does not.


def closes_over(wrap):
    def loss(w, x):
        h = x
        for _ in range(3):
            h = wrap(lambda h: layer(w, h))(h)
        return fnp.sum(h * h)

    return loss


def takes_all(wrap):
    def loss(w, x):
        marked = wrap(layer)
        return fnp.sum(marked(w, marked(w, x)) ** 2)

    return loss


def nests(wrap):
    def loss(w, x):
        inner = wrap(lambda h: layer(w, h))
        outer = wrap(lambda h: inner(fnp.cos(inner(h))) + h)
        return fnp.sum(outer(x) * w[1])

    return loss


def gives_trees(wrap):
    def split(w, parts):
        h = layer(w, parts["h"])
        return {"h": h, "both": (h, parts["h"]), "count": 3, "none": None, "w": w, "norm": fnp.sum(h * h)}

    def loss(w, x):
        parts = wrap(split)(w, {"h": x, "unused": x * 2.0})
        again = wrap(split)(parts["w"], parts)
        return fnp.sum(again["h"] * again["both"][1] * again["count"]) + again["norm"] + fnp.sum(parts["w"])

    return loss


def differentiates_inside(wrap):
    def loss(w, x):
        def energy(h):
            return fnp.sum(fnp.sin(h @ w))

        return fnp.sum(wrap(lambda h: h - 0.1 * grad(wrap(energy))(h))(x) ** 2)

    return loss


def closes_only(wrap):
    return lambda w, x: fnp.sum(wrap(lambda: layer(w, x))() ** 2)


def moves_on(wrap):
    def loss(ws, x):
        def product(h):
            return h @ w

        for i, w in enumerate(ws):  # noqa: B007  (`product` reads it)
            # `w`, `x` and `i` have changed when the function runs again
            x = wrap(lambda h: x * i + fnp.tanh(product(h)))(x)  # noqa: B023
        return fnp.sum(x * x)

    return lambda w, x: loss([w, w * 2.0, fnp.sin(w)], x)


def in_pipelines(wrap):
    def loss(w, x):
        for k in (1.0, 2.0):
            scale = curry(lambda a, h: a * k * h)  # noqa: B023
            stages = compose_left(wrap(functools.partial(layer, w)), wrap(compose(fnp.sin, scale(w[0]))), fnp.cos)
            x = wrap(stages)(x)
        return fnp.sum(x)

    return loss


PROGRAMS = [moves_on, in_pipelines, closes_over, takes_all, nests, gives_trees, differentiates_inside, closes_only]
BOTH = (0, 1)
FIRST_ORDER = {
    "grad": lambda f: grad(f, BOTH)(W, X),
    "value_and_grad": lambda f: value_and_grad(f, BOTH)(W, X),
    "vjp": lambda f: vjp(f, W, X)[1](1.0),
    "jvp": lambda f: jvp(f, (W, X), (W, X)),
    "linearize": lambda f: linearize(f, W, X)[1](W, X),
    "vmap_grad": lambda f: vmap(grad(f, BOTH), (None, 0))(W, BATCH),
    "grad_vmap": lambda f: grad(lambda w, xs: fnp.sum(vmap(lambda x: f(w, x))(xs)), BOTH)(W, BATCH),
    "jacfwd": lambda f: jacfwd(f, BOTH)(W, X),
    "vmap": lambda f: vmap(f, (None, 0))(W, BATCH),
}
HIGHER_ORDER = {
    "grad_grad": lambda f: grad(lambda w: fnp.sum(grad(f)(w, X) ** 2))(W),
    "hessian": lambda f: hessian(f)(W, X),
    "jacrev_jacrev": lambda f: jacrev(jacrev(f, 1), 1)(W, X),
    "hvp": lambda f: hvp(f, (W, X), (W, X)),
    "grad_jvp": lambda f: grad(lambda w: jvp(f, (w, X), (W, X))[1])(W),
    "grad_linearize": lambda f: grad(lambda w: linearize(f, w, X)[1](W, X))(W),
    "linearize_grad": lambda f: linearize(grad(f), W, X)[1](W, X),
    "grad_vmap_grad": lambda f: grad(lambda w: fnp.sum(vmap(lambda x: grad(f, 1)(w, x))(BATCH) ** 2))(W),
    "vmap_grad_grad": lambda f: vmap(lambda x: grad(lambda w: fnp.sum(grad(f, 1)(w, x) ** 2))(W))(BATCH),
    "third": lambda f: grad(lambda a: grad(lambda b: grad(lambda c: f(W * a, X * b * c))(a))(a))(1.1),
}


def unmarked(fun, **options):
    return fun


@pytest.mark.parametrize("ask", FIRST_ORDER.values(), ids=FIRST_ORDER)
@pytest.mark.parametrize("program", PROGRAMS)
def test_first_order_is_bitwise_equal(program, ask):
    same_bits(ask(program(checkpoint)), ask(program(unmarked)))


@pytest.mark.parametrize("ask", HIGHER_ORDER.values(), ids=HIGHER_ORDER)
@pytest.mark.parametrize("program", PROGRAMS)
def test_higher_order(program, ask):
    close(ask(program(checkpoint)), ask(program(unmarked)))


POLICIES = {
    "nothing": policies.nothing_saveable,
    "everything": policies.everything_saveable,
    "dots": policies.dots_saveable,
    "small": policies.save_smaller_than(64),
    "all_but_a_name": policies.save_anything_except_these_names("x"),
    "own": lambda operation, params, result: operation in ("tanh", "reduce_sum", "getitem"),
}


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_policies_change_no_bit(program, policy):
    wrap = functools.partial(checkpoint, policy=policy)
    for ask in ("grad", "vmap_grad", "grad_vmap", "jvp"):
        same_bits(FIRST_ORDER[ask](program(wrap)), FIRST_ORDER[ask](program(unmarked)))
    for ask in ("hvp", "grad_grad", "grad_jvp", "grad_vmap_grad"):
        close(HIGHER_ORDER[ask](program(wrap)), HIGHER_ORDER[ask](program(unmarked)))


@pytest.mark.parametrize("program", PROGRAMS)
def test_agrees_with_jax(program):
    found = grad(program(checkpoint), BOTH)(jnp.asarray(W), jnp.asarray(X))
    close([np.asarray(g) for g in found], grad(program(unmarked), BOTH)(W, X), 1e-12)
    compiled = jax.jit(grad(program(checkpoint), BOTH))(W, X)
    close([np.asarray(g) for g in compiled], grad(program(unmarked), BOTH)(W, X), 1e-12)


@pytest.mark.parametrize("policy", [None, jax.checkpoint_policies.dots_saveable])
def test_agrees_with_jax_checkpoint(policy):
    def loss(w, x):
        marked = jax.checkpoint(lambda h: jnp.tanh(h @ w) * jnp.sin(h), policy=policy)
        return jnp.sum(marked(marked(x)) ** 2)

    def ours(w, x):
        own = None if policy is None else policies.dots_saveable
        marked = checkpoint(lambda h: fnp.tanh(h @ w) * fnp.sin(h), policy=own)
        return fnp.sum(marked(marked(x)) ** 2)

    close(grad(ours, BOTH)(W, X), [np.asarray(g) for g in jax.grad(loss, BOTH)(W, X)], 1e-12)
    close(hessian(ours, 1)(W, X), np.asarray(jax.hessian(loss, 1)(W, X)), 1e-11)


# ---- what runs, and how often ------------------------------------------------------------------------------


def counting(fun):
    def counted(*args, **kwargs):
        counted.calls += 1
        return fun(*args, **kwargs)

    counted.calls = 0
    return counted


def test_function_runs_again_in_backward_pass():
    f = counting(lambda x: fnp.sin(x) ** 2)
    _y, pullback = vjp(checkpoint(f), 1.0)
    assert f.calls == 1
    assert pullback(1.0) == pullback(1.0)
    assert f.calls == 3
    checkpoint(f)(2.0)
    jvp(checkpoint(f), (1.0,), (1.0,))
    assert f.calls == 5


def test_function_is_not_rerun_without_cotangent():
    f = counting(fnp.sin)
    assert grad(lambda x: x + stop_gradient(checkpoint(f)(x)))(1.0) == 1.0
    assert grad(lambda x: x + no_grad(checkpoint(f))(x))(1.0) == 1.0
    assert f.calls == 2


class Kernels:
    """Counter of the calls of operations' kernels."""

    def __init__(self, monkeypatch, *operations):
        self.calls = []
        for operation in operations:
            primitive = operation.primitive
            monkeypatch.setitem(primitive._kernels, np, self.counted(primitive.name, primitive.kernel(np)))

    def counted(self, name, kernel):
        def call(*args, **params):
            self.calls.append(name)
            return kernel(*args, **params)

        return call


def test_saved_products_are_not_recomputed(monkeypatch):
    def forward_calls(policy):
        # the policy is asked about every product of the first run; the kernels count all products
        _y, pullback = vjp(checkpoint(lambda w, h: fnp.tanh(fnp.tanh(h @ w) @ w), policy=policy), W, X)
        kernels.calls.clear()
        pullback(np.ones(4))
        return len(kernels.calls)

    product = products.matmul
    kernels = Kernels(monkeypatch, product)
    backward_alone = forward_calls(policies.everything_saveable)
    # a policy makes each product reach the counting kernel
    again = forward_calls(lambda operation, params, result: False)
    kept = forward_calls(policies.dots_saveable)
    assert again == backward_alone + 2
    assert kept == backward_alone


double = elementwise("double_for_tests", lambda xp, x: 2 * x, dx=2)
half = elementwise("half_for_tests", lambda xp, x: x / 2, dx=0.5)


@pytest.mark.parametrize(
    ("policy", "again"),
    [
        (policies.nothing_saveable, ["double_for_tests", "half_for_tests"]),
        (policies.save_only_these_names("a"), ["half_for_tests"]),
        (policies.save_only_these_names("b"), ["double_for_tests"]),
        (policies.save_only_these_names("c"), ["double_for_tests", "half_for_tests"]),
        (policies.save_only_these_names("a", "b"), []),
        (policies.save_any_names_but_these("a"), ["double_for_tests"]),
        (policies.save_any_names_but_these(), []),
        (policies.save_anything_except_these_names("a"), []),
        (policies.save_smaller_than(32), ["double_for_tests"]),
        (policies.save_smaller_than(33), []),
        (policies.save_smaller_than(33) & policies.save_only_these_names("a"), ["half_for_tests"]),
        (policies.save_smaller_than(32) | policies.save_only_these_names("a"), []),
        (policies.save_from_both_policies(policies.dots_saveable, policies.save_smaller_than(33)), []),
        (lambda operation, params, result: operation == "half_for_tests", ["double_for_tests"]),
    ],
    ids=lambda x: "own" if getattr(x, "__name__", "") == "<lambda>" else repr(x),
)
def test_policy_decides_what_is_recomputed(monkeypatch, policy, again):
    def f(x):
        y = checkpoint_name(double(x), "a")
        return fnp.sum(checkpoint_name(half(y[:2]), "b") ** 2)

    kernels = Kernels(monkeypatch, double, half)
    _y, pullback = vjp(checkpoint(f, policy=policy), X)
    kernels.calls.clear()
    same_bits(pullback(1.0), vjp(f, X)[1](1.0))
    plain = [name for name in kernels.calls if name.endswith("_for_tests")]
    assert [*again] == plain


def test_checkpoint_name_is_identity():
    a = np.ones(2)
    assert checkpoint_name(a, "a") is a
    assert checkpoint_name({"a": a, "b": ("text", 2.0)}, "n")["b"] == ("text", 2.0)
    assert grad(lambda x: checkpoint_name(x, "x") ** 2)(3.0) == 6.0
    same_bits(vmap(lambda x: checkpoint_name(x, "x"))(BATCH), BATCH)
    assert jvp(lambda x: checkpoint_name(x, "x"), (1.0,), (2.0,)) == (1.0, 2.0)


def test_policies_print_compare_and_pickle():
    both = policies.dots_saveable & policies.save_only_these_names("a", "b")
    assert repr(both) == "dots_saveable & save_only_these_names('a', 'b')"
    assert pickle.loads(pickle.dumps(both)) == both
    marked = checkpoint(fnp.sin, policy=both)
    assert pickle.loads(pickle.dumps(marked)) == marked
    assert marked.__name__ == "sin"


# ---- memory ------------------------------------------------------------------------------------------------

SIZE = 50_000


def peak(call):
    """Return the peak of memory during a call, in states of ``SIZE`` numbers, and the memory left behind."""
    call()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        after, most = tracemalloc.get_traced_memory()
        return (most - before) / (8 * SIZE), (after - before) / (8 * SIZE)
    finally:
        tracemalloc.stop()


def deep(h):
    for _ in range(10):
        h = fnp.sin(h) * 1.01
    return h


@pytest.mark.parametrize("ask", [grad, lambda f: lambda x: hvp(f, (x,), (x,))], ids=["grad", "hvp"])
def test_checkpoint_saves_and_frees_memory(ask):
    x, _scale = np.linspace(0.0, 1.0, SIZE), np.float64(1.0)

    def loss(wrap, x, scale):
        for _ in range(10):
            x = wrap(lambda h: deep(h) * scale)(x)
        return fnp.sum(x)

    gc.collect()
    gc.disable()  # memory must be freed by reference counts
    try:
        plain, _ = peak(lambda: ask(lambda x: loss(unmarked, x, fnp.sum(x) / SIZE))(x))
        marked, left = peak(lambda: ask(lambda x: loss(checkpoint, x, fnp.sum(x) / SIZE))(x))
    finally:
        gc.enable()
    assert plain > 100
    assert marked < plain / 3
    assert left < 0.1


def test_first_run_saves_only_arguments():
    x = np.linspace(0.0, 1.0, SIZE)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        _y, _pullback = vjp(checkpoint(deep), x)
        held = (tracemalloc.get_traced_memory()[0] - before) / x.nbytes
    finally:
        tracemalloc.stop()
    assert held < 2.1  # the result, and the pullback's copy of the argument


@pytest.mark.parametrize("size", [3, 1000])
def test_write_to_closure_is_noticed(size):
    x, w, v = np.linspace(0.1, 1.0, size), np.ones(size), np.ones(size)
    _, pullback = vjp(checkpoint(lambda x: fnp.sin(x) * w), x)
    _, of_argument = vjp(lambda x: checkpoint(lambda x, v: fnp.sin(x) * v)(x, v), x)
    before = pullback(np.ones(size))[0]
    x[:] = 7.0  # the pullback keeps a copy of its argument
    np.testing.assert_array_equal(pullback(np.ones(size))[0], before)
    w[size // 2 + 1] *= 1.01
    v[size // 2 + 1] *= 1.01
    for pull in (pullback, of_argument):
        with pytest.raises(ReplayError):
            pull(np.ones(size))


def test_tape_is_freed_without_the_collector():
    gc.disable()
    try:
        kept = []

        def f(x):
            y = fnp.sin(x)
            kept.append(weakref.ref(y._val))
            return fnp.exp(y)

        y, pullback = vjp(lambda x: fnp.sum(checkpoint_chain(f, x, length=20, budget=4)), X.copy())
        pullback(1.0)
        del y, pullback
        assert [r() for r in kept if r() is not None] == []
    finally:
        gc.enable()


def test_many_checkpoints_do_not_recurse():
    def f(x):
        step = checkpoint(lambda h: fnp.sin(h))
        for _ in range(5_000):
            x = step(x)
        return x

    assert grad(f)(1.0) == grad(lambda x: functools.reduce(lambda h, _: fnp.sin(h), range(5_000), x))(1.0)


# ---- context -----------------------------------------------------------------------------------------------


def test_rerun_knows_axis_names():
    def f(x):
        return fnp.sum(vmap(checkpoint(lambda a: fnp.sin(a) * psum(a, "i")), axis_name="i")(x))

    def g(x):
        return fnp.sum(vmap(lambda a: fnp.sin(a) * psum(a, "i"), axis_name="i")(x))

    same_bits(grad(f)(X), grad(g)(X))


def test_no_grad_inside_and_outside():
    def f(wrap):
        def inner(x):
            with no_grad():
                scale = x * x
            return scale * x

        return wrap(inner)

    assert grad(f(checkpoint))(3.0) == grad(f(unmarked))(3.0) == 9.0
    with no_grad():
        assert grad(f(checkpoint))(3.0) == 9.0

    def inside(x):
        with no_grad():
            return vjp(f(checkpoint), x)

    _y, pullback = inside(3.0)
    assert pullback(1.0) == (9.0,)

    def outer(x):  # the pullback outlives the block in which it was made
        with no_grad():
            _, pullback = vjp(lambda y: checkpoint(lambda z: z * z * x)(y), x)
        return pullback(1.0)[0] * x

    def plain(x):
        with no_grad():
            _, pullback = vjp(lambda y: y * y * x, x)
        return pullback(1.0)[0] * x

    assert grad(outer)(3.0) == grad(plain)(3.0)


def test_rerun_of_array_api_code_gets_same_classes():
    """Check that numbers and truth values are arrays in array API code, but not in NumPy code of the same process."""

    def standard(x):
        xp = x.__array_namespace__()
        with no_grad():
            scale = xp.sum(x * x)
        assert scale.__array_namespace__() is xp
        kept = xp.isfinite(scale)
        assert kept.__array_namespace__() is xp
        return xp.where(kept, xp.sum(x) * scale, 0.0)

    def ordinary(x):
        with no_grad():
            scale = fnp.sum(x * x)
        assert not is_buffer(scale)
        return fnp.sum(x) * scale

    want = np.full(4, X @ X)
    for f in (from_array_api(standard), ordinary, from_array_api(standard)):
        close(grad(checkpoint(f))(X), want)
        close(vmap(grad(checkpoint(f)))(X[None]), want[None])
        close(grad(lambda x, f=f: fnp.sum(vmap(checkpoint(f))(x)))(X[None]), want[None])


def test_rerun_restores_context_variables_and_errstate():
    def f(x):
        return fnp.log(x - x) * 0.0

    with np.errstate(all="ignore"):
        _y, pullback = vjp(checkpoint(f), 1.0)
        assert math.isnan(pullback(1.0)[0])


def test_rerun_takes_same_branches():
    def f(w, x):
        def inner(h):
            for _ in range(3):
                h = h * w if fnp.sum(h) * w > 0 else -h + w  # branches on a closed-over tracer too
            return h

        return fnp.sum(checkpoint(inner)(x) ** 2), fnp.sum(inner(x) ** 2)

    same_bits(grad(lambda w, x: f(w, x)[0], BOTH)(1.5, X), grad(lambda w, x: f(w, x)[1], BOTH)(1.5, X))


def test_steps_in_a_loop_that_convert_read_the_variables_of_their_first_run():
    """Check functions that are rebuilt, and such that are called for the first time: both read the loop variable."""

    def f(x, mark):
        h = x
        for w in (W, 2.0 * W, 3.0 * W):

            def step(h):
                out = np.zeros(4)
                out[0] = h[0] * 1.0
                return np.sin(out + w @ np.asarray(h))  # noqa: B023 - this is what is tested

            h = mark(step)(h)
        return fnp.sum(h)

    for _ in range(2):
        close(grad(f)(X, checkpoint), grad(f)(X, lambda step: step))


def test_first_call_reruns_a_closed_over_array_that_the_function_writes_to():
    makers = [lambda y: lambda h: np.sum(y * h[0])]

    def f(x, mark):
        return mark(makers[-1]((x * 2.0).reshape(2, 2).T))(x)

    def writer(y):
        def step(h):
            y[0] = y[1] * y[1]
            y.T[0] *= 0.5
            return np.sum(y * h[0])

        return step

    close(grad(f)(X, checkpoint), grad(f)(X, lambda step: step))
    makers.append(writer)  # from here on the first call is that of the step alone
    found = grad(f)(X, checkpoint)
    close(found, grad(f)(X, lambda step: step))


def test_step_that_writes_runs_once_inside_a_function_that_is_called_first():
    """The step is known from a batch, where its arguments have other shapes; what is around it is not."""

    def f(x, mark):
        y = (x * 2.0).reshape(2, 2).T

        def step(h):
            y[0] = y[1] * y[1]
            return np.sum(y * h[0])

        return mark(step)(x)

    for _ in range(2):
        vmap(grad(lambda x: f(x, checkpoint)))(np.stack([X, X]))
    for _ in range(2):
        close(grad(lambda x: f(x, checkpoint) * 1.0)(X), grad(lambda x: f(x, lambda step: step))(X))


def test_threads_share_a_pullback():
    _y, pullback = vjp(lambda x: checkpoint_chain(deep, x, length=12, budget=2), X)
    expected = pullback(np.ones(4))
    found = []
    threads = [threading.Thread(target=lambda: found.append(pullback(np.ones(4)))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 4
    for each in found:
        same_bits(each, expected)


def test_pullback_under_vmap_and_jacrev():
    def f(x):
        return checkpoint(lambda h: layer(W, h))(x)

    same_bits(jacrev(f)(X), jacrev(lambda x: layer(W, x))(X))
    _, pullback = vjp(f, X)
    same_bits(vmap(pullback)(np.eye(4)), vmap(vjp(lambda x: layer(W, x), X)[1])(np.eye(4)))


def test_rerun_sees_variables_of_first_run():
    def count(x):
        calls = 0

        def fall(n, h):
            return h if n == 0 else fnp.sin(fall(n - 1, h)) * later()

        def f(h):
            nonlocal calls
            calls += 1
            return fall(depth, h)

        marked = checkpoint(f)

        def later():
            return k

        for k in (2.0, 3.0):
            depth = int(k)
            x = marked(x)
        return x, lambda: calls

    def plain(x):
        x = fnp.sin(fnp.sin(x) * 2.0) * 2.0
        return fnp.sin(fnp.sin(fnp.sin(x) * 3.0) * 3.0) * 3.0

    counts = []

    def ours(x):
        y, calls = count(x)
        counts.append(calls)
        return y

    y, pullback = vjp(ours, 0.7)
    assert y == plain(0.7)
    assert counts[0]() == 2
    assert pullback(1.0) == pullback(1.0) == (grad(plain)(0.7),)
    assert counts[0]() == 6  # variables that the function sets are shared


def test_checkpoint_as_decorator_and_method():
    class Model:
        def __init__(self, w):
            self.w = w

        @checkpoint
        def one(self, h):
            return fnp.tanh(h * self.w)

        @checkpoint(policy=policies.dots_saveable, static_argnums=(1,))
        def two(self, times, h):
            return h * self.w**times

    def loss(w, x):
        model = Model(w)
        return fnp.sum(model.two(2, model.one(x)))

    expected = grad(lambda w, x: fnp.sum(fnp.tanh(x * w) * w**2), BOTH)(0.5, X)
    same_bits(grad(loss, BOTH)(0.5, X), expected)


def test_static_and_nonarray_arguments_pass():
    def f(x, how, *, scale, words=("a",)):
        return (fnp.sin(x) if how == "sin" else fnp.cos(x)) * scale * len(words)

    marked = checkpoint(f, static_argnums=1)
    for how in ("sin", "cos"):
        assert grad(lambda s, how=how: marked(1.0, how, scale=s))(2.0) == f(1.0, how, scale=1.0)
        assert checkpoint(f)(1.0, how, scale=2.0, words=["x", "y"]) == f(1.0, how, scale=2.0, words=["x", "y"])


def test_int_results_and_none_pass():
    def f(x):
        return {"y": fnp.sin(x), "index": fnp.argmax(x), "n": 3, "none": None, "text": "t", "x": x}

    seen = {}

    def loss(x):
        out = checkpoint(f)(x)
        seen.update(out)
        return fnp.sum(out["y"] * out["n"]) + fnp.sum(out["x"])

    same_bits(grad(loss)(X), grad(lambda x: fnp.sum(fnp.sin(x) * 3) + fnp.sum(x))(X))
    assert seen["index"] == np.argmax(X)
    assert seen["none"] is None
    assert seen["text"] == "t"


# ---- errors ------------------------------------------------------------------------------------------------


def test_random_numbers_are_noticed():
    generator = np.random.default_rng(0)
    with pytest.raises(ReplayError, match=r"checkpoint\(<lambda>\): .* other numbers\. .*random numbers outside"):
        grad(lambda x: fnp.sum(checkpoint(lambda h: h * generator.normal(size=4))(x)))(X)
    with pytest.raises(ReplayError, match=r"checkpoint\(<lambda>\): .* other numbers"):  # Python numbers too
        grad(checkpoint(lambda h: h * generator.normal()))(2.0)


@pytest.mark.parametrize(
    "choices",
    [(fnp.sin, fnp.cos), (fnp.sin, lambda x: fnp.sin(fnp.sin(x))), (fnp.sin, lambda x: fnp.sin(x)[:2])],
    ids=["operation", "number", "shape"],
)
def test_changed_structure_is_noticed(choices):
    f = iter(choices)
    with pytest.raises(ReplayError, match=r"other (operations or shapes|numbers)"):
        grad(lambda x: fnp.sum(checkpoint(lambda h: next(f)(h))(x)))(X)


def test_changed_structure_with_same_result_is_noticed():
    f = iter([lambda x: x * 1.0, lambda x: x + 0.0])
    with pytest.raises(ReplayError, match="other operations or shapes"):
        grad(lambda x: fnp.sum(checkpoint(lambda h: next(f)(h))(x)))(X)


@pytest.mark.parametrize("choices", [(fnp.sin, fnp.cos), (fnp.sin, lambda x: fnp.sin(x) + 1.0), (deep, fnp.sin)])
def test_changed_structure_under_policy_is_noticed(choices):
    f = iter(choices)
    with pytest.raises(ReplayError, match="instead of"):
        grad(lambda x: fnp.sum(checkpoint(lambda h: next(f)(h), policy=policies.dots_saveable)(x)))(X)


def test_rounding_is_not_reported_as_randomness():
    scale = iter([1.0, 1.0 + 1e-12])
    found = grad(lambda x: fnp.sum(checkpoint(lambda h: fnp.sin(h) * next(scale))(x)))(X)
    np.testing.assert_allclose(found, np.cos(X), rtol=1e-9)


def test_escaped_tracers_raise():
    kept = []

    def f(x):
        kept.append(x * 1.0)
        return fnp.sin(x)

    grad(checkpoint(f))(1.0)
    for tracer in kept:
        with pytest.raises(EscapedTracerError):
            tracer * 2.0
    stale = []
    vmap(lambda x: stale.append(x) or x)(X)
    with pytest.raises(EscapedTracerError):
        grad(lambda x: checkpoint(lambda h: h * stale[0])(x))(1.0)


def test_function_errors_pass_and_leave_no_state():
    calls = iter(range(2))

    def f(x):
        if next(calls):
            raise KeyboardInterrupt
        return fnp.sin(x)

    _y, pullback = vjp(checkpoint(f, policy=policies.dots_saveable), 1.0)
    with pytest.raises(KeyboardInterrupt):
        pullback(1.0)
    assert blocks.none_open()
    assert shared_state.repetitions.get() == ()
    assert not open_traces


def test_wrong_arguments():
    with pytest.raises(InputError, match=r"checkpoint: the first argument must be a function, got"):
        checkpoint(3)
    with pytest.raises(InputError, match=r"policy must be a function .* got str 'dots'"):
        checkpoint(fnp.sin, policy="dots")
    with pytest.raises(InputError, match="static_argnums must be an int"):
        checkpoint(fnp.sin, static_argnums="x")
    with pytest.raises(InputError, match=r"names position 2, got 1 positional"):
        checkpoint(fnp.sin, static_argnums=2)(1.0)
    with pytest.raises(InputError, match=r"argument 0 is static and is being transformed, got float64\[\]"):
        grad(checkpoint(fnp.sin, static_argnums=0))(1.0)


# ---- the schedule ------------------------------------------------------------------------------------------


@functools.cache
def fewest(steps, states):
    """Return the fewest forward steps for recomputing states, by trying all places."""
    if steps == 1:
        return 0
    if states == 1:
        return steps * (steps - 1) // 2
    return min(m + fewest(steps - m, states - 1) + fewest(m, states) for m in range(1, steps))


def taken(steps, states):
    if steps == 1:
        return 0
    if states == 1:
        return steps * (steps - 1) // 2
    m = split(steps, states)
    return m + taken(steps - m, states - 1) + taken(m, states)


def test_split_is_optimal():
    assert all(taken(n, s) == fewest(n, s) for n in range(2, 60) for s in range(2, 8))


def test_states_for_is_minimal():
    for n in (1, 2, 10, 500, 10_000):
        for repeats in (1, 2, 3):
            s = states_for(n, repeats)
            assert math.comb(s + repeats, s) >= n
            assert s == 1 or math.comb(s - 1 + repeats, s - 1) < n


@pytest.mark.parametrize("budget", [1, 2, 3, 5, 10])
def test_online_placement_is_balanced(budget):
    placement, kept = Placement(budget), [0]
    for i in range(1, 400):
        given_up = placement.next()
        if given_up is not None:
            del kept[given_up]
        kept.append(i)
        assert kept == sorted(kept)
        assert len(kept) <= budget + 1
        assert kept[-1] == i
    repeats = next(r for r in range(1, 400) if math.comb(budget + 1 + r, r) >= 400)
    for place, (start, end) in enumerate(zip(kept, [*kept[1:], 400], strict=True)):
        free = budget - place + 1  # number of free states when the backward pass comes to this part
        assert taken(end - start, free) <= repeats * (end - start)


# ---- chains ------------------------------------------------------------------------------------------------


def cell(w, h, x):
    return fnp.tanh(h @ w + x) + 0.1 * h


def loop(w, h, xs):
    for i in range(len(XS)):
        h = cell(w, h, xs[i])
    return fnp.sum(h**2)


def chained(**options):
    return lambda w, h, xs: fnp.sum(checkpoint_chain(lambda h, x: cell(w, h, x), h, xs, **options) ** 2)


def chained_with_args(w, h, xs):
    return fnp.sum(checkpoint_chain(lambda h, x, w: cell(w, h, x), h, xs, budget=3, args=(w,)) ** 2)


def chained_online(w, h, xs):
    items = (xs[i] for i in range(len(XS)))
    return fnp.sum(checkpoint_chain(lambda h, x: cell(w, h, x), h, items, budget=3) ** 2)


def chained_list(w, h, xs):
    steps = [lambda h, i=i: cell(w, h, xs[i]) for i in range(len(XS))]
    return fnp.sum(checkpoint_chain(steps, h, budget=4) ** 2)


def chained_carry(w, h, xs):
    def step(carry, x):
        return {"h": cell(carry["w"], carry["h"], x), "w": carry["w"], "i": carry["i"] + 1}

    out = checkpoint_chain(step, {"h": h, "w": w, "i": 0}, xs, budget=3)
    assert out["i"] == len(XS)
    return fnp.sum(out["h"] ** 2)


def chained_in_checkpoint(w, h, xs):
    return checkpoint(chained(budget=2))(w, h, xs)


def chain_of_checkpoints(w, h, xs):
    step = checkpoint(lambda h, x: cell(w, h, x), policy=policies.dots_saveable)
    return fnp.sum(checkpoint_chain(step, h, xs, budget=4) ** 2)


CHAINS = {
    **{f"budget_{k}": chained(budget=k) for k in (0, 1, 2, 3, 22, 100)},
    "default": chained(),
    "length_said": chained(length=len(XS)),
    "args": chained_with_args,
    "online": chained_online,
    "list": chained_list,
    "carry": chained_carry,
    "in_checkpoint": chained_in_checkpoint,
    "of_checkpoints": chain_of_checkpoints,
}
ALL = (0, 1, 2)
CHAIN_FIRST_ORDER = {
    "grad": lambda f: grad(f, ALL)(W, X, XS),
    "twice": lambda f: [vjp(f, W, X, XS)[1](ct) for ct in (1.0, 2.0)],
    "jvp": lambda f: jvp(f, (W, X, XS), (W, X, XS)),
    "linearize": lambda f: linearize(f, W, X, XS)[1](W, X, XS),
    "vmap_grad": lambda f: vmap(grad(f, ALL), (None, 0, None))(W, BATCH, XS),
    "grad_vmap": lambda f: grad(lambda w, hs: fnp.sum(vmap(lambda h: f(w, h, XS))(hs)), BOTH)(W, BATCH),
}
CHAIN_HIGHER_ORDER = {
    "grad_grad": lambda f: grad(lambda w: fnp.sum(grad(f)(w, X, XS) ** 2))(W),
    "hvp": lambda f: hvp(f, (W, X, XS), (W, X, XS)),
    "grad_jvp": lambda f: grad(lambda w: jvp(f, (w, X, XS), (W, X, XS))[1])(W),
    "grad_linearize": lambda f: grad(lambda w: linearize(f, w, X, XS)[1](W, X, XS))(W),
    "grad_vmap_grad": lambda f: grad(lambda w: fnp.sum(vmap(lambda h: grad(f, 1)(w, h, XS))(BATCH) ** 2))(W),
}


@pytest.mark.parametrize("ask", CHAIN_FIRST_ORDER.values(), ids=CHAIN_FIRST_ORDER)
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_chain_matches_loop_bitwise(chain, ask):
    same_bits(ask(chain), ask(loop))


@pytest.mark.parametrize("ask", CHAIN_HIGHER_ORDER.values(), ids=CHAIN_HIGHER_ORDER)
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_chain_in_higher_orders(chain, ask):
    close(ask(chain), ask(loop), 1e-12)


def test_chain_on_jax_arrays():
    expected = grad(loop, ALL)(W, X, XS)
    for chain in (chained(budget=3), chained_online):
        found = grad(chain, ALL)(jnp.asarray(W), jnp.asarray(X), jnp.asarray(XS))
        close([np.asarray(g) for g in found], expected, 1e-12)
    close([np.asarray(g) for g in jax.jit(grad(chained(budget=3), ALL))(W, X, XS)], expected, 1e-12)

    def scanned(w, h, xs):
        return jnp.sum(jax.lax.scan(lambda h, x: (jnp.tanh(h @ w + x) + 0.1 * h, None), h, xs)[0] ** 2)

    close(expected, [np.asarray(g) for g in jax.grad(scanned, ALL)(W, X, XS)], 1e-12)


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize(("length", "budget"), [(100, 3), (500, 12), (1_000, 17), (30, 100), (50, 1)])
def test_chain_runs_no_more_steps_than_the_bound(length, budget, online):
    step = counting(lambda h, *_: fnp.sin(h) * 1.01)

    def loss(h):
        if online:
            return checkpoint_chain(step, h, (None for _ in range(length)), budget=budget)
        return checkpoint_chain(step, h, length=length, budget=budget)

    found = grad(loss)(1.0)
    repeats = next(r for r in range(length) if math.comb(budget + 1 + r, r) >= length)
    # the run itself, then each step at most `repeats` times to recompute states, and once for its derivative;
    # without the length the places of needed states are unknown while running: one sweep more
    assert step.calls <= (repeats + 1 + online) * length
    assert found == grad(lambda h: functools.reduce(lambda h, _: fnp.sin(h) * 1.01, range(length), h))(1.0)


def test_chain_reaches_binomial_optimum():
    length, budget = 500, 11
    step = counting(lambda h: fnp.sin(h))
    grad(lambda h: checkpoint_chain(step, h, length=length, budget=budget))(1.0)
    optimum = length + 1 + fewest_of(length, budget + 1)
    assert optimum <= step.calls <= optimum + 10  # where states run out, the last few steps run once more


def fewest_of(steps, states):
    """Return ``fewest(steps, states)`` in closed form."""
    repeats = next(r for r in range(steps) if math.comb(states + r, states) >= steps)
    return repeats * steps - math.comb(states + repeats, repeats - 1)


def test_closed_form_is_the_optimum():
    assert all(fewest_of(n, s) == fewest(n, s) for n in range(2, 50) for s in range(2, 6))


@pytest.mark.parametrize("online", [False, True])
def test_chain_memory_stays_within_budget(online):
    x, budget, length = np.linspace(0.0, 1.0, SIZE), 8, 100

    def loss(h):
        xs = (None for _ in range(length)) if online else range(length)
        return fnp.sum(checkpoint_chain(lambda h, _: fnp.sin(h) * 1.01, h, xs, budget=budget))

    gc.collect()
    gc.disable()
    try:
        most, left = peak(lambda: grad(loss)(x))
    finally:
        gc.enable()
    assert most <= budget + 8  # and the current step
    assert left < 0.1


def test_chain_of_many_scalar_steps_does_not_recurse():
    found = grad(lambda h: checkpoint_chain(lambda h: h * 1.0, h, length=5_000, budget=100))(1.0)
    assert found == 1.0


def test_chain_of_different_steps():
    steps = [fnp.sin, lambda h: {"a": h, "b": h * 2.0}, lambda d: d["a"] * d["b"], fnp.sum]
    expected = grad(lambda x: fnp.sum(fnp.sin(x) * (fnp.sin(x) * 2.0)))(X)
    for budget in (None, 0, 1, 2):
        same_bits(grad(lambda x, k=budget: checkpoint_chain(steps, x, budget=k))(X), expected)
    assert checkpoint_chain([], 3.0) == 3.0
    assert grad(lambda x: checkpoint_chain([], x))(3.0) == 1.0
    assert checkpoint_chain([lambda h, x: h + x] * 2, 1.0, range(2)) == 2.0


def test_chain_over_trees_ranges_and_no_steps():
    xs = {"a": XS, "b": (XS * 2.0,)}
    found = grad(lambda xs: fnp.sum(checkpoint_chain(lambda h, x: fnp.sin(h + x["a"] * x["b"][0]), X, xs)))(xs)
    expected = grad(
        lambda xs: fnp.sum(functools.reduce(lambda h, i: fnp.sin(h + xs["a"][i] * xs["b"][0][i]), range(len(XS)), X))
    )(xs)
    same_bits(found, expected)
    assert checkpoint_chain(lambda h, i: h * i, 1, range(1, 5)) == 24
    assert checkpoint_chain(lambda h, i: h + i, 1.0, iter(range(5)), length=3) == 4.0
    assert checkpoint_chain(lambda h, x: h, 1.0, np.zeros((0, 2))) == 1.0
    assert grad(lambda h: checkpoint_chain(lambda h, x: h, h, iter(())))(1.0) == 1.0


def test_chain_with_constant_start_or_ignored_carry():
    same_bits(
        grad(lambda w: fnp.sum(checkpoint_chain(lambda h: h * w, X, length=5, budget=2)))(1.5),
        grad(lambda w: fnp.sum(functools.reduce(lambda h, _: h * w, range(5), X)))(1.5),
    )
    step = counting(lambda h, i: fnp.sin(h) if i != 5 else stop_gradient(h) + 1.0)
    assert grad(lambda h: checkpoint_chain(step, h, range(10), budget=20))(1.0) == 0.0


def test_chain_continues_after_interrupted_backward_pass():
    calls = iter([False] * 30 + [True] + [False] * 1000)

    def step(h):
        if next(calls):
            raise KeyboardInterrupt
        return fnp.sin(h)

    _y, pullback = vjp(lambda h: checkpoint_chain(step, h, length=20, budget=3), X)
    with pytest.raises(KeyboardInterrupt):
        pullback(np.ones(4))
    expected = vjp(lambda h: functools.reduce(lambda h, _: fnp.sin(h), range(20), h), X)[1](np.ones(4))
    same_bits(pullback(np.ones(4)), expected)
    assert blocks.none_open()


def test_chain_notices_randomness():
    generator = np.random.default_rng(0)
    with pytest.raises(ReplayError, match=r"checkpoint_chain\(<lambda>\): run again .* other numbers"):
        grad(lambda h: fnp.sum(checkpoint_chain(lambda h: h * generator.normal(size=4), h, length=9)))(X)


def test_chain_wrong_arguments():
    with pytest.raises(InputError, match="must be a function, got int 3"):
        checkpoint_chain(3, 1.0, length=2)
    with pytest.raises(InputError, match="must be a function, got int 3"):
        checkpoint_chain([fnp.sin, 3], 1.0)
    with pytest.raises(InputError, match="the number of steps is unknown, got xs=None"):
        checkpoint_chain(fnp.sin, 1.0)
    with pytest.raises(InputError, match="xs must be an array, a pytree of arrays or an iterable, got"):
        checkpoint_chain(fnp.add, 1.0, object())
    with pytest.raises(ShapeError, match=r"not clear, got 23 by xs, 5 by length"):
        checkpoint_chain(fnp.add, X, XS, length=5)
    with pytest.raises(ShapeError, match=r"not clear, got -1 by length"):
        checkpoint_chain(fnp.sin, X, length=-1)
    with pytest.raises(ShapeError, match="budget must not be negative, got -1"):
        checkpoint_chain(fnp.sin, X, length=2, budget=-1)
    with pytest.raises(ShapeError, match="xs ended early, got 2 items for 3 steps"):
        checkpoint_chain(fnp.add, 1.0, iter([1.0, 2.0]), length=3)
    with pytest.raises(ShapeError, match=r"xs\[0\] has no first axis to go through, got float 1.0"):
        checkpoint_chain(fnp.add, 1.0, [1.0, 2.0])
    with pytest.raises(ShapeError, match=r"must have one length, got \[23, 24\]"):
        checkpoint_chain(fnp.add, X, (XS, np.zeros(24)))


@pytest.mark.parametrize("rule", ["vjp", "jvp"])
def test_closure_saved_by_custom_rule_is_compared(rule):
    held = np.array([2.0, 3.0, 4.0])
    if rule == "vjp":
        sine = custom_vjp(fnp.sin)
        sine.defvjp(lambda x: (fnp.sin(x), held), lambda saved, ct: (ct * saved,))
    else:
        sine = custom_jvp(fnp.sin)
        sine.defjvp(lambda primals, tangents: (fnp.sin(*primals), tangents[0] * held))
    _, pullback = vjp(checkpoint(lambda x: 2.0 * sine(x)), np.ones(3))
    same_bits(pullback(np.ones(3)), (np.array([4.0, 6.0, 8.0]),))
    held[:] = 100.0
    with pytest.raises(ReplayError, match="other numbers saved by a function with own derivative rules"):
        pullback(np.ones(3))


def with_rows(inner, x):
    return np.sum(vmap(lambda row: inner(row[0]) + inner(row[1]), in_axes=1)(np.stack([x, x * x])) * x)


def with_caught_error(inner, x):
    try:
        return grad(lambda y: math.log(y - 10.0) * x[0])(x[0])
    except ValueError:
        return grad(inner)(x[0]) * x[1]


@pytest.mark.parametrize("policy", [policies.dots_saveable, policies.save_smaller_than(100)])
@pytest.mark.parametrize(
    "use",
    [
        lambda inner, x: np.sum(vmap(inner)(x * x) * x),
        with_rows,
        lambda inner, x: hessian(inner)(x[0]) * x[1],
        lambda inner, x: checkpoint(inner, policy=policies.dots_saveable)(x[0]) * x[1],
        with_caught_error,
    ],
)
def test_first_calls_of_inner_functions_that_are_run_again_rebuilt(use, policy):
    def made():
        def fun(x):
            w = x * 2.0

            def inner(y):
                out = np.zeros(2)
                out[0] = y * y * w[0]
                out[1] = math.sin(y) * w[1]
                return out @ out

            return use(inner, x)

        return fun

    x = np.array([0.3, 0.7])
    np.testing.assert_allclose(grad(checkpoint(made(), policy=policy))(x), grad(made())(x), rtol=1e-12)
    np.testing.assert_allclose(hessian(checkpoint(made(), policy=policy))(x), hessian(made())(x), rtol=1e-12)


def test_function_closes_over_a_variable_that_gets_its_value_later():
    def fun(x):
        def square(y):
            return later(y) if y > 100 else y * y

        found = fg.checkpoint(square)(x)

        def later(y):
            return y

        return found

    assert grad(fun)(3.0) == 6.0
    assert hessian(fun)(3.0) == 2.0


@pytest.mark.parametrize(
    ("policy", "runs"), [("everything_saveable", 1), ("nothing_saveable", 2), ("dots_saveable", 2)]
)
def test_policies_decide_whether_the_function_runs_again(policy, runs):
    count = 0

    def fun(x):
        nonlocal count
        count += 1
        return np.sin(x) * x

    saving = fg.checkpoint(fun, policy=getattr(fg.checkpoint_policies, policy))
    assert grad(saving)(1.3) == pytest.approx(np.sin(1.3) + 1.3 * np.cos(1.3), rel=1e-15)
    assert count == runs
