"""``debug_nans`` and ``strict``, which name the user's line that makes a bad number or loses a derivative."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn, ParamSpec, TypeVar, overload

from funcgrad import backend, blocks, core
from funcgrad.core import Primitive, Trace, Tracer
from funcgrad.errors import NanError, StructuralZeroError
from funcgrad.forward import ForwardTrace
from funcgrad.reverse import (
    CotangentAccumulator,
    Record,
    SparseCotangent,
    call_vjp,
    number_of,
    operation_of,
    parents_of,
    reachable,
    result_vjp,
    saved_by,
    vjp_of,
    with_parents,
    with_vjp,
)
from funcgrad.transforms.origins import Origin, Origins
from funcgrad.transforms.transformed import Transformed, check_callable

_MAX_NAMED_CUTS = 5  # largest number of cuts that a message names


class Cuts:
    """Operations that cut the derivatives of one trace."""

    def __init__(self) -> None:
        self._cuts: list[tuple[str, Origin | None, tuple[Record, ...]]] = []
        self._uses: dict[int, tuple[str, Origin]] = {}  # the first operation on a leaf, by the number of its record

    def note(self, trace: Trace, name: str, args: Sequence[Any], ans: Any, find: Callable[[], Origin]) -> None:
        """Note an operation on ``args`` with the result ``ans``."""
        nodes: tuple[Record, ...] = tuple(
            [a.node if trace.counter is not None else () for a in args if type(a) is Tracer and a._trace is trace]
        )
        outs = ans if type(ans) is tuple else (ans,)
        if not any(isinstance(out, Tracer) and out._trace is trace for out in outs):
            self._cuts.append((name, find(), nodes))
        elif any(node and vjp_of(node) is None and number_of(node) not in self._uses for node in nodes):
            origin = find()
            for node in nodes:
                if vjp_of(node) is None:
                    self._uses.setdefault(number_of(node), (name, origin))

    def check_outputs(
        self, call: str, nodes: Sequence[Record | None], names: Callable[[int], str], leaves: int
    ) -> None:
        """Check that a path leads from every leaf of a tape to the results.

        Raises:
            StructuralZeroError: a leaf has a structurally zero derivative.
        """
        reached = _reachable_numbers([node for node in nodes if node is not None])
        for number in range(leaves):
            if -number not in reached:
                self._refuse(call, number, names(number), self._cuts)

    def check(self, call: str, cts: Sequence[Any], names: Callable[[int], str]) -> None:
        """Check that every leaf has a cotangent; an error names what cut it.

        Args:
            call: the public call, for messages.
            cts: a cotangent per leaf, None for zero.
            names: returns the key path of a leaf, given its number.

        Raises:
            StructuralZeroError: a leaf has a structurally zero derivative.
        """
        watch = blocks.current_watcher()
        dropped = [] if watch is None else [(name, origin, (parent,)) for name, origin, parent in watch.dropped]
        for number, ct in enumerate(cts):
            if ct is None:
                self._refuse(call, number, names(number), [*self._cuts, *dropped])

    def check_tangents(self, call: str, results: Sequence[Any], tangents: Sequence[Any]) -> None:
        """Check that every floating result has a tangent, and that at least one result has one.

        Raises:
            StructuralZeroError: a result has a structurally zero tangent.
        """
        for i, (result, tangent) in enumerate(zip(results, tangents, strict=True)):
            if tangent is None and (backend.is_inexact(result) or all(t is None for t in tangents)):
                reason = _describe_cuts(self._cuts) if self._cuts else "it does not depend on the arguments"
                raise StructuralZeroError(
                    f"{call}: the tangent of result leaf {i} is zero whatever the arguments: {reason}. {_REMEDY}"
                )

    def _refuse(self, call: str, number: int, name: str, cuts: list[Any]) -> NoReturn:
        mine = [cut for cut in cuts if -number in _reachable_numbers(cut[2])]
        reason = _describe_cuts(mine) if mine else self._reason(number)
        raise StructuralZeroError(
            f"{call}: the derivative with respect to {name} is zero whatever its value: {reason}. {_REMEDY}"
        )

    def _reason(self, number: int) -> str:
        if -number in self._uses:
            name, origin = self._uses[-number]
            return f"the result does not depend on it, it was used first by {name} (at {origin})"
        return "it was never used"


_REMEDY = "Leave it out of what is differentiated (argnums), or leave strict out if zero is meant."


def _describe_cuts(cuts: Sequence[Any]) -> str:
    """Describe the operations that cut a derivative, each once."""
    known = [f"{name} (at {origin})" if origin is not None else name for name, origin, _ in cuts]
    said = list(dict.fromkeys(known))
    more = f", and {len(said) - _MAX_NAMED_CUTS} more" if len(said) > _MAX_NAMED_CUTS else ""
    return "cut by " + ", ".join(said[:_MAX_NAMED_CUTS]) + more


def _reachable_numbers(nodes: Sequence[Record]) -> set[int]:
    """Return the numbers of ``nodes`` and of all records that they depend on."""
    return {-place for place in reachable([node for node in nodes if node])}


P = ParamSpec("P")
R = TypeVar("R")

#: Origin of the operation whose rule is running, in a tuple; None outside of rules.
_rule_origin: ContextVar[tuple[Origin | None] | None] = ContextVar("rule_origin", default=None)


class _Watch:
    """Watcher of operations while they are recorded and while backward passes visit their records.

    Args:
        outer: the watcher around this one; this watcher makes the outer one's checks too.
        nans: whether a NaN or an infinity is an error.
        strict: whether a structurally zero derivative is an error: of every transform (``"all"``), of the next
            one (``"next"``) or of none.
        meter: the object that measures: ``meter.process(trace, primitive, args, params)`` lets a trace process an
            operation, ``meter.begin_pass()`` returns a function that calls the VJP rules of one backward pass.
    """

    def __init__(
        self, outer: blocks.Watcher | None, *, nans: bool = False, strict: str = "", meter: Any = None
    ) -> None:
        self.nans: bool = nans or (outer is not None and outer.nans)
        self.all: bool = strict == "all" or (outer is not None and outer.all)
        self.next, self.writes = strict == "next", True
        self.meter: Any = outer.meter if meter is None and outer is not None else meter
        self.origins = Origins()
        self.dropped: list[tuple[str, Origin | None, Record]] = []

    def begin(self, trace: Trace) -> Cuts | None:
        """Return an object to note the cuts of a new trace, or None if its cuts are not needed."""
        if not trace.differentiates or not (self.all or self.next):
            return None
        self.next = False
        return Cuts()

    def process(self, trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Let ``trace`` process the operation, and check the result."""
        outside = _rule_origin.get()
        if self.nans:
            origin = self.origins.find() if outside is None else outside[0]
            try:  # an interrupt may come after any call, so the first call that sets something is inside already
                _rule_origin.set((origin,))
                ans = self._run(trace, primitive, args, params)
            finally:
                _rule_origin.set(outside)
            if outside is None:
                _check_forward(_name(primitive, params), origin, args, ans)
            if origin is not None:
                known = origin
                ans = with_origin(trace, ans, lambda node: VjpWithOrigin(vjp_of(node), known))
        else:
            ans = self._run(trace, primitive, args, params)
        if trace.cuts is not None:
            trace.cuts.note(trace, _name(primitive, params), args, ans, self.origins.find)
        return ans

    def _run(self, trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if self.meter is None:
            return trace.process(primitive, args, params)
        return self.meter.process(trace, primitive, args, params)

    def note_stopped(self, trace: Trace, args: tuple[Any, ...]) -> None:
        """Note an operation that ``no_grad`` hides from ``trace``."""
        if trace.cuts is not None:
            trace.cuts.note(trace, "no_grad", args, None, self.origins.find)

    def backward_pass(self, pending: dict[int, Any]) -> _Pass:
        """Return the watcher of a backward pass that begins with the cotangents ``pending``."""
        return _Pass(self, pending)


def _name(primitive: Primitive, params: dict[str, Any]) -> str:
    name: str = getattr(params.get("rules"), "name", primitive.name)
    return name


class VjpWithOrigin:
    """VJP rule that knows the origin of its operation."""

    __slots__ = ("arrays", "operation", "origin", "parents", "vjp")

    def __init__(self, vjp: Any, origin: Origin) -> None:
        self.vjp, self.origin = vjp, origin
        self.operation, self.parents, self.arrays = vjp.operation, vjp.parents, vjp.arrays

    def __call__(self, ct: Any, node: Record) -> Any:
        """Return the result of the VJP rule."""
        return self.vjp(ct, node)


def with_origin(trace: Trace, ans: Any, vjp: Callable[[Record], VjpWithOrigin]) -> Any:
    """Return the results of an operation, with VJP rules that know the origin of the operation.

    ``vjp(node)`` returns the rule of a record. It is called once for each record that has no such rule yet.
    """
    made: dict[int, Record] = {}

    def replaced(node: Record) -> Record:
        if isinstance(vjp_of(node), VjpWithOrigin):
            return node
        number = number_of(node)
        if number not in made:
            made[number] = with_vjp(node, vjp(node))
        return made[number]

    for out in ans if type(ans) is tuple else (ans,):
        if trace.counter is not None and type(out) is Tracer and out._trace is trace:
            node = out.node
            if vjp_of(node) is result_vjp:
                out.node = with_parents(node, [replaced(*parents_of(node))])
            elif vjp_of(node) is not None:
                out.node = replaced(node)
    return ans


class _Pass:
    """One watched backward pass.

    Attributes:
        dropped: operation, origin and parent for each parent for which a VJP rule returned None.
    """

    def __init__(self, watch: _Watch, pending: dict[int, Any]) -> None:
        self._nans = watch.nans
        self._known_bad = {number for number, ct in pending.items() if watch.nans and _non_finite(ct)}
        self._watch = watch
        self._call = call_vjp if watch.meter is None else watch.meter.begin_pass()
        self.dropped: list[tuple[str, Origin | None, Record]] = []
        watch.dropped = self.dropped

    def vjp(self, ct: Any, node: Record) -> Any:
        """Call the VJP rule of ``node`` on ``ct`` and check the cotangents that it returns."""
        origin = getattr(vjp_of(node), "origin", None)
        before = _non_finite(ct) if self._nans else set()
        if before and number_of(node) not in self._known_bad:
            raise NanError(
                f"debug_nans: {_new_problem(before, set())} first appeared where the cotangents of the result "
                f"of {operation_of(node)} are added up: each is finite, {_called_from(origin)}. {_ADVICE}",
                operation_of(node),
            )
        outside = _rule_origin.get()
        try:
            _rule_origin.set((origin,))
            pulled = self._call(ct, node)
        finally:
            _rule_origin.set(outside)
        self._watch.dropped = self.dropped  # a pass inside the VJP rule has set its own list
        for parent, part in pulled:
            if part is None:
                self.dropped.append((operation_of(node), origin, parent))
            elif self._nans:
                self._check(ct, before, node, parent, part)
        return pulled

    def _check(self, ct: Any, before: set[str], node: Record, parent: Record, part: Any) -> None:
        after = _non_finite(part)
        if not after:
            return
        self._known_bad.add(number_of(parent))
        if bad := _new_problem(after, before if _NAN in before else before | _non_finite(saved_by(node))):
            name = operation_of(node)
            raise NanError(
                f"debug_nans: {bad} first appeared in the cotangent of an argument of {name}, "
                f"got {_describe_shapes(part)}; the cotangent that came in ({_describe_shapes(ct)}) and the values of "
                f"the forward pass have none, {_called_from(getattr(vjp_of(node), 'origin', None))}. {_ADVICE}",
                name,
            )


_ADVICE = (
    "Keep the arguments away from where the derivative is singular: replace them with where(...) before the operation, "
    "not its result after it."
)


def _called_from(origin: Origin | None) -> str:
    if origin is None:
        return "asked for in a line that is not known: the forward pass was run outside of debug_nans"
    return f"asked for {origin}"


def _check_forward(name: str, origin: Origin | None, args: tuple[Any, ...], ans: Any) -> None:
    """Check that a result and its tangent have no bad number that the arguments did not have."""
    after = _non_finite(ans)
    if after and (bad := _new_problem(after, _non_finite(args))):
        what = "value" if _new_problem(_non_finite(ans, tangents=False), _non_finite(args)) else "tangent"
        raise NanError(
            f"debug_nans: {bad} first appeared in the {what} of {name}, got arguments {_describe_shapes(args)} and "
            f"result {_describe_shapes(ans)}, {_called_from(origin)}. Keep the arguments where {name} is finite.",
            name,
        )


_NAN, _INFINITY = "a NaN", "an infinity"


def _new_problem(after: set[str], before: set[str]) -> str:
    """Name the number that is new: a NaN if there was none before, or an infinity if all was finite before."""
    if _NAN in after - before:
        return _NAN
    return _INFINITY if _INFINITY in after and not before else ""


def _non_finite(x: Any, *, tangents: bool = True) -> set[str]:
    """Return which of ``_NAN`` and ``_INFINITY`` the value ``x`` contains."""
    found = set()
    for value in values_in(x, tangents):
        xp = backend.namespace_of(value)
        if xp is None or backend.dtype_of(value).kind not in "fc":
            continue
        if backend.is_jax_tracer(value):
            continue  # inside JAX's transforms the numbers are unknown
        if not xp.isfinite(value).all():
            found |= {kind for kind, test in ((_NAN, xp.isnan), (_INFINITY, xp.isinf)) if test(value).any()}
    return found


def values_in(x: Any, tangents: bool = True) -> Iterator[Any]:
    """Yield the arrays and numbers in ``x``: in containers, in tracers of any depth, in sparse cotangents."""
    waiting = [x]
    while waiting:
        x = waiting.pop()
        if type(x) is tuple or type(x) is list or isinstance(x, SparseCotangent):
            waiting.extend(x)
        elif type(x) is CotangentAccumulator:
            waiting.extend(x.entries)
        elif type(x) is dict:
            waiting.extend(x.values())
        elif isinstance(x, Tracer):
            waiting.append(x._val)
            if tangents and isinstance(x._trace, ForwardTrace):
                waiting.append(x.tangent)
        elif hasattr(x, "dtype") or type(x) is float or type(x) is complex:
            yield x


def saved_values(saved: Any) -> Iterator[Any]:
    """Yield the values that a record saved, in containers of any depth."""
    waiting, seen = [saved], set[int]()
    while waiting:
        x = waiting.pop()
        if type(x) is not tuple and type(x) is not list and type(x) is not dict:
            yield x
        elif id(x) not in seen:
            seen.add(id(x))
            waiting.extend(x.values() if type(x) is dict else x)


def _describe_shapes(x: Any) -> str:
    if isinstance(x, SparseCotangent):
        return "a part of an array"
    if type(x) is tuple or type(x) is list:
        return ", ".join(_describe_shapes(v) for v in x if v is not None) or "nothing"
    return core.describe(x)


class _Block(blocks.Block):
    """Block with a watcher. Several threads may be inside the same block."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any] | None, **options: Any) -> None:
        self._call = call
        blocks.Block.__init__(self, lambda state: state._replace(watcher=_Watch(state.watcher, **options)))

    def __call__(self, fun: Callable[P, R]) -> Callable[P, R]:
        if self._call is None:
            raise TypeError("not a decorator")
        wrapped: Callable[P, R] = self._call(fun)
        return wrapped


@overload
def debug_nans() -> _Block: ...
@overload
def debug_nans(fun: Callable[P, R]) -> Callable[P, R]: ...


def debug_nans(fun: Callable[..., Any] | None = None) -> Any:
    """Raise an error at the first NaN or infinity, naming the operation, the user's line and the pipeline stage.

    ``debug_nans`` is a context manager, a decorator, and a transform of a function. It checks operations on values that
    are being transformed, and every cotangent of backward passes. A bad number is an error where it first appears: a
    NaN where there was none before, an infinity where all was finite. A constant such as the ``-inf`` of a mask is no
    error. A pullback that was recorded inside such a block names the lines of its operations, in other errors too.

    The block applies to its own thread and context only.

    Args:
        fun: the function to run in the block; left out in ``with debug_nans():`` and ``@debug_nans()``.

    Raises:
        FloatingPointError: a ``NanError``, from code that runs inside.

    Example:
        >>> from funcgrad import debug_nans, grad
        >>> norm = lambda x: fnp.sqrt(fnp.sum(x * x))
        >>> try:
        ...     with debug_nans(), np.errstate(all="ignore"):
        ...         grad(norm)(np.zeros(2))
        ... except FloatingPointError as error:
        ...     print(str(error).partition(":")[0], error.operation)
        debug_nans sqrt
    """
    if fun is None:
        return _Block(debug_nans, nans=True)
    check_callable("debug_nans", fun)
    return Transformed(run_debug_nans, fun, None, "{fun}, where a NaN or an infinity is an error.")


def run_debug_nans(fun: Callable[..., Any], options: None, args: Any, kwargs: Any) -> Any:
    """Run a call of ``debug_nans(fun)``."""
    with _Block(None, nans=True):
        return fun(*args, **kwargs)


@overload
def strict() -> _Block: ...
@overload
def strict(fun: Callable[P, R]) -> Callable[P, R]: ...


def strict(fun: Callable[..., Any] | None = None) -> Any:
    """Raise an error for a derivative that is zero whatever the values are, naming what cut it, and where.

    ``strict`` is a context manager, a decorator, and a transform of a function. It applies to every ``grad``,
    ``value_and_grad``, ``vjp`` and ``jvp`` that begins inside, also inside other transforms. Each differentiated leaf
    must have a derivative; in forward mode each floating result must have one.

    Args:
        fun: the function to run in the block; left out in ``with strict():`` and ``@strict()``.

    Raises:
        TypeError: a ``StructuralZeroError``, from code that runs inside.

    Example:
        >>> from funcgrad import grad, strict
        >>> try:
        ...     with strict():
        ...         grad(lambda x: fnp.floor(x) * 2.0)(1.5)
        ... except TypeError as error:
        ...     print(str(error).partition(" (at")[0])
        grad: the derivative with respect to argument 0 is zero whatever its value: cut by floor
    """
    if fun is None:
        return _Block(strict, strict="all")
    check_callable("strict", fun)
    return Transformed(run_strict, fun, None, "{fun}, where a structurally zero derivative is an error.")


def run_strict(fun: Callable[..., Any], options: None, args: Any, kwargs: Any) -> Any:
    """Run a call of ``strict(fun)``."""
    with _Block(None, strict="all"):
        return fun(*args, **kwargs)


def watched_pass() -> _Block:
    """Return the block of a backward pass that notes where its cotangents end."""
    return _Block(None)


def meter_block(meter: Any) -> _Block:
    """Return the block in which ``meter`` measures operations and VJP rules, see ``_Watch``."""
    return _Block(None, meter=meter)


def strict_block() -> _Block:
    """Return the block of one transform with ``strict=True``: it affects only the next trace that begins inside."""
    return _Block(None, strict="next")
