"""Access to the numbers behind traced values for checks and for shapes, where no derivative is lost."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.backend import is_of_other_library, is_sequence, is_table_class, namespace_of, values_of
from funcgrad.core import Tracer
from funcgrad.graph import report_answer
from funcgrad.numpy.plain_values.hints import user_stacklevel
from funcgrad.shared_state import unfinished_traces
from funcgrad.writable import Proxy, is_buffer

_NUMBERS = frozenset((bool, int, float, complex))


def is_plain(*values: Any) -> bool:
    """Whether NumPy can use ``values`` directly: they contain no tracer and no array of another library.

    Lists, tuples and slices are searched. Objects that are not arrays are plain. ``is_numpy_only`` tells about graphs.

    Example:
        >>> is_plain(np.ones(2), [1, (2.0, None)], "auto", slice(0, 5))
        True
    """
    for value in values:
        kind = type(value)
        if is_sequence(value):
            if not set(map(type, value)) <= _NUMBERS and not is_plain(*value):
                return False
        elif kind is slice:
            if not is_plain(value.start, value.stop, value.step):
                return False
        elif isinstance(value, (Tracer, Proxy)) or is_of_other_library(value) or _holds_traced(value):
            return _notify_graph(values)
    return True


def is_plain_zero(value: Any) -> bool:
    """Whether ``value`` is the plain number 0; a traced 0 has a derivative."""
    return type(value) in (int, float, complex) and value == 0


def _holds_traced(value: Any) -> bool:
    """Whether ``value`` is a table with traced values."""
    return is_table_class(type(value)) and isinstance(values_of(value), Tracer)


def is_numpy_only(*values: Any) -> bool:
    """Whether all ``values`` are arrays and numbers of NumPy, so that NumPy's function can compute with them.

    If only a graph prevents that, the graph is notified: without the graph NumPy computes, and may round differently.
    """
    for value in values:
        if namespace_of(value) is not np:
            return _notify_graph(values)
    return True


def _notify_graph(values: tuple[Any, ...]) -> bool:
    """Return False, after notifying the graph if ``values`` are NumPy's apart from that graph."""
    graph: Any = None
    for value in values:
        if isinstance(value, Tracer):
            if value._trace.is_bit_exact:
                graph = value._trace
            elif not is_buffer(value):
                return False
    if graph is not None:
        graph.note_composed()
    return False


def concrete_or_none(x: Any, *, steers: bool = True) -> np.ndarray | None:
    """Return the numbers behind ``x``, with all examples of a ``vmap``; None if they are not NumPy's.

    A run that is recorded for replay checks all these numbers again in the replay, unless ``steers`` is False because
    no decision depends on them. If a test of the numbers is enough, ``any_true`` is much better.
    """
    while isinstance(x, Tracer):
        if steers and x._trace.is_bit_exact and namespace_of(x._val) is np:
            report_answer(x, np.asarray(x._val))
        x = x._val
    return np.asarray(x) if namespace_of(x) is np else None


def shared_numbers(x: Any) -> Any:
    """Return the numbers behind ``x``, on which the run may depend; all examples of a batch must share them.

    Raises:
        ConversionError: ``x`` has other numbers in each example of a ``vmap``, or JAX has not computed them yet.
    """
    values = concrete_or_none(x)
    return values if values is not None and values.shape == np.shape(x) else np.asarray(x)


def any_true(test: Callable[[Any], Any], x: Any) -> bool:
    """Whether ``test`` is true for any number behind ``x`` in any example of a ``vmap``; for errors and warnings.

    A graph that is replayed tests again. The result is False if the numbers are not NumPy's.
    """
    values = concrete_or_none(x, steers=False)
    if values is None:
        return False
    found = bool(np.any(test(values)))
    below = x
    while isinstance(below, Tracer) and not below._trace.is_bit_exact:
        below = below._val
    if isinstance(below, Tracer):
        asked = test(x)
        answer = np.asarray(concrete_or_none(asked, steers=False))
        report_answer(asked, answer if answer.ndim else found)
    return found


def warn(text: str, category: type[Warning]) -> None:
    """Give a warning that points at the user's line; a run that is recorded for replay notes the warning."""
    graphs = [trace for trace in unfinished_traces() if trace.is_bit_exact]
    for graph in graphs:
        graph.note_warning()
    if not graphs:
        warnings.warn(text, category, user_stacklevel())


def shared_truth(x: Any) -> bool:
    """Return the truth value of ``x``, which all examples of a ``vmap`` must share.

    Raises:
        ConcretizationError: the examples have different truth values.
    """
    values = concrete_or_none(x)
    if isinstance(x, Tracer) and values is not None and values.size > 1 and (values.all() or not values.any()):
        return bool(report_answer(x, values).flat[0])
    return bool(x)
