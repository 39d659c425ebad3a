"""Numbers read from texts: if a text shows a traced number, the derivative would be lost there.

Python joins the parts of an f-string to an ordinary text, which does not know what it shows. So each run remembers
the traced numbers that it shows and their texts, and compares what is read with them.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import wraps
from types import GeneratorType
from typing import Any

from funcgrad.core import Tracer
from funcgrad.numpy.plain_values.concretization import check_text, refuse_conversion
from funcgrad.numpy.plain_values.texts import TracedText, with_source
from funcgrad.numpy.tables.containers import table_constructor
from funcgrad.numpy_code.conversions import plain_values, shown_value
from funcgrad.numpy_code.libraries import package_of
from funcgrad.numpy_code.reachable import names_in, own_codes, reachable
from funcgrad.numpy_code.tables import function_of_pandas, function_of_xarray
from funcgrad.numpy_code.xarrays import constructor

#: Functions and classes of Python that read numbers from texts, by module.
READER_MODULES = {
    "ast": frozenset(("literal_eval",)),
    "configparser": frozenset(("ConfigParser", "RawConfigParser")),
    "csv": frozenset(("DictReader", "reader")),
    "decimal": frozenset(("Decimal",)),
    "fractions": frozenset(("Fraction",)),
    "json": frozenset(("JSONDecoder", "load", "loads")),
    "tomllib": frozenset(("load", "loads")),
}
#: Classes of tables that take traced values, by library.
TABLE_CLASSES = {
    "pandas": frozenset(("DataFrame", "Series")),
    "xarray": frozenset(("DataArray", "Dataset", "Variable")),
}
_READER_NAMES = frozenset.union(
    *READER_MODULES.values(),
    ("array", "asarray", "astype", "complex", "eval", "exec", "float", "float32", "float64", "fromfile", "fromstring"),
    ("genfromtxt", "getfloat", "getint", "loads", "loadtxt", "read_csv", "read_fwf", "read_json", "read_table"),
    ("safe_load", "to_numeric"),
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
    if not callable(value):  # a module may warn of names that it does not have
        return value
    home = (package_of(getattr(value, "__module__", None)) or "").lstrip("_")
    if home in TABLE_CLASSES and isinstance(value, type) and value.__name__ in TABLE_CLASSES[home]:
        return table_constructor(value) if home == "pandas" else constructor(value)
    if home == "xarray":
        return function_of_xarray(value)
    if home == "pandas":
        return function_of_pandas(value) if isinstance(value, type) else value
    if not isinstance(value, type) or not _is_reader(value):
        return value
    methods = {"configparser": _get_option, "json": _decode}.get(home)
    return methods(value) if methods else refusing_traced(value)


def _decode(decoder: Any) -> Any:
    """Return a class like ``decoder``, a class of ``json``, whose methods refuse texts of traced numbers."""
    return type(decoder.__name__, (decoder,), {"decode": refusing_traced(decoder.decode)})


def _get_option(parser: Any) -> Any:
    """Return a class like ``parser``, one of ``configparser``, that refuses to read a traced number from an option."""

    def get(self: Any, section: str, conv: Any, option: str, **kwargs: Any) -> Any:
        return parser._get(self, section, refusing_traced(conv), option, **kwargs)

    return type(parser.__name__, (parser,), {"_get": get})


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
    if fun is warnings.warn:
        return _warn
    return _writing(fun) if fun in (json.dump, json.dumps) else fun


@wraps(warnings.warn)
def _warn(message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **kwargs: Any) -> None:
    """Warn; a warning is no data, so its text may show the numbers of all examples of a batch, or unknown ones."""
    if isinstance(message, Warning):
        message.args = tuple([_plain_text(x) for x in message.args])
    warnings.warn(_plain_text(message), category, stacklevel + 1, source, **kwargs)


def _plain_text(x: Any) -> Any:
    return str.__str__(x) if type(x) is TracedText else x


def _writing(fun: Any) -> Any:
    """Return ``json.dump`` or ``json.dumps`` such that it writes the values of traced numbers."""

    @wraps(fun)
    def write(obj: Any, *args: Any, **kwargs: Any) -> Any:
        texts: list[str] = []

        def show(x: Tracer) -> Any:
            texts.append(str(x))
            return shown_value(x)

        found = fun(plain_values(obj, show), *args, **kwargs)
        return found if found is None else with_source(found, texts)

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
        >>> reads_texts(eval("lambda text: float(text)", {})), reads_texts(eval("lambda text: text.upper()", {}))
        (True, False)
    """
    return any(not _READER_NAMES.isdisjoint(names_in(code)) for code in own_codes(reachable(fun)))


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
