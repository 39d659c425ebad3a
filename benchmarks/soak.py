"""Soak test: 100,000 derivatives of all kinds in one process, ``python benchmarks/soak.py [COUNT]``.

The test checks that memory stays flat: blocks of the interpreter and resident memory, after a tenth of the
calls and at the end. Garbage collection is off in between: reference counts alone must free everything.
"""

from __future__ import annotations

import gc
import math
import random
import resource
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import Claim

import funcgrad.numpy as fnp
from funcgrad import (
    checkpoint,
    checkpoint_chain,
    compose_left,
    custom_vjp,
    debug_nans,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    no_grad,
    profile,
    scan,
    strict,
    tape,
    trace,
    value_and_grad,
    vjp,
    vmap,
)

__all__ = ["KINDS", "flat_memory"]

X = np.linspace(0.1, 1.0, 8)
BATCH = np.linspace(0.1, 2.0, 24).reshape(3, 8)
MATRIX = np.linspace(0.1, 2.0, 9).reshape(3, 3) + 3.0 * np.eye(3)
Kind = Callable[[], Any]
#: Calls among which the test chooses.
KINDS: list[Kind] = []


def kind(fun: Kind) -> Kind:
    KINDS.append(fun)
    return fun


def loss(x: Any) -> Any:
    return fnp.sum(fnp.tanh(x) * fnp.exp(-x * x) + 1.0 / (1.0 + x))


@kind
def gradients() -> Any:
    return value_and_grad(lambda params: loss(params["a"] * params["b"][0]))({"a": X, "b": [2.0, 3.0]})


@kind
def pullbacks_used_and_dropped() -> Any:
    out, pullback = vjp(fnp.outer, X, X)
    vjp(loss, X)
    tape(pullback)
    return pullback(out), pullback(out)


@kind
def higher_orders() -> Any:
    inner = grad(lambda x: x * grad(lambda y: x * y**3)(x))
    return hessian(loss)(X[:3]), hvp(loss, (X,), (X,)), grad(inner)(0.5)


@kind
def forward_mode() -> Any:
    _, push = linearize(loss, X)
    return jvp(loss, (X,), (X,)), jacfwd(fnp.cumsum)(X), push(X)


@kind
def batches() -> Any:
    return vmap(grad(loss))(BATCH), vmap(jacrev(fnp.sin))(BATCH[:, :2])


@kind
def writes() -> Any:
    def f(x: Any) -> Any:
        out = fnp.zeros((3, 8))
        out[0] = x
        view = out[1:]
        view += out[0] * 2.0
        out.T[0] *= x[0]
        return fnp.sum(out * out)

    return grad(f)(X), vmap(grad(f))(BATCH)


@kind
def reads_and_sorts() -> Any:
    f = lambda x: sum(x[i] * x[-i] for i in range(3)) + fnp.sum(fnp.sort(x)[::2] * x[np.array([0, 0, 1, 2])])
    return grad(f)(X)


@kind
def matrices() -> Any:
    return grad(lambda a: fnp.linalg.det(a) + fnp.sum(fnp.linalg.solve(a, a.T)) + fnp.einsum("ij,jk,ki", a, a, a))(
        MATRIX
    )


@kind
def constants() -> Any:
    def f(x: Any) -> Any:
        with no_grad():
            scale = grad(loss)(x)
        return fnp.sum(x * scale)

    return grad(f)(X), no_grad(grad(loss))(X)


@kind
def run_again() -> Any:
    chain = lambda x: checkpoint_chain(lambda h, y: fnp.tanh(h + y), x, BATCH, budget=1)
    return grad(lambda x: fnp.sum(chain(x)) + checkpoint(loss)(x))(X)


@kind
def loops() -> Any:
    return grad(lambda x: fnp.sum(scan(lambda c, y: (c * y, c + y), x, BATCH)[1]))(X)


@custom_vjp
def ruled(x: Any) -> Any:
    return fnp.exp(x)


ruled.defvjp(lambda x: (ruled(x), x), lambda x, ct: (ct * fnp.exp(x),))


@kind
def own_rules() -> Any:
    f = lambda x: fnp.sum(ruled(x) * x)
    return grad(f)(X), hessian(f)(X[:2])


@kind
def looked_into() -> Any:
    graph = trace(compose_left(fnp.square, loss))(X)
    with debug_nans():
        return grad(graph)(X), str(graph), profile(loss, memory=False)(X)


class RefusedError(Exception):
    pass


def refuse(*_: Any) -> Any:
    raise RefusedError


@custom_vjp
def without_pullback(x: Any) -> Any:
    return fnp.sin(x)


without_pullback.defvjp(lambda x: (fnp.sin(x), x), refuse)


class Model:
    """Object that NumPy code uses."""

    def __init__(self) -> None:
        self.data = np.ones(8)

    def energy(self, x: Any) -> Any:
        return math.exp(x[0]) * self.data.dot(np.asarray(x))


@kind
def numpy_code() -> Any:
    """Differentiate plain NumPy functions, which are new in every call."""
    constant, model = np.ones(8), Model()
    return grad(lambda x: math.sin(x[0]) * constant.dot(np.asarray(x)) + model.energy(x))(X), grad(model.energy)(X)


@kind
def errors() -> Any:
    """Raise errors in the function, in the pullback, in an argument, and in the library."""
    met = 0
    calls: tuple[Kind, ...] = (
        lambda: grad(lambda x: fnp.sum(fnp.zeros(8) + refuse(fnp.sin(x))))(X),
        lambda: vmap(lambda x: jvp(lambda y: refuse(x * y), (x,), (x,)))(BATCH),
        lambda: grad(lambda x: fnp.sum(without_pullback(x)))(X),
        lambda: grad(loss)("text"),
        lambda: grad(lambda x: x)(X),
        lambda: grad(lambda x: x.tobytes()[0])(X),
        lambda: strict(grad(lambda x: fnp.sum(fnp.floor(x))))(X),
        lambda: hessian(lambda x: fnp.sum(x @ MATRIX))(X),
    )
    for call in calls:
        try:
            call()
        except (RefusedError, TypeError, ValueError):
            met += 1
    assert met == len(calls)
    return met


def resident() -> float:
    """Return the resident memory of this process in megabytes, or its peak if only that is known."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1e6 if sys.platform == "darwin" else 1e3)


def blocks() -> tuple[int, int]:
    """Return the number of objects that only the collector can free, and of other blocks in use."""
    unreachable = gc.collect()
    return unreachable, sys.getallocatedblocks()


def flat_memory(quick: bool, count: int = 100_000) -> list[Claim]:
    """Compare memory after a tenth of the calls, which fill all caches, with memory at the end."""
    count = 2_000 if quick else count
    order = random.Random(0)
    gc.collect()
    gc.disable()
    try:
        with np.errstate(all="ignore"):
            for _ in range(count // 10):
                order.choice(KINDS)()
            (_, before), megabytes = blocks(), resident()  # the first calls import modules, which leave cycles
            for _ in range(count - count // 10):
                order.choice(KINDS)()
            grown = resident() - megabytes
            more, after = blocks()
    finally:
        gc.enable()
    what = f"{count:,} derivatives of {len(KINDS)} kinds"
    return [
        Claim(f"{what}: memory", f"{megabytes + grown:.1f} MB", f"{megabytes:.1f} MB", grown, 1.0, "MB more"),
        Claim(f"{what}: blocks", f"{after}", f"{before}", after - before, count / 50, "more"),
        Claim(f"{what}: only to be collected", f"{more}", "0", more, 0, "objects"),
    ]


if __name__ == "__main__":
    for claim in flat_memory(False, *map(int, sys.argv[1:])):
        print(claim, "met" if claim.met else "MISSED")
