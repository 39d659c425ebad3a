"""Network of two convolutions with 3 x 3 kernels and 8 features on images of 28 x 28 points."""

from __future__ import annotations

from typing import Any

import numpy as np
from programs import BY_HAND, LESS, Program, of_losses

import funcgrad.nn as fnn
import funcgrad.numpy as fnp

__all__ = ["programs"]

FEATURES, KERNEL, CLASSES = 8, 3, 10
AXES = ([2, 3], [2, 3])
Params = dict[str, Any]


def programs(quick: bool) -> list[Program]:
    return [network(*((4, 8) if quick else (64, 28)))]


def problem(batch: int, side: int, dtype: Any) -> tuple[Params, np.ndarray, np.ndarray]:
    """Return kernels (output, input, row, column) and weights; images (batch, input, row, column); class numbers."""
    rng = np.random.default_rng(0)
    params = {
        "first": rng.standard_normal((FEATURES, 1, KERNEL, KERNEL)) / KERNEL,
        "second": rng.standard_normal((FEATURES, FEATURES, KERNEL, KERNEL)) / (KERNEL * FEATURES**0.5),
        "dense": rng.standard_normal((FEATURES * side * side, CLASSES)) / (side * FEATURES**0.5),
    }
    images = rng.standard_normal((batch, 1, side, side)).astype(dtype)
    return {name: p.astype(dtype) for name, p in params.items()}, images, rng.integers(0, CLASSES, batch)


def loss(params: Params, images: Any, labels: Any) -> Any:
    """Return the loss, written idiomatically for funcgrad."""
    x = images
    for name in ("first", "second"):
        x = fnn.relu(fnn.conv(x, params[name], padding="SAME"))
    scores = x.reshape(len(x), -1) @ params["dense"]
    return fnp.mean(fnn.softmax_cross_entropy_with_integer_labels(scores, labels))


def in_torch(params: Params, images: Any, labels: Any) -> Any:
    import torch
    from torch.nn import functional

    x = images
    for name in ("first", "second"):
        x = torch.relu(functional.conv2d(x, params[name], padding="same"))
    return functional.cross_entropy(x.flatten(1) @ params["dense"], labels)


def in_autograd(params: Params, images: Any, labels: Any) -> Any:
    """Return the gradient by autograd, whose convolution is SciPy's, so the kernel is flipped."""
    import autograd.numpy as anp
    from autograd.scipy.signal import convolve
    from autograd.scipy.special import logsumexp

    x = images
    for name in ("first", "second"):
        x = anp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), "constant")
        x = convolve(x, params[name][:, :, ::-1, ::-1], axes=AXES, dot_axes=([1], [1]), mode="valid")
        x = anp.maximum(x, 0)
    scores = anp.reshape(x, (len(images), -1)) @ params["dense"]
    return anp.mean(logsumexp(scores, axis=1) - scores[np.arange(len(labels)), labels])


def in_mygrad(params: Params, images: Any, labels: Any) -> Any:
    from mygrad import nnet

    x = images
    for name in ("first", "second"):
        x = nnet.relu(nnet.conv_nd(x, params[name], stride=1, padding=1))
    return nnet.softmax_crossentropy(x.reshape(len(images), -1) @ params["dense"], labels)


def in_jax(params: Params, images: Any, labels: Any) -> Any:
    import jax
    import jax.numpy as jnp

    x = images
    for name in ("first", "second"):
        x = jax.nn.relu(jax.lax.conv(x, params[name], (1, 1), "SAME"))
    scores = jax.nn.log_softmax(x.reshape(len(x), -1) @ params["dense"])
    return -jnp.mean(scores[jnp.arange(len(labels)), labels])


def windows(padded: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Return the points of each window as a column, for each image: (images, features x 9, points)."""
    rows, columns = out.shape[-2:]
    for i in range(KERNEL):
        for j in range(KERNEL):
            out[:, :, i, j] = padded[:, :, i : i + rows, j : j + columns]
    return out.reshape(len(padded), -1, rows * columns)


def add_windows(ct: np.ndarray, padded: np.ndarray) -> None:
    """Compute the transpose of ``windows``."""
    (rows, columns), padded[...] = ct.shape[-2:], 0
    for i in range(KERNEL):
        for j in range(KERNEL):
            padded[:, :, i : i + rows, j : j + columns] += ct[:, :, i, j]


def by_hand(params: Params, images: np.ndarray, labels: np.ndarray) -> Any:
    """Return the gradient by hand, for two images at a time, which fit the cache; windows are recomputed backwards."""
    count, size, (rows, columns), dtype = len(images), 2, images.shape[2:], images.dtype
    chosen, share = np.arange(count), dtype.type(1 / count)
    first, second = (params[name].reshape(FEATURES, -1) for name in ("first", "second"))
    padded = np.zeros((count, 1, rows + 2, columns + 2), dtype)
    padded[:, :, 1:-1, 1:-1] = images
    pairs = [slice(start, start + size) for start in range(0, count, size)]

    def forward(narrow: Any, wide: Any) -> Any:
        hidden = np.zeros((count, FEATURES, rows + 2, columns + 2), dtype)
        top = np.empty((count, FEATURES, rows * columns), dtype)
        for pair in pairs:
            under = (first @ windows(padded[pair], narrow)).reshape(size, FEATURES, rows, columns)
            np.maximum(under, 0, out=hidden[pair, :, 1:-1, 1:-1])
            np.matmul(second, windows(hidden[pair], wide), out=top[pair])
        return hidden, np.maximum(top, 0, out=top)

    def backward(ct: Any, hidden: Any, narrow: Any, wide: Any) -> Any:
        in_first, in_second = np.zeros_like(first), np.zeros_like(second)
        back = np.empty((size, *hidden.shape[1:]), dtype)
        for pair in pairs:
            in_second += (ct[pair] @ windows(hidden[pair], wide).swapaxes(1, 2)).sum(axis=0)
            add_windows((second.T @ ct[pair]).reshape(wide.shape), back)
            under = back[:, :, 1:-1, 1:-1] * (hidden[pair, :, 1:-1, 1:-1] > 0)
            into = windows(padded[pair], narrow).swapaxes(1, 2)
            in_first += (under.reshape(size, FEATURES, -1) @ into).sum(axis=0)
        return in_first.reshape(params["first"].shape), in_second.reshape(params["second"].shape)

    def call() -> Params:
        narrow, wide = (np.empty((size, inputs, KERNEL, KERNEL, rows, columns), dtype) for inputs in (1, FEATURES))
        hidden, top = forward(narrow, wide)
        flat = top.reshape(count, -1)
        scores = flat @ params["dense"]
        scores -= scores.max(axis=1, keepdims=True)
        of_labels = scores[chosen, labels]
        ct = np.exp(scores, out=scores)
        total = ct.sum(axis=1, keepdims=True)
        np.mean(np.log(total[:, 0]) - of_labels)  # the value, which every library computes too
        ct /= total
        ct[chosen, labels] -= 1
        ct *= share
        in_dense = flat.T @ ct
        ct = (ct @ params["dense"].T).reshape(top.shape)
        ct *= top > 0
        in_first, in_second = backward(ct, hidden, narrow, wide)
        return {"first": in_first, "second": in_second, "dense": in_dense}

    return call


def network(batch: int, side: int) -> Program:
    return Program(
        name=f"convolutional network, 3x3, {side}x{side}x{FEATURES}, batch {batch}, float32",
        args=lambda dtype: problem(batch, side, dtype),
        **of_losses(loss, in_torch, in_autograd, in_mygrad, in_jax, {BY_HAND: by_hand}),
        bars={**LESS, BY_HAND: 1.3},
        dtype=np.float32,
        small=lambda dtype: problem(2, 4, dtype),
    )
