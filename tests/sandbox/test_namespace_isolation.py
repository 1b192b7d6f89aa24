"""What a command in a namespace sandbox can see and do, and what docs/sandboxes.md says of it."""

import os
import shutil
from pathlib import Path

import pytest
from sandbox_fixtures import BACKEND, MakeLayer, make_sandbox, run_on

import coding_gym
from coding_gym.sandbox import Mount, Sandbox, SandboxSpec, default_interpreter


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


def test_addresses_do_not_change_between_runs(sandbox: Sandbox) -> None:
    command = "python -c 'print(object())'"
    assert sandbox.run(command).output == sandbox.run(command).output


def test_git_works_without_configuration(sandbox: Sandbox) -> None:
    command = "git init -q . && git commit -q --allow-empty -m x && git log --format='%an %ae'"
    assert sandbox.run(command).output == "agent agent@example.org\n"


def test_bytecode_does_not_litter_the_workspace(sandbox: Sandbox) -> None:
    sandbox.write_file("module.py", b"")
    assert sandbox.run("python -c 'import module'; ls").output == "module.py\n"


def test_devices_exist_in_dev_alone(sandbox: Sandbox) -> None:
    for line in sandbox.run("cat /proc/self/mounts").output.splitlines():
        _, place, _, options, *_ = line.split()
        assert "nodev" in options.split(",") or f"{place}/".startswith("/dev/")


@pytest.mark.parametrize("name", ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"])
def test_a_sandbox_has_a_namespace_of_its_own(name: str) -> None:
    with make_sandbox() as one, make_sandbox() as other:
        link = f"/proc/self/ns/{name}"
        seen = [sandbox.run(f"readlink {link}").output.strip() for sandbox in (one, other)]
    assert len({*seen, str(Path(link).readlink())}) == 3


@pytest.mark.slow
def test_our_own_package_is_covered(make_layer: MakeLayer, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = make_layer({"share/kept": "y"})
    shutil.copytree(Path(coding_gym.__file__).parent, prefix / "src2" / "coding_gym")
    monkeypatch.chdir(prefix / "src2")  # it is imported from there
    script = f"""
from dataclasses import replace
from coding_gym.sandbox import SandboxSpec, default_interpreter, get_backend
python = replace(default_interpreter(), prefix=Path({str(prefix)!r}))
with get_backend("namespace").open(SandboxSpec(python=python)) as sandbox:
    print(sandbox.run("cd {prefix}; ls -A src2/coding_gym; cat share/kept").output)
"""
    ended = run_on("", script)
    assert (ended.stdout, ended.stderr) == ("y\n", "")


def test_mount_points_of_one_sandbox_do_not_show_in_another(make_layer: MakeLayer) -> None:
    mount = Mount(source=make_layer({}), target="/opt/only-here")
    with (
        make_sandbox(mounts=(mount,)) as one,
        make_sandbox() as other,
    ):
        assert one.run("ls /opt").output == "only-here\n"
        assert other.run("ls /opt").output == ""


@pytest.mark.parametrize("target", ["relative", "/", "/opt/../etc"])
def test_targets_that_cannot_be_are_refused(tmp_path: Path, target: str) -> None:
    with pytest.raises(ValueError, match="target"):
        make_sandbox(mounts=(Mount(source=tmp_path, target=target),))


def test_listings_of_fresh_sandboxes_are_equal(make_layer: MakeLayer) -> None:
    layer = make_layer({"folder/file": "x"})
    spec = SandboxSpec(layers=(layer,), python=default_interpreter())
    # The link count of /proc is that of the host's processes, and sets the width of its column.
    command = "ls -la --full-time --ignore=proc / /etc /home /tmp /opt /sandbox/bin . folder"
    with BACKEND.open(spec) as sandbox:
        first = sandbox.run(command).output
    with BACKEND.open(spec) as sandbox:
        assert sandbox.run(command).output == first


def test_third_party_packages_of_the_host_are_covered(sandbox: Sandbox) -> None:
    script = (
        "import os, site, sys\n"
        "for place in [*site.getsitepackages(), *(p for p in sys.path if 'packages' in p)]:\n"
        "    if os.path.isdir(place): print(os.listdir(place))\n"
    )
    sandbox.write_file("places.py", script.encode())
    for python in ("python", "/usr/bin/python3"):
        if sandbox.run(f"test -x $(command -v {python})").exit_code == 0:
            assert set(sandbox.run(f"{python} places.py").output.splitlines()) <= {"[]"}
    assert sandbox.run("python -c 'import gymnasium'").exit_code == 1
