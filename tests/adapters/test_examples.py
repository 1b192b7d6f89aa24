"""The examples on a machine without the trainers; with them they are run in tests/extras."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("train_*.py"))
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


def test_without_its_extra_an_example_says_how_to_install_it_in_one_line() -> None:
    argv = [sys.executable, "-c", SCRIPT, *map(str, EXAMPLES)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert len(EXAMPLES) > 2
    for line, example in zip(done.stdout.splitlines(), EXAMPLES, strict=True):
        extra = example.stem.removeprefix("train_")
        assert line.endswith(f"; run: pip install 'coding-gym[{extra}]'")
