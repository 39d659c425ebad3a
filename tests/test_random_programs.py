"""Random programs under random stacks of transforms: funcgrad and JAX agree.

A program is a list of steps on earlier values, built once and run on both libraries. Most steps are
ordinary array operations, some are transforms of small functions that close over earlier values, some
are Python control flow. A stack of transforms is then applied to the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from fuzz.evaluating import evaluated
from hypothesis import event, given, note, settings
from hypothesis import strategies as st
from operations.comparing import assert_close
from operations.spec import array

import funcgrad
import funcgrad.numpy as fnp

NAMES = ("grad", "jvp", "vjp", "linearize", "vmap", "hessian", "jacfwd", "jacrev")
OURS = SimpleNamespace(
    np=fnp,
    stop=funcgrad.stop_gradient,
    no_grad=funcgrad.no_grad,
    **{name: getattr(funcgrad, name) for name in NAMES},
)
THEIRS = SimpleNamespace(
    np=jnp,
    stop=jax.lax.stop_gradient,
    no_grad=lambda f: lambda *args: jax.lax.stop_gradient(f(*args)),
    **{name: getattr(jax, name) for name in NAMES},
)
LARGEST = 8  # elements of a value
SHAPES = [(), (3,), (2, 3), (1, 3), (2, 1)]


# ---- steps: each is ``run(lib, k, x, y)`` with a number ``k`` that chooses a variant -----------------------------


def choose(k: int, *variants: Callable[[], Any]) -> Any:
    return variants[k % len(variants)]()


def unary(lib: Any, k: int, x: Any, y: Any) -> Any:
    xp = lib.np
    return choose(
        k,
        lambda: xp.sin(x),
        lambda: xp.cos(x) * x,
        lambda: xp.tanh(x),
        lambda: x**2,
        lambda: xp.sqrt(1 + x * x),
        lambda: xp.log(2 + xp.square(x)),
        lambda: xp.exp(xp.tanh(x)),
        lambda: -abs(x - 10),
        lambda: xp.arctan(x) ** 3,
    )


def binary(lib: Any, k: int, x: Any, y: Any) -> Any:
    xp = lib.np
    return choose(
        k,
        lambda: x + y,
        lambda: x * y,
        lambda: 0.5 - x / (2 + xp.sin(y)),
        lambda: (1.5 + xp.tanh(x)) ** xp.tanh(y),
        lambda: xp.maximum(x, y + 0.01),
        lambda: xp.arctan2(x, 5 + y * y),
    )


def constant(lib: Any, k: int, x: Any, y: Any) -> Any:
    outer = array(*x.shape, seed=k)
    return choose(k, lambda: x * outer, lambda: outer - x, lambda: outer / (3 + x * x), lambda: 0.7 * x + 1)


def reduction(lib: Any, k: int, x: Any, y: Any) -> Any:
    xp = lib.np
    if x.ndim == 0:
        return xp.sum(x)
    return choose(
        k,
        lambda: xp.sum(x, axis=-1),
        lambda: xp.mean(x, axis=0, keepdims=True),
        lambda: xp.prod(xp.tanh(x), axis=-1),
        lambda: xp.max(x, axis=0),
        lambda: xp.var(x),
        lambda: xp.cumsum(x, axis=-1),
        lambda: x.sum() * x,
    )


def index(lib: Any, k: int, x: Any, y: Any) -> Any:
    if x.ndim == 0:
        return x[None] if k % 2 else x[...]
    return choose(
        k,
        lambda: x[0],
        lambda: x[::-1],
        lambda: x[..., None, 0],
        lambda: x[np.array([0, -1, 0])],
        lambda: x[-1:],
        lambda: x[array(*x.shape, seed=k) > -1.0],
        lambda: x[0] * x[-1],
    )


def shape(lib: Any, k: int, x: Any, y: Any) -> Any:
    xp = lib.np
    return choose(
        k,
        lambda: xp.reshape(x, -1),
        lambda: xp.transpose(x),
        lambda: xp.expand_dims(x, 0),
        lambda: xp.broadcast_to(x, (2, *x.shape)),
        lambda: xp.squeeze(x),
        lambda: x.T,
    )


def product(lib: Any, k: int, x: Any, y: Any) -> Any:
    xp = lib.np
    flat = xp.ravel(x)
    return choose(
        k,
        lambda: xp.matmul(flat, xp.sin(flat)),
        lambda: xp.reshape(x, (-1, 1)) @ xp.reshape(xp.ravel(y)[:2], (1, -1)),
        lambda: array(2, x.size, seed=k) @ flat,
        lambda: xp.dot(flat, array(x.size, 2, seed=k)),
        lambda: x @ y if x.ndim and y.ndim else x * y,
    )


def join(lib: Any, k: int, x: Any, y: Any) -> Any:
    xp = lib.np
    return choose(
        k,
        lambda: xp.concatenate([xp.ravel(x), xp.ravel(y)]),
        lambda: xp.stack([x, 2 * x]),
        lambda: xp.concatenate([xp.ravel(y)[:1], xp.ravel(x)]),
    )


def where(lib: Any, k: int, x: Any, y: Any) -> Any:
    xp = lib.np
    return choose(
        k,
        lambda: xp.where(x > 0.01, x * x, y),
        lambda: xp.where(array(*x.shape, seed=k) > 0, x, xp.sin(x)),
        lambda: xp.where(y < x, y, 1.5),
        lambda: xp.clip(x, -1.01, 1.02),
    )


def loop(lib: Any, k: int, x: Any, y: Any) -> Any:
    for i in range(k % 3 + 1):
        x = 0.5 * x + lib.np.sin(x) * i
    return x


def constant_part(lib: Any, k: int, x: Any, y: Any) -> Any:
    return choose(
        k,
        lambda: lib.stop(x) * y,
        lambda: lib.no_grad(lambda z: lib.np.sin(z) * y)(x) + x,
        lambda: x * lib.no_grad(lib.grad(lambda z: lib.np.sum(z * z * lib.np.sum(y))))(x),
    )


def nested(lib: Any, k: int, x: Any, y: Any) -> Any:
    """Transform a function that closes over ``y``, which outer transforms may trace."""
    xp = lib.np
    c = xp.sum(y)
    return choose(
        k,
        lambda: lib.grad(lambda z: xp.sum(xp.sin(z) * z * c))(x),
        lambda: lib.jvp(lambda z: z * z * c, (x,), (xp.cos(x),))[1],
        lambda: lib.vjp(lambda z: xp.sin(z * c), x)[1](xp.tanh(x))[0],
        lambda: lib.linearize(lambda z: z**3 + c * z, x)[1](xp.tanh(c) * x),
        lambda: lib.vmap(lambda z: xp.sin(z) * c + z * z)(xp.reshape(x, -1)),
        lambda: lib.vmap(lib.grad(lambda z: z**3 * c))(xp.reshape(x, -1)),
        lambda: lib.grad(lambda z: lib.grad(lambda w: w**3 * z * c)(z) * z)(xp.sum(x)),
        lambda: lib.jacfwd(lambda z: xp.stack([z, xp.sin(z) * c]))(xp.sum(x)),
        lambda: lib.hessian(lambda z: z**2 * c * xp.sum(x))(xp.tanh(c)),
        lambda: lib.vmap(lambda a: xp.sum(x * a) * c)(np.array([0.5, 2.0])),
    )


STEPS = {
    "unary": unary,
    "binary": binary,
    "constant": constant,
    "reduction": reduction,
    "index": index,
    "shape": shape,
    "product": product,
    "join": join,
    "where": where,
    "loop": loop,
    "constant_part": constant_part,
    "nested": nested,
    "branch": None,
}


@dataclass
class Program:
    """Steps on an input. Each step is a name, a variant, and the positions of two earlier values.

    The program notes the branches that Python's ``if`` takes, because a compiling library cannot evaluate them.
    """

    shape: tuple[int, ...]
    steps: list[tuple[str, int, int, int]] = field(default_factory=list)
    taken: dict[int, bool] = field(default_factory=dict)

    def __call__(self, lib: Any, x: Any) -> Any:
        values = [x, lib.np.tanh(x)]
        for number in range(len(self.steps)):
            values.append(self.step(lib, number, values))
        total = values[-1]
        for value in values[:-1]:  # every value enters the result
            total = total + 0.1 * lib.np.sum(value)
        return total

    def step(self, lib: Any, number: int, values: list[Any]) -> Any:
        name, k, i, j = self.steps[number]
        x, y = values[i], values[j]
        if name != "branch":
            return STEPS[name](lib, k, x, y)
        if lib is OURS:
            self.taken[number] = bool(lib.np.sum(x) > 0.1 * k - 0.3)
        y = y if lib.np.shape(y) == lib.np.shape(x) else x  # the other branch may be taken later
        return lib.np.sin(x) * y if self.taken[number] else x * x

    def append(self, step: tuple[str, int, int, int], values: list[Any]) -> None:
        """Add ``step`` if it fits the current values, otherwise a simple step; keep values small."""
        self.steps.append(step)
        try:
            made = self.step(OURS, len(self.steps) - 1, values)
        except (ValueError, IndexError):  # shapes that do not fit
            made = None
        if made is None or not 0 < np.size(made) <= LARGEST or np.ndim(made) > 3:
            self.steps[-1] = ("unary", step[1], *step[2:])
            made = self.step(OURS, len(self.steps) - 1, values)
        values.append(made)
        if np.max(np.abs(made)) > 3:
            self.steps.append(("unary", 2, len(values) - 1, 0))
            values.append(np.tanh(made))


@st.composite
def programs(draw: Any, *, branches: bool) -> Program:
    program = Program(draw(st.sampled_from(SHAPES)))
    values = [array(*program.shape), np.tanh(array(*program.shape))]
    names = [name for name in STEPS if branches or name != "branch"]
    for _ in range(draw(st.integers(1, 6))):
        places = st.integers(0, len(values) - 1)
        k = draw(st.integers(0, 9))
        # recent values are more likely: negative positions count from the end, and integers shrink to zero
        i, j = (len(values) - 1 - draw(places) for _ in range(2))
        program.append((draw(st.sampled_from(names)), k, i, j), values)
    return program


# ---- stacks: each maps a function of an array to another function ------------------------------------------------


def scalar(lib: Any, f: Any, k: int) -> Any:
    """Return a function that sums ``f`` with weights."""

    def total(x: Any) -> Any:
        y = f(x)
        return lib.np.sum(y * array(*y.shape, seed=k))

    return total


STACK = {
    "grad": lambda lib, f, k: lib.grad(scalar(lib, f, k)),
    "jvp": lambda lib, f, k: lambda x: lib.jvp(f, (x,), (lib.np.cos(x) if k % 2 else array(*x.shape, seed=k),))[1],
    "vjp": lambda lib, f, k: lambda x: (lambda y, pull: pull(array(*y.shape, seed=k) + y * (k % 2)))(*lib.vjp(f, x))[0],
    "linearize": lambda lib, f, k: lambda x: lib.linearize(f, x)[1](lib.np.tanh(x)),
    "vmap": lambda lib, f, k: lambda x: lib.vmap(lambda a: f(x * a))(np.array([0.5, 1.5])),
    "vmap_last": lambda lib, f, k: lambda x: lib.vmap(f, in_axes=-1, out_axes=-1)(lib.np.stack([x, 0.5 * x], -1)),
    "hessian": lambda lib, f, k: lib.hessian(scalar(lib, f, k)),
    "jacfwd": lambda lib, f, k: lib.jacfwd(f),
    "jacrev": lambda lib, f, k: lib.jacrev(f),
    "stop_gradient": lambda lib, f, k: lambda x: f(x) * lib.stop(f(x)),
    "no_grad": lambda lib, f, k: lambda x: f(x) * lib.no_grad(f)(x),
    "closure": lambda lib, f, k: lambda x: lib.grad(lambda y: lib.np.sum(f(x * y)))(array(*x.shape, seed=k)) * x,
    "closure_jvp": lambda lib, f, k: lambda x: lib.jvp(lambda y: f(x + y) * lib.np.sum(x), (x,), (x,))[1],
}
MAPS = {"vmap", "vmap_last"}


def stacked(lib: Any, program: Program, stack: list[tuple[str, int]]) -> Any:
    def f(x: Any) -> Any:
        return program(lib, x)

    for name, k in stack:
        f = STACK[name](lib, f, k)
    return f


@st.composite
def experiments(draw: Any) -> tuple[Program, list[tuple[str, int]]]:
    layers = st.tuples(st.sampled_from(list(STACK)), st.integers(0, 5))
    stack = draw(st.lists(layers, min_size=2, max_size=3))
    maps = any(name in MAPS for name, _ in stack)
    return draw(programs(branches=not maps)), stack


@settings(max_examples=40)  # JAX traces each, which takes long; the fuzzer runs many more
@given(experiments())
def test_random_programs_agree_with_jax(experiment):
    program, stack = experiment
    note(f"input {program.shape}, steps {program.steps}, stack {stack}")
    for name, _ in stack:
        event(name)
    x = 0.8 * array(*program.shape, seed=7)
    program(OURS, x)  # notes the branches
    got = stacked(OURS, program, stack)(x)
    assert isinstance(got, (np.ndarray, np.generic))
    assert_close(got, evaluated(stacked(THEIRS, program, stack), x), 1e-9, "against JAX")
