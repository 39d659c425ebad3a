"""Small programs of tutorials: one call on a number, a 3-3-1 network, a recurrent network one step at a time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from programs import BY_HAND, LESS, Program, by_autograd, by_funcgrad, by_jax, by_mygrad, by_torch, of_losses, value_of
from timing import Claim, interleave, microseconds

import funcgrad.nn as fnn
import funcgrad.numpy as fnp
from funcgrad import grad

__all__ = ["linear", "programs"]

HIDDEN, INPUTS = 10, 20


def programs(quick: bool) -> list[Program]:
    """Return the call on a number, the network, and recurrent networks of several lengths."""
    lengths = (5, 20) if quick else (5, 100, 1_000)
    return [scalar_call(), tutorial_network(), *[recurrent_network(length) for length in lengths]]


# One whole call on one number, from the argument to the gradient.


def composed(xp: Any) -> Any:
    return lambda x: xp.sin(xp.cos(xp.exp(x * x)))


def scalar_funcgrad(x: float) -> Any:
    gradient = grad(composed(fnp))
    return lambda: gradient(x)


def scalar_autograd(x: float) -> Any:
    import autograd
    import autograd.numpy as anp

    gradient = autograd.grad(composed(anp))
    return lambda: gradient(x)


def scalar_mygrad(x: float) -> Any:
    import mygrad

    mygrad.turn_memory_guarding_off()
    fun, leaf = composed(mygrad), mygrad.tensor(x)

    def call() -> Any:
        fun(leaf).backward()
        return leaf.grad

    return call


def scalar_backward(x: float) -> Any:
    import torch

    fun, leaf = composed(torch), torch.tensor(x, dtype=torch.float64, requires_grad=True)

    def call() -> Any:
        leaf.grad = None
        fun(leaf).backward()
        return leaf.grad

    return call


def scalar_torch_func(x: float) -> Any:
    import torch

    gradient, at = torch.func.grad(composed(torch)), torch.tensor(x, dtype=torch.float64)
    return lambda: gradient(at)


def scalar_jax(x: float) -> Any:
    import jax
    import jax.numpy as jnp

    gradient = jax.grad(composed(jnp))
    return lambda: gradient(x)


def scalar_call() -> Program:
    """Return the program of a call on a number, with tensors made outside the call."""
    return Program(
        name="sin(cos(exp(x*x))) at a number, whole call",
        args=lambda _: (0.7,),
        libraries={
            "funcgrad": scalar_funcgrad,
            "torch": scalar_backward,
            "torch.func.grad": scalar_torch_func,
            "autograd": scalar_autograd,
            "mygrad": scalar_mygrad,
            "JAX, not compiled": scalar_jax,
        },
        reference=scalar_jax,
        value=lambda x: lambda: composed(fnp)(x),
        bars={**LESS, "torch.func.grad": 1.0},
        operations=4,
    )


# A 3-3-1 network that learns whether its inputs differ.


def tutorial_args(dtype: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    params = {
        "w1": rng.standard_normal((3, 3)),
        "b1": rng.standard_normal(3),
        "w2": rng.standard_normal((3, 1)),
        "b2": rng.standard_normal(1),
    }
    x = np.array([[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]], dtype)
    return {name: p.astype(dtype) for name, p in params.items()}, x, np.array([[0], [1], [1], [0]], dtype)


def product_and_sum(x: Any, kernel: Any, bias: Any) -> Any:
    return x @ kernel + bias


def tutorial_loss(sigmoid: Any, mean: Any, linear: Any = product_and_sum) -> Any:
    """Return the loss; ``linear`` is the library's product with a matrix plus a bias."""

    def loss(params: Any, x: Any, y: Any) -> Any:
        hidden = sigmoid(linear(x, params["w1"], params["b1"]))
        return mean((sigmoid(linear(hidden, params["w2"], params["b2"])) - y) ** 2)

    return loss


def tutorial_funcgrad() -> Any:
    return tutorial_loss(fnn.sigmoid, fnp.mean, fnn.linear)


def tutorial_torch(params: Any, x: Any, y: Any) -> Any:
    import torch

    hidden = torch.sigmoid(torch.addmm(params["b1"], x, params["w1"]))
    return torch.nn.functional.mse_loss(torch.sigmoid(torch.addmm(params["b2"], hidden, params["w2"])), y)


def tutorial_autograd(*args: Any) -> Any:
    import autograd.numpy as anp

    return tutorial_loss(lambda x: 1 / (1 + anp.exp(-x)), anp.mean)(*args)


def tutorial_mygrad(*args: Any) -> Any:
    import mygrad

    return tutorial_loss(mygrad.nnet.sigmoid, mygrad.mean)(*args)


def tutorial_jax(*args: Any) -> Any:
    import jax
    import jax.numpy as jnp

    return tutorial_loss(jax.nn.sigmoid, jnp.mean)(*args)


def tutorial_by_hand(params: Any, x: Any, y: Any) -> Any:
    def call() -> Any:
        hidden = 1 / (1 + np.exp(-(x @ params["w1"] + params["b1"])))
        out = 1 / (1 + np.exp(-(hidden @ params["w2"] + params["b2"])))
        error = out - y
        (error * error).mean()  # the value, which every library computes too
        ct = error * out * (1 - out) * (2 / error.size)
        gradient = {"w2": hidden.T @ ct, "b2": ct.sum(axis=0)}
        ct = ct @ params["w2"].T * hidden * (1 - hidden)
        return {"w1": x.T @ ct, "b1": ct.sum(axis=0), **gradient}

    return call


def tutorial_network() -> Program:
    loss = tutorial_funcgrad()
    return Program(
        name="network 3-3-1, 4 examples",
        args=tutorial_args,
        **of_losses(
            loss, tutorial_torch, tutorial_autograd, tutorial_mygrad, tutorial_jax, {BY_HAND: tutorial_by_hand}
        ),
        bars=LESS,
    )


# Recurrent network, one Python step at a time.


def recurrent_args(length: int, dtype: Any) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    params = {
        "wx": rng.standard_normal((INPUTS, HIDDEN)) * INPUTS**-0.5,
        "wh": rng.standard_normal((HIDDEN, HIDDEN)) * HIDDEN**-0.5,
        "b": rng.standard_normal(HIDDEN) * 0.1,
        "out": rng.standard_normal((HIDDEN, 1)),
    }
    xs = rng.standard_normal((length, 1, INPUTS))
    return {name: p.astype(dtype) for name, p in params.items()}, xs.astype(dtype), np.ones((1, 1), dtype)


def recurrent_loss(tanh: Any, mean: Any, linear: Any = product_and_sum) -> Any:
    """Return the loss; ``linear`` is the library's product with a matrix plus a bias."""

    def loss(params: Any, xs: Any, target: Any) -> Any:
        hidden = np.zeros((1, HIDDEN), xs.dtype)
        for x in xs:
            hidden = tanh(linear(x, params["wx"], params["b"]) + hidden @ params["wh"])
        return mean((hidden @ params["out"] - target) ** 2)

    return loss


def recurrent_torch(params: Any, xs: Any, target: Any) -> Any:
    import torch

    hidden = xs.new_zeros(1, HIDDEN)
    for x in xs:
        hidden = torch.tanh(torch.addmm(params["b"], x, params["wx"]) + hidden @ params["wh"])
    return torch.nn.functional.mse_loss(hidden @ params["out"], target)


def recurrent_layer(params: Any, xs: Any, target: Any) -> Any:
    """Compute by torch's recurrent layer, whose loop is written in C++."""
    import torch

    parts = {name: torch.from_numpy(p) for name, p in params.items()}
    layer = torch.nn.RNN(INPUTS, HIDDEN).to(parts["wx"].dtype)
    with torch.no_grad():
        layer.weight_ih_l0.copy_(parts["wx"].T)
        layer.weight_hh_l0.copy_(parts["wh"].T)
        layer.bias_ih_l0.copy_(parts["b"])
        layer.bias_hh_l0.zero_().requires_grad_(False)
    out, inputs, aim = parts["out"].requires_grad_(), torch.from_numpy(xs), torch.from_numpy(target)
    leaves = [layer.bias_ih_l0, out, layer.weight_hh_l0, layer.weight_ih_l0]

    def call() -> Any:
        last = layer(inputs)[1][0]
        b, last_layer, wh, wx = torch.autograd.grad(torch.nn.functional.mse_loss(last @ out, aim), leaves)
        return {"wx": wx.T, "wh": wh.T, "b": b, "out": last_layer}

    return call


def recurrent_autograd(*args: Any) -> Any:
    import autograd.numpy as anp

    return recurrent_loss(anp.tanh, anp.mean)(*args)


def recurrent_mygrad(*args: Any) -> Any:
    import mygrad

    return recurrent_loss(mygrad.tanh, mygrad.mean)(*args)


def recurrent_by_hand(params: Any, xs: Any, target: Any) -> Any:
    """Return the gradient by hand: compute values that need no earlier step for all steps at once."""
    wh, out, inputs = params["wh"], params["out"], xs[:, 0]

    def call() -> Any:
        states = np.empty((len(xs) + 1, HIDDEN), xs.dtype)
        states[0] = 0
        np.matmul(inputs, params["wx"], out=states[1:])
        states[1:] += params["b"]
        for before, state in pairwise(states):
            state += before @ wh
            np.tanh(state, out=state)
        error = states[-1:] @ out - target
        np.mean(error**2)  # the value, which every library computes too
        slopes = 1 - states[1:] ** 2
        ct = (2 / error.size * error @ out.T)[0]
        for slope in slopes[::-1]:
            slope *= ct
            ct = wh @ slope
        return {
            "wx": inputs.T @ slopes,
            "wh": states[:-1].T @ slopes,
            "b": slopes.sum(axis=0),
            "out": states[-1:].T @ (2 / error.size * error),
        }

    return call


def recurrent_jax(params: Any, xs: Any, target: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def step(hidden: Any, x: Any) -> Any:
        return jnp.tanh(x @ params["wx"] + hidden @ params["wh"] + params["b"]), None

    hidden, _ = jax.lax.scan(step, jnp.zeros((1, HIDDEN), xs.dtype), xs)
    return jnp.mean((hidden @ params["out"] - target) ** 2)


def recurrent_network(length: int) -> Program:
    loss = recurrent_loss(fnp.tanh, fnp.mean, fnn.linear)
    return Program(
        name=f"RNN, hidden {HIDDEN}, input {INPUTS}, length {length:,}",
        args=lambda dtype: recurrent_args(length, dtype),
        libraries={
            "funcgrad": by_funcgrad(loss),
            "torch": by_torch(recurrent_torch),
            "torch.nn.RNN": recurrent_layer,
            "autograd": by_autograd(recurrent_autograd),
            "mygrad": by_mygrad(recurrent_mygrad),
            BY_HAND: recurrent_by_hand,
        },
        reference=by_jax(recurrent_jax),
        value=value_of(loss),
        bars={**LESS, "torch.nn.RNN": 1.0},
        small=(lambda dtype: recurrent_args(5, dtype)) if length >= 1_000 else None,
    )


def linear(quick: bool) -> list[Claim]:
    """Check that a step of a long recurrent network costs as much as a step of a short one."""
    short, long = (5, 20) if quick else (100, 1_000)
    build = by_funcgrad(recurrent_loss(fnp.tanh, fnp.mean, fnn.linear))
    calls = {str(length): build(*recurrent_args(length, np.float64)) for length in (short, long)}
    times = interleave(calls, rounds=3 if quick else 31)
    each = {length: microseconds(times, str(length), length) for length in (short, long)}
    what = f"RNN: a step of {long:,} against one of {short:,}"
    return [Claim(what, f"{each[long]:.3g} us", f"{each[short]:.3g} us", each[long] / each[short], 1.1)]
