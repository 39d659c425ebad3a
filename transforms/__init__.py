"""The transforms: functions that take a function and return a function.

Every transform takes and returns plain callables, so a transform can stand anywhere in a pipeline.

Example:
    >>> from funcgrad.transforms import grad, vmap
    >>> grad(lambda x: x * x)(3.0)
    np.float64(6.0)
"""

from typing import TYPE_CHECKING

from funcgrad.numpy_code import as_written
from funcgrad.optional import lazy_attributes
from funcgrad.transforms.debugging import debug_nans, strict
from funcgrad.transforms.gradients import grad, value_and_grad
from funcgrad.transforms.jacobians import hessian, jacfwd, jacobian, jacrev
from funcgrad.transforms.products import hvp, jvp, linearize, vjp
from funcgrad.transforms.stopping import no_grad, stop_gradient
from funcgrad.transforms.vectorize import vmap

if TYPE_CHECKING:
    from funcgrad.transforms import control
    from funcgrad.transforms import policies as checkpoint_policies
    from funcgrad.transforms.checking import check_grads
    from funcgrad.transforms.checkpointing import checkpoint, checkpoint_chain, checkpoint_name
    from funcgrad.transforms.collectives import (
        all_gather,
        all_to_all,
        axis_index,
        pmax,
        pmean,
        pmin,
        ppermute,
        psum,
        psum_scatter,
    )
    from funcgrad.transforms.control import associative_scan, cond, fori_loop, scan, switch, while_loop
    from funcgrad.transforms.custom import custom_jvp, custom_vjp
    from funcgrad.transforms.implicit import (
        anderson,
        custom_linear_solve,
        custom_root,
        dense_solve,
        fixed_point,
        newton,
        picard,
    )
    from funcgrad.transforms.inspection.profiling import profile
    from funcgrad.transforms.inspection.tracing import tape, trace
    from funcgrad.transforms.transposing import linear_transpose
else:  # names that fewer programs need are imported at their first use
    _LATER = {
        "checking": "check_grads",
        "checkpointing": "checkpoint checkpoint_chain checkpoint_name",
        "collectives": "all_gather all_to_all axis_index pmax pmean pmin ppermute psum psum_scatter",
        "control": "associative_scan cond fori_loop scan switch while_loop",
        "custom": "custom_jvp custom_vjp",
        "implicit": "anderson custom_linear_solve custom_root dense_solve fixed_point newton picard",
        "inspection.profiling": "profile",
        "inspection.tracing": "tape trace",
        "transposing": "linear_transpose",
    }
    _HOMES = {name: f"{__name__}.{module}:{name}" for module, names in _LATER.items() for name in names.split()}
    _MODULES = {"control": f"{__name__}.control", "checkpoint_policies": f"{__name__}.policies"}
    __getattr__, __dir__ = lazy_attributes(__name__, globals(), _HOMES | _MODULES)

__all__ = [
    "all_gather", "all_to_all", "anderson", "associative_scan", "axis_index", "check_grads", "checkpoint",
    "checkpoint_chain", "checkpoint_name", "checkpoint_policies", "cond", "control", "custom_jvp",
    "custom_linear_solve", "custom_root", "custom_vjp", "debug_nans", "dense_solve", "fixed_point", "fori_loop",
    "grad", "hessian", "hvp", "jacfwd", "jacobian", "jacrev", "jvp", "linear_transpose", "linearize", "newton",
    "as_written", "no_grad", "picard", "pmax", "pmean", "pmin", "ppermute", "profile", "psum", "psum_scatter",
    "scan", "stop_gradient", "strict", "switch", "tape", "trace", "value_and_grad", "vjp", "vmap", "while_loop",
]  # fmt: skip
