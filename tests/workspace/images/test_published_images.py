"""Rows run in the images that their dataset publishes, pulled from a registry."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from episodes import played_by, run_command
from image_fixtures import oci_layout
from registries import running_registry
from sandbox_fixtures import write_rows

from coding_gym.envs import CodingRepairEnv
from coding_gym.errors import InvalidTaskError
from coding_gym.tasks import load_tasks

pytestmark = pytest.mark.slow

IMAGE = "xingyaoww/sweb.eval.x86_64.dask_s_dask-1:latest"


@pytest.fixture
def rows(tmp_path: Path, tiny_row: dict[str, Any]) -> Path:
    """A file with a row in SWE-Gym's form: a repository and a commit, but no image."""
    row = {key: value for key, value in tiny_row.items() if key != "files"}
    row |= {
        "instance_id": "dask__dask-1",
        "repo": "dask/dask",
        "base_commit": "0" * 40,
        "patch": row["patch"].replace("shapes.py", "src/shapes.py"),
        "PASS_TO_PASS": ["tests/test_shapes.py::test_square"],
    }
    return write_rows(tmp_path / "rows.jsonl", row)


def test_a_row_is_played_and_graded_in_its_pulled_image(
    rows: Path, tmp_path: Path, layers: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "registry").mkdir()
    with running_registry(tmp_path / "registry") as registry:
        variables = ["PATH=/opt/python/bin:/bin", "SHAPE=round"]
        registry.push(IMAGE, oci_layout(tmp_path / "pushed", layers, Env=variables))
        registry.replace_docker_hub(monkeypatch)
        output = run_command("images", "pull", str(rows))
        assert f"✔ {IMAGE}" in output
        assert "1 of 1 images are in" in output
    assert run_command("images", "ls") == f"{IMAGE}\n"
    tasks = load_tasks(rows, environments="images")
    assert (tasks[0].image, tasks[0].image_path) == (IMAGE, "/testbed")
    with closing(CodingRepairEnv(tasks=tasks)) as env:
        assert played_by(env, "gold").total_reward == 1.0
        assert played_by(env, "noop").total_reward == 0.0


def test_a_row_without_a_published_image_is_refused(tiny_row: dict[str, Any]) -> None:
    with pytest.raises(InvalidTaskError, match="image"):
        load_tasks([tiny_row], environments="images")
