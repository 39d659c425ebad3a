"""A network with real matrices: here the library should cost next to nothing beside the arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from timing import Claim, check_equal, interleave, microseconds, slower

import funcgrad.numpy as fnp
from funcgrad import grad

__all__ = ["network"]

BATCH, INPUTS, HIDDEN, CLASSES = 128, 784, 512, 10
Params = dict[str, Any]


def problem() -> tuple[Params, np.ndarray, np.ndarray]:
    """Parameters, inputs and one-hot labels, all float32."""
    rng = np.random.default_rng(0)

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    params = {
        "w1": normal(INPUTS, HIDDEN, scale=INPUTS**-0.5),
        "b1": normal(HIDDEN, scale=0.1),
        "w2": normal(HIDDEN, CLASSES, scale=HIDDEN**-0.5),
        "b2": normal(CLASSES, scale=0.1),
    }
    labels = np.eye(CLASSES, dtype=np.float32)[rng.integers(0, CLASSES, BATCH)]
    return params, normal(BATCH, INPUTS), labels


def loss(params: Params, x: Any, labels: Any) -> Any:
    """Softmax cross-entropy of two layers, as one would write it for funcgrad."""
    hidden = fnp.tanh(x @ params["w1"] + params["b1"])
    return -fnp.sum(labels * fnp.log_softmax(hidden @ params["w2"] + params["b2"])) / BATCH


def by_hand(params: Params, x: np.ndarray, labels: np.ndarray) -> Params:
    """The same gradient by somebody who knows the formulas and works in place where that is possible."""
    hidden = x @ params["w1"]
    hidden += params["b1"]
    np.tanh(hidden, out=hidden)
    scores = hidden @ params["w2"]
    scores += params["b2"]
    scores -= scores.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(scores).sum(axis=1, keepdims=True))
    scores -= log_sum
    np.sum(labels * scores) / -BATCH  # the value, which every library computes on the way
    ct = np.exp(scores, out=scores)
    ct -= labels
    ct *= np.float32(1 / BATCH)
    gradient = {"w2": hidden.T @ ct, "b2": ct.sum(axis=0)}
    ct = ct @ params["w2"].T
    hidden *= hidden
    np.subtract(np.float32(1), hidden, out=hidden)
    ct *= hidden
    gradient["w1"], gradient["b1"] = x.T @ ct, ct.sum(axis=0)
    return gradient


def in_torch(params: Params, x: np.ndarray, labels: np.ndarray) -> Callable[[], Params]:
    import torch

    leaves = {name: torch.from_numpy(p).requires_grad_() for name, p in params.items()}
    inputs, targets = torch.from_numpy(x), torch.from_numpy(labels)

    def gradient() -> Params:
        hidden = torch.tanh(inputs @ leaves["w1"] + leaves["b1"])
        scores = hidden @ leaves["w2"] + leaves["b2"]
        value = torch.nn.functional.cross_entropy(scores, targets)
        return dict(zip(leaves, torch.autograd.grad(value, list(leaves.values())), strict=True))

    return gradient


def network(quick: bool) -> list[Claim]:
    """The gradient of a loss of a 784-512-10 network on 128 examples."""
    params, x, labels = problem()
    gradient = grad(loss)
    torch_gradient = in_torch(params, x, labels)
    # float32 products of another order differ in the last places; the formulas are compared in float64.
    double = [{k: np.float64(v) for k, v in params.items()}, np.float64(x), np.float64(labels)]
    check_equal(gradient(*double), {"by hand": by_hand(*double), "torch": in_torch(*double)()})
    check_equal(gradient(params, x, labels), {"by hand": by_hand(params, x, labels)}, tolerance=1e-4)
    assert all(g.dtype == np.float32 for g in gradient(params, x, labels).values())
    what = f"gradient, network {INPUTS}-{HIDDEN}-{CLASSES}, batch {BATCH}, float32"
    claims = []
    peers = (("NumPy by hand", lambda: by_hand(params, x, labels), 1.15), ("torch", torch_gradient, None))
    for name, peer, bar in peers:  # pair by pair: what a third leaves in the caches belongs to neither
        pair = {"funcgrad": lambda: gradient(params, x, labels), name: peer}
        times = interleave(pair, rounds=5 if quick else 151)
        claims.append(slower(what, "", microseconds(times, "funcgrad"), name, microseconds(times, name), bar))
    return claims
