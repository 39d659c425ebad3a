"""HIPS autograd's ``scipy``: SciPy's names for functions of ``funcgrad.scipy``, or else of SciPy.

SciPy is imported when a name is looked up; it comes with ``funcgrad[scipy]``. SciPy's functions refuse
traced values, so no derivative gets lost.
"""
