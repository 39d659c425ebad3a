"""Products of vectors, matrices and tensors; Einstein sums.

The end of the file parses the formulas of Einstein sums and splits each formula into products of pairs.
"""

# mypy: disable-error-code="empty-body"
# Decorators replace the functions that have no body.

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from funcgrad import backend
from funcgrad.backend import shape_of
from funcgrad.core import Tracer, describe, is_array
from funcgrad.errors import InputError, ShapeError
from funcgrad.kinds.linear import conj, permute, reduce_sum, reshape
from funcgrad.kinds.rules import Operation
from funcgrad.numpy.axes import normalize_axis
from funcgrad.numpy.creation import as_buffer, as_value, astype
from funcgrad.numpy.diagonals import diagonal
from funcgrad.numpy.layout import in_memory_order
from funcgrad.numpy.plain_values.peeking import is_plain, warn
from funcgrad.numpy.reducing import as_dtype
from funcgrad.numpy.shaping import moveaxis, ravel
from funcgrad.numpy.ufunc import gufunc
from funcgrad.numpy.writes.output import compute_into
from funcgrad.primitives import products as prim
from funcgrad.primitives.arithmetic import as_numpy_number, multiply, subtract
from funcgrad.primitives.indexing import getitem, pad_zeros
from funcgrad.primitives.products import LETTERS
from funcgrad.primitives.shaping import diagonal as diagonal_of
from funcgrad.primitives.shaping import roll
from funcgrad.typing import Array, ArrayLike, Shape
from funcgrad.writable import as_array, as_number

__all__ = [
    "cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "trace", "vdot", "vecdot", "vecmat",
    "einsum", "einsum_path",
]  # fmt: skip


@gufunc("(n?,k),(k,m?)->(n?,m?)", prim.matmul)
def matmul(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the matrix product over the last two axes; leading axes broadcast, vectors are rows or columns.

    Raises:
        ValueError: an argument without axes, or lengths that do not match.

    Example:
        >>> fnp.matmul([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])
        array([3., 7.])
    """


def dot(a: ArrayLike, b: ArrayLike, out: Any = None) -> Array:
    """Return the product over the last axis of ``a`` and the second to last of ``b`` (the last of a vector).

    Numbers multiply; vectors and matrices give the matrix product; with more axes all remaining axes combine.

    Raises:
        ValueError: lengths that do not match.

    Example:
        >>> fnp.dot([1.0, 2.0], [3.0, 4.0])
        np.float64(11.0)
    """
    if out is not None:
        return compute_into(dot, out, a, b)
    a, b = as_value(a), as_value(b)
    if is_plain(a, b):
        return np.dot(a, b)
    ranks = len(shape_of(a)), len(shape_of(b))
    if 0 in ranks:
        return _times_number(a, b)
    if ranks[1] <= 2:
        return _in_common_dtype(prim.matmul(a, b), a, b)
    return _contract_axes("dot", a, b, (ranks[0] - 1,), (ranks[1] - 2,))


def _times_number(a: Array, b: Array) -> Array:
    """Return the product with a number; a Python number keeps its full precision here, unlike in arithmetic."""
    numbers = is_array(a) and is_array(b)  # multiply refuses the rest
    if numbers and backend.library_of(a) is np and backend.library_of(b) is np:
        try:
            to = np.result_type(backend.dtype_of(a), backend.dtype_of(b))
        except TypeError:  # bfloat16 has no common dtype with some others, though ufuncs accept the pair
            return multiply(a, b)
        a, b = astype(a, to), astype(b, to)
    return multiply(as_numpy_number(a, b), as_numpy_number(b, a))


def _in_common_dtype(ans: Array, a: Array, b: Array) -> Array:
    """Convert ``ans`` to the dtype of ``a`` and ``b``: only ``numpy.matmul`` gives float32 for bfloat16."""
    dtypes = backend.dtype_of(a), backend.dtype_of(b)
    if "V" not in (dtypes[0].kind, dtypes[1].kind):
        return ans
    try:
        to = np.result_type(*dtypes)
    except TypeError:  # the two have no common dtype, though ufuncs accept the pair
        return ans
    return astype(ans, to)


def vdot(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Return the inner product of two flattened arrays, the first conjugated.

    Raises:
        ValueError: different numbers of elements.

    Example:
        >>> fnp.vdot([1 + 2j, 3j], [1.0, 1.0])
        np.complex128(1-5j)
    """
    a, b = as_value(a), as_value(b)
    if is_plain(a, b):
        return np.vdot(a, b)
    return _in_common_dtype(prim.matmul(_conjugated(ravel(a)), ravel(b)), a, b)


@gufunc("(n),(n)->()")
def vecdot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return inner products of vectors, the first conjugated, along the last axis or ``axis``; other axes broadcast.

    Raises:
        ValueError: lengths that do not match.

    Example:
        >>> fnp.vecdot([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])
        array([3., 7.])
    """
    x1, x2 = as_value(x1), as_value(x2)
    if is_plain(x1, x2):
        return np.vecdot(x1, x2)
    ranks = len(shape_of(x1)), len(shape_of(x2))
    if 0 in ranks or shape_of(x1)[-1] != shape_of(x2)[-1]:
        raise ShapeError(
            f"vecdot: vectors of one length are needed, got {describe(x1)} and {describe(x2)}. Check them."
        )
    x1 = _conjugated(x1)
    if ranks == (1, 1):
        return prim.matmul(x1, x2)
    dots, vector = LETTERS[: max(ranks) - 1], LETTERS[max(ranks)]
    terms = [dots[len(dots) + 1 - rank :] + vector for rank in ranks]
    return contract((terms[0], terms[1]), dots, [x1, x2])


@gufunc("(m,n),(n)->(m)")
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the products of matrices and vectors; leading axes broadcast.

    Raises:
        ValueError: too few axes, or lengths that do not match.

    Example:
        >>> fnp.matvec([[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, 1.0]])
        array([[1., 3.],
               [2., 4.]])
    """
    x1, x2 = _with_rank("matvec", x1, 2), _with_rank("matvec", x2, 1)
    if is_plain(x1, x2):
        return np.matvec(x1, x2)
    if len(shape_of(x2)) == 1:
        return prim.matmul(x1, x2)
    return getitem(prim.matmul(x1, getitem(x2, (..., None))), (..., 0))


@gufunc("(n),(n,m)->(m)")
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Return the products of conjugated vectors and matrices; leading axes broadcast.

    Raises:
        ValueError: too few axes, or lengths that do not match.

    Example:
        >>> fnp.vecmat([1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]])
        array([ 7., 10.])
    """
    x1, x2 = _with_rank("vecmat", x1, 1), _with_rank("vecmat", x2, 2)
    if is_plain(x1, x2):
        return np.vecmat(x1, x2)
    x1 = _conjugated(x1)
    if len(shape_of(x1)) == 1:
        return prim.matmul(x1, x2)
    return getitem(prim.matmul(getitem(x1, (..., None, slice(None))), x2), (..., 0, slice(None)))


def _with_rank(name: str, x: ArrayLike, least: int) -> Array:
    x = as_value(x)
    if len(shape_of(x)) < least:
        raise ShapeError(f"{name}: an argument needs {least} or more axes, got {describe(x)}. Reshape it.")
    return x


def _conjugated(x: Array) -> Array:
    return conj(x) if backend.dtype_of(x).kind == "c" else x


def inner(a: ArrayLike, b: ArrayLike, /) -> Array:
    """Return the sum of products over the last axis of both; numbers multiply.

    Raises:
        ValueError: lengths that do not match.

    Example:
        >>> fnp.inner([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])
        array([3., 7.])
    """
    a, b = as_value(a), as_value(b)
    if is_plain(a, b):
        return np.inner(a, b)
    ranks = len(shape_of(a)), len(shape_of(b))
    if 0 in ranks:
        return _times_number(a, b)
    return _contract_axes("inner", a, b, (ranks[0] - 1,), (ranks[1] - 1,))


def outer(a: ArrayLike, b: ArrayLike, out: Any = None) -> Array:
    """Return all products of an element of ``a`` and an element of ``b``, both flattened.

    Example:
        >>> fnp.outer([1.0, 2.0], [3.0, 4.0])
        array([[3., 4.],
               [6., 8.]])
    """
    if out is not None:
        return compute_into(outer, out, a, b)
    a, b = as_value(a), as_value(b)
    if is_plain(a, b):
        return np.outer(a, b)
    return _in_common_dtype(prim.einsum(ravel(a), ravel(b), subscripts="a,b->ab"), a, b)


def tensordot(a: ArrayLike, b: ArrayLike, axes: Any = 2) -> Array:
    """Return the sum of products over several axes.

    Args:
        a: an array.
        b: an array.
        axes: a number of axes, the last of ``a`` and the first of ``b``; or two lists of axes, paired in order.

    Raises:
        ValueError: lists or lengths that do not match.

    Example:
        >>> fnp.tensordot(np.ones((2, 3, 4)), np.ones((4, 3)), axes=([1, 2], [1, 0]))
        array([12., 12.])
    """
    a, b = as_value(a), as_value(b)
    if is_plain(a, b):
        return np.tensordot(a, b, axes)
    left, right = _contraction_axes(axes, len(shape_of(a)), len(shape_of(b)))
    made = as_array(_contract_axes("tensordot", a, b, left, right))
    return as_buffer(np.asarray(made)) if issubclass(type(made), np.generic) else made  # NumPy returns an array here


def _contraction_axes(axes: Any, rank_a: int, rank_b: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes of each array that ``tensordot`` sums over, as non-negative numbers."""
    if issubclass(type(axes), np.ndarray):
        axes = axes.tolist()
    if not isinstance(axes, Sequence):
        try:
            n = operator.index(axes)
        except TypeError as error:
            raise InputError(
                f"tensordot: axes is a number or a pair of lists, got {axes!r}. Pass axes=2 or axes=([1], [0])."
            ) from error
        if not 0 <= n <= min(rank_a, rank_b):
            raise ShapeError(f"tensordot: axes={n} does not fit {rank_a} and {rank_b} axes. Take fewer.")
        return tuple(range(rank_a - n, rank_a)), tuple(range(n))
    left, right = axes
    left, right = ([side] if isinstance(side, (int, np.integer)) else list(side) for side in (left, right))
    if len(left) != len(right):
        raise ShapeError(f"tensordot: axes come in pairs, got {len(left)} and {len(right)}. Name as many for both.")
    return tuple([normalize_axis(i, rank_a) for i in left]), tuple([normalize_axis(i, rank_b) for i in right])


def _contract_axes(name: str, a: Array, b: Array, left: tuple[int, ...], right: tuple[int, ...]) -> Array:
    """Return the sum of products over axes ``left`` of ``a`` and ``right`` of ``b``; other axes keep their order."""
    shape_a, shape_b = shape_of(a), shape_of(b)
    if [shape_a[i] for i in left] != [shape_b[i] for i in right]:
        raise ShapeError(
            f"{name}: the axes to sum over have different lengths, got {describe(a)} along {left} and {describe(b)} "
            f"along {right}. Check the order of the axes."
        )
    ta = LETTERS[: len(shape_a)]
    rest = iter(LETTERS[len(shape_a) :])
    tb = "".join([ta[left[right.index(i)]] if i in right else next(rest) for i in range(len(shape_b))])
    out = "".join([i for i in ta if i not in tb]) + "".join([i for i in tb if i not in ta])
    made = _in_common_dtype(prim.einsum(a, b, subscripts=f"{ta},{tb}->{out}"), a, b)
    return in_memory_order(made, "C") if isinstance(made, Tracer) and len(out) > 1 else made


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the Kronecker product: ``a`` with each element replaced by its product with ``b``.

    Example:
        >>> fnp.kron([1.0, 2.0], [1.0, 10.0])
        array([ 1., 10.,  2., 20.])
    """
    a, b = as_value(a), as_value(b)
    if is_plain(a, b):
        return np.kron(a, b)
    shapes = shape_of(a), shape_of(b)
    rank = max(map(len, shapes))
    if not rank:
        return _times_number(a, b)
    ones: list[Shape] = [(1,) * (rank - len(s)) + s for s in shapes]
    ta, tb = LETTERS[:rank], LETTERS[rank : 2 * rank]
    out = "".join([i + j for i, j in zip(ta, tb, strict=True)])
    pairs = prim.einsum(reshape(a, to=ones[0]), reshape(b, to=ones[1]), subscripts=f"{ta},{tb}->{out}")
    return reshape(_in_common_dtype(pairs, a, b), to=tuple([n * m for n, m in zip(*ones, strict=True)]))


def cross(
    a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Array:
    """Return the cross product of vectors with three components; the other axes broadcast.

    With NumPy before 2.5, vectors with two components still work and give a DeprecationWarning; their third component
    is 0. Two such vectors give only the third component of the product, without an axis for components.

    Args:
        a: vectors.
        b: vectors.
        axisa: the axis of ``a`` along which the components stand.
        axisb: the axis of the components of ``b``.
        axisc: the axis of the components of the result.
        axis: one value for ``axisa``, ``axisb`` and ``axisc``.

    Raises:
        ValueError: vectors of another length.

    Example:
        >>> fnp.cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
        array([0., 0., 1.])
    """
    a, b = as_value(a), as_value(b)
    if axis is not None:
        axisa = axisb = axisc = axis
    if is_plain(a, b):
        return np.cross(a, b, axisa, axisb, axisc)
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    lengths = shape_of(a)[-1], shape_of(b)[-1]
    if not ({2, 3} if _takes_plane_vectors() else {3}).issuperset(lengths):
        raise ShapeError(
            f"cross: vectors have three components, got {describe(a)} and {describe(b)}, components last. "
            "Check the axes, and append a zero to vectors of the plane."
        )
    if 2 in lengths:
        warn("cross: 2-dimensional vectors are deprecated, append a zero", DeprecationWarning)
        a, b = (_as_space_vectors(x) for x in (a, b))
    (a1, a2), (b1, b2) = ([roll(x, shift=(-k,), axis=(len(shape_of(x)) - 1,)) for k in (1, 2)] for x in (a, b))
    ans = subtract(multiply(a1, b2), multiply(a2, b1))
    return getitem(ans, (..., 2)) if lengths == (2, 2) else moveaxis(ans, -1, axisc)


@cache
def _takes_plane_vectors() -> bool:
    """Whether NumPy's ``cross`` accepts vectors with two components, as before 2.5."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            np.cross([1.0, 0.0], [0.0, 1.0])
        except ValueError:
            return False
    return True


def _as_space_vectors(x: Array) -> Array:
    """Append a zero to vectors whose third component is missing."""
    shape = shape_of(x)
    return x if shape[-1] == 3 else pad_zeros(x, widths=(*[(0, 0)] * (len(shape) - 1), (0, 1)))


def trace(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Array:
    """Return the sum along a diagonal of the matrices that ``axis1`` and ``axis2`` span.

    Args:
        a: an array with two or more axes.
        offset: the diagonal; positive numbers mean diagonals above the main diagonal.
        axis1: the axis of the rows.
        axis2: the axis of the columns.
        dtype: the dtype to sum in.
        out: an array for the result.

    Example:
        >>> fnp.trace(np.eye(3))
        np.float64(3.0)
    """
    if out is not None:
        return compute_into(trace, out, a, offset, axis1, axis2, dtype)
    a = as_value(a)
    if is_plain(a):
        return np.trace(a, offset, axis1, axis2, dtype)
    on_it = as_dtype(diagonal(a, offset, axis1, axis2), dtype)
    return as_dtype(reduce_sum(on_it, axis=(len(shape_of(on_it)) - 1,)), dtype)


def einsum(
    subscripts: str | ArrayLike,
    *operands: Any,
    out: Any = None,
    dtype: Any = None,
    order: str = "K",
    casting: Any = "safe",
    optimize: Any = False,
) -> Array:
    """Return the sum of products that a formula in letters describes (Einstein sum).

    Args:
        subscripts: the letters of each operand's axes, and after ``->`` the letters of the result. Without
            ``->`` the result has the letters that occur once, in alphabetical order. ``...`` represents
            any number of axes, which broadcast. Alternatively, operands and lists of axis numbers in turn.
        operands: the arrays.
        out: an array for the result.
        dtype: the dtype to compute in.
        order: accepted for compatibility with NumPy; memory order does not change values.
        casting: the conversions to ``dtype`` that NumPy allows.
        optimize: the order in which three and more operands are multiplied: a method or a path of
            ``opt_einsum``; True means "auto". False means NumPy's single loop for ndarrays, and "auto" for
            traced operands and those of other libraries.

    Raises:
        ValueError: the formula is malformed or does not fit the operands.
        TypeError: ``casting`` does not allow the conversion to ``dtype``.

    Example:
        >>> fnp.einsum("ij,j->i", np.ones((2, 3)), np.arange(3.0))
        array([3., 3.])
        >>> fnp.einsum("ii", np.eye(3))
        np.float64(3.0)
    """
    if out is not None:
        return compute_into(
            einsum, out, subscripts, *operands, dtype=dtype, order=order, casting=casting, optimize=optimize
        )
    text, arrays = _formula(subscripts, operands)
    values = [as_value(a) for a in arrays]
    if is_plain(*values):
        keywords = {"dtype": dtype, "order": order, "casting": casting, "optimize": optimize}
        return np.einsum(text, *values, **keywords)
    values = [as_numpy_number(v) for v in values]
    if dtype is not None:
        for i, v in enumerate(values):
            if not np.can_cast(have := backend.dtype_of(v), dtype, casting):
                to = np.dtype(dtype)
                raise TypeError(
                    f"Operand {i} could not be cast from {have!r} to {to!r} according to the rule {casting!r}"
                )
        values = [as_dtype(v, dtype) for v in values]
    terms, result = _parsed(text, tuple([len(backend.shape_of(v)) for v in values]))
    made = contract(terms, result, values, optimize)
    if isinstance(made, Tracer):
        made = in_memory_order(made, "C") if len(values) > 1 and made.shape else as_number(made)
    if backend.is_inexact(made) or backend.namespace_of(made) is not None:
        return made
    return as_dtype(made, np.result_type(*map(backend.dtype_of, values)))  # NumPy adds in the dtype of the elements


def einsum_path(subscripts: str | ArrayLike, *operands: Any, optimize: Any = "greedy") -> tuple[list[Any], str]:
    """Return NumPy's order of evaluation for the Einstein sum ``subscripts``, and its description.

    Both results depend on the shapes of the operands alone.

    Example:
        >>> fnp.einsum_path("ij,jk,kl->il", np.ones((2, 9)), np.ones((9, 9)), np.ones((9, 2)))[0]
        ['einsum_path', (0, 1), (0, 1)]
    """
    text, arrays = _formula(subscripts, operands)
    shaped = [np.broadcast_to(0.0, backend.shape_of(as_value(a))) for a in arrays]
    return np.einsum_path(text, *shaped, optimize=optimize)


def _formula(subscripts: Any, operands: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Return the formula as text, and the operands; NumPy also accepts ``op0, axes0, op1, axes1, ..., [axes_out]``."""
    if isinstance(subscripts, str):
        return subscripts.replace(" ", ""), operands
    everything = (subscripts, *operands)
    pairs = len(everything) // 2
    terms = [_as_letters(axes) for axes in everything[1 : 2 * pairs : 2]]
    text = ",".join(terms)
    if len(everything) % 2:
        text += "->" + _as_letters(everything[-1])
    return text, everything[0 : 2 * pairs : 2]


def _as_letters(axes: Iterable[Any]) -> str:
    try:
        return "".join(["..." if i is ... else LETTERS[i] for i in axes])
    except (TypeError, IndexError) as error:
        raise InputError(
            f"einsum: a list of axes consists of integers from 0 to {len(LETTERS) - 1} and at most one ellipsis, "
            f"got {axes!r}. Or pass the formula as a string."
        ) from error


@lru_cache(maxsize=1024)
def _parsed(text: str, ranks: tuple[int, ...]) -> tuple[tuple[str, ...], str]:
    """Return the letters of the axes of each operand and of the result, with ellipses replaced by letters."""
    factors, arrow, result = text.partition("->")
    terms = factors.split(",")
    if len(terms) != len(ranks):
        _refuse(text, f"it has {len(terms)} terms for {len(ranks)} operands")
    for term in (*terms, result):
        rest = term.replace("...", "", 1)
        if not all(i in LETTERS for i in rest):
            _refuse(text, f"the term {term!r} has something else than letters and one ellipsis")
    spare = [i for i in LETTERS if i not in text]
    widths = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    for term, width, rank in zip(terms, widths, ranks, strict=True):
        if width < 0 or (width and "..." not in term):
            _refuse(text, f"the term {term!r} does not fit an operand with {rank} axes")
    most = max([w for term, w in zip(terms, widths, strict=True) if "..." in term], default=0)
    dots = "".join(spare[:most])  # aligned at the right, as in broadcasting
    full = tuple([term.replace("...", dots[most - w :]) for term, w in zip(terms, widths, strict=True)])
    if arrow:
        if most and "..." not in result:
            _refuse(text, "the result has no ellipsis for the axes that stand under one")
        out = result.replace("...", dots)
    else:
        named = "".join(terms).replace(".", "")
        out = dots + "".join(sorted([i for i in set(named) if named.count(i) == 1]))
    if len(set(out)) != len(out):
        _refuse(text, "the result has a letter twice")
    if not set(out) <= set("".join(full)):
        _refuse(text, "the result has a letter that no operand has")
    return full, out


def _refuse(text: str, problem: str) -> NoReturn:
    raise ValueError(f"einsum: {problem}, got {text!r}. Write it as in 'ij,jk->ik'.")


def contract(terms: tuple[str, ...], out: str, operands: list[Array], optimize: Any = False) -> Array:
    """Return the sum of products; ``terms`` and ``out`` give the letters of all axes."""
    shapes = tuple([backend.shape_of(x) for x in operands])
    recipe, pool = _recipe(terms, out, shapes, _hashable(optimize)), list(operands)
    for position, actions in enumerate(recipe.first):
        for operation, params in actions:
            pool[position] = operation(pool[position], **params)
    for i, j, subscripts in recipe.products:
        y, x = pool.pop(j), pool.pop(i)
        pool.append(prim.einsum(x, y, subscripts=subscripts))
    return pool[0] if recipe.last is None else permute(pool[0], axes=recipe.last)


#: Operation on one array, with its parameters.
Action: TypeAlias = tuple[Operation, dict[str, Any]]


class Recipe(NamedTuple):
    """Plan of an Einstein sum for operands of certain shapes.

    Attributes:
        first: for each operand the operations that remove what its products do not need: repeated
            letters, axes of length 1 that broadcast, letters that occur in no other operand or result.
        products: the positions of two operands and the formula of their product, which is appended.
        last: the permutation of the axes of the remaining array, None if its axes are in order.
    """

    first: tuple[tuple[Action, ...], ...]
    products: tuple[tuple[int, int, str], ...]
    last: tuple[int, ...] | None


@lru_cache(maxsize=1024)
def _recipe(terms: tuple[str, ...], out: str, shapes: tuple[Shape, ...], optimize: Any) -> Recipe:
    lengths = _lengths(terms, shapes)
    pool, first = [], []
    for term, shape in zip(terms, shapes, strict=True):
        term, shape, actions = _take_repeated_diagonals(term, shape)
        keep = [a for a, i in enumerate(term) if shape[a] == lengths[i]]
        if len(keep) < len(term):
            term, shape = "".join([term[a] for a in keep]), tuple([shape[a] for a in keep])
            actions.append((reshape, {"to": shape}))
        pool.append(term)
        first.append(actions)
    for position, term in enumerate(pool):
        needed = set(out).union(*pool[:position], *pool[position + 1 :])
        axis = tuple([a for a, i in enumerate(term) if i not in needed])
        if axis:
            first[position].append((reduce_sum, {"axis": axis}))
            pool[position] = "".join([i for i in term if i in needed])
    products = tuple(_products(pool, out, lengths, optimize))
    last = None if pool[0] == out else tuple([pool[0].index(i) for i in out])
    return Recipe(tuple(map(tuple, first)), products, last)


def _lengths(terms: tuple[str, ...], shapes: tuple[Shape, ...]) -> dict[str, int]:
    """Return the length of the axes of each letter; 1 broadcasts."""
    lengths: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for i, n in zip(term, shape, strict=True):
            if lengths.setdefault(i, n) == 1:
                lengths[i] = n
            elif n not in (1, lengths[i]):
                raise ShapeError(
                    f"einsum: axes of one name have one length (or 1, which broadcasts), got {lengths[i]} and {n} for "
                    f"{i!r} in {','.join(terms)} of shapes {', '.join(map(str, shapes))}. Check the order of the axes."
                )
    return lengths


def _take_repeated_diagonals(term: str, shape: Shape) -> tuple[str, Shape, list[Action]]:
    """Return the term, the shape and the operations that take the diagonal for each letter that occurs twice."""
    actions: list[Action] = []
    for i in dict.fromkeys(term):
        while term.count(i) > 1:
            first = term.index(i)
            second = term.index(i, first + 1)
            if shape[first] != shape[second]:
                raise ShapeError(
                    f"einsum: a letter that an operand has twice stands for its diagonal, got lengths {shape[first]} "
                    f"and {shape[second]} for {i!r}. Both must agree."
                )
            rest = [a for a in range(len(term)) if a not in (first, second)]
            actions += [(permute, {"axes": (*rest, first, second)}), (diagonal_of, {"offset": 0})]
            term = "".join([term[a] for a in rest]) + i
            shape = (*[shape[a] for a in rest], shape[first])
    return term, shape, actions


def _products(pool: list[str], out: str, lengths: dict[str, int], optimize: Any) -> Iterator[tuple[int, int, str]]:
    """Yield the products of pairs in a good order; in the end ``pool`` holds the letters of the remaining array."""
    for chosen in _path(pool, out, lengths, optimize):
        rising = sorted(chosen)
        while len(rising) > 1:
            i, j = rising[0], rising[1]
            ty, tx = pool.pop(j), pool.pop(i)
            others = set(out).union(*pool)
            made = "".join([k for k in dict.fromkeys(tx + ty) if k in others]) if pool else out
            pool.append(made)
            yield i, j, f"{tx},{ty}->{made}"
            rising = sorted([*[k - 2 for k in rising[2:]], len(pool) - 1])


def _hashable(optimize: Any) -> Any:
    """Return ``optimize`` as a hashable value: a path as a tuple without NumPy's leading "einsum_path"."""
    if isinstance(optimize, (list, tuple)) and optimize and not isinstance(optimize[0], str):
        return tuple([tuple(step) for step in optimize])
    if isinstance(optimize, (list, tuple)) and optimize and optimize[0] == "einsum_path":
        return tuple([tuple(step) for step in optimize[1:]])
    return optimize if isinstance(optimize, str) else "auto"


def _path(pool: list[str], out: str, lengths: dict[str, int], optimize: Any) -> list[tuple[int, ...]]:
    """Return which operands to multiply in each step; the product is appended to the operands."""
    if len(pool) < 3:
        return [(0, 1)] if len(pool) == 2 else []
    from opt_einsum import contract_path  # needed only here; importing opt_einsum takes longer than most sums

    shapes = [tuple([lengths[i] for i in term]) for term in pool]
    how = [*optimize] if isinstance(optimize, tuple) else optimize
    path, _ = contract_path(",".join(pool) + "->" + out, *shapes, shapes=True, optimize=how)
    return [tuple(step) for step in path]
