"""Functions that branch on values, compiled: each path that Python takes becomes a branch of the program.

While JAX compiles, a truth value is not known. The function runs until Python asks for one. Then it runs twice from the
start, once with the answer True and once with False, up to the next question, and so on. The paths form a tree. The
program runs one of them: at each question ``jax.lax.cond`` selects a side. Derivatives are those of the path that is
taken, as without compiling. A path that raises an error becomes a check, see ``checks``.

The function of a loop or branch that JAX compiles is followed on its own: its paths become branches of the body. A path
that raises an error makes a condition that leaves the body, and the function around asks whether it is true, where the
loop was called. A function in a ``vmap`` that takes several paths is such a body too: it runs for one example.

A run is identified by its answers. They belong to questions in an order, so each answer keeps a mark of what the run
had computed when it asked. If a run asks otherwise, because funcgrad has learned meanwhile how to run a function, all
begins anew.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import get_ident
from typing import Any, NamedTuple, NoReturn

import funcgrad.numpy as fnp
from funcgrad import backend
from funcgrad.batching import BatchTrace
from funcgrad.core import Primitive, Tracer, plain_value
from funcgrad.errors import FuncgradError, InputError, StagingError
from funcgrad.interop.jax.checks import FailedCheck, failed_check
from funcgrad.interop.jax.jaxprs import evaluated
from funcgrad.interop.jax.path_trees import Fork, Leaf, Raising, program_of
from funcgrad.interop.jax.programs import Checked, Checks, Static, split_checks, with_checks
from funcgrad.interop.jax.unknown import staging_error
from funcgrad.numpy.plain_values.concretization import forget_refusal
from funcgrad.numpy_code.refusals import LostWrite, is_conversion
from funcgrad.optional import loaded_jax
from funcgrad.shared_state import open_path, pending_refusals
from funcgrad.transforms.control.examples import run_for_one
from funcgrad.transforms.lifting import innermost_body

#: Largest number of branches that one path may take, and of paths.
_MOST_BRANCHES, _MOST_PATHS = 12, 64
#: Number of runs that look whether the answer False leads to errors only, before the answer True is followed.
_FIRST_RUNS = 4
#: How often all may begin anew.
_MOST_BEGINNINGS = 30


class _Question(BaseException):
    """Signal that a run asks for a truth value that no answer is given for.

    ``_Question`` is not an ``Exception``, so the function does not catch it.

    Args:
        condition: the truth value, of JAX; those of all examples, if it is asked for in a ``vmap``.
        mark: what the run had computed.
        of_map: the key of the ``vmap`` inside of which it is asked for; None if there is none.
    """

    def __init__(self, condition: Any, mark: int, of_map: Any) -> None:
        self.condition, self.mark, self.of_map = condition, mark, of_map
        self.is_of_batch = condition.size != 1


class _OtherQuestion(BaseException):
    """Signal that a run asks for another truth value than the run before did at this place."""


class Forked(BaseException):
    """Signal that a function has more than one path."""


class _Unfinished(BaseException):
    """Signal that a search takes too many runs."""


class Answer(NamedTuple):
    """Answer to a question of a run.

    Attributes:
        value: the answer.
        mark: what the run had computed when it asked.
        otherwise: the errors to which the other answer leads; None if it leads to results.
    """

    value: bool
    mark: int
    otherwise: Raising | None = None


class Subject:
    """A function whose paths are followed, and what its runs have shown.

    Other runs need not find that out again: a function in a loop runs again whenever the function around it does.

    Args:
        call: the public call that compiles the function, for messages.
        name: what to call the function.
        mapped_by_jax: keys of calls of ``vmap`` inside whose functions branch on the example: they run for one
            example, and JAX maps the result.
    """

    __slots__ = ("_answers", "_bodies", "_forks", "_raising", "call", "mapped_by_jax", "name")

    def __init__(self, call: str, name: str, mapped_by_jax: set[Any] | None = None) -> None:
        self.call, self.name = call, name
        self.mapped_by_jax: set[Any] = set() if mapped_by_jax is None else mapped_by_jax
        self._answers: dict[tuple[bool, ...], Answer] = {}
        self._forks: set[tuple[bool, ...]] = set()
        self._raising: dict[tuple[bool, ...], int] = {}
        self._bodies: dict[Any, Subject] = {}

    def anew(self) -> Subject:
        """Return the same function for other runs, of which nothing is known."""
        return Subject(self.call, self.name, self.mapped_by_jax)

    def forget(self) -> None:
        """Forget what is known about the paths."""
        self._answers.clear()
        self._forks.clear()
        self._raising.clear()
        self._bodies.clear()

    def note(self, answers: Sequence[Answer], sides: Any) -> None:
        """Note to which paths the question after ``answers`` leads, or its only answer."""
        if not isinstance(sides, Answer):
            self._forks.add(_values(answers))
        elif sides.otherwise is not None and sides.otherwise.closed is None:
            self._answers[_values(answers)] = sides
        else:  # it holds values of one run
            self._raising[_values(answers)] = int(sides.value)

    def continued(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        """Return ``answers``, followed by those to the next questions, as far as there is only one."""
        found = [*answers]
        while (answer := self._answers.get(_values(found))) is not None:
            found.append(answer)
        return found

    def raising_side(self, answers: Sequence[Answer]) -> int | None:
        """Return which side of the question after ``answers`` leads to errors only: 0 for True, 1 for False."""
        return self._raising.get(_values(answers))

    def is_fork(self, answers: Sequence[Answer]) -> bool:
        """Whether both answers to the question after ``answers`` lead to results."""
        return _values(answers) in self._forks

    def of_body(self, name: str, key: Any) -> Subject:
        """Return a function of a loop or branch in this one, of which ``key`` says which one it is."""
        return self._bodies.setdefault(key, Subject(self.call, name, self.mapped_by_jax))


def _values(answers: Sequence[Answer]) -> tuple[bool, ...]:
    return tuple([answer.value for answer in answers])


class Path:
    """One run of a function, with answers.

    Args:
        subject: the function.
        answers: the answers to the first questions.
        known: number of answers whose checks are made elsewhere.
        refuse: raises an error at the first question without an answer; by default the run stops there.

    Attributes:
        checks: conditions and the checks that fail if they are true.
        leaves: the values with which the function runs.
        prepare: prepares each operation, see ``transforms.lifting``.
        raised: checks with errors of the bodies of loops and branches, which the run may raise.
        stopped: a truth value of JAX, whether the path around is left, see ``is_left``; or None.
    """

    __slots__ = (
        "_answers", "_asked", "_calls", "_computed", "_elsewhere", "_given_maps", "_known", "_mapped", "_maps",
        "_refuse", "_subject", "checks", "leaves", "prepare", "raised", "stopped",
    )  # fmt: skip

    def __init__(
        self,
        subject: Subject,
        answers: Sequence[Answer] = (),
        known: int = 0,
        refuse: Callable[[], None] | None = None,
    ) -> None:
        self._subject, self._answers, self._known, self._refuse = subject, answers, known, refuse
        self._asked = self._computed = self._calls = 0
        self._given_maps: list[bool] | None = None
        self._maps: list[Any] = []  # keys of those that run
        self._mapped: list[bool] = []  # for each call of ``vmap``, whether JAX maps the function
        self._elsewhere: list[Any] = []
        self.checks: list[tuple[Any, FailedCheck]] = []
        self.leaves: Sequence[Any] = ()
        self.prepare: Any = None
        self.raised: list[FailedCheck] = []
        self.stopped: Any = None

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
        asked, computed, mapped = self._asked, self._computed, len(self._mapped)
        checks, elsewhere = len(self.checks), len(self._elsewhere)

        def rewind() -> None:
            self._asked, self._computed = asked, computed
            del self.checks[checks:], self._elsewhere[elsewhere:], self._mapped[mapped:]

        return rewind

    def answers_from_now(self) -> Callable[[], tuple[Sequence[Answer], list[bool]]]:
        """Return a function that returns the answers that the run has got meanwhile, and which maps JAX computes."""
        asked, mapped = self._asked, len(self._mapped)
        return lambda: (self._answers[asked : self._asked], self._mapped[mapped:])

    def repeating(self, found: tuple[Sequence[Answer], list[bool]]) -> Path:
        """Return the path on which a part of the run is done again, for which ``answers_from_now`` found this."""
        given = [answer._replace(mark=0) for answer in found[0]]
        path = Path(self._subject.anew(), given, len(given), refuse=lambda: None)
        path.leaves, path.stopped, path.prepare = self.leaves, self.is_left(), self.prepare
        path._given_maps = found[1]
        return path

    def watch(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> None:
        """Note an operation."""
        self._computed = hash((self._computed, primitive.name))

    def mapping(self, trace: BatchTrace, fun: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``fun``, a function of one example, for a call in the ``vmap`` that runs as ``trace``."""
        number = len(self._mapped)
        key = self._subject.name, self._computed, number
        by_jax = key in self._subject.mapped_by_jax if self._given_maps is None else self._given_maps[number]
        self._mapped.append(by_jax)

        def run(*args: Any, **kwargs: Any) -> Any:
            if by_jax:
                return run_for_one(trace, fun, args, kwargs)
            self._maps.append(key)
            try:
                return fun(*args, **kwargs)
            finally:
                self._maps.pop()

        return run

    def answer(self, x: Tracer) -> bool | None:
        """Return the answer for the truth value of ``x``, which is not known or differs between examples of a ``vmap``.

        None stands for no answer.
        """
        body = innermost_body.get()
        if body is not None and body.is_outer(x):
            x = fnp.not_equal(x, 0)  # an operation gets the value that represents ``x`` in the body
        value = plain_value(x)
        if not backend.is_jax_tracer(value):
            if not value.size:
                return None
            value = loaded_jax().numpy.asarray(value)
        condition = value if value.dtype == bool else value != 0
        if self._asked == len(self._answers):
            if self._refuse is not None:
                self._refuse()
                return None
            # errors of the function must not seem to come of it
            raise _Question(condition, self._computed, self._maps[-1] if self._maps else None) from None
        found = self._answers[self._asked]
        if found.mark != self._computed:
            raise _OtherQuestion from None
        elsewhere = (~condition if found.value else condition).any()
        self._elsewhere.append(elsewhere)
        if found.otherwise is not None and self._asked >= self._known:
            self._note_errors(elsewhere, found.otherwise)
        self._asked += 1
        return found.value

    def note_checks(self, checks: Sequence[FailedCheck], failed: Any) -> None:
        """Note checks of a compiled function that the run has called, and their conditions."""
        self.checks += [(failed[i], check) for i, check in enumerate(checks)]
        self._elsewhere.append(failed.any())

    def is_left(self) -> Any:
        """Return whether the program takes another path, so that this one computes with values that it is not made for.

        That is so after an error, and in a batch for the examples that take the other side of a branch. The result is a
        truth value of JAX; None stands for a path that is always taken.
        """
        found = [*self._elsewhere, *([] if self.stopped is None else [self.stopped])]
        return functools.reduce(operator.or_, found) if found else None

    def begin_call(self) -> int:
        """Return the number of a call of a loop or branch on the path."""
        self._calls += 1
        return self._calls

    def run_body(
        self,
        name: str,
        number: Any,
        run: Callable[..., tuple[Any, Any]],
        leaves: Sequence[Any],
        before: Sequence[Any],
    ) -> tuple[Any, Sequence[Any], Checks | None]:
        """Run the function of a loop or branch, on paths of its own.

        Args:
            name: what to call the function in messages.
            number: the number of the call, and that of the function in it.
            run: returns the structure and the leaves of the result, which are values of JAX.
            leaves: values of JAX.
            before: conditions of errors of the step before.

        Returns:
            The structure and the leaves of the result, and the checks that the function makes.
        """
        jax, stopped = loaded_jax(), self.is_left()
        for failed in before:
            stopped = failed.any() if stopped is None else stopped | failed.any()

        def run_on_jax(*values: Any) -> Any:
            path = open_path.get()
            path.leaves, path.stopped, path.prepare = values, stopped, self.prepare
            spec, results = run(*values)
            return with_checks(jax, Static(spec), results, path.made_checks(jax))

        key = _values(self._answers[: self._asked]), self._computed, number
        out = follow_paths(jax, self._subject.of_body(name, key), run_on_jax, leaves, self)
        static, results, checks = split_checks(out.func, list(out.args))
        return static.inner, results, checks

    def result_if_known(self, fun: Callable[..., Any], args: tuple[Any, ...], unknown: Any) -> Any:
        """Return ``fun(*args)``, or ``unknown`` if that needs a truth value that is not known."""
        path = Path(self._subject.anew())
        path.stopped, path.prepare = self.is_left(), self.prepare
        try:
            found = run_on_path(path, fun, *args)
        except _Question:
            return unknown
        self.checks += path.checks
        self._elsewhere += path._elsewhere
        return found

    def raise_first(self, checks: Sequence[FailedCheck], failed: Any) -> None:
        """Raise the error of the first check that has failed, if one has.

        Args:
            checks: the checks of the functions of a loop or branch.
            failed: their conditions, an array.
        """
        for i, check in enumerate(checks):
            if failed[i]:
                raise self.error_of(check)

    def error_of(self, check: FailedCheck) -> Exception:
        """Return the error of a check of the body of a loop or branch, to be raised by this run."""
        self.raised.append(check.copied())
        return self.raised[-1].error

    def error_to_raise(self, error: Exception) -> Exception:
        """Return an error that the body of a loop or branch has raised, as this run may raise it later.

        Raises:
            Exception: the error, if it says that the function cannot be compiled.
        """
        return self.error_of(_check_of(error, self))

    def _note_errors(self, leads_there: Any, raising: Raising) -> None:
        *others, last = raising.checks
        if others:
            failed = evaluated(raising.closed, self.leaves)[0]
            self.checks += [(leads_there & failed[i], check) for i, check in enumerate(others)]
        self.checks.append((leads_there, last))


def follow_paths(
    jax: Any, subject: Subject, run: Callable[..., Any], leaves: Sequence[Any], around: Path | None = None
) -> Any:
    """Return ``run(*leaves)``, what a program returns, of a function that may branch on values.

    Args:
        jax: the JAX module, while it traces.
        subject: the function.
        run: runs the function on values of JAX, on the open path.
        leaves: values of JAX.
        around: the run of the function that calls this one in a loop or branch; None if there is none.
    """

    def make() -> Any:
        answers = subject.continued(())
        if not subject.is_fork(answers):
            with suppress(_Question):
                return run_on_path(Path(subject, answers), run, *leaves)
        return _Follower(jax, subject, run, leaves, around).program()

    return _begin_anew(subject, make)


def on_only_path(
    jax: Any, subject: Subject, run: Callable[..., Any], leaves: Sequence[Any], work: Callable[[], Any]
) -> Any:
    """Return ``work()``, which runs the function of ``follow_paths`` on its only path that leads to a result.

    Args:
        work: runs the function on the open path.

    Raises:
        Forked: there are several paths.
    """

    def make() -> Any:
        of_work = subject.anew()  # it asks after other operations
        with suppress(_Question):
            return run_on_path(Path(of_work), work)
        answers = _Follower(jax, subject, run, leaves).only_path()
        with suppress(_Question):
            return run_on_path(Path(of_work, answers), work)
        raise _OtherQuestion

    return _begin_anew(subject, make)


def _begin_anew(subject: Subject, make: Callable[[], Any]) -> Any:
    count = 0
    while count < _MOST_BEGINNINGS:
        maps = len(subject.mapped_by_jax)
        with suppress(_OtherQuestion):
            return make()
        subject.forget()
        count += len(subject.mapped_by_jax) == maps
    raise StagingError(
        f"{subject.call}: {subject.name} must branch in the same way whenever it is called with the same values, got "
        "other branches in each call. Let it depend on its arguments only."
    )


def run_on_path(path: Path, run: Callable[..., Any], *leaves: Any) -> Any:
    """Return ``run(*leaves)`` on a path."""
    around = open_path.set(path)
    try:
        return run(*leaves)
    finally:
        open_path.reset(around)


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


def _check_of(error: Exception, path: Path) -> FailedCheck:
    """Return the check for an error that the run raises; raise it if the function cannot be compiled."""
    is_refusal = isinstance(error, FuncgradError) and type(error) is not InputError
    if is_refusal or type(error).__module__.startswith("jax"):
        raise error
    found = failed_check(error, next((check.place for check in path.raised if check.error is error), None))
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
        subject: the function.
        run: runs the function on values of JAX.
        leaves: values of JAX.
        around: the run of the function that calls this one in a loop or branch; None if there is none.
    """

    def __init__(
        self, jax: Any, subject: Subject, run: Callable[..., Any], leaves: Sequence[Any], around: Path | None = None
    ) -> None:
        self.jax, self.subject, self.run, self.leaves, self.around = jax, subject, run, leaves, around
        self._paths = 1
        self._forks = True
        self._runs_left = math.inf

    def program(self) -> Any:
        """Return what the program returns."""
        tree = self._explored((), 0)
        if isinstance(tree, Raising):
            check = tree.checks[-1]
            raise check.to_raise(self.subject.name) if self.around is None else self.around.error_of(check)
        return program_of(self.jax, self.subject.call, self.subject.name, tree, self.leaves)

    def only_path(self) -> Sequence[Answer]:
        """Return the answers on the only path that leads to a result.

        Raises:
            Forked: there are several.
        """
        self._forks = False
        answers: Sequence[Answer] = ()
        while True:
            run = self._run(answers, 0)
            if isinstance(run, Raising):
                raise run.checks[-1].to_raise(self.subject.name)
            if isinstance(run, Leaf):
                return answers
            sides = self._sides(answers, run.question, 0)
            if not isinstance(sides, Answer):
                raise Forked
            answers = [*answers, sides]

    def _explored(
        self, answers: Sequence[Answer], depth: int, run: Leaf | Raising | _Stopped | None = None
    ) -> Fork | Leaf | Raising:
        """Return the tree of the paths that begin with ``answers``, which lead to ``run``."""
        known = len(answers)
        if run is None:
            answers = self.subject.continued(answers)
            run = self._run(answers, known)
        while True:
            if not isinstance(run, _Stopped):
                return run
            sides = self._sides(answers, run.question, depth)
            self.subject.note(answers, sides)
            if isinstance(sides, Answer):
                answers = self.subject.continued([*answers, sides])
                run = self._run(answers, known)
            elif run.question.is_of_batch:  # each example has its own answer
                key = run.question.of_map
                if key is not None and key not in self.subject.mapped_by_jax:
                    self.subject.mapped_by_jax.add(key)
                    raise _OtherQuestion
                run_on_path(Path(self.subject, answers, refuse=lambda: None), self.run, *self.leaves)
            elif not self._forks:
                raise Forked
            else:
                self._paths += 1
                return Fork(run.closed, *sides, run.checks)

    def _sides(
        self, answers: Sequence[Answer], asked: _Question, depth: int
    ) -> tuple[Fork | Leaf, Fork | Leaf] | Answer:
        """Return the paths for both answers to a question, or the only answer that does not lead to an error."""
        sides = [[*answers, Answer(value, asked.mark)] for value in (True, False)]
        paths = self._paths

        def only_other(index: int, tree: Raising) -> Answer:
            self._paths = paths
            return Answer(not sides[index][-1].value, asked.mark, tree)

        known = self.subject.raising_side(answers)
        if known is not None and isinstance(tree := self._explored(sides[known], depth + 1), Raising):
            return only_other(known, tree)
        found: list[Any] = [None, None]
        if not self.subject.is_fork(answers):
            for i in (0, 1):  # an error mostly follows at once
                found[i] = run = self._run(sides[i], len(sides[i]))
                if isinstance(run, Raising):
                    return only_other(i, run)
            if isinstance(found[0], _Stopped):  # or soon, as in a function that raises it
                found[1] = tree = self._explored_soon(sides[1], depth + 1, found[1])
                if isinstance(tree, Raising):
                    return only_other(1, tree)
        if depth >= _MOST_BRANCHES or self._paths >= _MOST_PATHS:
            self._refuse(answers)
        for i in (0, 1):
            found[i] = tree = self._explored(sides[i], depth + 1, found[i])
            if isinstance(tree, Raising):
                return only_other(i, tree)
        return found[0], found[1]

    def _explored_soon(self, answers: Sequence[Answer], depth: int, run: Any) -> Any:
        """Return the tree of the paths that begin with ``answers``, or ``run`` if that takes too many runs."""
        around, paths = self._runs_left, self._paths
        self._runs_left = first = min(around, _FIRST_RUNS)
        try:
            return self._explored(answers, depth, run)
        except _Unfinished:
            self._paths = paths
            return run
        finally:
            self._runs_left += around - first

    def _run(self, answers: Sequence[Answer], known: int) -> Leaf | Raising | _Stopped:
        """Run the function on the path of ``answers``; checks for the first ``known`` ones are made elsewhere."""
        if not self._runs_left:
            raise _Unfinished
        self._runs_left -= 1
        path = Path(self.subject, answers, known)
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
                ending.append(_check_of(error, path))
                results = []
            made = path.made_checks(self.jax)
            return results if made is None else [*results, made.failed]

        around = pending_refusals.pop(get_ident(), None)  # of the function around a loop; it does not concern the run
        try:
            closed = self.jax.make_jaxpr(arrays)(*self.leaves)
        finally:
            if around is not None:
                pending_refusals[get_ident()] = around
        ((end,), checks) = ending, [check for _, check in path.checks]
        if isinstance(end, _Question):
            return _Stopped(closed, end, checks)
        if isinstance(end, FailedCheck):
            return Raising([*checks, end], closed if checks else None)
        return Leaf(closed, end, closed.out_avals[: len(closed.out_avals) - bool(checks)], checks)

    def _refuse(self, answers: Sequence[Answer]) -> NoReturn:
        """Raise the error for too many paths, at the question that follows ``answers``."""
        if self._runs_left < math.inf:
            raise _Unfinished
        places = f" in more than {_MOST_BRANCHES} places" if self._paths < _MOST_PATHS else f" on {_MOST_PATHS} paths"
        raised: list[StagingError] = []

        def refuse() -> None:
            raised.append(staging_error(self.subject.call, self.subject.name, places=places))
            raise raised[0] from None

        with suppress(Exception):  # the function may catch the error and go on, or raise another one
            run_on_path(Path(self.subject, answers, refuse=refuse), self.run, *self.leaves)
        raise raised[0] if raised else _OtherQuestion
