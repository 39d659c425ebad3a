"""Boundary value problems: ``solve_bvp``, differentiated by the equations that SciPy's solution obeys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.errors import ConvergenceError
from funcgrad.numpy.creation import as_value
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.ivp.patterns import Pattern
from funcgrad.scipy.integrate.ivp.solutions import valued
from funcgrad.scipy.optimize.implicit import depends, plain, with_fields
from funcgrad.transforms.implicit import custom_root
from funcgrad.transforms.products import vjp
from funcgrad.transforms.stopping import no_grad, stop_gradient
from funcgrad.transforms.transformed import check_callable
from funcgrad.typing import ArrayLike
from funcgrad.writable import inside

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
    """The solution of ``dy/dx = fun(x, y, p) + S y / (x - a)`` with ``bc(y(a), y(b), p) = 0``, as ``scipy.integrate``.

    Differentiable in what ``fun`` and ``bc`` close over, to any order: SciPy finds the solution and its mesh, and the
    derivative is that of the collocation equations on this mesh, one sparse linear system. Guesses are constants.

    Args:
        fun: of a vector of ``m`` places, states ``(n, m)``, and ``p`` where there is one: ``(n, m)``.
        bc: ``n + k`` numbers that must be zero, of two states and ``p``.
        x: the first mesh.
        y: guesses on it, ``(n, m)``, real or complex; derivatives are for real ones.
        p: guesses for ``k`` unknown parameters.
        S: the matrix of a singular term.
        fun_jac: see ``scipy.integrate.solve_bvp``.
        bc_jac: see there.
        tol: the tolerance for the relative residuals.
        max_nodes: the most places of a mesh.
        verbose: whether to print.
        bc_tol: the tolerance for ``bc``.

    Returns:
        SciPy's result. Of traced values ``y``, ``yp`` and ``p`` have derivatives, and ``sol`` is a function with them.

    Raises:
        ConvergenceError: no solution was found, and a derivative is asked for (an ``ArithmeticError``).
        ConcretizationError: what the functions close over differs between the examples of a ``vmap``.

    Example:
        >>> import numpy as np
        >>> from funcgrad import grad
        >>> def slope(force):
        ...     fun = lambda x, y: [y[1], force + 0.0 * y[0]]
        ...     bc = lambda ya, yb: [ya[0], yb[0]]
        ...     return solve_bvp(fun, bc, np.linspace(0.0, 1.0, 5), np.zeros((2, 5))).y[1, 0]
        >>> slope(2.0).round(9), grad(slope)(2.0).round(9)
        (np.float64(-1.0), np.float64(-0.5))
    """
    check_callable(_CALL, fun)
    check_callable(_CALL, bc)
    solver = import_scipy(_CALL, "scipy.integrate").solve_bvp
    options = {"tol": tol, "max_nodes": max_nodes, "verbose": verbose, "bc_tol": bc_tol}
    if not inside():
        return solver(fun, bc, x, y, p, S, fun_jac, bc_jac, **options)

    def bare(f: Any) -> Any:
        return None if f is None else lambda *args: plain(_CALL, f(*args))

    guesses = [None if a is None else np.asarray(plain(_CALL, as_value(a))) for a in (x, y, p, S)]
    with no_grad():
        result = solver(bare(fun), bare(bc), *guesses, bare(fun_jac), bare(bc_jac), **options)
    equations = _Equations(fun, bc, result, guesses[3])
    if not depends(equations(equations.found)):
        return result
    if not result.success:
        raise ConvergenceError(
            f"{_CALL}: what was not solved has no derivative, got {result.message!r}. Give a better guess, a larger "
            "tol or more max_nodes."
        )
    return equations.result()


class _Equations:
    """The collocation equations of a solution, as a function of one vector of all unknowns."""

    def __init__(self, fun: Callable[..., Any], bc: Callable[..., Any], result: Any, S: Any) -> None:
        self.fun, self.bc, self.plain, self.S = fun, bc, result, S
        self.shape = result.y.shape
        self.rest = [] if result.p is None else [result.p]
        self.found = np.concatenate([result.y.ravel(), *self.rest])
        # at the first place the singular term is replaced by its limit, as SciPy does it
        self.limit = None if S is None else np.linalg.pinv(np.eye(self.shape[0]) - S)
        self.h = np.diff(result.x)

    def slopes(self, x: Any, y: Any, p: list[Any]) -> Any:
        """The right-hand side with its singular term."""
        f = self.fun(x, y, *p)
        f = fnp.array(f) if isinstance(f, (list, tuple)) else as_value(f)
        if self.S is None:
            return f
        away = x - self.plain.x[0]
        whole = f + fnp.matmul(self.S, y) / np.where(away == 0, np.inf, away)
        if away[0] > 0:
            return whole
        return fnp.concatenate([fnp.matmul(self.limit, f[:, :1]), whole[:, 1:]], axis=1)

    def parts(self, z: Any) -> tuple[Any, list[Any]]:
        """States and parameters."""
        count = self.shape[0] * self.shape[1]
        y = fnp.reshape(z[:count], self.shape)
        return y, [z[count:]] if self.rest else []

    def __call__(self, z: Any) -> Any:
        """What must be zero: Kierzenka and Shampine, A BVP solver based on residual control, 2001."""
        y, p = self.parts(z)
        x, h = self.plain.x, self.h
        f = self.slopes(x, y, p)
        middle = 0.5 * (y[:, 1:] + y[:, :-1]) - 0.125 * h * (f[:, 1:] - f[:, :-1])
        between = self.slopes(x[:-1] + 0.5 * h, middle, p)
        inner = y[:, 1:] - y[:, :-1] - h / 6.0 * (f[:, :-1] + f[:, 1:] + 4.0 * between)
        ends = self.bc(y[:, 0], y[:, -1], *p)
        ends = fnp.array(ends) if isinstance(ends, (list, tuple)) else as_value(ends)
        return fnp.concatenate([fnp.ravel(inner), fnp.ravel(ends)])

    def result(self) -> Any:
        """SciPy's result with derivatives."""
        pattern = Pattern(self._entries(), len(self.found))
        z = custom_root(
            self,
            self.found,
            lambda _, start: start,
            lambda matvec, b: _solved(pattern, matvec, b, False),
            transpose_solve=lambda matvec, b: _solved(pattern, matvec, b, True),
        )
        y, p = self.parts(z)
        y = valued(self.plain.y, y)
        yp = valued(self.plain.yp, self.slopes(self.plain.x, y, p))
        facts = {name: self.plain[name] for name in ("x", "rms_residuals", "niter", "status", "message", "success")}
        fields = {"y": y, "yp": yp, "p": p[0] if p else None, "sol": _Spline(self.plain.x, y, yp)}
        return with_fields(type(self.plain), facts, **fields)

    def _entries(self) -> Any:
        """Where the Jacobian has entries: each equation inside knows two places, each at the ends both of them."""
        sparse = import_scipy(_CALL, "scipy.sparse")
        n, m = self.shape
        two = sparse.diags_array([np.ones(m - 1), np.ones(m - 1)], offsets=[0, 1], shape=(m - 1, m))
        inside = sparse.kron(np.ones((n, n)), two)
        ends = np.zeros((1, m))
        ends[0, [0, -1]] = 1.0
        k = len(self.found) - n * m
        whole = sparse.vstack([inside, sparse.kron(np.ones((n + k, n)), ends)])
        return sparse.hstack([whole, np.ones((n * m + k, k))]) if k else whole


def _solved(pattern: Pattern, matvec: Callable[[Any], Any], b: Any, transposed: bool) -> Any:
    """The solution of a system whose matrix, or whose transpose, has the pattern."""

    def push(seed: Any) -> Any:
        return vjp(matvec, backend.zeros_like(seed))[1](seed)[0] if transposed else matvec(seed)

    matrix = pattern.matrix(lambda seeds: np.stack([np.asarray(push(seed)) for seed in seeds]))
    factors = import_scipy(_CALL, "scipy.sparse.linalg").splu(matrix)
    return factors.solve(np.asarray(b), "T" if transposed else "N")


class _Spline:
    """The cubic spline through values with given slopes."""

    def __init__(self, x: Any, y: Any, slopes: Any) -> None:
        self.x, self.y, self.slopes = x, y, slopes

    def __call__(self, t: ArrayLike) -> Any:
        """The states at ``t``: along the last axes."""
        t = as_value(t)
        fixed = np.asarray(plain(_CALL, stop_gradient(t)))
        place = np.clip(np.searchsorted(self.x, fixed, side="right") - 1, 0, len(self.x) - 2)
        h = (self.x[1:] - self.x[:-1])[place]
        u = (t - self.x[place]) / h
        first, last = self.y[:, place], self.y[:, place + 1]
        rise = u * u * (3.0 - 2.0 * u)
        bends = h * u * (1.0 - u) * ((1.0 - u) * self.slopes[:, place] - u * self.slopes[:, place + 1])
        return first + rise * (last - first) + bends
