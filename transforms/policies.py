"""Policies of ``checkpoint``, which decide from an operation, its parameters and its result whether to save it.

Example:
    >>> from funcgrad import checkpoint, checkpoint_policies
    >>> few = checkpoint_policies.dots_saveable & checkpoint_policies.save_smaller_than(1_000_000)
    >>> few
    dots_saveable & save_smaller_than(1000000)
    >>> checkpoint(lambda x: x, policy=few)(2.0)
    2.0
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from funcgrad.replay.memory import CHECKPOINT_NAME

__all__ = [
    "Policy", "Rule", "dots_saveable", "everything_saveable", "nothing_saveable", "save_any_names_but_these",
    "save_anything_except_these_names", "save_from_both_policies", "save_only_these_names", "save_smaller_than",
]  # fmt: skip

#: Function ``policy(operation, params, result)`` that returns whether to keep the result of the operation of that name.
Policy: TypeAlias = Callable[[str, dict[str, Any], Any], bool]
_DOTS = frozenset(("matmul", "einsum", "dot_general"))


@dataclass(frozen=True, repr=False)
class Rule:
    """Policy with operators: ``a & b`` saves what both save, ``a | b`` saves what either saves.

    Attributes:
        test: a module-level function ``test(operation, params, result, *given)``.
        given: the last arguments of ``test``.

    Example:
        >>> from funcgrad import checkpoint_policies as policies
        >>> policies.dots_saveable | policies.save_only_these_names("hidden")
        dots_saveable | save_only_these_names('hidden')
        >>> (policies.dots_saveable & policies.save_smaller_than(100))("matmul", {}, 1.0)
        True
    """

    test: Callable[..., bool]
    given: tuple[Any, ...] = ()

    def __call__(self, operation: str, params: dict[str, Any], result: Any) -> bool:
        """Return whether to keep ``result``."""
        return self.test(operation, params, result, *self.given)

    def __and__(self, other: Policy) -> Rule:
        return Rule(_both, (self, other))

    def __or__(self, other: Policy) -> Rule:
        return Rule(_either, (self, other))

    def __repr__(self) -> str:
        signs = {_both: " & ", _either: " | "}
        if self.test in signs:
            return signs[self.test].join(map(repr, self.given))
        name = self.test.__name__.removeprefix("_")
        return f"{name}({', '.join(map(repr, self.given))})" if self.given else name


def _both(operation: str, params: dict[str, Any], result: Any, one: Policy, other: Policy) -> bool:
    return one(operation, params, result) and other(operation, params, result)


def _either(operation: str, params: dict[str, Any], result: Any, one: Policy, other: Policy) -> bool:
    return one(operation, params, result) or other(operation, params, result)


def _nothing_saveable(operation: str, params: dict[str, Any], result: Any) -> bool:
    return False


def _everything_saveable(operation: str, params: dict[str, Any], result: Any) -> bool:
    return True


def _dots_saveable(operation: str, params: dict[str, Any], result: Any) -> bool:
    return operation in _DOTS


def _save_only_these_names(operation: str, params: dict[str, Any], result: Any, *names: str) -> bool:
    return operation == CHECKPOINT_NAME and params["name"] in names


def _save_any_names_but_these(operation: str, params: dict[str, Any], result: Any, *names: str) -> bool:
    return operation == CHECKPOINT_NAME and params["name"] not in names


def _save_anything_except_these_names(operation: str, params: dict[str, Any], result: Any, *names: str) -> bool:
    return operation != CHECKPOINT_NAME or params["name"] not in names


def _save_smaller_than(operation: str, params: dict[str, Any], result: Any, nbytes: int) -> bool:
    parts = result if isinstance(result, tuple) else (result,)
    return sum(getattr(part, "nbytes", 8) for part in parts) < nbytes


#: Policy that saves nothing but the arguments: the default of ``checkpoint``.
nothing_saveable = Rule(_nothing_saveable)
#: Policy that saves everything, as without ``checkpoint``.
everything_saveable = Rule(_everything_saveable)
#: Policy that saves the results of ``matmul``, ``einsum``, ``tensordot`` and all other products of matrices.
dots_saveable = Rule(_dots_saveable)


def save_only_these_names(*names: str) -> Rule:
    """Save the values that passed through ``checkpoint_name`` with one of these names.

    Example:
        >>> from funcgrad import checkpoint_policies
        >>> checkpoint_policies.save_only_these_names("hidden")
        save_only_these_names('hidden')
    """
    return Rule(_save_only_these_names, names)


def save_any_names_but_these(*names: str) -> Rule:
    """Save the values that passed through ``checkpoint_name`` with any name except these.

    Example:
        >>> from funcgrad import checkpoint_policies
        >>> checkpoint_policies.save_any_names_but_these("large")
        save_any_names_but_these('large')
    """
    return Rule(_save_any_names_but_these, names)


def save_anything_except_these_names(*names: str) -> Rule:
    """Save everything except values that passed through ``checkpoint_name`` with one of these names.

    Example:
        >>> from funcgrad import checkpoint_policies
        >>> checkpoint_policies.save_anything_except_these_names("large")
        save_anything_except_these_names('large')
    """
    return Rule(_save_anything_except_these_names, names)


def save_from_both_policies(one: Policy, other: Policy) -> Rule:
    """Save the results that either policy saves: ``one | other``.

    Example:
        >>> from funcgrad import checkpoint_policies as policies
        >>> policies.save_from_both_policies(policies.dots_saveable, policies.save_smaller_than(100))
        dots_saveable | save_smaller_than(100)
    """
    return Rule(_either, (one, other))


def save_smaller_than(nbytes: int) -> Rule:
    """Save the results that take less than ``nbytes`` bytes.

    Example:
        >>> from funcgrad import checkpoint_policies
        >>> checkpoint_policies.save_smaller_than(1_000_000)
        save_smaller_than(1000000)
    """
    return Rule(_save_smaller_than, (nbytes,))
