"""Integrals over boxes, by SciPy's ``cubature``; ``integral`` describes how integrals are differentiated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import Tracer, is_in_transform
from funcgrad.errors import InputError
from funcgrad.kinds.custom import CustomRules, DeferredCotangents, custom_call
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.peeking import any_true, concrete_or_none, is_plain
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.ivp.flows import separate_leaves
from funcgrad.scipy.settings import constant_array
from funcgrad.transforms.closures import RecordedClosure, example_by_example, looks_at_tracers
from funcgrad.transforms.products import jvp, vjp
from funcgrad.transforms.stopping import stop_gradient
from funcgrad.transforms.transformed import check_callable
from funcgrad.transforms.vectorize import vmap
from funcgrad.typing import ArrayLike
from funcgrad.writable import outside_transforms

__all__ = ["cubature"]

_CALL = "integrate.cubature"


def cubature(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    *,
    rule: Any = "gk21",
    rtol: float = 1e-8,
    atol: float = 0,
    max_subdivisions: int | None = 10_000,
    args: Any = (),
    workers: Any = 1,
    points: Sequence[Any] | None = None,
) -> Any:
    """Integrate an array ``f(x, *args)`` over the box between the corners ``a`` and ``b``.

    The integral is differentiable in ``args``, in values that ``f`` closes over and in finite corners, to any order. A
    box with traced corners is mapped to the unit box.

    Args:
        f: takes points in rows, ``(count, dimensions)``, and returns an array for each point: ``(count, ...)``.
        a: the lower corner; infinite coordinates are allowed.
        b: the upper corner; infinite coordinates are allowed.
        rule: see ``scipy.integrate.cubature``.
        rtol: the allowed relative error.
        atol: the allowed absolute error.
        max_subdivisions: the largest number of subdivisions of the box.
        args: further arguments, arrays or trees of arrays.
        workers: for several processes, with plain values only.
        points: points to avoid, with plain corners only.

    Returns:
        SciPy's result: ``estimate``, ``error``, ``status``, ``subdivisions``, ...

    Raises:
        TypeError: ``workers`` with traced values; traced corners if some are infinite or ``points`` are given.

    Example:
        >>> from funcgrad.scipy.integrate import cubature
        >>> box = lambda k, side: cubature(lambda x: k * x[:, 0] * x[:, 1], [0.0, 0.0], [side, 1.0]).estimate
        >>> box(3.0, 2.0).round(9), np.round(grad(box, (0, 1))(3.0, 2.0), 9)
        (np.float64(3.0), array([1., 3.]))
    """
    check_callable(_CALL, f)
    options = {"rule": rule, "rtol": rtol, "atol": atol, "max_subdivisions": max_subdivisions, "points": points}
    flat, values = separate_leaves(f, args if isinstance(args, tuple) else (args,))
    a, b = as_value(a), as_value(b)
    whole, values = _hoist_closure(flat, a, b, values)
    if is_plain(a, b, *tree.leaves(args), *values):
        return import_scipy(_CALL, "scipy.integrate").cubature(f, a, b, args=args, workers=workers, **options)
    if workers != 1:
        raise InputError(f"{_CALL}: workers are for plain values, got traced ones. Leave them out.")
    if not is_plain(a, b):
        whole, values = _on_a_fixed_box(whole, a, b, values, points)
        a, b = np.zeros(backend.shape_of(a)), np.ones(backend.shape_of(a))
    found: list[Any] = []
    estimate, error, subdivisions = _Cubature(lambda x, *values: [whole(x, *values)], 1, a, b, options, found)(*values)
    made = found[-1]
    made.estimate = estimate
    if len(found) > 1:  # the examples of a batch
        made.error, made.subdivisions = error, subdivisions
        made.status = min([one.status for one in found], key=lambda status: status == "converged")
    return made


def _on_a_fixed_box(
    f: Callable[..., Any], a: Any, b: Any, values: list[Any], points: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """Return the integrand on the unit box, and its arguments with the corners put first."""
    corners = [concrete_or_none(end, steers=False) for end in (a, b)]
    infinite = any(any_true(lambda end: ~fnp.isfinite(end), end) for end in (a, b))
    if points is not None or infinite or any(end is None for end in corners):
        raise InputError(f"{_CALL}: traced corners must be finite and go without points, got {corners}, {points}.")

    def mapped(u: Any, a: Any, b: Any, *rest: Any) -> Any:
        return f(a + (b - a) * u, *rest) * fnp.prod(b - a)

    return mapped, [fnp.astype(a, float), fnp.astype(b, float), *values]


def _hoist_closure(f: Callable[..., Any], a: Any, b: Any, values: list[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """Return ``f`` with the values that it closes over as further arguments, and all arguments in a list."""
    if not is_in_transform():
        return f, values
    point = fnp.reshape(stop_gradient(a), (1, -1))
    point = fnp.where(fnp.isfinite(point), point, 0.0)
    closure = RecordedClosure(_CALL, lambda x: f(x[0], *x[1]), (point, values), checks_branches=True)
    if not closure.captured and not looks_at_tracers(f):
        return f, values
    count = len(values)

    def whole(x: Any, *every: Any) -> Any:  # maps over the points, because the recorded run had one point
        one = lambda p: closure((p[None], list(every[:count])), every[count:])[0]
        return vmap(one)(x)

    return whole, [*values, *closure.captured]


class _Cubature:
    """Integrals over a box of functions of the values that the integrand depends on, with their derivatives.

    Derivatives are integrated together with the integrand: alone, a derivative that differs from zero in a small part
    of the box only would be zero at all first points. Integrals that are no derivatives come with their error and the
    number of subdivisions.

    Args:
        parts: ``parts(x, *values)`` returns a list of arrays with a result for each point. Those after the first
            ``count`` only help to divide the box.
        count: the number of functions to integrate.
        a: the lower corner.
        b: the upper corner.
        options: of SciPy's routine.
        found: a list to which the results of SciPy are appended.
        derived: whether the functions are derivatives.
    """

    def __init__(
        self,
        parts: Callable[..., list[Any]],
        count: int,
        a: Any,
        b: Any,
        options: dict[str, Any],
        found: list[Any],
        derived: bool = False,
    ) -> None:
        self.parts, self.count, self.options, self.found, self.derived = parts, count, options, found, derived
        self.a, self.b = np.asarray(a, float), np.asarray(b, float)
        self.rules = CustomRules(_CALL, self._run, self._fwd, self._bwd, self._jvp_rule)

    def __call__(self, *values: Any) -> Any:
        return custom_call(*values, rules=self.rules)

    def _derived(self, parts: Callable[..., list[Any]], count: int) -> _Cubature:
        return _Cubature(parts, count, self.a, self.b, self.options, [], True)

    def _run(self, *values: Any) -> list[Any]:
        outs = example_by_example(self._compute, values)
        if not outs:  # a batch without examples
            self._compute(*[np.ones(backend.shape_of(value)) for value in values])
            outs = [part[0] for part in self.parts(self.a[None], *values)[: self.count]]
            outs += [] if self.derived else [0.0 * outs[0].real, fnp.astype(fnp.sum(0.0 * outs[0].real), int)]
        return outs

    def _compute(self, *values: Any) -> list[Any]:
        fixed = [np.asarray(x) if isinstance(x, Tracer) else constant_array(_CALL, x)[()] for x in values]
        routine = import_scipy(_CALL, "scipy.integrate").cubature
        with outside_transforms():
            if not self.derived:
                integrand = lambda x: np.asarray(self.parts(x, *fixed)[0])
                self.found.append(routine(integrand, self.a, self.b, **self.options))
                made = self.found[-1]
                return [made.estimate, made.error, np.asarray(made.subdivisions)]
            return self._compute_together(routine, lambda x: [np.asarray(y) for y in self.parts(x, *fixed)])

    def _compute_together(
        self, routine: Callable[..., Any], parts: Callable[[np.ndarray], list[np.ndarray]]
    ) -> list[Any]:
        """Integrate parts that may be zero; the tolerance of each is relative to its magnitude."""
        volume, examples = self._examples(parts)
        sizes = [volume * float(np.mean(np.abs(y), axis=0).max(initial=0.0)) for y in examples]
        options = dict(self.options)
        least = [max(options["atol"], options["rtol"] * size) for size in sizes]
        options["atol"] = np.repeat(least, [y[0].size for y in examples])
        joined = lambda x: np.concatenate([np.reshape(y, (len(x), -1)) for y in parts(x)], axis=1)
        estimate = routine(joined, self.a, self.b, **options).estimate
        bounds = np.cumsum([y[0].size for y in examples])[: self.count]
        pieces = zip(np.split(estimate, bounds), examples[: self.count], strict=False)
        return [np.reshape(piece if y.dtype.kind == "c" else piece.real, y[0].shape)[()] for piece, y in pieces]

    def _examples(self, parts: Callable[[np.ndarray], list[np.ndarray]]) -> tuple[float, list[np.ndarray]]:
        """Return the volume of the box and the parts at random points; for an infinite box, of a finite piece."""
        low, high = np.clip(self.a, -1.0, None), np.clip(self.b, None, 1.0)
        low = np.where(np.isfinite(self.a), self.a, np.minimum(low, high - 1.0))
        high = np.where(np.isfinite(self.b), self.b, np.maximum(high, low + 1.0))
        points = low + (high - low) * np.random.default_rng(0).uniform(size=(50, len(low)))
        return float(np.prod(high - low)), parts(points)

    def _fwd(self, *values: Any) -> tuple[list[Any], Any]:
        return list(self(*values)), values

    def _bwd(self, values: Any, cts: list[Any]) -> DeferredCotangents:
        def compute(wanted: Sequence[int]) -> list[Any]:
            def at_point(x: Any, *given: Any) -> list[Any]:
                cts, some = given[: self.count], given[self.count :]

                def along(*moving: Any) -> tuple[list[Any], list[Any]]:
                    full = list(some)
                    for i, value in zip(wanted, moving, strict=True):
                        full[i] = value
                    parts = [part[0] for part in self.parts(x[None], *full)]
                    return parts[: self.count], parts[self.count :]

                outs, pullback, others = vjp(along, *[some[i] for i in wanted], has_aux=True)
                pulled = pullback([fnp.astype(ct, backend.dtype_of(y)) for ct, y in zip(cts, outs, strict=True)])
                return [*pulled, *outs, *others]

            parts = lambda x, *given: vmap(lambda point: at_point(point, *given))(x)
            integrals = self._derived(parts, len(wanted))(*cts[: self.count], *values)
            pairs = zip(integrals, wanted, strict=True)
            return [fnp.astype(integral, backend.dtype_of(values[i])) for integral, i in pairs]

        return DeferredCotangents(compute, len(values))

    def _jvp_rule(self, values: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        n = len(values)

        def along(x: Any, *both: Any) -> list[Any]:
            outs, moved = jvp(lambda *some: self.parts(x, *some), both[:n], both[n:])
            return [*moved[: self.count], *outs]

        outs = list(self(*values))
        moved = self._derived(along, self.count)(*values, *tangents)
        return outs, [*moved, *[None] * (len(outs) - self.count)]
