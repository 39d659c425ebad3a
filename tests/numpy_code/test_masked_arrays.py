"""Masked arrays of ``numpy.ma`` with traced values: values as NumPy's, derivatives as differences, batches."""

import numpy as np
import pytest
from helpers import differences
from scipy.stats import mstats

from funcgrad import grad, hessian, jit, jvp, vjp, vmap
from funcgrad.errors import ConversionError

X = np.array([0.7, 1.4, 2.3, 0.4, 1.9, 3.1])
MASK = np.array([False, True, False, False, True, False])
OBSERVED = np.ma.masked_array([1.0, -999.0, 2.0, 3.0, -999.0, 4.0], mask=MASK)
HARD = np.ma.array(OBSERVED, hard_mask=True)
GRID = np.ma.masked_less(np.arange(-2.0, 4.0).reshape(2, 3), 0.0)
ma = np.ma


def masked(x):
    return ma.array(x, mask=MASK)


def table(x):
    return ma.array(x.reshape(2, 3), mask=MASK.reshape(2, 3))


def written(x):
    m = ma.zeros(6)
    m[:3] = x[:3]
    m[4] = x[4] * x[5]
    m[1] = ma.masked
    m[m > 5.0] = ma.masked
    part = m[3:]
    part[0] = x[3] ** 2
    return (m**2).sum() + part.sum() + m.count()


def unmasked(x):
    m = masked(x).copy()
    m[1] = 2.0 * x[0]
    m.mask[4] = False
    return (m * m).sum() + m.data[4]


def no_mask_at_all(x):
    m, square = ma.array(x), ma.array(np.outer(x, x))
    spread = m.var(ddof=1) + ma.std(m) + square.var(axis=0, keepdims=True).sum()
    spread = spread + (np.modf(m)[0] * x).sum() + m.var(mean=x[0])
    return spread + m.compressed() @ x + np.copy(m)[0] ** 2 + np.add.reduce(m) * np.multiply.outer(m, m)[0, 1]


def integers(x):
    order = ma.array(np.argsort(x), mask=MASK)
    return order.max() * x[0] + order.min() * x[1] + order.argmax() * x[2]


def reductions_that_are_masked(x):
    m, one = masked(x), ma.array(x[0], mask=True)
    found = [one.var(), one.std(), ma.add(m[1], 1.0), np.sin(m[4])]
    return x @ x if all(part is ma.masked for part in found) else 0.0


def traces(x):
    outer = ma.array(np.outer(x, x), mask=np.eye(6)[::-1])
    return outer.trace() * ma.trace(outer, 1) + ma.trace(ma.array(np.outer(x, x)))


def put(x):
    m, square, grid = masked(x).copy(), ma.array(np.outer(x, x), mask=np.eye(6)), np.zeros((2, 3))
    m.put([0, 1, 2], x[3:5] ** 2)
    m.put([[5, 3]], ma.array([1.0, x[0]], mask=[True, False]))
    m.put([2], ma.masked)
    square.put([0, 8, 40], [x[1], 4.0], mode="wrap")
    ma.put(square, [1, -99], [x[0], 2.0], mode="clip")
    ma.put(grid, [0, 4], x[:2])
    return m.sum() * m.count() + (square.filled(7.0) @ x).sum() + (grid @ x[:3]).sum()


def ufuncs_with_out(x):
    m, n, constant = masked(x).copy(), ma.array(np.zeros(6)), ma.array(np.ones(6), mask=MASK)
    np.add(m, x, out=n)
    np.multiply(n, m, out=m)
    root = np.sqrt(m * m, out=n)
    np.add(constant, 2.0, out=constant)
    whole, total, parts, last, chosen = ma.array(x * 1.0), np.zeros(6), np.zeros(2), np.zeros(()), np.zeros(6)
    np.add.accumulate(whole, out=total)
    np.multiply.reduceat(whole, [0, 1], out=parts)
    np.add.reduce(whole, out=last)
    np.multiply(whole, x, out=chosen, where=~MASK)
    np.add.accumulate(whole, out=whole)
    return (
        m.sum() + n.count() * root.sum() + constant.sum() * x[0] + total @ chosen * last + parts[1] + whole.filled() @ x
    )


def shape_that_is_set(x):
    m, constant = table(x).copy(), ma.array(np.arange(6.0), mask=MASK.copy())
    m.shape = constant.shape = (3, 2)
    m[2, 0] = x[0] ** 2
    return (m.filled(2.0) * x.reshape(3, 2)).sum() + (constant * m).sum()


def filled_in_place(x):
    m, constant = masked(x).copy(), ma.array(np.ones(6), mask=MASK)
    m.fill(x[0] ** 2)
    constant.fill(x[1])
    return m.sum() + constant.data @ x + constant.count()


def methods_of_constants(x):
    y = np.zeros(6)
    y[0] = x[0] ** 2
    m = ma.array(np.arange(6.0), mask=MASK).copy()
    m[2] = 5.0
    m.put([0, 1], [7.0, 3.0])
    m.fill_value = 4.0
    assert m.get_fill_value() == 4.0
    m.set_fill_value(4.0)
    shown = f"{float(m[2]):.1f} {m!r}"
    counts = m.nbytes + m.itemsize + m.searchsorted(2.0) + ("mask=" in shown) + sum(m.flat[2:4])
    return (y * m.anom().filled()).sum() * counts + (m.dot(m) + float(ma.array(np.float64(2.0)))) * x[1]


def in_place(x):
    m = masked(x * 1.0)
    other = m
    m += OBSERVED
    m *= 2.0
    m -= x
    m /= 3.0
    return (other**2).sum()


def elements(x):
    total = 0.0
    for v in masked(x):
        if v is not ma.masked:
            total += v**2
    return total + float(masked(x)[0])


def masks_of_results(x):
    mask = np.zeros(6, bool)
    mask[[1, 4]] = True
    m = ma.array(x, mask=mask)
    made = [m * 2.0, m.clip(0.5, 2.0), m.copy(), m + m, ma.log(m), m.astype(float), m**2, m[[0, 1, 2]]]
    for other in made:
        other[0] = ma.masked
    before = m.sum()
    sharing = [-m, m[2:], ma.array(m), m.reshape(2, 3).ravel()]
    for place, other in enumerate(sharing):
        other[place // 2] = ma.masked
    return before * x[0] + m.sum() + mask.sum() * x[1] + sum((other**2).sum() for other in (*made, *sharing))


def masked_after_use(x):
    m = x / ma.array([1.0, 0.0, 2.0, 1.0, 1.0, 1.0])
    before = (m**2).sum()
    m.mask[2] = True
    m[3] = ma.masked
    return before * m.sum()


def written_results(x):
    total = np.zeros(2)
    table(x).sum(axis=1, out=total)
    m = ma.zeros(3)
    np.mean(table(x), axis=0, out=m)
    least = np.zeros(2)
    table(x).min(1, least)
    greatest = np.take_along_axis(x.reshape(2, 3), table(x).argmax(axis=1, keepdims=True), 1)
    middle, limited = ma.zeros(3), ma.zeros((2, 3))
    ma.median(table(x), axis=0, out=middle)
    table(x).clip(0.5, 2.0, out=limited)
    return (
        total @ total
        + (m**3).sum()
        + (middle**2).sum()
        + (limited**2).sum()
        + least @ np.array([1.0, 3.0])
        + (greatest**2).sum()
    )


def masks_changed_afterwards(x):
    mask, other = x > 3.0, np.isnan(x)
    m, n = ma.array(x, mask=mask), ma.masked_array(x**2, other)
    before = (m * n).sum()
    mask[0], other[1:3] = True, True
    m[3] = ma.masked
    apart = ma.array(x, mask=mask, copy=True)
    mask |= x < 1.0
    return before + (m**3).sum() + n.sum() * n.count() + mask.sum() * x[1] + apart.sum()


def written_by_functions(x):
    m = masked(x).copy()
    ma.putmask(m, x > 2.0, x * 3.0)
    ma.putmask(m, x < 0.5, 7.0)
    ma.set_fill_value(m, 5.0)
    return (m.filled() ** 2).sum()


def rows(x):
    return ma.array([x, x**2, np.sin(x)], mask=[MASK, MASK, [False] * 6])


def with_fill_values(x):
    m = ma.array(x.reshape(3, 2), mask=[[1, 0]] * 3, fill_value=2.0)
    made = [m.sum(0), m.mean(0), m.max(0), m.cumsum(0), m.take([0], 1), ma.median(m, 0), ma.dot(m, m.T[:, :2]), m.imag]
    kept = [m * x[:2], m[1:], m.T, m.var(0), m.copy(), -m, np.log(m), ma.sort(m, axis=0), ma.zeros_like(m)]
    return x @ x * sum(other.fill_value == 2.0 for other in made) + sum(other.filled().sum() for other in kept)


def sorted_with_masked_elements(x):
    m, places = masked(x), np.arange(6.0)
    made = [m.argsort(fill_value=1.0), m.argsort(endwith=False), ma.argsort(m)]
    parts = [ma.sort(m, fill_value=1.0), ma.sort(m, endwith=False), ma.sort(table(x), axis=None)]
    parts += [np.sort(-m), np.sort(table(x), axis=None), np.sort(table(-x), 0).ravel()]
    return sum((x[place] * places).sum() for place in made) + sum((part * places).sum() for part in parts)


def masks_that_are_not_shared(x):
    m = ma.array(x, mask=MASK.copy())
    other = ma.asarray(m)
    other.unshare_mask()
    other[0] = ma.masked
    shared = ma.asarray(m)
    shared[2] = ma.masked
    return (m**2).sum() + other.sum() * shared.sum()


MASKED_NUMBER_FIRST = [
    lambda m: ma.masked + m,
    lambda m: ma.masked - m,
    lambda m: ma.masked * m,
    lambda m: ma.masked / m,
    lambda m: ma.masked**m,
]


class Fit:
    def __init__(self):
        self.observed = OBSERVED

    def loss(self, x):
        return ma.sum((self.observed - x) ** 2) / self.observed.count()


FIT = Fit()


def medians(x):
    rows = np.outer(x[:2], x[1:4])
    whole = ma.median(ma.array(x)) * ma.median(ma.array(rows), axis=0)[1] + ma.median(ma.array(rows), 1, keepdims=True)
    return whole.sum() + ma.median(ma.array(rows, mask=[[1, 0, 0], [0, 0, 1]]), axis=0).sum()


def means_with_counts(x):
    """Means, and the counts that are their weights: numbers of the dtype of the mean."""
    rows = ma.array(np.outer(x[:2], x[1:4]), mask=[[1, 0, 0], [0, 0, 1]])
    mean, count = ma.average(rows, axis=0, returned=True)
    assert (count.dtype, count.tolist()) == (np.float64, [1.0, 2.0, 1.0])
    whole, number = ma.average(rows, returned=True)
    assert (type(number), number) == (np.float64, 4.0)
    places = ma.where(ma.array(x, mask=MASK) > 1.0)
    return (
        (mean * count).sum() * whole + ma.average(ma.array(x)) + x[places].sum() + x[ma.where(ma.array(x) > 1.0)].prod()
    )


def by_place(x):
    """Arguments of the class by place: mask, dtype and whether to copy."""
    m = ma.MaskedArray(x, MASK, float, True)
    m[0] = 5.0
    return m.sum() * x[0] + (ma.masked_array(x, MASK, None, False) ** 2).sum()


PROGRAMS = {
    "medians_without_masks": medians,
    "means_with_counts": means_with_counts,
    "by_place": by_place,
    "extrema_of_functions": lambda x: (
        ma.maximum(ma.array(x, mask=MASK), 1.0).sum() * ma.minimum.reduce(ma.array(x, mask=MASK))
        + ma.maximum.outer(ma.array(x[:2]), x[2:4]).sum()
    ),
    "mean": lambda x: ma.masked_where(x > 2.0, x**2).mean(),
    "constants_on_the_left": lambda x: ((OBSERVED - x) ** 2).sum() / OBSERVED.count(),
    "constants_on_the_right": lambda x: np.mean((x - OBSERVED) ** 2),
    "constants_in_functions": lambda x: np.sqrt(np.maximum(x * OBSERVED, 0.5)).sum(),
    "constants_in_an_object": FIT.loss,
    "constants_of_two_axes": lambda x: ((GRID * x[:3]).mean(axis=1) * x[:2]).sum() + (x[:3] ** GRID).sum(),
    "constants_alone": lambda x: ma.masked_less([1.0, -1.0, 2.0], 0.0).mean() * x.sum() * GRID.std(),
    "arithmetic": lambda x: (2.0 - 3.0 * masked(x) ** 2 / (1.0 + masked(x)) - -abs(masked(x)) // 0.3).sum(),
    "quotients_by_zero": lambda x: (x / ma.array([1.0, 0.0, 2.0, 0.0, 3.0, 1.0])).sum(),
    "roots_of_negative_numbers": lambda x: ma.sqrt(x - 1.0).sum() + ma.log(x - 1.5).mean() + np.log(masked(x)).sum(),
    "powers": lambda x: ma.power(x - 1.0, 1.5).sum() + (masked(x) ** x[0]).sum(),
    "inverse_functions": lambda x: ma.arccosh(x).sum() + ma.arcsin(x - 1.0).sum() + ma.arctanh(x / 2).mean(),
    "ufuncs": lambda x: (ma.exp(-masked(x)) * ma.sin(x) + ma.hypot(masked(x), 2.0) + ma.arctan2(x, masked(x))).sum(),
    "extrema": lambda x: masked(x).max() * masked(x).min() + ma.maximum(masked(x), 1.0).sum() + ma.ptp(masked(x)),
    "moments": lambda x: masked(x).var() + masked(x).std(ddof=1) * ma.std(masked(x)) + np.var(masked(x)),
    "moments_of_rows": lambda x: (table(x).var(axis=1) * [1.0, 2.0]).sum() + table(x).std(0).sum(),
    "means_of_columns": lambda x: (table(x).mean(axis=0) ** 2).sum() + (np.mean(table(x), axis=0) * x[:3]).sum(),
    "a_column_without_elements": lambda x: (ma.array(x.reshape(3, 2), mask=[[1, 0]] * 3).mean(0) ** 2).sum(),
    "products": lambda x: masked(x).prod() + ma.dot(masked(x), x) + ma.inner(x, masked(x)) + table(x).dot(x[:3]).sum(),
    "running_sums": lambda x: (masked(x).cumsum() * x).sum() + ma.cumprod(masked(x)).mean() + table(x).cumsum(1).sum(),
    "medians": lambda x: ma.median(masked(x)) ** 2 + ma.median(table(x), axis=1).sum(),
    "averages": lambda x: ma.average(masked(x), weights=x**2) + ma.average(table(x), 1, [1.0, 2.0, 3.0]).sum(),
    "deviations": lambda x: (masked(x).anom() ** 3).sum() + (table(x).anom(axis=1) ** 2).sum(),
    "lists": lambda x: sum(v**2 for v in masked(x).tolist() if v is not None) + table(x).tolist(x[0])[0][1],
    "filled": lambda x: (masked(x).filled(0.5) ** 2).sum() + ma.filled(masked(x), x[1]).prod(),
    "compressed": lambda x: (masked(x).compressed() * np.arange(1.0, 5.0)).sum() + (x[~masked(x).mask] ** 2).sum(),
    "not_finite": lambda x: (ma.masked_invalid(np.where(x > 2.0, np.inf, x)) ** 2).sum(),
    "intervals": lambda x: ma.masked_inside(x, 1.0, 2.0).sum() ** 2 + ma.masked_outside(x, 2.0, 0.5).sum() ** 2,
    "comparisons": lambda x: (ma.masked_greater(x, 2.0) * ma.masked_less_equal(x, 0.5)).sum() + (masked(x) > 1.0).sum(),
    "values": lambda x: (x[:3] * ma.masked_values([0.7, 1.0, 2.0], 0.7) ** ma.masked_equal([1.0, 2.0, 3.0], 2.0)).sum(),
    "parts": lambda x: (masked(x)[::2] * masked(x)[3:]).sum() + (table(x)[:, 1:] ** 2).sum() + table(x)[1, 2] ** 2,
    "chosen": lambda x: (masked(x)[masked(x) > 1.0] ** 2).sum() + (masked(x)[[0, 1, 2]] ** 2).sum(),
    "shapes": lambda x: (table(x).T.ravel() * np.arange(6.0)).sum() + table(x).reshape(3, 2).sum(axis=0).prod(),
    "joined": lambda x: (ma.concatenate([masked(x), x]) ** 2).sum() + ma.vstack([masked(x), OBSERVED]).mean(0).prod(),
    "choices_of_the_numbers": lambda x: np.where(x > 1.0, masked(x), 0.0).sum() + np.asarray(masked(x)).sum(),
    "choices": lambda x: (ma.where(x > 1.0, masked(x), 2.0 * x) ** 2).sum() + ma.where(masked(x) > 1.0, x, -x).sum(),
    "sorted": lambda x: (ma.sort(-masked(x)).compressed() * np.arange(4.0)).sum() + ma.diff(masked(x)).sum(),
    "masks_of_masks": lambda x: ma.array(masked(x), mask=x > 3.0).var() + ma.masked_greater(masked(x), 3.0).mean(),
    "rounded_and_limited": lambda x: (masked(x).clip(0.5, 2.0) * masked(x).round(1)).sum(),
    "repaired": lambda x: (ma.fix_invalid(np.where(x > 2.0, np.nan, x), fill_value=0.0).data ** 2).sum(),
    "without_a_mask": lambda x: ma.array(x).mean() * ma.masked_array(x, False).std() + ma.asarray(x)[2] ** 2,
    "extremes_of_columns": lambda x: (table(x).max(axis=0) * table(x).min(0)).sum() + x[masked(x).argmax()],
    "outer_products": lambda x: (ma.outer(masked(x), x[:2]) ** 2).mean(),
    "covariances": lambda x: ma.cov(masked(x), x**2).sum() + ma.cov(rows(x), rowvar=False, bias=True).sum(),
    "correlations": lambda x: ma.corrcoef(masked(x), x**2)[0, 1] + (ma.corrcoef(rows(x)) * np.eye(3)[::-1]).sum(),
    "fits_of_polynomials": lambda x: (
        ma.polyfit(np.arange(6.0), masked(x), 1) @ ma.polyfit(np.arange(6.0) - 2, masked(x**2), 1, w=x)
    ),
    "equal_arrays": lambda x: x[0] * ma.allequal(masked(x), masked(x)) + x[1] * ma.allclose(masked(x), x + 1e-12),
    "numpys_own_code": lambda x: (
        ma.apply_along_axis(lambda row: row.mean(), 1, rows(x)).sum()
        + (ma.compress_cols(rows(x)) ** 2).sum()
        + sum(x[part].prod() for part in ma.clump_unmasked(masked(x)))
        + ma.convolve(masked(x), [1.0, 2.0]).sum()
        + ma.choose([0, 1, 0, 1, 1, 0], [masked(x), x**2]).sum()
        + ma.apply_over_axes(ma.sum, rows(x), [0]).sum()
    ),
    "methods_of_operations": lambda x: (
        ma.multiply.outer(masked(x), x).sum() + ma.add.reduce(masked(x)) * ma.maximum.reduce(table(x), axis=0).prod()
    ),
    "rearranged": lambda x: (
        (ma.diag(masked(x)) ** 2).sum()
        + ma.resize(masked(x), (3, 4)).var()
        + (np.flip(masked(x)) * np.arange(6.0)).sum()
        + np.moveaxis(table(x), 0, 1)[2].prod()
    ),
    "nothing_masked": lambda x: (
        np.linalg.norm(ma.masked_greater(x, 10.0)) + np.polyfit(np.arange(6), ma.array(x), 1)[0]
    ),
    "masks_changed_afterwards": masks_changed_afterwards,
    "written_by_functions": written_by_functions,
    "masked_after_use": masked_after_use,
    "masks_of_results": masks_of_results,
    "broadcast": lambda x: (masked(x)[:, None] * x).mean() + (x[:2, None] + masked(x)).std(axis=1).prod(),
    "broadcast_comparisons": lambda x: (masked(x)[:, None] < x).count() * x[0] + ma.add.outer(masked(x), x).mean(),
    "arrays_like_others": lambda x: (ma.zeros_like(masked(x)) + x).sum() + (ma.ones_like(OBSERVED) * x).mean(),
    "copies_and_arrays_like_others_of_numpy": lambda x: (
        np.copy(masked(x), subok=True).sum() ** 2
        + (np.ones_like(masked(x)) * x).mean() * np.copy(masked(x)).mean()
        + (np.full_like(masked(x), 3.0) * x).prod() * np.zeros_like(masked(x)).count()
        + (np.ones_like(masked(x), subok=False) * x).prod() * (np.ones_like(masked(x), shape=3) + x[3:]).sum()
    ),
    "functions_of_numpy_that_keep_masks": lambda x: (
        np.tile(masked(x), 2).prod()
        + np.real_if_close(masked(x)).sum() ** 2
        + np.tile(table(x), (1, 1)).mean()
        + (np.argsort(table(x)) * x[:3]).sum()
    ),
    "differences_with_ends": lambda x: (
        (ma.ediff1d(masked(x), to_end=x[:2], to_begin=ma.masked) ** 2).sum()
        + ma.angle(masked(x * (1 + 1j * x)), deg=True).mean() ** 2 / 100
    ),
    "the_masked_number": lambda x: (x * ma.masked).count() * x[0] + (masked(x) - ma.masked).sum(0, keepdims=True).size,
    "the_masked_number_first": lambda x: (
        sum((masked_with(table(x)).count() + 1) * x[0] for masked_with in MASKED_NUMBER_FIRST)
        + ma.filled(ma.masked * table(x), x[1]).sum()
    ),
    "kept_by_astype": lambda x: (
        np.astype(masked(x), float).sum() ** 2 + np.astype(masked(x) * x[1], complex).sum().real
    ),
    "kept_by_asanyarray": lambda x: (
        np.asanyarray(masked(x)).sum() ** 2
        + np.require(table(x), float).std()
        + np.atleast_2d(masked(x)).mean()
        + (masked(x).view(np.ma.MaskedArray) * masked(x).view(np.ndarray)).sum()
    ),
    "chosen_by_masked_truth_values": lambda x: (
        (x[~ma.array(x > 1.0, mask=MASK)] ** 2).sum() + x[ma.array(x > 1.0, mask=MASK) & (masked(x) < 3.0)].sum()
    ),
    "masks_that_are_not_shared": masks_that_are_not_shared,
    "given_fill_values": lambda x: table(x).min(0, fill_value=0.6).sum() + x[masked(x).argmax(fill_value=9.0)] ** 2,
    "strict_products": lambda x: ma.dot(table(x), table(x).T[:, :1], strict=True).count() * x[0] + x[1] ** 2,
    "reductions": lambda x: (
        ma.add.reduce(table(x)).prod() + ma.multiply.reduce(masked(x)) * ma.maximum.reduce(masked(x))
    ),
    "running": lambda x: (ma.add.accumulate(masked(x)) ** 2).sum() + x[masked(x).nonzero()[0]].sum(),
    "averages_of_the_last_axis": lambda x: (ma.average(table(x), -1, x[:3]) * x[:2]).sum(),
    "more_axes": lambda x: (ma.array(masked(x), ndmin=2) * x).mean(axis=0).prod(),
    "with_fill_values": with_fill_values,
    "sorted_with_masked_elements": sorted_with_masked_elements,
    "written_results": written_results,
    "in_place": in_place,
    "written": written,
    "unmasked": unmasked,
    "no_mask_at_all": no_mask_at_all,
    "integers": integers,
    "reductions_that_are_masked": reductions_that_are_masked,
    "traces": traces,
    "put": put,
    "ufuncs_with_out": ufuncs_with_out,
    "filled_in_place": filled_in_place,
    "shape_that_is_set": shape_that_is_set,
    "methods_of_constants": methods_of_constants,
    "elements": elements,
}


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # on plain arrays, since NumPy 2.5
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f = PROGRAMS[name]
    expected = differences(lambda x: float(f(x)), X, 2e-4)
    found = grad(f)(X)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)
    assert jvp(f, (X,), (X,)) == pytest.approx((float(f(X.copy())), found @ X), rel=1e-12)
    np.testing.assert_allclose(hessian(f)(X), differences(grad(f), X, 2e-4), rtol=1e-6, atol=1e-6)
    batch = np.stack([X, X + 0.001])
    np.testing.assert_allclose(vmap(grad(f))(batch), [grad(f)(x) for x in batch], rtol=1e-12, atol=1e-14)


LONGER = np.array([3.0, 1.1, 1.9, 0.5, 0.15, 0.7, 2.2, 1.33])
LONGER_MASK = [False, True, False, False, False, True, False, False]
STATISTICS = {
    **dict.fromkeys(("gmean", "hmean", "chisquare", "tmin", "tmax", "trimtail", "trimmed_mean", "trimmed_std"), ()),
    **{"tmean": ((0.2, 2.5),), "trim": ((0.4, 2.5),), "trimboth": (0.2,), "trimr": ((0.1, 0.2),), "trimmed_stde": ()},
    **{"winsorize": ((0.2, 0.2),), "idealfourths": (), "rsh": (), "scoreatpercentile": (30,), "mode": ()},
    "zmap": (LONGER[::-1].copy(),),
}


@pytest.mark.parametrize("name", ["theilslopes", "siegelslopes", "spearmanr", "kendalltau", "pearsonr"])
def test_statistics_of_arrays_without_a_mask(name):
    f = lambda x: getattr(mstats, name)(x, LONGER[::-1])[0] * 1.0
    np.testing.assert_allclose(grad(f)(LONGER), differences(f, LONGER, 2e-4), rtol=1e-6, atol=1e-7)


@pytest.mark.filterwarnings("ignore:`power_divergence` and `chisquare` support for masked")  # SciPy before 1.16
@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_of_masked_arrays(name):
    def f(x):
        found = getattr(mstats, name)(ma.array(x, mask=LONGER_MASK), *STATISTICS[name])
        found = found if isinstance(found, (tuple, list)) else [found]
        parts = [ma.filled(ma.asarray(part) * 1.0, 0.0) for part in found]
        return sum((part * np.cos(np.arange(part.size)).reshape(part.shape)).sum() for part in parts)

    np.testing.assert_allclose(grad(f)(LONGER), differences(f, LONGER, 2e-4), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["mean", "arithmetic", "quotients_by_zero", "moments_of_rows", "averages"])
def test_compiled_programs(name):
    f = PROGRAMS[name]
    for backend, tolerance in (("xla", 1e-5), ("numpy", 1e-15)):
        compiled = jit(grad(f), backend=backend)
        for x in (X, X, X[::-1].copy()):
            np.testing.assert_allclose(compiled(x), grad(f)(x), rtol=tolerance, atol=tolerance)


def test_examples_with_different_masks():
    batch = np.stack([X, X[::-1]])

    def loss(x):
        m = ma.masked_greater(x, 1.5)
        return (m**3).mean() + m.std() * m.max() + ma.median(m)

    np.testing.assert_allclose(vmap(grad(loss))(batch), [grad(loss)(x) for x in batch], rtol=1e-13)


def test_a_masked_array_as_the_result_is_refused_unless_it_is_constant():
    assert jvp(lambda x: ma.array(x, mask=False), (X,), (X,))[1].tolist() == X.tolist()
    with pytest.raises(ConversionError, match=r"numpy\.ma: a masked array as the result .* Return m\.filled"):
        jvp(masked, (X,), (X,))
    slope, mask = grad(lambda x: (masked(x).sum(), OBSERVED * 2.0), has_aux=True)(X)
    assert slope.tolist() == [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    assert type(mask) is np.ma.MaskedArray
    assert mask.mask.tolist() == MASK.tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.linalg.norm(masked(x)), r"numpy\.ma: this function would lose the mask"),
        (lambda x: mstats.zscore(masked(x)).sum(), r"numpy\.ma: this function would lose the mask"),
        (lambda x: np.concatenate([masked(x), x]).sum(), r"numpy\.ma: this function would lose the mask"),
        (lambda x: ma.array(x, mask=MASK, hard_mask=True).sum(), r"numpy\.ma: an array with a hard mask"),
        (lambda x: ma.zeros_like(ma.array(x), hardmask=True).sum(), r"numpy\.ma: an array with a hard mask"),
        (
            lambda x: (HARD * x).sum(),
            r"numpy\.ma: an array with a hard mask .* Leave it out, and write to m\[~m\.mask\]",
        ),
    ],
    ids=["norm", "zscore", "concatenate", "hard_mask", "made_with_hard_mask", "constant_with_hard_mask"],
)
def test_what_would_lose_the_mask_is_refused(call, message):
    with pytest.raises(ConversionError, match=message):
        grad(call)(X)


def test_sums_of_single_precision_in_another_dtype():
    f = lambda x: masked(x.astype(np.float32)).cumsum(dtype=np.float64).data
    (value,) = vjp(f, X)[:1]
    assert value.dtype == f(X).dtype == np.float64
    assert value.tolist() == f(X).tolist()


def constant_of_a_rebuilt_run(x):
    y = np.zeros(6)
    y[0] = x[0]
    return y, ma.array(np.arange(6.0), mask=MASK)


@pytest.mark.filterwarnings("ignore:Warning. 'partition' will ignore the 'mask'")
@pytest.mark.parametrize(
    "change", [lambda m: m.partition(1), lambda m: m.flat.__setitem__(0, 5.0)], ids=["partition", "flat"]
)
def test_writes_to_constants_that_would_be_lost_raise(change):
    def f(x):
        y, m = constant_of_a_rebuilt_run(x)
        change(m)
        return y.sum() * m.sum()

    with pytest.raises(ValueError, match="read-only"):
        grad(f)(X)


def test_unknown_attributes_of_traced_values():
    with pytest.raises(AttributeError, match=r"no attribute 'hardmask'\. Take m\.filled\(0\.0\) or m\.compressed"):
        grad(lambda x: masked(x).hardmask * x.sum())(X)
