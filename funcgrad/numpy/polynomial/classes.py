"""What makes NumPy's classes of series take traced coefficients and points."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.numpy.creation import as_value
from funcgrad.numpy.peeking import is_plain
from funcgrad.numpy.polynomial.series import as_series, series
from funcgrad.typing import Array, ArrayLike

__all__ = ["Traced"]

#: The functions that NumPy's classes are made of, and what they are called here.
_PARTS = {
    **{name: name for name in ("add", "sub", "mul", "div", "pow", "val", "der", "fit", "line", "roots", "fromroots")},
    "int": "integral",
}


_mapping: Any = np.polynomial.polyutils.mapparms


class Traced:
    """Stands before one of NumPy's classes among the bases; ``prefix`` names the family.

    Arithmetic, values, derivatives, integrals and roots of traced series work as NumPy's class has them. What asks for
    plain numbers (cutting small coefficients, domains made from traced points) refuses traced ones.
    """

    coef: Any
    domain: Any
    window: Any

    def __init_subclass__(cls, *, prefix: str) -> None:
        for theirs, ours in _PARTS.items():
            setattr(cls, f"_{theirs}", staticmethod(getattr(series(prefix), ours)))

    def __init__(self, coef: ArrayLike, domain: Any = None, window: Any = None, symbol: str = "x") -> None:
        base: Any = super()
        base.__init__(coef if is_plain(coef) else [0.0], domain, window, symbol)
        if not is_plain(coef):
            (self.coef,) = as_series(coef)

    def __call__(self, arg: ArrayLike) -> Array:
        """The values at ``arg``."""
        if is_plain(arg, self.coef):
            base: Any = super()
            return base.__call__(arg)
        offset, scale = _mapping(self.domain, self.window)
        return self._val(offset + scale * as_value(arg), self.coef)  # type: ignore[attr-defined]

    def roots(self) -> Array:
        """The zeros, sorted."""
        offset, scale = _mapping(self.window, self.domain)
        return offset + scale * self._roots(self.coef)  # type: ignore[attr-defined]
