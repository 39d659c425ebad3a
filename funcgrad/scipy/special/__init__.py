"""Special functions: those of ``scipy.special``, with derivatives in every argument that has one.

Example:
    >>> import funcgrad.scipy.special as fsp
    >>> fsp.__name__
    'funcgrad.scipy.special'
"""
