"""The examples without a trainer, and all on a machine without them; see tests/extras, too."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("train_*.py"))
MISSING = ["torch", "ray", "stable_baselines3", "sb3_contrib", "trl", "datasets"]
SCRIPT = f"""
import runpy, sys
sys.modules.update(dict.fromkeys({MISSING})) # importing them fails
for example in sys.argv[1:]:
    sys.argv = [example, "--help"]
    try:
        runpy.run_path(example, run_name="__main__")
    except SystemExit as end:
        print(end.code)  # a text is printed as it is, with exit code 1
"""


def test_examples_without_their_extra_name_the_pip_line() -> None:
    argv = [sys.executable, "-c", SCRIPT, *map(str, EXAMPLES)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert len(EXAMPLES) > 2
    for line, example in zip(done.stdout.splitlines(), EXAMPLES, strict=True):
        extra = example.stem.removeprefix("train_")
        assert "; run: pip install " in line
        assert line.rstrip("'").endswith(f"[{extra}]")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("notebook", "printed"),
    [
        ("evaluate", "+        return self.end is None or date < self.end"),
        ("make_tasks", "4 tasks in "),
    ],
)
def test_a_notebook_runs_from_first_to_last_cell(
    notebook: str, printed: str, tmp_path: Path
) -> None:
    argv = [sys.executable, str(FOLDER / "notebooks" / f"{notebook}.py")]
    done = subprocess.run(
        argv,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout


@pytest.mark.slow
def test_the_best_of_six_branches_repairs_the_bug() -> None:
    argv = [sys.executable, str(FOLDER / "tree_search.py"), "--branches", "6", "--rollouts", "2"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[5] == "candidate 5: visible tests say +1.00"
    assert lines[6] == "best is candidate 5 (+1.00); hidden tests: resolved"
    assert lines[7] == "best of 6 from the midpoint: reward 1.40"
    assert lines[9].startswith("advantages: ")
    assert len(lines[9].split()) == 3
