"""Polynomials: derivatives, lengths and refusals in special cases."""

import pickle

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import close

import funcgrad.numpy as fnp
import funcgrad.numpy.polynomial as families
from funcgrad import check_grads, grad, jacfwd, jacrev, jvp, vjp, vmap
from funcgrad.errors import ConcretizationError, InputError, NotDifferentiableError

MODULES = {
    "polynomial": "poly",
    "chebyshev": "cheb",
    "legendre": "leg",
    "hermite": "herm",
    "hermite_e": "herme",
    "laguerre": "lag",
}
BOTH = pytest.mark.parametrize("jacobian", [jacrev, jacfwd])


# ---- roots and characteristic polynomials ----------------------------------------------------------------------


@BOTH
def test_roots_follow_implicit_function_theorem(jacobian):
    # x**2 - 3 x + 2 has the roots 2 and 1, and the slopes 1 and -1 there
    close(jacobian(fnp.roots)(np.array([1.0, -3.0, 2.0])), [[-4.0, -2.0, -1.0], [1.0, 1.0, 1.0]])


@BOTH
def test_root_at_zero_depends_on_constant_term(jacobian):
    close(jacobian(fnp.roots)(np.array([1.0, -3.0, 2.0, 0.0]))[2], [0.0, 0.0, 0.0, -0.5])


@BOTH
def test_stripped_leading_zero_has_derivative(jacobian):
    p = np.array([0.0, 1.0, -3.0, 2.0])
    assert fnp.roots(p).shape == (2,)
    close(jacobian(fnp.roots)(p), [[-8.0, -4.0, -2.0, -1.0], [1.0, 1.0, 1.0, 1.0]])


@BOTH
def test_multiple_root_has_no_derivative(jacobian):
    with np.errstate(all="ignore"):
        assert not np.isfinite(jacobian(fnp.roots)(np.array([1.0, 0.0, 0.0]))).any()


def test_sums_over_roots_follow_vieta():
    check_grads(lambda p: fnp.sum(fnp.roots(p) ** 3).real, (np.array([1.0, 0.3, 2.0, -1.0]),), order=2)


def test_roots_of_empty_polynomials():
    for p in ([0.0, 0.0], [3.0], [3.0, 0.0]):
        want = np.roots(p)
        got = vjp(fnp.roots, np.array(p))[0]
        assert got.shape == want.shape
        assert jacrev(fnp.roots)(np.array(p)).shape == (*want.shape, len(p))
    with pytest.raises(ValueError, match="rank-1"):
        grad(lambda p: fnp.sum(fnp.roots(p)))(np.ones((2, 2)))


def test_roots_of_differing_degrees_in_batch_raise():
    with pytest.raises(ValueError, match=r"vmap: series_roots .* \[2, 1\]. Call it for each example"):
        vmap(fnp.roots)(np.array([[1.0, 2.0, 0.5], [0.0, 2.0, 0.5]]))


def test_roots_of_jax_arrays_are_not_stripped():
    found = fnp.roots(jnp.array([1.0, -3.0, 2.0]))
    close(np.sort(np.real(found)), [1.0, 2.0], 1e-5)
    assert jnp.iscomplexobj(found)


@BOTH
@pytest.mark.parametrize("matrix", [np.eye(3), np.eye(3, k=1), np.zeros((2, 2)), np.diag([1.0, 1.0, 2.0])])
def test_characteristic_polynomial_of_equal_eigenvalues(jacobian, matrix):
    n = len(matrix)
    found = jacobian(fnp.poly)(matrix)
    # by definition: the characteristic polynomial of a matrix with one element slightly changed
    step = 1e-6
    for i in range(n):
        for j in range(n):
            unit = np.zeros((n, n))
            unit[i, j] = step
            slope = (coefficients(matrix + unit) - coefficients(matrix - unit)) / (2 * step)
            close(found[:, i, j], slope, 1e-6)


def coefficients(matrix):
    """Compute the coefficients of ``det(z - matrix)`` from its values at as many points."""
    n = len(matrix)
    points = np.arange(n + 1.0)
    values = [np.linalg.det(z * np.eye(n) - matrix) for z in points]
    return np.linalg.solve(np.vander(points), values)


def test_poly_matches_numpy_dtype_and_shape():
    assert vjp(fnp.poly, np.zeros(0))[0] == 1.0
    zeros = np.array([1 + 2j, 1 - 2j])
    value, pull = vjp(fnp.poly, zeros)
    assert value.dtype == np.poly(zeros).dtype == float
    assert pull(np.ones(3))[0].dtype == complex
    assert vjp(fnp.poly, np.ones(2, np.float16))[0].dtype == np.poly(np.ones(2, np.float16)).dtype
    with pytest.raises(ValueError, match="square"):
        jvp(fnp.poly, (np.ones((2, 3)),), (np.ones((2, 3)),))


# ---- lengths ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("multiply", [np.polymul, lambda a, b: (fnp.poly1d(a) * fnp.poly1d(b)).coeffs])
def test_leading_coefficients_of_zero_keep_their_derivative(multiply):
    a, b = np.array([0.0, 1.0, 2.0]), np.array([1.5, 3.0])
    value = lambda b, a: fnp.polyval(fnp.polymul(fnp.polymul(a, b), [1.0, 2.0]), 1.3)
    close(jacrev(value, argnums=(0, 1))(b, a)[1], 1.3 ** np.arange(2, -1, -1) * np.polyval(b, 1.3) * 3.3)
    zero = lambda c: np.polyval(multiply([1.0, 2.0], c * b), 3.0)
    close(grad(zero)(0.0), 5.0 * 7.5)
    close(vjp(fnp.polymul, a, b)[0], [0.0, *np.polymul(a, b)])


@pytest.mark.parametrize("name", ["polyadd", "polysub"])
def test_lengths_match_numpy(name):
    a, b = np.array([0.0, 1.0, 2.0]), np.array([3.0, 1.0, 4.0, 1.0])
    close(vjp(getattr(fnp, name), a, b)[0], getattr(np, name)(a, b))


def test_division_matches_numpy():
    for u, v in (([3.0, 5.0, 2.0], [2.0, 1.0]), ([1.0, 2.0], [1.0, 0.0, 1.0]), ([2.0, 0.0, 0.0], [1.0])):
        want = np.polydiv(u, v)
        got = vjp(fnp.polydiv, np.array(u), np.array(v))[0]
        for g, w in zip(got, want, strict=True):
            assert g.shape == w.shape
            close(g, w)
    quotient, remainder = vmap(fnp.polydiv)(np.ones((2, 4)), np.array([[2.0, 1.0], [3.0, 1.0]]))
    assert quotient.shape == (2, 3)
    assert remainder.shape == (2, 1)


@pytest.mark.parametrize("module", MODULES)
def test_series_with_trailing_zeros_match_numpy(module):
    prefix = MODULES[module]
    ours, theirs = getattr(families, module), getattr(np.polynomial, module)
    a, b = np.array([1.0, 2.0, 0.0]), np.array([1.0, -2.0, 0.0])
    for name in ("add", "sub", "mul", "mulx"):
        given = (a,) if name == "mulx" else (a, b)
        found, want = vjp(getattr(ours, prefix + name), *given)[0], getattr(theirs, prefix + name)(*given)
        close(found, np.pad(want, (0, len(found) - len(want))))
    for name in ("roots", "companion", "int"):
        close(vjp(getattr(ours, prefix + name), a)[0], getattr(theirs, prefix + name)(a))
    zero = np.zeros(1)
    for name in ("int", "der"):
        close(vjp(getattr(ours, prefix + name), zero)[0], getattr(theirs, prefix + name)(zero))
    close(vjp(getattr(ours, prefix + "line"), 2.0, 0.0)[0], getattr(theirs, prefix + "line")(2.0, 0.0))


@pytest.mark.parametrize("name", ["Polynomial", "Chebyshev", "Legendre", "Hermite", "HermiteE", "Laguerre"])
def test_trailing_coefficients_of_zero_keep_their_derivative(name):
    series = getattr(np.polynomial, name)
    programs = [
        lambda c: (c * series([1.0, 2.0, 3.0]) + series([1.0, 1.0]))(1.3),
        lambda c: (series([1.0, c]) ** 2 - series([0.0, 0.0, c]))(1.3),
        lambda c: divmod(series([1.0, 2.0, 3.0, c]) * c, series([1.0, 2.0]))[0](1.3),
        lambda c: (series([1.0, 2.0]) * c + c).deriv()(1.3) + (series([2.0, 1.0]) * c).integ()(1.3),
        lambda c: series.cast(np.polynomial.Polynomial([1.0, c, c]))(1.3),
    ]
    for program in programs:
        close(grad(program)(0.0), (program(1e-4) - program(-1e-4)) / 2e-4, 1e-7)


def test_zeros_of_a_batch_are_kept():
    ends = np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 0.0]])
    assert vmap(families.legendre.legadd)(ends, ends).shape == (2, 3)
    ends[1, 2] = 5.0
    with pytest.raises(ConcretizationError):
        vmap(families.legendre.legtrim)(ends)


def test_series_division():
    divide = families.hermite.hermdiv
    with pytest.raises(ZeroDivisionError):
        grad(lambda c: divide(np.ones(3), c)[0][0])(np.zeros(2))
    quotient, remainder = vjp(divide, np.ones(2), np.ones(3))[0]
    close(quotient, [0.0])
    close(remainder, [1.0, 1.0])
    quotient, remainder = vjp(divide, np.ones(3), np.array([2.0, 0.0]))[0]
    close(quotient, [0.5, 0.5, 0.5])
    close(remainder, [0.0])


# ---- families -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES)
def test_families_have_all_names(module):
    ours, theirs = getattr(families, module), getattr(np.polynomial, module)
    added = {MODULES[module] + "valnd"}  # NumPy has it since 2.5, funcgrad with every NumPy
    assert set(ours.__all__) == set(theirs.__all__) | added
    assert len(set(ours.__all__)) == len(ours.__all__)
    assert set(families.__all__) == set(np.polynomial.__all__) - {"set_default_printstyle"}


@pytest.mark.parametrize("module", MODULES)
def test_families_are_consistent(module):
    prefix = MODULES[module]
    call = lambda name, *args: getattr(getattr(families, module), prefix + name)(*args)
    c, d, x = np.array([0.5, -1.0, 2.0, 0.3]), np.array([1.0, 0.7]), np.array([-0.4, 1.3])
    close(grad(lambda x: fnp.sum(call("val", x, c)))(x), call("val", x, call("der", c)))
    close(jvp(lambda c: call("val", x, call("mul", c, d)), (c,), (c,))[1], call("val", x, c) * call("val", x, d))
    close(jvp(lambda c: call("der", call("int", c)), (c,), (c,))[1], c)
    check_grads(lambda c, x: fnp.sum(call("val", x, c) ** 2), (c, x), order=2)
    check_grads(lambda z: fnp.sum(call("fromroots", z) ** 2), (x,), order=2)
    check_grads(lambda b: fnp.sum(call("int", c, 2, (), b) ** 2), (0.3,), order=2)


@pytest.mark.parametrize("domain", [[], [0.0, 3.0]])
@pytest.mark.parametrize("module", MODULES)
def test_series_classes_fromroots(module, domain):
    name = {"hermite_e": "HermiteE"}.get(module, module.capitalize())
    ours, theirs = getattr(families, name), getattr(np.polynomial, name)
    roots = np.array([-0.4, 1.3, 0.7])
    close(ours.fromroots(roots, domain)(0.2), theirs.fromroots(roots, domain)(0.2))
    close(grad(lambda r: theirs.fromroots(r, domain)(0.2))(roots), grad(lambda r: fnp.prod(0.2 - r))(roots))
    check_grads(lambda r: ours.fromroots(r, domain)(0.2), (roots,), order=2)


@pytest.mark.parametrize("module", MODULES)
def test_series_in_any_number_of_variables(module):
    ours, name = getattr(getattr(families, module), MODULES[module] + "valnd"), MODULES[module] + "val"
    numpys = getattr(np.polynomial, module)
    pts, c = np.array([[0.3, -0.7], [1.1, 0.2], [-0.4, 0.9], [0.5, 0.6]]), np.arange(24.0).reshape(2, 3, 2, 2) - 9.0
    want = sum(  # term by term
        c[index] * np.prod([getattr(numpys, name)(p, np.eye(4)[i]) for p, i in zip(pts, index, strict=True)], axis=0)
        for index in np.ndindex(c.shape)
    )
    close(ours(pts, c), want)
    close(vjp(ours, pts, c)[0], want)
    close(vjp(ours, tuple(pts), c)[0], want)
    check_grads(lambda pts, c: fnp.sum(ours(pts, c) ** 2), (pts, c), order=2)
    close(ours([0.5], np.ones(3)), getattr(numpys, name)(0.5, np.ones(3)))
    with pytest.raises(ValueError, match="ordinates are incompatible"):
        vjp(lambda c: ours([0.5, 0.5, 0.5, np.ones(2)], c), c)


@pytest.mark.parametrize("module", MODULES)
def test_functions_of_families_pickle(module):
    function = getattr(getattr(families, module), MODULES[module] + "val")
    again = pickle.loads(pickle.dumps(function))
    close(again(0.5, [1.0, 2.0]), function(0.5, [1.0, 2.0]))


@pytest.mark.parametrize("name", ["Polynomial", "Chebyshev", "Legendre", "Hermite", "HermiteE", "Laguerre"])
def test_series_classes_with_traced_coefficients(name):
    ours, theirs = getattr(families, name), getattr(np.polynomial, name)

    def worked(cls):
        def fun(c, x):
            p, q = cls(c, domain=[-2, 1]), cls([1.0, 0.5], domain=[-2, 1])
            quotient, remainder = divmod(p * p - 2 * q, q)
            return ((-p + quotient) ** 2 + remainder.deriv().integ(k=1.5) - 0.5)(x)

        return fun

    c, x = np.array([1.0, 2.0, 0.5]), np.array([0.3, -0.7])
    close(vjp(worked(ours), c, x)[0], worked(theirs)(c, x))
    check_grads(worked(ours), (c, x), order=2)
    assert isinstance(ours(c), theirs)
    close(vjp(lambda c: ours(c).roots(), c)[0], theirs(c).roots())


@pytest.mark.parametrize("name", ["Polynomial", "Chebyshev", "Legendre", "Hermite", "HermiteE", "Laguerre"])
def test_composed_series(name):
    inner, c = np.polynomial.Legendre([1.0, 2.0, 0.3], domain=[0, 2]), np.array([1.0, 2.0, 0.5, -0.7])

    def worked(families):
        cls, power = getattr(families, name), families.Polynomial
        return lambda c: np.concatenate(
            [
                cls.fit(np.arange(4.0), c, 2).convert().coef,
                cls(c).convert(domain=[0, 3], kind=families.Chebyshev).coef,
                cls(c, domain=[0, 1])(inner).coef,
                [cls(c)(inner)(0.4), cls.cast(power(c))(0.3)],
            ]
        )

    close(vjp(worked(families), c)[0], worked(np.polynomial)(c))
    check_grads(worked(families), (c,), order=1)


@pytest.mark.parametrize("kind", ["Polynomial", "Chebyshev"])
@pytest.mark.parametrize("name", ["Polynomial", "Chebyshev", "Legendre", "Hermite", "HermiteE", "Laguerre"])
def test_composed_traced_series(name, kind):
    """Check series of a series with traced coefficients, which may be the same ones, and their lengths."""

    def worked(families):
        def f(c, d):
            outer, inner = getattr(families, name), getattr(families, kind)(d, domain=[0, 2])
            both = outer(c, domain=[-2, 3])(inner)
            assert type(both).__name__ == kind
            found = [
                both.coef,
                outer([1.0, 2.0, 0.5])(inner).coef,
                outer(c)(outer(c)).deriv().coef,
                outer(c[:1])(inner).coef,
            ]
            return np.concatenate([*found, [both(0.3)]])

        return f

    c, d = np.array([1.0, 2.0, 0.5, -0.7]), np.array([0.4, -0.3, 0.2])
    ours, theirs = worked(families), worked(np.polynomial)(c, d)
    close(vjp(ours, c, d)[0], theirs)
    check_grads(ours, (c, d), order=2)
    close(vmap(ours)(np.stack([c, c]), np.stack([d, d])), np.stack([theirs, theirs]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: families.chebyshev.chebadd(c, []), "empty"),
        (lambda c: families.chebyshev.chebadd(c, [[1.0]]), "1-d"),
        (lambda c: families.chebyshev.chebder(c, -1), "non-negative"),
        (lambda c: families.chebyshev.chebint(c, 1, [1, 2]), "Too many"),
        (lambda c: families.chebyshev.chebint(c, 1, lbnd=[1.0]), "lbnd must be a scalar"),
        (lambda c: families.chebyshev.chebpow(c, -1), "non-negative"),
        (lambda c: families.chebyshev.chebpow(c, 17), "too large"),
        (lambda c: families.chebyshev.chebtrim(c, -1), "non-negative"),
        (lambda c: families.chebyshev.chebcompanion(c[:1]), "at least 1"),
        (lambda c: families.chebyshev.chebval2d(c, c[:1], c[:, None]), "x, y are incompatible"),
        (lambda c: families.chebyshev.chebvander2d(c, c, [1]), "Expected 2 dimensions"),
        (lambda c: families.polynomial.polyvalfromroots(c, c, tensor=False), "x.ndim must be"),
        (lambda c: families.chebyshev.chebfit(c, c, -1), "deg >= 0"),
        (lambda c: fnp.polyder(c, -1), "positive"),
        (lambda c: fnp.polyint(c, -1), "positive"),
        (lambda c: fnp.polyint(c, 3, [1.0, 2.0]), "k must be"),
        (lambda c: fnp.polyfit(c, c, -1), "deg >= 0"),
        (lambda c: fnp.polyfit(c, c, 2, cov=True), "must exceed order"),
    ],
)
def test_invalid_calls_raise_as_numpy(call, message):
    with pytest.raises(ValueError, match=message):
        vjp(call, np.array([1.0, 2.0, 3.0]))


# ---- fits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((np.ones((2, 2)), np.ones(2), 1), "1D vector for x"),
        ((np.ones(0), np.ones(0), 1), "non-empty"),
        ((np.ones(2), np.ones((2, 2, 2)), 1), "1D or 2D"),
        ((np.ones(2), np.ones(3), 1), "same length"),
        ((np.ones(2), np.ones(2), 1, None, False, np.ones((2, 1))), "1-d array for weights"),
        ((np.ones(2), np.ones(2), 1, None, False, np.ones(3)), "same length"),
    ],
)
def test_fit_arguments_are_checked(args, message):
    for fit in (fnp.polyfit, families.legendre.legfit):
        with pytest.raises(TypeError, match=message):
            vjp(lambda y, fit=fit: fit(args[0], y, *args[2:]), args[1])


def test_noninteger_fit_degree_raises():
    with pytest.raises(TypeError, match="deg must be"):
        vjp(lambda y: families.legendre.legfit(np.ones(3), y, 1.5), np.ones(3))


def test_underdetermined_fits_warn_as_numpy():
    for fit in (fnp.polyfit, families.legendre.legfit):
        with pytest.warns(np.exceptions.RankWarning, match="poorly conditioned"):
            vjp(lambda y, fit=fit: fit(np.ones(3), y, 1), np.arange(3.0))


def test_exact_data_give_exact_fits():
    x = np.linspace(-1.0, 1.0, 6)
    slopes = jvp(lambda y: fnp.polyfit(x, y, 2), (x**2,), (3 * x**2 - x,))[1]
    close(slopes, [3.0, -1.0, 0.0])
    check_grads(lambda x, y, w: fnp.polyfit(x, y, 2, w=w), (x, np.sin(x), 1 + x**2), order=2)


# ---- values, dispatch, refusals ---------------------------------------------------------------------------------


def test_numpy_functions_dispatch_on_tracers():
    p, q = np.array([1.0, -3.0, 2.0]), np.array([2.0, 1.0])
    calls = {
        "poly": (p,),
        "roots": (p,),
        "polyadd": (p, q),
        "polysub": (p, q),
        "polymul": (p, q),
        "polyder": (p,),
        "polyint": (p,),
        "polyval": (p, q),
    }
    for name, args in calls.items():
        close(jacrev(getattr(np, name))(*args), jacrev(getattr(fnp, name))(*args))


def test_polyval_of_empty_coefficients():
    value, pull = vjp(lambda x: fnp.polyval([], x), np.ones(2))
    close(value, [0.0, 0.0])
    assert value.dtype == float
    close(pull(np.ones(2))[0], [0.0, 0.0])


def test_poly1d_of_plain_coefficients():
    assert fnp.polyadd(np.poly1d([1, 2]), [1]) == np.poly1d([1, 3])
    assert isinstance(fnp.poly1d([1, 2]), np.poly1d)
    assert type(fnp.poly1d([1, 2])) is np.poly1d
    close(grad(lambda x: fnp.polyval(np.poly1d([1.0, 2.0, 3.0]), x))(0.5), 3.0)


OF_POLYNOMIALS = {
    "polyder": lambda p: np.polyder(p),
    "polyder twice": lambda p: np.polyder(p, m=2),
    "polyint": lambda p: np.polyint(p, 1, 2.0),
    "polyadd": lambda p: np.polyadd([1.0, 0.5], p),
    "polysub": lambda p: np.polysub(p, np.poly1d([1.0, 0.5])),
    "polymul": lambda p: np.polymul(np.poly1d([1.0, 0.5]), p),
    "polydiv": lambda p: sum(np.polydiv(p, [1.0, 0.5])),
    "polyval": lambda p: np.polyval(p, np.poly1d([1.0, 0.5])),
    "polyval of coefficients": lambda p: np.polyval(p.coeffs, np.poly1d([1.0, 0.5])),
    "inside": lambda p: np.polyval([1.0, 0.5], p),
}


@pytest.mark.parametrize("name", OF_POLYNOMIALS)
def test_functions_of_poly1d_return_poly1d(name):
    fun, c = OF_POLYNOMIALS[name], np.array([2.0, 3.0, -1.0, 0.5])

    def f(c):
        found = fun(np.poly1d(c))
        assert isinstance(found, np.poly1d)
        return found(0.7)

    steps = 1e-6 * np.eye(4)
    close(grad(f)(c), [(f(c + h) - f(c - h)) / 2e-6 for h in steps], rtol=1e-6)
    close(vmap(grad(f))(np.stack([c, c + 1.0])), np.stack([grad(f)(c), grad(f)(c + 1.0)]))


def test_numpy_functions_treat_poly1d_as_array():
    c = np.array([2.0, 3.0, -1.0, 0.5])

    def f(c):
        p = np.poly1d(c)
        return np.sum(np.sin(p)) + np.dot(np.asarray(p), p) + np.abs(np.roots(p)).sum() + np.poly(p)[1]

    steps = 1e-6 * np.eye(4)
    close(grad(f)(c), [(f(c + h) - f(c - h)) / 2e-6 for h in steps], rtol=1e-6)


@pytest.mark.parametrize(
    "fun",
    [
        lambda c: np.poly1d(c)(2.0),
        lambda c: (np.poly1d(c) + np.poly1d([1.0, 0.5]))(3.0),
        lambda c: (np.poly1d(c) * np.poly1d([1.0, 2.0])).deriv()(3.0),
    ],
)
def test_poly1d_of_tracers_keeps_derivative_or_raises(fun):
    """Python calls the class without NumPy's dispatch: it sees traced coefficients and trims those that are 0 now."""
    c = np.array([2.0, -1.0, 0.5])
    close(jacfwd(fun)(c), jacrev(fun)(c))
    step = 1e-6 * np.eye(3)
    close(jacrev(fun)(c), [(fun(c + h) - fun(c - h)) / 2e-6 for h in step], 1e-8)
    for c in (np.array([0.0, 2.0, 1.0]), np.zeros(3)):
        for derive in (jacrev, jacfwd):
            with pytest.raises(NotDifferentiableError, match=r"poly1d cuts leading coefficients that are 0"):
                derive(fun)(c)
    close(jacrev(np.trim_zeros)(np.array([0.0, 2.0])), [[0.0, 1.0]])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, bool, np.int64])
def test_polyval_of_integers_keeps_dtype(dtype):
    p, x = np.array([[3, 1], [0, 2], [1, 5]]).astype(dtype), np.array([2, 7]).astype(dtype)
    for args in ((p, x), (p[:, 0], x), (p[:, 0], x[0]), (list(p[:, 0]), x)):
        want = np.polyval(*args)
        got = vmap(lambda x, p=args[0]: fnp.polyval(p, x))(np.asarray(args[1])[None])[0]
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


# ---- the class whose coefficients may be traced --------------------------------------------------------------

LINE = np.array([1.0, 2.0])
OF_CLASS = {
    "value": lambda p: p(np.array([2.0, -1.0])),
    "sums": lambda p: (1.0 + p - np.poly1d(LINE) + (3.0 - p) + (-p) * 2.0 + (np.poly1d(LINE) - p) + [1.0, 2.0])(0.7),
    "products": lambda p: (np.poly1d(LINE) * p * p * 2.0 / 4.0)(0.7),
    "a power": lambda p: (p**3)(0.7) + (p**0)(0.7),
    "a division": lambda p: (
        (p / np.poly1d(LINE))[0](0.7) + (p / LINE)[1](0.7) + (np.poly1d([1.0, 2, 3, 4]) / p)[1](0.7)
    ),
    "calculus": lambda p: p.deriv()(0.7) + p.deriv(2)(0.7) + p.integ()(0.7) + p.integ(2, k=[1.0, 2.0])(0.7),
    "zeros": lambda p: (p.roots**2).sum().real + (p.r**2).sum().real,
    "coefficients": lambda p: (p.coeffs**2).sum() + p.c[0] ** 2 + p.coef[1] + p.coefficients[2] + p[0] ** 2 + p[7],
    "order": lambda p: p[2] * (p.order + p.o + len(p)),
    "iteration": lambda p: sum(c * c for c in p),
    "a composition": lambda p: p(p)(0.3) + p(np.poly1d(LINE))(0.3) + np.poly1d(LINE)(p)(0.3),
}


@pytest.mark.parametrize("fun", OF_CLASS.values(), ids=OF_CLASS)
def test_poly1d_class_with_traced_coefficients(fun):
    c = np.array([1.5, -3.0, 0.5])
    traced = lambda c: fun(fnp.poly1d(c))
    close(vjp(traced, c)[0], fun(np.poly1d(c)))
    check_grads(traced, (c,), order=2)
    close(vmap(traced)(np.stack([c, 2 * c])), np.stack([fun(np.poly1d(c)), fun(np.poly1d(2 * c))]))
    close(fun(fnp.poly1d(jnp.asarray(c))), fun(np.poly1d(c)))


def test_poly1d_keeps_leading_zeros_and_is_writable():
    assert grad(lambda c: fnp.poly1d(c)(2.0))(np.array([0.0, 1.0])).tolist() == [2.0, 1.0]
    assert vjp(lambda c: c * fnp.poly1d(c).order, np.zeros(3))[0].shape == (3,)
    close(grad(lambda z: fnp.poly1d(z, True)(3.0))(np.array([1.0, 2.0])), [-1.0, -2.0])

    def written(c):
        p = fnp.poly1d(c, variable="t")
        p[0], p[3] = c[0] ** 2, c[1]
        assert p.variable == fnp.poly1d(p).variable == "t"
        return p(2.0)

    close(grad(written)(np.array([3.0, 4.0])), [2.0 + 6.0, 8.0])
    for refused in (lambda p: p**-1, lambda p: p.__setitem__(-1, 0.0), lambda p: fnp.poly1d(p.coeffs[None])):
        with pytest.raises(ValueError, match=r".+"):
            vjp(lambda c, refused=refused: refused(fnp.poly1d(c)), LINE)
    with pytest.raises(InputError, match="poly1d: a polynomial, a number or coefficients are needed"):
        vjp(lambda c: fnp.poly1d(c) + "1", LINE)
    compared = lambda p: [p == p * 1.0, p != p + 1.0, p != "p", p == np.poly1d([0.0, *LINE])]
    assert vjp(lambda c: all(compared(fnp.poly1d(c))) * c, LINE)[0].any()
    assert vjp(lambda c: (repr(fnp.poly1d(c)).startswith("poly1d("), c)[1], LINE)


def test_series_without_coefficients():
    empty = np.zeros(0)
    assert vjp(fnp.polynomial.chebyshev.chebfromroots, empty)[0].tolist() == [1.0]
    assert vmap(fnp.polynomial.chebyshev.chebfromroots)(np.zeros((3, 0))).tolist() == [[1.0]] * 3
    assert vjp(fnp.roots, empty)[0].shape == jacrev(fnp.roots)(empty).shape[:1] == (0,)
    for x in (jnp.zeros(0), jnp.ones(1)):
        assert fnp.roots(x).shape == (0,)
    assert fnp.polynomial.polynomial.polyroots(jnp.ones(1)).shape == (0,)


def test_counts_must_be_integers():
    for f, what in (
        (lambda c: families.chebyshev.chebder(c, 1.5), "derivation"),
        (lambda c: families.polynomial.polyint(c, 1.5), "integration"),
    ):
        with pytest.raises(TypeError, match=f"the order of {what} must be an integer, received 1.5"):
            vjp(f, np.arange(3.0))


def test_functions_of_a_series_show_their_family():
    assert "<series cheb>" in repr(families.chebyshev.chebder)
