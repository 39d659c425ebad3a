"""Forms of arguments: what must be the same in a call for a recorded program to be valid.

The code that takes inputs out of common containers, and puts results into them, is generated here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from funcgrad import tree
from funcgrad.core import describe
from funcgrad.transforms.arguments import merge_leaves
from funcgrad.transforms.compiled.graphs import fact_of
from funcgrad.transforms.compiled.source import Program
from funcgrad.transforms.static_arguments import leaf_names

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
    return list(compress(leaf_names(fun, *tree.unflatten(form.spec, form.leaves)), form.input_flags))


class FormMismatch(Exception):  # noqa: N818  (not an error: the arguments have another form)
    """Exception for arguments of another form than that of the program."""


class OtherContainerError(Exception):
    """Error for a container that is neither a tuple, a list nor a dictionary with plain keys."""


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
    try:
        result = result_text(spec)
    except OtherContainerError:
        result = ""
    try:
        (head, *body), objects = call_lines(form, spec.num_leaves, result, bool(program.slots))
    except OtherContainerError:
        return None
    text = "\n".join([head, "    if not is_unchanged(): raise FormMismatch", *body])
    namespace: dict[str, Any] = {
        "run": program.run,
        "new": program.allocate,
        "pool": program.pool,
        "is_unchanged": is_unchanged,
    }
    namespace |= {"FormMismatch": FormMismatch, "ndarray": ndarray, "unflatten": tree.unflatten, "spec": spec} | objects
    exec(compile(text, "<funcgrad binding>", "exec"), namespace)
    call: Callable[..., Any] = namespace["call"]
    return call


def call_lines(
    form: Form, count: int, result: str, has_slots: bool, at_limits: bool = False
) -> tuple[list[str], dict[str, Any]]:
    """Return the lines of ``call(args, kwargs)``, and the objects of the form that they refer to by name.

    Args:
        form: the form of the arguments.
        count: the number of results of ``run``, which the lines call.
        result: the expression for the result; empty for containers of other types.
        has_slots: whether ``run`` takes slots from ``pool``, or from ``new`` if the pool is empty.
        at_limits: whether ``run_at_limits`` is called if ``run`` raises an error of Python's functions of numbers.

    Raises:
        OtherContainerError: the arguments are in containers of other types.
    """
    objects: dict[str, Any] = {}
    args, kwargs = tree.unflatten(form.spec, list(range(len(form.leaves))))
    checks = [*_checks(args, "args", form, objects), *_checks(kwargs, "kwargs", form, objects)]
    given = "".join([f"i{i}, " for i in range(sum(form.input_flags))]) + ("B" if has_slots else "()")
    target = "".join([f"o{i}, " for i in range(count)]) if result and count else "found "
    body = [f"{target}= run({given})"]
    if at_limits:
        other = f"    {target}= run_at_limits({given})"
        body = ["try:", "    " + body[0], "except (ValueError, OverflowError):", other]
    if has_slots:
        body = ["try:", *["    " + line for line in body], "finally:", "    pool.append(B)"]
        body = ["try:", "    B = pool.pop()", "except IndexError:", "    B = new()", *body]
    lines = [*checks, *body, f"return {result or 'unflatten(spec, list(found))'}"]
    return ["def call(args, kwargs):", *["    " + line for line in lines]], objects


def _checks(x: Any, word: str, form: Form, objects: dict[str, Any]) -> Iterator[str]:
    """Yield statements that check ``word``, a nest of leaf numbers ``x``, and take the inputs out of it."""
    kind = type(x)
    if kind is int:
        yield from _leaf_checks(x, word, form, objects)
    elif x is None:
        yield f"if {word} is not None: raise FormMismatch"
    else:
        if kind not in (tuple, list, dict) or (kind is dict and not {str, int, tuple}.issuperset(map(type, x))):
            raise OtherContainerError
        tests = [] if word in ("args", "kwargs") else [f"type({word}) is not {kind.__name__}"]
        tests.append(f"len({word}) != {len(x)}" if x else word)
        yield f"if {' or '.join(tests)}: raise FormMismatch"
        if kind is dict:
            yield from [f"if {k!r} not in {word}: raise FormMismatch" for k in x]
        for k, part in x.items() if kind is dict else enumerate(x):
            yield from _checks(part, f"{word}[{k!r}]", form, objects)


def _leaf_checks(leaf: int, word: str, form: Form, objects: dict[str, Any]) -> Iterator[str]:
    x = form.leaves[leaf]
    if not form.input_flags[leaf]:
        objects[f"s{leaf}"] = x
        test = f"{word} is not s{leaf}"
        if type(x) in (int, bool, str, bytes):
            test += f" and (type({word}) is not type(s{leaf}) or {word} != s{leaf})"
        yield f"if {test}: raise FormMismatch"
        return
    i = sum(form.input_flags[:leaf])
    yield f"i{i} = {word}"
    if type(x) is ndarray:
        objects[f"d{i}"] = x.dtype
        test = f"type(i{i}) is not ndarray or i{i}.shape != {x.shape!r} or i{i}.dtype is not d{i}"
        if x.ndim:
            test += f" or i{i}.strides != {x.strides!r}"
    else:
        objects[f"t{i}"] = type(x)
        test = f"type(i{i}) is not t{i}"
    yield f"if {test}: raise FormMismatch"


def result_text(spec: tree.PyTreeSpec) -> str:
    """Return the expression for a result of this structure with the leaves ``o0``, ``o1``, ...

    Raises:
        OtherContainerError: the structure has containers of other types.
    """
    return _container_text(tree.unflatten(spec, list(range(spec.num_leaves))))


def _container_text(out: Any) -> str:
    kind = type(out)
    if kind is int:
        return f"o{out}"
    if out is None:
        return "None"
    if kind is dict and {str, int}.issuperset(map(type, out)):
        return "{" + ", ".join([f"{k!r}: {_container_text(x)}" for k, x in out.items()]) + "}"
    if kind is not tuple and kind is not list:
        raise OtherContainerError
    inner = ", ".join(map(_container_text, out))
    return f"[{inner}]" if kind is list else f"({inner}{',' if len(out) == 1 else ''})"
