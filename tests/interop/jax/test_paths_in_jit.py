"""Functions that branch on values, compiled by ``jit``: each call takes the path that Python would take."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from funcgrad import grad, hessian, jvp, scan, value_and_grad, vmap
from funcgrad.errors import ConcretizationError, InputError, StagingError
from funcgrad.interop import jit, to_jax
from funcgrad.numpy_code.rebuilding import level_of

POINTS = [np.array(p) for p in ([0.3, -0.4], [1.2, 0.7], [-0.8, 1.5], [-1.1, -0.6], [0.0, 0.9])]


def pieces(x):
    if x[0] < -1:
        return x[1] ** 2
    if x[0] < 0:
        return np.exp(x[1]) * x[0]
    return np.sin(x[0]) * x[1]


def undefined_elsewhere(x):
    return np.sin(x[0]) / x[0] if x[0] != 0 else 1.0 + 0 * x[1]


def joined_conditions(x):
    y = x[0]
    if (0 < x[0] < 1 and x[1] < 0) or not (x[1] < 1):
        y = y * x[1]
    return y if any(v > 1 for v in x) else y**3


def loop_that_ends(x):
    y = x[0]
    for _ in range(4):
        y = 0.5 * (y + x[1] ** 2 / (1 + y**2))
        if y > 0.4:
            break
    else:
        y = -y
    return y * x[1]


def caught(x):
    try:
        if x[0] < 0:
            raise KeyError("negative")
        return math.sqrt(x[0] + 1) * x[1]
    except KeyError:
        return x[1] ** 3


def written(x):
    out = np.zeros(3)
    out[0] = x[0]
    if out[0] > x[1]:
        out[1] = float(x[1]) ** 2
    else:
        out[2:] = x[0] * x[1]
    return np.sum(out**2)


def integer_on_one_path(x):
    return 0 if x[1] > 1 else x[0] * x[1]


def insertion_sort(x):
    a = [x[0], x[1], x[0] * x[1]]
    for i in range(1, 3):
        j = i
        while j > 0 and a[j - 1] > a[j]:
            a[j - 1], a[j] = a[j], a[j - 1]
            j -= 1
    return a[0] + 2 * a[1] ** 2 + 3 * math.sin(a[2])


PROGRAMS = [
    pieces,
    undefined_elsewhere,
    joined_conditions,
    loop_that_ends,
    caught,
    written,
    integer_on_one_path,
    insertion_sort,
]


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_derivatives_are_those_of_the_path(f):
    compiled, v = jit(f), np.array([0.7, -1.3])
    slope, both, curvature = jit(grad(f)), jit(value_and_grad(f)), jit(hessian(f))
    for x in POINTS:
        close(compiled(x), f(x))
        if isinstance(f(x), int):
            with pytest.raises(InputError, match="an integer has no derivative"):
                slope(x)
            continue
        close(slope(x), grad(f)(x))
        close(grad(compiled)(x), grad(f)(x))
        close(both(x)[0], f(x))
        close(jvp(compiled, (x,), (v,))[1], jvp(f, (x,), (v,))[1])
        close(curvature(x), hessian(f)(x))
    close(vmap(compiled)(np.stack(POINTS)), [f(x) for x in POINTS])


@pytest.mark.parametrize("f", [pieces, written, caught], ids=lambda f: f.__name__)
def test_second_order_and_batches_around_jit(f):
    compiled, slopes = jit(f), [grad(f)(x) for x in POINTS]
    close(hessian(compiled)(POINTS[1]), hessian(f)(POINTS[1]))
    close(vmap(grad(compiled))(np.stack(POINTS)), slopes)
    close(grad(lambda xs: np.sum(vmap(compiled)(xs)))(np.stack(POINTS)), slopes)
    close(jit(lambda x: jit(f)(x) * 2)(POINTS[2]), 2 * f(POINTS[2]))
    close(jax.grad(compiled)(jnp.asarray(POINTS[0])), slopes[0])


def test_results_that_are_constants():
    def constant(x):
        if x > 1.5:
            raise ValueError("above")
        return 1.25

    def steps(x):
        return (0.5 if x > 0 else 1.5), (1 if x > 0 else 2.0)

    xs = np.array([-0.5, 0.5])
    for f in (constant, lambda x: steps(x)[0], lambda x: steps(x)[1]):
        mapped = vmap(jit(f))
        close(mapped(xs), [f(x) for x in xs])
        close(grad(lambda xs, mapped=mapped: np.sum(mapped(xs)))(xs), [0, 0])
        close(jvp(jit(f), (0.5,), (1.0,)), (f(0.5), 0))
    close(jit(steps)(-0.5), steps(-0.5))


class RangeError(Exception):
    def __init__(self, text, code, at):
        super().__init__(text)
        self.code, self.at = code, at


def checked(x, most=2.0):
    if x <= 0:
        raise ValueError(f"x must be positive, got {x:.2f}")
    assert x < 10, "too large: %6.3f" % x  # noqa: UP031
    if x > most:
        message = "above {}".format(x)  # noqa: UP032
        raise RangeError(message, code=3, at=x)
    return np.log(x) * x


TRANSFORMS = {
    "jit": jit,
    "jit(grad)": lambda f: jit(grad(f)),
    "grad(jit)": lambda f: grad(jit(f)),
    "jit(hessian)": lambda f: jit(hessian(f)),
    "hessian(jit)": lambda f: hessian(jit(f)),
    "jvp(jit)": lambda f: lambda x: jvp(jit(f), (x,), (1.0,))[1],
    "jit(grad(jit))": lambda f: jit(grad(jit(f))),
    "grad(jit(grad))": lambda f: grad(jit(grad(f))),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS.keys())
def test_an_error_is_raised_when_its_path_is_taken(transform):
    f = transform(checked)
    for _ in range(2):
        assert np.isfinite(f(1.5))
        with pytest.raises(ValueError, match="x must be") as error:
            f(-1.0)
        assert error.value.args == ("x must be positive, got float64[]",)
        with pytest.raises(AssertionError) as other:
            f(11.0)
        assert str(other.value).startswith("too large: float64[]")
        with pytest.raises(RangeError, match=r"above float64\[\]") as last:
            f(3.0)
        assert last.value.code == 3
        assert last.value.at == "float64[]"
        assert sum("compiled program" in note for note in last.value.__notes__) == 1
    note = error.value.__notes__[0]
    assert "The compiled program of checked raised this error, at " in note
    assert "test_paths_in_jit.py" in note
    assert "call checked without jit" in note


def test_an_error_of_one_example_is_raised():
    good, bad = np.array([0.5, 1.5]), np.array([0.5, -1.5])
    for f in (jit(vmap(checked)), vmap(jit(checked)), vmap(grad(jit(checked))), jit(vmap(grad(checked)))):
        assert np.isfinite(f(good)).all()
        with pytest.raises(ValueError, match="x must be positive"):
            f(bad)


def test_an_error_on_arrays_of_jax():
    f = jit(checked)
    assert f(jnp.asarray(1.5, np.float32)).dtype == np.float32
    with pytest.raises(ValueError, match=r"got float32\[\]"):
        f(jnp.asarray(-1.5, np.float32))


def test_each_of_several_errors_is_raised_on_its_path():
    def f(x):
        if x < 0:
            if x < -1:
                raise KeyError("far below")
            if not x > -0.5:
                raise OverflowError("below")
            raise ValueError("negative")
        elif x > 1:
            assert x < 2
            raise ArithmeticError("above")
        return x**2

    for g in (jit(f), jit(grad(f)), grad(jit(f))):
        for x, kind in (
            (-2.0, KeyError),
            (-0.7, OverflowError),
            (-0.2, ValueError),
            (3.0, AssertionError),
            (1.5, ArithmeticError),
        ):
            with pytest.raises(kind):
                g(x)
        assert g(0.5) in (0.25, 1.0)
    with pytest.raises(ValueError, match="always"):
        jit(lambda x: always_raises(x))(1.0)


def always_raises(x):
    raise (KeyError if x > 0 else ValueError)("always")


def test_an_error_that_a_caller_catches():
    def safe(x):
        try:
            return checked(x)
        except ValueError:
            return 0 * x

    assert [float(jit(safe)(x)) for x in (1.5, -1.0)] == [checked(1.5), 0.0]


def test_functions_of_scipy_check_their_arguments():
    x = np.array([0.7, 1.3, 2.1])
    assert jit(lambda x: scipy.stats.norm.fit(x)[0])(x) == pytest.approx(scipy.stats.norm.fit(x)[0])
    with pytest.raises(ValueError, match="The data contains non-finite values"):
        jit(lambda x: scipy.stats.norm.fit(x)[0])(np.array([0.7, np.nan]))


def test_steps_that_end_on_a_tolerance_are_refused():
    def halved(x):
        while x > 1e-9:
            x = x / 2
        return x

    with pytest.raises(StagingError, match=r"in more than 12 places, at .*test_paths_in_jit.py:\d+ `while x > 1e-9:`"):
        jit(halved)(1.0)
    assert level_of(halved) == 0  # it runs as it is written elsewhere


def test_too_many_paths_are_refused():
    def many(x):
        return sum(v if v > 0 else -v for v in x)

    close(jit(many)(np.array([1.0, -2.0, 3.0])), 6.0)
    with pytest.raises(StagingError, match="on 64 paths"):
        jit(many)(np.arange(8.0) - 3.5)


def test_paths_with_results_of_other_shapes_are_refused():
    with pytest.raises(StagingError, match=r"on all its paths, got float64\[\] and float64\[2\]"):
        jit(lambda x: x[0] if x[0] > 0 else x)(POINTS[0])
    with pytest.raises(StagingError, match="on all its paths"):
        jit(lambda x: {"a": x} if x[0] > 0 else {"b": x})(POINTS[0])


def test_where_no_path_can_be_followed():
    place = r"test_paths_in_jit.py:\d+ `if x <= 0:`"
    with pytest.raises(StagingError, match=place):
        jax.jit(to_jax(checked))(1.5)
    with pytest.raises(StagingError, match=place):
        jit(lambda xs: scan(lambda c, x: (c + checked(x), c), 0.0, xs)[0])(np.ones(3))
    with pytest.raises(StagingError, match="no error can be raised"):
        jax.jit(jit(checked))(1.5)
    with pytest.raises(ConcretizationError, match="differs between the 5 examples"):
        jit(vmap(pieces))(np.stack(POINTS))


def test_a_text_of_an_unknown_number_is_not_data():
    for f in (
        lambda x: len(f"{x:.2f}") * x,
        lambda x: x if str(x) == "1.0" else -x,
        lambda x: x * len("%.3f" % x),  # noqa: UP031
    ):
        with pytest.raises((ConcretizationError, StagingError)):
            jit(f)(1.0)


def test_a_function_that_asks_otherwise_each_time_is_refused():
    calls = []

    def impure(x):
        calls.append(1)
        for _ in range(len(calls)):
            x = x * 2
        return x if x > 0 else -x

    with pytest.raises(StagingError, match="must branch in the same way"):
        jit(impure)(1.0)
