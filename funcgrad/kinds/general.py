"""Operations linear in each of several arguments, and operations that bring all their rules.

A rule for one direction is enough: it is linear in the tangent or cotangent, so recording it on a tape and
pulling back through that gives the other one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import backend, blocks
from funcgrad.blocks import here
from funcgrad.core import Primitive
from funcgrad.errors import InputError
from funcgrad.kinds.linear import Batching, batch_rule, conform
from funcgrad.kinds.rules import NAMES, Operation, Rule, bind, check_names, finish, positional_names, pull_of
from funcgrad.records import reading
from funcgrad.reverse import ReverseTracer, backward, record, tracer_of

__all__ = ["multilinear", "primitive"]

ndarray = np.ndarray
_KNOWN = (*NAMES, "ans", "args", "shape")


def multilinear(
    name: str,
    impl: Callable[..., Any] | None = None,
    *,
    transposes: Sequence[Rule],
    batch: Batching,
    foreign: Callable[..., Any] | None = None,
) -> Operation:
    """Define an operation that is linear in each of its arguments when the others are held fixed.

    Args:
        name: its name, and that of the array namespace's function when ``impl`` is None.
        impl: ``impl(xp, x, y, ..., **params)``.
        transposes: for each argument ``transpose(ct, ..., *, params)``, its cotangent; after ``ct`` it
            may name the other arguments and ``shape``, its own argument's shape.
        batch: how a batch axis passes, see ``funcgrad.kinds.linear.Batching``.
        foreign: ``foreign(*args)`` where an argument is no value, a sparse matrix say; None where it cannot either.
    """

    def push(position: int) -> Rule:
        def pushed(t: Any, args: tuple[Any, ...], ans: Any, params: dict[str, Any]) -> Any:
            return call(*args[:position], t, *args[position + 1 :], **params)

        return pushed

    pulls = [_Pull(name, rule) for rule in transposes]
    call = _with_rules(name, impl, pulls, [push(i) for i in range(len(pulls))], batch, multiple=False)
    call.primitive.foreign = foreign  # type: ignore[attr-defined]
    return call


def primitive(
    name: str,
    impl: Callable[..., Any] | None = None,
    *,
    vjps: Sequence[Rule | None] | None = None,
    jvps: Sequence[Rule | None] | None = None,
    batch: Batching,
    multiple: bool = False,
    sparse: bool = False,
    loose: bool = False,
    hidden: int = 0,
) -> Operation:
    """Define an operation that brings its own rules, for one direction or for both.

    Args:
        name: its name, and that of the array namespace's function when ``impl`` is None.
        impl: ``impl(xp, x, y, ..., **params)``.
        vjps: for each argument ``vjp(ct, ..., *, params)``, its cotangent, None where there is no
            derivative; after ``ct`` a rule may name ``ans``, the arguments ``x``, ``y``, ``z``, or all of
            them as ``args``, and ``shape``, its own argument's shape. Left out, the transposes of ``jvps``.
        jvps: for each argument ``jvp(t, ..., *, params)``, the tangent of the result that the tangent
            ``t`` of that argument alone makes; the same names. Left out, the transposes of ``vjps``.
        batch: how a batch axis passes, see ``funcgrad.kinds.linear.Batching``.
        multiple: whether the result is a tuple of arrays; then ``ans``, ``ct`` and what ``jvps`` return
            are sequences.
        sparse: whether ``vjps`` are told by a cotangent of None that nothing depends on a result; else they
            are given zeros.
        loose: whether shape or dtype of a result depend on the values of the arguments.
        hidden: how many results after the first are there for the rules only; then the operation returns the first,
            and ``sparse`` must be true.

    Raises:
        InputError: no rule, or a rule that names what there is not.

    Example:
        >>> import numpy as np
        >>> cube = primitive("cube", lambda xp, x: x**3, vjps=[lambda ct, x: 3 * x * x * ct], batch="elementwise")
        >>> cube(np.array([1.0, 2.0]))
        array([1., 8.])
    """
    if vjps is None and jvps is None:
        raise InputError(
            f"{name}: an operation needs a derivative rule, got neither vjps nor jvps. Give one, or define it with "
            "nondifferentiable."
        )
    given = [None if rule is None else _Push(name, rule, i) for i, rule in enumerate(jvps or ())]
    if vjps is None:
        pulls = [None if push is None else _Pull(name, push.rule, transposed=True) for push in given]
    else:
        pulls = [None if rule is None else _Pull(name, rule) for rule in vjps]
    pushes: list[Any] = given
    if jvps is None:
        pushes = [None if pull is None else _Push(name, pull.rule, i, transposed=True) for i, pull in enumerate(pulls)]
    whole = _with_rules(name, impl, pulls, pushes, batch, multiple=multiple, sparse=sparse, loose=loose)
    return _first_of(name, whole, pulls, hidden) if hidden else whole


def _parts(x: Any) -> list[Any]:
    """The result of an operation as a list."""
    return list(x) if isinstance(x, (tuple, list)) else [x]


class _Pull:
    """How a cotangent goes back to one argument."""

    def __init__(self, name: str, rule: Rule, *, transposed: bool = False) -> None:
        self.rule = rule
        self.names = tuple(check_names(name, positional_names(rule)[1:], _KNOWN))
        self.transposed = transposed

    def __call__(self, ct: Any, saved: dict[str, Any], like: tuple[Any, Any], params: dict[str, Any]) -> Any:
        """The cotangent; ``like`` is the argument's shape and dtype."""
        values = [like[0] if n == "shape" else saved[n] for n in self.names]
        if not self.transposed:
            return self.rule(ct, *values, **params)
        cts = _parts(ct)
        zero = backend.library_of(cts[0]).zeros(*like)
        _, nodes = record(lambda t: _parts(self.rule(t, *values, **params)), [zero])
        return backward([(n, c) for n, c in zip(nodes, cts, strict=True) if n is not None], 1)[0]


class _Push:
    """What the tangent of one argument makes of the result."""

    def __init__(self, name: str, rule: Rule, position: int, *, transposed: bool = False) -> None:
        self.rule = rule
        self.names = check_names(name, positional_names(rule)[1:], _KNOWN)
        self.position = position
        self.transposed = transposed

    def __call__(self, t: Any, args: tuple[Any, ...], ans: Any, params: dict[str, Any]) -> Any:
        x = args[self.position]
        known = {**dict(zip(NAMES, args, strict=False)), "ans": ans, "args": args, "shape": backend.shape_of(x)}
        values = [known[n] for n in self.names]
        if not self.transposed:
            return self.rule(t, *values, **params)
        outs = _parts(ans)
        live = [i for i, out in enumerate(outs) if backend.is_inexact(out)]

        def pull(*cts: Any) -> list[Any]:
            full = [backend.zeros_like(out) for out in outs]
            for i, ct in zip(live, cts, strict=True):
                full[i] = ct
            ct = self.rule(full if isinstance(ans, tuple) else full[0], *values, **params)
            return [conform(ct, backend.shape_of(x), backend.dtype_of(x))]

        _, (node,) = record(pull, [backend.zeros_like(outs[i]) for i in live])
        found = dict(zip(live, [] if node is None else backward([(node, t)], len(live)), strict=node is not None))
        pushed = [backend.zeros_like(out) if found.get(i) is None else found[i] for i, out in enumerate(outs)]
        return pushed if isinstance(ans, tuple) else pushed[0]


def _with_rules(
    name: str,
    impl: Callable[..., Any] | None,
    pulls: Sequence[_Pull | None],
    pushes: Sequence[Any],
    batch: Batching,
    *,
    multiple: bool,
    sparse: bool = False,
    loose: bool = False,
) -> Operation:
    """A primitive from a cotangent rule and a tangent rule per argument."""

    def call(*args: Any, **params: Any) -> Any:
        x = args[0]
        if type(x) is ndarray and len(args) == 1 and not (blocks.runners and here()):
            return kernel(x, **params)
        if (
            short
            and type(x) is ReverseTracer
            and len(args) == 1
            and type(x.value) is ndarray
            and not (blocks.entered and here())
        ):
            v, trace, parent = x.value, x._trace, x.node
            ans, pull, saved = reverse((v,), (0,), params)
            if pull is not None:
                return tracer_of(ans, trace, (next(trace.numbers), pull, None, (parent,), *saved))
        if all(type(arg) is ndarray for arg in args) and not (blocks.runners and here()):
            return kernel(*args, **params)
        return bind(made, args, params)

    short = not multiple  # what gives one result is recorded without the detour over ``bind``
    reverse, forward = _reverse(name, call, pulls, multiple and not sparse), _forward(call, pushes, multiple)
    made = Primitive(name, impl, reverse, forward, batch_rule(batch, call), multiple=multiple, loose=loose)
    kernel = made.kernel(np)
    return finish(call, made)


def _first_of(name: str, whole: Operation, pulls: Sequence[Any], hidden: int) -> Operation:
    """The first result of ``whole``; one array that is differentiated beside constants takes one plain record."""

    def of_first(ct: Any, saved: Any, like: Any, params: Any) -> Any:
        return conform(rule((ct, *unused), saved, like, params), *like)

    def call(*args: Any, **params: Any) -> Any:
        x = args[0]
        if type(x) is ReverseTracer and type(x.value) is ndarray and not (blocks.entered and here()):
            v, trace, parent = x.value, x._trace, x.node
            known = (v, *args[1:])
            if all(type(arg) is ndarray for arg in known):
                ans = whole(*known, **params)
                values = (*known, ans, known)
                like = v.shape, v.dtype
                node = (next(trace.numbers), pull, parent, None, {n: values[i] for n, i in plan}, like, params)
                return tracer_of(ans[0], trace, node)
        return whole(*args, **params)[0]

    rule, unused = pulls[0], (None,) * hidden
    plan = _plan([rule], len(pulls))
    pull = pull_of(name, reading(of_first))
    call.primitive = whole.primitive  # type: ignore[attr-defined]
    call.__name__, call.__qualname__, call.__module__ = whole.__name__, whole.__qualname__, whole.__module__
    return call


def _reverse(name: str, call: Operation, pulls: Sequence[_Pull | None], filled: bool) -> Rule:
    """What to record, and how to pull a cotangent back; ``filled`` with zeros for results nothing depends on."""

    def pull_each(ct: Any, traced: Any, saved: Any, primals: Any, params: Any) -> Any:
        if filled:
            ct = [np.zeros(*like) if c is None else c for c, like in zip(ct, saved["results"], strict=True)]
        cts = []
        for i in traced:
            rule = pulls[i]
            cts.append(conform(rule(ct, saved, primals[i], params), *primals[i]) if rule else None)
        return cts

    pull = pull_of(name, reading(pull_each))
    pull.pairs = len(pulls) == 2 and name in ("matmul", "einsum")  # type: ignore[attr-defined]

    def reverse(args: Any, traced: Any, params: Any) -> Any:
        if len(args) != len(pulls):
            raise _wrong_number(name, len(pulls), args)
        ans = call(*args, **params)
        plan = wanted.get(traced, NotImplemented)
        if plan is NotImplemented:
            rules = [rule for i in traced if (rule := pulls[i]) is not None]
            wanted[traced] = plan = _plan(rules, len(pulls)) if rules else None
        if plan is None:
            return ans, None, None
        known = (*args, ans, args)
        saved = {n: known[i] for n, i in plan}
        if filled:
            saved["results"] = list(map(backend.like, ans))
        primals = {i: backend.like(args[i]) for i in traced}
        return ans, pull, (traced, saved, primals, params)

    wanted: dict[tuple[int, ...], list[tuple[str, int]] | None] = {}  # traced positions -> what is kept for them
    return reverse


def _plan(rules: Sequence[_Pull], arity: int) -> list[tuple[str, int]]:
    """What the rules name of a call, and where that stands among its arguments, its result and the tuple of all."""
    places = {**dict(zip(NAMES, range(arity), strict=False)), "ans": arity, "args": arity + 1}
    named = {n for rule in rules for n in rule.names}
    return [(n, i) for n, i in places.items() if n in named]


def _forward(call: Operation, pushes: Sequence[Any], multiple: bool) -> Rule:
    """How to push tangents: the sum of what each makes alone."""

    def forward(args: Any, tangents: Any, params: Any) -> Any:
        if len(args) != len(pushes):
            raise _wrong_number(call.__name__, len(pushes), args)
        ans = call(*args, **params)
        total: Any = None
        for push, t in zip(pushes, tangents, strict=True):
            if push is None or t is None:
                continue
            part = push(t, args, ans, params)
            if total is None:
                total = part
            else:
                total = [a + b for a, b in zip(total, part, strict=True)] if multiple else total + part
        if total is None:
            return ans, None
        if not multiple:
            return ans, _settled(total, ans)
        return ans, [_settled(t, a) if backend.is_inexact(a) else None for a, t in zip(ans, total, strict=True)]

    return forward


def _settled(tangent: Any, ans: Any) -> Any:
    """``tangent`` in the dtype of the result it belongs to."""
    dtype = backend.dtype_of(ans)
    return tangent if tangent is None or backend.dtype_of(tangent) == dtype else conform(tangent, None, dtype)


def _wrong_number(name: str, rules: int, args: Any) -> InputError:
    return InputError(
        f"{name}: it has derivative rules for {rules} arguments, got {len(args)}. Give a rule per argument, None "
        "where there is no derivative."
    )
