"""Statements of operations that have more to say than a call: views, products, sums, writes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.primitives.index_spec import ARRAY, Whole
from funcgrad.transforms.compiled.graphs import Const, Op
from funcgrad.transforms.compiled.statements import Parts, Writer
from funcgrad.transforms.compiled.storage import FILLED

__all__ = ["HANDLERS", "index_text", "logistic_into"]

ndarray = np.ndarray
_DOUBLE = np.dtype(np.float64)
_REAL = frozenset((_DOUBLE, np.dtype(np.float32)))
_ONES = 64
_ADD_UP = np.add.reduce
_PARTS = 10_000


def _power(w: Writer, n: int, op: Op) -> bool:
    """A power by Python's operator, and squares. Of a number of Python's it may raise an error or be complex."""
    base, exponent = op.args
    number = type(exponent) is Const and type(exponent.value) in (int, float)
    array = type(base) is int and w.graph.facts[base].kind is ndarray
    if number and array and exponent.value == 2 and w.graph.dtypes[base].kind == "f":
        w.into(n, op, np.square, w.arg(base), over=True)
    elif op.name == "infix_power" or (not w.exact and not array):
        w.bind(op.outs[0], [*w.arg(base), " ** ", *w.arg(exponent)])
    else:
        return False
    return True


def _infix_multiply(w: Writer, n: int, op: Op) -> bool:
    x, y = [w.arg(a) for a in op.args]
    w.bind(op.outs[0], [*x, " * ", *y])
    return True


def _infix_absolute(w: Writer, n: int, op: Op) -> bool:
    w.bind(op.outs[0], ["abs(", *w.arg(op.args[0]), ")"])
    return True


def _one_minus_square(w: Writer, n: int, op: Op) -> bool:
    (x,) = op.args
    if type(x) is not int or w.graph.facts[x].kind is not ndarray or w.graph.dtypes[x] is not _DOUBLE:
        return False
    word = w.arg(x)
    w.into(n, op, np.multiply, word, word, over=True)
    made = w.arg(op.outs[0])
    one = w.const(Const(1.0), _DOUBLE)
    w.say(w.call(np.subtract, [one], made, made))
    return True


def _logistic(w: Writer, n: int, op: Op) -> bool:
    (x,) = op.args
    if type(x) is not int or w.graph.facts[x].kind is not ndarray or w.graph.dtypes[x] not in _REAL:
        return False
    place = w.storage.place(n, op, True)
    if place is None or not place[1]:
        if place is not None:
            w.names[op.outs[0]] = [place[0]]
            w.say([place[0], " = ", *w.call(op.primitive.kernel(np), w.arg(x), name="k_logistic")])
            return True
        return False
    w.names[op.outs[0]] = [place[0]]
    w.say(w.call(logistic_into, w.arg(x), [place[0]], name="k_logistic_into"))
    return True


def logistic_into(x: ndarray, out: ndarray) -> None:
    """``1 / (1 + exp(-x))``, by the steps of ``primitives.elementwise``, in memory that is there."""
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
    # as ``primitives.products``, which looks whether the dtypes are one object: ``dot`` gives -0 where matmul adds 0
    if not all(1 <= len(s) <= 2 for s in shapes) or first is not second or first.char not in "fdFD":
        return False
    if all(math.prod(s) == 1 for s in shapes):
        return False
    x, y = [w.arg(a) for a in op.args]
    w.put(n, op, [*x, ".dot(", *y, ")"], over=False)
    return True


def _linear(w: Writer, n: int, op: Op) -> bool:
    """``x @ y + z`` of two matrices and a vector, the sum in place."""
    if not all(type(a) is int and w.graph.facts[a].kind is ndarray for a in op.args):
        return False
    x, y, z = [w.arg(a) for a in op.args]
    w.put(n, op, [*x, ".dot(", *y, ")"], over=False)
    made = w.arg(op.outs[0])
    w.say(w.call(np.add, made, z, made))
    return True


def _reduce_sum(w: Writer, n: int, op: Op) -> bool:
    (x,) = op.args
    shape, axis = w.graph.shape(x), op.params["axis"]
    short = len(shape) >= 2 and axis == (len(shape) - 1,) and 2 <= shape[-1] < 8 and math.prod(shape) >= 512
    if short or type(x) is not int or w.graph.facts[x].kind is not ndarray or op.params.get("keepdims"):
        return False
    _reduced(w, n, op, x, axis)
    return True


def _reduced(w: Writer, n: int, op: Op, x: int, axis: Any) -> None:
    fun = w.call(_ADD_UP, w.arg(x), [repr(axis)], name="np_add_reduce")
    place = w.storage.place(n, op, False)
    if place is None or not place[1]:
        w.bind(op.outs[0], fun)
        if place is not None:
            w.lines.pop()
            w.names[op.outs[0]] = [place[0]]
            w.say([place[0], " = ", *fun])
        return
    w.names[op.outs[0]] = [place[0]]
    w.say([*fun[:-1], ", None, ", place[0], ")"])


def _sum_over(w: Writer, n: int, op: Op) -> bool:
    """As ``kinds.linear.summed``, which looks at shapes and dtypes only."""
    (x,) = op.args
    if type(x) is not int or w.graph.facts[x].kind is not ndarray:
        return False
    shape, dtype, axis = w.graph.shapes[x], w.graph.dtypes[x], op.params["axis"]
    if math.prod(shape) >= 1024 or dtype.itemsize == 2:
        return False
    if dtype is _DOUBLE and len(shape) <= 2 and axis == (0,) and shape[0] <= _ONES:
        ones = w.held(np.ones(shape[0]), ("ones", shape[0]))
        w.put(n, op, [ones, ".dot(", *w.arg(x), ")"], over=False)
    else:
        _reduced(w, n, op, x, axis)
    return True


def _scatter_sum(w: Writer, n: int, op: Op) -> bool:
    """Zeros, to which parts are added; the first is all of it where something is there already."""
    specs, shape = op.params["specs"], op.params["shape"]
    if ARRAY in [e for spec in specs for e in spec] or not shape or len(specs) > _PARTS:
        return False
    v, parts = op.outs[0], list(zip(op.args, specs, strict=True))
    over = type(specs[0]) is Whole and _written_over(w, n, v, op.args[0], op.args[1:])
    place = None if over else w.storage.place(n, op, False)
    where = w.names[v][0] if over else ("v", v) if place is None else place[0]
    there = place is not None and place[1]
    if over:
        del parts[0]
    elif type(specs[0]) is Whole:
        first = w.arg(parts.pop(0)[0])
        w.say(w.call(np.copyto, [where], first) if there else [where, " = ", *first, ".copy()"])
    elif there:
        w.say([where, ".fill(0)"])
    else:
        dtype = w.held(w.graph.dtypes[v], ("dtype", w.graph.dtypes[v].str))
        w.say([where, " = ", *w.call(np.zeros, [repr(shape)], [dtype])])
    w.names[v] = [where]
    for a, spec in parts:
        text = index_text(spec)
        if where[0] == "b" and any(type(e) is not int for e in spec):
            part: Parts = [("b", w.storage.view(where[1], "x" + text))]
            w.say(w.call(np.add, part, w.arg(a), part))
        else:
            w.say([where, text, " += ", *w.arg(a)])
    return True


def _reshape(w: Writer, n: int, op: Op) -> bool:
    (x,) = op.args
    if type(x) is not int or w.graph.facts[x].kind is not ndarray or not w.graph.facts[x].contiguous:
        return False
    w.view(op, lambda base: f"{base}.reshape({op.params['to']!r})")
    return True


def _permute(w: Writer, n: int, op: Op) -> bool:
    if type(op.args[0]) is not int or w.graph.facts[op.args[0]].kind is not ndarray:
        return False
    axes = op.params["axes"]
    w.view(op, lambda base: f"{base}.T" if axes == (1, 0) else f"{base}.transpose({axes!r})")
    return True


def _entry(e: Any) -> str:
    if type(e) is tuple:
        start, stop, step = e
        return f"{'' if start is None else start}:{'' if stop is None else stop}" + (f":{step}" if step != 1 else "")
    return "..." if e is ... else repr(e)


def index_text(spec: Any) -> str:
    """A static index as Python writes it."""
    inner = ", ".join(map(_entry, spec))
    return f"[{inner}{',' if len(spec) == 1 and spec[0] is ... else ''}]" if spec else "[()]"


def _getitem(w: Writer, n: int, op: Op) -> bool:
    x, *arrays = op.args
    if type(x) is not int or w.graph.facts[x].kind is not ndarray:
        return False
    if not arrays:
        text = index_text(op.params["spec"])
        w.view(op, lambda base: base + text)
        return True
    rest, words = iter(arrays), []
    for e in op.params["spec"]:
        words += [", ", *(w.arg(next(rest)) if e == ARRAY else [_entry(e)])]
    w.bind(op.outs[0], [*w.arg(x), "[", *words[1:], ",]" if len(op.params["spec"]) == 1 else "]"])
    return True


def _split(w: Writer, n: int, op: Op) -> bool:
    (x,), at, axis = op.args, op.params["at"], op.params["axis"]
    if type(x) is not int or w.graph.facts[x].kind is not ndarray:
        return False
    ends = (*at[1:], w.graph.shapes[x][axis])
    for v, start, stop in zip(op.outs, at, ends, strict=True):
        if w.storage.uses[v]:
            spec = ((None, None, 1),) * axis + ((start, stop, 1),)
            part = Op(op.primitive, [x], {}, [v], op.line)
            w.view(part, lambda base, spec=spec: base + index_text(spec))  # type: ignore[misc]
    return True


def _unstack(w: Writer, n: int, op: Op) -> bool:
    (x,), axis = op.args, op.params["axis"]
    if type(x) is not int or w.graph.facts[x].kind is not ndarray:
        return False
    for i, v in enumerate(op.outs):
        if w.storage.uses[v]:
            spec = ((None, None, 1),) * axis + (i,)
            part = Op(op.primitive, [x], {}, [v], op.line)
            w.view(part, lambda base, spec=spec: base + index_text(spec))  # type: ignore[misc]
    return True


def _broadcast_to(w: Writer, n: int, op: Op) -> bool:
    """As ``kinds.rows.repeated``: few elements are filled in, of many there is a view."""
    (x,) = op.args
    to = op.params["to"]
    if type(x) is not int or math.prod(to) > FILLED or not to:
        return False
    if w.graph.facts[x].kind is ndarray and not w.graph.facts[x].contiguous and len(w.graph.shapes[x]) > 1:
        return False
    place = w.storage.place(n, op, False)
    v = op.outs[0]
    if place is None or not place[1]:
        where = ("v", v) if place is None else place[0]
        made = w.call(np.empty, [repr(to)], [w.held(w.graph.dtypes[v], ("dtype", w.graph.dtypes[v].str))])
        w.say([where, " = ", *made])
    else:
        where = place[0]
    w.say(w.call(np.copyto, [where], w.arg(x)))
    w.names[v] = [where]
    return True


def _concatenate(w: Writer, n: int, op: Op) -> bool:
    words: Parts = ["("]
    for a in op.args:
        words += [*w.arg(a), ", "]
    found = w.call(np.concatenate, [*words, ")"], [repr(op.params["axis"])])
    w.put(n, op, found, over=False)
    return True


def _stack(w: Writer, n: int, op: Op) -> bool:
    if not all(type(a) is int and w.graph.facts[a].kind is np.float64 for a in op.args):
        return False
    words: Parts = ["("]
    for a in op.args:
        words += [*w.arg(a), ", "]
    w.bind(op.outs[0], w.call(np.array, [*words, ")"]))
    return True


def _written_over(w: Writer, n: int, v: int, x: Any, others: Sequence[Any]) -> bool:
    """Let ``v`` be made in the memory of the array ``x``, which nothing needs any more, where that can be done.

    What else it is made of must lie somewhere else.
    """
    if type(x) is not int or w.graph.facts[x].kind is not ndarray or x in others:
        return False
    storage, name = w.storage, w.names[x]
    if not (storage.is_own(x) and storage.ends_at(x, n) and len(name) == 1 and x not in storage.outputs):
        return False
    if any(type(a) is int and w.graph.facts[a].kind is ndarray and not storage.is_own(a) for a in others):
        return False
    alike = (w.graph.shapes[x], w.graph.dtypes[x]) == (w.graph.shapes[v], w.graph.dtypes[v])
    if not alike or w.graph.facts[x] != w.graph.facts[v] or (v in storage.escaping and name[0][0] == "b"):
        return False
    storage.take_over(v, x)
    w.names[v] = name
    return True


def _write(w: Writer, n: int, op: Op) -> bool:
    """``x`` with ``y`` at an index: written there where ``x`` is not needed any more."""
    x, y, *arrays = op.args
    v = op.outs[0]
    if type(x) is not int or arrays or w.graph.facts[x].kind is not ndarray:
        return False
    text = index_text(op.params["spec"])
    if not _written_over(w, n, v, x, (y,)):
        place = w.storage.place(n, op, False)
        if place is not None and place[1]:
            w.say(w.call(np.copyto, [place[0]], w.arg(x)))
        where = ("v", v) if place is None else place[0]
        if place is None or not place[1]:
            w.say([where, " = ", *w.call(np.array, w.arg(x))])
        w.names[v] = [where]
    w.say([*w.names[v], text, " = ", *w.arg(y)])
    return True


#: ``handler(writer, number of the item, operation)`` writes it and says whether it could.
HANDLERS: dict[str, Callable[[Writer, int, Op], bool]] = {
    "power": _power,
    "infix_power": _power,
    "infix_multiply": _infix_multiply,
    "infix_absolute": _infix_absolute,
    "one_minus_square": _one_minus_square,
    "logistic": _logistic,
    "matmul": _matmul,
    "linear": _linear,
    "reduce_sum": _reduce_sum,
    "sum_over": _sum_over,
    "scatter_sum": _scatter_sum,
    "reshape": _reshape,
    "permute": _permute,
    "getitem": _getitem,
    "split": _split,
    "unstack": _unstack,
    "broadcast_to": _broadcast_to,
    "concatenate": _concatenate,
    "stack": _stack,
    "write": _write,
}
