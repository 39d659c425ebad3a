"""The heart: primitives, tracers, traces, and ``bind``, which brings them together.

A *primitive* is an operation that the library knows how to compute and to interpret. A *trace* is one
run of one transform (one ``grad``, one ``vmap``, ...). A *tracer* stands for a value inside a trace:
it holds the value the trace looks at, which may itself be a tracer of an outer trace.

``bind(primitive, args, params)`` finds the innermost trace among the arguments and lets it process the
operation. That trace takes its own tracers apart, binds the primitive again on what they hold, one
level further out, and wraps the result. Where no tracer is left, the primitive is evaluated.

Levels: a trace's level is its birth number. A transform that runs inside another was born later, so
the highest level among the arguments is the innermost one. Numbers are never used twice and there is
no stack to push or pop, so threads, generators, coroutines and exceptions cannot confuse two traces.

Nothing here knows what a derivative is.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol
from weakref import ref

import numpy as np

from funcgrad import backend, blocks, heap
from funcgrad.errors import EscapedTracerError, InputError, NotDifferentiableError, shown
from funcgrad.running import changing, open_traces, repeating, repeating_anywhere

if TYPE_CHECKING:
    from funcgrad.reverse import Pull

__all__ = [
    "READ_ONLY",
    "BatchRule",
    "ForwardRule",
    "Primitive",
    "ReverseRule",
    "Trace",
    "Tracer",
    "bind",
    "computed",
    "describe",
    "refuse_closure",
    "repeated",
    "tracer_of",
    "traces_of",
    "twin",
]

next_level = itertools.count(1).__next__


#: The ``alias`` of values that are read-only.
READ_ONLY: Final = object()
_WHOLE = frozenset((bool, int))
_PYTHON = _WHOLE | {float, complex}


class Trace:
    """One run of one transform. Subclasses say what the transform does to a primitive.

    Attributes:
        level: the birth number; among the arguments of an operation the highest is the innermost.
        open: whether the transform still runs; a tracer met later has escaped.
        live: whether operations go on without asking anybody. Not where the run is over, or where a block such as
            ``no_grad`` may have a say: then ``bind`` asks, see ``_ask``.
        counter: of reverse mode what gives the numbers of records, else None.
        numbers: the same, but None where the run is not live: one look tells operations both.
        cuts: where its derivative was cut, when a watcher looks for that; else None.
        thread: the thread it runs in.
    """

    __slots__ = ("__weakref__", "counter", "cuts", "level", "live", "numbers", "open", "thread")

    #: What its tracers are called where they show.
    shown = "Tracer"
    #: Whether ``no_grad`` stops this kind of trace (it stops derivatives, not ``vmap``).
    differentiates = False
    #: Whether it makes records, numbered 0, -1, -2 and so on.
    numbered = False
    #: So many axes of the value of a tracer, the first, the function does not see.
    hidden = 0
    #: Whether what is recorded must give the same bits as a run without tracers: rules may do with a tracer what they
    #: do with the ndarray it holds.
    repeats = False
    #: Whether its tracers hold values of JAX, or such as XLA computes as in a run without it.
    runs_jax = False
    #: Whether its tracers stand for arrays of NumPy though another library computes: asked for numbers they answer.
    as_numpy = False
    #: The namespace that its tracers give to code for any array library, in place of ``funcgrad.numpy``.
    namespace: Any = None

    def __init__(self) -> None:
        if heap.unasked:
            heap.keep()
        counter: Any = itertools.count(0, -1) if self.numbered else None
        self.level = next_level()
        self.open = True
        self.thread = get_ident()
        self.live = True
        self.numbers = self.counter = counter
        self.cuts: Any = None
        if blocks.here() is not None:
            state = blocks.current()
            if state.watch is not None:
                self.cuts = state.watch.begin(self)
            if state.watch is not None or state.runner is not None:
                self.rest()
        open_traces[self.level] = ref(self)  # last of all: an interrupt before this leaves nothing behind

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Interpret ``primitive`` on ``args``, some of which are tracers of this trace, none of a younger one."""
        raise NotImplementedError

    def close(self) -> None:
        """Mark the transform as finished."""
        open_traces.pop(self.level, None)
        self.open = self.live = False
        self.numbers = None

    def rest(self) -> None:
        """Send operations to the general path, until the run is told to ``wake``."""
        self.live, self.numbers = False, None

    def records_at_once(self) -> bool:
        """Whether operations may take the fast path: no block is open, and the run goes on or a pullback repeats it."""
        return self.live or ((self.open or repeated(self.level)) and blocks.current() == blocks.NO_BLOCK)

    def wake(self) -> None:
        """Let operations take the fast path again, unless a block is open that may change them."""
        if self.open and blocks.none_open():
            self.live, self.numbers = True, self.counter
            if blocks.entered:  # meanwhile, in another thread
                self.rest()

    def twin_of(self, x: Tracer) -> Any:
        """Another object that stands for the value of ``x``, a tracer of this trace. Who asks holds ``changing``."""
        made = Tracer()
        made._val, made._trace, made.link, made.form = x._val, self, x.link, None
        return made


class Tracer:
    """A stand-in for ``value`` inside ``trace``. Its operators and methods are an ndarray's.

    Programs may write to arrays that they made, ``x[0] = y``. From then on this object refers to another value, perhaps
    of another trace (see ``writable``). To allow that, there is one class of tracers; the trace says what kind it is.
    Only the program itself holds an object that the program can write to: see ``bind``, and ``running`` for threads.

    It is made empty and then filled, by ``tracer_of`` or by code that must be fast: a constructor in Python is slower.

    Attributes:
        _val: its value, what the trace looks at: an array, a number, or a tracer of an outer trace. Quantities with
            units ask what stands beside them for a ``value``.
        _trace: the run of a transform that this tracer belongs to (an ndarray has a method ``trace``).
        form: the aval for fast paths: the shape of an array of doubles, ``float64`` for such a number; None for all
            other values, tracers among them, and until first use.
        link: what else the trace knows of the value: in reverse mode its record, also called ``node``; in forward mode
            its ``tangent``; on a graph its ``slot``; None in a batch.
        alias: the value whose memory it shares, see ``writable``; unset until first use.
    """

    __slots__ = ("__weakref__", "_trace", "_val", "alias", "form", "link")

    _val: Any
    _trace: Any
    form: Any
    link: Any
    node: Any
    tangent: Any
    slot: Any
    alias: Any

    def _class(self) -> type:
        """The class that ``isinstance`` finds: that of the array or number it stands for.

        So a function takes the same branch whether it is being transformed or not. Only ``type`` shows the tracer.
        """
        value, as_numpy = self._val, self._trace.as_numpy
        while type(value) is Tracer:
            value, as_numpy = value._val, as_numpy or value._trace.as_numpy
        kind = type(value)
        if not issubclass(kind, (np.ndarray, np.generic, float, complex, int)):
            if not as_numpy:  # of JAX, which knows its arrays by more than their class
                return type(self)
            kind = np.ndarray if self.shape else self.dtype.type
        elif kind is np.ndarray and value.shape and not self.shape:  # one number of each example
            kind = value.dtype.type
        return kind

    __class__ = property(_class)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes, as the function being transformed sees them."""
        if type(self.form) is tuple:
            return self.form
        value, hidden = self._val, self._trace.hidden
        known = type(value) is np.ndarray or type(value) is Tracer
        whole: tuple[int, ...] = value.shape if known else backend.shape_of(value)
        return whole[hidden:]

    @property
    def dtype(self) -> Any:
        """The NumPy dtype."""
        value = self._val
        return value.dtype if type(value) is np.ndarray else backend.dtype_of(value)


for _name in ("node", "tangent", "slot"):  # what kinds of traces call it
    setattr(Tracer, _name, Tracer.__dict__["link"])


def tracer_of(value: Any, trace: Trace, link: Any = None, form: Any = None) -> Tracer:
    """The tracer of a value of ``trace``."""
    made = Tracer()
    made._val, made._trace, made.link, made.form = value, trace, link, form
    return made


def twin(x: Any) -> Any:
    """Another object that stands for the same value; what is no tracer stays itself.

    The rule of sharing: a program can write to the objects that it has, so a transform, a tape or a graph keeps twins
    of them, and hands out twins of its own values. Values enter a trace through its ``leaf`` or, during the run,
    through ``bind``; they leave a transform through here.
    """
    if type(x) is not Tracer:
        return x
    with changing:
        made = x._trace.twin_of(x)
    return made


class ReverseRule(Protocol):
    """What reverse mode does for an operation."""

    def __call__(
        self, args: tuple[Any, ...], traced: tuple[int, ...], params: dict[str, Any], /
    ) -> tuple[Any, Pull | None, Sequence[Any]]:
        """The result, what pulls a cotangent back to the arguments at ``traced``, and what its record keeps."""


class ForwardRule(Protocol):
    """What forward mode does for an operation."""

    def __call__(self, args: tuple[Any, ...], tangents: tuple[Any, ...], params: dict[str, Any], /) -> tuple[Any, Any]:
        """The result and its tangent; None is zero."""


class BatchRule(Protocol):
    """What ``vmap`` does for an operation; batch axes stand first."""

    def __call__(
        self, size: Any, args: tuple[Any, ...], batched: tuple[bool, ...], params: dict[str, Any], /
    ) -> tuple[Any, Any]:
        """The result, and whether it is batched; of several results whether each is."""


class Primitive:
    """An operation, with everything each interpreter needs to know of it.

    Only the kinds (``funcgrad.kinds``) make these, from a few rules.

    Args:
        name: what the operation is called in messages and graphs.
        impl: ``impl(xp, *args, **params)`` computes it with the array namespace ``xp``; None means
            that ``getattr(xp, name)(*args, **params)`` does.
        reverse: ``reverse(args, traced, params) -> (ans, pull, saved)``, or None where no derivative
            passes. ``traced`` are the positions to differentiate; ``pull(ct, record)`` gives a cotangent
            for each of them; ``saved`` is what the record keeps for it, see ``reverse``.
        forward: ``forward(args, tangents, params) -> (ans, tangent)``, a tangent of None meaning zero.
        batch: ``batch(size, args, batched, params) -> (ans, batched)``; batch axes stand first.
        multiple: whether the result is a tuple of arrays.
        loose: whether shape or dtype of a result depend on the values of the arguments: a captured graph
            holds good only as long as they stay the same.
        calls: whether it runs functions of the user's. They may hold values of the ``vmap`` they are in, so
            ``batch`` is given its trace in place of ``size``.
        reuse: ``reuse(x, *args, **params)`` computes the same in the memory of ``x``, which nobody else holds;
            None where nothing is won by that.
    """

    __slots__ = (
        "_kernels",
        "arithmetic",
        "batch",
        "call",
        "calls",
        "foreign",
        "forward",
        "impl",
        "loose",
        "multiple",
        "name",
        "of_numbers",
        "operator",
        "reuse",
        "reverse",
    )

    def __init__(
        self,
        name: str,
        impl: Callable[..., Any] | None,
        reverse: ReverseRule | None,
        forward: ForwardRule | None,
        batch: BatchRule,
        *,
        multiple: bool = False,
        loose: bool = False,
        calls: bool = False,
        reuse: Callable[..., Any] | None = None,
    ) -> None:
        self.name = name
        self.impl = impl
        self.reverse = reverse
        self.forward = forward
        self.batch = batch
        self.multiple = multiple
        self.loose = loose
        self.calls = calls
        self.call: Callable[..., Any] = lambda *args, **params: bind(self, args, params)
        #: Computes with arguments that are no values, such as a sparse matrix; returns None if it cannot.
        self.foreign: Callable[..., Any] | None = None
        #: The name in Python's ``operator`` of the operator of two operands that computes the same.
        self.operator: str | None = None
        #: Whether the result on Python numbers alone is a Python number, as that of an operator is.
        self.arithmetic = False
        #: What computes that where Python's operator raises errors, or has complex results, and NumPy's function not.
        self.of_numbers: Primitive | None = None
        self.reuse = reuse
        self._kernels: dict[Any, Callable[..., Any]] = {}

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """It pickles by the module and the name that its operation has there, for a rule is code.

        Raises:
            InputError: its operation stands in no module.
        """
        module = sys.modules.get(home := getattr(self.call, "__module__", ""))
        for name, operation in list(vars(module).items() if module is not None else ()):
            if getattr(operation, "primitive", None) is self:
                return _named, (home, name)
        raise InputError(
            f"pickle: an operation is stored by its name in a module, got {self!r}, which stands in none. Define it "
            "at the top of a module, or store the function and run it again."
        )

    def kernel(self, xp: Any) -> Callable[..., Any]:
        """The function of the array namespace ``xp`` that computes this primitive."""
        found = self._kernels.get(xp)
        if found is None:
            found = self._kernels[xp] = self._made(xp)
        return found

    def prefer(self, quick: Callable[..., Any], arity: int) -> None:
        """Let ``quick`` compute it of ``arity`` ndarrays: the same as NumPy's function, sooner."""
        general = self.kernel(np)

        def kernel(*args: Any, **params: Any) -> Any:
            plain = len(args) == arity and all(type(a) is np.ndarray for a in args)
            return (quick if plain else general)(*args, **params)

        self._kernels[np] = kernel

    def _made(self, xp: Any) -> Callable[..., Any]:
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
                if type(error).__name__ == "TracerArrayConversionError":  # JAX's, of a value without numbers
                    raise InputError(refusal) from error
                raise

        return guarded

    def evaluate(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Compute the primitive on plain values."""
        for position, arg in enumerate(args):
            if not backend.is_value(arg):
                raise InputError(f"{self.name}: argument {position} {'. '.join(backend.refusal(arg))}")
        if blocks.here() is not None and (runner := blocks.current().runner) is not None:
            return runner.run(self, args, params)
        return self.compute(args, params)

    def lowered(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The result on what tracers held, which blocks can observe; of arithmetic on Python numbers alone Python's."""
        plain = blocks.here() is None
        numbers = self.arithmetic and _PYTHON.issuperset(map(type, args))
        if numbers and self.of_numbers is not None and not _WHOLE.issuperset(map(type, args)):
            return self.of_numbers.kernel(np)(*args, **params) if plain else bind(self.of_numbers, args, params)
        ans = self.call(*args, **params) if plain else bind(self, args, params)
        return ans.item() if numbers and issubclass(type(ans), np.generic) else ans

    def compute(self, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Call the kernel."""
        return self.kernel(backend.namespace(args))(*args, **params)


def _named(home: str, name: str) -> Any:
    return getattr(import_module(home), name).primitive


def bind(primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Apply ``primitive`` to ``args`` in the innermost trace among them.

    Array values are positional; static parameters are keyword-only.
    """
    top: Trace | None = None
    several = False
    for position, arg in enumerate(args):
        if isinstance(arg, Tracer):
            trace = arg._trace
            if top is None:
                top = trace
            elif trace is not top:
                several = True
                if trace.level > top.level:
                    top = trace
        elif type(arg) is list or type(arg) is tuple:  # as NumPy does; tracers inside refuse, and say why
            args = (*args[:position], np.asarray(arg), *args[position + 1 :])
    if top is None:
        return primitive.evaluate(args, params)
    if several:  # the innermost trace may keep what it sees, and the program may write to what it has
        args = tuple([a if not isinstance(a, Tracer) or a._trace is top else twin(a) for a in args])
    return top.process(primitive, args, params) if top.live else _ask(top, primitive, args, params)


def _ask(top: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Apply ``primitive`` in ``top``, which is over, or where a block may have a say."""
    if not top.open and not repeated(top.level):
        raise_escaped(type(top))
    state = blocks.current()
    if top.differentiates and top.level < state.floor:
        # Inside no_grad an older derivative trace sees its tracers as constants.
        lowered = tuple(a._val if isinstance(a, Tracer) and a._trace is top else a for a in args)
        if state.watch is not None:
            state.watch.hidden(top, args)
        return primitive.lowered(lowered, params)
    if state.watch is not None:
        return state.watch.process(top, primitive, args, params)
    top.wake()
    return top.process(primitive, args, params)


def computed(call: Callable[..., Any], args: Sequence[Any], params: dict[str, Any]) -> Any:
    """The result of the operation ``call`` one level out, which blocks can observe. Rules of primitives use it."""
    if blocks.here() is None:
        return call(*args, **params)
    return bind(call.primitive, tuple(args), params)  # type: ignore[attr-defined]


def repeated(level: int) -> bool:
    """Whether a part of the run of this level, which has finished, is being repeated."""
    for run in repeating.get():
        if run.start <= level < run.below and run.thread == get_ident():
            return True
    found = [run for run in tuple(repeating_anywhere) if run.start <= level < run.below]
    for run in found:
        run.joined = True
    return bool(found)


def raise_escaped(kind: type[Trace]) -> NoReturn:
    """Refuse a tracer whose transform, a run of this kind, has finished."""
    name = kind.__name__.removesuffix("Trace").lower()
    raise EscapedTracerError(
        f"a tracer, the stand-in for an array, of a finished {name} transform was used. It was kept in a global, a "
        "closure, a generator or a container that outlives the transformed function. Return the value "
        "instead (has_aux=True for what is not the result), or keep stop_gradient(x)."
    )


def refuse_closure(
    trace: Trace,
    primitive: Primitive,
    results: Sequence[Any],
    params: dict[str, Any] | None = None,
    inside: Sequence[Any] = (),
) -> None:
    """Refuse results of a call with own rules that depend on ``trace``, or a younger one, behind the arguments' backs.

    The rules speak of the arguments only: the derivative in what the function closes over would be lost. ``inside`` is
    what the arguments hold, perhaps tracers of younger traces, which results may depend on.
    """
    found = [x._trace for x in results if isinstance(x, Tracer) and x._trace.level >= trace.level]
    if found and not set(found) <= set(traces_of(inside)):
        raise_closure(getattr((params or {}).get("rules"), "name", primitive.name))


def traces_of(values: Iterable[Any]) -> Iterator[Trace]:
    """The traces that ``values`` belong to, of each the innermost first."""
    for x in values:
        while isinstance(x, Tracer):
            yield x._trace
            x = x._val


def raise_closure(name: str) -> NoReturn:
    """Refuse a function with own rules that holds a tracer its rules know nothing of."""
    raise NotDifferentiableError(
        f"{name}: a function with own derivative rules closes over a value that is being transformed, got it "
        "besides its arguments. Pass the value as an argument."
    )


def describe(x: Any) -> str:
    """A value in a few words, for messages: its type, and its shape and dtype when it has them.

    Example:
        >>> describe("text")
        "str 'text'"
        >>> import numpy as np
        >>> describe(np.ones((2, 3)))
        'float64[2, 3]'
    """
    if isinstance(x, Tracer) or (hasattr(x, "dtype") and hasattr(x, "shape")):
        return f"{x.dtype}{list(x.shape)}"
    name, text = type(x).__name__, shown(x)
    return text if x is None or text.startswith(f"{name}(") else f"{name} {text}"
