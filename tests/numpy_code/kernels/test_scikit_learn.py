"""Estimators, metrics and kernels of scikit-learn in unchanged programs: right derivatives, or a clear refusal."""

import functools
import warnings

import numpy as np
import pytest
from helpers import close, differences, normal
from sklearn import compose, metrics, neighbors, pipeline, svm
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.covariance import GraphicalLasso, LedoitWolf
from sklearn.decomposition import PCA, KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor, StackingRegressor, VotingRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor, kernels
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.isotonic import IsotonicRegression
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import (
    BayesianRidge,
    ElasticNet,
    GammaRegressor,
    Lars,
    Lasso,
    LassoCV,
    LinearRegression,
    LogisticRegression,
    OrthogonalMatchingPursuit,
    PoissonRegressor,
    Ridge,
    RidgeCV,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import RegressorChain
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, PowerTransformer, RobustScaler, StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import all_estimators

from funcgrad import grad, hessian, jacfwd, stop_gradient, value_and_grad, vmap
from funcgrad.errors import ConvergenceError, ConversionError
from funcgrad.interop import from_numpy

pytestmark = [pytest.mark.filterwarnings("ignore::FutureWarning"), pytest.mark.filterwarnings("ignore::UserWarning")]

X = normal(40, 3)
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.1 * normal(40)
LABELS = (Y > 0.3).astype(int) + (Y > 1)
POINT = np.array([0.21, -0.33, 0.4])
POINTS = np.stack([POINT, POINT + 0.1])
TOWARDS = normal(3, 40, 3, seed=1) / 10


def weighted(found):
    """Return a number that depends on all elements of an array in different ways."""
    return np.sum(np.asarray(found) * np.sin(np.arange(1, 1 + np.size(found))).reshape(np.shape(found)))


def check(fun, x, rtol=1e-6, second=True, batched=True, step=1e-4):
    """Check value, gradient, forward mode, a batch and the second derivative of a function of a vector."""
    x = np.asarray(x)
    value, slope = value_and_grad(fun)(x)
    close(value, fun(x), 1e-10)
    close(slope, differences(fun, x, step), rtol)
    close(jacfwd(fun)(x), slope, 1e-9)
    if second:
        close(hessian(fun)(x), differences(grad(fun), x, step), rtol, 10 * rtol)
    if batched:
        close(vmap(grad(fun))(np.stack([x, x])), np.stack([slope, slope]), 1e-9)


# ---- predictions of all estimators ---------------------------------------------------------------------------

METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")
#: Estimators whose results change in steps only.
STEPS = {
    *("AdaBoostClassifier", "AdaBoostRegressor", "BaggingClassifier", "BaggingRegressor", "DecisionTreeClassifier"),
    *("DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor", "ExtraTreesClassifier"),
    *("ExtraTreesRegressor", "GradientBoostingClassifier", "GradientBoostingRegressor"),
    *("HistGradientBoostingClassifier", "HistGradientBoostingRegressor", "IsolationForest", "KNeighborsClassifier"),
    *("KNeighborsRegressor", "RadiusNeighborsClassifier", "RadiusNeighborsRegressor", "RandomForestClassifier"),
    "RandomForestRegressor",
}
#: Estimators that have parameters without defaults, or take texts, counts, images, categories or one column.
OTHER_INPUTS = {
    *("CCA", "ClassifierChain", "ColumnTransformer", "DictVectorizer", "FeatureHasher", "FeatureUnion"),
    *("FixedThresholdClassifier", "FrozenEstimator", "GaussianRandomProjection", "GridSearchCV", "HalvingGridSearchCV"),
    *("HalvingRandomSearchCV", "HashingVectorizer", "IsotonicRegression", "KBinsDiscretizer", "KernelCenterer"),
    *("KNeighborsTransformer", "LabelBinarizer", "LabelEncoder", "MissingIndicator", "MultiLabelBinarizer"),
    *("MultiOutputClassifier", "MultiOutputRegressor", "MultiTaskElasticNet", "MultiTaskElasticNetCV"),
    *("MultiTaskLasso", "MultiTaskLassoCV", "OneHotEncoder", "OneVsOneClassifier", "OneVsRestClassifier"),
    *("OrdinalEncoder", "OutputCodeClassifier", "PatchExtractor", "PLSCanonical", "PLSSVD"),
    *("Pipeline", "RadiusNeighborsTransformer", "RandomizedSearchCV", "RegressorChain", "RFE", "RFECV"),
    *("SelectFromModel", "SelfTrainingClassifier", "SequentialFeatureSelector", "SparseCoder"),
    *("SparseRandomProjection", "StackingClassifier", "StackingRegressor", "TargetEncoder", "TfidfTransformer"),
    *("TfidfVectorizer", "CountVectorizer", "TunedThresholdClassifierCV", "VotingClassifier", "VotingRegressor"),
    "RandomTreesEmbedding",
}
#: Arguments with which the result is smooth, or found at all.
ARGUMENTS = {
    "GaussianProcessRegressor": {"optimizer": None},
    "GaussianProcessClassifier": {"optimizer": None},
    "LocallyLinearEmbedding": {"n_neighbors": 8},
    "LocalOutlierFactor": {"novelty": True, "n_neighbors": 5},
    "NuSVC": {"nu": 0.2},
    "QuantileTransformer": {"n_quantiles": 20},
    "RadiusNeighborsTransformer": {"radius": 2.0},
    "SelectFdr": {"alpha": 0.9},
    "SelectFpr": {"alpha": 0.9},
    "SelectFwe": {"alpha": 0.9},
}
#: Estimators of positive numbers.
POSITIVE = (
    "AdditiveChi2Sampler BernoulliRBM CategoricalNB ComplementNB GammaRegressor LatentDirichletAllocation MiniBatchNMF "
    "MultinomialNB NMF PoissonRegressor SkewedChi2Sampler"
)
#: Estimators that solve for each new point with compiled code.
COMPILED = {"LatentDirichletAllocation", "NMF"}
#: Estimators that iterate, for each point as long as it needs.
ITERATING = ("MiniBatchNMF",)
#: Methods that draw random numbers.
DRAWN = {("BernoulliRBM", "score_samples")}
ESTIMATORS = dict(all_estimators())
SMOOTH = sorted(set(ESTIMATORS) - STEPS - OTHER_INPUTS - COMPILED)


#: Classifiers that ``is_classifier`` does not know as such.
OF_CLASSES = ("LinearDiscriminantAnalysis", "NeighborhoodComponentsAnalysis")


@functools.cache
def fitted(name):
    """Return a fitted estimator, and the points at which to evaluate it."""
    estimator = ESTIMATORS[name](**ARGUMENTS.get(name, {}))
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    positive = np.abs if name in POSITIVE.split() else np.asarray
    of_classes = is_classifier(estimator) or name in OF_CLASSES
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(positive(X), LABELS if of_classes else positive(Y)), positive(POINTS)


def functions_of(name):
    """Return the functions of a point that an estimator has."""
    estimator, points = fitted(name)
    found = {}
    for method in METHODS:
        if (name, method) in DRAWN or not hasattr(estimator, method):
            continue
        if method != "predict" or is_regressor(estimator):
            found[method] = lambda v, method=method: weighted(getattr(estimator, method)(v.reshape(1, -1)))
    return found, points


@pytest.mark.parametrize("name", SMOOTH)
def test_predictions(name):
    functions, points = functions_of(name)
    for fun in functions.values():
        value, slope = value_and_grad(fun)(points[0])
        close(value, fun(points[0]), 1e-10)
        close(slope, differences(fun, points[0]), 1e-6, 1e-8)
        close(jacfwd(fun)(points[0]), slope, 1e-9)
        if name not in ITERATING:
            close(vmap(grad(fun))(points), [slope, grad(fun)(points[1])], 1e-9)


@pytest.mark.parametrize("name", sorted(STEPS & set(ESTIMATORS)))
def test_piecewise_constant_predictions(name):
    functions, points = functions_of(name)
    for fun in functions.values():
        with pytest.raises(ConversionError, match=r"changes in steps only, .* pass funcgrad.stop_gradient\(x\)"):
            grad(fun)(points[0])
        close(grad(lambda v, fun=fun: v[0] * fun(stop_gradient(v)))(points[0])[0], fun(points[0]))


TWICE = (
    "GaussianProcessRegressor MLPClassifier PCA SVR SVC KernelRidge LogisticRegression GaussianMixture KernelPCA "
    "QuadraticDiscriminantAnalysis GaussianNB PowerTransformer KernelDensity OneClassSVM Isomap Nystroem"
)


@pytest.mark.parametrize("name", TWICE.split())
def test_second_derivatives(name):
    functions, points = functions_of(name)
    for fun in functions.values():
        close(hessian(fun)(points[0]), differences(grad(fun), points[0]), 1e-6, 1e-7)


@pytest.mark.parametrize("name", ["Ridge", "SVR", "MLPRegressor", "GaussianProcessRegressor", "StandardScaler", "PCA"])
def test_single_precision(name):
    functions, points = functions_of(name)
    for fun in functions.values():
        slope = grad(fun)(points[0].astype(np.float32))
        assert slope.dtype == np.float32
        close(slope, grad(fun)(points[0]), 1e-4)


SMOOTH_PARTS = {
    "pipeline": pipeline.make_pipeline(StandardScaler(), PolynomialFeatures(2), PCA(4), Ridge()),
    "columns": pipeline.make_pipeline(
        compose.ColumnTransformer([("a", StandardScaler(), slice(0, 2))], remainder=MinMaxScaler()), Ridge()
    ),
    "union": pipeline.make_pipeline(pipeline.FeatureUnion([("a", PCA(2)), ("b", RobustScaler())]), Ridge()),
    "mean of models": VotingRegressor([("a", Ridge()), ("b", svm.SVR())]),
    "model of models": StackingRegressor([("a", Ridge()), ("b", KernelRidge(kernel="rbf"))]),
    "bag": BaggingRegressor(Ridge(), n_estimators=3, random_state=0),
    "chain": RegressorChain(svm.SVR()),
    "transformed target": compose.TransformedTargetRegressor(Ridge(), func=np.arcsinh, inverse_func=np.sinh),
    "classes": OneVsRestClassifier(GaussianProcessClassifier(optimizer=None)),
}


@pytest.mark.parametrize("name", SMOOTH_PARTS)
def test_nested_models(name):
    model = clone(SMOOTH_PARTS[name])
    targets = {"chain": np.stack([Y, Y**2], 1), "classes": LABELS}.get(name, Y)
    predict = getattr(model.fit(X, targets), "predict_proba" if name == "classes" else "predict")
    check(lambda v: weighted(predict(v[None])), POINT, second=name == "pipeline", batched=False)


# ---- compiled code with counterparts -------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("kind", [svm.SVR, svm.NuSVR, svm.SVC, svm.NuSVC, svm.OneClassSVM])
def test_support_vectors(kernel, kind):
    options = {"nu": 0.2} if kind in (svm.NuSVC, svm.OneClassSVM) else {}
    model = kind(kernel=kernel, coef0=0.3, **options).fit(X, LABELS if issubclass(kind, svm.SVC | svm.NuSVC) else Y)
    decide = model.predict if is_regressor(model) else model.decision_function
    check(lambda v: weighted(decide(v[None])), POINT, 1e-5, second=kind is svm.SVC, batched=kind is svm.SVR)


def test_one_versus_one_support_vectors():
    check(lambda v: weighted(svm.SVC(decision_function_shape="ovo").fit(X, LABELS).decision_function(v[None])), POINT)
    check(lambda v: weighted(svm.SVC().fit(X, LABELS > 0).decision_function(v[None])), POINT)
    products = svm.SVR(kernel="precomputed").fit(X @ X.T, Y)
    check(lambda v: products.predict(v[None] @ X.T)[0], POINT)


def test_support_vector_classes_are_constants():
    model = svm.SVC().fit(X, LABELS)
    assert grad(lambda v: v[0] * model.predict(v[None])[0])(POINT)[0] == model.predict(POINT[None])[0]
    close(vmap(lambda v: model.predict(v[None])[0])(X[:5]), model.predict(X[:5]))


METRICS = {
    "minkowski": {},
    "manhattan": {},
    "chebyshev": {},
    "cosine": {"algorithm": "brute"},
    "l2": {"p": 3},
    "mahalanobis": {"metric_params": {"VI": np.eye(3) + 0.1}},
}


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("near", ["KNeighborsRegressor", "RadiusNeighborsRegressor"])
def test_neighbours(metric, near):
    options = {"radius": 1.6} if near[0] == "R" else {}
    model = getattr(neighbors, near)(weights="distance", metric=metric, **METRICS[metric], **options).fit(X, Y)
    check(lambda v: model.predict(v[None])[0], POINT, 1e-5, second=near[0] == "K")


@pytest.mark.parametrize("near", ["KNeighborsClassifier", "RadiusNeighborsClassifier"])
def test_neighbour_classifiers(near):
    model = getattr(neighbors, near)(2, weights="distance").fit(X, LABELS)
    check(lambda v: weighted(model.predict_proba(v[None])), POINT)


def test_neighbours_fitted_in_the_function():
    model = neighbors.KNeighborsRegressor(weights="distance").fit(X, Y)

    def fun(v):
        model.n_neighbors = 9
        points = X.copy()
        points[0] = 2.0
        other = neighbors.KNeighborsRegressor(weights="distance").fit(points, Y * v[0])
        density = neighbors.KernelDensity().fit(points)
        return model.predict(v[None])[0] + other.predict(v[None])[0] + density.score_samples(v[None])[0]

    close(grad(fun)(POINT), differences(fun, POINT), 1e-6)


def test_unsupported_neighbours_raise():
    model = neighbors.KNeighborsRegressor(weights="distance", metric="haversine").fit(X[:, :2], Y)
    with pytest.raises(ConversionError, match="the metric must be one that is differentiable, got 'haversine'"):
        grad(lambda v: model.predict(v[None])[0])(POINT[:2])
    with pytest.raises(ConversionError, match="the search among points is done by compiled code"):
        grad(lambda v: neighbors.NearestNeighbors().fit(X * v).kneighbors(X)[0].sum())(1.0)


@pytest.mark.parametrize("kernel", ["gaussian", "exponential", "epanechnikov", "linear", "cosine"])
def test_densities(kernel):
    weights = np.abs(normal(40)) + 0.5
    model = neighbors.KernelDensity(kernel=kernel, bandwidth=0.9, metric="manhattan").fit(X, sample_weight=weights)
    check(lambda v: model.score_samples(v[None])[0], POINT, rtol=1e-5)
    assert model.score_samples(POINT[None] + 99)[0] < -90
    assert np.isfinite(grad(lambda v: np.exp(model.score_samples(v[None])[0]))(POINT + 99)).all()


def test_piecewise_constant_densities():
    model = neighbors.KernelDensity(kernel="tophat").fit(X)
    with pytest.raises(ConversionError, match="changes in steps only"):
        grad(lambda v: model.score_samples(v[None])[0])(POINT)


# ---- Gaussian processes --------------------------------------------------------------------------------------

KERNELS = {
    "RBF": kernels.RBF(0.8),
    "RBF with lengths": kernels.RBF([0.8, 1.1, 1.4]),
    **{f"Matern {nu}": kernels.Matern(1.2, nu=nu) for nu in (0.5, 1.5, 2.5, np.inf)},
    "rational quadratic": kernels.RationalQuadratic(1.1, 0.7),
    "periodic": 0.2 * kernels.ExpSineSquared(1.3, 2.1) + kernels.WhiteKernel(),
    "dot product": kernels.DotProduct(0.9) + kernels.WhiteKernel(0.3),
    "sum": kernels.ConstantKernel(1.7) * kernels.RBF(0.8) + kernels.WhiteKernel(0.1),
    "power": kernels.RBF(0.8) ** 1.5 + kernels.Matern([1.0, 2.0, 3.0], nu=1.5) * 0.7,
    "pairwise": kernels.PairwiseKernel(0.6, metric="rbf"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_likelihoods(name):
    model = GaussianProcessRegressor(KERNELS[name], alpha=0.1, optimizer=None).fit(X[:20], Y[:20])
    theta = model.kernel_.theta
    slope = model.log_marginal_likelihood(theta, eval_gradient=True)[1]
    rtol = 1e-5 if name == "pairwise" else 1e-8  # there, scikit-learn's is a difference
    close(grad(model.log_marginal_likelihood)(theta), slope, rtol)
    close(jacfwd(model.log_marginal_likelihood)(theta), slope, rtol)
    close(vmap(grad(model.log_marginal_likelihood))(np.stack([theta, theta])), [slope, slope], rtol)
    second = differences(grad(model.log_marginal_likelihood), theta)
    close(hessian(model.log_marginal_likelihood)(theta), second, 1e-6, 1e-6)


def test_matern_kernel_of_any_order():
    model = GaussianProcessRegressor(kernels.Matern(1.2, nu=0.8), alpha=0.01, optimizer=None).fit(X[:20], Y[:20])
    theta = model.kernel_.theta
    close(grad(model.log_marginal_likelihood)(theta), differences(model.log_marginal_likelihood, theta), 1e-6)


def test_gaussian_process_predictions():
    model = GaussianProcessRegressor(kernels.RBF(0.8) + kernels.WhiteKernel(0.1), optimizer=None, normalize_y=True).fit(
        X, Y
    )
    check(lambda v: weighted(model.predict(v[None], return_std=True)[1]), POINT)
    check(lambda v: weighted(model.predict(np.stack([v, 2 * v]), return_cov=True)[1]), POINT)
    check(lambda v: weighted(model.sample_y(v[None], random_state=0)), POINT, second=False)

    def mean(theta):
        kernel = kernels.RBF(theta[0]) + kernels.WhiteKernel(theta[1])
        return GaussianProcessRegressor(kernel, optimizer=None).fit(X, Y).predict(POINTS)[0]

    check(mean, [0.8, 0.1], rtol=1e-5)


def test_likelihoods_with_parameters_set_on_model():
    make = lambda: GaussianProcessRegressor(kernels.RBF(0.8) + kernels.WhiteKernel(0.1), optimizer=None).fit(X, Y)
    model = make()
    theta = model.kernel_.theta
    slope = model.log_marginal_likelihood(theta, eval_gradient=True)[1]
    fun = lambda theta: model.log_marginal_likelihood(theta, clone_kernel=False)
    close(grad(fun)(theta), slope, 1e-8)
    model = make()
    close(grad(from_numpy(fun))(theta), slope, 1e-8)


# ---- models fitted in the function ---------------------------------------------------------------------------

FITS = {
    "LinearRegression": LinearRegression(),
    "Ridge": Ridge(0.7),
    "RidgeCV": RidgeCV([0.1, 1.0]),
    "BayesianRidge": BayesianRidge(max_iter=1000, tol=1e-12),
    "KernelRidge": KernelRidge(kernel="rbf"),
    "OMP": OrthogonalMatchingPursuit(n_nonzero_coefs=2),
    "GaussianProcess": GaussianProcessRegressor(optimizer=None, alpha=0.1),
    "Lasso": Lasso(0.05, tol=1e-12),
    "Lasso of products": Lasso(0.05, tol=1e-12, precompute=True),
    "LassoCV": LassoCV(alphas=[0.05], tol=1e-12, cv=2),
    "ElasticNet": ElasticNet(0.05, tol=1e-12),
    "Tweedie": TweedieRegressor(power=0, tol=1e-10, max_iter=1000),
    "MLP": MLPRegressor(hidden_layer_sizes=(4,), activation="tanh", max_iter=5, random_state=0),
    "pipeline": pipeline.make_pipeline(StandardScaler(), PCA(2), LinearRegression()),
    "transformed": pipeline.make_pipeline(RobustScaler(), PolynomialFeatures(2), Ridge()),
}
TWICE_FITTED = ("Ridge", "ElasticNet", "GaussianProcess", "OMP")


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("name", FITS)
def test_fits(name):
    def of_points(v):
        return weighted(clone(FITS[name]).fit(X + np.tensordot(v, TOWARDS, 1), Y).predict(POINTS))

    def of_targets(v):
        return weighted(clone(FITS[name]).fit(X, Y + np.tensordot(v, TOWARDS[:, :, 0], 1)).predict(POINTS))

    check(of_points, POINT, 2e-5, second=name in TWICE_FITTED, batched=name in TWICE_FITTED)
    check(of_targets, POINT, 2e-5, second=False, batched=False)


@pytest.mark.parametrize(
    "model",
    [
        TweedieRegressor(power=0, link="log"),
        TweedieRegressor(power=1),
        TweedieRegressor(power=1.5),
        TweedieRegressor(power=2),
        TweedieRegressor(power=1.5, link="identity"),
        TweedieRegressor(power=1, link="identity"),
        TweedieRegressor(power=2, link="identity"),
        TweedieRegressor(power=3),
        PoissonRegressor(),
        GammaRegressor(),
    ],
    ids=str,
)
def test_generalized_linear_models(model):
    model.set_params(tol=1e-9, max_iter=1000)

    def fun(v):
        return weighted(clone(model).set_params(alpha=v[0]).fit(X, (np.abs(Y) + 3) * v[1]).predict(POINTS))

    check(fun, [0.3, 1.2], 3e-5, second=False, batched=False, step=1e-2)


@pytest.mark.parametrize("labels", [LABELS, LABELS > 0], ids=["three", "two"])
def test_logistic_regression(labels):
    model = LogisticRegression(tol=1e-10, max_iter=1000)

    def fun(v):
        fitted = clone(model).set_params(C=v[0]).fit(X * v[1], labels)
        return metrics.log_loss(labels[:8], fitted.predict_proba(X[:8]), labels=np.unique(labels))

    check(fun, [0.9, 1.1], 3e-5, second=False, batched=False, step=1e-2)
    for solver in ("newton-cg", "newton-cholesky"):
        with pytest.raises(ConversionError, match="Use solver='lbfgs'"):
            grad(lambda C, s=solver: LogisticRegression(C=C, solver=s).fit(X, labels).coef_.sum())(0.9)


def test_penalty_has_derivative():
    for model in (Ridge(), ElasticNet(tol=1e-12)):
        fun = lambda v, model=model: weighted(clone(model).set_params(alpha=v[0]).fit(X, Y).predict(POINTS))
        check(fun, [0.02], 1e-5)
    check(lambda v: cross_val_score(Ridge(alpha=v[0]), X, Y, cv=3).sum(), [0.7], batched=False)


def test_sparse_covariances():
    fun = lambda v: weighted(GraphicalLasso(v[0], tol=1e-9, enet_tol=1e-11).fit(X).precision_)
    check(fun, [0.1], 1e-5, second=False, batched=False)


TRANSFORMERS = {
    "StandardScaler": StandardScaler(),
    "centred": StandardScaler(with_std=False),
    "MinMaxScaler": MinMaxScaler(),
    "PowerTransformer": PowerTransformer(),
    "PCA": PCA(2),
    "KernelPCA": KernelPCA(2, kernel="rbf"),
    "LDA": LinearDiscriminantAnalysis(),
    "GaussianNB": GaussianNB(),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformer_fits(name):
    def fun(v):
        model = clone(TRANSFORMERS[name]).fit(X + np.tensordot(v, TOWARDS, 1), LABELS)
        return weighted(np.abs((model.predict_proba if name == "GaussianNB" else model.transform)(POINTS)))

    close(grad(fun)(POINT), differences(fun, POINT, 1e-2 if name == "PowerTransformer" else 1e-4), 2e-5, 1e-7)


def test_partial_fits():
    weights, holes = np.abs(normal(40)) + 0.1, np.where(normal(40, 3, seed=2) > 1, np.nan, 0.0)

    def fun(v):
        scaler = StandardScaler().partial_fit(X[:10] * v + holes[:10], sample_weight=weights[:10])
        scaler.partial_fit(X[10:] + v + holes[10:], sample_weight=weights[10:])
        return weighted(scaler.mean_) + weighted(scaler.scale_)

    check(fun, POINT, second=False)


@pytest.mark.parametrize(
    "weights", ["uniform", "distance", lambda apart: np.exp(-apart)], ids=["same", "distance", "function"]
)
def test_missing_numbers(weights):
    hole = np.array([0.0, np.nan, 0.0])
    points = X + np.where(normal(40, 3, seed=2) > 1, np.nan, 0.0)
    nearest = KNNImputer(n_neighbors=3, weights=weights).fit(points)
    check(lambda v: weighted(nearest.transform((v + hole)[None])), POINT, 1e-5, second=False)
    close(nearest.transform(X[:1] + hole), from_numpy(nearest.transform)(X[:1] + hole))
    mean = SimpleImputer().fit(points)
    check(lambda v: weighted(mean.transform((v + hole)[None])), POINT, second=False)


def test_covariances():
    check(lambda v: weighted(LedoitWolf().fit(X * v).covariance_), POINT + 1, second=False)


@pytest.mark.parametrize("is_fitted_inside", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: DecisionTreeRegressor(max_depth=2, random_state=0),
        lambda: RandomForestRegressor(n_estimators=2, random_state=0),
        lambda: VotingRegressor([("line", Ridge()), ("tree", DecisionTreeRegressor(max_depth=2, random_state=0))]),
    ],
)
def test_trees_of_constant_points(make, is_fitted_inside):
    """Trees of constant data are constants, also in code that is rebuilt to keep arrays traced."""
    fitted = make().fit(X, Y)
    score = lambda y: (make().fit(X, Y) if is_fitted_inside else fitted).score(X * 1.0, y)
    np.testing.assert_allclose(grad(score)(Y + 0.3), differences(score, Y + 0.3), rtol=1e-6, atol=1e-8)


def test_unsupported_fits_raise():
    with pytest.raises(ConversionError, match="growing trees is done by compiled code"):
        grad(lambda v: DecisionTreeRegressor().fit(X * v, Y).predict(X)[0])(1.0)
    with pytest.raises(ConversionError, match=r"_libsvm.fit: it is compiled code"):
        grad(lambda C: svm.SVR(C=C).fit(X, Y).predict(X)[0])(1.0)
    with pytest.raises(ConversionError, match=r"lloyd_iter_chunked_dense: it is compiled code"):
        grad(lambda v: KMeans(2, n_init=1, random_state=0).fit(X * v).inertia_)(1.0)
    with pytest.raises(ConversionError, match=r"min_pos: it is compiled code"):
        grad(lambda v: Lars().fit(X * v, Y).coef_[0])(1.0)
    with pytest.raises(TypeError) as caught:
        grad(lambda v: SGDRegressor().fit(X * v, Y).coef_[0])(1.0)
    assert "Compiled code got a traced value" in caught.value.__notes__[-1]
    for name in COMPILED:
        estimator, points = fitted(name)
        with pytest.raises(ConversionError, match="it is compiled code"):
            grad(lambda v, e=estimator: weighted(e.transform(v[None])))(points[0])


@pytest.mark.filterwarnings("ignore:Objective did not converge")
def test_unconverged_fits_raise():
    with pytest.raises(ConvergenceError, match="coordinate descent has not converged"):
        grad(lambda v: Lasso(1e-6, max_iter=1, tol=1e-12).fit(X * v, Y).coef_[0])(1.0)


def test_constant_fit_beside_traced_values():
    # programs that read what a solver wrote to its right-hand side; see ``names._with_overwriting``
    for model in (Lars(), OrthogonalMatchingPursuit(n_nonzero_coefs=2)):
        want = clone(model).fit(X, Y).coef_

        def fun(v, model=model):
            places = np.zeros(3)
            places[0] = v
            return clone(model).fit(X, Y).coef_ * places

        close(vmap(fun)(np.array([2.0]))[0], want * [2.0, 0.0, 0.0], 1e-9)


# ---- metrics and kernels -------------------------------------------------------------------------------------

LOSSES = (
    "mean_squared_error root_mean_squared_error mean_absolute_error r2_score explained_variance_score "
    "mean_squared_log_error mean_absolute_percentage_error median_absolute_error max_error mean_pinball_loss "
    "mean_tweedie_deviance mean_poisson_deviance mean_gamma_deviance d2_tweedie_score d2_pinball_score "
    "d2_absolute_error_score root_mean_squared_log_error"
)
TRUE, GUESS = np.array([0.3, 0.9, 0.5, 0.7]), np.array([0.4, 0.6, 0.8, 0.2])


@pytest.mark.parametrize("name", LOSSES.split())
def test_losses(name):
    loss = getattr(metrics, name)
    for fun, x in ((lambda v: loss(TRUE, v), GUESS), (lambda v: loss(v, GUESS), TRUE)):
        close(grad(fun)(x), differences(fun, x), 1e-7, 1e-9)
        close(jacfwd(fun)(x), grad(fun)(x), 1e-10)


def test_classification_losses():
    for fun in (
        lambda v: metrics.log_loss([0, 1, 1, 0], v),
        lambda v: metrics.brier_score_loss([0, 1, 1, 0], v),
        lambda v: metrics.hinge_loss([0, 1, 1, 0], v),
        lambda v: metrics.auc([0.0, 0.2, 0.7, 1.0], v),
        lambda v: metrics.silhouette_score(X[:9] * v[:3], LABELS[:9]),
        lambda v: metrics.calinski_harabasz_score(X[:9] * v[:3], LABELS[:9]),
        lambda v: metrics.davies_bouldin_score(X[:9] * v[:3], LABELS[:9]),
    ):
        close(grad(fun)(GUESS), differences(fun, GUESS), 1e-7, 1e-9)


@pytest.mark.parametrize("name", sorted(metrics.pairwise.PAIRWISE_KERNEL_FUNCTIONS))
def test_kernels(name):
    check(lambda v: weighted(metrics.pairwise_kernels(np.abs(X[:4] * v), np.abs(X[4:9]), name)), POINT + 1, 1e-5)


DISTANCES = (
    "braycurtis canberra chebyshev cityblock correlation cosine euclidean l1 l2 manhattan minkowski nan_euclidean "
    "sqeuclidean"
)


@pytest.mark.parametrize("name", DISTANCES.split())
def test_distances(name):
    check(
        lambda v: weighted(metrics.pairwise_distances(X[:4] * v, X[4:9], name)),
        POINT + 1,
        1e-5,
        second=False,
        batched=False,
    )


@pytest.mark.parametrize("others", [None, X[4:9, :2]])
def test_distances_on_the_sphere(others):
    distances = metrics.pairwise.haversine_distances
    check(lambda v: weighted(distances(X[:4, :2] * v[:2], others)) + distances(X[:2, :2])[0, 1] * v[0], POINT + 1, 1e-5)


def test_isotonic_predictions():
    model = IsotonicRegression(out_of_bounds="clip").fit(X[:, 0], Y)
    check(lambda v: weighted(model.predict(v)), POINT)
