"""HIPS autograd's ``misc``: trees as vectors, optimisers, fixed points."""

from funcgrad.interop.autograd.misc.flatten import flatten
from funcgrad.interop.autograd.misc.tracers import const_graph

__all__ = ["const_graph", "flatten"]
