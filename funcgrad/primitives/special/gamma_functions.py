"""The gamma function and what is made of it: its logarithm and derivatives, beta, Pochhammer's symbol, zeta.

The derivatives are those of DLMF 5.2.2, 5.12.1, 5.15 and 25.11.17.
"""

from __future__ import annotations

import math
from typing import Any

from funcgrad.backend import dtype_of
from funcgrad.core import describe
from funcgrad.errors import NotDifferentiableError
from funcgrad.kinds import elementwise, nondifferentiable
from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.comparison import where
from funcgrad.primitives.elementwise import cos, sin
from funcgrad.primitives.special.kernels import derivatives, kernel, log_beta
from funcgrad.primitives.special.partials import in_double, pointwise, refused

__all__ = [
    "beta",
    "betaln",
    "binom",
    "digamma",
    "gamma",
    "gammaln",
    "gammasgn",
    "hurwitz_zeta",
    "loggamma",
    "poch",
    "polygamma",
    "psi",
    "rgamma",
    "riemann_zeta",
    "zetac",
]


def _is_complex(x: Any) -> bool:
    return dtype_of(x).kind == "c"


def _polygamma(xp: Any, x: Any, order: int) -> Any:
    if x.dtype.kind == "c":
        raise NotDifferentiableError(
            f"scipy.special.digamma: of complex numbers it has no derivative here, got {describe(x)}. Pass real ones."
        )
    return special(xp, "polygamma")(order, x)


#: ``psi(x, *, order)``: the derivative of the digamma function of this order, the polygamma function.
psi: Operation = derivatives("psi", kernel("digamma"), _polygamma)


def digamma(x: Any) -> Any:
    """The logarithmic derivative of the gamma function.

    Example:
        >>> digamma(1.0).round(6)
        np.float64(-0.577216)
    """
    return psi(x, order=0)


#: ``polygamma(n, x)`` for any array n, differentiated in x.
polygamma: Operation = elementwise(
    "polygamma",
    kernel("polygamma"),
    dx=refused("polygamma", "n", "It is an integer: pass it as a constant"),
    dy=lambda x, y: polygamma(x + 1, y),
)
gamma: Operation = elementwise("gamma", kernel("gamma"), dx=lambda x, ans: ans * digamma(x))
gammaln: Operation = elementwise("gammaln", kernel("gammaln"), dx=lambda x: digamma(x))
gammasgn: Operation = nondifferentiable("gammasgn", kernel("gammasgn"))


def _loggamma_partial(x: Any) -> Any:
    """Of real numbers the function is defined for positive ones."""
    return digamma(x) if _is_complex(x) else where(x < 0, math.nan, digamma(x))


loggamma: Operation = elementwise("loggamma", kernel("loggamma"), dx=_loggamma_partial)


def _rgamma_of_jax(xp: Any, x: Any) -> Any:
    return special(xp, "gammasgn")(x) * xp.exp(-special(xp, "gammaln")(x))


def _rgamma_partial(x: Any, ans: Any) -> Any:
    """``-digamma(x) / gamma(x)``, below 1/2 by reflection, which has no poles there.

    With ``1 / gamma(x) = gamma(1 - x) sin(pi x) / pi`` (DLMF 5.5.3).
    """
    left = x < 0.5
    mirrored, right = 1 - where(left, x, 0.5), where(left, 1.0, x)
    angle = math.pi * mirrored
    reflected = gamma(mirrored) * (-cos(angle) - digamma(mirrored) * sin(angle) * (1 / math.pi))
    return where(left, reflected, -ans * digamma(right))


rgamma: Operation = elementwise("rgamma", kernel("rgamma", _rgamma_of_jax), dx=_rgamma_partial)

beta: Operation = elementwise(
    "beta",
    kernel("beta"),
    dx=lambda x, y, ans: ans * (digamma(x) - digamma(x + y)),
    dy=lambda x, y, ans: ans * (digamma(y) - digamma(x + y)),
)
betaln: Operation = elementwise(
    "betaln",
    kernel("betaln", log_beta),
    dx=lambda x, y: digamma(x) - digamma(x + y),
    dy=lambda x, y: digamma(y) - digamma(x + y),
)
poch: Operation = elementwise(
    "poch",
    kernel("poch"),
    dx=lambda x, y, ans: ans * (digamma(x + y) - digamma(x)),
    dy=lambda x, y, ans: ans * digamma(x + y),
)


def _binom_of_jax(xp: Any, n: Any, k: Any) -> Any:
    return 1 / ((n + 1) * special(xp, "beta")(n - k + 1, k + 1))


binom: Operation = elementwise(
    "binom",
    kernel("binom", _binom_of_jax),
    dx=lambda x, y, ans: ans * (digamma(x + 1) - digamma(x - y + 1)),
    dy=lambda x, y, ans: ans * (digamma(x - y + 1) - digamma(y + 1)),
)

#: ``B_(2j) / (2j)!`` for j = 1, 2, ...
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_BERNOULLI_TERMS = tuple([b / math.factorial(2 * j) for j, b in enumerate(_BERNOULLI, 1)])
_SUMMED = 14


def _zeta_derivative(xp: Any, s: Any, q: Any, order: int) -> Any:
    """The derivative in s of this order of Hurwitz's zeta function, by Euler's and Maclaurin's formula.

    It is DLMF 25.11.5 with the integral's remainder dropped, 14 terms summed and 10 corrections, each
    differentiated; the s-dependent factors of a correction are carried along as Taylor polynomials in s.
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
    """The derivative in q of the ``order``-th derivative in s, from ``d/dq zeta(s, q) = -s zeta(s + 1, q)``."""
    slope = -x * hurwitz_zeta(x + 1, y, order=order)
    return slope if order == 0 else slope - order * hurwitz_zeta(x + 1, y, order=order - 1)


#: ``hurwitz_zeta(s, q, *, order)``: the derivative in s of this order.
hurwitz_zeta: Operation = pointwise(
    "hurwitz_zeta", _hurwitz_zeta, lambda x, y, *, order: hurwitz_zeta(x, y, order=order + 1), _zeta_slope
)

zetac: Operation = elementwise(
    "zetac", kernel("zetac", lambda xp, x: special(xp, "zeta")(x, 1) - 1), dx=lambda x: riemann_zeta(x, order=1)
)


def _riemann_zeta(xp: Any, x: Any, *, order: int) -> Any:
    if order == 0:
        return special(xp, "zeta")(x) if xp.__name__ == "numpy" else special(xp, "zeta")(x, 1)

    def compute(x: Any) -> Any:
        left = x < -0.2  # closer to 0 the mirrored sum cancels, and the direct one is right as well
        right = _zeta_derivative(xp, xp.where(left, 2, x), xp.ones_like(x), order)
        return xp.where(left, _reflected_zeta(xp, xp.where(left, x, -1), order), right)

    return in_double(xp, compute, x)


def _reflected_zeta(xp: Any, s: Any, order: int) -> Any:
    """The derivative of ``2 (2 pi)**(s-1) gamma(1-s) sin(pi s / 2) zeta(1-s)`` of this order, by Leibniz's rule.

    The logarithm of the first three factors has the derivatives ``log(2 pi) - digamma(1-s)`` and, of order k,
    ``(-1)**k polygamma(k-1, 1-s)``.
    """
    logs = [math.log(2 * math.pi) - special(xp, "digamma")(1 - s)]
    logs += [(-1) ** k * special(xp, "polygamma")(k - 1, 1 - s) for k in range(2, order + 1)]
    scale = [2 * (2 * math.pi) ** (s - 1) * special(xp, "gamma")(1 - s)]
    for n in range(order):
        scale.append(sum(math.comb(n, i) * scale[n - i] * logs[i] for i in range(n + 1)))
    wave = [(math.pi / 2) ** i * xp.sin(math.pi / 2 * (s + i)) for i in range(order + 1)]
    mirrored = [(-1) ** i * _zeta_derivative(xp, 1 - s, xp.ones_like(s), i) for i in range(order + 1)]
    both = [_leibniz(wave, mirrored, n) for n in range(order + 1)]
    return _leibniz(scale, both, order)


def _leibniz(f: list[Any], g: list[Any], order: int) -> Any:
    """The derivative of a product of this order, from the derivatives of the factors."""
    return sum(math.comb(order, i) * f[i] * g[order - i] for i in range(order + 1))


#: ``riemann_zeta(x, *, order)``: the derivative of this order.
riemann_zeta: Operation = pointwise("riemann_zeta", _riemann_zeta, lambda x, *, order: riemann_zeta(x, order=order + 1))
