"""Results of operations, kept from a first run for the runs that repeat it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import get_ident
from typing import Any

import numpy as np

from funcgrad import blocks
from funcgrad.core import Primitive
from funcgrad.errors import ReplayError

__all__ = ["NAME", "Memory"]

#: The operation that gives its argument a name.
NAME = "checkpoint_name"


class Memory:
    """The results that a policy picked in a run, by the number of the operation.

    A later run must do the same operations in the same order. Those whose results are kept are not done.

    Args:
        name: what is run, for messages.
        policy: ``policy(operation, params, result)`` says whether to keep a result.
    """

    def __init__(self, name: str, policy: Callable[[str, dict[str, Any], Any], bool]) -> None:
        self.name = name
        self.policy = policy
        self.operations: list[str] = []
        self.kept: dict[int, Any] = {}

    def observed(self) -> AbstractContextManager[None]:
        """The block of the first run."""
        return blocks.through(_First(self, blocks.current().runner))

    @contextmanager
    def fed(self) -> Iterator[None]:
        """The block of a run that repeats it.

        Raises:
            ReplayError: it does other operations.
        """
        runner = _Repeated(self, blocks.current().runner)
        with blocks.through(runner):
            yield
        if runner.done != len(self.operations):
            raise differs(self.name, f"{runner.done} operations instead of {len(self.operations)}")


def differs(name: str, what: str) -> ReplayError:
    """The error of a run that does not repeat the first one."""
    return ReplayError(
        f"{name}: run again in the backward pass it did not do what it did before, got {what}. It must depend on its "
        "arguments and on what it closes over alone: draw random numbers outside and pass them in, and change nothing "
        "that it reads."
    )


class _Runner:
    """Computes operations; what a kernel calls is not seen."""

    def __init__(self, memory: Memory, outer: Any) -> None:
        self._memory = memory
        self._outer = outer
        self._inside: set[int] = set()  # the threads in which a kernel is running

    def run(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The result of an operation."""
        here = get_ident()
        if here in self._inside:
            return primitive.compute(args, params)
        self._inside.add(here)
        try:
            return self.answer(primitive, args, params)
        finally:
            self._inside.discard(here)

    def answer(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The same of one that is seen."""
        raise NotImplementedError

    def compute(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """What the runner around this one computes, or the kernel."""
        outer = self._outer
        return primitive.compute(args, params) if outer is None else outer.run(primitive, args, params)


class _First(_Runner):
    """Computes operations and keeps what the policy says."""

    def __init__(self, memory: Memory, outer: Any) -> None:
        super().__init__(memory, outer)
        self._makers: dict[int, tuple[Any, int]] = {}  # by the identity of an array: itself, and who made it

    def answer(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        ans = self.compute(primitive, args, params)
        memory = self._memory
        number = len(memory.operations)
        memory.operations.append(primitive.name)
        if memory.policy(primitive.name, params, ans):
            memory.kept[number] = ans
            if primitive.name == NAME:
                array, maker = self._makers.get(id(args[0]), (None, number))
                if array is not None and array() is args[0]:
                    memory.kept[maker] = args[0]
        elif type(ans) is np.ndarray:
            self._makers[id(ans)] = (weakref.ref(ans), number)
        return ans


class _Repeated(_Runner):
    """Hands out what is kept, in order, and computes the rest."""

    def __init__(self, memory: Memory, outer: Any) -> None:
        super().__init__(memory, outer)
        self.done = 0

    def answer(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        memory, number = self._memory, self.done
        before = memory.operations[number] if number < len(memory.operations) else "the end"
        if before != primitive.name:
            raise differs(memory.name, f"{primitive.name} as operation {number} instead of {before}")
        self.done += 1
        if number in memory.kept:
            return memory.kept[number]
        return self.compute(primitive, args, params)
