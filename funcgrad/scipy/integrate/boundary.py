"""Boundary value problems: ``solve_bvp``, differentiated through the equations that SciPy's solution satisfies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.core import Tracer, is_in_transform
from funcgrad.errors import ConcretizationError, ConvergenceError, InputError, NotDifferentiableError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.plain_values.concretization import forget_refusal
from funcgrad.numpy_code.rebuilding import run_anywhere
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.ivp.products import Pattern
from funcgrad.scipy.integrate.ivp.solutions import with_derivatives_of
from funcgrad.scipy.optimize.implicit import as_one_operation, depends, differentiated, plain, with_fields
from funcgrad.transforms.closures import RecordedClosure
from funcgrad.transforms.implicit import custom_root
from funcgrad.transforms.products import vjp
from funcgrad.transforms.side_effects import isolated, plain_form, settle
from funcgrad.transforms.stopping import no_grad, stop_gradient
from funcgrad.transforms.transformed import check_callable, check_functions
from funcgrad.typing import ArrayLike

__all__ = ["solve_bvp"]

_CALL = "integrate.solve_bvp"


def solve_bvp(
    fun: Callable[..., Any],
    bc: Callable[..., Any],
    x: ArrayLike,
    y: ArrayLike,
    p: ArrayLike | None = None,
    S: ArrayLike | None = None,
    fun_jac: Callable[..., Any] | None = None,
    bc_jac: Callable[..., Any] | None = None,
    tol: float = 1e-3,
    max_nodes: int = 1000,
    verbose: int = 0,
    bc_tol: float | None = None,
) -> Any:
    """Solve ``dy/dx = fun(x, y, p) + S y / (x - a)`` with ``bc(y(a), y(b), p) = 0``, as in ``scipy.integrate``.

    The solution is differentiable in values that ``fun`` and ``bc`` close over, to any order. SciPy finds the solution
    and its mesh; the derivative is that of the collocation equations on this mesh, one sparse linear system. The mesh
    moves with the first one, whose ends are those of the interval. Guesses are constants. Under ``vmap`` each example
    has its own mesh; shorter meshes repeat their last node.

    Args:
        fun: returns slopes ``(n, m)`` for a vector of ``m`` nodes, states ``(n, m)``, and ``p`` if it is given.
        bc: returns the ``n + k`` numbers that must be zero, for two states and ``p``.
        x: the first mesh.
        y: guesses on the mesh, ``(n, m)``, real or complex; only real ones have derivatives.
        p: guesses for ``k`` unknown parameters.
        S: the matrix of a singular term.
        fun_jac: see ``scipy.integrate.solve_bvp``.
        bc_jac: see ``scipy.integrate.solve_bvp``.
        tol: the tolerance for the relative residuals.
        max_nodes: the largest number of nodes of a mesh.
        verbose: whether to print.
        bc_tol: the tolerance for ``bc``.

    Returns:
        SciPy's result. For traced values ``y``, ``yp`` and ``p`` have derivatives, and ``sol`` is differentiable.

    Raises:
        ConvergenceError: no solution was found, and a derivative is requested (an ``ArithmeticError``).
        InputError: under ``vmap`` a function depends on other values if the mesh is longer (a ``TypeError``).

    Example:
        >>> from funcgrad.scipy.integrate import solve_bvp
        >>> def slope(force):
        ...     fun = lambda x, y: [y[1], force + 0.0 * y[0]]
        ...     bc = lambda ya, yb: [ya[0], yb[0]]
        ...     return solve_bvp(fun, bc, np.linspace(0.0, 1.0, 5), np.zeros((2, 5))).y[1, 0]
        >>> slope(2.0).round(9), grad(slope)(2.0).round(9)
        (np.float64(-1.0), np.float64(-0.5))
    """
    check_callable(_CALL, fun)
    check_functions(_CALL, bc=bc)
    solver = import_scipy(_CALL, "scipy.integrate").solve_bvp
    options = {"tol": tol, "max_nodes": max_nodes, "verbose": verbose, "bc_tol": bc_tol}
    if not is_in_transform():
        return solver(fun, bc, x, y, p, S, fun_jac, bc_jac, **options)

    fun, bc = isolated(fun), isolated(bc)
    singular = None if S is None else np.asarray(plain(_CALL, as_value(S)))

    def solve(functions: Sequence[Any], guesses: Sequence[Any]) -> Any:
        numbers = [np.asarray(plain(_CALL, a)) for a in guesses]
        return solver(*functions[:2], *[*numbers, None][:3], singular, *functions[2:], **options)

    search = _Search(solve)
    mesh = as_value(x)
    found = search.find((fun, bc, fun_jac, bc_jac), [as_value(a) for a in (mesh, y, p) if a is not None])
    if isinstance(mesh, Tracer):  # SciPy adds nodes at fixed fractions of the intervals of the first mesh
        found = found._replace(x=with_derivatives_of(found.x, fnp.interp(found.x, stop_gradient(mesh), mesh)))
    equations = _Equations(fun, bc, found, singular)
    first = equations(equations.found)
    if not depends(first):
        result = search.results[0]
        return with_fields(type(result), result, sol=_of_traced_times(result.sol))
    if not all(result.success for result in search.results):
        if differentiated(first):
            messages = {result.message for result in search.results if not result.success}
            raise ConvergenceError(
                f"{_CALL}: the solver failed, so there is no derivative, got {' '.join(sorted(messages))!r}. Give a "
                "better guess, a larger tol or more max_nodes."
            )
        return equations.settled(equations.found)
    return equations.settled(equations.solution())


def _of_traced_times(sol: Any) -> Any:
    """Return SciPy's piecewise polynomial, an object of its class, such that it takes traced times."""

    class Solution(type(sol)):  # type: ignore[misc]
        def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
            return run_anywhere(sol, (x, nu, extrapolate), {}) if depends(x) else sol(x, nu, extrapolate)

        def __reduce_ex__(self, protocol: Any) -> Any:
            return type(sol).construct_fast, parts

    parts = sol.c, sol.x, sol.extrapolate, sol.axis
    return Solution.construct_fast(*parts)


class _Solutions(NamedTuple):
    """Solutions of SciPy. For a batch, ``x``, ``y`` and so on are tracers that hide one more axis.

    Attributes:
        kind: the class of SciPy's results.
        x: the mesh; its last node is repeated if another example has a longer mesh.
        y: the states at the nodes.
        yp: the slopes at the nodes.
        p: the parameters, or None.
        last: the index of the last interval of non-zero length.
        facts: the other entries of the result.
    """

    kind: Any
    x: Any
    y: Any
    yp: Any
    p: Any
    last: Any
    facts: dict[str, Any]


class _Search:
    """SciPy's solver on plain values; for a batch, on one example after the other.

    Args:
        solve: takes ``fun``, ``bc`` and their Jacobians, or None for a Jacobian, and guesses.

    Attributes:
        results: SciPy's results.
    """

    def __init__(self, solve: Callable[..., Any]) -> None:
        self.solve = solve
        self.results: list[Any] = []

    def find(self, functions: tuple[Any, ...], guesses: list[Any]) -> _Solutions:
        """Solve, and return the solutions of all examples."""
        bare = [None if f is None else partial(_plain_call, plain_form(f)) for f in functions]
        with no_grad():
            try:
                self.results.append(self.solve(bare, guesses))
                return self._select_runs(np.int64(0))
            except (ConcretizationError, NotDifferentiableError):
                forget_refusal()
                closure = self._hoist_functions(functions, guesses)
                held = [value for part in closure if part is not None for value in part.captured]
                given = stop_gradient([*held, *guesses])
                if not any(isinstance(value, Tracer) for value in given):
                    raise
                number = as_one_operation(_CALL, lambda *values: self._run(closure, values), given)
                if not self.results:
                    raise InputError(f"{_CALL}: there is nothing to solve, got a batch without an example.") from None
                return self._select_runs(number[0])

    def _hoist_functions(self, functions: tuple[Any, ...], guesses: list[Any]) -> list[_HoistedFunction | None]:
        """Return the functions as ``_HoistedFunction``, which takes closed-over values as arguments."""
        x, y, *rest = guesses
        inside, ends = (x, y, *rest), (y[:, 0], y[:, -1], *rest)
        fun, bc, *jacobians = functions
        functions_in_rows = [lambda *args: _rows(fun(*args)), lambda *args: _rows(bc(*args)), *jacobians]
        pairs = zip(functions_in_rows, (inside, ends, inside, ends), strict=True)
        return [None if f is None else _HoistedFunction(f, args) for f, args in pairs]

    def _run(self, closure: list[Any], values: Sequence[Any]) -> list[Any]:
        """Solve one example; return the index of its result."""
        plain_values = [plain(_CALL, value) for value in values]
        for value in plain_values:
            np.asarray(value)  # raises for a batch
        functions: list[Any] = []
        for part in closure:
            count = 0 if part is None else len(part.captured)
            mine, plain_values = plain_values[:count], plain_values[count:]
            functions.append(None if part is None else part.with_values(mine))
        self.results.append(self.solve(functions, plain_values))
        return [np.int64(len(self.results) - 1)]

    def _select_runs(self, number: Any) -> _Solutions:
        """Return the results, selected for each example by ``number``, the index of its run."""
        results = self.results
        most = max(len(result.x) for result in results)

        def of_each(name: str, mode: Any = None) -> Any:
            parts = [np.asarray(result[name]) for result in results]
            if not isinstance(number, Tracer):
                return results[0][name]
            if mode is not None:  # pad meshes to one length: a repeated node does not change the equations
                missing = [most - len(result.x) for result in results]
                ways = [[*[(0, 0)] * (part.ndim - 1), (0, n)] for part, n in zip(parts, missing, strict=True)]
                parts = [np.pad(part, way, mode) for part, way in zip(parts, ways, strict=True)]
            return fnp.take(np.stack(parts), number, axis=0)

        messages = [result.message for result in results]
        facts = {name: of_each(name) for name in ("niter", "status", "success")}
        facts["rms_residuals"] = of_each("rms_residuals", "constant")
        facts["message"] = messages[0] if len(set(messages)) == 1 else messages
        last = [len(result.x) - 2 for result in results]
        return _Solutions(
            type(results[0]),
            of_each("x", "edge"),
            of_each("y", "edge"),
            of_each("yp", "edge"),
            None if results[0].p is None else of_each("p"),
            last[0] if len(set(last)) == 1 else fnp.take(np.array(last), number),
            facts,
        )


def _plain_call(f: Callable[..., Any], *args: Any) -> Any:
    return plain(_CALL, f(*args))


class _HoistedFunction:
    """A caller's function that takes the values it closes over as arguments, recorded for each mesh length.

    Args:
        fun: the function.
        args: arguments for the first recording.
    """

    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.fun = fun
        self._known: dict[Any, RecordedClosure] = {}
        self.captured = self._recording_for(args).captured

    def _recording_for(self, args: tuple[Any, ...]) -> RecordedClosure:
        key = tuple([np.shape(arg) for arg in args])
        if key not in self._known:
            self._known[key] = RecordedClosure(_CALL, lambda args: self.fun(*args), args, checks_branches=True)
        return self._known[key]

    def with_values(self, values: Sequence[Any]) -> Callable[..., Any]:
        """Return the function for other values of the variables that it closes over."""

        def called(*args: Any) -> Any:
            recorded = self._recording_for(args)
            if len(recorded.captured) != len(values):
                raise InputError(
                    f"{_CALL}: under vmap a function must depend on the same values for meshes of any length, got "
                    f"{len(values)} values for one and {len(recorded.captured)} for another. Solve one example after "
                    "the other."
                )
            return tree.map(np.asarray, recorded(args, values))

        return called


class _Equations:
    """The collocation equations of a solution, as a function of one vector of all unknowns."""

    def __init__(self, fun: Callable[..., Any], bc: Callable[..., Any], plain: _Solutions, S: Any) -> None:
        self.fun, self.bc, self.plain, self.S = fun, bc, plain, S
        self.shape = backend.shape_of(plain.y)
        self.rest = [] if plain.p is None else [plain.p]
        self.found = fnp.concatenate([fnp.ravel(plain.y), *self.rest])
        # SciPy replaces the singular term at the first node by its limit
        self.limit = None if S is None else np.linalg.pinv(np.eye(self.shape[0]) - S)
        self.h = plain.x[1:] - plain.x[:-1]

    def slopes(self, x: Any, y: Any, p: list[Any], first: bool) -> Any:
        """Return the right-hand side with its singular term; ``first``: whether ``x`` begins with the first node."""
        f = _rows(self.fun(x, y, *p))
        if self.S is None:
            return f
        away = x - self.plain.x[0]
        whole = f + fnp.matmul(self.S, y) / fnp.where(away == 0, np.inf, away)
        if not first:
            return whole
        return fnp.concatenate([fnp.matmul(self.limit, f[:, :1]), whole[:, 1:]], axis=1)

    def parts(self, z: Any) -> tuple[Any, list[Any]]:
        """Split the vector of unknowns into states and parameters."""
        count = self.shape[0] * self.shape[1]
        y = fnp.reshape(z[:count], self.shape)
        return y, [z[count:]] if self.rest else []

    def __call__(self, z: Any) -> Any:
        """Return the residuals (Kierzenka and Shampine, A BVP solver based on residual control, 2001)."""
        y, p = self.parts(z)
        x, h = self.plain.x, self.h
        f = self.slopes(x, y, p, True)
        middle = 0.5 * (y[:, 1:] + y[:, :-1]) - 0.125 * h * (f[:, 1:] - f[:, :-1])
        between = self.slopes(x[:-1] + 0.5 * h, middle, p, False)
        inner = y[:, 1:] - y[:, :-1] - h / 6.0 * (f[:, :-1] + f[:, 1:] + 4.0 * between)
        ends = _rows(self.bc(y[:, 0], y[:, -1], *p))
        return fnp.concatenate([fnp.ravel(inner), fnp.ravel(ends)])

    def solution(self) -> Any:
        """Return the vector of all unknowns, with derivatives."""
        pattern = Pattern(self._entries(), self.shape[0] * self.shape[1] + self._count)
        return custom_root(
            self,
            self.found,
            lambda _, start: start,
            lambda matvec, b: _solved(pattern, matvec, b, False),
            transpose_solve=lambda matvec, b: _solved(pattern, matvec, b, True),
        )

    def settled(self, z: Any) -> Any:
        """Return SciPy's result with the derivatives of ``z``, at which ``fun`` and ``bc`` have been called last."""
        y, p = self.parts(z)
        settle(self.fun, self.plain.x, y, *p)
        settle(self.bc, y[:, 0], y[:, -1], *p)
        return self.result(z)

    def result(self, z: Any) -> Any:
        """Return SciPy's result with the derivatives of ``z``."""
        plain = self.plain
        y, p = self.parts(z)
        y = with_derivatives_of(plain.y, y)
        yp = with_derivatives_of(plain.yp, self.slopes(plain.x, y, p, True))
        fields = {"x": plain.x, "y": y, "yp": yp, "p": p[0] if p else None}
        return with_fields(plain.kind, plain.facts, **fields, sol=_Spline(plain.x, y, yp, plain.last))

    @property
    def _count(self) -> int:
        """Number of parameters."""
        return int(backend.shape_of(self.rest[0])[0]) if self.rest else 0

    def _entries(self) -> Any:
        """Return the Jacobian's pattern: inner equations use two adjacent nodes, boundary conditions both ends."""
        sparse = import_scipy(_CALL, "scipy.sparse")
        n, m = self.shape
        two = sparse.diags_array([np.ones(m - 1), np.ones(m - 1)], offsets=[0, 1], shape=(m - 1, m))
        inside = sparse.kron(sparse.coo_array(np.ones((n, n))), two)
        ends = np.zeros((1, m))
        ends[0, [0, -1]] = 1.0
        k = self._count
        whole = sparse.vstack([inside, sparse.kron(sparse.coo_array(np.ones((n + k, n))), ends)])
        return sparse.hstack([whole, np.ones((n * m + k, k))]) if k else whole


def _solved(pattern: Pattern, matvec: Callable[[Any], Any], b: Any, transposed: bool) -> Any:
    """Solve a linear system whose matrix, or its transpose if ``transposed``, has the sparsity pattern."""

    def push(seed: Any) -> Any:
        return vjp(matvec, backend.zeros_like(seed))[1](seed)[0] if transposed else matvec(seed)

    matrix = pattern.matrix(lambda seeds: np.stack([np.asarray(push(seed)) for seed in seeds]))
    factors = import_scipy(_CALL, "scipy.sparse.linalg").splu(matrix)
    return factors.solve(np.asarray(b), "T" if transposed else "N")


class _Spline:
    """The cubic spline with given values and slopes.

    Args:
        x: the nodes.
        y: the values at the nodes.
        slopes: the slopes at the nodes.
        last: the index of the last interval.
    """

    def __init__(self, x: Any, y: Any, slopes: Any, last: Any) -> None:
        self.x, self.y, self.slopes, self.last = x, y, slopes, last

    def __call__(self, t: ArrayLike) -> Any:
        """Return the states at ``t``, with the axes of ``t`` last."""
        t = as_value(t)
        place = fnp.searchsorted(self.x, stop_gradient(t), side="right") - 1
        place = fnp.minimum(fnp.maximum(place, 0), self.last)

        def take(a: Any, more: int = 0) -> Any:
            return fnp.take(a, place + more, axis=-1)

        start = take(self.x)
        h = take(self.x, 1) - start
        u = (t - start) / h
        first, last = take(self.y), take(self.y, 1)
        rise = u * u * (3.0 - 2.0 * u)
        bends = h * u * (1.0 - u) * ((1.0 - u) * take(self.slopes) - u * take(self.slopes, 1))
        return first + rise * (last - first) + bends


def _rows(values: Any) -> Any:
    """Return rows, possibly in a list, as one array."""
    return fnp.array(values) if isinstance(values, (list, tuple)) else as_value(values)
