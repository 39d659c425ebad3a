"""Forms of arguments: what must be the same in a call for a recorded program to be valid.

The code that takes inputs out of common containers, and puts results into them, is generated here too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from funcgrad import tree
from funcgrad.core import describe
from funcgrad.transforms.arguments import merge_leaves
from funcgrad.transforms.compiled.graphs import fact_of
from funcgrad.transforms.compiled.source import Program
from funcgrad.transforms.static_arguments import argument_names

ndarray = np.ndarray
_NUMBERS = frozenset((float, complex, *[np.dtype(c).type for c in "efdgFDGbBhHiIlLqQ?"]))
_SETTINGS = frozenset((int, bool, str, bytes, type(None)))


def is_number(x: Any) -> bool:
    """Whether ``x`` is a number that counts as an input."""
    return type(x) in _NUMBERS


def is_setting(x: Any) -> bool:
    """Whether ``x`` is part of the form, not an input."""
    return type(x) in _SETTINGS or callable(x)


class Form(NamedTuple):
    """Form of the arguments of a call, together with their leaves.

    Attributes:
        key: equal for arguments of the same form.
        spec: the structure of ``(args, kwargs)``.
        leaves: all leaves.
        input_flags: for each leaf whether it is an input; other leaves are part of the form.
    """

    key: Any
    spec: tree.PyTreeSpec
    leaves: list[Any]
    input_flags: list[bool]

    @property
    def inputs(self) -> list[Any]:
        """Inputs among the leaves."""
        return list(compress(self.leaves, self.input_flags))

    def without_values(self) -> Form:
        """Return the form with placeholders for arrays, which must not be read, so that the arrays can be freed."""
        stand_ins = [
            as_strided(np.empty(1, x.dtype), x.shape, x.strides) if type(x) is ndarray and x.size else x
            for x in self.leaves
        ]
        return self._replace(leaves=stand_ins)

    def arguments_with(self, inputs: list[Any]) -> Any:
        """Return the arguments ``(args, kwargs)`` with these inputs."""
        return tree.unflatten(self.spec, merge_leaves(self.leaves, self.input_flags, inputs))


def form_of(args: Any, kwargs: Any) -> Form | str:
    """Return the form of a call, or a text that says which argument cannot be recorded."""
    leaves, spec = tree.flatten((args, kwargs))
    keys: list[Any] = []
    input_flags = []
    for x in leaves:
        kind = type(x)
        if kind is ndarray:
            if x.dtype.kind not in "fciub" or not x.dtype.isnative:
                return f"an argument is an array of dtype {x.dtype}, which is not one of numbers in native byte order"
            if any(stride < 0 for stride in x.strides):
                return "an argument has a negative stride, as x[::-1] does: pass a copy"
            usual = x.dtype is np.dtype(x.dtype.type)  # fast paths test the identity of dtypes
            keys.append((x.shape, x.dtype, usual, None if fact_of(x).contiguous else x.strides))
        elif kind in _NUMBERS:
            keys.append(kind)
        elif kind in _SETTINGS or callable(x):
            keys.append((kind, x))
        else:
            return f"an argument is {describe(x)}: pass arrays, numbers, texts, functions, or containers of them"
        input_flags.append(kind is ndarray or kind in _NUMBERS)
    key = (spec, tuple(keys))
    try:
        hash(key)
    except TypeError:
        return "an argument is a function that is not hashable, so it cannot be a key of the cache of programs"
    return Form(key, spec, leaves, input_flags)


def input_names(fun: Callable[..., Any], form: Form) -> list[str]:
    """Return the names of the inputs in the program, from the names of parameters and the paths to leaves."""
    args, kwargs = tree.unflatten(form.spec, form.leaves)
    names = argument_names(fun, len(args))
    paths = [name + path for name, arg in zip(names, args, strict=True) for path in tree.flatten_with_path(arg)[0]]
    paths += [name + path for name in sorted(kwargs) for path in tree.flatten_with_path(kwargs[name])[0]]
    return list(compress(paths, form.input_flags))


class FormMismatch(Exception):  # noqa: N818  (not an error: the arguments have another form)
    """Exception for arguments of another form than that of the program."""


def bind_program(
    program: Program, form: Form, spec: tree.PyTreeSpec, is_unchanged: Callable[[], bool]
) -> Callable[..., Any] | None:
    """Return ``call(args, kwargs)``, which raises ``FormMismatch`` for another form; None for other containers.

    Args:
        program: the program to run.
        form: the form of its arguments.
        spec: the structure of its result.
        is_unchanged: returns whether everything that the function closes over is unchanged.
    """
    taken = input_statements(form)
    if taken is None:
        return None
    checks, objects, count = taken
    put = container_text(tree.unflatten(spec, list(range(spec.num_leaves))))
    inputs = ", ".join(f"i{i}" for i in range(count))
    lines = ["if not is_unchanged(): raise FormMismatch", *checks]
    results = ", ".join(f"o{i}" for i in range(spec.num_leaves))
    unpacked = f"{results}, = " if put is not None and results else "found = "
    if program.slots:
        lines += ["try: B = pop()", "except IndexError: B = new()"]
        lines += [f"try: {unpacked}run({inputs}{', ' if inputs else ''}B)", "finally: push(B)"]
    else:
        lines.append(f"{unpacked}run({inputs}{', ' if inputs else ''}())")
    lines.append(f"return {put}" if put is not None else "return unflatten(spec, list(found))")
    body = "\n  ".join(["def call(args, kwargs):", *lines])
    text = f"def make(run, pop, push, new, is_unchanged):\n {body}\n return call"
    namespace = {"FormMismatch": FormMismatch, "ndarray": ndarray, **objects, "unflatten": tree.unflatten, "spec": spec}
    exec(compile(text, "<funcgrad binding>", "exec"), namespace)
    pool: list[Any] = []
    call: Callable[..., Any] = namespace["make"](program.run, pool.pop, pool.append, program.allocate, is_unchanged)
    return call


def input_statements(form: Form) -> tuple[list[str], dict[str, Any], int] | None:
    """Return statements that take inputs ``i0``, ``i1``, ... from ``args`` and ``kwargs``; None for other types.

    The tuple also holds the objects that the statements refer to by name, and the number of inputs.
    """
    writer = _BindingWriter(form)
    args, kwargs = tree.unflatten(form.spec, list(range(len(form.leaves))))
    if not writer.take_inputs(args, "args") or not writer.take_inputs(kwargs, "kwargs"):
        return None
    return writer.lines, writer.namespace, writer.count


class _BindingWriter:
    """Writer of the statements that check the arguments and take the inputs out of them."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.namespace: dict[str, Any] = {}
        self.lines: list[str] = []
        input_leaves = [i for i, flag in enumerate(form.input_flags) if flag]
        self.numbers = {leaf: i for i, leaf in enumerate(input_leaves)}  # number of each input, by its leaf
        self.count = len(input_leaves)

    def take_inputs(self, x: Any, word: str) -> bool:
        """Write statements for ``word``, a nest of leaf numbers ``x``; return whether that is possible."""
        kind = type(x)
        if kind is int:
            self._leaf(x, word)
            return True
        if kind is dict:
            if not all(type(k) in (str, int, tuple) for k in x):
                return False
            check = f"type({word}) is not dict or " if word != "kwargs" else ""
            if not x and word == "kwargs":
                self.lines.append("if kwargs: raise FormMismatch")
                return True
            self.lines.append(f"if {check}len({word}) != {len(x)}: raise FormMismatch")
            self.lines += [f"if {k!r} not in {word}: raise FormMismatch" for k in x]
            return all(self.take_inputs(x[k], f"{word}[{k!r}]") for k in x)
        if kind is tuple or kind is list:
            check = f"type({word}) is not {kind.__name__} or " if word != "args" else ""
            self.lines.append(f"if {check}len({word}) != {len(x)}: raise FormMismatch")
            return all(self.take_inputs(y, f"{word}[{i}]") for i, y in enumerate(x))
        self.lines.append(f"if {word} is not None: raise FormMismatch")
        return x is None

    def _leaf(self, leaf: int, word: str) -> None:
        x = self.form.leaves[leaf]
        if not self.form.input_flags[leaf]:
            self.namespace[f"s{leaf}"] = x
            test = f"{word} is not s{leaf}"
            if type(x) in (int, bool, str, bytes):
                test += f" and (type({word}) is not type(s{leaf}) or {word} != s{leaf})"
            self.lines.append(f"if {test}: raise FormMismatch")
            return
        i = self.numbers[leaf]
        self.lines.append(f"i{i} = {word}")
        if type(x) is ndarray:
            self.namespace[f"d{i}"] = x.dtype
            test = f"type(i{i}) is not ndarray or i{i}.shape != {x.shape!r} or i{i}.dtype is not d{i}"
            if x.ndim:
                test += f" or i{i}.strides != {x.strides!r}"
            self.lines.append(f"if {test}: raise FormMismatch")
        else:
            self.namespace[f"t{i}"] = type(x)
            self.lines.append(f"if type(i{i}) is not t{i}: raise FormMismatch")


def container_text(out: Any) -> str | None:
    """Return the expression for a nest of results; None if it has containers of other types."""
    kind = type(out)
    if kind is int:
        return f"o{out}"
    if out is None:
        return "None"
    if kind is dict:
        parts = [(repr(k), container_text(x)) for k, x in out.items() if type(k) in (str, int)]
        if len(parts) < len(out) or any(text is None for _, text in parts):
            return None
        return "{" + ", ".join([f"{k}: {text}" for k, text in parts]) + "}"
    if kind is tuple or kind is list:
        texts = [container_text(x) for x in out]
        if any(text is None for text in texts):
            return None
        inner = ", ".join([text for text in texts if text is not None])
        return f"[{inner}]" if kind is list else f"({inner}{',' if len(texts) == 1 else ''})"
    return None
