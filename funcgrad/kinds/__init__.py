"""The kinds of primitives. A definition declares a kind and its rules; every mode follows from the declaration.

| kind | declared | reverse | forward | vmap |
| --- | --- | --- | --- | --- |
| elementwise | a partial per argument | ``ct * partial``, un-broadcast | sum of ``t * partial`` | align, rebind |
| linear | its transpose | ``transpose(ct)`` | rebind on the tangent | declared |
| multilinear | a transpose per argument | each transpose | sum of rebinds | declared |
| jointly linear | one transpose for all arguments | that transpose | rebind on all tangents | declared |
| nondifferentiable | nothing | leaves the trace | leaves the trace | as elementwise, or declared |
| primitive | all rules | given | given | given |
"""

from funcgrad.kinds.elementwise import elementwise
from funcgrad.kinds.general import multilinear, primitive
from funcgrad.kinds.linear import linear, nondifferentiable
from funcgrad.kinds.variadic import jointly_linear

__all__ = ["elementwise", "jointly_linear", "linear", "multilinear", "nondifferentiable", "primitive"]
