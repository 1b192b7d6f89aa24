"""Steps of a sandbox's set-up: its mounts, in a new mount namespace.

`server` calls them in order, and `roots` makes the root. ``mount_names`` has the names below
`SOURCES` at which the sources of a request are mounted.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Mapping, Sequence
from functools import cache

from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.fixed import DATE_S, GID, HOME, TMP, UID, WORKDIR
from coding_gym.sandbox.inside.host_folders import EMPTY_FILE, SOURCES
from coding_gym.sandbox.inside.request import ImageRequest, SandboxRequest, Source
from coding_gym.sandbox.inside.syscalls import step

MountNames = Mapping[Source, str]

# EPISODE is the sandbox's tmpfs, and ROOT the folder at which its root is mounted, seen from the
# server's root. OLD is the server's root, seen from the sandbox until `mount_sources`.
EPISODE = "/episode"
ROOT = f"{EPISODE}/root"
OLD = "/.old"
QUIET = sc.NOSUID | sc.NODEV
# The sandbox's tmpfs is mounted here; no requested mount can be at or below /dev.
_SHM = "/dev/shm"  # noqa: S108 - inside the sandbox
# Folders of the sandbox's tmpfs: name, path in the sandbox, mode.
_WRITABLE_FOLDERS = (("tmp", TMP, 0o1777), ("home", HOME, 0o755), ("shm", _SHM, 0o1777))
# A snapshot may fill the limits. Until the set-up ends, the tmpfs is larger by these numbers, for
# files of the set-up and mount points that a policy has removed.
_SPARE_BYTES, _SPARE_INODES = 1 << 20, 16
# One sandbox must not use up the terminals of the machine or the inotify objects of a user.
_MAX_TERMINALS = 64
_MAX_COUNTS = {
    "max_user_namespaces": 0,
    "max_inotify_instances": 16,
    "max_inotify_watches": 8192,
}
# These files show the host kernel's command line, the user's keys, and locks of all processes.
_HIDDEN_FILES = ("/proc/cmdline", "/proc/keys", "/proc/locks")


def map_user(outer_ids: tuple[int, int], image: ImageRequest | None) -> None:
    """Maps the uid and gid of the parent namespace to those of the image, else to `UID`, `GID`."""
    uid, gid = (image.uid, image.gid) if image else (UID, GID)
    with step("map the sandbox's user"):
        sc.write_text("/proc/self/setgroups", "deny")
        sc.write_text("/proc/self/uid_map", f"{uid} {outer_ids[0]} 1")
        sc.write_text("/proc/self/gid_map", f"{gid} {outer_ids[1]} 1")


def make_tmpfs(request: SandboxRequest, mount_names: MountNames) -> dict[str, str]:
    """Mounts the sandbox's tmpfs at `EPISODE`; returns the folders of its changes by name."""
    limits = request.limits
    size, num_inodes = limits["disk_bytes"], limits["num_inodes"]
    if request.restores:
        size, num_inodes = size + _SPARE_BYTES, num_inodes + _SPARE_INODES
    options = f"mode=0755,size={size},nr_inodes={num_inodes}"
    sc.mount("tmpfs", EPISODE, QUIET, options)
    for name in ("root", "upper", "work"):
        os.mkdir(f"{EPISODE}/{name}")
    for name, _, mode in _WRITABLE_FOLDERS:
        os.mkdir(f"{EPISODE}/{name}")
        os.chmod(f"{EPISODE}/{name}", mode)
        os.utime(f"{EPISODE}/{name}", (DATE_S, DATE_S))
    upper = f"{upper_folder(request, mount_names)}/upper"
    top_layers = [f"{SOURCES}/{mount_names[layer]}" for layer in request.layers[:1]]
    time_ns = os.stat(top_layers[0]).st_mtime_ns if top_layers else DATE_S * 10**9
    os.utime(upper, ns=(time_ns, time_ns))
    return {"workspace": upper, **{name: f"{EPISODE}/{name}" for name, _, _ in _WRITABLE_FOLDERS}}


def enter_root() -> None:
    """Makes `ROOT` the root of this process; the server's root is then at `OLD`."""
    with step("change the sandbox's root"):
        os.mkdir(ROOT + OLD)
        sc.pivot(ROOT, OLD[1:])


def mount_private_folders(request: SandboxRequest, mount_names: MountNames) -> None:
    """Mounts the private folders of a sandbox: workspace, /tmp, home, terminals, /proc."""
    upper, work = (
        f"{OLD}{upper_folder(request, mount_names)}/{name}" for name in ("upper", "work")
    )
    with step("mount the overlay", "overlay"):
        if request.layers:
            layers = [mount_names[layer] for layer in request.layers]
            mount_overlay(request, WORKDIR, OLD + SOURCES, layers, (upper, work))
        else:
            sc.bind(upper, WORKDIR, recursive=False)
    with step("mount /tmp, home and /dev/shm"):
        for name, target, _ in _WRITABLE_FOLDERS:
            sc.bind(f"{OLD}{EPISODE}/{name}", target, recursive=False)
    with step("mount /dev/pts"):
        options = f"newinstance,ptmxmode=0666,mode=620,max={_MAX_TERMINALS}"
        sc.mount("devpts", "/dev/pts", sc.NOSUID | sc.NOEXEC, options)
    with step("mount the sandbox's /proc"):
        sc.mount("proc", "/proc", QUIET | sc.NOEXEC, "hidepid=invisible")
        for path in filter(os.path.exists, _HIDDEN_FILES):
            sc.bind(OLD + EMPTY_FILE, path, recursive=False)


def mount_overlay(
    request: SandboxRequest,
    target: str,
    folder: str,
    layers: Sequence[str],
    changes: tuple[str, str],
) -> None:
    """Mounts an overlay.

    Args:
        request: The request of the sandbox.
        target: The mount point.
        folder: The folder of the layers.
        layers: Names of the layers in ``folder``, the topmost first; names are short, because all
            options must fit on one memory page.
        changes: The overlay's upper folder and work folder.
    """
    upper, work = changes
    options = f"lowerdir={':'.join(layers)},upperdir={upper},workdir={work},userxattr"
    if request.upper is not None:
        # The unmount of an overlay on disk syncs the whole file system; `volatile` skips this,
        # because the changes are discarded anyway.
        options += ",volatile"
    os.chdir(folder)
    sc.mount("overlay", target, QUIET, options)
    os.chdir("/")


class Times:
    """Stores and restores the times of folders in which the set-up makes entries.

    Args:
        root_mtime: Modification time of the root, in seconds since the epoch.
    """

    def __init__(self, root_mtime: float) -> None:
        self._times = {"/": root_mtime}

    def note(self, folder: str) -> None:
        """Stores the times of a folder and its parents, or the fixed date of missing folders."""
        path = ""
        for name in folder.split("/")[1:]:
            path += f"/{name}"
            if path not in self._times:
                exists = os.path.isdir(path) and not os.path.islink(path)
                self._times[path] = os.lstat(path).st_mtime if exists else DATE_S

    def restore(self) -> None:
        """Sets the stored times of the folders that are on the root's file system."""
        device = os.stat("/").st_dev
        for path, mtime in self._times.items():
            info = os.lstat(path)
            if info.st_dev == device and stat.S_ISDIR(info.st_mode):
                os.utime(path, (mtime, mtime))


def mount_sources(request: SandboxRequest, mount_names: MountNames, times: Times) -> None:
    """Unmounts the server's root, and mounts the sources of the request.

    The target of a mount can contain symbolic links of an image, a layer or a snapshot. These links
    are resolved after the server's root is unmounted, so they lead only into the sandbox.

    Args:
        request: The request of the sandbox.
        mount_names: The names of the request's sources.
        times: Stores the times of the folders that get mount points.
    """
    alias = request.workspace_alias
    sources = [(WORKDIR, alias, True)] if alias else []
    for mount in request.mounts:
        source = f"{OLD}{SOURCES}/{mount_names[mount.source]}"
        sources.append((source, mount.target, mount.source.is_folder))
    trees = [sc.clone_tree(source) for source, _, _ in sources]
    with step("unmount the server's root"):
        sc.unmount(OLD)
        os.rmdir(OLD)
    for tree, (_, target, is_folder) in zip(trees, sources, strict=True):
        with step(f"mount at {target}", "request" if request.restores else "target"):
            path = _resolved(target, restores=request.restores)
            times.note(path)
            make_real(path if is_folder else os.path.dirname(path))
            if not is_folder:
                with contextlib.suppress(FileExistsError):
                    os.mknod(path, stat.S_IFREG | 0o644)
            sc.attach_tree(tree, path)
            os.close(tree)


def _resolved(path: str, *, restores: bool) -> str:
    """Returns a path without symbolic links; its last parts need not exist.

    In a restored sandbox, a policy can have made links. Paths in writable folders, and paths whose
    links cannot be followed, are then returned unchanged; the caller replaces their links.

    Raises:
        OSError: In a new sandbox, links form a loop or lead where nothing may be mounted.
    """
    if restores and path.startswith(tuple(f"{target}/" for _, target, _ in _WRITABLE_FOLDERS)):
        return path
    try:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.stat(path)
        resolved = os.path.realpath(path)
        # A mount at these paths would hide mounts that confine the sandbox.
        if resolved == "/" or f"{resolved}/".startswith(("/dev/", "/proc/")):
            raise OSError(errno.ELOOP, f"{path} leads to {resolved}")
    except OSError:
        if not restores:
            raise
        return path
    return resolved


def make_real(path: str) -> None:
    """Creates every folder of a path; replaces files and links in the path by folders."""
    folder = ""
    for name in path.split("/")[1:]:
        folder += f"/{name}"
        if os.path.isdir(folder) and not os.path.islink(folder):
            continue
        if os.path.lexists(folder):
            os.unlink(folder)
        os.mkdir(folder, 0o755)


def make_links(links: Mapping[str, str]) -> None:
    """Makes symbolic links with the fixed time; ``links`` has targets by absolute path."""
    for path, target in links.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)
        os.utime(path, (DATE_S, DATE_S), follow_symlinks=False)


def limit_counts() -> None:
    """Limits nested user namespaces and inotify objects.

    The kernel counts these objects per user, across sandboxes.
    """
    with step("limit objects that a user's sandboxes share"):
        for name, count in _MAX_COUNTS.items():
            sc.write_text(f"/proc/sys/user/{name}", str(count))


def limit_restored(request: SandboxRequest) -> None:
    """Sets the limits of a restored sandbox's tmpfs."""
    if not request.restores:
        return
    limits = request.limits
    options = f"size={limits['disk_bytes']},nr_inodes={limits['num_inodes']}"
    with step("fit the snapshot into the limits", "request"):
        # EINVAL means that the files of the set-up exceed the limits: the larger limits remain.
        sc.mount("tmpfs", _SHM, QUIET | sc.REMOUNT, options, tolerates=errno.EINVAL)


def upper_folder(request: SandboxRequest, mount_names: MountNames) -> str:
    """Returns the folder with the upper and work folders of the sandbox's overlays."""
    if request.upper is None:
        return EPISODE
    return f"{SOURCES}/{mount_names[request.upper]}"


@cache
def lists_newest_first() -> bool:
    """Returns whether a tmpfs lists the newest entry of a folder first."""
    for name in ("first", "second"):
        os.mkdir(f"{EPISODE}/{name}")
    names = os.listdir(EPISODE)
    for name in names:
        os.rmdir(f"{EPISODE}/{name}")
    return names[0] == "second"


def overlay_works_on_tmpfs() -> bool:
    """Tests whether this kernel's overlay works with its changes on a tmpfs.

    The test replaces a folder of a lower layer, which needs user extended attributes on the upper
    folder. A check of the kernel's version can be wrong: distributions backport the feature.
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
