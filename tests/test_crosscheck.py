"""The cross-check: who is right when funcgrad, JAX and the referee disagree."""

from collections import namedtuple
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toolz

import funcgrad.numpy as fnp
from funcgrad import errors, grad, interop, jacfwd, jvp, no_grad, stop_gradient, vjp, vmap
from funcgrad.interop import CrossCheck, Row, crosscheck, to_jax
from funcgrad.interop.divergences import KNOWN, known
from funcgrad.kinds import elementwise
from funcgrad.primitives.arithmetic import power
from funcgrad.primitives.elementwise import cos, sin
from funcgrad.transforms.referee import Referee, extrapolate

Model = namedtuple("Model", "w b")
X = np.array([0.3, 0.7, 1.1])
X4 = np.array([0.3, -0.7, 1.1, 0.5])


@pytest.fixture(params=[True, False], ids=["x64", "x32"])
def mode(request):
    """JAX's mode around the cross-check, which must not matter and must come back."""
    with jax.enable_x64(request.param):
        yield request.param
        assert jax.config.jax_enable_x64 == request.param


def verdicts(report):
    return {(row.what, row.path): row.verdict for row in report.rows}


def affine(model, x):
    return fnp.tanh(model.w * x + model.b)


# Operations whose derivative is wrong on one side: funcgrad's rule, JAX's, and funcgrad's at second order.
wrong_sin = elementwise("wrong_sin", lambda xp, x: xp.sin(x), dx=lambda x: 1.001 * cos(x))
wrong_cos = elementwise("wrong_cos", lambda xp, x: xp.cos(x), dx=lambda x: sin(x))
late_sin = elementwise("late_sin", lambda xp, x: xp.sin(x), dx=lambda x: wrong_cos(x))
in_wrong_dtype = elementwise("in_wrong_dtype", lambda xp, x: xp.sin(x), dx=lambda x: cos(x) + 1e-8)


@jax.custom_jvp
def _misled(x):
    return jnp.sin(x)


_misled.defjvps(lambda t, ans, x: 2.0 * t * jnp.cos(x))
jax_misled = elementwise("jax_misled", lambda xp, x: np.sin(x) if xp is np else _misled(x), dx=lambda x: cos(x))
both_misled = elementwise("both_misled", lambda xp, x: np.sin(x) if xp is np else _misled(x), dx=lambda x: 2 * cos(x))
none_alike = elementwise("none_alike", lambda xp, x: np.sin(x) if xp is np else _misled(x), dx=lambda x: 3 * cos(x))


def test_a_good_function_passes(mode):
    report = crosscheck(lambda x: np.sum(np.sin(x) * x**2))(X)
    assert isinstance(report, CrossCheck)
    assert report.ok
    assert report
    assert report.raise_if_failed() is report
    assert verdicts(report) == dict.fromkeys(
        [("value", "result"), ("gradient", "x"), ("jvp", "result"), ("hvp", "x")], "agree"
    )
    for row in report.rows:
        assert max(row.funcgrad_jax, row.funcgrad_referee, row.jax_referee) < 1e-11
    assert report.methods == ("complex step", "differences of complex steps")


@pytest.mark.parametrize(
    ("rule", "quantity", "alone"),
    [
        (wrong_sin, "gradient", "funcgrad stands alone"),
        (in_wrong_dtype, "gradient", "funcgrad stands alone"),
        (late_sin, "hvp", "funcgrad stands alone"),
        (jax_misled, "gradient", "JAX stands alone"),
        (both_misled, "gradient", "referee stands alone"),
        (none_alike, "gradient", "all differ"),
    ],
)
def test_who_is_wrong_is_named(rule, quantity, alone):
    report = crosscheck(lambda x, y: fnp.sum(rule(x) * x) + fnp.sum(y**2))(X, X)
    found = verdicts(report)
    assert not report
    assert found[quantity, "x"] == alone
    assert {verdict for (what, path), verdict in found.items() if path == "y"} == {"agree"}
    assert found["value", "result"] == "agree"
    with pytest.raises(errors.CrossCheckError, match=alone) as caught:
        report.raise_if_failed()
    assert str(caught.value) == str(report)
    assert isinstance(caught.value, AssertionError)


def test_first_order_stays_good_where_the_second_is_wrong():
    found = verdicts(crosscheck(lambda x: fnp.sum(late_sin(x)))(X))
    assert found["gradient", "x"] == found["jvp", "result"] == "agree"
    assert len(crosscheck(lambda x: fnp.sum(late_sin(x)), order=1)(X).rows) == 3
    assert crosscheck(lambda x: fnp.sum(late_sin(x)), order=1)(X)


def test_a_wrong_value_is_seen():
    report = crosscheck(elementwise("shifted", lambda xp, x: x + (xp is np), dx=1))(0.5)
    assert verdicts(report)["value", "result"] == "JAX stands alone"
    assert not report.ok


def test_a_kink_is_told_from_an_error():
    report = crosscheck(lambda x: fnp.sum(fnp.abs(x) + x**2))(np.array([0.0, 1.0, -2.0]))
    assert verdicts(report)["gradient", "x"] == "referee stands alone, a kink"
    assert verdicts(report)["hvp", "x"] == "agree, no referee"
    assert report.ok
    assert "with a remark" in report.verdict


def test_two_conventions_at_a_kink_are_an_error():
    relu = elementwise("relu", lambda xp, x: xp.maximum(x, 0), dx=lambda x: fnp.where(x >= 0, 1.0, 0.0))
    report = crosscheck(relu)(0.0)
    assert verdicts(report)["gradient", "x"] == "funcgrad stands alone, a kink"
    assert not report


def test_a_kink_that_no_single_direction_shows():
    report = crosscheck(lambda x: np.median(x))(np.full(4, 2.0))
    assert verdicts(report)["gradient", "x"] == "referee stands alone, a kink"
    assert report.ok
    assert not Referee(lambda leaves: np.median(leaves[0], keepdims=True), [np.full(4, 2.0)]).first([X4]).jump[0]


def test_a_kink_of_the_derivative():
    report = crosscheck(lambda x: x * fnp.abs(x))(0.0)
    assert verdicts(report) == {
        ("value", "result"): "agree",
        ("gradient", "x"): "agree",
        ("jvp", "result"): "agree",
        ("hvp", "x"): "referee stands alone, a kink",
    }


def test_a_missing_part_of_the_derivative_is_no_kink():
    for constant in (stop_gradient, no_grad(lambda x: x)):
        report = crosscheck(lambda x: fnp.sum(x * constant(fnp.sin(x))))(X)  # noqa: B023
        assert verdicts(report)["gradient", "x"] == "referee stands alone"
        assert verdicts(report)["gradient", "x"] == verdicts(report)["jvp", "result"]
        assert not report.ok


def test_no_grad_blocks_are_constants_on_both_sides():
    def fun(x):
        with no_grad():
            scale = fnp.sum(x * x)
        return scale * fnp.sum(x)

    found = {row.what: row for row in crosscheck(fun)(X).rows}
    assert found["gradient"].funcgrad_jax < 1e-12
    assert found["gradient"].verdict == "referee stands alone"


def test_where_there_is_no_derivative_there_is_no_referee():
    with np.errstate(divide="ignore", invalid="ignore"):
        report = crosscheck(fnp.sqrt, order=1)(0.0)
        assert verdicts(report)["gradient", "x"] == "agree, no referee"
        step = crosscheck(lambda x: fnp.floor(x) + x)(1.0)
    assert verdicts(step)["gradient", "x"] == "agree, no referee"
    assert report.ok
    assert step.ok
    row = next(row for row in report.rows if row.what == "gradient")
    assert row.funcgrad_jax == 0
    assert np.isnan(row.jax_referee)


@pytest.mark.parametrize(
    ("fun", "args"),
    [
        (lambda p, x: np.sum(affine(p, x)), (Model(np.array([0.2, 0.4]), 0.1), np.array([1.0, 2.0]))),
        (lambda p: p["w"][0] * p["w"][1] ** 2 + p["b"], ({"w": [1.5, 2.5], "b": 0.5},)),
        (lambda p: {"a": np.exp(p[0]), "b": (p[1] * p[0], 3)}, ([0.5, np.array([1.0, 2.0])],)),
        (lambda x: x[:2] * x[1], (X,)),
        (lambda x, n: np.sum(x) ** n, (X, 3)),
        (lambda x, i: np.sum(x[i] ** 2), (X, np.array([0, 0, 2]))),
        (lambda x, mode: np.sum(x) if mode == "sum" else None, (X, "sum")),
        (lambda x, flags: np.sum(np.where(flags, x, x**2)), (X, np.array([True, False, True]))),
        (lambda *xs: np.sum(xs[0] * xs[1]), (X, X)),
        (lambda x: np.sum(x), (np.zeros((0, 2)),)),
        (lambda x: np.sum(x**2), (np.float32(X),)),
        (lambda x: np.sum(x**2), (jnp.asarray(X, jnp.float32),)),
        (lambda a, b: a @ np.tanh(a @ b), (np.array([[2.0, 1.0], [0.5, 3.0]]), np.array([1.0, 2.0]))),
        (np.tanh, (X,)),
        (toolz.compose(np.sum, partial(np.multiply, 2.0), np.exp), (X,)),
        (toolz.curry(lambda a, x: np.sum(a * x))(np.ones(3)), (X,)),
        (lambda x: toolz.pipe(x, np.sin, np.cumsum, np.sort, np.prod), (X,)),
        (lambda x: np.sum(grad(lambda y: np.sum(np.sin(y) * x))(x) ** 2), (X,)),
        (lambda x: np.sum(vmap(lambda y: np.sin(y) * y)(x)), (X,)),
        (lambda x: jacfwd(lambda y: np.sin(y) * y)(x), (X,)),
        (lambda x: jvp(np.sin, (x,), (x,))[1], (X,)),
        (lambda x: x * 5.0 if x > 0 else x, (2.0,)),
    ],
)  # fmt: skip
def test_arguments_and_results_of_many_kinds(fun, args):
    report = crosscheck(fun)(*args)
    assert report.ok, str(report)
    assert all("agree" in row.verdict for row in report.rows)


@pytest.mark.parametrize(
    ("fun", "z"),
    [
        (lambda z: np.sum(np.abs(z) ** 2), np.array([1 + 2j, 3 - 1j])),
        (lambda z: np.real(z * np.conj(z) * z), 1 + 2j),
        (lambda z: np.exp(z) * z, np.array([1 + 2j, 0.5j])),
        (lambda z: np.conj(z) ** 2, 1 + 2j),
        (lambda x: x * (1 + 2j), X),
        (lambda z, x: {"c": z * x, "r": np.imag(z) * x}, (1 + 2j, 3.0)),
    ],
)
def test_complex_numbers(fun, z):
    report = crosscheck(fun)(*(z if isinstance(z, tuple) else (z,)))
    assert report.ok, str(report)
    assert {row.verdict for row in report.rows} == {"agree"}


def test_key_paths_name_arguments_and_results():
    def model(params, x, *rest, scale):
        return {"y": params["w"] * x * rest[0] * scale, "n": 3}

    report = crosscheck(model)({"w": np.ones(2), "n": 1}, X[:2], 2.0, scale=5.0)
    assert list(verdicts(report)) == [
        ("value", "result['y']"),
        ("vjp", "params['w']"),
        ("vjp", "x"),
        ("vjp", "rest[0]"),
        ("jvp", "result['y']"),
        ("hvp", "params['w']"),
        ("hvp", "x"),
        ("hvp", "rest[0]"),
    ]


def test_argnums_has_aux_and_keywords():
    report = crosscheck(lambda x, y, k: (np.sum(x * y) * k, "aux"), argnums=-1, has_aux=True)(X, X, k=2.0)
    assert [row.path for row in report.rows] == ["result", "y", "result", "y"]
    both = crosscheck(lambda x, y: np.sum(x * y), argnums=(1, 0), order=1)(X, X)
    assert [row.path for row in both.rows] == ["result", "y", "x", "result"]


def test_one_wrong_entry_among_many_is_found():
    where = np.arange(1000) == 500
    wrong = elementwise("wrong_somewhere", lambda xp, x: x * 1.0, dx=lambda x: fnp.where(where, 1.01, 1.0))
    report = crosscheck(lambda x: fnp.sum(wrong(x)), order=1)(np.linspace(1.0, 2.0, 1000))
    assert verdicts(report)["gradient", "x"] == "funcgrad stands alone"


def test_leaves_of_very_different_size():
    def fun(a, b, c):
        return fnp.sum(fnp.log(a)) + 1e-6 * b**2 + fnp.sum(c) * 0.0

    assert crosscheck(fun)(np.array([1e-8, 2e-8]), 1e6, np.zeros(2)).ok


def test_a_network_with_kinks_nearby():
    def loss(params, x, y):
        for w, b in params:
            x = fnp.maximum(x @ w + b, 0.0)
        return fnp.mean((x - y) ** 2)

    rng = np.random.default_rng(0)
    params = [(rng.normal(size=(3, 3)), rng.normal(size=3)), (rng.normal(size=(3, 3)), np.ones(3))]
    report = crosscheck(loss)(params, rng.normal(size=(3, 3)), rng.normal(size=(3, 3)))
    assert {row.verdict for row in report.rows} == {"agree"}, str(report)


def test_jax_may_be_wrong_in_known_places():
    report = crosscheck(lambda x: fnp.sum(x**0.0))(np.array([0.0, 1.0]))
    assert verdicts(report)["gradient", "x"] == "JAX stands alone, a known divergence"
    assert report.ok
    assert "Known divergence: x**0.0 at x = 0: JAX's derivative is nan" in str(report)
    assert crosscheck(lambda x: fnp.sum(x**0.0))(np.array([2.0, 1.0])).notes == ()


def test_a_known_divergence_excuses_nothing_else():
    report = crosscheck(lambda x, y: fnp.sum(x**0.0) + fnp.sum(wrong_sin(y)))(np.zeros(2), X)
    found = verdicts(report)
    assert found["gradient", "x"] == "JAX stands alone, a known divergence"
    assert found["gradient", "y"] == "funcgrad stands alone"
    assert not report
    wrong = elementwise("wrong", lambda xp, x: xp.where(xp.asarray(x) == 0, 0.0, x**1.0), dx=5)
    worse = crosscheck(lambda x: fnp.sum(wrong(x)) + fnp.sum(x**0.0))(np.array([0.0, 1.0]))
    assert verdicts(worse)["gradient", "x"] == "all differ"
    assert not worse


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (lambda x: x**0.0, 0.0),
        (lambda x: x**1.0, 0.0),
        (lambda x: fnp.float_power(x, 0.0), 0.0),
        (lambda x: fnp.float_power(x, 1.0), 0.0),
        (lambda x: fnp.sum(fnp.partition(x, 1) * np.arange(4)), np.array([3.0, 2.0, 2.0, 1.0])),
    ],
)
def test_every_known_divergence_is_one(fun, x):
    report = crosscheck(fun)(x)
    assert any(row.verdict.endswith("a known divergence") for row in report.rows)
    assert report.ok


def test_divergences_are_looked_up_by_value():
    assert known(power.primitive, (np.zeros(2), np.float64(1.0)), {})
    assert not known(power.primitive, (np.zeros(2), 1), {})
    assert not known(power.primitive, (np.ones(2), 0.0), {})
    assert not known(sin.primitive, (0.0,), {})
    assert len({entry.primitive for entry in KNOWN}) == len(KNOWN)


def test_x64_mode_comes_back_after_an_error(mode):
    def fun(x):
        if isinstance(getattr(x, "value", None), jax.Array):
            raise RuntimeError("not on JAX")
        return fnp.sum(x)

    with pytest.raises(RuntimeError, match="not on JAX") as caught:
        crosscheck(fun)(X)
    assert caught.value.__notes__ == ["crosscheck: raised while JAX ran fun."]
    assert jax.config.jax_enable_x64 == mode


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: crosscheck(3), "crosscheck: the first argument must be a function"),
        (lambda: crosscheck(np.sin, order=3), "order must be 1 or 2, got 3"),
        (lambda: crosscheck(np.sin, rtol=0), "rtol must be positive, got rtol=0"),
        (lambda: crosscheck(lambda n: n * 1.0)(3), "nothing to differentiate in the arguments of <lambda>"),
        (lambda: crosscheck(lambda x: "text")(3.0), "<lambda> returns nothing that can be differentiated"),
        (lambda: crosscheck(np.sin, argnums=1)(3.0), "crosscheck: argnums=1 is out of range"),
        (lambda: crosscheck(np.sin, has_aux=True)(3.0), r"crosscheck: with has_aux=True .* a pair"),
    ],
)
def test_messages(call, message):
    with pytest.raises(errors.InputError, match=message):
        call()


def test_the_report_reads_well():
    rows = (
        Row("value", "result", 0.0, 0.0, 0.0, 0.0, "agree", True),
        Row("gradient", "params['hidden']['w']", 1.24e-16, np.nan, np.nan, np.nan, "agree, no referee", True),
        Row("hvp", "<x>", 0.5, 0.5, 1e-12, 2e-13, "funcgrad stands alone", False),
    )
    report = CrossCheck("loss", rows, 1e-9, ("complex step", "differences"), ("a note",))
    assert str(report) == "\n".join(
        [
            "Cross-check of loss",
            "",
            "  quantity  of                     funcgrad – JAX  funcgrad – referee  JAX – referee  referee ±  verdict",
            "  ────────  ─────────────────────  ──────────────  ──────────────────  ─────────────  ─────────  "
            "─────────────────────",
            "  value     result                              0                   0              0          0  agree",
            "  gradient  params['hidden']['w']         1.2e-16                   –              –          –  "
            "agree, no referee",
            "✗ hvp       <x>                           5.0e-01             5.0e-01        1.0e-12    2.0e-13  "
            "funcgrad stands alone",
            "",
            "The referee: complex step, differences.",
            "Known divergence: a note",
            "FAILED in 1 of 3 quantities: funcgrad stands alone (1).",
        ]
    )
    assert repr(report) == "<CrossCheck of loss: FAILED in 1 of 3 quantities: funcgrad stands alone (1).>"
    html = report._repr_html_()
    assert html.count("<tr") == 4
    assert html.count("font-weight: bold") == 1
    assert "<td>&lt;x&gt;</td>" in html
    assert "<x>" not in html
    assert CrossCheck("f", rows[:2], 1e-9).verdict == "OK: 2 quantities agree to 1e-09, 1 with a remark."


def test_the_seed_decides_the_directions():
    one, same, other = [crosscheck(np.sin, seed=seed)(X) for seed in (1, 1, 2)]
    assert one == same
    assert one != other


def test_public_names():
    assert interop.__all__ == ["CrossCheck", "Row", "crosscheck", "to_jax"]
    assert crosscheck(np.sin).__name__ == "sin"


# The lift.


def test_jax_transforms_functions_of_plain_numpy():
    fun = to_jax(lambda p, x, n: {"y": np.sum(np.sin(p["w"] * x)) ** n})
    p, x = {"w": jnp.asarray(X)}, X
    slope = jax.jit(jax.grad(lambda p: fun(p, x, 2)["y"]))(p)
    expected = grad(lambda w: np.sum(np.sin(w * x)) ** 2)(X)
    np.testing.assert_allclose(slope["w"], expected, rtol=1e-12)
    rows = jax.vmap(to_jax(np.sin))(jnp.asarray(X))
    assert isinstance(rows, jax.Array)
    np.testing.assert_allclose(rows, np.sin(X), rtol=1e-12)


def test_lifting_applies_no_rule_of_funcgrad():
    assert jax.grad(to_jax(wrong_sin))(0.0) == 1.0
    assert jax.grad(to_jax(jax_misled))(0.0) == 2.0
    assert jax.grad(to_jax(grad(wrong_sin)))(0.5) == pytest.approx(-1.001 * np.sin(0.5))


def test_a_lifted_value_does_not_outlive_its_function():
    kept = []

    def fun(x):
        kept.append(x)
        return x * 2.0

    assert to_jax(fun)(3.0) == 6.0
    with pytest.raises(errors.EscapedTracerError, match="finished lift transform"):
        kept[0] * 2.0


# The referee.


def measured(fun, point, direction):
    return Referee(lambda leaves: np.array([fun(*leaves)]), [point]).first([direction])


@pytest.mark.parametrize(
    ("fun", "point", "slope", "method"),
    [
        (np.exp, 1.0, np.e, "complex step"),
        (lambda x: np.abs(x) ** 3, -2.0, -12.0, "differences"),
        (lambda x: np.real(x) ** 2, 3.0, 6.0, "differences"),
        (lambda x: float(x) ** 2, 3.0, 6.0, "differences"),
        (lambda x: np.maximum(x, 0.001) ** 2, 0.0015, 0.003, "complex step"),
        (lambda x: np.log(x), 1e-3, 1e3, "complex step"),
        (lambda x: 1e9 + np.abs(x), 2.0, 1.0, "differences"),
    ],
)
def test_referee_measures_and_knows_how_well(fun, point, slope, method):
    found = measured(fun, point, abs(point))
    assert found.method == method
    off = abs(found.value[0] - slope * abs(point))
    assert off <= found.error[0] + 1e-14 * abs(slope)
    assert found.error[0] < 1e-4
    assert found.jump[0] == 0


@pytest.mark.parametrize(("fun", "jump"), [(np.abs, 2.0), (lambda x: np.maximum(x, 0) + np.exp(x), 1.0)])
def test_referee_sees_kinks(fun, jump):
    np.testing.assert_allclose(measured(fun, 0.0, 1.0).jump, jump, rtol=1e-6)


@pytest.mark.parametrize("fun", [np.floor, np.sqrt, np.sign])
def test_referee_admits_that_it_cannot_measure(fun):
    found = measured(fun, 0.0, 1.0)
    assert not found.error[0] < 0.1


def test_referee_costs_the_same_in_every_dimension():
    counts = []
    for size in (1, 1000):
        calls = []

        def fun(leaves, calls=calls):
            calls.append(None)
            return np.array([np.mean(np.sin(leaves[0]))])

        referee = Referee(fun, [np.linspace(0.5, 1.0, size)])
        direction = [np.ones(size)]
        referee.second(direction, direction, referee.first(direction))
        counts.append(len(calls))
    assert max(counts) < 50


def test_extrapolation_needs_a_row():
    with pytest.raises(ValueError, match="no row"):
        extrapolate(iter(()), (2,))


def test_vjp_of_a_report_is_refused():
    with pytest.raises(errors.FuncgradError):
        vjp(crosscheck(np.sin), 1.0)
