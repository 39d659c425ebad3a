"""Elementwise operations of neural networks: kinks by convention, logarithms without cancellation.

The two forms of ``gelu`` multiply a number by a probability that depends on the number. The probability is a
residual, so that the derivative need not compute it again. For large numbers the probability is exactly 0 or 1, and
powers of the number could overflow. The code then computes with 0 in place of the number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.kinds import elementwise, primitive
from funcgrad.kinds.linear import scaled
from funcgrad.kinds.rules import Operation
from funcgrad.optional import loaded_jax, special
from funcgrad.primitives.arithmetic import absolute
from funcgrad.primitives.comparison import greater, less, logical_and, where
from funcgrad.primitives.elementwise import exp, expm1, log, logistic, tanh
from funcgrad.primitives.normalising import sum_of_cotangents


def _of_jax(name: str, x: Any) -> Any:
    """Call the function of ``jax.nn``, so that the conventions also hold in JAX's derivatives."""
    return getattr(loaded_jax().nn, name)(x)


#: Number of elements that fit in the processor's cache.
_BLOCK = 16_384


def _relu(xp: Any, x: Any) -> Any:
    """Compute relu; for two arrays, ``numpy.maximum`` takes a third of the time that it takes for array and number."""
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
    """Compute softplus; ``numpy.logaddexp`` would take three times as long."""
    if xp is not np:
        return xp.logaddexp(x, 0.0)
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


#: ``log(1 + exp(x))``, without overflow.
softplus: Operation = elementwise("softplus", _softplus, dx=lambda x: logistic(x))


def _binary_cross_entropy(xp: Any, x: Any, y: Any) -> Any:
    """Compute the binary cross entropy; a term with weight 0 counts as 0, whatever its value."""
    if xp is np and type(x) is np.ndarray and x.shape:
        return _binary_of_array(x, y)
    if xp is not np:  # JAX's derivatives of the formula below are wrong at 0, where the formula has three kinks
        wrong, right = y * xp.logaddexp(-x, 0.0), (1 - y) * xp.logaddexp(x, 0.0)
        return xp.where(y == 0, 0, wrong) + xp.where(y == 1, 0, right)
    with np.errstate(invalid="ignore"):
        wrong, right = xp.where(y == 0, 0, y * xp.maximum(-x, 0)), xp.where(y == 1, 0, (1 - y) * xp.maximum(x, 0))
        return wrong + right + xp.log1p(xp.exp(-xp.abs(x)))


def _step(x: Any, y: Any) -> Any:
    """Return 1 where ``x`` is positive, else 0, in the result dtype of ``x`` and ``y``."""
    return (x > 0).astype(np.result_type(x, y))


def _minus_size(x: Any) -> Any:
    size = np.abs(x)
    return np.negative(size, out=size)


def _binary_of_array(x: Any, y: Any) -> Any:
    """Compute ``x * (step(x) - y) + log1p(exp(-abs(x)))``."""
    ans, size = _step(x, y) - y, _minus_size(x)
    if not size.size or size.item(size.argmin()) > -math.inf:  # false also for NaN
        ans *= x
    else:
        with np.errstate(invalid="ignore"):
            ans = np.where(ans == 0, 0, ans * x)
    np.exp(size, out=size)
    ans += np.log1p(size, out=size)
    return ans


def _binary_slope(xp: Any, x: Any, y: Any) -> Any:
    """Compute ``((step - y) + (1 - step - y) * exp(-abs(x))) / (1 + exp(-abs(x)))``, with one exponential, not two."""
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


#: Derivative of ``binary_cross_entropy`` in ``x``.
binary_slope: Operation = elementwise("binary_slope", _binary_slope, dx=lambda x: logistic(x) * logistic(-x), dy=-1)
#: ``y * softplus(-x) + (1 - y) * softplus(x)``, without overflow or cancellation.
binary_cross_entropy: Operation = elementwise(
    "binary_cross_entropy", _binary_cross_entropy, dx=lambda x, y: binary_slope(x, y), dy=lambda x: -x
)


def _log1mexp(xp: Any, x: Any) -> Any:
    """Compute log1mexp by two formulas (M. Mächler, Accurately computing log(1 - exp(-|a|)), equation 7)."""
    near = x < 0.6931471805599453
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return xp.where(near, xp.log(-xp.expm1(-x)), xp.log1p(-xp.exp(-x)))


#: ``log(1 - exp(-x))`` for positive x.
log1mexp: Operation = elementwise("log1mexp", _log1mexp, dx=lambda t, x: t * exp(-x) / -expm1(-x))


def _log_cosh(xp: Any, x: Any) -> Any:
    """Use ``cosh(x) = 1 + 2 * sinh(x / 2)**2`` for small x, else ``exp(abs(x)) * (1 + exp(-2 * abs(x))) / 2``."""
    size = xp.abs(x)
    small = size < 1
    half = xp.sinh(xp.where(small, size, size * 0) * 0.5)
    return xp.where(small, xp.log1p(2 * half * half), size + (xp.log1p(xp.exp(-2 * size)) - 0.6931471805599453))


#: ``log(cosh(x))``, accurate also near 0.
log_cosh: Operation = elementwise("log_cosh", _log_cosh, dx=lambda x: tanh(x))


def _x_log_x(xp: Any, x: Any) -> Any:
    if xp is not np:
        return -loaded_jax().scipy.special.entr(x)
    return np.where(x == 0, x, x * np.log(np.where(x == 0, 1, x)))


#: ``x * log(x)``, 0 at 0.
x_log_x: Operation = elementwise("x_log_x", _x_log_x, dx=lambda x: log(x) + 1)


Rule = Callable[..., Any]
#: ``(1 + tanh(c * (x + 0.044715 * x**3))) / 2`` is the logistic function of ``_LINEAR * x + _CUBIC * x**3``.
_LINEAR = 2 * math.sqrt(2 / math.pi)
_CUBIC = 0.044715 * _LINEAR
_DENSITY = 1 / math.sqrt(2 * math.pi)
#: Absolute value beyond which both probabilities are 0 or 1.
_FAR = 40.0


def _share_by_tanh(xp: Any, x: Any) -> Any:
    power = x * x
    power *= -_CUBIC
    power -= _LINEAR
    power *= x
    if xp is not np:
        return loaded_jax().nn.sigmoid(-power)
    np.exp(power, out=power)
    power += 1
    return np.reciprocal(power, out=power)


def _slope_by_tanh(xp: Any, x: Any, y: Any) -> Any:
    ans = x * x
    ans *= 3 * _CUBIC
    ans += _LINEAR
    ans *= x
    ans *= 1 - y
    ans += 1
    ans *= y
    return ans


def _share_exact(xp: Any, x: Any) -> Any:
    ans = special(xp, "erfc")(x * -math.sqrt(0.5))
    ans *= 0.5
    return ans


def _slope_exact(xp: Any, x: Any, y: Any) -> Any:
    ans = x * x
    ans *= -0.5
    ans = np.exp(ans, out=ans) if xp is np else xp.exp(ans)
    ans *= x
    ans *= _DENSITY
    ans += y
    return ans


def _split(xp: Any, x: Any) -> tuple[Any, Any]:
    """Return ``x`` with 0 in place of numbers out of bounds, and a mask of these numbers, None if there are none."""
    if xp is np and x.dtype.kind == "f" and x.size and x.item(x.argmin()) >= -_FAR and x.item(x.argmax()) <= _FAR:
        return x, None
    far = xp.abs(x) > _FAR
    return xp.where(far, 0, x), far


def _is_far(x: Any) -> Any:
    return greater(absolute(x), _FAR)


def _near_or_none(x: Any) -> Any:
    """Return ``x`` with 0 in place of numbers out of bounds."""
    return where(_is_far(x), 0.0, x)


def _where_near(t: Any, x: Any, factor: Any) -> Any:
    """Compute ``t * factor``, and 0 where ``x`` is out of bounds, whatever ``t`` is."""
    return where(_is_far(x), 0.0, t) * factor


def _times_slope(t: Any, x: Any, slope: Any) -> Any:
    """Compute ``t * slope`` such that an infinite ``t`` out of bounds is not multiplied by derivatives of the slope."""
    if type(x) is np.ndarray:
        return scaled(t, slope)
    return _where_near(t, x, slope) + where(_is_far(x), t, 0.0) * greater(x, 0)


def _gate(name: str, share: Rule, slope: Rule, density: Rule, *, dx: Rule, dy: Rule | float) -> Operation:
    """Define ``x * share(x)``, where the share is 0 for large negative numbers and 1 for large positive ones.

    Args:
        name: the name of the operation.
        share: ``share(xp, x)``, the probability, for an array within the bounds.
        slope: ``slope(xp, x, y)``, the derivative of the product, where ``y`` is the probability.
        density: ``density(x, y)``, the derivative of the probability.
        dx: the partial derivative of the slope in ``x``.
        dy: the partial derivative of the slope in ``y``.
    """

    def product(xp: Any, x: Any) -> Any:
        x = xp.asarray(x)
        several = x if x.shape else x.reshape(1)  # numbers cannot be computed in place
        near, far = _split(xp, several)
        with np.errstate(over="ignore"):  # the reciprocal of an infinite exponential is 0, as intended
            chance = share(xp, near)
        ans = near * chance
        if far is not None:
            ans, chance = xp.where(far, xp.maximum(several, 0), ans), xp.where(far, several.real > 0, chance)
        return (ans, chance) if x.shape else (ans[0], chance[0])

    def derivative(xp: Any, x: Any, y: Any) -> Any:
        x = xp.asarray(x)
        return slope(xp, _split(xp, x)[0], y) if x.shape else slope(xp, _split(xp, x.reshape(1))[0], y)[0]

    steepness = elementwise(f"slope_of_{name}", derivative, dx=lambda t, x, y: _where_near(t, x, dx(x, y)), dy=dy)

    def vjp(cts: Any, x: Any, ans: Any) -> Any:
        (ct, of_chance), chance = cts, ans[1]
        return sum_of_cotangents(
            None if ct is None else _times_slope(ct, x, steepness(x, chance)),
            None if of_chance is None else _where_near(of_chance, x, density(x, chance)),
        )

    def jvp(t: Any, x: Any, ans: Any) -> Any:
        return _times_slope(t, x, steepness(x, ans[1])), _where_near(t, x, density(x, ans[1]))

    gate = primitive(
        name, product, vjps=[vjp], jvps=[jvp], batch="elementwise", multiple=True, none_for_zero=True, residuals=1
    )
    gate.steepness = steepness  # type: ignore[attr-defined]  # where pickle finds it
    return gate


def _logistic_slope(x: Any, y: Any, factor: float) -> Any:
    """Compute the slope of the logistic function times ``_LINEAR + factor * _CUBIC * x**2``."""
    near = _near_or_none(x)
    return y * (1 - y) * (_LINEAR + factor * _CUBIC * (near * near))


def _slope_in_share(x: Any, y: Any) -> Any:
    near = _near_or_none(x)
    return 1 + near * (_LINEAR + 3 * _CUBIC * (near * near)) * (1 - 2 * y)


def _normal(x: Any) -> Any:
    """Compute the density of the standard normal distribution."""
    near = _near_or_none(x)
    return _DENSITY * exp(-0.5 * (near * near))


def _normal_curvature(x: Any, y: Any) -> Any:
    near = _near_or_none(x)
    return _normal(x) * (1 - near * near)


#: ``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``.
gelu_by_tanh: Operation = _gate(
    "gelu_by_tanh",
    _share_by_tanh,
    _slope_by_tanh,
    lambda x, y: _logistic_slope(x, y, 3),
    dx=lambda x, y: _logistic_slope(x, y, 9),
    dy=_slope_in_share,
)
#: ``x * erfc(-x / sqrt(2)) / 2``.
gelu_exact: Operation = _gate(
    "gelu_exact", _share_exact, _slope_exact, lambda x, y: _normal(x), dx=_normal_curvature, dy=1
)
