"""Rows for the functions of neural networks. JAX has them in several modules; NumPy has none."""

import importlib

import numpy as np

from operations.spec import Sample, array, op, positive, spread

S = Sample
X = array(3)


def jax(name):
    """Return a function of JAX or optax that is looked up when it is called."""
    module, _, function = name.rpartition(".")
    return lambda *args, **kwargs: getattr(importlib.import_module(module), function)(*args, **kwargs)


def row(name, *samples, **options):
    return op(f"nn.{name}", *samples, numpy=None, **options)


def lax_pool(name, start):
    """Return a pool of ``jax.lax.reduce_window`` over the last two axes."""

    def pooled(x, window, strides, padding="VALID"):
        lax = importlib.import_module("jax.lax")
        front = (1,) * (x.ndim - 2)
        return lax.reduce_window(x, start, getattr(lax, name), (*front, *window), (*front, *strides), padding)

    return pooled


def mean_pool(x, window, strides, padding):
    jnp = importlib.import_module("jax.numpy")
    pool = lax_pool("add", 0.0)
    return pool(x, window, strides, padding) / pool(jnp.ones_like(x), window, strides, padding)


def lax_conv(lhs, rhs, strides, padding, lhs_dilation=None, rhs_dilation=None, *rest):
    return jax("jax.lax.conv_general_dilated")(lhs, rhs, strides, padding, lhs_dilation, rhs_dilation, *rest)


def conv(lhs, rhs, *static):
    return S((array(*lhs), array(*rhs, seed=1), *static), unbatched=tuple(range(2, 2 + len(static))))


def jax_segment(name):
    return lambda x, ids, n: jax(f"jax.ops.{name}")(x, ids, n, unique_indices=False)


def segment_means(x, ids, n):
    jnp = importlib.import_module("jax.numpy")
    total = jax("jax.ops.segment_sum")
    return total(x, ids, n) / jnp.maximum(total(jnp.ones(ids.shape), ids, n), 1)[:, None]


def attend(q, k, v, bias):
    """Compute causal attention of as many queries as keys, with one key per two heads, by definition."""
    j = importlib.import_module("jax.numpy")
    logits = j.einsum("btnh,bsh->bnts", q, k[:, :, 0]) * 0.7 + bias
    logits = j.where(j.tril(j.ones(logits.shape[-2:], bool)), logits, -j.inf)
    return j.einsum("bnts,bsh->btnh", importlib.import_module("jax.nn").softmax(logits), v[:, :, 0])


def normed(x, scale, bias):
    j = importlib.import_module("jax.numpy")
    return (x - x.mean(-1, keepdims=True)) / j.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias


def rms(x, scale):
    j = importlib.import_module("jax.numpy")
    return x / j.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * scale


def grouped(x, groups):
    flat = x.reshape(x.shape[0], groups, -1)
    return normed(flat, 1.0, 0.0).reshape(x.shape)


IDS = np.array([1, 0, 1])
MASK = np.array([True, False, True])
ROWS = spread(3, 2)
LABELS = positive(2, 3, seed=1, high=0.9)

OPS = [
    *[
        row(name, (X,))
        for name in (
            "relu",
            "relu6",
            "sigmoid",
            "softplus",
            "sparse_plus",
            "sparse_sigmoid",
            "soft_sign",
            "silu",
            "mish",
            "log_sigmoid",
            "leaky_relu",
            "hard_sigmoid",
            "hard_silu",
            "hard_tanh",
            "tanh",
            "elu",
            "celu",
            "selu",
            "identity",
            "squareplus",
        )
    ],
    row("gelu", S((X,), {"approximate": True}), S((X,), {"approximate": False})),
    row("glu", (array(4),)),
    row(
        "linear",
        (array(2, 3), array(3, 2, seed=1), array(2, seed=2)),
        (array(2, 2, 3), array(3, 2, seed=1), array(2, 1, seed=2)),
        (array(3), array(3, 2, seed=1)),
        jax=lambda x, kernel, bias=0.0: x @ kernel + bias,
    ),
    row("log1mexp", (positive(3),)),
    row("logmeanexp", (X,)),
    row("logsumexp", (X,)),
    row("softmax", (array(2, 3),), S((array(2, 3, 2), (0, 2)), unbatched=(1,))),
    row("log_softmax", (array(2, 3),)),
    row("one_hot", S((np.array([0, 2]), 3), unbatched=(1,)), differentiable=False, jax=None, reason="of integers"),
    row(
        "standardize", (array(2, 3),), S((array(3, 2, 2), (0, 2)), unbatched=(1,)), S((array(4), None), unbatched=(1,))
    ),
    row(
        "dot_product_attention",
        S((array(1, 2, 2, 2), array(1, 2, 1, 2, seed=1), array(1, 2, 1, 2, seed=2), array(1, 2, 2, 2, seed=3))),
        fun=lambda q, k, v, b: importlib.import_module("funcgrad.nn").dot_product_attention(
            q, k, v, b, is_causal=True, scale=0.7
        ),
        jax=attend,
    ),
    row(
        "conv",
        conv((1, 2, 4), (2, 1, 2), (2,), [(1, 1)], None, None, None, 2),
        conv((1, 2, 3, 1), (2, 1, 1, 1), (1, 1), [(1, 0), (0, 1)], (2, 1), (1, 2), ("NHWC", "HWIO", "NHWC")),
        jax=lax_conv,
    ),
    row("conv_transpose", conv((1, 2, 1), (3, 1, 2), (2,), "SAME"), jax=jax("jax.lax.conv_transpose")),
    row(
        "max_pool",
        S((spread(1, 3, 3), (2, 2), (1, 1), "SAME"), unbatched=(1, 2, 3)),
        jax=lax_pool("max", -np.inf),
        order=1,
        reason="JAX has no second derivative of it",
    ),
    row(
        "min_pool",
        S((spread(4), (2,), (2,)), unbatched=(1, 2)),
        jax=None,
        reason="max_pool of the negative",
    ),
    row(
        "avg_pool",
        S((array(1, 3, 2), (2, 2), (2, 1), "SAME", False), unbatched=(1, 2, 3, 4)),
        jax=lambda *args: mean_pool(*args[:-1]),
    ),
    *[
        row(name, S((ROWS, IDS, 2), unbatched=(2,)), jax=jax_segment(name))
        for name in ("segment_sum", "segment_max", "segment_min")
    ],
    row("segment_prod", S((ROWS, IDS, 3), unbatched=(2,)), jax=None, reason="JAX has no derivative of it"),
    row("segment_mean", S((ROWS, IDS, 3), unbatched=(2,)), jax=segment_means),
    *[
        row(name, (X, array(3, seed=1)), jax=jax(f"optax.losses.{name}"))
        for name in ("squared_error", "l2_loss", "huber_loss", "log_cosh", "sigmoid_binary_cross_entropy")
    ],
    row("hinge_loss", S((X, np.array([1.0, -1.0, 1.0])), frozen=(1,)), jax=jax("optax.losses.hinge_loss")),
    row("perceptron_loss", S((X, np.array([1.0, -1.0, 1.0])), frozen=(1,)), jax=jax("optax.losses.perceptron_loss")),
    row(
        "softmax_cross_entropy",
        (array(2, 3), LABELS),
        S((array(2, 3), LABELS, 0), unbatched=(2,)),
        S((array(2, 3, 2), positive(3, 2), (1, 2)), unbatched=(2,)),
        S((array(2, 3, 2), positive(2, 3, 2), (2, 0)), unbatched=(2,)),
        jax=jax("optax.losses.softmax_cross_entropy"),
    ),
    row(
        "softmax_cross_entropy_with_integer_labels",
        (array(2, 3), np.array([2, 0])),
        S((array(3, 2), np.array([2, 0]), 0), unbatched=(2,)),
        S((array(2, 3, 2), np.array([[1, 0, 1], [0, 0, 1]]))),
        S((array(3), np.array(1))),
        jax=jax("optax.losses.softmax_cross_entropy_with_integer_labels"),
    ),
    row("kl_divergence", (array(2, 3), LABELS), jax=jax("optax.losses.kl_divergence")),
    row(
        "kl_divergence_with_log_targets",
        (array(2, 3), array(2, 3, seed=1)),
        jax=jax("optax.losses.kl_divergence_with_log_targets"),
    ),
    row("cosine_similarity", (X, array(3, seed=1)), jax=jax("optax.losses.cosine_similarity")),
    row("cosine_distance", (X, array(3, seed=1)), jax=jax("optax.losses.cosine_distance")),
    row("smooth_labels", S((X, 0.1), unbatched=(1,)), jax=jax("optax.losses.smooth_labels")),
    row("layer_norm", (array(2, 3), positive(3), array(3, seed=1)), jax=normed),
    row("rms_norm", (array(2, 3), positive(3)), jax=rms),
    row(
        "batch_norm",
        S((array(3, 2), positive(2), array(2, seed=1))),
        jax=lambda x, scale, bias: normed(x.T, scale[:, None], bias[:, None]).T,
    ),
    row("group_norm", S((array(1, 2, 3), 2), unbatched=(1,)), jax=grouped),
    row(
        "dropout",
        S((X, 0.5, MASK), unbatched=(1,)),
        jax=lambda x, rate, keep: importlib.import_module("jax.numpy").where(keep, x / (1 - rate), 0.0),
    ),
]
