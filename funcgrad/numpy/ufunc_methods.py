"""Ufuncs on traced values: their options, and ``reduce``, ``accumulate``, ``reduceat``, ``outer`` and ``at``.

``order`` and ``subok`` concern memory and subclasses; for traced values both are accepted and ignored. If nothing is
traced, NumPy's methods compute. For traced values NumPy's methods check the arguments: they get an array of the same
shape and dtype. Sums, products and extrema use funcgrad's reductions; other ufuncs are applied to one element after
the other, in NumPy's order.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod as product
from typing import Any, Protocol

import numpy as np

from funcgrad import backend
from funcgrad.backend import dtype_of, is_inexact
from funcgrad.core import READ_ONLY, Tracer, describe, shallow_copy
from funcgrad.errors import InputError
from funcgrad.kinds.linear import broadcast_to, reshape
from funcgrad.numpy import cumulative, reductions
from funcgrad.numpy.axes import normalize_axis
from funcgrad.numpy.creation import as_value, asarray, astype, requested_dtype
from funcgrad.numpy.plain_values.concretization import user_line
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy.reducing import as_dtype, as_scalar, merge_axes
from funcgrad.numpy.shaping import expand_dims, moveaxis
from funcgrad.numpy.writes.assignment import raise_read_only, set_all_items
from funcgrad.numpy.writes.items import with_items_set
from funcgrad.numpy.writes.output import (
    accumulation_dtype,
    are_constant,
    call_on_buffers,
    check_arrays,
    refuse_array,
    write_out,
)
from funcgrad.primitives.arithmetic import fabs
from funcgrad.primitives.comparison import where as choose
from funcgrad.primitives.index_spec import ARRAY
from funcgrad.primitives.indexing import getitem, scatter_sum
from funcgrad.primitives.shaping import stack
from funcgrad.shared_state import write_lock
from funcgrad.typing import Array, ArrayLike
from funcgrad.writable import Proxy


class Ufunc(Protocol):
    """Attributes and methods that all ufuncs have; ``ufunc`` binds the methods to the functions that it makes.

    Attributes:
        ufunc: NumPy's ufunc.
        compute: the function that computes with tracers, without options.
        nin: the number of arguments.
        nout: the number of results.
        nargs: the number of arguments and results together.
        ntypes: the number of NumPy's loops for this ufunc.
        types: the dtypes of the loops, as letters.
        identity: the result of a reduction of no elements, or None.
        signature: None, because the ufunc acts element by element.
    """

    __name__: str
    ufunc: np.ufunc
    compute: Callable[..., Any]
    nin: int
    nout: int
    nargs: int
    ntypes: int
    types: list[str]
    identity: Any
    signature: str | None

    def reduce(
        self,
        array: ArrayLike,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = ...,
        where: Any = True,
    ) -> Array:
        """Reduce the elements along ``axis`` by applying the ufunc from the first element to the last.

        Args:
            array: an array.
            axis: one axis; several, or None for all, if the order does not matter.
            dtype: the dtype to compute in; by default NumPy's choice.
            out: an array for the result.
            keepdims: keep the reduced axes, with length 1.
            initial: the value to start from; None to start from the first element.
            where: a mask that broadcasts to the shape of ``array`` and selects the elements to use.

        Raises:
            ValueError: a ufunc that does not take two arguments; no elements to reduce and no identity.

        Example:
            >>> fnp.subtract.reduce([10.0, 2.0, 3.0])
            np.float64(5.0)
        """
        if type(out) is tuple:
            (out,) = out
        options = {"keepdims": keepdims, "where": where, **({} if initial is ... else {"initial": initial})}
        if (made := _by_object(self, "reduce", (array,), out, axis=axis, dtype=dtype, **options)) is not NotImplemented:
            return made
        array = _operand(array)
        if are_constant(array, out, options):
            return _call_numpy_method(self.ufunc.reduce, array, axis, dtype, out, **options)
        if out is not None:
            dtype = _dtype_for(self, array, dtype, out)
            return write_out(f"{self.__name__}.reduce", out, self.reduce(array, axis, dtype, None, **options))
        a, numpy_ufunc = as_value(array), self.ufunc
        start = None if initial is ... else initial
        if axis in (0, -1) and not backend.shape_of(a):  # NumPy accepts these axes for a number
            axis = ()
        if numpy_ufunc in _REDUCTIONS and initial is not None:
            return _REDUCTIONS[numpy_ufunc](a, axis, dtype, None, keepdims, start, where)
        if numpy_ufunc in _EXTREMA:
            return _EXTREMA[numpy_ufunc](as_dtype(a, dtype), axis, None, keepdims, start, where)
        if numpy_ufunc in _LOGIC and initial is ... and dtype is None:
            return _LOGIC[numpy_ufunc](a, axis, None, keepdims, where=where)
        shown = {**options, "where": _shape_dtype_proxy(where, True)}
        if start is not None:
            shown["initial"] = 1
        like = numpy_ufunc.reduce(_shape_dtype_proxy(a), axis, dtype, None, **shown)
        if numpy_ufunc is np.hypot and initial is ... and where is True and like.size == product(backend.shape_of(a)):
            return fabs(reshape(as_dtype(a, like.dtype), to=like.shape))  # NumPy starts from 0
        return _fold(self, a, axis, like, start, where)

    def accumulate(self, array: ArrayLike, axis: Any = 0, dtype: Any = None, out: Any = None) -> Array:
        """Return the running result of ``reduce`` along one ``axis``; arguments as for ``reduce``.

        Raises:
            ValueError: a ufunc that does not take two arguments; several axes.

        Example:
            >>> fnp.maximum.accumulate([1.0, 3.0, 2.0])
            array([1., 3., 3.])
        """
        if type(out) is tuple:
            (out,) = out
        if (made := _by_object(self, "accumulate", (array,), out, axis=axis, dtype=dtype)) is not NotImplemented:
            return made
        array = _operand(array)
        if are_constant(array, out):
            return _call_numpy_method(self.ufunc.accumulate, array, axis, dtype, out)
        if out is not None:
            dtype = _dtype_for(self, array, dtype, out)
            return write_out(f"{self.__name__}.accumulate", out, self.accumulate(array, axis, dtype))
        a = as_value(array)
        like = self.ufunc.accumulate(_shape_dtype_proxy(a), axis, dtype)
        (along,) = axis if isinstance(axis, tuple) else (0 if axis is None else axis,)
        along = normalize_axis(along, like.ndim)
        a = as_dtype(a, like.dtype)
        if self.ufunc in _SCANS:
            return _SCANS[self.ufunc](a, along)
        if not like.size:
            return a
        before = (slice(None),) * along
        parts = [getitem(a, (*before, 0))]
        for i in range(1, like.shape[along]):
            parts.append(self.compute(parts[-1], getitem(a, (*before, i))))
        return stack(*parts, axis=along)

    def reduceat(
        self, array: ArrayLike, indices: ArrayLike, axis: Any = 0, dtype: Any = None, out: Any = None
    ) -> Array:
        """Reduce slices along ``axis``; each slice starts at one of ``indices`` and ends before the next one.

        If the next index is not larger, the slice is one element. The last slice goes to the end. Other arguments are
        those of ``reduce``, with one axis.

        Raises:
            IndexError: an index out of range.

        Example:
            >>> fnp.add.reduceat([1.0, 2.0, 3.0, 4.0], [0, 2])
            array([3., 7.])
        """
        if type(out) is tuple:
            (out,) = out
        if (made := _by_object(self, "reduceat", (array, indices), out, axis=axis)) is not NotImplemented:
            return made
        array = _operand(array)
        if are_constant(array, indices, out):
            return _call_numpy_method(self.ufunc.reduceat, array, indices, axis, dtype, out)
        if out is not None:
            dtype = _dtype_for(self, array, dtype, out)
            return write_out(f"{self.__name__}.reduceat", out, self.reduceat(array, indices, axis, dtype))
        a = as_value(array)
        starts = np.asarray(shallow_copy(indices))
        like = self.ufunc.reduceat(_shape_dtype_proxy(a), starts, axis, dtype)
        if not like.size:
            return like
        (along,) = axis if isinstance(axis, tuple) else (0 if axis is None else axis,)
        along = normalize_axis(along, like.ndim)
        a = as_dtype(a, like.dtype)
        before, parts = (slice(None),) * along, []
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), backend.shape_of(a)[along]], strict=True):
            one = stop <= start + 1
            piece = getitem(a, (*before, start if one else slice(start, stop)))
            parts.append(piece if one else self.reduce(piece, along))
        return as_dtype(stack(*parts, axis=along), like.dtype)

    def outer(self, A: ArrayLike, B: ArrayLike, /, **options: Any) -> Array:
        """Apply the ufunc to each pair of elements of ``A`` and ``B``; axes of ``A`` come before axes of ``B``.

        ``options`` are the options of the ufunc.

        Example:
            >>> fnp.subtract.outer([1.0, 2.0], [3.0, 4.0])
            array([[-2., -3.],
                   [-1., -2.]])
        """
        if is_plain(A, B, *options.values()):
            check_arrays("outer", (A, B))
            return self.ufunc.outer(A, B, **options)
        if (made := _by_object(self, "outer", (A, B), **options)) is not NotImplemented:
            return made
        if self.ufunc.nin != 2:
            raise ValueError("outer product only supported for binary functions")
        a, b = as_value(A), as_value(B)
        if backend.library_of(a) is backend.library_of(b) is np:  # whose Python numbers become arrays here
            a, b = asarray(a), asarray(b)
        ones = (1,) * len(backend.shape_of(b))
        if ones:
            a = reshape(a, to=(*backend.shape_of(a), *ones))
        out = options.pop("out", None)
        return apply_ufunc(self.ufunc, self.compute, (a, b), out, options, f"{self.__name__}.outer")

    def at(self, a: Array, indices: Any, b: Any = ..., /) -> None:
        """Compute ``a[indices] = ufunc(a[indices], b)`` in place, once for each time that an element is indexed.

        ``a`` is an array that the program made.

        Args:
            a: the array to change.
            indices: an index as in ``a[indices]``.
            b: the second argument of a binary ufunc; it broadcasts to ``a[indices]``.

        Raises:
            ReadOnlyError: ``a`` is an argument of a transformed function.
            InputError: ``a`` cannot hold a traced value, or the dtype of the results.

        Example:
            >>> a = np.array([1.0, 2.0])
            >>> fnp.multiply.at(a, [0, 0, 1], 3.0)
            >>> a
            array([9., 6.])
        """
        name, others = f"{self.__name__}.at", () if b is ... else (b,)
        if _by_object(self, "at", (a, indices, *others)) is not NotImplemented:
            return
        if issubclass(type(a), np.ndarray) and is_plain(indices, *others):
            check_arrays(name, (a, *others))
            self.ufunc.at(a, indices, *others)
            return
        if not isinstance(a, Tracer):
            if isinstance(a, np.ndarray):
                refuse_array(name, a)
            raise InputError(
                f"{name}: the first argument must be an array that can be written to, got {describe(a)}{user_line()}. "
                "Make it with funcgrad.numpy.zeros, empty or copy."
            )
        if a.alias is READ_ONLY:
            raise_read_only(a, name)
        with write_lock:  # other threads may write to other elements
            if are_constant(a, indices, *others):
                call_on_buffers(self.ufunc.at, (a, indices, *others), {})
                return
            if len(others) != self.ufunc.nin - 1 or self.ufunc.nout > 1:
                n = self.ufunc.nin
                raise ValueError(f"{name}: the ufunc takes {n} arguments and is of one result. Pass as many.")
            set_all_items(a, _updated_at(self, name, shallow_copy(a), indices, *[as_value(o) for o in others]))


_REDUCTIONS: dict[np.ufunc, Callable[..., Any]] = {np.add: reductions.sum, np.multiply: reductions.prod}
_EXTREMA: dict[np.ufunc, Callable[..., Any]] = {np.maximum: reductions.max, np.minimum: reductions.min}
_LOGIC: dict[np.ufunc, Callable[..., Any]] = {np.logical_and: reductions.all, np.logical_or: reductions.any}
_TRUTHS = frozenset((*_LOGIC, np.logical_xor))
_SCANS: dict[np.ufunc, Callable[..., Any]] = {np.add: cumulative.cumsum, np.multiply: cumulative.cumprod}


def _by_object(self: Ufunc, method: str, args: tuple[Any, ...], out: Any = None, **options: Any) -> Any:
    """Return what an object with rules for ufuncs computes, the first in ``args`` or ``out``; else NotImplemented."""
    outs = out if type(out) is tuple else (out,)
    for x in (*args, *outs):
        if issubclass(type(x), Proxy):
            if any(given is not None for given in outs):
                options["out"] = outs
            given = {name: value for name, value in options.items() if name == "axis" or not _is_default(name, value)}
            return x.compute_ufunc(self.ufunc, method, args, given)
    return NotImplemented


def _operand(x: Any) -> Any:
    """Return the array of an object that has no rules for ufuncs, such as ``x.flat``; anything else unchanged."""
    return x.as_operand() if issubclass(type(x), Proxy) else x


def _has_class(x: Any) -> bool:
    """Whether ``x`` stands for an array of a class such as ``numpy.matrix``, which elementwise operations keep."""
    return issubclass(type(x), Proxy) and issubclass(x.array_class(), np.ndarray)


def _has_ufunc_rule(x: Any) -> bool:
    return issubclass(type(x), Proxy) and type(x).compute_ufunc is not Proxy.compute_ufunc


def _is_default(name: str, value: Any) -> bool:
    return value is None or (name == "keepdims" and not value) or (name == "where" and value is True)


def _call_numpy_method(method: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call NumPy's method on constant arguments."""
    check_arrays(method.__name__, args[:1])
    return method(*args, **options) if is_plain(*args, *options.values()) else call_on_buffers(method, args, options)


def _shape_dtype_proxy(a: Any, value: Any = 1) -> Any:
    """Return an array of the shape and dtype of ``a`` for NumPy's checks; the array takes no memory."""
    if is_plain(a) and not hasattr(a, "dtype"):
        return a if value is True else np.broadcast_to(np.asarray(a).dtype.type(value), np.shape(a))
    return np.broadcast_to(np.asarray(value, backend.dtype_of(a)), backend.shape_of(a))


def _dtype_for(ufunc: Ufunc, array: Any, dtype: Any, out: Any) -> Any:
    return accumulation_dtype(as_value(array), out) if dtype is None and ufunc.ufunc not in _TRUTHS else dtype


def _fold(self: Ufunc, a: Array, axis: Any, like: Any, start: Any, where: Any) -> Array:
    """Reduce ``a`` along ``axis`` by applying the ufunc to one element after the other."""
    shape, dtype = backend.shape_of(a), backend.dtype_of(like)
    rows = merge_axes(as_dtype(a, dtype), axis)
    mask = None if where is True else merge_axes(broadcast_to(as_value(where), to=shape), axis)
    *rest, n = backend.shape_of(rows)
    first, before = 0, (slice(None),) * len(rest)
    if start is not None:
        ans = as_dtype(as_value(start), dtype)
    elif mask is not None or not n:
        ans = dtype.type(self.ufunc.identity)
    else:
        ans, first = getitem(rows, (*before, 0)), 1
    for i in range(first, n):
        row = getitem(rows, (*before, i))
        if mask is None:
            ans = self.compute(ans, row)
        else:
            chosen = getitem(mask, (*before, i))
            ans = choose(chosen, self.compute(ans, choose(chosen, row, dtype.type(1))), ans)
    if backend.shape_of(ans) != tuple(rest):
        ans = broadcast_to(ans, to=tuple(rest))
    return as_scalar(reshape(ans, to=like.shape) if like.shape != tuple(rest) else ans)


def _updated_at(self: Ufunc, name: str, a: Array, indices: Any, *others: Array) -> Array:
    shape, dtype = backend.shape_and_dtype_of(a)
    size = product(shape)
    places = as_value(shallow_copy(getitem(np.arange(size).reshape(shape), indices)))
    room = backend.shape_of(places)
    others = tuple([reshape(broadcast_to(b, to=room), to=(product(room),)) for b in others])
    flat, places = reshape(a, to=(size,)), reshape(places, to=(product(room),))
    if self.ufunc in (np.add, np.subtract) and dtype.kind != "b" and not _is_sequential(flat, *others):
        (b,) = others
        _check(name, np.result_type(dtype, backend.dtype_of(b)), dtype)
        if backend.dtype_of(b) != dtype:
            b = astype(b, dtype)
        spread = scatter_sum(b, places, specs=((ARRAY,),), shape=(size,), dtype=dtype)
        return reshape(self.compute(flat, spread), to=shape)
    for part in _unique_rounds(places, product(room)):
        here = getitem(places, part)
        result = self.compute(getitem(flat, here), *[getitem(b, part) for b in others])
        _check(name, backend.dtype_of(result), dtype)
        flat = with_items_set(flat, here, result if backend.dtype_of(result) == dtype else astype(result, dtype))
    return reshape(flat, to=shape)


def _is_sequential(*values: Any) -> bool:
    """Whether to update one element after the other, bit for bit as NumPy: all tracers are on replayed graphs."""
    tracers = [x for x in values if isinstance(x, Tracer)]
    return all(x._trace.is_bit_exact for x in tracers)


def _check(name: str, have: Any, to: Any) -> None:
    if not np.can_cast(have, to, "same_kind"):
        raise InputError(
            f"{name}: results of dtype {have} do not fit the array, got dtype {to}{user_line()}. Make the array with "
            f"dtype={str(have)!r}."
        )


def _unique_rounds(places: Array, n: int) -> list[Any]:
    """Split positions in ``places`` into rounds: no round has a place twice, and repeated places keep their order.

    If the places are traced or differ between the examples of a batch, each round has one position.
    """
    if not issubclass(type(places), np.ndarray):
        return [slice(i, i + 1) for i in range(n)]
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][:n])
    time = np.empty(n, int)
    time[order] = np.arange(n) - np.repeat(begins, np.diff(np.r_[begins, n]))
    return [np.flatnonzero(time == k) for k in range(time.max() + 1 if n else 0)]


_WEAK = (int, float, complex)  # Python numbers of these types take the dtype of arrays
#: Options of elementwise ufuncs with their defaults, as signatures show them.
DEFAULTS: dict[str, Any] = {
    "where": True,
    "casting": "same_kind",
    "order": "K",
    "dtype": None,
    "subok": True,
    "signature": None,
}
#: Names of the options; ``sig`` is an old name of ``signature``.
OPTIONS = frozenset((*DEFAULTS, "sig"))


def apply_ufunc(
    numpy_ufunc: np.ufunc,
    operation: Callable[..., Any],
    inputs: tuple[Any, ...],
    out: Any,
    options: dict[str, Any],
    name: str = "",
) -> Any:
    """Apply a ufunc with options; ``funcgrad.numpy``'s and NumPy's ufuncs both come here.

    Args:
        numpy_ufunc: NumPy's ufunc, which computes if nothing is traced.
        operation: funcgrad's function, without options.
        inputs: the arguments.
        out: an array, or a tuple of one array for each result, or None.
        options: the other options by name.
        name: the name of the called function, for messages; by default the name of ``numpy_ufunc``.

    Raises:
        TypeError: the ufunc has no loop for the dtypes, or ``casting`` does not allow it; an unknown option.
        InputError: ``where`` without ``out``; see also ``write_out``.
    """
    name = name or numpy_ufunc.__name__
    if type(out) is tuple and len(out) == 1:
        (out,) = out
    plain = not options and isinstance(out, Tracer) and numpy_ufunc.nout == 1
    if plain and not any(map(_has_ufunc_rule, inputs)):  # fast path of the most frequent case
        return write_out(name, out, operation(*inputs), stretch=True)
    outs = _outputs(name, numpy_ufunc.nout, out)
    check_options(name, options, OPTIONS)
    for x in (*inputs, *outs):
        if issubclass(type(x), Proxy):
            keywords = {**options, "out": outs} if outs else options
            if (made := x.compute_ufunc(numpy_ufunc, "__call__", inputs, keywords)) is not NotImplemented:
                return made
            inputs = tuple([x if _has_class(x) else _operand(x) for x in inputs])
    where = options.get("where", True)
    if are_constant(*inputs, outs, where):
        keywords = {**options, "out": outs} if outs else options
        if is_plain(*inputs, outs, where):
            check_arrays(name, inputs)
            return numpy_ufunc(*inputs, **keywords)
        return call_on_buffers(numpy_ufunc, inputs, keywords)
    if not outs and _selects_all(where, inputs):
        where = True
    casting = options.get("casting", "same_kind")
    signature = options.get("signature", options.get("sig"))
    dtype = options.get("dtype")
    if dtype is not None or signature is not None or where is not True or "casting" in options:
        inputs = _cast_arguments(numpy_ufunc, inputs, dtype, signature, casting)
    if where is not True:
        where = _mask(name, where, outs)
        inputs = tuple([_with_safe_inputs(numpy_ufunc, where, x) for x in inputs])
    results = operation(*inputs)
    if not outs:
        return results
    several = numpy_ufunc.nout > 1
    written = [
        result if place is None else _write_where(name, place, result, where, casting)
        for place, result in zip(outs, results if several else (results,), strict=True)
    ]
    return tuple(written) if several else written[0]


def _outputs(name: str, number: int, out: Any) -> tuple[Any, ...]:
    """Return ``out`` as a tuple with an array, or None, for each result; empty if no array is given."""
    if type(out) is not tuple:
        out = (out,)
    out = tuple([None if place is ... else place for place in out])  # asks for an array in place of a number
    if all(place is None for place in out):
        return ()
    if len(out) != number:
        raise ValueError(f"{name}: out has a place for each of {number} results, got {len(out)}. Pass a tuple of them.")
    return out  # type: ignore[no-any-return]


def check_options(name: str, options: dict[str, Any], known: frozenset[str]) -> None:
    """Check that all options are known; raise Python's ``TypeError`` for an unexpected keyword otherwise."""
    for option in options:
        if option not in known:
            raise TypeError(f"{name}() got an unexpected keyword argument {option!r}")


def _cast_arguments(
    ufunc: np.ufunc, args: tuple[ArrayLike, ...], dtype: Any, signature: Any, casting: Any
) -> tuple[Array, ...]:
    """Convert ``args`` to the dtypes that ``ufunc`` computes in; NumPy converts arguments, not the result."""
    values = [as_value(a) for a in args]
    given = [type(v) if type(v) in _WEAK else dtype_of(v) for v in values]
    loop = ufunc.resolve_dtypes(
        (*given, *[None] * ufunc.nout), signature=_requested_dtypes(ufunc, dtype, signature), casting=casting
    )
    return tuple([astype(v, to) for v, to in zip(values, loop, strict=False)])


def _requested_dtypes(ufunc: np.ufunc, dtype: Any, signature: Any) -> Any:
    """Return the requested dtypes, one for each argument and result, None for any."""
    if signature is None:
        return (*[None] * ufunc.nin, *[None if dtype is None else requested_dtype(dtype)] * ufunc.nout)
    if dtype is not None:
        raise TypeError("cannot specify both 'signature' and 'dtype'")
    if isinstance(signature, str):
        signature = tuple(signature.replace("->", ""))
    if len(signature) != ufunc.nargs:
        raise ValueError(
            f"{ufunc.__name__}: a signature has a dtype for each of {ufunc.nin} arguments and {ufunc.nout} results, "
            f"got {signature!r}. Write it as in {ufunc.types[-1]!r}."
        )
    return tuple([None if s is None else requested_dtype(s) for s in signature])


def _selects_all(where: Any, inputs: tuple[Any, ...]) -> bool:
    """Whether ``where`` is a constant mask that selects all elements of a result and adds no axes to it."""
    if not issubclass(type(where), (np.bool_, np.ndarray)) or where.dtype != bool or not where.all():
        return False
    shape = np.broadcast_shapes(*map(backend.shape_of, map(as_value, inputs)))
    return np.broadcast_shapes(shape, where.shape) == shape


def _mask(name: str, where: Any, outs: tuple[Any, ...]) -> Array:
    """Check the mask ``where`` and return it as an array of booleans."""
    if not outs or any(place is None for place in outs):
        raise InputError(
            f"{name}: where= without out= leaves elements of the result undefined, got where={describe(where)}"
            f"{user_line()}. Give out=, an array of funcgrad.numpy.zeros for instance, or choose afterwards: "
            "where(condition, result, other)."
        )
    where = as_value(where)
    if dtype_of(where).kind != "b":
        raise TypeError(f"{name}: where= must be booleans, got {describe(where)}. Compare with something.")
    return where


def _with_safe_inputs(ufunc: np.ufunc, where: Array, x: Array) -> Array:
    """Return ``x`` with numbers at which ``ufunc`` is smooth where the mask ``where`` is False.

    Masked elements may have an infinite derivative, and a cotangent of zero times infinity is NaN.
    """
    dtype = dtype_of(x)
    smooth = 2 if ufunc is np.arccosh else 0.5
    return choose(where, x, dtype.type(smooth if is_inexact(x) else 1))


def _write_where(name: str, place: Any, result: Any, where: Any, casting: Any) -> Any:
    if where is not True:
        have = dtype_of(result)
        to = place.dtype if hasattr(place, "dtype") and np.can_cast(have, place.dtype, casting) else have
        result = choose(where, result if have == to else astype(result, to), place)
    return write_out(name, place, result, casting, stretch=True)


def apply_gufunc(
    name: str,
    numpy_ufunc: np.ufunc | None,
    operation: Callable[..., Any],
    core_axes: str,
    inputs: tuple[Any, ...],
    out: Any,
    options: dict[str, Any],
) -> Any:
    """Apply a function of vectors and matrices (trailing axes) with options, as ``apply_ufunc`` does for a ufunc.

    Args:
        name: the name of the function.
        numpy_ufunc: NumPy's gufunc; None if this version of NumPy has none.
        operation: funcgrad's function, without options.
        core_axes: the core axes of arguments and result, as in a signature of NumPy's gufuncs.
        inputs: the arguments.
        out: an array, a tuple of one array, or None.
        options: the options of ``apply_ufunc`` except ``where``, and ``axes``, ``axis`` and ``keepdims``.
    """
    outs = _outputs(name, 1, out)
    if numpy_ufunc is not None and are_constant(*inputs, outs):
        keywords = {**options, "out": outs} if outs else options
        if is_plain(*inputs, outs):
            return numpy_ufunc(*inputs, **keywords)
        return call_on_buffers(numpy_ufunc, inputs, keywords)
    casting, signature = options.get("casting", "same_kind"), options.get("signature", options.get("sig"))
    dtype = options.get("dtype")
    if dtype is not None or signature is not None or "casting" in options:
        inputs = _cast_arguments(numpy_ufunc or np.matmul, inputs, dtype, signature, casting)
    axes = _core_axes(name, core_axes, options)
    if axes is None:
        result = operation(*inputs)
    else:
        moved = [moveaxis(as_value(x), at, tuple(range(-len(at), 0))) for x, at in zip(inputs, axes, strict=False)]
        result = operation(*moved)
        if options.get("keepdims"):
            result = expand_dims(result, -1)
        result = moveaxis(result, tuple(range(-len(axes[-1]), 0)), axes[-1])
    return write_out(name, outs[0], result, casting, stretch=True) if outs else result


def _core_axes(name: str, core_axes: str, options: dict[str, Any]) -> list[tuple[int, ...]] | None:
    """Return the axes of the vectors and matrices of arguments and result; None if all are trailing axes."""
    axes, axis, keepdims = options.get("axes"), options.get("axis"), bool(options.get("keepdims"))
    if axes is None and axis is None and not keepdims:
        return None
    reduces = core_axes.endswith("()")
    if (axis is not None or keepdims) and not reduces:
        raise TypeError(f"{name}: it does not reduce one axis, so axis= and keepdims= mean nothing. Pass axes=.")
    if axes is None:
        along = (-1 if axis is None else axis,)
        return [along, along, along if keepdims else ()]
    if axis is not None:
        raise TypeError("cannot specify both 'axis' and 'axes'")
    found = [tuple(entry) if isinstance(entry, (tuple, list)) else (entry,) for entry in axes]
    if len(found) == 2 and reduces:
        found.append(found[0] if keepdims else ())
    if len(found) != 3:
        raise ValueError(f"{name}: axes has an entry for each argument and the result, got {axes!r}. Pass three.")
    return found
