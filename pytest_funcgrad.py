"""Pytest plugin with fixtures by which tests check the derivatives of their own functions.

Pytest finds the plugin once funcgrad is installed. The plugin imports funcgrad when a test requests a fixture.

Example:
    def test_derivatives_of_softplus(assert_agrees, check_grads):
        x = np.array([-1.0, 2.0])
        check_grads(softplus, (x,))  # against numerical derivatives
        assert_agrees(softplus, x)  # against JAX's as well
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["assert_agrees", "check_grads"]


@pytest.fixture(scope="session")
def assert_agrees() -> Callable[..., Any]:
    """``assert_agrees(fun, *args, **options)``: fail unless funcgrad, JAX and numerical derivatives agree.

    The options are those of ``funcgrad.interop.crosscheck``. A test is skipped if JAX is not installed.
    """
    from funcgrad.interop import pytest_helper

    return pytest_helper.assert_agrees


@pytest.fixture(scope="session")
def check_grads() -> Callable[..., None]:
    """``check_grads(fun, args, order=2, ...)``: fail unless the derivatives agree with numerical derivatives.

    The arguments are those of ``funcgrad.check_grads``, which needs neither JAX nor SciPy.
    """
    from funcgrad import check_grads, errors

    def check(*args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        try:
            check_grads(*args, **kwargs)
        except errors.GradientCheckError as error:  # the message says what failed; the traceback would not
            raise error.with_traceback(None) from None

    return check
