"""The examples without a trainer, and all on a machine without them; see tests/extras, too."""

import subprocess
import sys
from collections.abc import Callable
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
        trainer = example.stem.removeprefix("train_")
        extra = "trl" if trainer == "harness" else trainer
        assert "; run: pip install " in line
        assert line.rstrip("'").endswith(f"[{extra}]")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("notebook", "printed"),
    [("evaluate", "return self.end is None or date < self.end"), ("make_tasks", "4 tasks in ")],
)
def test_notebook_runs_from_first_to_last_cell(
    notebook: str, printed: str, run_example: Callable[..., list[str]]
) -> None:
    assert printed in "\n".join(run_example(f"notebooks/{notebook}.py"))


@pytest.mark.slow
def test_best_of_six_branches_repairs_the_bug(run_example: Callable[..., list[str]]) -> None:
    lines = run_example("tree_search.py", "--branches", "6", "--rollouts", "2")
    assert "candidate 5: visible tests say +1.00" in lines
    assert "best is candidate 5 (+1.00); hidden tests: resolved" in lines
    assert "best of 6 from the midpoint: reward 1.40" in lines
    assert len(lines[9].split()) == 3  # advantages


@pytest.mark.slow
def test_partial_rollouts_keep_the_version_of_each_turn(
    run_example: Callable[..., list[str]],
) -> None:
    lines = run_example("partial_rollouts.py", "--episodes", "2", "--turns-per-round", "2")
    versions = [line.partition("versions ")[2] for line in lines]
    assert versions == ["['0', '0', '1', '1', '2']"] * 2
