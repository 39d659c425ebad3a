"""Values that derivatives treat as constants: ``no_grad`` and ``stop_gradient``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from funcgrad import backend, blocks, core, tree
from funcgrad.core import Tracer
from funcgrad.errors import InputError
from funcgrad.primitives import comparison
from funcgrad.transforms.arguments import owned_tree
from funcgrad.transforms.transformed import Transformed, check_callable
from funcgrad.writable import is_selection

P = ParamSpec("P")
R = TypeVar("R")
Tree = TypeVar("Tree")


def stop_gradient(x: Tree) -> Tree:
    """Return ``x`` as a constant for every derivative, of any order and mode.

    Args:
        x: an array, a number, or a pytree; leaves that are neither pass through.

    Returns:
        A tree like ``x`` with the same values, shapes and dtypes.

    Raises:
        TypeError: ``x`` is a function; ``no_grad(f)`` stops the derivative of its results.

    Example:
        >>> from funcgrad import grad, stop_gradient
        >>> grad(lambda x: x * stop_gradient(x))(3.0)
        np.float64(3.0)
    """
    if type(x) is np.ndarray or type(x) is float:  # fast path
        return x
    if callable(x) and _is_function(x):
        raise InputError(
            f"stop_gradient: x must be a value, got {core.describe(x)}. Write stop_gradient(f(x)), or no_grad(f)(x)."
        )
    stopped: Tree = tree.map(_stopped, x)
    return stopped


def _is_function(x: Any) -> bool:
    """Whether ``x`` is a function, not a container or a leaf that can also be called."""
    return inspect.isroutine(x) or isinstance(x, (Transformed, np.ufunc))


def _stopped(leaf: Any) -> Any:
    # a value of JAX may be a tracer of JAX's own transforms
    foreign = isinstance(leaf, Tracer) or backend.is_of_other_library(leaf)
    if is_selection(leaf):
        return leaf.stopped()
    return comparison.stop_gradient(leaf) if foreign else leaf


class _NoGrad(blocks.Block):
    """Block of ``with no_grad():``, also usable as a decorator. Several threads may be inside the same block."""

    __slots__ = ()

    def __init__(self) -> None:
        blocks.Block.__init__(self, lambda state: state._replace(min_level=core.next_level()))

    def __call__(self, fun: Callable[P, R]) -> Callable[P, R]:
        return no_grad(fun)


@overload
def no_grad() -> _NoGrad: ...
@overload
def no_grad(fun: Callable[P, R]) -> Callable[P, R]: ...


def no_grad(fun: Callable[..., Any] | None = None) -> Any:
    """Compute without recording: a transform of a function, a decorator, and a context manager.

    Results computed inside are constants for every ``grad``, ``vjp`` or ``jvp`` that began outside. Transforms that
    begin inside work as usual. ``no_grad(f)`` returns a constant even if ``f`` returns its argument.

    Args:
        fun: the function to run without recording; left out in ``with no_grad():`` and ``@no_grad()``.

    Returns:
        A function of the same arguments and results; without ``fun`` a block, which is a decorator too.

    Raises:
        TypeError: ``fun`` is not callable, or an asynchronous generator.

    Example:
        >>> from funcgrad import grad, no_grad
        >>> def f(x):
        ...     with no_grad():
        ...         scale = x * x
        ...     return scale * x
        >>> grad(f)(3.0)
        np.float64(9.0)
        >>> grad(lambda x: x + no_grad(lambda y: y * y)(x))(3.0)
        np.float64(1.0)
        >>> no_grad(grad(lambda x: x * x))(3.0)
        np.float64(6.0)
    """
    if fun is None:
        return _NoGrad()
    check_callable("no_grad", fun)
    wrapped = Transformed(run_no_grad, fun, None, "{fun} without recording: its result is a constant.")
    if inspect.isgeneratorfunction(fun):
        return _documented(wrapped, lambda *args, **kwargs: _run_generator(fun(*args, **kwargs)))
    if inspect.iscoroutinefunction(fun):

        async def run(*args: Any, **kwargs: Any) -> Any:
            with _NoGrad():  # each task has a context of its own, which holds the block
                return stop_gradient(await fun(*args, **kwargs))

        return _documented(wrapped, run)
    if inspect.isasyncgenfunction(fun):
        raise InputError(
            f"no_grad: an asynchronous generator would take the block out of the function where it yields, got "
            f"{wrapped.__name__}. Put `with no_grad():` inside of it, around what has no yield."
        )
    return wrapped


def _documented(wrapped: Transformed[..., Any], run: Callable[..., Any]) -> Callable[..., Any]:
    """Give ``run`` the names and the documentation of ``wrapped``, and return ``run``."""
    functools.update_wrapper(run, wrapped.fun)
    run.__doc__ = wrapped.__doc__
    return run


def run_no_grad(fun: Callable[..., Any], options: None, args: Any, kwargs: Any) -> Any:
    """Run a call of ``no_grad(fun)``."""
    with _NoGrad():
        return owned_tree(stop_gradient(fun(*args, **kwargs)))  # an argument that fun returns becomes a constant too


def _run_generator(generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run a generator with the block around each step, so that the block does not leak out at a yield."""
    sent: Any = None
    while True:
        try:
            with _NoGrad():
                item = stop_gradient(generator.send(sent))
        except StopIteration as stop:
            return stop.value
        try:
            sent = yield item
        except GeneratorExit:
            generator.close()
            raise
