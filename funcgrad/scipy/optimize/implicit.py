"""What SciPy finds of plain values, and its derivative: one linear system at the solution.

Every function here does the same: SciPy solves, with all that is traced as constants; then what was found is
the root of an equation by ``custom_root``, which has the rules. Nothing of the search is recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.batching import is_batched
from funcgrad.core import Tracer, describe, tracer_of, twin
from funcgrad.errors import ConcretizationError, ConvergenceError, InputError, NotDifferentiableError, StagingError
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.numpy.concretization import constant, forgive
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.peeking import anywhere, known
from funcgrad.transforms.closures import Hoisted, example_by_example
from funcgrad.transforms.implicit import custom_root, dense_solve
from funcgrad.transforms.products import jvp
from funcgrad.transforms.stopping import no_grad

#: A step, relative to the solution, that is none: the default tolerances leave no less.
_NEAR = 1e-5


class Problem(NamedTuple):
    """A function with its further arguments, none of them traced, as SciPy gets it."""

    call: str
    fun: Callable[[Any], Any]
    args: tuple[Any, ...]

    def __call__(self, x: Any) -> Any:
        """The function as numbers of NumPy's."""
        return plain(self.call, self.fun(x))

    def given(self, derivative: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
        """A derivative of the caller's, of the same arguments; where it closes over a batch our ``own``."""

        def call(x: Any, *more: Any) -> Any:
            try:
                return plain(self.call, derivative(x, *more, *self.args))
            except ConcretizationError:
                forgive()
                return plain(self.call, own(x, *more))

        return call

    def exact(self, derivative: Callable[..., Any], *points: Any) -> Callable[..., Any] | None:
        """``derivative``, or None where the function has none: then SciPy goes by differences.

        A function that funcgrad cannot differentiate can still be solved, as SciPy solves it.
        """
        try:
            plain(self.call, derivative(*points))
        except (ConcretizationError, InputError, NotDifferentiableError, StagingError):
            forgive()
            self(points[0])  # of a batch this fails as well
            return None
        return lambda *points: plain(self.call, derivative(*points))


class Found(NamedTuple):
    """What a search gave.

    Attributes:
        x: the solution; of a batch a tracer.
        facts: what the result says in integers, truth values and words.
        result: SciPy's result; of a batch a list.
    """

    x: Any
    facts: dict[str, Any]
    result: Any


def as_args(args: Any, unpacks: bool = False) -> tuple[Any, ...]:
    """Further arguments, of which one may stand alone; a list is one too, but for functions of SciPy that unpack it."""
    return tuple(args) if isinstance(args, (tuple, list) if unpacks else tuple) else (args,)


def plain(call: str, y: Any) -> Any:
    """``y`` in NumPy's numbers; inside ``no_grad`` what an outer derivative follows is a constant.

    Raises:
        StagingError: JAX knows the values only later (a ``TypeError``).
        ConcretizationError: there is one value for each example of a batch.
    """
    kind = type(y)
    if kind is np.float64 or kind is float or kind is np.ndarray:
        return y
    if kind in (tuple, list):
        parts = [plain(call, part) for part in y]
        return tuple(parts) if kind is tuple else parts
    bottom = y = constant(twin(y))
    while isinstance(bottom, Tracer):
        bottom = bottom._val
    if backend.is_stand_in(bottom):
        raise StagingError(
            f"{call}: SciPy looks at values, which JAX knows only later, got {describe(bottom)}. Call it outside of "
            "jax.jit and of JAX's own transforms, or give funcgrad.custom_root a solver that JAX can trace."
        )
    if isinstance(y, Tracer) or backend.namespace_of(y) is not np:
        return np.asarray(y)[()] if backend.is_value(bottom) else y
    return y


def number(call: str, x: Any) -> Any:
    """A number for SciPy to begin with."""
    return x if x is None else np.asarray(plain(call, x))[()]


def vector(call: str, x: Any) -> Any:
    """An array of doubles for SciPy to begin with."""
    return np.asarray(plain(call, x))


def search(
    call: str,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    start: tuple[Any, ...],
    solve: Callable[..., tuple[Any, dict[str, Any]]],
    guess: Any,
) -> Found:
    """What SciPy finds; of a batch of one example after the other.

    Args:
        call: the public call, for messages.
        fun: ``fun(x, *args)``.
        args: a tree, of which anything may be traced, as what ``fun`` closes over may be.
        start: likewise what the search begins with.
        solve: ``solve(problem, *start)`` gives the solution and SciPy's result.
        guess: a point like the solution, or a tree of which the solution has the shape together.
    """
    leaves, spec = tree.flatten((args, start))
    live = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tracer) or backend.is_value(leaf)]
    values, aside = [leaves[i] for i in live], _Aside()
    hoisted: Hoisted | None = None

    def one(*values: Any) -> list[Any]:
        full, held = list(leaves), values[len(live) :]
        for i, value in zip(live, values, strict=False):
            full[i] = value
        args, start = tree.unflatten(spec, full)
        known = hoisted
        fixed = (lambda x: fun(x, *args)) if known is None else (lambda x: known(x, held))
        x, result = solve(Problem(call, fixed, args), *start)
        return aside.split(x, result)

    with no_grad():
        try:
            outs = as_one_operation(call, one, values)
        except (ConcretizationError, NotDifferentiableError):
            forgive()
            hoisted = Hoisted(call, lambda x: fun(x, *args), guess, steered=True)
            if not hoisted.held:
                raise
            values = [*values, *hoisted.held]
            aside.results.clear()
            outs = as_one_operation(call, one, values)
    return aside.joined(outs) if outs else _of_none(values, guess)


def as_one_operation(call: str, one: Callable[..., list[Any]], values: list[Any]) -> list[Any]:
    """``one(*values)``, a constant, which traces see as one operation."""
    if not any(isinstance(value, Tracer) for value in values):
        return one(*values)

    return list(custom_call(*values, rules=_constant(call, one)))


def _constant(call: str, one: Callable[..., list[Any]]) -> CustomRules:
    """Rules of a constant. They do not refer to themselves: what ``one`` holds is given back with them."""
    return CustomRules(call, lambda *values: example_by_example(one, values), jvp=partial(_push, call, one))


def _push(call: str, one: Callable[..., list[Any]], leaves: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
    outs = list(custom_call(*leaves, rules=_constant(call, one)))
    return outs, [None] * len(outs)


class _Aside:
    """What results hold beside numbers, which operations do not carry. Of a batch each example adds to it."""

    def __init__(self) -> None:
        self.results: list[Any] = []

    def split(self, x: Any, result: dict[str, Any]) -> list[Any]:
        """The numbers of a result."""
        self.results.append(result)
        # the inverse Hessian of BFGS is one of integers where the search begins at a minimum
        self.names = [name for name, value in result.items() if _is_count(value) and name != "hess_inv"]
        return [x, *[result[name] for name in self.names]]

    def joined(self, outs: list[Any]) -> Found:
        """The whole result."""
        facts = dict(zip(self.names, outs[1:], strict=True))
        alone, last = len(self.results) == 1, self.results[-1]
        for name, value in last.items():
            if isinstance(value, str):
                facts[name] = value if alone else [result.get(name) for result in self.results]
        return Found(outs[0], facts, last if alone else self.results)


def _of_none(leaves: list[Any], guess: Any) -> Found:
    """What is found for a batch without an example."""
    within: Any = max((leaf._trace for leaf in leaves if is_batched(leaf)), key=lambda trace: trace.level)
    shape = np.broadcast_shapes(*[backend.shape_of(leaf) for leaf in tree.leaves(guess)])
    return Found(tracer_of(np.empty((0, *shape)), within), defaultdict(lambda: True), [])


def _is_count(value: Any) -> bool:
    """Whether it is made of integers or truth values, which have no derivative."""
    if issubclass(type(value), np.ndarray):
        return value.dtype.kind in "biu"
    return issubclass(type(value), (bool, int, np.bool_, np.integer))


def depends(value: Any) -> bool:
    """Whether something traced is in ``value``, or another library's array."""
    return any(
        isinstance(leaf, Tracer) or backend.namespace_of(leaf) not in (None, np)
        for leaf in map(twin, tree.leaves(value))
    )


def answer(call: str, equation: Callable[[Any], Any], found: Found, solved: Any, linear: Any = dense_solve) -> Any:
    """What was found as the root of ``equation``, with the derivatives of one.

    Args:
        call: the public call, for messages.
        equation: a function of the solution that gives as many numbers.
        found: what the search gave.
        solved: whether the search converged.
        linear: what solves the linear system.

    Raises:
        ConvergenceError: it did not, and a derivative is asked for (an ``ArithmeticError``).
        LinAlgError: the Jacobian of the equation is singular.
    """
    like = np.float64(found.x) if type(found.x) is float else found.x  # a float of Python's has no dtype of its own
    shape, dtype = backend.shape_of(like), backend.dtype_of(like)

    def shaped(x: Any) -> Any:
        return fnp.reshape(fnp.astype(as_value(equation(x)), dtype), shape)

    first = shaped(like)
    xp = backend.library_of(first)
    if xp is not np:
        dtype = backend.native_dtype(xp, dtype)
        like = fnp.astype(like, dtype) if isinstance(like, Tracer) else xp.asarray(like, dtype)
    if differentiated(first) and _is_false(solved) and not _is_near(shaped, like, linear):
        raise ConvergenceError(
            f"{call}: what has not converged has no derivative, got {_message(found)}. Begin nearer to the solution, "
            "allow more steps or a larger tolerance, or take stop_gradient of what the answer depends on."
        )

    def checked(matvec: Callable[[Any], Any], b: Any) -> Any:
        try:
            return linear(matvec, b)
        except np.linalg.LinAlgError as error:
            raise np.linalg.LinAlgError(
                f"{call}: the derivative solves a linear system, got a singular matrix. The solution is a multiple one "
                "or not isolated, or bounds leave nothing to move."
            ) from error

    return custom_root(shaped, like, lambda _, x: x, checked)


def one_by_one(matvec: Callable[[Any], Any], b: Any) -> Any:
    """The solution of a system whose matrix is diagonal."""
    return b / matvec(backend.ones_like(b))


def _is_false(solved: Any) -> bool:
    """Whether the search has not ended well, in any example, or where that is not known."""
    return known(solved, steers=False) is None or anywhere(fnp.logical_not, solved)


@no_grad
def _is_near(equation: Callable[[Any], Any], x: Any, linear: Callable[..., Any]) -> bool:
    """Whether Newton's method would hardly move from ``x``: the search stopped for want of digits only."""
    try:
        step = linear(lambda v: jvp(equation, (x,), (v,))[1], equation(x))
    except np.linalg.LinAlgError:
        return False
    size = fnp.max(fnp.abs(step), initial=0.0) / (1 + fnp.max(fnp.abs(x), initial=0.0))
    return known(size, steers=False) is not None and not anywhere(lambda size: ~(size <= _NEAR), size)


def differentiated(x: Any) -> bool:
    """Whether a derivative of ``x`` is asked for, and not only its values for a batch."""
    while isinstance(x, Tracer):
        if x._trace.differentiates:
            return True
        x = x._val
    return False


def _message(found: Found) -> str:
    said = found.facts.get("message", found.facts.get("flag", found.facts.get("mesg", "no success")))
    return repr(" ".join(str(said).split()))


def with_fields(kind: Any, facts: dict[str, Any], **fields: Any) -> Any:
    """A result of SciPy's class with these entries and no others."""
    made = kind.__new__(kind)
    made.update(facts)
    made.update(fields)
    return made
