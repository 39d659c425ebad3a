"""Which classes and objects are sparse matrices: SciPy's, and funcgrad's that stand for them."""

from __future__ import annotations

import functools
import sys
from importlib import import_module
from typing import Any

#: Where these classes are defined; the first of them is there before ``scipy.sparse`` is loaded.
_HOMES = ("scipy._lib._sparse", "scipy.sparse")
#: What they have in common.
_FAMILIES = frozenset(("SparseABC", "_spbase", "sparray", "spmatrix"))

#: Classes that a program fills element by element.
FILLED = frozenset(f"{form}_{kind}" for form in ("dok", "lil") for kind in ("array", "matrix"))
#: Classes that have their values in an array.
NAMES = frozenset(f"{form}_{kind}" for form in ("bsr", "coo", "csc", "csr", "dia") for kind in ("array", "matrix"))


def class_of_ours(name: str) -> Any:
    """A class of ``funcgrad.scipy.sparse``, which is loaded when it is wanted."""
    return getattr(import_module("funcgrad.scipy.sparse"), name)


def is_own(x: Any) -> bool:
    """Whether ``x`` is a sparse matrix of funcgrad's."""
    home = sys.modules.get("funcgrad.scipy.sparse")
    return home is not None and issubclass(type(x), home.SparseArray)


def is_scipys(x: Any) -> bool:
    """Whether ``x`` is a sparse matrix of SciPy's."""
    return any(base.__name__ == "_spbase" for base in type(x).__mro__)


def is_number(x: Any) -> bool:
    """Whether a product with ``x`` is one of each element."""
    return isinstance(x, (int, float, complex)) or getattr(x, "shape", None) == ()


def kind_of(x: Any) -> type:
    """The class of SciPy's that one of funcgrad's matrices stands for."""
    kind: type = getattr(type(x), "theirs", None) or sys.modules["scipy.sparse"].csr_array
    return kind


@functools.cache
def family_of(theirs: type) -> Any:
    """What stands for a class that SciPy's sparse classes have in common: funcgrad's matrices are of it as well."""

    class Family(type):
        def __instancecheck__(cls, x: Any) -> bool:
            return isinstance(x, theirs) or (is_own(x) and issubclass(kind_of(x), theirs))

        def __subclasscheck__(cls, kind: type) -> bool:
            return issubclass(getattr(kind, "theirs", kind), theirs)

    return Family(theirs.__name__, (), {"__doc__": theirs.__doc__})


def is_sparse_family(cls: type) -> bool:
    """Whether ``cls`` is what classes of SciPy's sparse matrices have in common, as ``scipy.sparse.issparse`` asks."""
    return cls.__name__ in _FAMILIES and cls.__module__.startswith(_HOMES)


def is_sparse_class(cls: type) -> bool:
    """Whether ``cls`` is one of SciPy's classes of sparse matrices."""
    home = sys.modules.get("scipy.sparse")
    return home is not None and cls.__name__ in NAMES | FILLED and getattr(home, cls.__name__, None) is cls
