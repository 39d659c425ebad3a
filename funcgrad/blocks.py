"""``with`` blocks that say how operations are computed, such as ``no_grad``, and what holds inside of them.

Operations do not look for a block. Entering one sets ``trace.live`` to False for all open runs, and for runs that begin
inside. Operations on these take the general path, ``core.bind``, which looks for the block. After the last block has
ended, the next operation restores the fast path.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from weakref import ref

from funcgrad.running import at_work

if TYPE_CHECKING:
    from funcgrad.core import Primitive, Trace
    from funcgrad.reverse import Node

__all__ = [
    "NO_BLOCK",
    "Block",
    "PassWatcher",
    "Runner",
    "State",
    "Watcher",
    "current",
    "entered",
    "here",
    "none_open",
    "through",
    "watching",
]

#: Weak references to what leaves the blocks of the whole process, until ``none_open`` finds that they have been left.
#: Nothing but a list, which threads and signal handlers change in one step each.
entered: Final[list[ref[Any]]] = []
#: So many of them, and it pays to see which have been left.
_MANY = 16


class Runner(Protocol):
    """What computes operations on plain values in place of their kernels."""

    def run(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], /) -> Any:
        """The result of an operation."""


class PassWatcher(Protocol):
    """What calls the pulls of one backward pass."""

    def pull(self, ct: Any, node: Node, /) -> Any:
        """What the pull of a record makes of a cotangent: a pair for each parent."""


class Watcher(Protocol):
    """Observes traces while they process operations, and backward passes while they visit records.

    The watcher of an inner block takes over the properties.
    """

    @property
    def nans(self) -> bool:
        """Whether a NaN or an infinity is an error."""

    @property
    def all(self) -> bool:
        """Whether a structurally zero derivative is an error, of every transform."""

    @property
    def meter(self) -> Any:
        """The meter of operations and pulls, or None."""

    @property
    def dropped(self) -> list[Any]:
        """Where a pull gave None for a parent: operation, origin, and the parent."""

    def begin(self, trace: Trace, /) -> Any:
        """The ``cuts`` of a new trace, which note where its derivative is cut; None if that is not wanted."""

    def process(self, trace: Trace, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any], /) -> Any:
        """Let a trace process an operation, and give the result."""

    def hidden(self, trace: Trace, args: tuple[Any, ...], /) -> None:
        """Hear of an operation that ``no_grad`` keeps from a trace."""

    def backward_pass(self, pending: dict[int, Any], /) -> PassWatcher | None:
        """What calls the pulls of a pass that begins with these cotangents; None where they are called as always."""


class State(NamedTuple):
    """What the ``with`` blocks that are open in a context say of the operations in it.

    Attributes:
        floor: derivative traces whose level lies below this number do not record (see ``transforms.no_grad``).
        runner: what computes operations on plain values; None for their kernels.
        watch: what looks on.
    """

    floor: int = 0
    runner: Runner | None = None
    watch: Watcher | None = None


NO_BLOCK: Final = State()
#: The blocks that were entered in this context: a weak reference to the exit of the innermost one, and the rest.
_blocks: ContextVar[Any] = ContextVar("blocks", default=None)
#: Whether a block was entered in this context, not None then.
here: Final = _blocks.get


class _Half:
    """``__enter__`` or ``__exit__`` of a ``Block``: the ``with`` statement asks for both before it calls either."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, block: Block | None, owner: type) -> Any:
        if block is not None:
            return block._half(self._name)
        return Block._enter_by_hand if self._name == "__enter__" else Block._leave_by_hand


class Block:
    """A ``with`` block that changes how operations are computed. One object may be entered many times.

    A block ends however it is left. An interrupt may come between any two calls of Python, so leaving must need no
    Python code: the ``with`` statement calls the release of a lock, which no interrupt divides, and only that exit
    holds the state of the block.

    Args:
        change: ``change(state)`` gives the state inside from the state outside.
    """

    __slots__ = ("_by_hand", "_change", "_halves")

    __enter__ = _Half()
    __exit__ = _Half()

    def __init__(self, change: Callable[[State], State]) -> None:
        self._change = change
        self._halves: dict[int, tuple[Any, str]] = {}  # by thread: an exit of which one half has been asked for
        self._by_hand: dict[int, list[Any]] = {}

    def _half(self, name: str) -> Any:
        leave, first = self._halves.pop(get_ident(), (None, name))
        if first == name:  # a new pair; an interrupt may have left half of another
            leave = self._prepared()
            self._halves[get_ident()] = leave, name
        return leave.lock.__enter__ if name == "__enter__" else leave

    def _prepared(self) -> Any:
        """The function that leaves the block, which is open while its lock is held."""
        if len(entered) >= _MANY:
            none_open()
        lock = Lock()
        leave: Any = partial(lock.__exit__)
        leave.lock, leave.state = lock, self._change(current())
        _blocks.set((ref(leave), _innermost()))
        entered.append(ref(leave))
        for trace in at_work():
            trace.rest()
        return leave

    def _enter_by_hand(self) -> None:
        """Enter it as ``contextlib.ExitStack`` does, which takes the methods of the class."""
        leave = self._prepared()
        self._by_hand.setdefault(get_ident(), []).append(leave)
        leave.lock.acquire()

    def _leave_by_hand(self, *error: object) -> None:
        self._by_hand[get_ident()].pop()(*error)


def _innermost() -> Any:
    """The entry of the innermost block of this context that is open, None where there is none."""
    entry = _blocks.get()
    while entry is not None:
        leave = entry[0]()
        if leave is not None and leave.lock.locked():
            break
        entry = entry[1]
    return entry


def current() -> State:
    """What the open blocks of this context say."""
    entry = _innermost()
    leave = None if entry is None else entry[0]()
    if leave is not None:
        state: State = leave.state
        return state
    _forget_here()
    return NO_BLOCK


def _forget_here() -> None:
    """Forget the blocks of this context if all have been left; one that is just being entered is still held."""
    entry = first = _blocks.get()
    while entry is not None and entry[0]() is None:
        entry = entry[1]
    if first is not None and entry is None:
        _blocks.set(None)


def none_open() -> bool:
    """Whether no block is open in the whole process; those that have been left are forgotten, in this context too."""
    _forget_here()
    for over in [leave for leave in entered if leave() is None]:
        try:
            entered.remove(over)
        except ValueError:  # another thread was quicker
            pass
    return not entered


def through(runner: Runner | None) -> Block:
    """The block in which ``runner`` computes the operations on plain values, all of them; None for the kernels."""
    return Block(lambda state: state._replace(runner=runner))


def watching() -> Watcher | None:
    """The watcher of this context, None where there is none."""
    return current().watch if here() is not None else None
