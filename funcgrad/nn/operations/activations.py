"""What the functions of neural networks need beyond NumPy's: kinks by convention, logarithms without cancellation.

The two forms of ``gelu`` are numbers times a probability that depends on them. It is a hidden result, so that the
derivative need not compute it anew. Far out it is 0 or 1 to the last digit, and powers of the number would only
overflow: there they are those of a nearer number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.kinds import elementwise, primitive
from funcgrad.kinds.partials import scaled
from funcgrad.kinds.rules import Operation
from funcgrad.optional import loaded_jax, special
from funcgrad.primitives.arithmetic import absolute
from funcgrad.primitives.comparison import greater, less, logical_and, where
from funcgrad.primitives.elementwise import exp, expm1, log, logistic, tanh

__all__ = [
    "binary_cross_entropy", "log1mexp", "log_cosh", "relu", "relu6", "softplus", "x_log_x", "gelu_by_tanh",
    "gelu_exact",
]  # fmt: skip


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


Rule = Callable[..., Any]
#: ``(1 + tanh(c * (x + 0.044715 * x**3))) / 2`` is the logistic function of ``_LINEAR * x + _CUBIC * x**3``.
_LINEAR = 2 * math.sqrt(2 / math.pi)
_CUBIC = 0.044715 * _LINEAR
_DENSITY = 1 / math.sqrt(2 * math.pi)
#: Numbers beyond which both probabilities are 0 or 1.
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
    """``x`` with 0 in place of what is out of bounds, and where that is; None where nothing is."""
    if xp is np and x.dtype.kind == "f" and x.size and x.item(x.argmin()) >= -_FAR and x.item(x.argmax()) <= _FAR:
        return x, None
    far = xp.abs(x) > _FAR
    return xp.where(far, 0, x), far


def _is_far(x: Any) -> Any:
    return greater(absolute(x), _FAR)


def _near_or_none(x: Any) -> Any:
    """``x``, and 0 in place of what is out of bounds."""
    return where(_is_far(x), 0.0, x)


def _where_near(t: Any, x: Any, factor: Any) -> Any:
    """``t * factor``, 0 where ``x`` is out of bounds, whatever ``t`` is there."""
    return where(_is_far(x), 0.0, t) * factor


def _times_slope(t: Any, x: Any, slope: Any) -> Any:
    """``t * slope``, so written that out of bounds an infinite ``t`` meets no derivative of the slope."""
    if type(x) is np.ndarray:
        return scaled(t, slope)
    return _where_near(t, x, slope) + where(_is_far(x), t, 0.0) * greater(x, 0)


def _gate(name: str, share: Rule, slope: Rule, density: Rule, *, dx: Rule, dy: Rule | float) -> Operation:
    """Define ``x * share(x)``, the share being 0 far out on the one side and 1 on the other.

    Args:
        name: its name.
        share: ``share(xp, x)``, the probability, of an array within the bounds.
        slope: ``slope(xp, x, y)``, the derivative of the product, ``y`` being the probability.
        density: ``density(x, y)``, that of the probability.
        dx: the partial derivative of the slope in ``x``.
        dy: that in ``y``.
    """

    def product(xp: Any, x: Any) -> Any:
        x = xp.asarray(x)
        several = x if x.shape else x.reshape(1)  # of numbers nothing could be computed in place
        near, far = _split(xp, several)
        with np.errstate(over="ignore"):  # where the exponential is infinite its reciprocal is the 0 that is meant
            chance = share(xp, near)
        ans = near * chance
        if far is not None:
            ans, chance = xp.where(far, xp.maximum(several, 0), ans), xp.where(far, several.real > 0, chance)
        return (ans, chance) if x.shape else (ans[0], chance[0])

    def derivative(xp: Any, x: Any, y: Any) -> Any:
        x = xp.asarray(x)
        return slope(xp, _split(xp, x)[0], y) if x.shape else slope(xp, _split(xp, x.reshape(1))[0], y)[0]

    steepness = elementwise(f"slope_of_{name}", derivative, dx=lambda t, x, y: _where_near(t, x, dx(x, y)), dy=dy)

    def pull(cts: Any, x: Any, ans: Any) -> Any:
        (ct, of_chance), chance = cts, ans[1]
        found = None if ct is None else _times_slope(ct, x, steepness(x, chance))
        if of_chance is None:
            return found
        other = _where_near(of_chance, x, density(x, chance))
        return other if found is None else found + other

    def push(t: Any, x: Any, ans: Any) -> Any:
        return _times_slope(t, x, steepness(x, ans[1])), _where_near(t, x, density(x, ans[1]))

    return primitive(name, product, vjps=[pull], jvps=[push], batch="elementwise", multiple=True, sparse=True, hidden=1)


def _logistic_slope(x: Any, y: Any, factor: float) -> Any:
    """The slope of the logistic function times ``_LINEAR + factor * _CUBIC * x**2``."""
    near = _near_or_none(x)
    return y * (1 - y) * (_LINEAR + factor * _CUBIC * (near * near))


def _slope_in_share(x: Any, y: Any) -> Any:
    near = _near_or_none(x)
    return 1 + near * (_LINEAR + 3 * _CUBIC * (near * near)) * (1 - 2 * y)


def _normal(x: Any) -> Any:
    """The density of the normal distribution."""
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
