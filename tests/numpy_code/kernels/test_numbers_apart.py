"""Functions of SciPy that treat some values of a parameter apart: the derivative in the parameter at these values."""

import inspect

import numpy as np
import pytest
import scipy.fft
import scipy.interpolate
import scipy.linalg
import scipy.signal
import scipy.spatial
import scipy.spatial.distance
import scipy.spatial.transform
import scipy.special
import scipy.stats
from helpers import at_least, differences

from funcgrad import grad, jacrev, jvp, vjp, vmap
from funcgrad.errors import NotDifferentiableError

pytestmark = [
    # SciPy 1.18 deprecates the distances of its module of trees
    pytest.mark.filterwarnings("ignore:.minkowski_distance:DeprecationWarning"),
    # SciPy warns of leading coefficients that are 0
    pytest.mark.filterwarnings("ignore:Badly conditioned filter coefficients"),
]
X = np.random.default_rng(0).uniform(0.5, 1.5, 9)
SIGNED = X - 1.0
OBSERVED = np.array([12.0, 18.0, 0.0, 10.0, 25.0])
EXPECTED = np.array([11.0, 15.0, 5.0, 14.0, 20.0])
POSITIVE = OBSERVED + 1.0
B, A = np.array([0.5, 1.0, 0.2]), np.array([1.0, 0.5, 1.5])


def flat(found):
    """Return the arrays of a result as one array of one axis."""
    parts = found if isinstance(found, tuple) else (found,)
    return np.concatenate([np.ravel(part) for part in parts])


#: Whether the likelihoods have the argument ``axis``, which SciPy 1.15 lacks.
HAS_AXIS = "axis" in inspect.signature(scipy.stats.boxcox_llf).parameters

#: Functions of the parameter and the data, the values of the parameter that SciPy treats apart, and the data.
APART = {
    "moment": (lambda p, x: scipy.stats.gamma.moment(3, x[:2], loc=p, scale=x[2:4]), (0.0,), X),
    "moment of a distribution made before": (lambda p, x: scipy.stats.norm(p, x[0]).moment(4), (0.0,), X),
    "moment of counts": (lambda p, x: scipy.stats.poisson.moment(3, x, p), (0.0,), X),
    "numpy.linalg.norm": (lambda p, x: np.linalg.norm(x, p), (1.0, 2.0, 3.0), X),
    "numpy.linalg.vector_norm": (lambda p, x: np.linalg.vector_norm(x, ord=p), (1.0, 2.0), X),
    "scipy.linalg.norm": (lambda p, x: scipy.linalg.norm(x, p), (1.0, 2.0), X),
    "fht": (lambda p, x: scipy.fft.fht(x, 0.3, 0.5, bias=p), (0.0,), X),
    "ifht": (lambda p, x: scipy.fft.ifht(x, 0.3, 0.5, offset=0.2, bias=p), (0.0,), X),
    "fht at a pole of mu": (lambda p, x: scipy.fft.fht(x, 0.3, p, bias=1.0), (0.0,), X),
    "fht at a pole of bias": (lambda p, x: scipy.fft.fht(x, 0.3, 0.0, 0.2, p), (1.0, 3.0), X),
    "distance of points of fht": (lambda p, x: scipy.fft.fht(x, p, 0.0, 0.2, 1.0), (0.3,), X),
    "upfirdn": (lambda p, x: scipy.signal.upfirdn(x[:4], x, up=2, cval=p), (0.0,), X),
    **{
        f"{name} of mode {mode}": (
            lambda p, x, name=name, mode=mode: getattr(scipy.signal, name)(
                x.reshape(3, 3), x[:4].reshape(2, 2), mode, fillvalue=p
            ),
            (0.0,),
            X,
        )
        for name in ("convolve2d", "correlate2d")
        for mode in ("full", "same", "valid")
    },
    "tf2ss": (lambda p, x: scipy.signal.tf2ss([p, 0.0 * p, x[0]], [2.0, x[1], 1.0]), (0.0,), X),
    "impulse": (lambda p, x: scipy.signal.impulse(([p, x[0]], [1.0, 3.0, x[1]]), T=np.arange(5.0))[1], (0.0,), X),
    "dimpulse": (lambda p, x: scipy.signal.dimpulse(([p, x[0]], [2.0, 0.3, x[1]], 0.1), n=5)[1][0], (0.0,), X),
    "residue": (lambda p, x: scipy.signal.residue([p, x[0]], [1.0, 3.0, 1.0 + 0.2 * x[1]])[:2], (0.0,), X),
    "residuez": (lambda p, x: scipy.signal.residuez([x[0], p], [1.0, 0.5, 0.05 * x[1]])[:2], (0.0,), X),
    "boxcox_llf": (lambda p, x: scipy.stats.boxcox_llf(p, x), (0.0,), X),
    "boxcox_llf of columns": (lambda p, x: scipy.stats.boxcox_llf(p, x.reshape(3, 3)), (0.0,), X),
    "yeojohnson": (lambda p, x: scipy.stats.yeojohnson(x, lmbda=p), (0.0, 2.0), SIGNED),
    "yeojohnson_llf": (lambda p, x: scipy.stats.yeojohnson_llf(p, x), (0.0, 2.0), SIGNED),
    "pmean": (lambda p, x: scipy.stats.pmean(x, p), (0.0,), X),
    "pmean with weights": (
        lambda p, x: scipy.stats.pmean(x.reshape(3, 3), p, axis=1, weights=np.array([1.0, 2.0, 0.5])),
        (0.0,),
        X,
    ),
    "power_divergence": (
        lambda p, x: scipy.stats.power_divergence(x, x[::-1], lambda_=p),
        (0.0, 1.0, -1.0),
        POSITIVE,
    ),
    "power_divergence of a mean": (
        lambda p, x: scipy.stats.power_divergence(x, lambda_=p, ddof=1),
        (0.0, 1.0),
        POSITIVE,
    ),
    "power_divergence of zeros": (
        lambda p, x: scipy.stats.power_divergence(x, EXPECTED, lambda_=p)[0],
        (1.0,),
        OBSERVED,
    ),
    "support of kappa4": (lambda p, x: scipy.stats.kappa4.support(x[0], p)[0], (0.0,), X),
    "truncpareto": (lambda p, x: scipy.stats.truncpareto.stats(p, x[0] + 1.0), (1.0, 2.0), X),
    "mean of genextreme": (lambda p, x: scipy.stats.genextreme.mean(p, x[0], x[1]), (0.0,), X),
    "iqr": (lambda p, x: scipy.stats.iqr(x, scale=p), (1.0,), X),
    "gstd": (lambda p, x: scipy.stats.gstd(x, ddof=p), (0.0,), X),
    "zscore": (lambda p, x: scipy.stats.zscore(x, ddof=p), (0.0,), X),
    "lp2hp": (lambda p, x: scipy.signal.lp2hp(x[:1], x[1:4], p), (1.0,), X),
    "lfiltic": (
        lambda p, x: scipy.signal.lfiltic(B, np.stack([p, 0.5, 1.5]), x[:3], x[3:]),
        (1.0,),
        X,
    ),
    "lfiltic of one coefficient": (lambda p, x: scipy.signal.lfiltic(B, p, x[:3], x[3:]), (1.0,), X),
    **{
        f"lsim{name}": (
            lambda p, x, name=name: scipy.signal.lsim(
                ([1.0], [1.0, x[0]]), p * (np.ones(5) if name else x[:5]), np.arange(5.0), interp=not name
            )[1],
            (0.0,),
            X,
        )
        for name in ("", " of steps")
    },
    **{
        f"{method} chirp {place}": (
            lambda p, x, method=method, place=place: scipy.signal.chirp(
                x, *((1.3, 2.0, p) if place == "to" else (p, 2.0, 1.3)), method=method
            ),
            (1.3,),
            X,
        )
        for method in ("logarithmic", "hyperbolic")
        for place in ("to", "from")
    },
    "geometric_slerp": (
        lambda p, x: scipy.spatial.geometric_slerp(
            np.array([np.cos(x[0]), np.sin(x[0])]), np.array([np.cos(p), np.sin(p)]), [0.2, 0.7]
        ),
        (0.3,),
        np.array([0.3]),
    ),
    "roots_jacobi": (lambda p, x: scipy.special.roots_jacobi(4, p, x[0], mu=True), (0.5, -0.5), np.array([0.5])),
    "roots_jacobi of 0": (lambda p, x: scipy.special.roots_jacobi(2, x[0], p), (0.0,), np.array([0.0])),
    "roots_jacobi of one point": (lambda p, x: scipy.special.roots_jacobi(1, p + x[0], p), (0.3,), np.array([0.0])),
    "roots_gegenbauer": (lambda p, x: (*scipy.special.roots_gegenbauer(3, p), x[:0]), (0.0,), X),
    "minkowski_distance": (lambda p, x: scipy.spatial.minkowski_distance(x, x[::-1], p), (1.0,), X),
    "minkowski_distance_p": (lambda p, x: scipy.spatial.minkowski_distance_p(x, x[::-1], p), (1.0,), X),
    "minkowski": (lambda p, x: scipy.spatial.distance.minkowski(x, 2 * x[::-1], p), (1.0, 2.0), X),
}


#: SciPy 1.15 divides by the shape of ``genextreme`` where it is 0, and chooses a limit afterwards.
may_divide_by_zero = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@may_divide_by_zero
@pytest.mark.parametrize(("name", "p"), [(name, p) for name, (_, ps, _) in APART.items() for p in ps])
def test_derivative_in_a_parameter_at_numbers_treated_apart(name, p):
    fun, _, data = APART[name]

    def together(p, x):
        return flat(fun(p, x))

    h = 1e-4
    steps = [together(p + k * h, data) for k in (-2, -1, 1, 2)]
    want = (steps[0] - 8 * steps[1] + 8 * steps[2] - steps[3]) / (12 * h)
    for value, tangent in (
        jvp(lambda p: together(p, data), (p,), (1.0,)),
        jvp(together, (p, data), (1.0, 0 * data)),
        [part[0] for part in vmap(lambda p: jvp(lambda p: together(p, data), (p,), (1.0,)))(np.array([p, p + 0.1]))],
    ):
        np.testing.assert_allclose(value, together(p, data), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(tangent, want, rtol=1e-5, atol=1e-8)
    weights = np.arange(1.0, 1.0 + want.size)
    slope = grad(lambda p: np.sum(together(p, data) * weights))(p)
    np.testing.assert_allclose(slope, np.sum(want * weights), rtol=1e-5, atol=1e-8)


#: Probabilities; SciPy 1.18 has no values where the sum is not 1.
SHARES = [[0.2, 0.5, 0.3]] + ([] if at_least(scipy, "1.18.0") else [[0.2, 0.5, 0.4]])


@pytest.mark.parametrize("p", SHARES)
@pytest.mark.filterwarnings("ignore:Some rows of `p` do not sum to 1")
def test_the_last_probability_of_multinomial_is_1_minus_the_others(p):
    for fun in (
        lambda p: scipy.stats.multinomial.logpmf([1, 2, 1], 4, p),
        lambda p: scipy.stats.multinomial(5, p).cov()[2, 1],
    ):
        others = differences(lambda q, fun=fun: fun(np.array([*q, 1 - q[0] - q[1]])), np.array(p[:2]))
        np.testing.assert_allclose(grad(fun)(np.array(p)), [*others, 0.0], rtol=1e-7, atol=1e-9)


@may_divide_by_zero
def test_derivative_in_the_data_stays_that_of_the_branch():
    for name, (fun, numbers, data) in APART.items():
        for p in numbers if data.all() else ():
            both = grad(lambda p, x: np.sum(flat(fun(p, x))), argnums=1)(p, data)  # noqa: B023
            alone = grad(lambda x: np.sum(flat(fun(p, x))))(data)  # noqa: B023
            np.testing.assert_allclose(both, alone, rtol=1e-9, atol=1e-12, err_msg=name)


@may_divide_by_zero
@pytest.mark.parametrize("c", [0.0, -2e-4, 9e-4, 2e-3])
def test_moments_of_genextreme_near_the_shape_zero(c):
    """SciPy returns constants up to 2.5e-4; the differences are wider, and so less exact."""
    f = lambda c: np.array(scipy.stats.genextreme.stats(c, moments="mvsk"))
    np.testing.assert_allclose(jvp(f, (c,), (1.0,))[0], f(c), rtol=1e-14)
    np.testing.assert_allclose(jvp(f, (c,), (1.0,))[1], differences(f, c, 0.01), rtol=1e-4)
    np.testing.assert_allclose(jvp(jacrev(f), (c,), (1.0,))[1][:2], differences(jacrev(f), c, 0.01)[:2], rtol=1e-3)


def test_imports_inside_of_the_function():
    def by_name(s):
        from scipy.stats import iqr

        return iqr(X, scale=s)

    def by_module(s):
        import scipy.stats as laws

        return laws.iqr(X, scale=s)

    for fun in (by_name, by_module):
        np.testing.assert_allclose(grad(fun)(1.0), -scipy.stats.iqr(X), rtol=1e-12)


def test_function_of_scipy_itself_has_the_derivative():
    h = 1e-5
    want = (scipy.stats.boxcox_llf(h, X) - scipy.stats.boxcox_llf(-h, X)) / (2 * h)
    np.testing.assert_allclose(grad(scipy.stats.boxcox_llf)(0.0, X), want, rtol=1e-5)


def test_missing_values_at_numbers_treated_apart_raise():
    with pytest.raises(NotDifferentiableError, match="nan_policy='omit'"):
        grad(lambda p: scipy.stats.pmean(X, p, nan_policy="omit"))(0.0)


NODES = np.array([0.0, 1.0, 2.5, 3.0, 4.0])
VALUES = np.array([[1.0, -1.0, 2.0, 0.5, 3.0], [0.0, 2.0, 1.0, -1.0, 0.5]]).T
#: Interpolants, evaluated at points of which some are nodes.
AT_NODES = {
    "barycentric": lambda x, nodes, y: scipy.interpolate.BarycentricInterpolator(nodes, y)(x),
    "barycentric_interpolate": lambda x, nodes, y: scipy.interpolate.barycentric_interpolate(nodes, y, x),
    "rational": lambda x, nodes, y: scipy.interpolate.FloaterHormannInterpolator(nodes, y, d=2)(x),
}


@pytest.mark.parametrize("moving", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("x", [np.array([0.0, 1.0, 2.0, 2.5, 3.3, 4.0]), np.float64(2.5), np.float64(2.4)], ids=str)
@pytest.mark.parametrize("fun", AT_NODES.values(), ids=AT_NODES)
def test_derivative_of_interpolants_at_their_nodes(fun, x, moving):
    rng = np.random.default_rng(1)
    given = (x, NODES, VALUES)
    directions = [rng.normal(size=np.shape(a)) * (i in moving) for i, a in enumerate(given)]
    along = lambda t: fun(
        *[a + t * d if i in moving else a for i, a, d in zip(range(3), given, directions, strict=True)]
    )
    h = 1e-3
    below, low, middle, high, above = (along(k * h) for k in (-2, -1, 0, 1, 2))
    want = (below - 8 * low + 8 * high - above) / (12 * h)
    value, tangent = jvp(along, (0.0,), (1.0,))
    np.testing.assert_allclose(value, middle, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(tangent, want, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(grad(lambda t: np.sum(along(t)))(0.0), np.sum(want), rtol=1e-7, atol=1e-7)
    second = (-below + 16 * low - 30 * middle + 16 * high - above) / (12 * h * h)
    found = jvp(lambda t: jvp(along, (t,), (1.0,))[1], (0.0,), (1.0,))[1]
    np.testing.assert_allclose(found, second, rtol=1e-5, atol=1e-5)
    batch = vmap(lambda t: jvp(along, (t,), (1.0,))[1])(np.array([0.0, 0.01]))
    np.testing.assert_allclose(batch[0], want, rtol=1e-7, atol=1e-7)


def test_rational_interpolant_at_nodes_and_infinity():
    found = lambda x: scipy.interpolate.FloaterHormannInterpolator(NODES, VALUES, d=2)(x)
    x = np.array([1.0, np.inf, 2.2])
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(vjp(found, x)[0][[0, 2]], found(x)[[0, 2]], rtol=1e-14)


def test_chosen_rational_approximation_has_derivatives_at_its_points():
    chosen = scipy.interpolate.AAA(NODES, np.exp(NODES))
    point = chosen.support_points[0]
    h = 1e-5
    np.testing.assert_allclose(grad(chosen)(point), (chosen(point + h) - chosen(point - h)) / (2 * h), rtol=1e-6)


SAMPLES = {
    "equal in both": (np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0])),
    "equal in one": (np.array([1.0, 1.0, 2.0]), np.array([3.0, 3.5])),
    "weights": (
        np.array([0.0, 1.0, 2.0]),
        np.array([1.0, 2.0, 3.0]),
        np.array([2.0, 2.0, 1.0]),
        np.array([2.0, 2.0, 1.0]),
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_wasserstein_distance_of_samples_with_equal_values(name):
    """The distance is smooth there; SciPy counts equal values as if they could not move apart."""
    u, v, *weights = SAMPLES[name]
    distance = lambda u, v: scipy.stats.wasserstein_distance(u, v, *weights)
    rng = np.random.default_rng(0)
    for _ in range(5):
        s, t = rng.normal(size=u.shape), rng.normal(size=v.shape)
        h = 1e-6
        want = (distance(u + h * s, v + h * t) - distance(u - h * s, v - h * t)) / (2 * h)
        value, tangent = jvp(distance, (u, v), (s, t))
        np.testing.assert_allclose(value, distance(u, v), rtol=1e-13)
        np.testing.assert_allclose(tangent, want, rtol=1e-8)
        of_u, of_v = grad(distance, (0, 1))(u, v)
        np.testing.assert_allclose(of_u @ s + of_v @ t, want, rtol=1e-8)
        np.testing.assert_allclose(vmap(grad(distance))(np.stack([u, u + 0.1]), np.stack([v, v]))[0], of_u, rtol=1e-13)
    np.testing.assert_allclose(
        grad(lambda u: scipy.stats.wasserstein_distance(u, [3.0, 3.5]))(np.ones(2)), [-0.5, -0.5]
    )


BILINEAR = [([0.0, 2.0, 1.0], [1.0, 2.0, 3.0]), ([0.0, 0.0, 1.0], [1.0, 2.0, 3.0]), ([0.0, 1.0], [1.0, 2.0, 3.0])]


@pytest.mark.parametrize(("b", "a"), BILINEAR)
def test_leading_coefficients_of_zero_in_the_bilinear_transform(b, a):
    """SciPy leaves out leading coefficients of 0, but the degree does not change with them here."""
    digital = lambda x: np.concatenate(scipy.signal.bilinear(x[: len(b)], x[len(b) :], fs=2.0))
    x = np.array([*b, *a])
    np.testing.assert_allclose(jvp(digital, (x,), (np.ones(len(x)),))[0], digital(x), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(jacrev(digital)(x), differences(digital, x), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(vmap(jacrev(digital))(np.stack([x, x]))[1], jacrev(digital)(x), rtol=1e-12, atol=1e-14)


def test_leading_coefficients_of_zero_that_change_the_degree():
    digital = lambda x: np.concatenate(scipy.signal.bilinear([0.0, 0.0, x], [x, 2.0]))
    value, slope = jvp(digital, (3.0,), (1.0,))
    np.testing.assert_allclose(value, digital(3.0), rtol=1e-13)
    np.testing.assert_allclose(slope, differences(digital, 3.0), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": None}] if HAS_AXIS else [{}], ids=str)
def test_data_of_zero_in_the_log_likelihood_of_yeojohnson(options):
    x = np.array([[0.0, 1.2, -0.7], [2.0, 0.0, 3.0], [0.5, -1.0, 0.0]])
    total = lambda x: np.sum(scipy.stats.yeojohnson_llf(0.3, x, **options))
    direction, h = np.random.default_rng(0).normal(size=x.shape), 1e-5
    want = (total(x + h * direction) - total(x - h * direction)) / (2 * h)
    np.testing.assert_allclose(np.sum(grad(total)(x) * direction), want, rtol=1e-5)
    np.testing.assert_allclose(jvp(total, (x,), (direction,))[1], want, rtol=1e-5)


ROTATION = scipy.spatial.transform.Rotation.from_rotvec([0.1, 0.2, 0.3])


@pytest.mark.parametrize("n", [0.0, 1.0, -1.0, 2.0])
def test_powers_of_rotations_have_derivatives(n):
    turned = lambda n: np.sum((scipy.spatial.transform.Rotation.from_rotvec([0.1, 0.2, 0.3]) ** n).as_rotvec())
    for fun in (turned, lambda n: np.sum((ROTATION**n).as_rotvec())):
        np.testing.assert_allclose(grad(fun)(n), 0.6, rtol=1e-12)
        np.testing.assert_allclose(jvp(fun, (n,), (1.0,))[1], 0.6, rtol=1e-12)
