"""The quick ways of elementwise operations of one and two arguments, before the general rules.

They know ordinary arrays and numbers in one run of reverse or forward mode, and go around ``bind``.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import add, mul, sub, truediv
from typing import Any, TypeAlias

import numpy as np

from funcgrad import backend, blocks
from funcgrad.batching import BatchTrace, BatchTracer
from funcgrad.blocks import here
from funcgrad.core import Primitive, Tracer
from funcgrad.forward import ForwardTracer, dual
from funcgrad.kinds.forms import (
    DOUBLE,
    REAL,
    SCALARS,
    alike,
    are_doubles,
    beside,
    beside_doubles,
    bottom,
    is_double,
    keeps_dtype,
)
from funcgrad.kinds.linear import conform
from funcgrad.kinds.partials import Contribution, PartialRule, pull_both, spread
from funcgrad.kinds.rows import in_columns
from funcgrad.kinds.rules import Operation, bind, pull_of
from funcgrad.reverse import ReverseTracer, tracer_of
from funcgrad.writable import clone

__all__ = ["NUMPY", "binary", "unary"]

Rules: TypeAlias = list[PartialRule]
Kernel: TypeAlias = Callable[..., Any]
ndarray = np.ndarray
float64 = np.float64
_NUMBERS = frozenset((int, float))  # Python numbers: they never change an array's dtype or shape
_DIRECT = frozenset((ndarray, float, float64, np.float32))
_TRACERS = frozenset((ReverseTracer, ForwardTracer))
_ARRAYS = frozenset((ndarray, BatchTracer))
_DOUBLES = frozenset((ndarray, float64))
NUMPY = _DIRECT | _NUMBERS
#: What Python computes of floats as NumPy does. Its quotients and powers raise errors, or are complex.
_CLOSED = (add, sub, mul)
#: What takes a number as an array without axes for what it is; powers look at Python's numbers.
_CONVERTING = (add, sub, mul, truediv)


def unary(primitive: Primitive, rules: Rules, operator: Kernel | None) -> Operation:
    """The operation of one argument that ``primitive`` stands for.

    Args:
        primitive: what computes and interprets all that has no quick way.
        rules: one for each argument.
        operator: Python's operator that computes the same, if there is one.
    """
    kernel = operator or primitive.kernel(np)
    pull = rules[0].pull
    keep_x, keep_ans = 4 in rules[0].needs, 5 in rules[0].needs
    own = primitive.impl is None  # NumPy's function, which keeps the dtype

    def on_value(v: Any) -> Any:
        """On what a tracer holds; None where only the general rules know what to do."""
        if backend.dtype_of(bottom(v)).kind == "V":
            return None
        ans = kernel(v) if type(v) in _DIRECT else call(v)
        return ans if own or keeps_dtype(ans, v) else None

    forward = _pushed_alone(rules[0].contribution, kernel, own, on_value)

    def call(x: Any, /) -> Any:
        if type(x) is ReverseTracer and not (blocks.entered and here()):
            v, form, parent = x.value, x.form, x.node
            trace = x._trace
            if own and (form is not None or type(v) in SCALARS or (type(v) is ndarray and v.dtype in REAL)):
                ans = kernel(v)
            elif own and type(v) is ReverseTracer and (v.form is not None or is_double(v)):
                ans = call(v)
            else:
                ans, form = on_value(v), None if form is float64 else form
            if ans is not None:
                kept, last, made = v if keep_x else None, ans if keep_ans else None, ReverseTracer()
                made.value, made._trace = ans, trace
                made.form = float64 if type(ans) is float64 else form
                made.node = (next(trace.numbers), pull, parent, None, kept, last)
                return made
        elif (type(x) is ndarray or type(x) is float64) and not (blocks.runners and here()):
            return kernel(x)
        elif type(x) is ForwardTracer and x._trace.open and not (blocks.entered and here()):
            if (pushed := forward(x)) is not None:
                return pushed
        elif type(x) is BatchTracer and x._trace.open and not (blocks.entered and here()):
            return BatchTracer(call(x.value), x._trace)
        return bind(primitive, (x,), {})

    return call


def _pushed_alone(push: Contribution, kernel: Kernel, own: bool, on_value: Kernel) -> Kernel:
    """Forward mode; None where only the general rules know what to do."""

    def call(x: Any) -> Any:
        v, t, trace = x.value, x.tangent, x._trace
        form = x.form
        if own and form is not None:
            ans = kernel(v)
            return dual(ans, push(t, (None, None, None, None, v, ans)), trace, form)
        plain = own and (v.dtype is DOUBLE if type(v) is ndarray else type(v) in SCALARS)
        ans = kernel(v) if plain else on_value(v)
        return None if ans is None else _carried(ans, push(t, (None, None, None, None, v, ans)), trace)

    return call


def binary(primitive: Primitive, rules: Rules, operator: Kernel | None) -> Operation:
    """The operation of two arguments that ``primitive`` stands for; see ``unary``.

    What promotes or nests otherwise than the quick ways know takes the general one, through ``bind``.
    """
    plain = primitive.kernel(np)
    kernel = operator or plain

    def compute(v: Any, w: Any) -> Any:
        """On what tracers hold: arithmetic of two Python numbers stays a Python number."""
        if type(v) not in NUMPY or type(w) not in NUMPY:  # a tracer, or another library's array
            return call(v, w)
        if operator is not None and type(v) in _NUMBERS and type(w) in _NUMBERS:
            return operator(float64(v), w).item()
        return kernel(v, w)

    def any_two(x: Any, y: Any, /) -> Any:
        trace: Any
        if not (blocks.entered and here()):
            if type(x) in _TRACERS:
                if type(y) not in _TRACERS:
                    if (made := with_right(x, y)) is not None:
                        return made
                elif y._trace is x._trace and (made := together(x, y)) is not None:
                    return made
            elif type(y) in _TRACERS:
                if (made := with_left(y, x)) is not None:
                    return made
            elif (trace := _batch_of(x, y)) is not None:
                v, w = x.value if type(x) is BatchTracer else x, y.value if type(y) is BatchTracer else y
                return BatchTracer(call(v, w), trace)
        if type(x) in NUMPY and type(y) in NUMPY and not (blocks.runners and here()):
            return plain(x, y)
        return bind(primitive, (x, y), {})

    name, foreign = primitive.name, primitive.impl is not None
    both, unlike = pull_both(name, rules), in_columns(plain, kernel) if isinstance(plain, np.ufunc) else kernel
    primitive.prefer(unlike, 2)
    together = _together(name, rules, both, unlike, compute, foreign)
    with_right = _beside_constant(name, rules[0], unlike, compute, foreign)
    swapped = (lambda v, c: unlike(c, v)), (lambda v, c: compute(c, v))
    with_left = _beside_constant(name, rules[1], *swapped, foreign, swapped=True)
    numbers = SCALARS if operator in _CLOSED else frozenset((float64,))
    forward = _pushed(rules, kernel, numbers, any_two)
    call = any_two if foreign else _commonest(rules, both, kernel, numbers, forward, any_two)
    return call


def _commonest(
    rules: Rules, both: Contribution, kernel: Kernel, numbers: frozenset[type], forward: Kernel, rest: Kernel
) -> Kernel:
    """Reverse mode with less ado for ``numbers``, arrays of doubles, constants beside these; ``rest`` for others."""
    one = (rules[0].pull, kernel in _CONVERTING, *[slot in rules[0].needs for slot in (4, 5, 6)])
    keep_x, keep_y, keep_ans = [any(slot in rule.needs for rule in rules) for slot in (4, 5, 6)]
    two = (both, not (rules[0].constant and rules[1].constant), keep_x, keep_y, keep_ans)
    return _recording(kernel, numbers, one, two, (_behind(rules[1], kernel, numbers, rest), forward, rest))


def _recording(kernel: Kernel, numbers: frozenset[type], one: Any, two: Any, others: tuple[Kernel, ...]) -> Kernel:
    """What records an operation of a tracer and a constant, and of two tracers.

    ``one`` and ``two`` are the pull, and whether the record keeps the first argument, the second, the result. Before
    these stands whether a number becomes an array, and whether the record keeps anything.
    """
    (pull, convert, keep_x, keep_y, keep_ans), (behind, forward, rest) = one, others
    both, keeps, both_x, both_y, both_ans = two

    def call(x: Any, y: Any, /) -> Any:
        if type(x) is not ReverseTracer or (blocks.entered and here()):
            return behind(x, y) if type(y) is ReverseTracer else forward(x, y)
        v, trace, form = x.value, x._trace, x.form
        parent = x.node
        if type(y) is ReverseTracer:
            w, theirs, other = y.value, y._trace, y.node
            if theirs is trace and (
                (form is not None and form == y.form)
                or (type(v) is type(w) is ndarray and v.dtype is w.dtype is DOUBLE and (form := v.shape) == w.shape)
                or (type(v) in numbers and type(w) in numbers)
            ):
                ans = kernel(v, w)
            elif theirs is trace and type(v) is type(w) in _TRACERS and are_doubles(v, w):
                ans = call(v, w)
            else:
                return rest(x, y)
            if keeps:
                first, second, last = v if both_x else None, w if both_y else None, ans if both_ans else None
                node: Any = (next(trace.numbers), both, parent, other, first, second, last)
            else:
                node = (next(trace.numbers), both, parent, other)
        else:
            if form is not None and (type(y) is float or type(y) is int):
                c = beside_doubles(y) if convert and form is not float64 else y
                ans = kernel(v, c)
            elif (c := beside(v, y, numbers, convert, form)) is not None:
                ans = call(v, c) if type(v) in _TRACERS else kernel(v, c)
            else:
                return rest(x, y)
            first, second, last = v if keep_x else None, c if keep_y else None, ans if keep_ans else None
            node = (next(trace.numbers), pull, parent, None, first, second, last)
        made = ReverseTracer()
        made.value, made._trace = ans, trace
        made.form, made.node = form, node
        return made

    return call


def _behind(rule: PartialRule, kernel: Kernel, numbers: frozenset[type], rest: Kernel) -> Kernel:
    """The same for an array of doubles behind a constant."""
    pull, convert = rule.pull, kernel in _CONVERTING
    keep_x, keep_y, keep_ans = [slot in rule.needs for slot in (4, 5, 6)]

    def call(x: Any, y: Any) -> Any:
        w, trace, form = y.value, y._trace, y.form
        parent = y.node
        if type(w) is not ndarray or (blocks.entered and here()) or (c := beside(w, x, numbers, convert, form)) is None:
            return rest(x, y)
        ans = kernel(c, w)
        first, second, last = c if keep_x else None, w if keep_y else None, ans if keep_ans else None
        made = tracer_of(ans, trace, (next(trace.numbers), pull, parent, None, first, second, last))
        made.form = form
        return made

    return call


def _pushed(rules: Rules, kernel: Kernel, numbers: frozenset[type], rest: Kernel) -> Kernel:
    """Forward mode with less ado for ``numbers``, arrays of doubles, constants beside these; ``rest`` for others."""
    push_x, push_y = rules[0].contribution, rules[1].contribution
    convert = kernel in _CONVERTING

    def call(x: Any, y: Any) -> Any:
        if type(x) is not ForwardTracer or (blocks.entered and here()) or not x._trace.open:
            return rest(x, y)
        v, t, trace, form = x.value, x.tangent, x._trace, x.form
        if type(y) is ForwardTracer:
            w, u, theirs = y.value, y.tangent, y._trace
            if theirs is not trace or not ((known := form is not None and form == y.form) or meet(v, w, t, u)):
                return rest(x, y)
            ans = kernel(v, w)
            node = (None, None, None, None, v, w, ans)
            tangent = push_x(t, node) + push_y(u, node)
        else:
            if known := form is not None and (type(y) is float or type(y) is int):
                c = beside_doubles(y) if convert and form is not float64 else y
            elif not fits(v, t) or (c := beside(v, y, numbers, convert)) is None:
                return rest(x, y)
            ans = kernel(v, c)
            tangent = push_x(t, (None, None, None, None, v, c, ans))
        return dual(ans, tangent, trace, form) if known else _carried(ans, tangent, trace)

    def fits(v: Any, t: Any) -> bool:
        return type(t) in _ARRAYS if type(v) is ndarray else type(v) in numbers and type(t) in numbers

    def meet(v: Any, w: Any, t: Any, u: Any) -> bool:
        if type(v) is not ndarray:
            return fits(v, t) and fits(w, u) and type(w) is not ndarray
        doubles = type(w) is ndarray and v.dtype is w.dtype is DOUBLE and v.shape == w.shape
        return doubles and type(t) in _ARRAYS and type(u) in _ARRAYS

    return call


def _batch_of(x: Any, y: Any) -> BatchTrace | None:
    """The batch of two arguments whose examples meet as they lie in memory, or of one of them beside a constant."""
    batched, other = (x, y) if type(x) is BatchTracer else (y, x)
    if type(batched) is not BatchTracer or not batched._trace.open:
        return None
    trace: BatchTrace = batched._trace
    rank = len(backend.shape_of(batched.value))
    if type(other) is BatchTracer:
        return trace if other._trace is trace and len(backend.shape_of(other.value)) == rank else None
    if type(other) is ndarray:
        return trace if other.ndim < rank and other.dtype.kind in "fciub" else None
    return trace if type(other) in SCALARS or type(other) is int else None


def _pull_unlike(first: PartialRule, second: PartialRule) -> Contribution:
    """The pull of two arguments of which one at least has not the result's shape and dtype."""
    alone = first.identity and second.identity

    def pull(ct: Any, node: Any) -> Any:
        v_like, w_like = node[7:]
        if alone:
            return conform(ct, *v_like), conform(ct, *w_like)
        return first.conformed(ct, node, *v_like), second.conformed(ct, node, *w_like)

    return pull


def _together(
    name: str,
    rules: Rules,
    both: Contribution,
    kernel: Kernel,
    compute: Kernel,
    foreign: bool,
) -> Callable[[Any, Any], Tracer | None]:
    """Process an operation of two tracers of one trace, else None."""
    push_x, push_y = rules[0].contribution, rules[1].contribution
    keep_x, keep_y, keep_ans = [any(slot in rule.needs for rule in rules) for slot in (4, 5, 6)]
    pull_unlike = pull_of(name, _pull_unlike(*rules))

    def process(x: Any, y: Any) -> Tracer | None:
        v, trace, parent = x.value, x._trace, x.link
        w, theirs, other = y.value, y._trace, y.link
        if theirs is not trace:
            return None
        if (type(v) is ndarray and type(w) in _DOUBLES) or (type(w) is ndarray and type(v) is float64):
            ans, dtype = kernel(v, w), v.dtype
            same = dtype is w.dtype and v.shape == w.shape and (dtype is DOUBLE or dtype.kind != "V")
        elif alike(v, w):
            ans, same = compute(v, w), True
        elif is_double(v) and is_double(w):
            ans, same = compute(v, w), False
        else:
            return None
        if foreign and not keeps_dtype(ans, v):
            return None
        if type(x) is ForwardTracer:
            if not trace.open:
                return None
            node = (None, None, None, None, v, w, ans)
            tangent = push_x(parent, node) + push_y(other, node)
            return _carried(ans, tangent, trace)
        kept = v if keep_x else None, w if keep_y else None, ans if keep_ans else None
        if same:
            return tracer_of(ans, trace, (next(trace.numbers), both, parent, other, *kept))
        likes = (backend.like(v), backend.like(w))
        return tracer_of(ans, trace, (next(trace.numbers), pull_unlike, parent, other, *kept, *likes))

    return process


def _beside_constant(
    name: str,
    rule: PartialRule,
    kernel: Kernel,
    compute: Kernel,
    foreign: bool,
    swapped: bool = False,
) -> Callable[[Any, Any], Tracer | None]:
    """Process an operation of a tracer and a constant, None where only the general rules know what to do.

    ``kernel`` and ``compute`` take the tracer's value first, also where it is the second argument (``swapped``).
    """
    push, pull, evaluate = rule.contribution, rule.pull, _with_constant(kernel, compute, foreign)
    keep_v, keep_c = (5 in rule.needs, 4 in rule.needs) if swapped else (4 in rule.needs, 5 in rule.needs)
    keep_ans = 6 in rule.needs

    def pull_unlike(ct: Any, node: Any) -> Any:
        return rule.conformed(ct, node, *node[7:])

    pull_of(name, pull_unlike)

    def process(tracer: Any, constant: Any) -> Tracer | None:
        if type(constant) not in NUMPY:
            constant = clone(constant)  # the tape keeps it, and the program may write to what it has
            if type(constant) in _TRACERS:  # another thread has written something traced to it
                return None
        v, trace, parent = tracer.value, tracer._trace, tracer.link
        ans, like = evaluate(v, constant)
        if ans is None:
            return None
        if type(tracer) is ForwardTracer:
            if like or not trace.open:
                return None
            args = (constant, v) if swapped else (v, constant)
            return _carried(ans, push(parent, (None, None, None, None, *args, ans)), trace)
        first, second, last = v if keep_v else None, constant if keep_c else None, ans if keep_ans else None
        if swapped:
            first, second = second, first
        if like:
            return tracer_of(ans, trace, (next(trace.numbers), pull_unlike, parent, None, first, second, last, *like))
        return tracer_of(ans, trace, (next(trace.numbers), pull, parent, None, first, second, last))

    return process


def _with_constant(kernel: Kernel, compute: Kernel, foreign: bool) -> Callable[[Any, Any], tuple[Any, tuple[Any, ...]]]:
    """Compute with what a tracer holds and a constant: the result, None where only the general rules can.

    With it come shape and dtype of the tracer's value, if those of the result are others.
    """

    def evaluate(v: Any, constant: Any) -> tuple[Any, tuple[Any, ...]]:
        if type(v) is ndarray and type(constant) in NUMPY:
            try:
                ans = kernel(v, constant)
            except (TypeError, AttributeError):  # no number: the way round refuses it, and says more than NumPy does
                return None, ()
            dtype = v.dtype
            if ans.shape == v.shape and ans.dtype is dtype and dtype.kind != "V":
                return ans, ()
            return (ans, (v.shape, dtype)) if ans.dtype.kind in "fc" and dtype.kind != "V" else (None, ())
        if type(constant) in _NUMBERS or alike(v, constant):
            if type(v) not in SCALARS and backend.dtype_of(bottom(v)).kind == "V":
                return None, ()
            ans = compute(v, constant)
            return (None, ()) if foreign and not keeps_dtype(ans, v) else (ans, ())
        return None, ()

    return evaluate


def _carried(ans: Any, tangent: Any, trace: Any) -> ForwardTracer:
    """A result of forward mode with its tangent, which gets the result's shape and dtype if it has others."""
    form = None
    if type(ans) is type(tangent) is float64:
        form = float64
    elif type(ans) is ndarray and type(tangent) in _ARRAYS:
        shape = ans.shape
        if tangent.dtype is not ans.dtype or tangent.shape != shape:
            tangent = spread(tangent, ans)
        elif type(tangent) is ndarray and ans.dtype is DOUBLE:
            form = shape
    elif not alike(ans, tangent):
        tangent = spread(tangent, ans)
    return dual(ans, tangent, trace, form)
