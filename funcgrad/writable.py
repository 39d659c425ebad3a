"""Arrays that a program writes to: ``x[i] = y`` and its consequences.

A write to a tracer makes the object refer to a new value (``rebind``). Other holders of the object see the write, as
with an ndarray; a tape must not see it: ``core.shallow_copy`` states the rule.

A view in NumPy, such as ``x[1:]`` or ``x.T``, shares memory with its base. A tracer that is a view knows the *root*
from which it was taken and the steps that lead to it; the root has weak references to its views. A write to a view
goes to the root, and the views of a root are taken again after every write to the root.

An array of constants made by a transformed function, with ``zeros`` for instance, is a *buffer*: the function may write
traced values to it, which an ndarray cannot hold. A buffer is a tracer of the trace ``CONSTANTS``, which is older
than all runs. Arguments of a transformed function are read-only: a pure function does not change its arguments.

``Tracer.alias`` tells these apart: ``READ_ONLY``; a ``View`` for a view; ``Views`` for a root, and for an array without
axes; unset for a number, and for an array from which no view was taken yet.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any, Final
from weakref import ref

import numpy as np

from funcgrad import backend, blocks, tree
from funcgrad.core import READ_ONLY, Primitive, Trace, Tracer, is_in_transform, plain_value, shallow_copy
from funcgrad.forward import ForwardTrace
from funcgrad.shared_state import repetitions, unfinished_traces

ndarray = np.ndarray
#: Types for which NumPy is the array library.
_NUMPY = frozenset((ndarray, float, int, np.float64))
#: Bit of the flags of a writable array, see ``NPY_ARRAY_WRITEABLE`` in NumPy's C interface. ``flags.writeable`` itself
#: warns if the array comes from ``broadcast_arrays``.
_WRITABLE = 0x400
#: Value of ``Tracer.link`` that marks a buffer whose array is shared, so that a write copies the array first.
COPY_ON_WRITE: Final = object()
#: Value of ``View.locked``, see there.
ONCE: Final = object()
#: Ratio of sizes from which on a part of an array is small compared with the whole.
_SMALL_PART = 4
#: One step in taking a view: a function of the base, and its parameters.
ViewStep = tuple[Callable[..., Any], dict[str, Any]]


class _Constants(Trace):
    """Trace of the arrays of constants that transformed functions make. It is not a run, and older than all runs.

    Operations on buffers are computed, and their results are buffers, too. A write of a traced value to a buffer turns
    the buffer into a tracer of the trace of that value.
    """

    __slots__ = ()

    def __init__(self) -> None:
        self.level = self.thread = 0
        self.open = self.fast = True
        self.cuts = self.fast_counter = self.counter = None

    def process(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        lowered = tuple([a._val if type(a) is Tracer and a._trace is self else a for a in args])
        plain = blocks.last_entered() is None
        for a in lowered:
            if isinstance(a, Tracer):  # another thread has written a traced value to an argument
                return primitive.call(*args, **params)
            plain = plain and type(a) in _NUMPY
        ans = primitive.kernel(np)(*lowered, **params) if plain else primitive.evaluate(lowered, params)
        if primitive.multiple:
            return tuple([as_buffer(a, lowered) for a in ans])
        return as_buffer(ans, lowered)

    def shallow_copy_of(self, x: Tracer) -> Any:
        """Return the array itself and mark it as shared: the next write to the buffer copies the array first."""
        if (root := root_of(x))._trace is self:
            root.link = COPY_ON_WRITE
        return x._val


CONSTANTS: Final = _Constants()


def make_buffer(value: Any) -> Tracer:
    """Make a buffer: an array of any library that a transformed function made and can write to."""
    made = Tracer()
    made._val, made._trace, made.link, made.aval, made.alias = value, CONSTANTS, None, None, None
    return made


def is_buffer(x: Any) -> bool:
    """Whether ``x`` is a buffer to which no traced value has been written yet."""
    return type(x) is Tracer and x._trace is CONSTANTS


def as_buffer(ans: Any, args: tuple[Any, ...]) -> Any:
    """Return a result as a buffer if NumPy gives a new array; NumPy scalars stay, because they are read-only."""
    if isinstance(ans, Tracer):  # the result of an operation that runs a user function
        return ans
    if type(ans) is not ndarray:
        if backend.shape_of(ans):
            return make_buffer(ans)
        return as_constant(ans) if backend.is_jax_tracer(ans) else ans  # NumPy cannot compute with a JAX tracer
    made = make_buffer(ans)
    for a in args:
        if a is ans:
            made._val = ans.copy("K")
    if not ans.flags.num & _WRITABLE:
        made.link = COPY_ON_WRITE
    return made


def as_constant(x: Any) -> Tracer:
    """Wrap ``x``, a value of another library, in a read-only buffer, with which NumPy's functions can compute."""
    made = make_buffer(x)
    made.alias = READ_ONLY
    return made


def unshare(x: Tracer) -> None:
    """Copy the memory of the buffer ``x``, which is not a view, before a write, if the memory is shared."""
    if x.link is COPY_ON_WRITE:
        copied = x._val.copy("K")
        x.link = None  # before the new value is stored, see ``shared_array``
        x._val = copied
        refresh_views(x)


def shared_array(x: Tracer) -> Any:
    """Return the array of a buffer whose memory is marked as shared, so that a write copies it first; else None."""
    value = x._val  # read first: a write in another thread changes the mark before it stores the copy
    return value if x.link is COPY_ON_WRITE else None


#: Types of results that are immutable.
_NUMBERS = frozenset((bool, int, float, complex, np.bool_, np.float64, np.float32))


def writable_result(args: tuple[Any, ...], ans: Any) -> Any:
    """Return ``ans`` as a buffer if it is a constant made from traced arguments ``args``; else unchanged.

    Operations without a derivative and ``no_grad`` blocks give such results. A result that shares memory with an
    argument is read-only, unless it is noted as a view.
    """
    if type(ans) in _NUMBERS:
        return ans
    if type(ans) is tuple:
        return tuple([writable_result(args, a) for a in ans])
    if isinstance(ans, Tracer) or not backend.is_value(ans) or not backend.is_inexact(ans):
        return ans
    sources = [plain_value(a) for a in args if isinstance(a, Tracer)]
    part = type(ans) is ndarray and any(type(a) is ndarray and np.may_share_memory(a, ans) for a in sources)
    if not sources or not (part or backend.shape_of(ans)):
        return ans
    made = make_buffer(ans)
    if type(ans) is ndarray and not ans.flags.num & _WRITABLE:
        made.link = COPY_ON_WRITE
    if part:
        made.alias = READ_ONLY
    return made


class Proxy:
    """An object that represents an array, such as ``x.flat``."""

    __slots__ = ()
    has_fields = False
    #: Whether the object is a part ``x[mask]`` of unknown length, see ``numpy.selections``.
    is_selection = False

    def as_array(self) -> Any:
        """Return the array."""
        raise NotImplementedError

    def as_operand(self) -> Any:
        """Return the value that NumPy's functions use for this object."""
        return self.as_array()

    def as_target(self) -> Any:
        """Return the array to which NumPy's functions write for this object; the object itself if there is none."""
        return self

    def as_index(self, index: Any) -> Any:
        """Return ``index``, which begins with this object, as NumPy's functions take it."""
        return index

    def as_written(self, x: Any, index: Any) -> tuple[Any, Any]:
        """Return an index and a value, with which ``x[index] = value`` writes this object to ``x[index]``."""
        return index, self.as_array()

    def number_by(self, name: str) -> Any:
        """Return the traced number that the method of this name converts to a plain one: ``__float__``, for example."""
        return self.as_array()

    def as_result(self) -> Any:
        """Return what a transformed function returns in place of this object."""
        return self.as_array()

    def array_class(self) -> type:
        """Return the class of the array that this object represents; that of the object if it represents none."""
        return type(self)

    def compute_ufunc(self, ufunc: Any, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return the result of a method of a ufunc on ``args``; NotImplemented if the class has no rule of its own."""
        return NotImplemented

    def replace_call(self, name: str, args: tuple[Any, ...]) -> Any:
        """Return the replacement for the operation ``name`` on ``args``, which contain this object; None for none."""

    def wrap(self, ans: Any, name: str) -> Any:
        """Return the result of the operation ``name`` on this object, given its result ``ans`` on the array."""
        return ans


def is_selection(x: Any) -> bool:
    """Whether ``x`` is a part ``x[mask]`` of unknown length, see ``numpy.selections``."""
    return isinstance(x, Proxy) and x.is_selection


class View:
    """How a view was taken from its root. Objects are made empty and then filled, like tracers.

    Attributes:
        root: the tracer from which the view was taken, which is not a view itself.
        steps: the steps from the root to the view.
        locked: whether the view is read-only, like the result of ``numpy.diagonal``; ``ONCE`` if it shows an element
            several times, and a write may name it once only.
        has_own_memory: whether the value may have its own memory, with another layout than NumPy's view, see
            ``views.copy_small_part``.
    """

    __slots__ = ("has_own_memory", "locked", "root", "steps")

    root: Tracer
    steps: tuple[ViewStep, ...]
    locked: Any
    has_own_memory: bool

    def take(self, x: Any) -> Any:
        """Take the same view of another array."""
        return take_steps(x, self.steps)


def take_steps(x: Any, steps: tuple[ViewStep, ...]) -> Any:
    """Take a view of ``x``, step by step."""
    for step, params in steps:
        x = step(x, **params)
    return x


class Views(list[ref[Any]]):
    """Weak references to the views of an array.

    Attributes:
        written: whether a traced value has been written to the array.
        half_exchange: set when one view is written to the place of another view, which may be the first half of a swap:
            the views of that place, and the steps to the view that was written. The next write resets it.
    """

    written = False
    half_exchange: tuple[list[ref[Any]], tuple[ViewStep, ...]] | None = None


@contextmanager
def outside_transforms() -> Generator[None]:
    """Context manager in which functions run as outside of all transforms: new arrays are plain NumPy arrays.

    Use it for functions that never see traced values, such as those that a solver calls often.
    """
    here = get_ident()
    mine = [trace for trace in unfinished_traces() if trace.thread == here]
    repeated = repetitions.set(())
    try:
        for trace in mine:
            trace.thread = 0
        yield
    finally:
        repetitions.reset(repeated)
        for trace in mine:
            trace.thread = here


def detached_copy(x: Any) -> Any:
    """Return a shallow copy of ``x``, for a buffer a buffer; a write to one is not seen in the other.

    The copy has the memory layout of ``x``, so that results of operations on both have one layout: a view stays a view.
    """
    if not isinstance(x, Tracer):
        return x
    made = make_buffer(shallow_copy(x)) if is_buffer(x) else shallow_copy(x)
    if is_buffer(made):
        made.link = COPY_ON_WRITE
    alias = x.alias
    if alias is READ_ONLY:
        made.alias = READ_ONLY
    elif type(alias) is View:
        root, view = detached_copy(alias.root), View()
        view.root, view.steps, view.locked, view.has_own_memory = root, alias.steps, alias.locked, alias.has_own_memory
        root.alias, made.alias = Views([ref(made)]), view
    return made


def identity_key(x: Any) -> Any:
    """Return a key that identifies a value: equal for a tracer and its shallow copies."""
    return (id(x._trace), id(x._val), id(x.link)) if isinstance(x, Tracer) else id(x)


def as_results(values: Sequence[Any], given: Any) -> list[Any]:
    """Return ``values``, results of a transform or a loop, in the form in which operations give their results.

    See ``as_inner_results``. Outside of all transforms, arrays stay arrays.
    """
    return as_inner_results(values, given) if is_in_transform() else list(values)


def as_inner_results(values: Sequence[Any], given: Any) -> list[Any]:
    """Return results of a transform inside a transformed function.

    Arrays become buffers, whose memory counts as shared, since a tape may hold it. Arrays stay arrays if the transform
    was ``given`` (a tree) ordinary arrays only.
    """
    leaves = tree.leaves(given)
    ordinary = any(type(x) is ndarray and x.ndim for x in leaves) and Tracer not in map(type, leaves)
    return [x if ordinary and type(x) is ndarray else _as_result(x) for x in values]


def _as_result(x: Any) -> Any:
    if isinstance(x, Tracer) or not backend.is_value(x):
        return x
    made = as_buffer(x, ())
    if is_buffer(made) and type(x) is ndarray:
        made.link = COPY_ON_WRITE
    return made


def as_argument(x: Any) -> Any:
    """Return ``x`` as a read-only argument of a user's function: a copy of a tracer, a view of an array."""
    made = shallow_copy(x) if type(x) is Tracer else x
    if type(made) is Tracer:
        made.alias = READ_ONLY
    elif type(made) is ndarray and made.flags.num & _WRITABLE:
        made = made.view()
        made.flags.writeable = False
    elif type(made) is not ndarray and made is not x:  # from a buffer of another library
        made = as_constant(made)
    return made


def rebind(x: Tracer, new: Any) -> None:
    """Make the object ``x`` refer to the value of ``new``, a tracer of any trace or an array.

    The caller holds the lock ``write_lock``, see ``shared_state``.
    """
    if not isinstance(new, Tracer):
        new = make_buffer(new)
    if x._trace is CONSTANTS and not x._val.shape and x.alias is None:
        x.alias = Views()  # an array without axes stays an array when a traced value is written to it
    x._val, x._trace, x.link, x.aval = new._val, new._trace, new.link, None


def as_array(x: Any) -> Any:
    """Mark ``x``, a new result that is an array in NumPy even if it has no axes, as an array with memory; return it."""
    if isinstance(x, Tracer) and not is_buffer(x) and not x.shape and x.alias is None:
        x.alias = Views()
    return x


def as_number(x: Any) -> Any:
    """Return ``x``, a new result that is a scalar in NumPy if it has no axes, as a number without memory."""
    if not isinstance(x, Tracer) or x.shape:
        return x
    if is_buffer(x):
        return x._val[()] if type(x._val) is ndarray else x
    return x if x.alias is None else shallow_copy(x)


def root_of(x: Tracer) -> Tracer:
    """Return the tracer that owns the memory of ``x``: the root of a view, else ``x`` itself."""
    alias = x.alias
    return alias.root if type(alias) is View else x


def steps_of(x: Tracer) -> tuple[ViewStep, ...]:
    """Return the steps in which ``x`` was taken from its root; none if ``x`` is not a view."""
    alias = x.alias
    return alias.steps if type(alias) is View else ()


def is_number(x: Tracer) -> bool:
    """Whether ``x`` represents a number, like a NumPy scalar, without memory that could be shared."""
    return not x.shape and not is_buffer(x) and type(x.alias) not in (View, Views)


def views_of(x: Tracer) -> Any:
    """Return the list of the views of ``x``; make the list at first use.

    The list is stored without a call in between, so that two threads find the same one, see ``shared_state``.
    """
    made = Views()
    if x.alias is None:
        x.alias = made
    return x.alias


def copy_small(part: Tracer) -> None:
    """Copy ``part``, a part of an array, to memory of its own if it is small."""
    for name in ("_val", "link") if isinstance(part._trace, ForwardTrace) else ("_val",):
        found = getattr(part, name)
        if isinstance(found, Tracer):
            if type(found.alias) is View:  # not visible to the program, and would keep the root alive
                found.alias = None
            copy_small(found)
        elif (
            type(found) is ndarray
            and found.base is not None
            and _SMALL_PART * found.size <= getattr(found.base, "size", 0)
        ):
            setattr(part, name, found.copy("K"))


def refresh_views(root: Tracer) -> None:
    """Take all views of ``root`` again, after a write to ``root``."""
    known = () if root.alias is READ_ONLY else root.alias or ()
    views = [view for r in known if (view := r()) is not None]
    if views:
        source = make_buffer(root._val) if is_buffer(root) else shallow_copy(root)
        for view in views:
            rebind(view, view.alias.take(source))
            if not is_buffer(view):  # views of buffers must share the memory that is written to
                view.alias.has_own_memory = True
                copy_small(view)
