"""Layers of a stack of transforms; each makes a function of ``x`` into another function, written as code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz.helpers import each, like, times, weigh

__all__ = ["LAYERS", "Layer", "Measurable"]


def same(x: Any, k: int) -> list[Any]:
    return [x]


def both(x: Any, k: int) -> list[Any]:
    return [x, each(lambda leaf: 0.75 * leaf, x)]


@dataclass(frozen=True)
class Measurable:
    """Quantity that a numerical referee can measure: the derivative of ``fun`` at ``point`` along ``direction``.

    Attributes:
        fun: returns a tree.
        point: a tree.
        direction: a tree like ``point``.
        claim: the derivative according to the layer's result, in the form of the result of ``fun``.
    """

    fun: Callable[[Any], Any]
    point: Any
    direction: Any
    claim: Callable[[Any], Any]


Measure = Callable[[Any, Callable[[Any], Any], Any, int, Any], Measurable]


def dot(tree: Any, direction: Any) -> Any:
    """Return the derivative along a direction that a gradient claims."""
    parts: list[Any] = []
    each(lambda g, t: parts.append(np.sum(np.real(g * t))), tree, direction)
    return sum(parts)


def contracted(jacobian: Any, direction: Any, out: Any) -> Any:
    """Return a Jacobian, an out-tree of in-trees, times a direction."""

    def one(part: Any, of: Any) -> Any:
        sums: list[Any] = []
        each(lambda j, t: sums.append(np.tensordot(j, t, np.ndim(t))), part, direction)
        return sum(sums)

    if isinstance(out, dict):
        return {key: contracted(jacobian[key], direction, out[key]) for key in out}
    if isinstance(out, (tuple, list)):
        return tuple(contracted(j, direction, o) for j, o in zip(jacobian, out, strict=True))
    return one(jacobian, out)


def gradient(fg: Any, f: Any, x: Any, k: int, t: Any) -> Measurable:
    return Measurable(lambda x: weigh(np, f(x), k), x, t, lambda out: dot(out, t))


def value_and_gradient(fg: Any, f: Any, x: Any, k: int, t: Any) -> Measurable:
    return Measurable(lambda x: weigh(np, f(x), k), x, t, lambda out: dot(out[1], t))


def pushed(fg: Any, f: Any, x: Any, k: int, t: Any) -> Measurable:
    return Measurable(f, x, like(x, k), lambda out: out[1])


def linearized(fg: Any, f: Any, x: Any, k: int, t: Any) -> Measurable:
    return Measurable(f, x, like(x, k), lambda out: out)


def jacobian(fg: Any, f: Any, x: Any, k: int, t: Any) -> Measurable:
    value = f(x)
    return Measurable(f, x, t, lambda out: contracted(out, t, value))


def hessian(fg: Any, f: Any, x: Any, k: int, t: Any) -> Measurable:
    def slope(x: Any) -> Any:
        return fg.grad(lambda x: weigh(np, f(x), k))(x)

    return Measurable(slope, x, t, lambda out: contracted(out, t, x))


def closure(fg: Any, f: Any, x: Any, k: int, t: Any) -> Measurable:
    return Measurable(lambda y: weigh(np, f(times(x, y)), k), like(x, k), t, lambda out: dot(out, t))


@dataclass(frozen=True)
class Layer:
    """One transform.

    Attributes:
        code: an expression of ``x``; ``{f}`` is the function, ``{k}`` a number that chooses a variant.
        order: how many derivatives the layer takes.
        real: whether the layer needs real arguments and results.
        branches: whether Python may branch on values below the layer.
        points: ``points(x, k)``, the points at which the layer runs the function.
        measure: what a referee can measure of the layer.
        cuts: whether the layer treats a value as a constant.
    """

    code: str
    order: int = 0
    real: bool = False
    branches: bool = True
    points: Callable[[Any, int], list[Any]] = same
    measure: Measure | None = None
    cuts: bool = False


LAYERS = {
    "grad": Layer("fg.grad(lambda x: weigh(np, {f}(x), {k}))(x)", 1, measure=gradient),
    "value_and_grad": Layer("fg.value_and_grad(lambda x: weigh(np, {f}(x), {k}))(x)", 1, measure=value_and_gradient),
    "vjp": Layer("pulled(fg.vjp({f}, x), {k})", 1, measure=gradient),
    "jvp": Layer("fg.jvp({f}, (x,), (like(x, {k}),))", 1, measure=pushed),
    "linearize": Layer("fg.linearize({f}, x)[1](like(x, {k}))", 1, measure=linearized),
    "jacfwd": Layer("fg.jacfwd({f})(x)", 1, real=True, measure=jacobian),
    "jacrev": Layer("fg.jacrev({f})(x)", 1, real=True, measure=jacobian),
    "hessian": Layer("fg.hessian(lambda x: weigh(np, {f}(x), {k}))(x)", 2, real=True, measure=hessian),
    "closure": Layer(
        "fg.grad(lambda y: weigh(np, {f}(times(x, y)), {k}))(like(x, {k}))",
        1,
        points=lambda x, k: [times(x, like(x, k))],
        measure=closure,
    ),
    "vmap": Layer("fg.vmap({f})(examples(np, x, 0))", branches=False, points=both),
    "vmap_last": Layer("fg.vmap({f}, in_axes=-1, out_axes=-1)(examples(np, x, -1))", branches=False, points=both),
    "vmap_closure": Layer(
        "fg.vmap(lambda s: {f}(each(lambda leaf: leaf * s.astype(leaf.dtype), x)))(scales)",
        branches=False,
        points=both,
    ),
    "checkpoint": Layer("fg.checkpoint({f})(x)"),
    "no_grad": Layer("times({f}(x), fg.no_grad({f})(x))", cuts=True),
    "stop_gradient": Layer("times({f}(x), fg.stop_gradient({f}(x)))", cuts=True),
    "jit": Layer("fg.jit({f})(x)", branches=False),
}
