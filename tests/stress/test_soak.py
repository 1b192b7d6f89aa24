"""A short soak: hundreds of cycles, some kills. `benchmarks/soak.py` does more of the same."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coding_gym.sandbox.namespace import NamespaceBackend

_SOAK = Path(__file__).parents[2] / "benchmarks" / "soak.py"


def _soak(*options: str) -> dict[str, Any]:
    probe = NamespaceBackend().probe()
    if not probe.available:
        pytest.skip(probe.detail)
    ended = subprocess.run(
        [sys.executable, _SOAK, *options], capture_output=True, text=True, timeout=300
    )
    assert ended.stdout, ended.stderr
    report: dict[str, Any] = json.loads(ended.stdout)
    problems = [p for part in ("cycles", "kills") for p in report.get(part, {}).get("problems", [])]
    assert problems == []
    assert ended.returncode == 0
    return report


IN_MEMORY, ON_DISK = (), ("--on-disk",)


@pytest.mark.parametrize(("where", "count"), [(IN_MEMORY, 200), (ON_DISK, 100)])
def test_opening_and_closing_leaves_the_machine_as_it_was(
    where: tuple[str, ...], count: int
) -> None:
    report = _soak(f"--cycles={count}", "--kills=0", "--among-others", *where)
    assert report["cycles"]["count"] == count


@pytest.mark.parametrize(("where", "count"), [(IN_MEMORY, 20), (ON_DISK, 12)])
def test_whatever_is_killed_when_nothing_leaks_and_the_rest_works_on(
    where: tuple[str, ...], count: int
) -> None:
    report = _soak("--cycles=0", f"--kills={count}", *where)
    assert report["kills"]["count"] == count
    assert set(report["kills"]["whom"]) == {"owner", "outer", "server", "init"}
    assert report["kills"]["errors"] > 0
