"""Checks of an operation under ``vmap``: results must equal those of a loop."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad import jvp, vjp, vmap
from operations.cases import Case, kind_of
from operations.comparing import assert_all_close, assert_like


class Batch:
    """Two examples of a case's leaves, and the loop that ``vmap`` must agree with.

    The second example has its elements in reverse order, so that examples differ in more than size. If the operation
    refuses that, the examples differ by a factor only. Rules treat a third example as they treat the second.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.mapped = [i for i, leaf in enumerate(case.leaves) if leaf.mapped]
        reverse = not case.sample.ordered and self._takes(_reversed)
        turn = _reversed if reverse else lambda x: _scaled(x, 0.96)
        self.examples = [[x, turn(x)] for x in case.values]

    def _takes(self, change: Callable[[Any], Any]) -> bool:
        case = self.case
        changed = [change(x) if leaf.mapped else x for x, leaf in zip(case.values, case.leaves, strict=True)]
        try:
            with np.errstate(all="raise"), warnings.catch_warnings():
                warnings.simplefilter("error")
                outs = case.call(case.numpy or case.fun, changed)
        except Exception:
            return False
        return all(np.isfinite(out).all() for out in outs)

    def axes(self) -> Iterator[tuple[int | None, ...]]:
        """Yield every combination of axes, 0 or None for each leaf.

        With more than three mapped leaves: one mapped, or all but at most one, since rules look at one leaf or at all.
        """
        choices = [(0, None) if leaf.mapped else (None,) for leaf in self.case.leaves]
        many = len(self.mapped) > 3
        for axes in itertools.product(*choices):
            count = len(axes) - axes.count(None)
            if count and (not many or count == 1 or count >= len(self.mapped) - 1):
                yield axes

    def arrays(self, axes: Sequence[int | None]) -> list[Any]:
        """Return the leaves, with the examples along ``axes``."""
        return [self.case.values[i] if a is None else np.stack(self.examples[i], a) for i, a in enumerate(axes)]

    def each(self, axes: Sequence[int | None]) -> list[list[Any]]:
        """Return the leaves of each example; those of the first example are always the case's."""
        return [
            [self.case.values[i] if a is None else self.examples[i][k] for i, a in enumerate(axes)] for k in range(2)
        ]


def _reversed(x: Any) -> Any:
    return x[(slice(None, None, -1),) * x.ndim] if isinstance(x, np.ndarray) else _scaled(x, 0.9)


def _scaled(x: Any, factor: float) -> Any:
    return x * np.asarray(x).dtype.type(factor) if kind_of(x) in "fc" else x


def stack(results: list[Sequence[Any]], axis: int = 0) -> list[Any]:
    return [np.stack(parts, axis) for parts in zip(*results, strict=True)]


def check_vmap(case: Case) -> None:
    """Check that ``vmap`` equals a loop, for all mapped leaves and axes."""
    batch = Batch(case)

    def fun(*values: Any) -> Any:
        return case.call(case.fun, values)

    own = fun(*case.values)
    for axes in batch.axes():
        want = stack([own, *[fun(*example) for example in batch.each(axes)[1:]]])
        got = vmap(fun, in_axes=axes)(*batch.arrays(axes))
        assert_like(got, want, f"vmap with in_axes={axes}")
        assert_all_close(got, want, 1e-12, f"vmap with in_axes={axes}")
    if batch.mapped:
        _check_no_examples(case, batch, fun)
        last = [-1 if leaf.mapped else None for leaf in case.leaves]
        want = stack([fun(*example) for example in batch.each(last)], axis=-1)
        got = vmap(fun, in_axes=tuple(last), out_axes=-1)(*batch.arrays(last))
        assert_all_close(got, want, 1e-12, "vmap along the last axis")
    if len(batch.mapped) > 1:
        _check_nested(case, batch, fun)


def _check_no_examples(case: Case, batch: Batch, fun: Callable[..., Any]) -> None:
    """Check that an empty batch has the right shape."""
    axes = tuple(0 if leaf.mapped else None for leaf in case.leaves)
    whole = batch.arrays(axes)
    got = vmap(fun, in_axes=axes)(*[x if a is None else x[:0] for x, a in zip(whole, axes, strict=True)])
    likes = [np.empty((0, *np.shape(out)), np.asarray(out).dtype) for out in fun(*case.values)]
    assert_like(got, likes, "vmap over nothing")


def _check_nested(case: Case, batch: Batch, fun: Callable[..., Any]) -> None:
    """Check an outer ``vmap`` over the first leaf and an inner one over the others."""
    first = batch.mapped[0]
    inner = tuple(0 if i in batch.mapped and i != first else None for i in range(len(case.leaves)))
    outer = tuple(0 if i == first else None for i in range(len(case.leaves)))
    both = tuple(0 if i in batch.mapped else None for i in range(len(case.leaves)))
    want = stack([stack([fun(*x[: first + 1], *y[first + 1 :]) for y in batch.each(inner)]) for x in batch.each(outer)])
    got = vmap(vmap(fun, in_axes=inner), in_axes=outer)(*batch.arrays(both))
    assert_all_close(got, want, 1e-12, "vmap of vmap")


def check_vmap_of_derivatives(case: Case) -> None:
    """Check ``vmap`` of the pullback and of the pushforward, and the pullback of ``vmap``, against loops."""
    batch = Batch(case)
    cts = [case.random(case.outs, f"cotangents {k}") for k in range(2)]
    tangents = [case.random(case.primals, f"tangents {k}") for k in range(2)]

    def pullback(*values: Any) -> Any:
        return vjp(case.of_live(case.fun, values), *[values[i] for i in case.live])[1]

    def pull(ct: Any, *values: Any) -> Any:
        return pullback(*values)(ct)

    def push(t: Any, *values: Any) -> Any:
        return jvp(case.of_live(case.fun, values), tuple(values[i] for i in case.live), t)[1]

    def pushforward(*values: Any) -> Any:
        return lambda t: push(t, *values)

    nothing = (None,) * len(case.leaves)
    pulled: dict[Any, list[Any]] = {}
    all_axes = list(batch.axes())
    for derivative, of, directions, name in (
        (pull, pullback, cts, "pullback"),
        (push, pushforward, tangents, "pushforward"),
    ):
        mapped = tuple(stack(directions))
        first = of(*case.values)
        own = first(directions[0])
        for axes in (*all_axes, nothing):
            # several directions at one point share the forward run
            others = [first if axes is nothing else of(*x) for x in batch.each(axes)[1:]]
            found = [own, *[along(d) for along, d in zip(others, directions[1:], strict=True)]]
            if derivative is pull:
                pulled[axes] = found
            want = stack(found)
            got = vmap(derivative, in_axes=(0, *axes))(mapped, *batch.arrays(axes))
            assert_like(got, want, f"vmap of the {name} with in_axes={axes}")
            assert_all_close(got, want, 1e-12, f"vmap of the {name} with in_axes={axes}")
            if axes in all_axes[:1]:
                want = stack([own, *[along(directions[0]) for along in others]])
                got = vmap(derivative, in_axes=(None, *axes))(directions[0], *batch.arrays(axes))
                assert_all_close(got, want, 1e-12, f"vmap of the {name}, direction not mapped")
    for axes in all_axes:
        _check_pullback_of_vmap(case, batch, axes, cts, pulled[axes])
    # batching depends on the operation there, hardly on its sample
    if case.row.op.order >= 2 and case.among_first:
        _check_second_order(case, batch, pull)


def _check_second_order(case: Case, batch: Batch, pull: Callable[..., Any]) -> None:
    """Check ``vmap`` of the pullback's derivatives, in both modes, with everything mapped."""
    axes = tuple(0 if leaf.mapped else None for leaf in case.leaves)

    def pulled(values: Sequence[Any]) -> Callable[..., Any]:
        def of_primals(*primals: Any) -> Any:
            full = list(values)
            for i, primal in zip(case.live, primals, strict=True):
                full[i] = primal
            return pull(case.cotangents, *full)

        return of_primals

    def forward(*values: Any) -> Any:
        return jvp(pulled(values), tuple(values[i] for i in case.live), case.tangents)[1]

    def reverse(*values: Any) -> Any:
        return vjp(pulled(values), *[values[i] for i in case.live])[1](case.tangents)

    batches = batch.arrays(axes)
    want = stack([forward(*x) for x in batch.each(axes)])
    got = vmap(forward, in_axes=axes)(*batches)
    assert_like(got, want, "vmap of forward over the pullback")
    assert_all_close(got, want, 1e-12, "vmap of forward over the pullback")
    got = vmap(reverse, in_axes=axes)(*batches)
    assert_like(got, want, "vmap of reverse over the pullback")
    try:
        assert_all_close(got, want, 1e-12, "vmap of reverse over the pullback")
    except AssertionError:  # the Hessian is symmetric up to rounding, and for real numbers only
        want = stack([reverse(*x) for x in batch.each(axes)])
        assert_all_close(got, want, 1e-12, "vmap of reverse over the pullback")


def _check_pullback_of_vmap(
    case: Case, batch: Batch, axes: tuple[int | None, ...], cts: list[Any], parts: list[Any]
) -> None:
    """Check that the pullback of ``vmap`` gives ``parts``, the cotangents of the examples."""
    want = [
        np.sum(part, 0) if axes[i] is None else np.stack(part)
        for i, part in zip(case.live, zip(*parts, strict=True), strict=True)
    ]
    values = batch.arrays(axes)

    def mapped(*primals: Any) -> Any:
        full = list(values)
        for i, primal in zip(case.live, primals, strict=True):
            full[i] = primal
        outs = vmap(lambda *x: case.call(case.fun, x), in_axes=axes)(*full)
        return tuple(out for out in outs if kind_of(out) in "fc")

    got = vjp(mapped, *[values[i] for i in case.live])[1](tuple(stack(cts)))
    assert_like(got, want, f"pullback of vmap with in_axes={axes}")
    assert_all_close(got, want, 1e-12, f"pullback of vmap with in_axes={axes}")
