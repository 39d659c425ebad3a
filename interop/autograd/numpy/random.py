"""HIPS autograd's ``numpy.random``: NumPy's functions. Random numbers are constants."""

import numpy.random as _random

_names = {name: value for name, value in vars(_random).items() if not name.startswith("_")}
globals().update(_names)

__all__ = sorted(_names)
