"""Statements that random programs can contain: operations on arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fuzz.guards import guard_of
from fuzz.making import Builder, Maker
from fuzz.programs import Line

__all__ = ["ARRAYS", "TRIG", "axes", "axis", "index", "operand"]

#: Elementwise functions of one argument: code, dtypes, guard.
UNARY = [
    ("np.sin({0})", "fc", ""),
    ("np.cos({0}) * {0}", "fc", ""),
    ("np.tan(0.3 * {0})", "f", ""),
    ("np.tanh({0})", "f", ""),
    ("np.tanh(0.3 * {0})", "c", "below({0}, 4)"),
    ("np.exp(-{0})", "fc", "below({0}, 3)"),
    ("np.exp2({0})", "fc", "below({0}, 3)"),
    ("np.expm1({0})", "fc", "below({0}, 2)"),
    ("np.log(2 + {0} * {0})", "f", ""),
    ("np.log({0})", "c", "away({0}) and off_cut({0})"),
    ("np.log10(1.5 + np.abs({0}))", "f", "away({0})"),
    ("np.log2({0})", "f", "np.all({0} > 0.05)"),
    ("np.log1p({0} ** 2)", "f", ""),
    ("np.sqrt(1 + {0} * {0})", "f", ""),
    ("np.sqrt({0})", "c", "away({0}) and off_cut({0})"),
    ("np.sqrt({0})", "f", "np.all({0} > 0.1)"),
    ("np.cbrt({0})", "f", "np.all(np.abs({0}) > 0.1)"),
    ("np.square({0})", "fc", ""),
    ("{0} ** 2", "fc", ""),
    ("{0} ** 3", "fc", "below({0}, 1.5)"),
    ("{0} ** -2", "fc", "np.all(np.abs({0}) > 0.5)"),
    ("{0} ** 2.5", "f", "np.all({0} > 0.1)"),
    ("1.3 ** {0}", "fc", ""),
    ("np.reciprocal({0})", "fc", "np.all(np.abs({0}) > 0.4)"),
    ("1 / (2 + {0} ** 2)", "f", ""),
    ("np.abs({0})", "fc", "away({0})"),
    ("abs({0}) * {0}", "fc", "away({0})"),
    ("np.fabs({0})", "f", "away({0})"),
    ("-{0}", "fc", ""),
    ("np.positive({0})", "fc", ""),
    ("np.negative({0})", "fc", ""),
    ("np.sign({0}) * {0}", "f", "away({0})"),
    ("np.sinh({0})", "fc", "below({0}, 2)"),
    ("np.cosh({0})", "fc", "below({0}, 2)"),
    ("np.arcsinh({0})", "f", ""),
    ("np.arctan({0})", "f", ""),
    ("np.arcsin({0})", "f", "below({0}, 0.9)"),
    ("np.arccos({0})", "f", "below({0}, 0.9)"),
    ("np.arctanh({0})", "f", "below({0}, 0.9)"),
    ("np.arccosh(1.2 + np.abs({0}))", "f", "away({0})"),
    ("np.sinc({0})", "f", "np.all(np.abs({0}) > 0.2)"),
    ("np.floor({0}) * {0}", "f", "away_from_integers({0})"),
    ("np.ceil({0}) + {0}", "f", "away_from_integers({0})"),
    ("np.trunc({0}) * {0}", "f", "away_from_integers({0})"),
    ("np.round({0} + 0.5) * {0}", "f", "away_from_integers({0})"),
    ("np.deg2rad({0})", "f", ""),
    ("np.rad2deg(0.01 * {0})", "f", ""),
    ("np.real({0})", "fc", ""),
    ("np.imag({0})", "fc", ""),
    ("{0}.real * {0}", "fc", ""),
    ("np.conj({0})", "fc", ""),
    ("{0} * np.conj({0})", "c", ""),
    ("np.angle({0})", "c", "away({0}) and off_cut({0})"),
    ("np.nan_to_num({0})", "fc", ""),
    ("np.i0(0.5 * {0})", "f", "away({0})"),
    ("np.modf({0})[0]", "f", "away_from_integers({0})"),
    ("np.heaviside({0}, 0.5) * {0}", "f", "away({0})"),
    ("{0} * 1j", "fc", ""),
    ('{0}.astype("complex128")', "f", ""),
    ('{0}.astype("float32")', "f", ""),
    ("+{0}", "fc", ""),
    # integers and booleans, which other statements can use
    ('np.floor({0}).astype("int64")', "f", "away_from_integers({0})"),
    ("{0} > 0.1", "f", "away({0} - 0.1)"),
    ("np.sign({0}).astype(int) + 2", "f", "away({0})"),
]

#: Elementwise functions of two arguments that broadcast.
BINARY = [
    ("{0} + {1}", "fc", ""),
    ("{0} - {1}", "fc", ""),
    ("{0} * {1}", "fc", ""),
    ("{0} * {1}", "fc", ""),
    ("{0} / {1}", "fc", "np.all(np.abs({1}) > 0.4)"),
    ("{0} / (2 + {1} ** 2)", "f", ""),
    ("np.add({0}, {1})", "fc", ""),
    ("np.subtract({0}, {1})", "fc", ""),
    ("np.multiply({0}, {1})", "fc", ""),
    ("np.true_divide({0}, {1})", "fc", "np.all(np.abs({1}) > 0.4)"),
    ("np.maximum({0}, {1})", "f", "away({0} - {1})"),
    ("np.minimum({0}, {1})", "f", "away({0} - {1})"),
    ("np.fmax({0}, {1})", "f", "away({0} - {1})"),
    ("np.fmin({0}, {1})", "f", "away({0} - {1})"),
    ("np.hypot({0}, {1})", "f", "away({0}) or away({1})"),
    ("np.arctan2({0}, {1})", "f", "away({0}, {1})"),
    ("np.logaddexp({0}, {1})", "f", ""),
    ("np.logaddexp2({0}, {1})", "f", ""),
    ("np.copysign({0}, {1})", "f", "away({0}, {1})"),
    ("np.power(np.abs({0}), {1})", "f", "np.all(np.abs({0}) > 0.3)"),
    ("(1.5 + np.tanh({0})) ** {1}", "f", ""),
    ("np.float_power(2 + np.sin({0}), {1})", "f", ""),
    ("np.remainder({0}, {1})", "f", "np.all(np.abs({1}) > 0.3) and away_from_integers({0} / {1})"),
    ("np.fmod({0}, {1})", "f", "np.all(np.abs({1}) > 0.3) and away_from_integers({0} / {1})"),
    ("{0} % {1}", "f", "np.all(np.abs({1}) > 0.3) and away_from_integers({0} / {1})"),
    ("{0} // {1} + {0}", "f", "np.all(np.abs({1}) > 0.3) and away_from_integers({0} / {1})"),
    ("np.divmod({0}, {1})[1]", "f", "np.all(np.abs({1}) > 0.3) and away_from_integers({0} / {1})"),
    ("np.where({0} > {1}, {0} * {0}, {1})", "f", "away({0} - {1})"),
    ("np.where({0} < {1}, np.sin({0}), 0.7)", "f", "away({0} - {1})"),
    ("np.heaviside({0}, 0.5) * {1}", "f", "away({0})"),
    ("np.where(np.abs({0}) > 0.6, {0}, {1})", "fc", "away(np.abs({0}) - 0.6)"),
    ("np.greater({0}, {1}) * {0}", "f", "away({0} - {1})"),
    ("np.select([{0} > {1}, {0} > 0], [{0}, {1}], 0.5)", "f", "away({0} - {1}) and away({0})"),
]

TRIG = ["np.sin", "np.cos", "np.tanh", "np.arctan", "np.square"]


def unary(b: Builder) -> Line | None:
    """Make a statement with a function of one value."""
    i = b.inexact()
    if i is None:
        return None
    rows = [row for row in UNARY if b.value(i).dtype.kind in row[1]]
    text, _, guard = b.pick(*rows)
    return b.line(text, i, guard=guard)


def operand(b: Builder, shape: Any, kinds: str = "fc") -> tuple[str, tuple[int, ...]]:
    """Return an operand that broadcasts with ``shape``: another value, a constant array, a number."""
    if b.chance(0.55):
        j = b.any(lambda v: v.dtype.kind in kinds + "ib" and (b.empty or v.size > 0) and fits(v.shape, shape))
        if j is not None:
            return "{1}", (j,)
    if b.chance(0.3):
        return str(b.pick(b.number(), b.number(-1.5, -0.4), 2, 3)), ()
    near = [1 if b.chance(0.2) else n for n in shape[int(b.rng.integers(len(shape) + 1)) :]]
    if b.chance(0.15) and len(near) == len(shape) < 3:
        near = [2, *near]
    kind = b.pick("f", "f", "f", "i", "c") if "c" in kinds else b.pick("f", "f", "f", "i")
    return b.const(b.random(near, kind)), ()


def fits(a: Any, b: Any) -> bool:
    try:
        return math.prod(np.broadcast_shapes(a, b)) <= 12
    except ValueError:
        return False


def binary(b: Builder) -> Line | None:
    """Make a statement with a function of two values, in either order."""
    i = b.inexact()
    if i is None:
        return None
    text, kinds, guard = b.pick(*BINARY)
    if b.value(i).dtype.kind not in kinds:
        return None
    other, uses = operand(b, b.value(i).shape, kinds)
    if "np.sin" in text and uses and b.value(uses[0]).dtype.kind == "b":
        return None  # NumPy's sine of truth values is in half precision, JAX's is not
    first, second = ("{0}", other) if b.chance(0.7) else (other, "{0}")
    ordinary = not uses or b.value(uses[0]).dtype.kind in "ib"
    if ordinary and first != "{0}" and text.startswith(("np.where", "np.greater")):
        first, second = second, first  # truth values and ordinary arrays give an ordinary array, which is not writable
    fill = {"{0}": first, "{1}": second}
    text, guard = [_filled(t, fill) for t in (text, guard)]
    return b.line(text, i, *uses, guard=guard)


def _filled(text: str, fill: dict[str, str]) -> str:
    return text.replace("{0}", "<0>").replace("{1}", "<1>").replace("<0>", fill["{0}"]).replace("<1>", fill["{1}"])


def clip(b: Builder) -> Line | None:
    """Make a statement that clips numbers to bounds."""
    i = b.inexact(kinds="f")
    if i is None:
        return None
    low, high = b.number(-1.2, -0.2), b.number(0.2, 1.2)
    guard = f"away({{0}} - ({low}), {{0}} - {high})"
    return b.line(b.pick(f"np.clip({{0}}, {low}, {high})", f"{{0}}.clip({low}, {high})"), i, guard=guard)


# ---- along axes --------------------------------------------------------------------------------------------------


def axis(b: Builder, ndim: int) -> int:
    """Return one axis, counted from either end."""
    return int(b.rng.integers(-ndim, ndim))


def axes(b: Builder, ndim: int) -> Any:
    """Return an axis, a tuple of axes, or None."""
    if ndim == 0 or b.chance(0.25):
        return None
    if ndim > 1 and b.chance(0.3):
        chosen = b.rng.permutation(ndim)[: int(b.rng.integers(1, ndim + 1))]
        return tuple(int(a) - (ndim if b.chance(0.3) else 0) for a in chosen)
    return axis(b, ndim)


#: Reductions over axes: name, dtypes, guard, whether the function takes a tuple of axes, further arguments.
REDUCTIONS = [
    ("sum", "fc", "", True, ""),
    ("mean", "fc", "", True, ""),
    ("prod", "fc", "below({0}, 2)", True, ""),
    ("max", "f", "distinct({0})", True, ""),
    ("min", "f", "distinct({0})", True, ""),
    ("amax", "f", "distinct({0})", True, ""),
    ("var", "fc", "", True, ""),
    ("std", "fc", "np.size({0}) > 1 and distinct({0})", True, ""),
    ("var", "f", "", True, ", ddof=1"),
    ("ptp", "f", "distinct({0})", True, ""),
    ("nansum", "fc", "", True, ""),
    ("nanmean", "fc", "", True, ""),
    ("nanmax", "f", "distinct({0})", True, ""),
    ("nanprod", "f", "below({0}, 2)", True, ""),
    ("nanvar", "f", "", True, ""),
    ("median", "f", "distinct({0})", True, ""),
    ("quantile", "f", "distinct({0})", True, ", q=0.37"),
    ("percentile", "f", "distinct({0})", True, ", q=63"),
    ("linalg.norm", "fc", "away({0})", False, ""),
    ("linalg.norm", "fc", "away({0})", False, ", ord=1"),
    ("linalg.norm", "f", "distinct(np.abs({0})) and away({0})", False, ", ord=np.inf"),
    ("linalg.vector_norm", "f", "away({0})", True, ", ord=3"),
    ("count_nonzero", "f", "away({0})", True, ""),
    ("any", "f", "away({0})", True, ""),
]


def reduction(b: Builder) -> Line | None:
    """Make a statement with a reduction over some axes."""
    i = b.inexact()
    if i is None:
        return None
    x = b.value(i)
    name, _, guard, tuples, more = b.pick(*[row for row in REDUCTIONS if x.dtype.kind in row[1]])
    along = axes(b, x.ndim)
    if along is None and name == "linalg.norm" and x.ndim != 1:
        return None
    if not tuples and isinstance(along, tuple):
        along = along[0]
    text = f"np.{name}({{0}}{more}"
    if along is not None or b.chance(0.2):
        text += f", axis={along}"
    if b.chance(0.25):
        text += ", keepdims=True"
        if name in ("median", "quantile", "percentile"):  # without axes JAX adds one: see the known divergences
            guard += " and np.ndim({0}) > 0"
    if name in ("sum", "mean", "prod") and b.chance(0.2) and x.ndim:
        text += f", where={b.const(_mask(b, x.shape[-1:]))}"
    if name in ("sum", "prod") and b.chance(0.1):
        text += ", initial=0.5"
    if "q=" in more and "axis" not in text:
        text += ", axis=None"
    if name == "std":  # the standard deviation of one element is 0, a kink
        guard += f" and away({text}))"
    if name in ("any", "count_nonzero"):
        return b.line(text + ") * {0}", i, guard=guard)
    return b.line(text + ")", i, guard=guard)


def _mask(b: Builder, shape: Any) -> Any:
    found = b.rng.random(shape) < 0.6
    if found.size and not found.any():
        found.flat[0] = True
    return found


#: Functions along one axis.
SCANS = [
    ("np.cumsum({0}, axis={axis})", "fc", ""),
    ("np.cumprod({0}, axis={axis})", "fc", "below({0}, 2)"),
    ("np.sort({0}, axis={axis})", "f", "distinct({0})"),
    ("np.diff({0}, axis={axis})", "fc", ""),
    ("np.flip({0}, {axis})", "fc", ""),
    ("np.flip({0})", "fc", ""),
    ("np.roll({0}, 1, {axis})", "fc", ""),
    ("np.roll({0}, -1)", "fc", ""),
    ("np.repeat({0}, 2, axis={axis})", "fc", ""),
    ("np.take_along_axis({0}, np.argsort({0}, axis={axis}), {axis})", "f", "distinct({0})"),
    ("np.take_along_axis({0}, np.argmax({0}, axis={axis}, keepdims=True), {axis})", "f", "distinct({0})"),
    ("np.argmin({0}, axis={axis}) * np.sum({0}, axis={axis})", "f", "distinct({0})"),
    ("np.gradient({0}, axis={axis})", "f", ""),
    ("np.trapezoid({0}, axis={axis})", "fc", ""),
    ("np.cumulative_sum({0}, axis={axis})", "f", ""),
    ("np.cumulative_sum({0}, axis={axis}, include_initial=True)", "f", ""),
    ("np.nancumsum({0}, axis={axis})", "f", ""),
    ("np.expand_dims({0}, {axis})", "fc", ""),
    ("np.moveaxis({0}, {axis}, 0)", "fc", ""),
    ("np.rollaxis({0}, {axis})", "fc", ""),
    ("np.swapaxes({0}, {axis}, -1)", "fc", ""),
    ("np.stack([{0}, 0.5 * {0}], axis={axis})", "fc", ""),
    ("np.concatenate([{0}, {0} ** 2], axis={axis})", "fc", ""),
    ("np.append({0}, 0.3 * {0}, axis={axis})", "fc", ""),
    ("np.delete({0}, 0, axis={axis})", "fc", ""),
    ("np.split({0}, [1], axis={axis})[0]", "fc", ""),
    ("np.array_split({0}, 2, axis={axis})[1]", "fc", ""),
    ("np.take({0}, 0, axis={axis})", "fc", ""),
    ("np.take({0}, np.argmax({0}))", "f", "distinct({0})"),
    ("np.average({0}, axis={axis})", "fc", ""),
    ("np.sum(np.sort({0}, axis={axis}) * np.argsort({0}, axis={axis}), axis={axis})", "f", "distinct({0})"),
    ("np.unstack({0}, axis={axis})[0]", "fc", ""),
    ("np.apply_along_axis(lambda r: r * np.sum(r), {axis}, {0})", "fc", ""),
    ("np.fft.fft({0}, axis={axis})", "fc", ""),
    ('np.fft.ifft({0}, axis={axis}, norm="ortho")', "fc", ""),
    ("np.fft.rfft({0}, axis={axis})", "f", ""),
    ("np.fft.irfft({0}, n=3, axis={axis})", "fc", "np.size({0})"),  # for no elements NumPy makes arbitrary numbers
    ("np.fft.rfft({0}, n=4, axis={axis})", "f", ""),
    ("np.fft.hfft({0}, n=4, axis={axis})", "c", ""),
    ("np.fft.fftshift({0}, axes={axis})", "fc", ""),
    ("np.fft.fftn({0})", "fc", ""),
    ("np.fft.irfftn(np.fft.rfftn({0}), {0}.shape, axes=range({0}.ndim))", "f", ""),
]


def along(b: Builder) -> Line | None:
    """Make a statement with an operation along one axis."""
    i = b.inexact(1)
    if i is None:
        return None
    x = b.value(i)
    text, _, guard = b.pick(*[row for row in SCANS if x.dtype.kind in row[1]])
    return b.line(text.replace("{axis}", str(axis(b, x.ndim))), i, guard=guard)


# ---- parts and shapes --------------------------------------------------------------------------------------------


def index(b: Builder, shape: tuple[int, ...], masks: bool = True) -> str:
    """Return an index as code: integers, slices, new axes, an ellipsis, arrays of integers and booleans."""
    entries: list[str] = []
    for n in shape[: int(b.rng.integers(1, len(shape) + 1))]:
        kind = int(b.rng.integers(8))
        if kind <= 1 and n:
            entries.append(str(int(b.rng.integers(-n, n))))
        elif kind == 2 and n:
            entries.append(b.const(b.rng.integers(-n, n, b.pick((2,), (3,), (2, 1), ()))))
        elif kind == 3 and masks and n:
            entries.append(b.const(_mask(b, (n,))))
        else:
            entries.append(b.pick(":", "::-1", "1:", ":-1", "::2", ":1"))
    if b.chance(0.2):
        entries.insert(int(b.rng.integers(len(entries) + 1)), "None")
    if b.chance(0.2) and len(entries) <= len(shape):
        entries.insert(0, "...") if b.chance(0.5) else entries.append("...")
    return ", ".join(entries)


def getitem(b: Builder) -> Line | None:
    """Make a statement that reads a part by indexing."""
    i = b.inexact(1)
    if i is None:
        return None
    x = b.value(i)
    if b.chance(0.15):
        return b.line(f"{{0}}[{b.const(_mask(b, x.shape))}]", i)
    if b.chance(0.1) and x.ndim and x.shape[0]:
        n = x.shape[0]
        return b.line(f"np.take({{0}}, {b.const(b.rng.integers(0, n, (2, 2)))}, axis=0)", i)
    if b.chance(0.1):
        return b.line("{0}[np.argmax({1})]", i, i, guard="np.ndim({0}) == 1 and distinct({0})")
    return b.line(f"{{0}}[{index(b, x.shape)}]", i)


SHAPES = [
    "np.reshape({0}, -1)",
    "{0}.reshape(1, -1)",
    "{0}.reshape((-1, 2))",
    'np.reshape({0}, (-1,), order="F")',
    "np.transpose({0})",
    "{0}.T",
    "np.ravel({0})",
    "{0}.flatten()",
    "np.squeeze({0})",
    "np.atleast_2d({0})",
    "np.broadcast_to({0}, (2, *{0}.shape))",
    "np.tile({0}, 2)",
    "np.tile({0}, (2, 1))",
    "np.repeat({0}, 2)",
    "np.pad({0}, 1)",
    "np.rot90({0})",
    "np.fliplr({0})",
    "np.tril({0})",
    "np.triu({0}, 1)",
    "np.diag({0})",
    "np.diagonal({0})",
    "np.diagflat({0})",
    "np.trace({0})",
    "np.outer({0}, {0})",
    "np.hstack([{0}, {0}])",
    "np.vstack([{0}, 2 * {0}])",
    "np.column_stack([{0}, {0}])",
    "np.ediff1d({0})",
    "np.vander({0}, 3)",
    "np.corrcoef({0}, np.sin(2 * {0}))",
    "np.cov({0})",
    "np.matrix_transpose({0})",
    "np.meshgrid(np.ravel({0}), np.ravel({0}))[0]",
    "np.insert({0}, 1, 0.5)",
    "np.resize({0}, 5)",
    "np.block([[{0}], [{0}]])",
    "np.copy({0})",
    "np.polyval({0}, 0.7)",
]


def shape(b: Builder) -> Line | None:
    """Make a statement that gives another shape, or the like."""
    i = b.inexact()
    if i is None:
        return None
    text = b.pick(*SHAPES)
    return b.line(text, i, guard=guard_of(text))


def join(b: Builder) -> Line | None:
    """Make a statement that joins two values in one array."""
    i = b.inexact()
    j = b.inexact()
    if i is None or j is None:
        return None
    texts = ("np.concatenate([{0}, {1}])", "np.stack([{0}, {1}])", "np.hstack([{0}, {1}])", "np.append({0}, {1})")
    return b.line(b.pick(*texts), i, j)


PRODUCTS = [
    "{0} @ {1}",
    "np.matmul({0}, {1})",
    "np.dot({0}, {1})",
    "np.inner({0}, {1})",
    "np.outer({0}, {1})",
    "np.vdot({0}, {1})",
    "np.kron({0}, {1})",
    "np.tensordot({0}, {1}, 1)",
    "np.cross({0}, {1})",
    "np.vecdot({0}, {1})",
    'np.einsum("i,i->", {0}, {1})',
    'np.einsum("ij,j->i", {0}, {1})',
    'np.einsum("ij,jk->ki", {0}, {1})',
    'np.einsum("...i,...j->...ij", {0}, {1})',
    'np.einsum("ij->j", {0}) * np.sum({1})',
    "np.convolve({0}, {1})",
    'np.convolve({0}, {1}, mode="same")',
    'np.correlate({0}, {1}, mode="full")',
    "np.polyval({0}, {1})",
    "np.polymul({0}, {1})",
    "np.linalg.multi_dot([{0}, {1}, {0}])",
]


def product(b: Builder) -> Line | None:
    """Make a statement with a product of two values, or of a value and a constant."""
    i = b.inexact()
    if i is None:
        return None
    text = b.pick(*PRODUCTS)
    j = b.inexact()
    if b.chance(0.6) and j is not None:
        return b.line(text, i, j, guard=guard_of(text))
    x = b.value(i)
    last = x.shape[-1] if x.ndim else 1
    kind = b.pick("f", "f", x.dtype.kind, "i")
    const = b.const(b.random(b.pick((last,), (last, 2), (2, last), (last, last)), kind))
    first, second = ("{0}", const) if b.chance(0.5) else (const, "{0}")
    names = {"{0}": first, "{1}": second}
    return b.line(_filled(text, names), i, guard=_filled(guard_of(text), names))


def interp(b: Builder) -> Line | None:
    """Make a statement with linear interpolation between constants."""
    i = b.inexact(kinds="f")
    if i is None:
        return None
    knots = b.const(np.array([-2.5, -0.7, 0.45, 1.9]))
    heights = b.const(b.random((4,)))
    guard = " and ".join(f"away({{0}} - ({k}))" for k in (-2.5, -0.7, 0.45, 1.9))
    return b.line(f"np.interp({{0}}, {knots}, {heights})", i, guard=guard)


ARRAYS: list[tuple[float, Maker]] = [
    (3.0, unary),
    (3.0, binary),
    (0.3, clip),
    (2.0, reduction),
    (2.0, along),
    (2.0, getitem),
    (1.5, shape),
    (0.8, join),
    (1.2, product),
    (0.2, interp),
]
