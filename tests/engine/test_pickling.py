"""Objects that transforms return can be copied; those without a tape can be pickled, the others raise an error."""

import copy
import pickle

import numpy as np
import pytest

import funcgrad.nn as fnn
import funcgrad.numpy as fnp
import funcgrad.scipy.special as fsp
from funcgrad import checkpoint, custom_vjp, grad, hessian, jvp, linearize, no_grad, trace, vjp, vmap
from funcgrad.core import Primitive
from funcgrad.errors import ConcretizationError, InputError
from funcgrad.interop import crosscheck, jit
from funcgrad.kinds import elementwise
from funcgrad.scipy import stats
from funcgrad.transforms import profile

X = np.array([0.5, 1.5])
COPIES = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "deepcopy": copy.deepcopy, "copy": copy.copy}


def wave(x):
    return fnp.sum(fnp.linalg.det(fnp.outer(x, x) + fnp.eye(2)) * fnp.sin(x["a"] if isinstance(x, dict) else x))


def of_tree(p):
    return {"out": p["w"] @ p["w"], "all": (fnp.cumsum(p["w"]) * p["b"], fnp.exp(p["b"]))}


@custom_vjp
def own(x):
    return x * x


def own_fwd(x):
    return x * x, x


def own_bwd(x, ct):
    return (2 * x * ct,)


own.defvjp(own_fwd, own_bwd)
TREE = {"w": X, "b": 2.0}
FUNCTIONS = {
    "grad": grad(wave),
    "hessian": hessian(wave),
    "vmap": vmap(wave),
    "checkpoint": checkpoint(wave),
    "no_grad": no_grad(wave),
    "jit": jit(wave),
    "graph": trace(wave)(X),
    "graph of grad": trace(grad(wave))(X),
    "derivative": linearize(wave, X)[1],
    "derivative of a gradient": linearize(grad(wave), X)[1],
}


def same(got, want):
    for g, w in zip(fnp.ravel(got), fnp.ravel(want), strict=True):
        assert g == w


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_transformed_functions_copy_and_pickle(name, way):
    fun = FUNCTIONS[name]
    x = X[None] if name == "vmap" else X
    same(COPIES[way](fun)(x), fun(x))


@pytest.mark.parametrize("way", COPIES)
def test_derivatives_of_trees_and_custom_rules_copy_and_pickle(way):
    push = COPIES[way](linearize(of_tree, TREE)[1])
    got, want = push(TREE), jvp(of_tree, (TREE,), (TREE,))[1]
    np.testing.assert_allclose(got["out"], want["out"])
    np.testing.assert_allclose(got["all"][0], want["all"][0])
    if way != "pickle":  # pickle finds the decorated function by name, not the one in the graph
        same(COPIES[way](trace(own)(3.0))(2.0), 4.0)


@pytest.mark.parametrize("way", COPIES)
def test_reports_copy_and_pickle(way):
    for report in (crosscheck(wave)(X), profile(wave)(X)):
        assert str(COPIES[way](report)) == str(report)


def long(x):
    for _ in range(3_000):
        x = fnp.sin(x)
    return x


@pytest.mark.parametrize("way", COPIES)
def test_long_runs_copy_without_recursion(way):
    assert COPIES[way](linearize(long, 0.5)[1])(1.0) == pytest.approx(grad(long)(0.5), rel=1e-12)
    assert len(COPIES[way](trace(long)(0.5))) == 3_000
    if way != "pickle":
        same(COPIES[way](vjp(long, 0.5)[1])(1.0)[0], grad(long)(0.5))


def test_pickling_pullback_raises():
    _, pullback = vjp(wave, X)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(InputError, match=r"^pickle: a pullback holds the tape .* got <pullback of wave>\."):
            pickle.dumps(pullback, protocol)
    same(copy.deepcopy(pullback)(1.0)[0], grad(wave)(X))


def test_pickling_traced_value_raises():
    def inner(x):
        return pickle.dumps(linearize(lambda y: y * x, 2.0)[1])

    with pytest.raises(ConcretizationError, match=r"^pickle: a traced value"):
        grad(inner)(3.0)


def test_operations_pickle_by_name():
    for operation in (fnp.sin, fnp.linalg.det):
        primitive = next(step.primitive for step in trace(operation)(np.eye(2))._recording.operations)
        for way in COPIES.values():
            assert way(primitive) is primitive
    cube = elementwise("cube", lambda xp, x: x * x * x, dx=lambda x: 3 * x * x)
    assert type(cube.primitive) is Primitive
    with pytest.raises(InputError, match=r"^pickle: an operation is stored by its name .* got <primitive cube>"):
        pickle.dumps(trace(cube)(2.0))


#: Functions whose graphs hold operations that no module has by their name: with hidden results, of rules, of helpers.
OF_PRIVATE_OPERATIONS = {
    "standardize": fnn.standardize,
    "gelu": fnn.gelu,
    "gelu, exact": lambda x: fnn.gelu(x, approximate=False),
    "softmax_cross_entropy": lambda x: fnn.softmax_cross_entropy(x, np.array([0.25, 0.75])),
    "class of softmax_cross_entropy": lambda x: fnn.softmax_cross_entropy(x, np.array(1)),
    "elliprj": lambda x: fsp.elliprj(x[0], x[1], 1.0, 2.0),
    "ncfdtr": lambda x: fsp.ncfdtr(2.0, 3.0, x[0], x[1]),
    "logsumexp": fsp.logsumexp,
    "log_ndtr": fsp.log_ndtr,
    "kve": lambda x: fsp.kve(x[0], x[1]),
    "pseudo_huber": lambda x: fsp.pseudo_huber(x[0], x[1]),
}


@pytest.mark.parametrize("name", OF_PRIVATE_OPERATIONS)
def test_graphs_with_private_operations_pickle(name):
    f = lambda x: fnp.sum(fnp.sin(OF_PRIVATE_OPERATIONS[name](x)))
    for fun in (f, grad(f), lambda x: grad(lambda x: fnp.sum(grad(f)(x)))(x)):
        graph = trace(fun)(X)
        same(pickle.loads(pickle.dumps(graph))(X), graph(X))


@pytest.mark.parametrize("way", COPIES)
def test_distributions_pickle_by_name(way):
    for name in ("norm", "t", "beta", "poisson", "multivariate_normal", "weibull_max"):
        distribution = getattr(stats, name)
        assert COPIES[way](distribution) is distribution
    method = COPIES[way](stats.gamma.logpdf)
    assert grad(method, 1)(2.0, 3.0) == grad(stats.gamma.logpdf, 1)(2.0, 3.0)
    same(COPIES[way](stats.gamma(2.0, scale=3.0)).pdf(X), stats.gamma.pdf(X, 2.0, scale=3.0))
