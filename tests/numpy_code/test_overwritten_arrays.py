"""Functions that use an ordinary array and change it afterwards: derivatives are those for the numbers used."""

import array
import functools
import gc
import math
import operator
import tempfile
import types
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import toolz
from helpers import close, differences

import funcgrad.numpy as fnp
from funcgrad import (
    as_written,
    check_grads,
    checkpoint,
    debug_nans,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linearize,
    trace,
    value_and_grad,
    vjp,
    vmap,
)
from funcgrad.errors import ConversionError
from funcgrad.interop import from_numpy
from funcgrad.numpy_code import overwriting
from funcgrad.shared_state import followed_paths


def decaying_weights(x):
    weights, total = np.ones(3), 0.0
    for _ in range(3):
        total = total + (weights * x**2).sum()
        weights *= 0.9
    return total


def element(x):
    table = np.arange(6.0).reshape(2, 3)
    y = table @ x**2
    table[0, 1] = 7.0
    table[:, 2] += 1.0
    return y.sum() + (table[0] * x).sum()


def drawn_in_place(x):
    rng, weights, total = np.random.default_rng(0), np.empty(3), 0.0
    for _ in range(2):
        rng.random(out=weights)
        total = total + (weights * x**2).sum()
    return total


def out_argument(x):
    weights = np.array([3.0, 1.0, 2.0])
    y = (x * weights) ** 2
    weights.sort()
    z = (x * weights).sum() ** 2
    np.add(weights, 1.0, out=weights)
    return y.sum() + z


def part(x):
    whole = np.linspace(1.0, 2.0, 6)
    half = whole[3:]
    y = np.sin(whole[:3] * x) * half
    half[:] = 0.0
    whole[:3] = 0.5
    return y.sum()


def decayed(w):
    w *= 0.5


def helper_changes_it(x):
    weights = np.ones(3)
    y = weights * np.exp(x)
    decayed(weights)
    return (y * weights).sum()


class Model:
    def __init__(self):
        self.weights = np.ones(3)

    def step(self):
        self.weights[0] += 1.0

    def value(self, x):
        total = 0.0
        for _ in range(3):
            total = total + (self.weights * x**2).sum()
            self.step()
        return total


def object_changes_it(x):
    return Model().value(x)


def conversions_too(x):
    weights = np.ones(3)
    y = sum(math.sin(v) * w for v, w in zip(x, weights, strict=True)) + (x**2 * weights).sum()
    weights[1] = 0.0
    return y


def large(x):
    weights = np.ones((100, 3))
    y = (weights * x**2).sum()
    weights[0, 0] = 0.0
    return y + (weights * x).sum()


def written_in_funcgrad(x):
    weights = np.ones(3)
    y = fnp.sum(fnp.square(x) * weights)
    weights *= 2.0
    return y


FUNCTIONS = [
    *(decaying_weights, element, out_argument, part, helper_changes_it, object_changes_it, conversions_too, large),
    *(written_in_funcgrad, drawn_in_place),
]
X = np.array([0.4, 1.1, -0.7])


@pytest.mark.parametrize("fun", FUNCTIONS)
def test_derivatives_are_those_for_the_numbers_that_were_used(fun):
    want = np.array([differences(lambda t, e=e: fun(X + t * e), 0.0) for e in np.eye(3)])
    close(grad(fun)(X), want, rtol=1e-7, atol=1e-9)
    close(vjp(fun, X)[1](1.0)[0], want, rtol=1e-7, atol=1e-9)
    close([linearize(fun, X)[1](e) for e in np.eye(3)], want, rtol=1e-7, atol=1e-9)
    close(grad(checkpoint(fun))(X), want, rtol=1e-7, atol=1e-9)
    close(vmap(grad(fun))(np.stack([X, X + 0.1]))[0], want, rtol=1e-7, atol=1e-9)
    recorded = jit(grad(fun), backend="numpy")
    close([recorded(X), recorded(X)], [want, want], rtol=1e-7, atol=1e-9)
    close(jit(grad(fun))(X), want, rtol=1e-7, atol=1e-9)
    second = jvp(grad(fun), (X,), (np.ones(3),))[1]
    h = 1e-5
    close(second, (grad(fun)(X + h) - grad(fun)(X - h)) / (2 * h), rtol=1e-6, atol=1e-7)
    close(hessian(fun)(X) @ np.ones(3), second, rtol=1e-10)
    assert value_and_grad(fun)(X)[0] == pytest.approx(fun(X), rel=1e-14)


@pytest.mark.parametrize("fun", FUNCTIONS)
def test_first_call_finds_the_change(fun):
    """Check each way to the first call, with a new code each time: what is known is kept by the code."""
    new = lambda: type(fun)(fun.__code__.replace(), fun.__globals__)
    want = grad(fun)(X)
    close(grad(from_numpy(new()))(X), want)
    close(grad(new(), strict=True)(X), want)
    close(vmap(grad(new()))(X[None])[0], want)
    close(grad(lambda x: grad(new())(x) @ X)(X), grad(lambda x: grad(fun)(x) @ X)(X))
    with debug_nans():
        close(grad(new())(X), want)


@pytest.mark.parametrize("fun", FUNCTIONS)
def test_functions_inside_of_functions_that_are_not_rebuilt_are_rebuilt(fun):
    """Check that a transform of funcgrad's own function finds the change in the user's function inside."""
    check_grads(new_code(fun), (X,), order=2)


def written_at_a_mask(x):
    z = x * 1.5
    before = np.sum(z * z)
    z[z > 0.3] = np.sum(np.sin(x))
    return z * 1.1 + 0.1 * np.sum(z[0]) + 0.3 * before + z * np.sum(z * 0.7)


def written_in_single_precision(x):
    z = x * 1.5
    z[z > 0.3] = np.sum(np.sin(x)).astype(np.float32)
    z.T[0] *= x[:, 1]
    return z * np.sum(z * 0.7)


@pytest.mark.parametrize("fun", [written_at_a_mask, written_in_single_precision])
@pytest.mark.parametrize("of", [jacrev, jacfwd, lambda f: jacfwd(jacrev(f))], ids=["reverse", "forward", "both"])
@pytest.mark.parametrize("batched", [False, True], ids=["one", "batch"])
def test_first_call_writes_as_later_calls_do(fun, of, batched):
    """Check that looking at the arrays of the first call changes no bit of it: neither records nor layouts."""
    new = type(square)(fun.__code__.replace(), globals())
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    first, second = (vmap(of(new))(x) if batched else of(new)(x[0]) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    assert first.strides == second.strides


OTHER = types.ModuleType("other")
exec(
    """
import numpy as np

def decay(x):
    weights, total = np.ones(3), 0.0
    for _ in range(3):
        total = total + (weights * x**2).sum()
        np.multiply(weights, 0.9, weights)
    return total

class Outer:
    class Inner:
        decay = staticmethod(decay)

    def __init__(self):
        self.parts = {"first": [decay]}

class Slots:
    __slots__ = ("fun",)

    @property
    def steps(self):
        return self.fun

slots = Slots()
slots.fun = decay
outer = Outer()
outer.slots = slots
""",
    vars(OTHER),
)


class Base:
    def value(self, x):
        return self.decay(x)


class Derived(Base):
    def decay(self, x):
        return OTHER.decay(x)


@functools.lru_cache
def cached():
    return OTHER.decay


def imported(x):
    from numpy_programs.parts import np as same

    return same.sum(eval("OTHER.decay(x)"))


WAYS = {
    "a module": lambda x: OTHER.decay(x),
    "a class in a class": lambda x: OTHER.Outer.Inner.decay(x),
    "an object": lambda x: OTHER.outer.slots.fun(x),
    "a property": lambda x: OTHER.slots.steps(x),
    "a table": lambda x: OTHER.outer.parts["first"][0](x),
    "a method of another class": lambda x: Derived().value(x),
    "a cached function": lambda x: cached()(x),
    "a default": lambda x, *, fun=OTHER.decay: fun(x),
    "a partial": lambda x: functools.partial(OTHER.decay)(x),
    "a name": lambda x: getattr(OTHER, "decay")(x),  # noqa: B009 - this is what is tested
    "an import": imported,
    "a pipeline": lambda x: toolz.pipe(x, OTHER.decay),
}


@pytest.mark.parametrize("fun", WAYS.values(), ids=WAYS)
def test_code_that_changes_arrays_is_found_however_it_is_reached(fun):
    close(grad(fun)(X), 2.0 * (1.0 + 0.9 + 0.81) * X)


def changed_series(x):
    series = pd.Series([1.0, 2.0, 3.0])
    y = series * x
    series[0] = 9.0
    return (y**2).sum()


def changed_polynomial(x):
    p = np.poly1d([1.0, 2.0, 3.0])
    y = p(x)
    p[0] = 7.0
    return (y**2).sum()


@pytest.mark.parametrize("fun", [changed_series, changed_polynomial])
def test_changed_objects_of_libraries_raise(fun):
    """Check objects whose arrays do not notice writes; forward mode needs none of their numbers later."""
    with pytest.raises(ConversionError, match="the function changed an array after this operation had used it"):
        grad(fun)(X)
    close(jvp(fun, (X,), (np.ones(3),))[1], sum(differences(fun, X)), 1e-8)


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (4, 4)])
def test_first_call_multiplies_as_later_calls_do(shape):
    """Check the bits of products of arrays that BLAS does not take, where NumPy's ``dot`` and ``matmul`` differ."""
    fun = lambda x: np.sin(x.T @ np.flip(x[0])[None, :].T).sum() + np.sin(x[::-1] @ np.broadcast_to(x[0], (4, 4))).sum()
    for seed in range(8):
        x = np.random.default_rng(seed).normal(size=(4, 4))[: shape[0], : shape[1]] * np.ones((4, 4))
        new = grad(new_code(fun))
        assert new(x).tobytes() == new(x).tobytes()


def square(x):
    return (x**2).sum()


#: Ways to change an array that do not show in the code of a function.
CHANGES = {
    "third argument of a ufunc": lambda w: np.multiply(w, 0.5, w),
    "out by position": lambda w: w.cumsum(0, None, w),
    "clip by position": lambda w: np.clip(w, 0.0, 0.5, w),
    "special method": lambda w: w.__imul__(3.0),
    "setitem": lambda w: w.__setitem__(0, 3.0),
    "operator": lambda w: operator.imul(w, 3.0),
    "operator.setitem": lambda w: operator.setitem(w, 1, 4.0),
    "flat": lambda w: setattr(w, "flat", 3.0),
    "exec": lambda w: exec("w *= 3.0", {"w": w}),
    "of SciPy": lambda w: scipy.linalg.solve(np.eye(3) + 0.5, w, overwrite_b=True),
    "vectorize": lambda w: np.vectorize(lambda i: w.__setitem__(int(i), 8.0))(np.arange(2)),
}


def uses_before_and_after(change):
    def fun(x):
        w = np.array([1.0, 2.0, 0.3])
        y = (w * x**2).sum()
        change(w)
        return y + (w * x).sum()

    return fun


@pytest.mark.parametrize("name", CHANGES)
def test_change_that_does_not_show_in_the_code(name):
    fun = uses_before_and_after(CHANGES[name])
    want = differences(fun, X)
    for transform in (grad, lambda f: grad(from_numpy(f)), lambda f: grad(checkpoint(f))):
        new = type(square)(fun.__code__.replace(), globals(), None, None, fun.__closure__)
        for _ in range(2):
            close(transform(new)(X), want, rtol=1e-7, atol=1e-9)


def of_pandas(x):
    table = pd.Series([1.0, 2.0, 3.0])
    y = (table.to_numpy() * x**2).sum()
    table.iloc[0] = 9.0
    return y


def of_a_buffer(x):
    numbers = array.array("d", [1.0, 2.0, 3.0])
    y = (np.frombuffer(numbers) * x**2).sum()
    numbers[0] = 9.0
    return y


def of_a_polynomial(x):
    p = np.polynomial.Polynomial([1.0, 2.0, 3.0])
    y = p(x).sum()
    p.coef *= 3.0
    return y


def of_a_file(x):
    with tempfile.TemporaryFile() as file:
        w = np.memmap(file, float, "w+", shape=3)
        w[:] = 1.0
        y = (w * x**2).sum()
        w[0] = 4.0
        return y


@pytest.mark.parametrize("fun", [of_pandas, of_a_buffer, of_a_polynomial, of_a_file])
def test_change_of_an_array_that_is_not_replaced_raises(fun):
    """Check each call: the derivative for the new numbers would be wrong."""
    for transform in (grad, lambda f: grad(from_numpy(f)), lambda f: grad(checkpoint(f))):
        with pytest.raises(ConversionError, match="the function changed an array after"):
            transform(fun)(X)
    close(jvp(fun, (X,), (np.ones(3),))[1], differences(lambda t: fun(X + t), 0.0), rtol=1e-7)


class Plain:
    def step(self, w):
        pass

    def value(self, x):
        w = np.ones(3)
        y = (x * w).sum()
        self.step(w)
        return y + (x * w).sum()


class Decaying(Plain):
    def step(self, w):
        w *= 0.5


def scheduled(rate):
    def fun(x):
        w = np.ones(3)
        y = (x * w).sum()
        if callable(rate):
            rate(w)
        return y + (x * w).sum()

    return fun


def halved(w):
    w *= 0.5


def doubles(w):
    w *= 2.0


def steps(x, step=None, *, kind="none"):
    w = np.ones(3)
    y = (x * w).sum()
    if kind == "double":
        w *= 2.0
    if step is not None:
        step(w)
    return y + (x * w).sum() + math.sin(0.0 * x[0])


def growing(x, n):
    w = np.zeros(3)
    for _ in range(n):
        w *= 0.5
        w += 1.0
        x = x * w
    return x.sum()


def test_function_is_looked_at_again_with_more_steps():
    for gradient in (lambda n: grad(growing)(X, n), lambda n: grad(lambda x: growing(x, n))(X)):
        for n, factor in [(1, 1.0), (1, 1.0), (3, 1.5 * 1.75), (4, 1.5 * 1.75 * 1.875)]:
            close(gradient(n), np.full(3, factor))


def test_function_is_looked_at_again_with_another_class_function_or_option():
    for plain, changing, factor in [
        (lambda: grad(scheduled(0.5))(X), lambda: grad(scheduled(halved))(X), 1.5),
        (lambda: grad(Plain().value)(X), lambda: grad(Decaying().value)(X), 1.5),
        (lambda: grad(steps)(X, lambda w: None), lambda: grad(steps)(X, doubles), 3.0),
        (lambda: grad(steps)(X, None), lambda: grad(steps)(X, kind="double"), 3.0),
        (lambda: from_numpy(steps)(X), lambda: grad(lambda x: from_numpy(steps)(x, doubles))(X), 3.0),
    ]:
        plain()
        plain()
        close(changing(), np.full(3, factor))
        close(changing(), np.full(3, factor))


def of_two(x, z):
    w = np.ones(3)
    y = (x * w).sum() + z.sum()
    w *= 2.0
    return y


def new_code(fun):
    return type(fun)(fun.__code__.replace(), fun.__globals__)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (lambda f: grad(f, argnums=1)(X, X), lambda f: grad(f)(X, X)),
        (lambda f: grad(f, argnums=1)(X, X), lambda f: jacrev(f, argnums=(0, 1))(X, X)[0]),
        (lambda f: grad(f, argnums=1)(X, X), lambda f: vjp(f, X, X)[1](1.0)[0]),
        (lambda f: grad(f, argnums=1)(X, X), lambda f: [linearize(f, X, X)[1](e, 0 * X) for e in np.eye(3)]),
        (lambda f: grad(partial(f, X))(X), lambda f: grad(partial(f, z=X))(X)),
        (lambda f: from_numpy(f)(X, X), lambda f: grad(from_numpy(f))(X, X)),
        (lambda f: checkpoint(f)(X, X), lambda f: grad(checkpoint(f))(X, X)),
        (lambda f: vjp(f, np.arange(3), np.arange(3)), lambda f: grad(f)(X, X)),
        (lambda f: jvp(f, (X, X), (X, X)), lambda f: grad(f)(X, X)),
    ],
)
def test_call_that_traced_something_else_tells_nothing(first, then):
    fun = new_code(of_two)
    first(fun)
    for _ in range(2):
        close(then(fun), np.ones(3))


def test_function_is_looked_at_again_when_a_function_that_it_names_is_defined_anew():
    """Check cells of a notebook that run again: the function itself keeps its code."""
    cell, space = "def helper(w):\n    {}", {"np": np, "math": math}
    exec(cell.format("pass"), space)
    exec("def middle(w):\n    helper(w)", space)
    exec(
        "def fun(x):\n    w = np.ones(3)\n    y = (x * w).sum()\n    middle(w)\n"
        "    return y + math.cos(0.0) * (x * w).sum()",
        space,
    )
    gradient = grad(space["fun"])
    close(gradient(X), np.full(3, 2.0))
    exec(cell.format("w *= 2.0"), space)
    gc.collect()
    close(gradient(X), np.full(3, 3.0))
    exec(cell.format("w *= 0.5"), space)
    close(grad(space["fun"])(X), np.full(3, 1.5))


def test_wrapper_is_looked_at_again_with_another_function():
    """Check that code which was called with a harmless function is not taken for harmless with each function."""

    class Problem:
        def __init__(self, loss):
            self.loss = loss

        def value(self, x):
            return self.loss(x)

    new = type(square)(decaying_weights.__code__.replace(), decaying_weights.__globals__)
    want = grad(decaying_weights)(X)
    for wrap in (lambda loss: lambda x: loss(x), lambda loss: Problem(loss).value, lambda loss: lambda x: [loss][0](x)):
        close(grad(wrap(square))(X), 2 * X)
        close(grad(wrap(square))(X), 2 * X)
        close(grad(wrap(new))(X), want)


def test_as_written_names_the_operation():
    def fun(x):
        weights = np.ones(3)
        y = x * weights
        weights += 1.0
        return y.sum()

    with as_written(), pytest.raises(ConversionError, match=r"multiply: the function changed an array.*float64\[3\]"):
        grad(fun)(X)
    close(grad(fun)(X), np.ones(3))


def test_function_that_changes_arrays_before_it_uses_them_runs_as_written():
    def fun(x):
        table, names = np.zeros((3, 3)), {}
        for i in range(3):
            table[i, i] = 2.0
            names[i] = i
        total = 0.0
        for row in table @ x:
            total += row**2
        return total

    close(grad(fun)(X), 8 * X)
    assert not trace(fun)(X).rebuilt
    assert trace(decaying_weights)(X).rebuilt


class Steps:
    """Object with a step function that may be exchanged."""

    def __init__(self):
        self.step, self.count, self.w = None, 2, None

    def run(self, x):
        w = np.ones(2)
        y = (x * w).sum()
        return self.step(y, w) if self.step else y


def scaled_in_place(y, w):
    w *= 3.0
    return y


def scaled(y, w):
    return y * w


def test_change_in_what_an_object_holds_is_noticed_after_many_calls():
    steps = Steps()
    g = grad(steps.run)
    for _ in range(6):
        np.testing.assert_allclose(g(np.array([1.0, 2.0])), [1.0, 1.0])
    steps.step = scaled_in_place
    for _ in range(2):
        np.testing.assert_allclose(g(np.array([1.0, 2.0])), [1.0, 1.0])  # those at the time of use, not 3.0


def test_change_of_a_closure_variable_is_noticed_after_many_calls():
    def make():
        step, count = None, 1

        def f(x):
            w = np.ones(2)
            y = (x * w).sum() * count
            return step(y, w) if step else y

        def change(new):
            nonlocal step, count
            step, count = new, 2

        def clear():
            nonlocal count
            del count

        return f, change, clear

    f, change, clear = make()
    g = grad(f)
    for _ in range(6):
        np.testing.assert_allclose(g(np.array([1.0, 2.0])), [1.0, 1.0])
    change(scaled_in_place)
    for _ in range(3):
        np.testing.assert_allclose(g(np.array([1.0, 2.0])), [2.0, 2.0])
    clear()
    with pytest.raises(NameError):
        g(np.array([1.0, 2.0]))


def test_change_of_a_closure_variable_with_a_library_function_is_noticed_after_many_calls():
    step = fnp.maximum

    def f(x):
        w = np.ones(2)
        y = (x * w).sum()
        return step(y, w).sum()

    g = grad(f)
    for _ in range(6):
        np.testing.assert_allclose(g(np.array([1.0, 2.0])), [2.0, 2.0])
    step = lambda y, w: scaled_in_place(y, w)
    for _ in range(2):
        np.testing.assert_allclose(g(np.array([1.0, 2.0])), [1.0, 1.0])  # those at the time of use, not 3.0


def test_change_of_a_default_is_noticed_after_many_calls():
    def f(x, step=None, count=1):
        w = np.ones(2)
        y = (x * w).sum() * count
        return step(y, w) if step else y

    g = grad(f)
    for _ in range(6):
        np.testing.assert_allclose(g(np.array([1.0, 2.0])), [1.0, 1.0])
    f.__defaults__ = (scaled_in_place, 2)
    for _ in range(2):
        np.testing.assert_allclose(g(np.array([1.0, 2.0])), [2.0, 2.0])  # those at the time of use, not 6.0


@pytest.mark.parametrize("first", [None, 7, False, "no", scaled])
@pytest.mark.parametrize("by_name", [False, True])
def test_change_of_an_argument_is_noticed_after_many_calls(first, by_name):
    def f(x, step, scale):
        w = np.ones(2) * scale
        y = (x * w).sum()
        return scaled_in_place(y, w) if step is True else y

    g = grad(f)
    x, scale = np.array([1.0, 2.0]), np.ones(2)
    call = (lambda step: g(x, step=step, scale=scale)) if by_name else (lambda step: g(x, step, scale))
    for _ in range(6):
        np.testing.assert_allclose(call(first), [1.0, 1.0])
    for _ in range(2):
        np.testing.assert_allclose(call(True), [1.0, 1.0])  # those at the time of use, not 3.0


class Kept:
    """Object whose step keeps the array."""

    def __init__(self):
        self.size = 2

    def step(self, y, w):
        return y

    def run(self, x):
        w = np.ones(self.size)
        return self.step((x * w).sum(), w)


class Overwriting(Kept):
    """The same object, but its step changes the array."""

    def step(self, y, w):
        return scaled_in_place(y, w)


def test_change_of_the_class_is_noticed_after_many_calls():
    kept = Kept()
    g = grad(kept.run)
    for _ in range(6):
        np.testing.assert_allclose(g(np.array([1.0, 2.0])), [1.0, 1.0])
    kept.__class__ = Overwriting
    for _ in range(2):
        np.testing.assert_allclose(g(np.array([1.0, 2.0])), [1.0, 1.0])  # those at the time of use, not 3.0


# ---- paths that only a later call takes -----------------------------------------------------------------------


def changes_if_large(x):
    w = np.ones(3)
    y = (x * w).sum()
    if y > 10.0:
        w *= 2.0
    return y


def changes_in_a_later_round(x):
    w = np.ones(3)
    while (x * x).sum() < 50.0:
        x = x * w * 2.0
        w *= 0.9
    return x.sum()


def changes_if_any_is_large(x):
    w, out = np.ones(3), np.zeros(2)
    y = (x * w).sum()
    if (x > 10.0).any():
        w[:] = 0.0
        out[0] = 1.0
    return y + out.sum()


def changes_where_math_is_called(x):
    w = np.ones(3)
    y = (x * w).sum() + math.sin(x[0])
    if math.exp(x[1]) > 100.0:
        np.multiply(w, 2.0, out=w)
    return y


def changes_for_other_shapes(x):
    w = np.ones(3)
    y = (x[..., :3] * w).sum()
    if x.size > 3:
        w.fill(5.0)
    return y


def changes_in_a_function(x):
    def halved(w):
        w *= 0.5

    w = np.ones(3)
    y = (x * w).sum()
    for _ in range(int(x[0] > 5.0)):
        halved(w)
    return y


LATER = [
    changes_if_large,
    changes_in_a_later_round,
    changes_if_any_is_large,
    changes_where_math_is_called,
    changes_for_other_shapes,
    changes_in_a_function,
]


@pytest.mark.parametrize("fun", LATER)
@pytest.mark.parametrize("kept", [False, True])
def test_change_on_a_path_that_only_a_later_call_takes(fun, kept):
    fun = types.FunctionType(fun.__code__.replace(co_name=f"{fun.__name__}_{kept}"), fun.__globals__)  # not called yet
    first, then = np.array([1.0, 2.0, 4.0]), np.array([20.0, 21.0, 1.0])
    if fun.__code__.co_name.startswith("changes_in_a_later"):
        first, then = np.array([5.0, 5.0, 4.0]), np.array([1.0, 2.0, 0.5])
    if fun.__code__.co_name.startswith("changes_for_other"):
        then = np.concatenate([then, [3.0]])
    g = grad(fun)
    for x in (first, first, first, then, then, first):
        slope = (g if kept else grad(fun))(x)
        close(slope, differences(fun, x, 1e-4), rtol=1e-7)
        close(
            jvp(grad(fun), (x,), (x,))[1], differences(lambda t, x=x: grad(fun)(x + t * x), 0.0), rtol=1e-6, atol=1e-6
        )
        close(vmap(grad(fun))(np.stack([x, x])), np.stack([slope, slope]))
        close(grad(checkpoint(fun))(x), slope)


def test_each_path_is_looked_at_once():
    calls = []

    def fun(x):
        calls.append(1)
        table = {}
        table["w"] = np.ones(2)
        while x < 10.0:
            x = x * table["w"][0] * 2.0
        return x

    counts = []
    for x in (1.0, 1.1, 4.0, 1.2, 4.1, 7.0, 7.5):
        calls.clear()
        grad(fun)(x)
        counts.append(len(calls))
    assert counts == [1, 1, 2, 1, 1, 2, 1]


def test_interrupted_path_does_not_hide_later_ones(monkeypatch):
    """Check that a path is looked at after an interrupt that came before the path of another call was ended."""

    def fun(x):
        w = np.ones(2)
        y = x * w
        if x > 2.0:
            w *= 0.5
        return (y * w).sum()

    class Interrupted(dict):
        def pop(self, *args):
            raise KeyboardInterrupt

    close(grad(fun)(1.0), 2.0)
    with monkeypatch.context() as patched:
        patched.setattr(overwriting, "followed_paths", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            grad(fun)(1.0)
        left = dict(overwriting.followed_paths)
    assert left
    followed_paths.update(left)
    close(grad(fun)(3.0), differences(fun, 3.0), rtol=1e-7)
    assert not followed_paths


def test_paths_are_not_followed_where_the_code_changes_nothing():
    calls = []

    def fun(x):
        calls.append(1)
        return x * np.ones(2)[0] if x > 1.0 else -x

    for x in (0.5, 2.0, 0.5):
        grad(fun)(x)
    assert len(calls) == 3
