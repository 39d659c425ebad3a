"""Programs of NumPy code, without checks, for recorded functions that are called very often."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import tree
from funcgrad.errors import EagerWarning
from funcgrad.graph import Recording
from funcgrad.numpy.plain_values.hints import user_stacklevel
from funcgrad.transforms.closures import RecordedClosure
from funcgrad.transforms.compiled.agreeing import difference_message
from funcgrad.transforms.compiled.capture import UnrecordableError, capture
from funcgrad.transforms.compiled.source import Program, generate

#: Programs by the keys of their recordings, the oldest first; None for recordings without a program.
_programs: dict[Any, Program | None] = {}
_MAX_PROGRAMS = 64
_VALUES = (np.ndarray, np.generic)
_PLAIN = (int, float, complex, bool, str, bytes, type(None), np.generic, np.dtype, slice)


class StraightProgram:
    """Program of ``closure``, a function of one vector or matrix of doubles with one array as result.

    Unlike a program of ``jit`` it checks nothing: each call must have arrays of the same shapes, dtypes and
    strides. The program keeps memory between calls, so it is for one thread at a time. Functions with equal recordings
    share a program.

    Args:
        closure: the recorded function.

    Example:
        >>> x = np.zeros(2)
        >>> run, rest = StraightProgram(RecordedClosure("example", lambda x: fnp.sin(x) + 2.0 * x, x)).program(
        ...     x.shape, []
        ... )
        >>> run(np.ones(2), *rest)[0].round(6)
        array([2.841471, 2.841471])
    """

    def __init__(self, closure: RecordedClosure) -> None:
        self.closure = closure
        self._own_values: list[Any] = []
        self._key = recording_key(closure.recording, self._own_values)
        self._by_kinds: dict[Any, Program | None] = {}  # shared programs, by the kinds of their inputs

    def program(
        self, shape: tuple[int, ...], captured_values: Sequence[Any]
    ) -> tuple[Callable[..., Any], list[Any]] | None:
        """Return a program and the list of its last arguments; the program returns a tuple with one result.

        Args:
            shape: the shape of the array. For one such array the program must agree with the function up to rounding.
            captured_values: the values that the function holds, as plain numbers.

        Returns:
            None if there is no program.
        """
        inputs = [np.empty(shape), *captured_values, *self._own_values]
        kinds = tuple(map(input_kind, inputs))
        if kinds in self._by_kinds:
            program = self._by_kinds[kinds]
        else:
            program = self._shared_program(kinds, inputs, captured_values)
        return None if program is None else (program.run, [*self._own_values, program.allocate()])

    def _shared_program(self, kinds: Any, inputs: list[Any], captured_values: Sequence[Any]) -> Program | None:
        """Return the program that functions with equal recordings share."""
        shared = self._key, kinds
        program = _programs.get(shared)
        if program is None and shared not in _programs:
            inputs[0] = np.linspace(0.5, 1.5, inputs[0].size).reshape(inputs[0].shape)
            program = _checked_program(self.closure, inputs, self._own_values, self.closure(inputs[0], captured_values))
            if self._key is None:
                return program
            _programs[shared] = program
            while len(_programs) > _MAX_PROGRAMS:
                _programs.pop(next(iter(_programs)), None)
        self._by_kinds[kinds] = program
        return program


def input_kind(x: Any) -> tuple[Any, ...]:
    """Return the properties of an input on which a program without checks relies."""
    return type(x), np.shape(x), getattr(x, "strides", ()), getattr(x, "dtype", None)


def _checked_program(
    closure: RecordedClosure, inputs: list[Any], own_values: list[Any], expected: Any
) -> Program | None:
    """Return the program; None if it cannot be written, or, with a warning, if it gives other results."""
    try:
        program = _write_program(closure.recording, inputs, expected, own_values)
    except UnrecordableError:
        return None
    with np.errstate(all="ignore"):
        found = program.call(*inputs)
    if tree.structure(expected) != tree.structure(inputs[0]):
        return None
    if reason := difference_message(found[0], expected, False):
        warnings.warn(
            f"{closure.call}: a recorded function is run without its program, since {reason}. Results are right, only "
            "slower.",
            EagerWarning,
            stacklevel=user_stacklevel(),
        )
    return None if reason else program


def _write_program(recording: Recording, inputs: list[Any], expected: Any, own_values: list[Any]) -> Program:
    """Return the program of a recording, whose own arrays and NumPy numbers are inputs."""
    run = with_constants_as_inputs(recording, len(inputs) - len(own_values))
    with np.errstate(all="ignore"):
        graph, _ = capture(run, lambda values: (values, {}), inputs, np.copy, lambda x: False, ())
        if graph.warns or any(not op.outs or op.primitive.data_dependent for op in graph.ops):
            raise UnrecordableError(
                "straight: a program that looks at nothing cannot ask for values, got such questions."
            )
        return generate(graph, [f"x{i}" for i in range(len(inputs))], [expected], False)


def with_constants_as_inputs(recording: Recording, count: int) -> Callable[..., Any]:
    """Return the recording as a function of its ``count`` inputs, then of its own arrays and NumPy numbers."""

    def run(*values: Any) -> Any:
        arrays = iter(values[count:])
        constants = {slot: next(arrays) if isinstance(x, _VALUES) else x for slot, x in recording.constants.items()}
        again = Recording(recording.inputs, constants, recording.operations, recording.outputs)
        return again.evaluate(*values[:count])[0]

    return run


def recording_key(recording: Recording, own_values: list[Any]) -> Any:
    """Return a key, equal for equal recordings, or None; add its arrays and NumPy numbers to ``own_values``."""
    parts: list[Any] = [tuple(recording.inputs), tuple(recording.outputs)]
    known = not recording.decisions and len(recording.outputs) == 1 and recording.outputs[0] not in recording.constants
    for slot, x in recording.constants.items():
        if isinstance(x, _VALUES):
            own_values.append(x)
            x = None
        parts.append((slot, type(x), repr(x)))
        known = known and isinstance(x, _PLAIN)
    for primitive, args, params, out, *_ in recording.operations:
        parts.append((primitive, args, out))
        for name, value in params.items():
            parts.append((name, repr(value)))
            known = known and _is_plain(value)
    return tuple(parts) if known else None


def _is_plain(x: Any) -> bool:
    return all(map(_is_plain, x)) if isinstance(x, tuple) else isinstance(x, _PLAIN)
