"""SciPy's compiled functions with derivatives: SciPy's rebuilt Python code calls these functions.

Each has the signature of the compiled function, including output arguments that it writes to.
"""

from __future__ import annotations

import inspect
import operator
import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.batching import is_in_batch
from funcgrad.core import READ_ONLY, Tracer, describe, plain_value
from funcgrad.errors import ConcretizationError, ConversionError
from funcgrad.numpy.plain_values.concretization import user_line
from funcgrad.numpy.plain_values.peeking import any_true, concrete_or_none, is_plain, shared_numbers
from funcgrad.numpy_code.conversions import holds_traced
from funcgrad.numpy_code.examples import with_example_loop
from funcgrad.numpy_code.kernels.clusters import CLUSTERS
from funcgrad.numpy_code.kernels.cosmology import COSMOLOGY
from funcgrad.numpy_code.kernels.distributions import (
    DISTRIBUTIONS,
    entropy_of_density,
    expectation,
    integral_of_normals,
    with_triangular_factor,
)
from funcgrad.numpy_code.kernels.elementwise import ELEMENTWISE, elementwise, with_where_on_jax
from funcgrad.numpy_code.kernels.factorizations import FACTORIZATIONS, angles_without_singular_vectors
from funcgrad.numpy_code.kernels.fourier import FOURIER
from funcgrad.numpy_code.kernels.graphs import GRAPHS
from funcgrad.numpy_code.kernels.images import IMAGES
from funcgrad.numpy_code.kernels.lapack import LAPACK
from funcgrad.numpy_code.kernels.legendre import LEGENDRE
from funcgrad.numpy_code.kernels.minima import MINIMA
from funcgrad.numpy_code.kernels.numbers_apart import NUMBERS_APART
from funcgrad.numpy_code.kernels.radial import RADIAL
from funcgrad.numpy_code.kernels.random_variables import RANDOM_VARIABLE_WRAPPERS, RANDOM_VARIABLES
from funcgrad.numpy_code.kernels.resampling import RESAMPLING
from funcgrad.numpy_code.kernels.rotations import ROTATIONS, with_all_steps
from funcgrad.numpy_code.kernels.scikit_learn import SCIKIT_LEARN, SCIKIT_LEARN_WRAPPERS
from funcgrad.numpy_code.kernels.signals import SIGNALS, periodogram_at_any_phase, response_without_roots
from funcgrad.numpy_code.kernels.solvers import SOLVERS, checked_spilu, with_all_terms, with_exact_derivative
from funcgrad.numpy_code.kernels.splines import SPLINES, surface
from funcgrad.numpy_code.kernels.state_space import STATE_SPACE
from funcgrad.numpy_code.kernels.transport import distance_of_points
from funcgrad.numpy_code.kernels.wrapping import Built, around
from funcgrad.numpy_code.own import known_value, on_plain_values, own
from funcgrad.numpy_code.sparse.members import laplacian_with_zeros
from funcgrad.optional import import_scipy
from funcgrad.writable import Proxy


class _At:
    """Counterpart of ``array_api_extra.at(x, idx).set(y)``: ``x`` with other values at some indices."""

    def __init__(self, x: Any, idx: Any = None, /) -> None:
        self.x, self.idx = x, idx

    def __getitem__(self, idx: Any) -> _At:
        return _At(self.x, idx)


def _updating(name: str) -> Callable[..., Any]:
    def update(self: _At, y: Any, /, copy: bool | None = None, xp: Any = None) -> Any:
        x: Any = self.x
        found = getattr(fnp.at(x)[self.idx], name)(y)
        stays = copy or not isinstance(x, Tracer) or not fnp.ndim(x) or x.alias is READ_ONLY
        if not stays:
            self.x[...] = found  # in place, as SciPy does with NumPy's arrays
        return found if stays else self.x

    return update


for _name in ("set", "add", "subtract", "multiply", "divide", "power", "min", "max"):
    setattr(_At, _name, _updating(_name))


#: Modules in which SciPy checks to which library a namespace belongs, before SciPy 1.18 and since.
_LIBRARIES = tuple([f"scipy.{home}.array_api_compat.common._helpers" for home in ("_lib", "_external")])


#: Whether a call is running that SciPy refuses for arrays of other libraries, see ``_needing_numpy``.
_NEEDS_NUMPY: ContextVar[bool] = ContextVar("_NEEDS_NUMPY", default=False)


def _is_numpy_namespace(xp: Any) -> bool:
    """Replace ``is_numpy``, with which SciPy refuses options for arrays of other libraries, see ``_needing_numpy``."""
    library = next(sys.modules[name] for name in _LIBRARIES if name in sys.modules)
    return (_NEEDS_NUMPY.get() and xp is fnp) or bool(library.is_numpy_namespace(xp))


def _interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = np.nan
) -> Any:
    if method == "splinef2d":
        return surface(points, values, xi, bounds_error, fill_value)
    table = own("scipy.interpolate").RegularGridInterpolator
    return table(points, values, method, bounds_error, fill_value)(xi)


def _diric(x: Any, n: Any) -> Any:
    """Compute ``scipy.special.diric`` as a quotient of two ``sinc``, which are smooth where SciPy's sines vanish."""
    x, n = fnp.asarray(x), fnp.asarray(n)
    n = n + (x - x)
    x = (x + (n - n)) / (2 * np.pi)
    turns = fnp.round(x)
    sign = fnp.where(fnp.mod(turns * (n - 1), 2) == 1, -1, 1)
    found = sign * fnp.sinc(n * (x - turns)) / fnp.sinc(x - turns)
    return fnp.where((n > 0) & (n == fnp.floor(n)), found, np.nan)


def _squares_are_inexact(x: Any) -> Any:
    """Whether the sum of squares overflows, or loses digits of small numbers."""
    limits, largest = np.finfo(backend.dtype_of(x)), np.max(np.abs(x), initial=0)  # also of traced values
    small, large = 2.0 ** (limits.minexp // 2 + limits.nmant), 2.0 ** (limits.maxexp // 2 - 30)
    return (largest > large) | ((largest > 0) & (largest < small))


def _nrm2(x: Any) -> Any:
    """Compute the norm of a vector as BLAS does, whose squares neither overflow nor underflow."""
    is_known = concrete_or_none(x, steers=False) is not None
    if not backend.is_inexact(x) or (is_known and not any_true(_squares_are_inexact, x)):
        return fnp.linalg.norm(x)  # takes a third of the time
    largest = fnp.max(abs(own("transforms.stopping").stop_gradient(x)), initial=0)
    usual = (largest > 0) & (largest < np.inf)
    unit = fnp.exp2(fnp.floor(fnp.log2(fnp.where(usual, largest, 1)))).astype(largest.dtype)
    return fnp.linalg.norm(x / unit) * unit


def _norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    """Compute ``scipy.linalg.norm``, which calls BLAS and LAPACK for some norms."""
    if axis is None and not keepdims and (ord is None or (is_plain(ord) and ord == 2)) and fnp.ndim(a) == 1:
        return _nrm2(fnp.asarray_chkfinite(a) if check_finite else fnp.asarray(a))
    return fnp.linalg.norm(fnp.asarray_chkfinite(a) if check_finite else a, ord, axis, keepdims)


def _solve_triangular(
    A: Any,
    b: Any,
    lower: bool = True,
    overwrite_A: bool = False,
    overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    sparse, A = own("scipy.sparse"), getattr(A, "matrix", A)
    part = (sparse.tril if lower else sparse.triu)(A, k=(-1 if lower else 1) * unit_diagonal)
    b = fnp.asarray(b)
    x = sparse.linalg.spsolve(part + sparse.eye_array(A.shape[0]) if unit_diagonal else part, b)
    return fnp.reshape(x, b.shape)  # the solution of one column is a column, unlike that of ``spsolve``


def _permuted(A: Any, axes: Any = None, copy: bool = False) -> Any:
    """Compute ``scipy.sparse.permute_dims``."""
    if A.ndim != 2:
        return A.transpose(axes)
    order = (1, 0) if axes is None else tuple(operator.index(axis) % 2 for axis in axes)
    if sorted(order) != [0, 1]:
        raise ValueError("duplicate value in axis" if len(order) == 2 else "Incorrect number of axes")
    return A.T.tocoo() if order == (1, 0) else A.copy() if copy else A


def _gbsv(kl: int, ku: int, ab: Any, b: Any, **options: Any) -> tuple[Any, Any, Any, int]:
    """Compute LAPACK's ``gbsv``: solve a banded system. The factors, which SciPy does not use, are None."""
    return None, None, own("scipy.linalg").solve_banded((kl, ku), ab[kl:], b), 0


def _trsm(alpha: Any, a: Any, b: Any, side: int = 0, lower: int = 0, trans_a: int = 0, diag: int = 0, **_: Any) -> Any:
    """Compute BLAS's ``trsm``: solve a triangular system, with the matrix on the left or right of the unknown."""
    options = {"trans": int(bool(trans_a) != bool(side)), "lower": bool(lower), "unit_diagonal": bool(diag)}
    found = own("scipy.linalg").solve_triangular(a, alpha * (b.T if side else b), **options)
    return found.T if side else found


def _symmetric(ab: Any, lower: int) -> Any:
    """Return the symmetric or Hermitian matrix of which ``ab`` holds one half."""
    k = ab.shape[0] - 1
    half = own("scipy.linalg.operations").dense_of_bands(fnp, ab, *((k, 0) if lower else (0, k)))
    return own("scipy.linalg.solving").hermitian_of(half, bool(lower))


def _pbtrf(ab: Any, lower: int = 0, **options: Any) -> tuple[Any, int]:
    """Compute LAPACK's ``pbtrf``: the Cholesky factor of a banded matrix, with its diagonals as rows."""
    k, n = ab.shape[0] - 1, ab.shape[1]
    factor = fnp.linalg.cholesky(_symmetric(ab, lower))
    out = fnp.array(ab * 1.0)  # LAPACK leaves the unused corner unchanged
    for j in range(k + 1):
        if lower:
            out[j, : n - j] = fnp.diagonal(factor, -j)
        else:
            out[k - j, j:] = fnp.conj(fnp.diagonal(factor, -j))
    return out, 0


def _potrs(c: Any, b: Any, lower: int = 0, overwrite_b: int = 0) -> tuple[Any, int]:
    """Compute LAPACK's ``potrs``: solve a system, given the Cholesky factor of its matrix."""
    return own("scipy.linalg").cho_solve((c, bool(lower)), b), 0


def _swap(x: Any, y: Any) -> tuple[Any, Any]:
    """Compute BLAS's ``swap``, whose results programs write to the places that the vectors come from."""
    return fnp.array(y), fnp.array(x)


def _sbevd(ab: Any, compute_v: int = 1, lower: int = 0, **options: Any) -> tuple[Any, Any, int]:
    """Compute LAPACK's ``sbevd`` and ``hbevd``: the eigenvalues of a symmetric or Hermitian banded matrix."""
    values, vectors = fnp.linalg.eigh(_symmetric(ab, lower))
    signs = own("scipy.linalg.operations").phases(vectors, ab, call="eig_banded", options=(("lower", bool(lower)),))
    return values, vectors * signs, 0


def _sbevx(
    ab: Any, vl: float, vu: float, il: int, iu: int, compute_v: int = 1, range: int = 2, lower: int = 0, **options: Any
) -> tuple[Any, Any, int, Any, int]:
    """Compute LAPACK's ``sbevx`` and ``hbevx``: some eigenvalues of a banded matrix, by value (1) or by index (2)."""
    limits = (float(vl), float(vu)) if range == 1 else (int(il) - 1, int(iu) - 1)
    values, vectors = fnp.linalg.eigh(_symmetric(ab, lower))
    chosen = own("scipy.linalg.factors").wanted_slice(values, *((None, limits) if range == 1 else (limits, None)))
    values, vectors = values[chosen], vectors[:, chosen]
    options = {"lower": bool(lower), "select": "v" if range == 1 else "i", "select_range": limits}
    signs = own("scipy.linalg.operations").phases(vectors, ab, call="eig_banded", options=tuple(options.items()))
    return values, vectors * signs, len(values), None, 0


def _hausdorff(u: Any, v: Any, *rest: Any) -> tuple[Any, int, int]:
    """Compute ``_hausdorff.directed_hausdorff``: the distance of two points, whose indices are constants."""
    find = import_scipy("spatial.distance.directed_hausdorff", "scipy.spatial._hausdorff").directed_hausdorff
    _, i, j = find(*[np.ascontiguousarray(shared_numbers(x)) for x in (u, v)], *rest)
    apart = fnp.asarray(u)[i] - fnp.asarray(v)[j]
    return fnp.linalg.norm(apart), i, j


def _siegel(y: Any, x: Any, method: str) -> tuple[Any, Any]:
    """Compute ``_stats_pythran.siegelslopes``: the median over points of the median slope to the other points.

    Pairs with the same ``x`` are masked before the division: dividing and then masking by NaN, as SciPy 1.18 does,
    would make the derivative NaN.
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
    """Compute ``scipy.stats.siegelslopes`` of SciPy 1.18 for vectors."""
    y = fnp.asarray(y) * 1.0
    x = fnp.arange(float(len(y))) if x is None else fnp.asarray(x) * 1.0
    given = {name: value for name, value in options.items() if value not in (None, "propagate", False)}
    if given or y.ndim != 1 or x.shape != y.shape or len(y) < 2 or method not in ("hierarchical", "separate"):
        raise ConversionError(
            "stats.siegelslopes: traced values must be two vectors of one length, of two points at least, got "
            f"{describe(y)} and {describe(x)} with method={method!r} and {given}. Call it for each vector."
        )
    return import_scipy("stats.siegelslopes", "scipy.stats._correlation").SiegelslopesResult(*_siegel(y, x, method))


def _polynomial(name: str) -> Callable[..., Any]:
    """Return a function that makes SciPy's polynomial object, which can be called at traced points unchanged."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if holds_traced(args) or holds_traced(kwargs.values()):
            raise ConversionError(
                f"special.{name}: the parameters of a polynomial object take plain values only, got traced ones"
                f"{user_line()}. Use scipy.special.eval_{name}, which takes the point as well."
            )
        return getattr(import_scipy(f"special.{name}", "scipy.special"), name)(*args, **kwargs)

    return call


_POLYNOMIALS = (
    "chebyc chebys chebyt chebyu gegenbauer genlaguerre hermite hermitenorm jacobi laguerre legendre sh_chebyt "
    "sh_chebyu sh_jacobi sh_legendre"
)

#: Functions whose results are integers, or ranks: constants.
_DISCRETE = {
    "scipy.optimize._lsap": "linear_sum_assignment",
    "scipy.special._ufuncs": "_binom_isf _binom_ppf _nbinom_isf _nbinom_ppf",
    "scipy.stats._stats": "_kendall_dis _weightedrankedtau",
}
_KERNELS: dict[tuple[str, str], Callable[..., Any]] = {
    **{("scipy.special._orthogonal", name): _polynomial(name) for name in _POLYNOMIALS.split()},
    **CLUSTERS,
    **DISTRIBUTIONS,
    **COSMOLOGY,
    **GRAPHS,
    **FACTORIZATIONS,
    **FOURIER,
    **IMAGES,
    **LAPACK,
    **LEGENDRE,
    **MINIMA,
    **RADIAL,
    **RANDOM_VARIABLES,
    **ROTATIONS,
    **SCIKIT_LEARN,
    **SIGNALS,
    **SOLVERS,
    **SPLINES,
    ("scipy._lib._array_api", "array_namespace"): lambda *arrays, **options: fnp,  # shared by traced and other arrays
    **{(home, "is_numpy_namespace"): _is_numpy_namespace for home in _LIBRARIES},
    **{  # it calls private functions of NumPy
        (f"{home}array_api_compat.numpy.linalg", "solve"): lambda *args, **kwargs: fnp.linalg.solve(*args, **kwargs)
        for home in ("", "scipy._lib.", "scipy._external.", "sklearn.externals.")
    },
    ("scipy._lib.array_api_extra._lib._at", "at"): _At,
    ("scipy._external.array_api_extra._lib._at", "at"): _At,  # the module in SciPy 1.18
    ("scipy.interpolate._rgi", "interpn"): _interpn,
    ("scipy.linalg._misc", "norm"): _norm,
    ("scipy.linalg._fblas", "dtrsm"): _trsm,
    **{("scipy.linalg._fblas", f"{kind}nrm2"): _nrm2 for kind in "sd"},
    **{("scipy.linalg._fblas", f"{kind}swap"): _swap for kind in "sd"},
    **{
        ("scipy.linalg._flapack", name): ours
        for ours, names in (
            (_gbsv, "sgbsv dgbsv cgbsv zgbsv"),
            (_pbtrf, "spbtrf dpbtrf cpbtrf zpbtrf"),
            (_potrs, "spotrs dpotrs"),
            (_sbevd, "ssbevd dsbevd chbevd zhbevd"),
            (_sbevx, "ssbevx dsbevx chbevx zhbevx"),
        )
        for name in names.split()
    },
    ("scipy.sparse._construct", "permute_dims"): _permuted,
    ("scipy.spatial._hausdorff", "directed_hausdorff"): _hausdorff,
    ("scipy.special._basic", "diric"): _diric,
    **{(module, name): on_plain_values(module, name) for module, names in _DISCRETE.items() for name in names.split()},
    ("scipy.sparse.linalg._dsolve.linsolve", "spsolve_triangular"): _solve_triangular,
    ("scipy.stats._stats_pythran", "siegelslopes"): _siegel,
    ("scipy.stats._correlation", "siegelslopes"): _siegelslopes,  # which is Python code since SciPy 1.18
}


def kernel(fun: Any) -> Callable[..., Any] | None:
    """Return the function with derivatives that replaces ``fun``, a compiled function of SciPy, or None."""
    found: Callable[..., Any] | None = _KERNEL_TABLE.entry_for(fun)
    return found


@around
def _zmap_omitting_nans(
    built: Built, scores: Any, compare: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate"
) -> Any:
    """Wrap ``zmap``: omitted NaNs are not divided by the deviation, whose derivative would become NaN."""
    found = built(scores, compare, axis, ddof, nan_policy)
    if nan_policy != "omit" or type(found) is not Tracer:
        return found
    missing = fnp.isnan(found)
    return fnp.where(missing, np.nan, built(fnp.where(missing, 0.0, scores), compare, axis, ddof, nan_policy))


@around
def _checked_place_poles(built: Built, A: Any, B: Any, *args: Any, **kwargs: Any) -> Any:
    """Wrap ``place_poles``: refuse inputs for which many gains place the poles, of which SciPy returns one."""
    inputs = np.asarray(known_value(B, "signal.place_poles"))
    if inputs.ndim == 2 and inputs.shape[1] > 1 and np.linalg.matrix_rank(inputs) < len(inputs):
        raise ConversionError(
            f"signal.place_poles: with several inputs many gains place the poles, and the one that SciPy stops at "
            f"has no derivative, got B of shape {inputs.shape}{user_line()}. Minimise a cost of the gains, or use "
            "one input."
        )
    return built(A, B, *args, **kwargs)


def _needing_numpy(name: str, is_refused: Callable[[Any], bool]) -> Callable[[Any], Callable[..., Any]]:
    """Return a wrapper for a function that needs NumPy arrays if its argument ``name`` satisfies ``is_refused``."""

    def around(built: Callable[..., Any]) -> Callable[..., Any]:
        parameters = inspect.signature(built)

        @wraps(built)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                refused = is_refused(parameters.bind(*args, **kwargs).arguments.get(name))
            except TypeError:  # which the function raises itself
                refused = False
            before = _NEEDS_NUMPY.set(refused)
            try:
                return built(*args, **kwargs)
            finally:
                _NEEDS_NUMPY.reset(before)

        return call

    return around


def _expectile_of_numbers(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``expectile``: a sample with a NaN gives NaN, which SciPy finds by a search that does not converge."""

    def expectile(a: Any, alpha: Any = 0.5, *, weights: Any = None) -> Any:
        total = fnp.sum(a)
        return total if fnp.isnan(total) else built(a, alpha, weights=weights)

    return with_example_loop(expectile, "scipy.stats.expectile")


def _hessian_of_each(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``differentiate.hessian``, which joins the numbers of calls of two searches, for one example at a time."""

    def hessian(f: Any, x: Any, **options: Any) -> Any:
        if is_in_batch(x):
            raise ConcretizationError(
                "scipy.differentiate.hessian: f closes over values of a vmap. Use funcgrad's hessian."
            )
        return built(f, x, **options)

    return with_example_loop(hessian, "scipy.differentiate.hessian")


@around
def _without_traced_points(built: Built, self: Any, x: Any, y: Any, **options: Any) -> None:
    """Wrap ``AAA``: refuse traced values, because its weights are a direction determined only up to rounding."""
    if holds_traced((x, y)):
        raise ConversionError(
            "interpolate.AAA: the points and weights that it chooses have no derivative, got traced values"
            f"{user_line()}. Use interpolate.FloaterHormannInterpolator, whose weights are known."
        )
    built(self, x, y, **options)


def _constant_of_one(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``_var``: the variance of one observation is a quotient by zero, whose gradient is NaN if it is not used."""

    @wraps(built)
    def call(x: Any, axis: Any = 0, ddof: Any = 0, *args: Any, **options: Any) -> Any:
        if axis is None or not is_plain(ddof) or np.shape(x)[axis] > ddof or not np.shape(x)[axis]:
            return built(x, axis, ddof, *args, **options)
        return own("transforms.stopping").stop_gradient(built(x, axis, ddof, *args, **options))

    return call


@around
def _keeping_classes(
    built: Built, array: Any, dtype: Any = None, *args: Any, subok: bool = False, **kwargs: Any
) -> Any:
    """Wrap ``_asarray``: masked arrays and matrices keep their class where SciPy keeps that of a NumPy array."""
    if subok and isinstance(array, Proxy):
        return fnp.asanyarray(array, dtype)
    return built(array, dtype, *args, subok=subok, **kwargs)


def _is_unknown_in_jax(x: Any) -> bool:
    return backend.is_jax_tracer(plain_value(x))


def _is_lazy(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``is_lazy_array``, with which SciPy asks whether to leave out checks that need the numbers."""
    return lambda x: _is_unknown_in_jax(x) or built(x)


def _of_known_elements(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``_contains_nan``, which looks at the elements that are not masked, and at none that are not known yet.

    A NaN among those that are not known goes through the function into its result.
    """

    @wraps(built)
    def call(a: Any, nan_policy: str = "propagate", *args: Any, **options: Any) -> Any:
        if nan_policy == "propagate" and _is_unknown_in_jax(a):
            return False
        return built(a.filled(0.0) if hasattr(a, "filled") else a, nan_policy, *args, **options)

    return call


#: Wrappers of rebuilt functions of SciPy and statsmodels.
_WRAPPERS: dict[tuple[str, str], Callable[[Any], Callable[..., Any]]] = {
    **NUMBERS_APART,
    **STATE_SPACE,
    **RANDOM_VARIABLE_WRAPPERS,
    **{place: partial(elementwise, is_fixed=is_fixed) for place, is_fixed in ELEMENTWISE.items()},
    **SCIKIT_LEARN_WRAPPERS,
    ("scipy._lib.array_api_extra._lib._funcs", "apply_where"): with_where_on_jax,
    ("scipy._external.array_api_extra._lib._funcs", "apply_where"): with_where_on_jax,  # the module in SciPy 1.18
    ("scipy._lib._array_api", "_asarray"): _keeping_classes,
    ("scipy._lib._util", "_contains_nan"): _of_known_elements,
    **{(home, "is_lazy_array"): _is_lazy for home in _LIBRARIES},
    ("scipy.differentiate._differentiate", "hessian"): _hessian_of_each,
    ("scipy.linalg._decomp_svd", "subspace_angles"): angles_without_singular_vectors,
    ("scipy.signal._ltisys", "freqresp"): response_without_roots,
    ("scipy.signal._spectral_py", "lombscargle"): periodogram_at_any_phase,
    ("scipy.signal._ltisys", "place_poles"): _checked_place_poles,
    ("scipy.sparse.csgraph._laplacian", "_laplacian_sparse"): laplacian_with_zeros,
    ("scipy.sparse.linalg._dsolve.linsolve", "spilu"): checked_spilu,
    **{
        ("scipy.sparse.linalg._expm_multiply", f"_expm_multiply_{name}"): with_all_terms
        for name in ("simple_core", "interval_core_1", "interval_core_2")
    },
    **{(f"scipy.sparse.linalg._isolve.{name}", name): with_exact_derivative for name in ("lsmr", "lsqr")},
    ("scipy.spatial.transform._rotation_spline", "RotationSpline._solve_for_angular_rates"): with_all_steps,
    ("scipy.stats._distn_infrastructure", "rv_continuous._entropy"): entropy_of_density,
    ("scipy.stats._distn_infrastructure", "rv_continuous.expect"): expectation,
    ("scipy.stats._multivariate", "_PSD.__init__"): with_triangular_factor,
    ("scipy.stats._qmvnt", "_qauto"): integral_of_normals,
    ("scipy.stats._stats_py", "_var"): _constant_of_one,
    **RESAMPLING,
    ("scipy.stats._stats_py", "expectile"): _expectile_of_numbers,
    ("scipy.stats._stats_py", "wasserstein_distance_nd"): distance_of_points,
    ("scipy.stats._stats_py", "zmap"): _zmap_omitting_nans,
    ("scipy.interpolate._bary_rational", "AAA.__init__"): _without_traced_points,
    ("scipy.interpolate._rbfinterp", "RBFInterpolator.__init__"): _needing_numpy("neighbors", lambda k: k is not None),
    ("scipy.interpolate._rbfinterp", "RBFInterpolator.__call__"): partial(
        with_example_loop, name="scipy.interpolate.RBFInterpolator"
    ),
    ("scipy.stats._stats_py", "ttest_ind"): _needing_numpy("trim", bool),
    ("scipy.stats._hypotests", "cramervonmises"): _needing_numpy("cdf", lambda cdf: isinstance(cdf, str)),
}


#: Modules whose functions are NumPy's own for constants.
_MASKED = ("numpy.ma.core", "numpy.ma.extras")
#: Modules with functions that are replaced or wrapped here.
MODULES_WITH_REPLACEMENTS = frozenset(
    (
        *[module for module, _ in (*_KERNELS, *_WRAPPERS)],
        "scipy._lib._array_api_override",  # where newer versions define array_namespace
        *_MASKED,
    )
)


def with_wrapper(fun: Any, built: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``built``, the replacement for ``fun``, in its wrapper if there is one."""
    if fun.__module__ in _MASKED and built.__module__ in _MASKED:
        found: Callable[..., Any] = own("numpy_code.masked").for_constants(fun, built)
        return found
    wrap = _WRAPPER_TABLE.entry_for(fun)
    return built if wrap is None else wrap(built)


class _TableByObject:
    """Table keyed by module and name, with lookup by the object there. Each module is read once, after its import."""

    def __init__(self, table: dict[tuple[str, str], Any]) -> None:
        self._table = table
        self._not_imported = frozenset(module for module, _ in table)  # not imported yet
        self._known: dict[int, tuple[Any, Any]] = {}  # holds the objects, so that their ``id`` is not reused
        self._latest: tuple[int, str] | None = None  # how many modules were imported, and the last of them

    def entry_for(self, fun: Any) -> Any:
        """Return the entry for the module and name where ``fun`` is defined; None if there is no entry."""
        latest = len(sys.modules), next(reversed(sys.modules))
        if latest != self._latest:
            waiting = self._not_imported & sys.modules.keys()
            loaded = set(filter(_is_loaded, waiting))
            for place, ours in self._table.items():
                if place[0] in loaded and (standing := _object_at(place)) is not None:
                    self._known.setdefault(id(standing), (standing, ours))
            self._not_imported -= loaded  # last, because other threads may look up meanwhile
            self._latest = latest if loaded == waiting else None
        found = self._known.get(id(fun))
        return None if found is None else found[1]


def _is_loaded(module: str) -> bool:
    """Whether a module has been imported completely."""
    found = sys.modules.get(module)
    return found is not None and not getattr(found.__spec__, "_initializing", False)


def _object_at(place: tuple[str, str]) -> Any:
    """Return the object in a module under a name, or a class's member; None if this SciPy does not have it."""
    owner: Any = sys.modules[place[0]]
    for part in place[1].split("."):  # the name may be that of a method of a class
        owner = getattr(owner, part, None)
    # in linear algebra, the function that SciPy calls for each matrix of a batch
    return getattr(owner, "__wrapped__", owner) if place[0].startswith("scipy.linalg.") else owner


_KERNEL_TABLE, _WRAPPER_TABLE = _TableByObject(_KERNELS), _TableByObject(_WRAPPERS)
