"""Threads write to different places of one array, as NumPy allows: no write is lost, in any mode.

The interpreter switches between threads as often as it can. Results must equal those of one thread.
"""

import contextlib
import contextvars
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import (
    checkpoint,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    shared_state,
    trace,
    tree,
    value_and_grad,
    views,
    vjp,
    vmap,
    writable,
)
from funcgrad.core import READ_ONLY
from funcgrad.errors import ConcretizationError, InputError
from funcgrad.writable import COPY_ON_WRITE, make_buffer, unshare

THREADS, N = 8, 4
W = np.linspace(0.5, 1.5, THREADS)
X, T = np.linspace(0.3, 1.2, N), np.cos(np.arange(N))
XS = np.stack([X, X * 1.1, X - 0.2])


@contextlib.contextmanager
def restless():
    """Let the interpreter switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


# ---- ways to run the threads --------------------------------------------------------------------------------


def alone(work):
    for i in range(THREADS):
        work(i)


def in_threads(work):
    errors = []

    def guarded(i):
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def in_pool(pool):
    return lambda work: list(pool.map(work, range(THREADS)))


def in_contexts(pool):
    """Run each thread in a copy of the context of the thread that runs the transform."""

    def run(work):
        for job in [pool.submit(contextvars.copy_context().run, work, i) for i in range(THREADS)]:
            job.result()

    return run


def beside_the_main_thread(pool):
    """Let the thread that runs the transform work as well."""

    def run(work):
        jobs = [pool.submit(work, i) for i in range(1, THREADS)]
        work(0)
        for job in jobs:
            job.result()

    return run


# ---- programs -----------------------------------------------------------------------------------------------

programs = {}


def program(fun):
    programs[fun.__name__] = fun
    return fun


@program
def rows(x, run):
    out = fnp.zeros((THREADS, N))

    def work(i):
        out[i] = fnp.sin(x * W[i]) * x

    run(work)
    return fnp.sum(out * out)


@program
def elements(x, run):
    out = fnp.zeros((THREADS, N))

    def work(i):
        for j in range(N):
            out[i, j] = out[i, j - 1] * x[j] if j else x[j] * W[i]

    run(work)
    return fnp.sum(out * out)


@program
def views_handed_over(x, run):
    out = fnp.zeros((THREADS, N))
    parts = [out[i] for i in range(THREADS)]

    def work(i):
        row = parts[i]
        row[:] = fnp.sin(x * W[i]) * x
        row += x * 2.0
        row[1:] *= row[:-1].copy()

    run(work)
    return fnp.sum(out * out) + fnp.sum(parts[3])


@program
def views_taken(x, run):
    out = fnp.zeros((THREADS, N))

    def work(i):
        row = out[i]
        row[:] = fnp.sin(x * W[i]) * x
        column = out.T[:, i]
        column += x * 2.0
        row.reshape(2, 2)[0, 1] *= out[i, :2][0]

    run(work)
    return fnp.sum(out * out)


@program
def constants_first(x, run):
    """Make the array traced while other threads write constants to it and read them."""
    out = fnp.zeros((THREADS, N))

    def work(i):
        row = out[i]
        row[:] = W[i]
        row[1:] += 1.0
        row *= x
        out[i, 0] += W[i]
        row[2] = 5.0 * W[i]

    run(work)
    return fnp.sum(out * out)


@program
def ufuncs_at(x, run):
    out = fnp.zeros((THREADS, N))

    def work(i):
        np.add.at(out, (i, 3), W[i])
        np.add.at(out, (i, np.array([0, 0, 2])), x[:3] * W[i])
        np.multiply.at(out[i], [0, 1, 0], x[1] + 1.0)

    run(work)
    return fnp.sum(out * out)


@program
def out_arguments(x, run):
    out = fnp.zeros((THREADS, N))

    def work(i):
        np.add(W[:N], W[i], out=out[i])
        fnp.multiply(x, out[i], out=out[i])
        np.cumsum(out[i], out=out[i])

    run(work)
    return fnp.sum(out * out)


@program
def masks(x, run):
    out = fnp.zeros((THREADS, N))

    def work(i):
        mine = np.zeros((THREADS, N), bool)
        mine[i] = True
        np.copyto(out, x * W[i], where=mine)
        out[mine] *= 2.0
        np.putmask(out, mine, out * 1.5)

    run(work)
    return fnp.sum(out * out)


@program
def other_functions(x, run):
    out = fnp.zeros((THREADS, N))

    def work(i):
        np.put(out, np.arange(N) + i * N, -x * W[i])
        out[i].sort()
        out.flat[i * N] = x[0]
        out[[i]] *= x
        if i == 2:
            out[i].fill(x[1])

    run(work)
    return fnp.sum(out * out)


@program
def a_traced_array(x, run):
    out = fnp.outer(W, x)

    def work(i):
        out[i] = out[i] * x
        row = out[i]
        row *= 2.0
        out[i, 1] = 3.0

    run(work)
    return fnp.sum(out * out)


@program
def rows_of_others_after_a_join(x, run):
    out, last = fnp.zeros((THREADS, N)), fnp.zeros((THREADS, N))

    def work(i):
        out[i] = fnp.sin(x * W[i]) * x

    def combine(i):
        last[i] = out[(i + 1) % THREADS] * out[i] + out[-1 - i]

    run(work)
    run(combine)
    return fnp.sum(last * last) + fnp.sum(out)


@program
def own_rows_while_others_write(x, run):
    out = fnp.zeros((THREADS, N))
    parts = [out[i] for i in range(THREADS)]

    def work(i):
        total = 0.0
        for k in range(N):
            out[i] = out[i] * 0.5 + x * W[i]
            total = total + fnp.sum(parts[i] * parts[i]) + out[i, k] * parts[i][k] + fnp.exp(parts[i] * 0.1) @ x
            assert (parts[i].shape, out.shape, len(out)) == ((N,), (THREADS, N), THREADS)
        out[i, 0] = total

    run(work)
    return fnp.sum(out * out)


@program
def one_writes_and_the_others_read(x, run):
    out = fnp.outer(W, x)
    parts, found = [out[i] for i in range(THREADS)], [0.0] * THREADS

    def work(i):
        for k in range(N):
            if i:
                found[i] = found[i] + fnp.sum(parts[i] * x) * parts[i][k] + parts[i] @ x + fnp.sum(fnp.sin(out[i]))
            else:
                out[0] = out[0] * 0.5 + x
                out[0, k] = 1.0

    run(work)
    return fnp.sum(out * out) + sum(found)


MODES = {
    "grad": lambda f: value_and_grad(f)(X),
    "jvp": lambda f: jvp(f, (X,), (T,)),
    "vmap(grad)": lambda f: vmap(value_and_grad(f))(XS),
    "linearize": lambda f: (lambda y, push: (y, push(T)))(*linearize(f, X)),
    "grad(grad)": lambda f: grad(lambda x: fnp.sum(grad(f)(x) * T))(X),
    "hvp": lambda f: hvp(f, (X,), (T,)),
    "trace": lambda f: trace(f)(X)(X * 1.1),
    "vjp": lambda f: (lambda y, pull: (y, pull(2.0), pull(1.0)))(*vjp(f, X)),
    "jacrev": lambda f: jacrev(lambda x: f(x) * x)(X),
    "jacfwd": lambda f: jacfwd(f)(X),
    "hessian": lambda f: hessian(f)(X),
    "checkpoint": lambda f: value_and_grad(checkpoint(f))(X),
    "vjp of checkpoint": lambda f: (lambda y, pull: (y, pull(2.0), pull(1.0)))(*vjp(checkpoint(f), X)),
    "vmap(grad) of checkpoint": lambda f: vmap(value_and_grad(checkpoint(f)))(XS),
    "hvp of checkpoint": lambda f: hvp(checkpoint(f), (X,), (T,)),
}


@pytest.mark.parametrize("name", programs)
def test_no_write_is_lost(name):
    fun = programs[name]
    with ThreadPoolExecutor(THREADS) as pool:
        teams = [in_pool(pool), in_threads, in_contexts(pool), beside_the_main_thread(pool)]
        for number, (mode, derive) in enumerate(MODES.items()):
            wanted = derive(lambda x: fun(x, alone))
            with restless():
                # two of the teams: each runs the program in half of the modes
                found = [derive(lambda x, run=teams[(number + k) % 4]: fun(x, run)) for k in range(2)]
            for each in found:
                for one, want in zip(tree.leaves(each), tree.leaves(wanted), strict=True):
                    np.testing.assert_allclose(one, want, rtol=1e-10, atol=1e-12, err_msg=mode)
    assert not shared_state.open_traces


def test_parts_are_copied_under_lock(monkeypatch):
    """A write of another thread rebuilds views, and gives parts memory of their own, too."""
    original, calls = writable.copy_small, []

    def guarded(part):
        calls.append(part)
        assert shared_state.write_lock._is_owned()
        original(part)

    for module in (writable, views):
        monkeypatch.setattr(module, "copy_small", guarded)
    for program in programs.values():
        for derive in MODES.values():
            derive(lambda x, program=program: program(x, alone))
    assert calls


# ---- arrays that a thread makes ------------------------------------------------------------------------------


MAKERS = [
    lambda: fnp.zeros(3),
    lambda: fnp.ones(3),
    lambda: fnp.empty(3),
    lambda: fnp.full(3, 2.0),
    lambda: fnp.zeros_like(X),
    lambda: fnp.ones_like(X),
    lambda: fnp.empty_like(X),
    lambda: fnp.full_like(X, 2.0),
    lambda: fnp.array([1.0, 2.0]),
    lambda: fnp.asarray([1.0, 2.0]),
    lambda: fnp.copy(X),
    lambda: fnp.arange(3.0),
    lambda: fnp.linspace(0.0, 1.0, 3),
    lambda: fnp.eye(3),
]


def test_unrelated_thread_gets_ndarrays():
    kinds = []

    def unrelated():
        started.wait(10)
        kinds.extend(type(make()) for make in MAKERS)

    started, thread = threading.Event(), threading.Thread(target=unrelated)
    thread.start()

    def f(x):
        started.set()
        thread.join()
        return fnp.sum(x)

    grad(f)(X)
    assert kinds == [np.ndarray] * len(MAKERS)


def assign(y, x):
    y[0] = x[0]


def add_in_place(y, x):
    y += x


@pytest.mark.parametrize(
    ("write", "error"),
    [
        (assign, ConcretizationError),
        (add_in_place, InputError),
        (lambda y, x: fnp.add(x, x, out=y), InputError),
        (lambda y, x: np.add.at(y, [0], x[0]), InputError),
    ],
    ids=["setitem", "iadd", "out", "at"],
)
@pytest.mark.usefixtures("written")
def test_write_to_array_of_other_thread_raises(write, error):
    def f(x):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: write(fnp.zeros(N), x)).result()
        return fnp.sum(x)

    with pytest.raises(error, match=r"thread does not run the transform.*pass it to this one.*stack") as found:
        grad(f)(X)
    assert "numpy.zeros" not in str(found.value)  # in this thread ``numpy.zeros`` makes an ordinary array
    with pytest.raises(error) as found:  # the thread that runs the transform has another reason
        grad(lambda x: write(np.zeros(N), x))(X)
    assert "does not run the transform" not in str(found.value)


def test_read_only_buffer_of_shared_memory_is_copied():
    """A part of a constant is read-only and may share memory at once, and has no views to take again."""
    values = np.ones(3)
    part = make_buffer(values)
    part.link, part.alias = COPY_ON_WRITE, READ_ONLY
    unshare(part)
    assert part.link is None
    assert part._val is not values
