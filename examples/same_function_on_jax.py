"""One function, two libraries: eager on NumPy arrays, compiled on JAX arrays, without a changed line.

The arrays decide: with a NumPy array NumPy computes ``grad(energy)``; with a JAX array, or under ``jax.jit``, JAX
computes it. Run the example with ``python examples/same_function_on_jax.py``.
"""

from time import perf_counter

import jax
import numpy as np

import funcgrad.numpy as fnp
from funcgrad import grad, hvp, value_and_grad

jax.config.update("jax_enable_x64", True)


def energy(positions):
    """Return the energy of particles that attract each other from afar and repel each other when close."""
    apart = positions[:, None, :] - positions[None, :, :]
    squared = fnp.sum(apart**2, axis=-1) + fnp.eye(len(positions))  # excludes the interaction of a particle with itself
    inverse = 1.0 / squared**3
    return 0.5 * fnp.sum(inverse**2 - inverse)


def milliseconds(call, *args, times=20):
    call(*args)
    start = perf_counter()
    for _ in range(times):
        jax.block_until_ready(call(*args))
    return (perf_counter() - start) / times * 1e3


def main():
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(*[np.arange(4.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    positions = 1.3 * grid + 0.05 * rng.standard_normal((64, 3))

    force = grad(energy)
    compiled = jax.jit(force)
    eager, fast = force(positions), compiled(positions)
    for what, result, call in (("eager on NumPy", eager, force), ("compiled by JAX", fast, compiled)):
        kind = type(result)
        print(f"{what:16} {kind.__module__.split('.')[0]}.{kind.__name__:10} {milliseconds(call, positions):7.3f} ms")
    difference = np.abs(eager - np.asarray(fast)).max() / np.abs(eager).max()
    print(f"largest relative difference {difference:.1e}")
    assert type(eager) is np.ndarray
    assert difference < 1e-12

    # JAX's transforms take ``energy`` like any other function, and funcgrad's transforms take JAX arrays.
    batch = positions + 0.01 * rng.standard_normal((5, 64, 3))
    mapped = jax.vmap(force)(batch)
    assert np.allclose(mapped, np.stack([force(p) for p in batch]))
    print(f"jax.vmap of it over 5 boxes gives forces of shape {mapped.shape}")
    direction = rng.standard_normal(positions.shape)
    (bent,) = hvp(energy, (positions,), (direction,))
    (bent_on_jax,) = jax.jit(lambda x, t: hvp(energy, (x,), (t,)))(positions, direction)
    assert np.allclose(bent, bent_on_jax)
    print("the Hessian-vector product agrees too")

    # Descend the energy, compiled as a whole.
    @jax.jit
    def settle(positions):
        def step(positions, _):
            value, slope = value_and_grad(energy)(positions)
            return positions - 1e-3 * slope, value

        return jax.lax.scan(step, positions, None, length=200)

    _, energies = settle(positions)
    print(f"energy {energies[0]:.3f} falls to {energies[-1]:.3f} in 200 compiled steps")
    assert energies[-1] < energies[0]


if __name__ == "__main__":
    main()
