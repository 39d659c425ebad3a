"""Gradients of single functions of NumPy on small arrays, against HIPS autograd: wrappers must not take the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from timing import Claim, check_equal, interleave, paired_ratio

import funcgrad.numpy as fnp
from funcgrad import grad

__all__ = ["against_autograd"]

Function = Callable[[Any, Any], Any]
OTHER = np.linspace(0.3, 0.8, 10)
MATRIX = np.random.default_rng(1).uniform(0.1, 1.0, (4, 4))
POSITIONS = np.array([1, 2, 5])

ELEMENTWISE: dict[str, Function] = {
    **{name: lambda xp, x, name=name: getattr(xp, name)(x) for name in ("sin", "tanh", "sqrt", "abs", "log1p", "exp2")},
    **{
        name: lambda xp, x, name=name: getattr(xp, name)(x, OTHER)
        for name in ("arctan2", "logaddexp", "maximum", "multiply", "divide", "power")
    },
    "clip": lambda xp, x: xp.clip(x, 0.3, 0.8),
    "where": lambda xp, x: xp.where(x > 0.5, x, 0.0),
    "isnan": lambda xp, x: xp.where(xp.isnan(x), 0.0, x),
    "nan_to_num": lambda xp, x: xp.nan_to_num(x),
    "sign": lambda xp, x: x * xp.sign(x),
}
REDUCTIONS: dict[str, Function] = {
    **{
        name: lambda xp, x, name=name: getattr(xp, name)(x)
        for name in ("sum", "mean", "var", "std", "max", "min", "prod", "cumsum", "diff")
    },
    "sort": lambda xp, x: xp.sort(x) * OTHER,
    "any": lambda xp, x: x if xp.any(x > 2) else x * 2,
    "argmax": lambda xp, x: x[xp.argmax(x)],
    "logsumexp": lambda xp, x: xp.log(xp.sum(xp.exp(x - xp.max(x)))),
}
SHAPES: dict[str, Function] = {
    "x[1:]": lambda xp, x: x[1:] - x[:-1],
    "x[0]": lambda xp, x: x[0] * x[1],
    "x[positions]": lambda xp, x: x[POSITIONS],
    "x[[1, 2]]": lambda xp, x: x[[1, 2, 5]],
    "x[mask]": lambda xp, x: x[x > 0.5],
    "x[:, None]": lambda xp, x: x[:, None] * x,
    "array": lambda xp, x: xp.array([x[0], x[1], 1.0]),
    "array of rows": lambda xp, x: xp.array([[x[0], x[1]], [1.0, x[2]]]),
    "concatenate": lambda xp, x: xp.concatenate([x, x]),
    "stack": lambda xp, x: xp.stack([x, x]),
    "hstack": lambda xp, x: xp.hstack([x, x]),
    "append": lambda xp, x: xp.append(x, 1.0),
    "reshape": lambda xp, x: xp.reshape(x, (2, 5)),
    "repeat": lambda xp, x: xp.repeat(x, 2),
    "tile": lambda xp, x: xp.tile(x, 2),
    "roll": lambda xp, x: xp.roll(x, 1) * OTHER,
    "pad": lambda xp, x: xp.pad(x, 1, "constant"),
    "full": lambda xp, x: xp.full((3,), x[0]),
    "linspace": lambda xp, x: xp.linspace(0.0, x[0], 5),
    "zeros_like": lambda xp, x: x + xp.zeros_like(x),
    "for v in x": lambda xp, x: sum([v * v for v in x]),
}
MATRICES: dict[str, Function] = {
    "matmul": lambda xp, x: xp.matmul(x, x),
    "dot": lambda xp, x: xp.dot(MATRIX, x),
    "einsum": lambda xp, x: xp.einsum("ij,jk->ik", x, MATRIX),
    "tensordot": lambda xp, x: xp.tensordot(x, MATRIX, 1),
    "kron": lambda xp, x: xp.kron(x, MATRIX),
    "outer": lambda xp, x: xp.outer(x[0], x[1]),
    "trace": lambda xp, x: xp.trace(x),
    "diag": lambda xp, x: xp.diag(x),
    "transpose": lambda xp, x: xp.transpose(x),
    "cross": lambda xp, x: xp.cross(x[0, :3], x[1, :3]),
    "solve": lambda xp, x: xp.linalg.solve(x, OTHER[:4]),
    "inv": lambda xp, x: xp.linalg.inv(x),
    "det": lambda xp, x: xp.linalg.det(x),
    "slogdet": lambda xp, x: xp.linalg.slogdet(x)[1],
    "norm": lambda xp, x: xp.linalg.norm(x),
    "pinv": lambda xp, x: xp.linalg.pinv(x),
    "eigh": lambda xp, x: xp.linalg.eigh(x + x.T)[0],
    "cholesky": lambda xp, x: xp.linalg.cholesky(xp.dot(x, x.T) + np.eye(4)),
}
GROUPS = {
    "elementwise functions": (ELEMENTWISE, np.linspace(0.2, 0.9, 10)),
    "reductions": (REDUCTIONS, np.linspace(0.2, 0.9, 10)),
    "shapes and indices": (SHAPES, np.linspace(0.2, 0.9, 10)),
    "functions of matrices": (MATRICES, np.random.default_rng(0).uniform(0.2, 0.9, (4, 4))),
}


def against_autograd(quick: bool) -> list[Claim]:
    """Measure the gradient of each function, summed if it returns an array, and report the slowest of each group."""
    return [claim(name, *GROUPS[name], rounds=5 if quick else 41) for name in GROUPS]


def summed(fun: Function, xp: Any, x: np.ndarray) -> Callable[[Any], Any]:
    """Return ``fun`` with functions of the module ``xp``, with its result summed if that is an array."""
    return (lambda x: xp.sum(fun(xp, x))) if np.ndim(fun(np, x)) else (lambda x: fun(xp, x))


def claim(group: str, functions: dict[str, Function], x: np.ndarray, rounds: int) -> Claim:
    """Return the claim about the function of a group with the largest ratio of times."""
    import autograd
    import autograd.numpy as anp

    ratios = {}
    for name, fun in functions.items():
        ours, theirs = grad(summed(fun, fnp, x)), autograd.grad(summed(fun, anp, x))
        check_equal(ours(x), {"autograd": theirs(x)})
        calls = {"funcgrad": lambda ours=ours: ours(x), "autograd": lambda theirs=theirs: theirs(x)}
        ratios[name] = paired_ratio(interleave(calls, rounds, repeat=20), "funcgrad", "autograd")
    worst = max(ratios, key=ratios.__getitem__)
    what = f"{len(ratios)} {group}: the slowest against autograd, {worst}"
    return Claim(what, f"{ratios[worst]:.2f}", "autograd: 1", ratios[worst], 1.0)
