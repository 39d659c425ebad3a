"""What a cross-check compares: values and derivatives of one function, by one library.

Everything is computed by ``Library.vjp``, ``jvp`` and ``vmap``, which funcgrad and JAX both have, so that one
text says for both what is asked of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from funcgrad.errors import StagingError
from funcgrad.interop.jax.lift import lifted
from funcgrad.transforms import jvp, vjp, vmap
from funcgrad.transforms.problem import Leaves, random_like

__all__ = ["ALSO", "KINDS", "Answers", "Inputs", "Subject", "inputs_of", "loop", "ours", "pulled", "theirs"]

#: What may be compared besides value, reverse mode, forward mode and second order.
ALSO = ("vmap", "jit", "float32")
KINDS = ("value", "reverse", "forward", "second", *ALSO)
COPIES = 3  # examples in a batch
APART = 1e-3  # how far they are from each other, relatively: far beyond any tolerance

#: By the name of a quantity its leaves, or the error that was raised in their place.
Answers: TypeAlias = dict[str, Any]
#: Names of quantities, and what computes them together.
Asked: TypeAlias = Iterator[tuple[tuple[str, ...], Callable[[], Sequence[Leaves]]]]

#: For what runs once: this compiles in a tenth of the time, and computes the same.
QUICK = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
}
#: Of (c + x) - c XLA makes x, which hides that digits are lost, unless it is told to leave that; by an older JAX it
#: cannot be told.
AS_WRITTEN = {"xla_disable_hlo_passes": "algsimp"}
AS_WRITTEN_FROM = (0, 10)


class Library(NamedTuple):
    """The transforms of one library."""

    vjp: Callable[..., Any]
    jvp: Callable[..., Any]
    vmap: Callable[..., Any]


OURS = Library(vjp, jvp, vmap)


class Subject(Protocol):
    """A function of leaves that is compared, as funcgrad runs it, at a point where it is.

    Attributes:
        point: the leaves, in double precision.
        paths: what each is called.
        result_paths: the same for the leaves of the result.
        value: those, as plain NumPy computes them.
    """

    point: Leaves
    paths: list[str]
    result_paths: list[str]
    value: Leaves

    @property
    def real(self) -> bool:
        """Whether no number is complex."""

    @property
    def scalar(self) -> bool:
        """Whether the result is one real number."""

    def __call__(self, *leaves: Any) -> Leaves:
        """The leaves of the result for other leaves."""


class Inputs(NamedTuple):
    """Where a function is looked at.

    Attributes:
        point: the leaves.
        tangents: the direction of forward mode and of second order.
        copies: a batch of points around ``point``.
        single: the point in single precision.
        single_tangents: the direction in single precision.
    """

    point: Leaves
    tangents: Leaves
    copies: Leaves
    single: Leaves
    single_tangents: Leaves


def inputs_of(rng: np.random.Generator, point: Leaves, tangents: Leaves) -> Inputs:
    """The places and directions that belong to ``point``."""
    copies = [np.stack([x + i * APART * random_like(rng, x) for i in range(COPIES)]) for x in point]
    with np.errstate(all="ignore"):
        single, single_tangents = [[_single(x) for x in leaves] for leaves in (point, tangents)]
    return Inputs(point, tangents, copies, single, single_tangents)


def _single(x: Any) -> Any:
    found = np.asarray(x).astype(np.complex64 if np.iscomplexobj(x) else np.float32)
    return found if found.shape else found[()]


def pulled(library: Library, fun: Callable[..., Leaves], cts: Leaves) -> Callable[..., tuple[Leaves, Leaves]]:
    """A function that gives the result of ``fun`` and the cotangents of its arguments."""

    def both(*leaves: Any) -> tuple[Leaves, Leaves]:
        outs, pullback = library.vjp(fun, *leaves)
        return list(outs), list(pullback([_as_dtype(ct, out) for ct, out in zip(cts, outs, strict=True)]))

    return both


def _as_dtype(ct: Any, out: Any) -> Any:
    return np.asarray(ct).astype(out.dtype if hasattr(out, "dtype") else type(out))


def asked(library: Library, fun: Callable[..., Leaves], at: Inputs, cts: Leaves, kinds: Collection[str]) -> Asked:
    """How to compute what; what shares work is computed together."""
    both = pulled(library, fun, cts)
    if {"value", "reverse"} & {*kinds}:
        yield ("value", "reverse"), lambda: both(*at.point)
    if "forward" in kinds:
        yield ("forward",), lambda: library.jvp(fun, tuple(at.point), tuple(at.tangents))[1:]
    if "second" in kinds:
        yield ("second",), lambda: library.jvp(lambda *x: both(*x)[1], tuple(at.point), tuple(at.tangents))[1:]
    if "vmap" in kinds:
        yield ("vmap value", "vmap reverse"), lambda: library.vmap(both)(*at.copies)
    if "float32" in kinds:
        yield ("float32 value", "float32 reverse"), lambda: both(*at.single)
        yield (("float32 forward",), lambda: library.jvp(fun, tuple(at.single), tuple(at.single_tangents))[1:])


def answered(asked: Iterable[Any], failed: Answers) -> Answers:
    """What comes out; errors go to ``failed``."""
    found: Answers = {}
    for names, compute in asked:
        try:
            found.update(zip(names, compute(), strict=True))
        except Exception as error:  # one quantity that there is not must not hide the others
            failed.update(dict.fromkeys(names, error))
    return found


def ours(subject: Subject, at: Inputs, cts: Leaves, kinds: Collection[str]) -> Answers:
    """What funcgrad says."""
    failed: Answers = {}
    with np.errstate(all="ignore"):
        found = answered(asked(OURS, subject, at, cts, kinds), failed)
    return {**failed, **_as_numpy(found)}


def theirs(
    jax: Any,
    subject: Subject,
    fun: Callable[..., Leaves],
    at: Inputs,
    cts: Leaves,
    kinds: Collection[str],
    *,
    jitted: bool = True,
) -> Answers:
    """What JAX says of ``fun``; and what is compiled: "jit ..." by JAX's rules, "own jit ..." by funcgrad's.

    Args:
        jax: the module.
        subject: the function as funcgrad differentiates it.
        fun: the function as JAX shall.
        at: where.
        cts: cotangents.
        kinds: some of ``KINDS``.
        jitted: whether what is named "jit ..." is compiled as ``jax.jit`` does. Else it is what all the rest is:
            one program that XLA compiles in a hurry, since it runs once. What cannot be compiled runs one
            operation after the other.
    """
    at = Inputs(*[[jax.numpy.asarray(x) for x in leaves] for leaves in at])
    library = Library(jax.vjp, jax.jvp, jax.vmap)
    lift, plain, own = [lifted(jax, each) for each in (fun, subject, pulled(OURS, subject, cts))]

    def by_jax(at: Inputs) -> Asked:
        yield ("value",), lambda: (lift(*at.point),)  # also where there is no derivative
        yield from asked(library, lift, at, cts, kinds)

    def staged(at: Inputs) -> Asked:
        if jitted:
            yield ("jit value",), lambda: (lift(*at.point),)
            yield ("jit value", "jit reverse"), lambda: pulled(library, lift, cts)(*at.point)
        yield ("own jit value",), lambda: (plain(*at.point),)
        yield ("own jit value", "own jit reverse"), lambda: own(*at.point)

    if not jitted:
        found = _compiled(jax, lambda at: [*by_jax(at), *(staged(at) if "jit" in kinds else ())], at, options=QUICK)
        if not any(isinstance(error, StagingError) for error in found.values()):
            return {**found, **{f"jit {name}": found[name] for name in ("value", "reverse") if name in found}}
        return {**found, **theirs(jax, subject, fun, at, cts, kinds)}
    return {**_unstaged(jax, by_jax, at), **(_compiled(jax, staged, at) if "jit" in kinds else {})}


def _unstaged(jax: Any, asked: Callable[[Inputs], Iterable[Any]], at: Inputs) -> Answers:
    """What comes out of ``asked(at)``: compiled if all of it can be, else one operation after the other."""
    if jax.__version_info__ >= AS_WRITTEN_FROM:
        with suppress(Exception):  # what a function does outside of ``jax.jit`` it may not do inside
            found = _compiled(jax, asked, at, options={**QUICK, **AS_WRITTEN})
            if not any(isinstance(answer, Exception) for answer in found.values()):
                return found
    failed: Answers = {}
    return {**_as_numpy(answered(asked(at), failed)), **failed}


def _compiled(jax: Any, asked: Callable[[Inputs], Iterable[Any]], at: Inputs, *, options: Any = None) -> Answers:
    """What comes out of ``asked(at)`` as one program, compiled with XLA's ``options`` if it knows them."""
    failed: Answers = {}
    lowered = jax.jit(lambda at: answered(asked(at), failed)).lower(at)
    try:
        program = lowered.compile(compiler_options=options)
    except Exception:  # an XLA that does not know these options; else it is raised again
        program = lowered.compile()
    return {**failed, **_as_numpy(program(at))}


def _as_numpy(answers: Answers) -> Answers:
    return {name: [np.asarray(leaf) for leaf in leaves] for name, leaves in answers.items()}


def loop(subject: Subject, at: Inputs, cts: Leaves) -> Answers:
    """What ``vmap`` must give: funcgrad's results for each example, stacked."""
    both = pulled(OURS, subject, cts)
    rows = [both(*[copies[i] for copies in at.copies]) for i in range(COPIES)]
    values, reverse = [[np.stack(leaves) for leaves in zip(*part, strict=True)] for part in zip(*rows, strict=True)]
    return {"vmap value": values, "vmap reverse": reverse}
