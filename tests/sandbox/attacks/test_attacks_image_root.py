"""Root of an image is nobody outside; other modules run attacks as root of an image too."""

import pytest
from arena import Arena
from sandbox_fixtures import BACKEND, output

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("arena", ["image root"], indirect=True),
]


def test_root_of_an_image_is_nobody_outside(arena: Arena) -> None:
    with arena.open() as attacker:
        assert output(attacker, "id -u; touch /opt/gate/made") == "0\n"
        facts = (arena.host.gate / "made").stat()
        assert (facts.st_uid, facts.st_gid) == BACKEND.owner()
        assert facts.st_uid != 0
        (arena.host.gate / "made").unlink()


def test_no_mount_of_an_image_gives_rights_or_devices(arena: Arena) -> None:
    with arena.open() as attacker:
        lines = attacker.read_file("/proc/self/mountinfo").decode().splitlines()
    options = {line.split()[4]: set(line.split()[5].split(",")) for line in lines}
    assert all("nosuid" in flags for flags in options.values())
    devices = {place for place, flags in options.items() if "nodev" not in flags}
    assert all(place == "/dev" or place.startswith("/dev/") for place in devices)
