"""Starts a container daemon for the test run, with a private socket and folder."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from image_fixtures import (
    PROGRAMS,
    entry,
    folder,
    programs,
    symlink,
    tar_of,
    with_libraries,
)
from sandbox_fixtures import wait_until

from coding_gym.errors import SandboxUnavailableError
from coding_gym.sandbox.docker_engine import Engine, connect

_PATIENCE_S = 60


@contextlib.contextmanager
def running_daemon(name: str) -> Iterator[Engine]:
    """Runs ``dockerd`` or ``podman`` for the block, with an image of this machine's programs."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"no {name}; on Debian: apt-get install docker.io podman")
    if os.geteuid() != 0:
        pytest.skip(f"only root can start {name}")
    # Not below tmp_path, which is too long for a socket.
    folder = Path(tempfile.mkdtemp(prefix="cg-docker-"))
    host = f"unix://{folder}/docker.sock"
    (folder / "none.json").write_text("{}", encoding="utf-8")  # in place of the machine's
    dockerd = [
        *("--host", host, "--data-root", folder / "data", "--exec-root", folder / "x"),
        *("--pidfile", folder / "pid", "--config-file", folder / "none.json"),
        *("--bridge=none", "--iptables=false", "--ip6tables=false"),
    ]
    podman = [
        *("--root", folder / "data", "--runroot", folder / "x", "--cgroup-manager=cgroupfs"),
        *("--log-level=info", "system", "service", "--time=0", host),
    ]
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(
            [program, *(podman if name == "podman" else dockerd)],
            cwd=folder,  # Podman's helpers write to it
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        engine = wait_until(lambda: _connected(daemon, host), _PATIENCE_S)
        engine.api.import_image_from_data(tar_of_this_machine(), NAME)
        yield engine
        engine.api.close()
    finally:
        daemon.terminate()
        daemon.wait(_PATIENCE_S)
        _remove(folder)


def _connected(daemon: "subprocess.Popen[bytes]", host: str) -> Engine | None:
    """Returns a connection to a daemon; None if it does not listen yet."""
    if daemon.poll() is not None:
        give_up = pytest.fail if "CI" in os.environ else pytest.skip
        give_up(f"{daemon.args} does not run here")
    try:
        return connect(host)
    except SandboxUnavailableError:
        return None


def _remove(folder: Path) -> None:
    """Removes the daemon's folder and the mounts in it, once its helpers have ended."""
    deadline = time.monotonic() + _PATIENCE_S
    while folder.exists():
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
        targets = [line.split()[1] for line in mounts]
        own_targets = [target for target in targets if Path(target).is_relative_to(folder)]
        for target in reversed(own_targets):
            subprocess.run(["umount", target], check=False)  # noqa: S607 - anywhere
        shutil.rmtree(folder, ignore_errors=time.monotonic() < deadline)


NAME = "coding-gym-test:host"
_PROGRAMS = (
    "sh base64 head tail rmdir cp ln chown wc tr cut sort seq yes sleep true false echo printf "
    "test uname date dd df du find grep sed awk xargs readlink realpath mkfifo mktemp timeout kill "
    "ps tar gzip od cmp diff md5sum sha256sum tee tty truncate fallocate nice nohup setsid "
    "basename dirname expr hostname mount umount unshare git comm uniq join paste split nl tac "
    "printenv install whoami ldd setpriv which file patch diff3 less nproc free pgrep pkill"
)
_STDLIB = "import sysconfig; print(sysconfig.get_path('stdlib'), end='')"
_USERS = "root:x:0:0:root:/root:/bin/bash\ncoder:x:1234:1234::/home/coder:/bin/bash\n"


@cache
def tar_of_this_machine() -> bytes:
    """Returns the tar of a root folder with bash, the usual small programs, git and Python."""
    names = [name for name in (*PROGRAMS, *_PROGRAMS.split()) if shutil.which(name)]
    command = ["/usr/bin/python3", "-S", "-c", _STDLIB]
    stdlib = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    compiled = [Path(command[0]), *stdlib.glob("lib-dynload/*.so")]
    texts = [*stdlib.rglob("*.py"), *Path("/usr/lib/locale").glob("C.*/**/*")]  # bash reads UTF-8
    members = [
        *(folder("tmp", mode=0o1777), folder("root", mode=0o700), folder("home"), folder("proc")),
        *(entry("etc/passwd", _USERS), entry("etc/group", "root:x:0:\ncoder:x:1234:\n")),
        *(entry(str(path)[1:], path.read_bytes()) for path in texts if path.is_file()),
        *(symlink("usr/bin/python", "python3"), *programs(*names)),
        *with_libraries({str(path)[1:]: path for path in compiled}),
    ]
    return tar_of({info.name: (info, data) for info, data in members}.values())
