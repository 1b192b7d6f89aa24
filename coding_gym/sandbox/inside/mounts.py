"""The mounts of one sandbox: everything it can see, put together in a fresh mount namespace.

Each function takes the `syscalls.Calls` that it adds to. For a root of the host's files they are a
`plan.Plan`; `image_root` makes its own at once.
"""

import errno
import os
from collections.abc import Iterable
from functools import cache, partial
from pathlib import PurePosixPath
from typing import Any

from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.host_folders import (
    ALLOWED,
    DATE_S,
    GID,
    MOUNTED,
    NOTHING,
    UID,
    allowed_folders,
    allowed_links,
)
from coding_gym.sandbox.inside.syscalls import Calls

# A tmpfs of the sandbox's own, as the server has it in its root, and the server's root in the
# sandbox's, until that is closed.
EPISODE = "/episode"
OLD = "/.old"
QUIET = sc.NOSUID | sc.NODEV
# A folder of that tmpfs, its path inside, its mode.
_WRITABLE = (("tmp", "/tmp", 0o1777), ("home", "/home/agent", 0o755), ("shm", "/dev/shm", 0o1777))  # noqa: S108
# Space for the set-up in case a snapshot fills the limits, and for folders that a policy moved.
_SPARE_BYTES, _SPARE_INODES = 1 << 20, 16
# All sandboxes of a machine share some thousand terminals, and those of a user the inotify objects:
# one sandbox must not use up what the others need.
_MAX_TERMINALS = 64
_MAX_COUNTS = {
    "max_user_namespaces": 0,
    "max_inotify_instances": 16,
    "max_inotify_watches": 8192,
}
# They show the command line of the host's kernel, the keys of its user, and locks of all processes.
_HIDDEN_FILES = ("/proc/cmdline", "/proc/keys", "/proc/locks")
_FOLDERS = (
    *("/workspace", "/home", "/home/agent", "/tmp", "/proc", "/var", "/run", "/opt"),  # noqa: S108
    *("/sandbox", "/sandbox/bin"),
)
_DATED = ("/", "/home", "/home/agent", "/opt", "/run", "/sandbox", "/sandbox/bin", "/tmp", "/var")  # noqa: S108
_DATE_NS = DATE_S * 10**9


def map_user(calls: Calls, image: dict[str, Any] | None) -> None:
    """Maps this process's user to that of the image, or to the one of the host's root."""
    uid, gid = (image["uid"], image["gid"]) if image else (UID, GID)
    with calls.step("map the sandbox's user"):
        calls.write_text("/proc/self/setgroups", "deny")
        calls.write_text("/proc/self/uid_map", f"{uid} {os.getuid()} 1")
        calls.write_text("/proc/self/gid_map", f"{gid} {os.getgid()} 1")


def make_tmpfs(calls: Calls, request: dict[str, Any]) -> dict[str, str]:
    """Mounts the sandbox's tmpfs at `EPISODE`; returns the folders that take its changes, by name.

    Args:
        calls: Receives the system calls.
        request: ``show`` (what `MountedFolders` takes) and the ``names`` of these below `MOUNTED`;
            ``layers`` (indices into them, topmost first); ``time_ns`` (that of the workspace, None
            for our own date); ``mounts`` (pairs of index and path inside); ``upper`` (the index of
            a folder on disk for changes, None for a tmpfs); ``links``; ``files``; ``limits``;
            ``restores``; ``image`` (what `image_root` takes, and the ``uid`` and ``gid`` of its
            user; None for the allow-list).
    """
    limits = request["limits"]
    size, num_inodes = limits["disk_bytes"], limits["num_inodes"]
    if request["restores"]:
        size, num_inodes = size + _SPARE_BYTES, num_inodes + _SPARE_INODES
    options = f"mode=0755,size={size},nr_inodes={num_inodes}"
    calls.mount("tmpfs", EPISODE, QUIET, options)
    for name in ("root", "upper", "work"):
        calls.mkdir(f"{EPISODE}/{name}")
    for name, _, mode in _WRITABLE:
        calls.mkdir(f"{EPISODE}/{name}")
        calls.chmod(f"{EPISODE}/{name}", mode)
        calls.utime(f"{EPISODE}/{name}", _DATE_NS)
    upper = f"{upper_folder(request)}/upper"
    calls.utime(upper, _DATE_NS if request["time_ns"] is None else request["time_ns"])
    return {"workspace": upper, **{name: f"{EPISODE}/{name}" for name, _, _ in _WRITABLE}}


def build_root(calls: Calls, request: dict[str, Any]) -> None:
    """Puts together a root of the host's files, and changes to it."""
    with calls.step("change the sandbox's root"):
        root = f"{EPISODE}/root"
        calls.bind(root, root, recursive=False)
        change_root(calls, root)
    with calls.step("fill the sandbox's root"):
        for folder in _FOLDERS:
            calls.mkdir(folder)
        for path, target in allowed_links().items():
            calls.symlink(target, path)
        calls.symlink("../tmp", "/var/tmp")  # noqa: S108
        for folder in allowed_folders():
            calls.mkdir(folder)
            calls.bind(OLD + ALLOWED + folder, folder)
    mount_own_folders(calls, request)
    _mount_folders(calls, request)
    with calls.step("write the sandbox's files"):
        make_links(calls, request)
        for count, (path, text) in enumerate(request["files"].items()):
            source = f"{OLD}{EPISODE}/file{count}"
            calls.write_text(source, text)
            calls.bind(source, path, recursive=False)
            calls.restrict(path, QUIET | sc.READ_ONLY)
    close_host(calls)
    limit_restored(calls, request)
    with calls.step("date the sandbox's root"):
        for path in sorted(_dated(request)):
            calls.utime(path, _DATE_NS)
        calls.restrict("/", QUIET | sc.READ_ONLY, recursive=False)
    limit_counts(calls)


def change_root(calls: Calls, root: str) -> None:
    """Makes a folder the root; the server's own is then at `OLD`."""
    calls.mkdir(root + OLD)
    calls.pivot(root, OLD[1:])


def mount_own_folders(calls: Calls, request: dict[str, Any]) -> None:
    """Mounts the sandbox's own folders: workspace, /tmp, home, terminals, /proc."""
    names = request["names"]
    upper, work = (f"{OLD}{upper_folder(request)}/{name}" for name in ("upper", "work"))
    with calls.step("mount the overlay"):
        if request["layers"]:
            layers = [names[index] for index in request["layers"]]
            mount_overlay(calls, request, "/workspace", OLD + MOUNTED, layers, (upper, work))
        else:
            calls.bind(upper, "/workspace", recursive=False)
    with calls.step("mount /tmp, home and /dev/shm"):
        for name, inside, _ in _WRITABLE:
            calls.bind(f"{OLD}{EPISODE}/{name}", inside, recursive=False)
    with calls.step("mount /dev/pts"):
        options = f"newinstance,ptmxmode=0666,mode=620,max={_MAX_TERMINALS}"
        calls.mount("devpts", "/dev/pts", sc.NOSUID | sc.NOEXEC, options)
    with calls.step("mount the sandbox's /proc"):
        calls.mount("proc", "/proc", QUIET | sc.NOEXEC, "hidepid=invisible")
        for path in filter(os.path.exists, _HIDDEN_FILES):
            calls.bind(OLD + NOTHING, path, recursive=False)


def mount_overlay(
    calls: Calls,
    request: dict[str, Any],
    target: str,
    folder: str,
    layers: list[str],
    changes: tuple[str, str],
) -> None:
    """Mounts an overlay.

    Args:
        calls: Receives the system calls.
        request: As that of `make_tmpfs`.
        target: Where to.
        folder: The folder of the layers.
        layers: Their names there, the topmost first; so one page of options holds them.
        changes: The folder for what is changed, and the one beside it that the kernel works in.
    """
    upper, work = changes
    options = f"lowerdir={':'.join(layers)},upperdir={upper},workdir={work},userxattr"
    if request["upper"] is not None:
        # On a disk, nothing has to wait until what ends with the sandbox is written out; without
        # this its end does, and for everything else that is dirty on that disk.
        options += ",volatile"
    calls.chdir(folder)
    calls.mount("overlay", target, QUIET, options)
    calls.chdir("/")


def _mount_folders(calls: Calls, request: dict[str, Any]) -> None:
    """Mounts the folders of the request, from the new root while the old one is still there."""
    for index, target in request["mounts"]:
        with calls.step(f"mount at {target}"):
            is_folder = request["show"][index]["is_folder"]
            if request["restores"] and _is_writable(target):
                # A policy may have moved the way to it, and put something else there.
                folder = target if is_folder else os.path.dirname(target)
                calls.do(partial(make_real, folder))
            # A way through a symlink may lead out; those of the system's folders do not.
            if _is_writable(target):
                calls.refuse_symlinks(target)
            if is_folder:
                calls.makedirs(target)
            else:
                calls.makedirs(os.path.dirname(target))
                calls.make_file(target)
            calls.bind(f"{OLD}{MOUNTED}/{request['names'][index]}", target)


def make_links(calls: Calls, request: dict[str, Any]) -> None:
    """Makes the symbolic links that are asked for."""
    for path, target in request["links"].items():
        calls.makedirs(os.path.dirname(path))
        calls.symlink(target, path)


def limit_counts(calls: Calls) -> None:
    """Limits, in the sandbox's user namespace, objects that all sandboxes of a user share."""
    with calls.step("limit what the user's sandboxes share"):
        for name, count in _MAX_COUNTS.items():
            calls.write_text(f"/proc/sys/user/{name}", str(count))


def close_host(calls: Calls) -> None:
    """Takes the server's root out of sight."""
    with calls.step("close the sandbox's root"):
        calls.unmount(OLD)
        calls.rmdir(OLD)


def limit_restored(calls: Calls, request: dict[str, Any]) -> None:
    """Gives a restored sandbox's tmpfs its limits."""
    if not request["restores"]:
        return
    limits, targets = request["limits"], [target for _, target in request["mounts"]]
    # One of its mounts that no requested one covers.
    place = next(inside for _, inside, _ in _WRITABLE if not _around(inside, targets))
    # A full one may have some more: the kernel refuses limits below what is there.
    for code, num_bytes, num_inodes in ((0, _SPARE_BYTES, _SPARE_INODES), (errno.EINVAL, 0, 0)):
        size, count = limits["disk_bytes"] + num_bytes, limits["num_inodes"] + num_inodes
        with calls.step("restore more than a sandbox may hold"):
            options = f"size={size},nr_inodes={count}"
            calls.mount("tmpfs", place, QUIET | sc.REMOUNT, options, tolerates=code)


def upper_folder(request: dict[str, Any]) -> str:
    """Returns the folder that holds the upper and work folders of the sandbox's overlays."""
    if request["upper"] is None:
        return EPISODE
    return f"{MOUNTED}/{request['names'][request['upper']]}"


@cache
def lists_newest_first() -> bool:
    """Whether a tmpfs, such as the server's own root, lists what was made last first."""
    for name in ("first", "second"):
        os.mkdir(f"{EPISODE}/{name}")
    names = os.listdir(EPISODE)
    for name in names:
        os.rmdir(f"{EPISODE}/{name}")
    return names[0] == "second"


def overlay_works_on_tmpfs() -> bool:
    """Whether this kernel's overlay works whole with its changes on a tmpfs.

    Replaces a folder of a lower layer, which takes user extended attributes on the upper one. Tried
    and not concluded from the version: distributions carry the change into older kernels.
    """
    sc.mount("tmpfs", EPISODE, QUIET, "mode=0700,size=1m")
    try:
        for name in ("lower/folder", "upper", "work", "all"):
            os.makedirs(f"{EPISODE}/{name}")
        folders = (f"{key}dir={EPISODE}/{key}" for key in ("lower", "upper", "work"))
        sc.mount("overlay", f"{EPISODE}/all", sc.NOSUID, ",".join((*folders, "userxattr")))
        os.rmdir(f"{EPISODE}/all/folder")
        os.mkdir(f"{EPISODE}/all/folder")
    except OSError:
        return False
    finally:
        sc.unmount(EPISODE)
    return True


def make_real(path: str) -> None:
    """Makes each part of a path a folder, in place of a file or link that is there."""
    here = ""
    for name in path.split("/")[1:]:
        here += f"/{name}"
        if os.path.isdir(here) and not os.path.islink(here):
            continue
        if os.path.lexists(here):
            os.unlink(here)
        os.mkdir(here, 0o755)


def _dated(request: dict[str, Any]) -> set[str]:
    """Returns the paths that get a fixed time: links, and folders on the sandbox's own tmpfs."""
    targets = [target for _, target in request["mounts"]]
    is_own = {"/": True, "/workspace": not request["layers"], "/proc": False}
    is_own |= dict.fromkeys((*allowed_folders(), *allowed_links()), False)
    is_own |= {inside: True for _, inside, _ in _WRITABLE}
    above = {str(folder) for path in targets for folder in PurePosixPath(path).parents}
    visible = {p for p in above.union(request["links"], _DATED) if not _around(p, targets)}
    dated = {path for path in visible if is_own[max(_around(path, is_own), key=len)]}
    dated |= set(allowed_links())
    if request["restores"]:  # which gave the others their times
        dated = {path for path in dated if not _is_writable(path)}
    return dated


def _is_writable(path: str) -> bool:
    """Whether a path is within the workspace or another folder that commands may write to."""
    return bool(_around(path, ("/workspace", *(inside for _, inside, _ in _WRITABLE))))


def _around(path: str, folders: Iterable[str]) -> list[str]:
    """Returns the folders that a path is in."""
    return [folder for folder in folders if f"{path}/".startswith(f"{folder.rstrip('/')}/")]
