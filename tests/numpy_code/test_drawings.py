"""Functions that draw or write files: the library gets plain numbers, and the derivative is that without it."""

import io
from types import ModuleType

import numpy as np
import pytest

from funcgrad import checkpoint, grad, hessian, jvp, stop_gradient, value_and_grad, vmap
from funcgrad.errors import ConcretizationError, ConversionError, NotDifferentiableError
from funcgrad.interop import from_numpy, jit

LIBRARY = """
import numpy as np


class Axes:
    def __init__(self):
        self.lines, self.title = [], ""

    def plot(self, x, y, **styles):
        self.lines.append(Line(np.asarray(x, float), np.asarray(y, float), **styles))
        return (self.lines[-1],)

    def hist(self, x):
        return np.histogram(np.asarray(x))

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return 7

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.title = "closed"


class Line:
    def __init__(self, x, y, width=1.0, label=""):
        assert all(type(part) is np.ndarray for part in (x, y)) and type(label) is str
        self.x, self.y, self.width = x, y, float(width)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, at):
        return self.y[at]

    def __iter__(self):
        return iter(self.y)


def grid(rows, columns):
    made = np.empty((rows, columns), object)
    for at in np.ndindex(rows, columns):
        made[at] = Axes()
    return made


current = Axes()


def gca():
    return current
"""
TIMES = np.linspace(0.0, 1.0, 5)


lib = ModuleType("matplotlib.fake")
exec(LIBRARY, vars(lib))
Axes, gca, outer = lib.Axes, lib.gca, lib.Axes()


def plain(x):
    y = np.sin(x * TIMES)
    return np.sum(y**2)


def of_function(x):
    gca().plot(TIMES, np.sin(x * TIMES), label=f"{x:.2f}")
    return plain(x)


def of_class(x):
    made = Axes()
    made.plot(TIMES, np.sin(x * TIMES), width=x)
    assert isinstance(made, Axes)
    return plain(x)


def of_grid(x):
    axes = lib.grid(2, 2)
    for ax in axes.flat:
        (line,) = ax.plot(TIMES, np.sin(x * TIMES))
        line.width = 2 * x
    assert axes[0, 1].lines[0].width == 2 * x
    return plain(x)


def of_closure(x):
    with outer as ax:
        ax.plot([x, 2 * x], (0.0, x))
    assert outer.title == "closed"
    return plain(x)


def of_questions(x):
    ax = Axes()
    line = ax.plot(TIMES, np.sin(x * TIMES))[0]
    answers = [{ax: 1}[ax], ax != Axes(), len(line), bool(ax), hasattr(ax, "lines"), hasattr(ax, "bars")]
    assert answers == [1, True, 5, True, True, False]
    assert line[1] == list(line)[1]
    assert "lines" in dir(ax)
    assert repr(ax) == str(ax)
    return plain(x)


class Model:
    def __init__(self):
        self.ax = Axes()

    def loss(self, x):
        self.draw(np.sin(x * TIMES))
        return plain(x)

    def draw(self, y):
        self.ax.plot(TIMES, y)


PROGRAMS = {
    "function": of_function,
    "class": of_class,
    "grid": of_grid,
    "closure": of_closure,
    "questions": of_questions,
    "method": Model().loss,
}


@pytest.mark.filterwarnings("ignore::funcgrad.errors.EagerWarning")  # pictures outside change in each call
@pytest.mark.parametrize("name", PROGRAMS)
def test_drawing_leaves_the_derivative_as_it_is(name):
    f, x = PROGRAMS[name], 1.3
    assert grad(f)(x) == grad(plain)(x)
    assert jvp(f, (x,), (1.0,)) == jvp(plain, (x,), (1.0,))
    assert hessian(f)(x) == hessian(plain)(x)
    assert grad(checkpoint(f))(x) == grad(plain)(x)
    assert grad(from_numpy(f))(x) == grad(plain)(x)
    assert jit(grad(f), backend="numpy")(x) == grad(plain)(x)


def test_the_picture_shows_the_numbers():
    ax = Axes()

    def f(x):
        ax.plot(TIMES, np.sin(x * TIMES))
        return plain(x)

    f(1.3)
    grad(f)(1.3)
    first, *others = [line.y for line in ax.lines]
    assert others
    assert all(np.array_equal(first, y) for y in others)


def test_a_function_returns_what_it_drew():
    def f(x):
        ax = Axes()
        ax.plot(TIMES, np.sin(x * TIMES))
        return plain(x), {"picture": ax}

    (_, aux), _ = value_and_grad(f, has_aux=True)(1.3)
    assert type(aux["picture"]) is Axes


def test_numbers_that_come_back_refuse_their_derivative():
    def edge(x):
        return Axes().hist(x * TIMES)[1][-1] * x

    with pytest.raises(NotDifferentiableError, match="a number that a library for pictures computed"):
        grad(edge)(2.0)
    value, tangent = jvp(edge, (2.0,), (1.0,))
    assert value == 4.0
    assert np.isnan(tangent)
    unused = lambda x: Axes().hist(x * TIMES)[1].size * x
    assert grad(unused)(2.0) == jvp(unused, (2.0,), (1.0,))[1] == 11.0
    np.testing.assert_array_equal(vmap(grad(unused))(np.array([2.0, 2.0])), [11.0, 11.0])
    assert grad(lambda x: Axes().hist(stop_gradient(x) * TIMES)[1][-1] * x)(2.0) == 2.0


def test_classes_of_a_program_may_derive_from_one_that_draws():
    def f(x):
        class Own(Axes):
            def both(self, y):
                self.plot(y, y)
                return self.plot(TIMES, y)

        own = Own()
        own.both(TIMES)
        Axes().plot(TIMES, np.sin(x * TIMES))
        assert issubclass(Own, Axes)
        assert isinstance(own, Axes)
        return plain(x) * len(own.lines)

    assert grad(f)(1.3) == 2 * grad(plain)(1.3)


def test_a_picture_shows_one_example():
    with pytest.raises(ConcretizationError, match="a drawing of x: it takes the numbers of one example, got float64"):
        vmap(of_function)(np.array([1.0, 2.0]))
    with pytest.raises(ConcretizationError, match="or that jit has not computed"):
        jit(of_closure)(1.0)
    same = np.array([1.3, 1.3])
    np.testing.assert_array_equal(vmap(grad(of_closure))(same), vmap(grad(plain))(same))


def saved(write):
    def f(x, path):
        write(path, np.sin(x * TIMES))
        return plain(x)

    return f


WRITTEN = {
    "savetxt by names": (lambda path, y: np.savetxt(fname=path, X=y), lambda path: np.loadtxt(fname=path)),
    "save": (np.save, lambda path: np.load(f"{path}.npy")),
    "savetxt": (np.savetxt, np.loadtxt),
    "savez": (lambda path, y: np.savez(path, y=y), lambda path: np.load(f"{path}.npz")["y"]),
    "savez_compressed": (np.savez_compressed, lambda path: np.load(f"{path}.npz")["arr_0"]),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_files_get_the_numbers(name, tmp_path):
    write, read = WRITTEN[name]
    path = str(tmp_path / "numbers")
    assert grad(saved(write))(1.3, path) == grad(plain)(1.3)
    np.testing.assert_array_equal(read(path), np.sin(1.3 * TIMES))
    assert jvp(lambda x: saved(write)(x, path), (1.3,), (1.0,)) == jvp(plain, (1.3,), (1.0,))


@pytest.mark.parametrize("name", WRITTEN)
def test_a_function_does_not_read_the_numbers_that_it_wrote(name, tmp_path):
    write, read = WRITTEN[name]
    path = str(tmp_path / "numbers")
    with pytest.raises(ConversionError, match="the function wrote traced values to this file"):
        grad(lambda x: saved(write)(x, path) + np.sum(read(path)))(1.3)
    saved(write)(1.0, path)
    assert grad(lambda x: x * np.sum(read(path)))(1.3) == np.sum(np.sin(TIMES))  # which another call wrote


def test_files_in_memory_and_open_files(tmp_path):
    def in_memory(x):
        file = io.BytesIO()
        np.save(file, np.sin(x * TIMES))
        file.seek(0)
        return np.sum(np.load(file))

    def opened(x):
        with (tmp_path / "numbers").open("wb") as file:
            np.save(file, np.sin(x * TIMES))
        with (tmp_path / "numbers").open("rb") as file:
            return np.sum(np.load(file))

    for f in (in_memory, opened):
        with pytest.raises(ConversionError, match="the function wrote traced values to this file"):
            grad(f)(1.3)


def test_a_file_holds_one_example(tmp_path):
    f = lambda x: saved(np.save)(x, str(tmp_path / "numbers"))
    with pytest.raises(ConcretizationError, match=r"numpy.save\(file, x\): it takes the numbers of one example"):
        vmap(f)(np.array([1.0, 2.0]))
