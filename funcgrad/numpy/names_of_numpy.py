"""Names of NumPy that compute nothing of arrays, so that ``import funcgrad.numpy as np`` may stand for NumPy's import.

They are NumPy's own: types, files, random numbers, tests, dates and texts. They are looked up when they are first
asked for, and are not among what ``from funcgrad.numpy import *`` gives.
"""

import numpy as np

__all__ = ["NUMPYS"]

_MODULES = "char core ctypeslib dtypes exceptions f2py ma random rec strings testing typing"
_FILES = "fromfile fromregex fromstring genfromtxt load loadtxt memmap save savetxt savez savez_compressed"
_TYPES = "ScalarType bytes_ character datetime64 flexible object_ record str_ timedelta64 typecodes void"
_CLASSES = "broadcast busdaycalendar flatiter matrix nested_iters recarray"
_DATES = "busday_count busday_offset datetime_as_string datetime_data is_busday"
_OTHERS = "__version__ asmatrix bmat get_include info little_endian sctypeDict show_config show_runtime"

#: By name the module of NumPy that has it, as ``optional.later`` takes it.
NUMPYS = {name: f"numpy.{name}" for name in _MODULES.split()} | {
    name: f"numpy:{name}" for name in f"{_FILES} {_TYPES} {_CLASSES} {_DATES} {_OTHERS}".split()
}
NUMPYS |= {name: f"numpy:{name}" for name in ("complex256", "float128") if hasattr(np, name)}  # not on every machine
NUMPYS["row_stack"] = "funcgrad.numpy.joining:vstack"
