"""Custom derivative rules: ``custom_vjp`` and ``custom_jvp``, also both on one function.

A call takes trees and any other values; its rules work on flat lists of arrays.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar

from funcgrad import backend, tree
from funcgrad.core import Tracer, describe, is_array, join_repetition, plain_value
from funcgrad.errors import EscapedTracerError, InputError, NotDifferentiableError, ShapeError, text_of
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.transforms.static_arguments import parameters_of, signature_of
from funcgrad.transforms.transformed import check_callable, check_functions, name_of
from funcgrad.typing import PyTree
from funcgrad.writable import as_argument

_NUMBERS = (bool, int, float, complex)


class _Aval(NamedTuple):
    """Facts about a value, without the value itself."""

    shape: tuple[int, ...]
    dtype: Any
    weak: bool  # a Python number, which takes any precision
    inexact: bool


class _Call:
    """One call: its arguments split up, and its rules as functions of flat lists of array leaves.

    The rules live as long as the tape, so they hold shapes and dtypes of the arguments, not the arrays.

    Attributes:
        out_spec: the structure of the result, known once the function or a rule has run.
    """

    def __init__(self, function: CustomDerivative[..., Any], args: tuple[Any, ...]) -> None:
        self.name, self.fun, self.vjp, self.jvp = function._name, function.fun, function._vjp, function._jvp
        self.static = {i: args[i] for i in function._nondiff if i < len(args)}
        if self.static and Tracer in map(type, tree.leaves(self.static)):
            raise InputError(
                f"{self.name}: a non-differentiable argument is being transformed, got a tracer. Take it out of "
                "nondiff_argnums and return None for its cotangent."
            )
        self.diff = tuple(i for i in range(len(args)) if i not in self.static) if self.static else range(len(args))
        flat, self.spec = tree.flatten(tuple(args[i] for i in self.diff) if self.static else args)
        self._leaves: list[Any] | None = [leaf for leaf in flat if is_array(leaf)]
        self.avals = [_aval_of(leaf) if is_array(leaf) else None for leaf in flat]
        self.non_arrays = [None if aval is not None else leaf for leaf, aval in zip(flat, self.avals, strict=True)]
        self.out_spec: Any = None

    def leaves(self) -> list[Any]:
        """Return the array leaves of the differentiable arguments, once; the call keeps no reference to them."""
        found, self._leaves = self._leaves, None
        return found or []

    def rules(self) -> CustomRules:
        """Return the rules in the flat form that the primitive takes."""
        fwd, bwd = (None, None) if self.vjp is None else (self.fwd, self.bwd)
        return CustomRules(self.name, self.run, fwd, bwd, None if self.jvp is None else self.jvp_rule, self.fun)

    def run(self, *leaves: Any) -> list[Any]:
        given = _ReadOnlyViews(leaves)
        return self.flatten_result(given, self.call_rule("function", self.fun, *self.all_args(given.views)))

    def fwd(self, *leaves: Any) -> tuple[list[Any], Any]:
        given = _ReadOnlyViews(leaves)
        args = self.all_args(given.views)
        out, residuals = self.call_for_pair("fwd", "residuals", self.vjp[0], *args)  # type: ignore[index]
        return self.flatten_result(given, out), tree.map(as_argument, residuals)

    def bwd(self, residuals: Any, cts: list[Any]) -> list[Any]:
        ct = tree.unflatten(self.out_spec, map(as_argument, cts))
        pulled = self.call_rule("bwd rule", self.vjp[1], *self.static.values(), residuals, ct)  # type: ignore[index]
        if not isinstance(pulled, (tuple, list)) or len(pulled) != len(self.diff):
            raise InputError(
                f"{self.name}: the bwd rule must return a tuple with a cotangent for each differentiable argument, "
                f"{len(self.diff)} here, got {describe(pulled)}. Return ({', '.join(['ct'] * len(self.diff))}"
                f"{',' if len(self.diff) == 1 else ''}), with None for zero."
            )
        like = tree.unflatten(self.spec, range(len(self.avals)))
        found = [
            leaf
            for position, have, want in zip(self.diff, pulled, like, strict=True)
            for leaf in self.match_leaves("bwd", f"argument {position}", have, want, self.avals)
        ]
        return [ct for ct, like in zip(found, self.avals, strict=True) if like is not None]

    def jvp_rule(self, leaves: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        given, moving = _ReadOnlyViews(leaves), _ReadOnlyViews(tangents)
        args = (self.differentiable_args(given.views), self.differentiable_args(moving.views))
        out, tangent = self.call_for_pair("jvp", "tangent", self.jvp, *self.static.values(), *args)
        outs = self.flatten_result(given, out)
        want = tree.unflatten(self.out_spec, range(len(outs)))
        avals: list[_Aval | None] = [_aval_of(out) for out in outs]
        pushed = self.match_leaves("jvp", "the result", tangent, want, avals)
        return outs, [moving.original(t) for t in pushed]

    def call_for_pair(self, name: str, second: str, rule: Any, *args: Any) -> Any:
        """Call a rule whose result must be a pair."""
        found = self.call_rule(f"{name} rule", rule, *args)
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            raise InputError(
                f"{self.name}: the {name} rule must return a pair (result, {second}), got {describe(found)}. "
                "Return two things."
            )
        return found

    def call_rule(self, what: str, rule: Any, *args: Any) -> Any:
        """Call the function or a rule; explain an error about a read-only array or an escaped tracer."""
        try:
            return rule(*args)
        except ValueError as error:
            if "read-only" not in text_of(error):
                raise
            raise InputError(
                f"{self.name}: the {what} writes into an array that it was given, got: {error}. Copy the array "
                "first, or compute a new one."
            ) from error
        except EscapedTracerError as error:
            raise NotDifferentiableError(
                f"{self.name}: the {what} closes over, or was left as a residual, a value of a transform that has "
                f"finished, got: {error} Pass the value as an argument of the function."
            ) from error

    def differentiable_args(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Return the differentiable arguments with these array leaves."""
        rest = iter(leaves)
        flat = [next(rest) if aval else leaf for leaf, aval in zip(self.non_arrays, self.avals, strict=True)]
        args: tuple[Any, ...] = tree.unflatten(self.spec, flat)
        return args

    def all_args(self, leaves: Sequence[Any]) -> list[Any]:
        """Return all arguments, in the function's order."""
        args = list(self.differentiable_args(leaves))
        for i, arg in self.static.items():
            args.insert(i, arg)
        return args

    def flatten_result(self, given: _ReadOnlyViews, out: PyTree) -> list[Any]:
        """Return the leaves of a result, and remember its structure."""
        flat, self.out_spec = tree.flatten(out)
        for leaf in flat:
            if not is_array(leaf):
                raise InputError(
                    f"{self.name}: a function with derivative rules of its own must return arrays or numbers, got "
                    f"{describe(leaf)}. Leave it out, or keep it as a residual."
                )
        return [given.original(leaf) for leaf in flat]

    def match_leaves(
        self, rule: str, where: str, given: PyTree, places: PyTree, avals: Sequence[_Aval | None]
    ) -> list[Any]:
        """Split the (co)tangent that a rule returned into leaves, None for zero.

        Args:
            rule: which rule, for messages.
            where: what the (co)tangent belongs to, for messages.
            given: the tree that the rule returned; None may replace any part of it.
            places: a tree like the value that the (co)tangent belongs to, with a number for each leaf.
            avals: for each of these numbers, the facts known about the leaf of the value.
        """
        if given is None:
            return [None] * len(tree.leaves(places))
        found: list[Any] = []
        try:
            parts = tree.prefix_parts(given, places)
        except ValueError:
            parts = [(given, places)]
        for have, part in parts:
            if have is None:
                found += [None] * len(tree.leaves(part))
            elif type(part) is not int:
                raise InputError(
                    f"{self.name}: the {rule} rule gave another structure for {where}, got "
                    f"{tree.drawn(tree.structure(given))}, expected {tree.drawn(tree.structure(places))}. Return the "
                    "same containers, or None for zero."
                )
            else:
                found.append(self.check_leaf(rule, where, have, avals[part]))
        return found

    def check_leaf(self, rule: str, where: str, have: Any, aval: _Aval | None) -> Any:
        """Check a (co)tangent of one leaf, and return it in the shape and dtype that it must have."""
        if aval is not None and not aval.inexact and getattr(have, "dtype", None) == backend.FLOAT0:
            return None  # JAX's zero of an integer
        if aval is None or not is_array(have):
            gave, remedy = "no array for", "an array, or None for zero"
            if aval is None:
                gave, remedy = "something for what is no array in", "None"
            raise InputError(
                f"{self.name}: the {rule} rule gave {gave} {where}, got {describe(have)}. Return {remedy}."
            )
        if isinstance(have, Tracer) and not have._trace.open and not join_repetition(have._trace.level):
            raise NotDifferentiableError(
                f"{self.name}: the {rule} rule gave a value of a transform that has finished for {where}, got "
                f"{describe(have)}. Pass what the rule closes over as an argument of the function."
            )
        if not aval.inexact:
            return None  # the derivative of an integer is zero, whatever the rule says
        if backend.shape_of(have) != aval.shape:
            raise ShapeError(
                f"{self.name}: the {rule} rule gave the wrong shape for {where}, got {backend.shape_of(have)}, "
                f"expected {aval.shape}. Sum over what was broadcast."
            )
        dtype = backend.dtype_of(have)
        if dtype == aval.dtype or (aval.weak and dtype.kind == aval.dtype.kind):
            return have
        if type(have) in _NUMBERS and (dtype.kind != "c" or aval.dtype.kind == "c"):
            return aval.dtype.type(have)
        raise InputError(
            f"{self.name}: the {rule} rule gave the wrong dtype for {where}, got {dtype}, expected {aval.dtype}. "
            f"Convert it with .astype({str(aval.dtype)!r})."
        )


class _ReadOnlyViews:
    """Arrays as the function and the rules see them: read-only views, with a way back to the original arrays."""

    __slots__ = ("_originals", "views")

    def __init__(self, leaves: Sequence[Any]) -> None:
        self.views = [as_argument(leaf) for leaf in leaves]
        pairs = zip(self.views, leaves, strict=True)
        self._originals = {id(view): leaf for view, leaf in pairs if view is not leaf}

    def original(self, x: Any) -> Any:
        """Return the array of which ``x`` is the view, or else ``x``."""
        return self._originals.get(id(x), x)


def _aval_of(x: Any) -> _Aval:
    shape, dtype, inexact = backend.shape_of(x), backend.dtype_of(x), backend.is_inexact(x)
    return _Aval(shape, dtype, type(plain_value(x)) in _NUMBERS, inexact)


P = ParamSpec("P")
R = TypeVar("R")


class CustomDerivative(Generic[P, R]):
    """Function with custom derivative rules. ``custom_vjp`` or ``custom_jvp`` makes it.

    Give it a VJP rule (``defvjp``), a JVP rule (``defjvp``, ``defjvps``), or both; a mode whose
    rule is missing uses the transpose of the other rule, which must be linear in its (co)tangents. Under
    ``vmap`` the rules are vectorised. JAX's transforms follow the rules too.

    The function and the rules see read-only views of NumPy arrays: writing into a view raises. Values that
    are being transformed must come in as arguments, unless the transform is an outer one or ``vmap``: a
    derivative that enters by a closure is refused.

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
        self,
        fun: Callable[P, R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
        *,
        call: str = "custom_vjp",
    ) -> None:
        check_callable(call, fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self._options = (nondiff_argnums, nondiff_argnames)
        self._signature = _Signature(call, fun)
        self._nondiff = self._signature.positions(nondiff_argnums, nondiff_argnames)
        self._vjp: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        self._jvp: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Set the VJP rule.

        Args:
            fwd: ``fwd(*args) -> (result, residuals)``, on all arguments as the function takes them;
                residuals are any tree, also with leaves that are not arrays.
            bwd: ``bwd(*nondiff, residuals, ct) -> tuple`` with a cotangent per differentiable argument,
                None for zero, in place of a whole argument or any part of an argument.
        """
        check_functions("defvjp", fwd=fwd, bwd=bwd)
        self._vjp = (fwd, bwd)

    def defjvp(self, jvp: Callable[..., Any]) -> Callable[..., Any]:
        """Set the JVP rule; usable as a decorator.

        Args:
            jvp: ``jvp(*nondiff, primals, tangents) -> (result, tangent)``, linear in the tangents; primals
                and tangents are tuples over the differentiable arguments. The tangent of a leaf that is not
                floating point is a float0 zero.
        """
        check_functions("defjvp", jvp=jvp)
        self._jvp = jvp
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one JVP rule per argument.

        Args:
            jvps: ``rule(t, ans, *primals)`` returns the tangent of the result if only this argument has
                a tangent, ``t``; None for zero.
        """
        if self._nondiff:
            raise InputError(
                f"defjvps: {self._name} has non-differentiable arguments, got rules per argument. Use defjvp."
            )
        check_functions("defjvps", **{f"jvps[{i}]": rule for i, rule in enumerate(jvps) if rule is not None})
        self._jvp = _RulePerArgument(self, jvps)

    @property
    def _name(self) -> str:
        return name_of(self.fun)

    def _with_functions(self, translate: Callable[[Any], Any]) -> CustomDerivative[P, R]:
        """Return the same call with the translations of its function and its rules."""
        made: CustomDerivative[P, R] = object.__new__(CustomDerivative)  # copy.copy may return self
        made.__dict__.update(self.__dict__, fun=translate(self.fun))
        made._vjp = None if self._vjp is None else (translate(self._vjp[0]), translate(self._vjp[1]))
        rule = self._jvp
        made._jvp = rule.for_owner(made, translate) if type(rule) is _RulePerArgument else rule and translate(rule)
        return made

    def __get__(self, obj: Any, cls: type | None = None) -> Any:
        """Bind the function to an instance, as a method of a class; the instance is argument 0."""
        return self if obj is None else MethodType(self, obj)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by name if the name leads to this object, as for a decorated function; else by its parts."""
        name = getattr(self, "__qualname__", "")
        found: Any = sys.modules.get(getattr(self, "__module__", ""))
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is self:
            return str(name)
        return type(self), (self.fun, *self._options), {"_vjp": self._vjp, "_jvp": self._jvp}

    def __repr__(self) -> str:
        return f"<{self._name} with own derivative rules>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function; its derivatives come from the rules."""
        if self._vjp is None and self._jvp is None:
            raise InputError(
                f"{self._name}: the function has no derivative rule yet, got a call. Set one first with defvjp, defjvp "
                "or defjvps."
            )
        call = _Call(self, self._signature.bind_positional(args, kwargs))
        outs = custom_call(*call.leaves(), rules=call.rules())
        result: R = tree.unflatten(call.out_spec, outs)
        return result


@dataclass(eq=False)
class _RulePerArgument:
    """JVP rule made of one rule per argument."""

    owner: CustomDerivative[..., Any]
    jvps: tuple[Callable[..., Any] | None, ...]

    def __call__(self, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        if len(self.jvps) != len(primals):
            raise InputError(
                f"defjvps: {self.owner._name} has {len(primals)} arguments, got {len(self.jvps)} rules. Give one for "
                "each, None for zero."
            )
        ans = self.owner(*primals)
        parts = [
            rule(t, ans, *primals)
            for rule, t in zip(self.jvps, tangents, strict=True)
            if rule is not None and getattr(t, "dtype", None) != backend.FLOAT0
        ]
        if not parts:
            return ans, None
        return ans, functools.reduce(lambda a, b: tree.map(operator.add, a, b), parts)

    def for_owner(self, owner: CustomDerivative[..., Any], translate: Callable[[Any], Any]) -> _RulePerArgument:
        """Return the same rules for ``owner``, with the translations of their functions."""
        return _RulePerArgument(owner, tuple([rule and translate(rule) for rule in self.jvps]))


def custom_vjp(
    fun: Callable[P, R], nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
) -> CustomDerivative[P, R]:
    """Return ``fun`` with a VJP rule of your own, which ``defvjp(fwd, bwd)`` sets. Usable as a decorator.

    Args:
        fun: the function, of arrays, pytrees and anything else. Values that it closes over are constants to its rules:
            pass them as arguments.
        nondiff_argnums: positions of arguments that ``bwd`` gets first, and that have no cotangent.
        nondiff_argnames: names of such arguments.

    Returns:
        A ``CustomDerivative``. Forward mode transposes the VJP rule unless ``defjvp`` gives a rule too.

    Raises:
        TypeError: not callable; at a call: no rule, a rule that returns the wrong thing or writes into its arguments,
            or a non-differentiable argument or a closed-over value that is being transformed.
        ValueError: at a call: a cotangent of the wrong shape.

    Example:
        >>> from funcgrad import custom_vjp, grad
        >>> @custom_vjp
        ... def multiply(a, b):
        ...     return a * b
        >>> multiply.defvjp(lambda a, b: (a * b, (a, b)), lambda kept, ct: (ct * kept[1], ct * kept[0]))
        >>> grad(multiply, (0, 1))(3.0, 4.0)
        (np.float64(4.0), np.float64(3.0))
    """
    return CustomDerivative(fun, nondiff_argnums, nondiff_argnames, call="custom_vjp")


def custom_jvp(
    fun: Callable[P, R], nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
) -> CustomDerivative[P, R]:
    """Return ``fun`` with a JVP rule of your own, which ``defjvp`` or ``defjvps`` sets. Usable as a decorator.

    Takes the arguments of ``custom_vjp``. Reverse mode transposes the rule unless ``defvjp`` sets a VJP rule.

    Raises:
        TypeError: as ``custom_vjp``.
        ValueError: at a call: a tangent of the wrong shape.

    Example:
        >>> from funcgrad import custom_jvp, grad
        >>> @custom_jvp
        ... def power(x, n):
        ...     return x**n
        >>> power.defjvps(lambda t, ans, x, n: t * n * x ** (n - 1), None)
        >>> grad(power)(3.0, 2)
        np.float64(6.0)
    """
    return CustomDerivative(fun, nondiff_argnums, nondiff_argnames, call="custom_jvp")


class _Signature:
    """Signature of a function: it gives the position of arguments that were passed by keyword or left out."""

    def __init__(self, call: str, fun: Callable[..., Any]) -> None:
        self.call = call
        self.name = name_of(fun)
        self.signature = signature_of(fun)
        parameters, self.names = parameters_of(self.signature)
        self.has_varargs = self.signature is None or any(p.kind is p.VAR_POSITIONAL for p in parameters)
        #: Number of arguments of a call that needs no lookup in the signature.
        plain = len(self.names) == len(parameters) and all(p.default is p.empty for p in parameters)
        self.count = len(parameters) if plain else getattr(fun, "nin", -1)  # rules do not get a ufunc's options

    def positions(self, argnums: int | Sequence[int], argnames: str | Sequence[str]) -> tuple[int, ...]:
        """Return the positions of the non-differentiable arguments."""
        numbers = [argnums] if isinstance(argnums, int) else argnums
        names = [argnames] if isinstance(argnames, str) else argnames
        if missing := [name for name in names if name not in self.names]:
            raise InputError(
                f"{self.call}: nondiff_argnames must name positional arguments of {self.name}, got {missing}. They "
                f"are {self.names}."
            )
        count = len(self.names)
        found = {self.names.index(name) for name in names}
        for number in map(operator.index, numbers):
            if not (number >= 0 and self.has_varargs) and not -count <= number < count:
                raise InputError(
                    f"{self.call}: nondiff_argnums is out of range, got {number} for {self.name} with {count} "
                    "positional arguments. Count from 0."
                )
            found.add(number if number >= 0 else number + count)
        return tuple(sorted(found))

    def bind_positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return all arguments by position, with defaults filled in."""
        if (not kwargs and len(args) == self.count) or self.signature is None:
            if kwargs:
                raise self._keyword_only_error(kwargs)
            return args
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InputError(
                f"{self.name}: the arguments do not fit, got {len(args)} by position and {sorted(kwargs)} by keyword: "
                f"{error}. Call it as {self.name}{self.signature}."
            ) from None
        if bound.kwargs and (given := kwargs.keys() - set(self.names)):
            raise self._keyword_only_error(given)
        bound.apply_defaults()
        return bound.args

    def _keyword_only_error(self, kwargs: Iterable[str]) -> InputError:
        return InputError(
            f"{self.name}: keyword-only arguments have no place in derivative rules, got {sorted(kwargs)}. Make "
            "them positional, and name them in nondiff_argnames if they are static."
        )
