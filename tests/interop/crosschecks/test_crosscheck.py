"""The cross-check: its verdict when funcgrad, JAX and the referee disagree."""

import os
import warnings
from collections import namedtuple
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toolz

import funcgrad.numpy as fnp
from funcgrad import custom_vjp, errors, extend, grad, interop, jacfwd, jvp, no_grad, stop_gradient, vjp, vmap
from funcgrad.interop import CrossCheck, Row, to_jax
from funcgrad.interop import crosscheck as whole_crosscheck
from funcgrad.interop.crosschecks.divergences import KNOWN, divergences_at
from funcgrad.kinds import elementwise
from funcgrad.optional import precision_switch
from funcgrad.primitives.arithmetic import power
from funcgrad.primitives.elementwise import cos, sin
from funcgrad.scipy import special
from funcgrad.scipy.special.operations.bessel import scaled_bessel_i
from funcgrad.transforms.lifting import LiftedTrace
from funcgrad.transforms.referee import Referee, extrapolate

Model = namedtuple("Model", "w b")
crosscheck = partial(whole_crosscheck, also=())  # other comparisons take time, and have tests of their own below
X = np.array([0.3, 0.7, 1.1])
X4 = np.array([0.3, -0.7, 1.1, 0.5])


@pytest.fixture(params=[True, False], ids=["x64", "x32"])
def mode(request):
    """Set JAX's mode around the cross-check, which must not matter and must be restored."""
    with precision_switch(jax)(request.param):
        yield request.param
        assert jax.config.jax_enable_x64 == request.param


def verdicts(report):
    return {(row.what, row.path): row.verdict for row in report.rows}


def affine(model, x):
    return fnp.tanh(model.w * x + model.b)


# Operations whose derivative is wrong in one place: funcgrad's rule, JAX's, and funcgrad's at second order.
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


def test_right_function_passes(mode):
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
def test_outlier_is_named(rule, quantity, alone):
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


def test_wrong_second_order_leaves_first_order_passing():
    found = verdicts(crosscheck(lambda x: fnp.sum(late_sin(x)))(X))
    assert found["gradient", "x"] == found["jvp", "result"] == "agree"
    assert len(crosscheck(lambda x: fnp.sum(late_sin(x)), order=1)(X).rows) == 3
    assert crosscheck(lambda x: fnp.sum(late_sin(x)), order=1)(X)


def test_wrong_value_is_found():
    report = crosscheck(elementwise("shifted", lambda xp, x: x + (xp is np), dx=1))(0.5)
    assert verdicts(report)["value", "result"] == "JAX stands alone"
    assert not report.ok


def test_kink_is_distinguished_from_error():
    report = crosscheck(lambda x: fnp.sum(fnp.abs(x) + x**2))(np.array([0.0, 1.0, -2.0]))
    assert verdicts(report)["gradient", "x"] == "referee stands alone, a kink"
    assert verdicts(report)["hvp", "x"] == "agree, no referee"
    assert report.ok
    assert "with a remark" in report.verdict


def test_differing_conventions_at_kink_are_an_error():
    relu = elementwise("relu", lambda xp, x: xp.maximum(x, 0), dx=lambda x: fnp.where(x >= 0, 1.0, 0.0))
    report = crosscheck(relu)(0.0)
    assert verdicts(report)["gradient", "x"] == "funcgrad stands alone, a kink"
    assert not report


def test_kink_visible_only_in_several_directions():
    report = crosscheck(lambda x: np.median(x))(np.full(4, 2.0))
    assert verdicts(report)["gradient", "x"] == "referee stands alone, a kink"
    assert report.ok
    assert (
        not Referee(lambda leaves: np.median(leaves[0], keepdims=True), [np.full(4, 2.0)])
        .first_derivative([X4])
        .jump[0]
    )


def test_kink_of_the_derivative():
    report = crosscheck(lambda x: x * fnp.abs(x))(0.0)
    assert verdicts(report) == {
        ("value", "result"): "agree",
        ("gradient", "x"): "agree",
        ("jvp", "result"): "agree",
        ("hvp", "x"): "referee stands alone, a kink",
    }


def test_missing_term_is_not_reported_as_kink():
    for constant in (stop_gradient, no_grad(lambda x: x)):
        report = crosscheck(lambda x: fnp.sum(x * constant(fnp.sin(x))))(X)  # noqa: B023
        assert verdicts(report)["gradient", "x"] == "referee stands alone"
        assert verdicts(report)["gradient", "x"] == verdicts(report)["jvp", "result"]
        assert not report.ok


def test_rounding_of_single_precision_is_no_kink():
    right = crosscheck(lambda x: fnp.sum((x * x).astype(np.float32)).astype(float))(X)
    assert right.verdict == "OK: 4 quantities agree to 1e-09."
    missing = crosscheck(lambda x: fnp.sum((x * stop_gradient(x)).astype(np.float32)))(X)
    assert verdicts(missing)["gradient", "x"] == "referee stands alone"
    assert not missing.ok
    bend = crosscheck(lambda x: fnp.sum(fnp.abs(x - 0.5).astype(np.float32)))(np.array([0.5, 2.0]))
    assert verdicts(bend)["gradient", "x"] == "referee stands alone, a kink"


def test_no_grad_is_constant_for_both_libraries():
    def fun(x):
        with no_grad():
            scale = fnp.sum(x * x)
        return scale * fnp.sum(x)

    found = {row.what: row for row in crosscheck(fun)(X).rows}
    assert found["gradient"].funcgrad_jax < 1e-12
    assert found["gradient"].verdict == "referee stands alone"


def test_function_without_derivative_has_no_referee():
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
def test_many_kinds_of_arguments_and_results(fun, args):
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


def test_single_wrong_entry_is_found():
    where = np.arange(1000) == 500
    wrong = elementwise("wrong_somewhere", lambda xp, x: x * 1.0, dx=lambda x: fnp.where(where, 1.01, 1.0))
    report = crosscheck(lambda x: fnp.sum(wrong(x)), order=1)(np.linspace(1.0, 2.0, 1000))
    assert verdicts(report)["gradient", "x"] == "funcgrad stands alone"


def test_leaves_of_very_different_magnitude():
    def fun(a, b, c):
        return fnp.sum(fnp.log(a)) + 1e-6 * b**2 + fnp.sum(c) * 0.0

    assert crosscheck(fun)(np.array([1e-8, 2e-8]), 1e6, np.zeros(2)).ok


def test_network_near_kinks():
    def loss(params, x, y):
        for w, b in params:
            x = fnp.maximum(x @ w + b, 0.0)
        return fnp.mean((x - y) ** 2)

    rng = np.random.default_rng(0)
    params = [(rng.normal(size=(3, 3)), rng.normal(size=3)), (rng.normal(size=(3, 3)), np.ones(3))]
    report = crosscheck(loss)(params, rng.normal(size=(3, 3)), rng.normal(size=(3, 3)))
    assert {row.verdict for row in report.rows} == {"agree"}, str(report)


def test_known_jax_divergence_passes():
    report = crosscheck(lambda x: fnp.sum(x**0.0))(np.array([0.0, 1.0]))
    assert verdicts(report)["gradient", "x"] == "JAX stands alone, a known divergence"
    assert report.ok
    assert "Known divergence: x**0.0 at x = 0: JAX's derivative is nan" in str(report)
    assert crosscheck(lambda x: fnp.sum(x**0.0))(np.array([2.0, 1.0])).notes == ()


def test_known_divergence_does_not_hide_other_errors():
    report = crosscheck(lambda x, y: fnp.sum(x**0.0) + fnp.sum(wrong_sin(y)))(np.zeros(2), X)
    found = verdicts(report)
    assert found["gradient", "x"] == "JAX stands alone, a known divergence"
    assert found["gradient", "y"] == "funcgrad stands alone"
    assert not report
    wrong = elementwise("wrong", lambda xp, x: xp.where(xp.asarray(x) == 0, 0.0, x**1.0), dx=5)
    worse = crosscheck(lambda x: fnp.sum(wrong(x)) + fnp.sum(x**0.0))(np.array([0.0, 1.0]))
    assert verdicts(worse)["gradient", "x"] == "all differ"
    assert not worse
    bent = elementwise("bent", lambda xp, x: xp.abs(x), dx=5)
    assert not crosscheck(lambda x, y: special.i0e(x) + bent(y))(0.0, 0.0)


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (lambda x: x**0.0, 0.0),
        (lambda x: x**1.0, 0.0),
        (lambda x: fnp.float_power(x, 0.0), 0.0),
        (lambda x: fnp.float_power(x, 1.0), 0.0),
        (lambda x: fnp.sum(fnp.partition(x, 1) * np.arange(4)), np.array([3.0, 2.0, 2.0, 1.0])),
        (special.i0e, 0.0),  # a kink: the referee gives the mean of both sides, as JAX does
    ],
)
def test_every_known_divergence_is_observed(fun, x):
    report = crosscheck(fun)(x)
    assert any(row.verdict.endswith("a known divergence") for row in report.rows)
    assert report.ok


def test_divergences_are_looked_up_by_value():
    assert divergences_at(power.primitive, (np.zeros(2), np.float64(1.0)), {})
    assert not divergences_at(power.primitive, (np.zeros(2), 1), {})
    assert not divergences_at(power.primitive, (np.ones(2), 0.0), {})
    assert not divergences_at(sin.primitive, (0.0,), {})
    assert divergences_at(scaled_bessel_i.primitive, (0.0,), {"order": 0})
    assert not divergences_at(scaled_bessel_i.primitive, (0.5,), {"order": 0})
    assert len({(entry.primitive, entry.says) for entry in KNOWN}) == len(KNOWN)


def test_x64_mode_is_restored_after_error(mode):
    def fun(x):
        if isinstance(getattr(x, "_val", None), jax.Array):
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
        (lambda: whole_crosscheck(np.sin, also="jit"), "also must be some of .*, got 'jit'"),
        (lambda: whole_crosscheck(np.sin, also=["jot"]), "also must be some of .*, got .'jot'."),
        (lambda: crosscheck(lambda n: n * 1.0)(3), "nothing to differentiate in the arguments of <lambda>"),
        (lambda: crosscheck(lambda x: "text")(3.0), "<lambda> returns nothing that can be differentiated"),
        (lambda: crosscheck(np.sin, argnums=1)(3.0), "crosscheck: argnums=1 is out of range"),
        (lambda: crosscheck(np.sin, has_aux=True)(3.0), r"crosscheck: with has_aux=True .* a pair"),
    ],
)
def test_messages(call, message):
    with pytest.raises(errors.InputError, match=message):
        call()


def test_report_text():
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


def test_seed_determines_directions():
    one, same, other = [crosscheck(np.sin, seed=seed)(X) for seed in (1, 1, 2)]
    assert one == same
    assert one != other


def test_public_names():
    assert {"CrossCheck", "Row", "crosscheck", "to_jax"} <= {*interop.__all__}
    assert crosscheck(np.sin).__name__ == "sin"


# Batches, compilation, single precision.


def test_all_quantities_are_compared():
    report = whole_crosscheck(lambda p: np.sum(np.sin(p["x"]) * p["y"]))({"x": X, "y": 0.5})
    assert set(verdicts(report).values()) == {"agree"}
    paths = {
        "value": ["result"],
        "gradient": ["p['x']", "p['y']"],
        "jvp": ["result"],
        "hvp": ["p['x']", "p['y']"],
        "vmap value": ["result"],
        "vmap gradient": ["p['x']", "p['y']"],
        "jit value": ["result"],
        "jit gradient": ["p['x']", "p['y']"],
        "float32 value": ["result"],
        "float32 gradient": ["p['x']", "p['y']"],
        "float32 jvp": ["result"],
    }
    assert list(verdicts(report)) == [(what, path) for what, found in paths.items() for path in found]
    assert "For vmap it is a loop, jit it is the run without compiling, float32 it is double precision." in str(report)
    single = [row.funcgrad_referee for row in report.rows if row.what.startswith("float32")]
    assert 1e-9 < max(single) < 1e-6


def mixed_up(xp, x):
    return xp.sum(x * x, axis=-1)


wrong_batch = extend.primitive(
    "wrong_batch", mixed_up, vjps=[lambda ct, x: 2 * x * ct], batch=lambda size, args, batched, params: (
        mixed_up(np, args[0])[::-1], True
    ),
)  # fmt: skip


def test_wrong_batching_rule_is_found():
    report = whole_crosscheck(lambda x: fnp.exp(wrong_batch(x)), also=["vmap"])(X)
    assert {what for what, _ in verdicts(report)} == {"value", "gradient", "jvp", "hvp", "vmap value", "vmap gradient"}
    assert verdicts(report)["vmap value", "result"] == "funcgrad stands alone"
    assert verdicts(report)["gradient", "x"] == "agree"
    assert [blame.operation for blame in report.blames] == ["wrong_batch"]


no_batch = extend.primitive(
    "no_batch", mixed_up, vjps=[lambda ct, x: 2 * x * ct], batch=lambda *_: exec("raise ZeroDivisionError")
)


def test_raising_batching_rule_is_a_disagreement():
    report = whole_crosscheck(lambda x: fnp.exp(no_batch(x)), also=["vmap"])(X)
    assert verdicts(report)["vmap", "result"] == "funcgrad raises ZeroDivisionError"
    assert not report.ok
    assert report.blames[0].operation == "no_batch"


def tripled(xp, x):
    return x * (3.0 if type(x).__name__ == "DynamicJaxprTracer" else 2.0)


staged = elementwise("staged", tripled, dx=2.0)


def test_change_under_jit_is_found():
    report = whole_crosscheck(lambda x: fnp.sum(fnp.sin(staged(x))), also=["jit"])(X)
    assert verdicts(report)["jit value", "result"] == "funcgrad stands alone"
    assert not report.ok
    assert "staged" in [blame.operation for blame in report.blames]


coarse = elementwise("coarse", lambda xp, x: xp.sin(x), dx=lambda x: cos(x) * (1.01 if x.dtype == np.float32 else 1.0))
coarse_type = elementwise("coarse_type", lambda xp, x: xp.sin(xp.asarray(x, float)), dx=lambda x: cos(x))


def test_error_in_single_precision_is_found():
    report = whole_crosscheck(lambda x: fnp.sum(fnp.exp(coarse(x))), also=["float32"])(X)
    assert {(r.what, r.verdict) for r in report.rows if not r.ok} == {
        ("float32 gradient", "funcgrad stands alone"),
        ("float32 jvp", "funcgrad stands alone"),
    }
    assert [blame.operation for blame in report.blames] == ["coarse"]


def test_digits_lost_by_both_are_a_note():
    report = whole_crosscheck(lambda x: (1e6 + x) - 1e6, also=["float32"])(0.3)
    found = verdicts(report)["float32 value", "result"]
    assert found == "agree, both lose digits"
    assert report.ok
    touchy = whole_crosscheck(lambda x: fnp.sin(1e7 * x), also=["float32"])(0.3)
    assert verdicts(touchy)["float32 value", "result"] == "not compared, too sensitive to rounding"
    assert touchy.ok


def test_branch_on_values_is_compiled():
    report = whole_crosscheck(lambda x: x * 5.0 if x > 0 else x)(2.0)
    assert verdicts(report)["vmap value", "result"] == verdicts(report)["jit value", "result"] == "agree"
    assert report.ok


def test_number_of_elements_that_depends_on_values_is_not_compiled():
    report = whole_crosscheck(lambda x: np.sort(x[x > 0]))(X)
    assert verdicts(report)["jit", "result"] == "not compared, both refuse: StagingError"
    assert report.ok


def test_long_run_is_not_compiled(monkeypatch):
    monkeypatch.setattr("funcgrad.interop.crosschecks.checking.MANY_OPERATIONS", 5)
    report = whole_crosscheck(lambda x: fnp.sum(fnp.sin(x) * x * x * x * x), also=["jit"])(X)
    assert verdicts(report)["jit", "result"] == "not compared, 6 operations are too many to compile"


def test_jax_is_left_out_after_first_disagreement():
    found = verdicts(whole_crosscheck(lambda x: fnp.sum(wrong_sin(x)))(X))
    assert found["gradient", "x"] == "funcgrad stands alone"
    assert found["vmap gradient", "x"] == found["jit gradient", "x"] == "agree, without JAX"
    assert found["float32 gradient", "x"] == "agree"


def test_comparison_without_jax_derivative():
    alone = elementwise("alone", lambda xp, x: np.sin(x) if xp is np else _reverse_only(x), dx=lambda x: cos(x))
    report = crosscheck(lambda x: fnp.sum(alone(x)))(X)
    assert verdicts(report) == {
        ("value", "result"): "agree",
        ("gradient", "x"): "agree",
        ("jvp", "result"): "agree, without JAX",
        ("hvp", "x"): "agree",
    }
    wrong = elementwise("wrong_alone", lambda xp, x: np.sin(x) if xp is np else _reverse_only(x), dx=lambda x: x)
    report = crosscheck(lambda x: fnp.sum(wrong(x)))(X)
    assert verdicts(report)["jvp", "result"] == "funcgrad and the referee differ, without JAX"
    assert not report.ok


@jax.custom_vjp
def _reverse_only(x):
    return jnp.sin(x)


_reverse_only.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x),))


# Blame.


@custom_vjp
def squared(x):
    return x * x


squared.defvjp(lambda x: (x * x, x), lambda x, ct: (3 * x * ct,))


def late(x):
    return fnp.sum(squared(x))


def test_wrong_user_rule_is_named_with_line_and_stage():
    report = crosscheck(toolz.compose_left(fnp.exp, late))(X)
    assert verdicts(report)["gradient", "x"] == "referee stands alone"
    blame = report.blames[0]
    assert (blame.what, blame.operation, str(blame.stage)) == ("gradient", "squared", "2 late")
    assert blame.source.text == "return fnp.sum(squared(x))"
    assert blame.source.path == __file__
    assert blame.row.verdict == "funcgrad stands alone"
    assert f"gradient: squared at {__file__}:{blame.source.line} `return fnp.sum(squared(x))`" in str(report)
    assert ", stage 2 late of the pipeline: funcgrad stands alone, off by 3.3e-01" in str(report)


wrong_partial = extend.elementwise("wrong_partial", lambda xp, x, y: x * y, dx=lambda y: y, dy=lambda x: 1.0 + x)


def test_wrong_partial_is_first_operation_to_differ():
    def model(x):
        y = fnp.tanh(x)
        for k in range(20):
            y = y + 0.1 * fnp.sin(k * y)
        y = wrong_partial(2.0, y)
        for _ in range(9):
            y = y + 0.1 * fnp.cos(y)
        return fnp.sum(wrong_sin(y) * x)

    report = crosscheck(model)(X)
    assert [(b.what, b.operation) for b in report.blames] == [("gradient", "wrong_partial"), ("jvp", "wrong_partial")]
    assert report.blames[0].source.text == "y = wrong_partial(2.0, y)"
    assert "First to differ, gradient and jvp: wrong_partial at" in str(report)
    assert not whole_crosscheck(model, also=(), blame=False)(X).blames


def test_wrong_value_is_reported_first():
    shifted = elementwise("shifted", lambda xp, x: x + (xp is np), dx=lambda x: 2.0)
    report = crosscheck(lambda x: fnp.sum(fnp.sin(shifted(x)) * x))(X)
    assert [(b.what, b.operation) for b in report.blames] == [("value", "shifted")]
    assert report.blames[0].row.what == "value"


def test_second_order_blame_looks_into_rule():
    report = crosscheck(lambda x: fnp.sum(late_sin(x) * x))(X)
    (blame,) = report.blames
    assert (blame.what, blame.operation, blame.inside.operation) == ("hvp", "late_sin", "wrong_cos")
    assert "in its rule wrong_cos at" in str(report)
    assert "dx=lambda x: wrong_cos(x)" in blame.inside.source.text


def test_accumulated_small_errors_are_blamed():
    slight = elementwise("slight", lambda xp, x: xp.sin(x), dx=lambda x: cos(x) * (1 + 4e-10))

    def fun(x):
        for _ in range(8):
            x = slight(x) + 0.1
        return fnp.sum(x)

    report = crosscheck(fun, order=1)(X)
    assert not report.ok
    assert {(b.operation, b.together > 1) for b in report.blames} == {("slight", True)}
    assert "that differ together, none alone" in str(report)


def test_unused_branch_is_not_blamed():
    def fun(x):
        return fnp.sum(fnp.where(x > 5.0, wrong_sin(x), wrong_partial(x, x)))

    assert {b.operation for b in crosscheck(fun)(X).blames} == {"wrong_partial"}


def test_wrong_jax_rule_is_blamed():
    report = crosscheck(lambda x: fnp.sum(fnp.exp(jax_misled(x))))(X)
    assert {(b.operation, b.row.verdict) for b in report.blames} == {("jax_misled", "JAX stands alone")}


def test_stop_gradient_is_blamed():
    report = crosscheck(lambda x: fnp.sum(x * stop_gradient(fnp.sin(x))))(X)
    assert {b.operation for b in report.blames} == {"stop_gradient"}


def test_report_says_what_graph_does_not_show():
    def fun(x):
        return fnp.sum(x * (2.0 if repr(x).startswith("ReverseTracer") else 1.0))

    report = crosscheck(fun)(X)
    assert verdicts(report)["gradient", "x"] == "funcgrad stands alone"
    assert report.blames[0].operation is None
    assert "First to differ, value: no operation of the graph differs" in str(report)


def test_failed_search_keeps_report(monkeypatch):
    def refuse(*args):
        raise RuntimeError("no graph")

    monkeypatch.setattr("funcgrad.interop.crosschecks.checking.blame_search", refuse)
    report = crosscheck(lambda x: fnp.sum(wrong_sin(x)))(X)
    assert verdicts(report)["gradient", "x"] == "funcgrad stands alone"
    assert "the search for the operation was given up, RuntimeError: no graph" in str(report)


def test_known_divergence_does_not_hide_another():
    other = elementwise("other", lambda xp, x: np.sin(x) if xp is np else _misled(x), dx=lambda x: cos(x))
    report = crosscheck(lambda x: fnp.sum(x**0.0) + fnp.sum(other(x)))(np.array([0.0, 1.0]))
    assert verdicts(report)["gradient", "x"] == "JAX stands alone"
    assert not report.ok
    assert {b.operation for b in report.blames} <= {"other"}


def test_divergence_names_its_line():
    report = crosscheck(lambda x: fnp.sum(x**0.0))(np.array([0.0, 1.0]))
    assert f"return different values for them. Met at {__file__}:" in str(report)
    assert report.met_at[0].startswith(f"at {__file__}:")


# Context: modes, blocks, state.


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, None])
@pytest.mark.parametrize("where", ["JAX", "NumPy"])
def test_crosscheck_restores_all_state(mode, error, where):
    def fun(x):
        on_jax = isinstance(getattr(x, "_val", None), jax.Array)
        if error and on_jax == (where == "JAX") and isinstance(getattr(x, "_trace", None), LiftedTrace) == on_jax:
            raise error
        return fnp.sum(x * x)

    def state():
        return (
            jax.config.jax_enable_x64,
            jax.config.jax_default_device,
            jax.config.jax_default_matmul_precision,
            dict(os.environ),
            np.geterr(),
            warnings.filters[:],
            np.random.get_state()[2],
        )

    def run():
        whole_crosscheck(fun, device="cpu", also=["vmap"])(X)

    before = state()
    if error:
        with pytest.raises(error):
            run()
    else:
        run()
    assert state() == before
    assert jnp.ones(1).dtype == (jnp.float64 if mode else jnp.float32)


def test_missing_device_raises():
    with pytest.raises(errors.DeviceError, match="crosscheck: JAX finds no device of the platform 'tpu'"):
        whole_crosscheck(np.sin, device="tpu")(0.5)


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


def test_to_jax_uses_no_funcgrad_rule():
    assert jax.grad(to_jax(wrong_sin))(0.0) == 1.0
    assert jax.grad(to_jax(jax_misled))(0.0) == 2.0
    assert jax.grad(to_jax(grad(wrong_sin)))(0.5) == pytest.approx(-1.001 * np.sin(0.5))


def test_lifted_value_used_after_run_raises():
    kept = []

    def fun(x):
        kept.append(x)
        return x * 2.0

    assert to_jax(fun)(3.0) == 6.0
    with pytest.raises(errors.EscapedTracerError, match="finished lifted transform"):
        kept[0] * 2.0


# The referee.


def measured(fun, point, direction):
    return Referee(lambda leaves: np.array([fun(*leaves)]), [point]).first_derivative([direction])


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
def test_referee_estimates_its_error(fun, point, slope, method):
    found = measured(fun, point, abs(point))
    assert found.method == method
    off = abs(found.value[0] - slope * abs(point))
    assert off <= found.error[0] + 1e-14 * abs(slope)
    assert found.error[0] < 1e-4
    assert found.jump[0] == 0


@pytest.mark.parametrize(("fun", "jump"), [(np.abs, 2.0), (lambda x: np.maximum(x, 0) + np.exp(x), 1.0)])
def test_referee_finds_kinks(fun, jump):
    np.testing.assert_allclose(measured(fun, 0.0, 1.0).jump, jump, rtol=1e-6)


@pytest.mark.parametrize("fun", [np.floor, np.sqrt, np.sign])
def test_referee_reports_unmeasurable_function(fun):
    found = measured(fun, 0.0, 1.0)
    assert not found.error[0] < 0.1


def test_referee_cost_is_independent_of_dimension():
    counts = []
    for size in (1, 1000):
        calls = []

        def fun(leaves, calls=calls):
            calls.append(None)
            return np.array([np.mean(np.sin(leaves[0]))])

        referee = Referee(fun, [np.linspace(0.5, 1.0, size)])
        direction = [np.ones(size)]
        referee.second_derivative(direction, direction, referee.first_derivative(direction))
        counts.append(len(calls))
    assert max(counts) < 50


def test_extrapolation_without_rows_raises():
    with pytest.raises(ValueError, match="no row"):
        extrapolate(iter(()), (2,))


def test_vjp_of_report_raises():
    with pytest.raises(errors.FuncgradError):
        vjp(crosscheck(np.sin), 1.0)
