"""Command line of the cross-check: ``funcgrad crosscheck``, or ``python -m funcgrad.interop``.

Arguments of the checked function are Python literals, shapes of random numbers, and NumPy files.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from funcgrad import __version__
from funcgrad.errors import FuncgradError, InputError
from funcgrad.interop.crosschecks.checking import crosscheck
from funcgrad.interop.crosschecks.comparing import ALSO, KINDS
from funcgrad.interop.crosschecks.primitives_table import check_primitives
from funcgrad.interop.crosschecks.printing import Plain, page_of_report, page_of_table, terminal

_SIZES = {"float": (16, 32, 64), "complex": (64, 128), "int": (8, 16, 32, 64), "uint": (8, 16, 32, 64)}
_DTYPES = {f"{name[0]}{bits}": np.dtype(f"{name}{bits}") for name, sizes in _SIZES.items() for bits in sizes}
_DTYPES["bool"] = np.dtype(bool)
_NAMES = {"inf": float("inf"), "nan": float("nan")}
_HELP = (
    "Write a Python literal (3.0, {'a': [1, 2]}), array([1.0, 2.0]), random numbers (f64[3,4], f64[3](0, 1), "
    "i64[5](0, 10), f32), these in containers, or the name of an .npy file; name=value for a keyword argument"
)


def read_arguments(texts: Sequence[str], seed: int = 0) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments that texts describe.

    Random numbers are normal, or uniform between two bounds; random integers are below 10 by default.

    Args:
        texts: one text for each argument.
        seed: seed of the random numbers.

    Raises:
        InputError: a text has none of these forms (a ``TypeError``).

    Example:
        >>> read_arguments(["[1, 2.5]", "n=3"])
        ([[1, 2.5]], {'n': 3})
        >>> read_arguments(["{'w': f64[2,3](0, 1), 'b': f32}"])[0][0]["w"].shape
        (2, 3)
    """
    reader = _Reader(np.random.default_rng(seed))
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for text in texts:
        keyword = re.match(r"\s*([A-Za-z_]\w*)=(?!=)(.*)", text, re.DOTALL)
        if keyword:
            kwargs[keyword[1]] = reader.read(keyword[2])
        else:
            args.append(reader.read(text))
    return args, kwargs


class _Reader:
    """Reader of arguments; all arguments share one random generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def read(self, text: str) -> Any:
        if text.strip().endswith(".npy"):
            return self.load(text.strip())
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError as error:
            raise self.argument_error(text) from error
        return self.value(tree, text)

    def load(self, path: str) -> Any:
        try:
            return np.load(Path(path).expanduser(), allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(f"--args: the file cannot be read, got {path!r}: {error}. Give an .npy file.") from error

    def value(self, node: ast.AST, text: str) -> Any:
        match node:
            case ast.Tuple(elts=parts):
                return tuple([self.value(part, text) for part in parts])
            case ast.List(elts=parts):
                return [self.value(part, text) for part in parts]
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return {self.value(k, text): self.value(v, text) for k, v in zip(keys, values, strict=True) if k}
            case ast.Name(id=name) if name in _NAMES:
                return _NAMES[name]
            case ast.Name(id=name) if name in _DTYPES:
                return self.random(_DTYPES[name], (), None)
            case ast.Subscript(value=ast.Name(id=name), slice=inside) if name in _DTYPES:
                return self.random(_DTYPES[name], self.shape(inside, text), None)
            case ast.Call(func=ast.Name(id="array"), args=[inner], keywords=[]):
                return np.array(self.value(inner, text))
            case ast.Call(func=ast.Name() | ast.Subscript() as made, args=[low, high], keywords=[]):
                name, shape = (made.id, ()) if isinstance(made, ast.Name) else self.subscript(made, text)
                if name in _DTYPES:
                    return self.random(_DTYPES[name], shape, (self.value(low, text), self.value(high, text)))
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError) as error:
            raise self.argument_error(text) from error

    def subscript(self, node: ast.Subscript, text: str) -> tuple[str, tuple[int, ...]]:
        """Return the name and the shape of ``name[shape]``."""
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        return name, self.shape(node.slice, text)

    def shape(self, node: ast.AST, text: str) -> tuple[int, ...]:
        found = self.value(node, text)
        shape = found if type(found) is tuple else (found,)
        if not all(type(n) is int and n >= 0 for n in shape):
            raise self.argument_error(text)
        return shape

    def random(self, dtype: Any, shape: tuple[int, ...], bounds: tuple[Any, Any] | None) -> Any:
        low, high = bounds or (0, 2 if dtype.kind == "b" else 10)
        if dtype.kind in "iub":
            return self.rng.integers(low, high, shape).astype(dtype)[()]
        parts = [
            self.rng.standard_normal(shape) if bounds is None else self.rng.uniform(low, high, shape)
            for _ in range(2 if dtype.kind == "c" else 1)
        ]
        found = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
        return np.asarray(found).astype(dtype)[()]

    def argument_error(self, text: str) -> InputError:
        return InputError(f"--args: the text is no argument, got {text!r}. {_HELP}.")


#: Exit statuses: all agree, something disagrees, the check could not run, it was interrupted.
FINE, DISAGREE, UNUSABLE, INTERRUPTED = 0, 1, 2, 130

_EPILOG = """\
arguments are Python literals, arrays, random numbers by dtype and shape, or .npy files:
  --args 3.0 "array([1.0, 2.0])" "f64[3,4]" "{'w': f64[4,2](-1, 1), 'b': f64[2]}" "i64[5](0, 10)" data.npy scale=2.0

exit status: 0 all agree, 1 something disagrees, 2 it could not be run, 130 it was interrupted
"""


def program(arguments: Sequence[str] | None = None) -> int:
    """Run the subcommand of ``funcgrad`` that is named first and return its exit status.

    Args:
        arguments: arguments of the command; by default those of the process.

    Example:
        >>> from funcgrad.interop.crosschecks.command import program
        >>> program(["crosscheck", "numpy:tanh", "--args", "0.5", "--without", "vmap", "jit", "float32"])
        Cross-check of tanh
        ...
        OK: 4 quantities agree to 1e-09.
        0
    """
    parser = argparse.ArgumentParser(prog="funcgrad", description="Derivatives of NumPy's code, checked.")
    parser.add_argument("--version", action="version", version=f"funcgrad {__version__}")
    parser.add_argument("command", choices=("crosscheck",), help="check derivatives; its options: crosscheck --help")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    rest = parser.parse_args(arguments).rest
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # finds the user's modules as ``python -m`` does
    return main(rest, "funcgrad crosscheck")


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=name,
        description="Check derivatives of funcgrad against JAX's and against numerical ones.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_argument_group("what to check")
    what.add_argument("function", nargs="?", metavar="module:function", help="or path/to/file.py:function")
    what.add_argument("--args", nargs="*", default=[], metavar="ARG", help="the function's arguments, see below")
    what.add_argument("--primitives", action="store_true", help="the table of all functions of funcgrad.numpy")
    what.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these functions: sum linalg.inv fft")
    how = parser.add_argument_group("how")
    how.add_argument("--order", type=int, default=2, choices=(1, 2), help="highest order of derivatives")
    how.add_argument("--argnums", type=int, nargs="+", metavar="N", help="which arguments to differentiate")
    how.add_argument("--without", nargs="+", default=[], choices=ALSO, help="checks to leave out")
    how.add_argument("--rtol", type=float, default=1e-9, help="relative tolerance (1e-9)")
    how.add_argument("--atol", type=float, default=1e-12, help="absolute tolerance (1e-12)")
    how.add_argument("--seed", type=int, default=0, help="seed of random arguments and directions")
    how.add_argument("--device", help="where JAX runs: cpu, gpu, gpu:1, tpu")
    out = parser.add_argument_group("what to write")
    out.add_argument("--json", type=Path, metavar="FILE", help="write the result as JSON")
    out.add_argument("--html", type=Path, metavar="FILE", help="write the result as one page of HTML")
    out.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="(needs rich)")
    return parser


def main(arguments: Sequence[str] | None = None, name: str = "python -m funcgrad.interop") -> int:
    """Run the cross-check's command line and return its exit status.

    Args:
        arguments: arguments of the command; by default those of the process.
        name: name of the command, for messages.

    Example:
        >>> from funcgrad.interop.crosschecks.command import main
        >>> main(["math:sqrt", "--args", "[1.0]", "--color", "never"])
        2
        >>> main(["numpy:tanh", "--args", "0.5", "--without", "vmap", "jit", "float32"])
        Cross-check of tanh
        ...
        OK: 4 quantities agree to 1e-09.
        0
    """
    parser = _parser(name)
    options = parser.parse_args(arguments)
    if bool(options.function) == options.primitives:
        parser.error("give module:function or --primitives")
    screen = terminal(options.color)
    try:
        return (_primitives if options.primitives else _function)(options, screen)
    except KeyboardInterrupt:
        screen.say("interrupted")
        return INTERRUPTED
    except FuncgradError as error:
        print(f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
    except Exception:  # the user's function raised
        traceback.print_exc()
    return UNUSABLE


def _function(options: argparse.Namespace, screen: Plain) -> int:
    args, kwargs = read_arguments(options.args, options.seed)
    check = crosscheck(
        _function_named(options.function),
        order=options.order,
        argnums=options.argnums,
        rtol=options.rtol,
        atol=options.atol,
        seed=options.seed,
        also=[kind for kind in ALSO if kind not in options.without],
        device=options.device,
    )
    report = check(*args, **kwargs)
    screen.report(report)
    _write(options, screen, report.as_json, lambda: page_of_report(report))
    return FINE if report.ok else DISAGREE


def _primitives(options: argparse.Namespace, screen: Plain) -> int:
    """Check all functions of the table, or some."""
    left_out = {*options.without, *(["second"] if options.order == 1 else [])}
    kinds = tuple(kind for kind in KINDS if kind not in left_out)
    with screen.table(kinds) as watch:
        table = check_primitives(
            options.only,
            kinds=kinds,
            device=options.device,
            rtol=options.rtol,
            atol=options.atol,
            seed=options.seed,
            before=watch.before,
            after=watch.after,
        )
    screen.end(table)
    _write(options, screen, table.as_json, lambda: page_of_table(table))
    if len(table.lines) < table.total:
        return INTERRUPTED
    return FINE if table.ok else DISAGREE


def _write(options: argparse.Namespace, screen: Plain, data: Callable[[], Any], page: Callable[[], str]) -> None:
    if options.json:
        options.json.write_text(json.dumps(data(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        screen.say(f"written: {options.json}")
    if options.html:
        options.html.write_text(page(), encoding="utf-8")
        screen.say(f"written: {options.html}")


def _function_named(text: str) -> Callable[..., Any]:
    """Return the function that ``module:function`` names.

    Raises:
        InputError: there is no such function (a ``TypeError``).
    """
    place, _, name = text.rpartition(":")
    if not place or not name:
        raise InputError(f"the function: a module and a name are needed, got {text!r}. Write module:function.")
    found: Any = _module(place)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise InputError(f"the function: {place} has no function {name!r}, got {found!r}. Look at the name.")
    made: Callable[..., Any] = found
    return made


def _module(place: str) -> Any:
    """Return a module, given its name or the path of its file."""
    if not place.endswith(".py"):
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as error:
            raise InputError(f"the function: there is no module {place!r}, got {error}. Look at the name.") from error
    spec = importlib.util.spec_from_file_location(Path(place).stem, place)
    if spec is None or spec.loader is None or not Path(place).exists():
        raise InputError(f"the function: there is no file {place!r}. Look at the path.")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)
    spec.loader.exec_module(module)
    return module
