"""``jit``: a function of NumPy arrays, compiled by XLA, or recorded once and written as NumPy code."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn, ParamSpec, TypeVar

import numpy as np

from funcgrad import blocks, tree
from funcgrad.backend import problem_and_remedy
from funcgrad.batching import named_axes
from funcgrad.core import is_array
from funcgrad.errors import InputError
from funcgrad.interop.jax.conversion import (
    HOST_TYPES,
    Containers,
    as_views,
    copied_to_jax,
    flatten,
    results_on_host,
    to_numpy,
)
from funcgrad.interop.jax.devices import find_device, put_on_device
from funcgrad.interop.jax.lift import ClosedOverTracer
from funcgrad.interop.jax.programs import Call
from funcgrad.interop.jax.staging import StagedProgram
from funcgrad.numpy_code import SelfRebuilding
from funcgrad.optional import double_precision, import_jax, precision_switch
from funcgrad.transforms.closures import RecordedClosure
from funcgrad.transforms.compiled import jit_numpy
from funcgrad.transforms.static_arguments import StaticArguments
from funcgrad.transforms.transformed import Transformed, check_callable, name_of

P = ParamSpec("P")
R = TypeVar("R")


class _Options(NamedTuple):
    static_argnums: Any
    static_argnames: Any
    donate_argnums: Any
    device: Any
    in_shardings: Any
    out_shardings: Any


def jit(
    fun: Callable[P, R],
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    device: Any = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    *,
    backend: str = "xla",
    exact: bool = True,
) -> Callable[P, R]:
    """Return ``fun`` compiled by XLA, or as straight NumPy code: NumPy arrays in, NumPy arrays out.

    With XLA, the default, the function runs for each new combination of containers, shapes and dtypes, on abstract
    values, which have a shape and a dtype only. XLA compiles its operations, and later calls run the program. Where
    Python branches on values, the function runs once for each path, up to 64, and the program takes the path that
    Python would take; an error that a path raises is raised by the call. Side effects (printing, drawing random
    numbers) happen only while the function is compiled. Call ``jit`` once and keep the result: it holds the programs.

    ``grad(jit(f))`` runs one compiled program forward and one backward, by funcgrad's rules; the intermediate values
    stay on the device. Every transform works inside ``jit``: ``jit(grad(f))``, ``jit(vmap(f))``.

    With ``backend="numpy"``, which needs no JAX, the first call for each combination records the operations and writes
    them as a program of NumPy calls, which later calls run. If Python looked at a value (a branch, an index, a loop
    that stops on a tolerance), the program looks at it too, and a new answer is recorded as well. Results equal those
    of the function bit for bit. The new function has ``source``, ``report()`` and ``save(path)``; see the page on
    graph mode.

    Args:
        fun: a function of arrays and numbers in containers, written with NumPy, funcgrad.numpy, pipelines,
            funcgrad's transforms.
        static_argnums: positions of arguments whose values Python needs: flags, sizes, functions. These arguments must
            be hashable; each value gets a program of its own.
        static_argnames: names of such arguments.
        donate_argnums: positions of arguments whose memory the results may take. A JAX array that is donated
            cannot be used any more; a NumPy array is copied.
        device: where to run, see ``device_put``; by default where the arguments are.
        in_shardings: how the arguments are distributed over devices: one ``jax.sharding.Sharding``, or a tuple
            with an entry per argument, each a sharding, None or a tree of them that is a prefix of it.
        out_shardings: how the result is distributed, in the same form.
        backend: "xla" or "numpy". Options about devices and memory are for "xla" only.
        exact: for "numpy": whether results must equal those of the function bit for bit. If not, Python's ``math``
            computes single numbers, which is several times as fast and rounds some results differently.

    Returns:
        A function of the same arguments. float64 stays float64. NumPy results are read-only: they are views of the
            memory that XLA wrote. If any floating argument is a JAX array, the results are JAX arrays.

    Raises:
        MissingExtraError: JAX is not installed (an ``ImportError``).
        StagingError: the function needed a concrete value while it was being compiled, or takes too many paths (a
            ``TypeError``).
        InputError: an argument is neither an array nor a number and not static; the function lacks a static or donated
            argument that is named; the backend is unknown (a ``TypeError``).

    Example:
        >>> import numpy as np
        >>> from funcgrad import grad, jit
        >>> slope = jit(grad(lambda x: np.sum(np.sin(x) ** 2)))
        >>> slope(np.array([0.0, np.pi / 4])).round(12)
        array([0., 1.])
        >>> slope = jit(grad(lambda x: np.sum(np.sin(x) ** 2)), backend="numpy")
        >>> slope(np.array([0.0, np.pi / 4])).round(12)
        array([0., 1.])
    """
    check_callable("jit", fun)
    if backend not in ("xla", "numpy"):
        raise InputError(f'jit: there is no such backend, got {backend!r}. Name "xla" or "numpy".')
    if backend == "numpy":
        given = {"device": device, "in_shardings": in_shardings, "out_shardings": out_shardings}
        strange = [name for name, value in given.items() if value is not None]
        if strange or not isinstance(donate_argnums, Sequence) or donate_argnums:
            raise InputError(
                f'jit: with backend="numpy" there are no devices and nothing to donate, got '
                f"{strange[0] if strange else 'donate_argnums'}. Leave it out."
            )
        return jit_numpy(fun, static_argnums, static_argnames, exact=exact)
    options = _Options(static_argnums, static_argnames, donate_argnums, device, in_shardings, out_shardings)
    return Jitted(run_jit, fun, options, "{fun} compiled by XLA.")


def run_jit(fun: Callable[..., Any], options: _Options, args: Any, kwargs: Any) -> Any:
    """Run ``jit(fun)`` on these arguments, and remember nothing."""
    return Jitted(run_jit, fun, options, "")(*args, **kwargs)


class Jitted(Transformed[P, Any]):  # noqa: D101  (it has that of Transformed)
    __doc__ = Transformed.__dict__["__doc__"]

    def __init__(self, run: Callable[..., Any], fun: Callable[P, Any], options: _Options, summary: str) -> None:
        super().__init__(run, fun, options, summary)
        self._static_arguments = StaticArguments(
            fun, options.static_argnums, options.static_argnames, options.donate_argnums
        )
        self._programs: dict[Any, StagedProgram] = {}
        #: Compiled programs, by JAX's structure of the arguments, which is faster to compute than funcgrad's. Holds
        #: only programs for which both libraries see the same leaves, and whose leaves need no preparation.
        self._compiled: dict[Any, StagedProgram] = {}
        self._allows_fast_path = (
            options.device is None and not self._static_arguments.donated and not self._static_arguments.static
        )
        self._device: Any = None
        self._jax: Any = None
        self._array_types: set[type] = set()  # the type of JAX's arrays
        self._double_precision: Any = None
        self._flatten: Any = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Run the compiled function; compile it first if no earlier call had such arguments."""
        jax = self._jax
        if jax is None:
            jax = self._begin()
        if self._compiled and blocks.current().runner is None and not named_axes.get():
            try:
                leaves, structure = self._flatten((args, kwargs))
            except Exception:  # JAX cannot sort every dictionary, and foreign containers may raise anything
                return self._slow_path(args, kwargs)
            program = self._compiled.get(structure)
            kinds = set(map(type, leaves))
            all_jax = kinds == self._array_types
            if program is not None and (all_jax or HOST_TYPES.issuperset(kinds)):
                try:
                    with self._double_precision(True):
                        out = program.run(*(leaves if all_jax else as_views(leaves)))
                except ClosedOverTracer:
                    pass
                else:
                    ((number, results),) = out.items()
                    return program.unflatten_by_number[number](results if all_jax else to_numpy(jax, results))
        return self._slow_path(args, kwargs)

    def _begin(self) -> Any:
        jax = import_jax("jit")
        if self.options.device is not None:
            self._device = find_device(jax, "jit", self.options.device)
        self._array_types = {type(jax.numpy.zeros(()))}
        self._double_precision = precision_switch(jax)
        self._flatten = jax.tree_util.default_registry.flatten
        self._jax = jax
        return jax

    def _slow_path(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run any call: with static arguments, through outer transforms, on JAX arrays."""
        static, args, kwargs = self._static_arguments.split(args, kwargs)
        leaves, containers = flatten((args, kwargs))
        for leaf in leaves:
            if not is_array(leaf):
                self._refuse(leaf, args, kwargs)
        host = results_on_host(leaves)
        given, leaves = leaves, self._place_leaves(leaves, args)
        names = tuple([(name, trace.size) for name, trace in named_axes.get().items()])
        key: Any = (static, containers, names) if static or names else containers.spec
        program = self._programs.get(key)
        if program is None:
            program = self._programs.setdefault(key, self._make_program(static, containers, args, len(leaves)))
        if self._allows_fast_path and not names:
            self._cache_fast_path((args, kwargs), given, program)
        call = Call(program, host)
        try:
            outs = call(*leaves)
        except ClosedOverTracer:
            pass
        else:
            return call.static_part(*outs)
        return self._call_closing_over(static, containers, leaves, host)

    def _cache_fast_path(self, arguments: Any, leaves: list[Any], program: StagedProgram) -> None:
        """Let the next call with such arguments take the fast path, if all containers are Python's built-in ones."""
        try:
            found, structure = self._flatten(arguments)
        except Exception:
            return
        if len(found) == len(leaves) and all(map(operator.is_, found, leaves)) and _has_builtin_containers(arguments):
            self._compiled[structure] = program

    def _make_program(self, static: Any, containers: Containers, args: tuple[Any, ...], count: int) -> StagedProgram:
        """Return the program for arguments in these containers."""
        fun = self._static_arguments.bind(SelfRebuilding(self.fun), static)

        def flat(*leaves: Any) -> tuple[list[Any], Any]:
            return flatten(containers.apply(fun, leaves))

        flags = self._static_arguments.flags_per_leaf(args, self._static_arguments.donated)
        donated = tuple([i for i, flag in enumerate(flags) if flag])
        options: dict[str, Any] = {"donate_argnums": donated} if donated else {}
        shardings: list[Any] = []
        if self.options.in_shardings is not None:
            shardings = [*_spread(self.options.in_shardings, args), *[None] * count][:count]
            options["in_shardings"] = tuple(shardings)
        return StagedProgram(self._jax, name_of(self.fun), flat, options, shardings, self.options.out_shardings)

    def _place_leaves(self, leaves: list[Any], args: tuple[Any, ...]) -> list[Any]:
        """Return the leaves on their device, and in memory that may be donated or read later."""
        jax = self._jax
        flags = self._static_arguments.flags_per_leaf(args, self._static_arguments.donated)
        flags += [False] * (len(leaves) - len(flags))
        mixed = any(isinstance(leaf, jax.Array) for leaf in leaves)  # then the call does not wait for the result
        found = []
        for leaf, donated in zip(leaves, flags, strict=True):
            if self._device is not None:
                leaf = put_on_device(jax, leaf, self._device)
            elif type(leaf) in HOST_TYPES and (donated or mixed):
                with double_precision(jax):
                    leaf = copied_to_jax(jax, leaf)
            found.append(leaf)
        return found

    def _call_closing_over(self, static: Any, containers: Containers, leaves: list[Any], host: bool) -> Any:
        """Call a function that closes over values of outer transforms, with these values as further arguments.

        A run on the values themselves finds the closed-over values. Nothing is cached: the next call may have others.
        """
        fun = self._static_arguments.bind(SelfRebuilding(self.fun), static)
        closure = RecordedClosure("jit", lambda found: containers.apply(fun, found), list(leaves))
        count = len(leaves)

        def flat(*values: Any) -> tuple[list[Any], Any]:
            return flatten(closure(list(values[:count]), values[count:]))

        call = Call(
            StagedProgram(self._jax, name_of(self.fun), flat), host and results_on_host([*leaves, *closure.captured])
        )
        outs = call(*leaves, *closure.captured)
        return call.static_part(*outs)

    def _refuse(self, leaf: Any, args: Any, kwargs: Any) -> NoReturn:
        paths, leaves, _ = tree.flatten_with_path((args, kwargs))
        path = next((p for p, x in zip(paths, leaves, strict=True) if x is leaf), "")
        where = f"argument {path[4:].replace(']', '', 1)}" if path.startswith("[0]") else f"argument {path[3:]}"
        problem, remedy = problem_and_remedy(leaf)
        if not isinstance(leaf, (np.ndarray, np.generic)):
            remedy = "Name it in static_argnums or static_argnames if it is a constant, or close over it."
        raise InputError(f"jit: {where} of {name_of(self.fun)} {problem}. {remedy}")


def _has_builtin_containers(value: Any) -> bool:
    """Return whether all containers are dictionaries, lists and tuples, which funcgrad and JAX take apart alike."""
    kind = type(value)
    if kind is dict:
        return all(map(_has_builtin_containers, value.values()))
    if kind is tuple or kind is list:
        return all(map(_has_builtin_containers, value))
    return value is None or is_array(value)


def _spread(prefix: Any, args: tuple[Any, ...]) -> list[Any]:
    """Return the entry of ``in_shardings`` for each leaf of the arguments."""
    if not isinstance(prefix, (tuple, list, dict)):
        return [prefix] * len(tree.leaves(args))
    try:
        return tree.broadcast_prefix(tuple(prefix) if isinstance(prefix, list) else prefix, args)
    except ValueError:
        raise InputError(
            f"jit: in_shardings does not fit the arguments, got {prefix} for {tree.structure(args)}. Give one "
            "sharding, or a tuple with an entry per argument that is not static."
        ) from None
