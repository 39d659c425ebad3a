"""SciPy's optimisers on trees: known answers, SciPy's results on vectors, what SciPy receives, errors."""

import subprocess
import sys
from typing import NamedTuple

import jax
import numpy as np
import optax
import pytest
import scipy.optimize
from scipy.sparse.linalg import LinearOperator, cg

import funcgrad.numpy as fnp
from funcgrad import custom_root, grad, hessian, jacfwd, stop_gradient, value_and_grad, vmap
from funcgrad.errors import MissingExtraError, NotDifferentiableError
from funcgrad.interop import device_put, from_jax, jit
from funcgrad.interop.scipy import (
    hessian_operator,
    jacobian_operator,
    least_squares,
    minimize,
    root,
    root_scalar,
)

VALUES = ("Nelder-Mead", "Powell", "COBYLA", "COBYQA")
GRADIENTS = ("CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP")
PRODUCTS = ("Newton-CG", "trust-ncg", "trust-krylov", "trust-constr")
HESSIANS = ("dogleg", "trust-exact")
close = np.testing.assert_allclose


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


START = np.array([1.3, 0.7, 0.8, 1.9, 1.2])
#: Start at which Rosenbrock's Hessian is positive definite, as dogleg needs it.
NEAR = np.array([1.02, 1.04, 1.08, 1.17, 1.36])


class Line(NamedTuple):
    slope: np.ndarray
    offset: float


def bowl(p, centre=1.0):
    """Return a convex function of a tree with the minimum slope = centre, offset = 2."""
    return fnp.sum(fnp.cosh(p.slope - centre)) + fnp.cosh(0.5 * (p.offset - 2.0)) + fnp.sum(p.slope - centre) ** 2


def line():
    return Line(np.array([[0.5, -0.5]]), 0.0)


@pytest.mark.parametrize("method", [*GRADIENTS, *PRODUCTS, *HESSIANS])
def test_rosenbrock_with_derivatives(method):
    found = minimize(rosenbrock, NEAR if method == "dogleg" else START, method=method, tol=1e-9)
    assert found.success
    close(found.x, np.ones(5), atol=5e-4)


@pytest.mark.parametrize("method", ["Nelder-Mead", "Powell", "COBYQA"])  # COBYLA converges slowly along the valley
def test_rosenbrock_without_derivatives(method):
    found = minimize(rosenbrock, START[:2], method=method, tol=1e-7, options={"maxiter": 4000})
    assert found.success
    close(found.x, np.ones(2), atol=1e-3)
    assert "jac" not in found


@pytest.mark.parametrize("method", [*VALUES, *GRADIENTS, *PRODUCTS, *HESSIANS])
def test_every_method_on_trees(method):
    found = minimize(bowl, line(), (1.5,), method, tol=1e-8)
    assert type(found.x) is Line
    assert found.x.slope.shape == (1, 2)
    close(found.x.slope, [[1.5, 1.5]], atol=1e-3)
    close(found.x.offset, 2.0, atol=1e-3)
    close(found.fun, bowl(found.x, 1.5), rtol=1e-12)


@pytest.mark.parametrize("method", GRADIENTS)
def test_gradients_save_evaluations(method):
    own = scipy.optimize.minimize(rosenbrock, START, method=method)
    found = minimize(rosenbrock, START, method=method)
    assert found.fun < 1e-6
    assert own.fun < 1e-6
    assert found.nfev < own.nfev
    close(found.x, own.x, atol=2e-3)


@pytest.mark.parametrize("method", ["BFGS", "Newton-CG", "trust-exact"])
def test_steps_match_manual_derivatives(method):
    own = scipy.optimize.minimize(
        scipy.optimize.rosen,
        START,
        method=method,
        jac=scipy.optimize.rosen_der,
        **({} if method == "BFGS" else {"hess": scipy.optimize.rosen_hess}),
    )
    found = minimize(rosenbrock, START, method=method)
    assert found.nit == own.nit
    close(found.x, own.x, atol=1e-7)


def test_default_methods_match_scipy():
    assert "hess_inv" in minimize(rosenbrock, START)
    assert isinstance(minimize(rosenbrock, START, bounds=(0, 2)).hess_inv, LinearOperator)
    held = minimize(rosenbrock, START, constraints={"type": "eq", "fun": lambda x: x[0] - 0.5})
    close(held.x[0], 0.5)
    assert "multipliers" in held or "njev" in held


def test_gradient_at_solution_is_a_tree():
    found = minimize(bowl, line(), options={"maxiter": 1})
    theirs = grad(bowl)(found.x)
    close(found.jac.slope, theirs.slope, rtol=1e-12)
    close(found.jac.offset, theirs.offset, rtol=1e-12)
    close(minimize(bowl, line(), method="trust-constr").grad.slope, [[0.0, 0.0]], atol=1e-6)


def test_custom_method_gets_vector_gradient_and_products():
    def newton(fun, x, args, jac, hessp, callback, bounds, steps, **rest):
        for _ in range(steps):
            step, _ = cg(LinearOperator((x.size, x.size), matvec=lambda p, x=x: hessp(x, p)), jac(x), rtol=1e-12)
            x = x - step
        return scipy.optimize.OptimizeResult(x=x, fun=fun(x), success=True)

    close(minimize(bowl, line(), method=newton, options={"steps": 12}).x.slope, [[1.0, 1.0]], atol=1e-9)


# dtypes and kinds of leaves


def test_leaves_keep_their_dtypes():
    seen = []

    def loss(p):
        seen.append({name: x.dtype for name, x in p.items()})
        return sum(fnp.sum((x - 1.0) ** 2).astype("float64") for x in p.values())

    params = {"a": np.zeros(2, np.float32), "b": np.zeros((), np.float64), "c": np.float16(0.0), "d": np.zeros((0, 3))}
    for found in (minimize(loss, params), minimize(loss, params, method="trust-ncg")):
        for part in (found.x, found.jac):
            assert {k: (x.dtype.name, x.shape) for k, x in part.items()} == {
                "a": ("float32", (2,)),
                "b": ("float64", ()),
                "c": ("float16", ()),
                "d": ("float64", (0, 3)),
            }
        close(found.x["a"], 1.0, atol=1e-6)
    assert {d["a"].name for d in seen} == {"float32"}
    assert type(found.x["b"]) is np.ndarray
    assert type(found.x["c"]) is np.float16


def test_python_numbers():
    found = minimize(lambda x: (x - 3.0) ** 2, 0.0)
    assert type(found.x) is np.float64
    close(found.x, 3.0, atol=1e-6)


@pytest.mark.parametrize("method", ["BFGS", "Newton-CG", "trust-exact", "Nelder-Mead"])
def test_complex_leaves(method):
    target = np.array([1.0 + 2.0j, -0.5j])

    def loss(p):
        away = p["z"] - target
        return fnp.sum(fnp.real(away * fnp.conj(away))) + fnp.sum(fnp.real(p["z"]) ** 4) + p["x"] ** 2

    found = minimize(loss, {"x": 1.0, "z": np.zeros(2, np.complex128)}, method=method, tol=1e-9)
    assert found.x["z"].dtype == np.complex128
    close(found.x["z"].imag, [2.0, -0.5], atol=1e-4)
    u = scipy.optimize.brentq(lambda u: 2 * (u - 1) + 4 * u**3, 0, 1)
    close(found.x["z"].real, [u, 0.0], atol=1e-4)
    if method != "Nelder-Mead":
        close(found.jac["z"], grad(loss)(found.x)["z"], atol=1e-12)


def test_jax_leaves_stay_on_device():
    (device,) = jax.devices("cpu")[-1:]
    params = device_put({"w": np.zeros(3), "b": np.zeros((), np.float32)}, device)

    def loss(p):
        assert all(isinstance(x, jax.Array) or hasattr(x, "_trace") for x in p.values())
        return fnp.sum((p["w"] - 1.0) ** 2) + (p["b"] + 1.0) ** 2

    for method in ("BFGS", "Newton-CG"):
        found = minimize(loss, params, method=method)
        assert isinstance(found.x["w"], jax.Array)
        assert found.x["w"].devices() == {device}
        assert (found.x["w"].dtype, found.x["b"].dtype) == (np.float64, np.float32)
        close(found.x["w"], np.ones(3), atol=1e-5)
    fitted = least_squares(lambda p: (p["w"] - 1.0) * 2.0, params)
    assert isinstance(fitted.x["w"], jax.Array)
    close(fitted.x["w"], np.ones(3), atol=1e-7)


def test_arguments_are_not_changed():
    start = START.copy()
    kept = []
    minimize(lambda x: (kept.append(x._val if hasattr(x, "_val") else x), rosenbrock(x))[1], start)
    assert (start == START).all()
    assert len({x.tobytes() for x in kept}) > 5  # each call received a new array


def test_aux_of_solution():
    found = minimize(lambda x: (np.sum((x - 1.0) ** 2), {"at": x * 2.0}), np.zeros(2), has_aux=True)
    close(found.aux["at"], [2.0, 2.0], atol=1e-6)


def test_compiled_functions():
    found = minimize(jit(bowl), line(), (1.0,), "trust-krylov")
    close(found.x.slope, [[1.0, 1.0]], atol=1e-6)


# callbacks


@pytest.mark.parametrize("method", ["BFGS", "TNC", "trust-constr", "COBYLA", "COBYQA", "SLSQP", "Nelder-Mead"])
def test_callback_sees_trees(method):
    seen = []
    minimize(bowl, line(), method=method, callback=lambda p, *state: seen.append(p))
    assert seen
    assert all(type(p) is Line and p.slope.shape == (1, 2) for p in seen)


def test_callback_with_an_intermediate_result():
    seen = []
    minimize(bowl, line(), callback=lambda intermediate_result: seen.append(intermediate_result))
    assert type(seen[-1].x) is Line
    close(seen[-1].fun, bowl(seen[-1].x))


def test_callback_of_a_method_that_reports_only_the_point():
    """SciPy then gives the point in place of the result."""
    seen = []
    minimize(bowl, line(), method="TNC", callback=lambda intermediate_result: seen.append(intermediate_result))
    assert seen
    assert all(type(p) is Line and p.slope.shape == (1, 2) for p in seen)


def test_callback_stops_iteration():
    def enough(p):
        raise StopIteration

    assert minimize(rosenbrock, START, callback=enough).nit == 1


# bounds


@pytest.mark.parametrize("method", ["L-BFGS-B", "TNC", "SLSQP", "trust-constr", "Nelder-Mead", "Powell", "COBYQA"])
def test_bounds_per_leaf(method):
    bounds = Line((None, np.array([0.5, 4.0])), (2.5, 3.0))
    start = Line(np.array([[0.2, 0.3]]), 2.7)
    found = minimize(bowl, start, method=method, bounds=bounds, tol=1e-8)
    own = scipy.optimize.minimize(
        lambda v: bowl(Line(v[:2], v[2])), [0.2, 0.3, 2.7], bounds=[(None, 0.5), (None, 4.0), (2.5, 3.0)], tol=1e-12
    )
    close(np.ravel(found.x.slope), own.x[:2], atol=2e-3)
    close(found.x.offset, 2.5, atol=2e-3)


@pytest.mark.parametrize(
    "bounds",
    [
        (0.0, 0.5),
        [(0.0, 0.5)] * 3,
        np.array([[0.0, 0.5]] * 3),
        scipy.optimize.Bounds(0.0, 0.5),
        scipy.optimize.Bounds(np.zeros(3), np.full(3, 0.5), keep_feasible=True),
        ((None, 0.5), (0, 0.5), (0, np.float64(0.5))),
        (None, 0.5),
    ],
    ids=str,
)
def test_bounds_for_single_array(bounds):
    found = minimize(lambda x: np.sum((x - 1.0) ** 2), np.full(3, 0.1), bounds=bounds)
    close(found.x, [0.5, 0.5, 0.5])


def test_bounds_for_single_matrix():
    upper = np.array([[0.5, 2.0], [0.1, np.inf]])
    found = minimize(lambda x: np.sum((x - 1.0) ** 2), np.zeros((2, 2)), bounds=scipy.optimize.Bounds(-np.inf, upper))
    close(found.x, [[0.5, 1.0], [0.1, 1.0]], atol=1e-6)


def test_bounds_leave_leaves_free():
    found = minimize(bowl, line(), bounds=Line(None, (None, 1.0)))
    close(found.x.offset, 1.0)
    close(found.x.slope, [[1.0, 1.0]], atol=1e-5)


@pytest.mark.parametrize(
    ("bounds", "error", "says"),
    [
        ({"a": (0, 1)}, TypeError, "bounds must be a tree like params"),
        (Line(0.0, (0, 1)), TypeError, "got float 0.0 for params.slope"),
        (Line((np.zeros(3), None), None), ValueError, r"must broadcast to its shape \(1, 2\)"),
        (scipy.optimize.Bounds(np.zeros(2), np.ones(2)), ValueError, "a number for each of params"),
    ],
)
def test_mismatched_bounds_raise(bounds, error, says):
    with pytest.raises(error, match=f"^minimize: .*{says}"):
        minimize(bowl, line(), bounds=bounds)


def test_mismatched_bounds_for_single_array_raise():
    with pytest.raises(ValueError, match=r"Give a scipy\.optimize\.Bounds"):
        minimize(rosenbrock, START, bounds=[(0, 1)] * 3)
    with pytest.raises(TypeError, match="complex numbers have no order"):
        minimize(lambda z: fnp.abs(z) ** 2, 1.0j, bounds=(0, 1))


# constraints


CIRCLE = {"type": "ineq", "fun": lambda p, r: r**2 - fnp.sum(p.slope**2), "args": (0.5,)}


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr", "COBYQA"])
@pytest.mark.parametrize("form", ["dictionary", "object"])
def test_constraints_on_trees(method, form):
    def inside(p):
        return {"circle": fnp.sum(p.slope**2), "half": p.offset}

    limits = scipy.optimize.NonlinearConstraint(inside, [-np.inf, -np.inf], [0.25, 0.5])
    half = {"type": "ineq", "fun": lambda p: 0.5 - p.offset}
    constraints = [CIRCLE, half] if form == "dictionary" else limits
    found = minimize(bowl, line(), method=method, constraints=constraints, tol=1e-9)
    close(found.x.slope, np.full((1, 2), 0.125**0.5), atol=1e-4)
    close(found.x.offset, 0.5, atol=1e-4)


def test_linear_constraints_use_flattened_size():
    held = scipy.optimize.LinearConstraint([[1.0, 1.0, 1.0]], 1.0, 1.0)
    found = minimize(bowl, line(), method="trust-constr", constraints=held)
    close(np.sum(found.x.slope) + found.x.offset, 1.0)


def test_constraint_derivatives_are_exact():
    """Check that trust-constr needs few steps to full precision with exact second derivatives of the constraint."""
    on = scipy.optimize.NonlinearConstraint(lambda x: fnp.prod(x) - 1.0, 0.0, 0.0)
    found = minimize(lambda x: np.sum(x**2), np.array([2.0, 1.0, 0.3]), method="trust-constr", constraints=on)
    close(found.x, np.ones(3), atol=1e-8)
    assert found.constr_violation < 1e-12


def test_constraints_with_derivatives_raise():
    for given in ({**CIRCLE, "jac": lambda p: p}, scipy.optimize.NonlinearConstraint(bowl, 0, 1, jac=lambda x: x)):
        with pytest.raises(TypeError, match="Leave jac and hess out"):
            minimize(bowl, line(), constraints=given)


# root, root_scalar


def pair(p, product=2.0):
    return {"sum": p["x"] + p["y"] - 3.0, "product": p["x"] * p["y"] - product}


@pytest.mark.parametrize(
    "method",
    [
        "hybr",
        "lm",
        "broyden1",
        "broyden2",
        "anderson",
        "linearmixing",
        "diagbroyden",
        "excitingmixing",
        "krylov",
        "df-sane",
    ],
)
def test_root_with_every_method(method):
    if method in ("linearmixing", "diagbroyden", "excitingmixing", "df-sane"):  # these methods need a contraction

        def fun(p, target):
            return {"x": 0.3 * fnp.cos(p["y"]) + target - p["x"], "y": 0.3 * fnp.sin(p["x"]) - p["y"]}

    else:
        fun = pair
    found = root(fun, {"x": 2.2, "y": 0.8}, (2.0,), method)
    assert found.success, found.message
    close(list(fun(found.x, 2.0).values()), 0.0, atol=1e-4)
    assert set(found.fun) == set(fun(found.x, 2.0))


def test_root_passes_jacobian_to_scipy():
    own = scipy.optimize.root(lambda v: list(pair({"x": v[0], "y": v[1]}).values()), [2.5, 0.1])
    found = root(pair, {"x": 2.5, "y": 0.1})
    assert found.njev == 1
    close(list(found.x.values()), own.x, rtol=1e-8)


def test_root_callback_sees_trees():
    seen = []
    root(pair, {"x": 2.2, "y": 0.8}, method="krylov", callback=lambda p, f: seen.append((set(p), set(f))))
    assert seen[0] == ({"x", "y"}, {"sum", "product"})


def test_complex_root():
    found = root(lambda z: z**2 + 1.0, 0.5 + 0.5j)
    close(found.x, 1j, atol=1e-9)


def test_root_with_wrong_number_of_equations_raises():
    with pytest.raises(TypeError, match="as many numbers as params has, got 2 for 1"):
        root(lambda x: np.array([x, 2 * x]), 1.0)
    close(root(lambda x: fnp.stack([x - 1.0, x - 2.0]), 0.0, method="lm").x, 1.5)


@pytest.mark.parametrize(
    ("method", "given"),
    [
        (None, {"x0": 1.0}),
        (None, {"x0": 1.0, "x1": 1.5}),
        (None, {"bracket": (0.0, 5.0)}),
        ("newton", {"x0": 1.0}),
        ("halley", {"x0": 1.0}),
        ("secant", {"x0": 1.0, "x1": 1.5}),
        *[(m, {"bracket": (0.0, 5.0)}) for m in ("bisect", "brentq", "brenth", "ridder", "toms748")],
    ],
)
def test_root_scalar(method, given):
    found = root_scalar(lambda x, a: fnp.exp(x) - a, (2.0,), method, **given)
    assert found.converged
    close(found.root, np.log(2.0), rtol=1e-9)


def test_root_scalar_passes_derivatives_to_scipy():
    def calls(method, **given):
        return root_scalar(lambda x: x**3 - 2.0, method=method, **given).iterations

    assert (
        calls(None, x0=1.0)
        == scipy.optimize.newton(lambda x: x**3 - 2, 1.0, fprime=lambda x: 3 * x**2, full_output=True)[1].iterations
    )
    assert calls("halley", x0=1.0) < calls("newton", x0=1.0)


# least_squares


T = np.linspace(0.0, 2.0, 25)
TRUE = {"rate": np.array([1.5, 0.2]), "height": np.array([2.0, 1.0])}


def decay(p, t=T):
    return fnp.sum(p["height"][:, None] * fnp.exp(-p["rate"][:, None] * t), axis=0)


FAR = {"rate": np.array([1.0, 0.1]), "height": np.array([1.0, 0.5])}
Y = decay(TRUE)


@pytest.mark.parametrize("method", ["trf", "dogbox", "lm"])
@pytest.mark.parametrize("jac", ["auto", "forward", "reverse", "operator"])
def test_least_squares(method, jac):
    if (method, jac) == ("lm", "operator"):
        with pytest.raises(ValueError, match="lm"):
            least_squares(lambda p: decay(p) - Y, FAR, method=method, jac=jac)
        return
    found = least_squares(lambda p: decay(p) - Y, FAR, method=method, jac=jac, xtol=1e-12, ftol=1e-14, gtol=1e-12)
    assert found.cost < 1e-12
    assert set(found.x) == set(found.grad) == {"rate", "height"}
    assert found.fun.shape == T.shape
    if jac != "operator":
        close(found.x["rate"], TRUE["rate"], rtol=1e-5)
        theirs = jacfwd(decay)(found.x)
        close(found.jac, np.hstack([theirs["height"], theirs["rate"]]), rtol=1e-9)


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "huber", "cauchy", "arctan"])
def test_losses_match_differences(loss):
    noisy = Y.copy()
    noisy[::6] += 1.0
    own = scipy.optimize.least_squares(
        lambda v: decay({"height": v[:2], "rate": v[2:]}) - noisy,
        np.concatenate([FAR["height"], FAR["rate"]]),
        loss=loss,
        f_scale=0.1,
        xtol=1e-12,
    )
    found = least_squares(lambda p: decay(p) - noisy, FAR, loss=loss, f_scale=0.1, xtol=1e-12)
    close(found.cost, own.cost, rtol=1e-6)


@pytest.mark.parametrize(
    "solve",
    [
        lambda a: minimize(lambda x: x**2, 1.0, bounds=(a, 3.0)).x,
        lambda a: minimize(lambda p: p["x"] ** 2, {"x": 1.0}, bounds={"x": (a, None)}).x["x"],
        lambda a: least_squares(lambda x: x - 3.0, 1.0, bounds=(0.0, a)).x,
        lambda a: root_scalar(lambda x: x**3 - 8.0, bracket=(a, 5.0)).root,
        lambda a: root_scalar(lambda x: x**3 - 8.0, x0=1.0, x1=a).root,
    ],
)
def test_traced_bounds_are_refused(solve):
    for call in (lambda: grad(solve)(0.5), lambda: vmap(solve)(np.array([0.5, 0.6]))):
        with pytest.raises(NotDifferentiableError, match=r"(bounds|bracket|x1) is being differentiated, batched"):
            call()


def test_custom_loss_is_differentiated():
    def rows(z):
        return np.stack([np.log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2])

    noisy = Y.copy()
    noisy[3] += 2.0
    runs = [least_squares(lambda p: decay(p) - noisy, FAR, loss=loss) for loss in ("cauchy", fnp.log1p, rows)]
    for run in runs[1:]:
        assert run.nfev == runs[0].nfev
        close(run.x["rate"], runs[0].x["rate"], rtol=1e-9)


def test_least_squares_uses_cheaper_mode():
    calls = []

    def watched(jacobian_of):
        return lambda x: (calls.append(type(x._trace).__name__) if hasattr(x, "_trace") else None, jacobian_of(x))[1]

    least_squares(watched(lambda x: fnp.stack([fnp.sum(x**2)])), np.ones(4))
    assert any("Reverse" in name for name in calls)
    calls.clear()
    least_squares(watched(lambda x: fnp.concatenate([x, 2 * x])), np.ones(4))
    assert not any("Reverse" in name for name in calls)
    assert calls


def test_bounds_and_scales_of_least_squares():
    bounds = {"rate": (np.array([0.0, 0.3]), None), "height": (0.0, 10.0)}
    scale = {"rate": np.array([1.0, 0.1]), "height": 1.0}
    found = least_squares(lambda p: decay(p) - Y, {**FAR, "rate": np.array([1.0, 0.4])}, bounds=bounds, x_scale=scale)
    close(found.x["rate"][1], 0.3, rtol=1e-4)
    line_ = least_squares(lambda x: x - np.array([1.0, 2.0]), np.zeros(2), bounds=([-1.0, -1.0], [0.5, 0.7]))
    close(line_.x, [0.5, 0.7], rtol=1e-6)
    with pytest.raises(TypeError, match="x_scale must be a tree like params"):
        least_squares(lambda p: decay(p) - Y, FAR, x_scale={"rate": 1.0})


def test_tree_and_complex_residuals():
    found = least_squares(lambda p: {"a": p["z"] - (1.0 + 2.0j), "b": [p["x"] - 3.0]}, {"z": 0.0j, "x": 0.0})
    close(found.x["z"], 1.0 + 2.0j)
    close(found.fun["b"][0], 0.0, atol=1e-9)


@pytest.mark.parametrize("jac", ["forward", "reverse", "operator"])
def test_single_precision_residuals(jac):
    y = Y.astype(np.float32)
    found = least_squares(
        lambda p: decay(p, T.astype(np.float32)) - y, {k: v.astype("f") for k, v in FAR.items()}, jac=jac
    )
    assert found.x["rate"].dtype == found.fun.dtype == np.float32
    assert found.cost < 1e-6


def test_least_squares_with_jacobian_raises():
    with pytest.raises(TypeError, match="leave jac out"):
        least_squares(lambda p: decay(p) - Y, FAR, jac=lambda p: p)


# operators


def test_jacobian_operator():
    operator = jacobian_operator(decay, TRUE)
    dense = jacfwd(decay)(TRUE)
    matrix = np.hstack([dense["height"], dense["rate"]])
    close(operator @ np.eye(4), matrix, rtol=1e-12)
    close(operator.T @ np.eye(25), matrix.T, rtol=1e-12)


def test_hessian_operator():
    operator = hessian_operator(rosenbrock, START)
    close(operator @ np.eye(5), hessian(rosenbrock)(START), rtol=1e-12)
    assert operator.shape == (5, 5)


# arguments that SciPy receives, and arguments that are refused


def test_implicit_derivative_by_custom_root():
    def cube_root(a):
        return custom_root(lambda x: x**3 - a, 1.5, lambda f, x: root(f, x, tol=1e-13).x)

    close(grad(cube_root)(8.0), 1 / 12, rtol=1e-9)
    close(vmap(grad(cube_root))(np.array([1.0, 8.0])), [1 / 3, 1 / 12], rtol=1e-9)


def test_minimum_derivative_by_custom_root():
    """Check that the minimum of (x - a)**2 + x**2 is a / 2, wherever the search begins."""

    def lowest(a):
        slope = grad(lambda x: (x - a) ** 2 + x**2)
        # minimize must not depend on a: custom_root passes the slope at the plain value
        return custom_root(slope, 0.0, lambda f, x: root(f, x, tol=1e-13).x)

    close(grad(lowest)(3.0), 0.5, rtol=1e-9)


@pytest.mark.parametrize(
    "solve",
    [
        lambda a: minimize(lambda x: (x - a) ** 2, 0.0).x,
        lambda a: minimize(lambda x: (x - a) ** 2, 0.0, method="Nelder-Mead").x,
        lambda a: minimize(lambda x: x**2, a).x,
        lambda a: minimize(lambda x, b: (x - b) ** 2, 0.0, (a,)).x,
        lambda a: root(lambda x: x - a, 0.0).x,
        lambda a: root_scalar(lambda x: x - a, x0=0.0).root,
        lambda a: root_scalar(lambda x: x, x0=a).root,
        lambda a: least_squares(lambda x: x - a, 0.0).x,
    ],
)
def test_lost_derivative_raises(solve):
    for transform in (grad(solve), lambda a: vmap(solve)(np.array([a, a]))):
        with pytest.raises(TypeError, match="custom_root"):
            transform(1.0)
    close(grad(lambda a: a * solve(stop_gradient(a) * 1.0))(2.0), solve(2.0), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: minimize(lambda x: x, np.ones(2)), "must give one real number, got float64\\[2\\]"),
        (lambda: minimize(lambda x: x, 1.0j), "must give one real number"),
        (lambda: minimize(lambda x: None, 1.0), "must give one real number, got None"),
        (lambda: minimize(rosenbrock, [1, 2]), "minimize: params\\[0\\] must be real or complex floating point"),
        (lambda: minimize(rosenbrock, {"n": "text"}), "minimize: params\\['n'\\] is not an array or a number"),
        (lambda: minimize(rosenbrock, {}), "no unknowns"),
        (lambda: minimize(3.0, 1.0), "the first argument must be a function"),
        (lambda: least_squares(lambda x: np.array([1, 2]), 1.0), "the result of <lambda> must be real or complex"),
        (lambda: minimize(lambda x: (x, x, x), 1.0, has_aux=True), "must return a pair"),
    ],
)
def test_invalid_calls_raise(call, says):
    with pytest.raises(TypeError, match=says):
        call()


def test_error_without_scipy_names_the_extra():
    code = (
        "import sys; sys.modules['scipy'] = sys.modules['scipy.optimize'] = None\n"
        "from funcgrad.interop.scipy import minimize\n"
        "minimize(lambda x: x, 1.0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"{MissingExtraError.__name__}: minimize: SciPy cannot be imported" in done.stderr
    assert "pip install 'funcgrad[scipy]'" in done.stderr


# optax


@pytest.mark.parametrize("compiled", [False, True])
def test_optax_on_numpy_trees(compiled):
    optimiser = optax.adam(0.1)
    update = from_jax(jax.jit(optimiser.update) if compiled else optimiser.update)
    params = {"w": np.array([3.0, -2.0]), "b": np.float32(1.0)}
    state = from_jax(optimiser.init)(params)

    def loss(p):
        return fnp.sum((p["w"] - 1.0) ** 2) + (p["b"] + 1.0) ** 2

    first, _ = value_and_grad(loss)(params)
    for _ in range(30):
        updates, state = update(grad(loss)(params), state, params)
        params = from_jax(optax.apply_updates)(params, updates)
    assert (type(params["w"]), params["w"].dtype, params["b"].dtype) == (np.ndarray, np.float64, np.float32)
    assert loss(params) < 0.1 * first
