"""Operations defined outside of the package: one statement gives every mode."""

import pickle

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.signal
import scipy.special
from helpers import close, identical

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from funcgrad.errors import FuncgradError, InputError, NotDifferentiableError, ShapeError
from funcgrad.extend import (
    defvjp,
    elementwise,
    jointly_linear,
    linear,
    multilinear,
    nondifferentiable,
    numpy_only,
    primitive,
    source,
)

X = np.array([0.7, 1.3, 2.1, 3.4])
Y = np.array([1.1, -0.4, 0.3])

gamma = elementwise("gamma", numpy_only(scipy.special.gamma), dx=lambda x, ans: ans * polygamma(x, n=0))
polygamma = primitive(
    "polygamma",
    numpy_only(lambda x, *, n: scipy.special.polygamma(n, x)),
    vjps=[lambda ct, x, *, n: ct * polygamma(x, n=n + 1)],
    batch="elementwise",
)
dct = linear(
    "dct",
    numpy_only(lambda x: scipy.fft.dct(x, norm="ortho")),
    transpose=lambda ct: idct(ct),
    batch="leading",
)
idct = linear(
    "idct", numpy_only(lambda x: scipy.fft.idct(x, norm="ortho")), transpose=lambda ct: dct(ct), batch="leading"
)
convolve = multilinear(
    "convolve",
    numpy_only(scipy.signal.convolve),
    transposes=[
        lambda ct, y, shape: convolve(ct, y[::-1])[y.shape[0] - 1 : y.shape[0] - 1 + shape[0]],
        lambda ct, x, shape: convolve(ct, x[::-1])[x.shape[0] - 1 : x.shape[0] - 1 + shape[0]],
    ],
    batch="loop",
)
expm = defvjp(scipy.linalg.expm, lambda ans, x: lambda ct: slope_of_expm(x.T, ct), name="expm")


def slope_of_expm(x, direction):
    """Return the derivative along a direction, which is a block of the exponential of a larger matrix."""
    n = x.shape[0]
    upper, lower = fnp.concatenate([x, direction], axis=1), fnp.concatenate([np.zeros((n, n)), x], axis=1)
    return expm(fnp.concatenate([upper, lower]))[:n, n:]


def test_elementwise_scipy_routine():
    theirs = jax.scipy.special.gamma
    close(gamma(X), theirs(X))
    close(vmap(grad(gamma))(X), jax.vmap(jax.grad(theirs))(X))
    close(vmap(grad(grad(grad(gamma))))(X), jax.vmap(jax.grad(jax.grad(jax.grad(theirs))))(X))
    close(jvp(gamma, (X,), (X,))[1], jax.jvp(theirs, (X,), (X,))[1])
    close(hessian(lambda x: fnp.sum(gamma(x)))(X), jax.hessian(lambda x: jnp.sum(theirs(x)))(X))
    close(linearize(gamma, X)[1](X), jax.jvp(theirs, (X,), (X,))[1])


def test_static_parameters():
    close(polygamma(X, n=2), jax.scipy.special.polygamma(2, X))
    close(
        jacfwd(jacrev(lambda x: polygamma(x, n=1)))(X),
        jax.jacfwd(jax.jacrev(lambda x: jax.scipy.special.polygamma(1, x)))(X),
        rtol=1e-8,
    )


def test_linear_routine():
    theirs = lambda x: jax.scipy.fft.dct(x, norm="ortho")
    close(jacrev(dct)(X), jax.jacrev(theirs)(X))
    close(jacfwd(dct)(X), jacrev(dct)(X))
    close(grad(lambda x: fnp.sum(dct(x) ** 3))(X), jax.grad(lambda x: jnp.sum(theirs(x) ** 3))(X))
    close(vmap(dct)(np.stack([X, 2 * X])), np.stack([dct(X), 2 * dct(X)]))


def test_bilinear_routine_without_batching():
    ours, theirs = (lambda x, y: fnp.sum(convolve(x, y) ** 2)), (lambda x, y: jnp.sum(jnp.convolve(x, y) ** 2))
    for argnum in (0, 1):
        close(grad(ours, argnum)(X, Y), jax.grad(theirs, argnum)(X, Y))
        close(hessian(ours, argnum)(X, Y), jax.hessian(theirs, argnum)(X, Y))
    close(jvp(convolve, (X, Y), (2 * X, 3 * Y))[1], 5 * np.convolve(X, Y))
    xs = np.stack([X, X**2, X**3])
    close(vmap(convolve, (0, None))(xs, Y), [np.convolve(x, Y) for x in xs])
    close(vmap(grad(ours), (0, None))(xs, Y), jax.vmap(jax.grad(theirs), (0, None))(xs, Y))
    close(
        grad(lambda y: fnp.sum(vmap(ours, (0, None))(xs, y)))(Y), jax.grad(lambda y: sum(theirs(x, y) for x in xs))(Y)
    )


def test_pullback_makers():
    ours = lambda x, t: fnp.sum(expm(x * t) ** 2)
    theirs = lambda x, t: jnp.sum(jax.scipy.linalg.expm(x * t) ** 2)
    x = np.array([[0.1, 0.4], [-0.3, 0.2]])
    for argnum in (0, 1):
        close(grad(ours, argnum)(x, 0.7), jax.grad(theirs, argnum)(x, 0.7))
        close(hessian(ours, argnum)(x, 0.7), jax.hessian(theirs, argnum)(x, 0.7))
    close(jvp(expm, (x,), (x,))[1], jax.jvp(jax.scipy.linalg.expm, (x,), (x,))[1])
    close(vmap(grad(ours), (None, 0))(x, Y), jax.vmap(jax.grad(theirs), (None, 0))(x, Y))
    assert expm.__module__ == __name__


# A rule for one direction gives the rule for the other direction.

RULES = {
    "vjps": {"vjps": [lambda ct, y, x: ct * (y + 2 * x), lambda ct, x: ct * x]},
    "jvps": {"jvps": [lambda t, y, x: t * (y + 2 * x), lambda t, x: t * x]},
}


@pytest.mark.parametrize("given", [("vjps",), ("jvps",), ("vjps", "jvps")], ids=" and ".join)
def test_one_rule_is_enough(given):
    rules = {key: value for name in given for key, value in RULES[name].items()}
    f = primitive("f", lambda xp, x, y: x * y + x * x, **rules, batch="elementwise")
    plain = lambda x, y: x * y + x * x
    a, b = X, X[::-1] * 2
    for like, made in ((plain, f),):
        for transform in (jacrev, jacfwd, lambda g, i: jacfwd(jacrev(g, i), i), lambda g, i: jacrev(jacfwd(g, i), i)):
            for argnum in (0, 1):
                close(transform(made, argnum)(a, b), transform(like, argnum)(a, b))
    close(vmap(grad(f), (0, None))(a, 2.0), vmap(grad(plain), (0, None))(a, 2.0))
    close(jax.jit(grad(f))(2.0, 3.0), 7.0)


@pytest.mark.parametrize("direction", ["vjps", "jvps"])
def test_several_results_and_none_cotangents(direction):
    def impl(xp, x, k):
        return x * x, xp.sum(x), xp.argmax(x)

    rules = {
        "vjps": [lambda ct, x: 2 * x * ct[0] + ct[1], None],
        "jvps": [lambda t, x: (2 * x * t, fnp.sum(t), None), None],
    }
    f = primitive("parts", impl, **{direction: rules[direction]}, batch="loop", multiple=True)
    (_, total, largest), pull = vjp(lambda x: f(x, 1.0), X)
    assert (total, largest) == (X.sum(), 3)
    zero = np.zeros((), [("float0", "V")])
    close(pull((X, 2.0, zero))[0], 2 * X * X + 2)
    (dsquares, dtotal, _) = jvp(lambda x: f(x, 1.0), (X,), (X,))[1]
    close(dsquares, 2 * X * X)
    close(dtotal, X.sum())
    close(grad(lambda x: f(x, 1.0)[1])(X), np.ones(4))
    assert grad(lambda k: f(X, k)[1])(1.0) == 0.0
    close(vmap(lambda x: f(x, 1.0)[0])(np.stack([X, 2 * X])), np.stack([X * X, 4 * X * X]))


def test_any_number_of_arguments():
    f = primitive(
        "sum_of_four",
        lambda xp, *args: sum(args) * args[3],
        vjps=[*[lambda ct, args: ct * args[3]] * 3, lambda ct, args: ct * (sum(args) + args[3])],
        batch="elementwise",
    )
    args = (1.0, 2.0, 3.0, 4.0)
    assert grad(f, (0, 1, 2, 3))(*args) == (4.0, 4.0, 4.0, 14.0)
    assert jvp(f, args, (1.0, 1.0, 1.0, 1.0))[1] == 26.0


def test_jointly_linear_and_nondifferentiable():
    total = jointly_linear(
        "total", lambda xp, *xs: sum(xs), transpose=lambda ct, shapes, wanted: [ct for _ in wanted], batch="leading"
    )
    assert grad(lambda x: fnp.sum(total(x, x, X)))(X).tolist() == [2, 2, 2, 2]
    cell = nondifferentiable("cell", numpy_only(lambda x: np.floor(x * 2)))
    assert grad(lambda x: fnp.sum(cell(x) * x))(X).tolist() == np.floor(X * 2).tolist()


@pytest.mark.parametrize("axis", [0, 1, -1, np.int64(-2)])
@pytest.mark.parametrize("mapped", [0, 1, 2])
def test_batches_of_operations_along_an_axis(axis, mapped):
    running = linear(
        "running",
        lambda xp, x, *, axis: xp.cumsum(x, axis),
        transpose=lambda ct, *, axis: fnp.flip(running(fnp.flip(ct, axis), axis=axis), axis),
        batch="axis",
    )
    x = np.arange(24.0).reshape(2, 3, 4) ** 2
    expected = np.stack([np.cumsum(part, axis) for part in np.moveaxis(x, mapped, 0)])
    identical(vmap(lambda x: running(x, axis=axis), in_axes=mapped)(x), expected)
    slope = vmap(jacrev(lambda x: running(x, axis=axis)), in_axes=mapped)(x)
    identical(slope, np.stack([jacfwd(lambda x: np.cumsum(x, axis))(part) for part in np.moveaxis(x, mapped, 0)]))


def test_traced_parameters_are_refused():
    times = linear("times", lambda xp, x, *, n: x * n, transpose=lambda ct, *, n: ct * n, batch="elementwise")
    by_numpy = nondifferentiable("steps", numpy_only(lambda x, *, steps: np.floor(x * steps[0])))
    calls = [
        lambda: grad(lambda x: grad(lambda n: times(x, n=n))(1.0) * x)(2.0),
        lambda: grad(lambda x: times(x, n=x))(2.0),
        lambda: vmap(lambda x: times(x, n=x))(X),
        lambda: grad(lambda x: x * by_numpy(2.0, steps=(x, 1)))(2.0),
    ]
    for call in calls:
        with pytest.raises(
            InputError, match=r"the parameter (n|steps) cannot be traced, got float64\[\]. Make it a pos"
        ):
            call()
    assert grad(lambda x: times(x, n=3))(2.0) == 3.0


def test_source_of_every_kind():
    steps = nondifferentiable("steps", lambda xp, x: xp.floor(x))
    assert "def steps(*args, **params):" in source(steps)
    for operation in (fnp.sin, fnp.add, fnp.floor, fnp.isnan, fnp.less, fnp.negative):
        assert f"def {operation.__name__}(" in source(operation)


def test_rules_are_any_callable():
    class Slope:
        def __call__(self, x):
            return 2 * x

    square = elementwise("square_of", lambda xp, x: x * x, dx=Slope())
    assert grad(grad(square))(3.0) == 2.0


def test_name_and_pickling():
    assert (gamma.__name__, gamma.__module__) == ("gamma", __name__)
    assert pickle.loads(pickle.dumps(gamma)) is gamma


# Refused definitions.


def test_numpy_routine_on_jax_arrays():
    for call in (gamma, jax.jit(gamma), jax.grad(gamma), jax.jit(grad(gamma))):
        with pytest.raises(InputError, match=r"gamma: it computes with NumPy only, got an array of jax.numpy"):
            call(jnp.array(2.0))
    undeclared = elementwise("undeclared", lambda xp, x: scipy.special.gamma(x), dx=lambda x: x)
    with pytest.raises(InputError, match="undeclared: it computes with NumPy only"):
        jax.jit(undeclared)(2.0)
    both = elementwise("both", lambda xp, x: xp.sin(x), dx=lambda x: fnp.cos(x))
    close(jax.jit(grad(both))(2.0), np.cos(2.0))


@pytest.mark.parametrize(
    ("define", "words"),
    [
        (
            lambda: elementwise("f", lambda xp, a: a, dx=lambda a: a),
            "f: a rule names what it needs, got a. It may name x, ans",
        ),
        (
            lambda: linear("f", lambda xp, x: x, transpose=lambda ct, ans: ct, batch="leading"),
            "got ans. It may name shape",
        ),
        (lambda: primitive("f", lambda xp, x: x, vjps=[lambda ct, w: ct], batch="leading"), "got w. It may name x, y"),
        (lambda: primitive("f", lambda xp, x: x, batch="leading"), "got neither vjps nor jvps"),
        (lambda: elementwise("no_such_function", dx=1), "numpy has no function of this name, got no impl"),
        (lambda: defvjp(np.sin), "got neither vjps nor jvps"),
        (lambda: defvjp(np.sin, 3), "a pullback maker must be a function, got int 3"),
        (lambda: defvjp("sin", lambda ans, x: lambda ct: ct), "first argument must be a function"),
        (lambda: elementwise(np.sin, dx=1), "extend: the first argument must be the name of the operation, got ufunc"),
        (lambda: elementwise("f", lambda x: x, dx=1), r"f: the routine must take the array namespace .* numpy_only"),
        (
            lambda: primitive("f", lambda x, y: x, vjps=[None, None], batch="loop"),
            "namespace and 2 arrays, got a function of 2",
        ),
        (
            lambda: linear("f", lambda xp, x: x, transpose=lambda ct: ct, batch="whole"),
            "batch must be 'elementwise', 'leading', 'axis', 'loop' or a batching rule, got str 'whole'",
        ),
    ],
)
def test_invalid_definitions_raise(define, words):
    with pytest.raises(InputError, match=words) as caught:
        define()
    assert isinstance(caught.value, FuncgradError)


@pytest.mark.parametrize("x", [np.array([1.0, 2.0, 3.0]), np.float32(2.0), np.ones((2, 3), "f4")], ids=repr)
@pytest.mark.parametrize("to", [np.float32, np.float64, np.complex128], ids=lambda to: to.__name__)
def test_linear_cotangent_has_dtype_and_shape_of_argument(x, to):
    double = linear(
        "double", lambda xp, x: 2 * x, transpose=lambda ct: fnp.astype(fnp.array([ct, ct]), to), batch="leading"
    )
    got = grad(lambda x: fnp.sum(double(x)))(x)
    identical(got, (0 * x + 2).astype(x.dtype))
    if x.ndim:
        identical(vmap(grad(lambda x: fnp.sum(double(x))))(x), got)
        identical(grad(lambda x: fnp.sum(x * grad(lambda x: fnp.sum(double(x) * x))(x)))(x), 8 * x)


def test_invalid_calls_raise():
    f = primitive("one_rule", lambda xp, x, y: x * y, vjps=[lambda ct, y: ct * y], batch="elementwise")
    for call in (grad(f), lambda x, y: jvp(f, (x, y), (1.0, 1.0))):
        with pytest.raises(InputError, match="one_rule: it has derivative rules for 1 arguments, got 2"):
            call(2.0, 3.0)
    scaled = linear("scaled", lambda xp, x, y: x * y, transpose=lambda ct, y: ct * y, batch="elementwise")
    assert grad(scaled)(2.0, 3.0) == 3.0
    for call in (grad(scaled, 1), lambda x, y: jvp(scaled, (x, y), (1.0, 1.0))):
        with pytest.raises(NotDifferentiableError, match="scaled: the operation is declared linear in its first"):
            call(2.0, 3.0)
    with pytest.raises(ShapeError, match="convolve is called example by example and has none"):
        vmap(convolve)(np.zeros((0, 4)), np.zeros((0, 3)))
    with pytest.raises(InputError, match="gamma: argument 0 is not an array or a number"):
        gamma("text")


#: An operation whose results are integers, though it has a derivative: they are traced, and may be positions.
floor_of_half = elementwise("floor_of_half", lambda xp, x: xp.floor(x / 2).astype(int), dx=lambda x: 0 * x)


def reads(x, places):
    return (x[places] ** 2 * np.arange(4.0)).sum() + (fnp.asarray([1.0, 2.0, 3.0])[places] * x).sum()


def writes(x, places):
    y, z, constant, doubled = x * 1.0, fnp.zeros(4), fnp.zeros(4), x * 1.0
    y[places], constant[places], doubled[places] = 2.0, np.ones(4), x * 2.0
    fnp.add.at(z, places, x)
    fnp.add.at(constant, places, 2.0)
    return ((y + z * x + constant + doubled) * x).sum()


def rows(x, places):
    return ((fnp.take_along_axis(x, places, 0) + fnp.bincount(places, x, 4) * fnp.take(x, places)) * x).sum()


@pytest.mark.parametrize("f", [reads, writes, rows])
def test_integers_from_an_operation_with_a_derivative_are_positions(f):
    found, wanted = lambda x: f(x, floor_of_half(x)), lambda x: f(x, np.floor(x / 2).astype(int))
    slope, second = jacrev(wanted)(X), jacrev(jacrev(wanted))(X)
    for jacobian in (jacrev, jacfwd, lambda g: lambda x: vmap(jacrev(g))(x[None])[0]):
        close(jacobian(found)(X), slope)
    for outer in (jacrev, jacfwd):
        for inner in (jacrev, jacfwd):
            close(outer(inner(found))(X), second)


def test_arguments_without_a_rule_are_constants():
    kept = primitive("kept", lambda xp, x: x * 1.0, vjps=[None], jvps=[None], batch="elementwise")
    scaled = primitive("scaled", lambda xp, x, y: x * y, vjps=[lambda ct, y: ct * y, None], batch="elementwise")
    for f, wanted in ((lambda x: fnp.sum(kept(x) * x), X), (lambda x: fnp.sum(scaled(2.0, x) * x), 2.0 * X)):
        assert grad(f)(X).tolist() == wanted.tolist()
        close(jvp(f, (X,), (X,))[1], wanted @ X)
