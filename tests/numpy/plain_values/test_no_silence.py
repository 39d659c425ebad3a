"""Every public function of NumPy on a traced array: the derivative is right, or an error says what to do.

The tests call functions with many lists of arguments. Where NumPy accepts the arguments and the result changes with
the argument, the derivative in both modes must change equally. Documented zeros are listed with their reasons.
"""

import inspect
import warnings
from contextlib import suppress

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import jvp, vjp

pytestmark = pytest.mark.usefixtures("written")

#: Values without ties and integer ratios, in the domain of most functions; matrices are symmetric for functions that
#: read one triangle.
POINTS = [
    np.array([[0.831, 0.247, 0.119], [0.247, 0.913, 0.178], [0.119, 0.178, 0.719]]),
    np.array([0.317, 0.423, 0.771]),
    np.float64(0.613),
]
STEP = 1e-6
X = object()
MASK = np.array([True, False, True])
TEMPLATES = [
    (X,), (X, X), (X, 2), (2, X), (X, X, X), (X, 1, 0), ([X, X],), (X, [0, 1]), ([0, 1], X), (X, X, 2), (X, 0, X),
    ("i...->...", X), ("...,...->...", X, X), (np.sum, 0, X), (np.sum, X), (np.sum, X, 0), (X, (0, 1)), (X, (3, 1)),
    (X, float), ((2, 3), X), (X, [0.15, 0.57, 0.99], [1.0, 2.0, 3.0]), ([0.15, 0.57, 0.97], X, X), (["a", "b"], X),
    (True, X), (MASK, X), (5, X, X), (X, 5, X), ([MASK] * 3, X, X), (X, 1, X, 1), (0, X, 3), ([True], [X]),
    ([MASK], [X], 1.0), (lambda v: v * 2, X), (X, [MASK], [lambda v: v * 2]), (4, [1, 2], [X, X]),
    ([0.1, 0.5, 0.9], X, 1),
    (X, np.array([[0, 1, 1]]), 0), (X, np.array([0, 1, 1]), 0), (X, -1), (X, 1, 2), (1, X, 0.333), (0.333, X),
    (X, X, 1, 1), (X, X, X, [[1.0, 0.5], [0.3, 0.2]]),
]  # fmt: skip
POLYNOMIALS = ("polynomial", "chebyshev", "legendre", "hermite", "hermite_e", "laguerre", "polyutils")
MODULES = {
    "numpy": np,
    "numpy.linalg": np.linalg,
    "numpy.fft": np.fft,
    "numpy.emath": np.emath,
    "numpy.lib.stride_tricks": np.lib.stride_tricks,
    "numpy.random": np.random,
    "numpy.ma": np.ma,
    **{f"numpy.polynomial.{name}": getattr(np.polynomial, name) for name in POLYNOMIALS},
}
#: Functions that write files, change the process, or return uninitialized memory.
NOT_CALLED = frozenset(
    [
        "empty",
        "empty_like",
        "test",
        "info",
        "save",
        "savez",
        "savez_compressed",
        "savetxt",
        "fromregex",
        "show_config",
        "show_runtime",
        "seterr",
        "seterrcall",
        "setbufsize",
        "set_printoptions",
        "set_state",
        "seed",
        "set_bit_generator",
    ]
)


def functions():
    for home, module in MODULES.items():
        for name, function in vars(module).items():
            taken = not name.startswith("_") and name not in NOT_CALLED
            if taken and callable(function) and not inspect.isclass(function):
                yield f"{home}.{name}", function


FUNCTIONS = dict(functions())


def filled(template, x):
    if template is X:
        return x
    if type(template) in (list, tuple):
        return type(template)([filled(part, x) for part in template])
    return template


def numbers(out):
    """Return the floating results, which can have a derivative."""
    if isinstance(out, (tuple, list)):
        return [leaf for part in out for leaf in numbers(part)]
    if isinstance(out, dict):
        return numbers(list(out.values()))
    if isinstance(out, np.ma.MaskedArray):
        return numbers(np.asarray(out))
    if isinstance(out, (float, complex)):
        return [out]
    return [out] if isinstance(getattr(out, "dtype", None), np.dtype) and out.dtype.kind in "fc" else []


def called(function, template):
    def call(x):
        np.random.seed(0)
        return numbers(function(*filled(template, x)))

    return call


def direction(x):
    return np.cos(3 * x) + 0.3  # as symmetric as x


def differences(call, x, t):
    """Return differences of NumPy's results along ``t``; None if NumPy refuses the arguments or nothing changes."""
    try:
        ends = [[np.array(leaf) for leaf in call(x + sign * STEP * t)] for sign in (1, -1)]
    except Exception:  # NumPy may raise any error for such arguments
        return None
    if [leaf.shape for leaf in ends[0]] != [leaf.shape for leaf in ends[1]]:
        return None
    found = [(a - b) / (2 * STEP) for a, b in zip(*ends, strict=True)]
    steady = all(
        np.isfinite(d).all() and np.abs(d).max(initial=0) < 1e4 for d in found
    )  # otherwise the result jumped or overflowed
    return found if steady and any(np.abs(d).max(initial=0) > 1e-6 for d in found) else None


def assert_close(got, want, what):
    assert len(got) == len(want), what
    for g, w in zip(got, want, strict=True):
        assert np.shape(g) == np.shape(w), what
        np.testing.assert_allclose(g, w, rtol=1e-3, atol=1e-4, err_msg=what)


def real_sum(leaves):
    return [fnp.sum(fnp.real(leaf)) for leaf in leaves]


def derivatives(call, x, t):
    """Yield the tangents, and the products of ``t`` with the cotangents; skip a mode that raises."""
    with suppress(Exception):
        yield jvp(call, (x,), (t,))[1], list
    with suppress(Exception):
        _, pullback = vjp(lambda x: real_sum(call(x)), x)
        count = len(call(x))
        ones = [[np.float64(i == j) for i in range(count)] for j in range(count)]
        yield [np.sum(pullback(ct)[0] * t) for ct in ones], lambda want: [np.sum(w.real) for w in want]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_derivative_is_lost_silently(name):
    warnings.simplefilter("ignore")
    for x in POINTS:
        t = direction(x)
        for template in TEMPLATES:
            call = called(FUNCTIONS[name], template)
            want = differences(call, x, t)
            if want is None:
                continue
            for got, part in derivatives(call, x, t):
                assert_close(got, part(want), f"{name} of {template} at {np.ndim(x)} axes")


def test_lost_derivative_is_found(monkeypatch):
    from funcgrad.transforms import stop_gradient

    monkeypatch.setitem(FUNCTIONS, "numpy.sin", lambda x: np.sin(stop_gradient(x) if hasattr(x, "_trace") else x))
    with pytest.raises(AssertionError, match="numpy\\.sin"):
        test_no_derivative_is_lost_silently("numpy.sin")


@pytest.mark.parametrize("home", MODULES)
@pytest.mark.filterwarnings("ignore")
def test_expected_number_of_functions_is_compared(home):
    """The test above really compares the expected number of functions."""
    calls = {
        name: [called(function, template) for template in TEMPLATES]
        for name, function in FUNCTIONS.items()
        if name.rpartition(".")[0] == home
    }
    moved = [
        name
        for name, several in calls.items()
        if any(differences(call, x, direction(x)) is not None for x in POINTS for call in several)
    ]
    assert len(moved) > len(calls) / 2, sorted(set(calls) - set(moved))
