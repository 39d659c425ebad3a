"""Functions made from text: one template for all operations of a kind, compiled at the first call.

The functions of two operations differ only in the values of some names: a kernel, rules. Each function therefore has
its own globals: the names that all functions of a template share, and its own values. A program calls few operations,
and compiling all of them would take a third of the import time. Python keeps the text, so tracebacks and debuggers show
the lines that run; ``source_of`` returns the text with the values of its names.
"""

from __future__ import annotations

import builtins
import inspect
import linecache
import re
from functools import cache
from textwrap import dedent
from threading import Lock
from types import FunctionType
from typing import Any

#: Lines of the virtual source files for ``linecache``, by file name: one file for each module that has templates.
_files: dict[str, list[str]] = {}
_writing = Lock()


def make_function(name: str, text: str, shared: dict[str, Any], **values: Any) -> Any:
    r"""Make the function that ``text`` defines under the name ``operation``; it is compiled at its first call.

    Args:
        name: the function's name in tracebacks.
        text: its definition; the first line is the header.
        shared: global names whose values are the same in all functions of this text.
        values: the values of the other names.

    Example:
        >>> double = make_function("double", "def operation(x):\n    return x * factor", globals(), factor=2)
        >>> double(4)
        8
    """
    text = text.strip()
    known = {**shared, **values, "__builtins__": builtins}  # warnings from NumPy look for ``import`` there
    waiting = _first_call(text.partition("\n")[0])
    made: Any = FunctionType(waiting.__code__, known, name, waiting.__defaults__)
    made.__qualname__, made.text = name, text
    made.own_names = values.keys() | getattr(shared.get("operation"), "own_names", set())
    known.setdefault("operation", made)
    known["compiled"] = lambda: _compile_function(made)
    return made


@cache
def _first_call(header: str) -> FunctionType:
    """Make a function with this header that, at its first call, replaces its code with the compiled text.

    The function keeps no reference to its arguments, so that VJP rules may overwrite unshared arrays in the first call.
    """
    code = _define_function(f"{header}\n    pass", "<header>").__code__
    names, count = code.co_varnames, code.co_argcount
    stars = [star for star, flag in (("*", inspect.CO_VARARGS), ("**", inspect.CO_VARKEYWORDS)) if code.co_flags & flag]
    given = ["given.pop(0)"] * count + list(map(str.__add__, stars, names[count:]))
    named = ", ".join(names[:count])
    lines = [f"given = [{named}]", f"del {named}" if named else "", f"return compiled()({', '.join(given)})"]
    return _compile_text("\n    ".join([header, *lines]), "<generated for first calls>")


def _compile_function(made: Any) -> Any:
    """Replace the code of ``made`` with its compiled text, and return ``made``."""
    code = _compile_text(made.text, f"<generated for {made.__globals__['__name__']}>").__code__
    made.__code__ = code.replace(co_name=made.__name__, co_qualname=made.__name__)
    return made


@cache
def _compile_text(text: str, file: str) -> FunctionType:
    """Compile the function that ``text`` defines, and add its lines to ``file`` for tracebacks."""
    with _writing:
        lines = _files.setdefault(file, [])
        made = _define_function("\n" * len(lines) + text, file)
        lines += [line + "\n" for line in text.split("\n")]
        linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
    return made


def _define_function(text: str, file: str) -> FunctionType:
    names: dict[str, Any] = {}
    exec(compile(text, file, "exec"), names)
    made: FunctionType = names["operation"]
    return made


def with_values(made: Any, **values: Any) -> Any:
    r"""Copy the function ``made`` with other values for some names; ``operation`` in its code still means ``made``.

    Example:
        >>> double = make_function("double", "def operation(x):\n    return x * factor", globals(), factor=2)
        >>> with_values(double, factor=3)(4)
        12
    """
    return make_function(made.__name__, made.text, made.__globals__, **values)


def own_values(made: Any) -> dict[str, Any]:
    r"""Return the values of names in ``made`` that its template does not share; none for a function without a text.

    Example:
        >>> own_values(make_function("double", "def operation(x):\n    return x * factor", globals(), factor=2))
        {'factor': 2}
    """
    if not hasattr(made, "text"):
        return {}
    known, names = made.__globals__, set(_compile_function(made).__code__.co_names)
    return {name: known[name] for name in sorted(made.own_names & names)}


def source_of(made: Any) -> str | None:
    r"""Return the text of a function that this module made, and the values of its own names; None for others.

    Example:
        >>> double = make_function("double", "def operation(x):\n    return x * factor", globals(), factor=2)
        >>> print(source_of(double))
        # factor: 2
        def double(x):
            return x * factor
    """
    text = getattr(made, "text", None)
    if text is None:
        return None
    known = [f"# {name}: {_shown(value)}" for name, value in own_values(made).items()]
    return "\n".join([*known, re.sub(r"\boperation\b", made.__name__, dedent(text))])


def _shown(value: Any) -> str:
    name, module = getattr(value, "__qualname__", None), getattr(value, "__module__", None)
    return f"{module}.{name}" if name and module else repr(value)
