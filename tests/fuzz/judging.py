"""Comparison of funcgrad, JAX and a numerical referee on a random program, with a verdict on the outlier."""

from __future__ import annotations

import itertools
import signal
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import funcgrad.numpy as fnp
from funcgrad.errors import ReplayError
from funcgrad.interop import to_jax
from funcgrad.interop.crosschecks.divergences import divergences_at
from funcgrad.interop.jax.lift import lifted
from funcgrad.transforms.referee import Measured, Referee
from fuzz.eager import run_eagerly
from fuzz.evaluating import evaluated
from fuzz.forwards import forward_library
from fuzz.generating import library
from fuzz.helpers import jax_library, like
from fuzz.layers import LAYERS
from fuzz.programs import Program, Unfit, as_argument, walk

__all__ = ["FAILURES", "Verdict", "compiled", "judge", "theirs"]

DOUBLE, SINGLE = 1e-9, 1e-4  # the relative errors allowed, never more
SHARE = 0.01  # an error is relative to the largest number of the leaf, or to this share of the largest of all leaves
SAFETY = 10.0  # factor by which the referee may exceed its own error estimate
NEAR = 0.005  # the referee's first steps, so small that they cross no kink
UNSURE = 1e-5  # a referee with a larger relative error estimate gives no verdict
NUDGE = {DOUBLE: 1e-14, SINGLE: 1e-6}  # by how much a point is moved to see how results react
REVERSED = 16  # one of so many programs is run by JAX's reverse mode, the others by its forward mode
SECONDS = 90  # time limit for one program

#: Verdicts that count as failures: someone is wrong, and the difference is not known.
FAILURES = (
    "funcgrad raises",
    "funcgrad differs from NumPy",
    "funcgrad differs from JAX and the referee",
    "JAX differs from funcgrad and the referee",
    "funcgrad and JAX differ",
    "both differ from the referee",
    "funcgrad differs from the referee",
    "funcgrad differs from itself under jax.jit",
    "NumPy's run of JAX's program differs from JAX",
    "judging raises",
    "too slow",
    "the process died",
)

#: Compiler options for code that runs once: faster compilation, the same results.
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


class Verdict(NamedTuple):
    """Result of a comparison.

    Attributes:
        kind: "agree", one of ``FAILURES``, or why there is nothing to compare.
        details: how far off, where, what was raised.
    """

    kind: str
    details: str = ""

    @property
    def failed(self) -> bool:
        """Whether the verdict is a failure."""
        return self.kind in FAILURES


class TooSlowError(BaseException):
    """Error for a program that takes too long."""


def judge(program: Program, *, full: bool = False) -> Verdict:
    """Compare funcgrad, JAX and the referee on ``program``.

    Args:
        program: the program to run.
        full: whether the referee measures third derivatives too, which takes long.
    """
    try:
        with _limited(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return _judged(program, full)
    except TooSlowError:
        return Verdict("too slow", f"more than {SECONDS} s")
    except Exception as error:
        return Verdict("judging raises", f"{type(error).__name__}: {str(error)[:300]}")


def _judged(program: Program, full: bool) -> Verdict:
    try:
        for _ in walk(program, library()):
            pass
    except Unfit as error:
        return Verdict("unfit", str(error))
    try:
        got = ours(program, program.point)
        plain = None if program.dispatch else program.function()(fnp, library(), program.points()[0])
    except Exception as error:
        said = f"{type(error).__name__}: {str(error)[:300]}"
        if _on_purpose(program, error):
            return Verdict("funcgrad refuses", said)
        return Verdict("JAX refuses" if _cannot_compile(program, error) else "funcgrad raises", said)
    if not program.dispatch:
        value = program.function()(np, library(), program.points()[0])
        if off := _difference(program, [plain], [value], dtypes=True):
            return Verdict("funcgrad differs from NumPy", off)
    referee = _refereed(program, got, full)
    try:
        want = _quick(program)
    except Exception as error:
        if referee:
            return Verdict("funcgrad differs from the referee", f"{referee}; JAX: {type(error).__name__}")
        if program.lifted:  # here funcgrad runs the program on JAX
            kind = "funcgrad refuses" if _on_purpose(program, error) else "funcgrad raises"
            return Verdict(kind, f"to_jax, {type(error).__name__}: {str(error)[:300]}")
        return Verdict("JAX refuses", f"{type(error).__name__}: {str(error).splitlines()[0][:100]}")
    off = _difference(program, _leaves(got), _leaves(want), dtypes=True)
    if off or referee:
        return _disputed(program, got, off, referee)
    if program.compiled:
        return _under_jit(program, got)
    return Verdict("agree")


def _on_purpose(program: Program, error: Exception) -> bool:
    """Whether the error is a documented refusal, which says what to do.

    A value was changed that a checkpoint inside had read, so the checkpoint cannot run again.
    """
    if not isinstance(error, ReplayError):
        return False
    return any("checkpoint" in line.text for line in program.lines) and any(x.out is None for x in program.lines)


def _disputed(program: Program, got: Any, off: str, referee: str) -> Verdict:
    """Find the outlier, once rounding and the way JAX's program was run are ruled out."""
    if off:
        try:
            want = _leaves(theirs(program, compiled))
        except jax.errors.JaxRuntimeError:  # XLA fails at some programs that JAX writes
            want = _leaves(theirs(program, evaluated))
        off, before = _difference(program, _leaves(got), want, dtypes=True), off
        if not off and not referee and (_tolerance(program) == SINGLE or _reacts(program, got)):
            return Verdict("agree", "with JAX itself, not with NumPy's run of its program: rounding")
        if not off and not referee:
            return Verdict("NumPy's run of JAX's program differs from JAX", before)
    if off and not off.startswith("dtype") and (_reacts(program, got) or _rounded(program, got, want)):
        return Verdict("ill-conditioned", off)
    if off and (text := _known(program)):
        return Verdict("known divergence of JAX", text)
    if not referee and off:
        referee = _refereed(program, got, full=True)
        if not referee and _measurable(program):
            return Verdict("JAX differs from funcgrad and the referee", off)
    if off:
        return Verdict("funcgrad differs from JAX and the referee" if referee else "funcgrad and JAX differ", off)
    return Verdict("both differ from the referee", referee)


def _under_jit(program: Program, got: Any) -> Verdict:
    """Compare with funcgrad on JAX arrays; differences by rounding must vanish in double precision."""
    try:
        want = _compiled(program)
    except Exception as error:
        said = f"under jax.jit, {type(error).__name__}: {str(error)[:300]}"
        return Verdict("JAX refuses" if _cannot_compile(program, error) else "funcgrad raises", said)
    off = _difference(program, _leaves(got), _leaves(want), dtypes=False)
    if off and _tolerance(program) == SINGLE:
        wide = _in_double(program)
        if not _difference(wide, _leaves(ours(wide, wide.point)), _leaves(_compiled(wide)), dtypes=False):
            return Verdict("ill-conditioned", off)
    if off and not _reacts(program, got):
        return Verdict("funcgrad differs from itself under jax.jit", off)
    return Verdict("agree")


def _compiled(program: Program) -> Any:
    stacked, f = program.stacked(), program.function()
    return compiled(stacked(fnp, library(), lambda x: f(fnp, library(), x)), jax.tree.map(jnp.asarray, program.point))


def _cannot_compile(program: Program, error: Exception) -> bool:
    """Whether XLA does not compile JAX's program either: as a whole, or the part under ``jit``."""
    if not isinstance(error, jax.errors.JaxRuntimeError):
        return False
    for runner in (compiled, lambda fun, x: fun(jax.tree.map(jnp.asarray, x))):
        try:
            theirs(program, runner)
        except jax.errors.JaxRuntimeError as other:
            if str(other)[:50] == str(error)[:50]:
                return True
    return False


# ---- who says what -----------------------------------------------------------------------------------------------


def ours(program: Program, x: Any) -> Any:
    """Return funcgrad's result."""
    np_ = np if program.dispatch else fnp
    f = program.function()
    return program.stacked()(np_, library(), lambda x: f(np_, library(), x))(x)


@lru_cache(maxsize=1)
def _jax_library() -> Any:
    return jax_library()


@lru_cache(maxsize=1)
def _forward_library() -> Any:
    return forward_library()


def _reversed(program: Program) -> bool:
    """Whether JAX's reverse mode runs the program in the first place."""
    rules = any("own_vjp" in line.text for line in program.lines)
    empty = any(x.size == 0 for x in program.inputs)
    return rules or empty or zlib.crc32(program.transforms().encode() + program.source().encode()) % REVERSED == 0


def _quick(program: Program) -> Any:
    """Return JAX's result, fast."""
    if not _reversed(program):
        with suppress(Exception):
            return theirs(program, run_eagerly, forward=True)
    return theirs(program, evaluated)


def theirs(program: Program, runner: Callable[..., Any], *, forward: bool = False) -> Any:
    """Return JAX's result after ``runner`` applied the transforms; ``forward``: by forward mode."""
    jax_ = _forward_library() if forward else _jax_library()
    f = program.function(jax=True)
    if program.lifted:
        np_ = np if program.dispatch else fnp
        fun = to_jax(lambda x: f(np_, library(), x))
    else:
        fun = lambda x: f(jnp, jax_, x)
    return jax.block_until_ready(runner(program.stacked()(jnp, jax_, fun), program.point))


def compiled(fun: Callable[..., Any], x: Any) -> Any:
    """Return ``jax.jit(fun)(x)`` for a function that is called once; what XLA refuses while computing raises here."""
    lowered = jax.jit(fun).lower(x)
    try:
        return jax.block_until_ready(lowered.compile(compiler_options=QUICK)(x))
    except RuntimeError:  # an XLA that does not know these options
        return jax.block_until_ready(lowered.compile()(x))


def _known(program: Program) -> str:
    """Return a known divergence of JAX among those that the program triggers."""
    found: list[str] = []

    def watch(primitive: Any, values: Any, params: Any) -> None:
        found.extend(divergences_at(primitive, values, params))

    f = program.function()
    np_ = np if program.dispatch else fnp
    for x in program.points():
        leaves, tree = jax.tree.flatten(jax.tree.map(jnp.asarray, x))
        fun = lambda *leaves, tree=tree: f(np_, library(), jax.tree.unflatten(tree, leaves))
        lifted(jax, fun, watch)(*leaves)
    return found[0] if found else ""


# ---- the referee -------------------------------------------------------------------------------------------------


def _measurable(program: Program) -> list[int]:
    """Return layers whose derivative can be measured: no value below is held constant although it varies."""
    if any(name in line.text for line in program.lines for name in ("stop_gradient", "no_grad", "own_jvp", "own_vjp")):
        return []
    names = [name for name, _ in program.stack]
    cut = next((n for n, name in enumerate(names) if LAYERS[name].cuts), len(names))
    found = [n for n, name in enumerate(names) if LAYERS[name].measure and n < cut]
    return list(dict.fromkeys([found[0], found[-1]])) if found else []


def _refereed(program: Program, got: Any, full: bool) -> str:
    """Return the referee's objection to the innermost or outermost derivative, or "" if both are right."""
    if any("float32" in line.text for line in program.lines):
        return ""
    if _tolerance(program) == SINGLE:
        program, got = _in_double(program), None
    layers = _measurable(program)
    order = sum(LAYERS[name].order for name, _ in program.stack)
    for n in layers:
        below = sum(LAYERS[name].order for name, _ in program.stack[:n])
        if (below < 2 and order <= 2) or below == 0 or full:
            points = program.points(above=n + 1)  # where the layers above run this layer, with no kink near
            top = replace(program, stack=program.stack[: n + 1], inputs=tuple(_leaves(points[0])))
            if said := _measured(top, got if n == len(program.stack) - 1 else None):
                return f"{program.stack[n][0]}: {said}"
    return ""


def _measured(program: Program, got: Any = None) -> str:
    """Measure the outermost layer, with NumPy below and funcgrad's other layers below."""
    name, k = program.stack[-1]
    layer = LAYERS[name]
    f, np_ = program.function(), np if program.dispatch or len(program.stack) == 1 else fnp
    below = replace(program, stack=program.stack[:-1])
    under = below.stacked()(np_, library(), lambda x: f(np_, library(), x))
    assert layer.measure is not None
    x, t = program.point, like(program.point, 7)
    case = layer.measure(library(), under, x, k, t)
    claim = _flat(case.claim(ours(program, x) if got is None else got))
    point, value = _leaves(case.point), case.fun(case.point)
    real = not any(np.iscomplexobj(v) for v in (*point, *_leaves(value)))
    shape = _flat(value).shape

    def fun(leaves: list[Any]) -> Any:
        found = _flat(case.fun(as_argument(leaves)), real)
        return found if found.shape == shape else np.full(shape, np.nan)  # masks select other elements some way off

    direction = [NEAR * t for t in _leaves(case.direction)]
    if _quickly(fun, point, direction, NEAR * claim, _tolerance(program)):
        return ""
    return _said(NEAR * claim, Referee(fun, point, real=real).first_derivative(direction), NEAR, _tolerance(program))


def _quickly(fun: Callable[..., Any], point: list[Any], direction: list[Any], claim: Any, tolerance: float) -> bool:
    """Whether three extrapolated differences give the claim, to the tolerance; no estimate is needed then."""
    slopes = []
    try:
        for h in (0.5, 0.25, 0.125):
            right, left = [fun([x + s * t for x, t in zip(point, direction, strict=True)]) for s in (h, -h)]
            slopes.append((right - left) / (2 * h))
    except (ArithmeticError, ValueError):  # a matrix that is not positive definite
        return False
    first, second = [(4 * b - a) / 3 for a, b in itertools.pairwise(slopes)]
    measured = (16 * second - first) / 15
    scale = max(float(np.max(np.abs(x), initial=0)) for x in (claim, measured, 0.01 * NEAR))
    return claim.shape == measured.shape and bool(np.all(np.abs(claim - measured) <= tolerance * scale))


def _said(claim: Any, measured: Measured, unit: float, tolerance: float) -> str:
    scale = max(float(np.max(np.abs(x), initial=0)) for x in (claim, measured.value, 0.01 * unit))
    if claim.shape != measured.value.shape:
        return f"shape {claim.shape}, measured {measured.value.shape}"
    if np.any(measured.jump) or not np.all(measured.error <= UNSURE * scale):
        return ""
    off = np.abs(claim - measured.value)
    if np.all(off <= tolerance * scale + SAFETY * measured.error):
        return ""
    worst = int(np.argmax(np.nan_to_num(off - SAFETY * measured.error, nan=np.inf)))
    mine, right = claim[worst] / unit, measured.value[worst] / unit
    return f"off by {off[worst] / scale:.1e}: {mine:.10g}, measured {right:.10g}"


def _flat(out: Any, real: bool = False) -> Any:
    """Return all numbers in a row, imaginary parts after real parts; complex steps make real values complex."""
    parts: list[Any] = []
    for leaf in _leaves(out):
        whole = real or not np.iscomplexobj(leaf)
        parts += [np.ravel(leaf)] if whole else [np.ravel(np.real(leaf)), np.ravel(np.imag(leaf))]
    return np.concatenate(parts)


def _in_double(program: Program) -> Program:
    wide = {"float32": "float64", "complex64": "complex128"}
    inputs = tuple(x.astype(wide.get(str(x.dtype), x.dtype)) for x in program.inputs)
    lines = tuple([replace(line, text=_wide(line.text), jax=line.jax and _wide(line.jax)) for line in program.lines])
    return replace(program, inputs=inputs, lines=lines)


def _wide(text: str) -> str:
    return text.replace('"float32"', '"float64"')


# ---- comparing ---------------------------------------------------------------------------------------------------


def _tolerance(program: Program) -> float:
    single = any(x.dtype in (np.float32, np.complex64) for x in program.inputs)
    return SINGLE if single or any("float32" in line.text for line in program.lines) else DOUBLE


def _leaves(out: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(out)]


def _difference(program: Program, got: list[Any], want: list[Any], *, dtypes: bool) -> str:
    """Return how two results differ, or "" if they agree."""
    got, want = [np.asarray(x) for x in got], [np.asarray(x) for x in want]
    if [x.shape for x in got] != [x.shape for x in want]:
        return f"shapes {[x.shape for x in got]} and {[x.shape for x in want]}"
    tolerance = _tolerance(program)
    mixed = tolerance == SINGLE  # JAX makes float32 of float32 and int64, NumPy float64
    for g, w in zip(got, want, strict=True):
        if dtypes and (g.dtype.kind != w.dtype.kind if mixed else g.dtype != w.dtype):
            return f"dtypes {g.dtype} and {w.dtype}"
    overall = max([_largest(w) for w in want], default=0.0)
    for n, (g, w) in enumerate(zip(got, want, strict=True)):
        scale = max(_largest(w), SHARE * overall, 0.01)
        with np.errstate(invalid="ignore"):
            off = np.abs(g - w) / scale
        alike = (g == w) | (np.isnan(g) & np.isnan(w))
        off = np.where(alike, 0.0, np.where(np.isnan(off), np.inf, off))
        if np.max(off, initial=0.0) > tolerance:
            at = np.unravel_index(int(np.argmax(off)), off.shape)
            return f"off by {np.max(off):.1e} in result {n}{list(map(int, at))}: {g[at]:.12g} and {w[at]:.12g}"
    return ""


def _largest(x: Any) -> float:
    finite = np.abs(x[np.isfinite(x)])
    return float(np.max(finite, initial=0.0))


def _reacts(program: Program, got: Any) -> bool:
    """Whether a change of the last digits of the argument changes the result by nearly the allowed error, or more."""
    tolerance = _tolerance(program)
    rng = np.random.default_rng(0)
    scale = max([_largest(w) for w in _leaves(got)], default=0.0) + 0.01
    for _ in range(3):
        nudge = [(x * (1 + NUDGE[tolerance] * rng.uniform(-1, 1, x.shape))).astype(x.dtype) for x in program.inputs]
        moved = ours(program, as_argument(nudge))
        for a, b in zip(_leaves(moved), _leaves(got), strict=True):
            if not np.max(np.abs(a - b), initial=0) <= 0.3 * tolerance * scale:
                return True
    return False


def _rounded(program: Program, got: Any, want: list[Any]) -> bool:
    """Whether double precision agrees, and single precision cannot do better.

    This holds if funcgrad's result is near that in double precision, if JAX's result is about as far from double
    precision, or if JAX's rules give NumPy another result than they give XLA.
    """
    if _tolerance(program) == DOUBLE:
        return False
    wide = _in_double(program)
    mine = _leaves(ours(wide, wide.point))
    if _difference(wide, mine, _leaves(theirs(wide, evaluated)), dtypes=True):
        return False
    if not _difference(program, _leaves(got), mine, dtypes=False):
        return True
    if _farthest(_leaves(got), mine) <= 3.0 * _farthest(want, mine):
        return True
    return bool(_difference(program, _leaves(theirs(program, evaluated)), want, dtypes=False))


def _farthest(got: list[Any], exact: list[Any]) -> float:
    return max([float(np.max(np.abs(g - x), initial=0.0)) for g, x in zip(got, exact, strict=True)], default=0.0)


@contextmanager
def _limited() -> Iterator[None]:
    """Raise an error after some processor time, since the process may have to wait for others."""

    def stop(*_: Any) -> None:
        raise TooSlowError

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
