"""Dispatch of NumPy's functions on tracers: ``numpy.sin(x)`` and ``numpy.concatenate([x, y])`` call funcgrad's.

Three protocols exist. Ufuncs call ``__array_ufunc__`` (an operator with an ndarray on the left is a ufunc), most other
functions call ``__array_function__``, and code written for any array library calls ``__array_namespace__``. A function
without a counterpart raises an error with its name, so no derivative gets lost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from funcgrad.core import Tracer, describe
from funcgrad.errors import NoRuleError, NotDifferentiableError
from funcgrad.numpy import choice, reductions, sets
from funcgrad.numpy.plain_values.concretization import constant_array, refuse_conversion, user_line
from funcgrad.numpy.plain_values.guarded import check_question
from funcgrad.numpy.ufunc import is_operator
from funcgrad.numpy.ufuncs import UFUNCS
from funcgrad.numpy.writes.output import are_constant, call_on_buffers


def array_ufunc(x: Tracer, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Compute a NumPy ufunc that has a tracer among its arguments.

    Raises:
        NotDifferentiableError: funcgrad has no such ufunc, and not all of the arguments are constant.
        InputError: the result would be written into an ndarray (``out=``, ``a += x``), or ``where=`` without ``out=``.
    """
    if not kwargs and method == "__call__" and ufunc in _COMPUTE:  # most frequent case, such as an operator
        compute = _COMPUTE[ufunc]
        if x._trace.is_bit_exact:
            return x._trace.compute_function(compute, *inputs)
        other = inputs[-1] if inputs[0] is x else inputs[0]
        return compute(*inputs) if type(other) is np.ndarray else _PROMOTING_COMPUTE[ufunc](*inputs)
    own = UFUNCS.get(ufunc)
    if own is None:
        return _ufunc_without_rule(ufunc, method, inputs, kwargs)
    return (own if method == "__call__" else getattr(own, method))(*inputs, **kwargs)


#: Functions that compute NumPy's ufuncs without options.
_COMPUTE: dict[np.ufunc, Any] = {ufunc: vars(own)["compute"] for ufunc, own in UFUNCS.items()}
#: Functions for calls with numbers, possibly Python's, which an operator computes differently.
_PROMOTING_COMPUTE = {ufunc: UFUNCS[ufunc] if is_operator(compute) else compute for ufunc, compute in _COMPUTE.items()}


def _ufunc_without_rule(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if method == "__call__" and ufunc.__name__ == "clip":  # the ufunc behind ndarray.clip, which NumPy does not export
        return choice.clip(*inputs, **kwargs)
    call = ufunc if method == "__call__" else getattr(ufunc, method)
    if are_constant(inputs, kwargs):
        return call_on_buffers(call, inputs, kwargs)
    own = _scipy_counterpart(ufunc) if method == "__call__" else None
    if own is not None:
        return own(*inputs, **kwargs)
    _refuse_unknown(ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}", inputs)


#: Names of the functions that call ufuncs which SciPy does not export, with the same arguments.
_SCIPY_CALLERS = {"_riemann_zeta": "zeta", "_zeta": "zeta", "_lambertw": "lambertw"}


def _scipy_counterpart(ufunc: np.ufunc) -> Callable[..., Any] | None:
    """Return the counterpart of a ufunc of ``scipy.special``, or None; import the counterpart's module only now."""
    name = ufunc.__name__
    shown = sys.modules.get("scipy.special._ufuncs" if name in _SCIPY_CALLERS else "scipy.special")
    if shown is None or getattr(shown, name, None) is not ufunc:
        return None
    found: Callable[..., Any] | None = _special_function(_SCIPY_CALLERS.get(name, name))
    return found


@cache
def _special_function(name: str) -> Any:
    return getattr(import_module("funcgrad.scipy.special"), name, None)


def _refuse_unknown(name: str, args: Any) -> NoReturn:
    traced = next((describe(a) for a in _tracers(args)), "traced values")
    raise NoRuleError(
        f"{name}: funcgrad has no rule for it, got {traced}{user_line()}. Write it with functions of "
        "funcgrad.numpy, give it a rule with custom_vjp or custom_jvp, or, where a constant is meant, pass "
        "stop_gradient(x)."
    )


def _tracers(args: Any) -> list[Tracer]:
    """Return the tracers in nested arguments."""
    if isinstance(args, Tracer):
        return [args]
    if isinstance(args, dict):
        args = tuple(args.values())
    return [t for a in args for t in _tracers(a)] if isinstance(args, (tuple, list)) else []


def array_function(x: Tracer, fun: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """Call funcgrad's function of the same name for a NumPy function that has a tracer among its arguments.

    Raises:
        NotDifferentiableError: funcgrad has no function of this name.
        ConcretizationError: the function writes to a file or into an array.
    """
    own = _FUNCTIONS.get(fun)
    if own is None:
        own = _FUNCTIONS[fun] = _counterpart(fun)
    return own(*args, **kwargs)


def _counterpart(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``funcgrad.numpy``'s function for a NumPy function, or a replacement."""
    home, name = _HOMES.get(fun.__module__, fun.__module__), fun.__name__
    full = f"{home}.{name}"
    if home in _HOMES.values():
        namespace = import_module(f"funcgrad.{home}")
        if name in namespace.__all__:
            own: Callable[..., Any] = getattr(namespace, name)
            return own
    if fun in _WRITING:
        return lambda *args, **kwargs: refuse_conversion(_tracers((args, kwargs))[0], full)
    return lambda *args, **kwargs: _call_without_rule(fun, full, args, kwargs)


def _call_without_rule(fun: Callable[..., Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute a function that funcgrad has no rule for with constants; raise an error for traced values."""
    return call_on_buffers(fun, args, kwargs) if are_constant(args, kwargs) else _refuse_unknown(name, (args, kwargs))


def _any(a: Any, *args: Any, **kwargs: Any) -> Any:
    check_question(a, 3)
    return reductions.any(a, *args, **kwargs)


def _trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Compute ``numpy.trim_zeros``, which ``numpy.poly1d`` calls to cut leading coefficients and their derivatives.

    Raises:
        NotDifferentiableError: only leading zeros are to be cut (``trim="f"``), and there are some.
    """
    left = sets.trim_zeros(filt, trim, axis)
    if trim.lower() == "f" and left.shape != filt.shape:
        raise NotDifferentiableError(
            "numpy.trim_zeros(x, 'f'): numpy.poly1d cuts leading coefficients that are 0 so, and their derivatives "
            f"with them, got {describe(filt)}{user_line()}. Use funcgrad.numpy.poly1d, which leaves them; to cut zeros "
            "use funcgrad.numpy.trim_zeros."
        )
    return left


#: Modules of NumPy with functions that dispatch and have counterparts, by the ``__module__`` of the functions.
_HOMES = {
    **{home: home for home in ("numpy", "numpy.linalg", "numpy.fft", "numpy.lib.scimath", "numpy.lib.stride_tricks")},
    "numpy.lib._scimath_impl": "numpy.lib.scimath",
    "numpy.lib._stride_tricks_impl": "numpy.lib.stride_tricks",
}
_API_VERSIONS = (None, "2021.12", "2022.12", "2023.12", "2024.12")
_WRITING: frozenset[Callable[..., Any]] = frozenset((
    np.copyto, np.fill_diagonal, np.place, np.put, np.put_along_axis, np.putmask, np.save, np.savetxt, np.savez,
    np.savez_compressed,
))  # fmt: skip
_FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.any: _any,
    np.trim_zeros: _trim_zeros,
}


def array_namespace(x: Tracer, /, *, api_version: str | None = None) -> Any:
    """Return the module whose functions work on tracers, for code written for any array library.

    Raises:
        ValueError: the module does not follow this version of the array API standard.
    """
    if api_version not in _API_VERSIONS:
        raise ValueError(
            f"x.__array_namespace__: an unknown version of the array API standard, got {api_version!r}. Ask for "
            f"{_API_VERSIONS[-1]!r}, or for none."
        )
    own = x._trace.namespace
    return sys.modules["funcgrad.numpy"] if own is None else own


class TracerForJax:
    """Result of ``__jax_array__`` of a tracer.

    ``isinstance`` takes a tracer for an ndarray. JAX's operators would too, but given this object they defer to the
    other operand, the tracer. JAX's functions refuse the object or call its ``__array__``, which is the tracer's.
    """

    __slots__ = ("__array__", "tracer")

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.__array__ = tracer.__array__  # type: ignore[attr-defined]


def dlpack(
    x: Tracer,
    /,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """Return the memory of a constant array for other libraries.

    Raises:
        ConcretizationError: the value is traced.
    """
    wishes = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    return constant_array(x, "x.__dlpack__()").__dlpack__(**{k: v for k, v in wishes.items() if v is not None})


def dlpack_device(x: Tracer, /) -> tuple[Any, int]:
    """Return the device of the memory that ``dlpack`` returns."""
    found: tuple[Any, int] = constant_array(x, "x.__dlpack_device__()").__dlpack_device__()
    return found


def to_device(x: Tracer, device: Any, /, *, stream: Any = None) -> Tracer:
    """Return ``x``, which is on ``device`` already.

    Raises:
        ValueError: ``x`` is on another device.
    """
    if device != x.device or stream is not None:  # type: ignore[attr-defined]
        raise ValueError(
            f"x.to_device: a traced value stays where it is, on {x.device!r}, got {device!r}. "  # type: ignore[attr-defined]
            "Use funcgrad.interop.device_put."
        )
    return x


#: Members that ``methods.install`` sets on tracers.
PROTOCOLS: dict[str, Any] = {
    "__array_ufunc__": array_ufunc,
    "__array_function__": array_function,
    "__array_namespace__": array_namespace,
    "__jax_array__": lambda x: TracerForJax(x),
    "__dlpack__": dlpack,
    "__dlpack_device__": dlpack_device,
    "to_device": to_device,
    "__array_priority__": 1000.0,
    "__pandas_priority__": 10_000,  # above Series and DataFrame, whose operators then defer to tracers
}
