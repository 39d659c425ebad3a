"""The linear systems of all steps together, solved with plain numbers: from the first step on, or from the last.

With ``J`` the Jacobians of the right-hand side at the stages, the derivatives of slopes ``x`` and states ``z`` obey

    x_n - J_n (U_n z_n + V_n x_n) = b_n,    z_{n+1} - P_n z_n - Q_n x_n = c_{n+1},    z_0 = c_0,

and cotangents obey the transposed system. For short states the Jacobians of all stages are computed at once, and also
the matrices that lead from one step to the next; then a step is one product. Long states go step by step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from funcgrad.numpy.plain_values.peeking import warn
from funcgrad.scipy.integrate.ivp.flows import Flow
from funcgrad.scipy.integrate.ivp.iterations import Iterated
from funcgrad.scipy.integrate.ivp.products import Pattern, Products, value_cotangents
from funcgrad.scipy.integrate.ivp.records import SHORT
from funcgrad.transforms.products import jvp
from funcgrad.transforms.vectorize import vmap

#: Largest number of entries that are computed at once.
_MAX_ENTRIES = 1 << 21


class Steps(NamedTuple):
    """The steps of one solution, in plain numbers.

    Attributes:
        flow: the right-hand side.
        pattern: the sparsity pattern of its Jacobian; None if it is unknown.
        implicit: whether a stage depends on itself or on later ones.
        Y: the arguments of the stages, ``(N, s, n)``.
        T: the times of the stages.
        U: see ``records``.
        V: see ``records``.
        P: see ``records``.
        Q: see ``records``.
        values: the other values that the right-hand side depends on.
    """

    flow: Flow
    pattern: Pattern | None
    implicit: bool
    Y: Any
    T: Any
    U: Any
    V: Any
    P: Any
    Q: Any
    values: tuple[Any, ...]

    def part(self, a: int, b: int) -> Steps:
        """Return the steps from ``a`` to ``b``."""
        cut = {name: getattr(self, name)[a:b] for name in "YTUVPQ"}
        return self._replace(**cut)

    def pieces(self, numbers: int) -> list[tuple[int, int]]:
        """Return the bounds of pieces that are small enough, if a step has this many entries."""
        size = max(1, _MAX_ENTRIES // max(numbers, 1))
        return [(a, min(a + size, len(self.T))) for a in range(0, len(self.T), size)]

    def jacobians(self) -> Any:
        """Return the Jacobian at each stage, ``(N, s, n, n)``."""
        n = self.Y.shape[-1]
        found, basis, at_once = np.empty((*self.Y.shape, n)), np.eye(n), max(1, _MAX_ENTRIES // max(1, self.Y.size))
        column = vmap(lambda seed: self.jacobian_products(np.broadcast_to(seed, self.Y.shape)))
        for j in range(0, n, at_once):
            found[..., j : j + at_once] = np.moveaxis(column(basis[j : j + at_once]), 0, -1)
        return found

    def jacobian_products(self, tangent: Any) -> Any:
        """Multiply the Jacobians with a vector for each stage."""
        return jvp(lambda Y: self.flow.slopes(self.T, Y, *self.values), (self.Y,), (tangent,))[1]

    def value_cotangents(self, ct: Any) -> list[Any]:
        """Return the cotangents of the values from the cotangents of the slopes."""
        return value_cotangents(self.flow, self.T, self.Y, self.values, ct)


def forward(steps: Steps, b: Any, c: Any) -> tuple[Any, Any]:
    """Return slopes ``x`` and states ``z`` for right-hand sides ``b``, ``(N, s, n)``, and ``c``, ``(N + 1, r, n)``."""
    x, z = np.empty_like(b), np.empty_like(c)
    z[0] = c[0]
    for a, e in steps.pieces(_weight(steps)):
        part = _solver(steps.part(a, e))
        part.forward(b[a:e], c[a + 1 : e + 1], x[a:e], z[a : e + 1])
    return x, z


def backward(steps: Steps, b: Any, c: Any) -> tuple[Any, Any]:
    """Return slopes ``x`` and states ``z`` of the transposed system."""
    x, z = np.empty_like(b), np.empty_like(c)
    _backwards(steps, b, c, x, z)
    return x, z


def backward_cotangents(steps: Steps, b: Any, c: Any) -> tuple[Any, list[Any]]:
    """Return the first state of the transposed system, and the cotangents of the values, from its slopes."""
    x, z = np.empty_like(b), np.empty_like(c[0])
    states = np.empty_like(c) if steps.Y.shape[-1] <= SHORT else as_strided(z, c.shape, (0, *z.strides))  # one buffer
    return states[0], _backwards(steps, b, c, x, states, True)


def _backwards(steps: Steps, b: Any, c: Any, x: Any, z: Any, wanted: bool = False) -> list[Any]:
    z[-1] = c[-1]
    total: list[Any] = []
    for a, e in reversed(steps.pieces(_weight(steps))):
        part = _solver(steps.part(a, e))
        part.backward(b[a:e], c[a:e], x[a:e], z[a : e + 1])
        if wanted:
            more = part.value_cotangents(x[a:e])
            total = [u + v for u, v in zip(total, more, strict=True)] if total else more
    return total


def _weight(steps: Steps) -> int:
    """Return the approximate number of entries that one step needs."""
    s, n, r = int(steps.Y.shape[1]), int(steps.Y.shape[2]), int(steps.P.shape[1])
    if n <= SHORT:
        return n * n * (s * s * steps.implicit + 2 * s + r)
    return s * n if steps.pattern is None else 4 * s * int(steps.pattern.count)


def _solver(steps: Steps) -> Any:
    short, rows = steps.Y.shape[-1] <= SHORT, steps.P.shape[1]
    if short:
        return (_Products if rows == 1 else _Inverses)(steps)
    if not steps.implicit:
        return _Explicit(steps)
    entries = None if steps.pattern is None else steps.pattern.entries(steps)
    return Iterated(steps) if entries is None else _Factors(steps, entries)


class _Solver:
    """Base class of solvers that go through some steps; ``forward`` and ``backward`` do so in place."""

    def __init__(self, steps: Steps) -> None:
        self.steps, self.value_cotangents = steps, steps.value_cotangents


class _Products(_Solver):
    """Solver for short states of one row: one matrix takes ``z`` from step to step."""

    def __init__(self, steps: Steps) -> None:
        super().__init__(steps)
        self.J = J = steps.jacobians()
        self.W: Any = None
        N, s, n, _ = J.shape
        if steps.implicit:
            whole = np.eye(s * n) - _blocks(J, steps.V)
            self.W = np.linalg.inv(whole)
            self.G = (self.W @ J.reshape(N, s * n, n)).reshape(N, s, n, n)
        else:
            _warn_if_unstable(J[:, 0], np.abs(steps.Q[:, 0].sum(-1)))
            self.G = np.empty_like(J)
            for i in range(s):
                inner = _combined(steps.V[:, i, :i], self.G[:, :i])
                inner += np.eye(n)
                np.matmul(J[:, i], inner, out=self.G[:, i])
        self.M = np.eye(n) + _combined(steps.Q[:, 0], self.G)

    def _local(self, b: Any) -> Any:
        """Return the slopes for a zero state before the step."""
        if self.W is not None:
            return (self.W @ b.reshape(*self.W.shape[:2], 1)).reshape(b.shape)
        found = np.empty_like(b)
        for i in range(b.shape[1]):
            inner = _combined(self.steps.V[:, i, :i], found[:, :i])
            found[:, i] = b[:, i] + np.matvec(self.J[:, i], inner)
        return found

    def _local_transposed(self, b: Any) -> Any:
        if self.W is not None:
            return (self.W.swapaxes(1, 2) @ b.reshape(*self.W.shape[:2], 1)).reshape(b.shape)
        found, transposed_products = np.empty_like(b), np.empty_like(b)
        for i in reversed(range(b.shape[1])):
            found[:, i] = b[:, i] + _combined(self.steps.V[:, i + 1 :, i], transposed_products[:, i + 1 :])
            transposed_products[:, i] = np.matvec(self.J[:, i].swapaxes(1, 2), found[:, i])
        return found

    def forward(self, b: Any, c: Any, x: Any, z: Any) -> None:
        local = self._local(b)
        enters = c[:, 0] + _combined(self.steps.Q[:, 0], local)
        state = z[0, 0]
        for n, (M, more) in enumerate(zip(self.M, enters, strict=True)):
            state = M @ state + more
            z[n + 1, 0] = state
        x[:] = local + np.matvec(self.G, z[:-1])

    def backward(self, b: Any, c: Any, x: Any, z: Any) -> None:
        rows = self.G.reshape(len(b), b.shape[1] * b.shape[2], b.shape[2])
        enters = c[:, 0] + np.matmul(b.reshape(len(b), 1, b.shape[1] * b.shape[2]), rows)[:, 0]
        state = z[-1, 0]
        for n in reversed(range(len(b))):
            state = state @ self.M[n] + enters[n]
            z[n, 0] = state
        x[:] = self._local_transposed(b + self.steps.Q[:, 0, :, None] * z[1:])


#: Length of a step, relative to the time in which the system reacts, that explicit methods take only at rest.
_UNSTABLE = 12.0


def _warn_if_unstable(J: Any, lengths: Any) -> None:
    """Warn if explicit steps are too long for the Jacobians ``J`` at their beginnings.

    The growth of a derivative in a step is a polynomial of the length times the Jacobian, which is far from the
    exponential function then. The error control of a solver sees this only where the solution itself moves.
    """
    sizes = lengths * np.abs(J).sum(-1).max(-1, initial=0.0)  # a norm, not below the spectral radius
    found = np.flatnonzero((sizes > _UNSTABLE) & np.isfinite(sizes))
    if not len(found):
        return
    rates = np.abs(np.linalg.eigvals(J[found])).max(-1)
    unstable = lengths[found] * rates > _UNSTABLE
    if unstable.any():
        fastest = rates[unstable].max()
        warn(
            f"solve_ivp: the derivative may be wrong by any factor: {unstable.sum()} of {len(J)} steps are up to "
            f"{(lengths[found] * rates).max():.0f} times as long as the time {1 / fastest:.2g} in which the system "
            f"reacts, because the solution hardly changes there. Pass max_step={1 / fastest:.1g}, or adjoint=True.",
            RuntimeWarning,
        )


def _blocks(J: Any, V: Any) -> Any:
    """Return the matrix with the blocks ``J_i V_ij``."""
    N, s, n, _ = J.shape
    return (J[:, :, :, None, :] * V[:, :, None, :, None]).reshape(N, s * n, s * n)


def _combined(weights: Any, parts: Any) -> Any:
    """Return for each step the sum of its parts, ``(N, k, ...)``, with weights ``(N, k)``."""
    flat = parts.reshape(*parts.shape[:2], math.prod(parts.shape[2:]))
    return np.matmul(weights[:, None], flat).reshape(len(parts), *parts.shape[2:])


class _Inverses(_Solver):
    """Solver for short states of several rows and one implicit stage: BDF."""

    def __init__(self, steps: Steps) -> None:
        super().__init__(steps)
        J = steps.jacobians()[:, 0]
        self.W = np.linalg.inv(np.eye(J.shape[-1]) - steps.V * J)
        self.WJ = self.W @ J

    def forward(self, b: Any, c: Any, x: Any, z: Any) -> None:
        U, P, Q = self.steps.U, self.steps.P, self.steps.Q
        local = np.matvec(self.W, b[:, 0])
        for n in range(len(b)):
            x[n, 0] = slope = local[n] + self.WJ[n] @ (U[n, 0] @ z[n])
            z[n + 1] = P[n] @ z[n] + Q[n] * slope + c[n]

    def backward(self, b: Any, c: Any, x: Any, z: Any) -> None:
        U, P, Q = self.steps.U, self.steps.P, self.steps.Q
        for n in reversed(range(len(b))):
            after = z[n + 1]
            rest = b[n, 0] + Q[n, :, 0] @ after
            x[n, 0] = rest @ self.W[n]
            z[n] = P[n].T @ after + np.multiply.outer(U[n, 0], rest @ self.WJ[n]) + c[n]


class _Explicit(_Solver):
    """Solver for long states and explicit stages: products with the Jacobian of one stage after the other."""

    def _products(self, transposed: bool) -> Products:
        """Return the products with the Jacobians of all stages."""
        steps = self.steps
        return Products(steps.flow, steps.T.ravel(), steps.Y.reshape(-1, steps.Y.shape[-1]), steps.values, transposed)

    def forward(self, b: Any, c: Any, x: Any, z: Any) -> None:
        U, V, P, Q, stages = self.steps.U, self.steps.V, self.steps.P, self.steps.Q, b.shape[1]
        pushed = self._products(False)
        for n in range(len(b)):
            along, slopes = U[n] @ z[n], x[n]
            for i in range(stages):
                if i:
                    along[i] += V[n, i, :i] @ slopes[:i]
                slopes[i] = b[n, i] + pushed(n * stages + i, along[i])
            z[n + 1] = P[n] @ z[n] + Q[n] @ slopes + c[n]

    def backward(self, b: Any, c: Any, x: Any, z: Any) -> None:
        U, V, P, Q = self.steps.U, self.steps.V, self.steps.P, self.steps.Q
        leads, enters = (np.concatenate(two, axis=1).swapaxes(1, 2).copy() for two in ((P, U), (Q, V)))
        given, added = b.any(-1), c.reshape(len(c), -1).any(-1).tolist()
        used = enters.any(-1) | given
        stages, rows = b.shape[1], z.shape[1]
        product = self._products(True)
        self.value_cotangents = lambda ct: product.value_cotangents(ct.reshape(-1, ct.shape[-1]))
        both = np.zeros((rows + stages, b.shape[2]))  # the cotangents after the step, and those from the stages
        after, parts = both[:rows], both[rows:]
        after[:] = z[-1]
        x[~used] = 0.0
        order = range(stages - 1, -1, -1)
        along = [[i for i in order if mine[i]] for mine in used.tolist()]
        whole, given = used.all(-1).tolist(), given.any(-1).tolist()
        for n in reversed(range(len(b))):
            slopes, enter = x[n], enters[n]
            if not whole[n]:
                parts[:] = 0.0
            for i in along[n]:
                enter[i].dot(both, slopes[i])  # stages before stage ``i`` have zero weights
                if given[n]:
                    slopes[i] += b[n, i]
                parts[i] = product(n * stages + i, slopes[i])
            leads[n].dot(both, z[n])
            if added[n]:
                z[n] += c[n]
            after[:] = z[n]


class _Factors(_Solver):
    """Solver for long states with a known pattern and implicit stages: one sparse factorisation for each step."""

    def __init__(self, steps: Steps, entries: Any) -> None:
        super().__init__(steps)
        assert steps.pattern is not None
        self.pattern, self.entries = steps.pattern, entries

    def _multiply(self, times: Callable[[Any, Any], Any], n: int, v: Any) -> Any:
        """Multiply the Jacobians of all stages of step ``n`` with a vector for each stage, by ``times``."""
        return np.stack([times(entries, part) for entries, part in zip(self.entries[n], v, strict=True)])

    def _factor(self, n: int) -> Any:
        """Return a solver for the matrix of step ``n`` and for its transpose."""
        return self.pattern.factor(self.entries[n], self.steps.V[n])

    def forward(self, b: Any, c: Any, x: Any, z: Any) -> None:
        U, P, Q = self.steps.U, self.steps.P, self.steps.Q
        for n in range(len(b)):
            x[n] = self._factor(n)(b[n] + self._multiply(self.pattern.times, n, U[n] @ z[n]), False)
            z[n + 1] = P[n] @ z[n] + Q[n] @ x[n] + c[n]

    def backward(self, b: Any, c: Any, x: Any, z: Any) -> None:
        U, P, Q = self.steps.U, self.steps.P, self.steps.Q
        for n in reversed(range(len(b))):
            after = z[n + 1]
            x[n] = self._factor(n)(b[n] + Q[n].T @ after, True)
            z[n] = P[n].T @ after + U[n].T @ self._multiply(self.pattern.times_transposed, n, x[n]) + c[n]
