"""Draws of arguments: other shapes, memory orders, dtypes, classes and keyword arguments than the call has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz.calls import Call

INEXACT = "fc"


class Hole:
    """Placeholder for an argument that may be traced."""

    def __init__(self, number: int) -> None:
        self.number = number


@dataclass
class Draw:
    """A call with its arguments taken apart.

    Attributes:
        call: what is called.
        args: the positional arguments, with a hole for each array or number.
        kwargs: the keyword arguments, likewise.
        traced: indices of the traced leaves.
        traced: numbers of those that are traced.
        out: shape and dtype of an array that is passed as ``out``, or whether there is to be one.
    """

    call: Call
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: list[Any]
    traced: list[int]
    out: Any = False

    def of(self, fun: Callable[..., Any], zeros: Callable[..., Any] = np.zeros) -> Callable[..., Any]:
        """Return ``fun`` as a function of the traced leaves; ``zeros`` makes the array for the result."""
        args, kwargs, leaves, traced, out = self.args, self.kwargs, self.leaves, self.traced, self.out

        def call(*primals: Any) -> Any:
            full = list(leaves)
            for i, primal in zip(traced, primals, strict=True):
                full[i] = primal
            into = {"out": zeros(*out)} if isinstance(out, tuple) else {}
            return fun(*[filled(a, full) for a in args], **{k: filled(v, full) for k, v in kwargs.items()}, **into)

        return call

    def of_copies(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``fun`` of plain arguments, called with copies, since ``fun`` may write to its arguments."""

        def of_copies(*args: Any, **kwargs: Any) -> Any:
            return fun(*map(_copied, args), **{k: v if k == "out" else _copied(v) for k, v in kwargs.items()})

        return self.of(of_copies)

    @property
    def primals(self) -> tuple[Any, ...]:
        """Values of the traced leaves."""
        return tuple(self.leaves[i] for i in self.traced)

    def text(self) -> str:
        """Call on one line."""
        shown = [_shown(filled(a, self._named())) for a in self.args]
        shown += [f"{k}={_shown(filled(v, self._named()))}" for k, v in self.kwargs.items()]
        return f"{self.call.name}({', '.join(shown)})" + (" with out" if self.out else "")

    def _named(self) -> list[Any]:
        return [_Text(about(leaf) + ("*" if i in self.traced else "")) for i, leaf in enumerate(self.leaves)]


class _Text(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _shown(value: Any) -> str:
    return getattr(value, "__name__", "function") if callable(value) else repr(value)


def about(x: Any) -> str:
    """Describe an array: dtype, shape, memory order."""
    if not isinstance(x, np.ndarray):
        return repr(x)
    if x.size <= 1 or x.dtype == bool:
        return repr(x).replace("\n", "").replace(" ", "")
    memory = "" if x.flags.c_contiguous else " F" if x.flags.f_contiguous else f" strides {x.strides}"
    return f"{x.dtype}{list(x.shape)}{memory}{'' if x.flags.writeable else ' read-only'}"


def _copied(x: Any) -> Any:
    if type(x) in (list, tuple):
        return type(x)([_copied(v) for v in x])
    return x.copy(order="K") if isinstance(x, np.ndarray) else x


def filled(part: Any, values: Sequence[Any]) -> Any:
    """Return ``part`` with a value in each hole."""
    if isinstance(part, Hole):
        return values[part.number]
    if type(part) in (list, tuple):
        return type(part)([filled(p, values) for p in part])
    return part


def draw(call: Call, rng: np.random.Generator) -> Draw:
    """Make a draw of a call."""
    leaves: list[Any] = []
    live: list[int] = []

    def holes(value: Any, fixed: bool) -> Any:
        if type(value) in (list, tuple) and any(isinstance(v, (np.ndarray, float, list, tuple)) for v in value):
            return type(value)([holes(v, fixed) for v in value])
        if not isinstance(value, (np.ndarray, np.generic)) and (fixed or type(value) not in (float, complex)):
            return value
        leaves.append(value)
        if not fixed and np.asarray(value).dtype.kind in INEXACT:
            live.append(len(leaves) - 1)
        return Hole(len(leaves) - 1)

    fixed = {*call.sample.frozen, *call.sample.unbatched}
    args = tuple(holes(a, i in fixed) for i, a in enumerate(call.sample.args))
    kwargs = {k: holes(v, False) for k, v in call.sample.kwargs.items()}
    out = False
    for name in call.options:
        if rng.uniform() < 1.2 / (1 + len(call.options)):
            values = call.options[name]
            value = values[rng.integers(len(values))]
            out |= name == "out" or (isinstance(call.theirs, np.ufunc) and name == "where")
            if name != "out":
                kwargs[name] = holes(value, name in ("where", "axis"))
    leaves[:] = [_scaled(x, rng) if i in live else x for i, x in enumerate(leaves)]
    shaped(leaves, live, rng)
    typed(leaves, live, rng)
    leaves[:] = [laid_out(x, rng) for x in leaves]
    live = [i for i in live if np.asarray(leaves[i]).dtype.kind in INEXACT]
    traced = [i for i in live if rng.uniform() < 0.7] or live[:1]
    return Draw(call, args, kwargs, leaves, traced, out)


def _scaled(x: Any, rng: np.random.Generator) -> Any:
    """Return other numbers, still in the domain and in the same order."""
    return x * (1 + 0.03 * rng.uniform()) if not isinstance(x, (float, complex)) else type(x)(x * 1.01)


def shaped(leaves: list[Any], live: list[int], rng: np.random.Generator) -> None:
    """Change the shapes, of one argument or equally of all, in place."""
    if not leaves or rng.uniform() < 0.5:
        return
    arrays = [i for i in live if isinstance(leaves[i], np.ndarray)]
    chosen = arrays if rng.uniform() < 0.5 else arrays[:1] if rng.uniform() < 0.5 else arrays[-1:]
    axis, kind = int(rng.integers(-2, 2)), rng.integers(8)
    for i in chosen:
        x = leaves[i]
        has = -x.ndim <= axis < x.ndim
        ways: list[Callable[[Any], Any]] = [
            lambda x: np.stack([x, x[..., ::-1] * 1.01 if x.ndim and x.dtype != bool else x * 1.01]),
            lambda x: x[None],
            lambda x, has=has: np.take(x, [0], axis) if has and x.size else x,
            lambda x, has=has: np.take(x, [], axis) if has else x,
            lambda x: x.ravel()[:1].reshape(()) if x.size else x,
            lambda x: x[0] if x.ndim and len(x) else x,
            lambda x: x[..., None],
            lambda x, has=has: np.concatenate([x, x * 1.013 + 0.007], axis) if has else x,
        ]
        leaves[i] = np.asarray(ways[kind](x))


def typed(leaves: list[Any], live: list[int], rng: np.random.Generator) -> None:
    """Change the dtypes, of one argument or equally of all, or use Python numbers, in place."""
    if not live or rng.uniform() < 0.5:
        return
    chosen = live if rng.uniform() < 0.5 else [live[int(rng.integers(len(live)))]]
    dtype = rng.choice(["f4", "f4", "c16", "c8", "i8", "i4", "number", "f2"])
    for i in chosen:
        x = leaves[i]
        if dtype == "number":
            leaves[i] = x[()].item() if isinstance(x, (np.ndarray, np.generic)) and x.ndim == 0 else x
        elif isinstance(x, (np.ndarray, np.generic)):
            if dtype[0] == "c":
                x = x * (1 + 0.21j) if np.asarray(x).dtype.kind != "c" else x
            elif np.asarray(x).dtype.kind == "c":
                x = x.real
            leaves[i] = np.round(x * 3).astype(dtype) if dtype[0] == "i" else x.astype(dtype)


def laid_out(x: Any, rng: np.random.Generator) -> Any:
    """Copy the numbers to another place in memory."""
    if not isinstance(x, np.ndarray):
        return x
    kind = rng.integers(7)
    if kind == 0:
        made = np.asfortranarray(x)
    elif kind in (1, 2):
        step = 2 if kind == 1 else -2
        buffer = np.zeros([2 * n for n in x.shape], x.dtype, order="F" if rng.uniform() < 0.5 else "C")
        made = buffer[(*[slice(None, None, step) for _ in x.shape], ...)]
        made[...] = x
    else:
        made = np.array(x)
    made.flags.writeable = bool(kind != 3)
    return made
