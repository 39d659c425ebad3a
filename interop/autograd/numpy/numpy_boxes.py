"""HIPS autograd's ``numpy_boxes``: the class of traced arrays."""

from funcgrad.interop.autograd.boxes import Box

__all__ = ["ArrayBox", "Box"]

ArrayBox = Box
