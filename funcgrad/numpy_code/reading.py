"""Numbers read from texts: if a text shows a traced number, the derivative would be lost there.

Python joins the parts of an f-string to an ordinary text, which does not know what it shows. So each run remembers
the traced numbers that it shows and their texts, and compares what is read with them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from itertools import islice
from types import CodeType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

from funcgrad.core import Tracer
from funcgrad.numpy.concretization import check_text, refuse_conversion
from funcgrad.numpy.tables import table_constructor
from funcgrad.numpy_code.conversions import plain_values, shown_value
from funcgrad.numpy_code.libraries import KEPT_PACKAGES, package_of
from funcgrad.numpy_code.tables import function_of_pandas, function_of_xarray
from funcgrad.numpy_code.xarrays import constructor

#: Functions and classes of Python that read numbers from texts, by module.
READER_MODULES = {
    "ast": frozenset(("literal_eval",)),
    "csv": frozenset(("DictReader", "reader")),
    "decimal": frozenset(("Decimal",)),
    "fractions": frozenset(("Fraction",)),
    "json": frozenset(("load", "loads")),
    "tomllib": frozenset(("load", "loads")),
}
#: Classes of tables that take traced values, by library.
TABLE_CLASSES = {
    "pandas": frozenset(("DataFrame", "Series")),
    "xarray": frozenset(("DataArray", "Dataset", "Variable")),
}
#: Types of callables that are searched in a table, and the largest number of entries that are searched.
_CALLED, _MANY = (FunctionType, MethodType), 256
_READER_NAMES = frozenset.union(
    *READER_MODULES.values(),
    ("array", "asarray", "astype", "complex", "eval", "exec", "float", "float32", "float64", "fromfile", "fromstring"),
    ("genfromtxt", "loads", "loadtxt", "read_csv", "read_fwf", "read_json", "read_table", "safe_load", "to_numeric"),
)


def refusing_reader(value: Any) -> Any:
    """Return a class that reads numbers from texts, in calls, such that it refuses texts of traced numbers.

    A class of tables becomes one that takes traced arrays, and functions of xarray ones that take traced tables; any
    other value is returned unchanged.

    Example:
        >>> from fractions import Fraction
        >>> refusing_reader(Fraction)("1/2"), refusing_reader(len) is len
        (Fraction(1, 2), True)
    """
    home = (package_of(getattr(value, "__module__", None)) or "").lstrip("_")
    if home in TABLE_CLASSES and isinstance(value, type) and value.__name__ in TABLE_CLASSES[home]:
        return table_constructor(value) if home == "pandas" else constructor(value)
    if home == "xarray":
        return function_of_xarray(value)
    if home == "pandas":
        return function_of_pandas(value) if isinstance(value, type) else value
    return refusing_traced(value) if isinstance(value, type) and _is_reader(value) else value


def _is_reader(value: Any) -> bool:
    """Whether ``value`` is one of Python's functions and classes in ``READER_MODULES``."""
    home = (package_of(getattr(value, "__module__", None)) or "").lstrip("_")
    return getattr(value, "__name__", None) in READER_MODULES.get(home, ())


def function_of_texts(fun: Any) -> Any:
    """Return a function of Python or pandas that reads or writes numbers such that it notices traced ones; or ``fun``.

    Unlike a class, such a function is replaced wherever a program looks it up.

    Example:
        >>> import json
        >>> function_of_texts(json.dumps)({"rate": 0.5}), function_of_texts(reads_texts) is reads_texts
        ('{"rate": 0.5}', True)
    """
    if _is_reader(fun):
        return refusing_traced(fun)
    if package_of(getattr(fun, "__module__", None)) == "pandas":
        return function_of_pandas(fun)
    return _writing(fun) if fun in (json.dump, json.dumps) else fun


def _writing(fun: Any) -> Any:
    """Return ``json.dump`` or ``json.dumps`` such that it writes the values of traced numbers."""

    @wraps(fun)
    def write(obj: Any, *args: Any, **kwargs: Any) -> Any:
        return fun(plain_values(obj, shown_value), *args, **kwargs)

    return write


def refusing_traced(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``fun`` such that it refuses traced numbers and texts that show them."""

    @wraps(fun, updated=())
    def read(*args: Any, **kwargs: Any) -> Any:
        args = tuple([list(x) if isinstance(x, GeneratorType) else x for x in args])
        check_text((*args, *kwargs.values()))
        for x in args:
            if isinstance(x, Tracer):
                refuse_conversion(x, f"{fun.__name__}(x)")
        return fun(*args, **kwargs)

    return read


def reads_texts(fun: Any) -> bool:
    """Whether ``fun``, or a function that it refers to, uses the name of a function that reads numbers from texts.

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
            if not _READER_NAMES.isdisjoint(value.co_names):
                return True
            rest += [const for const in value.co_consts if isinstance(const, CodeType)]
        else:
            rest += _parts(value)
    return False


def _parts(value: Any) -> Iterator[Any]:
    """Yield the functions, classes and codes that a function, a method or an object refers to."""
    if type(value) is FunctionType:
        yield value.__code__
        yield from _global_values(value)
        yield from _user_values([cell.cell_contents for cell in value.__closure__ or () if _is_set(cell)])
    elif type(value) is MethodType:
        yield from (value.__func__, value.__self__)
    elif isinstance(value, type):
        if _is_user_code(value):
            yield from [_plain(member) for base in value.__mro__ for member in vars(base).values()]
    elif not isinstance(value, ModuleType):
        inner = [safe_getattr(value, name) for name in ("func", "fun", "fget", "__wrapped__")]
        yield from [part for part in (*inner, type(value)) if part is not None and _is_user_code(part)]


def _global_values(fun: FunctionType) -> Iterator[Any]:
    """Yield the values of the global names in the code of ``fun``, and of the modules' attributes with such names."""
    names = fun.__code__.co_names
    for name in names:
        value = fun.__globals__.get(name)
        if isinstance(value, ModuleType) and _is_user_code(value):
            yield from filter(_is_user_code, [getattr(value, other, None) for other in names])
        elif value is not None:
            yield from _user_values([value])


def _user_values(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the ``values`` that belong to user modules, and the functions of user modules in tables."""
    for value in values:
        if type(value) in (dict, list, tuple):
            entries = value.values() if type(value) is dict else value
            yield from [entry for entry in islice(entries, _MANY) if type(entry) in _CALLED and _is_user_code(entry)]
        elif _is_user_code(value):
            yield value


def safe_getattr(value: Any, name: str) -> Any:
    """Return an attribute; None if it is missing, or if the user's class raises any error in the lookup.

    Example:
        >>> safe_getattr(3.0, "real"), safe_getattr(3.0, "name")
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


def _is_user_code(value: Any) -> bool:
    """Whether ``value`` belongs to a user's module, not to a known library."""
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", type(value).__module__)
    return isinstance(home, str) and package_of(home) not in KEPT_PACKAGES and not home.startswith(("numpy", "scipy"))
