"""Graph mode without JAX: a function's graph, recorded once and written down as straight NumPy code.

``capture`` runs the function and lists its operations, ``graphs`` drops what is not needed, ``storage`` plans the
memory, ``statements`` and ``source`` write the code, ``variants`` keeps what was written and chooses by the questions
that the function asked.
"""

from funcgrad.transforms.compiled.variants import Compiled, jit_numpy, run_compiled

__all__ = ["Compiled", "jit_numpy", "run_compiled"]
