"""Where time goes, as a flame-style picture: blocks inside blocks, as wide as what they took is long. SVG, as text."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["Block", "flames"]

_WIDTH, _MARGIN, _BAR, _GAP = 960, 16, 26, 14
_LETTER = 6.3  # about the width of one, of this size and font
_NARROWEST = 0.4
_INK, _PAPER = "#263238", "#ffffff"


@dataclass
class Block:
    """A part of a flame.

    Attributes:
        name: what stands on it.
        size: its width, in whatever is measured; the parts take no more.
        says: what it says where one points at it.
        colour: of it, and of its parts unless they have their own.
        parts: what it is made of, by key; they stand below it, in this order.
    """

    name: str
    size: float
    says: str = ""
    colour: str = ""
    parts: dict[object, Block] = field(default_factory=dict)

    def depth(self) -> int:
        """How many levels it has."""
        return 1 + max((part.depth() for part in self.parts.values()), default=0)


def flames(title: str, roots: Sequence[Block]) -> str:
    """Flames below each other, on one scale.

    Example:
        >>> picture = flames("a run", [Block("all", 3.0, colour="#00796b", parts={0: Block("a part", 1.0)})])
        >>> picture.count("<rect"), "a part" in picture
        (3, True)
    """
    largest = max((root.size for root in roots), default=0.0)
    shapes: list[str] = []
    top = _MARGIN + 24
    for root in roots:
        if largest > 0:
            _draw(shapes, root, _MARGIN, top, (_WIDTH - 2 * _MARGIN) / largest, root.colour, root.size)
        top += root.depth() * _BAR + _GAP
    height = top - _GAP + _MARGIN
    said = html.escape(title)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
            f'height="{height}" role="img" aria-label="{said}" font-family="Helvetica, Arial, sans-serif" '
            f'font-size="12" fill="{_INK}">',
            f"<title>{said}</title>",
            f'<rect width="{_WIDTH}" height="{height}" fill="{_PAPER}" rx="10"/>',
            f'<text x="{_MARGIN}" y="{_MARGIN + 9}" font-size="13" font-weight="600">{said}</text>',
            *shapes,
            "</svg>\n",
        ]
    )


def _draw(shapes: list[str], block: Block, x: float, y: float, scale: float, colour: str, whole: float) -> None:
    """Add a block and its parts, the wider the stronger in colour."""
    width = block.size * scale
    if width < _NARROWEST:
        return
    colour = block.colour or colour
    strength = 0.12 + 0.4 * min(block.size / whole, 1.0) if whole else 0.12
    name = _fitted(block.name, width - 8)
    label = f'<text x="{x + 4:.1f}" y="{y + 17}">{html.escape(name)}</text>' if name else ""
    shapes.append(
        f'<g><title>{html.escape(block.says or block.name)}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" '
        f'height="{_BAR - 2}" rx="3" fill="{colour}" fill-opacity="{strength:.2f}" stroke="{colour}" '
        f'stroke-width="0.8"/>{label}</g>'
    )
    for part in block.parts.values():
        _draw(shapes, part, x, y + _BAR, scale, colour, whole)
        x += part.size * scale


def _fitted(text: str, width: float) -> str:
    """As much of a text as there is room for."""
    letters = int(width / _LETTER)
    if len(text) <= letters:
        return text
    return text[: letters - 1] + "…" if letters >= 4 else ""
