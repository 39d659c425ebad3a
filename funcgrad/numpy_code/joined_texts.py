"""Texts that Python joins from texts of traced numbers: ``f"rate {x}"``, ``", ".join(texts)``, ``"rate {}".format(x)``.

Python joins them to an ordinary text, which does not know what it shows. In a ``vmap`` each example has its own text,
so a comparison would take one branch for all. Functions that use such a text as data run rebuilt, with the functions
of this module, which keep what a text shows, see ``local_calls``.
"""

from __future__ import annotations

import dis
from importlib import import_module
from threading import get_ident
from types import CodeType
from typing import Any

from funcgrad.numpy.plain_values.texts import Unshared, with_source
from funcgrad.numpy_code.calls import IdentityCache
from funcgrad.numpy_code.conversions import as_format_string, is_traced
from funcgrad.numpy_code.reachable import own_codes, reachable
from funcgrad.shared_state import pending_refusals

#: Methods of texts that join other texts.
_METHODS = frozenset(("format", "join"))
#: Opcode that joins the parts of an f-string.
_JOIN = dis.opmap["BUILD_STRING"]
_USED = IdentityCache()


def join_parts(*parts: str) -> str:
    """Return an f-string of these parts."""
    return with_source("".join(parts), parts)


def join_of(x: Any, *args: Any, **kwargs: Any) -> Any:
    """Return ``x.join(...)``; traced numbers may fill a text that is joined from texts such as "%.3f"."""
    if not isinstance(x, str) or len(args) != 1:
        return as_format_string(x.join(*args, **kwargs))
    parts = list(args[0])
    return with_source(as_format_string(x.join(parts)), parts)


def format_of(x: Any, *args: Any, **kwargs: Any) -> Any:
    """Return ``x.format(...)``; a text that only shows a number, ``"{:.17g}".format(y)``, is that of the number."""
    if isinstance(x, str) and len(args) == 1 and is_traced(args[0]):
        parts = list(import_module("string").Formatter().parse(x))  # a module that few programs need
        literal, name, spec, conversion = parts[0] if len(parts) == 1 else (x, None, None, None)
        if not literal and name in ("", "0") and conversion is None and "{" not in str(spec):
            return format(args[0], spec or "")
    found = x.format(*args, **kwargs)
    return with_source(found, map(str, filter(is_traced, (*args, *kwargs.values())))) if isinstance(x, str) else found


def has_joined_texts(code: CodeType) -> bool:
    """Whether a code, or that of a function inside, joins texts."""
    joins = _JOIN in code.co_code[::2] or not _METHODS.isdisjoint(code.co_names)
    return joins or any(has_joined_texts(x) for x in code.co_consts if type(x) is CodeType)


def may_use_text_of_examples(fun: Any) -> bool:
    """Whether ``fun``, which has run as it is written, may have used a text of several numbers as if it were of one."""
    return type(pending_refusals.get(get_ident())) is Unshared and uses_joined_texts(fun)


def uses_joined_texts(fun: Any) -> bool:
    """Whether ``fun``, or a function that it refers to, joins texts and uses the result as data, not only prints it.

    Example:
        >>> names = {"__name__": "program"}
        >>> uses_joined_texts(eval("lambda x: f'key {x}' == 'key 1'", names))
        True
        >>> uses_joined_texts(eval("lambda x: f'{x}'", names))
        False
    """
    return any(map(_uses_joined, own_codes(reachable(fun))))


def _uses_joined(code: CodeType) -> bool:
    known: bool | None = _USED.get(code)
    if known is None:
        known = has_joined_texts(code) and _uses_in(code)
        _USED.put(code, known)
    return known


def _uses_in(code: CodeType) -> bool:
    """Whether the value of a statement that joins texts is not dropped at once, as after ``print(text)``."""
    steps = list(dis.get_instructions(code))
    joining = [at for at, step in enumerate(steps) if step.opcode == _JOIN or step.argval in _METHODS]
    ends = [next((step.opname for step in steps[at:] if step.opname.startswith(_ENDINGS)), "") for at in joining]
    inner = (x for x in code.co_consts if type(x) is CodeType)
    return any(not end.startswith(_DROPPING) for end in ends) or any(map(_uses_in, inner))


_DROPPING = ("POP_TOP", "RAISE")
#: Beginnings of the names of instructions that use or drop a text, or what a call returned for it.
_ENDINGS = (*_DROPPING, "BINARY_SUBSCR", "COMPARE", "CONTAINS", "POP_JUMP", "RETURN", "STORE", "YIELD")
