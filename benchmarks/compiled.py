"""Compiled gradients against handwritten JAX: ``jit(grad(f))`` against ``jax.jit(jax.grad(f))``.

Every program is written twice by the same algorithm, idiomatically for funcgrad.numpy and for jax.numpy.
XLA compiles both, for one thread. A difference is therefore due to the program that XLA received, or
to the cost of calling the compiled program.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np
from timing import Claim, Times, check_equal, interleave, microseconds, paired_ratio

import funcgrad.nn as fnn
import funcgrad.numpy as fnp
from funcgrad import grad, hvp, scan
from funcgrad.interop import jit

__all__ = ["PROGRAMS", "cast", "convolution", "hessian_product", "mixture", "network", "recurrent"]

RUN, CONVERTED, COMPILE = 1.05, 1.10, 1.3
MEGABYTE = 1_000_000
Function = Callable[..., Any]
Params = dict[str, Any]


@dataclass(frozen=True)
class Program:
    """A measured program.

    Args:
        name: name in the table.
        ours: returns a function of funcgrad to compile, a new one at every call.
        theirs: returns the handwritten function for JAX.
        value: function of funcgrad whose gradient ``ours`` is; None if ``ours`` is not a gradient.
        args: arguments, in float64.
        large: arguments of a megabyte and more, also in float32, for measurements that include conversions.
    """

    name: str
    ours: Callable[[], Function]
    theirs: Callable[[], Function]
    value: Function | None
    args: tuple[Any, ...]
    large: tuple[Any, ...]


def of_gradient(name: str, loss: Function, by_hand: Function, args: Any, large: Any) -> Program:
    """Return the program of the gradient of ``loss`` with respect to its first argument."""
    import jax

    return Program(name, lambda: grad(renewed(loss)), lambda: jax.grad(renewed(by_hand)), loss, args, large)


def renewed(fun: Function) -> Function:
    """Return a new function that computes ``fun``, for which no cache has an entry."""
    return lambda *args: fun(*args)


def measured(program: Program, quick: bool) -> list[Claim]:
    """Return the lines of a program."""
    claims = []
    for dtype in (np.float64, np.float32):
        args, large = (cast(of, dtype) for of in (program.args, program.large))
        # Sums differ in order: float32 keeps seven digits of the largest term, and the results are smaller.
        check(program, args, 1e-10 if dtype is np.float64 else 1e-3)
        claims += [
            running(program, args, dtype, quick),
            converting(program, large, quick),
            compiling(program, args, quick),
            *outside(program, args, quick),
        ]
    return claims


def check(program: Program, args: Any, tolerance: float) -> None:
    """Raise an error if the two programs compute different things."""
    import jax

    found = jit(program.ours())(*args)
    check_equal(found, {"JAX": jax.jit(program.theirs())(*args)}, tolerance)
    if program.value is not None:
        check_equal(found, {"a compiled function inside": grad(jit(program.value))(*args)}, tolerance)
    assert jax.tree.leaves(found)[0].dtype == jax.tree.leaves(args)[0].dtype


def running(program: Program, args: Any, dtype: Any, quick: bool) -> Claim:
    """Measure one call on JAX arrays."""
    import jax

    def made() -> tuple[Function, Function]:
        there = jax.device_put(args)
        return in_time(jit(program.ours()), there), in_time(jax.jit(program.theirs()), there)

    return compared(f"{program.name}, {dtype.__name__}", timed(made, quick), RUN)


def in_time(fun: Function, args: Any) -> Function:
    """Return a call of ``fun`` that waits for its result."""
    import jax

    return lambda: jax.block_until_ready(fun(*args))


def converting(program: Program, args: Any, quick: bool) -> Claim:
    """Measure one call on NumPy arrays that returns NumPy arrays."""
    import jax

    size = sum(leaf.nbytes for leaf in jax.tree.leaves(args))
    assert size >= MEGABYTE, f"{program.name}: {size} bytes are too few"

    def made() -> tuple[Function, Function]:
        ours, theirs = jit(program.ours()), jax.jit(program.theirs())
        return lambda: ours(*args), lambda: jax.tree.map(np.asarray, theirs(*args))

    return compared(f"  {size / MEGABYTE:.1f} MB of NumPy in, NumPy out", timed(made, quick), CONVERTED)


def compiling(program: Program, args: Any, quick: bool) -> Claim:
    """Measure the first call of a new function, minus the time of a later call."""
    import jax

    times: Times = {"funcgrad": [], "JAX": []}
    makers = [("funcgrad", lambda: jit(program.ours())), ("JAX", lambda: jax.jit(program.theirs()))]
    for number in range(2 if quick else 12):
        for name, make in makers:
            jax.clear_caches()
            gc.collect()
            call = in_time(make(), args)
            spent = [seconds(call) for _ in range(3)]
            if number:  # the first round also loads modules that are loaded once
                times[name].append(spent[0] - min(spent[1:]))
        makers.reverse()
    return compared("  to trace and compile it", times, COMPILE)


def outside(program: Program, args: Any, quick: bool) -> list[Claim]:
    """Measure ``grad(jit(f))``: two programs, and between them the values that the second needs."""
    value = program.value
    if value is None:
        return []
    import jax

    def made() -> tuple[Function, Function]:
        there = jax.device_put(args)
        return in_time(grad(jit(renewed(value))), there), in_time(jax.jit(program.theirs()), there)

    return [compared("  grad(jit(f))", timed(made, quick), None)]


def timed(made: Callable[[], tuple[Function, Function]], quick: bool) -> Times:
    """Time both in turn, for as long as it takes to resolve one per cent.

    Both are made several times, since the speed of a program depends slightly on the addresses of its memory.
    """
    times: Times = {"funcgrad": [], "JAX": []}
    for _ in range(1 if quick else 4):
        ours, theirs = made()
        ours(), theirs()
        once = min(seconds(theirs) for _ in range(5))
        rounds = 5 if quick else int(min(max(0.6 / once, 15), 200))
        for name, found in interleave({"funcgrad": ours, "JAX": theirs}, rounds).items():
            times[name] += found
    return times


def seconds(call: Function) -> float:
    start = process_time()
    call()
    return process_time() - start


def compared(what: str, times: Times, bar: float | None) -> Claim:
    """Return the claim about the two calls in ``times``."""
    ours, theirs = (microseconds(times, name) for name in ("funcgrad", "JAX"))
    return Claim(what, f"{ours:.4g} us", f"JAX by hand {theirs:.4g} us", paired_ratio(times, "funcgrad", "JAX"), bar)


def cast(args: Any, dtype: Any) -> Any:
    """Return floating arrays in ``dtype``, other arrays unchanged."""
    import jax

    return jax.tree.map(lambda x: x.astype(dtype) if x.dtype.kind == "f" else x, args)


def normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> np.ndarray:
    return scale * rng.standard_normal(shape)


def labels_of(rng: np.random.Generator, count: int, classes: int = 10) -> np.ndarray:
    return np.eye(classes)[rng.integers(0, classes, count)]


# Network of two layers, and the product of its Hessian and a vector.


def network_loss(params: Params, x: Any, labels: Any) -> Any:
    hidden = fnp.tanh(x @ params["w1"] + params["b1"])
    return -fnp.sum(labels * fnp.log_softmax(hidden @ params["w2"] + params["b2"])) / len(x)


def network_by_hand(params: Params, x: Any, labels: Any) -> Any:
    import jax
    import jax.numpy as jnp

    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return -jnp.sum(labels * jax.nn.log_softmax(hidden @ params["w2"] + params["b2"])) / len(x)


def network_problem() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    params = {
        "w1": normal(rng, 784, 512, scale=784**-0.5),
        "b1": normal(rng, 512, scale=0.1),
        "w2": normal(rng, 512, 10, scale=512**-0.5),
        "b2": normal(rng, 10, scale=0.1),
    }
    return params, normal(rng, 128, 784), labels_of(rng, 128)


def network_program() -> Program:
    """Return the program of the gradient of a loss of a 784-512-10 network on 128 examples."""
    problem = network_problem()
    return of_gradient("MLP 784-512-10", network_loss, network_by_hand, problem, problem)


def hessian_program() -> Program:
    """Return the program of a tangent through the network's gradient."""
    import jax

    params, x, labels = network_problem()
    rng = np.random.default_rng(1)
    tangent = {name: normal(rng, *p.shape) for name, p in params.items()}

    def ours() -> Function:
        return lambda p, t, *rest: hvp(lambda q: network_loss(q, *rest), (p,), (t,))[0]

    def theirs() -> Function:
        return lambda p, t, *rest: jax.jvp(jax.grad(lambda q: network_by_hand(q, *rest)), (p,), (t,))[1]

    problem = (params, tangent, x, labels)
    return Program("MLP, Hessian times vector", ours, theirs, None, problem, problem)


# Two layers of convolution, with the largest of each four values between them.

LAYOUT = ("NHWC", "HWIO", "NHWC")


def convolution_loss(params: Params, images: Any, labels: Any) -> Any:
    x = images
    for name in ("first", "second"):
        x = fnn.relu(fnn.conv(x, params[name], dimension_numbers=LAYOUT))
        x = fnn.max_pool(x, (2, 2), 2, axes=(1, 2))
    scores = fnp.reshape(x, (len(x), -1)) @ params["dense"]
    return -fnp.sum(labels * fnn.log_softmax(scores)) / len(x)


def convolution_by_hand(params: Params, images: Any, labels: Any) -> Any:
    import jax
    import jax.numpy as jnp
    from jax import lax

    x = images
    for name in ("first", "second"):
        x = jax.nn.relu(lax.conv_general_dilated(x, params[name], (1, 1), "VALID", dimension_numbers=LAYOUT))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    scores = jnp.reshape(x, (len(x), -1)) @ params["dense"]
    return -jnp.sum(labels * jax.nn.log_softmax(scores)) / len(x)


def convolution_program() -> Program:
    """Return the program of the gradient with respect to filters and weights, on images of 30 x 30 points."""
    rng = np.random.default_rng(0)
    params = {
        "first": normal(rng, 3, 3, 1, 8, scale=1 / 3),
        "second": normal(rng, 3, 3, 8, 16, scale=72**-0.5),
        "dense": normal(rng, 576, 10, scale=1 / 24),
    }

    def problem(count: int) -> tuple[Any, ...]:
        return params, normal(rng, count, 30, 30, 1), labels_of(rng, count)

    name = "convolutional network 8-16-10"
    return of_gradient(name, convolution_loss, convolution_by_hand, problem(16), problem(320))


# Recurrent network, by ``funcgrad.scan`` and by ``jax.lax.scan``.


def recurrent_loss(params: Params, xs: Any, targets: Any) -> Any:
    def step(hidden: Any, x: Any) -> tuple[Any, Any]:
        hidden = fnp.tanh(x @ params["wx"] + hidden @ params["wh"] + params["b"])
        return hidden, hidden

    _, states = scan(step, fnp.zeros((xs.shape[1], 32), xs.dtype), xs)
    return fnp.mean((states @ params["out"] - targets) ** 2)


def recurrent_by_hand(params: Params, xs: Any, targets: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def step(hidden: Any, x: Any) -> tuple[Any, Any]:
        hidden = jnp.tanh(x @ params["wx"] + hidden @ params["wh"] + params["b"])
        return hidden, hidden

    _, states = jax.lax.scan(step, jnp.zeros((xs.shape[1], 32), xs.dtype), xs)
    return jnp.mean((states @ params["out"] - targets) ** 2)


def recurrent_program() -> Program:
    """Return the program of the gradient through 100 steps of a network with 32 hidden values."""
    rng = np.random.default_rng(0)
    params = {
        "wx": normal(rng, 32, 32, scale=32**-0.5),
        "wh": normal(rng, 32, 32, scale=32**-0.5),
        "b": normal(rng, 32, scale=0.1),
        "out": normal(rng, 32, scale=32**-0.5),
    }

    def problem(count: int) -> tuple[Any, ...]:
        return params, normal(rng, 100, count, 32), normal(rng, 100, count)

    name = "RNN, hidden 32, length 100"
    return of_gradient(name, recurrent_loss, recurrent_by_hand, problem(16), problem(128))


# Mixture of Gaussians: a triangular factor gives each precision.


def mixture_loss(params: Params, x: Any) -> Any:
    scales = fnp.exp(params["log_scales"])
    factors = fnp.tril(params["lower"], -1) + scales[:, :, None] * fnp.eye(x.shape[1], dtype=x.dtype)
    z = fnp.einsum("kij,nkj->nki", factors, x[:, None] - params["means"])
    logs = params["logits"] - fnp.logsumexp(params["logits"]) + fnp.sum(params["log_scales"], axis=1)
    return -fnp.mean(fnp.logsumexp(logs - 0.5 * fnp.sum(z**2, axis=2), axis=1))


def mixture_by_hand(params: Params, x: Any) -> Any:
    import jax
    import jax.numpy as jnp

    logsumexp = jax.scipy.special.logsumexp
    scales = jnp.exp(params["log_scales"])
    factors = jnp.tril(params["lower"], -1) + scales[:, :, None] * jnp.eye(x.shape[1], dtype=x.dtype)
    z = jnp.einsum("kij,nkj->nki", factors, x[:, None] - params["means"])
    logs = params["logits"] - logsumexp(params["logits"]) + jnp.sum(params["log_scales"], axis=1)
    return -jnp.mean(logsumexp(logs - 0.5 * jnp.sum(z**2, axis=2), axis=1))


def mixture_program() -> Program:
    """Return the program of the gradient of the log-likelihood of 1,000 points in 8 dimensions under 10 components."""
    rng = np.random.default_rng(0)
    params = {
        "logits": normal(rng, 10),
        "means": normal(rng, 10, 8),
        "log_scales": normal(rng, 10, 8, scale=0.1),
        "lower": normal(rng, 10, 8, 8, scale=0.3),
    }
    name = "Gaussian mixture, n=1000 d=8 k=10"
    small, large = ((params, normal(rng, count, 8)) for count in (1_000, 40_000))
    return of_gradient(name, mixture_loss, mixture_by_hand, small, large)


PROGRAMS = (network_program, convolution_program, recurrent_program, mixture_program, hessian_program)


def network(quick: bool) -> list[Claim]:
    return measured(network_program(), quick)


def convolution(quick: bool) -> list[Claim]:
    return measured(convolution_program(), quick)


def recurrent(quick: bool) -> list[Claim]:
    return measured(recurrent_program(), quick)


def mixture(quick: bool) -> list[Claim]:
    return measured(mixture_program(), quick)


def hessian_product(quick: bool) -> list[Claim]:
    return measured(hessian_program(), quick)
