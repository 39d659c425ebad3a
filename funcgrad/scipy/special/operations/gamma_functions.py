"""The gamma function and functions made of it: its logarithm and derivatives, beta, Pochhammer's symbol, zeta.

The derivatives are those of DLMF 5.2.2, 5.12.1, 5.15 and 25.11.17.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from funcgrad.core import describe
from funcgrad.errors import NotDifferentiableError
from funcgrad.kinds import nondifferentiable
from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.arithmetic import absolute, clip
from funcgrad.primitives.comparison import equal, floor, greater, logical_and, logical_not, where
from funcgrad.primitives.elementwise import cos, is_complex, log1p, real_part, sin
from funcgrad.scipy.special.operations.partials import (
    derivatives,
    in_double,
    kernel,
    log_beta,
    may_hold,
    pointwise,
    refused,
    scipy_operation,
)


def _polygamma(xp: Any, x: Any, order: int) -> Any:
    if x.dtype.kind == "c":
        raise NotDifferentiableError(
            f"scipy.special.digamma: it has no derivative at complex numbers, got {describe(x)}. Pass real ones."
        )
    far = x < -20  # SciPy adds about abs(x) terms; reflection, DLMF 5.15.6, needs none of them
    if xp.__name__ == "numpy" and not xp.any(far):
        return special(xp, "polygamma")(order, x)
    mirrored = special(xp, "polygamma")(order, xp.where(far, 1 - x, x))
    rest = xp.where(far, x - xp.rint(x), 0.25)
    return xp.where(far, (-1) ** order * mirrored - _cotangent(xp, rest, order), mirrored)


def _cotangent(xp: Any, x: Any, order: int) -> Any:
    """Return the derivative of this order of ``pi * cot(pi * x)``: a polynomial in the cotangent."""
    coefficients = [0.0, math.pi]  # from the constant upwards
    for _ in range(order):
        slope = [k * c * -math.pi for k, c in enumerate(coefficients)][1:]
        coefficients = [a + b for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope], strict=True)]
    cotangent, total = 1 / xp.tan(math.pi * x), coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = total * cotangent + c
    return total


#: ``psi(x, *, order)``: derivative of this order of the digamma function, the polygamma function.
psi: Operation = derivatives("psi", kernel("digamma"), _polygamma)


def digamma(x: Any) -> Any:
    """Return the logarithmic derivative of the gamma function.

    Example:
        >>> digamma(1.0).round(6)
        np.float64(-0.577216)
    """
    return psi(x, order=0)


#: ``polygamma(n, x)`` for any array n, differentiable in x.
polygamma: Operation = scipy_operation(
    "polygamma",
    dx=refused("polygamma", "n", "It is an integer: pass it as a constant"),
    dy=lambda x, y: polygamma(x + 1, y),
)
gamma: Operation = scipy_operation("gamma", dx=lambda x, ans: ans * digamma(x))
gammaln: Operation = scipy_operation("gammaln", dx=lambda x: digamma(x))
gammasgn: Operation = nondifferentiable("gammasgn", kernel("gammasgn"))


#: NaN for negative real numbers, where ``loggamma`` is not defined.
loggamma: Operation = scipy_operation(
    "loggamma", dx=lambda x: digamma(x) if is_complex(x) else where(x < 0, math.nan, digamma(x))
)

_FAR = 1000.0


def _rgamma_partial(x: Any, ans: Any) -> Any:
    """Return ``-digamma(x) / gamma(x)``; below 1/2 by reflection, which has no poles there.

    The reflection is ``1 / gamma(x) = gamma(1 - x) sin(pi x) / pi`` (DLMF 5.5.3).
    """
    left = real_part(x) < 0.5
    mirrored, right = 1 - where(left, x, 0.5), where(left, 1.0, x)
    right = right if is_complex(x) else clip(right, 0, _FAR)  # beyond, the value is 0 and digamma may be infinite
    angle = math.pi * mirrored
    reflected = gamma(mirrored) * (-cos(angle) - digamma(mirrored) * sin(angle) * (1 / math.pi))
    return where(left, reflected, -ans * digamma(right))


rgamma: Operation = scipy_operation(
    "rgamma", lambda xp, x: special(xp, "gammasgn")(x) * xp.exp(-special(xp, "gammaln")(x)), dx=_rgamma_partial
)

#: Coefficients ``-B_(2k) / (2k)`` for k = 1, 2, ...
_DIGAMMA_TERMS = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132)
_DIGAMMA_FROM = 1000.0


#: Distance from 0 beyond which the gamma function underflows.
_POLES = 100.0
#: Largest step that counts as small, as a share of a positive number.
_SMALL_STEP = 0.02


def _small_step(x: Any, y: Any) -> Any:
    return logical_and(x > 0, logical_and(y < _SMALL_STEP * x, y > -_SMALL_STEP * x))


def _is_pole(x: Any) -> Any:
    """Whether the gamma function is infinite at ``x``: at 0 and negative integers."""
    return logical_and(x <= 0, equal(x, floor(x)))


def _digamma_step(x: Any, y: Any) -> Any:
    """Return ``digamma(x + y) - digamma(x)``; from one pole to another the limit, by reflection (DLMF 5.5.4)."""
    poles = logical_and(_is_pole(x), _is_pole(x + y))
    if not may_hold(poles):
        return _plain_digamma_step(x, y)
    beside = _plain_digamma_step(where(poles, 1 - x - y, 1.0), where(poles, y, 0.0))
    return where(poles, -beside, _plain_digamma_step(where(poles, 1.0, x), where(poles, 0.0, y)))


def _plain_digamma_step(x: Any, y: Any) -> Any:
    """Return ``digamma(x + y) - digamma(x)``; small steps, which cancel, by Taylor's series around ``x + y / 2``."""
    small = _small_step(x, y)
    if not may_hold(small):
        return _long_digamma_step(x, y)
    step = where(small, y, 0.0)
    middle, square = where(small, x, 1.0) + step / 2, step * step
    near = psi(middle, order=1) + square * (psi(middle, order=3) / 24 + square * (psi(middle, order=5) / 1920))
    return where(small, step * near, _long_digamma_step(where(small, 1.0, x), where(small, 1.0, y)))


def _long_digamma_step(x: Any, y: Any) -> Any:
    """Return ``digamma(x + y) - digamma(x)`` for steps that are not small; for large numbers by DLMF 5.11.2."""
    large = logical_and(greater(x, _DIGAMMA_FROM), greater(x + y, _DIGAMMA_FROM))
    if not may_hold(large):
        return digamma(x + y) - digamma(x)
    start, step = where(large, x, _DIGAMMA_FROM), where(large, y, 1.0)
    stop = start + step
    first, last = (1 / start) * (1 / start), (1 / stop) * (1 / stop)
    low, high = 0.0, 0.0
    for c in reversed(_DIGAMMA_TERMS):
        low, high = (c + low) * first, (c + high) * last
    ratio = step / start
    far = log1p(ratio) + 0.5 * ratio / stop + (high - low)
    return where(large, far, digamma(where(large, 1.0, x + y)) - digamma(where(large, 1.0, x)))


def _beta_partial(x: Any, y: Any, ans: Any) -> Any:
    """Return ``ans * (digamma(x) - digamma(x + y))``; where ``ans`` is 0, from the inverse of ``gamma(x + y)``."""
    zero = logical_and(equal(ans, 0), logical_and(_is_pole(x + y), absolute(x) + absolute(y) < _POLES))
    if not may_hold(zero):
        return -ans * _digamma_step(x, y)
    first, second = where(zero, x, 1.0), where(zero, y, 1.0)
    inverse = rgamma(first + second)
    slope = digamma(first) * inverse + _rgamma_partial(first + second, inverse)
    beside = -where(zero, 0, ans) * _digamma_step(where(zero, 1.0, x), where(zero, 0.0, y))
    return where(zero, gamma(first) * gamma(second) * slope, beside)


beta: Operation = scipy_operation(
    "beta", dx=lambda x, y, ans: _beta_partial(x, y, ans), dy=lambda x, y, ans: _beta_partial(y, x, ans)
)
betaln: Operation = scipy_operation(
    "betaln", log_beta, dx=lambda x, y: -_digamma_step(x, y), dy=lambda x, y: -_digamma_step(y, x)
)


def _poch_partial(x: Any, y: Any, ans: Any) -> Any:
    """Return ``ans * (digamma(x + y) - digamma(x))``; near poles of ``gamma(x)`` from ``gamma(x + y) / gamma(x)``."""
    near = logical_and(logical_and(x < 0.5, x > -_POLES), logical_not(_small_step(x, y)))
    if not may_hold(near):
        return ans * _digamma_step(x, y)
    start, stop = where(near, x, 1.0), where(near, x + y, 1.0)
    inverse = rgamma(start)
    beside = gamma(stop) * (digamma(stop) * inverse + _rgamma_partial(start, inverse))
    return where(near, beside, where(near, 0, ans) * _digamma_step(where(near, 1.0, x), where(near, 0.0, y)))


poch: Operation = scipy_operation("poch", dx=_poch_partial, dy=lambda x, y, ans: ans * digamma(x + y))


def _binom_partial(ordinary: Callable[..., Any], beside: Callable[..., Any]) -> Callable[..., Any]:
    """Return a partial derivative that, where ``binom`` is 0, is made of the inverses of gamma functions."""

    def partial(x: Any, y: Any, ans: Any) -> Any:
        pole = logical_and(x < 0, equal(x, floor(x)))
        zero = logical_and(equal(ans, 0), logical_and(absolute(x) < _POLES, logical_not(pole)))
        if not may_hold(zero):
            return ans * ordinary(x, y)
        n, k = where(zero, x, 1.0), where(zero, y, 0.5)
        low, high = rgamma(k + 1), rgamma(n - k + 1)
        slopes = _rgamma_partial(k + 1, low), _rgamma_partial(n - k + 1, high)
        usual = where(zero, 0, ans) * ordinary(where(zero, 1.0, x), where(zero, 0.5, y))
        return where(zero, gamma(n + 1) * beside(n, (low, high), slopes), usual)

    return partial


binom: Operation = scipy_operation(
    "binom",
    lambda xp, n, k: 1 / ((n + 1) * special(xp, "beta")(n - k + 1, k + 1)),
    dx=_binom_partial(
        lambda x, y: _digamma_step(x - y + 1, y),
        lambda n, values, slopes: values[0] * (slopes[1] + digamma(n + 1) * values[1]),
    ),
    dy=_binom_partial(
        lambda x, y: digamma(x - y + 1) - digamma(y + 1),
        lambda n, values, slopes: slopes[0] * values[1] - values[0] * slopes[1],
    ),
)

#: Coefficients ``B_(2j) / (2j)!`` for j = 1, 2, ...
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_BERNOULLI_TERMS = tuple([b / math.factorial(2 * j) for j, b in enumerate(_BERNOULLI, 1)])
_SUMMED = 14


def _zeta_derivative(xp: Any, s: Any, q: Any, order: int) -> Any:
    """Return the derivative in s of this order of Hurwitz's zeta function, by the Euler-Maclaurin formula.

    The formula is DLMF 25.11.5 without the remaining integral, with 14 terms of the sum and 10 corrections, each
    differentiated. The s-dependent factors of a correction are carried along as Taylor polynomials in s.
    """
    bases = q[..., None] + xp.arange(_SUMMED)
    total = xp.sum((-xp.log(bases)) ** order * bases ** (-s[..., None]), axis=-1)
    w = q + _SUMMED
    log, power = -xp.log(w), w**-s
    tail = sum(
        math.comb(order, j) * log ** (order - j) * (-1) ** j * math.factorial(j) / (s - 1) ** (j + 1)
        for j in range(order + 1)
    )
    total = total + power * (w * tail + log**order / 2)
    rising = [s] + [1 + 0 * s] * (order > 0) + [0 * s] * (order - 1)  # s + d, in powers of d
    scale = power / w
    for j, factor in enumerate(_BERNOULLI_TERMS, 1):
        jet = sum(rising[i] * log ** (order - i) / math.factorial(order - i) for i in range(order + 1))
        total = total + factor * math.factorial(order) * scale * jet
        for shift in (2 * j - 1, 2 * j):
            rising = [r * (s + shift) + p for r, p in zip(rising, [0 * s, *rising], strict=False)]
        scale = scale / (w * w)
    return total


def _hurwitz_zeta(xp: Any, s: Any, q: Any, *, order: int) -> Any:
    if order == 0:
        return special(xp, "zeta")(s, q)

    def compute(s: Any, q: Any) -> Any:
        s, q = xp.broadcast_arrays(s, q)
        defined = (s > 1) & (q > 0)
        found = _zeta_derivative(xp, xp.where(defined, s, 2), xp.where(defined, q, 1), order)
        return xp.where(defined, found, math.nan)

    return in_double(xp, compute, s, q)


def _zeta_slope(x: Any, y: Any, *, order: int) -> Any:
    """Return the derivative in q of derivative ``order`` in s, from ``d/dq zeta(s, q) = -s zeta(s + 1, q)``."""
    slope = -x * hurwitz_zeta(x + 1, y, order=order)
    return slope if order == 0 else slope - order * hurwitz_zeta(x + 1, y, order=order - 1)


#: ``hurwitz_zeta(s, q, *, order)``: derivative in s of this order.
hurwitz_zeta: Operation = pointwise(
    "hurwitz_zeta", _hurwitz_zeta, lambda x, y, *, order: hurwitz_zeta(x, y, order=order + 1), _zeta_slope
)

zetac: Operation = scipy_operation(
    "zetac", lambda xp, x: special(xp, "zeta")(x, 1) - 1, dx=lambda x: riemann_zeta(x, order=1)
)


def _riemann_zeta(xp: Any, x: Any, *, order: int) -> Any:
    if order == 0:
        return special(xp, "zeta")(x) if xp.__name__ == "numpy" else special(xp, "zeta")(x, 1)

    def compute(x: Any) -> Any:
        left = x < -0.2  # closer to 0 the reflected sum cancels, and the direct sum is accurate too
        none = x > 1100  # the derivative underflows
        right = xp.where(none, 0, _zeta_derivative(xp, xp.where(left | none, 2, x), xp.ones_like(x), order))
        return xp.where(left, _reflected_zeta(xp, xp.where(left, x, -1), order), right)

    return in_double(xp, compute, x)


def _reflected_zeta(xp: Any, s: Any, order: int) -> Any:
    """Return derivative ``order`` of ``2 (2 pi)**(s-1) gamma(1-s) sin(pi s / 2) zeta(1-s)``, by Leibniz's rule.

    The logarithm of the factors ``2 (2 pi)**(s-1) gamma(1-s)`` has the first derivative ``log(2 pi) - digamma(1-s)``
    and, of order k, ``(-1)**k polygamma(k-1, 1-s)``.
    """
    logs = [math.log(2 * math.pi) - special(xp, "digamma")(1 - s)]
    logs += [(-1) ** k * special(xp, "polygamma")(k - 1, 1 - s) for k in range(2, order + 1)]
    large = s < -160  # where the gamma function overflows; elsewhere the product is more accurate
    right = xp.where(large, -1, s)
    power = 2 * (2 * math.pi) ** (right - 1) * special(xp, "gamma")(1 - right)
    exponent = special(xp, "gammaln")(1 - s) + (s - 1) * math.log(2 * math.pi) + math.log(2)
    scale = [xp.ones_like(s)]
    for n in range(order):
        scale.append(sum(math.comb(n, i) * scale[n - i] * logs[i] for i in range(n + 1)))
    wave = [(math.pi / 2) ** i * _sine_of_quarters(xp, s, i) for i in range(order + 1)]
    mirrored = [(-1) ** i * _zeta_derivative(xp, 1 - s, xp.ones_like(s), i) for i in range(order + 1)]
    both = [_leibniz(wave, mirrored, n) for n in range(order + 1)]
    # the large factor multiplies the whole, so that an overflow leaves no infinities that cancel
    return xp.where(large, xp.exp(xp.where(large, exponent, 0)), power) * _leibniz(scale, both, order)


def _sine_of_quarters(xp: Any, s: Any, more: int) -> Any:
    """Return ``sin(pi / 2 * (s + more))``, exactly 0 at its zeros."""
    whole = xp.rint(s)
    turn, rest = xp.mod(whole + more, 4), (math.pi / 2) * (s - whole)
    return xp.where(turn % 2 == 0, xp.sin(rest), xp.cos(rest)) * xp.where(turn < 2, 1.0, -1.0)


def _leibniz(f: list[Any], g: list[Any], order: int) -> Any:
    """Return the derivative of this order of a product, from the derivatives of the factors."""
    return sum(math.comb(order, i) * f[i] * g[order - i] for i in range(order + 1))


#: ``riemann_zeta(x, *, order)``: derivative of this order.
riemann_zeta: Operation = pointwise("riemann_zeta", _riemann_zeta, lambda x, *, order: riemann_zeta(x, order=order + 1))
