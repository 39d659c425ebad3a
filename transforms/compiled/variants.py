"""``jit(f, backend="numpy")``: programs for each form of arguments, in a variant for each path.

A function that cannot be recorded, or whose program gives other results, runs eagerly.
"""

from __future__ import annotations

import gc
import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, ParamSpec

import numpy as np

from funcgrad import blocks, tree
from funcgrad.core import Tracer
from funcgrad.errors import EagerWarning
from funcgrad.running import open_traces
from funcgrad.transforms.compiled.agreeing import disagreement, disagreement_nearby
from funcgrad.transforms.compiled.arguments import Form, bound, form_of, names_of
from funcgrad.transforms.compiled.capture import capture
from funcgrad.transforms.compiled.closed import Closed
from funcgrad.transforms.compiled.graphs import Graph, copy_of
from funcgrad.transforms.compiled.saving import module_text
from funcgrad.transforms.compiled.source import Otherwise, Program, generate
from funcgrad.transforms.compiled.transforming import Through, can_go_through, is_input
from funcgrad.transforms.inspection.drawing import describe_bytes
from funcgrad.transforms.static_arguments import StaticArguments
from funcgrad.transforms.transformed import Transformed, check_callable, name_of
from funcgrad.writable import is_in_transform, outside_transforms

__all__ = ["Compiled", "jit_numpy", "run_compiled"]

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
        text += [f"  run as it stands: {reason}" for reason in self.eager]
        if self.seconds is not None:
            ours, theirs = self.seconds
            text.append(f"  a call: {1e6 * ours:.1f} us, as it stands {1e6 * theirs:.1f} us: {ours / theirs:.2f} of it")
        width = max([len(line) for line, _ in self.lines], default=0)
        text += [f"  {line:{width}}  {1e6 * seconds:9.1f} us" for line, seconds in self.lines]
        return "\n".join(text)


def reported(
    name: str, fun: Callable[..., Any], entries: Iterable[Any], fast: Callable[..., Any], args: Any, kwargs: Any
) -> Report:
    """Return the report on ``entries``; with arguments it includes the times of a call."""
    entries = list(entries)
    found = [v for entry in entries for v in entry.variants]
    variants = tuple([(v.recorded, v.kept, v.program.statements, v.program.bytes) for v in found])
    eager = tuple([entry.eager for entry in entries if entry.eager is not None])
    if not args and not kwargs:
        return Report(name, variants, eager, None, ())
    fast(*args, **kwargs)  # records a program if there is none
    seconds = (_best(lambda: fast(*args, **kwargs)), _best(lambda: fun(*args, **kwargs)))
    return Report(name, variants, eager, seconds, _by_line(fast, args, kwargs))


def _best(call: Callable[[], Any]) -> float:
    found = []
    for _ in range(_ROUNDS):
        start = perf_counter()
        call()
        found.append(perf_counter() - start)
    return min(found)


def _by_line(fast: Any, args: Any, kwargs: Any) -> tuple[tuple[str, float], ...]:
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
    space = dict(variant.program.space)
    best = [float("inf")] * len(labels)
    for _ in range(_ROUNDS):
        spent, clock = [0.0] * len(labels), [0, perf_counter()]

        def tick(n: int, spent: list[float] = spent, clock: list[Any] = clock) -> None:
            now = perf_counter()
            spent[clock[0]] += now - clock[1]
            clock[:] = [n, perf_counter()]

        space["tick"] = tick
        exec("\n".join(text), space)
        clock[1] = perf_counter()
        try:
            space["run"](*form.inputs, variant.program.allocate())
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
MOST = 16  # largest number of variants for one form of the arguments
FORMS = 64


class Options(NamedTuple):
    """Options of ``jit``, documented there."""

    static_argnums: Any
    static_argnames: Any
    exact: bool


class Variant:
    """Recorded path through the function, for one form of its arguments.

    Attributes:
        recorded: the number of operations, of which ``kept`` were needed.
        delicate: whether the way in which something is computed may change its last bits.
        warns: whether the function warns on this path; then the program only detects the path.
        program: the generated program.
    """

    def __init__(
        self, fun: Any, form: Form, eager: Any, graph: Graph, spec: tree.PyTreeSpec, closed: Closed, exact: bool
    ) -> None:
        self.recorded, self.kept, self.delicate = graph.recorded, len(graph.operations), graph.delicate
        self.warns = graph.warns
        self.spec, self.closed, self.form = spec, closed, form.without_values()
        self.program: Program = generate(graph, names_of(fun, form), tree.leaves(eager), exact)
        self.quick = bound(self.program, form, spec, closed.same)
        self._pool: list[Any] = []

    def run(self, inputs: list[Any]) -> Any:
        """Return the result for inputs of the form.

        Raises:
            Otherwise: the function takes another path for them.
        """
        try:
            slots = self._pool.pop()
        except IndexError:
            slots = self.program.allocate()
        try:
            found = self.program.run(*inputs, slots)
        finally:
            self._pool.append(slots)
        return tree.unflatten(self.spec, list(found))


class _NotRecorded(Exception):  # noqa: N818  (not an error: the function runs eagerly)
    """Exception for a call without a program; ``found`` holds the result if the function was run."""

    def __init__(self, *found: Any) -> None:
        super().__init__()
        self.found = found or None


class _Entry:
    """Variants for one form of the arguments.

    Attributes:
        eager: the reason why the function runs eagerly; None if it does not.
    """

    def __init__(self) -> None:
        self.variants: list[Variant] = []
        self.recorded = 0
        self.eager: str | None = None


class Compiled(Transformed[P, Any]):
    """Function compiled to NumPy code, which ``jit`` with ``backend="numpy"`` returns."""

    __doc__ = Transformed.__dict__["__doc__"]

    def __init__(self, run: Callable[..., Any], fun: Callable[P, Any], options: Options, summary: str) -> None:
        super().__init__(run, fun, options, summary)
        self._static = StaticArguments(fun, options.static_argnums, options.static_argnames)
        self._parts: dict[Any, Compiled[...]] = {}  # by static arguments
        self._entries: dict[Any, _Entry] = {}
        self._quick: Callable[..., Any] | None = None
        self._closed: Closed | None = None  # as found when last searched
        self._throughs: dict[Any, Through] = {}
        self._wholes: dict[Any, Compiled[...]] = {}  # by transform and options
        self._said: set[str] = set()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Run the recorded program for these arguments; record one if there is none."""
        quick = self._quick
        if quick is not None and not open_traces and blocks.last_entered() is None:
            try:
                return quick(args, kwargs)
            except Exception:  # another form, another path, or an error of the function itself
                pass
        return self._general(args, kwargs)

    def _general(self, args: Any, kwargs: Any) -> Any:
        if blocks.last_entered() is not None and blocks.current() is not blocks.NO_BLOCK:
            return self.fun(*args, **kwargs)
        if is_in_transform():
            return self._transformed(args, kwargs)
        if self._static.static:
            return self._with_static(args, kwargs)
        try:
            return self._by_program(args, kwargs)
        except _NotRecorded as error:
            return self.fun(*args, **kwargs) if error.found is None else error.found[0]

    def _by_program(self, args: Any, kwargs: Any) -> Any:
        """Return the result of a recorded program; record one if there is none.

        Raises:
            _NotRecorded: there is no program.
        """
        form = form_of(args, kwargs)
        if isinstance(form, str):
            self._say_once(form)
            raise _NotRecorded
        entry = self._entry(form)
        if entry is None:
            raise _NotRecorded
        inputs = form.inputs
        for variant in [] if entry.eager else entry.variants:
            if not variant.closed.holds_good():
                self._forget(entry, variant)
                continue
            try:
                result = variant.run(inputs)
            except Otherwise:
                continue
            except Exception:  # the function itself may raise an error, with its own message
                raise _NotRecorded from None
            self._prefer(entry, variant)
            return result
        if entry.eager is None and entry.recorded >= MOST:
            self._give_up(entry, f"it took {MOST} different branches, or the values it closes over changed as often")
        if entry.eager is not None:
            raise _NotRecorded
        result = self._record(entry, form, args, kwargs)
        if entry.eager is not None:
            raise _NotRecorded(result)
        return result

    def _transformed(self, args: Any, kwargs: Any) -> Any:
        """Return the result inside of a function that is being transformed."""
        leaves, spec = tree.flatten((args, kwargs))
        if not can_go_through(leaves) or self._closes_over_traced():
            return self.fun(*args, **kwargs)
        if self._static.static:
            return self._with_static(args, kwargs)
        try:
            key = (spec, tuple([None if is_input(x) else (type(x), x) for x in leaves]))
            through = self._throughs.get(key)
            if through is None and len(self._throughs) >= FORMS:
                return self.fun(*args, **kwargs)
            if through is None:
                made = Through(self.fun, self._of_values, self._traced_form, name_of(self.fun), spec, leaves)
                through = self._throughs.setdefault(key, made)
            return through(leaves)
        except _NotRecorded:
            return self.fun(*args, **kwargs)

    def _of_values(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result for plain values from a program only, inside of a transform or not."""
        quick = self._quick
        if quick is not None:
            try:
                return quick(args, kwargs)
            except Exception:
                pass
        with outside_transforms():
            return self._by_program(args, kwargs)

    def _traced_form(self, fun: Callable[..., Any], strict: bool) -> Callable[..., Any]:
        """Return a recorded version of ``fun`` for plain values, which may run eagerly unless ``strict``."""
        made = self._of(fun)
        if strict:
            return made._of_values

        def run(*args: Any) -> Any:
            try:
                return made._of_values(*args)
            except _NotRecorded as error:
                if error.found is not None:
                    return error.found[0]
                with outside_transforms():
                    return fun(*args)

        return run

    def apply_transform(self, run: Callable[..., Any], options: Any, summary: str) -> Any:
        """Return a transform of this function."""
        kind = Transformed if self._static.static else _Around
        return kind(run, self, options, summary)

    def whole(self, run: Callable[..., Any], options: Any, summary: str) -> Compiled[...]:
        """Return this transform of the function itself, recorded as a whole."""
        found = self._wholes.get((run, options))
        if found is None:
            found = self._wholes.setdefault((run, options), self._of(Transformed(run, self.fun, options, summary)))
        return found

    def _of(self, fun: Callable[..., Any]) -> Compiled[...]:
        """Return another function that is recorded with the same options."""
        return Compiled(self.run, fun, Options((), (), self.options.exact), self.summary)

    def _closes_over_traced(self) -> bool:
        if self._closed is None or not self._closed.holds_good():
            self._closed = Closed(self.fun)
        return self._closed.traced

    def _with_static(self, args: Any, kwargs: Any) -> Any:
        static, args, kwargs = self._static.split(args, kwargs)
        part = self._parts.get(static)
        if part is None:
            if len(self._parts) >= FORMS:
                return self._static.bind(self.fun, static)(*args, **kwargs)
            part = self._parts.setdefault(static, self._of(self._static.bind(self.fun, static)))
        return part(*args, **kwargs)

    def _entry(self, form: Form) -> _Entry | None:
        """Return the entry for arguments of this form; None if there are too many forms."""
        entry = self._entries.get(form.key)
        if entry is None:
            if len(self._entries) >= FORMS:
                self._say_once(
                    f"it was called with {FORMS} forms of arguments: pass numbers that change as floats or arrays"
                )
                return None
            entry = self._entries.setdefault(form.key, _Entry())
        return entry

    def _prefer(self, entry: _Entry, variant: Variant) -> None:
        """Let the next call try ``variant`` first."""
        if entry.variants and entry.variants[0] is not variant:
            entry.variants = [variant, *[v for v in entry.variants if v is not variant]]
        self._quick = variant.quick

    def _forget(self, entry: _Entry, variant: Variant) -> None:
        entry.variants = [v for v in entry.variants if v is not variant]
        if self._quick is variant.quick:
            self._quick = None

    def _give_up(self, entry: _Entry, reason: str) -> None:
        """Run the function eagerly from now on, and warn once."""
        entry.eager = reason
        entry.variants = []
        self._say(reason)

    def _say_once(self, reason: str) -> None:
        if reason not in self._said:
            self._said.add(reason)
            self._say(reason)

    def _say(self, reason: str) -> None:
        warnings.warn(
            f"jit: {name_of(self.fun)} is run without a recorded program for arguments of this form, since {reason}. "
            "Results are right, only slower. See the page on graph mode for what can be recorded.",
            EagerWarning,
            stacklevel=6,
        )

    def _record(self, entry: _Entry, form: Form, args: Any, kwargs: Any) -> Any:
        """Run the function for the result, and record it for the program, which must give the same result."""
        closed = Closed(self.fun)
        eager = self.fun(*args, **kwargs)
        entry.recorded += 1
        if not closed.whole:
            self._give_up(entry, "it closes over thousands of values, too many to check in every call")
            return eager
        variant: Variant | None = None
        try:
            with _Uncollected():
                variant = self._written(form, eager, closed)
            with np.errstate(all="ignore"):
                reason = "" if variant.warns else disagreement(variant.run(form.inputs), eager, self.options.exact)
                if not reason and variant.delicate and not variant.warns and self.options.exact:
                    reason = disagreement_nearby(self.fun, variant.run, form)
        except Exception as error:
            reason = f"that raises {type(error).__name__}: {str(error)[:200]}"
        if not reason and not closed.holds_good():
            reason = "it writes to what it closes over"
        elif reason and variant is not None and disagreement(self.fun(*args, **kwargs), eager):
            reason = "it returns other results when run again: it draws random numbers or depends on a state"
        if reason or variant is None:
            self._give_up(entry, reason or "it was not written")
        else:
            entry.variants = [variant, *entry.variants]
            self._quick = variant.quick
        return eager

    def _written(self, form: Form, eager: Any, closed: Closed) -> Variant:
        copies: dict[int, Any] = {}

        def held(x: ndarray) -> ndarray:
            """Return an array itself if the program can reach it, else a copy of its current values."""
            if closed.holds(x):
                return x
            known = copies.get(id(x))
            if known is None or known[1].tobytes() != x.tobytes():
                known = copies[id(x)] = (x, copy_of(x))
            return known[1]

        with np.errstate(all="ignore"):  # the function itself has warned already
            graph, spec = capture(self.fun, form.filled, form.inputs, held, closed.holds, closed.names)
        if spec != tree.structure(eager):
            raise TypeError("the result has another structure")
        return Variant(self.fun, form, eager, graph, spec, closed, self.options.exact)

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
        return reported(name_of(self.fun), self.fun, self._entries.values(), self, args, kwargs)

    def variant_of(self, args: Any, kwargs: Any) -> tuple[Form, Variant] | None:
        """Return the form of a call's arguments and the variant last used for that form; None if there is none."""
        form = form_of(args, kwargs)
        entry = None if isinstance(form, str) else self._entries.get(form.key)
        if isinstance(form, str) or entry is None or not entry.variants:
            return None
        return form, entry.variants[0]

    def _variants(self) -> list[Variant]:
        parts = [v for part in self._parts.values() for v in part._variants()]
        return [*parts, *[v for entry in self._entries.values() for v in entry.variants]]


class _Around(Transformed[P, Any]):
    """Transform of a recorded function: a single program, unless another transform is running."""

    __doc__ = Transformed.__dict__["__doc__"]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Run the transformed function."""
        traced = open_traces and any(isinstance(x, Tracer) for x in tree.leaves((args, kwargs)))
        if traced or is_in_transform() or blocks.last_entered() is not None:
            return super().__call__(*args, **kwargs)
        return self.fun.whole(self.run, self.options, self.summary)(*args, **kwargs)  # type: ignore[attr-defined]


class _Uncollected:
    """Context manager that disables garbage collection, which would traverse many small objects that stay."""

    def __enter__(self) -> None:
        self.was = gc.isenabled()
        gc.disable()

    def __exit__(self, *error: object) -> None:
        if self.was:
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
