"""Parts ``x[mask]`` of unknown length, in batches and in compiled programs, against runs for each example."""

import numpy as np
import pytest
import scipy.special
from helpers import close

import funcgrad.numpy as fnp
import funcgrad.scipy.special
from funcgrad import grad, hessian, jit, jvp, no_grad, stop_gradient, vmap
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


def conditions(x):
    part = x[x > 0]
    return np.where(np.all(part > 0.25) & np.any(part > 1.5), part.sum(), np.sum(a=part**2)) * x[0]


def rounded(x):
    part = x[x > 0]
    whole, rest = divmod(part, 0.4)
    return (np.round(part, 1) * part + part.round() * rest + whole * part).sum() + np.mean(a=part)


def no_rows(x):
    none = x[:0]
    return none[none > 0].sum() + x[0]


PROGRAMS = [
    conditions,
    rounded,
    no_rows,
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
        lambda x: x[x > 0][[0]].sum(),
        lambda x: x[x > 0][1:].sum(),
        lambda x: 1.0 if x[x > 0] else 2.0,
        lambda x: float(x[x > 0]),
        lambda x: np.average(np.outer(x, x)[x > 0], weights=np.outer(x, x)).sum(),
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


def copied(x, copy):
    part = x[x > 0]
    other = copy(part)
    other *= 3
    return (part * other).sum()


@pytest.mark.parametrize(
    "copy",
    [
        *(np.array, np.copy, np.conj, np.asarray, fnp.copy, fnp.array),
        *(lambda a: a.conj(), lambda a: a.flatten(), lambda a: a.clip(None, None), lambda a: a.copy(order="C")),
        *(lambda a: a.astype(float), lambda a: a.astype(float, copy=False), lambda a: np.asarray(a, dtype=float)),
    ],
)
def test_copies_are_those_of_numpy(copy):
    fun = lambda x: copied(x, copy)
    close(vmap(grad(fun))(X), np.array([grad(fun)(x) for x in X]))


@pytest.mark.parametrize("view", [np.ravel, lambda a: a.ravel(), lambda a: a[:], np.real])
def test_views_are_refused(view):
    with pytest.raises(InputError, match="share memory"):
        vmap(lambda x: copied(x, view))(X)


def test_rows_are_views():
    def fun(x):
        part = np.outer(x, x + 1)[x > 0]
        row = part[0]
        return (row * part).sum()

    close(vmap(grad(fun))(X), np.array([grad(fun)(x) for x in X]))

    def write(x):
        part = np.outer(x, x)[x > 0]
        row = part[0]
        row *= 2
        return part.sum()

    with pytest.raises(InputError, match="write to a copy"):
        vmap(write)(X)


def moved_by_one(x, i):
    i -= 1


def set_to_zero(x, i):
    i[:] = 0


def set_in_part(x, i):
    i[i > 1] = 0


@pytest.mark.parametrize("change", [moved_by_one, set_to_zero, set_in_part])
def test_changed_positions_are_no_longer_those_of_the_mask(change):
    def fun(x):
        i = np.nonzero(x > 0)[0]
        change(x, i)
        return x[i].sum()

    with pytest.raises(ConcretizationError, match="the number of selected elements"):
        vmap(fun)(X)


def stopped(x):
    return (stop_gradient(x[x > 0]) * x[x > 0]).sum()


def written_without_derivative(x):
    part, y = x[x > 0], np.outer(x, x)
    with no_grad():
        part[part > 0.4] = part[part > 0.4] * 2
        y[x > 0, 1] = x[x > 0] * 3
    return (part**2).sum() + (y * x).sum()


def columns_written(x):
    y, m = np.outer(x, x + 1), x > 0
    y[m, 1] = x[m] ** 2
    y[m, 0] *= 3
    y[m, 2:] += x[:2]
    y[np.nonzero(m)[0], 3] = 1.5
    return (y**2).sum()


def several_uses_of_positions(x):
    y = np.outer(x, x)
    i, j = np.nonzero(y > 0)
    return (y[y > 0] * i).sum() + (y[i, j] * j).sum()


def averages(x):
    part = np.outer(x, x + 1)[x > 0]
    return np.average(x[x > 0]) + np.average(part, axis=0).prod() + np.average(part, axis=1, weights=x**2).sum()


@pytest.mark.parametrize(
    "fun",
    [stopped, written_without_derivative, columns_written, several_uses_of_positions, averages],
)
def test_more_batches_equal_single_examples(fun):
    close(vmap(fun)(X), np.array([fun(x) for x in X]))
    close(vmap(grad(fun))(X), np.array([grad(fun)(x) for x in X]), rtol=1e-11)


def test_running_sums_before_the_first_element():
    fun = lambda x: np.log(np.cumsum(x[x > 0])).sum()
    close(vmap(grad(fun))(-X), np.array([grad(fun)(-x) for x in X]))


def test_products_take_vectors_and_matrices():
    table = np.arange(12.0).reshape(4, 3)
    fun = lambda x: (np.dot(np.outer(x, x)[x > 0], table) ** 2).sum() + np.inner(np.outer(x, x)[x > 0], x).sum()
    close(vmap(grad(fun))(X), np.array([grad(fun)(x) for x in X]))
    for product in (lambda a: np.inner(a, np.ones((4, 4))), lambda a: np.dot(a, 2.0)):
        with pytest.raises(ConcretizationError):
            vmap(lambda x, product=product: product(np.outer(x, x)[x > 0]).sum())(X)


def test_norm_of_no_element_has_no_derivative():
    fun = lambda x: np.linalg.norm(x[x > 0])
    examples = np.stack([X[0], -np.abs(X[1])])
    push = vmap(lambda x: jvp(fun, (x,), (np.ones(4),))[1])
    close(push(examples), [X[0][X[0] > 0].sum() / fun(X[0]), 0.0])


def test_masks_that_two_batches_share():
    """The same array is another mask in each of two nested batches."""
    masks = np.array([[True, False, True, True], [False, True, True, False]])
    with pytest.raises(InputError, match="masks that differ"):
        vmap(lambda a: vmap(lambda b: (X[0][a] * X[0][b]).sum())(masks))(masks)


def grown(part):
    part += np.ones(3)


def filled_by_row(part):
    part[:] = np.ones(3)


@pytest.mark.parametrize("write", [grown, filled_by_row])
def test_writes_of_other_shapes_raise(write):
    def fun(x):
        part = np.outer(x, x[:1])[x > 0]
        write(part)
        return part.sum()

    with pytest.raises(ValueError, match="could not broadcast"):
        vmap(fun)(X)


def test_programs_see_an_array():
    close(vmap(lambda x: x[0] * isinstance(x[x > 0], np.ndarray))(X), X[:, 0])


def test_errors_of_numpy_are_raised():
    with pytest.raises(ValueError, match="needs initial"):
        vmap(lambda x: np.max(x[x > 0], where=x[x > 0] > 0.4))(X)
    with pytest.raises(TypeError, match="Cannot cast"):
        vmap(lambda x: x[x > 0].astype(int, casting="safe").sum())(X)
    with pytest.raises(ZeroDivisionError, match="Weights sum to zero"):
        vmap(lambda x: np.average(x[x > 0], weights=x[x > 0] * 0))(X)
    with pytest.raises(ConcretizationError):
        vmap(lambda x: np.exp(x[x > 0], out=x[x > 0]))(X)
