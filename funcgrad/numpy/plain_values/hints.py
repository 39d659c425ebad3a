"""Hints for error messages: the user's line, and what to call instead of a function that refuses a tracer.

Functions of NumPy, SciPy and Python that are written in Python are found on the stack. Functions written in C leave no
frame there, so the user's expression is parsed.
"""

from __future__ import annotations

import ast
import builtins
import dis
import linecache
import math
import operator
import sys
import sysconfig
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from traceback import walk_stack, walk_tb
from types import BuiltinFunctionType, FrameType, ModuleType
from typing import Any

import numpy as np

from funcgrad.core import Tracer
from funcgrad.errors import FuncgradError, text_of

#: Functions of SciPy, by module, with the name of the function of funcgrad that replaces them.
_ALIASES = {
    "scipy.optimize": {
        **dict.fromkeys(("bracket", "brent", "fminbound", "golden"), "minimize_scalar"),
        **dict.fromkeys(("fmin", "fmin_bfgs", "fmin_cg", "fmin_cobyla", "fmin_l_bfgs_b"), "minimize"),
        **dict.fromkeys(("fmin_ncg", "fmin_powell", "fmin_slsqp", "fmin_tnc"), "minimize"),
        "leastsq": "least_squares",
    },
    "scipy.sparse": {
        **dict.fromkeys(("bsr_array", "bsr_matrix", "csr_matrix"), "csr_array"),
        **dict.fromkeys(("coo_matrix", "dia_array", "dia_matrix"), "coo_array"),
        **dict.fromkeys(("diags", "spdiags"), "diags_array"),
        "bmat": "block_array",
        "csc_matrix": "csc_array",
    },
    "scipy.sparse.linalg": {"minres": "cg", "spilu": "splu"},
}
#: Text of array-api-compat's error for a traced array together with truth values of NumPy.
_MIXED_NAMESPACES_TEXT = "Multiple namespaces for array inputs"
#: Methods of SciPy's sparse matrices that multiply by an array on the right; ``*`` does so in older classes.
_PRODUCTS = ("__matmul__", "__mul__", "dot")
#: Formulas that make random numbers, by the name of the method, a function of their parameters.
_FORMULAS = {
    **dict.fromkeys(("normal", "standard_normal"), "mu + sigma * rng.normal(size=...)"),
    "lognormal": "exp(mu + sigma * rng.normal(size=...))",
    "multivariate_normal": "mean + cholesky(cov) @ rng.normal(size=...)",
    "uniform": "low + (high - low) * rng.uniform(size=...)",
    "exponential": "scale * rng.exponential(size=...)",
    "laplace": "loc + scale * rng.laplace(size=...)",
    "logistic": "loc + scale * rng.logistic(size=...)",
    "gumbel": "loc + scale * rng.gumbel(size=...)",
    "rayleigh": "scale * rng.rayleigh(size=...)",
    "choice": "x[rng.choice(len(x), ...)]",
    **dict.fromkeys(("permutation", "permuted", "shuffle"), "x[rng.permutation(len(x))]"),
}
#: Hints for arrays of the classes in these modules of NumPy.
_CLASS_HINTS = {
    "numpy.ma.": " Use an array and a separate mask: where(mask, fill, x), and sum(x, where=~mask) for reductions.",
    "numpy._core.records": " Use a dictionary of arrays, one for each field; transforms take it as it is.",
    "numpy._core.defchararray": " Texts have no derivative: make them from the result of the transformed function.",
    "numpy._core.memmap": " Write the result of the transformed function to the file.",
}
#: Functions of the module ``math`` that have other names in NumPy, or that SciPy has.
_MATH_COUNTERPARTS = {
    "dist": "numpy.linalg.norm",
    "erf": "scipy.special.erf",
    "erfc": "scipy.special.erfc",
    "fsum": "numpy.sum",
    "gamma": "scipy.special.gamma",
    "lgamma": "scipy.special.gammaln",
}


def counterpart_hint() -> str:
    """Return the hint for the function between the user's line and here that takes plain values only, or ""."""
    frame: FrameType | None = sys._getframe(1)
    frames = []
    while frame is not None and not is_user_frame(frame):
        frames.append(frame)
        frame = frame.f_back
    return _hint_for_frames(frames[::-1]) or (_hint_for_call(expression(frame), frame) if frame is not None else "")


def hints_for_request(request: str, batch: int | None) -> list[str]:
    """Return hints for a request for a plain value from a traced value: the best for this case first, then others.

    Args:
        request: the request, such as ``float(x)``.
        batch: the number of examples of a ``vmap`` that the value represents, or None.
    """
    alone = f"There is one value for each of the {batch} examples of a vmap: leave them together."
    constant = "If a constant is meant, use stop_gradient(x)." if batch is None else alone
    first = (
        _hint_for_array_class()
        or _hint_for_library()
        or (_WRITING if request.removeprefix("numpy.") in _WRITERS else counterpart_hint().strip())
        or _hint_for_item_access()
        or (_HINTS_BY_REQUEST.get(request) if batch is None else alone)
        or constant
    )
    asked_at = []
    inner, number = _innermost_user_frame(None, own=False)
    if inner is not None and is_installed_frame(inner):  # code of a package, such as pandas, called by the user's line
        asked_at = [f"The value was asked for at {_formatted_line(inner, number)}."]
    return [first, *[text for text in (*asked_at, _BUILDING, _WRITING, constant, _PRINTING) if text != first]]


_BUILDING = (
    "Arrays of traced values: funcgrad.numpy's stack, concatenate, full, where, array (not numpy.array([x, y]))."
)
_WRITING = "For `a[i] = x` make a with funcgrad.numpy.zeros, empty or copy (not numpy's)."
#: Functions of NumPy that write to an array.
_WRITERS = ("copyto", "put", "place", "putmask", "put_along_axis", "fill_diagonal")
_PRINTING = "To hand a value out of the function, use has_aux=True; to print it, f'{x:.3f}' (not '%.3f' % x)."
#: Hints by request, used if nothing else is known about the call.
_HINTS_BY_REQUEST = {
    name: f"Use x itself in place of {name}; if a constant is meant, use stop_gradient(x)."
    for name in ("float(x)", "complex(x)", "x.item()", "x.tolist()")
}


def _hint_for_array_class() -> str:
    """Return the hint for the constructor of a class derived from ``numpy.ndarray``."""
    frame = user_frame()
    if frame is None or frame.f_code.co_name != "__new__" or not frame.f_code.co_argcount:
        return ""
    cls = frame.f_locals.get(frame.f_code.co_varnames[0])
    if not (isinstance(cls, type) and issubclass(cls, np.ndarray)):
        return ""
    plain = _PLAIN_ARRAYS.get(f"{cls.__module__}.{cls.__name__}", "the array from which it is made")
    return f"{cls.__name__} is a subclass of numpy.ndarray, which cannot hold traced values: use {plain}."


#: Plain arrays of packages that hold the data of their derived arrays.
_PLAIN_ARRAYS = {"control.iosys.NamedSignal": "response.y, response.x and response.u for outputs, states and inputs"}


def _hint_for_library() -> str:
    """Return the hint for a request of a package that is neither the user's nor NumPy's nor SciPy's."""
    frame: FrameType | None = sys._getframe(1)
    asking = ""
    while frame is not None and (is_installed_frame(frame) or not is_user_frame(frame)):
        if is_user_frame(frame):
            asking = frame.f_globals.get("__name__", "").partition(".")[0]
        frame = frame.f_back
    if not asking or frame is None or asking in sys.stdlib_module_names:
        return ""
    return _takes_plain_values(asking)


def _takes_plain_values(name: str) -> str:
    if name in ("pandas", "xarray"):
        example = "table.to_numpy() @ x for table @ x"
        if name == "xarray":
            example = "numpy.interp(t, labels, table.data) for table.interp"
        return f"{name} accepts no traced values here: compute with arrays, such as {example}."
    return (
        f"{name} accepts no traced values: pass stop_gradient(x) if its result is a constant, or give the function "
        "that calls it a derivative with custom_vjp."
    )


def _hint_for_item_access() -> str:
    """Return the hint for a write to, or a lookup of, an element of a NumPy array."""
    frame = user_frame()
    if frame is None:
        return ""
    steps = [step for step in dis.get_instructions(frame.f_code) if step.offset == frame.f_lasti]
    if steps and steps[0].opname == "STORE_SUBSCR":
        return _WRITING
    if steps and (steps[0].opname, steps[0].argrepr) in _LOOKUPS:
        return "Look the value up with funcgrad.numpy's take(table, x, axis=0) (not `table[x]`)."
    return ""


#: Instructions that read ``table[x]``: the second one since Python 3.14.
_LOOKUPS = (("BINARY_SUBSCR", ""), ("BINARY_OP", "[]"))


#: Texts of Python's errors for calls that are wrong for all values.
_CALL_ERROR_TEXTS = ("unexpected keyword argument", "object is not callable")


def add_hint(error: Exception) -> None:
    """Add a note of what to call instead to an error of another library, if a traced value caused the error.

    Args:
        error: the error that the transformed function raised.
    """
    said = (*getattr(error, "__notes__", []), "" if _MIXED_NAMESPACES_TEXT in text_of(error) else text_of(error))
    if isinstance(error, FuncgradError) or any("funcgrad" in text for text in said):
        return
    if isinstance(error, TypeError) and any(text in text_of(error) for text in _CALL_ERROR_TEXTS):
        return
    with suppress(Exception):  # a failure here must not hide the error from the user
        if hint := _hint_for_error(error):
            error.add_note(f"Traced values cannot be passed here{user_line(error)}.{hint}")


#: Hints by the text of the errors with which Python's modules refuse to serialize or hash traced values.
_SERIALIZATION_HINTS = {
    "JSON serializable": (
        " json accepts no traced values: pass stop_gradient(x) for a number, stop_gradient(x).tolist() for an array."
    ),
    "buffer API": " hashlib accepts no traced values: pass stop_gradient(x).tobytes().",
}


def _hint_for_serialization(error: Exception, user: FrameType) -> str:
    found = next((hint for said, hint in _SERIALIZATION_HINTS.items() if said in text_of(error)), "")
    return found if found and _has_tracer(user.f_locals) else ""


def _hint_for_error(error: Exception) -> str:
    """Return what to call instead of the function that raised ``error`` for a traced value, or ""."""
    frames: list[FrameType] = []
    every: list[FrameType] = []
    user, instruction = None, 0
    trace = error.__traceback__
    while trace is not None:
        if is_user_frame(trace.tb_frame):
            frames, user, instruction = [], trace.tb_frame, trace.tb_lasti
        else:
            frames.append(trace.tb_frame)
            every.append(trace.tb_frame)
        trace = trace.tb_next
    if _MIXED_NAMESPACES_TEXT in text_of(error):
        return (
            " The function combines traced arrays with arrays of NumPy, such as truth values and constants. Run code "
            "for any array library as funcgrad.interop.from_array_api(f), with all its arrays as arguments."
        )
    if "__jax_array__" in text_of(error):  # JAX's error for an object that defines ``__jax_array__``
        return (
            " Use functions of funcgrad.numpy, or wrap the function of JAX: funcgrad.interop.from_jax(f). JAX accepts "
            "neither traced values nor arrays made in a transformed function; pass constants as numpy.asarray(c)."
        )
    if user is not None and (hint := _hint_for_serialization(error, user)):
        return hint
    if isinstance(error, SystemError) or (isinstance(error, AttributeError) and text_of(error).startswith("__")):
        # A routine in C has ignored a refusal, so its next call of Python has failed.
        return _hint_for_frames(every)
    if frames:
        if frames[0].f_globals.get("__name__", "").startswith("funcgrad."):
            return ""  # the error is about the arguments of a function of funcgrad
        return _hint_for_frames(frames) if any(_has_tracer(frame.f_locals) for frame in frames) else ""
    if user is None or isinstance(error, AttributeError):
        return ""
    node = expression(user, instruction)
    if node is not None and "Tracer" in text_of(error):  # a ``raise`` statement of the user is not an expression
        return _hint_for_call(node, user) or " Use a function of funcgrad, or give this one a rule: custom_vjp."
    if isinstance(node, ast.Call) and any(_may_be_traced(arg, user) for arg in node.args):
        return _hint_for_call(node, user)
    return ""


def _may_be_traced(arg: ast.expr, user: FrameType) -> bool:
    """Whether the argument ``arg`` of a call is a traced value, an element of one, or ``*x`` of one."""
    while isinstance(arg, ast.Starred | ast.Subscript):
        arg = arg.value
    return isinstance(value_of_name(arg, user), Tracer)


def _has_tracer(names: Any, depth: int = 2) -> bool:
    values = names.values() if hasattr(names, "values") else names
    return any(
        isinstance(v, Tracer) or (depth and type(v) in (tuple, list, dict) and _has_tracer(v, depth - 1))
        for v in list(values)
    )


def _hint_for_frames(frames: Sequence[FrameType]) -> str:
    """Return what to call instead of the outermost function in ``frames`` that has a counterpart, or ""."""
    ours = ""
    for frame in frames:
        module = frame.f_globals.get("__name__", "")
        ours = ours or (module.split(".")[2] if module.startswith("funcgrad.scipy.") else "")
        if module.startswith("scipy."):
            if ours == "optimize":
                return ""  # the function needs plain values, so traced values that it holds are not the cause
            if ours:
                return " Pass the traced values that the function closes over in args."
            if hint := _hint_for_scipy(frame, module):
                return hint
    if any(frame.f_globals.get("__name__", "").startswith("scipy.optimize.") for frame in frames):
        return (
            " Use funcgrad.transforms.custom_root, which differentiates a solution through its equation, with SciPy's "
            "solver."
        )
    for frame in frames:
        if frame.f_globals.get("__name__", "").startswith("numpy.") and (hint := _hint_for_numpy_object(frame)):
            return hint
    return ""


def _hint_for_scipy(called: FrameType, module: str) -> str:
    wrapped = called.f_locals.get("f")
    if called.f_code.co_name == "wrapper" and callable(wrapped):  # SciPy's loop over batches of a function ``f``
        module = wrapped.__module__ if wrapped.__module__.startswith("scipy.") else module
    if called.f_code.co_name == "rvs":
        return _hint_for_random(f"scipy.stats.{getattr(called.f_locals.get('self'), 'name', 'norm')}")
    home, known = _public_scipy_module(module)
    if home == "scipy.sparse" and called.f_code.co_name in _PRODUCTS:
        return " Convert the matrix with funcgrad.scipy.sparse: csr_array(A) @ x; or use funcgrad.numpy.matmul(A, x)."
    aliases = _ALIASES.get(home, {})
    owner = called.f_locals.get("self")  # a distribution, a spline
    for name in (
        getattr(wrapped, "__name__", ""),
        called.f_code.co_name,
        getattr(owner, "name", ""),
        type(owner).__name__,
        called.f_code.co_qualname.partition(".")[0],  # the class of a static method
    ):
        if isinstance(name, str) and (name in known or name in aliases):
            return f" Use funcgrad.{home}.{aliases.get(name, name)} for {home}.{name}."
    return ""


def _public_scipy_module(module: str) -> tuple[str, Any]:
    """Return the public SciPy module of ``module`` and the names in funcgrad's version of it, if there is one."""
    found: tuple[str, Any] = module, ()
    parts = [part for part in module.split(".") if not part.startswith("_")]
    for length in range(2, min(len(parts), 3) + 1):
        home = ".".join(parts[:length])
        if find_spec(f"funcgrad.{home}") is None:
            break
        found = home, vars(import_module(f"funcgrad.{home}"))
    return found


def _hint_for_numpy_object(frame: FrameType) -> str:
    """Return the hint for a NumPy object whose method runs in ``frame``."""
    owner = frame.f_locals.get("self")
    for name in ("r_", "c_", "vectorize"):
        theirs = getattr(np, name)
        if owner is theirs or (isinstance(theirs, type) and type(owner) is theirs):
            return f" Use funcgrad.numpy.{name} for numpy.{name}."
    for home, hint in _CLASS_HINTS.items():
        if frame.f_globals.get("__name__", "").startswith(home):
            return hint
    if frame.f_code.co_name == "as_strided":
        return " Use funcgrad.numpy.lib.stride_tricks.as_strided."
    kind = type(owner).__name__
    if type(owner).__module__.startswith("numpy.polynomial."):
        return f" Use funcgrad.numpy.polynomial.{kind} for numpy.polynomial.{kind}."
    return ""


def _hint_for_call(node: ast.expr | None, frame: FrameType) -> str:
    """Return the hint for the function of NumPy, SciPy or Python that ``frame`` calls in ``node``, or ""."""
    if isinstance(node, ast.BinOp):
        return " To print it, write f'{x:.3f}'." if isinstance(node.op, ast.Mod) else ""
    if not isinstance(node, ast.Call):
        return ""
    called = value_of_name(node.func, frame)
    if called is UNKNOWN:
        return _hint_for_method(node.func, frame)
    name, owner = getattr(called, "__name__", ""), getattr(called, "__self__", None)
    sources = _random_generator_classes()
    if isinstance(owner, sources) or any(called is getattr(source, name, None) for source in sources):
        return _hint_for_random(name)
    if owner is math:
        ours = math_counterpart(name)
        return ours and f" Use funcgrad.{ours} for math.{name}."
    if called is operator.setitem:
        return f" {_WRITING}"
    if called is vars(np).get(name):
        return _hint_for_numpy_name(name, called)
    home = (getattr(called, "__module__", None) or "").partition("._")[0]
    if home.startswith("scipy."):
        return f" {_takes_plain_values(f'{home}.{name}')}"
    return _hint_for_standard_library(called)


def standard_library_hint() -> str:
    """Return the hint for the function of Python's library, written in C, that the user's line calls, or ""."""
    frame = user_frame()
    if frame is None or not isinstance(node := expression(frame), ast.Call):
        return ""
    return _hint_for_standard_library(value_of_name(node.func, frame))


def _hint_for_standard_library(called: Any) -> str:
    home = (getattr(called, "__module__", None) or "").lstrip("_")
    if not isinstance(called, BuiltinFunctionType) or home not in sys.stdlib_module_names - _TAKING_INTEGERS:
        return ""
    return f" {_takes_plain_values(f'{home}.{called.__name__}')}"


#: Modules with functions in C that take traced integers, or objects of any class.
_TAKING_INTEGERS = {"builtins", "functools", "itertools", "math", "operator"}


def _hint_for_numpy_name(name: str, called: Any) -> str:
    """Return what to call instead of a function or a class of NumPy."""
    ours = getattr(import_module("funcgrad.numpy"), name, None)
    if isinstance(called, type) and issubclass(called, np.generic):
        return f" Leave numpy.{name} out: a traced value is used as it is, or converted by x.astype(numpy.{name})."
    if ours is not None and ours is not called:
        return f" Use funcgrad.numpy.{name} for numpy.{name}."
    return f" {_takes_plain_values(f'numpy.{name}')}"


def _hint_for_method(function: ast.expr, frame: FrameType) -> str:
    """Return what to call instead of a method of a NumPy array or of SciPy's factors of a sparse matrix, all in C."""
    if not isinstance(function, ast.Attribute):
        return ""
    if function.attr == "dot":
        return " Write a @ x (not a.dot(x)): NumPy's method accepts no traced values."
    kind = type(value_of_name(function.value, frame)).__name__
    if isinstance(function.value, ast.Call):
        made_by = value_of_name(function.value.func, frame)
        kind = "SuperLU" if getattr(made_by, "__name__", "") in ("splu", "spilu") else kind
    return " Use funcgrad.scipy.sparse.linalg.splu for the factors of scipy.sparse.linalg." if kind == "SuperLU" else ""


def _hint_for_random(name: str) -> str:
    by_ppf = f"funcgrad.scipy.stats' ppf of rng.uniform(size=...), if the distribution of {name} has a ppf there"
    formula = _FORMULAS.get(name, by_ppf)
    return f" Write the random number as a function of one that does not depend on x: {formula}."


def math_counterpart(name: str) -> str:
    """Return the name, after ``funcgrad.``, of the counterpart of a function of ``math``, or ""."""
    return _MATH_COUNTERPARTS.get(name) or (f"numpy.{name}" if name in import_module("funcgrad.numpy").__all__ else "")


#: Packages whose frames may lie between the user's line and this module.
_LIBRARIES = frozenset(("funcgrad", "numpy", "scipy", "jax", "toolz", "cytoolz", "optree"))
#: Paths of Python's standard library; then names of folders that hold installed packages.
_STANDARD_LIBRARY = (sysconfig.get_path("stdlib"), "<frozen ")
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
#: Value of an expression that cannot be known without running the user's code.
UNKNOWN: Any = object()


def user_frame() -> FrameType | None:
    """Return the innermost frame of the stack that is the user's, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_user_frame(frame):
        frame = frame.f_back
    return frame


def user_stacklevel() -> int:
    """Return the ``stacklevel`` by which a ``warnings.warn`` in the calling function points at the user's line."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and not is_user_frame(frame):
        frame, level = frame.f_back, level + 1
    return level


def is_user_frame(frame: FrameType) -> bool:
    """Whether the code of ``frame`` belongs to none of the packages in ``_LIBRARIES``."""
    return frame.f_globals.get("__name__", "").partition(".")[0] not in _LIBRARIES


def is_installed_frame(frame: FrameType) -> bool:
    """Whether the code of ``frame`` belongs to Python or to an installed package, such as pandas."""
    path = frame.f_code.co_filename
    return (
        path.startswith(_STANDARD_LIBRARY)
        or path.endswith(".pyx")
        or any(folder in path for folder in _PACKAGE_FOLDERS)
    )


def user_line(error: BaseException | None = None) -> str:
    """Return the innermost user's line of the stack as ``, at path:number `source```, or "" if there is none.

    A line of an installed package is used if there is no other line.

    Args:
        error: an error that was caught; its traceback then has precedence over the stack.
    """
    frame, number = _innermost_user_frame(error, own=True)
    if frame is None:
        frame, number = _innermost_user_frame(error, own=False)
    return "" if frame is None else f", at {_formatted_line(frame, number)}"


def _innermost_user_frame(error: BaseException | None, *, own: bool) -> tuple[FrameType | None, int]:
    """Return the user's innermost frame and its line number, from the traceback of ``error`` or from the stack.

    Args:
        error: an error that was caught, or None.
        own: whether to skip installed packages.
    """
    frame = user_frame()
    while own and frame is not None and (is_installed_frame(frame) or not is_user_frame(frame)):
        frame = frame.f_back
    number = 0 if frame is None else frame.f_lineno
    for step, line in walk_tb(error.__traceback__ if error is not None else None):
        if is_user_frame(step) and not (own and is_installed_frame(step)):
            frame, number = step, line
    return frame, number


def package_line(error: BaseException | None) -> str:
    """Return the line of an installed package on which ``error`` arose as ``path:number `source```.

    Without an error, it is the line that runs. Returns "" if it is a line of the user; funcgrad's and JAX's own lines
    do not count.
    """
    found = list(walk_stack(None))[::-1] if error is None else walk_tb(error.__traceback__)
    steps = [(f, n) for f, n in found if not _is_of_funcgrad_or_jax(f)]
    return _formatted_line(*steps[-1]) if steps and is_installed_frame(steps[-1][0]) else ""


def _is_of_funcgrad_or_jax(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in ("contextlib", "funcgrad", "jax")


def _formatted_line(frame: FrameType, number: int) -> str:
    path = frame.f_code.co_filename
    source = linecache.getline(path, number, frame.f_globals).strip()
    return f"{path}:{number}" + (f" `{source}`" if source else "")


def expression(frame: FrameType, instruction: int | None = None) -> ast.expr | None:
    """Return the parsed expression that ``frame`` is computing, or None if its source cannot be read.

    Args:
        frame: a frame that runs or has raised an error.
        instruction: the index of the instruction in its code, by default the current one.
    """
    at = frame.f_lasti if instruction is None else instruction
    places = list(frame.f_code.co_positions())
    first, last, start, stop = places[at // 2] if 0 <= at // 2 < len(places) else (None, None, None, None)
    if first is None or last is None or start is None or stop is None:
        return None
    path = frame.f_code.co_filename
    lines = [linecache.getline(path, n, frame.f_globals).encode() for n in range(first, last + 1)]
    lines[-1] = lines[-1][:stop]
    lines[0] = lines[0][start:]
    try:
        return ast.parse(b"(" + b"".join(lines) + b"\n)", mode="eval").body
    except (SyntaxError, ValueError):  # the file has changed since it was imported
        return None


def value_of_name(node: ast.expr, frame: FrameType) -> Any:
    """Return the value of a name or module attribute in ``frame``, or ``UNKNOWN``; run no code of the user."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals, vars(builtins)):
            if node.id in names:
                return names[node.id]
    elif isinstance(node, ast.Attribute):
        owner, sources = value_of_name(node.value, frame), _random_generator_classes()
        if isinstance(owner, (ModuleType, *sources)) or any(owner is source for source in sources):
            return getattr(owner, node.attr, UNKNOWN)
    elif isinstance(node, ast.Call) and _random_generator_classes():
        return np.random.Generator if value_of_name(node.func, frame) is np.random.default_rng else UNKNOWN
    return UNKNOWN


def _random_generator_classes() -> tuple[type, ...]:
    """Return NumPy's classes of random generators; none unless ``numpy.random``, slow to load, is loaded."""
    return (np.random.Generator, np.random.RandomState) if "numpy.random" in sys.modules else ()
