"""What a command in a namespace sandbox can see and do."""

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import coding_gym
from coding_gym.sandbox import Mount, Sandbox, SandboxLimits, SandboxSpec, default_interpreter
from coding_gym.sandbox.namespace import NamespaceBackend

if TYPE_CHECKING:
    from tests.sandbox.conftest import MakeLayer

PACKAGE = Path(coding_gym.__file__).parent


def test_commands_are_not_root_and_own_the_workspace(sandbox: Sandbox) -> None:
    assert sandbox.run("id -u; id -g; id -un; id -gn").output == "1000\n1000\nagent\nagent\n"
    assert sandbox.run("touch a; stat -c %u:%g a . ~ /tmp").output == "1000:1000\n" * 4


def test_the_host_uid_of_a_command_is_never_root(backend: NamespaceBackend, tmp_path: Path) -> None:
    uid, gid = backend.owner()
    os.chown(tmp_path, uid, gid)
    mount = Mount(source=tmp_path, target="/opt/out", writable=True)
    with backend.open(SandboxSpec(mounts=(mount,))) as sandbox:
        assert sandbox.run("touch /opt/out/made").exit_code == 0
    facts = (tmp_path / "made").stat()
    assert (facts.st_uid, facts.st_gid) == (uid, gid)
    assert uid != 0


def test_commands_have_no_capabilities_and_can_gain_none(sandbox: Sandbox) -> None:
    status = sandbox.run("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status").output
    fields = dict(line.split(":\t") for line in status.splitlines())
    sets = {fields[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
    assert {int(value, 16) for value in sets} == {0}
    assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")


def test_no_variable_of_the_host_is_visible(
    backend: NamespaceBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_HOST", "x")
    with backend.open(SandboxSpec()) as sandbox:
        command = "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; env"
        assert "SECRET_OF_THE_HOST" not in sandbox.run(command).output


def test_nothing_outside_is_reachable_while_the_loopback_device_is_up(sandbox: Sandbox) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        refused = sandbox.run(f"exec 3<>/dev/tcp/127.0.0.1/{port}")
        assert "Connection refused" in refused.output
    outside = sandbox.run("exec 3<>/dev/tcp/192.0.2.1/80", timeout_s=10)
    assert "Network is unreachable" in outside.output
    script = (
        "import socket\n"
        "for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):\n"
        "    server = socket.create_server((host, 0), family=family)\n"
        "    socket.create_connection(server.getsockname()[:2]).close()\n"
    )
    sandbox.write_file("loop.py", script.encode())
    assert sandbox.run("python loop.py").output == ""


def test_only_the_allow_list_of_folders_exists(sandbox: Sandbox) -> None:
    top = set(sandbox.run("ls -A /").output.split())
    prefix = default_interpreter().prefix.parts
    libraries = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}
    made = {"dev", "etc", "home", "opt", "proc", "run", "sandbox", "tmp", "usr", "var", "workspace"}
    assert made <= top
    assert top <= made | libraries | set(prefix[1:2])


def test_home_folders_of_the_host_are_absent(backend: NamespaceBackend) -> None:
    with backend.open(SandboxSpec()) as sandbox:
        assert sandbox.run("ls -A /home ~ /tmp /run /var").output.split() == [
            *("/home:", "agent", "/home/agent:", "/run:", "/tmp:", "/var:", "tmp")
        ]
        assert "No such file" in sandbox.run(f"ls {Path.home()}").output


def test_this_package_is_nowhere_to_be_found(sandbox: Sandbox) -> None:
    assert sandbox.run(f"ls {PACKAGE}").exit_code != 0
    found = sandbox.run("find / -name '*coding_gym*' -o -path '*/sandbox/zygote'")
    assert [line for line in found.output.splitlines() if "denied" not in line] == []


@pytest.mark.parametrize("folder", ["/", "/usr", "/etc", "/dev", "/opt", "/sandbox/bin", "/var"])
def test_the_root_is_read_only(sandbox: Sandbox, folder: str) -> None:
    assert "Read-only file system" in sandbox.run(f"touch {folder}/new").output


def test_a_sandbox_sees_no_process_but_its_own(sandbox: Sandbox) -> None:
    listing = sandbox.run("ls /proc | grep -c '^[0-9]'; cat /proc/1/cmdline /proc/1/mountinfo")
    assert int(listing.output.splitlines()[0]) <= 4
    assert listing.output.count("No such file or directory") == 2


def test_a_full_sandbox_says_so_and_keeps_old_files(backend: NamespaceBackend) -> None:
    limits = SandboxLimits(disk_bytes=4 << 20, num_inodes=500)
    with backend.open(SandboxSpec(limits=limits)) as sandbox:
        sandbox.write_file("kept", b"old")
        with pytest.raises(OSError, match="No space left"):
            sandbox.write_file("kept", bytes(8 << 20))
        with pytest.raises(OSError, match="No space left"):
            sandbox.write_file("new", bytes(8 << 20))
        assert sandbox.read_file("kept") == b"old"
        assert sandbox.run("ls").output == "kept\n"
        full = sandbox.run(
            "head -c 8M /dev/zero > /tmp/a; rm /tmp/a; for i in {1..600}; do : > $i; done"
        )
        assert full.output.count("No space left on device") >= 2


def test_limits_hold(backend: NamespaceBackend) -> None:
    limits = SandboxLimits(num_processes=20, file_bytes=1 << 20, num_open_files=32)
    with backend.open(SandboxSpec(limits=limits)) as sandbox:
        bounds = sandbox.run("for kind in u n Hn f c e r; do ulimit -$kind; done").output
        assert bounds.split() == ["20", "32", "32", "1024", "0", "0", "0"]
        many = sandbox.run("for i in {1..40}; do sleep 5 & done", timeout_s=1)
        assert "Resource temporarily unavailable" in many.output
        large = sandbox.run("head -c 2M /dev/zero > large; stat -c %s large")
        assert large.output.splitlines()[-1] == str(1 << 20)


def test_addresses_do_not_change_between_runs(sandbox: Sandbox) -> None:
    command = "python -c 'print(object())'"
    assert sandbox.run(command).output == sandbox.run(command).output


def test_listings_of_fresh_sandboxes_are_equal(
    backend: NamespaceBackend, make_layer: "MakeLayer"
) -> None:
    layer = make_layer({"folder/file": "x"})
    spec = SandboxSpec(layers=(layer,), python=default_interpreter())
    command = "ls -la --full-time / /etc /home /tmp /opt /sandbox/bin . folder | grep -v ' proc$'"
    with backend.open(spec) as sandbox:
        first = sandbox.run(command).output
    with backend.open(spec) as sandbox:
        assert sandbox.run(command).output == first


def test_git_works_without_configuration(sandbox: Sandbox) -> None:
    command = "git init -q . && git commit -q --allow-empty -m x && git log --format='%an %ae'"
    assert sandbox.run(command).output == "agent agent@example.org\n"


def test_bytecode_does_not_litter_the_workspace(sandbox: Sandbox) -> None:
    sandbox.write_file("module.py", b"")
    assert sandbox.run("python -c 'import module'; ls").output == "module.py\n"
