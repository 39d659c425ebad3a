"""The form of a call's arguments: what must be the same for a recorded program to hold good."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from funcgrad import tree
from funcgrad.core import describe
from funcgrad.transforms.compiled.graphs import fact_of

__all__ = ["Form", "form_of", "is_number", "is_setting", "names_of"]

ndarray = np.ndarray
_NUMBERS = frozenset((float, complex, *[np.dtype(c).type for c in "efdgFDGbBhHiIlLqQ?"]))
_SETTINGS = frozenset((int, bool, str, bytes, type(None)))


def is_number(x: Any) -> bool:
    """Whether it is a number that is an input."""
    return type(x) in _NUMBERS


def is_setting(x: Any) -> bool:
    """Whether it is part of the form."""
    return type(x) in _SETTINGS or callable(x)


class Form(NamedTuple):
    """The form of arguments, and what is in them.

    Attributes:
        key: equal for arguments of one form.
        spec: the structure of ``(args, kwargs)``.
        leaves: all leaves.
        live: for each whether it is an input; the others are part of the form.
    """

    key: Any
    spec: tree.PyTreeSpec
    leaves: list[Any]
    live: list[bool]

    @property
    def inputs(self) -> list[Any]:
        """The inputs among the leaves."""
        return [x for x, flag in zip(self.leaves, self.live, strict=True) if flag]

    def without_values(self) -> Form:
        """The same form, which does not hold on to the arguments' arrays. Their stand-ins must not be read."""
        stand_ins = [
            as_strided(np.empty(1, x.dtype), x.shape, x.strides) if type(x) is ndarray and x.size else x
            for x in self.leaves
        ]
        return self._replace(leaves=stand_ins)

    def filled(self, inputs: list[Any]) -> Any:
        """The arguments ``(args, kwargs)`` with these inputs."""
        rest = iter(inputs)
        return tree.unflatten(
            self.spec, [next(rest) if flag else x for x, flag in zip(self.leaves, self.live, strict=True)]
        )


def form_of(args: Any, kwargs: Any) -> Form | str:
    """The form of a call; where something among the arguments cannot be recorded, what that is."""
    leaves, spec = tree.flatten((args, kwargs))
    keys: list[Any] = []
    live = []
    for x in leaves:
        kind = type(x)
        if kind is ndarray:
            if x.dtype.kind not in "fciub" or not x.dtype.isnative:
                return f"an argument is an array of dtype {x.dtype}, which holds no numbers of this machine"
            if any(stride < 0 for stride in x.strides):
                return "an argument runs backwards through memory, as x[::-1] does: pass a copy"
            usual = x.dtype is np.dtype(x.dtype.type)  # short cases look whether it is that object
            keys.append((x.shape, x.dtype, usual, None if fact_of(x).contiguous else x.strides))
        elif kind in _NUMBERS:
            keys.append(kind)
        elif kind in _SETTINGS or callable(x):
            keys.append((kind, x))
        else:
            return f"an argument is {describe(x)}: pass arrays, numbers, texts, functions, or containers of them"
        live.append(kind is ndarray or kind in _NUMBERS)
    key = (spec, tuple(keys))
    try:
        hash(key)
    except TypeError:
        return "an argument is a function that has no hash, by which programs are kept"
    return Form(key, spec, leaves, live)


def names_of(fun: Callable[..., Any], form: Form) -> list[str]:
    """What the program calls the inputs, as far as it tells."""
    args, kwargs = tree.unflatten(form.spec, form.leaves)
    names: list[str] = []
    try:
        for p in inspect.signature(fun).parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}_{i}" for i in range(len(args) - len(names))]
            elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
    except (TypeError, ValueError):
        pass
    names = [*names, *(f"arg_{i}" for i in range(len(names), len(args)))][: len(args)]
    paths = [name + path for name, arg in zip(names, args, strict=True) for path in tree.flatten_with_path(arg)[0]]
    paths += [name + path for name in sorted(kwargs) for path in tree.flatten_with_path(kwargs[name])[0]]
    return [path for path, flag in zip(paths, form.live, strict=True) if flag]
