"""The example of a search finds the repair, the same way each time."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "tree_search.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_best_of_six_branches_repairs_the_bug() -> None:
    done = run("--branches", "6", "--rollouts", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[5] == "candidate 5: visible tests say +1.00"
    assert lines[6] == "best is candidate 5 (+1.00); hidden tests: resolved"
    assert lines[7] == "best of 6 from the midpoint: reward 1.40"
    assert lines[9].startswith("advantages: ")
    assert len(lines[9].split()) == 3
