"""Elementwise operations: a definition declares one partial derivative per argument, and every mode follows.

The Jacobian is diagonal, so the same product ``ct * partial`` serves both modes. ``_Rules`` contains the reverse and
forward rules for arguments of any kind. The function that programs call is made from a template. Its fast path records
operations in one run without broadcasting or promotion, above all on doubles; all other calls go to ``bind_checked``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import abs, add, mod, mul, pow, sub, truediv
from typing import Any

import numpy as np

from funcgrad import backend
from funcgrad.batching import BatchTrace, common_batch
from funcgrad.core import (
    COMPLEX,
    DOUBLE,
    REAL,
    Primitive,
    Tracer,
    are_doubles,
    aval_of,
    common_aval,
    promoted_constant,
    shallow_copy,
    zero_dim_doubles,
)
from funcgrad.generated import make_function
from funcgrad.kinds.arguments import bind_checked
from funcgrad.kinds.linear import (
    MANY_ROWS,
    SHORT_ROWS,
    astype,
    batch_rule,
    broadcast_tangent,
    conform,
    operator_primitive,
    product,
    product_in_place,
    promote,
    scaled,
)
from funcgrad.kinds.partials import Partial, PartialRule
from funcgrad.kinds.rules import ARGUMENT_NAMES, SHARED, Operation, checked_routine, finish_operation, make_any
from funcgrad.ownership import LARGE
from funcgrad.reverse import RECORD, VJP, vjp_of_each
from funcgrad.writable import CONSTANTS, COPY_ON_WRITE, shared_array

ndarray = np.ndarray
float64 = np.float64
#: Operators that Python computes itself for two floats: the results are floats, complex powers, or errors.
_PYTHON_OPERATORS = (add, sub, mul, truediv, mod, pow)
#: Operators that give complex powers or raise errors for floats where NumPy's functions do not.
_RAISING = (truediv, mod, pow)
#: Operators that treat an array without axes as a number; powers treat Python numbers specially.
_CONVERTING = (add, sub, mul, truediv)
#: Operators that round differently in Python and in NumPy, for complex numbers or for all numbers.
_ROUNDING = (mul, pow, abs)

#: Names in the expressions of partial derivatives, in addition to rules and values.
_EXPRESSIONS = {
    "LARGE": LARGE,
    "__name__": __name__,
    "conform": conform,
    "float64": float64,
    "ndarray": ndarray,
    "product": product,
    "product_in_place": product_in_place,
    "scaled": scaled,
}


def elementwise(
    name: str,
    impl: Callable[..., Any] | None = None,
    *,
    dx: Partial,
    dy: Partial = None,
    dz: Partial = None,
    arity: int | None = None,
    operator: Callable[..., Any] | None = None,
    foreign: Callable[..., Any] | None = None,
) -> Operation:
    """Define an operation that acts element by element, with broadcasting.

    Args:
        name: the name of the operation, and of the array namespace's function if ``impl`` is None.
        impl: ``impl(xp, *args)``, which computes the operation; ``xp`` is the array namespace, NumPy or ``jax.numpy``.
        dx: the partial derivative with respect to the first argument: a function whose parameters name the values that
            it needs (the arguments ``x``, ``y``, ``z``, the result ``ans``); such a function with ``t`` as its first
            parameter, which returns the product with the tangent or cotangent ``t``; the name of one of these values; a
            number; or None for no derivative.
        dy: the partial derivative with respect to the second argument.
        dz: the partial derivative with respect to the third argument.
        arity: the number of arguments, if the last ones have no partial derivative.
        operator: Python's operator that computes the same on arrays or NumPy scalars, faster. It
            also marks arithmetic, whose result on Python numbers alone stays a Python number.
        foreign: ``foreign(*args)`` for arguments that are not values, such as a sparse matrix; it returns None for
            arguments that it cannot take either.

    Raises:
        InputError: ``name`` is no text, ``impl`` takes too few arguments, or a rule names an unknown value.

    Example:
        >>> import numpy as np
        >>> from funcgrad import grad
        >>> from funcgrad.extend import elementwise
        >>> cube = elementwise("cube", lambda xp, x: x * x * x, dx=lambda x: 3 * x * x)
        >>> cube(np.array([1.0, 2.0])), grad(cube)(2.0)
        (array([1., 8.]), np.float64(12.0))
    """
    partials = (dx, dy, dz)
    arity = arity or max(i + 1 for i, p in enumerate(partials) if p is not None)
    impl = checked_routine(name, impl, arity)
    rules = _Rules(name, partials[:arity], operator)
    primitive = Primitive(name, impl, rules.reverse, rules.forward, batch_rule("elementwise", lambda: rules.call))
    primitive.foreign, primitive.arithmetic = foreign, operator is not None
    primitive.operator = operator.__name__ if operator is not None and arity == 2 else None
    rules.primitive = primitive
    if operator in _RAISING:
        primitive.number_primitive = operator_primitive(primitive, operator)
    if arity == 3 or None in partials[:arity]:
        kernel, other = operator or primitive.kernel(np), "type(arg) not in NUMPY"
        rules.call = make_any(primitive, kernel, rules.plan_vjp, has_params=False, foreign=other)
    else:
        rules.call = (_make_unary if arity == 1 else _make_binary)(primitive, rules, operator)
    return finish_operation(primitive, rules.call)


class _Rules:
    """Reverse and forward rules for any arguments: they may broadcast, mix dtypes, or be tracers of outer traces.

    Attributes:
        partial_rules: the rule of each argument.
        converts: whether the operation may get an array without axes in place of a number.
        rounds: whether Python's operator and NumPy's function round differently.
        powers: whether the operation is a power, which is also rounded differently for doubles.
    """

    primitive: Primitive
    call: Operation

    def __init__(self, name: str, partials: Sequence[Partial], operator: Callable[..., Any] | None) -> None:
        self.name = name
        self.names = (*ARGUMENT_NAMES[: len(partials)], "ans")
        self.partial_rules = [
            PartialRule(name, n, p, len(partials)) for n, p in zip(ARGUMENT_NAMES, partials, strict=False)
        ]
        self.functions = {n: f for rule in self.partial_rules for n, f in rule.functions.items()}
        self.converts = operator in _CONVERTING
        self.rounds, self.powers = operator in _ROUNDING, operator is pow
        self._plans: dict[Any, tuple[VJP | None, list[int], list[bool]]] = {}
        self._jvps: dict[Any, tuple[Callable[..., Any], list[int], list[bool]]] = {}

    def vjp(self, traced: Sequence[int], mixed: bool = False) -> tuple[VJP, tuple[str, ...]]:
        """Return the VJP rule for the traced arguments, and the names of the values that are saved for the rule.

        If ``mixed``, shapes or dtypes of arguments and result differ, and the rule conforms each cotangent.
        """
        rules = [self.partial_rules[i] for i in traced]
        names = tuple([n for n in self.names if any(n in rule.names for rule in rules)])
        likes = [f"like_{i}" for i in traced] if mixed else []
        last = len(rules) - 1
        expressions = [
            rule.conformed(i, k == last)
            if mixed and rule.differentiable
            else rule.reverse
            if k == last
            else rule.forward
            for k, (i, rule) in enumerate(zip(traced, rules, strict=True))
        ]
        functions = {n: f for rule in rules for n, f in rule.functions.items()}
        return vjp_of_each(self.name, expressions, [*names, *likes], _EXPRESSIONS, **functions), names

    def compute(self, args: tuple[Any, ...], short: bool = True) -> Any:
        """Compute the operation on values taken out of tracers.

        ``short`` says whether the template has a fast path for these traced positions, which calls Python's operator.
        """
        for x in args if self.rounds else ():
            if type(x) is Tracer and x._trace.is_bit_exact:
                return x._trace.compute_for_rule(self.call, *args, short=short)
        numbers = self.primitive.number_primitive
        if numbers is not None and self.powers and short and are_doubles(args):
            return bind_checked(numbers, args, {})
        return self.primitive.call_lowered(args, {})

    def reverse(self, args: Any, traced: Any, params: Any) -> Any:
        """Return the result, the VJP rule, and the values that are saved for the rule, see ``Primitive``."""
        return self.plan_vjp(args, traced, params, self.compute(args))

    def plan_vjp(self, args: Any, traced: Any, params: Any, ans: Any) -> Any:
        """Plan the VJP of a result that was computed already: return it, the VJP rule, and the saved values."""
        like = backend.shape_and_dtype_of(ans)
        likes: list[Any] = [backend.shape_and_dtype_of(args[i]) for i in traced]
        # products with dtypes of kind "V", such as bfloat16, and with Python's complex numbers may have wider dtypes
        weak = like[1].kind == "V" or (like[1] is not COMPLEX and complex in map(type, args))
        # before NumPy 2.3 the exponent of ``x ** np.array(2.0)`` does not decide the dtype of the result
        weak = weak or (self.powers and any(type(a) is ndarray and not a.ndim and a.dtype != like[1] for a in args))
        mixed = weak or any(one != like for one in likes)
        plan = self._plans.get((traced, mixed))
        if plan is None:
            plan = self._plans[traced, mixed] = self._make_plan(traced, mixed)
        vjp, indices, promotes = plan
        if vjp is None:
            return ans, None, ()
        if mixed and not weak:
            likes = [None if one == like else one for one in likes]
        if self.converts and len(traced) == 1 and type(args[traced[0]]) is ndarray and like[1] is DOUBLE:
            args = [zero_dim_doubles[a] if type(a) is float or type(a) is int else a for a in args]
        saved = self._values_to_save((*self._as_result(args, like[1]), ans), indices, promotes, like[1])
        return ans, vjp, [*saved, *likes] if mixed else saved

    def forward(self, args: Any, tangents: Any, params: Any) -> Any:
        """Return the result and its tangent, see ``Primitive``."""
        ans = self.compute(args, tangents[0] is not None)
        moved = tuple([i for i, t in enumerate(tangents) if t is not None and self.partial_rules[i].differentiable])
        if not moved:
            return ans, None
        plan = self._jvps.get(moved)
        if plan is None:
            plan = self._jvps[moved] = self._make_jvp(moved)
        jvp, indices, promotes = plan
        dtype = backend.dtype_of(ans)
        saved = self._values_to_save((*self._as_result(args, dtype), ans), indices, promotes, dtype)
        return ans, broadcast_tangent(jvp([tangents[i] for i in moved], *saved), ans)

    def _make_plan(self, traced: tuple[int, ...], mixed: bool) -> tuple[VJP | None, list[int], list[bool]]:
        """Return the VJP rule, the indices of its values among arguments and result, and which values are promoted."""
        rules = [self.partial_rules[i] for i in traced]
        if not any(rule.differentiable for rule in rules):
            return None, [], []
        vjp, names = self.vjp(traced, mixed)
        return vjp, [self.names.index(n) for n in names], self._promoting(rules, names)

    def _values_to_save(
        self, known: Sequence[Any], indices: Sequence[int], promotes: Sequence[bool], dtype: Any
    ) -> list[Any]:
        pairs = zip(indices, promotes, strict=True)
        return [promote(known[i], dtype) if promoted else known[i] for i, promoted in pairs]

    def _as_result(self, args: Sequence[Any], dtype: np.dtype[Any]) -> Sequence[Any]:
        """Return the arguments, for a complex power of a real base with the base converted to the complex dtype."""
        if not self.powers or dtype.kind != "c" or backend.dtype_of(args[0]).kind == "c":
            return args
        return (astype(args[0], to=dtype), *args[1:])

    def _make_jvp(self, moved: tuple[int, ...]) -> tuple[Callable[..., Any], list[int], list[bool]]:
        """Return the function from tangents of arguments to the tangent of the result, then as in ``_make_plan``."""
        rules = [self.partial_rules[i] for i in moved]
        names = [n for n in self.names if any(n in rule.names for rule in rules)]
        expressions = [rule.added_to("total") if k else rule.forward for k, rule in enumerate(rules)]
        steps = "".join([f"    ct = cts[{k}]\n    total = {expression}\n" for k, expression in enumerate(expressions)])
        text = f"def operation({', '.join(['cts', *names])}):\n{steps}    return total"
        jvp = make_function(
            self.name, text, _EXPRESSIONS, **{n: f for rule in rules for n, f in rule.functions.items()}
        )
        return jvp, [self.names.index(n) for n in names], self._promoting(rules, names)

    @staticmethod
    def _promoting(rules: Sequence[PartialRule], names: Sequence[str]) -> list[bool]:
        """Return, for each value, whether the rules get it promoted as in the operation."""
        return [any(rule.promotes and n in rule.names for rule in rules) for n in names]


#: Types of the values that ``_are_complex`` takes, and kinds of Python's numbers.
_DOUBLES = frozenset((ndarray, float64, np.complex128, Tracer))
_CONSTANTS = {float: DOUBLE, int: DOUBLE, complex: COMPLEX}


def _are_complex(v: Any, v_is_traced: bool, w: Any, w_is_traced: bool) -> bool:
    """Whether an operand is complex, in double precision, the other one so or real; Python's numbers as constants."""
    first = v.dtype if type(v) in _DOUBLES else None if v_is_traced else _CONSTANTS.get(type(v))
    second = w.dtype if type(w) in _DOUBLES else None if w_is_traced else _CONSTANTS.get(type(w))
    if first is COMPLEX:
        return second is COMPLEX or second is DOUBLE
    return second is COMPLEX and first is DOUBLE


_SHARED = {
    **SHARED,
    **_EXPRESSIONS,
    "ARRAYS": frozenset((ndarray, float64)),
    "BatchTrace": BatchTrace,
    "CONSTANTS": CONSTANTS,
    "COPY_ON_WRITE": COPY_ON_WRITE,
    "PLAIN": frozenset((ndarray, float, float64)),  # a kernel takes these values of tracers as they are
    "COMPLEX": COMPLEX,
    "DOUBLES": _DOUBLES,
    "REAL": REAL,
    "DOUBLE": DOUBLE,
    "are_complex": _are_complex,
    "aval_of": aval_of,
    "batch_of": common_batch,
    "zero_dim_doubles": zero_dim_doubles,
    "common_aval": common_aval,
    "promoted_constant": promoted_constant,
    "broadcast_tangent": broadcast_tangent,
    "shared_array": shared_array,
    "shallow_copy": shallow_copy,
}

#: Expression for the aval of a plain result of an ``impl``, which may be an array without axes.
_AVAL = "None if aval is None else aval_of(ans)"
#: Expression for the aval of a result that is not an array.
_NUMBER_AVAL = "float64 if type(ans) is float64 else None"
#: Condition: the result of an ``impl`` is neither a NumPy double nor an array of doubles.
_FOREIGN = "type(ans) is float or ans.dtype is not DOUBLE"
#: Condition: a power of floats is complex.
_COMPLEX = "type(ans) is complex or (type(ans) is Tracer and ans.dtype.kind == 'c')"
#: Expression for the aval of a result of NumPy's functions, which return numbers for arrays without axes.
_OWN_AVAL = "aval or (float64 if type(ans) is float64 else aval)"

_UNARY = """
def operation(x, /):
    if type(x) is Tracer:
        v, aval, trace, parent = x._val, x.aval, x._trace, x.link
        if (counter := trace.fast_counter) is not None:
            if aval is not None{known}:
                ans = kernel(v)
            elif type(v) is Tracer and v.aval is not None:
                ans = operation(v)
            elif (aval := aval_of(v)) is None{foreign}:
                if not ({complex}) or (ans := (operation if type(v) is Tracer else kernel)(v)).dtype is not COMPLEX:
                    return bind_checked(primitive, (x,), {{}})
            elif type(v) is ndarray or type(v) is float64:
                ans = kernel(v)
            else:
                ans = operation(v)
                aval = None
            {check}
            made = Tracer()
            made._val, made._trace, made.alias = ans, trace, None
            made.aval = {aval}
            made.link = {record}
            return made
        if trace.fast and type(trace) is ForwardTrace:
            if (aval is not None or (aval := aval_of(v)) is not None){known_pushed}:
                ct, given, x = parent, x, v
                ans = kernel(x) if type(x) is ndarray or type(x) is float64{plain_pushed} else operation(x)
                {check_given}
                return tracer_of(ans, trace, {forward}, {aval_pushed})
        elif trace.fast and type(trace) is BatchTrace:
            made = Tracer()
            made._val, made._trace, made.link, made.aval, made.alias = operation(v), trace, None, None, None
            return made
    elif type(x) is ndarray or type(x) is float64{plain}:
        return kernel(x)
    return bind_checked(primitive, (x,), {{}})
"""


def _make_unary(primitive: Primitive, rules: _Rules, operator: Callable[..., Any] | None) -> Operation:
    """Make the function of one argument. NumPy's functions keep the dtype; the results of an ``impl`` are checked."""
    vjp, names = rules.vjp((0,))
    own = primitive.impl is None
    saved = "".join([", v" if n == "x" else ", ans" for n in names])
    text = _UNARY.format(
        known=" or type(v) is float or (type(v) is ndarray and v.dtype in REAL)" if own else "",
        foreign="" if own else " or aval is float",
        complex="type(v) in DOUBLES and v.dtype is COMPLEX" if own and not rules.rounds else "False",
        plain=" or type(x) is float" if own and operator is None else "",
        known_pushed="" if own else " and aval is not float",
        plain_pushed=" or type(x) is float" if own else "",
        check="" if own else f"if {_FOREIGN}:\n                return bind_checked(primitive, (x,), {{}})",
        check_given=""
        if own
        else f"if {_FOREIGN}:\n                    return bind_checked(primitive, (given,), {{}})",
        aval="float64 if type(ans) is float64 else aval" if own else _AVAL,
        aval_pushed=f"{'aval' if own else 'aval_of(ans)'} if type(ans) is ndarray else {_NUMBER_AVAL}",
        record=RECORD.format(vjp="vjp", parents="parent", saved=saved),
        forward=rules.partial_rules[0].forward,
    )
    kernel = operator or primitive.kernel(np)
    made: Operation = make_function(
        primitive.name, text, _SHARED, primitive=primitive, kernel=kernel, vjp=vjp, **rules.functions
    )
    return made


_BINARY = """
def operation(x, y, /):
    if type(x) is Tracer and (counter := (trace := x._trace).fast_counter) is not None:
        v, aval, parent = x._val, x.aval, x.link
        if type(y) is Tracer:
            w, other, second = y._val, y.aval, y.link
            if y._trace is not trace:
                return operation(x, w) if second is COPY_ON_WRITE else mixed(x, y)
            if (aval is not None and (aval is other or aval == other)) or (type(v) in floats and type(w) in floats):
                ans = kernel(v, w)
            elif type(aval) is type(other) is tuple or (aval := common_aval(v, w, floats)) is None:
                return mixed(x, y)
            elif type(v) in PLAIN and type(w) in PLAIN:
                ans = kernel(v, w)
            else:
                ans = {call_lowered}(v, w)
                aval = None
            {check}
            made = Tracer()
            made.link = {record_both}
        else:
            if aval is not None and (type(y) is float or type(y) is int):
                w = zero_dim_doubles[y] if converts and aval is not float64 else y
            elif (w := promoted_constant(v, y, aval, floats, converts)) is None:
                return mixed(x, y)
            ans = kernel(v, w) if type(v) is not Tracer else {call_lowered}(v, w)
            {check}
            made = Tracer()
            made.link = {record_left}
        made._val, made._trace, made.aval = ans, trace, {aval}
        made.alias = None
        return made
    if type(y) is Tracer and (counter := (trace := y._trace).fast_counter) is not None:
        w, aval, parent = y._val, y.aval, y.link
        if (v := promoted_constant(w, x, aval, floats, converts)) is None:
            return operation(v, y) if type(x) is Tracer and (v := shared_array(x)) is not None else mixed(x, y)
        ans = kernel(v, w) if type(w) is not Tracer else {call_lowered}(v, w)
        {check}
        made = Tracer()
        made._val, made._trace, made.aval = ans, trace, {aval}
        made.alias = None
        made.link = {record_right}
        return made
    if type(x) in NUMPY and type(y) in NUMPY:
        return plain(x, y)
    if type(x) is Tracer and type(x._trace) is ForwardTrace:
        if (made := jvp(x, y)) is not None:
            return made
    elif type(y) is Tracer and type(y._trace) is ForwardTrace:
        if (made := jvp_mixed(x, y)) is not None:
            return made
    elif (trace := batch_of(x, y)) is not None:
        made, v, w = Tracer(), x._val if type(x) is Tracer else x, y._val if type(y) is Tracer else y
        made._val, made._trace, made.link, made.aval, made.alias = operation(v, w), trace, None, None, None
        return made
    return bind_checked(primitive, (x, y), {{}})
"""

_MIXED = """
def operation(x, y):
    left, right = type(x) is Tracer, type(y) is Tracer
    if left and right and x._trace is not y._trace:
        if y._trace is CONSTANTS:
            return binary_operation(x, shallow_copy(y))
        return binary_operation(shallow_copy(x), y) if x._trace is CONSTANTS else bind_checked(primitive, (x, y), {{}})
    v, w = x._val if left else x, y._val if right else y
    if left and right and type(x.aval) is type(y.aval) is tuple:  # the most frequent case: arrays of doubles
        ans = kernel(v, w) if v.size + w.size <= 128 else kernel_in_columns(v, w)
    elif type(v) in ARRAYS and type(w) in ARRAYS and v.dtype is w.dtype and v.dtype in REAL:
        ans = kernel_in_columns(v, w)
    elif type(aval_of(v)) is type(aval_of(w)) is tuple:
        ans = call_lowered(v, w)
    elif {complex}:
        ans = call_lowered(v, w) if type(v) is Tracer or type(w) is Tracer else plain(v, w)
    else:
        return bind_checked(primitive, (x, y), {{}})
    dtype = ans.dtype
    if dtype is not (v.dtype if left else w.dtype) and dtype is not COMPLEX:
        return bind_checked(primitive, (x, y), {{}})
    made, shape = Tracer(), ans.shape
    made._val, made.aval = ans, shape if type(ans) is ndarray and ans.dtype is DOUBLE else None
    made.alias = None
    if left and right:
        made._trace, parent, second = x._trace, x.link, y.link
        counter = made._trace.fast_counter or made._trace.counter
        first_same, second_same = v.shape == shape and v.dtype is dtype, w.shape == shape and w.dtype is dtype
        made.link = {record_both_same} if first_same and second_same else {record_both}
    elif left:
        made._trace, parent = x._trace, x.link
        counter = made._trace.fast_counter or made._trace.counter
        made.link = {record_left_same} if v.shape == shape and v.dtype is dtype else {record_left}
    else:
        made._trace, parent = y._trace, y.link
        counter = made._trace.fast_counter or made._trace.counter
        made.link = {record_right_same} if w.shape == shape and w.dtype is dtype else {record_right}
    return made
"""

_JVP = """
def operation(x, y):
    v, ct, aval, trace = x._val, x.tangent, x.aval, x._trace
    if not trace.fast:
        return None
    if type(y) is Tracer:
        w, second, other = y._val, y.tangent, y.aval
        if y._trace is not trace:
            return None
        if (aval is not None and (aval is other or aval == other)) or (type(v) in floats and type(w) in floats):
            ans = kernel(v, w)
        elif type(aval) is type(other) is tuple or (aval := common_aval(v, w, floats)) is None:
            return jvp_mixed(x, y)
        elif type(v) in PLAIN and type(w) in PLAIN:
            ans = kernel(v, w)
        else:
            ans = call_lowered(v, w)
            aval = None
        {check}
        x, y = v, w
        first, ct = {dx}, second
        return tracer_of(ans, trace, {first_and_dy}, {aval})
    if aval is not None and (type(y) is float or type(y) is int):
        c = zero_dim_doubles[y] if converts and aval is not float64 else y
    elif (c := promoted_constant(v, y, aval, floats, converts)) is None:
        return jvp_mixed(x, y)
    x, y = v, c
    ans = kernel(x, y) if type(x) is not Tracer else call_lowered(x, y)
    {check}
    return tracer_of(ans, trace, {dx}, {aval})
"""

#: Forward mode for two arrays of one dtype that may broadcast, or complex numbers; the first one may be a constant.
_JVP_MIXED = """
def operation(x, y):
    left, right = type(x) is Tracer, type(y) is Tracer
    if left and right and x._trace is not y._trace:
        return None
    v, w, trace = x._val if left else x, y._val if right else y, (x if left else y)._trace
    if not trace.fast:
        return None
    if type(v) in ARRAYS and type(w) in ARRAYS and v.dtype is w.dtype and v.dtype in REAL:
        if type(v) is type(w) is float64:  # operators may round numbers differently
            return None
        ans = kernel(v, w)
        if ans.dtype is not v.dtype:
            return None
    elif {complex}:
        ans = call_lowered(v, w) if type(v) is Tracer or type(w) is Tracer else plain(v, w)
    else:
        return None
    ct, second = x.tangent if left else None, y.tangent if right else None
    x, y, total = v, w, None
    if left:
        total = {dx}
    if right:
        ct = second
        total = {total_and_dy} if left else {dy}
    aval = ans.shape if type(ans) is ndarray and ans.dtype is DOUBLE else None
    return tracer_of(ans, trace, broadcast_tangent(total, ans), aval)
"""


def in_columns(ufunc: np.ufunc, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``kernel``, which computes the binary ``ufunc``: short rows go column by column, see ``row_sums``.

    Example:
        >>> minus = in_columns(np.subtract, np.subtract)
        >>> points, centre = np.ones((5000, 2)), np.array([1.0, 2.0])
        >>> bool((minus(points, centre) == points - centre).all())
        True
    """

    def compute(v: Any, w: Any) -> Any:
        if type(v) is type(w) is ndarray and v.size + w.size > 128 and v.shape != w.shape and _have_short_rows(v, w):
            try:
                shape = np.broadcast(v, w).shape
            except ValueError:  # the kernel raises its own error
                return kernel(v, w)
            if prod(shape) >= MANY_ROWS:
                ans = np.empty(shape, v.dtype)
                for i in range(shape[-1]):
                    left, right = (x[..., i if x.shape[-1] > 1 else 0] for x in (v, w))
                    ufunc(left, right, out=ans[..., i])
                return ans
        return kernel(v, w)

    return compute


def _have_short_rows(v: ndarray, w: ndarray) -> bool:
    """Whether two arrays have short rows and a C-contiguous result."""
    return (
        v.ndim > 0 < w.ndim
        and max(v.shape[-1], w.shape[-1]) in SHORT_ROWS
        and v.dtype is w.dtype
        and v.dtype in REAL
        and v.flags.c_contiguous
        and w.flags.c_contiguous
    )


def _make_binary(primitive: Primitive, rules: _Rules, operator: Callable[..., Any] | None) -> Operation:
    """Make the function of two arguments, and the functions it calls in forward mode and for broadcasting."""
    plain = primitive.kernel(np)
    kernel = operator or plain
    in_any_shape = in_columns(plain, kernel) if isinstance(plain, np.ufunc) else kernel
    primitive.prefer(in_any_shape, 2)

    def made(template: str, texts: dict[str, str], leave: str, **values: Any) -> Any:
        """Fill a template. NumPy's functions keep the dtype, except powers of floats; other results are checked."""
        own = primitive.impl is None
        other = _FOREIGN if not own else _COMPLEX if rules.powers else ""
        check = f"if {other}:\n            {leave}" if leave and other else ""
        text = template.format(check=check, aval=_OWN_AVAL if own else _AVAL, **texts)
        return make_function(primitive.name, text, _SHARED, **values)

    vjps, records = _record_expressions(rules, mixed=False)
    vjps_mixed, records_mixed = _record_expressions(rules, mixed=True)
    binary_operation = lambda x, y: call(x, y)
    call_lowered = (lambda x, y: rules.compute((x, y))) if rules.powers else binary_operation
    constants = {
        "floats": frozenset((float, float64) if operator in _PYTHON_OPERATORS else (float64,)),
        "converts": rules.converts,
    }
    records_same = {n + "_same": text for n, text in records.items()}
    takes_complex = "False" if primitive.impl is not None or rules.powers else "are_complex(v, left, w, right)"
    mixed = made(
        _MIXED,
        {**records_mixed, **records_same, "complex": takes_complex},
        "",
        plain=plain,
        primitive=primitive,
        kernel=kernel,
        kernel_in_columns=in_any_shape,
        call_lowered=call_lowered,
        binary_operation=binary_operation,
        **vjps,
        **vjps_mixed,
    )
    dx, dy = rules.partial_rules
    tangents = {"dx": dx.forward, "dy": dy.forward}
    tangents |= {f"{total}_and_dy": dy.added_to(total) for total in ("first", "total")}
    in_mixed = {**tangents, "complex": takes_complex}
    jvp_mixed = made(
        _JVP_MIXED, in_mixed, "", kernel=in_any_shape, plain=plain, call_lowered=call_lowered, **rules.functions
    )
    jvp = made(
        _JVP,
        tangents,
        "    return None",
        call_lowered=call_lowered,
        kernel=kernel,
        jvp_mixed=jvp_mixed,
        **constants,
        **rules.functions,
    )
    call: Operation = made(
        _BINARY,
        {**records, "call_lowered": "call_lowered" if rules.powers else "operation"},
        "    return bind_checked(primitive, (x, y), {})",
        primitive=primitive,
        kernel=kernel,
        plain=plain,
        jvp=jvp,
        jvp_mixed=jvp_mixed,
        mixed=mixed,
        call_lowered=call_lowered,
        **constants,
        **vjps,
    )
    return call


def _record_expressions(rules: _Rules, mixed: bool) -> tuple[dict[str, VJP], dict[str, str]]:
    """Return the VJP rules by traced arguments, and the expressions of their records, under their template names."""
    vjps, texts = {}, {}
    likes = {0: "(v.shape, v.dtype)", 1: "(w.shape, w.dtype)"}
    for operands, traced in (("both", (0, 1)), ("left", (0,)), ("right", (1,))):
        vjp, names = rules.vjp(traced, mixed)
        name = f"vjp_{operands}_mixed" if mixed else f"vjp_{operands}"
        saved = "".join([{"x": ", v", "y": ", w", "ans": ", ans"}[n] for n in names])
        if mixed and operands == "both":
            saved += f", None if first_same else {likes[0]}, None if second_same else {likes[1]}"
        elif mixed:
            saved += f", {likes[traced[0]]}"
        vjps[name] = vjp
        texts[f"record_{operands}"] = RECORD.format(
            vjp=name, parents="parent, second" if operands == "both" else "parent", saved=saved
        )
    return vjps, texts
