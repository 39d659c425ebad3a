"""Functions that branch on values, compiled: each path that Python takes becomes a branch of the program.

While JAX compiles, a truth value is not known. The function runs until Python asks for one. Then it runs twice from the
start, once with the answer True and once with False, up to the next question, and so on. The paths form a tree. The
program runs one of them: at each question ``jax.lax.cond`` selects a side. Derivatives are those of the path that is
taken, as without compiling. A path that raises an error becomes a check, see ``checks``.

A run is identified by its answers. They belong to questions in an order, so each answer keeps a mark of what the run
had computed when it asked. If a run asks otherwise, because funcgrad has learned meanwhile how to run a function, all
begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from threading import get_ident
from typing import Any, NamedTuple

from funcgrad.core import Primitive
from funcgrad.errors import FuncgradError, InputError, StagingError
from funcgrad.interop.jax.checks import FailedCheck, failed_check
from funcgrad.interop.jax.jaxprs import evaluated
from funcgrad.interop.jax.lift import staging_error
from funcgrad.interop.jax.programs import Checked, Checks, Static, with_checks
from funcgrad.numpy.plain_values.concretization import forget_refusal
from funcgrad.numpy_code.refusals import LostWrite, is_conversion
from funcgrad.shared_state import open_path, pending_refusals

#: Largest number of branches that one path may take, and of paths.
_MOST_BRANCHES, _MOST_PATHS = 12, 64
#: How often all may begin anew.
_MOST_BEGINNINGS = 30


class _Question(BaseException):
    """Signal that a run asks for a truth value that no answer is given for.

    ``_Question`` is not an ``Exception``, so the function does not catch it.

    Args:
        condition: the truth value, of JAX; those of all examples, if it is asked for in a ``vmap``.
        mark: what the run had computed.
    """

    def __init__(self, condition: Any, mark: int) -> None:
        self.condition, self.mark = condition, mark
        self.is_of_batch = condition.size != 1


class _OtherQuestion(BaseException):
    """Signal that a run asks for another truth value than the run before did at this place."""


class Forked(BaseException):
    """Signal that a function has more than one path."""


class _Raising(NamedTuple):
    """Paths that all raise errors.

    Attributes:
        checks: the errors; the last one is raised if no condition of the others is true.
        closed: the computation of the conditions of the others from the leaves; None if there are no others.
    """

    checks: list[FailedCheck]
    closed: Any


class Answer(NamedTuple):
    """Answer to a question of a run.

    Attributes:
        value: the answer.
        mark: what the run had computed when it asked.
        otherwise: the errors to which the other answer leads; None if it leads to results.
    """

    value: bool
    mark: int
    otherwise: _Raising | None = None


class Path:
    """One run of a function, with answers.

    Args:
        answers: the answers to the first questions.
        known: number of answers whose checks are made elsewhere.
        refuse: raises an error at the first question without an answer; by default the run stops there.

    Attributes:
        checks: conditions and the checks that fail if they are true.
        leaves: the values with which the function runs.
    """

    __slots__ = ("_answers", "_asked", "_computed", "_known", "_refuse", "checks", "leaves")

    def __init__(
        self, answers: Sequence[Answer] = (), known: int = 0, refuse: Callable[[], None] | None = None
    ) -> None:
        self._answers, self._known, self._refuse = answers, known, refuse
        self._asked = self._computed = 0
        self.checks: list[tuple[Any, FailedCheck]] = []
        self.leaves: Sequence[Any] = ()

    def made_checks(self, jax: Any) -> Checks | None:
        """Return the checks that the run has made."""
        if not self.checks:
            return None
        conditions, checks = zip(*self.checks, strict=True)
        return Checks(checks, jax.numpy.stack(conditions))

    @property
    def has_answered(self) -> bool:
        """Whether the run has asked for a truth value."""
        return self._asked > 0 and self._refuse is None

    @staticmethod
    def begin_anew() -> BaseException:
        """Return the signal to raise if what has been asked may not be asked again."""
        return _OtherQuestion()

    def mark(self) -> Callable[[], None]:
        """Return what brings the run back to this place: a part of the function runs once more."""
        asked, computed, checks = self._asked, self._computed, len(self.checks)

        def rewind() -> None:
            self._asked, self._computed = asked, computed
            del self.checks[checks:]

        return rewind

    def watch(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> None:
        """Note an operation."""
        self._computed = hash((self._computed, primitive.name))

    def answer(self, x: Any) -> bool | None:
        """Return the answer for the truth value of ``x``, a value of JAX; None if it has to be refused."""
        condition = x if x.dtype == bool else x != 0
        if self._asked == len(self._answers):
            if self._refuse is not None:
                self._refuse()
                return None
            raise _Question(condition, self._computed) from None  # errors of the function must not seem to come of it
        found = self._answers[self._asked]
        if found.mark != self._computed:
            raise _OtherQuestion from None
        if found.otherwise is not None and self._asked >= self._known:
            self._note_errors((~condition if found.value else condition).any(), found.otherwise)
        self._asked += 1
        return found.value

    def _note_errors(self, leads_there: Any, raising: _Raising) -> None:
        *others, last = raising.checks
        if others:
            failed = evaluated(raising.closed, self.leaves)[0]
            self.checks += [(leads_there & failed[i], check) for i, check in enumerate(others)]
        self.checks.append((leads_there, last))


def follow_paths(jax: Any, name: str, run: Callable[..., Any], leaves: Sequence[Any]) -> Any:
    """Return ``run(*leaves)``, what a program returns, of a function that may branch on values.

    Args:
        jax: the JAX module, while it traces.
        name: the function's name.
        run: runs the function on values of JAX, on the open path.
        leaves: values of JAX.
    """

    def make() -> Any:
        with suppress(_Question):
            return run_on_path(Path(), run, *leaves)
        return _Follower(jax, name, run, leaves).program()

    return _begin_anew(name, make)


def on_only_path(jax: Any, name: str, run: Callable[..., Any], leaves: Sequence[Any], work: Callable[[], Any]) -> Any:
    """Return ``work()``, which runs the function of ``follow_paths`` on its only path that leads to a result.

    Args:
        work: runs the function on the open path.

    Raises:
        Forked: there are several paths.
    """

    def make() -> Any:
        with suppress(_Question):
            return run_on_path(Path(), work)
        answers = _Follower(jax, name, run, leaves).only_path()
        with suppress(_Question):
            return run_on_path(Path(answers), work)
        raise _OtherQuestion

    return _begin_anew(name, make)


def _begin_anew(name: str, make: Callable[[], Any]) -> Any:
    for _ in range(_MOST_BEGINNINGS):
        with suppress(_OtherQuestion):
            return make()
    raise StagingError(
        f"jit: {name} must branch in the same way whenever it is called with the same values, got other branches in "
        "each call. Let it depend on its arguments only."
    )


def run_on_path(path: Path, run: Callable[..., Any], *leaves: Any) -> Any:
    """Return ``run(*leaves)`` on a path."""
    around = open_path.set(path)
    try:
        return run(*leaves)
    finally:
        open_path.reset(around)


class _Leaf(NamedTuple):
    """Path that leads to a result.

    Attributes:
        closed: the computation of the results, and of the conditions of the checks, from the leaves.
        static_part: what the results mean.
        avals: shapes and dtypes of the results.
        checks: the checks.
    """

    closed: Any
    static_part: Any
    avals: list[Any]
    checks: list[FailedCheck]


class _Fork(NamedTuple):
    """Question with two sides.

    Attributes:
        closed: the computation of the truth value, and of the conditions of the checks before, from the leaves.
        yes: the side for the answer True.
        no: the side for the answer False.
        own_checks: the checks before the question.
    """

    closed: Any
    yes: _Fork | _Leaf
    no: _Fork | _Leaf
    own_checks: list[FailedCheck]

    @property
    def checks(self) -> list[FailedCheck]:
        """All checks."""
        return [*self.own_checks, *self.yes.checks, *self.no.checks]


class _Stopped(NamedTuple):
    """Run that ended at a question.

    Attributes:
        closed: the computation of the truth value, and of the conditions of the checks, from the leaves.
        question: the question.
        checks: the checks before it.
    """

    closed: Any
    question: _Question
    checks: list[FailedCheck]


def _check_of(error: Exception) -> FailedCheck:
    """Return the check for an error that the function raises; raise it if the function cannot be compiled."""
    is_refusal = isinstance(error, FuncgradError) and type(error) is not InputError
    if is_refusal or type(error).__module__.startswith("jax"):
        raise error
    found = failed_check(error)
    noted = pending_refusals.get(get_ident())
    if not noted or type(noted) is LostWrite:
        forget_refusal()  # a text was made, of the error or to be printed; or what another function wrote
    if is_conversion(error):
        raise error
    return found


class _Follower:
    """Finds the paths of a function, and makes the program that runs one of them.

    Args:
        jax: the JAX module, while it traces.
        name: the function's name.
        run: runs the function on values of JAX.
        leaves: values of JAX.
    """

    def __init__(self, jax: Any, name: str, run: Callable[..., Any], leaves: Sequence[Any]) -> None:
        self.jax, self.name, self.run, self.leaves = jax, name, run, leaves
        self._paths = 1
        self._forks = True

    def program(self) -> Any:
        """Return what the program returns."""
        tree = self._explored((), 0)
        if isinstance(tree, _Raising):
            raise tree.checks[-1].to_raise(self.name)
        dtypes = self._dtypes(tree)
        found = self._selected(tree, dtypes, self.leaves)
        checks = Checks(tree.checks, found[-1]) if tree.checks else None
        return with_checks(self.jax, next(_leaves_of(tree)).static_part, found[: len(dtypes)], checks)

    def only_path(self) -> Sequence[Answer]:
        """Return the answers on the only path that leads to a result.

        Raises:
            Forked: there are several.
        """
        self._forks = False
        answers: Sequence[Answer] = ()
        while True:
            run = self._run(answers, 0, 0)
            if isinstance(run, _Raising):
                raise run.checks[-1].to_raise(self.name)
            if isinstance(run, _Leaf):
                return answers
            sides = self._sides(answers, run.question, 0)
            if not isinstance(sides, Answer):
                raise Forked
            answers = [*answers, sides]

    def _explored(self, answers: Sequence[Answer], depth: int) -> _Fork | _Leaf | _Raising:
        """Return the tree of the paths that begin with ``answers``."""
        known = len(answers)
        while True:
            run = self._run(answers, known, depth)
            if not isinstance(run, _Stopped):
                return run
            sides = self._sides(answers, run.question, depth)
            if isinstance(sides, Answer):
                answers = [*answers, sides]
            elif run.question.is_of_batch:  # each example has its own answer
                run_on_path(Path(answers, refuse=lambda: None), self.run, *self.leaves)
            elif not self._forks:
                raise Forked
            else:
                self._paths += 1
                return _Fork(run.closed, *sides, run.checks)

    def _sides(
        self, answers: Sequence[Answer], asked: _Question, depth: int
    ) -> tuple[_Fork | _Leaf, _Fork | _Leaf] | Answer:
        """Return the paths for both answers to a question, or the only answer that does not lead to an error."""
        yes = self._explored([*answers, Answer(True, asked.mark)], depth + 1)
        if isinstance(yes, _Raising):
            return Answer(False, asked.mark, yes)
        no = self._explored([*answers, Answer(False, asked.mark)], depth + 1)
        if isinstance(no, _Raising):
            return Answer(True, asked.mark, no)
        return yes, no

    def _run(self, answers: Sequence[Answer], known: int, depth: int) -> _Leaf | _Raising | _Stopped:
        """Run the function on the path of ``answers``; checks for the first ``known`` ones are made elsewhere."""
        is_last = depth >= _MOST_BRANCHES or self._paths >= _MOST_PATHS
        path = Path(answers, known, self._refuse if is_last else None)
        ending: list[Any] = []

        def arrays(*values: Any) -> list[Any]:
            try:
                out = run_on_path(path, self.run, *values)
                ending.append(out.func.inner if type(out.func) is Checked else out.func)
                return list(out.args)
            except _Question as question:
                ending.append(question)
                results = [question.condition]
            except Exception as error:
                ending.append(_check_of(error))
                results = []
            made = path.made_checks(self.jax)
            return results if made is None else [*results, made.failed]

        closed = self.jax.make_jaxpr(arrays)(*self.leaves)
        ((end,), checks) = ending, [check for _, check in path.checks]
        if isinstance(end, _Question):
            return _Stopped(closed, end, checks)
        if isinstance(end, FailedCheck):
            return _Raising([*checks, end], closed if checks else None)
        return _Leaf(closed, end, closed.out_avals[: len(closed.out_avals) - bool(checks)], checks)

    def _refuse(self) -> None:
        places = f" in more than {_MOST_BRANCHES} places" if self._paths < _MOST_PATHS else f" on {_MOST_PATHS} paths"
        raise staging_error("jit", self.name, places=places) from None

    def _selected(self, tree: _Fork | _Leaf, dtypes: list[tuple[Any, bool]], leaves: Sequence[Any]) -> list[Any]:
        """Return the results of the path that is taken, and the conditions of all checks as one array."""
        jnp = self.jax.numpy
        found = evaluated(tree.closed, leaves)
        if isinstance(tree, _Leaf):
            results = [
                x if is_weak == aval.weak_type and dtype == aval.dtype else jnp.asarray(x, dtype)
                for x, aval, (dtype, is_weak) in zip(found, tree.avals, dtypes, strict=False)
            ]
            return [*results, *found[len(dtypes) :]]

        def side(taken: _Fork | _Leaf) -> Callable[..., list[Any]]:
            def run(*values: Any) -> list[Any]:
                made = self._selected(taken, dtypes, values)
                failed = [
                    made[-1] if one is taken else jnp.zeros(len(one.checks), bool)
                    for one in (tree.yes, tree.no)
                    if one.checks
                ]
                return [*made[: len(dtypes)], *([jnp.concatenate(failed)] if failed else [])]

            return run

        made = self.jax.lax.cond(found[0].reshape(()), side(tree.yes), side(tree.no), *leaves)
        failed = [*found[1:], *made[len(dtypes) :]]
        return [*made[: len(dtypes)], *([jnp.concatenate(failed)] if failed else [])]

    def _dtypes(self, tree: _Fork | _Leaf) -> list[tuple[Any, bool]]:
        """Return the dtypes of the results, each with a flag for a weak one.

        Raises:
            StagingError: two paths return other containers or shapes.
        """
        first, *others = list(_leaves_of(tree))
        dtypes = [(aval.dtype, aval.weak_type) for aval in first.avals]
        for leaf in others:
            shapes = [[aval.shape for aval in x.avals] for x in (first, leaf)]
            if shapes[0] != shapes[1] or not _mean_the_same(first.static_part, leaf.static_part):
                raise StagingError(
                    f"jit: {self.name} must return the same containers and shapes on all its paths, got "
                    f"{_described(first)} and {_described(leaf)}. Let each path return arrays of the same shape."
                )
            pairs = zip(dtypes, leaf.avals, strict=True)
            dtypes = [_promoted(self.jax.numpy, dtype, (aval.dtype, aval.weak_type)) for dtype, aval in pairs]
        return dtypes


def _leaves_of(tree: _Fork | _Leaf) -> Iterator[_Leaf]:
    if isinstance(tree, _Leaf):
        yield tree
    else:
        yield from _leaves_of(tree.yes)
        yield from _leaves_of(tree.no)


def _promoted(jnp: Any, x: tuple[Any, bool], y: tuple[Any, bool]) -> tuple[Any, bool]:
    """Return the common dtype for two, each with a flag: a weak one is promoted, like Python's numbers."""
    if x[0] == y[0]:
        return x[0], x[1] and y[1]
    if x[1] is y[1]:
        return jnp.promote_types(x[0], y[0]), x[1]
    return jnp.result_type(*[_WEAK.get(dtype.kind, dtype) if weak else dtype for dtype, weak in (x, y)]), False


_WEAK = {"i": 0, "f": 0.0, "c": 0j}


def _mean_the_same(x: Any, y: Any) -> bool:
    """Whether two static parts are equal."""
    if not isinstance(x, Static):
        return bool(x == y)
    return type(x) is type(y) and all(_mean_the_same(getattr(x, f.name), getattr(y, f.name)) for f in fields(x))


def _described(leaf: _Leaf) -> str:
    return ", ".join(f"{aval.dtype}{list(aval.shape)}" for aval in leaf.avals) or "nothing"
