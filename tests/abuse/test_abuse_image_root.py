"""The same attacks by root of an image, who is nobody outside."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import test_abuse_exhaustion
import test_abuse_first_process
import test_abuse_host_files
import test_abuse_kernel_surface
import test_abuse_network
import test_abuse_rights
import test_abuse_secrets
import test_abuse_shared_stores
import test_abuse_writing
from arena import TIGHT, Arena
from attack import Attack
from making_images import docker_archive, folder, symlink, system, tar_of

from coding_gym.sandbox import Mount, SandboxSpec, default_interpreter

# What root of an image may do in it, for its root is its own, and accounts that it has.
_ALLOWED = {
    "setuid programs of the host",
    "a setuid program of its own",
    "other users",
    "every mount outside the writable folders",
    "links to files of the host",
    "everything that may be removed",
    "names of machine, cgroup and accounts",
}
_TABLES = (
    *(test_abuse_first_process.ATTACKS, test_abuse_rights.ATTACKS, test_abuse_network.ATTACKS),
    *(
        test_abuse_writing.ATTACKS,
        test_abuse_secrets.ATTACKS,
        test_abuse_host_files.ATTACKS,
        test_abuse_kernel_surface.OTHERS,
    ),
)
_ATTACKS = [attack for table in _TABLES for attack in table if attack.name not in _ALLOWED]

_FLOODS = (*test_abuse_exhaustion.ATTACKS, *test_abuse_shared_stores.ATTACKS)


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
    with _changed(
        arena,
        image=str(path),
        python=None,
        path=("/opt/bin", "/bin", "/usr/bin"),
        mounts=(*arena.spec.mounts, *(Mount(source=p, target=str(p)) for p in shown)),
    ):
        yield


@contextmanager
def _changed(arena: Arena, **changes: object) -> Iterator[None]:
    before: SandboxSpec = arena.spec
    arena.spec = replace(before, **changes)
    yield
    arena.spec = before


@pytest.mark.parametrize("attack", _ATTACKS, ids=str)
def test_root_of_an_image_is_held_off_too(image: None, arena: Arena, attack: Attack) -> None:
    arena.hold_off(attack)


@pytest.mark.parametrize("attack", _FLOODS, ids=str)
def test_limits_hold_for_root_of_an_image_too(image: None, arena: Arena, attack: Attack) -> None:
    arena.hold_off(attack, TIGHT)


def test_root_of_an_image_is_nobody_outside(image: None, arena: Arena) -> None:
    with arena.open() as attacker:
        assert attacker.run("id -u; touch /opt/gate/made").output == "0\n"
        made = arena.host.gate_mount.source / "made"
        facts = made.stat()
        assert (facts.st_uid, facts.st_gid) == arena.backend.owner()
        assert facts.st_uid != 0
        made.unlink()
