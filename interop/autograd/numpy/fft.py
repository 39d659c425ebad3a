"""HIPS autograd's ``numpy.fft``: functions of ``funcgrad.numpy.fft``."""

import numpy.fft as _fft

import funcgrad.numpy.fft as _own
from funcgrad.interop.autograd.lookup import mirrored as _mirrored

_names = _mirrored(_own, _fft, {})
globals().update(_names)

__all__ = sorted(_names)
