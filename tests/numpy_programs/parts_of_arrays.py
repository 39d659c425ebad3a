"""Functions of random programs that work on arrays in ways of NumPy and SciPy: records, masks, images, inner solves."""

import math

import numpy as np
from scipy import integrate, interpolate, linalg, ndimage, optimize, signal, sparse, special, stats
from scipy.sparse import linalg as sparse_linalg


def records(v, s):
    table = np.zeros(3, dtype=[("mass", float), ("at", float, 2), ("n", int)])
    table["mass"] = v[:3]
    table["at"][:, 0] = s
    table["n"] = [1, 2, 3]
    table[1]["mass"] *= 0.5
    table["at"][2] = v[1:3]
    return (table["mass"] * table["n"]).sum() + table["at"].sum() * 0.3


def record_array(v, s):
    table = np.rec.fromarrays([np.arange(4.0), np.ones(4)], names="x,y")
    table.x[:] = v
    table.y[1:] = s
    return table.x @ table.y


def objects(v, s):
    cells = np.empty(3, dtype=object)
    cells[:] = [v[0], s, v[1:]]
    cells[1] = cells[1] * 2
    return cells[0] + cells[1] + cells[2].sum()


def parts_written(v, s):
    z = np.zeros(4, dtype=complex)
    z.real = v
    z.imag[1:] = s
    z.real[0] += 0.3
    z.imag *= 0.5
    z[2] *= 1j
    return np.abs(z + 1.7).sum() + np.angle(z[0] + 2.0)


def pairs_viewed(v):
    z = np.zeros(2, dtype=complex)
    z.view(float)[:] = v
    z *= 1 + 0.5j
    return z.view(float).reshape(2, 2)


def strided(v):
    a = np.lib.stride_tricks.as_strided(v, (3, 2), (v.strides[0], v.strides[0]))
    return np.append(a.prod(axis=1), a[0, 0])


def windows_written(v, s):
    out = np.zeros(6)
    view = np.lib.stride_tricks.sliding_window_view(out, 4, writeable=True)
    view[1] = v
    view[2, ::2] += s
    return out[1:5]


def iterated(v, s):
    out = np.zeros(4)
    with np.nditer([v, out], op_flags=[["readonly"], ["readwrite"]], flags=["multi_index"]) as it:
        for a, b in it:
            b[...] = a * s + it.multi_index[0]
    return out


def enumerated(m):
    total = 0.0
    for (i, j), e in np.ndenumerate(m):
        if i <= j:
            total += e * (i + 1) / (j + 2)
    for i, j in np.ndindex(2, 2):
        total -= m[i, j] * 0.3
    return total


def red_black(m, s):
    """Sweeps over a grid with slices in steps of two."""
    u = m.copy()
    for _ in range(2):
        u[1:-1:2, 1:-1] = 0.25 * (u[:-2:2, 1:-1] + u[2::2, 1:-1] + u[1:-1:2, :-2] + u[1:-1:2, 2:])
        u[2:-1:2, 1:-1] += 0.1 * s
        u[0], u[:, -1] = u[-1], s
    return u


def thomas(v):
    """Solve a tridiagonal system in place."""
    n = len(v)
    b, d = np.full(n, 3.0), v.copy()
    for i in range(1, n):
        w = -0.5 / b[i - 1]
        b[i] -= w * 0.7
        d[i] -= w * d[i - 1]
    x = np.empty(n)
    x[-1] = d[-1] / b[-1]
    for i in range(n - 2, -1, -1):
        x[i] = (d[i] - 0.7 * x[i + 1]) / b[i]
    return x


def factored(m):
    """Cholesky's factor by loops."""
    a = m @ m.T * 0.05 + 2 * np.eye(len(m))
    lower = np.zeros_like(a)
    for j in range(len(a)):
        lower[j, j] = math.sqrt(a[j, j] - lower[j, :j] @ lower[j, :j])
        for i in range(j + 1, len(a)):
            lower[i, j] = (a[i, j] - np.dot(lower[i, :j], lower[j, :j])) / lower[j, j]
    return lower


def eliminated(m, v):
    """Gauss elimination with pivoting."""
    a = np.column_stack([m * 0.1 + np.diag([2.0, -1.7, 1.9, 2.3]), v])
    n = len(v)
    for k in range(n):
        p = k + np.argmax(np.abs(a[k:, k]))
        a[[k, p]] = a[[p, k]]
        for i in range(k + 1, n):
            a[i, k:] -= a[i, k] / a[k, k] * a[k, k:]
    for k in reversed(range(n)):
        a[k, n] = (a[k, n] - a[k, k + 1 : n] @ a[k + 1 : n, n]) / a[k, k]
    return a[:, n]


def masked(v, s, c):
    m = np.ma.masked_where(v < c, v * s)
    m[0] = s
    m += 0.1
    return m.sum() * 0.3 + np.ma.average(m, weights=[1, 2, 3, 4]) + m.filled(0.5)[3]


def counted(v, s):
    """A histogram with weights, positions from constants."""
    edges = np.linspace(0, 1, 4)
    heights, _ = np.histogram([0.1, 0.4, 0.45, 0.9], bins=edges, weights=v * s)
    where = np.digitize([0.2, 0.7, 0.95], edges) - 1
    return heights[where] + np.searchsorted(edges, 0.5)


def inner_minimum(v, s):
    def fun(p):
        return ((p - v[:2]) ** 2).sum() + 0.1 * s * p[0] * p[1] + p[0] ** 4

    def slope(p):
        return 2 * (p - v[:2]) + 0.1 * s * p[::-1] + [4 * p[0] ** 3, 0.0]

    return optimize.minimize(fun, [0.1, 0.2], jac=slope, tol=1e-11).x


def inner_fit(v):
    t = np.array([0.0, 0.5, 1.0, 1.5])
    found = optimize.least_squares(lambda p: p[0] + p[1] * t - v, [0.0, 0.0], xtol=1e-14, ftol=1e-14, gtol=1e-14)
    return found.x


def inner_curve_fit(v):
    t = np.array([0.0, 0.5, 1.0, 1.5])
    slopes = np.column_stack([np.ones(4), np.exp(-t)])
    return optimize.curve_fit(lambda t, a, b: a + b * np.exp(-t), t, v, jac=lambda t, a, b: slopes, xtol=1e-14)[0]


def inner_root(v, s):
    return optimize.fsolve(
        lambda z: [z[0] + 0.2 * z[1] ** 2 - v[0], z[1] - 0.1 * math.sin(z[0]) - s], [0.0, 0.0], xtol=1e-13
    )


def fixed(s):
    return optimize.fixed_point(lambda t: 0.4 * np.cos(t) + 0.1 * s, 0.3, xtol=1e-13)


def pendulum(s, v):
    def rate(t, y, damping):
        return [y[1], -math.sin(y[0]) - damping * y[1]]

    return integrate.solve_ivp(rate, (0, 1), v[:2], args=(s * s,), t_eval=[0.5, 1.0], rtol=1e-9, atol=1e-11).y[0]


def decay(s, v):
    return integrate.odeint(
        lambda y, t, k: -k * y + 0.1 * y[::-1], v, [0, 0.4, 1.0], args=(s * s + 0.1,), rtol=1e-10, atol=1e-10
    )[-1]


def events(s):
    def ground(t, y):
        return y[0]

    ground.terminal, ground.direction = True, -1
    found = integrate.solve_ivp(
        lambda t, y: [y[1], -9.8], (0, 10), [s * s + 1.0, 2.0], events=ground, rtol=1e-9, atol=1e-11
    )
    return found.t_events[0][0]


def resampled(v, kind):
    x, at = np.array([0, 1, 2, 3.0]), np.array([0.4, 1.3, 1.8, 2.7])
    made = {
        "pchip": lambda: interpolate.PchipInterpolator(x, v),
        "akima": lambda: interpolate.Akima1DInterpolator(x, v),
        "linear": lambda: interpolate.interp1d(x, v),
        "cubic": lambda: interpolate.interp1d(x, v, kind="cubic", fill_value="extrapolate"),
        "barycentric": lambda: interpolate.BarycentricInterpolator(x, v),
        "krogh": lambda: interpolate.KroghInterpolator(x, v),
        "spline": lambda: interpolate.UnivariateSpline(x, v, s=0),
        "make": lambda: interpolate.make_interp_spline(x, v, k=3),
        "rep": lambda: lambda at: interpolate.splev(at, interpolate.splrep(x, v)),
        "radial": lambda: (
            lambda at: interpolate.RBFInterpolator(x[:, None], v, kernel="gaussian", epsilon=0.7)(at[:, None])
        ),
    }[kind]()
    return made(at)


def gridded(m, s, v, method="linear"):
    axis = np.arange(4.0)
    grid = interpolate.RegularGridInterpolator((axis, axis), m, method=method, bounds_error=False, fill_value=None)
    at = 1.5 + np.tanh(np.array([[s, v[0]], [v[1], 0.3]]))
    return grid(at).sum()


def moved(m, s):
    at = np.array([[0.4, 1.2, 2.3, 1.7], [1.1, 0.3, 2.2, 2.6]]) + 0.1 * np.tanh(s)
    return ndimage.map_coordinates(m, at, order=1)


def filtered(v, s):
    b, a = signal.butter(2, 0.3)
    sos = signal.butter(2, 0.4, output="sos")
    return signal.sosfilt(sos, signal.lfilter(b, a, v)) + signal.detrend(v) * s


def spectrum(v, s):
    data = np.concatenate([v, v[::-1] * s, v**2, [s, 0.1, 0.2, 0.3]])
    return signal.welch(data, nperseg=8)[1][:4]


def sparse_solved(v, s):
    a = sparse.diags_array([np.full(4, 3.0), np.ones(3)], offsets=[0, 1], format="csc") + s * s * sparse.eye_array(4)
    return sparse_linalg.spsolve(a.tocsc(), v)


def sparse_made(v):
    a = sparse.coo_array((v, ([0, 1, 2, 3], [1, 0, 3, 2])), shape=(4, 4)).tocsr()
    return a @ np.arange(1.0, 5.0) + a.T @ v * 0.1


def assembled(v, s):
    """Assembly of elements as in a finite element program."""
    k = sparse.lil_array((5, 5))
    local = np.array([[1.0, -1.0], [-1.0, 1.0]])
    full = np.zeros((5, 5))
    for e in range(4):
        full[np.ix_([e, e + 1], [e, e + 1])] += local * (v[e] ** 2 + 1.0)
    free = slice(1, 5)
    load = np.zeros(5)
    load[-1] = s
    return np.linalg.solve(full[free, free] + 0.1 * np.eye(4), load[free]) + k.shape[0] * 0.0


def mixture(v, s):
    weights = special.softmax(v[:2])
    parts = [stats.norm(v[0], 1.1), stats.t(5, loc=v[1], scale=0.8)]
    return math.log(sum(w * part.pdf(s) for w, part in zip(weights, parts, strict=True)))


def likelihood(v, s):
    data = np.array([0.3, 1.1, 0.7])
    return (
        stats.gamma(a=s * s + 0.5, scale=1.2).logpdf(data)
        + stats.multivariate_normal(v[:2], np.eye(2)).logpdf([0.1, 0.4])
    ).sum() * 0.1


def decomposed(m):
    p, lower, upper = linalg.lu(m * 0.1 + np.diag([2.0, 3.0, 4.0, 5.0]))
    return (p @ lower)[2] + upper[:, 3]


def banded(v, s):
    bands = np.array([np.zeros(4), np.full(4, 3.0), np.ones(4) * 0.4])
    bands[1] += s * s
    return linalg.solve_banded((1, 1), bands, v)


def kalman(v, s):
    f, h = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    mean, cov, total = np.zeros(2), np.eye(2), 0.0
    for z in v:
        mean, cov = f @ mean, f @ cov @ f.T + 0.1 * np.eye(2)
        innovation, spread = z - h @ mean, h @ cov @ h.T + s * s + 0.1
        gain = cov @ h.T @ np.linalg.inv(spread)
        mean = mean + gain @ innovation
        cov -= gain @ h @ cov
        total += np.log(np.linalg.det(spread)) + innovation @ np.linalg.solve(spread, innovation)
    return float(total) * 0.1


class Workspace:
    """An object made once whose arrays every call overwrites."""

    def __init__(self, n, rate=0.3):
        self.buffer, self.matrix, self.rate = np.zeros(n), np.zeros((n, n)), rate
        self.history, self.cache = [], {}
        self.offset = np.linspace(0.0, 1.0, n)

    def energy(self, v, s):
        self.buffer[:] = v
        self.buffer[1:] -= self.rate * v[:-1]
        np.multiply(self.buffer, self.offset, out=self.buffer)
        return self.buffer @ self.buffer + s

    def filled(self, v):
        self.matrix.fill(0.0)
        for i, e in enumerate(v):
            self.matrix[i, i:] = e
        return self.matrix.sum(axis=1)

    def noted(self, s):
        self.history.clear()
        for k in range(3):
            self.history.append(s * k + (self.history[-1] if self.history else 0.1))
        return self.history[-1]

    def remembered(self, v):
        self.cache.clear()
        for i, e in enumerate(v):
            self.cache[i % 2] = self.cache.get(i % 2, 0.0) * 0.5 + e
        return sum(self.cache.values())

    def __enter__(self):
        self.saved, self.rate = self.rate, self.rate * 2
        return self

    def __exit__(self, *error):
        self.rate = self.saved
