"""Exports of runs are read by Harbor, SWE-bench and datasets."""

import json
from pathlib import Path

import pytest
from runs import GOLD, TASK, make_exported_run

from coding_gym.evaluation import export

pytestmark = pytest.mark.trainer


def test_harbor_accepts_the_trajectories(tmp_path: Path) -> None:
    validator = pytest.importorskip("harbor.utils.trajectory_validator").TrajectoryValidator()
    for path in export(make_exported_run(tmp_path / "run"), "atif", tmp_path / "out"):
        assert validator.validate(path), validator.get_errors()


def test_swebench_reads_the_predictions(tmp_path: Path) -> None:
    utils = pytest.importorskip("swebench.harness.utils")
    path, *_ = export(make_exported_run(tmp_path / "run"), "swebench", tmp_path)
    predictions = utils.get_predictions_from_file(str(path), "", "")
    patches = {row["instance_id"]: row["model_patch"] for row in predictions}
    assert patches[TASK] == GOLD


def test_datasets_loads_the_chats(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    (path,) = export(make_exported_run(tmp_path / "run"), "sft", tmp_path / "out")
    loaded = datasets.load_dataset(
        str(path.parent), split="train", cache_dir=str(tmp_path / "cache")
    )
    lines = path.read_text(encoding="utf-8").splitlines()
    assert list(loaded) == [json.loads(line) for line in lines]
