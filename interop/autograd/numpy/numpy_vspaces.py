"""HIPS autograd's ``numpy_vspaces``: vector spaces of arrays."""

from funcgrad.interop.autograd.spaces import ArrayVSpace, ComplexArrayVSpace, VSpace

__all__ = ["ArrayVSpace", "ComplexArrayVSpace", "VSpace"]
