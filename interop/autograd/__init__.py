"""The names and conventions of HIPS autograd, for programs that were written for it.

A program changes its imports, ``from funcgrad.interop.autograd import grad`` and
``import funcgrad.interop.autograd.numpy as np``, or calls ``install()`` once and changes nothing.

Example:
    >>> import funcgrad.interop.autograd.numpy as np
    >>> from funcgrad.interop.autograd import elementwise_grad, grad
    >>> def tanh(x):
    ...     return (1.0 - np.exp(-2 * x)) / (1.0 + np.exp(-2 * x))
    >>> grad(tanh)(1.0).round(6)
    np.float64(0.419974)
    >>> elementwise_grad(elementwise_grad(tanh))(np.array([0.0, 1.0])).round(6)
    array([ 0.    , -0.6397])
"""

from funcgrad.interop.autograd import (
    builtins,
    core,
    differential_operators,
    extend,
    misc,
    numpy,
    scipy,
    test_util,
    tracer,
    util,
    wrap_util,
)
from funcgrad.interop.autograd.builtins import dict, isinstance, list, tuple, type
from funcgrad.interop.autograd.differential_operators import *
from funcgrad.interop.autograd.installing import InstallError, install, uninstall
from funcgrad.interop.autograd.rules import primitive

__all__ = [
    "InstallError", "builtins", "core", "dict", "differential_operators", "extend", "install", "isinstance", "list",
    "misc", "numpy", "primitive", "scipy", "test_util", "tracer", "tuple", "type", "uninstall", "util", "wrap_util",
]  # fmt: skip
__all__ += differential_operators.__all__
