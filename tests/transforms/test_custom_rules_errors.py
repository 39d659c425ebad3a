"""Custom rules: errors and their messages."""

import jax
import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import custom_jvp, custom_vjp, grad, jvp, value_and_grad, vjp, vmap
from funcgrad.errors import FuncgradError, InputError, NotDifferentiableError, ShapeError

X = np.array([0.3, -1.2, 2.0])


def doubled(bwd, fwd=lambda x: (2 * x, x)):
    f = custom_vjp(lambda x: 2 * x)
    f.defvjp(fwd, bwd)
    return lambda x: fnp.sum(f(x))


def pushed(rule):
    f = custom_jvp(lambda x: 2 * x)
    f.defjvp(rule)
    return lambda x: jvp(f, (x,), (x,))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            grad(doubled(lambda x, ct: ct)),
            InputError,
            r"must return a tuple with a cotangent for each .* Return \(ct,\)",
        ),
        (
            grad(doubled(lambda x, ct: (ct, ct))),
            InputError,
            "must return a tuple with a cotangent for each differentiable argument, 1 here",
        ),
        (
            grad(doubled(lambda x, ct: (fnp.sum(ct),))),
            ShapeError,
            r"wrong shape for argument 0, got \(\), expected \(3,\)",
        ),
        (grad(doubled(lambda x, ct: (ct.astype(np.float32),))), InputError, "wrong dtype for argument 0, got float32"),
        (grad(doubled(lambda x, ct: (ct * 1j,))), InputError, "wrong dtype for argument 0, got complex128"),
        (grad(doubled(lambda x, ct: ((ct,),))), InputError, "no array for argument 0"),
        (grad(doubled(lambda x, ct: ("text",))), InputError, "no array for argument 0, got str 'text'"),
        (
            grad(doubled(lambda x, ct: (ct,), lambda x: 2 * x)),
            InputError,
            "fwd rule must return a pair",
        ),
        (grad(doubled(lambda x, ct: (ct,), lambda x: ("text", x))), InputError, "must return arrays or numbers"),
        (pushed(lambda p, t: t[0]), InputError, "jvp rule must return a pair"),
        (pushed(lambda p, t: (2 * p[0], fnp.sum(t[0]))), ShapeError, "wrong shape for the result"),
        (pushed(lambda p, t: (2 * p[0], t[0].astype(np.float32))), InputError, "wrong dtype for the result"),
        (pushed(lambda p, t: (2 * p[0], (t[0],))), InputError, "no array for the result"),
        (pushed(lambda p, t: ((p[0], p[0]), t[0])), InputError, "another structure for the result"),
    ],
)
def test_invalid_results_of_rules_raise(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call(X)
    assert isinstance(caught.value, FuncgradError)
    assert isinstance(caught.value, ValueError if error is ShapeError else TypeError)


def test_wrong_tree_structure_raises():
    f = custom_vjp(lambda p: p["a"] * 2)
    f.defvjp(lambda p: (f(p), None), lambda _, ct: ({"b": ct},))
    with pytest.raises(InputError, match="another structure for argument 0"):
        grad(lambda p: fnp.sum(f(p)))({"a": X})


def test_cotangent_for_nonarray_raises():
    f = custom_vjp(lambda x, name: x * 2)
    f.defvjp(lambda x, name: (f(x, name), None), lambda _, ct: (ct, ct))
    with pytest.raises(InputError, match="no array in argument 1"):
        grad(f)(1.0, "name")


def change(array):
    array[...] = 0
    return array


@pytest.mark.parametrize(
    ("fwd", "bwd"),
    [
        (lambda x: (2 * change(x), x), lambda x, ct: (2 * ct,)),
        (lambda x: (2 * x, x), lambda x, ct: (2 * change(ct),)),
        (lambda x: (2 * x, x), lambda x, ct: (2 * ct + change(x),)),
        (lambda x: (2 * x, {"a": [x * 3, "text"]}), lambda kept, ct: (2 * ct + change(kept["a"][0]),)),
    ],
    ids=["fwd", "cotangent", "argument", "residual"],
)
def test_rules_writing_to_arguments_raise(fwd, bwd):
    x = X.copy()
    with pytest.raises(InputError, match="writes into an array that it was given"):
        grad(doubled(bwd, fwd))(x)
    np.testing.assert_array_equal(x, X)


def test_function_and_jvp_rule_writing_to_arguments_raise():
    f = custom_jvp(lambda x: change(x))
    f.defjvp(lambda primals, tangents: (primals[0] * 2, change(tangents[0])))
    x = X.copy()
    with pytest.raises(InputError, match="the function writes into"):
        f(x)
    with pytest.raises(InputError, match="the jvp rule writes into"):
        jvp(f, (x,), (x,))
    np.testing.assert_array_equal(x, X)


def test_missing_rule_raises():
    with pytest.raises(InputError, match="no derivative rule"):
        custom_vjp(lambda x: x)(1.0)
    with pytest.raises(InputError, match="first argument must be a function"):
        custom_jvp(3)
    with pytest.raises(InputError, match="defvjp: bwd must be a function, got None"):
        custom_vjp(lambda x: x).defvjp(lambda x: x, None)


def test_rules_per_argument():
    f = custom_jvp(lambda x, y: x)
    f.defjvps(lambda t, ans, x, y: t)
    with pytest.raises(InputError, match="2 arguments, got 1 rules"):
        grad(f)(1.0, 2.0)
    with pytest.raises(InputError, match="Use defjvp"):
        custom_jvp(lambda x, y: x, nondiff_argnums=(1,)).defjvps(None)


@pytest.mark.parametrize("transform", [grad, vmap, lambda f: lambda x: jvp(f, (x[0],), (1.0,))])
def test_traced_static_argument_raises(transform):
    f = custom_vjp(lambda x, n: x, nondiff_argnums=(1,))
    f.defvjp(lambda x, n: (x, None), lambda n, kept, ct: (ct,))
    with pytest.raises(InputError, match="a non-differentiable argument is being transformed"):
        transform(lambda x: f(1.0, fnp.sum(x)))(X)


def test_unknown_static_arguments_raise():
    with pytest.raises(InputError, match="out of range, got 2"):
        custom_vjp(lambda x, n: x, nondiff_argnums=(2,))
    with pytest.raises(InputError, match="out of range, got -3"):
        custom_vjp(lambda x, n: x, nondiff_argnums=(-3,))
    with pytest.raises(InputError, match="must name positional arguments"):
        custom_vjp(lambda x, n: x, nondiff_argnames=("m",))


def test_mismatched_arguments_raise():
    f = custom_vjp(lambda x, n=2: x)
    f.defvjp(lambda x, n: (x, None), lambda kept, ct: (ct, None))
    with pytest.raises(InputError, match="the arguments do not fit"):
        f(1.0, 2, 3)
    with pytest.raises(InputError, match="the arguments do not fit"):
        f(1.0, m=3)
    g = custom_vjp(lambda x, *, n=2: x)
    g.defvjp(lambda x: (x, None), lambda kept, ct: (ct,))
    with pytest.raises(InputError, match=r"keyword-only arguments have no place in derivative rules, got \['n'\]"):
        g(1.0, n=3)


# Closures.


def closing(w, kind):
    f = (custom_vjp if kind == "vjp" else custom_jvp)(lambda x: x * w)
    if kind == "vjp":
        f.defvjp(lambda x: (x * w, None), lambda _, ct: (ct * w,))
    else:
        f.defjvp(lambda primals, tangents: (primals[0] * w, tangents[0] * w))
    return f


SAME_LEVEL = {
    "besides an argument": lambda kind: grad(lambda w: closing(w, kind)(w))(2.0),
    "with a constant argument": lambda kind: grad(lambda w: closing(w, kind)(3.0))(2.0),
    "of an inner transform": lambda kind: grad(lambda x: grad(lambda w: closing(w, kind)(x))(3.0))(2.0),
    "in forward mode": lambda kind: jvp(lambda w: closing(w, kind)(w), (2.0,), (1.0,)),
    "forward in forward": lambda kind: jvp(
        lambda x: jvp(lambda w: closing(w, kind)(x), (2.0,), (1.0,))[1], (2.0,), (1.0,)
    ),
    "of a vmap inside": lambda kind: grad(lambda x: fnp.sum(vmap(lambda w: closing(w, kind)(x))(X)))(2.0),
}


@pytest.mark.parametrize("kind", ["vjp", "jvp"])
@pytest.mark.parametrize("case", SAME_LEVEL)
def test_closures_over_tracers_raise(case, kind):
    with pytest.raises(NotDifferentiableError, match="closes over a value that is being transformed"):
        SAME_LEVEL[case](kind)


@pytest.mark.parametrize("kind", ["vjp", "jvp"])
def test_closures_over_outer_values(kind):
    """Check that, as in JAX, rules see a value that an outer transform differentiates as an ordinary value."""

    def nested(grad, value_and_grad, close):
        return (
            grad(lambda w: grad(close(w))(3.0))(2.0),
            grad(lambda w: value_and_grad(close(w))(3.0)[0])(2.0),
            grad(lambda w: grad(grad(close(w)))(3.0))(2.0),
        )

    def in_jax(w):
        f = (jax.custom_vjp if kind == "vjp" else jax.custom_jvp)(lambda x: x * w)
        if kind == "vjp":
            f.defvjp(lambda x: (x * w, None), lambda _, ct: (ct * w,))
        else:
            f.defjvp(lambda primals, tangents: (primals[0] * w, tangents[0] * w))
        return f

    ours = nested(grad, value_and_grad, lambda w: closing(w, kind))
    assert ours == nested(jax.grad, jax.value_and_grad, in_jax) == (1.0, 3.0, 0.0)


@pytest.mark.parametrize("kind", ["vjp", "jvp"])
def test_closures_over_batched_values(kind):
    np.testing.assert_array_equal(vmap(lambda w: closing(w, kind)(w))(X), X * X)
    np.testing.assert_array_equal(vmap(lambda w: closing(w, kind)(2.0))(X), 2 * X)
    np.testing.assert_array_equal(vmap(lambda w: grad(closing(w, kind))(2.0))(X), X)
    np.testing.assert_array_equal(vmap(lambda w: jvp(closing(w, kind), (2.0,), (1.0,))[1])(X), X)


def test_values_escaping_through_rules_raise():
    def through_residual(w):
        f = custom_vjp(lambda x: x * 2)
        f.defvjp(lambda x: (x * 2, w), lambda kept, ct: (ct * kept,))
        return f(w)

    def through_closure(w):
        f = custom_vjp(lambda x: x * 2)
        f.defvjp(lambda x: (x * 2, None), lambda kept, ct: (w,))
        return f(w)

    for fun in (through_residual, through_closure):
        with pytest.raises(NotDifferentiableError, match="a transform that has finished"):
            grad(fun)(2.0)


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: jvp(f, (2.0,), (1.0,)),
        lambda f: grad(f)(2.0),
        lambda f: vjp(f, 2.0)[1](1.0),
        lambda f: grad(grad(f))(2.0),
        lambda f: vmap(grad(f))(X),
    ],
)
def test_tangent_from_closure_raises(transformed):
    def fun(w):
        f = custom_jvp(lambda x: x * 2)
        f.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * w))
        return f(w)

    with pytest.raises(NotDifferentiableError, match="closes over a value that is being transformed"):
        transformed(fun)


def test_errors_of_rules_pass_through():
    f = custom_vjp(lambda x: x * 2)

    def bwd(kept, ct):
        raise ValueError("own words")

    f.defvjp(lambda x: (x * 2, None), bwd)
    with pytest.raises(ValueError, match="own words"):
        grad(f)(2.0)
    assert vjp(f, 2.0)[0] == 4.0
