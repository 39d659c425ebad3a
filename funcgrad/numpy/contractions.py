"""Einstein sums: what a formula in letters means, and the products of pairs that compute it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from funcgrad import backend
from funcgrad.core import Tracer
from funcgrad.errors import InputError, ShapeError
from funcgrad.kinds.linear import permute, reduce_sum, reshape
from funcgrad.kinds.rules import Operation
from funcgrad.numpy.creation import as_value
from funcgrad.numpy.layout import in_order
from funcgrad.numpy.output import into
from funcgrad.numpy.peeking import is_plain
from funcgrad.numpy.reducing import converted
from funcgrad.primitives.products import LETTERS
from funcgrad.primitives.products import einsum as product
from funcgrad.primitives.shaping import diagonal
from funcgrad.typing import Array, ArrayLike, Shape
from funcgrad.writable import as_number

__all__ = ["einsum", "einsum_path"]


class Formula(NamedTuple):
    """The letters of each operand's axes and of the result's; no ellipsis is left."""

    terms: tuple[str, ...]
    out: str


def einsum(
    subscripts: str | ArrayLike,
    *operands: Any,
    out: Any = None,
    dtype: Any = None,
    order: str = "K",
    casting: str = "safe",
    optimize: Any = False,
) -> Array:
    """The sum over products that a formula in letters describes.

    Args:
        subscripts: the letters of each operand's axes, and after ``->`` those of the result. Without
            ``->`` the result has the letters that occur once, in alphabetical order. ``...`` stands for
            any number of axes, which broadcast. Or operands and lists of axis numbers in turn.
        operands: the arrays.
        out: an array for the result.
        dtype: what to compute in.
        order: accepted for NumPy's sake; memory order is no matter of values.
        casting: which changes to ``dtype`` NumPy allows.
        optimize: in which order to multiply three and more operands: a method or a path as ``opt_einsum``
            takes them, True for its "auto". False is NumPy's single loop for ndarrays, and "auto" for traced
            operands and those of other libraries.

    Raises:
        ValueError: the formula is malformed or does not fit the operands.

    Example:
        >>> fnp.einsum("ij,j->i", np.ones((2, 3)), np.arange(3.0))
        array([3., 3.])
        >>> fnp.einsum("ii", np.eye(3))
        np.float64(3.0)
    """
    if out is not None:
        return into(einsum, out, subscripts, *operands, dtype=dtype, order=order, casting=casting, optimize=optimize)
    text, arrays = _formula(subscripts, operands)
    values = [as_value(a) for a in arrays]
    if is_plain(*values):
        keywords = {"dtype": dtype, "order": order, "casting": casting, "optimize": optimize}
        return np.einsum(text, *values, **keywords)
    if dtype is not None:
        values = [converted(v, dtype) for v in values]
    formula = _parsed(text, tuple([len(backend.shape_of(v)) for v in values]))
    made = contracted(formula.terms, formula.out, values, optimize)
    if isinstance(made, Tracer):
        made = in_order(made, "C") if len(values) > 1 and made.shape else as_number(made)
    if backend.is_inexact(made) or backend.namespace_of(made) is not None:
        return made
    return converted(made, np.result_type(*map(backend.dtype_of, values)))  # NumPy adds up in the dtype of the elements


def einsum_path(subscripts: str | ArrayLike, *operands: Any, optimize: Any = "greedy") -> tuple[list[Any], str]:
    """NumPy's order of evaluation for the Einstein sum ``subscripts``, and its description.

    Both depend on the shapes of the operands alone.

    Example:
        >>> fnp.einsum_path("ij,jk,kl->il", np.ones((2, 9)), np.ones((9, 9)), np.ones((9, 2)))[0]
        ['einsum_path', (0, 1), (0, 1)]
    """
    text, arrays = _formula(subscripts, operands)
    shaped = [np.broadcast_to(0.0, backend.shape_of(as_value(a))) for a in arrays]
    return np.einsum_path(text, *shaped, optimize=optimize)


def _formula(subscripts: Any, operands: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The formula as text, and the operands: NumPy also takes ``op0, axes0, op1, axes1, ..., [axes_out]``."""
    if isinstance(subscripts, str):
        return subscripts.replace(" ", ""), operands
    everything = (subscripts, *operands)
    pairs = len(everything) // 2
    terms = [_as_letters(axes) for axes in everything[1 : 2 * pairs : 2]]
    text = ",".join(terms)
    if len(everything) % 2:
        text += "->" + _as_letters(everything[-1])
    return text, everything[0 : 2 * pairs : 2]


def _as_letters(axes: Iterable[Any]) -> str:
    try:
        return "".join(["..." if i is ... else LETTERS[i] for i in axes])
    except (TypeError, IndexError) as error:
        raise InputError(
            f"einsum: a list of axes consists of integers from 0 to {len(LETTERS) - 1} and at most one ellipsis, "
            f"got {axes!r}. Or pass the formula as a string."
        ) from error


@lru_cache(maxsize=1024)
def _parsed(text: str, ranks: tuple[int, ...]) -> Formula:
    """The letters of every axis, ellipses written out."""
    factors, arrow, result = text.partition("->")
    terms = factors.split(",")
    if len(terms) != len(ranks):
        _refuse(text, f"it has {len(terms)} terms for {len(ranks)} operands")
    for term in (*terms, result):
        rest = term.replace("...", "", 1)
        if not all(i in LETTERS for i in rest):
            _refuse(text, f"the term {term!r} has something else than letters and one ellipsis")
    spare = [i for i in LETTERS if i not in text]
    widths = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    for term, width, rank in zip(terms, widths, ranks, strict=True):
        if width < 0 or (width and "..." not in term):
            _refuse(text, f"the term {term!r} does not fit an operand with {rank} axes")
    most = max([w for term, w in zip(terms, widths, strict=True) if "..." in term], default=0)
    dots = "".join(spare[:most])  # they are aligned at the right, as in broadcasting
    full = tuple([term.replace("...", dots[most - w :]) for term, w in zip(terms, widths, strict=True)])
    if arrow:
        if most and "..." not in result:
            _refuse(text, "the result has no ellipsis for the axes that stand under one")
        out = result.replace("...", dots)
    else:
        named = "".join(terms).replace(".", "")
        out = dots + "".join(sorted([i for i in set(named) if named.count(i) == 1]))
    if len(set(out)) != len(out):
        _refuse(text, "the result has a letter twice")
    if not set(out) <= set("".join(full)):
        _refuse(text, "the result has a letter that no operand has")
    return Formula(full, out)


def _refuse(text: str, problem: str) -> NoReturn:
    raise ValueError(f"einsum: {problem}, got {text!r}. Write it as in 'ij,jk->ik'.")


def contracted(terms: tuple[str, ...], out: str, operands: list[Array], optimize: Any = False) -> Array:
    """The sum over products; ``terms`` and ``out`` give the letters of all axes."""
    shapes = tuple([backend.shape_of(x) for x in operands])
    return _followed(_recipe(terms, out, shapes, _hashable(optimize)), operands)


#: An operation of one array and its parameters.
Action: TypeAlias = tuple[Operation, dict[str, Any]]


class Recipe(NamedTuple):
    """What to do with operands of certain shapes.

    Attributes:
        first: for each operand the operations that take away what it need not bring into a product:
            repeated letters, axes of length 1 that broadcast, letters that nobody else has.
        products: the positions of two operands and the formula of their product, which is put at the end.
        last: how to order the axes of what remains, None for not at all.
    """

    first: tuple[tuple[Action, ...], ...]
    products: tuple[tuple[int, int, str], ...]
    last: tuple[int, ...] | None


def _followed(recipe: Recipe, operands: list[Array]) -> Array:
    pool = list(operands)
    for position, actions in enumerate(recipe.first):
        for operation, params in actions:
            pool[position] = operation(pool[position], **params)
    for i, j, subscripts in recipe.products:
        y, x = pool.pop(j), pool.pop(i)
        pool.append(product(x, y, subscripts=subscripts))
    return pool[0] if recipe.last is None else permute(pool[0], axes=recipe.last)


@lru_cache(maxsize=1024)
def _recipe(terms: tuple[str, ...], out: str, shapes: tuple[Shape, ...], optimize: Any) -> Recipe:
    lengths = _lengths(terms, shapes)
    pool, first = [], []
    for term, shape in zip(terms, shapes, strict=True):
        term, shape, actions = _own_diagonal(term, shape)
        keep = [a for a, i in enumerate(term) if shape[a] == lengths[i]]
        if len(keep) < len(term):
            term, shape = "".join([term[a] for a in keep]), tuple([shape[a] for a in keep])
            actions.append((reshape, {"to": shape}))
        pool.append(term)
        first.append(actions)
    for position, term in enumerate(pool):
        needed = set(out).union(*pool[:position], *pool[position + 1 :])
        axis = tuple([a for a, i in enumerate(term) if i not in needed])
        if axis:
            first[position].append((reduce_sum, {"axis": axis}))
            pool[position] = "".join([i for i in term if i in needed])
    products = tuple(_products(pool, out, lengths, optimize))
    last = None if pool[0] == out else tuple([pool[0].index(i) for i in out])
    return Recipe(tuple(map(tuple, first)), products, last)


def _lengths(terms: tuple[str, ...], shapes: tuple[Shape, ...]) -> dict[str, int]:
    """The length of the axes of each name; 1 broadcasts."""
    lengths: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for i, n in zip(term, shape, strict=True):
            if lengths.setdefault(i, n) == 1:
                lengths[i] = n
            elif n not in (1, lengths[i]):
                raise ShapeError(
                    f"einsum: axes of one name have one length (or 1, which broadcasts), got {lengths[i]} and {n} for "
                    f"{i!r} in {','.join(terms)} of shapes {', '.join(map(str, shapes))}. Check the order of the axes."
                )
    return lengths


def _own_diagonal(term: str, shape: Shape) -> tuple[str, Shape, list[Action]]:
    """How to get the diagonal of an operand that has a letter twice."""
    actions: list[Action] = []
    for i in dict.fromkeys(term):
        while term.count(i) > 1:
            first = term.index(i)
            second = term.index(i, first + 1)
            if shape[first] != shape[second]:
                raise ShapeError(
                    f"einsum: a letter that an operand has twice stands for its diagonal, got lengths {shape[first]} "
                    f"and {shape[second]} for {i!r}. Both must agree."
                )
            rest = [a for a in range(len(term)) if a not in (first, second)]
            actions += [(permute, {"axes": (*rest, first, second)}), (diagonal, {"offset": 0})]
            term = "".join([term[a] for a in rest]) + i
            shape = (*[shape[a] for a in rest], shape[first])
    return term, shape, actions


def _products(pool: list[str], out: str, lengths: dict[str, int], optimize: Any) -> Iterator[tuple[int, int, str]]:
    """The products of pairs in a good order; in the end ``pool`` holds the letters of what remains."""
    for chosen in _path(pool, out, lengths, optimize):
        rising = sorted(chosen)
        while len(rising) > 1:
            i, j = rising[0], rising[1]
            ty, tx = pool.pop(j), pool.pop(i)
            others = set(out).union(*pool)
            made = "".join([k for k in dict.fromkeys(tx + ty) if k in others]) if pool else out
            pool.append(made)
            yield i, j, f"{tx},{ty}->{made}"
            rising = sorted([*[k - 2 for k in rising[2:]], len(pool) - 1])


def _hashable(optimize: Any) -> Any:
    """A path as a tuple, without the word that NumPy puts first."""
    if isinstance(optimize, (list, tuple)) and optimize and not isinstance(optimize[0], str):
        return tuple([tuple(step) for step in optimize])
    if isinstance(optimize, (list, tuple)) and optimize and optimize[0] == "einsum_path":
        return tuple([tuple(step) for step in optimize[1:]])
    return optimize if isinstance(optimize, str) else "auto"


def _path(pool: list[str], out: str, lengths: dict[str, int], optimize: Any) -> list[tuple[int, ...]]:
    """Which operands to multiply, step by step; a product is put at the end."""
    if len(pool) < 3:
        return [(0, 1)] if len(pool) == 2 else []
    from opt_einsum import contract_path  # only needed here, and importing it takes longer than most sums

    shapes = [tuple([lengths[i] for i in term]) for term in pool]
    how = [*optimize] if isinstance(optimize, tuple) else optimize
    path, _ = contract_path(",".join(pool) + "->" + out, *shapes, shapes=True, optimize=how)
    return [tuple(step) for step in path]
