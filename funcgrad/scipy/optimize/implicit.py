"""Solutions that SciPy finds from plain values, and their derivatives: one linear system at the solution.

All functions here work alike. SciPy solves with traced values held constant. ``custom_root`` then declares the
solution the root of an equation and supplies the derivative rules. The search itself is not recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple, Never

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.batching import is_batched
from funcgrad.core import (
    Tracer,
    describe,
    is_array,
    is_in_transform,
    plain_value,
    replace_at,
    shallow_copy,
    tracer_of,
    traces_of,
)
from funcgrad.errors import (
    BranchError,
    ConcretizationError,
    ConvergenceError,
    InputError,
    NotDifferentiableError,
    StagingError,
)
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.concretization import forget_refusal, strip_constant_tracers
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy.plain_values.peeking import any_true, concrete_or_none
from funcgrad.numpy_code.rebuilding import SelfRebuilding
from funcgrad.transforms.closures import RecordedClosure, example_by_example
from funcgrad.transforms.implicit import custom_root, dense_solve
from funcgrad.transforms.products import jvp
from funcgrad.transforms.side_effects import plain_form
from funcgrad.transforms.stopping import no_grad, stop_gradient

#: Largest Newton step, relative to the solution, that counts as zero: default tolerances leave errors of this size.
_STEP_TOLERANCE = 1e-5


#: Fields of results that measure how well a search has converged. They are constants: a solution has no such error.
_MEASURES = frozenset(("constr_violation", "execution_time", "maxcv", "mip_gap", "optimality"))


class Problem(NamedTuple):
    """A function and its further arguments, without traced values, as SciPy receives it.

    Attributes:
        call: the public call, for messages.
        fun: the function, for its derivatives.
        args: the further arguments.
        writing: the same function, whose calls may leave something behind, see ``side_effects``.
    """

    call: str
    fun: Callable[[Any], Any]
    args: tuple[Any, ...]
    writing: Callable[[Any], Any]

    def __call__(self, x: Any) -> Any:
        """Return the value of the function at ``x`` in NumPy numbers."""
        return plain(self.call, self.writing(x))

    def plain_derivative(self, derivative: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
        """Return the caller's ``derivative`` as a plain function; if it closes over traced values, ``own``."""
        given = plain_form(derivative)

        def call(x: Any, *more: Any) -> Any:
            try:
                return plain(self.call, given(x, *more, *self.args))
            except Exception as error:
                if not isinstance(error, ConcretizationError) and not _is_jax_leak(error):
                    raise
                forget_refusal()
                return plain(self.call, own(x, *more))

        return call

    def exact(self, derivative: Callable[..., Any], *points: Any) -> Callable[..., Any] | None:
        """Return ``derivative`` as a plain function, or None if the function has none: SciPy then takes differences.

        This way SciPy can also solve a function that funcgrad cannot differentiate.
        """
        try:
            plain(self.call, derivative(*points))
        except (ConcretizationError, InputError, NotDifferentiableError, StagingError):
            forget_refusal()
            self(points[0])  # raises if ``fun`` closes over a batch
            return None
        return lambda *points: plain(self.call, derivative(*points))


class SearchResult(NamedTuple):
    """Result of a search.

    Attributes:
        x: the solution; a tracer for a batch.
        facts: the integers, truth values, texts and measures of convergence of SciPy's result.
        result: SciPy's result; for a batch a list of results.
    """

    x: Any
    facts: dict[str, Any]
    result: Any


def as_args(args: Any, unpacks: bool = False) -> tuple[Any, ...]:
    """Return further arguments as a tuple: a non-tuple is a single one, a list too unless SciPy ``unpacks`` it."""
    return tuple(args) if isinstance(args, (tuple, list) if unpacks else tuple) else (args,)


def by_position(
    f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return ``f`` and its further arguments, with ``kwargs`` among those that come by position.

    Example:
        >>> f, args = by_position(lambda x, a, *, b: x + a * b, (2.0,), {"b": 3.0})
        >>> args, f(1.0, *args)
        ((2.0, 3.0), 7.0)
    """
    if not kwargs:
        return f, args
    count, names = len(args), tuple(kwargs)

    def call(x: Any, *further: Any) -> Any:
        return f(x, *further[:count], **dict(zip(names, further[count:], strict=True)))

    return call, (*args, *kwargs.values())


def plain(call: str, y: Any) -> Any:
    """Return ``y`` in NumPy numbers; inside ``no_grad`` values that an outer derivative follows are constants.

    Raises:
        StagingError: the values are abstract inside a JAX transform (a ``TypeError``).
        ConcretizationError: there is one value for each example of a batch.
    """
    kind = type(y)
    if kind is np.float64 or kind is float or kind is np.ndarray:
        return y
    if kind in (tuple, list):
        parts = [plain(call, part) for part in y]
        return tuple(parts) if kind is tuple else parts
    y = strip_constant_tracers(shallow_copy(y))
    bottom = plain_value(y)
    if backend.is_jax_tracer(bottom):
        raise StagingError(
            f"{call}: SciPy needs values, which are unknown while JAX traces, got {describe(bottom)}. Call it outside "
            "of jax.jit and JAX's transforms, or give funcgrad.custom_root a solver that JAX can trace."
        )
    if isinstance(y, Tracer) or backend.namespace_of(y) is not np:
        return np.asarray(y)[()] if backend.is_value(bottom) else y
    return y


def number(call: str, x: Any) -> Any:
    """Return a number as SciPy's starting value, or None for None."""
    return x if x is None else np.asarray(plain(call, x))[()]


def vector(call: str, x: Any) -> Any:
    """Return an array as SciPy's starting value."""
    return np.asarray(plain(call, x))


def search(
    call: str,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    start: tuple[Any, ...],
    solve: Callable[..., tuple[Any, dict[str, Any]]],
    guess: Any,
) -> SearchResult:
    """Run SciPy's search; for a batch, one example after the other.

    Args:
        call: the public call, for messages.
        fun: ``fun(x, *args)``.
        args: a tree that may contain tracers; ``fun`` may close over tracers too.
        start: a tree of starting values, which may contain tracers.
        solve: ``solve(problem, *start)`` returns the solution and SciPy's result.
        guess: a point with the shape of the solution, or a tree whose leaves broadcast to that shape.
    """
    leaves, spec = tree.flatten((args, start))
    live = [i for i, leaf in enumerate(leaves) if is_array(leaf)]
    writing = plain_form(fun)
    if writing is fun and not is_in_transform():
        fun = SelfRebuilding(fun)  # exact derivatives run it in transforms
    values, fields = [leaves[i] for i in live], _ResultFields()
    closure: RecordedClosure | None = None

    def one(*values: Any) -> list[Any]:
        held = values[len(live) :]
        args, start = tree.unflatten(spec, replace_at(leaves, live, values[: len(live)]))
        known = closure
        if known is None:
            problem = Problem(call, lambda x: fun(x, *args), args, lambda x: writing(x, *args))
        else:
            recorded = lambda x: _of_closure(call, known, x, held)
            problem = Problem(call, recorded, args, recorded)
        return fields.split(*solve(problem, *start))

    with no_grad():
        try:
            outs = as_one_operation(call, one, values)
        except Exception as error:
            if not isinstance(error, (ConcretizationError, NotDifferentiableError)) and not _is_jax_leak(error):
                raise
            forget_refusal()
            closure = RecordedClosure(call, lambda x: fun(x, *args), guess, checks_branches=True)
            if not closure.captured:
                raise
            values = [*values, *closure.captured]
            fields.results.clear()
            outs = as_one_operation(call, one, values)
    return fields.joined(outs) if outs else _empty_batch(values, guess)


def _of_closure(call: str, closure: RecordedClosure, x: Any, held: tuple[Any, ...]) -> Any:
    try:
        return closure(x, held)
    except BranchError as error:
        raise BranchError(
            f"{call}: inside vmap a function that closes over values of the examples may not branch, got one that "
            "takes another branch than at the first guess. Use where(condition, x, y), or control.map in place of vmap."
        ) from error


def _is_jax_leak(error: Exception) -> bool:
    """Whether JAX raised ``error`` because a function that it calls back closes over a value that it traces."""
    return type(error).__name__ == "UnexpectedTracerError"


def as_one_operation(call: str, one: Callable[..., list[Any]], values: list[Any]) -> list[Any]:
    """Compute ``one(*values)`` as one operation whose result is a constant for derivatives."""
    if Tracer not in map(type, values):
        return one(*values)

    return list(custom_call(*values, rules=_constant_rules(call, one)))


def _constant_rules(call: str, one: Callable[..., list[Any]]) -> CustomRules:
    """Return the rules of a constant. They form no reference cycle, so what ``one`` holds is freed with them."""
    return CustomRules(call, lambda *values: example_by_example(one, values), jvp=partial(_jvp_rule, call, one))


def _jvp_rule(call: str, one: Callable[..., list[Any]], leaves: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
    outs = list(custom_call(*leaves, rules=_constant_rules(call, one)))
    return outs, [None] * len(outs)


class _ResultFields:
    """The parts of results that operations cannot return, such as texts. Each example of a batch adds its result."""

    def __init__(self) -> None:
        self.results: list[Any] = []

    def split(self, x: Any, result: dict[str, Any]) -> list[Any]:
        """Store a result; return the solution and the numbers that are constants."""
        self.results.append(result)
        # ``hess_inv`` of BFGS has dtype int if the search begins at a minimum
        self.names = [
            name
            for name, value in result.items()
            if (_is_count(value) and name != "hess_inv") or (name in _MEASURES and value is not None)
        ]
        return [x, *[result[name] for name in self.names]]

    def joined(self, outs: list[Any]) -> SearchResult:
        """Return the complete result."""
        facts = dict(zip(self.names, outs[1:], strict=True))
        alone, last = len(self.results) == 1, self.results[-1]
        for name, value in last.items():
            if value is None or isinstance(value, str) or (type(value) is list and all(type(x) is str for x in value)):
                facts[name] = value if alone else [result.get(name) for result in self.results]
        return SearchResult(outs[0], facts, last if alone else self.results)


def _empty_batch(leaves: list[Any], guess: Any) -> SearchResult:
    """Return the result for a batch without examples."""
    within: Any = max((leaf._trace for leaf in leaves if is_batched(leaf)), key=lambda trace: trace.level)
    shape = np.broadcast_shapes(*[backend.shape_of(leaf) for leaf in tree.leaves(guess)])
    return SearchResult(tracer_of(np.empty((0, *shape)), within), defaultdict(lambda: True), [])


def _is_count(value: Any) -> bool:
    """Whether ``value`` is an integer, a truth value or an array of these, which have no derivative."""
    if issubclass(type(value), np.ndarray):
        return value.dtype.kind in "biu"
    return issubclass(type(value), (bool, int, np.bool_, np.integer))


def depends(value: Any) -> bool:
    """Whether ``value`` contains a tracer or an array of a library other than NumPy."""
    return any(
        isinstance(leaf, Tracer) or backend.is_of_other_library(leaf) for leaf in map(shallow_copy, tree.leaves(value))
    )


def differentiable_root(
    call: str,
    equation: Callable[[Any], Any],
    found: SearchResult,
    solved: Any,
    linear: Any = dense_solve,
    least: Any = None,
) -> Any:
    """Return the solution that a search found as the root of ``equation``, with the derivatives of the root.

    Args:
        call: the public call, for messages.
        equation: a function of the solution that returns as many numbers as the solution has.
        found: the result of the search.
        solved: whether the search converged.
        linear: the solver of the linear system.
        least: the minimum, whose derivatives may be requested where the equation has none.

    Raises:
        ConvergenceError: the search has not converged, and a derivative is requested (an ``ArithmeticError``).
        LinAlgError: the Jacobian of the equation is singular.
    """
    like = np.float64(found.x) if type(found.x) is float else found.x  # a Python float has no dtype
    shape, dtype = backend.shape_and_dtype_of(like)

    def shaped(x: Any) -> Any:
        return fnp.reshape(fnp.astype(as_value(equation(x)), dtype), shape)

    first = shaped(like)
    xp = backend.library_of(first)
    if xp is not np:
        dtype = backend.native_dtype(xp, dtype)
        like = fnp.astype(like, dtype) if isinstance(like, Tracer) else xp.asarray(like, dtype)
    if differentiated(first, least) and _may_have_failed(solved) and not _has_converged(shaped, like, linear):
        raise ConvergenceError(
            f"{call}: the solver has not converged, so there is no derivative, got {_message(found)}. Begin nearer to "
            "the solution, allow more steps or a larger tolerance, or take stop_gradient of the inputs of the answer."
        )

    def checked(matvec: Callable[[Any], Any], b: Any) -> Any:
        try:
            return linear(matvec, b)
        except np.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(
                f"{call}: the derivative solves a linear system, got a singular matrix: the solution is a multiple "
                "one or not isolated. Make it unique, and leave out constraints that follow from others or from active "
                "bounds."
            ) from error

    return custom_root(shaped, like, lambda _, x: x, checked)


def one_by_one(matvec: Callable[[Any], Any], b: Any) -> Any:
    """Solve a linear system whose matrix is diagonal."""
    return b / matvec(backend.ones_like(b))


def _may_have_failed(solved: Any) -> bool:
    """Whether the search failed for any example, or its success is not known yet."""
    return concrete_or_none(solved, steers=False) is None or any_true(fnp.logical_not, solved)


@no_grad
def _has_converged(equation: Callable[[Any], Any], x: Any, linear: Callable[..., Any]) -> bool:
    """Whether Newton's method would hardly move from ``x``: the search then stopped only for lack of precision."""
    try:
        step = linear(lambda v: jvp(equation, (x,), (v,))[1], equation(x))
    except np.linalg.LinAlgError:
        return False
    size = fnp.max(fnp.abs(step), initial=0.0) / (1 + fnp.max(fnp.abs(x), initial=0.0))
    return concrete_or_none(size, steers=False) is not None and not any_true(
        lambda size: ~(size <= _STEP_TOLERANCE), size
    )


def check_smooth(call: str, least: Any, gradient: Callable[[Any], Any], x: Any) -> None:
    """Check that a minimum is smooth where a derivative is requested, so that its curvature gives the derivative.

    The gradient of ``abs(x - a)`` does not depend on ``a``, but the minimum ``least`` does.

    Raises:
        NotDifferentiableError: the gradient jumps at the minimum (a ``TypeError``).
    """
    slope = gradient(x)
    if differentiated(slope, least) and _jumps(gradient, x, stop_gradient(slope)):
        raise NotDifferentiableError(
            f"{call}: fun has a kink at its minimum, as a norm or an absolute value has at 0, so its curvature gives "
            f"no derivative, got x={describe(x)}. Minimize a smooth function with the same minimum: the sum of squares "
            "in place of its root."
        )


@no_grad
def _jumps(gradient: Callable[[Any], Any], x: Any, slope: Any) -> bool:
    """Whether the gradient, which is ``slope`` at ``x``, jumps near ``x``.

    At a kink ``x`` is next to the minimum by chance, where the gradient does not vanish, and the curvature is that of a
    tiny region around ``x``, or of one side. So, down the slope, the gradient stops growing long before 300 Newton
    steps, or changes its sign long before one.
    """
    size = fnp.sqrt(fnp.sum(slope * slope))
    along = slope / fnp.where(size > 0, size, 1.0)
    distance = 1e-3 * (1 + fnp.max(fnp.abs(x), initial=0.0))
    try:
        vanishes = size <= 0.01 * fnp.abs(fnp.sum(along * gradient(x - distance * along)))
        if _is_known_true(vanishes):
            return False
        curvature = fnp.sum(along * jvp(gradient, (x,), (along,))[1])
        step = fnp.where(curvature > 0, size / fnp.where(curvature > 0, curvature, 1.0), np.inf)
        far = fnp.minimum(300 * step, distance)
        there = fnp.sum(along * gradient(x - far * along))
    except (ValueError, ArithmeticError):  # outside of the domain
        return False
    stops = (far > 10 * step) & (size - there < 0.25 * curvature * far)
    turns = (far < 0.5 * step) & (there < 0)
    return not _is_known_true(vanishes | ~(stops | turns), otherwise=True)


def _is_known_true(condition: Any, otherwise: bool = False) -> bool:
    """Whether ``condition`` holds in all examples; ``otherwise`` if that is not known."""
    if concrete_or_none(condition, steers=False) is None:
        return otherwise
    return not any_true(fnp.logical_not, condition)


def differentiated(*values: Any) -> bool:
    """Whether a derivative of ``values`` is requested, by JAX too; ``vmap`` alone does not request one."""
    return any(trace.differentiates for trace in traces_of(values)) or any(
        backend.is_jax_tracer(plain_value(x)) for x in values
    )


def _message(found: SearchResult) -> str:
    said = found.facts.get("message", found.facts.get("flag", found.facts.get("mesg", "no success")))
    return repr(" ".join(str(said).split()))


def with_fields(kind: Any, facts: dict[str, Any], **fields: Any) -> Any:
    """Build a result of SciPy's class ``kind`` with exactly these entries."""
    made = kind.__new__(kind)
    made.update(facts)
    made.update(fields)
    return made


def result_with(call: str, kind: Any, found: SearchResult, **fields: Any) -> Any:
    """Build a result of SciPy's class ``kind`` with the facts of a search and these fields, which have derivatives.

    Other fields of SciPy's result raise an error that names the field.
    """
    results = found.result if type(found.result) is list else [found.result]
    lost = {name for result in results[-1:] for name in result} - {*found.facts, *fields}
    made = with_fields(_incomplete(kind) if lost else kind, found.facts, **fields)
    if lost:
        object.__setattr__(made, "_lost", (call, lost))
    return made


@cache
def _incomplete(kind: Any) -> Any:
    """Return a class of results like ``kind`` that raises an error for fields that have no derivative."""

    def missing(self: Any, name: Any) -> Never:
        call, lost = self._lost
        if name not in lost:
            raise KeyError(name)
        raise NotDifferentiableError(
            f"{call}: the steps of the search leave this field of the result, so it has no derivative, got {name!r}"
            f"{user_line()}. Compute it from the solution, for example by funcgrad.hessian or jacobian at result.x."
        )

    return type(kind.__name__, (kind,), {"__missing__": missing, "_lost": ("", ()), "__module__": kind.__module__})
