"""Removals of folders of sandboxes; `test_namespace_lifetime` has those of killed owners."""

import fcntl
import multiprocessing
import os
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from episodes import raising
from sandbox_fixtures import write_files

from coding_gym.sandbox.ownership import UNPRIVILEGED, process_folder, remove_folder

pytestmark = pytest.mark.slow


def test_removal_continues_after_a_file_that_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ("a/stays", "a/x", "b/stays", "b/x", "c/stays", "c/d/x")
    write_files(tmp_path / "tree", dict.fromkeys(files, ""))

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


def test_a_link_that_replaces_a_folder_keeps_the_mode_of_its_target(tmp_path: Path) -> None:
    folder, target = Path("tree/folder"), Path("target")
    change_mode = os.chmod

    def replace_and_change(path: Any, mode: int, **options: Any) -> None:
        if not Path("tree/moved").exists():
            folder.rename("tree/moved")
            folder.symlink_to(Path("../target"))
        change_mode(path, mode, **options)

    def remove() -> None:  # not as root, who may enter all folders
        os.chdir(tmp_path)
        if os.geteuid() == 0:
            os.chown(".", UNPRIVILEGED, UNPRIVILEGED)
            os.setresuid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED)
        for path, mode in ((folder.parent, 0o755), (target, 0o755), (folder, 0)):
            path.mkdir(mode)
        os.chmod = replace_and_change
        remove_folder(folder)

    process = multiprocessing.get_context("fork").Process(target=remove)
    process.start()
    process.join()
    assert (process.exitcode, (tmp_path / target).stat().st_mode & 0o777) == (0, 0o755)


def test_a_kill_while_a_folder_is_made_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        process_folder(tmp_path, os.getpid())
    monkeypatch.undo()
    folder = process_folder(tmp_path, os.getpid())
    assert [*tmp_path.iterdir()] == [folder]


@pytest.mark.parametrize("removes", [True, False])
def test_a_removal_by_another_process_delays_no_new_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, removes: bool
) -> None:
    made = tempfile.mkdtemp
    with ExitStack() as locks:

        def make_and_lock(**options: Any) -> str:
            monkeypatch.undo()
            folder = made(**options)
            descriptor = os.open(folder, os.O_RDONLY)
            locks.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if removes:
                Path(folder).rmdir()
            return folder

        monkeypatch.setattr(tempfile, "mkdtemp", make_and_lock)
        thread = threading.Thread(target=process_folder, args=(tmp_path, os.getpid()), daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()
        assert process_folder(tmp_path, os.getpid()).is_dir()


@pytest.mark.parametrize("name", ["coding_gym.git", "coding_gym.old", "coding-gym"])
def test_folders_that_a_user_made_are_kept(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    process_folder(tmp_path, os.getpid())
    assert (tmp_path / name).is_dir()
