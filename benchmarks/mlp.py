"""Networks with large matrices, where the library should cost next to nothing compared with the arithmetic."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from programs import BY_HAND, LESS, Program, of_losses

import funcgrad.nn as fnn
import funcgrad.numpy as fnp
from funcgrad import grad, vmap

__all__ = ["programs"]

Params = dict[str, Any]


def programs(quick: bool) -> list[Program]:
    """Return a network trained on a batch, and the gradients of single examples by ``vmap``."""
    if quick:
        return [network(32, (20, 16, 16, 10)), per_example(16)]
    return [network(128, (784, 512, 512, 10)), per_example(256)]


def problem(batch: int, widths: tuple[int, ...], dtype: Any) -> tuple[Params, np.ndarray, np.ndarray]:
    """Return parameters, inputs and class numbers."""
    rng = np.random.default_rng(0)
    params = {}
    for place, (above, below) in enumerate(pairwise(widths), 1):
        params[f"w{place}"] = (rng.standard_normal((above, below)) * above**-0.5).astype(dtype)
        params[f"b{place}"] = (rng.standard_normal(below) * 0.1).astype(dtype)
    inputs = rng.standard_normal((batch, widths[0])).astype(dtype)
    return params, inputs, rng.integers(0, widths[-1], batch)


def loss(params: Params, x: Any, labels: Any) -> Any:
    """Return the softmax cross-entropy of three layers, written idiomatically for funcgrad."""
    hidden = fnn.relu(fnn.linear(x, params["w1"], params["b1"]))
    hidden = fnn.relu(fnn.linear(hidden, params["w2"], params["b2"]))
    scores = fnn.linear(hidden, params["w3"], params["b3"])
    return fnp.mean(fnn.softmax_cross_entropy_with_integer_labels(scores, labels))


def in_torch(params: Params, x: Any, labels: Any) -> Any:
    import torch

    hidden = torch.relu(torch.addmm(params["b1"], x, params["w1"]))
    hidden = torch.relu(torch.addmm(params["b2"], hidden, params["w2"]))
    return torch.nn.functional.cross_entropy(torch.addmm(params["b3"], hidden, params["w3"]), labels)


def in_autograd(params: Params, x: Any, labels: Any) -> Any:
    import autograd.numpy as anp
    from autograd.scipy.special import logsumexp

    hidden = anp.maximum(x @ params["w1"] + params["b1"], 0)
    hidden = anp.maximum(hidden @ params["w2"] + params["b2"], 0)
    scores = hidden @ params["w3"] + params["b3"]
    return anp.mean(logsumexp(scores, axis=1) - scores[np.arange(len(labels)), labels])


def in_mygrad(params: Params, x: Any, labels: Any) -> Any:
    from mygrad import nnet

    hidden = nnet.relu(x @ params["w1"] + params["b1"])
    hidden = nnet.relu(hidden @ params["w2"] + params["b2"])
    return nnet.softmax_crossentropy(hidden @ params["w3"] + params["b3"], labels)


def in_jax(params: Params, x: Any, labels: Any) -> Any:
    import jax
    import jax.numpy as jnp

    hidden = jax.nn.relu(x @ params["w1"] + params["b1"])
    hidden = jax.nn.relu(hidden @ params["w2"] + params["b2"])
    scores = jax.nn.log_softmax(hidden @ params["w3"] + params["b3"])
    return -jnp.mean(scores[jnp.arange(len(labels)), labels])


def by_hand(params: Params, x: np.ndarray, labels: np.ndarray) -> Any:
    """Return the gradient by hand, by formulas and in place where possible."""
    rows, share = np.arange(len(x)), x.dtype.type(1 / len(x))

    def call() -> Params:
        layers = [x]
        for place in ("1", "2"):
            hidden = layers[-1] @ params["w" + place]
            hidden += params["b" + place]
            layers.append(np.maximum(hidden, 0, out=hidden))
        scores = layers[-1] @ params["w3"]
        scores += params["b3"]
        scores -= scores.max(axis=1, keepdims=True)
        chosen = scores[rows, labels]
        ct = np.exp(scores, out=scores)
        total = ct.sum(axis=1, keepdims=True)
        np.mean(np.log(total[:, 0]) - chosen)  # the value, which every library computes too
        ct /= total
        ct[rows, labels] -= 1
        ct *= share
        gradient = {}
        for place in ("3", "2", "1"):
            hidden = layers.pop()
            gradient["w" + place], gradient["b" + place] = hidden.T @ ct, ct.sum(axis=0)
            if layers:
                ct = ct @ params["w" + place].T
                ct *= hidden > 0
        return gradient

    return call


def network(batch: int, widths: tuple[int, ...]) -> Program:
    return Program(
        name=f"MLP {'-'.join(map(str, widths))}, batch {batch}, float32",
        args=lambda dtype: problem(batch, widths, dtype),
        **of_losses(loss, in_torch, in_autograd, in_mygrad, in_jax, {BY_HAND: by_hand}),
        bars={**LESS, BY_HAND: 1.1},
        dtype=np.float32,
        small=lambda dtype: problem(2, (4, 4, 4, 3), dtype),
    )


# The gradient of each example, without a loop.


def example_loss(params: Params, x: Any, label: Any) -> Any:
    hidden = fnn.relu(x @ params["w1"] + params["b1"])
    return fnn.softmax_cross_entropy_with_integer_labels(hidden @ params["w2"] + params["b2"], label)


def each_funcgrad(params: Params, x: np.ndarray, labels: np.ndarray) -> Any:
    gradients = vmap(grad(example_loss), in_axes=(None, 0, 0))
    return lambda: gradients(params, x, labels)


def each_in_a_loop(params: Params, x: np.ndarray, labels: np.ndarray) -> Any:
    gradient = grad(example_loss)

    def call() -> Params:
        found = [gradient(params, *example) for example in zip(x, labels, strict=True)]
        return {name: np.stack([one[name] for one in found]) for name in params}

    return call


def each_torch(params: Params, x: np.ndarray, labels: np.ndarray) -> Any:
    import torch

    def one(params: Params, x: Any, label: Any) -> Any:
        hidden = torch.relu(x @ params["w1"] + params["b1"])
        return torch.nn.functional.cross_entropy(hidden @ params["w2"] + params["b2"], label)

    gradients = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, 0))
    tensors = {name: torch.from_numpy(p) for name, p in params.items()}
    inputs, classes = torch.from_numpy(x), torch.from_numpy(labels)
    return lambda: gradients(tensors, inputs, classes)


def each_jax(params: Params, x: np.ndarray, labels: np.ndarray) -> Any:
    import jax

    def one(params: Params, x: Any, label: Any) -> Any:
        hidden = jax.nn.relu(x @ params["w1"] + params["b1"])
        return -jax.nn.log_softmax(hidden @ params["w2"] + params["b2"])[label]

    gradients = jax.jit(jax.vmap(jax.grad(one), in_axes=(None, 0, 0)))
    return lambda: gradients(params, x, labels)


def per_example(batch: int) -> Program:
    widths = (64, 32, 10)
    return Program(
        name=f"gradients per example, MLP {'-'.join(map(str, widths))}, batch {batch}, float32",
        args=lambda dtype: problem(batch, widths, dtype),
        libraries={"funcgrad": each_funcgrad, "torch": each_torch, "loop": each_in_a_loop},
        reference=each_jax,
        bars={"torch": 1.0, "loop": 0.1},
        dtype=np.float32,
        small=lambda dtype: problem(2, (4, 4, 3), dtype),
    )
