"""Global names that begin with two underscores are looked up as others are."""

import math

import numpy as np

from funcgrad import grad


def __sine(x):
    return math.sin(x)


def test_private_global_function():
    assert grad(lambda x: __sine(x))(0.0) == 1.0


def test_rebound_private_names():
    names = {"math": math}
    exec("def __part(x): return math.sin(x)\ndef whole(x): return __part(x)", names)
    assert grad(names["whole"])(0.0) == 1.0
    exec("def __part(x): return 2 * math.sin(x)", names)
    assert grad(names["whole"])(0.0) == 2.0


def test_private_names_in_generated_classes():
    """attrs generates such methods, with a converter under a private global name."""
    names = {"__attr_converter_w": np.asarray, "__name__": __name__}
    exec("def __init__(self, w): self.w = __attr_converter_w(w)", names)
    Made = type("Made", (), {"__init__": names["__init__"], "total": lambda self: self.w.dot(np.ones(2))})
    np.testing.assert_array_equal(grad(lambda x: Made([x[0], 2.0 * x[1]]).total())(np.ones(2)), [1.0, 2.0])
