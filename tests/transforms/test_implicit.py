"""Implicit differentiation, against closed forms, unrolled derivatives and JAX."""

import functools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse.linalg
from fuzz.eager import run_eagerly
from helpers import close_leaves

import funcgrad.numpy as fnp
from funcgrad import (
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linearize,
    no_grad,
    pmean,
    psum,
    stop_gradient,
    value_and_grad,
    vmap,
    while_loop,
)
from funcgrad.errors import BranchError, ConvergenceError, InputError, NotDifferentiableError, ShapeError
from funcgrad.transforms.implicit import (
    anderson,
    custom_linear_solve,
    custom_root,
    dense_solve,
    fixed_point,
    newton,
    picard,
)
from funcgrad.transforms.transposing import linear_transpose

close = partial(close_leaves, rtol=1e-9, atol=1e-11)

A = np.array([[3.0, 0.5, -0.2], [0.1, 2.0, 0.4], [0.3, -0.6, 2.5]])
B = np.array([1.0, -2.0, 0.5])
SOME = np.array([True, False, True])


# Functions of one number, each by a solver and, for JAX, in closed form.


def cube_root(a):
    return custom_root(lambda x: x**3 - a, 1.5, newton)


def kepler(m):
    """Solve a fixed-point equation whose parameter is both passed and closed over."""
    return fixed_point(lambda e, m: m + 0.3 * fnp.sin(e) * fnp.cos(0.1 * m), 0.5, m)


def kepler_in_jax(m):
    """Solve Kepler's equation by Newton's method: each step squares the errors, those of derivatives too."""
    e, pull = m, 0.3 * jnp.cos(0.1 * m)
    for _ in range(5):
        e = e - (e - m - pull * jnp.sin(e)) / (1.0 - pull * jnp.cos(e))
    return e


def linear_system(t):
    matrix = A + fnp.sin(t) * A.T
    solve = lambda matvec, b: dense_solve(matvec, b)
    x = custom_linear_solve(lambda v: matrix @ v, B * t, solve, transpose_solve=solve)
    return fnp.sum(x * x * t)


def linear_system_in_jax(t):
    x = jnp.linalg.solve(A + jnp.sin(t) * A.T, B * t)
    return jnp.sum(x * x * t)


FUNCTIONS = {
    "root": (cube_root, lambda a: a ** (1 / 3)),
    "fixed point": (kepler, kepler_in_jax),
    "linear system": (linear_system, linear_system_in_jax),
}
STACK = {
    "grad": (grad, jax.grad),
    "jvp": (lambda f: lambda x: jvp(f, (x,), (0.5 * x,))[1], lambda f: lambda x: jax.jvp(f, (x,), (0.5 * x,))[1]),
    "linearize": (lambda f: lambda x: linearize(f, x)[1](2.0 * x), lambda f: lambda x: jax.linearize(f, x)[1](2.0 * x)),
    "vmap": (
        lambda f: lambda x: fnp.sum(vmap(f)(fnp.stack([x, 0.8 * x, 1.1 * x]))),
        lambda f: lambda x: jnp.sum(jax.vmap(f)(jnp.stack([x, 0.8 * x, 1.1 * x]))),
    ),
    "jacrev": (
        lambda f: lambda x: fnp.sum(jacrev(lambda v: vmap(f)(v * x))(np.array([1.0, 0.9]))),
        lambda f: lambda x: jnp.sum(jax.jacrev(lambda v: jax.vmap(f)(v * x))(jnp.array([1.0, 0.9]))),
    ),
    "jacfwd": (
        lambda f: lambda x: fnp.sum(jacfwd(lambda v: vmap(f)(v * x))(np.array([1.0, 0.9]))),
        lambda f: lambda x: jnp.sum(jax.jacfwd(lambda v: jax.vmap(f)(v * x))(jnp.array([1.0, 0.9]))),
    ),
}


@functools.cache
def in_jax(function, *stack):
    f = FUNCTIONS[function][1]
    for name in reversed(stack):
        f = STACK[name][1](f)
    return float(run_eagerly(f, 1.3))


@pytest.mark.parametrize("inner", STACK)
@pytest.mark.parametrize("outer", STACK)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_pairs_of_transforms(function, outer, inner):
    ours = STACK[outer][0](STACK[inner][0](FUNCTIONS[function][0]))(1.3)
    np.testing.assert_allclose(ours, in_jax(function, outer, inner), rtol=1e-9)


@pytest.mark.parametrize("stack", [("grad", "grad", "grad"), ("jvp", "vmap", "grad"), ("vmap", "jvp", "jvp")])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_triples_of_transforms(function, stack):
    f = FUNCTIONS[function][0]
    for name in reversed(stack):
        f = STACK[name][0](f)
    np.testing.assert_allclose(f(1.3), in_jax(function, *stack), rtol=1e-8)


# Unrolled: the solvers are made of differentiable operations, so differentiating through them is another way.


def energy(x, p):
    """Return the residuals of two equations in two unknowns."""
    return {"u": x["u"] ** 3 + p[0] * x["v"] - 1.0, "v": fnp.sin(x["v"]) + p[1] * x["u"] ** 2}


def test_matches_unrolled_newton():
    start, p = {"u": 0.8, "v": np.float64(-0.3)}, np.array([0.4, 0.5])
    loss = lambda x: x["u"] * 3 + x["v"] ** 2
    implicit = lambda p: loss(custom_root(lambda x: energy(x, p), start, newton))
    unrolled = lambda p: loss(newton(lambda x: energy(x, p), start))
    close(implicit(p), unrolled(p))
    for transform in (grad, jacfwd, hessian, lambda f: jacfwd(jacfwd(f)), lambda f: jacrev(jacrev(f))):
        close(transform(implicit)(p), transform(unrolled)(p), rtol=1e-7)


@pytest.mark.parametrize("solver", [anderson, picard])
def test_number_stays_a_number(solver):
    seen = []

    def half(x):
        seen.append(isinstance(x, float))
        return 0.5 * x + 1.0

    assert type(fixed_point(half, np.float64(1.0), solver=solver)) is np.float64
    assert all(seen)


def test_matches_unrolled_anderson():
    rng = np.random.default_rng(1)
    w, b = rng.normal(size=(4, 4)) / 4, rng.normal(size=4)
    g = lambda x, w, b: fnp.tanh(w @ x + b)
    implicit = lambda w, b: fnp.sum(fixed_point(g, np.zeros(4), w, b) ** 2)
    unrolled = lambda w, b: fnp.sum(anderson(lambda x: g(x, w, b), np.zeros(4), tol=1e-14) ** 2)
    plain = lambda w, b: fnp.sum(picard(lambda x: g(x, w, b), np.zeros(4), tol=1e-15) ** 2)
    for argnum in (0, 1):
        ours = grad(implicit, argnum)(w, b)
        close(ours, grad(plain, argnum)(w, b), rtol=1e-8)
        close(ours, grad(unrolled, argnum)(w, b), rtol=1e-5)
        close(jacfwd(implicit, argnum)(w, b), ours)
    close(hessian(implicit, 1)(w, b), hessian(plain, 1)(w, b), rtol=1e-7)


def test_solver_runs_once_and_is_not_differentiated():
    calls = []

    def solve(f, x):
        calls.append(type(x))
        assert type(f(x)) is float
        return newton(f, x)

    root = lambda a: custom_root(lambda x: x * x - a, 1.0, solve)
    assert value_and_grad(grad(root))(4.0) == (0.25, -1 / 32)
    assert calls == [float]


# The same calls in JAX.


def thirty_steps(f, guess):
    x = guess
    for _ in range(30):
        x = x - f(x) / (3 * x * x)
    return x


def test_custom_root_matches_jax():
    tangent_solve = lambda g, y: y / g(1.0)
    ours = lambda a: custom_root(lambda x: x**3 - a, 1.5, thirty_steps, tangent_solve)
    theirs = lambda a: jax.lax.custom_root(lambda x: x**3 - a, 1.5, thirty_steps, tangent_solve)
    for at in (0.7, 2.0):
        close(ours(at), theirs(at))
        close(grad(ours)(at), jax.grad(theirs)(at))
        close(jvp(ours, (at,), (1.0,))[1], jax.jvp(theirs, (at,), (1.0,))[1])
        close(hessian(ours)(at), jax.hessian(theirs)(at))
    close(vmap(grad(ours))(np.array([0.7, 2.0])), jax.vmap(jax.grad(theirs))(jnp.array([0.7, 2.0])))


@pytest.mark.parametrize("symmetric", [False, True])
def test_custom_linear_solve_matches_jax(symmetric):
    a = A + A.T if symmetric else A

    def build(xp, custom):
        solve = lambda matvec, b: xp.linalg.solve(a_value, b)
        transposed = lambda vecmat, b: xp.linalg.solve(a_value.T, b)
        a_value = a
        return lambda a, b: custom(lambda x: a @ x, b, solve, None if symmetric else transposed, symmetric=symmetric)

    ours, theirs = build(np, custom_linear_solve), build(jnp, jax.lax.custom_linear_solve)
    close(ours(a, B), theirs(a, B))
    for argnum in (0, 1):
        close(jacrev(ours, argnum)(a, B), jax.jacrev(theirs, argnum)(a, B))
        close(jacfwd(ours, argnum)(a, B), jax.jacfwd(theirs, argnum)(a, B))
        close(jacfwd(jacrev(ours, argnum), argnum)(a, B), jax.jacfwd(jax.jacrev(theirs, argnum), argnum)(a, B))


def test_auxiliary_results():
    solve = lambda f, x: (newton(f, x), {"note": "text"})
    root = lambda a: custom_root(lambda x: x * x - a, 1.0, solve, has_aux=True)
    value, aux = root(4.0)
    assert (value, aux) == (2.0, {"note": "text"})
    assert grad(lambda a: root(a)[0])(4.0) == 0.25

    def counted(matvec, b):
        return dense_solve(matvec, b), {"steps": np.int64(3), "residual": np.float64(0.1)}

    system = lambda b: custom_linear_solve(lambda x: A @ x, b, counted, counted, has_aux=True)
    x, aux = system(B)
    close(x, np.linalg.solve(A, B))
    assert aux == {"steps": 3, "residual": 0.1}
    close(jacrev(lambda b: system(b)[0])(B), np.linalg.inv(A))
    close(jacfwd(lambda b: system(b)[0])(B), np.linalg.inv(A))
    assert grad(lambda b: system(b)[1]["residual"])(B).tolist() == [0, 0, 0]


def test_scipy_solver():
    """Check an iterative solver that can be neither traced nor differentiated."""

    def solve(matvec, b):
        operator = scipy.sparse.linalg.LinearOperator((3, 3), matvec=matvec, dtype=float)
        x, info = scipy.sparse.linalg.gmres(operator, b, rtol=1e-13, atol=0.0)
        assert info == 0
        return x

    loss = lambda a, b: fnp.sum(custom_linear_solve(lambda x: a @ x, b, solve, solve) ** 2)
    theirs = lambda a, b: jnp.sum(jnp.linalg.solve(a, b) ** 2)
    for argnum in (0, 1):
        close(grad(loss, argnum)(A, B), jax.grad(theirs, argnum)(A, B))
    close(hessian(loss, 1)(A, B), jax.hessian(theirs, 1)(A, B), rtol=1e-8)
    root = lambda p: fnp.sum(custom_root(lambda x: A @ x + x**3 - p, B, newton, solve))
    close(grad(root)(B), grad(lambda p: fnp.sum(newton(lambda x: A @ x + x**3 - p, B)))(B))


def test_solvers_for_single_examples_under_vmap():
    def solve(f, x):
        assert isinstance(x, (float, np.ndarray, np.generic))
        for _ in range(60):
            if abs(float(f(x))) < 1e-13:  # a batch has no float
                break
            x = x - f(x) / 3
        return x

    root = lambda a: custom_root(lambda x: fnp.sin(x) + 2 * x - a, 0.5, solve)
    values = np.array([0.3, 1.0, 2.0])
    alone = [root(a) for a in values]
    close(vmap(root)(values), np.array(alone))
    slopes = [grad(root)(a) for a in values]
    for mapped in (
        vmap(grad(root)),
        grad(lambda a: fnp.sum(vmap(root)(a))),
        lambda a: jvp(vmap(root), (a,), (a / a,))[1],
    ):
        close(mapped(values), np.array(slopes))
    close(vmap(vmap(root))(values.reshape(1, 3)), np.array([alone]))

    def branching(x, a):
        return x - a if x > 1 else 2 * (x - a)

    with pytest.raises(BranchError, match="takes another branch"):
        vmap(lambda a: custom_root(lambda x: branching(x, a), 0.5, solve))(values)

    def halving(x, a):
        """Take more steps for a larger ``x`` and a smaller ``a``."""
        return while_loop(lambda v: v[0] > a, lambda v: (v[0] / 2, v[1] + v[0] / 10), (x, 0.0))[1] + 0.3 * x - 5 * a

    with pytest.raises(BranchError, match="takes another branch"):
        vmap(lambda a: custom_root(lambda x: halving(x, a), 2.0, bisect))(values)


SHARES = np.array([0.3, -0.7, 1.1])


@pytest.mark.parametrize(
    "equation",
    [
        lambda w, x: custom_root(lambda y: 2 * y + psum(0.1 * x * y, "i") - w * x, 0.1, newton),
        lambda w, x: fixed_point(lambda y: 0.3 * fnp.sin(y) + 0.1 * psum(x * y, "i") + w * x, 0.1),
        lambda w, x: custom_linear_solve(lambda y: 2 * y + 0.1 * psum(w * x * y, "i"), x, dense_solve, dense_solve),
    ],
    ids=["custom_root", "fixed_point", "custom_linear_solve"],
)
def test_equations_that_contain_unknowns_of_other_examples_raise(equation):
    loss = lambda w: fnp.sum(vmap(lambda x: equation(w, x), axis_name="i")(SHARES))
    for derivative in (grad(loss), lambda w: jvp(loss, (w,), (1.0,)), jit(grad(loss), backend="numpy")):
        with pytest.raises(NotDifferentiableError, match="contains the unknowns of the other examples"):
            derivative(2.0)


def test_collectives_in_equations():
    def coefficients(w):
        of_one = lambda x: custom_root(lambda y: 2 * y + fnp.sin(y) * psum(w * x, "i") - pmean(w, "i") * x, 0.1, newton)
        return fnp.sum(fnp.exp(vmap(of_one, axis_name="i")(SHARES)))

    plain = lambda w: fnp.sum(fnp.exp(custom_root(lambda y: 2 * y + fnp.sin(y) * 0.7 * w - w * SHARES, B, newton)))
    close(grad(coefficients)(2.0), grad(plain)(2.0))
    close(hessian(coefficients)(2.0), hessian(plain)(2.0))

    def one_unknown(w):
        of_one = lambda row: custom_root(lambda x: psum(row * fnp.tanh(row @ x) * w, "i") + x - B, B, newton)
        return fnp.sum(vmap(of_one, axis_name="i")(A))

    same = lambda w: 3 * fnp.sum(custom_root(lambda x: A.T @ fnp.tanh(A @ x) * w + x - B, B, newton))
    close(jvp(one_unknown, (0.1,), (1.0,))[1], grad(same)(0.1))
    with pytest.raises(NotDifferentiableError, match="outside of the vmap"):
        grad(one_unknown)(0.1)


def bisect(f, guess):
    low, high = guess, 64.0
    while high - low > 1e-13:
        middle = (low + high) / 2
        low, high = (low, middle) if f(middle) > 0 else (middle, high)
    return middle


def test_trees_and_dtypes():
    x0 = {"u": np.float32(0.8), "v": np.full(2, 0.1, np.float32)}
    f = lambda x, p: {"u": x["u"] - fnp.sum(x["v"]) * p, "v": x["v"] * 2 - p}
    solution = lambda p: custom_root(lambda x: f(x, p), x0, newton)
    found = solution(np.float32(0.5))
    close(found, {"u": np.float32(0.25), "v": np.full(2, 0.25, np.float32)}, rtol=1e-6)
    assert {leaf.dtype for leaf in jax.tree.leaves(found)} == {np.dtype(np.float32)}
    slope = grad(lambda p: solution(p)["u"])(np.float32(0.5))
    assert slope.dtype == np.float32
    close(slope, np.float32(1.0), rtol=1e-5)


def test_nothing_to_differentiate():
    assert grad(lambda a: custom_root(lambda x: x * x - 4.0, a, newton))(1.0) == 0.0  # the initial guess
    with no_grad():
        assert cube_root(8.0) == 2.0
    assert grad(lambda a: stop_gradient(cube_root(a)) * a)(8.0) == 2.0
    assert grad(lambda a: no_grad(cube_root)(a) * a)(8.0) == 2.0


def test_batches_of_everything():
    matrices, rhs = np.stack([A, A.T, A @ A]), np.stack([B, 2 * B, B[::-1]])
    ours = lambda a, b: fnp.sum(custom_linear_solve(lambda x: a @ x, b, dense_solve, dense_solve) ** 2)
    theirs = lambda a, b: jnp.sum(jnp.linalg.solve(a, b) ** 2)
    for in_axes, args in (((0, 0), (matrices, rhs)), ((0, None), (matrices, B)), ((None, 0), (A, rhs))):
        close(vmap(grad(ours, (0, 1)), in_axes)(*args), jax.vmap(jax.grad(theirs, (0, 1)), in_axes)(*args))
        total = functools.partial(lambda axes, *a: fnp.sum(vmap(ours, axes)(*a)), in_axes)
        other = functools.partial(lambda axes, *a: jnp.sum(jax.vmap(theirs, axes)(*a)), in_axes)
        close(grad(total, (0, 1))(*args), jax.grad(other, (0, 1))(*args))
        close(jvp(total, args, args)[1], jax.jvp(other, args, args)[1])
    close(vmap(vmap(cube_root))(np.array([[1.0, 8.0], [27.0, 64.0]])), np.array([[1.0, 2.0], [3.0, 4.0]]))


# JAX arrays, and JAX's own transforms.


def test_on_jax_arrays():
    a = jnp.array(8.0)
    root = lambda a: custom_root(lambda x: x**3 - a, jnp.array(1.5), thirty_steps)
    assert isinstance(root(a), jax.Array)
    close(jax.jit(root)(a), 2.0)
    close(jax.jit(grad(root))(a), 1 / 12)
    close(jax.jit(grad(grad(root)))(a), -1 / 144)
    close(jax.jit(lambda a: jvp(root, (a,), (1.0,))[1])(a), 1 / 12)
    close(jax.grad(root)(a), 1 / 12)
    close(jax.jit(jax.grad(root))(a), 1 / 12)
    close(jax.jacrev(jax.grad(root))(a), -1 / 144)
    close(jax.vmap(jax.grad(root))(jnp.array([8.0, 27.0])), np.array([1 / 12, 1 / 27]))


# Errors.


def test_reverse_mode_without_a_transposed_solver():
    f = lambda b: fnp.sum(custom_linear_solve(lambda x: A @ x, b, dense_solve))
    close(jvp(f, (B,), (B,))[1], np.sum(np.linalg.solve(A, B)))
    with pytest.raises(NotDifferentiableError, match="got no transpose_solve"):
        grad(f)(B)


def test_mismatched_tangent_solver():
    only_this = lambda g, y: np.linalg.solve(A, y)
    root = lambda p: custom_root(lambda x: A @ x - p, B, newton, only_this)
    close(jacfwd(root)(B), np.linalg.inv(A))
    with pytest.raises(ConvergenceError, match="does not solve the system that the derivative needs"):
        jacrev(root)(B)
    both = lambda p: custom_root(
        lambda x: A @ x - p, B, newton, only_this, transpose_solve=lambda g, y: np.linalg.solve(A.T, y)
    )
    close(jacrev(both)(B), np.linalg.inv(A))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: custom_root(lambda x: (x, x), 1.0, lambda f, x: x),
            InputError,
            "f must return a tree like the unknown",
        ),
        (lambda: custom_root(lambda x: x[:1], B, lambda f, x: x), ShapeError, r"got shape \(1,\), expected \(3,\)"),
        (lambda: custom_root(lambda x: x, "text", newton), InputError, "initial_guess is not an array"),
        (lambda: custom_root(lambda x: x, 1, newton), InputError, "initial_guess must be floating"),
        (lambda: custom_root(lambda x: x, 1.0, lambda f, x: "text"), InputError, "the root is not an array"),
        (lambda: custom_root(lambda x: x, 1.0, lambda f, x: x, has_aux=True), InputError, "must return a pair"),
        (lambda: custom_root(3.0, 1.0, newton), InputError, "must be a function"),
        (lambda: custom_linear_solve(lambda x: x[:1], B, dense_solve), ShapeError, "matvec must return arrays like"),
        (lambda: custom_linear_solve(lambda x: x, B, lambda m, b: (b, b)), InputError, "solve must return a tree like"),
        (
            lambda: custom_linear_solve(lambda x: x, B, lambda m, b: b.astype(int)),
            InputError,
            "solve must return arrays",
        ),
        (lambda: newton(lambda x: x * x + 1.0, 0.3), ConvergenceError, "newton: no convergence after 50 steps"),
        (lambda: picard(lambda x: 2 * x + 1, 1.0, maxiter=20), ConvergenceError, "picard: no convergence after 20"),
        (lambda: anderson(lambda x: fnp.exp(x), 1.0, maxiter=5), ConvergenceError, "anderson: no convergence after 5"),
        (lambda: fixed_point(lambda x: x, "text"), InputError, "not an array"),
    ],
)
def test_invalid_calls_raise(call, error, words):
    with pytest.raises(error, match=words), np.errstate(all="ignore"):
        call()


def test_convergence_error_is_an_arithmetic_error():
    assert issubclass(ConvergenceError, ArithmeticError)


# linear_transpose.


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda x: fnp.cumsum(x) * 2.0, lambda x: jnp.cumsum(x) * 2.0),
        (lambda x: A @ x - x[::-1], lambda x: A @ x - x[::-1]),
        (lambda x: {"a": x[0], "b": fnp.where(SOME, x, 0.0)}, lambda x: {"a": x[0], "b": jnp.where(SOME, x, 0.0)}),
        (lambda x: x * (1.0 + 2.0j), lambda x: x * (1.0 + 2.0j)),
    ],
)
def test_linear_transpose_matches_jax(ours, theirs):
    ct = jax.tree.map(lambda y: np.arange(1.0, y.size + 1).reshape(y.shape).astype(y.dtype), jax.eval_shape(theirs, B))
    close(linear_transpose(ours, B)(ct), jax.linear_transpose(theirs, B)(ct))
    close(linear_transpose(ours, jax.ShapeDtypeStruct((3,), np.float64))(ct), jax.linear_transpose(theirs, B)(ct))


def test_linear_transpose_of_several_arguments_and_closures():
    ours = grad(lambda w: linear_transpose(lambda x, y: w * x + 2.0 * y, B, B)(B)[0][1])
    assert ours(3.0) == B[1]
    np.testing.assert_array_equal(vmap(lambda w: linear_transpose(lambda x: w * x, 1.0)(2.0)[0])(B), 2 * B)
    x, y = linear_transpose(lambda x, y: x["a"] @ A + y, {"a": B}, B)(B)
    close(x["a"], A @ B)
    close(y, B)


@pytest.mark.parametrize(
    ("fun", "words"),
    [
        (lambda x: x * x, "got multiply of a value"),
        (lambda x: fnp.sin(x), "got sin of a value"),
        (lambda x: fnp.maximum(x, 0.0), "got maximum of a value"),
        (lambda x: fnp.floor(x), "got floor of a value"),
        (lambda x: x + 1.0, "got a result that is not zero"),
        (lambda x: B, "got a result that is not zero, or constant"),
        (lambda x: x if x[0] > 0 else 2 * x, "is not linear, got greater of a value"),
        (lambda x: x / fnp.sum(x + 1.0), "got divide of a value"),
    ],
)
def test_linear_transpose_of_nonlinear_function_raises(fun, words):
    with pytest.raises(InputError, match=words):
        linear_transpose(fun, B)


def test_invalid_linear_transpose_arguments_raise():
    with pytest.raises(InputError, match="must be floating or complex"):
        linear_transpose(lambda x: x, np.arange(3))
    with pytest.raises(InputError, match="must have a shape and a dtype, got str 'text'"):
        linear_transpose(lambda x: x, "text")
    with pytest.raises(InputError, match="must be a function"):
        linear_transpose(B, B)
    with pytest.raises(ShapeError, match="the cotangent has the wrong shape"):
        linear_transpose(lambda x: 2.0 * x, B)(np.ones(2))


def scaled_cosine(x, a):
    return math.cos(a * x)


def diagonal(x):
    out = np.zeros(2)
    out[0], out[1] = 2.0 * x[0], 4.0 * x[1]
    return out


def test_equations_written_for_numpy_outside_of_transforms():
    """The equation is recorded, also where no transform could run it rebuilt."""
    root = fixed_point(scaled_cosine, 0.5, 1.0)
    assert root == pytest.approx(math.cos(root), abs=1e-12)
    assert custom_root(lambda x: math.cos(x) - x, 0.5, lambda f, x: root) == root
    assert custom_linear_solve(diagonal, np.array([2.0, 8.0]), dense_solve).tolist() == [1.0, 2.0]
    slope = grad(lambda a: fixed_point(scaled_cosine, 0.5, a))(1.0)
    assert slope == pytest.approx(-root * math.sin(root) / (1 + math.sin(root)), abs=1e-9)


def test_solver_of_single_examples_in_batches():
    """The solver looks at values, so the examples of a batch are solved one after the other."""

    def bisect(fun, _):
        low, high = 0.0, 10.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if float(fun(middle)) < 0 else (low, middle)
        return low

    root = lambda a: custom_root(lambda x: x * x - a, 1.0, bisect)
    batch = np.array([2.0, 3.0])
    np.testing.assert_allclose(vmap(root)(batch), np.sqrt(batch), rtol=1e-14)
    np.testing.assert_allclose(vmap(grad(root))(batch), 0.5 / np.sqrt(batch), rtol=1e-14)
    assert vmap(root)(np.zeros(0)).shape == vmap(grad(root))(np.zeros(0)).shape == (0,)
    copied = lambda fun, x: {"u": x["u"] - np.array([float(v) for v in fun(x)["u"]])}
    of_tree = lambda a: custom_root(lambda x: {"u": x["u"] - a * np.ones(2)}, {"u": np.ones(2)}, copied)
    np.testing.assert_array_equal(vmap(of_tree)(batch)["u"], [[2.0, 2.0], [3.0, 3.0]])
    assert vmap(of_tree)(np.zeros(0))["u"].shape == (0, 2)
