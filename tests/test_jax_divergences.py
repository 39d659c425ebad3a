"""Where JAX is known to be wrong or to refuse, and funcgrad does otherwise on purpose: one table, with reasons.

Each entry shows both. The right values come from the definition of the derivative, not from either library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad
import funcgrad.numpy as fnp
from funcgrad.errors import ConcretizationError, FuncgradError, InputError, ShapeError

OBSERVED = (0, 10)  # the version of JAX that these observations are of
WEIGHTS = np.array([1.0, 10.0, 100.0])
FLOAT0 = [("float0", "V")]


@dataclass(frozen=True)
class Divergence:
    """One difference.

    Args:
        name: what it is about.
        run: ``run(library, its numpy)`` computes it.
        right: the right answer, or the error that funcgrad raises.
        theirs: what JAX answers, or the error it raises.
        reason: why JAX is not followed.
    """

    name: str
    run: Callable[[Any, Any], Any]
    right: Any
    theirs: Any
    reason: str


def squared(lib: Any) -> Any:
    """``x -> x^2`` with a rule of its own for reverse mode only."""
    f = lib.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * ct,))
    return f


TABLE = [
    Divergence(
        "item",
        lambda lib, xp: lib.grad(lambda x: x.item() * x)(xp.asarray(2.0)),
        ConcretizationError,
        2.0,
        "the true gradient is 4: item() drops the derivative without a word, where float(x) raises",
    ),
    Divergence(
        "arange",
        lambda lib, xp: lib.grad(lambda a: xp.sum(xp.arange(a, 3.0)))(0.5),
        3.0,
        0.0,
        "a + (a+1) + (a+2) has the derivative 3",
    ),
    Divergence(
        "partition with ties",
        lambda lib, xp: lib.grad(lambda x: xp.sum(xp.partition(x, 1) * WEIGHTS))(np.array([2.0, 2.0, 1.0])),
        np.array([10.0, 100.0, 1.0]),
        np.array([110.0, 0.0, 1.0]),
        "two places of the result come from two elements, not both from one",
    ),
    Divergence(
        "sign of a complex number",
        lambda lib, xp: lib.grad(lambda z: xp.real(xp.sign(z)))(1 + 2j),
        # z / |z|: the gradient of x / r is (y^2, -x y) / r^3, as du/dx - i du/dy
        (4 + 2j) / 5**1.5,
        0.0,
        "z / |z| is not constant",
    ),
    Divergence(
        "x to the power 0.0",
        lambda lib, xp: lib.grad(lambda x: x**0.0)(0.0),
        0.0,
        np.nan,
        "x**0.0 is 1 everywhere, as x**0 is",
    ),
    Divergence(
        "second derivative of x to the power 1.0",
        lambda lib, xp: lib.grad(lib.grad(lambda x: x**1.0))(0.0),
        0.0,
        np.nan,
        "x**1.0 is x",
    ),
    Divergence(
        "index out of bounds",
        lambda lib, xp: lib.grad(lambda x: x[5])(xp.ones(3)),
        IndexError,
        np.array([0.0, 0.0, 1.0]),
        "NumPy's indexing rules are NumPy's: no clamping",
    ),
    Divergence(
        "take out of bounds",
        lambda lib, xp: lib.grad(lambda x: xp.sum(xp.take(x, 5)))(xp.ones(3)),
        IndexError,
        np.zeros(3),
        "as for indexing: no silent NaN, no silent zero",
    ),
    Divergence(
        "list as an index",
        lambda lib, xp: lib.grad(lambda x: xp.sum(x[[0, 1]]))(xp.ones(3)),
        np.array([1.0, 1.0, 0.0]),
        TypeError,
        "NumPy takes lists",
    ),
    Divergence(
        "no argnums",
        lambda lib, xp: lib.grad(lambda x: x * x, argnums=())(1.0),
        InputError,
        ValueError,
        "JAX's message is that of max() on an empty sequence",
    ),
    Divergence(
        "argnums repeated",
        lambda lib, xp: lib.grad(lambda x, y: x * y, argnums=(0, 0))(1.0, 2.0),
        ShapeError,
        TypeError,
        "JAX's message speaks of an operand NoneType",
    ),
    Divergence(
        "vjp with keyword arguments",
        lambda lib, xp: lib.vjp(lambda x, k: x * k, 2.0, k=3.0)[1](1.0)[0],
        3.0,
        TypeError,
        "keyword arguments pass through undifferentiated, as for grad",
    ),
    Divergence(
        "jvp with keyword arguments",
        lambda lib, xp: lib.jvp(lambda x, k: x * k, (2.0,), (1.0,), k=3.0)[1],
        3.0,
        TypeError,
        "keyword arguments pass through undifferentiated, as for grad",
    ),
    Divergence(
        "forward mode through a custom_vjp",
        lambda lib, xp: lib.jvp(squared(lib), (3.0,), (1.0,))[1],
        6.0,
        TypeError,
        "a pullback determines the pushforward, its transpose",
    ),
    Divergence(
        "jacfwd of an integer result",
        lambda lib, xp: lib.jacfwd(lambda x: xp.argmax(x))(np.array([1.0, 3.0, 2.0])),
        np.zeros(3, FLOAT0),
        np.zeros(3, int),
        "the tangent of an integer has dtype float0, as jvp gives it",
    ),
]
each = pytest.mark.parametrize("entry", TABLE, ids=[entry.name.replace(" ", "-") for entry in TABLE])


def agrees(entry: Divergence, lib: Any, xp: Any, want: Any) -> bool:
    """Whether a library answers, or raises, ``want``."""
    if isinstance(want, type):
        try:
            entry.run(lib, xp)
        except want:
            return True
        return False
    got = np.asarray(entry.run(lib, xp))
    want = np.asarray(want)
    if want.dtype == FLOAT0:
        return got.dtype == FLOAT0 and got.shape == want.shape
    return got.shape == want.shape and np.allclose(got, want, rtol=1e-12, atol=0, equal_nan=True)


@each
def test_funcgrad_is_right(entry):
    if not (isinstance(entry.right, type) and issubclass(entry.right, FuncgradError)):
        assert agrees(entry, funcgrad, fnp, entry.right)
        return
    with pytest.raises(entry.right, match=r"got .*\."):
        entry.run(funcgrad, fnp)


@each
def test_jax_is_as_observed(entry):
    """When JAX changes, so must the entry: then funcgrad need not differ any more."""
    if jax.__version_info__[:2] == OBSERVED:
        assert agrees(entry, jax, jnp, entry.theirs)


def test_every_entry_has_a_reason():
    assert all(entry.reason for entry in TABLE)
    assert len({entry.name for entry in TABLE}) == len(TABLE)
