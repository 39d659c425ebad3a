"""States and slopes of all steps as one operation, differentiated through the equations that they satisfy.

A run of SciPy gives states ``S`` and slopes ``X`` with ``X = f(T, U S + V X)`` and ``S' = P S + Q X``. Three
operations are differentiable to any order, each by the others: the steps themselves, the linear system for tangents,
and its transpose for cotangents. No operation records a single step; each computes all steps together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.scipy.integrate.ivp.flows import Flow
from funcgrad.scipy.integrate.ivp.products import Pattern, find_pattern, value_cotangents
from funcgrad.scipy.integrate.ivp.records import SHORT
from funcgrad.scipy.integrate.ivp.sweeps import Steps, backward, backward_cotangents, forward
from funcgrad.transforms.closures import example_by_example
from funcgrad.transforms.products import jvp, vjp
from funcgrad.writable import outside_transforms


class Derivatives:
    """The operations of one method and one right-hand side.

    Args:
        flow: the right-hand side.
        pattern: the sparsity pattern of its Jacobian; None if it is unknown.
        implicit: whether the stages of the method depend on later ones or on themselves.
    """

    def __init__(self, flow: Flow, pattern: Pattern | None, implicit: bool) -> None:
        self.flow, self.pattern, self.implicit = flow, pattern, implicit
        self._searched_pattern = False  # whether a pattern was searched for

    @property
    def _step_rules(self) -> CustomRules:
        """Rules of the operation that returns the steps. Storing them in ``self`` would make a reference cycle."""
        return CustomRules(
            "integrate.solve_ivp", lambda *leaves: list(leaves[1:3]), self._fwd, self._bwd, self._jvp_rule
        )

    def _system_rules(self, transposed: bool) -> CustomRules:
        """Return the rules of the operation that solves a linear system."""
        return CustomRules(
            "integrate.solve_ivp",
            lambda *leaves: example_by_example(partial(self._solve_plain, transposed), leaves),
            partial(self._solve_fwd, transposed),
            partial(self._solve_bwd, transposed),
            partial(self._solve_jvp, transposed),
        )

    def __call__(self, first: Any, S: Any, X: Any, mesh: Sequence[Any], values: Sequence[Any]) -> tuple[Any, Any]:
        """Return ``S`` and ``X`` as functions of the first state and of ``values``.

        Args:
            first: the first state, ``(r, n)``.
            S: the states, constants.
            X: the slopes, constants.
            mesh: ``T, U, V, P, Q``.
            values: the values that the right-hand side depends on.
        """
        S, X = custom_call(first, S, X, *mesh, *values, rules=self._step_rules)
        return S, X

    def _fwd(self, *leaves: Any) -> tuple[list[Any], Any]:
        outs = list(custom_call(*leaves, rules=self._step_rules))
        return outs, (outs, leaves[3:])

    def _bwd(self, residuals: Any, cts: list[Any]) -> list[Any]:
        (S, X), rest = residuals
        mesh, values = rest[:5], rest[5:]
        Y = _stages(S, X, mesh)
        if any(isinstance(x, Tracer) for x in (*cts, Y, *rest)):
            slopes, states = self._solve_system(True, cts[1], cts[0], Y, rest)
            first, found = states[0], value_cotangents(self.flow, mesh[0], Y, tuple(values), slopes)
        else:
            with outside_transforms():
                first, found = backward_cotangents(self._plain_steps(Y, rest), cts[1], cts[0])
        return [first, *[None] * 7, *found]

    def _jvp_rule(self, leaves: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        outs = list(custom_call(*leaves, rules=self._step_rules))
        (S, X), rest = outs, leaves[3:]
        mesh, values = rest[:5], rest[5:]
        Y = _stages(S, X, mesh)
        moved: Any = fnp.zeros_like(X)
        if values:
            moved = jvp(lambda *some: self.flow.slopes(mesh[0], Y, *some), tuple(values), tuple(tangents[8:]))[1]
        first = fnp.concatenate([tangents[0][None], fnp.zeros_like(S[1:])])
        slopes, states = self._solve_system(False, moved, first, Y, rest)
        return outs, [states, slopes]

    # Linear systems. Their leaves are two right-hand sides, the arguments of stages, T, U, V, P, Q, and the values.

    def _solve_system(self, transposed: bool, b: Any, c: Any, Y: Any, rest: Sequence[Any]) -> tuple[Any, Any]:
        x, z = custom_call(b, c, Y, *rest, rules=self._system_rules(transposed))
        return x, z

    def _solve_plain(self, transposed: bool, b: Any, c: Any, Y: Any, *rest: Any) -> list[Any]:
        for x in (b, c, Y, *rest):
            if isinstance(x, Tracer):
                np.asarray(x)  # raises for a batch, whose examples are then taken one by one
        with outside_transforms():
            return list((backward if transposed else forward)(self._plain_steps(Y, rest), b, c))

    def _plain_steps(self, Y: Any, rest: Sequence[Any]) -> Steps:
        """Return the steps in plain numbers."""
        T, U, V, P, Q, *values = rest
        implicit = self.implicit and any(V[:, i, i:].any() for i in range(V.shape[1]))
        pattern = self._pattern(T, Y, values) if implicit and Y.shape[-1] > SHORT and Y.size else None
        return Steps(self.flow, pattern, implicit, Y, T, U, V, P, Q, tuple(values))

    def _pattern(self, T: Any, Y: Any, values: Sequence[Any]) -> Pattern | None:
        """Return the sparsity pattern of the Jacobian of a long state; search for it once."""
        if self.pattern is None and not self._searched_pattern:
            self._searched_pattern = True
            self.pattern = find_pattern(lambda y: self.flow(float(T[0, 0]), y, *values), Y[0, 0])
        return self.pattern

    def _solve_fwd(self, transposed: bool, *leaves: Any) -> tuple[list[Any], Any]:
        outs = list(custom_call(*leaves, rules=self._system_rules(transposed)))
        return outs, (outs, leaves[2:])

    def _jacobian_product(self, transposed: bool, x: Any, z: Any, rest: Sequence[Any]) -> Any:
        """Return the product with the Jacobians in the system as a function of ``Y`` and the values."""
        T = rest[0]
        if transposed:
            return lambda Y, *some: vjp(lambda Y: self.flow.slopes(T, Y, *some), Y)[1](x)[0]
        along = _stages(z, x, rest[:5])
        return lambda Y, *some: jvp(lambda Y: self.flow.slopes(T, Y, *some), (Y,), (along,))[1]

    def _solve_bwd(self, transposed: bool, residuals: Any, cts: list[Any]) -> list[Any]:
        (x, z), (Y, *rest) = residuals
        values = rest[5:]
        found = self._solve_system(not transposed, cts[0], cts[1], Y, rest)
        ct = _stages(found[1], found[0], rest[:5]) if transposed else found[0]
        value_cts = vjp(self._jacobian_product(transposed, x, z, rest), Y, *values)[1](ct)
        return [*found, value_cts[0], *[None] * 5, *value_cts[1:]]

    def _solve_jvp(self, transposed: bool, leaves: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
        outs = list(custom_call(*leaves, rules=self._system_rules(transposed)))
        Y, *rest = leaves[2:]
        values = rest[5:]
        moving = (tangents[2], *tangents[8:])
        moved = jvp(self._jacobian_product(transposed, outs[0], outs[1], rest), (Y, *values), moving)[1]
        b, c = tangents[:2]
        if transposed:
            _, U, V, _, _ = rest[:5]
            b = b + fnp.einsum("nij,nik->njk", V, moved)
            more = fnp.einsum("nir,nik->nrk", U, moved)
            c = c + fnp.concatenate([more, fnp.zeros_like(c[:1])])
        else:
            b = b + moved
        return outs, list(self._solve_system(transposed, b, c, Y, rest))


def _stages(S: Any, X: Any, mesh: Sequence[Any]) -> Any:
    """Return the arguments of the stages, ``U S + V X``."""
    _, U, V, _, _ = mesh
    return fnp.matmul(U, S[:-1]) + fnp.matmul(V, X)
