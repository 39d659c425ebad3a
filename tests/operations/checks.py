"""Checks of an operation.

Each check is a function ``check_...(case)`` that raises ``AssertionError``; ``batched.py`` has the checks under
``vmap``. ``tests/test_operations.py`` runs every check on every case of the table;
``tests/test_checker.py`` shows that the checks detect wrong rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from funcgrad import jvp, linearize, vjp, vmap
from funcgrad.errors import InputError
from operations import numeric
from operations.cases import Case, kind_of
from operations.comparing import FLOAT0, assert_all_close, assert_like, assert_transposed
from operations.jax_reference import reference

# ---- values ------------------------------------------------------------------------------------------------


def check_value(case: Case) -> None:
    """Check that plain NumPy arguments give NumPy's values, shapes, dtypes and scalars."""
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
    if case.inexact and case.row.op.portable and case.row.op.on_jax:
        assert_all_close(reference(case, "own value"), got, case.within(1e-12), "value on JAX arrays")


# ---- first order -------------------------------------------------------------------------------------------


def subsets(case: Case) -> Iterator[tuple[int, ...]]:
    """Yield the subsets of live leaves to differentiate: all leaves, and each alone."""
    n = len(case.live)
    yield tuple(range(n))
    if n > 1:
        yield from ((i,) for i in range(n))


def restricted(fun: Callable[..., Any], primals: Sequence[Any], chosen: tuple[int, ...]) -> Callable[..., Any]:
    """Return ``fun`` as a function of the chosen primals, with the others constant."""

    def some(*values: Any) -> Any:
        full = list(primals)
        for i, value in zip(chosen, values, strict=True):
            full[i] = value
        return fun(*full)

    return some


def check_jvp(case: Case) -> None:
    """Check forward mode against differences of NumPy's values."""
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
    """Check that reverse mode is forward mode's transpose, and that cotangents have primals' shapes and dtypes."""
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
    """Return cotangents, for complex results also times 1j: the real part of a product misses the imaginary part."""
    if all(kind_of(out) == "f" for out in case.outs):
        return [case.cotangents]
    turned = tuple(ct * 1j if kind_of(ct) == "c" else ct for ct in case.cotangents)
    return [case.cotangents, turned]


def check_arguments(case: Case) -> None:
    """Check that memory layouts, and one array for several arguments, make no difference."""
    primals, cts, tangents = (tuple(map(laid_out, a)) for a in (case.primals, case.cotangents, case.tangents))
    outs, other = vjp(case.smooth, *primals)
    assert_all_close(outs, case.outs, 1e-14, "value of strided arrays")
    assert_all_close(other(cts), case.pulled, 1e-12, "cotangents of strided arrays")
    assert_all_close(jvp(case.smooth, primals, tangents)[1], case.pushed, 1e-12, "tangents of strided arrays")
    if len({(np.shape(x), np.asarray(x).dtype) for x in case.primals}) == 1 < len(case.primals):
        _check_shared(case)


def _check_shared(case: Case) -> None:
    """Check that the cotangent of one array for all arguments is the sum of the separate cotangents."""
    x = sum(case.primals) / len(case.primals)
    many = [x] * len(case.primals)
    try:
        with np.errstate(all="raise"):
            case.referee(*many)
    except Exception:  # outside of the domain
        return
    outs, pullback = vjp(case.smooth, *many)
    cts = case.random(outs, "cotangents")

    def shared(x: Any) -> Any:
        return case.smooth(*[x] * len(case.primals))

    once = vjp(shared, x)[1](cts)
    assert_all_close(once, [sum(pullback(cts))], 1e-12, "cotangent of a shared argument")
    t = case.tangents[0]
    want = jvp(case.smooth, tuple(many), (t,) * len(many))[1]
    assert_all_close(jvp(shared, (x,), (t,))[1], want, 1e-12, "tangent of a shared argument")


def laid_out(x: Any) -> Any:
    """Return the same numbers as a reversed view, with steps of 2, of a buffer in Fortran order."""
    if not isinstance(x, np.ndarray) or not x.ndim:
        return x
    buffer = np.full([2 * n for n in x.shape], np.nan, x.dtype, order="F")
    view = buffer[tuple(slice(None, None, -2) for _ in x.shape)]
    view[...] = x
    view.flags.writeable = False
    return view


def check_linearize(case: Case) -> None:
    """Check that ``linearize`` gives the map that ``jvp`` applies."""
    value, push = linearize(case.smooth, *case.primals)
    assert_all_close(value, case.outs, 1e-14, "value of linearize")
    of_others = jvp(case.smooth, tuple(case.primals), case.others)[1]
    for tangents, want in ((case.tangents, case.pushed), (case.others, of_others)):
        got = push(*tangents)
        assert_like(got, case.outs, "tangent")
        assert_all_close(got, want, 1e-14, "linearize against jvp")


def check_jax(case: Case) -> None:
    """Check both modes against JAX."""
    assert_all_close(case.pulled, reference(case, "vjp"), case.within(1e-10), "vjp against JAX")
    assert_all_close(case.pushed, reference(case, "jvp"), case.within(1e-10), "jvp against JAX")


def check_on_jax_arrays(case: Case) -> None:
    """Check funcgrad on JAX arrays, inside ``jax.jit``, against NumPy arrays, or that it reports what JAX lacks."""
    if case.row.op.on_jax is None:
        return
    if not case.row.op.on_jax:
        with pytest.raises(InputError, match="JAX"):
            case.smooth(*[jnp.asarray(x) for x in case.primals])
        return
    assert_all_close(reference(case, "own vjp"), case.pulled, case.within(1e-10), "vjp on JAX arrays")
    assert_all_close(reference(case, "own jvp"), case.pushed, case.within(1e-10), "jvp on JAX arrays")


# ---- second order ------------------------------------------------------------------------------------------


def check_second_order(case: Case) -> None:
    """Check derivatives of the pullback and of the pushforward: by differences, as transposes, and against JAX."""
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
        if case.compares_second:
            assert_all_close(
                forward, reference(case, f"forward over {name}"), case.within(1e-10), f"forward over {name}"
            )
            assert_all_close(
                backward, reference(case, f"reverse over {name}"), case.within(1e-10), f"reverse over {name}"
            )


# ---- dtypes ------------------------------------------------------------------------------------------------


def narrowed(value: Any, bits: int) -> Any:
    """Return a floating value in fewer bits, read-only."""
    value = np.asarray(value)
    to = f"complex{max(64, 2 * bits)}" if value.dtype.kind == "c" else f"float{bits}"
    cast = value.astype(to)
    cast.flags.writeable = False
    return cast if cast.ndim else cast[()]


def check_dtypes(case: Case) -> None:
    """Check float32, float16 and mixed arguments: results have NumPy's dtypes, derivatives those of their values."""
    singles = [narrowed(x, 32) for x in case.primals]
    cts, tangents, pulled, pushed = _check_narrow(case, singles)
    if case.is_first:
        _check_second_dtypes(case, singles, cts, tangents)
    if case.is_first and case.row.op.jax is not None:  # other operations are, in part, too ill-conditioned
        wide = tuple(map(_widened, singles))
        exact = vjp(case.smooth, *wide)[1](tuple(map(_widened, cts)))
        assert_all_close(pulled, exact, 1e-5, "vjp in float32 against float64")
        exact = jvp(case.smooth, wide, tuple(map(_widened, tangents)))[1]
        assert_all_close(pushed, exact, 1e-5, "jvp in float32 against float64")
    halves = [narrowed(x, 16) for x in case.primals]
    if _numpy_takes(case, halves):
        cts, tangents, *_ = _check_narrow(case, halves)
        if case.is_first:
            _check_second_dtypes(case, halves, cts, tangents)
    if len(singles) > 1:
        for start in (0, 1):
            mixed = [x if (i + start) % 2 else y for i, (x, y) in enumerate(zip(case.primals, singles, strict=True))]
            _check_narrow(case, mixed)


def _numpy_takes(case: Case, primals: Sequence[Any]) -> bool:
    """Return whether NumPy accepts the values, without overflow: its linear algebra refuses float16."""
    try:
        with np.errstate(all="ignore"):
            outs = case.referee(*primals)
    except TypeError:
        return False
    return all(np.isfinite(out).all() for out in outs)


def _check_narrow(case: Case, primals: list[Any]) -> tuple[Any, Any, Any, Any]:
    """Check the dtypes of first derivatives; return the cotangents, the tangents, and their derivatives."""
    outs, pullback = vjp(case.smooth, *primals)
    if case.numpy is not None:
        assert_like([np.asarray(o)[()] for o in outs], case.referee(*primals), "result")
    cts = tuple(np.asarray(ct).astype(np.asarray(out).dtype)[()] for ct, out in zip(case.cotangents, outs, strict=True))
    tangents = tuple(np.asarray(t).astype(np.asarray(x).dtype)[()] for t, x in zip(case.tangents, primals, strict=True))
    pulled = pullback(cts)
    assert_like(pulled, primals, "cotangent")
    pushed = jvp(case.smooth, tuple(primals), tangents)[1]
    assert_like(pushed, outs, "tangent")
    live = [leaf for leaf in case.leaves if leaf.live]
    # promotion in a batch depends on the operation, hardly on its sample; numbers are weak
    if case.among_first and all(leaf.mapped and hasattr(leaf.value, "dtype") for leaf in live):
        _check_narrow_batch(case, primals, cts)
    return cts, tangents, pulled, pushed


def _check_second_dtypes(case: Case, primals: list[Any], cts: Any, tangents: Any) -> None:
    """Check the dtypes of the pullback's derivatives."""
    if case.row.op.order < 2:
        return

    def pulled(*x: Any) -> Any:
        return vjp(case.smooth, *x)[1](cts)

    assert_like(jvp(pulled, tuple(primals), tangents)[1], primals, "tangent of the pullback")
    assert_like(vjp(pulled, *primals)[1](tangents), primals, "cotangent of the pullback")


def _widened(value: Any) -> Any:
    """Return the same numbers in double precision, in which other checks compare derivatives with references."""
    value = np.asarray(value)
    return value.astype(np.result_type(value.dtype, np.float64))[()]


def _check_narrow_batch(case: Case, primals: list[Any], cts: tuple[Any, ...]) -> None:
    """Check that ``vmap`` promotes nothing either."""
    batch = [np.stack([x, x]) for x in primals]
    outs, pullback = vjp(vmap(case.smooth), *batch)
    assert_like(outs, [np.stack([ct, ct]) for ct in cts], "result of vmap")
    assert_like(pullback(tuple(np.stack([ct, ct]) for ct in cts)), batch, "cotangent of vmap")
    assert_like(vmap(lambda *x: vjp(case.smooth, *x)[1](cts))(*batch), batch, "vmap of the pullback")


# ---- operations without a derivative -----------------------------------------------------------------------


def check_zero(case: Case) -> None:
    """Check zero derivatives in both modes, also under ``vmap``, whatever the dtype of the results."""

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
