"""Operations linear in each of several arguments, and operations that bring all their rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import Primitive, bind
from funcgrad.kinds.linear import Batching, batch_rule, conform
from funcgrad.kinds.rules import NAMES, Operation, Rule, finish, positional_names, pull_of

__all__ = ["multilinear", "primitive"]


def multilinear(
    name: str,
    impl: Callable[..., Any] | None = None,
    *,
    transposes: Sequence[Rule],
    batch: Batching,
) -> Operation:
    """Define an operation that is linear in each of its arguments when the others are held fixed.

    Args:
        name: its name, and that of the array namespace's function when ``impl`` is None.
        impl: ``impl(xp, x, y, ..., **params)``.
        transposes: for each argument ``transpose(ct, ..., *, params)``, its cotangent; after ``ct`` it
            may name the other arguments and ``shape``, its own argument's shape.
        batch: how a batch axis passes, see ``funcgrad.kinds.linear.Batching``.
    """

    def push(position: int) -> Rule:
        def pushed(t: Any, args: tuple[Any, ...], ans: Any, params: dict[str, Any]) -> Any:
            return call(*args[:position], t, *args[position + 1 :], **params)

        return pushed

    pushes = [push(i) for i in range(len(transposes))]
    call = _with_rules(name, impl, transposes, pushes, batch, multiple=False)
    return call


def primitive(
    name: str,
    impl: Callable[..., Any] | None = None,
    *,
    vjps: Sequence[Rule | None],
    jvps: Sequence[Rule | None],
    batch: Batching,
    multiple: bool = False,
) -> Operation:
    """Define an operation that brings all its rules.

    Args:
        name: its name, and that of the array namespace's function when ``impl`` is None.
        impl: ``impl(xp, x, y, ..., **params)``.
        vjps: for each argument ``vjp(ct, ..., *, params)``, its cotangent, None where there is no
            derivative; after ``ct`` a rule may name ``ans``, the arguments ``x``, ``y``, ``z``, and
            ``shape``, its own argument's shape.
        jvps: for each argument ``jvp(t, ..., *, params)``, the tangent of the result that the tangent
            ``t`` of that argument alone makes; the same names.
        batch: how a batch axis passes, see ``funcgrad.kinds.linear.Batching``.
        multiple: whether the result is a tuple of arrays; then ``ans``, ``ct`` and what ``jvps`` return
            are sequences (a cotangent of None is zero).
    """
    pushes = [None if rule is None else _push(rule, position) for position, rule in enumerate(jvps)]
    return _with_rules(name, impl, vjps, pushes, batch, multiple=multiple)


def _push(rule: Rule, position: int) -> Rule:
    names = positional_names(rule)[1:]

    def pushed(t: Any, args: tuple[Any, ...], ans: Any, params: dict[str, Any]) -> Any:
        known = {
            **dict(zip(NAMES, args, strict=False)),
            "ans": ans,
            "shape": backend.shape_of(args[position]),
        }
        return rule(t, *[known[n] for n in names], **params)

    return pushed


def _with_rules(
    name: str,
    impl: Callable[..., Any] | None,
    vjps: Sequence[Rule | None],
    pushes: Sequence[Rule | None],
    batch: Batching,
    *,
    multiple: bool,
) -> Operation:
    """A primitive from a cotangent rule and a tangent rule per argument."""

    def call(*args: Any, **params: Any) -> Any:
        return bind(made, args, params)

    reverse, forward = _reverse(name, call, vjps, multiple), _forward(call, pushes, multiple)
    made = Primitive(name, impl, reverse, forward, batch_rule(batch, call), multiple=multiple)
    return finish(call, made)


def _reverse(name: str, call: Operation, vjps: Sequence[Rule | None], multiple: bool) -> Rule:
    """What to record, and how to pull a cotangent back."""
    names = [() if rule is None else positional_names(rule)[1:] for rule in vjps]

    def pull(ct: Any, node: Any) -> Any:
        traced, saved, primals, params = node[4:]
        if multiple:
            ct = [np.zeros(*like) if c is None else c for c, like in zip(ct, saved["results"], strict=True)]
        cts = []
        for i in traced:
            values = [primals[i][0] if n == "shape" else saved[n] for n in names[i]]
            rule = vjps[i]
            cts.append(conform(rule(ct, *values, **params), *primals[i]) if rule else None)
        return cts

    pull_of(name, pull)

    def reverse(args: Any, traced: Any, params: Any) -> Any:
        ans = call(*args, **params)
        if all(vjps[i] is None for i in traced):
            return ans, None, None
        needed = {n for i in traced for n in names[i]}
        saved = {n: v for n, v in zip((*NAMES[: len(args)], "ans"), (*args, ans), strict=True) if n in needed}
        if multiple:
            saved["results"] = [(backend.shape_of(a), backend.dtype_of(a)) for a in ans]
        primals = {i: (backend.shape_of(args[i]), backend.dtype_of(args[i])) for i in traced}
        return ans, pull, (traced, saved, primals, params)

    return reverse


def _forward(call: Operation, pushes: Sequence[Rule | None], multiple: bool) -> Rule:
    """How to push tangents: the sum of what each makes alone."""

    def forward(args: Any, tangents: Any, params: Any) -> Any:
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
        return ans, total

    return forward
