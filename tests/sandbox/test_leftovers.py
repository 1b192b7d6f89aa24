"""Folders of sandboxes are removed with them and after dead owners, and kept for all others.

Changes are on disk, as on kernels whose tmpfs lacks user extended attributes.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sandbox_fixtures import MakeLayer, repeat_once_only_actions

from coding_gym.sandbox import SandboxSpec
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.ownership import identity, remove_folder, uppers_folder

pytestmark = pytest.mark.slow


def test_each_pid_namespace_gives_its_processes_other_names() -> None:
    code = "from coding_gym.sandbox.ownership import identity; print(identity(), end='')"
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        pytest.skip("no pid namespace can be made")
    inside = ended.stdout.partition("-")[0]
    assert inside != identity().partition("-")[0]


def test_removal_continues_after_a_file_that_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a/stays", "a/x", "b/stays", "b/x", "c/stays", "c/d/x"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).touch()

    def refuse(name: str, *, dir_fd: int) -> None:
        if name == "stays":
            raise PermissionError
        unlink(name, dir_fd=dir_fd)

    unlink = os.unlink
    monkeypatch.setattr(os, "unlink", refuse)
    remove_folder(tmp_path / "tree")
    monkeypatch.undo()
    names = [path.name for path in sorted(tmp_path.rglob("*"))]
    assert names == ["tree", "a", "stays", "b", "stays", "c", "stays"]
    remove_folder(tmp_path / "tree")
    assert not any(tmp_path.iterdir())


def test_removing_a_link_keeps_the_mode_of_its_target(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    remove_folder(tmp_path / "link")
    assert (tmp_path / "target").stat().st_mode & 0o777 == 0o755


def test_only_folders_of_dead_owners_are_removed(
    make_layer: MakeLayer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    repeat_once_only_actions()
    on_disk, spec = (
        NamespaceBackend(changes="disk"),
        SandboxSpec(layers=(make_layer({"file": "x"}),)),
    )
    with on_disk.open(spec) as sandbox:
        base = tmp_path / "cache" / "coding_gym" / "uppers"
        ours = uppers_folder().name
        place, pid, _ = ours.split("-")
        elsewhere = f"{'0' * len(place)}-{pid}-1"
        for name in (f"{place}-999999999-1", f"{place}-{pid}-1", elsewhere):
            (base / name / "sandbox" / "upper" / "deep").mkdir(parents=True)
            (base / name / "sandbox" / "upper").chmod(0)
        repeat_once_only_actions()
        with on_disk.open(spec) as other:
            assert {path.name for path in base.iterdir()} == {ours, elsewhere}
            assert other.run("cat file").output == sandbox.run("cat file").output == "x"
