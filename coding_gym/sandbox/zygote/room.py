"""The mounts of one sandbox: everything it can see, put together in a fresh mount namespace."""

import fcntl
import os
import socket
import struct
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from coding_gym.sandbox.zygote import parts
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.shelf import SHELF
from coding_gym.sandbox.zygote.steps import step

EPISODE = "/episode"
_OLD = "/.old"
_QUIET = sc.NOSUID | sc.NODEV
_SIOCSIFFLAGS = 0x8914
_IFF_UP_LOOPBACK_RUNNING = 0x49
# All sandboxes of a machine share some thousand terminals, and those of a user her inotify objects:
# one must not take what the others need.
_MAX_TERMINALS = 64
_MAX_COUNTS = {
    "max_user_namespaces": 0,
    "max_inotify_instances": 16,
    "max_inotify_watches": 8192,
}
# A folder of the sandbox's own tmpfs, its path inside, its mode.
_WRITABLE = (("tmp", "/tmp", 0o1777), ("home", "/home/agent", 0o755), ("shm", "/dev/shm", 0o1777))  # noqa: S108
_FOLDERS = ("/workspace", "/home/agent", "/tmp", "/proc", "/var", "/run", "/opt", "/sandbox/bin")  # noqa: S108
_DATED = ("/", "/home", "/home/agent", "/opt", "/run", "/sandbox", "/sandbox/bin", "/tmp", "/var")  # noqa: S108


def build(request: dict[str, Any], prepared: parts.Parts, ids: tuple[int, int]) -> None:
    """Makes the current process's namespaces into a sandbox as requested.

    Args:
        request: ``names`` on the shelf; ``layers`` (indices into them, topmost first); ``mounts``
            (pairs of index and path inside); ``upper`` (the index of a folder on disk for changes,
            None for a tmpfs); ``links``; ``files``; ``limits``; ``network``.
        prepared: The parts that all sandboxes share.
        ids: The host uid and gid that become `parts.UID` and `parts.GID`.
    """
    with step("map the sandbox's user"):
        sc.write_text("/proc/self/setgroups", "deny")
        sc.write_text("/proc/self/uid_map", f"{parts.UID} {ids[0]} 1")
        sc.write_text("/proc/self/gid_map", f"{parts.GID} {ids[1]} 1")
    with step("mount the sandbox's tmpfs"):
        limits = request["limits"]
        options = f"mode=0755,size={limits['disk_bytes']},nr_inodes={limits['num_inodes']}"
        sc.mount("tmpfs", EPISODE, _QUIET, options)
        for name in ("root", "upper", "work"):
            os.mkdir(f"{EPISODE}/{name}", 0o755)
    with step("change the sandbox's root"):
        root = f"{EPISODE}/root"
        sc.bind(root, root, recursive=False)
        os.mkdir(root + _OLD)
        sc.pivot(root, _OLD[1:])
    _fill_root(prepared)
    _mount_workspace(request)
    _mount_private_folders()
    with step("mount the sandbox's /proc"):
        sc.mount("proc", "/proc", _QUIET | sc.NOEXEC, "hidepid=invisible")
    _mount_requested(request)
    _write_files(request)
    above = {str(folder) for _, path in request["mounts"] for folder in PurePosixPath(path).parents}
    _close_root({*prepared.links, *request["links"], *_DATED, *above})


def set_up_network(*, shared: bool) -> None:
    """Names the machine, and brings the loopback device up where the network is our own."""
    with step("name the sandbox"):
        sc.set_host_name("sandbox")
    if shared:
        return
    with step("bring the loopback device up"):
        request = struct.pack("16sh22x", b"lo", _IFF_UP_LOOPBACK_RUNNING)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
            fcntl.ioctl(device, _SIOCSIFFLAGS, request)


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
    place = EPISODE if request["upper"] is None else f"{SHELF}/{names[request['upper']]}"
    upper, work = (f"{_OLD}{place}/{name}" for name in ("upper", "work"))
    with step("mount the overlay"):
        if not request["layers"]:
            os.utime(upper, parts.TIMES)
            sc.bind(upper, "/workspace", recursive=False)
            return
        # Relative names, so that the mount's options tell nothing of the host's paths.
        os.chdir(_OLD + SHELF)
        top = os.stat(names[request["layers"][0]])
        os.utime(upper, (top.st_mtime, top.st_mtime))
        lower = ":".join(names[index] for index in request["layers"])
        options = f"lowerdir={lower},upperdir={upper},workdir={work},userxattr"
        sc.mount("overlay", "/workspace", _QUIET, options)
        os.chdir("/")


def _mount_private_folders() -> None:
    with step("mount /tmp, home and /dev/shm"):
        for name, inside, mode in _WRITABLE:
            source = f"{_OLD}{EPISODE}/{name}"
            os.mkdir(source)
            os.chmod(source, mode)
            sc.bind(source, inside, recursive=False)
    with step("mount /dev/pts"):
        options = f"newinstance,ptmxmode=0666,mode=620,max={_MAX_TERMINALS}"
        sc.mount("devpts", "/dev/pts", sc.NOSUID | sc.NOEXEC, options)


def _mount_requested(request: dict[str, Any]) -> None:
    for index, target in request["mounts"]:
        with step(f"mount at {target}"):
            source = f"{_OLD}{SHELF}/{request['names'][index]}"
            if os.path.isdir(source):
                os.makedirs(target, 0o755, exist_ok=True)
            elif not os.path.exists(target):
                os.makedirs(os.path.dirname(target), 0o755, exist_ok=True)
                sc.write_text(target, "")
            sc.bind(source, target)


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
        for name, count in _MAX_COUNTS.items():
            sc.write_text(f"/proc/sys/user/{name}", str(count))
