"""Elliptic integrals and functions: against mpmath, at the ends of their domains, over many turns."""

import mpmath as mp
import numpy as np
import pytest

import funcgrad.scipy.special as fsp
from funcgrad import grad, jacfwd, jvp, vmap
from funcgrad.errors import NotDifferentiableError


def elliprj(x, y, z, p):
    """Return Carlson's integral, for negative p its principal value (DLMF 19.20.14), which mpmath integrates slowly."""
    if p > 0:
        return mp.elliprj(x, y, z, p)
    x, y, z = sorted((x, y, z))
    q = -p
    p = (z * (x + y + q) - x * y) / (z + q)
    root = mp.sqrt(x * y * z / (x * y + p * q))
    rest = 3 * root * mp.elliprc(x * y + p * q, p * q) - 3 * mp.elliprf(x, y, z)
    return ((p - z) * mp.elliprj(x, y, z, p) + rest) / (z + q)


CASES = {
    "elliprf": (mp.elliprf, [(0.5, 1.3, 2.0), (1e-6, 1.0, 3.0), (2.0, 1e5, 0.3)]),
    "elliprd": (mp.elliprd, [(0.5, 1.3, 2.0), (1.0, 1.0, 1.0)]),
    "elliprg": (mp.elliprg, [(0.5, 1.3, 2.0), (1.0, 1.0, 1.0)]),
    "elliprj": (elliprj, [(0.5, 1.3, 2.0, 0.7), (1.0, 2.0, 3.0, -1.5), (0.4, 0.4, 3.0, -20.0)]),
    "elliprc": (mp.elliprc, [(0.5, 1.3), (1e-5, 2.0)]),
    "ellipk": (mp.ellipk, [(0.0,), (0.5,), (-3.0,), (0.999,)]),
    "ellipe": (mp.ellipe, [(0.0,), (0.5,), (-3.0,), (0.999,)]),
    "ellipkinc": (mp.ellipf, [(0.3, 0.5), (1.5, 0.9), (4.0, 0.3), (-2.0, -0.7), (1.0, 0.0)]),
    "ellipeinc": (lambda phi, m: mp.ellipe(phi, m), [(0.3, 0.5), (4.0, 0.3), (-2.0, -0.7), (1.0, 0.0)]),
    "agm": (mp.agm, [(1.0, 2.0), (3.0, 1e-3), (1.0, 1.0)]),
}


@pytest.mark.parametrize("name", CASES)
def test_first_and_second_derivatives(name):
    fun, (reference, points) = getattr(fsp, name), CASES[name]
    for point in points:
        for i in range(len(point)):
            order = [int(j == i) for j in range(len(point))]
            with mp.workdps(30):
                first = mp.diff(reference, point, tuple(order))
                second = mp.diff(reference, point, tuple(2 * n for n in order))
            for mode in (grad, jacfwd):
                assert abs(mode(fun, i)(*point) - first) <= 1e-13 * abs(first)
                got = grad(lambda *a, i=i, mode=mode: mode(fun, i)(*a), i)(*point)
                assert abs(got - second) <= 1e-12 * abs(second)


def test_principal_values_of_reference():
    for point in [(1.0, 2.0, 3.0, -1.5), (0.4, 0.4, 3.0, -20.0), (0.0, 2.0, 3.0, -1.5)]:
        with mp.workdps(30):
            assert mp.almosteq(elliprj(*map(mp.mpf, point)), mp.re(mp.elliprj(*point)), 1e-19)


def test_mixed_derivatives_of_incomplete_integrals():
    for name in ("ellipkinc", "ellipeinc"):
        fun, reference = getattr(fsp, name), CASES[name][0]
        want = mp.diff(reference, (1.2, 0.4), (1, 1))
        for i in (0, 1):
            assert grad(grad(fun, i), 1 - i)(1.2, 0.4) == pytest.approx(float(want), rel=1e-13)


def test_incomplete_integral_at_right_angle_is_complete():
    half = np.pi / 2
    for n in (1, 3, -1):
        got = grad(fsp.ellipkinc, 1)(n * half, 0.4)
        assert got == pytest.approx(n * grad(fsp.ellipk)(0.4), rel=1e-13)
        assert grad(fsp.ellipeinc, 1)(n * half, 0.4) == pytest.approx(n * grad(fsp.ellipe)(0.4), rel=1e-13)


@pytest.mark.parametrize(("name", "slope"), [("ellipk", np.inf), ("ellipe", -np.inf)])
def test_at_the_end_of_the_domain(name, slope):
    assert grad(getattr(fsp, name))(1.0) == jacfwd(getattr(fsp, name))(1.0) == slope


def test_carlson_integrals_at_zero_and_outside():
    assert grad(fsp.elliprf)(0.0, 1.0, 2.0) == -np.inf
    assert np.isfinite(grad(fsp.elliprf, 1)(0.0, 1.0, 2.0))
    assert np.isnan(grad(fsp.elliprf, 1)(1.0, -2.0, 1.0))
    with pytest.raises(NotDifferentiableError, match="complex"):
        jvp(lambda x: fsp.elliprf(x, 1.0, 2.0), (1.0 + 1j,), (1.0 + 0j,))


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("mode", [grad, jacfwd])
def test_jacobi_functions(k, mode):
    for u, m in [(0.3, 0.5), (2.5, 0.8), (5.0, 0.3), (-1.2, 0.1)]:
        for i in (0, 1):
            order = (1 - i, i)
            want = mp.diff(lambda u, m: mp.ellipfun(("sn", "cn", "dn")[k], u, m=m), (u, m), order)
            assert mode(lambda u, m: fsp.ellipj(u, m)[k], i)(u, m) == pytest.approx(float(want), rel=1e-13)


def test_amplitude_inverts_integral():
    u, m = 2.5, 0.6
    inverse = grad(lambda u: fsp.ellipkinc(fsp.ellipj(u, m)[3], m))(u)
    assert inverse == pytest.approx(1.0, rel=1e-14)
    assert abs(grad(lambda m: fsp.ellipkinc(fsp.ellipj(u, m)[3], m))(m)) < 1e-14


def test_agm_of_negative_and_large_numbers():
    assert grad(fsp.agm)(-1.0, -2.0) == pytest.approx(grad(fsp.agm)(1.0, 2.0), rel=1e-15)
    assert grad(fsp.agm)(1e200, 2e200) == pytest.approx(grad(fsp.agm)(1.0, 2.0), rel=1e-14)


def test_principal_value_of_elliprj_at_zero():
    point = (0.0, 2.0, 3.0, -1.5)
    for i in (1, 2, 3):
        with mp.workdps(30):
            want = mp.diff(CASES["elliprj"][0], point, tuple(int(j == i) for j in range(4)))
        assert grad(fsp.elliprj, i)(*point) == pytest.approx(float(want), rel=1e-13)
    both = np.array([-1.5, 0.7])
    slopes = vmap(grad(fsp.elliprj, 3), (None, None, None, 0))(1.0, 2.0, 3.0, both)
    np.testing.assert_allclose(slopes, [grad(fsp.elliprj, 3)(1.0, 2.0, 3.0, p) for p in both], rtol=1e-13)
