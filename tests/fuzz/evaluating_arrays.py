"""NumPy versions of JAX's operations that have parameters: shapes, products, indices, windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["WITH_PARAMS"]


def _broadcast_in_dim(x: Any, *, shape: Any, broadcast_dimensions: Any, **_: Any) -> Any:
    lengths = [1] * len(shape)
    for at, length in zip(broadcast_dimensions, x.shape, strict=True):
        lengths[at] = length
    return np.broadcast_to(x.reshape(lengths), shape)


def _dot_general(x: Any, y: Any, *, dimension_numbers: Any, preferred_element_type: Any, **_: Any) -> Any:
    (cx, cy), (bx, by) = dimension_numbers
    letters = iter(range(x.ndim + y.ndim))
    names_x: list[Any] = [None] * x.ndim
    names_y: list[Any] = [None] * y.ndim
    for i, j in (*zip(bx, by, strict=True), *zip(cx, cy, strict=True)):
        names_x[i] = names_y[j] = next(letters)
    names_x = [next(letters) if n is None else n for n in names_x]
    names_y = [next(letters) if n is None else n for n in names_y]
    out = [names_x[i] for i in bx]
    out += [n for i, n in enumerate(names_x) if i not in bx and i not in cx]
    out += [n for i, n in enumerate(names_y) if i not in by and i not in cy]
    ans = np.einsum(x, names_x, y, names_y, out)
    return ans if preferred_element_type is None else ans.astype(preferred_element_type)


def _pad(x: Any, value: Any, *, padding_config: Any, **_: Any) -> Any:
    shape = [
        low + high + n + max(n - 1, 0) * inner for n, (low, high, inner) in zip(x.shape, padding_config, strict=True)
    ]
    place, taken = [], []
    for n, length, (low, _high, inner) in zip(x.shape, shape, padding_config, strict=True):
        at = low + np.arange(n) * (inner + 1)
        inside = (at >= 0) & (at < length)
        place.append(at[inside])
        taken.append(np.flatnonzero(inside))
    ans = np.full(shape, value, x.dtype)
    ans[np.ix_(*place)] = x[np.ix_(*taken)]
    return ans


def _slice(x: Any, *, start_indices: Any, limit_indices: Any, strides: Any, **_: Any) -> Any:
    return x[tuple(map(slice, start_indices, limit_indices, strides or [1] * x.ndim))]


def _window(starts: Any, shape: Any, sizes: Any) -> Any:
    found = [min(max(int(s), 0), n - size) for s, n, size in zip(starts, shape, sizes, strict=True)]
    return tuple([slice(s, s + size) for s, size in zip(found, sizes, strict=True)])


def _dynamic_slice(x: Any, *starts: Any, slice_sizes: Any, **_: Any) -> Any:
    return x[_window(starts, x.shape, slice_sizes)]


def _dynamic_update_slice(x: Any, update: Any, *starts: Any, **_: Any) -> Any:
    ans = np.array(x)
    ans[_window(starts, x.shape, update.shape)] = update
    return ans


def _cumulated(ufunc: Any) -> Callable[..., Any]:
    def call(x: Any, *, axis: int, reverse: bool, **_: Any) -> Any:
        if reverse:
            return np.flip(ufunc.accumulate(np.flip(x, axis), axis, dtype=x.dtype), axis)
        return ufunc.accumulate(x, axis, dtype=x.dtype)

    return call


def _reduced(ufunc: Any, start: Any = None) -> Callable[..., Any]:
    def call(x: Any, *, axes: Any, **_: Any) -> Any:
        if not axes:
            return x
        kept = {} if x.dtype == bool else {"dtype": x.dtype}
        return ufunc.reduce(x, tuple(int(a) for a in axes), **kept)

    return call


def _extreme(fun: Any) -> Callable[..., Any]:
    return lambda x, *, axes, index_dtype, **_: fun(x, axes[0]).astype(index_dtype)


def _places(
    shape: Any, indices: Any, sizes: Any, start_map: Any, window: Any, batching: Any, indices_batching: Any, mode: Any
) -> tuple[list[Any], Any]:
    """Return for each axis of an operand the indices that a gather or scatter touches, and which of them exist."""
    batch = indices.shape[:-1]
    starts: list[Any] = [np.zeros(batch, int) for _ in shape]
    for k, axis in enumerate(start_map):
        starts[axis] = indices[..., k].astype(int)
    for axis, along in zip(batching, indices_batching, strict=True):
        lengths = [1] * len(batch)
        lengths[along] = batch[along]
        starts[axis] = np.broadcast_to(np.arange(batch[along]).reshape(lengths), batch)
    good = np.ones(batch, bool)
    drops = "FILL_OR_DROP" in str(mode)
    places = []
    for axis, start in enumerate(starts):
        last = shape[axis] - sizes[axis]
        if drops:
            good &= (start >= 0) & (start <= last)
        start = np.clip(start, 0, max(last, 0)).reshape(batch + (1,) * len(window))
        if axis in window:
            lengths = [1] * len(window)
            lengths[window.index(axis)] = sizes[axis]
            start = start + np.arange(sizes[axis]).reshape(lengths)
        places.append(start)
    return places, good.reshape(batch + (1,) * len(window))


def _gather(
    x: Any, indices: Any, *, dimension_numbers: Any, slice_sizes: Any, mode: Any, fill_value: Any = None, **_: Any
) -> Any:
    d = dimension_numbers
    batching = tuple(getattr(d, "operand_batching_dims", ()))
    gone = (*d.collapsed_slice_dims, *batching)
    window = [i for i in range(x.ndim) if i not in gone]
    along = tuple(getattr(d, "start_indices_batching_dims", ()))
    places, good = _places(x.shape, indices, slice_sizes, d.start_index_map, window, batching, along, mode)
    full = indices.shape[:-1] + tuple([slice_sizes[i] for i in window])
    if x.size:
        ans = np.broadcast_to(x[tuple(places)], full)
        if not good.all():
            fill = (np.nan if x.dtype.kind in "fc" else 0) if fill_value is None else fill_value
            ans = np.where(good, ans, np.asarray(fill, x.dtype))
    else:
        ans = np.zeros(full, x.dtype)
    count = indices.ndim - 1
    order: list[Any] = [None] * len(full)
    for j, at in enumerate(d.offset_dims):
        order[at] = count + j
    rest = iter(range(count))
    return ans.transpose([next(rest) if o is None else o for o in order])


def _scatter(combine: Any) -> Callable[..., Any]:
    def call(x: Any, indices: Any, updates: Any, *, dimension_numbers: Any, mode: Any, **_: Any) -> Any:
        d = dimension_numbers
        batching = tuple(getattr(d, "operand_batching_dims", ()))
        gone = (*d.inserted_window_dims, *batching)
        window = [i for i in range(x.ndim) if i not in gone]
        axes = [i for i in range(updates.ndim) if i not in d.update_window_dims]
        new = updates.transpose([*axes, *d.update_window_dims])
        sizes = [1] * x.ndim
        for i, at in zip(window, d.update_window_dims, strict=True):
            sizes[i] = updates.shape[at]
        along = tuple(getattr(d, "scatter_indices_batching_dims", ()))
        start_map = d.scatter_dims_to_operand_dims
        places, good = _places(x.shape, indices, sizes, start_map, window, batching, along, mode)
        ans = np.array(x)
        if not new.size:
            return ans
        good = np.broadcast_to(good, new.shape).ravel()
        where = tuple([np.broadcast_to(p, new.shape).ravel()[good] for p in places])
        if combine is None:
            for n, value in enumerate(new.ravel()[good]):
                ans[tuple([w[n] for w in where])] = value
        else:
            combine.at(ans, where if where else (), new.ravel()[good] if where else new)
        return ans

    return call


def _fft(x: Any, *, fft_type: Any, fft_lengths: Any, **_: Any) -> Any:
    name = str(getattr(fft_type, "name", fft_type)).lower()
    axes = tuple(range(x.ndim - len(fft_lengths), x.ndim))
    fun = {"fft": np.fft.fftn, "ifft": np.fft.ifftn, "rfft": np.fft.rfftn, "irfft": np.fft.irfftn}[name]
    single = x.dtype in (np.float32, np.complex64)
    ans = fun(x, tuple(int(n) for n in fft_lengths), axes)
    return ans.astype({"f": np.float32, "c": np.complex64}[ans.dtype.kind]) if single else ans


def _convolved(
    x: Any,
    kernel: Any,
    *,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    preferred_element_type: Any,
    **_: Any,
) -> Any:
    d, groups = dimension_numbers, max(feature_group_count, batch_group_count)
    zero = np.zeros((), x.dtype)
    spread = [(*ends, n - 1) for ends, n in zip(padding, lhs_dilation, strict=True)]
    x = _pad(x.transpose(d.lhs_spec), zero, padding_config=[(0, 0, 0), (0, 0, 0), *spread])
    spread = [(0, 0, n - 1) for n in rhs_dilation]
    kernel = _pad(kernel.transpose(d.rhs_spec), zero, padding_config=[(0, 0, 0), (0, 0, 0), *spread])
    n, channels, *size = x.shape
    if batch_group_count > 1:
        x = x.reshape(groups, n // groups, channels, *size)
    else:
        x = np.moveaxis(x.reshape(n, groups, channels // groups, *size), 1, 0)
    kernel = kernel.reshape(groups, kernel.shape[0] // groups, *kernel.shape[1:])
    axes = tuple(range(3, 3 + len(size)))
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel.shape[3:], axes)
    windows = windows[(..., *[slice(None, None, s) for s in window_strides], *[slice(None)] * len(size))]
    letters = "uvw"[: len(size)]
    ans = np.einsum(f"gncxyz{letters},goc{letters}->ngoxyz".replace("xyz", "xyz"[: len(size)]), windows, kernel)
    ans = ans.reshape(ans.shape[0], -1, *ans.shape[3:]).transpose(np.argsort(d.out_spec))
    return ans if preferred_element_type is None else ans.astype(preferred_element_type)


def _triangular_solve(
    a: Any, y: Any, *, left_side: bool, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool, **_: Any
) -> Any:
    a = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        one = np.eye(a.shape[-1], dtype=a.dtype)
        a = a * (1 - one) + one
    a = np.conj(a) if conjugate_a else a
    if transpose_a == left_side:  # x a = y is the transpose of a^T x^T = y^T
        a = np.matrix_transpose(a)
    solved = np.linalg.solve(a, y if left_side else np.matrix_transpose(y))
    return solved if left_side else np.matrix_transpose(solved)


def _summed(x: Any, *, axes: Any, axis_index_groups: Any, **_: Any) -> Any:
    if axis_index_groups is not None:
        raise NotImplementedError("a sum over groups of examples")
    return np.add.reduce(x, axes, dtype=x.dtype)


WITH_PARAMS: dict[str, Callable[..., Any]] = {
    "argmax": _extreme(np.argmax),
    "argmin": _extreme(np.argmin),
    "bitcast_convert_type": lambda x, *, new_dtype, **_: x.view(new_dtype),
    "broadcast_in_dim": _broadcast_in_dim,
    "complex": lambda re, im, **_: re + 1j * im if re.dtype == np.float64 else (re + 1j * im).astype(np.complex64),
    "concatenate": lambda *xs, dimension, **_: np.concatenate(xs, dimension),
    "convert_element_type": lambda x, *, new_dtype, **_: _converted(x, new_dtype),
    "cummax": _cumulated(np.maximum),
    "cummin": _cumulated(np.minimum),
    "cumprod": _cumulated(np.multiply),
    "cumsum": _cumulated(np.add),
    "dot_general": _dot_general,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "cholesky": lambda x, **_: np.linalg.cholesky(x),
    "empty": lambda *_, shape, dtype, **__: np.zeros(shape, dtype),
    "conv_general_dilated": _convolved,
    "empty2": lambda *_, dtype, **__: np.zeros((), dtype),
    "fft": _fft,
    "gather": _gather,
    "integer_pow": lambda x, *, y, **_: np.power(x, y) if y >= 0 or x.dtype.kind in "fc" else 1 / np.power(x, -y),
    "iota": lambda *_, dtype, shape, dimension, **__: np.broadcast_to(
        np.arange(shape[dimension], dtype=dtype).reshape([-1 if i == dimension else 1 for i in range(len(shape))]),
        shape,
    ),
    "pad": _pad,
    "psum": _summed,
    "reduce_and": _reduced(np.bitwise_and),
    "reduce_max": _reduced(np.maximum),
    "reduce_min": _reduced(np.minimum),
    "reduce_or": _reduced(np.bitwise_or),
    "reduce_prod": _reduced(np.multiply),
    "reduce_sum": _reduced(np.add),
    "platform_index": lambda *, platforms: np.int32(
        next(i for i, names in enumerate(platforms) if names is None or "cpu" in names)
    ),
    "reshape": lambda x, *, new_sizes, dimensions=None, **_: (x.transpose(dimensions) if dimensions else x).reshape(
        new_sizes
    ),
    "rev": lambda x, *, dimensions, **_: np.flip(x, tuple(int(d) for d in dimensions)),
    "scatter": _scatter(None),
    "scatter-add": _scatter(np.add),
    "scatter-max": _scatter(np.maximum),
    "scatter-min": _scatter(np.minimum),
    "scatter-mul": _scatter(np.multiply),
    "scatter-sub": _scatter(np.subtract),
    "scatter_add": _scatter(np.add),
    "scatter_max": _scatter(np.maximum),
    "scatter_min": _scatter(np.minimum),
    "scatter_mul": _scatter(np.multiply),
    "scatter_sub": _scatter(np.subtract),
    "slice": _slice,
    "squeeze": lambda x, *, dimensions, **_: np.squeeze(x, tuple(int(d) for d in dimensions)),
    "stack": lambda *xs, axis, **_: np.stack(xs, axis),
    "tile": lambda x, *, reps, **_: np.tile(x, reps),
    "triangular_solve": _triangular_solve,
    "transpose": lambda x, *, permutation, **_: x.transpose([int(p) for p in permutation]),
}


def _converted(x: Any, dtype: Any) -> Any:
    if x.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        x = x.real
    return x.astype(dtype)
