"""A pool of threads takes derivatives of all kinds at once: results equal those of one thread bit for bit.

The interpreter switches between threads as often as it can. Each thread runs all kinds of work in its own order, so
different kinds run at the same time.
"""

import contextlib
import random
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import (
    blocks,
    checkpoint,
    checkpoint_chain,
    compose_left,
    cond,
    custom_jvp,
    custom_vjp,
    debug_nans,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linearize,
    no_grad,
    profile,
    register_pytree_node,
    scan,
    shared_state,
    stop_gradient,
    strict,
    tape,
    trace,
    value_and_grad,
    vjp,
    vmap,
    while_loop,
)
from funcgrad.errors import StructuralZeroError
from funcgrad.extend import elementwise
from funcgrad.interop import jit

THREADS = 8
SHARED = np.random.default_rng(0).uniform(0.5, 1.5, (4, 4))
LONG = np.linspace(0.1, 1.0, 20_000)  # long enough that buffers are reused

work = []


def kind_of_work(fun):
    work.append(fun)
    return fun


def numbers(seed, *shape):
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)


def chain(x):
    for _ in range(10):
        x = x * 0.7 + fnp.sin(x) / (1.0 + x * x)
    return fnp.sum(x)


@kind_of_work
def first_order(seed):
    return value_and_grad(chain)(numbers(seed, 5))


@kind_of_work
def higher_orders(seed):
    x = float(numbers(seed))
    third = grad(grad(grad(lambda x: fnp.sin(x) * x**3)))(x)
    inner = grad(lambda x: x * grad(lambda y: x * y**3)(x))(x)
    return third, inner, hessian(chain)(numbers(seed, 3)), hvp(chain, (numbers(seed, 3),), (SHARED[0, :3],))


@kind_of_work
def batches(seed):
    xs = numbers(seed, 3, 4)
    return vmap(grad(chain))(xs), vmap(jacfwd(fnp.tanh))(xs), grad(lambda w: fnp.sum(vmap(lambda x: x @ w)(xs)))(SHARED)


@kind_of_work
def forward_mode(seed):
    x, t = numbers(seed, 2, 4)
    y, push = linearize(lambda x: fnp.cumsum(fnp.exp(x) * x), x)
    return jvp(grad(chain), (x,), (t,)), y, push(t), push(x), jacrev(lambda x: fnp.outer(x, x))(x)


@kind_of_work
def constants(seed):
    def f(x):
        with no_grad():
            scale = fnp.exp(x) + grad(chain)(x)
            with no_grad():
                scale = scale * 2.0
        return fnp.sum(fnp.sin(x) * scale) + fnp.sum(stop_gradient(x) * x)

    return value_and_grad(f)(numbers(seed, 4))


@kind_of_work
def written(seed):
    def f(x):
        out = fnp.zeros((4, 4))
        out[0] = x
        for i in range(1, 4):
            out[i] = out[i - 1] * x + SHARED[i]
        view = out[1:3]
        view *= 2.0
        out.T[1] += x
        fnp.add(out, 1.0, out=out)
        return fnp.sum(out * fnp.log(out))

    return value_and_grad(f)(numbers(seed, 4)), vmap(grad(f))(numbers(seed, 2, 4))


@kind_of_work
def run_again(seed):
    x = numbers(seed, 4)
    step = lambda h, y: fnp.tanh(h + y)
    return (
        grad(lambda x: fnp.sum(checkpoint(chain)(x) * x))(x),
        grad(lambda x: fnp.sum(checkpoint_chain(step, x, numbers(seed, 6, 4), budget=2)))(x),
    )


@kind_of_work
def control_flow(seed):
    def f(x):
        last, each = scan(lambda c, y: (c * y + x[0], c), x, numbers(seed, 5, 3))
        doubled = while_loop(lambda c: fnp.sum(c) < 20.0, lambda c: c * 1.5, x)
        return fnp.sum(last) + fnp.sum(each) + cond(x[0] < x[1], fnp.sum, fnp.prod, x) + fnp.sum(stop_gradient(doubled))

    return grad(f)(numbers(seed, 3))


@kind_of_work
def matrices(seed):
    a = numbers(seed, 3, 3) + 3.0 * np.eye(3)

    def f(a):
        s = fnp.linalg.svd(a)[1]
        return fnp.sum(s**2) + fnp.linalg.det(a) + fnp.sum(fnp.linalg.solve(a, a.T)) + fnp.einsum("ij,jk,ki", a, a, a)

    return grad(f)(a), vmap(grad(f))(np.stack([a, a.T]))


@kind_of_work
def reading(seed):
    def f(x):
        many = sum(x[i] * x[-i - 1] for i in range(4))
        picked = x[np.array([0, 2, 2])] * fnp.take(x, np.array([3, 1, 0]))
        return many + fnp.sum(picked) + fnp.sum(fnp.sort(x)[::-1] * SHARED[0]) + fnp.max(x)

    return grad(f)(numbers(seed, 4)), hessian(f)(numbers(seed, 4))


@kind_of_work
def sparse(seed):
    j = jacobian(lambda u: u[1:] ** 2 - u[:-1], sparsity="auto")(numbers(seed, 12))
    return j.toarray()


@kind_of_work
def signals(seed):
    f = lambda x: fnp.sum(fnp.abs(fnp.fft.rfft(x)) ** 2) + fnp.sum(fnp.convolve(x, SHARED[0]) ** 2)
    return grad(f)(numbers(seed, 8)), vmap(grad(f))(numbers(seed, 2, 8))


@kind_of_work
def long_arrays(seed):
    f = lambda x: fnp.sum(fnp.exp(-x) * fnp.sin(x) + fnp.sqrt(x) / (1.0 + x))
    return grad(f)(LONG), grad(f)(LONG * seed + 1.0)


@custom_vjp
def ruled(x):
    return fnp.exp(x) * 2.0


ruled.defvjp(lambda x: (ruled(x), x), lambda x, ct: (ct * fnp.exp(x) * 2.0,))


@custom_jvp
def pushed(x):
    return fnp.sin(x)


pushed.defjvp(lambda primals, tangents: (pushed(*primals), fnp.cos(*primals) * tangents[0]))


@kind_of_work
def own_rules(seed):
    x = numbers(seed, 3)
    cube = elementwise("cube", lambda xp, x: x * x * x, dx=lambda x: 3.0 * x * x)  # rebuilt in every thread
    f = lambda x: fnp.sum(ruled(pushed(x)) * cube(x))
    return grad(f)(x), hessian(f)(x), vmap(grad(f))(numbers(seed, 2, 3))


@kind_of_work
def looked_at(seed):
    x = numbers(seed, 3)
    with debug_nans():
        first = grad(chain)(x)
    with pytest.raises(StructuralZeroError, match="cut by floor"), strict():
        grad(lambda x: fnp.sum(fnp.floor(x)))(x)
    graph = trace(compose_left(fnp.square, fnp.sin, fnp.sum))(x)
    _, pullback = vjp(chain, x)
    return first, graph(x), str(graph), len(tape(pullback)), pullback(1.0)


@kind_of_work
def profiled(seed):
    found = profile(lambda x: chain(x) + fnp.sum(vmap(grad(chain))(x[None])), memory=False)(numbers(seed, 3))
    return [(row.operation, str(row.source), row.calls, row.saved, row.results) for row in found.operations]


@kind_of_work
def refused(seed):
    def f(x):
        with no_grad():
            y = fnp.sin(x)
        if seed % 2:
            raise KeyError(seed)
        return fnp.sum(y * x + fnp.zeros(5))

    errors = []
    for call in (grad(f), vmap(f), lambda x: vjp(f, x)[1], lambda x: grad(grad(f))(x)):
        try:
            call(numbers(seed, 2, 3))
        except (KeyError, ValueError) as error:
            errors.append(f"{type(error).__name__}: {str(error)[:60]}")
    assert len(errors) == 4
    return errors


@jit
def compiled(x):
    return value_and_grad(chain)(x)


@kind_of_work
def on_jax(seed):
    return compiled(numbers(seed, 5))


def bits(x):
    """Return shape and bytes of all arrays in a result, for a comparison bit for bit."""
    if isinstance(x, (tuple, list)):
        return [bits(part) for part in x]
    return (np.shape(x), np.asarray(x).tobytes()) if not isinstance(x, (str, int)) else x


@contextlib.contextmanager
def restless():
    """Let the interpreter switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def in_threads(jobs, rounds=1):
    """Run all ``jobs`` in each thread, in an order of its own, and return pairs of position and result."""
    barrier = threading.Barrier(THREADS)

    def run(number):
        order = list(range(len(jobs))) * rounds
        random.Random(number).shuffle(order)
        barrier.wait(60)
        return [(place, bits(jobs[place]())) for place in order]

    with restless(), ThreadPoolExecutor(THREADS) as pool:
        return [found for thread in pool.map(run, range(THREADS)) for found in thread]


def check(jobs, rounds=1):
    alone = [bits(job()) for job in jobs]
    for place, found in in_threads(jobs, rounds):
        assert found == alone[place]


@pytest.fixture(autouse=True)
def nothing_stays_open():
    """Silence NumPy's warnings, and check afterwards that no thread left a trace or block open."""
    with np.errstate(all="ignore"):
        yield
    assert not shared_state.open_traces
    assert blocks.none_open()


def test_all_workloads_in_parallel():
    with warnings.catch_warnings():  # the filters apply to the whole process
        warnings.simplefilter("ignore")
        check([lambda fun=fun: fun(1) for fun in work])


def test_shared_pullback_in_all_threads():
    x = np.linspace(0.1, 1.0, 20_000)
    _, pullback = vjp(lambda x: fnp.exp(-x) * fnp.sin(x) + checkpoint(fnp.tanh)(x) / (1.0 + x), x)
    check([lambda k=k: pullback(np.full(x.shape, float(k))) for k in (1, 2)], rounds=3)


def test_threads_record_on_one_tape():
    """A function may start threads and wait for them: the gradient includes the operations of all threads."""

    def part(x, k):
        return checkpoint(lambda x: fnp.sin(x * k) * x)(x) + fnp.cos(x) * k

    def f(x):
        return fnp.sum(sum(map(part, [x] * 16, range(16))))

    def in_parts(x):
        with ThreadPoolExecutor(THREADS) as pool:
            return fnp.sum(sum(pool.map(part, [x] * 16, range(16))))

    x = numbers(0, 5)
    with restless():
        found = [grad(in_parts)(x) for _ in range(5)]
    np.testing.assert_allclose(found, [grad(f)(x)] * 5, rtol=1e-14)  # the order in which cotangents are added differs


class Pair:
    """A container that runs a function while it is flattened."""

    def __init__(self, a, b, meanwhile=None):
        self.a, self.b, self.meanwhile = a, b, meanwhile


def parts_of(pair):
    if pair.meanwhile is not None:
        thread = threading.Thread(target=pair.meanwhile)
        thread.start()
        thread.join()
    return (pair.a, pair.b), None


register_pytree_node(Pair, parts_of, lambda _, parts: Pair(*parts))


@pytest.mark.parametrize("steps", [1, 3])
def test_tape_begins_during_repeated_run_of_other_thread(steps):
    """The leaves of a tape are its first records, whatever other threads do meanwhile."""
    found = []

    def meanwhile():
        found.append(grad(lambda x: checkpoint_chain(lambda h, y: h * y, x, np.ones(steps)))(2.0))

    gradient = grad(lambda p: 3.0 * p.a + p.b**2)(Pair(1.0, 2.0, meanwhile))
    assert found == [1.0]
    assert (gradient.a, gradient.b) == (3.0, 4.0)


@pytest.mark.parametrize("block", [no_grad(), debug_nans(), strict()], ids=["no_grad", "debug_nans", "strict"])
def test_one_block_in_two_threads(block):
    """Two threads enter the same block object: each thread leaves its own entry."""
    inside, entered, left = threading.Event(), threading.Event(), threading.Event()
    found = []

    def other():
        with block:
            inside.set()
            assert entered.wait(10)
            found.append(value_and_grad(chain)(np.ones(3)))
        left.set()

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(10)
    with block:
        entered.set()
        assert left.wait(10)
        found.append(value_and_grad(chain)(np.ones(3)))
    thread.join()
    assert bits(found) == bits([value_and_grad(chain)(np.ones(3))] * 2)


# ---- blocks that are open in other threads -------------------------------------------------------------------


def calls_of(run):
    """Return the names of all functions that ``run`` calls, in order."""
    found = []
    sys.setprofile(lambda frame, event, _: found.append(frame.f_code.co_qualname) if event == "call" else None)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


def layers(x):
    for k in range(1, 4):
        x = fnp.tanh(np.outer(x, x) @ x * 0.1 + k / (1.0 + x**2))
        x = fnp.concatenate([x[1:], x[:1]])
    return fnp.sum(x)


@pytest.mark.parametrize(
    "block", [no_grad, debug_nans, lambda: blocks.runner_block(None)], ids=["no_grad", "nans", "plain"]
)
@pytest.mark.parametrize(
    "derive", [lambda f: grad(f), lambda f: vmap(grad(f)), lambda f: lambda x: jvp(f, (x,), (x,)), lambda f: f]
)
def test_block_in_other_thread_has_no_effect(derive, block):
    """A block that is open in another thread, or was open in this one, does not change how operations run."""
    run = derive(layers)
    x = np.linspace(0.1, 1.0, 3) if "vmap" not in run.__repr__() else np.linspace(0.1, 1.0, 6).reshape(2, 3)
    opened, over = threading.Event(), threading.Event()

    def idle():
        with block():
            opened.set()
            over.wait(60)

    for _ in range(2):  # after these calls it is known how the function runs
        run(x)
    before = calls_of(lambda: run(x))
    thread = threading.Thread(target=idle)
    thread.start()
    opened.wait(60)
    try:
        run(x)
        beside = calls_of(lambda: run(x))
        with block():
            run(x)
        run(x)
        after = calls_of(lambda: run(x))
    finally:
        over.set()
        thread.join()
    assert len(before) > 20 or derive is layers
    assert beside == before
    assert after == before


def test_block_applies_to_tracers_of_other_threads():
    """The block also applies to a tracer of another thread."""
    with ThreadPoolExecutor(1) as pool:

        def f(x):
            def work():
                with no_grad():
                    return x * 2.0

            return fnp.sum(pool.submit(work).result() * x)

        np.testing.assert_array_equal(grad(f)(np.ones(2)), np.full(2, 2.0))


def test_block_left_by_other_thread():
    stack = contextlib.ExitStack()
    thread = threading.Thread(target=lambda: stack.enter_context(no_grad()))
    thread.start()
    thread.join()
    stack.close()
    assert blocks.none_open()
    block = no_grad()
    with pytest.raises(RuntimeError, match="left more often"):
        type(block).__exit__(block, None, None, None)
