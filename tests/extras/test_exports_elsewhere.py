"""Other projects read exported runs."""

import json
from pathlib import Path
from typing import Any

import pytest
from made_runs import make_run

from coding_gym.evaluation import export

pytestmark = pytest.mark.trainer


def test_harbor_accepts_the_trajectories(tmp_path: Path, tiny_row: dict[str, Any]) -> None:
    validator = pytest.importorskip("harbor.utils.trajectory_validator").TrajectoryValidator()
    for path in export(make_run(tmp_path / "run", tiny_row), "atif", tmp_path / "out"):
        assert validator.validate(path), validator.get_errors()


def test_swebench_reads_the_predictions(tmp_path: Path, tiny_row: dict[str, Any]) -> None:
    utils = pytest.importorskip("swebench.harness.utils")
    path, *_ = export(make_run(tmp_path / "run", tiny_row), "swebench", tmp_path)
    predictions = utils.get_predictions_from_file(str(path), "", "")
    patches = {row["instance_id"]: row["model_patch"] for row in predictions}
    assert patches["shapes-area"] == tiny_row["patch"]


def test_datasets_loads_the_chats(tmp_path: Path, tiny_row: dict[str, Any]) -> None:
    datasets = pytest.importorskip("datasets")
    (path,) = export(make_run(tmp_path / "run", tiny_row), "sft", tmp_path / "out")
    loaded = datasets.load_dataset(
        str(path.parent), split="train", cache_dir=str(tmp_path / "cache")
    )
    lines = path.read_text(encoding="utf-8").splitlines()
    assert list(loaded) == [json.loads(line) for line in lines]
