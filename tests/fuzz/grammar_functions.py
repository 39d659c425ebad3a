"""Statements that random programs can contain: linear algebra, control flow, pipelines, transforms, writes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.grammar import TRIG, index
from fuzz.making import Builder, Maker
from fuzz.programs import Line

__all__ = ["FUNCTIONS", "WRITES"]


# ---- linear algebra: small matrices, well conditioned ------------------------------------------------------------

#: Functions of a square matrix: code with ``{0}`` for the matrix, and a guard.
SQUARE = [
    ("np.linalg.inv({0})", "conditioned({0})"),
    ("np.linalg.det({0})", ""),
    ("np.linalg.slogdet({0})[1]", "conditioned({0})"),
    ("np.linalg.slogdet({0}).sign * {0}", "conditioned({0})"),
    ("np.linalg.matrix_power({0}, 3)", "below({0}, 1.5)"),
    ("np.linalg.matrix_power({0}, -2)", "conditioned({0})"),
    ("np.linalg.solve({0}, {0} ** 2 + 1)", "conditioned({0})"),
    ("np.linalg.solve({0}, {0}[0])", "conditioned({0}) and np.ndim({0}) == 2"),
    ("np.linalg.pinv({0})", "conditioned({0}) and spaced({0})"),
    ("np.linalg.norm({0}, 2)", "np.ndim({0}) == 2 and spaced({0})"),
    ('np.linalg.norm({0}, "nuc")', "np.ndim({0}) == 2 and spaced({0})"),
    ("np.linalg.cholesky({0} @ np.conj(np.matrix_transpose({0})) + np.eye({0}.shape[-1]))", ""),
    (
        "np.linalg.eigvalsh({0} + np.conj(np.matrix_transpose({0})))",
        "apart(np.linalg.eigvalsh({0} + np.conj(np.matrix_transpose({0}))))",
    ),
    (
        "(lambda w, v: np.abs(v) ** 2 * w)(*np.linalg.eigh({0} + np.conj(np.matrix_transpose({0}))))",
        "apart(np.linalg.eigvalsh({0} + np.conj(np.matrix_transpose({0}))))",
    ),
    ("np.linalg.trace({0}) * {0}", ""),
    ("np.linalg.cond({0})", "np.ndim({0}) == 2 and spaced({0}) and conditioned({0})"),
]
#: Functions of any matrix.
MATRIX = [
    ("np.linalg.svd({0}, compute_uv=False)", "spaced({0})"),
    ("(lambda u, s, vh: (u * np.sin(s)[..., None, :]) @ vh)(*np.linalg.svd({0}, full_matrices=False))", "spaced({0})"),
    ("np.linalg.svdvals({0})", "spaced({0})"),
    ("np.linalg.qr({0})[1] ** 2", "spaced({0}) and spaced({0}[..., : {0}.shape[-2]])"),
    ("np.linalg.qr({0})[0] @ np.linalg.qr({0})[1]", "spaced({0}) and spaced({0}[..., : {0}.shape[-2]])"),
    ("np.linalg.pinv({0})", "spaced({0})"),
    ("np.linalg.lstsq({0}, {0} ** 2, rcond=None)[0]", "np.ndim({0}) == 2 and spaced({0})"),
    ("np.linalg.matrix_norm({0})", "away({0})"),
    ("np.linalg.norm({0})", "away({0})"),
]


def linear_algebra(b: Builder) -> Line | None:
    """Make a statement with a matrix function."""
    i = b.inexact(2, fits=lambda v: v.shape[-1] == v.shape[-2] > 1) if b.chance(0.7) else None
    rows = SQUARE
    if i is None:
        i, rows = b.inexact(2, fits=lambda v: min(v.shape[-2:]) > 0), MATRIX
    if i is None:
        return squared(b)
    text, guard = b.pick(*rows)
    return b.line(text, i, guard=guard)


def squared(b: Builder) -> Line | None:
    """Return a square, well-conditioned matrix made of a vector or a number."""
    i = b.inexact(fits=lambda v: v.ndim < 2)
    return None if i is None else b.line("np.outer({0}, {0}) * 0.3 + np.diag(np.arange(1.0, {0}.size + 1))", i)


# ---- control flow ------------------------------------------------------------------------------------------------

BODIES = ["0.5 * c + np.sin(r)", "np.tanh(c * r)", "c - 0.3 * r", "c * np.cos(r)", "np.arctan(c) + r * r", "c + r"]
STEPS = ["0.5 * c + np.sin(c)", "np.tanh(c) * 1.2", "c - 0.1 * c ** 2", "0.8 * c + 0.1", "np.cos(c)"]


def scan(b: Builder) -> Line | None:
    """Make a statement with ``scan``, ``map`` or ``associative_scan``."""
    i = b.inexact(1)
    if i is None:
        return None
    if b.chance(0.25):
        kind = b.pick("a * b", "a + b", "np.sin(a) * np.sin(b)")
        if "sin" not in kind:
            return b.line(f"fg.associative_scan(lambda a, b: {kind}, {{0}})", i)
    if b.chance(0.25):
        size = b.pick("", ", batch_size=2")
        return b.line(f"fg.control.map(lambda r: np.sum({b.pick(*TRIG)}(r)) * r, {{0}}{size})", i)
    first, second = b.pick(*BODIES), b.pick(*BODIES)
    if b.chance(0.4):
        j = b.any(lambda v: v.dtype.kind == "f" and v.ndim == 0)
        if j is not None:
            first = first.replace("r", "(r * {1})", 1) if first.startswith("c") else first
            return b.line(f"fg.scan(lambda c, r: ({first}, {second}), {{0}}[0], {{0}})[{b.pick(0, 1)}]", i, j)
    if b.chance(0.15):
        text = "fg.scan(lambda c, r: ((0.5 * c[0] + r, c[1] + np.sum(r)), c[0] * c[1]), ({0}[0], 0.3), {0})"
        return b.line(text + b.pick("[0][1]", "[1]"), i)
    if b.chance(0.15) and b.value(i).dtype.kind == "f":
        text = "fg.cond(np.sum(r) > 0, lambda v: np.sin(v), lambda v: 0.5 * v, c)"
        guard = "away(np.sum(np.reshape({0}, ({0}.shape[0], -1)), 1))"
        return b.line(f"fg.scan(lambda c, r: ({text}, c * r), {{0}}[0], {{0}})[{b.pick(0, 1)}]", i, guard=guard)
    back = b.pick("", ", reverse=True")
    return b.line(f"fg.scan(lambda c, r: ({first}, {second}), {{0}}[0], {{0}}{back})[{b.pick(0, 1)}]", i)


def loop(b: Builder) -> Line | None:
    """Make a statement with ``fori_loop``, ``while_loop`` or Python's ``for``."""
    i = b.inexact(kinds="f")
    if i is None:
        return None
    compiled = b.program.compiled or any(name == "jit" for name, _ in b.program.stack)
    kind = b.pick("fori", "fori", "fori" if compiled else "while", "for")  # a compiled while loop has no reverse mode
    n, body = b.pick(1, 2, 3), b.pick(*STEPS)
    if kind == "fori":
        return b.line(f"fg.fori_loop(0, {n}, lambda i, c: {body} + 0.1 * i, {{0}})", i)
    if kind == "for":
        return (
            b.line("{out} = {0}\nfor i in range(" + str(n) + "):\n    {out} = " + body.replace("c", "{out}", 9), i)
            if "cos" not in body
            else b.line("{out} = {0}\nfor i in range(2):\n    {out} = 0.5 * {out} + i", i)
        )
    bound = 0.2
    total = float(np.sum(b.value(i) ** 2))
    count = 0
    while total > bound:
        total, count = total * 0.36, count + 1
    copied = "" if count else " + 0.0"  # without a step the loop returns its start value, not another array
    return b.line(
        f"fg.while_loop(lambda c: np.sum(c * c) > {bound}, lambda c: 0.6 * c, {{0}}){copied}",
        i,
        guard=f"steps({{0}}, 0.6, {bound}, {count})",
        jax=f"fg.fori_loop(0, {count}, lambda i, c: 0.6 * c, {{0}})",
    )


def branch(b: Builder) -> Line | None:
    """Make a statement with ``cond``, ``switch``, or Python's branches."""
    i = b.inexact(kinds="f")
    if i is None:
        return None
    bound = b.number(-0.5, 0.8)
    one, other = b.pick("np.sin({0})", "{0} * {0}"), b.pick("0.5 * {0}", "np.cos({0}) - 1")
    kind = b.pick("cond", "cond", "switch", "if", "mask")
    guard = f"away(np.sum({{0}}) - ({bound}))"
    if kind == "cond":
        v, w = one.replace("{0}", "v"), other.replace("{0}", "v")
        return b.line(f"fg.cond(np.sum({{0}}) > {bound}, lambda v: {v}, lambda v: {w}, {{0}})", i, guard=guard)
    if kind == "switch":
        j = b.inexact(1, kinds="f", fits=lambda v: v.ndim == 1)
        if j is None:
            return None
        text = "fg.switch(np.argmax({1}), [lambda v: np.sin(v), lambda v: v * v, lambda v: 2 * v], {0})"
        return b.line(text, i, j, guard="distinct({1})")
    if not b.branches:
        return None
    if kind == "mask":
        if b.value(i).ndim == 0:
            return None
        mask = b.value(i) > bound
        return b.line(
            f"{{0}}[{{0}} > {bound}]",
            i,
            guard=f"away({{0}} - ({bound})) and np.array_equal({{0}} > {bound}, {b.const(mask)})",
            jax=f"{{0}}[c{len(b.program.consts) - 1}]",
        )
    truth = bool(np.sum(b.value(i)) > bound)
    return b.line(
        f"{one} if np.sum({{0}}) > {bound} else {other}",
        i,
        guard=guard + f" and (np.sum({{0}}) > {bound}) == {truth}",
        jax=one if truth else other,
    )


# ---- pipelines ---------------------------------------------------------------------------------------------------

PIPELINES = [
    "fg.pipe({0}, np.sin, lambda v: v * 0.5)",
    "fg.pipe({0}, np.tanh, np.square, np.sum)",
    "fg.compose(np.cos, lambda v: v * 0.7, np.arctan)({0})",
    "fg.compose_left(np.sin, fg.compose(np.square, np.cos))({0})",
    "sum(fg.juxt(np.sin, np.cos, lambda v: v * v)({0}))",
    "fg.pipe({0}, fg.juxt(np.sum, np.mean), lambda pair: pair[0] * pair[1])",
    "fg.curry(lambda a, v: a * v)(0.6)({0})",
    "fg.curry(np.multiply)(0.6)({0})",
    "fg.pipe({0}, fg.curry(np.add, 0.4), np.sin)",
    "fg.thread_first({0}, (np.multiply, 0.7), np.tanh)",
    "fg.thread_last({0}, (np.subtract, 0.7), np.tanh)",
    "fg.do(lambda v: None, {0}) * 0.9",
    "fg.compose(fg.vmap(np.sin), np.ravel)({0})",
    "fg.pipe({0}, np.ravel, fg.vmap(fg.compose(np.tanh, np.sin)), np.sum)",
    "fg.compose(*[np.sin] * 3)({0})",
    "fg.pipe({0}, fg.checkpoint(fg.compose(np.sin, np.cos)), np.tanh)",
]


def pipeline(b: Builder) -> Line | None:
    """Make a statement with functions joined by toolz."""
    i = b.inexact(kinds="f")
    return None if i is None else b.line(b.pick(*PIPELINES), i)


# ---- transforms of functions that close over values --------------------------------------------------------------

NESTED = [
    "fg.grad(lambda z: np.sum(np.sin(z) * z * np.sum({1})))({0})",
    "fg.jvp(lambda z: z * z * np.sum({1}), ({0},), (np.cos({0}),))[1]",
    "fg.vjp(lambda z: np.sin(z * np.sum({1})), {0})[1](np.tanh({0}))[0]",
    "fg.linearize(lambda z: z ** 3 + np.sum({1}) * z, {0})[1](np.sum({1}) * {0})",
    "fg.vmap(lambda z: np.sin(z) * np.sum({1}) + z * z)(np.ravel({0}))",
    "fg.vmap(fg.grad(lambda z: z ** 3 * np.sum({1})))(np.ravel({0}))",
    "fg.grad(lambda z: fg.grad(lambda w: w ** 3 * z * np.sum({1}))(z) * z)(np.mean({0}))",
    "fg.jacfwd(lambda z: np.stack([z, np.sin(z) * np.mean({1})]))(np.mean({0}))",
    "fg.jacrev(lambda z: np.sin(z) * np.mean({1}))(np.ravel({0})[:2])",
    "fg.hessian(lambda z: z ** 3 * np.mean({1}))(np.mean({0}))",
    "fg.value_and_grad(lambda z: np.sum(z ** 3) * np.mean({1}))({0})[1]",
    "fg.checkpoint(lambda z: np.sin(z) * np.mean({1}))({0})",
    "fg.grad(fg.checkpoint(lambda z: np.sum(np.sin(z) ** 2 * np.mean({1}))))({0})",
    "fg.stop_gradient({0}) * {0}",
    "fg.no_grad(lambda z: np.sin(z) * np.mean({1}))({0}) + {0}",
    "fg.no_grad(fg.grad(lambda z: np.sum(z ** 3)))({0}) * {0}",
    "fg.vmap(lambda a: np.sum({0} * a) * np.mean({1}))(np.array([0.5, 2.0]))",
    "fg.vmap(lambda a, c: a * c, in_axes=(0, None))(np.ravel({0})[:2], np.mean({1}))",
    "fg.vmap(lambda a: a - fg.pmean(a, 'i') * np.mean({1}), axis_name='i')(np.ravel({0}))",
    "fg.vmap(lambda a: fg.psum(np.sin(a), 'i') * a, axis_name='i')(np.ravel({0}))",
    "fg.grad(lambda z, w: np.sum(np.sin(z)) * np.sum(w ** 2), argnums=1)({0}, {1})",
    "fg.grad(lambda z, w: np.sum(np.sin(z)) * np.sum(np.cos(w)), argnums=(0, 1))({0}, {1})[1]",
    "fg.grad(lambda z: (np.sum(z ** 3), np.cos(z) * np.sum({1})), has_aux=True)({0})[1]",
    "fg.grad(lambda d: np.sum(d['a'] ** 2) * np.sum(np.sin(d['b'])))({{'a': {0}, 'b': {1}}})['b']",
    "fg.linear_transpose(lambda z: 2 * z * np.sum({1}), {0})(np.sin({0}))[0]",
    "own_jvp(fg, lambda z: np.sin(z), lambda z: np.cos(z) * z)({0}, np.mean({1}))",
    "fg.vmap(own_jvp(fg, lambda z: z ** 2, lambda z: 3 * z), in_axes=(0, None))(np.ravel({0}), np.mean({1}))",
    "fg.grad(lambda z: np.sum(own_jvp(fg, lambda w: w ** 3, lambda w: 2 * w)(z, np.mean({1}))))({0})",
]
#: Layers with a custom VJP rule only, which have no forward mode.
REVERSED = [
    "own_vjp(fg, lambda z: np.sin(z), lambda z: np.cos(z) * 0.7)({0}, np.mean({1}))",
    "fg.grad(lambda z: np.sum(own_vjp(fg, lambda w: w ** 3, lambda w: 2 * w)(z, np.mean({1}))))({0})",
    "fg.vmap(own_vjp(fg, lambda z: z ** 2, lambda z: 3 * z), in_axes=(0, None))(np.ravel({0}), np.mean({1}))",
]


#: Layers that use forward mode.
FORWARD = ("jvp", "linearize", "jacfwd", "hessian")


def nested(b: Builder) -> Line | None:
    """Make a statement that transforms a function that closes over a value, which outer transforms may trace."""
    i, j = b.inexact(kinds="f"), b.inexact(kinds="f")
    if i is None or j is None:
        return None
    forward = any(name in FORWARD for name, _ in b.program.stack) or any("fg." in line.text for line in b.program.lines)
    return b.line(b.pick(*NESTED, *([] if forward else REVERSED)), i, j)


# ---- writes ------------------------------------------------------------------------------------------------------


def writable(v: Any) -> bool:
    return isinstance(v, np.ndarray) and v.ndim > 0 and v.size > 0 and v.flags.writeable and v.dtype.kind in "fc"


def fresh(b: Builder) -> Line | None:
    """Make a statement that creates an array to write to."""
    i = b.inexact(1)
    texts = ("np.copy({0})", "{0}.copy()", "np.zeros_like({0})", "{0} * 1.0", "{0} + {0}", "np.ones_like({0})")
    return None if i is None else b.line(b.pick(*texts), i)


def view(b: Builder) -> Line | None:
    """Make a statement that takes a view of a writable array."""
    i = b.any(writable, written=True)
    if i is None:
        return fresh(b)
    texts = ("[1:]", "[::-1]", ".T", ".reshape(-1)", "[None]", ".ravel()", "[..., 0]", "[0]", "[:, 1]", "[:1]", "[...]")
    text = b.pick(*texts)
    if text in (".ravel()", ".reshape(-1)") and not b.value(i).flags.c_contiguous:
        return None  # memory layout decides between a view and a copy; arrays of JAX count as in C order
    return b.line("{0}" + text, i)


#: Statements that write to ``{0}``; ``{1}`` is another value, ``{i}`` an index.
WRITTEN = [
    "{0}[{i}] = {1}",
    "{0}[{i}] = {1}",
    "{0}[{i}] = 0.5 * np.sum({1})",
    "{0}[{i}] = np.mean({1}) * {0}[{i}]",
    "{0}[{i}] = 0.7",
    "{0}[{i}] += {1}",
    "{0}[{i}] += 0.3 * np.sum({1})",
    "{0}[{i}] *= np.mean({1})",
    "{0}[{i}] -= {0}[{i}] ** 2",
    "{0}[{i}] /= 2 + np.mean({1}) ** 2",
    "{0}[...] = {1}",
    "{0}[:] = np.sin({0}[::-1])",
    "{0} += 0.1 * {1}",
    "{0} *= 0.9",
    "{0} -= {1}",
    "{0} *= np.mean({1})",
    "{0} **= 2",
    "np.multiply({0}, np.mean({1}), out={0})",
    "np.sin({0}, out={0})",
    "np.add({0}, {1}, out={0})",
    "np.copyto({0}, {1})",
    "np.copyto({0}, {1}, where={0} > 0.3)",
    "{0}.fill(0.4)",
    "{0}[{0} > 0.3] = 0.2",
    "np.multiply({0}, np.mean({1}), out={0}, where={0} > 0.3)",
    "np.add.at({0}, {i}, np.mean({1}))",
    "np.put({0}, [0, -1], np.mean({1}))",
    "np.fill_diagonal({0}, np.mean({1}))",
    "np.putmask({0}, {0} > 0.3, np.mean({1}))",
    "{0}.sort()",
    "{0}.flat[0] = np.mean({1})",
    "np.cumsum({0}, axis=0, out={0})",
]


def write(b: Builder) -> Line | None:
    """Make a statement that writes to an array of the program."""
    i = b.any(writable, written=True)
    if i is None:
        return fresh(b)
    j = b.inexact()
    text = b.pick(*WRITTEN)
    x = b.value(i)
    guard = ""
    if "> 0.3" in text:
        guard = "away({0} - 0.3)"
        if x.dtype.kind == "c":
            return None
    if ".sort" in text:
        guard = "distinct({0})"
        if x.dtype.kind == "c":
            return None
    if "{i}" in text:
        text = text.replace("{i}", index(b, x.shape) if "np.add.at" not in text else b.const(np.array([0, -1, 0])))
    return b.line(text, i, i if j is None else j, guard=guard, writes=True)


FUNCTIONS: list[tuple[float, Maker]] = [
    (1.2, linear_algebra),
    (0.4, squared),
    (0.8, scan),
    (0.8, loop),
    (1.0, branch),
    (0.8, pipeline),
    (1.2, nested),
]
WRITES: list[tuple[float, Maker]] = [(1.0, fresh), (1.5, view), (4.0, write)]
