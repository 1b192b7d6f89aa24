"""Isolation and end of ``landlock`` sandboxes, beyond the conformance tests."""

import errno
import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sandbox_fixtures import (
    MakeLayer,
    alive_pipe,
    first_pid,
    helper_pid,
    output,
    python_output,
    tree,
    wait_gone,
    watchdog_pid,
)

from coding_gym.errors import SandboxError
from coding_gym.sandbox import (
    Mount,
    Sandbox,
    SandboxSpec,
    default_interpreter,
    landlock,
    served_sandbox,
)
from coding_gym.sandbox.inside import landlock_rules
from coding_gym.sandbox.landlock import _UIDS, LandlockBackend
from coding_gym.sandbox.ownership import UNPRIVILEGED

_BACKEND = LandlockBackend()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0, reason="landlock needs root, to give each sandbox a user"
    ),
    pytest.mark.skipif(landlock_rules.abi() < 6, reason="needs Landlock with scopes"),
]


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with _BACKEND.open(SandboxSpec(python=default_interpreter())) as opened:
        yield opened


def test_proc_entries_are_unreadable(sandbox: Sandbox) -> None:
    for name in ("environ", "cmdline", "maps", "cwd/", "root/", "fd/", "mounts"):
        for pid in (os.getpid(), "1", "self"):
            assert sandbox.run(f"ls /proc/{pid}/{name} && cat /proc/{pid}/{name}").exit_code != 0


def test_owner_calls_refuse_links_to_proc_files(sandbox: Sandbox) -> None:
    for path in (f"/proc/{os.getpid()}/cmdline", "/proc/net/unix", "/proc/self/status"):
        assert sandbox.run(f"ln -sf {path} link").exit_code == 0
        with pytest.raises(PermissionError):
            sandbox.read_file("link")
        with pytest.raises(PermissionError):
            sandbox.write_file("link", b"x")
    assert sandbox.read_file("/proc/version").startswith(b"Linux")


def test_other_sandboxes_and_their_files_are_inaccessible(sandbox: Sandbox) -> None:
    with _BACKEND.open(SandboxSpec()) as other:
        other.write_file("secret", b"of the other")
        assert sandbox.run("id -u").output != other.run("id -u").output
        for action in ("cat", "truncate -s 0", "rm"):
            assert sandbox.run(f"{action} {other.workdir}/secret").exit_code != 0
        assert sandbox.run(f"ls {Path(other.workdir).parent}").exit_code != 0
        for pid in (watchdog_pid(other), first_pid(other)):
            assert sandbox.run(f"kill -9 {pid}").exit_code != 0
        assert other.read_file("secret") == b"of the other"


def test_first_process_and_watchdog_cannot_be_signalled(sandbox: Sandbox) -> None:
    for pid in (helper_pid(_BACKEND), watchdog_pid(sandbox), first_pid(sandbox), os.getpid()):
        for number in ("KILL", "STOP", "TERM", "0"):
            assert sandbox.run(f"kill -{number} {pid}").exit_code != 0
    script = (
        "import errno, resource\n"
        f"for pid in {(helper_pid(_BACKEND), watchdog_pid(sandbox), first_pid(sandbox))}:\n"
        "    try: resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3)); print('done')\n"
        "    except OSError as error: print(errno.errorcode[error.errno])\n"
    )
    assert python_output(sandbox, script).split() == ["EPERM"] * 3
    assert sandbox.run("kill -9 -1; echo on").output == "on\n"
    assert sandbox.run("echo next").output == "next\n"


@pytest.mark.parametrize("abi", [2, 6])
def test_host_files_cannot_change(abi: int) -> None:
    script = (
        "import errno, os, sys\n"
        "from ctypes import CDLL\n"
        "libc, modes = CDLL(None), (os.O_RDONLY, os.O_WRONLY, os.O_ACCMODE)\n"
        "def attempt(*actions):\n"
        "    for action in actions:\n"
        "        try: action(); print('done')\n"
        "        except OSError as error: print(errno.errorcode[error.errno])\n"
        "attempt(lambda: os.listdir(os.path.dirname(sys.argv[1])))\n"
        "for path in sys.argv[1:]:\n"
        "    os.symlink(path, 'link')\n"
        "    held = os.open(os.path.dirname(path), os.O_PATH)\n"
        "    attempt(lambda: os.chmod(path, 0), lambda: os.chmod('link', 0),\n"
        "            lambda: os.chmod('file', 0, dir_fd=held), lambda: os.chmod('..', 0),\n"
        "            lambda: os.utime(path, (1, 1)), lambda: os.chown(path, os.getuid(), -1),\n"
        "            lambda: os.setxattr(path, 'user.x', b'1'), lambda: os.truncate(path, 0),\n"
        "            *(lambda m=m: os.open(path, m | os.O_TRUNC) for m in modes),\n"
        "            lambda: os.unlink(path), lambda: os.link(path, 'linked'),\n"
        "            lambda: os.rename(path, 'moved'))\n"
        "    os.unlink('link')\n"
        "for call in (libc.utimes, libc.utime): print(call(sys.argv[1].encode(), None))\n"
        "open(sys.argv[0], 'w')\n"
    )
    refused = {"EPERM", "EACCES", "ENOTSUP", "EXDEV", "-1"}
    with tree(_BACKEND, {"file": "kept"}) as outside, tree(_BACKEND, {"file": "kept"}) as source:
        source.chmod(0o777)
        (source / "file").chmod(0o666)  # a mode with which every user may write to it
        before = (outside / "file").stat()
        mount = Mount(source=source, target="/opt/shown")
        spec = SandboxSpec(python=default_interpreter(), mounts=(mount,))
        with LandlockBackend(abi=abi).open(spec) as sandbox:
            sandbox.write_file("script.py", script.encode())
            shown = f"{sandbox.path(mount.target)}/file"
            printed = output(sandbox, f"python script.py {outside}/file {shown}").split()
        after = (outside / "file").stat()
        assert (after.st_mode, after.st_ctime_ns) == (before.st_mode, before.st_ctime_ns)
        assert {(folder / "file").read_text() for folder in (outside, source)} == {"kept"}
        assert (source / "file").stat().st_mode & 0o777 == 0o666
    assert (len(printed), {*printed} - refused) == (1 + 2 * 14 + 2, set())


def test_only_connected_socket_pairs_are_allowed(sandbox: Sandbox) -> None:
    script = (
        "import socket\n"
        "for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK, 40):\n"
        "    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):\n"
        "        try: socket.socket(family, kind); print(family, kind)\n"
        "        except OSError: pass\n"
        "for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):\n"
        "    try: socket.socketpair(socket.AF_UNIX, kind); print('datagrams')\n"
        "    except OSError: pass\n"
        "one, other = socket.socketpair()\n"
        "one.sendall(b'through'); print(other.recv(10))\n"
        "try: one.connect('/run/x'); print('connected')\n"
        "except OSError as error: print(error.errno)\n"
    )
    assert python_output(sandbox, script).split() == ["b'through'", str(errno.EACCES)]


def test_uniting_layers_does_not_follow_links(make_layer: MakeLayer, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    top, bottom = make_layer({"x": ""}), make_layer({"a/kept": "changed", "a/new": "new"})
    (top / "a").symlink_to(outside)
    (bottom / "x2").symlink_to("/etc/hostname")
    with _BACKEND.open(SandboxSpec(layers=(top, bottom))) as sandbox:
        assert sandbox.run("readlink a; readlink x2").output == f"{outside}\n/etc/hostname\n"
    assert [p.name for p in outside.iterdir()] == ["kept"]
    assert (outside / "kept").read_text() == "kept"


def test_setuid_bits_of_a_layer_are_dropped(make_layer: MakeLayer) -> None:
    layer = make_layer({"run": "#!/bin/sh\n"})
    (layer / "run").chmod(0o6755)
    with _BACKEND.open(SandboxSpec(layers=(layer,))) as sandbox:
        assert sandbox.run("stat -c %a run").output == "755\n"


def test_other_users_cannot_use_files_of_a_sandbox(make_layer: MakeLayer) -> None:
    source = make_layer({"file": "private"})
    source.parent.chmod(0o700)
    mount = Mount(source=source, target="/opt/shown")
    with _BACKEND.open(SandboxSpec(mounts=(mount,))) as sandbox:
        command = "umask 0; cp /usr/bin/id id; chmod 4755 id; chmod 777 .; ./id -u"
        uid = sandbox.run(command).output.strip()
        script = (
            f"{sandbox.workdir}/id; ls {sandbox.workdir}; cat {sandbox.path('/opt/shown')}/file"
        )
        user: Any = {"user": 65534, "group": 65534, "extra_groups": []}
        other = subprocess.run(
            ["/bin/bash", "-c", script], capture_output=True, check=False, **user
        )
    assert (int(uid) in _UIDS, other.stdout) == (True, b"")


def test_opening_leaves_the_callers_random_numbers_unchanged() -> None:
    state = random.getstate()
    _BACKEND.open(SandboxSpec()).close()
    assert random.getstate() == state


def test_uids_of_accounts_and_processes_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    account, busy, free = 1, *_UIDS[:2]
    uids = (UNPRIVILEGED, *_UIDS)
    assert all(60705 < uid < 61184 or 65535 < uid < 100_000 for uid in uids)
    assert len({*uids}) == len(uids)
    monkeypatch.setattr(landlock, "_UIDS", (account, busy, free))
    with subprocess.Popen(["/bin/sleep", "60"], user=busy) as process:
        with _BACKEND.open(SandboxSpec()) as sandbox:
            assert sandbox.run("id -u").output == f"{free}\n"
            with pytest.raises(SandboxError):
                _BACKEND.open(SandboxSpec())
        assert process.poll() is None
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("pid_of", [first_pid, watchdog_pid])
def test_a_signal_ends_the_sandbox(pid_of: Callable[..., int], number: signal.Signals) -> None:
    with alive_pipe(_BACKEND) as alive, ThreadPoolExecutor(1) as pool:
        with _BACKEND.open(SandboxSpec(mounts=(alive.mount,))) as sandbox:
            folder = Path(sandbox.workdir).parent
            pipe = alive.path(sandbox)
            pid = pid_of(sandbox)
            future = pool.submit(sandbox.run, f"exec 3> {pipe}; echo >&3; sleep 60")
            alive.wait_opened()
            os.kill(pid, number)
            with pytest.raises(SandboxError):
                future.result(10)
            with pytest.raises(SandboxError):
                sandbox.run("true")
        assert alive.is_closed(10), "the command still runs"
        assert not folder.exists()


def test_close_kills_commands_that_stopped_their_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_sandbox, "_REPLY_TIMEOUT_S", 0.5)
    with alive_pipe(_BACKEND) as alive:
        # Before ABI 6, commands can signal the server.
        with LandlockBackend(abi=5).open(SandboxSpec(mounts=(alive.mount,))) as sandbox:
            folder = Path(sandbox.workdir).parent
            pipe = alive.path(sandbox)
            with pytest.raises(SandboxError):
                sandbox.run(f"kill -STOP $PPID; exec 3> {pipe}; sleep 60", timeout_s=0.5)
        assert alive.is_closed(10), "the command still runs"
        assert not folder.exists()


def test_sandboxes_survive_the_end_of_the_zygote() -> None:
    with _BACKEND.open(SandboxSpec()) as sandbox:
        zygote = helper_pid(_BACKEND)
        os.kill(zygote, signal.SIGKILL)
        assert wait_gone([zygote], 10) == []
        assert sandbox.run("echo on").output == "on\n"
        with _BACKEND.open(SandboxSpec()) as another:
            assert another.run("echo back").output == "back\n"
            sessions = {os.getsid(watchdog_pid(opened)) for opened in (sandbox, another)}
            assert sessions == {watchdog_pid(sandbox), watchdog_pid(another)}
        watchdog = watchdog_pid(sandbox)
    assert wait_gone([watchdog], 10) == []


def test_copies_of_unreachable_folders_are_freed(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    file = tmp_path / "source" / "below" / "file"
    file.parent.mkdir(parents=True)
    mount = Mount(source=tmp_path / "source", target="/opt/shown")
    for number in range(12):  # each edit needs another copy
        file.write_text(f"{number}")
        with _BACKEND.open(SandboxSpec(mounts=(mount,))) as sandbox:
            shown = sandbox.path("/opt/shown")
            assert sandbox.run(f"cat {shown}/below/file").output == f"{number}"
    assert 0 < len([*Path(shown).parents[1].glob("copies-*")]) <= 8
