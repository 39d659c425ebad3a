"""Loops and branches: plain Python on values, ``jax.lax`` when compiled, and equal derivatives in both."""

import operator
from collections import namedtuple
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fuzz.eager import run_eagerly
from helpers import close_leaves
from jax import lax

import funcgrad.numpy as fnp
from funcgrad import (
    check_grads,
    checkpoint,
    custom_jvp,
    custom_vjp,
    debug_nans,
    fixed_point,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    no_grad,
    psum,
    stop_gradient,
    strict,
    trace,
    value_and_grad,
    vjp,
    vmap,
)
from funcgrad.errors import (
    AxisNameError,
    BranchError,
    FuncgradError,
    InputError,
    NotDifferentiableError,
    ShapeError,
)
from funcgrad.interop import crosscheck, jit, to_jax
from funcgrad.optional import precision_switch
from funcgrad.transforms import control

assert_close = partial(close_leaves, rtol=1e-10, dtypes=False)  # values in 32 bits are compared with 64 bits

RNG = np.random.default_rng(5)
XS = RNG.normal(size=(4, 2))
Pair = namedtuple("Pair", "left right")


def leaves(value):
    return jax.tree.leaves(value)


# Functions for both libraries, of an array, with a real number as the result; some close over the array.


def rnn(xp, of):
    def fun(w):
        def step(h, x):
            h = xp.tanh(h * w + x)
            return h, xp.sum(h) * w

        h, ys = of.scan(step, w, XS)
        return xp.sum(h**2) + xp.sum(ys**3)

    return fun


def scan_backwards(xp, of):
    def fun(w):
        carry, ys = of.scan(lambda c, x: ({"a": c["a"] * x["x"] + w}, (c, None)), {"a": w}, {"x": XS}, reverse=True)
        return xp.sum(carry["a"] ** 2) + xp.sum(ys[0]["a"] * XS)

    return fun


def scan_by_length(xp, of):
    def fun(w):
        carry, ys = of.scan(lambda c, _: (Pair(c.right, xp.sin(c.left) * w), c), Pair(w, w * w), None, 3, unroll=2)
        return xp.sum(carry.left * ys.right)

    return fun


def choice(xp, of):
    def fun(w):
        # the branch not taken is infinite at some of the points
        chosen = of.cond(xp.sum(w) > 1, lambda x: {"y": xp.log(xp.sum(x)) * w}, lambda x: {"y": x * xp.sin(w)}, w)
        return xp.sum(chosen["y"])

    return fun


def choice_of_many(xp, of):
    def fun(w):
        branches = [lambda x, y: x * y, lambda x, y: xp.exp(x) + w, lambda x, y: x / (2 + y * y)]
        index = xp.astype(xp.floor(xp.sum(w)), int)
        return xp.sum(of.switch(index, branches, w, w[::-1]) ** 2)

    return fun


def while_small(xp, of):
    def fun(w):
        def body(state):
            return {"n": state["n"] + 1, "v": state["v"] * (2 + 0.1 * w) + w[0]}

        final = of.while_loop(lambda state: xp.sum(state["v"] ** 2) < 20.0, body, {"n": 0, "v": w})
        return xp.sum(xp.sin(final["v"])) * final["n"]

    return fun


def counted(xp, of):
    def fun(w):
        return xp.sum(of.fori_loop(1, 4, lambda i, v: xp.sin(v * w) * i, w) * w)

    return fun


def mapped(xp, of):
    return lambda w: xp.sum(of.map(lambda x: xp.cos(x * w) * x[0], XS) ** 2)


def mapped_in_batches(xp, of):
    batches = {} if of is lax else {"batch_size": 3}  # older versions of JAX lack it, and the result is equal
    return lambda w: xp.sum(of.map(lambda x: xp.cos(x["x"] * w), {"x": XS}, **batches) ** 2)


def prefixes(xp, of):
    def fun(w):
        def combine(a, b):
            return a[0] * b[0], a[1] * b[0] + b[1]

        products, sums = of.associative_scan(combine, (w * XS, XS + w), reverse=True)
        columns = of.associative_scan(xp.multiply, w * XS[:3], axis=-1)
        return xp.sum(products * sums) + xp.sum(columns**2)

    return fun


def nested(xp, of):
    def fun(w):
        def step(c, x):
            inner = of.fori_loop(0, 2, lambda i, v: v * x + w[0] * i, c)
            return of.cond(xp.sum(inner) > 0, lambda: inner * w, lambda: xp.sin(inner)), inner

        carry, ys = of.scan(step, w, XS)
        return xp.sum(carry) + xp.sum(ys**2)

    return fun


CASES = [
    rnn,
    scan_backwards,
    scan_by_length,
    choice,
    choice_of_many,
    while_small,
    counted,
    mapped,
    mapped_in_batches,
    prefixes,
    nested,
]
POINTS = np.array([[0.4, 0.7], [1.2, 0.9], [-0.8, 1.5]])
cases = pytest.mark.parametrize("case", CASES, ids=operator.attrgetter("__name__"))


def all_of(fun, tools):
    """Compute the value, and derivatives in many ways, of a function at the points."""
    grad, hessian, jvp, vmap = tools
    w, t = POINTS[0], POINTS[1]
    return {
        "value": fun(w),
        "grad": grad(fun)(w),
        "jvp": jvp(fun, (w,), (t,))[1],
        "hessian": hessian(fun)(w),
        "vmap": vmap(fun)(POINTS),
        "vmap of grad": vmap(grad(fun))(POINTS),
        "grad of vmap": grad(lambda w: vmap(fun)(w).sum())(POINTS),
        "jvp of vmap": jvp(vmap(fun), (POINTS,), (POINTS[::-1],))[1],
    }


OURS = (grad, hessian, jvp, vmap)
JAXS = (jax.grad, jax.hessian, jax.jvp, jax.vmap)
FORWARD = (jax.jacfwd, lambda f: jax.jacfwd(jax.jacfwd(f)), jax.jvp, jax.vmap)
REFERENCE = {}


def reference(case):
    if case not in REFERENCE:
        tools = FORWARD if case is while_small else JAXS
        with np.errstate(all="ignore"):  # both branches are computed in a batch
            REFERENCE[case] = run_eagerly(lambda: all_of(case(jnp, lax), tools), unrolled=False)
    return REFERENCE[case]


@cases
def test_eager(case):
    assert_close(all_of(case(fnp, control), OURS), reference(case))


@cases
def test_compiled(case):
    tools = OURS if case is not while_small else (jacfwd, lambda f: jacfwd(jacfwd(f)), jvp, vmap)
    fun = case(fnp, control)
    w, t = POINTS[0], POINTS[1]
    gradient, second, push, batch = tools
    with jax.checking_leaks():
        found = jax.jit(
            lambda w, t, many: {
                "value": fun(w),
                "grad": gradient(fun)(w),
                "jvp": push(fun, (w,), (t,))[1],
                "hessian": second(fun)(w),
                "vmap": batch(fun)(many),
                "vmap of grad": batch(gradient(fun))(many),
                "jvp of vmap": push(batch(fun), (many,), (many[::-1],))[1],
            }
        )(w, t, POINTS)
    expected = {name: value for name, value in reference(case).items() if name != "grad of vmap"}
    assert_close(found, expected)


@cases
def test_gradients_match_differences(case):
    check_grads(case(fnp, control), (POINTS[0],), order=2)


@cases
def test_derivatives_by_jax_match(case):
    fun, tools = case(fnp, control), FORWARD if case is while_small else JAXS
    found = jax.jit(lambda w, many: (tools[0](fun)(w), tools[3](fun)(many)))(POINTS[0], POINTS)
    assert_close(found, (reference(case)["grad"], reference(case)["vmap"]))


@pytest.mark.parametrize(
    "twice",
    [
        lambda f: jacrev(jacrev(f)),
        lambda f: jacfwd(jacfwd(f)),
        lambda f: jacrev(jacfwd(f)),
        lambda f: jax.jacfwd(grad(f)),
        lambda f: jax.jacrev(grad(f)),
        lambda f: lambda w: vmap(linearize(grad(f), w)[1])(jnp.eye(2)),
        lambda f: lambda w: vmap(lambda t: vjp(grad(f), w)[1](t)[0])(jnp.eye(2)),
        lambda f: lambda w: vmap(jacfwd(grad(f)))(jnp.stack([w, w]))[1],
    ],
)
@pytest.mark.parametrize("case", [rnn, choice], ids=operator.attrgetter("__name__"))
def test_second_derivatives_mix_when_compiled(twice, case):
    assert_close(jax.jit(twice(case(fnp, control)))(POINTS[0]), reference(case)["hessian"])


def test_third_derivative():
    third = jax.jit(jax.jacfwd(jax.hessian(counted(jnp, lax))))(POINTS[0])
    assert_close(jacfwd(hessian(counted(fnp, control)))(POINTS[0]), third)
    assert_close(jax.jit(jacrev(jacrev(jacrev(counted(fnp, control)))))(POINTS[0]), third)


@pytest.mark.parametrize(
    ("case", "operation"), [(rnn, "scan["), (choice, "cond["), (counted, "scan["), (mapped, "scan[")]
)
def test_program_size_is_independent_of_length(case, operation):
    program = str(jax.make_jaxpr(value_and_grad(case(fnp, control)))(POINTS[0]))
    assert 2 <= program.count(operation) <= 3
    assert program.count("tanh") <= 1


def test_compiled_loop_saves_same_residuals_as_jax():
    ours, theirs = (
        jax.make_jaxpr(differentiate(case))(POINTS[0])
        for differentiate, case in ((grad, rnn(fnp, control)), (jax.grad, rnn(jnp, lax)))
    )
    loops = [[e for e in program.eqns if e.primitive.name == "scan"] for program in (ours, theirs)]
    assert [len(e.outvars) for e in loops[0]] == [len(e.outvars) for e in loops[1]]


# Bodies of all sorts: compiled code gives the results of plain Python.


@custom_vjp
def steep(x):
    return x**3


steep.defvjp(lambda x: (x**3, x), lambda x, ct: (5 * ct * x,))


@custom_jvp
def flat(x):
    return fnp.sin(x)


flat.defjvp(lambda primals, tangents: (flat(*primals), fnp.cos(primals[0]) * tangents[0]))

remembered = checkpoint(lambda c, w: fnp.sin(c * w))


def partly_constant(c, x):
    with no_grad():
        k = c * x
    return c * k + x, k


ITEMS = np.array([0.3, 0.7, 1.1])
BODIES = {
    "custom_vjp": lambda w: lambda c, x: (steep(c * w) + x, c),
    "custom_jvp": lambda w: lambda c, x: (flat(c * w) + x, c),
    "checkpoint": lambda w: lambda c, x: (remembered(c, w) + x, c * w),
    "no_grad": lambda w: lambda c, x: partly_constant(c * w, x),
    "no_grad of what is closed over": lambda w: lambda c, x: (c + x * no_grad(lambda: w * w)() * w, w),
    "stop_gradient": lambda w: lambda c, x: (c * stop_gradient(w) * stop_gradient(c) + c * w + x, c),
    "descent": lambda w: lambda c, x: (c - 0.1 * grad(lambda c: (c * w - x) ** 4)(c), c),
    "gradient in what is closed over": lambda w: lambda c, x: (c - 0.1 * grad(lambda w: (c * w - x) ** 4)(w), c),
    "hessian": lambda w: lambda c, x: (c - 0.1 * hessian(lambda c: (c * w - x) ** 4)(c), c),
    "jvp": lambda w: lambda c, x: (jvp(lambda a: a**2 * w, (c,), (x,))[1], c),
    "linearize": lambda w: lambda c, x: (linearize(lambda a: a**2 * w, c)[1](x), c),
    "vmap": lambda w: lambda c, x: (fnp.sum(vmap(lambda a: a * w * c + x)(ITEMS)), c),
    "numpy": lambda w: lambda c, x: (np.sin(c) * w + np.exp(c) * x, np.maximum(c, x)),
    "scan": lambda w: lambda c, x: (control.scan(lambda a, b: (fnp.sin(a * w + b * x + c), w), w, ITEMS)[0], c),
    "what is closed over comes back": lambda w: lambda c, x: (c + x, w),
    "alone": lambda w: lambda c, x: (c + fnp.exp(w) * fnp.sin(w), fnp.cos(w)),
    "own arrays": lambda w: lambda c, x: (c * w + fnp.sum(fnp.zeros(3) + w), fnp.ones(2) * x),
    "fixed point": lambda w: lambda c, x: (c + fixed_point(lambda y: fnp.cos(w * y + x), 0.5, solver=sixty), w),
}  # fmt: skip


def sixty(f, start):
    return control.fori_loop(0, 60, lambda i, y: f(y), start)


@pytest.mark.parametrize("name", BODIES)
def test_loop_bodies_with_transforms(name):
    def fun(w, start):
        carry, ys = control.scan(BODIES[name](w), start, ITEMS)
        return carry * 2 + fnp.sum(fnp.sin(ys))

    def everything(w, start):
        first = value_and_grad(fun, (0, 1))(w, start)
        return first, jacrev(grad(fun))(w, start), vmap(grad(fun), (0, None))(fnp.stack([w, 0.9 * w]), start)

    found = jax.jit(everything)(0.9, 0.4)
    assert_close(found, everything(0.9, 0.4))
    assert_close(jax.jit(to_jax(fun))(0.9, 0.4), fun(0.9, 0.4))


def test_forward_mode_through_body_with_pullback_raises():
    def fun(w):
        return control.scan(BODIES["custom_vjp"](w), 0.4, ITEMS)[0]

    assert_close(jax.jit(hessian(fun))(0.9), hessian(fun)(0.9))
    with pytest.raises(NotDifferentiableError, match=r"^scan: JAX .* control flow .* no forward mode .*jacrev\(grad"):
        jax.jit(jacfwd(fun))(0.9)


def test_loops_in_a_checkpoint():
    fun = checkpoint(rnn(fnp, control))
    assert_close(grad(fun)(POINTS[0]), reference(rnn)["grad"])
    assert_close(jax.jit(grad(fun))(POINTS[0]), reference(rnn)["grad"])


def test_loop_in_no_grad_is_constant():
    def fun(w):
        with no_grad():
            last = control.scan(lambda c, x: (c * w + x, None), w, ITEMS)[0]
        return last * w

    assert_close(jax.jit(grad(fun))(0.9), grad(fun)(0.9))


def test_crosscheck_of_loops():
    assert crosscheck(lambda w: control.while_loop(lambda s: s < 10, lambda s: s * w + 1, w))(1.9)
    assert crosscheck(rnn(fnp, control))(POINTS[0])


# Plain Python


def newton(a):
    return control.while_loop(lambda x: abs(x * x - a) > 1e-13, lambda x: (x + a / x) / 2, a)


def test_reverse_mode_through_a_loop_of_unknown_length():
    assert_close(grad(newton)(2.0), 0.5 / np.sqrt(2.0))
    assert_close(grad(grad(newton))(2.0), -0.25 * 2.0**-1.5)
    assert_close(vmap(grad(newton))(np.array([2.0, 9.0])), 0.5 / np.sqrt([2.0, 9.0]))
    assert_close(jax.grad(newton)(2.0), 0.5 / np.sqrt(2.0))  # outside of jit, JAX knows the values


@pytest.mark.parametrize("loop", [newton, lambda a: control.fori_loop(0, a.astype(int), lambda i, x: x * a, a)])
def test_reverse_mode_through_compiled_while_loop_raises(loop):
    with pytest.raises(NotDifferentiableError, match=r"_loop: a compiled while_loop, or fori_loop .* Use scan"):
        jax.jit(grad(loop))(jnp.float64(2.0))
    with pytest.raises(NotDifferentiableError, match="no reverse mode"):
        jax.jit(grad(lambda a: control.scan(lambda c, _: (loop(c), None), a, None, 2)[0]))(jnp.float64(2.0))
    assert np.isfinite(jax.jit(jacfwd(loop))(jnp.float64(2.0)))


def test_only_taken_branch_runs():
    ran = []

    def branch(name):
        return lambda x: ran.append(name) or x

    control.cond(np.bool_(True), branch("true"), branch("false"), 1.0)
    control.cond(0.0, branch("true"), branch("false"), operand=1.0)
    for index in (-3, 1, 7):
        control.switch(index, [branch(i) for i in range(3)], 1.0)
    assert ran == ["true", "false", 0, 1, 2]


def test_untaken_branch_gives_no_nan():
    slope = grad(lambda x: control.cond(x > 0, lambda: fnp.log(x), lambda: 0.0 * x))
    assert slope(0.0) == 0.0
    assert jax.jit(slope)(0.0) == 0.0


def positive_part(x):
    return control.cond(x > 0, lambda p: fnp.sqrt(p["x"]) * p["y"], lambda p: p["y"], {"x": x, "y": 2.0 * x})


def by_sign(x):
    return control.switch(fnp.astype(fnp.sign(x), int) + 1, [lambda x: 3.0 * x, lambda x: x**2, fnp.sqrt], x)


def closing(x):
    y = x * x
    return control.cond(x > 0, lambda: fnp.sqrt(x) * y, lambda: 3.0 * x + y)


def closing_by_sign(x):
    def power():
        v = np.zeros(2)
        v[0] = fnp.log(x)
        v *= x
        return v.sum()

    return control.switch(fnp.astype(fnp.sign(x), int) + 1, [lambda: 3.0 * x, lambda: x**2, power])


def closing_in_turn(x):
    y = fnp.sin(x)
    upper = lambda: control.cond(x > 1.0, lambda: fnp.log(x) * y, lambda: fnp.sqrt(1.0 - x) * y)
    return control.cond(x > 0, upper, lambda: 3.0 * x)


def closing_checkpoint(x):
    root = checkpoint(lambda z: fnp.sqrt(z) * x)
    return control.cond(x > 0, lambda: root(x) + root(2.0 * x), lambda: 3.0 * x)


def closing_constants(x):
    def branch():
        with no_grad():
            scale = 2.0 * x
        return fnp.log(x) * scale

    return control.cond(x > 0, branch, lambda: 3.0 * x)


def closing_pullback(x):
    return control.cond(x > 0, lambda: grad(lambda z: fnp.log(z) * x * z)(x), lambda: 3.0 * x)


@pytest.mark.parametrize(
    "fun",
    [
        *[positive_part, by_sign, closing, closing_by_sign, closing_in_turn, closing_checkpoint],
        *[closing_constants, closing_pullback],
    ],
)
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["plain", "jit"])
def test_untaken_branch_in_a_batch_gives_no_nan(fun, wrap):
    x = np.array([0.0, 2.0, -1.0])
    with np.errstate(all="ignore"):
        first = [grad(fun)(v) for v in x]
        assert_close(wrap(vmap(grad(fun)))(x), np.array(first))
        assert_close(wrap(grad(lambda x: fnp.sum(vmap(fun)(x))))(x), np.array(first))
        assert_close(wrap(vmap(grad(grad(fun))))(x), np.array([grad(grad(fun))(v) for v in x]))
        assert_close(wrap(hessian(lambda x: fnp.sum(vmap(fun)(x))))(x), np.diag([grad(grad(fun))(v) for v in x]))
        assert_close(wrap(vmap(jvp_of_one(grad(fun))))(x), np.array([grad(grad(fun))(v) for v in x]))
        assert_close(wrap(vmap(grad(jvp_of_one(fun))))(x), np.array([grad(grad(fun))(v) for v in x]))
        assert_close(vmap(vmap(grad(fun)))(x[None]), np.array([first]))
        if fun not in (closing_by_sign, closing_constants, closing_pullback):  # they write, or differentiate themselves
            assert_close(jax.vmap(jax.grad(fun))(jnp.asarray(x)), jnp.array(first))


def jvp_of_one(fun):
    return lambda x: jvp(fun, (x,), (1.0,))[1]


def test_untaken_branch_gives_no_nan_to_values_that_all_examples_share():
    def total(c, xs):
        return vmap(lambda x: control.cond(x > 0, lambda: fnp.sqrt(x * c), lambda: x * c))(xs).sum()

    xs = np.array([0.0, 2.0, -1.0])
    with np.errstate(all="ignore"):
        assert_close(grad(total)(2.0, xs), np.float64(-0.5))
        assert_close(jit(grad(total))(2.0, xs), np.float64(-0.5))
        assert_close(grad(grad(total))(2.0, xs), np.float64(-0.125))
        assert_close(jax.grad(total)(jnp.asarray(2.0), xs), jnp.asarray(-0.5))
        assert_close(jax.jit(jax.hessian(total))(jnp.asarray(2.0), xs), jnp.asarray(-0.125))


def test_steps_after_the_end_give_no_nan_to_values_of_jax_that_the_body_closes_over():
    def total(c, ends):
        def step(s):
            return s[0] + 1.0, s[1] + fnp.sqrt(c * (s[2] - s[0])), s[2]

        return vmap(lambda n: control.while_loop(lambda s: s[0] < s[2], step, (0.0, 1.0, n))[1])(ends).sum()

    ends = np.array([0.0, 3.0])
    with np.errstate(all="ignore"):
        assert_close(jax.grad(total)(jnp.asarray(2.0), ends), jnp.asarray(grad(total)(2.0, ends)))


@pytest.mark.parametrize(
    "loop",
    [
        lambda x: control.while_loop(lambda s: s[0] < 3.0, lambda s: (s[0] + 1.0, s[1] * fnp.sqrt(3.0 - s[0])), (x, x)),
        lambda x: control.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * fnp.sqrt(3.0 - x) + x), (fnp.astype(x, int), x)
        ),
        lambda x: control.fori_loop(0, fnp.astype(x, int), lambda i, s: (i, s[1] * fnp.sqrt(x - i)), (0, x)),
    ],
)
def test_steps_after_the_end_of_a_loop_in_a_batch_give_no_nan(loop):
    x, last = np.array([0.0, 2.5, 3.0, 1.0]), lambda x: loop(x)[1]
    with np.errstate(all="ignore"):
        for mode in (grad(last), grad(grad(last)), jvp_of_one(grad(last)), jvp_of_one(last)):
            assert_close(vmap(mode)(x), np.array([mode(v) for v in x]))
        assert_close(grad(lambda x: fnp.sum(vmap(last)(x)))(x), np.array([grad(last)(v) for v in x]))


def by_class(x):
    return 2.0 * x if isinstance(x, np.ndarray) else 3.0 * x


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: control.scan(lambda c, y: (by_class(c) + by_class(y), by_class(y)), x, np.ones((2, 2)) * x),
        lambda x: control.fori_loop(0, 2, lambda i, c: by_class(c), x),
        lambda x: control.while_loop(lambda c: by_class(c)[0] < 9.0, by_class, x),
        lambda x: control.cond(x[0] > 0, by_class, lambda c: c, x),
        lambda x: control.switch(
            fnp.astype(x[0], int), [fnp.sin, lambda c: control.cond(c[0] > 0, by_class, fnp.cos, c)], x
        ),
        lambda x: control.map(by_class, fnp.stack([x, x])),
    ],
)
def test_values_in_compiled_bodies_are_arrays_of_numpy(fun):
    x = np.array([1.0, 0.5])
    assert_close(jit(fun)(x), fun(x))
    assert_close(jit(vmap(fun))(x[None]), vmap(fun)(x[None]))


def test_compiled_body_must_not_write_to_its_carry():
    def add(c, y):
        c += y
        return c, None

    for wrap in (grad, jit):
        with pytest.raises(ValueError, match="cannot be written to"):
            wrap(lambda x: fnp.sum(control.scan(add, x, np.ones((3, 2)))[0]))(np.zeros(2))


def test_values_of_plain_loops():
    assert control.fori_loop(0, 5, lambda i, n: n + i, 0) == 10
    assert control.fori_loop(3, 1, operator.add, 7) == 7
    last, ys = control.scan(lambda c, x: (c + x, (c, x)), 0.0, np.arange(3.0))
    assert (last, type(last)) == (3.0, np.float64)
    assert_close(ys, (np.array([0.0, 0.0, 1.0]), np.arange(3.0)))
    assert control.scan(lambda c, x: (c, None), 1.0, ITEMS) == (1.0, None)
    assert control.while_loop(lambda n: n < 100, lambda n: 3 * n, 1) == 243
    assert_close(control.map(lambda x: {"y": x[::-1]}, XS), {"y": XS[:, ::-1]})
    with pytest.raises(IndexError):
        control.scan(lambda c, x: (c, x[5]), 0.0, XS)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, vmap], ids=["plain", "jit", "vmap"])
def test_loops_without_steps(wrap):
    def fun(w):
        carry, ys = control.scan(lambda c, x: (c * x, (x + c, {"n": fnp.sum(x > 0)})), w, np.zeros((0, 2)))
        return carry, ys

    w = np.array([1.0, 2.0])
    carry, (y, n) = wrap(fun)(np.stack([w, w]) if wrap is vmap else w)
    assert_close(carry, np.stack([w, w]) if wrap is vmap else w)
    assert (y.shape[-2:], y.dtype, n["n"].shape[-1], n["n"].dtype.kind) == ((0, 2), np.dtype(float), 0, "i")


def test_map_over_empty_array_matches_jax():
    assert control.map(lambda x: fnp.sum(x), np.zeros((0, 3))).shape == (0,)
    assert_close(control.map(fnp.sum, XS, batch_size=0), XS.sum(1))
    assert_close(control.map(fnp.sum, XS, batch_size=4), XS.sum(1))
    assert_close(control.map(fnp.sum, XS, batch_size=9), XS.sum(1))


@pytest.mark.parametrize("length", range(9))
@pytest.mark.parametrize("reverse", [False, True])
def test_prefixes_of_every_length(length, reverse):
    matrices = RNG.normal(size=(2, length, 2, 2))
    got = control.associative_scan(fnp.matmul, matrices, reverse, 1)
    assert_close(got, lax.associative_scan(jnp.matmul, matrices, reverse, 1))


def test_body_arguments_are_read_only():
    start = np.zeros(2)

    def step(c, x):
        c += x
        return c, c

    with pytest.raises(ValueError, match="read-only"):
        control.scan(step, start, XS)
    assert (start == 0).all()
    carry, _ = control.scan(lambda c, x: (c, None), start, XS)
    np.testing.assert_array_equal(carry, start)
    assert not np.shares_memory(carry, start)  # the caller owns what is returned


def test_graph_checks_loop_conditions():
    graph = trace(newton)(2.0)
    assert_close(graph(2.0), np.sqrt(2.0))
    with pytest.raises(BranchError):
        graph(200.0)


# vmap


def test_batched_predicate_selects_per_example():
    def fun(p, x):
        return control.cond(p, lambda x: (x * 2, 1), lambda x: (x - 1.0, 0), x)

    p, x = np.array([True, False]), np.array([1.0, 5.0])
    assert_close(vmap(fun)(p, x), (np.array([2.0, 4.0]), np.array([1, 0])))
    assert_close(vmap(fun, (0, None))(np.array([0.0, -2.0]), 3.0), (np.array([2.0, 6.0]), np.array([0, 1])))
    assert_close(jax.jit(vmap(fun))(p, x), (np.array([2.0, 4.0]), np.array([1, 0])))
    assert_close(vmap(fun, (None, 0))(True, x), (2 * x, np.array([1, 1])))


def test_batched_index():
    def fun(i, x):
        return control.switch(i, [lambda x: x, lambda x: 10 * x, lambda x: -x], x)

    indices = np.array([-1, 0, 1, 2, 5])
    expected = np.array([3.0, 3.0, 30.0, -3.0, -3.0])
    assert_close(vmap(fun, (0, None))(indices, 3.0), expected)
    assert_close(jax.jit(vmap(fun, (0, None)))(indices, 3.0), expected)
    assert_close(vmap(vmap(fun, (0, None)), (None, 0))(indices, np.ones(2)).shape, (2, 5))


def test_batched_loops_end_when_all_are_done():
    def halvings(x):
        return control.while_loop(lambda s: s[0] > 1.0, lambda s: (s[0] / 2, s[1] + 1), (x, 0))

    x = np.array([8.0, 0.5, 3.0])
    expected = (np.array([1.0, 0.5, 0.75]), np.array([3, 0, 2]))
    assert_close(vmap(halvings)(x), expected)
    assert_close(jax.jit(vmap(halvings))(x), expected)
    assert_close(vmap(grad(lambda x: halvings(x)[0]))(x), np.array([0.125, 1.0, 0.25]))
    twice = vmap(vmap(halvings))(np.stack([x, x + 1]))
    assert_close(twice[1], np.array([[3, 0, 2], [4, 1, 2]]))


def test_loop_is_batched_by_closure():
    def fun(limit):
        return control.while_loop(lambda n: n < limit, lambda n: n + 2.0, 0.0)

    limits = np.array([0.0, 3.0, 10.0])
    assert_close(vmap(fun)(limits), np.array([0.0, 4.0, 10.0]))
    assert_close(jax.jit(vmap(fun))(limits), np.array([0.0, 4.0, 10.0]))
    assert_close(jax.vmap(fun)(limits), np.array([0.0, 4.0, 10.0]))


def test_batched_bounds():
    def power(x, n):
        return control.fori_loop(0, n, lambda i, v: v * x, 1.0)

    x, n = np.array([2.0, 3.0, 0.5]), np.array([0, 2, 3])
    assert_close(vmap(power)(x, n), x**n)
    assert_close(vmap(grad(power))(x, n), n * x ** (n - 1.0))
    assert_close(jax.jit(vmap(power))(x, n), x**n)
    assert_close(jax.jit(power)(3.0, 4), 81.0)


def test_axis_names_work_around_compiled_loops():
    def fun(x):
        return control.scan(lambda c, y: (c + y, None), psum(x, "i"), ITEMS)[0]

    x = np.array([1.0, 2.0])
    assert_close(jax.jit(vmap(fun, axis_name="i"))(x), vmap(fun, axis_name="i")(x))

    def inside(x):
        return control.scan(lambda c, y: (c + psum(x * y, "i"), None), x, ITEMS)[0]

    assert_close(vmap(inside, axis_name="i")(x), x + 3.0 * ITEMS.sum())
    with pytest.raises(AxisNameError):
        jax.jit(vmap(inside, axis_name="i"))(x)


# dtypes


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "float16"])
def test_python_numbers_take_dtype_of_arrays(wrap, dtype):
    xs = np.arange(3).astype(dtype)

    def fun(xs):
        return control.scan(lambda c, x: (c * 0.5 + x, c), 0.0, xs)[0], control.fori_loop(
            0, 3, lambda i, v: v * i + xs[0], 1
        )

    found = wrap(fun)(xs)
    assert [leaf.dtype for leaf in leaves(found)] == [np.dtype(dtype)] * 2
    slope = wrap(vjp_of(lambda xs: control.scan(lambda c, x: (c * 0.5 + x, None), 0.0, xs)[0]))(xs)
    assert slope.dtype == dtype
    assert_close(slope, np.array([0.25, 0.5, 1.0], dtype))


def vjp_of(fun):
    def pulled(x):
        y, pullback = vjp(fun, x)
        return pullback(y * 0 + 1)[0]

    return pulled


def test_float32_is_kept():
    expected = {case: reference(case)["grad"] for case in (rnn, counted, choice, mapped)}  # in double precision
    with precision_switch(jax)(False):
        w = jnp.asarray([0.4, 0.7])
        for case, want in expected.items():
            slope = jax.jit(grad(case(fnp, control)))(w)
            assert slope.dtype == np.float32
            assert_close(slope, want, rtol=1e-4)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_branch_returning_number_takes_dtype_of_other(wrap):
    x = np.float32(3.0)
    found = wrap(lambda p, x: vmap(lambda p: control.cond(p, lambda: x, lambda: 1.0))(p))(np.array([True, False]), x)
    assert found.dtype == np.float32
    assert_close(found, np.array([3.0, 1.0], np.float32))


def test_integers_are_carried_beside_floats():
    def fun(x):
        def step(c, n):
            return (c[0] * x + n, c[1] + 1, c[2] | (n > 1)), n

        (last, count, late), ns = control.scan(step, (x, 0, False), np.arange(3))
        return last * count * late + fnp.sum(ns)

    assert_close(jax.jit(value_and_grad(fun))(1.5), value_and_grad(fun)(1.5))
    assert_close(jax.jit(hessian(fun))(1.5), hessian(fun)(1.5))


# Watching values


def test_strict_and_debug_nans_in_plain_loops():
    def fun(x):
        return control.scan(lambda c, y: (fnp.log(c) * x, None), x, ITEMS)[0]

    with pytest.raises(FloatingPointError, match="log"), np.errstate(all="ignore"), debug_nans():
        grad(fun)(-1.0)
    with strict(), pytest.raises(TypeError, match="round"):
        grad(lambda x: control.scan(lambda c, y: (fnp.round(c * x), None), x, ITEMS)[0])(1.0)


def test_debug_nans_around_a_compiled_loop():
    with debug_nans():
        assert_close(jax.jit(grad(rnn(fnp, control)))(POINTS[0]), reference(rnn)["grad"])


def test_changed_closure_between_runs_raises():
    calls = []

    def fun(x, y):
        def step(c, _):
            calls.append(1)
            return c * (x if len(calls) == 1 else y), None

        return control.scan(step, x, None, 3)[0]

    with pytest.raises(NotDifferentiableError, match="did not close over when it was run before"):
        jax.jit(grad(fun, (0, 1)))(1.0, 2.0)


def test_writes_inside_body():
    def own(w):
        def step(c, x):
            y = fnp.zeros(2)
            y[0], y[1] = c * w, x
            return fnp.sum(y * y), y

        c, ys = control.scan(step, w, ITEMS)
        return c + fnp.sum(ys)

    def outer(w):
        z = fnp.stack([w, w])

        def step(c, x):
            z[0] = c
            return c * x, z[0]

        return control.scan(step, w, ITEMS)[0] + fnp.sum(z)

    def argument(w):
        def step(c, x):
            c[0] = x
            return c, c

        return fnp.sum(control.scan(step, fnp.stack([w, w]), ITEMS)[0])

    assert_close(jax.jit(value_and_grad(own))(0.9), value_and_grad(own)(0.9))
    with pytest.raises(NotDifferentiableError, match="write to nothing outside"):
        jax.jit(grad(outer))(0.9)
    for slope in (grad(argument), jax.jit(grad(argument))):
        with pytest.raises(FuncgradError, match="cannot be written to"):
            slope(0.9)


def test_jax_drops_jvp_rule_in_second_derivative_of_loop():
    """Check a loop with a JVP rule that is not the derivative: JAX drops the rule, plain Python applies the rule."""

    @custom_jvp
    def doubled(x):
        return fnp.sin(x)

    @jax.custom_jvp
    def theirs(x):
        return jnp.sin(x)

    doubled.defjvp(lambda primals, tangents: (doubled(*primals), 2 * tangents[0]))
    theirs.defjvp(lambda primals, tangents: (theirs(*primals), 2 * tangents[0]))

    def fun(of, rule):
        return lambda w: of.fori_loop(0, 2, lambda i, c: rule(c * w), 0.5)

    assert_close(grad(fun(control, doubled))(0.9), jax.grad(fun(lax, theirs))(0.9))
    assert_close(jax.jit(grad(fun(control, doubled)))(0.9), jax.grad(fun(lax, theirs))(0.9))
    assert_close(grad(grad(fun(control, doubled)))(0.9), 4.0)
    if jax.__version_info__[:2] == (0, 10):
        forgotten = jax.grad(jax.grad(fun(lax, theirs)))(0.9)
        assert abs(forgotten - 4.0) > 0.1
        assert_close(jax.jit(grad(grad(fun(control, doubled))))(0.9), forgotten)


def test_branch_on_value_in_compiled_loop_raises_jax_error():
    fun = grad(lambda x: control.scan(lambda c, y: (c * y if c > 0 else -c, None), x, ITEMS)[0])
    assert_close(fun(2.0), np.prod(ITEMS))
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(fun)(2.0)


# Errors, equal whether compiled or not


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize(
    ("fun", "error", "message"),
    [
        (
            lambda x: control.scan(lambda c, y: ((c, c), y), x, ITEMS),
            InputError,
            r"scan: the carry must keep its structure, got \(\*, \*\) after a step from \*,",
        ),
        (
            lambda x: control.scan(lambda c, y: ({"h": c["h"][:1]}, y), {"h": fnp.stack([x, x])}, ITEMS),
            ShapeError,
            r"scan: the carry at \['h'\] must keep its shape, got \(1,\) after a step from \(2,\)\. Give",
        ),
        (
            lambda x: control.fori_loop(0, 3, lambda i, v: v + x, np.float32(1.0)),
            InputError,
            r"fori_loop: the carry must keep its dtype, got float64 after a step from float32\. Convert",
        ),
        (
            lambda x: control.while_loop(lambda v: v > 0, lambda v: fnp.astype(v, int), x),
            InputError,
            r"while_loop: the carry must keep its dtype, got int64 after a step from float64",
        ),
        (
            lambda x: control.while_loop(lambda v: v, lambda v: v, x),
            InputError,
            r"while_loop: cond_fun must return one truth value, got ",
        ),
        (
            lambda x: control.while_loop(lambda v: v > fnp.zeros(2), lambda v: v, x),
            InputError,
            r"while_loop: cond_fun must return one truth value, got bool\[2\]\. Return a comparison",
        ),
        (lambda x: control.scan(lambda c, y: c, x, ITEMS), InputError, r"scan: f must return a pair \(carry, y\), "),
        (
            lambda x: control.scan(lambda c, y: (c, "text"), x, ITEMS),
            InputError,
            r"scan: .*not an array or a number, got str 'text'",
        ),
        (
            lambda x: control.scan(lambda c, y: (c, y), (x, "text"), ITEMS),
            InputError,
            r"scan: the carry\[1\] is not an array or a number, got str 'text'\. Let the function close over it",
        ),
        (
            lambda x: control.cond(x > fnp.zeros(2), lambda: x, lambda: x),
            InputError,
            r"cond: pred must be one truth value, got bool\[2\]\. Reduce it",
        ),
        (lambda x: control.cond("yes", abs, abs, x), InputError, r"cond: pred must be one truth value, got str 'yes'"),
        (lambda x: control.cond(True, 1.0, abs, x), InputError, r"cond: true_fun must be a function, got float 1\.0"),
        (lambda x: control.cond(True, abs, abs, x, operand=x), InputError, r"cond: operands come by position or as"),
        (lambda x: control.switch(x, [abs, abs], x), InputError, r"switch: index must be one integer, got float64\[\]"),
        (lambda x: control.switch(0, [], x), ShapeError, r"switch: there must be a branch, got none"),
        (lambda x: control.fori_loop(0.5, 3, lambda i, v: v, x), InputError, r"fori_loop: lower must be an integer"),
        (lambda x: control.scan(1, x, ITEMS), InputError, r"scan: f must be a function, got int 1\."),
        (
            lambda x: control.scan(lambda c, y: (c, y), x, (ITEMS, np.ones(2))),
            ShapeError,
            r"scan: the first axes of xs must have one length, got \[2, 3\]\. Cut",
        ),
        (
            lambda x: control.scan(lambda c, y: (c, y), x, ITEMS, 7),
            ShapeError,
            r"scan: the first axes of xs must have one length, got \[3\] and length=7",
        ),
        (lambda x: control.scan(lambda c, y: (c, y), x), InputError, r"scan: the number of steps is unknown"),
        (
            lambda x: control.scan(lambda c, y: (c, y), x, {"k": x}),
            ShapeError,
            r"scan: xs\['k'\] has no first axis to go through, got float64\[\]",
        ),
        (lambda x: control.scan(lambda c, y: (c, y), x, ITEMS, unroll=-1), ShapeError, r"scan: unroll must be True, "),
        (lambda x: control.scan(lambda c, y: (c, y), x, ITEMS, unroll="a"), InputError, r"scan: unroll must be an int"),
        (lambda x: control.map(abs, x, batch_size=2), ShapeError, r"map: the first axes of xs must have one length"),
        (lambda x: control.map(abs, ITEMS * x, batch_size=-1), ShapeError, r"map: batch_size must not be negative"),
        (
            lambda x: control.associative_scan(lambda a, b: a, ITEMS * x, axis=1),
            ShapeError,
            r"associative_scan: there is no axis 1, got float64\[3\]",
        ),
        (
            lambda x: control.associative_scan(lambda a, b: a, (ITEMS * x, np.ones(2))),
            ShapeError,
            r"associative_scan: axis 0 must have one length in all of elems, got \[2, 3\]",
        ),
        (
            lambda x: control.associative_scan(lambda a, b: (a, b), ITEMS * x),
            InputError,
            r"associative_scan: fn must return the structure of its arguments",
        ),
        (
            lambda x: control.associative_scan(lambda a, b: a[0], ITEMS * x),
            ShapeError,
            r"associative_scan: fn must return the shapes of its arguments, got \(\) from \(1,\)",
        ),
    ],
)  # fmt: skip
def test_errors(wrap, fun, error, message):
    with pytest.raises(error, match="^" + message):
        wrap(fun)(np.float64(2.0))


BRANCHES = [
    (lambda x: (x, x), InputError, "cond: all branches must return the same structure, got .* from branch 0 and"),
    (lambda x: x * np.ones(2), ShapeError, r"cond: all branches must return the same shapes, got \(\) from branch 0"),
    (lambda x: x > 0, InputError, "cond: all branches must return the same dtypes, got float64 from branch 0 and bool"),
    (lambda x: None, InputError, "cond: all branches must return the same structure"),
]


@pytest.mark.parametrize(("other", "error", "message"), BRANCHES)
def test_mismatched_branches_raise(other, error, message):
    def fun(p, x):
        return control.cond(p, other, lambda x: x, x)

    with pytest.raises(error, match="^" + message):
        vmap(fun, (0, None))(np.array([True, False]), np.float64(2.0))
    with pytest.raises(error, match="^" + message):
        jax.jit(fun)(True, 2.0)


def test_mismatched_steps_raise():
    shapes = iter([1, 2])
    with pytest.raises(ShapeError, match=r"^scan: y must have one shape in all steps, got \[\(1,\), \(2,\)\]"):
        control.scan(lambda c, _: (c, np.ones(next(shapes))), 0.0, None, 2)
    values = iter([1.0, (1.0, 2.0)])
    with pytest.raises(InputError, match=r"^scan: y must have one structure in all steps"):
        control.scan(lambda c, _: (c, next(values)), 0.0, None, 2)


def test_what_all_branches_return_unchanged_depends_on_no_example():
    def doubled(x, y):
        return control.cond(x < 1, lambda x, y: (2 * x, y), lambda x, y: (x, y), x, y)

    def chosen(i, y):
        return control.switch(i, [lambda y: (y, y[0]), lambda y: (y, y[1])], y)

    x, y = np.arange(3.0), np.array([0.5, 2.0])
    assert_close(vmap(doubled, (0, None), (0, None))(x, y), (np.array([0.0, 1.0, 2.0]), y))
    assert_close(vmap(chosen, (0, None), (None, 0))(np.array([0, 1]), y), (y, y))
    assert_close(grad(lambda y: fnp.sum(fnp.sin(vmap(doubled, (0, None))(x, y)[1])))(y), 3 * np.cos(y))


@pytest.mark.parametrize(
    "slope",
    [
        lambda f, x: jvp(f, (x,), (1.0,))[1],
        lambda f, x: linearize(f, x)[1](1.0),
        lambda f, x: vjp(f, x)[1](1.0)[0],
        lambda f, x: jacfwd(f)(x),
        lambda f, x: hessian(f)(x),
        lambda f, x: jvp(grad(f), (x,), (1.0,))[1],
        lambda f, x: linearize(jacfwd(f), x)[1](1.0),
    ],
)
def test_derivatives_in_a_compiled_body_at_a_point_that_it_closes_over(slope):
    def fun(x):
        f = lambda z: fnp.sin(z) * np.asarray(z)
        above = control.cond(x > 0, lambda: slope(f, x), lambda: x)
        return above + control.scan(lambda c, y: (c + y * slope(f, x), None), 0.0 * x, np.array([1.0, 2.0]))[0]

    for x in (0.5, -0.5):
        assert_close(jit(fun)(x), fun(x))
        assert_close(jit(grad(fun))(x), grad(fun)(x))
    points = np.array([0.5, -0.5])
    assert_close(jit(vmap(fun))(points), vmap(fun)(points))


def test_only_loops_between_plain_integers_are_unrolled():
    with pytest.raises(ShapeError, match=r"^fori_loop: only a loop between plain integers can be unrolled, got "):
        jax.jit(lambda n, x: control.fori_loop(0, n, lambda i, v: v * x, x, unroll=2))(3, 2.0)
    for unroll in (2, 0, True):
        assert_close(jax.jit(lambda x, n=unroll: control.fori_loop(0, 3, lambda i, v: v * x, x, unroll=n))(2.0), 16.0)
        assert_close(
            jax.jit(lambda x, n=unroll: control.scan(lambda c, y: (c * y, c), x, ITEMS, unroll=n)[0])(2.0),
            control.scan(lambda c, y: (c * y, c), 2.0, ITEMS)[0],
        )


@pytest.mark.parametrize(
    "run",
    [
        lambda x: control.associative_scan(lambda a, b: a + b, x),
        lambda x: control.scan(lambda c, _: (c, None), x, length=2)[0],
        lambda x: control.fori_loop(0, 2, lambda i, c: c, x),
        lambda x: control.while_loop(lambda c: False, lambda c: c, x),
    ],
)
def test_returned_argument_is_a_copy(run):
    """Check under transforms, as on plain arrays, that a write to the input does not show in the output."""

    def f(x):
        y = x * 1.0
        z = run(y)
        y[0] += 5.0 * x[0]
        return fnp.sum(z**2)

    x = np.array([2.0])
    assert_close(f(x), 4.0)
    assert_close(grad(f)(x), np.array([4.0]))
    assert_close(vmap(grad(f))(x[None]), np.array([[4.0]]))


def _branch_that_writes(x, xp):
    kept = xp.zeros(2)

    def double(y):
        kept[0] = y * 3
        return 2 * y

    return control.cond(x > 0, double, lambda y: y, x) + kept[0]


def _branch_that_binds(x, xp):
    total = x * 1.0

    def add(y):
        nonlocal total
        total = total + y
        return y

    return control.switch(xp.astype(xp.sign(x) + 1, int), [lambda y: y, lambda y: y, add], x) * total


def _step_that_writes(x, xp):
    kept = xp.zeros(2)

    def step(y):
        kept[:] = kept + y
        return y * 2

    return control.while_loop(lambda y: y < 3, step, x) * kept[1]


def _counted_step_that_writes(x, xp):
    kept = xp.zeros(2)

    def step(i, y):
        kept[1] = kept[1] + 1.0
        return y * 2

    return control.fori_loop(0, xp.astype(x, int), step, x) + kept[1]


@pytest.mark.parametrize("xp", [fnp, np], ids=["funcgrad", "numpy"])
@pytest.mark.parametrize("fun", [_branch_that_writes, _branch_that_binds, _step_that_writes, _counted_step_that_writes])
def test_writes_outside_of_a_body_raise_if_examples_differ(fun, xp):
    f = lambda x: fun(x, xp)
    points = np.array([2.5, -0.5]) if fun in (_branch_that_writes, _branch_that_binds) else np.array([2.5, 1.0])
    with pytest.raises(InputError, match="writes to a variable or an array that it closes over"):
        vmap(f)(points)
    with pytest.raises(InputError, match="writes to a variable or an array that it closes over"):
        jit(vmap(grad(f)), backend="numpy")(points)
    same, one = np.full(2, 2.5), np.float64(2.5)
    if fun is not _branch_that_binds:
        np.testing.assert_allclose(vmap(f)(same), [f(one)] * 2)
        np.testing.assert_allclose(vmap(grad(f))(same), [grad(f)(one)] * 2)
        fast = jit(vmap(f), backend="numpy")
        np.testing.assert_allclose(fast(same), [f(one)] * 2)
        with pytest.raises(InputError, match="writes to a variable or an array that it closes over"):
            fast(points)


@pytest.mark.parametrize(
    "wrap", [lambda g: jit(g), lambda g: lambda *args: g(*args)], ids=["jit outside", "jit inside"]
)
def test_error_of_forward_mode_of_a_pullback_in_a_compiled_body_names_the_remedy(wrap):
    bell = custom_vjp(lambda x: fnp.exp(-x * x))
    bell.defvjp(lambda x: (fnp.exp(-x * x), x), lambda x, ct: (-2 * x * fnp.exp(-x * x) * ct,))
    fun = jit(lambda x: control.cond(x > 0, lambda: bell(x * 0.3), lambda: x))
    with pytest.raises(NotDifferentiableError, match=r"has no forward mode for functions with a pullback .* jacrev\("):
        wrap(lambda x: jvp(fun, (x,), (1.0,))[1])(0.5)
    assert_close(jacrev(grad(fun))(0.5), jacrev(grad(lambda x: fnp.exp(-((x * 0.3) ** 2))))(0.5))


def test_switch_with_one_branch():
    fun = lambda x: control.switch(3, [lambda x: x**2], x)
    assert grad(fun)(2.0) == 4.0
    np.testing.assert_array_equal(vmap(grad(fun))(np.array([1.0, 2.0])), [2.0, 4.0])


def test_associative_scan_of_nothing():
    assert control.associative_scan(lambda a, b: a + b, {}) == {}


def test_python_numbers_as_carry():
    """A number takes the dtype of a first value that has one; a first value without one takes that of the number."""
    found = control.fori_loop(0, 3, lambda i, c: 1, np.float32(2.0))
    assert (found, type(found)) == (1.0, np.float32)
    last, rows = control.scan(lambda c, y: (2.0, c * y), np.float32(1.0), np.arange(3, dtype=np.float32))
    assert type(last) is np.float32
    np.testing.assert_array_equal(rows, np.array([0.0, 2.0, 4.0], np.float32), strict=True)
    assert control.scan(lambda c, y: (c + 1.5, c), 1, np.arange(3))[0] == 5.5
    assert control.scan(lambda c, y: (c * 1j, c), 1.5, np.arange(3))[0] == -1.5j
    assert jax.jit(lambda n: control.fori_loop(0, n, lambda i, c: c + 1.5, 1))(3) == 5.5
    for other in ("a", object()):
        with pytest.raises(InputError, match="fori_loop: the carry is not an array or a number"):
            control.fori_loop(0, 3, lambda i, c: other, 1.0)  # noqa: B023


def test_loops_that_close_over_values_of_jax():
    """The first step shows that values are unknown; the loop is then staged."""
    fun = lambda n: control.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] * n), (0, 1.0))[1]
    assert jax.jit(fun)(3.0) == 81.0
    assert jax.jit(jax.jacfwd(fun))(3.0) == 108.0


def test_staged_loops_of_integers_have_no_derivative():
    fun = lambda x: x * control.scan(lambda c, y: (c + fnp.astype(x, int), None), 0, np.arange(3))[0]
    assert jax.jit(grad(fun))(3.0) == 9.0
