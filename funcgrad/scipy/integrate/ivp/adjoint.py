"""The adjoint equation, a differential equation for cotangents that is solved backwards along the solution.

With ``y' = f(t, y, p)`` the cotangent ``a`` of the state obeys ``a' = -J^T a``, and the cotangent of ``p`` is the
integral of ``(df/dp)^T a`` (Pontryagin; Chen et al., Neural ordinary differential equations, 2018). States on the way
come from the solver's interpolant: integrating the state backwards would be unstable for stiff equations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.core import Tracer
from funcgrad.errors import ConvergenceError
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.optional import import_scipy
from funcgrad.scipy.integrate.ivp.answers import Solution, plain_states
from funcgrad.scipy.integrate.ivp.derivatives import Derivatives
from funcgrad.scipy.integrate.ivp.runs import Runs, clear_solvers, with_notes
from funcgrad.transforms.closures import example_by_example
from funcgrad.transforms.products import jvp, vjp
from funcgrad.transforms.vectorize import vmap
from funcgrad.writable import outside_transforms

_CALL = "integrate.solve_ivp"


class Adjoint:
    """The states of a run as an operation whose reverse mode solves the adjoint equation.

    Forward mode and derivatives of derivatives go through the steps.
    """

    def __init__(self, runs: Runs, derivatives: Derivatives) -> None:
        self.runs, self.derivatives = runs, derivatives

    @property
    def _forward_rules(self) -> CustomRules:
        """Rules of the operation that returns the states. Storing them in ``self`` would make a reference cycle."""
        return CustomRules(_CALL, self._run, self._fwd, self._bwd, self._jvp_rule)

    @property
    def _backward_rules(self) -> CustomRules:
        """Rules of the operation that integrates backwards."""
        return CustomRules(_CALL, lambda *leaves: example_by_example(self._backwards, leaves), jvp=self._jvp_backwards)

    def __call__(self, number: Any, start: Any, t0: Any, tf: Any, t_eval: Any, values: Sequence[Any]) -> Any:
        """Return the states of run ``number``, one per column."""
        return custom_call(number, start, t0, tf, t_eval, *values, rules=self._forward_rules)[0]

    def _through_steps(self, number: Any, start: Any, t0: Any, tf: Any, t_eval: Any, *values: Any) -> Any:
        return Solution(self.runs, self.derivatives, number, start, t0, tf, t_eval, values).states()

    def _run(self, *leaves: Any) -> list[Any]:
        return [plain_states(self.runs, leaves[0])[1]]

    def _fwd(self, *leaves: Any) -> tuple[list[Any], Any]:
        return list(custom_call(*leaves, rules=self._forward_rules)), leaves

    def _bwd(self, residuals: Any, cts: list[Any]) -> list[Any]:
        return [None, *custom_call(cts[0], *residuals, rules=self._backward_rules)]

    def _jvp_rule(self, leaves: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        outs = list(custom_call(*leaves, rules=self._forward_rules))
        through = lambda *some: self._through_steps(leaves[0], *some)
        return outs, [jvp(through, tuple(leaves[1:]), tuple(tangents[1:]))[1]]

    def _jvp_backwards(self, leaves: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        outs = list(custom_call(*leaves, rules=self._backward_rules))

        def pulled(ct: Any, *some: Any) -> Any:
            return vjp(lambda *inner: self._through_steps(leaves[1], *inner), *some)[1](ct)

        moving = (tangents[0], *tangents[2:])
        return outs, list(jvp(pulled, (leaves[0], *leaves[2:]), moving)[1])

    def _backwards(self, ct: Any, number: Any, start: Any, t0: Any, tf: Any, t_eval: Any, *values: Any) -> list[Any]:
        """Return the cotangents of all arguments but the number, in plain numbers."""
        for x in (ct, number, start, t0, tf, t_eval, *values):
            if isinstance(x, Tracer):
                np.asarray(x)  # raises for a batch, whose examples are then taken one by one
        with outside_transforms():
            return _BackwardRun(self.runs, int(number), values).integrate(np.asarray(ct), t_eval)


class _BackwardRun:
    """The backward integration along one run."""

    def __init__(self, runs: Runs, number: int, values: tuple[Any, ...]) -> None:
        self.runs, self.flow, self.packing, self.values = runs, runs.flow, runs.packing, values
        self.result = runs.records[number].result
        self.start = float(runs.records[number].times[0])
        self.sizes = [int(np.size(value)) for value in values]
        given = runs.arguments.options
        self.options: dict[str, Any] = {name: float(np.min(given[name])) for name in ("rtol", "atol") if name in given}

    def integrate(self, ct: Any, t_eval: Any) -> list[Any]:
        """Return the cotangents of the first state, both ends, ``t_eval`` and the values."""
        times = np.asarray(self.result.t)
        rows = self.packing.real(np.conj(ct.T) if self.packing.is_complex else ct.T)
        slopes = self.flow.slopes(times, self.packing.real(np.asarray(self.result.y).T), *self.values)
        moves = np.sum(rows * slopes, axis=-1)
        state = np.zeros(self.flow.size + sum(self.sizes))
        for i in reversed(range(len(times))):
            state[: self.flow.size] += rows[i]
            before = times[i - 1] if i else self.start
            if before != times[i]:
                state = self._integrate_between(state, times[i], before)
        first, rest = state[: self.flow.size], np.split(state[self.flow.size :], np.cumsum(self.sizes)[:-1])
        at_start = self.flow(self.start, self._state_at(self.start), *self.values)
        has_t_eval = self.runs.arguments.t_eval is not None
        ended = moves[-1] if not has_t_eval and self.result.status == 0 and len(times) > 1 else 0.0
        pulled = [
            np.reshape(part, np.shape(value)).astype(np.asarray(value).dtype)
            for part, value in zip(rest, self.values, strict=False)
        ]
        y0 = self.packing.from_real(first)
        y0 = np.conj(y0) if self.packing.is_complex else y0
        at_times = np.append(moves, np.zeros(len(t_eval) - len(moves))) if has_t_eval else np.zeros(0)
        return [y0, np.asarray(-first @ at_start), np.asarray(ended), at_times, *pulled]

    def _cotangents(self, t: Any, y: Any, a: Any) -> Any:
        found = vjp(lambda y, *some: self.flow(t, y, *some), y, *self.values)[1](a)
        return np.concatenate([np.ravel(part) for part in found])

    def _state_at(self, t: Any) -> Any:
        return self.packing.real(self.result.sol(t))

    def _integrate_between(self, state: Any, start: float, stop: float) -> Any:
        n = self.flow.size
        if not np.isfinite(state).all():  # SciPy's solvers would shorten their steps without end
            return np.full_like(state, np.nan)

        def slope(t: Any, x: Any) -> Any:
            found = -self._cotangents(float(t), self._state_at(t), x[:n])
            if np.isfinite(x).all() and not np.isfinite(found).all():
                raise ConvergenceError(
                    f"{_CALL}: the adjoint equation was not solved: the right-hand side must have finite derivatives, "
                    f"got others at t={float(t):.6g}, where the state is {self._state_at(t)}. Choose the argument "
                    "first: where(y > 0, sqrt(where(y > 0, y, 1.0)), 0.0)."
                )
            return found

        def matrix(t: Any, x: Any) -> Any:
            found = np.zeros((len(x), len(x)))
            y, t = self._state_at(t), float(t)
            found[:, :n] = -np.asarray(vmap(lambda a: self._cotangents(t, y, a))(np.eye(n))).T
            return found

        options: dict[str, Any] = dict(self.options)
        if self.runs.scheme.implicit:
            options["jac"] = matrix
        solve = import_scipy(_CALL, "scipy.integrate").solve_ivp
        arguments, solvers = self.runs.arguments._replace(max_steps=None), list[Any]()
        method = with_notes(arguments, lambda solver: None, lambda *_: None, solvers)
        found = solve(slope, (start, stop), state, method=method, **options)
        clear_solvers(arguments.method, solvers)
        if found.status < 0:
            raise ConvergenceError(
                f"{_CALL}: the adjoint equation was not solved, got {found.message!r}. Leave adjoint=True out: then "
                "derivatives go through the steps."
            )
        return found.y[:, -1]
