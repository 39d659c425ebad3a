"""Functions of ``numpy.ma`` for traced values, see ``funcgrad.numpy.masked``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.numpy.masked import (
    MASKED,
    Masked,
    as_masked,
    data_of,
    elementwise,
    from_numpy,
    is_constant,
    mask_array,
    mask_of,
    part_or_reduction,
    rearranged,
    refuse_hard_mask,
    to_mask,
    to_numpy,
    union,
    writing,
)


def array(
    data: Any,
    dtype: Any = None,
    copy: bool = False,
    order: Any = None,
    mask: Any = np.ma.nomask,
    fill_value: Any = None,
    keep_mask: bool = True,
    **options: Any,
) -> Any:
    """Return ``numpy.ma.array``."""
    if options.pop("hard_mask", None):
        refuse_hard_mask()
    given = mask_of(data)
    kind = None if dtype is None else np.dtype(dtype)
    value = fnp.array(data_of(data), kind) if copy else fnp.asarray(data_of(data), kind)
    value = fnp.reshape(value, (1,) * (options.get("ndmin", 0) - value.ndim) + value.shape) if options else value
    is_shared = _is_mask(mask, value.shape) and not copy
    own = None if mask is np.ma.nomask else mask if is_shared else to_mask(mask, value.shape)
    if given is not None:
        given = fnp.reshape(given, value.shape)
    if own is None or given is not None:
        own = given if own is None else union(given, own) if keep_mask else own
    fill = data._fill if isinstance(data, Masked) and fill_value is None else fill_value
    return Masked(value, own, fill, mask if own is mask and type(mask) is np.ndarray else None)


def _is_mask(mask: Any, shape: tuple[int, ...]) -> bool:
    """Whether ``mask`` is a mask of this shape: NumPy shares its memory."""
    return isinstance(mask, (np.ndarray, Tracer)) and mask.dtype == bool and mask.shape == shape


def masked_array(data: Any = None, mask: Any = np.ma.nomask, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Make an array as ``numpy.ma.MaskedArray`` does, which takes the mask before the dtype."""
    if args:
        kwargs["copy"] = args[0]
    return array(data, dtype, mask=mask, **kwargs)


def masked_where(condition: Any, a: Any, copy: bool = True) -> Any:
    """Return ``a`` with the elements masked where the condition is true."""
    a = as_masked(a)
    made = a.copy() if copy else a
    return Masked(made._val, union(made._mask, to_mask(condition, a.shape)), made._fill)


def _masked_by(test: Callable[..., Any]) -> Callable[..., Any]:
    def made(x: Any, *values: Any, copy: bool = True) -> Any:
        return masked_where(test(fnp.asarray(data_of(x)), *values), x, copy)

    return made


def _masked_equal(x: Any, value: Any, copy: bool = True) -> Any:
    found = masked_where(fnp.equal(data_of(x), value), x, copy)
    found.fill_value = value
    return found


def _masked_values(
    x: Any, value: Any, rtol: float = 1e-5, atol: float = 1e-8, copy: bool = True, shrink: bool = True
) -> Any:
    close = fnp.isclose(data_of(x), value, rtol=rtol, atol=atol)
    found = masked_where(close, x, copy)
    found.fill_value = value
    return found


def _fix_invalid(a: Any, mask: Any = np.ma.nomask, copy: bool = True, fill_value: Any = None) -> Any:
    a = array(a, copy=copy, mask=mask)
    invalid = ~fnp.isfinite(a._val)
    fill = a.fill_value if fill_value is None else fill_value
    return Masked(fnp.where(invalid, fill, a._val), union(a._mask, invalid), a._fill)


def _filled(a: Any, fill_value: Any = None) -> Any:
    return a.filled(fill_value) if isinstance(a, Masked) else fnp.asarray(a)


@writing
def _median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    a = as_masked(a)
    if a._mask is None:
        return a._reduce(fnp.median, 0, axis, keepdims)
    found = fnp.nanmedian(fnp.where(a._mask, np.nan, a._val), axis=axis, keepdims=keepdims)
    return part_or_reduction(found, a._all_masked(axis, keepdims))


def _average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    a = as_masked(a)
    if weights is None:
        found = a.mean(axis, keepdims=keepdims)
        total = fnp.astype(fnp.asarray(a.count(axis, keepdims is True)), found.dtype)[()]
    else:
        w = as_masked(weights)
        if w.shape != a.shape and axis is not None:
            others = tuple(np.delete(a.shape, axis))
            w = Masked(fnp.moveaxis(fnp.broadcast_to(w._val, others + w.shape), -1, axis))
        w = Masked(fnp.broadcast_to(w._val, a.shape), union(a._mask, w._mask))
        total = w.sum(axis, keepdims=keepdims)
        found = (a * w).sum(axis, keepdims=keepdims) / total
    return (found, total) if returned else found


def _where(condition: Any, *choices: Any) -> Any:
    if not choices:
        return fnp.nonzero(as_masked(condition).filled(0))
    x, y = [Masked(np.float64(0), np.bool_(True)) if v is MASKED else as_masked(v) for v in choices]
    test = fnp.asarray(data_of(condition))
    value = fnp.where(test, x._val, y._val)
    mask = None
    if any(mask_of(v) is not None for v in (condition, x, y)):
        mask = union(fnp.where(test, mask_array(x), mask_array(y)), mask_of(condition))
        mask = fnp.broadcast_to(mask, value.shape)
    return Masked(value, mask)


def _joining(name: str) -> Callable[..., Any]:
    join = getattr(fnp, name)

    def made(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        parts = list(map(as_masked, arrays))
        mask = None
        if name != "concatenate" or any(part._mask is not None for part in parts):  # NumPy makes a whole mask
            mask = join([mask_array(part) for part in parts], *args, **kwargs)
        return Masked(join([part._val for part in parts], *args, **kwargs), mask)

    return made


def _append(a: Any, b: Any, axis: Any = None) -> Any:
    parts = [as_masked(x) if axis is not None else as_masked(x).ravel() for x in (a, b)]
    return _joining("concatenate")(parts, 0 if axis is None else axis)


def _diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    a = as_masked(a)
    for _ in range(n):
        ahead, behind = [(slice(None),) * (axis % a.ndim) + (part,) for part in (slice(1, None), slice(None, -1))]
        a = a[ahead] - a[behind]
    return a


def _ediff1d(arr: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    ends = [[] if end is None else [_whole(end)] for end in (to_begin, to_end)]
    return _joining("hstack")([*ends[0], _diff(as_masked(arr).ravel()), *ends[1]])


def _whole(x: Any) -> Any:
    """Return ``x``, which may be ``numpy.ma.masked``, as a vector."""
    return Masked(fnp.zeros(1), np.array([True])) if x is MASKED else as_masked(x).ravel()


def _sort(a: Any, axis: Any = -1, *args: Any, **kwargs: Any) -> Any:
    found = as_masked(a).copy() if axis is not None else as_masked(a).flatten()
    found.sort(-1 if axis is None else axis, *args, **kwargs)
    return found


def _dot(a: Any, b: Any, strict: bool = False, out: Any = None) -> Any:
    return as_masked(a).dot(b, out, strict)


def _outer(a: Any, b: Any) -> Any:
    return elementwise(
        "multiply", *[Masked(x._val, x._mask) for x in (as_masked(a).ravel()[:, None], as_masked(b).ravel())]
    )


def _put(a: Any, indices: Any, values: Any, mode: Any = "raise") -> None:
    if isinstance(a, Masked):
        a.put(indices, values, mode)
    else:
        fnp.put(a, indices, data_of(values), mode)


def _putmask(a: Any, mask: Any, values: Any) -> None:
    values = as_masked(values)
    a[mask] = values[mask] if values.shape == a.shape else values


def _set_fill_value(a: Any, fill_value: Any) -> None:
    if isinstance(a, Masked):
        a.fill_value = fill_value


def _maker(name: str) -> Callable[..., Any]:
    make = getattr(fnp, name)

    def made(*args: Any, fill_value: Any = None, hardmask: bool = False, **kwargs: Any) -> Any:
        if hardmask:
            refuse_hard_mask()
        like = args[0] if name.endswith("_like") else None
        fill_value = like._fill if isinstance(like, Masked) else fill_value
        return Masked(make(*map(data_of, args), **kwargs), union(mask_of(like)), fill_value)

    return made


def _masked_all(shape: Any, dtype: Any = float) -> Any:
    value = fnp.zeros(shape, dtype)
    return Masked(value, fnp.ones(value.shape, bool))


def _of_method(name: str) -> Callable[..., Any]:
    def made(a: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(as_masked(a), name)(*args, **kwargs)

    return made


class Operation:
    """Elementwise operation of ``numpy.ma`` with its methods.

    Args:
        name: the name of NumPy's function.
        neutral: the number that stands for masked elements in reductions; None if there are none of these.
    """

    def __init__(self, name: str, neutral: Any = None) -> None:
        self.__name__, self._neutral = name, neutral

    def __call__(self, *args: Any) -> Any:
        """Return the results of the elements that no argument masks."""
        return elementwise(self.__name__, *args)

    def reduce(self, target: Any, axis: Any = np._NoValue, dtype: Any = None) -> Any:
        """Return the reduction of the elements that are not masked."""
        target = as_masked(target)
        if self._neutral is None:
            axis = (0 if target.ndim == 1 else None) if axis is np._NoValue else axis
            return getattr(target, self.__name__.removesuffix("imum"))(axis)
        axis = 0 if axis is np._NoValue else axis
        return target._reduce(getattr(fnp, self.__name__).reduce, self._neutral, axis, False, dtype=dtype)

    def accumulate(self, target: Any, axis: int = 0) -> Any:
        """Return all intermediate results of ``reduce``, without a mask."""
        return Masked(getattr(fnp, self.__name__).accumulate(_filled(target, self._neutral), axis))

    def outer(self, a: Any, b: Any) -> Any:
        """Return the results of all pairs."""
        a, b = as_masked(a), as_masked(b)
        return self(a.reshape(a.shape + (1,) * b.ndim), b)


def _of_function(name: str) -> Callable[..., Any]:
    return lambda a, *args, **kwargs: rearranged(getattr(fnp, name), as_masked(a), *args, **kwargs)


_COMPARED: dict[str, Callable[..., Any]] = {
    **{"greater": fnp.greater, "greater_equal": fnp.greater_equal, "less": fnp.less, "less_equal": fnp.less_equal},
    **{"not_equal": fnp.not_equal, "invalid": lambda x: ~fnp.isfinite(x)},
    "inside": lambda x, v, w: (x >= min(v, w)) & (x <= max(v, w)),
    "outside": lambda x, v, w: (x < min(v, w)) | (x > max(v, w)),
}
_METHODS = (
    *("all", "anom", "any", "argmax", "argmin", "argsort", "clip", "compressed", "copy", "count", "cumprod", "cumsum"),
    "nonzero",
    *("diagonal", "max", "mean", "min", "prod", "ptp", "ravel", "repeat", "reshape", "round", "squeeze", "std", "sum"),
    *("swapaxes", "take", "trace", "transpose", "var"),
)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _of_method(name) for name in _METHODS},
    **{f"masked_{name}": _masked_by(test) for name, test in _COMPARED.items()},
    **{name: _joining(name) for name in ("column_stack", "concatenate", "dstack", "hstack", "stack", "vstack")},
    **{name: _maker(name) for name in ("arange", "empty", "empty_like", "ones", "ones_like", "zeros", "zeros_like")},
    **{"anomalies": _of_method("anom"), "product": _of_method("prod"), "round_": _of_method("round")},
    **{"amax": _of_method("max"), "amin": _of_method("min"), "around": _of_method("round")},
    **{"alltrue": Operation("logical_and").reduce, "sometrue": Operation("logical_or").reduce},
    "angle": lambda z, deg=False: Operation("angle")(z) * (180 / np.pi if deg else 1),
    "ediff1d": _ediff1d,
    **{name: _of_function(name) for name in ("diag", "diagflat", "expand_dims", "resize")},
    **{"append": _append, "array": array, "asarray": array, "asanyarray": array, "average": _average, "diff": _diff},
    **{"dot": _dot, "filled": _filled, "fix_invalid": _fix_invalid, "getdata": lambda a, subok=True: data_of(a)},
    **{"getmask": lambda a: np.ma.nomask if mask_of(a) is None else mask_of(a), "getmaskarray": mask_array},
    **{"innerproduct": lambda a, b: fnp.inner(_filled(a, 0), _filled(b, 0)), "masked_all": _masked_all},
    **{"is_masked": lambda x: bool(fnp.any(mask_array(x))), "isMaskedArray": lambda x: isinstance(x, Masked)},
    **{"masked_equal": _masked_equal, "masked_values": _masked_values, "masked_where": masked_where},
    **{"median": _median, "outer": _outer, "power": Operation("power"), "put": _put, "putmask": _putmask},
    **{"set_fill_value": _set_fill_value, "sort": _sort},
    **{"shape": lambda a: fnp.shape(data_of(a)), "ndim": lambda a: fnp.ndim(data_of(a)), "where": _where},
    "size": lambda a, axis=None: fnp.size(data_of(a), axis),
}
for _name, _other in {"inner": "innerproduct", "isMA": "isMaskedArray", "isarray": "isMaskedArray"}.items():
    _FUNCTIONS[_name] = _FUNCTIONS[_other]
_FUNCTIONS["outerproduct"], _FUNCTIONS["row_stack"] = _outer, _FUNCTIONS["vstack"]


def function_of_masked_arrays(name: str, value: Any) -> Any:
    """Return the replacement for a function of ``numpy.ma``; ``value`` itself if there is none."""
    found = _FUNCTIONS.get(name)
    if found is not None:
        return found
    if isinstance(ufunc := getattr(value, "f", None), np.ufunc):
        return Operation(ufunc.__name__, getattr(value, "filly", None))
    return value  # the Python code of others is rebuilt


def for_constants(fun: Callable[..., Any], built: Callable[..., Any]) -> Callable[..., Any]:
    """Return NumPy's ``fun`` for constants; for traced values, ``built``."""

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not all(map(_is_constant, (args, list(kwargs.values())))):
            return built(*args, **kwargs)
        return from_numpy(fun(*map(to_numpy, args), **{key: to_numpy(x) for key, x in kwargs.items()}))

    call.__module__ = __name__  # else it would be rebuilt
    return call


def _is_constant(x: Any) -> bool:
    return all(map(_is_constant, x)) if type(x) in (list, tuple) else is_constant(data_of(x))
