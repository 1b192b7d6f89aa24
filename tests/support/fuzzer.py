"""Runs of ``benchmarks/fuzz_actions.py``."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "benchmarks"


def fuzz(*, num_parsed: int, num_executed: int, seed: int) -> dict[str, Any]:
    """Returns the counts of a run that found no fault."""
    counts = [f"--parsed={num_parsed}", f"--executed={num_executed}", f"--seed={seed}"]
    argv = [sys.executable, FOLDER / "fuzz_actions.py", *counts]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    row: dict[str, Any] = json.loads(done.stdout)
    assert row["faults"] == 0
    assert (row["parsed"], row["executed"]) == (num_parsed, num_executed)
    return row
