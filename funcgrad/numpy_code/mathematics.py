"""Functions of ``math``, ``cmath`` and ``statistics`` for traced numbers; for plain ones, Python's functions."""

from __future__ import annotations

import sys
from collections import abc, deque
from collections.abc import Callable
from functools import cache, partial, reduce, wraps
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.backend import is_jax_tracer
from funcgrad.core import Tracer, plain_value
from funcgrad.errors import ConcretizationError
from funcgrad.generated import with_values
from funcgrad.graph import is_on_graph, report_answer
from funcgrad.numpy.plain_values.concretization import as_python
from funcgrad.numpy_code.conversions import (
    as_complex,
    as_float,
    as_python_int,
    check_axes,
    holds_traced,
    is_traced,
    number_from_method,
    plain_values,
)
from funcgrad.numpy_code.own import own
from funcgrad.primitives.arithmetic import complex_of
from funcgrad.writable import Proxy


def _special(name: str) -> Callable[..., Any]:
    """Return a function of ``scipy.special``, which needs SciPy."""
    return lambda x: getattr(own("scipy.special"), name)(x)


def _joined(values: Any) -> Any:
    return fnp.stack(list(values))


def _joined_doubles(values: Any) -> Any:
    return _joined([_number(float, x) if is_traced(x) else x for x in values])


def _log(x: Any, base: Any = None) -> Any:
    return fnp.log(x) if base is None else fnp.log(x) / fnp.log(base)


def _hypot(*coordinates: Any) -> Any:
    return fnp.hypot(*coordinates) if len(coordinates) == 2 else fnp.linalg.norm(_joined(coordinates))


def _is_close(a: Any, b: Any, *, rel_tol: float = 1e-9, abs_tol: float = 0.0) -> Any:
    a, b = np.float64(1.0) * a, np.float64(1.0) * b
    return bool(abs(a - b) <= fnp.maximum(rel_tol * fnp.maximum(abs(a), abs(b)), abs_tol)) or bool(a == b)


def _frexp(x: Any) -> tuple[Any, int]:
    power = as_python_int(fnp.where(x == 0, 0.0, fnp.floor(fnp.log2(fnp.abs(fnp.where(x == 0, 1.0, x)))) + 1))
    return x / 2.0**power, power


def _prod(values: Any, *, start: Any = 1) -> Any:
    for x in values:
        start = start * x
    return start


def _rounded_to_int(rounding: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: as_python_int(rounding(x))


#: Functions of ``math`` that NumPy has under the same name.
_SHARED = (
    "acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees exp exp2 expm1 fabs fmod isfinite isinf "
    "isnan log10 log1p log2 nextafter pow radians sin sinh sqrt tan tanh"
)
#: Functions of one number, which have a faster check of their argument.
_UNARY = frozenset((*_SHARED.split(), "erf", "erfc", "gamma", "lgamma")) - frozenset(
    ("atan2", "copysign", "fmod", "nextafter", "pow")
)
#: Functions of ``math`` of sequences: all others are of numbers.
_OF_SEQUENCES = frozenset({"dist", "fsum", "prod", "sumprod"})
_MATH: dict[str, Callable[..., Any]] = {
    **{name: getattr(fnp, name) for name in _SHARED.split()},
    "ceil": _rounded_to_int(fnp.ceil),
    "dist": lambda p, q: fnp.linalg.norm(_joined_doubles(p) - _joined_doubles(q)),
    "erf": _special("erf"),
    "erfc": _special("erfc"),
    "floor": _rounded_to_int(fnp.floor),
    "fma": lambda x, y, z: x * y + z,
    "frexp": _frexp,
    "fsum": lambda values: fnp.sum(_joined_doubles(values)),
    "gamma": _special("gamma"),
    "hypot": _hypot,
    "isclose": _is_close,
    "ldexp": lambda x, i: x * 2.0**i,
    "lgamma": _special("gammaln"),
    "log": _log,
    "modf": lambda x: (x - fnp.trunc(x), fnp.trunc(x)),
    "prod": _prod,
    "remainder": lambda x, y: x - fnp.rint(x / y) * y,
    "sumprod": lambda p, q: fnp.sum(_joined(p) * _joined(q)),
    "trunc": _rounded_to_int(fnp.trunc),
    "ulp": lambda x: fnp.abs(fnp.spacing(x)),
}


def _as_complex(z: Any) -> Any:
    """Return ``z`` as complex numbers. ``z + 0j`` would lose the sign of a zero, which chooses a side of a cut."""
    return fnp.astype(fnp.asarray(z), np.complex128)


def _complex(name: str) -> Callable[..., Any]:
    return lambda z: getattr(fnp, name)(_as_complex(z))


#: Functions of ``cmath`` that NumPy has under the same name.
_SHARED_COMPLEX = "acos acosh asin asinh atan atanh cos cosh exp log10 sin sinh sqrt tan tanh"
_CMATH: dict[str, Callable[..., Any]] = {
    **{name: _complex(name) for name in _SHARED_COMPLEX.split()},
    "isclose": _is_close,
    "isfinite": fnp.isfinite,
    "isinf": fnp.isinf,
    "isnan": fnp.isnan,
    "log": lambda z, base=None: _log(_as_complex(z), base),
    "phase": fnp.angle,
    "polar": lambda z: (fnp.abs(z), fnp.angle(z)),
    "rect": lambda r, phi: complex_of(r * fnp.cos(phi), r * fnp.sin(phi)),
}


def _mean(data: Any, weights: Any = None) -> Any:
    return fnp.average(_joined(data), weights=None if weights is None else _joined(weights))


def _variance(data: Any, center: Any, ddof: int) -> Any:
    x = _joined(data)
    if len(x) <= ddof:
        raise import_module("statistics").StatisticsError(f"variance requires at least {ddof + 1} data points")
    return fnp.sum((x - (fnp.mean(x) if center is None else center)) ** 2) / (len(x) - ddof)


def _refuse_numbers(are_wrong: Any, name: str, rule: str) -> None:
    """Raise the error of ``statistics`` if any number is wrong, also in later runs of a recording; not on JAX."""
    if not is_jax_tracer(plain_value(are_wrong)) and fnp.any(are_wrong):
        raise import_module("statistics").StatisticsError(f"statistics.{name}: {rule}")


def _geometric_mean(data: Any) -> Any:
    x = _joined(data)
    if sys.version_info >= (3, 13):  # the mean of a zero and other numbers is 0
        _refuse_numbers(x < 0, "geometric_mean", "no number may be negative")
    else:
        _refuse_numbers(x <= 0, "geometric_mean", "all numbers must be positive")
    with np.errstate(divide="ignore"):
        return fnp.exp(fnp.mean(fnp.log(x)))


def _harmonic_mean(data: Any, weights: Any = None) -> Any:
    x = _joined(data)
    _refuse_numbers(x < 0, "harmonic_mean", "no number may be negative")
    w = np.ones(len(x)) if weights is None else _joined(weights)
    return fnp.sum(w) / fnp.sum(w / x)


def _middle(data: Any, low: bool, high: bool) -> Any:
    x = fnp.sort(_joined(data))
    n = len(x)
    below, above = x[(n - 1) // 2], x[n // 2]
    return below if low else above if high else (below + above) / 2


def _counts(x: Any) -> Any:
    """Return how often each element of ``x`` occurs in it."""
    return fnp.sum(x[:, None] == x, axis=1)


def _mode(data: Any) -> Any:
    x = _joined(data)
    return x[fnp.argmax(_counts(x))]


def _modes(data: Any) -> list[Any]:
    x = _joined(data)
    is_first = fnp.argmax(x[:, None] == x, axis=1) == np.arange(len(x))
    chosen = fnp.logical_and(is_first, _counts(x) == fnp.max(_counts(x)))
    return [x[i] for i in range(len(x)) if chosen[i]]


def _covariance(x: Any, y: Any, /) -> Any:
    x, y = _joined(x), _joined(y)
    return fnp.sum((x - fnp.mean(x)) * (y - fnp.mean(y))) / (len(x) - 1)


def _correlation(x: Any, y: Any, /, *, method: str = "linear") -> Any:
    if method != "linear":
        raise TypeError(f"statistics.correlation: ranks are steps, which have no derivative, got method={method!r}.")
    return _covariance(x, y) / fnp.sqrt(_covariance(x, x) * _covariance(y, y))


def _regression(x: Any, y: Any, /, *, proportional: bool = False) -> Any:
    x, y = _joined(x), _joined(y)
    found = import_module("statistics").LinearRegression
    if proportional:
        return found(fnp.sum(x * y) / fnp.sum(x * x), 0.0)
    slope = _covariance(x, y) / _covariance(x, x)
    return found(slope, fnp.mean(y) - slope * fnp.mean(x))


def _quantiles(data: Any, *, n: int = 4, method: str = "exclusive") -> list[Any]:
    x = fnp.sort(_joined(data))
    found, m = [], len(x) + (1 if method == "exclusive" else -1)
    for i in range(1, n):
        j = i * m // n
        if method == "exclusive":
            j = min(max(j, 1), len(x) - 1)
            delta, j = i * m - j * n, j - 1
        else:
            delta = i * m - j * n
        found.append((x[j] * (n - delta) + x[j + 1] * delta) / n)
    return found


_STATISTICS: dict[str, Callable[..., Any]] = {
    "_mean_stdev": lambda data: (_mean(data), fnp.sqrt(_variance(data, None, 1))),  # of NormalDist, like the next
    "_normal_dist_inv_cdf": lambda p, mu, sigma: mu + sigma * own("scipy.special").ndtri(p),
    "correlation": _correlation,
    "covariance": _covariance,
    "fmean": _mean,
    "geometric_mean": _geometric_mean,
    "harmonic_mean": _harmonic_mean,
    "linear_regression": _regression,
    "mean": _mean,
    "median": lambda data: _middle(data, False, False),
    "median_high": lambda data: _middle(data, False, True),
    "median_low": lambda data: _middle(data, True, False),
    "mode": _mode,
    "multimode": _modes,
    "pstdev": lambda data, mu=None: fnp.sqrt(_variance(data, mu, 0)),
    "pvariance": lambda data, mu=None: _variance(data, mu, 0),
    "quantiles": _quantiles,
    "stdev": lambda data, xbar=None: fnp.sqrt(_variance(data, xbar, 1)),
    "variance": lambda data, xbar=None: _variance(data, xbar, 1),
}
#: Functions for traced numbers, by module. The modules are imported at first use: ``statistics`` loads many others.
NUMBER_MODULES = {"math": _MATH, "cmath": _CMATH, "statistics": _STATISTICS}


#: What asks for the numbers that they take; ``statistics`` takes sequences.
_ASKED: dict[str, Any] = {"math": float, "cmath": complex, "statistics": None}
_NUMBERS, _FLOATS = frozenset((float, int, np.float64)), frozenset((float, np.float64))
_KNOWN = _NUMBERS | {Tracer}
_NUMBER = (int, float, complex, np.number, np.bool)


@cache
def python_function(module: str, name: str) -> Any:
    """Return the function ``name`` of ``math``, ``cmath`` or ``statistics``, for traced numbers too if there is one.

    Example:
        >>> import math
        >>> python_function("math", "hypot")(3.0, 4.0), python_function("math", "comb") is math.comb
        (5.0, True)
    """
    plain, traced_function = getattr(import_module(module), name), NUMBER_MODULES[module].get(name)
    if traced_function is None:
        return plain
    convert = None if name in _OF_SEQUENCES else _ASKED[module]
    if name in _UNARY:
        return _of_one_number(plain, traced_function, convert)
    if module == "math" and name == "log":
        natural, general = _of_one_number(plain, fnp.log, convert), _of_arguments(plain, traced_function, convert)
        return wraps(plain)(lambda *args: natural(*args) if len(args) == 1 else general(*args))
    if name in ("ceil", "floor", "trunc"):
        return _by_method(f"__{name}__", _of_arguments(plain, traced_function, convert))
    if convert is None and not name.startswith("_"):
        return _of_sequences(plain, traced_function)
    return _of_arguments(plain, traced_function, convert)


def _with_kernel(traced_function: Callable[..., Any], plain: Callable[..., Any]) -> Any:
    """Return the operation of ``traced_function`` with ``plain`` in place of its kernel; None for other functions."""
    operation = getattr(traced_function, "compute", traced_function)
    return with_values(operation, kernel=plain) if hasattr(operation, "text") else None


def _of_one_number(
    plain: Callable[..., Any], traced_function: Callable[..., Any], convert: Any
) -> Callable[[Any], Any]:
    """Return the function ``plain`` of one number, for traced numbers too."""
    of_float = _with_kernel(traced_function, plain)
    frequent = _FLOATS if of_float is not None else frozenset()

    @wraps(plain)
    def one(x: Any, /) -> Any:
        if type(x) is Tracer and type(x._val) in frequent and x._trace.fast_counter is not None:
            made = of_float(x)  # computed once, by Python's function
            if type(made) is Tracer and type(made._val) is float:
                made.aval = None  # that of ``x`` may be NumPy's; the tracer is new, so nothing else refers to it
                return made
        number = x._val if type(x) is Tracer else x
        if number is x and type(x) in _NUMBERS:
            return plain(x)
        if type(number) in _NUMBERS and x._trace.is_bit_exact:  # a recording computes with NumPy's numbers
            return _with_python_errors(plain, traced_function, x)
        if type(number) in _NUMBERS:
            found = plain(number)  # which raises the errors that programs catch
            if type(made := traced_function(x)) is not Tracer:
                return found
            made._val, made.aval = found, None  # the tracer is new, so nothing else refers to it
            return made
        if type(plain_value(x)) in _NUMBERS:
            return _as_python_numbers(_with_python_errors(plain, traced_function, x))
        (x,) = _as_asked(convert, (number_from_method(x, "__float__"),))
        return _as_python_numbers(_with_python_errors(plain, traced_function, x)) if is_traced(x) else plain(x)

    return one


def _by_method(name: str, of_numbers: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return ``of_numbers`` such that it calls the method of this name of a program's object that has one."""

    @wraps(of_numbers)
    def call(x: Any, /) -> Any:
        method = None if issubclass(type(x), (Tracer, Proxy)) else getattr(type(x), name, None)
        return method(x) if type(method) is FunctionType else of_numbers(x)

    return call


def _of_arguments(plain: Callable[..., Any], traced_function: Callable[..., Any], convert: Any) -> Callable[..., Any]:
    """Return the function ``plain`` of any arguments, for traced numbers too."""
    of_floats = _with_kernel(traced_function, plain)

    @wraps(plain)
    def either(*args: Any, **kwargs: Any) -> Any:
        if of_floats is not None and not kwargs and len(args) == 2 and (given := _floats_of_one_run(args)) is not None:
            made = of_floats(*given)
            if type(made) is Tracer and type(made._val) is float:
                made.aval = None  # as above
                return made
        args = tuple([x if type(x) in _KNOWN else number_from_method(_as_list(x), "__float__") for x in args])
        if any(is_traced(x) for x in args):
            args = _as_asked(convert, args)
            function = partial(traced_function, **kwargs) if kwargs else traced_function
            return _as_python_numbers(_with_python_errors(plain, function, *args))
        traced = (convert is None and holds_traced(args)) or holds_traced(kwargs.values())
        return _as_python_numbers(traced_function(*args, **kwargs)) if traced else plain(*args, **kwargs)

    return either


def _of_sequences(plain: Callable[..., Any], traced_function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function ``plain`` of sequences of numbers, for traced numbers too."""

    @wraps(plain)
    def of_sequences(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tuple(map(_as_list, args)), {name: _as_list(x) for name, x in kwargs.items()}
        if not holds_traced((*args, *kwargs.values())):
            return plain(*args, **kwargs)
        traced: list[Any] = []

        def plain_number(x: Any) -> Any:
            traced.append(x)
            return plain_value(x)

        given, named = plain_values([args, kwargs], plain_number)
        is_known = not holds_traced([*given, *named.values()]) and not any(
            is_jax_tracer(plain_value(x)) or np.shape(plain_value(x)) != x.shape for x in traced
        )
        if is_known:  # and of one example
            _raise_errors(plain, given, named, traced)
        found = _as_python_numbers(traced_function(*args, **kwargs))
        if is_known:
            _report_no_error(plain.__name__, tuple(traced), found)
        return found

    return of_sequences


def _raise_errors(plain: Callable[..., Any], args: Any, kwargs: Any, traced: list[Any]) -> None:
    """Raise the error that ``plain`` raises for plain numbers, those of ``traced`` among them."""
    try:
        plain(*args, **kwargs)
    except Exception:
        for x in traced:
            report_answer(x, plain_value(x))  # other numbers may raise no error
        raise


def _floats_of_one_run(args: tuple[Any, ...]) -> list[Any] | None:
    """Return the arguments with Python floats as constants if Python's function computes the result, else None.

    So it does for numbers that one plain run traces, all of Python or all of NumPy.
    """
    trace, kind = None, None
    given: list[Any] = []
    for x in args:
        if type(x) is Tracer:
            kind = kind or type(x._val)
            if type(x._val) not in _FLOATS or type(x._val) is not kind or x._trace.fast_counter is None:
                return None
            if (trace or x._trace) is not x._trace:
                return None
            trace = x._trace
            given.append(x)
        elif type(x) in _NUMBERS:
            given.append(float(x))
        else:
            return None
    return None if trace is None else given


def _as_asked(convert: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return traced arguments as a function of numbers asks for them, by ``convert``: in double precision.

    Raises:
        TypeError: an array with axes, as Python's function raises it.
    """
    return args if convert is None else tuple([_number(convert, x) if is_traced(x) else x for x in args])


def _number(convert: Any, x: Any) -> Any:
    check_axes(convert, x)
    if convert is float and x.dtype.kind == "c":
        return as_float(x)  # which raises Python's error
    value = plain_value(x)
    if not isinstance(value, (np.generic, np.ndarray)) or value.dtype in (np.float64, np.complex128):
        return x
    return as_complex(x) if convert is complex and value.dtype.kind == "c" else as_float(x)


def _as_python_numbers(found: Any) -> Any:
    """Return traced results as Python numbers."""
    if type(found) is Tracer:
        return as_python(found)
    return tuple(map(_as_python_numbers, found)) if type(found) is tuple else found


def _with_python_errors(plain: Callable[..., Any], traced_function: Callable[..., Any], *args: Any) -> Any:
    """Return ``traced_function(*args)`` if ``plain`` accepts the plain numbers: programs catch its errors.

    Raises:
        ValueError: a number outside of the domain, as of a square root.
        OverflowError: the result is too large.
        ConcretizationError: these errors occur in some examples of a ``vmap`` only.
    """
    numbers = [plain_value(x) for x in args]
    kinds = set(map(type, numbers))
    if all(issubclass(kind, _NUMBER) for kind in kinds):
        try:
            plain(*numbers)
        except (ValueError, OverflowError):
            for x in args:
                report_answer(x, plain_value(x))  # other numbers may raise no error
            raise
        found = traced_function(*args)
        _report_no_error(plain.__name__, args, found)
        return found
    if not all(issubclass(kind, (*_NUMBER, np.ndarray)) for kind in kinds):  # an abstract value
        return traced_function(*args)
    with np.errstate(all="ignore"):  # ``plain`` raises the error
        found = traced_function(*args)
    _report_no_error(plain.__name__, args, found)
    parts = found if issubclass(type(found), (tuple, list)) else (found,)
    _check_examples(plain, numbers, reduce(np.logical_and, [np.isfinite(plain_value(part)) for part in parts]))
    return found


#: Functions of numbers that raise no errors.
_WITHOUT_ERRORS = frozenset(
    (
        *("asinh", "atan", "atan2", "cbrt", "ceil", "copysign", "degrees", "dist", "erf", "erfc", "fabs", "floor"),
        *("frexp", "hypot", "isclose", "isfinite", "isinf", "isnan", "modf", "radians", "tanh", "trunc", "ulp"),
    )
)


def _report_no_error(name: str, args: tuple[Any, ...], found: Any) -> None:
    """Report to graphs that a function of ``math`` raised no error, because for other numbers it may raise one."""
    if name in _WITHOUT_ERRORS or not is_on_graph(found):
        return
    finite = np.isfinite(plain_value(found))
    if finite.all():
        report_answer(fnp.isfinite(found), finite if finite.shape else True)
        return
    for x in args:
        report_answer(x, plain_value(x))


def _check_examples(plain: Callable[..., Any], numbers: list[Any], is_finite: Any) -> None:
    """Check the examples of a ``vmap`` in the same way: all must succeed, or all must fail."""
    if is_finite.all():
        return
    failed, error = 0, None
    for example in zip(*[np.broadcast_to(x, is_finite.shape)[~is_finite] for x in numbers], strict=True):
        try:
            plain(*[x.item() for x in example])
        except (ValueError, OverflowError) as other:
            failed, error = failed + 1, other
    if error is not None and failed == is_finite.size:
        raise error
    if error is not None:
        raise ConcretizationError(
            f"math.{plain.__name__}: {error}, in {failed} of {is_finite.size} examples of a vmap. Use "
            "funcgrad.numpy's function of that name, which gives nan there, and where(condition, a, b) for a branch."
        ) from error


def _as_list(x: Any) -> Any:
    """Return an iterator, or any container but a plain list or tuple, as a list to inspect; other values unchanged."""
    is_container = isinstance(x, (list, tuple, abc.Set, abc.ValuesView, deque)) and type(x) not in (list, tuple)
    return list(x) if hasattr(x, "__next__") or is_container else x
