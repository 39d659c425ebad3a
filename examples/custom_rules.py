"""Functions with derivative rules of their own: six cases, each with a check."""

import numpy as np

import funcgrad.numpy as fnp
from funcgrad import custom_jvp, custom_vjp, grad, jvp, vmap

# 1. A product. The forward rule returns the result and what the backward rule will need.


@custom_vjp
def multiply(a, b):
    return a * b


multiply.defvjp(
    lambda a, b: (a * b, (a, b)),
    lambda kept, ct: (ct * kept[1], ct * kept[0]),
)


def check_multiply():
    assert grad(multiply, (0, 1))(3.0, 4.0) == (4.0, 3.0)
    return "the partial derivatives of 3 * 4 are 4 and 3"


# 2. A clamp. The rule sets the convention at the kink: here the slope at 0 is 1. Only the mask is saved.


@custom_vjp
def relu(x):
    return fnp.maximum(x, 0)


relu.defvjp(
    lambda x: (relu(x), x < 0),
    lambda negative, ct: (fnp.where(negative, 0, ct),),
)


def check_relu():
    slopes = vmap(grad(relu))(np.array([-1.0, 0.0, 2.0]))
    np.testing.assert_array_equal(slopes, [0, 1, 1])
    # The forward mode rule is missing: funcgrad transposes the backward rule.
    np.testing.assert_array_equal(jvp(relu, (slopes,), (slopes,))[1], [0, 1, 1])
    return f"slopes at -1, 0 and 2: {slopes}"


# 3. A recurrent cell: five gradients from one backward rule, over sequences of any length.


@custom_vjp
def cell(x, h, wx, wh, b):
    return fnp.tanh(x @ wx + h @ wh + b)


def cell_forward(x, h, wx, wh, b):
    new = cell(x, h, wx, wh, b)
    return new, (x, h, wx, wh, new)


def cell_backward(kept, ct):
    x, h, wx, wh, new = kept
    ct = ct * (1 - new * new)
    return ct @ wx.T, ct @ wh.T, x.T @ ct, h.T @ ct, fnp.sum(ct, axis=0)


cell.defvjp(cell_forward, cell_backward)


def run(step, params, xs):
    h = np.zeros((2, 4))
    for x in xs:
        h = step(x, h, *params)
    return fnp.sum(h * h)


def check_cell():
    rng = np.random.default_rng(0)
    params = rng.normal(size=(3, 4)), rng.normal(size=(4, 4)) / 2, rng.normal(size=4)
    for length in (1, 4, 9):
        xs = rng.normal(size=(length, 2, 3))
        ours = grad(lambda p, xs=xs: run(cell, p, xs))(params)
        plain = grad(lambda p, xs=xs: run(cell.fun, p, xs))(params)
        for a, b in zip(ours, plain, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    return "sequences of 1, 4 and 9 steps have the gradients of the plain cell"


# 4. A power: the exponent is static, so it comes first in the rule and gets no cotangent.


def power(x, n):
    return x**n


power = custom_vjp(power, nondiff_argnums=(1,))
power.defvjp(lambda x, n: (x**n, x), lambda n, x, ct: (ct * n * x ** (n - 1),))


def check_power():
    assert grad(power)(2.0, 5) == 80.0
    assert grad(power)(2.0, n=3) == 12.0
    return "the slope of x**5 at 2 is 80"


# 5. A cube: the backward rule consists of ordinary operations, so it can be differentiated itself.


@custom_vjp
def cube(x):
    return x**3


cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x * x * ct,))


def check_cube():
    assert (grad(cube)(2.0), grad(grad(cube))(2.0), grad(grad(grad(cube)))(2.0)) == (12.0, 12.0, 6.0)
    h = 1e-4
    numerical = (cube(2 + h) - 2 * cube(2.0) + cube(2 - h)) / h**2
    assert abs(numerical - 12) < 1e-5
    return "derivatives of x**3 at 2: 12, 12, 6"


# 6. A rule that depends on a branch: residuals are any tree, and need not be arrays. The tangent rule, which is
#    declared in addition, serves forward mode.


@custom_vjp
def bend(x):
    return x * x if x > 1 else 2 * x - 1


def bend_forward(x):
    return bend(x), (("parabola", x) if x > 1 else ("line", None))


def bend_backward(kept, ct):
    branch, x = kept
    return (ct * 2 * x if branch == "parabola" else ct * 2.0,)


bend.defvjp(bend_forward, bend_backward)


@bend.defjvp
def bend_tangent(primals, tangents):
    (x,), (t,) = primals, tangents
    return bend(x), (t * 2 * x if x > 1 else t * 2.0)


def check_bend():
    for x, slope, curvature in ((0.5, 2.0, 0.0), (3.0, 6.0, 2.0)):
        assert (grad(bend)(x), grad(grad(bend))(x)) == (slope, curvature)
        assert jvp(bend, (x,), (1.0,))[1] == slope
    return "slopes on both branches, in both modes"


# A rule per argument, for forward mode; reverse mode is its transpose.

hypotenuse = custom_jvp(lambda a, b: fnp.sqrt(a * a + b * b))
hypotenuse.defjvps(lambda t, ans, a, b: t * a / ans, lambda t, ans, a, b: t * b / ans)


def check_hypotenuse():
    np.testing.assert_allclose(grad(hypotenuse, (0, 1))(3.0, 4.0), (0.6, 0.8), rtol=1e-15)
    return "the gradient at (3, 4) is (0.6, 0.8)"


if __name__ == "__main__":
    for check in (check_multiply, check_relu, check_cell, check_power, check_cube, check_bend, check_hypotenuse):
        print(f"{check.__name__.removeprefix('check_'):>10}: {check()}")
