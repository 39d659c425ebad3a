"""Write coverage.md: what funcgrad offers for each public name of NumPy, from the tested table of operations.

python docs/coverage.py
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from scipy.stats._distr_params import distcont

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests")]

import scipy_samples  # noqa: E402
from operations import cases  # noqa: E402
from operations.names import OURS, look_up, named  # noqa: E402

import funcgrad.numpy as fnp  # noqa: E402
from funcgrad.core import Tracer  # noqa: E402
from funcgrad.scipy.own_code import OWN_CODE  # noqa: E402

PAGE = HERE / "coverage.md"

CONSTANT = "stop_gradient(x), or the NumPy array outside the differentiated function"
DIRECTLY = "NumPy directly"
FILES = "NumPy directly, outside the differentiated function or on stop_gradient(x)"
#: Names of NumPy that funcgrad lacks, by the reason and by what to use instead.
NOT_COVERED: dict[tuple[str, str], str] = {
    (
        "reads or writes files",
        FILES,
    ): "fromfile fromregex genfromtxt load loadtxt memmap",
    ("writes the numbers of traced values in code written for NumPy", DIRECTLY): "save savetxt savez savez_compressed",
    ("reads text or raw bytes, which are not arrays yet", DIRECTLY): "fromstring",
    ("dates have no derivative", DIRECTLY): (
        "busday_count busday_offset busdaycalendar datetime64 datetime_as_string datetime_data is_busday timedelta64"
    ),
    ("strings, records and objects have no derivative", DIRECTLY): (
        "bytes_ char character flexible object_ rec recarray record str_ strings void"
    ),
    ("functions of numpy.ma take traced values in code written for NumPy", DIRECTLY): "ma",
    ("NumPy advises against the class matrix", "two-dimensional arrays and @"): "asmatrix bmat matrix",
    ("concerns NumPy itself, not arrays", DIRECTLY): (
        "ctypeslib f2py get_include show_config show_runtime test testing info typing core dtypes exceptions"
    ),
    (
        "random numbers carry no derivative",
        "numpy.random, and differentiate functions of the random numbers",
    ): "random",
    ("describes NumPy's types", DIRECTLY): "ScalarType sctypeDict typecodes little_endian",
    ("a dtype that only some machines have", "longdouble or clongdouble"): "float96 float128 complex192 complex256",
    ("iterates over NumPy's buffers", "a loop over indices, or ndenumerate"): "flatiter nested_iters broadcast",
    ("the class of NumPy's elementwise functions", DIRECTLY): "ufunc",
}
#: Methods and attributes of ndarray that a tracer lacks, by the reason and by what to use instead.
NO_METHOD: dict[tuple[str, str], str] = {
    ("concerns the memory of an ndarray, which a traced value does not have", CONSTANT): (
        "base ctypes data flags strides byteswap getfield setfield setflags"
    ),
    ("exports the numbers, which would lose the derivative", CONSTANT): "dump dumps item tobytes tofile tolist",
    ("a traced value stays on its device", "funcgrad.interop.device_put"): "to_device",
}


def listed(table: dict[tuple[str, str], str]) -> dict[str, tuple[str, str]]:
    """Return a dictionary from each name to its reason and remedy."""
    return {name: entry for entry, names in table.items() for name in names.split()}


def public(module: ModuleType) -> list[str]:
    """Return the public names of a module of NumPy, without the one that NumPy 2.5 dropped: the page stays the same."""
    return [name for name in dir(module) if not name.startswith("_") and name != "row_stack"]


def rows() -> dict[str, list[Any]]:
    """Return the rows of the table of operations, by the name of the function."""
    found: dict[str, list[Any]] = {}
    for row in cases.rows():
        function = row.op.fun or named(row.op.name, OURS)
        for name in (row.op.name, *aliases(function)):
            found.setdefault(name, []).append(row)
    return found


def aliases(function: Any) -> list[str]:
    """Return all names of ``function`` in ``funcgrad.numpy`` and its ``linalg`` and ``fft``."""
    spaces = (("", fnp), ("linalg.", fnp.linalg), ("fft.", fnp.fft))
    return [prefix + name for prefix, space in spaces for name in space.__all__ if getattr(space, name) is function]


def verdict(name: str, tested: dict[str, list[Any]]) -> tuple[str, str]:
    """Return status and remarks of one name of NumPy; the status is empty if no table mentions the name."""
    own = look_up(fnp, name)
    space, _, last = name.rpartition(".")
    home = look_up(fnp, space) if space else fnp
    if last not in home.__all__:
        reason = listed(NOT_COVERED).get(last)
        return ("not covered", f"{reason[0]}; use {reason[1]}") if reason else ("", "")
    if isinstance(own, ModuleType):
        return "namespace", "see the table below" if name in ("linalg", "fft") else "a module of funcgrad.numpy"
    if name in tested:
        return of_rows(tested[name])
    if own is look_up(np, name):
        return "no derivative", "same object as in NumPy: " + ("a class" if inspect.isclass(own) else kind_of(own))
    return "no derivative", "returns text, a shape, a dtype or a constant" if callable(own) else kind_of(own)


def kind_of(own: Any) -> str:
    """Describe a public name that is not a differentiable function."""
    if callable(own):
        return "a function whose result has no derivative"
    return "a constant" if isinstance(own, (int, float, np.generic, type(None))) else "an indexing helper"


def of_rows(found: list[Any]) -> tuple[str, str]:
    """Return status and remarks of a function, from its rows in the table of operations."""
    live = [row for row in found if row.op.differentiable and any(case.live for case in row.cases)]
    if not live:
        return "no derivative", result_of(found[0])
    order = max(row.op.order for row in live)
    remarks = [f"order {order}"]
    remarks += ["complex"] if any(row.op.complex_samples for row in live) else []
    remarks += ["checked against JAX"] if any(row.op.jax is not None for row in live) else []
    return "reverse, forward, vmap", ", ".join(remarks)


def result_of(row: Any) -> str:
    """Return the reason why a function has no derivative, from its result."""
    case = row.cases[0]
    kinds = {np.asarray(part).dtype.kind for part in case.call(case.fun, case.values) if hasattr(part, "dtype")}
    if kinds <= set("b"):
        return "returns booleans"
    if kinds <= set("iu"):
        return "returns integers"
    return "piecewise constant: the derivative is zero where it exists"


def table(title: str, prefix: str, names: list[str], tested: dict[str, list[Any]]) -> list[str]:
    """Return a section with a line for each name."""
    lines = [f"## {title}", "", "| name | derivative | remarks |", "| --- | --- | --- |"]
    for name in names:
        status, remarks = verdict(prefix + name, tested)
        lines.append(f"| `{name}` | {status} | {remarks} |")
    return [*lines, ""]


def names_of(module: str) -> list[str]:
    """Return the public names of a module of funcgrad, or an empty list if there is no such module."""
    try:
        names: list[str] = importlib.import_module(module).__all__
    except ModuleNotFoundError:
        return []
    return names


def of_scipy() -> list[str]:
    """Return the sections on SciPy, from the table of calls that the tests run and from the table of operations."""
    lines = []
    tested = {row.op.name for row in cases.rows() if row.op.differentiable and any(case.live for case in row.cases)}
    for module, samples in scipy_samples.TABLE.items():
        home = importlib.import_module(module)
        own = names_of(f"funcgrad.{module}")
        refused = scipy_samples.REFUSED.get(module, ())
        lines += [f"## {module}", "", "| name | derivative | how |", "| --- | --- | --- |"]
        theirs = OWN_CODE.get(module.removeprefix("scipy."), frozenset())
        found = {name for name, sample in samples.items() if sample is not None}
        if module == "scipy.special":
            found |= {name.removeprefix("scipy.special.") for name in tested if name.startswith("scipy.special.")}
        for name in sorted(n for n in found if hasattr(home, n)):
            how = "funcgrad's function" if name in own and name not in theirs else "SciPy's Python code"
            lines.append(f"| `{name}` | no | raises an error |" if name in refused else f"| `{name}` | yes | {how} |")
        lines.append("")
    own = importlib.import_module("funcgrad.scipy.stats")
    lines += ["## scipy.stats: densities", "", "| name | derivative | how |", "| --- | --- | --- |"]
    for name in sorted({name for name, _ in distcont if isinstance(name, str)}):
        how = "funcgrad's function" if name in own.__all__ else "SciPy's Python code"
        closed = name in scipy_samples.REFUSED_DENSITIES
        lines.append(f"| `{name}` | no | raises an error |" if closed else f"| `{name}` | yes | {how} |")
    return [*lines, ""]


def methods() -> list[str]:
    """Return the section on the methods and attributes of ndarray."""
    lines = [
        "## Methods and attributes of ndarray",
        "",
        "| name | on a traced value | remarks |",
        "| --- | --- | --- |",
    ]
    missing = listed(NO_METHOD)
    for name in public(np.ndarray):
        has = name not in missing and hasattr(Tracer, name)
        remarks = "" if has else "; use ".join(missing.get(name, ("", "")))
        lines.append(f"| `{name}` | {'yes' if has else 'no'} | {remarks} |")
    return [*lines, ""]


def page() -> str:
    """Return the text of the page."""
    tested = rows()
    sections = [("numpy", "", np), ("numpy.linalg", "linalg.", np.linalg), ("numpy.fft", "fft.", np.fft)]
    names = [prefix + name for _, prefix, module in sections for name in public(module)]
    counts: dict[str, int] = {}
    for name in names:
        status = verdict(name, tested)[0]
        counts[status] = counts.get(status, 0) + 1
    extra = sorted(set(fnp.linalg.__all__) - set(public(np.linalg)))
    text = [
        "# Coverage of NumPy and SciPy",
        "",
        "The tables below list each public name of NumPy, `numpy.linalg` and `numpy.fft`, and what `funcgrad.numpy`",
        "offers for it. `docs/coverage.py` writes this page from the table of operations that the tests run. A",
        "function is listed as differentiable if its value, its reverse and forward mode, its second derivative and",
        "its `vmap` are tested, against each other, NumPy and, where the page says so, JAX. In the remarks, `order 2`",
        "means that tests cover derivatives up to the second, and `complex` that tests call the function with complex",
        "arguments.",
        "",
        "The functions of SciPy follow. Programs call them unchanged: see [code for NumPy](from_numpy.md). A test",
        "calls each function and compares its derivatives in both modes with differences. The last column says whether",
        "funcgrad replaces the function or differentiates SciPy's Python code. A call of a function marked `no` raises",
        "an error, which a test checks: mostly, SciPy has compiled the function, and funcgrad has no rule for it.",
        "",
        "```python",
        "import numpy as np",
        "import funcgrad.numpy as fnp",
        "from funcgrad import grad",
        "",
        "grad(fnp.linalg.det)(np.array([[1.0, 2.0], [2.0, 4.0]]))  # array([[ 4., -2.], [-2., 1.]])",
        "```",
        "",
        "| | names |",
        "| --- | --- |",
        *[f"| {status} | {count} |" for status, count in sorted(counts.items(), key=lambda item: -item[1])],
        "",
    ]
    for title, prefix, module in sections:
        text += table(title, prefix, public(module), tested)
    text += table("funcgrad.numpy.linalg: functions that NumPy lacks", "linalg.", extra, tested)
    return "\n".join([*text, *methods(), *of_scipy()]).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
