"""The mounts of one sandbox: everything it can see, put together in a fresh mount namespace."""

import errno
import os
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from coding_gym.sandbox.zygote import image_root, parts
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.changes import Changes
from coding_gym.sandbox.zygote.places import (
    EPISODE,
    OLD,
    QUIET,
    WRITABLE,
    is_writable,
    overlay_options,
)
from coding_gym.sandbox.zygote.plan import Plan
from coding_gym.sandbox.zygote.requested import own_folders, plan_files, plan_mounts
from coding_gym.sandbox.zygote.shelf import SHELF
from coding_gym.sandbox.zygote.steps import step

# What setting up takes for a moment where a policy left nothing, and what it may have moved away.
_SPARE_BYTES, _SPARE_INODES = 1 << 20, 16
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
_FOLDERS = (
    *("/workspace", "/home", "/home/agent", "/tmp", "/proc", "/var", "/run", "/opt"),  # noqa: S108
    *("/sandbox", "/sandbox/bin"),
)
_DATED = ("/", "/home", "/home/agent", "/opt", "/run", "/sandbox", "/sandbox/bin", "/tmp", "/var")  # noqa: S108
_TIME_NS = parts.TIMES[0] * 10**9


def plan_room(
    plan: Plan,
    request: dict[str, Any],
    prepared: parts.Parts,
    ids: tuple[int, int],
    restore: Callable[[Changes], None] | None,
) -> Changes:
    """Makes the namespaces of a process into a sandbox as requested.

    Returns the folders that hold what is changed in it.

    Args:
        plan: What it is added to.
        request: ``names`` on the shelf, and whether these ``are_folders``; ``layers`` (indices into
            them, topmost first); ``mounts`` (pairs of index and path inside); ``upper`` (the index
            of a folder on disk for changes, None for a tmpfs); ``links``; ``files``; ``limits``;
            ``restores``; ``image`` (what `image_root` takes, and the ``uid`` and ``gid`` of its
            user; None for the allow-list).
        prepared: The parts that all sandboxes share.
        ids: The host uid and gid that become the image's, or `parts.UID` and `parts.GID`.
        restore: Fills these folders with those of a snapshot before anything is mounted on them.
    """
    _map_user(plan, request["image"], ids)
    changes = _make_tmpfs(plan, request)
    if restore is not None:
        plan.do(partial(restore, changes))
    with plan.step("change the sandbox's root"):
        root = f"{EPISODE}/root"
        if request["image"]:
            plan.do(partial(image_root.mount, request, _place_of_upper(request), root, OLD))
        else:
            plan.bind(root, root, recursive=False)
        plan.mkdir(root + OLD)
        plan.pivot(root, OLD[1:])
    if request["image"]:
        plan.do(partial(image_root.fill, prepared, request, OLD))
    else:
        _fill_root(plan, prepared)
    _mount_workspace(plan, request)
    _mount_private_folders(plan)
    _mount_proc(plan)
    if request["image"]:
        plan.do(partial(_finish_image, plan.follow_up(), request))
    else:
        _finish(plan, request, prepared)
    if request["restores"]:
        plan.do(partial(_shrink_tmpfs, request["limits"], changes))
    return changes


def dated_like(request: dict[str, Any]) -> list[str]:
    """Returns the folder on the shelf that the workspace has its time from, if any."""
    return [f"{SHELF}/{request['names'][index]}" for index in request["layers"][:1]]


def _map_user(plan: Plan, image: dict[str, Any] | None, ids: tuple[int, int]) -> None:
    uid, gid = (image["uid"], image["gid"]) if image else (parts.UID, parts.GID)
    with plan.step("map the sandbox's user"):
        plan.write_text("/proc/self/setgroups", "deny")
        plan.write_text("/proc/self/uid_map", f"{uid} {ids[0]} 1")
        plan.write_text("/proc/self/gid_map", f"{gid} {ids[1]} 1")


def _make_tmpfs(plan: Plan, request: dict[str, Any]) -> Changes:
    with plan.step("mount the sandbox's tmpfs"):
        limits = request["limits"]
        size, num_inodes = limits["disk_bytes"], limits["num_inodes"]
        if request["restores"]:  # which gives files of several names one more for a while
            size, num_inodes = size + _SPARE_BYTES, 2 * num_inodes + _SPARE_INODES
        options = f"mode=0755,size={size},nr_inodes={num_inodes}"
        plan.mount("tmpfs", EPISODE, QUIET, options)
        for name in ("root", "upper", "work"):
            plan.mkdir(f"{EPISODE}/{name}")
        return _make_folders(plan, request)


def _shrink_tmpfs(limits: dict[str, int], changes: Changes) -> None:
    """Gives the tmpfs its limits, which a restored sandbox may have reached before."""
    with step("limit the sandbox's tmpfs"):
        own = os.fstat(changes.folders["tmp"]).st_dev
        # One of its mounts that no requested one covers.
        place = next(inside for _, inside, _ in WRITABLE if os.stat(inside).st_dev == own)
        facts = os.statvfs(place)
        num_inodes = facts.f_files - facts.f_ffree
        if num_inodes > limits["num_inodes"] + _SPARE_INODES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        size = max(limits["disk_bytes"], (facts.f_blocks - facts.f_bfree) * facts.f_frsize)
        options = f"size={size},nr_inodes={max(limits['num_inodes'], num_inodes)}"
        sc.mount("tmpfs", place, QUIET | sc.REMOUNT, options)


def _make_folders(plan: Plan, request: dict[str, Any]) -> Changes:
    """Makes the folders that take a sandbox's changes, seen before the change of root."""
    for name, _, mode in WRITABLE:
        plan.mkdir(f"{EPISODE}/{name}")
        plan.chmod(f"{EPISODE}/{name}", mode)
        plan.utime(f"{EPISODE}/{name}", _TIME_NS)
    upper = _place_of_upper(request) + "/upper"
    tops = dated_like(request)
    plan.utime(upper, os.stat(tops[0]).st_mtime_ns if tops else _TIME_NS)
    places = {"workspace": upper, **{name: f"{EPISODE}/{name}" for name, _, _ in WRITABLE}}
    if request["image"]:
        places["image"] = image_root.plan_upper(plan, request, _place_of_upper(request))
    folders = {name: plan.keep_folder(path) for name, path in places.items()}
    return Changes(folders=folders, newest_first=_lists_newest_first())


@cache
def _lists_newest_first() -> bool:
    """Whether a tmpfs, such as the zygote's own root, lists what was made last first."""
    for name in ("first", "second"):
        os.mkdir(f"{EPISODE}/{name}")
    names = os.listdir(EPISODE)
    for name in names:
        os.rmdir(f"{EPISODE}/{name}")
    return names[0] == "second"


def _place_of_upper(request: dict[str, Any]) -> str:
    if request["upper"] is None:
        return EPISODE
    return f"{SHELF}/{request['names'][request['upper']]}"


def _fill_root(plan: Plan, prepared: parts.Parts) -> None:
    with plan.step("fill the sandbox's root"):
        for folder in _FOLDERS:
            plan.mkdir(folder)
        for path, target in prepared.links.items():
            plan.symlink(target, path)
        plan.symlink("../tmp", "/var/tmp")  # noqa: S108
        for source, inside in prepared.binds.items():
            plan.mkdir(inside)
            plan.bind(OLD + source, inside)


def _mount_workspace(plan: Plan, request: dict[str, Any]) -> None:
    names = request["names"]
    upper, work = (f"{OLD}{_place_of_upper(request)}/{name}" for name in ("upper", "work"))
    with plan.step("mount the overlay"):
        if not request["layers"]:
            plan.bind(upper, "/workspace", recursive=False)
            return
        # Relative names, so that the mount's options tell nothing of the host's paths.
        plan.chdir(OLD + SHELF)
        lower = ":".join(names[index] for index in request["layers"])
        is_on_disk = request["upper"] is not None
        options = overlay_options(lower, upper, work, is_on_disk=is_on_disk)
        plan.mount("overlay", "/workspace", QUIET, options)
        plan.chdir("/")


def _mount_private_folders(plan: Plan) -> None:
    with plan.step("mount /tmp, home and /dev/shm"):
        for name, inside, _ in WRITABLE:
            plan.bind(f"{OLD}{EPISODE}/{name}", inside, recursive=False)
    with plan.step("mount /dev/pts"):
        options = f"newinstance,ptmxmode=0666,mode=620,max={_MAX_TERMINALS}"
        plan.mount("devpts", "/dev/pts", sc.NOSUID | sc.NOEXEC, options)


def _mount_proc(plan: Plan) -> None:
    with plan.step("mount the sandbox's /proc"):
        plan.mount("proc", "/proc", QUIET | sc.NOEXEC, "hidepid=invisible")
        for path in filter(os.path.exists, _HIDDEN_FILES):
            plan.bind(OLD + parts.NOTHING, path, recursive=False)


def _finish(plan: Plan, request: dict[str, Any], prepared: parts.Parts) -> None:
    plan_mounts(plan, request)
    plan_files(plan, request)
    dated = own_folders(request, prepared, (*request["links"], *_DATED)).union(prepared.links)
    if request["restores"]:  # they have their times
        dated = {path for path in dated if not is_writable(path)}
    with plan.step("close the sandbox's root"):
        plan.unmount(OLD)
        plan.rmdir(OLD)
        for path in sorted(dated):
            plan.utime(path, _TIME_NS)
        plan.restrict("/", QUIET | sc.READ_ONLY, recursive=False)
    _set_counts(plan)


def _finish_image(plan: Plan, request: dict[str, Any]) -> None:
    """Does the same in a root of which nobody knows beforehand what is in it."""
    if request["alias"]:
        image_root.show_workspace(request, OLD)
    # Files are written by `image_root.fill`. The request itself is of all sandboxes of its kind.
    own = {**request, "mounts": image_root.targets(request, OLD), "files": {}}
    plan_mounts(plan, own)
    plan_files(plan, own)
    plan.compile().run()
    image_root.close(request, OLD)
    counts = plan.follow_up()
    _set_counts(counts)
    counts.compile().run()
    image_root.protect_settings()


def _set_counts(plan: Plan) -> None:
    with plan.step("limit what the user's sandboxes share"):
        for name, count in _MAX_COUNTS.items():
            plan.write_text(f"/proc/sys/user/{name}", str(count))
