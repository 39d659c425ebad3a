"""``from_jax``: functions written for JAX, in funcgrad."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer
from funcgrad.interop.jax.conversion import Frame, on_host, take_apart
from funcgrad.interop.jax.programs import Call, Program
from funcgrad.optional import import_jax
from funcgrad.transforms.arguments import filled
from funcgrad.transforms.transformed import Transformed, check_callable, name_of

__all__ = ["from_jax"]

P = ParamSpec("P")


def from_jax(fun: Callable[P, Any]) -> Callable[P, Any]:
    """A function written for JAX as a function of NumPy values that funcgrad can transform.

    JAX computes and differentiates it, by JAX's rules or the function's own: funcgrad's ``grad``, ``jvp``, ``vmap`` and
    the other transforms call ``jax.vjp``, ``jax.jvp`` and ``jax.vmap``, in any order and to any depth.

    Args:
        fun: a function of JAX arrays in any containers that funcgrad or JAX knows. It may be compiled, have
            rules of its own, close over arrays; it need not be one that can be compiled. Python's
            numbers, and everything that is no array, reach it as they are.

    Returns:
        A function of the same arguments. It runs in double precision, and what it returns are NumPy
        arrays, read-only; on floating JAX arrays it is ``fun`` itself, with JAX arrays as its result.

    Raises:
        MissingExtraError: JAX is not installed (an ``ImportError``).

    Example:
        >>> import jax
        >>> import numpy as np
        >>> from funcgrad import grad
        >>> from funcgrad.interop import from_jax
        >>> softplus = from_jax(jax.nn.softplus)
        >>> softplus(np.zeros(2)).round(3)
        array([0.693, 0.693])
        >>> grad(grad(softplus))(0.0)
        np.float64(0.25)
    """
    check_callable("from_jax", fun)
    return Transformed(run_from_jax, fun, None, "{fun}, a function of JAX, on NumPy values.")


def run_from_jax(fun: Callable[..., Any], options: None, args: Any, kwargs: Any) -> Any:
    """What a ``from_jax`` does when it is called."""
    jax = import_jax("from_jax")
    leaves, frame = take_apart(jax, (args, kwargs))
    moving = [isinstance(x, (Tracer, np.ndarray, np.generic, jax.Array)) for x in leaves]
    given = [x for x, m in zip(leaves, moving, strict=True) if m]
    program = Program(jax, name_of(fun), _flat(jax, fun, frame, leaves, moving), compiled=False)
    call = Call(program, on_host([x for x in leaves if backend.is_value(x) or isinstance(x, Tracer)]))
    outs = call(*given)
    return call.told(*outs)


class _Result:
    """The containers of a result, and what in them is no array."""

    def __init__(self, structure: Any, others: list[Any], moving: list[bool]) -> None:
        self.structure, self.others, self.moving = structure, others, moving

    def __call__(self, *arrays: Any) -> Any:
        return self.structure.unflatten(filled(self.others, self.moving, arrays))


def _flat(
    jax: Any, fun: Callable[..., Any], frame: Frame, leaves: Sequence[Any], moving: list[bool]
) -> Callable[..., Any]:
    """``fun`` as a function of those leaves that are arrays."""
    still = [None if m else x for x, m in zip(leaves, moving, strict=True)]  # holds no array longer than the call

    def flat(*arrays: Any) -> Any:
        args, kwargs = frame(*filled(still, moving, arrays))
        found, structure = jax.tree_util.tree_flatten(fun(*args, **kwargs))
        arrays_only = [isinstance(x, jax.Array) or backend.is_value(x) for x in found]
        others = [None if a else x for x, a in zip(found, arrays_only, strict=True)]
        results = [jax.numpy.asarray(x) for x, a in zip(found, arrays_only, strict=True) if a]
        return jax.tree_util.Partial(_Result(structure, others, arrays_only), *results)

    return flat
