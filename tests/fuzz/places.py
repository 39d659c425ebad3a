"""Random index expressions, for reading and writing: of traced arrays and of constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from operations.spec import Sample, spread

import funcgrad.numpy as fnp
from fuzz.calls import Call
from fuzz.draws import Hole

Program = Callable[[Any, Any, Any, Any], Any]


def index(shape: tuple[int, ...], rng: np.random.Generator, repeats: bool) -> Any:
    """Return an index expression for an array of a shape."""
    if shape and rng.uniform() < 0.1:
        return rng.uniform(size=shape) < 0.5
    entries: list[Any] = []
    rest = list(shape[: rng.integers(len(shape) + 1)]) if rng.uniform() < 0.4 else list(shape)
    common = [(2,), (1, 2), (2, 1), (), (0,)][rng.integers(5)]
    while rest:
        n = rest[0]
        kind = rng.integers(7)
        if kind == 0 and n:
            entries.append(int(rng.integers(-n, n)))
        elif kind == 1 and n:
            entries.append(_positions(n, common, rng, repeats))
        elif kind == 2:
            count = int(rng.integers(1, 1 + min(2, len(rest))))
            mask = rng.uniform(size=rest[:count]) < 0.5
            entries.append(mask if rng.uniform() < 0.7 else mask.tolist())
            rest = rest[count - 1 :]
        elif kind == 3:
            entries.append(None)
            continue
        else:
            ends = [None, *range(-n - 1, n + 2)]
            step = [None, 1, 2, -1, -2, -1][rng.integers(6)]
            entries.append(slice(ends[rng.integers(len(ends))], ends[rng.integers(len(ends))], step))
        rest = rest[1:]
    if rng.uniform() < 0.3:
        entries.insert(int(rng.integers(len(entries) + 1)), Ellipsis)
    if len(entries) == 1 and rng.uniform() < 0.5:
        return entries[0]
    return tuple(entries)


def _positions(n: int, common: tuple[int, ...], rng: np.random.Generator, repeats: bool) -> Any:
    size = int(np.prod(common, dtype=int))
    flat = rng.integers(-n, n, size) if repeats or size > n else rng.permutation(n)[:size]
    made = np.asarray(flat, dtype=rng.choice(["i8", "i4", "u1"]) if (flat >= 0).all() else "i8").reshape(common)
    return made.tolist() if rng.uniform() < 0.3 else made


def written(place: Callable[[Any], Any], add: str) -> Program:
    """Return a write into a part of a copy of the array."""

    def program(xp: Any, x: Any, v: Any, i: Any) -> Any:
        y = xp.array(x)
        part = place(y)
        if add == "=":
            part[i] = v
        elif add == "+=":
            part[i] += v
        elif add == "*=":
            part[i] *= v
        else:
            xp.add.at(part, i, v)
        return y, part

    return program


def into_constant(xp: Any, x: Any, v: Any, i: Any) -> Any:
    y = xp.full(x.shape, 1.5)
    y[i] = v
    y[i] *= 2.0
    return y


def from_constant(xp: Any, x: Any, v: Any, i: Any) -> Any:
    y = xp.zeros(x.shape)
    y[...] = x
    y[i] -= x[i] * v
    return y[i], y


def flat(xp: Any, x: Any, v: Any, i: Any) -> Any:
    y = xp.array(x)
    y.flat[::2] = v
    return y, y.flat[1::-1]


def put(xp: Any, x: Any, v: Any, i: Any) -> Any:
    y = xp.array(x)
    xp.put(y, [0, -1], xp.ravel(v))
    return y


def put_along(axis: int) -> Program:
    def program(xp: Any, x: Any, v: Any, i: Any) -> Any:
        y = xp.array(x)
        at = xp.argmin(x, axis=axis, keepdims=True)
        xp.put_along_axis(y, at, xp.mean(v), axis)
        return y, xp.take_along_axis(x, at, axis)

    return program


def masked(xp: Any, x: Any, v: Any, i: Any) -> Any:
    y, z, w = xp.array(x), xp.array(x), xp.array(x)
    xp.place(y, x > 0, xp.ravel(v))
    xp.putmask(z, x < 0.5, xp.ravel(v))
    xp.copyto(w, xp.mean(v), where=x > 0)
    return y, z, w


PROGRAMS: dict[str, Program] = {
    "x[i]": lambda xp, x, v, i: x[i],
    "x.T[i]": lambda xp, x, v, i: x.T[i] * 1.0,
    "y[i] = v": written(lambda y: y, "="),
    "y[i] += v": written(lambda y: y, "+="),
    "y[i] *= v": written(lambda y: y, "*="),
    "add.at(y, i, v)": written(lambda y: y, "at"),
    "y[::-1][i] = v": written(lambda y: y[::-1], "="),
    "y[...][i] += v": written(lambda y: y[...], "+="),
    "y.reshape(y.shape)[i] = v": written(lambda y: y.reshape(y.shape), "="),
    "y.swapaxes(0, -1).swapaxes(0, -1)[i] += v": written(lambda y: y.swapaxes(0, -1).swapaxes(0, -1), "+="),
    "full(...)[i] = v": into_constant,
    "zeros(...)[i] -= x[i] v": from_constant,
    "y.flat[::2] = v": flat,
    "put": put,
    "put_along_axis -1": put_along(-1),
    "put_along_axis 0": put_along(0),
    "place, putmask, copyto": masked,
    "take": lambda xp, x, v, i: xp.take(x, [[0, -1]], axis=-1),
    "delete": lambda xp, x, v, i: (xp.delete(x, -1, axis=0), xp.delete(x, slice(None, None, -2))),
    "insert": lambda xp, x, v, i: (xp.insert(x, 1, xp.ravel(v)[0]), xp.insert(x, [0, -1], 0.5, axis=0)),
    "nonzero": lambda xp, x, v, i: x[xp.nonzero(x > 0)],
}


def place_call(rng: np.random.Generator) -> tuple[Call, tuple[Any, ...], dict[str, Any], list[Any], list[int]]:
    """Return the parts of a draw."""
    names = list(PROGRAMS)
    name = names[int(rng.integers(len(names)))]
    shape = tuple(int(n) for n in rng.integers(0 if rng.uniform() < 0.2 else 1, 4, rng.integers(0, 4)))
    x = spread(*shape, seed=int(rng.integers(99)))
    at = index(shape, rng, repeats=name in ("x[i]", "x.T[i]", "add.at(y, i, v)"))
    of = x.T if name == "x.T[i]" else x
    try:
        target = np.shape(of[at])
    except IndexError:
        target = ()
    kept = [n if rng.uniform() < 0.8 else 1 for n in target][int(rng.integers(len(target) + 1)) if target else 0 :]
    v: Any = spread(*kept, seed=100 + int(rng.integers(99)))
    v = v if rng.uniform() < 0.9 or v.size != 1 else float(v.ravel()[0])
    if rng.uniform() < 0.15:
        x, v = x.astype("f4"), v if isinstance(v, float) else v.astype(rng.choice(["f4", "f8"]))
    x = np.asfortranarray(x) if rng.uniform() < 0.3 else x
    program = PROGRAMS[name]
    traced = [[0], [1], [0, 1]][rng.integers(3)]

    def ours(x: Any, v: Any) -> Any:
        return program(fnp, x, v, at)

    def theirs(x: Any, v: Any) -> Any:
        return program(np, x, v, at)

    call = Call(f"{name} for i = {at!r}".replace("\n", ""), ours, theirs, Sample((x, v)))
    return call, (Hole(0), Hole(1)), {}, [x, v], traced
