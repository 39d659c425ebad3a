"""Physics with nested derivatives: the motion of a double pendulum from its energy alone.

A mechanical system is a function, the Lagrangian L(q, v) = kinetic minus potential energy. The equations of motion

    d/dt (dL/dv) = dL/dq     or     (d²L/dv²) a = dL/dq - (d²L/dq dv) v

need first and second derivatives of L, which funcgrad computes. ``python examples/double_pendulum.py``
draws ``out/double_pendulum.png`` and checks that the energy is conserved.
"""

import matplotlib.pyplot as plt
import numpy as np
from _shared import QUICK, progress, save

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jacfwd, jvp, vmap

MASSES, LENGTHS, GRAVITY = (1.0, 0.7), (1.0, 0.8), 9.81
STEP, STEPS = 4e-3, (60 if QUICK else 1200)


def place(q):
    """Return x and y of the two masses, for the angles ``q`` of the rods."""
    x1, y1 = LENGTHS[0] * fnp.sin(q[0]), -LENGTHS[0] * fnp.cos(q[0])
    return fnp.stack([x1, y1, x1 + LENGTHS[1] * fnp.sin(q[1]), y1 - LENGTHS[1] * fnp.cos(q[1])])


def kinetic(q, v):
    """Return the kinetic energy; velocities are derivatives of the positions along ``v``, by forward mode."""
    _, speed = jvp(place, (q,), (v,))
    return 0.5 * (MASSES[0] * fnp.sum(speed[:2] ** 2) + MASSES[1] * fnp.sum(speed[2:] ** 2))


def potential(q):
    where = place(q)
    return GRAVITY * (MASSES[0] * where[1] + MASSES[1] * where[3])


def lagrangian(q, v):
    return kinetic(q, v) - potential(q)


def energy(q, v):
    return kinetic(q, v) + potential(q)


def acceleration(q, v):
    """Solve the equations of motion: three derivatives of the Lagrangian and a small linear system."""
    mass = hessian(lagrangian, argnums=1)(q, v)
    mixed = jacfwd(grad(lagrangian, argnums=1), argnums=0)(q, v)
    return np.linalg.solve(mass, grad(lagrangian)(q, v) - mixed @ v)


def motion(q, v):
    """Return angles and velocities at all times, by the classical Runge-Kutta method."""

    def slope(state):
        return np.concatenate([state[2:], acceleration(state[:2], state[2:])])

    states = [np.concatenate([q, v])]
    for _ in progress(range(STEPS), "swinging"):
        s = states[-1]
        k1 = slope(s)
        k2 = slope(s + 0.5 * STEP * k1)
        k3 = slope(s + 0.5 * STEP * k2)
        k4 = slope(s + STEP * k3)
        states.append(s + STEP / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return np.stack(states)


def by_hand(q, v):
    """Return the acceleration by the textbook formula for this system."""
    (m1, m2), (l1, l2), g = MASSES, LENGTHS, GRAVITY
    difference = q[0] - q[1]
    c, s = np.cos(difference), np.sin(difference)
    mass = np.array([[(m1 + m2) * l1**2, m2 * l1 * l2 * c], [m2 * l1 * l2 * c, m2 * l2**2]])
    force = np.array(
        [
            -m2 * l1 * l2 * v[1] ** 2 * s - (m1 + m2) * g * l1 * np.sin(q[0]),
            m2 * l1 * l2 * v[0] ** 2 * s - m2 * g * l2 * np.sin(q[1]),
        ]
    )
    return np.linalg.solve(mass, force)


def main():
    q, v = np.array([2.0, 2.5]), np.zeros(2)
    check = np.array([0.3, -1.1]), np.array([0.7, 2.0])
    apart = np.abs(acceleration(*check) - by_hand(*check)).max()
    print(f"largest difference from the textbook's acceleration: {apart:.1e}")

    states = motion(q, v)
    energies = vmap(energy)(states[:, :2], states[:, 2:])
    drift = np.ptp(energies)
    print(f"energy {energies[0]:.4f} J; it changed by {drift:.1e} J in {STEPS * STEP:.1f} s")

    places = vmap(place)(states[:, :2])
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
    left.plot(places[:, 2], places[:, 3], linewidth=0.7, color="tab:red")
    left.plot(places[:, 0], places[:, 1], linewidth=0.7, color="tab:blue")
    left.set(title="paths of the two masses", aspect="equal", xlabel="m", ylabel="m")
    right.plot(np.arange(len(states)) * STEP, states[:, :2])
    right.set(title="angles", xlabel="s", ylabel="rad")
    right.legend(["upper", "lower"])
    save(figure, "double_pendulum")
    assert apart < 1e-12
    assert drift < 1e-3


if __name__ == "__main__":
    main()
