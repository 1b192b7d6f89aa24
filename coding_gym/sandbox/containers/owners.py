"""Whose a container is, and the end of those whose owner died.

A container ends with its channel, so an owner that is killed leaves nothing that runs. What it may
leave is a container that it had made and not yet started, and, where a fork of it lives on and
holds the channel, one that runs. The next owner on this machine removes them.
"""

import os
import time
from typing import Any

from coding_gym.sandbox.containers.engine import Engine
from coding_gym.sandbox.processes import identity, is_gone

LABEL = "coding_gym.owner"
_CREATED = "coding_gym.created"
_FORGOTTEN_S = 3600.0
_swept: set[tuple[int, str]] = set()


def labels() -> dict[str, str]:
    """Returns the labels of a container that this process makes now."""
    return {LABEL: identity(), _CREATED: str(int(time.time()))}


def sweep(engine: Engine) -> None:
    """Removes the containers of dead owners, once in the life of this process.

    Only owners of this machine, since it was booted, and of this container can be told dead. What
    was never started within an hour goes too, whoever made it.
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
        age_s = time.time() - int(container["Labels"][_CREATED])
    except (KeyError, ValueError):
        return False
    was_never_started = container["State"] == "created" and age_s > _FORGOTTEN_S
    return was_never_started or is_gone(container["Labels"][LABEL])
