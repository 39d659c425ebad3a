"""SciPy's searches that only compare values: what they find moves with a parameter, though no step of theirs does.

What a search among many minima finds is differentiated as a minimum: see ``funcgrad.scipy.optimize.minimize``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.errors import ConversionError, FuncgradError
from funcgrad.numpy_code.random import Random

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


def _among_many(module: str, name: str) -> Callable[..., Any]:
    """A search among many minima: SciPy's of plain values, whose answer is a minimum within the bounds."""

    def call(*args: Any, **kwargs: Any) -> Any:
        theirs = getattr(import_module(module), name)
        options = dict(inspect.signature(theirs).bind(*args, **kwargs).arguments)
        for told in ("integrality", "constraints"):
            if np.size(options.get(told, ())):
                raise ConversionError(
                    f"optimize.{name}: with {told} the answer has no derivative rule, got traced values. Take "
                    "optimize.minimize from the point that it finds with stop_gradient of what is traced."
                )
        func, bounds, args = options.pop("func"), options.pop("bounds"), options.pop("args", ())
        begins = "x0" in options and options["x0"] is not None
        x0 = options.pop("x0", None)
        options = {key: value.source if type(value) is Random else value for key, value in options.items()}

        def search(fun: Any, x0: Any, bounds: Any, **ignored: Any) -> Any:
            try:
                return theirs(fun, list(zip(*_ends(bounds), strict=True)), **({"x0": x0} if begins else {}), **options)
            except RuntimeError as error:  # SciPy tells of what went wrong in a whole generation
                if isinstance(error.__cause__, FuncgradError):
                    raise error.__cause__ from None
                raise

        if not begins:
            x0 = sum(map(fnp.asarray, _ends(bounds))) / 2
        return _own("minimize")(func, x0, args, method=search, jac="2-point", bounds=bounds)

    return call


def _ends(bounds: Any) -> tuple[Any, Any]:
    if hasattr(bounds, "lb"):
        return bounds.lb, bounds.ub
    low, high = zip(*bounds, strict=True)
    return fnp.stack(low), fnp.stack(high)


MINIMA: dict[tuple[str, str], Any] = {
    **{
        (f"scipy.optimize.{home}", name): _among_many(f"scipy.optimize.{home}", name)
        for home, name in (
            ("_differentialevolution", "differential_evolution"),
            ("_direct_py", "direct"),
            ("_dual_annealing", "dual_annealing"),
            ("_shgo", "shgo"),
        )
    },
    ("scipy.optimize._optimize", "fmin"): _fmin,
    ("scipy.optimize._optimize", "golden"): _golden,
}
