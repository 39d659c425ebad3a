"""Classes that a program derives from ``numpy.ndarray``: their methods, attributes and operators with traced values."""

import abc
import math
from array import array

import numpy as np
import pytest
import scipy.special
from helpers import differences
from numpy import ndarray

from funcgrad import as_written, grad, hessian, jvp, vmap
from funcgrad.errors import ConversionError, InputError

X = np.array([0.7, 1.4, 2.3])


class Signal(np.ndarray):
    """Array with an attribute, as NumPy's documentation defines one."""

    def __new__(cls, data, rate=1.0):
        obj = np.asarray(data).view(cls)
        obj.rate = rate
        return obj

    def __array_finalize__(self, obj):
        if obj is None:
            return
        self.rate = getattr(obj, "rate", None)

    @property
    def duration(self):
        return len(self) / self.rate

    def power(self):
        return (self**2).mean() * self.rate

    @classmethod
    def wave(cls, x, n=4):
        return cls(np.sin(x * np.arange(n)), rate=float(x))


class Stereo(Signal):
    def __new__(cls, data, rate=1.0, gain=2.0):
        obj = super().__new__(cls, data, rate)
        obj.gain = gain
        return obj

    def __array_finalize__(self, obj):
        super().__array_finalize__(obj)
        self.gain = getattr(obj, "gain", 1.0)

    def power(self):
        return super().power() * self.gain


class Filled(np.ndarray):
    def __new__(cls, shape, dtype=float, buffer=None, info=None):
        obj = super().__new__(cls, shape, dtype, buffer)
        obj.info = info
        return obj


class Point(np.ndarray):
    def __new__(cls, x, y, z):
        return np.array([x, y, z], dtype=float).view(cls)

    x = property(lambda self: self[0])

    @property
    def length(self):
        return np.linalg.norm(self)

    def cross(self, other):
        return np.cross(self, other).view(Point)

    def unit(self):
        return self / self.length


class Counted(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        found = getattr(ufunc, method)(*[np.asarray(x) for x in inputs], **kwargs)
        return found + 1.0 if ufunc is np.multiply else found


class Info(np.ndarray):
    """Array with `__array_ufunc__` as NumPy's documentation defines it."""

    def __array_finalize__(self, obj):
        self.info = getattr(obj, "info", None)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        args = [x.view(np.ndarray) if isinstance(x, Info) else x for x in inputs]
        if out:
            kwargs["out"] = tuple(x.view(np.ndarray) if isinstance(x, Info) else x for x in out)
        results = super().__array_ufunc__(ufunc, method, *args, **kwargs)
        if results is NotImplemented:
            return NotImplemented
        outputs = out or (None,) * ufunc.nout
        results = (results,) if ufunc.nout == 1 else results
        made = tuple(
            np.asarray(found).view(Info) if given is None else given
            for found, given in zip(results, outputs, strict=True)
        )
        made[0].info = sum(isinstance(x, Info) for x in inputs)
        return made[0] if len(made) == 1 else made


RULES = {}


def implements(ufunc):
    return lambda fun: RULES.setdefault(ufunc, fun)


class Length(np.ndarray):
    """Array with a power of a unit, with rules for some ufuncs."""

    def __new__(cls, data, power=1):
        made = np.asarray(data, dtype=float).view(cls)
        made.power = power
        return made

    def __array_finalize__(self, obj):
        self.power = getattr(obj, "power", 1)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        kwargs.pop("out", None)
        powers, plain = [getattr(x, "power", 0) for x in inputs], [np.asarray(x) for x in inputs]
        if ufunc in RULES:
            power = RULES[ufunc](powers)
        elif ufunc in (np.add, np.subtract, np.maximum):
            if len(set(powers)) > 1:
                raise TypeError("other units")
            power = powers[0]
        elif ufunc is np.less:
            return ufunc(*plain)
        else:
            return NotImplemented
        return Length(getattr(ufunc, method)(*plain, **kwargs), power)


implements(np.multiply)(sum)
implements(np.true_divide)(lambda powers: powers[0] - sum(powers[1:]))
implements(np.square)(lambda powers: 2 * powers[0])
implements(np.sqrt)(lambda powers: powers[0] / 2)


class Doubled(np.ndarray):
    def __array_wrap__(self, array, context=None, return_scalar=False):
        made = super().__array_wrap__(array, context, return_scalar)
        return made * 2.0 if context is not None and context[0] is np.exp else made


class Raised(np.ndarray):
    """Array whose ufuncs return one more than NumPy's, also those that write their result to an array."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if "out" in options:
            options["out"] = tuple(map(np.asarray, options["out"]))
        found = getattr(ufunc, method)(*map(np.asarray, inputs), **options)
        return found if found is None else np.asarray(found) + 1.0


def methods_of_ufuncs_of_its_own(x):
    r, total, part, written, alone = (x * 1.0).view(Raised), np.zeros(3), np.zeros(2), np.zeros(3), np.zeros(3)
    np.add.accumulate(r, out=total)
    np.add.reduceat(r, [0, 1], out=(part,))
    np.multiply(r, x, out=written)
    np.sin(r, out=alone, where=[True, False, True])
    np.add.at(r, [0, 0], x[:2])
    outer = np.multiply.outer(r, x)[0] + np.add.accumulate(r) * np.add.reduceat(r, [0, 1])[1] + np.add.reduce(r)
    return (total * x).sum() * part[1] + (written * alone) @ x + outer @ np.add(r, r, where=True)


class Metres(np.ndarray):
    """Array whose operators check and compute themselves."""

    def __new__(cls, data):
        return np.asarray(data, dtype=float).view(cls)

    def __add__(self, other):
        if not isinstance(other, Metres):
            raise TypeError("metres add to metres only")
        return super().__add__(other)

    def __mul__(self, other):
        return np.multiply(np.asarray(self), other) * 100.0

    def __getitem__(self, key):
        found = super().__getitem__(key)
        return found * 2.0 if isinstance(key, int) else found


NOISE = Signal(np.array([0.1, 0.2, 0.4]), rate=3.0)


def views_share_memory(x):
    s = Signal(np.zeros(3), rate=2.0)
    part = s[1:]
    part[0] = x[0]
    s[2] = x[1] * x[2]
    s += x
    other = s
    other *= 2.0
    return s.power() + part.sum() * part.rate + s.view(np.ndarray) @ x


def methods(x):
    s = Signal(x, rate=x[0])
    t = s.reshape(3, 1).T.copy()
    assert isinstance(t, Signal)
    assert type(s * 2.0) is Signal
    return s.std() * s.max() + np.mean(s, axis=0) * s.duration + t.rate * t.dot(x).sum() + s.tolist()[1] + s.item(2)


def functions(x):
    s = Signal(x, rate=2.0)
    made = [np.exp(s), np.maximum(s, 1.0), np.sum(s * x), abs(-s), np.cumsum(s), s @ np.eye(3), 2.0**s, x * s]
    return sum(part.sum() * part.rate for part in made) + float(np.concatenate([s, s]).sum()) + np.dot(s, s)


def written_ufuncs(x):
    a = Info((3,), buffer=x * 1.0)
    b = a
    a *= 2.0
    a += x
    a[0] = 3.0 * x[1]
    return (b.view(np.ndarray) ** 3).sum() * (a * b).info


def units(x):
    a, b = Length(x), Length(x[::-1])
    area = a * b + b**2
    assert (area.power, np.sqrt(area).sum().power) == (2, 1)
    try:
        return float((a + area).sum())
    except TypeError:
        found = np.asarray(2.0 * area / x).sum() + float(area.mean()) * float(a.std()) + x[a < 2.0].sum()
    try:
        return np.asarray(np.sin(a)).sum()
    except TypeError:
        return found * float(np.maximum(a, b)[1:].max())


def indices(x):
    out = np.zeros(3)
    out[Signal(x) > 1.0] = x[0]
    return (x[Signal(x).argsort()] * X).sum() + (x[Signal(x) > 1.0] ** 2).sum() + (out**2).sum()


def classes(x):
    s = Signal(x, rate=2.0)
    known = [isinstance(s, np.ndarray), isinstance(s, Signal), isinstance(s, (int, np.ndarray)), isinstance(x, Signal)]
    known += [isinstance(array, np.ndarray) for array in (np.ma.array(x), np.zeros(1, [("a", float)]))]
    return known @ np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]) * (x**2).sum()


class Image(Signal):
    """Array with a higher priority than others of its kind, that converts to numbers in its own way."""

    __array_priority__ = 5.0

    def __float__(self):
        return 2.0 * super().__float__()

    def __int__(self):
        return 3 + super().__int__()

    def __complex__(self):
        return 1j * super().__complex__()


class Tagged(Signal):
    """Array that computes NumPy's functions as ``ndarray`` does."""

    def __array_function__(self, func, types, args, kwargs):
        found = super().__array_function__(func, types, args, kwargs)
        if type(found) is Tagged:
            found.rate = 7.0
        return found


class Sized:
    """Object with functions of its own."""

    def __array_function__(self, func, types, args, kwargs):
        return 4.0


class Shifted(np.ndarray):
    def __new__(cls, x):
        return super().__new__(cls, 2, float, x, 8)


class Total:
    """Object whose operators come before those of arrays of a lower priority."""

    __array_priority__ = 10.0

    def __init__(self, x):
        self.x = x

    def __radd__(self, other):
        return np.asarray(other).sum() * self.x


def written_by_ufuncs(x):
    """Results of ufuncs and their methods that are written to an array of a class: plain arguments too."""
    a, b = Signal(np.zeros(3), rate=2.0), Signal(np.ones(3), rate=3.0)
    assert np.multiply(x, 2.0, out=a) is a
    np.add(a, x, b, where=x > 1.0)
    whole, rest = np.modf(x * 1.3, out=(None, Signal(np.zeros(3))))
    assert type(whole) is np.ndarray
    np.divmod(Signal(x), 0.6, out=(rest, None))
    rows = Signal(np.zeros((3, 3)), rate=5.0)
    np.multiply.outer(x, x, out=rows)
    np.add.reduce(rows, axis=1, out=rest)
    np.add.accumulate(rest, out=rest)
    info = np.zeros(3).view(Info)
    np.multiply(x, x, out=info)
    return (a * a).sum() * a.rate + (b**2).sum() * b.rate + (rest * x).sum() + rows.power() + (info**2).info


def written_by_functions(x):
    """Results of functions that are written to an array of a class."""
    a, square = Signal(np.zeros(3), rate=2.0), np.outer(x, x)
    np.sum(square, axis=0, out=a)
    np.cumsum(a * x, out=a)
    np.clip(a, 0.5, 30.0, out=a)
    square.mean(axis=0, out=a)
    np.copyto(a, x[1], where=[True, False, False])
    np.put(a, [1], x[:1] ** 2)
    rows = Signal(np.zeros((3, 3)), rate=5.0)
    np.fill_diagonal(rows, x)
    np.put_along_axis(rows, np.array([[1], [2], [0]]), a[:, None], axis=1)
    np.place(rows, rows == 0.0, x**2)
    np.putmask(rows, rows > 5.0, 2.0 * rows)
    return (a * a).sum() * a.rate + rows.power()


def sums_by_ufuncs_of_its_own(x):
    a, b = np.zeros(3).view(Info), np.zeros(()).view(Info)
    x.view(Info).cumsum(out=a)
    (x.view(Info) * a).sum(out=b)
    return np.asarray(a * b).sum() * (a * b).info


def rearranged(x):
    """Functions of NumPy that return an array of the class of their argument."""
    s = Signal(np.outer(x, x[:2]), rate=3.0)
    made = [np.flip(s), np.fliplr(s), np.rot90(s), np.moveaxis(s, 0, 1), np.expand_dims(s, 0), np.atleast_3d(s)]
    made += np.atleast_1d(s, Signal(x[0], rate=2.0), x)[:2]
    first, *_ = np.atleast_1d(x, s)
    assert type(first) is type(np.copy(s)) is np.ndarray
    assert (np.size(s), np.size(s, 1)) == (6, 2)
    made += [np.flipud(s) * x[:, None], np.copy(s, subok=True), np.ptp(s, axis=0)]
    return sum((part**2).sum() * part.rate for part in made) + (np.copy(s) ** 3).sum() + np.ptp(s)


def numbers(x):
    """Arrays without axes as numbers."""
    s = Signal(x[0], rate=2.0)
    found = int(s * 3) * s + float(s) + abs(complex(s) * 2j) + np.float64(s) ** 2 + math.sin(s)
    t = x[2:].view(Image).reshape(())
    found += (
        int(t) * float(t)
        + (complex(t) ** 2).real
        + np.float64(t) * t.view(np.ndarray)
        + np.int64(t) * np.complex128(t).real
    )
    place, constant = Signal(np.array(1)), Signal(np.array([2.0, 3.0]))
    assert (repr(constant), str(constant), f"{constant[0]:.1f}") == ("Signal([2., 3.])", "[2. 3.]", "2.0")
    assert (f"{s:.2f}", f"{constant}") == (f"{x[0]:.2f}", "[2. 3.]")
    assert 3.0 in constant
    assert 4.0 not in constant
    return found * [1.0, x[1]][place] + sum(v**3 for v in Signal(x)) + sum(row.rate for row in Signal(x[:, None], x[0]))


def operators(x):
    s = Signal(x, rate=2.0)
    quotient, rest = divmod(s, 0.6)
    (count,), (more,) = divmod(9.0, s[:1])
    shifted = (Signal(np.array([1, 2, 4])) << 1) >> Signal(np.array([0, 1, 0]))
    image = [part.rate for part in (s * x.view(Image), x.view(Image) * s, np.add(s, x.view(Image)))]
    assert image == [None] * 3
    found = (quotient * rest).sum() * rest.rate + count * more + (shifted * s).power()
    found += (s + Total(x[1])) + s.view().power() + float(s.view(type=Image).power()) * x[0]
    return found + float(x.view(Image)[:1].sum())


def set_attributes(x):
    s = Signal(np.outer(x, x) + 0j, rate=2.0)
    s.shape = (9,)
    s.imag = np.sin(s.real)
    return (abs(s) ** 2).power()


def functions_of_numpy(x):
    """Functions that a class computes by NumPy's ``__array_function__``."""
    t = Tagged(x, rate=2.0)
    made = [np.inner(t, np.eye(3)), np.dot(t, np.eye(3)), np.sort(t), np.empty_like(t) * 0.0 + t]
    assert [type(part) for part in made] == [Tagged] * 4
    assert type(np.concatenate([t, x])) is np.ndarray
    made += [np.linspace(t, x**2, 3), np.kron(t, x), np.angle(t + 1j)]
    assert [type(part) for part in made[4:6]] == [Tagged] * 2
    assert np.concatenate([t, Sized()]) == 4.0
    return sum((part**2).sum() * part.rate for part in made)


def written_statistics(x):
    """Write the mean, the variance and the deviation of an array that computes by ufuncs of its own."""
    table = np.outer(x, x).view(Info)
    means, variances, deviations = (np.zeros(3).view(Info) for _ in range(3))
    np.mean(table, axis=0, out=means)
    table.var(0, None, variances, 1)
    table.std(axis=1, out=deviations)
    about = np.asarray(np.var(table, axis=0, mean=np.ones((1, 3))))
    return np.asarray(means) @ np.asarray(variances) + (np.asarray(deviations) ** 2).sum() + about.sum()


PROGRAMS = {
    "written_statistics": written_statistics,
    "written_by_ufuncs": written_by_ufuncs,
    "written_by_functions": written_by_functions,
    "sums_by_ufuncs_of_its_own": sums_by_ufuncs_of_its_own,
    "rearranged": rearranged,
    "numbers": numbers,
    "operators": operators,
    "set_attributes": set_attributes,
    "functions_of_numpy": functions_of_numpy,
    "mixed_classes": lambda x: float((x.view(Doubled) * Length(x)).sum()) * (Length(x) * x.view(Doubled)).power * x[0],
    "ufuncs_of_its_own": lambda x: (
        np.asarray(np.sin(x.view(Info)) * 2.0 + x.view(Info)).sum() * (x.view(Info) * x.view(Info)).info
        + np.asarray(x.view(Info).cumsum()).prod()
        + float(np.mean(x.view(Info)))
    ),
    "written_by_ufuncs_of_its_own": written_ufuncs,
    "methods_of_ufuncs_of_its_own": methods_of_ufuncs_of_its_own,
    "units": units,
    "changed_results_of_ufuncs": lambda x: (
        (x.view(Counted) * 2.0).sum() + x.view(Counted).var() + np.asarray(x.view(Counted).std(ddof=1)) * x[0]
    ),
    "wrapped_results_of_ufuncs": lambda x: (np.exp(x.view(Doubled)) * np.asarray(x.view(Doubled) ** 2)).sum(),
    "indices": indices,
    "classes": classes,
    "numbers_in_place_of_nan": lambda x: (np.nan_to_num(Signal(x)) ** 2).sum() + np.nan_to_num([x[0], np.nan]).sum(),
    "attributes": lambda x: (Signal(x, rate=4.0) * 2.0 + 1.0).power() + Signal(x, rate=x[0])[1:].power(),
    "methods": methods,
    "functions": functions,
    "class_methods": lambda x: Signal.wave(x[0]).power() + Signal.wave(x[1]).duration,
    "derived_classes": lambda x: Stereo(x, rate=x[0], gain=x[1])[:2].power() + Signal(Stereo(x)).power(),
    "views_share_memory": views_share_memory,
    "made_by_new": lambda x: (Filled((2,), float, x, info=x[2]) ** 2).sum() + Filled(3, buffer=x, info=x[1]).info,
    "empty_and_written": lambda x: (lambda f: (f.__setitem__(slice(None), x), (f**3).sum())[1])(Filled((3,))),
    "points": lambda x: float(Point(*x).unit().cross(Point(1, 0, 2)).x + Point(*x).length * (Point(*x) - x[0]).x),
    "operators_of_its_own": lambda x: np.sum((Metres(x) + Metres(x**2)) * 2.0) + Metres(x)[1] * x[0],
    "made_outside": lambda x: (NOISE * x).power() + (x - NOISE).power() + NOISE.power() * x[0],
}


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # on plain arrays, since NumPy 2.5
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f = PROGRAMS[name]
    found = grad(f)(X)
    np.testing.assert_allclose(found, differences(lambda x: float(f(x)), X, 2e-4), rtol=1e-8, atol=1e-8)
    assert jvp(f, (X,), (X,)) == pytest.approx((float(f(X)), found @ X), rel=1e-12)
    np.testing.assert_allclose(hessian(f)(X), differences(grad(f), X, 2e-4), rtol=1e-7, atol=1e-7)
    batch = np.stack([X, X + 0.001])
    np.testing.assert_allclose(vmap(grad(f))(batch), [grad(f)(x) for x in batch], rtol=1e-12)


def test_functions_that_do_not_know_the_class_of_the_array():
    assert jvp(lambda x: Signal(x) * x, (X,), (X,))[1].tolist() == (2.0 * X**2).tolist()
    with pytest.raises(ConversionError, match=r"Metres: this function of NumPy would lose .* numpy\.asarray\(x\)"):
        grad(lambda x: scipy.special.logsumexp(Metres(x)))(X)
    np.testing.assert_allclose(grad(lambda x: np.linalg.norm(Metres(x)))(X), X / np.linalg.norm(X), rtol=1e-12)
    with pytest.raises(InputError, match=r"Metres: a transform returns arrays and numbers, .* Return numpy\.asarray"):
        grad(lambda x: Metres(x) + Metres(x))(X)
    with pytest.raises(ConversionError, match=r"Shifted: traced values .* got offset or strides"):
        grad(lambda x: Shifted(x).sum())(X)
    with pytest.raises(
        ConversionError, match=r"Counted: x\.round\(\) calls __array_ufunc__ .* Write it with operators"
    ):
        grad(lambda x: np.asarray(x.view(Counted).round()).sum())(X)


class Transform(np.ndarray):
    """Matrix whose product is that of matrices, as in packages of geometry; NumPy's functions keep the class."""

    def __mul__(self, other):
        return np.dot(self, other) if isinstance(other, Transform) else np.multiply(np.asarray(self), other)


FUNCTIONS_OF_CLASSES = {
    "dot": lambda m: m * m,
    "dot of vectors": lambda m: np.dot(m[0], m[1]) * m,
    "inv": lambda m: np.linalg.inv(m) * m.T * m,
    "solve": lambda m: np.linalg.solve(m, m.T) * m,
    "solve for a plain array": lambda m: np.linalg.solve(m, np.ones((2, 2))) * m,
    "det": lambda m: np.linalg.det(m) * m,
    "eigh": lambda m: np.linalg.eigh(m * m.T).eigenvalues * m,
    "svd": lambda m: (lambda u, s, vh: (u * vh) * s)(*np.linalg.svd(m)),
    "qr": lambda m: np.linalg.qr(m)[0] * np.linalg.qr(m, mode="r"),
    "einsum": lambda m: np.einsum("ij,jk", m, m) * m,
    "cross": lambda m: np.cross(m, [1.0, 2.0, 0.5]) * m[0, 0],
    "fft": lambda m: np.fft.fft(m).real * m,
    "transpose": lambda m: np.transpose(m) * m,
    "stack": lambda m: np.stack([m, m])[0] * m,
}


@pytest.mark.parametrize("name", FUNCTIONS_OF_CLASSES)
def test_functions_of_arrays_with_a_product_of_their_own(name):
    columns = np.ones((2, 3)) if name == "cross" else np.eye(2)

    def f(x):
        found = FUNCTIONS_OF_CLASSES[name]((np.array([[x[0], x[1]], [x[1] * x[2], x[2]]]) @ columns).view(Transform))
        return np.sum(np.asarray(found) * np.arange(found.size).reshape(found.shape))

    np.testing.assert_allclose(grad(f)(X), differences(f, X, 2e-4), rtol=1e-8, atol=1e-8)


class Watched(np.ndarray, Total):
    """Array with a second base class, whose methods call those of ndarray through the class."""

    __rsub__ = np.ndarray.__rsub__

    def __new__(cls, data):
        made = np.atleast_1d(np.require(data, dtype=float)).view(cls)
        super(Watched, made).__init__(made.size)
        return made

    def __add__(self, other):
        return np.ndarray.__add__(self, other) * 2.0

    def __setitem__(self, key, value):
        self.latest = np.ndarray.sum(value * np.ones(2))
        np.ndarray.__setitem__(self, key, value)


def test_methods_called_through_ndarray():
    def f(x):
        w = Watched(x * 1.0)
        w[1] = x[0] ** 2
        found = np.asarray(w + x) + np.asarray(x - w) * w.x + np.asarray(Watched(3.0))
        return np.ndarray.__mul__(found, x).sum() * w.latest + np.ndarray.max(x)

    assert f(X).shape == ()
    np.testing.assert_allclose(grad(f)(X), differences(f, X, 2e-4), rtol=1e-8)


class Column(np.ndarray):
    """View of an array, the argument of a function, in a shape that the class sets."""

    def __new__(cls, data):
        made = data.view(cls)
        made.shape = (-1, 1)
        return made


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # on plain arrays, since NumPy 2.5
def test_shape_of_a_view_of_an_argument():
    f = lambda x: (np.asarray(Column(x)) * x).sum() + Column(2.0 * x)[0, 0] * len(x.shape)
    np.testing.assert_allclose(grad(f)(X), differences(f, X, 2e-4), rtol=1e-8)


class Unit:
    """Unit whose products are arrays that compiled code makes."""

    def __rmul__(self, other):
        try:
            return array("d", [other])
        except TypeError:
            return NotImplemented


def test_operators_of_other_objects_that_swallow_a_refusal():
    with pytest.raises(ConversionError, match=r"converting a traced value to a plain one would lose the derivative"):
        grad(lambda x: (x[0] * Unit())[0])(X)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize(
    "made",
    [Metres, lambda x: np.asmatrix(x)[0], lambda x: np.ma.masked_greater(x, 2.0), lambda x: x.flat],
    ids=["own class", "matrix", "masked array", "flat"],
)
def test_write_of_an_array_object_to_an_array(made):
    def f(x):
        found = np.zeros((2, 3))
        found[1] = made(x * x)
        return (found * np.arange(6.0).reshape(2, 3)).sum()

    want = 2.0 * X * [3.0, 4.0, 5.0]
    assert f(X) == pytest.approx((X**2) @ [3.0, 4.0, 5.0])
    np.testing.assert_allclose(grad(f)(X), want, rtol=1e-12)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([X, 2 * X])), [want, 2 * want], rtol=1e-12)
    np.testing.assert_allclose(hessian(f)(X), np.diag([6.0, 8.0, 10.0]), rtol=1e-12)


class Scaled:
    """Mixin for arrays."""

    factor = 2.0

    def scaled(self, x):
        return self * (math.sin(x) * self.factor)


class WithMixin(Scaled, abc.ABC, np.ndarray):
    """Array whose other bases are classes of Python."""

    def __new__(cls, data):
        return np.asarray(data).view(cls)


def test_arrays_with_mixins():
    constant = WithMixin([1.0, 2.0])
    assert grad(lambda x: constant.scaled(x).sum())(0.0) == 6.0
    assert grad(lambda x: WithMixin([x, 2.0]).scaled(x).sum())(0.0) == 4.0
    assert grad(lambda x: WithMixin([x]).sum() * isinstance(constant, Scaled) + float(x))(0.0) == 2.0


class Sampled(np.ndarray):
    """Class that names ``ndarray`` where it could call ``super()``."""

    def __new__(cls, data, rate=1.0):
        made = np.ndarray.__new__(cls, (len(data),))
        made[:] = np.stack(data)
        made.rate = rate
        return made

    def __array_finalize__(self, source):
        np.ndarray.__array_finalize__(self, source)
        self.rate = getattr(source, "rate", None)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return ndarray.__array_wrap__(self, array, context, return_scalar)

    def __setitem__(self, index, value):
        ndarray.__setitem__(self, index, value * 2.0)

    def dot(self, other):
        return self.rate * np.ndarray.dot(self, other)


def test_methods_of_ndarray_called_by_name():
    def f(x):
        a = np.exp(Sampled([x, 2.0 * x], rate=3.0))
        return a.dot(np.ones(2)) * len(np.ndarray.__name__)

    assert f(0.3) == pytest.approx(21.0 * (math.exp(0.6) + math.exp(1.2)), rel=1e-14)
    assert grad(f)(0.3) == pytest.approx(21.0 * (2.0 * math.exp(0.6) + 4.0 * math.exp(1.2)), rel=1e-12)
    assert hessian(f)(0.3) == pytest.approx(21.0 * (4.0 * math.exp(0.6) + 16.0 * math.exp(1.2)), rel=1e-12)


@pytest.mark.counts  # it writes to an array that a call has made
def test_methods_of_ndarray_called_by_name_with_traced_values():
    def f(x):
        a = np.ndarray(3)
        a[:] = 1.0
        a[1] = x * x
        return np.ndarray.dot(a, a) + sum(map(np.ndarray.sum, [np.array([x, x]), np.ones(2)]))

    assert grad(f)(0.5) == pytest.approx(4.0 * 0.5**3 + 2.0, rel=1e-12)
    np.testing.assert_allclose(vmap(f)(np.array([0.5, 2.0])), [f(0.5), f(2.0)], rtol=1e-14)


OUTSIDE = Signal([1.0, 2.0, 3.0], rate=3.0)


@pytest.mark.parametrize(
    "product", [lambda x: OUTSIDE * x, lambda x: x * OUTSIDE, lambda x: np.multiply(OUTSIDE, x)], ids=["l", "r", "u"]
)
def test_program_asks_whether_a_result_has_an_attribute_of_the_class(product):
    f = lambda x: (lambda y: y.sum() * getattr(y, "rate", 1.0) + (x if hasattr(y, "rate") else 0.0))(product(x))
    assert (f(1.0), grad(f)(1.0), jvp(f, (1.0,), (1.0,))[1]) == (19.0, 19.0, 19.0)
    np.testing.assert_array_equal(vmap(grad(f))(np.array([1.0, 2.0])), [19.0, 19.0])
    with as_written(), pytest.raises(ConversionError, match="derived from ndarray, which the result for a traced"):
        grad(f)(1.0)
