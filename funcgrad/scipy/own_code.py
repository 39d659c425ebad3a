"""SciPy functions rebuilt with funcgrad's functions, and wrappers that pass plain values to SciPy.

Rebuilt functions keep SciPy's names, arguments, docstrings and messages. The modules of ``funcgrad.scipy`` write out
the functions that SciPy has compiled, those that run twice as fast when written out, and those that JAX must compile.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from inspect import cleandoc, signature
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from funcgrad.core import is_in_transform
from funcgrad.errors import InputError, MissingExtraError
from funcgrad.numpy.function_tables import function_table
from funcgrad.numpy.plain_values.peeking import is_plain
from funcgrad.numpy_code import run_anywhere
from funcgrad.numpy_code.conversions import as_writable
from funcgrad.optional import import_scipy
from funcgrad.writable import is_buffer

#: Functions that are rebuilt from SciPy's code, by their module in ``scipy``.
OWN_CODE: Mapping[str, frozenset[str]] = {
    module: frozenset(names.split())
    for module, names in {
        "fft": "fftfreq rfftfreq",
        "integrate": "cumulative_trapezoid dblquad romb simpson tplquad trapezoid",
        "linalg": (
            "convolution_matrix coshm cosm eigvals eigvalsh eigvalsh_tridiagonal fiedler hankel khatri_rao leslie "
            "matmul_toeplitz norm sinhm sinm svdvals tanm"
        ),
        "ndimage": (
            "center_of_mass convolve1d gaussian_gradient_magnitude gaussian_laplace laplace mean prewitt sobel "
            "spline_filter standard_deviation sum_labels uniform_filter variance"
        ),
        "signal": "correlate fftconvolve filtfilt get_window hilbert oaconvolve periodogram stft welch",
        "spatial.distance": "mahalanobis seuclidean sqeuclidean",
        "special": "h1vp h2vp ivp jvp kvp softplus yvp",
    }.items()
}


def rebuilt(home: str, name: str) -> Callable[..., Any]:
    """Return a differentiable version of the function ``name`` of SciPy's module ``home``.

    The returned function passes plain arguments to SciPy's function; functions may close over traced values.

    Raises:
        MissingExtraError: SciPy is not installed.
        InputError: by the returned function, if ``output`` is an array and values are traced.

    Example:
        >>> area = rebuilt("integrate", "trapezoid")
        >>> grad(area)([0.0, 1.0, 4.0]), area([0.0, 1.0, 4.0])
        ([np.float64(0.5), np.float64(1.0), np.float64(0.5)], np.float64(3.0))
    """
    scipy_function: Callable[..., Any] = getattr(import_scipy(f"{home}.{name}", f"scipy.{home}"), name)

    writes = "output" in signature(scipy_function).parameters

    @wraps(scipy_function)
    def call(*args: Any, **kwargs: Any) -> Any:
        every = (*args, *kwargs.values())
        if is_plain(*every) and not (is_in_transform() and any(map(callable, every))):
            return scipy_function(*args, **kwargs)
        if writes and isinstance(signature(scipy_function).bind(*args, **kwargs).arguments.get("output"), np.ndarray):
            raise InputError(
                f"{home}.{name}: output must be a dtype or None where values are traced, got an ndarray. Use the "
                "result of the function."
            )
        return run_anywhere(scipy_function, args, kwargs)

    call.__module__ = f"funcgrad.scipy.{home}"
    # SciPy's examples import SciPy and draw plots, so they do not show this function
    call.__doc__ = cleandoc(scipy_function.__doc__ or "").partition("\nExamples\n")[0].rstrip() + "\n"
    return call


def missing_name(home: str, name: str) -> AttributeError:
    """Return the error for a name that ``funcgrad.scipy`` lacks: transforms take SciPy's functions as they are.

    Example:
        >>> print(missing_name("stats", "entropy"))
        module 'funcgrad.scipy.stats' has no attribute 'entropy'. Use scipy.stats.entropy itself, also in transforms.
    """
    text = f"module 'funcgrad.scipy.{home}' has no attribute {name!r}"
    with suppress(MissingExtraError):
        if not name.startswith("_") and hasattr(import_scipy(f"{home}.{name}", f"scipy.{home}"), name):
            text += f". Use scipy.{home}.{name} itself, also in transforms."
    return AttributeError(text, name=name, obj=sys.modules.get(f"funcgrad.scipy.{home}"))


def own_code(
    home: str, names: dict[str, Any], other: Callable[[str], Any] | None = None
) -> tuple[list[str], Callable[[str], Any]]:
    """Return the names of ``home`` that ``rebuilt`` rebuilds, and a module's ``__getattr__`` that finds them.

    Args:
        home: the module of SciPy.
        names: the ``globals()`` of the module; functions that were built are stored there.
        other: finds any further name that the module does not hold.

    Example:
        >>> listed, found = own_code("integrate", {})
        >>> found("trapezoid").__name__, "trapezoid" in listed
        ('trapezoid', True)
    """

    def get(name: str) -> Any:
        if name not in OWN_CODE[home]:
            if other is not None:
                return other(name)
            raise missing_name(home, name)
        found = names[name] = rebuilt(home, name)
        return found

    return sorted(OWN_CODE[home]), get


P = ParamSpec("P")
R = TypeVar("R")


def mirrors(fun: Callable[P, R]) -> Callable[P, R]:
    """Wrap ``fun`` so that calls with plain arguments go to SciPy's function of the same name.

    Arguments that only SciPy's function has, in some versions, are accepted if they have their default values.

    A function of ``funcgrad.scipy.linalg`` or of one of its modules mirrors a function of ``scipy.linalg``.

    Example:
        >>> def det(a):
        ...     return "of traced values"
        >>> det.__module__ = "funcgrad.scipy.linalg"
        >>> mirrors(det)([[2.0]])
        np.float64(2.0)
    """
    name, home = fun.__name__, ".".join(fun.__module__.split(".")[1:3])
    own = frozenset(signature(fun).parameters)

    @wraps(fun)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        scipy_function: Any
        every = (*args, *kwargs.values())
        traced = not is_plain(*every)
        if traced and all(_is_constant(x) or (is_plain(x) and not callable(x)) for x in every):
            scipy_function = getattr(import_scipy(f"{home}.{name}", home), name)
            found: R = as_writable(scipy_function(*map(_copied, args), **{n: _copied(x) for n, x in kwargs.items()}))
            return found
        if traced and own.issuperset(kwargs):
            return fun(*args, **kwargs)
        scipy_function = getattr(import_scipy(f"{home}.{name}", home), name)
        if traced:
            defaults = {n: p.default for n, p in signature(scipy_function).parameters.items() if n not in own}
            known: Any = {n: x for n, x in kwargs.items() if n not in defaults or x is not defaults[n]}
            return fun(*args, **known)
        made: R = scipy_function(*args, **kwargs)
        return made

    return call


def _is_constant(x: Any) -> bool:
    """Whether ``x`` is an array that a function made from constants, to which nothing traced was written."""
    return is_buffer(x) and type(x._val) is np.ndarray


def _copied(x: Any) -> Any:
    """Return a copy of the array of a buffer, which SciPy may change; anything else is returned itself."""
    return np.array(x._val) if is_buffer(x) else x


def mirror_rows(template: Callable[Concatenate[str, P], R]) -> Callable[..., Callable[P, R]]:
    """Return ``function_table`` of ``template``, with each function it makes wrapped in ``mirrors``."""
    row = function_table(template)
    return lambda *said, **defaults: mirrors(row(*said, **defaults))
