"""Common parts of all distributions: parameters by position or name, location and scale, supports, messages.

A distribution is an object that serves as a namespace, ``norm.logpdf(x, loc, scale)``, as in SciPy. Its definition
gives formulas of the standard form, with location 0 and scale 1, inside of the support. This module does the rest
once. Elements outside of the support, or with parameters that are not allowed, never reach these formulas, so that
the formulas' derivatives at such elements do not spread. There are two kinds of distributions of one variable:
continuous and discrete.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce, wraps
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeVar, cast

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer
from funcgrad.graph import is_on_graph
from funcgrad.kinds import elementwise, nondifferentiable
from funcgrad.kinds.linear import astype
from funcgrad.kinds.rules import Operation
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import concrete_or_none, is_plain
from funcgrad.numpy_code import run_anywhere
from funcgrad.optional import import_scipy
from funcgrad.transforms.stopping import stop_gradient
from funcgrad.typing import Array
from funcgrad.writable import Proxy

F = TypeVar("F", bound=Callable[..., Any])

#: ``poison(x, y)``: 0 where ``y`` is true, else NaN; its derivative in ``x`` is the same.
poison: Operation = elementwise(
    "poison",
    lambda xp, x, y: xp.where(y, xp.zeros_like(x), math.nan),
    dx=lambda y: fnp.where(y, 0.0, math.nan),
    arity=2,
)


def as_double(x: Any) -> Any:
    """Return ``x`` in double precision, SciPy's dtype for this; Python numbers are returned unchanged.

    Of an array of a class with units, SciPy's distributions take the numbers.
    """
    x = as_value(x.as_array() if isinstance(x, Proxy) else x)
    if type(x) in (int, float):
        return x
    dtype = backend.dtype_of(x)
    return x if dtype == np.float64 else astype(x, to=np.result_type(dtype, np.float64))


def safe_where(allowed: Any, x: Any, instead: Any) -> Any:
    """Return ``x`` with ``instead`` where ``x`` is not allowed, so that formulas are safe."""
    return x if allowed is True else fnp.where(allowed, x, instead)


def true_if_known(condition: Any) -> Any:
    """Return True if ``condition`` is seen to hold everywhere; else, and on a captured graph, ``condition``."""
    numbers = _known_values(condition)
    return True if numbers is not None and numbers.all() else condition


def _none_if_false(condition: Any) -> Any:
    """Return ``condition`` if it holds somewhere, or may hold on a captured graph; else None."""
    numbers = _known_values(condition)
    return condition if is_on_graph(condition) or (numbers is not None and numbers.any()) else None


def _known_values(condition: Any) -> Any:
    """Return the values of a condition; None if they are unknown, or may change because a graph is captured."""
    return None if is_on_graph(condition) else concrete_or_none(condition)


def nan_where_invalid(ans: Array, allowed: Any, *parameters: Any) -> Array:
    """Return ``ans``, but NaN where parameters are not allowed; their derivatives there are NaN too."""
    if allowed is True:
        return ans
    return ans + poison(reduce(lambda a, b: a + b, parameters) * 1.0, allowed)


def _named(name: str) -> Any:
    return getattr(import_module("funcgrad.scipy.stats"), name)


class SciPyDistribution:
    """A distribution whose functions have counterparts of the same name in SciPy."""

    name: str
    #: Names of the distribution's functions.
    functions: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        return f"<distribution {self.name}>"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"stats.{self.name}: there is no method of this name with derivatives, got {name!r}. Use one of "
            f"{', '.join(filter(self.has, self.functions))}; for constants scipy.stats.{self.name} has others."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the distribution by its name, because its formulas are code."""
        return _named, (self.name,)

    def has(self, function: str) -> bool:
        """Whether the distribution has the function, and a formula for it."""
        return function in self.functions

    def _scipy_method(self, function: str) -> Any:
        return getattr(getattr(import_scipy(f"stats.{self.name}", "scipy.stats"), self.name), function)


def delegates_plain(method: F) -> F:
    """Wrap ``method`` so that calls with plain arguments go to SciPy's method of the same name."""
    name = method.__name__

    @wraps(method)
    def call(self: SciPyDistribution, *args: Any, **kwds: Any) -> Any:
        if is_plain(*args, *kwds.values()):
            return self._scipy_method(name)(*args, **kwds)
        return method(self, *args, **kwds)

    return cast(F, call)


class Parameters(NamedTuple):
    """The parameters of a call: shape parameters, location and scale."""

    shapes: tuple[Any, ...]
    loc: Any
    scale: Any


def _is_number(x: Any, value: float) -> bool:
    return type(x) in (int, float) and x == value


class Distribution(SciPyDistribution):
    """Base class of the distributions of one variable; subclasses have the functions.

    Args:
        call: the name in ``scipy.stats``, with the names of the shape parameters.
        valid: ``valid(*shapes)`` is true where they are allowed; by default all must be positive.
        typical: allowed values of the shape parameters.
        formulas: the standard form, by the names of functions: ``cdf(x, *shapes)``; a mean, a variance or an entropy
            of a distribution without shape parameters is a number.
    """

    has_scale: ClassVar[bool] = True

    def __init__(
        self, call: str, *, valid: Callable[..., Any] | None = None, typical: tuple[float, ...] = (), **formulas: Any
    ) -> None:
        self.name, _, shapes = call.rstrip(")").partition("(")
        self.shapes = tuple(shapes.split(", ")) if shapes else ()
        self.valid, self.typical, self.formulas = valid, typical or (1.0,) * len(self.shapes), formulas

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        """Return the distribution with fixed parameters."""
        self._parse("", args, kwds)
        return Frozen(self, args, kwds)

    def has(self, function: str) -> bool:
        """Whether there is a formula: moments may lack one, functions of probabilities always have one."""
        formula = "var" if function == "std" else function
        return super().has(function) and (formula in self.formulas or formula not in ("mean", "var", "entropy"))

    def _parse(self, function: str, args: tuple[Any, ...], kwds: dict[str, Any]) -> Parameters:
        names = (*self.shapes, "loc", *(("scale",) if self.has_scale else ()))
        call = f"stats.{self.name}{'.' * bool(function)}{function}"
        if len(args) > len(names):
            raise TypeError(
                f"{call}: its parameters are {', '.join(names)}, got {len(args)} of them. Leave out the others."
            )
        given = dict(zip(names, args, strict=False))
        for name, value in kwds.items():
            if name not in names or name in given:
                problem = "is given twice" if name in given else "is not a parameter"
                raise TypeError(f"{call}: {name!r} {problem}, got {value!r}. Its parameters are {', '.join(names)}.")
            given[name] = value
        if missing := [name for name in self.shapes if name not in given]:
            raise TypeError(f"{call}: a shape parameter is missing, got no {missing[0]!r}. Pass it.")
        shapes = tuple([as_double(given[name]) for name in self.shapes])
        return Parameters(shapes, as_double(given.get("loc", 0)), as_double(given.get("scale", 1)))

    def _allowed(self, parameters: Parameters) -> Any:
        """Return where all parameters are allowed; True if this is known without looking at arrays."""
        shapes, _, scale = parameters
        allowed: Any = True
        if shapes:
            allowed = self.valid(*shapes) if self.valid else reduce(lambda a, b: a & b, [s > 0 for s in shapes])
        if self.has_scale and not (type(scale) in (int, float) and scale > 0):
            positive = scale > 0
            allowed = positive if allowed is True else allowed & positive
        return true_if_known(allowed)

    def _safe_shapes(self, allowed: Any, shapes: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the shape parameters, with typical values where they are not allowed."""
        return tuple([safe_where(allowed, s, t) for s, t in zip(shapes, self.typical, strict=True)])

    def _standard(self, x: Any, parameters: Parameters, allowed: Any) -> Any:
        """Return ``(x - loc) / scale``."""
        y = as_double(x)
        if not _is_number(parameters.loc, 0):
            y = y - parameters.loc
        if self.has_scale and not _is_number(parameters.scale, 1):
            y = y / safe_where(allowed, parameters.scale, 1.0)
        return y

    def _moment(self, function: str, args: tuple[Any, ...], kwds: dict[str, Any], degree: int) -> Any:
        """Return the mean, the variance or the entropy: that of the standard form, changed by location and scale."""
        parameters = self._parse(function, args, kwds)
        formula = self.formulas.get(function)
        if formula is None:  # SciPy has a sum or an integral
            return run_anywhere(self._scipy_method(function), args, kwds)
        allowed = self._allowed(parameters)
        value = formula(*self._safe_shapes(allowed, parameters.shapes)) if callable(formula) else formula
        scale, loc = safe_where(allowed, parameters.scale, 1.0), parameters.loc
        made = {
            0: lambda: value + fnp.log(scale) + 0 * loc,
            1: lambda: value * scale + loc,
            2: lambda: value * scale**2 + 0 * loc,
        }
        return nan_where_invalid(made[degree](), allowed, *parameters.shapes, loc, parameters.scale)

    @delegates_plain
    def mean(self, *args: Any, **kwds: Any) -> Any:
        """Return the mean."""
        return self._moment("mean", args, kwds, 1)

    @delegates_plain
    def var(self, *args: Any, **kwds: Any) -> Any:
        """Return the variance."""
        return self._moment("var", args, kwds, 2)

    def std(self, *args: Any, **kwds: Any) -> Any:
        """Return the standard deviation."""
        return fnp.sqrt(self.var(*args, **kwds))

    @delegates_plain
    def entropy(self, *args: Any, **kwds: Any) -> Any:
        """Return the entropy."""
        return self._moment("entropy", args, kwds, 0)


class Frozen:
    """A distribution with fixed parameters: ``norm(loc, scale).logpdf(x)`` is ``norm.logpdf(x, loc, scale)``."""

    def __init__(self, dist: Distribution, args: tuple[Any, ...], kwds: dict[str, Any]) -> None:
        self.dist, self.args, self.kwds = dist, args, kwds

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        function = getattr(self.dist, name)
        return lambda *x: function(*x, *self.args, **self.kwds)

    def __repr__(self) -> str:
        return f"<frozen {self.dist!r}>"


INF = math.inf
_TAILS = ("cdf", "logcdf", "sf", "logsf")


def _log(p: Any) -> Any:
    """Return the logarithm of a probability; for 0 it is minus infinity, without a derivative."""
    none = p <= 0
    return fnp.where(none, -INF, fnp.log(fnp.where(none, 1.0, p)))


class _Cumulative(Distribution):
    """Base class with the cumulative functions, from the formulas among ``cdf``, ``sf``, ``logcdf``, ``logsf``."""

    def _tail(self, function: str, x: Any, *shapes: Any) -> Any:
        """Compute ``function`` of the standard form inside of the support."""
        other = {"cdf": "sf", "sf": "cdf", "logcdf": "cdf", "logsf": "sf"}[function]
        formulas = self.formulas
        if function in formulas:
            return formulas[function](x, *shapes)
        if function in ("cdf", "sf"):
            if f"log{function}" in formulas:
                return fnp.exp(formulas[f"log{function}"](x, *shapes))
            return 1 - formulas[other](x, *shapes) if other in formulas else self.__getattr__(function)
        return _log(self._tail(other, x, *shapes))

    def _cumulative(self, function: str, x: Any, args: Any, kwds: Any, below: float, above: float) -> Any:
        """Compute ``function`` of ``x``; its values outside of the support are ``below`` and ``above``."""
        raise NotImplementedError

    @delegates_plain
    def cdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of values up to ``x``."""
        return self._cumulative("cdf", x, args, kwds, 0.0, 1.0)

    @delegates_plain
    def logcdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of ``cdf``."""
        return self._cumulative("logcdf", x, args, kwds, -INF, 0.0)

    @delegates_plain
    def sf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of values above ``x``."""
        return self._cumulative("sf", x, args, kwds, 1.0, 0.0)

    @delegates_plain
    def logsf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of ``sf``."""
        return self._cumulative("logsf", x, args, kwds, 0.0, -INF)


def mirrored(formulas: dict[str, Any]) -> dict[str, Any]:
    """Return the formulas of ``-X`` for those of ``X``: of its density, tails and quantiles."""
    pairs = {"logpdf": "logpdf", "cdf": "sf", "sf": "cdf", "logcdf": "logsf", "logsf": "logcdf"}
    found = {n: lambda x, *s, f=formulas[m]: f(-x, *s) for n, m in pairs.items() if m in formulas}
    pairs = {"ppf": "isf", "isf": "ppf"}
    return found | {n: lambda q, *s, f=formulas[m]: -f(q, *s) for n, m in pairs.items() if m in formulas}


class Continuous(_Cumulative):
    """A distribution with a density, as in ``scipy.stats``: ``norm.logpdf(x, loc, scale)``.

    ``pdf``, ``logpdf``, ``cdf``, ``logcdf``, ``sf``, ``logsf`` take a value, ``ppf`` and ``isf`` a probability,
    ``entropy``, ``mean``, ``median``, ``var`` and ``std`` nothing. The shape parameters of the distribution follow,
    then ``loc`` and ``scale``. All of them broadcast and have derivatives. ``norm(loc, scale)`` is the distribution
    with fixed parameters. A parameter that is not allowed gives NaN, as in SciPy.

    Raises:
        AttributeError: a method that has no derivative here, such as ``rvs``.
        TypeError: a shape parameter is missing, or there are too many parameters.

    Example:
        >>> from funcgrad.scipy import stats
        >>> grad(stats.norm.logpdf, (0, 1, 2))(3.0, 1.0, 2.0)
        (np.float64(-0.5), np.float64(0.5), np.float64(0.0))
        >>> stats.gamma(2.0, scale=3.0).mean()
        np.float64(6.0)
    """

    functions = ("pdf", "logpdf", *_TAILS, "ppf", "isf", "entropy", "mean", "median", "var", "std")

    def __init__(
        self,
        call: str,
        support: tuple[Any, Any] = (-INF, INF),
        *,
        closed: bool = True,
        symmetric: bool = False,
        **definition: Any,
    ) -> None:
        """Define the distribution.

        Args:
            call: the name in ``scipy.stats``, with the names of the shape parameters.
            support: the lower and upper ends of the support, numbers or functions of the shape parameters.
            closed: whether the formula of the density also holds at the ends.
            symmetric: whether the distribution is symmetric about 0, so that one tail follows from the other.
            definition: the other arguments of ``Distribution``.
        """
        super().__init__(call, **definition)
        self.ends, self.closed = support, closed
        if symmetric:
            self.formulas = mirrored(self.formulas) | self.formulas

    def _ends(self, shapes: tuple[Any, ...]) -> tuple[Any, Any]:
        low, high = [end(*shapes) if callable(end) else end for end in self.ends]
        return low, high

    def _inside(self, y: Any, ends: tuple[Any, Any], closed: bool) -> Any:
        """Return where ``y`` is in the support; infinity is not."""
        low, high = ends
        if not closed:
            return true_if_known((y > low) & (y < high))
        return true_if_known((y >= low) & (y <= high) & fnp.isfinite(y))

    def _at(self, function: str, x: Any, args: Any, kwds: Any, formula: Callable[..., Any], outside: Any) -> Any:
        """Return ``formula(y, *shapes)`` inside of the support; ``outside`` gives the values below and above it.

        Infinite elements are replaced before the division by the scale, because they have no derivative in the scale.
        """
        parameters = self._parse(function, args, kwds)
        allowed = self._allowed(parameters)
        shapes = self._safe_shapes(allowed, parameters.shapes)
        x = as_double(x)
        y = kept = self._standard(x, parameters, allowed)
        ends = self._ends(shapes)
        below, above, is_density = outside
        inside = self._inside(y, ends, is_density and self.closed)
        if inside is not True:
            beyond = below if below == above else fnp.where(y >= ends[1], above, below)
            y = self._standard(fnp.where(fnp.isinf(x), 0.0, x), parameters, allowed)
            kept = fnp.where(inside, y, between(*ends))
        with np.errstate(over="ignore", divide="ignore"):  # formulas that overflow give a probability of 0
            ans = formula(kept, *shapes)
            fixed = self._fixed(function, ans, kept, shapes)
            if fixed is not None:  # the formula may have used infinite numbers for these elements
                found, ans = ans, formula(fnp.where(fixed, between(*ends), kept), *shapes)
        if is_density and not (type(parameters.scale) in (int, float) and parameters.scale == 1):
            ans = ans - fnp.log(safe_where(allowed, parameters.scale, 1.0))
        ans = ans if fixed is None else fnp.where(fixed, stop_gradient(found), ans)
        if inside is not True:
            ans = fnp.where(inside, ans, beyond)
            allowed = true_if_known((allowed & (y == y)) if allowed is not True else y == y)
        return nan_where_invalid(ans, allowed, y, *parameters.shapes, parameters.scale)

    def _fixed(self, function: str, ans: Any, y: Any, shapes: tuple[Any, ...]) -> Any:
        """Return which elements are constant: probabilities of 0, or of 1 where the density is 0; None for none.

        Inside ``jax.jit`` the elements are unknown, and the result is None.
        """
        if function in ("pdf", "logpdf"):
            return _none_if_false(ans == -INF)
        nothing, all_of_it = (-INF, 0.0) if function.startswith("log") else (0.0, 1.0)
        fixed = ans == nothing
        full = _none_if_false(ans == all_of_it)
        if full is not None:
            fixed = fixed | (full & (self.formulas["logpdf"](stop_gradient(y), *map(stop_gradient, shapes)) == -INF))
        return _none_if_false(fixed)

    @delegates_plain
    def logpdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of the density: minus infinity outside of the support."""
        return self._at("logpdf", x, args, kwds, self.formulas["logpdf"], (-INF, -INF, True))

    @delegates_plain
    def pdf(self, x: Any, *args: Any, **kwds: Any) -> Any:
        """Return the density."""
        formula = self.formulas["logpdf"]
        return fnp.exp(self._at("pdf", x, args, kwds, formula, (-INF, -INF, True)))

    def _cumulative(self, function: str, x: Any, args: Any, kwds: Any, below: float, above: float) -> Any:
        return self._at(function, x, args, kwds, lambda y, *s: self._tail(function, y, *s), (below, above, False))

    @delegates_plain
    def ppf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """Return the value up to which the probability is ``q``: the inverse of ``cdf``."""
        return self._quantile("ppf", q, args, kwds)

    @delegates_plain
    def isf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """Return the value above which the probability is ``q``: the inverse of ``sf``."""
        return self._quantile("isf", q, args, kwds)

    def median(self, *args: Any, **kwds: Any) -> Any:
        """Return the median."""
        return self.ppf(0.5, *args, **kwds)

    def _quantile(self, function: str, q: Any, args: Any, kwds: Any) -> Any:
        parameters = self._parse(function, args, kwds)
        allowed = self._allowed(parameters)
        shapes = self._safe_shapes(allowed, parameters.shapes)
        scale, loc = safe_where(allowed, parameters.scale, 1.0), parameters.loc
        q = as_double(q)
        inside = true_if_known((q > 0) & (q < 1))
        standard = self._inverse(function, safe_where(inside, q, 0.5), shapes)
        if inside is True:
            return nan_where_invalid(standard * scale + loc, allowed, q, *parameters.shapes, loc, parameters.scale)
        low, high = self._ends(shapes)
        low, high = (low, high) if function == "ppf" else (high, low)
        at_ends = fnp.where(q == 0, _moved(low, loc, scale), _moved(high, loc, scale))
        ans = fnp.where(inside, standard * scale + loc, at_ends)
        fine = (q >= 0) & (q <= 1)
        allowed = true_if_known(fine if allowed is True else allowed & fine)
        return nan_where_invalid(ans, allowed, q, *parameters.shapes, loc, parameters.scale)

    def _inverse(self, function: str, q: Any, shapes: tuple[Any, ...]) -> Any:
        formulas = self.formulas
        if function in formulas:
            return formulas[function](q, *shapes)
        if function == "isf" and "ppf" in formulas:
            return formulas["ppf"](1 - q, *shapes)
        return self._improved(function, q, shapes)

    def _improved(self, function: str, q: Any, shapes: tuple[Any, ...]) -> Any:
        """Return SciPy's quantile, a constant, improved by two steps of Newton's method.

        Each step doubles the order up to which the result is the inverse, so derivatives are exact up to the third.
        """
        scipy_function = self._scipy_method(function)
        guess = nondifferentiable(f"stats.{self.name}.{function}", _on_numpy_arrays(scipy_function))
        x = guess(q, *shapes)
        side = "cdf" if function == "ppf" else "sf"
        sign = 1.0 if function == "ppf" else -1.0
        for _ in range(2):
            miss = self._tail(side, x, *shapes) - q
            x = x - sign * miss * fnp.exp(-self.formulas["logpdf"](x, *shapes))
        return x


def between(low: Any, high: Any) -> Any:
    """Return a point between the ends of a support."""
    if issubclass(type(low), float) and issubclass(type(high), float):
        low = low if math.isfinite(low) else high - 2 if math.isfinite(high) else -1.0
        return (low + (high if math.isfinite(high) else low + 2)) / 2
    below = fnp.where(fnp.isfinite(low), low, fnp.where(fnp.isfinite(high), high - 2, -1.0))
    return (below + fnp.where(fnp.isfinite(high), high, below + 2)) / 2


def _on_numpy_arrays(scipy_function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(xp: Any, *args: Any) -> Any:
        return scipy_function(*args)

    compute.numpy_only = True  # type: ignore[attr-defined]
    return compute


def _moved(end: Any, loc: Any, scale: Any) -> Any:
    """Return an end of the support, moved by location and scale; an infinite end has no derivative."""
    if not isinstance(end, Tracer) and not callable(getattr(end, "item", None)):
        return end if math.isinf(end) else end * scale + loc
    finite = fnp.isfinite(end)
    return fnp.where(finite, fnp.where(finite, end, 0.0) * scale + loc, end)


class Discrete(_Cumulative):
    """A distribution of integers, as in ``scipy.stats``: ``poisson.logpmf(k, mu)``.

    ``pmf``, ``logpmf``, ``cdf``, ``logcdf``, ``sf`` and ``logsf`` take a value, ``entropy``, ``mean``, ``var`` and
    ``std`` nothing. The shape parameters of the distribution follow, then ``loc``. ``poisson(mu)`` is the distribution
    with fixed parameters.

    Derivatives of ``logpmf`` in the integer itself, and in parameters that are integers, are those of its formula,
    with gamma functions for factorials. ``cdf`` and similar functions are constant between integers.

    Raises:
        AttributeError: a method that has no derivative here, such as ``ppf`` or ``rvs``.
        TypeError: a shape parameter is missing, or there are too many parameters.

    Example:
        >>> from funcgrad.scipy import stats
        >>> grad(stats.poisson.logpmf, 1)(3, 2.0)
        np.float64(0.5)
    """

    functions = ("pmf", "logpmf", *_TAILS, "entropy", "mean", "var", "std")
    has_scale = False

    def __init__(self, call: str, *, low: int = 0, high: Any = INF, **definition: Any) -> None:
        """Define the distribution.

        Args:
            call: the name in ``scipy.stats``, with the names of the shape parameters.
            low: the smallest value.
            high: the largest value, a number or a function of the shape parameters.
            definition: the other arguments of ``Distribution``.
        """
        super().__init__(call, **definition)
        self.low, self.high = low, high

    def _begin(self, function: str, k: Any, args: Any, kwds: Any) -> tuple[Parameters, Any, tuple[Any, ...], Any, Any]:
        parameters = self._parse(function, args, kwds)
        allowed = self._allowed(parameters)
        shapes = self._safe_shapes(allowed, parameters.shapes)
        high = self.high(*shapes) if callable(self.high) else self.high
        return parameters, allowed, shapes, self._standard(k, parameters, True), high

    @delegates_plain
    def logpmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the logarithm of ``pmf``: minus infinity outside of the support and between integers."""
        return self._probability("logpmf", -INF, k, args, kwds)

    @delegates_plain
    def pmf(self, k: Any, *args: Any, **kwds: Any) -> Any:
        """Return the probability of ``k``."""
        if "pmf" in self.formulas:
            return self._probability("pmf", 0.0, k, args, kwds)
        return fnp.exp(self.logpmf(k, *args, **kwds))

    def _probability(self, function: str, outside: float, k: Any, args: Any, kwds: Any) -> Any:
        parameters, allowed, shapes, y, high = self._begin(function, k, args, kwds)
        inside = (y >= self.low) & (y <= high) & (fnp.floor(y) == y) & fnp.isfinite(y)
        ans = self.formulas[function](fnp.where(inside, y, float(self.low)), *shapes)
        ans = fnp.where(inside, ans, outside)
        allowed = true_if_known(y == y if allowed is True else allowed & (y == y))
        return nan_where_invalid(ans, allowed, y, *parameters.shapes)

    def _cumulative(self, function: str, x: Any, args: Any, kwds: Any, below: float, above: float) -> Any:
        parameters, allowed, shapes, y, high = self._begin(function, x, args, kwds)
        y = fnp.floor(y)
        inside = (y >= self.low) & (y < high)
        ans = self._tail(function, fnp.where(inside, y, float(self.low)), *self._open(inside, shapes))
        ans = fnp.where(inside, ans, fnp.where(y >= self.low, above, below))
        allowed = true_if_known(y == y if allowed is True else allowed & (y == y))
        return nan_where_invalid(ans, allowed, y, *parameters.shapes)

    def _open(self, inside: Any, shapes: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the shape parameters, with typical values for elements that need no formula."""
        if not callable(self.high):
            return shapes
        return tuple([fnp.where(inside, s, t) for s, t in zip(shapes, self.typical, strict=True)])
