"""SciPy's solvers under their older names, iterative and compiled ones, by funcgrad's of equations and systems."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from math import prod
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.errors import InputError, NotDifferentiableError
from funcgrad.kinds import multilinear
from funcgrad.kinds.rules import Operation
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy.plain_values.peeking import is_plain, shared_numbers
from funcgrad.numpy_code.own import own
from funcgrad.numpy_code.sparse.objects import has_traced_values, plain_matrix
from funcgrad.optional import import_scipy
from funcgrad.primitives.indexing import add_along_axis


def _leastsq(
    func: Any,
    x0: Any,
    args: Any = (),
    Dfun: Any = None,
    full_output: Any = False,
    col_deriv: Any = False,
    ftol: float = 1.49012e-8,
    xtol: float = 1.49012e-8,
    gtol: float = 0.0,
    maxfev: int = 0,
    epsfcn: Any = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """Compute ``scipy.optimize.leastsq`` by ``least_squares`` with the method of Levenberg and Marquardt."""
    slope: Callable[..., Any] = Dfun
    jac = "2-point" if Dfun is None else (lambda x, *args: fnp.asarray(slope(x, *args)).T) if col_deriv else slope
    tolerances = {"ftol": ftol, "xtol": xtol, "gtol": max(gtol, np.finfo(float).eps), "max_nfev": maxfev or None}
    args = args if isinstance(args, tuple) else (args,)
    given: Callable[..., Any] = func
    residuals = lambda x, *args: fnp.asarray(given(x, *args))
    scale = 1.0 if diag is None else 1.0 / np.asarray(diag)
    x0 = fnp.ravel(x0)
    found = own("scipy.optimize").least_squares(residuals, x0, jac, method="lm", x_scale=scale, args=args, **tolerances)
    if not full_output:
        return found.x, found.status
    told = {"fvec": found.fun, "nfev": found.nfev}
    slopes = own("transforms").jacfwd(residuals)(found.x, *args)
    return found.x, fnp.linalg.inv(slopes.T @ slopes), told, found.message, found.status


#: Names of settings in ``root``, by their names in the separate functions.
_SETTINGS = {
    "iter": "nit",
    "verbose": "disp",
    "maxiter": "maxiter",
    "f_tol": "fatol",
    "f_rtol": "ftol",
    "x_tol": "xatol",
    "x_rtol": "xtol",
    "tol_norm": "tol_norm",
    "line_search": "line_search",
}


def _nonlinear(method: str) -> Callable[..., Any]:
    """Return a solver of SciPy that ``root`` has as a method."""

    def call(F: Any, xin: Any, iter: Any = None, *args: Any, callback: Any = None, **kwargs: Any) -> Any:
        name = "newton_krylov" if method == "krylov" else method
        theirs = import_scipy(f"optimize.{name}", "scipy.optimize")
        names = list(inspect.signature(getattr(theirs, name)).parameters)
        given = {"iter": iter, **dict(zip(names[3:], args, strict=False)), **kwargs}
        rest = {key: value for key, value in given.items() if key not in _SETTINGS}
        settings = {_SETTINGS[key]: x for key, x in given.items() if key in _SETTINGS and x is not None}
        options = {**settings, **({"jac_options": rest} if rest else {})}
        return own("scipy.optimize").root(F, xin, method=method, callback=callback, options=options).x

    return call


#: Largest number of elements of a matrix that ``with_exact_derivative`` solves with directly.
_DIRECT = 250_000


def with_exact_derivative(solver: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``lsmr`` or ``lsqr``, SciPy's code, with the derivative of the least-squares solution in ``x``.

    The steps have another derivative if they stop early, as for ``b = 0``, or at a solution in few directions. The
    derivative of operators and large matrices is that of the steps.
    """
    names = inspect.signature(solver)

    @wraps(solver)
    def call(A: Any, b: Any, damp: Any = 0.0, *args: Any, **kwargs: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):  # norms of residuals have no derivative at 0
            found = solver(A, b, damp, *args, **kwargs)
        matrix = A.toarray() if hasattr(A, "toarray") else A
        start = names.bind(A, b, damp, *args, **kwargs).arguments.get("x0")
        is_small = isinstance(matrix, (np.ndarray, Tracer)) and prod(matrix.shape) <= _DIRECT
        if not is_small or is_plain(matrix, b, damp, start):
            return found
        start = fnp.zeros(matrix.shape[1]) if start is None else fnp.asarray(start)
        right, rows = fnp.ravel(fnp.asarray(b)) - matrix @ start, fnp.asarray(matrix)
        if isinstance(damp, Tracer) or damp:
            rows = fnp.concatenate([rows, damp * fnp.eye(rows.shape[1])])
            right = fnp.concatenate([right, fnp.zeros(rows.shape[1])])
        exact = start + fnp.linalg.lstsq(rows, right, rcond=None)[0]
        constant = own("transforms").stop_gradient
        return (constant(found[0]) + (exact - constant(exact)), *found[1:])

    return call


#: Terms of the series that a traced matrix gets beyond those for its value: as many derivatives at 0 are exact.
_MORE_TERMS = 8


def with_all_terms(core: Callable[..., Any]) -> Callable[..., Any]:
    """Return a part of ``expm_multiply`` that adds all terms of the series, and some more for a traced matrix or time.

    SciPy stops where further terms do not change the value. They change derivatives, as at a vector of zeros.
    """
    names = inspect.signature(core)

    @wraps(core)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = names.bind(*args, **kwargs).arguments
        A, X, t, *_ = given.values()
        is_constant = type(A) is np.ndarray or (hasattr(A, "tocsr") and not has_traced_values(A))
        if not is_constant or isinstance(t, Tracer):
            given["m_star"] += _MORE_TERMS
        elif not (isinstance(X, Tracer) or has_traced_values(X)):
            return core(**given)
        return core(**(given | {"tol": np.nan}))  # no comparison with it is true

    return call


def _pava(x: Any, w: Any, blocks: Any) -> tuple[Any, Any, Any, int]:
    """Compute ``_pava_pybind.pava``: the means of blocks of neighbours; the blocks are constant."""
    pool = import_scipy("optimize.isotonic_regression", "scipy.optimize._pava_pybind").pava
    _, _, blocks, count = pool(*[np.array(shared_numbers(each), order="C") for each in (x, w, blocks)])
    block = np.repeat(np.arange(count), np.diff(blocks[: count + 1]))
    weights, totals = [add_along_axis(each, block, axis=0, shape=(count,)) for each in (w, w * x)]
    return fnp.take(totals / weights, block), weights, blocks, count


def _limits(A: Any, lb: Any = -np.inf, ub: Any = np.inf, keep_feasible: Any = False) -> tuple[Any, Any, Any]:
    """Return ``A``, ``lb`` and ``ub`` from the arguments of ``LinearConstraint``."""
    return A, lb, ub


def _milp(c: Any, *, integrality: Any = None, bounds: Any = None, constraints: Any = None, options: Any = None) -> Any:
    """Compute ``scipy.optimize.milp`` by ``linprog``; integer variables are constant."""
    given = () if constraints is None else (constraints,) if hasattr(constraints, "A") else tuple(constraints)
    if given and not any(hasattr(one, "A") or isinstance(one, tuple) for one in given):
        given = (given,)  # a single constraint, as a sequence of the arguments of LinearConstraint
    above, below, equal = [], [], []
    for one in given:
        matrix, low, high = _limits(*((one.A, one.lb, one.ub) if hasattr(one, "A") else one))
        A = fnp.atleast_2d(fnp.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix) * 1.0)
        low, high = (fnp.broadcast_to(fnp.asarray(end) * 1.0, (A.shape[0],)) for end in (low, high))
        floor, ceiling = shared_numbers(low), shared_numbers(high)
        for i in range(A.shape[0]):
            if floor[i] == ceiling[i]:
                equal.append((A[i], high[i]))
                continue
            below += [(A[i], high[i])] if np.isfinite(ceiling[i]) else []
            above += [(-A[i], -low[i])] if np.isfinite(floor[i]) else []
    rows = [
        [fnp.stack(part) for part in zip(*each, strict=True)] if each else [None, None]
        for each in (below + above, equal)
    ]
    size = len(c)
    low, high = (0.0, np.inf) if bounds is None else (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    ends = [fnp.broadcast_to(fnp.asarray(end) * 1.0, (size,)) for end in (low, high)]
    whole = None if integrality is None else np.broadcast_to(np.asarray(integrality), (size,))
    return own("scipy.optimize").linprog(
        c, *rows[0], *rows[1], list(fnp.stack(ends, axis=1)), integrality=whole, options=options
    )


# ---- differential equations: the integrators of ``scipy.integrate.ode`` --------------------------------------

#: Index, in the call arguments of VODE and LSODA, of the task number, and the task of reaching a given time.
_TASK, _WHOLE_WAY = 2, 1


def _check_task(integrator: Any) -> None:
    """Check that the solution at a time is requested, not single steps: funcgrad's steps differ from SciPy's.

    Raises:
        InputError: a single step, or a callback for each step, is requested.
    """
    stepping = integrator.supports_step and integrator.call_args[_TASK] != _WHOLE_WAY
    if stepping or getattr(integrator, "solout", None) is not None:
        raise InputError(
            "integrate.ode: traced values go to the times that are asked for, got step=True, relax=True or "
            f"set_solout{user_line()}. Leave it out, or use scipy.integrate.solve_ivp with dense_output=True."
        )


def _multistep(integrator: Any, f: Any, jac: Any, y0: Any, t0: Any, t1: Any, f_params: Any, jac_params: Any) -> Any:
    """Compute ``run`` of VODE, ZVODE and LSODA."""
    _check_task(integrator)
    options = {"args": tuple(f_params), "tfirst": True, "rtol": integrator.rtol, "atol": integrator.atol}
    return own("scipy.integrate").odeint(_with_array(f), y0, fnp.stack([t0, t1]), **options)[-1], t1


def _onestep(integrator: Any, f: Any, jac: Any, y0: Any, t0: Any, t1: Any, f_params: Any, jac_params: Any) -> Any:
    """Compute ``run`` of the methods of Dormand and Prince."""
    _check_task(integrator)
    method = "DOP853" if integrator.name == "dop853" else "RK45"
    options = {"method": method, "rtol": integrator.rtol, "atol": integrator.atol}
    return own("scipy.integrate").solve_ivp(_with_array(f), (t0, t1), y0, args=tuple(f_params), **options).y[:, -1], t1


def _with_array(f: Any) -> Any:
    """Return the right-hand side with array results: these integrators accept a number for an array of one element."""
    return lambda t, y, *args: fnp.atleast_1d(fnp.asarray(f(t, y, *args)))


#: Iterative solvers of sparse systems, by module.
_ITERATIONS = {
    "_gcrotmk": "gcrotmk",
    "iterative": "bicg cgs qmr",
    "lgmres": "lgmres",
    "minres": "minres",
    "tfqmr": "tfqmr",
}


def _iterated(name: str, *args: Any, **kwargs: Any) -> Any:
    """Run ``scipy.sparse.linalg.<name>``: its derivative solves the transposed system by the same iteration."""
    return own("scipy.sparse.linalg").iterated(name, *args, **kwargs)


def _solved(xp: Any, x: Any, *, factors: Any, transposed: bool) -> Any:
    columns = np.asarray(x).reshape(-1, x.shape[-1]).T
    found = factors.solve(np.ascontiguousarray(columns), "T" if transposed else "N") if columns.size else columns
    return np.ascontiguousarray(found.T).reshape(x.shape)


#: ``solve_by_factors(x, *, factors, transposed)``: solutions for right-hand sides along the last axis, by the factors
#: of a constant matrix.
solve_by_factors: Operation = multilinear(
    "solve_by_factors",
    _solved,
    transposes=[
        lambda ct, *, factors, transposed: solve_by_factors(ct, factors=factors, transposed=not transposed),
    ],
    batch="leading",
)


def checked_spilu(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``spilu``: refuse traced values, because the choice of what is dropped has no derivative."""

    @wraps(built)
    def spilu(A: Any, *args: Any, **options: Any) -> Any:
        if has_traced_values(A):
            raise NotDifferentiableError(
                f"sparse.linalg.spilu: an incomplete factorization has no derivative, got traced values{user_line()}. "
                "Pass a constant such as funcgrad.stop_gradient(A): a preconditioner needs no derivative."
            )
        given = plain_matrix(A)
        return built(given.asformat(A.format) if hasattr(A, "format") else given, *args, **options)

    return spilu


SOLVERS: dict[tuple[str, str], Any] = {
    ("scipy.integrate._ode", "vode.run"): _multistep,
    ("scipy.integrate._ode", "lsoda.run"): _multistep,
    ("scipy.integrate._ode", "dopri5.run"): _onestep,
    # SciPy 1.18: traced and constant vectors belong to one library
    ("scipy.sparse.linalg._interface", "LinearOperator._check_matching_namespace"): lambda self, x: None,
    ("scipy.optimize._milp", "milp"): _milp,
    ("scipy.optimize._minpack_py", "leastsq"): _leastsq,
    ("scipy.optimize._nonlin", "newton_krylov"): _nonlinear("krylov"),
    ("scipy.optimize._pava_pybind", "pava"): _pava,
    **{
        ("scipy.optimize._nonlin", name): _nonlinear(name)
        for name in ("anderson", "broyden1", "broyden2", "diagbroyden", "excitingmixing", "linearmixing")
    },
    **{
        (f"scipy.sparse.linalg._isolve.{home}", name): partial(_iterated, name)
        for home, names in _ITERATIONS.items()
        for name in names.split()
    },
}
