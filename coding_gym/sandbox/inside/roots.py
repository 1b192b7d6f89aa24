"""The two kinds of root: folders of the allow-list, or the layers of an image.

An image, and the changes of a policy that a snapshot restores, can have symbolic links anywhere.
These links are followed only after the server's root is unmounted.
"""

import os
import stat

from coding_gym.sandbox.inside import files, mounts
from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.fixed import BASH, DATE_S, HOME, PYTHON_FOLDER, TMP, WORKDIR
from coding_gym.sandbox.inside.host_folders import (
    ALLOW_LIST,
    SOURCES,
    WRITTEN_ETC,
    mount_allow_list,
)
from coding_gym.sandbox.inside.mounts import OLD, ROOT, MountNames, Times, make_links, make_real
from coding_gym.sandbox.inside.request import ImageRequest, SandboxRequest
from coding_gym.sandbox.inside.syscalls import SetupError, step

_MOUNT_POINTS = (HOME, "/proc", TMP, WORKDIR)
_HOST_FOLDERS = ("/home", "/opt", "/run", PYTHON_FOLDER, "/var")
_IMAGE_FOLDERS = (*_MOUNT_POINTS, "/dev", "/etc")
_IMAGE_FILES = {f"/etc/{name}": WRITTEN_ETC[name] for name in ("hosts", "hostname", "resolv.conf")}


class HostRoot:
    """A root of host folders; commands cannot write to it."""

    def make_changes(self) -> dict[str, str]:
        """Returns no folders, because this root has no changes."""
        return {}

    def mount(self) -> Times:
        """Mounts the empty root at `ROOT`; returns the times that `finish` restores."""
        with step("mount the sandbox's root"):
            sc.bind(ROOT, ROOT, recursive=False)
        return Times(DATE_S)

    def fill(self, times: Times) -> None:
        """Makes folders and links, and mounts the allow-list, in this process's new root."""
        # Mount points are not noted: the folders mounted there keep their times.
        for folder in _HOST_FOLDERS:
            times.note(folder)
        for folder in (*_HOST_FOLDERS, *_MOUNT_POINTS):
            make_real(folder)
        make_links({"/var/tmp": "../tmp"})  # noqa: S108 - inside the sandbox
        mount_allow_list(OLD + ALLOW_LIST, "")

    def finish(self, times: Times) -> None:
        """Sets the times of folders and makes the root read-only."""
        with step("set the times of the sandbox's root"):
            times.restore()
            sc.restrict("/", mounts.QUIET | sc.READ_ONLY, recursive=False)


class ImageRoot:
    """A root of an image's layers; it stays writable, as in a container.

    Args:
        request: The request of the sandbox.
        image: The image of the request.
        mount_names: Names of the request's sources.
    """

    def __init__(
        self, request: SandboxRequest, image: ImageRequest, mount_names: MountNames
    ) -> None:
        changes = mounts.upper_folder(request, mount_names)
        self._request = request
        self._layers = image.layers
        self._folder = f"{SOURCES}/{mount_names[image.folder]}"
        self._upper, self._work = f"{changes}/image-upper", f"{changes}/image-work"

    def make_changes(self) -> dict[str, str]:
        """Makes the overlay's upper and work folder; returns the upper folder's path by "image"."""
        os.mkdir(self._upper)
        os.mkdir(self._work)
        top = os.stat(f"{self._folder}/{self._layers[0]}")
        os.chmod(self._upper, stat.S_IMODE(top.st_mode))
        os.utime(self._upper, ns=(top.st_mtime_ns, top.st_mtime_ns))
        return {"image": self._upper}

    def mount(self) -> Times:
        """Mounts the overlay at `ROOT`; returns the times that `finish` restores."""
        with step("mount the image's overlay", "overlay"):
            times = Times(os.stat(self._upper).st_mtime)
            _remove(self._upper + OLD)
            changes = self._upper, self._work
            mounts.mount_overlay(self._request, ROOT, self._folder, self._layers, changes)
        return times

    def fill(self, times: Times) -> None:
        """Makes the folders, files and devices that all sandboxes have, in the new root."""
        links = self._request.links
        for path in (*_IMAGE_FOLDERS, *links):
            times.note(path)
        for folder in _IMAGE_FOLDERS:
            make_real(folder)
        # Written, not mounted, because commands may change these files, as in a container.
        for path, text in _IMAGE_FILES.items():
            _write(path, text)
        sc.bind(f"{OLD}{ALLOW_LIST}/dev", "/dev")
        for path in links:
            make_real(os.path.dirname(path))
            _remove(path)

    def finish(self, times: Times) -> None:
        """Requires bash in a new sandbox, sets times of folders, and makes /proc/sys read-only."""
        if not self._request.restores and not os.path.exists(BASH):  # a policy can remove bash
            raise SetupError("find bash in the image", 0, f"{BASH} is missing", "bash")
        with step("set the times of the image's folders"):
            times.restore()
        with step("protect /proc/sys"):  # otherwise a sandbox's root could change it
            sc.bind("/proc/sys", "/proc/sys", recursive=False)
            sc.restrict("/proc/sys", mounts.QUIET | sc.NOEXEC | sc.READ_ONLY, recursive=False)


def _remove(path: str) -> None:
    """Removes a file, or a folder with its content, of an image or a restored snapshot."""
    if os.path.isdir(path) and not os.path.islink(path):
        files.remove_tree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _write(path: str, text: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        return  # the image has a folder there
    _remove(path)
    sc.write_text(path, text)
    os.utime(path, (DATE_S, DATE_S))
