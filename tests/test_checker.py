"""The checks detect wrong operations: each is given an operation that is wrong in one way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from operations import batched, checks, numeric, ownership
from operations.cases import Row, random_like
from operations.comparing import FLOAT0, assert_close
from operations.spec import Sample, array, op, positive

from funcgrad import stop_gradient
from funcgrad.kinds import elementwise, linear, nondifferentiable, primitive
from funcgrad.kinds.linear import broadcast_to, conj, reduce_sum, reshape

CHECKS = {**vars(checks), **vars(batched), "check_ownership": ownership.check_ownership}
ALL = {name.removeprefix("check_"): check for name, check in CHECKS.items() if name.startswith("check_")}
sin = elementwise("sin", dx=lambda x: cos(x))
cos = elementwise("cos", dx=lambda x: -sin(x))


def verdict(name, case):
    """Return whether the check ``name`` passes; an error counts as detection."""
    try:
        ALL[name](case)
    except Exception:
        return False
    return True


def found_wrong(row):
    """Return the names of the checks that reject a row."""
    (case,) = Row(row).cases
    differentiated = set(ALL) - {"zero"} if row.differentiable else {"value", "vmap", "zero"}
    return {name for name in differentiated if not verdict(name, case)}


def sine(fun, **options):
    return op("sine", (array(2, 3),), fun=fun, numpy=np.sin, jax=jnp.sin, **options)


def total(fun, sample=None):
    sample = sample or (array(2, 3),)
    return op("total", sample, fun=fun, numpy=lambda x: np.sum(x, 1), jax=lambda x: jnp.sum(x, 1))


def scaled_sum(push=1.0, pull=1.0, batch="axis"):
    """Return sums over the last axis whose rules are off by factors, or whose batch axis is wrong."""
    made = primitive(
        "scaled_sum",
        lambda xp, x, *, axis: xp.sum(x, axis),
        vjps=[lambda ct, shape, *, axis: broadcast_to(reshape(ct * pull, to=(*shape[:-1], 1)), to=shape)],
        jvps=[lambda t, *, axis: reduce_sum(t, axis=axis) * push],
        batch=batch,
    )
    return lambda x: made(x, axis=(1,))


def test_right_operations_pass():
    assert found_wrong(sine(sin)) == set()
    assert found_wrong(total(scaled_sum())) == set()
    two = (array(2, 3), array(3, seed=1))
    assert found_wrong(op("multiply", two)) == set()
    assert found_wrong(op("multiply", (two[0], two[0]))) == set()
    assert found_wrong(op("floor", (array(3),), fun=nondifferentiable("floor"), differentiable=False)) == set()


def test_wrong_partial_derivative():
    noticed = found_wrong(sine(elementwise("sin", dx=lambda x: sin(x))))
    assert {"jvp", "jax", "second_order"} <= noticed


def test_slightly_wrong_partial_derivative():
    noticed = found_wrong(sine(elementwise("sin", dx=lambda x: cos(x) * (1 + 1e-9))))
    assert {"jvp", "jax"} <= noticed


def test_wrong_in_one_element():
    def dx(x):
        return cos(x) + np.array([[0, 0, 0], [0, 0, 1e-6]])

    assert {"jvp", "jax"} <= found_wrong(sine(elementwise("sin", dx=dx)))


def test_modes_that_disagree():
    assert {"vjp", "jax"} <= found_wrong(total(scaled_sum(pull=1 + 1e-9)))
    assert {"jvp", "vjp", "jax"} <= found_wrong(total(scaled_sum(push=1 + 1e-9)))


def test_both_modes_wrong_in_same_way():
    noticed = found_wrong(total(scaled_sum(push=2.0, pull=2.0)))
    assert {"jvp", "jax"} <= noticed
    assert "vjp" not in noticed


def test_missing_derivative():
    assert {"jvp", "jax"} <= found_wrong(sine(nondifferentiable("sin")))


def test_wrong_second_derivative():
    noticed = found_wrong(sine(elementwise("sin", dx=lambda x: stop_gradient(cos(x)))))
    assert noticed == {"second_order"}


def test_derivative_of_nondifferentiable_function():
    wrong = elementwise("floor", dx=1)
    two = (array(2, 3), array(3, seed=1))
    assert found_wrong(op("multiply", two)) == set()
    assert found_wrong(op("multiply", (two[0], two[0]))) == set()
    assert found_wrong(op("floor", (array(3),), fun=wrong, differentiable=False)) == {"zero"}


def test_wrong_batch_axis():
    assert {"vmap", "vmap_of_derivatives"} <= found_wrong(total(scaled_sum(batch="leading")))


def test_batch_rule_that_mixes_examples():
    def batch(size, args, batched, params):
        return sin(args[0][::-1]), True

    wrong = primitive("sin", vjps=[lambda ct, x: ct * cos(x)], jvps=[lambda t, x: t * cos(x)], batch=batch)
    assert {"vmap", "vmap_of_derivatives"} <= found_wrong(sine(wrong))


def test_promoted_tangent():
    """A JVP rule that promotes is harmless: the kind gives the tangent its result's dtype."""
    made = primitive(
        "sin",
        vjps=[lambda ct, x: ct * cos(x)],
        jvps=[lambda t, x: t * cos(x) * np.float64(1)],
        batch="leading",
    )
    assert found_wrong(sine(made)) == set()


def test_value_of_wrong_dtype():
    wrong = elementwise("sin", lambda xp, x: xp.sin(x).astype(xp.float32), dx=lambda x: cos(x))
    assert "value" in found_wrong(sine(wrong))


def test_array_instead_of_scalar():
    wrong = op("total", (array(3),), fun=lambda x: np.asarray(np.sum(x)), numpy=np.sum, jax=None)
    assert not verdict("value", Row(wrong).cases[0])


def test_numpy_inside_an_operation():
    wrong = linear(
        "total",
        lambda xp, x, *, axis: np.add.reduce(x, axis),
        transpose=lambda ct, shape, *, axis: broadcast_to(reshape(ct, to=(*shape[:-1], 1)), to=shape),
        batch="axis",
    )
    assert "on_jax_arrays" in found_wrong(total(lambda x: wrong(x, axis=(1,))))


def test_changed_input():
    def changing(x):
        if type(x) is np.ndarray:
            x += 0.0
        return sin(x)

    assert "value" in found_wrong(sine(changing))


def shared_cotangent(fun, *primals, **options):
    value, _, *aux = ownership_vjp(fun, *primals, **options)
    return value, lambda cts: cts, *aux


def shared_aux(fun, *primals, **options):
    value, pullback, *_ = ownership_vjp(fun, *primals, **options)
    return value, pullback, primals


def forgetful(fun, *primals, **options):
    """Return a pullback that uses the arguments' values at the time of its call."""
    value, _, *aux = ownership_vjp(fun, *primals, **options)
    return value, lambda cts: ownership_vjp(fun, *primals, **options)[1](cts), *aux


ownership_vjp = ownership.vjp


@pytest.mark.parametrize("wrong", [shared_cotangent, shared_aux, forgetful])
def test_result_sharing_memory_with_input(monkeypatch, wrong):
    (case,) = Row(sine(sin)).cases
    assert verdict("ownership", case)
    monkeypatch.setattr(ownership, "vjp", wrong)
    assert not verdict("ownership", case)


def test_linearize_without_tangent(monkeypatch):
    (case,) = Row(sine(sin)).cases
    real = checks.linearize

    def constant(fun, *primals):
        value, push = real(fun, *primals)
        return value, lambda *tangents: push(*case.tangents)

    monkeypatch.setattr(checks, "linearize", constant)
    assert not verdict("linearize", case)


def test_conjugated_transpose():
    wrong = primitive(
        "sin",
        vjps=[lambda ct, x: conj(conj(ct) * cos(x))],
        jvps=[lambda t, x: t * cos(x)],
        batch="leading",
    )
    made = op("sine", fun=wrong, numpy=np.sin, jax=jnp.sin, complex_samples=[(array(3, kind="complex"),)])
    assert {"vjp", "jax"} <= found_wrong(made)


def test_dropped_imaginary_part_is_found():
    """A pullback that drops the imaginary part of a cotangent is right for real cotangents only."""
    right = elementwise("sin", dx=lambda x: cos(x))
    (case,) = Row(op("sine", fun=right, numpy=np.sin, complex_samples=[(array(3, kind="complex"),)])).cases
    assert len(checks.directions(case)) == 2


@pytest.mark.parametrize(
    ("fun", "point"),
    [
        (np.sin, array(2, 3)),
        (np.exp, array(4)),
        (np.sort, array(5)),
        (np.abs, array(5)),  # complex step unavailable
        (lambda x: np.linalg.inv(x), array(3, 3) + 4 * np.eye(3)),
        (np.cbrt, positive(3)),  # complex numbers refused
    ],
)
def test_referee_matches_known_derivative(fun, point):
    t = random_like(point, np.random.default_rng(0))
    ((found, allowed),) = numeric.derivative(lambda x: (fun(x),), (point,), (t,))
    theirs = {np.sort: jnp.sort, np.abs: jnp.abs, np.cbrt: jnp.cbrt, np.sin: jnp.sin, np.exp: jnp.exp}
    want = jax.jvp(theirs.get(fun, jnp.linalg.inv), (point,), (t,))[1]
    assert np.abs(found - np.asarray(want)).max() <= allowed <= 1e-8


def test_referee_is_unsure_near_a_kink():
    ((found, allowed),) = numeric.derivative(lambda x: (np.abs(x),), (np.array([1e-4, 1.0]),), (np.ones(2),))
    with pytest.raises(AssertionError, match="unsure"):
        numeric.assert_within(found, found, allowed, "near a kink")


def test_referee_reports_missing_derivative():
    with np.errstate(invalid="ignore"):
        ((found, allowed),) = numeric.derivative(lambda x: (np.sqrt(x),), (np.zeros(2),), (np.ones(2),))
    with pytest.raises(AssertionError, match="another sample"):
        numeric.assert_within(found, found, allowed, "at an end of the domain")


def test_samples_become_cases():
    row = op(
        "take",
        Sample((array(3, 2), np.array([0, 2]), 1.5), {"axis": 0, "keepdims": True}, unbatched=(2,)),
        Sample(([array(2), array(2)], (3, 2), None), frozen=(0,)),
    )
    first, second = Row(row).cases
    assert first.id == "take-3x2-2int64-1.5-axis0-keepdims"
    assert [(leaf.live, leaf.mapped) for leaf in first.leaves] == [(True, True), (False, True)]
    assert [(leaf.live, leaf.mapped) for leaf in second.leaves] == [(False, True), (False, True)]
    assert not first.leaves[0].value.flags.writeable
    a, b = second.call(lambda pair, shape, nothing: (pair[0], shape[1]), second.values)
    assert a is second.leaves[0].value
    assert b == 2


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (np.ones(2), np.ones((2, 1))),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0])),
        (np.array([1.0, 2.0]), np.array([1.0, np.nan])),
        (np.array([1.0, np.inf]), np.array([1.0, -np.inf])),
        (np.array([1.0, 1e-8]), np.array([1.0, 0.0])),
        (np.zeros(2), np.zeros(2, FLOAT0)),
    ],
)
def test_comparison_finds_differences(got, want):
    with pytest.raises(AssertionError):
        assert_close(got, want, 1e-10, "value")


def test_comparison_accepts_equal_infinities():
    assert_close([np.inf, np.nan, 1.0], [np.inf, np.nan, 1.0], 0.0, "value")
