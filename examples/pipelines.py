"""Pipelines: transforms are plain functions of functions, so they compose, curry and map like any other stage.

Run it with ``python examples/pipelines.py``; every line it prints has been checked.
"""

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import compose, compose_left, curry, grad, juxt, pipe, value_and_grad, vmap

rng = np.random.default_rng(0)


def show(what, value):
    print(f"{what:44} {np.array2string(np.asarray(value), precision=4, suppress_small=True)}")


# 1. A pipeline is a function, so it has a gradient.
wave = compose_left(fnp.exp, fnp.sin)
x = 0.5
show("gradient of sin(exp(x)) at 0.5", grad(wave)(x))
assert np.isclose(grad(wave)(x), np.cos(np.exp(x)) * np.exp(x))

# 2. Transforms compose too: the third derivative, over a whole array.
third = compose(vmap, grad, grad, grad)
points = np.linspace(-1.0, 1.0, 5)
show("third derivative of sin on five points", third(fnp.sin)(points))
assert np.allclose(third(fnp.sin)(points), -np.cos(points))

# 3. juxt applies several functions to one argument: the value, the slope and the curvature.
tell = juxt(fnp.tanh, grad(fnp.tanh), grad(grad(fnp.tanh)))
show("tanh, its slope and its curvature at 0.5", tell(x))
t = np.tanh(x)
assert np.allclose(tell(x), (t, 1 - t**2, -2 * t * (1 - t**2)))


# 4. Layers are curried functions: with their parameters applied they are stages.
@curry
def linear(layer, x):
    return x @ layer["w"] + layer["b"]


def predict(params, x):
    return pipe(x, linear(params["hidden"]), fnp.tanh, linear(params["out"]))


def loss(params, x, y):
    return fnp.mean((predict(params, x) - y) ** 2)


params = {
    "hidden": {"w": rng.standard_normal((3, 4)), "b": np.zeros(4)},
    "out": {"w": rng.standard_normal((4, 1)), "b": np.zeros(1)},
}
inputs, targets = rng.standard_normal((8, 3)), rng.standard_normal((8, 1))
value, gradient = value_and_grad(loss)(params, inputs, targets)
show("loss of a network of four stages", value)
show("its gradient in the last bias", gradient["out"]["b"])

# 5. The gradient of every single example: map over the data, not over the parameters.
each = vmap(grad(loss), in_axes=(None, 0, 0))(params, inputs, targets)
show("shape of all gradients of the first matrix", each["hidden"]["w"].shape)
assert np.allclose(each["hidden"]["w"].mean(axis=0), gradient["hidden"]["w"])


# 6. Private training is a pipeline: clip every example's gradient to length 1, then average.
def clipped(gradient):
    return gradient / fnp.maximum(1.0, fnp.sqrt(fnp.sum(gradient**2)))


def first_matrix(gradient):
    return gradient["hidden"]["w"]


private = compose_left(grad(loss), first_matrix, clipped)
lengths = vmap(compose_left(private, fnp.square, fnp.sum, fnp.sqrt), in_axes=(None, 0, 0))
show("lengths of the clipped gradients", lengths(params, inputs, targets))
assert np.all(lengths(params, inputs, targets) <= 1 + 1e-12)

# 7. A step of descent is a stage; twenty steps are a pipeline, which has a gradient too.
bowl = compose_left(fnp.square, curry(fnp.add)(1.0), fnp.log)
step = lambda x: x - 0.2 * grad(bowl)(x)
descend = compose(*[step] * 20)
show("twenty steps down log(1 + x^2) from 0.5", descend(x))
show("how the end depends on the beginning", grad(descend)(x))
h = 1e-6
assert np.isclose(grad(descend)(x), (descend(x + h) - descend(x - h)) / (2 * h))
print("all checked")
