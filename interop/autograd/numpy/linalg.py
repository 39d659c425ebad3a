"""HIPS autograd's ``numpy.linalg``: functions of ``funcgrad.numpy.linalg``; ``eigh`` reads one triangle."""

import numpy.linalg as _linalg

import funcgrad.numpy.linalg as _own
from funcgrad.interop.autograd.lookup import mirrored as _mirrored
from funcgrad.interop.autograd.numpy.conventions import eigh, eigvalsh

_names = _mirrored(_own, _linalg, {"eigh": eigh, "eigvalsh": eigvalsh})
globals().update(_names)

__all__ = sorted(_names)
