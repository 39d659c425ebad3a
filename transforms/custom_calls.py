"""One call of a function with own rules: trees and anything else outside, flat lists of arrays inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import Tracer, describe, repeated
from funcgrad.errors import EscapedTracerError, InputError, NotDifferentiableError, ShapeError
from funcgrad.kinds.custom import CustomRules
from funcgrad.typing import PyTree
from funcgrad.writable import argument

__all__ = ["CustomCall"]

_NUMBERS = (bool, int, float, complex)


class _Like(NamedTuple):
    """What is known of a value without holding it."""

    shape: tuple[int, ...]
    dtype: Any
    weak: bool  # a Python number, which takes any precision
    inexact: bool


class CustomCall:
    """One call: its arguments taken apart, and the rules on flat lists of array leaves.

    The rules live as long as the tape does, so they hold shapes and dtypes of the arguments, not the arrays.

    Attributes:
        out_spec: the structure of the result, known once function or rule has run.
    """

    def __init__(
        self,
        name: str,
        fun: Callable[..., Any],
        vjp: tuple[Callable[..., Any], Callable[..., Any]] | None,
        jvp: Callable[..., Any] | None,
        nondiff: tuple[int, ...],
        args: tuple[Any, ...],
    ) -> None:
        self.name, self.fun, self.vjp, self.jvp = name, fun, vjp, jvp
        self.static = {i: args[i] for i in nondiff if i < len(args)}
        if self.static and any(isinstance(leaf, Tracer) for leaf in tree.leaves(self.static)):
            raise InputError(
                f"{name}: a non-differentiable argument is being transformed, got a tracer. Take it out of "
                "nondiff_argnums and return None for its cotangent."
            )
        self.diff = tuple(i for i in range(len(args)) if i not in self.static) if self.static else range(len(args))
        flat, self.spec = tree.flatten(tuple(args[i] for i in self.diff) if self.static else args)
        self._leaves: list[Any] | None = [leaf for leaf in flat if _is_array(leaf)]
        self.likes = [_like(leaf) if _is_array(leaf) else None for leaf in flat]
        self.others = [None if like is not None else leaf for leaf, like in zip(flat, self.likes, strict=True)]
        self.out_spec: Any = None

    def leaves(self) -> list[Any]:
        """The array leaves of the differentiable arguments; handed out once and then forgotten."""
        found, self._leaves = self._leaves, None
        return found or []

    def rules(self) -> CustomRules:
        """The rules in the flat form that the primitive takes."""
        return CustomRules(
            self.name,
            self.run,
            None if self.vjp is None else self.fwd,
            None if self.vjp is None else self.bwd,
            None if self.jvp is None else self.push,
        )

    def run(self, *leaves: Any) -> list[Any]:
        """The function."""
        given = _Given(leaves)
        return self.results(given, self.called("function", self.fun, *self.whole(given.views)))

    def fwd(self, *leaves: Any) -> tuple[list[Any], Any]:
        """The forward half of the pullback."""
        given = _Given(leaves)
        pair = self.called("fwd rule", self.vjp[0], *self.whole(given.views))  # type: ignore[index]
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError(
                f"{self.name}: the fwd rule must return a pair (result, residuals), got {describe(pair)}. "
                "Return two things."
            )
        return self.results(given, pair[0]), tree.map(_read_only, pair[1])

    def bwd(self, residuals: Any, cts: list[Any]) -> list[Any]:
        """The backward half."""
        ct = tree.unflatten(self.out_spec, [_read_only(c) for c in cts])
        pulled = self.called("bwd rule", self.vjp[1], *self.static.values(), residuals, ct)  # type: ignore[index]
        if not isinstance(pulled, (tuple, list)) or len(pulled) != len(self.diff):
            raise InputError(
                f"{self.name}: the bwd rule must return a tuple with {len(self.diff)} cotangents, one for each "
                f"differentiable argument, got {describe(pulled)}. Return ({', '.join(['ct'] * len(self.diff))}"
                f"{',' if len(self.diff) == 1 else ''}), with None for zero."
            )
        like = tree.unflatten(self.spec, self.places())
        found = [
            leaf
            for position, have, want in zip(self.diff, pulled, like, strict=True)
            for leaf in self.matched("bwd", f"argument {position}", have, want, self.likes)
        ]
        return [ct for ct, like in zip(found, self.likes, strict=True) if like is not None]

    def push(self, leaves: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The tangent rule."""
        given, moving = _Given(leaves), _Given(tangents)
        args = (self.filled(given.views), self.filled(moving.views))
        pair = self.called("jvp rule", self.jvp, *self.static.values(), *args)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError(
                f"{self.name}: the jvp rule must return a pair (result, tangent), got {describe(pair)}. "
                "Return two things."
            )
        outs = self.results(given, pair[0])
        want = tree.unflatten(self.out_spec, range(len(outs)))
        likes: list[_Like | None] = [_like(out) for out in outs]
        pushed = self.matched("jvp", "the result", pair[1], want, likes)
        return outs, [moving.original(t) for t in pushed]

    def called(self, what: str, rule: Any, *args: Any) -> Any:
        """The result of the function or a rule, with what goes wrong in it told in its own words."""
        try:
            return rule(*args)
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            raise InputError(
                f"{self.name}: the {what} writes into an array that it was given, got: {error}. Copy the array "
                "first, or compute a new one."
            ) from error
        except EscapedTracerError as error:
            raise NotDifferentiableError(
                f"{self.name}: the {what} closes over, or was left as a residual, a value of a transform that has "
                f"finished, got: {error} Pass the value as an argument of the function."
            ) from error

    def filled(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The differentiable arguments with these array leaves."""
        rest = iter(leaves)
        flat = [next(rest) if like else leaf for leaf, like in zip(self.others, self.likes, strict=True)]
        args: tuple[Any, ...] = tree.unflatten(self.spec, flat)
        return args

    def whole(self, leaves: Sequence[Any]) -> list[Any]:
        """All arguments, in the function's order."""
        args = list(self.filled(leaves))
        for i, arg in self.static.items():
            args.insert(i, arg)
        return args

    def places(self) -> range:
        """A number for each leaf of the differentiable arguments."""
        return range(len(self.likes))

    def results(self, given: _Given, out: PyTree) -> list[Any]:
        """The leaves of a result, whose structure is remembered."""
        flat, self.out_spec = tree.flatten(out)
        for leaf in flat:
            if not _is_array(leaf):
                raise InputError(
                    f"{self.name}: a function with own derivative rules must return arrays or numbers, got "
                    f"{describe(leaf)}. Leave it out, or keep it as a residual."
                )
        return [given.original(leaf) for leaf in flat]

    def matched(self, rule: str, where: str, given: PyTree, places: PyTree, likes: Sequence[_Like | None]) -> list[Any]:
        """A (co)tangent that a rule gave, leaf by leaf, None for zero.

        Args:
            rule: which rule, for messages.
            where: what the (co)tangent belongs to, for messages.
            given: the tree the rule gave; None may stand for any part of it.
            places: a tree like the value it belongs to, with a number for each leaf.
            likes: by these numbers what is known of the value.
        """
        if given is None:
            return [None] * len(tree.leaves(places))
        found: list[Any] = []
        try:
            parts = tree.prefix_parts(given, places)
        except ValueError:
            parts = [(given, places)]
        for have, part in parts:
            if have is None:
                found += [None] * len(tree.leaves(part))
            elif type(part) is not int:
                raise InputError(
                    f"{self.name}: the {rule} rule gave another structure for {where}, got "
                    f"{tree.structure(given)}, expected {tree.structure(places)}. Return the same containers, or None "
                    "for zero."
                )
            else:
                found.append(self.checked(rule, where, have, likes[part]))
        return found

    def checked(self, rule: str, where: str, have: Any, like: _Like | None) -> Any:
        """A (co)tangent of one leaf, in shape and dtype what it must be."""
        if like is None or not _is_array(have):
            problem = "something for" if like is None else "no array for"
            raise InputError(
                f"{self.name}: the {rule} rule gave {problem} {'what is no array in ' if like is None else ''}{where}, "
                f"got {describe(have)}. Return {'None' if like is None else 'an array, or None for zero'}."
            )
        if isinstance(have, Tracer) and not have._trace.open and not repeated(have._trace.level):
            raise NotDifferentiableError(
                f"{self.name}: the {rule} rule gave a value of a transform that has finished for {where}, got "
                f"{describe(have)}. Pass what the rule closes over as an argument of the function."
            )
        if not like.inexact:
            return None  # an integer's is zero, whatever the rule says
        if backend.shape_of(have) != like.shape:
            raise ShapeError(
                f"{self.name}: the {rule} rule gave the wrong shape for {where}, got {list(backend.shape_of(have))}, "
                f"expected {list(like.shape)}. Sum over what was broadcast."
            )
        dtype = backend.dtype_of(have)
        if dtype == like.dtype or (like.weak and dtype.kind == like.dtype.kind):
            return have
        if type(have) in _NUMBERS and (dtype.kind != "c" or like.dtype.kind == "c"):
            return like.dtype.type(have)
        raise InputError(
            f"{self.name}: the {rule} rule gave the wrong dtype for {where}, got {dtype}, expected {like.dtype}. "
            f"Convert it with .astype({str(like.dtype)!r})."
        )


class _Given:
    """Arrays as function and rules see them: read-only, and what they hand through comes out as it went in."""

    __slots__ = ("_originals", "views")

    def __init__(self, leaves: Sequence[Any]) -> None:
        self.views = [_read_only(leaf) for leaf in leaves]
        pairs = zip(self.views, leaves, strict=True)
        self._originals = {id(view): leaf for view, leaf in pairs if view is not leaf}

    def original(self, x: Any) -> Any:
        """``x``, or the array that it is the view of."""
        return self._originals.get(id(x), x)


def _read_only(x: Any) -> Any:
    if isinstance(x, Tracer):
        return argument(x)
    if type(x) is not np.ndarray or not x.flags.writeable:
        return x
    view = x.view()
    view.flags.writeable = False
    return view


def _is_array(x: Any) -> bool:
    return isinstance(x, Tracer) or backend.is_value(x)


def _like(x: Any) -> _Like:
    shape, dtype, inexact = backend.shape_of(x), backend.dtype_of(x), backend.is_inexact(x)
    while isinstance(x, Tracer):
        x = x.value
    return _Like(shape, dtype, type(x) in _NUMBERS, inexact)
