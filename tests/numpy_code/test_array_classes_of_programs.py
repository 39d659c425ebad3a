"""Classes that a program derives from ``numpy.ndarray``: their methods, attributes and operators with traced values."""

import numpy as np
import pytest
from helpers import differences

from funcgrad import grad, hessian, jvp, vmap
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


def indices(x):
    out = np.zeros(3)
    out[Signal(x) > 1.0] = x[0]
    return (x[Signal(x).argsort()] * X).sum() + (x[Signal(x) > 1.0] ** 2).sum() + (out**2).sum()


def classes(x):
    s = Signal(x, rate=2.0)
    known = [isinstance(s, np.ndarray), isinstance(s, Signal), isinstance(s, (int, np.ndarray)), isinstance(x, Signal)]
    known += [isinstance(array, np.ndarray) for array in (np.ma.array(x), np.zeros(1, [("a", float)]))]
    return known @ np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]) * (x**2).sum()


PROGRAMS = {
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
        grad(lambda x: np.linalg.norm(Metres(x)))(X)
    with pytest.raises(InputError, match=r"Counted\(x\): a traced value cannot be an instance"):
        grad(lambda x: (x.view(Counted) * 2.0).sum())(X)
