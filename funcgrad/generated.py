"""Functions made of text: one template for all operations of a kind, compiled once for each form that it takes.

The functions of one operation differ from those of another in the values that they refer to: a kernel, rules. So a
template is the body of ``make(values)``, which returns the function for these values. Python keeps the text, so
tracebacks and debuggers show the lines that run; ``source_of`` gives it with what its names stand for.

To compile what is made when funcgrad is imported takes longer than all the rest of the import. So the code is kept on
disk for the next process, beside that of the modules, where and if Python keeps these.
"""

from __future__ import annotations

import inspect
import linecache
import marshal
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import MAGIC_NUMBER, cache_from_source
from textwrap import dedent, indent
from types import CellType, CodeType, FunctionType
from typing import Any

__all__ = ["function", "keep_code", "source_of", "value_of", "with_names"]

#: What makes the function of a text, by the text and the identity of the names that it shares with others.
_makers: dict[tuple[str, int], Callable[..., Any]] = {}
#: The lines of the files that Python believes the texts to stand in: one for each module that has templates.
_files: dict[str, list[str]] = {}


def _place() -> str | None:
    """The file of the code that is kept; None where Python keeps none."""
    try:
        return os.path.splitext(cache_from_source(__file__))[0] + ".codes"
    except NotImplementedError:
        return None


def _read() -> dict[tuple[str, int, str], CodeType]:
    """The code that another process has kept: nothing where there is none, or this Python cannot read it."""
    with suppress(OSError, EOFError, ValueError, TypeError), open(_place() or os.devnull, "rb") as file:
        if file.read(len(MAGIC_NUMBER)) == MAGIC_NUMBER:
            found: dict[tuple[str, int, str], CodeType] = marshal.load(file)
            return found
    return {}


#: Code by the file and line where Python believes the text to stand, and the text.
_kept, _used = _read(), dict[tuple[str, int, str], CodeType]()


def keep_code() -> None:
    """Keep the code that was made so far, if some of it had to be compiled, for the processes that follow."""
    place = _place()
    if place is None or sys.dont_write_bytecode or _used.keys() <= _kept.keys():
        return
    known = {**_kept, **_used} if len(_kept) < 4 * len(_used) else _used  # else most of it is of older versions
    own = f"{place}.{os.getpid()}"
    with suppress(OSError):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(own, "wb") as file:
            file.write(MAGIC_NUMBER + marshal.dumps(known))
        os.replace(own, place)


def function(name: str, text: str, shared: dict[str, Any], **values: Any) -> Any:
    r"""The function that ``text`` defines under the name ``operation``.

    Args:
        name: what tracebacks call the function.
        text: its definition.
        shared: the names of a module, which mean the same in all functions of this text.
        values: what its other names stand for.

    Example:
        >>> double = function("double", "def operation(x):\n    return x * factor", globals(), factor=2)
        >>> double(4)
        8
    """
    maker = _makers.get((text, id(shared)))
    if maker is None:
        maker = _makers[text, id(shared)] = _compiled(text, tuple(values), shared)
    made: Any = maker(**values)
    made.__code__ = made.__code__.replace(co_name=name, co_qualname=name)
    made.__name__ = made.__qualname__ = name
    return made


def _compiled(text: str, names: tuple[str, ...], shared: dict[str, Any]) -> Callable[..., Any]:
    file = f"<generated for {shared['__name__']}>"
    lines = _files.setdefault(file, [])
    whole = f"def make({', '.join(names)}):\n{indent(text.strip(), '    ')}\n    return operation\n"
    key = (file, len(lines), whole)
    code = _used[key] = _kept.get(key) or compile("\n" * len(lines) + whole, file, "exec")
    lines += whole.splitlines(keepends=True)
    linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
    local: dict[str, Any] = {}
    exec(code, shared, local)
    make: Callable[..., Any] = local["make"]
    return make


def with_names(made: Any, **values: Any) -> Any:
    r"""The function ``made`` where some names stand for other values; what it calls itself by is still ``made``.

    Example:
        >>> double = function("double", "def operation(x):\n    return x * factor", globals(), factor=2)
        >>> with_names(double, factor=3)(4)
        12
    """
    code = made.__code__
    cells = zip(code.co_freevars, made.__closure__ or (), strict=True)
    closure = tuple([CellType(values[name]) if name in values else cell for name, cell in cells])
    return FunctionType(code, {**made.__globals__, **values}, made.__name__, made.__defaults__, closure)


def value_of(made: Any, name: str) -> Any:
    """What a name of its own stands for in the function ``made``."""
    return made.__closure__[made.__code__.co_freevars.index(name)].cell_contents


def source_of(made: Callable[..., Any]) -> str | None:
    r"""The text of a function that was made here, and what its own names stand for; None of others.

    Example:
        >>> double = function("double", "def operation(x):\n    return x * factor", globals(), factor=2)
        >>> print(source_of(double))
        # factor: 2
        def double(x):
            return x * factor
    """
    if type(made) is not FunctionType or made.__code__.co_filename not in _files:
        return None
    code = made.__code__
    cells = zip(code.co_freevars, made.__closure__ or (), strict=True)
    known = [f"# {name}: {_shown(cell.cell_contents)}" for name, cell in cells if name != "operation"]
    lines = inspect.getblock(_files[code.co_filename][code.co_firstlineno - 1 :])
    return "\n".join([*known, re.sub(r"\boperation\b", code.co_name, dedent("".join(lines)).strip())])


def _shown(value: Any) -> str:
    name, module = getattr(value, "__qualname__", None), getattr(value, "__module__", None)
    return f"{module}.{name}" if name and module else repr(value)
