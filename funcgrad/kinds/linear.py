"""Linear operations, among them those that differentiation itself needs, and batching rules.

They are in one module because they need each other: the transpose of a sum is a broadcast, the transpose of a
broadcast is a sum, every batching rule consists of reshapes and broadcasts, and these have batching rules, too.

Axes are tuples of non-negative numbers, and shapes are complete: callers resolve ``None`` and ``-1``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np

from funcgrad import backend
from funcgrad.core import DOUBLE, REAL, SINGLE, Primitive, Tracer, call_operation, describe, plain_value
from funcgrad.errors import ConcretizationError, InputError, NotDifferentiableError, ShapeError
from funcgrad.generated import make_function
from funcgrad.graph import stands_for_array
from funcgrad.kinds.rules import (
    SHARED,
    Operation,
    Rule,
    check_names,
    checked_routine,
    finish_operation,
    positional_names,
)
from funcgrad.ownership import LARGE, is_temporary, is_unshared_argument
from funcgrad.reverse import RECORD, is_sparse, vjp_for_all, vjp_of_each
from funcgrad.shared_state import write_lock
from funcgrad.typing import Shape
from funcgrad.views import inverse_permutation, note_if_view

ndarray = np.ndarray
float64 = np.float64
_PLAIN = frozenset((ndarray, np.float64, float, int))  # common types that NumPy takes without further checks
_ONES = np.ones(64)
#: Lengths of rows for sums, lengths of rows for other kernels, and least number of elements, see ``row_sums``.
_SUMMED, SHORT_ROWS, MANY_ROWS = range(2, 8), range(2, 5), 8_192
_add_up: Callable[..., Any] = np.add.reduce
BatchRule: TypeAlias = Callable[[int, tuple[Any, ...], tuple[bool, ...], dict[str, Any]], tuple[Any, Any]]
#: How an operation takes a batch axis, which is the leading axis. "elementwise": examples
#: broadcast against each other; "leading": the operation works on the trailing axes and maps over all
#: others; "axis": the operation works along the parameter ``axis``, a number or a tuple of numbers;
#: "loop": the operation is called for one example after another; else a batching rule
#: ``batch(size, args, batched, params) -> (ans, batched)``.
Batching: TypeAlias = Literal["elementwise", "leading", "axis", "loop"] | BatchRule


def batch_rule(batching: Batching, operation: Callable[[], Callable[..., Any]]) -> BatchRule:
    """Return the batching rule that ``batching`` names, of the operation that ``operation()`` will return."""
    if callable(batching):
        return batching
    rules = {"elementwise": _elementwise, "leading": _leading, "axis": _axis, "loop": loop}
    if batching not in rules:
        raise InputError(
            f"extend: batch must be {', '.join(map(repr, rules))} or a batching rule, got {describe(batching)}. "
            "'loop' is right for every routine."
        )
    rule = rules[batching]
    return lambda size, args, batched, params: (rule(operation(), size, args, batched, params), True)


def operator_primitive(primitive: Primitive, operator: Callable[..., Any]) -> Primitive:
    """Make a primitive that computes ``primitive`` with Python's ``operator``, see ``Primitive.number_primitive``."""
    return Primitive(primitive.name, lambda xp, *args: operator(*args), None, None, primitive.batch)


def to_batch(x: Any, size: int) -> Any:
    """Repeat ``x`` along a new leading axis of length ``size``."""
    return broadcast_to(x, to=(size, *backend.shape_of(x)))


def _elementwise(
    call: Callable[..., Any], size: int, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any]
) -> Any:
    """Apply ``call`` to whole batches whose examples broadcast: give all batched arguments the same number of axes."""
    ranks = [len(backend.shape_of(a)) - b for a, b in zip(args, batched, strict=True)]
    rank = max(ranks)
    aligned = [
        reshape(a, to=(size, *(1,) * (rank - r), *backend.shape_of(a)[1:])) if b and r < rank else a
        for a, b, r in zip(args, batched, ranks, strict=True)
    ]
    return call(*aligned, **params)


def _leading(
    call: Callable[..., Any], size: int, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any]
) -> Any:
    """Apply ``call``, which works on trailing axes and maps over all others, to whole batches."""
    whole = [a if b else to_batch(a, size) for a, b in zip(args, batched, strict=True)]
    return call(*whole, **params)


def _axis(
    call: Callable[..., Any], size: int, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any]
) -> Any:
    """Apply ``call``, which works along ``axis``, a number or a tuple of numbers, to whole batches."""
    axis = params["axis"]
    shifted = tuple(map(_behind_batch, axis)) if isinstance(axis, (tuple, list)) else _behind_batch(axis)
    return _leading(call, size, args, batched, {**params, "axis": shifted})


def _behind_batch(axis: int) -> int:
    """Return the number of an axis in a batch whose examples come first; negative numbers count from the end."""
    return axis + 1 if axis >= 0 else axis


def loop(
    call: Callable[..., Any], size: int, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any]
) -> Any:
    """Apply ``call`` to one example after another, and stack the results."""
    if not size:
        raise ShapeError(
            f"vmap: {call.__name__} is called example by example and has none to tell the shape of its result from, "
            "got an axis of length 0. Map over at least one example."
        )
    results = [call(*[a[i] if b else a for a, b in zip(args, batched, strict=True)], **params) for i in range(size)]
    if type(results[0]) is tuple:
        return tuple(_stacked(call.__name__, parts) for parts in zip(*results, strict=True))
    return _stacked(call.__name__, results)


def _stacked(name: str, parts: Any) -> Any:
    shapes = {backend.shape_of(part) for part in parts}
    if len(shapes) > 1:
        raise ConcretizationError(
            f"{name}: the shape of the result depends on the values and differs between the examples of a vmap, got "
            f"{' and '.join(map(str, sorted(shapes)[:2]))}. Call it outside vmap, or use where(condition, x, y) for a "
            "selection."
        )
    return backend.namespace(parts).stack(parts)  # for tracers, numpy.stack dispatches to funcgrad's stack


def linear(
    name: str,
    impl: Callable[..., Any] | None = None,
    *,
    transpose: Rule,
    batch: Batching,
    numpy: Callable[..., Any] | None = None,
    view: bool = False,
    foreign: Callable[..., Any] | None = None,
    conforms: bool = False,
) -> Operation:
    """Define an operation that is linear in ``x``, its first argument; others (indices, masks) are constants.

    Args:
        name: the name of the operation, and of the array namespace's function if ``impl`` is None.
        impl: ``impl(xp, x, ..., **params)``.
        transpose: ``transpose(ct, ..., *, params)`` returns the cotangent of ``x``, in any dtype and in a shape to
            which ``x`` broadcasts; after ``ct`` it may name ``shape`` and ``dtype`` (of ``x``), ``y`` and ``z``.
        batch: how the operation takes a batch axis: "elementwise"; "leading", if it maps over all leading axes; "axis",
            if it works along its parameter ``axis``; "loop", one example after another; or a batching rule.
        numpy: a faster kernel for an ndarray.
        view: whether NumPy's result shares the memory of ``x`` if possible, so that a write to one is seen
            in the other.
        foreign: ``foreign(x, ...)`` for an ``x`` that is not a value, such as a sparse matrix; it returns None for
            an ``x`` that it cannot take.
        conforms: whether the cotangent always has the shape and dtype of ``x``.

    Raises:
        InputError: ``name`` is no text, ``impl`` takes too few arguments, or the rule names an unknown value.

    Example:
        >>> import numpy as np
        >>> from funcgrad import grad
        >>> from funcgrad.extend import linear
        >>> flip = linear("flip", lambda xp, x: xp.flip(x, -1), transpose=lambda ct: flip(ct), batch="leading")
        >>> grad(lambda x: flip(x)[0])(np.ones(3))
        array([0., 0., 1.])
    """
    impl = checked_routine(name, impl, 1)
    names = tuple(check_names(name, positional_names(transpose)[1:], ("shape", "dtype", "y", "z")))
    expression = f"transpose({', '.join(('ct', *names))}, **params)"
    if not conforms:
        expression = f"conform({expression}, shape, dtype)"
        names = (*names, *[n for n in ("shape", "dtype") if n not in names])
    vjp = vjp_of_each(name, [expression], ["params", *names], _SHARED, transpose=transpose)

    def reverse(args: Any, traced: Any, params: Any) -> Any:
        _refuse_others(name, args, traced)
        ans = call_operation(call, args, params)
        if traced[0]:
            return ans, None, ()
        known = {"shape": backend.shape_of(args[0]), "dtype": backend.dtype_of(args[0])}
        known.update(zip(("y", "z"), args[1:], strict=False))
        saved = [params, *[known[n] for n in names]]
        if len(traced) == 1:
            return ans, vjp, saved
        first = lambda ct, *known: [vjp(ct, (0, None, None, *known))[0][1]]  # integers get no cotangent
        return ans, vjp_for_all(name, first, len(traced)), saved

    def forward(args: Any, tangents: Any, params: Any) -> Any:
        _refuse_others(name, args, [i for i, t in enumerate(tangents) if t is not None])
        ans = call_operation(call, args, params)
        return ans, None if tangents[0] is None else call(tangents[0], *args[1:], **params)

    primitive = Primitive(name, impl, reverse, forward, batch_rule(batch, lambda: call))
    primitive.foreign = foreign
    kernel = numpy or primitive.kernel(np)
    if numpy is not None:
        primitive.prefer(numpy, 1)
    saved = "".join([", " + _SAVED[n] for n in ("params", *names) if n in _SAVED])
    record = RECORD.format(vjp="vjp", parents="parent", saved=saved)
    text = _LINEAR.format(record=record, **(_VIEW if view else _NEW))
    call: Operation = make_function(name, text, _SHARED, primitive=primitive, kernel=kernel, vjp=vjp)
    return finish_operation(primitive, call)


#: Expressions for saved values in the templates.
_SAVED = {
    "params": "params",
    "shape": "v.shape if type(v) is ndarray or type(v) is Tracer else shape_of(v)",
    "dtype": "dtype_of(v)",
}

#: Template of linear operations: ``{result}`` is the expression for the result, ``{bind}`` the general path.
_LINEAR = """
def operation(x, *rest, **params):
    if type(x) is ndarray and not rest:
        return kernel(x, **params)
    if type(x) is Tracer and not rest and (counter := x._trace.fast_counter) is not None:
        v, trace, parent = x._val, x._trace, x.node
        made = Tracer()
        made._val = kernel(v, **params) if type(v) is ndarray else operation(v, **params)
        made._trace, made.aval, made.alias = trace, None, None
        made.node = {record}
        return {result}
    if type(x) is Tracer and not rest and type(x._trace) is ForwardTrace and x._trace.fast:
        v, t, trace = x._val, x.tangent, x._trace
        made = tracer_of(operation(v, **params), trace, operation(t, **params))
        return {result}
    {bind}
"""
#: The texts for results that share no memory with ``x``.
_NEW = {
    "result": "made",
    "bind": """if type(x) is Tracer and not rest and x._trace.fast:
        made = x._trace.process(primitive, (x,), params)
        return made if type(made) is Tracer else writable_result((x,), made)
    return bind_checked(primitive, (x, *rest), params)""",
}
#: The texts for results that may share the memory of ``x``.
_VIEW = {
    "result": "note_if_view(x, made, operation, params, v)",
    "bind": """with write_lock:  # no other thread may write to ``x`` before the result is noted as its view
        made = note_if_view(x, bind_checked(primitive, (x, *rest), params), operation, params)
    return made""",
}

#: Template for operations without a derivative.
_CONSTANT = """
def operation(*args, **params):
    for arg in args:
        if type(arg) not in PLAIN:
            return bind_checked(primitive, args, params)
    return kernel(*args, **params)
"""

_SHARED = {
    **SHARED,
    "__name__": __name__,
    "PLAIN": _PLAIN,
    "dtype_of": backend.dtype_of,
    "note_if_view": note_if_view,
    "shape_of": backend.shape_of,
    "write_lock": write_lock,
}


def _refuse_others(name: str, args: tuple[Any, ...], traced: Sequence[int]) -> None:
    """Refuse derivatives in the arguments that a linear operation treats as constants: they would be lost."""
    if any(i and backend.is_inexact(args[i]) for i in traced):
        raise NotDifferentiableError(
            f"{name}: the operation is declared linear in its first argument and knows no derivative in the others, "
            f"got arguments {tuple(traced)} being differentiated. Define it with multilinear or primitive."
        )


def nondifferentiable(
    name: str,
    impl: Callable[..., Any] | None = None,
    *,
    batch: Batching = "elementwise",
    multiple: bool = False,
    data_dependent: bool = False,
    operator: Callable[..., Any] | None = None,
    arithmetic: bool = False,
) -> Operation:
    """Define an operation whose derivative is zero wherever it exists: its result is a constant.

    Args:
        name: the name of the operation, and of the array namespace's function if ``impl`` is None.
        impl: ``impl(xp, *args, **params)``.
        batch: how the operation takes a batch axis: "elementwise"; "leading", if it maps over all leading axes; "axis",
            if it works along its parameter ``axis``; "loop", one example after another; or a batching rule.
        multiple: whether the result is a tuple of arrays.
        data_dependent: whether shape or dtype of a result depend on the values of the arguments.
        operator: Python's binary operator that computes the same. It is used for an operand that is not a value.
        arithmetic: whether the result on Python numbers alone stays a Python number.

    Example:
        >>> import numpy as np
        >>> from funcgrad import grad
        >>> from funcgrad.extend import nondifferentiable
        >>> sign = nondifferentiable("sign", lambda xp, x: xp.sign(x))
        >>> grad(lambda x: x * sign(x))(-2.0)
        np.float64(-1.0)
    """
    primitive = Primitive(
        name,
        checked_routine(name, impl),
        None,
        None,
        batch_rule(batch, lambda: call),
        multiple=multiple,
        data_dependent=data_dependent,
    )
    primitive.operator = None if operator is None else operator.__name__
    primitive.arithmetic = arithmetic
    if arithmetic and operator is not None:
        primitive.number_primitive = operator_primitive(primitive, operator)
    call: Operation = make_function(name, _CONSTANT, _SHARED, primitive=primitive, kernel=primitive.kernel(np))
    return finish_operation(primitive, call)


def row_sums(x: ndarray, *, axis: tuple[int, ...], keepdims: bool = False) -> Any:
    """Compute NumPy's sum over ``axis``, bit for bit.

    NumPy computes row by row, and starting a short row, such as a point in space, takes longer than computing it. This
    function works column by column, on few long rows, in a half to a tenth of the time.
    """
    if x.size < 512 or x.shape[-1] not in _SUMMED or axis != (x.ndim - 1,) or x.ndim < 2 or x.dtype not in REAL:
        return _add_up(x, axis, keepdims=True) if keepdims else _add_up(x, axis)  # a keyword costs 50 % more time
    total = x[..., 0] + x[..., 1]
    for i in range(2, x.shape[-1]):
        total += x[..., i]
    total += 0.0  # turns -0.0 into 0.0, like NumPy's sums, which begin with 0.0
    return total[..., None] if keepdims else total


def broadcast_array(x: Any, *, to: Shape) -> Any:
    """Broadcast ``x``: to a view if that saves memory, else to a filled array, which is faster for few elements.

    Example:
        >>> broadcast_array(np.arange(2.0)[:, None], to=(2, 3))
        array([[0., 0., 0.],
               [1., 1., 1.]])
    """
    size = prod(to)
    if size > 100_000:
        return np.broadcast_to(x, to)
    if x.ndim > 1 and not x.flags.c_contiguous:
        return np.broadcast_to(x, to).copy("K")  # keep the memory layout
    filled = np.empty(to, x.dtype)
    if size >= MANY_ROWS and to[-1] in SHORT_ROWS and x.ndim:
        for i in range(to[-1]):
            filled[..., i] = x[..., i if x.shape[-1] > 1 else 0]
    else:
        filled[...] = x
    return filled


def _shifted(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(axis + 1 for axis in axes)


reshape: Operation = linear(
    "reshape",
    lambda xp, x, *, to: xp.reshape(x, to),
    numpy=lambda x, *, to: x.reshape(to),
    transpose=lambda ct, shape, *, to: reshape(ct, to=shape),
    conforms=True,
    batch=lambda size, args, batched, params: (reshape(args[0], to=(size, *params["to"])), True),
    view=True,
)

permute: Operation = linear(
    "permute",
    lambda xp, x, *, axes: xp.transpose(x, axes),
    numpy=lambda x, *, axes: x.transpose(axes),
    transpose=lambda ct, *, axes: permute(ct, axes=inverse_permutation(axes)),
    conforms=True,
    batch=lambda size, args, batched, params: (permute(args[0], axes=(0, *_shifted(params["axes"]))), True),
    view=True,
)


def expand_to(ct: Any, shape: Shape, *, axis: tuple[int, ...], keepdims: bool = False) -> Any:
    """Broadcast ``ct``, the result of reducing an array of ``shape`` over ``axis``, back to that shape."""
    if issubclass(type(ct), np.generic):
        return broadcast_array(ct, to=shape)
    return broadcast_to(align(ct, shape, axis), to=shape)


reduce_sum: Operation = linear(
    "reduce_sum",
    lambda xp, x, *, axis, keepdims=False: xp.sum(x, axis, keepdims=keepdims),
    numpy=row_sums,
    transpose=expand_to,
    conforms=True,
    batch="axis",
)

#: Sum over axes that were broadcast, by the fastest method: the result may differ from NumPy's sum in the last bits.
sum_over: Operation = linear(
    "sum_over",
    lambda xp, x, *, axis: xp.sum(x, axis),
    numpy=lambda x, *, axis: fast_sum(x, axis),
    transpose=expand_to,
    conforms=True,
    batch="axis",
)

broadcast_to: Operation = linear(
    "broadcast_to",
    # also for numbers: a number and a tracer of a number give arrays with the same memory layout
    lambda xp, x, *, to: broadcast_array(np.asarray(x), to=to) if xp is np else xp.broadcast_to(x, to),
    numpy=broadcast_array,
    transpose=lambda ct, shape, *, to: unbroadcast(ct, shape),
    conforms=True,
    batch=lambda size, args, batched, params: (_broadcast_batch(size, args[0], params["to"]), True),
)

#: Equivalent of ``numpy.broadcast_to``: it always returns a view, also of numbers and of few elements.
broadcast_view: Operation = linear(
    "broadcast_view",
    lambda xp, x, *, to: xp.broadcast_to(x, to),
    transpose=lambda ct, shape, *, to: unbroadcast(ct, shape),
    conforms=True,
    batch=lambda size, args, batched, params: (_broadcast_batch(size, args[0], params["to"]), True),
)

astype: Operation = linear(
    "astype",
    lambda xp, x, *, to: (x if xp is np and isinstance(x, np.generic) else xp.asarray(x)).astype(
        backend.native_dtype(xp, to)
    ),
    # tracers have native byte order, like the results of NumPy's functions
    numpy=lambda x, *, to: x.astype(to if to.isnative else backend.native_dtype(np, to)),
    transpose=lambda ct, dtype, *, to: conform(ct, None, dtype),
    conforms=True,
    batch="leading",
)

conj: Operation = linear(
    "conj",
    lambda xp, x: xp.conjugate(x),
    transpose=lambda ct: conj(ct),
    conforms=True,
    batch="leading",
    foreign=lambda x: x.conjugate() if hasattr(x, "tocsr") else None,  # a sparse matrix
)

real: Operation = linear(
    "real",
    lambda xp, x: xp.real(x),
    transpose=lambda ct, dtype: conform(ct, None, dtype),
    conforms=True,
    batch="leading",
    view=True,
)

imag: Operation = linear(
    "imag",
    # for a real array NumPy returns read-only zeros
    lambda xp, x: xp.imag(x).copy() if type(x) is ndarray and x.dtype.kind != "c" else xp.imag(x),
    # imag(x) = real(-1j * x); of a real x it is zero
    transpose=lambda ct, dtype: conform(ct * -1j if dtype.kind == "c" else ct * 0, None, dtype),
    conforms=True,
    batch="leading",
    view=True,
)


def _broadcast_batch(size: int, x: Any, to: Shape) -> Any:
    shape = backend.shape_of(x)
    aligned = reshape(x, to=(size, *(1,) * (len(to) + 1 - len(shape)), *shape[1:]))
    return broadcast_to(aligned, to=(size, *to))


def align(x: Any, shape: Shape, axis: tuple[int, ...]) -> Any:
    """Reshape ``x``, the result of a reduction over ``axis`` of an array of ``shape``, to broadcast to ``shape``."""
    if len(axis) == len(shape) or len(backend.shape_of(x)) == len(shape):  # it is a number, or the axes were kept
        return x
    kept = tuple([1 if i in axis else n for i, n in enumerate(shape)])
    return x.reshape(kept) if type(x) is ndarray else reshape(x, to=kept)


def unbroadcast(ct: Any, shape: Shape) -> Any:
    """Undo broadcasting from ``shape``: sum ``ct`` over the axes that were added or stretched."""
    have = ct.shape if type(ct) is ndarray else backend.shape_of(ct)
    if have == shape:
        return ct
    if type(ct) is ndarray:
        if have[1:] == shape and 1 < have[0] <= 64 and len(have) <= 2 and ct.dtype is DOUBLE and ct.size < 1024:
            return _ONES[: have[0]].dot(ct)  # the most frequent case, computed as in ``fast_sum``
        if not shape and 1 < ct.size < 1024 and ct.itemsize > 2:
            return np.add.reduce(ct, None)
        if ct.size == prod(shape):  # all added or stretched axes have length 1
            return ct.reshape(shape)
        total = fast_sum(ct, _broadcast_axes(have, shape))
        return total if total.shape == shape else total.reshape(shape)
    if type(ct) is Tracer and prod(have) == prod(shape) and stands_for_array(ct):
        return reshape(ct, to=shape)
    axis = _broadcast_axes(have, shape)
    dtype = backend.dtype_of(ct)
    if dtype.itemsize > 2:
        return reshape(sum_over(ct, axis=axis), to=shape)
    return astype(reshape(sum_over(astype(ct, to=SINGLE), axis=axis), to=shape), to=dtype)


@lru_cache(maxsize=1024)
def _broadcast_axes(have: Shape, shape: Shape) -> tuple[int, ...]:
    """Return the axes of ``have`` that broadcasting from ``shape`` added or stretched."""
    extra = len(have) - len(shape)
    return (*range(extra), *[i + extra for i, n in enumerate(shape) if n == 1 and have[i + extra] != 1])


def fast_sum(x: np.ndarray, axis: tuple[int, ...]) -> Any:
    """Sum ``x`` over ``axis``, by a product with ones where NumPy's sum would work on many short rows."""
    if x.dtype.itemsize == 2:  # float16 rounds 2048 + 1 to 2048, bfloat16 rounds 256 + 1 to 256
        return np.add.reduce(x, axis, SINGLE).astype(x.dtype)
    if x.size < 1024:
        if x.dtype is DOUBLE and x.ndim <= 2 and axis == (0,) and len(x) <= 64:
            return _ONES[: len(x)].dot(x)  # takes half the time
        return np.add.reduce(x, axis)
    joined = axis[-1] - axis[0] == len(axis) - 1
    if not joined or x.dtype not in REAL or not x.flags.c_contiguous:
        return np.add.reduce(x, axis)
    before, along, after = x.shape[: axis[0]], prod(x.shape[axis[0] : axis[-1] + 1]), x.shape[axis[-1] + 1 :]
    if not after:
        if not before or along >= 512:  # NumPy's sums of long rows are fast, and their errors are small
            return np.add.reduce(x, axis)
        return (x.reshape(-1, along) @ np.ones(along, x.dtype)).reshape(before)
    if prod(before) == 1:
        return _rows_summed(x.reshape(along, -1)).reshape(before + after)
    if along < 32:
        return np.add.reduce(x, axis)
    return (np.ones(along, x.dtype) @ x.reshape(prod(before), along, -1)).reshape(before + after)


def _rows_summed(x: np.ndarray) -> Any:
    """Sum the rows of a matrix in parts, so that rounding errors and the vectors of ones stay small."""
    parts, rest = divmod(len(x), 4096)
    total = np.ones(rest, x.dtype) @ x[len(x) - rest :]
    for part in np.ones(4096, x.dtype) @ x[: parts * 4096].reshape(parts, 4096, -1) if parts else ():
        total += part
    return total


def conform(ct: Any, shape: Shape | None, dtype: Any) -> Any:
    """Convert ``ct`` to the shape and dtype of its primal. No other function enforces that.

    Args:
        ct: a cotangent of a broadcast or promoted version of the primal; None represents zero.
        shape: the primal's shape; None if the shape of ``ct`` is known to be right.
        dtype: the primal's dtype. The cotangent of a real primal is real.
    """
    if ct is None:
        return ct
    if (type(ct) is ndarray or type(ct) is float64) and ct.dtype is dtype:
        return ct if shape is None or ct.shape == shape else unbroadcast(ct, shape)
    if is_sparse(ct):  # always has the right shape
        if dtype is DOUBLE:
            return ct
        ct = ct.materialize()
    have = backend.dtype_of(ct)
    if have != dtype:
        if have.kind == "c" and dtype.kind != "c":
            ct = real(ct)
        if backend.dtype_of(ct) != dtype:
            ct = astype(ct, to=dtype)
    return ct if shape is None else unbroadcast(ct, shape)


_SHARED["conform"] = conform


def promote(v: Any, dtype: np.dtype[Any]) -> Any:
    """Promote ``v`` as in an operation whose result has this dtype.

    Without promotion, NumPy takes the logarithm of an int8 in half precision, and negated unsigned integers wrap
    around. A Python number is not converted if NumPy's functions convert it to a double anyway. A traced one is
    converted to a narrower dtype, because functions of it give doubles.
    """
    kind = type(v)
    if kind is float or kind is int or kind is bool:
        return v if dtype is DOUBLE and kind is not bool else _real(dtype).type(v)
    have: np.dtype[Any] = backend.dtype_of(v)
    if have is dtype or have.kind == "V":
        return v
    to = dtype if have.kind == "c" else _real(dtype)
    if have.kind == to.kind and have.itemsize > to.itemsize:
        return astype(v, to=to) if type(plain_value(v)) in _PYTHON else v
    return astype(v, to=to) if have.kind in "biu" or (have.kind == to.kind == "f" and have != to) else v


_PYTHON = frozenset((float, complex))


@lru_cache(maxsize=64)
def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the real part of a number of ``dtype``."""
    found: np.dtype[Any] = np.empty(0, dtype).real.dtype
    return found


def product(ct: Any, factor: Any) -> Any:
    """Compute ``ct * factor``, where ``factor`` is a shared value."""
    if type(ct) is ndarray or (type(ct) is float64 and (type(factor) is float64 or type(factor) is float)):
        return factor * ct
    return scaled(ct, factor)


def product_in_place(ct: Any, factor: Any) -> Any:
    """Compute ``ct * factor`` in the memory of a large unshared ``ct``. VJP rules must call this function directly."""
    if type(ct) is ndarray:
        if ct.size >= LARGE and is_unshared_argument(ct) and _can_take(ct, factor):
            return np.multiply(factor, ct, out=ct)
        return factor * ct
    return product(ct, factor)


def _can_take(ct: ndarray, factor: Any) -> bool:
    """Whether the product of ``ct`` and ``factor`` has the shape and dtype of ``ct``."""
    if type(factor) is ndarray:
        return factor.dtype is ct.dtype and (factor.shape == ct.shape or np.broadcast(factor, ct).shape == ct.shape)
    return type(factor) is float and ct.dtype.kind == "f"


def scaled(ct: Any, partial: Any) -> Any:
    """Compute ``ct * partial``. A tracer is the left operand, because NumPy's operators dispatch to it slowly.

    A large unshared ``partial`` is overwritten, because new memory costs more than the product.
    """
    if type(ct) is ndarray:
        if (
            type(partial) is ndarray
            and partial.size >= LARGE
            and is_temporary(partial)
            and partial.base is None
            and partial.dtype is ct.dtype
            and (partial.shape == ct.shape or np.broadcast(partial, ct).shape == partial.shape)
        ):
            return np.multiply(partial, ct, out=partial)
        return partial * ct
    if type(ct) is Tracer and type(ct._val) is ndarray and (ct._trace.is_bit_exact or not ct._trace.level):
        # or a buffer: the order of factors determines the rounding of complex products and the memory layout
        return partial * ct
    # float64 * tracer would be slow, and Python's complex * float64 a Python number
    return partial * ct if type(ct) is float64 and type(partial) is not complex else ct * partial


def broadcast_tangent(tangent: Any, ans: Any) -> Any:
    """Convert ``tangent`` to the shape and dtype of ``ans``, the result to which it belongs."""
    if type(tangent) is type(ans) is ndarray and tangent.dtype is ans.dtype and tangent.shape == ans.shape:
        return tangent
    shape, dtype = backend.shape_and_dtype_of(ans)
    if type(tangent) is complex and type(ans) is not complex:
        tangent = np.complex128(tangent)  # a Python complex number times a float64 stays Python's
    tangent = conform(tangent, None, dtype)
    return tangent if backend.shape_of(tangent) == shape else broadcast_to(tangent, to=shape)
