"""Five benchmarks; each measures this package and its alternatives in the same run.

    make bench                            # all five, in a few minutes; prints tables
    python benchmarks/bench.py --only command reset --rounds 50
    python benchmarks/bench.py --write    # also updates benchmarks/results and the pages' tables

- command: ``true`` in an open environment;
- reset: a clean tree of 10,000 files, and a first command in it;
- grade: a wrong and a right patch of a bundled task, compared with one cold ``python -m pytest`` of
  the same tests without this package's grader, in a sandbox that has the right patch;
- vector steps: ``true`` in each of 64 environments;
- memory: these 64 environments with all their processes (proportional set size; as root only,
  because other users cannot read the memory of sandboxes).

The alternatives of a benchmark are measured in turn, call by call; vector envs one kind after
another. Times are medians. Alternatives that are not installed are reported as absent. No speed is
required: the exit code is 0 on a slow machine too.
"""

import argparse
import json
import logging
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path

from peers import COMMANDS, RESETS
from timing import ROOT, Figure, Work, compare, machine

from coding_gym import load_tasks
from coding_gym.grading import grade
from coding_gym.patch import Patch
from coding_gym.sandbox import open_sandbox
from coding_gym.workspace import TemplateStore, apply_patch

RESULTS = ROOT / "benchmarks" / "results" / "benchmarks.json"
PACKAGE = "coding_gym"
NUM_ENVS = 64
_TASK = "bourse-lost-places"
_WRONG_PATCH = Patch.between({}, {"notes.txt": "nothing is repaired\n"})
# The rows of the README's table: alternatives of `COMMANDS` and `RESETS`, and the isolation.
_OVERVIEW = (
    (PACKAGE, PACKAGE, "yes"),
    ("mini-swe-agent, bubblewrap", "", "files only"),
    ("docker exec", "docker run and git clone", "yes"),
    ("SWE-ReX, not isolated", "git clone, not isolated", "no"),
)
_MARKS = re.compile(r"(?s)(<!-- benchmark: ([a-z, ]+) -->\n).*?(\n<!-- end of benchmark -->)")


def commands(rounds: int) -> list[Figure]:
    """Measures the time of a command."""
    return compare("command", COMMANDS, PACKAGE, rounds)


def resets(rounds: int) -> list[Figure]:
    """Measures the time of a clean tree and a first command."""
    return compare("reset", RESETS, PACKAGE, max(5, rounds // 10))


def grades(rounds: int) -> list[Figure]:
    """Measures the time of grades of a wrong and of a right patch."""
    (task,) = load_tasks(task_ids=[_TASK])
    template = TemplateStore().get(task)
    paths = " ".join(sorted({test.partition("::")[0] for test in task.expected_tests}))
    gold_patch = Patch(task.gold_patch)

    def cold_pytest(stack: ExitStack) -> Work:
        sandbox = stack.enter_context(open_sandbox(template.spec))
        apply_patch(sandbox, Patch(task.test_patch))
        apply_patch(sandbox, gold_patch)
        return lambda: sandbox.run(f"python -m pytest -q {paths}")

    def one_grade(patch: Patch, _: ExitStack) -> Work:
        return lambda: grade(task, template, patch, challenge="resolved")  # as in environments

    return compare(
        "grade",
        {
            "python -m pytest by hand": cold_pytest,
            "coding_gym, a wrong patch": partial(one_grade, _WRONG_PATCH),
            "coding_gym, a right patch": partial(one_grade, gold_patch),
        },
        "python -m pytest by hand",
        max(5, rounds // 10),
    )


def vector(_: int) -> list[Figure]:
    """Measures vector envs, each kind in a separate process."""
    from vector import KINDS

    results: dict[str, dict[str, float]] = {}
    for kind in KINDS:
        argv = [sys.executable, str(Path(__file__).with_name("vector.py")), kind, str(NUM_ENVS)]
        process = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True)
        results[kind] = json.loads(process.stdout)
    figures = []
    for group, unit, key in (("vector steps", "1/s", "steps_per_s"), ("memory", "MiB", "pss_mib")):
        base = results[PACKAGE][key]
        for kind, values in results.items():
            if group == "vector steps" or kind != "one env in a loop":
                value, ratio = round(values[key], 1), round(values[key] / base, 3)
                figures.append(Figure(group=group, name=kind, unit=unit, value=value, ratio=ratio))
    return figures


BENCHES: Mapping[str, Callable[[int], list[Figure]]] = {
    "command": commands,
    "reset": resets,
    "grade": grades,
    "vector": vector,  # steps and memory
}


def table(figures: Sequence[Figure]) -> str:
    """Returns the figures as a Markdown table."""
    lines = ["| | | measured | ratio |", "|---|---|---|---|"]
    group = ""
    for figure in figures:
        title, group = ("" if figure.group == group else figure.group), figure.group
        ratio = "" if figure.ratio is None else _number(figure.ratio)
        lines.append(f"| {title} | {figure.name} | {_value(figure)} | {ratio} |")
    return "\n".join(lines)


def overview(figures: Sequence[Figure]) -> str:
    """Returns the README's table of commands and resets, in Markdown."""
    values = {(figure.group, figure.name): _value(figure) for figure in figures}
    lines = ["| | command | clean tree of 10,000 files | isolated |", "|---|---|---|---|"]
    for command, reset, isolated in _OVERVIEW:
        name = ", then ".join(dict.fromkeys(filter(None, (reset, command))))
        cells = values.get(("command", command), "-"), values.get(("reset", reset), "-")
        lines.append(f"| {name.replace(', not isolated', '')} | {' | '.join(cells)} | {isolated} |")
    return "\n".join(lines)


def _value(figure: Figure) -> str:
    if figure.value is None:
        return "absent"
    return f"{_number(figure.value)} {figure.unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"


def write_pages(figures: Sequence[Figure]) -> None:
    """Fills the tables between ``<!-- benchmark: GROUP, … -->`` marks of README and docs."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = page.read_text(encoding="utf-8")

        def replacement(match: re.Match[str]) -> str:
            groups = match[2].split(", ")
            measured = [f for f in figures if f.group in groups and f.value is not None]
            text = overview(figures) if groups == ["overview"] else table(measured)
            return f"{match[1]}\n{text}\n{match[3]}"

        if (new := _MARKS.sub(replacement, text)) != text:
            page.write_text(new, encoding="utf-8")


def main() -> None:
    """Measures the chosen benchmarks and prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=100, help="number of calls of a command")
    parser.add_argument("--only", nargs="+", choices=BENCHES, default=[*BENCHES])
    parser.add_argument("--write", action="store_true", help=f"update {RESULTS.name} and the pages")
    options = parser.parse_args()
    logging.getLogger("coding_gym").setLevel(logging.ERROR)  # no warnings of discarded episodes
    figures: list[Figure] = []
    for name in options.only:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        figures += BENCHES[name](options.rounds)
    print(table(figures))
    for figure in figures:
        if figure.absent:
            print(f"absent: {figure.group}, {figure.name}: {figure.absent}", file=sys.stderr)
    if options.write:
        date = time.strftime("%Y-%m-%d", time.gmtime())
        result = {"machine": machine(), "date": date, "figures": [asdict(f) for f in figures]}
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        write_pages(figures)


if __name__ == "__main__":
    main()
