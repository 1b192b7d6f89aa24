"""What containers cost: a new one, ``docker exec``, and the docker backend's own channel."""

import io
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from figures import Figure, in_blocks, interleaved, ratio
from fixtures import docker_engine

from coding_gym.errors import CodingGymError
from coding_gym.sandbox import SandboxSpec, get_backend, open_sandbox

_IMAGE = "coding-gym-bench:git"
_EXEC, _RUN = "docker exec / sandbox.run", "docker run --rm / sandbox reset + first command"
_STEP = "docker backend step / docker exec"
_PROGRAMS = ("bash", "cat", "env", "git", "ls", "mkdir", "rm", "sh", "sleep", "true")


@cache
def git_image() -> str:
    """Makes an image of bash, git and little else from this machine's own files.

    Returns:
        Its name.
    """
    paths = {Path(shutil.which(name) or "") for name in _PROGRAMS}
    core = subprocess.run(
        ["git", "--exec-path"],  # noqa: S607 - the user's git
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    paths |= {Path(core) / name for name in ("git", "git-upload-pack", "git-remote-https")}
    listing = subprocess.run(
        ["ldd", *map(str, paths)],  # noqa: S607 - where the linker's tools are
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = {str(path) for path in paths} | set(re.findall(r"(/[^ :]+) \(0x", listing))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as archive:
        for name in sorted(names):
            archive.add(name, str(Path(name).parent.resolve() / Path(name).name).lstrip("/"))
        for name in ("bin", "lib", "lib64"):
            if (link := Path("/") / name).is_symlink():
                archive.addfile(_entry(name, tarfile.SYMTYPE, str(link.readlink())))
        for name in ("tmp", "root"):
            archive.addfile(_entry(name, tarfile.DIRTYPE))
    command = ["docker", "import", "-c", f"ENV PATH=/usr/bin:/bin GIT_EXEC_PATH={core}", "-"]
    subprocess.run([*command, _IMAGE], input=buffer.getvalue(), check=True, capture_output=True)
    return _IMAGE


def _entry(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.linkname = kind, 0o777, target
    return entry


@contextmanager
def container() -> Iterator[str]:
    """Gives the id of a running container."""
    argv = ["docker", "run", "--rm", "-d", "--network=none", git_image(), "sleep", "100000"]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    name = done.stdout.strip()
    try:
        yield name
    finally:
        subprocess.run(["docker", "kill", name], check=False, capture_output=True)  # noqa: S607 - the user's docker


def docker(rounds: int) -> list[Figure]:
    """Times ``docker exec`` and ``docker run`` against a sandbox, and the docker backend's step."""
    if reason := docker_engine():
        return [Figure(name=name, absent=reason) for name in (_EXEC, _RUN, _STEP)]
    few = max(5, rounds // 10)
    image = git_image()
    run = ["docker", "run", "--rm", "--network=none", image, "bash", "-c", "true"]

    def reset() -> None:
        with open_sandbox(SandboxSpec()) as fresh:
            fresh.run("true")

    with container() as name, open_sandbox(SandboxSpec()) as sandbox:
        execute = ["docker", "exec", name, "bash", "-c", "true"]
        steps: dict[str, Callable[[], object]] = {
            "exec": lambda: subprocess.run(execute, check=True, capture_output=True),
            "step": lambda: sandbox.run("true"),
        }
        took, mixed = in_blocks(steps, rounds), interleaved(steps, few)
        whole = interleaved(
            {
                "run": lambda: subprocess.run(run, check=True, capture_output=True),
                "reset": reset,
            },
            few,
        )
    return [
        ratio(_EXEC, took["exec"], took["step"], 40, is_floor=True),
        ratio(f"{_EXEC}, one by one in turn", mixed["exec"], mixed["step"]),
        ratio(_RUN, whole["run"], whole["reset"]),
        _backend_step(few),
    ]


def _backend_step(rounds: int) -> Figure:
    spec = SandboxSpec(image=git_image())
    try:
        with container() as name, get_backend("docker").open(spec) as sandbox:
            execute = ["docker", "exec", name, "bash", "-c", "true"]
            took = interleaved(
                {
                    "exec": lambda: subprocess.run(execute, check=True, capture_output=True),
                    "step": lambda: sandbox.run("true"),
                },
                rounds,
            )
    except CodingGymError as error:
        return Figure(name=_STEP, absent=str(error))
    return ratio(_STEP, took["step"], took["exec"], 0.1)
