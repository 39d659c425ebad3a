"""Functions of SciPy and scikit-learn on traced values: a right derivative or an error, never a wrong number.

These functions check classes and attributes and convert arrays in their own ways.
"""

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.optimize
import scipy.signal
import scipy.sparse
import scipy.sparse.linalg
import scipy.spatial
import scipy.special
import scipy.stats
from sklearn import decomposition, linear_model, metrics, preprocessing

import funcgrad.numpy as fnp
from funcgrad import grad, jvp, vmap

sp, sl = scipy.sparse, scipy.sparse.linalg
DENSE = np.array([[2.0, 0, 1], [0, 3, 0], [1, 0, 4]])
X = np.array([0.5, 1.5, 2.5])
A, M = sp.csr_array(DENSE), sp.csr_matrix(DENSE)
CONSTANT = np.array([1.0, 3.0, 2.0])


def with_data(x):
    made = A.copy()
    made.data = fnp.concatenate([x, x[:2]])
    return made


def with_entry(x):
    made = A.tolil()
    made[0, 0] = x[0]
    return made


SPARSE = {
    "A + x": lambda x: A + x,
    "A - x": lambda x: A - x,
    "x - A": lambda x: x - A,
    "A * x": lambda x: A * x,
    "A / x": lambda x: A / x,
    "A == x": lambda x: A == x,  # noqa: SIM300
    "A < x": lambda x: A < x,  # noqa: SIM300
    "A * x[0]": lambda x: A * x[0],
    "x[0] * A": lambda x: x[0] * A,
    "A / x[0]": lambda x: A / x[0],
    "M * x[0]": lambda x: M * x[0],
    "A ** x[0]": lambda x: A ** x[0],
    "multiply": lambda x: A.multiply(x),
    "maximum": lambda x: A.maximum(x),
    "data": with_data,
    "entry": with_entry,
    "diags_array": lambda x: sp.diags_array(x),
    "kron": lambda x: sp.kron(A, x[None]),
    "csr_array": lambda x: sp.csr_array(x[None]),
    "csr_array of data": lambda x: sp.csr_array((x, [0, 1, 2], [0, 1, 2, 3])),
    "vstack": lambda x: sp.vstack([A, x[None]]),
    "spsolve": lambda x: sl.spsolve(A.tocsc(), x),
    "cg": lambda x: sl.cg(A, x)[0],
    "expm_multiply": lambda x: sl.expm_multiply(A, x),
    "aslinearoperator": lambda x: sl.aslinearoperator(A) @ x,
    "LinearOperator": lambda x: sl.LinearOperator((3, 3), matvec=lambda v: DENSE @ v) @ x,
}
#: Options with fixed times, and accurate enough for differences: SciPy's steps depend on the arguments.
FINELY = {"t_eval": [0.5, 1.0], "rtol": 1e-10, "atol": 1e-12}
SCIPY = {
    "inv": lambda x: scipy.linalg.inv(fnp.diag(x)),
    "solve": lambda x: scipy.linalg.solve(DENSE, x),
    "block_diag": lambda x: scipy.linalg.block_diag(x, x),
    "toeplitz": lambda x: scipy.linalg.toeplitz(x),
    "zscore": lambda x: scipy.stats.zscore(x),
    "norm.pdf": lambda x: scipy.stats.norm.pdf(x),
    "norm of a location": lambda x: scipy.stats.norm(x[0], 1).logpdf(CONSTANT),
    "gmean": lambda x: scipy.stats.gmean(x),
    "rankdata": lambda x: scipy.stats.rankdata(x),
    "linregress": lambda x: np.asarray(scipy.stats.linregress(x, CONSTANT).slope),
    "lfilter": lambda x: scipy.signal.lfilter([1.0], [1.0, 0.5], x),
    "convolve": lambda x: scipy.signal.convolve(x, CONSTANT),
    "detrend": lambda x: scipy.signal.detrend(x),
    "freqz": lambda x: scipy.signal.freqz(x, worN=4)[1].real,
    "interp1d": lambda x: scipy.interpolate.interp1d(X, x)(1.0),
    "CubicSpline": lambda x: scipy.interpolate.CubicSpline(X, x)(1.0),
    "CubicSpline at x": lambda x: scipy.interpolate.CubicSpline([0.0, 1, 2, 3], [0.0, 1, 0, 1])(x),
    "lagrange": lambda x: scipy.interpolate.lagrange(X, x)(1.0),
    "trapezoid": lambda x: scipy.integrate.trapezoid(x),
    "simpson": lambda x: scipy.integrate.simpson(x),
    "quad": lambda x: scipy.integrate.quad(lambda t: x[0] * t, 0, 1)[0],
    "quad of a limit": lambda x: scipy.integrate.quad(lambda t: t, 0, x[0])[0],
    "solve_ivp": lambda x: scipy.integrate.solve_ivp(lambda t, y: -y, (0, 1), x, **FINELY).y,
    "solve_ivp of a rate": lambda x: scipy.integrate.solve_ivp(lambda t, y: -y * x[0], (0, 1), [1.0], **FINELY).y,
    "fixed_quad": lambda x: scipy.integrate.fixed_quad(lambda t: t * x[0], 0, 1)[0],
    "brentq": lambda x: scipy.optimize.brentq(lambda t: t - x[0], -9, 9),
    "newton": lambda x: scipy.optimize.newton(lambda t: t - x[0], 0.3),
    "minimize": lambda x: (
        scipy.optimize.minimize(lambda t: np.sum((t - x) ** 2), np.zeros(3), jac=lambda t: 2 * (t - x), tol=1e-10).x
    ),
    "root": lambda x: scipy.optimize.root(lambda t: t - x, np.zeros(3)).x,
    "rosen": lambda x: scipy.optimize.rosen(x),
    "gamma": lambda x: scipy.special.gamma(x),
    "logsumexp": lambda x: scipy.special.logsumexp(x),
    "factorial": lambda x: scipy.special.factorial(x),
    "comb": lambda x: scipy.special.comb(x, 2),
    "gaussian_filter": lambda x: scipy.ndimage.gaussian_filter(x, 1.0),
    "map_coordinates": lambda x: scipy.ndimage.map_coordinates(DENSE, [x, x]),
    "pdist": lambda x: scipy.spatial.distance.pdist(x[:, None]),
    "euclidean": lambda x: scipy.spatial.distance.euclidean(x, CONSTANT),
    "Rotation": lambda x: scipy.spatial.transform.Rotation.from_rotvec(x).as_matrix(),
    "KDTree": lambda x: scipy.spatial.KDTree(CONSTANT[:, None]).query(x[:, None] + 0.1)[0],
    "fft": lambda x: scipy.fft.fft(x).real,
}
LEARNING = {
    "LinearRegression": lambda x: linear_model.LinearRegression().fit(DENSE, x).coef_,
    "Ridge": lambda x: linear_model.Ridge(alpha=x[0]).fit(DENSE, CONSTANT).coef_,
    "predict": lambda x: linear_model.LinearRegression().fit(DENSE, CONSTANT).predict(x[None]),
    "scale": lambda x: preprocessing.scale(x),
    "StandardScaler": lambda x: preprocessing.StandardScaler().fit_transform(x[:, None]),
    "PCA": lambda x: decomposition.PCA(1).fit(fnp.outer(x, x)).explained_variance_,
    "mean_squared_error": lambda x: np.asarray(metrics.mean_squared_error(CONSTANT, x)),
    "rbf_kernel": lambda x: metrics.pairwise.rbf_kernel(x[:, None]),
}
PROGRAMS = SPARSE | SCIPY | LEARNING


def numbers(result):
    """Return an array of the result of a function."""
    result = result.toarray() if sp.issparse(result) else result
    assert getattr(result, "dtype", np.dtype(float)).kind != "O"
    return result


def measured(program):
    """Return the slopes along each axis, by central differences, or None if SciPy refuses ndarrays."""
    h = 1e-5
    try:
        return [
            np.sum(numbers(program(X + h * v)) * 1.0 - numbers(program(X - h * v)) * 1.0) / (2 * h) for v in np.eye(3)
        ]
    except TypeError:
        return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_right_or_raise(name):
    program = PROGRAMS[name]
    total = lambda x: fnp.sum(numbers(program(x)) * 1.0)
    runs = {
        "grad": lambda: grad(total)(X),
        "jvp": lambda: [jvp(total, (X,), (v,))[1] for v in np.eye(3)],
        "vmap": lambda: vmap(grad(total))(np.stack([X, X]))[0],
    }
    for run in runs.values():
        try:
            got = run()
        except AssertionError:
            raise
        except Exception:  # an error of funcgrad or of the library
            continue
        want = measured(program)
        assert want is not None
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_some_functions_are_differentiated():
    for name in ("A - x", "maximum", "fixed_quad", "newton", "gamma"):
        total = lambda x, name=name: fnp.sum(numbers(PROGRAMS[name](x)) * 1.0)
        np.testing.assert_allclose(grad(total)(X), measured(PROGRAMS[name]), rtol=1e-6, atol=1e-6)
