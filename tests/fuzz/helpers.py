"""Functions that random programs call besides NumPy. A reproducer carries a copy of this file's functions."""

import math
from types import SimpleNamespace

import numpy
import toolz


def each(fun, *trees):
    """Return ``fun`` of the leaves of trees of one structure."""
    first = trees[0]
    if isinstance(first, dict):
        return {key: each(fun, *[tree[key] for tree in trees]) for key in first}
    if isinstance(first, (tuple, list)):
        return type(first)(each(fun, *parts) for parts in zip(*trees, strict=True))
    return fun(*trees)


def numbers(shape, dtype, k):
    """Return reproducible numbers, none of them small."""
    waves = numpy.arange(math.prod(shape)) * 1.7 + 0.9 * k
    found = numpy.where(numpy.cos(waves) < 0, -0.4, 0.4) + 0.5 * numpy.cos(waves)
    if numpy.dtype(dtype).kind == "c":
        found = found + 1j * (0.3 + 0.4 * numpy.sin(waves))
    return found.astype(dtype).reshape(shape)


def like(tree, k):
    """Return constants in the form of ``tree``."""
    return each(lambda x: numbers(x.shape, x.dtype, k), tree)


def times(tree, other):
    """Return products of leaves."""
    return each(lambda a, b: a * b, tree, other)


def weigh(np, tree, k):
    """Return one real number made of all leaves."""
    parts = []
    each(lambda x: parts.append(np.sum(np.real(x * numbers(x.shape, x.dtype, k)))), tree)
    return sum(parts[1:], parts[0])


def pulled(pair, k):
    """Return the result of a pullback for some cotangent."""
    return pair[1](like(pair[0], k))[0]


scales = numpy.array([1.0, 0.75])  # scales of the examples of a batch


def examples(np, tree, axis):
    """Return two examples, the second a multiple of the first."""
    return each(lambda x: np.stack([x, 0.75 * x], axis), tree)


def small(np, *values):
    """Return a share of every value, so that no computation is unused."""
    return 0.1 * sum(np.sum(np.real(v * (0.6 - 0.8j)) if v.dtype.kind == "c" else v) for v in values)


def own_jvp(fg, fun, slope):
    """Return ``fun(x) * s`` with a custom JVP rule."""
    f = fg.custom_jvp(lambda x, s: fun(x) * s)
    f.defjvp(lambda xs, ts: (f(*xs), slope(xs[0]) * xs[1] * ts[0] + 2 * fun(xs[0]) * ts[1]))
    return f


def own_vjp(fg, fun, slope):
    """Return ``fun(x) * s`` with a custom VJP rule only."""
    f = fg.custom_vjp(lambda x, s: fun(x) * s)

    def bwd(kept, ct):
        x, s = kept
        return (ct * slope(x) * s).astype(x.dtype), 2 * (ct * fun(x)).sum().astype(s.dtype)

    f.defvjp(lambda x, s: (f(x, s), (x, s)), bwd)
    return f


def jax_library():
    """Return the transforms of JAX under funcgrad's names."""
    import jax

    names = ["grad", "hessian", "jacfwd", "jacrev", "jit", "jvp", "linearize", "value_and_grad", "vjp", "vmap"]
    names += ["custom_jvp", "custom_vjp", "linear_transpose"]
    control = ["associative_scan", "cond", "fori_loop", "pmean", "psum", "scan", "switch", "while_loop"]
    pipelines = ["compose", "compose_left", "curry", "do", "juxt", "pipe", "thread_first", "thread_last"]
    return SimpleNamespace(
        **{name: getattr(jax, name) for name in names},
        **{name: getattr(jax.lax, name) for name in control},
        **{name: getattr(toolz, name) for name in pipelines},
        checkpoint=lambda f: jax.checkpoint(lambda *args: f(*args)),  # JAX makes a weak reference to f
        control=SimpleNamespace(map=jax.lax.map),
        no_grad=lambda f: lambda *args: jax.lax.stop_gradient(f(*args)),
        stop_gradient=jax.lax.stop_gradient,
    )


def funcgrad_library():
    """Return the transforms of funcgrad, with ``jit``."""
    import funcgrad

    return SimpleNamespace(**{name: getattr(funcgrad, name) for name in funcgrad.__all__})
