"""Functional automatic differentiation with composable transforms on plain NumPy arrays.

Pure functions go in, pure functions come out: ``grad(f)``, ``vmap(f)``, ``jacrev(f)``, in any nesting and
order, in toolz pipelines, on NumPy arrays and, unchanged, on JAX arrays.

Example:
    >>> import numpy as np
    >>> from funcgrad import grad, pipe, vmap
    >>> slope = grad(lambda x: np.sin(x) ** 2)
    >>> pipe(np.array([0.0, np.pi / 4]), vmap(slope)).round(12)
    array([0., 1.])
"""

from typing import TYPE_CHECKING

from toolz import (
    complement,
    compose,
    compose_left,
    curry,
    do,
    excepts,
    flip,
    identity,
    juxt,
    memoize,
    pipe,
    thread_first,
    thread_last,
)

from funcgrad import numpy, tree
from funcgrad.core import Tracer as _Tracer
from funcgrad.numpy.methods import install as _install
from funcgrad.optional import lazy_attributes as _later
from funcgrad.transforms import (
    as_written,
    debug_nans,
    grad,
    hessian,
    hvp,
    jacfwd,
    jacobian,
    jacrev,
    jvp,
    linearize,
    no_grad,
    stop_gradient,
    strict,
    value_and_grad,
    vjp,
    vmap,
)
from funcgrad.tree import register_dataclass, register_pytree_node

_install(_Tracer)  # tracers get an ndarray's operators and methods here and nowhere else

__version__ = "0.2.0"

if TYPE_CHECKING:
    from funcgrad import errors as errors
    from funcgrad import extend as extend
    from funcgrad import interop as interop
    from funcgrad import nn as nn
    from funcgrad import scipy as scipy
    from funcgrad.interop import crosscheck as crosscheck
    from funcgrad.interop.jax.jit import jit as jit
    from funcgrad.transforms import (
        all_gather,
        all_to_all,
        associative_scan,
        axis_index,
        check_grads,
        checkpoint,
        checkpoint_chain,
        checkpoint_name,
        checkpoint_policies,
        cond,
        control,
        custom_jvp,
        custom_linear_solve,
        custom_root,
        custom_vjp,
        fixed_point,
        fori_loop,
        linear_transpose,
        pmax,
        pmean,
        pmin,
        ppermute,
        profile,
        psum,
        psum_scatter,
        scan,
        switch,
        tape,
        trace,
        while_loop,
    )

__all__ = [
    # transforms
    "custom_jvp",
    "custom_linear_solve",
    "custom_root",
    "custom_vjp",
    "fixed_point",
    "grad",
    "hessian",
    "hvp",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jvp",
    "linear_transpose",
    "linearize",
    "no_grad",
    "stop_gradient",
    "value_and_grad",
    "vjp",
    "vmap",
    # control flow that JAX can compile, together with control.map
    "associative_scan",
    "cond",
    "fori_loop",
    "scan",
    "switch",
    "while_loop",
    # memory
    "checkpoint",
    "checkpoint_chain",
    "checkpoint_name",
    "checkpoint_policies",
    # compilation
    "jit",
    # inspection and debugging
    "check_grads",
    "crosscheck",
    "debug_nans",
    "profile",
    "strict",
    "tape",
    "trace",
    # code written for NumPy
    "as_written",
    # collectives inside vmap
    "all_gather",
    "all_to_all",
    "axis_index",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "psum",
    "psum_scatter",
    # pytrees
    "register_dataclass",
    "register_pytree_node",
    # pipelines, re-exported from toolz
    "complement",
    "compose",
    "compose_left",
    "curry",
    "do",
    "excepts",
    "flip",
    "identity",
    "juxt",
    "memoize",
    "pipe",
    "thread_first",
    "thread_last",
    # modules
    "control",
    "numpy",
    "tree",
]

if not TYPE_CHECKING:  # names that are imported at first access
    _homes = {name: f"funcgrad.transforms:{name}" for name in __all__ if name not in globals()}
    _homes |= {name: f"funcgrad.interop:{name}" for name in ("crosscheck", "jit")}
    _homes |= {name: f"funcgrad.{name}" for name in ("errors", "extend", "interop", "nn", "scipy")}
    _advice = {
        "backward": "grad(loss)(x): gradients are returned",
        "elementwise_grad": "vmap(grad(f)), or grad(lambda x: f(x).sum())",
        "enable_grad": "grad(f), which differentiates its arguments within no_grad too",
        "eval_shape": "trace",
        "gradient": "grad",
        "grad_and_value": "value_and_grad, which returns the value first",
        "lax": "funcgrad.control, or plain Python",
        "make_jaxpr": "trace",
        "make_jvp": "jvp",
        "make_vjp": "vjp",
        "minimize": "funcgrad.scipy.optimize.minimize",
        "multigrad_dict": "grad of a function of a dictionary",
        "primitive": "custom_vjp, or funcgrad.extend",
        "pmap": "vmap, or JAX's around a transform of funcgrad",
        "random": "numpy.random: its draws are constants",
        "remat": "checkpoint",
        "stop_grad": "stop_gradient",
        "tree_flatten": "funcgrad.tree.flatten",
        "tree_leaves": "funcgrad.tree.leaves",
        "tree_map": "funcgrad.tree.map",
        "tree_unflatten": "funcgrad.tree.unflatten",
        "tree_util": "funcgrad.tree",
        "tensor": "numpy.asarray: functions take NumPy arrays as they are",
    }
    __getattr__, __dir__ = _later(__name__, globals(), _homes, _advice)
