"""Transforms inside transforms: no level confuses the perturbation of another level with its own."""

import asyncio
import gc
import itertools
import math
import sys
import threading
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import (
    blocks,
    core,
    custom_vjp,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    no_grad,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)
from funcgrad.errors import EscapedTracerError

# Ways to differentiate a scalar function of a scalar; each returns the derivative as a function.
DERIVATIVES = {
    "grad": grad,
    "value_and_grad": lambda f: lambda x: value_and_grad(f)(x)[1],
    "vjp": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "jvp": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "linearize": lambda f: lambda x: linearize(f, x)[1](1.0),
    "jacfwd": jacfwd,
    "jacrev": jacrev,
    "vmap_grad": lambda f: lambda x: fnp.sum(vmap(grad(f))(fnp.reshape(x, (1,)))),
    "vmap_jvp": lambda f: lambda x: vmap(lambda t: jvp(f, (x,), (t,))[1])(np.array([1.0, 2.0]))[1] / 2,
}
PAIRS = list(itertools.product(DERIVATIVES, repeat=2))
TRIPLES = list(itertools.product(["grad", "jvp", "linearize", "vmap_grad"], repeat=3))


def joined(names):
    return "-".join(names)


# ---- perturbation confusion --------------------------------------------------------------------------------


@pytest.mark.parametrize("names", PAIRS, ids=joined)
def test_inner_derivative_does_not_see_the_outer_variable(names):
    outer, inner = (DERIVATIVES[n] for n in names)
    assert outer(lambda x: x * inner(lambda y: x + y)(1.0))(1.0) == pytest.approx(1.0)
    assert outer(lambda x: x * inner(lambda y: x * y * y)(1.0))(1.0) == pytest.approx(4.0)
    assert outer(lambda x: inner(lambda y: x * 1.0)(2.0))(1.0) == 0.0
    assert outer(lambda x: inner(lambda y: y * 1.0)(2.0) * x)(3.0) == pytest.approx(1.0)


@pytest.mark.parametrize("names", PAIRS, ids=joined)
def test_inner_point_depends_on_the_outer_variable(names):
    outer, inner = (DERIVATIVES[n] for n in names)
    # y -> x^2 y^3 at y = sin(x): 3 x^2 sin(x)^2
    got = outer(lambda x: inner(lambda y: x**2 * y**3)(fnp.sin(x)))(0.7)
    s, c = math.sin(0.7), math.cos(0.7)
    assert got == pytest.approx(6 * 0.7 * s**2 + 6 * 0.49 * s * c, rel=1e-12)


@pytest.mark.parametrize("names", TRIPLES, ids=joined)
def test_three_levels(names):
    first, second, third = (DERIVATIVES[n] for n in names)
    got = first(lambda x: x * second(lambda y: y * third(lambda z: x * y * z**2)(1.0))(x))(1.5)
    assert got == pytest.approx(12 * 1.5**2, rel=1e-12)


@pytest.mark.parametrize("names", TRIPLES, ids=joined)
def test_third_derivative(names):
    f = lambda x: fnp.sin(x) * x
    for name in names:
        f = DERIVATIVES[name](f)
    assert f(0.4) == pytest.approx(-3 * math.sin(0.4) - 0.4 * math.cos(0.4), rel=1e-12)


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivative_of_shift_operator_applied_twice(name):
    """The derivative of ``x -> (y -> f(x + y))`` at 0 maps functions to functions; twice it gives ``f''``."""
    derivative = DERIVATIVES[name]

    def slope(f):
        return lambda y: derivative(lambda x: f(x + y))(0.0)

    assert slope(slope(fnp.exp))(0.5) == pytest.approx(math.exp(0.5), rel=1e-12)
    assert slope(slope(lambda x: x**3))(2.0) == pytest.approx(12.0, rel=1e-12)
    assert slope(slope(slope(lambda x: x**3)))(2.0) == pytest.approx(6.0, rel=1e-12)


def test_derivative_taken_outside_and_used_inside():
    """One function object has two traces, one running inside the other."""
    f = lambda x: x * x * x
    slope = grad(f)
    assert grad(lambda x: f(x) * slope(x))(1.5) == pytest.approx(15 * 1.5**4)
    assert grad(lambda x: slope(slope(x)))(0.5) == pytest.approx(3 * 2 * (3 * 0.25) * 3 * 2 * 0.5)


def test_same_variable_at_every_level():
    def tower(depth):
        return (lambda x: x**6) if depth == 0 else grad(tower(depth - 1))

    assert [tower(k)(1.0) for k in range(8)] == pytest.approx([1, 6, 30, 120, 360, 720, 720, 0])


@pytest.mark.parametrize("inner", ["grad", "jvp"])
def test_vmap_between_two_derivatives(inner):
    derivative = DERIVATIVES[inner]
    xs = np.array([0.1, 0.5, 0.9])

    def f(a):
        return fnp.sum(vmap(lambda x: derivative(lambda y: a * x * y**3)(x * a))(xs))

    # sum of 3 a^3 x^3
    assert grad(f)(1.3) == pytest.approx(9 * 1.3**2 * np.sum(xs**3))
    assert jvp(f, (1.3,), (1.0,))[1] == pytest.approx(9 * 1.3**2 * np.sum(xs**3))
    assert vmap(grad(f))(np.array([1.3, 2.0])) == pytest.approx(9 * np.array([1.69, 4.0]) * np.sum(xs**3))


def test_nested_vmaps_do_not_mix_axes():
    a, b = np.arange(3.0), np.arange(10.0, 13.0)
    table = vmap(lambda x: vmap(lambda y: x - 2 * y)(b))(a)
    assert np.array_equal(table, a[:, None] - 2 * b)
    swapped = vmap(lambda y: vmap(lambda x: x - 2 * y)(a))(b)
    assert np.array_equal(swapped, table.T)


def test_tangent_of_one_level_is_the_primal_of_another():
    def f(x):
        return jvp(lambda y: fnp.sin(y), (x,), (x * x,))[1]  # x^2 cos(x)

    want = 2 * 0.3 * math.cos(0.3) - 0.09 * math.sin(0.3)
    assert grad(f)(0.3) == pytest.approx(want)
    assert jvp(f, (0.3,), (1.0,))[1] == pytest.approx(want)


def test_hessian_of_a_function_with_an_inner_derivative():
    def f(x):
        return fnp.sum(x * grad(lambda y: fnp.sum(x * y**3))(x))  # sum of 3 x^4

    x = np.array([0.5, 1.0, 2.0])
    assert hessian(f)(x) == pytest.approx(np.diag(36 * x**2))
    assert hvp(f, (x,), (np.ones(3),))[0] == pytest.approx(36 * x**2)


def test_constants_of_one_level_are_variables_of_another():
    """``stop_gradient`` and ``no_grad`` on the inner level's result stop the outer level too, as in JAX."""
    assert grad(lambda x: x * stop_gradient(grad(lambda y: x * y)(2.0)))(3.0) == 3.0
    assert grad(lambda x: grad(lambda y: stop_gradient(y) * y * x)(2.0))(3.0) == 2.0

    def f(x):
        with no_grad():
            inner = grad(lambda y: y**3 * x)(2.0)  # begins after the block, so it differentiates; x is a constant
        return inner * x

    assert grad(f)(1.0) == pytest.approx(12.0)


# ---- closures, generators, recursion, control flow ---------------------------------------------------------


def test_closure_over_tracers_of_two_levels():
    def f(x):
        def g(y):
            def h(z):
                return x * y**2 * z**3

            return grad(h)(x)  # 3 x^3 y^2

        return grad(g)(x)  # 6 x^3 y at y = x

    assert grad(f)(0.7) == pytest.approx(24 * 0.7**3)


def test_closure_in_a_container():
    def f(x):
        known = {"x": x, "parts": [x * 2, x * 3]}
        return grad(lambda y: y * known["x"] * known["parts"][1])(1.0)

    assert grad(f)(2.0) == pytest.approx(12.0)


def test_default_argument_holds_a_tracer():
    def f(x):
        def g(y, scale=x):
            return scale * y

        return grad(g)(1.0) * x

    assert grad(f)(3.0) == 6.0


def test_generator_of_tracers():
    def powers(x):
        p = 1.0
        while True:
            p = p * x
            yield p

    def f(x):
        return sum(itertools.islice(powers(x), 4))

    assert f(2.0) == 30
    assert grad(f)(2.0) == pytest.approx(1 + 2 * 2 + 3 * 4 + 4 * 8)
    assert grad(grad(f))(2.0) == pytest.approx(2 + 6 * 2 + 12 * 4)


def test_generators_of_two_levels_run_in_turn():
    def doubling(x):
        while True:
            x = x * 2
            yield x

    def f(x):
        outer = doubling(x)

        def g(y):
            inner = doubling(y)
            return next(inner) * next(outer) * next(inner) * next(outer)  # 2y 2x 4y 4x

        return grad(g)(1.0)  # 128 x^2

    assert grad(f)(3.0) == pytest.approx(256 * 3.0)


def test_generator_that_outlives_its_trace():
    kept = []

    def f(x):
        def steps():
            while True:
                yield x * 2

        kept.append(steps())
        return next(kept[0])

    assert grad(f)(1.0) == 2.0
    with pytest.raises(EscapedTracerError):
        next(kept[0])


def test_recursion():
    def root(a, x, depth):
        return x if depth == 0 else root(a, (x + a / x) / 2, depth - 1)

    assert grad(root)(2.0, 1.0, 8) == pytest.approx(0.5 / math.sqrt(2))
    assert grad(grad(root))(2.0, 1.0, 8) == pytest.approx(-0.25 / 2**1.5)


def test_recursion_of_transforms():
    def iterated(x, depth):
        """Apply ``f -> x * df/dx`` to x^3 ``depth`` times; each application multiplies by 3."""
        return x**3 if depth == 0 else x * grad(lambda y: iterated(y, depth - 1))(x)

    assert iterated(2.0, 5) == pytest.approx(3**5 * 8)
    assert grad(lambda x: iterated(x, 3))(2.0) == pytest.approx(27 * 12)


def test_python_control_flow_on_inner_values():
    def f(x):
        n = 0
        while x < 10:
            x, n = x * x, n + 1
        return x if n % 2 else -x

    assert grad(f)(2.0) == pytest.approx(-4 * 8.0)
    assert jvp(f, (2.0,), (1.0,))[1] == pytest.approx(-4 * 8.0)
    assert grad(grad(f))(2.0) == pytest.approx(-12 * 4.0)
    assert grad(lambda a: grad(lambda x: f(x) if x > a else a * x)(2.0))(3.0) == 1.0


# ---- threads and tasks -------------------------------------------------------------------------------------


def test_two_threads_interleaved():
    """One thread leaves its ``grad`` while another thread is inside ``grad`` and nests a further one."""
    a_inside, b_inside, a_left = threading.Event(), threading.Event(), threading.Event()
    results = {}

    def fa(x):
        a_inside.set()
        assert b_inside.wait(10)
        return x * x

    def fb(x):
        b_inside.set()
        assert a_left.wait(10)
        return x * grad(lambda y: x * y * y)(1.0)

    def run_a():
        results["a"] = grad(fa)(3.0)
        a_left.set()

    def run_b():
        assert a_inside.wait(10)
        results["b"] = grad(fb)(1.0)

    threads = [threading.Thread(target=run) for run in (run_a, run_b)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"a": 6.0, "b": 4.0}


def test_pool_of_threads_with_nested_derivatives():
    barrier = threading.Barrier(8)

    def work(seed):
        barrier.wait(10)
        found = []
        for i in range(20):
            x = 0.5 + 0.01 * seed + 0.001 * i
            names = PAIRS[(seed * 20 + i) % len(PAIRS)]
            outer, inner = (DERIVATIVES[n] for n in names)
            got = outer(lambda x, inner=inner: x * inner(lambda y: x * y**3)(x))(x)
            found.append((x, float(got)))
        return found

    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(work, range(8)))
    finally:
        sys.setswitchinterval(switch)
    for found in results:
        for x, got in found:
            assert got == pytest.approx(12 * x**3, rel=1e-12)  # x * 3 x^3 = 3 x^4


def test_no_grad_is_local_to_thread():
    inside, done = threading.Event(), threading.Event()

    def quiet():
        with no_grad():
            inside.set()
            assert done.wait(10)

    thread = threading.Thread(target=quiet)
    thread.start()
    try:
        assert inside.wait(10)
        assert grad(lambda x: x * x)(3.0) == 6.0
        assert jvp(lambda x: x * x, (3.0,), (1.0,))[1] == 6.0
    finally:
        done.set()
        thread.join()


def test_tracer_passed_to_another_thread():
    """A function may pass a tracer to a thread that it starts and waits for."""

    def f(x):
        with ThreadPoolExecutor(2) as pool:
            parts = list(pool.map(lambda k: fnp.sin(x * k), [1.0, 2.0, 3.0]))
        return parts[0] + parts[1] + parts[2]

    assert grad(f)(0.5) == pytest.approx(sum(k * math.cos(0.5 * k) for k in (1, 2, 3)))


def test_asyncio_tasks_interleaved():
    async def work(x):
        found = []
        for k in range(5):
            await asyncio.sleep(0)
            with no_grad():
                await asyncio.sleep(0)  # other tasks run while this block is open, but not inside it
                constant = grad(lambda y: y**3)(x)
            await asyncio.sleep(0)
            found.append(grad(lambda y: y * grad(lambda z: y * z * z)(1.0))(x) + 0 * constant + k)
        return found

    async def all_of_them():
        return await asyncio.gather(*[work(float(x)) for x in range(1, 6)])

    for x, found in enumerate(asyncio.run(all_of_them()), 1):
        assert found == pytest.approx([4.0 * x + k for k in range(5)])


def test_coroutines_driven_inside_a_derivative():
    """Two coroutines hold tracers of two levels and are advanced in turn."""

    class Turn:
        def __await__(self):
            yield

    async def grow(x):
        for _ in range(3):
            x = x * x
            await Turn()
        return x

    def finish(*coroutines):
        results = {}
        while len(results) < len(coroutines):
            for i, coroutine in enumerate(coroutines):
                if i not in results:
                    try:
                        coroutine.send(None)
                    except StopIteration as stop:
                        results[i] = stop.value
        return [results[i] for i in range(len(coroutines))]

    def f(x):
        def g(y):
            a, b = finish(grow(x), grow(y))
            return a * b  # x^8 y^8

        return grad(g)(1.0)

    assert grad(f)(1.1) == pytest.approx(64 * 1.1**7)


# ---- exceptions --------------------------------------------------------------------------------------------


class PlannedError(Exception):
    pass


def failing(kept):
    def f(x):
        kept.append(x * 2)
        raise PlannedError

    return f


TRANSFORMS = {
    "grad": lambda f: grad(f)(1.0),
    "value_and_grad": lambda f: value_and_grad(f)(1.0),
    "vjp": lambda f: vjp(f, 1.0),
    "jvp": lambda f: jvp(f, (1.0,), (1.0,)),
    "linearize": lambda f: linearize(f, 1.0),
    "vmap": lambda f: vmap(f)(np.ones(2)),
    "jacrev": lambda f: jacrev(f)(np.ones(2)),
    "jacfwd": lambda f: jacfwd(f)(np.ones(2)),
    "hessian": lambda f: hessian(f)(np.ones(2)),
    "hvp": lambda f: hvp(f, (np.ones(2),), (np.ones(2),)),
    "no_grad": lambda f: no_grad(f)(1.0),
    "grad_of_no_grad": lambda f: grad(no_grad(f))(1.0),
    "no_grad_of_grad": lambda f: no_grad(grad(f))(1.0),
    "vmap_of_grad": lambda f: vmap(grad(f))(np.ones(2)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_exception_leaves_no_state(name):
    kept = []
    with pytest.raises(PlannedError):
        TRANSFORMS[name](failing(kept))
    assert blocks.current() == blocks.State()
    assert grad(lambda x: x * grad(lambda y: x * y * y)(1.0))(1.0) == 4.0
    if isinstance(kept[0], core.Tracer):  # the tracer belongs to a transform that has ended
        with pytest.raises(EscapedTracerError):
            kept[0] * 2


@pytest.mark.parametrize("outer", ["grad", "jvp", "vmap_grad", "linearize"])
def test_exception_caught_inside_a_derivative(outer):
    """A failed inner transform does not disturb the transform around it."""

    def f(x):
        for transform in TRANSFORMS.values():
            with pytest.raises(PlannedError):
                transform(failing([]))
        try:
            return grad(failing([]))(x)
        except PlannedError:
            return x * grad(lambda y: x * y * y)(1.0)

    assert DERIVATIVES[outer](f)(1.0) == pytest.approx(4.0)


def test_exception_in_a_pullback():
    _, pullback = vjp(lambda x: x * x, 3.0)
    with pytest.raises(ValueError, match="shape"):
        pullback(np.ones(2))
    assert pullback(1.0) == (6.0,)


def test_exception_in_a_no_grad_generator():
    @no_grad()
    def steps(x):
        yield x * x
        raise PlannedError

    def f(x):
        run = steps(x)
        y = next(run)
        with pytest.raises(PlannedError):
            next(run)
        return x * y

    assert grad(f)(3.0) == 9.0
    assert blocks.none_open()


# ---- escaped tracers ---------------------------------------------------------------------------------------


ESCAPES = {
    "reverse": lambda f: grad(f)(1.5),
    "forward": lambda f: jvp(f, (1.5,), (1.0,)),
    "vmap": lambda f: vmap(f)(np.array([1.5, 2.5])),
    "linearize": lambda f: linearize(f, 1.5),
    "inner of two": lambda f: grad(lambda x: grad(f)(x) * x)(1.5),
}


@pytest.mark.parametrize("name", ESCAPES)
def test_escaped_tracer(name):
    kept = []

    def f(x):
        kept.append(x)
        kept.append(x * x)
        return x * x

    ESCAPES[name](f)
    uses = [lambda t: t * 2, lambda t: 2 * t, lambda t: -t, fnp.sin, lambda t: fnp.sum(t), lambda t: t + kept[0]]
    for tracer, use in itertools.product(kept, uses):
        with pytest.raises(EscapedTracerError, match="finished"):
            use(tracer)
    for transform in ("grad", "jvp", "linearize", "vjp"):  # used inside a transform that began later
        with pytest.raises(EscapedTracerError):
            TRANSFORMS[transform](lambda x: x * kept[1])


#: Transforms of a function of an array, called with ``x``.
OF_ARRAYS = {
    "grad": lambda f, x: grad(f)(x),
    "value_and_grad": lambda f, x: value_and_grad(f)(x),
    "jvp": lambda f, x: jvp(f, (x,), (x,)),
    "vjp": lambda f, x: vjp(f, x),
    "a part of vjp": lambda f, x: vjp(lambda x: {"kept": f(x), "x": x}, x),
    "linearize": lambda f, x: linearize(f, x),
    "jacfwd": lambda f, x: jacfwd(f)(x),
    "jacrev": lambda f, x: jacrev(f)(x),
    "hessian": lambda f, x: hessian(f)(x),
    "vmap": lambda f, x: vmap(f)(x),
    "vmap, one result": lambda f, x: vmap(f, out_axes=None)(x),
    "vmap of grad": lambda f, x: vmap(grad(f))(x),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
@pytest.mark.parametrize("first", ["grad", "vmap"])
def test_escaped_tracer_as_the_result(name, first):
    """A function that caches its result returns the tracer of the first call in the second: not a constant."""
    kept = {}

    def f(x):
        if "y" not in kept:
            kept["y"] = (x * x).sum()
        return kept["y"]

    x = np.array([1.0, 2.0])
    OF_ARRAYS[first](f, x)
    with pytest.raises(EscapedTracerError, match="finished"):
        OF_ARRAYS[name](f, x)


def test_result_of_an_open_outer_run_does_not_escape():
    def f(x):
        kept = []

        def g(y):
            kept.append(y * x)
            return x * x  # of the outer run

        return vjp(g, x)[0] + vmap(g, out_axes=None)(np.ones(3)) + jvp(g, (x,), (1.0,))[0]

    assert grad(f)(3.0) == 18.0
    assert grad(grad(f))(3.0) == 6.0


def test_escaped_tracer_as_an_argument():
    kept = []
    grad(lambda x: kept.append(x) or x * x)(1.0)
    with pytest.raises(EscapedTracerError):
        grad(lambda x: x * x)(kept[0])


def test_aux_values_do_not_escape():
    slope, seen = grad(lambda x: (x * x, {"square": x * x}), has_aux=True)(3.0)
    assert (slope, seen["square"]) == (6.0, 9.0)
    assert not isinstance(seen["square"], core.Tracer)


# ---- pullbacks ---------------------------------------------------------------------------------------------


def test_pullback_called_many_times():
    x = np.array([0.5, 1.0, 1.5])
    _, pullback = vjp(lambda x: fnp.sin(x) * x, x)
    rows = [pullback(e)[0] for e in np.eye(3)]
    assert np.array(rows) == pytest.approx(np.diag(np.cos(x) * x + np.sin(x)))
    assert np.array_equal(pullback(np.ones(3))[0], pullback(np.ones(3))[0])
    rows[0][:] = 99.0  # these rows belong to the caller and are not read again
    assert pullback(np.eye(3)[0])[0] == pytest.approx([np.cos(0.5) * 0.5 + np.sin(0.5), 0, 0])


def test_pullback_under_vmap():
    x = np.array([0.5, 1.0, 1.5])
    _, pullback = vjp(lambda x: fnp.sin(x) * fnp.sum(x), x)
    cts = np.array([[1.0, 0.0, 2.0], [0.5, -1.0, 0.0]])
    assert vmap(pullback)(cts)[0] == pytest.approx(np.array([pullback(ct)[0] for ct in cts]))


def test_pullback_under_derivatives():
    """A pullback is an ordinary function: it is linear in its cotangent, and a transformed function may create it."""
    x = np.array([0.5, 1.0])
    _, pullback = vjp(lambda x: x**3, x)
    assert jacrev(lambda ct: pullback(ct)[0])(np.ones(2)) == pytest.approx(np.diag(3 * x**2))
    assert jacfwd(lambda ct: pullback(ct)[0])(np.ones(2)) == pytest.approx(np.diag(3 * x**2))

    def f(x):
        y, pull = vjp(lambda z: z**3 * fnp.sum(x), x)
        return fnp.sum(pull(y)[0] * x)  # sum of 3 x^6 s^2

    s = x.sum()
    assert grad(f)(x) == pytest.approx(18 * x**5 * s**2 + 6 * s * np.sum(x**6))


def test_pullback_made_inside_and_called_outside():
    """The pullback of an inner function holds tracers of the outer transform; after its end they have escaped."""
    kept = []

    def f(x):
        y, pullback = vjp(lambda z: z * z * x, 2.0)
        kept.append(pullback)
        return y

    assert grad(f)(3.0) == 4.0
    with pytest.raises(EscapedTracerError):
        kept[0](1.0)


def test_linearized_function_under_derivatives():
    _, push = linearize(lambda x: x**3, np.array([0.5, 1.0]))
    assert jacrev(push)(np.ones(2)) == pytest.approx(np.diag([0.75, 3.0]))
    assert vmap(push)(np.eye(2)) == pytest.approx(np.diag([0.75, 3.0]))

    def f(x):
        _, push = linearize(lambda y: y**3 * x, x)
        return push(x)  # 3 x^4

    assert grad(f)(2.0) == pytest.approx(12 * 8.0)
    assert grad(grad(f))(2.0) == pytest.approx(36 * 4.0)


# ---- long chains and memory --------------------------------------------------------------------------------

#: With as many levels, a recursion takes more than the stacks below if each level takes a hundred bytes.
LENGTH = 100_000


# Python frees a chain of tuples only to a fixed depth of recursion; since 3.12 that depth takes more of the stack.
STACK = 256 * 1024 if sys.version_info < (3, 12) else 8 * 1024 * 1024


def in_small_stack(work):
    """Run ``work`` in a thread whose stack is too small for recursion, with the cyclic collector off."""
    results = []
    before = threading.stack_size(STACK)
    thread = threading.Thread(target=lambda: results.append(work()))
    gc.disable()
    try:
        thread.start()
        thread.join()
    finally:
        gc.enable()
        threading.stack_size(before)
    assert results, "the thread failed"
    return results[0]


def chain(x):
    for _ in range(LENGTH):
        x = x * 0.999999
    return x


def test_long_chain():
    assert in_small_stack(lambda: grad(chain)(1.0)) == pytest.approx(0.999999**LENGTH)


def test_long_chain_is_freed_without_the_collector():
    def work():
        tracemalloc.start()
        x = np.array([1.0, 2.0])
        seen = weakref.ref(x)
        _, pullback = vjp(lambda x: fnp.sum(chain(x)), x)
        held = tracemalloc.get_traced_memory()[0]
        slope = pullback(1.0)[0]
        del pullback, x
        left = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return held, left, seen(), slope

    held, left, seen, slope = in_small_stack(work)
    assert slope == pytest.approx(np.full(2, 0.999999**LENGTH))
    assert seen is None
    assert held > 100 * LENGTH  # the tape really had that length
    assert left < held / 50


@pytest.mark.parametrize("outer", ["grad", "jvp", "linearize"])
def test_transforms_create_no_cycles(outer):
    """Transforms create no reference cycles, so saved values are freed when the run ends."""
    x = np.array([1.0, 2.0, 3.0])
    seen = []

    def f(x):
        y = fnp.sin(x) * x
        value = y
        while isinstance(value, core.Tracer):
            value = value._val
        seen.append(weakref.ref(value))
        return fnp.sum(y * y)

    run = {
        "grad": lambda: grad(f)(x),
        "jvp": lambda: jvp(f, (x,), (x,)),
        "linearize": lambda: linearize(f, x)[1](x),
    }[outer]
    gc.disable()
    try:
        run()
        assert seen[0]() is None
        with pytest.raises(PlannedError):
            grad(lambda x: f(x) + grad(failing([]))(1.0))(x)
        assert seen[1]() is None
    finally:
        gc.enable()


def test_unused_branches_are_freed_at_once():
    size = 100_000  # 0.8 MB

    def f(x):
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(100):
            fnp.exp(x)  # the result is unused
        peak = tracemalloc.get_traced_memory()[1] - before
        assert peak <= 3 * 8 * size, f"{peak / (8 * size):.1f} results were held"
        return fnp.sum(x * x)

    tracemalloc.start()
    try:
        x = np.full(size, 0.5)
        assert np.array_equal(grad(f)(x), 2 * x)
    finally:
        tracemalloc.stop()


def test_backward_pass_frees_records_early():
    """The backward pass frees records on its way: it never holds the whole tape and all cotangents at once."""
    size, steps = 100_000, 30

    def f(x):
        for _ in range(steps):
            x = fnp.sin(x)  # saves its argument
        return fnp.sum(x)

    x = np.full(size, 0.5)
    tracemalloc.start()
    try:
        grad(f)(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= (steps + 5) * 8 * size


def test_backward_pass_holds_no_visited_record():
    """The pass also frees the last parent of an operation with many parents."""
    held, seen = [], []

    @custom_vjp
    def look(x):
        return x

    look.defvjp(lambda x: (x, None), lambda _, ct: (seen.append(held[0]() is not None) or ct,))

    def f(x):
        y = fnp.exp(look(x))  # saves its result
        held.append(weakref.ref(y._val))
        return fnp.sum(fnp.concatenate([fnp.ones(2), fnp.negative(y)]))

    assert np.allclose(grad(f)(np.zeros(3)), -1)
    assert seen == [False]
