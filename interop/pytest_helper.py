"""``assert_agrees``: the cross-check as an assertion, for a program's own tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.errors import MissingExtraError
from funcgrad.interop.crosschecks.checking import crosscheck
from funcgrad.interop.crosschecks.report import CrossCheck


def assert_agrees(fun: Callable[..., Any], *args: Any, **options: Any) -> CrossCheck:
    """Fail the test unless funcgrad, JAX and numerical derivatives of ``fun`` agree at ``args``.

    The test is skipped if JAX is not installed.

    Args:
        fun: a function as ``crosscheck`` takes it; bind keyword arguments with ``functools.partial``.
        args: positional arguments of ``fun``.
        options: options of ``crosscheck``: ``order``, ``argnums``, ``also``, ``rtol``, ...

    Returns:
        The report.

    Raises:
        CrossCheckError: the derivatives disagree (an ``AssertionError``); the message is the report, which
            names the operation, its line and its stage.

    Example:
        >>> from funcgrad.interop.pytest_helper import assert_agrees
        >>> def test_softplus():
        ...     assert_agrees(lambda x: np.sum(np.logaddexp(x, 0.0)), np.array([-1.0, 2.0]))
        >>> test_softplus()
    """
    __tracebackhide__ = True
    try:
        return crosscheck(fun, **options)(*args).raise_if_failed()
    except MissingExtraError as error:
        import pytest

        pytest.skip(str(error))
