"""Ways to lose a derivative silently: numbers that are formatted as text, and other threads."""

import ast
import configparser
import csv
import decimal
import gzip
import importlib
import io
import json
import logging
import math
import os
import pickle
import pprint
import sys
import tempfile
import threading
import tomllib
import warnings
from decimal import Decimal
from fractions import Fraction
from types import FunctionType

import numpy as np
import pandas as pd
import pytest
import scipy.linalg.lapack

import funcgrad.numpy as fnp
from funcgrad import (
    as_written,
    checkpoint,
    custom_jvp,
    custom_vjp,
    grad,
    hessian,
    jacfwd,
    jvp,
    linearize,
    no_grad,
    vmap,
)
from funcgrad.errors import ConcretizationError, ConversionError, EagerWarning
from funcgrad.interop import jit
from funcgrad.shared_state import pending_refusals

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
    "decimals": lambda x: float(f"{x:.18f}"),
    "decimals of a chosen number": lambda x: float(("{:." + str(18) + "f}").format(x)),
    "percent decimals": lambda x: float("%.18f" % x),  # noqa: UP031
}
CUT = {
    "digits": lambda x: float(f"{x:.3f}"),
    "percent": lambda x: float("%.3f" % x),  # noqa: UP031
    "decimals of a small number": lambda x: float(f"{x * 1e-6 / 3:.18f}"),
    "few decimals": lambda x: float(f"{x:.16f}"),
    "parts": lambda x: float(f"{x:.17g}"[:4]),
    "joined": lambda x: float(f"{x:.17g}" + "e1"),
    "joined before": lambda x: float("1" + f"{x:.17g}"),
    "split": lambda x: float(f"{x:.3f}".split(".")[1]),
    "several": lambda x: float("%.17ge%d" % (x, 1)),  # noqa: UP031
    "array": lambda x: np.array([f"{x:.3f}"], float)[0],
}


def _filled(texts):
    numbers = np.zeros(1)
    numbers[:] = texts
    return numbers.sum()


FORM = "%.3f"


def read(text):
    return float(text)


class Reader:
    def read(self, text):
        return float(text)


def of_own_import(x):
    from decimal import Decimal as Number

    return float(Number(f"{x:.17g}"))


def of_own_module(x):
    import fractions as numbers

    return float(numbers.Fraction(f"{x:.17g}"))


def with_own_import():
    from json import JSONDecoder

    return lambda x: math.sin(x) * JSONDecoder().decode(f"[{x:.17g}]")[0]


READER = Reader()
READERS = {"number": read, "text": str}
JOINED = {
    "function in a table": lambda x: READERS["number"](f"{x:.3f}0"),
    "f-string": lambda x: float(f"{x:.3f}0"),
    "another function": lambda x: read(f"{x:.3f}0"),
    "method": lambda x: READER.read(f"{x:.3f}0"),
    "str.format": lambda x: float("{:.3f}0".format(x)),  # noqa: UP032
    "join": lambda x: float("".join([f"{x:.3f}", "0"])),
    "part": lambda x: float(f"x={x:.4f}"[2:5]),
    "split": lambda x: float(f"{x:.4f} {x:.3f}".split()[1]),
    "complex": lambda x: complex(f"{x:.3f}0").real,
    "numpy": lambda x: np.float64(f"{x:.3f}0"),
    "array": lambda x: np.array(f"{x:.3f} {x:.2f}".split(), dtype=float).sum(),
    "asarray": lambda x: np.asarray([f"{x:.3f}0"], float)[0],
    "fromstring": lambda x: np.fromstring(f"{x:.3f} {x:.2f}", sep=" ").sum(),
    "decimal": lambda x: float(Decimal(f"{x:.17g}")),
    "decimal module": lambda x: float(decimal.Decimal(f"{x:.17g}0")),
    "fraction": lambda x: float(Fraction(f"{x:.17g}")),
    "own import": of_own_import,
    "own module": of_own_module,
    "import around": with_own_import(),
    "json": lambda x: json.loads(f"[{x:.17g}]")[0],
    "literal": lambda x: ast.literal_eval(f"{x:.17g}"),
    "eval": lambda x: eval(f"{x:.17g} + 1"),
    "percent": lambda x: math.sin(x) * float(FORM % x),
    "bytes": lambda x: math.sin(x) * float(f"{x:.3f}".encode()),
    "percent in an array": lambda x: math.sin(x) * np.concatenate([np.array([FORM % x]), ["1.0"]]).astype(float)[0],
    "full": lambda x: math.sin(x) * np.full(2, f"{x:.3f}", dtype=float).sum(),
    "of an array": lambda x: math.sin(x) * float(np.array([f"{x:.3f}"])[0]),
    "written to numbers": lambda x: math.sin(x) * _filled([f"{x:.3f}"]) * _filled(np.array([f"{x:.3f}"])),
    "written": lambda x: _of_written(FORM % x) * math.sin(x),
}


def _of_written(text):
    texts = np.zeros(2, dtype="U8")
    texts[1] = text
    return texts[1:].astype(float).sum()


@pytest.mark.parametrize("name", JOINED)
def test_float_of_joined_texts_raises(name):
    f = JOINED[name]
    for transformed in (grad(f), lambda x: jvp(f, (x,), (1.0,)), grad(lambda x: f(x) * x)):
        for _ in range(2):
            with pytest.raises(ConversionError, match=r"float\(text\): the text shows a traced number"):
                transformed(0.7)


def _new(f):
    """Return ``f`` with new code: nothing is known of the function."""
    return FunctionType(f.__code__.replace(), f.__globals__, f.__name__, f.__defaults__, f.__closure__)


@pytest.mark.parametrize("name", ["join", "decimal", "json", "literal", "eval", "asarray"])
@pytest.mark.parametrize(
    "transform",
    [
        jacfwd,
        hessian,
        lambda f: jacfwd(jacfwd(f)),
        lambda f: jacfwd(grad(f)),
        lambda f: jacfwd(checkpoint(f)),
        lambda f: lambda x: jacfwd(lambda v: f(v[0]))(np.array([x])),
        lambda f: lambda x: linearize(jacfwd(f), x),
    ],
)
def test_first_calls_in_batches_of_tangents_refuse_joined_texts(transform, name):
    f = _new(JOINED[name])
    for fun in (f, _new(lambda x: f(x) * x)):
        with pytest.raises(ConversionError, match=r"float\(text\): "):
            transform(fun)(0.7)


@pytest.mark.parametrize("around", [lambda f: vmap(grad(f)), lambda f: grad(lambda x: fnp.sum(vmap(f)(x)))])
def test_json_in_a_batch_of_equal_numbers_raises(around):
    with pytest.raises(ConversionError, match=r"float\(text\): the text shows a traced number"):
        around(lambda x: json.loads(json.dumps({"a": [x]}))["a"][0] * x)(np.full(2, 0.7))
    assert around(lambda x: json.loads(json.dumps({"a": 2}))["a"] * x)(np.full(2, 0.7)).tolist() == [2.0, 2.0]


def _with_imported_json(x):
    import json as reader

    return reader.loads(f"[{x:.3f}0]")[0]


def _option(x, read=lambda parser: parser.getfloat("a", "v")):
    parser = configparser.ConfigParser()
    parser.read_string(f"[a]\nv = {x:.3f}0")
    return read(parser)


LOOKED_UP = {
    "option": _option,
    "option of a section": lambda x: _option(x, lambda parser: parser["a"].getfloat("v")),
    "decoder": lambda x: json.JSONDecoder().decode(f"[{x:.3f}0]")[0],
    "variable": lambda x: next(read(f"[{x:.3f}0]")[0] for read in (json.loads,)),
    "table": lambda x: {"json": json.loads}["json"](f"[{x:.3f}0]")[0],
    "map": lambda x: sum(map(ast.literal_eval, [f"{x:.3f}0"])),
    "__import__": lambda x: __import__("json").loads(f"[{x:.3f}0]")[0],
    "imported module": _with_imported_json,
    "sys.modules": lambda x: sys.modules["json"].loads(f"[{x:.3f}0]")[0],
    "import_module": lambda x: importlib.import_module("json").loads(f"[{x:.3f}0]")[0],
    "json.dumps": lambda x: json.loads(json.dumps({"a": [float(x)]}))["a"][0],
    "argument by name": lambda x: json.loads(s=f"[{x:.3f}0]")[0],
    "tomllib": lambda x: tomllib.loads(f"x = {x:.3f}0")["x"],
    "csv": lambda x: next(csv.reader([f"{x:.3f}0"], quoting=csv.QUOTE_NONNUMERIC))[0],
    "to_numeric": lambda x: pd.to_numeric(pd.Series([f"{x:.3f}0"]))[0],
    "to_numeric of array": lambda x: pd.to_numeric(np.array([f"{x:.3f}0"]))[0],
    "scalar text": lambda x: np.float64(np.str_(f"{x:.3f}0")),
}


@pytest.mark.parametrize("name", LOOKED_UP)
def test_functions_that_read_numbers_refuse_texts_of_traced_ones_wherever_they_are_looked_up(name):
    for f in (LOOKED_UP[name], lambda x: LOOKED_UP[name](x) * math.sin(x)):
        for _ in range(2):
            with pytest.raises(ConversionError, match=r"float\(text\): the text shows a traced number"):
                grad(f)(0.7)


def _opened(read):
    def of_file(path):
        with path.open() as file:
            return read(file)

    return of_file


def _after_first_line(path):
    with path.open() as file:
        next(file)
        return json.load(file)


def _compressed(path):
    packed = path.with_suffix(".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    os.utime(packed, (path.stat().st_atime, path.stat().st_mtime))
    return np.loadtxt(packed)


def _temporary(path):
    if path.stat().st_mtime == 0:  # the numbers are not those of the run
        return np.loadtxt(path)
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write(path.read_text())
        file.seek(0)
        return np.loadtxt(file)


ON_DISK = {
    "json.load after a line": _after_first_line,
    "loadtxt of compressed file": _compressed,
    "loadtxt of temporary file": _temporary,
    "loadtxt of argument by name": lambda path: np.loadtxt(fname=path),
    "loadtxt": np.loadtxt,
    "loadtxt of open file": _opened(np.loadtxt),
    "genfromtxt": np.genfromtxt,
    "fromfile": lambda path: np.fromfile(path, sep=" "),
    "json.load": _opened(json.load),
    "read_csv": lambda path: pd.read_csv(path, header=None).to_numpy(),
    "read_text": lambda path: float(path.read_text()),
}


@pytest.mark.parametrize("name", ON_DISK)
def test_numbers_read_from_a_file_that_the_function_wrote_raise(name, tmp_path):
    read, path, data = ON_DISK[name], tmp_path / "numbers", tmp_path / "data"
    data.write_text("\n0.700")
    os.utime(data, (0, 0))

    def written(x):
        with path.open("w") as file:
            print(f"\n{x:.3f}", file=file)
        return np.sum(read(path)) * math.sin(x)

    def other(x):
        with path.open("w") as file:
            print(f"\n{x:.3f}", file=file)
        return np.sum(read(data)) * math.sin(x)

    for _ in range(2):
        with pytest.raises(ConversionError, match=r"float\(text\): the text shows a traced number, .*0\.700"):
            grad(written)(0.7)
    if name != "read_text":  # whose text is compared, not the file that it came from
        assert grad(other)(0.7) == pytest.approx(0.7 * math.cos(0.7), rel=1e-15)  # the file is older than the run


def test_pipes_and_own_files_are_read():
    class Own:
        def __init__(self):
            self.text = io.StringIO("[1.5]")

        def read(self, size=-1):
            return self.text.read(size)

        def tell(self):
            return self.text.tell()

        def seek(self, position):
            return self.text.seek(position)

        def seekable(self):
            return True

    def piped():
        to_read, to_write = os.pipe()
        os.write(to_write, b"[1.5]")
        os.close(to_write)
        return os.fdopen(to_read)

    def f(x):
        logged = f"{x:.3f}"
        with piped() as file:
            return math.sin(x) * json.load(file)[0] * json.load(Own())[0] * len(logged)

    assert grad(f)(0.7) == pytest.approx(1.5 * 1.5 * 5 * math.cos(0.7), rel=1e-15)


def test_json_shows_traced_numbers():
    texts = []

    def logs(x):
        texts.append(json.dumps({"x": float(x), "both": [x, (2.0 * x,)], "name": "a"}))
        return math.sin(x) * len(texts[-1])

    assert grad(logs)(0.7) == math.cos(0.7) * len(texts[-1])
    assert json.loads(texts[-1]) == {"x": 0.7, "both": [0.7, [1.4]], "name": "a"}
    stream = io.StringIO()
    assert grad(lambda x: (json.dump(x, stream), x * x)[1])(3.0) == 6.0
    assert stream.getvalue() == "3.0"
    assert vmap(grad(lambda x: (texts.append(json.dumps([x])), x * x)[1]))(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert texts[-1] == '["[1. 2.]"]'
    with pytest.raises(TypeError, match="not JSON serializable"):
        grad(lambda x: (json.dumps({"x": object()}), x)[1])(3.0)


def test_formatting_alone_causes_no_second_run():
    runs = []

    def shows(x):
        runs.append(f"at {x:.3f}")
        return x * x

    def shows_and_reads(x):
        runs.append(f"at {x:.3f}")
        return x * x * float("2.5") * float(str(len(runs) * 0 + 1))

    assert grad(shows)(3.0) == 6.0
    assert runs == ["at 3.000"]
    assert grad(shows_and_reads)(3.0) == 15.0
    assert runs == ["at 3.000"] * 3
    assert grad(lambda x: grad(shows)(x) * x)(3.0) == 12.0


def test_logging_records_print_numbers():
    lines, log = [], logging.Logger("programs")
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    log.addHandler(handler)

    def logs(x):
        slope = math.cos(x)
        log.warning("at %.3f, %d", x, 3)
        return slope

    for _ in range(2):
        assert grad(logs)(0.7) == -math.sin(0.7)
    assert lines == ["at 0.700, 3"] * 2


def test_numbers_are_logged_once_without_errors(capsys):
    log = logging.Logger("programs")
    log.addHandler(logging.StreamHandler(sys.stdout))

    def helper(x):
        log.error("helper: %(x)6.3f", {"x": x})

    def logs(x):
        log.warning("at %.3f, %d", x, 3)
        helper(x)
        return x * x

    for _ in range(2):
        assert grad(logs)(0.5) == 1.0
        assert tuple(capsys.readouterr()) == ("at 0.500, 3\nhelper:  0.500\n", "")
    assert vmap(grad(lambda x: logs(x) * x))(np.array([1.0, 2.0])).tolist() == [3.0, 12.0]
    assert tuple(capsys.readouterr()) == ("at 1.000, 3 | at 2.000, 3\nhelper:  1.000 | helper:  2.000\n", "")


@pytest.mark.parametrize("name", WHOLE)
def test_text_round_trip_keeps_derivative(name):
    f = WHOLE[name]
    assert grad(lambda x: f(x) * x)(0.7) == pytest.approx(1.4)
    assert jvp(f, (0.7,), (1.0,)) == (0.7, 1.0)
    np.testing.assert_allclose(vmap(grad(lambda x: f(x) * x))(np.array([0.7, 0.3])), [1.4, 0.6], rtol=1e-15)
    with as_written(), pytest.raises((ConversionError, ValueError)):
        grad(f)(0.7)


@pytest.mark.parametrize("name", CUT)
def test_float_of_rounded_text_raises(name):
    with pytest.raises(ConversionError, match="float"):
        grad(CUT[name])(0.7)


def test_formatted_tracer_is_a_str():
    texts = []

    def f(x):
        texts.append(f"{x:.3f}")
        assert isinstance(texts[-1], str)
        assert texts[-1] == "0.700"
        assert {"0.700": 1}[texts[-1]] == 1
        assert int(f"{x * 10:.0f}") == 7
        return x * 1.0

    assert grad(f)(0.7) == 1.0
    assert grad(lambda x: float(no_grad(lambda x: f"{x:.2f}")(x)) * x)(0.7) == 0.7  # the text of a constant
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
def test_traced_values_in_started_threads():
    for _ in range(2):
        assert grad(by_list)(0.7) == pytest.approx(math.cos(0.7))
        assert grad(by_class)(0.7) == pytest.approx(1.4)
        assert jvp(by_list, (0.7,), (1.0,))[1] == pytest.approx(math.cos(0.7))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_derivative_lost_in_thread_raises():
    def buried(x):
        found = {}

        def work():
            array = np.zeros(2)
            array[0] = x * x
            found["sum"] = array.sum()

        started(work)
        return found.get("sum", 0.0)

    for transformed in (grad(buried), lambda x: jvp(buried, (x,), (1.0,))[1]):
        with as_written(), pytest.raises(ConversionError, match="This thread does not run the transform"):
            transformed(0.7)
        assert transformed(0.7) == pytest.approx(1.4)
    with as_written(), pytest.raises(ConversionError):
        grad(by_list)(0.7)
    assert grad(lambda x: x * 2.0)(1.0) == 2.0  # no state is left


def first_or_one(x):
    try:
        return float(x[0])
    except TypeError:
        return 1.0


@pytest.mark.parametrize("early", [True, False], ids=["before", "after"])
def test_caught_refusal_around_inner_transform(early):
    def f(x):
        c = first_or_one(x) if early else None
        slope = grad(lambda y: fnp.sum(y * y))(x)
        return fnp.sum(slope) * (c if early else first_or_one(x))

    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(grad(f)(x), [2 * (x.sum() + x[0]), 2 * x[0]], rtol=1e-14)


def first_or_none(x):
    try:
        return float(x[0])
    except TypeError:
        return 1.0


@custom_vjp
def squares(x):
    return np.sum(x) * x[0]


def squares_forward(x):
    return np.sum(x) * first_or_none(x), x


def squares_backward(x, ct):
    return (ct * (x * 0 + first_or_none(x)) + ct * np.array([np.sum(x), 0.0]),)


squares.defvjp(squares_forward, squares_backward)


@custom_jvp
def product(x):
    return np.sum(x) * x[0]


product.defjvp(
    lambda primals, tangents: (
        product(*primals),
        np.sum(tangents[0]) * first_or_none(primals[0]) + np.sum(primals[0]) * tangents[0][0],
    )
)


@custom_jvp
def by_argument(x, y):
    return x[0] * y


by_argument.defjvps(lambda t, ans, x, y: t[0] * y, lambda t, ans, x, y: t * first_or_none(x))


@pytest.mark.parametrize("f", [squares, product, lambda x: by_argument(x, np.sum(x))], ids=["vjp", "jvp", "jvps"])
def test_rules_are_rebuilt(f):
    x = np.array([2.0, 3.0])
    for fun in (f, lambda x: f(x) * 1.0):
        for _ in range(2):
            assert grad(fun)(x).tolist() == [7.0, 2.0]
            assert hessian(fun)(x).tolist() == [[2.0, 1.0], [1.0, 0.0]]


def test_interrupt_after_refusal_leaves_no_state():
    def f(x):
        try:
            return float(x)
        except TypeError:
            raise KeyboardInterrupt from None

    with pytest.raises(KeyboardInterrupt):
        grad(f)(1.0)
    assert not pending_refusals


def test_stale_refusal_does_not_affect_next_run():
    seen = []

    def f(x):
        seen.append(type(x))
        return x * x

    pending_refusals[threading.get_ident()] = "float(x): refused"
    assert grad(f)(3.0) == 6.0
    assert len(seen) == 1  # the function was not run again
    assert not pending_refusals


ARRAYS = {
    "astype": lambda x: np.array([f"{x:.3f}", "2.0"]).astype(float).sum(),
    "asarray": lambda x: np.asarray([f"{x:.3f}0"]).astype(np.float64)[0],
    "str": lambda x: np.array([str(x)]).astype(float)[0],
    "bytes": lambda x: np.array([f"{x:.3f}".encode()]).astype(float)[0],
}


@pytest.mark.parametrize("name", ARRAYS)
def test_array_of_texts_as_numbers_raises(name):
    f = ARRAYS[name]
    for transformed in (grad(f), lambda x: jvp(f, (x,), (1.0,)), grad(lambda x: f(x) * x + math.sin(x))):
        for _ in range(2):
            with pytest.raises(ConversionError, match=r"float\(text\): the text shows a traced number"):
                transformed(0.7)
        with as_written(), pytest.raises((ConversionError, ValueError)):
            transformed(0.7)


def test_arrays_of_plain_texts_work():
    def f(x):
        shown = f"{x:.2f}"
        assert len(shown) == 4
        return math.sin(x) * np.array(["1.5", "2"]).astype(float)[0] * np.array([b"2"]).astype(float)[0]

    def compared(x):
        kinds = np.array(["a", "b", "a"])
        return math.sin(x) * np.sum(kinds == "a") + x * np.sum(kinds != np.array(["a", "b", "c"]))

    for _ in range(2):
        assert grad(f)(0.0) == 3.0
        assert grad(compared)(0.0) == 3.0


def caught(x):
    try:
        return scipy.linalg.lapack.dgetrf(x * np.eye(2))[0].sum()
    except TypeError:
        return 7.0


def caught_beside(x):
    try:
        return scipy.linalg.lapack.dgetrf(x * np.eye(2))[0].sum()
    except TypeError:
        return 7.0 * x


def test_constant_result_after_refusal_raises():
    for _ in range(2):
        with pytest.raises(ConversionError, match="its result has no derivative"):
            grad(caught)(0.7)
        with pytest.raises(ConversionError, match="its result has no derivative"):
            jvp(caught, (0.7,), (1.0,))
        with pytest.raises(ConversionError, match="returned a different number"):
            grad(caught_beside)(0.7)
    assert grad(lambda x: 2.0 if x > 0 else math.sin(x))(0.7) == 0.0


def test_comparing_texts_of_batch_raises():
    """Each example has a different text, so `==` would take a branch that is right for none of them."""
    f = lambda x: 2.0 * x if f"{x:.1f}" == "0.1" else 3.0 * x
    g = lambda x: 2.0 * x if f"{x:.1f}" != "0.1" else 3.0 * x
    assert grad(f)(0.1) == 2.0
    for fun in (f, g):
        for run in (vmap(fun), vmap(grad(fun))):
            with pytest.raises(ConcretizationError, match=r"text [!=]= other.*Compare the numbers"):
                run(np.array([0.1, 0.2]))
    texts = []
    vmap(lambda x: texts.append(f"{x:.1f}") or x)(np.array([0.1, 0.2]))
    assert texts == ["[0.1 0.2]"]  # after the run


@pytest.mark.parametrize(
    "factor",
    [
        lambda x: len(str(int(x))),
        lambda x: len(f"{float(x):.17g}".split(".")[0]),
        lambda x: {"1": 2.0}.get(str(round(x)), 3.0),
        lambda x: 2.0 if str(int(x)) in {"1", "2"} else 3.0,
        lambda x: sum(digit == "1" for digit in str(int(x))),
        lambda x: 2.0 if "." in str(x) else 3.0,
        lambda x: 2.0 if str(x) < "2" else 3.0,
        lambda x: 2.0 if f"{x}".startswith("1") else 3.0,
        lambda x: f"{x}".find("."),
        lambda x: f"{x}".count("1"),
        lambda x: 2.0 if str(int(x)).isdigit() else 3.0,
    ],
)
def test_reading_texts_of_batch_raises(factor):
    """In a batch there is no one text; a recorded program would keep the text of its first number."""
    f = lambda x: x * factor(x)
    assert grad(f)(1.5) == factor(1.5)
    assert grad(f)(10.25) == factor(10.25)
    for run in (vmap(f), vmap(grad(f))):
        with pytest.raises(ConcretizationError, match=r"one text was asked for, got .* all examples of a vmap"):
            run(np.array([1.5, 10.25]))
    for plain in (f, grad(f)):
        recorded = jit(plain, backend="numpy")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EagerWarning)  # not from ``int(x)``, which is checked in later runs
            assert [recorded(x) for x in (1.5, 10.25, 1.5)] == [plain(x) for x in (1.5, 10.25, 1.5)]


def by_label(x):
    label = f"rate {x:.0f}"
    return x * (2.0 if label == "rate 1" else 3.0)


JOINED_TEXTS = [
    by_label,
    lambda x: x * {"k1": 2.0, "k10": 5.0}.get(f"k{x:.0f}", 7.0),
    lambda x: x * (2.0 if "".join([f"{x:.0f}"]) == "1" else 3.0),
    lambda x: x * (2.0 if "k{:.0f}".format(x) == "k1" else 3.0),  # noqa: UP032
    lambda x: x * (2.0 if "k%s" % f"a{x:.0f}" == "ka1" else 3.0),  # noqa: UP031
    lambda x: x * (2.0 if f"{x:.0f}".title().encode() == b"1" else 3.0),
    lambda x: x * (2.0 if f"{x:.0f}" == f"{x * x:.0f}" else 3.0),
    lambda x: x * (2.0 if json.dumps([x]) == "[1.0]" else 3.0),
]


@pytest.mark.parametrize("f", JOINED_TEXTS)
def test_texts_joined_with_others(f):
    """Check texts that Python joins: in a batch an error, not one branch for all; so for later runs of a program."""
    for plain in (f, grad(f)):
        with pytest.raises(ConcretizationError, match="one text was asked for"):
            vmap(plain)(np.array([1.0, 10.0]))
        recorded = jit(plain, backend="numpy")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EagerWarning)
            assert [recorded(x) for x in (1.0, 10.0, 1.0)] == [plain(x) for x in (1.0, 10.0, 1.0)]


def test_joined_texts_print_once(capsys):
    def shows(x):
        print(f"x = {x}", "and so on")
        logging.getLogger("funcgrad.tests").info(f"x is {x}")
        return x * x

    def keeps(x):
        text = f"x = {x}"
        return x * x, text.upper()

    assert vmap(shows)(np.array([1.0, 2.0])).tolist() == [1.0, 4.0]
    assert capsys.readouterr().out == "x = [1. 2.] and so on\n"
    texts = []
    vmap(lambda x: (texts.append(keeps(x)[1]), x)[1])(np.array([1.0, 2.0]))
    assert texts[-1] == "X = [1. 2.]"


def test_text_of_batch_prints():
    """Nothing that shows a text asks for its length, key or parts; `pprint` asks for those of a `repr`."""

    def shows(x):
        pprint.pprint({"x": [x]}, stream=io.StringIO())
        text = f"{x:.1f}"
        print(text, file=out)
        logging.getLogger("funcgrad.tests").error(text)
        out.write("%s|%10s|" % (text, text) + "-".join([text, text]) + text.center(12))  # noqa: UP031
        return x

    out = io.StringIO()
    vmap(shows)(np.array([1.5, 10.25]))
    assert out.getvalue() == "[1.5 10.2]\n[1.5 10.2]|[1.5 10.2]|[1.5 10.2]-[1.5 10.2] [1.5 10.2] "


def test_texts_that_show_no_number_any_more_are_refused():
    def f(x):
        try:
            return x * float(str(x) + "abc")
        except ValueError:
            return x

    with pytest.raises(ConversionError, match="the text shows a traced number"):
        grad(f)(0.5)
    assert grad(lambda x: x * float((str(x) + "abc").rstrip("abc")))(0.5) == 1.0


def test_warnings_show_the_numbers_of_all_examples():
    def f(x):
        y = math.sin(x)
        warnings.warn(f"got {y:.2f}", RuntimeWarning, stacklevel=1)
        warnings.warn(UserWarning("now {:.1f}".format(x)), stacklevel=1)  # noqa: UP032
        return y * x

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        slope = vmap(grad(f))(np.array([0.5, 1.5]))
        line = sys._getframe().f_lineno
        recorded = jit(f, backend="numpy")(0.5)
    np.testing.assert_allclose(slope, np.sin([0.5, 1.5]) + np.array([0.5, 1.5]) * np.cos([0.5, 1.5]), rtol=1e-14)
    assert recorded == pytest.approx(0.5 * math.sin(0.5))
    texts = [str(one.message) for one in found]
    assert texts[:2] == ["got [0.48 1.00]", "now [0.5 1.5]"]
    assert not any(issubclass(one.category, EagerWarning) for one in found)
    assert all(one.filename == __file__ and one.lineno < line for one in found)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert float(jit(grad(f))(0.5)) == pytest.approx(slope[0])
    assert len(found) == 2
