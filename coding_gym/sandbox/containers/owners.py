"""Whose a container is, and the end of those whose owner died.

A container ends with its channel, so an owner that is killed leaves nothing that runs. What it may
leave is a container that it had made and not yet started, and, where a fork of it lives on and
holds the channel, one that runs. The next owner on this machine removes them.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

from coding_gym.sandbox.containers.engine import Engine
from coding_gym.sandbox.processes import start_time

LABEL = "coding_gym.owner"
_CREATED = "coding_gym.created"
_FORGOTTEN_S = 3600.0
_swept: set[tuple[int, str]] = set()


def labels() -> dict[str, str]:
    """Returns the labels of a container that this process makes now."""
    pid = os.getpid()
    owner = [*_place(), pid, start_time(pid)]
    return {LABEL: json.dumps(owner), _CREATED: str(int(time.time()))}


def sweep(engine: Engine) -> None:
    """Removes the containers of dead owners, once in the life of this process.

    Only owners of this machine, since it was booted, can be told dead. Elsewhere, and in another
    container, what was never started within an hour goes too.
    """
    if (os.getpid(), engine.url) in _swept:
        return
    _swept.add((os.getpid(), engine.url))
    with engine.errors_as("look for containers of dead owners"):
        for container in engine.api.containers(all=True, filters={"label": LABEL}):
            if _is_forgotten(container):
                engine.remove(container["Id"])


def _is_forgotten(container: dict[str, Any]) -> bool:
    try:
        *place, pid, started = json.loads(container["Labels"][LABEL])
        age_s = time.time() - int(container["Labels"][_CREATED])
    except (KeyError, ValueError, TypeError):
        return False
    if place == _place():
        return bool(start_time(pid) != started)
    return container["State"] == "created" and age_s > _FORGOTTEN_S


def _place() -> list[str]:
    """Returns what is the same for all processes that know each other by number."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return [boot, str(Path("/proc/self/ns/pid").readlink())]
    except OSError:  # no Linux: nobody can be told dead
        return [f"process {os.getpid()}", str(time.time())]
