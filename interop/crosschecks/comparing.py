"""One function compared three ways, kind by kind."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from funcgrad.interop.crosschecks.judging import KNOWN, SHARE, Judge, Measurements
from funcgrad.interop.crosschecks.quantities import (
    OURS,
    Answers,
    Inputs,
    Subject,
    inputs_of,
    loop,
    ours,
    pulled,
    theirs,
)
from funcgrad.interop.crosschecks.report import Row, without_numbers
from funcgrad.transforms import jvp
from funcgrad.transforms.problem import Leaves, random_like

__all__ = ["Comparison", "Ways", "random_ways"]

#: How far the rounding of its arguments may move a number in single precision.
ROUNDING = float(np.finfo(np.float32).eps)


class Ways(NamedTuple):
    """Directions in which derivatives are taken.

    Attributes:
        tangents: the direction of forward mode and of second order.
        weights: by which the entries of a cotangent are summed up for the referee.
        cts: cotangents.
    """

    tangents: Leaves
    weights: Leaves
    cts: Leaves


def random_ways(rng: np.random.Generator, subject: Subject) -> Ways:
    """Random ones; of a function with a gradient that is what is pulled back."""
    directions = [random_like(rng, x) for x in subject.point]
    cts = [1.0] if subject.scalar else [random_like(rng, np.ones_like(y)) for y in subject.value]
    return Ways(directions, directions, cts)


class Comparison:
    """What three say of one function.

    Args:
        jax: the module.
        subject: the function as funcgrad and the referee see it.
        ways: directions.
        kinds: what is to be compared, some of ``quantities.KINDS``.
        rng: chooses points around the one of ``subject``.
        fun: the function as JAX sees it, where that is another one.
        jitted: see ``quantities.theirs``.

    Attributes:
        ours: what funcgrad says, or the error it raised.
        theirs: the same of JAX.
    """

    def __init__(
        self,
        jax: Any,
        subject: Subject,
        ways: Ways,
        kinds: Collection[str],
        rng: np.random.Generator,
        *,
        fun: Callable[..., Leaves] | None = None,
        jitted: bool = True,
    ) -> None:
        self.subject, self.ways, self.kinds = subject, ways, kinds
        self.at = inputs_of(rng, subject.point, ways.tangents)
        self.signs = [rng.choice([-1.0, 1.0], np.shape(x)) for x in subject.point]
        needed = {*kinds, *(("value",) if {"jit", "reverse"} & {*kinds} else ())}
        self.ours: Answers = ours(subject, self.at, ways.cts, needed)
        self.theirs: Answers = theirs(jax, subject, fun or subject, self.at, ways.cts, needed, jitted=jitted)
        self.measured = Measurements(subject, *ways)
        self.apart: set[str] = set()  # where JAX differs already, and has no say when that is compared once more

    def rows(self, kind: str, judge: Judge) -> list[Row]:
        """The rows of one kind."""
        found: list[Row] = getattr(self, f"_{kind}")(judge)
        if any(not row.funcgrad_jax <= judge.rtol for row in found):
            self.apart.add(kind)
        return found

    @property
    def _name(self) -> str:
        return "gradient" if self.subject.scalar else "vjp"

    def _value(self, judge: Judge) -> list[Row]:
        return self._plain("value", "value", "value", "value", judge, self.subject.value)

    def _reverse(self, judge: Judge) -> list[Row]:
        return self._derivatives("reverse", self._name, self.subject.paths, self.ways.weights, judge)

    def _forward(self, judge: Judge) -> list[Row]:
        return self._derivatives("forward", "jvp", self.subject.result_paths, self.ways.cts, judge)

    def _second(self, judge: Judge) -> list[Row]:
        return self._derivatives("second", "hvp", self.subject.paths, self.ways.weights, judge)

    def _derivatives(self, kind: str, what: str, paths: list[str], weights: Leaves, judge: Judge) -> list[Row]:
        mine, other = self.ours[kind], self.theirs[kind]
        if isinstance(mine, Exception):
            return [judge.refused(what, mine, other)]
        other = None if isinstance(other, Exception) else other
        measured = self.measured.found(kind)
        return judge.derivatives(what, paths, mine, other, weights, measured, partial(self.measured.kink, kind))

    def _plain(self, what: str, path: str, own: Any, other: str, judge: Judge, expected: Any) -> list[Row]:
        mine, yours = (self.ours[own] if isinstance(own, str) else own), self.theirs[other]
        if isinstance(mine, Exception):
            return [judge.refused(what, mine, yours)]
        paths = self.subject.result_paths if path == "value" else self.subject.paths
        share = 0.0 if path == "value" else SHARE
        yours = None if isinstance(yours, Exception) or (path in self.apart and what != "value") else yours
        return judge.plain(what, paths, mine, yours, expected, share)

    def _vmap(self, judge: Judge) -> list[Row]:
        """The referee is a loop."""
        with np.errstate(all="ignore"):
            try:
                expected = loop(self.subject, self.at, self.ways.cts)
            except Exception as error:  # the function is not defined around the point
                return [_not_compared("vmap", "a loop", error)]
        rows = []
        for name, what in (("value", "vmap value"), ("reverse", f"vmap {self._name}")):
            key = f"vmap {name}"
            rows += self._plain(what, name, key, key, judge, expected[key])
        return _joined(rows)

    def _jit(self, judge: Judge) -> list[Row]:
        """The referee is what funcgrad computes without compiling."""
        if "value" in self.apart:  # other values have other derivatives
            return [without_numbers("jit", "result", "not compared, the values on JAX differ", True)]
        rows = []
        for name, what in (("value", "jit value"), ("reverse", f"jit {self._name}")):
            mine = self.theirs[f"own jit {name}"]
            rows += self._plain(what, name, mine, f"jit {name}", judge, self.ours[name])
        if judge.noted:  # on JAX arrays funcgrad's rules have JAX's values
            known = [not row.ok and row.funcgrad_referee == row.funcgrad_referee for row in rows]
            pairs = zip(rows, known, strict=True)
            rows = [row._replace(verdict=row.verdict + KNOWN, ok=True) if k else row for row, k in pairs]
        return _joined(rows)

    def _float32(self, judge: Judge) -> list[Row]:
        """The referee is double precision, at the point that single precision rounds to."""
        subject, at = self.subject, self.at
        with np.errstate(all="ignore"):
            exact = [_double(x) for x in at.single]
            moved = [x * (1 + ROUNDING * sign) for x, sign in zip(exact, self.signs, strict=True)]
            try:
                double, beside = [_answers(subject, at, point, self.ways.cts) for point in (exact, moved)]
                plain = subject(*at.single)
            except Exception as error:
                return [_not_compared("float32", "beside the point", error)]
        rows: list[Row] = []
        quantities = (
            ("value", "value", subject.result_paths, plain),
            ("reverse", self._name, subject.paths, at.single),
            ("forward", "jvp", subject.result_paths, plain),
        )
        for kind, name, paths, likes in quantities:
            mine, yours = self.ours[f"float32 {kind}"], self.theirs[f"float32 {kind}"]
            if isinstance(mine, Exception):
                rows.append(judge.refused(f"float32 {name}", mine, yours))
                continue
            dtypes = [np.asarray(x).dtype for x in likes]
            yours = None if isinstance(yours, Exception) or kind in self.apart else yours
            rows += judge.singles(f"float32 {name}", paths, mine, yours, double[kind], beside[kind], dtypes)
        return rows


def _double(x: Any) -> Any:
    found = np.asarray(x).astype(np.complex128 if np.iscomplexobj(x) else np.float64)
    return found if found.shape else found[()]


def _answers(subject: Subject, at: Inputs, point: Leaves, cts: Leaves) -> Answers:
    """What funcgrad says at ``point`` in double precision of what single precision is asked."""
    outs, reverse = pulled(OURS, subject, cts)(*point)
    tangents = [_double(t) for t in at.single_tangents]
    return {"value": outs, "reverse": reverse, "forward": jvp(subject, tuple(point), tuple(tangents))[1]}


def _not_compared(what: str, where: str, error: Exception) -> Row:
    return without_numbers(what, "result", f"not compared, {where} raises {type(error).__name__}", True)


def _joined(rows: list[Row]) -> list[Row]:
    """The rows; where nothing was computed, one that says so."""
    if all(row.funcgrad_referee != row.funcgrad_referee for row in rows):
        return [rows[0]._replace(what=rows[0].what.partition(" ")[0])]
    return rows
