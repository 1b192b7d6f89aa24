"""Hostile images, and hostile commands of root in an image."""

from pathlib import Path

import pytest
from image_fixtures import Entry, MakeImage, entry, folder, symlink
from sandbox_fixtures import MakeLayer, make_sandbox
from sandbox_fixtures import stripped_output as output

from coding_gym.errors import InvalidArgumentError
from coding_gym.sandbox import Mount, SandboxLimits

pytestmark = pytest.mark.slow


def test_limits_hold_for_root_of_an_image(image: str) -> None:
    limits = SandboxLimits(num_processes=32, disk_bytes=8 << 20, num_inodes=300)
    with make_sandbox(image=image, limits=limits) as sandbox:
        # bash retries a failed fork for a while.
        many = sandbox.run("for i in {1..100}; do (while :; do :; done) & done", timeout_s=1)
        assert "Resource temporarily unavailable" in many.output
        assert not sandbox.run("ulimit -u 1000").ok
        full = sandbox.run("cat /dev/zero > /etc/filler; rm /etc/filler; cd /data; touch {1..400}")
        assert full.output.count("No space left on device") >= 2


def test_socket_buffers_of_an_image_are_bounded(image: str) -> None:
    with make_sandbox() as plain, make_sandbox(image=image) as sandbox:
        for name in ("tcp_rmem", "tcp_wmem"):
            path = f"/proc/sys/net/ipv4/{name}"
            assert sandbox.read_file(path) == plain.read_file(path)
            assert sandbox.read_file(path) != Path(path).read_bytes()


@pytest.mark.parametrize(
    "trap",
    [
        "rm /etc/hosts; ln -s /.old/mounted/1 /etc/hosts; ln -s / /.old",
        "mv /etc /etc2; ln -s /.old/parts /etc; mv /opt /o2; ln -s /.old /opt",
        "mv /home /home2; ln -s / /home; mv /a /a2; ln -s /tmp /a",
        "mv /a /a2; mkdir /a; ln -s /proc/self /a/b",
        "mv /opt /o2; mkdir /opt; ln -s /dev /opt/mount",
        "chmod 0 /etc /data",
    ],
)
def test_hostile_changes_can_be_restored(image: str, make_layer: MakeLayer, trap: str) -> None:
    mount = Mount(source=make_layer({"inner": "mounted"}), target="/opt/mount")
    with make_sandbox(image=image, workspace_alias="/a/b", mounts=(mount,)) as sandbox:
        sandbox.run(trap)
        taken = sandbox.snapshot()
        sandbox.restore(taken)
        assert output(sandbox, "echo x > /workspace/alive; ls /a/b") == "alive"
        assert output(sandbox, "ls /opt/mount") == "inner"
        assert "No such file" in sandbox.run("ls /.old").output


@pytest.mark.parametrize(
    "hostile",
    [
        [
            symlink("workspace", "/.old/tmp"),
            folder("home"),
            symlink("home/agent", "/.old/mounted/1"),
        ],
        [symlink("proc", "/.old"), symlink("dev", "/etc"), symlink("home", "/.old")],
        [symlink("etc/hosts", "/.old/mounted/1"), symlink("etc/resolv.conf", "../../x")],
        [entry("workspace", "a file"), entry("dev", "a file")],
    ],
    ids=lambda entries: entries[0][0].name if isinstance(entries, list) else None,
)
def test_links_at_mount_points_are_replaced(make_image: MakeImage, hostile: list[Entry]) -> None:
    with make_sandbox(image=make_image(hostile)) as sandbox:
        assert output(sandbox, "pwd; echo x > /workspace/f; echo y > ~/f; cat f ~/f") == (
            "/workspace\nx\ny"
        )
        assert output(sandbox, "cat /proc/self/status").startswith("Name:\tcat")
        assert "No such file" in sandbox.run("ls /.old").output


@pytest.mark.parametrize(
    "hostile",
    [
        [symlink("a", "b"), symlink("b", "a")],
        [symlink("a", "/proc")],
        [folder("a"), symlink("a/b", "/")],
    ],
    ids=["circle", "over /proc", "over the root"],
)
def test_an_alias_that_leads_outside_is_refused(
    make_image: MakeImage, hostile: list[Entry]
) -> None:
    with pytest.raises(InvalidArgumentError, match="/a/b"):
        make_sandbox(image=make_image(hostile), workspace_alias="/a/b")


@pytest.mark.parametrize("target", ["/.old/mounted", "c/../.old/mounted"])
def test_links_to_the_old_root_resolve_inside(make_image: MakeImage, target: str) -> None:
    image = make_image([folder("c"), symlink("a", target)])
    with make_sandbox(image=image, workspace_alias="/a/b") as sandbox:
        assert output(sandbox, "touch x; ls -A /.old /.old/mounted /a/b") == (
            "/.old:\nmounted\n\n/.old/mounted:\nb\n\n/a/b:\nx"
        )
