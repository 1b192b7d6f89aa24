"""An extra that is missing is installed from where the package came from."""

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from coding_gym import optional
from coding_gym.errors import MissingDependencyError

WHEEL = "file:///wheels/coding_gym-0.1.0-py3-none-any.whl"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("origin", "argument"),
    [
        (None, "'coding-gym[trl]'"),
        ({"url": "file:///a%20clone", "dir_info": {"editable": True}}, "-e '/a clone[trl]'"),
        ({"url": "file:///clone", "dir_info": {}}, "'/clone[trl]'"),
        ({"url": WHEEL, "archive_info": {}}, f"'coding-gym[trl] @ {WHEEL}'"),
        (
            {"url": "https://host/a.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            f"'coding-gym[trl] @ git+https://host/a.git@{COMMIT}'",
        ),
    ],
)
def test_a_missing_extra_comes_from_the_same_origin(
    origin: dict[str, Any] | None,
    argument: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed = tmp_path / "coding_gym-0.1.0.dist-info"
    installed.mkdir()
    if origin is not None:
        (installed / "direct_url.json").write_text(json.dumps(origin))
    monkeypatch.setattr(optional, "distribution", lambda _: metadata.Distribution.at(installed))
    with pytest.raises(MissingDependencyError) as raised:
        optional.import_extra("coding_gym_no_such.module", "trl")
    said = f"coding_gym_no_such is not installed; run: pip install {argument}"
    assert str(raised.value) == said


def test_a_folder_that_is_not_installed_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(optional, "distribution", missing)
    assert optional.requirement("trl") == "'coding-gym[trl]'"
