"""A periodic orbit of three bodies: Newton's method corrects start and period until the orbit closes.

Three equal masses can chase each other along one figure of eight. From rough numbers, Newton's method finds a start
and a period after a third of which each body is where the next body was. ``solve_ivp`` gives the Jacobian
by forward mode; the period is an end of the interval. Second derivatives would work as well.
``python examples/three_bodies.py`` draws ``out/three_bodies.png``.
"""

import matplotlib.pyplot as plt
import numpy as np
from _shared import save

import funcgrad.numpy as fnp
from funcgrad import jacfwd
from funcgrad.scipy import integrate


def flow(t, z):
    """Return the rates of change of three bodies of mass 1: positions, then velocities, two numbers each."""
    places = fnp.reshape(z[:6], (3, 2))
    apart = places[None] - places[:, None]
    distance = fnp.sum(apart**2, axis=-1) + np.eye(3)
    pull = fnp.sum(apart / distance[..., None] ** 1.5, axis=1)
    return fnp.concatenate([z[6:], fnp.ravel(pull)])


def start(x):
    """Return the state with one body in the middle and the others opposite to each other."""
    px, py, vx, vy = (x[i] for i in range(4))
    zero = 0.0 * px
    return fnp.stack([px, py, -px, -py, zero, zero, vx, vy, vx, vy, -2 * vx, -2 * vy])


def missed(x):
    """Return how far the bodies are from having changed places after a third of the period."""
    end = integrate.solve_ivp(flow, (0.0, x[4] / 3), start(x), "DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    places, speeds = fnp.reshape(end[:6], (3, 2)), fnp.reshape(end[6:], (3, 2))
    first = start(x)
    want, speed = fnp.reshape(first[:6], (3, 2)), fnp.reshape(first[6:], (3, 2))
    order = np.array([2, 0, 1])
    return fnp.concatenate([fnp.ravel(places - want[order]), fnp.ravel(speeds - speed[order])])


def main():
    x = np.array([0.95, -0.3, 0.5, 0.4, 6.0])  # rough numbers
    path = lambda x, until: (
        integrate.solve_ivp(
            flow, (0.0, until), start(x), "DOP853", np.linspace(0.0, until, 600), rtol=1e-10, atol=1e-10
        ).y
    )
    before = path(x, 2.0 * x[4])
    print("step   missed by")
    for step in range(8):
        rest = missed(x)
        print(f"{step:4d} {np.abs(rest).max():12.2e}")
        if np.abs(rest).max() < 1e-9:
            break
        # turned and scaled figures close as well: take the shortest of all steps
        x = x - np.linalg.lstsq(jacfwd(missed)(x), rest, rcond=1e-6)[0]
    print("start", x[:4].round(8), "period", x[4].round(8))
    figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharex=True, sharey=True)
    for ax, title, z in zip(axes, ["rough numbers", "closed"], [before, path(x, 2.0 * x[4])], strict=True):
        for body in range(3):
            ax.plot(z[2 * body], z[2 * body + 1], linewidth=1)
            ax.plot(z[2 * body, 0], z[2 * body + 1, 0], "ko", markersize=4)
        ax.set(title=title, aspect="equal")
    save(figure, "three_bodies")


if __name__ == "__main__":
    main()
