"""Global names of rebuilt functions: the names of their module, each translated at its first lookup.

Python looks names up fastest in a plain dictionary. So rebuilt functions have one as their globals. It gets each
name, with its replacement, at the first lookup: Python looks a missing name up among the built-in names, where it
finds a dictionary that calls ``Globals``. When a run begins, names that were rebound are removed.
"""

from __future__ import annotations

import builtins
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial, wraps
from inspect import signature
from operator import is_
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any
from weakref import ref

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.numpy.plain_values.concretization import check_text
from funcgrad.numpy_code.calls import call_name, names_owner, owner_name, source_name, with_calls
from funcgrad.numpy_code.class_methods import has_methods, methods_of
from funcgrad.numpy_code.containers import Registry
from funcgrad.numpy_code.conversions import as_writable
from funcgrad.numpy_code.joined_texts import format_of, join_of, join_parts
from funcgrad.numpy_code.libraries import is_mirrored, package_of
from funcgrad.numpy_code.members import are_up_to_date, getter_of, stamps_of
from funcgrad.numpy_code.names import replacement_by_name, replacement_in_calls
from funcgrad.numpy_code.reading import READER_MODULES, TABLE_CLASSES
from funcgrad.numpy_code.replacements import current_run
from funcgrad.numpy_code.xarrays import MISSING_OVERRIDES
from funcgrad.ownership import has_unshared_memory, is_temporary

_MISSING: Any = object()
#: Key under which the globals of a rebuilt function keep their ``Globals``.
_GLOBALS_KEY = "⟨names⟩"
#: Types whose objects are equal only to themselves, so that many can be compared at once.
_SINGLE = frozenset((BuiltinFunctionType, FunctionType, ModuleType, np.ufunc, type))


def _accepting_traced(contains_nan: Any) -> Any:
    """Return ``_contains_nan`` such that it accepts arrays that are not NumPy's."""
    knows = "xp_omit_okay" in signature(contains_nan).parameters
    return partial(contains_nan, xp_omit_okay=True) if knows else contains_nan


#: Replacements that hold in one module only. The decorator of the functions of ``scipy.stats`` handles
#: ``nan_policy``, and an ``axis`` that a function lacks, for NumPy arrays only, not for arrays of numbers that are not
#: known yet; the functions check arrays themselves.
#: Since SciPy 1.18 an operator keeps the namespace of its arrays: None means NumPy's, as outside of a run.
_MODULE_OVERRIDES: dict[str, dict[str, Callable[[Any], Any]]] = {
    "scipy.stats._axis_nan_policy": {
        "is_numpy": lambda _: lambda xp: True,
        "is_lazy_array": lambda _: lambda x: False,
        "_contains_nan": _accepting_traced,
    },
    "xarray.core.missing": MISSING_OVERRIDES,
    "scipy.sparse.linalg._interface": {"array_namespace": lambda _: lambda *arrays, **options: None},
}


class _MissingNames(dict[str, Any]):
    """Built-in names as Python sees them: lookups of missing names go to ``Globals``."""

    __slots__ = ("names",)

    names: Globals

    def __missing__(self, name: str) -> Any:
        return self.names[name]


class Globals(dict[str, Any]):
    """Names of a module, as rebuilt functions see them.

    Args:
        real: the module's dictionary.
        translate: see ``translation.Translator``.

    Attributes:
        fast: the globals of rebuilt functions, with the replacements that are valid in every run.
        known: by name, the value that was found and its replacement.
        assigned: names that functions assign to. Python stores what they assign in ``fast``.
        is_unwatched: whether ``WatchedNames`` must be told when the next name is stored.
        mirror_dict: the dictionary of the module's replacement, a ``MirrorModule``, which has some of these names.
        module_overrides: by name, a function that turns the usual replacement into the one for this module.
    """

    __slots__ = (
        "__weakref__",
        "assigned",
        "builtins",
        "comparison",
        "fast",
        "is_unwatched",
        "known",
        "mirror_dict",
        "module_overrides",
        "real",
        "translate",
    )

    def __init__(self, real: dict[str, Any], translate: Any) -> None:
        given = real.get("__builtins__", builtins)
        names = vars(given) if isinstance(given, ModuleType) else given
        self.builtins: dict[str, Any] = dict(names)
        if "__import__" in names:
            self.builtins["__import__"] = importing(names["__import__"], translate)
        if "globals" in names:
            self.builtins["globals"] = lambda: self
        super().__init__(real, __builtins__=self.builtins)
        self.real = real
        self.translate = translate
        self.known: dict[str, tuple[Any, Any]] = {}
        self.assigned: set[str] = set()
        self.is_unwatched = not is_mirrored(str(real.get("__name__", "")))  # those of SciPy's modules never change
        rest = _MissingNames({name: self.builtins[name] for name in _REQUIRED_BUILTINS if name in self.builtins})
        rest.names = self
        own = {name: value for name, value in real.items() if name[:2] == name[-2:] == "__"}  # such as ``__name__``
        self.fast: dict[str, Any] = {**own, "__builtins__": rest, _GLOBALS_KEY: self}
        self.comparison: Any = None
        self.mirror_dict: dict[str, Any] = {}
        self.module_overrides: dict[str, Any] = _MODULE_OVERRIDES.get(str(real.get("__name__", "")), {})

    def __getitem__(self, name: str) -> Any:
        value = self.real.get(name, _MISSING)
        known = self.known.get(name)  # most names that are looked up here are not known, and raising takes time
        return known[1] if known is not None and known[0] is value else self._look_up(name, value)

    def __setitem__(self, name: str, value: Any) -> None:
        self.real[name] = value
        self.forget(name)

    def __contains__(self, name: object) -> bool:
        return name in self.real

    def forget(self, name: str) -> None:
        """Forget a name that was rebound, so that the next lookup translates it again."""
        if name not in self.assigned:
            self.fast.pop(name, None)
        self.mirror_dict.pop(name, None)
        self.known.pop(name, None)
        self._compare_anew()

    def forget_all(self) -> None:
        """Forget all names, so that nothing is compared until one is looked up again."""
        self.is_unwatched = True
        for name in list(self.known):
            self.forget(name)

    def is_stable(self, name: str) -> bool:
        """Whether the replacement for a name is valid until the name is rebound."""
        return name in self.known and name not in self.assigned

    def refresh(self) -> None:
        """Check the names one by one, and forget those that were rebound."""
        real, absent = self.real, self.new_comparison()[-2]
        for name, (value, found) in list(self.known.items()):
            if not are_up_to_date(stamps_of(found)):
                self.forget(name)
            if real.get(source_name(name) or name, _MISSING) is not (_MISSING if source_name(name) else value):
                self.forget(name)
        for name in self.known.keys() & {
            new(plain) for plain in absent & real.keys() for new in (call_name, owner_name)
        }:
            self.forget(name)

    def new_comparison(self) -> Any:
        """Store and return what is compared at once: functions and modules, other values, absent names, stamps."""
        known = list(self.known.items())
        bound = [(name, value) for name, (value, _) in known if value is not _MISSING]
        single = [pair for pair in bound if type(pair[1]) in _SINGLE]
        others = [pair for pair in bound if type(pair[1]) not in _SINGLE]
        absent = frozenset(source_name(name) or name for name, (value, _) in known if value is _MISSING)
        stamps = list(dict.fromkeys([stamp for _, (_, found) in known for stamp in stamps_of(found)]))
        self.comparison = (*getter_of(single), *getter_of(others), absent, stamps)
        return self.comparison

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a global name, for programs that call ``globals()``."""
        return self[name] if name in self.real else default

    def _look_up(self, name: str, value: Any) -> Any:
        if name in self.assigned:
            value = self.fast.get(name, value)
        if value is _MISSING:
            plain = source_name(name) if name else ""
            if plain in _CALL_HELPERS:
                return _CALL_HELPERS[plain]
            if plain:
                found = replacement_by_name(name, self[plain], _EVAL_REPLACEMENTS)
                if plain not in self.real and plain not in self.assigned:
                    self._store(name, value, found)
                return found
            if name not in self.builtins:
                raise KeyError(name)
            found, stable = self.builtins[name], True
        else:
            found, stable = self.translate(value)
            found = self.module_overrides[name](found) if name in self.module_overrides else found
        if stable and name not in self.assigned:
            self._store(name, value, found)
        return found

    def _store(self, name: str, value: Any, found: Any) -> None:
        if name == "__builtins__":  # in ``fast`` this is what looks up missing names
            return
        if self.is_unwatched:
            self.translate.watched.add(self)
        self.known[name] = value, found
        self.fast[name] = found
        self._compare_anew()

    def _compare_anew(self) -> None:
        self.comparison = None
        self.translate.watched.note_change()

    def note_assigned(self, names: frozenset[str]) -> None:
        """Note that a function assigns to ``names``. At the end of the run the module gets the values."""
        for name in names - self.assigned:
            self.forget(name)
        self.assigned |= names

    def store_assigned(self) -> None:
        """Store the assigned values in the module."""
        for name in self.assigned:
            value = self.fast.pop(name, _MISSING)
            if value is not _MISSING:
                self.real[name] = value


#: Built-in names that Python takes without checking that they are there.
_REQUIRED_BUILTINS = ("__import__", "__build_class__")


def globals_object(names: Any) -> Globals | None:
    """Return the ``Globals`` behind the ``__globals__`` of a rebuilt function; None for other functions."""
    return names if isinstance(names, Globals) else None if names is None else names.get(_GLOBALS_KEY)


#: The number of namespaces that are no modules, such as those of ``eval``, whose names are compared.
_MOST_PASSING = 32


class WatchedNames:
    """Names of user modules, which programs may rebind between runs. Those of SciPy's modules are not watched.

    Attributes:
        modules: weak references to the ``Globals`` of the modules, by their ``id``.
        passing: those of the modules that Python has not imported, the latest first: ``eval`` and ``exec`` make one in
            each call.
        checks: the names and values that ``are_same`` compares; None if they are collected anew.
    """

    __slots__ = ("checks", "modules", "passing")

    def __init__(self) -> None:
        self.modules: dict[int, ref[Globals]] = {}
        self.passing: deque[ref[Globals]] = deque()
        self.checks: Any = None

    def add(self, names: Globals) -> None:
        """Watch the names of a module; for one that is not imported, forget those of the oldest that is not either."""
        number = id(names)

        def discard(dead: Any) -> None:
            if self.modules.get(number) is dead:  # otherwise the ``id`` was reused
                del self.modules[number]
            self.note_change()

        names.is_unwatched = False
        self.modules[number] = made = ref(names, discard)
        self.note_change()
        if not is_imported(names.real):
            self.passing.append(made)
            oldest = self.passing.popleft()() if len(self.passing) > _MOST_PASSING else None
            if oldest is not None and oldest is not names:
                self.modules.pop(id(oldest), None)
                oldest.forget_all()

    def note_change(self) -> None:
        """Note that other names are compared from now on."""
        self.checks = None

    def refresh(self) -> None:
        """Forget the names that were rebound since the last run, and those of classes that got other members."""
        for names in self._living():
            names.refresh()

    def _living(self) -> list[Globals]:
        return [names for known in list(self.modules.values()) if (names := known()) is not None]

    def collect(self) -> Any:
        """Store and return what is compared, of all modules together: most modules have little of each kind."""
        watched = self._living()
        compared = [names.comparison or names.new_comparison() for names in watched]
        pairs = list(zip(watched, compared, strict=True))
        single = [(get, names.real, values) for names, (get, values, *_) in pairs if values]
        others = [(get, names.real, values) for names, (_, _, get, values, *_) in pairs if values]
        absent = [(names.real, missing) for names, (*_, missing, _) in pairs if missing]
        stamps = list(dict.fromkeys([stamp for *_, of_module in compared for stamp in of_module]))
        rest = (others, absent, stamps) if others or absent or stamps else None
        self.checks = checks = single, rest
        if any(names.comparison is not known for names, known in pairs):  # another thread looked a name up
            self.note_change()
        return checks


def are_same(checks: tuple[list[Any], Any]) -> bool:
    """Whether no watched name was rebound, and no class got other members, since ``checks`` were collected."""
    single, rest = checks
    try:
        for get, real, values in single:
            if get(real) != values:
                return False
        return rest is None or _are_rest_same(*rest)
    except (KeyError, RuntimeError):  # a name is gone, or another thread adds a name
        return False


def _are_rest_same(others: list[Any], absent: list[Any], stamps: list[Any]) -> bool:
    for get, real, values in others:
        if not all(map(is_, get(real), values)):
            return False
    for real, missing in absent:
        if not real.keys().isdisjoint(missing):
            return False
    return not stamps or are_up_to_date(stamps)


def globals_of(real: dict[str, Any], translate: Any) -> Globals:
    """Return the only ``Globals`` of this dictionary of names."""
    reference = translate.globals.get(id(real))
    known: Globals | None = reference and reference()
    if known is None or known.real is not real:
        known = globals_object(real) or _new_globals(real, translate)
    if known.assigned:
        current_run().at_end(known.store_assigned)
    return known


def is_imported(real: dict[str, Any]) -> bool:
    """Whether ``real`` is the dictionary of a module that Python has imported."""
    return getattr(sys.modules.get(str(real.get("__name__", ""))), "__dict__", None) is real


def _new_globals(real: dict[str, Any], translate: Any) -> Globals:
    made, number = Globals(real, translate), id(real)

    def forget(dead: ref[Globals]) -> None:
        if translate.globals.get(number) is dead:  # otherwise the ``id`` was reused
            del translate.globals[number]

    translate.globals[number] = ref(made, forget)
    if is_imported(real):
        translate.imported_globals[real["__name__"]] = (
            made  # part of a reference cycle: one for each function would leave garbage
        )
    return made


def importing(plain: Callable[..., Any], translate: Any) -> Callable[..., Any]:
    """Return ``__import__`` or ``import_module`` such that it imports replacements; or another maker of objects."""

    @wraps(plain)
    def found(*args: Any, **kwargs: Any) -> Any:
        return translate(plain(*args, **kwargs))[0]

    return found


def replaced_calls(names: dict[str, Any]) -> Callable[[str, str], bool]:
    """Return a predicate for ``with_calls``: whether a call of a name, or of a module's name, is replaced."""

    def is_replaced(owner: str, name: str) -> bool:
        if names_owner(name):
            return has_methods(_plain_value(names, owner, source_name(name)))
        if not owner:
            value = _plain_value(names, owner, name)
            return value in (eval, exec) if name in _EVAL_REPLACEMENTS else replacement_in_calls(value) is not value
        module = names.get(owner)
        home = package_of(module.__name__) if isinstance(module, ModuleType) else None
        if home not in ("numpy", "functools", "itertools", *READER_MODULES, *TABLE_CLASSES):
            return False
        value = _plain_value(names, owner, name)
        return not name or (callable(value) and replacement_in_calls(value) is not value)

    return is_replaced


def _plain_value(names: dict[str, Any], owner: str, name: str) -> Any:
    """Return the value of a global name, or of a name in the module ``owner``; None if there is none."""
    if not owner:
        return names.get(name, getattr(builtins, name, None))
    module = names.get(owner)
    return vars(module).get(name) if isinstance(module, ModuleType) else None  # getattr may warn, or import a module


class _Lookup(Mapping[str, Any]):
    """Local names, then global names, as code evaluated from a text sees them."""

    def __init__(self, local: Any, names: Globals) -> None:
        self.local, self.names = local, names

    def __getitem__(self, name: str) -> Any:
        plain = source_name(name)
        try:  # not ``in``: ``eval`` asks a mapping of the program for ``__getitem__`` only
            return replacement_by_name(name, self.local[plain]) if plain else self.local[name]
        except KeyError:
            return self.names[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.local[name] = value

    def __delitem__(self, name: str) -> None:
        del self.local[name]

    def __iter__(self) -> Any:
        return iter(self.local.keys())  # a mapping of the program need not be iterable

    def __len__(self) -> int:
        return len(self.local.keys())


def _found_in(local: Any, code: CodeType) -> dict[str, Any]:
    """Return the names of ``code`` that are found in ``local``, a mapping that cannot list its names."""
    found = {}
    for name in code.co_names:
        with suppress(KeyError):
            found[name] = local[name]
    return found


def _rebuilding_eval(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``eval`` or ``exec`` for rebuilt code: the evaluated code is rebuilt as well."""

    def evaluated(source: Any, globals: Any = None, locals: Any = None, /) -> Any:
        caller = sys._getframe(1)
        names = globals_object(caller.f_globals)
        assert names is not None
        if globals is None:
            local = caller.f_locals if locals is None else locals
        else:
            local = globals if locals is None else locals
            globals.setdefault("__builtins__", builtins)
            names = globals_of(globals, names.translate)
        mode = "eval" if run is eval else "exec"
        check_text(source)
        if not isinstance(source, CodeType):
            text = source.strip() if run is eval and isinstance(source, str) else source
            source = compile(text, "<string>", mode)
        known = local.as_is() if type(local) is Registry else local
        known = known if hasattr(local, "keys") else _found_in(local, source)
        code = with_calls(source, replaced_calls({**names.real, **known}))
        return run(code, names, _Lookup(local.real if isinstance(local, Globals) else local, names))

    return evaluated


def _array_of(x: Any) -> Any:
    """Call ``x.__array__()`` by name; a tracer, as an ndarray does, returns itself."""
    return x if issubclass(type(x), Tracer) else x.__array__()


def _copy_of(x: Any) -> Any:
    """Return ``x.copy()``; traced values can be written to the copy of an array that is constant."""
    found = x.copy()
    return as_writable(found) if type(x) is np.ndarray else found


def _astype_of(x: Any, *args: Any, **kwargs: Any) -> Any:
    """Return ``x.astype(...)``; numbers in an object array, some of them traced, become a traced array."""
    if type(x) is np.ndarray and x.dtype == object and any(isinstance(item, Tracer) for item in x.flat):
        return fnp.asarray(x, *args[:1] or (kwargs["dtype"],))
    return x.astype(*args, **kwargs)


def _assigned(x: Any) -> Any:
    """Return what a call made; traced values can be written to arrays that nothing else holds.

    Code that is not rebuilt makes such arrays: compiled code, methods of objects of SciPy and pandas.
    """
    kind = type(x)
    if kind is not np.ndarray and not (kind is tuple and is_temporary(x)):
        return x
    parts = [x] if kind is np.ndarray else list(x)
    del x
    for i in range(len(parts)):
        if type(parts[i]) is np.ndarray and has_unshared_memory(parts, i, part=True):
            parts[i] = as_writable(parts[i])
    return parts[0] if kind is np.ndarray else tuple(parts)


#: Functions that ``with_local_calls`` inserts into code, by the names that it uses for them.
_CALL_HELPERS: dict[str, Callable[..., Any]] = {
    "called": replacement_in_calls, "assigned": _assigned, ".__array__": _array_of, ".copy": _copy_of,
    ".astype": _astype_of, ".format": format_of, ".join": join_of, "methods": methods_of, "parts": join_parts,
}  # fmt: skip


def _unless_redefined(made: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda value: made if value in (eval, exec) else value


_EVAL_REPLACEMENTS: dict[str, Callable[[Any], Any]] = {
    "eval": _unless_redefined(_rebuilding_eval(eval)),
    "exec": _unless_redefined(_rebuilding_eval(exec)),
}
