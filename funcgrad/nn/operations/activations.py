"""What the functions of neural networks need beyond NumPy's: kinks by convention, logarithms without cancellation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.kinds import elementwise
from funcgrad.kinds.rules import Operation
from funcgrad.optional import loaded_jax
from funcgrad.primitives.comparison import greater, less, logical_and, where
from funcgrad.primitives.elementwise import exp, expm1, log, logistic, tanh

__all__ = ["binary_cross_entropy", "log1mexp", "log_cosh", "relu", "relu6", "softplus", "x_log_x"]


def _of_jax(name: str, x: Any) -> Any:
    """The function of ``jax.nn``, so that the conventions hold inside of JAX's own derivatives too."""
    return getattr(loaded_jax().nn, name)(x)


#: Elements that stay near the processor while they are compared.
_BLOCK = 16_384


def _relu(xp: Any, x: Any) -> Any:
    """NumPy takes the larger of two arrays in a third of the time of that of an array and a number."""
    if xp is not np:
        return _of_jax("relu", x)
    if type(x) is not np.ndarray or x.size < 10_000 or not (x.flags.c_contiguous and x.dtype.isnative):
        return np.maximum(x, 0)
    ans, zeros = np.empty(x.shape, x.dtype), np.zeros(_BLOCK, x.dtype)
    values, found = x.reshape(-1), ans.reshape(-1)
    for start in range(0, x.size, _BLOCK):
        block = values[start : start + _BLOCK]
        np.maximum(block, zeros[: block.size], out=found[start : start + _BLOCK])
    return ans


#: ``maximum(x, 0)``, with the derivative 0 at 0.
relu: Operation = elementwise("relu", _relu, dx=lambda t, ans: where(greater(ans, 0), t, 0))
#: ``minimum(maximum(x, 0), 6)``, with the derivative 0 at 0 and at 6.
relu6: Operation = elementwise(
    "relu6",
    lambda xp, x: np.minimum(np.maximum(x, 0), 6.0) if xp is np else _of_jax("relu6", x),
    dx=lambda t, ans: where(logical_and(greater(ans, 0), less(ans, 6)), t, 0),
)


def _softplus(xp: Any, x: Any) -> Any:
    """NumPy's ``logaddexp`` takes three times as long."""
    if xp is not np:
        return xp.logaddexp(x, 0.0)
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


#: ``log(1 + exp(x))``, without overflow.
softplus: Operation = elementwise("softplus", _softplus, dx=lambda x: logistic(x))


def _binary_cross_entropy(xp: Any, x: Any, y: Any) -> Any:
    """What is weighted with 0 counts as 0, whatever it is."""
    if xp is np and type(x) is np.ndarray and x.shape:
        return _binary_of_array(x, y)
    if xp is not np:  # JAX's own derivatives of the formula below are wrong at 0, where it has three kinks
        wrong, right = y * xp.logaddexp(-x, 0.0), (1 - y) * xp.logaddexp(x, 0.0)
        return xp.where(y == 0, 0, wrong) + xp.where(y == 1, 0, right)
    with np.errstate(invalid="ignore"):
        wrong, right = xp.where(y == 0, 0, y * xp.maximum(-x, 0)), xp.where(y == 1, 0, (1 - y) * xp.maximum(x, 0))
        return wrong + right + xp.log1p(xp.exp(-xp.abs(x)))


def _step(x: Any, y: Any) -> Any:
    """1 where ``x`` is positive, else 0, in a dtype that goes with ``y``."""
    return (x > 0).astype(np.result_type(x, y))


def _minus_size(x: Any) -> Any:
    size = np.abs(x)
    return np.negative(size, out=size)


def _binary_of_array(x: Any, y: Any) -> Any:
    """``x * (step(x) - y) + log1p(exp(-abs(x)))``."""
    ans, size = _step(x, y) - y, _minus_size(x)
    if not size.size or size.item(size.argmin()) > -math.inf:  # else it may be NaN as well
        ans *= x
    else:
        with np.errstate(invalid="ignore"):
            ans = np.where(ans == 0, 0, ans * x)
    np.exp(size, out=size)
    ans += np.log1p(size, out=size)
    return ans


def _binary_slope(xp: Any, x: Any, y: Any) -> Any:
    """``((step - y) + (1 - step - y) * exp(-abs(x))) / (1 + exp(-abs(x)))`` takes one exponential instead of two."""
    if xp is not np:
        sigmoid = loaded_jax().nn.sigmoid
        return (1 - y) * sigmoid(x) - y * sigmoid(-x)
    if not np.ndim(x):
        of_one = _binary_slope(np, np.reshape(x, 1), y)
        return of_one if np.ndim(y) else of_one[0]
    step, size = _step(x, y), _minus_size(x)
    np.exp(size, out=size)
    ans = step - y
    other = np.subtract(1, step, out=step) - y
    other *= size
    ans += other
    size += 1
    ans /= size
    return ans


#: The derivative of ``binary_cross_entropy`` in ``x``.
binary_slope: Operation = elementwise("binary_slope", _binary_slope, dx=lambda x: logistic(x) * logistic(-x), dy=-1)
#: ``y * softplus(-x) + (1 - y) * softplus(x)``, without overflow or cancellation.
binary_cross_entropy: Operation = elementwise(
    "binary_cross_entropy", _binary_cross_entropy, dx=lambda x, y: binary_slope(x, y), dy=lambda x: -x
)


def _log1mexp(xp: Any, x: Any) -> Any:
    """Each way is exact where the other is not (M. Mächler, Accurately computing log(1 - exp(-|a|)), equation 7)."""
    near = x < 0.6931471805599453
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return xp.where(near, xp.log(-xp.expm1(-x)), xp.log1p(-xp.exp(-x)))


#: ``log(1 - exp(-x))`` for positive x.
log1mexp: Operation = elementwise("log1mexp", _log1mexp, dx=lambda t, x: t * exp(-x) / -expm1(-x))


def _log_cosh(xp: Any, x: Any) -> Any:
    """``cosh(x) = 1 + 2 * sinh(x / 2)**2`` for small x, ``exp(abs(x)) * (1 + exp(-2 * abs(x))) / 2`` for others."""
    size = xp.abs(x)
    small = size < 1
    half = xp.sinh(xp.where(small, size, size * 0) * 0.5)
    return xp.where(small, xp.log1p(2 * half * half), size + (xp.log1p(xp.exp(-2 * size)) - 0.6931471805599453))


#: ``log(cosh(x))``, with all digits also near 0.
log_cosh: Operation = elementwise("log_cosh", _log_cosh, dx=lambda x: tanh(x))


def _x_log_x(xp: Any, x: Any) -> Any:
    if xp is not np:
        return -loaded_jax().scipy.special.entr(x)
    return np.where(x == 0, x, x * np.log(np.where(x == 0, 1, x)))


#: ``x * log(x)``, 0 at 0.
x_log_x: Operation = elementwise("x_log_x", _x_log_x, dx=lambda x: log(x) + 1)
