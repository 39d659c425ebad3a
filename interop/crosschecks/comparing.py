"""Comparison of a function's values and derivatives, kind by kind: by funcgrad, by JAX and by the referee.

All quantities are computed by ``Library.vjp``, ``jvp`` and ``vmap``, which funcgrad and JAX both have, so one
definition of a quantity serves both libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from funcgrad.errors import StagingError
from funcgrad.interop.crosschecks.judging import KNOWN_SUFFIX, LEAF_SCALE_SHARE, Judge
from funcgrad.interop.crosschecks.report import Row, without_numbers
from funcgrad.interop.jax.lift import lifted
from funcgrad.transforms import jvp, vjp, vmap
from funcgrad.transforms.checking import Leaves, random_like
from funcgrad.transforms.referee import Measured, Referee

#: Kinds that may be compared in addition to value, reverse mode, forward mode and second order.
ALSO = ("vmap", "jit", "float32")
KINDS = ("value", "reverse", "forward", "second", *ALSO)
COPIES = 3  # number of examples in a batch
EXAMPLE_DISTANCE = 1e-3  # relative distance between the examples, far above any tolerance

#: Leaves of each quantity, or the error that was raised instead, by the name of the quantity.
Answers: TypeAlias = dict[str, Any]
#: Names of quantities, with the function that computes them together.
Computations: TypeAlias = Iterator[tuple[tuple[str, ...], Callable[[], Sequence[Leaves]]]]

#: XLA's options for programs that run once: compilation takes a tenth of the time, results are the same.
QUICK = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}
#: XLA's option that stops it from simplifying (c + x) - c to x, which would hide a loss of digits. JAX supports the
#: option from the version ``AS_WRITTEN_FROM`` on.
AS_WRITTEN = {"xla_disable_hlo_passes": "algsimp"}
AS_WRITTEN_FROM = (0, 10)


class Library(NamedTuple):
    """Transforms of one library."""

    vjp: Callable[..., Any]
    jvp: Callable[..., Any]
    vmap: Callable[..., Any]


FUNCGRAD = Library(vjp, jvp, vmap)


class Subject(Protocol):
    """Function of leaves to be compared, as funcgrad runs it, with the point at which it is compared.

    Attributes:
        point: the leaves, in double precision.
        paths: names of the leaves.
        result_paths: names of the result's leaves.
        value: the result's leaves, as plain NumPy computes them.
    """

    point: Leaves
    paths: list[str]
    result_paths: list[str]
    value: Leaves

    @property
    def real(self) -> bool:
        """Whether no number is complex."""

    @property
    def scalar(self) -> bool:
        """Whether the result is one real number."""

    def __call__(self, *leaves: Any) -> Leaves:
        """Return the leaves of the result for other leaves."""


class Inputs(NamedTuple):
    """Points and directions at which a function is evaluated.

    Attributes:
        point: the leaves.
        tangents: the direction of forward mode and of second order.
        copies: a batch of points around ``point``.
        single: the point in single precision.
        single_tangents: the direction in single precision.
    """

    point: Leaves
    tangents: Leaves
    copies: Leaves
    single: Leaves
    single_tangents: Leaves


def inputs_of(rng: np.random.Generator, point: Leaves, tangents: Leaves) -> Inputs:
    """Return the points and directions that belong to ``point``."""
    copies = [np.stack([x + i * EXAMPLE_DISTANCE * random_like(rng, x) for i in range(COPIES)]) for x in point]
    with np.errstate(all="ignore"):
        single, single_tangents = [[_single(x) for x in leaves] for leaves in (point, tangents)]
    return Inputs(point, tangents, copies, single, single_tangents)


def _cast(x: Any, real: type, complex_: type) -> Any:
    found: Any = np.asarray(x).astype(complex_ if np.iscomplexobj(x) else real)
    return found if found.shape else found[()]


_single, _double = [
    partial(_cast, real=a, complex_=b) for a, b in ((np.float32, np.complex64), (np.float64, np.complex128))
]


def value_and_cotangents(
    library: Library, fun: Callable[..., Leaves], cts: Leaves
) -> Callable[..., tuple[Leaves, Leaves]]:
    """Return the function that computes the result of ``fun`` and the cotangents of its arguments."""

    def both(*leaves: Any) -> tuple[Leaves, Leaves]:
        outs, pullback = library.vjp(fun, *leaves)
        return list(outs), list(pullback([_as_dtype(ct, out) for ct, out in zip(cts, outs, strict=True)]))

    return both


def _as_dtype(ct: Any, out: Any) -> Any:
    return np.asarray(ct).astype(out.dtype if hasattr(out, "dtype") else type(out))


def computations(
    library: Library, fun: Callable[..., Leaves], at: Inputs, cts: Leaves, kinds: Collection[str]
) -> Computations:
    """Yield the functions that compute the quantities; quantities that share work are computed together."""
    both = value_and_cotangents(library, fun, cts)
    if {"value", "reverse"} & {*kinds}:
        yield ("value", "reverse"), lambda: both(*at.point)
    if "forward" in kinds:
        yield ("forward",), lambda: library.jvp(fun, tuple(at.point), tuple(at.tangents))[1:]
    if "second" in kinds:
        yield ("second",), lambda: library.jvp(lambda *x: both(*x)[1], tuple(at.point), tuple(at.tangents))[1:]
    if "vmap" in kinds:
        yield ("vmap value", "vmap reverse"), lambda: library.vmap(both)(*at.copies)
    if "float32" in kinds:
        yield ("float32 value", "float32 reverse"), lambda: both(*at.single)
        yield (("float32 forward",), lambda: library.jvp(fun, tuple(at.single), tuple(at.single_tangents))[1:])


def evaluate(computations: Iterable[Any], failed: Answers) -> Answers:
    """Return the computed quantities; put errors into ``failed``."""
    found: Answers = {}
    for names, compute in computations:
        try:
            found.update(zip(names, compute(), strict=True))
        except Exception as error:  # a quantity that cannot be computed must not hide the others
            failed.update(dict.fromkeys(names, error))
    return found


def funcgrad_answers(subject: Subject, at: Inputs, cts: Leaves, kinds: Collection[str]) -> Answers:
    """Return funcgrad's answers."""
    failed: Answers = {}
    with np.errstate(all="ignore"):
        found = evaluate(computations(FUNCGRAD, subject, at, cts, kinds), failed)
    return {**failed, **_as_numpy(found)}


def jax_answers(
    jax: Any,
    subject: Subject,
    fun: Callable[..., Leaves],
    at: Inputs,
    cts: Leaves,
    kinds: Collection[str],
    *,
    jitted: bool = True,
) -> Answers:
    """Return JAX's answers for ``fun``, and compiled ones: "jit ..." by JAX's rules, "own jit ..." by funcgrad's.

    Args:
        jax: the JAX module.
        subject: the function that funcgrad differentiates.
        fun: the function that JAX differentiates.
        at: points and directions.
        cts: cotangents of the results.
        kinds: some of ``KINDS``.
        jitted: whether ``jax.jit`` compiles the "jit ..." quantities in the ordinary way. Otherwise all quantities
            are one program that XLA compiles with ``QUICK`` options, since it runs once. Quantities that cannot be
            compiled run operation by operation.
    """
    at = Inputs(*[[jax.numpy.asarray(x) for x in leaves] for leaves in at])
    library = Library(jax.vjp, jax.jvp, jax.vmap)
    lift, plain, own = [lifted(jax, each) for each in (fun, subject, value_and_cotangents(FUNCGRAD, subject, cts))]

    def uncompiled(at: Inputs) -> Computations:
        yield ("value",), lambda: (lift(*at.point),)  # also if there is no derivative
        yield from computations(library, lift, at, cts, kinds)

    def compiled(at: Inputs) -> Computations:
        if jitted:
            yield ("jit value",), lambda: (lift(*at.point),)
            yield ("jit value", "jit reverse"), lambda: value_and_cotangents(library, lift, cts)(*at.point)
        yield ("own jit value",), lambda: (plain(*at.point),)
        yield ("own jit value", "own jit reverse"), lambda: own(*at.point)

    if not jitted:
        found = _compiled(
            jax, lambda at: [*uncompiled(at), *(compiled(at) if "jit" in kinds else ())], at, options=QUICK
        )
        if not any(isinstance(error, StagingError) for error in found.values()):
            return {**found, **{f"jit {name}": found[name] for name in ("value", "reverse") if name in found}}
        return {**found, **jax_answers(jax, subject, fun, at, cts, kinds)}
    return {**_compiled_if_possible(jax, uncompiled, at), **(_compiled(jax, compiled, at) if "jit" in kinds else {})}


def _compiled_if_possible(jax: Any, computations: Callable[[Inputs], Iterable[Any]], at: Inputs) -> Answers:
    """Return the answers of ``computations(at)``: compiled if all can be, else computed operation by operation."""
    if jax.__version_info__ >= AS_WRITTEN_FROM:
        with suppress(Exception):  # a function may fail inside ``jax.jit`` only
            found = _compiled(jax, computations, at, options={**QUICK, **AS_WRITTEN})
            if not any(isinstance(answer, Exception) for answer in found.values()):
                return found
    failed: Answers = {}
    return {**_as_numpy(evaluate(computations(at), failed)), **failed}


def _compiled(jax: Any, computations: Callable[[Inputs], Iterable[Any]], at: Inputs, *, options: Any = None) -> Answers:
    """Return the answers of ``computations(at)`` as one program, compiled with XLA's ``options`` if XLA knows them."""
    failed: Answers = {}
    lowered = jax.jit(lambda at: evaluate(computations(at), failed)).lower(at)
    try:
        program = lowered.compile(compiler_options=options)
    except Exception:  # an XLA that does not know these options; any other error is raised again below
        program = lowered.compile()
    return {**failed, **_as_numpy(program(at))}


def _as_numpy(answers: Answers) -> Answers:
    return {name: [np.asarray(leaf) for leaf in leaves] for name, leaves in answers.items()}


def loop_answers(subject: Subject, at: Inputs, cts: Leaves) -> Answers:
    """Return the answers that ``vmap`` must give: funcgrad's results for each example, stacked."""
    both = value_and_cotangents(FUNCGRAD, subject, cts)
    rows = [both(*[copies[i] for copies in at.copies]) for i in range(COPIES)]
    values, reverse = [[np.stack(leaves) for leaves in zip(*part, strict=True)] for part in zip(*rows, strict=True)]
    return {"vmap value": values, "vmap reverse": reverse}


#: Relative change of a number by the rounding of its arguments to single precision.
ROUNDING = float(np.finfo(np.float32).eps)


class Directions(NamedTuple):
    """Directions in which derivatives are taken.

    Attributes:
        tangents: the direction of forward mode and of second order.
        weights: weights with which the entries of a cotangent are summed for the referee.
        cts: cotangents of the results.
    """

    tangents: Leaves
    weights: Leaves
    cts: Leaves


def random_directions(rng: np.random.Generator, subject: Subject) -> Directions:
    """Return random directions; for a scalar function the cotangent is 1, which gives the gradient."""
    directions = [random_like(rng, x) for x in subject.point]
    cts = [1.0] if subject.scalar else [random_like(rng, np.ones_like(y)) for y in subject.value]
    return Directions(directions, directions, cts)


class Measurements:
    """The referee's measurements: an entry per leaf for cotangents, tangents and Hessian-vector products.

    Args:
        subject: the function.
        directions: directions in which derivatives are measured.
    """

    def __init__(self, subject: Subject, directions: Directions) -> None:
        self.tangents, weights, cts = directions

        def each(leaves: Leaves) -> np.ndarray:
            return np.array([_paired(ct, out) for ct, out in zip(cts, subject(*leaves), strict=True)])

        def total(leaves: Leaves) -> np.ndarray:
            return np.array([np.sum(each(leaves))])

        def _paired(ct: Any, out: Any) -> Any:
            paired = np.sum(np.multiply(ct, out))
            return paired if subject.real else paired.real

        self.total_referee = Referee(total, subject.point, real=subject.real)
        self.leaf_referee = Referee(each, subject.point, real=subject.real)
        self.along = [[t if i == j else np.zeros_like(t) for j, t in enumerate(weights)] for i in range(len(weights))]
        self._by_kind: dict[str, list[Measured]] = {}

    def of_kind(self, kind: str) -> list[Measured]:
        """Return the measurements of "reverse", "forward" or "second"."""
        if kind not in self._by_kind:
            self._by_kind[kind] = getattr(self, f"_{kind}")()
        return self._by_kind[kind]

    def kink(self, kind: str, number: int) -> bool:
        """Return whether the function has a kink where the derivative was measured."""
        measured = self.of_kind(kind)[number]
        if np.any(measured.jump):
            return True
        if kind == "forward":
            return self.leaf_referee.has_kink(self.tangents, self._forward_measured)
        return self.total_referee.has_kink(self.along[number], measured, self.tangents if kind == "second" else None)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods that were used."""
        return tuple(dict.fromkeys(m.method for found in self._by_kind.values() for m in found))

    def _reverse(self) -> list[Measured]:
        return [self.total_referee.first_derivative(direction) for direction in self.along]

    def _forward(self) -> list[Measured]:
        self._forward_measured = self.leaf_referee.first_derivative(self.tangents)
        method = self._forward_measured.method
        return [Measured(*entry, method) for entry in zip(*self._forward_measured[:3], strict=True)]

    def _second(self) -> list[Measured]:
        pairs = zip(self.along, self.of_kind("reverse"), strict=True)
        return [self.total_referee.second_derivative(one, self.tangents, slope) for one, slope in pairs]


class Comparison:
    """Comparison of funcgrad, JAX and the referee for one function.

    Args:
        jax: the JAX module.
        subject: the function for funcgrad and the referee.
        directions: directions in which derivatives are taken.
        kinds: kinds to compare, some of ``KINDS``.
        rng: generator that chooses points around ``subject.point``.
        fun: the function for JAX, if it is not ``subject``.
        jitted: see ``jax_answers``.

    Attributes:
        funcgrad_answers: funcgrad's answers, or the errors that it raised.
        jax_answers: JAX's answers, or the errors that it raised.
    """

    def __init__(
        self,
        jax: Any,
        subject: Subject,
        directions: Directions,
        kinds: Collection[str],
        rng: np.random.Generator,
        *,
        fun: Callable[..., Leaves] | None = None,
        jitted: bool = True,
    ) -> None:
        self.subject, self.directions, self.kinds = subject, directions, kinds
        self.at = inputs_of(rng, subject.point, directions.tangents)
        self.signs = [rng.choice([-1.0, 1.0], np.shape(x)) for x in subject.point]
        needed = {*kinds, *(("value",) if {"jit", "reverse"} & {*kinds} else ())}
        self.funcgrad_answers: Answers = funcgrad_answers(subject, self.at, directions.cts, needed)
        self.jax_answers: Answers = jax_answers(
            jax, subject, fun or subject, self.at, directions.cts, needed, jitted=jitted
        )
        self.measured = Measurements(subject, directions)
        self.differing_kinds: set[str] = set()  # kinds where JAX differs; JAX is left out when these are compared again

    def rows(self, kind: str, judge: Judge) -> list[Row]:
        """Return the rows of one kind."""
        others = {"value": self._value, "vmap": self._vmap, "jit": self._jit, "float32": self._float32}
        found = others[kind](judge) if kind in others else self._derivatives(kind, judge)
        if any(not row.funcgrad_jax <= judge.rtol for row in found):
            self.differing_kinds.add(kind)
        return found

    @property
    def _name(self) -> str:
        return "gradient" if self.subject.scalar else "vjp"

    def _value(self, judge: Judge) -> list[Row]:
        mine, yours = self.funcgrad_answers["value"], self.jax_answers["value"]
        return self._plain("value", "value", mine, yours, judge, self.subject.value)

    def _derivatives(self, kind: str, judge: Judge) -> list[Row]:
        what, paths, weights = {
            "reverse": (self._name, self.subject.paths, self.directions.weights),
            "forward": ("jvp", self.subject.result_paths, self.directions.cts),
            "second": ("hvp", self.subject.paths, self.directions.weights),
        }[kind]
        mine, other = self.funcgrad_answers[kind], self.jax_answers[kind]
        if isinstance(mine, Exception):
            return [judge.error_row(what, mine, other)]
        other = None if isinstance(other, Exception) else other
        measured = self.measured.of_kind(kind)
        return judge.derivatives(what, paths, mine, other, weights, measured, partial(self.measured.kink, kind))

    def _plain(self, what: str, kind: str, mine: Any, yours: Any, judge: Judge, expected: Any) -> list[Row]:
        if isinstance(mine, Exception):
            return [judge.error_row(what, mine, yours)]
        paths = self.subject.result_paths if kind == "value" else self.subject.paths
        share = 0.0 if kind == "value" else LEAF_SCALE_SHARE
        yours = None if isinstance(yours, Exception) or (kind in self.differing_kinds and what != "value") else yours
        return judge.plain(what, paths, mine, yours, expected, share)

    def _vmap(self, judge: Judge) -> list[Row]:
        """Compare batches; the referee is a loop."""
        with np.errstate(all="ignore"):
            try:
                expected = loop_answers(self.subject, self.at, self.directions.cts)
            except Exception as error:  # the function is not defined around the point
                return [_not_compared("vmap", "a loop", error)]
        rows = []
        for name, what in (("value", "vmap value"), ("reverse", f"vmap {self._name}")):
            key = f"vmap {name}"
            rows += self._plain(what, name, self.funcgrad_answers[key], self.jax_answers[key], judge, expected[key])
        return _merged_if_empty(rows)

    def _jit(self, judge: Judge) -> list[Row]:
        """Compare compiled results; the referee is funcgrad without compilation."""
        if "value" in self.differing_kinds:  # other values have other derivatives
            return [without_numbers("jit", "result", "not compared, the values on JAX differ", True)]
        rows = []
        for name, what in (("value", "jit value"), ("reverse", f"jit {self._name}")):
            mine = self.jax_answers[f"own jit {name}"]
            yours = self.jax_answers[f"jit {name}"]
            rows += self._plain(what, name, mine, yours, judge, self.funcgrad_answers[name])
        if judge.has_known_divergence:  # on JAX arrays funcgrad's rules use JAX's values
            known = [not row.ok and row.funcgrad_referee == row.funcgrad_referee for row in rows]
            pairs = zip(rows, known, strict=True)
            rows = [row._replace(verdict=row.verdict + KNOWN_SUFFIX, ok=True) if k else row for row, k in pairs]
        return _merged_if_empty(rows)

    def _float32(self, judge: Judge) -> list[Row]:
        """Compare single precision; the referee is double precision, at the point rounded to single precision."""
        subject, at = self.subject, self.at
        with np.errstate(all="ignore"):
            exact = [_double(x) for x in at.single]
            moved = [x * (1 + ROUNDING * sign) for x, sign in zip(exact, self.signs, strict=True)]
            try:
                double, shifted = [_answers(subject, at, point, self.directions.cts) for point in (exact, moved)]
                plain = subject(*at.single)
            except Exception as error:
                return [_not_compared("float32", "beside the point", error)]
        rows: list[Row] = []
        quantities = (
            ("value", "value", subject.result_paths, plain),
            ("reverse", self._name, subject.paths, at.single),
            ("forward", "jvp", subject.result_paths, plain),
        )
        for kind, name, paths, likes in quantities:
            mine, yours = self.funcgrad_answers[f"float32 {kind}"], self.jax_answers[f"float32 {kind}"]
            if isinstance(mine, Exception):
                rows.append(judge.error_row(f"float32 {name}", mine, yours))
                continue
            dtypes = [None if type(x) in (float, complex) else np.asarray(x).dtype for x in likes]
            yours = None if isinstance(yours, Exception) or kind in self.differing_kinds else yours
            rows += judge.singles(f"float32 {name}", paths, mine, yours, double[kind], shifted[kind], dtypes)
        return rows


def _answers(subject: Subject, at: Inputs, point: Leaves, cts: Leaves) -> Answers:
    """Return funcgrad's answers at ``point`` in double precision, for the single-precision directions."""
    outs, reverse = value_and_cotangents(FUNCGRAD, subject, cts)(*point)
    tangents = [_double(t) for t in at.single_tangents]
    return {"value": outs, "reverse": reverse, "forward": jvp(subject, tuple(point), tuple(tangents))[1]}


def _not_compared(what: str, where: str, error: Exception) -> Row:
    return without_numbers(what, "result", f"not compared, {where} raises {type(error).__name__}", True)


def _merged_if_empty(rows: list[Row]) -> list[Row]:
    """Return the rows, or a single row that says so if nothing was computed."""
    if all(row.funcgrad_referee != row.funcgrad_referee for row in rows):
        return [rows[0]._replace(what=rows[0].what.partition(" ")[0])]
    return rows
