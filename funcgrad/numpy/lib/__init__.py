"""Modules of ``numpy.lib``: ``scimath``, also known as ``numpy.emath``, and ``stride_tricks``."""

from funcgrad.numpy.lib import scimath, stride_tricks

__all__ = ["scimath", "stride_tricks"]
