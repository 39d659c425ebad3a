"""The integral of a function of one variable over an interval, with its derivative rules.

The derivative with respect to a limit is the function there (Leibniz). The derivative with respect to an argument of
the function is the integral of the function's derivative. Both are again differentiable, which gives every order and
both modes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.batching import is_batched
from funcgrad.core import Tracer, describe, plain_value, shallow_copy, tracer_of
from funcgrad.errors import ConcretizationError, NotDifferentiableError, StagingError
from funcgrad.kinds.custom import CustomRules, DeferredCotangents, custom_call
from funcgrad.numpy.plain_values.concretization import forget_refusal
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy_code.rebuilding import run_or_rebuild
from funcgrad.optional import import_scipy
from funcgrad.reverse import backward, complete_derivatives, record_function
from funcgrad.scipy.integrate.nodes import Sampled, first_nodes, rule_of_quad, rule_of_quad_vec
from funcgrad.scipy.integrate.together import integrate_together, options_of_quad_vec
from funcgrad.transforms.closures import example_by_example
from funcgrad.transforms.products import evaluate_jvp
from funcgrad.transforms.stopping import stop_gradient
from funcgrad.transforms.transformed import raise_funcgrad_error
from funcgrad.transforms.vectorize import vmap

#: Values of the weights at a point ``x`` for their parameter, by SciPy's name: weights with values at finite limits.
_WEIGHTS: dict[str, Callable[[Any, Any], Any]] = {
    "cos": lambda x, w: fnp.cos(w * x),
    "sin": lambda x, w: fnp.sin(w * x),
    "cauchy": lambda x, c: 1.0 / (x - c),
}


#: Number of integrals whose first nodes are evaluated at once: with more, arrays would take much memory.
_TOGETHER = 100


def _in_double_precision(x: Any) -> Any:
    """Return ``x``, a narrow NumPy number in double precision: its rounding would make the function look non-smooth."""
    narrow = backend.namespace_of(x) is np and backend.dtype_of(x).char in "ef"
    return np.asarray(x, float)[()] if narrow else x


def _unless_vanished(derivative: Any, vanished: Callable[[], Any]) -> Any:
    """Return ``derivative``, but 0 where it is not finite and the integrand has underflowed, as densities do."""
    if isinstance(derivative, (np.ndarray, np.generic)) and np.isfinite(derivative).all():
        return derivative  # the usual case: ``vanished`` can take as long as the integrand
    return fnp.where(fnp.logical_or(fnp.isfinite(derivative), fnp.logical_not(vanished())), derivative, 0.0)


def _has_zero_tangent(tangent: Any) -> bool:
    """Whether a limit has zero tangent, so that the integrand may be infinite there."""
    return is_plain(tangent) and not np.any(tangent)


def _vjp(fun: Callable[..., list[Any]], leaves: list[Any], cts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the values of ``fun``, and the cotangents of ``leaves`` for the cotangents ``cts`` of the first values."""

    def record(fun: Callable[..., list[Any]]) -> Any:
        try:
            return record_function(fun, leaves)
        except Exception as error:
            raise_funcgrad_error(error)
            raise

    values, nodes = run_or_rebuild(fun, record)
    pairs = [(node, ct, y) for node, ct, y in zip(nodes, cts, values, strict=False) if node is not None]
    seeds = [(node, fnp.astype(ct, backend.dtype_of(y))) for node, ct, y in pairs]
    del nodes, pairs
    return values, complete_derivatives(backward(seeds, len(leaves)), leaves)


def _jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool) -> tuple[Any, ...]:
    """Compute ``jvp`` without a check of the tangents."""
    leaves, spec = tree.flatten(primals)
    moving = [t if backend.is_inexact(x) else None for x, t in zip(leaves, tangents, strict=True)]
    found: tuple[Any, ...] = run_or_rebuild(fun, lambda fun: evaluate_jvp(fun, leaves, spec, moving, has_aux, {}))
    return found


class _Integrals:
    """Integrals over ``x`` of several functions of ``x`` and of leaves, with their derivatives.

    Args:
        parts: ``parts(x, *leaves)`` returns a list of the functions' values. Those after the first ``count`` are not
            integrated but show where to divide the interval: see ``together``.
        count: the number of functions.
        options: of SciPy's routine.
        points: where to break the interval, or None.
        breaks: whether the functions may jump at the limits.
        together: whether to evaluate the functions at many nodes at once, see ``nodes``.
    """

    #: Whether ``parts`` returns more than ``count`` values.
    has_more = True

    def __init__(
        self,
        parts: Callable[..., list[Any]],
        count: int,
        options: dict[str, Any],
        points: Any,
        breaks: bool = False,
        together: bool = False,
    ) -> None:
        self.parts, self.count, self.options, self.points, self.breaks = parts, count, options, points, breaks
        self.together = together
        self.rules = CustomRules("integrate.quad", self._run, self._fwd, self._bwd, self._jvp_rule)

    def __call__(self, a: Any, b: Any, *leaves: Any) -> Any:
        """Integrate from ``a`` to ``b``."""
        return custom_call(a, b, *leaves, rules=self.rules)

    def _run(self, *values: Any) -> list[Any]:
        foreseen = self.together and "weight" not in self.options
        found = example_by_example(self._compute, values, self._of_examples if foreseen else None)
        if not found:  # a batch without examples: the function gives the shape
            within: Any = max((v._trace for v in values if is_batched(v)), key=lambda trace: trace.level)
            with np.errstate(all="ignore"):
                zeros = [np.zeros(backend.shape_of(v), backend.dtype_of(v))[()] for v in values[2:]]
                results = self.parts(0.5, *zeros)[: self.count]
            return [tracer_of(np.empty((0, *backend.shape_of(part))), within) for part in self._outputs(results)]
        return found

    def _outputs(self, integrals: list[Any]) -> list[Any]:
        """Return the outputs of the operation, given its integrals."""
        return integrals

    def _compute(self, *values: Any, sampled: Sampled | None = None) -> list[Any]:
        a, b, *leaves = _plain_values(*values)
        options = {name: value for name, value in self.options.items() if name != "complex_func"}
        return integrate_together(sampled or self._sampled(leaves), a, b, self.count, options, self.points)

    def _sampled(self, leaves: Any) -> Sampled:
        """Return the values of all parts as a function of ``x``."""
        leaves = [_in_double_precision(leaf) for leaf in leaves]

        def parts(x: Any) -> list[Any]:
            return self.parts(x, *leaves)

        return Sampled(lambda x: _arrays(parts(x)), (lambda xs: _arrays(vmap(parts)(xs))) if self.together else None)

    def _of_examples(self, examples: list[Any]) -> Iterator[Callable[..., list[Any]]]:
        """Yield ``_compute`` for each example; some examples at a time evaluate their first nodes at once."""
        for start in range(0, len(examples), _TOGETHER):
            some = examples[start : start + _TOGETHER]
            yield from self._evaluated_ahead(some) or [self._compute] * len(some)

    def _evaluated_ahead(self, examples: list[Any]) -> list[Callable[..., list[Any]]] | None:
        """Return ``_compute`` for each example, with all parts at the first nodes of all examples evaluated at once.

        Return None if the integrals of the examples begin with different numbers of nodes, or if the parts do not take
        all nodes at once.
        """

        def foreseen(a: float, b: float) -> list[float]:
            if "norm" in self.options:
                return first_nodes(*rule_of_quad_vec(a, b, self.points, self.options.get("quadrature")))
            return first_nodes(*rule_of_quad(a, b, self.points))

        try:
            plain = [_plain_values(*example) for example in examples]
            nodes = [foreseen(float(a), float(b)) for a, b, *_ in plain]
            if not nodes[0]:
                return None
            columns = list(zip(*[map(_in_double_precision, leaves) for _, _, *leaves in plain], strict=True))
            shared = [all(x is column[0] for x in column) for column in columns]
            leaves = [column[0] if same else np.stack(column) for column, same in zip(columns, shared, strict=True)]
            every_node = vmap(self.parts, (0, *[None] * len(leaves)))
            found = _arrays(vmap(every_node, (0, *[None if same else 0 for same in shared]))(np.array(nodes), *leaves))
        except Exception:  # it branches on x, say; an error of the functions comes again when they run alone
            forget_refusal()
            return None
        known = [self._sampled(leaves) for _, _, *leaves in plain]
        known[0](nodes[0][0])
        if not known[0].has_kinds([part[0] for part in found]):
            return None
        for i, one in enumerate(known):
            one.learn(nodes[i], [part[i] for part in found])
        return [partial(self._compute, sampled=one) for one in known]

    def _fwd(self, *values: Any) -> tuple[list[Any], Any]:
        return list(self(*values)), values

    def _at_limit(self, end: Any, other: Any, leaves: Any) -> list[Any] | None:
        """Return the weighted functions at a limit; None for an infinite limit, where they have vanished."""
        if not np.isfinite(plain_value(end)).all():
            return None
        results = self.parts(self._inside(end, other), *leaves)[: self.count]
        by = _WEIGHTS.get(self.options.get("weight", ""))
        return results if by is None else [y * by(end, self.options["wvar"]) for y in results]

    def _inside(self, end: Any, other: Any) -> Any:
        """Return a limit, moved inwards a little if the functions may jump there."""
        return end + 4 * np.finfo(float).eps * stop_gradient(other - end) if self.breaks else end

    def _bwd(self, values: Any, cts: list[Any]) -> DeferredCotangents:
        def compute(wanted: Sequence[int]) -> list[Any]:
            (a, b, *leaves), given = values, cts[: self.count]
            found: dict[int, Any] = {}
            for i, end, other, sign in ((0, a, b, -1.0), (1, b, a, 1.0)):
                at = self._at_limit(end, other, leaves) if i in wanted else None
                if at is not None:
                    found[i] = sign * sum(fnp.sum(fnp.real(ct * y)) for ct, y in zip(given, at, strict=True))
            inner = [i - 2 for i in wanted if i >= 2]
            if inner:
                integrals = self._derived(self._cotangents_of(inner), len(inner))(a, b, *given, *leaves)
                for i, integral in zip(inner, integrals, strict=True):
                    found[i + 2] = fnp.astype(integral, backend.dtype_of(leaves[i]))
            return [found.get(i) for i in wanted]

        return DeferredCotangents(compute, len(values))

    def _derived(self, parts: Callable[..., list[Any]], count: int) -> _Integrals:
        return _Integrals(parts, count, self.options, self.points, self.breaks, self.together)

    def _split(self, parts: list[Any]) -> Any:
        """Return the functions' values and the further values as a pair, if there are further values."""
        return (parts[: self.count], parts[self.count :]) if self.has_more else parts

    def _cotangents_of(self, wanted: list[int]) -> Callable[..., list[Any]]:
        """Return the cotangents of some leaves as functions of ``x``, of the cotangents of results, and of leaves."""

        def cotangents(x: Any, *given: Any) -> list[Any]:
            cts, leaves = given[: self.count], given[self.count :]

            def along(*moving: Any) -> list[Any]:
                full = list(leaves)
                for i, value in zip(wanted, moving, strict=True):
                    full[i] = value
                return self.parts(x, *full)

            values, pulled = _vjp(along, [leaves[i] for i in wanted], cts)
            vanished = lambda: fnp.all(fnp.stack([fnp.all(fnp.equal(y, 0)) for y in values[: self.count]]))
            return [*[_unless_vanished(ct, vanished) for ct in pulled], *values]

        return cotangents

    def _jvp_rule(self, values: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        (a, b, *leaves), (da, db, *moving) = values, tangents
        outs = list(self(*values))
        totals: list[Any] = [0.0] * self.count
        for end, other, tangent in ((b, a, db), (a, b, -da)):
            at = None if _has_zero_tangent(tangent) else self._at_limit(end, other, leaves)
            if at is not None:
                totals = [total + tangent * y for total, y in zip(totals, at, strict=True)]
        if leaves:
            integrals = self._derived(self._tangents, self.count)(a, b, *leaves, *moving)
            totals = [total + integral for total, integral in zip(totals, integrals, strict=True)]
        return outs, [*totals, *[None] * (len(outs) - self.count)]

    def _tangents(self, x: Any, *both: Any) -> list[Any]:
        """Return the tangents of the functions at ``x``, ``leaves`` and their tangents."""
        n = len(both) // 2
        along = lambda *leaves: self._split(self.parts(x, *leaves))
        results, moved, *others = _jvp(along, both[:n], both[n:], self.has_more)
        pairs = zip(moved, results, strict=True)
        kept = [_unless_vanished(t, lambda y=y: fnp.equal(y, 0)) for t, y in pairs]  # type: ignore[misc]
        return [*kept, *results, *(others[0] if others else [])]


class Integral(_Integrals):
    """The integral of ``func(x, *leaves)`` over ``x``, for a function that returns a number or an array; and its error.

    Args:
        func: the function.
        options: of SciPy's routine.
        points: where to break the interval, or None.
        breaks: whether ``func`` may jump at the limits.
        records: whether ``func`` must run at traced limits too, because it learns its branches from the first run.
        together: whether to evaluate ``func`` at many nodes at once.
    """

    has_more = False

    def __init__(
        self,
        func: Callable[..., Any],
        options: dict[str, Any],
        points: Any,
        breaks: bool = False,
        records: bool = False,
        together: bool = False,
    ) -> None:
        super().__init__(lambda x, *leaves: [func(x, *leaves)], 1, options, points, breaks, together)
        self.records = records
        self.infos: list[Any] = []
        self._traced = [False, False]

    def __call__(self, a: Any, b: Any, *leaves: Any) -> Any:
        """Integrate from ``a`` to ``b``; return the integral and an estimate of its error."""
        self._traced = [was or isinstance(end, Tracer) for was, end in zip(self._traced, (a, b), strict=True)]
        return super().__call__(a, b, *leaves)

    def _outputs(self, integrals: list[Any]) -> list[Any]:
        return [*integrals, np.float64(0.0)]

    def _compute(self, *values: Any, sampled: Sampled | None = None) -> list[Any]:
        a, b, *leaves = _plain_values(*values)
        a, b = float(a), float(b)  # they may be arrays of JAX, which no dictionary takes as keys
        parts = sampled or self._sampled(leaves)
        found = self._by_scipy(parts, a, b)
        if self.records:
            with np.errstate(all="ignore"):
                for end, other, traced in ((a, b, self._traced[0]), (b, a, self._traced[1])):
                    if traced and math.isfinite(end):
                        parts(self._inside(end, other))
        return found

    def _by_scipy(self, parts: Sampled, a: float, b: float) -> list[Any]:
        integrate = import_scipy("integrate.quad", "scipy.integrate")
        options = dict(self.options)
        may_be_complex = options.pop("complex_func", False)
        middle = parts(0.5 * (a + b) if math.isfinite(a) and math.isfinite(b) else 0.5)[0]
        if middle.shape and "weight" in options:
            return [*integrate_together(parts, a, b, 1, options, self.points), np.float64(0.0)]
        if middle.shape or "norm" in options:  # only the public ``quad_vec`` sets a norm
            parts.foresee(*rule_of_quad_vec(a, b, self.points, options.get("quadrature")))
            value, error = integrate.quad_vec(
                lambda x: parts(x)[0], a, b, points=self.points, **options_of_quad_vec(options)
            )[:2]
            return [value, np.float64(error)]
        if "weight" not in options:
            parts.foresee(*rule_of_quad(a, b, self.points))
        is_complex = may_be_complex and middle.dtype.kind == "c"
        if is_complex:
            options["complex_func"] = True
        to_number: Any = complex if is_complex else float
        value, error, *infos = integrate.quad(lambda x: to_number(parts(x)[0]), a, b, points=self.points, **options)
        self.infos.append(infos)
        return [np.asarray(value)[()], np.float64(abs(error))]


def _arrays(found: list[Any]) -> list[np.ndarray]:
    """Return the values of functions as arrays.

    Raises:
        NotDifferentiableError: a function closes over a traced value.
    """
    found = [shallow_copy(y) for y in found]
    for y in found:
        if isinstance(y, Tracer):
            raise NotDifferentiableError(
                f"integrate.quad: func closes over a value that is being transformed, got {describe(y)} from it. Pass "
                "the value in args."
            )
    return [np.asarray(y) for y in found]


def _plain_values(*values: Any) -> list[Any]:
    """Return plain values, those of JAX outside of its transforms as they are.

    Raises:
        StagingError: a value that JAX knows only later.
        ConcretizationError: a batch: the caller then runs one example after the other.
    """
    found = [x if backend.namespace_of(plain := plain_value(x)) is np else plain for x in values]
    if any(map(backend.is_jax_tracer, found)):
        raise StagingError(
            "integrate.quad: points are chosen by values, got a value that is unknown while JAX traces. Call it "
            "outside of jit, or use integrate.fixed_quad, whose points are always the same."
        )
    if Tracer in map(type, found):
        raise ConcretizationError("integrate.quad: it integrates one function at a time, got a batch.")
    return found
