"""Arrays that a program writes to: ``x[i] = y`` and all that follows from it.

A write to a tracer lets the object stand for a new value (``move``). Other holders of the object see that, as with an
ndarray; a tape must not: ``core.twin`` states the rule.

A view in NumPy, such as ``x[1:]`` or ``x.T``, shares memory with its base. A tracer that is a view knows the *root* it
was taken from and the steps that lead to it; the root knows its views, weakly. A write to a view goes to the root,
and the views of a root are taken again after every write to it.

An array made of constants inside a transformed function, by ``zeros`` for instance, is a *buffer*: it may have to take
traced values, which an ndarray cannot. It is a tracer of the trace ``CONSTANTS``, which is older than all runs.
Arguments of a transformed function are read-only: a function that changes them is not a pure one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Final
from weakref import ref

import numpy as np

from funcgrad import backend, blocks, tree
from funcgrad.core import READ_ONLY, Primitive, Trace, Tracer, twin
from funcgrad.forward import ForwardTrace
from funcgrad.running import changing, open_traces, repeating, running

__all__ = [
    "CONSTANTS",
    "READ_ONLY",
    "Proxy",
    "Step",
    "View",
    "Views",
    "argument",
    "as_array",
    "as_made_by",
    "as_number",
    "bottom",
    "buffer",
    "constant",
    "copy_small",
    "handed",
    "identity",
    "inside",
    "is_buffer",
    "is_number",
    "lent",
    "move",
    "outside",
    "own",
    "refresh",
    "root_of",
    "twin_in_memory",
    "views_of",
]

ndarray = np.ndarray
#: Types that only NumPy computes with.
_NUMPY = frozenset((ndarray, float, int, np.float64))
#: The ``link`` of a buffer whose array others hold too.
LENT: Final = object()
#: A part is small where the whole has so many times its elements.
_FEW = 4
#: How a view is taken: a function of the base, and its parameters.
Step = tuple[Callable[..., Any], dict[str, Any]]


class _Constants(Trace):
    """What the arrays belong to that transformed functions make of constants: no run, and older than all of them.

    Operations on them are computed, and the results can be written to as well. As soon as something traced is written
    to one, it is a tracer of that trace.
    """

    __slots__ = ()

    def __init__(self) -> None:
        self.level = self.thread = 0
        self.open = self.live = True
        self.cuts = self.numbers = self.counter = None

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        lowered = tuple([a._val if type(a) is Tracer and a._trace is self else a for a in args])
        plain = blocks.here() is None
        for a in lowered:
            if isinstance(a, Tracer):  # another thread has written something traced to an argument
                return primitive.call(*args, **params)
            plain = plain and type(a) in _NUMPY
        ans = primitive.kernel(np)(*lowered, **params) if plain else primitive.evaluate(lowered, params)
        if primitive.multiple:
            return tuple([as_buffer(a, lowered) for a in ans])
        return as_buffer(ans, lowered)

    def twin_of(self, x: Tracer) -> Any:
        """The array itself, which from now on is lent: it is copied before the next write to the buffer."""
        if (root := root_of(x))._trace is self:
            root.link = LENT
        return x._val


CONSTANTS: Final = _Constants()


def buffer(value: Any) -> Tracer:
    """An array, NumPy's or another library's, that a transformed function made and can write to."""
    made = Tracer()
    made._val, made._trace, made.link, made.form = value, CONSTANTS, None, None
    return made


def is_buffer(x: Any) -> bool:
    """Whether ``x`` is a buffer to which nothing traced has been written yet."""
    return type(x) is Tracer and x._trace is CONSTANTS


def as_buffer(ans: Any, args: tuple[Any, ...]) -> Any:
    """A result as a buffer where NumPy gives a new array; its scalars cannot be written to."""
    if isinstance(ans, Tracer):  # of an operation that runs a function of the user's
        return ans
    if type(ans) is not ndarray:
        if backend.shape_of(ans):
            return buffer(ans)
        return constant(ans) if backend.is_stand_in(ans) else ans  # NumPy does not know what JAX computes later
    made = buffer(ans)
    for a in args:
        if a is ans:
            made._val = ans.copy("K")
    if not ans.flags.writeable:
        made.link = LENT
    return made


def constant(x: Any) -> Tracer:
    """``x``, a value of another library, as a buffer that cannot be written to: NumPy's functions know that."""
    made = buffer(x)
    made.alias = READ_ONLY
    return made


def own(x: Tracer) -> None:
    """Copy the memory of the buffer ``x``, which is no view, if it is shared: it is to be written to."""
    if x.link is LENT:
        copied = x._val.copy("K")
        x.link = None  # before the value is there, see ``lent``
        x._val = copied
        refresh(x)


def lent(x: Tracer) -> Any:
    """The array of a buffer whose memory others hold already, so that it is copied before a write; else None."""
    value = x._val  # first: who writes in another thread marks the buffer before it gets the copy
    return value if x.link is LENT else None


#: Types of results that nobody writes to.
_NUMBERS = frozenset((bool, int, float, complex, np.bool_, np.float64, np.float32))


def as_made_by(args: tuple[Any, ...], ans: Any) -> Any:
    """``ans``, made of ``args``, as something that can be written to where it is a constant and they are not.

    Such results come from operations without a derivative, and from ``no_grad`` blocks. A result in the memory of an
    argument is read-only, unless it is noted as a view.
    """
    if type(ans) in _NUMBERS:
        return ans
    if type(ans) is tuple:
        return tuple([as_made_by(args, a) for a in ans])
    if isinstance(ans, Tracer) or not backend.is_value(ans) or not backend.is_inexact(ans):
        return ans
    sources = [bottom(a) for a in args if isinstance(a, Tracer)]
    part = type(ans) is ndarray and any(type(a) is ndarray and np.may_share_memory(a, ans) for a in sources)
    if not sources or not (part or backend.shape_of(ans)):
        return ans
    made = buffer(ans)
    if type(ans) is ndarray and not ans.flags.writeable:
        made.link = LENT
    if part:
        made.alias = READ_ONLY
    return made


def bottom(x: Any) -> Any:
    """What ``x`` stands for in the end."""
    while isinstance(x, Tracer):
        x = x._val
    return x


class Proxy:
    """An object that stands for an array, as ``x.flat`` does."""

    __slots__ = ()

    def whole(self) -> Any:
        """The array."""
        raise NotImplementedError

    def taken(self) -> Any:
        """What a function of NumPy's takes it for."""
        return self.whole()

    def instead(self, name: str, args: tuple[Any, ...]) -> Any:
        """What stands for the operation ``name`` of ``args``, this object among them; None for the operation itself."""

    def wrap(self, ans: Any, name: str) -> Any:
        """What ``name`` gives of this object, where it gives ``ans`` of the array."""
        return ans


class View:
    """Where a view stands in its root. It is made empty and filled, as tracers are.

    Attributes:
        root: the tracer that it was taken from in the end.
        steps: how it was taken.
        locked: whether it can only be read, as what NumPy's ``diagonal`` gives.
        apart: whether its value may lie in memory of its own, and not as NumPy's view does, see ``set_apart``.
    """

    __slots__ = ("apart", "locked", "root", "steps")

    root: Tracer
    steps: tuple[Step, ...]
    locked: bool
    apart: bool

    def take(self, x: Any) -> Any:
        """The same view of another array."""
        for step, params in self.steps:
            x = step(x, **params)
        return x


class Views(list[ref[Any]]):
    """Weak references to the views of an array.

    Attributes:
        written: whether something traced has been written to the array.
        begun: after a write of one view to the place of another, which may be the first half of an exchange: the
            views that stood for that place, and the steps that lead to what was written. A write ends it.
    """

    written = False
    begun: tuple[list[ref[Any]], tuple[Step, ...]] | None = None


def inside() -> bool:
    """Whether a transformed function is running in this thread, so that a new array may have to take traced values.

    A thread that the function starts is not recognised. A context variable would make every ufunc slower.
    """
    if open_traces:
        here = get_ident()
        for known in list(open_traces.values()):
            trace = known()
            if trace is not None and trace.thread == here:
                return True
    return bool(repeating.get())  # a pullback runs a part of it again


@contextmanager
def outside() -> Generator[None]:
    """A block in which functions of plain values run as they do outside of all transforms: new arrays are NumPy's.

    For functions that are known to meet nothing traced, such as those that a solver calls often.
    """
    here = get_ident()
    mine = [trace for trace in running() if trace.thread == here]
    try:
        for trace in mine:
            trace.thread = 0
        yield
    finally:
        for trace in mine:
            trace.thread = here


def twin_in_memory(x: Any) -> Any:
    """The same, but a buffer for a buffer: a write to one is not seen in the other.

    It has the memory layout of ``x``, so that results of operations on both have one layout: a view stays a view.
    """
    if not isinstance(x, Tracer):
        return x
    made = buffer(twin(x)) if is_buffer(x) else twin(x)
    if is_buffer(made):
        made.link = LENT
    alias = getattr(x, "alias", None)
    if alias is READ_ONLY:
        made.alias = READ_ONLY
    elif type(alias) is View:
        root, view = twin_in_memory(alias.root), View()
        view.root, view.steps, view.locked, view.apart = root, alias.steps, alias.locked, alias.apart
        root.alias, made.alias = Views([ref(made)]), view
    return made


def identity(x: Any) -> Any:
    """What tells values apart: the same for a tracer and its twins."""
    return (id(x._trace), id(x._val), id(x.link)) if isinstance(x, Tracer) else id(x)


def handed(values: Sequence[Any], given: Any) -> list[Any]:
    """``values``, which a transform or a loop gives, for the function around it: as operations would give them.

    So they can be written to, unless the transform was ``given`` (a tree) ordinary arrays only. Others may hold the
    memory too, a tape for instance. Where no function is being transformed arrays stay arrays.
    """
    if not inside() or not [x for x in values if not isinstance(x, Tracer)]:
        return list(values)
    leaves = tree.leaves(given)
    ordinary = any(type(x) is ndarray and x.ndim for x in leaves) and not any(isinstance(x, Tracer) for x in leaves)
    return [x if ordinary and type(x) is ndarray else _handed(x) for x in values]


def _handed(x: Any) -> Any:
    if isinstance(x, Tracer) or not backend.is_value(x):
        return x
    made = as_buffer(x, ())
    if is_buffer(made) and type(x) is ndarray:
        made.link = LENT
    return made


def argument(x: Any) -> Any:
    """``x`` as a function gets it that must not write to it; an array of NumPy as it is."""
    if not isinstance(x, Tracer):
        return x
    x = twin(x)
    if isinstance(x, Tracer):
        x.alias = READ_ONLY
    elif type(x) is ndarray and x.flags.writeable:
        x = x.view()
        x.flags.writeable = False
    elif type(x) is not ndarray:
        x = constant(x)
    return x


def move(x: Tracer, new: Any) -> None:
    """Let the object ``x`` refer to ``new`` from now on: what a tracer of whatever trace stands for, or an array.

    Who asks holds ``changing``, see ``running``.
    """
    if not isinstance(new, Tracer):
        new = buffer(new)
    if x._trace is CONSTANTS and not x._val.shape and getattr(x, "alias", None) is None:
        x.alias = Views()  # what is to stand for something traced stays an array, and becomes no number
    x._val, x._trace, x.link, x.form = new._val, new._trace, new.link, None


def as_array(x: Any) -> Any:
    """``x``, a new result that NumPy gives as an array even where it has no axes: as one that has memory."""
    if isinstance(x, Tracer) and not is_buffer(x) and not x.shape and getattr(x, "alias", None) is None:
        x.alias = Views()
    return x


def as_number(x: Any) -> Any:
    """``x``, a new result that NumPy gives as a scalar where it has no axes: it has no memory, whatever was read."""
    if not isinstance(x, Tracer) or x.shape:
        return x
    if is_buffer(x):
        return x._val[()] if type(x._val) is ndarray else x
    return x if getattr(x, "alias", None) is None else twin(x)


def root_of(x: Tracer) -> Tracer:
    """The tracer whose memory ``x`` stands for a part of: its own, where it is no view."""
    alias = getattr(x, "alias", None)
    return alias.root if type(alias) is View else x


def is_number(x: Tracer) -> bool:
    """Whether ``x`` stands for a number, as NumPy's scalars do: it has no memory that others could share."""
    return not x.shape and not is_buffer(x) and type(getattr(x, "alias", None)) not in (View, Views)


def views_of(x: Tracer) -> Any:
    """The list of the views of ``x``, made where there is none: two threads must not make two."""
    with changing:
        alias = getattr(x, "alias", None)
        if alias is None:
            alias = x.alias = Views()
        return alias


def copy_small(part: Tracer) -> None:
    """Give ``part``, which shows a part of an array, memory of its own if it is small."""
    for name in ("_val", "link") if isinstance(part._trace, ForwardTrace) else ("_val",):
        found = getattr(part, name)
        if isinstance(found, Tracer):
            if type(getattr(found, "alias", None)) is View:  # the program never sees it, and it would hold the whole
                del found.alias
            copy_small(found)
        elif type(found) is ndarray and found.base is not None and _FEW * found.size <= getattr(found.base, "size", 0):
            setattr(part, name, found.copy("K"))


def refresh(root: Tracer) -> None:
    """Take all views of ``root`` anew, after a write to it."""
    views = [view for r in getattr(root, "alias", None) or () if (view := r()) is not None]
    if views:
        source = buffer(root._val) if is_buffer(root) else twin(root)
        for view in views:
            move(view, view.alias.take(source))
            if not is_buffer(view):  # buffers share the memory that is written to
                view.alias.apart = True
                copy_small(view)
