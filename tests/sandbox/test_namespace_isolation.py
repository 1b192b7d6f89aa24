"""What a command in a namespace sandbox can see and do."""

import os
from pathlib import Path

from sandbox_scene import BACKEND, MakeLayer, make_sandbox

from coding_gym.sandbox import Mount, Sandbox, SandboxLimits, SandboxSpec, default_interpreter


def test_commands_are_not_root_and_own_the_workspace(sandbox: Sandbox) -> None:
    assert sandbox.run("id -u; id -g; id -un; id -gn").output == "1000\n1000\nagent\nagent\n"
    assert sandbox.run("touch a; stat -c %u:%g a . ~ /tmp").output == "1000:1000\n" * 4


def test_the_host_uid_of_a_command_is_never_root(tmp_path: Path) -> None:
    uid, gid = BACKEND.owner()
    os.chown(tmp_path, uid, gid)
    mount = Mount(source=tmp_path, target="/opt/out", writable=True)
    with make_sandbox(mounts=(mount,)) as sandbox:
        assert sandbox.run("touch /opt/out/made").exit_code == 0
    facts = (tmp_path / "made").stat()
    assert (facts.st_uid, facts.st_gid) == (uid, gid)
    assert uid != 0


def test_the_loopback_device_is_up_and_refuses_at_once(sandbox: Sandbox) -> None:
    refused = sandbox.run("exec 3<>/dev/tcp/127.0.0.1/1")
    assert "Connection refused" in refused.output
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


def test_commands_see_the_limits_of_the_spec() -> None:
    limits = SandboxLimits(num_processes=20, file_bytes=1 << 20, num_open_files=32)
    with make_sandbox(limits=limits) as sandbox:
        bounds = sandbox.run("for kind in u n Hn f c e r; do ulimit -$kind; done").output
        assert bounds.split() == ["20", "32", "32", "1024", "0", "0", "0"]


def test_addresses_do_not_change_between_runs(sandbox: Sandbox) -> None:
    command = "python -c 'print(object())'"
    assert sandbox.run(command).output == sandbox.run(command).output


def test_listings_of_fresh_sandboxes_are_equal(make_layer: MakeLayer) -> None:
    layer = make_layer({"folder/file": "x"})
    spec = SandboxSpec(layers=(layer,), python=default_interpreter())
    # The link count of /proc is that of the host's processes, and sets the width of its column.
    command = "ls -la --full-time --ignore=proc / /etc /home /tmp /opt /sandbox/bin . folder"
    with BACKEND.open(spec) as sandbox:
        first = sandbox.run(command).output
    with BACKEND.open(spec) as sandbox:
        assert sandbox.run(command).output == first


def test_git_works_without_configuration(sandbox: Sandbox) -> None:
    command = "git init -q . && git commit -q --allow-empty -m x && git log --format='%an %ae'"
    assert sandbox.run(command).output == "agent agent@example.org\n"


def test_bytecode_does_not_litter_the_workspace(sandbox: Sandbox) -> None:
    sandbox.write_file("module.py", b"")
    assert sandbox.run("python -c 'import module'; ls").output == "module.py\n"
