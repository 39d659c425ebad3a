"""``from_numpy``: functions written for NumPy and SciPy, run with funcgrad's functions in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never, ParamSpec, TypeVar

from funcgrad.numpy_code import run_anywhere
from funcgrad.transforms.transformed import Transformed, check_callable, hide_extra_arguments

P = ParamSpec("P")
R = TypeVar("R")


@hide_extra_arguments
def from_numpy(fun: Callable[P, R], *_others: Never) -> Callable[P, R]:
    """Return ``fun``, written with NumPy, SciPy and ``math``, with funcgrad's functions in their place.

    Transforms do the same by themselves if a function would lose a derivative, but only after a first run, which they
    stop. ``from_numpy`` saves that first run. In your own code, write ``import funcgrad.numpy as np``.

    ``from_numpy`` covers all Python code: the functions that ``fun`` calls, in any module, classes, methods of objects
    that were made outside, functions in containers and closures, caches. It does not cover compiled code,
    which raises an error, nor methods of registered containers.

    Args:
        fun: a function, a method, a callable object, a partial, a pipeline, or a transform of one of these.

    Returns:
        A function of the same arguments. On plain values it returns what ``fun`` returns.

    Raises:
        InputError: ``fun`` cannot be called (a ``TypeError``).

    Example:
        >>> import math
        >>> from funcgrad import compose, grad
        >>> from funcgrad.interop import from_numpy
        >>> grad(from_numpy(math.sin))(0.0)
        np.float64(1.0)
        >>> product = from_numpy(compose(np.prod, np.array))
        >>> grad(product)([2.0, 3.0])
        [np.float64(3.0), np.float64(2.0)]
    """
    check_callable("from_numpy", fun, _others)
    return Transformed(run_from_numpy, fun, None, "{fun}, with funcgrad's functions for NumPy's.")


def run_from_numpy(fun: Callable[..., Any], options: None, args: Any, kwargs: Any) -> Any:
    """Run ``from_numpy(fun)`` on these arguments."""
    return run_anywhere(fun, args, kwargs)
