"""Generation of random programs, statement by statement; NumPy runs each statement before it is kept."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fuzz.layers import LAYERS
from fuzz.programs import Line, Program, Unfit, locked, namespace, step

__all__ = ["Builder", "LARGEST", "Maker"]

LARGEST = 12  # largest number of elements of a value
TOO_LARGE = 4.0  # largest absolute value
_CONSTANT = ("np.zeros_like", "np.ones_like", "np.full_like", "np.empty_like")
#: Beginning of statements in whose result the first argument is constant, unless the statement names it again.
_STEP = "np.heaviside({0}, 0.5)"
Maker = Callable[["Builder"], "Line | None"]


class Builder:
    """Program under construction.

    Attributes:
        rng: the source of all choices.
        branches: whether Python may branch on values.
        empty: whether statements use arrays without elements too.
        scopes: the variables of the statements, at every point where the program will be run.
    """

    def __init__(self, rng: np.random.Generator, program: Program, fg: Any) -> None:
        self.rng = rng
        self.program = program
        self.fg = fg
        self.branches = all(LAYERS[name].branches for name, _ in program.stack) and not program.compiled
        self.empty = any(x.size == 0 for x in program.inputs)
        self.scopes: list[dict[str, Any]] = []
        self.restart()

    def restart(self) -> None:
        """Run all statements again: a write that was not kept may have changed something."""
        self.scopes = [namespace(np, self.fg, self.program, x) for x in self.program.points()]
        for scope in self.scopes:
            for line in self.program.lines:
                step(line, scope)

    # ---- what there is -------------------------------------------------------------------------------------------

    def value(self, i: int) -> Any:
        """Return a value at the first point."""
        return self.scopes[0][f"v{i}"]

    def numbers(self) -> list[int]:
        """Return the indices of all values, the newest last."""
        return [*range(len(self.program.inputs)), *[line.out for line in self.program.lines if line.out is not None]]

    def any(self, fits: Callable[[Any], bool] = lambda v: True, written: bool = False) -> int | None:
        """Return a value that fits, likely a new one; with ``written``, a value that can be written to."""
        found = [i for i in self.numbers() if fits(self.value(i)) and not (written and self._is_ordinary(i))]
        if not found:
            return None
        back = min(int(self.rng.geometric(0.45)) - 1, len(found) - 1)
        return found[len(found) - 1 - back]

    def _is_ordinary(self, i: int) -> bool:
        """Whether a value may be an ordinary NumPy array: nothing traced can be written to it.

        NumPy and a transform make such arrays from numbers and ordinary arrays alone. An array of constants that the
        program makes itself is not ordinary, but its elements are.
        """
        return self._is_constant(i) and any(self.value(k).ndim == 0 or "fg." in t for k, t in self._behind(i))

    def _is_constant(self, i: int) -> bool:
        return all(k >= len(self.program.inputs) for k, _ in self._behind(i) if not self._uses(k))

    def _uses(self, i: int) -> tuple[int, ...]:
        """Return the values that the value depends on; a constant result depends on none."""
        line = next((line for line in self.program.lines if line.out == i), None)
        if line is None or line.text.startswith(_CONSTANT):
            return ()
        text = line.text.removeprefix(_STEP)
        return tuple([k for n, k in enumerate(line.uses) if f"{{{n}}}" in text])

    def _behind(self, i: int) -> list[tuple[int, str]]:
        """Return the value and all that it was made of, each with the text that made it; an input has only ``{0}``."""
        found, waiting = [], [i]
        texts = {line.out: line.text for line in self.program.lines}
        while waiting:
            k = waiting.pop()
            found.append((k, texts.get(k, "{0}")))
            waiting += self._uses(k)
        return found

    def inexact(self, ndim: int = 0, kinds: str = "fc", fits: Callable[[Any], bool] = lambda v: True) -> int | None:
        """Return a floating or complex value with at least so many axes."""
        return self.any(lambda v: v.dtype.kind in kinds and v.ndim >= ndim and (self.empty or v.size > 0) and fits(v))

    def pick(self, *choices: Any) -> Any:
        """Return one of the choices."""
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, p: float) -> bool:
        """Return True with probability ``p``."""
        return bool(self.rng.random() < p)

    def number(self, low: float = 0.3, high: float = 1.7) -> float:
        """Return a short number."""
        return round(float(self.rng.uniform(low, high)), 2)

    def const(self, values: Any) -> str:
        """Add a constant array and return its name."""
        name = f"c{len(self.program.consts)}"
        values = locked(np.asarray(values))
        self.program = replace(self.program, consts={**self.program.consts, name: values})
        for scope in self.scopes:
            scope[name] = values
        return name

    def random(self, shape: Any, kind: str = "f") -> Any:
        """Return random numbers for a constant, short, none of them small."""
        if kind == "i":
            return self.rng.integers(1, 4, shape) * self.rng.choice([-1, 1], shape)
        found = np.round(self.rng.uniform(0.3, 1.6, shape) * self.rng.choice([-1, 1], shape), 2)
        return found + 1j * np.round(self.rng.uniform(-1, 1, shape), 2) if kind == "c" else found

    # ---- what is added -------------------------------------------------------------------------------------------

    def line(self, text: str, *uses: int, guard: str = "", jax: str | None = None, writes: bool = False) -> Line:
        """Return a statement that makes a new value, or writes."""
        taken = [i for i in self.numbers() if i is not None]
        out = None if writes else max(taken) + 1
        return Line(text, uses, out, guard, "" if writes else jax)

    def add(self, line: Line) -> bool:
        """Keep a statement if it runs at all points, and gives numbers that are neither many nor large."""
        before = self.program
        self.program = replace(before, lines=(*before.lines, line))
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("error")
                for scope in self.scopes:
                    step(line, scope)
                    self._check(line, scope)
        except Exception:
            self.program = before
            if line.out is None:
                self.restart()
            return False
        if line.out is not None and self._size(line.out) > TOO_LARGE:
            calm = self.line("np.tanh({0})" if self.value(line.out).dtype.kind == "f" else "{0} / 8", line.out)
            return self.add(calm)
        return True

    def _check(self, line: Line, scope: dict[str, Any]) -> None:
        for i in [line.out] if line.out is not None else self.numbers():
            made = scope[f"v{i}"]
            if not isinstance(made, (np.ndarray, np.generic)) or made.dtype.kind not in "fcib":
                raise Unfit("no array")
            if made.ndim > 3 or made.size > LARGEST or not np.all(np.isfinite(made)):
                raise Unfit("too large")
            if line.out is None and made.size and np.max(np.abs(made)) > TOO_LARGE:
                raise Unfit("large numbers")

    def _size(self, i: int) -> float:
        return max(float(np.max(np.abs(scope[f"v{i}"]), initial=0)) for scope in self.scopes)
