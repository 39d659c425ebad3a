"""LSTM language model of ADBench: two layers of 14 features, with elementwise gates."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from programs import BY_HAND, LESS, Program, of_losses

import funcgrad.nn as fnn
import funcgrad.numpy as fnp

__all__ = ["programs"]

LAYERS, WIDTH = 2, 14
Params = dict[str, Any]


def programs(quick: bool) -> list[Program]:
    return [language_model(length) for length in ((8,) if quick else (128, 1_024))]


def problem(length: int, dtype: Any) -> tuple[Params, np.ndarray, np.ndarray]:
    """Return weights and biases of four gates per layer, scales of input and output, the first state, the sequence."""
    rng = np.random.default_rng(0)
    params = {"main": rng.normal(size=(2 * LAYERS, 4 * WIDTH)), "extra": rng.normal(size=(3, WIDTH))}
    state, sequence = rng.normal(size=(2 * LAYERS, WIDTH)), rng.integers(0, 2, (length, WIDTH))
    return {name: p.astype(dtype) for name, p in params.items()}, state.astype(dtype), sequence.astype(dtype)


def written_with(xp: Any, sigmoid: Any) -> Any:
    """Return the model, written with NumPy's names and the library's logistic function ``sigmoid``."""

    def layer(weight: Any, bias: Any, hidden: Any, cell: Any, x: Any) -> Any:
        gates = xp.concatenate([x, hidden, x, hidden]) * weight + bias
        opened = sigmoid(gates[: 3 * WIDTH])
        forget, enter, leave = (opened[i * WIDTH : (i + 1) * WIDTH] for i in range(3))
        cell = cell * forget + enter * xp.tanh(gates[3 * WIDTH :])
        return leave * xp.tanh(cell), cell

    def loss(params: Params, state: Any, sequence: Any) -> Any:
        main, extra = list(params["main"]), list(params["extra"])
        state = list(state)
        total = 0.0
        for now, following in pairwise(sequence):
            x = now * extra[0]
            for i in range(0, 2 * LAYERS, 2):
                state[i], state[i + 1] = layer(main[i], main[i + 1], state[i], state[i + 1], x)
                x = state[i]
            scores = x * extra[1] + extra[2]
            total = total + xp.sum(following * (scores - xp.log(xp.sum(xp.exp(scores)) + 2)))
        return -total / ((len(sequence) - 1) * WIDTH)

    return loss


LOSS = written_with(fnp, fnn.sigmoid)


def in_autograd(params: Params, state: Any, sequence: Any) -> Any:
    import autograd.numpy as anp

    rows = {name: [p[i] for i in range(p.shape[0])] for name, p in params.items()}
    return written_with(anp, lambda x: 1 / (1 + anp.exp(-x)))(rows, state, sequence)


def in_mygrad(params: Params, state: Any, sequence: Any) -> Any:
    import mygrad

    return written_with(mygrad, mygrad.nnet.sigmoid)(params, state, sequence)


def in_torch(params: Params, state: Any, sequence: Any) -> Any:
    import torch

    def layer(weight: Any, bias: Any, hidden: Any, cell: Any, x: Any) -> Any:
        gates = torch.addcmul(bias, torch.cat((x, hidden, x, hidden)), weight)
        forget, enter, leave = torch.sigmoid(gates[: 3 * WIDTH]).chunk(3)
        cell = cell * forget + enter * torch.tanh(gates[3 * WIDTH :])
        return leave * torch.tanh(cell), cell

    main, extra, state = params["main"].unbind(), params["extra"].unbind(), list(state.unbind())
    total = 0.0
    for now, following in pairwise(sequence.unbind()):
        x = now * extra[0]
        for i in range(0, 2 * LAYERS, 2):
            state[i], state[i + 1] = layer(main[i], main[i + 1], state[i], state[i + 1], x)
            x = state[i]
        scores = torch.addcmul(extra[2], x, extra[1])
        total = total + torch.sum(following * (scores - torch.log(torch.sum(torch.exp(scores)) + 2)))
    return -total / ((len(sequence) - 1) * WIDTH)


def in_jax(params: Params, state: Any, sequence: Any) -> Any:
    import jax
    import jax.numpy as jnp

    main, extra = params["main"], params["extra"]

    def step(state: Any, pair: Any) -> Any:
        now, following = pair
        x, states = now * extra[0], []
        for i in range(0, 2 * LAYERS, 2):
            hidden, cell = state[i], state[i + 1]
            gates = jnp.concatenate([x, hidden, x, hidden]) * main[i] + main[i + 1]
            forget, enter, leave = jax.nn.sigmoid(gates[: 3 * WIDTH].reshape(3, WIDTH))
            cell = cell * forget + enter * jnp.tanh(gates[3 * WIDTH :])
            x = leave * jnp.tanh(cell)
            states += [x, cell]
        scores = x * extra[1] + extra[2]
        return jnp.stack(states), jnp.sum(following * (scores - jnp.log(jnp.sum(jnp.exp(scores)) + 2)))

    _, terms = jax.lax.scan(step, state, (sequence[:-1], sequence[1:]))
    return -jnp.sum(terms) / ((len(sequence) - 1) * WIDTH)


def by_hand(params: Params, state: np.ndarray, sequence: np.ndarray) -> Any:
    """Return the gradient by hand, step by step forwards and backwards, by the formulas of one step."""
    ends, count = 3 * WIDTH, (len(sequence) - 1) * WIDTH

    def forward(weight: Any, bias: Any, x: Any, hidden: Any, cell: Any) -> Any:
        joined = np.concatenate([x, hidden, x, hidden])
        gates = joined * weight
        gates += bias
        opened, change = gates[:ends], gates[ends:]
        opened *= 0.5  # sigmoid(x) is (1 + tanh(x / 2)) / 2
        np.tanh(gates, out=gates)
        opened += 1
        opened *= 0.5
        forget, enter, leave = opened.reshape(3, WIDTH)
        following = cell * forget
        following += enter * change
        saturated = np.tanh(following)
        return leave * saturated, following, (joined, gates, cell, saturated)

    def backward(weight: Any, kept: Any, ct_hidden: Any, ct_cell: Any, in_weight: Any, in_bias: Any) -> Any:
        """Add to the gradients of weight and bias; return the cotangents of x, hidden and cell."""
        joined, gates, cell, saturated = kept
        forget, enter, leave, change = gates.reshape(4, WIDTH)
        ct_cell = ct_cell + ct_hidden * leave * (1 - saturated * saturated)
        ct = np.concatenate([ct_cell * cell, ct_cell * change, ct_hidden * saturated, ct_cell * enter])
        slopes = gates * (1 - gates)
        np.subtract(1, change * change, out=slopes[ends:])
        ct *= slopes
        in_bias += ct
        in_weight += ct * joined
        ct *= weight
        by_x, by_hidden, by_x_too, by_hidden_too = ct.reshape(4, WIDTH)
        return by_x + by_x_too, by_hidden + by_hidden_too, ct_cell * forget

    def call() -> Params:
        (w1, b1, w2, b2), (into, out, shift) = params["main"], params["extra"]
        h1, c1, h2, c2 = state
        steps, total = [], 0.0
        for now, following in pairwise(sequence):
            h1, c1, first = forward(w1, b1, now * into, h1, c1)
            h2, c2, second = forward(w2, b2, h1, h2, c2)
            scores = h2 * out
            scores += shift
            powers = np.exp(scores)
            powers_and_two = powers.sum() + 2
            total += following @ scores - following.sum() * math.log(powers_and_two)
            powers *= following.sum() / powers_and_two
            steps.append((first, second, h2, np.subtract(powers, following, out=powers)))
        main, extra = np.zeros_like(params["main"]), np.zeros_like(params["extra"])
        ct_h1, ct_c1, ct_h2, ct_c2 = np.zeros_like(state)
        for now, (first, second, h2, ct) in zip(sequence[-2::-1], reversed(steps), strict=True):
            ct /= count
            extra[1] += ct * h2
            extra[2] += ct
            ct_x, ct_h2, ct_c2 = backward(w2, second, ct_h2 + ct * out, ct_c2, main[2], main[3])
            ct_x, ct_h1, ct_c1 = backward(w1, first, ct_h1 + ct_x, ct_c1, main[0], main[1])
            extra[0] += ct_x * now
        -total / count  # the value, which every library computes too
        return {"main": main, "extra": extra}

    return call


def all_steps_by_hand(params: Params, state: np.ndarray, sequence: np.ndarray) -> Any:
    """Return the gradient by hand for whole sequences: values that need no other step are computed at once."""
    (w1, b1, w2, b2), (into, out, shift) = params["main"], params["extra"]
    steps, count, ends = len(sequence) - 1, (len(sequence) - 1) * WIDTH, 3 * WIDTH
    halves, now, following = np.repeat([0.5, 1.0], [ends, WIDTH]), sequence[:-1], sequence[1:]

    def layer(weight: Any, bias: Any, hidden: Any, cell: Any, inputs: Any) -> Any:
        """Return gates, cells and outputs of a layer at all steps; sigmoid(x) is (1 + tanh(x / 2)) / 2."""
        h, c = np.empty((2, steps + 1, WIDTH))
        h[0], c[0] = hidden, cell
        gates = np.zeros((steps, 4, WIDTH))
        gates[:, ::2] = inputs[:, None]
        gates = gates.reshape(steps, -1)
        gates *= weight
        gates += bias
        gates *= halves
        parts, saturated = gates.reshape(steps, 4, WIDTH), np.empty((steps, WIDTH))
        own = (weight * halves).reshape(4, WIDTH)[1::2]
        for t in range(steps):
            g = parts[t]
            g[1::2] += own * h[t]
            np.tanh(g, out=g)
            g[:3] += 1
            g[:3] *= 0.5
            np.multiply(c[t], g[0], out=c[t + 1])
            c[t + 1] += g[1] * g[3]
            np.tanh(c[t + 1], out=saturated[t])
            np.multiply(g[2], saturated[t], out=h[t + 1])
        return parts, h, c, saturated

    def pull(weight: Any, inputs: Any, kept: Any, ct: Any) -> Any:
        """Return cotangents of weight, bias and inputs, from those of the outputs at all steps."""
        parts, h, c, saturated = kept
        slopes = parts * (1 - parts)
        slopes[:, 3] = 1 - parts[:, 3] ** 2
        to_cell = slopes[:, [0, 1, 3]] * np.stack([c[:-1], parts[:, 3], parts[:, 1]], axis=1)
        to_leave, to_saturated = slopes[:, 2] * saturated, parts[:, 2] * (1 - saturated**2)
        found, into_cell = np.empty_like(parts), np.zeros(WIDTH)
        w_enter, w_change = weight.reshape(4, WIDTH)[1::2]
        for t in range(steps - 1, -1, -1):
            into_cell += ct[t] * to_saturated[t]
            np.multiply(to_cell[t], into_cell, out=to_cell[t])
            np.multiply(ct[t], to_leave[t], out=found[t, 2])
            if t:
                ct[t - 1] += to_cell[t, 1] * w_enter
                ct[t - 1] += to_cell[t, 2] * w_change
            into_cell *= parts[t, 0]
        found[:, [0, 1, 3]] = to_cell
        joined = np.empty_like(found)
        joined[:, ::2], joined[:, 1::2] = inputs[:, None], h[:-1, None]
        in_weight, in_bias = np.einsum("tgi,tgi->gi", found, joined), found.sum(axis=0)
        by_input = weight.reshape(4, WIDTH)
        return in_weight.ravel(), in_bias.ravel(), found[:, 0] * by_input[0] + found[:, 2] * by_input[2]

    def call() -> Params:
        x0 = now * into
        first = layer(w1, b1, state[0], state[1], x0)
        x1 = first[1][1:]
        second = layer(w2, b2, state[2], state[3], x1)
        x2 = second[1][1:]
        scores = x2 * out + shift
        powers = np.exp(scores)
        totals = powers.sum(axis=1, keepdims=True) + 2
        -np.vdot(following, scores - np.log(totals)) / count  # the value, which every library computes too
        ct = following - powers / totals * following.sum(axis=1, keepdims=True)
        ct *= -1 / count
        in_extra = [None, np.einsum("ti,ti->i", ct, x2), ct.sum(axis=0)]
        in_w2, in_b2, ct = pull(w2, x1, second, ct * out)
        in_w1, in_b1, ct = pull(w1, x0, first, ct)
        in_extra[0] = np.einsum("ti,ti->i", ct, now)
        return {"main": np.stack([in_w1, in_b1, in_w2, in_b2]), "extra": np.stack(in_extra)}

    return call


def language_model(length: int) -> Program:
    others = {BY_HAND: by_hand, f"{BY_HAND}, all steps at once": all_steps_by_hand}
    return Program(
        name=f"LSTM, 2 layers, 14 features, length {length:,}",
        args=lambda dtype: problem(length, dtype),
        **of_losses(LOSS, in_torch, in_autograd, in_mygrad, in_jax, others),
        bars={**LESS, BY_HAND: 3.0},
        small=lambda dtype: problem(3, dtype),
    )
