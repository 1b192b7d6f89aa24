"""Grades resolved episodes again by plain commands: git, a virtual environment and pytest.

    python benchmarks/learning/regrade.py bench --n 100

Takes the resolved episodes that ``learn.py`` left in ``resolved.jsonl`` of the bench, different
patches before the same one again, and prints how many pass. Nothing of this package runs the tests:
a folder gets the program, loses the repair, gets the episode's patch and the hidden tests, and
``python -m pytest -rA`` has to report each test that must pass. Without the patch it must not.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from coding_gym import load_tasks
from coding_gym.task import FolderTree, Task

_TIMEOUT_S = 300.0


def episodes(bench: Path) -> list[tuple[str, str]]:
    """Returns task and patch of every resolved episode, shuffled, different ones first."""
    rows = map(json.loads, (bench / "resolved.jsonl").read_text(encoding="utf-8").splitlines())
    found = Counter((row["task_id"], row["patch"]) for row in rows)
    again = found - Counter(found.keys())
    draws = random.Random(0)  # noqa: S311 - no secret
    parts = list(found), list(again.elements())
    for part in parts:
        draws.shuffle(part)
    return [*parts[0], *parts[1]]


class Checkout:
    """One program in one folder, with a virtual environment of its own.

    Args:
        folder: Where both will be.
        task: A task of the program.
    """

    def __init__(self, folder: Path, task: Task) -> None:
        self._tree, self._python = folder / "tree", folder / "venv" / "bin" / "python"
        self._place(task)
        _run([sys.executable, "-m", "venv", str(folder / "venv")], folder)
        _run([str(self._python), "-m", "pip", "install", "--quiet", "pytest"], folder)
        for command in task.install_commands:
            words = command.replace("python -m pip", f"{self._python} -m pip").split()
            _run(words, self._tree)

    def passed(self, task: Task, patch: str) -> set[str]:
        """Returns the tests that pass with a patch."""
        self._place(task)
        for text in filter(None, (patch, task.test_patch)):
            _run(["git", "apply", "-"], self._tree, text)
        command = [str(self._python), "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider"]
        output = _run(command, self._tree, may_fail=True)
        lines = output.splitlines()
        return {line.partition(" ")[2] for line in lines if line.startswith("PASSED ")}

    def _place(self, task: Task) -> None:
        assert isinstance(task.tree, FolderTree)
        shutil.rmtree(self._tree, ignore_errors=True)
        shutil.copytree(task.tree.folder, self._tree, symlinks=True)
        _run(["git", "apply", "-R", "-"], self._tree, task.tree.reverse_patch)


def _run(command: list[str], folder: Path, text: str = "", *, may_fail: bool = False) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        input=text,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode and not may_fail:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr[-500:]}")
    return done.stdout


def main() -> None:
    """Grades again, and prints how many episodes pass."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bench", type=Path, help="the folder of programs.py")
    parser.add_argument("--n", type=int, default=100, help="episodes (default 100)")
    options = parser.parse_args()
    tasks = {task.task_id: task for task in load_tasks(str(options.bench / "test.jsonl"))}
    num_passed = num_graded = 0
    with tempfile.TemporaryDirectory() as scratch:
        checkouts: dict[str, Checkout] = {}
        for task_id, patch in episodes(options.bench)[: options.n]:
            task = tasks[task_id]
            if task.repo not in checkouts:
                folder = Path(scratch, task.repo)
                folder.mkdir()
                checkouts[task.repo] = Checkout(folder, task)
            checkout = checkouts[task.repo]
            if not set(task.fail_to_pass) - checkout.passed(task, ""):
                raise SystemExit(f"{task_id} passes without any patch")
            missing = set(task.expected_tests) - checkout.passed(task, patch)
            num_graded, num_passed = num_graded + 1, num_passed + (not missing)
            if missing:
                print(f"{task_id}: {len(missing)} tests do not pass, {min(missing)} for one")
    print(f"{num_passed} of {num_graded} resolved episodes pass by plain commands")


if __name__ == "__main__":
    main()
