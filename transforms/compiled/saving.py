"""A recorded program as a module that needs neither this library nor the program that it was recorded from."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from funcgrad import tree
from funcgrad.errors import InputError
from funcgrad.transforms.compiled.binding import container_text, taking
from funcgrad.transforms.compiled.bundling import Bundle
from funcgrad.transforms.compiled.source import Program
from funcgrad.transforms.compiled.statements import NO_NUMBER

__all__ = ["module_text"]

_HEAD = '''"""{name}: recorded by funcgrad, written for NumPy.

The arrays that the function closed over are what they were when this was written. Arguments of another form than those
that were recorded are refused with a TypeError, and what would take a way that was not recorded with a ValueError.
"""

from __future__ import annotations

import collections
import functools
import math
import operator
import types

import numpy as np

__all__ = [{name!r}]


class Otherwise(Exception):
    """A question got another answer than when the program was recorded."""


class Miss(Exception):
    """The arguments are of another form."""


ndarray = np.ndarray
index = operator.index


def differs(x, answer):
    now, then = np.asarray(x), np.asarray(answer)
    return now.shape != then.shape or now.dtype != then.dtype or now.tobytes() != then.tobytes()


def unlike(x, like):
    return np.shape(x) != like[0] or np.asarray(x).dtype != like[1]


def allocate(slots):
    found = []
    for shape, what in slots:
        found.append(np.empty(shape, what) if isinstance(shape, tuple) else what(found[shape]))
    return tuple(found)

'''

_TAIL = '''
_WAYS = [{ways}]


def {name}(*args, **kwargs):
    """The recorded function."""
    other = False
    for way in _WAYS:
        try:
            return way(args, kwargs)
        except Miss:
            continue
        except Otherwise:
            other = True
    if other:
        raise ValueError("{name}: for these values the function takes a way that was not recorded.")
    raise TypeError("{name}: the arguments have another form than those that were recorded.")
'''


def module_text(name: str, recorded: Sequence[tuple[Any, Any]]) -> str:
    """The text of a module with one function.

    Args:
        name: what it is called.
        recorded: pairs of a form of arguments and a variant for it.

    Raises:
        InputError: there is nothing recorded, or something in it cannot be written down.
    """
    if not recorded:
        raise InputError(
            "save: nothing has been recorded, got no program. Call the function once, with what it is for."
        )
    name = re.sub(r"\W", "_", name).strip("_") or "function"
    bundle, parts = Bundle(), []
    for n, (form, variant) in enumerate(recorded):
        parts.append(_way(n, form, variant, bundle))
    ways = ", ".join([f"_way_{n}" for n in range(len(recorded))])
    definitions = "\n".join([line for line in bundle.lines if line])
    return (
        _HEAD.format(name=name) + "\n" + definitions + "\n\n" + "\n\n".join(parts) + _TAIL.format(name=name, ways=ways)
    )


def _way(n: int, form: Any, variant: Any, bundle: Bundle) -> str:
    """One program, what it needs, and what binds the arguments to it."""
    program = variant.program
    taken = taking(form)
    put = container_text(tree.unflatten(variant.spec, list(range(variant.spec.num_leaves))))
    if taken is None or put is None:
        raise InputError(
            f"save: arguments and results must be in tuples, lists and dictionaries, got {form.spec}. Give the "
            "function such containers."
        )
    lines, held, count = taken
    known = {"NoNumber", "Otherwise", "differs", "unlike", "index", "Miss", "ndarray", "__builtins__", "run"}
    own = [key for key in program.space if key.startswith(_PYTHONS)]  # of which NumPy's are called at their limits
    known |= set(own)
    needs = [f"{key} = {bundle.text(x, key)}" for key, x in {**program.space, **held}.items() if key not in known]
    slots = [
        f"({bundle.text(shape, 'a slot')}, {bundle.text(what, 'a slot')})"
        if isinstance(shape, tuple)
        else f"({shape}, lambda x: {what})"
        for shape, what in program.slots
    ]
    results = ", ".join([f"o{i}" for i in range(variant.spec.num_leaves)])
    inputs = ", ".join([f"i{i}" for i in range(count)])
    body = [
        *needs,
        f"slots, pool = [{', '.join(slots)}], []",
        *_made(own, program, bundle),
        "",
        "def call(args, kwargs):",
    ]
    body += ["    " + line for line in lines]
    body += ["    try:", "        B = pool.pop()", "    except IndexError:", "        B = allocate(slots)"]
    target, given = f"{results}{', ' if results else 'found'}", f"({inputs}{', ' if inputs else ''}B)"
    body += ["    try:", f"        {target}= run{given}"]
    if own:
        body += ["    except (ValueError, OverflowError):", f"        {target}= run_at_limits{given}"]
    body += ["    finally:", "        pool.append(B)", f"    return {put}", "", "return call"]
    inner = "\n".join(["    " + line if line else "" for line in body])
    return f"\ndef _way_{n}():\n{inner}\n\n\n_way_{n} = _way_{n}()\n"


#: How names of Python's functions of numbers begin, see ``statements``.
_PYTHONS = "math_"


def _made(own: Sequence[str], program: Program, bundle: Bundle) -> list[str]:
    """The program, and where it calls Python's functions a second one, which calls NumPy's.

    What Python's raise errors for, of an infinite number say, NumPy's give a result for.
    """
    lines = [line for line in program.text.splitlines() if not line.endswith(NO_NUMBER)]
    if not own:
        return lines
    ours = ", ".join([bundle.text(program.space[key], key) for key in own])
    theirs = ", ".join([f"lambda *x: float(np.{key.removeprefix(_PYTHONS)}(*x))" for key in own])
    inner = ["    " + line for line in lines]
    return [
        f"def made({', '.join(own)}):", *inner, "    return run", "",
        f"run, run_at_limits = made({ours}), made({theirs})",
    ]  # fmt: skip
