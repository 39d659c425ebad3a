"""Which line and which expression of the user's is running: for messages."""

from __future__ import annotations

import ast
import builtins
import linecache
import sys
import sysconfig
from traceback import walk_tb
from types import FrameType, ModuleType
from typing import Any

import numpy as np

__all__ = ["UNKNOWN", "expression", "is_installed", "is_users", "library_line", "looked_up", "user_frame", "user_line"]

#: Packages that stand between the user's line and here.
_BETWEEN = frozenset(("funcgrad", "numpy", "scipy", "jax", "toolz", "cytoolz", "optree"))
#: Where Python keeps its own modules, and folders that hold packages which somebody has installed.
_STANDARD = (sysconfig.get_path("stdlib"), "<frozen ")
_INSTALLED = ("site-packages", "dist-packages")
#: What an expression stands for that cannot be told without running code of the user's.
UNKNOWN: Any = object()


def user_frame() -> FrameType | None:
    """The innermost frame of the stack that is the user's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    return frame


def is_users(frame: FrameType) -> bool:
    """Whether no library that stands between the user and funcgrad has the code of ``frame``."""
    return frame.f_globals.get("__name__", "").partition(".")[0] not in _BETWEEN


def is_installed(frame: FrameType) -> bool:
    """Whether the code of ``frame`` is Python's or a package's that was installed, such as pandas."""
    path = frame.f_code.co_filename
    return path.startswith(_STANDARD) or path.endswith(".pyx") or any(folder in path for folder in _INSTALLED)


def user_line(error: BaseException | None = None) -> str:
    """The innermost line of the stack that is the user's: ``, at path:number `source```, or nothing.

    A line of an installed package is named where there is no other.

    Args:
        error: an error that was caught; then the innermost line of the user's that it went through.
    """
    frame, number = _innermost(error, own=True)
    if frame is None:
        frame, number = _innermost(error, own=False)
    return "" if frame is None else f", at {_written(frame, number)}"


def library_line() -> str:
    """The line of an installed package, such as pandas, that stands between the user's line and here; or nothing."""
    inner, number = _innermost(None, own=False)
    return _written(inner, number) if inner is not None and is_installed(inner) else ""


def _innermost(error: BaseException | None, *, own: bool) -> tuple[FrameType | None, int]:
    """The innermost frame of the user's, and its line: of the stack, or of those that ``error`` went through.

    Args:
        error: an error that was caught, or None.
        own: whether packages that were installed do not count.
    """
    frame = user_frame()
    while own and frame is not None and (is_installed(frame) or not is_users(frame)):
        frame = frame.f_back
    number = 0 if frame is None else frame.f_lineno
    for step, line in walk_tb(error.__traceback__ if error is not None else None):
        if is_users(step) and not (own and is_installed(step)):
            frame, number = step, line
    return frame, number


def _written(frame: FrameType, number: int) -> str:
    """A line as messages name it."""
    path = frame.f_code.co_filename
    source = linecache.getline(path, number, frame.f_globals).strip()
    return f"{path}:{number}" + (f" `{source}`" if source else "")


def expression(frame: FrameType, instruction: int | None = None) -> ast.expr | None:
    """What ``frame`` is computing, as Python parses it; None where its source cannot be read.

    Args:
        frame: a frame that runs or has raised an error.
        instruction: where in its code, by default where it is.
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
    except (SyntaxError, ValueError):  # the file has changed since it was read
        return None


def looked_up(node: ast.expr, frame: FrameType) -> Any:
    """What a name, or a name in a module, stands for in ``frame``; ``UNKNOWN`` else. No code of the user's is run."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        for names in (frame.f_locals, frame.f_globals, vars(builtins)):
            if node.id in names:
                return names[node.id]
    elif isinstance(node, ast.Attribute):
        owner = looked_up(node.value, frame)
        if isinstance(owner, (ModuleType, np.random.Generator, np.random.RandomState)) or owner is np.random.Generator:
            return getattr(owner, node.attr, UNKNOWN)
    elif isinstance(node, ast.Call) and looked_up(node.func, frame) is np.random.default_rng:
        return np.random.Generator
    return UNKNOWN
