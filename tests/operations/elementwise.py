"""Rows for arithmetic, transcendental functions, choices, comparisons and rounding."""

import jax.numpy as jnp
import numpy as np
from jax import lax

import funcgrad.numpy as fnp
from operations.spec import Sample, array, op, positive

S = Sample
REAL = array(2, 3)
ZERO, EMPTY = array(), array(0, 3)
COMPLEX = array(2, 3, kind="complex")
INTEGERS = np.array([[1, 2, 3], [4, 6, 9]])
MASK = np.array([[True, False, True], [False, True, True]])
NAN, INF = float("nan"), float("inf")


def next_after(x, y):
    """Compute ``jnp.nextafter``, for which JAX before 0.12 has no derivative."""
    return x + lax.stop_gradient(jnp.nextafter(lax.stop_gradient(x), lax.stop_gradient(y)) - x)


def unary(name, low=-2.0, high=2.0, numbers=COMPLEX, **options):
    """Return a row for a function of one argument: a matrix, no axes, no elements, a Python number, complex numbers."""
    samples = [array(2, 3, low=low, high=high), array(low=low, high=high), EMPTY, 0.37 * low + 0.63 * high]
    return op(name, *[(x,) for x in samples], complex_samples=[] if numbers is None else [(numbers,)], **options)


def binary(name, first=array, second=array, numbers=True, **options):
    """Return a row for a function of two arguments: every way to broadcast, Python, integer and complex numbers."""
    other = array(2, 3, kind="complex", seed=7)
    return op(
        name,
        (first(2, 3), second(2, 3, seed=1)),
        (first(2, 1), second(3, seed=1)),
        (first(), second(1, 2, seed=1)),
        (first(2), float(second(seed=1))),
        (float(first()), second(2, seed=1)),
        (float(first()), float(second(seed=1))),
        (first(3), np.array([1, 2, 4])),
        (EMPTY, second(3, seed=1)),
        complex_samples=[(COMPLEX, other), (COMPLEX, second(3, seed=1)), (1.5, other)] if numbers else [],
        **options,
    )


def away(*shape, seed=0):
    """Return numbers of both signs, away from zero."""
    return array(*shape, seed=seed, low=1.1, high=1.9) * (-1.0) ** np.arange(np.prod(shape, dtype=int)).reshape(shape)


def choose(condition, x, y):
    """Choose between functions of both arguments, so that each is chosen somewhere."""
    return fnp.where(condition, fnp.sin(x), fnp.multiply(x, y))


ARITHMETIC = [
    binary("add"),
    binary("subtract"),
    binary("multiply"),
    binary("divide", second=away),
    op("true_divide", (REAL, away(3))),
    unary("negative"),
    unary("positive"),
    unary("reciprocal", 0.4, 2.0),
    binary("power", first=positive),
    op("pow", (positive(3), array(3))),
    op(
        "power",
        (REAL, 2),
        (REAL, 3),
        (REAL, -1),
        (REAL, 1),
        (REAL, 0),
        (ZERO, 2),
        (REAL, np.array([2, 0, 3])),
        S((REAL, np.array([2.0, 0.0, 3.0])), frozen=(1,), unbatched=(1,)),
        S((positive(2, 3), np.float64(0.5)), frozen=(1,)),
        S((2, REAL)),
        complex_samples=[(COMPLEX, 2), (COMPLEX, -1)],
    ),
    binary("float_power", first=positive),
    unary("square"),
    unary("sqrt", 0.4, 4.0),
    unary("cbrt", 0.4, 4.0, numbers=None),
    unary("absolute"),
    op("abs", (REAL,)),
    unary("fabs", numbers=None),
    op("sign", (REAL,), (ZERO,), (EMPTY,), differentiable=False),
    op("sign", complex_samples=[(COMPLEX,)], jax=None, reason="JAX takes the derivative for 0"),
    binary("copysign", second=away, numbers=False),
    binary("heaviside", numbers=False),
    binary("remainder", second=away, numbers=False),
    op("mod", (REAL, away(3))),
    binary("fmod", second=away, numbers=False),
    op("floor_divide", (REAL, away(3)), (7.5, 2.0), (INTEGERS, 2), differentiable=False),
    op("divmod", (REAL, away(3)), (7.5, 2.0)),
    op("modf", (REAL,), (ZERO,), (EMPTY,), (1.7,)),
    op("frexp", (REAL,), (ZERO,), (EMPTY,), (1.7,)),
    op("ldexp", (REAL, np.array([1, -2, 3])), (array(3), INTEGERS), (1.7, 2)),
    unary("conj"),
    op("conjugate", (REAL,)),
    unary("real"),
    unary("imag"),
    op(
        "angle",
        complex_samples=[(COMPLEX,), S((COMPLEX,), {"deg": True}), (array(kind="complex"),)],
    ),
    op("angle", (REAL,), S((-1.5,), {"deg": True}), differentiable=False),
]

TRANSCENDENTAL = [
    unary("exp"),
    unary("exp2"),
    unary("expm1"),
    unary("log", 0.4, 4.0),
    unary("log2", 0.4, 4.0),
    unary("log10", 0.4, 4.0),
    unary("log1p", -0.6, 3.0),
    binary("logaddexp", numbers=False),
    binary("logaddexp2", numbers=False),
    binary("hypot", numbers=False),
    unary("sin"),
    unary("cos"),
    unary("tan", -1.2, 1.2),
    unary("arcsin", -0.9, 0.9),
    unary("arccos", -0.9, 0.9),
    unary("arctan"),
    binary("arctan2", second=away, numbers=False),
    op("asin", (array(3, low=-0.9, high=0.9),)),
    op("acos", (array(3, low=-0.9, high=0.9),)),
    op("atan", (REAL,)),
    op("atan2", (REAL, away(3))),
    unary("sinh"),
    unary("cosh"),
    unary("tanh"),
    unary("arcsinh"),
    # for negative real parts JAX's derivative has the wrong sign
    unary("arccosh", 1.2, 4.0, numbers=COMPLEX + 2.5),
    unary("arctanh", -0.9, 0.9),
    op("asinh", (REAL,)),
    op("acosh", (positive(3, low=1.2),)),
    op("atanh", (array(3, low=-0.9, high=0.9),)),
    unary("sinc", numbers=None),
    unary("deg2rad", numbers=None),
    unary("radians", numbers=None),
    unary("rad2deg", numbers=None),
    unary("degrees", numbers=None),
]

CHOICES = [
    binary("maximum"),
    binary("minimum"),
    binary("fmax", numbers=False),
    binary("fmin", numbers=False),
    op(
        "clip",
        (REAL, -0.9, 0.8),
        (REAL, array(3, low=-1.5, high=-0.5), array(2, 1, low=0.5, high=1.5)),
        (REAL, -0.9, None),
        (REAL, None, 0.8),
        (ZERO, array(3, seed=1), 1.5),
        (0.4, -0.9, 0.8),
        (EMPTY, -0.9, 0.8),
        S((REAL,), {"min": -0.9}),
        S((REAL,), {"max": 0.8}),
        S((REAL,), {"min": -0.9, "max": 0.8}),
    ),
    op(
        "where",
        (MASK, REAL, array(2, 3, seed=1)),
        (MASK, array(3), array(2, 1, seed=1)),
        (np.array([True, False]), array(3, 1), 1.5),
        (MASK, 1.5, ZERO),
        (True, REAL, 0.5),
        (INTEGERS, REAL, np.array([1, 2, 3])),
        complex_samples=[(MASK, COMPLEX, REAL)],
    ),
    op("where", (MASK, REAL, array(2, 3, seed=1)), fun=choose, numpy=None, jax=None, reason="a composite"),
    op(
        "select",
        ([MASK, ~MASK], [REAL, array(2, 3, seed=1)]),
        ([MASK, MASK[0]], [array(3), array(2, 1, seed=1)], 1.5),
        ([MASK], [COMPLEX], ZERO),
    ),
    unary("nan_to_num"),
    op("nan_to_num", S((REAL,), {"nan": 1.0, "posinf": 2.0, "neginf": 3.0})),
]

SPECIAL = np.array([0.0, -0.0, 1.5, -2.5, NAN, INF, -INF])
PAIR = (np.array([1.0, 2.0, NAN, 0.0]), np.array([2.0, 2.0, 1.0, -0.0]))
NONDIFFERENTIABLE = [
    *[
        op(name, PAIR, (REAL, 0.5), (array(2, 1), array(3)), (INTEGERS, 3), (0.5, 0.5), differentiable=False)
        for name in (
            *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
            *("logical_and", "logical_or", "logical_xor"),
        )
    ],
    *[
        op(name, (SPECIAL,), (REAL,), (ZERO,), (1.5,), (EMPTY,), differentiable=False)
        for name in (
            *("isnan", "isinf", "isfinite", "isneginf", "isposinf", "isreal", "iscomplex", "logical_not", "signbit"),
            *("floor", "ceil", "trunc", "rint", "round", "around"),
        )
    ],
    op("fix", (SPECIAL,), (REAL,), (1.5,), jax="trunc", differentiable=False),
    op("round", S((REAL, 1), unbatched=(1,)), S((12.345, -1), unbatched=(1,)), differentiable=False),
    op("isreal", (COMPLEX,), (np.array([1 + 0j, 1j]),), differentiable=False),
    op("iscomplex", (COMPLEX,), (np.array([1 + 0j, 1j]),), differentiable=False),
    op("isclose", PAIR, (REAL, 0.5), S((REAL, array(3)), {"rtol": 0.5, "atol": 0.1}), differentiable=False),
    op("allclose", (REAL, REAL + 1e-9), (REAL, 0.5), S((PAIR[0], PAIR[0]), {"equal_nan": True}), differentiable=False),
    op("array_equal", (REAL, REAL), (REAL, -REAL), S((PAIR[0], PAIR[0]), {"equal_nan": True}), differentiable=False),
    op("spacing", (REAL,), (1.0,), differentiable=False),
    op("nextafter", (REAL, 2.0), (REAL, array(3)), jax=next_after),
    *[
        op(name, (INTEGERS, 3), (INTEGERS, np.array([[1], [2]])), differentiable=False)
        for name in (
            *("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"),
            *("bitwise_left_shift", "bitwise_right_shift", "gcd", "lcm"),
        )
    ],
    *[
        op(name, (INTEGERS,), (-INTEGERS,), differentiable=False)
        for name in ("bitwise_count", "invert", "bitwise_not", "bitwise_invert")
    ],
]

OPS = [*ARITHMETIC, *TRANSCENDENTAL, *CHOICES, *NONDIFFERENTIABLE]
