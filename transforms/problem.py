"""What is checked: a function, cut down to the leaves that can be differentiated, in float64."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import Tracer
from funcgrad.errors import InputError
from funcgrad.transforms.arguments import check_argnums, positions, split_aux
from funcgrad.transforms.transformed import name_of

__all__ = ["Leaves", "Problem", "random_like"]

Leaves: TypeAlias = list[Any]


class Problem:
    """A call ``fun(*args, **kwargs)`` as a function of the floating leaves among its arguments.

    Args:
        fun: the function.
        args: its positional arguments; JAX arrays among them are taken as NumPy ones.
        kwargs: its keyword arguments, not differentiated.
        argnums: the positions to differentiate, None for all.
        has_aux: whether ``fun`` returns a pair ``(result, aux)``; aux is left out.
        call: the public call, for messages.

    Attributes:
        point: the leaves, in double precision.
        paths: what each is called.
        result_paths: the same for the floating leaves of the result.
        value: those leaves of the result, as plain NumPy computes them.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        args: Any,
        kwargs: Any,
        argnums: Any = None,
        *,
        has_aux: bool = False,
        call: str = "crosscheck",
    ) -> None:
        self.fun = fun
        self.has_aux = has_aux
        self.args = [tree.map(_to_numpy, arg) for arg in args]
        self.kwargs = tree.map(_to_numpy, kwargs)
        self.chosen = _chosen(argnums, args)
        names = _argument_names(fun, len(args))
        self.leaves, self.spec = tree.flatten(tuple(self.args[i] for i in self.chosen))
        paths = [names[i] + path for i in self.chosen for path in tree.flatten_with_path(self.args[i])[0]]
        self.live = [backend.is_value(leaf) and backend.is_inexact(leaf) for leaf in self.leaves]
        self.point = [_double(leaf) for leaf, live in zip(self.leaves, self.live, strict=True) if live]
        self.paths = [path for path, live in zip(paths, self.live, strict=True) if live]
        if not self.point:
            raise InputError(
                f"{call}: there is nothing to differentiate in the arguments of {name_of(fun)}, got no "
                "floating array or number among them. Pass one, or choose others with argnums."
            )
        out = self._call(self.point)
        self.result_paths = [
            f"result{path}" for path, leaf in zip(*tree.flatten_with_path(out)[:2], strict=True) if _floating(leaf)
        ]
        self.value = [leaf for leaf in tree.leaves(out) if _floating(leaf)]
        if not self.value:
            raise InputError(
                f"{call}: {name_of(fun)} returns nothing that can be differentiated, got "
                f"{tree.structure(out)}. Return a floating array or number."
            )

    def __call__(self, *leaves: Any) -> Leaves:
        """The floating leaves of the result for other values of the leaves."""
        return [leaf for leaf in tree.leaves(self._call(leaves)) if _floating(leaf)]

    def _call(self, leaves: Sequence[Any]) -> Any:
        given = iter(leaves)
        filled = [next(given) if live else old for old, live in zip(self.leaves, self.live, strict=True)]
        args = list(self.args)
        for i, arg in zip(self.chosen, tree.unflatten(self.spec, filled), strict=True):
            args[i] = arg
        out = self.fun(*args, **self.kwargs)
        return split_aux("crosscheck", out)[0] if self.has_aux else out

    @property
    def real(self) -> bool:
        """Whether no number is complex."""
        return not any(np.iscomplexobj(x) for x in (*self.point, *self.value))

    @property
    def scalar(self) -> bool:
        """Whether the result is one real number, so that the function has a gradient."""
        return len(self.value) == 1 and np.shape(self.value[0]) == () and not np.iscomplexobj(self.value[0])


def random_like(rng: np.random.Generator, x: Any) -> Any:
    """Random numbers of the shape of ``x`` and of its scale, none of them small."""
    shape = np.shape(x)
    scale = float(np.sqrt(np.mean(np.abs(x) ** 2))) if np.size(x) else 1.0
    size = rng.uniform(0.5, 1.0, shape) * (scale if np.isfinite(scale) and scale else 1.0)
    if np.iscomplexobj(x):
        return size * np.exp(2j * np.pi * rng.uniform(size=shape))
    return size * rng.choice([-1.0, 1.0], shape)


def _to_numpy(leaf: Any) -> Any:
    return leaf if backend.namespace_of(leaf) in (None, np) else np.asarray(leaf)


def _double(leaf: Any) -> Any:
    if type(leaf) in (float, complex):
        return leaf
    found = np.array(leaf, np.complex128 if backend.dtype_of(leaf).kind == "c" else np.float64)
    return found if found.shape else found[()]


def _floating(leaf: Any) -> bool:
    return (isinstance(leaf, Tracer) or backend.is_value(leaf)) and backend.is_inexact(leaf)


def _chosen(argnums: Any, args: Sequence[Any]) -> tuple[int, ...]:
    if argnums is None:
        return tuple(range(len(args)))
    return positions("crosscheck", check_argnums("crosscheck", argnums), args)


def _argument_names(fun: Callable[..., Any], count: int) -> list[str]:
    """What the function calls its positional arguments."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:count]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    return names + [f"{rest}[{i}]" for i in range(count - len(names))]
