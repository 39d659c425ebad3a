"""Numbers that are read from texts: where a text shows a traced number, the derivative would end there.

Python joins the parts of an f-string to an ordinary text, which does not know what it shows. So the numbers that a run
shows are remembered with their texts, and what is read is compared with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from itertools import islice
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from funcgrad.core import Tracer
from funcgrad.numpy.concretization import check_text, refuse
from funcgrad.numpy.tables import table_of
from funcgrad.numpy_code.libraries import KEPT

#: Python's modules with functions and classes that read numbers from texts, and which these are.
MODULES = {
    "ast": frozenset(("literal_eval",)),
    "decimal": frozenset(("Decimal",)),
    "fractions": frozenset(("Fraction",)),
    "json": frozenset(("loads",)),
}
#: Libraries whose tables take traced values, and which classes these are.
TABLES = {"pandas": frozenset(("DataFrame", "Series")), "xarray": frozenset(("DataArray", "Dataset", "Variable"))}
#: What is called, in a table, and how many entries of one are looked at.
_CALLED, _MANY = (FunctionType, MethodType), 256
_NAMES = frozenset.union(
    *MODULES.values(),
    ("array", "asarray", "astype", "complex", "eval", "exec", "float", "float32", "float64", "fromstring"),
    ("genfromtxt", "loads", "loadtxt", "safe_load", "to_numeric"),
)


def reader(value: Any) -> Any:
    """A function or class that reads numbers from texts, as a function that refuses those of traced numbers.

    A class of tables as one that takes traced arrays.

    Example:
        >>> from fractions import Fraction
        >>> reader(Fraction)("1/2"), reader(len) is len
        (Fraction(1, 2), True)
    """
    home = getattr(value, "__module__", None)
    home = home.partition(".")[0].lstrip("_") if isinstance(home, str) else ""
    if home in TABLES and isinstance(value, type) and value.__name__ in TABLES[home]:
        return table_of(value)
    if home not in MODULES or getattr(value, "__name__", None) not in MODULES[home]:
        return value
    return checked(value)


def checked(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``fun`` of texts that show no traced number, and of no traced number itself."""

    @wraps(fun, updated=())
    def read(*args: Any, **kwargs: Any) -> Any:
        check_text(args)
        for x in args:
            if isinstance(x, Tracer):
                refuse(x, f"{fun.__name__}(x)")
        return fun(*args, **kwargs)

    return read


def reads_texts(fun: Any) -> bool:
    """Whether ``fun``, or a function that it calls by a name, has the name of a function that reads numbers from texts.

    Example:
        >>> reads_texts(lambda text: float(text)), reads_texts(lambda text: text.upper())
        (True, False)
    """
    seen: dict[int, Any] = {}
    rest = [fun]
    while rest:
        value = rest.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        if isinstance(value, CodeType):
            if not _NAMES.isdisjoint(value.co_names):
                return True
            rest += [const for const in value.co_consts if isinstance(const, CodeType)]
        else:
            rest += _parts(value)
    return False


def _parts(value: Any) -> Iterator[Any]:
    """The functions and classes, and their code, that a function, a method or an object leads to."""
    if type(value) is FunctionType:
        yield value.__code__
        yield from _named(value)
        yield from _leading([cell.cell_contents for cell in value.__closure__ or () if _is_set(cell)])
    elif type(value) is MethodType:
        yield from (value.__func__, value.__self__)
    elif isinstance(value, type):
        if _leads_on(value):
            yield from [_plain(member) for base in value.__mro__ for member in vars(base).values()]
    elif not isinstance(value, ModuleType):
        inner = [attribute(value, name) for name in ("func", "fun", "fget", "__wrapped__")]
        yield from [part for part in (*inner, type(value)) if part is not None and _leads_on(part)]


def _named(fun: FunctionType) -> Iterator[Any]:
    """What the global names in the code of ``fun`` stand for, and names of modules among them."""
    names = fun.__code__.co_names
    for name in names:
        value = fun.__globals__.get(name)
        if isinstance(value, ModuleType) and _leads_on(value):
            yield from filter(_leads_on, [getattr(value, other, None) for other in names])
        elif value is not None:
            yield from _leading([value])


def _leading(values: Iterable[Any]) -> Iterator[Any]:
    """Those of ``values`` that are of a program's own modules, and the functions in tables of them."""
    for value in values:
        if type(value) in (dict, list, tuple):
            entries = value.values() if type(value) is dict else value
            yield from [entry for entry in islice(entries, _MANY) if type(entry) in _CALLED and _leads_on(entry)]
        elif _leads_on(value):
            yield value


def attribute(value: Any, name: str) -> Any:
    """An attribute; None where there is none, whatever error a program's class raises that looks for it itself.

    Example:
        >>> attribute(3.0, "real"), attribute(3.0, "name")
        (3.0, None)
    """
    try:
        return getattr(value, name, None)
    except Exception:
        return None


def _plain(member: Any) -> Any:
    return member.__func__ if isinstance(member, (staticmethod, classmethod)) else member


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _leads_on(value: Any) -> bool:
    """Whether ``value`` is of a program's own modules, and not of a library that is known."""
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", type(value).__module__)
    return isinstance(home, str) and home.partition(".")[0] not in KEPT and not home.startswith(("numpy", "scipy"))
