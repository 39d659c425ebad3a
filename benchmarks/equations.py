"""Differential equations and integrals: gradients compared with SciPy's plain call, torchdiffeq and diffrax."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from timing import Claim, check_equal, interleave

import funcgrad.numpy as fnp
from funcgrad import grad
from funcgrad.scipy import integrate

__all__ = ["integrals", "peers", "solutions"]

Function = Callable[..., Any]
#: Largest ratio to SciPy's plain solve: of our plain solve, and of a gradient with few and with many states. Integrals
#: have no bar.
PLAIN, FEW, MANY = 1.1, 6.0, 4.0
#: Largest ratio to libraries that run eagerly. Diffrax compiles its loop even without ``jax.jit``. If SciPy's plain
#: solve, which is shown next to it, takes more than this share, no gradient through SciPy's steps can take less.
EAGER = 0.2
COMPILED = "diffrax in jax.jit"
POINTS = 100
METHODS = ("RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA")


class System(NamedTuple):
    """``dy/dt = fun(t, y, p)`` from 0 to ``end``; ``fun`` calls functions of one library."""

    name: str
    fun: Function
    start: Any
    parameters: Any
    end: float
    methods: tuple[str, ...]
    options: dict[str, Any]


def lorenz(t: Any, y: Any, p: Any) -> Any:
    return [p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]]


def robertson(t: Any, y: Any, p: Any) -> Any:
    a, b, c = y
    return [-p[0] * a + p[1] * b * c, p[0] * a - p[1] * b * c - p[2] * b * b, p[2] * b * b]


def brusselator(t: Any, y: Any, p: Any) -> Any:
    u, v = y[:POINTS], y[POINTS:]
    bend = lambda w, edge: fnp.concatenate([w[1:], edge]) - 2 * w + fnp.concatenate([edge, w[:-1]])
    spread, meeting = p[2] * (POINTS + 1) ** 2, u * u * v
    return fnp.concatenate(
        [
            p[0] + meeting - (p[1] + 1) * u + spread * bend(u, np.ones(1)),
            p[1] * u - meeting + spread * bend(v, 3 * np.ones(1)),
        ]
    )


def diffusion(t: Any, y: Any, p: Any) -> Any:
    nothing = np.zeros(1)
    return p[0] * (fnp.concatenate([y[1:], nothing]) - 2 * y + fnp.concatenate([nothing, y[:-1]])) - p[1] * y * y


def network(tanh: Function, weights: Any, decay: Any = 1.0) -> Function:
    return lambda t, y, p: p[0] * tanh(weights @ y) - p[1] * decay * y


def systems() -> list[System]:
    """Return systems of three and of two hundred states, stiff and not stiff."""
    places = np.arange(1, POINTS + 1) / (POINTS + 1)
    rates = np.array([0.04, 1e4, 3e7])
    start = np.concatenate([1 + np.sin(2 * np.pi * places), 3 + 0 * places])
    rng = np.random.default_rng(0)
    weights, units = rng.normal(size=(200, 200)) / np.sqrt(200), rng.normal(size=200)
    return [
        System("Lorenz", lorenz, np.ones(3), np.array([10.0, 28.0, 8 / 3]), 5.0, METHODS, {"rtol": 1e-6, "atol": 1e-6}),
        System("Robertson", robertson, np.eye(3)[0], rates, 1e4, METHODS[3:], {"rtol": 1e-6, "atol": 1e-10}),
        System(
            "Brusselator, 200 states", brusselator, start, np.array([1.0, 3.0, 0.02]), 1.0, METHODS,
            {"rtol": 1e-5, "atol": 1e-7},
        ),
        System(
            "diffusion, 200 states", diffusion, np.sin(np.linspace(0, 3, 200)), np.array([1.0, 0.5]), 5.0, METHODS,
            {"rtol": 1e-6, "atol": 1e-8},
        ),
        System(
            "network, 200 states", network(fnp.tanh, weights), units, np.array([1.5, 1.0]), 5.0, METHODS,
            {"rtol": 1e-6, "atol": 1e-8},
        ),
        System(
            "stiff network, 200 states", network(fnp.tanh, weights, np.logspace(0, 4, 200)), units,
            np.array([1.5, 1.0]), 5.0, METHODS[3:], {"rtol": 1e-6, "atol": 1e-8},
        ),
    ]  # fmt: skip


def last_of(solve: Function, system: System, method: str) -> Function:
    """Return a weighted sum of the last state as a function of the parameters."""
    span, options, weights = (0.0, system.end), system.options, weights_of(system)
    return lambda p: fnp.sum(weights * solve(system.fun, span, system.start, method, args=(p,), **options).y[:, -1])


def weights_of(system: System) -> Any:
    return np.linspace(1.0, 2.0, len(system.start))


def compared(what: str, plain: Function, ours: Function, bar: float | None, quick: bool) -> Claim:
    """Return the line of a gradient, or of a plain call, against SciPy's plain call."""
    times = interleave({"ours": ours, "plain": plain}, 2 if quick else 15)
    mine, theirs = (min(times[name]) for name in ("ours", "plain"))
    return Claim(what, f"{1e3 * mine:.3g} ms", f"SciPy, no gradient {1e3 * theirs:.3g} ms", mine / theirs, bar)


def solutions(quick: bool) -> list[Claim]:
    """Measure a plain solve, and the reverse-mode gradient in all parameters, relative to SciPy's plain solve."""
    import scipy.integrate

    claims = []
    for system in systems():
        for method in system.methods[: 1 if quick else None]:
            p, few = system.parameters, len(system.start) < 10
            value, plain = (
                last_of(solve, system, method) for solve in (integrate.solve_ivp, scipy.integrate.solve_ivp)
            )
            theirs = lambda plain=plain, p=p: plain(p)
            for what, ours, bar in (("plain solve", value, PLAIN), ("gradient", grad(value), FEW if few else MANY)):
                named = f"{what}, {system.name}, {method}"
                claims.append(compared(named, theirs, lambda ours=ours, p=p: ours(p), bar, quick))
    return claims


# Other libraries. Both take a state as an array.


def by_torchdiffeq(system: System, stacked: Function, adjoint: bool) -> Function:
    import torch
    import torchdiffeq

    solve = torchdiffeq.odeint_adjoint if adjoint else torchdiffeq.odeint
    start, times = torch.from_numpy(system.start), torch.tensor([0.0, system.end], dtype=torch.float64)

    def call() -> Any:
        p = torch.nn.Parameter(torch.from_numpy(system.parameters.copy()))

        class Flow(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.p = p

            def forward(self, t: Any, y: Any) -> Any:
                return stacked(t, y, self.p)

        last = solve(Flow(), start, times, method="dopri5", **system.options)[-1]
        (torch.from_numpy(weights_of(system)) * last).sum().backward()
        return p.grad.numpy()

    return call


def by_diffrax(system: System, stacked: Function, solver: str) -> Function:
    """Return the gradient with respect to parameters; diffrax compiles and caches its steps by itself."""
    import diffrax
    import jax
    import jax.numpy as jnp

    control = diffrax.PIDController(**system.options)
    made = getattr(diffrax, solver)()

    def last(p: Any) -> Any:
        found = diffrax.diffeqsolve(
            diffrax.ODETerm(stacked), made, 0.0, system.end, None, jnp.asarray(system.start), p,
            stepsize_controller=control, max_steps=16**4,
        )  # fmt: skip
        return jnp.sum(weights_of(system) * found.ys[-1])

    return jax.grad(last)


def peers(quick: bool) -> list[Claim]:
    """Measure one gradient by installed libraries, run eagerly; the time of compiled diffrax is shown."""
    few, stiff, _, _, units, _ = systems()
    stiff = stiff._replace(end=40.0)
    claims: list[Claim] = []
    if find_spec("torchdiffeq"):
        import torch

        weights = torch.from_numpy(np.random.default_rng(0).normal(size=(200, 200)) / np.sqrt(200))
        stacked = network(torch.tanh, weights)
        through = {"torchdiffeq": by_torchdiffeq(few, lambda t, y, p: torch.stack(lorenz(t, y, p)), False)}
        claims += beside(few, "RK45", through, quick)
        ways = {"torchdiffeq": False, "torchdiffeq, adjoint": True}
        of_units = {name: by_torchdiffeq(units, stacked, adjoint) for name, adjoint in ways.items()}
        claims += beside(units, "RK45", of_units, quick)
    if find_spec("diffrax"):
        import jax
        import jax.numpy as jnp

        pairs = ((few, "RK45", "Dopri5"), (stiff, "Radau", "Kvaerno5"), (stiff, "LSODA", "Kvaerno5"))
        for system, method, solver in pairs:
            stacked = lambda t, y, p, fun=system.fun: jnp.stack(fun(t, y, p))
            gradient, p = by_diffrax(system, stacked, solver), jnp.asarray(system.parameters)
            compiled = jax.jit(gradient)
            ways = {
                "diffrax": lambda gradient=gradient, p=p: np.asarray(gradient(p)),
                COMPILED: lambda compiled=compiled, p=p: np.asarray(compiled(p)),
            }
            claims += beside(system, method, ways, quick)
        short = few._replace(name="Lorenz, a few steps", end=0.2)  # each call takes a second and more
        stacked = lambda t, y, p: jnp.stack(lorenz(t, y, p))
        claims += beside(short, "RK45", {"diffrax in jax.disable_jit": interpreted(short, stacked)}, True)
    return claims


def interpreted(system: System, stacked: Function) -> Function:
    """Return the gradient by diffrax with JAX's compilation disabled."""
    import jax

    gradient = by_diffrax(system, stacked, "Dopri5")

    def call() -> Any:
        with jax.disable_jit():
            return np.asarray(gradient(jax.numpy.asarray(system.parameters)))

    return call


def beside(system: System, method: str, ways: dict[str, Function], quick: bool) -> list[Claim]:
    """Return the lines of a system."""
    import scipy.integrate

    slope = grad(last_of(integrate.solve_ivp, system, method))
    plain = last_of(scipy.integrate.solve_ivp, system, method)
    p, claims = system.parameters, []
    for name, call in ways.items():
        check_equal((slope(p) * p,), {name: (call() * p,)}, tolerance=2e-2)
        candidates = {"ours": lambda: slope(p), "plain": lambda: plain(p), name: call}
        times = interleave(candidates, 1 if quick else 5, warm=False)
        mine, least, theirs = (min(times[which]) for which in candidates)
        what = f"gradient, {system.name}, {method}"
        against = f"{name} {1e3 * theirs:.3g} ms; SciPy, no gradient {1e3 * least:.3g} ms"
        bar = None if name == COMPILED else EAGER
        claims.append(Claim(what, f"{1e3 * mine:.3g} ms", against, mine / theirs, bar))
    return claims


# Integrals.


def integrals(quick: bool) -> list[Claim]:
    """Measure the gradient with respect to limits and arguments, relative to SciPy's plain call."""
    import scipy.integrate

    rates = np.array([0.7, 1.3])
    cases: dict[str, tuple[Function, Any]] = {
        "quad": (lambda m, k: m.quad(lambda x, k: fnp.exp(-k * x) * fnp.sin(x), 0.0, np.inf, (k,))[0], 1.3),
        "quad_vec": (
            lambda m, k: fnp.sum(m.quad_vec(lambda x, k: fnp.exp(-k * x) * fnp.sin(x), 0.0, 2.0, args=(k,))[0]),
            rates,
        ),
        "dblquad": (
            lambda m, k: m.dblquad(lambda y, x, k: fnp.exp(-k * x * y), 0.0, 1.0, 0.0, lambda x: x, (k,))[0],
            1.3,
        ),
        "tplquad": (
            lambda m, k: m.tplquad(
                lambda z, y, x, k: k * x * y * z, 0.0, 1.0, 0.0, lambda x: x, 0.0, lambda x, y: y, (k,)
            )[0],
            1.3,
        ),
        "nquad": (
            lambda m, k: m.nquad(lambda x, y, k: fnp.exp(-k * x - y), [(0.0, np.inf), (0.0, 1.0)], (k,))[0],
            1.3,
        ),
        "tanhsinh": (
            lambda m, k: fnp.sum(m.tanhsinh(lambda x, k: fnp.exp(-k * x) / fnp.sqrt(x), 0.0, 1.0, args=(k,)).integral),
            rates,
        ),
        "nsum": (lambda m, k: fnp.sum(m.nsum(lambda x, k: x**-k, 1.0, np.inf, args=(k,)).sum), 1.0 + rates),
        "cubature": (
            lambda m, k: (
                m.cubature(
                    lambda x, k: fnp.exp(-x[:, 0] * k[0]) * fnp.cos(x[:, 1] * k[1]), [0.0, 0.0], [1.0, 1.5], args=(k,)
                ).estimate
            ),
            rates,
        ),
    }
    claims = []
    for name, (value, k) in cases.items():
        slope = grad(lambda k, value=value: value(integrate, k))
        plain = lambda value=value, k=k: value(scipy.integrate, k)
        claims.append(compared(f"gradient, {name}", plain, lambda slope=slope, k=k: slope(k), None, quick))
    return claims
