"""Checks and warnings of functions that depend on values: a program repeats checks and gives warnings again."""

import math
import re
import warnings

import numpy as np
import pytest
from fuzz.recorded import difference
from helpers import at_least

import funcgrad.numpy as fnp
import funcgrad.scipy.linalg as fsl
import funcgrad.scipy.special as fsp
from funcgrad import control, custom_root, fixed_point, grad, jit, scan, value_and_grad, vmap
from funcgrad.scipy.interpolate import LinearNDInterpolator
from funcgrad.scipy.spatial import distance
from funcgrad.scipy.spatial.transform import Rotation, Slerp
from funcgrad.transforms import newton, picard

X = np.array([[0.3, -1.2, 2.5], [1.0, 0.2, -0.7]])
ONES, RISING = np.ones(3), np.array([0.0, 1.0, 2.0])


def with_warnings(call, *args):
    with warnings.catch_warnings(record=True) as found, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        result = call(*args)
    return result, [str(w.message) for w in found]


def _spread(carry, r):
    return carry + fnp.sum(fnp.cov(X, aweights=fnp.append(r * ONES[:2], 1e-3), ddof=1)), carry


#: Functions, arguments for which they give no warning, and arguments for which they give one.
WARNING = {
    "cov": (grad(lambda w: fnp.sum(fnp.cov(X, aweights=w, ddof=1))), (ONES,), (np.array([1.0, 0.0, 0.0]),)),
    "cov of a batch": (
        vmap(lambda w: fnp.cov(X, aweights=w, ddof=1)), (np.eye(3) + 1,), (np.array([ONES, [0.0, 1, 0], RISING]),)
    ),
    "cov of few": (lambda x: fnp.cov(x * 2, ddof=3 if x.shape[1] == 3 else 1), (X[:, :2],), (X,)),
    "polyfit": (grad(lambda x: fnp.sum(fnp.polyfit(x, RISING, 1))), (RISING,), (ONES,)),
    "angles": (lambda x: Rotation.from_rotvec(x * 1.0).as_euler("zxz"), (RISING,), (np.array([0.0, 0.0, 0.3]),)),
    "a scan": (grad(lambda x: scan(_spread, 0.0, x)[0]), (RISING + 1,), (RISING,)),
    "cross": (lambda x: fnp.cross(x[:2] * 2.0, x[1:]) if x[0] > 0 else x[0] * 1.0, (-ONES,), (ONES,)),
}  # fmt: skip
if at_least(np, "2.5.0"):
    WARNING.pop("cross")  # vectors with two components, which NumPy does not take any more


@pytest.mark.parametrize(("fun", "good", "bad"), WARNING.values(), ids=WARNING)
@pytest.mark.parametrize("first", ["good", "bad"])
def test_warning_is_given_at_each_call(fun, good, bad, first):
    fast = jit(fun, backend="numpy")
    for args in (good, bad, good, bad, bad, good)[first == "bad" :]:
        (found, said), (expected, should) = with_warnings(fast, *args), with_warnings(fun, *args)
        assert not difference(found, expected)
        assert said == should
        assert bool(said) == (args is bad)


#: Functions, arguments for which they raise no error, and arguments for which they raise one.
RAISING = {
    "multigammaln": (lambda a: fsp.multigammaln(a * 1.0, 3), 5.0, 0.5),
    "solve_circulant": (lambda c: fsl.solve_circulant(c * 1.0, RISING), np.array([3.0, 1.0, 0.5]), ONES),
    "weights of a distance": (grad(lambda w: distance.euclidean(X[0], X[1], w)), ONES, -ONES),
    "a quaternion": (lambda q: Rotation.from_quat(q * 1.0).as_rotvec(), np.ones(4), np.zeros(4)),
    "a matrix": (lambda m: Rotation.from_matrix(m * 1.0).as_rotvec(), np.eye(3), -np.eye(3)),
    "weights of a mean": (lambda w: Rotation.from_rotvec(np.eye(3)).mean(w * 1.0).as_rotvec(), ONES, -ONES),
    "weights of an alignment": (
        lambda w: Rotation.align_vectors(np.eye(3), np.eye(3)[[1, 2, 0]], w * 1.0)[0].as_rotvec(), ONES, -ONES
    ),
    "times": (lambda t: Slerp(t * 1.0, Rotation.from_rotvec(np.eye(3)))(0.5).as_rotvec(), RISING, ONES),
    "a time": (lambda t: Slerp(RISING, Rotation.from_rotvec(np.eye(3)))(t * 1.0).as_rotvec(), 0.5, 7.0),
    "places": (lambda i: _put(fnp.astype(i * 2, int)), np.float64(0.0), np.float64(9.0)),
    "a tangent solver": (grad(lambda a: custom_root(lambda x: a * x - 1.0, 1.0, newton, lambda g, y: y / 2)), 2.0, 3.0),
    "a step of a scan": (
        grad(lambda x: scan(lambda c, r: (c + fsp.multigammaln(r, 2), c), 0.0, x)[0]), RISING + 1, ONES / 4
    ),
    "an example of a scan": (
        vmap(grad(lambda x: scan(lambda c, r: (c * fsp.multigammaln(r, 2), c), 1.0, x)[0])), X**2 + 1, X**2
    ),
    "a step of a map": (lambda x: control.map(lambda r: fsp.multigammaln(r, 2), x * 1.0), RISING + 1, RISING),
}  # fmt: skip


def _put(i):
    x = fnp.zeros(4)
    fnp.put(x, i, fnp.ones(1))
    return x


@pytest.mark.parametrize(("fun", "good", "bad"), RAISING.values(), ids=RAISING)
def test_error_is_raised_at_each_call(fun, good, bad):
    fast = jit(fun, backend="numpy")
    for _ in range(3):
        assert not difference(fast(good), fun(good))
        with pytest.raises(Exception, match=r".") as expected:
            fun(bad)
        with pytest.raises(type(expected.value), match=re.escape(str(expected.value)[:40])):
            fast(bad)


def contraction(y, a):
    return 0.4 * fnp.sin(y) + 0.5 * fnp.tanh(a) * y[::-1] + a


#: Functions that branch on values.
STEERED = {
    "a triangle": (
        lambda q: LinearNDInterpolator([[0.0, 0], [1, 0], [0, 1], [1, 1]], [0.0, 1, 2, 9])(q * 1.0),
        [np.array([0.2, 0.1]), np.array([0.9, 0.8]), np.array([0.1, 0.2]), np.array([5.0, 5.0])],
    ),
    "nearly a rotation": (
        lambda m: Rotation.from_matrix(m * 1.0).as_rotvec(), [np.eye(3), np.eye(3) + 0.1 * X[0], np.eye(3) * 2.0]
    ),
    "a length": (lambda x: fnp.bincount((x * 1).astype(int), minlength=3), [RISING, RISING + 3, RISING * 4]),
    "places": (lambda i: _put(fnp.astype(i * 2, int)), list(map(np.float64, (0.0, 1.0, -1.0, -2.0)))),
    "steps to a fixed point": (lambda a: fixed_point(contraction, RISING, a), [0.1, 0.9, -3.0]),
    "steps of a batch": (vmap(grad(lambda a: fnp.sum(fixed_point(contraction, ONES, a)))), [X[0], X[1], X[0] / 9]),
    "plain iteration": (lambda a: picard(lambda y: contraction(y, a), ONES), [0.01, 0.9, -3.0]),
    "steps of Newton": (vmap(lambda a: newton(lambda y: y**3 - a, 1.5)), [ONES * 3, ONES * 4, ONES * 90]),
}  # fmt: skip


@pytest.mark.parametrize(("fun", "points"), STEERED.values(), ids=STEERED)
def test_other_values_get_own_variant(fun, points):
    fast = jit(fun, backend="numpy")
    for x in (*points, *points[::-1]):
        assert not difference(fast(x), fun(x))


def test_saved_module_omits_warning(tmp_path):
    fun, good, bad = WARNING["cov"]
    fast = jit(fun, backend="numpy")
    with_warnings(fast, *good)
    with_warnings(fast, *bad)
    fast.save(tmp_path / "kept.py", "kept")
    space = {"__name__": "kept"}
    exec(compile((tmp_path / "kept.py").read_text(), "kept.py", "exec"), space)
    for args in (good, bad):
        assert not difference(with_warnings(space["kept"], *args)[0], with_warnings(fun, *args)[0])


def test_integer_conversions_are_checked_again(tmp_path):
    fun = grad(lambda x: math.exp(x) * len(f"{int(x):02d}") * [1.0, 2.0, 3.0][math.floor(x) % 3])
    fast = jit(fun, backend="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (3.2, 3.9, 4.1, -110.5, 3.2):
            assert fast(x) == fun(x)
    assert len(fast.report().variants) == 3
    fast.save(tmp_path / "kept.py", "kept")
    space = {"__name__": "kept"}
    exec(compile((tmp_path / "kept.py").read_text(), "kept.py", "exec"), space)
    assert space["kept"](3.9) == fun(3.9)


def _caught(compute):
    def f(x):
        try:
            compute(x)
            return compute(x) + 2.0 * x
        except (ArithmeticError, ValueError):
            return 7.0 * x + 1.0

    return f


def _inverse(x):
    try:
        return np.linalg.inv(np.array([[x, 1.0], [1.0, 1.0]]))[0, 0]
    except np.linalg.LinAlgError:
        return 7.0 * x


def _raising(x):
    with np.errstate(all="raise"):
        return np.log(x)


def _after_unneeded(compute):
    def f(x):
        try:
            compute(x)
            return 2.0 * x
        except (ArithmeticError, ValueError):
            return 7.0 * x

    return f


#: Functions that catch errors, and numbers for some of which they are raised.
CAUGHT = {
    "log": (_caught(math.log), (1.5, -1.0, 0.0)),
    "sqrt": (_caught(math.sqrt), (1.5, -1.0, 4.0)),
    "exp": (_caught(math.exp), (1.5, 1e4, -1e4)),
    "gamma": (_caught(math.gamma), (1.5, -1.0, 200.0)),
    "lgamma": (_caught(math.lgamma), (1.5, -1.0, 0.0)),
    "sin": (_caught(math.sin), (1.5, math.inf, 0.5)),
    "pow": (_caught(lambda x: math.pow(x, 0.5)), (1.5, -1.0, 2.0)),
    "fmod": (_caught(lambda x: math.fmod(3.0, x)), (1.25, 0.0, 2.0)),
    "acos": (_caught(math.acos), (0.5, 2.0, -0.5)),
    "quotient": (_caught(lambda x: 1.0 / x), (2.0, 0.0, 4.0)),
    "remainder": (_caught(lambda x: 3.0 % x), (1.25, 0.0, 2.5)),
    "floor": (_caught(lambda x: 3.0 // x * x), (1.25, 0.0, 2.5)),
    "power": (_caught(lambda x: x**-1.0), (2.0, 0.0, 4.0)),
    "large_power": (_caught(lambda x: x**200.0), (2.0, 1e10, 3.0)),
    "inverse": (_inverse, (3.0, 1.0, 2.0)),
    "numpy_errors": (_caught(_raising), (2.0, -1.0, 4.0)),
    "unneeded_log": (_after_unneeded(math.log), (1.5, -1.0, 2.0)),
    "unneeded_quotient": (_after_unneeded(lambda x: 1.0 / x), (1.5, 0.0, 2.0)),
}


#: Programs with functions of ``math``: they are recorded as NumPy's, whose last bits differ on some processors.
OF_MATH = {"log", "exp", "gamma", "lgamma", "acos", "pow", "unneeded_log"}


@pytest.mark.filterwarnings("ignore::funcgrad.errors.EagerWarning")
@pytest.mark.parametrize("order", [1, -1], ids=["succeeds_first", "fails_first"])
@pytest.mark.parametrize("name", CAUGHT)
def test_caught_errors_are_raised_at_each_call(name, order):
    f, points = CAUGHT[name]
    for transformed in (f, grad(f), value_and_grad(f), grad(grad(f))):
        fast = jit(transformed, backend="numpy")
        for x in (*points, *points)[::order]:
            found, _ = with_warnings(fast, x)
            expected, _ = with_warnings(transformed, x)
            if name in OF_MATH:
                np.testing.assert_array_max_ulp(np.asarray(found, float), np.asarray(expected, float), 2)
            else:
                np.testing.assert_array_equal(found, expected)


def test_examples_in_a_batch_are_checked_again():
    f = jit(vmap(grad(_caught(math.log))), backend="numpy")
    for batch in (np.array([1.0, 2.0]), np.array([-1.0, -2.0]), np.array([3.0, 4.0])):
        np.testing.assert_array_equal(f(batch), vmap(grad(_caught(math.log)))(batch))


def test_recording_of_infinite_numbers_gives_no_warning():
    fast = jit(lambda x: fnp.sum(x) * 2.0, backend="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [fast(x) for x in (np.array([np.inf, 1.0]), ONES)] == [np.inf, 6.0]
