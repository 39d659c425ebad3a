"""Quadrature: SciPy's values for plain numbers, derivatives in limits, arguments and closures, errors."""

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.integrate
from helpers import at_least, differences

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, hessian, jacfwd, jacrev, jit, jvp, vjp, vmap
from funcgrad.errors import BranchError, ConversionError, InputError, NotDifferentiableError
from funcgrad.scipy import integrate
from funcgrad.scipy.integrate import nodes


def test_plain_values_match_scipy():
    f = lambda x, k: np.exp(-k * x)
    two = lambda y, x: x * y * y
    assert integrate.dblquad(two, 0, 2, 0, lambda x: x) == scipy.integrate.dblquad(two, 0, 2, 0, lambda x: x)
    three = lambda z, y, x: x * y * z
    ends = (0, 1, 0, lambda x: x, lambda x, y: y, 2.0)
    assert integrate.tplquad(three, *ends) == scipy.integrate.tplquad(three, *ends)
    assert integrate.nquad(two, [(0, 1), (0, 2)], full_output=True) == scipy.integrate.nquad(
        two, [(0, 1), (0, 2)], full_output=True
    )
    assert integrate.quad_vec(f, 0, 1, args=(2.0,)) == scipy.integrate.quad_vec(f, 0, 1, args=(2.0,))
    rates = np.array([1.0, 2.0])
    got, want = (m.tanhsinh(f, 0, np.inf, args=(rates,)) for m in (integrate, scipy.integrate))
    assert (got.integral == want.integral).all()
    assert integrate.nsum(lambda k: 1 / k**2, 1, np.inf).sum == scipy.integrate.nsum(lambda k: 1 / k**2, 1, np.inf).sum
    box = lambda x: x[:, 0] * x[:, 1]
    assert (
        integrate.cubature(box, [0, 0], [1, 2]).estimate
        == scipy.integrate.cubature(box, [0, 0], [1, 2]).estimate
        == 1.0
    )


def test_integrals_over_several_variables():
    def area(a, b, c, k):
        return integrate.dblquad(lambda y, x, k: k * fnp.sin(x * y), a, b, lambda x: c * x, 2.0, (k,))[0]

    args = (0.1, 1.2, 0.3, 1.7)
    np.testing.assert_allclose(
        area(*args), scipy.integrate.dblquad(lambda y, x: 1.7 * np.sin(x * y), 0.1, 1.2, lambda x: 0.3 * x, 2.0)[0]
    )
    check_grads(area, args, order=1)
    bend = grad(grad(area, 1), 1)(*args)
    step = 1e-4
    slopes = [grad(area, 1)(0.1, 1.2 + s * step, 0.3, 1.7) for s in (1, -1)]
    np.testing.assert_allclose(bend, (slopes[0] - slopes[1]) / (2 * step), rtol=1e-6)

    whole = lambda k: integrate.nquad(
        lambda x, y, k: fnp.exp(-k * x - y), [(0.0, np.inf), (0.0, np.inf)], (k,), opts=[{"epsabs": 1e-5}, LOOSE]
    )[0]
    np.testing.assert_allclose([whole(2.0), grad(whole)(2.0)], [0.5, -0.25], rtol=1e-7)
    with pytest.raises(InputError, match="full_output"):
        grad(lambda k: integrate.nquad(lambda x: k * x, [(0.0, 1.0)], full_output=True)[0])(1.0)


def test_arrays_as_integrands():
    k = np.array([0.5, 1.5])

    def arrays(a, b, k):
        return integrate.quad_vec(lambda x, k: fnp.exp(-k * x) * fnp.sin(x), a, b, args=(k,))[0]

    np.testing.assert_allclose(
        arrays(0.2, 2.0, k), scipy.integrate.quad_vec(lambda x: np.exp(-k * x) * np.sin(x), 0.2, 2.0)[0]
    )
    check_grads(arrays, (0.2, 2.0, k), order=2)
    closed = lambda k: integrate.quad_vec(lambda x: fnp.stack([fnp.exp(-k * x), x * k]), 0.0, 1.0, norm="max")[0]
    np.testing.assert_allclose(jacrev(closed)(2.0), [(3 * np.exp(-2) - 1) / 4, 0.5], rtol=1e-9)
    np.testing.assert_allclose(vmap(closed)(np.array([1.0, 2.0]))[1], closed(2.0))
    with pytest.raises(InputError, match="full_output and workers"):
        grad(lambda k: integrate.quad_vec(lambda x: k * x, 0.0, 1.0, full_output=True)[0])(1.0)


def test_tanhsinh_elementwise():
    rates, ends = np.array([[1.0], [2.5]]), np.array([0.5, 2.0, 3.0])

    def singular(a, b, k):
        return integrate.tanhsinh(lambda x, k: fnp.exp(-k * x) / fnp.sqrt(x), a, b, args=(k,)).integral

    want = scipy.integrate.tanhsinh(lambda x, k: np.exp(-k * x) / np.sqrt(x), 0.0, ends, args=(rates,)).integral
    np.testing.assert_allclose(singular(0.0, ends, rates), want, rtol=1e-12)
    check_grads(lambda b, k: singular(0.0, b, k), (ends, rates), order=2)
    check_grads(lambda a: singular(a, np.inf, rates), (np.array(0.3),), order=2)
    gamma = lambda k: integrate.tanhsinh(lambda x: x ** (k - 1.0) * np.exp(-x), 0.0, np.inf)
    np.testing.assert_allclose(
        grad(lambda k: gamma(k).integral)(2.5), 1.3293403881791372 * 0.7031566406452432, rtol=1e-9
    )
    assert jvp(lambda k: gamma(k).success, (2.5,), (1.0,))[0]
    np.testing.assert_allclose(vmap(lambda k: gamma(k).integral)(np.array([2.0, 3.0])), [1.0, 2.0], rtol=1e-9)
    with pytest.raises(InputError, match="traced numbers only"):
        jacfwd(lambda k: integrate.tanhsinh(lambda x: k * x, 0.0, np.ones(2)).integral)(np.ones(2))
    with pytest.raises(InputError, match="for plain values"):
        grad(lambda k: integrate.tanhsinh(lambda x: k * x, 0.0, 1.0, log=True).integral)(1.0)


def test_nsum():
    zeta = lambda s: integrate.nsum(lambda k, s: k**-s, 1.0, np.inf, args=(s,)).sum
    np.testing.assert_allclose(zeta(np.array([2.0, 4.0])), [np.pi**2 / 6, np.pi**4 / 90], rtol=1e-8)
    np.testing.assert_allclose(grad(zeta)(2.0), -0.9375482543158437, rtol=1e-7)
    np.testing.assert_allclose(hessian(zeta)(2.0), 1.9892802342989010, rtol=1e-6)
    few = lambda c: integrate.nsum(lambda k: fnp.exp(-c * k), 0.0, 10.0, step=2.0).sum
    np.testing.assert_allclose(grad(few)(0.3), -np.sum(np.arange(0, 11, 2) * np.exp(-0.3 * np.arange(0, 11, 2))))
    with pytest.raises(InputError, match="constants"):
        grad(lambda b: integrate.nsum(lambda k: 1.0 / k**2, 1.0, b).sum)(5.0)


def test_arguments_by_name():
    shape = lambda x, a, *, k: x * fnp.exp(-a * k * x)
    named = lambda x, *, k, a: shape(x, a, k=k)
    area = lambda a, k: integrate.tanhsinh(named, 0.0, np.inf, kwargs={"k": k, "a": a}).integral
    np.testing.assert_allclose(area(2.0, [1.0, 3.0]), [2.0**-2, 6.0**-2], rtol=1e-9)
    check_grads(area, (2.0, np.array([1.0, 3.0])), order=2)
    total = lambda a, k: integrate.nsum(shape, 1.0, 20.0, args=(a,), kwargs={"k": k}).sum
    np.testing.assert_allclose(total(1.0, 0.5), np.sum(shape(np.arange(1.0, 21.0), 1.0, k=0.5)))
    check_grads(total, (1.0, 0.5), order=2)


def test_cubature_over_boxes():
    k = np.array([0.7, 1.3])

    def inside(a, b, k):
        f = lambda x, k: fnp.exp(-x[:, 0] * k[0]) * fnp.cos(x[:, 1] * k[1])
        return integrate.cubature(f, a, b, args=(k,)).estimate

    a, b = np.array([0.1, 0.2]), np.array([1.0, 1.5])
    exact = lambda a, b, k: (
        (fnp.exp(-a[0] * k[0]) - fnp.exp(-b[0] * k[0])) / k[0] * (fnp.sin(b[1] * k[1]) - fnp.sin(a[1] * k[1])) / k[1]
    )
    np.testing.assert_allclose(inside(a, b, k), exact(a, b, k), rtol=1e-9)
    for got, want in zip(grad(inside, (0, 1, 2))(a, b, k), grad(exact, (0, 1, 2))(a, b, k), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-7)
    np.testing.assert_allclose(hessian(inside, 2)(a, b, k), hessian(exact, 2)(a, b, k), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(hessian(inside, 1)(a, b, k), hessian(exact, 1)(a, b, k), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(jvp(inside, (a, b, k), (a, b, k))[1], jvp(exact, (a, b, k), (a, b, k))[1], rtol=1e-7)
    bell = lambda c: integrate.cubature(
        lambda x: fnp.exp(-c * (x[:, 0] ** 2 + x[:, 1] ** 2)), [-np.inf] * 2, [np.inf] * 2
    )
    np.testing.assert_allclose(grad(lambda c: bell(c).estimate)(2.0), -np.pi / 4, rtol=1e-7)
    odd = lambda c: integrate.cubature(lambda x: fnp.sin(c * x[:, 0]), [-1.0], [1.0], atol=1e-12).estimate
    np.testing.assert_allclose(grad(odd)(2.0), 0.0, atol=1e-9)
    several = vmap(lambda k: inside(a, b, k))(np.stack([k, 2 * k]))
    np.testing.assert_allclose(several[1], exact(a, b, 2 * k), rtol=1e-9)
    with pytest.raises(InputError, match="must be finite"):
        grad(lambda a: integrate.cubature(lambda x: x[:, 0], fnp.stack([a]), [np.inf]).estimate)(1.0)
    with pytest.raises(InputError, match="workers"):
        grad(lambda c: integrate.cubature(lambda x: c * x[:, 0], [0.0], [1.0], workers=2).estimate)(1.0)


@pytest.mark.parametrize("integral", ["quad", "cubature"])
def test_constants_cost_no_extra_integral(integral):
    """Check that a gradient takes one more integral for traced arguments only, whatever constants are passed."""
    calls = []

    def bell(x, k, *_):
        calls.append(1)
        return fnp.exp(-k * x * x) if integral == "quad" else fnp.exp(-k * x[:, 0] ** 2)

    def value(k, constants):
        if integral == "quad":
            return integrate.quad(bell, 0.0, 1.0, (k, *constants))[0]
        return integrate.cubature(bell, [0.0], [1.0], args=(k, *constants)).estimate

    for slope, k in ((grad(value), 0.7), (vmap(grad(value), (0, None)), np.array([0.7]))):
        found = []
        for constants in ((), (1.0, np.ones(2), 3.0)):
            calls.clear()
            found.append((slope(k, constants), len(calls)))
        assert found[0] == found[1]


class Case(NamedTuple):
    """Integral as a function of ``args``: ``value(module, *args)`` by SciPy or funcgrad, and its closed form."""

    name: str
    value: Any
    exact: Any
    args: tuple[Any, ...]
    rtol: float = 1e-7


def decay(x, k):
    return fnp.exp(-k * x)


def between(a, b, k):
    return (fnp.exp(-k * a) - fnp.exp(-k * b)) / k


def beyond(a, k):
    return fnp.exp(-k * a) / k


def pole(x, k):
    """Return a function with a singularity at 1; ``across`` is its integral from 0 to ``b``."""
    return fnp.abs(x - 1.0) ** -k


def across(b, k):
    return (1.0 + (b - 1.0) ** (1.0 - k)) / (1.0 - k)


TWO = np.array([0.7, 1.3])
#: Tolerances of nested integrals, which are far more accurate, and take a third of the time.
LOOSE = {"epsabs": 1e-5, "epsrel": 1e-5}
INFINITE = np.inf
CASES = [
    Case("quad", lambda m, a, b, k: m.quad(decay, a, b, (k,))[0], between, (0.2, 1.4, 1.3)),
    Case("quad of a closure", lambda m, a, b, k: m.quad(lambda x: decay(x, k), a, b)[0], between, (0.2, 1.4, 1.3)),
    Case("quad to infinity", lambda m, a, k: m.quad(decay, a, INFINITE, (k,))[0], beyond, (0.2, 1.3)),
    Case(
        "quad from infinity",
        lambda m, b, k: m.quad(lambda x, k: decay(-x, k), -INFINITE, -b, (k,))[0],
        beyond,
        (0.2, 1.3),
    ),
    Case(
        "quad over the line",
        lambda m, k: m.quad(lambda x, k: decay(x * x, k), -INFINITE, INFINITE, (k,))[0],
        lambda k: fnp.sqrt(np.pi / k),
        (1.3,),
    ),
    Case(
        "quad with a singular point",
        lambda m, k: m.quad(pole, 0.0, 3.0, (k,), points=[1.0], limit=200)[0],
        lambda k: across(3.0, k),
        (0.4,),
        1e-6,
    ),
    Case(
        "quad with a singular point and a limit",
        lambda m, b, k: m.quad(pole, 0.0, b, (k,), points=[1.0], limit=200)[0],
        across,
        (3.0, 0.4),
        1e-6,
    ),
    Case("quad_vec", lambda m, a, b, k: m.quad_vec(decay, a, b, args=(k,))[0], between, (0.2, 1.4, TWO)),
    Case("quad_vec to infinity", lambda m, a, k: m.quad_vec(decay, a, INFINITE, args=(k,))[0], beyond, (0.2, TWO)),
    Case(
        "quad_vec over the line",
        lambda m, k: m.quad_vec(lambda x, k: decay(x * x, k), -INFINITE, INFINITE, args=(k,))[0],
        lambda k: fnp.sqrt(np.pi / k),
        (TWO,),
    ),
    Case(
        "quad_vec with a kink",
        lambda m, k: m.quad_vec(lambda x, k: decay(fnp.abs(x - 1.0), k), 0.0, 3.0, args=(k,), points=[1.0])[0],
        lambda k: between(0.0, 1.0, k) + between(0.0, 2.0, k),
        (TWO,),
    ),
    Case(
        "dblquad",
        lambda m, b, c, k: m.dblquad(lambda y, x, k: k * x * y, 0.0, b, 0.0, lambda x: c * x, (k,))[0],
        lambda b, c, k: k * c * c * b**4 / 8.0,
        (1.4, 0.6, 1.3),
    ),
    Case(
        "dblquad to infinity",
        lambda m, k: m.dblquad(lambda y, x, k: decay(x + 2.0 * y, k), 0.0, 1.0, lambda x: x, INFINITE, (k,), **LOOSE)[
            0
        ],
        lambda k: between(0.0, 1.0, 3.0 * k) / (2.0 * k),
        (1.3,),
    ),
    Case(
        "tplquad",
        lambda m, b, k: m.tplquad(lambda z, y, x: k * z, 0.0, b, 0.0, lambda x: x, 0.0, 1.0)[0],
        lambda b, k: k * b * b / 4.0,
        (1.4, 1.3),
    ),
    Case(
        "tplquad below a plane",
        lambda m, b, k: m.tplquad(lambda z, y, x: k * z, 0.0, b, 0.0, 1.0, 0.0, lambda x, y: y)[0],
        lambda b, k: k * b / 6.0,
        (1.4, 1.3),
    ),
    Case(
        "tplquad in a corner",
        lambda m, b, k: m.tplquad(
            lambda z, y, x: k * z, 0.0, b, 0.0, lambda x: x, lambda x, y: 0.0, lambda x, y: k * y
        )[0],
        lambda b, k: k**3 * b**4 / 24.0,
        (1.4, 1.3),
        1e-9,
    ),
    Case(
        "tplquad to infinity",
        lambda m, k: m.tplquad(lambda z, y, x: decay(z, k), 0.0, 1.0, 0.0, lambda x: x, 0.0, INFINITE, **LOOSE)[0],
        lambda k: 0.5 / k,
        (1.3,),
    ),
    Case(
        "nquad",
        lambda m, b, c, k: m.nquad(lambda x, y, k: k * x * y, [lambda y, k: (0.0, c * y), (0.0, b)], (k,))[0],
        lambda b, c, k: k * c * c * b**4 / 8.0,
        (1.4, 0.6, 1.3),
    ),
    Case(
        "nquad with a singular point",
        lambda m, k: m.nquad(
            lambda x, y, k: y * fnp.abs(x - 1.0) * decay(fnp.abs(x - 1.0), k),
            [(0.0, 3.0), (0.0, 2.0)],
            (k,),
            opts=[{"points": [1.0], **LOOSE}, LOOSE],
        )[0],
        lambda k: 2.0 * sum((1.0 - (1.0 + k * b) * fnp.exp(-k * b)) / k**2 for b in (1.0, 2.0)),
        (1.3,),
    ),
    Case("fixed_quad", lambda m, a, b, k: m.fixed_quad(decay, a, b, (k,), n=12)[0], between, (0.2, 1.4, 1.3)),
    Case(
        "romb",
        lambda m, b, k: m.romb(fnp.exp(-k * np.linspace(0.0, 1.0, 65)) * 1.0, dx=b / 64.0),
        lambda b, k: b * between(0.0, 1.0, k),
        (1.4, 1.3),
    ),
    Case("tanhsinh", lambda m, a, b, k: m.tanhsinh(decay, a, b, args=(k,)).integral, between, (0.2, 1.4, TWO)),
    Case(
        "tanhsinh to infinity", lambda m, a, k: m.tanhsinh(decay, a, INFINITE, args=(k,)).integral, beyond, (0.2, TWO)
    ),
    Case(
        "tanhsinh over the line",
        lambda m, k: m.tanhsinh(lambda x, k: decay(x * x, k), -INFINITE, INFINITE, args=(k,)).integral,
        lambda k: fnp.sqrt(np.pi / k),
        (TWO,),
    ),
    Case(
        "tanhsinh with a singular end",
        lambda m, b, k: m.tanhsinh(lambda x, k: x**-k, 0.0, b, args=(k,)).integral,
        lambda b, k: b ** (1.0 - k) / (1.0 - k),
        (1.4, np.array([0.2, 0.4])),
    ),
    Case(
        "nsum",
        lambda m, k: m.nsum(decay, 1.0, 20.0, args=(k,)).sum,
        lambda k: sum(decay(n, k) for n in range(1, 21)),
        (TWO,),
    ),
    Case(
        "nsum to infinity",
        lambda m, k: m.nsum(decay, 1.0, INFINITE, args=(k,)).sum,
        lambda k: 1.0 / (fnp.exp(k) - 1.0),
        (TWO,),
        1e-6,
    ),
    Case(
        "cubature",
        lambda m, a, b, k: (
            m.cubature(
                lambda x, k: decay(x[:, 0], k) * x[:, 1], fnp.stack([a, 0.0]), fnp.stack([b, 1.0]), args=(k,)
            ).estimate
        ),
        lambda a, b, k: between(a, b, k) / 2.0,
        (0.2, 1.4, 1.3),
    ),
    Case(
        "cubature to infinity",
        lambda m, k: (
            m.cubature(
                lambda x, k: decay(x[:, 0] + x[:, 1] ** 2, k), [0.0, -INFINITE], [INFINITE, INFINITE], args=(k,)
            ).estimate
        ),
        lambda k: fnp.sqrt(np.pi / k) / k,
        (1.3,),
    ),
    Case(
        "cubature with a singular point",
        lambda m, k: (
            m.cubature(
                lambda x, k: pole(x[:, 0], k), [0.0], [3.0], args=(k,), points=[[1.0]], rtol=1e-6, max_subdivisions=None
            ).estimate
        ),
        lambda k: across(3.0, k),
        (0.2,),
        1e-5,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_derivatives_in_limits_and_integrands(case):
    """Check SciPy's values, derivatives of both orders and modes against the closed form, and batches."""
    value, (_, _, exact, args, rtol) = lambda *args: case.value(integrate, *args), case
    places, close = (
        tuple(range(len(args))),
        lambda got, want, more=1.0: np.testing.assert_allclose(got, want, rtol=more * rtol, atol=more * rtol),
    )
    got = value(*args)
    assert np.all(got == case.value(scipy.integrate, *args))
    close(got, exact(*args))
    seed = np.cos(np.arange(1.0, 1.0 + np.size(got))).reshape(np.shape(got))
    loss, wanted = (lambda *args, f=f: fnp.sum(seed * f(*args)) for f in (value, exact))
    slopes, right = grad(loss, places)(*args), grad(wanted, places)(*args)
    for slope, want in zip(slopes, right, strict=True):
        close(slope, want)
    tangents = tuple(np.full(np.shape(arg), 0.3 + i) for i, arg in enumerate(args))
    pushed, want = (jvp(f, args, tangents) for f in (loss, wanted))
    close(pushed, want)
    close(pushed[1], sum(np.sum(t * slope) for t, slope in zip(tangents, slopes, strict=True)), 0.1)
    if case.name == "tplquad in a corner":
        return  # a second order takes seconds where each limit depends on the outer variables
    bends, right = (jvp(grad(f, places), args, tangents)[1] for f in (loss, wanted))
    close(bends[-1], right[-1], 10.0)
    batch = tuple(np.stack([arg, 1.1 * arg]) for arg in map(np.asarray, args))
    together = vmap(grad(loss, places))(*batch)
    for i, alone in enumerate((slopes, grad(wanted, places)(*[arg[1] for arg in batch]))):
        for slope, whole in zip(alone, together, strict=True):
            close(whole[i], slope)


def test_float32_is_kept_where_scipy_keeps_it():
    y, h = np.array([0.2, 0.3, 0.5, 0.1, 0.7], np.float32), np.float32(0.5)
    places = np.arange(5, dtype=np.float32)
    sums = [
        (lambda y: scipy.integrate.cumulative_simpson(y, x=places, initial=h), y),
        (lambda y: scipy.integrate.cumulative_simpson(y, x=places, initial=0), y),
        (lambda y: scipy.integrate.cumulative_simpson(y, dx=h, initial=h), y),
        (lambda y: scipy.integrate.cumulative_simpson(y, initial=h), y),
        (lambda b: scipy.integrate.tanhsinh(np.exp, 0, b).integral, h),
        (lambda a: scipy.integrate.tanhsinh(np.exp, a, 1.0).integral, h),
    ]
    for fun, x in sums * at_least(scipy, "1.17.0"):  # older versions returned doubles
        found = vjp(fun, x)[0]
        assert found.dtype == fun(x).dtype
        np.testing.assert_allclose(found, fun(x), rtol=1e-6)


def test_branching_integrands_close_over_traced_values():
    bent = lambda k: lambda x: k * x if x < 0.35 else k**2 * x**2
    slope = 0.35**2 / 2 + 2 * 0.7 * (1 - 0.35**3) / 3
    for area in (
        lambda k: integrate.quad(bent(k), 0.0, 1.0, points=[0.35])[0],
        lambda k: integrate.quad_vec(bent(k), 0.0, 1.0, points=[0.35])[0],
    ):
        np.testing.assert_allclose(area(0.7), 0.7 * 0.35**2 / 2 + 0.49 * (1 - 0.35**3) / 3)
        np.testing.assert_allclose([grad(area)(0.7), jvp(area, (0.7,), (1.0,))[1]], slope)
        np.testing.assert_allclose(vmap(grad(area))(np.array([0.7, 0.7])), slope)
        np.testing.assert_allclose(grad(grad(area))(0.7), 2 * (1 - 0.35**3) / 3)
    triangles = lambda k: integrate.dblquad(
        lambda y, x: k * (y - x) if x < y else 0.0, 0.0, 1.0, 0.0, 1.0, epsabs=1e-3
    )[0]
    np.testing.assert_allclose(grad(triangles)(2.0), 1 / 6, rtol=1e-3)
    steps = lambda k: integrate.quad(lambda x: k * round(1e9 * x), 0.0, 1.0)[0]
    np.testing.assert_allclose(grad(steps)(2.0), 5e8)


def test_closure_over_traced_values_on_one_branch():
    above = lambda k: scipy.integrate.quad(lambda x: k * k * x if x > 0.9 else 0.0, 0.0, 1.0, points=[0.9])[0]
    several = lambda x, k: np.array([k * k * x, 1.0]) if x > 0.9 else np.zeros(2)
    of_arrays = lambda k: scipy.integrate.quad_vec(lambda x: several(x, k), 0.0, 1.0, points=[0.9])[0][0]
    for f, power in ((above, 2), (lambda k: above(np.sqrt(k)), 1), (of_arrays, 2)):
        assert f(2.0) == pytest.approx(0.095 * 2.0**power)
        assert grad(f)(2.0) == pytest.approx(power * 0.095 * 2.0 ** (power - 1))
        assert jvp(f, (2.0,), (1.0,))[1] == pytest.approx(power * 0.095 * 2.0 ** (power - 1))
        np.testing.assert_allclose(vmap(grad(f))(np.array([2.0, 3.0])), [grad(f)(2.0), grad(f)(3.0)])
    assert grad(grad(above))(2.0) == pytest.approx(0.19)


def test_integrands_reading_more_elements_in_derivative():
    heights = np.ones(16)  # a constant integrand, so that the value needs few points
    with pytest.raises(BranchError, match=r"reads an element that it did not need for the value. Pass .* in args\."):
        grad(lambda c: scipy.integrate.quad(lambda x: c[int(8 * x)], 0, 2)[0])(heights)
    found = grad(lambda c: scipy.integrate.quad(lambda x, c: c[int(8 * x)], 0, 2, args=(c,))[0])(heights)
    np.testing.assert_allclose(found, 1 / 8)


def test_integrands_that_convert_to_int():
    closed = lambda k: integrate.quad(lambda x: k * k * (1 + int(np.minimum(x, 1.99))), 0.0, 2.0)[0]
    np.testing.assert_allclose([grad(closed)(0.9), grad(grad(closed))(0.9)], [5.4, 6.0])
    each = lambda k: integrate.quad(lambda x, k: k * k * float(x), 0.0, 2.0, (k,))[0]  # a path for each point
    np.testing.assert_allclose([grad(each)(0.9), grad(grad(each))(0.9)], [3.6, 4.0])
    large = lambda k: integrate.quad(lambda x, k: k * int(1e300 * x), 0.0, 2.0, (k,))[0]
    np.testing.assert_allclose(grad(large)(0.9), 2e300)


def test_integrands_with_boolean_masks():
    closed = lambda k: integrate.quad(
        lambda x: np.sum((k * k * np.array([x, 1.0]))[np.array([x > 0.5, True])]), 0.0, 1.0, points=[0.5]
    )[0]
    np.testing.assert_allclose([grad(closed)(0.9), grad(grad(closed))(0.9)], [1.375 * 1.8, 1.375 * 2])


STEPS = np.array([0.0, 0.62, 0.66, 1.3, 2.0])
PIECES = list(pairwise(STEPS))
HEIGHTS = np.array([0.7, 1.2, 0.9, 1.6])
TAILS = -np.exp(-3.0 * np.append(STEPS[:-1], np.inf)) / 3.0


def times(f, weight):
    return lambda x, *args: f(x, *args) * weight(x)


#: Options of integrals of functions that jump.
FINE = {"epsabs": 1e-5, "epsrel": 1e-5, "limit": 500}
#: Integrals of ``f(x, *args)``, a staircase from 0 to 2 in ``abs(x)``, times something. The
#: differences of the second are the integrals over each step for a height of 1.
STAIRCASES = {
    "finite": (lambda f, args: integrate.quad(f, 0.0, 2.0, args, **FINE)[0], STEPS),
    "backwards": (lambda f, args: integrate.quad(f, 2.0, 0.0, args, **FINE)[0], -STEPS),
    "points": (lambda f, args: integrate.quad(f, 0.0, 2.0, args, points=[0.5, 1.3], **FINE)[0], STEPS),
    "half-line": (
        lambda f, args: integrate.quad(times(f, lambda x: np.exp(-3.0 * x)), 0.0, np.inf, args, **FINE)[0],
        TAILS,
    ),
    "half-line of negative numbers": (
        lambda f, args: integrate.quad(times(f, lambda x: np.exp(3.0 * x)), -np.inf, 0.0, args, **FINE)[0],
        TAILS,
    ),
    "line": (
        lambda f, args: integrate.quad(times(f, lambda x: np.exp(-3.0 * abs(x))), -np.inf, np.inf, args, **FINE)[0],
        2.0 * TAILS,
    ),
    "cos": (
        lambda f, args: integrate.quad(f, 0.0, 2.0, args, weight="cos", wvar=3.0, **FINE)[0],
        np.sin(3.0 * STEPS) / 3.0,
    ),
    "cauchy": (
        lambda f, args: integrate.quad(f, 0.0, 2.0, args, weight="cauchy", wvar=-1.0, **FINE)[0],
        np.log(STEPS + 1.0),
    ),
    "alg": (
        lambda f, args: integrate.quad(f, 0.0, 2.0, args, weight="alg", wvar=(0.5, 0.0), **FINE)[0],
        STEPS**1.5 / 1.5,
    ),
    "complex": (
        lambda f, args: np.real(
            integrate.quad(times(f, lambda x: np.exp(1j * x)), 0.0, 2.0, args, complex_func=True, **FINE)[0]
        ),
        np.sin(STEPS),
    ),
    "quad_vec": (
        lambda f, args: np.sum(
            integrate.quad_vec(times(f, lambda x: np.array([1.0, x])), 0.0, 2.0, **LOOSE, args=args)[0]
        ),
        STEPS + STEPS**2 / 2.0,
    ),
}


@pytest.mark.parametrize(
    ("name", "given"),
    [*((name, "closed over") for name in STAIRCASES), *product(["finite", "line"], ["numbers", "array"])],
)
def test_parameter_acting_on_narrow_piece(name, given):
    """Check that no step of a staircase is lost, where most derivatives are zero at the first points."""
    integral, ends = STAIRCASES[name]
    place = lambda x: sum(1 if abs(x) >= end else 0 for end in STEPS[1:-1])

    def value(c):
        if given == "closed over":
            return integral(lambda x: c[place(x)] ** 2, ())
        if given == "numbers":
            return integral(lambda x, *c: c[place(x)] ** 2, tuple(c))
        return integral(lambda x, c: c[place(x)] ** 2, (c,))

    slope = 2.0 * HEIGHTS * np.diff(ends)
    np.testing.assert_allclose(grad(value)(HEIGHTS), slope, rtol=1e-4)
    pushed = jvp(value, (HEIGHTS,), (np.cos(np.arange(4.0)),))[1]
    np.testing.assert_allclose(pushed, slope @ np.cos(np.arange(4.0)), rtol=1e-4)
    if (name, given) in (("finite", "closed over"), ("line", "array")):
        bends = jvp(grad(value), (HEIGHTS,), (HEIGHTS,))[1]
        np.testing.assert_allclose(bends, slope, rtol=1e-4)
        both = vmap(grad(value))(np.stack([HEIGHTS, 0.7 * HEIGHTS]))
        np.testing.assert_allclose(both, np.stack([slope, 0.7 * slope]), rtol=1e-4)


def test_closure_of_math_functions_in_vmap():
    """Check that a recording of all examples, whose values ``math`` looked at, serves each example alone."""
    area = lambda x: scipy.integrate.quad(lambda t: math.exp(-x[0] * t) * math.cos(x[1] * t), 0.0, x[2])[0]
    xs = np.array([[0.7, 1.3, 2.1], [0.5, 1.1, 1.7], [0.2, 2.0, 1.0]])
    np.testing.assert_allclose(vmap(area)(xs), [area(x) for x in xs], rtol=1e-12)
    np.testing.assert_allclose(vmap(grad(area))(xs), [grad(area)(x) for x in xs], rtol=1e-9)


@pytest.mark.filterwarnings("ignore::funcgrad.errors.EagerWarning")
def test_recorded_gradient_is_not_that_of_first_call():
    f = lambda x: integrate.quad(lambda t: np.exp(-x[0] * t) * np.cos(x[1] * t), 0.0, 2.0)[0]
    first, other = np.array([0.7, 1.3]), np.array([0.8, 1.1])
    for fun in (f, grad(f), hessian(f)):
        recorded = jit(fun, backend="numpy")
        for x in (first, other, first):
            np.testing.assert_allclose(recorded(x), fun(x), rtol=1e-12)


def test_staircase_of_powers_of_closure_value():
    """Check a step for each of 16 branches, and a 17th branch taken exactly at a limit."""
    area = lambda k, b: integrate.quad(lambda x: k ** (1 + int(8 * x)), 0.0, b, limit=500)[0]
    powers = np.arange(1.0, 17.0)
    slope = np.sum(powers * 0.9 ** (powers - 1.0)) / 8.0
    np.testing.assert_allclose([grad(area)(0.9, 2.0), jvp(area, (0.9, 2.0), (1.0, 0.0))[1]], slope)
    at_limit = grad(area, 1)(0.9, 2.0)
    np.testing.assert_allclose([at_limit, jvp(area, (0.9, 2.0), (0.0, 1.0))[1]], 0.9**17)
    waves = lambda k, b: integrate.quad(lambda x: k ** (1 + int(8 * x)), 0.0, b, weight="cos", wvar=3.0, limit=500)[0]
    np.testing.assert_allclose(grad(waves, 1)(0.9, 2.0), 0.9**17 * np.cos(6.0))


def test_piece_visible_only_in_value():
    """Check that the division for the value guides the derivative, which is zero at all first points."""
    rough = lambda x, k: np.sqrt(np.abs(x - 0.32)) + (k if 0.32 < x < 0.34 else 0.0)
    area = lambda k: integrate.quad(rough, 0.0, 1.0, (k,))[0]
    np.testing.assert_allclose([grad(area)(2.0), jvp(area, (2.0,), (1.0,))[1]], 0.02, rtol=1e-5)


def test_parameter_acting_in_small_part_of_box():
    def inside(x, *c):
        steps = [np.where((x[:, 0] >= low) & (x[:, 0] < high), c[i] ** 2, 0.0) for i, (low, high) in enumerate(PIECES)]
        return sum(steps)

    value = lambda c: integrate.cubature(inside, [0.0], [2.0], rtol=1e-6, args=tuple(c)).estimate
    slope = 2.0 * HEIGHTS * np.diff(STEPS)
    np.testing.assert_allclose(value(HEIGHTS), np.sum(HEIGHTS**2 * np.diff(STEPS)), rtol=1e-5)
    np.testing.assert_allclose(grad(value)(HEIGHTS), slope, rtol=1e-4)
    np.testing.assert_allclose([jvp(value, (HEIGHTS,), (e,))[1] for e in np.eye(4)], slope, rtol=1e-4)
    np.testing.assert_allclose(jvp(grad(value), (HEIGHTS,), (HEIGHTS,))[1], slope, rtol=1e-4)
    batch = np.stack([HEIGHTS, 0.7 * HEIGHTS])
    np.testing.assert_allclose(vmap(grad(value))(batch), [slope, 0.7 * slope], rtol=1e-4)


def test_infinite_traced_limits():
    value, pullback = vjp(
        lambda a, b, p: scipy.integrate.quad(lambda x: p * np.exp(-x * x), a, b)[0], -np.inf, np.inf, 2.0
    )
    assert value == pytest.approx(2.0 * np.sqrt(np.pi))
    assert pullback(1.0) == (0.0, 0.0, pytest.approx(np.sqrt(np.pi)))


def test_weighted_integrals_of_several_functions():
    fun = lambda p: integrate.quad(lambda x: fnp.stack([p * x, x]), 0.0, 1.0, weight="cos", wvar=2.0)[0]
    want = scipy.integrate.quad(lambda x: x, 0.0, 1.0, weight="cos", wvar=2.0)[0]
    value, slope = jvp(fun, (2.0,), (1.0,))
    np.testing.assert_allclose(value, [2 * want, want], rtol=1e-12)
    np.testing.assert_allclose(slope, [want, 0.0], rtol=1e-12)


def test_batches_without_examples():
    single = lambda p: scipy.integrate.quad(lambda x: x * p * p, 0.0, 1.0)[0]
    box = lambda p: scipy.integrate.cubature(lambda x: p * p * x[:, 0] * x[:, 1], [0.0, 0.0], [1.0, 1.0]).estimate
    for fun in (single, box):
        for transformed in (fun, grad(fun), grad(grad(fun))):
            assert vmap(transformed)(np.zeros(0)).shape == (0,)


class Sign:
    def __init__(self, k):
        self.k = k

    def square(self, x):
        return x * x if self.k > 0 else -x


LOOKING = {
    "quad": lambda k: scipy.integrate.quad(lambda x: x**2 if k > 0 else -x, 0, k)[0],
    "quad, method": lambda k: scipy.integrate.quad(Sign(k).square, 0, k)[0],
    "quad, args": lambda k: scipy.integrate.quad(lambda x, s: s * x if k > 0 else -x, 0, 1, args=(k,))[0],
    "quad, integers": lambda k: scipy.integrate.quad(lambda x: np.arange(k + 1)[1] * x, 0, 3 * k)[0],
    "quad_vec": lambda k: scipy.integrate.quad_vec(lambda x: np.array([x, 1.0]) if k > 0 else x, 0, k)[0] @ np.ones(2),
    "dblquad": lambda k: scipy.integrate.dblquad(lambda y, x: x * y if k > 0 else -x, 0, k, 0, lambda x: x)[0],
    "cubature": lambda k: scipy.integrate.cubature(lambda x: x[:, 0] if k > 0 else -x[:, 0], [0.0], [k]).estimate,
    "tanhsinh": lambda k: scipy.integrate.tanhsinh(lambda x, s: s * x if k > 0 else -x, 0, 1, args=(k,)).integral,
    "solve_ivp": lambda k: scipy.integrate.solve_ivp(lambda t, y: y if k > 0 else -y, (0, 1), [k], rtol=1e-8).y[0, -1],
    "odeint": lambda k: scipy.integrate.odeint(lambda y, t: y if k > 0 else -y, k, [0, 1])[-1, 0],
}


@pytest.mark.parametrize("name", LOOKING)
def test_functions_that_only_look_at_closed_over_values(name):
    """The backward pass, which runs after the transform has ended, cannot call such a function."""
    fun = LOOKING[name]
    assert grad(fun)(2.0) == pytest.approx(differences(fun, 2.0), rel=1e-6)
    assert jvp(fun, (2.0,), (1.0,))[1] == pytest.approx(grad(fun)(2.0), rel=1e-9)


def test_integrals_in_a_thread_of_the_function():
    """A thread does not know the transform, so an integrand that closes over a traced value is refused there."""

    def in_thread(fun):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(fun).result()

    alone = lambda p: in_thread(lambda: integrate.quad(lambda x: p * x, 0.0, 1.0)[0])
    mixed = lambda p: in_thread(lambda: integrate.quad(lambda x, k: p * x * k, 0.0, 1.0, (p,))[0])
    passed = lambda p: in_thread(lambda: integrate.quad(lambda x, k: x * k, 0.0, 1.0, (p,))[0])
    with pytest.raises(ConversionError, match="This thread does not run the transform"):
        grad(alone)(2.0)
    with pytest.raises(NotDifferentiableError, match="Pass the value in args"):
        grad(mixed)(2.0)
    assert grad(passed)(2.0) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("limits", "options"),
    [
        ((0.0, 2.0), {}),
        ((2.0, 0.0), {}),
        ((0.3, np.inf), {}),
        ((np.inf, 0.3), {}),
        ((-np.inf, 0.3), {}),
        ((-np.inf, np.inf), {}),
        ((0.0, 2.0), {"points": [1.5, 0.7, 1.5, 3.0]}),
    ],
)
@pytest.mark.parametrize("routine", ["quad", "quad_vec"])
def test_nodes_that_scipy_asks_for_are_foreseen(routine, limits, options):
    """All nodes are evaluated at once, but the first, which tells what kind of results is right."""
    f = lambda x: np.exp(-3 * (x - 0.6) ** 2) * np.sqrt(np.abs(x - 0.4) + 0.01)
    alone, at_once = [], []
    sampled = nodes.Sampled(
        lambda x: alone.append(x) or [np.asarray(f(x))], lambda x: at_once.append(len(x)) or [np.asarray(f(x))]
    )
    if routine == "quad":
        sampled.foresee(*nodes.rule_of_quad(*limits, options.get("points")))
    else:
        options = {"quadrature": "gk15"} if options else {}
        sampled.foresee(*nodes.rule_of_quad_vec(*limits, None, options.get("quadrature")))
    sampled(0.5)
    got = getattr(scipy.integrate, routine)(lambda x: sampled(x)[0][()], *limits, **options)[0]
    want = getattr(scipy.integrate, routine)(f, *limits, **options)[0]
    np.testing.assert_allclose(got, want, rtol=1e-13)
    assert len(alone) == 1
    assert sum(at_once) >= 15 * (len(at_once) + 1)  # two intervals at once, but at first


def test_integrands_that_branch_are_evaluated_at_once_between_the_branches():
    """The places are found by halving; they are two here, with different kinds of refusal."""
    calls = []

    def at_once(x):
        calls.append(len(x))
        if ((x < 0.3).any() and (x > 0.3).any()) or ((x < 1.7).any() and (x > 1.7).any()):
            raise ConversionError("it branches")
        return [np.where(x < 0.3, 1.0, np.where(x < 1.7, x, -1.0))]

    f = lambda x: np.asarray(at_once(np.array([x]))[0][0])
    alone = []
    sampled = nodes.Sampled(lambda x: alone.append(x) or [f(x)], at_once)
    sampled.foresee(*nodes.rule_of_quad(0.0, 2.0))
    sampled(1.0)
    found, _, info = scipy.integrate.quad(lambda x: sampled(x)[0][()], 0.0, 2.0, full_output=True, limit=100)[:3]
    np.testing.assert_allclose(found, 0.3 + (1.7**2 - 0.3**2) / 2 - 0.3, rtol=1e-8)
    assert len(alone) < info["neval"] / 10
    assert len(calls) < info["neval"] / 3


def test_integrands_that_cannot_run_at_once_are_evaluated_one_by_one():
    tried = []

    def at_once(x):
        tried.append(len(x))
        raise ConversionError("never")

    sampled = nodes.Sampled(lambda x: [np.sqrt(np.abs(x - 0.3))], at_once)
    sampled.foresee(*nodes.rule_of_quad(0.0, 2.0))
    want = scipy.integrate.quad(lambda x: np.sqrt(np.abs(x - 0.3)), 0.0, 2.0)
    assert scipy.integrate.quad(lambda x: sampled(x)[0], 0.0, 2.0) == want
    assert 0 < len(tried) < 8


def test_kinds_of_results_differ_between_one_node_and_many():
    """A result of another dtype or shape than that of one number is not used."""
    for other in (lambda x: np.float32(x), lambda x: np.stack([x, x], 1)):
        sampled = nodes.Sampled(lambda x: [np.asarray(2.0 * x)], lambda x, other=other: [other(x)])
        sampled.foresee(*nodes.rule_of_quad(0.0, 2.0))
        sampled(1.0)
        f = lambda x, sampled=sampled: sampled(x)[0][()]
        np.testing.assert_allclose(scipy.integrate.quad(f, 0.0, 2.0)[0], 4.0, rtol=1e-14)


@pytest.mark.parametrize(("size", "together"), [(100, True), (2_000, False)])
def test_integrands_of_large_arrays_are_evaluated_one_by_one(size, together, monkeypatch):
    """Many nodes at once would take the memory of as many arrays, and save no time."""
    asked, rows = [], nodes.Sampled._rows
    monkeypatch.setattr(nodes.Sampled, "_rows", lambda self, x: (asked.append(len(x)), rows(self, x))[1])
    data = np.linspace(0.1, 2.0, size)
    fun = lambda p: integrate.quad(lambda t: fnp.mean(fnp.exp(-p * t * data)), 0.0, 1.0)[0]
    np.testing.assert_allclose(grad(fun)(0.7), differences(fun, 0.7), rtol=1e-8)
    assert bool(asked) == together
    asked.clear()
    each = lambda p: fnp.sum(integrate.quad_vec(lambda t: fnp.exp(-p * t * data), 0.0, 1.0)[0])
    np.testing.assert_allclose(grad(each)(0.7), differences(each, 0.7), rtol=1e-8)
    assert bool(asked) == together


#: Inner integrals of ``y`` and ``k``; and whether their first nodes suffice, so that no other nodes are asked for.
INNER = {
    "constant limits": (lambda y, k: scipy.integrate.quad(lambda x: np.exp(-k * x * y), 0.0, 1.0)[0], True),
    "moving limits": (lambda y, k: scipy.integrate.quad(lambda x: np.exp(-k * x * y), k * y, 2.0 * y)[0], True),
    "points": (lambda y, k: scipy.integrate.quad(lambda x: abs(x - 0.5) * y * k, 0.0, 1.0, points=[0.5])[0], True),
    "complex": (
        lambda y, k: abs(scipy.integrate.quad(lambda x: np.exp(1j * k * x * y), 0.0, 1.0, complex_func=True)[0]),
        True,
    ),
    "a half-line": (lambda y, k: scipy.integrate.quad(lambda x: np.exp(-k * x), y, np.inf)[0], False),
    "arrays": (lambda y, k: scipy.integrate.quad_vec(lambda x: np.sin(x * y * k * np.ones(2)), 0.0, 1.0)[0][1], False),
    "a branch": (lambda y, k: scipy.integrate.quad(lambda x: (x if x < y else y) * k, 0, 1, epsabs=1e-5)[0], False),
    "a weight": (lambda y, k: scipy.integrate.quad(lambda x: k * x * y, 0.0, 1.0, weight="cos", wvar=3.0)[0], False),
}


@pytest.mark.parametrize("name", INNER)
def test_inner_integrals_are_evaluated_together(name, monkeypatch):
    """The outer nodes are evaluated at once, and so are the first nodes of the integrals at all of them."""
    inner, suffices = INNER[name]
    asked, rows = [], nodes.Sampled._rows
    monkeypatch.setattr(nodes.Sampled, "_rows", lambda self, x: (asked.append(len(x)), rows(self, x))[1])
    outer = lambda k: scipy.integrate.quad(lambda y: inner(y, k), 0.1, 1.0, epsabs=1e-6)[0]
    np.testing.assert_allclose(grad(outer)(0.7), differences(outer, 0.7), rtol=1e-5)
    np.testing.assert_allclose(jvp(outer, (0.7,), (1.0,))[1], grad(outer)(0.7), rtol=1e-5)
    assert len(asked) < 20 or not suffices


def test_integrals_of_many_examples():
    """Only some examples evaluate their nodes at once; each gets its own numbers."""
    f = lambda k, b: scipy.integrate.quad(lambda x: np.exp(-k * x), 0.0, b)[0]
    k, b = np.linspace(0.5, 1.5, 250), np.linspace(1.0, 3.0, 250)
    np.testing.assert_allclose(vmap(f)(k, b), (1.0 - np.exp(-k * b)) / k, rtol=1e-12)
    np.testing.assert_allclose(vmap(grad(f, 1))(k, b), np.exp(-k * b), rtol=1e-12)
    assert vmap(f)(k[:0], b[:0]).shape == (0,)


ESTIMATES = {
    "nsum": (lambda m, k: m.nsum(lambda n: k / n**2, np.array([1, 2]), 20), ("sum", "error", "nfev", "success")),
    "tanhsinh": (
        lambda m, k: m.tanhsinh(lambda x: np.exp(-k * x), 0.0, 1.0),
        ("integral", "error", "nfev", "maxlevel"),
    ),
    "cubature": (
        lambda m, k: m.cubature(lambda x: 1 / (0.01 + (x[:, 0] - k) ** 2), [0.0], [1.0]),
        ("estimate", "error", "subdivisions"),
    ),
}


@pytest.mark.parametrize("name", ESTIMATES)
def test_each_example_has_its_own_error_and_counts(name):
    integral, fields = ESTIMATES[name]
    found = lambda k: [getattr(integral(scipy.integrate, k), field) for field in fields]
    values = np.array([[0.3, 40.0], [0.21, 0.5]])
    for f in (found, lambda k: vjp(found, k)[0], lambda k: jvp(found, (k,), (1.0,))[0]):
        parts = vmap(vmap(f))(values)
        for place in np.ndindex(2, 2):
            for part, want in zip(parts, found(values[place]), strict=True):
                np.testing.assert_allclose(part[place], want, rtol=1e-12, atol=1e-15, strict=True)
