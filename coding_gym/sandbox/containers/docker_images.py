"""Images with a workspace, built by a Docker daemon from a base image and a spec's layers.

The base image is one that the daemon has, or a file that it loads. What is built is kept by the
daemon, and found again by a digest of everything that went into it.
"""

import hashlib
import io
import json
import os
import posixpath
import tarfile
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox import layer_union
from coding_gym.sandbox.containers.docker_engine import OWNER_LABEL, Engine
from coding_gym.sandbox.images import find_image, read_manifest, write_docker_archive
from coding_gym.sandbox.images.users import ImageUser, find_user
from coding_gym.sandbox.spec import HOME, WORKDIR, SandboxSpec

# The bash that runs loop.sh. No user may read it, so that the kernel keeps its memory, descriptors
# and environment from everyone, commands of the same user included (`would_dump`, fs/exec.c).
FIRST_BASH = "/.coding_gym/bash"
_BASHES = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")
_BUILT, _LOADED = "coding-gym-layers", "coding-gym-images"
_LABEL, _USER_LABEL = "coding_gym.image", "coding_gym.user"
# Part of every key: raised whenever the result of a build changes.
_SCHEMA = 4
_NAME = "agent"
_ROOTS_HOME = "/root"


@cache
def _lock(_pid: int) -> threading.Lock:
    """Returns this process's lock; in a fork, that of its parent may be held for ever."""
    return threading.Lock()


@dataclass(frozen=True, slots=True)
class BuiltImage:
    """An image with a workspace.

    Attributes:
        name: Its name at the daemon.
        env: The variables that its base sets.
        user: The user that commands run as.
    """

    name: str
    env: Mapping[str, str]
    user: ImageUser


def build(
    engine: Engine, base_name: str, spec: SandboxSpec, *, user: tuple[int, int] | None
) -> BuiltImage:
    """Returns the image of a base and layers, after building it where the daemon has none.

    Args:
        engine: The daemon, which downloads nothing.
        base_name: As `SandboxSpec.image`.
        spec: Has the layers; the user of commands becomes the owner of their files.
        user: Uid and gid of commands where the image's own user is root; None for root.

    Raises:
        InvalidArgumentError: The base is a file that holds no image for this kind of machine, or
            has no such user as it says.
        SandboxUnavailableError: There is no such image, or it has no bash; says what to do.
        SandboxError: The daemon refused a step, or a layer cannot be read.
    """
    with engine.errors_as("build an image from the layers"):
        base = _find_base(engine, base_name)
        facts = [_SCHEMA, base["Id"], spec.workspace_alias, user, layer_union.digest(spec.layers)]
        tag = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:40]
        found = engine.find_image(f"{_BUILT}:{tag}")
        if found is None:
            with _lock(os.getpid()):  # another thread may have built it meanwhile
                found = engine.find_image(f"{_BUILT}:{tag}")
                found = found or _make(engine, base, spec, tag, user)
    chosen = ImageUser(*json.loads(bytes.fromhex(found["Config"]["Labels"][_USER_LABEL])))
    # Podman puts variables of its own into what it builds.
    pairs = (pair.partition("=") for pair in (base.get("Config") or {}).get("Env") or ())
    return BuiltImage(found["Id"], {name: value for name, _, value in pairs}, chosen)


def _find_base(engine: Engine, name: str) -> dict[str, Any]:
    found = None if Path(name, "index.json").expanduser().exists() else engine.find_image(name)
    if found is not None:
        return found
    try:
        layout = find_image(name)
    except InvalidArgumentError as error:
        raise SandboxUnavailableError(
            f"the Docker daemon has no image {name!r}",
            f"run `docker pull {name}`, or name one of `docker images`",
        ) from error
    with _lock(os.getpid()):
        return _load(engine, layout)


def _load(engine: Engine, layout: Path) -> dict[str, Any]:
    """Returns the image of a layout folder, after loading it where the daemon has not got it.

    Its name is one of ours: that of the layout may be in use for another image.
    """
    tag = f"{_LOADED}:{read_manifest(layout).digest.partition(':')[2][:40]}"
    found = engine.find_image(tag)
    if found is None:
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "image.tar"
            write_docker_archive(layout, archive, tag)
            with archive.open("rb") as file:
                for line in engine.api.load_image(file):
                    if "error" in line:
                        raise SandboxError(f"cannot load an image: {line['error']}")
        found = engine.find_image(tag)
    if found is None:
        raise SandboxError("the image was removed while it was loaded")
    return found


def _make(
    engine: Engine,
    base: dict[str, Any],
    spec: SandboxSpec,
    tag: str,
    fallback: tuple[int, int] | None,
) -> dict[str, Any]:
    """Builds the image of this tag: puts files into a container that never starts."""
    container = engine.create(base["Id"], command=["true"])
    try:
        etc = {name: engine.read_file(container, f"/etc/{name}") for name in ("passwd", "group")}
        user = _user((base.get("Config") or {}).get("User") or "", etc, fallback)
        bash = next(filter(None, (engine.read_file(container, path) for path in _BASHES)), b"")
        if not bash:
            raise SandboxUnavailableError("the image has no bash", "name an image that has it")
        with engine.put_files(container) as tar:
            _add(tar, posixpath.dirname(FIRST_BASH), 0o755)
            _add(tar, FIRST_BASH, 0o111, bash)
            _add(tar, posixpath.dirname(HOME), 0o755)
            for folder in (HOME, WORKDIR):
                _add(tar, folder, 0o755, user=user)
            if user.name == _NAME:
                _add_name(tar, user, etc)
                # Tools that an image keeps there, and mounts below it, are for commands too.
                _add(tar, _ROOTS_HOME, 0o755)
            alias = posixpath.normpath(spec.workspace_alias or "/")
            # It cannot be in the place of what it leads to, or of the folder around home.
            if alias not in {"/", WORKDIR, posixpath.dirname(HOME)}:
                _add(tar, alias, 0o777, link=WORKDIR)
            layer_union.add_to(tar, spec.layers, (user.uid, user.gid))
        # In hexadecimal: the name may hold what means something in a Dockerfile.
        user_text = json.dumps([user.uid, user.gid, user.name]).encode().hex()
        labels = {_LABEL: tag, _USER_LABEL: user_text, OWNER_LABEL: '""'}  # no owner's, once built
        changes = [f"LABEL {name}={value}" for name, value in labels.items()]
        engine.api.commit(container, _BUILT, tag, changes=changes)
    finally:
        engine.remove(container)
    found = engine.find_image(f"{_BUILT}:{tag}")
    if found is None:
        raise SandboxError("an image was removed while it was built")
    return found


def _user(wanted: str, etc: Mapping[str, bytes], fallback: tuple[int, int] | None) -> ImageUser:
    """Returns the image's user; in the place of root, who would be the host's, another one."""
    user = find_user(wanted, etc.__getitem__)
    if user.uid == 0 and fallback is not None:
        return ImageUser(*fallback, _NAME)
    return user


def _add_name(tar: tarfile.TarFile, user: ImageUser, etc: Mapping[str, bytes]) -> None:
    lines = {
        "passwd": f"{_NAME}:x:{user.uid}:{user.gid}::{HOME}:/bin/bash\n",
        "group": f"{_NAME}:x:{user.gid}:\n",
    }
    for name, line in lines.items():
        before = etc[name]
        if before and not before.endswith(b"\n"):
            before += b"\n"
        _add(tar, f"/etc/{name}", 0o644, before + line.encode())


def _add(
    tar: tarfile.TarFile,
    path: str,
    mode: int,
    data: bytes | None = None,
    *,
    user: ImageUser | None = None,
    link: str = "",
) -> None:
    """Adds a file; without data a folder, or a symbolic link."""
    entry = tarfile.TarInfo(posixpath.normpath(path).strip("/"))
    entry.mode, entry.linkname = mode, link
    if user is not None:
        entry.uid, entry.gid = user.uid, user.gid
    if data is None:
        entry.type = tarfile.SYMTYPE if link else tarfile.DIRTYPE
    entry.size = len(data or b"")
    tar.addfile(entry, io.BytesIO(data or b""))
