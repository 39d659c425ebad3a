"""Random programs as data, which print as Python code."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from fuzz import helpers
from fuzz.guards import GUARDS
from fuzz.layers import LAYERS

__all__ = ["Line", "Program", "Unfit", "as_argument", "locked", "namespace", "step", "walk"]

HELPERS = {name: value for name, value in vars(helpers).items() if not name.startswith("_")}


class Unfit(Exception):  # noqa: N818  a random program that is unfit is not an error
    """Error for a program that does not run, or runs where derivatives do not exist."""


@dataclass(frozen=True)
class Line:
    """One statement.

    Attributes:
        text: an expression, or a statement if it holds ``{out}`` or makes nothing; ``{0}``, ``{1}``, ... are the values
            that it uses.
        uses: the indices of those values.
        out: the index of the value that the statement makes, None for a write.
        guard: an expression in NumPy that must be true for the values used, else the program is near a kink.
        jax: the same for ``jax.numpy`` and ``jax.lax``; None if it is the same, empty if there is none: then JAX runs
            the program through ``to_jax``.
    """

    text: str
    uses: tuple[int, ...] = ()
    out: int | None = None
    guard: str = ""
    jax: str | None = None

    def code(self, *, jax: bool = False) -> str:
        """Return the statement as Python code."""
        text = self.jax if jax and self.jax else self.text
        filled = text.format(*[f"v{i}" for i in self.uses], out=f"v{self.out}")
        return filled if self.out is None or "{out}" in text else f"v{self.out} = {filled}"


@dataclass(frozen=True)
class Program:
    """A function of arrays, and the transforms that are applied to it, the innermost first.

    Attributes:
        inputs: the argument: values 0, 1, ...; several are passed in a dictionary.
        consts: other arrays that the program uses, by name.
        lines: its statements.
        result: indices of the values of which the program returns a share; the last value is returned as a whole.
        stack: names of layers, each with a number that chooses a variant.
        dispatch: whether the program calls functions of plain NumPy, which dispatch to funcgrad's.
        lift: whether JAX runs the program through ``to_jax``, and not with ``jax.numpy``.
        compiled: whether funcgrad's transforms run on JAX arrays under ``jax.jit`` too.
    """

    inputs: tuple[Any, ...]
    consts: dict[str, Any] = field(default_factory=dict)
    lines: tuple[Line, ...] = ()
    result: tuple[int, ...] = (0,)
    stack: tuple[tuple[str, int], ...] = ()
    dispatch: bool = False
    lift: bool = False
    compiled: bool = False

    @property
    def point(self) -> Any:
        """Argument of the program."""
        return as_argument(self.inputs)

    @property
    def lifted(self) -> bool:
        """Whether JAX needs ``to_jax``."""
        return self.lift or any(line.jax == "" for line in self.lines)

    def source(self, *, jax: bool = False) -> str:
        """Return the program as a Python function ``program(np, fg, x)``."""
        names = [f"v{i}" for i in range(len(self.inputs))]
        found = "x" if len(names) == 1 else ", ".join(f"x[{key!r}]" for key in keys(len(names)))
        body = [f"{', '.join(names)} = {found}"] + [line.code(jax=jax) for line in self.lines]
        *shares, last = [f"v{i}" for i in self.result]
        body.append(f"return {last} + small(np, {', '.join(shares)})" if shares else f"return {last}")
        return "def program(np, fg, x):\n" + indented("\n".join(body))

    def transforms(self) -> str:
        """Return the stack as a Python function ``transformed(np, fg, f0)``."""
        body = []
        for n, (name, k) in enumerate(self.stack):
            layer = LAYERS[name].code.format(f=f"f{n}", k=k)
            body.append(f"def f{n + 1}(x):\n    return {layer}")
        body.append(f"return f{len(self.stack)}")
        return "def transformed(np, fg, f0):\n" + indented("\n".join(body))

    def function(self, *, jax: bool = False) -> Callable[..., Any]:
        """Compile and return ``program(np, fg, x)``."""
        return _defined(self.source(jax=jax), "program", self.consts)

    def stacked(self) -> Callable[..., Any]:
        """Compile and return ``transformed(np, fg, f0)``."""
        return _defined(self.transforms(), "transformed", {})

    def points(self, above: int = 0) -> list[Any]:
        """Return the points at which the first ``above`` layers, or with 0 the program, are run."""
        found = [self.point]
        for name, k in reversed(self.stack[above:]):
            found = [inner for x in found for inner in LAYERS[name].points(x, k)]
        return found

    def numbered(self, **changes: Any) -> Program:
        """Return the program with changes, and without unused constants."""
        new = replace(self, **changes)
        texts = [text for line in new.lines for text in (line.text, line.guard, line.jax) if text]
        used = {n.id for text in texts for n in ast.walk(_parsed(text)) if isinstance(n, ast.Name)}
        return replace(new, consts={name: c for name, c in new.consts.items() if name in used})


def keys(count: int) -> str:
    return "abcdef"[:count]


def as_argument(leaves: Sequence[Any]) -> Any:
    return leaves[0] if len(leaves) == 1 else dict(zip(keys(len(leaves)), leaves, strict=True))


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


@lru_cache(maxsize=1000)
def _parsed(text: str) -> Any:
    return ast.parse(text.format(*["v"] * 9, out="v"))


def _defined(source: str, name: str, values: dict[str, Any]) -> Any:
    scope = {**HELPERS, **values}
    exec(_compiled(source, "exec"), scope)
    return scope[name]


def namespace(np_: Any, fg: Any, program: Program, x: Any) -> dict[str, Any]:
    """Return the variables that the first statement sees."""
    leaves = [x] if len(program.inputs) == 1 else list(x.values())
    scope = {**HELPERS, **program.consts, "np": np_, "fg": fg}
    scope.update({f"v{i}": locked(leaf) for i, leaf in enumerate(leaves)})
    return scope


def locked(x: Any) -> Any:
    """Return a copy that is not writable."""
    x = np.array(x)
    x.setflags(write=False)
    return x


@lru_cache(maxsize=4000)
def _compiled(code: str, mode: str) -> Any:
    return compile(code, "<line>", mode)


def step(line: Line, scope: dict[str, Any]) -> None:
    """Run one line, its guard first."""
    if line.guard:
        guard = line.guard.format(*[f"v{i}" for i in line.uses])
        if not eval(_compiled(guard, "eval"), {**scope, **GUARDS}):
            raise Unfit(guard)
    exec(_compiled(line.code(), "exec"), scope)


def walk(program: Program, fg: Any) -> Iterator[dict[str, Any]]:
    """Generate the values that plain NumPy computes, at every point where the program is run.

    Raises:
        Unfit: the program does not run, or comes near a kink.
    """
    for x in program.points():
        scope = namespace(np, fg, program, x)
        try:
            for line in program.lines:
                step(line, scope)
        except Exception as error:
            raise Unfit(f"{type(error).__name__}: {error}") from error
        yield scope
