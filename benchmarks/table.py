"""Tables on the terminal, and the list of figures that miss their bars."""

from __future__ import annotations

from typing import Any

__all__ = ["judged", "memory_ratio", "missed", "print_claim", "print_claims_head", "print_head", "print_program"]

#: Libraries with their own columns; other libraries have lines below.
COLUMNS = ("torch", "autograd", "mygrad", "NumPy by hand")
WIDTHS = (58, 10, 8, 9, *(14,) * len(COLUMNS), 10, 14, 14)
CLAIM_WIDTHS = (72, 15, 24, 17, 9)
#: Megabytes below which two peaks are too small to be distinguished.
SMALL = 1.0


def print_line(widths: tuple[int, ...], *cells: str) -> None:
    print("  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=False)).rstrip(), flush=True)


def print_head() -> None:
    """Print the head. Ratios are funcgrad's time, or memory, relative to the other's; a bar may follow a ratio."""
    of = [f"of {name}" for name in COLUMNS]
    print_line(WIDTHS, "", "funcgrad", "us/", "gradient", "gradient", *of, "peak", "of torch's", "of autograd's")
    print_line(WIDTHS, "", "median", "operat.", "/ value", *[""] * len(COLUMNS), "memory", "memory", "memory")
    print("-" * (sum(WIDTHS) + 2 * len(WIDTHS)))


def print_program(found: dict[str, Any]) -> None:
    """Print a line, and a line for each other way of a library."""
    memory, peers = found["memory"], found["peers"]
    own = memory.get("funcgrad")
    print_line(
        WIDTHS,
        found["name"],
        duration(found["us"]),
        number(found["us_per_operation"]),
        number(found["gradient_per_value"]),
        *(against(peers.get(name)) for name in COLUMNS),
        f"{own['megabytes']:.1f} MB" if own else "",
        *(against(memory_ratio(memory, name)) for name in ("torch", "autograd")),
    )
    for name, peer in peers.items():
        if name not in COLUMNS:
            print_line(WIDTHS, f"    of {name}: {against(peer)}")
    for error in found["errors"]:
        print(f"    FAILED: {error}", flush=True)


def memory_ratio(memory: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return funcgrad's peak relative to another library's; None if both are tiny."""
    if not {"funcgrad", name} <= memory.keys():
        return None
    ours, theirs = (memory[key]["megabytes"] for key in ("funcgrad", name))
    if max(ours, theirs) < SMALL:
        return None
    return {"ratio": ours / max(theirs, 0.1), "bar": memory[name]["bar"]}


def duration(us: float | None) -> str:
    if us is None:
        return ""
    return f"{us:.3g} µs" if us < 999.5 else f"{us / 1e3:.3g} ms" if us < 999.5e3 else f"{us / 1e6:.3g} s"


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if value < 999.5 else f"{value:,.0f}"


def against(peer: dict[str, Any] | None) -> str:
    """Return a ratio as text, with a mark and its bar if it is above the bar."""
    if peer is None:
        return ""
    over = peer["bar"] is not None and peer["ratio"] > peer["bar"]
    return f"{peer['ratio']:.3f}" + (f" > {peer['bar']:.3g} X" if over else "")


def bars(report: dict[str, Any]) -> list[tuple[str, float, float]]:
    """Return every figure that has a bar: its name, the figure, the bar."""
    found = []
    for program in report["programs"]:
        for name, peer in program["peers"].items():
            found.append((f"{program['name']}, of {name}", peer["ratio"], peer["bar"]))
        for name in program["memory"]:
            if name != "funcgrad" and (peer := memory_ratio(program["memory"], name)):
                found.append((f"{program['name']}, memory of {name}", peer["ratio"], peer["bar"]))
    return [line for line in found if line[2] is not None]


def missed(report: dict[str, Any]) -> list[str]:
    """Return the names of figures that are above their bars, or could not be measured."""
    over = [what for what, figure, bar in bars(report) if figure > bar]
    failed = [f"{program['name']}: {error}" for program in report["programs"] for error in program["errors"]]
    return over + failed + [claim["what"] for claim in report["claims"] if not claim["met"]]


def judged(report: dict[str, Any]) -> int:
    """Return the number of bars, including failed measurements."""
    errors = sum(len(program["errors"]) for program in report["programs"])
    return len(bars(report)) + errors + sum(claim["bar"] is not None or not claim["met"] for claim in report["claims"])


def print_claims_head() -> None:
    print()
    print_line(CLAIM_WIDTHS, "", "funcgrad", "against", "figure", "bar")
    print("-" * (sum(CLAIM_WIDTHS) + 14))


def print_claim(claim: dict[str, Any]) -> None:
    figure, bar, unit = claim["figure"], claim["bar"], claim.get("unit")
    shown = "" if figure is None else f"{figure:.3g} {unit}" if unit else f"{figure:.3f} times"
    verdict = "MISSED" if not claim["met"] else "" if bar is None else "met"
    limit = "" if bar is None else f"<= {bar:.3g}"
    print_line((*CLAIM_WIDTHS, 7), claim["what"], claim["ours"], claim["against"], shown, limit, verdict)
