"""Fit a saturating response to the records of 442 patients by SciPy's solvers, with exact Jacobians.

The data are ten measurements of diabetes patients and the progression of the illness in a year, from scikit-learn. A
straight line through the data can predict a negative progression; the model here stays between two levels, which the
fit finds. Guess, bounds and answer are dictionaries. Run it with ``python examples/least_squares.py``.
"""

import numpy as np
import scipy.optimize
from sklearn.datasets import load_diabetes

import funcgrad.numpy as fnp
from funcgrad.interop.scipy import least_squares, minimize


def load():
    """Return measurements scaled to mean 0 and variance 1, and the progression of the illness, in hundreds."""
    data = load_diabetes(scaled=False)
    x = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    return x, data.target / 100.0, list(data.feature_names)


def predict(params, x):
    """Return a value between the lower and the upper level, along a sigmoid of a weighted sum."""
    score = x @ params["weights"] + params["offset"]
    return params["low"] + (params["high"] - params["low"]) * 0.5 * (1.0 + fnp.tanh(0.5 * score))


def residuals(params, x, y):
    return {"data": predict(params, x) - y, "prior": 0.1 * params["weights"]}


def energy(params, x, y):
    """Return half the sum of the squared residuals, for solvers that minimise one number."""
    return 0.5 * sum(fnp.sum(r**2) for r in residuals(params, x, y).values())


def explained(y, predicted):
    return 1.0 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2)


def vector_residuals(v, x, y):
    """Return the residuals for SciPy alone, which takes vectors and measures derivatives by differences."""
    params = {"high": v[0], "low": v[1], "offset": v[2], "weights": v[3:]}
    return np.concatenate([np.ravel(r) for r in residuals(params, x, y).values()])


def main():
    x, y, names = load()
    guess = {"weights": np.zeros(10), "offset": 0.0, "low": 0.5, "high": 3.0}
    bounds = {"weights": None, "offset": None, "low": (0.0, 1.0), "high": (2.0, 4.0)}

    fit = least_squares(residuals, guess, (x, y), bounds=bounds, xtol=1e-12, ftol=1e-12, gtol=1e-12)
    params = fit.x
    print(f"least_squares: {fit.nfev} evaluations, {fit.njev} exact Jacobians, half the sum of squares {fit.cost:.6f}")
    share = explained(y, predict(params, x))
    print(f"levels {params['low']:.2f} and {params['high']:.2f}; the model explains {share:.1%}")
    line = np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), y, rcond=None)[0]
    straight = x @ line[:-1] + line[-1]
    print(f"a straight line explains {explained(y, straight):.1%}")

    # Compute the errors of the weights. The columns of the Jacobian are in the order of the leaves: sorted keys.
    inside = np.linalg.inv(fit.jac.T @ fit.jac) * 2.0 * fit.cost / (len(y) - fit.jac.shape[1])
    spread = np.sqrt(np.diag(inside))[3:]
    for place in np.argsort(-np.abs(params["weights"] / spread))[:4]:
        print(f"  {names[place]:4} {params['weights'][place]:+.2f} ± {spread[place]:.2f}")

    # Find the same minimum in other ways: with a gradient and bounds, Hessian-vector products, and differences.
    for method, limits in (("L-BFGS-B", bounds), ("trust-constr", bounds), ("trust-krylov", None)):
        found = minimize(energy, guess, (x, y), method, bounds=limits, tol=1e-9)
        apart = abs(float(found.fun) - fit.cost) / fit.cost
        print(f"minimize by {method}: {found.nfev} evaluations, distance {apart:.1e} from that minimum")
        assert apart < 1e-8
    start = np.concatenate([[3.0, 0.5, 0.0], np.zeros(10)])
    sides = np.full((2, 13), [[-np.inf], [np.inf]])
    sides[:, :2] = [[2.0, 0.0], [4.0, 1.0]]
    theirs = scipy.optimize.least_squares(vector_residuals, start, args=(x, y), bounds=sides, xtol=1e-12, ftol=1e-12)
    evaluations = theirs.nfev + len(start) * theirs.njev
    print(f"SciPy with differences: {evaluations} evaluations, half the sum of squares {theirs.cost:.6f}")
    assert abs(theirs.cost - fit.cost) < 1e-8 * fit.cost
    assert share > explained(y, straight)


if __name__ == "__main__":
    main()
