"""Systems of differential equations from several fields, and the classical stiff ones.

``stiff_references.json`` holds the reference values, made by ``stiff_references.py``.

Sources of the stiff set: Mazzia and Magherini, Test set for initial value problem solvers, 2008, and Hairer and Wanner,
Solving Ordinary Differential Equations II, chapter IV.10.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

import funcgrad.numpy as fnp


@dataclass(frozen=True)
class System:
    """``dy/dt = fun(t, y, p)`` from 0 to ``end``."""

    name: str
    fun: Any
    start: tuple[float, ...]
    parameters: tuple[float, ...]
    end: float
    method: str = "RK45"
    options: Any = None
    published: Any = None  # values at the end, as printed by the test set for IVP solvers (Bari, release 2.4)


def robertson(t, y, p):
    a, b, c = y
    return [-p[0] * a + p[1] * b * c, p[0] * a - p[1] * b * c - p[2] * b * b, p[2] * b * b]


def hires(t, y, p):
    y1, y2, y3, y4, y5, y6, y7, y8 = y
    meeting = p[5] * y6 * y8
    return [
        -p[0] * y1 + 0.43 * y2 + 8.32 * y3 + 0.0007,
        p[0] * y1 - 8.75 * y2,
        -10.03 * y3 + 0.43 * y4 + 0.035 * y5,
        8.32 * y2 + p[0] * y3 - 1.12 * y4,
        -p[1] * y5 + 0.43 * y6 + 0.43 * y7,
        -meeting + p[2] * y4 + p[0] * y5 - 0.43 * y6 + p[2] * y7,
        meeting - p[3] * y7,
        -meeting + p[3] * y7 + p[4] * 0.0,
    ]


def orego(t, y, p):
    a, b, c = y
    return [p[0] * (b + a * (1 - p[1] * a - b)), (c - (1 + a) * b) / p[0], p[2] * (a - c)]


def e5(t, y, p):
    a, b, c, d = y
    first, second, third = p[0] * a, p[1] * a * c, p[3] * p[2] * b * c
    up, down = first - third, second - p[2] * d  # computing the third as a difference keeps its digits
    return [-first - second, up, up - down, down]


def van_der_pol(t, y, p):
    return [y[1], ((1 - y[0] ** 2) * y[1] - y[0]) / p[0]]


def pleiades(t, z, p):
    x, y, speeds = z[:7], z[7:14], z[14:]
    dx, dy = x[None, :] - x[:, None], y[None, :] - y[:, None]
    pull = p[0] * np.arange(1.0, 8.0) / (dx**2 + dy**2 + np.eye(7)) ** 1.5
    return fnp.concatenate([speeds, fnp.sum(pull * dx, axis=1), fnp.sum(pull * dy, axis=1)])


POINTS = 100


def brusselator(t, y, p):
    u, v = y[:POINTS], y[POINTS:]
    spread = p[2] * (POINTS + 1) ** 2
    bend = lambda w, edge: fnp.concatenate([w[1:], edge]) - 2 * w + fnp.concatenate([edge, w[:-1]])
    meeting = u * u * v
    return fnp.concatenate(
        [
            p[0] + meeting - (p[1] + 1) * u + spread * bend(u, np.ones(1)),
            p[1] * u - meeting + spread * bend(v, 3 * np.ones(1)),
        ]
    )


_PLACES = np.arange(1, POINTS + 1) / (POINTS + 1)
TIGHT = {"rtol": 1e-8, "atol": 1e-11}

STIFF = [
    System(
        "robertson", robertson, (1.0, 0.0, 0.0), (0.04, 1e4, 3e7), 1e11, "BDF", {"rtol": 1e-8, "atol": 1e-16},
        (0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050),
    ),
    System(
        "hires", hires, (1.0, 0, 0, 0, 0, 0, 0, 0.0057), (1.71, 1.745, 0.69, 1.81, 1.0, 280.0), 321.8122, "Radau",
        TIGHT,
        (0.7371312573325668e-3, 0.1442485726316185e-3, 0.5888729740967575e-4, 0.1175651343283149e-2,
         0.2386356198831331e-2, 0.6238968252742796e-2, 0.2849998395185769e-2, 0.2850001604814231e-2),
    ),
    System(
        "orego", orego, (1.0, 2.0, 3.0), (77.27, 8.375e-6, 0.161), 360.0, "Radau", {"rtol": 1e-9, "atol": 1e-9},
        (0.1000814870318523e1, 0.1228178521549917e4, 0.1320554942846706e3),
    ),
    System(
        # Up to 1e5, where doubles have full accuracy; a separate test covers the published end, 1e13.
        "e5", e5, (1.76e-3, 0.0, 0.0, 0.0), (7.89e-10, 1.1e7, 1.13e3, 1e6), 1e5, "Radau", {"rtol": 1e-8, "atol": 1e-24},
    ),
    System(
        "van der pol 1e6", van_der_pol, (2.0, 0.0), (1e-6,), 2.0, "Radau", TIGHT,
        (0.1706167732170483e1, -0.8928097010247975),
    ),
    System(
        "pleiades", pleiades,
        (3, 3, -1, -3, 2, -2, 2, 3, -3, 2, 0, 0, -4, 4, 0, 0, 0, 0, 0, 1.75, -1.5, 0, 0, 0, -1.25, 1, 0, 0), (1.0,),
        3.0, "DOP853", {"rtol": 1e-11, "atol": 1e-11},
        (0.3706139143970502, 3.237284092057233, -3.222559032418324, 0.6597091455775310, 0.3425581707156584,
         1.562172101400631, -0.7003092922212495, -3.943437585517392, -3.271380973972550, 5.225081843456543,
         -2.590612434977470, 1.198213693392275, -0.2429682344935824, 1.091449240428980, 3.417003806314313,
         1.354584501625501, -2.590065597810775, 2.025053734714242, -1.155815100160448, -0.8072988170223021,
         0.5952396354208710, -3.741244961234010, 0.3773459685750630, 0.9386858869551073, 0.3667922227200571,
         -0.3474046353808490, 2.344915448180937, -1.947020434263292),
    ),
    System(
        "brusselator on 200 points", brusselator,
        (*(1 + np.sin(2 * np.pi * _PLACES)), *(3 + 0 * _PLACES)), (1.0, 3.0, 0.02), 10.0, "BDF",
        {"rtol": 1e-7, "atol": 1e-9},
    ),
]  # fmt: skip


def michaelis_menten(t, y, p):
    free = y[0] * y[1]
    return [-p[0] * free + (p[1] + p[2]) * y[2], -p[0] * free + p[1] * y[2], p[0] * free - (p[1] + p[2]) * y[2]]


def two_species_brusselator(t, y, p):
    return [p[0] + y[0] ** 2 * y[1] - (p[1] + 1) * y[0], p[1] * y[0] - y[0] ** 2 * y[1]]


def absorption(t, y, p):
    return [-p[0] * y[0], p[0] * y[0] - p[1] * y[1]]


def two_compartments(t, y, p):
    return [-(p[0] + p[1]) * y[0] + p[2] * y[1] + p[3] * fnp.exp(-t), p[1] * y[0] - p[2] * y[1]]


def saturated_elimination(t, y, p):
    return [-p[0] * y[0] / (p[1] + y[0])]


def sir(t, y, p):
    infected = p[0] * y[0] * y[1]
    return [-infected, infected - p[1] * y[1], p[1] * y[1]]


def seir(t, y, p):
    infected = p[0] * (1 + p[3] * fnp.cos(t)) * y[0] * y[2]
    return [-infected, infected - p[1] * y[1], p[1] * y[1] - p[2] * y[2], p[2] * y[2]]


def vaccinated(t, y, p):
    return [p[2] - p[0] * y[0] * y[1] - (p[2] + p[3]) * y[0], p[0] * y[0] * y[1] - (p[1] + p[2]) * y[1]]


def hunters(t, y, p):
    return [p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]]


def rosenzweig(t, y, p):
    eaten = p[1] * y[0] * y[1] / (1 + p[2] * y[0])
    return [p[0] * y[0] * (1 - y[0]) - eaten, eaten - p[3] * y[1]]


def allee(t, y, p):
    return [p[0] * y[0] * (y[0] / p[1] - 1) * (1 - y[0] / p[2])]


def pendulum(t, y, p):
    return [y[1], -p[0] * fnp.sin(y[0]) - p[1] * y[1]]


def double_pendulum(t, y, p):
    a, b, u, v = y
    d = a - b
    s, c, below = fnp.sin(d), fnp.cos(d), 1 + fnp.sin(d) ** 2
    return [
        u,
        v,
        (-s * (v**2 + u**2 * c) + p[0] * (fnp.sin(b) * c - 2 * fnp.sin(a))) / (p[1] * below),
        (s * (2 * u**2 + v**2 * c) + p[0] * (2 * fnp.sin(a) * c - 2 * fnp.sin(b))) / (p[1] * below),
    ]


def duffing(t, y, p):
    return [y[1], -p[0] * y[1] + y[0] - p[1] * y[0] ** 3 + p[2] * fnp.cos(t)]


def kepler(t, y, p):
    r = (y[0] ** 2 + y[1] ** 2) ** 1.5
    return [y[2], y[3], -p[0] * y[0] / r, -p[0] * y[1] / r]


def restricted_three_bodies(t, y, p):
    m = p[0]
    d1, d2 = ((y[0] + m) ** 2 + y[1] ** 2) ** 1.5, ((y[0] - 1 + m) ** 2 + y[1] ** 2) ** 1.5
    return [
        y[2],
        y[3],
        y[0] + 2 * y[3] - (1 - m) * (y[0] + m) / d1 - m * (y[0] - 1 + m) / d2,
        y[1] - 2 * y[2] - (1 - m) * y[1] / d1 - m * y[1] / d2,
    ]


def circuit(t, y, p):
    return [y[1], (fnp.sin(3.0 * t) - p[0] * y[1] - y[0] / p[2]) / p[1]]


def diode(t, y, p):
    return [(fnp.sin(t) - y[0]) / p[0] - p[1] * fnp.sinh(y[0] / p[2])]


def nerve(t, y, p):
    return [y[0] - y[0] ** 3 / 3 - y[1] + 0.5, p[2] * (y[0] + p[0] - p[1] * y[1])]


def lorenz(t, y, p):
    return [p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]]


def chua(t, y, p):
    bent = p[2] * y[0] + p[3] * fnp.tanh(y[0])
    return [p[0] * (y[1] - y[0] - bent), y[0] - y[1] + y[2], -p[1] * y[1]]


def goodwin(t, y, p):
    return [p[0] / (1 + y[2] ** 4) - y[0], p[1] * y[0] - y[1], p[2] * y[1] - y[2]]


SYSTEMS = [
    System("michaelis menten", michaelis_menten, (1.0, 0.5, 0.0), (10.0, 1.0, 2.0), 3.0, "BDF"),
    System("brusselator", two_species_brusselator, (1.0, 1.0), (1.0, 2.5), 8.0),
    System("goodwin", goodwin, (0.5, 0.3, 0.2), (3.0, 1.0, 1.2), 6.0, "DOP853"),
    System("absorption", absorption, (1.0, 0.0), (2.0, 0.3), 5.0, "RK23"),
    System("two compartments", two_compartments, (1.0, 0.0), (0.3, 0.8, 0.4, 0.5), 6.0, "LSODA"),
    System("saturated elimination", saturated_elimination, (2.0,), (0.8, 0.4), 2.0),
    System("sir", sir, (0.99, 0.01, 0.0), (1.4, 0.4), 15.0),
    System("seir", seir, (0.98, 0.01, 0.01, 0.0), (1.5, 0.7, 0.4, 0.2), 12.0, "LSODA"),
    System("vaccinated", vaccinated, (0.9, 0.1), (2.0, 0.5, 0.1, 0.05), 10.0, "Radau"),
    System("hunters", hunters, (10.0, 5.0), (1.1, 0.4, 0.4, 0.1), 8.0, "DOP853"),
    System("rosenzweig macarthur", rosenzweig, (0.5, 0.3), (1.0, 3.0, 2.0, 0.6), 10.0),
    System("allee", allee, (0.4,), (0.7, 0.3, 1.0), 4.0, "BDF"),
    System("pendulum", pendulum, (1.0, 0.0), (9.81, 0.2), 3.0),
    System("double pendulum", double_pendulum, (1.0, 0.5, 0.0, 0.0), (9.81, 1.0), 2.0, "DOP853"),
    System("duffing", duffing, (0.5, 0.0), (0.2, 1.1, 0.3), 6.0),
    System("kepler", kepler, (1.0, 0.0, 0.0, 1.1), (1.0,), 7.0, "DOP853"),
    System("restricted three bodies", restricted_three_bodies, (0.6, 0.3, 0.1, -0.2), (0.012277471,), 2.0),
    System("circuit", circuit, (0.0, 1.0), (0.3, 1.0, 0.5), 5.0, "LSODA"),
    System("diode", diode, (0.0,), (0.01, 1e-3, 0.1), 3.0, "Radau"),
    System("nerve", nerve, (-1.0, 0.2), (0.7, 0.8, 0.08), 20.0, "BDF"),
    System("lorenz", lorenz, (1.0, 1.0, 1.0), (10.0, 28.0, 8 / 3), 2.0),
    System("chua", chua, (0.1, 0.0, 0.0), (9.0, 14.0, -0.7, -0.4), 3.0, "Radau"),
]
