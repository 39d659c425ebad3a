"""Generator of a random program from a number."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from fuzz.grammar import ARRAYS
from fuzz.grammar_functions import FUNCTIONS, WRITES
from fuzz.helpers import funcgrad_library
from fuzz.layers import LAYERS
from fuzz.making import Builder, Maker
from fuzz.programs import Program

__all__ = ["generate", "library"]

SHAPES = [(), (3,), (2,), (2, 3), (3, 1), (1, 3), (2, 2), (3, 3), (2, 1, 3), (4,), (1,)]
EMPTY = [(0,), (0, 3), (2, 0)]
DTYPES = {"float64": 0.69, "float32": 0.13, "complex128": 0.14, "complex64": 0.04}
LENGTHS = (0.3, 0.35, 0.2, 0.15)  # probability that a stack has one, two, three, four layers
REVERSE = ("grad", "grad", "value_and_grad", "vjp", "vjp", "closure")
DERIVATIVES = (*REVERSE, "jvp", "linearize", "jacfwd", "jacrev", "hessian")
OTHERS = ("vmap", "vmap", "vmap_last", "vmap_closure", "checkpoint", "no_grad", "stop_gradient")
COMPILED = 0.004  # probability that funcgrad's transforms run under jax.jit too; compiling takes most of a second
JITTED = 0.002  # probability that one transform is funcgrad's jit
LARGEST_ORDER = 3
STATEMENTS = {0: 8, 1: 7, 2: 4, 3: 3}  # largest numbers of statements, by the number of derivatives


@lru_cache(maxsize=1)
def library() -> Any:
    """Return funcgrad."""
    return funcgrad_library()


def generate(seed: int, number: int) -> Program:
    """Return the program of this number, which is always the same."""
    rng = np.random.default_rng([seed, number])
    while True:
        builder = Builder(rng, _start(rng), library())
        if (program := _filled(builder)) is not None:
            return program


def _stack(rng: np.random.Generator, real: bool) -> tuple[tuple[str, int], ...]:
    layers: list[tuple[str, int]] = []
    order = maps = 0
    for _ in range(1 + int(rng.choice(4, p=LENGTHS))):
        names = DERIVATIVES if rng.random() < 0.65 else OTHERS
        name = str(names[int(rng.integers(len(names)))])
        if rng.random() < JITTED:
            name = "jit"
        layer = LAYERS[name]
        if layer.real and not real:
            name, layer = "vjp", LAYERS["vjp"]
        mapped = len(layer.points(np.ones(1), 0)) > 1
        if order + layer.order > LARGEST_ORDER or (maps and mapped):
            name, layer, mapped = "checkpoint", LAYERS["checkpoint"], False
        order, maps = order + layer.order, maps + mapped
        layers.append((name, int(rng.integers(4))))
    if not order:
        layers.append(("grad", 0))
    return tuple(layers)


def _start(rng: np.random.Generator) -> Program:
    """Choose the argument and the stack."""
    dtype = str(rng.choice(list(DTYPES), p=list(DTYPES.values())))
    stack = _stack(rng, dtype.startswith("float"))
    wide = sum(LAYERS[name].order for name, _ in stack if LAYERS[name].real)
    largest = {0: 9, 1: 6, 2: 4}.get(wide, 3)
    shapes = [s for s in SHAPES if np.prod(s) <= largest]
    leaves = []
    for n in range(1 if rng.random() < 0.75 else 2):
        shape = shapes[int(rng.integers(len(shapes)))]
        if rng.random() < 0.02:
            shape = EMPTY[int(rng.integers(len(EMPTY)))]
        if n and rng.random() < 0.15:  # an array of another precision
            dtype = {"float64": "float32", "float32": "float64", "complex128": "float64", "complex64": "float32"}[dtype]
        x = np.round(rng.uniform(0.15, 1.4, shape) * rng.choice([-1, 1], shape), 2)
        if dtype.startswith("complex"):
            x = x + 1j * np.round(rng.uniform(0.2, 1.2, shape), 2)
        leaves.append(np.asarray(x, dtype))
    return Program(
        tuple(leaves),
        stack=stack,
        dispatch=bool(rng.random() < 0.5),
        lift=bool(rng.random() < 0.1),
        compiled=bool(rng.random() < COMPILED),
    )


def _filled(b: Builder) -> Program | None:
    """Return the statements and the result."""
    order = min(sum(LAYERS[name].order for name, _ in b.program.stack), LARGEST_ORDER)
    wanted = int(b.rng.integers(2, STATEMENTS[order] + 1))
    makers = [*ARRAYS, *FUNCTIONS]
    if b.chance(0.2):  # a program that writes
        makers = [(w * share, m) for share, rows in ((1, ARRAYS), (0.75, FUNCTIONS), (6, WRITES)) for w, m in rows]
        b.program = replace(b.program, lift=True)
        wanted += 3
    for _ in range(6 * wanted):
        if len(b.program.lines) >= wanted:
            break
        line = _chosen(b.rng, makers)(b)
        if line is not None:
            b.add(line)
    return _returning(b)


def _chosen(rng: np.random.Generator, makers: list[tuple[float, Maker]]) -> Maker:
    weights = np.array([w for w, _ in makers])
    return makers[int(rng.choice(len(makers), p=weights / weights.sum()))][1]


def _returning(b: Builder) -> Program | None:
    """Return the program that returns the last floating value and a share of all unused values."""
    real = any(LAYERS[name].real for name, _ in b.program.stack)
    numbers = b.numbers()
    last = [i for i in numbers if b.value(i).dtype.kind in "fc" and not (real and b.value(i).dtype.kind == "c")]
    if not b.program.lines or not last:
        return None
    shares = [i for i in numbers if i != last[-1] and b.value(i).dtype.kind in "fc" and b.value(i).size]
    return b.program.numbered(result=(*shares, last[-1]))
