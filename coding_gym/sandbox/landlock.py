"""The ``landlock`` backend: for root in containers that forbid mounts and user namespaces."""

import os
import pwd
import secrets
import socket
from collections.abc import Collection, Iterator
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path

from coding_gym.errors import InvalidArgumentError, SandboxError, SandboxUnavailableError
from coding_gym.sandbox.backend_checks import check_snapshot, check_spec, checked_probe
from coding_gym.sandbox.inside import landlock_rules
from coding_gym.sandbox.inside.host_folders import (
    COPIED_ETC,
    DEVICES,
    MOUNTED_ETC,
    MOUNTED_ETC_PATTERN,
    PACKAGE,
    THIRD_PARTY,
    TOP_FOLDERS,
    is_in_top_folder,
)
from coding_gym.sandbox.inside.request import LandlockRequest
from coding_gym.sandbox.landlock_files import LandlockFiles, User, fill, variables
from coding_gym.sandbox.ownership import (
    UNPRIVILEGED,
    make_folder,
    outside_id,
    remove_folder,
    unprivileged_owner,
)
from coding_gym.sandbox.protocol import Probe, Promise, Snapshot
from coding_gym.sandbox.served_sandbox import Channel, ServedSandbox
from coding_gym.sandbox.setup_errors import documented_errors
from coding_gym.sandbox.spec import SandboxSpec
from coding_gym.sandbox.zygotes import Zygote, with_zygote

Grant = tuple[str, str]

# Without mounts, commands see host paths, and no limit counts the files that they write.
_MISSING = (Promise.PRIVATE_ROOT, Promise.OWN_IMAGE, Promise.DISK_LIMIT, Promise.INODE_LIMIT)
_UNSUPPORTED_FIELDS = ("network", "forwards", "image", "workspace_alias")
# The first version of Landlock that allows moves of files between folders. The seccomp filter
# refuses the accesses that only later versions control.
_OLDEST_ABI = 2
# With a separate uid, a sandbox shares no process, file or kernel counter with others. No other
# program assigns these uids (see `UNPRIVILEGED`), and shadow-utils assigns none to containers.
# User namespaces of containers often map only the first range.
_UIDS: tuple[int, ...] = (*range(UNPRIVILEGED + 1, 61184), *range(70000, 71000))
# The system's settings files exist but cannot be read, which git and pip report as errors.
_NO_HOST_SETTINGS = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "PIP_CONFIG_FILE": "/dev/null",
}
_ETC = (
    *COPIED_ETC,
    *MOUNTED_ETC,
    *("group", "hosts", "ld.so.conf.d", "localtime", "nsswitch.conf", "passwd"),
)
# Files of /proc that describe the machine, not its processes.
_PROC = ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version")
_CPUS = ("online", "possible", "present")


class LandlockBackend:
    """Sandboxes isolated by a separate uid, Landlock rules and a seccomp filter.

    Protected: the host's files (only allow-listed files can be read, but all names, sizes and dates
    are visible), the host's processes (signals, memory, environment), the network (no sockets
    except connected pairs), privileges, system calls. Limited: memory, and the number of
    processes. Not kept: the promises in `Probe.missing`.
    Opening and a snapshot copy the workspace, so their time grows with the size of all its files.

    Args:
        abi: The highest version of Landlock to use, for tests; None for the kernel's version.
    """

    name = "landlock"

    def __init__(self, abi: int | None = None) -> None:
        self._abi = abi

    def owner(self) -> User:
        """Returns the uid and gid that own layers: the same as in the ``namespace`` backend.

        Therefore both backends can share built environments; templates are built for each backend.
        Opening a sandbox copies the layers; the copy belongs to a uid that no other sandbox has.
        """
        return unprivileged_owner()

    def image_id(self, image: str) -> str:
        """Raises InvalidArgumentError: this backend runs no images."""
        raise InvalidArgumentError(
            f"the {self.name!r} sandbox cannot run the image {image!r}; use 'namespace' or 'docker'"
        )

    def probe(self) -> Probe:
        """Opens a temporary sandbox, runs a command in it and closes it; never raises."""
        return checked_probe(self.open, self._describe)

    def _describe(self) -> Probe:
        detail = f"Landlock {self._version()}: ran a command in a sandbox with a separate user"
        return Probe(available=True, detail=detail, missing=_MISSING)

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> ServedSandbox:
        """Opens a sandbox; see `coding_gym.sandbox.protocol.SandboxBackend.open`."""
        with documented_errors():
            self._require_landlock()
        check_spec(spec, self.name, lacks=_UNSUPPORTED_FIELDS)
        if snapshot is not None:
            check_snapshot(snapshot, backend=self.name, spec=spec)
        # Layers are not copied, because the files of a snapshot replace them.
        channel, files = self._start(spec if snapshot is None else replace(spec, layers=()))
        sandbox = ServedSandbox(self.name, spec, channel, host_paths=files.host_paths)
        if snapshot is not None:
            sandbox.restore(snapshot)
        return sandbox

    def _start(self, spec: SandboxSpec) -> tuple[Channel, LandlockFiles]:
        with documented_errors():
            with ExitStack() as cleanup:
                user = _take_uid(cleanup), self.owner()[1]
                folder = make_folder(self.name)
                cleanup.callback(remove_folder, folder)
                files = fill(folder, spec, user, cleanup)
                caller = os.geteuid(), os.getegid()
                request = self._request(spec, files, user)
                stream = with_zygote("landlock", *caller, partial(Zygote.open, request=request))
                channel = Channel(stream, cleanup)
            channel.wait_until_ready()
        return channel, files

    def _request(self, spec: SandboxSpec, files: LandlockFiles, user: User) -> LandlockRequest:
        env = variables(spec, files, _NO_HOST_SETTINGS)
        if spec.python is not None:
            prefix = files.host_paths[str(spec.python.prefix)]
            if prefix != str(spec.python.prefix):
                folders = (f"{prefix}/lib", env.get("LD_LIBRARY_PATH"))
                env["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))
        return LandlockRequest(
            uid=user[0],
            gid=user[1],
            writable=files.writable,
            grants=tuple(_grants(spec, files)),
            abi=self._version(),
            env=env,
            limits=asdict(spec.limits),
        )

    def _version(self) -> int:
        return landlock_rules.abi() if self._abi is None else min(self._abi, landlock_rules.abi())

    def _require_landlock(self) -> None:
        if os.geteuid() != 0 or self.owner()[0] == 0:
            raise SandboxUnavailableError(
                "the 'landlock' backend runs each sandbox as a separate user, which needs root in "
                "a user namespace that maps many users",
                "run as root in a container, or use 'namespace' or 'docker'",
            )
        if self._version() < _OLDEST_ABI:
            raise SandboxUnavailableError(
                f"Landlock must have version {_OLDEST_ABI} or later, got {self._version()}",
                "use Linux 5.19 or later, with `landlock` in the `lsm=` list of the kernel's "
                "command line",
            )


def _take_uid(cleanup: ExitStack) -> int:
    """Returns a uid that no other sandbox in this network namespace gets until ``cleanup`` closes.

    The name of an abstract UNIX socket reserves the uid: only one process can bind the name, and
    the kernel frees the name when that process ends.
    """
    for uid in filter(_is_free, secrets.SystemRandom().sample(_UIDS, len(_UIDS))):
        reservation = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            reservation.bind(f"\0coding_gym-uid-{uid}")
        except OSError:
            reservation.close()
            continue
        cleanup.callback(reservation.close)
        return uid
    raise SandboxError(
        f"all {len(_UIDS)} uids of 'landlock' are in use or not mapped; close sandboxes"
    )


def _is_free(uid: int) -> bool:
    """Returns whether this user namespace maps a uid, and no account and no process has the uid."""
    with suppress(ProcessLookupError):
        os.getpriority(os.PRIO_USER, uid)
        return False
    with suppress(KeyError):
        pwd.getpwuid(uid)
        return False
    return outside_id("uid", uid) is not None


def _grants(spec: SandboxSpec, files: LandlockFiles) -> Iterator[Grant]:
    yield from system_grants()
    yield "read", str(files.path / "python")
    for path in files.writable.values():
        yield "write", path
    for mount in spec.mounts:
        yield "write" if mount.writable else "read", files.host_paths[mount.target]
    if spec.python is not None:
        prefix = files.host_paths[str(spec.python.prefix)]
        if not is_in_top_folder(prefix):
            yield from tree_grants(Path(prefix))


@cache
def system_grants() -> tuple[Grant, ...]:
    """Returns the rules that all sandboxes share: for programs, libraries, settings, devices."""
    grants = [("device", f"/dev/{name}") for name in DEVICES]
    grants += [("read", f"/etc/{name}") for name in _ETC]
    grants += [("read", str(path)) for path in sorted(Path("/etc").glob(MOUNTED_ETC_PATTERN))]
    grants += [("read", f"/proc/{name}") for name in _PROC]
    grants += [("read", f"/sys/devices/system/cpu/{name}") for name in _CPUS]
    for name in TOP_FOLDERS:
        folder = Path("/") / name
        if folder.is_dir() and not folder.is_symlink():
            grants += tree_grants(folder)
    return tuple(grants)


@cache
def tree_grants(folder: Path) -> tuple[Grant, ...]:
    """Returns the rules to read a folder of programs, except its third-party Python packages."""
    packages = {path for pattern in THIRD_PARTY for path in folder.glob(pattern)}
    hidden_folders = {str(path.resolve()) for path in packages} | {PACKAGE}
    return tuple(_allow(str(folder), hidden_folders))


def _allow(path: str, hidden_folders: Collection[str]) -> Iterator[Grant]:
    """Yields rules to read ``path`` except ``hidden_folders``."""
    if path in hidden_folders:
        return
    if not any(folder.startswith(f"{path}/") for folder in hidden_folders):
        yield "read", path
        return
    # Strings, because Path objects are slow for thousands of entries.
    with os.scandir(path) as entries:
        for entry in entries:
            if not entry.is_symlink():
                yield from _allow(entry.path, hidden_folders)
