"""A call of every public function of ``funcgrad.numpy``, at points where the function is smooth.

The table of ``python -m funcgrad.interop --primitives`` is made from these calls. Functions of integers, and
functions that return integers or booleans, take and return floating numbers here, so that their derivative,
which is zero, is checked like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree


class Sample(NamedTuple):
    """One call of a function.

    Attributes:
        name: the function's name below ``funcgrad.numpy``.
        fun: the function to call: the public function, or a wrapper that makes arguments or results comparable.
        args: arguments; arrays among them are differentiated.
        kwargs: keyword arguments.
    """

    name: str
    fun: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


#: Public names without a derivative of interest: settings, texts, dtypes, shapes, arrays that depend on these only;
#: ``spacing``, which depends on the rounding; ``nextafter``, for which JAX before 0.12 has no derivative.
_NO_DERIVATIVE = (
    "__array_namespace_info__ array2string array_repr array_str base_repr binary_repr broadcast_shapes can_cast "
    "common_type diag_indices diag_indices_from einsum_path empty empty_like eye finfo format_float_positional "
    "format_float_scientific from_dlpack frombuffer frompyfunc get_printoptions getbufsize geterr geterrcall identity "
    "iinfo indices iscomplexobj isdtype isfortran isnat isrealobj isscalar issubdtype iterable ix_ mask_indices "
    "may_share_memory min_scalar_type mintypecode ndim nextafter ones printoptions promote_types result_type "
    "set_printoptions setbufsize seterr seterrcall shape shares_memory size spacing tri tril_indices "
    "tril_indices_from triu_indices triu_indices_from typename zeros "
    "bartlett blackman hamming hanning fft.fftfreq fft.rfftfreq"
)
EXCLUDED = frozenset(_NO_DERIVATIVE.split())


def numbers(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> np.ndarray:
    """Return different numbers between two bounds, evenly spread and unordered; every call returns the same numbers."""
    count = np.arange(1, int(np.prod(shape, dtype=int)) + 1)
    share = (0.618033988749895 * count + 0.37 * seed + 0.13) % 1.0  # multiples of the golden ratio stay apart
    return (low + (high - low) * share).reshape(shape)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    """Return numbers from 0.3 to 3."""
    return numbers(*shape, low=0.3, high=3.0, seed=seed)


def unit(*shape: int) -> np.ndarray:
    """Return numbers between -0.9 and 0.9."""
    return numbers(*shape, low=-0.9, high=0.9)


def regular_matrix(n: int) -> np.ndarray:
    """Return a matrix that is far from singular, with different eigenvalues whose real parts are positive."""
    return numbers(n, n, low=-0.5, high=0.5) + np.diag(np.arange(2.0, n + 2))


def floats(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``fun`` with its results converted to floating numbers unless they are inexact already."""

    def exact(x: Any) -> Any:
        return x if backend.is_inexact(x) else fnp.astype(fnp.asarray(x), float)

    return lambda *args, **kwargs: [exact(leaf) for leaf in tree.leaves(fun(*args, **kwargs))]


def of_integers(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``fun`` applied to the integer parts of its arguments."""
    return floats(lambda *args, **kwargs: fun(*[fnp.astype(x, int) for x in args], **kwargs))


def samples_of(names: str, *args: Any, made: Callable[..., Any] = floats, **kwargs: Any) -> Iterator[Sample]:
    """Yield a call of each of several functions, with the same arguments."""
    for name in names.split():
        yield Sample(name, made(attrgetter(name)(fnp)), args, kwargs)


def sample(name: str, fun: Callable[..., Any], *args: Any) -> Iterator[Sample]:
    """Yield one call of a function that is written out."""
    yield Sample(name, floats(fun), args, {})


V, W, M, N, T = numbers(4), numbers(4, seed=1), numbers(2, 3), numbers(2, 3, seed=1), numbers(2, 3, 2)
SQUARE, LINE = numbers(3, 3), np.array([-1.5, -0.4, 0.3, 1.7])
Z = V + 1j * W


def elementwise() -> Iterator[Sample]:
    """Yield calls of elementwise functions."""
    yield from samples_of(
        "exp exp2 expm1 sin cos tan sinh cosh tanh arctan atan arcsinh asinh square cbrt negative positive abs "
        "absolute fabs sinc deg2rad radians rad2deg degrees reciprocal sign floor ceil trunc fix rint round around i0 "
        "conj conjugate nan_to_num modf isnan isinf isfinite isneginf isposinf isreal iscomplex signbit logical_not "
        "asarray_chkfinite require frexp",
        M,
    )
    yield from samples_of("log log2 log10 log1p sqrt", positive(2, 3))
    yield from samples_of("arcsin asin arccos acos arctanh atanh", unit(2, 3))
    yield from samples_of("arccosh acosh", positive(2, 3) + 1.0)
    yield from samples_of("real imag angle", Z)
    yield from samples_of(
        "add subtract multiply maximum minimum fmax fmin arctan2 atan2 hypot logaddexp logaddexp2 copysign heaviside "
        "equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor isclose "
        "allclose array_equal array_equiv",
        M,
        N[0],
    )
    yield from samples_of("divide true_divide floor_divide remainder mod fmod divmod", M, positive(3, seed=2))
    yield from samples_of("power pow float_power", positive(2, 3), N[0])
    yield from samples_of(
        "bitwise_and bitwise_or bitwise_xor gcd lcm", 9 * positive(3), 5 * positive(3, seed=1), made=of_integers
    )
    yield from samples_of(
        "left_shift bitwise_left_shift right_shift bitwise_right_shift", 9 * positive(3), positive(3), made=of_integers
    )
    yield from samples_of("invert bitwise_not bitwise_invert bitwise_count", 9 * positive(3), made=of_integers)
    yield from sample("ldexp", lambda x: fnp.ldexp(x, np.array([1, -2, 3])), M)
    yield from samples_of("clip", M, -1.1, 0.9)
    yield from sample("where", lambda x, y: fnp.where(M > 0, x, y), M, N)
    yield from sample("select", lambda x, y: fnp.select([M > 1, M > 0], [x, y], 0.5), M, N)
    yield from sample("piecewise", lambda x: fnp.piecewise(x, [x < 0], [lambda v: v * v, lambda v: v * v * v]), V)
    yield from sample("vectorize", lambda x, y: fnp.vectorize(lambda a, b: a * a * b)(x, y), M, N[0])
    yield from sample("choose", lambda x, y: fnp.choose(np.array([1, 0, 1, 1]), [x, y]), V, W)
    yield from sample("real_if_close", lambda x: fnp.real_if_close(x), M)


def reductions() -> Iterator[Sample]:
    """Yield calls of functions along axes."""
    yield from samples_of(
        "sum prod mean max min amax amin std var ptp median average nansum nanprod nanmean nanmax nanmin nanstd nanvar "
        "nanmedian logsumexp softmax log_softmax cumsum cumprod nancumsum nancumprod cumulative_sum cumulative_prod "
        "diff trapezoid any all count_nonzero argmax argmin nanargmax nanargmin argsort sort flip unwrap",
        M,
        axis=1,
    )
    yield from samples_of("quantile nanquantile", M, q=0.3, axis=1)
    yield from samples_of("percentile nanpercentile", M, q=30.0, axis=1)
    yield from samples_of("gradient ediff1d sort_complex", V)
    yield from sample("partition", lambda x: fnp.partition(x, (1, 2, 3), axis=None), V)
    yield from sample("argpartition", lambda x: fnp.argpartition(x, 1)[1], V)
    yield from sample("searchsorted", lambda x, y: fnp.searchsorted(x, y), LINE, M)
    yield from sample("lexsort", lambda x, y: fnp.lexsort((x, y)), V, W)
    yield from sample("apply_along_axis", lambda x: fnp.apply_along_axis(lambda v: v * v[0], 0, x), M)
    yield from sample("apply_over_axes", lambda x: fnp.apply_over_axes(fnp.sum, x, (0, 2)), T)
    yield from samples_of("cov corrcoef", np.sin(7 * numbers(2, 5)))
    yield from sample("histogram", lambda x, w: fnp.histogram(x, LINE, weights=w), M, positive(2, 3))
    yield from sample("histogram2d", lambda x, y, w: fnp.histogram2d(x, y, [2, 3], weights=w), V, W, positive(4))
    yield from sample("histogramdd", lambda x, w: fnp.histogramdd(x, 2, weights=w), numbers(4, 2), positive(4))
    yield from samples_of("histogram_bin_edges", V, bins=3)
    yield from sample("bincount", lambda w: fnp.bincount(np.array([0, 3, 1, 1]), w), positive(4))
    yield from sample("digitize", lambda x, y: fnp.digitize(x, y), M, LINE)
    yield from sample("interp", lambda x, f: fnp.interp(x, LINE, f), M, V)
    yield from samples_of("convolve correlate", V, W[:2])
    yield from sample("kaiser", lambda beta: fnp.kaiser(5, beta), np.float64(2.5))


def arrangements() -> Iterator[Sample]:
    """Yield calls of functions that move elements and join arrays."""
    yield from samples_of(
        "array asanyarray asarray ascontiguousarray asfortranarray copy ravel transpose permute_dims matrix_transpose "
        "squeeze atleast_1d atleast_2d atleast_3d fliplr flipud rot90 diag diagonal diagflat tril triu trace "
        "zeros_like ones_like",
        SQUARE,
    )
    yield from samples_of("hstack vstack dstack column_stack stack concatenate concat", [M, N])
    yield from samples_of("append", M, N, axis=0)
    yield from samples_of("split array_split hsplit vsplit dsplit", numbers(2, 2, 2), indices_or_sections=2)
    yield from samples_of("unstack", M)
    yield from samples_of("expand_dims", M, axis=1)
    yield from samples_of("moveaxis", T, source=0, destination=2)
    yield from samples_of("swapaxes", T, axis1=0, axis2=2)
    yield from samples_of("rollaxis", T, axis=2)
    yield from samples_of("roll", M, shift=1, axis=1)
    yield from samples_of("reshape", M, shape=(3, 2))
    yield from samples_of("resize", M, new_shape=(2, 2))
    yield from samples_of("broadcast_to", V, shape=(2, 4))
    yield from samples_of("broadcast_arrays", M, N[0])
    yield from samples_of("repeat", V, repeats=2)
    yield from samples_of("tile", V, reps=2)
    yield from samples_of("pad", M, pad_width=1)
    yield from sample("astype", lambda x: fnp.astype(x, complex), M)
    yield from samples_of("full_like", M, fill_value=0.5)
    yield from sample("full", lambda x: fnp.full((2, 3), x), V[:3])
    yield from sample("block", lambda x, y: fnp.block([[x, y], [y, x]]), M, N)


def selections() -> Iterator[Sample]:
    """Yield calls of functions that choose elements, and of functions that make arrays from numbers."""
    yield from sample("delete", lambda x: fnp.delete(x, 1), V)
    yield from sample("insert", lambda x, y: fnp.insert(x, 1, y), V, np.float64(0.7))
    yield from sample("take", lambda x: fnp.take(x, np.array([0, 2, 2]), axis=1), M)
    yield from sample("take_along_axis", lambda x: fnp.take_along_axis(x, np.array([[2], [0]]), axis=1), M)
    yield from sample("getitem", lambda x: fnp.getitem(x, (0, np.array([0, 2, 2]))), M)
    yield from sample("compress", lambda x: fnp.compress(np.array([True, False]), x, axis=0), M)
    yield from sample("extract", lambda x: fnp.extract(M > 0, x), M)
    yield from samples_of("nonzero flatnonzero argwhere", V)
    yield from samples_of("unique unique_all unique_counts unique_inverse unique_values trim_zeros", V)
    yield from samples_of("union1d intersect1d setdiff1d setxor1d isin", V, W)
    yield from sample("unravel_index", lambda x: fnp.unravel_index(fnp.astype(x, int), (3, 4)), 3 * positive(3))
    yield from sample("ravel_multi_index", lambda x, y: _flat_index(x, y), positive(3), positive(3, seed=1))
    yield from sample("packbits", lambda x: fnp.packbits(x > 0), numbers(8))
    yield from sample("unpackbits", lambda x: fnp.unpackbits(fnp.astype(9 * x, np.uint8)), positive(2))
    yield from sample("arange", lambda x: fnp.arange(3) * x, np.float64(0.7))
    yield from samples_of("linspace", np.float64(0.3), np.float64(2.1), num=4)
    yield from samples_of("logspace geomspace", np.float64(0.3), np.float64(2.1), num=4)
    yield from samples_of("meshgrid", V, W[:3])
    yield from sample("mgrid", lambda a, b: fnp.mgrid[a:b:3j], np.float64(0.3), np.float64(2.1))
    yield from samples_of("vander", V)
    yield from sample(
        "fromfunction", lambda x: fnp.fromfunction(lambda i, j: i * x + j * x * x, (2, 3)), np.float64(0.7)
    )
    yield from sample("fromiter", lambda x: fnp.fromiter((v * v for v in x), float), V)
    yield from sample("nditer", lambda x, y: [a * b for a, b in fnp.nditer([x, y])], M, N)
    yield from sample("ndenumerate", lambda x: [v * sum(place) for place, v in fnp.ndenumerate(x)], M)


def writes() -> Iterator[Sample]:
    """Yield calls of functions that write to an array, which the calling function made."""
    where, mask = np.array([[2], [0]]), M > 0
    yield from sample("at", lambda x, y: fnp.at(x)[0].multiply(y), M, N[0])
    yield from sample("copyto", lambda x, y: _written(x, lambda z: fnp.copyto(z, y, where=mask)), M, N)
    yield from sample("fill_diagonal", lambda x, y: _written(x, lambda z: fnp.fill_diagonal(z, y)), SQUARE, N[0])
    yield from sample("place", lambda x, y: _written(x, lambda z: fnp.place(z, mask, y)), M, V)
    yield from sample("put", lambda x, y: _written(x, lambda z: fnp.put(z, np.array([4, 1]), y)), M, V[:2])
    yield from sample(
        "put_along_axis", lambda x, y: _written(x, lambda z: fnp.put_along_axis(z, where, y, 1)), M, N[:, :1]
    )
    yield from sample("putmask", lambda x, y: _written(x, lambda z: fnp.putmask(z, mask, y)), M, N)


def _written(x: Any, write: Callable[[Any], None]) -> Any:
    made = x * x
    write(made)
    return made


def _flat_index(x: Any, y: Any) -> Any:
    return fnp.ravel_multi_index((fnp.astype(x, int), fnp.astype(y, int)), (4, 4))


def products() -> Iterator[Sample]:
    """Yield calls of products, polynomials and Fourier transforms."""
    yield from samples_of("dot matmul", M, SQUARE)
    yield from samples_of("inner outer kron vdot vecdot", V, W)
    yield from samples_of("matvec", M, W[:3])
    yield from samples_of("vecmat", W[:2], M)
    yield from samples_of("tensordot", M, SQUARE, axes=1)
    yield from samples_of("cross", M, N)
    yield from sample("einsum", lambda x, y: fnp.einsum("ij,jk->ki", x, y), M, SQUARE)
    yield from samples_of("polyadd polysub polymul polydiv", V, W[:2])
    yield from samples_of("poly polyder polyint", V)
    yield from samples_of("polyval", V, W)
    yield from samples_of("polyfit", LINE, V, deg=2)
    yield from sample("roots", lambda p: fnp.real(fnp.prod(2.5 - fnp.roots(p))), V)
    yield from sample("poly1d", lambda x: fnp.poly1d([2.0, -1.0, 0.5])(x), W)
    yield from samples_of("fft.fft fft.ifft fft.rfft fft.ihfft fft.fftshift fft.ifftshift", V)
    yield from samples_of("fft.hfft fft.irfft fft.fft fft.ifft", Z)
    yield from samples_of("fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.rfft2 fft.rfftn", M)
    yield from samples_of("fft.irfft2 fft.irfftn", M + 1j * N)


def matrices() -> Iterator[Sample]:
    """Yield calls of linear algebra; results do not depend on the factor up to which eigenvectors are known."""
    a, linalg = regular_matrix(3), fnp.linalg
    yield from samples_of("linalg.inv linalg.det linalg.slogdet linalg.expm linalg.logm linalg.sqrtm linalg.cond", a)
    yield from samples_of("linalg.trace linalg.diagonal linalg.matrix_transpose linalg.matrix_rank", a)
    yield from samples_of("linalg.norm linalg.matrix_norm linalg.svdvals linalg.pinv linalg.qr", numbers(3, 2))
    yield from samples_of("linalg.vector_norm", V)
    yield from samples_of("linalg.matrix_power", a, n=3)
    yield from samples_of("linalg.solve", a, V[:3])
    yield from samples_of("linalg.matmul", M, SQUARE)
    yield from samples_of("linalg.tensordot", M, SQUARE, axes=1)
    yield from samples_of("linalg.outer linalg.vecdot", V, W)
    yield from samples_of("linalg.cross", M, N)
    yield from sample("linalg.multi_dot", lambda x, y, z: linalg.multi_dot([x, y, z]), M, SQUARE, W[:3])
    yield from sample("linalg.cholesky", lambda x: linalg.cholesky((x + x.T) / 2), a @ a.T)
    yield from sample("linalg.eigvalsh", lambda x: linalg.eigvalsh((x + x.T) / 2), a)
    yield from sample("linalg.eigh", lambda x: _rebuilt(*linalg.eigh((x + x.T) / 2)), a)
    yield from sample("linalg.eigvals", lambda x: fnp.sum(fnp.real(linalg.eigvals(x)) ** 3), a)
    yield from sample("linalg.eig", lambda x: _squares(*linalg.eig(x)), a)
    yield from sample("linalg.svd", lambda x: _product(*linalg.svd(x, full_matrices=False)), numbers(3, 2))
    yield from sample("linalg.lstsq", lambda x, y: linalg.lstsq(x, y, None)[0], numbers(4, 2), V)
    yield from samples_of("linalg.tensorinv", regular_matrix(4).reshape(2, 2, 2, 2))
    yield from samples_of("linalg.tensorsolve", regular_matrix(4).reshape(2, 2, 2, 2), numbers(2, 2))


def _rebuilt(w: Any, v: Any) -> Any:
    return (v * fnp.sin(w)) @ v.T


def _squares(w: Any, v: Any) -> Any:
    return fnp.real(w), fnp.abs(v) ** 2


def _product(u: Any, s: Any, vh: Any) -> Any:
    return (u * fnp.sin(s)) @ vh


def samples() -> list[Sample]:
    """Return all calls, in the order of the table."""
    made = [elementwise(), reductions(), arrangements(), selections(), writes(), products(), matrices()]
    return [sample for part in made for sample in part]


def public_names() -> set[str]:
    """Return the names of all public functions."""
    spaces = {"": fnp, "linalg.": fnp.linalg, "fft.": fnp.fft}
    return {
        prefix + name
        for prefix, space in spaces.items()
        for name in space.__all__
        if callable(getattr(space, name)) and not isinstance(getattr(space, name), type)
    }
