"""Results of operations that are kept from a first run for its repetitions."""

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

#: Name of the operation that names its argument for policies.
CHECKPOINT_NAME = "checkpoint_name"


class Memory:
    """Results that a policy chose in a run, by the number of the operation.

    A repetition must do the same operations in the same order. It does not compute those whose results are kept.

    Args:
        name: the name of the run, for messages.
        policy: ``policy(operation, params, result)`` returns whether to keep a result.
    """

    def __init__(self, name: str, policy: Callable[[str, dict[str, Any], Any], bool]) -> None:
        self.name = name
        self.policy = policy
        self.operations: list[str] = []
        self.kept: dict[int, Any] = {}

    def first_run_block(self) -> AbstractContextManager[None]:
        """Return the block for the first run."""
        return blocks.runner_block(_FirstRunner(self, blocks.current().runner))

    @contextmanager
    def repetition_block(self) -> Iterator[None]:
        """Return the block for a repetition.

        Raises:
            ReplayError: the repetition does other operations.
        """
        runner = _RepeatRunner(self, blocks.current().runner)
        with blocks.runner_block(runner):
            yield
        if runner.done != len(self.operations):
            raise replay_error(self.name, f"{runner.done} operations instead of {len(self.operations)}")


def replay_error(name: str, what: str) -> ReplayError:
    """Make the error for a repetition that differs from the first run."""
    return ReplayError(
        f"{name}: run again in the backward pass it did not do what it did before, got {what}. It must depend on its "
        "arguments and on what it closes over alone: draw random numbers outside and pass them in, and change nothing "
        "that it reads."
    )


class _Runner:
    """Runner of operations; operations inside a kernel are not observed."""

    def __init__(self, memory: Memory, outer: Any) -> None:
        self._memory = memory
        self._outer = outer
        self._inside: set[int] = set()  # the threads in which a kernel is running

    def run(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Compute the result of an operation."""
        here = get_ident()
        if here in self._inside:
            return primitive.compute(args, params)
        self._inside.add(here)
        try:
            return self.compute_observed(primitive, args, params)
        finally:
            self._inside.discard(here)

    def mark(self) -> Callable[[], None]:
        """Return a function that makes the runner forget the operations from now on: they will be done again."""
        count, outer = self.count(), self._outer and self._outer.mark()

        def rewind() -> None:
            self.forget_from(count)
            if outer is not None:
                outer()

        return rewind

    def compute_observed(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Compute the result of an operation that is not inside a kernel."""
        raise NotImplementedError

    def count(self) -> int:
        """Return the number of operations done."""
        raise NotImplementedError

    def forget_from(self, count: int) -> None:
        """Forget the operations from this number on."""
        raise NotImplementedError

    def compute(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Compute an operation by the runner around this one, or else by its kernel."""
        outer = self._outer
        return primitive.compute(args, params) if outer is None else outer.run(primitive, args, params)


class _FirstRunner(_Runner):
    """Runner of the first run; it keeps the results that the policy chooses."""

    def __init__(self, memory: Memory, outer: Any) -> None:
        super().__init__(memory, outer)
        self._makers: dict[int, tuple[Any, int]] = {}  # by ``id`` of an array: a weak reference, its operation's number

    def compute_observed(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        ans = self.compute(primitive, args, params)
        memory = self._memory
        number = len(memory.operations)
        memory.operations.append(primitive.name)
        if memory.policy(primitive.name, params, ans):
            memory.kept[number] = ans
            if primitive.name == CHECKPOINT_NAME:
                array, maker = self._makers.get(id(args[0]), (None, number))
                if array is not None and array() is args[0]:
                    memory.kept[maker] = args[0]
        elif type(ans) is np.ndarray:
            self._makers[id(ans)] = (weakref.ref(ans), number)
        return ans

    def count(self) -> int:
        return len(self._memory.operations)

    def forget_from(self, count: int) -> None:
        memory = self._memory
        del memory.operations[count:]
        memory.kept = {number: ans for number, ans in memory.kept.items() if number < count}
        self._makers = {key: made for key, made in self._makers.items() if made[1] < count}


class _RepeatRunner(_Runner):
    """Runner of a repetition; it returns the kept results, in order, and computes the others."""

    def __init__(self, memory: Memory, outer: Any) -> None:
        super().__init__(memory, outer)
        self.done = 0

    def compute_observed(self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        memory, number = self._memory, self.done
        before = memory.operations[number] if number < len(memory.operations) else "the end"
        if before != primitive.name:
            raise replay_error(memory.name, f"{primitive.name} as operation {number} instead of {before}")
        self.done += 1
        if number in memory.kept:
            return memory.kept[number]
        return self.compute(primitive, args, params)

    def count(self) -> int:
        return self.done

    def forget_from(self, count: int) -> None:
        self.done = count
