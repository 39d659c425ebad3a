"""Modules of ``numpy.lib``: ``scimath``, which is ``numpy.emath`` too, and ``stride_tricks``."""

from funcgrad.numpy.lib import scimath, stride_tricks

__all__ = ["scimath", "stride_tricks"]
