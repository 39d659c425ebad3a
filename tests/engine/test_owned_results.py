"""Results of transforms of functions that return arguments, one array twice, or closed-over arrays.

Every function here runs under every transform. Then the test overwrites all results, all inputs and all closed-over
arrays: nothing else may change, and no result may share memory with an array of another owner.
"""

import array
import ctypes
import itertools
import mmap

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import (
    checkpoint,
    custom_jvp,
    custom_linear_solve,
    custom_root,
    custom_vjp,
    fori_loop,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linearize,
    no_grad,
    scan,
    stop_gradient,
    trace,
    tree,
    value_and_grad,
    vjp,
    vmap,
)
from funcgrad.core import Tracer

X = np.array([0.3, 1.1, 2.0])
T = np.ones(3)
FACTORS, MATRIX = np.array([1.0, 2.0, 3.0]), np.arange(9.0).reshape(3, 3) + 5.0 * np.eye(3)
ORDER, MASK = np.array([0, 2, 1]), np.array([True, False, True])
CLOSED_OVER = [FACTORS, MATRIX, ORDER, MASK]
KEPT = [x.copy() for x in CLOSED_OVER]


# ---- functions whose results share memory ---------------------------------------------------------------------


@custom_vjp
def constant_cotangent(x):
    return x * 1.0


constant_cotangent.defvjp(lambda x: (x * 1.0, FACTORS), lambda saved, ct: (saved,))


@custom_vjp
def same_cotangent(x, y):
    return x + y


same_cotangent.defvjp(lambda x, y: (x + y, None), lambda saved, ct: (ct, ct))


@custom_jvp
def constant_tangent(x):
    return x * 1.0


constant_tangent.defjvp(lambda primals, tangents: (primals[0] * 1.0, MATRIX[0] * tangents[0]))


def cube_root(x):
    def solve(f, guess):
        return fnp.abs(guess) ** (1 / 3)

    return custom_root(lambda y: y**3 - x, x, solve, lambda f, y: y / f(fnp.ones(3)))


def quotient(x):
    def solve(f, b):
        return b / f(fnp.ones(3))

    return custom_linear_solve(lambda y: y * FACTORS, x, solve, transpose_solve=solve)


def twice(y):
    return y, y, y[:2], {"again": y}


def written(x):
    b = fnp.zeros((2, 3))
    row = b[1]
    b[0] = x
    row[:] = FACTORS
    return b, row, x


def unwritten():
    b = fnp.zeros((2, 3))
    return b, b[0], fnp.ones(3)


FUNCTIONS = {
    "argument": lambda x: (x, x, x[1:], x[::-1], x.reshape(3, 1), fnp.broadcast_to(x, (2, 3))),
    "copies of the argument": lambda x: (x.copy(), fnp.array(x), x.astype(float), +x, fnp.conj(x), fnp.asarray(x)),
    "result": lambda x: twice(x * 2.0),
    "matrix": lambda x: (lambda m: (m, m.T, fnp.diagonal(m), fnp.einsum("ii->i", m)))(fnp.outer(x, x)),
    "complex": lambda x: (lambda z: (z, z.real, z.imag))(x + 1j * FACTORS),
    "closed over": lambda x: (FACTORS, FACTORS[1:], x * FACTORS, fnp.asarray(FACTORS), MASK),
    "indices": lambda x: (
        x[ORDER],
        fnp.take(x, ORDER),
        fnp.where(MASK, x, FACTORS),
        fnp.choose(ORDER, [x, x, FACTORS]),
    ),
    "matrices": lambda x: (MATRIX @ x, fnp.linalg.solve(MATRIX, x), fnp.linalg.inv(MATRIX + fnp.diag(x)), x**FACTORS),
    "written": written,
    "constants": lambda x: (*unwritten(), x * 1.0),
    "out": lambda x: (lambda b: (np.add(x, FACTORS, out=b), b))(fnp.zeros(3)),
    "constant cotangent": constant_cotangent,
    "same cotangent": lambda x: same_cotangent(x, x),
    "constant tangent": constant_tangent,
    "root": cube_root,
    "linear solve": quotient,
    "stopped": lambda x: (stop_gradient(x), no_grad(lambda y: y)(x), x),
    "scan": lambda x: scan(lambda c, a: (c, (c, a)), x, np.stack([FACTORS, FACTORS])),
    "loop": lambda x: (fori_loop(0, 0, lambda i, c: c, x), fori_loop(0, 2, lambda i, c: c, x)),
    "vmap": lambda x: vmap(lambda a: (a, a, FACTORS, a * FACTORS))(x),
    "pullback": lambda x: vjp(lambda y: y * FACTORS, x)[1](FACTORS),
    "gradient": lambda x: (grad(lambda y: fnp.sum(y * FACTORS))(x), x),
}


# ---- transforms ---------------------------------------------------------------------------------------------


def floating(f):
    return lambda x: tuple([y for y in tree.leaves(f(x)) if np.result_type(y).kind == "f"])


def total(f):
    return lambda x: sum([fnp.sum(y) for y in floating(f)(x)], 0.0 * fnp.sum(x))


def pulled(f, x):
    out, pullback = vjp(floating(f), x)
    shapes = [np.shape(y) for y in out]

    def again():
        return pullback(tuple([np.ones(shape)[()] for shape in shapes]))

    return (out, again(), again()), again


def pushed(f, x):
    out, push = linearize(f, x)
    return (out, push(T), push(T)), lambda: push(T)


def graph(f, x):
    traced = trace(f)(x)
    return (traced(X), traced(X)), lambda: traced(X)


def both(f):
    return lambda x, y: (total(f)(x) + total(f)(y)) * fnp.sum(x + y)


TRANSFORMS = {
    "vjp": pulled,
    "linearize": pushed,
    "trace": graph,
    "linearize of vmap": lambda f, x: pushed(lambda x: vmap(f)(fnp.stack([x, x])), x),
    "vjp of vjp": lambda f, x: pulled(lambda x: pulled(f, x)[0], x),
    "vjp of jvp": lambda f, x: pulled(lambda x: jvp(f, (x,), (T,)), x),
    "jvp": lambda f, x: (jvp(f, (x,), (T,)), None),
    "jvp, aux": lambda f, x: (jvp(lambda x: (x, f(x)), (x,), (T,), has_aux=True), None),
    "grad": lambda f, x: (grad(total(f))(x), None),
    "grad, argnums": lambda f, x: (grad(both(f), argnums=(0, 1))(x, x), None),
    "grad, dictionary": lambda f, x: (grad(lambda d: total(f)(d["a"] + d["b"]))({"a": x, "b": x}), None),
    "value_and_grad, aux": lambda f, x: (value_and_grad(lambda x: (total(f)(x), f(x)), has_aux=True)(x), None),
    "jacrev": lambda f, x: (jacrev(floating(f))(x), None),
    "jacfwd": lambda f, x: (jacfwd(floating(f))(x), None),
    "jacobian, aux": lambda f, x: (jacobian(lambda x: (floating(f)(x), f(x)), has_aux=True)(x), None),
    "jacrev, argnums": lambda f, x: (jacrev(lambda x, y: floating(f)(x + y), argnums=(0, 1))(x, x), None),
    "jacfwd, argnums": lambda f, x: (jacfwd(lambda x, y: floating(f)(x + y), argnums=(0, 1))(x, x), None),
    "hessian, argnums": lambda f, x: (hessian(both(f), argnums=(0, 1))(x, x), None),
    "hvp": lambda f, x: (hvp(total(f), (x,), (T,)), None),
    "grad of grad": lambda f, x: (grad(lambda x: fnp.sum(grad(total(f))(x) * x))(x), None),
    "vmap": lambda f, x: (vmap(f)(np.stack([x, x])), None),
    "vmap, nothing mapped": lambda f, x: (vmap(lambda a, x: (f(x), x, a), in_axes=(0, None))(np.arange(2.0), x), None),
    "vmap, out_axes": lambda f, x: (vmap(lambda a: (a, f(x)), out_axes=(0, None))(np.arange(2.0)), None),
    "vmap of grad": lambda f, x: (vmap(grad(both(f), argnums=(0, 1)))(np.stack([x, x]), np.stack([x, x])), None),
    "vmap of vjp": lambda f, x: (vmap(lambda x: pulled(f, x)[0])(np.stack([x, x])), None),
    "checkpoint": lambda f, x: (checkpoint(f)(x), None),
    "no_grad": lambda f, x: (no_grad(f)(x), None),
    "scan": lambda f, x: (scan(lambda c, a: (c, f(c)), x, np.arange(2.0)), None),
}


# ---- checks -------------------------------------------------------------------------------------------------


def arrays(results):
    leaves = tree.leaves(results)
    assert not any(issubclass(type(leaf), Tracer) for leaf in leaves), "what stands for an array was given away"
    return [leaf for leaf in leaves if type(leaf) is np.ndarray]


def overwrite(x):
    if x.dtype.kind != "V":  # void arrays represent missing derivatives
        x[...] = ~x if x.dtype.kind == "b" else 1 if x.dtype.kind == "i" else 44.0


def restore():
    for x, kept in zip(CLOSED_OVER, KEPT, strict=True):
        x[...] = kept


def assert_same(found, wanted):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_results_share_no_memory(transform, function):
    run, fun = TRANSFORMS[transform], FUNCTIONS[function]
    wanted = [x.copy() for x in arrays(run(fun, X.copy())[0])]
    given = X.copy()
    results, again = run(fun, given)
    found = arrays(results)
    assert_same(found, wanted)
    assert all(x.flags.writeable for x in found)
    assert not any(np.shares_memory(x, y) for x, y in itertools.combinations(found, 2))
    assert not any(np.shares_memory(x, y) for x in found for y in [*CLOSED_OVER, given, X, T])

    later = None if again is None else [x.copy() for x in arrays(again())]
    try:
        for x in [*found, given]:
            overwrite(x)
        assert_same(CLOSED_OVER, KEPT)
        for x in CLOSED_OVER:
            overwrite(x)
        if again is not None:
            assert_same(arrays(again()), later)
    finally:
        restore()
    assert_same(arrays(run(fun, X.copy())[0]), wanted)


#: Memory that does not belong to an array, and a function that returns an array view of that memory. The function under
#: test creates a new view in each run, and only the tape holds the view afterwards.
FOREIGN = {
    "bytearray": (lambda: bytearray(24), np.frombuffer),
    "memoryview": (lambda: bytearray(24), lambda memory: np.asarray(memoryview(memory).cast("d"))),
    "array.array": (lambda: array.array("d", [0.0] * 3), np.asarray),
    "mmap": (lambda: mmap.mmap(-1, 24), np.frombuffer),
    "ctypes": (lambda: (ctypes.c_double * 3)(), np.ctypeslib.as_array),
    "a row of it": (lambda: bytearray(48), lambda memory: np.frombuffer(memory).reshape(2, 3)[0]),
}
#: Transforms whose result outlives the call: the returned function, its argument, and how to read the derivative.
LASTING = {
    "vjp": lambda f: (vjp(f, X)[1], T, lambda found: found[0]),
    "linearize": lambda f: (linearize(f, X)[1], T, lambda found: found),
    "vjp of vmap": lambda f: (vjp(vmap(f), X[None])[1], T[None], lambda found: found[0][0]),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("transform", LASTING)
def test_write_to_base_of_view_argument_keeps_derivative(kind, transform):
    make, show = FOREIGN[kind]
    memory = make()
    show(memory)[:] = 2.0
    derivative, direction, taken = LASTING[transform](lambda x: x * show(memory))
    show(memory)[:] = 100.0
    np.testing.assert_array_equal(taken(derivative(direction)), 2 * T)
