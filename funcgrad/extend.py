"""New operations: one statement defines an operation, and every mode of differentiation follows from it.

| definer | operations | declared |
| --- | --- | --- |
| ``elementwise`` | element by element | a partial derivative per argument |
| ``linear`` | linear in the first argument | the transpose |
| ``multilinear`` | linear in each argument | a transpose per argument |
| ``jointly_linear`` | linear in all arguments together | one transpose |
| ``nondifferentiable`` | with a zero derivative | nothing |
| ``primitive`` | all others | a VJP rule per argument, a JVP rule per argument, or both |
| ``defvjp`` | all others, in the manner of HIPS autograd | a maker of a pullback per argument |

The names of a rule's arguments tell which values the rule needs: ``x``, ``y`` and ``z`` are the arguments, ``ans`` is
the result. Rules consist of ``funcgrad.numpy`` and operators, so they can be differentiated and vectorised again.

Example:
    >>> import math
    >>> import numpy as np
    >>> from funcgrad import grad, vmap
    >>> from funcgrad.extend import elementwise, numpy_only
    >>> erf = elementwise("erf", numpy_only(np.vectorize(math.erf)), dx=lambda x: 2 / math.pi**0.5 * np.exp(-x * x))
    >>> grad(erf)(0.0).round(6), grad(grad(erf))(0.5).round(6)
    (np.float64(1.128379), np.float64(-0.878783))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from funcgrad.core import describe
from funcgrad.errors import InputError
from funcgrad.generated import own_values, source_of
from funcgrad.kinds import elementwise, jointly_linear, linear, multilinear, nondifferentiable, primitive
from funcgrad.kinds.linear import Batching
from funcgrad.kinds.rules import Operation

__all__ = [
    "Batching", "Operation", "defvjp", "elementwise", "jointly_linear", "linear", "multilinear", "nondifferentiable",
    "numpy_only", "primitive", "source",
]  # fmt: skip


def numpy_only(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``fun``, a routine for NumPy arrays, as the ``impl`` of an operation.

    The operation then raises an error for an array of another library instead of converting the array silently.

    Args:
        fun: ``fun(*arrays, **params)``, from SciPy or Numba, for example, or written in C.

    Example:
        >>> import math
        >>> import numpy as np
        >>> from funcgrad.extend import nondifferentiable, numpy_only
        >>> gcd = nondifferentiable("gcd", numpy_only(np.vectorize(math.gcd)))
        >>> gcd(np.array([12, 18]), 8)
        array([4, 2])
    """

    def impl(xp: Any, *args: Any, **params: Any) -> Any:
        return fun(*args, **params)

    impl.numpy_only = True  # type: ignore[attr-defined]
    return impl


def defvjp(
    fun: Callable[..., Any],
    *makers: Callable[..., Callable[[Any], Any]] | None,
    name: str | None = None,
    batch: Batching = "loop",
) -> Operation:
    """Define an operation by a function of NumPy arrays and a pullback maker per argument, as in HIPS autograd.

    Unlike the function of that name in autograd, it returns the operation; ``fun`` does not change.

    Args:
        fun: ``fun(*arrays, **params)``, for NumPy arrays only.
        makers: for each argument ``maker(ans, *arrays, **params)``, which returns the function from the
            cotangent of the result to the cotangent of that argument; None for an argument without a derivative.
            Forward mode transposes these functions.
        name: the operation's name in messages and graphs; None for the function's own name.
        batch: how ``fun`` takes a batch axis: "loop" calls ``fun`` for one example after another; "elementwise" and
            "leading" are for functions that take whole batches.

    Raises:
        InputError: no maker, or a maker that is not a function.

    Example:
        >>> import numpy as np
        >>> from funcgrad import grad, jvp
        >>> from funcgrad.extend import defvjp
        >>> outer = defvjp(
        ...     lambda x, y: np.outer(x, y),
        ...     lambda ans, x, y: lambda ct: ct @ y,
        ...     lambda ans, x, y: lambda ct: x @ ct,
        ...     name="outer",
        ... )
        >>> x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
        >>> grad(lambda x, y: np.sum(outer(x, y)), (0, 1))(x, y)
        (array([7., 7.]), array([3., 3.]))
        >>> jvp(lambda x: outer(x, y), (x,), (np.array([1.0, 0.0]),))[1]
        array([[3., 4.],
               [0., 0.]])
    """
    if not callable(fun):
        raise InputError(f"defvjp: the first argument must be a function, got {describe(fun)}. Pass the NumPy routine.")
    for maker in makers:
        if maker is not None and not callable(maker):
            raise InputError(
                f"defvjp: a pullback maker must be a function, got {describe(maker)}. Pass lambda ans, *args: lambda "
                "ct: ..., or None."
            )
    return primitive(
        name or str(getattr(fun, "__name__", type(fun).__name__)),
        numpy_only(fun),
        vjps=[None if maker is None else _rule(maker) for maker in makers] or None,
        batch=batch,
    )


def _rule(maker: Callable[..., Callable[[Any], Any]]) -> Callable[..., Any]:
    return lambda ct, ans, args, **params: maker(ans, *args, **params)(ct)


def source(operation: Callable[..., Any]) -> str:
    """Return the code that runs for an operation: its function, and the VJP rules of its records.

    A template makes the functions of an operation. The result is the text of these functions, as tracebacks and
    debuggers show it; comments in front of each function explain its names.

    Args:
        operation: a function of ``funcgrad.numpy`` that is one operation, or an operation defined with this module.

    Raises:
        InputError: not an operation. A function that is composed of operations has ordinary source code.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> from funcgrad.extend import source
        >>> print(source(fnp.negative).partition("# ---- ")[2])
        vjp
        def negative(ct, record):
            _, _, parent_0 = record
            return (parent_0, -ct),
    """
    inner = getattr(operation, "compute", operation)  # functions named as in NumPy handle options, then call it
    made = operation if source_of(operation) is not None else inner
    text = source_of(made)
    if text is None or source_of(inner) is None:
        raise InputError(
            f"source: an operation is needed, got {describe(operation)}. Pass a function that is one operation, "
            "funcgrad.numpy.sin say; of others inspect.getsource gives the code."
        )
    sections = [text]
    for name, value in own_values(made).items():
        part = source_of(value)
        if part is not None:
            sections.append(f"# ---- {name}\n{part}")
    return "\n\n".join(sections)
