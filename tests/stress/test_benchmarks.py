"""The benchmarks run, and tell absent peers and missed targets for what they are."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coding_gym.sandbox import get_backend

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def _run(script: str, tmp_path: Path, *options: str) -> dict[str, Any]:
    probe = get_backend("namespace").probe()
    if not probe.available:
        pytest.skip(probe.detail)
    argv = [sys.executable, BENCHMARKS / script, "--rounds=3", "--json", f"--results={tmp_path}"]
    ended = subprocess.run([*argv, *options], capture_output=True, text=True, timeout=200)
    assert ended.stdout, ended.stderr
    row: dict[str, Any] = json.loads(ended.stdout)
    kept = (tmp_path / script).with_suffix(".jsonl").read_text(encoding="utf-8")
    assert json.loads(kept) == row
    missed = [figure["name"] for figure in row["figures"] if figure["met"] is False]
    assert ended.returncode == bool(missed)
    return row


def test_speed_of_sandboxes_is_measured_against_its_targets(tmp_path: Path) -> None:
    row = _run("bench_sandbox.py", tmp_path, "--only", "steps", "images", "killed-owner")
    figures = row["figures"]
    assert {"commit", "cores", "kernel", "python", "root", "load"} == set(row["machine"])
    assert len(figures) == 5
    for figure in figures:
        assert figure["value"] > 0
        assert figure["met"] is (figure["value"] <= figure["target"])


def test_peers_that_are_not_there_are_absent_with_the_way_to_get_them(tmp_path: Path) -> None:
    row = _run("bench_peers.py", tmp_path, "--only", "bare", "ours", "swe-rex")
    bare, ours, *others = row["figures"]
    assert ours["details"]["times_ours"] == 1
    assert bare["value"] > 0
    for other in others:
        assert other["value"] or "pip install swe-rex" in other["absent"]
