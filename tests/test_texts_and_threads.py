"""Ways on which a derivative might get lost without a word: numbers that go through texts, and other threads."""

import json
import math
import pickle
import threading

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import as_written, grad, jvp, no_grad, vmap
from funcgrad.errors import ConversionError
from funcgrad.interop import jit
from funcgrad.numpy.concretization import refused

WHOLE = {
    "f-string": lambda x: float(f"{x}"),
    "digits": lambda x: float(f"{x:.17g}"),
    "exponent": lambda x: float(f"{x:.16e}"),
    "format": lambda x: float(format(x, ".17g")),
    "str.format": lambda x: float("{:.17g}".format(x)),  # noqa: UP032
    "str": lambda x: float(str(x)),
    "percent": lambda x: float("%.17g" % x),  # noqa: UP031
    "percent s": lambda x: float("%s" % x),  # noqa: UP031
    "stripped": lambda x: float(format(x, ">30.17g").strip()),
    "numpy": lambda x: np.float64(f"{x:.17g}"),
    "computed": lambda x: float(f"{x * 1.0:.17g}"),
}
CUT = {
    "digits": lambda x: float(f"{x:.3f}"),
    "percent": lambda x: float("%.3f" % x),  # noqa: UP031
    "parts": lambda x: float(f"{x:.17g}"[:4]),
    "joined": lambda x: float(f"{x:.17g}" + "e1"),
    "joined before": lambda x: float("1" + f"{x:.17g}"),
    "split": lambda x: float(f"{x:.3f}".split(".")[1]),
    "several": lambda x: float("%.17ge%d" % (x, 1)),  # noqa: UP031
    "array": lambda x: np.array([f"{x:.3f}"], float)[0],
}


@pytest.mark.parametrize("name", WHOLE)
def test_numbers_go_through_texts(name):
    f = WHOLE[name]
    assert grad(lambda x: f(x) * x)(0.7) == pytest.approx(1.4)
    assert jvp(f, (0.7,), (1.0,)) == (0.7, 1.0)
    with as_written(), pytest.raises((ConversionError, ValueError)):
        grad(f)(0.7)


@pytest.mark.parametrize("name", CUT)
def test_texts_without_all_digits_are_refused(name):
    with pytest.raises(ConversionError, match="float"):
        grad(CUT[name])(0.7)


def test_texts_are_texts():
    texts = []

    def f(x):
        texts.append(f"{x:.3f}")
        assert isinstance(texts[-1], str)
        assert texts[-1] == "0.700"
        assert {"0.700": 1}[texts[-1]] == 1
        assert float(no_grad(lambda x: f"{x:.2f}")(x)) == 0.7
        assert int(f"{x * 10:.0f}") == 7
        return x * 1.0

    assert grad(f)(0.7) == 1.0
    assert float(texts[0]) == 0.7  # the run is over
    assert pickle.loads(pickle.dumps(texts)) == ["0.700"]
    assert json.dumps(texts) == '["0.700"]'
    assert type(str.__str__(texts[0])) is str
    assert vmap(grad(lambda x: float(f"{x}") * x))(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert jit(grad(lambda x: float(f"{x}") * x), backend="numpy")(3.0) == 6.0


def started(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def by_list(x):
    out = [0.0]

    def work():
        out[0] = math.sin(x)

    started(work)
    return out[0]


class Work(threading.Thread):
    def __init__(self, x):
        super().__init__()
        self.x, self.found = x, 0.0

    def run(self):
        self.found = float(self.x) ** 2


def by_class(x):
    work = Work(x)
    work.start()
    work.join()
    return work.found


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_threads_that_functions_start():
    for _ in range(2):
        assert grad(by_list)(0.7) == pytest.approx(math.cos(0.7))
        assert grad(by_class)(0.7) == pytest.approx(1.4)
        assert jvp(by_list, (0.7,), (1.0,))[1] == pytest.approx(math.cos(0.7))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_threads_lose_is_refused():
    def buried(x):
        found = {}

        def work():
            array = np.zeros(2)
            array[0] = x
            found["sum"] = array.sum()

        started(work)
        return found.get("sum", 0.0)

    for transformed in (grad(buried), lambda x: jvp(buried, (x,), (1.0,))):
        with pytest.raises(ConversionError, match="This thread is not the one that runs the transform"):
            transformed(0.7)
    with as_written(), pytest.raises(ConversionError):
        grad(by_list)(0.7)
    assert grad(lambda x: x * 2.0)(1.0) == 2.0  # nothing is left behind


def first_or_one(x):
    try:
        return float(x[0])
    except TypeError:
        return 1.0


@pytest.mark.parametrize("early", [True, False], ids=["before", "after"])
def test_a_refusal_that_is_caught_around_another_transform_is_the_functions_own(early):
    def f(x):
        c = first_or_one(x) if early else None
        slope = grad(lambda y: fnp.sum(y * y))(x)
        return fnp.sum(slope) * (c if early else first_or_one(x))

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(grad(f)(x), [2 * (x.sum() + x[0]), 2 * x[0]], rtol=1e-14)


def test_an_interrupt_after_a_refusal_leaves_nothing_behind():
    def f(x):
        try:
            return float(x)
        except TypeError:
            raise KeyboardInterrupt from None

    with pytest.raises(KeyboardInterrupt):
        grad(f)(1.0)
    assert not refused


def test_what_an_interrupt_left_is_no_business_of_the_next_function():
    seen = []

    def f(x):
        seen.append(type(x))
        return x * x

    refused[threading.get_ident()] = None
    assert grad(f)(3.0) == 6.0
    assert len(seen) == 1  # it was not run again
    assert not refused
