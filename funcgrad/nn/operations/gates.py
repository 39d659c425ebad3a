"""The two forms of ``gelu``: numbers times a probability that depends on them.

The probability is a hidden result, so that the derivative need not compute it anew. Far out it is 0 or 1 to the last
digit, and powers of the number would only overflow: there they are those of a nearer number.
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
from funcgrad.primitives.comparison import greater, where
from funcgrad.primitives.elementwise import exp

__all__ = ["gelu_by_tanh", "gelu_exact"]

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
