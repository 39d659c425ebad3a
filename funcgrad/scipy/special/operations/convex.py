"""Entropies, Huber's losses, the logistic function, the Box-Cox transform: elementary, with care at the ends.

Two quotients used here have a removable singularity at 0, ``expm1(x) / x`` and ``log1p(x) / x``. Both are operations
with the order of their derivative as a parameter, so that every derivative is accurate there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from funcgrad.kinds import elementwise, primitive
from funcgrad.kinds.rules import Operation
from funcgrad.optional import special
from funcgrad.primitives.arithmetic import absolute, as_numpy_number, clip, divide, power
from funcgrad.primitives.comparison import equal, less_equal, where
from funcgrad.primitives.elementwise import exp, hypot, is_complex, log, log1p, sin, tanh
from funcgrad.scipy.special.operations.partials import derivatives, in_double, kernel, scipy_operation

LN10, RADIAN = math.log(10.0), math.pi / 180

# ---- products with logarithms --------------------------------------------------------------------------------


def _of_floats(name: str) -> Callable[..., Any]:
    """Return JAX's function ``name``, whose own rules fail for integers, for arguments of one floating dtype."""
    return lambda xp, *args: in_double(xp, special(xp, name), *args)


#: ``log1p`` by SciPy: NumPy's loses the digits of small complex numbers.
complex_log1p: Operation = elementwise(
    "complex_log1p", kernel("log1p", lambda xp, x: xp.log1p(x)), dx=lambda t, x: t / (x - -1.0)
)


def accurate_log1p(x: Any) -> Any:
    """Return ``log(1 + x)``, accurate for small numbers, complex ones too."""
    return complex_log1p(x) if is_complex(x) else log1p(x)


def _quotient(xp: Any, x: Any, y: Any) -> Any:
    none = (x == 0) & (y == 0)
    return xp.where(none, 0, x / xp.where(none, 1, y))


#: ``x / y``, and 0 where both are 0: products with logarithms of y and divergences are 0 for every y where x is 0.
quotient: Operation = elementwise(
    "quotient",
    _quotient,
    dx=lambda y: divide(1.0, as_numpy_number(y)),
    dy=lambda x, y: -quotient(quotient(x, y), y),
)


xlogy: Operation = scipy_operation("xlogy", _of_floats("xlogy"), dx=lambda y: log(y), dy=lambda x, y: quotient(x, y))
xlog1py: Operation = scipy_operation(
    "xlog1py", _of_floats("xlog1py"), dx=lambda y: accurate_log1p(y), dy=lambda x, y: quotient(x, y - -1)
)
entr: Operation = scipy_operation("entr", dx=lambda x: -log(x) - 1)


rel_entr: Operation = scipy_operation(
    "rel_entr", dx=lambda x, y: log(divide(as_numpy_number(x), y)) + 1, dy=lambda x, y: -quotient(x, y)
)
kl_div: Operation = scipy_operation(
    "kl_div", dx=lambda x, y: log(divide(as_numpy_number(x), y)), dy=lambda x, y: 1 - quotient(x, y)
)

# ---- losses --------------------------------------------------------------------------------------------------


huber: Operation = scipy_operation(
    "huber",
    lambda xp, delta, r: xp.where(
        delta < 0, math.inf, xp.where(xp.abs(r) <= delta, 0.5 * r * r, delta * (xp.abs(r) - 0.5 * delta))
    ),
    dx=lambda x, y: where(less_equal(absolute(y), x), 0, absolute(y) - x),
    dy=lambda x, y: clip(y, -x, x),
)


def _pseudo_huber_of_jax(xp: Any, delta: Any, r: Any) -> Any:
    size = xp.hypot(delta, r) + delta
    return xp.where(delta < 0, math.inf, delta * r * r / xp.where(size > 0, size, 1))


def _pseudo_huber_dx(x: Any, y: Any) -> Any:
    """Return ``y**4 / (h (h + x)**2)``, h = hypot(x, y): this is ``2 (h - x) - y**2 / h`` without cancellation."""
    h = hypot(x, y)
    ratio = y / (h + x)
    return ratio * ratio * y * (y / h)


#: ``x * y / hypot(x, y)``, whose derivatives are cubes.
harmonic: Operation = elementwise(
    "harmonic",
    lambda xp, x, y: y * x / xp.hypot(x, y),
    dx=lambda x, y: (y / hypot(x, y)) ** 3,
    dy=lambda x, y: (x / hypot(x, y)) ** 3,
)
pseudo_huber: Operation = scipy_operation(
    "pseudo_huber", _pseudo_huber_of_jax, dx=_pseudo_huber_dx, dy=lambda x, y: harmonic(x, y)
)

# ---- the logistic function -----------------------------------------------------------------------------------

#: ``expit(x) * expit(-x)``. Its derivative is one product, 0 where a difference of two would leave rounding errors.
logistic_density: Operation = elementwise(
    "logistic_density",
    lambda xp, x: special(xp, "expit")(x) * special(xp, "expit")(-x),
    dx=lambda x, ans: -ans * tanh(0.5 * x),
)
expit: Operation = scipy_operation("expit", dx=lambda x: logistic_density(x))
logit: Operation = scipy_operation("logit", dx=lambda t, x: t / (x * (1 - x)))
log_expit: Operation = scipy_operation("log_expit", lambda xp, x: -xp.logaddexp(-x, 0.0), dx=lambda x: expit(-x))

# ---- quotients with a removable singularity -------------------------------------------------------------------


def _exprel(xp: Any, x: Any, order: int) -> Any:
    """Return the derivative of this order of ``(exp(x) - 1) / x``: ``sum_k x**k / (k! (k + order + 1))``.

    Far from 0, where the series would be long, ``f_n = (exp(x) - n f_(n-1)) / x``. For positive x all terms are divided
    by ``exp(x)``, so that no term overflows before the result does.
    """
    limit = max(1.0, order / 2)
    small = xp.abs(x) < limit
    far, near = xp.where(small, limit, x), xp.where(small, x, 0)
    above = xp.where(far > 0, far, 0)
    fallen = xp.exp(far - above)
    recurrent = xp.where(far > 0, -xp.expm1(-above), xp.expm1(far - above)) / far
    for n in range(1, order + 1):
        recurrent = (fallen - n * recurrent) / far
    root = xp.exp(above / 2)
    recurrent = recurrent * root * root
    series = 0
    for k in reversed(range(20 + 2 * order)):
        series = series * near + 1 / (math.factorial(k) * (k + order + 1))
    return xp.where(small, series, recurrent)


def _sinh_quotient(xp: Any, x: Any, order: int) -> Any:
    """Return the derivative of this order of ``sinh(x) / x``; near 0 by the series, so that odd orders vanish at 0."""
    if order == 0:
        nothing = x == 0
        return xp.where(nothing, 1, xp.sinh(x) / xp.where(nothing, 1, x))
    small = xp.abs(x) < 1
    near, series = xp.where(small, x, 0), 0
    first = (order + 1) // 2
    for k in reversed(range(first, first + 12)):
        series = series * (near * near) + math.perm(2 * k, order) / math.factorial(2 * k + 1)
    far = xp.where(small, 1, x)
    apart = 0.5 * (_exprel(xp, far, order) + (-1) ** order * _exprel(xp, -far, order))
    return xp.where(small, series * near if order % 2 else series, apart)


#: ``sinh_quotient(x, *, order)``: derivative of this order.
sinh_quotient: Operation = derivatives("sinh_quotient", None, _sinh_quotient)

#: ``exprel(x, *, order)``: derivative of this order.
exprel: Operation = derivatives("exprel", kernel("exprel", lambda xp, x: _exprel(xp, x * 1.0, 0)), _exprel)


def _log1p_quotient(xp: Any, x: Any, order: int) -> Any:
    """Return the derivative of this order of ``log(1 + x) / x``, by series or by ``f_n = (L_n - n f_(n-1)) / x``.

    L_n is the derivative of order n of the logarithm.
    """
    small = xp.abs(x) < 0.25
    far, near = xp.where(small, 1, x), xp.where(small, x, 0)
    recurrent = xp.log1p(far) / far
    for n in range(1, order + 1):
        recurrent = (-((-1) ** n) * math.factorial(n - 1) / (1 + far) ** n - n * recurrent) / far
    series = 0
    for k in reversed(range(order, order + 26 + 2 * order)):
        series = series * near + (-1) ** k * math.perm(k, order) / (k + 1)
    return xp.where(small, series, recurrent)


#: ``log1p_quotient(x, *, order)``: derivative of this order.
log1p_quotient: Operation = derivatives("log1p_quotient", None, _log1p_quotient)

# ---- Box's and Cox's transform -------------------------------------------------------------------------------


def _times_exprel(xp: Any, logarithm: Any, lmbda: Any) -> Any:
    """Return ``expm1(lmbda * logarithm) / lmbda``, and ``logarithm`` for ``lmbda`` 0."""
    none = lmbda == 0
    return xp.where(none, logarithm, xp.expm1(lmbda * logarithm) / xp.where(none, 1, lmbda))


def boxcox_slope(logarithm: Any, lmbda: Any) -> Any:
    """Return the derivative of ``boxcox`` in ``lmbda``, from the logarithm of the base; at -inf its limit."""
    nothing = equal(logarithm, -math.inf)
    log_base = where(nothing, 1, logarithm)
    limit = power(where(nothing, lmbda, 1), -2)
    return where(nothing, limit, log_base * log_base * exprel(lmbda * log_base, order=1))


boxcox: Operation = scipy_operation(
    "boxcox",
    lambda xp, x, lmbda: _times_exprel(xp, xp.log(x), lmbda),
    dx=lambda x, y: power(as_numpy_number(x), y - 1),
    dy=lambda x, y: boxcox_slope(log(x), y),
)
boxcox1p: Operation = scipy_operation(
    "boxcox1p",
    lambda xp, x, lmbda: _times_exprel(xp, xp.log1p(x), lmbda),
    dx=lambda x, y: power(as_numpy_number(x) - -1, y - 1),
    dy=lambda x, y: boxcox_slope(log1p(x), y),
)


def _inverse_exponent(xp: Any, y: Any, lmbda: Any) -> Any:
    none = lmbda == 0
    return xp.where(none, y, xp.log1p(lmbda * y) / xp.where(none, 1, lmbda))


def _inverse_slope(x: Any, y: Any) -> Any:
    """Return the derivative of ``log(1 + y x) / y`` in y."""
    return x * x * log1p_quotient(x * y, order=1)


inv_boxcox: Operation = scipy_operation(
    "inv_boxcox",
    lambda xp, y, lmbda: xp.exp(_inverse_exponent(xp, y, lmbda)),
    dx=lambda x, y, ans: ans / (x * y - -1),
    dy=lambda x, y, ans: ans * _inverse_slope(x, y),
)
inv_boxcox1p: Operation = scipy_operation(
    "inv_boxcox1p",
    lambda xp, y, lmbda: xp.expm1(_inverse_exponent(xp, y, lmbda)),
    dx=lambda x, y, ans: (ans - -1) / (x * y - -1),
    dy=lambda x, y, ans: (ans - -1) * _inverse_slope(x, y),
)

# ---- others --------------------------------------------------------------------------------------------------


powm1: Operation = scipy_operation(
    "powm1",
    lambda xp, x, y: xp.where(x > 0, xp.expm1(y * xp.log(xp.where(x > 0, x, 1))), xp.power(x, y) - 1),
    dx=lambda x, y: y * power(as_numpy_number(x), y - 1),
    dy=lambda x, y: power(as_numpy_number(x), y) * log(x),
)
cosm1: Operation = scipy_operation("cosm1", lambda xp, x: -2 * xp.sin(x / 2) ** 2, dx=lambda x: -sin(x))


def _lambertw_slope(t: Any, ans: Any, *, k: int, tol: float) -> Any:
    """Return ``t`` times the derivative ``exp(-w) / (1 + w)`` (DLMF 4.13.4 with 4.13.1)."""
    return t * (exp(-ans) / (ans - -1))


lambertw: Operation = primitive(
    "lambertw",
    lambda xp, z, *, k, tol: special(xp, "lambertw")(z, k, tol),
    vjps=[_lambertw_slope],
    jvps=[_lambertw_slope],
    batch="elementwise",
)
#: ``x / (x + 1)``, whose derivative contains no difference.
share: Operation = elementwise("share", lambda xp, x: x / (x + 1), dx=lambda x: 1 / ((x - -1) * (x - -1)))
wrightomega: Operation = scipy_operation("wrightomega", dx=lambda ans: share(ans))
exp10: Operation = scipy_operation("exp10", lambda xp, x: xp.power(10.0, x), dx=lambda ans: ans * LN10)

#: Trigonometric functions of degrees.
sindg: Operation = scipy_operation("sindg", lambda xp, x: xp.sin(x * RADIAN), dx=lambda x: cosdg(x) * RADIAN)
cosdg: Operation = scipy_operation("cosdg", lambda xp, x: xp.cos(x * RADIAN), dx=lambda x: sindg(x) * -RADIAN)
tandg: Operation = scipy_operation("tandg", lambda xp, x: xp.tan(x * RADIAN), dx=lambda ans: (ans * ans + 1) * RADIAN)
cotdg: Operation = scipy_operation(
    "cotdg", lambda xp, x: 1 / xp.tan(x * RADIAN), dx=lambda ans: (ans * ans + 1) * -RADIAN
)
