"""A root made of an image's layers, in place of the allow-list.

The first process puts it together at once, without a plan: its steps depend on the content. The
image, and a policy whose changes a snapshot brought back, may have put symbolic links anywhere.
While the server's own root is still attached, at `OLD`, none is followed there.
"""

import errno
import os
import stat
from typing import Any

from coding_gym.sandbox.zygote import mounts, scratch
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.host_folders import ALLOWED, DATE_S, SHOWN
from coding_gym.sandbox.zygote.mounts import EPISODE, OLD, make_real
from coding_gym.sandbox.zygote.steps import SetupError, step
from coding_gym.sandbox.zygote.syscalls import Calls

# Paths that are mounted on, or written to, in every sandbox.
_FOLDERS = ("/dev", "/etc", "/home/agent", "/proc", "/tmp", "/workspace")  # noqa: S108
_SHELLS = ("/usr/bin/bash", "/usr/local/bin/bash")
_FILES = {
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/hostname": "sandbox\n",
    "/etc/resolv.conf": "",
}
_MAX_LINKS = 40
NO_BASH = "find bash in the image"


def make_upper(calls: Calls, request: dict[str, Any]) -> str:
    """Makes the folders that take the changes of the root; returns the one that holds them."""
    upper, work = _changes(request)
    calls.mkdir(upper)
    calls.mkdir(work)
    top = os.stat(f"{_layers_folder(request)}/{request['image']['layers'][0]}")
    calls.chmod(upper, stat.S_IMODE(top.st_mode))
    calls.utime(upper, top.st_mtime_ns)
    return upper


def build(request: dict[str, Any]) -> None:
    """Puts together the root of an image for this process, and changes to it.

    The root stays writable, as in a container.

    Args:
        request: As that of `mounts.make_tmpfs`; ``image`` has the index of the folder that holds
            the ``layers``, which are names of folders in it, the topmost first.
    """
    upper, root = _changes(request)[0], f"{EPISODE}/root"
    with step("mount the image's overlay"):
        times = _Times(os.stat(upper).st_mtime)
        _remove(upper + OLD)
        layers = request["image"]["layers"]
        folder = _layers_folder(request)
        mounts.mount_overlay(sc.NOW, request, root, folder, layers, _changes(request))
    with step("change the sandbox's root"):
        mounts.change_root(sc.NOW, root)
    with step("fill the sandbox's root"):
        _fill(request, times)
    mounts.mount_own_folders(sc.NOW, request)
    if request["alias"]:
        _show_workspace(request, times)
    mounts.mount_requested(sc.NOW, request, _resolved_mounts(request, times))
    with step("write the sandbox's files"):
        mounts.make_links(sc.NOW, request)
    mounts.close_host(sc.NOW, request)
    with step("date the image's folders"):
        times.give_back()
    mounts.limit_counts(sc.NOW)
    with step("protect /proc/sys"):  # else writable for the user that root is mapped to
        sc.bind("/proc/sys", "/proc/sys", recursive=False)
        sc.restrict("/proc/sys", mounts.QUIET | sc.NOEXEC | sc.READ_ONLY, recursive=False)


class _Times:
    """The times of an image's folders in which something is made, to be given back to them."""

    def __init__(self, of_root: float) -> None:
        self._times = {"/": of_root}

    def note(self, path: str) -> None:
        """Notes the times of a folder and of those above it; of new ones, our own date."""
        here = ""
        for name in path.split("/")[1:]:
            here += f"/{name}"
            if here not in self._times:
                is_there = os.path.isdir(here) and not os.path.islink(here)
                self._times[here] = os.lstat(here).st_mtime if is_there else DATE_S

    def give_back(self) -> None:
        """Sets the times of the folders that are on the root's own file system."""
        own = os.stat("/").st_dev
        for path, mtime in self._times.items():
            facts = os.lstat(path)
            if facts.st_dev == own and stat.S_ISDIR(facts.st_mode):
                os.utime(path, (mtime, mtime))


def _changes(request: dict[str, Any]) -> tuple[str, str]:
    place = mounts.upper_folder(request)
    return f"{place}/image-upper", f"{place}/image-work"


def _layers_folder(request: dict[str, Any]) -> str:
    return f"{SHOWN}/{request['names'][request['image']['folder']]}"


def _fill(request: dict[str, Any], times: _Times) -> None:
    """Puts the files of every sandbox into the new root, which is this process's now."""
    for path in (*_FOLDERS, *request["links"]):
        times.note(path)
    for folder in _FOLDERS:
        make_real(folder)
    # Written and not bound, so that they can be changed, as in a container.
    for path, text in (_FILES | request["files"]).items():
        _write(path, text)
    sc.bind(f"{OLD}{ALLOWED}/dev", "/dev")
    for path in request["links"]:
        make_real(os.path.dirname(path))
        _remove(path)
    if not request["restores"]:  # it has what we gave it, unless a policy took it away
        _provide_bash()


def _show_workspace(request: dict[str, Any], times: _Times) -> None:
    """Shows the workspace at its second place."""
    path = request["alias"]
    with step(f"show the workspace at {path}"):
        target = _target(request, path, times)
        make_real(target)
        sc.bind("/workspace", target, recursive=False)


def _resolved_mounts(request: dict[str, Any], times: _Times) -> list[tuple[int, str]]:
    """Returns the requested mounts with their paths as symbolic links of the image have them."""
    found = []
    for index, target in request["mounts"]:
        with step(f"mount at {target}"):
            place = _target(request, target, times)
            if request["show"][index]["is_folder"]:
                make_real(place)
            found.append((index, place))
    return found


def _target(request: dict[str, Any], path: str, times: _Times) -> str:
    """Returns where to mount a request for a path, and notes the times of folders there."""
    try:
        place = _resolve(path)
        # The paths that watch the sandbox, and its own root, must not be covered.
        if place == "/" or f"{place}/".startswith(("/dev/", "/proc/")):
            raise OSError(errno.ELOOP, f"{path} leads to {place}")
    except OSError:
        if not request["restores"]:
            raise
        place = path  # a policy's doing, which goes
    times.note(place)
    return place


def _resolve(path: str) -> str:
    """Returns a path without symbolic links; its last parts need not exist.

    Raises:
        OSError: A link leads to the server's root, or links go in circles.
    """
    left = path.split("/")[::-1]
    done: list[str] = []
    num_links = 0
    while left:
        name = left.pop()
        if name in {"", "."}:
            continue
        if name == "..":
            done = done[:-1]
            continue
        here = "/" + "/".join([*done, name])
        if here == OLD:
            raise OSError(errno.ELOOP, f"{path} leads out of the image")
        if not os.path.islink(here):
            done.append(name)
            continue
        num_links += 1
        if num_links > _MAX_LINKS:
            raise OSError(errno.ELOOP, f"{path} leads in circles")
        target = os.readlink(here)
        done = [] if target.startswith("/") else done
        left += target.split("/")[::-1]
    return "/" + "/".join(done)


def _remove(path: str) -> None:
    """Removes an entry that a policy made and a snapshot restored."""
    if os.path.isdir(path) and not os.path.islink(path):
        scratch.remove(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _write(path: str, text: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        return  # the image wants a folder here
    if os.path.lexists(path):
        os.unlink(path)
    sc.write_text(path, text)
    os.utime(path, (DATE_S, DATE_S))


def _provide_bash() -> None:
    """Makes sure of ``/bin/bash``, which runs every command."""
    if os.path.exists(_resolve("/bin/bash")):
        return
    for path in _SHELLS:
        if os.path.exists(_resolve(path)):
            target = _resolve("/bin")
            make_real(target)
            os.symlink(path, f"{target}/bash")
            return
    raise SetupError(NO_BASH, 2, "there is no /bin/bash in it")
