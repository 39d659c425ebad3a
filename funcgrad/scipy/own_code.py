"""What SciPy computes itself, and its own Python code, built anew with funcgrad's functions in it.

Functions of the latter kind have SciPy's names, arguments, docstrings and messages. What SciPy has compiled is written
in the modules of ``funcgrad.scipy``, and so is what is twice as fast there, or is compiled by JAX as it stands.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import cleandoc, signature
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from funcgrad.errors import InputError
from funcgrad.numpy.faces import rows
from funcgrad.numpy.peeking import is_plain
from funcgrad.numpy_code import run_anywhere
from funcgrad.optional import import_scipy

#: By the module of ``scipy`` the functions that are its own code.
OWN_CODE: Mapping[str, frozenset[str]] = {
    module: frozenset(names.split())
    for module, names in {
        "integrate": "cumulative_trapezoid trapezoid",
        "linalg": (
            "convolution_matrix coshm cosm eigvals eigvalsh eigvalsh_tridiagonal fiedler khatri_rao leslie "
            "matmul_toeplitz norm sinhm sinm svdvals tanm"
        ),
        "ndimage": (
            "convolve1d gaussian_laplace laplace mean prewitt sobel spline_filter standard_deviation sum_labels "
            "uniform_filter variance"
        ),
        "signal": "correlate fftconvolve filtfilt get_window hilbert oaconvolve periodogram stft welch",
        "spatial.distance": "mahalanobis sqeuclidean",
    }.items()
}


def of_scipy(home: str, name: str) -> Callable[..., Any]:
    """The function ``name`` of the module ``home`` of SciPy, differentiable.

    Plain arguments go to SciPy's function itself.

    Raises:
        MissingExtraError: SciPy is not installed.
        InputError: by the function, where it is to write traced values to an array that is given as ``output``.

    Example:
        >>> area = of_scipy("integrate", "trapezoid")
        >>> grad(area)([0.0, 1.0, 4.0]), area([0.0, 1.0, 4.0])
        ([np.float64(0.5), np.float64(1.0), np.float64(0.5)], np.float64(3.0))
    """
    theirs: Callable[..., Any] = getattr(import_scipy(f"{home}.{name}", f"scipy.{home}"), name)

    writes = "output" in signature(theirs).parameters

    @wraps(theirs)
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_plain(*args, *kwargs.values()):
            return theirs(*args, **kwargs)
        if writes and isinstance(signature(theirs).bind(*args, **kwargs).arguments.get("output"), np.ndarray):
            raise InputError(
                f"{home}.{name}: output must be a dtype or None where values are traced, got an ndarray. Use the "
                "result of the function."
            )
        return run_anywhere(theirs, args, kwargs)

    call.__module__ = f"funcgrad.scipy.{home}"
    # SciPy's examples import SciPy and draw pictures: they show nothing of this function
    call.__doc__ = cleandoc(theirs.__doc__ or "").partition("\nExamples\n")[0].rstrip() + "\n"
    return call


def own_code(
    home: str, names: dict[str, Any], other: Callable[[str], Any] | None = None
) -> tuple[list[str], Callable[[str], Any]]:
    """The names of a module of ``funcgrad.scipy`` that are SciPy's own code, and its ``__getattr__``, which finds them.

    Args:
        home: the module of SciPy.
        names: the ``globals()`` of the module.
        other: finds what else the module has under names that it does not hold.

    Example:
        >>> listed, found = own_code("integrate", {})
        >>> found("trapezoid").__name__, "trapezoid" in listed
        ('trapezoid', True)
    """

    def get(name: str) -> Any:
        if name not in OWN_CODE[home]:
            if other is not None:
                return other(name)
            raise AttributeError(f"module 'funcgrad.scipy.{home}' has no attribute {name!r}", name=name)
        found = names[name] = of_scipy(home, name)
        return found

    return sorted(OWN_CODE[home]), get


P = ParamSpec("P")
R = TypeVar("R")


def mirrors(fun: Callable[P, R]) -> Callable[P, R]:
    """``fun``, but plain arguments go to the function of SciPy that has its name.

    Arguments that only SciPy's function has, as older versions do, are taken at their defaults.

    A function of ``funcgrad.scipy.linalg`` and of the modules in it mirrors one of ``scipy.linalg``.

    Example:
        >>> def det(a):
        ...     return "of traced values"
        >>> det.__module__ = "funcgrad.scipy.linalg"
        >>> mirrors(det)([[2.0]])
        np.float64(2.0)
    """
    name, home = fun.__name__, ".".join(fun.__module__.split(".")[1:3])
    own = frozenset(inspect.signature(fun).parameters)

    @wraps(fun)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        theirs: Any
        if is_plain(*args, *kwargs.values()):
            theirs = getattr(import_scipy(f"{home}.{name}", home), name)
            made: R = theirs(*args, **kwargs)
            return made
        if own.issuperset(kwargs):
            return fun(*args, **kwargs)
        theirs = getattr(import_scipy(f"{home}.{name}", home), name)
        known: Any = {n: x for n, x in kwargs.items() if n in own or not _is_default(theirs, n, x)}
        return fun(*args, **known)

    return call


def mirror_rows(template: Callable[Concatenate[str, P], R]) -> Callable[..., Callable[P, R]]:
    """``faces.rows`` of functions of which each ``mirrors`` the one of SciPy that has its name."""
    row = rows(template)
    return lambda *said, **defaults: mirrors(row(*said, **defaults))


def _is_default(fun: Callable[..., Any], name: str, value: Any) -> bool:
    """Whether ``value`` is what the argument is where nobody gives it."""
    given = inspect.signature(fun).parameters.get(name)
    return given is not None and value is given.default
