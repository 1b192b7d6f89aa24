"""What benchmarks measure with: repositories of any size, engines, programs, process trees."""

import contextlib
import importlib
import os
import re
import select
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from coding_gym import load_tasks
from coding_gym.task import Task
from coding_gym.workspace import Template, TemplateStore

_GIT = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org"]
_FILES_PER_FOLDER = 100
# They mount and unmount as they like, also while something is measured.
ENGINES = re.compile("docker|containerd|netns|kubelet|podman")
_LINES = "".join(f"def function_{n}(x):\n    return x + {n}\n" for n in range(20))


class AbsentError(Exception):
    """A peer is not there; says why."""


def peer(module: str, distribution: str) -> Any:
    """Returns a module of another project.

    Raises:
        AbsentError: It is not installed.
    """
    # They ask their server for prices on import.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise AbsentError(f"{error}; run: pip install {distribution}") from error


def repository(folder: Path, num_files: int) -> Path:
    """Makes a git repository with so many Python files, in one commit."""
    folder.mkdir(parents=True)
    for number in range(num_files):
        place = folder / f"package_{number // _FILES_PER_FOLDER}"
        place.mkdir(exist_ok=True)
        (place / f"module_{number}.py").write_text(f"NUMBER = {number}\n{_LINES}")
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "files"]):
        subprocess.run([*_GIT, "-C", str(folder), *command], check=True)
    return folder


def row(repository: Path, name: str) -> dict[str, str]:
    """Returns a task's row for the repository's last commit."""
    commit = subprocess.run(
        [*_GIT, "-C", str(repository), "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    return {
        "instance_id": name,
        "problem_statement": "nothing is wrong",
        "FAIL_TO_PASS": '["test_nothing.py::test_nothing"]',  # never graded
        "repository": str(repository),
        "base_commit": commit,
    }


def template(store: TemplateStore, task_row: dict[str, str]) -> tuple[Task, Template]:
    """Returns the row's task and its template."""
    task = load_tasks([task_row])[0]
    return task, store.get(task)


def tool(name: str) -> str | None:
    """Returns why a program cannot be used; None where it can."""
    return None if shutil.which(name) else f"{name} is not installed"


def docker_engine() -> str | None:
    """Returns why no docker engine can be used; None where one answers."""
    if reason := tool("docker"):
        return reason
    done = subprocess.run(
        ["docker", "version", "--format", "{{.Server.Version}}"],  # noqa: S607 - the user's docker
        capture_output=True,
        text=True,
        timeout=30,
    )
    return None if done.returncode == 0 else "no docker engine answers"


def children(pid: int) -> list[int]:
    """Returns the children of a process, by whichever of its threads."""
    found: list[int] = []
    with contextlib.suppress(OSError):  # it has ended
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def tree(pid: int) -> Iterator[int]:
    """Yields a process and all below it."""
    yield pid
    for child in children(pid):
        yield from tree(child)


def wait_gone(pidfds: Sequence[int], timeout_s: float) -> int:
    """Waits until the processes of these descriptors have ended; returns how many have not."""
    poller = select.poll()
    left = set(pidfds)
    for descriptor in left:
        poller.register(descriptor, select.POLLIN)
    while left:
        ready = poller.poll(timeout_s * 1000)
        if not ready:
            break
        for descriptor, _ in ready:
            poller.unregister(descriptor)
            left.discard(descriptor)
    return len(left)


def pidfds(pids: Sequence[int]) -> list[int]:
    """Returns descriptors of those of the processes that still run."""
    found = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            found.append(os.pidfd_open(pid))
    return found


def mounts(pid: int | str = "self") -> list[str]:
    """Returns the lines of the mounts that a process sees, without those of container engines."""
    with contextlib.suppress(OSError):  # it has ended, or only root may look
        text = Path(f"/proc/{pid}/mountinfo").read_text()
        return [line for line in text.splitlines() if not ENGINES.search(line)]
    return []


def pss_bytes(pids: Sequence[int]) -> int:
    """Returns the proportional set size of the processes together.

    Raises:
        PermissionError: Sandboxes can be read by root only.
    """
    total = 0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return total


def available_bytes() -> int:
    """Returns how much memory the system can still give."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0
