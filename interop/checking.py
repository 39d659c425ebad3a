"""The cross-check: funcgrad's derivatives against JAX's and against a numerical referee."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, ParamSpec

import numpy as np

from funcgrad.errors import InputError
from funcgrad.interop.divergences import known
from funcgrad.interop.lift import lifted
from funcgrad.interop.optional import double_precision, import_jax
from funcgrad.interop.report import ALONE, CrossCheck, Row
from funcgrad.transforms import jvp, vjp
from funcgrad.transforms.problem import Leaves, Problem, random_like
from funcgrad.transforms.referee import Measured, Referee
from funcgrad.transforms.transformed import Transformed, check_callable, name_of

__all__ = ["crosscheck"]

P = ParamSpec("P")

SAFETY = 10.0  # how far beyond its own error estimate the referee may be off
UNSURE = 1e-2  # a referee that may be off by so much, relatively, has nothing to say
SHARE = 1e-3  # a leaf is judged by the largest derivative in it, or by this share of the largest in any


class _Options(NamedTuple):
    order: int
    argnums: Any
    has_aux: bool
    rtol: float
    atol: float
    seed: int


def crosscheck(
    fun: Callable[P, Any],
    *,
    order: int = 2,
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    rtol: float = 1e-9,
    atol: float = 1e-12,
    seed: int = 0,
) -> Callable[P, CrossCheck]:
    """Check the derivatives of ``fun`` against JAX's and against numerical ones, in double precision.

    Compared are the value; the gradient, or for results other than one real number a pullback of random
    cotangents; the derivative along a random direction in forward mode; and with ``order=2`` the product
    of the Hessian with that direction. JAX differentiates the same function by its own rules: the function
    may be written with plain NumPy, ``funcgrad.numpy``, pipelines or funcgrad's transforms. The referee
    knows values of the function only: complex steps where the function is analytic, extrapolated
    differences elsewhere.

    Args:
        fun: a pure function of arrays, numbers or pytrees, returning such.
        order: 1 or 2.
        argnums: the positional arguments to differentiate; None for every floating leaf of all of them.
            Other leaves and keyword arguments are passed through.
        has_aux: whether ``fun`` returns a pair ``(result, aux)``; aux is left out.
        rtol: the largest error allowed, relative to the largest entry of a derivative. Where the referee is
            concerned, ten times its own error estimate is allowed besides.
        atol: the largest absolute error allowed besides.
        seed: of the random directions and cotangents.

    Returns:
        A function of the same arguments whose result is a ``CrossCheck``: a report with a row for each
        quantity and leaf, true when all is well. A row in which the referee alone disagrees is well where
        the function has a kink, and is not where it is smooth: then both libraries miss a part of the
        derivative, as behind ``stop_gradient``.

    Raises:
        MissingExtraError: JAX is not installed (an ``ImportError``).
        InputError: nothing to differentiate, another order (a ``TypeError``).

    Example:
        >>> import numpy as np
        >>> from funcgrad.interop import crosscheck
        >>> crosscheck(lambda x: np.sum(np.sin(x) * x))(np.array([0.5, 1.0]))
        <CrossCheck of <lambda>: OK: 4 quantities agree to 1e-09.>
    """
    check_callable("crosscheck", fun)
    if order not in (1, 2):
        raise InputError(f"crosscheck: order must be 1 or 2, got {order!r}. Check derivatives of derivatives.")
    if not (rtol > 0 and atol >= 0):
        raise InputError(f"crosscheck: rtol must be positive, got rtol={rtol!r}, atol={atol!r}.")
    options = _Options(order, argnums, has_aux, rtol, atol, seed)
    return Transformed(run_crosscheck, fun, options, "A cross-check of {fun}, with a report as the result.")


def run_crosscheck(fun: Callable[..., Any], options: _Options, args: Any, kwargs: Any) -> CrossCheck:
    """What a ``crosscheck`` does when it is called."""
    jax = import_jax("crosscheck")
    problem = Problem(fun, args, kwargs, options.argnums, has_aux=options.has_aux)
    rng = np.random.default_rng(options.seed)
    directions = [random_like(rng, x) for x in problem.point]
    cts = [1.0] if problem.scalar else [random_like(rng, np.ones_like(y)) for y in problem.value]
    ours = _derivatives(problem, vjp, jvp, problem.point, directions, cts, options.order)
    notes: list[str] = []
    with double_precision(jax):
        theirs = _jax_derivatives(jax, problem, directions, cts, options.order, notes)
    referee = _Measurements(problem, directions, cts, options.order)
    judge = _Judge(options.rtol, options.atol, bool(notes))
    rows = judge.values(problem.result_paths, ours[0], theirs[0], problem.value)
    names = ("gradient" if problem.scalar else "vjp", "jvp", "hvp")
    paths = (problem.paths, problem.result_paths, problem.paths)
    weights = (directions, cts, directions)
    for kind, name in enumerate(names[: options.order + 1]):
        kink = partial(referee.kink, kind)
        both = ours[kind + 1], theirs[kind + 1]
        rows += judge.derivatives(name, paths[kind], *both, weights[kind], referee.found[kind], kink)
    methods = tuple(dict.fromkeys(m.method for found in referee.found for m in found))
    return CrossCheck(name_of(fun), tuple(rows), options.rtol, methods, tuple(dict.fromkeys(notes)))


def _derivatives(
    fun: Callable[..., Any], vjp: Any, jvp: Any, point: Leaves, directions: Leaves, cts: Leaves, order: int
) -> list[Leaves]:
    """Value, cotangents, tangents and Hessian-vector products of ``fun`` by the transforms of one library."""

    def pulled(*leaves: Any) -> tuple[Leaves, tuple[Any, ...]]:
        outs, pullback = vjp(fun, *leaves)
        return outs, tuple(pullback([_as_dtype(ct, out) for ct, out in zip(cts, outs, strict=True)]))

    def gradients(*leaves: Any) -> tuple[Any, ...]:
        return pulled(*leaves)[1]

    outs, gradient = pulled(*point)
    tangents = jvp(fun, tuple(point), tuple(directions))[1]
    found = [outs, gradient, tangents]
    if order == 2:
        found.append(jvp(gradients, tuple(point), tuple(directions))[1])
    return [[np.asarray(leaf) for leaf in leaves] for leaves in found]


def _as_dtype(ct: Any, out: Any) -> Any:
    return np.asarray(ct).astype(out.dtype if hasattr(out, "dtype") else type(out))


def _jax_derivatives(
    jax: Any, problem: Problem, directions: Leaves, cts: Leaves, order: int, notes: list[str]
) -> list[Leaves]:
    """The same of JAX, which sees the function through a lift."""

    def watch(primitive: Any, values: Any, params: Any) -> None:
        notes.extend(known(primitive, values, params))

    point, ways = [[jax.numpy.asarray(x) for x in leaves] for leaves in (problem.point, directions)]
    try:
        lifted(jax, problem, watch)(*point)
        return _derivatives(lifted(jax, problem), jax.vjp, jax.jvp, point, ways, cts, order)
    except Exception as error:
        error.add_note(f"crosscheck: raised while JAX ran {name_of(problem.fun)}.")
        raise


class _Measurements:
    """What the referee measures: for cotangents, tangents and Hessian-vector products an entry per leaf."""

    def __init__(self, problem: Problem, directions: Leaves, cts: Leaves, order: int) -> None:
        def each(leaves: Leaves) -> np.ndarray:
            return np.array([_paired(ct, out) for ct, out in zip(cts, problem(*leaves), strict=True)])

        def total(leaves: Leaves) -> np.ndarray:
            return np.array([np.sum(each(leaves))])

        def _paired(ct: Any, out: Any) -> Any:
            paired = np.sum(np.multiply(ct, out))
            return paired if problem.real else paired.real

        self.whole = Referee(total, problem.point, real=problem.real)
        self.parts = Referee(each, problem.point, real=problem.real)
        self.directions = directions
        self.along = [_only(i, directions) for i in range(len(directions))]
        first = [self.whole.first(direction) for direction in self.along]
        self.pushed = self.parts.first(directions)
        tangents = [
            Measured(value, error, jump, self.pushed.method)
            for value, error, jump in zip(*self.pushed[:3], strict=True)
        ]
        self.found = [first, tangents]
        if order == 2:
            pairs = zip(self.along, first, strict=True)
            self.found.append([self.whole.second(one, directions, slope) for one, slope in pairs])

    def kink(self, kind: int, number: int) -> bool:
        """Whether there is no derivative where one was measured."""
        measured = self.found[kind][number]
        if np.any(measured.jump):
            return True
        if kind == 1:
            return self.parts.bends(self.directions, self.pushed)
        return self.whole.bends(self.along[number], measured, self.directions if kind == 2 else None)


def _only(i: int, directions: Leaves) -> Leaves:
    return [t if i == j else np.zeros_like(t) for j, t in enumerate(directions)]


class _Judge:
    """Turns numbers into rows."""

    def __init__(self, rtol: float, atol: float, noted: bool) -> None:
        self.rtol = rtol
        self.floor = atol / rtol
        self.noted = noted

    def values(self, paths: list[str], ours: Leaves, theirs: Leaves, plain: Leaves) -> list[Row]:
        """A row per leaf of the result; the referee is plain NumPy."""
        rows = []
        for path, a, b, c in zip(paths, ours, theirs, plain, strict=True):
            scale = max(_largest(x) for x in (a, b, c)) + self.floor
            errors = (_error(a, b, scale), _error(a, c, scale), _error(b, c, scale))
            rows.append(self._row("value", path, errors, 0.0, lambda: False))
        return rows

    def derivatives(
        self,
        what: str,
        paths: list[str],
        ours: Leaves,
        theirs: Leaves,
        weights: Leaves,
        measured: list[Measured],
        kink: Callable[[int], bool],
    ) -> list[Row]:
        """A row per leaf; the referee knows the sum of its entries times ``weights``."""
        triples = list(zip(ours, theirs, weights, strict=True))
        sizes = [max(_largest(a), _largest(b)) for a, b, _ in triples]
        spans = [max(_largest(np.sum(np.abs(x * w))) for x in (a, b)) for a, b, w in triples]
        rows = []
        for i, (a, b, w) in enumerate(triples):
            scale = max(sizes[i], SHARE * max(sizes)) + self.floor
            wide = max(spans[i], SHARE * max(spans)) + self.floor
            off = float(np.max(measured[i].error)) / wide
            against = np.nan, np.nan
            if SAFETY * off <= UNSURE:
                reference = np.sum(measured[i].value)
                mine, other = [_error(np.sum(x * w).real, reference, wide) for x in (a, b)]
                against = mine, other
            rows.append(self._row(what, paths[i], (_error(a, b, scale), *against), off, partial(kink, i)))
        return rows

    def _row(
        self, what: str, path: str, errors: tuple[float, float, float], off: float, kink: Callable[[], bool]
    ) -> Row:
        """The verdict: who stands alone."""
        slack = self.rtol + SAFETY * off
        together, ours, theirs = errors[0] <= self.rtol, errors[1] <= slack, errors[2] <= slack
        measured = errors[1] == errors[1]
        fine = ours or theirs if together else ours and theirs
        remark = ", a kink" if measured and not fine and kink() else ""
        if not measured:
            verdict = ("agree" if together else "funcgrad and JAX differ") + ", no referee"
        elif together:
            verdict = "agree" if ours or theirs else ALONE.format("referee") + remark
        elif ours and theirs:
            verdict = "funcgrad and JAX differ"  # by less than the referee can tell
        else:
            verdict = (ALONE.format("JAX") if ours else ALONE.format("funcgrad") if theirs else "all differ") + remark
        good = together and bool(ours or theirs or remark or not measured)
        if not together and not theirs and self.noted and (ours or remark or not measured):
            verdict, good = verdict + ", a known divergence", True
        return Row(what, path, *errors, off if measured else np.nan, verdict, good)


def _largest(x: Any) -> float:
    finite = np.abs(x)[np.isfinite(x)] if np.ndim(x) else np.abs(x)
    largest = float(np.max(finite, initial=0.0))
    return largest if np.isfinite(largest) else 0.0


def _error(a: Any, b: Any, scale: float) -> float:
    """The largest difference relative to ``scale``; infinities and nans agree with their like only."""
    if np.shape(a) != np.shape(b):
        return np.inf
    with np.errstate(invalid="ignore"):
        off = np.abs(np.subtract(a, b)) / scale
    alike = np.equal(a, b) | (np.isnan(a) & np.isnan(b))
    off = np.where(alike, 0.0, np.where(np.isnan(off), np.inf, off))
    return float(np.max(off, initial=0.0))
