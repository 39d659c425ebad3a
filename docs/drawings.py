"""Write the drawings of docs/concepts.md and docs/profiling.md into docs/pictures: ``python docs/drawings.py``."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "pictures"
TEAL, AMBER, GREY, PAPER = "#00796b", "#c77700", "#607d8b", "#ffffff"


class Drawing:
    """Shapes and words on a grid of pixels, as SVG that reads on light and dark pages."""

    def __init__(self, width: int, height: int) -> None:
        self.size = width, height
        self.parts: list[str] = []

    def box(self, x: int, y: int, width: int, height: int, colour: str, words: str = "", below: str = "") -> None:
        """Add a rounded box with up to two lines in its middle."""
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{colour}" fill-opacity="0.12" '
            f'stroke="{colour}" stroke-width="1.6"/>'
        )
        middle = y + height // 2
        if words:
            self.words(x + width // 2, middle + (-4 if below else 5), words, bold=True)
        if below:
            self.words(x + width // 2, middle + 14, below, small=True)

    def words(
        self, x: int, y: int, text: str, *, bold: bool = False, small: bool = False, anchor: str = "middle"
    ) -> None:
        """Add a line of text."""
        weight = ' font-weight="600"' if bold else ""
        text = text.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(
            f'<text x="{x}" y="{y}" font-size="{12 if small else 14}" text-anchor="{anchor}"{weight}>{text}</text>'
        )

    def arrow(self, x1: int, y1: int, x2: int, y2: int, colour: str = GREY) -> None:
        """Add an arrow from one point to another."""
        self.parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="1.8" '
            'marker-end="url(#head)"/>'
        )

    def save(self, name: str, title: str) -> None:
        """Write the file."""
        width, height = self.size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'role="img" aria-label="{title}" font-family="Helvetica, Arial, sans-serif">\n<title>{title}</title>\n'
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            f'orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" fill="{GREY}"/></marker></defs>\n'
            f'<rect width="{width}" height="{height}" fill="{PAPER}" rx="10"/>\n'
        )
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / name).write_text(head + "\n".join(self.parts) + "\n</svg>\n", encoding="utf-8")


def levels() -> None:
    """Draw tracers around an array, one for each running transform."""
    d = Drawing(680, 250)
    d.box(20, 20, 380, 210, TEAL)
    d.words(36, 44, "tracer of level 2: grad inside", bold=True, anchor="start")
    d.box(50, 60, 320, 150, AMBER)
    d.words(66, 84, "tracer of level 1: vmap around it", bold=True, anchor="start")
    d.box(80, 105, 260, 80, GREY, "ndarray", "the numbers, of a whole batch")
    d.arrow(412, 50, 476, 50)
    d.words(486, 46, "records the operation,", small=True, anchor="start")
    d.words(486, 62, "unwraps, asks again", small=True, anchor="start")
    d.arrow(412, 110, 476, 110)
    d.words(486, 106, "lines up batch axes,", small=True, anchor="start")
    d.words(486, 122, "unwraps, asks again", small=True, anchor="start")
    d.arrow(412, 165, 476, 165)
    d.words(486, 161, "NumPy computes", small=True, anchor="start")
    d.save("levels.svg", "A value inside vmap(grad(f)): a tracer in a tracer around an array")


def tape() -> None:
    """Draw the records of sum(x * sin(x))."""
    d = Drawing(640, 250)
    d.box(20, 95, 110, 56, GREY, "0  x", "leaf")
    d.box(190, 30, 120, 56, TEAL, "1  sin", "saved: x")
    d.box(350, 95, 120, 56, TEAL, "2  multiply", "saved: x, sin x")
    d.box(510, 95, 110, 56, TEAL, "3  sum", "saved: shape")
    d.arrow(510, 123, 472, 123)
    d.arrow(350, 110, 312, 75)
    d.arrow(190, 70, 132, 108)
    d.arrow(350, 133, 132, 133)
    d.words(320, 190, "Arrows lead from a record to its parents. The backward pass goes 3, 2, 1, 0:")
    d.words(320, 212, "by falling number, so every record comes after all that used it.")
    d.save("tape.svg", "The tape of sum(x * sin(x)): four records that know their parents")


def kinds() -> None:
    """Draw what follows from the kind of an operation."""
    d = Drawing(640, 230)
    d.box(20, 80, 170, 70, AMBER, "one statement", "kind, kernel, a rule")
    names = (("value", "the kernel"), ("reverse mode", "the rule on cotangents"), ("forward mode", "and on tangents"))
    more = (("vmap", "the kernel on batches"), ("JAX", "its kernel, the same rule"))
    for i, (name, what) in enumerate((*names, *more)):
        y = 12 + 42 * i
        d.box(330, y, 290, 36, TEAL)
        d.words(346, y + 23, name, bold=True, anchor="start")
        d.words(606, y + 23, what, small=True, anchor="end")
        d.arrow(192, 115, 326, y + 18)
    d.save("kinds.svg", "From one statement follow value, both modes, batches and other array libraries")


def profile() -> None:
    """Draw the profile of the first example of docs/profiling.md on this machine, the quickest of several runs."""
    page = (Path(__file__).parent / "profiling.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0].replace("profile(model)", "profile(model, runs=100)")
    linecache.cache["model.py"] = len(code), None, code.splitlines(keepends=True), "model.py"
    names: dict[str, Any] = {"__name__": "model"}
    exec(compile(code, "model.py", "exec"), names)
    (FOLDER / "profile.svg").write_text(names["found"].svg(), encoding="utf-8")


if __name__ == "__main__":
    levels()
    tape()
    kinds()
    profile()
