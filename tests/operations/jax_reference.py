"""What JAX says, computed once for each row: all samples and all quantities in one compiled function.

Compiling is what costs time here, so there is one compilation for a row, and XLA does as little as it can
(see ``conftest.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

import funcgrad
from operations.names import JAXS, named

if TYPE_CHECKING:
    from operations.cases import Case, Row

Answers = dict[str, Any]


def reference(case: Case, quantity: str) -> list[np.ndarray]:
    """JAX's answer for a case: "value", "vjp", "jvp", "own vjp", "forward over pullback", ...

    A quantity named "own ..." is funcgrad's, computed on JAX arrays inside ``jax.jit``.
    """
    row = case.row
    if row.answers is None:
        row.answers = answers(row)
    found = row.answers[case.id][quantity]
    if isinstance(found, Exception):
        raise AssertionError(f"{quantity} of {case.id} on JAX: {type(found).__name__}: {found}") from found
    return [np.asarray(x) for x in found]


def answers(row: Row) -> dict[str, Answers]:
    """All quantities of all cases of a row."""
    failed: dict[str, Answers] = {case.id: {} for case in row.cases}

    def everything(inputs: dict[str, list[Any]]) -> dict[str, Answers]:
        return {case.id: _attempted(case, inputs[case.id], failed[case.id]) for case in row.cases}

    inputs = {case.id: [jnp.asarray(case.values[i]) for i in case.inexact] for case in row.cases}
    found = jax.jit(everything)(inputs) if row.op.jit else everything(inputs)
    return {case.id: {**found[case.id], **failed[case.id]} for case in row.cases}


def _attempted(case: Case, inputs: list[Any], failed: Answers) -> Answers:
    """The quantities of one case; what raises goes to ``failed``."""
    made: Answers = {}
    for names, compute in _quantities(case, inputs):
        try:
            made.update(zip(names, compute(), strict=True))
        except Exception as error:  # kept for the test that asks for it
            failed.update(dict.fromkeys(names, error))
    return made


def _quantities(case: Case, inputs: list[Any]) -> Iterator[tuple[tuple[str, ...], Callable[[], Any]]]:
    """How to compute what, given JAX arrays for the floating leaves; what shares work is computed together."""
    theirs = _function(case)
    full = list(case.values)
    for i, value in zip(case.inexact, inputs, strict=True):
        full[i] = value
    if theirs is not None:
        yield ("value",), lambda: (case.call(theirs, full),)
    if inputs:
        yield ("own value",), lambda: (case.call(case.fun, full),)
    if not case.live:
        return
    primals = [full[i] for i in case.live]
    ct, t, s = _arrays(case.cotangents), _arrays(case.tangents), _arrays(case.others)
    own = case.of_live(case.fun)
    yield ("own vjp",), lambda: (funcgrad.vjp(own, *primals)[1](ct),)
    yield ("own jvp",), lambda: (funcgrad.jvp(own, tuple(primals), t)[1],)
    if theirs is None:
        return
    fun = case.of_live(theirs)
    if case.row.op.order >= 2:
        names = ("vjp", "forward over pullback", "reverse over pullback", "reverse over pushforward")
        yield names, lambda: _of_pullback(lambda *x: _pull(fun, x, ct), primals, s, t)
        yield (
            ("jvp", "forward over pushforward"),
            lambda: jax.jvp(lambda *x: _push(fun, x, t), tuple(primals), s),
        )
    else:
        yield ("vjp",), lambda: (_pull(fun, primals, ct),)
        yield ("jvp",), lambda: (_push(fun, primals, t),)
    if case.compares_singles:
        singles = [x.astype(jnp.complex64 if x.dtype.kind == "c" else jnp.float32) for x in primals]
        yield ("vjp32",), lambda: (_pull(fun, singles, ct),)
        yield ("jvp32",), lambda: (_push(fun, singles, t),)


def _of_pullback(pullback: Callable[..., Any], primals: Sequence[Any], s: Any, t: Any) -> tuple[Any, ...]:
    """The pullback and its derivatives.

    Those in reverse mode are the forward one along ``t``: with ``L(x) = <ct, f(x)>`` the pullback is L's
    gradient and the pushforward its slope along ``t``; the gradient of either is the Hessian, which is
    symmetric, times ``t``. Tracing that once takes a quarter of the time of all four.
    """
    pulled, push = jax.linearize(pullback, *primals)
    along_t = push(*t)
    return pulled, push(*s), along_t, along_t


def _function(case: Case) -> Callable[..., Any] | None:
    """JAX's counterpart of the operation."""
    row = case.row.op
    name = row.name if row.jax == "same name" else row.jax
    if not isinstance(name, str):
        return name
    found = named(name, JAXS)
    assert found is not None, f"JAX has no {name}: name it or say None"
    return found


def _arrays(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(jnp.asarray(v) for v in values)


def _pull(fun: Callable[..., Any], primals: Sequence[Any], cts: Sequence[Any]) -> Any:
    outs, pullback = jax.vjp(fun, *primals)
    return pullback(tuple(ct.astype(out.dtype) for ct, out in zip(cts, outs, strict=True)))


def _push(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    return jax.jvp(fun, tuple(primals), tuple(t.astype(x.dtype) for t, x in zip(tangents, primals, strict=True)))[1]
