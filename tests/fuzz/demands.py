"""Checks of a call with any arguments: the result is NumPy's or SciPy's, the derivatives are those of calculus."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from operations import numeric
from operations.cases import random_like
from operations.comparing import assert_like, assert_transposed

import funcgrad.numpy as fnp
from funcgrad import jvp, vjp, vmap
from funcgrad.errors import FuncgradError
from fuzz.draws import Draw


@dataclass
class Outcome:
    """Outcome of a draw: what disagrees, what funcgrad refuses, each with the stage, and what NumPy itself refuses."""

    wrong: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unfit: str = ""

    @property
    def kind(self) -> str:
        """Outcome in a word."""
        return "unfit" if self.unfit else "wrong" if self.wrong else "refused" if self.refused else "agree"


class UnfitError(Exception):
    """Error for a draw with nothing to compare."""


def judged(draw: Draw, rng: np.random.Generator) -> Outcome:
    """Check a draw against every demand."""
    found = Outcome()
    before = [np.array(x) for x in draw.leaves]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            want = _plain(draw)
        except UnfitError as error:
            found.unfit = str(error)
            return found
        for demand in (check_plain, check_traced, check_derivatives, check_vmap):
            with _told(demand.__name__.removeprefix("check_"), found):
                demand(draw, want, rng)
    for x, old in zip(draw.leaves, before, strict=True):
        if not np.array_equal(np.asarray(x), old, equal_nan=old.dtype.kind in "fc"):
            found.wrong.append("an argument was changed")
    return found


@contextmanager
def _told(stage: str, found: Outcome) -> Iterator[None]:
    try:
        yield
    except UnfitError:
        pass
    except AssertionError as error:
        found.wrong.append(f"{stage}: {_line(error)}")
    except FuncgradError as error:
        found.refused.append(f"{stage}: {type(error).__name__}: {_line(error)}")
    except Exception as error:
        found.wrong.append(f"{stage}: raised {type(error).__name__}: {_line(error)}")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _plain(draw: Draw) -> Any:
    """Return NumPy's result."""
    fun = draw.of_copies(draw.call.theirs)
    try:
        with warnings.catch_warnings():
            for kind in (np.exceptions.ComplexWarning, FutureWarning, DeprecationWarning):
                warnings.simplefilter("error", kind)  # NumPy drops imaginary parts, or will change this result
            want = fun(*draw.primals)
        if draw.out:
            draw.out = np.shape(want), want.dtype
            want = draw.of_copies(draw.call.theirs)(*draw.primals)
    except Exception as error:
        raise UnfitError(f"{type(error).__name__}") from error
    if not any(isinstance(part, (np.ndarray, np.number, float, complex)) for part in parts(want)):
        raise UnfitError("no numbers")
    return want


def parts(out: Any) -> Iterator[Any]:
    """Return the arrays and numbers of a result, without the other values in it."""
    if isinstance(out, (tuple, list, dict)):
        for part in out.values() if isinstance(out, dict) else out:
            yield from parts(part)
    elif isinstance(out, (bool, int, float, complex)) or (
        hasattr(out, "dtype") and hasattr(out, "shape") and out.dtype.kind in "biufc" and not hasattr(out, "tocsr")
    ):
        yield out


def dtype_of(x: Any) -> np.dtype[Any]:
    """Return the dtype of an array, a traced value or a number."""
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


def numbers(fun: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    """Return ``fun`` restricted to its floating-point results."""

    def smooth(*primals: Any) -> tuple[Any, ...]:
        return tuple(out for out in parts(fun(*primals)) if dtype_of(out).kind in "fc")

    return smooth


def coarse(*arrays: Any) -> float:
    """Return the relative error that the rounding of the narrowest of some arrays allows."""
    narrow = [np.asarray(x).real.dtype for x in arrays]
    return 3e-2 if np.float16 in narrow else 1e-3 if np.float32 in narrow else 1e-9


def same(got: Any, want: Any, what: str, inputs: Sequence[Any] = ()) -> None:
    """Check that a result equals NumPy's in value, dtype, shape and class."""
    got, want = list(parts(got)), list(parts(want))
    tolerance = coarse(*want, *inputs)
    assert len(got) == len(want), f"{what}: {len(got)} results, NumPy has {len(want)}"
    for g, w in zip(got, want, strict=True):
        if isinstance(w, (np.ndarray, np.generic)) or not isinstance(g, (bool, int, float, complex)):
            gd, wd = np.asarray(g), np.asarray(w)
            assert gd.shape == wd.shape, f"{what}: shape {gd.shape}, NumPy has {wd.shape}"
            assert gd.dtype == wd.dtype, f"{what}: dtype {gd.dtype}, NumPy has {wd.dtype}"
            if isinstance(w, (np.ndarray, np.generic)):
                # A traced value without axes is a number wherever it is returned.
                arrays = isinstance(g, np.ndarray), isinstance(w, np.ndarray)
                fine = arrays[0] == arrays[1] or (arrays[1] and not w.shape and what != "plain")
                assert fine, f"{what}: {type(g).__name__}, NumPy has {type(w).__name__}"
        g, w = np.asarray(g), np.asarray(w)
        assert np.isfinite(w).all() or not np.isfinite(g).all(), f"{what}: {_few(g)}, NumPy has {_few(w)}"
        if np.isfinite(w).all():
            error, size = numeric.distance(g.astype(complex), w.astype(complex)), numeric.size(w)
            assert error <= tolerance * size, f"{what}: {_few(g)}, NumPy has {_few(w)}"


def check_plain(draw: Draw, want: Any, rng: np.random.Generator) -> None:
    """Check that the function gives NumPy's result for plain arguments."""
    if draw.call.ours is draw.call.theirs:
        return
    same(draw.of_copies(draw.call.ours)(*draw.primals), want, "plain", draw.leaves)


def check_traced(draw: Draw, want: Any, rng: np.random.Generator) -> None:
    """Check that value, dtype, shape and class of the result are equal for traced arguments, in both modes."""
    if not draw.traced:
        return
    fun = draw.of(draw.call.ours, fnp.zeros)
    value = vjp(numbers(fun), *draw.primals)[0]
    same(value, numbers(lambda: want)(), "value of vjp", draw.leaves)
    tangents = tuple(random_like(x, rng) for x in draw.primals)
    same(jvp(numbers(fun), draw.primals, tangents)[0], numbers(lambda: want)(), "value of jvp", draw.leaves)


def check_derivatives(draw: Draw, want: Any, rng: np.random.Generator) -> None:
    """Check that both modes give one derivative, that of NumPy's function, to second order."""
    if not draw.traced:
        return
    smooth = numbers(draw.of(draw.call.ours, fnp.zeros))
    tangents = tuple(random_like(x, rng) for x in draw.primals)
    outs, pull = vjp(smooth, *draw.primals)
    cts = tuple(random_like(out, rng) for out in outs)
    pulled = pull(cts)
    assert_like(pulled, draw.primals, "cotangent")
    pushed = jvp(smooth, draw.primals, tangents)[1]
    assert_like(pushed, outs, "tangent")
    _finite(outs)
    tolerance = coarse(*draw.leaves, *outs)
    if not np.isfinite(np.concatenate([np.ravel(x) for x in (*pulled, *pushed)])).all():
        both = [np.isfinite(x).all() for side in (pulled, pushed) for x in side]
        assert not any(both) or len(both) > 2, "a derivative is not finite in one mode alone"
        raise UnfitError("not finite")
    assert_transposed(cts, pushed, pulled, tangents, "two modes", tolerance)
    if tolerance > 1e-9 or not draw.call.exact:
        return
    _against_differences(numbers(draw.of_copies(draw.call.theirs)), draw.primals, tangents, pushed, "derivative")
    others = tuple(random_like(x, rng) for x in draw.primals)

    def pulled_at(*x: Any) -> Any:
        return vjp(smooth, *x)[1](cts)

    second = jvp(pulled_at, draw.primals, others)[1]
    _finite(second, "second derivative")
    _against_differences(pulled_at, draw.primals, others, second, "second derivative", 1e3)
    twice = vjp(pulled_at, *draw.primals)[1](tangents)
    assert_transposed(tangents, second, twice, others, "second derivative in two modes", 1e-7)


def _finite(found: Sequence[Any], what: str = "") -> None:
    """Check the numbers for being finite; without finite values there is nothing to compare."""
    if not all(np.isfinite(np.asarray(x)).all() for x in found):
        assert not what, f"{what} is not finite where the value is"
        raise UnfitError("not finite")


def _against_differences(
    fun: Callable[..., Any], x: Sequence[Any], t: Sequence[Any], got: Sequence[Any], what: str, slack: float = 10.0
) -> None:
    """Compare with differences, if the differences of two steps agree and no kink is near."""
    h = 1e-7
    try:
        found = numeric.differences(fun, x, t)
        middle = fun(*x)
        sides = [
            [np.asarray((np.asarray(b) - m) / s) for b, m in zip(fun(*numeric.moved(x, t, s)), middle, strict=True)]
            for s in (h, -h)
        ]
    except Exception as error:
        raise UnfitError(str(error)) from error
    for g, (d, allowed), right, left in zip(got, found, *sides, strict=True):
        size = numeric.size(d)
        unsure = not np.isfinite(d).all() or allowed > 1e-6 * size
        if unsure or numeric.distance(right, left) > 1e-4 * size or numeric.distance(right, d) > 1e-4 * size:
            raise UnfitError("rough")
        error = numeric.distance(np.asarray(g), d)
        assert error <= slack * allowed + 1e-9 * size, f"{what}: {_few(g)}, differences give {_few(d)}"


def _few(x: Any) -> str:
    return np.array2string(np.asarray(x).ravel()[:4], precision=6)


def check_vmap(draw: Draw, want: Any, rng: np.random.Generator) -> None:
    """Check that a batch gives the results of a loop, and its derivatives those of the loop."""
    if not draw.traced:
        return
    if not all(isinstance(x, (np.ndarray, np.generic)) for x in draw.primals):
        return  # Python's numbers are weak, arrays of them are not
    fun, plain = numbers(draw.of(draw.call.ours, fnp.zeros)), numbers(draw.of_copies(draw.call.theirs))
    batch = [[x, (np.asarray(x) * 1.01).astype(np.asarray(x).dtype)[()]] for x in draw.primals]
    try:
        wants = [plain(*[b[k] for b in batch]) for k in range(2)]
        stacked = [np.stack(pair) for pair in zip(*wants, strict=True)]
    except Exception as error:
        raise UnfitError("no batch") from error
    place = int(rng.integers(2))
    axes = tuple(-1 if place and np.ndim(x) else 0 for x in draw.primals)
    mapped = tuple(np.stack(b, axis) for b, axis in zip(batch, axes, strict=True))
    same(vmap(fun, in_axes=axes)(*mapped), stacked, "vmap", draw.leaves)
    cts = tuple(random_like(out, rng) for out in wants[0])

    def pulled(*x: Any) -> Any:
        return vjp(fun, *x)[1](cts)

    got = vmap(pulled, in_axes=axes)(*mapped)
    each = [pulled(*[b[k] for b in batch]) for k in range(2)]
    same(got, [np.stack(pair) for pair in zip(*each, strict=True)], "vmap of vjp", draw.leaves)
