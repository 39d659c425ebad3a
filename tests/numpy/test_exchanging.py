"""Programs that exchange or reorder parts of an array in place behave as on ndarrays, or are refused.

Rows are views, so a program that exchanges rows one by one duplicates some of them, in NumPy too. NumPy's ``shuffle``
handles ndarrays correctly, and other objects in this wrong way. No program intends that, so it is always refused.
"""

import operator
import random

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import check_grads, jvp, vjp, vmap
from funcgrad.errors import ConcretizationError, InputError

X = np.arange(8.0).reshape(4, 2) + 1.25


def rows(x):
    x[0], x[1] = x[1], x[0]


def fancy_rows(x):
    x[[0, 1]] = x[[1, 0]]


def fancy_columns(x):
    x[:, [0, 1]] = x[:, [1, 0]]


def columns(x):
    x[:, 0], x[:, 1] = x[:, 1], x[:, 0]


def elements(x):
    x[0, 0], x[1, 1] = x[1, 1], x[0, 0]


def by_a_view(x):
    first = x[0]
    x[0] = x[1]
    x[1] = first


def by_a_copy(x):
    first = x[0].copy()
    x[0] = x[1]
    x[1] = first


def through_a_buffer(x):
    buffer = np.empty_like(x[0])
    for i in range(3, 0, -1):
        buffer[...] = x[i // 2]
        x[i // 2] = x[i]
        x[i] = buffer


def python_shuffle(x):
    random.Random(0).shuffle(x)


def shuffled_list(x):
    listed = [row.copy() for row in x]
    np.random.default_rng(0).shuffle(listed)
    for i in range(4):
        x[i] = listed[i]


def sample(x):
    x[...] = np.stack(random.Random(0).sample([row.copy() for row in x], 4))


def unpacked(x):
    a, b, _, _ = x
    a[:], b[:] = b, a


def in_a_loop(x):
    for row in x:
        row *= 2


def reversed_in_place(x):
    x[::-1] = x


def shifted(x):
    x[1:] = x[:-1]


def shifted_back(x):
    x[:-1] = x[1:]


def added(x):
    x[1:] += x[:-1]


def transposed(x):
    x[:2] = x[:2].T


def rolled(x):
    x[:] = np.roll(x, 1, axis=0)


def put(x):
    np.put(x, [0, 1], x.ravel()[[1, 0]])


def copied_to(x):
    np.copyto(x[0:2], x[1:3])


def out(x):
    np.add(x[1:], x[:-1], out=x[1:])


def taken(x):
    np.take(x, [1, 0, 3, 2], axis=0, out=x, mode="clip")


def sorted_in_place(x):
    x[::-1].sort(axis=0)


def flat(x):
    x.flat[0], x.flat[1] = x.flat[1], x.flat[0]


def with_operator(x):
    operator.setitem(x, 0, x[1])
    x.__setitem__(2, x[3])


def shuffle_of_an_axis(x):
    column = x[:, 0]
    np.random.default_rng(0).shuffle(column)


def shuffle_of_numbers(x):
    random.Random(0).shuffle(x[:, 0])


def there_and_back(x):
    x[0] = x[-1]
    x[-1] = x[0]


def by_a_view_that_has_changed(x):
    first = x[0]
    x[0] = x[1]
    x[0] *= 2
    x[1] = first


def by_a_view_that_was_written_to(x):
    first = x[0]
    x[0] = x[1]
    first[0] = 5.0
    x[1] = first


def three_in_turn(x):
    x[0], x[1], x[2] = x[1], x[2], x[0]


FINE = [
    fancy_rows, fancy_columns, elements, by_a_copy, through_a_buffer, shuffled_list, sample, shuffle_of_numbers,
    there_and_back, by_a_view_that_has_changed, by_a_view_that_was_written_to, three_in_turn, unpacked,
    in_a_loop, reversed_in_place, shifted, shifted_back, added, transposed, rolled, put, copied_to, out, taken,
    sorted_in_place, flat, with_operator, shuffle_of_an_axis,
]  # fmt: skip
MADE = {
    "result": lambda x: x * 1.0,
    "copy": lambda x: np.copy(x),
    "zeros": lambda x: filled(fnp.zeros((4, 2)), x),
    "array": lambda x: fnp.array(x),
    "view": lambda x: (x * 1.0)[::1],
}
REFUSED = {
    "rows": rows,
    "columns": columns,
    "by a view": by_a_view,
    "random.shuffle": python_shuffle,
    "rows by code without a source": lambda x: exec("x[0], x[1] = x[1], x[0]", {"x": x}),
    "rows of a view": lambda x: rows(x[1:]),
    "Generator.shuffle": lambda x: np.random.default_rng(0).shuffle(x),
    "a name of it": lambda x: shuffle_by_name(x, np.random.default_rng(0).shuffle),
    "map of it": lambda x: list(map(np.random.default_rng(0).shuffle, [x])),
    "RandomState.shuffle": lambda x: np.random.RandomState(0).shuffle(x),
    "numpy.random.shuffle": lambda x: np.random.shuffle(x),
    "permuted": lambda x: np.random.default_rng(0).permuted(x, axis=0, out=x),
    "permutation": lambda x: np.random.default_rng(0).permutation(x),
}


def filled(buffer, x):
    buffer[...] = x
    return buffer


def shuffle_by_name(x, exchange):
    exchange(x)


@pytest.mark.filterwarnings("ignore:you are shuffling:UserWarning")
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("change", FINE, ids=lambda f: f.__name__)
def test_exchanges_match_numpy(change, made):
    def fun(x):
        y = MADE[made](x)
        change(y)
        return y

    want = X.copy()
    change(want)
    np.testing.assert_array_equal(vjp(fun, X)[0], want)
    np.testing.assert_array_equal(jvp(fun, (X,), (X,))[0], want)
    np.testing.assert_array_equal(vmap(fun)(np.stack([X, X + 1]))[0], want)
    check_grads(fun, (X,), order=1)


@pytest.mark.usefixtures("written")
@pytest.mark.filterwarnings("ignore:you are shuffling:UserWarning")
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("name", REFUSED)
def test_exchange_of_rows_raises(name, made):
    def fun(x):
        y = MADE[made](x)
        REFUSED[name](y)
        return y

    for call in (lambda: vjp(fun, X), lambda: jvp(fun, (X,), (X,)), lambda: vmap(fun)(np.stack([X, X]))):
        with pytest.raises((InputError, ConcretizationError), match=r"rng\.permutation|numpy\.asarray"):
            call()


@pytest.mark.filterwarnings("ignore:you are shuffling:UserWarning")
def test_shuffle_of_buffer_rows_raises():
    def fun(x):
        order = fnp.arange(8.0).reshape(4, 2)
        np.random.default_rng(0).shuffle(order)
        return x * order

    with pytest.raises(InputError, match=r"^shuffle\(x\), or x\[i\], x\[j\]"):
        vjp(fun, X)
