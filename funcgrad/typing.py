"""Types in funcgrad's public signatures.

The values in a differentiated function are arrays of several libraries, or tracers that represent such arrays.
No type is common to these values, so the aliases are ``Any``: their names say what is meant.

Example:
    >>> from funcgrad.typing import Array
    >>> def area(radius: Array) -> Array:
    ...     return 3.14159 * radius**2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

__all__ = ["Array", "ArrayLike", "Axes", "Axis", "Fun", "PyTree", "Scalar", "Shape"]

#: An ndarray, a NumPy scalar, a JAX array, or a tracer that represents one of these.
Array: TypeAlias = Any
#: A value that can be converted to an array: an array, a Python number, or a nested list of these.
ArrayLike: TypeAlias = Any
#: A zero-dimensional array or a Python number.
Scalar: TypeAlias = Any
#: Nested containers (tuple, list, dict, dataclass, ...) with arrays at their leaves.
PyTree: TypeAlias = Any
#: A pure function of arrays or pytrees.
Fun: TypeAlias = Callable[..., Any]
#: Lengths of the axes.
Shape: TypeAlias = tuple[int, ...]
#: One axis, or all of them for None.
Axis: TypeAlias = int | None
#: One axis, several, or all of them for None.
Axes: TypeAlias = int | Sequence[int] | None
