"""A daemon of the test run's own: private socket, private folder, ended with the run."""

import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from host_image import NAME, tar_of_this_machine

from coding_gym.errors import last_line
from coding_gym.sandbox.containers.engine import Engine, connect

READY = {"dockerd": "API listen on", "podman": "API service listening on"}
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
    daemon = subprocess.Popen(
        [program, *(podman if name == "podman" else dockerd)],
        cwd=folder,  # Podman's helpers write there
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with _watched(daemon, folder, READY[name]):
            engine = connect(host)
            engine.api.import_image_from_data(tar_of_this_machine(), NAME)
            yield engine
            engine.api.close()
    finally:
        _end(daemon)
        _remove(folder)


@contextlib.contextmanager
def _watched(daemon: "subprocess.Popen[str]", folder: Path, ready: str) -> Iterator[None]:
    """Waits until the daemon listens, and keeps its log from filling the pipe."""
    assert daemon.stderr is not None
    lines: list[str] = []
    alarm = threading.Timer(_PATIENCE_S, daemon.kill)
    alarm.start()
    with (folder / "log").open("w", encoding="utf-8") as log:
        for line in daemon.stderr:
            lines.append(line)
            log.write(line)
            if ready in line:
                break
        else:
            alarm.cancel()
            give_up = pytest.fail if "CI" in os.environ else pytest.skip
            give_up(f"{daemon.args} does not run here: {last_line(''.join(lines))}")
        alarm.cancel()
        drain = subprocess.Popen(["cat"], stdin=daemon.stderr, stdout=log)  # noqa: S607 - anywhere
    try:
        yield
    finally:
        daemon.terminate()
        drain.wait(_PATIENCE_S)


def _end(daemon: "subprocess.Popen[str]") -> None:
    daemon.terminate()
    try:
        daemon.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
    assert daemon.stderr is not None
    daemon.stderr.close()


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
