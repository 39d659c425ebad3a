"""Exponentials, square roots and logarithms of square matrices.

Matrices occupy the last two axes; leading axes are batches. The derivative L of such a function f along a
matrix t comes with its values, whatever the eigenvalues are: ``f([[x, t], [0, x]])`` is ``[[f(x), L], [0, f(x)]]``;
see R. Mathias, "A chain rule for matrix functions and applications" (1996). The transpose of the map from t to
L is the derivative at the transposed matrix. Higher derivatives use larger blocks.

The algorithms are those of N. J. Higham, "Functions of Matrices" (2008): scaling and squaring with a Pade
approximant (chapter 10), the product form of the iteration of Denman and Beavers (chapter 6), and
inverse scaling and squaring (chapter 11). They need inverses only, no triangular form, so they run on any
array library.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.kinds import nondifferentiable, primitive
from funcgrad.kinds.rules import Operation
from funcgrad.optional import loaded_jax
from funcgrad.primitives.decompositions import GAP_UNITS, rounding_unit
from funcgrad.primitives.determinants import lenient_inv
from funcgrad.primitives.products import swap_last_axes
from funcgrad.primitives.shaping import concatenate
from funcgrad.typing import Array

#: Steps of balancing, which halve the distance in most matrices.
BALANCING = 20
#: Numbers of squarings, of square roots, and of steps to a square root for JAX arrays: JAX has no reverse mode for
#: loops whose length depends on values.
SQUARINGS, ROOTS, STEPS = 32, 10, 24


# ---- derivatives -------------------------------------------------------------------------------------------


def _magnitude(xp: Any, x: Any) -> Any:
    largest = abs(x).max((-2, -1), keepdims=True, initial=0)
    return xp.where((largest > 0) & xp.isfinite(largest), largest, 1)


#: ``magnitude(x)``: the largest absolute value of each matrix, or 1 if that is 0 or not finite.
magnitude: Operation = nondifferentiable("magnitude", _magnitude, batch="leading")


def _derivative_along(f: Callable[[Array], Array], x: Array, t: Array) -> Array:
    """Return the derivative of ``f`` at ``x`` along ``t``, which is first scaled to the magnitude of ``x``."""
    n, rank = x.shape[-1], len(x.shape)
    scale = magnitude(t) / magnitude(x)
    zeros = backend.library_of(x).zeros(x.shape, backend.dtype_of(x))
    above = concatenate(x, t / scale, axis=rank - 1)
    block = concatenate(above, concatenate(zeros, x, axis=rank - 1), axis=rank - 2)
    return f(block)[..., :n, n:] * scale


def _matrix_function(name: str, impl: Callable[..., Any], *, data_dependent: bool = False) -> Operation:
    def vjp(ct: Array, x: Array, **params: Any) -> Array:
        return _derivative_along(lambda block: call(block, **params), swap_last_axes(x), ct)

    def jvp(t: Array, x: Array, **params: Any) -> Array:
        return _derivative_along(lambda block: call(block, **params), x, t)

    call: Operation = primitive(name, impl, vjps=[vjp], jvps=[jvp], batch="leading", data_dependent=data_dependent)
    return call


def _floating(xp: Any, x: Any) -> Any:
    x = xp.asarray(x)
    return x if x.dtype.kind in "fc" else x * 1.0


def _adjoint(x: Any) -> Any:
    return x.swapaxes(-1, -2).conj()


def _norm(x: Any) -> Any:
    """Return the largest sum of the absolute values of a column."""
    return abs(x).sum(-2).max(-1, initial=0)


def _eye(xp: Any, x: Any) -> Any:
    return xp.eye(x.shape[-1], dtype=x.dtype)


def _inverse(xp: Any, x: Any) -> Any:
    """Return the inverse; for singular matrices it is not finite."""
    with np.errstate(all="ignore"):
        return lenient_inv.primitive.kernel(xp)(x)


def _repeat(xp: Any, times: int, step: Callable[[Any], Any], x: Any) -> Any:
    """Apply ``step`` to ``x`` several times; with JAX as one loop."""
    if xp is np:
        for _ in range(times):
            x = step(x)
        return x
    return loaded_jax().lax.fori_loop(0, times, lambda _, value: step(value), x)


# ---- the exponential ---------------------------------------------------------------------------------------

#: Coefficients of the Pade approximant of degree 13, and the norm up to which it is exact in double precision.
PADE = tuple(math.comb(13, j) * math.factorial(26 - j) // math.factorial(13) for j in range(14))
RADIUS = 5.371920351148152


def _pade(xp: Any, x: Any) -> Any:
    b = [c / PADE[0] for c in PADE]
    eye = _eye(xp, x)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    odd = x @ (x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * eye)
    even = x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * eye
    return xp.linalg.solve(even - odd, even + odd)


def _balanced(xp: Any, x: Any) -> tuple[Any, Any]:
    """Return ``exp2(-u_i) x_ij exp2(u_j)`` with whole numbers ``u``, where its norm is smaller, and ``u_i - u_j``.

    The elements off the diagonal become as small as those on it, or 1. Without that, large elements of a triangular
    matrix would need many squarings, each of which loses a part of a digit.
    """
    off = abs(x) * (1 - xp.eye(x.shape[-1], dtype=x.real.dtype))
    enough = xp.maximum(abs(xp.diagonal(x, axis1=-2, axis2=-1)).max(-1, keepdims=True), 1)

    def differences(u: Any) -> Any:
        return u[..., :, None] - u[..., None, :]

    def imbalance(u: Any) -> Any:
        scaled = off * xp.exp2(-differences(u))
        rows, columns = [xp.log2(xp.maximum(scaled.max(axis), enough)) for axis in (-1, -2)]
        return rows - columns

    def step(u: Any) -> Any:
        return xp.clip(u + imbalance(u) / 4, -most, most)

    most, u = xp.finfo(off.dtype).maxexp / 4, off[..., 0] * 0
    if xp is np and (abs(imbalance(u)) < 3).all():
        return x, u[..., None]
    apart = differences(xp.round(_repeat(xp, BALANCING, step, u)))
    y = x * xp.exp2(-apart)
    better = (_norm(y) < _norm(x))[..., None, None]
    return xp.where(better, y, x), xp.where(better, apart, 0)


def _expm(xp: Any, x: Any) -> Any:
    x = _floating(xp, x)
    if 0 in x.shape:
        return x
    apart, norm = None, _norm(x)
    if xp is not np or (norm > RADIUS).any():
        x, apart = _balanced(xp, x)
        norm = _norm(x)
    times = xp.ceil(xp.log2(xp.where(xp.isfinite(norm) & (norm > RADIUS), norm / RADIUS, 1)))
    if xp is not np:
        times = xp.minimum(times, SQUARINGS)
    times = times[..., None, None].astype(norm.dtype)
    most = int(times.max()) if xp is np else SQUARINGS

    def squared(state: tuple[Any, Any]) -> tuple[Any, Any]:
        power, done = state
        return xp.where(done < times, power @ power, power), done + 1

    ans = _repeat(xp, most, squared, (_pade(xp, x * xp.exp2(-times)), times * 0))[0]
    return ans if apart is None else ans * xp.exp2(apart)


#: ``expm(x)``: the matrix exponential.
expm: Operation = _matrix_function("expm", _expm)


# ---- square root and logarithm -----------------------------------------------------------------------------


def _root_iteration(xp: Any, x: Any) -> tuple[Any, Any]:
    """Return the principal square root of each matrix in ``x``, and its distance from convergence."""
    n, eye = x.shape[-1], _eye(xp, x)

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        m, y = state
        inverse = _inverse(xp, m)
        log_det = xp.linalg.slogdet(m)[1]
        # scaling by the determinant speeds up the first steps, but disturbs the last ones
        far = (_norm(m - eye) > 0.1) & xp.isfinite(log_det)
        square = xp.exp(xp.where(far, log_det, 0) * (-1 / n))[..., None, None].astype(y.real.dtype)
        y = 0.5 * xp.sqrt(square) * (y + y @ inverse / square)
        return 0.5 * (eye + 0.5 * (square * m + inverse / square)), y

    state = (x, x)
    if xp is not np:
        state = _repeat(xp, STEPS, step, state)
        return state[1], _norm(state[0] - eye)
    best = np.inf
    for _ in range(60):
        with np.errstate(all="ignore"):  # some matrices may have no root: the others continue
            state = step(state)
            error = _norm(state[0] - eye)
        worst = np.max(error, initial=0, where=np.isfinite(error))
        if worst <= 2 * n * rounding_unit(x) or best <= worst < 1e-3:
            break
        best = worst
    return state[1], error


def _rotated_to_positive_axis(x: Any, base: int) -> tuple[Any, Any, Any]:
    """Rotate the eigenvalues of ``x`` in the complex plane such that they lie around the positive axis.

    The branch cut of root and logarithm, the negative axis, is thereby moved midway between eigenvalues; eigenvalues
    on the cut belong to its upper side.

    Returns:
        The rotated matrices, the angle (None if nothing is rotated), and whether an eigenvalue is zero.
    """
    w = np.linalg.eigvals(x[..., :base, :base])
    noise = _noise(w)
    zero = (abs(w) <= noise).any(-1)[..., None, None]
    on_axis = abs(w.imag) <= noise
    negative = on_axis & (w.real < -noise)
    if x.dtype.kind != "c" and not negative.any():
        return x, None, zero
    angles = np.where(on_axis, np.where(negative, np.pi, 0), np.angle(w))
    angle = ((angles.max(-1, initial=-np.pi) + angles.min(-1, initial=np.pi)) / 2)[..., None, None]
    rotated = x * np.exp(-1j * angle)
    return rotated.astype(np.result_type(x.dtype, np.complex64)), angle.astype(x.real.dtype), zero


def _noise(w: Any) -> Any:
    """Return the absolute value up to which an eigenvalue counts as zero."""
    return GAP_UNITS * w.shape[-1] * rounding_unit(w) * abs(w).max(-1, keepdims=True, initial=0)


def _function_of_hermitian(xp: Any, x: Any, name: str) -> Any:
    """Compute a function of Hermitian matrices from their eigenvectors, which gives the least rounding."""
    w, v = xp.linalg.eigh(x)
    w = xp.where(abs(w) <= _noise(w), 0, w)
    with np.errstate(divide="ignore"):
        values = getattr(xp, name)(w.astype(np.result_type(w, np.complex64)) if xp is np and (w < 0).any() else w)
    return (v * xp.where(xp.isfinite(values).all(-1, keepdims=True), values, np.nan)[..., None, :]) @ _adjoint(v)


def _principal_function(xp: Any, x: Any, base: int, name: str, general: Callable[..., Any]) -> Any:
    """Compute a function of matrices with a branch cut along the negative axis.

    Args:
        xp: the array namespace. JAX arrays, whose dtype cannot depend on values, are not rotated.
        x: the matrices.
        base: the number of leading rows and columns that have all eigenvalues of ``x``.
        name: the function of numbers.
        general: ``general(xp, x, angle, zero)`` for non-Hermitian matrices, see ``_rotated_to_positive_axis``.
    """
    x = _floating(xp, x)
    if 0 in x.shape:
        return x
    eye = _eye(xp, x)
    finite = xp.isfinite(x).all((-2, -1), keepdims=True)
    x = xp.where(finite, x, eye)
    hermitian = (x == _adjoint(x)).all((-2, -1), keepdims=True) & (x.shape[-1] == base)
    if xp is not np:
        ans = general(xp, x, None, False)
        hermitian = hermitian & xp.isnan(ans).any((-2, -1), keepdims=True)  # the iteration fails at an eigenvalue of 0
        eye = eye * xp.arange(1, x.shape[-1] + 1)  # distinct eigenvalues: their derivative by JAX is finite
        ans = xp.where(hermitian, _function_of_hermitian(xp, xp.where(hermitian, x, eye), name), ans)
    elif hermitian.all():
        ans = _function_of_hermitian(np, x, name)
    else:
        ans = general(np, *_rotated_to_positive_axis(x, base))
        if hermitian.any():
            ans = np.where(hermitian, _function_of_hermitian(np, np.where(hermitian, x, eye), name), ans)
    return xp.where(finite, ans, np.nan)


def _by_eigenvalues(x: Any, f: Callable[[Any], Any], inverse: Callable[[Any], Any]) -> Any:
    """Compute a function of one matrix from its eigenvectors, where the iteration failed; NaN if they fail too."""
    nothing = np.full_like(x, np.nan)
    if not np.isfinite(x).all():
        return nothing
    w, v = np.linalg.eig(x)
    w = np.where(abs(w) <= _noise(w), 0, w)
    with np.errstate(all="ignore"):
        ans = (v * f(w.astype(complex))) @ _inverse(np, v)
    if not np.isfinite(ans).all() or abs(inverse(ans) - x).max(initial=0) > 1e3 * _noise(w).max(initial=0):
        return nothing
    return (ans if x.dtype.kind == "c" else ans.real).astype(x.dtype)


def _root(xp: Any, x: Any) -> Any:
    """Return the principal root of matrices without eigenvalues near the negative axis; NaN if there is none."""
    ans, error = _root_iteration(xp, x)
    lost = ~(error < 1e-3)
    if xp is not np:
        return xp.where(lost[..., None, None], np.nan, ans)
    for place in zip(*np.nonzero(lost), strict=True) if lost.ndim else [()] * bool(lost):
        ans[place] = _by_eigenvalues(x[place], np.sqrt, lambda y: y @ y)
    return ans


def _root_of_rotated(xp: Any, x: Any, angle: Any, zero: Any) -> Any:
    root = _root(xp, x)
    return root if angle is None else root * xp.exp(0.5j * angle)


#: ``sqrtm(x, *, base)``: the principal square root. The first ``base`` rows and columns have all eigenvalues of ``x``;
#: only they decide on the side of the branch cut.
sqrtm: Operation = _matrix_function(
    "sqrtm", lambda xp, x, *, base: _principal_function(xp, x, base, "sqrt", _root_of_rotated), data_dependent=True
)


@cache
def _gauss() -> tuple[Any, Any]:
    """Return points and weights of Gauss-Legendre quadrature with 8 points."""
    return np.polynomial.legendre.leggauss(8)


def _log_near_one(xp: Any, y: Any) -> Any:
    """Return ``log(1 + y)`` by the Pade approximant of degree 8 in partial fractions."""
    eye = _eye(xp, y)
    points, weights = _gauss()
    parts = [
        float(weight) / 2 * xp.linalg.solve(eye + (float(point) + 1) / 2 * y, y)
        for point, weight in zip(points, weights, strict=True)
    ]
    return sum(parts[1:], parts[0])


def _log_of_rotated(xp: Any, x: Any, angle: Any, zero: Any) -> Any:
    eye = _eye(xp, x)

    def is_far(y: Any) -> Any:
        return (_norm(y - eye) > 0.25)[..., None, None]

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        y, scale = state
        far = is_far(y)
        return xp.where(far, _root(xp, y), y), xp.where(far, 2 * scale, scale)

    state = (xp.where(zero, eye, x), xp.ones((*x.shape[:-2], 1, 1), x.real.dtype))
    if xp is np:
        while is_far(state[0]).any() and state[1].max() < 2.0**64:
            state = step(state)
    else:
        state = _repeat(xp, ROOTS, step, state)
    near = xp.where(is_far(state[0]) | zero, np.nan, state[0])
    ans = state[1] * _log_near_one(xp, near - eye)
    return ans if angle is None else ans + 1j * angle * eye


#: ``logm(x, *, base)``: the principal logarithm; ``base`` as for ``sqrtm``.
logm: Operation = _matrix_function(
    "logm", lambda xp, x, *, base: _principal_function(xp, x, base, "log", _log_of_rotated), data_dependent=True
)
