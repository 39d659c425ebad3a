"""Calls of public functions from which draws start: the table of operations and the table of SciPy's functions."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.special
import scipy.stats
import scipy_samples
from operations import cases
from operations.names import THEIRS, named
from operations.spec import Sample
from scipy.stats._distr_params import distcont
from scipy_samples import words

X = np.array([0.62, 1.41, 0.93, 1.77])
NUMPY = "numpy"
SCIPY = ("signal", "ndimage", "linalg", "interpolate", "special", "stats", "spatial", "integrate", "optimize")
FAMILIES = (NUMPY, *SCIPY, "fft", "sparse", "distributions", "indexing")
METHODS = ("pdf", "logpdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf")


#: Functions whose value is not unique: signs of vectors, the triangle that is not read, free columns.
OPEN = frozenset(
    words(
        "cho_factor eigh eigvalsh eigh_tridiagonal eig_banded eig null_space orth qr rq svd ldl eigs eigsh svds polar "
        "subspace_angles orthogonal_procrustes qr_multiply schur hessenberg"
    )
)


@dataclass(frozen=True)
class Call:
    """One call: a name, the function here and at NumPy's or SciPy's, and its arguments.

    Args:
        name: what is called.
        ours: the function with derivatives, or SciPy's function, which a transform rebuilds.
        theirs: the function that says which value is right.
        sample: the arguments, and which of them are neither differentiated nor mapped.
        options: values to try for each keyword argument.
        exact: whether the values are accurate enough for differences of a small step.
    """

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    sample: Sample
    options: dict[str, Sequence[Any]] = field(default_factory=dict)
    exact: bool = True


@cache
def calls(family: str) -> list[Call]:
    """Return every call of a family."""
    if family == "distributions":
        return [*_distributions()]
    found = [*_of_rows(family)]
    home = "spatial.distance" if family == "spatial" else family
    for name, sample in scipy_samples.TABLE.get(f"scipy.{home}", {}).items():
        left_out = OPEN.union(scipy_samples.REFUSED.get(f"scipy.{home}", ()))
        if sample is not None and name not in left_out and hasattr(importlib.import_module(f"scipy.{home}"), name):
            found.append(_of_sample(f"scipy.{home}", name, sample))
    return found


def _of_rows(family: str) -> Iterator[Call]:
    """Generate the calls of the table of operations."""
    for row in cases.rows():
        space = row.op.name.split(".")
        of_scipy = space[0] == "scipy"
        if space[0] == "nn" or not row.op.differentiable or (space[1] if of_scipy else NUMPY) != family:
            continue
        if "not exact enough" in row.op.reason:  # a search that depends on values stops away from a formula's result
            continue
        for case in row.cases:
            theirs = case.numpy or case.fun
            documented = named(row.op.name, THEIRS) or theirs
            yield Call(row.op.name, case.fun, theirs, case.sample, options_of(theirs, documented))


def _of_sample(module: str, name: str, sample: Callable[..., Any]) -> Call:
    """Return a call of SciPy's table: of the function itself, or of all that the sample does with the function."""
    home = importlib.import_module(module)
    theirs, seen = getattr(home, name), []

    def spy(*args: Any, **kwargs: Any) -> Any:
        seen.append((args, kwargs))
        return theirs(*args, **kwargs)

    others = {other: getattr(home, other) for other in dir(home) if not other.startswith("_")}
    with suppress(AttributeError), warnings.catch_warnings():  # the function may be a class, which the spy is not
        warnings.simplefilter("ignore")
        sample(SimpleNamespace(**{**others, name: spy}), X)
    args, kwargs = seen[0] if seen else ((), {})
    options = options_of(theirs, theirs)
    if seen and not inspect.isclass(theirs) and not any(callable(a) for a in (*args, *kwargs.values())):
        return Call(f"{module}.{name}", theirs, theirs, Sample(args, kwargs), options)

    def whole(x: Any, **more: Any) -> Any:
        def fun(*args: Any, **kwargs: Any) -> Any:
            return theirs(*args, **{**kwargs, **more})

        return sample(SimpleNamespace(**{**others, name: fun if more else theirs}), x)

    exact = name not in scipy_samples.ROUGH and "optimize" not in module
    return Call(f"{module}.{name}", whole, whole, Sample((X,)), options, exact)


def _distributions() -> Iterator[Call]:
    """Generate the methods of SciPy's continuous distributions."""
    for name, args in distcont:
        if isinstance(name, str) and name not in scipy_samples.REFUSED_DENSITIES | scipy_samples.WHOLE:
            home = getattr(scipy.stats, name)
            points = np.asarray(home.ppf([0.2, 0.37, 0.8], *args))
            for method in METHODS:
                fun = getattr(home, method)
                at = np.array([0.2, 0.37, 0.8]) if method in ("ppf", "isf") else points
                options = {"loc": (0.1, np.array([0.01, 0.02, -0.03])), "scale": (1.3, np.array([0.9, 1.1, 1.2]))}
                yield Call(f"scipy.stats.{name}.{method}", fun, fun, Sample((at, *map(float, args))), options)


# ---- keyword arguments -------------------------------------------------------------------------------------

AXES = (0, -1, 1, None, (0, 1), (-1,), -2, ())
MASKS = tuple(np.array(mask) for mask in (True, [True, False, True], [[True], [False]], [False, True]))
NAMED: dict[str, Sequence[Any]] = {
    "axis": AXES,
    "axes": AXES,
    "keepdims": (True, False),
    "where": MASKS,
    "initial": (0.7, 2, np.array(-0.3)),
    "dtype": (np.float32, np.float64, np.complex128, "f4", int),
    "order": ("C", "F", "A", "K", 1, 2, 3),
    "output": (np.float32, np.float64, np.complex128),
    "n": (2, 3, 5, 1, None),
    "s": ((2, 3), (3,), None),
    "overwrite_a": (True,),
    "overwrite_b": (True,),
    "overwrite_x": (True,),
    "subok": (True, False),
    "weights": (np.array([0.2, 0.5, 0.3]), np.array([1.0, 2.0, 0.5, 1.5]), None),
}
#: Functions for which, with this argument, SciPy 1.18 itself gives other factors of an array in Fortran order.
WRONG_IN_SCIPY = {("lu", "overwrite_a")}
LEFT_OUT = words(
    "rng random_state seed like disp full_output callback plot extra_keywords infodict casting signature sig "
    "workers device lapack_driver iprint retall maxiter xp show overwrite_input tol"
)


def options_of(fun: Callable[..., Any], documented: Any) -> dict[str, Sequence[Any]]:
    """Return the keyword arguments of a function with values to try, from its signature and its documentation."""
    if isinstance(fun, np.ufunc):
        if getattr(scipy.special, fun.__name__, None) is fun:
            return {}  # SciPy's functions write outside of their arrays if there is a mask
        return {name: NAMED[name] for name in ("where", "dtype", "order")} | {"out": ("like",)}
    if getattr(fun, "__name__", "").startswith("fmin"):
        return {}  # funcgrad's derivatives are exact, so a search that a tolerance ends early ends somewhere else
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):
        return {}
    text = inspect.getdoc(documented) or ""
    found: dict[str, Sequence[Any]] = {}
    for parameter in parameters:
        pair = getattr(fun, "__name__", ""), parameter.name
        if parameter.name in LEFT_OUT or parameter.kind not in (
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        ):
            continue
        if parameter.default is parameter.empty or pair in WRONG_IN_SCIPY:
            continue
        values = NAMED.get(parameter.name) or (("like",) if parameter.name == "out" else _values(parameter, text))
        if values:
            found[parameter.name] = values
    return found


def _values(parameter: inspect.Parameter, text: str) -> list[Any]:
    """Return values for a keyword argument: words in quotes, truth values, numbers."""
    head = re.search(rf"^{parameter.name}\s*(?:,[^:\n]*)?:([^\n]*)\n((?:(?: +[^\n]*)?\n)*)", text, re.MULTILINE)
    kind, body = head.groups() if head else ("", "")
    words = list(dict.fromkeys(re.findall(r"['\"]([a-z_\-]+)['\"]", kind + body)))[:12]
    if isinstance(parameter.default, bool) or "bool" in kind:
        return [True, False]
    if words and ("str" in kind or "{" in kind or isinstance(parameter.default, str)):
        return words
    if isinstance(parameter.default, float) or "float" in kind or "scalar" in kind:
        return [*words, 0.3, 0.05, 1.5, 2.0]
    if isinstance(parameter.default, int) or "int" in kind:
        return [*words, 0, 1, 2, 3, -1]
    return list(words)
