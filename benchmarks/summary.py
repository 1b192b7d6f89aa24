"""One summary of the five benchmarks, and the tables of the documentation that quote them.

    python benchmarks/summary.py --results .bench    # prints the newest figures of each benchmark
    python benchmarks/summary.py --write             # rewrites the tables of README.md and docs/

A page has a table between ``<!-- figures: NAME -->`` and ``<!-- end of figures -->``. The name is a
benchmark's, or ``compared`` for the peers side by side. The tables quote the last line of each file
in ``benchmarks/results``.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from figures import RESULTS, Figure, show

ROOT = Path(__file__).parents[1]
BENCHMARKS = ("sandbox", "env", "vector", "grading", "peers")
_BLOCK = re.compile(r"(?s)(<!-- figures: (\w+) -->\n).*?(\n<!-- end of figures -->)")

# Per row of the comparison: its title, its command, reset and grade, and whether it isolates.
_COMPARED = (
    ("**coding_gym**", "coding_gym", "coding_gym", "coding_gym", "yes"),
    ("**coding_gym**, persistent shell", "coding_gym, persistent shell", "", "", "yes"),
    ("nano-agent, local", "nano-agent, local", "", "", "no"),
    ("mini-swe-agent, local", "mini-swe-agent, local", "", "", "no"),
    ("mini-swe-agent, bubblewrap", "mini-swe-agent, bubblewrap", "", "", "yes"),
    ("SWE-ReX, local session", "SWE-ReX, local session", "", "", "no"),
    ("git clone", "", "git clone", "", "no"),
    ("docker exec; docker run, without a tree", "docker exec", "docker run --rm", "", "yes"),
    ("docker run and git clone", "", "docker run --rm and git clone", "", "yes"),
    (
        *("SWE-bench's log parser and report, in our sandbox", "", ""),
        *("SWE-bench's script and log parser", ""),
    ),
    ("exit code of pytest, in our sandbox", "", "", "exit code of pytest", ""),
)


def newest(name: str, folder: Path = RESULTS) -> dict[str, Any]:
    """Returns the last line of a benchmark's results."""
    lines = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    row: dict[str, Any] = json.loads(lines[-1])
    return row


def figures(row: dict[str, Any]) -> list[Figure]:
    """Returns the figures of a line."""
    return [
        Figure(**{k: v for k, v in one.items() if k not in ("met", "kind")})
        for one in row["figures"]
    ]


def table(name: str) -> str:
    """Returns a table as the pages have it."""
    if name == "compared":
        return _compared()
    rows = ["| | measured | target |", "|---|---|---|"]
    for figure in figures(newest(name)):
        if figure.value is None:
            rows.append(f"| {figure.name} | absent | |")
            continue
        sign = "at least" if figure.is_floor else "at most"
        target = "" if figure.target is None else f"{sign} {figure.target:g}"
        missed = ", missed" if figure.met is False else ""
        rows.append(f"| {figure.name} | {_text(figure)} | {target}{missed} |")
    return "\n".join(rows)


def _text(figure: Figure) -> str:
    return f"{_number(figure.value or 0.0)} {figure.unit}".strip()


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _compared() -> str:
    found = {one.name: one for one in figures(newest("peers"))}
    counts = [name for name in found if name.startswith("cheats refused of ")]
    total = counts[0].split()[3].rstrip(":")

    def cell(what: str, key: str) -> str:
        figure = found.get(f"{what}: {key}") if key else None
        return "" if figure is None or figure.value is None else _number(figure.value)

    rows = [
        f"| | a command | a reset | a grade | cheats refused, of {total} | isolated |",
        "|---|---|---|---|---|---|",
    ]
    for title, command, reset, grade, isolated in _COMPARED:
        cells = [cell("command", command), cell("reset", reset), cell("grade", grade)]
        cells.append(cell(f"cheats refused of {total}", grade))
        if title.startswith("**"):
            cells = [f"**{one}**" if one else "" for one in cells]
        rows.append("".join(f"| {text} " if text else "| " for text in (title, *cells, isolated)))
        rows[-1] += "|"
    return "\n".join(rows)


def filled(text: str) -> str:
    """Returns a page with its tables as they are measured."""
    return _BLOCK.sub(lambda block: f"{block[1]}\n{table(block[2])}\n{block[3]}", text)


def pages() -> list[Path]:
    """Returns the pages that may have tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main() -> None:
    """Prints the summary, and writes the tables on request."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=RESULTS, help="a folder of results")
    parser.add_argument("--write", action="store_true", help="rewrite the tables of the pages")
    options = parser.parse_args()
    for name in BENCHMARKS:
        if not (options.results / f"{name}.jsonl").exists():
            print(f"\n{name}: no results in {options.results}")
            continue
        row = newest(name, options.results)
        machine = row["machine"]
        print(f"\n{name}: commit {machine['commit']}, {machine['cores']} cores, {row['date']}")
        show(figures(row))
    if options.write:
        for page in pages():
            text = page.read_text(encoding="utf-8")
            if filled(text) != text:
                page.write_text(filled(text), encoding="utf-8")
                print(f"wrote {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
