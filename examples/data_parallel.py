"""Train on eight devices at once: each has a part of the examples, and XLA adds their gradients.

Meshes and shardings are JAX's; the loss, its gradient and the step are funcgrad's, unchanged. The eight devices
are virtual devices of this machine's processor; with eight GPUs the same lines run on the GPUs. The program checks
that the gradient equals that of one device up to rounding. Run it with ``python examples/data_parallel.py``.
"""

import os

# JAX counts its devices once, at its first use.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = os.environ.get("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from sklearn.datasets import load_digits

import funcgrad.numpy as fnp
from funcgrad import pipe, tree, value_and_grad
from funcgrad.interop import device_put, jit

DEVICES = 8
STEPS = 20 if os.environ.get("FUNCGRAD_QUICK") else 200


def load():
    """Return handwritten digits, as many as eight devices can share evenly, and their labels one-hot."""
    x, y = load_digits(return_X_y=True)
    count = len(x) // DEVICES * DEVICES
    return x[:count] / 16.0, np.eye(10)[y[:count]]


def start(rng):
    """Return parameters of a 64-32-10 network, in double precision."""
    return {
        "hidden": {"w": rng.standard_normal((64, 32)) / 8.0, "b": np.zeros(32)},
        "out": {"w": rng.standard_normal((32, 10)) / 32**0.5, "b": np.zeros(10)},
    }


def scores(params, x):
    dense = lambda layer: lambda x: x @ layer["w"] + layer["b"]
    return pipe(x, dense(params["hidden"]), fnp.tanh, dense(params["out"]))


def loss(params, x, labels):
    """Return the softmax cross-entropy."""
    return -fnp.mean(fnp.sum(labels * fnp.log_softmax(scores(params, x)), axis=-1))


def accuracy(params, x, labels):
    """Return the share of digits that are recognised."""
    return fnp.mean(fnp.argmax(scores(params, x), axis=-1) == fnp.argmax(labels, axis=-1))


def step(params, x, labels, rate=0.5):
    """Do one step of gradient descent."""
    value, gradient = value_and_grad(loss)(params, x, labels)
    return tree.map(lambda p, g: p - rate * g, params, gradient), value


def furthest(one, other):
    """Return the largest difference of two trees, relative to the largest number of the leaf that has it."""
    pairs = zip(tree.leaves(one), tree.leaves(other), strict=True)
    return max(np.abs(np.asarray(a) - np.asarray(b)).max() / np.abs(b).max() for a, b in pairs)


def main():
    mesh = Mesh(np.array(jax.devices()), ("data",))
    everywhere = NamedSharding(mesh, PartitionSpec())
    in_parts = NamedSharding(mesh, PartitionSpec("data"))
    placed = {"in_shardings": (everywhere, in_parts, in_parts), "out_shardings": everywhere}

    params = start(np.random.default_rng(0))
    x, labels = load()
    value, gradient = value_and_grad(loss)(params, x, labels)  # NumPy, one device
    shared_value, shared_gradient = jit(value_and_grad(loss), **placed)(params, x, labels)
    apart = max(furthest(shared_gradient, gradient), abs(shared_value - value) / value)
    print(f"{jax.device_count()} devices, {len(x)} examples; largest difference from one device {apart:.1e}")
    assert apart < 1e-12

    # From here on everything stays on the devices: arguments and results are JAX arrays.
    params = device_put(params, everywhere)
    x, labels = device_put((x, labels), in_parts)
    shards = sorted(shard.data.shape for shard in x.addressable_shards)
    print(f"each device has {shards[0][0]} examples and all {sum(p.size for p in tree.leaves(params))} parameters")
    compiled = jit(step, **placed, donate_argnums=0)
    for number in range(STEPS):
        # Virtual devices share the processor's threads; two steps at once could wait for each other for ever.
        params, value = jax.block_until_ready(compiled(params, x, labels))
        if number % (STEPS // 4) == 0:
            print(f"step {number:4d}  loss {float(value):.4f}")
    right = jit(accuracy, **placed)(params, x, labels)
    print(f"step {STEPS:4d}  loss {float(value):.4f}, accuracy {float(right):.1%}")
    assert float(value) < 2.0
    assert set(params["out"]["w"].devices()) == set(jax.devices())


if __name__ == "__main__":
    main()
