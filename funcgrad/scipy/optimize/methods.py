"""Which derivatives the methods of SciPy's solvers take."""

from __future__ import annotations

from typing import Any

__all__ = ["HESSIANS", "JACOBIANS", "PRODUCTS", "VALUES", "default_method"]

#: Methods of minimize that use no gradient, Hessian-vector products, whole Hessians. The others use gradients.
VALUES = frozenset(("nelder-mead", "powell", "cobyla", "cobyqa"))
PRODUCTS = frozenset(("newton-cg", "trust-ncg", "trust-krylov", "trust-constr"))
HESSIANS = frozenset(("dogleg", "trust-exact"))
#: Methods of root that take a Jacobian.
JACOBIANS = frozenset(("hybr", "lm"))


def default_method(method: Any, bounds: Any, constraints: Any) -> str:
    """The method of minimize in small letters, by default SciPy's choice; nothing for a function.

    Example:
        >>> default_method(None, None, ())
        'bfgs'
    """
    if method is None:
        return "slsqp" if constraints else "bfgs" if bounds is None else "l-bfgs-b"
    return "" if callable(method) else str(method).lower()
