"""SciPy functions that depend on values, in ``vmap``; solvers and searches under SciPy's names."""

import math

import numpy as np
import pytest
import scipy.differentiate
import scipy.integrate
import scipy.linalg
import scipy.ndimage
import scipy.optimize as so
import scipy.signal
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
import scipy.spatial
from helpers import differences
from scipy.cluster.vq import kmeans2, vq, whiten
from scipy.integrate import nquad
from scipy.optimize import line_search
from scipy.optimize.elementwise import find_root
from scipy.spatial.transform import Rotation

from funcgrad import grad, hessian, jacfwd, jacobian, vmap
from funcgrad.errors import ConcretizationError, ConversionError, InputError

X = np.array([0.4, 0.7, 1.15])
M = np.array([[4.0, 1.0, 0.5], [1.2, 3.0, 0.2], [0.5, 0.3, 5.0]])
T = np.linspace(0.0, 2.0, 12)
DATA = 2 * np.exp(-1.3 * T) + 0.1 * np.cos(9 * T)
PLACES = np.random.default_rng(3).random((12, 3))


def graph(x):
    weights = np.concatenate([x, 1.1 * x, x**2])
    return scipy.sparse.csr_array((weights, ([0, 0, 1, 2, 3, 1, 4, 2, 3], [1, 2, 3, 3, 4, 4, 0, 1, 0])), shape=(5, 5))


IN_TURN = {
    "ellip": lambda x: np.concatenate(scipy.signal.ellip(4, x[0], 30 * x[1] + 10, 0.3 * x[2])),
    "bilinear": lambda x: np.concatenate(scipy.signal.bilinear([x[0], 1], [1, x[1], x[2]], fs=3.0)),
    "residue": lambda x: np.real(scipy.signal.residue([x[0], 1], [1, 3 + x[1], 2])[0]),
    "iircomb": lambda x: np.concatenate(scipy.signal.iircomb(0.25, 30 * x[0])),
    "find_root": lambda x: find_root(lambda p, a: p**3 - a, (0.0, 3.0), args=(x,)).x,
    "dijkstra": lambda x: scipy.sparse.csgraph.dijkstra(graph(x)),
    "dijkstra of a matrix": lambda x: scipy.sparse.csgraph.dijkstra(graph(x).toarray()),
    "matrix_balance": lambda x: scipy.linalg.matrix_balance(M * np.array([1.0, 100.0, 0.01]) * x)[0],
    "ldl": lambda x: scipy.linalg.ldl(M + M.T + np.diag(x))[0],
    "directed_hausdorff": lambda x: scipy.spatial.distance.directed_hausdorff(PLACES * x, PLACES + 1)[0] * x,
}


@pytest.mark.parametrize("name", IN_TURN)
def test_vmap_runs_examples_in_turn(name):
    fun = IN_TURN[name]
    weights = np.cos(np.arange(np.size(fun(X)))).reshape(np.shape(fun(X)))
    total = lambda x: np.sum(np.nan_to_num(fun(x), posinf=0.0) * weights)
    np.testing.assert_allclose(grad(total)(X), differences(total, X, 1e-3), rtol=1e-6, atol=1e-7)
    batch = np.stack([X, 1.01 * X, X + 0.003])
    for part in (fun, grad(total), hessian(total)):
        np.testing.assert_allclose(vmap(part)(batch), [part(x) for x in batch], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(vmap(jacfwd(total))(batch), vmap(grad(total))(batch), rtol=1e-8, atol=1e-10)
    outer = jacobian(lambda rows: vmap(total)(rows))(batch)
    np.testing.assert_allclose(np.einsum("iij->ij", outer), vmap(grad(total))(batch), rtol=1e-8, atol=1e-10)
    several = np.stack([batch, 1.1 * batch])
    np.testing.assert_allclose(vmap(vmap(total))(several), [[total(x) for x in rows] for rows in several], rtol=1e-10)


def asserted(x):
    np.testing.assert_allclose(x, x + 1e-12)
    np.testing.assert_array_less(x[1], 3.0, err_msg="too large")
    return np.sum(x**2)


def labelled(x):
    labels, count = scipy.ndimage.label(x > 0.5)
    return scipy.ndimage.sum_labels(x**2, labels, np.arange(1, count + 1)).sum()


@pytest.mark.parametrize("fun", [asserted, labelled])
def test_nondifferentiable_functions_in_batch(fun):
    """Check functions whose result has no derivative: they get the plain values of each example."""
    batch = np.stack([X, 1.01 * X, X + 0.05])
    assert grad(fun)(X) == pytest.approx(differences(fun, X))
    np.testing.assert_allclose(vmap(grad(fun))(batch), [grad(fun)(x) for x in batch])
    np.testing.assert_allclose(vmap(fun)(batch), [fun(x) for x in batch])


def test_assertion_failing_in_one_example():
    with pytest.raises(AssertionError, match="too large"):
        vmap(asserted)(np.stack([X, 9 * X]))


def test_label_count_differs_between_examples():
    counted = lambda x: scipy.ndimage.label(x > 0.5)[1] * x[0]
    np.testing.assert_allclose(vmap(counted)(np.stack([X, [0.7, 0.1, 0.7]])), [0.4, 1.4])


def test_differing_shapes_and_closures_in_batch_raise():
    """Check that results of different shapes, and closed-over values that differ, raise the error of the batch."""
    one = np.ones(1)
    waves = lambda x: scipy.signal.find_peaks(np.sin(x * np.arange(30.0)))[0] * x
    with pytest.raises(ConversionError, match="lose the batch"):
        vmap(waves)(np.array([0.5, 1.5]))
    closed = lambda x: line_search(lambda p: sum((p - x) ** 2), lambda p: 2 * (p - x), 0.1 * one + 0 * x, one)[0]
    with pytest.raises(ConcretizationError, match="differs between the 2 examples"):
        vmap(closed)(np.array([0.5, 1.5]))
    tree = lambda x: scipy.sparse.csgraph.minimum_spanning_tree(graph(x)).toarray()
    with pytest.raises(ConcretizationError, match="3 examples"):
        vmap(tree)(np.stack([X, 1.01 * X, X[::-1]]))


def test_written_output_arrays_in_batch_raise():
    def filtered(x):
        found = np.zeros(6)
        scipy.ndimage.generic_filter1d(
            np.arange(6.0) * x[0], lambda a, b: b.__setitem__(..., a[1:-1] if x[1] > 0 else 0), 3, output=found
        )
        return found

    with pytest.raises((ConcretizationError, ConversionError)):
        vmap(filtered)(np.array([[1.0, 1.0], [2.0, -1.0]]))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, out: scipy.ndimage.distance_transform_edt(x > 0.5, distances=out),
        lambda x, out: scipy.ndimage.distance_transform_edt(x > 0.5, None, True, False, out),
    ],
)
def test_array_for_distances_raises_in_a_batch(call):
    """In a loop over examples the write would reach a copy, and the gradient would be that without a write."""

    def total(x, out):
        out = out.copy()
        call(x, out)
        return np.sum(out)

    x = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    with pytest.raises(ConversionError):
        vmap(grad(total, argnums=1))(x, np.ones((2, 3)))


def objective(p, x):
    return (p[0] - x[0]) ** 2 + 2 * (p[1] - x[1] * p[0]) ** 2 + 0.1 * p[0] ** 4 + 0.05 * p[1] ** 4 * x[2]


BOX = [(-2.0, 2.0), (-2.0, 2.0)]
SEARCHES = {
    "differential_evolution": lambda x: so.differential_evolution(objective, BOX, (x,), rng=1, tol=1e-12).x,
    "whole generations": lambda x: (
        so.differential_evolution(objective, BOX, (x,), rng=1, tol=1e-12, updating="deferred").x
    ),
    "begun somewhere": lambda x: so.differential_evolution(lambda p: objective(p, x), BOX, rng=1, x0=[0.1, 0.2]).x,
    "dual_annealing": lambda x: so.dual_annealing(lambda p: objective(p, x), BOX, rng=1, maxiter=20).x,
    "shgo": lambda x: so.shgo(lambda p: objective(p, x), BOX).x,
    "direct": lambda x: so.direct(lambda p: objective(p, x), so.Bounds([-2.0, -2.0], [2.5, 2.5]), vol_tol=1e-24).x,
}


@pytest.mark.parametrize("name", SEARCHES)
def test_global_minimum_has_derivative_in_parameters(name):
    """Check global searches, whose steps have derivative zero, against a local search with a derivative."""
    exact = lambda x: so.minimize(objective, [0.3, 0.2], x, tol=1e-13, method="trust-exact", **SLOPES).x
    np.testing.assert_allclose(jacobian(SEARCHES[name])(X), jacobian(exact)(X), rtol=2e-3, atol=1e-4)


SLOPES = {"jac": lambda p, x: grad(objective)(p, x), "hess": lambda p, x: hessian(objective)(p, x)}


def test_integrality_in_traced_search_raises():
    with pytest.raises(ConversionError, match="integrality"):
        grad(lambda x: so.differential_evolution(objective, BOX, (x,), integrality=[1, 0]).fun)(X)


def prices(x):
    found = so.linprog(
        [-1, -2 * x[0] - 1, 0.3, -5 * x[2]],
        [[1, 1, 0.2, 0.1], [1, 3 * x[1], 0.1, 0.2]],
        [4 * x[1], 6 * x[2]],
        [[0.1, 0.2, 0.3, 0.7]],
        [x[2]],
        [(0, None), (0, None), (0.05 * x[0], 3), (0, 0.4)],
    )
    parts = (found.ineqlin, found.eqlin, found.lower, found.upper)
    return np.concatenate([*[part.marginals for part in parts], *[part.residual for part in parts[:3]]])


SOLVERS = {
    "leastsq": lambda x: so.leastsq(lambda p: p[0] * np.exp(-p[1] * T) - DATA * x[1] - x[0] * T / 9, [1.0, 1.0])[0],
    "covariances of leastsq": lambda x: so.leastsq(
        lambda p: p[0] * np.exp(-p[1] * T) - DATA * x[1], [1.0, 1.0], xtol=1e-13, ftol=1e-13, full_output=True
    )[1],
    "broyden1": lambda x: so.broyden1(lambda p: p + 0.2 * np.sin(p[::-1]) - x[:2], [0.3, 0.3], f_tol=1e-11),
    "newton_krylov": lambda x: so.newton_krylov(lambda p: p + 0.2 * np.sin(p[::-1]) - x[:2], [0.3, 0.3], f_tol=1e-11),
    "isotonic_regression": lambda x: so.isotonic_regression(np.sin(9 * T) * x[1] + T * x[0], weights=1 + T * x[2]).x,
    "falling": lambda x: so.isotonic_regression(np.sin(9 * T) * x[1] - T * x[0], increasing=False).x,
    "milp": lambda x: (
        so.milp(
            [-1, -2 * x[0], -0.5],
            constraints=[
                so.LinearConstraint([[1, 1, 0], [1, 3, 0]], [-np.inf, 0.1], 5.3 * x[:2]),
                ([[0, 1, 1]], x[2], x[2]),
            ],
            integrality=[1, 0, 0],
            bounds=so.Bounds(0.0, 10.0),
        ).x
    ),
    "prices": prices,
    "distances to codes": lambda x: vq(whiten(PLACES * x), PLACES[:3] + 0.1)[1],
    "means of clusters": lambda x: kmeans2(PLACES * x + x**2, PLACES[:3] * X + X**2, minit="matrix")[0],
    "whole numbers of linprog": lambda x: so.linprog([-1, -2], [[1, 1], [1, 3]], 5.3 * x[:2], integrality=[1, 0]).x,
    "lgmres": lambda x: scipy.sparse.linalg.lgmres(M + np.diag(x), np.ones(3), rtol=1e-13)[0],
    "gcrotmk": lambda x: scipy.sparse.linalg.gcrotmk(M + np.diag(x), np.ones(3), rtol=1e-13)[0],
    "medfilt2d": lambda x: scipy.signal.medfilt2d(np.outer(np.sin(9 * T), np.cos(T * x[0])), 3),
    "time step": lambda x: scipy.signal.savgol_filter(np.sin(9 * T), 7, 3, deriv=1, delta=x[0]),
    "rate": lambda x: scipy.signal.welch(np.sin(9 * T * x[0]), fs=x[1], nperseg=8)[1],
    "window": lambda x: scipy.signal.firwin(9, 0.3 * x[0], window=("kaiser", 4 * x[1])),
    "window of short times": lambda x: np.abs(
        scipy.signal.ShortTimeFFT(np.hanning(8) + x[0], 4, 10.0).stft(np.sin(9 * T))
    ),
    "corners": lambda x: scipy.spatial.ConvexHull(PLACES * x + x**2).equations,
    "volume": lambda x: np.array(
        [scipy.spatial.ConvexHull(PLACES * x).volume, scipy.spatial.ConvexHull(PLACES * x).area]
    ),
    "bounds": lambda x: scipy.spatial.ConvexHull(PLACES[:, :2] * x[:2]).max_bound,
    "plane": lambda x: np.array(scipy.spatial.ConvexHull(PLACES[:, :2] * x[:2]).area),
    "davenport": lambda x: Rotation.from_davenport(np.eye(3), "intrinsic", x).as_matrix(),
    "one axis": lambda x: Rotation.from_davenport([0.0, 0.0, 1.0], "extrinsic", x[0]).as_matrix(),
    "reduced": lambda x: Rotation.from_rotvec(x).reduce(Rotation.create_group("O")).as_matrix(),
    "reduced on both sides": lambda x: (
        Rotation.from_rotvec(np.stack([x, 0.4 * x]))
        .reduce(Rotation.create_group("C4"), Rotation.from_rotvec([[0.3, 0.1, 0.2], [0.1, 1.2, 0.4]]))
        .as_matrix()
    ),
    "left vectors": lambda x: np.abs(scipy.linalg.eig(M + np.diag(x), left=True, right=False)[1]),
    "between two numbers": lambda x: scipy.linalg.eigh(M + M.T + np.diag(x), subset_by_value=(6.5, 99.0))[0],
    "pairs of numbers": lambda x: np.real(scipy.linalg.eig(M + np.diag(x), right=False, homogeneous_eigvals=True)),
    "complex form": lambda x: np.abs(scipy.linalg.rsf2csf(*scipy.linalg.schur(M - 9 * np.tri(3, k=-1) * x))[0]),
}
#: Tolerances of solvers whose SciPy results are accurate to some digits only.
LOOSE = {"leastsq": 1e-4, "covariances of leastsq": 1e-4, "broyden1": 1e-6, "newton_krylov": 1e-6}


@pytest.mark.parametrize("name", SOLVERS)
def test_solver_derivatives(name):
    fun, tol = SOLVERS[name], LOOSE.get(name, 1e-7)
    slopes, want = jacobian(fun)(X), differences(fun, X, 1e-3)
    np.testing.assert_allclose(slopes, want, rtol=tol, atol=tol * (1 + np.abs(want).max()))
    np.testing.assert_allclose(jacfwd(fun)(X), slopes, rtol=1e-8, atol=1e-10)
    total = lambda x: np.sum(jacobian(fun)(x) ** 2)
    if LOOSE.get(name) is None:
        np.testing.assert_allclose(grad(total)(X), differences(total, X, 1e-3), rtol=1e-5, atol=1e-6)


def test_constraints_close_over_batched_values():
    def nearest(x, constraint):
        return so.minimize(lambda p: objective(p, x), [0.3, 0.2], constraints=constraint(x), tol=1e-12).x

    kinds = {
        "equation": lambda x: [{"type": "eq", "fun": lambda p: p[0] + p[1] - x[2]}],
        "inequality": lambda x: {"type": "ineq", "fun": lambda p: p[0] + p[1] - x[2]},
        "its own slope": lambda x: {
            "type": "eq",
            "fun": lambda p: x[0] * p[0] + p[1] - x[2],
            "jac": lambda p: np.array([x[0], 1.0]),
        },
        "not linear": lambda x: so.NonlinearConstraint(lambda p: p[0] ** 2 + x[0] * p[1] ** 2, x[2], np.inf),
    }
    batch = np.stack([X, 1.01 * X])
    for name, kind in kinds.items():
        fun = lambda x, kind=kind: nearest(x, kind)
        np.testing.assert_allclose(vmap(fun)(batch), [fun(x) for x in batch], rtol=1e-5, err_msg=name)
        slopes = vmap(jacobian(fun))(batch)
        np.testing.assert_allclose(slopes, [jacobian(fun)(x) for x in batch], rtol=1e-4, atol=1e-5, err_msg=name)


EMPTY = np.zeros((0, 3))


def test_empty_batch():
    """Functions of arrays have an empty result; where a value is needed to know the shape, the error says so."""
    smooth = lambda x: np.array([math.sin(x[0]), x[1]])
    assert vmap(smooth)(EMPTY).shape == (0, 2)
    assert vmap(jacfwd(smooth))(EMPTY).shape == (0, 2, 3)
    for name, fun in (
        ("scipy.signal.find_peaks", lambda x: np.sum(x[scipy.signal.find_peaks(x)[0]])),
        ("scipy.signal.ellip", lambda x: scipy.signal.ellip(3, x[0], 30 + x[1], 0.3)[0].sum()),
        ("bool", lambda x: x[1] if x[0] > 0 else x[2]),
    ):
        for part in (fun, grad(fun), jacfwd(fun)):
            with pytest.raises(ConcretizationError, match=name + r".* in a vmap without examples|got a vmap without"):
                vmap(part)(EMPTY)


def test_rotation_setitem():
    def of(v):
        turns = Rotation.from_rotvec(np.stack([v, 2 * v]))
        turns[0] = Rotation.from_rotvec(v**2)
        return turns.as_matrix()

    np.testing.assert_allclose(jacobian(of)(X), differences(of, X, 1e-3), rtol=1e-8, atol=1e-9)


def test_invalid_hulls_and_rotations_raise():
    with pytest.raises(ConversionError, match="lose the batch"):
        vmap(lambda x: scipy.spatial.ConvexHull(PLACES * x).volume)(np.stack([X, 2 * X]))
    with pytest.raises(AttributeError, match="add_points is for plain points"):
        grad(lambda x: scipy.spatial.ConvexHull(PLACES * x).add_points(PLACES) or x[0])(X)
    for order, times, message in (("up", 1, "order"), ("e", 2, "an angle for each axis")):
        with pytest.raises(ValueError, match=message):
            grad(lambda x, o=order, n=times: Rotation.from_davenport(np.eye(3), o, np.tile(x, n)).as_quat()[0])(X)


def test_nondifferentiable_matrix_decompositions():
    """Check equal eigenvalues, and a column that is zero below the diagonal."""
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        grad(lambda a: scipy.linalg.schur(a)[1][0, 1])(np.eye(3))
    assert np.isnan(grad(lambda a: scipy.linalg.hessenberg(a)[1, 2])(np.eye(3))).any()
    with pytest.raises(TypeError, match="output='complex'"):
        grad(lambda a: scipy.linalg.qz(a - a.T + np.eye(3), np.eye(3))[0][0, 0])(M)


@pytest.mark.parametrize("of", [nquad, lambda *args, **options: scipy.integrate.nquad(*args, **options)])
def test_nquad_by_both_names(of):
    total = lambda x, **options: of(lambda a, b: np.exp(-x * a * b), [[0, 1], [0, x]], **options)[0]
    np.testing.assert_allclose(grad(total)(0.7), differences(total, 0.7, 1e-3), rtol=1e-6)
    with pytest.raises(InputError, match="full_output is for plain values"):
        grad(lambda x: total(x, full_output=True))(0.7)


def test_hessian_by_differences_in_a_batch():
    """The second search of ``hessian`` needs the numbers of calls of the first one, which differ between examples."""
    f = lambda x: scipy.differentiate.hessian(lambda y: np.sin(y[0]) * y[1], x)
    points = np.array([[1.0, 2.0], [0.2, 3.0]])
    for field in ("ddf", "nfev"):
        want = np.stack([getattr(f(x), field) for x in points])
        np.testing.assert_array_equal(vmap(lambda x, field=field: getattr(f(x), field))(points), want)
