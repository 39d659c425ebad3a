"""Functions of SciPy and scikit-learn that are written against the array API standard, on traced values.

``test_array_api.py`` runs this file in a process of its own, because SciPy reads SCIPY_ARRAY_API at import. These
libraries need all arrays in one namespace, so constant data are made by the namespace of the traced data; where the
data are NumPy's, the function is run as rewritten NumPy code.
"""

import os

import numpy as np
import pytest
import scipy.differentiate
import scipy.fft
import scipy.integrate
import scipy.signal
import scipy.special
import scipy.stats
import sklearn
from scipy.spatial.transform import Rotation
from sklearn import decomposition, discriminant_analysis, linear_model, metrics, naive_bayes, preprocessing
from sklearn.metrics import pairwise

import funcgrad.numpy as fnp
from funcgrad import as_written, check_grads, grad, hessian, jacrev, jvp, vmap
from funcgrad.errors import ConcretizationError
from funcgrad.interop import from_array_api

assert os.environ["SCIPY_ARRAY_API"] == "1"

integrate, signal, special, stats = scipy.integrate, scipy.signal, scipy.special, scipy.stats
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(0.2, 0.9, 6), RNG.uniform(0.2, 0.9, 6)
POINTS, OTHERS = RNG.uniform(0.2, 0.9, (5, 2)), RNG.uniform(0.2, 0.9, (3, 2))
LABELS = np.array([0, 1, 0, 1, 1])
XP = fnp


def data(values):
    return XP.asarray(values, copy=True)


def standard(fun):
    """Return ``fun`` as a function for any array library, with ``data`` in the namespace of its argument."""

    def inside(x):
        global XP
        before, XP = XP, x.__array_namespace__()
        try:
            return fun(x)
        finally:
            XP = before

    return from_array_api(inside)


#: Functions that mix a traced array with NumPy's booleans, counts and constants outside of ``from_array_api``.
MIXED = ("stats.tmean", "stats.lmoment", "stats.variation", "Ridge")


@pytest.fixture(autouse=True)
def dispatching():
    with sklearn.config_context(array_api_dispatch=True):
        yield


def total(result):
    """Return a number that depends on every entry of the result."""
    if isinstance(result, tuple):
        return sum(map(total, result))
    if result.dtype.kind == "c":
        return total(fnp.real(result)) + total(2 * fnp.imag(result))
    return fnp.sum(result * fnp.arange(1.0, result.size + 1).reshape(result.shape))


#: SciPy's Simpson rule follows the standard since 1.18.
SIMPSON_IS_STANDARD = "array_namespace" in integrate.simpson.__code__.co_names

SCIPY = {
    "special.logsumexp": special.logsumexp,
    "special.softmax": special.softmax,
    "special.log_softmax": special.log_softmax,
    "special.xlogy": lambda x: special.xlogy(x, data(Y)),
    "special.rel_entr": lambda x: special.rel_entr(x, data(Y)),
    "stats.gmean": stats.gmean,
    "stats.hmean": stats.hmean,
    "stats.pmean": lambda x: stats.pmean(x, 3),
    "stats.moment": lambda x: stats.moment(x, 3),
    "stats.skew": stats.skew,
    "stats.kurtosis": stats.kurtosis,
    "stats.variation": stats.variation,
    "stats.sem": stats.sem,
    "stats.zscore": stats.zscore,
    "stats.zmap": lambda x: stats.zmap(x, data(Y)),
    "stats.gzscore": stats.gzscore,
    "stats.tmean": lambda x: stats.tmean(x, (0.3, 0.8)),
    "stats.tstd": lambda x: stats.tstd(x, (0.1, 0.95)),
    "stats.iqr": stats.iqr,
    "stats.trim_mean": lambda x: stats.trim_mean(x, 0.2),
    "stats.circmean": stats.circmean,
    "stats.circvar": stats.circvar,
    "stats.entropy": lambda x: stats.entropy(x, data(Y)),
    "stats.lmoment": stats.lmoment,
    "stats.boxcox_llf": lambda x: stats.boxcox_llf(0.7, x),
    "stats.describe": lambda x: stats.describe(x).variance,
    "signal.fftconvolve": lambda x: signal.fftconvolve(x, data(Y)),
    "signal.oaconvolve": lambda x: signal.oaconvolve(x, data(Y[:2])),
    "signal.convolve": lambda x: signal.convolve(x, data(Y), method="fft"),
    "signal.correlate": lambda x: signal.correlate(x, data(Y), method="fft"),
    "signal.hilbert": signal.hilbert,
    "signal.envelope": lambda x: signal.envelope(x, (None, None)),
    "signal.resample": lambda x: signal.resample(x, 4),
    "signal.freqz": lambda x: signal.freqz(x, worN=8),
    "signal.vectorstrength": lambda x: signal.vectorstrength(x, 1.3),
    "integrate.trapezoid": integrate.trapezoid,
    "integrate.trapezoid over x": lambda x: integrate.trapezoid(data(Y), x),
    "integrate.cumulative_trapezoid": integrate.cumulative_trapezoid,
    "integrate.cumulative_simpson": lambda x: integrate.cumulative_simpson(x),
    **({"integrate.simpson": integrate.simpson} if SIMPSON_IS_STANDARD else {}),
    "integrate.tanhsinh": lambda x: integrate.tanhsinh(lambda t: fnp.exp(-t * t), x - 1, x + 1.0).integral,
    "fft.rfft": scipy.fft.rfft,
    "fft.fftn": lambda x: scipy.fft.fftn(fnp.reshape(x, (2, 3))),
    "Rotation.from_rotvec": lambda x: Rotation.from_rotvec(x[:3]).as_matrix(),
    "Rotation.from_euler": lambda x: Rotation.from_euler("xyz", x[:3]).as_quat(),
    "Rotation.apply": lambda x: Rotation.from_quat(x[:4]).apply(data(Y[:3])),
    "differentiate.derivative": lambda x: scipy.differentiate.derivative(fnp.sin, x).df,
}


@pytest.mark.parametrize("name", SCIPY)
def test_scipy_is_differentiated(name):
    fun = standard(SCIPY[name])
    tolerance = 1e-5 if name in ("differentiate.derivative", "integrate.tanhsinh") else None
    check_grads(
        lambda x: total(fun(x)), (X,), order=1, **({} if tolerance is None else {"rtol": tolerance, "atol": 1e-7})
    )


def test_scipy_matches_closed_forms():
    n = X.size
    assert np.allclose(grad(stats.gmean)(X), stats.gmean(X) / (n * X))
    assert np.allclose(jacrev(special.softmax)(X), np.diag(special.softmax(X)) - np.outer(*[special.softmax(X)] * 2))
    assert np.allclose(grad(lambda y: integrate.trapezoid(y, dx=0.5))(X), [0.25, 0.5, 0.5, 0.5, 0.5, 0.25])
    z = stats.zscore(X)
    assert np.allclose(jacrev(stats.zscore)(X), (np.eye(n) - 1 / n - np.outer(z, z) / n) / X.std())
    assert np.allclose(grad(lambda x: special.rel_entr(x, data(Y)).sum())(X), np.log(X / Y) + 1)


def test_scipy_at_higher_orders_and_in_batches():
    assert np.allclose(hessian(special.logsumexp)(X), jacrev(special.softmax)(X))
    xs = np.stack([X, 2 * X, Y])
    for theirs in (stats.skew, stats.variation, special.logsumexp, stats.gmean):
        fun = standard(theirs)
        one_by_one = np.stack([grad(fun)(x) for x in xs])
        assert np.allclose(vmap(grad(fun))(xs), one_by_one)
        assert np.allclose(jvp(fun, (X,), (Y,))[1], grad(fun)(X) @ Y)


REFUSED = {
    "signal.lfilter": lambda x: signal.lfilter(data(Y[:2]), data(np.array([1.0, 0.3])), x),
    "signal.welch": lambda x: signal.welch(x, nperseg=4)[1],
    **({} if SIMPSON_IS_STANDARD else {"integrate.simpson": integrate.simpson}),
    "stats.linregress": lambda x: stats.linregress(x, data(Y)).slope,
    "fft.dct": scipy.fft.dct,
    "mean_squared_error": lambda x: metrics.mean_squared_error(data(Y), x),
    "log_loss": lambda x: metrics.log_loss(data(np.arange(6) % 2), x),
}


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("name", REFUSED)
def test_calls_outside_the_standard_raise(name):
    """SciPy's compiled code and Python's float() would both lose the derivative."""
    with pytest.raises(ConcretizationError, match="converting a traced value to a plain one"):
        grad(lambda x: fnp.sum(standard(REFUSED[name])(x)))(X)


@pytest.mark.usefixtures("written")
def test_two_namespaces_raise():
    with pytest.raises(TypeError, match="Multiple namespaces"):
        grad(lambda x: fnp.sum(pairwise.rbf_kernel(x, OTHERS)))(POINTS)
    together = from_array_api(pairwise.rbf_kernel)
    want = grad(lambda x: fnp.sum(pairwise.rbf_kernel(x, fnp.array(OTHERS))))(POINTS)
    assert np.allclose(grad(lambda x: fnp.sum(together(x, OTHERS)))(POINTS), want)


LEARNING = {
    "mean_squared_error": lambda x: metrics.mean_squared_error(data(POINTS[::-1]), x, multioutput="raw_values"),
    "mean_absolute_error": lambda x: metrics.mean_absolute_error(data(POINTS[::-1]) + 0.1, x, multioutput="raw_values"),
    "r2_score": lambda x: metrics.r2_score(data(POINTS[::-1]), x, multioutput="raw_values"),
    "explained_variance": lambda x: metrics.explained_variance_score(data(POINTS[::-1]), x, multioutput="raw_values"),
    "euclidean_distances": lambda x: pairwise.euclidean_distances(x, data(OTHERS)),
    "cosine_similarity": lambda x: pairwise.cosine_similarity(x, data(OTHERS)),
    "linear_kernel": lambda x: pairwise.linear_kernel(x, data(OTHERS)),
    "polynomial_kernel": lambda x: pairwise.polynomial_kernel(x, data(OTHERS)),
    "rbf_kernel": lambda x: pairwise.rbf_kernel(x, data(OTHERS)),
    "laplacian_kernel": lambda x: pairwise.laplacian_kernel(x, data(OTHERS)),
    "sigmoid_kernel": lambda x: pairwise.sigmoid_kernel(x, data(OTHERS)),
    "chi2_kernel": lambda x: pairwise.chi2_kernel(x, data(OTHERS)),
    "paired_cosine_distances": lambda x: pairwise.paired_cosine_distances(x, data(POINTS[::-1] + 0.1)),
    "pairwise_kernels": lambda x: pairwise.pairwise_kernels(x, data(OTHERS), metric="rbf"),
    "MinMaxScaler": lambda x: preprocessing.MinMaxScaler().fit_transform(x),
    "MaxAbsScaler": lambda x: preprocessing.MaxAbsScaler().fit_transform(x),
    "normalize": preprocessing.normalize,
    "PolynomialFeatures": lambda x: preprocessing.PolynomialFeatures().fit_transform(x),
    "PCA": lambda x: decomposition.PCA(1, svd_solver="full").fit(x).explained_variance_,
    "Ridge": lambda x: linear_model.Ridge(solver="svd").fit(x, data(Y[:5])).coef_,
    "LinearDiscriminantAnalysis": lambda x: (
        discriminant_analysis.LinearDiscriminantAnalysis().fit(x, data(LABELS)).scalings_ ** 2
    ),
    "GaussianNB": lambda x: naive_bayes.GaussianNB(var_smoothing=2.0).fit(data(POINTS), data(LABELS)).predict_proba(x),
}


@pytest.mark.parametrize("name", LEARNING)
def test_scikit_learn_is_differentiated(name):
    fun = standard(LEARNING[name])
    check_grads(lambda x: total(fun(x)), (POINTS,), order=1)


@pytest.mark.parametrize("name", [*SCIPY, *LEARNING])
def test_mixed_namespaces_are_correct_or_raise(name):
    fun, x = (SCIPY[name], X) if name in SCIPY else (LEARNING[name], POINTS)
    plain = lambda x: total(fun(x))
    if name in MIXED:
        with as_written(), pytest.raises(TypeError, match="Multiple namespaces") as caught:
            grad(plain)(x)
        assert "from_array_api(f)" in caught.value.__notes__[-1]
    else:
        assert np.allclose(grad(plain)(x), grad(lambda x: total(standard(fun)(x)))(x), rtol=1e-10)


def test_scikit_learn_matches_closed_forms():
    truth = POINTS[::-1] ** 2
    error = grad(lambda x: metrics.mean_squared_error(data(truth), x, multioutput="raw_values")[0])(POINTS)
    assert np.allclose(error, 2 / 5 * (POINTS - truth) * [1, 0])
    score = grad(lambda x: metrics.r2_score(data(truth), x, multioutput="raw_values")[1])(POINTS)
    spread = ((truth - truth.mean(0)) ** 2).sum(0)
    assert np.allclose(score, 2 * (truth - POINTS) / spread * [0, 1])
    kernel = pairwise.rbf_kernel(POINTS, OTHERS, gamma=0.7)
    slope = grad(lambda x: fnp.sum(pairwise.rbf_kernel(x, data(OTHERS), gamma=0.7)))(POINTS)
    assert np.allclose(slope, (-1.4 * kernel[..., None] * (POINTS[:, None] - OTHERS)).sum(1))
    weights = np.linalg.solve(np.eye(2) + (c := POINTS - POINTS.mean(0)).T @ c, c.T)
    ridge = jacrev(standard(lambda y: linear_model.Ridge(solver="svd").fit(data(POINTS), y).coef_))(Y[:5])
    assert np.allclose(ridge, weights - weights.mean(1, keepdims=True))


def test_training_through_scikit_learn_kernel():
    """Train a network through a kernel of scikit-learn: the loss decreases along the gradient."""

    def loss(w):
        features = fnp.tanh(data(POINTS) @ w)
        return fnp.sum((pairwise.rbf_kernel(features, features) - data((LABELS[:, None] == LABELS) * 1.0)) ** 2)

    w = np.array([[1.0, -0.5], [0.3, 0.8]])
    start = loss(w)
    for _ in range(20):
        w = w - 0.05 * grad(loss)(w)
    assert loss(w) < 0.9 * start


BESIDE = {
    "pearsonr": lambda x: stats.pearsonr(x, Y).statistic,
    "ttest_ind": lambda x: stats.ttest_ind(x, Y).statistic,
    "zmap": lambda x: stats.zmap(x, Y),
    "entropy": lambda x: stats.entropy(x, Y),
    "gmean": lambda x: stats.gmean(x, weights=Y),
    "xlogy": lambda x: special.xlogy(x, Y),
    "rel_entr": lambda x: special.rel_entr(x, Y),
    "logsumexp": lambda x: special.logsumexp(x, b=Y),
    "convolve": lambda x: signal.convolve(x, Y),
    "lfilter": lambda x: signal.lfilter(x, [1.0, 0.2], Y),
    "freqz": lambda x: np.abs(signal.freqz(x, Y, worN=4)[1]),
    "sosfiltfilt": lambda x: signal.sosfiltfilt(np.array([[0.3, 0.1, 0.1, 1.0, 0.2, 0.1]]), np.concatenate([x, Y, x])),
    "trapezoid": lambda x: integrate.trapezoid(x, np.sort(Y)),
    "dct": lambda x: scipy.fft.dct(x) * Y,
}


@pytest.mark.parametrize("name", BESIDE)
def test_numpy_arrays_beside_traced_values(name):
    f = BESIDE[name]
    slope = jacrev(f)(X)
    steps = [(f(X + h) - f(X - h)) / 2e-6 for h in 1e-6 * np.eye(X.size)]
    np.testing.assert_allclose(slope, np.stack(steps, axis=-1), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(jvp(f, (X,), (Y,))[1], slope @ Y, rtol=1e-9, atol=1e-12)
