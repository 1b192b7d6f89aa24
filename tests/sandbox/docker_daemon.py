"""A daemon of the test run's own: private socket, private folder, ended with the run."""

import contextlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from image_fixtures import libraries
from sandbox_fixtures import wait_until

from coding_gym.errors import SandboxUnavailableError
from coding_gym.sandbox.containers.engine import Engine, connect

_PATIENCE_S = 60


@contextlib.contextmanager
def running(name: str) -> Iterator[Engine]:
    """Starts ``dockerd`` or ``podman``; its image is made of this machine's programs."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"no {name}; on Debian: apt-get install docker.io podman")
    if os.geteuid() != 0:
        pytest.skip(f"only root can start {name}")
    # Not below tmp_path, which is too long for a socket.
    folder = Path(tempfile.mkdtemp(prefix="cg-docker-"))
    host = f"unix://{folder}/docker.sock"
    (folder / "none.json").write_text("{}", encoding="utf-8")  # not that of the machine
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
            cwd=folder,  # Podman's helpers write there
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
    """Returns a connection to a daemon once it listens; None before."""
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
        places = [line.split()[1] for line in mounts]
        left = [place for place in places if Path(place).is_relative_to(folder)]
        for place in reversed(left):
            subprocess.run(["umount", place], check=False)  # noqa: S607 - anywhere
        shutil.rmtree(folder, ignore_errors=time.monotonic() < deadline)


NAME = "coding-gym-test:host"
_PROGRAMS = (
    "bash sh base64 env cat head tail ls mkdir rm rmdir cp mv ln chmod chown touch stat wc tr cut "
    "sort seq yes sleep true false echo printf test id uname date dd df du find grep sed awk "
    "xargs readlink realpath mkfifo mktemp timeout kill ps tar gzip od cmp diff md5sum "
    "sha256sum tee tty truncate fallocate nice nohup setsid basename dirname expr hostname "
    "mount umount unshare git python3 comm uniq join paste split nl tac printenv install whoami "
    "ldd setpriv which file patch diff3 less nproc free pgrep pkill "
)
_PYTHON = "import sysconfig; print(sysconfig.get_path('stdlib'))"
_USERS = "root:x:0:0:root:/root:/bin/bash\ncoder:x:1234:1234::/home/coder:/bin/bash\n"
_GROUPS = "root:x:0:\ncoder:x:1234:\n"


@cache
def tar_of_this_machine() -> bytes:
    """Returns the tar of a root folder with bash, the usual small programs, git and Python."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in ("bin", "lib", "lib64", "sbin"):
            link = Path("/", name)
            if link.is_symlink():
                tar.add(link, name)
        for name, mode in (("tmp", 0o1777), ("root", 0o700), ("home", 0o755), ("proc", 0o555)):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            tar.addfile(entry)
        entry = tarfile.TarInfo("usr/bin/python")
        entry.type, entry.linkname = tarfile.SYMTYPE, "python3"
        tar.addfile(entry)
        for name, text in (("passwd", _USERS), ("group", _GROUPS)):
            entry = tarfile.TarInfo(f"etc/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
        for path in sorted(set(_files())):
            tar.add(path, str(path).lstrip("/"), filter=_lean)
    return buffer.getvalue()


def _lean(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leaves out what only makes the image larger."""
    parts = Path(entry.name).parts
    skipped = {"__pycache__", "test", "tests", "idlelib", "tkinter", "site-packages"}
    return None if skipped & set(parts) else entry


def _files() -> Iterator[Path]:
    places = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    paths = (shutil.which(name, path=places) for name in _PROGRAMS.split())
    found = [Path(path) for path in paths if path]
    yield from _with_targets(found)
    stdlib = Path(_output("/usr/bin/python3", "-S", "-c", _PYTHON).strip())
    yield stdlib
    yield from Path("/usr/lib/locale").glob("C.*")
    helpers = Path(_output("git", "--exec-path").strip())
    yield helpers
    extensions = (stdlib / "lib-dynload").glob("*.so")
    yield from _with_targets(map(Path, libraries((*found, *extensions))))


def _with_targets(paths: Iterable[Path]) -> Iterator[Path]:
    """Yields files and what their symbolic links lead to, by their paths in merged folders."""
    for path in paths:
        link = path.parent.resolve() / path.name
        yield link
        while link.is_symlink():
            link = (link.parent / link.readlink()).parent.resolve() / link.readlink().name
            yield link


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
