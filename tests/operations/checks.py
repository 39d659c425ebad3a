"""What is demanded of an operation.

Each demand is a function ``check_...(case)`` that raises ``AssertionError``. ``tests/test_operations.py``
makes every case of the table meet every demand; ``tests/test_checker.py`` shows that they notice wrong rules.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from funcgrad import jvp, linearize, vjp, vmap
from operations import numeric
from operations.cases import Case, kind_of
from operations.jax_reference import reference

FLOAT0 = np.dtype([("float0", "V")])


# ---- comparison --------------------------------------------------------------------------------------------


def assert_close(got: Any, want: Any, tolerance: float, what: str) -> None:
    """``got`` equals ``want`` to ``tolerance``, relative to the largest number in ``want``."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    if got.dtype == FLOAT0 or want.dtype == FLOAT0:
        assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, expected {want.dtype}"
        return
    unlike = np.isnan(got) != np.isnan(want)
    assert not unlike.any(), f"{what}: not a number in different places\ngot  {got}\nwant {want}"
    number = ~np.isnan(want) & (got != want)  # equal infinities are equal
    error = np.abs(np.where(number, got, 0).astype(complex) - np.where(number, want, 0))
    finite = np.abs(want[np.isfinite(want)])
    scale = max(0.01, finite.max(initial=0.0))
    worst = error.max(initial=0.0)
    assert worst <= tolerance * scale, (
        f"{what}: off by {worst:.2e}, allowed {tolerance * scale:.2e}\ngot  {got}\nwant {want}"
    )


def assert_all_close(got: Sequence[Any], want: Sequence[Any], tolerance: float, what: str) -> None:
    """``assert_close`` for each pair."""
    assert len(got) == len(want), f"{what}: {len(got)} results, expected {len(want)}"
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        assert_close(g, w, tolerance, f"{what} {i}" if len(want) > 1 else what)


def inner(a: Sequence[Any], b: Sequence[Any]) -> tuple[float, float]:
    """The real part of the bilinear product of two lists of arrays, and the size of its terms."""
    products = [np.asarray(p) * q for p, q in zip(a, b, strict=True)]
    return (
        float(sum(p.real.sum(dtype=np.float64) for p in products)),
        float(sum(np.abs(p).sum(dtype=np.float64) for p in products)),
    )


def assert_transposed(cts: Any, pushed: Any, pulled: Any, tangents: Any, what: str, tolerance: float) -> None:
    """``<ct, J t> == <J^T ct, t>``: the two modes have the same derivative."""
    left, left_size = inner(cts, pushed)
    right, right_size = inner(pulled, tangents)
    allowed = tolerance * max(0.01, left_size, right_size)
    assert abs(left - right) <= allowed, (
        f"{what}: <ct, J t> = {left!r}, <J^T ct, t> = {right!r}, off by {abs(left - right):.2e}, allowed {allowed:.2e}"
    )


def assert_like(got: Sequence[Any], likes: Sequence[Any], what: str) -> None:
    """Each array has the shape and dtype of what it belongs to."""
    assert len(got) == len(likes), f"{what}: {len(got)} results, expected {len(likes)}"
    for i, (g, like) in enumerate(zip(got, likes, strict=True)):
        like = np.asarray(like)
        assert isinstance(g, (np.ndarray, np.generic)), f"{what} {i}: {type(g).__name__} is no array"
        assert g.shape == like.shape, f"{what} {i}: shape {g.shape}, expected {like.shape}"
        assert g.dtype == like.dtype, f"{what} {i}: dtype {g.dtype}, expected {like.dtype}"


# ---- values ------------------------------------------------------------------------------------------------


def check_value(case: Case) -> None:
    """Plain NumPy in gives what NumPy gives: values, shapes, dtypes, and scalars where NumPy has scalars."""
    got = case.call(case.fun, case.values)
    if case.numpy is not None:
        want = case.call(case.numpy, case.values)
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            assert type(g) is type(w), f"type {type(g).__name__}, NumPy's is {type(w).__name__}"
            assert kind_of(g) == kind_of(w)
            assert np.asarray(g).dtype == np.asarray(w).dtype, f"dtype {g.dtype}, NumPy's is {w.dtype}"
        assert_all_close(got, want, 1e-14, "value")
    if case.row.op.jax is not None:
        assert_all_close(got, reference(case, "value"), case.within(1e-12), "value against JAX")
    if case.inexact and case.row.op.portable:
        assert_all_close(reference(case, "own value"), got, case.within(1e-12), "value on JAX arrays")


# ---- first order -------------------------------------------------------------------------------------------


def subsets(case: Case) -> Iterator[tuple[int, ...]]:
    """Which live leaves to differentiate: all of them, and each alone."""
    n = len(case.live)
    yield tuple(range(n))
    if n > 1:
        yield from ((i,) for i in range(n))


def restricted(fun: Callable[..., Any], primals: Sequence[Any], chosen: tuple[int, ...]) -> Callable[..., Any]:
    """``fun`` as a function of the chosen primals, the others being constants."""

    def some(*values: Any) -> Any:
        full = list(primals)
        for i, value in zip(chosen, values, strict=True):
            full[i] = value
        return fun(*full)

    return some


def check_jvp(case: Case) -> None:
    """Forward mode agrees with differences of NumPy's values."""
    for chosen in subsets(case):
        fun = restricted(case.smooth, case.primals, chosen)
        plain = restricted(case.referee, case.primals, chosen)
        primals = tuple(case.primals[i] for i in chosen)
        tangents = tuple(case.tangents[i] for i in chosen)
        value, pushed = jvp(fun, primals, tangents)
        assert_all_close(value, case.outs, 1e-14, "value of jvp")
        assert_like(pushed, case.outs, "tangent")
        found = numeric.derivative(plain, primals, tangents)
        for i, (got, (want, allowed)) in enumerate(zip(pushed, found, strict=True)):
            numeric.assert_within(got, want, allowed, f"tangent {i} of arguments {chosen}", case.eps)


def check_vjp(case: Case) -> None:
    """Reverse mode is the transpose of forward mode, and a cotangent has its primal's shape and dtype."""
    for chosen in subsets(case):
        fun = restricted(case.smooth, case.primals, chosen)
        primals = tuple(case.primals[i] for i in chosen)
        tangents = tuple(case.tangents[i] for i in chosen)
        value, pullback = vjp(fun, *primals)
        assert_all_close(value, case.outs, 1e-14, "value of vjp")
        pushed = jvp(fun, primals, tangents)[1]
        for cts in directions(case):
            pulled = pullback(cts)
            assert_like(pulled, primals, "cotangent")
            assert_transposed(cts, pushed, pulled, tangents, f"arguments {chosen}", case.within(1e-12))
        assert_all_close(pullback(cts), pulled, 0.0, "second call of the pullback")


def directions(case: Case) -> list[tuple[Any, ...]]:
    """Cotangents; times 1j too where a result is complex, which the real part of a product cannot see else."""
    if all(kind_of(out) == "f" for out in case.outs):
        return [case.cotangents]
    turned = tuple(ct * 1j if kind_of(ct) == "c" else ct for ct in case.cotangents)
    return [case.cotangents, turned]


def check_linearize(case: Case) -> None:
    """``linearize`` gives the map that ``jvp`` applies."""
    value, push = linearize(case.smooth, *case.primals)
    assert_all_close(value, case.outs, 1e-14, "value of linearize")
    for tangents in (case.tangents, case.others):
        want = jvp(case.smooth, tuple(case.primals), tangents)[1]
        got = push(*tangents)
        assert_like(got, case.outs, "tangent")
        assert_all_close(got, want, 1e-14, "linearize against jvp")


def check_jax(case: Case) -> None:
    """Both modes agree with JAX."""
    pulled = vjp(case.smooth, *case.primals)[1](case.cotangents)
    pushed = jvp(case.smooth, tuple(case.primals), case.tangents)[1]
    assert_all_close(pulled, reference(case, "vjp"), case.within(1e-10), "vjp against JAX")
    assert_all_close(pushed, reference(case, "jvp"), case.within(1e-10), "jvp against JAX")


def check_on_jax_arrays(case: Case) -> None:
    """funcgrad on JAX arrays, inside ``jax.jit``, gives what it gives on NumPy arrays."""
    pulled = vjp(case.smooth, *case.primals)[1](case.cotangents)
    pushed = jvp(case.smooth, tuple(case.primals), case.tangents)[1]
    assert_all_close(reference(case, "own vjp"), pulled, case.within(1e-10), "vjp on JAX arrays")
    assert_all_close(reference(case, "own jvp"), pushed, case.within(1e-10), "jvp on JAX arrays")


# ---- second order ------------------------------------------------------------------------------------------


def check_second_order(case: Case) -> None:
    """Derivatives of the pullback and of the pushforward: the two demands again, and JAX."""
    primals, ct, t, s = tuple(case.primals), case.cotangents, case.tangents, case.others

    def pulled(*x: Any) -> Any:
        return vjp(case.smooth, *x)[1](ct)

    def pushed(*x: Any) -> Any:
        return jvp(case.smooth, x, t)[1]

    for name, fun, cts in (("pullback", pulled, t), ("pushforward", pushed, ct)):
        forward = jvp(fun, primals, s)[1]
        backward = vjp(fun, *primals)[1](cts)
        assert_like(forward, cts, f"tangent of the {name}")
        assert_like(backward, primals, f"cotangent of the {name}")
        assert_transposed(cts, forward, backward, s, f"derivative of the {name}", case.within(1e-12))
        for got, (want, allowed) in zip(forward, numeric.differences(fun, primals, s), strict=True):
            numeric.assert_within(got, want, allowed, f"derivative of the {name}", case.eps)
        if case.row.op.jax is not None:
            assert_all_close(
                forward, reference(case, f"forward over {name}"), case.within(1e-10), f"forward over {name}"
            )
            assert_all_close(
                backward, reference(case, f"reverse over {name}"), case.within(1e-10), f"reverse over {name}"
            )


# ---- dtypes ------------------------------------------------------------------------------------------------


def narrowed(value: Any, bits: int) -> Any:
    """A floating value in fewer bits, read-only."""
    value = np.asarray(value)
    to = f"complex{max(64, 2 * bits)}" if value.dtype.kind == "c" else f"float{bits}"
    cast = value.astype(to)
    cast.flags.writeable = False
    return cast if cast.ndim else cast[()]


def check_dtypes(case: Case) -> None:
    """float32, float16 and mixed arguments: results as NumPy has them, every derivative in its own dtype."""
    singles = [narrowed(x, 32) for x in case.primals]
    _check_narrow(case, singles, 1e-5 if case.compares_singles else None)
    halves = [narrowed(x, 16) for x in case.primals]
    if _numpy_takes(case, halves):
        _check_narrow(case, halves, None)
    if len(singles) > 1:
        for start in (0, 1):
            mixed = [x if (i + start) % 2 else y for i, (x, y) in enumerate(zip(case.primals, singles, strict=True))]
            _check_narrow(case, mixed, None)


def _numpy_takes(case: Case, primals: Sequence[Any]) -> bool:
    """NumPy's linear algebra refuses float16, and some samples overflow there."""
    try:
        with np.errstate(all="ignore"):
            outs = case.referee(*primals)
    except TypeError:
        return False
    return all(np.isfinite(out).all() for out in outs)


def _check_narrow(case: Case, primals: list[Any], tolerance: float | None) -> None:
    outs, pullback = vjp(case.smooth, *primals)
    if case.numpy is not None:
        assert_like([np.asarray(o)[()] for o in outs], case.referee(*primals), "result")
    cts = tuple(np.asarray(ct).astype(np.asarray(out).dtype)[()] for ct, out in zip(case.cotangents, outs, strict=True))
    tangents = tuple(np.asarray(t).astype(np.asarray(x).dtype)[()] for t, x in zip(case.tangents, primals, strict=True))
    pulled = pullback(cts)
    assert_like(pulled, primals, "cotangent")
    pushed = jvp(case.smooth, tuple(primals), tangents)[1]
    assert_like(pushed, outs, "tangent")
    if tolerance is not None:
        assert_all_close(pulled, reference(case, "vjp32"), tolerance, "vjp in float32 against JAX")
        assert_all_close(pushed, reference(case, "jvp32"), tolerance, "jvp in float32 against JAX")


# ---- vmap --------------------------------------------------------------------------------------------------


class Batch:
    """Three examples of a case's leaves, and the loop that ``vmap`` must agree with.

    The second example has its elements in reverse order, so that examples differ in more than size, unless
    the operation does not take that: then all three differ by a factor only.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.mapped = [i for i, leaf in enumerate(case.leaves) if leaf.mapped]
        reverse = not case.sample.ordered and self._takes(_reversed)
        turn = _reversed if reverse else lambda x: _scaled(x, 0.96)
        self.examples = [[x, turn(x), _scaled(x, 0.98)] for x in case.values]

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
        """An axis for each leaf, in every combination: 0 or None."""
        choices = [(0, None) if leaf.mapped else (None,) for leaf in self.case.leaves]
        for axes in itertools.product(*choices):
            if any(a is not None for a in axes):
                yield axes

    def stacked(self, axes: Sequence[int | None]) -> list[Any]:
        """The leaves, with the examples along ``axes``."""
        return [self.case.values[i] if a is None else np.stack(self.examples[i], a) for i, a in enumerate(axes)]

    def each(self, axes: Sequence[int | None]) -> list[list[Any]]:
        """The leaves of each example."""
        return [
            [self.case.values[i] if a is None else self.examples[i][k] for i, a in enumerate(axes)] for k in range(3)
        ]


def _reversed(x: Any) -> Any:
    return x[(slice(None, None, -1),) * x.ndim] if isinstance(x, np.ndarray) else _scaled(x, 0.9)


def _scaled(x: Any, factor: float) -> Any:
    return x * np.asarray(x).dtype.type(factor) if kind_of(x) in "fc" else x


def _stack(results: list[Sequence[Any]], axis: int = 0) -> list[Any]:
    return [np.stack(parts, axis) for parts in zip(*results, strict=True)]


def check_vmap(case: Case) -> None:
    """``vmap`` gives what a loop gives, whatever is mapped and along whatever axis."""
    batch = Batch(case)

    def fun(*values: Any) -> Any:
        return case.call(case.fun, values)

    for axes in batch.axes():
        want = _stack([fun(*example) for example in batch.each(axes)])
        got = vmap(fun, in_axes=axes)(*batch.stacked(axes))
        assert_like(got, want, f"vmap with in_axes={axes}")
        assert_all_close(got, want, 1e-12, f"vmap with in_axes={axes}")
    if batch.mapped:
        _check_no_examples(case, batch, fun)
        last = [-1 if leaf.mapped else None for leaf in case.leaves]
        want = _stack([fun(*example) for example in batch.each(last)], axis=-1)
        got = vmap(fun, in_axes=tuple(last), out_axes=-1)(*batch.stacked(last))
        assert_all_close(got, want, 1e-12, "vmap along the last axis")
    if len(batch.mapped) > 1:
        _check_nested(case, batch, fun)


def _check_no_examples(case: Case, batch: Batch, fun: Callable[..., Any]) -> None:
    """A batch of nothing has the right shape."""
    axes = tuple(0 if leaf.mapped else None for leaf in case.leaves)
    whole = batch.stacked(axes)
    got = vmap(fun, in_axes=axes)(*[x if a is None else x[:0] for x, a in zip(whole, axes, strict=True)])
    outs = fun(*case.values)
    assert_like(got, [np.empty((0, *np.shape(out)), np.asarray(out).dtype) for out in outs], "vmap over nothing")


def _check_nested(case: Case, batch: Batch, fun: Callable[..., Any]) -> None:
    """An outer ``vmap`` over the first leaf and an inner one over the others."""
    first = batch.mapped[0]
    inner = tuple(0 if i in batch.mapped and i != first else None for i in range(len(case.leaves)))
    outer = tuple(0 if i == first else None for i in range(len(case.leaves)))
    both = tuple(0 if i in batch.mapped else None for i in range(len(case.leaves)))
    want = _stack(
        [_stack([fun(*x[: first + 1], *y[first + 1 :]) for y in batch.each(inner)]) for x in batch.each(outer)]
    )
    got = vmap(vmap(fun, in_axes=inner), in_axes=outer)(*batch.stacked(both))
    assert_all_close(got, want, 1e-12, "vmap of vmap")


def check_vmap_of_derivatives(case: Case) -> None:
    """``vmap`` of the pullback and of the pushforward, and the pullback of ``vmap``, agree with loops."""
    batch = Batch(case)
    cts = [case.random(case.outs, f"cotangents {k}") for k in range(3)]
    tangents = [case.random(case.primals, f"tangents {k}") for k in range(3)]

    def pull(ct: Any, *values: Any) -> Any:
        return vjp(case.of_live(case.fun, values), *[values[i] for i in case.live])[1](ct)

    def push(t: Any, *values: Any) -> Any:
        return jvp(case.of_live(case.fun, values), tuple(values[i] for i in case.live), t)[1]

    nothing = (None,) * len(case.leaves)
    all_axes = list(batch.axes())
    for derivative, directions, name in ((pull, cts, "pullback"), (push, tangents, "pushforward")):
        stacked = tuple(_stack(directions))
        for axes in (*all_axes, nothing):
            want = _stack([derivative(d, *x) for d, x in zip(directions, batch.each(axes), strict=True)])
            got = vmap(derivative, in_axes=(0, *axes))(stacked, *batch.stacked(axes))
            assert_like(got, want, f"vmap of the {name} with in_axes={axes}")
            assert_all_close(got, want, 1e-12, f"vmap of the {name} with in_axes={axes}")
        for axes in all_axes[:1]:
            want = _stack([derivative(directions[0], *x) for x in batch.each(axes)])
            got = vmap(derivative, in_axes=(None, *axes))(directions[0], *batch.stacked(axes))
            assert_all_close(got, want, 1e-12, f"vmap of the {name}, direction not mapped")
    for axes in all_axes:
        _check_pullback_of_vmap(case, batch, axes, cts, pull)


def _check_pullback_of_vmap(
    case: Case, batch: Batch, axes: tuple[int | None, ...], cts: list[Any], pull: Callable[..., Any]
) -> None:
    parts = [pull(ct, *x) for ct, x in zip(cts, batch.each(axes), strict=True)]
    want = [
        np.sum(part, 0) if axes[i] is None else np.stack(part)
        for i, part in zip(case.live, zip(*parts, strict=True), strict=True)
    ]
    values = batch.stacked(axes)

    def mapped(*primals: Any) -> Any:
        full = list(values)
        for i, primal in zip(case.live, primals, strict=True):
            full[i] = primal
        outs = vmap(lambda *x: case.call(case.fun, x), in_axes=axes)(*full)
        return tuple(out for out in outs if kind_of(out) in "fc")

    got = vjp(mapped, *[values[i] for i in case.live])[1](tuple(_stack(cts)))
    assert_like(got, want, f"pullback of vmap with in_axes={axes}")
    assert_all_close(got, want, 1e-12, f"pullback of vmap with in_axes={axes}")


# ---- ownership ---------------------------------------------------------------------------------------------


def check_ownership(case: Case) -> None:
    """Derivatives are the caller's own arrays. (That inputs stay as they are every test sees: they are read-only.)"""
    primals = tuple(case.primals)
    given = [*case.values, *case.cotangents, *case.tangents]
    outs, pullback = vjp(case.smooth, *primals)
    results = {
        "cotangent": pullback(case.cotangents),
        "tangent": jvp(case.smooth, primals, case.tangents)[1],
        "linearized tangent": linearize(case.smooth, *primals)[1](*case.tangents),
    }
    for name, found in results.items():
        arrays = [a for a in found if isinstance(a, np.ndarray) and a.size]
        for a in arrays:
            assert a.flags.writeable, f"a {name} is read-only"
            for other in (*given, *outs, *arrays):
                if other is not a and isinstance(other, np.ndarray):
                    assert not np.shares_memory(a, other), f"a {name} shares memory with something else"
        for a, b in itertools.combinations(arrays, 2):
            assert a is not b, f"two results are one {name}"


# ---- operations without a derivative -----------------------------------------------------------------------


def check_zero(case: Case) -> None:
    """No derivative passes: zero in both modes, under ``vmap`` too, whatever the dtype of the results."""

    def fun(*primals: Any) -> Any:
        full = case.values
        for i, primal in zip(case.inexact, primals, strict=True):
            full[i] = primal
        return case.call(case.fun, full)

    primals = tuple(case.values[i] for i in case.inexact)
    outs, pullback = vjp(fun, *primals)
    plain = case.call(case.fun, case.values)
    assert_all_close(outs, plain, 0.0, "value of vjp")
    cts = tuple(np.ones_like(out) if kind_of(out) in "fc" else np.zeros(np.shape(out), FLOAT0) for out in outs)
    tangents = case.random(primals, "tangents")
    pulled = pullback(cts)
    assert_like(pulled, primals, "cotangent")
    assert_all_close(pulled, [np.zeros(np.shape(x)) for x in primals], 0.0, "cotangent")
    value, pushed = jvp(fun, primals, tangents)
    assert_all_close(value, plain, 0.0, "value of jvp")
    for t, out in zip(pushed, outs, strict=True):
        if kind_of(out) in "fc":
            assert_like([t], [out], "tangent")
            assert not np.any(t), "tangent is not zero"
        else:
            assert np.asarray(t).dtype == FLOAT0
            assert np.shape(t) == np.shape(out)
    if primals:
        _check_zero_batched(fun, primals, cts, tangents)


def _check_zero_batched(fun: Callable[..., Any], primals: Any, cts: Any, tangents: Any) -> None:
    stacked = [np.stack([x, x]) for x in primals]
    results = {
        "pullback": (vmap(lambda *x: vjp(fun, *x)[1](cts))(*stacked), stacked),
        "pullback, its cotangents mapped": (
            vmap(lambda ct: vjp(fun, *primals)[1](ct))(tuple(np.stack([ct, ct]) for ct in cts)),
            stacked,
        ),
        "pushforward": (
            vmap(lambda *x: jvp(fun, x, tangents)[1])(*stacked),
            [np.stack([out, out]) for out in jvp(fun, primals, tangents)[1]],
        ),
    }
    for name, (got, likes) in results.items():
        assert_like(got, likes, f"vmap of the {name}")
        for g in got:
            assert g.dtype == FLOAT0 or not np.any(g), f"vmap of the {name} is not zero"
