"""``with`` blocks that change how operations are computed, such as ``no_grad``, and their state.

Operations do not look for a block. Entering a block sets ``trace.fast`` to False for all open runs, and so begin
the runs inside. Operations on these take the general path, ``core.bind``, which looks for the block. After
the last block has ended, the next operation restores the fast path.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from weakref import ref

from funcgrad.shared_state import active_traces

if TYPE_CHECKING:
    from funcgrad.core import Primitive, Trace
    from funcgrad.reverse import Record

#: Weak references to the exits of all blocks of the process, until ``none_open`` removes those of ended blocks.
#: A plain list, because threads and signal handlers change a list in one atomic step.
open_exits: Final[list[ref[Any]]] = []
#: Number of entries from which on it pays to remove ended blocks.
_MANY = 16


class Runner(Protocol):
    """Object that computes operations on plain values in place of their kernels."""

    def run(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], /) -> Any:
        """Compute the result of an operation."""

    def mark(self) -> Callable[[], None]:
        """Return a function that makes the runner forget the operations from now on: they will be done again."""


class PassWatcher(Protocol):
    """Object that calls the VJP rules of one backward pass."""

    def vjp(self, ct: Any, node: Record, /) -> Any:
        """Call the VJP rule of a record with a cotangent; return a pair for each parent."""


class Watcher(Protocol):
    """Observer of traces while they process operations, and of backward passes while they visit records.

    The watcher of an inner block takes over the properties of the watcher around it.
    """

    @property
    def nans(self) -> bool:
        """Whether a NaN or an infinity is an error."""

    @property
    def all(self) -> bool:
        """Whether a structurally zero derivative of any transform is an error."""

    @property
    def writes(self) -> bool:
        """Whether it observes writes to arrays; else a write happens in place as in a plain run."""

    @property
    def meter(self) -> Any:
        """Meter of operations and VJP rules, or None."""

    @property
    def dropped(self) -> list[Any]:
        """Cases in which a VJP rule returned None for a parent: operation, origin, and the parent."""

    def begin(self, trace: Trace, /) -> Any:
        """Return the ``cuts`` of a new trace, which note where the derivative is cut; None if they are not wanted."""

    def process(self, trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], /) -> Any:
        """Let a trace process an operation, and return the result."""

    def note_stopped(self, trace: Trace, args: tuple[Any, ...], /) -> None:
        """Note an operation that ``no_grad`` hides from a trace."""

    def backward_pass(self, pending: dict[int, Any], /) -> PassWatcher | None:
        """Return the caller of VJP rules for a pass that begins with these cotangents; None for ordinary calls."""


class Gate(Protocol):
    """Object that gives operations other arguments, so that derivatives do not pass."""

    def arguments(self, args: tuple[Any, ...], /) -> tuple[Any, ...]:
        """Return the arguments for an operation on ``args``; the same tuple if none changes."""

    def renewed(self) -> Gate:
        """Return a gate that does the same and remembers nothing, for a run that may be repeated."""


class State(NamedTuple):
    """Combined effect of the ``with`` blocks that are open in a context.

    Attributes:
        min_level: derivative traces whose level lies below this number do not record (see ``transforms.no_grad``).
        runner: the object that computes operations on plain values; None for their kernels.
        watcher: the observer, or None.
        as_written: whether transforms run functions as they are written, see ``numpy_code``.
        gate: the object that gives operations other arguments, or None, see ``transforms.control.selecting``.
    """

    min_level: int = 0
    runner: Runner | None = None
    watcher: Watcher | None = None
    as_written: bool = False
    gate: Gate | None = None

    def observes_writes(self) -> bool:
        """Whether a write to an array must become an operation, because a block observes or changes operations."""
        changes = self.min_level > 0 or self.runner is not None or self.gate is not None
        return changes or (self.watcher is not None and self.watcher.writes)


NO_BLOCK: Final = State()
#: Linked list of the blocks entered in this context: a weak reference to the exit of the innermost one, and the rest.
_blocks: ContextVar[Any] = ContextVar("blocks", default=None)
#: Function that returns the list of blocks entered in this context, None if there are none.
last_entered: Final = _blocks.get


class _ContextMethod:
    """``__enter__`` or ``__exit__`` of a ``Block``: the ``with`` statement looks up both before it calls either."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, block: Block | None, owner: type) -> Any:
        if block is not None:
            return block._method(self._name)
        return Block._enter_by_hand if self._name == "__enter__" else Block._leave_by_hand


class Block:
    """A ``with`` block that changes how operations are computed. One object may be entered many times.

    A block must end even if it is left by an interrupt. An interrupt may come between any two calls in Python, so the
    exit must need no Python code: the ``with`` statement calls the release of a lock, which is atomic, and only this
    exit function refers to the state of the block.

    Args:
        change: ``change(state)`` returns the state inside from the state outside.
    """

    __slots__ = ("_by_hand", "_change", "_unpaired")

    __enter__ = _ContextMethod()
    __exit__ = _ContextMethod()

    def __init__(self, change: Callable[[State], State]) -> None:
        self._change = change
        self._unpaired: dict[int, tuple[Any, str]] = {}  # by thread: an exit, and the method that was looked up for it
        self._by_hand: dict[int, list[Any]] = {}

    def _method(self, name: str) -> Any:
        leave, first = self._unpaired.pop(get_ident(), (None, name))
        if first == name:  # a new pair; an interrupt may have left one method of another pair
            leave = self._make_exit()
            self._unpaired[get_ident()] = leave, name
        return leave.lock.__enter__ if name == "__enter__" else leave

    def _make_exit(self) -> Any:
        """Make the exit function of the block; the block is open while the lock of this function is held."""
        if len(open_exits) >= _MANY:
            none_open()
        lock = Lock()
        leave: Any = partial(lock.__exit__)
        leave.lock, leave.state, leave.is_over = lock, self._change(current()), False
        _blocks.set((ref(leave), _innermost()))
        open_exits.append(ref(leave))
        for trace in active_traces():
            trace.leave_fast_path()
        return leave

    def _enter_by_hand(self) -> None:
        """Enter the block through a method of the class, as ``contextlib.ExitStack`` does."""
        leave = self._make_exit()
        self._by_hand.setdefault(get_ident(), []).append(leave)
        leave.lock.acquire()

    def _leave_by_hand(self, *error: object) -> None:
        mine = self._by_hand.get(get_ident())
        entered = mine or next(filter(None, reversed(self._by_hand.values())), None)  # or by another thread
        if not entered:
            raise RuntimeError("the block is left more often than it was entered")
        entered.pop()(*error)


def _innermost() -> Any:
    """Return the entry of the innermost open block of this context, None if no block is open."""
    entry = _blocks.get()
    while entry is not None:
        leave = entry[0]()
        if leave is not None and leave.lock.locked() and not leave.is_over:
            break
        entry = entry[1]
    return entry


def end_early(watcher: Watcher) -> None:
    """End the block that brought this watcher, before its ``with`` statement is left."""
    entry, own = _blocks.get(), None
    while entry is not None:
        leave = entry[0]()
        own = entry[0] if leave is not None and leave.state.watcher is watcher else own  # blocks inside took it over
        entry = entry[1]
    if own is not None and (leave := own()) is not None:
        leave.is_over = True
        if own in open_exits:
            open_exits.remove(own)


def current() -> State:
    """Return the combined effect of the open blocks of this context."""
    entry = _innermost()
    leave = None if entry is None else entry[0]()
    if leave is not None:
        state: State = leave.state
        return state
    forget_ended()
    return NO_BLOCK


def forget_ended() -> None:
    """Forget the blocks of this context if all have ended; a block that is just being entered still has its exit."""
    entry = first = _blocks.get()
    while entry is not None and entry[0]() is None:
        entry = entry[1]
    if first is not None and entry is None:
        _blocks.set(None)


def none_open() -> bool:
    """Whether no block is open in the whole process; forget ended blocks, also those of this context."""
    forget_ended()
    for over in [leave for leave in open_exits if leave() is None]:
        try:
            open_exits.remove(over)
        except ValueError:  # another thread has removed it
            pass
    return not open_exits


def runner_block(runner: Runner | None) -> Block:
    """Make a block in which ``runner`` computes all operations on plain values; None for their kernels."""
    return Block(lambda state: state._replace(runner=runner))


def current_watcher() -> Watcher | None:
    """Return the watcher of this context, or None."""
    return current().watcher if last_entered() is not None else None
