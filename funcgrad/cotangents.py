"""Cotangents that wait to be put together: parts of an array, factors of a product.

Reading ``x[i]`` n times gives n small cotangents of parts instead of n arrays of the size of ``x``; products with a
matrix that many share are multiplied at once. They wait until the backward pass comes to the record they belong to.
"""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["CotangentAccumulator", "SparseCotangent", "Unfinished", "is_sparse"]


class Unfinished:
    """A cotangent that is not one array, or one number."""

    __slots__ = ()

    def materialize(self) -> Any:
        """The cotangent as an array."""
        raise NotImplementedError


class SparseCotangent(tuple[Any, ...], Unfinished):
    """A cotangent that is not written out. Subclasses say what its entries are, and how several make one array."""

    __slots__ = ()

    #: So many may wait for one record; where there are more, they are put together.
    most = sys.maxsize

    @staticmethod
    def put_together(entries: list[Any]) -> Any:
        """The sum of sparse cotangents of this class, before which a whole one may stand."""
        raise NotImplementedError

    def materialize(self) -> Any:
        """The cotangent as an array."""
        return self.put_together([self])


class CotangentAccumulator(Unfinished):
    """What has been gathered of a cotangent, in order: whole ones are one sum, which stands first.

    Args:
        old: what came first, whole or sparse.
        new: what came next; one of the two is sparse.
    """

    __slots__ = ("entries", "kind", "most")

    def __init__(self, old: Any, new: Any) -> None:
        first = old if issubclass(type(old), SparseCotangent) else new
        self.kind: type[SparseCotangent] = type(first)  # of most of them
        self.most: int = first.most
        self.entries = [old, new] if first is new or issubclass(type(new), SparseCotangent) else [new, old]

    def add(self, ct: Any) -> bool:
        """Add a cotangent, None for zero; False for a whole one beside another: they are to be summed first."""
        entries = self.entries
        if type(ct) is self.kind or issubclass(type(ct), SparseCotangent):
            entries.append(ct)
            if len(entries) > self.most:
                self.entries = [self.materialize()]
        elif ct is None:
            pass
        elif issubclass(type(entries[0]), SparseCotangent):
            entries.insert(0, ct)
        else:
            return False
        return True

    def materialize(self) -> Any:
        """The cotangent as an array."""
        entries = self.entries
        kind = type(entries[0])
        if issubclass(kind, SparseCotangent) and len(set(map(type, entries))) == 1:  # the commonest
            self.entries = []
            return kind.put_together(entries)
        kinds = sorted({type(entry) for entry in entries if is_sparse(entry)}, key=_most)
        for kind in kinds[:-1]:  # an array may be read and multiplied, say
            others = [entry for entry in entries if is_sparse(entry) and type(entry) is not kind]
            mine = [entry for entry in entries if not is_sparse(entry) or type(entry) is kind]
            entries = [kind.put_together(mine), *others]
        if entries is self.entries:
            entries, self.entries = entries, []
        return kinds[-1].put_together(entries) if kinds else entries[0]


def _most(kind: type[SparseCotangent]) -> int:
    return kind.most


def is_sparse(ct: Any) -> bool:
    """Whether ``ct`` is a sparse cotangent; ``isinstance`` would ask a traced value for the class it stands for."""
    return issubclass(type(ct), SparseCotangent)
