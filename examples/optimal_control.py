"""Optimal control by Newton's method with a sparse Hessian: a block moved as gently as possible.

A block slides from rest at 0 to rest at 1 within a second, against friction that grows with the square of its speed.
The program finds the force over time that does so with the least effort. Time is cut into steps; position, speed and
force at all steps are unknown; multipliers enforce the equations of motion. The Hessian of the Lagrangian is sparse:
``hessian(..., sparsity="auto")`` finds its pattern and pays for a few colours instead of thousands of columns.
``python examples/optimal_control.py`` draws ``out/optimal_control.png``.
"""

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from _shared import QUICK, save
from scipy.sparse.linalg import spsolve

import funcgrad.numpy as fnp
from funcgrad import grad, hessian

STEPS = 200 if QUICK else 2000
STEP, FRICTION = 1.0 / STEPS, 3.0


def split(z):
    """Return positions and speeds at all times, forces in between, and the multipliers of all equations."""
    n = STEPS
    return z[: n + 1], z[n + 1 : 2 * n + 2], z[2 * n + 2 : 3 * n + 2], z[3 * n + 2 :]


def equations(x, v, force):
    """Return the residuals of the equations of motion, by the trapezoidal rule, and of rest at both ends."""
    drag = FRICTION * v * fnp.sqrt(v**2 + 1e-6)
    middle = 0.5 * (v[1:] + v[:-1])
    motion = x[1:] - x[:-1] - STEP * middle
    newton = v[1:] - v[:-1] - STEP * (force - 0.5 * (drag[1:] + drag[:-1]))
    return fnp.concatenate([motion, newton, fnp.stack([x[0], v[0], x[-1] - 1.0, v[-1]])])


def lagrangian(z):
    """Return the effort plus the equations times their multipliers; its gradient is zero at the solution."""
    x, v, force, multipliers = split(z)
    return 0.5 * STEP * fnp.sum(force**2) + multipliers @ equations(x, v, force)


def main():
    unknown = 3 * STEPS + 2 + 2 * STEPS + 4
    t = np.linspace(0.0, 1.0, STEPS + 1)
    z = np.concatenate([t**2 * (3 - 2 * t), 6 * t * (1 - t), np.zeros(STEPS), np.zeros(2 * STEPS + 4)])
    slope, curvature = grad(lagrangian), hessian(lagrangian, sparsity="auto")
    print(f"{unknown} unknowns\nstep  length of gradient   Hessian's entries   seconds")
    for step in range(30):
        begun = perf_counter()
        residual = slope(z)
        length = np.abs(residual).max()
        if length < 1e-10:
            break
        matrix = curvature(z)
        z = z - spsolve(matrix.tocsc(), residual)
        print(f"{step:4d} {length:19.2e} {matrix.nnz:14d} of {unknown**2:.0e} {perf_counter() - begun:7.2f}")

    x, v, force, _ = split(z)
    effort, missed = 0.5 * STEP * np.sum(force**2), np.abs(equations(x, v, force)).max()
    print(f"effort {effort:.6f}, without friction it would be 6; equations satisfied to {missed:.0e}")
    figure, axes = plt.subplots(figsize=(6.5, 3.8))
    axes.plot(t, x, label="position")
    axes.plot(t, v, label="speed")
    axes.plot(t[:-1] + 0.5 * STEP, force / 10, label="force / 10")
    axes.set(xlabel="time", title="the gentlest way from rest to rest")
    axes.legend()
    save(figure, "optimal_control")
    assert length < 1e-10
    assert effort > 6.0


if __name__ == "__main__":
    main()
