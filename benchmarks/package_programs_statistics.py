"""Programs of ``packages`` about statistics, graphs, geometry and linear algebra."""

from __future__ import annotations

from typing import Any

from package_programs import Program, adding_to

PROGRAMS: list[Program] = []
program = adding_to(PROGRAMS)


@program("pyrr", 0.3, 0.4, 0.5)
def transforms_of_points(x: Any) -> Any:
    import numpy as np
    from pyrr import Matrix44, Vector3

    turned = Matrix44.from_translation(x) * Matrix44.from_x_rotation(x[0]) * Matrix44.from_scale(x)
    v = Vector3(x)
    return np.asarray(turned * turned.inverse + turned).sum() + (v ^ Vector3([1.0, 2.0, 3.0])) | v.normalized


@program("spatialmath-python", 0.3, 0.4, 0.5)
def poses(x: Any) -> Any:
    from spatialmath import SE3, Twist3, UnitQuaternion

    between = UnitQuaternion.RPY(x).interp(UnitQuaternion.Rx(0.2), x[0])
    pose = SE3.RPY(x) * SE3.Tx(x[1]).inv()
    return between.vec[1] + (Twist3(pose.log(twist=True)).exp(0.5) * [1.0, 2.0, 3.0]).sum()


@program("empyrical-reloaded", 0.01, -0.02, 0.03, 0.005)
def ratios_of_returns(x: Any) -> Any:
    import empyrical
    import numpy as np
    import pandas as pd

    days = pd.Series(x, index=pd.date_range("2020-01-01", periods=4))
    market = np.array([0.02, -0.01, 0.01, 0.004])
    found = empyrical.sharpe_ratio(x) + empyrical.max_drawdown(x) + empyrical.alpha_beta(x, market)[1]
    return found + empyrical.cum_returns(days).iloc[-1]


@program("networkx", 1.0, 2.0, 0.5, 1.5, 0.7)
def centralities(x: Any) -> Any:
    import networkx as nx

    graph = nx.DiGraph()
    for (a, b), weight in zip([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], x, strict=True):
        graph.add_edge(a, b, weight=weight)
    found = nx.pagerank(graph, tol=1e-12)[2] + nx.dijkstra_path_length(graph, 0, 3)
    return found + nx.directed_laplacian_matrix(graph)[0, 1] + nx.katz_centrality_numpy(graph, 0.05)[1]


@program("pot", 0.1, 0.5, 0.7, 0.2)
def transport(x: Any) -> Any:
    import numpy as np
    import ot

    weights, places = np.full(2, 0.5), np.array([[0.3, 0.4], [0.9, 0.1]])
    costs = ot.dist(x.reshape(2, 2), places)
    return ot.sinkhorn2(weights, weights, costs, 0.5) + ot.sliced_wasserstein_distance(x.reshape(2, 2), places, seed=0)


@program("statsmodels", 0.3, 1.2, 0.7, 2.1, 1.4, 1.9)
def regression_by_formula(x: Any) -> Any:
    import numpy as np
    import pandas as pd
    import statsmodels.api as sm
    import statsmodels.formula.api as smf

    table = pd.DataFrame({"y": x, "a": np.arange(6.0), "b": np.arange(6.0) ** 2})
    small, large = smf.ols("y ~ a", table).fit(), smf.ols("y ~ a + b", table).fit()
    return large.params["b"] + large.rsquared + sm.stats.anova_lm(small, large)["F"].iloc[1]


@program("linearmodels", 0.3, 1.2, 0.7, 2.1, 1.4, 1.9, 0.2, 0.8)
def panel(x: Any) -> Any:
    import numpy as np
    import pandas as pd
    from linearmodels import FirstDifferenceOLS, RandomEffects

    index = pd.MultiIndex.from_product([range(4), range(2)])
    y, a = pd.Series(x, index=index), pd.DataFrame({"a": np.arange(8.0) ** 2}, index=index)
    return RandomEffects(y, a).fit().params["a"] + FirstDifferenceOLS(y, a).fit().params["a"]


@program("pints", 1.1, 6.0, 0.5)
def posterior_of_logistic_growth(x: Any) -> Any:
    import numpy as np
    import pints
    import pints.toy

    times = np.linspace(0.0, 10.0, 8)
    problem = pints.SingleOutputProblem(pints.toy.LogisticModel(2), times, np.linspace(2.0, 6.5, 8))
    prior = pints.ComposedLogPrior(*[pints.GaussianLogPrior(1.0, 2.0)] * 3)
    return pints.LogPosterior(pints.GaussianLogLikelihood(problem), prior)(x)


@program("bayespy", 0.3, 1.2, 0.7)
def variational_bound(x: Any) -> Any:
    from bayespy.inference import VB
    from bayespy.nodes import Gamma, GaussianARD

    mean, precision = GaussianARD(0, 1e-3), Gamma(1e-3, 1e-3)
    data = GaussianARD(mean, precision, plates=(3,))
    data.observe(x)
    model = VB(mean, precision, data)
    model.update(repeat=4, verbose=False)
    return model.L[3]


@program("tensorly", 0.3, 1.2, 0.7, 2.1, 1.4, 1.9, 0.2, 0.8)
def decompositions(x: Any) -> Any:
    import tensorly as tl
    from tensorly.decomposition import parafac, tensor_train

    whole = x.reshape(2, 2, 2)
    found = tl.cp_to_tensor(parafac(whole, rank=1, n_iter_max=5, init="svd", tol=0))[0, 1, 1]
    return found + tl.tt_to_tensor(tensor_train(whole, rank=[1, 1, 1, 1]))[1, 0, 1]


@program("scipy", 0.3, 1.2, 0.7)
def likelihood_by_lapack(x: Any) -> Any:
    import numpy as np
    from scipy.linalg import lapack

    factor, info = lapack.dpotrf(np.outer(x, x) + np.eye(3), lower=1)
    solved, info = lapack.dtrtrs(factor, x[:, None], lower=1)
    return np.log(np.diag(factor)).sum() + 0.5 * (solved**2).sum() + info
