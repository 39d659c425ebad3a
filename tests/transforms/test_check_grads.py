"""``check_grads``, the checker for users' tests, passes right derivatives and names the place of wrong ones."""

import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import check_grads, custom_jvp, custom_vjp, stop_gradient, vjp
from funcgrad.errors import GradientCheckError, InputError

X = np.array([0.5, 2.0, -1.0])
M = np.array([[1.0, 0.3], [-0.4, 2.0]])

RIGHT = {
    "elementwise": (lambda x: np.sin(x) * x, (X,)),
    "number": (lambda x: np.exp(np.sin(x)), (1.3,)),
    "identity": (lambda x: x, (2.0,)),
    "two arguments": (lambda a, b: a @ b, (M, M[0])),
    "tree": (lambda p, n: {"y": p["a"] @ p["b"], "z": [np.sum(p["a"]) ** n]}, ({"a": M, "b": M[1]}, 3)),
    "integers pass": (lambda x, i: x[i] ** 2, (X, np.array([0, 0, 2]))),
    "text passes": (lambda x, mode: np.sum(x) if mode == "sum" else None, (X, "sum")),
    "no complex step": (lambda x: np.abs(x) ** 3, (X,)),
    "sort and max": (lambda x: np.sort(x) * np.max(x), (X,)),
    "branch": (lambda x: x * x if x > 0 else -x, (2.0,)),
    "single precision": (lambda x: fnp.logsumexp(x), (np.float32(X),)),
    "single precision of doubles": (lambda x: fnp.astype(np.sin(x) * x, np.float32), (X,)),
    "one number in single precision": (lambda x: np.sum(x**2, dtype=np.float32), (X,)),
    "single precision inside": (lambda x: np.sum((x * x).astype(np.float32)).astype(float), (X,)),
    "half precision": (lambda x: np.sum(x * x), (np.float16(X),)),
    "complex": (lambda z: z * z * np.conj(z), (np.array([1 + 2j, 0.5]),)),
    "real to complex": (lambda x: x * (1 + 2j), (X,)),
    "complex to real": (lambda z: np.abs(z), (np.array([1 + 2j, 0.5]),)),
    "JAX arrays": (lambda x: fnp.sum(fnp.tanh(x)), (jnp.array(X),)),
    "empty": (lambda x: np.sum(x * x), (np.zeros((0, 2)),)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass(name):
    check_grads(*RIGHT[name])


@pytest.mark.parametrize("modes", [("fwd",), ("rev",)])
def test_wrong_derivatives_in_single_precision_are_caught(modes):
    with pytest.raises(GradientCheckError, match="is wrong at"):
        check_grads(lambda x: np.sum(x * stop_gradient(x), dtype=np.float32), (X,), modes=modes)
    with pytest.raises(GradientCheckError, match="has a kink there"):
        check_grads(lambda x: np.sum(np.abs(x - 0.5), dtype=np.float32), (X,), modes=modes)


@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("fwd", "rev")])
def test_orders_and_modes(modes):
    check_grads(lambda x: np.sin(x) * np.exp(x), (1.3,), order=3, modes=modes)


@custom_vjp
def square(x):
    """Square ``x``, with a VJP rule that is off by a factor of 1.01 in entry 2."""
    return x * x


square.defvjp(lambda x: (x * x, x), lambda x, ct: (2 * x * ct * np.array([1.0, 1.0, 1.01]),))


@custom_jvp
def cube(x):
    """Cube ``x``, with a right first derivative and a wrong second one."""
    return x**3


cube.defjvp(lambda primals, tangents: (cube(primals[0]), 3 * stop_gradient(primals[0]) ** 2 * tangents[0]))


@pytest.mark.parametrize(("mode", "place"), [("fwd", r"result\[2\]"), ("rev", r"x\[2\]")])
def test_wrong_rule_is_caught_at_first_order(mode, place):
    says = f"of square by {mode} is wrong at {place}, got .*, measured .* off by 9.9e-03"
    with pytest.raises(GradientCheckError, match=says):
        check_grads(square, (X,), order=1, modes=(mode,))


@pytest.mark.parametrize(("outer", "inner"), [("fwd", "fwd"), ("rev", "rev")])
def test_wrong_rule_is_caught_at_second_order(outer, inner):
    check_grads(cube, (X,), order=1, modes=(inner,))
    with pytest.raises(GradientCheckError, match=f"of cube by {outer} over {inner} is wrong"):
        check_grads(cube, (X,), order=2, modes=(inner,))


def test_mixed_modes_are_caught():
    with pytest.raises(GradientCheckError, match=r"of cube by (fwd|rev) over fwd is wrong"):
        check_grads(cube, (X,))


SEVERAL = {
    "one leaf": (lambda x: np.sin(x) * x, (X,)),
    "three leaves": (lambda a, b, c: np.sin(a @ b) * c, (M, M[0], M[1])),
    "complex": (lambda z, x: z * np.conj(z) ** 2 * x, (np.array([1 + 2j, 0.5]), M[0])),
}


@pytest.mark.parametrize("modes", [("rev",), ("fwd", "rev")])
@pytest.mark.parametrize(("name", "leaf"), [(name, i) for name, (_, args) in SEVERAL.items() for i in range(len(args))])
def test_wrong_cotangent_is_caught_beside_right_forward_mode(name, leaf, modes, monkeypatch):
    """Check each leaf; with forward mode checked, the last leaf is not measured but follows from the others."""

    def slightly_wrong(fun, *leaves):
        value, pullback = vjp(fun, *leaves)
        return value, lambda cts: [ct * (1 + 1e-5 * (i == leaf)) for i, ct in enumerate(pullback(cts))]

    fun, args = SEVERAL[name]
    check_grads(fun, args, order=1, modes=modes)
    monkeypatch.setattr("funcgrad.transforms.checking.vjp", slightly_wrong)
    with pytest.raises(GradientCheckError, match=r"by rev is wrong at [abczx]"):
        check_grads(fun, args, order=1, modes=modes)


def test_wrong_leaf_is_named():
    with pytest.raises(GradientCheckError, match=r"by rev is wrong at p\['b'\]\[1\]\[1, 0\]"):
        check_grads(
            lambda p: (
                np.sum(p["a"] ** 2)
                + np.sum(p["b"][1] * np.array([[1.0, 2.0], [0.0, 1.0]]))
                + p["b"][1][1, 0] * stop_gradient(p["b"][1][1, 0])
            ),
            ({"a": X, "b": (1.0, M)},),
            order=1,
            modes=("rev",),
        )


@pytest.mark.parametrize(
    ("fun", "point"),
    [
        (np.abs, 0.0),
        (lambda x: fnp.maximum(x, 2.0), np.array([1.0, 2.0, 3.0])),
        (lambda x: np.where(x > 1, x, x**2), np.array([1.0, 3.0])),
    ],
    ids=["abs", "maximum", "where"],
)
@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_kink_is_distinguished_from_error(fun, point, mode):
    with pytest.raises(GradientCheckError, match="has a kink there"):
        check_grads(fun, (point,), modes=(mode,))


@pytest.mark.parametrize(
    ("fun", "point"),
    [
        (lambda x: np.where(x >= 1, x + 1, x), 1.0),
        (lambda x: np.floor(x) * x, 1.0),
        (np.sqrt, 0.0),
        (np.log, np.array([1.0, 0.0])),
    ],
    ids=["where", "floor", "sqrt", "log"],
)
@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_jump_or_singular_point_fails(fun, point, mode):
    with np.errstate(all="ignore"), pytest.raises(GradientCheckError, match=r"cannot be measured|has a kink"):
        check_grads(fun, (point,), modes=(mode,))


def test_nondeterministic_function():
    rng = np.random.default_rng(0)
    with pytest.raises(GradientCheckError, match=r"not deterministic: .* at result"):
        check_grads(lambda x: x * rng.normal(), (1.0,))


def test_tolerances():
    with pytest.raises(AssertionError):
        check_grads(square, (X,), order=1)
    check_grads(square, (X,), order=1, rtol=0.05)
    check_grads(square, (X,), order=1, rtol=0.0, atol=0.1)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: check_grads(3, (1.0,)), "must be a function"),
        (lambda: check_grads(np.sin, 1.0), "tuple or a list"),
        (lambda: check_grads(np.sin, (1,)), "nothing to differentiate"),
        (lambda: check_grads(lambda x: None, (1.0,)), "returns nothing"),
        (lambda: check_grads(np.sin, (1.0,), modes=("forward",)), "modes"),
        (lambda: check_grads(np.sin, (1.0,), modes="fwd"), "modes"),
        (lambda: check_grads(np.sin, (1.0,), modes=()), "modes"),
    ],
)
def test_bad_input(call, says):
    with pytest.raises(InputError, match=f"check_grads: .*{says}"):
        call()
