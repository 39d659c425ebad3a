"""Views by distances in memory and views of complex numbers as pairs: writes to them, and writes that they see."""

import math

import numpy as np
import pytest
from helpers import differences
from numpy.lib.stride_tricks import as_strided, sliding_window_view

from funcgrad import grad, jacfwd, value_and_grad, vmap
from funcgrad.errors import InputError
from funcgrad.interop import jit

X = np.array([0.7, 1.3, 0.4, 1.1])


def number_written_to_a_constant(x):
    a = np.zeros(4)
    shown = as_strided(a, (2, 2), (8, 8))
    a[1] = 3.0
    return (shown * math.sin(x[0])).sum()


def number_written_to_complex_constants(x):
    z = np.zeros(2, complex)
    pairs = z.view(float)
    z[0] = 1.0 + 2.0j
    return (pairs * x).sum() * math.sin(x[0])


def constant_written_to_later(x):
    a = np.zeros(6)
    shown = as_strided(a, (2, 3), (24, 8))
    shown[1] = x[:3]
    a[0] = 2.0
    shown[0, 1:] = math.sin(x[0])
    return (a * np.arange(6)).sum() + shown[0, 0] * x[0]


def diagonal(x):
    m = np.outer(x, x) * math.sin(x[0])
    d = as_strided(m, (4,), (m.strides[0] + m.strides[1],))
    d += x[0]
    d[1] = 5 * x[2]
    return m.sum()


def diagonal_of_a_transposed_part(x):
    m = (np.outer(x, x) * math.sin(x[0])).T[1:, ::-1]
    d = as_strided(m, (3,), (m.strides[0] + m.strides[1],))
    d *= x[:3]
    return (m * np.arange(12.0).reshape(3, 4)).sum()


def window(x):
    out = np.zeros(6)
    windows = sliding_window_view(out, 4, writeable=True)
    windows[1] = x
    windows[2, ::2] += math.sin(x[0])
    return out.sum() + (out**2).sum()


def windows_of_rows(x):
    y = np.outer(x, x) * math.sin(x[0])
    sliding_window_view(y, (2, 2), writeable=True)[1, 2] *= 3.0
    sliding_window_view(y, 2, axis=1, writeable=True)[:, 0] = x[:2]
    return (y**2).sum()


def real_view_of_complex_constants(x):
    z = np.zeros(2, complex)
    z.view(float)[:] = x
    z *= 1 + 0.5j
    pairs = z.view(float)
    pairs[1:3] *= math.sin(x[0])
    return (abs(z) ** 2).sum() + pairs.sum()


def parts_of_a_real_view(x):
    z = (x[:2] + 1j * x[2:]) * math.sin(x[0])
    pairs = z.view(float).reshape(2, 2)
    pairs[:, 1] = x[0]
    pairs[0] += x[1]
    z.view(float).view(complex)[1] *= 1j
    return (z**2).real.sum() + pairs.prod()


def parts_of_columns(x):
    z = np.zeros((2, 2), complex)
    z.T.real[:, 0] = x[:2]
    z.view(float)[:, 1::2] += np.outer(x[2:], x[:2])
    z[::-1].imag[0] *= math.sin(x[0])
    return (abs(z + 1) ** 3).sum()


def complex_view(x):
    y = x * math.sin(x[0])
    z = y.view(complex)
    z[0] = x[1] + 1j * x[2]
    z[1] *= 1j
    z.imag[0] += x[3]
    return y.prod() + abs(z).sum()


def complex_view_of_constants(x):
    y = np.zeros(4)
    z = y.view(complex)
    z[0] = x[1] + 1j * x[2]
    z *= 1j
    y[3] = x[3]
    return (y**2).sum() + abs(z).sum()


PROGRAMS = [
    number_written_to_a_constant,
    number_written_to_complex_constants,
    constant_written_to_later,
    diagonal,
    diagonal_of_a_transposed_part,
    window,
    windows_of_rows,
    real_view_of_complex_constants,
    parts_of_a_real_view,
    parts_of_columns,
    complex_view,
    complex_view_of_constants,
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_writes(f):
    found, slope = value_and_grad(f)(X)
    assert found == pytest.approx(f(X), rel=1e-14)
    np.testing.assert_allclose(slope, differences(f, X, 5e-4), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(jacfwd(f)(X), slope, rtol=1e-11, atol=1e-13)
    xs = np.stack([X, X * 1.1])
    np.testing.assert_allclose(vmap(grad(f))(xs), [slope, grad(f)(xs[1])], rtol=1e-11, atol=1e-13)
    recorded = jit(grad(f), backend="numpy")
    recorded(xs[1])
    np.testing.assert_allclose(recorded(X), slope, rtol=1e-12, atol=1e-13)


def added_to_windows(x):
    y = x * math.sin(x[0])
    windows = sliding_window_view(y, 2, writeable=True)
    windows += x[0]
    return y.sum()


def number_added_to_windows_of_a_constant(x):
    y = np.ones(4)
    windows = sliding_window_view(y, 2, writeable=True)
    windows += 1.0
    y[0] = math.sin(x[0])
    return y.sum()


@pytest.mark.parametrize("f", [added_to_windows, number_added_to_windows_of_a_constant])
def test_a_write_that_names_an_element_several_times_raises(f):
    with pytest.raises(InputError, match=r"several times, so what NumPy writes depends on its order.*the array itself"):
        grad(f)(X)


def test_integers_viewed_as_times():
    def f(x):
        days = np.array([1, 2, 4]) * 2
        spans = days.view("timedelta64[D]")
        dates = np.array([0, 31, 60]).view("datetime64[D]") + spans
        month = (dates.astype("datetime64[M]") - np.datetime64("1970-01")).astype(int)
        return math.sin(x) * (spans / np.timedelta64(1, "D")).sum() + x * month.sum()

    assert grad(f)(0.5) == pytest.approx(14.0 * math.cos(0.5) + 3.0, rel=1e-14)
