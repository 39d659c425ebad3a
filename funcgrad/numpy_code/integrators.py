"""The compiled integrators of ``scipy.integrate.ode``, by the solvers of ``funcgrad.scipy.integrate``."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import funcgrad.numpy as fnp
from funcgrad.errors import InputError
from funcgrad.numpy.hints import user_line

__all__ = ["INTEGRATORS"]

#: Index, in the call arguments of VODE and LSODA, of the task number, and the task of reaching a given time.
_TASK, _WHOLE_WAY = 2, 1


def _check(integrator: Any) -> None:
    """Check that the solution at a time is requested, not single steps: funcgrad's steps differ from SciPy's.

    Raises:
        InputError: a single step, or a callback for each step, is requested.
    """
    stepping = integrator.supports_step and integrator.call_args[_TASK] != _WHOLE_WAY
    if stepping or getattr(integrator, "solout", None) is not None:
        raise InputError(
            "integrate.ode: traced values go to the times that are asked for, got step=True, relax=True or "
            f"set_solout{user_line()}. Leave it out, or use scipy.integrate.solve_ivp with dense_output=True."
        )


def _multistep(integrator: Any, f: Any, jac: Any, y0: Any, t0: Any, t1: Any, f_params: Any, jac_params: Any) -> Any:
    """Compute ``run`` of VODE, ZVODE and LSODA."""
    _check(integrator)
    integrate = import_module("funcgrad.scipy.integrate")
    times, options = fnp.stack([t0, t1]), {"rtol": integrator.rtol, "atol": integrator.atol}
    return integrate.odeint(_plain(f), y0, times, args=tuple(f_params), tfirst=True, **options)[-1], t1


def _onestep(integrator: Any, f: Any, jac: Any, y0: Any, t0: Any, t1: Any, f_params: Any, jac_params: Any) -> Any:
    """Compute ``run`` of the methods of Dormand and Prince."""
    _check(integrator)
    integrate = import_module("funcgrad.scipy.integrate")
    method = "DOP853" if integrator.name == "dop853" else "RK45"
    options = {"method": method, "rtol": integrator.rtol, "atol": integrator.atol}
    return integrate.solve_ivp(_plain(f), (t0, t1), y0, args=tuple(f_params), **options).y[:, -1], t1


def _plain(f: Any) -> Any:
    """Return the right-hand side with array results: these integrators accept a number for an array of one element."""
    return lambda t, y, *args: fnp.atleast_1d(fnp.asarray(f(t, y, *args)))


INTEGRATORS: dict[tuple[str, str], Any] = {
    ("scipy.integrate._ode", "vode.run"): _multistep,
    ("scipy.integrate._ode", "lsoda.run"): _multistep,
    ("scipy.integrate._ode", "dopri5.run"): _onestep,
}
