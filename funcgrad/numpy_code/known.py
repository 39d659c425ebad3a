"""Knowledge of functions that were called before: how much of each is rebuilt, and which calls were looked at.

Functions with the same code share it: a loop makes them again and again.
"""

from __future__ import annotations

from operator import attrgetter
from types import CodeType, FunctionType, MethodType
from typing import Any
from weakref import ref

from funcgrad.blocks import last_entered
from funcgrad.numpy_code.calls import IdentityCache
from funcgrad.numpy_code.overwriting import MOST_PATHS, CheckedForWrites, may_change_arrays
from funcgrad.numpy_code.reachable import (
    DATA_TYPES,
    codes_and_needs,
    dictionary_of,
    has_fixed_contents,
    is_of_library,
    values_held,
)

_MANY = 64


class Facts:
    """Knowledge of the functions with one code.

    Args:
        is_of_library: whether they are funcgrad's own or of another library, and are not looked at.

    Attributes:
        level: how much of them is rebuilt; 0 for nothing, None if this no longer holds.
        looked_at: what they held when a call was looked at, see ``held_by``.
        was_searched: whether what they can reach was searched for functions that print errors.
        runs_as_it_is: whether a call runs as it is if the function holds nothing and the arguments choose no path.
        paths: the marks of the paths on which calls were looked at; empty if the code changes no array.
    """

    __slots__ = ("_named", "is_of_library", "level", "looked_at", "paths", "runs_as_it_is", "was_searched")

    def __init__(self, is_of_library: bool) -> None:
        self.is_of_library = self.runs_as_it_is = is_of_library
        self.level: int | None = 0
        self.was_searched = False
        self.looked_at: set[Any] = set()
        self.paths: set[int] = set()
        self._named: list[ref[CodeType]] = []

    def rebuild(self, level: int) -> None:
        """Note that so much is rebuilt from now on."""
        self.level, self.runs_as_it_is = level, False

    def followed(self, given: Any) -> Any:
        """Return ``given``, such a function whose call was looked at; checked for writes if other paths may exist."""
        paths = self.paths
        return CheckedForWrites(given, paths.add, paths) if 0 < len(paths) < MOST_PATHS else given

    def note_looked_at(self, fun: Any, code: CodeType, held: Any, named: list[CodeType] | None, path: int) -> None:
        """Note that ``fun``, which holds this, changes no array that it used on a path.

        It is looked at again when a function that it names is gone, as when a cell of a notebook defines it again.

        Args:
            fun: a function with these facts.
            code: its code.
            held: what it holds.
            named: the codes that it names; None if that was not searched yet.
            path: the mark of the path.
        """
        if len(self.looked_at) >= _MANY:
            self.looked_at = set()
        self.looked_at.add(held)
        named = codes_and_needs(fun)[0] if named is None else named
        names = getattr(fun, "__globals__", None)
        if self.paths or any(may_change_arrays(one, names if one is code else None) for one in (code, *named)):
            self.paths.add(path)
        self.runs_as_it_is = self.level == 0 and () in self.looked_at
        key, known = id(code), known_codes

        def forget(_: Any) -> None:  # at the end of Python too, when the names of modules are gone
            entry = known.pop(key, None)
            if entry is not None:
                entry.stored.level, entry.stored.runs_as_it_is = None, False

        self._named = [ref(other, forget) for other in named]


_FACTS = IdentityCache()
#: Weak references with the ``Facts`` as ``stored``, by the ``id`` of the code.
known_codes = _FACTS.entries


def facts_of(code: CodeType, fun: Any) -> Facts:
    """Return what is known of the functions with a code; ``fun`` is one of them."""
    facts: Facts | None = _FACTS.get(code)
    if facts is None:
        facts = Facts(is_of_library(fun))  # funcgrad's own functions let the user's look for themselves
        _FACTS.put(code, facts)
    return facts


#: Types of which the value, not the type alone, may choose the path of a function.
_CHOOSING_BY_VALUE = frozenset((bool, int, str, FunctionType))
_ANY: Any = object()
#: Types of arguments that are compared with those of an earlier call.
_COMPARED = _CHOOSING_BY_VALUE | {type(None)}
#: What is known of functions that funcgrad's own objects are.
_OF_OWN = Facts(is_of_library=True)
_content_of, _defaults_of = attrgetter("cell_contents"), attrgetter("__defaults__")


class Choice:
    """Note of what ran in place of a function that was not looked at: it runs again while the function holds the same.

    Args:
        given: what ran.
        level: how much of it is rebuilt.
        facts: what is known of the function.
        always: whether it does not matter what the function holds, and with what it is called.
        others: the arguments that may choose a path.
        held: a function to read each part that it holds, and what to call that with.
        owner: its object, for a method.
        dictionary: the attributes of this object.
    """

    __slots__ = (
        "_always",
        "_depends_on_blocks",
        "_dictionary",
        "_facts",
        "_held",
        "_kind",
        "_level",
        "_others",
        "given",
    )

    def __init__(
        self,
        given: Any,
        level: int,
        facts: Facts,
        always: bool,
        others: list[Any],
        held: list[tuple[Any, Any]],
        owner: Any = None,
        dictionary: Any = None,
    ) -> None:
        self.given, self._level, self._facts, self._always = given, level, facts, always
        self._depends_on_blocks = level > 0 or type(given) is CheckedForWrites
        self._others, self._kind, self._dictionary = others, type(owner), dictionary
        values = [get(key) for get, key in held]
        same = [type(x) in _CHOOSING_BY_VALUE or part[0] is _defaults_of for part, x in zip(held, values, strict=True)]
        marks = [(type(x), x if is_same else _ANY) for x, is_same in zip(values, same, strict=True)]
        self._held = [(*part, *mark) for part, mark in zip(held, marks, strict=True)]

    def fits(self, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call may run in the same way: the function holds the same, and the arguments choose the same."""
        if self._facts.level != self._level or (self._depends_on_blocks and last_entered() is not None):
            return False
        if self._always:
            return True
        plain = not (kwargs or self._others) and DATA_TYPES.issuperset(map(type, args))  # the most frequent arguments
        if not plain and not self._choose_the_same((*args, *kwargs.values())):
            return False
        try:
            for get, key, kind, value in self._held:
                x = get(key)
                if type(x) is not kind or (value is not _ANY and value is not x):
                    return False
        except ValueError:  # a closure variable has no value any more
            return False
        own = self._dictionary
        if own is None:
            return True
        owner = fun.__self__
        return len(own) == len(self._held) and dictionary_of(owner) is own and type(owner) is self._kind

    def _choose_the_same(self, values: tuple[Any, ...]) -> bool:
        """Whether the arguments among ``values`` that may choose a path are those of the noted call."""
        found = [x for x in values if type(x) not in DATA_TYPES]
        return len(found) == len(self._others) and all(
            x is other or (type(x) is type(other) is int and x == other)
            for x, other in zip(found, self._others, strict=True)
        )


def choice_of(fun: Any, given: Any, level: int, always: bool, args: Any, kwargs: Any) -> Choice | None:
    """Return the choice to run ``given`` in place of ``fun``; None if too much would have to be compared."""
    kind, owner, dictionary = type(fun), None, None
    held: list[tuple[Any, Any]] = []
    if kind is FunctionType:
        code = fun.__code__
        held = [(_content_of, cell) for cell in fun.__closure__ or ()]
        held += [(_defaults_of, fun)] if fun.__defaults__ else []
    elif kind is MethodType and type(fun.__func__) is FunctionType:
        code, owner = fun.__func__.__code__, fun.__self__
        dictionary = dictionary_of(owner)
        held = [] if dictionary is None else [(dictionary.get, name) for name in dictionary]
    elif hasattr(kind, "retries_itself"):
        return Choice(given, level, _OF_OWN, True, [], held)
    else:
        return None
    others = [] if always else [x for x in (*args, *kwargs.values()) if type(x) not in DATA_TYPES]
    if not always:
        values = values_held(fun)
        # not so with keyword-only defaults, or a closure variable that has no value yet
        is_all = kind is MethodType or len(values) == len(fun.__closure__ or ()) + len(fun.__defaults__ or ())
        unknown = any(type(x) not in _COMPARED for x in others) or MethodType in map(type, values)
        nested = [x for x in (*values, *others) if type(x) is FunctionType and not has_fixed_contents(x)]
        if not is_all or unknown or nested:
            return None
    return Choice(given, level, facts_of(code, fun), always, others, [] if always else held, owner, dictionary)
