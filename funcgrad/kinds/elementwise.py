"""Elementwise operations: one partial derivative per argument, and every mode follows.

The Jacobian is diagonal, so the same product ``ct * partial`` serves both modes. A record on the tape
carries in its slots 4 onwards the arguments and then the result, each only if a rule names it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import backend, blocks
from funcgrad.blocks import here
from funcgrad.core import Primitive
from funcgrad.kinds.linear import batch_rule
from funcgrad.kinds.partials import Partial, PartialRule, spread
from funcgrad.kinds.rules import Operation, bind, finish, pull_of
from funcgrad.kinds.shortcuts import NUMPY, binary, unary
from funcgrad.reverse import ReverseTracer, tracer_of

__all__ = ["elementwise"]

ndarray = np.ndarray
_PYTHON = frozenset((bool, int, float, complex))
_REAL = frozenset((np.dtype(np.float64), np.dtype(np.float32)))


def elementwise(
    name: str,
    impl: Callable[..., Any] | None = None,
    *,
    dx: Partial,
    dy: Partial = None,
    dz: Partial = None,
    arity: int | None = None,
    operator: Callable[..., Any] | None = None,
    foreign: Callable[..., Any] | None = None,
) -> Operation:
    """Define an operation that acts element by element, with broadcasting.

    Args:
        name: its name, and that of the array namespace's function when ``impl`` is None.
        impl: ``impl(xp, *args)``.
        dx: the partial derivative in the first argument, see ``partials.Partial``.
        dy: the same for the second argument.
        dz: the same for the third.
        arity: the number of arguments, when the last ones have no partial derivative.
        operator: Python's operator that computes the same on two arrays or NumPy scalars, faster. It
            also marks arithmetic, whose result on Python numbers alone stays a Python number.
        foreign: ``foreign(*args)`` where an argument is no value, a sparse matrix say; None where it cannot either.

    Example:
        >>> import numpy as np
        >>> cube = elementwise("cube", lambda xp, x: x * x * x, dx=lambda x: 3 * x * x)
        >>> cube(np.array([1.0, 2.0]))
        array([1., 8.])
    """
    partials = (dx, dy, dz)
    arity = arity or max(i + 1 for i, p in enumerate(partials) if p is not None)
    rules = [PartialRule(name, p, arity) for p in partials[:arity]]

    def arithmetic(*args: Any) -> Any:
        """On what tracers hold: arithmetic of Python numbers alone gives a Python number."""
        ans = call(*args)
        return ans.item() if all(type(a) in _PYTHON for a in args) else ans

    reverse, forward = _derive(name, rules, (lambda *args: call(*args)) if operator is None else arithmetic)
    primitive = Primitive(name, impl, reverse, forward, batch_rule("elementwise", lambda *args: call(*args)))
    primitive.foreign = foreign
    fast = (unary, binary, _general)[arity - 1] if None not in partials[:arity] else _general
    call = fast(primitive, rules, operator)
    return finish(call, primitive)


def _derive(name: str, rules: list[PartialRule], apply: Callable[..., Any]) -> tuple[Any, Any]:
    """The rules for any arguments: they may broadcast, mix dtypes, be tracers of outer traces."""
    wanted: dict[tuple[int, ...], tuple[bool, ...]] = {}  # traced positions -> which of arguments and result to save

    def pull(ct: Any, node: Any) -> Any:
        traced, primals = node[-2], node[-1]
        return [rules[i].conformed(ct, node, *primals[i]) for i in traced]

    pull_of(name, pull).pairs = len(rules) == 2  # type: ignore[attr-defined]

    def reverse(args: Any, traced: Any, params: Any) -> Any:
        ans = apply(*args)
        if not any(rules[i].differentiable for i in traced):
            return ans, None, None
        keep = wanted.get(traced)
        if keep is None:
            needs = frozenset().union(*[rules[i].needs for i in traced])
            keep = wanted[traced] = tuple([4 + i in needs for i in range(len(args) + 1)])
        saved = [v if k else None for v, k in zip((*args, ans), keep, strict=True)]
        primals = {i: backend.like(args[i]) for i in traced}
        return ans, pull, (*saved, traced, primals)

    def forward(args: Any, tangents: Any, params: Any) -> Any:
        ans = apply(*args)
        node = (None, None, None, None, *args, ans)
        total = None
        for rule, t in zip(rules, tangents, strict=True):
            part = None if t is None else rule.contribution(t, node)
            if part is not None:
                total = part if total is None else total + part
        return ans, None if total is None else spread(total, ans)

    return reverse, forward


def _general(primitive: Primitive, rules: list[PartialRule], operator: Callable[..., Any] | None) -> Operation:
    kernel = operator or primitive.kernel(np)
    recorded = _recorder(primitive.name, rules, kernel)

    def call(*args: Any) -> Any:
        for arg in args:
            if type(arg) not in NUMPY:
                made = None if (blocks.entered and here()) else recorded(args)
                return bind(primitive, args, {}) if made is None else made
        return bind(primitive, args, {}) if (blocks.runners and here()) else kernel(*args)

    return call


def _recorder(name: str, rules: list[PartialRule], kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The quick way of reverse mode: arrays of one dtype, of the result's shape, beside ordinary constants."""
    wanted: dict[tuple[int, ...], list[bool]] = {}  # traced positions -> which of arguments and result to save

    def pull(ct: Any, node: Any) -> Any:
        return [rules[i].contribution(ct, node) for i in node[-1]]

    pull_of(name, pull)

    def recorded(args: tuple[Any, ...]) -> ReverseTracer | None:
        """The result; None where there is more to see."""
        trace: Any = None
        values, traced, parents = [], [], []
        for i, arg in enumerate(args):
            if type(arg) is ReverseTracer:
                if (trace is not None and arg._trace is not trace) or not rules[i].differentiable:
                    return None
                arg, trace, parent = arg.value, arg._trace, arg.node
                traced.append(i)
                parents.append(parent)
                if type(arg) is not ndarray or arg.dtype not in _REAL:
                    return None
            elif type(arg) not in NUMPY or (type(arg) is ndarray and arg.dtype.kind not in "fciub"):
                return None
            values.append(arg)
        if trace is None:
            return None
        ans, where = kernel(*values), tuple(traced)
        if type(ans) is not ndarray or any(
            values[i].shape != ans.shape or values[i].dtype is not ans.dtype for i in where
        ):
            return None
        keep = wanted.get(where)
        if keep is None:
            needs = frozenset().union(*[rules[i].needs for i in where])
            keep = wanted[where] = [4 + i in needs for i in range(len(args) + 1)]
        saved = [v if k else None for v, k in zip((*values, ans), keep, strict=True)]
        if len(where) == 1:
            return tracer_of(ans, trace, (next(trace.numbers), rules[where[0]].pull, parents[0], None, *saved))
        return tracer_of(ans, trace, (next(trace.numbers), pull, None, tuple(parents), *saved, where))

    return recorded
