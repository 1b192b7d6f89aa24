"""The examples on a machine without the trainers; with them they are run in tests/extras."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("train_*.py"))
MISSING = ["torch", "ray", "stable_baselines3", "sb3_contrib", "trl", "datasets"]
SCRIPT = f"""
import runpy, sys
sys.modules.update(dict.fromkeys({MISSING})) # importing them fails
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_without_its_extra_an_example_says_how_to_install_it_in_one_line(example: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(example), "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    extra = example.stem.removeprefix("train_")
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"; run: pip install 'coding-gym[{extra}]'")
    assert done.returncode == 1
