"""Predicates for sparse matrices and their classes: SciPy's, and funcgrad's replacements."""

from __future__ import annotations

import functools
import sys
from typing import Any

from funcgrad.numpy_code.own import own

#: Modules that define the common base classes. The first is loaded before ``scipy.sparse``.
_HOMES = ("scipy._lib._sparse", "scipy.sparse")
#: Names of the common base classes.
_FAMILIES = frozenset(("SparseABC", "_spbase", "sparray", "spmatrix"))

#: Names of the classes that a program fills element by element.
FILLABLE_CLASSES = frozenset(f"{form}_{kind}" for form in ("dok", "lil") for kind in ("array", "matrix"))
#: Names of the classes that keep their values in an array.
ARRAY_CLASSES = frozenset(
    f"{form}_{kind}" for form in ("bsr", "coo", "csc", "csr", "dia") for kind in ("array", "matrix")
)


def sparse_class(name: str) -> Any:
    """Return a class of ``funcgrad.scipy.sparse``, which is imported at the first call."""
    return getattr(own("scipy.sparse"), name)


def changes_module() -> Any:
    """Return the module for writes to sparse matrices, which is imported at the first call."""
    return own("scipy.sparse.changes")


def is_funcgrad_matrix(x: Any) -> bool:
    """Whether ``x`` is a sparse matrix of funcgrad."""
    home = sys.modules.get("funcgrad.scipy.sparse")
    return home is not None and issubclass(type(x), home.SparseArray)


def is_scipy_matrix(x: Any) -> bool:
    """Whether ``x`` is a sparse matrix of SciPy."""
    return any(base.__name__ == "_spbase" for base in type(x).__mro__)


def scipy_class_of(x: Any) -> type:
    """Return the SciPy class that the class of funcgrad's matrix ``x`` replaces."""
    kind: type = getattr(type(x), "scipy_class", None) or sys.modules["scipy.sparse"].csr_array
    return kind


@functools.cache
def family_replacement(scipy_class: type) -> Any:
    """Return the replacement for a common base class of SciPy's sparse classes: funcgrad's matrices are instances."""

    class Family(type):
        def __instancecheck__(cls, x: Any) -> bool:
            return isinstance(x, scipy_class) or (is_funcgrad_matrix(x) and issubclass(scipy_class_of(x), scipy_class))

        def __subclasscheck__(cls, kind: type) -> bool:
            return issubclass(getattr(kind, "scipy_class", kind), scipy_class)

    return Family(scipy_class.__name__, (), {"__doc__": scipy_class.__doc__})


def is_sparse_family(cls: type) -> bool:
    """Whether ``cls`` is a common base class of SciPy's sparse classes, as ``scipy.sparse.issparse`` checks."""
    return cls.__name__ in _FAMILIES and cls.__module__.startswith(_HOMES)


def is_sparse_class(cls: type) -> bool:
    """Whether ``cls`` is a SciPy class of sparse matrices."""
    home = sys.modules.get("scipy.sparse")
    return (
        home is not None
        and cls.__name__ in ARRAY_CLASSES | FILLABLE_CLASSES
        and getattr(home, cls.__name__, None) is cls
    )


#: Functions of NumPy that call a method, or read an attribute, of an argument that is no array.
_FUNCTIONS = frozenset(("argmax", "argmin", "max", "mean", "min", "reshape", "sum", "transpose"))
_OTHER_NAMES = {"amax": "max", "amin": "min"}


def call_function(self: Any, name: str, operation: Any, args: Any, kwargs: Any) -> Any:
    """Return the result of a function of NumPy whose first argument is this sparse matrix, as NumPy computes it."""
    name = _OTHER_NAMES.get(name, name)
    if name in ("ndim", "shape", "size"):
        return getattr(self, name)
    return getattr(self, name)(*args[1:], **kwargs) if name in _FUNCTIONS else operation(*args, **kwargs)
