"""HIPS autograd's ``numpy.random``: NumPy's own. What is drawn is a constant."""

import numpy.random as _random

_names = {name: value for name, value in vars(_random).items() if not name.startswith("_")}
globals().update(_names)

__all__ = sorted(_names)
