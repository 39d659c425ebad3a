"""The global names of functions that were built anew: those of their module, each translated when it is looked up.

Python looks names up fastest in a plain dictionary. So functions that were built anew have one, which gets each name
with what stands for it when the name is first asked for; a name that is not there Python looks for among the built-in
names, where it finds an object that asks ``Globals``. When a run begins, names that were bound anew are taken out.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Mapping
from functools import partial
from operator import is_, itemgetter
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any
from weakref import ref

import numpy as np

from funcgrad.core import Tracer
from funcgrad.numpy.concretization import check_text
from funcgrad.numpy_code.calls import called, with_calls, written
from funcgrad.numpy_code.classes import fits, may_change
from funcgrad.numpy_code.names import is_mirrored, when_called
from funcgrad.numpy_code.reading import MODULES, TABLES
from funcgrad.numpy_code.runs import current

_MISSING: Any = object()
#: Where the dictionary of a function that was built anew says whose names it has.
_OWNER = "⟨names⟩"
#: What is equal to nothing but itself, so that many are compared at once.
_SINGLE = frozenset((BuiltinFunctionType, FunctionType, ModuleType, np.ufunc, type))


def _taking_traced(contains_nan: Any) -> Any:
    """``_contains_nan``, which lets other arrays than NumPy's through."""
    knows = "xp_omit_okay" in contains_nan.__code__.co_varnames
    return partial(contains_nan, xp_omit_okay=True) if knows else contains_nan


#: What stands for names in a module alone. What decorates the functions of ``scipy.stats`` handles ``nan_policy``, and
#: an ``axis`` that they do not know, of NumPy's arrays only; the functions themselves ask whether theirs are. An
#: operator keeps the namespace of its arrays since SciPy 1.18: for None it takes NumPy's, which it has outside as well.
_THERE: dict[str, dict[str, Callable[[Any], Any]]] = {
    "scipy.stats._axis_nan_policy": {"is_numpy": lambda _: lambda xp: True, "_contains_nan": _taking_traced},
    "scipy.sparse.linalg._interface": {"array_namespace": lambda _: lambda *arrays, **options: None},
}


class _Rest(dict[str, Any]):
    """What Python takes for the built-in names: it asks for what is not among the names that are known."""

    __slots__ = ("names",)

    names: Globals

    def __missing__(self, name: str) -> Any:
        return self.names[name]


class Globals(dict[str, Any]):
    """The names of a module, as functions that were built anew see them.

    Args:
        real: the names themselves.
        translate: see ``translation.Translator``.

    Attributes:
        fast: the dictionary that functions have, with what stands for a name in every run.
        known: what was found under these names, and what stands for it.
        assigned: names that functions assign to. What they assign Python stores in ``fast``.
        beside: the own names of what stands for the module, see ``names.Names``: among them are some of these.
        there: by name what makes of that which stands for it everywhere what does so in this module.
    """

    __slots__ = ("__weakref__", "assigned", "beside", "builtins", "fast", "known", "look", "real", "there", "translate")

    def __init__(self, real: dict[str, Any], translate: Any) -> None:
        given = real.get("__builtins__", builtins)
        names = vars(given) if isinstance(given, ModuleType) else given
        self.builtins: dict[str, Any] = dict(names)
        if "__import__" in names:
            self.builtins["__import__"] = _importing(names["__import__"], translate)
        if "globals" in names:
            self.builtins["globals"] = lambda: self
        super().__init__(real, __builtins__=self.builtins)
        self.real = real
        self.translate = translate
        self.known: dict[str, tuple[Any, Any]] = {}
        self.assigned: set[str] = set()
        rest = _Rest({name: self.builtins[name] for name in _ASKED_FOR if name in self.builtins})
        rest.names = self
        own = {name: value for name, value in real.items() if name[:2] == "__"}  # of the module: its name, its file
        self.fast: dict[str, Any] = {**own, "__builtins__": rest, _OWNER: self}
        self.look: Any = None
        self.beside: dict[str, Any] = {}
        self.there: dict[str, Any] = _THERE.get(str(real.get("__name__", "")), {})

    def __getitem__(self, name: str) -> Any:
        value = self.real.get(name, _MISSING)
        try:
            before, found = self.known[name]
        except KeyError:
            return self._found(name, value)
        return found if before is value else self._found(name, value)

    def __setitem__(self, name: str, value: Any) -> None:
        self.real[name] = value
        self.forget(name)

    def __contains__(self, name: object) -> bool:
        return name in self.real

    def forget(self, name: str) -> None:
        """Ask anew for a name, which has been bound anew."""
        if name not in self.assigned:
            self.fast.pop(name, None)
        self.beside.pop(name, None)
        self.known.pop(name, None)
        self.look = None

    def keeps(self, name: str) -> bool:
        """Whether what stands for a name is known until it is bound anew."""
        return name in self.known and name not in self.assigned

    def refresh(self) -> None:
        """Forget the names that were bound anew: all are looked at one by one."""
        real, absent = self.real, self.looked()[-2]
        for name, (value, found) in list(self.known.items()):
            if may_change(found) and not fits(found):
                self.forget(name)
            if real.get(written(name) or name, _MISSING) is not (_MISSING if written(name) else value):
                self.forget(name)
        for name in self.known.keys() & {called(plain) for plain in absent & real.keys()}:
            self.forget(name)

    def looked(self) -> Any:
        """What is compared at once: functions and modules, other values, names that are not there; then classes."""
        known = list(self.known.items())
        bound = [(name, value) for name, (value, _) in known if value is not _MISSING]
        single = [pair for pair in bound if type(pair[1]) in _SINGLE]
        others = [pair for pair in bound if type(pair[1]) not in _SINGLE]
        absent = frozenset(written(name) or name for name, (value, _) in known if value is _MISSING)
        classes = [found for _, (_, found) in known if may_change(found)]
        self.look = (*_getter(single), *_getter(others), absent, classes)
        return self.look

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a global name, for programs that ask ``globals()``."""
        return self[name] if name in self.real else default

    def _found(self, name: str, value: Any) -> Any:
        if name in self.assigned:
            value = self.fast.get(name, value)
        if value is _MISSING:
            plain = written(name) if name else ""
            if plain in _OF_CALLS:
                return _OF_CALLS[plain]
            if plain:
                found = _EVALUATING[plain](self[plain]) if plain in _EVALUATING else when_called(self[plain])
                if plain not in self.real and plain not in self.assigned:
                    self._keep(name, value, found)
                return found
            if name not in self.builtins:
                raise KeyError(name)
            found, stable = self.builtins[name], True
        else:
            found, stable = self.translate(value)
            found = self.there[name](found) if name in self.there else found
        if stable and name not in self.assigned:
            self._keep(name, value, found)
        return found

    def _keep(self, name: str, value: Any, found: Any) -> None:
        self.known[name] = value, found
        self.fast[name] = found
        self.look = None

    def let_assign(self, names: frozenset[str]) -> None:
        """Note that a function assigns to ``names``. At the end of the run the module has what was assigned."""
        for name in names - self.assigned:
            self.forget(name)
        self.assigned |= names

    def hand_over(self) -> None:
        """Give the module what was assigned."""
        for name in self.assigned:
            value = self.fast.pop(name, _MISSING)
            if value is not _MISSING:
                self.real[name] = value


#: Built-in names that Python takes without asking whether they are there.
_ASKED_FOR = ("__import__", "__build_class__")


def _getter(pairs: list[tuple[str, Any]]) -> tuple[Any, tuple[Any, ...]]:
    """What takes these names from a dictionary at once, and what it should find."""
    if len(pairs) < 2:  # which would take a value, and not a tuple
        pairs = [*pairs, *pairs] if pairs else []
    return itemgetter(*[name for name, _ in pairs]) if pairs else _nothing, tuple([value for _, value in pairs])


def _nothing(names: dict[str, Any]) -> tuple[Any, ...]:
    return ()


def names_behind(names: Any) -> Globals | None:
    """The ``Globals`` of a function that was built anew, by what Python calls its globals; else None."""
    return names if isinstance(names, Globals) else None if names is None else names.get(_OWNER)


def refresh(watched: list[ref[Globals]]) -> None:
    """See that names of modules that were bound anew since the last run are asked for again.

    SciPy's own are not: nobody binds them anew.
    """
    for known in watched:
        names = known()
        if names is None:
            continue
        single, values, others, numbers, absent, classes = names.look or names.looked()
        real = names.real
        try:
            if (
                single(real) == values
                and (not numbers or all(map(is_, others(real), numbers)))
                and (not absent or real.keys().isdisjoint(absent))
                and (not classes or all(map(fits, classes)))
            ):
                continue
        except (KeyError, RuntimeError):  # a name is gone, or another thread adds one
            pass
        names.refresh()


def globals_of(real: dict[str, Any], translate: Any) -> Globals:
    """The one ``Globals`` of these names."""
    reference = translate.globals.get(id(real))
    known: Globals | None = reference and reference()
    if known is None or known.real is not real:
        known = names_behind(real) or _new_globals(real, translate)
    if known.assigned:
        current().at_end(known.hand_over)
    return known


def _new_globals(real: dict[str, Any], translate: Any) -> Globals:
    made, number, name = Globals(real, translate), id(real), str(real.get("__name__", ""))

    def forget(dead: ref[Globals]) -> None:
        if translate.globals.get(number) is dead:  # else others have the number by now
            del translate.globals[number]

    translate.globals[number] = ref(made, forget)
    if not is_mirrored(name):
        translate.watched.append(ref(made, translate.watched.remove))
    if getattr(sys.modules.get(name), "__dict__", None) is real:
        translate.lasting[name] = made  # it holds itself: made anew for each function it would leave garbage
    return made


def _importing(plain: Callable[..., ModuleType], translate: Any) -> Callable[..., ModuleType]:
    def found(*args: Any, **kwargs: Any) -> ModuleType:
        module: ModuleType = translate(plain(*args, **kwargs))[0]
        return module

    return found


def is_called(names: dict[str, Any]) -> Callable[[str, str], bool]:
    """Whether a call of a name, or of a name in a module, needs another function: for ``with_calls``."""

    def asked(owner: str, name: str) -> bool:
        if not owner:
            value = names.get(name, getattr(builtins, name, None))
            return value in (eval, exec) if name in _EVALUATING else when_called(value) is not value
        module = names.get(owner)
        if not isinstance(module, ModuleType) or module.__name__.partition(".")[0] not in ("numpy", *MODULES, *TABLES):
            return False
        value = vars(module).get(name)  # to ask for a name that is not there may warn, or load a module
        return not name or (callable(value) and when_called(value) is not value)

    return asked


class _Lookup(Mapping[str, Any]):
    """Local names and behind them global ones, as code sees them that is evaluated from a text."""

    def __init__(self, local: Any, names: Globals) -> None:
        self.local, self.names = local, names

    def __getitem__(self, name: str) -> Any:
        plain = written(name)
        if name in self.local:
            return self.local[name]
        if plain and plain in self.local:
            return when_called(self.local[plain])
        return self.names[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.local[name] = value

    def __delitem__(self, name: str) -> None:
        del self.local[name]

    def __iter__(self) -> Any:
        return iter(self.local)

    def __len__(self) -> int:
        return len(self.local)


def _evaluating(run: Callable[..., Any]) -> Callable[..., Any]:
    """``eval`` or ``exec`` for code that was built anew: what they run is built anew as well."""

    def evaluated(source: Any, globals: Any = None, locals: Any = None, /) -> Any:
        caller = sys._getframe(1)
        names = names_behind(caller.f_globals)
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
        code = with_calls(source, is_called({**names.real, **local}))
        return run(code, names, _Lookup(local.real if isinstance(local, Globals) else local, names))

    return evaluated


def _array_of(x: Any) -> Any:
    """``x.__array__()``, called by its name: an ndarray gives itself, and so does what stands for one."""
    return x if issubclass(type(x), Tracer) else x.__array__()


#: Functions that ``with_local_calls`` puts into code, by the names that it has for them.
_OF_CALLS: dict[str, Callable[..., Any]] = {"called": when_called, "__array__": _array_of}


def _or_own(made: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda value: made if value in (eval, exec) else value


_EVALUATING: dict[str, Callable[[Any], Any]] = {
    "eval": _or_own(_evaluating(eval)),
    "exec": _or_own(_evaluating(exec)),
}
