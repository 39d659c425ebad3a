"""Solvers of sparse systems, by factors and by iteration, and eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer, describe, shallow_copy
from funcgrad.errors import ConvergenceError, InputError, ShapeError
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.function_tables import with_signature_of
from funcgrad.numpy.plain_values.concretization import strip_constant_tracers
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy_code.sparse.objects import arranged_as, plain_matrix
from funcgrad.optional import import_scipy
from funcgrad.primitives.sparse import sparse_solve
from funcgrad.scipy import linalg
from funcgrad.scipy.settings import constant_settings
from funcgrad.scipy.sparse.eigen import eigs, eigsh
from funcgrad.scipy.sparse.matrices import (
    SparseArray,
    as_sparse,
    canonical,
    coo_array,
    dense_as_sparse,
    is_of_dense,
    is_sparse,
    on_columns,
)
from funcgrad.transforms.implicit import custom_linear_solve
from funcgrad.transforms.products import vjp
from funcgrad.transforms.stopping import stop_gradient
from funcgrad.typing import Array, ArrayLike

__all__ = ["bicgstab", "cg", "eigs", "eigsh", "factorized", "gmres", "splu", "spsolve"]


def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any:
    """Solve ``A @ x = b`` by SuperLU; the solution is differentiable in the values of ``A`` and in ``b``.

    The factors of the last values are kept with the structure of ``A``, so a pullback or a pushforward costs two
    triangular solves. On JAX arrays it is JAX's ``spsolve``.

    Args:
        A: a square ``SparseArray``, whose values may be traced, or a sparse matrix of SciPy, which is a constant.
        b: of shape (n,) or (n, k), dense. For a sparse ``b`` of several columns the solution is sparse and stores all
            its elements. For one column, dense or sparse, the solution is a vector, as SciPy's.
        permc_spec: accepted as in SciPy, without effect, like ``use_umfpack``: it only influences speed.

    Raises:
        ValueError: shapes that do not match.
        LinAlgError: ``A`` is singular.

    Example:
        >>> import scipy.sparse
        >>> from funcgrad.scipy.sparse.linalg import spsolve
        >>> A = scipy.sparse.csr_array(np.array([[2.0, 0.0], [1.0, 4.0]]))
        >>> grad(lambda b: spsolve(A, b)[1])(np.ones(2))
        array([-0.125,  0.25 ])
    """
    A = as_sparse("sparse.linalg.spsolve", A)
    if is_sparse(b):
        x = spsolve(A, as_sparse("sparse.linalg.spsolve", b).toarray())
        return dense_as_sparse(x) if x.ndim == 2 else x
    b = as_value(b)
    if A.shape[0] != A.shape[1]:
        raise ShapeError(f"sparse.linalg.spsolve: A must be square, got {list(A.shape)}. Use lstsq of a dense matrix.")
    if backend.shape_of(b)[1:] == (1,):
        b = fnp.ravel(b)
    return on_columns("sparse.linalg.spsolve", sparse_solve, A, b, A.shape[0])


class _Factors:
    """Result of ``splu``, with the ``solve`` method and the factors of SciPy's object."""

    def __init__(self, A: SparseArray, options: dict[str, Any]) -> None:
        self.A, self.shape, self.options = A, A.shape, options
        self._made: Any = None

    @property
    def _plain(self) -> Any:
        """SciPy's object for the present values."""
        if self._made is None:
            made = self.A.plain("sparse.linalg.splu").tocsc()
            if is_of_dense(self.A):  # SciPy stores no zeros of it, and orders the columns by what it stores
                made.eliminate_zeros()
            self._made = import_scipy("sparse.linalg.splu", "scipy.sparse.linalg").splu(made, **self.options)
        return self._made

    perm_r = property(lambda self: self._plain.perm_r)
    perm_c = property(lambda self: self._plain.perm_c)
    nnz = property(lambda self: self._plain.nnz)
    L = property(lambda self: self._factor(0), doc="Lower factor, with ones on its diagonal; see ``_factor``.")
    U = property(lambda self: self._factor(1), doc="Upper factor; see ``_factor``.")

    def _factor(self, which: int) -> SparseArray:
        """Return a factor of the matrix with exchanged rows and columns, with values where SciPy's factor has values.

        Two Newton steps from SciPy's factors keep their values and give them derivatives up to third order: with
        ``E = inv(L) A inv(U) - I`` a step gives ``L (I + tril(E, -1))`` and ``(I + triu(E)) U``. The steps are dense.
        """
        plain = self._plain
        A = self.A.toarray()[np.argsort(plain.perm_r)][:, np.argsort(plain.perm_c)]
        lower, upper = plain.L.toarray(), plain.U.toarray()
        for _ in range(2):
            left = linalg.solve_triangular(lower, A, lower=True, unit_diagonal=True)
            rest = linalg.solve_triangular(upper.T, left.T, lower=True).T - np.eye(len(A))
            lower, upper = lower + lower @ fnp.tril(rest, -1), upper + fnp.triu(rest) @ upper
        found, like = (lower, upper)[which], (plain.L, plain.U)[which]
        rows, columns = like.tocoo().coords
        made = coo_array((found[rows, columns], (rows, columns)), like.shape)
        if is_of_dense(self.A):  # zeros have derivatives
            there = np.zeros(like.shape, bool)
            there[rows, columns] = True
            made = dense_as_sparse(fnp.where(there, found, found - stop_gradient(found)))
            made.of_dense = True
        arranged: SparseArray = arranged_as(like, made)
        return arranged

    def solve(self, rhs: ArrayLike, trans: str = "N") -> Array:
        """Solve the system, the transposed system ("T") or the adjoint system ("H")."""
        if trans not in ("N", "T", "H"):
            raise ValueError(f"splu: trans is 'N', 'T' or 'H', got {trans!r}. Give one of them.")
        A = self.A if trans == "N" else self.A.T
        rhs = as_value(rhs)
        x = spsolve(A.with_data(fnp.conjugate(A.values)) if trans == "H" else A, rhs)
        return fnp.reshape(x, backend.shape_of(rhs))


def splu(A: Any, **options: Any) -> Any:
    """Return an object whose ``solve(b)`` is ``spsolve(A, b)``; the structure keeps the factors of the last values.

    Args:
        A: a square ``SparseArray``, whose values may be traced, or a sparse matrix of SciPy.
        options: options of SciPy's function, for the factors ``L`` and ``U``.

    Raises:
        LinAlgError: ``A`` is singular; raised by ``solve``.

    Example:
        >>> import scipy.sparse
        >>> from funcgrad.scipy.sparse.linalg import splu
        >>> splu(scipy.sparse.csc_array(np.array([[2.0, 0.0], [1.0, 4.0]]))).solve(np.array([2.0, 5.0]))
        array([1., 1.])
    """
    return _Factors(as_sparse("sparse.linalg.splu", A), options)


def factorized(A: Any) -> Callable[[ArrayLike], Array]:
    """Return a function that solves ``A @ x = b`` for ``b``; see ``splu``.

    Raises:
        LinAlgError: ``A`` is singular; raised by the returned function.

    Example:
        >>> import scipy.sparse
        >>> from funcgrad.scipy.sparse.linalg import factorized
        >>> factorized(scipy.sparse.csc_array(np.array([[2.0, 0.0], [1.0, 4.0]])))(np.array([2.0, 5.0]))
        array([1., 1.])
    """
    solve: Callable[[ArrayLike], Array] = splu(A).solve
    return solve


def cg(
    A: Any,
    b: ArrayLike,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[..., Any] | None = None,
) -> tuple[Array, Any]:
    """Solve ``A @ x = b`` for Hermitian positive-definite ``A``, by conjugate gradients.

    The solution is differentiable in the values of ``A`` and in ``b``, to any order. A derivative solves such a system
    again, to the same tolerances, so choose a small ``rtol``.

    Args:
        A: a ``SparseArray``, a sparse matrix of SciPy, a matrix, or a linear operator, whose function may close over
            traced values.
        b: a vector.
        x0: the first guess, of plain numbers; only calls with plain values use it.
        rtol: the allowed residual, relative to the norm of ``b``.
        atol: the allowed absolute residual.
        maxiter: the largest number of iterations.
        M: a preconditioner in SciPy's form; its values are constants, on which the solution does not depend.
        callback: called after each iteration, with plain values.

    Returns:
        The solution, and 0.

    Raises:
        ConvergenceError: no convergence, with traced values (an ``ArithmeticError``).

    Example:
        >>> import scipy.sparse
        >>> from funcgrad.scipy.sparse.linalg import cg
        >>> A = scipy.sparse.csr_array(np.array([[3.0, 1.0], [1.0, 2.0]]))
        >>> grad(lambda b: cg(A, b, rtol=1e-12)[0][0])(np.ones(2)).round(6)
        array([ 0.4, -0.2])
    """
    return iterated("cg", A, b, x0, rtol=rtol, atol=atol, maxiter=maxiter, M=M, callback=callback)


@with_signature_of(cg)
def bicgstab(*args: Any, **kwargs: Any) -> tuple[Array, Any]:
    """Solve ``A @ x = b`` by stabilised biconjugate gradients; see ``cg``.

    Raises:
        ConvergenceError: no convergence, with traced values (an ``ArithmeticError``).

    Example:
        >>> import scipy.sparse
        >>> from funcgrad.scipy.sparse.linalg import bicgstab
        >>> bicgstab(scipy.sparse.csr_array(np.array([[3.0, 1.0], [0.0, 2.0]])), np.array([4.0, 2.0]))[0].round(6)
        array([1., 1.])
    """
    return iterated("bicgstab", *args, **kwargs)


def gmres(
    A: Any,
    b: ArrayLike,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[..., Any] | None = None,
    callback_type: str | None = None,
) -> tuple[Array, Any]:
    """Solve ``A @ x = b`` by generalised minimal residuals; see ``cg``.

    Raises:
        ConvergenceError: no convergence, with traced values (an ``ArithmeticError``).

    Example:
        >>> import scipy.sparse
        >>> from funcgrad.scipy.sparse.linalg import gmres
        >>> gmres(scipy.sparse.csr_array(np.array([[3.0, 1.0], [0.0, 2.0]])), np.array([4.0, 2.0]))[0].round(6)
        array([1., 1.])
    """
    options = {"restart": restart, "maxiter": maxiter, "callback": callback, "callback_type": callback_type}
    return iterated("gmres", A, b, x0, rtol=rtol, atol=atol, M=M, **options)


def iterated(name: str, A: Any, b: ArrayLike, x0: Any = None, *, M: Any = None, **options: Any) -> tuple[Array, Any]:
    """Return the solution by SciPy's iterative solver of this name, and 0; see ``cg``.

    Args:
        name: "cg", "minres", "qmr" and so on.
        A: as for ``cg``.
        b: a vector.
        x0: the first guess.
        M: a preconditioner.
        options: further options of the solver: constants, but for ``shift`` of ``minres``.
    """
    call = f"sparse.linalg.{name}"
    scipy_linalg = import_scipy(call, "scipy.sparse.linalg")
    routine = getattr(scipy_linalg, name)
    options = constant_settings(call, options) | ({} if M is None else {"M": M})
    A = plain_matrix(A)
    is_operator = hasattr(A, "matvec") and not is_sparse(A)
    follows = not is_plain(A @ np.zeros(A.shape[1])) if is_operator else isinstance(A, (SparseArray, Tracer))
    if is_plain(b, x0, options.get("shift")) and not follows:
        found: tuple[Array, Any] = routine(A, b, x0, **options)
        return found
    right = fnp.ravel(as_value(b))
    of_matrix = backend.dtype_of(A) if isinstance(A, Tracer) else A.dtype or np.float64
    dtype = np.result_type(backend.dtype_of(right), of_matrix, np.float32)
    right, size = fnp.astype(right, dtype), backend.shape_of(right)[0]
    matrix = A if isinstance(A, (SparseArray, Tracer, np.ndarray)) or is_operator else as_sparse(call, A)
    shift = options.pop("shift", None)
    rtol, atol = options.get("rtol", 1e-5), options.get("atol", 0.0)
    for key in _PRECONDITIONERS & options.keys():
        options[key] = _constant_preconditioner(call, options[key])

    def solve(transposed: bool) -> Any:
        here = dict(options)
        for key in _PRECONDITIONERS & options.keys() if transposed else ():
            here[key] = _transposed_preconditioner(options[key], hermitian=name in _HERMITIAN)

        def solver(matvec: Callable[[Any], Any], b: Any) -> Any:
            pullback = vjp(matvec, np.zeros(size, dtype))[1] if name in _WITH_ADJOINT_PRODUCT else None

            def multiply(v: Any) -> Any:
                return np.asarray(_plain(call, matvec(np.ravel(v).astype(dtype))))

            def multiply_adjoint(v: Any) -> Any:
                assert pullback is not None
                return np.conj(_plain(call, pullback(np.conj(np.ravel(v).astype(dtype)))[0]))

            system = scipy_linalg.LinearOperator((size, size), multiply, multiply_adjoint, dtype=dtype)
            b = np.asarray(_plain(call, b))
            x, info = routine(system, b, **here)
            for _ in range(10):
                if info >= 0:
                    break
                x, info = routine(system, b, x, **here)  # after a breakdown the solver restarts from ``x``
            allowed = 10 * max(rtol * np.linalg.norm(b), atol)
            if info and not np.linalg.norm(multiply(x) - b) <= allowed:  # a solver may break down at the solution
                raise ConvergenceError(
                    f"{call}: no convergence, got the code {info} from SciPy. Allow more iterations or a larger rtol, "
                    "or give a preconditioner M."
                )
            return np.asarray(x, dtype)

        return solver

    def product(v: Any) -> Any:
        return matrix @ v if shift is None else matrix @ v - shift * v

    return custom_linear_solve(product, right, solve(False), solve(True)), 0


#: Solvers of self-adjoint systems, and solvers that also multiply by the adjoint.
_HERMITIAN, _WITH_ADJOINT_PRODUCT = ("cg", "minres"), ("bicg", "qmr")
#: Options that belong to the matrix of the system.
_PRECONDITIONERS = frozenset(("M", "M1", "M2"))


def _constant_preconditioner(call: str, M: Any) -> Any:
    """Return the preconditioner ``M`` with plain values, on which the solution does not depend.

    All columns of an operator with traced values are computed.
    """
    M = plain_matrix(M)
    if hasattr(M, "matvec") and not is_sparse(M) and not is_plain(M @ np.zeros(M.shape[1])):
        M = fnp.stack([M @ unit for unit in np.eye(M.shape[1])], axis=1)
    if isinstance(M, SparseArray):
        whole = canonical(M)
        return whole.structure.matrix(np.asarray(_plain(call, stop_gradient(whole.values))))
    return np.asarray(_plain(call, stop_gradient(M))) if isinstance(M, Tracer) else M


def _transposed_preconditioner(M: Any, *, hermitian: bool) -> Any:
    """Return a preconditioner for the transposed system; None if ``M`` is a function without a known transpose."""
    if M is None or hermitian:
        return M
    try:
        M.T @ np.zeros(M.shape[0])
    except NotImplementedError:
        return None
    return M.T


def _plain(call: str, x: Any) -> Any:
    x = strip_constant_tracers(shallow_copy(x))
    if backend.namespace_of(x) is not np and not isinstance(x, Tracer):
        raise InputError(
            f"{call}: SciPy iterates on NumPy arrays, got JAX's {describe(x)}. Pass NumPy arrays, or use spsolve."
        )
    return x
