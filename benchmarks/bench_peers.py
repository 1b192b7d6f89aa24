"""One command, ``true``, by everything that people run agents' commands with, in one run.

Run it by ``python benchmarks/bench_peers.py``, in an environment that has the peers:
``pip install nano-agent==5.0.0 mini-swe-agent swe-rex``, ``apt-get install bubblewrap``, and a
docker engine. What is not there is reported as absent. All are measured in turn, round by round;
the table gives medians in milliseconds, and each as a multiple of ``sandbox.run``. Appends to
``benchmarks/results/bench_peers.jsonl`` and draws ``bench_peers.png`` beside it.

Only this package's sandboxes, bubblewrap and docker isolate anything; the others run the command
with the rights of the user.
"""

import asyncio
import contextlib
import importlib
import importlib.metadata
import logging
import os
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench_sandbox import parser, report
from figures import Figure, interleaved, median, progress
from making import docker_engine, tool
from sandbox_docker import container, git_image
from sandbox_steps import BARE

from coding_gym.sandbox import SandboxSpec, open_sandbox

Work = Callable[[], object]
OURS = "coding_gym, namespace"


class AbsentError(Exception):
    """A peer is not there; says why."""


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
    env = _peer("nano.env", "nano-agent").LocalEnvironment(Path(folder))
    return lambda: _require(env.run_shell("true").returncode)


def mini_local(_: ExitStack) -> Work:
    """Gives mini-swe-agent's local environment."""
    env = _peer("minisweagent.environments.local", "mini-swe-agent").LocalEnvironment()
    return lambda: _require(env.execute({"command": "true"})["returncode"])


def mini_bubblewrap(stack: ExitStack) -> Work:
    """Gives mini-swe-agent's environment of one ``bwrap`` per command."""
    if reason := tool("bwrap"):
        raise AbsentError(f"{reason}; run: apt-get install bubblewrap")
    module = _peer("minisweagent.environments.extra.bubblewrap", "mini-swe-agent")
    env = module.BubblewrapEnvironment()
    stack.callback(env.cleanup)
    return lambda: _require(env.execute({"command": "true"})["returncode"])


def swe_rex(stack: ExitStack) -> Work:
    """Gives SWE-ReX's session of one bash."""
    module = _peer("swerex.runtime.local", "swe-rex")
    requests = _peer("swerex.runtime.abstract", "swe-rex")
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


PEERS: dict[str, Callable[[ExitStack], Work]] = {
    "bare": bare,
    "ours": ours,
    "persistent": persistent,
    "nano": nano,
    "mini-local": mini_local,
    "mini-bubblewrap": mini_bubblewrap,
    "swe-rex": swe_rex,
    "docker-py": docker_py,
    "docker-exec": docker_exec,
    "docker-run": docker_run,
}
TITLES = {
    "bare": "bare subprocess",
    "ours": OURS,
    "persistent": f"{OURS}, persistent shell",
    "nano": "nano-agent, local",
    "mini-local": "mini-swe-agent, local",
    "mini-bubblewrap": "mini-swe-agent, bubblewrap",
    "swe-rex": "SWE-ReX, local session",
    "docker-py": "docker-py, exec_run",
    "docker-exec": "docker exec",
    "docker-run": "docker run --rm",
}
_DISTRIBUTIONS = ("nano-agent", "mini-swe-agent", "swe-rex", "docker")


def measure(names: list[str], rounds: int) -> list[Figure]:
    """Returns a figure for each peer, with its ratio to ours in the details."""
    works: dict[str, Work] = {}
    absent: list[Figure] = []
    with ExitStack() as stack:
        for name in names:
            progress(f"preparing {name}")
            try:
                works[name] = _tried(PEERS[name](stack))
            except AbsentError as reason:
                absent.append(Figure(name=TITLES[name], absent=str(reason)))
        progress(f"measuring {', '.join(works)}")
        took = interleaved(works, rounds)
    figures = {name: median(TITLES[name], took[name], "ms", None) for name in works}
    own = figures["ours"].value if "ours" in figures else None
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


def _peer(module: str, distribution: str) -> Any:
    # They ask their server for prices on import.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise AbsentError(f"{error}; run: pip install {distribution}") from error


def _engine() -> Any:
    if reason := docker_engine():
        raise AbsentError(reason)
    return _peer("docker", "docker")


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


def main() -> None:
    """Measures what was asked for."""
    options = parser(__doc__, PEERS).parse_args()
    figures = measure(options.only or list(PEERS), options.rounds)
    report("bench_peers", figures, options, versions=versions())


if __name__ == "__main__":
    main()
