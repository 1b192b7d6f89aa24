"""What docs/sandboxes.md says of `namespace`: its namespaces, the flags of its mounts, its seed."""

from pathlib import Path

import pytest
from sandbox_scene import make_sandbox

from coding_gym.sandbox import Sandbox

NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
# What commands may write to. The kernel keeps what it shows in /proc from an unprivileged user.
WRITABLE = ("/workspace", "/tmp", "/home/agent", "/dev/shm", "/dev/pts", "/proc")


@pytest.fixture
def flags(sandbox: Sandbox) -> dict[str, set[str]]:
    """The options of each mount that a command sees, by its place."""
    lines = sandbox.run("cat /proc/self/mounts").output.splitlines()
    return {place: set(options.split(",")) for _, place, _, options, *_ in map(str.split, lines)}


def test_no_mount_honours_set_user_id_bits(flags: dict[str, set[str]]) -> None:
    assert "/usr" in flags
    assert [place for place, options in flags.items() if "nosuid" not in options] == []


def test_devices_exist_in_dev_alone(flags: dict[str, set[str]]) -> None:
    with_devices = {place for place, options in flags.items() if "nodev" not in options}
    assert all(f"{place}/".startswith("/dev/") for place in with_devices), with_devices


def test_mounts_are_read_only_but_for_the_writable_ones(flags: dict[str, set[str]]) -> None:
    assert {place for place, options in flags.items() if "ro" not in options} == {*WRITABLE}


@pytest.mark.parametrize("name", NAMESPACES)
def test_a_sandbox_has_a_namespace_of_its_own(name: str) -> None:
    with make_sandbox() as one, make_sandbox() as other:
        link = f"/proc/self/ns/{name}"
        seen = [sandbox.run(f"readlink {link}").output.strip() for sandbox in (one, other)]
    assert len({*seen, str(Path(link).readlink())}) == 3


def test_the_name_of_the_machine_is_not_the_hosts(sandbox: Sandbox) -> None:
    assert sandbox.run("uname -n; echo $HOSTNAME").output == "sandbox\nsandbox\n"


def test_programs_hash_texts_alike_in_every_run(sandbox: Sandbox) -> None:
    script = "python -c 'print(hash(\"text\"))'"
    assert sandbox.run(script).output == sandbox.run(script).output != ""
