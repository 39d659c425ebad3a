"""Blame: search for the first operation of a run whose value or derivative differs.

The run is captured as a graph, with the values of every operation and the cotangents and tangents
that reached it. A segment of the run is then a function of the values that flow into it, and is compared with
JAX and the referee as the whole function was. If the segment differs, so does its first or its second half: halving
leads to one operation. funcgrad supplies the inputs of a segment for all three, so an error shows in the operation
that makes it, and not in later operations.
"""

from __future__ import annotations

import copy
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.interop.crosschecks.comparing import FUNCGRAD, Comparison, Directions, value_and_cotangents
from funcgrad.interop.crosschecks.divergences import divergences_at
from funcgrad.interop.crosschecks.judging import Judge
from funcgrad.interop.crosschecks.report import Blame, Row
from funcgrad.kinds.custom import custom_call
from funcgrad.transforms import jvp, trace, vjp
from funcgrad.transforms.checking import Leaves, Problem, random_like
from funcgrad.transforms.inspection.nodes import Node, Operand
from funcgrad.transforms.transformed import Transformed

CUSTOM = custom_call.primitive


class Run:
    """One run of a function: its operations with their values, cotangents and tangents.

    Args:
        fun: a function from leaves to a list of leaves.
        point: leaves at which the function is run.
        directions: the directions in which its derivatives are compared.
    """

    def __init__(self, fun: Callable[..., Any], point: Leaves, directions: Directions) -> None:
        graph = trace(fun)(*point)
        self.nodes: list[Node] = list(graph)
        self.position = {node: i for i, node in enumerate(self.nodes)}
        self.values: dict[Operand, Any] = {Operand(n, 0): x for n, x in zip(graph.inputs, point, strict=True)}
        self.tangents: dict[Operand, Any] = {
            Operand(n, 0): t for n, t in zip(graph.inputs, directions.tangents, strict=True)
        }
        self.cotangent_parts: dict[Operand, list[tuple[int, Any]]] = {}  # places of users, with their cotangents
        self.live = set(self.values)
        with np.errstate(all="ignore"):
            for node in self.nodes:
                self._forward(node)
            for out, ct in zip(graph.returned, directions.cts, strict=True):
                if type(out) is Operand and out in self.live:
                    self.cotangent_parts.setdefault(out, []).append((len(self.nodes), ct))
            for node in reversed(self.nodes):
                self._backward(node)

    def known_divergences(self) -> list[str]:
        """Return the known divergences of JAX in the run."""
        return list(dict.fromkeys(text for node in self.nodes for text in _known_divergences(self, node)))

    def _forward(self, node: Node) -> None:
        """Compute the results of an operation, and their tangents."""
        fun, moving = self._function(node)
        outs = fun(*[self.values[a] for a in moving])
        here = [Operand(node, i) for i in range(len(outs))]
        self.values.update(zip(here, outs, strict=True))
        floating = [h for h, out in zip(here, outs, strict=True) if backend.is_inexact(out)]
        self.live.update(floating)
        if moving and floating:
            tangents = tuple([_as_dtype_of(self.tangents[a], self.values[a]) for a in moving])
            pushed = jvp(_only_floating(fun), tuple([self.values[a] for a in moving]), tangents)[1]
            self.tangents.update(zip(floating, pushed, strict=True))
        else:
            self.tangents.update({h: np.zeros_like(self.values[h]) for h in floating})

    def _backward(self, node: Node) -> None:
        """Compute the cotangents of the arguments of an operation."""
        fun, moving = self._function(node)
        here = [Operand(node, i) for i in range(len(node.shapes))]
        if not moving or not any(h in self.cotangent_parts for h in here):
            return
        floating = [h for h in here if h in self.live]
        pullback = vjp(_only_floating(fun), *[self.values[a] for a in moving])[1]
        cts = pullback([_as_dtype_of(self.cotangent(h, 0), self.values[h]) for h in floating])
        for a, ct in zip(moving, cts, strict=True):
            self.cotangent_parts.setdefault(a, []).append((self.position[node], ct))

    def cotangent(self, of: Operand, end: int) -> Any:
        """Return the part of a value's cotangent that comes from operations from ``end`` on."""
        total = np.zeros_like(self.values[of])
        for position, ct in self.cotangent_parts.get(of, ()):
            if position >= end:
                total = total + ct
        return total

    def _function(self, node: Node) -> tuple[Callable[..., list[Any]], list[Operand]]:
        """Return an operation as a function of those arguments that depend on the inputs, each once."""
        moving = [a for a in dict.fromkeys(_operands(node)) if a in self.live]
        return (
            lambda *leaves: _run_operation(node, ChainMap(dict(zip(moving, leaves, strict=True)), self.values))
        ), moving


def _operands(node: Node) -> list[Operand]:
    return [a for a in node.args if type(a) is Operand]


def _run_operation(node: Node, values: Mapping[Operand, Any], rules: bool = True) -> list[Any]:
    """Return the results of an operation; without ``rules``, run a user's function in place of its custom rules."""
    args = [values[a] if type(a) is Operand else a for a in node.args]
    assert node.primitive is not None
    if node.primitive is CUSTOM and not rules:
        return list(node.params["rules"].fun(*args))
    ans = node.primitive.call(*args, **node.params)
    return list(ans) if node.primitive.multiple else [ans]


def _only_floating(fun: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    return lambda *leaves: [out for out in fun(*leaves) if backend.is_inexact(out)]


def _as_dtype_of(x: Any, like: Any) -> Any:
    return np.asarray(x).astype(backend.dtype_of(like))


class Segment:
    """Operations ``start`` to ``end`` of a run, as a function of the values that flow in. It is a ``Subject``.

    With ``masked``, results with a zero cotangent are replaced by 0, since they do not affect the final result.
    """

    scalar = False

    def __init__(self, run: Run, start: int, end: int, *, masked: bool = False) -> None:
        self.run, self.nodes, self.end = run, run.nodes[start:end], end
        inside = set(self.nodes)
        taken = [a for node in self.nodes for a in _operands(node) if a.node not in inside]
        self.ins = [a for a in dict.fromkeys(taken) if a in run.live]
        made = [Operand(node, i) for node in self.nodes for i in range(len(node.shapes))]
        self.outs = [o for o in made if o in run.live and any(p >= end for p, _ in run.cotangent_parts.get(o, ()))]
        self.point = [run.values[a] for a in self.ins]
        self.affects_result = [run.cotangent(o, end) != 0 for o in self.outs] if masked else None
        self.value = self._masked([run.values[o] for o in self.outs])
        self.paths = [f"argument {i}" for i in range(len(self.ins))]
        self.result_paths = [f"result {i}" for i in range(len(self.outs))]
        self.real = not any(np.iscomplexobj(x) for x in (*self.point, *self.value))

    def __call__(self, *leaves: Any) -> Leaves:
        """Compute the values that flow out, by the operations' rules."""
        return self.evaluate(leaves, rules=True)

    def without_rules(self, *leaves: Any) -> Leaves:
        """Compute the values that flow out without users' custom rules, if the functions run that way."""
        try:
            return self.evaluate(leaves, rules=False)
        except Exception:  # JAX may be unable to run a user's function: the rules are for that
            return self.evaluate(leaves, rules=True)

    def evaluate(self, leaves: Sequence[Any], *, rules: bool) -> Leaves:
        """Return the values that flow out."""
        values = ChainMap(dict(zip(self.ins, leaves, strict=True)), self.run.values)
        for node in self.nodes:
            outs = _run_operation(node, values, rules)
            values.update({Operand(node, i): out for i, out in enumerate(outs)})
        return self._masked([values[o] for o in self.outs])

    def _masked(self, outs: Leaves) -> Leaves:
        if self.affects_result is None:
            return outs
        return [fnp.where(m, out, 0.0) for m, out in zip(self.affects_result, outs, strict=True)]

    def directions(self, rng: np.random.Generator) -> Directions:
        """Return the directions that the run had here, scaled so that none is small or large."""
        tangents = [_as_dtype_of(self.run.tangents[a], x) for a, x in zip(self.ins, self.point, strict=True)]
        cts = [_as_dtype_of(self.run.cotangent(o, self.end), y) for o, y in zip(self.outs, self.value, strict=True)]
        return Directions(_scaled(tangents), [random_like(rng, x) for x in self.point], _scaled(cts))

    @property
    def has_known_divergence(self) -> bool:
        """Whether one of the operations has a known divergence at these values."""
        return any(_known_divergences(self.run, node) for node in self.nodes)


def _known_divergences(run: Run, node: Node) -> list[str]:
    assert node.primitive is not None
    args = [run.values[a] if type(a) is Operand else a for a in node.args]
    return divergences_at(node.primitive, args, node.params)


def _scaled(leaves: Leaves) -> Leaves:
    """Return leaves scaled so that the largest number is 1: derivatives are linear in them."""
    sizes = [np.abs(x)[np.isfinite(x)] for x in leaves]
    largest = max((float(np.max(size, initial=0.0)) for size in sizes), default=0.0)
    return [x / largest if largest else x for x in leaves]


class Search(NamedTuple):
    """Search for the operations of a run that differ.

    Attributes:
        jax: the JAX module.
        run: the run to search.
        kind: the kind of quantity that differs.
        judge: the judge of the comparison.
        suspect_rules: whether users' custom rules are suspects too, because JAX takes them from funcgrad.
    """

    jax: Any
    run: Run
    kind: str
    judge: Judge
    suspect_rules: bool

    def rows(self, start: int, end: int) -> tuple[list[Row], Segment]:
        """Return the rows of a segment of the run, and the segment."""
        part = Segment(self.run, start, end, masked=self.kind == "forward")
        if not part.ins or not part.outs:
            return [], part
        rng = np.random.default_rng(0)
        fun = part.without_rules if self.suspect_rules else part
        # an error may be too small to see in a first derivative, and large enough in the second
        kinds = ["reverse", "second"] if self.kind == "second" else [self.kind]
        comparison = Comparison(self.jax, part, part.directions(rng), kinds, rng, fun=fun)
        judge = self.judge._replace(has_known_divergence=part.has_known_divergence)
        return [row for kind in kinds for row in comparison.rows(kind, judge)], part

    def worst_row(self, start: int, end: int) -> Row | None:
        """Return the worst row of a segment that differs in the way that is searched for."""
        rows = [row for row in self.rows(start, end)[0] if not row.ok]
        if not self.suspect_rules:
            rows = [row for row in rows if not row.funcgrad_jax <= self.judge.rtol]
        return max(rows, key=_largest_error, default=None)

    def halve(self) -> tuple[int, int]:
        """Return the smallest range of operations that differs, found by halving; (0, 0) if the whole run agrees."""
        start, end = 0, len(self.run.nodes)
        if self.worst_row(start, end) is None:
            return 0, 0
        while end - start > 1:
            middle = (start + end) // 2
            if self.worst_row(start, middle) is not None:
                end = middle
            elif self.worst_row(middle, end) is not None:
                start = middle
            else:
                break
        return start, end

    def one_by_one(self, *, jax_only: bool) -> int | None:
        """Return the first operation that differs for no known reason; with ``jax_only``, by a larger error of JAX."""
        for position in range(len(self.run.nodes)):
            row = self.worst_row(position, position + 1)
            if row is not None and not (jax_only and row.jax_referee <= row.funcgrad_referee):
                return position
        return None

    def blame(self, what: str, position: int) -> Blame:
        """Return the blame of one operation."""
        rows, part = self.rows(position, position + 1)
        node = part.nodes[0]
        worst = self.worst_row(position, position + 1) or max(rows, key=_largest_error)
        inside = self.inside(part) if worst.what == "hvp" else None
        return Blame(what, node.name, node.source, node.stage, worst, inside)

    def inside(self, part: Segment) -> Blame | None:
        """Return the blame inside an operation's rule, whose first derivative is the function's second derivative."""
        tangents, weights, cts = part.directions(np.random.default_rng(0))
        both = value_and_cotangents(FUNCGRAD, part, cts)
        run = Run(lambda *leaves: both(*leaves)[1], part.point, Directions(tangents, weights, weights))
        search = self._replace(run=run, kind="forward")
        start, end = search.halve()
        return search.blame("jvp", start) if end - start == 1 else None

    def find_blame(self, what: str) -> Blame:
        """Return the blame that the search by halving finds."""
        start, end = self.halve()
        if end - start == 1:
            return self.blame(what, start)
        if start == end:
            return Blame(what, None, None, None, None, None)
        found = [self.blame(what, position) for position in range(start, end) if self.rows(position, position + 1)[0]]
        worst = max(found, key=lambda blame: 0.0 if blame.row is None else _largest_error(blame.row))
        return worst._replace(together=end - start)


def _largest_error(row: Row) -> float:
    errors = [e for e in (row.funcgrad_jax, row.funcgrad_referee) if e == e]
    return max(errors, default=float("inf"))


def blame_search(jax: Any, problem: Problem, directions: Directions, judge: Judge) -> Callable[[str, bool], Search]:
    """Return the search in the run of ``problem``: a function of the kind, and of whether funcgrad and JAX differ."""
    staged = Transformed(_run_flat, problem.fun, problem, "{fun} as a function of leaves.")
    run = Run(staged, problem.point, directions)
    return lambda kind, libraries_differ: Search(jax, run, kind, judge, not libraries_differ)


def _run_flat(fun: Callable[..., Any], problem: Problem, args: Any, kwargs: Any) -> Leaves:
    """Run ``problem`` with ``fun`` in place of its function; ``fun`` may be a pipeline, whose stages are recorded."""
    flat = copy.copy(problem)
    flat.fun = fun
    return flat(*args)
