"""Parts ``x[mask]`` of unknown length, in batches and in compiled programs, against runs for each example."""

import numpy as np
import pytest
import scipy.special
from helpers import close

import funcgrad.numpy as fnp
import funcgrad.scipy.special
from funcgrad import grad, hessian, jit, jvp, vmap
from funcgrad.errors import ConcretizationError, InputError, StagingError

X = np.array([[0.5, -1.0, 2.0, 0.3], [0.7, -0.4, 1.3, 0.2], [-0.4, 1.1, -1.9, -0.2], [0.45, -0.9, 1.8, 0.27]])


def added(x):
    return x[x > 0].sum()


def written(x):
    y, m = np.zeros_like(x), x > 0
    y[m] = np.sqrt(x[m])
    return y.sum()


def written_by_other_mask(x):
    y = x.copy()
    y[y > 0] = x[x > 0] ** 2
    return y.sum()


def scaled_in_place(x):
    y = x.copy()
    y[y < 0] *= 0.1
    return (y**2).sum()


def added_in_place(x):
    y = x * 2
    m = y > 1
    y[m] += x[m] ** 2
    return y.sum()


def statistics(x):
    part = x[x > -0.95]
    return np.mean(part) + part.std() * np.var(part, ddof=1) + np.ptp(part) + np.average(part, weights=np.exp(part))


def extremes(x):
    return np.max(x[x < 1.5]) * x[x > 0].min() - np.amax(np.abs(x[x < 0]))


def products(x):
    m = x > 0
    return np.dot(x[m], x[m] * 2) + x[m] @ x[m] + np.prod(x[m]) + np.linalg.norm(x[m])


def lengths(x):
    part = x[x > 0]
    return x[0] * part.size + x[1] * len(part) + part.shape[0] + np.count_nonzero(part > 0.4) + part.ndim


def both_signs(x):
    m = x > 0
    return np.log(x[m]).sum() + np.exp(x[~m]).sum() - np.log1p(-x[(x < 1) & (x < 0.6)]).mean()


def narrowed(x):
    part = x[x > -0.9]
    part = part[part > 0.25]
    return part.sum() + part[0] * part[-1]


def changed_and_written_back(x):
    y = x.copy()
    m = y > 0
    part = y[m]
    part *= 2
    part[part > 1] = 0.5
    part[part < 0.5] = part[part < 0.5] ** 2
    y[m] = part
    return (y**2).sum()


def limited(x):
    return np.clip(x[x > 0], 0.4, 1.5).sum() + np.where(x[x > 0] > 0.4, x[x > 0], 0.1).sum()


def positions(x):
    y, i = np.zeros(4), np.nonzero(x > 0)[0]
    y[i] = np.sqrt(x[i]) * i
    return y.sum() + x[i[0]] * i.mean() + x[np.where(x < 0)].sum()


def positions_written(x):
    y = x * 1.0
    y[np.flatnonzero(y < 0)] = 0.0
    return (y**2).sum()


def constant_table(x):
    return (np.arange(4.0)[x > 0] * x[0]).sum()


def rows(x):
    A, m = np.outer(x, np.arange(1.0, 4.0)), x > 0
    return (
        (A[m] * np.array([1.0, 2.0, 3.0])).sum(axis=0).prod()
        + A[m].mean(axis=1).sum()
        + A[m, 1].sum()
        + A[m][:, 2].max()
        + (A[m] @ np.ones(3)).sum()
    )


def matrix(x):
    A = np.outer(x, x)
    B, m = np.zeros((4, 4)), A > 0
    B[m] = np.sqrt(A[m])
    i, j = np.nonzero(A < 0)
    return B.sum() + (A[i, j] * i).sum() + A[A < 0].min()


def other_operands(x):
    return (np.exp(-x[x > 0] * x[1]) / x[3]).sum() + (x[2] - x[x < 0]).sum() + scipy.special.erf(x[x > 0]).sum()


PROGRAMS = [
    added,
    written,
    written_by_other_mask,
    scaled_in_place,
    added_in_place,
    statistics,
    extremes,
    products,
    lengths,
    both_signs,
    narrowed,
    changed_and_written_back,
    limited,
    positions,
    positions_written,
    constant_table,
    rows,
    matrix,
    other_operands,
]


@pytest.mark.parametrize("fun", PROGRAMS)
def test_batches_equal_single_examples(fun):
    close(vmap(fun)(X), np.array([fun(x) for x in X]))
    close(vmap(grad(fun))(X), np.array([grad(fun)(x) for x in X]), rtol=1e-11)
    close(vmap(hessian(fun))(X), np.array([hessian(fun)(x) for x in X]), rtol=1e-10, atol=1e-12)
    push = lambda x: jvp(fun, (x,), (np.cos(np.arange(4.0)),))[1]
    close(vmap(push)(X), np.array([push(x) for x in X]), rtol=1e-11)


@pytest.mark.parametrize("fun", PROGRAMS)
def test_compiled_programs_equal_plain_runs(fun):
    run, slope, outside = jit(fun), jit(grad(fun)), grad(jit(fun))
    for x in X[[0, 2]]:
        close(run(x), fun(x), rtol=1e-10)
        close(slope(x), grad(fun)(x), rtol=1e-9, atol=1e-12)
        close(outside(x), grad(fun)(x), rtol=1e-9, atol=1e-12)


def test_functions_of_funcgrad_take_selections():
    def fun(x):
        m = x > 0
        part = fnp.sqrt(x[m]) + fnp.where(x[m] > 0.4, x[m], 0.0) + funcgrad.scipy.special.gamma(x[m])
        return fnp.sum(part) * fnp.mean(part) + fnp.max(part) - fnp.min(part) + fnp.std(part) + fnp.prod(part)

    examples = X[[0, 1, 3]]
    close(vmap(grad(fun))(examples), np.array([grad(fun)(x) for x in examples]), rtol=1e-11)


def test_no_selected_element():
    """No NaN comes from what operations compute in the place of the missing elements."""
    away = -np.abs(X)
    fun = lambda x: (np.sqrt(x[x > 0] * x[0]) + np.log(x[x > 0])).sum() + x[1] + np.prod(x[x > 0])
    with np.errstate(invalid="ignore"):
        close(vmap(grad(fun))(away), np.tile([0.0, 1.0, 0.0, 0.0], (4, 1)))
        close(vmap(grad(fun))(X[:3]), np.array([grad(fun)(x) for x in X[:3]]), rtol=1e-11)
    close(jit(grad(fun))(away[0]), [0.0, 1.0, 0.0, 0.0])


def test_unselected_elements_give_no_warning():
    """The program computes no root of them."""
    close(vmap(lambda x: np.sqrt(x[x > 0]).sum())(X), [np.sqrt(x[x > 0]).sum() for x in X])


@pytest.mark.parametrize("run", [lambda f: jit(f)(-(X[0] ** 2)), lambda f: vmap(f)(np.stack([X[0], -(X[0] ** 2)]))])
def test_errors_of_empty_selections(run):
    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum which has no identity"):
        run(lambda x: np.max(x[x > 0]))
    with pytest.raises(IndexError, match="index 0 is out of bounds"):
        run(lambda x: x[x > 0][0])


@pytest.mark.parametrize("run", [lambda f: jit(f)(X[0]), lambda f: vmap(f)(X)])
def test_masks_that_differ_are_refused(run):
    with pytest.raises(InputError, match=r"parts of two masks are combined.* got masks that differ"):
        run(lambda x: (x[x > 0] * x[x < 0]).sum())

    def write(x):
        y = x.copy()
        y[x > 0] = x[x > 0.4]
        return y

    with pytest.raises(InputError, match="masks that differ"):
        run(write)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: x[x > 0],
        lambda x: np.sort(x[x > 0])[0],
        lambda x: np.concatenate([x[x > 0], x[x <= 0]]).sum(),
        lambda x: sum(v for v in x[x > 0]),
        lambda x: (x[x > 0] * np.ones(3)).sum(),
        lambda x: np.outer(x, x)[:, x > 0].sum(),
        lambda x: x[x > 0].reshape(-1, 1).sum(),
        lambda x: fnp.cumprod(x[x > 0]).sum(),
        lambda x: np.outer(x, x)[x > 0].cumsum(),
    ],
)
def test_uses_that_need_the_length_are_refused(fun):
    with pytest.raises(ConcretizationError, match="the number of selected elements depends on the values"):
        vmap(fun)(X)
    with pytest.raises(StagingError, match="the number of true entries of a mask"):
        jit(fun)(X[0])


def test_writes_to_mask_and_array_come_too_late():
    """NumPy's part is a copy."""

    def fun(x):
        y, m = x * 1.0, x > 0
        part, i = y[m], np.nonzero(m)[0]
        y[:] = 5.0
        m[0] = False
        m[1] = True
        z = np.zeros(4)
        z[x > 0] = part
        return (z * np.arange(1.0, 5.0)).sum() + (x[i] ** 2).sum()

    close(vmap(grad(fun))(X), np.array([grad(fun)(x) for x in X]))
    close(jit(grad(fun))(X[0]), grad(fun)(X[0]))

    def other(x):
        y, m = x * 1.0, x > 0
        part = y[m]
        m[1] = True
        y[m] = part
        return y

    with pytest.raises(InputError, match="masks that differ"):
        vmap(other)(X)


def test_writes_that_would_be_seen_elsewhere_are_refused():
    def fun(x, write):
        part = np.outer(x, x)[x > 0]
        write(part[:, 0], part)
        return part.sum()

    def add_to_view(view, part):
        view += 1.0

    def add_to_part(view, part):
        part += 1.0

    def write_to_view(view, part):
        view[:] = 1.0

    for write in (add_to_view, add_to_part, write_to_view):
        with pytest.raises(InputError, match=r"a part of x.mask. and x.mask. itself share memory"):
            vmap(lambda x, write=write: fun(x, write))(X)

    def cut(x):
        part = np.arange(4)[x > 0]
        part[part > 1] = x[0]
        return part.sum()

    with pytest.raises(InputError, match="traced numbers are written to an array of dtype int64"):
        vmap(cut)(X)


def test_recorded_programs_follow_masks():
    record = jit(vmap(grad(lambda x: (x[x > 0] ** 2).sum() + x[x > -5].max())), backend="numpy")
    for examples in (X[:2], X[1:3], X[2:], np.abs(X[:2])):
        expected = [grad(lambda x: (x[x > 0] ** 2).sum() + x.max())(x) for x in examples]
        close(record(examples), np.array(expected))


def test_equal_masks_of_all_examples_give_arrays():
    close(vmap(lambda x: np.sort(x[x > 0]))(X[:2]), np.sort(X[:2, [0, 2, 3]], axis=1))
