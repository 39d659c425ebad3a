"""Products with the Jacobian (``vjp``, ``jvp``, ``linearize``) and with the Hessian (``hvp``)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from itertools import compress
from typing import Any, Literal, Never, TypeAlias, TypeVar, overload

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import Tracer, describe, own_results, refuse_escaped, shallow_copy
from funcgrad.errors import InputError
from funcgrad.forward import ForwardTrace
from funcgrad.graph import GraphTrace, stands_for_array
from funcgrad.keeping import ChangeCheck, copy_shared_arrays, copy_shared_constants
from funcgrad.numpy_code import deciding, run_or_rebuild
from funcgrad.reverse import Record, all_saved, backward, complete_derivatives, reachable, record_function
from funcgrad.transforms.arguments import (
    check_leaves,
    check_results,
    leaf_path,
    match_leaves,
    merge_leaves,
    owned_aux,
    split_aux,
    strip_tracers,
)
from funcgrad.transforms.debugging import Cuts, strict_block, watched_pass
from funcgrad.transforms.gradients import gradient_of_all
from funcgrad.transforms.transformed import check_callable, name_of, raise_funcgrad_error
from funcgrad.typing import PyTree
from funcgrad.writable import as_results

R = TypeVar("R")
Aux = TypeVar("Aux")
#: The arguments of a function, or their tangents.
ArgumentList: TypeAlias = tuple[Any, ...] | list[Any]


class Pullback:
    """Linear map from cotangents of a result to cotangents of the primals. It can be called any number of times.

    ``vjp`` makes it. It holds the tape: the values that the VJP rules of the recorded operations need.

    Example:
        >>> from funcgrad import vjp
        >>> y, pullback = vjp(lambda a, b: a * b, 3.0, 4.0)
        >>> pullback(1.0)
        (np.float64(4.0), np.float64(3.0))
    """

    def __init__(
        self,
        name: str,
        primals: tuple[list[Any], tree.PyTreeSpec, list[bool]],
        results: tuple[list[Any], tree.PyTreeSpec],
        nodes: list[Record | None],
        cuts: Cuts | None = None,
        unchanged: ChangeCheck | None = None,
    ) -> None:
        self._name = name
        self._leaves, self._spec, self._live = primals
        self._outs, self._out_spec = results
        self._nodes = nodes
        self._cuts = cuts
        self._unchanged = unchanged

    def __call__(self, cotangent: PyTree, *others: Never) -> tuple[Any, ...]:
        """Map ``cotangent``, a tree like the result, to a tuple with a cotangent tree per primal.

        Raises:
            TypeError: a cotangent of another structure or dtype.
            ValueError: a cotangent of another shape.
        """
        if others:
            raise InputError(
                f"pullback: it takes one cotangent, of the structure of the result, got {1 + len(others)}. For a "
                "tuple of results pass a tuple."
            )
        cts = match_leaves("pullback", "cotangent", cotangent, self._outs, self._out_spec)
        pulled: tuple[Any, ...] = tree.unflatten(self._spec, self.pull_leaves(cts, cotangent))
        return pulled

    def pull_leaves(self, cts: list[Any], cotangent: PyTree) -> list[Any]:
        """Return the leaves of the cotangents of the primals; ``cts`` are the leaves of ``cotangent``, checked."""
        pairs = zip(self._nodes, cts, strict=True)
        seeds = [(node, c) for node, c in pairs if node is not None and c is not None]
        live = list(compress(self._leaves, self._live))
        del cts, pairs
        found = as_results(complete_derivatives(self._backward(seeds, len(live)), live), (self._leaves, cotangent))
        return merge_leaves(self._leaves, self._live, found, backend.zeros_like)

    def _backward(self, seeds: list[tuple[Record, Any]], leaves: int) -> list[Any]:
        if self._unchanged is not None:
            self._unchanged.check("pullback")
        if self._cuts is None:
            return backward(seeds, leaves)
        with watched_pass():
            found = backward(seeds, leaves)
            self._cuts.check("pullback", found, _live_leaf_path(self._spec, self._leaves, self._live))
        return found

    def __copy__(self) -> Pullback:
        return self  # a pullback never changes

    def __deepcopy__(self, memo: Any) -> Pullback:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError(
            f"pickle: a pullback holds the tape of a run, which cannot be stored or sent, got {self!r}. Store the "
            "function and its arguments and call vjp again, or store what linearize returns."
        )

    def __repr__(self) -> str:
        return f"<pullback of {self._name}>"


def tape_size(pullback: Pullback) -> tuple[int, int]:
    """Return how many operations ``pullback`` goes back through, and how many array entries their records saved."""
    records = reachable(pullback._nodes)
    return len(records), sum([x.size for x in all_saved(records) if type(x) is np.ndarray])


def _live_leaf_path(spec: tree.PyTreeSpec, leaves: list[Any], live: list[bool]) -> Callable[[int], str]:
    """Return a function from the number of a differentiated leaf of the primals to its key path."""

    def path(number: int) -> str:
        primals = tree.unflatten(spec, leaves)
        return leaf_path(primals, range(len(primals)), [i for i, flag in enumerate(live) if flag][number])

    return path


@overload
def vjp(
    fun: Callable[..., R], *primals: PyTree, has_aux: Literal[False] = False, strict: bool = False, **kwargs: Any
) -> tuple[R, Pullback]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, Aux]], *primals: PyTree, has_aux: Literal[True], strict: bool = False, **kwargs: Any
) -> tuple[R, Pullback, Aux]: ...
@overload
def vjp(
    fun: Callable[..., Any], *primals: PyTree, has_aux: bool, strict: bool = False, **kwargs: Any
) -> tuple[Any, ...]: ...


def vjp(
    fun: Callable[..., Any], *primals: PyTree, has_aux: bool = False, strict: bool = False, **kwargs: Any
) -> tuple[Any, ...]:
    """Evaluate ``fun`` and return its value and its pullback (vector-Jacobian product).

    The pullback keeps copies of the arrays that it needs: a later write to an argument does not change the pullback.

    Args:
        fun: a function of arrays or pytrees, returning an array or a pytree.
        primals: the point. Integer leaves are allowed; their cotangent has dtype float0.
        has_aux: whether ``fun`` returns a pair ``(result, aux)``.
        strict: whether a cotangent that is zero for all values of the primals is an error, see ``strict``.
        kwargs: passed to ``fun``, not differentiated.

    Returns:
        ``(result, pullback)``, or ``(result, pullback, aux)`` with ``has_aux=True``. The pullback takes a
        cotangent like ``result`` and returns a tuple with a cotangent per primal. For complex values the
        pullback is the plain transpose, without conjugation.

    Raises:
        TypeError: a leaf that is not an array or number.

    Example:
        >>> from funcgrad import vjp
        >>> y, pullback = vjp(lambda x: np.sin(x), np.array([0.0, 1.0]))
        >>> pullback(np.ones(2))[0].round(3)
        array([1.  , 0.54])
    """
    if strict:
        with strict_block():
            return vjp(fun, *primals, has_aux=has_aux, **kwargs)
    check_callable("vjp", fun)
    _check_primals("vjp", fun, primals)
    others = deciding(primals, kwargs, "all" if len(primals) > 1 else 0)
    work = lambda fun: evaluate_vjp(fun, primals, has_aux, kwargs, lasting=True)
    found: tuple[Any, ...] = run_or_rebuild(fun, work, others)
    return found


def _check_primals(call: str, fun: Callable[..., Any], primals: tuple[Any, ...]) -> None:
    """Check that ``call`` got positional arguments of the function, unless the function names none."""
    if primals:
        return
    try:
        parameters = inspect.signature(fun).parameters.values()
    except ValueError:  # a function in C that does not tell its arguments
        return
    if any(x.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for x in parameters):
        raise InputError(
            f"{call}: there is nothing to differentiate, got no positional argument after the function. Write "
            f"{call}(f, x), not {call}(f)(x)."
        )


def evaluate_vjp(
    fun: Callable[..., Any],
    primals: tuple[Any, ...],
    has_aux: bool,
    kwargs: dict[str, Any],
    *,
    lasting: bool,
    call: str = "vjp",
) -> tuple[Any, ...]:
    """Return the result of ``vjp``. Pass ``lasting=False`` if no write can come before the pullback's last call.

    Messages name ``call``, the public call.
    """
    leaves, spec = tree.flatten(primals)
    live = check_leaves(call, leaves, partial(leaf_path, primals, range(len(primals))))
    side: dict[str, Any] = {}

    def of_leaves(*moving: Any) -> list[Any]:
        if moving:
            side["trace"] = moving[0]._trace
        try:
            out = fun(*tree.unflatten(spec, merge_leaves(leaves, live, moving)), **kwargs)
        except Exception as error:
            raise_funcgrad_error(error)
            raise
        if has_aux:
            out, side["aux"] = split_aux(call, out)
        flat, side["spec"] = tree.flatten(out)
        return flat

    moving = list(compress(leaves, live))
    results, nodes = record_function(of_leaves, _copy_arrays(moving) if lasting else moving)
    del moving
    check_results(call, results)
    refuse_escaped(results)
    out_spec = side["spec"]
    trace = side.get("trace")  # None if there is no leaf to differentiate
    cuts: Cuts | None = None if trace is None else trace.cuts
    if cuts is not None:
        cuts.check_outputs(call, nodes, _live_leaf_path(spec, leaves, live), sum(live))
    aux = [owned_aux(strip_tracers(trace, side.pop("aux")), primals)] if has_aux else []
    own_results(results)
    nodes, unchanged = copy_shared_arrays(nodes) if lasting else (nodes, None)
    pullback = Pullback(name_of(fun), (leaves, spec, live), (results, out_spec), nodes, cuts, unchanged)
    return (tree.unflatten(out_spec, as_results(results, primals)), pullback, *aux)


def _copy_arrays(leaves: list[Any]) -> list[Any]:
    """Return ``leaves`` with arrays copied: VJP rules may close over arrays that no later step can find and copy."""
    return [leaf.copy("K") if stands_for_array(leaf) else leaf for leaf in leaves]


@overload
def jvp(
    fun: Callable[..., R], primals: ArgumentList, tangents: ArgumentList, has_aux: Literal[False] = False, **kwargs: Any
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, Aux]],
    primals: ArgumentList,
    tangents: ArgumentList,
    has_aux: Literal[True],
    **kwargs: Any,
) -> tuple[R, R, Aux]: ...
@overload
def jvp(
    fun: Callable[..., Any], primals: ArgumentList, tangents: ArgumentList, has_aux: bool, **kwargs: Any
) -> tuple[Any, ...]: ...


def jvp(
    fun: Callable[..., Any], primals: ArgumentList, tangents: ArgumentList, has_aux: bool = False, **kwargs: Any
) -> tuple[Any, ...]:
    """Evaluate ``fun`` and its directional derivative (Jacobian-vector product), in forward mode.

    Args:
        fun: a function of arrays or pytrees, returning an array or a pytree.
        primals: a tuple or list of its positional arguments.
        tangents: a tuple or list of the same structure, shapes and dtypes.
        has_aux: whether ``fun`` returns a pair ``(result, aux)``.
        kwargs: passed to ``fun``, not differentiated.

    Returns:
        ``(result, tangent)``, or ``(result, tangent, aux)`` with ``has_aux=True``.

    Raises:
        TypeError: primals or tangents that are not a tuple or list; tangents of another structure or dtype.
        ValueError: a tangent of another shape.

    Example:
        >>> from funcgrad import jvp
        >>> jvp(lambda x: x * x, (3.0,), (1.0,))
        (9.0, np.float64(6.0))
    """
    check_callable("jvp", fun)
    leaves, spec, flat = _pairs("jvp", primals, tangents)
    given = primals, tangents
    value, tangent, *aux = run_or_rebuild(
        fun, lambda fun: evaluate_jvp(fun, leaves, spec, flat, has_aux, kwargs, given)
    )
    return (value, tangent, *aux)


def _pairs(call: str, primals: Any, tangents: Any) -> tuple[list[Any], tree.PyTreeSpec, list[Any]]:
    """Return the leaves of the primals, their structure, and a tangent or None for each leaf."""
    for what, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise InputError(
                f"{call}: {what} must be a tuple or a list with an entry per argument, got {describe(given)}. "
                f"Write {call}(f, (x,), (t,))."
            )
    leaves, spec = tree.flatten(tuple(primals))
    check_leaves(call, leaves, partial(leaf_path, primals, range(len(primals))))
    return leaves, spec, match_leaves(call, "tangent", tuple(tangents), leaves, spec)


def evaluate_jvp(
    fun: Callable[..., Any],
    leaves: list[Any],
    spec: tree.PyTreeSpec,
    tangents: list[Any],
    has_aux: bool,
    kwargs: dict[str, Any],
    given: PyTree = None,
) -> tuple[Any, ...]:
    """Return value and tangent of ``fun``. A tangent of None is zero; ``given`` holds the caller's arguments."""
    pairs = zip(leaves, tangents, strict=True)
    trace = ForwardTrace()
    try:
        wrapped = [x if t is None else trace.leaf(x, t) for x, t in pairs]
        out = fun(*tree.unflatten(spec, wrapped), **kwargs)
    except Exception as error:
        raise_funcgrad_error(error)
        raise
    finally:
        trace.close()
    out, aux = split_aux("jvp", out) if has_aux else (out, None)
    side = strip_tracers(trace, aux)
    results, out_spec = tree.flatten(out)
    del wrapped, pairs, out, aux  # the caller alone owns the values from now on
    pushed: list[Any] = []
    for i in range(len(results)):
        if type(results[i]) is Tracer and results[i]._trace is trace:
            pushed.append(shallow_copy(results[i].tangent))
            results[i] = shallow_copy(results[i]._val)
        else:
            pushed.append(None)
            results[i] = shallow_copy(results[i])
    check_results("jvp", results)
    refuse_escaped(results)
    if trace.cuts is not None:
        trace.cuts.check_tangents("jvp", results, pushed)
    complete_derivatives(pushed, results)
    own_results(results)
    if given is not None:
        results, pushed = as_results(results, given), as_results(pushed, given)
    value, tangent = tree.unflatten(out_spec, results), tree.unflatten(out_spec, pushed)
    return (value, tangent, owned_aux(side, given)) if has_aux else (value, tangent)


class Linearized:
    """Derivative of a function at a point, as a linear function of tangents. ``linearize`` makes it.

    Calling it costs the tangent part of one evaluation; the primal part is not run again.

    Example:
        >>> from funcgrad import linearize
        >>> y, f_jvp = linearize(lambda x: x * x, 3.0)
        >>> y, f_jvp(1.0), f_jvp(2.0)
        (9.0, np.float64(6.0), np.float64(12.0))
    """

    def __init__(self, name: str, leaves: list[Any], spec: tree.PyTreeSpec, out_spec: Any, graph: Any) -> None:
        self._name = name
        self._leaves, self._spec = leaves, spec
        self._out_spec = out_spec
        self.graph = graph

    def __call__(self, *tangents: PyTree) -> PyTree:
        """Apply the derivative to tangents, one per primal.

        Raises:
            TypeError: tangents of another structure or dtype.
            ValueError: tangents of another shape.
        """
        flat = match_leaves("linearize", "tangent", tangents, self._leaves, self._spec)
        live = [t for t in flat if t is not None]
        results = own_results(self.graph.evaluate(*live))
        return tree.unflatten(self._out_spec, as_results(results, (self._leaves, tangents)))

    def __repr__(self) -> str:
        return f"<derivative of {self._name}, {len(self.graph)} operations>"


@overload
def linearize(
    fun: Callable[..., R], *primals: PyTree, has_aux: Literal[False] = False, **kwargs: Any
) -> tuple[R, Linearized]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, Aux]], *primals: PyTree, has_aux: Literal[True], **kwargs: Any
) -> tuple[R, Linearized, Aux]: ...
@overload
def linearize(fun: Callable[..., Any], *primals: PyTree, has_aux: bool, **kwargs: Any) -> tuple[Any, ...]: ...


def linearize(fun: Callable[..., Any], *primals: PyTree, has_aux: bool = False, **kwargs: Any) -> tuple[Any, ...]:
    """Evaluate ``fun`` and return its value and its derivative at ``primals``, a linear function of tangents.

    Args:
        fun: a function of arrays or pytrees.
        primals: the point.
        has_aux: whether ``fun`` returns a pair ``(result, aux)``.
        kwargs: passed to ``fun``, not differentiated.

    Returns:
        ``(result, f_jvp)``, or ``(result, f_jvp, aux)`` with ``has_aux=True``. ``f_jvp(*tangents)`` equals
        ``jvp(fun, primals, tangents)[1]`` without running the primal part again.

    Raises:
        TypeError: a leaf that is not an array or number; a rule that branches on the value of a tangent.

    Example:
        >>> from funcgrad import linearize
        >>> y, f_jvp = linearize(lambda x, y: x * y, 3.0, 4.0)
        >>> f_jvp(1.0, 0.0), f_jvp(0.0, 1.0)
        (np.float64(4.0), np.float64(3.0))
    """
    check_callable("linearize", fun)
    _check_primals("linearize", fun, primals)
    others = deciding(primals, kwargs, "all" if len(primals) > 1 else 0)
    work = lambda fun: _evaluate_linearize(fun, primals, has_aux, kwargs)
    found: tuple[Any, ...] = run_or_rebuild(fun, work, others)
    return found


def _evaluate_linearize(
    fun: Callable[..., Any], primals: Any, has_aux: bool, kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    leaves, spec = tree.flatten(primals)
    live = check_leaves("linearize", leaves, partial(leaf_path, primals, range(len(primals))))
    trace = GraphTrace("linearize")
    try:
        zeros = [trace.input(backend.zeros_like(x)) if flag else None for x, flag in zip(leaves, live, strict=True)]
        value, tangent, *aux = evaluate_jvp(fun, _copy_arrays(leaves), spec, zeros, has_aux, kwargs)
    finally:
        trace.close()
    flat, tangent_spec = tree.flatten(tangent)
    recording = trace.recording(flat)
    aux = [owned_aux(strip_tracers(trace, aux.pop()), primals) for _ in aux[:]]
    results, out_spec = tree.flatten(value)
    del zeros, trace, value, tangent, flat
    own_results(results)
    copy_shared_constants(recording)
    derivative = Linearized(name_of(fun), leaves, spec, tangent_spec, recording)
    return (tree.unflatten(out_spec, as_results(results, primals)), derivative, *aux)


def hvp(fun: Callable[..., Any], primals: ArgumentList, tangents: ArgumentList, **kwargs: Any) -> tuple[Any, ...]:
    """Multiply the Hessian of a scalar function by a vector, without forming the Hessian.

    Forward mode runs over reverse mode: the product costs a small multiple of one gradient.

    Args:
        fun: a function returning one real scalar.
        primals: a tuple or list of its positional arguments.
        tangents: the vector, a tuple or list of the structure, shapes and dtypes of ``primals``.
        kwargs: passed to ``fun``, not differentiated.

    Returns:
        A tuple with a tree per primal.

    Raises:
        TypeError: as ``grad`` and ``jvp``.
        ValueError: a tangent of another shape.

    Example:
        >>> from funcgrad import hvp
        >>> hvp(lambda x, y: x * x * y, (3.0, 2.0), (1.0, 0.0))
        (np.float64(4.0), np.float64(6.0))
    """
    check_callable("hvp", fun)
    leaves, spec, flat = _pairs("hvp", primals, tangents)
    gradient = gradient_of_all("hvp", fun, len(primals))
    pushed: tuple[Any, ...] = evaluate_jvp(gradient, leaves, spec, flat, False, kwargs, (primals, tangents))[1]
    return pushed
