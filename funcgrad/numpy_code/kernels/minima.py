"""SciPy's searches that only compare values: their results depend on parameters, though their steps do not.

The result of a search for a global minimum is differentiated as a minimum, see ``funcgrad.scipy.optimize.minimize``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.errors import ConversionError, FuncgradError
from funcgrad.numpy_code.own import own
from funcgrad.numpy_code.random import plain_source
from funcgrad.optional import import_scipy


def _unpacked(args: Any) -> Any:
    """Return further arguments as a tuple: these SciPy functions unpack lists, too."""
    return tuple(args) if isinstance(args, list) else args


def _search(module: str, name: str, method: str) -> Callable[..., Any]:
    """Return the search behind older SciPy functions, such as ``fmin_bfgs``, and ``minimize`` for this method."""

    def call(*args: Any, **kwargs: Any) -> Any:
        theirs = inspect.signature(getattr(import_module(module), name))
        given = dict(theirs.bind(*args, **kwargs).arguments)
        if given.pop("return_all", False):
            raise ConversionError(
                f"optimize, method {method}: the points that a search passes have no derivative of use, got "
                "retall=True. Leave it out."
            )
        given |= given.pop("unknown_options", {})
        fun, start = given.pop("func", None) or given.pop("fun"), given.pop("x0")
        further = _unpacked(given.pop("args", ()))
        if type(fun).__name__ == "MemoizeJac":  # its cache holds results for plain values
            fun, given["jac"] = fun.fun, True
        named = {key: value for key in _NAMED & given.keys() if (value := given.pop(key)) is not None}
        callback: Any = named.get("callback")
        if hasattr(callback, "stop_iteration"):  # SciPy has wrapped it, and will do so again
            named["callback"] = lambda intermediate_result: callback(intermediate_result)
        if not np.size(named.get("bounds", 0)):
            del named["bounds"]
        options = {key: value for key, value in given.items() if value is not theirs.parameters[key].default}
        found = own("scipy.optimize").minimize(fun, start, further, method=method, options=options, **named)
        return type(found)({"hess_inv": None, "direc": None, **found})  # fields without derivatives are None

    return call


#: Names of parameters of ``minimize``; other settings are options.
_NAMED = {"bounds", "callback", "constraints", "hess", "hessp", "jac"}


def _search_on_a_line(method: str) -> Callable[..., Any]:
    """Return the search behind ``brent``, ``fminbound`` and ``golden``."""
    where = "bounds" if method == "bounded" else "bracket"

    def call(func: Any, within: Any = None, args: Any = (), **options: Any) -> Any:
        return own("scipy.optimize").minimize_scalar(
            func, args=_unpacked(args), method=method, options=options, **{where: within}
        )

    return call


def _elementwise_function(name: str) -> Callable[..., Any]:
    return lambda *args, **kwargs: getattr(own("scipy.optimize.elementwise"), name)(*args, **kwargs)


def _elementwise_solution(name: str, func: Any, init: Any, args: Any, ends: str, options: dict[str, Any]) -> Any:
    """Return a result of an elementwise search with the names that SciPy uses internally."""
    stops = {key: options.pop(key) for key in ("maxiter", "callback") if key in options}
    args, kwargs = args if isinstance(args, (tuple, list)) else (args,), options.pop("kwargs", None)
    found = _elementwise_function(name)(func, init, args=args, kwargs=kwargs, tolerances=options, **stops)
    bracket = dict(zip(ends.split(), found.get("bracket", ()), strict=False))  # the result of a batch has none
    return type(found)({**found, **bracket, "fun": found["f_x"]})


def _root(func: Any, a: Any, b: Any, *, args: Any = (), **options: Any) -> Any:
    return _elementwise_solution("find_root", func, (a, b), args, "xl xr", options)


def _minimum(func: Any, x1: Any, x2: Any, x3: Any, *, args: Any = (), **options: Any) -> Any:
    return _elementwise_solution("find_minimum", func, (x1, x2, x3), args, "xl xm xr", options)


def _bracket(name: str, fields: str) -> Callable[..., Any]:
    """Return a search for brackets: SciPy's with plain values, because the ends of brackets are constants."""

    def call(*start: Any, args: Any = (), kwargs: Any = None, **options: Any) -> Any:
        label, tells, implicit = f"optimize.elementwise.{name[1:]}", fields.split(), own("scipy.optimize.implicit")
        theirs = getattr(import_scipy(label, "scipy.optimize._bracket"), name)
        options = dict(inspect.signature(theirs).bind(*start, **options).arguments)
        func, args = implicit.by_position(options.pop("func"), implicit.as_args(args, unpacks=True), kwargs)

        def solve(problem: Any, *given: Any) -> Any:
            settings, args = implicit.plain(label, given)
            result = theirs(lambda *point: problem(point), args=args, **dict(zip(options, settings, strict=True)))
            return np.stack([result[field] for field in tells]), result

        settings = list(options.values())
        guess = (1.0 * fnp.asarray(settings[0]), *args)
        found = implicit.search(label, lambda point: func(*point), (), (settings, tuple(args)), solve, guess)
        ends = dict(zip(tells, found.x, strict=True))
        return import_scipy(label, "scipy.optimize").OptimizeResult({**found.facts, **ends})

    return call


def _global_search(module: str, name: str) -> Callable[..., Any]:
    """Return a global search: SciPy's with plain values, whose result is a minimum within the bounds."""

    def call(*args: Any, **kwargs: Any) -> Any:
        theirs = getattr(import_module(module), name)
        options = dict(inspect.signature(theirs).bind(*args, **kwargs).arguments)
        for told in ("integrality", "constraints"):
            if np.size(options.get(told, ())):
                raise ConversionError(
                    f"optimize.{name}: with {told} the answer has no derivative rule, got traced values. Take "
                    "optimize.minimize from the point that it finds with stop_gradient of what is traced."
                )
        func, bounds = options.pop("func"), options.pop("bounds")
        args = _unpacked(options.pop("args", ()))
        begins = "x0" in options and options["x0"] is not None
        x0 = options.pop("x0", None)
        options = {key: plain_source(value) for key, value in options.items()}

        def search(fun: Any, x0: Any, bounds: Any, **ignored: Any) -> Any:
            try:
                return theirs(fun, list(zip(*_ends(bounds), strict=True)), **({"x0": x0} if begins else {}), **options)
            except RuntimeError as error:  # raised by SciPy if a whole generation fails
                if isinstance(error.__cause__, FuncgradError):
                    raise error.__cause__ from None
                raise

        if not begins:
            x0 = sum(map(fnp.asarray, _ends(bounds))) / 2
        return own("scipy.optimize").minimize(func, x0, args, method=search, jac="2-point", bounds=bounds)

    return call


def _ends(bounds: Any) -> tuple[Any, Any]:
    if hasattr(bounds, "lb"):
        return bounds.lb, bounds.ub
    low, high = zip(*bounds, strict=True)
    return fnp.stack(low), fnp.stack(high)


MINIMA: dict[tuple[str, str], Any] = {
    **{
        (f"scipy.optimize.{home}", name): _global_search(f"scipy.optimize.{home}", name)
        for home, name in (
            ("_differentialevolution", "differential_evolution"),
            ("_direct_py", "direct"),
            ("_dual_annealing", "dual_annealing"),
            ("_shgo", "shgo"),
        )
    },
    **{
        (f"scipy.optimize.{home}", name): _search(f"scipy.optimize.{home}", name, method)
        for home, name, method in (
            ("_optimize", "_minimize_bfgs", "BFGS"),
            ("_optimize", "_minimize_cg", "CG"),
            ("_optimize", "_minimize_neldermead", "Nelder-Mead"),
            ("_optimize", "_minimize_newtoncg", "Newton-CG"),
            ("_optimize", "_minimize_powell", "Powell"),
            ("_cobyla_py", "_minimize_cobyla", "COBYLA"),
            ("_lbfgsb_py", "_minimize_lbfgsb", "L-BFGS-B"),
            ("_slsqp_py", "_minimize_slsqp", "SLSQP"),
            ("_tnc", "_minimize_tnc", "TNC"),
        )
    },
    **{
        ("scipy.optimize._optimize", f"_minimize_scalar_{method}"): _search_on_a_line(method)
        for method in ("bounded", "brent", "golden")
    },
    ("scipy.optimize._chandrupatla", "_chandrupatla"): _root,
    ("scipy.optimize._chandrupatla", "_chandrupatla_minimize"): _minimum,
    ("scipy.optimize._bracket", "_bracket_root"): _bracket("_bracket_root", "xl xr fl fr"),
    ("scipy.optimize._bracket", "_bracket_minimum"): _bracket("_bracket_minimum", "xl xm xr fl fm fr"),
    **{("scipy.optimize._elementwise", name): _elementwise_function(name) for name in ("find_minimum", "find_root")},
}
