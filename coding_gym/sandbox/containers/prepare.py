"""A base image made ready: a first process, a user with a home, an empty workspace."""

import io
import json
import posixpath
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox.containers.engine import Engine
from coding_gym.sandbox.images.users import ImageUser, find_user
from coding_gym.sandbox.spec import HOME, WORKDIR

# The bash that runs loop.sh. Nobody may read it, so that the kernel keeps its memory, descriptors
# and environment from everyone, commands of the same user included (`would_dump`, fs/exec.c).
FIRST_BASH = "/.coding_gym/bash"
USER_LABEL = "coding_gym.user"
_NAME = "agent"
_DATABASES = ("passwd", "group")
_ROOTS_HOME = "/root"
_BASHES = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")
_MAX_LINKS = 8
_MAKE_ALIAS = 'rm -rf -- "$1" && mkdir -p -- "${1%/*}/" && ln -s -- "$2" "$1"'


def prepare(
    engine: Engine,
    container: str,
    wanted: str,
    *,
    alias: str,
    fallback: tuple[int, int] | None,
) -> dict[str, str]:
    """Prepares a container of a base image, and returns labels that say how.

    Args:
        engine: The daemon.
        container: Was made with `alias_options`, and not started.
        wanted: The image's user, as its configuration has it.
        alias: `SandboxSpec.workspace_alias`.
        fallback: Uid and gid to run as in the place of root; None for root.

    Raises:
        InvalidArgumentError: The image has no such user.
        SandboxUnavailableError: It has no bash.
        SandboxError: The alias could not be made.
    """
    database = {name: engine.read_file(container, f"/etc/{name}") for name in _DATABASES}
    user = _user(wanted, database, fallback)
    bash = _bash(engine, container)
    if alias:
        engine.api.start(container)
        status = engine.api.wait(container)["StatusCode"]
        if status:
            raise SandboxError(f"{alias} could not be made an alias (exit code {status})")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        _add(tar, posixpath.dirname(FIRST_BASH), 0o755)
        _add(tar, FIRST_BASH, 0o111, bash)
        _add(tar, posixpath.dirname(HOME), 0o755)
        for folder in (HOME, WORKDIR):
            _add(tar, folder, 0o755, user=user)
        if user.name == _NAME:
            _add_name(tar, user, database)
            # Tools that an image keeps there, and mounts below it, are for commands too.
            _add(tar, _ROOTS_HOME, 0o755)
    engine.api.put_archive(container, "/", buffer.getvalue())
    return {USER_LABEL: json.dumps([user.uid, user.gid, user.name])}


def labelled_user(labels: Mapping[str, str]) -> ImageUser:
    """Returns the user that `prepare` chose."""
    return ImageUser(*json.loads(labels[USER_LABEL]))


def alias_options(engine: Engine, alias: str) -> dict[str, Any]:
    """Returns the options of a container that makes an alias when it is started.

    It runs as root with what the daemon gives to all. Nothing untrusted has run in it.
    """
    return {
        "entrypoint": ["bash", "-c", _MAKE_ALIAS, "bash", alias, WORKDIR],
        "command": [],
        "user": "0:0",
        "host_config": engine.api.create_host_config(network_mode="none"),
    }


def check_alias(alias: str) -> None:
    """Raises InvalidArgumentError for an alias that cannot be one; "" is none."""
    path = PurePosixPath(alias or "/x")
    if not path.is_absolute() or ".." in path.parts or path == PurePosixPath("/"):
        raise InvalidArgumentError(
            f"workspace_alias must be an absolute path below /, got {alias!r}"
        )


def _user(
    wanted: str, database: Mapping[str, bytes], fallback: tuple[int, int] | None
) -> ImageUser:
    """Returns the image's user; in the place of root, who would be the host's, another one."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "etc").mkdir()
        for name, data in database.items():
            Path(folder, "etc", name).write_bytes(data)
        user = find_user(wanted, [Path(folder)])
    if user.uid == 0 and fallback is not None:
        return ImageUser(*fallback, _NAME)
    return user


def _bash(engine: Engine, container: str) -> bytes:
    for place in _BASHES:
        path = place
        for _ in range(_MAX_LINKS):
            data, link = engine.read_file_or_link(container, path)
            if data:
                return data
            if not link:
                break
            path = posixpath.join(posixpath.dirname(path), link)
    raise SandboxUnavailableError("the image has no bash", "name an image that has it")


def _add_name(tar: tarfile.TarFile, user: ImageUser, database: Mapping[str, bytes]) -> None:
    lines = {
        "passwd": f"{_NAME}:x:{user.uid}:{user.gid}::{HOME}:/bin/bash\n",
        "group": f"{_NAME}:x:{user.gid}:\n",
    }
    for name, line in lines.items():
        before = database[name]
        if before and not before.endswith(b"\n"):
            before += b"\n"
        _add(tar, f"/etc/{name}", 0o644, before + line.encode())


def _add(
    tar: tarfile.TarFile,
    path: str,
    mode: int,
    data: bytes | None = None,
    user: ImageUser | None = None,
) -> None:
    """Adds a file, or, without data, a folder."""
    entry = tarfile.TarInfo(path.strip("/"))
    entry.mode = mode
    if user is not None:
        entry.uid, entry.gid = user.uid, user.gid
    if data is None:
        entry.type = tarfile.DIRTYPE
    entry.size = len(data or b"")
    tar.addfile(entry, io.BytesIO(data or b""))
