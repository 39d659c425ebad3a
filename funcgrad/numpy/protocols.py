"""NumPy's own functions on tracers: ``numpy.sin(x)`` and ``numpy.concatenate([x, y])`` are funcgrad's.

NumPy asks its arguments three questions. ``__array_ufunc__`` comes from ufuncs (an operator with an ndarray
on the left is one), ``__array_function__`` from most other functions, ``__array_namespace__`` from code
written for any array library. What has no counterpart here is refused by name: no derivative gets lost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError, NotDifferentiableError
from funcgrad.numpy import choice, products, reductions, scans
from funcgrad.numpy.concretization import concrete, refuse, user_line
from funcgrad.numpy.creation import as_value, astype
from funcgrad.numpy.reducing import refuse_out
from funcgrad.numpy.shaping import reshape
from funcgrad.numpy.ufuncs import UFUNCS

__all__ = ["PROTOCOLS"]

#: The ufuncs that work on vectors and matrices; some came with later versions of NumPy than the oldest supported.
_PRODUCTS = ("matmul", "vecdot", "matvec", "vecmat")
_OWN: dict[np.ufunc, Callable[..., Any]] = {
    **UFUNCS,
    **{getattr(np, name): getattr(products, name) for name in _PRODUCTS if hasattr(np, name)},
}
_REDUCE: dict[np.ufunc, Callable[..., Any]] = {
    np.add: reductions.sum,
    np.multiply: reductions.prod,
    np.maximum: reductions.max,
    np.minimum: reductions.min,
    np.logical_and: reductions.all,
    np.logical_or: reductions.any,
}
_ACCUMULATE: dict[np.ufunc, Callable[..., Any]] = {np.add: scans.cumsum, np.multiply: scans.cumprod}


def array_ufunc(x: Tracer, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """What a NumPy ufunc does when one of its arguments is a tracer.

    Raises:
        NotDifferentiableError: funcgrad has no such ufunc, or no such method of it.
        InputError: the result was to be written into an array (``out=``, ``a += x``), or left out in places.
    """
    if method == "__call__" and not kwargs:
        own = _OWN.get(ufunc)
        if own is not None:
            return own(*inputs)
    return _other_ufunc(ufunc, method, inputs, kwargs)


def _other_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    home = "numpy." if getattr(np, ufunc.__name__, None) is ufunc else ""
    name = f"{home}{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    if any(o is not None for o in kwargs.pop("out", ())) or method == "at":
        raise InputError(
            f"{name}: a traced value cannot be written into an array, got out=... or an in-place operator"
            f"{user_line()}. Use the result instead: write a = a + x for a += x."
        )
    own = _OWN.get(ufunc)
    if ufunc.__name__ == "clip":  # the one that NumPy does not show: ndarray.clip calls it
        own = choice.clip
    if method == "__call__" and own is not None:
        return _call(name, ufunc, own, inputs, kwargs)
    if method == "outer" and own is not None:
        a, b = (as_value(v) for v in inputs)
        shape = (*backend.shape_of(a), *(1,) * len(backend.shape_of(b)))
        return _call(name, ufunc, own, (reshape(a, shape), b), kwargs)
    table = {"reduce": _REDUCE, "accumulate": _ACCUMULATE}.get(method, {})
    if ufunc in table:
        return table[ufunc](*inputs, **{"axis": 0, **kwargs})
    _refuse_unknown(name, inputs)


def _call(name: str, ufunc: np.ufunc, own: Callable[..., Any], inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A ufunc with keyword arguments; ``order`` and ``subok`` concern memory and subclasses, not values."""
    if kwargs.pop("where", True) is not True:
        raise InputError(
            f"{name}: where= leaves elements of the result undefined, got where=...{user_line()}. Compute all "
            "and choose afterwards: where(condition, result, other)."
        )
    if "signature" in kwargs or "sig" in kwargs:
        raise InputError(f"{name}: a signature is not supported on traced values{user_line()}. Use dtype=.")
    dtype, casting = kwargs.pop("dtype", None), kwargs.pop("casting", None)
    kwargs.pop("order", None)
    kwargs.pop("subok", None)
    if dtype is not None or casting is not None:
        given = [type(v) if type(v) in (int, float, complex) else backend.dtype_of(as_value(v)) for v in inputs]
        wanted = (*[None] * ufunc.nin, *[None if dtype is None else np.dtype(dtype)] * ufunc.nout)
        # NumPy computes in the dtypes of its loop, so arguments are converted, not the result.
        loop = ufunc.resolve_dtypes((*given, *[None] * ufunc.nout), signature=wanted, casting=casting or "same_kind")
        if dtype is not None:
            inputs = tuple([astype(v, to) for v, to in zip(inputs, loop, strict=False)])
    return own(*inputs, **kwargs)


def _refuse_unknown(name: str, args: Any) -> NoReturn:
    traced = next((describe(a) for a in _tracers(args)), "traced values")
    raise NotDifferentiableError(
        f"{name}: funcgrad has no rule for it, got {traced}{user_line()}. Write it with functions of "
        "funcgrad.numpy, give it a rule with custom_vjp or custom_jvp, or, where a constant is meant, pass "
        "stop_gradient(x)."
    )


def _tracers(args: Any) -> list[Tracer]:
    """The tracers in nested arguments."""
    if isinstance(args, Tracer):
        return [args]
    if isinstance(args, dict):
        args = tuple(args.values())
    return [t for a in args for t in _tracers(a)] if isinstance(args, (tuple, list)) else []


def array_function(x: Tracer, fun: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """What another function of NumPy does when a tracer is among its arguments: funcgrad's of the same name.

    Raises:
        NotDifferentiableError: funcgrad has no function of this name.
        ConcretizationError: the function writes to a file or into an array.
    """
    own = _FUNCTIONS.get(fun)
    if own is None:
        own = _FUNCTIONS[fun] = _counterpart(fun)
    if "out" in kwargs:  # a step that most functions of funcgrad.numpy need not take
        refuse_out(f"{fun.__module__}.{fun.__name__}", kwargs.pop("out"))
    return own(*args, **kwargs)


def _counterpart(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``funcgrad.numpy``'s function for one of NumPy's, or what stands in for it."""
    home, name = fun.__module__, fun.__name__
    full = f"{home}.{name}"
    if home in ("numpy", "numpy.linalg", "numpy.fft"):
        namespace = import_module(f"funcgrad.{home}")
        if name in namespace.__all__:
            own: Callable[..., Any] = getattr(namespace, name)
            return own
    if fun in _ABOUT_SHAPE_AND_DTYPE:
        return lambda *args, **kwargs: fun(*_stand_in(args), **_stand_in(kwargs))
    if fun in _WRITING:
        return lambda *args, **kwargs: refuse(_tracers((args, kwargs))[0], full)
    return lambda *args, **kwargs: _refuse_unknown(full, (args, kwargs))


def _stand_in(args: Any) -> Any:
    """Nested arguments with zeros of the same shape and dtype for tracers; they take no memory."""
    if isinstance(args, Tracer):
        return np.broadcast_to(np.zeros((), args.dtype), args.shape)
    if isinstance(args, dict):
        return {key: _stand_in(a) for key, a in args.items()}
    return type(args)([_stand_in(a) for a in args]) if type(args) in (tuple, list) else args


def _array2string(a: Tracer, *args: Any, **kwargs: Any) -> str:
    return np.array2string(np.asarray(concrete(a, "numpy.array2string")), *args, **kwargs)


_ABOUT_SHAPE_AND_DTYPE: frozenset[Callable[..., Any]] = frozenset(
    (
        np.can_cast,
        np.common_type,
        np.diag_indices_from,
        np.einsum_path,
        np.min_scalar_type,
        np.tril_indices_from,
        np.triu_indices_from,
    )
)
_WRITING: frozenset[Callable[..., Any]] = frozenset(
    (
        np.copyto,
        np.fill_diagonal,
        np.place,
        np.put,
        np.put_along_axis,
        np.putmask,
        np.save,
        np.savetxt,
        np.savez,
        np.savez_compressed,
    )
)
_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.array2string: _array2string,
    np.array_repr: lambda arr, *args, **kwargs: repr(arr),
    np.array_str: lambda a, *args, **kwargs: str(a),
}


def array_namespace(x: Tracer, *, api_version: str | None = None) -> Any:
    """The module whose functions work on tracers, for code written for any array library."""
    return sys.modules["funcgrad.numpy"]


#: What ``methods.install`` puts on tracers.
PROTOCOLS: dict[str, Any] = {
    "__array_ufunc__": array_ufunc,
    "__array_function__": array_function,
    "__array_namespace__": array_namespace,
    "__array_priority__": 1000.0,
}
