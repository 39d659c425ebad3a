"""Solving sparse systems, by factors and by iteration, and eigenvalues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.core import Tracer, describe, twin
from funcgrad.errors import ConvergenceError, InputError, ShapeError
from funcgrad.numpy.concretization import constant
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.faces import like
from funcgrad.numpy.peeking import is_plain
from funcgrad.numpy_code.sparse.objects import plain_matrix
from funcgrad.optional import import_scipy
from funcgrad.primitives.sparse import sparse_solve
from funcgrad.scipy import linalg
from funcgrad.scipy.sparse.eigen import eigs, eigsh
from funcgrad.scipy.sparse.matrices import (
    SparseArray,
    as_sparse,
    coo_array,
    csc_array,
    every_element,
    is_sparse,
    on_columns,
)
from funcgrad.transforms.implicit import custom_linear_solve
from funcgrad.transforms.products import vjp
from funcgrad.typing import Array, ArrayLike

__all__ = ["bicgstab", "cg", "eigs", "eigsh", "factorized", "gmres", "splu", "spsolve"]


def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any:
    """The solution x of ``A @ x = b``, by SuperLU; differentiable in the values of ``A`` and in ``b``.

    The factors of the last values are kept with the structure of ``A``, so that a pullback or a pushforward costs
    two triangular solves. On JAX arrays it is JAX's ``spsolve``.

    Args:
        A: a square ``SparseArray``, whose values may be traced, or a sparse matrix of SciPy, which is a constant.
        b: of shape (n,) or (n, k), dense; of a sparse matrix the solution is one whose elements are all stored.
        permc_spec: taken as SciPy takes it, and of no effect, as ``use_umfpack``: it is a matter of speed.
        use_umfpack: see ``permc_spec``.

    Raises:
        ValueError: shapes that do not fit.
        LinAlgError: ``A`` is singular.

    Example:
        >>> import scipy.sparse
        >>> A = scipy.sparse.csr_array(np.array([[2.0, 0.0], [1.0, 4.0]]))
        >>> grad(lambda b: spsolve(A, b)[1])(np.ones(2))
        array([-0.125,  0.25 ])
    """
    A = as_sparse("sparse.linalg.spsolve", A)
    if is_sparse(b):
        return every_element(spsolve(A, as_sparse("sparse.linalg.spsolve", b).toarray()))
    b = as_value(b)
    if A.shape[0] != A.shape[1]:
        raise ShapeError(f"sparse.linalg.spsolve: A must be square, got {list(A.shape)}. Use lstsq of a dense matrix.")
    return on_columns("sparse.linalg.spsolve", sparse_solve, A, b, A.shape[0])


class _Factors:
    """What ``splu`` returns: its ``solve`` is that of SciPy's object, and so are its factors."""

    def __init__(self, A: SparseArray, options: dict[str, Any]) -> None:
        self.A, self.shape, self.options = A, A.shape, options
        self._made: Any = None

    @property
    def _plain(self) -> Any:
        """SciPy's object for the values as they are."""
        if self._made is None:
            made = self.A.plain("sparse.linalg.splu").tocsc()
            self._made = import_scipy("sparse.linalg.splu", "scipy.sparse.linalg").splu(made, **self.options)
        return self._made

    perm_r = property(lambda self: self._plain.perm_r)
    perm_c = property(lambda self: self._plain.perm_c)
    nnz = property(lambda self: self._plain.nnz)
    L = property(lambda self: self._factor(0), doc="The lower factor, with ones on its diagonal; see ``_factor``.")
    U = property(lambda self: self._factor(1), doc="The upper factor; see ``_factor``.")

    def _factor(self, which: int) -> SparseArray:
        """A factor of the matrix whose rows and columns are exchanged, where SciPy's has values.

        Two steps of Newton's from SciPy's factors leave them what they are, and have their derivatives to third order:
        with ``E = inv(L) A inv(U) - I`` they are ``L (I + tril(E, -1))`` and ``(I + triu(E)) U``. They are dense.
        """
        plain = self._plain
        A = self.A.toarray()[np.argsort(plain.perm_r)][:, np.argsort(plain.perm_c)]
        lower, upper = plain.L.toarray(), plain.U.toarray()
        for _ in range(2):
            left = linalg.solve_triangular(lower, A, lower=True, unit_diagonal=True)
            rest = linalg.solve_triangular(upper.T, left.T, lower=True).T - np.eye(len(A))
            lower, upper = lower + lower @ fnp.tril(rest, -1), upper + fnp.triu(rest) @ upper
        like = (plain.L, plain.U)[which].tocoo()
        return csc_array(coo_array(((lower, upper)[which][like.row, like.col], (like.row, like.col)), like.shape))

    def solve(self, rhs: ArrayLike, trans: str = "N") -> Array:
        """The solution of the system, of the transposed one ("T") or of the adjoint one ("H")."""
        if trans not in ("N", "T", "H"):
            raise ValueError(f"splu: trans is 'N', 'T' or 'H', got {trans!r}. Give one of them.")
        A = self.A if trans == "N" else self.A.T
        return spsolve(A.with_data(fnp.conjugate(A.values)) if trans == "H" else A, rhs)


def splu(A: Any, **options: Any) -> Any:
    """An object whose ``solve(b)`` is ``spsolve(A, b)``: the factors of the last values are kept with the structure.

    Args:
        A: a square ``SparseArray``, whose values may be traced, or a sparse matrix of SciPy.
        options: those of SciPy's function, for the factors ``L`` and ``U``.

    Raises:
        LinAlgError: ``A`` is singular; said by ``solve``.

    Example:
        >>> import scipy.sparse
        >>> splu(scipy.sparse.csc_array(np.array([[2.0, 0.0], [1.0, 4.0]]))).solve(np.array([2.0, 5.0]))
        array([1., 1.])
    """
    return _Factors(as_sparse("sparse.linalg.splu", A), options)


def factorized(A: Any) -> Callable[[ArrayLike], Array]:
    """A function that solves ``A @ x = b`` for ``b``; see ``splu``.

    Raises:
        LinAlgError: ``A`` is singular; said when it is called.

    Example:
        >>> import scipy.sparse
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
    """The solution of ``A @ x = b`` for Hermitian positive-definite ``A``, by conjugate gradients.

    Differentiable in the values of ``A`` and in ``b``, to any order: a derivative solves such a system again, to the
    same tolerances. So ask for a small ``rtol``.

    Args:
        A: a ``SparseArray``, a sparse matrix of SciPy, a matrix, or a linear operator, whose function may close over
            traced values.
        b: a vector.
        x0: the first guess, of plain numbers; for plain calls alone.
        rtol: the residual that is allowed, as a share of the norm of ``b``.
        atol: the residual that is allowed in any case.
        maxiter: the most iterations.
        M: a preconditioner of plain numbers, as SciPy takes it.
        callback: called after each iteration, with plain values.

    Returns:
        The solution, and 0.

    Raises:
        ConvergenceError: no convergence, with traced values (an ``ArithmeticError``).

    Example:
        >>> import scipy.sparse
        >>> A = scipy.sparse.csr_array(np.array([[3.0, 1.0], [1.0, 2.0]]))
        >>> grad(lambda b: cg(A, b, rtol=1e-12)[0][0])(np.ones(2)).round(6)
        array([ 0.4, -0.2])
    """
    return iterated("cg", A, b, x0, rtol=rtol, atol=atol, maxiter=maxiter, M=M, callback=callback)


@like(cg)
def bicgstab(*args: Any, **kwargs: Any) -> tuple[Array, Any]:
    """The solution of ``A @ x = b`` by stabilised biconjugate gradients; see ``cg``.

    Raises:
        ConvergenceError: no convergence, with traced values (an ``ArithmeticError``).

    Example:
        >>> import scipy.sparse
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
    """The solution of ``A @ x = b`` by generalised minimal residuals; see ``cg``.

    Raises:
        ConvergenceError: no convergence, with traced values (an ``ArithmeticError``).

    Example:
        >>> import scipy.sparse
        >>> gmres(scipy.sparse.csr_array(np.array([[3.0, 1.0], [0.0, 2.0]])), np.array([4.0, 2.0]))[0].round(6)
        array([1., 1.])
    """
    options = {"restart": restart, "maxiter": maxiter, "callback": callback, "callback_type": callback_type}
    return iterated("gmres", A, b, x0, rtol=rtol, atol=atol, M=M, **options)


def iterated(name: str, A: Any, b: ArrayLike, x0: Any = None, *, M: Any = None, **options: Any) -> tuple[Array, Any]:
    """What SciPy's iterative solver of this name gives: the solution, and 0; see ``cg``.

    Args:
        name: "cg", "minres", "qmr" and so on.
        A: as for ``cg``.
        b: a vector.
        x0: the first guess.
        M: a preconditioner.
        options: others of the solver's.
    """
    call = f"sparse.linalg.{name}"
    theirs = import_scipy(call, "scipy.sparse.linalg")
    routine = getattr(theirs, name)
    options |= {} if M is None else {"M": M}
    A = plain_matrix(A)
    is_operator = hasattr(A, "matvec") and not is_sparse(A)
    follows = not is_plain(A @ np.zeros(A.shape[1])) if is_operator else isinstance(A, (SparseArray, Tracer))
    if is_plain(b, x0) and not follows:
        found: tuple[Array, Any] = routine(A, b, x0, **options)
        return found
    right = fnp.ravel(as_value(b))
    of_matrix = backend.dtype_of(A) if isinstance(A, Tracer) else A.dtype or np.float64
    dtype = np.result_type(backend.dtype_of(right), of_matrix, np.float32)
    right, size = fnp.astype(right, dtype), backend.shape_of(right)[0]
    matrix = A if isinstance(A, (SparseArray, Tracer, np.ndarray)) or is_operator else as_sparse(call, A)
    rtol, atol = options.get("rtol", 1e-5), options.get("atol", 0.0)

    def solve(turned: bool) -> Any:
        here = dict(options)
        for key in _TURNED & options.keys() if turned else ():
            here[key] = _turned(options[key], hermitian=name in _HERMITIAN)

        def solver(matvec: Callable[[Any], Any], b: Any) -> Any:
            pull = vjp(matvec, np.zeros(size, dtype))[1] if name in _BOTH_WAYS else None

            def plainly(v: Any) -> Any:
                return np.asarray(_plain(call, matvec(np.ravel(v).astype(dtype))))

            def back(v: Any) -> Any:
                assert pull is not None
                return np.conj(_plain(call, pull(np.conj(np.ravel(v).astype(dtype)))[0]))

            system = theirs.LinearOperator((size, size), plainly, back, dtype=dtype)
            b = np.asarray(_plain(call, b))
            x, info = routine(system, b, **here)
            for _ in range(10):
                if info >= 0:
                    break
                x, info = routine(system, b, x, **here)  # after a breakdown it begins anew from there
            allowed = 10 * max(rtol * np.linalg.norm(b), atol)
            if info and not np.linalg.norm(plainly(x) - b) <= allowed:  # it may break down because it is there
                raise ConvergenceError(
                    f"{call}: no convergence, got the code {info} from SciPy. Allow more iterations or a larger rtol, "
                    "or give a preconditioner M."
                )
            return np.asarray(x, dtype)

        return solver

    x = custom_linear_solve(lambda v: matrix @ v, right, solve(False), solve(True))
    return x, 0


#: Solvers of systems that are their own adjoint, and those that multiply by the adjoint, too.
_HERMITIAN, _BOTH_WAYS = ("cg", "minres"), ("bicg", "qmr")
#: Options that belong to the matrix of the system.
_TURNED = frozenset(("M", "M1", "M2"))


def _turned(M: Any, *, hermitian: bool) -> Any:
    """A preconditioner for the transposed system; none, where ``M`` is a function of which no transpose is known."""
    if M is None or hermitian:
        return M
    try:
        M.T @ np.zeros(M.shape[0])
    except NotImplementedError:
        return None
    return M.T


def _plain(call: str, x: Any) -> Any:
    x = constant(twin(x))
    if backend.namespace_of(x) is not np and not isinstance(x, Tracer):
        raise InputError(
            f"{call}: SciPy iterates on NumPy arrays, got JAX's {describe(x)}. Pass NumPy arrays, or use spsolve."
        )
    return x
