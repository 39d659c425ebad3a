"""The core of the engine: primitives, tracers, traces, and ``bind``, which applies a primitive to tracers.

A *primitive* is an operation that the library knows how to compute and to interpret. A *trace* is one
run of one transform (one ``grad``, one ``vmap``, ...). A *tracer* represents a value inside a trace. The
tracer holds that value, which may itself be a tracer of an outer trace.

``bind(primitive, args, params)`` finds the innermost trace among the arguments and lets that trace process
the operation. The trace takes the values out of its own tracers, binds the primitive again on these values,
one level further out, and wraps the result. When no tracer is left, the primitive is evaluated.

Each trace has a number, its level, which is higher for a later trace. An inner transform begins later, so the
highest level among the arguments belongs to the innermost trace. Levels are never used twice and there is no
stack to push or pop, so threads, generators, coroutines and exceptions cannot confuse two traces.

The *aval*, or abstract value, holds the facts about a value, without its numbers, that the fast paths of operations
need: the shape of an array of doubles, the type of a number. It is None for other values, which take the general path.

This module does not know what a derivative is.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from operator import attrgetter
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, NoReturn
from weakref import ref

import numpy as np

from funcgrad import backend, blocks, heap
from funcgrad.errors import EscapedTracerError, InputError, NotDifferentiableError, typed_repr
from funcgrad.ownership import SMALL, unshare
from funcgrad.shared_state import all_repetitions, open_traces, repetitions, write_lock

if TYPE_CHECKING:
    from funcgrad.reverse import VJP

next_level = itertools.count(1).__next__


ndarray = np.ndarray
float64 = np.float64
DOUBLE, SINGLE, COMPLEX = np.dtype(float64), np.dtype(np.float32), np.dtype(np.complex128)
REAL = frozenset((DOUBLE, SINGLE))
#: Value of ``Tracer.alias`` that marks a value as read-only.
READ_ONLY: Final = object()
_INTEGERS = frozenset((bool, int))
_PYTHON_NUMBERS = _INTEGERS | {float, complex}
_DOUBLES = frozenset((int, float, float64))


class Trace:
    """One run of one transform. Subclasses define what the transform does to a primitive.

    Attributes:
        level: the number of the run; the innermost trace among the arguments of an operation has the highest level.
        open: whether the transform still runs; a tracer that is used after the run has escaped.
        fast: whether operations may take the fast path. False after the run has ended, or while a block such as
            ``no_grad`` may change operations; then ``bind`` checks both, see ``_bind_checking_blocks``.
        counter: the iterator that numbers the records, in reverse mode; None in other modes.
        fast_counter: ``counter`` while ``fast``, else None. Operations read this one attribute to learn both.
        cuts: the places where the derivative was cut, noted if a watcher requests them; else None.
        thread: the identifier of the thread in which the transform runs.
    """

    __slots__ = ("__weakref__", "counter", "cuts", "fast", "fast_counter", "level", "open", "thread")

    #: Name of the trace's tracers in texts that users see.
    tracer_name = "Tracer"
    #: Whether ``no_grad`` stops this kind of trace (``no_grad`` stops derivatives, not ``vmap``).
    differentiates = False
    #: Whether the trace makes records, numbered 0, -1, -2 and so on.
    makes_records = False
    #: Number of leading axes of a tracer's value that the transformed function does not see.
    hidden_axes = 0
    #: Whether the recorded program must give the same bits as a run without tracers, see ``compiled.capture``. Rules
    #: then treat a tracer as they treat the ndarray that the tracer holds.
    is_bit_exact = False
    #: Whether the tracers hold JAX values, or values for which XLA computes what a run without this trace computes.
    runs_jax = False
    #: Whether the tracers represent NumPy arrays although another library computes: requests for numbers are answered.
    as_numpy = False
    #: Namespace that the tracers give to array-API code, in place of ``funcgrad.numpy``; None for ``funcgrad.numpy``.
    namespace: Any = None

    def __init__(self) -> None:
        if heap.not_configured:
            heap.configure_malloc()
        counter: Any = itertools.count(0, -1) if self.makes_records else None
        self.level = next_level()
        self.open = True
        self.thread = get_ident()
        self.fast = True
        self.fast_counter = self.counter = counter
        self.cuts: Any = None
        if blocks.last_entered() is not None:
            state = blocks.current()
            if state.watcher is not None:
                self.cuts = state.watcher.begin(self)
            if state.watcher is not None or state.runner is not None:
                self.leave_fast_path()
        open_traces[self.level] = ref(self)  # last, so that an interrupt before this line leaves nothing behind

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Interpret ``primitive`` on ``args``: at least one is a tracer of this trace, none is of an inner trace."""
        raise NotImplementedError

    def close(self) -> None:
        """Mark the transform as finished."""
        open_traces.pop(self.level, None)
        self.open = self.fast = False
        self.fast_counter = None

    def leave_fast_path(self) -> None:
        """Send operations to the general path until ``resume_fast_path`` is called."""
        self.fast, self.fast_counter = False, None

    def may_write_directly(self) -> bool:
        """Whether writes may change arrays in place: the run goes on or is repeated, and no block observes writes."""
        return self.fast or ((self.open or join_repetition(self.level)) and not blocks.current().observes_writes())

    def resume_fast_path(self) -> None:
        """Let operations take the fast path again, unless the run has ended or a block is open."""
        if self.open and blocks.none_open():
            self.fast, self.fast_counter = True, self.counter
            if blocks.open_exits:  # another thread entered a block meanwhile
                self.leave_fast_path()

    def shallow_copy_of(self, x: Tracer) -> Any:
        """Return a shallow copy of ``x``, a tracer of this trace. The caller holds the lock ``write_lock``."""
        return tracer_of(x._val, self, x.link)


class Tracer:
    """Placeholder for a value inside a trace, with the operators and methods of an ndarray.

    Programs may write to arrays that they made, ``x[0] = y``. After a write, this object refers to another value,
    perhaps of another trace (see ``writable``). To allow that, all kinds of traces share this one class of tracers.
    Only the program itself holds an object that it can write to: see ``bind``, and ``shared_state`` for threads.

    ``tracer_of`` makes a tracer empty and then fills it, and so does code that must be fast: a constructor is slower.

    Attributes:
        _val: the value: an array, a number, or a tracer of an outer trace. The attribute is not called ``value``
            because quantities with units look for a ``value`` in the other operand.
        _trace: the run of a transform that this tracer belongs to (an ndarray has a method ``trace``).
        aval: the aval of the value, see ``aval_of``; None for tracers, and until first use.
        link: what else the trace knows about the value: in reverse mode the record, also called ``node``; in forward
            mode the ``tangent``; on a graph the ``slot``; None in a batch.
        alias: how the value shares memory with others, see ``writable``; None if nothing is noted.
    """

    __slots__ = ("__weakref__", "_trace", "_val", "alias", "aval", "link")

    _val: Any
    _trace: Any
    aval: Any
    link: Any
    node: Any
    tangent: Any
    slot: Any
    alias: Any

    def _class(self) -> type:
        """Return the class that ``isinstance`` finds: the class of the array or number that the tracer represents.

        A function therefore takes the same branch with and without a transform. Only ``type`` reveals the tracer, and
        ``repr``, which is for people.
        """
        value, as_numpy = self._val, self._trace.as_numpy
        while type(value) is Tracer:
            value, as_numpy = value._val, as_numpy or value._trace.as_numpy
        kind = type(value)
        if not issubclass(kind, (np.ndarray, np.generic, float, complex, int)):
            if not as_numpy:  # a JAX value: JAX recognises its arrays by more than their class
                return type(self)
            kind = np.ndarray if self.shape else self.dtype.type
        elif kind is np.ndarray and value.shape and not self.shape:  # a batch with one number for each example
            kind = value.dtype.type
        if not issubclass(kind, np.ndarray) and self.alias not in (None, READ_ONLY):
            kind = np.ndarray  # without axes: a number has no memory, see ``writable.as_array``
        return kind

    __class__ = property(_class)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes, as the function being transformed sees them."""
        if type(self.aval) is tuple:
            return self.aval
        value, hidden = self._val, self._trace.hidden_axes
        known = type(value) is np.ndarray or type(value) is Tracer
        whole: tuple[int, ...] = value.shape if known else backend.shape_of(value)
        return whole[hidden:]

    @property
    def dtype(self) -> Any:
        """NumPy dtype."""
        value = self._val
        return value.dtype if type(value) is np.ndarray else backend.dtype_of(value)


for _name in ("node", "tangent", "slot"):  # names of ``link`` in the several kinds of traces
    setattr(Tracer, _name, Tracer.__dict__["link"])


def tracer_of(value: Any, trace: Trace, link: Any = None, aval: Any = None) -> Tracer:
    """Make the tracer of a value of ``trace``."""
    made = Tracer()
    made._val, made._trace, made.link, made.aval, made.alias = value, trace, link, aval, None
    return made


def shallow_copy(x: Any) -> Any:
    """Return a shallow copy of a tracer: another object for the same value. Return anything else unchanged.

    Ownership: a program can write to the objects that it holds. A transform, a tape or a graph therefore keeps shallow
    copies of these objects, and returns shallow copies of its own values. Values enter a trace through ``leaf`` or,
    during the run, through ``bind``. Values leave a transform through this function.
    """
    if type(x) is not Tracer:
        return x
    with write_lock:
        made = x._trace.shallow_copy_of(x)
    return made


def own_results(values: list[Any]) -> list[Any]:
    """Replace arrays that others may hold by copies, in place; return ``values``.

    This function is the last step of every transform, whose results belong to the caller alone. A local variable counts
    as a holder, so drop local variables before the call; else their arrays are copied.

    Example:
        >>> held = np.ones(2)
        >>> mine, same = own_results([held, held])
        >>> mine is held, mine is same
        (False, False)
    """
    are_large = False
    for i in range(len(values)):
        if type(values[i]) is ndarray:
            if values[i].size > SMALL:
                are_large = True
            else:
                values[i] = values[i].copy("K")  # takes no longer than to check whether others hold it
    return unshare(values) if are_large else values


def aval_of(v: Any) -> Any:
    """Return the aval of a value, or of the value inside a tracer, as the transformed function sees the value.

    Example:
        >>> aval_of(np.ones((2, 3))), aval_of(np.ones(2, np.float32)), aval_of(2.0)
        ((2, 3), None, <class 'float'>)
    """
    while type(v) is Tracer and v._trace.differentiates:
        v = v._val
    if type(v) is ndarray:
        return v.shape if v.dtype is DOUBLE else None
    if type(v) is float64 or type(v) is float:
        return type(v)
    if type(v) is Tracer and v._trace.hidden_axes:
        whole = aval_of(v._val)
        return whole[1:] if type(whole) is tuple else None
    return v.aval if type(v) is Tracer else None


def is_array(x: Any) -> bool:
    """Whether ``x`` is an array, a number or a tracer: an argument that operations can take."""
    return isinstance(x, Tracer) or backend.is_value(x)


def is_plain_float(x: Any) -> bool:
    """Whether ``x`` is one real floating array or number, as most leaves are; it needs no further check."""
    kind = type(x)
    if kind is not ndarray:
        return kind is float or kind is float64
    dtype = x.dtype
    return dtype is DOUBLE or (dtype.kind == "f" and dtype.isnative)


def common_aval(v: Any, w: Any, floats: frozenset[type]) -> Any:
    """Return the aval of the result for two values if nothing broadcasts or promotes, else None.

    ``floats`` are types of numbers for which the operation is a Python operator.
    """
    while type(v) is Tracer and v._trace.differentiates:  # inline, because a call of aval_of takes as long
        v = v._val
    while type(w) is Tracer and w._trace.differentiates:
        w = w._val
    if type(v) is ndarray:
        return v.shape if type(w) is ndarray and v.dtype is w.dtype is DOUBLE and v.shape == w.shape else None
    if type(v) is float64:
        return float64 if type(w) is float64 or type(w) is float else None
    if type(v) is float:
        return float64 if type(w) is float64 else float if type(w) is float in floats else None
    found = aval_of(v)
    return found if found is not None and found == aval_of(w) else None


def are_doubles(values: Sequence[Any]) -> bool:
    """Whether all values are numbers and at least one is a NumPy double."""
    kinds = set(map(type, values))
    return float64 in kinds and _DOUBLES.issuperset(kinds)


class _Doubles(dict[float, ndarray]):
    """Cache of numbers as arrays without axes, made at first lookup."""

    def __missing__(self, number: float) -> ndarray:
        made = np.array(number, DOUBLE)
        if number:  # 0 is not cached: 0.0 and -0.0 are the same key
            if len(self) >= 1_000:
                self.clear()
            self[number] = made
        return made


#: Replacement for a number next to arrays of doubles: NumPy takes an array without axes in half the time.
zero_dim_doubles = _Doubles()


def promoted_constant(v: Any, constant: Any, aval: Any, floats: frozenset[type], converts: bool) -> Any:
    """Return the replacement for ``constant`` next to the value ``v``; None if the two promote or broadcast.

    Args:
        v: the value of the traced operand.
        constant: the other operand.
        aval: the aval of ``v``, None if it is unknown.
        floats: types of numbers for which the operation is a Python operator.
        converts: whether the operation may get an array without axes in place of a number.
    """
    kind = type(constant)
    if aval is None:
        aval = aval_of(v)
    if aval is float:
        return constant if kind is float64 or ((kind is float or kind is int) and float in floats) else None
    if kind is float or kind is int:
        if aval is not None:
            return zero_dim_doubles[constant] if converts and type(v) is ndarray else constant
        if type(v) is ndarray and v.dtype is SINGLE and converts:
            return np.array(constant, SINGLE)
        return None
    if kind is float64:
        return None if aval is None else constant
    if kind is ndarray and constant.dtype is DOUBLE and type(aval) is tuple:
        return constant if constant.shape == aval or not constant.shape else None
    return None


class Primitive:
    """An operation, with all that the several kinds of traces need to know about the operation.

    Only the kinds (``funcgrad.kinds``) make primitives, from a few rules.

    Args:
        name: the name of the operation in messages and graphs.
        impl: ``impl(xp, *args, **params)`` computes the operation with the array namespace ``xp``; None means
            that ``getattr(xp, name)(*args, **params)`` computes it.
        reverse: ``reverse(args, traced, params) -> (ans, vjp, saved)``, or None if the operation has no derivative.
            ``traced`` are the positions to differentiate; the VJP rule ``vjp(ct, record)`` gives a cotangent
            for each position; ``saved`` are the values that the record saves for the rule, see ``reverse``.
        forward: ``forward(args, tangents, params) -> (ans, tangent)``, a tangent of None meaning zero.
        batch: ``batch(size, args, batched, params) -> (ans, batched)``; batch axes come first. The flags ``batched``
            say which arguments are batched; in the result, whether it is batched, or which of several results are.
        multiple: whether the result is a tuple of arrays.
        data_dependent: whether shape or dtype of a result depend on the values of the arguments. A captured graph
            is then valid only while shape and dtype stay the same.
        runs_user_code: whether the operation runs user functions. These may hold values of the ``vmap`` around them, so
            ``batch`` receives the trace of the ``vmap`` in place of ``size``.
        reuse: ``reuse(x, *args, **params)`` computes the same result in the memory of ``x``, an unshared array;
            None if the operation would not gain from that.
    """

    __slots__ = (
        "_kernels",
        "arithmetic",
        "batch",
        "call",
        "data_dependent",
        "foreign",
        "forward",
        "impl",
        "multiple",
        "name",
        "number_primitive",
        "operator",
        "reuse",
        "reverse",
        "runs_user_code",
    )

    def __init__(
        self,
        name: str,
        impl: Callable[..., Any] | None,
        reverse: Callable[..., tuple[Any, VJP | None, Sequence[Any]]] | None,
        forward: Callable[..., tuple[Any, Any]] | None,
        batch: Callable[..., tuple[Any, Any]],
        *,
        multiple: bool = False,
        data_dependent: bool = False,
        runs_user_code: bool = False,
        reuse: Callable[..., Any] | None = None,
    ) -> None:
        self.name = name
        self.impl = impl
        self.reverse = reverse
        self.forward = forward
        self.batch = batch
        self.multiple = multiple
        self.data_dependent = data_dependent
        self.runs_user_code = runs_user_code
        self.call: Callable[..., Any] = lambda *args, **params: bind(self, args, params)
        #: Function for arguments that are not values, such as a sparse matrix; it returns None if it cannot take them.
        self.foreign: Callable[..., Any] | None = None
        #: Name, in Python's module ``operator``, of the binary operator that computes the same.
        self.operator: str | None = None
        #: Whether the result on Python numbers alone is a Python number, like the result of a Python operator.
        self.arithmetic = False
        #: Primitive for numbers if Python's operator, unlike NumPy's function, raises errors or gives complex results.
        self.number_primitive: Primitive | None = None
        self.reuse = reuse
        self._kernels: dict[Any, Callable[..., Any]] = {}

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the primitive as the module and the name of its operation, because its rules are code.

        Raises:
            InputError: the operation is not an attribute of its module.
        """
        module = sys.modules.get(home := getattr(self.call, "__module__", ""))
        for name, operation in list(vars(module).items() if module is not None else ()):
            if getattr(operation, "primitive", None) is self:
                return _named, (home, name)
            parts = vars(operation) if hasattr(operation, "primitive") else {}  # such as ``whole``, with hidden results
            for part, inner in parts.items():
                if getattr(inner, "primitive", None) is self:
                    return _named, (home, f"{name}.{part}")
        raise InputError(
            f"pickle: an operation is stored by its name in a module, got {self!r}, which stands in none. Define it "
            "at the top of a module, or store the function and run it again."
        )

    def kernel(self, xp: Any) -> Callable[..., Any]:
        """Return the function of the array namespace ``xp`` that computes this primitive."""
        found = self._kernels.get(xp)
        if found is None:
            found = self._kernels[xp] = self._make_kernel(xp)
        return found

    def prefer(self, fast_kernel: Callable[..., Any], arity: int) -> None:
        """Use ``fast_kernel``, a faster equivalent of NumPy's function, if the arguments are ``arity`` ndarrays."""
        general = self.kernel(np)

        def kernel(*args: Any, **params: Any) -> Any:
            plain = len(args) == arity and all(type(a) is np.ndarray for a in args)
            return (fast_kernel if plain else general)(*args, **params)

        self._kernels[np] = kernel

    def _make_kernel(self, xp: Any) -> Callable[..., Any]:
        impl = self.impl
        if impl is None and hasattr(xp, self.name):
            named: Callable[..., Any] = getattr(xp, self.name)
            return named
        if impl is None:
            raise InputError(
                f"{self.name}: {xp.__name__} has no function of this name, got no impl. Give one: impl(xp, *arrays)."
            )
        if xp is np:
            return partial(impl, np)
        refusal = (
            f"{self.name}: it computes with NumPy only, got an array of {xp.__name__}. Pass NumPy arrays, or define "
            "it with an impl(xp, *arrays) that handles both."
        )

        def guarded(*args: Any, **params: Any) -> Any:
            if getattr(impl, "numpy_only", False):
                raise InputError(refusal)
            try:
                return impl(xp, *args, **params)
            except TypeError as error:
                if type(error).__name__ == "TracerArrayConversionError":  # JAX raises it for its tracers
                    raise InputError(refusal) from error
                raise

        return guarded

    def evaluate(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Compute the primitive on plain values."""
        for position, arg in enumerate(args):
            if not (backend.is_value(arg) or backend.is_date_or_text(arg)):
                raise InputError(f"{self.name}: argument {position} {'. '.join(backend.problem_and_remedy(arg))}")
        if blocks.last_entered() is not None and (runner := blocks.current().runner) is not None:
            return runner.run(self, args, params)
        return self.compute(args, params)

    def call_lowered(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Compute on values from tracers, visibly to blocks. Arithmetic on Python numbers gives a Python number."""
        plain = blocks.last_entered() is None
        numbers = self.arithmetic and _PYTHON_NUMBERS.issuperset(map(type, args))
        if numbers and self.number_primitive is not None and not _INTEGERS.issuperset(map(type, args)):
            return (
                self.number_primitive.kernel(np)(*args, **params)
                if plain
                else bind(self.number_primitive, args, params)
            )
        ans = self.call(*args, **params) if plain or Tracer in map(type, args) else bind(self, args, params)
        return ans.item() if numbers and issubclass(type(ans), np.generic) else ans

    def compute(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Call the kernel."""
        return self.kernel(backend.namespace(args))(*args, **params)


def _named(home: str, name: str) -> Any:
    return attrgetter(name)(import_module(home)).primitive


def bind(primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Apply ``primitive`` in the innermost trace among ``args``, the array arguments; ``params`` are static."""
    top: Trace | None = None
    nested = False
    for arg in args:
        if isinstance(arg, Tracer):
            trace = arg._trace
            if top is None:
                top = trace
            elif trace is not top:
                nested = True
                if trace.level > top.level:
                    top = trace
    if top is None:
        return primitive.evaluate(args, params)
    if nested:  # the innermost trace may keep its arguments, and the program may write to the objects it holds
        args = tuple([a if not isinstance(a, Tracer) or a._trace is top else shallow_copy(a) for a in args])
    return top.process(primitive, args, params) if top.fast else _bind_checking_blocks(top, primitive, args, params)


def _bind_checking_blocks(top: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Apply ``primitive`` in ``top``, which is not ``fast``: the run has ended, or a block may change operations."""
    if not top.open and not join_repetition(top.level):
        raise_escaped(type(top))
    state = blocks.current()
    if top.differentiates and top.level < state.min_level:
        # inside no_grad, the tracers of an older derivative trace are constants
        lowered = tuple(a._val if isinstance(a, Tracer) and a._trace is top else a for a in args)
        if state.watcher is not None:
            state.watcher.note_stopped(top, args)
        return primitive.call_lowered(lowered, params)
    if state.gate is not None and (others := state.gate.arguments(args)) is not args:
        return bind(primitive, others, params)
    if state.watcher is not None:
        return state.watcher.process(top, primitive, args, params)
    top.resume_fast_path()
    return top.process(primitive, args, params)


def call_operation(call: Callable[..., Any], args: Sequence[Any], params: dict[str, Any]) -> Any:
    """Compute the operation ``call`` one level out, visibly to blocks. Rules of primitives use this function."""
    if blocks.last_entered() is None or Tracer in map(type, args):  # an operation on tracers asks for blocks itself
        return call(*args, **params)
    return bind(call.primitive, tuple(args), params)  # type: ignore[attr-defined]


def join_repetition(level: int) -> bool:
    """Join the repetition of the finished run with this level: note this thread, and return whether there is one."""
    for run in repetitions.get():
        if run.start <= level < run.below and run.thread == get_ident():
            return True
    found = [run for run in tuple(all_repetitions) if run.start <= level < run.below]
    for run in found:
        run.joined_by_threads = True
    return bool(found)


def is_in_transform() -> bool:
    """Whether a transformed function is running in this thread, so that it may write traced values to a new array.

    A thread that the function starts is not recognised: a context variable would make every ufunc slower.
    """
    if open_traces:
        here = get_ident()
        for known in list(open_traces.values()):
            trace = known()
            if trace is not None and trace.thread == here:
                return True
    return bool(repetitions.get())  # a pullback repeats a part of a run


def raise_escaped(kind: type[Trace]) -> NoReturn:
    """Raise the error for a tracer whose transform, a run of this kind, has finished."""
    name = kind.__name__.removesuffix("Trace").lower()
    raise EscapedTracerError(
        f"a tracer, the stand-in for an array, of a finished {name} transform was used. It was kept in a global, a "
        "closure, an object, a generator or a container that outlives the transformed function. Return the value "
        "instead (has_aux=True for what is not the result), or keep stop_gradient(x)."
    )


def check_open(x: Tracer) -> None:
    """Raise an error if the transform of ``x`` has finished."""
    if not x._trace.open and not join_repetition(x._trace.level):
        raise_escaped(type(x._trace))


def refuse_escaped(results: Iterable[Any]) -> None:
    """Refuse results of a transformed function that are tracers of a finished transform, as from a cache.

    They do not depend on the arguments of this call, so their derivative would be 0.
    """
    for x in results:
        if type(x) is Tracer:
            check_open(x)


def refuse_closure(
    trace: Trace,
    primitive: Primitive,
    results: Sequence[Any],
    params: dict[str, Any] | None = None,
    inside: Sequence[Any] = (),
) -> None:
    """Refuse results of a call with custom rules that depend on ``trace``, or an inner trace, through a closure.

    The rules differentiate in the arguments only, so the derivative in a value that the function closes over would
    be lost. ``inside`` are the values in the arguments: results may depend on the inner traces of these.
    """
    found = [x._trace for x in results if isinstance(x, Tracer) and x._trace.level >= trace.level]
    if found and not set(found) <= set(traces_of(inside)):
        raise_closure(getattr((params or {}).get("rules"), "name", primitive.name))


def traces_of(values: Iterable[Any]) -> Iterator[Trace]:
    """Yield the traces that ``values`` belong to, for each value the innermost trace first."""
    for x in values:
        while isinstance(x, Tracer):
            yield x._trace
            x = x._val


def replace_at(leaves: Sequence[Any], indices: Sequence[int], values: Iterable[Any]) -> list[Any]:
    """Return ``leaves`` with ``values`` at ``indices``."""
    found = list(leaves)
    for index, value in zip(indices, values, strict=True):
        found[index] = value
    return found


def are_tracers_of(trace: Trace, values: Sequence[Any]) -> list[bool]:
    """Return for each of ``values`` whether it is a tracer of ``trace``."""
    return [type(x) is Tracer and x._trace is trace for x in values]


def raise_closure(name: str) -> NoReturn:
    """Raise the error for a function with custom rules that closes over a tracer, which the rules do not know."""
    raise NotDifferentiableError(
        f"{name}: a function with derivative rules of its own closes over a value that is being transformed, got one "
        "that is no argument. Pass the value as an argument."
    )


def plain_value(x: Any) -> Any:
    """Return the plain value inside all tracers of ``x``."""
    while isinstance(x, Tracer):
        x = x._val
    return x


def describe(x: Any) -> str:
    """Describe a value for messages: by dtype and shape, or else by type and ``repr``.

    Example:
        >>> describe("text")
        "str 'text'"
        >>> import numpy as np
        >>> describe(np.ones((2, 3)))
        'float64[2, 3]'
    """
    if isinstance(x, Tracer) or (hasattr(x, "dtype") and hasattr(x, "shape")):
        return f"{x.dtype}{list(x.shape)}"
    return typed_repr(x)
