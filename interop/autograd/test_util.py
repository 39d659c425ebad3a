"""HIPS autograd's ``test_util``: derivatives compared with numerical ones by ``funcgrad.check_grads``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import funcgrad as fg
from funcgrad.errors import GradientCheckError
from funcgrad.interop.autograd.spaces import vspace
from funcgrad.interop.autograd.wrap_util import unary_to_nary

__all__ = ["check_equivalent", "check_grads", "check_jvp", "check_vjp", "combo_check", "scalar_close"]

TOL = RTOL = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """Return whether two numbers agree to 1e-6, absolutely or relatively."""
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL)


def check_equivalent(x: Any, y: Any) -> None:
    """Check that two values belong to the same vector space and agree in a random direction.

    Raises:
        GradientCheckError: the values differ (an ``AssertionError``).
    """
    space, other = vspace(x), vspace(y)
    if space != other:
        raise GradientCheckError(
            f"check_equivalent: the values are of different spaces, got {space} and {other}. Compare like with like."
        )
    direction = space.randn()
    one, two = space.inner_prod(x, direction), space.inner_prod(y, direction)
    if not scalar_close(one, two):
        raise GradientCheckError(
            f"check_equivalent: the values differ, got {one} and {two} in a random direction. Look at {x} and {y}."
        )


@unary_to_nary
def check_grads(f: Callable[[Any], Any], x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2) -> None:
    """Check derivatives: ``check_grads(f, argnum=0, modes=("fwd", "rev"), order=2)(*args)`` checks them at ``args``.

    Raises:
        GradientCheckError: a derivative is wrong (an ``AssertionError``).

    Example:
        >>> check_grads(lambda x, y: x * y, (0, 1))(2.0, 3.0)
    """
    fg.check_grads(f, (x,), order, modes)


def check_vjp(f: Callable[[Any], Any], x: Any) -> None:
    """Check the VJP of a function of one argument; raise an ``AssertionError`` if it is wrong."""
    fg.check_grads(f, (x,), 1, ("rev",))


def check_jvp(f: Callable[[Any], Any], x: Any) -> None:
    """Check the JVP of a function of one argument; raise an ``AssertionError`` if it is wrong."""
    fg.check_grads(f, (x,), 1, ("fwd",))


def combo_check(fun: Callable[..., Any], *options: Any, **more: Any) -> Callable[..., None]:
    """Check all combinations of values: ``combo_check(f, argnums, ...)(args0, args1, ..., key=values)``.

    Args:
        fun: the function.
        options: positional options of ``check_grads``.
        more: keyword options of ``check_grads``.

    Example:
        >>> combo_check(np.sum, (0,), order=1)([np.ones(2), np.ones((2, 3))], axis=[None, 0])
    """
    check = check_grads(fun, *options, **more)

    def run(*args: Sequence[Any], **kwargs: Sequence[Any]) -> None:
        for chosen in product(*args):
            for values in product(*kwargs.values()):
                check(*chosen, **dict(zip(kwargs, values, strict=True)))

    return run
