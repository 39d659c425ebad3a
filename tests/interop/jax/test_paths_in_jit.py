"""Functions that branch on values, compiled by ``jit``: each call takes the path that Python would take."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from funcgrad import (
    checkpoint,
    cond,
    custom_vjp,
    fori_loop,
    grad,
    hessian,
    jvp,
    scan,
    switch,
    value_and_grad,
    vmap,
    while_loop,
)
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


def step(c, y):
    if c > 0.5:
        return np.sin(c) * y, c
    return c * y + np.exp(y), 2.0


def in_scan(x):
    last, ys = scan(step, x[0], np.array([0.3, -0.8, 1.4]))
    return last * x[1] + np.sum(ys)


def in_closure(x):
    return fori_loop(0, 3, lambda i, c: c * x[0] + i if c < x[1] else np.cos(c), 0.4)


def in_branch(x):
    return cond(x[0] > 0, lambda v: np.sqrt(v) if v > 0.5 else v**3, lambda v: 1 / v if v < -1 else 0, x[0]) * x[1]


def in_nested_loops(x):
    def outer(c, y):
        inner = scan(lambda d, z: (d * z if d > y else d + y * z, None), c, x)[0]
        return (inner if inner < 1 else 1 / inner), None

    return scan(outer, 0.7, x * 0.5)[0]


def in_checkpoint(x):
    f = checkpoint(lambda v: v * x[1] if v > 0.5 else np.sin(v))
    return f(f(x[0]) + x[1])


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


@pytest.mark.parametrize("f", [pieces, undefined_elsewhere, caught, in_scan], ids=lambda f: f.__name__)
def test_examples_of_a_compiled_vmap_take_their_own_paths(f):
    xs = np.stack([*POINTS, np.zeros(2)])
    slopes = [grad(f)(x) for x in xs]
    close(jit(vmap(f))(xs), [f(x) for x in xs])
    close(jit(vmap(grad(f)))(xs), slopes)
    close(jit(grad(lambda xs: np.sum(vmap(f)(xs))))(xs), slopes)
    close(jvp(jit(vmap(f)), (xs,), (np.ones_like(xs),))[1], np.sum(slopes, 1))


def test_compiled_vmaps_in_vmaps_and_errors_in_them():
    def one(x, w):
        if w > 1:
            x = x * w
        if x < -9:
            raise KeyError("below")
        return x if x > 1 else w - x

    def table(xs, ws):
        return vmap(lambda w: vmap(lambda x: one(x, w))(xs))(ws)

    def safe(xs, ws):
        try:
            return table(xs, ws)
        except KeyError:
            return ws

    xs, ws = np.array([0.5, 2.0, -3.0]), np.array([0.5, 2.0])
    close(jit(table)(xs, ws), [[one(x, w) for x in xs] for w in ws])
    with pytest.raises(KeyError):
        jit(table)(4 * xs, ws)
    assert jit(lambda xs, ws: np.sum(safe(xs, ws)))(4 * xs, ws) == 2.5


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


@pytest.mark.parametrize(
    "f", [in_scan, in_closure, in_branch, in_nested_loops, in_checkpoint], ids=lambda f: f.__name__
)
def test_bodies_of_loops_and_branches_take_their_paths(f):
    both, slope = jit(value_and_grad(f)), grad(jit(f))
    for x in POINTS[:4]:
        close(both(x)[0], f(x))
        close(both(x)[1], grad(f)(x))
        close(slope(x), grad(f)(x))
    close(vmap(jit(f))(np.stack(POINTS)), [f(x) for x in POINTS])


def test_second_derivatives_of_a_body_with_paths():
    curvature = jit(hessian(in_scan))
    for x in POINTS[:3]:
        close(curvature(x), hessian(in_scan)(x))


def test_a_branch_on_what_is_the_same_for_all_tangents():
    def f(x):
        y = scan(lambda c, _: (np.sin(c), None), x[0], None, 2)[0]
        return y * x[1] if y > 0 else x[1] ** 3

    for x in POINTS[:3]:
        close(jit(hessian(f))(x), hessian(f)(x))


def grown(a):
    def goes_on(x):
        if x < -5:
            raise ValueError(f"below: {x}")
        return x < 7

    def larger(x):
        if x > 5:
            raise OverflowError("above")
        return x * a if a < 0 or x > 1.5 else x + 1

    return while_loop(goes_on, larger, abs(a))


def test_errors_in_a_loop_of_unknown_length():
    compiled = jit(grown)
    close(jvp(compiled, (2.8,), (1.0,)), jvp(grown, (2.8,), (1.0,)))
    for x, kind in ((1.8, OverflowError), (-3.0, ValueError)):
        for f in (grown, compiled):
            with pytest.raises(kind):
                f(x)


def test_the_error_of_the_first_step_that_fails_is_raised():
    def total(xs):
        def body(c, x):
            if x < 0:
                raise KeyError("negative")
            return c + checked(x, 4.0), None

        return scan(body, 0.0, xs)[0]

    def safe(xs):
        try:
            return total(xs)
        except RangeError:
            return 3 * xs[0]

    good, above, negative = np.array([1.0, 2.0, 3.0]), np.array([1.0, 5.0, -1.0]), np.array([1.0, -2.0, 5.0])
    compiled, slope = jit(total), jit(grad(safe))
    close(compiled(good), total(good))
    for x, kind in ((above, RangeError), (negative, KeyError)):
        with pytest.raises(kind) as error:
            compiled(x)
    assert "of total raised this error, at " in error.value.__notes__[0]
    assert '`raise KeyError("negative")`' in error.value.__notes__[0]
    for x in (good, above):
        close(slope(x), grad(safe)(x))
    with pytest.raises(KeyError):
        slope(negative)


def test_bodies_that_always_raise_an_error():
    def raises(v):
        raise (KeyError if v > 3 else ValueError)("always")

    programs = {
        "cond": lambda x: cond(x > 2, raises, lambda v: v * 2, x),
        "switch": lambda x: switch((x > 0).astype(int) + (x > 2), [lambda v: v, lambda v: v * 2, raises], x),
        "while_loop": lambda x: while_loop(lambda v: v > 2, raises, x) * 2,
        "fori_loop": lambda x: fori_loop(0, (x > 2).astype(int), lambda _, v: raises(v), x) * 2,
    }
    for program in programs.values():
        f = jit(value_and_grad(program)) if program is not programs["fori_loop"] else jit(lambda x: (2 * x, 2))
        close(f(np.array(1.5)), (3, 2))
        for x, kind in ((2.5, ValueError), (3.5, KeyError)):
            with pytest.raises(kind, match="always"):
                jit(program)(np.array(x))


def test_a_loop_on_another_path_ends():
    def root(a):
        if a < 0:
            return a * 2
        if a == 0:
            raise ValueError("zero")
        return while_loop(
            lambda x: abs(x * x - a) > 1e-12, lambda x: (x + 2 * a / x) / 3 if a < 0 else (x + a / x) / 2, a
        )

    close(vmap(jit(root))(np.array([2.0, -3.0])), [np.sqrt(2), -6.0])
    with pytest.raises(ValueError, match="zero"):
        jit(root)(0.0)


@custom_vjp
def ruled(x):
    return np.sin(x) if x > 0 else x


ruled.defvjp(lambda x: (ruled(x), x), lambda x, ct: (3 * ct if x > 0 else 5 * ct,))


@custom_vjp
def checked_rule(x):
    return checked(x)


checked_rule.defvjp(lambda x: (checked(x), x), lambda x, ct: (7 * ct,))


def test_functions_with_rules_of_their_own_take_their_paths():
    def steps(x):
        return scan(lambda c, _: (ruled(c) * x, None), x, None, 2)[0]

    for x in (0.7, -0.7):
        close(jit(ruled)(x), ruled(x))
        close(jit(grad(ruled))(x), grad(ruled)(x))
        close(jit(value_and_grad(steps))(x), value_and_grad(steps)(x))
    slope = jit(grad(checked_rule))
    assert slope(1.5) == 7
    with pytest.raises(ValueError, match="x must be positive"):
        slope(-1.5)
    with pytest.raises(StagingError, match="must not raise an error that depends on a value, got one, at "):
        jit(checked_rule)(1.5)


def test_many_checks_are_not_many_paths():
    def f(x):
        for i in range(14):
            assert x[i] > 0, i
        return np.sum(x)

    compiled = jit(f)
    assert compiled(np.ones(14)) == 14
    with pytest.raises(AssertionError, match="7"):
        compiled(np.where(np.arange(14) < 7, 1.0, -1.0))


def test_functions_of_scipy_check_their_arguments():
    x = np.array([0.7, 1.3, 2.1])
    assert jit(lambda x: scipy.stats.norm.fit(x)[0])(x) == pytest.approx(scipy.stats.norm.fit(x)[0])
    with pytest.raises(ValueError, match="The data contains non-finite values"):
        jit(lambda x: scipy.stats.norm.fit(x)[0])(np.array([0.7, np.nan]))


def halved(x):
    while x > 1e-9:
        x = x / 2
    return x


def test_steps_that_end_on_a_tolerance_are_refused():
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
        jax.jit(grad(to_jax(checked)))(1.5)
    with pytest.raises(StagingError, match="no error can be raised"):
        jax.jit(jit(checked))(1.5)
    with pytest.raises(
        StagingError, match=r"a function of scan is being compiled.* in more than 12 places, at .*`while"
    ):
        jit(lambda x: scan(lambda c, _: (halved(c), None), x, None, 2)[0])(1.0)


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


def chosen(x):
    y = x * 2 if x[0] > 0 else x
    found = y[y > 1]
    return found.item(np.argmin(np.abs(found)))


def zone(x):
    y = x[0] if x[1] > 0 else -x[0]
    return y * (2.0, 3.0)[int(x[0]) // 10]


def test_gradients_of_functions_that_cannot_be_compiled_name_the_reason():
    with pytest.raises(StagingError, match=r"the number of true entries of a mask \(x\[mask\]\), at .*`return found\."):
        jit(grad(chosen))(np.array([0.3, 1.4]))
    with pytest.raises(StagingError, match="got a request for an integer from an array"):
        jit(grad(zone))(np.array([12.0, 1.0]))
    np.testing.assert_array_equal(grad(chosen)(np.array([0.3, 1.4])), [0.0, 2.0])
