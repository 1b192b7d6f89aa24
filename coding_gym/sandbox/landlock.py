"""The ``landlock`` backend: for machines that forbid user namespaces. No mounts, no daemon."""

import atexit
import os
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from coding_gym.errors import InvalidArgumentError, SandboxUnavailableError
from coding_gym.host.network import settings
from coding_gym.sandbox import cgroups, layer_union
from coding_gym.sandbox.backend_checks import RUN_AGAIN, failed_probe
from coding_gym.sandbox.host_folder import HostFolder, fill, open_sandbox, variables
from coding_gym.sandbox.inside import landlock_rules
from coding_gym.sandbox.inside.host_folders import THIRD_PARTY
from coding_gym.sandbox.inside.syscalls import SetupError, machine
from coding_gym.sandbox.namespace import NamespaceBackend
from coding_gym.sandbox.ownership import make_folder, remove_folder
from coding_gym.sandbox.protocol import Probe, Promise, Snapshot
from coding_gym.sandbox.served_sandbox import ServedSandbox
from coding_gym.sandbox.spec import SandboxSpec
from coding_gym.sandbox.zygotes import require_linux

Grant = tuple[str, str]

NAME = "landlock"
# Without mounts there is one view of the files; without cgroups, nothing to count with.
_NEVER = (
    Promise.DISK_LIMIT,
    Promise.INODE_LIMIT,
    Promise.FIXED_PATHS,
    Promise.PRIVATE_TMP,
    Promise.SMALL_SNAPSHOTS,
    Promise.OWN_IMAGE,
)
# Versions of Landlock that promises need, with their Linux. The filter on system calls refuses the
# other accesses that an older version cannot control.
_OLDEST = 2
_SINCE = {Promise.HOST_PROCESSES: (6, "6.12")}
# Their files exist, and may not be read, which git and others take for a broken machine.
_NO_HOST_SETTINGS = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "PIP_CONFIG_FILE": "/dev/null",
}
_NO_LANDLOCK = (
    "use Linux 5.19 or later, with `landlock` in the `lsm=` list of the kernel's command line"
)
_PACKAGE = Path(__file__).parents[1]
_TOP_FOLDERS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_ETC = (
    "alternatives",
    "ca-certificates",
    "crypto-policies",
    "debian_version",
    "group",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki",
    "protocols",
    "services",
    "ssl",
)
# They describe the machine, and none of its processes.
_PROC = ("cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version")
_CPUS = ("online", "possible", "present")
# Not needed to run programs, and most of the size.
_LEFT_OUT = ("*.a", "test", "idlelib", "lib2to3")
_PACKAGES = frozenset(Path(pattern).name for pattern in THIRD_PARTY)


class LandlockBackend:
    """Sandboxes held by Landlock rules and a seccomp filter.

    Covered: the host's files (an allow-list; of the rest, names, sizes and dates can be asked for,
    and nothing else), signals, memory and environment of the host's processes, the network (no
    sockets at all), privileges, system calls, memory, the number of processes (without a delegated
    cgroup, a burst may reach twice the limit). Not covered: what `Probe.missing` names.
    The workspace is a copy, so opening one takes time for all its files, and so does a snapshot.

    Args:
        abi: The version of Landlock to use; what the kernel has when None or higher than that.
    """

    def __init__(self, abi: int | None = None) -> None:
        self._abi = abi

    @property
    def name(self) -> str:
        """``"landlock"``."""
        return NAME

    def owner(self) -> tuple[int, int]:
        """Returns the uid and gid that sandboxes run as, those of the ``namespace`` backend.

        So that both can use the same templates.
        """
        return NamespaceBackend().owner()

    def image_id(self, image: str) -> str:
        """Raises InvalidArgumentError: this backend runs no images."""
        raise InvalidArgumentError(f"the {self.name!r} sandbox cannot run the image {image!r}")

    def probe(self) -> Probe:
        """Opens a throw-away sandbox, runs a command in it and closes it; never raises."""
        if (failed := failed_probe(self.open)) is not None:
            return failed
        version = self._version()
        lost = {promise: linux for promise, (since, linux) in _SINCE.items() if version < since}
        detail = f"Landlock {version}: opened a sandbox as uid {self.owner()[0]}, ran a command"
        for promise, linux in lost.items():
            detail += f"; {promise} needs Linux {linux}"
        unbounded = () if cgroups.delegation().folder else (Promise.CPU_LIMIT,)
        return Probe(available=True, detail=detail, missing=(*_NEVER, *unbounded, *lost))

    def open(self, spec: SandboxSpec, *, snapshot: Snapshot | None = None) -> ServedSandbox:
        """Opens a sandbox; see `coding_gym.sandbox.protocol.SandboxBackend.open`."""
        self._require_landlock()
        try:
            return open_sandbox(
                NAME, spec, snapshot, owner=self.owner(), missing=_NEVER, prepare=self._prepare
            )
        except SetupError as failure:
            raise SandboxUnavailableError(str(failure), _remedy(failure)) from failure

    def _prepare(self, folder: Path, spec: SandboxSpec) -> tuple[HostFolder, dict[str, Any]]:
        owner = self.owner()
        admit(folder, owner)
        files = fill(
            folder,
            spec,
            owner,
            has_tmp=True,
            show=partial(reachable, user=owner),
            show_python=partial(reachable_python, user=owner),
        )
        env = variables(spec, files, _NO_HOST_SETTINGS | (settings().env if spec.network else {}))
        if spec.python is not None:
            prefix = files.host_paths[str(spec.python.prefix)]
            if prefix != str(spec.python.prefix):
                env["LD_LIBRARY_PATH"] = f"{prefix}/lib"
        grants = list(_grants(spec, files))
        return files, {"env": env, "landlock": {"abi": self._version(), "grants": grants}}

    def _version(self) -> int:
        return landlock_rules.abi() if self._abi is None else min(self._abi, landlock_rules.abi())

    def _require_landlock(self) -> None:
        require_linux(NAME)
        try:
            machine()
        except OSError as error:
            raise SandboxUnavailableError(str(error), "use an x86_64 or aarch64 machine") from error
        if self.owner()[0] == 0:
            raise SandboxUnavailableError(
                "sandboxes would run as root: this user namespace has no other user",
                "run as an ordinary user, or map more users into the namespace",
            )
        if self._version() == 0:
            raise SandboxUnavailableError("this kernel does not enforce Landlock", _NO_LANDLOCK)
        if self._version() < _OLDEST:
            raise SandboxUnavailableError(
                "Landlock of this kernel cannot allow moves of files between folders",
                f"use Linux 5.19 or later (this is {os.uname().release})",
            )


def _grants(spec: SandboxSpec, files: HostFolder) -> Iterator[Grant]:
    yield from system_grants()
    yield "read", str(files.path / "python")
    for path in files.writable.values():
        yield "write", path
    for mount in spec.mounts:
        yield "write" if mount.writable else "read", files.host_paths[mount.target]
    if spec.python is not None:
        prefix = Path(files.host_paths[str(spec.python.prefix)])
        if not is_system(prefix):
            yield from tree_grants(prefix)
    if spec.network:
        yield "read", "/etc/resolv.conf"
        for source in settings().paths:
            yield "read", str(source)


def _remedy(failure: SetupError) -> str:
    if failure.step == "change the user":
        return "run with CAP_SETUID and CAP_SETGID, or as an ordinary user"
    if "Landlock" in failure.step:
        return "allow landlock_create_ruleset and its kin in the container's seccomp profile"
    return RUN_AGAIN


@cache
def system_grants() -> tuple[Grant, ...]:
    """Returns the rules for what every sandbox sees: programs, libraries, devices."""
    grants = [("device", f"/dev/{name}") for name in _DEVICES]
    grants += [("read", f"/etc/{name}") for name in _ETC]
    grants += [("read", str(path)) for path in sorted(Path("/etc").glob("java-*-openjdk"))]
    grants += [("read", f"/proc/{name}") for name in _PROC]
    grants += [("read", f"/sys/devices/system/cpu/{name}") for name in _CPUS]
    for name in _TOP_FOLDERS:
        folder = Path("/") / name
        if folder.is_dir() and not folder.is_symlink():
            grants += tree_grants(folder)
    return tuple(grants)


@cache
def tree_grants(folder: Path) -> tuple[Grant, ...]:
    """Returns the rules for a folder with programs, less its third-party Python packages."""
    found = {path for pattern in THIRD_PARTY for path in folder.glob(pattern)}
    hidden = {str(path.resolve()) for path in (*found, _PACKAGE)}
    return tuple(_allow(str(folder), hidden))


def is_system(path: Path) -> bool:
    """Whether a path is part of what every sandbox sees."""
    return any(path.is_relative_to(f"/{name}") for name in _TOP_FOLDERS)


def _allow(path: str, hidden: Collection[str]) -> Iterator[Grant]:
    if path in hidden:
        return
    if not any(other.startswith(f"{path}/") for other in hidden):
        yield "read", path
        return
    # Strings: there may be thousands of entries.
    with os.scandir(path) as entries:
        for entry in entries:
            if not entry.is_symlink():
                yield from _allow(entry.path, hidden)


def admit(folder: Path, user: tuple[int, int]) -> None:
    """Lets commands, and no other user of the machine, pass through a private folder of ours.

    The files that commands make in it may be open to everybody, or run with their uid.

    Args:
        folder: Of `make_folder`.
        user: The uid and gid of commands, where they are not ours.
    """
    if user[0] != os.geteuid():
        os.chown(folder, -1, user[1])
        folder.chmod(0o710)


def reachable(path: Path, user: tuple[int, int]) -> Path:
    """Returns a path at which a user can read ``path``: itself, or a copy.

    Without mounts, a path below root's home stays out of reach of commands that run as another
    user, whatever Landlock allows.

    Raises:
        OSError: It cannot be copied.
    """
    real = path.resolve()
    return real if _may_access(real, user) else _copy(real, user, _everything)


def reachable_python(prefix: Path, user: tuple[int, int]) -> Path:
    """Returns an interpreter's prefix, or a copy of it without third-party packages.

    Python finds its own modules by listing their folder. Landlock cannot allow the listing of a
    folder and refuse that of the folders in it, where most installations keep those packages.
    """
    real = prefix.resolve()
    packages = [path for name in _PACKAGES for path in real.glob(f"lib*/py*/{name}")]
    is_mixed = any((path.parent / "os.py").exists() for path in packages)
    if not is_mixed and _may_access(real, user):
        return real
    return _copy(real, user, _is_needed)


def _may_access(path: Path, user: tuple[int, int]) -> bool:
    return all(_may_pass(folder, *user) for folder in path.parents)


def _may_pass(folder: Path, uid: int, gid: int) -> bool:
    facts = folder.stat()
    if facts.st_uid == uid:
        return bool(facts.st_mode & 0o100)
    return bool(facts.st_mode & (0o010 if facts.st_gid == gid else 0o001))


def _everything(_: Path) -> bool:
    return True


def _is_needed(path: Path) -> bool:
    """Whether a part of an interpreter's prefix is copied: neither packages nor tests."""
    return path.name not in _PACKAGES and not any(path.match(name) for name in _LEFT_OUT)


def _copy(source: Path, user: tuple[int, int], is_wanted: Callable[[Path], bool]) -> Path:
    """Returns a copy that this process keeps until it ends, made anew where the source changed."""
    facts = source.stat()
    # Only root may create files that belong to another user.
    owner = None if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    key = source, facts.st_ino, facts.st_mtime_ns, user, is_wanted
    copies = _copies(os.getpid(), user)
    with copies.lock:
        if key not in copies.made:
            place = Path(tempfile.mkdtemp(dir=copies.folder)) / source.name
            place.parent.chmod(0o755)
            if source.is_file():
                layer_union.copy_file(source, place, owner=owner)
            else:
                place.mkdir()
                layer_union.copy((source,), place, owner=owner, is_wanted=is_wanted)
            copies.made[key] = place
        return copies.made[key]


class _Copies:
    """The copies of one process for one user; a fork may inherit a lock that is never released."""

    def __init__(self, pid: int, user: tuple[int, int]) -> None:
        self.lock = threading.Lock()
        self.made: dict[object, Path] = {}
        self.folder = make_folder("shown")
        admit(self.folder, user)
        atexit.register(self._remove, pid)

    def _remove(self, pid: int) -> None:
        if os.getpid() == pid:  # and not a fork that ends as its parent would
            remove_folder(self.folder)


_copies = cache(_Copies)
