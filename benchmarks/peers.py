"""Ways to run a command and to make a clean tree: this package and its alternatives."""

import asyncio
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from timing import ROOT, AbsentError, Maker, Work, module

from coding_gym import load_tasks
from coding_gym.sandbox import SandboxSpec, open_sandbox
from coding_gym.workspace import TemplateStore

_TRUE = ["bash", "-c", "true"]
NUM_FILES = 10_000
_FILES_PER_FOLDER = 100
_LINES = "".join(f"def function_{n}(x):\n    return x + {n}\n" for n in range(20))
_GIT = ["git", "-c", "user.name=bench", "-c", "user.email=bench@example.org"]
_IMAGE = "coding-gym-bench:git"
_PROGRAMS = ("bash", "env", "git", "git-upload-pack", "sh", "sleep", "true")

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # litellm then downloads no prices
os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")


def _check(exit_code: int) -> None:
    if exit_code != 0:
        raise RuntimeError(f"`true` must exit with 0, got {exit_code}")


def plain_process(_: ExitStack) -> Work:
    """Runs a process without isolation, which takes the minimum time."""
    return lambda: subprocess.run(_TRUE, check=True)


def package_command(stack: ExitStack) -> Work:
    """Runs the command in this package's default shell."""
    sandbox = stack.enter_context(open_sandbox(SandboxSpec()))
    return lambda: _check(sandbox.run("true").exit_code)


def nano(stack: ExitStack) -> Work:
    """Runs the command in nano-agent's local environment."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    env = module("nano.env", "nano-agent").LocalEnvironment(Path(folder))
    return lambda: _check(env.run_shell("true").returncode)


def mini_local(_: ExitStack) -> Work:
    """Runs the command in mini-swe-agent's local environment."""
    env = module("minisweagent.environments.local", "mini-swe-agent").LocalEnvironment()
    return lambda: _check(env.execute({"command": "true"})["returncode"])


def mini_bubblewrap(stack: ExitStack) -> Work:
    """Runs each command in a ``bwrap`` process of mini-swe-agent."""
    if shutil.which("bwrap") is None:
        raise AbsentError("bwrap is not installed; run: apt-get install bubblewrap")
    name = "minisweagent.environments.extra.bubblewrap"
    env = module(name, "mini-swe-agent").BubblewrapEnvironment()
    stack.callback(env.cleanup)
    return lambda: _check(env.execute({"command": "true"})["returncode"])


def swe_rex(stack: ExitStack) -> Work:
    """Runs all commands in one bash session of SWE-ReX."""
    runtime_module = module("swerex.runtime.local", "swe-rex")
    requests = module("swerex.runtime.abstract", "swe-rex")
    logging.getLogger("rex-runtime").setLevel(logging.ERROR)
    loop = asyncio.new_event_loop()
    stack.callback(loop.close)
    runtime = runtime_module.LocalRuntime()
    loop.run_until_complete(runtime.create_session(requests.CreateBashSessionRequest()))
    stack.callback(lambda: loop.run_until_complete(runtime.close()))
    action = requests.BashAction(command="true")
    return lambda: _check(loop.run_until_complete(runtime.run_in_session(action)).exit_code)


def docker_exec(stack: ExitStack) -> Work:
    """Runs the command in a container by ``docker exec``."""
    run = ["docker", "run", "--rm", "-d", "--network=none", image(), "sleep", "100000"]
    process = subprocess.run(run, check=True, capture_output=True, text=True)
    name = process.stdout.strip()
    stack.callback(subprocess.run, ["docker", "kill", name], check=False, capture_output=True)
    argv = ["docker", "exec", name, *_TRUE]
    return lambda: subprocess.run(argv, check=True, capture_output=True)


def package_reset(_: ExitStack) -> Work:
    """Opens a clean tree in a fresh sandbox, and runs a first command."""
    store = TemplateStore()
    spec = store.get(load_tasks([_row()])[0]).spec

    def once() -> None:
        with open_sandbox(spec) as sandbox:
            _check(sandbox.run("true").exit_code)

    return once


def git_clone(_: ExitStack) -> Work:
    """Makes a fresh clone, and runs a first command in it, without isolation."""

    def once() -> None:
        with tempfile.TemporaryDirectory() as folder:
            argv = ["git", "clone", "-q", str(repository()), f"{folder}/clone"]
            subprocess.run(argv, check=True, capture_output=True)
            subprocess.run(_TRUE, check=True, cwd=f"{folder}/clone")

    return once


def docker_clone(_: ExitStack) -> Work:
    """Starts a fresh container that clones, and runs a first command in it."""
    source, name = repository(), image()
    script = f"git config --global safe.directory '*'; git clone -q {source} /clone && true"
    run = ["docker", "run", "--rm", "--network=none", "-v", f"{source}:{source}:ro", name]
    return lambda: subprocess.run([*run, "bash", "-c", script], check=True, capture_output=True)


COMMANDS: Mapping[str, Maker] = {
    "coding_gym": package_command,
    "subprocess, not isolated": plain_process,
    "nano-agent, not isolated": nano,
    "mini-swe-agent, not isolated": mini_local,
    "mini-swe-agent, bubblewrap": mini_bubblewrap,
    "SWE-ReX, not isolated": swe_rex,
    "docker exec": docker_exec,
}
"""Runs ``true`` in an open environment."""

RESETS: Mapping[str, Maker] = {
    "coding_gym": package_reset,
    "git clone, not isolated": git_clone,
    "docker run and git clone": docker_clone,
}
"""Makes a clean tree of `NUM_FILES` files and runs a first command."""


@cache
def _folder() -> "tempfile.TemporaryDirectory[str]":
    """Returns a temporary folder that is removed when this process ends."""
    return tempfile.TemporaryDirectory(prefix="coding_gym-bench-")


@cache
def repository() -> Path:
    """Makes a git repository of `NUM_FILES` Python files in one commit; returns its folder."""
    folder = Path(_folder().name) / "repository"
    for number in range(NUM_FILES):
        package = folder / f"package_{number // _FILES_PER_FOLDER}"
        package.mkdir(parents=True, exist_ok=True)
        (package / f"module_{number}.py").write_text(f"NUMBER = {number}\n{_LINES}")
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "files"]):
        subprocess.run([*_GIT, "-C", str(folder), *command], check=True)
    return folder


def _row() -> dict[str, str]:
    """Returns the row of a task for the repository; the task is never graded."""
    argv = [*_GIT, "-C", str(repository()), "rev-parse", "HEAD"]
    commit = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
    return {
        "instance_id": "files",
        "problem_statement": "nothing is wrong",
        "FAIL_TO_PASS": '["test_nothing.py::test_nothing"]',
        "repository": str(repository()),
        "base_commit": commit,
    }


@cache
def image() -> str:
    """Makes a container image of bash and git from this machine's files; returns its name."""
    if shutil.which("docker") is None:
        raise AbsentError("docker is not installed; run: apt-get install docker.io")
    if subprocess.run(["docker", "version"], capture_output=True).returncode:  # noqa: S607 - PATH
        raise AbsentError("the Docker daemon does not reply; start it")
    sys.path.append(str(ROOT / "tests" / "support"))
    from image_fixtures import folder, programs, tar_of

    archive = tar_of([folder("tmp", mode=0o1777), folder("root"), *programs(*_PROGRAMS)])
    command = ["docker", "import", "-c", "ENV PATH=/bin", "-", _IMAGE]
    subprocess.run(command, input=archive, check=True, capture_output=True)
    return _IMAGE
