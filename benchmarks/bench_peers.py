"""This package beside other ways to run agents' commands and to grade them, in one run.

Run it by ``python benchmarks/bench_peers.py``, in an environment that has the peers:
``pip install -e '.[bench]'``, ``apt-get install bubblewrap``, and a docker engine. What is not
there is reported as absent. Medians in milliseconds, measured in turn, block by block:

- a command, ``true``, in an open environment, in each one's own shell;
- a reset: a clean tree of 10,000 files and a first command. ``docker run --rm`` alone starts an
  image without a tree, for comparison;
- a grade of a real repair, and how many of the red team's patches are refused (`peer_grades`).

Appends to ``.bench/peers.jsonl`` and draws ``peers.png`` beside it. Only this package's
sandboxes, bubblewrap and docker isolate anything; the others run the command with the rights of
the user.
"""

import asyncio
import contextlib
import importlib.metadata
import logging
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from figures import Bench, Figure, in_blocks, measure, median, parser, progress, report
from fixtures import AbsentError, docker_engine, peer, tool
from peer_grades import grades
from sandbox_docker import container, git_image
from sandbox_resets import MANY, repositories, reset
from sandbox_steps import BARE

from coding_gym.sandbox import SandboxSpec, open_sandbox

Work = Callable[[], object]


def bare(_: ExitStack) -> Work:
    """Gives a bare subprocess."""
    return lambda: subprocess.run(BARE, check=True)


def ours(stack: ExitStack) -> Work:
    """Gives this package's default."""
    sandbox = stack.enter_context(open_sandbox(SandboxSpec()))
    return lambda: sandbox.run("true")


def persistent(stack: ExitStack) -> Work:
    """Gives this package's shell that keeps its state."""
    spec = SandboxSpec(shell="persistent")
    sandbox = stack.enter_context(open_sandbox(spec))
    return lambda: sandbox.run("true")


def nano(stack: ExitStack) -> Work:
    """Gives nano-agent's local environment."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    env = peer("nano.env", "nano-agent").LocalEnvironment(Path(folder))
    return lambda: _require(env.run_shell("true").returncode)


def mini_local(_: ExitStack) -> Work:
    """Gives mini-swe-agent's local environment."""
    env = peer("minisweagent.environments.local", "mini-swe-agent").LocalEnvironment()
    return lambda: _require(env.execute({"command": "true"})["returncode"])


def mini_bubblewrap(stack: ExitStack) -> Work:
    """Gives mini-swe-agent's environment of one ``bwrap`` per command."""
    if reason := tool("bwrap"):
        raise AbsentError(f"{reason}; run: apt-get install bubblewrap")
    module = peer("minisweagent.environments.extra.bubblewrap", "mini-swe-agent")
    env = module.BubblewrapEnvironment()
    stack.callback(env.cleanup)
    return lambda: _require(env.execute({"command": "true"})["returncode"])


def swe_rex(stack: ExitStack) -> Work:
    """Gives SWE-ReX's session of one bash."""
    module = peer("swerex.runtime.local", "swe-rex")
    requests = peer("swerex.runtime.abstract", "swe-rex")
    logging.getLogger("rex-runtime").setLevel(logging.ERROR)
    loop = asyncio.new_event_loop()
    stack.callback(loop.close)
    runtime = module.LocalRuntime()
    loop.run_until_complete(runtime.create_session(requests.CreateBashSessionRequest()))
    stack.callback(lambda: loop.run_until_complete(runtime.close()))
    action = requests.BashAction(command="true")
    return lambda: _require(loop.run_until_complete(runtime.run_in_session(action)).exit_code)


def docker_py(stack: ExitStack) -> Work:
    """Gives docker-py's ``exec_run``."""
    client = _engine().from_env()
    stack.callback(client.close)
    running = client.containers.get(stack.enter_context(container()))
    return lambda: _require(running.exec_run(BARE).exit_code)


def docker_exec(stack: ExitStack) -> Work:
    """Gives the command ``docker exec``."""
    _engine()
    argv = ["docker", "exec", stack.enter_context(container()), *BARE]
    return lambda: subprocess.run(argv, check=True, capture_output=True)


def docker_run(_: ExitStack) -> Work:
    """Gives a new container per command."""
    _engine()
    argv = ["docker", "run", "--rm", "--network=none", git_image(), *BARE]
    return lambda: subprocess.run(argv, check=True, capture_output=True)


def git_clone(_: ExitStack) -> Work:
    """Gives a fresh clone, and a first command in it."""
    source = repositories().folders[MANY]

    def once() -> None:
        with tempfile.TemporaryDirectory() as folder:
            argv = ["git", "clone", "-q", str(source), f"{folder}/clone"]
            subprocess.run(argv, check=True, capture_output=True)
            subprocess.run(BARE, check=True, cwd=f"{folder}/clone")

    return once


def our_reset(_: ExitStack) -> Work:
    """Gives this package's reset."""
    spec = repositories().specs[MANY]
    return lambda: reset(spec)


def docker_clone(_: ExitStack) -> Work:
    """Gives a new container that clones, and runs a first command."""
    _engine()
    source, image = repositories().folders[MANY], git_image()
    script = f"git config --global safe.directory '*'; git clone -q {source} /clone && true"
    run = ["docker", "run", "--rm", "--network=none", "-v", f"{source}:{source}:ro", image]
    return lambda: subprocess.run([*run, "bash", "-c", script], check=True, capture_output=True)


COMMANDS: dict[str, Callable[[ExitStack], Work]] = {
    "bare subprocess": bare,
    "coding_gym": ours,
    "coding_gym, persistent shell": persistent,
    "nano-agent, local": nano,
    "mini-swe-agent, local": mini_local,
    "mini-swe-agent, bubblewrap": mini_bubblewrap,
    "SWE-ReX, local session": swe_rex,
    "docker-py, exec_run": docker_py,
    "docker exec": docker_exec,
    "docker run --rm": docker_run,
}
RESETS: dict[str, Callable[[ExitStack], Work]] = {
    "coding_gym": our_reset,
    "git clone": git_clone,
    "docker run --rm": docker_run,
    "docker run --rm and git clone": docker_clone,
}
_DISTRIBUTIONS = ("nano-agent", "mini-swe-agent", "swe-rex", "swebench", "docker")


def commands(rounds: int) -> list[Figure]:
    """Times one command by each peer."""
    return compared("command", COMMANDS, rounds, block=10)


def resets(rounds: int) -> list[Figure]:
    """Times a clean tree and a first command by each way."""
    return compared("reset", RESETS, max(6, rounds // 20), block=3)


def compared(
    what: str, peers: dict[str, Callable[[ExitStack], Work]], rounds: int, block: int
) -> list[Figure]:
    """Returns a figure for each peer, with its ratio to ours in the details."""
    works: dict[str, Work] = {}
    absent: list[Figure] = []
    with ExitStack() as stack:
        for name, make in peers.items():
            progress(f"preparing {what}: {name}")
            try:
                works[name] = _tried(make(stack))
            except AbsentError as reason:
                absent.append(Figure(name=f"{what}: {name}", absent=str(reason)))
        took = in_blocks(works, rounds, block)
    figures = {name: median(f"{what}: {name}", took[name], "ms", None) for name in works}
    own = figures["coding_gym"].value
    return [_compared(figure, own) for figure in figures.values()] + absent


def _tried(work: Work) -> Work:
    try:
        work()
    except Exception as error:  # whatever keeps a peer from running here is a finding, not our end
        raise AbsentError(f"it fails here: {error}") from error
    return work


def _compared(figure: Figure, own: float | None) -> Figure:
    if own is None or figure.value is None:
        return figure
    return replace(figure, details=figure.details | {"times_ours": round(figure.value / own, 2)})


def _engine() -> Any:
    if reason := docker_engine():
        raise AbsentError(reason)
    return peer("docker", "docker")


def _require(exit_code: int) -> None:
    if exit_code != 0:
        raise RuntimeError(f"`true` ended with {exit_code}")


def versions() -> dict[str, str]:
    """Returns the versions of the peers that are installed."""
    found = {}
    for name in _DISTRIBUTIONS:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


BENCHES: dict[str, Bench] = {"commands": commands, "resets": resets, "grades": grades}


def main() -> None:
    """Measures what was asked for."""
    options = parser(__doc__, BENCHES).parse_args()
    figures = measure(BENCHES, options)
    report("peers", figures, options, rounds=options.rounds, versions=versions())


if __name__ == "__main__":
    main()
