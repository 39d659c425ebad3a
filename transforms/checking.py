"""``check_grads``: compares derivatives with numerical ones, for the tests of your own functions and rules.

The check works on a function of the differentiable leaves alone, in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import is_array, replace_at
from funcgrad.errors import GradientCheckError, InputError
from funcgrad.numpy_code import SelfRebuilding
from funcgrad.transforms.arguments import argument_positions, describe_result, merge_leaves, split_aux
from funcgrad.transforms.products import jvp, vjp
from funcgrad.transforms.referee import ACCURATE_FRACTION, Estimate, Measured, Referee
from funcgrad.transforms.static_arguments import argument_names
from funcgrad.transforms.transformed import check_argnums, check_callable, name_of
from funcgrad.writable import is_selection

Leaves: TypeAlias = list[Any]


class Problem:
    """The call ``fun(*args, **kwargs)`` as a function of the floating leaves among its arguments.

    Args:
        fun: the function.
        args: its positional arguments; JAX arrays among them are converted to NumPy arrays.
        kwargs: its keyword arguments, not differentiated.
        argnums: the positions to differentiate, None for all.
        has_aux: whether ``fun`` returns a pair ``(result, aux)``; aux is ignored.
        call: the public call, for messages.

    Attributes:
        point: the leaves, in double precision.
        paths: a name for each leaf.
        result_paths: a name for each floating leaf of the result.
        value: the floating leaves of the result, as plain NumPy computes them.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        args: Any,
        kwargs: Any,
        argnums: Any = None,
        *,
        has_aux: bool = False,
        call: str = "crosscheck",
    ) -> None:
        self.fun = fun
        self.has_aux = has_aux
        self.args = [tree.map(_to_numpy, arg) for arg in args]
        self.kwargs = tree.map(_to_numpy, kwargs)
        every = tuple(range(len(args)))
        self.chosen = every if argnums is None else argument_positions(call, check_argnums(call, argnums), args)
        names = argument_names(fun, len(args))
        self.leaves, self.spec = tree.flatten(tuple(self.args[i] for i in self.chosen))
        paths = [names[i] + path for i in self.chosen for path in tree.flatten_with_path(self.args[i])[0]]
        self.live = [backend.is_value(leaf) and backend.is_inexact(leaf) for leaf in self.leaves]
        self.point = list(map(_double, compress(self.leaves, self.live)))
        self.paths = list(compress(paths, self.live))
        if not self.point:
            raise InputError(
                f"{call}: there is nothing to differentiate in the arguments of {name_of(fun)}, got no "
                "floating array or number among them. Pass one, or choose others with argnums."
            )
        out = self._call(self.point)
        self.result_paths = [
            f"result{path}" for path, leaf in zip(*tree.flatten_with_path(out)[:2], strict=True) if _floating(leaf)
        ]
        self.value = [leaf for leaf in tree.leaves(out) if _floating(leaf)]
        if not self.value:
            raise InputError(
                f"{call}: {name_of(fun)} returns nothing that can be differentiated, got {describe_result(out)}. "
                "Return a floating array or number."
            )

    def __call__(self, *leaves: Any) -> Leaves:
        """Return the floating leaves of the result for other values of the leaves."""
        return [leaf for leaf in tree.leaves(self._call(leaves)) if _floating(leaf)]

    def _call(self, leaves: Sequence[Any]) -> Any:
        chosen = tree.unflatten(self.spec, merge_leaves(self.leaves, self.live, leaves))
        out = self.fun(*replace_at(self.args, self.chosen, chosen), **self.kwargs)
        return split_aux("crosscheck", out)[0] if self.has_aux else out

    @property
    def real(self) -> bool:
        """Whether no number is complex."""
        return not any(np.iscomplexobj(x) for x in (*self.point, *self.value))

    @property
    def scalar(self) -> bool:
        """Whether the result is one real number, so that the function has a gradient."""
        return len(self.value) == 1 and np.shape(self.value[0]) == () and not np.iscomplexobj(self.value[0])


def random_like(rng: np.random.Generator, x: Any) -> Any:
    """Return random numbers of the shape and the scale of ``x``, none of them small."""
    shape = np.shape(x)
    scale = float(np.sqrt(np.mean(np.abs(x) ** 2))) if np.size(x) else 1.0
    size = rng.uniform(0.5, 1.0, shape) * (scale if np.isfinite(scale) and scale else 1.0)
    if np.iscomplexobj(x):
        return size * np.exp(2j * np.pi * rng.uniform(size=shape))
    return size * rng.choice([-1.0, 1.0], shape)


def _to_numpy(leaf: Any) -> Any:
    return np.asarray(leaf) if backend.is_of_other_library(leaf) else leaf


def _double(leaf: Any) -> Any:
    if type(leaf) in (float, complex):
        return leaf
    found = np.array(leaf, np.complex128 if backend.dtype_of(leaf).kind == "c" else np.float64)
    return found if found.shape else found[()]


def _floating(leaf: Any) -> bool:
    if is_selection(leaf):
        leaf.refuse_as_result()
    return is_array(leaf) and backend.is_inexact(leaf)


#: Tolerance relative to the largest entry of a derivative, by the bytes of the coarsest dtype of arguments and results.
_TOLERANCES = {2: 3e-2, 4: 2e-4, 8: 1e-7}
_UNSURE = 1e-2  # relative error above which a measurement says nothing
_SAFETY = 10.0  # factor by which the referee's error may exceed its estimate

#: Verdicts about a derivative: what the message says, and its advice.
_WRONG = (
    "is wrong at {}",
    "Look for a wrong rule, a value cut off by stop_gradient, or state that the function keeps.",
)
_KINK = ("does not exist at {}: the function has a kink there", "Check at a point where the function is smooth.")
_UNMEASURED = (
    "cannot be measured at {}: the function jumps, is not defined, or is singular there",
    "Check at a point where the function is smooth.",
)


def check_grads(
    fun: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    seed: int = 0,
) -> None:
    """Check the derivatives of ``fun`` at ``args`` against numerical ones, in every order and mix of modes.

    Numerical derivatives are complex steps if the function is analytic and takes complex numbers, else extrapolated
    central differences with an error estimate; both use values of the function only. Second order repeats
    the check for the first derivatives as functions: forward over reverse, reverse over forward, ...

    Args:
        fun: a function of arrays or pytrees, returning an array or a pytree.
        args: its positional arguments. Integers, and leaves that are not arrays, are constants.
        order: the highest order to check.
        modes: "fwd", "rev", or both.
        atol: the absolute error allowed; by default the number used for ``rtol``.
        rtol: the error allowed relative to the largest entry of a derivative; by default 1e-7 in double,
            2e-4 in single and 3e-2 in half precision. Ten times the estimated error of the numerical derivative
            is allowed in addition.
        seed: the seed of the random directions.

    Raises:
        GradientCheckError: an ``AssertionError`` that says which order and mode is wrong, where (key path
            and index), by how much, and both values; or that the function returns different values for the same
            arguments; or that it has a kink there.
        TypeError: ``args`` is not a tuple or list, nothing to differentiate, an unknown mode.

    Example:
        >>> from funcgrad import check_grads, custom_vjp
        >>> check_grads(lambda x: np.sin(x) * x, (np.array([0.5, 2.0]),))
        >>> @custom_vjp
        ... def wrong(x):
        ...     return x * x
        >>> wrong.defvjp(lambda x: (x * x, x), lambda x, ct: (3 * x * ct,))
        >>> check_grads(wrong, (2.0,))
        Traceback (most recent call last):
            ...
        funcgrad.errors.GradientCheckError: check_grads: the derivative of wrong by fwd is wrong at result, got ...
    """
    check_callable("check_grads", fun)
    if not isinstance(args, (tuple, list)):
        raise InputError(f"check_grads: args must be a tuple or a list, got {args!r}. Write check_grads(f, (x,)).")
    unknown = [mode for mode in modes if mode not in ("fwd", "rev")] if not isinstance(modes, str) else [modes]
    if unknown or not modes:
        raise InputError(f"check_grads: modes must be some of 'fwd' and 'rev', got {modes!r}. Pass a tuple of them.")
    if order < 1:
        raise InputError(f"check_grads: order must be at least 1, got {order!r}. 1 checks first derivatives.")
    problem = Problem(SelfRebuilding(fun), tuple(args), {}, call="check_grads")
    tolerance = _TOLERANCES[max(2, min(8, _precision([*problem.leaves, *problem.value])))] if rtol is None else rtol
    _check_repeatable(problem)
    rng = np.random.default_rng(seed)
    start = _Derivative(name_of(fun), problem, problem.point, problem.value, problem.paths, problem.result_paths, ())
    _check(start, order, tuple(modes), rng, tolerance, tolerance if atol is None else atol)


class _Derivative(NamedTuple):
    """Function of flat leaves, and the modes by which it was derived from the user's function."""

    name: str
    fun: Callable[..., Leaves]
    point: Leaves
    value: Leaves
    paths: list[str]
    result_paths: list[str]
    modes: tuple[str, ...]

    @property
    def real(self) -> bool:
        """Whether no number is complex."""
        return not any(np.iscomplexobj(x) for x in (*self.point, *self.value))


def _precision(leaves: Leaves) -> int:
    """Return the bytes of the coarsest real part among floating leaves."""
    kinds = [backend.dtype_of(x) for x in leaves if backend.is_value(x) and backend.is_inexact(x)]
    return min([k.itemsize // (2 if k.kind == "c" else 1) for k in kinds], default=8)


def _check_repeatable(problem: Problem) -> None:
    for path, once, again in zip(problem.result_paths, problem.value, problem(*problem.point), strict=True):
        if not np.array_equal(once, again, equal_nan=True):
            raise GradientCheckError(
                f"check_grads: {name_of(problem.fun)} is not deterministic: two calls with the same arguments differ "
                f"at {path}, got {_short(once)} and {_short(again)}. Pass random numbers or their seed as an argument."
            )


def _check(
    d: _Derivative, order: int, modes: tuple[str, ...], rng: np.random.Generator, rtol: float, atol: float
) -> None:
    """Check the derivatives of ``d.fun``, then the derivatives of these derivatives."""
    directions = [random_like(rng, x) for x in d.point]
    cts = [random_like(rng, np.ones_like(y)).astype(backend.dtype_of(y)) for y in d.value]
    measured: Measured | None = None
    for mode in modes:
        if mode == "fwd":
            derivative, measured = _check_forward(d, directions, rtol, atol)
        else:
            derivative = _check_reverse(d, directions, cts, rtol, atol, measured)
        if order > 1:
            _check(derivative, order - 1, modes, rng, rtol, atol)


def _check_forward(d: _Derivative, directions: Leaves, rtol: float, atol: float) -> tuple[_Derivative, Measured]:
    """Check tangents of all entries of the result at once; return the derivative and its measurement."""

    def pushed(*leaves: Any) -> Leaves:
        return list(jvp(lambda *xs: d.fun(*xs), tuple(leaves), tuple(directions))[1])

    within = lambda found: atol + rtol * _largest(found)
    referee = Referee(lambda leaves: _entries(d.fun(*leaves), d.real), d.point, real=d.real, allowed=within)
    referee.middle = _entries(d.value, d.real)
    computed = pushed(*d.point)
    flat = _entries(computed, d.real)
    measured = referee.first_derivative(directions, flat)
    off = np.abs(flat - measured.value)
    allowed = atol + rtol * _largest(flat, measured.value) + _SAFETY * measured.error
    if np.any(measured.jump):
        worst = int(np.argmax(np.abs(measured.jump)))
        _raise_check_error(d, "fwd", _entry_path(worst, computed, d.result_paths), flat[worst], measured, worst, _KINK)
    unsure = ~(measured.error <= atol + _UNSURE * _largest(flat, measured.value))
    if np.any(unsure | ~(off <= allowed)):
        worst = int(np.argmax(unsure if np.any(unsure) else np.nan_to_num(off - allowed, nan=np.inf)))
        verdict = _UNMEASURED if np.any(unsure) else _KINK if referee.has_kink(directions, measured) else _WRONG
        _raise_check_error(
            d, "fwd", _entry_path(worst, computed, d.result_paths), flat[worst], measured, worst, verdict
        )
    paths = [f"tangent of {path}" for path in d.result_paths]
    return _Derivative(d.name, pushed, d.point, computed, d.paths, paths, ("fwd", *d.modes)), measured


def _check_reverse(
    d: _Derivative, directions: Leaves, cts: Leaves, rtol: float, atol: float, whole_direction: Measured | None
) -> _Derivative:
    """Check cotangents, leaf by leaf, along random directions, and entry by entry if they are wrong.

    The last leaf needs no measurement of its own if the whole direction and all other leaves were measured.
    """

    def pulled(*leaves: Any) -> Leaves:
        _, pullback = vjp(lambda *xs: d.fun(*xs), *leaves)
        return list(pullback(list(cts)))

    def total(leaves: Leaves) -> np.ndarray:
        summed = sum(np.sum(np.multiply(ct, out)) for ct, out in zip(cts, d.fun(*leaves), strict=True))
        return np.array([summed if d.real else np.real(summed)])

    referee = Referee(total, d.point, real=d.real, allowed=lambda found: atol + rtol * _largest(found))
    computed = pulled(*d.point)
    weights = _entries(list(map(np.conj, cts)), d.real)
    rest = whole_direction and Estimate(weights @ whole_direction.value, abs(weights) @ whole_direction.error)
    for i, ct in enumerate(computed):
        along = [t if i == j else np.zeros_like(t) for j, t in enumerate(directions)]
        products = np.multiply(ct, along[i])
        if i + 1 == len(computed) and rest is not None and _agrees(rest, products, rtol, atol):
            break
        off, measured = _discrepancy(referee, ct, along, i)
        if rest is not None:
            rest = Estimate(rest.value - measured.value[0], rest.error + measured.error[0])
        span = max(float(np.sum(np.abs(products))), float(np.abs(measured.value[0])))
        if np.any(measured.jump):
            _raise_check_error(d, "rev", d.paths[i], np.real(np.sum(products)), measured, 0, _KINK)
        if not (np.isfinite(measured.error[0]) and measured.error[0] <= atol + _UNSURE * span):
            _raise_check_error(d, "rev", d.paths[i], np.real(np.sum(products)), measured, 0, _UNMEASURED)
        if not off <= atol + rtol * span + _SAFETY * measured.error[0]:
            verdict = _KINK if referee.has_kink(along, measured) else _WRONG
            index, along = _find_wrong_entry(referee, ct, along, i)
            _, measured = _discrepancy(referee, ct, along, i)
            path, total_there = _entry_at(d.paths[i], index), np.real(np.sum(np.multiply(ct, along[i])))
            _raise_check_error(d, "rev", path, total_there, measured, 0, verdict)
    paths = [f"cotangent of {path}" for path in d.paths]
    return _Derivative(d.name, pulled, d.point, computed, d.paths, paths, ("rev", *d.modes))


def _agrees(measured: Estimate, products: Any, rtol: float, atol: float) -> bool:
    """Whether ``products`` add up to the measured sum, and the measurement is accurate enough."""
    allowed = atol + rtol * max(float(np.sum(np.abs(products))), float(abs(measured.value)))
    off = abs(np.real(np.sum(products)) - measured.value)
    return bool(measured.error <= ACCURATE_FRACTION * allowed and off <= allowed)


def _discrepancy(referee: Referee, ct: Any, along: Leaves, i: int) -> tuple[float, Measured]:
    """Return how far the cotangent of leaf ``i`` is off the measurement along a direction, and the measurement."""
    claim = np.real(np.sum(np.multiply(ct, along[i])))
    measured = referee.first_derivative(along, claim)
    return float(np.abs(claim - measured.value[0])), measured


def _find_wrong_entry(referee: Referee, ct: Any, along: Leaves, i: int) -> tuple[tuple[int, ...], Leaves]:
    """Find the wrong entry of leaf ``i`` by halving, and return its index and the direction along it alone."""
    shape = np.shape(along[i])
    places = np.arange(np.size(along[i]))

    def only(kept: np.ndarray) -> Leaves:
        mask = np.zeros(np.size(along[i]))
        mask[kept] = 1
        return [t * mask.reshape(shape) if i == j else t for j, t in enumerate(along)]

    while len(places) > 1:
        halves = np.array_split(places, 2)
        places = max(halves, key=lambda half: _discrepancy(referee, ct, only(half), i)[0])
    unit = only(places)
    unit[i] = np.where(unit[i] != 0, 1.0, 0.0) if shape else np.ones_like(along[i])
    return tuple(int(k) for k in np.unravel_index(int(places[0]), shape)) if shape else (), unit


def _raise_check_error(
    d: _Derivative, mode: str, path: str, computed: Any, measured: Measured, number: int, verdict: tuple[str, str]
) -> None:
    value, error = measured.value[number], measured.error[number]
    mode_names = " over ".join((mode, *d.modes))
    off = abs(computed - value) / max(abs(value), abs(computed), 1e-300)
    what, advice = verdict
    raise GradientCheckError(
        f"check_grads: the derivative of {d.name} by {mode_names} {what.format(path)}, got {_short(computed)}, "
        f"measured {_short(value)} ± {error:.1e} ({measured.method}): off by {off:.1e}. {advice}"
    )


def _entries(leaves: Leaves, real: bool) -> np.ndarray:
    """Return all entries of the leaves in a row; without ``real``, imaginary parts follow the real parts.

    A complex step makes real entries complex: ``real`` says that they represent real numbers.
    """
    parts: list[Any] = []
    for leaf in leaves:
        if np.iscomplexobj(leaf) and not real:
            parts += [np.ravel(np.real(leaf)), np.ravel(np.imag(leaf))]
        else:
            parts.append(np.ravel(leaf))
    return np.concatenate(parts) if parts else np.zeros(0)


def _entry_path(number: int, leaves: Leaves, paths: list[str]) -> str:
    """Return the key path and the index of an entry, given its number in a row of all entries."""
    for leaf, path in zip(leaves, paths, strict=True):
        size = int(np.size(leaf)) * (2 if np.iscomplexobj(leaf) else 1)
        if number < size:
            index = np.unravel_index(number % max(int(np.size(leaf)), 1), np.shape(leaf)) if np.shape(leaf) else ()
            return _entry_at(path, index)
        number -= size
    return "the result"


def _entry_at(path: str, index: Sequence[Any]) -> str:
    return f"{path}[{', '.join(map(str, index))}]" if index else path


def _largest(*rows: np.ndarray) -> float:
    finite: Iterator[Any] = (np.abs(row[np.isfinite(row)]) for row in rows)
    return max((float(np.max(row, initial=0.0)) for row in finite), default=0.0)


def _short(x: Any) -> str:
    return f"{x:.10g}" if np.ndim(x) == 0 and not np.iscomplexobj(x) else np.array2string(np.asarray(x), threshold=6)
