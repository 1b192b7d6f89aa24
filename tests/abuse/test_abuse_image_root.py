"""One attack per promise by root of an image, who is nobody outside."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from arena import Arena
from attack import Attack
from attack_tables import TABLES, leading
from image_fixtures import docker_archive, folder, symlink, system, tar_of

from coding_gym.sandbox import Mount, default_interpreter

pytestmark = pytest.mark.slow

# What an image's root is made by code of its own for.
_OF_THE_ROOT = {
    "places that a sandbox is built from",
    "every file of the kernel's",
    "the host's device nodes",
}
_ATTACKS = [
    *map(leading, TABLES.values()),
    *(attack for table in TABLES.values() for attack in table if attack.name in _OF_THE_ROOT),
]


@pytest.fixture(scope="module")
def image(arena: Arena, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Makes the arena's attackers root of an image that shows this machine's Python."""
    python = default_interpreter()
    links = [folder("opt"), folder("opt/bin"), symlink("opt/bin/python", str(python.executable))]
    layers = [tar_of(system("true", "sleep")), tar_of(links)]
    path = docker_archive(tmp_path_factory.mktemp("image") / "image.tar", layers)
    shown = {Path("/usr")}
    if not python.prefix.is_relative_to("/usr"):
        shown.add(python.prefix)
    before = arena.spec
    arena.spec = replace(
        before,
        image=str(path),
        python=None,
        path=("/opt/bin", "/bin", "/usr/bin"),
        mounts=(*before.mounts, *(Mount(source=p, target=str(p)) for p in shown)),
    )
    yield
    arena.spec = before


@pytest.mark.parametrize("attack", _ATTACKS, ids=str)
def test_promise_is_kept_for_root_of_an_image(image: None, arena: Arena, attack: Attack) -> None:
    arena.assert_blocked(attack)


def test_root_of_an_image_is_nobody_outside(image: None, arena: Arena) -> None:
    with arena.open() as attacker:
        assert attacker.run("id -u; touch /opt/gate/made").output == "0\n"
        made = arena.host.gate_mount.source / "made"
        facts = made.stat()
        assert (facts.st_uid, facts.st_gid) == arena.backend.owner()
        assert facts.st_uid != 0
        made.unlink()


def test_no_mount_of_an_image_gives_rights_or_devices(image: None, arena: Arena) -> None:
    with arena.open() as attacker:
        lines = attacker.read_file("/proc/self/mountinfo").decode().splitlines()
    options = {line.split()[4]: set(line.split()[5].split(",")) for line in lines}
    assert all("nosuid" in flags for flags in options.values())
    devices = {place for place, flags in options.items() if "nodev" not in flags}
    assert all(place == "/dev" or place.startswith("/dev/") for place in devices)
