"""SciPy's Legendre functions with derivatives in their results, such as ``scipy.special.legendre_p``.

Degrees and orders are constants. The derivatives that ``diff_n`` requests are computed in forward mode here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.errors import ConversionError
from funcgrad.numpy_code.conversions import holds_traced
from funcgrad.numpy_code.own import own
from funcgrad.optional import import_scipy

Function = Callable[[Any, Any, Any], Any]
_special = partial(own, "scipy.special")


def _associated(n: Any, m: Any, z: Any) -> Any:
    return _inside(n, m, lambda m: _special().lpmv(m, n, z))


def _normalized(n: Any, m: Any, z: Any) -> Any:
    """Compute with the factor of SciPy's documentation: ``sqrt((2n + 1) (n - m)! / (2 (n + m)!))``."""
    theirs = import_scipy("special.assoc_legendre_p", "scipy.special")
    m_inside = np.where(abs(m) > n, 0, m)
    log_ratio = theirs.gammaln(n - m_inside + 1) - theirs.gammaln(n + m_inside + 1)
    return np.sqrt((2 * n + 1) / 2 * np.exp(log_ratio)) * _associated(n, m, z)


def _inside(n: Any, m: Any, compute: Callable[[Any], Any]) -> Any:
    """Return ``compute(m)``, but zero where the order is larger than the degree."""
    return fnp.where(abs(m) > n, 0.0, compute(np.where(abs(m) > n, 0, m)))


def _slope(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the derivative of an elementwise function."""
    return lambda z: own("transforms").jvp(f, (z,), (fnp.ones_like(z),))[1]


def _compute(name: str, function: Function, all_orders: bool, *args: Any, diff_n: int = 0, **options: Any) -> Any:
    """Compute SciPy's function of this name, for one degree and order or for all up to these."""
    *constants, z = args
    if holds_traced(constants) or options.get("branch_cut", 2) != 2 or fnp.iscomplexobj(z):
        raise ConversionError(
            f"special.{name}: only the real argument may be traced, with the default branch_cut, got traced values "
            "elsewhere, complex numbers or another branch. Use stop_gradient for degrees and orders."
        )
    function = _normalized if options.get("norm") else function
    z, degree = fnp.asarray(z) * 1.0, np.asarray(constants[0])
    order = np.asarray(constants[1] if len(constants) > 1 else 0)
    if all_orders:
        rank = z.ndim
        m = int(order)
        order = np.array([*range(m + 1), *range(-m, 0)]).reshape(-1, *(1,) * rank)
        degree = np.arange(int(degree) + 1).reshape(-1, *(1,) * (rank + (len(constants) > 1)))
        order = order if len(constants) > 1 else np.asarray(0)
    f: Callable[[Any], Any] = lambda z: function(degree, order, z)
    values = [f(z)]
    for _ in range(diff_n):
        f = _slope(f)
        values.append(f(z))
    return fnp.astype(fnp.stack(values), _dtype(name, constants, z))


def _dtype(name: str, constants: Any, *points: Any) -> Any:
    """Return the dtype of SciPy's function for such numbers, which differs between functions in single precision."""
    theirs = getattr(import_scipy(f"special.{name}", "scipy.special"), name)
    return theirs(*constants, *[np.zeros((), x.dtype) for x in points]).dtype


def _harmonics(n: int, m: int, theta: Any, phi: Any, *, diff_n: int = 0) -> Any:
    """Compute ``scipy.special.sph_harm_y_all`` without ``diff_n``."""
    if diff_n:
        raise ConversionError(
            f"special.sph_harm_y_all: traced angles go without diff_n, got {diff_n}. Differentiate the result."
        )
    rank = max(np.ndim(theta), np.ndim(phi))
    degree = np.arange(n + 1).reshape(-1, *(1,) * (rank + 1))
    order = np.array([*range(m + 1), *range(-m, 0)]).reshape(-1, *(1,) * rank)
    theta, phi = [fnp.asarray(x) * 1.0 for x in (theta, phi)]
    found = _inside(degree, order, lambda m: _special().sph_harm_y(degree, m, theta, phi))
    return fnp.astype(found, _dtype("sph_harm_y_all", (n, m), theta, phi))


_FUNCTIONS: dict[str, Function] = {
    "assoc_legendre_p": _associated,
    "legendre_p": lambda n, m, z: _special().eval_legendre(n, z),
    "sph_legendre_p": lambda n, m, z: _inside(n, m, lambda m: fnp.real(_special().sph_harm_y(n, m, z, 0.0))),
}
LEGENDRE: dict[tuple[str, str], Callable[..., Any]] = {
    ("scipy.special._multiufuncs", name + end): partial(_compute, name + end, function, bool(end))
    for name, function in _FUNCTIONS.items()
    for end in ("", "_all")
} | {("scipy.special._multiufuncs", "sph_harm_y_all"): _harmonics}
