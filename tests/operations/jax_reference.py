"""JAX's answers.

Tracing and compiling dominate the time. Therefore NumPy computes the operations that JAX's rules emit, one by one
(see ``fuzz/eager.py``). Only funcgrad's pullback of each row's first case (its value if there is no pullback) is
traced by JAX as a whole first, as ``jax.jit`` does. XLA compiles the quantities that NumPy cannot compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from fuzz.eager import run_eagerly
from fuzz.evaluating import run

import funcgrad
from operations.names import JAXS, named

if TYPE_CHECKING:
    from operations.cases import Case

Answers = dict[str, Any]
Group = tuple[tuple[str, ...], Callable[..., Any]]


#: Rows whose values and funcgrad quantities XLA compiles for all cases: NumPy would run their loops slowly.
LOOPING = (
    *("linalg.logm", "linalg.sqrtm", "scipy.linalg.logm", "scipy.linalg.fractional_matrix_power"),
    *("scipy.special.hyp2f1", "scipy.special.bessel_jn"),
)
#: Rows whose loops JAX traces as loops, because running them unrolled takes longer.
WRITTEN = (
    *("linalg.expm", "scipy.linalg.expm", "scipy.linalg.sqrtm"),
    *("scipy.special.bessel_jn", "scipy.special.expi", "scipy.special.expn"),
)


def reference(case: Case, quantity: str) -> list[np.ndarray]:
    """Return JAX's answer for a case: "value", "vjp", "jvp", "own vjp", "forward over pullback", ...

    A quantity named "own ..." is funcgrad's, computed on JAX arrays, under ``jax.jit`` or another trace of JAX.
    """
    if case.answers is None:
        case.answers = answers(case)
    found = case.answers[quantity]
    if isinstance(found, Exception):
        raise AssertionError(f"{quantity} of {case.id} on JAX: {type(found).__name__}: {found}") from found
    return [np.asarray(x) for x in found]


def answers(case: Case) -> Answers:
    """Return all quantities of a case."""
    groups = list(_quantities(case))
    inputs = [case.values[i] for i in case.inexact]
    if not case.row.op.jit:
        return _attempted(groups, [jnp.asarray(x) for x in inputs])
    if case.row.op.name in LOOPING:
        whole = [group for group in groups if group[0][0] in ("value", "own value", "own vjp", "own jvp")]
        found = _compiled(whole, inputs)
    else:
        whole = [group for group in groups if group[0][0] == _whole(case)]
        found = _by_numpy(whole, inputs, _written_down)
    eagerly = partial(run_eagerly, unrolled=case.row.op.name not in WRITTEN)
    found.update(_by_numpy([group for group in groups if group not in whole], inputs, eagerly))
    return {**found, **_compiled([group for group in groups if isinstance(found[group[0][0]], Exception)], inputs)}


def _whole(case: Case) -> str:
    """Return the name of the quantity that JAX traces as a whole before it is computed, or ""."""
    if case is not case.row.cases[0]:
        return ""
    return "own vjp" if case.live and case.row.op.on_jax else "own value"


def _written_down(fun: Callable[..., Any], *inputs: Any) -> Any:
    closed, shape = jax.make_jaxpr(fun, return_shape=True)(*inputs)
    return jax.tree.unflatten(jax.tree.structure(shape), run(closed, [np.asarray(x) for x in inputs]))


def _compiled(groups: list[Group], inputs: list[Any]) -> Answers:
    """Compute with XLA, in one compiled function."""
    failed: Answers = {}

    def everything(inputs: list[Any]) -> Answers:
        found = _attempted(groups, inputs)
        failed.update({name: out for name, out in found.items() if isinstance(out, Exception)})
        return {name: out for name, out in found.items() if name not in failed}

    return {**jax.jit(everything)([jnp.asarray(x) for x in inputs]), **failed} if groups else {}


def _by_numpy(groups: list[Group], inputs: list[Any], by: Callable[..., Any]) -> Answers:
    """Compute each group separately with NumPy, so that a failure affects one group only."""
    found: Answers = {}
    with np.errstate(all="ignore"):  # JAX computes both sides of a ``where``
        for names, compute in groups:
            try:
                found.update(zip(names, by(lambda *x, compute=compute: compute(x), *inputs), strict=True))
            except Exception as error:
                found.update(dict.fromkeys(names, error))
    return found


def _attempted(groups: list[Group], inputs: Sequence[Any]) -> Answers:
    """Compute with JAX; the answer of a failing group is its error."""
    made: Answers = {}
    for names, compute in groups:
        try:
            made.update(zip(names, compute(inputs), strict=True))
        except Exception as error:  # the test that needs the quantity raises it
            made.update(dict.fromkeys(names, error))
    return made


def _quantities(case: Case) -> Iterator[Group]:
    """Yield names and functions of JAX arrays for the floating leaves; quantities that share work share a function."""
    theirs, op = _function(case), case.row.op

    def full(inputs: Sequence[Any]) -> list[Any]:
        values = list(case.values)
        for i, value in zip(case.inexact, inputs, strict=True):
            values[i] = value
        return values

    def primals(inputs: Sequence[Any]) -> tuple[Any, ...]:
        values = full(inputs)
        return tuple(values[i] for i in case.live)

    # Forward mode also gives the value, if all results are floating; the first case computes funcgrad's value alone.
    floating = bool(case.live) and len(case.outs) == len(case.call(case.fun, case.values))
    shared = floating and op.on_jax and case is not case.row.cases[0]
    if theirs is not None and not floating:
        yield ("value",), lambda x: (case.call(theirs, full(x)),)
    if case.inexact and op.on_jax and not shared:
        yield ("own value",), lambda x: (case.call(case.fun, full(x)),)
    if not case.live:
        return
    if op.on_jax:
        own, ct, t = case.of_live(case.fun), case.cotangents, case.tangents
        yield ("own vjp",), lambda x: (funcgrad.vjp(own, *primals(x))[1](_arrays(ct)),)
        if shared:
            yield ("own value", "own jvp"), lambda x: funcgrad.jvp(own, primals(x), _arrays(t))
        else:
            yield ("own jvp",), lambda x: (funcgrad.jvp(own, primals(x), _arrays(t))[1],)
    if theirs is not None:
        yield from _derivatives(case, case.of_live(theirs), primals, "value" if floating else "floating results")


def _derivatives(case: Case, fun: Callable[..., Any], primals: Callable[..., Any], value: str) -> Iterator[Group]:
    """Yield JAX's derivatives, and with them the floating results, named ``value``."""
    ct, t, s = case.cotangents, case.tangents, case.others

    def pushed(*primals: Any) -> Any:
        return jax.jvp(fun, primals, tuple(jnp.asarray(d, x.dtype) for d, x in zip(t, primals, strict=True)))

    def pushed_twice(x: Sequence[Any]) -> tuple[Any, ...]:
        (out, tangent), (_, bend) = jax.jvp(pushed, primals(x), _arrays(s))
        return out, tangent, bend

    if case.compares_second:
        names = ("vjp", "forward over pullback", "reverse over pullback", "reverse over pushforward")
        yield names, lambda x: _of_pullback(lambda *y: _pull(fun, y, ct), primals(x), _arrays(s), _arrays(t))
        yield (value, "jvp", "forward over pushforward"), pushed_twice
    else:
        yield ("vjp",), lambda x: (_pull(fun, primals(x), ct),)
        yield (value, "jvp"), lambda x: pushed(*primals(x))


def _of_pullback(pullback: Callable[..., Any], primals: Sequence[Any], s: Any, t: Any) -> tuple[Any, ...]:
    """Return the pullback and its derivatives.

    Both derivatives in reverse mode equal the forward derivative along ``t``: with ``L(x) = <ct, f(x)>`` the pullback
    is L's gradient and the pushforward its slope along ``t``; the gradient of either is the Hessian, which is
    symmetric, times ``t``. Tracing it once takes a quarter of the time of all four.
    """
    pulled, push = jax.linearize(pullback, *primals)
    along_t = push(*t)
    return pulled, push(*s), along_t, along_t


def _function(case: Case) -> Callable[..., Any] | None:
    """Return JAX's counterpart of the operation."""
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
    return pullback(tuple(jnp.asarray(ct, out.dtype) for ct, out in zip(cts, outs, strict=True)))
