"""Integrals over several variables, one inside the other, as ``dblquad``, ``tplquad`` and ``nquad`` have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from funcgrad import tree
from funcgrad.errors import InputError
from funcgrad.numpy.peeking import is_plain
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.adaptive import quad
from funcgrad.transforms.transformed import check_callable
from funcgrad.typing import ArrayLike
from funcgrad.writable import inside

__all__ = ["dblquad", "nquad", "tplquad"]

#: A limit: a number, or a function of the variables outside of it.
Limit = Any


def dblquad(
    func: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    gfun: Limit,
    hfun: Limit,
    args: Any = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> tuple[Any, Any]:
    """The integral of ``func(y, x, *args)`` over ``y`` from ``gfun(x)`` to ``hfun(x)`` and ``x`` from ``a`` to ``b``.

    Differentiable in ``args``, in what the functions close over and in finite limits, to any order: see ``quad``.

    Args:
        func: a number for two numbers and ``args``.
        a: the lower limit of ``x``.
        b: the upper one.
        gfun: the lower limit of ``y``, a number or a function of ``x``.
        hfun: the upper one.
        args: further arguments, arrays or trees of arrays.
        epsabs: the absolute error that is allowed to the inner integral.
        epsrel: the relative one.

    Returns:
        The integral, and an estimate of the error.

    Example:
        >>> area = lambda r: dblquad(lambda y, x: 1.0 + 0.0 * y, 0.0, r, 0.0, lambda x: x)[0]
        >>> area(2.0), grad(area)(2.0).round(9)
        (2.0, np.float64(2.0))
    """
    return _nested("dblquad", func, [(gfun, hfun), (a, b)], args, {"epsabs": epsabs, "epsrel": epsrel})


def tplquad(
    func: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    gfun: Limit,
    hfun: Limit,
    qfun: Limit,
    rfun: Limit,
    args: Any = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> tuple[Any, Any]:
    """The integral of ``func(z, y, x, *args)``; ``z`` lies between ``qfun(x, y)`` and ``rfun(x, y)``, see ``dblquad``.

    Example:
        >>> volume = lambda c: tplquad(lambda z, y, x: c * x * y * z, 0.0, 1.0, 0.0, 1.0, 0.0, lambda x, y: 2.0)[0]
        >>> grad(volume)(3.0).round(9)
        np.float64(0.5)
    """
    ends = [qfun, rfun]
    swapped = [(lambda y, x, end=end: end(x, y)) if callable(end) else end for end in ends]
    ranges = [(swapped[0], swapped[1]), (gfun, hfun), (a, b)]
    return _nested("tplquad", func, ranges, args, {"epsabs": epsabs, "epsrel": epsrel})


def _nested(
    name: str, func: Callable[..., Any], ranges: list[tuple[Limit, Limit]], args: Any, options: dict[str, Any]
) -> tuple[Any, Any]:
    """The integral over the first variable inside that over the second, and so on."""
    check_callable(f"integrate.{name}", func)
    args = args if isinstance(args, tuple) else (args,)

    def limits(low: Limit, high: Limit) -> Callable[..., tuple[Any, Any]]:
        count = len(args)
        return lambda *outer: tuple(
            [end(*outer[: len(outer) - count]) if callable(end) else end for end in (low, high)]
        )

    value, error = nquad(func, [limits(*pair) for pair in ranges], args, options)
    return value, error


def nquad(
    func: Callable[..., Any], ranges: Sequence[Any], args: Any = None, opts: Any = None, full_output: bool = False
) -> tuple[Any, ...]:
    """The integral of ``func(x0, x1, ..., *args)`` over several variables, ``x0`` being the innermost.

    Differentiable in ``args``, in what the functions close over and in finite limits, to any order: see ``quad``.

    Args:
        func: a number for numbers.
        ranges: for each variable a pair of limits, or a function of the variables outside of it, and of ``args``, that
            gives them.
        args: further arguments; a tuple, or one.
        opts: options of ``quad``, or a function of the outer variables that gives them: for all variables or one for
            each.
        full_output: whether to return a dictionary with the number of evaluations, of plain values.

    Returns:
        The integral, and the largest estimate of an error.

    Raises:
        TypeError: ``full_output`` of traced values.

    Example:
        >>> whole = lambda k: nquad(lambda x, y, k: x * y * k, [lambda y, k: (0.0, y), (0.0, 2.0)], (k,))[0]
        >>> round(whole(3.0), 9), grad(whole)(3.0).round(9)
        (6.0, np.float64(2.0))
    """
    check_callable("integrate.nquad", func)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    plain = is_plain(*tree.leaves(args), *[end for pair in ranges if not callable(pair) for end in pair])
    if plain and not inside():
        theirs: Callable[..., tuple[Any, ...]] = import_scipy("integrate.nquad", "scipy.integrate").nquad
        return theirs(func, ranges, args, opts, full_output)
    if full_output:
        raise InputError("integrate.nquad: full_output is for plain values, got traced ones. Leave it out.")
    listed = list(opts) if isinstance(opts, (list, tuple)) else [opts or {}] * len(ranges)
    return _over(func, list(ranges), listed, args, ())


def _over(
    func: Callable[..., Any], ranges: list[Any], opts: list[Any], args: Any, outer: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The integral over the last of the variables that are left, ``outer`` being those outside of it."""
    last, options = ranges[-1], opts[-1]
    low, high = last(*outer, *args) if callable(last) else last
    chosen = options(*outer, *args) if callable(options) else options

    def inner(x: Any) -> Any:
        if len(ranges) == 1:
            return func(x, *outer, *args)
        return _over(func, ranges[:-1], opts[:-1], args, (x, *outer))[0]

    found: tuple[Any, ...] = quad(inner, low, high, **chosen)
    return found
