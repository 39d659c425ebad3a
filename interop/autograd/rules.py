"""Functions with their own derivative rules, declared as in HIPS autograd: first the function, then its rules.

A *primitive* is called with plain values only, so it may call any routine. Its rules are looked up
when a derivative is taken. Missing rules of one mode are derived by transposing the rules of the other.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import backend, tree
from funcgrad.batching import is_in_batch
from funcgrad.core import Tracer, describe, plain_value
from funcgrad.errors import InputError, NotDifferentiableError, ShapeError
from funcgrad.interop.autograd.boxes import example_by_example, getval, transposing
from funcgrad.interop.autograd.nodes import JVPNode, VJPNode
from funcgrad.interop.autograd.spaces import vspace
from funcgrad.interop.autograd.util import subval
from funcgrad.interop.autograd.wrap_util import get_name, wraps
from funcgrad.kinds.custom import CustomRules, custom_call
from funcgrad.numpy.plain_values.hints import user_stacklevel
from funcgrad.reverse import backward, record_function
from funcgrad.transforms.transformed import check_callable
from funcgrad.writable import outside_transforms

__all__ = [
    "def_linear", "defjvp", "defjvp_argnum", "defjvp_argnums", "defvjp", "defvjp_argnum", "defvjp_argnums",
    "notrace_primitive", "open_primitive", "primitive", "register_notrace",
]  # fmt: skip


@dataclass(eq=False)
class _Rules:
    """Rules declared for a primitive.

    Attributes:
        vjp: ``vjp(argnums, ans, args, kwargs) -> pullback``, and ``pullback(g)`` returns a cotangent per argnum.
        jvp: ``jvp(argnums, gs, ans, args, kwargs) -> tangent``.
        linear: whether ``jvp`` calls the primitive itself, so that it cannot be transposed.
    """

    vjp: Callable[..., Any] | None = None
    jvp: Callable[..., Any] | None = None
    linear: bool = False


def primitive(f_raw: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``f_raw``, always called with plain values. Derivatives need a rule from ``defvjp`` or ``defjvp``.

    Arguments may be anything. Arguments with traced values in them, also inside containers, are differentiated.

    Example:
        >>> from funcgrad.interop.autograd import grad
        >>> @primitive
        ... def cube(x):
        ...     return np.asarray(x) ** 3
        >>> defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
        >>> grad(cube)(2.0), grad(grad(cube))(2.0)
        (np.float64(12.0), np.float64(12.0))
    """
    check_callable("primitive", f_raw)
    return _with_rules(f_raw, False)


def open_primitive(f_raw: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``f_raw``, which is differentiated as usual until a rule for it is declared, and is a primitive then."""
    return _with_rules(f_raw, True)


def _with_rules(f_raw: Callable[..., Any], is_open: bool) -> Callable[..., Any]:
    rules = _Rules()

    def f_wrapped(*args: Any, **kwargs: Any) -> Any:
        if is_open and rules.vjp is None and rules.jvp is None:
            return f_raw(*args, **kwargs)
        leaves, spec = tree.flatten(args)
        traced = [isinstance(leaf, Tracer) for leaf in leaves]
        if not any(traced):
            with outside_transforms():  # the arrays that ``f_raw`` makes are NumPy's, whatever it does with them
                return f_raw(*args, **kwargs)
        call = _Call(f_wrapped, rules, (leaves, spec, traced), kwargs)
        moving = [leaf for leaf, flag in zip(leaves, traced, strict=True) if flag]
        outs = example_by_example(call.bind, moving)
        return tree.unflatten(call.out_spec, outs)

    f_wrapped.fun = f_raw  # type: ignore[attr-defined]
    f_wrapped.rules = rules  # type: ignore[attr-defined]
    return wraps(f_raw)(f_wrapped)


class _Call:
    """One call of a primitive with traced arguments; converts between arguments and flat lists of traced leaves."""

    def __init__(
        self, call: Callable[..., Any], rules: _Rules, given: tuple[list[Any], Any, list[bool]], kwargs: dict[str, Any]
    ) -> None:
        self.call, self.rules, self.kwargs = call, rules, kwargs
        leaves, self.spec, self.traced = given
        self.rest = [None if flag else leaf for leaf, flag in zip(leaves, self.traced, strict=True)]
        self.likes = [vspace(leaf) for leaf, flag in zip(leaves, self.traced, strict=True) if flag]
        marks = tree.unflatten(self.spec, self.traced)
        self.argnums = tuple(i for i, part in enumerate(marks) if any(tree.leaves(part)))
        self.out_spec: Any = None

    def bind(self, *leaves: Any) -> list[Any]:
        """Return the results, recorded by the innermost trace among the leaves, which is not a ``BatchTrace``."""
        if Tracer not in map(type, leaves):
            return self.run(*leaves)
        only_jvp = self.rules.vjp is None and self.rules.jvp is not None and not self.rules.linear
        fwd, bwd = (None, None) if only_jvp else (self.fwd, self.bwd)
        rules = CustomRules(get_name(self.call), self.run, fwd, bwd, self.jvp)
        return list(custom_call(*leaves, rules=rules))

    def args(self, leaves: Sequence[Any]) -> Any:
        """Return the arguments with these leaves in place of the traced ones."""
        moving = iter(leaves)
        pairs = zip(self.rest, self.traced, strict=True)
        return tree.unflatten(self.spec, [next(moving) if flag else leaf for leaf, flag in pairs])

    def run(self, *leaves: Any) -> list[Any]:
        """Compute the results one level further out."""
        outs, self.out_spec = tree.flatten(self.call(*self.args(leaves), **self.kwargs))
        return outs

    def fwd(self, *leaves: Any) -> tuple[list[Any], Any]:
        """Return the results, and the VJP function that the rule makes for them."""
        self.check_declared(self.rules.vjp)
        args = self.args(leaves)
        ans = self.call(*args, **self.kwargs)
        outs, self.out_spec = tree.flatten(ans)
        if any(map(is_in_batch, leaves)):  # the rule needs one example: ``bwd`` calls it
            return outs, (None, list(leaves), outs)
        return outs, (self.pullback(ans, args), [], [])

    def bwd(self, residuals: Any, cts: list[Any]) -> list[Any]:
        """Return a cotangent for each traced leaf; the rule is called for one example at a time."""
        pullback_of_call, primals, results = residuals

        def one(*known: Any) -> list[Any]:
            parts, rest = known[: len(cts)], known[len(cts) :]
            pullback = pullback_of_call
            if pullback is None:
                pullback = self.pullback(tree.unflatten(self.out_spec, rest[len(primals) :]), self.args(rest))
            return self.cotangents(pullback, parts)

        return example_by_example(one, [*cts, *primals, *results])

    def check_declared(self, rule: Any) -> None:
        if rule is None:
            name = get_name(self.call)
            raise NotDifferentiableError(
                f"{name}: there is no derivative rule for arguments {self.argnums}, got traced values. Declare one "
                f"with defvjp({name}, ...)."
            )

    def pullback(self, ans: Any, args: Any) -> Callable[[Any], Any]:
        made: Callable[[Any], Any] = self.rules.vjp(self.argnums, ans, args, self.kwargs)  # type: ignore[misc]
        return made

    def cotangents(self, pullback: Callable[[Any], Any], cts: Sequence[Any]) -> list[Any]:
        parts = pullback(tree.unflatten(self.out_spec, cts))
        places = tree.unflatten(self.spec, range(len(self.traced)))
        found: dict[int, Any] = {}
        for argnum, ct in zip(self.argnums, parts, strict=True):
            numbers, leaves = tree.leaves(places[argnum]), tree.leaves(ct)
            if len(numbers) != len(leaves):
                raise InputError(
                    f"{get_name(self.call)}: the vjp of argument {argnum} must give a cotangent of the argument's "
                    f"structure, got {describe(ct)}. Return the same containers."
                )
            found.update(zip(numbers, leaves, strict=True))
        ours = [found[i] for i, flag in enumerate(self.traced) if flag]
        return [_conformed(self.call, "vjp", ct, like) for ct, like in zip(ours, self.likes, strict=True)]

    def jvp(self, leaves: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        count_of = len(leaves)
        self.check_declared(self.rules.jvp or self.rules.vjp)

        def one(*both: Any) -> list[Any]:
            args, moving = self.args(both[:count_of]), both[count_of:]
            ans = self.call(*args, **self.kwargs)
            outs, self.out_spec = tree.flatten(ans)
            if self.rules.jvp is None:
                return [*outs, *self.transposed(self.pullback(ans, args), outs, moving)]
            moved = self.args(moving)
            gs = [moved[i] for i in self.argnums]
            pushed = tree.leaves(self.rules.jvp(self.argnums, gs, ans, args, self.kwargs))
            return [*outs, *[_conformed(self.call, "jvp", t, vspace(o)) for t, o in zip(pushed, outs, strict=True)]]

        found = example_by_example(one, [*leaves, *tangents])
        return found[: len(found) // 2], found[len(found) // 2 :]

    def transposed(self, pullback: Callable[[Any], Any], outs: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Return the tangents of the results, by transposing the linear ``pullback``: record and run it backwards."""

        def run(*cts: Any) -> list[Any]:
            token = transposing.set(cts[0]._trace)
            try:
                return self.cotangents(pullback, cts)
            finally:
                transposing.reset(token)

        results, nodes = record_function(run, [backend.ones_like(out) for out in outs])
        for result, node in zip(results, nodes, strict=True):
            if node is None and np.any(plain_value(result)):
                raise NotDifferentiableError(
                    f"{get_name(self.call)}: the vjp rule does not compute with its cotangent, so no forward mode can "
                    f"be made of it, got {describe(result)}. Declare the tangents with defjvp."
                )
        seeds = [(node, t) for node, t in zip(nodes, tangents, strict=True) if node is not None]
        return backend.with_zeros(backward(seeds, len(outs)), outs)


def _conformed(call: Any, rule: str, given: Any, like: Any) -> Any:
    """Return the result of a rule in the shape and dtype of the value that it belongs to."""
    shape = backend.shape_of(given)
    if shape != like.shape:
        if fnp.size(given) != like.size // (2 if like.iscomplex else 1):
            raise ShapeError(
                f"{get_name(call)}: the {rule} rule gave the wrong shape, got {shape}, expected "
                f"{like.shape}. Sum over what was broadcast."
            )
        given = fnp.reshape(given, like.shape)
    if backend.dtype_of(given).kind == "c" and not like.iscomplex:
        given = fnp.real(given)
    return like.conformed(given)


def _rules_of(call: str, fun: Any) -> _Rules:
    """Return the object that holds the rules of ``fun``; one that nothing reads if ``fun`` is not a primitive."""
    rules = getattr(fun, "rules", None)
    if isinstance(rules, _Rules):
        return rules
    if not callable(fun):
        raise InputError(
            f"{call}: the first argument must be a primitive, got {describe(fun)}. Make it with primitive."
        )
    warnings.warn(
        f"{call}: {get_name(fun)} is differentiated by what it is made of; the rules given here are not used.",
        stacklevel=user_stacklevel(),
    )
    return _Rules()


def defvjp_argnums(fun: Any, vjpmaker: Callable[..., Any]) -> None:
    """Declare ``vjpmaker(argnums, ans, args, kwargs)``, which returns a function from g to a cotangent per argnum."""
    _rules_of("defvjp_argnums", fun).vjp = vjpmaker


def defvjp_argnum(fun: Any, vjpmaker: Callable[..., Any]) -> None:
    """Declare ``vjpmaker(argnum, ans, args, kwargs)``, which returns a function from g to the cotangent."""
    _rules_of("defvjp_argnum", fun).vjp = _for_each_argnum(vjpmaker)


def _for_each_argnum(maker: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule for several arguments, made from a rule for a single argument."""

    def for_argnums(argnums: Sequence[int], *call: Any) -> Callable[[Any], list[Any]]:
        pullbacks = [maker(argnum, *call) for argnum in argnums]
        return lambda g: [pullback(g) for pullback in pullbacks]

    return for_argnums


def defvjp(fun: Any, *vjpmakers: Callable[..., Any] | None, argnums: Iterable[int] | None = None) -> None:
    """Declare a VJP rule per argument: ``vjpmaker(ans, *args, **kwargs)`` returns a function of g.

    Args:
        fun: a result of ``primitive``.
        vjpmakers: the rules; None for an argument whose derivative is zero.
        argnums: the positions of their arguments; by default 0, 1, ...
    """
    rules = _rules_of("defvjp", fun)
    makers = _by_argnum("defvjp", vjpmakers, argnums)

    def maker(argnum: int, ans: Any, args: Any, kwargs: Any) -> Callable[[Any], Any]:
        chosen = _rule_for_argnum("vjp", fun, makers, argnum)
        if chosen is None:
            space = vspace(args[argnum])
            return lambda g: space.zeros()
        pullback: Callable[[Any], Any] = chosen(ans, *args, **kwargs)
        return pullback

    rules.vjp = _for_each_argnum(maker)


def _by_argnum(call: str, given: Sequence[Any], argnums: Iterable[int] | None) -> dict[int, Any]:
    for rule in given:
        if not (rule is None or callable(rule) or (rule == "same" and call == "defjvp")):
            raise InputError(f"{call}: a rule must be a function or None, got {describe(rule)}. Pass a function.")
    return dict(zip(count() if argnums is None else argnums, given, strict=False))


def _rule_for_argnum(kind: str, fun: Any, rules: dict[int, Any], argnum: int) -> Any:
    if argnum not in rules:
        raise NotDifferentiableError(
            f"{get_name(fun)}: there is no {kind} rule for argument {argnum}, got a traced value. Declare one, or None "
            "where the derivative is zero."
        )
    return rules[argnum]


def defjvp_argnums(fun: Any, jvpmaker: Callable[..., Any]) -> None:
    """Declare ``jvpmaker(argnums, gs, ans, args, kwargs)``, which returns the tangent of the result for ``gs``."""
    rules = _rules_of("defjvp_argnums", fun)
    rules.jvp, rules.linear = jvpmaker, False


def defjvp_argnum(fun: Any, jvpmaker: Callable[..., Any]) -> None:
    """Declare ``jvpmaker(argnum, g, ans, args, kwargs)``, which returns one argument's part of the result's tangent."""
    rules = _rules_of("defjvp_argnum", fun)
    rules.jvp, rules.linear = _sum_over_argnums(jvpmaker), False


def _sum_over_argnums(jvpmaker: Callable[..., Any]) -> Callable[..., Any]:
    def for_argnums(argnums: Sequence[int], gs: Sequence[Any], *call: Any) -> Any:
        parts = [jvpmaker(argnum, g, *call) for argnum, g in zip(argnums, gs, strict=True)]
        total = parts[0]
        for part in parts[1:]:
            total = tree.map(lambda a, b: a + b, total, part)
        return total

    return for_argnums


def defjvp(fun: Any, *jvpfuns: Callable[..., Any] | str | None, argnums: Iterable[int] | None = None) -> None:
    """Declare a JVP rule per argument: ``jvpfun(g, ans, *args, **kwargs)``.

    Args:
        fun: a result of ``primitive``.
        jvpfuns: the rules; None for zero, "same" if the function is linear in the argument.
        argnums: the positions of their arguments; by default 0, 1, ...
    """
    rules = _rules_of("defjvp", fun)
    known = _by_argnum("defjvp", jvpfuns, argnums)

    def jvpmaker(argnum: int, g: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        chosen = _rule_for_argnum("jvp", fun, known, argnum)
        if chosen is None:
            return vspace(ans).zeros()
        return fun(*subval(args, argnum, g), **kwargs) if chosen == "same" else chosen(g, ans, *args, **kwargs)

    rules.jvp, rules.linear = _sum_over_argnums(jvpmaker), "same" in jvpfuns


def def_linear(fun: Any) -> None:
    """Declare that ``fun`` is linear in each of its arguments."""
    rules = _rules_of("def_linear", fun)
    rules.jvp = _sum_over_argnums(lambda argnum, g, ans, args, kwargs: fun(*subval(args, argnum, g), **kwargs))
    rules.linear = True


def notrace_primitive(f_raw: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``f_raw``, called with plain values; its result is a constant for every derivative.

    Example:
        >>> from funcgrad.interop.autograd import grad
        >>> grad(lambda x: x * notrace_primitive(round)(x))(2.6)
        np.float64(3.0)
    """

    def f_wrapped(*args: Any, **kwargs: Any) -> Any:
        return f_raw(*map(getval, args), **kwargs)

    return wraps(f_raw)(f_wrapped)


def register_notrace(trace_type: type, primitive_fun: Any) -> None:
    """Declare a primitive's derivative as zero in reverse mode (``VJPNode``) or forward mode (``JVPNode``).

    Raises:
        InputError: ``trace_type`` is another type.
    """
    if trace_type not in (VJPNode, JVPNode):
        raise InputError(
            f"register_notrace: the type must be VJPNode or JVPNode, got {describe(trace_type)}. Pass one of them."
        )
    rules = _rules_of("register_notrace", primitive_fun)
    if trace_type is VJPNode:
        rules.vjp = _for_each_argnum(lambda argnum, ans, args, kwargs: lambda g: tree.map(_zeros, args[argnum]))
    else:
        rules.jvp, rules.linear = lambda argnums, gs, ans, args, kwargs: tree.map(_zeros, ans), False


def _zeros(x: Any) -> Any:
    dtype = backend.dtype_of(x)
    return np.zeros(backend.shape_of(x), dtype if dtype.kind in "fc" else float)
