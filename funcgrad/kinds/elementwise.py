"""Elementwise operations: one partial derivative per argument, and every mode follows.

The Jacobian is diagonal, so the same product ``ct * partial`` serves both modes. A record on the tape
carries in its slots 4 onwards the arguments and then the result, each only if a rule names it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from funcgrad import backend, core
from funcgrad.core import Primitive, Tracer
from funcgrad.forward import ForwardTracer
from funcgrad.kinds.linear import batch_rule, broadcast_to, conform
from funcgrad.kinds.rules import NAMES, Operation, bind, check_names, finish, positional_names, pull_of
from funcgrad.reverse import ReverseTracer, tracer_of
from funcgrad.typing import Shape
from funcgrad.writable import Buffer, clone

__all__ = ["elementwise", "scaled"]

#: A partial derivative: a function of what it names among x, y, z, ans; one of these names where it is that value;
#: a number where it is constant; a function whose first name is ``t`` where it acts on the (co)tangent itself; None
#: where there is none.
Partial: TypeAlias = Callable[..., Any] | str | int | float | None
Contribution: TypeAlias = Callable[[Any, Any], Any]

ndarray = np.ndarray
float64 = np.float64
_NUMBERS = frozenset((int, float))  # Python numbers: they never change an array's dtype or shape
_SCALARS = frozenset((float, float64))
_DIRECT = frozenset((ndarray, float, float64, np.float32))
_TRACERS = frozenset((ReverseTracer, ForwardTracer))
_NUMPY = _DIRECT | _NUMBERS
#: Dtypes of kind "V", such as bfloat16, meet Python numbers with promotion: only the general rules conform cotangents.
_DOUBLE, _SINGLE = np.dtype(float64), np.dtype(np.float32)
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

    def arithmetic(*args: Any) -> Any:
        """On what tracers hold: arithmetic of Python numbers alone gives a Python number."""
        ans = call(*args)
        return ans.item() if all(type(a) in _PYTHON for a in args) else ans

    reverse, forward = _derive(name, rules, (lambda *args: call(*args)) if operator is None else arithmetic)
    primitive = Primitive(name, impl, reverse, forward, batch_rule("elementwise", lambda *args: call(*args)))
    fast = (_unary, _binary, _general)[arity - 1] if None not in partials[:arity] else _general
    call = fast(primitive, rules, operator)
    return finish(call, primitive)


class _Rule:
    """One argument's partial derivative, ready to be applied to a (co)tangent and a node."""

    __slots__ = ("constant", "contribution", "differentiable", "identity", "needs")

    def __init__(self, name: str, partial: Partial, arity: int) -> None:
        slots = {**{n: 4 + i for i, n in enumerate(NAMES[:arity])}, "ans": 4 + arity}
        self.differentiable = partial is not None
        self.constant = isinstance(partial, (int, float))
        self.identity = self.constant and partial == 1
        contribution, names = _contribution(name, partial, slots)
        self.contribution = pull_of(name, contribution)
        self.needs = frozenset(slots[n] for n in names)

    def conformed(self, ct: Any, node: Any, shape: Shape | None, dtype: Any) -> Any:
        """The contribution in the shape and dtype of the argument; what is summed is multiplied after that."""
        if self.constant:
            return conform(self.contribution(conform(ct, shape, dtype), node), None, dtype)
        return conform(self.contribution(ct, node), shape, dtype)


def _contribution(name: str, partial: Partial, slots: dict[str, int]) -> tuple[Contribution, Sequence[str]]:
    """``contribution(ct, node)`` and the names of what it reads from the node."""
    if partial is None:
        return lambda ct, node: None, ()
    if isinstance(partial, str):
        (i,) = [slots[n] for n in check_names(name, (partial,), slots)]
        return lambda ct, node: node[i] * ct if type(ct) is ndarray else scaled(ct, node[i]), (partial,)
    if not callable(partial):
        if partial == 1:
            return lambda ct, node: ct, ()
        return (lambda ct, node: -ct) if partial == -1 else (lambda ct, node: ct * partial), ()
    names = positional_names(partial)
    acts = names[:1] == ("t",)
    names = tuple(check_names(name, names[1:] if acts else names, slots))
    where = [slots[n] for n in names]
    if len(where) == 1:
        (i,) = where
        if acts:
            return lambda ct, node: partial(ct, node[i]), names
        return lambda ct, node: scaled(ct, partial(node[i])), names
    if len(where) == 2:
        i, j = where
        if acts:
            return lambda ct, node: partial(ct, node[i], node[j]), names
        return lambda ct, node: scaled(ct, partial(node[i], node[j])), names
    if acts:
        return lambda ct, node: partial(ct, *[node[i] for i in where]), names
    return lambda ct, node: scaled(ct, partial(*[node[i] for i in where])), names


def scaled(ct: Any, partial: Any) -> Any:
    """``ct * partial``, with a tracer on the left where there is one: NumPy's operators reach it slowly.

    A large partial that nobody else holds is overwritten: new memory costs more than the product.
    """
    if type(ct) is ndarray:
        if (
            type(partial) is ndarray
            and partial.size >= _LARGE
            and _references(partial) == _ALONE
            and partial.base is None
            and partial.dtype is ct.dtype
            and partial.shape == ct.shape
        ):
            return np.multiply(partial, ct, out=partial)
        return partial * ct
    # a float64 left of a tracer, or of a Python complex number, which would take it for a float
    return partial * ct if type(ct) is float64 and type(partial) is not complex else ct * partial


def _references(x: Any) -> int:
    return sys.getrefcount(x)


def _references_alone(ct: Any, partial: Any) -> int:
    """What ``_references`` says in ``scaled`` of a value that was made for this call only."""
    return _references(partial)


_LARGE = 10_000
#: Without the interpreter's lock the counts of other threads are not seen, so nothing counts as alone.
_ALONE = _references_alone(None, np.empty(1)) if getattr(sys, "_is_gil_enabled", lambda: True)() else -1


def _derive(name: str, rules: list[_Rule], apply: Callable[..., Any]) -> tuple[Any, Any]:
    """The rules for any arguments: they may broadcast, mix dtypes, be tracers of outer traces."""
    wanted: dict[tuple[int, ...], tuple[bool, ...]] = {}  # traced positions -> which of arguments and result to save

    def pull(ct: Any, node: Any) -> Any:
        traced, primals = node[-2], node[-1]
        return [rules[i].conformed(ct, node, *primals[i]) for i in traced]

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
        return ans, None if total is None else _spread(total, ans)

    return reverse, forward


def _spread(tangent: Any, ans: Any) -> Any:
    """``tangent`` in the shape and dtype of the result it belongs to."""
    shape, dtype = backend.shape_of(ans), backend.dtype_of(ans)
    if backend.dtype_of(tangent) != dtype:
        tangent = conform(tangent, None, dtype)
    return tangent if backend.shape_of(tangent) == shape else broadcast_to(tangent, to=shape)


def _carried(ans: Any, tangent: Any, trace: Any) -> ForwardTracer:
    """A result of forward mode with its tangent, which gets the result's shape and dtype if it has others."""
    if type(ans) is ndarray and type(tangent) is ndarray:
        if tangent.dtype is not ans.dtype or tangent.shape != ans.shape:
            tangent = _spread(tangent, ans)
    elif not _alike(ans, tangent):
        tangent = _spread(tangent, ans)
    made = ForwardTracer()
    made.value, made._trace, made.tangent = ans, trace, tangent
    return made


def _alike(v: Any, w: Any) -> bool:
    """Whether two values meet without broadcasting or promotion."""
    while type(v) in _TRACERS:
        v = v.value
    while type(w) in _TRACERS:
        w = w.value
    if type(v) is ndarray:
        dtype = v.dtype
        same = type(w) is ndarray and dtype is w.dtype and v.shape == w.shape
        return same and (dtype is _DOUBLE or dtype.kind != "V")
    return type(v) in _SCALARS and type(w) in _SCALARS


def _keeps(ans: Any, v: Any) -> bool:
    """Whether a result has the dtype of an argument: of NumPy's functions it is known, others may have fewer dtypes."""
    return backend.dtype_of(ans) == backend.dtype_of(v)


def _unary(primitive: Primitive, rules: list[_Rule], operator: Callable[..., Any] | None) -> Operation:
    kernel = operator or primitive.kernel(np)
    (rule,) = rules
    pull = rule.contribution
    keep_x, keep_ans = 4 in rule.needs, 5 in rule.needs
    foreign = primitive.impl is not None

    def on_value(v: Any) -> Any:
        """On what a tracer holds; None where only the general rules know what to do."""
        if backend.dtype_of(v).kind == "V":
            return None
        ans = kernel(v) if type(v) in _DIRECT else call(v)
        return None if foreign and not _keeps(ans, v) else ans

    def call(x: Any, /) -> Any:
        if type(x) is ReverseTracer and not core.no_grad_blocks:
            v, trace = x.value, x._trace
            if not foreign and (v.dtype is _DOUBLE or v.dtype is _SINGLE if type(v) is ndarray else type(v) is float64):
                ans = kernel(v)
            else:
                ans = on_value(v)
            if ans is not None:
                made = ReverseTracer()
                made.value, made._trace = ans, trace
                made.node = (trace.next(), pull, x.node, None, v if keep_x else None, ans if keep_ans else None)
                return made
        elif type(x) is ndarray or type(x) is float64:
            if not core.kernel_runners:
                return kernel(x)
        elif type(x) is ForwardTracer and x._trace.open and not core.no_grad_blocks:
            v = x.value
            ans = on_value(v)
            if ans is not None:
                return _carried(ans, pull(x.tangent, (None, None, None, None, v, ans)), x._trace)
        return bind(primitive, (x,), {})

    return call


def _binary(primitive: Primitive, rules: list[_Rule], operator: Callable[..., Any] | None) -> Operation:
    """The fast paths of two arguments; what promotes or nests otherwise takes the general one, through ``bind``."""
    plain = primitive.kernel(np)
    kernel = operator or plain

    def compute(v: Any, w: Any) -> Any:
        """On what tracers hold: arithmetic of two Python numbers stays a Python number."""
        if type(v) not in _NUMPY or type(w) not in _NUMPY:  # a tracer, or another library's array
            return call(v, w)
        if operator is not None and type(v) in _NUMBERS and type(w) in _NUMBERS:
            return operator(float64(v), w).item()
        return kernel(v, w)

    def any_two(x: Any, y: Any, /) -> Any:
        if not core.no_grad_blocks:
            if type(x) in _TRACERS:
                if type(y) not in _TRACERS:
                    if (made := with_right(x, y)) is not None:
                        return made
                elif y._trace is x._trace and (made := together(x, y)) is not None:
                    return made
            elif type(y) in _TRACERS and (made := with_left(y, x)) is not None:
                return made
        if type(x) in _NUMPY and type(y) in _NUMPY and not core.kernel_runners:
            return plain(x, y)
        return bind(primitive, (x, y), {})

    name, foreign = primitive.name, primitive.impl is not None
    pull_both = _pull_both(name, rules)
    together = _together(name, rules, pull_both, kernel, compute, foreign)
    with_right = _beside_constant(name, rules[0], kernel, compute, foreign)
    swapped = (lambda v, c: kernel(c, v)), (lambda v, c: compute(c, v))
    with_left = _beside_constant(name, rules[1], *swapped, foreign, swapped=True)
    call = any_two if foreign else _commonest(rules, pull_both, kernel, any_two)
    return call


def _commonest(rules: list[_Rule], pull_both: Contribution, kernel: Callable[..., Any], rest: Operation) -> Operation:
    """Reverse mode with less ado for double numbers, arrays of them, and a number beside these; ``rest`` for others."""
    pull_x = rules[0].contribution
    keep_x, keep_y, keep_ans = [slot in rules[0].needs for slot in (4, 5, 6)]
    both_x, both_y, both_ans = [any(slot in rule.needs for rule in rules) for slot in (4, 5, 6)]

    def call(x: Any, y: Any, /) -> Any:
        if type(x) is ReverseTracer and not core.no_grad_blocks:
            v, trace = x.value, x._trace
            if type(y) is float or type(y) is int:
                if v.dtype is _DOUBLE or v.dtype is _SINGLE if type(v) is ndarray else type(v) is float64:
                    ans = kernel(v, y)
                    made = ReverseTracer()
                    made.value, made._trace = ans, trace
                    first, second, last = v if keep_x else None, y if keep_y else None, ans if keep_ans else None
                    made.node = (trace.next(), pull_x, x.node, None, first, second, last)
                    return made
            elif type(y) is ReverseTracer and y._trace is trace:
                w = y.value
                if (
                    type(w) is ndarray and v.dtype is w.dtype is _DOUBLE and v.shape == w.shape
                    if type(v) is ndarray
                    else type(v) is type(w) is float64
                ):
                    ans = kernel(v, w)
                    made = ReverseTracer()
                    made.value, made._trace = ans, trace
                    first, second, last = v if both_x else None, w if both_y else None, ans if both_ans else None
                    made.node = (trace.next(), pull_both, x.node, y.node, first, second, last)
                    return made
        return rest(x, y)

    return call


def _pull_both(name: str, rules: list[_Rule]) -> Contribution:
    """The cotangents of two arguments that need not be conformed."""
    pull_x, pull_y = rules[0].contribution, rules[1].contribution

    def pull(ct: Any, node: Any) -> Any:
        return pull_x(ct, node), pull_y(ct, node)

    return pull_of(name, (lambda ct, node: (ct, ct)) if rules[0].identity and rules[1].identity else pull)


def _together(
    name: str,
    rules: list[_Rule],
    pull_both: Contribution,
    kernel: Callable[..., Any],
    compute: Callable[..., Any],
    foreign: bool,
) -> Callable[[Any, Any], Tracer | None]:
    """Process an operation of two tracers of one trace, else None."""
    pull_x, pull_y = rules[0].contribution, rules[1].contribution
    keep_x, keep_y, keep_ans = [any(slot in rule.needs for rule in rules) for slot in (4, 5, 6)]

    def pull_unlike(ct: Any, node: Any) -> Any:
        v_like, w_like = node[7:]
        return rules[0].conformed(ct, node, *v_like), rules[1].conformed(ct, node, *w_like)

    pull_of(name, pull_unlike)

    def process(x: Any, y: Any) -> Tracer | None:
        v, w, trace = x.value, y.value, x._trace
        if type(v) is ndarray and type(w) is ndarray:
            ans, dtype = kernel(v, w), v.dtype
            alike = dtype is w.dtype and v.shape == w.shape and (dtype is _DOUBLE or dtype.kind != "V")
        elif _alike(v, w):
            ans, alike = compute(v, w), True
        else:
            return None
        if foreign and not _keeps(ans, v):
            return None
        if type(x) is ForwardTracer:
            if not trace.open:
                return None
            node = (None, None, None, None, v, w, ans)
            tangent = pull_x(x.tangent, node) + pull_y(y.tangent, node)
            return _carried(ans, tangent, trace)
        kept = v if keep_x else None, w if keep_y else None, ans if keep_ans else None
        if alike:
            return tracer_of(ans, trace, (trace.next(), pull_both, x.node, y.node, *kept))
        likes = ((v.shape, v.dtype), (w.shape, w.dtype))
        return tracer_of(ans, trace, (trace.next(), pull_unlike, x.node, y.node, *kept, *likes))

    return process


def _beside_constant(
    name: str,
    rule: _Rule,
    kernel: Callable[..., Any],
    compute: Callable[..., Any],
    foreign: bool,
    swapped: bool = False,
) -> Callable[[Any, Any], Tracer | None]:
    """Process an operation of a tracer and a constant, None where only the general rules know what to do.

    ``kernel`` and ``compute`` take the tracer's value first, also where it is the second argument (``swapped``).
    """
    pull, evaluate = rule.contribution, _with_constant(kernel, compute, foreign)
    keep_v, keep_c = (5 in rule.needs, 4 in rule.needs) if swapped else (4 in rule.needs, 5 in rule.needs)
    keep_ans = 6 in rule.needs

    def pull_unlike(ct: Any, node: Any) -> Any:
        return rule.conformed(ct, node, *node[7:])

    pull_of(name, pull_unlike)

    def process(tracer: Any, constant: Any) -> Tracer | None:
        if type(constant) is Buffer:
            constant = clone(constant)
        v, trace = tracer.value, tracer._trace
        ans, like = evaluate(v, constant)
        if ans is None:
            return None
        if type(tracer) is ForwardTracer:
            if like or not trace.open:
                return None
            args = (constant, v) if swapped else (v, constant)
            return _carried(ans, pull(tracer.tangent, (None, None, None, None, *args, ans)), trace)
        first, second, last = v if keep_v else None, constant if keep_c else None, ans if keep_ans else None
        if swapped:
            first, second = second, first
        if like:
            return tracer_of(ans, trace, (trace.next(), pull_unlike, tracer.node, None, first, second, last, *like))
        return tracer_of(ans, trace, (trace.next(), pull, tracer.node, None, first, second, last))

    return process


def _with_constant(
    kernel: Callable[..., Any], compute: Callable[..., Any], foreign: bool
) -> Callable[[Any, Any], tuple[Any, tuple[Any, ...]]]:
    """Compute with what a tracer holds and a constant: the result, None where only the general rules can.

    With it come shape and dtype of the tracer's value, if those of the result are others.
    """

    def evaluate(v: Any, constant: Any) -> tuple[Any, tuple[Any, ...]]:
        if type(v) is ndarray and type(constant) in _NUMPY:
            try:
                ans = kernel(v, constant)
            except (TypeError, AttributeError):  # no number: the way round refuses it, and says more than NumPy does
                return None, ()
            dtype = v.dtype
            if ans.shape == v.shape and ans.dtype is dtype and dtype.kind != "V":
                return ans, ()
            return (ans, (v.shape, dtype)) if ans.dtype.kind in "fc" and dtype.kind != "V" else (None, ())
        if type(constant) in _NUMBERS or _alike(v, constant):
            if type(v) not in _SCALARS and backend.dtype_of(v).kind == "V":
                return None, ()
            ans = compute(v, constant)
            return (None, ()) if foreign and not _keeps(ans, v) else (ans, ())
        return None, ()

    return evaluate


def _general(primitive: Primitive, rules: list[_Rule], operator: Callable[..., Any] | None) -> Operation:
    kernel = operator or primitive.kernel(np)

    def call(*args: Any) -> Any:
        for arg in args:
            if type(arg) not in _NUMPY:
                return bind(primitive, args, {})
        return bind(primitive, args, {}) if core.kernel_runners else kernel(*args)

    return call
