"""What SciPy has compiled, with derivatives: its own Python code, built anew, calls these functions.

Each has the arguments of the compiled function, results that it writes to among them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer, describe
from funcgrad.errors import ConversionError
from funcgrad.numpy.concretization import concrete
from funcgrad.numpy_code.distributions import DISTRIBUTIONS
from funcgrad.numpy_code.factorizations import FACTORIZATIONS
from funcgrad.numpy_code.graphs import GRAPHS
from funcgrad.numpy_code.images import IMAGES
from funcgrad.numpy_code.minima import MINIMA
from funcgrad.numpy_code.radial import RADIAL
from funcgrad.numpy_code.signals import SIGNALS
from funcgrad.numpy_code.splines import SPLINES, surface
from funcgrad.optional import import_scipy


class _At:
    """``array_api_extra.at(x, idx).set(y)``: a new array with other values at some places."""

    def __init__(self, x: Any, idx: Any = None, /) -> None:
        self.x, self.idx = x, idx

    def __getitem__(self, idx: Any) -> _At:
        return _At(self.x, idx)


def _updating(name: str) -> Callable[..., Any]:
    def update(self: _At, y: Any, /, copy: bool | None = None, xp: Any = None) -> Any:
        return getattr(fnp.at(self.x)[self.idx], name)(y)

    return update


for _name in ("set", "add", "subtract", "multiply", "divide", "power", "min", "max"):
    setattr(_At, _name, _updating(_name))


def _nquad(
    func: Callable[..., Any], ranges: Any, args: Any = None, opts: Any = None, full_output: bool = False
) -> tuple[Any, Any]:
    """``scipy.integrate.nquad``: integrals inside of integrals, the last variable being that of the outermost."""
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    quad = import_module("funcgrad.scipy.integrate").quad

    def level(i: int, outer: tuple[Any, ...]) -> Any:
        limits = ranges[i](*outer, *args) if callable(ranges[i]) else ranges[i]
        given = opts[i] if isinstance(opts, (list, tuple)) else opts or {}
        options = given(*outer, *args) if callable(given) else given

        def inner(x: Any) -> Any:
            return func(x, *outer, *args) if i == 0 else level(i - 1, (x, *outer))[0]

        return quad(inner, *limits, **options)

    found: tuple[Any, Any] = level(len(ranges) - 1, ())[:2]
    return found


def _namespace(*arrays: Any, **options: Any) -> Any:
    """``array_namespace``, by which SciPy asks arrays for their functions: traced, NumPy's and JAX's are of one."""
    return fnp


def _interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
) -> Any:
    """``scipy.interpolate.interpn``."""
    if method == "splinef2d":
        return surface(points, values, xi, bounds_error, fill_value)
    table = import_module("funcgrad.scipy.interpolate").RegularGridInterpolator
    return table(points, values, method, bounds_error, fill_value)(xi)


def _chosen(module: str, name: str) -> Callable[..., Any]:
    """A function whose answer is numbers of elements, which depend on the values as they are."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = [np.ascontiguousarray(concrete(x, name)) if isinstance(x, Tracer) else x for x in args]
        return getattr(import_module(module), name)(*given, **kwargs)

    return call


def _norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    """``scipy.linalg.norm``, which calls BLAS and LAPACK for some."""
    return fnp.linalg.norm(fnp.asarray_chkfinite(a) if check_finite else a, ord, axis, keepdims)


def _solve_triangular(
    A: Any,
    b: Any,
    lower: bool = True,
    overwrite_A: bool = False,
    overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """``scipy.sparse.linalg.spsolve_triangular``."""
    own, A = import_module("funcgrad.scipy.sparse"), getattr(A, "matrix", A)
    part = (own.tril if lower else own.triu)(A, k=(-1 if lower else 1) * unit_diagonal)
    return own.linalg.spsolve(part + own.eye_array(A.shape[0]) if unit_diagonal else part, b)


def _dense(ab: Any, below: int, above: int, n: int) -> Any:
    """The matrix whose diagonals are the rows of ``ab``, as LAPACK stores them."""
    full = fnp.zeros((n, n), fnp.result_type(ab, 1.0))
    for j in range(-below, above + 1):
        length = n - abs(j)
        rows = np.arange(length) + max(-j, 0)
        full[rows, rows + j] = ab[above - j, max(j, 0) : max(j, 0) + length]
    return full


def _gbsv(kl: int, ku: int, ab: Any, b: Any, **options: Any) -> tuple[Any, Any, Any, int]:
    """LAPACK's ``gbsv``: a system with a banded matrix. The factors, which SciPy does not use, are not given."""
    return None, None, fnp.linalg.solve(_dense(ab[kl:], kl, ku, ab.shape[1]), b), 0


def _symmetric(ab: Any, lower: int) -> Any:
    """The symmetric or Hermitian matrix, of which ``ab`` holds one half."""
    k, n = ab.shape[0] - 1, ab.shape[1]
    half = _dense(ab, k, 0, n) if lower else _dense(ab, 0, k, n)
    return half + fnp.conj(half.T) - fnp.diag(fnp.diag(half))


def _pbtrf(ab: Any, lower: int = 0, **options: Any) -> tuple[Any, int]:
    """LAPACK's ``pbtrf``: the Cholesky factor of a banded matrix, its diagonals as rows."""
    k, n = ab.shape[0] - 1, ab.shape[1]
    factor = fnp.linalg.cholesky(_symmetric(ab, lower))
    out = fnp.array(ab * 1.0)  # in the corner, which nobody reads, LAPACK leaves what was there
    for j in range(k + 1):
        if lower:
            out[j, : n - j] = fnp.diagonal(factor, -j)
        else:
            out[k - j, j:] = fnp.conj(fnp.diagonal(factor, -j))
    return out, 0


def _sbevd(ab: Any, compute_v: int = 1, lower: int = 0, **options: Any) -> tuple[Any, Any, int]:
    """LAPACK's ``sbevd`` and ``hbevd``: the eigenvalues of a symmetric or Hermitian banded matrix."""
    values, vectors = fnp.linalg.eigh(_symmetric(ab, lower))
    return values, vectors, 0


def _siegel(y: Any, x: Any, method: str) -> tuple[Any, Any]:
    """``_stats_pythran.siegelslopes``: the median over the points of the median slope to the other points.

    Pairs with the same ``x`` are left out before they are divided: a NaN in their place, as SciPy 1.18 has it, would
    make the derivative NaN.
    """
    y, x = fnp.asarray(y), fnp.asarray(x)
    run = x[:, None] - x
    same = run == 0
    slopes = (y[:, None] - y) / fnp.where(same, 1.0, run)

    def middle(of_pairs: Any) -> Any:
        return fnp.median(fnp.nanmedian(fnp.where(same, np.nan, of_pairs), axis=-1))

    slope = middle(slopes)
    if method == "hierarchical":
        return slope, fnp.median(y - slope * x)
    return slope, middle(y[:, None] - slopes * x[:, None])


def _siegelslopes(y: Any, x: Any = None, method: str = "hierarchical", **options: Any) -> Any:
    """``scipy.stats.siegelslopes`` of SciPy 1.18, of vectors."""
    y = fnp.asarray(y) * 1.0
    x = fnp.arange(float(len(y))) if x is None else fnp.asarray(x) * 1.0
    given = {name: value for name, value in options.items() if value not in (None, "propagate", False)}
    if given or y.ndim != 1 or x.shape != y.shape or len(y) < 2 or method not in ("hierarchical", "separate"):
        raise ConversionError(
            "stats.siegelslopes: traced values must be two vectors of one length, of two points at least, got "
            f"{describe(y)} and {describe(x)} with method={method!r} and {given}. Call it for each vector."
        )
    return import_scipy("stats.siegelslopes", "scipy.stats._correlation").SiegelslopesResult(*_siegel(y, x, method))


_KERNELS: dict[tuple[str, str], Callable[..., Any]] = {
    **DISTRIBUTIONS,
    **GRAPHS,
    **FACTORIZATIONS,
    **IMAGES,
    **MINIMA,
    **RADIAL,
    **SIGNALS,
    **SPLINES,
    ("scipy._lib._array_api", "array_namespace"): _namespace,
    ("scipy._lib.array_api_extra._lib._at", "at"): _At,
    ("scipy._external.array_api_extra._lib._at", "at"): _At,  # where SciPy 1.18 keeps it
    ("scipy.integrate._quadpack_py", "nquad"): _nquad,
    ("scipy.interpolate._rgi", "interpn"): _interpn,
    ("scipy.linalg._misc", "norm"): _norm,
    **{
        ("scipy.linalg._flapack", name): ours
        for ours, names in (
            (_gbsv, "sgbsv dgbsv cgbsv zgbsv"),
            (_pbtrf, "spbtrf dpbtrf cpbtrf zpbtrf"),
            (_sbevd, "ssbevd dsbevd chbevd zhbevd"),
        )
        for name in names.split()
    },
    ("scipy.optimize._lsap", "linear_sum_assignment"): _chosen("scipy.optimize._lsap", "linear_sum_assignment"),
    ("scipy.sparse.linalg._dsolve.linsolve", "spsolve_triangular"): _solve_triangular,
    ("scipy.stats._stats_pythran", "siegelslopes"): _siegel,
    ("scipy.stats._correlation", "siegelslopes"): _siegelslopes,  # which SciPy has in Python since 1.18
}


#: Modules of SciPy some of whose Python functions are here, too.
PYTHONS = frozenset(
    (
        "scipy._lib._array_api",
        "scipy._lib._array_api_override",  # where newer versions define array_namespace
        "scipy.integrate._quadpack_py",
        "scipy.interpolate._rgi",
        "scipy.linalg._misc",
        *[module for module, _ in FACTORIZATIONS],
        "scipy.ndimage._interpolation",
        "scipy.signal._upfirdn",
        "scipy.sparse.linalg._dsolve.linsolve",
        "scipy.signal._waveforms",
        "scipy.stats._correlation",
        "scipy.interpolate._ndbspline",
        *[module for module, _ in (*DISTRIBUTIONS, *MINIMA, *RADIAL)],
    )
)


def kernel(fun: Any) -> Callable[..., Any] | None:
    """What computes the same as ``fun``, a compiled function of SciPy, with derivatives; None where nothing does."""
    for (module, name), ours in _KERNELS.items():
        owner: Any = sys.modules.get(module)
        for part in name.split("."):  # a method of a class may be meant
            owner = getattr(owner, part, None)
        if module.startswith("scipy.linalg."):  # what SciPy's own code calls for each matrix of a batch
            owner = getattr(owner, "__wrapped__", owner)
        if owner is fun:
            return ours
    return None
