"""Ordinary NumPy algorithms, written without automatic differentiation in mind."""

import math

import numpy as np


def gram_schmidt(x):
    A = x.reshape(3, 3)
    Q = np.zeros((3, 3))
    for j in range(3):
        v = A[:, j].copy()
        for i in range(j):
            v -= np.dot(Q[:, i], A[:, j]) * Q[:, i]
        Q[:, j] = v / np.linalg.norm(v)
    return np.abs(Q).sum()


def lu_decomposition(x):
    A = np.array(x).reshape(3, 3)
    n = len(A)
    L = np.eye(n)
    U = A.copy()
    for k in range(n - 1):
        for i in range(k + 1, n):
            L[i, k] = U[i, k] / U[k, k]
            U[i, k:] = U[i, k:] - L[i, k] * U[k, k:]
    return np.prod(np.diag(U)) + L[2, 0]


def thomas(x):
    a, b, c, d = np.full(4, -1.0), 4.0 + x**2, np.full(4, -1.0), np.arange(1.0, 5.0)
    n = len(d)
    cp = np.zeros(n)
    dp = np.zeros(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / m
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m
    out = np.zeros(n)
    out[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        out[i] = dp[i] - cp[i] * out[i + 1]
    return out.sum()


def runge_kutta(x):
    def lotka(t, y, a, b):
        return np.array([a * y[0] - b * y[0] * y[1], -y[1] + 0.5 * y[0] * y[1]])

    y = np.array([x[0], x[1]])
    t, h = 0.0, 0.1
    history = np.zeros((11, 2))
    history[0] = y
    for i in range(10):
        k1 = lotka(t, y, x[2], 0.3)
        k2 = lotka(t + h / 2, y + h / 2 * k1, x[2], 0.3)
        k3 = lotka(t + h / 2, y + h / 2 * k2, x[2], 0.3)
        k4 = lotka(t + h, y + h * k3, x[2], 0.3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        t += h
        history[i + 1] = y
    return history[-1].sum() + history.mean()


def kalman(x):
    q, r = math.exp(x[0]), math.exp(x[1])
    zs = [0.3, 0.5, 0.1, -0.2, 0.4]
    F = np.array([[1.0, 1.0], [0.0, 1.0]])
    H = np.array([[1.0, 0.0]])
    m, P = np.zeros((2, 1)), np.eye(2)
    loglik = 0.0
    for z in zs:
        m = F.dot(m)
        P = F.dot(P).dot(F.T) + q * np.eye(2)
        S = H.dot(P).dot(H.T) + r
        v = z - H.dot(m)
        K = P.dot(H.T) / S
        m = m + K * v
        P = (np.eye(2) - K.dot(H)).dot(P)
        loglik += -0.5 * (math.log(2 * math.pi * S[0, 0]) + (v**2 / S).item())
    return loglik


def black_scholes(x):
    s, k, t, r, sigma = x
    d1 = (math.log(s / k) + (r + sigma**2 / 2) * t) / (sigma * math.sqrt(t))
    d2 = d1 - sigma * math.sqrt(t)

    def cdf(z):
        return 0.5 * (1 + math.erf(z / math.sqrt(2)))

    return s * cdf(d1) - k * math.exp(-r * t) * cdf(d2)


def binomial_tree(x):
    s, sigma = float(x[0]), float(x[1])
    n = 8
    dt = 1.0 / n
    u = math.exp(sigma * math.sqrt(dt))
    d = 1 / u
    p = (math.exp(0.05 * dt) - d) / (u - d)
    values = np.zeros(n + 1)
    for i in range(n + 1):
        values[i] = max(s * u ** (n - i) * d**i - 1.0, 0)
    for step in range(n):
        for i in range(n - step):
            values[i] = math.exp(-0.05 * dt) * (p * values[i] + (1 - p) * values[i + 1])
    return values[0]


def rosenbrock(x):
    total = 0
    for i in range(len(x) - 1):
        total += 100 * math.pow(x[i + 1] - x[i] ** 2, 2) + (1 - x[i]) ** 2
    return total


def ackley(x):
    n = float(len(x))
    a = -20.0 * math.exp(-0.2 * math.sqrt(sum(v**2 for v in x) / n))
    return a - math.exp(sum(math.cos(2 * math.pi * v) for v in x) / n) + 20 + math.e


def griewank(x):
    product = 1.0
    for i, v in enumerate(x):
        product *= math.cos(v / math.sqrt(i + 1))
    return 1 + math.fsum([v * v for v in x]) / 4000 - product


def heat_equation(x):
    u = np.zeros(10)
    u[0], u[-1] = x[0], x[1]
    for _ in range(15):
        un = u.copy()
        for i in range(1, 9):
            u[i] = un[i] + x[2] * (un[i + 1] - 2 * un[i] + un[i - 1])
    return np.sum(u**2)


def gaussian_process(x):
    X = np.linspace(0, 1, 5)
    y = np.sin(3 * X)
    K = np.empty((5, 5))
    for i in range(5):
        for j in range(5):
            K[i, j] = x[0] ** 2 * np.exp(-0.5 * (X[i] - X[j]) ** 2 / x[1] ** 2)
    K += np.diag(np.full(5, x[2] ** 2))
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    return 0.5 * y.dot(alpha) + np.log(np.diag(L)).sum() + 2.5 * np.log(2 * np.pi)


def hidden_markov(x):
    A = np.array([[x[0], 1 - x[0]], [1 - x[1], x[1]]])
    B = np.array([[x[2], 1 - x[2]], [0.2, 0.8]])
    observed = [0, 1, 1, 0, 1]
    alpha = np.zeros((len(observed), 2))
    alpha[0, :] = np.array([0.6, 0.4]) * B[:, observed[0]]
    for t in range(1, len(observed)):
        for j in range(2):
            alpha[t, j] = alpha[t - 1].dot(A[:, j]) * B[j, observed[t]]
    return math.log(alpha[-1].sum())


def softmax_regression(x):
    data = np.array([[0.5, 1.0], [1.5, -0.3], [-0.7, 0.2]])
    labels = np.array([0, 1, 2])
    W = x.reshape(2, 3)
    scores = data.dot(W)
    scores -= scores.max(axis=1, keepdims=True)
    p = np.exp(scores)
    p /= p.sum(axis=1, keepdims=True)
    return -np.log(p[range(3), labels]).mean()


def neural_network(x):
    W1, b1 = x[:6].reshape(2, 3), x[6:9]
    data = np.array([[0.2, -0.4], [1.0, 0.3]])
    hidden = np.maximum(data @ W1 + b1, 0.1)
    out = np.vectorize(lambda v: 1.0 / (1.0 + math.exp(-v)))(hidden)
    return np.square(out).sum()


def bezier(x):
    points = x.reshape(4, 2)
    n = len(points) - 1
    curve = []
    for t in np.linspace(0, 1, 6):
        p = np.zeros(2)
        for i in range(n + 1):
            p = p + math.comb(n, i) * (1 - t) ** (n - i) * t**i * points[i]
        curve.append(p)
    return sum(np.linalg.norm(b - a) for a, b in zip(curve[:-1], curve[1:]))


def rotation(x):
    c, s = math.cos(x[0]), math.sin(x[0])
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    v = np.array([1.0, 2.0, x[1]])
    return R.dot(v).dot(np.array([0.5, -1.0, 2.0])) + np.trace(R)


def polynomial_fit(x):
    t = np.linspace(0, 1, 5)
    A = np.vstack([t**k for k in range(3)]).T
    coef, *_ = np.linalg.lstsq(A, x, rcond=None)
    return float(np.sum((A @ coef - x) ** 2)) + coef[0]


def newton_root(x):
    z = float(x)
    for _ in range(30):
        f = z**3 - 2 * z - x
        if abs(f) < 1e-14:
            break
        z = z - f / (3 * z**2 - 2)
    return z


def power_iteration(x):
    A = np.array([[x[0], 1.0], [1.0, x[1]]])
    b = np.ones(2)
    for _ in range(60):
        b = A.dot(b)
        b = b / np.linalg.norm(b)
    return b.dot(A).dot(b)


def simpson(x):
    n, a, b = 10, 0.0, float(x[0])
    h = (b - a) / n
    s = math.sin(a * x[1]) + math.sin(b * x[1])
    for i in range(1, n):
        s += (4 if i % 2 else 2) * math.sin((a + i * h) * x[1])
    return s * h / 3


def jacobi_iteration(x):
    A = np.diag(x) + 0.1
    b = np.ones(3)
    z = np.zeros_like(b)
    for _ in range(40):
        new = np.zeros_like(b)
        for i in range(3):
            new[i] = (b[i] - A[i, :i].dot(z[:i]) - A[i, i + 1 :].dot(z[i + 1 :])) / A[i, i]
        z = new
    return z.sum()


def moving_average(x):
    out = []
    for i in range(len(x)):
        window = x[max(0, i - 2) : i + 1]
        out.append(np.mean(window))
    return np.array(out).std()


def autoregression(x):
    y = np.array([0.1, 0.4, -0.2, 0.5, 0.3])
    e = np.zeros(5)
    for t in range(1, 5):
        e[t] = y[t] - x[0] * y[t - 1] - x[1] * e[t - 1]
    return np.inner(e, e)


def garch(x):
    r = np.array([0.02, -0.01, 0.03, 0.015, -0.02])
    omega, alpha, beta = x
    s2 = np.empty(5)
    s2[0] = r.var()
    for t in range(1, 5):
        s2[t] = omega + alpha * r[t - 1] ** 2 + beta * s2[t - 1]
    return 0.5 * np.sum(np.log(s2) + r**2 / s2)


def n_body(x):
    pos = x.reshape(3, 2)
    energy = 0.0
    forces = np.zeros_like(pos)
    for i in range(3):
        for j in range(i + 1, 3):
            d = pos[i] - pos[j]
            r = math.sqrt(d[0] ** 2 + d[1] ** 2)
            energy -= 1.0 / r
            forces[i] -= d / r**3
            forces[j] += d / r**3
    return energy + (forces**2).sum()


def lennard_jones(x):
    r = np.asarray(x, dtype=float)
    sr6 = np.power(1.0 / r, 6)
    return float((4 * (sr6**2 - sr6)).sum())


def distances(x):
    X = x.reshape(3, 2)
    D = np.zeros((3, 3))
    for i, a in enumerate(X):
        for j, b in enumerate(X):
            if i != j:
                D[i][j] = np.sqrt(((a - b) ** 2).sum())
    return D.sum()


def convolution(x):
    image = np.arange(16.0).reshape(4, 4)
    out = np.zeros((3, 3))
    kernel = x.reshape(2, 2)
    for i in range(3):
        for j in range(3):
            out[i, j] = np.sum(image[i : i + 2, j : j + 2] * kernel)
    return np.tanh(out / 10).sum()


def cumulative(x):
    out = np.array([])
    for i in range(len(x)):
        out = np.append(out, x[: i + 1].prod())
    return np.concatenate((out, [1.0], x)).sum()


def entropy(x):
    p = np.array([v / sum(x) for v in x])
    return -sum(pi * math.log(pi, 2) for pi in p if pi > 0)


def complex_response(x):
    omega = np.linspace(0.5, 2, 4)
    h = np.array([1 / (1 - w**2 * x[0] + 1j * w * x[1]) for w in omega])
    return np.sum(np.abs(h) ** 2) + np.angle(h).sum()


def finite_elements(x):
    K = np.zeros((4, 4))
    for e in range(3):
        k = x[e] * np.array([[1.0, -1.0], [-1.0, 1.0]])
        idx = [e, e + 1]
        K[np.ix_(idx, idx)] += k
    u = np.zeros(4)
    u[1:] = np.linalg.solve(K[1:, 1:], np.array([0.0, 0.5, 1.0]))
    return u.dot(K).dot(u)


def pca_objective(x):
    X = np.array([[1.0, 2.0], [3.0, 1.0], [0.5, 0.2]])
    w = x / np.sqrt(np.sum(x**2))
    Xc = X - X.mean(axis=0)
    cov = Xc.T.dot(Xc) / (len(X) - 1)
    return w.dot(cov).dot(w)


def portfolio(x):
    mu = np.array([0.1, 0.2, 0.15])
    cov = np.array([[0.1, 0.02, 0.01], [0.02, 0.2, 0.03], [0.01, 0.03, 0.15]])
    w = np.exp(x) / np.exp(x).sum()
    return (mu.dot(w) - 0.02) / math.sqrt(w.T.dot(cov.dot(w)))


def alignments(x):
    """Sum over all alignments of three symbols with four frames, in log space: impossible alignments are -inf."""
    frames = x.reshape(4, 2) - np.logaddexp.reduce(x.reshape(4, 2), axis=1)[:, None]
    symbols = [0, 1, 0]
    table = np.full((4, 3), -np.inf)
    table[0, 0] = frames[0, 0]
    for t in range(1, 4):
        for s in range(3):
            before = table[t - 1, s]
            if s > 0:
                before = np.logaddexp(before, table[t - 1, s - 1])
            if s > 1:
                before = np.logaddexp(before, table[t - 1, s - 2])
            table[t, s] = before + frames[t, symbols[s]]
    return -np.logaddexp(table[-1, -1], table[-1, -2])


PROGRAMS = [
    (alignments, np.array([0.3, -0.2, 0.5, 0.1, -0.7, 0.4, 0.2, 0.9])),
    (gram_schmidt, np.array([1.0, 0.3, -0.5, 0.2, 1.5, 0.4, 0.1, -0.2, 2.0])),
    (lu_decomposition, np.array([4.0, 1.0, 0.5, 1.0, 3.0, 0.2, 0.3, 0.7, 5.0])),
    (thomas, np.array([0.5, 1.0, 0.2, 0.8])),
    (runge_kutta, np.array([1.0, 0.5, 0.7])),
    (kalman, np.array([-0.5, 0.2])),
    (black_scholes, np.array([1.1, 1.0, 0.7, 0.05, 0.3])),
    (binomial_tree, np.array([1.05, 0.3])),
    (rosenbrock, np.array([0.5, 1.2, 0.8])),
    (ackley, np.array([0.3, -0.6])),
    (griewank, np.array([0.4, 1.1, -0.3])),
    (heat_equation, np.array([1.0, 0.5, 0.2])),
    (gaussian_process, np.array([1.2, 0.4, 0.3])),
    (hidden_markov, np.array([0.7, 0.6, 0.9])),
    (softmax_regression, np.array([0.1, -0.2, 0.3, 0.5, 0.2, -0.4])),
    (neural_network, np.array([0.5, -0.3, 0.8, 0.2, 0.6, -0.7, 0.3, 0.3, 0.3])),
    (bezier, np.array([0.0, 0.1, 1.0, 2.0, 2.0, -1.0, 3.0, 0.5])),
    (rotation, np.array([0.4, 1.5])),
    (polynomial_fit, np.array([0.1, 0.5, 0.2, 0.9, 0.4])),
    (newton_root, 3.0),
    (power_iteration, np.array([2.0, 0.5])),
    (simpson, np.array([1.5, 0.8])),
    (jacobi_iteration, np.array([2.0, 3.0, 4.0])),
    (moving_average, np.array([0.1, 0.7, -0.4, 1.2])),
    (autoregression, np.array([0.4, -0.2])),
    (garch, np.array([0.08, 0.2, 0.6])),
    (n_body, np.array([0.0, 0.1, 1.0, 0.3, 0.4, 1.2])),
    (lennard_jones, np.array([1.1, 1.5, 2.0])),
    (distances, np.array([0.0, 0.1, 1.0, 0.3, 0.4, 1.2])),
    (convolution, np.array([0.5, -0.2, 0.1, 0.3])),
    (cumulative, np.array([1.2, 0.5, 0.8])),
    (entropy, np.array([1.0, 2.0, 0.5])),
    (complex_response, np.array([0.3, 0.7])),
    (finite_elements, np.array([1.0, 2.0, 3.0])),
    (pca_objective, np.array([0.6, -0.4])),
    (portfolio, np.array([0.2, -0.1, 0.3])),
]
