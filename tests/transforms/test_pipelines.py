"""Pipelines: toolz with transforms in every position, and names and docstrings of transformed functions."""

import functools
import inspect
import operator
import pickle
from importlib.util import find_spec

import numpy as np
import pytest
import toolz
from numpy.testing import assert_allclose
from toolz import compose, compose_left, curry, do, identity, juxt, pipe, thread_first, thread_last

import funcgrad
import funcgrad.numpy as fnp
from funcgrad import (
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linearize,
    no_grad,
    stop_gradient,
    value_and_grad,
    vjp,
    vmap,
)
from funcgrad.errors import InputError

X = np.array([0.5, -1.5, 2.0])
# cytoolz is an optional variant of toolz, with its own Compose class; it is tested where it is installed.
TWINS = [toolz, __import__("cytoolz")] if find_spec("cytoolz") else [toolz]


def square(x):
    """The square of x."""
    return x * x


def cube(x):
    return x * x * x


def total(x):
    return fnp.sum(x)


def scaled(factor, x):
    return factor * x


def loss(params, x, y=0.0, *, weight=1.0):
    """How far off a line is."""
    return weight * fnp.mean((params["w"] * x + params["b"] - y) ** 2)


class Model:
    """A callable object with a method."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor * fnp.sum(x * x)

    def loss(self, x):
        """The loss of the model."""
        return self(x)

    slope = grad(lambda self, x: self.factor * fnp.sum(x * x), argnums=1)

    def __eq__(self, other):
        return isinstance(other, Model) and self.factor == other.factor

    def __hash__(self):
        return hash(self.factor)


# --- transforms as stages ---


def test_pipe_into_a_gradient():
    assert pipe(3.0, grad(square)) == 6.0
    assert pipe(3.0, grad(cube), grad(square)) == 2 * 27.0
    assert_allclose(pipe(X, vmap(grad(cube)), fnp.sin), np.sin(3 * X**2))


def test_pipe_inside_a_gradient():
    assert_allclose(grad(lambda x: pipe(x, square, fnp.sin, total))(X), 2 * X * np.cos(X**2))


def test_pipe_builds_transforms():
    assert pipe(cube, grad, grad)(2.0) == 12.0
    assert_allclose(pipe(cube, grad, vmap)(X), 3 * X**2)


def test_compose_of_transformed_functions():
    # sum of vmap of f at the gradient of g
    f = compose(fnp.sum, vmap(square), grad(compose(total, cube)))
    assert_allclose(f(X), np.sum((3 * X**2) ** 2))
    assert_allclose(grad(f)(X), 36 * X**3)


def test_compose_of_transforms():
    assert_allclose(compose(vmap, grad, grad)(cube)(X), 6 * X)
    assert_allclose(compose_left(grad, grad, vmap)(cube)(X), 6 * X)
    second = compose(grad, functools.partial(compose, fnp.sum), grad)  # the gradient of the sum of the gradient
    assert_allclose(second(compose(total, cube))(X), 6 * X)


TRANSFORMS = {
    "grad": (lambda f: grad(f)(X), 3 * X**2),
    "value_and_grad": (lambda f: value_and_grad(f)(X)[1], 3 * X**2),
    "vjp": (lambda f: vjp(f, X)[1](1.0)[0], 3 * X**2),
    "jvp": (lambda f: jvp(f, (X,), (np.ones(3),))[1], np.sum(3 * X**2)),
    "linearize": (lambda f: linearize(f, X)[1](np.ones(3)), np.sum(3 * X**2)),
    "hvp": (lambda f: hvp(f, (X,), (np.ones(3),))[0], 6 * X),
    "hessian": (lambda f: hessian(f)(X), np.diag(6 * X)),
    "jacrev": (lambda f: jacrev(f)(X), 3 * X**2),
    "jacfwd": (lambda f: jacfwd(f)(X), 3 * X**2),
    "jacobian": (lambda f: jacobian(f)(X), 3 * X**2),
    "vmap": (lambda f: vmap(f)(np.stack([X, 2 * X])), [np.sum(X**3), 8 * np.sum(X**3)]),
    "no_grad": (lambda f: no_grad(f)(X), np.sum(X**3)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_every_transform_on_every_pipeline(name, twin):
    result, expected = TRANSFORMS[name]
    composed = twin.compose(total, cube)
    pipelines = [
        composed,
        twin.compose_left(cube, total),
        twin.compose(total, twin.compose(identity, cube)),  # nested: a Compose is not flattened
        twin.compose(twin.compose(total), cube, identity),
        twin.compose(composed),  # composing one function gives that function
        twin.compose(composed, twin.compose()),  # composing none gives the identity
        twin.curry(lambda scale, x: scale * fnp.sum(x * x * x))(1.0),
        lambda x: twin.pipe(x, cube, total),
        lambda x: twin.thread_first(x, (operator.pow, 3), total),
        lambda x: twin.thread_last(x, (scaled, 1.0), cube, total),
    ]
    for pipeline in pipelines:
        assert_allclose(result(pipeline), expected, err_msg=repr(pipeline))


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_compose_of_one_function_is_that_function(twin):
    assert twin.compose(square) is square
    assert twin.compose(grad(square)) == grad(square)


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.__name__)
def test_unwrap_of_pipeline_keeps_all_stages(twin):
    # A Compose calls its first stage __wrapped__, so functools.wraps and inspect.unwrap would peel the rest off.
    pipeline = twin.compose(total, cube, square)
    assert inspect.unwrap(pipeline) is square
    assert inspect.unwrap(grad(pipeline)) == grad(pipeline)
    assert_allclose(grad(pipeline)(X), 6 * X**5)
    assert_allclose(inspect.unwrap(grad(pipeline))(X), 6 * X**5)


def test_curry():
    line = {"w": 2.0, "b": 1.0}
    expected = grad(loss)(line, X)
    assert curry(loss)(line)(X) == loss(line, X)
    assert grad(curry(loss))(line, X) == expected
    assert curry(grad(loss), line)(X) == expected
    assert curry(grad)(argnums=1)(scaled)(2.0, 5.0) == 2.0
    slope_at = curry(jvp)(square)
    assert slope_at((3.0,))((1.0,)) == (9.0, 6.0)
    weighted = curry(loss, weight=3.0)
    assert grad(weighted)(line, X)["w"] == pytest.approx(3 * expected["w"])
    batched = curry(vmap, in_axes=(None, 0))
    assert_allclose(batched(grad(loss))(line, X)["w"], 2 * (2 * X + 1) * X)


@curry
def linear(factor, shift, x):
    """A stage with two parameters."""
    return factor * x + shift


def test_curried_stages():
    f = compose_left(linear(2.0, 1.0), fnp.tanh, linear(3.0)(0.5), total)
    assert_allclose(grad(f)(X), 6 * (1 - np.tanh(2 * X + 1) ** 2))

    def of_params(params, x):
        return pipe(x, linear(params["a"], params["b"]), square, total)

    gradient = grad(of_params)({"a": 2.0, "b": 1.0}, X)
    assert gradient["a"] == pytest.approx(np.sum(2 * (2 * X + 1) * X))
    assert gradient["b"] == pytest.approx(np.sum(2 * (2 * X + 1)))


def test_curry_keeps_type_error():
    # curry catches a TypeError for missing arguments if the signature says so; here it must not.
    with pytest.raises(InputError, match="must return a scalar"):
        curry(grad(square))(X)


def test_juxt():
    assert juxt(square, grad(square), grad(grad(square)))(3.0) == (9.0, 6.0, 2.0)
    both = juxt(compose(total, square), compose(total, cube))
    jacobian_rows = jacrev(both)(X)
    assert isinstance(jacobian_rows, tuple)
    assert_allclose(jacobian_rows[0], 2 * X)
    assert_allclose(jacobian_rows[1], 3 * X**2)
    assert_allclose(jacfwd(both)(X)[1], 3 * X**2)
    assert_allclose(grad(compose(sum, both))(X), 2 * X + 3 * X**2)
    values, slopes = vmap(juxt(square, grad(square)))(X)
    assert_allclose(values, X**2)
    assert_allclose(slopes, 2 * X)


def test_do_sees_tracers_and_returns_value():
    seen = []
    assert grad(lambda x: pipe(x, square, curry(do)(compose(seen.append, stop_gradient)), cube))(2.0) == 6 * 2.0**5
    assert seen == [4.0]
    assert type(seen[0]) is float


def test_thread_first_and_last():
    assert thread_first(3.0, grad(square), (operator.mul, 2.0)) == 12.0
    assert thread_last(3.0, (scaled, 2.0), grad(square)) == 12.0
    f = lambda x: thread_first(x, (operator.sub, 1.0), (operator.pow, 2), total)
    assert_allclose(grad(f)(X), 2 * (X - 1))
    g = lambda x: thread_last(x, (operator.sub, 1.0), (operator.pow, 2.0), total)
    assert_allclose(grad(g)(X), -np.log(2.0) * 2.0 ** (1 - X))


def test_toolz_maps_over_parameters():
    params = {"w": 2.0, "b": 1.0}
    update = lambda p, g: toolz.merge_with(lambda pair: pair[0] - 0.1 * pair[1], p, g)
    stepped = update(params, grad(loss)(params, X))
    assert loss(stepped, X) < loss(params, X)
    assert grad(lambda p: sum(toolz.valmap(square, p).values()))(params) == {"w": 4.0, "b": 2.0}
    assert grad(lambda p: functools.reduce(operator.mul, p.values()))(params) == {"w": 1.0, "b": 2.0}


def test_iterate_and_compose_steps():
    step = lambda x: x - 0.1 * grad(square)(x)
    assert toolz.nth(50, toolz.iterate(step, 1.0)) == pytest.approx(0.8**50)
    unrolled = compose(*[step] * 5)
    assert grad(unrolled)(1.0) == pytest.approx(0.8**5)


def test_toolz_functions_are_top_level():
    names = ["pipe", "compose", "compose_left", "curry", "juxt", "do", "thread_first", "thread_last", "identity"]
    for name in names:
        assert getattr(funcgrad, name) is getattr(toolz, name)
        assert name in funcgrad.__all__


# --- names, signatures and docstrings ---


def label(x):
    """Return a test name without a memory address, since every worker must collect equal tests."""
    return getattr(x, "__name__", type(x).__name__) if callable(x) else repr(x)


TRANSFORMED = [grad, value_and_grad, jacrev, jacfwd, jacobian, hessian, vmap, no_grad]


@pytest.mark.parametrize("transform", TRANSFORMED, ids=lambda t: t.__name__)
@pytest.mark.parametrize(
    ("fun", "name"),
    [
        (square, "square"),
        (lambda x: x, "<lambda>"),
        (compose(total, cube), "total_of_cube"),
        (compose_left(cube, total), "total_of_cube"),
        (compose(total, compose(cube, square)), "total_of_cube_of_square"),
        (functools.partial(scaled, 2.0), "scaled"),
        (functools.partial(functools.partial(scaled), 2.0), "scaled"),
        (curry(scaled), "scaled"),
        (curry(scaled, 2.0), "scaled"),
        (juxt(square, cube), "square_and_cube"),
        (Model(2.0), "Model"),
        (Model(2.0).loss, "loss"),
        (abs, "abs"),
        (operator.neg, "neg"),
        (functools.partial(compose(total, cube)), "total_of_cube"),
    ],
    ids=label,
)
def test_name_of_transformed_function(transform, fun, name):
    assert transform(fun).__name__ == name
    assert transform(transform(fun)).__name__ == name


@pytest.mark.parametrize("transform", TRANSFORMED, ids=lambda t: t.__name__)
@pytest.mark.parametrize(
    "fun",
    [
        square,
        loss,
        lambda a, /, b=1, *rest, c, **more: a,
        compose(total, cube),
        compose_left(loss, square),
        functools.partial(loss, weight=2.0),
        functools.partial(scaled, 2.0),
        curry(scaled),
        Model(2.0),
        Model(2.0).loss,
        abs,
        fnp.sin,
        fnp.sum,
    ],
    ids=label,
)
def test_signature_of_transformed_function(transform, fun):
    assert inspect.signature(transform(fun)) == inspect.signature(fun)
    assert inspect.signature(transform(transform(fun))) == inspect.signature(fun)


def test_signature_of_builtin():
    with pytest.raises(ValueError, match="signature"):
        inspect.signature(max)
    with pytest.raises(ValueError, match="signature"):
        inspect.signature(grad(max))
    assert grad(max)(2.0, 3.0) == 0.0
    assert grad(max)(3.0, 2.0) == 1.0


def test_docstring_of_transformed_function():
    says = inspect.getdoc(grad(loss, argnums=(0, 1)))
    assert says.startswith("Gradient of loss with respect to positional argument(s) 0, 1.")
    assert "Takes the same arguments as loss" in says
    assert "How far off a line is." in says
    assert inspect.getdoc(value_and_grad(loss)).startswith("Value and gradient of loss")
    assert inspect.getdoc(hessian(square)).startswith("Hessian of square")
    assert inspect.getdoc(vmap(grad(square))).startswith("Vectorized version of square")
    assert "The square of x." in inspect.getdoc(vmap(grad(square)))
    assert "partial(func" not in inspect.getdoc(grad(functools.partial(loss)))
    assert inspect.getdoc(grad(lambda x: x)).startswith("Gradient of <lambda>")
    assert inspect.getdoc(grad(compose(total, cube))).startswith("Gradient of total_of_cube")


def test_name_with_braces_is_kept():
    def fun(x):
        return x

    fun.__name__ = "{fun}"
    assert inspect.getdoc(grad(fun)).startswith("Gradient of {fun} with respect to")


def test_repr():
    assert repr(grad(square)) == "<grad of square>"
    assert repr(vmap(grad(square))) == "<vmap of grad of square>"
    assert repr(hessian(square)) == "<hessian of square>"
    assert repr(grad(compose(total, cube))) == "<grad of total_of_cube>"


def test_help_shows_gradient():
    import pydoc

    text = pydoc.plain(pydoc.render_doc(grad(square)))
    assert "Gradient of square" in text


# --- what can be transformed ---


@pytest.mark.parametrize(
    ("fun", "expected"),
    [
        (functools.partial(scaled, 2.0), 2.0),
        (functools.partial(operator.pow, 2.0), 8.0 * np.log(2.0)),
        (Model(2.0), 12.0),
        (Model(2.0).loss, 12.0),
        (lambda x: x * x, 6.0),
        (abs, 1.0),
        (operator.neg, -1.0),
        (fnp.sin, np.cos(3.0)),
        (toolz.identity, 1.0),
        (np.sin, np.cos(3.0)),
    ],
    ids=label,
)
def test_callables_of_every_kind(fun, expected):
    assert grad(fun)(3.0) == pytest.approx(expected)
    assert vmap(grad(fun))(np.array([3.0, 3.0])) == pytest.approx(expected)


def test_transformed_functions_are_methods():
    class WithSlope:
        def __init__(self, factor):
            self.factor = factor

        @functools.partial(grad, argnums=1)
        def slope(self, x):
            return self.factor * x * x

    assert WithSlope(2.0).slope(3.0) == 12.0
    assert_allclose(Model(2.0).slope(X), 4 * X)
    assert WithSlope.slope(WithSlope(3.0), 3.0) == 18.0


@pytest.mark.parametrize("wrong", [3.0, None, "square", X, [square]], ids=lambda w: type(w).__name__)
@pytest.mark.parametrize("transform", TRANSFORMED, ids=lambda t: t.__name__)
def test_noncallable_raises(transform, wrong):
    if transform is no_grad and wrong is None:
        assert isinstance(no_grad(None), type(no_grad()))
        return
    with pytest.raises(TypeError, match=f"^{transform.__name__}: .*must be a function"):
        transform(wrong)


def test_called_function_error_is_explained():
    with pytest.raises(InputError, match=r"Write grad\(f\)\(x\), not grad\(f\(x\)\)"):
        grad(square(3.0))


# --- pickling, equality ---

PICKLED = {
    "grad": grad(square),
    "grad of grad": grad(grad(cube)),
    "vmap of grad": vmap(grad(square)),
    "options": grad(scaled, argnums=(0, 1)),
    "value_and_grad": value_and_grad(compose(total, cube)),
    "hessian": hessian(cube),
    "jacfwd": jacfwd(cube),
    "no_grad": no_grad(square),
    "of a pipeline": grad(compose(total, cube)),
    "in a pipeline": compose(grad(square), cube),
    "in a nested pipeline": compose(compose(square, vmap(grad(square))), vmap(cube)),
    "curried": curry(grad(loss), {"w": 2.0, "b": 1.0}),
    "of a curried function": grad(curry(scaled, 2.0)),
    "partial": functools.partial(grad(scaled), 2.0),
    "of a partial": grad(functools.partial(scaled, 2.0)),
    "of an object": grad(Model(2.0)),
    "of a method": grad(Model(2.0).loss),
    "of an operation": vmap(grad(fnp.sin)),
    "of a builtin": grad(operator.neg),
    "juxt": juxt(square, grad(square)),
}


# Python compares these by identity: partial objects, a method's object, juxt; or does not hash a dict inside.
WITHOUT_EQUALITY = {"partial", "of a partial", "of a method", "juxt", "curried"}


@pytest.mark.parametrize("name", PICKLED)
@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_transformed_functions_pickle(name, protocol):
    function = PICKLED[name]
    copy = pickle.loads(pickle.dumps(function, protocol))
    if name not in WITHOUT_EQUALITY:
        assert copy == function
        assert hash(copy) == hash(function)
    array = name in ("vmap of grad", "of an operation", "of a pipeline", "in a nested pipeline", "value_and_grad")
    args = (2.0, 3.0) if name == "options" else (X if array else 3.0,)
    for a, b in zip(as_tuple(copy(*args)), as_tuple(function(*args)), strict=True):
        np.testing.assert_equal(a, b)


def as_tuple(result):
    return result if isinstance(result, tuple) else (result,)


def test_pickling_lambda_raises():
    for function in (grad(lambda x: x * x), vmap(grad(lambda x: x * x)), compose(grad(lambda x: x), cube)):
        with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
            pickle.dumps(function)


def test_equality_and_hash():
    assert grad(square) == grad(square)
    assert hash(grad(square)) == hash(grad(square))
    assert grad(square) != grad(cube)
    assert grad(square) != value_and_grad(square)
    assert grad(scaled) != grad(scaled, argnums=1)
    assert grad(scaled, argnums=[0, 1]) == grad(scaled, argnums=(0, 1))
    assert vmap(scaled, in_axes=(None, 0)) != vmap(scaled)
    assert grad(square) != square
    assert square != grad(square)
    assert hessian(square) != jacfwd(jacrev(square))
    assert compose(grad(square), cube) == compose(grad(square), cube)
    assert grad(compose(square, cube)) == grad(compose(square, cube))
    assert len({grad(square), grad(square), grad(cube)}) == 2


def test_hash_with_unhashable_options():
    mapped = vmap(loss, in_axes=({"w": 0, "b": None}, None))
    assert hash(mapped) == hash(vmap(loss, in_axes=({"w": 0, "b": None}, None)))
    assert mapped == vmap(loss, in_axes=({"w": 0, "b": None}, None))


def test_equal_transforms_have_equal_hashes():
    assert grad(square, has_aux=True) != grad(square, has_aux=1)
    pattern = np.eye(2, dtype=bool)
    assert jacobian(square, sparsity=pattern) == jacobian(square, sparsity=pattern.copy())
    assert jacobian(square, sparsity=pattern) != jacobian(square, sparsity=~pattern)
    large = np.eye(2_000, dtype=bool)
    other = large.copy()
    other[1_000, 1_001] = True
    assert jacobian(square, sparsity=large) != jacobian(square, sparsity=other)


def test_transformed_functions_as_cache_keys():
    calls = []

    @functools.cache
    def prepared(function):
        calls.append(function)
        return function

    prepared(grad(square)), prepared(grad(square)), prepared(grad(cube))
    assert calls == [grad(square), grad(cube)]
