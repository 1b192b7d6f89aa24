"""A root made of an image's layers, in place of the allow-list.

The image, and a policy whose changes a snapshot brought back, may have put symbolic links
anywhere. While the zygote's own root is still attached, at `OLD`, none is followed there.
"""

import errno
import os
import stat
from typing import Any

from coding_gym.sandbox.zygote import parts, scratch
from coding_gym.sandbox.zygote import syscalls as sc
from coding_gym.sandbox.zygote.places import overlay_options
from coding_gym.sandbox.zygote.plan import Plan
from coding_gym.sandbox.zygote.shelf import SHELF
from coding_gym.sandbox.zygote.steps import SetupError, step

UPPER, WORK = "image-upper", "image-work"
# What is mounted on, or written to, in every sandbox.
_FOLDERS = ("/dev", "/etc", "/home/agent", "/proc", "/tmp", "/workspace")  # noqa: S108
_SHELLS = ("/usr/bin/bash", "/usr/local/bin/bash")
_FILES = {
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/hostname": "sandbox\n",
    "/etc/resolv.conf": "",
}
_MAX_LINKS = 40
NO_BASH = "find bash in the image"


def plan_upper(plan: Plan, request: dict[str, Any], place: str) -> str:
    """Makes the folders that take the changes of the root; returns the one that holds them."""
    image = request["image"]
    upper = f"{place}/{UPPER}"
    for path in (upper, f"{place}/{WORK}"):
        plan.mkdir(path)
    top = os.stat(f"{SHELF}/{request['names'][image['folder']]}/{image['layers'][0]}")
    plan.chmod(upper, stat.S_IMODE(top.st_mode))
    plan.utime(upper, top.st_mtime_ns)
    return upper


def mount(request: dict[str, Any], place: str, root: str, old: str) -> None:
    """Mounts the layers at ``root``.

    Args:
        request: ``image`` has the index of the folder that holds the ``layers``, which are names
            of folders in it, the topmost first.
        place: The folder that has `UPPER` and `WORK`.
        root: Where to.
        old: The path in the new root at which the present one will be.
    """
    image = request["image"]
    with step("mount the image's overlay"):
        top = os.stat(f"{place}/{UPPER}").st_mtime
        _remove(f"{place}/{UPPER}{old}")
        # Relative names, so that one page of options holds them, and tells nothing of the host.
        os.chdir(f"{SHELF}/{request['names'][image['folder']]}")
        lower = ":".join(image["layers"])
        upper, work = f"{place}/{UPPER}", f"{place}/{WORK}"
        is_on_disk = request["upper"] is not None
        options = overlay_options(lower, upper, work, is_on_disk=is_on_disk)
        sc.mount("overlay", root, sc.NOSUID | sc.NODEV, options)
        os.chdir("/")
        image["times"] = {"/": top}  # for this sandbox: made anew for each that is like it


def fill(prepared: parts.Parts, request: dict[str, Any], old: str) -> None:
    """Gives the new root, which is this process's now, what every sandbox has."""
    with step("fill the sandbox's root"):
        _note_times(request, [*_FOLDERS, *request["links"]])
        for folder in _FOLDERS:
            make_real(folder)
        # Written and not bound, so that they can be changed, as in a container.
        for path, text in (_FILES | request["files"]).items():
            _write(path, text)
        device = next(source for source, inside in prepared.binds.items() if inside == "/dev")
        sc.bind(old + device, "/dev")
        for path in request["links"]:
            make_real(os.path.dirname(path))
            _remove(path)
        if not request["restores"]:  # it has what we gave it, unless a policy took it away
            _provide_bash(old)


def targets(request: dict[str, Any], old: str) -> list[tuple[int, str]]:
    """Returns the requested mounts with their paths as symbolic links of the image have them."""
    found = []
    for index, target in request["mounts"]:
        with step(f"mount at {target}"):
            place = _place_for(request, target, old)
            if os.path.isdir(f"{old}{SHELF}/{request['names'][index]}"):
                make_real(place)
            found.append((index, place))
    return found


def show_workspace(request: dict[str, Any], old: str) -> None:
    """Shows the workspace at its second place."""
    path = request["alias"]
    with step(f"show the workspace at {path}"):
        target = _place_for(request, path, old)
        make_real(target)
        sc.bind("/workspace", target, recursive=False)


def close(request: dict[str, Any], old: str) -> None:
    """Lets go of everything outside; the root stays writable, as in a container."""
    with step("close the sandbox's root"):
        sc.unmount(old)
        os.rmdir(old)
        own = os.stat("/").st_dev
        for path, mtime in request["image"]["times"].items():
            facts = os.lstat(path)
            if facts.st_dev == own and stat.S_ISDIR(facts.st_mode):
                os.utime(path, (mtime, mtime))


def protect_settings() -> None:
    """Makes the kernel's settings read-only: some would be writable for whom root is mapped to."""
    with step("protect /proc/sys"):
        sc.bind("/proc/sys", "/proc/sys", recursive=False)
        sc.restrict("/proc/sys", sc.NOSUID | sc.NODEV | sc.NOEXEC | sc.READ_ONLY, recursive=False)


def resolve(path: str, old: str) -> str:
    """Returns a path without symbolic links; its last parts need not exist.

    Raises:
        OSError: A link leads to the zygote's root, or links go in circles.
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
        if here == old:
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


def _place_for(request: dict[str, Any], path: str, old: str) -> str:
    """Returns where to mount what was requested at a path, and notes the times of folders there."""
    try:
        place = _checked(resolve(path, old), path)
    except OSError:
        if not request["restores"]:
            raise
        place = path  # a policy's doing, which goes
    _note_times(request, [place])
    return place


def _checked(place: str, path: str) -> str:
    """Refuses to cover what the sandbox is watched through, and its own root."""
    if place == "/" or f"{place}/".startswith(("/dev/", "/proc/")):
        raise OSError(errno.ELOOP, f"{path} leads to {place}")
    return place


def _note_times(request: dict[str, Any], paths: list[str]) -> None:
    """Notes the times of folders that something will be made in, to be given back to them."""
    times = request["image"]["times"]
    for path in paths:
        here = "/"
        for name in path.split("/")[1:]:
            here = f"{here.rstrip('/')}/{name}"
            if here in times:
                continue
            times[here] = parts.TIMES[0]
            if os.path.isdir(here) and not os.path.islink(here):
                times[here] = os.lstat(here).st_mtime


def make_real(path: str) -> None:
    """Makes a path a folder, and every part of it: what stands in the way goes."""
    here = ""
    for name in path.split("/")[1:]:
        here += f"/{name}"
        try:
            is_folder = stat.S_ISDIR(os.lstat(here).st_mode)
        except FileNotFoundError:
            is_folder = False
        else:
            if not is_folder:
                os.unlink(here)
        if not is_folder:
            os.mkdir(here, 0o755)


def _remove(path: str) -> None:
    """Removes what a policy may have left, before a snapshot brought it back."""
    if os.path.isdir(path) and not os.path.islink(path):
        scratch.remove(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _write(path: str, text: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        return  # the image's own affair
    if os.path.lexists(path):
        os.unlink(path)
    sc.write_text(path, text)
    os.utime(path, parts.TIMES)


def _provide_bash(old: str) -> None:
    """Makes sure of ``/bin/bash``, which runs every command."""
    if os.path.exists(resolve("/bin/bash", old)):
        return
    for path in _SHELLS:
        if os.path.exists(resolve(path, old)):
            target = resolve("/bin", old)
            make_real(target)
            os.symlink(path, f"{target}/bash")
            return
    raise SetupError(NO_BASH, 2, "there is no /bin/bash in it")
