"""Whom an image's commands run as."""

import tarfile
from pathlib import Path

import pytest
from making_images import LAYERS, Get, Refused, docker_archive, entry, folder, symlink, tar_of


@pytest.mark.parametrize(
    ("wanted", "uid", "gid", "name"),
    [
        ("", 0, 0, "root"),
        ("0", 0, 0, "root"),
        ("root", 0, 0, "root"),
        ("me", 7, 8, "me"),
        ("7", 7, 8, "me"),
        ("me:50", 7, 50, "me"),
        ("me:wheel", 7, 10, "me"),
        ("4000", 4000, 0, "4000"),
        ("4000:5", 4000, 5, "4000"),
    ],
)
def test_the_user_is_looked_up_in_the_image(
    tmp_path: Path, get: Get, wanted: str, uid: int, gid: int, name: str
) -> None:
    layers = [LAYERS[0], tar_of([entry("etc/group", "wheel:x:10:\n")])]
    user = get(docker_archive(tmp_path / "image.tar", layers, User=wanted)).user
    assert (user.uid, user.gid, user.name) == (uid, gid, name)


def test_a_name_that_no_variable_can_hold_is_no_name(tmp_path: Path, get: Get) -> None:
    odd = entry("etc/passwd", "a\0b:x:7:8:::\n")
    user = get(docker_archive(tmp_path / "image.tar", [tar_of([odd])], User="7")).user
    assert (user.uid, user.gid, user.name) == (7, 0, "7")


@pytest.mark.parametrize("wanted", ["nobody-here", "me:nothing", "4294967295", "-1", "9" * 30])
def test_a_user_that_the_image_does_not_have_is_refused(
    tmp_path: Path, refused: Refused, wanted: str
) -> None:
    path = docker_archive(tmp_path / "image.tar", LAYERS, User=wanted)
    assert repr(wanted) in refused(path)


@pytest.mark.parametrize(
    "above",
    [
        [entry("etc/.wh.passwd")],
        [folder("etc"), entry("etc/.wh..wh..opq")],
        [entry(".wh.etc")],
        [symlink("etc", "/etc")],
        [folder("etc"), symlink("etc/passwd", "/etc/passwd")],
    ],
    ids=["removed", "opaque", "removed folder", "linked folder", "linked file"],
)
def test_users_are_not_looked_up_where_an_overlay_would_not_show_them_or_on_the_host(
    tmp_path: Path, refused: Refused, above: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    path = docker_archive(tmp_path / "image.tar", [LAYERS[0], tar_of(above)], User="me")
    assert "whom its /etc/passwd does not have" in refused(path)
    wanted = Path("/etc/passwd").read_text().splitlines()[1].split(":")[0]
    path = docker_archive(tmp_path / "image.tar", [LAYERS[0], tar_of(above)], User=wanted)
    assert "whom its /etc/passwd does not have" in refused(path)
