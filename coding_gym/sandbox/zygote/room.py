"""The mounts of one sandbox: everything it can see, put together in a fresh mount namespace."""

import contextlib
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import Any

from coding_gym.sandbox.zygote import image_root, parts
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.changes import Changes
from coding_gym.sandbox.zygote.shelf import SHELF
from coding_gym.sandbox.zygote.steps import step

EPISODE = "/episode"
_OLD = "/.old"
_QUIET = sc.NOSUID | sc.NODEV
# What setting up takes for a moment where a policy left nothing, and what it may have moved away.
_SPARE_BYTES, _SPARE_INODES = 1 << 20, 16
_SIOCSIFFLAGS = 0x8914
_IFF_UP_LOOPBACK_RUNNING = 0x49
# At least, at first and at most; the kernel would give a connection some MiB, for networks.
_BUFFER_SIZES = {"tcp_rmem": "4096 131072 262144", "tcp_wmem": "4096 16384 262144"}
# All sandboxes of a machine share some thousand terminals, and those of a user her inotify objects:
# one must not take what the others need.
_MAX_TERMINALS = 64
_MAX_COUNTS = {
    "max_user_namespaces": 0,
    "max_inotify_instances": 16,
    "max_inotify_watches": 8192,
}
# What the host's kernel was started with, and which keys its user holds.
_HIDDEN_FILES = ("/proc/cmdline", "/proc/keys")
# A folder of the sandbox's own tmpfs, its path inside, its mode.
_WRITABLE = (("tmp", "/tmp", 0o1777), ("home", "/home/agent", 0o755), ("shm", "/dev/shm", 0o1777))  # noqa: S108
_PLACES = ("/workspace", *(inside for _, inside, _ in _WRITABLE))
_FOLDERS = ("/workspace", "/home/agent", "/tmp", "/proc", "/var", "/run", "/opt", "/sandbox/bin")  # noqa: S108
_DATED = ("/", "/home", "/home/agent", "/opt", "/run", "/sandbox", "/sandbox/bin", "/tmp", "/var")  # noqa: S108


def build(
    request: dict[str, Any],
    prepared: parts.Parts,
    ids: tuple[int, int],
    restore: Callable[[Changes], None] | None,
) -> Changes:
    """Makes the current process's namespaces into a sandbox as requested.

    Returns the folders that hold what is changed in it.

    Args:
        request: ``names`` on the shelf; ``layers`` (indices into them, topmost first); ``mounts``
            (pairs of index and path inside); ``upper`` (the index of a folder on disk for changes,
            None for a tmpfs); ``links``; ``files``; ``limits``; ``restores``; ``image`` (what
            `image_root` takes, and the ``uid`` and ``gid`` of its user; None for the allow-list).
        prepared: The parts that all sandboxes share.
        ids: The host uid and gid that become the image's, or `parts.UID` and `parts.GID`.
        restore: Fills these folders with those of a snapshot before anything is mounted on them.
    """
    _map_user(request["image"], ids)
    changes = _make_tmpfs(request)
    if restore is not None:
        restore(changes)
    with step("change the sandbox's root"):
        root = f"{EPISODE}/root"
        if request["image"]:
            image_root.mount(request, _place_of_upper(request), root, _OLD)
        else:
            sc.bind(root, root, recursive=False)
        os.mkdir(root + _OLD)
        sc.pivot(root, _OLD[1:])
    if request["image"]:
        image_root.fill(prepared, request, _OLD)
    else:
        _fill_root(prepared)
    _mount_workspace(request)
    _mount_private_folders()
    _mount_proc()
    if request["image"]:
        _finish_image(request)
    else:
        _finish(request, prepared)
    if request["restores"]:
        _shrink_tmpfs(request["limits"], changes)
    return changes


def _map_user(image: dict[str, Any] | None, ids: tuple[int, int]) -> None:
    uid, gid = (image["uid"], image["gid"]) if image else (parts.UID, parts.GID)
    with step("map the sandbox's user"):
        sc.write_text("/proc/self/setgroups", "deny")
        sc.write_text("/proc/self/uid_map", f"{uid} {ids[0]} 1")
        sc.write_text("/proc/self/gid_map", f"{gid} {ids[1]} 1")


def _make_tmpfs(request: dict[str, Any]) -> Changes:
    with step("mount the sandbox's tmpfs"):
        limits = request["limits"]
        size, num_inodes = limits["disk_bytes"], limits["num_inodes"]
        if request["restores"]:  # which gives files of several names one more for a while
            size, num_inodes = size + _SPARE_BYTES, 2 * num_inodes + _SPARE_INODES
        options = f"mode=0755,size={size},nr_inodes={num_inodes}"
        sc.mount("tmpfs", EPISODE, _QUIET, options)
        for name in ("root", "upper", "work"):
            os.mkdir(f"{EPISODE}/{name}", 0o755)
        return _make_folders(request)


def _shrink_tmpfs(limits: dict[str, int], changes: Changes) -> None:
    """Gives the tmpfs its limits, which a restored sandbox may have reached before."""
    with step("limit the sandbox's tmpfs"):
        own = os.fstat(changes.folders["tmp"]).st_dev
        # One of its mounts that no requested one covers.
        place = next(inside for _, inside, _ in _WRITABLE if os.stat(inside).st_dev == own)
        facts = os.statvfs(place)
        num_inodes = facts.f_files - facts.f_ffree
        if num_inodes > limits["num_inodes"] + _SPARE_INODES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        size = max(limits["disk_bytes"], (facts.f_blocks - facts.f_bfree) * facts.f_frsize)
        options = f"size={size},nr_inodes={max(limits['num_inodes'], num_inodes)}"
        sc.mount("tmpfs", place, _QUIET | sc.REMOUNT, options)


def _finish(request: dict[str, Any], prepared: parts.Parts) -> None:
    _mount_requested(request)
    _write_files(request)
    above = {str(folder) for _, path in request["mounts"] for folder in PurePosixPath(path).parents}
    dated = {*prepared.links, *request["links"], *_DATED, *above}
    if request["restores"]:  # they have their times
        dated = {path for path in dated if not _is_writable(path)}
    _close_root(dated)


def _finish_image(request: dict[str, Any]) -> None:
    if request["alias"]:
        image_root.show_workspace(request, _OLD)
    request["mounts"] = image_root.targets(request, _OLD)
    _mount_requested(request)
    _write_files(request)
    image_root.close(request, _OLD)
    _set_counts()
    image_root.protect_settings()


def set_up_network(*, shared: bool) -> None:
    """Names the machine, and brings the loopback device up where the network is our own."""
    with step("name the sandbox"):
        sc.set_host_name("sandbox")
    if shared:
        with contextlib.suppress(OSError):  # Linux before 6.12, or one without Landlock
            sc.leave_abstract_sockets()
        return
    with step("bring the loopback device up"):
        request = struct.pack("16sh22x", b"lo", _IFF_UP_LOOPBACK_RUNNING)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
            fcntl.ioctl(device, _SIOCSIFFLAGS, request)
    for name, sizes in _BUFFER_SIZES.items():
        # The machine has a bound of its own for all; this is so that one sandbox cannot use it up.
        with contextlib.suppress(OSError):
            sc.write_text(f"/proc/sys/net/ipv4/{name}", sizes)


def _make_folders(request: dict[str, Any]) -> Changes:
    """Makes the folders that take a sandbox's changes, seen before the change of root."""
    for name, _, mode in _WRITABLE:
        os.mkdir(f"{EPISODE}/{name}")
        os.chmod(f"{EPISODE}/{name}", mode)
        os.utime(f"{EPISODE}/{name}", parts.TIMES)
    names = request["names"]
    upper = _place_of_upper(request) + "/upper"
    if request["layers"]:
        top = os.stat(f"{SHELF}/{names[request['layers'][0]]}")
        os.utime(upper, (top.st_mtime, top.st_mtime))
    else:
        os.utime(upper, parts.TIMES)
    places = {"workspace": upper, **{name: f"{EPISODE}/{name}" for name, _, _ in _WRITABLE}}
    if request["image"]:
        places["image"] = image_root.make_upper(request, _place_of_upper(request))
    return Changes(
        folders={
            name: os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            for name, path in places.items()
        },
        newest_first=os.listdir(EPISODE)[-1] == "root",
    )


def _place_of_upper(request: dict[str, Any]) -> str:
    if request["upper"] is None:
        return EPISODE
    return f"{SHELF}/{request['names'][request['upper']]}"


def _fill_root(prepared: parts.Parts) -> None:
    with step("fill the sandbox's root"):
        for folder in _FOLDERS:
            os.makedirs(folder, 0o755, exist_ok=True)
        for path, target in prepared.links.items():
            os.symlink(target, path)
        os.symlink("../tmp", "/var/tmp")  # noqa: S108
        for source, inside in prepared.binds.items():
            os.mkdir(inside)
            sc.bind(_OLD + source, inside)


def _mount_workspace(request: dict[str, Any]) -> None:
    names = request["names"]
    upper, work = (f"{_OLD}{_place_of_upper(request)}/{name}" for name in ("upper", "work"))
    with step("mount the overlay"):
        if not request["layers"]:
            sc.bind(upper, "/workspace", recursive=False)
            return
        # Relative names, so that the mount's options tell nothing of the host's paths.
        os.chdir(_OLD + SHELF)
        lower = ":".join(names[index] for index in request["layers"])
        options = f"lowerdir={lower},upperdir={upper},workdir={work},userxattr"
        sc.mount("overlay", "/workspace", _QUIET, options)
        os.chdir("/")


def _mount_private_folders() -> None:
    with step("mount /tmp, home and /dev/shm"):
        for name, inside, _ in _WRITABLE:
            sc.bind(f"{_OLD}{EPISODE}/{name}", inside, recursive=False)
    with step("mount /dev/pts"):
        options = f"newinstance,ptmxmode=0666,mode=620,max={_MAX_TERMINALS}"
        sc.mount("devpts", "/dev/pts", sc.NOSUID | sc.NOEXEC, options)


def _mount_proc() -> None:
    with step("mount the sandbox's /proc"):
        sc.mount("proc", "/proc", _QUIET | sc.NOEXEC, "hidepid=invisible")
        for path in filter(os.path.exists, _HIDDEN_FILES):
            sc.bind(_OLD + parts.NOTHING, path, recursive=False)


def _mount_requested(request: dict[str, Any]) -> None:
    for index, target in request["mounts"]:
        with step(f"mount at {target}"):
            source = f"{_OLD}{SHELF}/{request['names'][index]}"
            is_folder = os.path.isdir(source)
            if request["restores"] and _is_writable(target):
                # A policy may have moved the way to it, and put something else there.
                image_root.make_real(target if is_folder else os.path.dirname(target))
            _require_no_detour(target, anywhere=bool(request["image"]))
            if is_folder:
                os.makedirs(target, 0o755, exist_ok=True)
            elif not os.path.exists(target):
                os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
                sc.write_text(target, "")
            sc.bind(source, target)


def _require_no_detour(target: str, *, anywhere: bool) -> None:
    """Refuses a way through a symlink, which may lead out: those of the system's folders do not."""
    for path in map(str, (PurePosixPath(target), *PurePosixPath(target).parents)):
        if (anywhere or _is_writable(path)) and os.path.islink(path):
            raise OSError(errno.ELOOP, f"{path} is a symlink")


def _is_writable(path: str) -> bool:
    return any(f"{path}/".startswith(f"{place}/") for place in _PLACES)


def _write_files(request: dict[str, Any]) -> None:
    with step("write the sandbox's files"):
        for path, target in request["links"].items():
            os.symlink(target, path)
        for number, (path, text) in enumerate(request["files"].items()):
            source = f"{_OLD}{EPISODE}/file{number}"
            sc.write_text(source, text)
            sc.bind(source, path, recursive=False)
            sc.restrict(path, _QUIET | sc.READ_ONLY)


def _close_root(dated: Iterable[str]) -> None:
    """Lets go of everything outside, and makes the root read-only and of no particular time."""
    with step("close the sandbox's root"):
        sc.unmount(_OLD)
        os.rmdir(_OLD)
        own = os.stat("/").st_dev
        for path in dated:
            if os.lstat(path).st_dev == own:  # not the host's, such as /usr
                os.utime(path, parts.TIMES, follow_symlinks=False)
        sc.restrict("/", _QUIET | sc.READ_ONLY, recursive=False)
    _set_counts()


def _set_counts() -> None:
    with step("limit what the user's sandboxes share"):
        for name, count in _MAX_COUNTS.items():
            sc.write_text(f"/proc/sys/user/{name}", str(count))
