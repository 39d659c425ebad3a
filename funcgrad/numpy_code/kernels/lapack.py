"""Routines of LAPACK and BLAS for factors and products, as programs call them: ``scipy.linalg.lapack.dpotrf(a)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import READ_ONLY, Tracer
from funcgrad.numpy_code.own import own


def _halves(x: Any, lower: Any) -> tuple[Any, Any]:
    """Return the half of a matrix that a routine uses, with the diagonal, and the other half."""
    return (fnp.tril(x), fnp.triu(x, 1)) if lower else (fnp.triu(x), fnp.tril(x, -1))


def _into(target: Any, found: Any, overwrite: Any) -> Any:
    """Write a result to the argument that a routine may overwrite: programs go on with the argument."""
    if not overwrite or not isinstance(target, Tracer) or target.alias is READ_ONLY:
        return found
    writable: Any = target
    writable[...] = found
    return writable


def _potrf(a: Any, lower: int = 0, clean: int = 1, overwrite_a: int = 0) -> tuple[Any, int]:
    """Compute ``potrf``: the Cholesky factor of the matrix of which ``a`` holds one half."""
    try:
        factor = own("scipy.linalg").cholesky(a, lower=bool(lower))
    except np.linalg.LinAlgError:
        return a, 1
    return _into(a, factor if clean else factor + _halves(a, lower)[1], overwrite_a), 0


def _potri(c: Any, lower: int = 0, overwrite_c: int = 0) -> tuple[Any, int]:
    """Compute ``potri``: one half of the inverse of a matrix, given its Cholesky factor."""
    inverse = own("scipy.linalg").cho_solve((c, bool(lower)), np.eye(len(c)))
    return _into(c, _halves(inverse, lower)[0] + _halves(c, lower)[1], overwrite_c), 0


def _trtri(c: Any, lower: int = 0, unitdiag: int = 0, overwrite_c: int = 0) -> tuple[Any, int]:
    """Compute ``trtri``: the inverse of a triangular matrix."""
    (inverse, _), other = _trtrs(c, np.eye(len(c)), lower, 0, unitdiag), _halves(c, lower)[1]
    if unitdiag:  # the diagonal is neither read nor written
        other = other + fnp.diag(fnp.diag(c)) - np.eye(len(c))
    return _into(c, inverse + other, overwrite_c), 0


def _trtrs(
    a: Any, b: Any, lower: int = 0, trans: int = 0, unitdiag: int = 0, lda: Any = None, overwrite_b: int = 0
) -> tuple[Any, int]:
    """Compute ``trtrs``: solve a triangular system."""
    options: dict[str, Any] = {"trans": trans, "lower": bool(lower), "unit_diagonal": bool(unitdiag)}
    return _into(b, own("scipy.linalg").solve_triangular(a, b, **options), overwrite_b), 0


def _gesv(a: Any, b: Any, overwrite_a: int = 0, overwrite_b: int = 0) -> tuple[Any, Any, Any, int]:
    """Compute ``gesv``: factors of a matrix, and the solution of a system."""
    ours = own("scipy.linalg")
    try:
        found = ours.solve(a, b)
        factors, pivots = ours.lu_factor(a)
    except np.linalg.LinAlgError:
        return a, np.arange(len(a)), b, 1
    return _into(a, factors, overwrite_a), pivots, _into(b, found, overwrite_b), 0


def _posv(a: Any, b: Any, lower: int = 0, overwrite_a: int = 0, overwrite_b: int = 0) -> tuple[Any, Any, int]:
    """Compute ``posv``: the Cholesky factor of a matrix, and the solution of a system."""
    factor, info = _potrf(a, lower, 0, overwrite_a)
    return factor, b if info else _into(b, own("scipy.linalg").cho_solve((factor, bool(lower)), b), overwrite_b), info


def _gtsv(
    dl: Any,
    d: Any,
    du: Any,
    b: Any,
    overwrite_dl: int = 0,
    overwrite_d: int = 0,
    overwrite_du: int = 0,
    overwrite_b: int = 0,
) -> tuple[None, None, None, Any, int]:
    """Compute ``gtsv``: solve a tridiagonal system; None stands for the factors, which programs leave aside."""
    zero = np.zeros(1)
    rows = fnp.stack([fnp.concatenate((zero, du)), d, fnp.concatenate((dl, zero))])
    try:
        found = own("scipy.linalg").solve_banded((1, 1), rows, b)
    except np.linalg.LinAlgError:
        return None, None, None, b, 1
    return None, None, None, _into(b, found, overwrite_b), 0


def _gemm(
    alpha: Any, a: Any, b: Any, beta: Any = 0.0, c: Any = None, trans_a: int = 0, trans_b: int = 0, overwrite_c: int = 0
) -> Any:
    """Compute ``gemm``: a product of matrices, plus a multiple of ``c``."""
    found = alpha * ((a.T if trans_a else a) @ (b.T if trans_b else b))
    return found if c is None else _into(c, found + beta * c, overwrite_c)


def _syrk(
    alpha: Any, a: Any, beta: Any = 0.0, c: Any = None, trans: int = 0, lower: int = 0, overwrite_c: int = 0
) -> Any:
    """Compute ``syrk``: one half of the product of a matrix with its transpose, plus a multiple of ``c``."""
    half = _halves(_gemm(alpha, a, a, beta, c, trans, not trans), lower)[0]
    return half if c is None else _into(c, half + _halves(c, lower)[1], overwrite_c)


_ROUTINES: dict[str, dict[str, Callable[..., Any]]] = {
    "lapack": {
        **{"gesv": _gesv, "gtsv": _gtsv, "posv": _posv},
        **{"potrf": _potrf, "potri": _potri, "trtri": _trtri, "trtrs": _trtrs},
    },
    "blas": {"gemm": _gemm, "syrk": _syrk},
}
#: Entries for ``table``: routines in single and double precision.
LAPACK: dict[tuple[str, str], Callable[..., Any]] = {
    (f"scipy.linalg._f{home}", kind + name): ours
    for home, routines in _ROUTINES.items()
    for name, ours in routines.items()
    for kind in "sd"
}
