"""Arguments of a function by name, and static arguments, which Python needs as plain values."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterable
from typing import Any

from funcgrad import tree
from funcgrad.core import describe
from funcgrad.errors import InputError, short_repr
from funcgrad.transforms.transformed import name_of


def signature_of(fun: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of ``fun``; None if it has none, like some functions written in C."""
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


def parameters_of(signature: inspect.Signature | None) -> tuple[list[inspect.Parameter], list[str]]:
    """Return the parameters of a signature, and the names of those that take an argument by position."""
    parameters = [] if signature is None else list(signature.parameters.values())
    return parameters, [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def argument_names(fun: Callable[..., Any], count: int) -> list[str]:
    """Return names for the first ``count`` positional arguments of ``fun``: ``x``, or ``args[0]`` if unknown."""
    parameters, names = parameters_of(signature_of(fun))
    names = names[:count]
    rest = [f"{p.name}[{i}]" for p in parameters if p.kind is p.VAR_POSITIONAL for i in range(count - len(names))]
    return [*names, *(rest or [f"args[{i}]" for i in range(len(names), count)])]


def leaf_names(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Return a name for each leaf of the arguments of ``fun``, such as ``params['w'][0]``; keywords are sorted."""
    keywords = sorted(kwargs)
    pairs = zip([*argument_names(fun, len(args)), *keywords], [*args, *map(kwargs.get, keywords)], strict=True)
    return [name + path for name, arg in pairs for path in tree.flatten_with_path(arg)[0]]


class StaticArguments:
    """Static arguments of a function, by position and by name, and donated arguments, by position.

    Args:
        fun: the function that takes the arguments.
        static_argnums: see ``jit``.
        static_argnames: see ``jit``.
        donate_argnums: see ``jit``.
    """

    def __init__(
        self, fun: Callable[..., Any], static_argnums: Any, static_argnames: Any, donate_argnums: Any = ()
    ) -> None:
        self.fun = name_of(fun)
        parameters, self.names = parameters_of(signature_of(fun))
        by_name = {p.name for p in parameters if p.kind is not p.POSITIONAL_ONLY}
        numbers = self._numbers("static_argnums", static_argnums)
        names = set([static_argnames] if isinstance(static_argnames, str) else static_argnames)
        self.static = numbers | {self.names.index(n) for n in names if n in self.names}
        self.static_names = names | {self.names[i] for i in numbers if i < len(self.names)} & by_name
        self.donated = self._numbers("donate_argnums", donate_argnums)
        if parameters:
            self._check({p.name: p.kind for p in parameters}, numbers | self.donated, names)
        if names and not self.static:
            self.static = {-1}  # keyword-only: an argument is static, but at no position

    def _numbers(self, what: str, given: Any) -> set[int]:
        try:
            found = [operator.index(i) for i in (given if isinstance(given, Iterable) else (given,))]
        except TypeError:
            remedy = "Name positions." if isinstance(given, (str, tuple, list)) else "Write jit(f)(x), not jit(f, x)."
            raise InputError(f"jit: {what} must be an int or ints, got {short_repr(given)}. {remedy}") from None
        count = len(self.names)
        return {i + count if i < 0 else i for i in found}

    def _check(self, kinds: dict[str, Any], numbers: set[int], names: set[str]) -> None:
        """Check that the function has every position and name. A typo would leave the intended argument traced.

        Raises:
            InputError: a ``TypeError``.
        """
        strange = [] if inspect.Parameter.VAR_KEYWORD in kinds.values() else sorted(names - set(kinds))
        end = float("inf") if inspect.Parameter.VAR_POSITIONAL in kinds.values() else len(self.names)
        beyond = [i for i in sorted(numbers) if not 0 <= i < end]
        if strange or beyond:
            what = "static_argnames" if strange else "static_argnums or donate_argnums"
            raise InputError(
                f"jit: {self.fun} has no such argument, got {(strange or beyond)[0]!r} in {what}. It has "
                f"{', '.join(kinds)}."
            )

    def split(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """Return the static arguments, in a form that can be compared, and the remaining arguments."""
        if not self.static:
            return (), args, kwargs
        by_place = tuple([(i, self._static_value(args[i])) for i in sorted(self.static) if 0 <= i < len(args)])
        by_name = tuple([(n, self._static_value(kwargs[n])) for n in sorted(self.static_names) if n in kwargs])
        rest = tuple([a for i, a in enumerate(args) if i not in self.static])
        return (by_place, by_name), rest, {n: v for n, v in kwargs.items() if n not in self.static_names}

    def bind(self, function: Callable[..., Any], static: Any) -> Callable[..., Any]:
        """Return ``function`` with these static arguments bound, as a function of the remaining arguments."""
        if not static:
            return function
        by_place, by_name = static

        def fun(*args: Any, **kwargs: Any) -> Any:
            whole = list(args)
            for place, given in by_place:
                whole.insert(place, given.value)
            return function(*whole, **kwargs, **{name: given.value for name, given in by_name})

        return fun

    def _static_value(self, value: Any) -> _StaticValue:
        try:
            return _StaticValue(value)
        except TypeError:
            raise InputError(
                f"jit: a static argument of {self.fun} must be hashable, got {describe(value)}. Pass a tuple for a "
                "list, or an array as an argument that is not static."
            ) from None

    def flags_per_leaf(self, args: tuple[Any, ...], positions: set[int]) -> list[bool]:
        """Return, for each leaf of the positional non-static arguments, whether its argument is in ``positions``."""
        if not positions:
            return []
        kept = [i for i in range(len(args) + len(self.static)) if i not in self.static][: len(args)]
        return [i in positions for i, arg in zip(kept, args, strict=True) for _ in tree.leaves(arg)]


class _StaticValue:
    """Static argument. It equals another one if a function cannot tell them apart: 1, 1.0 and True are three values."""

    __slots__ = ("_key", "value")

    def __init__(self, value: Any) -> None:
        hash(value)
        self.value, self._key = value, _typed_key(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is _StaticValue and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _typed_key(value: Any) -> Any:
    """Return a key of a hashable value that also tells the types of its numbers, and 0.0 from -0.0."""
    kind = type(value)
    if isinstance(value, float):
        return kind, value.hex()
    if isinstance(value, complex):
        return kind, value.real.hex(), value.imag.hex()
    if isinstance(value, tuple):
        return kind, tuple(map(_typed_key, value))
    if isinstance(value, frozenset):
        return kind, frozenset(map(_typed_key, value))
    return kind, value
