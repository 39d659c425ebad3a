"""Calls of SciPy inside of ordinary programs."""

import math

import numpy as np
import scipy
import scipy.special as sp
from scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, sparse, spatial, special, stats
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.spatial.distance import cdist, pdist, squareform
from scipy.spatial.transform import Rotation
from scipy.stats import gamma, multivariate_normal, norm

T = np.linspace(0.0, 1.0, 9)
SAMPLE = np.array([0.8, 1.3, 2.1, 3.4, 0.4])
MATRIX = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]])
CURVE = interpolate.CubicSpline(T, np.sin(3 * T))
PIECES = interpolate.PchipInterpolator(T, T**2)
LINE = interpolate.interp1d(T, np.cos(T))
SPLINE = interpolate.splrep(T, np.exp(T))
BSPLINE = interpolate.make_interp_spline(T, np.exp(-T))
SMOOTH = interpolate.UnivariateSpline(T, np.sin(T), s=0)
AKIMA = interpolate.Akima1DInterpolator(T, T**3)
GRID = interpolate.RegularGridInterpolator((T, T), np.outer(T, np.exp(T)))
PRIOR = norm(0.5, 2.0)
SHAPE_PRIOR = gamma(2.0, scale=0.7)
ROTATION = Rotation.from_euler("xyz", [0.1, 0.2, 0.3])
FILTER = signal.butter(2, 0.3)
SECTIONS = signal.butter(4, 0.3, output="sos")
LAPLACIAN = sparse.diags([[-1.0] * 3, [2.5] * 4, [-1.0] * 3], [-1, 0, 1]).tocsc()
POLYNOMIAL = np.poly1d([1.0, -2.0, 0.5])
SERIES = np.polynomial.Chebyshev([0.5, 1.0, -0.3])


def log_likelihood(x):
    return np.sum(norm.logpdf(SAMPLE, loc=x[0], scale=x[1]))


def gamma_likelihood(x):
    return -gamma.logpdf(SAMPLE, x[0], scale=x[1]).sum()


def frozen_distribution(x):
    return PRIOR.logpdf(x[0]) + SHAPE_PRIOR.logpdf(x[1]) + PRIOR.cdf(x[1])


def frozen_inside(x):
    d = stats.t(df=3, loc=x[0], scale=x[1])
    return d.logpdf(SAMPLE).sum() + d.sf(0.2)


def beta_distribution(x):
    return stats.beta.pdf(0.3, x[0], x[1]) + stats.beta.cdf(0.4, x[0], x[1])


def weibull(x):
    return stats.weibull_min.logpdf(SAMPLE, x[0], scale=x[1]).sum() + stats.expon.logsf(1.0, scale=x[1])


def multivariate(x):
    cov = np.array([[x[0] ** 2 + 1, 0.3], [0.3, x[1]]])
    return multivariate_normal.logpdf(np.array([0.1, 0.5]), mean=[x[0], 0.2], cov=cov)


def multivariate_frozen(x):
    return multivariate_normal(mean=x, cov=np.eye(2)).logpdf([0.3, 0.4]) + stats.multivariate_normal.pdf(x, [0.0, 0.1])


def discrete(x):
    return stats.poisson.logpmf([1, 2, 4], x[0]).sum() + stats.binom.logpmf(3, 5, x[1] / 3)


def quantiles(x):
    return stats.norm.ppf(0.3, x[0], x[1]) + stats.gamma.ppf(0.6, x[1])


def moments_of_samples(x):
    y = np.array([x[0], x[1], x[0] * x[1], 0.3])
    return stats.skew(y) + stats.kurtosis(y) + stats.gmean(y) + stats.sem(y) + stats.hmean(y)


def z_scores(x):
    y = np.concatenate([x, [0.1, 0.7, 2.0]])
    return stats.zscore(y)[0] + stats.variation(y) + stats.pearsonr(y, np.arange(5.0))[0]


def linear_regression(x):
    y = np.array([x[0], x[1], 2.0, 3.5])
    found = stats.linregress(np.arange(4.0), y)
    return found.slope + found.intercept + found.rvalue


def entropies(x):
    return stats.entropy(np.array([x[0], x[1], 0.5])) + special.rel_entr(x[0], x[1]) + special.entr(x[1])


def kernel_density(x):
    return stats.gaussian_kde(SAMPLE)(x).sum()


def solves(x):
    A = MATRIX + np.diag([x[0], x[1], 0.0])
    return linalg.solve(A, np.ones(3)).sum() + linalg.det(A) + linalg.inv(A)[0, 1]


def cholesky_solve(x):
    c = cho_factor(MATRIX * x[0])
    L = linalg.cholesky(MATRIX + x[1] * np.eye(3), lower=True)
    return cho_solve(c, np.ones(3)).sum() + solve_triangular(L, np.arange(3.0), lower=True).sum()


def decompositions(x):
    A = MATRIX + np.outer([x[0], 0.1, 0.2], [1.0, x[1], 0.3])
    q, r = linalg.qr(A)
    lu, piv = linalg.lu_factor(A)
    return np.abs(r).sum() + linalg.lu_solve((lu, piv), np.ones(3)).sum() + linalg.svdvals(A).sum()


def eigenvalues(x):
    A = MATRIX + np.diag([x[0], 0.0, x[1]])
    w, v = linalg.eigh(A)
    return w[0] + np.abs(v[:, 2]).sum() + linalg.eigvalsh(A).prod()


def matrix_functions(x):
    A = np.array([[x[0], 0.3], [0.1, x[1]]])
    return linalg.expm(A).sum() + linalg.sqrtm(A + np.eye(2)).real.sum() + linalg.logm(A + 2 * np.eye(2)).real.trace()


def structured_matrices(x):
    return linalg.toeplitz(x, x)[1, 0] + linalg.block_diag(x, MATRIX * x[0]).sum() + linalg.norm(linalg.circulant(x))


def banded(x):
    ab = np.vstack([np.full(4, -1.0), np.full(4, 2.0 + x[0]), np.full(4, -x[1])])
    return linalg.solve_banded((1, 1), ab, np.arange(4.0)).sum()


def least_squares_solution(x):
    A = np.vander(T, 3) + x[0] * 0.01
    return linalg.lstsq(A, np.sin(T * x[1]))[0].sum()


def sylvester(x):
    A, B = np.diag(x), np.array([[1.0, 0.2], [0.1, 2.0]])
    return linalg.solve_sylvester(A, B, np.ones((2, 2))).sum() + linalg.solve_continuous_lyapunov(-A, -B).sum()


def special_functions(x):
    return special.gammaln(x[0]) + sp.erf(x[1]) + special.expit(x[0]) + special.jv(1, x[1]) + special.betaln(x[0], x[1])


def more_special_functions(x):
    return (
        special.digamma(x[0])
        + special.logsumexp([x[0], x[1], 0.3])
        + special.softmax(x)[0]
        + special.ellipk(0.3 * x[0])
    )


def still_more_special_functions(x):
    return (
        special.hyp2f1(0.5, 1.0, 1.5, 0.2 * x[0])
        + special.zeta(2 + x[1])
        + special.lambertw(x[0]).real
        + special.airy(x[0])[0]
    )


def polynomials(x):
    return special.eval_legendre(3, 0.3 * x[0]) + special.legendre(3)(0.2 * x[1]) + POLYNOMIAL(x[0]) + SERIES(x[1])


def combinations(x):
    return (
        special.comb(5, 2) * x[0]
        + special.binom(x[1] + 3, 2)
        + special.factorial(3) * x[1]
        + special.multigammaln(x[0] + 2, 2)
    )


def quadrature(x):
    return integrate.quad(lambda t: math.exp(-x[0] * t) * math.sin(x[1] * t), 0, 2)[0]


def quadrature_with_args(x):
    return integrate.quad(lambda t, a, b: a * np.cos(b * t), 0, 1, args=(x[0], x[1]))[0]


def samples(x):
    y = np.sin(T * x[0]) * x[1]
    return integrate.simpson(y, x=T) + integrate.trapezoid(y, T) + integrate.cumulative_trapezoid(y, T, initial=0).sum()


def initial_value_problem(x):
    def rhs(t, y):
        return [y[1], -x[0] * y[0] - x[1] * y[1]]

    found = integrate.solve_ivp(rhs, (0, 1), [1.0, 0.0], t_eval=[0.5, 1.0], rtol=1e-9, atol=1e-10)
    return found.y[0].sum()


def old_integrator(x):
    y = integrate.odeint(lambda y, t, k: -k * y + x[1], [1.0], T, args=(x[0],), rtol=1e-10, atol=1e-10)
    return y[-1, 0]


def integrators_by_name(x):
    total = 0.0
    for name in ("vode", "lsoda", "dopri5", "dop853"):
        way = integrate.ode(lambda t, y, k: [y[1], -k * y[0] - x[1] * y[1]])
        way.set_integrator(name, rtol=1e-11, atol=1e-12).set_initial_value([1.0, x[1]], 0.0).set_f_params(x[0])
        while way.successful() and way.t < 1.0:
            total += way.integrate(way.t + 0.5)[0]
    swings = integrate.complex_ode(lambda t, y: 1j * x[0] * y).set_integrator("dopri5", rtol=1e-11, atol=1e-12)
    return total + swings.set_initial_value(1.0 + 0j).integrate(1.0)[0].real


def fixed_quadrature(x):
    return integrate.fixed_quad(lambda t: np.exp(-x[0] * t**2) * x[1], 0, 1, n=5)[0]


def double_integral(x):
    return integrate.dblquad(lambda u, v: x[0] * u * v + x[1], 0, 1, 0, 1)[0]


def splines_of_constants(x):
    return CURVE(x[0] / 2) + CURVE(x[1] / 3, 1) + PIECES(x[0] / 3) + AKIMA(x[1] / 4)


def more_splines_of_constants(x):
    return LINE(x[0] / 3) + interpolate.splev(x[1] / 3, SPLINE) + BSPLINE(x[0] / 2) + SMOOTH(x[1] / 2)


def table_of_constants(x):
    return GRID((x[0] / 3, x[1] / 3)).item() + GRID(np.array([[x[0] / 2, 0.3]]))[0]


def splines_of_traced_values(x):
    y = np.sin(T * x[0])
    return (
        interpolate.CubicSpline(T, y)(0.37) + interpolate.interp1d(T, y, kind="cubic")(x[1] / 3) + np.interp(0.2, T, y)
    )


def integral_of_a_spline(x):
    return CURVE.integrate(0.1, x[0] / 2) + CURVE.derivative()(x[1] / 3) + CURVE.antiderivative()(x[1] / 2)


def roots(x):
    return optimize.brentq(lambda t: t**3 - x[0] * t - x[1], 0.0, 4.0) + optimize.newton(lambda t: t * t - x[1], 1.0)


def systems_of_equations(x):
    return optimize.fsolve(lambda p: [p[0] ** 2 - x[0], p[0] * p[1] - x[1]], [1.0, 1.0]).sum()


def root_of_system(x):
    return optimize.root(
        lambda p: np.array([p[0] + 0.1 * p[1] - x[0], p[1] - math.sin(p[0]) - x[1]]), np.zeros(2)
    ).x.sum()


def minima(x):
    found = optimize.minimize(lambda p: (p[0] - x[0]) ** 2 + x[1] * p[0] ** 4, [0.5], tol=1e-10)
    return found.x[0]


def scalar_minimum(x):
    return optimize.minimize_scalar(
        lambda t: (t - x[0]) ** 2 * x[1] + t**4, bounds=(0, 3), method="bounded", options={"xatol": 1e-10}
    ).x


def curve_fitting(x):
    y = x[0] * np.exp(-x[1] * T)
    popt, _ = optimize.curve_fit(lambda t, a, b: a / (1 + b * t), T, y, p0=[1.0, 1.0])
    return popt.sum()


def filters(x):
    b, a = FILTER
    s = np.sin(T * x[0]) * x[1]
    return signal.lfilter(b, a, s).sum() + signal.sosfilt(SECTIONS, s)[-1] + signal.lfilter([x[0]], [1.0, 0.2], s)[3]


def smoothing(x):
    s = np.sin(T * x[0]) * x[1]
    return signal.savgol_filter(s, 5, 2)[2] + signal.filtfilt(*FILTER, s, padlen=3)[4] + signal.detrend(s)[1]


def convolutions(x):
    return signal.convolve(T, x).sum() + signal.fftconvolve(T, x, mode="same")[2] + signal.correlate(T, x)[3]


def spectra(x):
    s = np.sin(7 * T * x[0]) * x[1]
    return signal.welch(s, nperseg=8)[1].sum() + np.abs(signal.hilbert(s)).sum() + signal.periodogram(s)[1][2]


def frequency_response(x):
    w, h = signal.freqz([1.0, x[0]], [1.0, 0.3 * x[1]], worN=5)
    return np.abs(h).sum()


def fourier(x):
    return (
        np.abs(fft.fft(np.append(x, [0.5, 0.1]))).sum()
        + fft.dct(x)[1]
        + fft.rfft(x)[0].real
        + np.abs(np.fft.rfft(x)).sum()
    )


def images(x):
    image = np.outer(T[:5], T[:5]) * x[0] + np.eye(5) * x[1]
    return (
        ndimage.gaussian_filter(image, 1.0)[2, 2]
        + ndimage.convolve(image, np.ones((3, 3)))[1, 1]
        + ndimage.sobel(image)[2, 3]
    )


def interpolated_images(x):
    image = np.outer(T, T**2)
    return (
        ndimage.map_coordinates(image, [[x[0] + 1.2], [x[1] + 2.1]], order=1)[0]
        + ndimage.shift(image * x[0], 0.5, order=1)[3, 3]
    )


def distances(x):
    points = np.array([[x[0], 0.1], [1.0, x[1]], [0.3, 2.0]])
    return pdist(points).sum() + cdist(points, points[:1], "sqeuclidean").sum() + squareform(pdist(points))[0, 2]


def single_distances(x):
    u, v = np.array([x[0], 1.0, 2.0]), np.array([0.5, x[1], 0.1])
    d = spatial.distance
    return d.euclidean(u, v) + d.cosine(u, v) + d.cityblock(u, v) + d.minkowski(u, v, 3) + d.correlation(u, v)


def rotations(x):
    r = Rotation.from_rotvec([x[0], 0.2, x[1]])
    return (
        r.apply([1.0, 2.0, 3.0]).sum()
        + ROTATION.apply(np.array([x[0], x[1], 1.0]))[0]
        + (ROTATION * r).as_matrix()[0, 1]
    )


def sparse_products(x):
    v = np.array([x[0], x[1], 1.0, 2.0])
    return (LAPLACIAN @ v).sum() + LAPLACIAN.dot(v)[1] + (LAPLACIAN * x[0]).sum()


def sparse_solution(x):
    return sparse.linalg.spsolve(LAPLACIAN, np.array([x[0], x[1], 1.0, 2.0])).sum()


def sparse_matrix_inside(x):
    A = sparse.csr_matrix((np.array([x[0], x[1], 2.0]), ([0, 1, 2], [0, 1, 2])), shape=(3, 3))
    return (A @ np.ones(3)).sum() + A.toarray()[1, 1]


def exponential_of_banded(x):
    return linalg.eigvalsh_tridiagonal(np.array([x[0], 2.0, 3.0]), np.array([x[1], 0.5])).max()


def constants(x):
    return scipy.constants.g * x[0] if hasattr(scipy, "constants") else 9.80665 * x[0] + x[1] * 0


def information(x):
    p, q = np.array([0.2, 0.8]), np.array([x[0], x[1]]) / (x[0] + x[1])
    return special.kl_div(p, q).sum() + spatial.distance.jensenshannon(p, q)


def windows(x):
    return (
        (signal.windows.gaussian(5, x[0] + 1)).sum()
        + signal.windows.kaiser(5, x[1]).sum()
        + signal.get_window("hann", 4).sum() * x[0]
    )


def trimmed(x):
    y = np.concatenate([x, SAMPLE])
    return (
        stats.trim_mean(y, 0.2)
        + stats.iqr(y)
        + stats.median_abs_deviation(y)
        + stats.mode(np.array([1, 1, 2])).mode * x[0]
    )


def tests_of_hypotheses(x):
    y = np.concatenate([x, SAMPLE])
    return stats.ttest_1samp(y, 0.5).statistic + stats.ttest_ind(y, SAMPLE * 1.3).pvalue + stats.chisquare(y).statistic


def transformations(x):
    y = np.concatenate([x, SAMPLE])
    return stats.boxcox(y, lmbda=0.3).sum() + stats.yeojohnson(y, lmbda=0.5).sum() + stats.boxcox_llf(0.4, y)


def orthogonal_polynomials(x):
    nodes, weights = special.roots_legendre(4)
    return np.sum(weights * np.exp(nodes * x[0])) + np.polynomial.legendre.legval(x[1] / 3, [1.0, 0.5, 0.2])


def procrustes(x):
    a = np.array([[x[0], 0.1], [1.0, x[1]], [0.3, 2.0]])
    return spatial.procrustes(a, a[:, ::-1] + np.eye(3, 2))[2] + linalg.orth(a).sum() ** 2


def quantiles_with_traced_scales(x):
    first = stats.foldnorm.ppf(0.3, 1.2, loc=x[0], scale=x[1]) + stats.gompertz.isf(0.4, x[0], scale=x[1])
    return first + stats.burr(2.0, x[0], scale=x[1]).ppf([0.2, 0.7]).sum()


def two_sided_distributions(x):
    total = stats.dgamma.cdf(-x[0], 1.3, scale=x[1]) + stats.dgamma.sf(x[0], x[1]) * stats.dgamma.logcdf(x[1], 2.0)
    return total + stats.dgamma.ppf(0.3, x[0], scale=x[1]) + stats.dgamma.isf(0.3, x[0])


def other_distributions(x):
    total = stats.pearson3.logpdf(x[0], x[1]) + stats.pearson3.cdf(x[0], -1.2) + stats.cosine.cdf(x[0], scale=x[1])
    return total + stats.semicircular.ppf(x[0]) + stats.betaprime.ppf(0.3, x[0], x[1])


def sparse_from_dense(x):
    A = sparse.csc_matrix(np.outer(x, x) + np.diag([2.0, 3.0]))
    return sparse.linalg.spsolve(A, np.ones(2)).sum() + sparse.csr_array(np.diag(x)).toarray().sum()


def roots_of_systems(x):
    return optimize.fsolve(lambda t: t**3 + t - x, np.ones(2), xtol=1e-13).sum()


def mixture(x):
    samples, weight, means = np.array([-1.0, 0.0, 0.5, 2.0, 2.2]), x[0], np.array([0.5, x[1]])
    for _ in range(3):
        densities = stats.norm.pdf(samples[:, None], means, 1.0) * [weight, 1.0 - weight]
        shares = densities / densities.sum(axis=1, keepdims=True)
        weight, means = shares[:, 0].mean(), (shares * samples[:, None]).sum(0) / shares.sum(0)
    return np.log(densities.sum(axis=1)).sum()


def integral_of_curves(x):
    curve = interpolate.PchipInterpolator(T, np.sin(T * x[0]))
    bent = interpolate.CubicSpline(T, np.cos(T * x[1]), bc_type="natural")
    return curve.derivative()(x[1] / 3) + curve.integrate(0.1, x[0] / 2) + bent.antiderivative()(0.4)


def option_by_its_characteristic_function(x):
    kappa, sigma = x
    rate, start, correlation = 0.04, 0.05, -0.5

    def characteristic(u):
        slope = kappa - correlation * sigma * 1j * u
        d = np.sqrt(slope**2 + sigma**2 * (1j * u + u**2))
        g = (slope - d) / (slope + d)
        first = kappa * rate / sigma**2 * (slope - d - 2 * np.log((1 - g * np.exp(-d)) / (1 - g)))
        return np.exp(first + start * (slope - d) / sigma**2 * (1 - np.exp(-d)) / (1 - g * np.exp(-d)))

    shift = np.exp(1j * kappa) * sigma
    found = integrate.quad(lambda u: (np.exp(-0.05j * u) * characteristic(u) / (1j * u)).real, 1e-8, 20.0)[0]
    return (
        0.5 + found / np.pi + integrate.quad(lambda u: (shift * np.exp(1j * u) * np.cos(shift * u)).real, 0, sigma)[0]
    )


def lengths(x):
    return linalg.norm(x) + linalg.norm(np.outer(x, x) + MATRIX[:2, :2], 1) + linalg.norm(x[:1]) * linalg.norm(x, 3)


def records(x):
    bodies = np.zeros(2, dtype=[("mass", float), ("speed", float)])
    bodies["speed"] = [1.0, 2.0]
    return np.add.reduce(0.5 * np.array([*x]) * bodies["speed"] ** 2)


X = np.array([0.6, 1.4])
PROGRAMS = [
    (f, X)
    for name, f in list(globals().items())
    if callable(f) and getattr(f, "__module__", "") == __name__ and name != "_"
]
