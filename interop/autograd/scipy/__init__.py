"""HIPS autograd's ``scipy``: the names of SciPy, the functions being those of ``funcgrad.scipy``, else SciPy's own.

SciPy is imported when a name is asked for; it comes with ``funcgrad[scipy]``. SciPy's own functions refuse
traced values, so no derivative gets lost.
"""
