"""HIPS autograd's ``numpy_boxes``: what traced arrays are instances of."""

from funcgrad.interop.autograd.boxes import Box

__all__ = ["ArrayBox", "Box"]

ArrayBox = Box
