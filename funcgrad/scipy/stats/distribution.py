"""What all distributions have in common: parameters by position and name, location and scale, supports, messages.

A distribution is an object used as a namespace, ``norm.logpdf(x, loc, scale)``, as SciPy's are. Its definition
says how the standard form, of location 0 and scale 1, is computed inside of the support. Here the rest is done
once: what is outside of the support, or has parameters that are not allowed, is kept away from these formulas, so
that no derivative of theirs leaks out of an element that they are not for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer
from funcgrad.graph import GraphTrace
from funcgrad.kinds import elementwise
from funcgrad.kinds.linear import astype
from funcgrad.kinds.rules import Operation
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.peeking import is_plain, known
from funcgrad.optional import import_scipy
from funcgrad.typing import Array

__all__ = ["Distribution", "Frozen", "Parameters", "as_double", "keep_off", "poisoned", "settled", "unknown"]

#: ``poison(x, y)``: 0 where ``y`` holds, else NaN, and so is its derivative.
poison: Operation = elementwise(
    "poison",
    lambda xp, x, y: xp.where(y, xp.zeros_like(x), math.nan),
    dx=lambda y: fnp.where(y, 0.0, math.nan),
    arity=2,
)


def as_double(x: Any) -> Any:
    """``x`` in double precision, in which SciPy computes; Python's numbers as they are.

    Example:
        >>> as_double(np.float32(0.5)), as_double([1, 2])
        (np.float64(0.5), array([1., 2.]))
    """
    x = as_value(x)
    if type(x) in (int, float):
        return x
    dtype = backend.dtype_of(x)
    return x if dtype == np.float64 else astype(x, to=np.result_type(dtype, np.float64))


def keep_off(allowed: Any, x: Any, instead: Any) -> Any:
    """``x``, where that is not allowed something that the formulas can do with."""
    return x if allowed is True else fnp.where(allowed, x, instead)


def settled(condition: Any) -> Any:
    """True where ``condition`` holds everywhere, as is seen of numbers; on a captured graph they may change."""
    x = condition
    while isinstance(x, Tracer):
        if isinstance(x._trace, GraphTrace):
            return condition
        x = x.value
    numbers = known(x)
    return True if numbers is not None and numbers.all() else condition


def poisoned(ans: Array, allowed: Any, *parameters: Any) -> Array:
    """``ans``, but NaN where parameters are not allowed, with derivatives of NaN in them."""
    if allowed is True:
        return ans
    return ans + poison(reduce(lambda a, b: a + b, parameters) * 1.0, allowed)


def unknown(distribution: str, name: str, functions: tuple[str, ...]) -> AttributeError:
    """What to raise for a function that a distribution does not have here."""
    return AttributeError(
        f"stats.{distribution}: a function that has a derivative here is needed, got {name!r}. Take one of "
        f"{', '.join(functions)}, or that of scipy.stats.{distribution} for constants."
    )


class Parameters(NamedTuple):
    """The parameters of a call: of shape, location and scale."""

    shapes: tuple[Any, ...]
    loc: Any
    scale: Any


def _is_number(x: Any, value: float) -> bool:
    return type(x) in (int, float) and x == value


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Distribution:
    """A distribution; subclasses have its functions.

    Args:
        name: its name in ``scipy.stats``.
        shapes: names of the parameters of shape.
        valid: ``valid(*shapes)``, where they are allowed; by default all must be positive.
        typical: allowed values of them.
        formulas: the standard form, by the names of functions: ``formulas["cdf"](x, *shapes)``.
    """

    name: str
    shapes: tuple[str, ...] = ()
    valid: Callable[..., Any] | None = None
    typical: tuple[float, ...] = ()
    formulas: dict[str, Callable[..., Any]]

    #: Names of functions that the kind of distribution has.
    functions: ClassVar[tuple[str, ...]] = ()
    has_scale: ClassVar[bool] = True

    def __repr__(self) -> str:
        return f"<distribution {self.name}>"

    def __call__(self, *args: Any, **kwds: Any) -> Frozen:
        """The distribution with its parameters given once and for all."""
        self._parse("", args, kwds)
        return Frozen(self, args, kwds)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise unknown(self.name, name, tuple([f for f in self.functions if self._has(f)]))

    def _has(self, function: str) -> bool:
        """Whether there is a formula: moments may have none, what is about probabilities always has."""
        formula = "var" if function == "std" else function
        return formula in self.formulas or formula not in ("mean", "var", "entropy")

    # ---- calls

    def _theirs(self, function: str) -> Any:
        return getattr(getattr(import_scipy(f"stats.{self.name}", "scipy.stats"), self.name), function)

    def _parse(self, function: str, args: tuple[Any, ...], kwds: dict[str, Any]) -> Parameters:
        names = (*self.shapes, "loc", *(("scale",) if self.has_scale else ()))
        call = f"stats.{self.name}{'.' * bool(function)}{function}"
        if len(args) > len(names):
            raise TypeError(
                f"{call}: its parameters are {', '.join(names)}, got {len(args)} of them. Leave out what is too much."
            )
        given = dict(zip(names, args, strict=False))
        for name, value in kwds.items():
            if name not in names or name in given:
                problem = "is given twice" if name in given else "is not a parameter"
                raise TypeError(f"{call}: {name!r} {problem}, got {value!r}. Its parameters are {', '.join(names)}.")
            given[name] = value
        if missing := [name for name in self.shapes if name not in given]:
            raise TypeError(f"{call}: a parameter of shape is missing, got no {missing[0]!r}. Give it.")
        shapes = tuple([as_double(given[name]) for name in self.shapes])
        return Parameters(shapes, as_double(given.get("loc", 0)), as_double(given.get("scale", 1)))

    def _allowed(self, parameters: Parameters) -> Any:
        """Where all parameters are allowed; True where that is said without looking at arrays."""
        shapes, _, scale = parameters
        allowed: Any = True
        if shapes:
            allowed = self.valid(*shapes) if self.valid else reduce(lambda a, b: a & b, [s > 0 for s in shapes])
        if self.has_scale and not (type(scale) in (int, float) and scale > 0):
            positive = scale > 0
            allowed = positive if allowed is True else allowed & positive
        return settled(allowed)

    def _kept(self, allowed: Any, shapes: tuple[Any, ...]) -> tuple[Any, ...]:
        """The parameters of shape, with typical ones where they are not allowed."""
        return tuple(
            [keep_off(allowed, s, t) for s, t in zip(shapes, self.typical or (1.0,) * len(shapes), strict=True)]
        )

    def _standard(self, x: Any, parameters: Parameters, allowed: Any) -> Any:
        """``(x - loc) / scale``."""
        y = as_double(x)
        if not _is_number(parameters.loc, 0):
            y = y - parameters.loc
        if self.has_scale and not _is_number(parameters.scale, 1):
            y = y / keep_off(allowed, parameters.scale, 1.0)
        return y

    def _moment(self, function: str, args: tuple[Any, ...], kwds: dict[str, Any], degree: int) -> Any:
        """The mean, the variance, or the entropy: what location and scale make of those of the standard form."""
        if is_plain(*args, *kwds.values()):
            return self._theirs(function)(*args, **kwds)
        parameters = self._parse(function, args, kwds)
        formula = self.formulas.get(function)
        if formula is None:
            self.__getattr__(function)
        allowed = self._allowed(parameters)
        value = formula(*self._kept(allowed, parameters.shapes))
        scale, loc = keep_off(allowed, parameters.scale, 1.0), parameters.loc
        made = {
            0: lambda: value + fnp.log(scale) + 0 * loc,
            1: lambda: value * scale + loc,
            2: lambda: value * scale**2 + 0 * loc,
        }
        return poisoned(made[degree](), allowed, *parameters.shapes, loc, parameters.scale)

    def mean(self, *args: Any, **kwds: Any) -> Any:
        """The mean."""
        return self._moment("mean", args, kwds, 1)

    def var(self, *args: Any, **kwds: Any) -> Any:
        """The variance."""
        return self._moment("var", args, kwds, 2)

    def std(self, *args: Any, **kwds: Any) -> Any:
        """The standard deviation."""
        return fnp.sqrt(self.var(*args, **kwds))

    def entropy(self, *args: Any, **kwds: Any) -> Any:
        """The entropy."""
        return self._moment("entropy", args, kwds, 0)


class Frozen:
    """A distribution with its parameters: ``norm(loc, scale).logpdf(x)`` is ``norm.logpdf(x, loc, scale)``."""

    def __init__(self, dist: Distribution, args: tuple[Any, ...], kwds: dict[str, Any]) -> None:
        self.dist, self.args, self.kwds = dist, args, kwds

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        function = getattr(self.dist, name)
        return lambda *x: function(*x, *self.args, **self.kwds)

    def __repr__(self) -> str:
        return f"<frozen {self.dist!r}>"
