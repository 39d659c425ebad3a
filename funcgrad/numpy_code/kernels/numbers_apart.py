"""Functions of SciPy that treat some values of a parameter apart, such as the power 0 of a Box-Cox transform.

At these values SciPy's code computes without the parameter, so the derivative in it would be 0. Most wrappers here add
that derivative: they compute the formula for all values of the parameter, and again with the parameter as a constant,
and add the difference, which is 0, to SciPy's result. Others compute by a formula that needs no case.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, wraps
from inspect import BoundArguments, Signature, signature
from typing import Any

import numpy as np

import funcgrad.numpy as fnp
from funcgrad.core import Tracer
from funcgrad.errors import NotDifferentiableError
from funcgrad.numpy.plain_values.hints import user_line
from funcgrad.numpy.plain_values.peeking import any_true
from funcgrad.numpy_code.conversions import holds_traced
from funcgrad.numpy_code.examples import with_example_loop
from funcgrad.numpy_code.kernels.wrapping import Built, around
from funcgrad.numpy_code.own import own
from funcgrad.optional import import_scipy


def _is_apart(p: Any, *numbers: float) -> bool:
    """Whether ``p`` is traced and one of ``numbers``, in any example of a batch."""
    return isinstance(p, Tracer) and any_true(lambda p: np.isin(p, numbers), p)


def _bound(parameters: Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundArguments | None:
    """Return the arguments by name; None for calls that the signature does not show, such as SciPy's own."""
    try:
        return parameters.bind(*args, **kwargs)
    except TypeError:
        return None


def _wrapper(name: str, numbers: tuple[float, ...], formula: Callable[..., Any]) -> Callable[..., Any]:
    """Return the wrapper for a function of SciPy whose parameter ``name`` has ``numbers`` that are treated apart.

    ``formula(p, arguments)`` computes the result for each value of the parameter, from all arguments by name.
    """

    def around(built: Callable[..., Any]) -> Callable[..., Any]:
        parameters = signature(built)

        def call(*args: Any, **kwargs: Any) -> Any:
            bound = _bound(parameters, args, kwargs)
            p = None if bound is None else bound.arguments.get(name)
            if bound is None or not _is_apart(p, *numbers):
                return built(*args, **kwargs)
            policy = bound.arguments.get("nan_policy", "propagate")
            if policy != "propagate":
                raise NotDifferentiableError(
                    f"{built.__name__}: where {name} is one of {numbers} it has a derivative only without NaN, got "
                    f"nan_policy={policy!r}{user_line()}. Leave the NaN out before the call."
                )
            fixed = own("transforms.stopping").stop_gradient(p)
            bound.arguments[name] = fixed
            found = built(*bound.args, **bound.kwargs)
            bound.apply_defaults()
            return found + (formula(p, bound.arguments) - formula(fixed, bound.arguments))

        return call

    return around


def _along(x: Any, axis: Any) -> tuple[Any, Any]:
    """Return an array and the axis to reduce; without an axis, the flattened array and its axis."""
    x = fnp.asarray(x)
    return (fnp.ravel(x), 0) if axis is None else (x, axis)


def _boxcox_llf(lmb: Any, given: dict[str, Any]) -> Any:
    x, axis = _along(given["data"], given.get("axis", 0))
    variance = fnp.var(own("scipy.special").boxcox(x, lmb), axis)
    return (lmb - 1) * fnp.sum(fnp.log(x), axis) - fnp.shape(x)[axis] / 2 * fnp.log(variance)


def _yeojohnson(lmbda: Any, given: dict[str, Any]) -> Any:
    x, special = fnp.asarray(given["x"]), own("scipy.special")
    above = special.boxcox1p(fnp.where(x >= 0, x, 0), lmbda)
    return fnp.where(x >= 0, above, -special.boxcox1p(fnp.where(x >= 0, 0, -x), 2 - lmbda))


def _power_mean(p: Any, given: dict[str, Any]) -> Any:
    special = own("scipy.special")
    options = {"axis": given["axis"], "weights": given["weights"], "keepdims": given.get("keepdims", False)}
    return special.inv_boxcox(fnp.average(special.boxcox(given["a"], p), **options), p)


def _divergence(lambda_: Any, given: dict[str, Any]) -> Any:
    """Compute the Cressie-Read statistic; near -1 it is that of the other power with the frequencies exchanged."""
    observed, expected = fnp.asarray(given["f_obs"]), given["f_exp"]
    if expected is None:
        expected = fnp.mean(observed, given["axis"], keepdims=True)
    is_low = lambda_ < -0.5
    first, second = fnp.where(is_low, expected, observed), fnp.where(is_low, observed, expected)
    power = fnp.where(is_low, -1 - lambda_, lambda_)
    ratio = fnp.where(first == 0, 1, first) / second
    terms = fnp.where(first == 0, 0, first) * own("scipy.special").boxcox(ratio, power)
    return 2 * fnp.sum(terms, given["axis"]) / (power + 1)


def _with_divergence(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``_power_divergence``, whose result has a statistic and its probability."""
    parameters = signature(built)

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = parameters.bind(*args, **kwargs)
        power = bound.arguments["lambda_"]
        if not _is_apart(power, 1, 0, -1):
            return built(*args, **kwargs)
        bound.arguments["lambda_"] = fixed = own("transforms.stopping").stop_gradient(power)
        found = built(*bound.args, **bound.kwargs)
        bound.apply_defaults()
        given = bound.arguments
        change = _divergence(power, given) - _divergence(fixed, given)
        observed = fnp.asarray(given["f_obs"])
        shape = fnp.broadcast_shapes(observed.shape, fnp.shape(given["f_exp"]) if given["f_exp"] is not None else ())
        n = math.prod(shape) if given["axis"] is None else shape[given["axis"]]
        density = fnp.exp(own("scipy.stats").chi2.logpdf(found[0], n - 1 - fnp.asarray(given["ddof"])))
        return type(found)(found[0] + change, found[1] - density * change)

    return call


def _scaled_range(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``iqr``, which divides by a scale that is not 1."""
    parameters = signature(built)

    def iqr(*args: Any, **kwargs: Any) -> Any:
        bound = _bound(parameters, args, kwargs)
        scale = None if bound is None else bound.arguments.get("scale")
        if bound is None or not isinstance(scale, Tracer):
            return built(*args, **kwargs)
        bound.arguments["scale"] = 1.0
        return built(*bound.args, **bound.kwargs) / scale

    return iqr


@around
def _corrected_variance(built: Built, x: Any, /, *, axis: Any = None, correction: Any = 0, **options: Any) -> Any:
    """Wrap ``_xp_var``, which divides by the degrees of freedom if the correction is not 0."""
    if not _is_apart(correction, 0):
        return built(x, axis=axis, correction=correction, **options)
    found = built(x, axis=axis, correction=0, **options)
    counted = ~fnp.isnan(x) if options.get("nan_policy") == "omit" else fnp.ones(fnp.shape(x), bool)
    n = fnp.sum(counted, axis, keepdims=options.get("keepdims", False))
    return found * (n / (n - correction))


@around
def _highpass(built: Built, b: Any, a: Any, wo: Any = 1.0) -> Any:
    """Wrap ``lp2hp``, which leaves out the powers of a frequency of 1."""
    if not _is_apart(wo, 1):
        return built(b, a, wo)
    b, a = built(b, a, 1.0)
    n, m = len(a), len(b)
    return b * wo ** np.arange(n - m, n), a * wo ** np.arange(n)


def _bilinear(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``bilinear``, which drops leading coefficients of 0: the degree of the result may stay without them."""
    if len(import_scipy("signal.bilinear", "scipy.signal").bilinear([0.0, 1.0], [1.0])[1]) > 1:
        return built  # SciPy 1.15 keeps them

    def bilinear(b: Any, a: Any, fs: Any = 1.0) -> Any:
        given = [fnp.atleast_1d(x) for x in (b, a)]
        if not any(x.ndim == 1 and _is_apart(x[0], 0) for x in given):
            return built(b, a, fs)
        count = max(len(fnp.trim_zeros(x, "f")) for x in given)
        low, high = np.array([1.0, 1.0]), np.array([-1.0, 1.0])  # z + 1 and z - 1, lowest powers first
        power = np.polynomial.polynomial.polypow
        terms = np.array([np.convolve(power(low, count - 1 - k), power(high, k)) for k in range(count)])
        scale = (2.0 * fnp.asarray(fs)) ** (np.arange(count) - (count - 1) / 2)
        found = [(x[::-1][:count] * scale[: len(x)]) @ terms[: len(x), ::-1] for x in given]
        normalize = import_scipy("signal.bilinear", "scipy.signal").normalize
        return own("numpy_code").run_anywhere(normalize, tuple(found), {})

    return bilinear


def _linear_in_numerator(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that is linear in the coefficients of a numerator, and drops those at its ends that are 0.

    The derivative is that in coefficients that are 1 more.
    """

    @wraps(built)
    def call(num: Any, den: Any, *args: Any, **options: Any) -> Any:
        if not holds_traced([num]):
            return built(num, den, *args, **options)
        num = fnp.atleast_1d(num)
        if not (_is_apart(num[..., 0], 0) or _is_apart(num[..., -1], 0)):
            return built(num, den, *args, **options)
        fixed = own("transforms.stopping").stop_gradient(num)
        found, moved, still = [built(x, den, *args, **options) for x in (fixed, num + 1.0, fixed + 1.0)]
        return tuple([x + (a - b) if x.shape == a.shape else x for x, a, b in zip(found, moved, still, strict=True)])

    call.__module__ = __name__  # else it would be rebuilt
    return call


@around
def _whole_numerator(built: Built, self: Any, *system: Any, **options: Any) -> None:
    """Wrap ``TransferFunction.__init__``, which drops leading coefficients of 0: traced ones stay."""
    built(self, *system, **options)
    if len(system) != 2 or not holds_traced(system[:1]):
        return
    num = fnp.atleast_1d(system[0])
    cut = num.shape[-1] - self.num.shape[-1]
    kept = min(cut, len(self.den) - self.num.shape[-1])
    if kept > 0:
        first = num[..., cut - kept : cut] / fnp.trim_zeros(fnp.atleast_1d(system[1]), "f")[0]
        self.num = fnp.concatenate([first.reshape(*self.num.shape[:-1], kept), self.num], axis=-1)


def _hankel_coefficients(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``fhtcoeff``, which computes logarithms of gamma functions at poles, and then replaces the result."""

    def fhtcoeff(n: int, dln: Any, mu: Any, offset: Any = 0.0, bias: Any = 0.0, inverse: bool = False) -> Any:
        special, stop_gradient = own("scipy.special"), own("transforms.stopping").stop_gradient
        upper, lower = [(mu + 1.0 + sign * bias) / 2 for sign in (1, -1)]
        pole, other = [(x <= 0) & (x == fnp.floor(x)) for x in (upper, lower)]
        if not holds_traced((dln, mu, offset, bias)) or not any(any_true(lambda p: p, p) for p in (pole, other)):
            return built(n, dln, mu, offset, bias, inverse)
        y = np.pi * np.arange(1, n // 2 + 1) / (n * dln)
        over, under = [special.loggamma(x + 1j * y) for x in (upper, lower)]
        angle = over.imag + under.imag + 2 * y * (math.log(2) - offset)
        rest = fnp.exp(over.real - under.real + math.log(2) * bias) * fnp.exp(1j * angle)
        first = built(n, *map(stop_gradient, (dln, mu, offset, bias)), inverse)[:1]
        if any_true(lambda p: p, pole):  # SciPy's 0 or infinity there has no derivative in mu and bias
            first = first + fnp.sqrt(upper - stop_gradient(upper))
        else:
            quotient = 2.0**bias * special.gamma(upper) * special.rgamma(lower)
            first = first + (quotient - stop_gradient(quotient))
        last = rest[-1:].real + 0j if n % 2 == 0 else rest[-1:]
        return fnp.concatenate([first, rest[:-1], last])

    return with_example_loop(fhtcoeff, "scipy.fft.fht")


def _initial_conditions(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``lfiltic``, which divides by a first coefficient that is not 1."""
    if import_scipy("signal.lfiltic", "scipy.signal").lfiltic([1.0], [2.0, 1.0], [1.0])[0] == -1.0:
        return built  # SciPy 1.15 does not divide

    def lfiltic(b: Any, a: Any, y: Any, x: Any = None) -> Any:
        a = fnp.atleast_1d(a)
        if a.ndim != 1 or not _is_apart(a[0], 1):
            return built(b, a, y, x)
        return built(b, fnp.concatenate([fnp.ones(1, a.dtype), a[1:]]), y, x) / a[0]

    return lfiltic


def _response(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``lsim``, which computes without the input if all of it is 0."""

    def lsim(system: Any, U: Any, T: Any, X0: Any = None, interp: bool = True) -> Any:
        is_apart = isinstance(U, Tracer) and not fnp.any(U)
        found = built(system, U, T, X0, interp)
        if not is_apart:
            return found
        moving = U + 1.0
        parts = [built(system, u, T, X0, interp) for u in (moving, own("transforms.stopping").stop_gradient(moving))]
        return (found[0], *[x + (a - b) for x, a, b in zip(found[1:], parts[0][1:], parts[1][1:], strict=True)])

    return with_example_loop(lsim, "scipy.signal.lsim")


@around
def _shares(built: Built, self: Any, n: Any, p: Any, *args: Any) -> Any:
    """Wrap the check of parameters of ``multinomial``, whose last probability is 1 minus the others.

    SciPy computes it so where the sum is not 1, and leaves it as it is where the sum is 1.
    """
    p = fnp.asarray(p)
    have_derivatives = isinstance(p, Tracer) and p.shape
    if have_derivatives:
        fixed, rest = own("transforms.stopping").stop_gradient(p), p[..., :-1]
        moved = fnp.sum(fixed[..., :-1] - rest, axis=-1, keepdims=True)
        p = fnp.concatenate([rest, fixed[..., -1:] + moved], axis=-1)
    return built(self, n, p, *args)


def _distance(built: Built, root: bool) -> Built:
    """Wrap ``minkowski_distance`` and ``minkowski_distance_p``, which add absolute values without a power of 1."""

    def call(x: Any, y: Any, p: Any = 2.0) -> Any:
        if not _is_apart(p, 1):
            return built(x, y, p)
        total = fnp.sum(fnp.abs(fnp.subtract(y, x)) ** p, axis=-1)
        return total ** (1 / p) if root else total

    return call


def _llf_at_zero(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``yeojohnson_llf``, whose ``sign(x) * log1p(abs(x))`` has the slope 1 at 0, where that of ``sign`` is 0."""
    parameters = signature(built)

    def call(*args: Any, **kwargs: Any) -> Any:
        found, bound = built(*args, **kwargs), _bound(parameters, args, kwargs)
        if bound is None or not isinstance(found, Tracer):
            return found
        bound.apply_defaults()
        given = bound.arguments
        data = fnp.asarray(given["data"])
        if not _is_apart(data, 0):
            return found
        x, axis = _along(data, given.get("axis", 0))
        moved = fnp.where(x == 0, x - own("transforms.stopping").stop_gradient(x), 0)
        return found + (given["lmb"] - 1) * fnp.sum(moved, axis, keepdims=given.get("keepdims", False))

    return call


@around
def _distance_of_samples(
    built: Built, p: Any, u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None
) -> Any:
    """Wrap ``_cdf_distance``, which counts equal values at once, as if none of them would move from the others."""
    found = built(p, u_values, v_values, u_weights, v_weights)
    if not isinstance(found, Tracer):
        return found
    u, v = fnp.asarray(u_values) * 1.0, fnp.asarray(v_values) * 1.0
    values = fnp.concatenate([u, v])
    values = fnp.take(values, order := fnp.argsort(values, stable=True))
    if not any_true(lambda step: step == 0, fnp.diff(values)):
        return found
    of_u = order < len(u)
    shares = []
    for inside, weights, first in ((of_u, u_weights, 0), (~of_u, v_weights, len(u))):
        given = fnp.asarray(1.0 if weights is None else weights)
        counted = given if not given.ndim else fnp.take(given, fnp.where(inside, order - first, 0))
        running = fnp.cumsum(fnp.where(inside, counted, 0.0))
        shares.append(running[:-1] / running[-1])
    apart, steps = fnp.abs(shares[0] - shares[1]), fnp.diff(values)
    if p == 1:
        return fnp.sum(apart * steps)
    return fnp.sum(apart**p * steps) ** (1 / p)


@around
def _moment(built: Built, self: Any, order: Any, *args: Any, **kwds: Any) -> Any:
    """Wrap ``rv_generic.moment``, whose formula for the location 0 is without the location.

    E[(loc + scale * y)^n] is the sum of comb(n, k) * loc^(n - k) * scale^k * E[y^k] for k from 0 to n.
    """
    shapes, loc, scale = self._parse_args(*args, **kwds)
    if not isinstance(loc, Tracer):
        return built(self, order, *args, **kwds)
    highest = built(self, order, *shapes)  # it checks the order first
    standard = [*(built(self, k, *shapes) for k in range(int(order))), highest]
    allowed = fnp.logical_and(self._argcheck(*shapes), fnp.asarray(scale) > 0)
    scale, *standard = (fnp.where(allowed, x, 0) for x in (scale, *standard))
    found = sum(math.comb(int(order), k) * loc ** (order - k) * scale**k * y for k, y in enumerate(standard))
    return fnp.where(allowed, found, self.badvalue)[()]


def _near_nodes(x: Any, nodes: Any, weights: Any, values: Any) -> Any:
    """Evaluate a barycentric formula, times the distance from the nearest node, which is smooth at the nodes too."""
    distances = x[:, None] - nodes
    nearest = fnp.argmin(fnp.abs(distances), axis=-1)[:, None]
    is_nearest = nearest == np.arange(fnp.shape(nodes)[0])
    relative = weights / fnp.take(weights, nearest) * fnp.take_along_axis(distances, nearest, axis=-1)
    shares = fnp.where(is_nearest, 1, relative / fnp.where(is_nearest, 1, distances))
    return shares @ values / fnp.sum(shares, axis=-1)[:, None]


def _meets_nodes(x: Any, nodes: Any, *others: Any) -> bool:
    """Whether anything is traced and ``x`` has nodes, in any example of a batch."""
    is_traced = any(isinstance(given, Tracer) for given in (x, nodes, *others))
    return is_traced and any_true(lambda meets: meets, x[:, None] == nodes)


@around
def _polynomial_at_nodes(built: Built, self: Any, x: Any) -> Any:
    """Wrap ``BarycentricInterpolator._evaluate``, which returns the given values at the nodes."""
    if not _meets_nodes(x, self.xi):
        return built(self, x)
    return _near_nodes(x, self.xi, self.wi, self.yi)


@around
def _rational_at_nodes(built: Built, self: Any, z: Any) -> Any:
    """Wrap ``_BarycentricRational.__call__``, which divides infinite numbers at the nodes and repairs the result."""
    flat = fnp.ravel(fnp.asarray(z))
    if not _meets_nodes(flat, self._support_points, self._support_values, self.weights):
        return built(self, z)
    values = fnp.reshape(self._support_values, (fnp.shape(self._support_values)[0], -1))
    found = _near_nodes(flat, self._support_points, self.weights, values)
    if any_true(np.isinf, flat):
        limit = fnp.sum(self.weights[:, None] * values) / fnp.sum(self.weights)
        found = fnp.where(fnp.isinf(flat)[:, None], limit, found)
    found = fnp.reshape(found, fnp.shape(z) + self._shape)
    axis = getattr(self, "_axis", 0)  # which older versions of SciPy lack
    return fnp.moveaxis(found, 0, axis) if fnp.ndim(z) else found


def _extreme_moments(c: Any) -> tuple[Any, ...]:
    """Return mean, variance, skewness and kurtosis of ``genextreme`` near 0, of ``(1 - E**c) / c`` for exponential E.

    The n-th moment is (-1)**n times the n-th difference of gamma(1 + x) with steps c, divided by c**n, a series in c.
    """
    terms, zeta = 16, import_scipy("special.zeta", "scipy.special").zeta
    logs = [0.0, -np.euler_gamma, *[(-1) ** j * zeta(j) / j for j in range(2, terms + 4)]]
    taylor = [1.0]  # of gamma(1 + x), whose logarithm has the coefficients ``logs``
    for k in range(1, len(logs)):
        taylor.append(sum(j * logs[j] * taylor[k - j] for j in range(1, k + 1)) / k)

    def moment(n: int) -> Any:
        total: Any = 0.0
        for k in reversed(range(n, n + terms)):
            difference = sum((-1) ** j * math.comb(n, j) * j**k for j in range(n + 1))
            total = total * c + taylor[k] * difference
        return total

    one, two, three, four = map(moment, range(1, 5))
    spread = two - one**2
    skewness = (three - 3 * one * two + 2 * one**3) / spread**1.5
    return one, spread, skewness, (four - 4 * one * three + 6 * one**2 * two - 3 * one**4) / spread**2 - 3


@around
def _moments_near_zero(built: Built, self: Any, c: Any) -> Any:
    """Wrap ``genextreme_gen._stats``, which returns constants where the shape is nearly 0, and is inexact near them."""
    near = fnp.abs(c) < 0.03
    if not isinstance(c, Tracer) or not any_true(lambda near: near, near):
        return built(self, c)
    fixed = own("transforms.stopping").stop_gradient(c)
    moving, constant = (_extreme_moments(fnp.where(near, x, 0.0)) for x in (c, fixed))
    found = built(self, fnp.where(near, fixed, c))
    return tuple([x + (new - old) for x, new, old in zip(found, moving, constant, strict=True)])


def _points_and_weights(n: int, a: Any, b: Any) -> list[Any]:
    """Return the points of Gauss and Jacobi, their weights and the sum of the weights (Golub and Welsch, 1969)."""
    k, both = np.arange(1.0, n), a + b
    later = 2.0 * k[1:] + both
    rest = (k[1:] + a) * (k[1:] + b) / (later + 1.0) * (k[1:] * (k[1:] + both) / (later - 1.0))
    first = (1.0 + a) * (1.0 + b) / (3.0 + both) * np.ones(min(n - 1, 1))
    beside = fnp.concatenate([2.0 / (2.0 + both) * fnp.sqrt(first), 2.0 / later * fnp.sqrt(rest)])
    middle = (b - a) * both / ((2.0 * k + both) * (2.0 * k + both + 2.0))
    middle = fnp.concatenate([fnp.atleast_1d((b - a) / (2.0 + both)), middle])
    points, vectors = fnp.linalg.eigh(fnp.diag(middle) + fnp.diag(beside, 1) + fnp.diag(beside, -1))
    total = 2.0 ** (both + 1.0) * own("scipy.special").beta(a + 1.0, b + 1.0)
    return [points, total * vectors[0] ** 2, total]


def _roots(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``roots_jacobi`` or ``roots_gegenbauer``, which call other functions where parameters are equal or 0."""
    parameters = signature(built)

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = _bound(parameters, args, kwargs)
        names = [] if bound is None else [name for name in ("alpha", "beta") if name in bound.arguments]
        given = [] if bound is None else [bound.arguments[name] for name in names]
        sums = [given[0] + given[1], given[0] - given[1]] if len(given) == 2 else given
        if bound is None or not any(_is_apart(p, 0.0) for p in sums):
            return built(*args, **kwargs)

        def formula(*p: Any) -> list[Any]:
            return _points_and_weights(int(bound.arguments["n"]), *(p if len(p) == 2 else (p[0] - 0.5, p[0] - 0.5)))

        fixed = list(map(own("transforms.stopping").stop_gradient, given))
        bound.arguments.update(zip(names, fixed, strict=True))
        found = built(*bound.args, **bound.kwargs)
        parts = zip(found, formula(*given), formula(*fixed), strict=False)
        return tuple([x + (moving - constant) for x, moving, constant in parts])

    return call


@around
def _phase_of_chirp(
    built: Built, t: Any, f0: Any, t1: Any, f1: Any, method: str = "linear", vertex_zero: bool = True
) -> Any:
    """Wrap ``_chirp_phase``, which leaves out ``f1`` where it is ``f0``, by the formula divided by that of one tone."""
    if method[:2] not in ("lo", "hy") or not _is_apart(f1 - f0, 0.0):
        return built(t, f0, t1, f1, method, vertex_zero)
    t = fnp.asarray(t)
    if method[0] == "l":
        bend = own("scipy.special").exprel(fnp.log(f1 / f0) * (t / t1))
    else:
        z = (f1 - f0) / f1 * (t / t1)
        near = z == 0
        far = fnp.where(near, 0.5, z)
        bend = fnp.where(near, 1 + z * (1 / 2 + z * (1 / 3 + z / 4)), -fnp.log(fnp.abs(1 - far)) / far)
    return 2 * np.pi * f0 * t * bend


def _arc_of_equal_ends(built: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``geometric_slerp``, whose result at equal ends is without the end, by the shares of both to third order."""

    def geometric_slerp(start: Any, end: Any, t: Any, tol: float = 1e-7) -> Any:
        found = built(start, end, t, tol)
        if not holds_traced((start, end)) or not fnp.array_equal(start, end):
            return found
        start, end, t = fnp.asarray(start), fnp.asarray(end), fnp.ravel(fnp.asarray(t))
        bend = (1 - start @ end) / 3  # zero, but with derivatives

        def share(t: Any) -> Any:
            return (t + t * (1 - t * t) * bend)[:, None]

        path, constant = share(1 - t) * start + share(t) * end, own("transforms.stopping").stop_gradient
        return constant(found) + (path - constant(path))

    return with_example_loop(geometric_slerp, "scipy.spatial.geometric_slerp")


#: Wrappers of rebuilt functions of SciPy.
NUMBERS_APART: dict[tuple[str, str], Callable[[Any], Callable[..., Any]]] = {
    ("scipy.fft._fftlog_backend", "fhtcoeff"): _hankel_coefficients,
    ("scipy.interpolate._bary_rational", "_BarycentricRational.__call__"): _rational_at_nodes,
    ("scipy.interpolate._polyint", "BarycentricInterpolator._evaluate"): _polynomial_at_nodes,
    ("scipy.signal._filter_design", "bilinear"): _bilinear,
    ("scipy.signal._filter_design", "lp2hp"): _highpass,
    ("scipy.signal._lti_conversion", "tf2ss"): _linear_in_numerator,
    ("scipy.signal._ltisys", "TransferFunction.__init__"): _whole_numerator,
    ("scipy.signal._ltisys", "lsim"): _response,
    ("scipy.signal._signaltools", "lfiltic"): _initial_conditions,
    ("scipy.signal._waveforms", "_chirp_phase"): _phase_of_chirp,
    **{("scipy.signal._signaltools", name): _linear_in_numerator for name in ("residue", "residuez")},
    ("scipy.special._orthogonal", "roots_gegenbauer"): _roots,
    ("scipy.special._orthogonal", "roots_jacobi"): _roots,
    ("scipy.spatial._geometric_slerp", "geometric_slerp"): _arc_of_equal_ends,
    ("scipy.spatial._kdtree", "minkowski_distance"): partial(_distance, root=True),
    ("scipy.spatial._kdtree", "minkowski_distance_p"): partial(_distance, root=False),
    ("scipy.stats._continuous_distns", "genextreme_gen._stats"): _moments_near_zero,
    ("scipy.stats._distn_infrastructure", "rv_generic.moment"): _moment,
    ("scipy.stats._morestats", "_yeojohnson_transform"): _wrapper("lmbda", (0, 2), _yeojohnson),
    ("scipy.stats._morestats", "yeojohnson_llf"): _llf_at_zero,
    ("scipy.stats._multivariate", "multinomial_gen._process_parameters"): _shares,
    ("scipy.stats._stats_py", "_cdf_distance"): _distance_of_samples,
    ("scipy.stats._morestats", "boxcox_llf"): _wrapper("lmb", (0,), _boxcox_llf),
    ("scipy.stats._stats_py", "_power_divergence"): _with_divergence,
    ("scipy.stats._stats_py", "_xp_var"): _corrected_variance,
    ("scipy.stats._stats_py", "iqr"): _scaled_range,
    ("scipy.stats._stats_py", "pmean"): _wrapper("p", (0,), _power_mean),
}
