"""Own derivative rules: ``custom_vjp`` and ``custom_jvp``, also both on one function."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

from funcgrad import backend, tree
from funcgrad.core import Tracer, describe
from funcgrad.errors import InputError, ShapeError
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.transforms.transformed import check_callable, name_of
from funcgrad.typing import PyTree

__all__ = ["CustomDerivative", "custom_jvp", "custom_vjp"]

P = ParamSpec("P")
R = TypeVar("R")


class CustomDerivative(Generic[P, R]):
    """A function with derivative rules of its own. Made by ``custom_vjp`` or ``custom_jvp``.

    Give it a pullback (``defvjp``), a tangent rule (``defjvp``, ``defjvps``), or both; a mode whose
    rule is missing uses the transpose of the other. Under ``vmap`` the rules are vectorised.

    Example:
        >>> from funcgrad import custom_vjp, grad, jvp
        >>> @custom_vjp
        ... def clamp(x):
        ...     return x if x > 0 else 0.0 * x
        >>> clamp.defvjp(lambda x: (clamp(x), x > 0), lambda positive, ct: (ct * positive,))
        >>> grad(clamp)(2.0), jvp(clamp, (2.0,), (1.0,))[1]
        (np.float64(1.0), np.float64(1.0))
    """

    def __init__(
        self, fun: Callable[P, R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
    ) -> None:
        check_callable("custom_vjp", fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self._signature = inspect.signature(fun)
        self._nondiff = _positions(self._signature, nondiff_argnums, nondiff_argnames)
        self._vjp: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        self._jvp: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the pullback.

        Args:
            fwd: ``fwd(*args) -> (result, residuals)``, on all arguments as the function takes them;
                residuals are any tree.
            bwd: ``bwd(*nondiff, residuals, ct) -> tuple`` with a cotangent per differentiable argument,
                None for zero.
        """
        self._vjp = (fwd, bwd)

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Set the tangent rule; usable as a decorator.

        Args:
            jvp: ``jvp(*nondiff, primals, tangents) -> (result, tangent)``, linear in the tangents; primals
                and tangents are tuples over the differentiable arguments.
        """
        self._jvp = jvp
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set a tangent rule per differentiable argument.

        Args:
            jvps: ``rule(t, ans, *primals)`` gives the tangent that the tangent ``t`` of this argument
                alone makes; None for zero.
        """
        if self._nondiff:
            raise InputError(
                f"defjvps: {self._name} has non-differentiable arguments, got rules per argument. Use defjvp."
            )

        def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            if len(jvps) != len(primals):
                raise InputError(
                    f"defjvps: {self._name} has {len(primals)} arguments, got {len(jvps)} rules. Give one for each, "
                    "None for zero."
                )
            ans = self(*primals)  # type: ignore[call-arg]
            parts = [rule(t, ans, *primals) for rule, t in zip(jvps, tangents, strict=True) if rule is not None]
            if not parts:
                return ans, tree.map_leaves(backend.zeros_like, ans)
            return ans, functools.reduce(lambda a, b: tree.map_leaves(operator.add, a, b), parts)

        self._jvp = jvp

    @property
    def _name(self) -> str:
        return name_of(self.fun)

    def __get__(self, obj: Any, cls: type | None = None) -> Any:
        return self if obj is None else functools.partial(self, obj)

    def __repr__(self) -> str:
        return f"<{self._name} with own derivative rules>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function; its derivatives come from the rules."""
        if self._vjp is None and self._jvp is None:
            raise InputError(
                f"{self._name}: it has no derivative rule, got a call. Define one first with defvjp, defjvp or defjvps."
            )
        call = _Call(self._name, self.fun, self._vjp, self._jvp, self._nondiff, _bound(self._signature, args, kwargs))
        outs = custom_call(*call.leaves, rules=call.rules())
        result: R = tree.unflatten(call.out_spec, outs)
        return result


def custom_vjp(
    fun: Callable[P, R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
) -> CustomDerivative[P, R]:
    """A function whose pullback you give with ``defvjp(fwd, bwd)``. Usable as a decorator.

    Args:
        fun: the function. What it closes over is a constant to its rules: pass it as an argument.
        nondiff_argnums: positions of arguments that are handed to ``bwd`` first and get no cotangent.
        nondiff_argnames: the same by name.

    Returns:
        A ``CustomDerivative``. Forward mode transposes the pullback unless ``defjvp`` gives a rule too.

    Raises:
        TypeError: not callable; at a call: no rule, or a rule that returns the wrong thing.

    Example:
        >>> from funcgrad import custom_vjp, grad
        >>> @custom_vjp
        ... def multiply(a, b):
        ...     return a * b
        >>> multiply.defvjp(lambda a, b: (a * b, (a, b)), lambda kept, ct: (ct * kept[1], ct * kept[0]))
        >>> grad(multiply, (0, 1))(3.0, 4.0)
        (np.float64(4.0), np.float64(3.0))
    """
    return CustomDerivative(fun, nondiff_argnums, nondiff_argnames)


def custom_jvp(
    fun: Callable[P, R], nondiff_argnums: Sequence[int] = (), nondiff_argnames: Sequence[str] = ()
) -> CustomDerivative[P, R]:
    """A function whose tangent rule you give with ``defjvp`` or ``defjvps``. Usable as a decorator.

    Takes the arguments of ``custom_vjp``. Reverse mode transposes the rule unless ``defvjp`` gives one.

    Raises:
        TypeError: not callable; at a call: no rule, or a rule that returns the wrong thing.

    Example:
        >>> from funcgrad import custom_jvp, grad
        >>> @custom_jvp
        ... def power(x, n):
        ...     return x**n
        >>> power.defjvps(lambda t, ans, x, n: t * n * x ** (n - 1), None)
        >>> grad(power)(3.0, 2)
        np.float64(6.0)
    """
    return CustomDerivative(fun, nondiff_argnums, nondiff_argnames)


def _positions(signature: inspect.Signature, argnums: Sequence[int], argnames: Sequence[str]) -> tuple[int, ...]:
    """The positions of the non-differentiable arguments."""
    names = list(signature.parameters)
    missing = [name for name in argnames if name not in names]
    if missing:
        raise InputError(f"custom_vjp: nondiff_argnames must name arguments, got {missing}. They are {names}.")
    numbers = [argnums] if isinstance(argnums, int) else argnums
    found = {operator.index(i) % len(names) if names else i for i in numbers} | {names.index(n) for n in argnames}
    return tuple(sorted(found))


def _bound(signature: inspect.Signature, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """All arguments by position, defaults filled in."""
    if not kwargs and all(p.default is p.empty for p in signature.parameters.values()):
        return tuple(args)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        raise InputError(
            f"custom_vjp: keyword-only arguments have no place in the rules, got {sorted(bound.kwargs)}. "
            "Make them positional, and name them in nondiff_argnames if they are static."
        )
    return bound.args


class _Call:
    """One call: its array leaves, and the rules on flat lists of leaves."""

    def __init__(
        self, name: str, fun: Any, vjp: Any, jvp: Any, nondiff: tuple[int, ...], args: tuple[Any, ...]
    ) -> None:
        self.name, self.fun, self.vjp, self.jvp = name, fun, vjp, jvp
        self.args = args
        self.nondiff = tuple(i for i in nondiff if i < len(args))
        self.diff = tuple(i for i in range(len(args)) if i not in self.nondiff)
        self.static = tuple(args[i] for i in self.nondiff)
        if any(isinstance(leaf, Tracer) for leaf in tree.leaves(self.static)):
            raise InputError(
                f"{name}: a non-differentiable argument is being transformed, got a tracer. Take it out of "
                "nondiff_argnums and return None for its cotangent."
            )
        self.flat, self.spec = tree.flatten(tuple(args[i] for i in self.diff))
        self.arrays = [isinstance(leaf, Tracer) or backend.is_value(leaf) for leaf in self.flat]
        self.leaves = [leaf for leaf, flag in zip(self.flat, self.arrays, strict=True) if flag]
        self.out_spec: Any = None

    def rules(self) -> CustomRules:
        """The rules in the flat form that the primitive takes."""
        return CustomRules(
            self.name,
            self.run,
            None if self.vjp is None else self.fwd,
            None if self.vjp is None else self.bwd,
            None if self.jvp is None else self.push,
        )

    def filled(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The differentiable arguments with these array leaves."""
        rest = iter(leaves)
        flat = [next(rest) if flag else leaf for leaf, flag in zip(self.flat, self.arrays, strict=True)]
        args: tuple[Any, ...] = tree.unflatten(self.spec, flat)
        return args

    def whole(self, leaves: Sequence[Any]) -> list[Any]:
        """All arguments, in the function's order."""
        args = list(self.args)
        for i, arg in zip(self.diff, self.filled(leaves), strict=True):
            args[i] = arg
        return args

    def results(self, out: PyTree) -> list[Any]:
        """The leaves of a result, whose structure is remembered."""
        flat, self.out_spec = tree.flatten(out)
        return flat

    def run(self, *leaves: Any) -> list[Any]:
        return self.results(self.fun(*self.whole(leaves)))

    def fwd(self, *leaves: Any) -> tuple[list[Any], Any]:
        pair = self.vjp[0](*self.whole(leaves))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError(
                f"{self.name}: the fwd rule must return a pair (result, residuals), got {describe(pair)}. "
                "Return two things."
            )
        return self.results(pair[0]), pair[1]

    def bwd(self, residuals: Any, cts: list[Any]) -> list[Any]:
        pulled = self.vjp[1](*self.static, residuals, tree.unflatten(self.out_spec, cts))
        if not isinstance(pulled, (tuple, list)) or len(pulled) != len(self.diff):
            raise InputError(
                f"{self.name}: the bwd rule must return a tuple with {len(self.diff)} cotangents, one for each "
                f"differentiable argument, got {describe(pulled)}. Use None for zero."
            )
        found: list[Any] = []
        for position, arg, ct in zip(self.diff, self.filled(self.leaves), pulled, strict=True):
            found.extend(self.checked("bwd", f"argument {position}", arg, ct))
        return [ct for ct, flag in zip(found, self.arrays, strict=True) if flag]

    def push(self, leaves: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        pair = self.jvp(*self.static, self.filled(leaves), self.filled(tangents))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError(
                f"{self.name}: the jvp rule must return a pair (result, tangent), got {describe(pair)}. "
                "Return two things."
            )
        outs = self.results(pair[0])
        return outs, self.checked("jvp", "the result", pair[0], pair[1])

    def checked(self, rule: str, where: str, like: PyTree, given: PyTree) -> list[Any]:
        """The leaves that a rule gave for ``like``, None for zero."""
        paths, likes, spec = tree.flatten_with_path(like)
        if given is None:
            return [None] * len(likes)
        try:
            flat: list[Any] = spec.flatten_up_to(given)  # None may stand for any leaf
        except ValueError:
            raise InputError(
                f"{self.name}: the {rule} rule gave another structure for {where}, got {tree.structure(given)}, "
                f"expected {spec}. Return the same containers, or None for zero."
            ) from None
        for path, want, have in zip(paths, likes, flat, strict=True):
            if have is None or not (isinstance(want, Tracer) or backend.is_value(want)) or not backend.is_inexact(want):
                continue
            if not (isinstance(have, Tracer) or backend.is_value(have)):
                raise InputError(
                    f"{self.name}: the {rule} rule gave no array for {where}{path}, got {describe(have)}. Return an "
                    "array, or None for zero."
                )
            if backend.shape_of(have) != backend.shape_of(want):
                raise ShapeError(
                    f"{self.name}: the {rule} rule gave the wrong shape for {where}{path}, got "
                    f"{list(backend.shape_of(have))}, expected {list(backend.shape_of(want))}. "
                    "Sum over what was broadcast."
                )
            if backend.dtype_of(have) != backend.dtype_of(want) and type(have) not in (int, float, complex):
                raise InputError(
                    f"{self.name}: the {rule} rule gave the wrong dtype for {where}{path}, got "
                    f"{backend.dtype_of(have)}, expected {backend.dtype_of(want)}. Convert it with astype."
                )
        return flat
