"""Random numbers of NumPy whose parameters are traced: functions of random numbers that do not depend on them.

The stream is NumPy's own, so that values are those of the original program.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import describe
from funcgrad.errors import ConversionError
from funcgrad.numpy_code.conversions import holds_traced, is_traced, making, writable

#: What brings elements into another order.
_ORDERING = frozenset(("permuted", "shuffle"))


class Random:
    """A source of random numbers of NumPy, ``Generator`` or ``RandomState``, seen by code that was built anew.

    Args:
        source: NumPy's object, whose state it shares.
    """

    def __init__(self, source: Any) -> None:
        self.source = source

    __class__: Any = property(lambda self: type(self.source))

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.source, name)
        if not callable(value):
            return value
        drawn = making(value)

        def draw(*args: Any, **kwargs: Any) -> Any:
            traced = [x for x in (*args, *kwargs.values()) if is_traced(x)]
            if traced and name not in _ORDERING:
                raise ConversionError(
                    f"rng.{name}: random numbers of a traced parameter would lose the derivative, got "
                    f"{describe(traced[0])}. A random number has a derivative as a function of one that does not "
                    "depend on x: funcgrad.scipy.stats' ppf of rng.uniform(size=...), where the distribution of "
                    f"{name} has one."
                )
            return drawn(*args, **kwargs)

        return draw

    def choice(self, a: Any, *args: Any, **kwargs: Any) -> Any:
        """Elements of ``a``."""
        if not holds_traced([a]):
            return writable(self.source.choice(a, *args, **kwargs))
        a = fnp.asarray(a)
        return fnp.take(a, self.source.choice(a.shape[0], *args, **kwargs), axis=kwargs.get("axis", 0))

    def permutation(self, x: Any, **kwargs: Any) -> Any:
        """``x`` in another order."""
        if not holds_traced([x]):
            return writable(self.source.permutation(x, **kwargs))
        x = fnp.asarray(x)
        return fnp.take(x, self.source.permutation(x.shape[0]), axis=0)

    def shuffle(self, x: Any, **kwargs: Any) -> None:
        """Put ``x`` into another order."""
        if is_traced(x):
            x[...] = fnp.take(x, self.source.permutation(x.shape[0]), axis=0)
        else:
            self.source.shuffle(x, **kwargs)


def _shape(size: Any, *parameters: Any) -> Any:
    return np.broadcast_shapes(*[fnp.shape(p) for p in parameters]) if size is None else size


def _moved(name: str, low: float, high: float, of: Any) -> Any:
    """A distribution of two parameters: ``of`` them and of a number for the parameters ``low`` and ``high``."""

    def draw(self: Random, first: Any = low, second: Any = high, size: Any = None, **named: Any) -> Any:
        names = {"loc": 0, "scale": 1, "low": 0, "high": 1, "mean": 0, "sigma": 1}
        given = [first, second]
        for key, value in named.items():
            given[names[key]] = value
        plain = getattr(self.source, name)
        if not holds_traced(given):
            return writable(plain(*given, size))
        shape = _shape(size, *given)
        return of(*given, plain(low, high, shape if shape != () else None))

    return draw


def _scaled(name: str) -> Any:
    def draw(self: Random, scale: Any = 1.0, size: Any = None) -> Any:
        plain = getattr(self.source, name)
        if not holds_traced([scale]):
            return writable(plain(scale, size))
        shape = _shape(size, scale)
        return scale * plain(1.0, shape if shape != () else None)

    return draw


_MOVED: dict[str, Any] = {
    **dict.fromkeys(("normal", "laplace", "logistic", "gumbel"), lambda loc, scale, z: loc + scale * z),
    "uniform": lambda low, high, u: low + (high - low) * u,
    "lognormal": lambda mean, sigma, x: fnp.exp(mean + sigma * np.log(x)),
}
for _name, _of in _MOVED.items():
    setattr(Random, _name, _moved(_name, 0.0, 1.0, _of))
for _name in ("exponential", "rayleigh"):
    setattr(Random, _name, _scaled(_name))
