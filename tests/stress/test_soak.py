"""Short soaks: episodes in cycles, killed builders, fuzzed actions; `benchmarks/` has longer."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fuzzer import FOLDER, fuzz

from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.tools import toolset_names

pytestmark = pytest.mark.nightly

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
def test_opening_and_closing_leaves_the_machine_alone(where: tuple[str, ...], count: int) -> None:
    report = _soak(f"--cycles={count}", "--kills=0", "--among-others", *where)
    assert report["cycles"]["count"] == count


@pytest.mark.parametrize(("where", "count"), [(IN_MEMORY, 20), (ON_DISK, 12)])
def test_kills_leak_nothing_and_the_rest_works_on(where: tuple[str, ...], count: int) -> None:
    report = _soak("--cycles=0", f"--kills={count}", *where)
    assert report["kills"]["count"] == count
    assert set(report["kills"]["whom"]) == {"owner", "outer", "server", "init"}
    assert report["kills"]["errors"] > 0


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


def test_fuzzed_actions_of_every_toolset_raise_and_change_nothing() -> None:
    num_parsed = 3000
    row = fuzz(num_parsed=num_parsed, num_executed=40 * len(toolset_names()), seed=20_000_000)
    outcomes = row["outcomes"]
    assert outcomes["call"] >= num_parsed // 10
    assert outcomes["unreadable"] >= num_parsed // 10
    assert {name for name in toolset_names() if f"{name}: done" in outcomes} == set(toolset_names())


def test_actions_follow_from_seed_and_index() -> None:
    code = "import fuzzing; print([fuzzing.action(7, n).text for n in range(50)])"
    argv = [sys.executable, "-c", code]
    first, second = (
        subprocess.run(argv, cwd=FOLDER, capture_output=True, check=True).stdout for _ in range(2)
    )
    assert first == second
