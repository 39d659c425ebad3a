"""Gradients of scalar functions: ``grad`` and ``value_and_grad``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from operator import itemgetter
from typing import Any, Literal, Never, NoReturn, ParamSpec, TypeAlias, TypeVar, overload

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import (
    Tracer,
    aval_of,
    check_open,
    is_array,
    is_in_transform,
    is_plain_float,
    replace_at,
    shallow_copy,
)
from funcgrad.errors import InputError
from funcgrad.numpy.tables.containers import unlabel_number
from funcgrad.reverse import ReverseTrace, backward, complete_derivatives
from funcgrad.transforms.arguments import (
    Options,
    argument_positions,
    check_differentiable,
    describe_result,
    leaf_path,
    merge_leaves,
    owned_aux,
    split_aux,
    strip_tracers,
)
from funcgrad.transforms.debugging import strict_block
from funcgrad.transforms.transformed import (
    check_argnums,
    check_callable,
    hide_extra_arguments,
    transformed,
)
from funcgrad.writable import as_inner_results

P = ParamSpec("P")
R = TypeVar("R")
Aux = TypeVar("Aux")
Rebuild: TypeAlias = Callable[[Any], Any]


_ONE = np.float64(1.0)
#: Avals of one real 64-bit number.
_FLOAT64_AVALS = frozenset((np.float64, float, ()))
_REAL_SCALARS = frozenset((float, np.float64, np.float32))


@overload
def grad(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    strict: bool = False,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    strict: bool = False,
) -> Callable[P, Any]: ...


@hide_extra_arguments
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    strict: bool = False,
    **_others: Never,
) -> Callable[P, Any]:
    """Return a function that computes the gradient of the scalar function ``fun``.

    Args:
        fun: a function of arrays, numbers or pytrees of them, returning one real scalar.
        argnums: which positional arguments to differentiate: a position, possibly negative, or several.
        has_aux: whether ``fun`` returns a pair ``(result, aux)``; then the result is ``(gradient, aux)``.
        holomorphic: promises that ``fun`` is complex differentiable; inputs and output must be complex.
        allow_int: lets integer inputs pass; their gradient has dtype float0.
        strict: whether a gradient that is zero for all values of the arguments is an error, see ``strict``.

    Returns:
        A function of the same arguments whose result has the structure, shapes and dtypes of the
        differentiated argument; a tuple of such results if ``argnums`` names several. The gradient of a real
        function of a complex argument z = x + iy is du/dx - i du/dy, as in JAX.

    Raises:
        TypeError: an integer or non-array input, a result that is not a real scalar, argnums out of range.

    Example:
        >>> grad(lambda x: x**3)(2.0)
        np.float64(12.0)
        >>> grad(grad(lambda x: x**3))(2.0)
        np.float64(12.0)
        >>> grad(lambda p, x: p["w"] * x + p["b"])({"w": 2.0, "b": 1.0}, 3.0)
        {'w': np.float64(3.0), 'b': np.float64(1.0)}
    """
    # equals Options(...) and takes half the time: programs often make a transform where they call it
    options = tuple.__new__(Options, ("grad", check_argnums("grad", argnums), has_aux, holomorphic, allow_int, strict))
    check_callable("grad", fun, _others)
    return transformed(run_grad, fun, options, "Gradient of {fun} with respect to positional argument(s) {argnums}.")


@hide_extra_arguments
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    strict: bool = False,
    **_others: Never,
) -> Callable[P, tuple[R, Any]]:
    """Return a function that computes the value and the gradient of ``fun`` in one evaluation.

    Args:
        fun: a function of arrays, numbers or pytrees of them, returning one real scalar.
        argnums: which positional arguments to differentiate: a position, possibly negative, or several.
        has_aux: whether ``fun`` returns a pair ``(result, aux)``.
        holomorphic: promises that ``fun`` is complex differentiable; inputs and output must be complex.
        allow_int: lets integer inputs pass; their gradient has dtype float0.
        strict: whether a gradient that is zero for all values of the arguments is an error, see ``strict``.

    Returns:
        A function of the same arguments that returns ``(value, gradient)``, or ``((value, aux), gradient)`` with
        ``has_aux=True``. The gradient is that of ``grad``.

    Raises:
        TypeError: as ``grad``.

    Example:
        >>> from funcgrad import value_and_grad
        >>> value_and_grad(lambda x: x * x)(3.0)
        (9.0, np.float64(6.0))
    """
    chosen = check_argnums("value_and_grad", argnums)
    options = Options("value_and_grad", chosen, has_aux, holomorphic, allow_int, strict)
    check_callable("value_and_grad", fun, _others)
    summary = "Value and gradient of {fun} with respect to positional argument(s) {argnums}."
    return transformed(run_value_and_grad, fun, options, summary)


def gradient_of_all(call: str, fun: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return ``grad`` of ``fun`` with respect to ``count`` arguments; error messages name ``call``."""
    options = Options(call, tuple(range(count)))
    return transformed(run_grad, fun, options, "Gradient of {fun} with respect to positional argument(s) {argnums}.")


def value_and_grad_of(call: str, fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``value_and_grad`` of ``fun``; error messages name ``call``."""
    options = Options(call, 0)
    return transformed(run_value_and_grad, fun, options, "Value and gradient of {fun}.")


def run_grad(fun: Callable[..., Any], options: Options, args: Any, kwargs: Any) -> Any:
    """Run a call of ``grad(fun)``."""
    _, gradient, aux = (_differentiate_strictly if options.strict else _differentiate)(fun, options, args, kwargs)
    return (gradient, aux) if options.has_aux else gradient


def run_value_and_grad(fun: Callable[..., Any], options: Options, args: Any, kwargs: Any) -> Any:
    """Run a call of ``value_and_grad(fun)``."""
    value, gradient, aux = (_differentiate_strictly if options.strict else _differentiate)(fun, options, args, kwargs)
    return ((value, aux), gradient) if options.has_aux else (value, gradient)


def _differentiate_strictly(fun: Callable[..., Any], options: Options, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    """Run ``_differentiate``; a gradient that is zero for all values of the arguments is an error."""
    with strict_block():
        return _differentiate(fun, options, args, kwargs)


def _check_strict(cuts: Any, cts: list[Any], options: Options, args: Any) -> None:
    """Check that every differentiated leaf has a cotangent."""
    chosen = argument_positions(options.call, options.argnums, args)
    leaves = tree.leaves(tuple([args[i] for i in chosen]))
    places = [i for i, leaf in enumerate(leaves) if check_differentiable(options, leaf, args, chosen, i)]
    cuts.check(options.call, cts, lambda i: leaf_path(args, chosen, places[i]))


def _differentiate(fun: Callable[..., Any], options: Options, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    """Return the value, the gradient and the aux of one call."""
    call, has_aux = options.call, options.has_aux
    live, as_arguments, rebuild = _select_leaves(options, args)
    trace = ReverseTrace()
    try:
        out = fun(*as_arguments(map(trace.leaf, live)), **kwargs)
    finally:
        trace.close()
    inside = is_in_transform()
    aux: Any = None
    if has_aux:
        out, aux = split_aux(call, out)
        aux = strip_tracers(trace, aux)
    mine = type(out) is Tracer and out._trace is trace
    if not mine and not backend.is_value(out):
        out = unlabel_number(out)
        mine = type(out) is Tracer and out._trace is trace
    value = out._val if mine else out
    one = _ONE
    if (type(value) is not np.float64 and type(value) is not float) or options.holomorphic:
        if type(value) is Tracer and not value._trace.open:
            check_open(value)
        if options.holomorphic or aval_of(value) not in _FLOAT64_AVALS:
            _check_output(call, value, options.holomorphic)
            one = backend.ones_like(value)
        value = value.copy() if type(value) is np.ndarray else shallow_copy(value)
    seeds = [(out.node, one)] if mine else []
    del out  # without this reference the backward pass frees the tape as it goes
    found = backward(seeds, len(live))
    if trace.cuts is not None:
        _check_strict(trace.cuts, found, options, args)
    cts = complete_derivatives(found, live)
    if has_aux:
        aux = owned_aux(aux, args)
    if inside and not {Tracer}.issuperset(map(type, (value, *cts))):
        value, *cts = as_inner_results([value, *cts], args)
    return value, rebuild(cts), aux


def _select_leaves(options: Options, args: Any) -> tuple[list[Any], Rebuild, Rebuild]:
    """Return the leaves to differentiate, and functions that make arguments and gradient of values for these leaves."""
    argnums = options.argnums
    if type(argnums) is int and -len(args) <= argnums < len(args) and not options.holomorphic:
        x = args[argnums]
        known = type(x) is float or (type(x) is np.ndarray and x.dtype is _ONE.dtype)  # the most frequent cases
        shallow = ([x], _take_first) if known else _flatten_shallow(x)
        if shallow is not None:
            live, rebuild = shallow
            if len(args) == 1 and rebuild is _take_first:
                return live, tuple, rebuild
            before, after = args[:argnums], args[argnums % len(args) + 1 :]
            return live, lambda new: (*before, rebuild(tuple(new)), *after), rebuild
    chosen = argument_positions(options.call, argnums, args)
    leaves, spec = tree.flatten(tuple([args[i] for i in chosen]))
    flags = [check_differentiable(options, leaf, args, chosen, i) for i, leaf in enumerate(leaves)]

    def as_arguments(new: Iterable[Any]) -> list[Any]:
        return replace_at(args, chosen, tree.unflatten(spec, merge_leaves(leaves, flags, [*new])))

    def as_gradient(cts: Sequence[Any]) -> Any:
        gradient = tree.unflatten(spec, merge_leaves(leaves, flags, cts, backend.zeros_like))
        return gradient[0] if type(argnums) is int else gradient

    return list(compress(leaves, flags)), as_arguments, as_gradient


def _flatten_shallow(x: Any) -> tuple[list[Any], Rebuild] | None:
    """Return the leaves of ``x``, and a function that rebuilds it of other leaves.

    Return None if ``x`` is not a floating array or number, nor a dict, list or tuple of plain ones: finding the leaves
    then takes ``tree.flatten``.
    """
    kind = type(x)
    if kind is dict:
        names, leaves = list(x), list(x.values())
        return (leaves, lambda new: dict(zip(names, new, strict=True))) if all(map(is_plain_float, leaves)) else None
    if kind is list or kind is tuple:
        return (list(x), kind) if all(map(is_plain_float, x)) else None
    known = kind is Tracer and (aval_of(x) is not None or x.dtype.kind == "f")
    return ([x], _take_first) if known or is_plain_float(x) else None


_take_first = itemgetter(0)


def _check_output(call: str, value: Any, holomorphic: bool) -> None:
    """Check that a result is one real scalar, or with ``holomorphic`` one complex scalar."""
    if type(value) in _REAL_SCALARS and not holomorphic:
        return
    if type(value) not in _REAL_SCALARS:
        if not is_array(value):
            _refuse_output(call, f"must return one scalar, got {describe_result(value)}", _result_remedy(value))
        if backend.shape_of(value) != ():
            _refuse_output(
                call,
                f"must return a scalar of shape (), got shape {backend.shape_of(value)}",
                "Sum it, or use jacrev for all derivatives of a vector.",
            )
    dtype = backend.dtype_of(value)
    if holomorphic:
        if dtype.kind != "c":
            _refuse_output(
                call, f"must return a complex scalar with holomorphic=True, got dtype {dtype}", "Leave it out."
            )
    elif dtype.kind == "c":
        _refuse_output(
            call,
            f"must return a real scalar, got dtype {dtype}",
            "Pass holomorphic=True if the function is complex differentiable, or use vjp.",
        )
    elif not backend.is_inexact(value):
        what = "a comparison" if dtype.kind == "b" else "an integer"
        _refuse_output(
            call,
            f"must return a floating scalar, got dtype {dtype}",
            f"Return a floating-point number: {what} has no derivative. vjp gives zeros.",
        )


def _result_remedy(value: Any) -> str:
    """Return advice for a result that is not one number."""
    if value is None:
        return "Return what is to be differentiated."
    if not tree.is_container(type(value)):
        return "Return a number that is computed from the arguments; jacrev takes arrays and trees of them too."
    first = value[0] if type(value) is tuple and len(value) == 2 else None
    if is_array(first) and backend.shape_of(first) == ():
        return "Pass has_aux=True if only the first is to be differentiated; jacrev differentiates both."
    return "Return one number, or a pair (number, rest) with has_aux=True; jacrev differentiates every entry."


def _refuse_output(call: str, problem: str, remedy: str) -> NoReturn:
    raise InputError(f"{call}: the function {problem}. {remedy}")
