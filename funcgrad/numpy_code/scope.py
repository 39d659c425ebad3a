"""The global names of functions that were built anew: those of their module, each translated when it is looked up."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Mapping
from types import CodeType, ModuleType
from typing import Any

from funcgrad.numpy.concretization import check_text
from funcgrad.numpy_code.calls import with_calls, written
from funcgrad.numpy_code.names import when_called
from funcgrad.numpy_code.reading import MODULES, TABLES
from funcgrad.numpy_code.runs import current

__all__ = ["Globals", "globals_of", "is_called"]

_MISSING: Any = object()


class Globals(dict[str, Any]):
    """The names of a module, as functions that were built anew see them.

    What Python looks up without asking, the names in the body of a class, it finds as they were.

    Args:
        real: the names themselves.
        translate: see ``translation.Translator``.
    """

    __slots__ = ("__weakref__", "assigned", "builtins", "known", "real", "translate")

    def __init__(self, real: dict[str, Any], translate: Any) -> None:
        given = real.get("__builtins__", builtins)
        names = vars(given) if isinstance(given, ModuleType) else given
        self.builtins: dict[str, Any] = dict(names)
        if "__import__" in names:
            self.builtins["__import__"] = _importing(names["__import__"], translate)
        super().__init__(real, __builtins__=self.builtins)
        self.real = real
        self.translate = translate
        self.known: dict[str, tuple[Any, Any]] = {}  # what was found, and what stands for it
        self.assigned: set[str] = set()  # names that functions assign to; what they assign Python stores in here

    def __getitem__(self, name: str) -> Any:
        value = self.real.get(name, _MISSING)
        try:
            before, found = self.known[name]
        except KeyError:
            return self._found(name, value)
        return found if before is value else self._found(name, value)

    def __setitem__(self, name: str, value: Any) -> None:
        self.real[name] = value

    def __contains__(self, name: object) -> bool:
        return name in self.real

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a global name, for programs that ask ``globals()``."""
        return self[name] if name in self.real else default

    def _found(self, name: str, value: Any) -> Any:
        if name in self.assigned:
            value = dict.get(self, name, value)
        if value is _MISSING:
            plain = written(name) if name else ""
            if plain == "called":
                return when_called
            if plain:
                found = _EVALUATING[plain](self[plain]) if plain in _EVALUATING else when_called(self[plain])
                if plain not in self.real and plain not in self.assigned:
                    self.known[name] = value, found
                return found
            if name not in self.builtins:
                raise KeyError(name)
            found, stable = self.builtins[name], True
        else:
            found, stable = self.translate(value)
        if stable and name not in self.assigned:
            self.known[name] = value, found
        return found

    def let_assign(self, names: frozenset[str]) -> None:
        """Note that a function assigns to ``names``. At the end of the run the module has what was assigned."""
        for name in names - self.assigned:
            dict.pop(self, name, None)
            self.known.pop(name, None)
        self.assigned |= names

    def hand_over(self) -> None:
        """Give the module what was assigned."""
        for name in self.assigned:
            value = dict.pop(self, name, _MISSING)
            if value is not _MISSING:
                self.real[name] = value


def globals_of(real: dict[str, Any], translate: Any) -> Globals:
    """The one ``Globals`` of these names."""
    if isinstance(real, Globals):
        return real
    known: Globals | None = translate.globals.get(id(real))
    if known is None or known.real is not real:
        known = translate.globals[id(real)] = Globals(real, translate)
    if known.assigned:
        run = current()
        if known.hand_over not in run.endings:
            run.endings.append(known.hand_over)
    return known


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
        value = getattr(module, name, None)
        return callable(value) and when_called(value) is not value

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
        names = caller.f_globals
        assert isinstance(names, Globals)
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


def _or_own(made: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda value: made if value in (eval, exec) else value


_EVALUATING: dict[str, Callable[[Any], Any]] = {
    "eval": _or_own(_evaluating(eval)),
    "exec": _or_own(_evaluating(exec)),
}
