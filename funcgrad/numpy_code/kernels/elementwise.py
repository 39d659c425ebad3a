"""Functions that compute each element from the same elements of their arguments, called with whole batches.

Such code may select by a mask, ``y[x > 0] = ...``, or branch on ``np.any(...)``, which fails in a ``vmap`` whose
examples differ. Its elements are independent, so the batch can be passed as another axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.batching import BatchTrace, is_in_batch
from funcgrad.core import Primitive, Tracer, are_tracers_of, is_array, plain_value, raise_closure, replace_at
from funcgrad.errors import ConversionError, NotDifferentiableError
from funcgrad.forward import ForwardTrace
from funcgrad.graph import is_on_graph
from funcgrad.kinds.linear import to_batch
from funcgrad.kinds.rules import finish_operation
from funcgrad.numpy.plain_values.concretization import concrete
from funcgrad.numpy_code.own import known_value
from funcgrad.numpy_code.replacements import end_run, run_of_thread
from funcgrad.reverse import backward, record_function, vjp_for_all
from funcgrad.writable import is_buffer

_PYTHON_NUMBERS = frozenset((bool, int, float, complex))  # in an array they would decide the dtype of the result
#: Function of arrays of one shape that returns arrays of that shape.
Fun = Callable[..., Sequence[Any]]


#: Functions whose second argument is a tuple of arrays; of ``_lazywhere``, also a list. Else a list is an array.
_TAKING_TUPLES = frozenset(("apply_where", "_lazywhere"))


def _array(fun: Callable[..., Any], at: int, x: Any) -> Any:
    if type(x) is not list and type(x) is not tuple:
        return x
    if at == 1 and fun.__name__ in _TAKING_TUPLES:
        return tuple([_array(fun, 0, part) for part in x])
    return fnp.asarray(x)


def elementwise(fun: Callable[..., Any], is_fixed: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Return ``fun``, which broadcasts its arguments and computes elementwise, such that it gets whole batches.

    Args:
        fun: a function of arrays and numbers, also in tuples; other arguments are passed unchanged.
        is_fixed: ``is_fixed(result, *args, **kwargs)`` tells which elements of a result are constants, even if they
            were computed from infinities: the other elements are then computed again without these.
    """

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        args = tuple([_array(fun, at, x) for at, x in enumerate(args)])
        kwargs = {name: _array(fun, 0, x) for name, x in kwargs.items()}
        given, spec = tree.flatten((list(args), kwargs))
        batched = any(map(is_in_batch, given))
        if not batched:
            found = fun(*args, **kwargs)
            if _constant_elements(is_fixed, found, args, kwargs) is None:
                return found
        places = [i for i, x in enumerate(given) if is_array(x) and type(x) not in _PYTHON_NUMBERS]
        arrays = fnp.broadcast_arrays(*[given[i] for i in places])
        of_arrays = _function_of_arrays(fun, is_fixed, given, spec, places)
        if not batched:
            return of_arrays(*arrays)[0]
        try:
            found = _call(*arrays, fun=_in_run(of_arrays))
        except NotDifferentiableError as error:
            if isinstance(error, ConversionError):
                raise
            return fun(*args, **kwargs)  # it closes over a traced value, so it gets the batch tracers
        return found if len(found) > 1 else found[0]

    return call


def with_where_on_jax(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``apply_where`` such that it chooses by ``where`` if JAX does not know the values yet, as on JAX arrays.

    Elements that are not chosen are computed from 0.5, where most functions have a finite derivative.
    """
    selecting = elementwise(fun)

    @wraps(fun)
    def call(cond: Any, args: Any, f1: Any, f2: Any = None, /, **options: Any) -> Any:
        arrays = args if isinstance(args, tuple) else (args,)
        if not any(backend.is_jax_tracer(plain_value(x)) for x in (cond, *arrays)):
            return selecting(cond, args, f1, f2, **options)
        named = options.get("kwargs") or {}
        safe = [fnp.where(cond, x, 0.5) if backend.is_inexact(x) else x for x in arrays]
        other = options.get("fill_value") if f2 is None else f2(*arrays, **named)
        return fnp.where(cond, f1(*safe, **named), other)

    return call


def _constant_elements(is_fixed: Callable[..., Any] | None, found: Any, args: Any, kwargs: Any) -> Any:
    """Return which elements of a traced result are constants; None if none are."""
    if is_fixed is None or type(found) is not Tracer or is_on_graph(found):
        return None  # a recording runs for other values, with other constants
    fixed = is_fixed(found, *args, **kwargs)
    return fixed if bool(fnp.any(fixed)) else None


def _function_of_arrays(fun: Callable[..., Any], is_fixed: Any, given: list[Any], spec: Any, places: list[int]) -> Fun:
    """Return ``fun`` as a function of the arrays at the indices ``places`` of ``given``."""

    def of_arrays(*arrays: Any) -> Sequence[Any]:
        args, kwargs = tree.unflatten(spec, replace_at(given, places, arrays))
        found = fun(*args, **kwargs)
        fixed = _constant_elements(is_fixed, found, args, kwargs)
        if fixed is not None:
            found = _with_constants(fixed, found, of_arrays, arrays)
        return found if isinstance(found, tuple) else (found,)

    return of_arrays


def _with_constants(fixed: Any, found: Any, of_arrays: Fun, arrays: Sequence[Any]) -> Any:
    """Return ``found``, the result for ``arrays``, with ``fixed`` elements as constants and the others recomputed."""
    live, value = fnp.logical_not(fixed), concrete(found, "a probability")
    made = fnp.array(value)
    made[live] = of_arrays(*[fnp.asarray(x)[live] for x in arrays])[0]
    return made[()]


def _in_run(fun: Fun) -> Fun:
    """Return rebuilt code ``fun`` such that it opens a run, because pullbacks call it after its own run."""

    def call(*arrays: Any) -> Sequence[Any]:
        run = run_of_thread()
        begins = not run.open
        run.open = True
        try:
            return fun(*arrays)
        finally:
            if begins:
                end_run(run)

    return call


def _impl(xp: Any, *args: Any, fun: Fun) -> tuple[Any, ...]:
    outs = fun(*args)
    if any(isinstance(out, Tracer) and out._trace.differentiates for out in outs):
        raise_closure("vmap")
    return tuple([out._val if isinstance(out, Tracer) else out for out in outs])  # tracers of arrays that ``fun`` made


def _reverse(args: Sequence[Any], traced: tuple[int, ...], params: dict[str, Any]) -> Any:
    fun, traced = params["fun"], tuple(traced)
    outs = _call(*args, fun=fun)
    live = [i for i, out in enumerate(outs) if backend.is_inexact(out)]
    likes = [outs[i] for i in live]
    return tuple(outs), vjp_for_all("elementwise_call", _vjp, len(traced)), (fun, args, traced, live, likes)


def _vjp(ct: Any, fun: Fun, args: Any, traced: Any, live: Any, likes: Any) -> Sequence[Any]:
    whole = ct if isinstance(ct, (tuple, list)) else [ct]
    cts = [backend.zeros_like(like) if whole[i] is None else whole[i] for i, like in zip(live, likes, strict=True)]
    found: Sequence[Any] = _call(*args, *cts, fun=partial(_compute_vjp, fun, traced, live))
    return [None if _is_zero(ct) else ct for ct in found]


def _is_zero(ct: Any) -> bool:
    """Whether a cotangent is 0 in all examples and not traced further: it may have been computed from infinities."""
    while isinstance(ct, Tracer) and isinstance(ct._trace, BatchTrace):
        ct = ct._val
    return type(ct) is not Tracer and not np.any(ct)


def _compute_vjp(fun: Fun, traced: Sequence[int], live: Sequence[int], *given: Any) -> Sequence[Any]:
    """Return cotangents of the arguments at ``traced``, from the arguments and the cotangents of ``live`` results."""
    args, cts = list(given[: len(given) - len(live)]), given[len(given) - len(live) :]

    def moving(*xs: Any) -> list[Any]:
        return list(fun(*replace_at(args, traced, xs)))

    start = [args[i] for i in traced]
    _, nodes = record_function(moving, start)
    pairs = zip([nodes[i] for i in live], cts, strict=True)
    found = backward([(node, ct) for node, ct in pairs if node is not None], len(start))
    return backend.with_zeros(found, start)


def _forward(args: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Any:
    moving = [i for i, t in enumerate(tangents) if t is not None]
    both = _call(*args, *[tangents[i] for i in moving], fun=partial(_compute_jvp, params["fun"], moving))
    half = len(both) // 2
    return tuple(both[:half]), tuple(both[half:])


def _compute_jvp(fun: Fun, moving: Sequence[int], *given: Any) -> Sequence[Any]:
    """Return the results and their tangents, from the arguments and the tangents of the ``moving`` arguments."""
    args, tangents = list(given[: len(given) - len(moving)]), given[len(given) - len(moving) :]
    trace = ForwardTrace()
    try:
        for i, t in zip(moving, tangents, strict=True):
            args[i] = trace.leaf(args[i], t)
        outs = list(fun(*args))
    finally:
        trace.close()
    mine = are_tracers_of(trace, outs)
    values = [out._val if m else out for out, m in zip(outs, mine, strict=True)]
    return [*values, *[out.tangent if m else backend.zeros_like(out) for out, m in zip(outs, mine, strict=True)]]


def _batch(within: BatchTrace, args: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]) -> Any:
    """Make the batch another axis of all arguments; if it was the last batch, call ``fun`` directly."""
    whole = [_plain_array(x if b else to_batch(x, within.size)) for x, b in zip(args, batched, strict=True)]
    fun = params["fun"]
    found = _call(*whole, fun=fun) if any(map(is_in_batch, whole)) else tuple(fun(*whole))
    return found, True


def _plain_array(x: Any) -> Any:
    """Return the array of a buffer: NumPy takes an empty mask for integers if it is no ndarray."""
    return x._val if is_buffer(x) and type(x._val) is np.ndarray else x


#: ``_call(*arrays, fun)``: the results of ``fun`` for arrays of one shape.
_call: Any = finish_operation(
    Primitive("elementwise_call", _impl, _reverse, _forward, _batch, multiple=True, runs_user_code=True)
)


def _methods(cls: str, names: str) -> list[tuple[str, str]]:
    return [("scipy.stats._distn_infrastructure", f"{cls}.{name}") for name in names.split()]


def _equals(*values: float) -> Callable[..., Any]:
    """Return ``is_fixed`` for results that equal ``values[0]``, or ``values[-1]`` where the density is not positive."""

    def is_fixed(found: Any, self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        fixed = found == values[0]
        full = found == values[-1]
        if len(values) == 1 or not bool(fnp.any(full)):
            return fixed
        given = tree.map(partial(known_value, request="a density"), (x, args, kwargs))
        density = self.pdf if hasattr(self, "pdf") else self.pmf
        return fixed | (full & ~(density(given[0], *given[1], **given[2]) > 0))  # far out it may be NaN

    return is_fixed


#: Functions of SciPy that compute elementwise, though their code inspects whole arrays, with a function that
#: tells which elements of their results are constants, or None.
ELEMENTWISE: dict[tuple[str, str], Callable[..., Any] | None] = {
    **dict.fromkeys([*_methods("rv_continuous", "pdf"), *_methods("rv_discrete", "pmf")], _equals(0.0)),
    **dict.fromkeys([*_methods("rv_continuous", "logpdf"), *_methods("rv_discrete", "logpmf")], _equals(-np.inf)),
    **dict.fromkeys([*_methods("rv_continuous", "cdf sf"), *_methods("rv_discrete", "cdf sf")], _equals(0.0, 1.0)),
    **dict.fromkeys(
        [*_methods("rv_continuous", "logcdf logsf"), *_methods("rv_discrete", "logcdf logsf")], _equals(-np.inf, 0.0)
    ),
    **dict.fromkeys(
        [
            *_methods("rv_continuous", "ppf isf"),
            *_methods("rv_discrete", "ppf isf"),
            *_methods("rv_generic", "entropy"),
            ("scipy._lib._util", "_lazywhere"),  # before SciPy 1.16
        ]
    ),
}
