"""Makes a root of an image's layers, instead of the allow-list.

An image, and the changes of a policy that a snapshot restores, can have symbolic links anywhere.
These links are followed only after the server's root is unmounted.
"""

import os
import stat

from coding_gym.sandbox.inside import files, mounts
from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.host_folders import ALLOWED, DATE_S, MOUNTED, WRITTEN_ETC
from coding_gym.sandbox.inside.mounts import EPISODE, OLD, MountNames, Times, make_real
from coding_gym.sandbox.inside.request import ImageRequest, SandboxRequest
from coding_gym.sandbox.inside.syscalls import SetupError, step

# Mount points and written files of every sandbox.
_FOLDERS = ("/dev", "/etc", "/home/agent", "/proc", "/tmp", "/workspace")  # noqa: S108
_FILES = {f"/etc/{name}": WRITTEN_ETC[name] for name in ("hosts", "hostname", "resolv.conf")}


def make_upper(request: SandboxRequest, image: ImageRequest, mount_names: MountNames) -> str:
    """Makes the upper and work folders of the root's overlay; returns the upper folder."""
    upper, work = _changes(request, mount_names)
    os.mkdir(upper)
    os.mkdir(work)
    top = os.stat(f"{MOUNTED}/{mount_names[image.folder]}/{image.layers[0]}")
    os.chmod(upper, stat.S_IMODE(top.st_mode))
    os.utime(upper, ns=(top.st_mtime_ns, top.st_mtime_ns))
    return upper


def build(request: SandboxRequest, image: ImageRequest, mount_names: MountNames) -> None:
    """Makes the root of an image and enters it; it stays writable, as in a container."""
    changes, root = _changes(request, mount_names), f"{EPISODE}/root"
    with step("mount the image's overlay", "overlay"):
        times = Times(os.stat(changes[0]).st_mtime)
        _remove(changes[0] + OLD)
        folder = f"{MOUNTED}/{mount_names[image.folder]}"
        mounts.mount_overlay(request, root, folder, image.layers, changes)
    with step("change the sandbox's root"):
        mounts.change_root(root)
    with step("fill the sandbox's root"):
        _fill(request, times)
    mounts.mount_own_folders(request, mount_names)
    with step("write the sandbox's files", "request"):
        mounts.make_links(request.links)
    mounts.mount_sources(request, mount_names, times)
    if not request.restores and not os.path.exists("/bin/bash"):  # a policy can remove it
        raise SetupError("find bash in the image", 0, "/bin/bash is missing", "bash")
    mounts.limit_restored(request)
    with step("set the times of the image's folders"):
        times.restore()
    mounts.limit_counts()
    with step("protect /proc/sys"):  # otherwise a sandbox's root could write to it
        sc.bind("/proc/sys", "/proc/sys", recursive=False)
        sc.restrict("/proc/sys", mounts.QUIET | sc.NOEXEC | sc.READ_ONLY, recursive=False)


def _changes(request: SandboxRequest, mount_names: MountNames) -> tuple[str, str]:
    folder = mounts.upper_folder(request, mount_names)
    return f"{folder}/image-upper", f"{folder}/image-work"


def _fill(request: SandboxRequest, times: Times) -> None:
    """Makes the folders, files and devices of every sandbox in this process's new root."""
    for path in (*_FOLDERS, *request.links):
        times.note(path)
    for folder in _FOLDERS:
        make_real(folder)
    # Written, not mounted, because commands may change these files, as in a container.
    for path, text in _FILES.items():
        _write(path, text)
    sc.bind(f"{OLD}{ALLOWED}/dev", "/dev")
    for path in request.links:
        make_real(os.path.dirname(path))
        _remove(path)


def _remove(path: str) -> None:
    """Removes an entry that a policy made and a snapshot restored."""
    if os.path.isdir(path) and not os.path.islink(path):
        files.remove_tree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _write(path: str, text: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        return  # the image has a folder there
    if os.path.lexists(path):
        os.unlink(path)
    sc.write_text(path, text)
    os.utime(path, (DATE_S, DATE_S))
