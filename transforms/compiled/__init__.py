"""Graph mode without JAX: the graph of a function, recorded once and written as straight NumPy code.

``capture`` runs the function and lists its operations, ``graphs`` drops unneeded ones, ``storage`` plans the
memory, ``statements`` and ``source`` write the code, ``variants`` keeps the programs and chooses one by the answers
to the questions that the function asked.
"""

from funcgrad.transforms.compiled.variants import Compiled, jit_numpy, run_compiled

__all__ = ["Compiled", "jit_numpy", "run_compiled"]
