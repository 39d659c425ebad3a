# ruff: noqa: UP031
"""Printing a traced value: the text under each transform, and the error where a value cannot be shown."""

import io
import math
import sys

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import grad, jvp, linearize, trace, vjp, vmap
from funcgrad.errors import ConcretizationError
from funcgrad.interop import jit

X = 0.51234
ONE = {
    "grad": lambda f: grad(f)(X),
    "vjp": lambda f: vjp(f, X),
    "jvp": lambda f: jvp(f, (X,), (1.0,)),
    "linearize": lambda f: linearize(f, X),
    "trace": lambda f: trace(f)(X),
    "grad of grad": lambda f: grad(grad(f))(X),
}
BATCH = {
    "vmap": lambda f: vmap(f)(np.array([X, 0.7])),
    "vmap of grad": lambda f: vmap(grad(f))(np.array([X, 0.7])),
    "grad of vmap": lambda f: grad(lambda x: fnp.sum(vmap(f)(x)))(np.array([X, 0.7])),
}
COMPILED = {"jit": lambda f: jit(f)(X), "jit of grad": lambda f: jit(grad(f))(X)}
WITH_SPEC = {
    "f-string": lambda x: f"{x:.3f}",
    "format": lambda x: format(x, ".3f"),
    "str.format": lambda x: "{:.3f}".format(x),  # noqa: UP032
}
WITHOUT_SPEC = {
    "str": str,
    "f-string": lambda x: f"{x}",
    "%s": lambda x: "%s" % x,
    "format": format,
    "str.format": lambda x: "{}".format(x),  # noqa: UP032
    "print": lambda x: "".join(printed(x)),
}
DESCRIBING = {"repr": repr, "f-string": lambda x: f"{x!r}", "%r": lambda x: "%r" % x, "list": lambda x: str([x])}


def shown_text(run, show):
    texts = []

    def fun(x):
        texts.append(show(x))
        return x * 1.0

    run(fun)
    return texts[0]


def printed(x):
    with io.StringIO() as out:
        print(x, end="", file=out)
        return [out.getvalue()]


@pytest.mark.parametrize("run", ONE)
@pytest.mark.parametrize("show", WITHOUT_SPEC.values(), ids=WITHOUT_SPEC)
def test_numbers_and_arrays_print_as_plain_values(run, show):
    assert shown_text(ONE[run], show) == show(X)
    assert shown_text(ONE[run], lambda x: show(round(x * 10, 1) * np.ones((2, 3)))) == show(np.full((2, 3), 5.1))
    assert shown_text(ONE[run], lambda x: show(x + 1j)) == show(X + 1j)
    assert len(shown_text(ONE[run], lambda x: show(x * np.ones(10_000)))) < 200


@pytest.mark.parametrize("run", BATCH)
@pytest.mark.parametrize("show", WITHOUT_SPEC.values(), ids=WITHOUT_SPEC)
def test_batch_prints_all_numbers(run, show):
    assert shown_text(BATCH[run], show) == "[0.51234 0.7    ]"


@pytest.mark.parametrize("run", ONE)
def test_one_number_with_format_spec(run):
    for show in WITH_SPEC.values():
        assert shown_text(ONE[run], show) == "0.512"
    assert shown_text(ONE[run], lambda x: f"{x:>8.1e}") == " 5.1e-01"
    assert shown_text(ONE[run], lambda x: f"{x * 10:.0f}") == "5"
    assert float(shown_text(ONE[run], lambda x: str(float(f"{round(x, 2):.2f}")))) == 0.51


@pytest.mark.parametrize("show", WITH_SPEC)
@pytest.mark.parametrize("run", BATCH)
def test_format_spec_applies_to_all_examples(run, show):
    assert shown_text(BATCH[run], WITH_SPEC[show]) == "[0.512 0.700]"


def test_many_examples_and_batches_of_batches():
    shown = shown_text(lambda f: vmap(f)(np.linspace(0.0, 1.0, 1_000)), lambda x: f"{x:.2f}")
    assert shown == "[0.00 0.00 ... 1.00 1.00]"
    assert shown_text(lambda f: vmap(vmap(f))(np.eye(2)), lambda x: f"{x:.0f}") == "[[1 0]\n [0 1]]"
    assert shown_text(lambda f: vmap(f)(np.array([1, 20])), lambda x: f"{x:3d}") == "[  1  20]"


@pytest.mark.parametrize("run", {**ONE, **BATCH, **COMPILED})
@pytest.mark.parametrize("show", DESCRIBING)
def test_repr_describes_the_tracer(run, show):
    assert "Tracer(" in shown_text({**ONE, **BATCH, **COMPILED}[run], DESCRIBING[show])


def test_percent_r_describes_the_tracer_in_rebuilt_code():
    texts = []

    def fun(x):
        texts.append("%r, %r" % (x, 2.0 * x))
        texts.append("%r %.2f" % (1, x))
        return math.sin(x)

    grad(fun)(0.5)
    assert texts[-2].count("Tracer(") == 2
    assert texts[-1] == "1 0.50"


@pytest.mark.parametrize("run", COMPILED)
@pytest.mark.parametrize("show", [*WITHOUT_SPEC.values(), *WITH_SPEC.values(), lambda x: "%.3f" % x])
def test_abstract_value_shows_dtype_and_shape(run, show):
    assert shown_text(COMPILED[run], show) == "float64[]"


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("run", {**ONE, **BATCH})
@pytest.mark.parametrize("show", [lambda x: "%.3f" % x, lambda x: "%5.1f" % float(x), lambda x: "%d" % int(x)])
def test_percent_format_raises(run, show):
    remedy = r"to print it, f'\{x:\.3f\}' \(not '%\.3f' % x\)"
    if sys.version_info >= (3, 15):  # Python replaces the error of ``"%.3f" % x``, and with it the notes
        remedy = r"[tT]o print it, (write )?f'\{x:\.3f\}'"
    with pytest.raises(ConcretizationError, match=rf"(?s)^(float|int)\(x\): .* {remedy}"):
        shown_text({**ONE, **BATCH}[run], show)


@pytest.mark.parametrize("run", [grad, vmap])
def test_array_with_format_spec_raises_as_numpy(run):
    with pytest.raises(TypeError, match=r"unsupported format string passed to numpy\.ndarray"):
        run(lambda x: fnp.sum(x) if f"{x:.3f}" else x)(np.ones((2, 2)))
