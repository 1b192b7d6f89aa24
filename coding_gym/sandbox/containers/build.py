"""Images with a workspace: a base and a spec's layers, built once and kept by the daemon."""

import hashlib
import json
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from coding_gym.errors import SandboxError
from coding_gym.sandbox.containers import layers
from coding_gym.sandbox.containers.base_images import LOADED
from coding_gym.sandbox.containers.engine import Engine, connect
from coding_gym.sandbox.containers.locks import SharedLock
from coding_gym.sandbox.containers.prepare import alias_options, labelled_user, prepare
from coding_gym.sandbox.images.users import ImageUser
from coding_gym.sandbox.spec import SandboxSpec

BUILT = "coding-gym-layers"
_LABEL = "coding_gym.layers"
_OURS = (f"{BUILT}:", f"{LOADED}:")
# Part of every key: raised whenever what a build leaves changes.
_SCHEMA = 2
_IN_MEMORY_BYTES = 32 << 20
_lock = SharedLock()


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """An image with a workspace.

    Attributes:
        name: What the daemon knows it by.
        env: The variables that it sets.
        user: Whom its commands run as.
    """

    name: str
    env: Mapping[str, str]
    user: ImageUser


def build(
    engine: Engine, base: dict[str, Any], spec: SandboxSpec, *, user: tuple[int, int] | None
) -> BuiltImage:
    """Returns the image of a base and layers, after building it where the daemon has none.

    Args:
        engine: The daemon.
        base: What the daemon says of the base image.
        spec: Gives the layers, whose files belong to the commands' user, whoever has them here.
        user: Uid and gid of commands where the image's own user is root; None for root.

    Raises:
        InvalidArgumentError: The image has no such user as it says.
        SandboxUnavailableError: It has no bash.
        SandboxError: The daemon refused a step, or a layer cannot be read.
    """
    alias = spec.workspace_alias
    with engine.errors_as("build an image from the layers"):

        def make_ready(container: str) -> dict[str, str]:
            wanted = (base.get("Config") or {}).get("User") or ""
            return prepare(engine, container, wanted, alias=alias, fallback=user)

        facts = ["ready", base["Id"], alias, user]
        found = _image(engine, base["Id"], facts, make_ready, alias_options(engine, alias))
        labels = found["Config"]["Labels"]
        chosen = labelled_user(labels)
        if spec.layers:

            def add_layers(container: str) -> dict[str, str]:
                with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES) as file:
                    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                        layers.add_to(tar, spec.layers, (chosen.uid, chosen.gid))
                    file.seek(0)
                    engine.api.put_archive(container, "/", file)
                return {}

            facts = ["layers", found["Id"], layers.digest(spec.layers).hex()]
            found = _image(engine, found["Id"], facts, add_layers, {"command": ["true"]})
    pairs = (pair.partition("=") for pair in found["Config"].get("Env") or ())
    return BuiltImage(found["Id"], {name: value for name, _, value in pairs}, chosen)


def remove_images(host: str = "") -> int:
    """Removes all images that were built from layers or loaded from files; returns how many.

    They are built and loaded again when they are wanted. Those in use stay.

    Args:
        host: The daemon; "" for what ``DOCKER_HOST`` says.

    Raises:
        SandboxUnavailableError: No daemon answers.
        SandboxError: It refuses.
    """
    engine = connect(host)
    with _lock, engine.errors_as("remove images"):
        images = sorted(engine.api.images(), key=lambda image: -image["Created"])
        tags = [tag for image in images for tag in image["RepoTags"] or ()]
        return sum(engine.remove_image(tag) for tag in tags if tag.startswith(_OURS))


def _image(
    engine: Engine,
    base: str,
    facts: list[object],
    fill: Callable[[str], dict[str, str]],
    options: dict[str, Any],
) -> dict[str, Any]:
    """Returns the image of these facts, made now by filling a container where there is none."""
    tag = hashlib.sha256(json.dumps([_SCHEMA, *facts]).encode()).hexdigest()[:40]
    name = f"{BUILT}:{tag}"
    found = engine.find_image(name)
    if found is None:
        with _lock:
            found = engine.find_image(name)  # another thread may have built it meanwhile
            if found is None:
                _make(engine, base, tag, fill, options)
                found = engine.find_image(name)
    if found is None:
        raise SandboxError("an image was removed while it was built")
    return found


def _make(
    engine: Engine,
    base: str,
    tag: str,
    fill: Callable[[str], dict[str, str]],
    options: dict[str, Any],
) -> None:
    container = engine.api.create_container(base, labels={_LABEL: tag}, **options)["Id"]
    try:
        labels = {_LABEL: tag, **fill(container)}
        engine.api.commit(container, BUILT, tag, conf={"Labels": labels})
    except OSError as error:
        raise SandboxError(f"a layer cannot be read: {error}") from error
    finally:
        engine.remove(container)
