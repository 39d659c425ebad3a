"""Arrays that a program writes to: ``x[i] = y`` and all that follows from it.

A tracer is written to by letting the object stand for a new value (``move``). Whoever else holds the
object sees that, as with an ndarray; a tape must not, so what a tape keeps is never an object that the
program has (``core.bind`` and the transforms see to that with twins).

What NumPy makes as a view, such as ``x[1:]`` or ``x.T``, shares memory with its base. A tracer that is a view
knows the *root* it was taken from and the steps that lead to it; the root knows its views, weakly. A
write to a view goes to the root, and the views of a root are taken anew after every write to it.

An array made of constants inside a transformed function, by ``zeros`` for instance, is a ``Buffer``: it may have
to take traced values, which an ndarray cannot. Arguments of a transformed function are read-only: a
function that changes them is not a pure one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from threading import get_ident
from typing import Any, Final
from weakref import ref

import numpy as np

from funcgrad import backend, tree
from funcgrad.batching import BatchTracer
from funcgrad.core import READ_ONLY, Primitive, Trace, Tracer, open_traces, repeating, running
from funcgrad.locking import changing

__all__ = [
    "READ_ONLY",
    "Buffer",
    "Proxy",
    "Step",
    "View",
    "argument",
    "as_made_by",
    "axes_in_memory",
    "clone",
    "constant",
    "for_any_library",
    "handed",
    "identity",
    "inside",
    "is_number",
    "is_view",
    "keep_array",
    "layout",
    "locked",
    "move",
    "own",
    "number",
    "refresh",
    "released",
    "root_of",
    "share",
    "share_view",
    "shares",
    "speak_standard",
    "spoke_standard",
    "stand_for",
    "twin",
]

ndarray = np.ndarray
#: The ``link`` of a buffer whose array others hold too.
LENT: Final = object()
#: What takes a view: a function of the base, and its parameters.
Step = tuple[Callable[..., Any], dict[str, Any]]


class Buffer(Tracer):
    """An array that a transformed function made of constants. Nothing traced has been written to it yet.

    It holds an ndarray (or another library's array) and is constant to every transform. As soon as
    something traced is written to it, it is a tracer of that trace.
    """

    __slots__ = ()

    def __init__(self, value: Any) -> None:
        self.value = value
        self._trace = CONSTANTS

    def _twin(self) -> Any:
        """The array itself, which from now on is lent: it is copied before the next write to the buffer."""
        with changing:
            if type(self) is not Buffer:  # another thread has written something traced to it
                return self._twin()
            root = root_of(self)
            if type(root) is Buffer:
                root.link = LENT
            return self.value


class _Constants(Trace):
    """What operations on buffers go through: it computes them, and the results can be written to as well."""

    __slots__ = ()

    def __init__(self) -> None:  # it is no run of a transform, and older than all of them
        self.level = 0
        self.open = True
        self.cuts = None

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        lowered = tuple([a.value if type(a) is Buffer else a for a in args])
        for a in lowered:
            if isinstance(a, Tracer):  # another thread has written something traced to an argument
                return primitive.call(*args, **params)
        ans = primitive.evaluate(lowered, params)
        if primitive.multiple:
            return tuple([_as_buffer(a, lowered) for a in ans])
        return _as_buffer(ans, lowered)


CONSTANTS: Final = _Constants()
#: Whether anybody has ever called ``speak_standard``: until then nobody looks for it.
_standard_spoken = False
#: Whether what a pullback runs again was written for any array library when it ran first.
spoke_standard: Final = ContextVar("spoke_standard", default=False)


def _as_buffer(ans: Any, args: tuple[Any, ...]) -> Any:
    """A result as a buffer where NumPy gives a new array; its scalars cannot be written to."""
    if isinstance(ans, Tracer):  # of an operation that runs a function of the user's
        return ans
    if type(ans) is not ndarray:
        return Buffer(ans) if backend.shape_of(ans) else _as_number(ans)
    made = Buffer(ans.copy() if any(ans is a for a in args) else ans)
    if not ans.flags.writeable:
        made.link = LENT
    return made


def _as_number(ans: Any) -> Any:
    """A result without axes that is no ndarray. NumPy's functions do not know what JAX computes only later."""
    if not backend.is_stand_in(ans) or for_any_library():
        return number(ans)
    return constant(ans)  # read-only, as numbers are


def constant(x: Any) -> Buffer:
    """``x``, a value of another library, as a buffer that cannot be written to: NumPy's functions know that."""
    made = Buffer(x)
    made.alias = READ_ONLY
    return made


def own(x: Tracer) -> None:
    """Make sure that nobody else holds the memory of the buffer ``x``, which is no view: it is to be written to."""
    if getattr(x, "link", None) is LENT:
        x.value = x.value.copy("K")
        del x.link
        refresh(x)


def number(x: Any) -> Any:
    """``x``, a constant number, as what the function that is running expects of it."""
    return Buffer(backend.namespace((x,)).asarray(x)) if for_any_library() else x


def as_made_by(args: tuple[Any, ...], ans: Any) -> Any:
    """``ans``, made of ``args``, as something that can be written to where it is a constant and they are not.

    That is the result of what has no derivative, and of everything in a ``no_grad`` block. What lies in the memory of
    an argument can only be read, unless it is noted as a view.
    """
    if type(ans) is tuple:
        return tuple([as_made_by(args, a) for a in ans])
    if isinstance(ans, Tracer) or not backend.is_value(ans):
        return ans
    sources = [_bottom(a) for a in args if isinstance(a, Tracer)]
    part = type(ans) is ndarray and any(type(a) is ndarray and np.may_share_memory(a, ans) for a in sources)
    if not (part or backend.shape_of(ans)) or not backend.is_inexact(ans):
        return _as_buffer(ans, args) if for_any_library() and sources else ans
    if not sources:
        return ans
    made = Buffer(ans)
    if type(ans) is ndarray and not ans.flags.writeable:
        made.link = LENT
    if part:
        made.alias = READ_ONLY
    return made


def _bottom(x: Any) -> Any:
    while isinstance(x, Tracer):
        x = x.value
    return x


class Proxy:
    """What is no array but stands for one, as ``x.flat`` does."""

    __slots__ = ()

    def whole(self) -> Any:
        """The array."""
        raise NotImplementedError


class View:
    """Where a view stands in its root.

    Attributes:
        root: the tracer that it was taken from in the end.
        steps: how it was taken.
        locked: whether it can only be read, as what NumPy's ``diagonal`` gives.
    """

    __slots__ = ("locked", "root", "steps")

    root: Tracer
    steps: tuple[Step, ...]
    locked: bool

    def take(self, x: Any) -> Any:
        """The same view of another array."""
        for step, params in self.steps:
            x = step(x, **params)
        return x


def inside() -> bool:
    """Whether a transformed function is running in this thread, so that a new array may have to take traced values.

    Whom a thread works for that it started nobody knows. Where a context variable is set every ufunc takes longer.
    """
    if open_traces and get_ident() in [trace.thread for trace in running()]:
        return True
    return bool(repeating.get())  # a pullback runs a part of it again


def speak_standard() -> None:
    """Note that the function that is running is written for any array library, see ``for_any_library``."""
    global _standard_spoken
    here = get_ident()
    mine = [trace for trace in running() if trace.thread == here]
    if mine:
        mine[-1].standard = _standard_spoken = True


def for_any_library() -> bool:
    """Whether a function is running that is written for any array library.

    It has asked a traced value for its namespace, and it will ask what it computes from it. Then truth values,
    positions and numbers, which are NumPy's otherwise, must have the same namespace: they are buffers.
    """
    if not _standard_spoken:
        return False
    here = get_ident()
    return any(trace.standard and trace.thread == here for trace in running()) or spoke_standard.get()


def clone(x: Any) -> Any:
    """Another object that stands for the same value; what is no tracer is its own clone."""
    return x._twin() if isinstance(x, Tracer) else x


def twin(x: Any) -> Any:
    """The same, but a buffer for a buffer: what the program writes to either is not seen by the other.

    It lies in memory as ``x`` does, so that what an operation makes of both lies there alike: a view stays one.
    """
    if not isinstance(x, Tracer):
        return x
    made = Buffer(x._twin()) if type(x) is Buffer else x._twin()
    if type(x) is Buffer:
        made.link = LENT
    alias = getattr(x, "alias", None)
    if alias is READ_ONLY:
        made.alias = READ_ONLY
    elif type(alias) is View:
        root, view = twin(alias.root), View()
        view.root, view.steps, view.locked = root, alias.steps, alias.locked
        root.alias, made.alias = [ref(made)], view
    return made


def identity(x: Any) -> Any:
    """What tells values apart: the same for a tracer and its twins."""
    return (id(x._trace), id(x.value), id(getattr(x, "link", None))) if isinstance(x, Tracer) else id(x)


def released(x: Any) -> Any:
    """``x`` as it leaves a transform: the array of a buffer, and no object that a tape holds too."""
    if not isinstance(x, Tracer):
        return x
    return x._twin()


def handed(values: Sequence[Any], given: Any) -> list[Any]:
    """``values``, which a transform or a loop gives, for the function around it: as operations would give them.

    So they can be written to, unless the transform was ``given`` (a tree) ordinary arrays only. Others may hold the
    memory too, a tape for instance. Where no function is being transformed arrays stay arrays.
    """
    if not inside():
        return list(values)
    leaves = tree.leaves(given)
    ordinary = any(type(x) is ndarray and x.ndim for x in leaves) and not any(isinstance(x, Tracer) for x in leaves)
    return [x if ordinary and type(x) is ndarray else _handed(x) for x in values]


def _handed(x: Any) -> Any:
    if isinstance(x, Tracer) or not backend.is_value(x):
        return x
    made = _as_buffer(x, ())
    if type(made) is Buffer and type(x) is ndarray:
        made.link = LENT
    return made


def argument(x: Any) -> Any:
    """``x`` as a function gets it that must not write to it; an array of NumPy as it is."""
    if not isinstance(x, Tracer):
        return x
    x = x._twin()
    if isinstance(x, Tracer):
        x.alias = READ_ONLY
    elif type(x) is ndarray and x.flags.writeable:
        x = x.view()
        x.flags.writeable = False
    elif type(x) is not ndarray:
        x = constant(x)
    return x


def move(x: Tracer, new: Any) -> None:
    """Let the object ``x`` stand for ``new`` from now on: a tracer of whatever trace, or an array."""
    if not isinstance(new, Tracer):
        new = Buffer(new)
    stand_for(x, type(new), new.value, new._trace, getattr(new, "link", None))


def stand_for(x: Tracer, kind: type[Tracer], value: Any, trace: Trace, link: Any) -> None:
    """Let ``x`` be a tracer of another kind, value, trace and link. Who asks holds ``changing``, see ``locking``."""
    keep_array(x)
    x.__class__, x.value, x._trace, x.link, x.form = kind, value, trace, link, None


def keep_array(x: Tracer) -> None:
    """See that ``x``, which is to stand for something traced, stays an array: without axes it would be a number."""
    if type(x) is Buffer and not x.value.shape and getattr(x, "alias", None) is None:
        x.alias = []


def root_of(x: Tracer) -> Tracer:
    """The tracer whose memory ``x`` stands for a part of: its own, where it is no view."""
    alias = getattr(x, "alias", None)
    return alias.root if type(alias) is View else x


def shares(value: ndarray, part: Any) -> bool:
    """Whether ``part``, made from ``value``, is a view of the same memory.

    Example:
        >>> x = np.ones((2, 3))
        >>> shares(x, x[1:]), shares(x, x[[1]]), shares(x.T, x.T.reshape(6))
        (True, False, False)
    """
    if type(part) is not ndarray:
        return False
    base = part.base
    return base is not None and (base is value or base is value.base)


def is_number(x: Tracer) -> bool:
    """Whether ``x`` stands for a number, as NumPy's scalars do: it has no memory that others could share."""
    return not x.shape and type(x) is not Buffer and type(getattr(x, "alias", None)) not in (View, list)


def is_view(x: Tracer, made: Any, step: Callable[..., Any], params: dict[str, Any]) -> bool:
    """Whether ``made``, which is ``step(x, **params)``, is a view of ``x`` as NumPy makes it."""
    if not isinstance(made, Tracer) or made is x:
        return False
    if type(x) is Buffer and type(x.value) is ndarray:
        return shares(x.value, made.value)
    like = layout(x)
    return shares(like, step(like, **params))


def share_view(x: Any, made: Any, step: Callable[..., Any], params: dict[str, Any], value: Any = None) -> Any:
    """``made``, ``step(x, **params)``, noted as a view if it is one; ``x`` held ``value``: None under the lock."""
    known = isinstance(x, Tracer) and isinstance(made, Tracer) and made is not x and type(x) is not BatchTracer
    if value is None and known:
        value = x.value
    if known and type(value) is type(made.value) is ndarray:  # the commonest, seen at once
        if shares(value, made.value):
            share(x, made, step, params)
        return made
    if type(x) is Buffer and type(x.value) is not ndarray and not isinstance(made, Tracer):
        like = layout(x)  # of other libraries' arrays a view without axes looks like a number
        if shares(like, step(like, **params)):
            made = Buffer(made)
    if isinstance(x, Tracer) and is_view(x, made, step, params):
        share(x, made, step, params)
    return made


def locked(made: Any) -> Any:
    """``made``, a view, as one that can only be read; so is what shares its memory with nothing."""
    if isinstance(made, Tracer):
        alias = getattr(made, "alias", None)
        if type(alias) is View:
            alias.locked = True
        else:
            made.alias = READ_ONLY
    return made


def axes_in_memory(x: ndarray) -> tuple[int, ...]:
    """The axes of ``x`` in the order in which they lie in memory, the slowest first.

    Example:
        >>> axes_in_memory(np.ones((2, 3)).T)
        (1, 0)
    """
    return tuple(sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis])))


def layout(x: Any) -> ndarray:
    """An array of the shape of ``x`` that lies in memory as ``x`` does in a program for one example; values are any."""
    if type(x) is ndarray:
        return x
    if not isinstance(x, Tracer):
        return np.empty(backend.shape_of(x), backend.dtype_of(x))
    alias = getattr(x, "alias", None)
    value, hidden = x.value, x.hidden
    if type(value) is ndarray and not hidden:
        return value
    if type(alias) is View:
        found: ndarray = alias.take(layout(alias.root))
        return found
    if not hidden:
        return layout(value)
    whole = layout(value)
    one = whole[0] if len(whole) else np.empty(whole.shape[1:], whole.dtype)
    if alias is READ_ONLY or one.flags.c_contiguous or one.flags.f_contiguous:
        return one
    axes = axes_in_memory(one)  # the examples of a batch may lie between each other; one alone leaves no gaps
    packed = np.empty([one.shape[axis] for axis in axes], one.dtype)
    return packed.transpose(sorted(range(len(axes)), key=axes.__getitem__))


def share(x: Tracer, view: Any, step: Callable[..., Any], params: dict[str, Any]) -> None:
    """Note that ``view``, which is ``step(x, **params)``, shares the memory of ``x``; a number has none."""
    alias = getattr(x, "alias", None)
    if alias is READ_ONLY:
        view.alias = READ_ONLY
        return
    if type(alias) is View:
        root, steps = alias.root, (*alias.steps, (step, params))
        known = root.alias
    else:
        if alias is None:
            if not x.shape and type(x) is not Buffer:
                return
            alias = _views_of(x)
        root, steps, known = x, ((step, params),), alias
    made = view.alias = View()
    made.root, made.steps, made.locked = root, steps, type(alias) is View and alias.locked
    known.append(ref(view))
    if len(known) >= 16 and not len(known) & (len(known) - 1):  # now and then, so that it costs little
        with changing:
            n = len(known)
            known[:n] = [r for r in known[:n] if r() is not None]  # other threads append to it
    if type(view) is Buffer:
        _settle(view, made)


def _settle(view: Buffer, alias: View) -> None:
    """Take ``view`` anew where another thread gave its root other memory before the view was noted."""
    with changing:
        root = alias.root
        old = type(root) is Buffer and type(root.value) is type(view.value) is ndarray and view.value.size > 0
        if old and not shares(root.value, view.value) and not np.may_share_memory(root.value, view.value):
            move(view, alias.take(Buffer(root.value)))


def _views_of(x: Tracer) -> Any:
    """The list of the views of ``x``, made where there is none: two threads must not make two."""
    with changing:
        alias = getattr(x, "alias", None)
        if alias is None:
            alias = x.alias = []
        return alias


def refresh(root: Tracer) -> None:
    """Take all views of ``root`` anew, after a write to it."""
    views = [view for r in getattr(root, "alias", None) or () if (view := r()) is not None]
    if views:
        source = Buffer(root.value) if type(root) is Buffer else root._twin()
        for view in views:
            move(view, view.alias.take(source))
