"""A short run of the fuzzer; the long one is `python benchmarks/fuzz_actions.py`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coding_gym.tools import toolset_names

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "fuzz_actions.py"


@pytest.mark.parametrize("seed", [20_000_000])
def test_fuzzed_actions_raise_nothing_and_change_nothing_outside(seed: int) -> None:
    num_parsed, num_executed = 3000, 40 * len(toolset_names())
    counts = [f"--parsed={num_parsed}", f"--executed={num_executed}", f"--seed={seed}"]
    done = subprocess.run(
        [sys.executable, SCRIPT, *counts], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert row["faults"] == 0
    assert (row["parsed"], row["executed"]) == (num_parsed, num_executed)
    outcomes = row["outcomes"]
    assert outcomes["call"] >= num_parsed // 10
    assert outcomes["unreadable"] >= num_parsed // 10
    assert {name for name in toolset_names() if f"{name}: done" in outcomes} == set(toolset_names())


def test_actions_follow_from_seed_and_index() -> None:
    code = "import fuzzing; print([fuzzing.action(7, n).text for n in range(50)])"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=SCRIPT.parent,
            capture_output=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
