"""What several examples use: a quick mode for tests, a progress bar, pictures."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import matplotlib.pyplot as plt
from rich.progress import track

#: With FUNCGRAD_QUICK=1 an example does little of everything.
QUICK = bool(os.environ.get("FUNCGRAD_QUICK"))
T = TypeVar("T")


def progress(items: Iterable[T], text: str) -> Iterator[T]:
    """The items, with a bar that shows how far it is and how long it will take."""
    yield from track(list(items), description=text, transient=True)


def save(figure: Any, name: str) -> None:
    """Write a picture to ``out/``, and say so."""
    path = Path("out") / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)
    print(f"picture: {path}")
