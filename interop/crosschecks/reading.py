"""Arguments written on a command line: Python literals, shapes of random numbers, files of NumPy."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from funcgrad.errors import InputError

__all__ = ["read_arguments"]

_DTYPES = {
    **{f"f{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    **{f"c{bits}": np.dtype(f"complex{bits}") for bits in (64, 128)},
    **{
        f"{code}{bits}": np.dtype(f"{name}{bits}")
        for code, name in (("i", "int"), ("u", "uint"))
        for bits in (8, 16, 32, 64)
    },
    "bool": np.dtype(bool),
}
_NAMES = {"inf": float("inf"), "nan": float("nan")}
_HELP = (
    "Write a Python literal (3.0, {'a': [1, 2]}), array([1.0, 2.0]), random numbers (f64[3,4], f64[3](0, 1), "
    "i64[5](0, 10), f32), these in containers, or the name of an .npy file; name=value for a keyword argument"
)


def read_arguments(texts: Sequence[str], seed: int = 0) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments.

    Random numbers are normal, or uniform between two bounds; those of integers are below 10 by default.

    Args:
        texts: one text for each argument.
        seed: of the random numbers.

    Raises:
        InputError: a text that says none of this (a ``TypeError``).

    Example:
        >>> read_arguments(["[1, 2.5]", "n=3"])
        ([[1, 2.5]], {'n': 3})
        >>> read_arguments(["{'w': f64[2,3](0, 1), 'b': f32}"])[0][0]["w"].shape
        (2, 3)
    """
    reader = _Reader(np.random.default_rng(seed))
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in texts:
        keyword = re.match(r"\s*([A-Za-z_]\w*)=(?!=)(.*)", text, re.DOTALL)
        if keyword:
            kwargs[keyword[1]] = reader.read(keyword[2])
        else:
            args.append(reader.read(text))
    return args, kwargs


class _Reader:
    """Reads one argument after the other, with one source of random numbers."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def read(self, text: str) -> Any:
        """The value that ``text`` stands for."""
        if text.strip().endswith(".npy"):
            return self.load(text.strip())
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            raise self.refused(text) from error
        return self.value(tree, text)

    def load(self, path: str) -> Any:
        """The array in a file."""
        try:
            return np.load(Path(path).expanduser(), allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(f"--args: the file cannot be read, got {path!r}: {error}. Give an .npy file.") from error

    def value(self, node: ast.AST, text: str) -> Any:
        """What a part of the syntax tree stands for."""
        match node:
            case ast.Tuple(elts=parts):
                return tuple([self.value(part, text) for part in parts])
            case ast.List(elts=parts):
                return [self.value(part, text) for part in parts]
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return {self.value(k, text): self.value(v, text) for k, v in zip(keys, values, strict=True) if k}
            case ast.Name(id=name) if name in _NAMES:
                return _NAMES[name]
            case ast.Name(id=name) if name in _DTYPES:
                return self.random(_DTYPES[name], (), None)
            case ast.Subscript(value=ast.Name(id=name), slice=inside) if name in _DTYPES:
                return self.random(_DTYPES[name], self.shape(inside, text), None)
            case ast.Call(func=ast.Name(id="array"), args=[inner], keywords=[]):
                return np.array(self.value(inner, text))
            case ast.Call(func=ast.Name() | ast.Subscript() as made, args=[low, high], keywords=[]):
                name, shape = (made.id, ()) if isinstance(made, ast.Name) else self.subscript(made, text)
                if name in _DTYPES:
                    return self.random(_DTYPES[name], shape, (self.value(low, text), self.value(high, text)))
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError) as error:
            raise self.refused(text) from error

    def subscript(self, node: ast.Subscript, text: str) -> tuple[str, tuple[int, ...]]:
        """The name and the shape of ``name[shape]``."""
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        return name, self.shape(node.slice, text)

    def shape(self, node: ast.AST, text: str) -> tuple[int, ...]:
        """A shape between brackets."""
        found = self.value(node, text)
        shape = found if type(found) is tuple else (found,)
        if not all(type(n) is int and n >= 0 for n in shape):
            raise self.refused(text)
        return shape

    def random(self, dtype: Any, shape: tuple[int, ...], bounds: tuple[Any, Any] | None) -> Any:
        """Random numbers."""
        low, high = bounds or (0, 2 if dtype.kind == "b" else 10)
        if dtype.kind in "iub":
            return self.rng.integers(low, high, shape).astype(dtype)[()]
        parts = [
            self.rng.standard_normal(shape) if bounds is None else self.rng.uniform(low, high, shape)
            for _ in range(2 if dtype.kind == "c" else 1)
        ]
        found = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
        return np.asarray(found).astype(dtype)[()]

    def refused(self, text: str) -> InputError:
        """The error for a text that says nothing."""
        return InputError(f"--args: this is no argument, got {text!r}. {_HELP}.")
