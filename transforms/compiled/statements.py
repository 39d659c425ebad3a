"""A statement of NumPy for each operation.

A statement is a list of *parts*: pieces of text, and names ``(kind, number)``: ``i`` inputs, ``v`` values, ``b`` slots,
``t`` memory of the call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from funcgrad.transforms.compiled.graphs import Ask, Const, Graph, Op
from funcgrad.transforms.compiled.mathematics import MATH, has_same_bits
from funcgrad.transforms.compiled.plain import ARITHMETIC
from funcgrad.transforms.compiled.storage import Storage, is_ufunc

__all__ = ["NO_NUMBER", "Parts", "Writer"]

ndarray = np.ndarray
Parts: TypeAlias = list[Any]
_DOUBLE = np.dtype(np.float64)
_NUMBERS = (float, int, np.float64)
_OTHERS = frozenset((np.complex128, np.complex64, np.float32))
_SCALARS = _OTHERS | frozenset((np.float64, int, float))
#: What Python's operators compute of numbers as NumPy's functions do.
_INFIX = {
    "multiply": "*", "add": "+", "subtract": "-", "divide": "/", "greater": ">", "less": "<", "greater_equal": ">=",
    "less_equal": "<=", "equal": "==", "not_equal": "!=",
}  # fmt: skip
_OPERATORS = frozenset((*_INFIX, "negative", "one_minus_square"))
_CLOSED = {"multiply": " * ", "add": " + ", "subtract": " - "}
#: Functions that take a number as an array without axes for what it is.
_MEETING = frozenset((*_INFIX, "maximum", "minimum"))
#: The statement by which a program gives up, which stands in no program that runs by itself.
NO_NUMBER = "raise NoNumber"
_LONGEST = 11  # parts of an expression that is written into another


class Writer:
    """Writes the operations of a graph.

    Attributes:
        lines: statements, each with the user's line.
        python: the values that are numbers of Python's when the text is run.
        plain: those among them that the function has as NumPy's, see ``plain``.
        space: what the text refers to by name, besides its own variables.
        asked: how many lines there are up to the last question.
    """

    def __init__(
        self,
        graph: Graph,
        storage: Storage,
        handlers: Mapping[str, Any],
        exact: bool,
        plain: set[int],
        looks: Mapping[int, Sequence[int]],
    ) -> None:
        self.graph, self.storage, self.handlers, self.exact = graph, storage, handlers, exact
        self.lines: list[tuple[Parts, Any]] = []
        self.space: dict[str, Any] = {}
        self.names: dict[int, Parts] = {i: [("i", i)] for i in range(graph.inputs)}
        self.consts: dict[Any, str] = {}
        self.literals: dict[Const, str] = {}
        self.line: Any = None
        self.python = {i for i in range(graph.inputs) if graph.facts[i].kind in (float, complex)}
        self.plain, self.looks = plain, looks
        self.asked = 0

    def write(self) -> None:
        """Write all."""
        for i in range(self.graph.inputs):
            if i in self.plain or (not self.exact and self.graph.facts[i].kind is np.float64):
                self.say([("i", i), " = float(", ("i", i), ")"])
                self.python.add(i)
        for i in sorted(self.storage.copied):
            slot = self.storage.slot(self.graph.shapes[i], self.graph.dtypes[i])
            self.say(self.call(np.copyto, [("b", slot)], [("i", i)]))
            self.names[i] = [("b", slot)]
        ends = self.storage.ends
        for n, item in enumerate(self.graph.items):
            if type(item) is Ask:
                self.ask(item)
            else:
                self.line = item.line
                self.operation(n, item)
            for name in self.storage.over(n) if n in ends else ():
                self.say(["del ", name])

    # ---- names ---------------------------------------------------------------------------------------------------

    def say(self, parts: Parts) -> None:
        """Add a statement."""
        self.lines.append((parts, self.line))

    def bind(self, v: int, expression: Parts) -> None:
        """Add a statement that gives the value ``v`` its name."""
        kind = self.graph.facts[v].kind
        if (kind in (float, complex) or v in self.plain) and v not in self.python:
            expression = ["complex(" if kind is complex else "float(", *expression, ")"]
            self.python.add(v)
        self.names[v] = [("v", v)]
        self.say([("v", v), " = ", *expression])

    def refer(self, name: str, value: Any) -> str:
        """``name``, which stands for ``value`` in the text."""
        held = self.space.setdefault(name, value)
        if held is not value:  # two operations of one name
            return self.refer(name + "_", value)
        return name

    def held(self, value: Any, key: Any) -> str:
        """The name of a constant."""
        name = self.consts.get(key)
        if name is None:
            name = self.consts[key] = f"c{len(self.consts)}"
            self.space[name] = value
        return name

    def const(self, c: Const, beside: Any = None) -> str:
        """A constant in the text: ``beside`` arrays of doubles as an array, beside numbers as a number.

        NumPy takes an array without axes sooner than a number of Python's, which it has to look at first.
        """
        value = c.value
        if beside == "number" and type(value) is ndarray and not c.live:
            value = float(value)
        if type(value) in _NUMBERS and beside is _DOUBLE:
            return self.held(np.array(float(value)), ("array", repr(float(value))))
        if beside == "number" and type(value) is np.float64:
            value = float(value)
        if type(value) is bool or type(value) is int or (type(value) is float and math.isfinite(value)):
            return f"({value!r})" if value < 0 or math.copysign(1.0, value) < 0 else repr(value)
        return self.held(value, c.key)

    def arg(self, a: Any, beside: Any = None) -> Parts:
        """An argument in the text."""
        return list(self.names[a]) if type(a) is int else [self.const(a, beside)]

    def call(self, fun: Any, *words: Parts, name: str = "") -> Parts:
        """A call of a function of NumPy's, or of another under a ``name``."""
        text = name or "np_" + fun.__name__
        parts: Parts = [self.refer(text, fun), "("]
        for n, word in enumerate(words):
            parts += [", ", *word] if n else word
        return [*parts, ")"]

    def literal(self, value: Any) -> str:
        """A static parameter in the text."""
        if _is_literal(value):
            return repr(value)
        try:
            key: Any = ("param", type(value), value)
            hash(key)
        except TypeError:
            key = ("param", id(value))
        return self.held(value, key)

    # ---- statements ----------------------------------------------------------------------------------------------

    def ask(self, item: Ask) -> None:
        """Raise where the function would go another way."""
        word, answer = self.names[item.value], item.answer
        for v in self.looks.get(item.value, ()):
            self.say(["if ", *self.names[v], " - ", *self.names[v], ": ", NO_NUMBER])
        if type(answer) is bool:
            test = ["not ", *word] if answer else word
        elif type(answer) is int:
            test = ["index(", *word, f") != {answer!r}"]
        elif type(answer) is float or type(answer) is complex:
            test = ["differs(", *word, f", {self.held(answer, ('answer', repr(answer)))})"]
        else:
            test = ["differs(", *word, f", {self.held(answer, ('answer', id(answer)))})"]
        self.say(["if ", *test, ": raise Otherwise"])
        self.asked = len(self.lines)

    def operation(self, n: int, op: Op) -> None:
        """Write an operation."""
        if self._number(op):
            return
        handler = self.handlers.get(op.name)
        if handler is not None and handler(self, n, op):
            return
        if is_ufunc(op):
            double = self.beside(op)
            self.into(n, op, getattr(np, op.name), *[self.arg(a, double) for a in op.args], over=True)
        else:
            self._kernel(op)
        if op.primitive.loose:
            for v in op.outs:
                expected = (self.graph.shapes[v], self.graph.dtypes[v])
                held = self.held(expected, ("like", expected[0], expected[1].str))
                self.say(["if unlike(", *self.names[v], f", {held}): raise Otherwise"])

    def beside(self, op: Op) -> Any:
        """The dtype of doubles where an argument with axes has it, and all others that have a dtype have it too."""
        if op.name not in _MEETING:
            return None
        dtypes = [self.graph.dtypes[a] for a in op.args if type(a) is int and self.graph.shapes[a]]
        return _DOUBLE if dtypes and all(d is _DOUBLE for d in dtypes) else None

    def _number(self, op: Op) -> bool:
        """Write an operation of numbers with Python's operators; into the statement that needs it, if only one does."""
        v, args, numbers, python = op.outs[0], op.args, self.graph.numbers, True
        for a in args:
            if type(a) is int:
                if not numbers[a]:
                    return self._other_number(op)
                python = python and a in self.python
            elif not a.is_number:
                return self._other_number(op)
        if python and op.name in _CLOSED and v in self.plain:  # the commonest
            left, right = args
            words = self.names[left] if type(left) is int else [self._literal(left)]
            more = self.names[right] if type(right) is int else [self._literal(right)]
            self.python.add(v)
            self._give(v, [*words, _CLOSED[op.name], *more], True)
            return True
        return self._made_of_numbers(op, python) if args else False

    def _made_of_numbers(self, op: Op, python: bool) -> bool:
        """The same of others: ``python`` says whether all values are numbers of Python's."""
        v, fact = op.outs[0], self.graph.facts[op.outs[0]]
        plainly = v in self.plain
        if self.exact:
            python = python and np.float64 not in [type(a.value) for a in op.args if type(a) is Const]
        if python and self.exact and fact.kind is np.float64 and op.name in _OPERATORS and not plainly:
            return False
        if op.name in _INFIX:
            mixed = not self.exact or plainly or any(type(a) is int and a not in self.python for a in op.args)
            beside = "number" if mixed else None
            left, right = [self.arg(a, beside) for a in op.args]
            found = [*left, f" {_INFIX[op.name]} ", *right]
        elif op.name == "negative":
            found = ["-", *self.arg(op.args[0], "number")]
        elif op.name == "absolute" and (plainly or not python):
            found = ["abs(", *self.arg(op.args[0], "number"), ")"]
        elif op.name == "one_minus_square":
            word = self.arg(op.args[0], "number")
            if len(word) > 1:
                return False
            found = ["1.0 - ", *word, " * ", *word]
        elif op.name in MATH and fact.kind is np.float64 and (not self.exact or (plainly and has_same_bits(op.name))):
            plainly, python = False, True
            self.python.add(v)
            found = self.call(MATH[op.name], *[self.arg(a, "number") for a in op.args], name="math_" + op.name)
        elif is_ufunc(op) and fact.kind is np.float64:
            python = False
            found = self.call(getattr(np, op.name), *[self.arg(a, "number") for a in op.args])
        else:
            return False
        number = fact.kind is float or fact.kind is np.float64
        if plainly and not (python and (op.name in ARITHMETIC or op.name == "absolute")):
            found, python = ["float(", *found, ")"], True
        if python and number and (fact.kind is float or plainly or not self.exact):
            self.python.add(v)
        self._give(v, found, number)
        return True

    def _give(self, v: int, found: Parts, number: bool) -> None:
        """Name a number: by what it is made of, where that is short and one statement needs it."""
        if number and self.storage.uses[v] == 1 and len(found) <= _LONGEST and v not in self.storage.results:
            self.names[v] = ["(", *found, ")"]
        else:
            self.bind(v, found)

    def _literal(self, c: Const) -> str:
        """A number in the text, beside numbers."""
        word = self.literals.get(c)
        if word is None:
            word = self.literals[c] = self.const(c, "number")
        return word

    def _other_number(self, op: Op) -> bool:
        """The same of complex numbers and of single precision: NumPy's operators round products otherwise."""
        kinds = [self.graph.facts[a].kind if type(a) is int else type(a.value) for a in op.args]
        symbol = "*" if op.name == "infix_multiply" else _INFIX.get(op.name)
        if symbol is None or not _SCALARS.issuperset(kinds) or not _OTHERS.intersection(kinds):
            return False
        if op.name == "multiply" and self.graph.dtypes[op.outs[0]].kind == "c":
            return False
        left, right = [self.arg(a) for a in op.args]
        self.bind(op.outs[0], [*left, f" {symbol} ", *right])
        return True

    def into(self, n: int, op: Op, fun: Any, *words: Parts, over: bool, name: str = "") -> None:
        """Write a call that puts its result where it belongs: ``fun(*words, out)``."""
        self.put(n, op, self.call(fun, *words, name=name), over)

    def put(self, n: int, op: Op, found: Parts, over: bool) -> None:
        """Write the call ``found``, whose last argument may be the memory for its result."""
        v, place = op.outs[0], self.storage.place(n, op, over)
        if place is None:
            self.bind(v, found)
            return
        where, there = place
        self.names[v] = [where]
        keyword = "out=" if found[0] in ("np_maximum", "np_minimum") else ""  # more positions are deprecated there
        self.say([*found[:-1], ", " + keyword, where, ")"] if there else [where, " = ", *found])

    def _kernel(self, op: Op) -> None:
        """Write a call of the function that computes the primitive."""
        words = [self.arg(a) for a in op.args]
        words += [[f"{name}={self.literal(value)}"] for name, value in op.params.items()]
        name = "np_" + op.name if op.primitive.impl is None else "k_" + op.name
        found = self.call(op.primitive.kernel(np), *words, name=name)
        if not op.primitive.multiple:
            self.bind(op.outs[0], found)
            return
        targets: Parts = []
        for v in op.outs:
            self.names[v] = [("v", v)]
            targets += [("v", v), ", "]
        self.say([*targets[:-1], ", = " if len(op.outs) == 1 else " = ", *found])

    def view(self, op: Op, expression: Callable[[str], str]) -> None:
        """Write a view; of a slot it is made once. ``expression("x")`` is the text of what is taken of ``x``."""
        v, base = op.outs[0], self.arg(op.args[0])
        if len(base) == 1 and base[0][0] == "b" and self.graph.facts[v].kind is ndarray:
            self.names[v] = [("b", self.storage.view(base[0][1], expression("x")))]
            return
        before, _, after = expression("\0").partition("\0")
        self.bind(v, [before, *base, after] if before else [*base, after])


def _is_literal(value: Any) -> bool:
    if type(value) is tuple:
        return all(map(_is_literal, value))
    return value is None or value is ... or type(value) in (bool, int, str, slice)
