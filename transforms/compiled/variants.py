"""``jit(f, backend="numpy")``: programs for each form of arguments, in a variant for each path.

A function that cannot be recorded, or whose program gives other results, runs eagerly.
"""

from __future__ import annotations

import gc
import re
import timeit
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, ParamSpec

import numpy as np

from funcgrad import blocks, tree
from funcgrad.core import Tracer, is_in_transform
from funcgrad.errors import EagerWarning
from funcgrad.numpy.plain_values.hints import user_stacklevel
from funcgrad.shared_state import open_traces
from funcgrad.transforms.arguments import owned_tree
from funcgrad.transforms.compiled.agreeing import difference_message, difference_message_nearby
from funcgrad.transforms.compiled.arguments import Form, bind_program, form_of, input_names
from funcgrad.transforms.compiled.capture import capture
from funcgrad.transforms.compiled.closed import ReachableObjects
from funcgrad.transforms.compiled.graphs import Graph, copy_with_layout
from funcgrad.transforms.compiled.saving import module_text
from funcgrad.transforms.compiled.source import PathChanged, Program, generate
from funcgrad.transforms.compiled.transforming import can_transform, is_input, recorded_function
from funcgrad.transforms.inspection.drawing import describe_bytes
from funcgrad.transforms.static_arguments import StaticArguments
from funcgrad.transforms.transformed import Transformed, check_callable, name_of
from funcgrad.writable import outside_transforms

_ROUNDS = 20


@dataclass(frozen=True)
class Report:
    """Report on the recorded programs of a function. Printed, it is a table.

    Attributes:
        name: the name of the function.
        variants: for each one ``(operations recorded, operations kept, statements, bytes of slots)``.
        eager: the reasons for forms of arguments that run eagerly.
        seconds: the time of a call of the program and of the function itself, None if not measured.
        lines: for each line of the user's program, the seconds that its statements take.
    """

    name: str
    variants: tuple[tuple[int, int, int, int], ...]
    eager: tuple[str, ...]
    seconds: tuple[float, float] | None
    lines: tuple[tuple[str, float], ...]

    def __str__(self) -> str:
        text = [f"{self.name}: {len(self.variants)} recorded program{'s' * (len(self.variants) != 1)}"]
        for n, (before, after, statements, size) in enumerate(self.variants, 1):
            counts = f"{before} operations recorded, {after} kept, {statements} statements"
            text.append(f"  {n}: {counts}, {describe_bytes(size)} kept between calls")
        text += [f"  runs eagerly: {reason}" for reason in self.eager]
        if self.seconds is not None:
            fast, direct = self.seconds
            text.append(f"  a call: {1e6 * fast:.1f} us, eagerly {1e6 * direct:.1f} us: {fast / direct:.2f} of it")
        width = max([len(line) for line, _ in self.lines], default=0)
        text += [f"  {line:{width}}  {1e6 * seconds:9.1f} us" for line, seconds in self.lines]
        return "\n".join(text)


def _best_time(call: Callable[[], Any]) -> float:
    return min(timeit.repeat(call, number=1, repeat=_ROUNDS))


def _seconds_by_line(fast: Any, args: Any, kwargs: Any) -> tuple[tuple[str, float], ...]:
    """Return the seconds for each user's line in the program of this path; nothing if the function runs eagerly."""
    found = fast.variant_of(args, kwargs)
    if found is None:
        return ()
    form, variant = found
    labels: list[str] = ["before the first line"]
    text = []
    for line in variant.program.text.splitlines():
        comment = re.match(r"    # (.*)", line)
        if comment:
            labels.append(comment[1])
            text.append(f"    tick({len(labels) - 1})")
        else:
            text.append(line)
    namespace = dict(variant.program.namespace)
    best = [float("inf")] * len(labels)
    for _ in range(_ROUNDS):
        spent, clock = [0.0] * len(labels), [0, perf_counter()]

        def tick(n: int, spent: list[float] = spent, clock: list[Any] = clock) -> None:
            now = perf_counter()
            spent[clock[0]] += now - clock[1]
            clock[:] = [n, perf_counter()]

        namespace["tick"] = tick
        exec("\n".join(text), namespace)
        clock[1] = perf_counter()
        try:
            namespace["run"](*form.inputs, variant.program.allocate())
        except Exception:  # the program gives up, as in a call
            return ()
        tick(0)
        best = [min(a, b) for a, b in zip(best, spent, strict=True)]
    joined: dict[str, float] = {}
    for label, seconds in zip(labels[1:], best[1:], strict=True):
        joined[label] = joined.get(label, 0.0) + seconds
    return tuple(joined.items())


P = ParamSpec("P")
ndarray = np.ndarray
MAX_VARIANTS = 16  # largest number of variants for one form of the arguments
MAX_FORMS = 64


class Options(NamedTuple):
    """Options of ``jit``, documented there."""

    static_argnums: Any
    static_argnames: Any
    exact: bool


class Variant:
    """Recorded path through the function, for one form of its arguments.

    Attributes:
        recorded: the number of operations, of which ``kept`` were needed.
        rounding_sensitive: whether the way in which something is computed may change its last bits.
        warns: whether the function warns on this path; then the program only detects the path.
        program: the generated program.
    """

    def __init__(
        self,
        fun: Any,
        form: Form,
        eager: Any,
        graph: Graph,
        spec: tree.PyTreeSpec,
        reachable: ReachableObjects,
        exact: bool,
    ) -> None:
        self.recorded, self.kept = graph.recorded, sum(1 for op in graph.ops if op.outs)
        self.rounding_sensitive, self.warns = graph.rounding_sensitive, graph.warns
        self.spec, self.reachable, self.form = spec, reachable, form.without_values()
        self.program: Program = generate(graph, input_names(fun, form), tree.leaves(eager), exact)
        self.fast_call = bind_program(self.program, form, spec, reachable.is_unchanged)

    def run(self, inputs: list[Any]) -> Any:
        """Return the result for inputs of the form.

        Raises:
            PathChanged: the function takes another path for them.
        """
        return tree.unflatten(self.spec, list(self.program.call(*inputs)))


class _NotRecorded(Exception):  # noqa: N818  (not an error: the function runs eagerly)
    """Exception for a call without a program; ``results`` holds the result if the function was run."""

    def __init__(self, *found: Any) -> None:
        super().__init__()
        self.results = found or None


@dataclass(eq=False)
class _Entry:
    """Variants for one form of the arguments.

    Attributes:
        variants: the variants, the one used last first.
        recorded: the number of recordings so far.
        eager: the reason why the function runs eagerly; None if it does not.
    """

    variants: list[Variant] = field(default_factory=list)
    recorded: int = 0
    eager: str | None = None


class Compiled(Transformed[P, Any]):
    """Function compiled to NumPy code, which ``jit`` with ``backend="numpy"`` returns."""

    __doc__ = Transformed.__dict__["__doc__"]

    def __init__(self, run: Callable[..., Any], fun: Callable[P, Any], options: Options, summary: str) -> None:
        super().__init__(run, fun, options, summary)
        self._static = StaticArguments(fun, options.static_argnums, options.static_argnames)
        self._by_static_arguments: dict[Any, Compiled[...]] = {}  # by static arguments
        self._entries: dict[Any, _Entry] = {}
        self._fast_call: Callable[..., Any] | None = None
        self._reachable: ReachableObjects | None = None  # as found when last searched
        self._recorded_functions: dict[Any, Callable[[Any], Any]] = {}
        self._transformed_programs: dict[Any, Compiled[...]] = {}  # by transform and options
        self._warned: set[str] = set()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Run the recorded program for these arguments; record one if there is none."""
        fast_call = self._fast_call
        if fast_call is not None and not open_traces and blocks.last_entered() is None:
            try:
                return fast_call(args, kwargs)
            except Exception:  # another form, another path, or an error of the function itself
                pass
        return self._call_general(args, kwargs)

    def _call_general(self, args: Any, kwargs: Any) -> Any:
        in_block = _is_in_block()
        if is_in_transform():
            return self.fun(*args, **kwargs) if in_block else self._run_transformed(args, kwargs)
        if in_block:
            return owned_tree(self.fun(*args, **kwargs))
        if self._static.static:
            return self._with_static(args, kwargs)
        try:
            return self._run_program(args, kwargs)
        except _NotRecorded as error:
            return owned_tree(self.fun(*args, **kwargs)) if error.results is None else error.results[0]

    def _run_program(self, args: Any, kwargs: Any) -> Any:
        """Return the result of a recorded program; record one if there is none.

        Raises:
            _NotRecorded: there is no program.
        """
        form = form_of(args, kwargs)
        if isinstance(form, str):
            self._warn_once(form)
            raise _NotRecorded
        entry = self._entry(form)
        if entry is None:
            raise _NotRecorded
        inputs = form.inputs
        for variant in [] if entry.eager else entry.variants:
            if not variant.reachable.is_valid():
                self._forget(entry, variant)
                continue
            try:
                result = variant.run(inputs)
            except PathChanged:
                continue
            except Exception:  # the function itself may raise an error, with its own message
                raise _NotRecorded from None
            self._prefer(entry, variant)
            return result
        if entry.eager is None and entry.recorded >= MAX_VARIANTS:
            self._give_up(
                entry, f"it took {MAX_VARIANTS} different branches, or the values it closes over changed as often"
            )
        if entry.eager is not None:
            raise _NotRecorded
        result = self._record(entry, form, args, kwargs)
        if entry.eager is not None:
            raise _NotRecorded(result)
        return result

    def _run_transformed(self, args: Any, kwargs: Any) -> Any:
        """Return the result inside of a function that is being transformed."""
        leaves, spec = tree.flatten((args, kwargs))
        if not can_transform(leaves) or self._closes_over_traced():
            return self.fun(*args, **kwargs)
        if self._static.static:
            return self._with_static(args, kwargs)
        try:
            key = (spec, tuple([None if is_input(x) else (type(x), x) for x in leaves]))
            recorded = self._recorded_functions.get(key)
            if recorded is None and len(self._recorded_functions) >= MAX_FORMS:
                return self.fun(*args, **kwargs)
            if recorded is None:
                made = recorded_function(
                    self.fun, self._run_plain_values, self._record_function, name_of(self.fun), spec, leaves
                )
                recorded = self._recorded_functions.setdefault(key, made)
            return recorded(leaves)
        except _NotRecorded:
            return self.fun(*args, **kwargs)

    def _run_plain_values(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result for plain values from a program only, inside of a transform or not."""
        fast_call = self._fast_call
        if fast_call is not None:
            try:
                return fast_call(args, kwargs)
            except Exception:
                pass
        with outside_transforms():
            return self._run_program(args, kwargs)

    def _record_function(self, fun: Callable[..., Any], strict: bool) -> Callable[..., Any]:
        """Return a recorded version of ``fun`` for plain values, which may run eagerly unless ``strict``."""
        made = self._with_same_options(fun)
        if strict:
            return made._run_plain_values

        def run(*args: Any) -> Any:
            try:
                return made._run_plain_values(*args)
            except _NotRecorded as error:
                if error.results is not None:
                    return error.results[0]
                with outside_transforms():
                    return fun(*args)

        return run

    def apply_transform(self, run: Callable[..., Any], options: Any, summary: str) -> Any:
        """Return a transform of this function."""
        kind = Transformed if self._static.static else _TransformedCompiled
        return kind(run, self, options, summary)

    def transformed_as_one(self, run: Callable[..., Any], options: Any, summary: str) -> Compiled[...]:
        """Return this transform of the function itself, recorded as a whole."""
        found = self._transformed_programs.get((run, options))
        if found is None:
            made = self._with_same_options(Transformed(run, self.fun, options, summary))
            found = self._transformed_programs.setdefault((run, options), made)
        return found

    def _with_same_options(self, fun: Callable[..., Any]) -> Compiled[...]:
        """Return another function that is recorded with the same options."""
        return Compiled(self.run, fun, Options((), (), self.options.exact), self.summary)

    def _closes_over_traced(self) -> bool:
        if self._reachable is None or not self._reachable.is_valid():
            self._reachable = ReachableObjects(self.fun)
        return self._reachable.has_tracers

    def _with_static(self, args: Any, kwargs: Any) -> Any:
        static, args, kwargs = self._static.split(args, kwargs)
        part = self._by_static_arguments.get(static)
        if part is None:
            if len(self._by_static_arguments) >= MAX_FORMS:
                fun = self._static.bind(self.fun, static)
                return fun(*args, **kwargs) if is_in_transform() else owned_tree(fun(*args, **kwargs))
            made = self._with_same_options(self._static.bind(self.fun, static))
            part = self._by_static_arguments.setdefault(static, made)
        return part(*args, **kwargs)

    def _entry(self, form: Form) -> _Entry | None:
        """Return the entry for arguments of this form; None if there are too many forms."""
        entry = self._entries.get(form.key)
        if entry is None:
            if len(self._entries) >= MAX_FORMS:
                self._warn_once(
                    f"it was called with {MAX_FORMS} forms of arguments: pass numbers that change as floats or arrays"
                )
                return None
            entry = self._entries.setdefault(form.key, _Entry())
        return entry

    def _prefer(self, entry: _Entry, variant: Variant) -> None:
        """Let the next call try ``variant`` first."""
        if entry.variants and entry.variants[0] is not variant:
            entry.variants = [variant, *[v for v in entry.variants if v is not variant]]
        self._fast_call = variant.fast_call

    def _forget(self, entry: _Entry, variant: Variant) -> None:
        entry.variants = [v for v in entry.variants if v is not variant]
        if self._fast_call is variant.fast_call:
            self._fast_call = None

    def _give_up(self, entry: _Entry, reason: str) -> None:
        """Run the function eagerly from now on, and warn once."""
        entry.eager = reason
        entry.variants = []
        self._warn(reason)

    def _warn_once(self, reason: str) -> None:
        if reason not in self._warned:
            self._warned.add(reason)
            self._warn(reason)

    def _warn(self, reason: str) -> None:
        warnings.warn(
            f"jit: {name_of(self.fun)} is run without a recorded program for arguments of this form, since {reason}. "
            "Results are right, only slower. See the page on graph mode for what can be recorded.",
            EagerWarning,
            stacklevel=user_stacklevel(),
        )

    def _record(self, entry: _Entry, form: Form, args: Any, kwargs: Any) -> Any:
        """Run the function for the result, and record it for the program, which must give the same result."""
        before = ReachableObjects(self.fun)
        eager = self.fun(*args, **kwargs)
        before.settle()
        reachable = ReachableObjects(self.fun)  # with what the first run keeps for later ones
        entry.recorded += 1
        if not reachable.is_complete:
            self._give_up(entry, "it closes over thousands of values, too many to check in every call")
            return owned_tree(eager)
        variant: Variant | None = None
        try:
            with _no_garbage_collection():
                variant = self._make_variant(form, eager, reachable)
            reason = ""
            with np.errstate(all="ignore"):
                if not variant.warns:
                    reason = difference_message(variant.run(form.inputs), eager, self.options.exact)
                if not reason and variant.rounding_sensitive and not variant.warns and self.options.exact:
                    reason = difference_message_nearby(self.fun, variant.run, form)
        except Exception as error:
            reason = f"that raises {type(error).__name__}: {str(error)[:200]}"
        if not reason and not (before.is_valid() and reachable.is_valid()):
            reason = "it writes to what it closes over"
        elif reason and variant is not None and difference_message(self.fun(*args, **kwargs), eager):
            reason = "it returns other results when run again: it draws random numbers or depends on a state"
        if reason or variant is None:
            self._give_up(entry, reason or "it was not written")
        else:
            entry.variants = [variant, *entry.variants]
            self._fast_call = variant.fast_call
        return owned_tree(eager)

    def _make_variant(self, form: Form, eager: Any, reachable: ReachableObjects) -> Variant:
        copies: dict[int, Any] = {}

        def constant_array(x: ndarray) -> ndarray:
            """Return an array itself if the program can reach it, else a copy of its current values."""
            if reachable.reaches(x):
                return x
            known = copies.get(id(x))
            if known is None or known[1].tobytes() != x.tobytes():
                known = copies[id(x)] = (x, copy_with_layout(x))
            return known[1]

        with np.errstate(all="ignore"):  # the function itself has warned already
            graph, spec = capture(
                self.fun, form.arguments_with, form.inputs, constant_array, reachable.reaches, reachable.names
            )
        if spec != tree.structure(eager):
            raise TypeError("the result has another structure")
        return Variant(self.fun, form, eager, graph, spec, reachable, self.options.exact)

    @property
    def source(self) -> str:
        """Source of all programs."""
        return "\n\n".join([variant.program.text for variant in self._variants()])

    def save(self, path: Any, name: str | None = None) -> None:
        """Write the recorded programs as a module with one function, which needs NumPy, and SciPy if it is used.

        The module accepts the recorded forms of arguments and paths, and refuses others. It contains the arrays that
        the function closes over, with their current values. Containers of arguments and results must be Python's own.

        Args:
            path: the file.
            name: the name of the function in the module; its own name by default.

        Raises:
            InputError: nothing was recorded, or something in it cannot be written down (a ``TypeError``).
        """
        text = module_text(name or name_of(self.fun), [(v.form, v) for v in self._variants()])
        Path(path).write_text(text, encoding="utf-8")

    def report(self, *args: P.args, **kwargs: P.kwargs) -> Report:
        """Report what was recorded: operations before and after simplification, statements, memory, variants.

        Args:
            *args: with arguments, a call is timed by line of the user's program, and compared with the function itself.
            **kwargs: keyword arguments of that call.
        """
        name, entries = name_of(self.fun), self._entries.values()
        found = [v for entry in entries for v in entry.variants]
        variants = tuple([(v.recorded, v.kept, v.program.statements, v.program.slot_bytes) for v in found])
        eager = tuple([entry.eager for entry in entries if entry.eager is not None])
        if not args and not kwargs:
            return Report(name, variants, eager, None, ())
        self(*args, **kwargs)  # records a program if there is none
        seconds = (_best_time(lambda: self(*args, **kwargs)), _best_time(lambda: self.fun(*args, **kwargs)))
        return Report(name, variants, eager, seconds, _seconds_by_line(self, args, kwargs))

    def variant_of(self, args: Any, kwargs: Any) -> tuple[Form, Variant] | None:
        """Return the form of a call's arguments and the variant last used for that form; None if there is none."""
        form = form_of(args, kwargs)
        entry = None if isinstance(form, str) else self._entries.get(form.key)
        if isinstance(form, str) or entry is None or not entry.variants:
            return None
        return form, entry.variants[0]

    def _variants(self) -> list[Variant]:
        parts = [v for part in self._by_static_arguments.values() for v in part._variants()]
        return [*parts, *[v for entry in self._entries.values() for v in entry.variants]]


class _TransformedCompiled(Transformed[P, Any]):
    """Transform of a recorded function: a single program, unless another transform is running."""

    __doc__ = Transformed.__dict__["__doc__"]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Run the transformed function."""
        traced = open_traces and Tracer in map(type, tree.leaves((args, kwargs)))
        if traced or is_in_transform() or _is_in_block():
            return super().__call__(*args, **kwargs)
        return self.fun.transformed_as_one(self.run, self.options, self.summary)(*args, **kwargs)  # type: ignore[attr-defined]


def _is_in_block() -> bool:
    """Whether a block is open here for which the function must run: it observes or changes single operations."""
    if blocks.last_entered() is None:
        return False
    state = blocks.current()
    return state.as_written or state.observes_writes()


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disable garbage collection, which would traverse many small objects that stay."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def jit_numpy(
    fun: Callable[P, Any], static_argnums: Any = (), static_argnames: Any = (), *, exact: bool = True
) -> Compiled[P]:
    """Return ``fun`` as straight NumPy code, see ``funcgrad.jit``."""
    check_callable("jit", fun)
    return Compiled(run_compiled, fun, Options(static_argnums, static_argnames, exact), "{fun} as straight NumPy code.")


def run_compiled(fun: Callable[..., Any], options: Options, args: Any, kwargs: Any) -> Any:
    """Call ``fun`` as a compiled function would, but without recording a program."""
    return fun(*args, **kwargs)
