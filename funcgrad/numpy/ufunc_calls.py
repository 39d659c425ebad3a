"""Ufuncs with NumPy's options: ``out``, ``where``, ``dtype``, ``casting`` and ``signature``, by one function for all.

``order`` and ``subok`` concern memory and subclasses; for traced values they are accepted and mean nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.backend import dtype_of, is_inexact
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError
from funcgrad.numpy.concretization import user_line
from funcgrad.numpy.creation import as_value, astype
from funcgrad.numpy.output import are_constant, check_arrays, computed, write_out
from funcgrad.numpy.peeking import is_plain
from funcgrad.numpy.shaping import expand_dims, moveaxis
from funcgrad.primitives.comparison import where as choose
from funcgrad.typing import Array, ArrayLike

__all__ = ["DEFAULTS", "applied", "applied_to_axes", "cast", "check_options", "outputs"]

_WEAK = (int, float, complex)  # Python numbers of these types adapt to the dtypes of arrays
#: The options of elementwise ufuncs, as their signatures show them.
DEFAULTS: dict[str, Any] = {
    "where": True,
    "casting": "same_kind",
    "order": "K",
    "dtype": None,
    "subok": True,
    "signature": None,
}
#: The names of them; ``sig`` is an old one of ``signature``.
OPTIONS = frozenset((*DEFAULTS, "sig"))


def applied(
    theirs: np.ufunc,
    own: Callable[..., Any],
    inputs: tuple[Any, ...],
    out: Any,
    options: dict[str, Any],
    name: str = "",
) -> Any:
    """A ufunc with options, whoever was called: ``funcgrad.numpy``'s or NumPy's.

    Args:
        theirs: NumPy's ufunc, which computes where nothing is traced.
        own: funcgrad's, without options.
        inputs: the arguments.
        out: an array, or a tuple of as many as there are results, or None.
        options: the others by name.
        name: what is called, for messages; by default the name of ``theirs``.

    Raises:
        TypeError: there is no such computation, or ``casting`` does not allow it; an unknown option.
        InputError: ``where`` without ``out``; see also ``write_out``.
    """
    name = name or theirs.__name__
    if type(out) is tuple and len(out) == 1:
        (out,) = out
    if not options and isinstance(out, Tracer) and theirs.nout == 1:  # the commonest, the short way
        return write_out(name, out, own(*inputs), stretch=True)
    outs = outputs(name, theirs.nout, out)
    check_options(name, options, OPTIONS)
    where = options.get("where", True)
    if are_constant(*inputs, outs, where):
        keywords = {**options, "out": outs} if outs else options
        if is_plain(*inputs, outs, where):
            check_arrays(name, inputs)
            return theirs(*inputs, **keywords)
        return computed(theirs, inputs, keywords)
    casting = options.get("casting", "same_kind")
    signature = options.get("signature", options.get("sig"))
    dtype = options.get("dtype")
    if dtype is not None or signature is not None or where is not True or "casting" in options:
        inputs = cast(theirs, inputs, dtype=dtype, signature=signature, casting=casting)
    if where is not True:
        where = _mask(name, where, outs)
        inputs = tuple([_harmless(theirs, where, x) for x in inputs])
    results = own(*inputs)
    if not outs:
        return results
    several = theirs.nout > 1
    written = [
        result if place is None else _written(name, place, result, where, casting)
        for place, result in zip(outs, results if several else (results,), strict=True)
    ]
    return tuple(written) if several else written[0]


def outputs(name: str, number: int, out: Any) -> tuple[Any, ...]:
    """``out`` as a tuple with a place, or None, for each result; empty where none is given.

    Raises:
        ValueError: another number of them.
    """
    if type(out) is not tuple:
        out = (out,)
    if all(place is None for place in out):
        return ()
    if len(out) != number:
        raise ValueError(f"{name}: out has a place for each of {number} results, got {len(out)}. Pass a tuple of them.")
    return out  # type: ignore[no-any-return]


def check_options(name: str, options: dict[str, Any], known: frozenset[str]) -> None:
    """Refuse an option that no ufunc has, in Python's words."""
    for option in options:
        if option not in known:
            raise TypeError(f"{name}() got an unexpected keyword argument {option!r}")


def cast(
    ufunc: np.ufunc,
    args: tuple[ArrayLike, ...],
    *,
    dtype: Any = None,
    signature: Any = None,
    casting: Any = "same_kind",
) -> tuple[Array, ...]:
    """``args`` in the dtypes that ``ufunc`` computes in: NumPy converts them, not the result.

    Args:
        ufunc: one of NumPy's.
        args: the arguments.
        dtype: the dtype that its results are to have.
        signature: the dtypes of arguments and results, as NumPy writes them.
        casting: which conversions are allowed.

    Raises:
        TypeError: there is no such computation, or ``casting`` does not allow it.

    Example:
        >>> cast(np.add, (np.ones(2), np.float32(2)), dtype="float32")
        (array([1., 1.], dtype=float32), np.float32(2.0))
    """
    values = [as_value(a) for a in args]
    given = [type(v) if type(v) in _WEAK else dtype_of(v) for v in values]
    loop = ufunc.resolve_dtypes(
        (*given, *[None] * ufunc.nout), signature=_wanted(ufunc, dtype, signature), casting=casting
    )
    return tuple([astype(v, to) for v, to in zip(values, loop, strict=False)])


def _wanted(ufunc: np.ufunc, dtype: Any, signature: Any) -> Any:
    """The dtypes asked for, one for each argument and result, None for any."""
    if signature is None:
        return (*[None] * ufunc.nin, *[None if dtype is None else np.dtype(dtype)] * ufunc.nout)
    if dtype is not None:
        raise TypeError("cannot specify both 'signature' and 'dtype'")
    if isinstance(signature, str):
        signature = tuple(signature.replace("->", ""))
    if len(signature) != ufunc.nargs:
        raise ValueError(
            f"{ufunc.__name__}: a signature has a dtype for each of {ufunc.nin} arguments and {ufunc.nout} results, "
            f"got {signature!r}. Write it as in {ufunc.types[-1]!r}."
        )
    return tuple([None if s is None else np.dtype(s) for s in signature])


def _mask(name: str, where: Any, outs: tuple[Any, ...]) -> Array:
    """``where`` as booleans."""
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


def _harmless(ufunc: np.ufunc, where: Array, x: Array) -> Array:
    """``x`` with numbers at which ``ufunc`` is smooth where it is not to be computed.

    What is not selected may have an infinite derivative, which no zero cotangent could undo.
    """
    dtype = dtype_of(x)
    smooth = 2 if ufunc is np.arccosh else 0.5
    return choose(where, x, dtype.type(smooth if is_inexact(x) else 1))


def _written(name: str, place: Any, result: Any, where: Any, casting: Any) -> Any:
    if where is not True:
        have = dtype_of(result)
        to = place.dtype if hasattr(place, "dtype") and np.can_cast(have, place.dtype, casting) else have
        result = choose(where, result if have == to else astype(result, to), place)
    return write_out(name, place, result, casting, stretch=True)


def applied_to_axes(
    name: str,
    theirs: np.ufunc | None,
    own: Callable[..., Any],
    core_axes: str,
    inputs: tuple[Any, ...],
    out: Any,
    options: dict[str, Any],
) -> Any:
    """``applied`` for a function of vectors and matrices, the last axes of its arguments.

    Args:
        name: its name.
        theirs: NumPy's; None where this version has none.
        own: funcgrad's, without options.
        core_axes: which axes it takes and gives, as NumPy writes that.
        inputs: the arguments.
        out: an array, a tuple of one, or None.
        options: those of ``applied`` without ``where``, and ``axes``, ``axis`` and ``keepdims``.
    """
    outs = outputs(name, 1, out)
    if theirs is not None and are_constant(*inputs, outs):
        keywords = {**options, "out": outs} if outs else options
        return theirs(*inputs, **keywords) if is_plain(*inputs, outs) else computed(theirs, inputs, keywords)
    casting, signature = options.get("casting", "same_kind"), options.get("signature", options.get("sig"))
    dtype = options.get("dtype")
    if dtype is not None or signature is not None or "casting" in options:
        inputs = cast(theirs or np.matmul, inputs, dtype=dtype, signature=signature, casting=casting)
    axes = _places(name, core_axes, options)
    if axes is None:
        result = own(*inputs)
    else:
        moved = [moveaxis(as_value(x), at, tuple(range(-len(at), 0))) for x, at in zip(inputs, axes, strict=False)]
        result = own(*moved)
        if options.get("keepdims"):
            result = expand_dims(result, -1)
        result = moveaxis(result, tuple(range(-len(axes[-1]), 0)), axes[-1])
    return write_out(name, outs[0], result, casting, stretch=True) if outs else result


def _places(name: str, core_axes: str, options: dict[str, Any]) -> list[tuple[int, ...]] | None:
    """Where the vectors and matrices of the arguments and the result stand; None where that is at the end."""
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
