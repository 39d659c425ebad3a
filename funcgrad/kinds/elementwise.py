"""Elementwise operations: one partial derivative per argument, and every mode follows.

The Jacobian is diagonal, so the same product ``ct * partial`` serves both modes. A record on the tape
carries in its slots 4 onwards the arguments and then the result, each only if a rule names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from funcgrad import backend, core
from funcgrad.core import Primitive, bind
from funcgrad.kinds.linear import batch_rule, broadcast_to, conform
from funcgrad.kinds.rules import NAMES, Operation, finish, positional_names, pull_of
from funcgrad.reverse import ReverseTracer

__all__ = ["elementwise"]

#: A partial derivative: a function of what it names among x, y, z, ans; a number where it is constant;
#: a function whose first name is ``t`` where it acts on the (co)tangent itself; None where there is none.
Partial: TypeAlias = Callable[..., Any] | int | float | None
Contribution: TypeAlias = Callable[[Any, Any], Any]

ndarray = np.ndarray
float64 = np.float64
_NUMBERS = frozenset((int, float))  # Python numbers: they never change an array's dtype or shape
_SCALARS = frozenset((float, float64))
_DIRECT = frozenset((ndarray, float, float64))
_NUMPY = _DIRECT | _NUMBERS
_PYTHON = frozenset((bool, int, float, complex))


def elementwise(
    name: str,
    impl: Callable[..., Any] | None = None,
    *,
    dx: Partial,
    dy: Partial = None,
    dz: Partial = None,
    arity: int | None = None,
    operator: Callable[..., Any] | None = None,
) -> Operation:
    """Define an operation that acts element by element, with broadcasting.

    Args:
        name: its name, and that of the array namespace's function when ``impl`` is None.
        impl: ``impl(xp, *args)``.
        dx: the partial derivative in the first argument, see ``Partial``.
        dy: the same for the second argument.
        dz: the same for the third.
        arity: the number of arguments, when the last ones have no partial derivative.
        operator: Python's operator that computes the same on two arrays or NumPy scalars, faster. It
            also marks arithmetic, whose result on Python numbers alone stays a Python number.

    Example:
        >>> import numpy as np
        >>> cube = elementwise("cube", lambda xp, x: x * x * x, dx=lambda x: 3 * x * x)
        >>> cube(np.array([1.0, 2.0]))
        array([1., 8.])
    """
    partials = (dx, dy, dz)
    arity = arity or max(i + 1 for i, p in enumerate(partials) if p is not None)
    rules = [_Rule(name, p, arity) for p in partials[:arity]]

    def apply(*args: Any) -> Any:
        """On what tracers hold: arithmetic of Python numbers alone gives a Python number."""
        ans = call(*args)
        return ans.item() if operator is not None and all(type(a) in _PYTHON for a in args) else ans

    reverse, forward = _derive(name, rules, apply)
    primitive = Primitive(name, impl, reverse, forward, batch_rule("elementwise", lambda *args: call(*args)))
    fast = (_unary, _binary, _general)[arity - 1] if None not in partials[:arity] else _general
    call = fast(primitive, rules, operator)
    return finish(call, primitive)


class _Rule:
    """One argument's partial derivative, ready to be applied to a (co)tangent and a node."""

    __slots__ = ("contribution", "differentiable", "needs")

    def __init__(self, name: str, partial: Partial, arity: int) -> None:
        slots = {**{n: 4 + i for i, n in enumerate(NAMES[:arity])}, "ans": 4 + arity}
        self.differentiable = partial is not None
        contribution, names = _contribution(partial, slots)
        self.contribution = pull_of(name, contribution)
        self.needs = frozenset(slots[n] for n in names)


def _contribution(partial: Partial, slots: dict[str, int]) -> tuple[Contribution, Sequence[str]]:
    """``contribution(ct, node)`` and the names of what it reads from the node."""
    if partial is None:
        return lambda ct, node: None, ()
    if not callable(partial):
        if partial == 1:
            return lambda ct, node: ct, ()
        return (lambda ct, node: -ct) if partial == -1 else (lambda ct, node: ct * partial), ()
    names = positional_names(partial)
    acts = names[:1] == ("t",)
    names = names[1:] if acts else names
    where = [slots[n] for n in names]
    if acts and len(where) != 1:
        return lambda ct, node: partial(ct, *[node[i] for i in where]), names
    if len(where) == 1:
        (i,) = where
        if acts:
            return lambda ct, node: partial(ct, node[i]), names
        return lambda ct, node: _scaled(ct, partial(node[i])), names
    if len(where) == 2:
        i, j = where
        return lambda ct, node: _scaled(ct, partial(node[i], node[j])), names
    return lambda ct, node: _scaled(ct, partial(*[node[i] for i in where])), names


def _scaled(ct: Any, partial: Any) -> Any:
    """``ct * partial``, with a tracer on the left where there is one: NumPy's operators reach it slowly."""
    return partial * ct if type(ct) is ndarray or type(ct) is float64 else ct * partial


def _derive(name: str, rules: list[_Rule], apply: Callable[..., Any]) -> tuple[Any, Any]:
    """The rules for any arguments: they may broadcast, mix dtypes, be tracers of outer traces."""
    wanted: dict[tuple[int, ...], tuple[bool, ...]] = {}  # traced positions -> which of arguments and result to save

    def pull(ct: Any, node: Any) -> Any:
        traced, primals = node[-2], node[-1]
        return [conform(rules[i].contribution(ct, node), *primals[i]) for i in traced]

    pull_of(name, pull)

    def reverse(args: Any, traced: Any, params: Any) -> Any:
        ans = apply(*args)
        if not any(rules[i].differentiable for i in traced):
            return ans, None, None
        keep = wanted.get(traced)
        if keep is None:
            needs = frozenset().union(*[rules[i].needs for i in traced])
            keep = wanted[traced] = tuple([4 + i in needs for i in range(len(args) + 1)])
        saved = [v if k else None for v, k in zip((*args, ans), keep, strict=True)]
        primals = {i: (backend.shape_of(args[i]), backend.dtype_of(args[i])) for i in traced}
        return ans, pull, (*saved, traced, primals)

    def forward(args: Any, tangents: Any, params: Any) -> Any:
        ans = apply(*args)
        node = (None, None, None, None, *args, ans)
        total = None
        for rule, t in zip(rules, tangents, strict=True):
            part = None if t is None else rule.contribution(t, node)
            if part is not None:
                total = part if total is None else total + part
        return ans, None if total is None else _spread(total, ans)

    return reverse, forward


def _spread(tangent: Any, ans: Any) -> Any:
    """``tangent`` in the shape and dtype of the result it belongs to."""
    shape, dtype = backend.shape_of(ans), backend.dtype_of(ans)
    if backend.dtype_of(tangent) != dtype:
        tangent = conform(tangent, None, dtype)
    return tangent if backend.shape_of(tangent) == shape else broadcast_to(tangent, to=shape)


def _alike(v: Any, w: Any) -> bool:
    """Whether two values meet without broadcasting or promotion."""
    kind = type(v)
    if kind is ndarray or kind is ReverseTracer:
        other = type(w)
        return (other is ndarray or other is ReverseTracer) and v.shape == w.shape and v.dtype is w.dtype
    return kind in _SCALARS and type(w) in _SCALARS


def _unary(primitive: Primitive, rules: list[_Rule], operator: Callable[..., Any] | None) -> Operation:
    kernel = operator or primitive.kernel(np)
    (rule,) = rules
    contribution = rule.contribution
    keep_x, keep_ans = 4 in rule.needs, 5 in rule.needs

    def call(x: Any, /) -> Any:
        kind = type(x)
        if kind is ReverseTracer and not core.no_grad_blocks:
            v, trace = x.value, x._trace
            ans = kernel(v) if type(v) in _DIRECT else call(v)
            node = (
                trace.next(),
                contribution,
                x.node,
                None,
                v if keep_x else None,
                ans if keep_ans else None,
            )
            return ReverseTracer(ans, trace, node)
        return kernel(x) if kind is ndarray or kind is float64 else bind(primitive, (x,), {})

    return call


def _binary(primitive: Primitive, rules: list[_Rule], operator: Callable[..., Any] | None) -> Operation:
    """The fast path of two arguments; what broadcasts or promotes takes the general one, through ``bind``."""
    plain = primitive.kernel(np)
    kernel = operator or plain
    pull_x, pull_y = rules[0].contribution, rules[1].contribution
    keep = [[slot in rule.needs for slot in (4, 5, 6)] for rule in rules]
    (x_x, x_y, x_ans), (y_x, y_y, y_ans) = keep
    both_x, both_y, both_ans = x_x or y_x, x_y or y_y, x_ans or y_ans

    def pull_both(ct: Any, node: Any) -> Any:
        return pull_x(ct, node), pull_y(ct, node)

    pull_of(primitive.name, pull_both)

    def compute(v: Any, w: Any) -> Any:
        """On what tracers hold: arithmetic of two Python numbers stays a Python number."""
        if type(v) not in _NUMPY or type(w) not in _NUMPY:  # a tracer, or another library's array
            return call(v, w)
        if operator is not None and type(v) in _NUMBERS and type(w) in _NUMBERS:
            return operator(float64(v), w).item()
        return kernel(v, w)

    def call(x: Any, y: Any, /) -> Any:
        if type(x) is ReverseTracer and not core.no_grad_blocks:
            v, trace = x.value, x._trace
            if type(y) is ReverseTracer and y._trace is trace:
                w = y.value
                if _alike(v, w):
                    ans = compute(v, w)
                    saved = (v if both_x else None, w if both_y else None, ans if both_ans else None)
                    return ReverseTracer(ans, trace, (trace.next(), pull_both, x.node, y.node, *saved))
            elif type(y) in _NUMBERS or (type(y) is not ReverseTracer and _alike(v, y)):
                ans = compute(v, y)
                saved = (v if x_x else None, y if x_y else None, ans if x_ans else None)
                return ReverseTracer(ans, trace, (trace.next(), pull_x, x.node, None, *saved))
        elif type(y) is ReverseTracer and not core.no_grad_blocks:
            w = y.value
            if type(x) in _NUMBERS or _alike(x, w):
                ans = compute(x, w)
                trace = y._trace
                saved = (x if y_x else None, w if y_y else None, ans if y_ans else None)
                return ReverseTracer(ans, trace, (trace.next(), pull_y, y.node, None, *saved))
        elif type(x) in _NUMPY and type(y) in _NUMPY:
            return plain(x, y)
        return bind(primitive, (x, y), {})

    return call


def _general(primitive: Primitive, rules: list[_Rule], operator: Callable[..., Any] | None) -> Operation:
    kernel = operator or primitive.kernel(np)

    def call(*args: Any) -> Any:
        for arg in args:
            if type(arg) not in _NUMPY:
                return bind(primitive, args, {})
        return kernel(*args)

    return call
