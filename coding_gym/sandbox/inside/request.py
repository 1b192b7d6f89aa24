"""Requests for sandboxes, from an owner to its zygote and the sandbox's first process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# The key of a request's type in its JSON object. Names of fields and variables are never empty.
_TYPE = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A folder or file of the host that is mounted in a sandbox.

    Attributes:
        path: Its path on the host, without symbolic links.
        device: Number of its file system.
        inode: Number of its inode; another inode at the same path is another source.
        is_folder: Whether the source is a folder, not a file.
        writable: Whether commands may write to it.
        hides_packages: Whether third-party packages in it are hidden.
    """

    path: str
    device: int
    inode: int
    is_folder: bool
    writable: bool = False
    hides_packages: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MountRequest:
    """A source, and the absolute path in the sandbox at which it is mounted."""

    source: Source
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest:
    """An unpacked image that is the root of a sandbox.

    Attributes:
        folder: The folder with the folders of the layers.
        layers: Names of the layers' folders, the topmost first.
        uid: User id of commands.
        gid: Group id of commands.
    """

    folder: Source
    layers: tuple[str, ...]
    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRequest:
    """The request for a ``namespace`` sandbox.

    Attributes:
        layers: The folders whose union is the workspace, the topmost first.
        mounts: Further mounts.
        upper: A folder on disk for the changes; None for a tmpfs.
        image: The root; None for the allow-list of the host's folders.
        workspace_alias: A second path of the workspace; "" for none.
        links: Targets of symbolic links, by the absolute path of the link.
        env: The variables of commands.
        limits: The fields of `coding_gym.sandbox.spec.SandboxLimits`.
        network: Whether the host's network is shared.
        ports: Ports of the sandbox to listen at; the owner gets the listening sockets.
        restores: Whether the sandbox starts with a snapshot, which then arrives over its channel.
    """

    layers: tuple[Source, ...]
    mounts: tuple[MountRequest, ...]
    upper: Source | None
    image: ImageRequest | None
    workspace_alias: str
    links: Mapping[str, str]
    env: Mapping[str, str]
    limits: Mapping[str, int]
    network: bool
    ports: tuple[int, ...]
    restores: bool

    def sources(self) -> tuple[Source, ...]:
        """Returns all folders and files of the host that the sandbox mounts."""
        optional_sources = (self.upper, self.image and self.image.folder)
        mount_sources = (mount.source for mount in self.mounts)
        return (*self.layers, *mount_sources, *(source for source in optional_sources if source))


@dataclass(frozen=True, slots=True, kw_only=True)
class LandlockRequest:
    """The request for a ``landlock`` sandbox in folders of the host.

    Attributes:
        uid: User id of commands.
        gid: Group id of commands.
        writable: Paths of the folders that commands may write to, by name.
        grants: Pairs of a key of `landlock_rules.GRANTS` and a path.
        abi: The version of Landlock to use.
        env: The variables of commands.
        limits: The fields of `coding_gym.sandbox.spec.SandboxLimits`.
    """

    uid: int
    gid: int
    writable: Mapping[str, str]
    grants: tuple[tuple[str, str], ...]
    abi: int
    env: Mapping[str, str]
    limits: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preload:
    """The modules that a zygote imports before it opens sandboxes.

    Attributes:
        executable: The interpreter that runs the zygote.
        modules: The names of the modules.
        folder: The path of the modules' folder in sandboxes.
        mounts: The mounts of the modules' folder and of the interpreter.
    """

    executable: str
    modules: tuple[str, ...]
    folder: str
    mounts: tuple[MountRequest, ...]


_TYPES: Mapping[str, Callable[..., Any]] = {
    kind.__name__: kind
    for kind in (Source, MountRequest, ImageRequest, SandboxRequest, LandlockRequest, Preload)
}


def to_json(request: Any) -> dict[str, Any]:
    """Returns a request's type and fields, without copies, unlike `dataclasses.asdict`."""
    values = {name: getattr(request, name) for name in request.__slots__}
    return {_TYPE: type(request).__name__} | values


def from_json(data: dict[str, Any]) -> Any:
    """Returns the request that a JSON object describes, or the object if it has no known type."""
    kind = _TYPES.get(data.pop(_TYPE, ""))
    if kind is None:
        return data
    return kind(**{n: tuple(v) if isinstance(v, list) else v for n, v in data.items()})
