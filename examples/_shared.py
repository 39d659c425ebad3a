"""Helpers of several examples: a quick mode for tests, a progress bar, pictures."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import matplotlib.pyplot as plt
from rich.progress import track

#: Whether an example does only a little of everything, set by FUNCGRAD_QUICK=1.
QUICK = bool(os.environ.get("FUNCGRAD_QUICK"))
T = TypeVar("T")


def progress(items: Iterable[T], text: str) -> Iterator[T]:
    """Yield the items, with a bar that shows the progress and the remaining time."""
    yield from track(list(items), description=text, transient=True)


def save(figure: Any, name: str) -> None:
    """Write a picture to ``out/``, and print its path."""
    path = Path("out") / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)
    print(f"picture: {path}")
