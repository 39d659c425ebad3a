"""Verdicts: which of funcgrad, JAX and the referee is the outlier, and by how much."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from funcgrad.errors import BranchError, ConcretizationError, NotDifferentiableError, StagingError
from funcgrad.interop.crosschecks.report import ALONE, Row, without_numbers
from funcgrad.transforms.checking import Leaves
from funcgrad.transforms.referee import Measured

SAFETY = 10.0  # factor by which the referee's error may exceed its own estimate
MAX_REFEREE_ERROR = 1e-2  # largest relative error estimate, times ``SAFETY``, at which the referee counts
LEAF_SCALE_SHARE = 1e-3  # a leaf is judged by its largest derivative, or by this share of the largest in any leaf
SINGLE_TOLERANCE = 1e-4  # error allowed in single precision, whose rounding is 6e-8
KNOWN_SUFFIX = ", a known divergence"
WORSE_FACTOR = 10.0  # of two errors that are too large, one that is larger by this factor is worse

#: Errors of functions that branch on values, which cannot be batched or compiled.
VALUE_DEPENDENT_ERRORS = (ConcretizationError, StagingError, BranchError, NotDifferentiableError)


class Judge(NamedTuple):
    """Conversion of errors to rows with verdicts.

    Attributes:
        rtol: the relative error allowed.
        atol: the absolute error allowed in addition.
        has_known_divergence: whether the run had a known divergence of JAX.
    """

    rtol: float
    atol: float
    has_known_divergence: bool

    @property
    def floor(self) -> float:
        """Size below which numbers are compared absolutely."""
        return self.atol / self.rtol

    def plain(
        self, what: str, paths: list[str], funcgrad: Leaves, jax: Any, expected: Leaves, share: float = 0.0
    ) -> list[Row]:
        """Return a row per leaf if every entry is known; ``jax`` may be None."""
        triples = list(zip(funcgrad, jax or [None] * len(funcgrad), expected, strict=True))
        scales = self._scales([max(map(_largest, triple)) for triple in triples], share)
        return [
            self._row(what, path, _errors(*triple, scale), 0.0, lambda: False)
            for path, triple, scale in zip(paths, triples, scales, strict=True)
        ]

    def derivatives(
        self,
        what: str,
        paths: list[str],
        funcgrad: Leaves,
        jax: Any,
        weights: Leaves,
        measured: list[Measured],
        kink: Callable[[int], bool],
    ) -> list[Row]:
        """Return a row per leaf; the referee knows the sum of the leaf's entries times ``weights``."""
        triples = list(zip(funcgrad, jax or [None] * len(funcgrad), weights, strict=True))
        scales = self._scales([max(_largest(a), _largest(b)) for a, b, _ in triples])
        wides = self._scales(
            [max(_largest(_total(np.abs(x), np.abs(w))) for x in (a, b) if x is not None) for a, b, w in triples]
        )
        rows = []
        for i, ((a, b, w), scale, wide) in enumerate(zip(triples, scales, wides, strict=True)):
            off = float(np.max(measured[i].error)) / wide
            against = np.nan, np.nan
            if SAFETY * off <= MAX_REFEREE_ERROR:
                reference = np.sum(measured[i].value)
                mine, other = [None if x is None else _total(x, w).real for x in (a, b)]
                against = _error(mine, reference, wide), _error(other, reference, wide)
            rows.append(self._row(what, paths[i], (_error(a, b, scale), *against), off, partial(kink, i)))
        return rows

    def singles(
        self, what: str, paths: list[str], funcgrad: Leaves, jax: Any, exact: Leaves, moved: Leaves, dtypes: Any
    ) -> list[Row]:
        """Return a row per leaf of a quantity computed in single precision.

        Args:
            what: the quantity.
            paths: names of the leaves.
            funcgrad: funcgrad's leaves.
            jax: JAX's leaves, or None.
            exact: the leaves in double precision.
            moved: the leaves at a point one rounding away, which shows the effect of rounding the arguments.
            dtypes: required dtypes of funcgrad's leaves; None if the function returns a Python number, as ``math.sin``.
        """
        rows = []
        leaves = zip(paths, funcgrad, jax or [None] * len(funcgrad), exact, moved, dtypes, strict=True)
        for (path, a, b, c, m, dtype), scale in zip(leaves, self._scales(list(map(_largest, exact))), strict=True):
            errors, off = _errors(a, b, c, scale), _error(m, c, scale)
            verdict, good = "not compared, too sensitive to rounding", True
            if SAFETY * off <= MAX_REFEREE_ERROR:
                verdict, good = _single_verdict(errors, SINGLE_TOLERANCE + SAFETY * off)
            if dtype is not None and a.dtype != dtype:
                verdict, good = f"funcgrad gives {a.dtype}, not {dtype}", False
            rows.append(Row(what, path, *errors, off, verdict, good))
        return rows

    def _scales(self, sizes: list[float], share: float = LEAF_SCALE_SHARE) -> list[float]:
        """Return what errors are relative to, for leaves with these largest entries."""
        return [max(size, share * max(sizes)) + self.floor for size in sizes]

    def error_row(self, what: str, funcgrad: Any, jax: Any) -> Row:
        """Return the row of a quantity for which funcgrad, or both libraries, raised an error."""
        name = type(funcgrad).__name__
        both = isinstance(funcgrad, VALUE_DEPENDENT_ERRORS) and isinstance(jax, Exception)
        verdict = f"not compared, both refuse: {name}" if both else f"funcgrad raises {name}"
        return without_numbers(what, "result", verdict, both)

    def _row(
        self, what: str, path: str, errors: tuple[float, float, float], off: float, kink: Callable[[], bool]
    ) -> Row:
        """Return the row with the verdict, which names the outlier."""
        slack = self.rtol + SAFETY * off
        libraries_agree, funcgrad_agrees, jax_agrees = errors[0] <= self.rtol, errors[1] <= slack, errors[2] <= slack
        measured = errors[1] == errors[1]
        without_jax = errors[0] != errors[0]
        fine = (
            funcgrad_agrees
            if without_jax
            else funcgrad_agrees or jax_agrees
            if libraries_agree
            else funcgrad_agrees and jax_agrees
        )
        remark = ", a kink" if measured and not fine and kink() else ""
        if without_jax:
            return self._without_jax(what, path, errors, off, remark)
        if not measured:
            verdict = ("agree" if libraries_agree else "funcgrad and JAX differ") + ", no referee"
        elif libraries_agree:
            verdict = "agree" if funcgrad_agrees or jax_agrees else ALONE.format("referee") + remark
        elif funcgrad_agrees and jax_agrees:
            verdict = "funcgrad and JAX differ"  # by less than the referee can resolve
        else:
            verdict = (
                ALONE.format("JAX") if funcgrad_agrees else ALONE.format("funcgrad") if jax_agrees else "all differ"
            ) + remark
        good = libraries_agree and bool(funcgrad_agrees or jax_agrees or remark or not measured)
        # at a kink the referee, which takes the mean, is no judge
        is_excusable = bool(remark) or (not jax_agrees and (funcgrad_agrees or not measured))
        if self.has_known_divergence and not libraries_agree and is_excusable:
            verdict, good = verdict + KNOWN_SUFFIX, True
        return Row(what, path, *errors, off if measured else np.nan, verdict, good)

    def _without_jax(self, what: str, path: str, errors: tuple[float, float, float], off: float, remark: str) -> Row:
        """Return the row with the verdict of a quantity that JAX does not compute."""
        if errors[1] != errors[1]:
            return without_numbers(what, path, "not compared, without JAX, no referee", True)
        good = errors[1] <= self.rtol + SAFETY * off
        verdict = "agree" if good else "funcgrad and the referee differ" + remark
        return Row(what, path, *errors, off, f"{verdict}, without JAX", good or bool(remark))


def _single_verdict(errors: tuple[float, float, float], slack: float) -> tuple[str, bool]:
    _, funcgrad, jax = errors
    if funcgrad <= slack:
        return ("agree, JAX loses digits" if jax > slack else "agree"), True
    if jax <= slack or jax != jax:
        return ALONE.format("funcgrad"), False
    if funcgrad > WORSE_FACTOR * jax:
        return "funcgrad loses more digits", False
    return "agree, both lose digits", True


def _total(x: Any, weights: Any) -> Any:
    return np.sum(np.multiply(x, weights))


def _largest(x: Any) -> float:
    if x is None:
        return 0.0
    finite = np.abs(x)[np.isfinite(x)] if np.ndim(x) else np.abs(x)
    largest = float(np.max(finite, initial=0.0))
    return largest if np.isfinite(largest) else 0.0


def _errors(a: Any, b: Any, c: Any, scale: float) -> tuple[float, float, float]:
    return _error(a, b, scale), _error(a, c, scale), _error(b, c, scale)


def _error(a: Any, b: Any, scale: float) -> float:
    """Return the largest difference relative to ``scale``; an infinity or nan agrees only with an equal one.

    The result is nan if ``a`` or ``b`` is None.
    """
    if a is None or b is None:
        return np.nan
    if np.shape(a) != np.shape(b):
        return np.inf
    with np.errstate(all="ignore"):
        off = np.abs(np.subtract(a, b)) / scale
    alike = np.equal(a, b) | (np.isnan(a) & np.isnan(b))
    off = np.where(alike, 0.0, np.where(np.isnan(off), np.inf, off))
    return float(np.max(off, initial=0.0))
