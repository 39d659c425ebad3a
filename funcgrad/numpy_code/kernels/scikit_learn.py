"""Functions of scikit-learn with derivatives, and those whose results have none; see ``table``."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from importlib import import_module
from itertools import pairwise
from operator import attrgetter
from typing import Any, NoReturn

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer, describe
from funcgrad.errors import ConvergenceError, ConversionError
from funcgrad.numpy.plain_values.concretization import strip_constant_tracers
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy_code.conversions import holds_traced
from funcgrad.numpy_code.examples import with_example_loop
from funcgrad.numpy_code.object_views import plain_copy
from funcgrad.numpy_code.own import known_value, on_plain_values, own
from funcgrad.primitives.norms import sqrt_flat_at_zero

_SVM, _COORDINATES = "sklearn.svm._libsvm", "sklearn.linear_model._cd_fast"
_NEIGHBORS, _LOSS, _ARRAYS = "sklearn.neighbors._base", "sklearn._loss.loss", "sklearn.utils.arrayfuncs"


def _plain(x: Any, name: str, order: Any = "C") -> Any:
    return np.asarray(known_value(x, name), order=order) if isinstance(x, Tracer) else x


# ---- support vector machines ---------------------------------------------------------------------------------


def _kernel_matrix(X: Any, SV: Any, support: Any, kernel: str, degree: int, gamma: float, coef0: float) -> Any:
    """Return the kernel of all rows of ``X`` with all support vectors."""
    if kernel == "precomputed":
        return X[:, support]
    if kernel == "rbf":
        return fnp.exp(-gamma * own("scipy.spatial.distance").cdist(X, SV, "sqeuclidean"))
    products = X @ fnp.asarray(SV).T
    if kernel == "linear":
        return products
    products = gamma * products + coef0
    return fnp.tanh(products) if kernel == "sigmoid" else products**degree


def _decision(
    X: Any,
    support: Any,
    SV: Any,
    nSV: Any,
    sv_coef: Any,
    intercept: Any,
    *_: Any,
    svm_type: int = 0,
    kernel: str = "rbf",
    degree: int = 3,
    gamma: float = 0.1,
    coef0: float = 0.0,
    **__: Any,
) -> Any:
    """Compute ``_libsvm.decision_function``: a column for each pair of classes, or one column."""
    values = _kernel_matrix(fnp.asarray(X), SV, support, kernel, degree, gamma, coef0)
    sv_coef, intercept = fnp.asarray(sv_coef), fnp.asarray(intercept)
    if svm_type > 1:
        return values @ sv_coef[:1].T + intercept
    ends = np.concatenate([[0], np.cumsum(known_value(nSV, "nSV"))])
    of = [slice(start, end) for start, end in pairwise(ends)]
    columns = [
        values[:, of[i]] @ sv_coef[j - 1, of[i]] + values[:, of[j]] @ sv_coef[i, of[j]]
        for i in range(len(of))
        for j in range(i + 1, len(of))
    ]
    return fnp.stack(columns, axis=1) + intercept


def _prediction(X: Any, *args: Any, svm_type: int = 0, **options: Any) -> Any:
    """Compute ``_libsvm.predict``: the decision function in a regression, else constant class numbers."""
    if svm_type > 2:
        return _decision(X, *args, svm_type=svm_type, **options)[:, 0]
    given = [_plain(x, "predict") for x in (X, *args)]
    return import_module(_SVM).predict(*given, svm_type=svm_type, **options)


# ---- linear models -------------------------------------------------------------------------------------------


def _coordinate_descent(name: str, *args: Any, **kwargs: Any) -> Any:
    """Compute the elastic net: which coefficients are zero, and the signs of the others, are constants.

    The others solve a system of linear equations, whose derivative is added to scikit-learn's solution.
    """
    given = dict(zip(_ARGUMENTS[name], args, strict=False)) | kwargs
    order = "F" if name == _DATA else "C"
    plain = {key: _plain(x, name, order) for key, x in given.items()} | {"w": np.array(known_value(given["w"], name))}
    found, gap, tol, steps = getattr(import_module(_COORDINATES), name)(**plain)
    if gap > tol:
        raise ConvergenceError(
            f"sklearn: coordinate descent has not converged after {steps} steps, so its result has no derivative, got "
            f"a duality gap of {gap:.3g} for the tolerance {tol:.3g}{user_line()}. Increase max_iter or alpha."
        )
    chosen = np.flatnonzero(found)
    if name == _DATA:
        columns = fnp.asarray(given["X"])[:, chosen]
        products, target = columns.T @ columns, columns.T @ fnp.asarray(given["y"])
    else:
        products, target = fnp.asarray(given["Q"])[chosen][:, chosen], fnp.asarray(given["q"])[chosen]
    products, target = products + given["beta"] * np.eye(len(chosen)), target - given["alpha"] * np.sign(found[chosen])
    exact = fnp.linalg.solve(products, target)
    solution = fnp.zeros(found.shape, exact.dtype)
    solution[chosen] = found[chosen] + (exact - own("transforms").stop_gradient(exact))
    return solution, gap, tol, steps


_DATA, _GRAM = "enet_coordinate_descent", "enet_coordinate_descent_gram"
_SETTINGS = "max_iter tol rng random positive do_screening"
_ARGUMENTS = {
    _DATA: f"w alpha beta X y {_SETTINGS}".split(),
    _GRAM: f"w alpha beta Q q y {_SETTINGS}".split(),
}


def _poisson(y: Any, raw: Any) -> Any:
    return fnp.exp(raw) - y * raw


def _gamma(y: Any, raw: Any) -> Any:
    return raw + y * fnp.exp(-raw)


def _tweedie(power: float, y: Any, raw: Any) -> Any:
    """Return the loss of a mean ``exp(raw)``, without terms of ``y`` alone."""
    if power in (1, 2):
        return (_poisson if power == 1 else _gamma)(y, raw)
    if power == 0:
        return 0.5 * (fnp.exp(raw) - y) ** 2
    return fnp.exp((2 - power) * raw) / (2 - power) - y * fnp.exp((1 - power) * raw) / (1 - power)


def _tweedie_of_means(power: float, y: Any, mean: Any) -> Any:
    if power == 0:
        return 0.5 * (mean - y) ** 2
    if power == 1:
        return own("scipy.special").xlogy(y, y / mean) + mean - y
    if power == 2:
        return fnp.log(mean / y) + y / mean - 1
    whole = fnp.maximum(y, 0.0) ** (2 - power) / ((1 - power) * (2 - power))
    return whole - y * mean ** (1 - power) / (1 - power) + mean ** (2 - power) / (2 - power)


def _multinomial(y: Any, raw: Any) -> Any:
    """Return the loss of class numbers ``y``, which does not change if a number is added to a row of ``raw``.

    So a fit could add any number. Its search keeps the mean of each row, and ``aside`` makes the derivative do so: it
    is zero, but its second derivative is not.
    """
    labels, mean = np.asarray(known_value(y, "y")).astype(int), fnp.mean(raw, axis=1)
    aside = 0.5 * (mean - own("transforms").stop_gradient(mean)) ** 2
    return own("scipy.special").logsumexp(raw, axis=1) - raw[np.arange(len(labels)), labels] + aside


#: Losses of generalized linear models, by scikit-learn's names.
_LOSSES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "HalfBinomialLoss": lambda loss, y, raw: fnp.logaddexp(0.0, raw) - y * raw,
    "HalfGammaLoss": lambda loss, y, raw: _gamma(y, raw),
    "HalfMultinomialLoss": lambda loss, y, raw: _multinomial(y, raw),
    "HalfPoissonLoss": lambda loss, y, raw: _poisson(y, raw),
    "HalfSquaredError": lambda loss, y, raw: 0.5 * (raw - y) ** 2,
    "HalfTweedieLoss": lambda loss, y, raw: _tweedie(loss.closs.power, y, raw),
    "HalfTweedieLossIdentity": lambda loss, y, mean: _tweedie_of_means(loss.closs.power, y, mean),
}


def _pointwise(loss: Any, y: Any, raw: Any, weights: Any) -> Any:
    """Return the loss of each sample."""
    name = type(loss).__name__
    if name not in _LOSSES:
        raise ConversionError(
            f"sklearn: {name} is compiled and takes no traced values, got a traced {describe(raw)}{user_line()}. Write "
            "the loss with NumPy, or use a model with the loss of another family."
        )
    found = _LOSSES[name](loss, y, raw[:, 0] if raw.ndim == 2 and raw.shape[1] == 1 else raw)
    return found if weights is None else found * weights


def _slope(loss: Any, y: Any, raw: Any, weights: Any) -> tuple[Any, Any]:
    """Return the loss of each sample and its derivative with respect to ``raw``."""
    found, back = own("transforms").vjp(lambda raw: _pointwise(loss, y, raw, weights), fnp.asarray(raw))
    return found, back(fnp.ones_like(found))[0]


def _loss_method(place: str, compute: Callable[..., Any]) -> Callable[[Any], Callable[..., Any]]:
    """Return a wrapper for a method of a loss, which calls compiled code."""
    owner, _, name = place.partition(".")

    def around(built: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(built)
        def call(
            self: Any, y_true: Any, raw_prediction: Any, sample_weight: Any = None, *outs: Any, **options: Any
        ) -> Any:
            given = (y_true, raw_prediction, sample_weight)
            if holds_traced(given):
                return compute(self, *given)
            given = tuple([_plain(x, name) for x in given])  # an optimizer's, for example
            return getattr(getattr(import_module(_LOSS), owner), name)(self, *given)

        return call

    return around


def _refuse_newton(loss: Any, y: Any, raw: Any, weights: Any) -> NoReturn:
    raise ConversionError(
        f"sklearn: the solvers of Newton's method take no traced values, got a traced {describe(raw)}{user_line()}. "
        "Use solver='lbfgs', whose solution has a derivative."
    )


# ---- preprocessing -------------------------------------------------------------------------------------------


def _mean_and_variance(
    X: Any, last_mean: Any, last_variance: Any, last_sample_count: Any, sample_weight: Any = None
) -> tuple[Any, Any, Any]:
    """Compute ``_incremental_mean_and_var``, without scikit-learn's division by zero if no data came before."""
    known = ~fnp.isnan(X)
    weights = known * 1.0 if sample_weight is None else known * fnp.asarray(sample_weight)[:, None]
    values, count = fnp.where(known, X, 0.0), fnp.sum(weights, axis=0)
    total = last_sample_count + count
    mean = fnp.sum(weights * values, axis=0) / count
    updated = (last_mean * last_sample_count + mean * count) / total
    if last_variance is None:
        return updated, None, total
    squares = fnp.sum(weights * fnp.where(known, values - mean, 0.0) ** 2, axis=0)
    between = last_sample_count * count / total * (last_mean - mean) ** 2
    return updated, (last_variance * last_sample_count + squares + between) / total, total


def _imputed(self: Any, dist_pot_donors: Any, n_neighbors: int, fit_X_col: Any, mask_fit_X_col: Any) -> Any:
    """Compute ``KNNImputer._calc_impute`` without masked arrays: the mean of the nearest rows that have the number."""
    apart, missing = fnp.asarray(dist_pot_donors), np.asarray(known_value(mask_fit_X_col, "transform"))
    nearest = fnp.argpartition(apart, n_neighbors - 1, axis=1)[:, :n_neighbors]
    apart = fnp.take_along_axis(apart, nearest, axis=1)
    kept = fnp.logical_not(fnp.isnan(apart)) & fnp.logical_not(fnp.take(missing, nearest))
    apart = fnp.where(kept, apart, 1.0)
    same = kept & (apart == 0)
    weights = self.weights(apart) if callable(self.weights) else fnp.ones_like(apart)
    if self.weights == "distance":
        inverse = 1.0 / fnp.where(same, 1.0, apart)
        weights = fnp.where(fnp.any(same, axis=1, keepdims=True), same * 1.0, inverse)
    weights = fnp.where(kept, weights, 0.0)
    values = fnp.where(kept, fnp.take(fit_X_col, nearest), 0.0)
    return fnp.sum(weights * values, axis=1) / fnp.sum(weights, axis=1)


# ---- nearest neighbours --------------------------------------------------------------------------------------

_METRICS = {"infinity": "chebyshev", "l1": "cityblock", "l2": "euclidean", "manhattan": "cityblock", "p": "minkowski"}


def _with_distances(name: str) -> Callable[[Any], Callable[..., Any]]:
    """Return a wrapper for a method that finds neighbours: they are constants, their distances have derivatives."""

    def around(built: Callable[..., Any]) -> Callable[..., Any]:
        def found(self: Any, X: Any = None, count: Any = None, return_distance: bool = True, **options: Any) -> Any:
            metric = self.effective_metric_
            if not holds_traced((X,)) or metric == "precomputed":
                return built(self, X, count, return_distance, **options)
            owner = getattr(import_module(_NEIGHBORS), "KNeighborsMixin" if name[0] == "k" else "RadiusNeighborsMixin")
            plain = getattr(owner, name)(_plain_estimator(self), _plain(X, name), count, return_distance, **options)
            if not return_distance:
                return plain
            measure = _measure(metric)
            kwargs, points = self.effective_metric_params_ or {}, fnp.asarray(self._fit_X)
            if plain[1].dtype != object:
                return measure(X[:, None, :], points[plain[1]], **kwargs), plain[1]
            distances = np.empty(len(plain[1]), object)
            for i, nearest in enumerate(plain[1]):
                distances[i] = measure(X[i], points[nearest], **kwargs)
            return distances, plain[1]

        parameters = inspect.signature(built)

        @wraps(built)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = parameters.bind(*args, **kwargs)
            given.apply_defaults()
            self, X, count, return_distance, *rest = given.args
            return found(self, X, count, return_distance, **dict(zip(("sort_results",), rest, strict=False)))

        return with_example_loop(call, f"sklearn.neighbors.{name}")

    return around


def _plain_estimator(self: Any) -> Any:
    """Return an estimator with plain attributes, for scikit-learn's own methods."""
    return plain_copy(self, lambda x: _plain(x, "fit"))


def _measure(metric: Any) -> Callable[..., Any]:
    metrics = own("scipy.spatial.metrics").METRICS
    name = _METRICS.get(metric, metric)
    if name not in metrics:
        raise ConversionError(
            f"sklearn.neighbors: the metric must be one that is differentiable, got {metric!r}{user_line()}. Use one "
            f"of {', '.join(metrics)}."
        )
    found: Callable[..., Any] = metrics[name][0]
    return found


#: Logarithms of the kernels of ``KernelDensity``, up to a number, as functions of distances in bandwidths. Those
#: after the first two are zero from 1 on.
_KERNELS: dict[str, Callable[[Any], Any]] = {
    "gaussian": lambda u: -0.5 * u * u,
    "exponential": lambda u: -u,
    "epanechnikov": lambda u: fnp.log(1 - u * u),
    "linear": lambda u: fnp.log(1 - u),
    "cosine": lambda u: fnp.log(fnp.cos(np.pi / 2 * u)),
}


def _with_density(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``KernelDensity.score_samples``: the derivative of the sum of all kernels is added to its result."""

    @wraps(built)
    def call(self: Any, X: Any) -> Any:
        if not holds_traced((X,)):
            return built(self, X)
        if self.kernel not in _KERNELS:
            _refuse_steps(f"the density of the kernel {self.kernel!r}", X, "Use kernel='gaussian'")
        owner = _plain_estimator(self)
        found, tree = type(owner).score_samples(owner, _plain(X, "score_samples")), owner.tree_
        apart = _measure(self.metric)(X[:, None, :], np.asarray(tree.data), **(self.metric_params or {}))
        scaled, weights = apart / self.bandwidth_, 1.0 if tree.sample_weight is None else np.asarray(tree.sample_weight)
        nowhere = found == -np.inf
        inside = (scaled < 1) | nowhere[:, None] | (self.kernel in ("gaussian", "exponential"))
        logs = fnp.where(inside, _KERNELS[self.kernel](fnp.where(inside & ~nowhere[:, None], scaled, 0.0)), -np.inf)
        ours = own("scipy.special").logsumexp(logs, axis=1, b=weights)
        return fnp.where(nowhere, -np.inf, found + (ours - own("transforms").stop_gradient(ours)))

    return with_example_loop(call, "sklearn.neighbors.KernelDensity.score_samples")


def _with_flat_distances(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``_euclidean_distances``: the distance of a point from itself has the derivative zero."""

    @wraps(built)
    def call(X: Any, Y: Any, X_norm_squared: Any = None, Y_norm_squared: Any = None, squared: bool = False) -> Any:
        found = built(X, Y, X_norm_squared, Y_norm_squared, True)
        return found if squared else sqrt_flat_at_zero(found)

    return call


def _with_haversine(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``haversine_distances``, which is compiled: distances on the unit sphere, flat at a point itself."""

    @wraps(built)
    def call(X: Any, Y: Any = None) -> Any:
        if not holds_traced((X, Y)):
            return built(X, Y)
        a, b = fnp.asarray(X)[:, None], fnp.asarray(X if Y is None else Y)
        squares = fnp.sin((a - b) / 2) ** 2
        cosines = fnp.cos(a[..., 0]) * fnp.cos(b[..., 0])
        return 2 * fnp.arcsin(sqrt_flat_at_zero(squares[..., 0] + cosines * squares[..., 1]))

    return call


def _chi2(X: Any, Y: Any, result: Any) -> None:
    """Compute ``_chi2_kernel_fast``: write the sums of squared differences over sums."""
    apart, total = X[:, None, :] - Y, X[:, None, :] + Y
    none = total == 0
    result[...] = -fnp.sum(fnp.where(none, 0.0, apart * apart / fnp.where(none, 1.0, total)), axis=-1)


# ---- results that are constant almost everywhere -------------------------------------------------------------


def _refuse_steps(result: str, x: Any, instead: str) -> NoReturn:
    raise ConversionError(
        f"sklearn: {result} changes in steps only, so its derivative is zero almost everywhere, got a traced "
        f"{describe(x)}{user_line()}. {instead}, or, where zero is right, pass funcgrad.stop_gradient(x)."
    )


_SMOOTH = "Use a smooth model, such as MLPRegressor or GaussianProcessRegressor"


def _refuse_prediction_of_trees(x: Any) -> NoReturn:
    _refuse_steps("a prediction of trees", x, _SMOOTH)


def _refuse_fit(what: str, instead: str) -> Callable[[Any], NoReturn]:
    def refuse(x: Any) -> NoReturn:
        raise ConversionError(
            f"sklearn: {what} is done by compiled code, which accepts no traced values, got a traced {describe(x)}"
            f"{user_line()}. {instead}, or, if a constant is meant, pass funcgrad.stop_gradient(x)."
        )

    return refuse


def _refusing(refuse: Callable[[Any], NoReturn], last: int | None = None) -> Callable[[Any], Callable[..., Any]]:
    """Return a wrapper for a method that refuses traced values among its arguments, or among the first ``last``."""

    def around(built: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(built)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            for x in (*args, *kwargs.values())[:last]:
                if isinstance(x, Tracer) and holds_traced((x,)):
                    refuse(x)
            return built(self, *args, **kwargs)

        return call

    return around


def _growing(module: str, place: str) -> Callable[[Any], Callable[..., Any]]:
    """Return a wrapper for a method that grows trees: it refuses traced values, and runs scikit-learn's own code else.

    Compiled code gets the arrays that the method makes, which are not those of NumPy in rebuilt code.
    """

    def around(built: Callable[..., Any]) -> Callable[..., Any]:
        def grow(self: Any, *args: Any, **kwargs: Any) -> Any:
            theirs = attrgetter(place)(import_module(module))
            return theirs(self, *map(_unwrapped, args), **{name: _unwrapped(x) for name, x in kwargs.items()})

        return _refusing(_refuse_fit("growing trees", _SMOOTH))(wraps(built)(grow))

    return around


def _with_plain_points(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method that checks points for compiled code: it refuses traced values and returns NumPy's array."""
    return wraps(built)(
        lambda *args, **kwargs: _unwrapped(_refusing(_refuse_prediction_of_trees)(built)(*args, **kwargs))
    )


def _unwrapped(x: Any) -> Any:
    """Return the array of a constant that rebuilt code made."""
    return strip_constant_tracers(x) if isinstance(x, Tracer) else x


def _refusing_uniform(name: str) -> Callable[[Any], Callable[..., Any]]:
    """Return a wrapper for a prediction from neighbours: with uniform weights, it depends on indices only."""

    def around(built: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(built)
        def call(self: Any, X: Any) -> Any:
            if self.weights in (None, "uniform") and holds_traced((X,)) and not holds_traced((self._y,)):
                instead = "Use weights='distance' or a function of the distances"
                _refuse_steps(f"{name} of neighbours with uniform weights", X, instead)
            return built(self, X)

        return with_example_loop(call, f"sklearn.neighbors.{name}")

    return around


_FOREST, _BOOSTING = "sklearn.ensemble._forest", "sklearn.ensemble._gb"
_HISTOGRAMS = "sklearn.ensemble._hist_gradient_boosting.gradient_boosting"
_TREE = "sklearn.tree._classes"
_TREES = (
    (_FOREST, "BaseForest", "fit", "_validate_X_predict"),
    (_BOOSTING, "BaseGradientBoosting", "fit", "_raw_predict"),
    (_HISTOGRAMS, "BaseHistGradientBoosting", "fit", "_raw_predict"),
)

SCIKIT_LEARN: dict[tuple[str, str], Callable[..., Any]] = {
    (_SVM, "decision_function"): _decision,
    (_SVM, "predict"): with_example_loop(_prediction, "sklearn.svm.predict"),
    **{
        (_COORDINATES, name): with_example_loop(partial(_coordinate_descent, name), f"sklearn.linear_model.{name}")
        for name in (_DATA, _GRAM)
    },
    ("sklearn.impute._knn", "KNNImputer._calc_impute"): _imputed,
    ("sklearn.metrics._pairwise_fast", "_chi2_kernel_fast"): _chi2,
    (_ARRAYS, "_all_with_any_reduction_axis_1"): on_plain_values(_ARRAYS, "_all_with_any_reduction_axis_1"),
    ("sklearn.utils.extmath", "_incremental_mean_and_var"): _mean_and_variance,
}
#: Wrappers of rebuilt functions.
SCIKIT_LEARN_WRAPPERS: dict[tuple[str, str], Callable[[Any], Callable[..., Any]]] = {
    **{
        (_LOSS, place): _loss_method(place, compute)
        for place, compute in (
            ("BaseLoss.loss", _pointwise),
            ("BaseLoss.loss_gradient", _slope),
            ("BaseLoss.gradient", lambda *args: _slope(*args)[1]),
            ("BaseLoss.gradient_hessian", _refuse_newton),
            ("HalfMultinomialLoss.gradient_proba", _refuse_newton),
        )
    },
    ("sklearn.metrics.pairwise", "_euclidean_distances"): _with_flat_distances,
    ("sklearn.metrics.pairwise", "haversine_distances"): _with_haversine,
    ("sklearn.neighbors._kde", "KernelDensity.score_samples"): _with_density,
    (_NEIGHBORS, "KNeighborsMixin.kneighbors"): _with_distances("kneighbors"),
    (_NEIGHBORS, "RadiusNeighborsMixin.radius_neighbors"): _with_distances("radius_neighbors"),
    **{
        (f"sklearn.neighbors._{module}", f"{kind}.{name}"): _refusing_uniform(name)
        for module, name, kinds in (
            ("regression", "predict", "KNeighborsRegressor RadiusNeighborsRegressor"),
            ("classification", "predict_proba", "KNeighborsClassifier RadiusNeighborsClassifier"),
        )
        for kind in kinds.split()
    },
    (_NEIGHBORS, "NeighborsBase._fit"): _refusing(
        _refuse_fit("the search among points", "Compute distances from all points, by metrics.pairwise_distances"), 1
    ),
    **{(module, f"{kind}.{fit}"): _refusing(_refuse_fit("growing trees", _SMOOTH)) for module, kind, fit, _ in _TREES},
    **{(module, f"{kind}.{predict}"): _refusing(_refuse_prediction_of_trees) for module, kind, _, predict in _TREES},
    (_TREE, "BaseDecisionTree._fit"): _growing(_TREE, "BaseDecisionTree._fit"),
    (_TREE, "BaseDecisionTree._validate_X_predict"): _with_plain_points,
}
