"""Random numbers with traced parameters, as functions of random numbers without parameters.

The random stream is NumPy's or Python's, so the values are those of the original program.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from copy import copy, deepcopy
from types import FunctionType, MethodType
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer, describe
from funcgrad.errors import ConversionError
from funcgrad.numpy_code.conversions import as_writable, holds_traced, is_traced, with_writable_results


class Random:
    """NumPy source of random numbers, ``Generator`` or ``RandomState``, as rebuilt code sees it.

    Args:
        source: NumPy's object, whose state is shared.
    """

    def __init__(self, source: Any) -> None:
        self.source = source

    __class__: Any = property(lambda self: type(self.source))

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.source, name)
        if name == "permuted":  # which a ``RandomState`` does not have
            return self._permuted
        return self._drawing(value) if callable(value) else value

    def _drawing(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method of the source such that it refuses traced parameters."""
        drawn, name = with_writable_results(method), method.__name__

        def draw(*args: Any, out: Any = None, **kwargs: Any) -> Any:
            if isinstance(out, Tracer):
                written: Any = out
                written[...] = drawn(*args, out=np.empty(out.shape, out.dtype), **kwargs)
                return out
            kwargs |= {} if out is None else {"out": out}
            given = (*args, *kwargs.values())
            if holds_traced(given):
                shown = next((describe(x) for x in given if is_traced(x)), "a list with one")
                raise ConversionError(
                    f"rng.{name}: random numbers of a traced parameter would lose the derivative, got {shown}. A "
                    "random number has a derivative as a function of one that does not depend on x: "
                    "funcgrad.scipy.stats' ppf of rng.uniform(size=...), where the distribution of "
                    f"{name} has one."
                )
            return drawn(*args, **kwargs)

        return draw

    def __copy__(self) -> Random:
        return type(self)(copy(self.source))

    def __deepcopy__(self, memo: dict[int, Any]) -> Random:
        return type(self)(deepcopy(self.source, memo))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.source.__reduce_ex__(protocol)

    def choice(self, a: Any, *args: Any, **kwargs: Any) -> Any:
        """Return random elements of ``a``."""
        return self._reordered("choice", a, *args, **kwargs)

    def permutation(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return ``x`` in random order."""
        return self._reordered("permutation", x, *args, **kwargs)

    def _permuted(self, x: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
        """Return ``x`` with its elements in random order, those along an axis each in an order of their own."""
        if not holds_traced([x, out]):
            return self._drawing(self.source.permuted)(x, *args, out=out, **kwargs)
        found = self._reordered("permuted", x, *args, **kwargs)
        if out is None:
            return found
        out[...] = found
        return out

    def shuffle(self, x: Any, *args: Any, **kwargs: Any) -> None:
        """Reorder ``x`` in place."""
        if not is_traced(x):
            self.source.shuffle(x, *args, **kwargs)
            return
        places = _positions(x)
        self.source.shuffle(places, *args, **kwargs)
        x[...] = fnp.take(fnp.ravel(x), places)

    def _reordered(self, name: str, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the elements of ``x`` at the positions that a method of the source returns for an array of them."""
        draw = getattr(self.source, name)
        if not holds_traced([x]):
            return as_writable(draw(x, *args, **kwargs))
        x = fnp.asarray(x)
        return fnp.take(fnp.ravel(x), draw(_positions(x), *args, **kwargs))

    def gamma(self, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
        """Draw from the gamma distribution, whose ``scale`` may be traced."""
        if not holds_traced([scale]) or holds_traced([shape]):
            return self.__getattr__("gamma")(shape, scale, size)
        scale = _array(scale)
        return scale * self.source.standard_gamma(shape, _shape(size, shape, scale))

    def triangular(self, left: Any, mode: Any, right: Any, size: Any = None) -> Any:
        """Draw from the triangular distribution by the inverse of its distribution function."""
        if not holds_traced([left, mode, right]):
            return as_writable(self.source.triangular(left, mode, right, size))
        left, mode, right = map(_array, (left, mode, right))
        u = self.source.triangular(0.0, 1.0, 1.0, _shape(size, left, mode, right)) ** 2
        is_left = u * (right - left) <= mode - left
        part = fnp.where(is_left, u * (mode - left), (1.0 - u) * (right - mode)) * (right - left)
        return fnp.where(is_left, left + fnp.sqrt(part), right - fnp.sqrt(part))

    def multivariate_normal(
        self, mean: Any, cov: Any, size: Any = None, *args: Any, method: str = "svd", **kwargs: Any
    ) -> Any:
        """Draw from the multivariate normal distribution: standard normal numbers times a factor of ``cov``."""
        if not holds_traced([mean, cov]):
            options = kwargs if method == "svd" else {**kwargs, "method": method}
            return as_writable(self.source.multivariate_normal(mean, cov, size, *args, **options))
        mean, cov = fnp.asarray(mean), fnp.asarray(cov)
        shape = () if size is None else (size,) if np.ndim(size) == 0 else tuple(size)
        z = self.source.standard_normal((*shape, mean.shape[0]))
        return mean + z @ _factor(cov, method, isinstance(self.source, np.random.RandomState))


class PythonRandom:
    """Python's source of random numbers, ``random.Random``, as rebuilt code sees it: methods that compute are rebuilt.

    Args:
        source: Python's object, whose state is shared.
        translate: see ``translation.Translator``.
    """

    def __init__(self, source: Any, translate: Any) -> None:
        vars(self).update(source=source, translate=translate)

    __class__: Any = property(lambda self: type(self.source))

    def __getattr__(self, name: str) -> Any:
        method = getattr(type(self.source), name, None)
        if type(method) is FunctionType and not method.__closure__:  # methods that call ``super`` handle the state
            return MethodType(self.translate(method)[0], self)
        return getattr(self.source, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.source, name, value)

    def __copy__(self) -> PythonRandom:
        return PythonRandom(copy(self.source), self.translate)

    def __deepcopy__(self, memo: dict[int, Any]) -> PythonRandom:
        return PythonRandom(deepcopy(self.source, memo), self.translate)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.source.__reduce_ex__(protocol)


def plain_source(x: Any) -> Any:
    """Return NumPy's object for a source of random numbers; any other value unchanged."""
    return x.source if type(x) is Random else x


def _positions(x: Any) -> np.ndarray:
    """Return an array of the shape of ``x`` with the position of each element in the flattened ``x``."""
    return np.arange(fnp.size(x)).reshape(fnp.shape(x))


def _factor(cov: Any, method: str, is_legacy: bool) -> Any:
    """Return the matrix by which NumPy multiplies standard normal numbers from the right.

    A multiple of the identity has no unique eigenvectors. NumPy's are those of the identity, and stay the same while
    the matrix stays a multiple: only along such directions does the result have a derivative.
    """
    if method == "cholesky":
        return fnp.linalg.cholesky(cov).T
    unit = np.eye(len(cov))
    is_multiple = bool(fnp.all(cov == cov[0, 0] * unit))
    if method == "eigh":
        s, u = fnp.linalg.eigh(unit if is_multiple else cov)
        rows = u.T
    else:
        u, s, vh = fnp.linalg.svd(unit if is_multiple else cov)
        rows = vh if is_legacy else u.T
    return fnp.sqrt(fnp.diagonal(cov) if is_multiple else fnp.abs(s))[:, None] * rows


def _array(x: Any) -> Any:
    return fnp.asarray(x) if isinstance(x, (list, tuple)) else x


def _shape(size: Any, *parameters: Any) -> Any:
    """Return the shape to request from NumPy; None for one number."""
    shape = np.broadcast_shapes(*[fnp.shape(p) for p in parameters]) if size is None else size
    return None if type(shape) is tuple and not shape else shape


def _transformed(name: str, parameters: str, standard: tuple[float, ...], of: Callable[..., Any]) -> Any:
    """Return a method for a distribution: ``of`` its parameters and a number drawn for the ``standard`` ones."""
    names = (*parameters.split(), "size")

    def draw(self: Random, *args: Any, **named: Any) -> Any:
        plain = getattr(self.source, name)
        if not holds_traced((*args, *named.values())):
            return as_writable(plain(*args, **named))
        given = {**dict(zip(names, standard, strict=False)), **dict(zip(names, args, strict=False)), **named}
        size = given.pop("size", None)
        values = list(map(_array, given.values()))
        return of(*values, plain(*standard, _shape(size, *values)))

    return draw


_TRANSFORMED: dict[str, tuple[str, tuple[float, ...], Callable[..., Any]]] = {
    **{
        name: ("loc scale", (0.0, 1.0), lambda loc, scale, z: loc + scale * z)
        for name in ("normal", "laplace", "logistic", "gumbel")
    },
    "uniform": ("low high", (0.0, 1.0), lambda low, high, u: low + (high - low) * u),
    "lognormal": ("mean sigma", (0.0, 1.0), lambda mean, sigma, x: fnp.exp(mean + sigma * np.log(x))),
    "exponential": ("scale", (1.0,), operator.mul),
    "rayleigh": ("scale", (1.0,), operator.mul),
    "pareto": ("a", (1.0,), lambda a, x: fnp.expm1(np.log1p(x) / a)),
    "power": ("a", (1.0,), lambda a, x: x ** (1.0 / a)),
    "weibull": ("a", (1.0,), lambda a, x: x ** (1.0 / a)),
}
for _name, _settings in _TRANSFORMED.items():
    setattr(Random, _name, _transformed(_name, *_settings))
