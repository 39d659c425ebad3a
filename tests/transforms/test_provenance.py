"""Errors, NaN and lost derivatives are reported with operation, line and stage; no state is left behind."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import jax
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import blocks, compose_left, custom_vjp, grad, hessian, jvp, linearize, no_grad, pipe, stop_gradient, vjp
from funcgrad import value_and_grad as value_and_gradient
from funcgrad.errors import NanError, NotDifferentiableError, StructuralZeroError
from funcgrad.kinds import elementwise
from funcgrad.transforms.checkpointing import checkpoint
from funcgrad.transforms.debugging import debug_nans, strict

ZEROS, ONES = np.zeros(2), np.ones(2)


@pytest.fixture(autouse=True)
def quiet_and_clean():
    with np.errstate(all="ignore"):
        yield
    assert blocks.none_open()
    assert blocks.current_watcher() is None


def norm(x):
    square_sum = fnp.sum(x * x)
    return fnp.sqrt(square_sum)  # the line of the root


def error_of(kind, call, *args):
    with pytest.raises(kind) as caught:
        call(*args)
    return caught.value


def check_text(error, *parts):
    for part in parts:
        assert part in str(error), str(error)


def _broken(ct, x):
    raise ValueError("broken rule")


broken = elementwise("broken", lambda xp, x: x * 2.0, dx=lambda t, x: _broken(t, x))


@custom_vjp
def refusing(x):
    return x * 2.0


refusing.defvjp(lambda x: (x * 2.0, None), lambda residuals, ct: _broken(ct, None))


@custom_vjp
def dropping(x, y):
    return x * y


dropping.defvjp(lambda x, y: (x * y, y), lambda y, ct: (ct * y, None))


# Errors in pullbacks


def notes(error):
    return getattr(error, "__notes__", [])


@pytest.mark.parametrize(("fun", "name"), [(broken, "broken"), (refusing, "refusing")])
def test_pullback_error_names_operation(fun, name):
    error = error_of(ValueError, grad(lambda x: fnp.sum(fun(x) * 3.0)), ONES)
    assert str(error) == "broken rule"
    assert notes(error) == [
        f"In the pullback of {name}. To know the line that asked for it, put `with debug_nans():` around the call."
    ]


def test_pullback_error_names_recorded_line():
    def loss(x):
        return fnp.sum(broken(x))  # here

    with debug_nans():
        y, pullback = vjp(loss, ONES)
    assert y == 4.0
    (note,) = notes(error_of(ValueError, pullback, 1.0))
    assert note.startswith("In the pullback of broken, asked for ")
    assert "test_provenance.py:" in note
    assert "`return fnp.sum(broken(x))  # here`" in note


def test_tape_shows_recorded_lines():
    with debug_nans():
        _, pullback = vjp(compose_left(fnp.square, norm), ONES)
    nodes = list(fg.tape(pullback))
    assert [node.name for node in nodes] == ["square", "multiply", "reduce_sum", "sqrt"]
    assert nodes[-1].source.text == "return fnp.sqrt(square_sum)  # the line of the root"
    assert [str(node.stage) for node in nodes] == ["1 square", "2 norm", "2 norm", "2 norm"]


def test_pullback_error_names_stage():
    with debug_nans():
        error = error_of(ValueError, grad(compose_left(fnp.square, broken, fnp.sum)), ONES)
    assert "(stage 2 broken of the pipeline)" in notes(error)[0]


def test_every_pullback_on_error_path_is_named():
    # the rule of one function differentiates another
    outer = custom_vjp(lambda x: x * 1.0)
    outer.defvjp(lambda x: (x * 1.0, x), lambda x, ct: (ct * grad(lambda y: fnp.sum(broken(y)))(x),))
    error = error_of(ValueError, grad(lambda x: fnp.sum(outer(x))), ONES)
    assert [note.split(".")[0] for note in notes(error)] == [
        "In the pullback of broken",
        "In the pullback of <lambda>",
    ]


def test_wrong_cotangent_error_names_custom_rule():
    f = custom_vjp(lambda x: x * 1.0)
    f.defvjp(lambda x: (x * 1.0, None), lambda residuals, ct: (ct, ct))
    error = error_of(TypeError, grad(lambda x: fnp.sum(f(x))), ONES)
    assert "In the pullback of <lambda>" in notes(error)[0]


# debug_nans


def test_debug_nans_finds_infinity_in_backward_pass():
    with debug_nans():
        error = error_of(NanError, grad(norm), ZEROS)
    assert isinstance(error, FloatingPointError)
    assert isinstance(error, fg.errors.FuncgradError)
    assert error.operation == "sqrt"
    check_text(error, "an infinity first appeared in the cotangent", "sqrt", "float64[]")
    check_text(error, "test_provenance.py:", "`return fnp.sqrt(square_sum)  # the line of the root`")
    assert notes(error) == []


def test_debug_nans_finds_nan_in_backward_pass():
    f = custom_vjp(lambda x: x * 1.0)
    f.defvjp(lambda x: (x * 1.0, None), lambda residuals, ct: (ct * np.nan,))
    with debug_nans():
        error = error_of(NanError, grad(lambda x: fnp.sum(f(x) * 2.0)), ONES)
    check_text(error, "a NaN first appeared in the cotangent", "<lambda>")


def test_debug_nans_finds_nan_in_forward_pass():
    with debug_nans():
        error = error_of(NanError, grad(lambda x: fnp.sum(fnp.log(x))), -ONES)
    assert error.operation == "log"
    check_text(error, "a NaN first appeared in the value of log", "float64[2]", "fnp.log(x)")


def test_debug_nans_finds_infinity_in_forward_pass():
    with debug_nans():
        error = error_of(NanError, grad(lambda x: fnp.exp(x)), 1e4)
    check_text(error, "an infinity first appeared in the value of exp")


def test_debug_nans_finds_nan_in_tangent():
    with debug_nans():
        error = error_of(NanError, jvp, norm, (ZEROS,), (ONES,))
    check_text(error, "first appeared in the tangent of sqrt", "the line of the root")


def test_debug_nans_names_pipeline_stage():
    with debug_nans():
        error = error_of(NanError, grad(compose_left(fnp.square, fnp.sum, fnp.sqrt)), ZEROS)
        check_text(error, "(stage 3 sqrt of the pipeline)")
        error = error_of(NanError, grad(lambda x: pipe(x, fnp.sum, fnp.log)), -ONES)
        check_text(error, "(stage 2 log of the pipeline)")
        error = error_of(NanError, pipe, ZEROS, grad(compose_left(fnp.square, fnp.sum, fnp.sqrt)))
        check_text(error, "(stage 3 sqrt of the pipeline)")


def test_debug_nans_changes_no_finite_value():
    f = compose_left(fnp.square, fnp.sin, fnp.cumsum, lambda x: x[::-1] * x[0], fnp.sum)
    x = np.linspace(0.1, 2.0, 7)
    expected = value_and_gradient(f)(x)
    with debug_nans():
        value, gradient = value_and_gradient(f)(x)
    assert value == expected[0]
    assert gradient.tobytes() == expected[1].tobytes()


def softmax(x):
    e = fnp.exp(x - fnp.max(x))
    return e / fnp.sum(e)


def test_debug_nans_accepts_infinite_constant():
    mask = np.array([True, False, True])

    def loss(x):
        return softmax(fnp.where(mask, x, -np.inf))[0]

    x = np.array([0.5, 1.0, 2.0])
    expected = grad(loss)(x)
    with debug_nans():
        np.testing.assert_array_equal(grad(loss)(x), expected)
    assert np.isfinite(expected).all()


def test_debug_nans_finds_nan_from_infinite_constant():
    def loss(x):
        return softmax(fnp.where(False, x, -np.inf))[0]  # nothing is left

    with debug_nans():
        check_text(error_of(NanError, grad(loss), ONES), "a NaN first appeared in the value of subtract")


def test_debug_nans_accepts_nonfinite_arguments():
    with debug_nans():
        assert np.isnan(grad(lambda x: x * x)(np.nan))
        assert np.isnan(vjp(lambda x: x * x, 2.0)[1](np.nan)[0])


def test_debug_nans_finds_overflow_in_cotangent_sum():
    big = 1.5e308
    with debug_nans():
        error = error_of(NanError, grad(lambda x: (lambda y: y * big + y * big)(x * 1.0)), 1e-200)
    check_text(error, "an infinity first appeared where the cotangents of the result of multiply are added up")


def test_debug_nans_on_earlier_tape():
    _, pullback = vjp(norm, ZEROS)
    assert not np.isfinite(pullback(1.0)[0]).all()
    with debug_nans():
        error = error_of(NanError, pullback, 1.0)
    check_text(error, "sqrt", "a line that is not known: the forward pass was run outside of debug_nans")


@pytest.mark.parametrize(
    "transform",
    [lambda f: fg.vmap(grad(f)), lambda f: grad(lambda x: fnp.sum(fg.vmap(f)(x)))],
    ids=["vmap of grad", "grad of vmap"],
)
def test_debug_nans_inside_vmap(transform):
    with debug_nans():
        error = error_of(NanError, transform(norm), np.zeros((3, 2)))
    assert error.operation == "sqrt"
    check_text(error, "the line of the root")


@pytest.mark.parametrize("second", [hessian, lambda f: grad(lambda x: fnp.sum(grad(f)(x))), fg.jacfwd, fg.jacrev])
def test_debug_nans_in_nested_transforms(second):
    def f(x):
        return fnp.sum(x**1.5)  # the second derivative is singular

    with debug_nans():
        assert np.all(grad(f)(ZEROS) == 0)
        if second in (fg.jacfwd, fg.jacrev):
            assert np.all(second(f)(ZEROS) == 0)
            second = lambda f, outer=second: outer(grad(f))
        error = error_of(NanError, second(f), ZEROS)
    check_text(error, "the second derivative is singular")


def test_debug_nans_in_linearize():
    with debug_nans():
        check_text(error_of(NanError, lambda: linearize(lambda x: fnp.log(x), -1.0)), "value of log")


@pytest.mark.parametrize(("recorded", "pulled"), [(True, True), (True, False), (False, True)])
def test_debug_nans_in_checkpoint(recorded, pulled):
    def inner(x):
        return fnp.sin(x * x) + x

    f = checkpoint(lambda x: fnp.sum(inner(inner(x))))
    expected = grad(f)(ONES)
    if recorded:
        with debug_nans():
            _, pullback = vjp(f, ONES)
    else:
        _, pullback = vjp(f, ONES)
    if pulled:
        with debug_nans():
            (gradient,) = pullback(1.0)
    else:
        (gradient,) = pullback(1.0)
    np.testing.assert_array_equal(gradient, expected)


def test_debug_nans_names_operation_in_checkpoint():
    with debug_nans():
        error = error_of(NanError, grad(checkpoint(norm)), ZEROS)
    assert error.operation == "sqrt"
    check_text(error, "the line of the root")


def test_debug_nans_as_decorator_and_transform():
    @debug_nans()
    def one(x):
        return grad(norm)(x)

    @debug_nans
    def two(x):
        """Two."""
        return grad(norm)(x)

    assert (one.__name__, two.__name__, two.__doc__.count("Two.")) == ("one", "two", 1)
    for f in (one, two, debug_nans(grad(norm)), debug_nans()(grad(norm))):
        np.testing.assert_allclose(f(ONES), 0.5**0.5)
        check_text(error_of(NanError, f, ZEROS), "sqrt")
    assert not np.isfinite(grad(norm)(ZEROS)).all()


def test_debug_nans_block_is_reentrant():
    block = debug_nans()
    for _ in range(2):
        with block, block:
            error_of(NanError, grad(norm), ZEROS)
        assert not np.isfinite(grad(norm)(ZEROS)).all()


def test_debug_nans_of_noncallable_raises():
    for call in (debug_nans, strict):
        with pytest.raises(TypeError, match=f"{call.__name__}: the first argument must be a function, got int 3"):
            call(3)


def test_debug_nans_does_not_affect_other_threads():
    inside, go_on, results = threading.Event(), threading.Event(), []

    def other():
        inside.wait(10)
        with np.errstate(all="ignore"):
            results.append(grad(norm)(ZEROS))
        results.append(copied.run(lambda: error_of(NanError, grad(norm), ZEROS)))
        go_on.set()

    thread = threading.Thread(target=other)
    thread.start()
    with debug_nans():
        copied = copy_context()
        inside.set()
        assert go_on.wait(10)
    thread.join()
    assert not np.isfinite(results[0]).all()
    assert results[1].operation == "sqrt"


def test_debug_nans_in_many_threads():
    @np.errstate(all="ignore")
    def work(i):
        x = ZEROS if i % 2 else ONES
        if i % 3:
            with debug_nans():
                return type(error_of(NanError, grad(norm), x)) if i % 2 else float(grad(norm)(x)[0])
        return float(grad(norm)(x)[0])

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(60)))
    for i, result in enumerate(results):
        if i % 2 and i % 3:
            assert result is NanError
        else:
            assert not np.isfinite(result) if i % 2 else result == pytest.approx(0.5**0.5)


def test_debug_nans_on_jax_arrays():
    with debug_nans():
        check_text(error_of(NanError, grad(norm), jax.numpy.zeros(2)), "sqrt", "the line of the root")
        assert np.isnan(jax.jit(grad(norm))(jax.numpy.zeros(2))).all()  # inside of jit the numbers are unknown


# strict


def strict_error(fun, *args, **options):
    """Return the error of strict mode, and check that every way to request strict mode gives the same error."""
    with strict():
        error = error_of(StructuralZeroError, grad(fun, **options), *args)
        assert error_of(StructuralZeroError, strict(value_and_gradient(fun, **options)), *args)
    assert isinstance(error, NotDifferentiableError)
    for transform in (grad, value_and_gradient):
        once = error_of(StructuralZeroError, transform(fun, strict=True, **options), *args)
        assert str(once).partition(": ")[2] == str(error).partition(": ")[2]
    if not options:
        once = error_of(StructuralZeroError, lambda: vjp(fun, *args, strict=True))
        assert str(once).partition(": ")[2] == str(error).partition(": ")[2]
    grad(fun, **options)(*args)
    return error


@pytest.mark.parametrize(
    ("fun", "name"),
    [
        (lambda x: fnp.sum(fnp.floor(x) * 2.0), "floor"),
        (lambda x: fnp.argmax(x) * 1.0, "argmax"),
        (lambda x: fnp.sum(x.astype(int) * 1.0), "cast"),
        (lambda x: fnp.sum((x > 0) * 1.0), "greater"),
        (lambda x: fnp.sum(stop_gradient(x) * 2.0), "stop_gradient"),
        (lambda x: fnp.sum(fnp.sign(x * 3.0) * 2.0), "sign"),
        (lambda x: fnp.sum(no_grad(lambda y: y * y)(x)), "no_grad"),
        (lambda x: fnp.sum(fnp.where(x, 1.0, 2.0)), "where"),
    ],
)
def test_strict_names_line_that_cut_derivative(fun, name):
    error = strict_error(fun, ONES)
    check_text(error, "the derivative with respect to argument 0 is zero whatever its value: cut by " + name)
    check_text(error, "test_provenance.py:", "fnp.")


def test_strict_names_every_cut_once():
    def f(x):
        total = 0.0
        for _ in range(3):
            total = total + fnp.floor(x) + fnp.ceil(x)
        return total

    error = strict_error(f, 1.5)
    assert str(error).count("floor (at") == 1
    assert str(error).count("ceil (at") == 1


def test_strict_names_unused_argument():
    error = strict_error(lambda x, p: x * p["a"], 1.0, {"a": 2.0, "b": [3.0, 4.0]}, argnums=(0, 1))
    check_text(error, "grad: the derivative with respect to argument 1['b'][0]", "it was never used")


def test_strict_names_negative_argnums_by_position():
    check_text(strict_error(lambda x, y: x * 2.0, 1.0, 2.0, argnums=-1), "argument 1 is")


def test_strict_names_dropped_result():
    def f(x):
        x * 3.0  # nobody takes it
        return 2.0

    error = strict_error(f, 1.0)
    check_text(error, "the result does not depend on it, it was used first by multiply (at", "# nobody takes it`")


def test_strict_names_argument_without_derivative():
    check_text(strict_error(fnp.copysign, 1.5, -2.0, argnums=1), "cut by copysign")


def test_strict_names_custom_rule_returning_none():
    check_text(strict_error(dropping, 1.5, -2.0, argnums=1), "cut by dropping")


def test_strict_pullback_without_derivative_raises():
    _, pullback = vjp(fnp.copysign, 1.5, -2.0, strict=True)
    check_text(
        error_of(StructuralZeroError, pullback, 1.0), "pullback: the derivative with respect to argument 1", "copysign"
    )


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: fnp.sum(fnp.where(x > 0, x, 0.0)),
        lambda x: fnp.sum(x * stop_gradient(x)),
        lambda x: fnp.sum(x - fnp.floor(x)),
        lambda x: fnp.sum(x * 0.0),
        lambda x: fnp.sum(fnp.sort(x)[fnp.argmax(x)]),
        lambda x: fnp.sum(x) if x[0] > 0 else 0.0,
    ],
)
def test_strict_accepts_derivatives(fun):
    expected = grad(fun)(ONES)
    with strict(), debug_nans():
        np.testing.assert_array_equal(grad(fun)(ONES), expected)
        np.testing.assert_array_equal(vjp(fun, ONES)[1](1.0)[0], expected)
        jvp(fun, (ONES,), (ONES,))
    np.testing.assert_array_equal(grad(fun, strict=True)(ONES), expected)


def test_strict_accepts_integer_leaves():
    assert grad(lambda x, n: x * n, argnums=(0, 1), allow_int=True, strict=True)(2.0, 3)[0] == 3.0
    assert vjp(lambda x, n: x * n, 2.0, 3, strict=True)[1](1.0)[0] == 3.0


def test_strict_in_forward_mode():
    with strict():
        error = error_of(StructuralZeroError, jvp, lambda x: (x, fnp.floor(x)), (1.5,), (1.0,))
        check_text(error, "jvp: the tangent of result leaf 1 is zero", "floor (at", "test_provenance.py")
        check_text(
            error_of(StructuralZeroError, jvp, lambda x: 1.0, (1.5,), (1.0,)), "it does not depend on the arguments"
        )
        assert jvp(lambda x: (x * 2.0, fnp.argmax(x)), (ONES,), (ONES,))[1][0][0] == 2.0
        error_of(StructuralZeroError, jvp, fnp.argmax, (ONES,), (ONES,))


def test_strict_block_is_nested_and_option_is_not():
    def f(x):
        return x * grad(lambda y: fnp.floor(y))(x)

    assert grad(f, strict=True)(1.5) == 0.0
    with strict():
        check_text(error_of(StructuralZeroError, grad(f), 1.5), "cut by floor")
        check_text(error_of(StructuralZeroError, grad(grad(lambda x: x * 3.0)), 1.5), "used first by multiply")
        assert grad(grad(lambda x: x * x * x))(2.0) == 12.0


def test_strict_inside_and_around_vmap():
    with strict():
        check_text(error_of(StructuralZeroError, fg.vmap(grad(lambda x: fnp.floor(x))), ONES), "cut by floor")
        check_text(error_of(StructuralZeroError, grad(lambda x: fnp.sum(fg.vmap(fnp.floor)(x))), ONES), "cut by floor")
        np.testing.assert_array_equal(fg.vmap(grad(fnp.square))(ONES), 2 * ONES)


def test_strict_and_debug_nans_together():
    with strict(), debug_nans():
        error_of(NanError, grad(norm), ZEROS)
        error_of(StructuralZeroError, grad(fnp.floor), 1.5)
    with debug_nans(), strict():
        error_of(NanError, grad(norm), ZEROS)
        error_of(StructuralZeroError, grad(fnp.floor), 1.5)
    with debug_nans():
        error_of(StructuralZeroError, grad(fnp.floor, strict=True), 1.5)
        assert grad(fnp.floor)(1.5) == 0.0


def test_failed_function_leaves_no_state():
    def f(x):
        raise KeyError(float(stop_gradient(x * 2.0)))

    for call in (grad(f, strict=True), strict(grad(f)), debug_nans(grad(f)), lambda x: vjp(f, x, strict=True)):
        error_of(KeyError, call, 1.0)
        assert blocks.none_open()
    gc.collect()
    gc.disable()
    try:
        with debug_nans(), strict():
            grad(norm)(ONES)
        assert gc.collect() == 0
    finally:
        gc.enable()
