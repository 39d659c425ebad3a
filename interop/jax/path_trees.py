"""Trees of the paths of a function, and the programs that run one of the paths: ``jax.lax.cond`` selects a side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from funcgrad.errors import StagingError
from funcgrad.interop.jax.checks import FailedCheck
from funcgrad.interop.jax.jaxprs import evaluated
from funcgrad.interop.jax.programs import Checks, Static, with_checks


class Raising(NamedTuple):
    """Paths that all raise errors.

    Attributes:
        checks: the errors; the last one is raised if no condition of the others is true.
        closed: the computation of the conditions of the others from the leaves; None if there are no others.
    """

    checks: list[FailedCheck]
    closed: Any


class Leaf(NamedTuple):
    """Path that leads to a result.

    Attributes:
        closed: the computation of the results, and of the conditions of the checks, from the leaves.
        static_part: what the results mean.
        avals: shapes and dtypes of the results.
        checks: the checks.
    """

    closed: Any
    static_part: Any
    avals: list[Any]
    checks: list[FailedCheck]


class Fork(NamedTuple):
    """Question with two sides.

    Attributes:
        closed: the computation of the truth value, and of the conditions of the checks before, from the leaves.
        yes: the side for the answer True.
        no: the side for the answer False.
        own_checks: the checks before the question.
    """

    closed: Any
    yes: Fork | Leaf
    no: Fork | Leaf
    own_checks: list[FailedCheck]

    @property
    def checks(self) -> list[FailedCheck]:
        """All checks."""
        return [*self.own_checks, *self.yes.checks, *self.no.checks]


def program_of(jax: Any, call: str, name: str, tree: Fork | Leaf, leaves: Sequence[Any]) -> Any:
    """Return what a program returns that runs the path that is taken.

    Args:
        jax: the JAX module, while it traces.
        call: the public call that compiles the function, for messages.
        name: what to call the function.
        tree: the paths.
        leaves: values of JAX.
    """
    dtypes = _dtypes(jax, call, name, tree)
    found = _selected(jax, tree, dtypes, leaves)
    checks = Checks(tree.checks, found[-1]) if tree.checks else None
    return with_checks(jax, next(_leaves_of(tree)).static_part, found[: len(dtypes)], checks)


def _selected(jax: Any, tree: Fork | Leaf, dtypes: list[tuple[Any, bool]], leaves: Sequence[Any]) -> list[Any]:
    """Return the results of the path that is taken, and the conditions of all checks as one array."""
    jnp = jax.numpy
    found = evaluated(tree.closed, leaves)
    if isinstance(tree, Leaf):
        results = [
            x if is_weak == aval.weak_type and dtype == aval.dtype else jnp.asarray(x, dtype)
            for x, aval, (dtype, is_weak) in zip(found, tree.avals, dtypes, strict=False)
        ]
        return [*results, *found[len(dtypes) :]]

    def side(taken: Fork | Leaf) -> Callable[..., list[Any]]:
        def run(*values: Any) -> list[Any]:
            made = _selected(jax, taken, dtypes, values)
            failed = [
                made[-1] if one is taken else jnp.zeros(len(one.checks), bool)
                for one in (tree.yes, tree.no)
                if one.checks
            ]
            return [*made[: len(dtypes)], *([jnp.concatenate(failed)] if failed else [])]

        return run

    made = jax.lax.cond(found[0].reshape(()), side(tree.yes), side(tree.no), *leaves)
    failed = [*found[1:], *made[len(dtypes) :]]
    return [*made[: len(dtypes)], *([jnp.concatenate(failed)] if failed else [])]


def _dtypes(jax: Any, call: str, name: str, tree: Fork | Leaf) -> list[tuple[Any, bool]]:
    """Return the dtypes of the results, each with a flag for a weak one.

    Raises:
        StagingError: two paths return other containers or shapes.
    """
    first, *others = list(_leaves_of(tree))
    dtypes = [(aval.dtype, aval.weak_type) for aval in first.avals]
    for leaf in others:
        shapes = [[aval.shape for aval in x.avals] for x in (first, leaf)]
        if shapes[0] != shapes[1] or not _mean_the_same(first.static_part, leaf.static_part):
            raise StagingError(
                f"{call}: {name} must return the same containers and shapes on all its "
                f"paths, got {_described(first)} and {_described(leaf)}. Let each path return arrays of the same "
                "shape."
            )
        pairs = zip(dtypes, leaf.avals, strict=True)
        dtypes = [_promoted(jax.numpy, dtype, (aval.dtype, aval.weak_type)) for dtype, aval in pairs]
    return dtypes


def _leaves_of(tree: Fork | Leaf) -> Iterator[Leaf]:
    if isinstance(tree, Leaf):
        yield tree
    else:
        yield from _leaves_of(tree.yes)
        yield from _leaves_of(tree.no)


def _promoted(jnp: Any, x: tuple[Any, bool], y: tuple[Any, bool]) -> tuple[Any, bool]:
    """Return the common dtype for two, each with a flag: a weak one is promoted, like Python's numbers."""
    if x[0] == y[0]:
        return x[0], x[1] and y[1]
    if x[1] is y[1]:
        return jnp.promote_types(x[0], y[0]), x[1]
    return jnp.result_type(*[_WEAK.get(dtype.kind, dtype) if weak else dtype for dtype, weak in (x, y)]), False


_WEAK = {"i": 0, "f": 0.0, "c": 0j}


def _mean_the_same(x: Any, y: Any) -> bool:
    """Whether two static parts are equal."""
    if not isinstance(x, Static):
        return bool(x == y)
    return type(x) is type(y) and all(_mean_the_same(getattr(x, f.name), getattr(y, f.name)) for f in fields(x))


def _described(leaf: Leaf) -> str:
    return ", ".join(f"{aval.dtype}{list(aval.shape)}" for aval in leaf.avals) or "nothing"
