"""Activation functions and the softmax family, with the names, arguments and conventions of ``jax.nn``.

Derivatives at kinks are those of ``jax.nn``: 0 for ``relu(0)``, 1 for ``leaky_relu(0)``, ``elu(0)`` and
``hard_tanh(1)``. float16 and bfloat16 are computed in float32 and converted back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.errors import ShapeError
from funcgrad.kinds.linear import astype, reshape
from funcgrad.nn.narrow import floating, on_floats, restored, widened
from funcgrad.nn.operations import activations as prim
from funcgrad.nn.operations.activations import gelu_by_tanh, gelu_exact
from funcgrad.numpy.axes import normalize_axes, normalize_axis
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.function_tables import docstring, set_identity
from funcgrad.numpy.reducing import as_scalar, count_of_elements
from funcgrad.numpy.reductions import mean as mean_of
from funcgrad.numpy.special import log_softmax, logsumexp, softmax
from funcgrad.primitives import normalising
from funcgrad.primitives.arithmetic import absolute, maximum, minimum, square
from funcgrad.primitives.comparison import equal, greater, greater_equal, less, less_equal, logical_or, where
from funcgrad.primitives.elementwise import expm1, hypot, log, logistic, sqrt
from funcgrad.primitives.elementwise import tanh as hyperbolic
from funcgrad.primitives.indexing import getitem
from funcgrad.primitives.shaping import cast
from funcgrad.typing import Array, ArrayLike, Axes

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "leaky_relu",
    "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "mish", "one_hot", "relu", "relu6", "selu",
    "sigmoid", "silu", "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "standardize",
    "swish", "tanh",
]  # fmt: skip

_NUMBERS = frozenset((int, float))
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _elu(x: Array, alpha: ArrayLike) -> Array:
    positive = greater(x, 0)
    return where(positive, x, as_value(alpha) * expm1(where(positive, 0.0, x)))


def _activation(
    name: str, compute: Callable[[Array], Array], text: str, example: str, shows: str
) -> Callable[[ArrayLike], Array]:
    """Make a public function of one array from ``compute``, a function of floating-point arrays."""
    made: Any = set_identity(on_floats(compute), __name__, name, docstring(text, example, shows))
    made.__annotations__ = {"x": "ArrayLike", "return": "Array"}
    made.__signature__ = Signature([_X], return_annotation="Array")
    dressed: Callable[[ArrayLike], Array] = made
    return dressed


_X = Parameter("x", Parameter.POSITIONAL_OR_KEYWORD, annotation="ArrayLike")

# fmt: off
relu6 = _activation("relu6", prim.relu6, "Compute ``minimum(maximum(x, 0), 6)``. The derivative at 0 and at 6 is 0.",
    "fnn.relu6([-1.0, 2.0, 7.0])", "array([0., 2., 6.])")
sigmoid = _activation("sigmoid", logistic, "Compute the logistic function ``1 / (1 + exp(-x))`` without overflow.",
    "fnn.sigmoid([-1000.0, 0.0])", "array([0. , 0.5])")
softplus = _activation("softplus", prim.softplus, "Compute ``log(1 + exp(x))`` without overflow.",
    "fnn.softplus([-1000.0, 1000.0])", "array([   0., 1000.])")
sparse_sigmoid = _activation("sparse_sigmoid", lambda x: 0.5 * minimum(maximum(x + 1.0, 0.0), 2.0),
    """Compute ``(x + 1) / 2``, clipped to [0, 1].

    The derivative at -1 and 1 is 1/4, half of the slope between them, as for ``clip``.""",
    "fnn.sparse_sigmoid([-2.0, 0.0, 2.0])", "array([0. , 0.5, 1. ])")
soft_sign = _activation("soft_sign", lambda x: x / (absolute(x) + 1), "Compute ``x / (abs(x) + 1)``.",
    "fnn.soft_sign([-1.0, 3.0])", "array([-0.5 ,  0.75])")
silu = _activation("silu", lambda x: x * logistic(x), "Compute ``x * sigmoid(x)``, also called ``swish``.",
    "fnn.silu([0.0, 100.0])", "array([  0., 100.])")
swish = silu
mish = _activation("mish", lambda x: x * hyperbolic(prim.softplus(x)), "Compute ``x * tanh(softplus(x))``.",
    "fnn.mish([0.0, 100.0])", "array([  0., 100.])")
log_sigmoid = _activation("log_sigmoid", lambda x: -prim.softplus(-x),
    "Compute ``log(sigmoid(x))``, also where ``sigmoid`` underflows.", "fnn.log_sigmoid([-1000.0, 1000.0])",
    "array([-1000.,    -0.])")
hard_sigmoid = _activation("hard_sigmoid", lambda x: prim.relu6(x + 3.0) / 6.0,
    "Compute ``relu6(x + 3) / 6``. The derivative at -3 and 3 is 0.", "fnn.hard_sigmoid([-4.0, 0.0, 4.0])",
    "array([0. , 0.5, 1. ])")
hard_silu = _activation("hard_silu", lambda x: x * (prim.relu6(x + 3.0) / 6.0),
    "Compute ``x * hard_sigmoid(x)``, also called ``hard_swish``.", "fnn.hard_silu([-4.0, 4.0])", "array([-0.,  4.])")
hard_swish = hard_silu
hard_tanh = _activation("hard_tanh", lambda x: where(greater(x, 1), 1.0, where(less(x, -1), -1.0, x)),
    "Clip ``x`` to [-1, 1]. The derivative at -1 and 1 is 1.",
    "fnn.hard_tanh([-2.0, 0.5, 2.0])", "array([-1. ,  0.5,  1. ])")
selu = _activation("selu", lambda x: _SELU_SCALE * _elu(x, _SELU_ALPHA),
    """Compute a scaled ``elu`` whose two constants keep mean and variance from layer to layer.

    Klambauer et al., Self-normalizing neural networks, 2017, equation 2.""", "fnn.selu([-1000.0, 1.0]).round(6)",
    "array([-1.758099,  1.050701])")
log1mexp = _activation("log1mexp", prim.log1mexp,
    "Compute ``log(1 - exp(-x))`` of positive ``x`` without cancellation; the result is NaN for negative ``x``.",
    "fnn.log1mexp([1e-20, 1000.0]).round(6)", "array([-46.051702,  -0.      ])")
# fmt: on


def identity(x: ArrayLike) -> Array:
    """Return ``x`` itself, as an array.

    Example:
        >>> fnn.identity([1.0, -1.0])
        array([ 1., -1.])
    """
    x = as_value(x)
    return np.asarray(x)[()] if issubclass(type(x), (bool, int, float, complex)) else x


def relu(x: ArrayLike) -> Array:
    """Compute ``maximum(x, 0)``. The derivative at 0 is 0.

    Example:
        >>> fnn.relu([-1.0, 0.0, 2.0])
        array([0., 0., 2.])
    """
    x = as_value(x)
    dtype = backend.dtype_of(x)
    return prim.relu(x) if dtype.kind != "V" else restored(prim.relu(widened(x)), dtype)


@on_floats
def sparse_plus(x: ArrayLike) -> Array:
    """Compute 0 up to -1, ``x`` from 1 on, and ``(x + 1)**2 / 4`` in between; the derivative is ``sparse_sigmoid``.

    Example:
        >>> fnn.sparse_plus([-2.0, 0.0, 2.0])
        array([0.  , 0.25, 2.  ])
    """
    low, high = less_equal(x, -1.0), greater_equal(x, 1.0)
    inner = where(logical_or(low, high), 0.0, x)
    return where(low, 0.0, where(high, x, square(inner + 1.0) / 4))


@on_floats
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """Return ``x`` where it is at least 0, else ``negative_slope * x``. The derivative at 0 is 1.

    Example:
        >>> fnn.leaky_relu([-1.0, 2.0], 0.5)
        array([-0.5,  2. ])
    """
    return where(greater_equal(x, 0), x, as_value(negative_slope) * x)


@on_floats
def tanh(x: ArrayLike, /) -> Array:
    """Compute the hyperbolic tangent.

    Example:
        >>> fnn.tanh([0.0, 100.0])
        array([0., 1.])
    """
    return hyperbolic(x)


@on_floats
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Return ``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    Example:
        >>> fnn.elu([-1000.0, 2.0])
        array([-1.,  2.])
    """
    return _elu(x, alpha)


@on_floats
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Compute ``maximum(x, 0) + alpha * (exp(minimum(x, 0) / alpha) - 1)``, smooth for every ``alpha``.

    Example:
        >>> fnn.celu([-1000.0, 2.0], 2.0)
        array([-2.,  2.])
    """
    alpha = as_value(alpha)
    return maximum(x, 0.0) + alpha * expm1(minimum(x, 0.0) / alpha)


@on_floats
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Multiply ``x`` by the probability that a standard normal variable is below ``x``.

    Args:
        x: an array.
        approximate: whether to use the formula with ``tanh``, whose error is up to 0.0005 (Hendrycks and Gimpel,
            Gaussian error linear units, 2016, section 2). The exact formula needs SciPy.

    Example:
        >>> fnn.gelu([-1.0, 100.0]).round(6)
        array([ -0.158808, 100.      ])
    """
    return gelu_by_tanh(x) if approximate else gelu_exact(x)


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Multiply the first half of ``x`` along ``axis`` by the sigmoid of the second half.

    Raises:
        ShapeError: the length of the axis is odd (a ``ValueError``).

    Example:
        >>> fnn.glu([4.0, 0.0])
        array([2.])
    """
    x = floating(x)
    shape, dtype = backend.shape_and_dtype_of(x)
    axis = normalize_axis(axis, len(shape))
    if shape[axis] % 2:
        raise ShapeError(f"glu: the axis must have an even length, got shape {shape}, axis {axis}. Give the gates too.")
    before, half = (slice(None),) * axis, shape[axis] // 2
    x = widened(x)
    values, gates = getitem(x, (*before, slice(0, half))), getitem(x, (*before, slice(half, 2 * half)))
    return restored(values * logistic(gates), dtype)


@on_floats
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Compute ``(x + sqrt(x**2 + b)) / 2``, without cancellation for negative ``x``.

    Example:
        >>> fnn.squareplus([0.0, -1e9])
        array([1.e+00, 1.e-09])
    """
    # a Python number stays one, so that it does not change the dtype of x
    root = hypot(x, math.sqrt(b) if issubclass(type(b), (int, float)) else sqrt(floating(b)))
    negative = less(x, 0)
    return where(negative, 0.5 * b / where(negative, root - x, 1.0), 0.5 * (x + root))


def logmeanexp(x: ArrayLike, axis: Axes = None, where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """Compute ``log(mean(exp(x)))`` along ``axis``, by default of all elements, without overflow.

    ``where`` chooses the elements that count; with ``keepdims`` the reduced axes stay, with length 1.

    Example:
        >>> fnn.logmeanexp([1000.0, 1000.0])
        np.float64(1000.0)
    """
    x = floating(x)
    count = count_of_elements(x, axis, True if where is None else where, keepdims)
    total = logsumexp(x, axis, where=where, keepdims=keepdims)
    if issubclass(type(count), int):
        return total - (math.log(count) if count else -math.inf)
    return total - log(astype(count, to=backend.dtype_of(total)))


def one_hot(x: ArrayLike, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Array:
    """Convert each integer in ``x`` to a vector with 1 at this index and 0 elsewhere, along the new ``axis``.

    The vectors have ``num_classes`` entries of the given ``dtype``. Integers outside of the classes give zeros.

    Example:
        >>> fnn.one_hot([0, 2], 3)
        array([[1., 0., 0.],
               [0., 0., 1.]])
    """
    x = as_value(x)
    shape = backend.shape_of(x)
    axis = normalize_axis(axis, len(shape) + 1)
    places = np.arange(num_classes).reshape((num_classes,) + (1,) * (len(shape) - axis))
    hits = equal(reshape(x, to=(*shape[:axis], 1, *shape[axis:])), places)
    return cast(hits, to=np.dtype(float if dtype is None else dtype))


def standardize(
    x: ArrayLike,
    axis: Axes = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """Compute ``(x - mean) / sqrt(variance + epsilon)``, with mean and variance along ``axis`` unless given.

    Args:
        x: an array.
        axis: one axis, several, or None for all.
        mean: the mean, with the reduced axes kept; by default it is computed.
        variance: the variance, with the reduced axes kept; by default it is computed.
        epsilon: a small number, added to the variance to avoid division by 0.
        where: a mask of the elements that count for mean and variance.
        algorithm: accepted for compatibility with JAX, and ignored: the variance is computed from the distances from
            the mean, which avoids cancellation.

    Example:
        >>> fnn.standardize([1.0, 3.0], epsilon=0.0)
        array([-1.,  1.])
    """
    x = floating(x)
    dtype = backend.dtype_of(x)
    x = widened(x)
    if mean is None and variance is None and where is None and dtype.kind != "c" and type(epsilon) in _NUMBERS:
        axes = normalize_axes(axis, len(backend.shape_of(x)))
        return restored(as_scalar(normalising.standardized(x, axis=axes, epsilon=epsilon)), dtype)
    mask: Any = True if where is None else where
    if mean is None:
        mean = mean_of(x, axis, keepdims=True, where=mask)
    centred = x - widened(as_value(mean))
    if variance is None:
        variance = mean_of(square(centred), axis, keepdims=True, where=mask)
    return restored(as_scalar(centred / sqrt(widened(as_value(variance)) + epsilon)), dtype)
