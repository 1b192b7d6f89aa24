"""Kills builders of templates at random moments, and looks at what that leaves in the cache.

    python benchmarks/template_kills.py --kills 50

Every other task has install commands, so that kills land in environments too. After each kill all
that the cache takes for whole must be whole; at the end everything is asked for again, two
processes build one key at one time, and what is left of the killed is collected.
"""

import argparse
import json
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from coding_gym.sandbox import open_sandbox
from coding_gym.task import FilesTree, Task
from coding_gym.workspace import TemplateStore
from coding_gym.workspace.cache import collect_garbage
from coding_gym.workspace.installing import BuildStep

_NUM_FILES = 60
_PARTS = {
    "templates": ("tree/.git/index", "base.git/index", "template.json", "tree/file_59.py"),
    "environments": ("env/bin/python", "env/last", "artifacts/built.txt", "build.log"),
    "pytest": ("bin/pytest", "site/pytest/__init__.py"),
}
_LONGEST_S = 60.0


def task(number: int) -> Task:
    """Returns a task; those of odd numbers have install commands."""
    commands = (
        f"for n in $(seq {_NUM_FILES}); do echo $n > /opt/env/file_$n; done",
        "echo made > built.txt; echo whole > /opt/env/last",
    )
    files = {f"file_{n}.py": f"NUMBER = {number}\n" for n in range(_NUM_FILES)}
    return Task(
        task_id=f"task-{number}",
        tree=FilesTree(files),
        problem_statement="nothing is wrong",
        install_commands=commands if number % 2 else (),
    )


def build(folder: Path, number: int) -> None:
    """Builds a task's template and tells how it goes, one word a line."""
    has_stepped = False

    def tell(step: BuildStep) -> None:
        nonlocal has_stepped
        has_stepped = has_stepped or step.step > 0

    print("begin", flush=True)
    TemplateStore(folder=folder, on_build_step=tell).get(task(number))
    print("built" if has_stepped else "found", flush=True)


class Builder:
    """A process that builds one template."""

    def __init__(self, folder: Path, number: int) -> None:
        argv = [sys.executable, __file__, "--folder", str(folder), "--build", str(number)]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)

    def line(self, timeout_s: float) -> str | None:
        """Returns what it tells next; None where it tells nothing in time."""
        pipe = self.process.stdout
        assert pipe is not None
        if not select.select([pipe], [], [], timeout_s)[0]:
            return None
        return pipe.readline().strip()

    def end(self, *, kill: bool = False) -> None:
        """Waits for its end, or brings it about."""
        if kill:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def broken(folder: Path) -> Iterator[str]:
    """Gives what the cache takes for whole and is not."""
    for kind, parts in _PARTS.items():
        for entry in (folder / kind).glob("*/"):
            if re.fullmatch(r"[0-9a-f]+", entry.name):
                yield from (f"{entry}: no {part}" for part in parts if not (entry / part).exists())


def kill_builders(folder: Path, kills: int, chance: random.Random) -> Counter[str]:
    """Starts builders until so many were killed while they built."""
    counts: Counter[str] = Counter()
    longest_s = {0: 1.0, 1: 3.0}
    numbers = {0: 0, 1: 1}
    while counts["killed"] < kills:
        kind = counts["killed"] % 2
        builder = Builder(folder, numbers[kind])
        assert builder.line(_LONGEST_S) == "begin"
        start = time.monotonic()
        ended = builder.line(chance.uniform(0, longest_s[kind]))
        builder.end(kill=ended is None)
        if ended is None:
            counts["killed"] += 1
        else:  # the next builds another, for about as long
            counts["finished"] += 1
            longest_s[kind] = min(max(time.monotonic() - start, 0.2), _LONGEST_S)
            numbers[kind] += 2
        longest_s[kind] *= 1.1
        for problem in broken(folder):
            counts["broken"] += 1
            print(problem, file=sys.stderr)
    counts["tasks"] = max(numbers.values())
    return counts


def build_at_once(folder: Path, number: int) -> list[str]:
    """Has two processes want what is not there; returns what each says that it did."""
    builders = [Builder(folder, number) for _ in range(2)]
    for builder in builders:
        assert builder.line(_LONGEST_S) == "begin"
    said = [builder.line(_LONGEST_S) or "nothing" for builder in builders]
    for builder in builders:
        builder.end()
    return sorted(said)


def wrong_templates(folder: Path, num_tasks: int) -> int:
    """Asks for every template again; returns how many are not what they should be."""
    wrong = 0
    store = TemplateStore(folder=folder)
    for number in range(num_tasks):
        with open_sandbox(store.get(task(number)).spec) as sandbox:
            output = sandbox.run("git status -s; cat file_59.py built.txt /opt/env/last").output
        expected = f"NUMBER = {number}\n" + ("made\nwhole\n" if number % 2 else "")
        wrong += not output.startswith(expected)
    return wrong


def main() -> None:
    """Runs it and prints one JSON line; exits with 1 where something was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="the cache; a new one by default")
    parser.add_argument("--build", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.build is not None:
        build(options.folder, options.build)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        start = time.monotonic()
        counts = kill_builders(folder, options.kills, random.Random(options.seed))  # noqa: S311
        row = {
            **counts,
            "broken": counts["broken"],
            "at_once": build_at_once(folder, 1001),
            "wrong": wrong_templates(folder, counts["tasks"]),
            "leftovers_collected": collect_garbage(folder).num_leftovers,
            "leftovers": len([*folder.glob("*/*.partial")]),
            "seconds": round(time.monotonic() - start, 1),
        }
        print(json.dumps(row))
    sound = not (row["broken"] or row["wrong"] or row["leftovers"])
    sys.exit(0 if sound and row["at_once"] == ["built", "found"] else 1)


if __name__ == "__main__":
    main()
