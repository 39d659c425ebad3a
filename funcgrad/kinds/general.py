"""Operations that are linear in each of several arguments, and operations that declare all their rules.

A rule for one mode is enough: it is linear in the tangent or cotangent, so recording the rule on a tape and
running the backward pass gives the rule for the other mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.core import DOUBLE, Primitive, call_operation
from funcgrad.errors import InputError
from funcgrad.generated import make_function
from funcgrad.kinds.linear import Batching, batch_rule, conform
from funcgrad.kinds.rules import (
    ARGUMENT_NAMES,
    SHARED,
    Operation,
    Rule,
    check_names,
    checked_routine,
    finish_operation,
    make_any,
    positional_names,
    transposed_vjp,
    without_params,
)
from funcgrad.reverse import RECORD, VJP, backward, record_function, vjp_of_each

ndarray = np.ndarray
_KNOWN = (*ARGUMENT_NAMES, "ans", "args", "shape")


def multilinear(
    name: str,
    impl: Callable[..., Any] | None = None,
    *,
    transposes: Sequence[Rule],
    batch: Batching,
    foreign: Callable[..., Any] | None = None,
    conforms: Callable[[Any, Any], bool] | None = None,
    direct: Callable[..., Any] | None = None,
    operator: Callable[..., Any] | None = None,
) -> Operation:
    """Define an operation that is linear in each of its arguments when the others are held fixed.

    Args:
        name: the name of the operation, and of the array namespace's function if ``impl`` is None.
        impl: ``impl(xp, x, y, ..., **params)``.
        transposes: for each argument ``transpose(ct, ..., *, params)``, which returns the argument's cotangent; after
            ``ct`` it may name the other arguments and ``shape``, the argument's own shape.
        batch: how the operation takes a batch axis: "elementwise"; "leading", if it maps over all leading axes; "axis",
            if it works along its parameter ``axis``; "loop", one example after another; or a batching rule.
        foreign: ``foreign(*args)`` for arguments that are not values, such as a sparse matrix; it returns None for
            arguments that it cannot take either.
        conforms: a predicate of two factors: whether nothing broadcasts or promotes, so that the transposes give
            cotangents of the shape and dtype of their arguments. Without it, products do not take the fast path.
        direct: a function of two factors that returns their product if ``conforms`` holds, else None. It saves a call.
        operator: Python's binary operator that computes the same. It is used for an operand that is not a value.

    Raises:
        InputError: ``name`` is no text, ``impl`` takes too few arguments, or a rule names an unknown value.

    Example:
        >>> import numpy as np
        >>> from funcgrad import grad
        >>> from funcgrad.extend import multilinear
        >>> product = multilinear(
        ...     "product",
        ...     lambda xp, x, y: xp.multiply(x, y),
        ...     transposes=[lambda ct, y: ct * y, lambda ct, x: ct * x],
        ...     batch="elementwise",
        ... )
        >>> grad(product, argnums=(0, 1))(2.0, 3.0)
        (np.float64(3.0), np.float64(2.0))
    """

    def jvp(position: int) -> Rule:
        def pushed(t: Any, args: tuple[Any, ...], ans: Any, params: dict[str, Any]) -> Any:
            return call(*args[:position], t, *args[position + 1 :], **params)

        return pushed

    vjp_rules = [_VJPRule(name, rule) for rule in transposes]
    jvp_rules = [jvp(i) for i in range(len(vjp_rules))]
    call = _make_operation(name, impl, vjp_rules, jvp_rules, batch, multiple=False, conforms=conforms, direct=direct)
    call.primitive.foreign, call.primitive.operator = foreign, None if operator is None else operator.__name__
    return call


def primitive(
    name: str,
    impl: Callable[..., Any] | None = None,
    *,
    vjps: Sequence[Rule | None] | None = None,
    jvps: Sequence[Rule | None] | None = None,
    batch: Batching,
    multiple: bool = False,
    none_for_zero: bool = False,
    data_dependent: bool = False,
    residuals: int = 0,
    conforms: Callable[..., bool] | None = None,
) -> Operation:
    """Define an operation with rules of its own, for reverse mode, forward mode or both.

    Args:
        name: the name of the operation, and of the array namespace's function if ``impl`` is None.
        impl: ``impl(xp, x, y, ..., **params)``.
        vjps: for each argument ``vjp(ct, ..., *, params)``, which returns the argument's cotangent, or None if there
            is no derivative; after ``ct`` a rule may name ``ans``, the arguments ``x``, ``y``, ``z``, or all of
            them as ``args``, and ``shape``, its own argument's shape. By default, the transposes of ``jvps``.
        jvps: for each argument ``jvp(t, ..., *, params)``, which returns the part of the result's tangent that the
            tangent ``t`` of this argument contributes; the same names. By default, the transposes of ``vjps``.
        batch: how the operation takes a batch axis: "elementwise"; "leading", if it maps over all leading axes; "axis",
            if it works along its parameter ``axis``; "loop", one example after another; or a batching rule.
        multiple: whether the result is a tuple of arrays; then ``ans``, ``ct`` and the results of ``jvps``
            are sequences.
        none_for_zero: whether ``vjps`` get None, not zeros, as the cotangent of a result on which nothing depends.
        data_dependent: whether shape or dtype of a result depend on the values of the arguments.
        residuals: the number of results after the first that only the rules use; then the operation returns only the
            first result, and ``none_for_zero`` must be true.
        conforms: a predicate of the arguments: whether ``vjps`` give cotangents of the arguments' shapes and dtypes
            without further work. An operation of three arguments with this predicate has no parameters.

    Raises:
        InputError: no rule is given, a rule names an unknown value, ``name`` is no text, or ``impl`` takes too few
            arguments.

    Example:
        >>> import numpy as np
        >>> from funcgrad.extend import primitive
        >>> cube = primitive("cube", lambda xp, x: x**3, vjps=[lambda ct, x: 3 * x * x * ct], batch="elementwise")
        >>> cube(np.array([1.0, 2.0]))
        array([1., 8.])
    """
    if vjps is None and jvps is None:
        raise InputError(
            f"{name}: an operation needs a derivative rule, got neither vjps nor jvps. Give one, or define it with "
            "nondifferentiable."
        )
    given = [None if rule is None else _JVPRule(name, rule, i) for i, rule in enumerate(jvps or ())]
    if vjps is None:
        vjp_rules = [None if jvp is None else _VJPRule(name, jvp.rule, transposed=True) for jvp in given]
    else:
        vjp_rules = [None if rule is None else _VJPRule(name, rule) for rule in vjps]
    jvp_rules: list[Any] = given
    if jvps is None:
        jvp_rules = [
            None if vjp is None else _JVPRule(name, vjp.rule, i, transposed=True) for i, vjp in enumerate(vjp_rules)
        ]
    whole = _make_operation(
        name,
        impl,
        vjp_rules,
        jvp_rules,
        batch,
        multiple=multiple,
        none_for_zero=none_for_zero,
        data_dependent=data_dependent,
        conforms=conforms,
    )
    return _first_of(whole, vjp_rules, residuals) if residuals else whole


def _parts(x: Any) -> list[Any]:
    """Return the result of an operation as a list."""
    return list(x) if isinstance(x, (tuple, list)) else [x]


class _VJPRule:
    """VJP rule of an operation for one argument."""

    def __init__(self, name: str, rule: Rule, *, transposed: bool = False) -> None:
        self.names = tuple(check_names(name, positional_names(rule)[1:], _KNOWN))
        self.rule = rule
        self.transposed = transposed

    def expression(self, position: int, conforms: bool, params: bool, saved: set[str]) -> str:
        """Return the expression of an argument's cotangent; ``conforms`` if it needs no change of shape or dtype."""
        like = f"like_{position}"
        own = ARGUMENT_NAMES[position] if position < len(ARGUMENT_NAMES) else ""
        shape = f"{like}[0]" if not conforms else f"{own}.shape" if own in saved else f"shape_{position}"
        values = [shape if n == "shape" else n for n in self.names]
        if self.transposed:
            return f"conform(transposed(ct, rule_{position}, {like}, params, {', '.join(values)}), *{like})"
        found = f"rule_{position}({', '.join(('ct', *values, *['**params'] * params))})"
        return found if conforms else f"conform({found}, *{like})"


def _transposed(ct: Any, rule: Rule, like: tuple[Any, Any], params: dict[str, Any], *values: Any) -> Any:
    """Compute the transpose of a JVP rule: record the rule, which is linear, and run the backward pass."""
    cts = _parts(ct)
    zero = backend.library_of(cts[0]).zeros(*like)
    _, nodes = record_function(lambda t: _parts(rule(t, *values, **params)), [zero])
    return backward([(n, c) for n, c in zip(nodes, cts, strict=True) if n is not None], 1)[0]


def _filled(ct: Any, results: Any) -> list[Any]:
    """Return the cotangents of several results, with zeros for results on which nothing depends."""
    return [np.zeros(*like) if c is None else c for c, like in zip(ct, results, strict=True)]


class _JVPRule:
    """JVP rule of an operation for one argument."""

    def __init__(self, name: str, rule: Rule, position: int, *, transposed: bool = False) -> None:
        self.rule = rule
        self.names = check_names(name, positional_names(rule)[1:], _KNOWN)
        self.position = position
        self.transposed = transposed

    def __call__(self, t: Any, args: tuple[Any, ...], ans: Any, params: dict[str, Any]) -> Any:
        x = args[self.position]
        known = {
            **dict(zip(ARGUMENT_NAMES, args, strict=False)),
            "ans": ans,
            "args": args,
            "shape": backend.shape_of(x),
        }
        values = [known[n] for n in self.names]
        if not self.transposed:
            return self.rule(t, *values, **params)
        outs = _parts(ans)

        def vjp(cts: list[Any]) -> list[Any]:
            ct = self.rule(cts if isinstance(ans, tuple) else cts[0], *values, **params)
            return [conform(ct, *backend.shape_and_dtype_of(x))]

        pushed = backend.with_zeros(transposed_vjp(vjp, outs, [t]), outs)
        return pushed if isinstance(ans, tuple) else pushed[0]


class _Rules:
    """Reverse mode for any arguments of an operation that declares its rules.

    Args:
        name: the name of the operation.
        vjp_rules: the VJP rule of each argument, None if there is no derivative.
        filled: whether zeros represent the cotangents of results on which nothing depends.
        conforms: see ``multilinear``.
    """

    primitive: Primitive
    call: Operation

    def __init__(
        self, name: str, vjp_rules: Sequence[_VJPRule | None], filled: bool, conforms: Callable[[Any, Any], bool] | None
    ) -> None:
        self.name, self.vjp_rules, self.filled, self.conforms = name, vjp_rules, filled, conforms
        self._plans: dict[Any, Any] = {}

    def reverse(self, args: Any, traced: Any, params: Any) -> Any:
        """Return the result, the VJP rule, and the values that are saved for the rule, see ``Primitive``."""
        if len(args) != len(self.vjp_rules):
            raise _wrong_number(self.name, len(self.vjp_rules), args)
        return self.plan_vjp(args, traced, params, call_operation(self.call, args, params))

    def plan_vjp(self, args: Any, traced: Any, params: Any, ans: Any) -> Any:
        """Plan the VJP of a result that was computed already: return it, the VJP rule, and the saved values."""
        conforms = self.conforms is not None and self.conforms(*args)
        key = (traced, conforms, bool(params))
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._make_plan(*key)
        vjp, save = plan
        return (ans, None, ()) if vjp is None else (ans, vjp, save(args, ans, params))

    def _make_plan(self, traced: Sequence[int], conforms: bool, params: bool) -> tuple[VJP | None, Any]:
        """Return the VJP rule for the traced arguments, and ``save(args, ans, params)``, the values that it needs."""
        vjp, names = self.vjp_and_names(traced, conforms, params)
        if vjp is None:
            return None, None
        text = f"def operation(args, ans, params):\n    return ({', '.join(map(_expression_of, names))},)"
        return vjp, make_function(self.name, text, _SHARED)

    def cotangent(self, expression: str) -> str:
        """Return ``expression``, changed to use zeros for results on which nothing depends."""
        return expression.replace("(ct", "(filled(ct, results)", 1) if self.filled else expression

    def vjp_and_names(self, traced: Sequence[int], conforms: bool, params: bool) -> tuple[VJP | None, list[str]]:
        """Return the VJP rule for the traced arguments, and the names of the values that are saved for the rule."""
        rules = [self.vjp_rules[i] for i in traced]
        if not any(rules):
            return None, []
        named = {n for rule in rules if rule is not None for n in rule.names}
        names = [n for n in (*ARGUMENT_NAMES, "ans", "args") if n in named]
        pairs = zip(traced, rules, strict=True)
        expressions = [rule.expression(i, conforms, params, named) if rule else "None" for i, rule in pairs]
        names += ["params"] * any("params" in expression for expression in expressions)
        names += ["results"] * self.filled
        names += [
            n for i in traced for n in (f"shape_{i}", f"like_{i}") if any(n in expression for expression in expressions)
        ]
        expressions = list(map(self.cotangent, expressions))
        functions = {f"rule_{i}": rule.rule for i, rule in zip(traced, rules, strict=True) if rule is not None}
        return vjp_of_each(self.name, expressions, names, _SHARED, **functions), names


def _expression_of(name: str) -> str:
    """Return the expression for the value that a VJP rule calls ``name``."""
    if name in ARGUMENT_NAMES:
        return f"args[{ARGUMENT_NAMES.index(name)}]"
    kind, _, position = name.partition("_")
    if kind == "like":
        return f"like(args[{position}])"
    if kind == "shape":
        return f"args[{position}].shape"
    return "list(map(like, ans))" if name == "results" else name


def _make_operation(
    name: str,
    impl: Callable[..., Any] | None,
    vjp_rules: Sequence[_VJPRule | None],
    jvp_rules: Sequence[Any],
    batch: Batching,
    *,
    multiple: bool,
    none_for_zero: bool = False,
    data_dependent: bool = False,
    conforms: Callable[[Any, Any], bool] | None = None,
    direct: Callable[..., Any] | None = None,
) -> Operation:
    """Make an operation from a VJP rule and a JVP rule per argument."""
    impl = checked_routine(name, impl, len(vjp_rules))
    rules = _Rules(name, vjp_rules, multiple and not none_for_zero, conforms)
    forward = _forward(rules, jvp_rules, multiple)

    made = Primitive(
        name,
        impl,
        rules.reverse,
        forward,
        batch_rule(batch, lambda: rules.call),
        multiple=multiple,
        data_dependent=data_dependent,
    )
    rules.primitive = made
    rules.call = _make_function(rules, len(vjp_rules), multiple, direct)
    return finish_operation(made, rules.call)


def _make_function(rules: _Rules, arity: int, multiple: bool, direct: Callable[..., Any] | None) -> Operation:
    """Make the function that programs call."""
    made, name, conforms = rules.primitive, rules.name, rules.conforms
    kernel, has_params = made.kernel(np), made.impl is not None
    values: dict[str, Any] = {"kernel": kernel}
    if multiple:
        text = _MULTIPLE
    elif arity == 1:
        text = _ONE
        values["plan_vjp"] = rules.plan_vjp
    elif conforms is not None and arity == 2:
        values["direct"] = direct or (lambda x, y, **params: rules.call(x, y, **params) if conforms(x, y) else None)
        text = _BILINEAR.format(**_record_expressions(rules, values, _TRACED_OF_TWO, has_params))
        if not has_params:
            text = without_params(text)
    else:
        general = make_any(made, kernel, rules.plan_vjp, arity=arity)
        if conforms is None:
            return general
        values.update(conforms=conforms, general=general)
        text = _TERNARY.format(**_record_expressions(rules, values, _TRACED_OF_THREE, False))
    call: Operation = make_function(name, text, _SHARED, primitive=made, **values)
    return call


#: Traced positions in a product of two factors, by the name that templates use.
_TRACED_OF_TWO = {"both": (0, 1), "left": (0,), "right": (1,)}
#: Traced positions in an operation of three arguments, by the name that templates use.
_TRACED_OF_THREE = {"all": (0, 1, 2), "last": (1, 2)}
_PARENTS = ("parent", "second", "third")


def _record_expressions(
    rules: _Rules, values: dict[str, Any], positions: dict[str, tuple[int, ...]], has_params: bool
) -> dict[str, str]:
    """Return the expressions of records by traced arguments; add the VJP rules of these records to ``values``."""
    texts = {"aval": "ans.shape if type(ans) is ndarray and ans.dtype is DOUBLE else None"}
    variables = {"x": "v", "y": "w", "z": "u", "params": "params"}
    variables |= {"shape_0": "v.shape", "shape_1": "w.shape", "shape_2": "u.shape"}
    for operands, traced in positions.items():
        values["vjp_" + operands], names = rules.vjp_and_names(traced, True, has_params)
        saved = "".join([f", {variables[n]}" for n in names])
        parents = ", ".join(_PARENTS[: len(traced)])
        texts["record_" + operands] = RECORD.format(vjp="vjp_" + operands, parents=parents, saved=saved)
    return texts


#: Template for several results.
_MULTIPLE = """
def operation(*args, **params):
    for arg in args:
        if type(arg) is not ndarray:
            return bind_checked(primitive, args, params)
    return kernel(*args, **params)
"""

#: Template for three arguments that need no promotion: a fast path if all, or all but the first, are traced.
_TERNARY = """
def operation(x, y, z):
    if type(y) is type(z) is Tracer and (counter := (trace := y._trace).fast_counter) is not None and z._trace is trace:
        w, u = y._val, z._val
        if type(x) is Tracer:
            if x._trace is trace and conforms(v := x._val, w, u):
                made, parent, second, third, ans = Tracer(), x.node, y.node, z.node, kernel(v, w, u)
                made._val, made._trace, made.aval = ans, trace, {aval}
                made.alias = None
                made.node = {record_all}
                return made
        elif type(x) is ndarray and conforms(x, w, u):
            made, v, parent, second, ans = Tracer(), x, y.node, z.node, kernel(x, w, u)
            made._val, made._trace, made.aval = ans, trace, {aval}
            made.alias = None
            made.node = {record_last}
            return made
    elif type(x) is type(y) is type(z) is ndarray:
        return kernel(x, y, z)
    return general(x, y, z)
"""

#: Template for one argument.
_ONE = """
def operation(x, *others, **params):
    if others:
        return bind_checked(primitive, (x, *others), params)
    if type(x) is ndarray:
        return kernel(x, **params)
    if type(x) is Tracer and type(x._val) is ndarray and x._trace.fast_counter is not None:
        v, trace, parent = x._val, x._trace, x.node
        ans, vjp, saved = plan_vjp((v,), (0,), params, kernel(v, **params))
        return writable_result((x,), ans) if vjp is None else trace.record_result(ans, vjp, (parent,), saved)
    return bind_checked(primitive, (x,), params)
"""

#: Template for bilinear operations whose two factors need no broadcasting or promotion.
_BILINEAR = """
def operation(x, y, **params):
    if type(x) is Tracer:
        v, trace, parent = x._val, x._trace, x.link
        if (counter := trace.fast_counter) is not None:
            if type(y) is Tracer:
                w, second = y._val, y.node
                if y._trace is trace and (ans := direct(v, w, **params)) is not None:
                    made = Tracer()
                    made._val, made._trace, made.aval = ans, trace, {aval}
                    made.alias = None
                    made.node = {record_both}
                    return made
            elif type(y) is ndarray and (ans := direct(v, y, **params)) is not None:
                made, w = Tracer(), y
                made._val, made._trace, made.aval = ans, trace, {aval}
                made.alias = None
                made.node = {record_left}
                return made
        elif type(trace) is ForwardTrace and trace.fast:
            if type(y) is ndarray:
                if (ans := direct(v, y, **params)) is not None:
                    return tracer_of(ans, trace, operation(parent, y, **params))
            elif type(y) is Tracer and y._trace is trace and (ans := direct(v, w := y._val, **params)) is not None:
                return tracer_of(ans, trace, operation(parent, w, **params) + operation(v, y.tangent, **params))
    elif type(x) is ndarray:
        if type(y) is ndarray:
            return kernel(x, y, **params)
        if type(y) is Tracer and (counter := y._trace.fast_counter) is not None:
            v, w, trace, parent = x, y._val, y._trace, y.node
            if (ans := direct(v, w, **params)) is not None:
                made = Tracer()
                made._val, made._trace, made.aval = ans, trace, {aval}
                made.alias = None
                made.node = {record_right}
                return made
        elif type(y) is Tracer and type(y._trace) is ForwardTrace and y._trace.fast:
            if (ans := direct(x, y._val, **params)) is not None:
                return tracer_of(ans, y._trace, operation(x, y.tangent, **params))
    return bind_checked(primitive, (x, y), params)
"""

_SHARED = {
    **SHARED,
    "DOUBLE": DOUBLE,
    "__name__": __name__,
    "conform": conform,
    "filled": _filled,
    "like": backend.shape_and_dtype_of,
    "transposed": _transposed,
}


class _FirstRules(_Rules):
    """Reverse mode for an operation that hides the results after the first: the cotangents of these are None.

    Args:
        whole: the operation with all of its results.
        residuals: the number of these results.
    """

    def __init__(self, whole: Operation, vjp_rules: Sequence[_VJPRule | None], residuals: int) -> None:
        super().__init__(whole.__name__, vjp_rules, filled=False, conforms=None)
        self.call, self.residuals = whole, residuals

    def cotangent(self, expression: str) -> str:
        """Return ``expression``, changed to use None for the cotangents of the residuals."""
        return expression.replace("(ct", f"((ct{', None' * self.residuals})", 1)

    def plan_vjp(self, args: Any, traced: Any, params: Any, ans: Any) -> Any:
        """Plan the VJP of the first of the results ``ans``."""
        ans, vjp, saved = super().plan_vjp(args, traced, params, ans)
        return ans[0], vjp, saved


def _first_of(whole: Operation, vjp_rules: Sequence[_VJPRule | None], residuals: int) -> Operation:
    """Make the operation that returns the first result of ``whole``."""
    name: str = whole.__name__
    multiple: Any = whole.primitive
    rules = _FirstRules(whole, vjp_rules, residuals)

    def forward(args: Any, tangents: Any, params: Any) -> Any:
        ans, ts = multiple.forward(args, tangents, params)
        return ans[0], None if ts is None else ts[0]

    def batch(size: int, args: Any, batched: Any, params: Any) -> Any:
        ans, flags = multiple.batch(size, args, batched, params)
        return ans[0], flags

    def impl(xp: Any, *args: Any, **params: Any) -> Any:
        return multiple.impl(xp, *args, **params)[0]

    made = Primitive(name, impl, rules.reverse, forward, batch, data_dependent=multiple.data_dependent)
    call = make_any(
        made, made.kernel(np), rules.plan_vjp, arity=len(vjp_rules), computed="whole(*values, **params)", whole=whole
    )
    call.whole = whole  # type: ignore[attr-defined]  # where pickle finds it
    return finish_operation(made, call)


def _forward(rules: _Rules, jvp_rules: Sequence[Any], multiple: bool) -> Rule:
    """Make the forward rule: the sum of the tangents that the arguments contribute."""

    def forward(args: Any, tangents: Any, params: Any) -> Any:
        if len(args) != len(jvp_rules):
            raise _wrong_number(rules.name, len(jvp_rules), args)
        ans = call_operation(rules.call, args, params)
        total: Any = None
        for jvp, t in zip(jvp_rules, tangents, strict=True):
            if jvp is None or t is None:
                continue
            part = jvp(t, args, ans, params)
            if total is None:
                total = part
            else:
                total = [a + b for a, b in zip(total, part, strict=True)] if multiple else total + part
        if total is None:
            return ans, None
        if not multiple:
            return ans, conform(total, None, backend.dtype_of(ans))
        pairs = zip(ans, total, strict=True)
        return ans, [conform(t, None, backend.dtype_of(a)) if backend.is_inexact(a) else None for a, t in pairs]

    return forward


def _wrong_number(name: str, rules: int, args: Any) -> InputError:
    return InputError(
        f"{name}: it has derivative rules for {rules} arguments, got {len(args)}. Give a rule per argument, None "
        "where there is no derivative."
    )
