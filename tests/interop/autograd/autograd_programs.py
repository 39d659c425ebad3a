"""Programs written for HIPS autograd. They do not import funcgrad: they run with funcgrad or with HIPS autograd.

Each function returns numbers; ``main`` prints them all as JSON.
"""

import json
import sys
from itertools import pairwise

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    tensor_jacobian_product,
    value_and_grad,
)
from autograd.builtins import isinstance, tuple, type
from autograd.core import vspace
from autograd.differential_operators import make_jvp_reversemode
from autograd.extend import defjvp, defvjp, defvjp_argnum, defvjp_argnums, notrace_primitive, primitive
from autograd.misc import flatten
from autograd.misc.fixed_points import fixed_point
from autograd.misc.flatten import flatten_func
from autograd.misc.optimizers import adam, rmsprop, sgd
from autograd.numpy.linalg import inv
from autograd.numpy.numpy_vjps import unbroadcast_f
from autograd.scipy.signal import convolve
from autograd.test_util import check_grads
from autograd.tracer import getval, isbox


def tanh_to_sixth_order():
    def tanh(x):
        return (1.0 - np.exp(-2 * x)) / (1.0 + np.exp(-2 * x))

    x = np.linspace(-1, 1, 5)
    curves, f = [], tanh
    for _ in range(7):
        curves.append(f(x))
        f = elementwise_grad(f)
    return curves


def logistic_regression():
    inputs = np.array([[0.52, 1.12, 0.77], [0.88, -1.08, 0.15], [0.52, 0.06, -1.30], [0.74, -2.49, 1.39]])
    targets = np.array([True, True, False, True])

    def loss(weights):
        predictions = 0.5 * (np.tanh(np.dot(inputs, weights)) + 1)
        return -np.sum(np.log(predictions * targets + (1 - predictions) * (1 - targets)))

    weights = np.array([0.0, 0.0, 0.0])
    for _ in range(100):
        weights -= grad(loss)(weights) * 0.01
    return [weights, loss(weights)]


def neural_net():
    rs = npr.RandomState(0)
    sizes = [2, 5, 3]
    params = [(0.5 * rs.randn(m, n), 0.5 * rs.randn(n)) for m, n in pairwise(sizes)]
    images, labels = rs.randn(12, 2), np.eye(3)[rs.randint(3, size=12)]

    def predict(params, inputs):
        for w, b in params:
            outputs = np.dot(inputs, w) + b
            inputs = np.tanh(outputs)
        return outputs - np.log(np.sum(np.exp(outputs), axis=1, keepdims=True))

    def objective(params, i):
        flat, _ = flatten(params)
        prior = -0.5 * 0.1 * np.dot(flat, flat)
        return -prior - np.sum(predict(params, images) * labels)

    trained = adam(grad(objective), params, step_size=0.05, num_iters=30)
    others = [optimize(grad(objective), params, num_iters=5) for optimize in (sgd, rmsprop)]
    return [flatten(trained)[0], objective(trained, 0), *[flatten(p)[0] for p in others]]


def gaussian_mixture():
    rs = npr.RandomState(1)
    data = rs.randn(20, 2) + np.where(np.arange(20)[:, None] % 2 == 0, 2.0, -2.0)
    params = {
        "log proportions": 0.1 * rs.randn(2),
        "means": rs.randn(2, 2),
        "lower triangles": np.zeros((2, 2, 2)) + np.eye(2),
    }

    def lse(x, axis):
        top = np.max(x, axis=axis, keepdims=True)
        return np.sum(top, axis) + np.log(np.sum(np.exp(x - top), axis=axis))

    def log_likelihood(params):
        proportions = params["log proportions"] - lse(params["log proportions"], 0)
        scores = []
        for log_p, mean, lower in zip(proportions, params["means"], params["lower triangles"], strict=True):
            precision = np.dot(lower, lower.T)
            away = data - mean
            scores.append(
                log_p + 0.5 * np.linalg.slogdet(precision)[1] - 0.5 * np.sum(np.dot(away, precision) * away, 1)
            )
        return np.sum(lse(np.vstack(scores), 0))

    flat_func, unflatten, start = flatten_func(lambda p: -log_likelihood(p), params)
    objective = lambda x: flat_func(x)[0]
    value, gradient = value_and_grad(objective)(start)
    product = hessian_vector_product(objective)(start, np.ones(len(start)))
    by_name = grad(log_likelihood)(params)
    return [value, gradient, product, by_name["means"], unflatten(start)["means"]]


def ordinary_differential_equation():
    def field(y, t, theta):
        return np.array([y[1], -theta[0] * y[0] - theta[1] * y[1] + np.sin(t)])

    def solve(theta):
        y, out, h = np.array([2.0, 0.0]), [], 0.1
        for i in range(10):
            t = i * h
            k1 = field(y, t, theta)
            k2 = field(y + h / 2 * k1, t + h / 2, theta)
            k3 = field(y + h / 2 * k2, t + h / 2, theta)
            k4 = field(y + h * k3, t + h, theta)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            out.append(y)
        return np.stack(out)

    theta = np.array([1.3, 0.2])
    return [solve(theta), jacobian(solve)(theta), grad(lambda th: np.sum(solve(th)[-1] ** 2))(theta)]


def recurrent_net():
    rs = npr.RandomState(2)
    params = {"init": rs.randn(1, 4), "change": [0.3 * rs.randn(8, 4), rs.randn(4)], "predict": (rs.randn(5, 3),)}
    inputs = np.eye(3)[rs.randint(3, size=(6, 2))]

    def concat_and_multiply(weights, *args):
        cat_state = np.hstack((*args, np.ones((args[0].shape[0], 1))))
        return np.dot(cat_state, weights)

    def loss(params):
        hiddens = np.repeat(params["init"], inputs.shape[1], axis=0)
        w, b = params["change"]
        total = 0.0
        for step in range(inputs.shape[0] - 1):
            hiddens = np.tanh(concat_and_multiply(w, inputs[step], hiddens) + b)
            outputs = concat_and_multiply(params["predict"][0], hiddens)
            logs = outputs - np.log(np.sum(np.exp(outputs), axis=1, keepdims=True))
            total -= np.sum(logs * inputs[step + 1])
        return total / inputs.shape[0]

    g = grad(loss)(params)
    return [loss(params), g["init"], g["change"][0], g["change"][1], g["predict"][0]]


def custom_primitives():
    @primitive
    def logsumexp(x):
        x = np.asarray(x)
        largest = np.max(x)
        return largest + np.log(np.sum(np.exp(x - largest)))

    defvjp(logsumexp, lambda ans, x: lambda g: np.full(x.shape, g) * np.exp(x - np.full(x.shape, ans)))
    defjvp(logsumexp, lambda g, ans, x: np.sum(g * np.exp(x - ans)))
    example = lambda y: logsumexp(y**2)
    y = np.array([1.5, 6.7, 1e-10])
    check_grads(example, modes=["rev", "fwd"])(y[:2] / 4)

    @primitive
    def scaled(a, x, power=2):
        return a * np.asarray(x) ** power

    defvjp(
        scaled,
        unbroadcast := lambda ans, a, x, power=2: unbroadcast_f(a, lambda g: g * x**power),
        lambda ans, a, x, power=2: unbroadcast_f(x, lambda g: g * a * power * x ** (power - 1)),
    )
    assert unbroadcast is not None

    @primitive
    def pair(x, y):
        return np.array([x * y, x + y])

    defvjp_argnums(pair, lambda argnums, ans, args, kw: lambda g: [g[0] * args[1 - i] + g[1] for i in argnums])

    @primitive
    def named(how, x):
        return {"twice": 2.0, "thrice": 3.0}[how] * x

    defvjp_argnum(named, lambda argnum, ans, args, kwargs: lambda g: named(args[0], g))
    rounded = notrace_primitive(lambda x: round(float(x)))
    x = np.array([1.0, 2.0, 3.0])
    return [
        grad(example)(y),
        make_jvp(example)(y)(np.ones(3))[1],
        grad(lambda a: np.sum(scaled(a, x, power=3)))(2.0),
        grad(lambda x: np.sum(scaled(2.0, x)))(x),
        hessian(lambda x: np.sum(scaled(2.0, x, power=3)))(x),
        jacobian(lambda x: pair(x[0], x[1]))(x),
        grad(named, 1)("thrice", 5.0),
        grad(lambda x: x * rounded(x))(2.6),
    ]


def fluid_simulation():
    rs = npr.RandomState(3)
    vx, vy, smoke = rs.randn(6, 6), rs.randn(6, 6), rs.rand(6, 6)

    def project(vx, vy):
        p = np.zeros(vx.shape)
        div = (
            -0.5
            / 6
            * (np.roll(vx, -1, axis=0) - np.roll(vx, 1, axis=0) + np.roll(vy, -1, axis=1) - np.roll(vy, 1, axis=1))
        )
        for _ in range(5):
            p = (
                div + np.roll(p, 1, axis=0) + np.roll(p, -1, axis=0) + np.roll(p, 1, axis=1) + np.roll(p, -1, axis=1)
            ) / 4
        return vx - 3.0 * (np.roll(p, -1, axis=0) - np.roll(p, 1, axis=0)), vy - 3.0 * (
            np.roll(p, -1, axis=1) - np.roll(p, 1, axis=1)
        )

    def advect(f, vx, vy):
        rows, cols = f.shape
        ys, xs = np.meshgrid(np.arange(rows), np.arange(cols))
        x, y = (xs - vx).ravel(), (ys - vy).ravel()
        left, top = np.floor(x).astype(int), np.floor(y).astype(int)
        rw, bw = x - left, y - top
        left, right = np.mod(left, rows), np.mod(left + 1, rows)
        top, bottom = np.mod(top, cols), np.mod(top + 1, cols)
        flat = (1 - rw) * ((1 - bw) * f[left, top] + bw * f[left, bottom]) + rw * (
            (1 - bw) * f[right, top] + bw * f[right, bottom]
        )
        return np.reshape(flat, (rows, cols))

    def distance(params):
        u, v = np.reshape(params, (2, 6, 6))
        s = smoke
        for _ in range(3):
            u, v = project(advect(u, u, v), advect(v, u, v))
            s = advect(s, u, v)
        return np.mean((s - 0.5) ** 2)

    params, unflatten = flatten([vx, vy])
    value, gradient = value_and_grad(distance)(params)
    return [value, gradient, unflatten(gradient)[1]]


def operators():
    f = lambda x, y: np.sum(np.sin(x) * y**2)
    x, y = np.array([0.3, 0.7]), np.array([1.1, -0.4])
    vjp, value = make_vjp(lambda x: np.outer(x, x))(x)
    hvp, gradient = make_hvp(lambda x: np.sum(x**4))(x)
    gauss_newton = make_ggnvp(lambda x: np.array([x[0] * x[1], x[0] ** 2]))(x)
    aux_gradient, aux = grad_and_aux(lambda x: (np.sum(x**2), np.sum(x)))(x)
    by_two = grad(f, (0, 1))(x, y)
    return [
        grad(f)(x, y),
        by_two[0],
        by_two[1],
        grad_named(f, "y")(x, y),
        elementwise_grad(np.tanh)(x),
        deriv(np.exp)(1.0),
        jacobian(lambda x: np.outer(x, x))(x),
        hessian(lambda x: x[0] ** 3 * x[1])(x),
        hessian_vector_product(f)(x, y, np.ones(2)),
        tensor_jacobian_product(lambda x: np.outer(x, x))(x, np.array([[1.0, 2.0], [3.0, 4.0]])),
        value,
        vjp(np.ones((2, 2))),
        hvp(x),
        gradient,
        gauss_newton(np.ones(2)),
        aux_gradient,
        aux,
        make_jvp_reversemode(lambda x: x**3)(x)(np.ones(2)),
        grad(checkpoint(lambda x: np.sum(np.sin(x) ** 2)))(x),
        grad(lambda x: x**2)(np.array([3.0])),
        grad(lambda x: np.sum(x**2.0))(np.array([1, 2, 3])),
    ]


def containers():
    def f(params):
        assert isinstance(params, tuple)
        assert isinstance(params[0], dict)
        assert type(params[1]) is list
        assert isinstance(params[1][0], np.ndarray)
        assert type(params[0]["a"]) is float
        assert isbox(params[0]["a"])
        assert getval(params[0]["a"]) == 2.0
        first, second = params
        return first["a"] * np.sum(second[0]) + sum(v for v in first.values()) * second[1]

    point = ({"a": 2.0, "b": 3.0}, [np.array([1.0, 4.0]), 5.0])
    g = grad(f)(point)
    space = vspace(point)
    x, unflatten = flatten(point)
    return [g[0]["a"], g[0]["b"], g[1][0], g[1][1], space.size, x, flatten(space.ones())[0], unflatten(2 * x)[1][0]]


def complex_numbers():
    x = np.array([1.0, 2.0, 0.5, -1.0])
    z = np.array([1.0 + 2.0j, -0.5j])
    return [
        parts(grad(lambda z: np.sum(np.abs(z) ** 2))(z)),
        parts(grad(lambda z: np.real(z[0] * z[1]))(z)),
        parts(holomorphic_grad(lambda z: np.sin(z) * z)(1.0 + 2.0j)),
        grad(lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2 * np.arange(4)))(x),
        grad(lambda x: np.sum(np.real(np.fft.ifft(np.fft.fft(x) * np.exp(1j * np.arange(4))))))(x),
    ]


def parts(z):
    return [np.real(z), np.imag(z)]


def linear_algebra():
    a = np.array([[2.0, 0.5, 0.1], [0.5, 1.5, 0.2], [0.1, 0.2, 1.0]])
    b = np.array([1.0, 2.0, 3.0])
    return [
        grad(lambda a: np.dot(b, np.linalg.solve(a, b)))(a),
        grad(lambda a: np.linalg.slogdet(a)[1])(a),
        grad(lambda a: np.trace(inv(a)))(a),
        grad(lambda a: np.linalg.eigh(a)[0][0])(a),
        grad(lambda a: np.sum(np.linalg.svd(a, full_matrices=False)[1] ** 3))(a),
        grad(lambda a: np.sum(np.tril(np.linalg.cholesky(a)) ** 2 * a))(a),
        grad(lambda a: np.linalg.norm(a))(a),
        grad(lambda a: np.sum(np.einsum("ij,jk,k->i", a, a, b)))(a),
    ]


def convolutions():
    rs = npr.RandomState(4)
    images, filters = rs.randn(2, 3, 5, 6), rs.randn(3, 4, 2, 3)
    out = []
    for mode in ("valid", "full"):
        f = lambda x, w, mode=mode: convolve(x, w, axes=([2, 3], [2, 3]), dot_axes=([1], [0]), mode=mode)
        weights = np.cos(np.arange(f(images, filters).size)).reshape(f(images, filters).shape)
        loss = lambda x, w, f=f, weights=weights: np.sum(weights * f(x, w) ** 2)
        out += [np.sum(f(images, filters), (0, 1)), grad(loss)(images, filters), grad(loss, 1)(images, filters)]
    a, b = rs.randn(5), rs.randn(3)
    return [*out, *[convolve(a, b, mode=mode) for mode in ("full", "valid", "same")], convolve(b, a)]


def kinks():
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0])
    return [
        elementwise_grad(np.abs)(x),
        elementwise_grad(np.fabs)(x),
        elementwise_grad(lambda x: np.clip(x, 0.0, 1.0))(x),
        elementwise_grad(lambda x: np.maximum(x, 0.5))(x),
        elementwise_grad(lambda x: np.minimum(0.5, x))(x),
        elementwise_grad(lambda x: np.fmax(x, 0.5))(x),
        elementwise_grad(lambda x: np.fmin(x, 0.5))(x),
        elementwise_grad(lambda y: np.power(0.0, y))(np.array([0.0, 1.0, 2.0])),
        grad(lambda x: np.max(x))(np.array([1.0, 3.0, 3.0])),
        grad(lambda x: np.sum(np.sort(x) * np.arange(3)))(np.array([2.0, 2.0, 1.0])),
        deriv(np.abs)(0.0),
    ]


def fixed_points():
    heron = lambda a: lambda x: 0.5 * (x + a / x)
    distance = lambda x, y: np.abs(x - y)
    root = lambda a: fixed_point(heron, a, 1.0, distance, 1e-12)
    return [root(2.0), grad(root)(2.0), grad(grad(root))(2.0)]


PROGRAMS = [
    tanh_to_sixth_order,
    logistic_regression,
    neural_net,
    gaussian_mixture,
    ordinary_differential_equation,
    recurrent_net,
    custom_primitives,
    fluid_simulation,
    operators,
    containers,
    complex_numbers,
    linear_algebra,
    convolutions,
    kinks,
    fixed_points,
]


def main():
    plain = lambda x: [plain(e) for e in x] if type(x) is list else np.asarray(x, float).tolist()
    json.dump({program.__name__: plain(program()) for program in PROGRAMS}, sys.stdout)


if __name__ == "__main__":
    main()
