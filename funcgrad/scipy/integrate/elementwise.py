"""Elementwise integrals and sums of functions of numbers, over arrays of limits and arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer, describe, is_array, is_in_transform
from funcgrad.errors import InputError
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.concretization import strip_constant_tracers
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.reducing import as_inexact
from funcgrad.optional import import_scipy
from funcgrad.scipy.optimize.implicit import as_args, by_position
from funcgrad.scipy.settings import constant_array
from funcgrad.transforms.closures import RecordedClosure, example_by_example, looks_at_tracers
from funcgrad.transforms.products import jvp
from funcgrad.transforms.stopping import stop_gradient
from funcgrad.transforms.transformed import check_callable
from funcgrad.typing import ArrayLike
from funcgrad.writable import is_buffer, outside_transforms

__all__ = ["nsum", "tanhsinh"]


def tanhsinh(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    *,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    log: bool = False,
    maxlevel: int | None = None,
    minlevel: int = 2,
    atol: float | None = None,
    rtol: float | None = None,
    preserve_shape: bool = False,
    callback: Callable[..., Any] | None = None,
) -> Any:
    """Integrate ``f(x, *args, **kwargs)`` from ``a`` to ``b`` by tanh-sinh quadrature, elementwise.

    The integral is differentiable in ``args`` and ``kwargs``, in numbers that ``f`` closes over and in finite limits,
    to any order. The derivative in a limit is ``f`` there; in an argument, the integral of the derivative. Singular
    ends are allowed.

    Args:
        f: an elementwise function of arrays.
        a: the lower limits.
        b: the upper limits.
        args: further arguments, arrays that broadcast with the limits.
        kwargs: further arguments by name, likewise.
        log: whether ``f`` returns logarithms, with plain values only.
        maxlevel: the largest number of times that the number of points is doubled.
        minlevel: the smallest number of times that the number of points is doubled.
        atol: the allowed absolute error.
        rtol: the allowed relative error.
        preserve_shape: whether ``f`` returns arrays of another shape than its arguments, with plain values only.
        callback: called after each iteration, with plain values only.

    Returns:
        SciPy's result with ``integral``, ``error``, ``success``, ``status``, ``nfev``, ``maxlevel``.

    Raises:
        TypeError: ``log``, ``preserve_shape`` or ``callback`` with traced values; traced arrays that ``f`` closes over.

    Example:
        >>> from funcgrad.scipy.integrate import tanhsinh
        >>> of = lambda k: tanhsinh(lambda x, k: np.exp(-k * x) / np.sqrt(x), 0.0, np.inf, args=(k,)).integral
        >>> np.round([of(2.0), grad(of)(2.0)], 6)
        array([ 1.253314, -0.313329])
    """
    plain = {"log": log, "preserve_shape": preserve_shape, "callback": callback}
    options = {"maxlevel": maxlevel, "minlevel": minlevel, "atol": atol, "rtol": rtol}
    return _Elementwise("tanhsinh", "integral", True, options).result(f, a, b, args, kwargs, plain)


def nsum(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    *,
    step: ArrayLike = 1,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    log: bool = False,
    maxterms: int = 2**20,
    tolerances: dict[str, float] | None = None,
) -> Any:
    """Sum ``f(x, *args, **kwargs)`` over ``x = a, a + step, ...`` up to ``b``, elementwise.

    The sum is differentiable in ``args``, ``kwargs`` and numbers that ``f`` closes over, to any order, by the sum of
    the derivative to the same tolerances. Limits and steps are constants.

    Args:
        f: an elementwise function of arrays; smooth, of one sign and without bumps if there are many terms.
        a: where the sums begin.
        b: where the sums end; ``numpy.inf`` is allowed.
        step: the distance of terms.
        args: further arguments, arrays that broadcast with the limits.
        kwargs: further arguments by name, likewise.
        log: whether ``f`` returns logarithms, with plain values only.
        maxterms: the largest number of terms that are added one by one.
        tolerances: ``rtol`` and ``atol``.

    Returns:
        SciPy's result with ``sum``, ``error``, ``success``, ``status``, ``nfev``.

    Raises:
        TypeError: ``log`` with traced values; traced limits; traced arrays that ``f`` closes over.

    Example:
        >>> from funcgrad.scipy.integrate import nsum
        >>> zeta = lambda s: nsum(lambda k, s: k**-s, 1.0, np.inf, args=(s,)).sum
        >>> np.round([zeta(2.0), grad(zeta)(2.0)], 6)
        array([ 1.644934, -0.937548])
    """
    a, b, step = map(strip_constant_tracers, (a, b, step))
    if not is_plain(a, b, step):
        raise InputError(
            f"integrate.nsum: limits and steps are constants, got {describe(a)}, {describe(b)}, {describe(step)}. Take "
            "stop_gradient of them."
        )
    options = {"step": step, "maxterms": maxterms, "tolerances": tolerances}
    return _Elementwise("nsum", "sum", False, options).result(f, a, b, args, kwargs, {"log": log})


class _Elementwise:
    """An elementwise routine of SciPy.

    Args:
        name: the name of the routine.
        field: the field of its result that has derivatives.
        moves: whether limits have derivatives.
        options: further arguments of the routine.
    """

    def __init__(self, name: str, field: str, moves: bool, options: dict[str, Any]) -> None:
        self.call, self.name, self.field, self.moves, self.options = f"integrate.{name}", name, field, moves, options

    def result(self, f: Callable[..., Any], a: Any, b: Any, args: Any, kwargs: Any, plain: dict[str, Any]) -> Any:
        """Return SciPy's result, with derivatives."""
        check_callable(self.call, f)
        f, args = by_position(f, as_args(args), kwargs)
        routine = getattr(import_scipy(self.call, "scipy.integrate"), self.name)
        given = [as_value(x) for x in (a, b, *args)]
        fun, held = self._hoist_closure(f, given)
        if is_plain(*given, *held):
            return routine(f, a, b, args=args, **self.options, **plain)
        if any(plain.values()):
            raise InputError(f"{self.call}: {', '.join(plain)} are for plain values, got traced ones. Leave them out.")
        given[:2] = _promoted_limits(a, b)
        given = list(map(as_inexact, (*given, *held)))
        found: list[Any] = []
        value, *facts = self._fields(fun, found, *given)
        made = type(found[-1])()
        made.update(found[-1])
        if len(found) > 1:  # the examples of a batch
            made.update(zip(self._facts(made), facts, strict=True))
        made[self.field] = value
        return made

    def _facts(self, result: Any) -> dict[str, Any]:
        """Return the fields of SciPy's result that are arrays without derivatives."""
        return {key: fact for key, fact in result.items() if key != self.field and is_array(fact)}

    def _hoist_closure(self, f: Callable[..., Any], given: list[Any]) -> tuple[Callable[..., Any], list[Any]]:
        """Return ``f`` with the numbers that it closes over as further arguments, and a list of these numbers."""
        if not is_in_transform():
            return f, []
        point, *args = stop_gradient([0.5 + 0.0 * fnp.sum(given[0] * 0.0), *given[2:]])
        point = fnp.where(fnp.isfinite(point), point, 0.5)
        closure = RecordedClosure(self.call, lambda x: f(x[0], *x[1]), (point, list(args)), checks_branches=True)
        if not closure.captured and not looks_at_tracers(f):
            return f, []
        shaped = [x for x in closure.captured if backend.shape_of(x)]
        if shaped:
            raise InputError(
                f"{self.call}: f takes arrays element by element and may close over traced numbers only, got "
                f"{describe(shaped[0])}. Pass arrays in args."
            )
        count = len(args)
        return lambda x, *every: closure((x, list(every[:count])), every[count:]), closure.captured

    def _fields(self, fun: Callable[..., Any], found: list[Any], *given: Any) -> list[Any]:
        """Return the field and the facts, and append SciPy's results to ``found``."""
        # constants need no derivative: a limit may be a singular point, the derivative in an argument may diverge
        moves = [isinstance(x, Tracer) and not is_buffer(x) for x in given]

        def compute(*some: Any) -> list[Any]:
            a, b, *args = [
                constant_array(self.call, x)[()] if not isinstance(x, Tracer) else np.asarray(x) for x in some
            ]
            routine = getattr(import_scipy(self.call, "scipy.integrate"), self.name)
            with outside_transforms():
                found.append(routine(fun, a, b, args=tuple(args), **self.options))
            value = np.asarray(found[-1][self.field])
            return [value.astype(np.result_type(a, b, *args), copy=False)[()], *self._facts(found[-1]).values()]

        def jvp_rule(leaves: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            outs = list(custom_call(*leaves, rules=rules))
            (a, b, *args), (da, db, *moving) = leaves, tangents
            total: Any = 0.0 * outs[0]
            if self.moves and moves[1]:
                total = total + self._at(fun, b, args) * db
            if self.moves and moves[0]:
                total = total - self._at(fun, a, args) * da
            for i, tangent in enumerate(moving):
                if moves[2 + i]:
                    total = total + tangent * self._fields(_partial(fun, i), [], a, b, *args)[0]
            return outs, [total, *[None] * (len(outs) - 1)]

        def run(*leaves: Any) -> list[Any]:
            outs = example_by_example(compute, leaves)
            if not outs:  # a batch without examples
                nothing = 0.0 * reduce(add, leaves)
                made = compute(*[np.ones(backend.shape_of(leaf)) for leaf in leaves])
                outs = [fnp.astype(nothing, backend.dtype_of(x)) for x in made]
            return outs

        rules = CustomRules(self.call, run, jvp=jvp_rule)
        return list(custom_call(*given, rules=rules))

    def _at(self, fun: Callable[..., Any], end: Any, args: list[Any]) -> Any:
        """Return the function at a limit; 0 at an infinite limit, where the function has vanished."""
        finite = fnp.isfinite(end)
        return fnp.where(finite, fun(fnp.where(finite, end, 0.5), *args), 0.0)


def _promoted_limits(a: Any, b: Any) -> list[Any]:
    """Return limits as arrays; a Python number takes the dtype of the other limit."""
    weak = [type(end) in (int, float) for end in (a, b)]
    ends = list(map(as_inexact, (a, b)))
    if weak[0] is not weak[1]:
        i = weak.index(True)
        ends[i] = fnp.astype(ends[i], backend.dtype_of(ends[1 - i]))
    return ends


def _partial(fun: Callable[..., Any], i: int) -> Callable[..., Any]:
    """Return the elementwise derivative of ``fun(x, *args)`` with respect to ``args[i]``."""

    def slope(x: Any, *args: Any) -> Any:
        whole = fnp.broadcast_to(args[i], np.broadcast_shapes(*map(backend.shape_of, (x, *args))))
        along = lambda value: fun(x, *args[:i], value, *args[i + 1 :])
        return jvp(along, (whole,), (backend.ones_like(whole),))[1]

    return slope
