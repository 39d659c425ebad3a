"""For extenders: new operations, defined in one statement, with every mode of differentiation derived.

| definer | for | declared |
| --- | --- | --- |
| ``elementwise`` | what acts element by element | a partial derivative per argument |
| ``linear`` | what is linear in its first argument | its transpose |
| ``multilinear`` | what is linear in each argument | a transpose per argument |
| ``jointly_linear`` | what is linear in all arguments together | one transpose |
| ``nondifferentiable`` | what has a zero derivative | nothing |
| ``primitive`` | everything else | a pullback per argument, a tangent rule per argument, or both |
| ``defvjp`` | the same, in the manner of HIPS autograd | a pullback maker per argument |

Rules say by the names of their arguments what they need: ``x``, ``y`` and ``z`` are the arguments, ``ans`` is the
result. They are made of ``funcgrad.numpy`` and operators, so they can be differentiated and vectorised again.

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
    "Batching",
    "Operation",
    "defvjp",
    "elementwise",
    "jointly_linear",
    "linear",
    "multilinear",
    "nondifferentiable",
    "numpy_only",
    "primitive",
    "source",
]


def numpy_only(fun: Callable[..., Any]) -> Callable[..., Any]:
    """``fun``, a routine for NumPy arrays, as the ``impl`` of an operation.

    For an array of another library the operation raises an error instead of converting it silently.

    Args:
        fun: ``fun(*arrays, **params)``, of SciPy, Numba, or written in C.

    Example:
        >>> import math
        >>> import numpy as np
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
    """An operation from a function of NumPy arrays and a pullback maker per argument, as HIPS autograd has them.

    Unlike there, it returns the operation; ``fun`` does not change.

    Args:
        fun: ``fun(*arrays, **params)``, for NumPy arrays only.
        makers: for each argument ``maker(ans, *arrays, **params)``, which returns the function from the
            cotangent of the result to the cotangent of that argument; None where there is no derivative.
            Forward mode is their transpose.
        name: the operation's name in messages and graphs; None for the function's own.
        batch: how it takes a batch axis: "loop" calls it for one example after the other; "elementwise" and
            "leading" are for functions that take whole batches.

    Raises:
        InputError: no maker, or one that is no function.

    Example:
        >>> import numpy as np
        >>> from funcgrad import grad, jvp
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
    """The code that runs for an operation: its function, and the rules of its records.

    A template makes the functions of an operation. This is their text, as tracebacks and debuggers show it; a comment
    in front of each function explains its names.

    Args:
        operation: a function of ``funcgrad.numpy`` that is one operation, or an operation defined with this module.

    Raises:
        InputError: not an operation: a function that is made of operations has ordinary source code.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> print(source(fnp.negative).partition("# ---- ")[2])
        pull
        def negative(ct, record):
            _, _, parent_0 = record
            return (parent_0, -ct),
    """
    inner = getattr(operation, "compute", operation)  # a function of NumPy's name has options in front
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
