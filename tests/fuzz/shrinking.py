"""Reduction of a failing program: the same verdict from fewer statements, fewer layers, smaller arrays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from fuzz.programs import Line, Program

__all__ = ["shrink"]

SECONDS = 60.0


def shrink(program: Program, fails: Callable[[Program], bool], seconds: float = SECONDS) -> Program:
    """Return the smallest program found that ``fails`` still.

    Args:
        program: a program that fails.
        fails: whether another program fails in the same way.
        seconds: time after which the search ends.
    """
    end = time.monotonic() + seconds
    again = True
    while again:
        again = False
        for candidate in _smaller(program):
            if time.monotonic() > end:
                return program
            if _size(candidate) < _size(program) and fails(candidate):
                program, again = candidate, True
                break
    return program


def _size(p: Program) -> tuple[Any, ...]:
    """Return the sizes to minimize, the most important first."""
    return (
        len(p.lines) + len(p.stack),
        len(p.inputs) + len(p.result),
        sum(x.size for x in p.inputs) + sum(c.size for c in p.consts.values()),
        sum(x.ndim for x in p.inputs),
        sum(len(line.text) for line in p.lines) + sum(sum(line.uses) for line in p.lines),
        sum(k for _, k in p.stack),
        p.dispatch + p.lift + p.compiled,
        sum(len(repr(x.tolist())) for x in (*p.inputs, *p.consts.values())),
        sum(float(np.sum(np.abs(x - 1))) for x in p.inputs),
    )


def _smaller(p: Program) -> Iterator[Program]:
    """Generate programs to try, those first that leave out most."""
    for n in range(len(p.stack)):
        yield replace(p, stack=p.stack[:n] + p.stack[n + 1 :])
    for n in range(len(p.lines) - 1, 0, -1):  # all later statements
        yield _without(p, set(range(n, len(p.lines))))
    for n in reversed(range(len(p.lines))):
        yield from _leaving_out(p, n)
    for n in range(len(p.result)):
        if len(p.result) > 1:
            yield p.numbered(result=p.result[:n] + p.result[n + 1 :])
    yield from _simpler_lines(p)
    yield from _smaller_arrays(p)
    for field in ("dispatch", "lift", "compiled"):
        yield replace(p, **{field: False})
    for n, (name, k) in enumerate(p.stack):
        if k:
            yield replace(p, stack=(*p.stack[:n], (name, 0), *p.stack[n + 1 :]))


def _without(p: Program, gone: set[int]) -> Program:
    """Return the program without some statements, and without all that need them."""
    lost: set[int] = set()
    kept = []
    for n, line in enumerate(p.lines):
        if n in gone or any(i in lost for i in line.uses):
            if line.out is not None:
                lost.add(line.out)
        else:
            kept.append(line)
    result = tuple(i for i in p.result if i not in lost)
    if not result:
        made = [line.out for line in kept if line.out is not None]
        result = (made[-1],) if made else (0,)
    return p.numbered(lines=tuple(kept), result=result)


def _leaving_out(p: Program, n: int) -> Iterator[Program]:
    """Leave out one statement, and use one of its arguments in place of its result."""
    line = p.lines[n]
    if line.out is None:
        yield p.numbered(lines=p.lines[:n] + p.lines[n + 1 :])
        return
    for stand_in in dict.fromkeys([*line.uses, 0]):
        lines = tuple(_using(other, line.out, stand_in) for other in p.lines[:n] + p.lines[n + 1 :])
        result = tuple(dict.fromkeys(stand_in if i == line.out else i for i in p.result))
        yield p.numbered(lines=lines, result=result)
    yield _without(p, {n})


def _using(line: Line, old: int, new: int) -> Line:
    return replace(line, uses=tuple(new if i == old else i for i in line.uses))


def _simpler_lines(p: Program) -> Iterator[Program]:
    """Generate programs whose statements use earlier values, or are simple."""
    for n, line in enumerate(p.lines):
        for place, used in enumerate(line.uses):
            for i in range(used):
                uses = (*line.uses[:place], i, *line.uses[place + 1 :])
                yield p.numbered(lines=(*p.lines[:n], replace(line, uses=uses), *p.lines[n + 1 :]))
        if line.out is not None and len(line.text) > len("2 * {0}"):
            for text in ("2 * {0}", "np.sum({0})", "np.ravel({0})", "{0}[0]"):
                simple = replace(line, text=text, uses=line.uses[:1], guard="", jax=None)
                yield p.numbered(lines=(*p.lines[:n], simple, *p.lines[n + 1 :]))


def _smaller_arrays(p: Program) -> Iterator[Program]:
    """Generate programs with fewer arguments, elements and digits."""
    if len(p.inputs) > 1:
        yield from _fewer_inputs(p)
    for n, x in enumerate(p.inputs):
        parts = [x.take(0, axis) for axis in range(x.ndim) if x.size]
        parts += [x.take([0, 1], axis) for axis in range(x.ndim) if x.shape[axis] > 2]
        parts += [x.take([0], axis) for axis in range(x.ndim) if x.shape[axis] > 1]
        parts += [np.ones_like(x), np.round(x, 1)]
        for part in parts:
            yield replace(p, inputs=(*p.inputs[:n], np.asarray(part, x.dtype), *p.inputs[n + 1 :]))
    for name, c in p.consts.items():
        parts = [c.take([0], axis) for axis in range(c.ndim) if c.shape[axis] > 1]
        parts += [c.take([0, 1], axis) for axis in range(c.ndim) if c.shape[axis] > 2]
        for part in parts:
            yield replace(p, consts={**p.consts, name: part})


def _fewer_inputs(p: Program) -> Iterator[Program]:
    """Generate programs without one argument. The other values keep their order: argument indices come first."""
    for gone in range(len(p.inputs)):
        stand_in = 0
        kept = p.inputs[:gone] + p.inputs[gone + 1 :]
        moved = {i: (stand_in if i == gone else i - (i > gone)) for i in range(len(p.inputs))}
        lines = tuple(replace(line, uses=tuple(moved.get(i, i) for i in line.uses)) for line in p.lines)
        result = tuple(dict.fromkeys(moved.get(i, i) for i in p.result))
        yield replace(p, inputs=kept, lines=lines, result=result)
