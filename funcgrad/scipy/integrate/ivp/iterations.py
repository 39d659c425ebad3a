"""Implicit steps of long states with dense Jacobians: one factorisation for many steps, and iterations.

A step of ``s`` stages has the matrix ``I - V_ij J_i``, different in each step. SciPy's solvers keep the Jacobian of one
time and refactorise when the step length changes. This module does the same, and then iterates by generalised conjugate
residuals (Eisenstat, Elman and Schultz, 1983), whose products with the Jacobians are exact. With one Jacobian ``J`` for
all stages the matrix splits into one of ``n`` rows for each eigenvalue of ``V`` (Butcher, 1976).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.ivp.products import Products, exact_jacobian

_CALL = "integrate.solve_ivp"
#: Largest last correction, relative to the solution. It is added, so the error is a good deal smaller.
_TOLERANCE = 1e-11
_MAX_ITERATIONS = 24
#: Iterations after which the next step gets its own Jacobian, and steps that a Jacobian serves at least.
_MANY_ITERATIONS, _MIN_STEPS_PER_JACOBIAN = 8, 5
#: Largest relative difference between the length of a step and that of the factorisation.
_LENGTH_TOLERANCE = 0.02
#: Number of earlier stages through which the first guess extrapolates, for steps of one stage.
_EXTRAPOLATED_STAGES = 4


class Iterated:
    """The steps of one solution, with the solver of their systems.

    Args:
        steps: see ``sweeps.Steps``.
    """

    def __init__(self, steps: Any) -> None:
        self.steps = steps
        self.lapack = import_scipy(_CALL, "scipy.linalg.lapack")
        found, right = np.linalg.eig(steps.V)
        left = np.linalg.inv(right)
        order = np.argsort(found.imag, axis=1)
        which = np.arange(len(found))[:, None], order
        self.roots, self.right, self.left = found[which], right.swapaxes(1, 2)[which], left[which]
        self.jacobian: Any = None
        self.jacobian_step = self.was_slow = 0  # the step of the Jacobian; whether the last system was slow
        self.factors: list[Any] = []
        self.length = 0.0  # the step length of the factors

    def forward(self, b: Any, c: Any, x: Any, z: Any) -> None:
        """Solve in place; see ``sweeps.forward``."""
        U, P, Q = self.steps.U, self.steps.P, self.steps.Q
        self._begin(False)
        scale = np.ones(len(b))
        for n, guess in enumerate(_weights(self.steps.T)):
            along = U[n] @ z[n]
            rhs = b[n] + self.products(n, along)
            x[n] = self._solve(n, rhs, _extrapolated(guess, x, scale, n))
            z[n + 1] = P[n] @ z[n] + Q[n] @ x[n] + c[n]

    def backward(self, b: Any, c: Any, x: Any, z: Any) -> None:
        """Solve in place; see ``sweeps.backward``."""
        U, P, Q, V = self.steps.U, self.steps.P, self.steps.Q, self.steps.V
        self._begin(True)
        lengths = V[:, -1].sum(-1)
        empty = lengths == 0  # steps that change nothing; they pad the shorter runs of a batch
        scale = np.where(empty, 1.0, lengths)
        weights = _weights(self.steps.T[::-1, ::-1])
        inverse = np.linalg.inv(np.where(empty[:, None, None], np.eye(V.shape[1]), V.swapaxes(1, 2)))
        reversed_x, scales = x[::-1, ::-1], scale[::-1]  # views, in the order in which the steps are taken
        for k, guess in enumerate(weights):
            n = len(b) - 1 - k
            after = z[n + 1]
            rhs = b[n] + Q[n].T @ after
            first = _extrapolated(guess, reversed_x, scales, k)
            x[n] = found = self._solve(n, rhs, None if first is None else first[::-1])
            # the transposed Jacobians times ``found``
            jacobian_product = self.products(n, found) if empty[n] else inverse[n] @ (found - rhs)
            z[n] = P[n].T @ after + U[n].T @ jacobian_product + c[n]

    def _begin(self, transposed: bool) -> None:
        steps = self.steps
        self.transposed = transposed
        self.products = Products(steps.flow, steps.T, steps.Y, steps.values, transposed)
        self.value_cotangents = self.products.value_cotangents

    def _matvec(self, n: int, x: Any) -> Any:
        """Multiply the matrix of step ``n``, or its transpose, with ``x``."""
        if self.transposed:
            return x - self.steps.V[n].T @ self.products(n, x)
        return x - self.products(n, self.steps.V[n] @ x)

    # ---- one step ------------------------------------------------------------------------------------------------

    def _solve(self, n: int, rhs: Any, guess: Any) -> Any:
        """Solve the system of step ``n``, or the transposed system."""
        if not rhs.any():
            return np.zeros_like(rhs)
        length = float(abs(self.roots[n, 0]))
        if self.jacobian is None or (self.was_slow and abs(n - self.jacobian_step) >= _MIN_STEPS_PER_JACOBIAN):
            self._update_jacobian(n)
        elif abs(length - self.length) > _LENGTH_TOLERANCE * self.length:
            self._factor(n)
        with np.errstate(all="ignore"):
            found, count, done = self._iterate(n, rhs, guess)
            if not done and self.jacobian_step != n:
                self._update_jacobian(n)
                found, count, done = self._iterate(n, rhs, guess)
        self.was_slow = count >= _MANY_ITERATIONS
        return found if done else self._solve_directly(n, rhs)

    def _iterate(self, n: int, rhs: Any, guess: Any) -> tuple[Any, int, bool]:
        """Return the solution, the number of iterations, and whether they converged."""
        size, shape = rhs.size, rhs.shape
        steps, images = np.empty((_MAX_ITERATIONS, size)), np.empty((_MAX_ITERATIONS, size))
        x, residual = np.zeros(size), rhs.ravel()
        if guess is not None:
            x = guess.ravel()
            residual = residual - self._matvec(n, guess).ravel()
        for k in range(_MAX_ITERATIONS):
            step = self._precondition(n, residual.reshape(shape)).ravel()
            if step @ step <= _TOLERANCE**2 * (x @ x):
                return (x + step).reshape(shape), k, True
            image = self._matvec(n, step.reshape(shape)).ravel()
            if k:
                along = images[:k] @ image
                image = image - along @ images[:k]
                step = step - along @ steps[:k]
            by = 1.0 / np.sqrt(image @ image)
            steps[k], images[k] = by * step, by * image
            far = images[k] @ residual
            x = x + far * steps[k]
            residual = residual - far * images[k]
        return x.reshape(shape), _MAX_ITERATIONS, False

    def _precondition(self, n: int, rhs: Any) -> Any:
        """Solve approximately, with the Jacobian of another time for all stages."""
        trans = int(self.transposed)
        if len(rhs) == 1:
            return self.lapack.dgetrs(*self.factors[0], rhs[0], trans=trans)[0][None]
        into, out = (self.right[n], self.left[n]) if self.transposed else (self.left[n], self.right[n])
        found = np.zeros(rhs.shape)
        for k, factors in enumerate(self.factors):
            if factors is None:
                continue
            if factors[0].dtype == complex:
                part = self.lapack.zgetrs(*factors, into[k] @ rhs, trans=trans)[0]
                found += 2.0 * np.multiply.outer(out[k], part).real
            else:
                part = self.lapack.dgetrs(*factors, into[k].real @ rhs, trans=trans)[0]
                found += np.multiply.outer(out[k].real, part)
        return found

    def _update_jacobian(self, n: int) -> None:
        """Compute the Jacobian of the last stage of step ``n``, and factorise."""
        steps = self.steps
        self.jacobian = exact_jacobian(steps.flow, None, steps.values)(float(steps.T[n, -1]), steps.Y[n, -1])
        self.jacobian_step = n
        self._factor(n)

    def _factor(self, n: int) -> None:
        """Factorise for the length of step ``n``; one of two conjugate eigenvalues is enough."""
        self.length, self.factors = float(abs(self.roots[n, 0])), []
        one = np.eye(len(self.jacobian))
        for root in self.roots[n]:
            if root.imag < 0:
                self.factors.append(None)
            elif root.imag > 0:
                self.factors.append(self.lapack.zgetrf(one - root * self.jacobian)[:2])
            else:
                self.factors.append(self.lapack.dgetrf(one - root.real * self.jacobian)[:2])

    def _solve_directly(self, n: int, rhs: Any) -> Any:
        """Solve by a factorisation of the whole matrix."""
        J, V = self.steps.part(n, n + 1).jacobians()[0], self.steps.V[n]
        s, size, _ = J.shape
        whole = np.eye(s * size) - (J[:, :, None, :] * V[:, None, :, None]).reshape(s * size, s * size)
        solve = import_scipy(_CALL, "scipy.linalg").solve
        return solve(whole, rhs.ravel(), check_finite=False, transposed=self.transposed).reshape(rhs.shape)


def _weights(T: Any) -> Any:
    """Return the weights, ``(N, s, m)``, that extrapolate earlier stages to the stages of each step.

    Weights are zero if there are too few earlier stages, or if the extrapolation is ill-conditioned.
    """
    count, s = T.shape
    m = _EXTRAPOLATED_STAGES if s == 1 else s
    times = T.ravel()
    found = np.zeros((count, s, m))
    first = -(-m // s)  # the first step with enough of them
    ends = s * np.arange(first, count)
    nodes = times[ends[:, None] + np.arange(-m, 0)]
    gaps = nodes[:, :, None] - nodes[:, None, :] + np.eye(m)
    away = T[first:, :, None] - nodes[:, None, :]
    with np.errstate(all="ignore"):
        for j in range(m):
            others = np.arange(m) != j
            found[first:, :, j] = np.prod(away[:, :, others], axis=-1) / np.prod(gaps[:, j, others], axis=-1)[:, None]
    bad = ~(np.abs(found).sum(-1).max(-1) < 100.0)
    found[bad] = 0.0
    return found


def _extrapolated(weights: Any, x: Any, scale: Any, n: int) -> Any:
    """Return the extrapolation from the steps before step ``n``; None if there is none."""
    if not weights.any():
        return None
    s, m = weights.shape
    back = -(-m // s)
    before = (x[n - back : n] / scale[n - back : n, None, None]).reshape(back * s, x.shape[-1])
    return scale[n] * (weights @ before[-m:])
