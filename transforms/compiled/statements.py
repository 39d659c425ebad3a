"""NumPy statements for operations: usually a call, but more for views, products, sums and writes.

A statement is a list of *parts*: pieces of text, and names ``(kind, number)``: ``i`` inputs, ``v`` values, ``b`` slots,
``t`` memory of the call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from funcgrad.core import DOUBLE, REAL
from funcgrad.primitives.index_spec import ARRAY, WholeSpec
from funcgrad.transforms.compiled.graphs import Const, Graph, Op
from funcgrad.transforms.compiled.plain import ARITHMETIC, MATH, has_same_bits
from funcgrad.transforms.compiled.storage import MAX_FILLED, Storage, is_ufunc

ndarray = np.ndarray
Parts: TypeAlias = list[Any]
_NUMBERS = (float, int, np.float64)
_COMPLEX_OR_SINGLE = frozenset((np.complex128, np.complex64, np.float32))
_SCALARS = _COMPLEX_OR_SINGLE | frozenset((np.float64, int, float))
#: Python's operators that round numbers like NumPy's functions.
_INFIX = {
    "multiply": "*", "add": "+", "subtract": "-", "divide": "/", "greater": ">", "less": "<", "greater_equal": ">=",
    "less_equal": "<=", "equal": "==", "not_equal": "!=", "remainder": "%", "floor_divide": "//",
}  # fmt: skip
_OPERATORS = frozenset((*_INFIX, "negative", "one_minus_square"))
_PYTHON_ARITHMETIC = {"multiply": " * ", "add": " + ", "subtract": " - "}
#: Functions that treat an array without axes like the number in it.
_ACCEPT_ZERO_DIM = frozenset((*_INFIX, "maximum", "minimum"))
#: Statement by which a program gives up. Saved modules leave it out.
RAISE_NOT_FINITE = "raise NotFinite"
_MAX_INLINE_PARTS = 11  # largest number of parts of an expression that is written into another


class Writer:
    """Writer of the operations of a graph.

    Attributes:
        lines: statements, each with the user's line.
        python_numbers: the values that are Python numbers in the program.
        python_floats: those among them that are NumPy numbers in the function, see ``plain``.
        namespace: the objects that the text refers to by name, besides its own variables.
        end_of_questions: the number of lines up to the last question.
    """

    def __init__(
        self,
        graph: Graph,
        storage: Storage,
        exact: bool,
        python_floats: set[int],
        finite_checks: Mapping[int, Sequence[int]],
    ) -> None:
        self.graph, self.storage, self.exact = graph, storage, exact
        self.lines: list[tuple[Parts, Any]] = []
        self.namespace: dict[str, Any] = {}
        self.names: dict[int, Parts] = {i: [("i", i)] for i in range(graph.inputs)}
        self.consts: dict[Any, str] = {}
        self.literals: dict[Const, str] = {}
        self.line: Any = None
        self.python_numbers = {i for i in range(graph.inputs) if graph.facts[i].kind in (float, complex)}
        self.python_floats, self.finite_checks = python_floats, finite_checks
        self.end_of_questions = 0

    def write(self) -> None:
        """Write the whole program but the statement that returns."""
        for i in range(self.graph.inputs):
            if i in self.python_floats or (not self.exact and self.graph.facts[i].kind is np.float64):
                self.add_statement([("i", i), " = float(", ("i", i), ")"])
                self.python_numbers.add(i)
        for i in sorted(self.storage.copied):
            slot = self.storage.slot(self.graph.shapes[i], self.graph.dtypes[i])
            self.add_statement(self.call(np.copyto, [("b", slot)], [("i", i)]))
            self.names[i] = [("b", slot)]
        last_uses = self.storage.last_uses
        for n, op in enumerate(self.graph.ops):
            if op.outs:
                self.line = op.line
            self.operation(n, op)
            for name in self.storage.release_after(n) if n in last_uses else ():
                self.add_statement(["del ", name])

    # ---- names ---------------------------------------------------------------------------------------------------

    def add_statement(self, parts: Parts) -> None:
        """Add a statement."""
        self.lines.append((parts, self.line))

    def assign(self, v: int, expression: Parts) -> None:
        """Add a statement that assigns the value ``v``."""
        kind = self.graph.facts[v].kind
        if (kind in (float, complex) or v in self.python_floats) and v not in self.python_numbers:
            expression = ["complex(" if kind is complex else "float(", *expression, ")"]
            self.python_numbers.add(v)
        self.names[v] = [("v", v)]
        self.add_statement([("v", v), " = ", *expression])

    def register_name(self, name: str, value: Any) -> str:
        """Return the name of ``value`` in the text: ``name``, or a longer one if that is taken."""
        held = self.namespace.setdefault(name, value)
        if held is not value:  # two operations with one name
            return self.register_name(name + "_", value)
        return name

    def constant_name(self, value: Any, key: Any) -> str:
        """Return the name of a constant."""
        name = self.consts.get(key)
        if name is None:
            name = self.consts[key] = f"c{len(self.consts)}"
            self.namespace[name] = value
        return name

    def constant_text(self, c: Const, dtype_of_others: Any = None) -> str:
        """Return the text of a constant: an array if ``dtype_of_others`` is float64, a number if it is "number".

        NumPy accepts an array without axes faster than a Python number, which it has to convert first.
        """
        value = c.value
        if dtype_of_others == "number" and type(value) is ndarray and not c.is_reread:
            value = float(value)
        if type(value) in _NUMBERS and dtype_of_others is DOUBLE:
            return self.constant_name(np.array(float(value)), ("array", repr(float(value))))
        if dtype_of_others == "number" and type(value) is np.float64:
            value = float(value)
        if type(value) is bool or type(value) is int or (type(value) is float and math.isfinite(value)):
            return f"({value!r})" if value < 0 or math.copysign(1.0, value) < 0 else repr(value)
        return self.constant_name(value, c.key)

    def argument_text(self, a: Any, dtype_of_others: Any = None) -> Parts:
        """Return the text of an argument."""
        return list(self.names[a]) if type(a) is int else [self.constant_text(a, dtype_of_others)]

    def call(self, fun: Any, *words: Parts, name: str = "") -> Parts:
        """Return a call of a NumPy function, or of another function under a ``name``."""
        text = name or "np_" + fun.__name__
        parts: Parts = [self.register_name(text, fun), "("]
        for n, word in enumerate(words):
            parts += [", ", *word] if n else word
        return [*parts, ")"]

    def new_array(self, fun: Any, v: int) -> Parts:
        """Return a call of ``np.empty`` or ``np.zeros`` for the value ``v``."""
        dtype = self.graph.dtypes[v]
        return self.call(fun, [repr(self.graph.shapes[v])], [self.constant_name(dtype, ("dtype", dtype.str))])

    def static_text(self, value: Any) -> str:
        """Return the text of a static parameter."""
        if _is_literal(value):
            return repr(value)
        try:
            key: Any = ("param", type(value), value)
            hash(key)
        except TypeError:
            key = ("param", id(value))
        return self.constant_name(value, key)

    # ---- statements ----------------------------------------------------------------------------------------------

    def operation(self, n: int, op: Op) -> None:
        """Write an operation or a question."""
        if op.outs and self._write_number(op):
            return
        handler = HANDLERS.get(op.name)
        if handler is None and op.name in ARRAY_HANDLERS and self.graph.is_array(op.args[0]):
            handler = ARRAY_HANDLERS[op.name]
        if handler is not None and handler(self, n, op):
            return
        if is_ufunc(op):
            double = self.dtype_of_arrays(op)
            words = [self.argument_text(a, double) for a in op.args]
            self.write_into(n, op, self.call(getattr(np, op.name), *words), may_overwrite=True)
        else:
            self._kernel(op)
        if op.primitive.data_dependent:
            for v in op.outs:
                expected = (self.graph.shapes[v], self.graph.dtypes[v])
                held = self.constant_name(expected, ("like", expected[0], expected[1].str))
                self.add_statement(["if has_other_aval(", *self.names[v], f", {held}): raise PathChanged"])

    def dtype_of_arrays(self, op: Op) -> Any:
        """Return float64 if all values with axes have that dtype, and there are such values; else None."""
        if op.name not in _ACCEPT_ZERO_DIM:
            return None
        dtypes = [self.graph.dtypes[a] for a in op.args if type(a) is int and self.graph.shapes[a]]
        return DOUBLE if dtypes and all(d is DOUBLE for d in dtypes) else None

    def _write_number(self, op: Op) -> bool:
        """Write an operation of numbers with Python's operators, inside the only statement that uses it if possible."""
        args, facts, python = op.args, self.graph.facts, True
        for a in args:
            if type(a) is int:
                if not facts[a].is_number:
                    return self._write_complex_number(op)
                python = python and a in self.python_numbers
            elif not a.is_number:
                return self._write_complex_number(op)
        v = op.outs[0]
        if python and op.name in _PYTHON_ARITHMETIC and v in self.python_floats:  # the most common case
            left, right = args
            words = self.names[left] if type(left) is int else [self._number_text(left)]
            more = self.names[right] if type(right) is int else [self._number_text(right)]
            self.python_numbers.add(v)
            self._assign_or_inline(v, [*words, _PYTHON_ARITHMETIC[op.name], *more], True)
            return True
        return self._write_number_call(op, python) if args else False

    def _write_number_call(self, op: Op, python: bool) -> bool:
        """Write another operation of numbers; ``python`` says whether all its values are Python numbers."""
        v, fact = op.outs[0], self.graph.facts[op.outs[0]]
        plainly = v in self.python_floats
        if self.exact:
            python = python and np.float64 not in [type(a.value) for a in op.args if type(a) is Const]
        if python and self.exact and fact.kind is np.float64 and op.name in _OPERATORS and not plainly:
            return False
        if op.name in _INFIX:
            mixed = not self.exact or plainly or any(type(a) is int and a not in self.python_numbers for a in op.args)
            dtype_of_others = "number" if mixed else None
            left, right = [self.argument_text(a, dtype_of_others) for a in op.args]
            found = [*left, f" {_INFIX[op.name]} ", *right]
        elif op.name == "negative":
            found = ["-", *self.argument_text(op.args[0], "number")]
        elif op.name == "absolute" and (plainly or not python):
            found = ["abs(", *self.argument_text(op.args[0], "number"), ")"]
        elif op.name == "one_minus_square":
            word = self.argument_text(op.args[0], "number")
            if len(word) > 1:
                return False
            found = ["1.0 - ", *word, " * ", *word]
        elif op.name in MATH and fact.kind is np.float64 and (not self.exact or (plainly and has_same_bits(op.name))):
            plainly, python = False, True
            self.python_numbers.add(v)
            words = [self.argument_text(a, "number") for a in op.args]
            found = self.call(MATH[op.name], *words, name="math_" + op.name)
        elif is_ufunc(op) and fact.kind is np.float64:
            python = False
            found = self.call(getattr(np, op.name), *[self.argument_text(a, "number") for a in op.args])
        else:
            return False
        number = fact.kind is float or fact.kind is np.float64
        if plainly and not (python and (op.name in ARITHMETIC or op.name == "absolute")):
            found, python = ["float(", *found, ")"], True
        if python and number and (fact.kind is float or plainly or not self.exact):
            self.python_numbers.add(v)
        self._assign_or_inline(v, found, number)
        return True

    def _assign_or_inline(self, v: int, found: Parts, number: bool) -> None:
        """Name a number: by its expression, if that is short and only one statement uses the number."""
        if number and self.storage.uses[v] == 1 and len(found) <= _MAX_INLINE_PARTS and v not in self.storage.results:
            self.names[v] = ["(", *found, ")"]
        else:
            self.assign(v, found)

    def _number_text(self, c: Const) -> str:
        """Return the text of a number next to numbers."""
        word = self.literals.get(c)
        if word is None:
            word = self.literals[c] = self.constant_text(c, "number")
        return word

    def _write_complex_number(self, op: Op) -> bool:
        """Write an operator of complex or float32 numbers; no complex product: operators round it differently."""
        kinds = [self.graph.facts[a].kind if type(a) is int else type(a.value) for a in op.args]
        symbol = "*" if op.name == "infix_multiply" else _INFIX.get(op.name)
        if symbol is None or not _SCALARS.issuperset(kinds) or not _COMPLEX_OR_SINGLE.intersection(kinds):
            return False
        if op.name == "multiply" and self.graph.dtypes[op.outs[0]].kind == "c":
            return False
        left, right = [self.argument_text(a) for a in op.args]
        self.assign(op.outs[0], [*left, f" {symbol} ", *right])
        return True

    def write_into(self, n: int, op: Op, found: Parts, may_overwrite: bool = False, before: str = ", ") -> None:
        """Write the call ``found``, with the memory for its result as last argument, after the text ``before``."""
        v, destination = op.outs[0], self.storage.destination(n, op, may_overwrite)
        if destination is None:
            self.assign(v, found)
            return
        where, exists = destination
        self.names[v] = [where]
        keyword = "out=" if found[0] in ("np_maximum", "np_minimum") else ""  # not by position: deprecated there
        self.add_statement([*found[:-1], before + keyword, where, ")"] if exists else [where, " = ", *found])

    def result_memory(self, n: int, op: Op, may_overwrite: bool = False) -> tuple[Any, bool]:
        """Return the name of the array for the first result, and whether the array exists already."""
        where, exists = self.storage.destination(n, op, may_overwrite) or (("v", op.outs[0]), False)
        self.names[op.outs[0]] = [where]
        return where, exists

    def _kernel(self, op: Op) -> None:
        """Write a call of the function that computes the primitive."""
        words = [self.argument_text(a) for a in op.args]
        words += [[f"{name}={self.static_text(value)}"] for name, value in op.params.items()]
        name = "np_" + op.name if op.primitive.impl is None else "k_" + op.name
        found = self.call(op.primitive.kernel(np), *words, name=name)
        if not op.primitive.multiple:
            self.assign(op.outs[0], found)
            return
        targets: Parts = []
        for v in op.outs:
            self.names[v] = [("v", v)]
            targets += [("v", v), ", "]
        self.add_statement([*targets[:-1], ", = " if len(op.outs) == 1 else " = ", *found])

    def view(self, v: int, x: int, expression: str) -> None:
        """Write ``v``, the view ``expression`` of ``x``; a view of a slot is made only once."""
        base = self.argument_text(x)
        if len(base) == 1 and base[0][0] == "b" and self.graph.facts[v].kind is ndarray:
            self.names[v] = [("b", self.storage.view(base[0][1], "x" + expression))]
        else:
            self.assign(v, [*base, expression])


def _is_literal(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_literal, value))
    return value is None or value is ... or type(value) in (bool, int, str, slice)


def _question(w: Writer, n: int, op: Op) -> bool:
    """Write checks that raise an exception where the function would take another path."""
    (v,), answer = op.values, op.params["answer"]
    word = w.names[v]
    for x in w.finite_checks.get(v, ()):
        w.add_statement(["if ", *w.names[x], " - ", *w.names[x], ": ", RAISE_NOT_FINITE])
    if type(answer) is bool:
        test = ["not ", *word] if answer else word
    elif type(answer) is int:
        as_asked = "index(" if w.graph.dtypes[v].kind in "iub" else "to_int("
        test = [as_asked, *word, f") != {answer!r}"]
    else:
        key = repr(answer) if type(answer) is float or type(answer) is complex else id(answer)
        test = ["differs(", *word, f", {w.constant_name(answer, ('answer', key))})"]
    w.add_statement(["if ", *test, ": raise PathChanged"])
    w.end_of_questions = len(w.lines)
    return True


_ONES = 64
_SUM = np.add.reduce  # one object, because each lookup makes another
_PARTS = 10_000


def _power(w: Writer, n: int, op: Op) -> bool:
    """Write a square, or a power by Python's operator, which may raise an error or be complex for Python numbers."""
    base, exponent = op.args
    number = type(exponent) is Const and type(exponent.value) in (int, float)
    array = w.graph.is_array(base)
    if number and array and exponent.value == 2 and w.graph.dtypes[base].kind == "f":
        w.write_into(n, op, w.call(np.square, w.argument_text(base)), may_overwrite=True)
    elif op.name == "infix_power" or (not w.exact and not array):
        w.assign(op.outs[0], [*w.argument_text(base), " ** ", *w.argument_text(exponent)])
    else:
        return False
    return True


def _isfinite(w: Writer, n: int, op: Op) -> bool:
    (x,) = op.args
    if type(x) is not int or not w.graph.facts[x].is_number or w.storage.uses[op.outs[0]] != 1:
        return False
    w.assign(op.outs[0], w.call(math.isfinite, w.argument_text(x, "number"), name="math_isfinite"))
    return True


def _infix(w: Writer, n: int, op: Op) -> bool:
    x, *y = [w.argument_text(a) for a in op.args]
    w.assign(op.outs[0], [*x, " * ", *y[0]] if y else ["abs(", *x, ")"])
    return True


def _one_minus_square(w: Writer, n: int, op: Op) -> bool:
    (x,) = op.args
    if w.graph.dtypes[x] is not DOUBLE:
        return False
    word = w.argument_text(x)
    w.write_into(n, op, w.call(np.multiply, word, word), may_overwrite=True)
    made = w.argument_text(op.outs[0])
    one = w.constant_name(np.array(1.0), ("array", repr(1.0)))
    w.add_statement(w.call(np.subtract, [one], made, made))
    return True


def _logistic(w: Writer, n: int, op: Op) -> bool:
    (x,) = op.args
    if w.graph.dtypes[x] not in REAL:
        return False
    where, exists = w.result_memory(n, op, may_overwrite=True)
    if exists:
        w.add_statement(w.call(logistic_into, w.argument_text(x), [where], name="k_logistic_into"))
    else:
        w.add_statement([where, " = ", *w.call(op.primitive.kernel(np), w.argument_text(x), name="k_logistic")])
    return True


def logistic_into(x: ndarray, out: ndarray) -> None:
    """Compute ``1 / (1 + exp(-x))`` into ``out``, by the steps of ``primitives.elementwise``."""
    small = x.size < 1_000 and x.item(x.argmin()) > -80.0
    np.negative(x, out)
    if small:
        np.exp(out, out)
    else:
        with np.errstate(over="ignore"):
            np.exp(out, out)
    np.add(out, 1.0, out)
    np.reciprocal(out, out)


def _matmul(w: Writer, n: int, op: Op) -> bool:
    shapes = [w.graph.shape(a) for a in op.args]
    first, second = [w.graph.dtypes[a] if type(a) is int else a.dtype for a in op.args]
    # as in ``primitives.products``, which tests the identity of dtypes: ``dot`` gives -0 where matmul adds 0
    if not all(1 <= len(s) <= 2 for s in shapes) or first is not second or first.char not in "fdFD":
        return False
    if all(math.prod(s) == 1 for s in shapes):
        return False
    x, y = [w.argument_text(a) for a in op.args]
    w.write_into(n, op, [*x, ".dot(", *y, ")"])
    return True


def _linear(w: Writer, n: int, op: Op) -> bool:
    """Write ``x @ y + z`` of two matrices and a vector, with the sum in place."""
    if not all(map(w.graph.is_array, op.args)):
        return False
    x, y, z = [w.argument_text(a) for a in op.args]
    w.write_into(n, op, [*x, ".dot(", *y, ")"])
    made = w.argument_text(op.outs[0])
    w.add_statement(w.call(np.add, made, z, made))
    return True


def _reduce_sum(w: Writer, n: int, op: Op) -> bool:
    (x,) = op.args
    shape, axis = w.graph.shape(x), op.params["axis"]
    short = len(shape) >= 2 and axis == (len(shape) - 1,) and 2 <= shape[-1] < 8 and math.prod(shape) >= 512
    if short or op.params.get("keepdims"):
        return False
    _write_sum(w, n, op, x, axis)
    return True


def _write_sum(w: Writer, n: int, op: Op, x: int, axis: Any) -> None:
    found = w.call(_SUM, w.argument_text(x), [repr(axis)], name="np_add_reduce")
    w.write_into(n, op, found, before=", None, ")


def _sum_over(w: Writer, n: int, op: Op) -> bool:
    """Write a sum as ``kinds.linear.fast_sum`` computes it, which depends on shapes and dtypes only."""
    (x,) = op.args
    shape, dtype, axis = w.graph.shapes[x], w.graph.dtypes[x], op.params["axis"]
    if math.prod(shape) >= 1024 or dtype.itemsize == 2:
        return False
    if dtype is DOUBLE and len(shape) <= 2 and axis == (0,) and shape[0] <= _ONES:
        ones = w.constant_name(np.ones(shape[0]), ("ones", shape[0]))
        w.write_into(n, op, [ones, ".dot(", *w.argument_text(x), ")"])
    else:
        _write_sum(w, n, op, x, axis)
    return True


def _scatter_sum(w: Writer, n: int, op: Op) -> bool:
    """Write zeros to which parts are added; the first part may be a whole array in place of the zeros."""
    specs, shape = op.params["specs"], op.params["shape"]
    if ARRAY in [e for spec in specs for e in spec] or not shape or len(specs) > _PARTS:
        return False
    v, parts = op.outs[0], list(zip(op.args, specs, strict=True))
    if type(specs[0]) is WholeSpec and _take_memory(w, n, v, op.args[0], op.args[1:]):
        where = w.names[v][0]
        del parts[0]
    elif type(specs[0]) is WholeSpec:
        first = w.argument_text(parts.pop(0)[0])
        where, exists = w.result_memory(n, op)
        w.add_statement(w.call(np.copyto, [where], first) if exists else [where, " = ", *first, ".copy()"])
    else:
        where, exists = w.result_memory(n, op)
        w.add_statement([where, ".fill(0)"] if exists else [where, " = ", *w.new_array(np.zeros, v)])
    for a, spec in parts:
        text = index_text(spec)
        if where[0] == "b" and any(type(e) is not int for e in spec):
            part: Parts = [("b", w.storage.view(where[1], "x" + text))]
            w.add_statement(w.call(np.add, part, w.argument_text(a), part))
        else:
            w.add_statement([where, text, " += ", *w.argument_text(a)])
    return True


def _reshape(w: Writer, n: int, op: Op) -> bool:
    (x,) = op.args
    if not w.graph.facts[x].contiguous:
        return False
    w.view(op.outs[0], x, f".reshape({op.params['to']!r})")
    return True


def _permute(w: Writer, n: int, op: Op) -> bool:
    (x,), axes = op.args, op.params["axes"]
    w.view(op.outs[0], x, ".T" if axes == (1, 0) else f".transpose({axes!r})")
    return True


def _entry(e: Any) -> str:
    if type(e) is tuple:
        start, stop, step = e
        return f"{'' if start is None else start}:{'' if stop is None else stop}" + (f":{step}" if step != 1 else "")
    return "..." if e is ... else repr(e)


def index_text(spec: Any) -> str:
    """Return a static index as Python code."""
    inner = ", ".join(map(_entry, spec))
    return f"[{inner}{',' if len(spec) == 1 and spec[0] is ... else ''}]" if spec else "[()]"


def _getitem(w: Writer, n: int, op: Op) -> bool:
    x, *arrays = op.args
    if not arrays:
        w.view(op.outs[0], x, index_text(op.params["spec"]))
        return True
    rest, words = iter(arrays), []
    for e in op.params["spec"]:
        words += [", ", *(w.argument_text(next(rest)) if e == ARRAY else [_entry(e)])]
    w.assign(op.outs[0], [*w.argument_text(x), "[", *words[1:], ",]" if len(op.params["spec"]) == 1 else "]"])
    return True


def _views(w: Writer, n: int, op: Op) -> bool:
    """Write ``split`` or ``unstack``: a view for each result that is used."""
    (x,), axis = op.args, op.params["axis"]
    at = op.params.get("at", ())
    stretches = [(start, stop, 1) for start, stop in zip(at, (*at[1:], w.graph.shapes[x][axis]), strict=False)]
    for v, entry in zip(op.outs, stretches or range(len(op.outs)), strict=True):
        if w.storage.uses[v]:
            w.view(v, x, index_text((*[(None, None, 1)] * axis, entry)))
    return True


def _broadcast_to(w: Writer, n: int, op: Op) -> bool:
    """Write a broadcast as in ``kinds.linear.broadcast_array``: few elements are filled in, for many a view is made."""
    (x,) = op.args
    to = op.params["to"]
    if type(x) is not int or math.prod(to) > MAX_FILLED or not to:
        return False
    if w.graph.facts[x].kind is ndarray and not w.graph.facts[x].contiguous and len(w.graph.shapes[x]) > 1:
        return False
    where, exists = w.result_memory(n, op)
    if not exists:
        w.add_statement([where, " = ", *w.new_array(np.empty, op.outs[0])])
    w.add_statement(w.call(np.copyto, [where], w.argument_text(x)))
    return True


def _concatenate(w: Writer, n: int, op: Op) -> bool:
    w.write_into(n, op, w.call(np.concatenate, _tuple(w, op), [repr(op.params["axis"])]))
    return True


def _stack(w: Writer, n: int, op: Op) -> bool:
    if not all(type(a) is int and w.graph.facts[a].kind is np.float64 for a in op.args):
        return False
    w.assign(op.outs[0], w.call(np.array, _tuple(w, op)))
    return True


def _tuple(w: Writer, op: Op) -> Parts:
    words: Parts = ["("]
    for a in op.args:
        words += [*w.argument_text(a), ", "]
    return [*words, ")"]


def _take_memory(w: Writer, n: int, v: int, x: Any, others: Sequence[Any]) -> bool:
    """Make ``v`` in the memory of the array ``x`` if nothing needs ``x`` any more; return whether that is possible.

    The other arguments must not share that memory.
    """
    if not w.graph.is_array(x) or x in others:
        return False
    storage, name = w.storage, w.names[x]
    if not (storage.owns_memory(x) and storage.is_last_use(x, n) and len(name) == 1 and x not in storage.outputs):
        return False
    if any(w.graph.is_array(a) and not storage.owns_memory(a) for a in others):
        return False
    alike = (w.graph.shapes[x], w.graph.dtypes[x]) == (w.graph.shapes[v], w.graph.dtypes[v])
    if not alike or w.graph.facts[x] != w.graph.facts[v] or (v in storage.escaping and name[0][0] == "b"):
        return False
    storage.take_over(v, x)
    w.names[v] = name
    return True


def _write(w: Writer, n: int, op: Op) -> bool:
    """Write ``x`` with ``y`` at an index, in the memory of ``x`` if nothing needs ``x`` any more."""
    x, y, *arrays = op.args
    v = op.outs[0]
    if arrays:
        return False
    text = index_text(op.params["spec"])
    if not _take_memory(w, n, v, x, (y,)):
        (where, exists), word = w.result_memory(n, op), w.argument_text(x)
        w.add_statement(w.call(np.copyto, [where], word) if exists else [where, " = ", *w.call(np.array, word)])
    w.add_statement([*w.names[v], text, " = ", *w.argument_text(y)])
    return True


#: ``handler(writer, number of the item, operation)`` writes the operation and returns whether it could.
HANDLERS: dict[str, Callable[[Writer, int, Op], bool]] = {
    "question": _question,
    "isfinite": _isfinite,
    "power": _power,
    "infix_power": _power,
    "infix_multiply": _infix,
    "infix_absolute": _infix,
    "matmul": _matmul,
    "scatter_sum": _scatter_sum,
    "broadcast_to": _broadcast_to,
    "concatenate": _concatenate,
    "stack": _stack,
}
#: The same for operations that have a statement of their own only if the first argument is an array.
ARRAY_HANDLERS: dict[str, Callable[[Writer, int, Op], bool]] = {
    "one_minus_square": _one_minus_square,
    "logistic": _logistic,
    "linear": _linear,
    "reduce_sum": _reduce_sum,
    "sum_over": _sum_over,
    "reshape": _reshape,
    "permute": _permute,
    "getitem": _getitem,
    "split": _views,
    "unstack": _views,
    "write": _write,
}
