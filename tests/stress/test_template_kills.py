"""Builders that are killed leave nothing that is taken for whole."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "template_kills.py"


def test_killed_builds_never_break_the_cache_and_two_builders_build_once() -> None:
    """A short run of the script that kills fifty."""
    argv = [sys.executable, SCRIPT, "--kills", "6", "--seed", "1"]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    assert ended.stdout, ended.stderr
    found = json.loads(ended.stdout)
    assert found["killed"] == 6
    assert (found["broken"], found["wrong"], found["leftovers"]) == (0, 0, 0)
    assert found["at_once"] == ["built", "found"]
    assert ended.returncode == 0
