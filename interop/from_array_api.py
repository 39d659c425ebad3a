"""``from_array_api``: functions written for any array library, applied to NumPy's values and traced values."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any, ParamSpec

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import Tracer, is_array, shallow_copy
from funcgrad.transforms.lifting import LiftedTrace
from funcgrad.transforms.transformed import Transformed, check_callable
from funcgrad.writable import as_array

P = ParamSpec("P")


class StandardTrace(LiftedTrace):
    """One run of a function written for any array library; all its results are arrays of one namespace."""

    __slots__ = ("namespace",)

    runs_jax = False

    def __init__(self) -> None:
        super().__init__(as_numpy=True)
        self.namespace = Namespace(self, fnp)

    def wrap(self, value: Any) -> Tracer:
        """Return ``value`` as a tracer that can be written to, even if it has no axes."""
        made: Tracer = as_array(super().wrap(value))
        return made

    def array(self, x: Any) -> Any:
        """Return ``x`` with each array or number in it as an array of the namespace; look into tuples and lists."""
        if isinstance(x, (tuple, list)):
            parts = [self.array(part) for part in x]
            return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
        if isinstance(x, Tracer):
            return x if x._trace is self else self.wrap(shallow_copy(x))
        return self.wrap(x) if isinstance(x, (np.ndarray, np.generic)) and backend.is_value(x) else x


class Namespace:
    """Copy of ``funcgrad.numpy``, or of a module in it, whose functions return arrays of one run.

    Args:
        trace: the run.
        module: the module.
    """

    def __init__(self, trace: StandardTrace, module: ModuleType) -> None:
        self._trace = trace
        self._module = module

    def __repr__(self) -> str:
        return f"<namespace of {self._module.__name__}>"

    def __dir__(self) -> list[str]:
        return dir(self._module)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            found = Namespace(self._trace, found)
        elif callable(found) and not isinstance(found, type):
            found = self._giving_arrays(found)
        setattr(self, name, found)
        return found

    def _giving_arrays(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        array = self._trace.array

        @wraps(fun)  # libraries look at the signature, for a parameter such as axis
        def call(*args: Any, **kwargs: Any) -> Any:
            return array(fun(*args, **kwargs))

        return call


def from_array_api(fun: Callable[P, Any]) -> Callable[P, Any]:
    """Return ``fun``, written against the Python array API standard, as a function that funcgrad can transform.

    Such a function takes the namespace of an array, ``xp = x.__array_namespace__()``, and requires that all results
    have this namespace, booleans and indices included. Outside this wrapper, booleans and indices from a traced array
    are NumPy's. Inside ``fun`` all arrays have one namespace, and arrays without axes can be written to.

    Args:
        fun: a function of arrays or pytrees. Python's numbers reach it unchanged, as the standard requires.

    Returns:
        A function of the same arguments. Its results are NumPy's, or traced if the arguments are.

    Raises:
        TypeError: ``fun`` is not a function.

    Example:
        >>> from funcgrad.interop import from_array_api
        >>> def positive(x):
        ...     xp, mask = x.__array_namespace__(), x > 0
        ...     assert mask.__array_namespace__() is xp
        ...     return xp.sum(xp.where(mask, x**3, 0.0))
        >>> grad(from_array_api(positive))(np.array([-1.0, 2.0]))
        array([ 0., 12.])
    """
    check_callable("from_array_api", fun)
    return Transformed(run_standard, fun, None, "{fun}, written for any array library.")


def run_standard(fun: Callable[..., Any], options: None, args: Any, kwargs: Any) -> Any:
    """Run ``from_array_api(fun)`` on these arguments."""
    trace = StandardTrace()
    try:
        given, named = tree.map(lambda x: _enter(trace, x), (args, kwargs))
        return tree.map(trace.leave, fun(*given, **named))
    finally:
        trace.close()


#: Rebuilt code would take constants for arrays of this namespace.
run_standard.of_one_namespace = True  # type: ignore[attr-defined]


def _enter(trace: StandardTrace, x: Any) -> Any:
    array = is_array(x) and type(x) not in (bool, int, float, complex)
    return trace.leaf(x) if array else x
