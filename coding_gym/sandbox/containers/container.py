"""One running container and the channel to it."""

import contextlib
import io
import tarfile
from typing import Any

from coding_gym.errors import SandboxError, SandboxUnavailableError
from coding_gym.sandbox.containers import owners
from coding_gym.sandbox.containers.build import BuiltImage
from coding_gym.sandbox.containers.channel import ContainerChannel
from coding_gym.sandbox.containers.engine import Engine
from coding_gym.sandbox.containers.options import container_env, create_options
from coding_gym.sandbox.spec import SandboxSpec


class Container:
    """A container that runs `loop.sh`; when its channel closes it ends, and the daemon removes it.

    Args:
        engine: The daemon.
        image: What it is made from.
        spec: What it is to be.

    Attributes:
        channel: Runs commands in it.

    Raises:
        SandboxUnavailableError: The image cannot be run; says why.
        SandboxError: The daemon refused a step.
    """

    def __init__(self, engine: Engine, image: BuiltImage, spec: SandboxSpec) -> None:
        self._engine = engine
        with engine.errors_as("start a container"):
            shares_files = not spec.mounts or engine.shares_files(image.name)
            options = self._options(image, spec, binds_mounts=shares_files)
            self._id: str = engine.api.create_container(image.name, **options)["Id"]
            try:
                if not shares_files:
                    self._copy_mounts(spec)
                stream = engine.attach(self._id)
                engine.api.start(self._id)
            except BaseException:
                with contextlib.suppress(SandboxError), engine.errors_as("remove a container"):
                    engine.remove(self._id)
                raise
        self.channel = ContainerChannel(stream, lambda: engine.interrupt(self._id))

    def started_at(self) -> str:
        """Returns when it started, as the daemon says it."""
        with self._engine.errors_as("look at a container"):
            facts = self._engine.api.inspect_container(self._id)
        return str(facts["State"]["StartedAt"])

    def is_alive(self) -> bool:
        """Whether it runs commands."""
        try:
            return self.channel.run_script(b":")[0] == 0
        except SandboxError:
            return False

    def close(self) -> None:
        """Ends it; idempotent."""
        if not self.channel.close():
            with self._engine.errors_as("remove a container"):
                self._engine.remove(self._id)

    def _options(
        self, image: BuiltImage, spec: SandboxSpec, *, binds_mounts: bool
    ) -> dict[str, Any]:
        if not binds_mounts and any(mount.writable for mount in spec.mounts):
            raise SandboxUnavailableError(
                "a writable mount needs a Docker daemon that shares this process's files",
                "use the daemon of this machine, from outside of any container",
            )
        return create_options(
            self._engine.api,
            spec,
            env=container_env(spec, image.env, image.user.name),
            user=f"{image.user.uid}:{image.user.gid}",
            mounts=spec.mounts if binds_mounts else (),
            labels=owners.labels(),
        )

    def _copy_mounts(self, spec: SandboxSpec) -> None:
        for mount in spec.mounts:
            buffer = io.BytesIO()
            with tarfile.open(fileobj=buffer, mode="w") as tar:
                tar.add(mount.source.resolve(), mount.target.strip("/"), filter=_owned_by_root)
            self._engine.api.put_archive(self._id, "/", buffer.getvalue())


def _owned_by_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    # Commands are another user, and read what a mount would have let them read.
    entry.mode |= 0o555 if entry.isdir() else 0o444
    return entry
