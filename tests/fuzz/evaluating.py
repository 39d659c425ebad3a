"""NumPy evaluation of JAX's programs.

Differentiating and batching a random program costs JAX some milliseconds; compiling it, or each of its operations for
each new shape, costs XLA a second. JAX therefore only records what it would compute (a jaxpr, with all of its rules
applied), and NumPy computes that. JAX computes what is missing from the table below. A result that seems to differ
from funcgrad's is computed again by JAX alone before it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax._src import core

from fuzz.evaluating_arrays import WITH_PARAMS

__all__ = ["computed", "evaluated", "fallbacks"]

#: Number of times that JAX computed a primitive itself.
fallbacks: dict[str, int] = {}


def evaluated(fun: Callable[..., Any], *args: Any) -> Any:
    """Return ``fun(*args)``, for a function ``fun`` of JAX."""
    empty = any(np.size(x) == 0 for x in jax.tree.leaves(args))  # JAX does not unroll loops over nothing
    with jax.disable_jit(not empty):  # functions that jax.numpy compiles would be traced twice
        closed, shape = jax.make_jaxpr(fun, return_shape=True)(*args)
    leaves = run(closed, [np.asarray(x) for x in jax.tree.leaves(args)])
    return jax.tree.unflatten(jax.tree.structure(shape), leaves)


def run(closed: Any, args: Sequence[Any]) -> list[Any]:
    """Run a jaxpr, closed or open, on NumPy values."""
    consts = getattr(closed, "consts", ())
    jaxpr = getattr(closed, "jaxpr", closed)
    env: dict[Any, Any] = dict(zip(jaxpr.invars, args, strict=True))
    env.update(zip(jaxpr.constvars, [np.asarray(c) for c in consts], strict=True))

    def read(var: Any) -> Any:
        return np.asarray(var.val, var.aval.dtype) if hasattr(var, "val") else env[var]

    for eqn in jaxpr.eqns:
        values = [read(var) for var in eqn.invars]
        outs = computed(eqn.primitive, values, eqn.params)
        for var, out in zip(eqn.outvars, outs, strict=True):
            env[var] = out if type(out) is np.ndarray else np.asarray(out)
    return [read(var) for var in jaxpr.outvars]


def computed(primitive: Any, values: list[Any], params: dict[str, Any]) -> Sequence[Any]:
    """Compute the results of one operation of JAX."""
    name = primitive.name
    plain = SIMPLE.get(name)
    if plain is not None:
        return (plain(*values),)
    ruled = WITH_PARAMS.get(name)
    if ruled is not None:
        return (ruled(*values, **params),)
    several = MULTIPLE.get(name)
    if several is not None:
        return several(*values, **params)
    return _by_jax(primitive, values, params)


def _by_jax(primitive: Any, values: list[Any], params: dict[str, Any]) -> Sequence[Any]:
    fallbacks[primitive.name] = fallbacks.get(primitive.name, 0) + 1
    if primitive.name in OF_EACH_NUMBER and values[0].size <= LENGTH:
        # XLA compiles for each shape, so one shape is used for all.
        flat = [np.resize(v, LENGTH) if v.size else np.zeros(LENGTH, v.dtype) for v in values]
        with core.eval_context():
            out = primitive.bind(*[jnp.asarray(v) for v in flat], **params)
        return [np.asarray(out)[: values[0].size].reshape(values[0].shape)]
    with core.eval_context():  # JAX may be tracing something now
        outs = primitive.bind(*[jnp.asarray(v) for v in values], **params)
    return [np.asarray(out) for out in (outs if primitive.multiple_results else [outs])]


#: Primitives that JAX computes itself, and for each number by itself, and how many numbers at once.
OF_EACH_NUMBER = frozenset(["digamma", "erf", "erf_inv", "erfc", "lgamma"])
LENGTH = 32


# ---- operations ------------------------------------------------------------------------------


def _divided(x: Any, y: Any) -> Any:
    if x.dtype.kind in "iu":
        return (np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))).astype(x.dtype)
    return x / y


def _selected(which: Any, *cases: Any) -> Any:
    return np.where(which, cases[1], cases[0]) if which.dtype == bool else np.choose(which, cases)


SIMPLE: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "add": np.add,
    "add_any": np.add,
    "and": np.bitwise_and,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "conj": np.conj,
    "cos": np.cos,
    "cosh": np.cosh,
    "div": _divided,
    "eq": np.equal,
    "expm1": np.expm1,
    "floor": np.floor,
    "ge": np.greater_equal,
    "gt": np.greater,
    "bessel_i0e": scipy.special.i0e,
    "bessel_i1e": scipy.special.i1e,
    "imag": np.imag,
    "is_finite": np.isfinite,
    "le": np.less_equal,
    "le_to": np.less_equal,
    "log1p": np.log1p,
    "lt": np.less,
    "lt_to": np.less,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": np.invert,
    "or": np.bitwise_or,
    "pow": lambda x, y: np.power(x, y).astype(x.dtype),
    "real": np.real,
    "rem": np.fmod,
    "select_n": _selected,
    "shift_right_arithmetic": np.right_shift,
    "sign": np.sign,
    "sinh": np.sinh,
    "square": np.square,
    "stop_gradient": lambda x: x,
    "sub": np.subtract,
    "xor": np.bitwise_xor,
    # parameters of these primitives concern accuracy only
    "copy": lambda x: x,
    "copy_p": lambda x: x,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "reduce_precision": lambda x: x,
    "round": np.round,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}


# ---- programs inside programs ------------------------------------------------------------------------------------


def _called(*values: Any, **params: Any) -> list[Any]:
    return run(params.get("jaxpr") or params.get("call_jaxpr") or params["fun_jaxpr"], values)


def _while(*values: Any, cond_nconsts: int, cond_jaxpr: Any, body_nconsts: int, body_jaxpr: Any, **_: Any) -> list[Any]:
    first, second = cond_nconsts, cond_nconsts + body_nconsts
    carry = list(values[second:])
    while True:
        (going,) = run(cond_jaxpr, [*values[:first], *carry])
        if not going.any():
            return carry
        new = run(body_jaxpr, [*values[first:second], *carry])
        # in a batch, examples that are done keep their values
        carry = [
            np.where(going.reshape(going.shape + (1,) * (c.ndim - going.ndim)), n, c)
            for n, c in zip(new, carry, strict=True)
        ]


def _counts(ft_in: Any = None, num_consts: int = 0, num_carry: int = 0, **_: Any) -> list[int]:
    """Return the numbers of constants and of carried values of a scan, of which JAX keeps trees since 0.12."""
    return [num_consts, num_carry] if ft_in is None else [len(list(part)) for part in ft_in.unpack()[:2]]


def _scan(*values: Any, jaxpr: Any, length: int, reverse: bool, **params: Any) -> list[Any]:
    num_consts, num_carry = _counts(**params)
    consts, carry = values[:num_consts], list(values[num_consts : num_consts + num_carry])
    rows = values[num_consts + num_carry :]
    found: list[list[Any]] = []
    for i in reversed(range(length)) if reverse else range(length):
        outs = run(jaxpr, [*consts, *carry, *[x[i] for x in rows]])
        carry = outs[:num_carry]
        found.append(outs[num_carry:])
    if reverse:
        found.reverse()
    count = len(jaxpr.out_avals) - num_carry
    stacked = [
        np.stack([row[k] for row in found])
        if found
        else np.zeros((0, *jaxpr.out_avals[num_carry + k].shape), jaxpr.out_avals[num_carry + k].dtype)
        for k in range(count)
    ]
    return [*carry, *stacked]


def _cond(index: Any, *values: Any, branches: Any, **_: Any) -> list[Any]:
    return run(branches[min(max(int(index), 0), len(branches) - 1)], values)


def _linear_solve(*values: Any, const_lengths: Any, jaxprs: Any, **_: Any) -> list[Any]:
    before = const_lengths.matvec + const_lengths.vecmat
    consts = values[before : before + const_lengths.solve]
    return run(jaxprs.solve, [*consts, *values[sum(const_lengths) :]])


def _sorted(*values: Any, dimension: int, is_stable: bool, num_keys: int, **_: Any) -> list[Any]:
    keys = values[:num_keys]
    if num_keys == 1:
        order = np.argsort(keys[0], dimension, stable=True)
    else:
        order = np.lexsort(tuple(reversed(keys)), dimension)
    return [np.take_along_axis(x, order, dimension) for x in values]


def _split(x: Any, *, sizes: Any, axis: int, **_: Any) -> list[Any]:
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _svd(x: Any, *, full_matrices: bool, compute_uv: bool, subset_by_index: Any = None, **_: Any) -> Sequence[Any]:
    if subset_by_index is not None:
        raise NotImplementedError("some singular values only")
    if not compute_uv:
        return [np.linalg.svd(x, compute_uv=False)]
    u, s, vh = np.linalg.svd(x, full_matrices)
    return [s, u, vh]


def _qr(x: Any, *, full_matrices: bool, pivoting: bool = False, **_: Any) -> Sequence[Any]:
    if pivoting:
        raise NotImplementedError("pivots")
    return list(np.linalg.qr(x, "complete" if full_matrices else "reduced"))


def _lu(x: Any) -> list[Any]:
    rows, columns = x.shape[-2:]
    batch = x.shape[:-2]
    found = [scipy.linalg.lu_factor(m) for m in x.reshape(-1, rows, columns)]
    pivots = [p[: min(rows, columns)] for _, p in found]
    orders = []
    for p in pivots:
        order = np.arange(rows)
        for i, j in enumerate(p):
            order[[i, j]] = order[[j, i]]
        orders.append(order)
    parts = ([m for m, _ in found], pivots, orders)
    dtypes = (x.dtype, np.int32, np.int32)
    return [np.asarray(p, d).reshape(batch + p[0].shape) for p, d in zip(parts, dtypes, strict=True)]


MULTIPLE: dict[str, Callable[..., Sequence[Any]]] = {
    "checkpoint": _called,
    "closed_call": _called,
    "cond": _cond,
    "core_call": _called,
    "custom_jvp_call": _called,
    "custom_linear_solve": _linear_solve,
    "custom_vjp_call": _called,
    "custom_vjp_call_jaxpr": _called,
    "device_put": lambda *values, **_: values,
    "eigh": lambda x, *, lower, **_: np.linalg.eigh(x, "L" if lower else "U")[::-1],
    "jit": _called,
    "lu": _lu,
    "optimization_barrier": lambda *values, **_: values,
    "pjit": _called,
    "qr": _qr,
    "remat": _called,
    "remat2": _called,
    "scan": _scan,
    "sort": _sorted,
    "split": _split,
    "svd": _svd,
    "unstack": lambda x, *, axis, **_: np.unstack(x, axis=axis),
    "while": _while,
}
