"""SciPy's searches that only compare values: what they find moves with a parameter, though no step of theirs does."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from funcgrad.errors import ConversionError

__all__ = ["MINIMA"]


def _own(name: str) -> Any:
    return getattr(import_module("funcgrad.scipy.optimize"), name)


def _fmin(
    func: Any,
    x0: Any,
    args: Any = (),
    xtol: float = 1e-4,
    ftol: float = 1e-4,
    maxiter: Any = None,
    maxfun: Any = None,
    full_output: Any = 0,
    disp: Any = 1,
    retall: Any = 0,
    callback: Any = None,
    initial_simplex: Any = None,
) -> Any:
    """``scipy.optimize.fmin``."""
    if retall:
        raise ConversionError(
            "fmin: the points that a search passes have no derivative of use, got retall=True. Leave it out."
        )
    limits = {"maxiter": maxiter, "maxfev": maxfun, "initial_simplex": initial_simplex}
    options = {"xatol": xtol, "fatol": ftol, "disp": bool(disp), **{k: v for k, v in limits.items() if v is not None}}
    found = _own("minimize")(func, x0, args, method="Nelder-Mead", callback=callback, options=options)
    return (found.x, found.fun, found.nit, found.nfev, found.status) if full_output else found.x


def _golden(
    func: Any,
    args: Any = (),
    brack: Any = None,
    tol: Any = 1.4901161193847656e-08,
    full_output: Any = 0,
    maxiter: int = 5000,
) -> Any:
    """``scipy.optimize.golden``."""
    options = {"xtol": tol, "maxiter": maxiter}
    found = _own("minimize_scalar")(func, brack, args=args, method="golden", options=options)
    return (found.x, found.fun, found.nfev) if full_output else found.x


MINIMA: dict[tuple[str, str], Any] = {
    ("scipy.optimize._optimize", "fmin"): _fmin,
    ("scipy.optimize._optimize", "golden"): _golden,
}
