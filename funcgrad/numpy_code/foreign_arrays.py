"""NumPy code that gets arrays of another library, such as JAX, and writes to its results.

Outside of every transform, the code's results would be immutable arrays of that library, too: ``part += y`` for a
view would leave the base unchanged, without an error. So the code runs in a trace of its own: results are writable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad import backend, tree
from funcgrad.core import Trace, is_in_transform
from funcgrad.numpy_code.running import run_rebuilt
from funcgrad.writable import as_constant, is_buffer


def run_anywhere(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run ``fun(*args, **kwargs)`` rebuilt, for arrays of any library, inside or outside of a transform.

    Example:
        >>> import numpy as np
        >>> run_anywhere(np.sin, (0.0,), {})
        np.float64(0.0)
    """
    given, spec = tree.flatten((args, kwargs))
    if is_in_transform() or not any(map(_is_foreign, given)):
        return run_rebuilt(fun, args, kwargs)
    trace = Trace()
    try:
        args, kwargs = tree.unflatten(spec, [as_constant(x) if _is_foreign(x) else x for x in given])
        return tree.map(lambda x: x._val if is_buffer(x) else x, run_rebuilt(fun, args, kwargs))
    finally:
        trace.close()


def _is_foreign(x: Any) -> bool:
    return type(x) is not np.ndarray and backend.is_value(x) and backend.namespace_of(x) is not np
