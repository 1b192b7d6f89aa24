"""Mounts folders of the host in the server's root, from which sandboxes mount them.

The allow-list is the same for all sandboxes and prepared once. The listed folders are mounted
read-only. The files of ``/etc`` are copies, or this module writes them. An empty folder covers
folders with third-party Python packages and the folder of this package. Layers, interpreters and
mounts are added when a sandbox needs them. No other path of the host exists in a sandbox.
"""

import os
from collections import OrderedDict
from functools import cache
from glob import glob
from pathlib import Path

from coding_gym.sandbox.inside import syscalls as sc
from coding_gym.sandbox.inside.fixed import BASH, DATE_S, GID, HOME, HOSTNAME, UID, USER
from coding_gym.sandbox.inside.request import Source
from coding_gym.sandbox.inside.syscalls import step

# In the server's root: the allow-list, folders mounted on request, an empty file, an empty folder.
ALLOW_LIST = "/allowed"
SOURCES = "/mounted"
EMPTY_FILE = "/nothing"
_EMPTY_FOLDER = "/empty"
PACKAGE = str(Path(__file__).resolve().parents[2])
# Each clone of a process copies all mounts below `SOURCES`, a mount in about a microsecond.
_CAPACITY = 48

TOP_FOLDERS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
DEVICES = ("null", "zero", "full", "random", "urandom")
_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
COPIED_ETC = (
    "debian_version",
    "ld.so.cache",
    "ld.so.conf",
    "mime.types",
    "os-release",
    "protocols",
    "services",
)
MOUNTED_ETC = ("alternatives", "ca-certificates", "crypto-policies", "pki", "ssl")
# Settings of Debian's JDKs, which do not start without these files.
MOUNTED_ETC_PATTERN = "java-*-openjdk"
# Folders of private keys, hidden because the user can have read access through a group (ssl-cert).
_PRIVATE_KEYS = ("ssl/private", "pki/*/private", "pki/consumer", "pki/entitlement")
# In a sandbox with the host's network, the host's hosts and resolv.conf cover these files.
WRITTEN_ETC = {
    "passwd": (
        "root:x:0:0:root:/root:/bin/sh\n"
        f"{USER}:x:{UID}:{GID}:{USER}:{HOME}:{BASH}\n"
        "nobody:x:65534:65534:nobody:/:/bin/false\n"
    ),
    "group": f"root:x:0:\n{USER}:x:{GID}:\nnogroup:x:65534:\n",
    "hosts": f"127.0.0.1 localhost {HOSTNAME}\n::1 localhost\n",
    "hostname": f"{HOSTNAME}\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "resolv.conf": "",
}
# Folders with third-party Python packages, in an interpreter's prefix.
PACKAGE_FOLDERS = ("lib*/py*/site-packages", "lib*/py*/dist-packages")
THIRD_PARTY = (
    *PACKAGE_FOLDERS,
    *(f"local/{pattern}" for pattern in PACKAGE_FOLDERS),
    "envs",
    "pkgs",
    "src",
)


def is_in_top_folder(path: str) -> bool:
    """Returns whether an absolute path is in one of `TOP_FOLDERS`, which every sandbox mounts."""
    return path.split("/")[1] in TOP_FOLDERS


@cache
def allowed_folders() -> list[str]:
    """Returns the allow-list's folders, as paths in a sandbox; first called in the server."""
    links = allowed_links()
    paths = [f"/{name}" for name in (*TOP_FOLDERS, "etc", "dev")]
    return [path for path in paths if path not in links and os.path.isdir(ALLOW_LIST + path)]


@cache
def allowed_links() -> dict[str, str]:
    """Returns the targets of the allow-list's symbolic links, by path in a sandbox."""
    links = [name for name in TOP_FOLDERS if os.path.islink(f"{ALLOW_LIST}/{name}")]
    return {f"/{name}": os.readlink(f"{ALLOW_LIST}/{name}") for name in links}


def mount_allow_list(source: str, target: str) -> None:
    """Mounts the prepared allow-list, which is at ``source``, in the folder ``target``."""
    for path, link in allowed_links().items():
        os.symlink(link, target + path)
        os.utime(target + path, (DATE_S, DATE_S), follow_symlinks=False)
    for folder in allowed_folders():
        os.mkdir(target + folder)
        sc.bind(source + folder, target + folder)


def prepare_allow_list(host: str) -> None:
    """Prepares the allow-list, below `ALLOW_LIST`, from the host's root, which is at ``host``."""
    for folder in (ALLOW_LIST, _EMPTY_FOLDER):
        os.mkdir(folder)
    with step("prepare an empty file"):
        sc.write_text(EMPTY_FILE, "")
        sc.bind(EMPTY_FILE, EMPTY_FILE, recursive=False)
        sc.restrict(EMPTY_FILE, sc.NOSUID | sc.NODEV | sc.NOEXEC | sc.READ_ONLY)
    for name in TOP_FOLDERS:
        source, target = f"{host}/{name}", f"{ALLOW_LIST}/{name}"
        if os.path.islink(source):
            os.symlink(os.readlink(source), target)
        elif os.path.isdir(source):
            with step(f"mount /{name}"):
                os.mkdir(target)
                sc.bind(source, target)
                _cover(target, f"/{name}")
                sc.restrict(target, sc.NOSUID | sc.NODEV | sc.READ_ONLY)
    with step("prepare /etc"):
        _prepare_etc(host, f"{ALLOW_LIST}/etc")
    with step("prepare /dev"):
        _prepare_dev(host, f"{ALLOW_LIST}/dev")


def _prepare_etc(host: str, etc: str) -> None:
    os.mkdir(etc)
    for name in COPIED_ETC:
        if os.path.isfile(f"{host}/etc/{name}"):
            with open(f"{host}/etc/{name}", "rb") as source, open(f"{etc}/{name}", "wb") as copy:
                copy.write(source.read())
    for name, text in WRITTEN_ETC.items():
        with open(f"{etc}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    os.symlink("/proc/self/mounts", f"{etc}/mtab")
    names = (*MOUNTED_ETC, *sorted(glob(MOUNTED_ETC_PATTERN, root_dir=f"{host}/etc")))
    mounted_names = [name for name in names if os.path.isdir(f"{host}/etc/{name}")]
    for name in mounted_names:
        os.mkdir(f"{etc}/{name}")
    _set_times(etc)
    sc.bind(etc, etc, recursive=False)
    for name in mounted_names:
        sc.bind(f"{host}/etc/{name}", f"{etc}/{name}")
    for pattern in _PRIVATE_KEYS:
        for path in filter(os.path.isdir, glob(f"{etc}/{pattern}")):
            sc.bind(_EMPTY_FOLDER, path, recursive=False)
    sc.restrict(etc, sc.NOSUID | sc.NODEV | sc.NOEXEC | sc.READ_ONLY)


def _prepare_dev(host: str, dev: str) -> None:
    os.mkdir(dev)
    for name in (*DEVICES, "tty"):
        with open(f"{dev}/{name}", "wb"):
            pass
    for name, target in _DEVICE_LINKS.items():
        os.symlink(target, f"{dev}/{name}")
    for name in ("pts", "shm"):
        os.mkdir(f"{dev}/{name}")
    _set_times(dev)
    sc.bind(dev, dev, recursive=False)
    for name in (*DEVICES, "tty"):
        sc.bind(f"{host}/dev/{name}", f"{dev}/{name}", recursive=False)
    # Not nodev, which would make device nodes useless. Read-only, because the nodes are the host's:
    # writes to the device still work, changes of its times do not.
    sc.restrict(dev, sc.NOSUID | sc.NOEXEC | sc.READ_ONLY)


def _set_times(folder: str) -> None:
    """Sets the fixed time of a new folder and of its entries, before the folder is mounted."""
    for entry in os.scandir(folder):
        os.utime(entry.path, (DATE_S, DATE_S), follow_symlinks=False)
    os.utime(folder, (DATE_S, DATE_S))


def _cover(folder: str, host_path: str) -> None:
    """Mounts an empty folder over folders of packages in ``folder``, a mount of ``host_path``."""
    package_folders = [path for pattern in THIRD_PARTY for path in glob(f"{folder}/{pattern}")]
    if PACKAGE.startswith(f"{host_path}/"):
        package_folders.append(folder + PACKAGE.removeprefix(host_path))
    inodes = set()
    for path in filter(os.path.isdir, package_folders):
        info = os.stat(path)
        if (info.st_dev, info.st_ino) not in inodes:
            inodes.add((info.st_dev, info.st_ino))
            sc.bind(_EMPTY_FOLDER, path, recursive=False)


class MountedFolders:
    """Host folders that sandboxes request, each mounted at a name below `SOURCES`.

    The server's mount namespace has only these host folders and the allow-list. At the first
    request, a folder is cloned from the mount namespace of the server's parent, which still has all
    host files. Above the capacity, the least recently used folders are unmounted; sandboxes have
    separate copies of the mounts.

    Args:
        host_mounts: Descriptor of the parent's mount namespace.
        server_mounts: Descriptor of the server's mount namespace.
    """

    def __init__(self, host_mounts: int, server_mounts: int) -> None:
        self._host_mounts = host_mounts
        self._server_mounts = server_mounts
        self._names: OrderedDict[Source, str] = OrderedDict()
        self._unused_names: dict[bool, list[str]] = {True: [], False: []}
        self._num_names = 0
        os.mkdir(SOURCES)

    def name(self, source: Source) -> str:
        """Returns the name of a source's mount below `SOURCES`; mounts the source if necessary."""
        if source not in self._names:
            with step(f"mount {source.path}", "request"):
                self._names[source] = self._mount(source)
        self._names.move_to_end(source)
        return self._names[source]

    def trim(self) -> None:
        """Unmounts the least recently used folders above the capacity."""
        while len(self._names) > _CAPACITY:
            _, name = self._names.popitem(last=False)
            with step(f"unmount {SOURCES}/{name}"):
                sc.unmount(f"{SOURCES}/{name}")
            # The mount point stays: its removal would unmount it in sandboxes during their set-up.
            self._unused_names[os.path.isdir(f"{SOURCES}/{name}")].append(name)

    def _mount(self, source: Source) -> str:
        sc.enter_mounts(self._host_mounts)
        try:
            tree = sc.clone_tree(source.path)
        finally:
            sc.enter_mounts(self._server_mounts)
        try:
            name = self._free_name(is_folder=source.is_folder)
            target = f"{SOURCES}/{name}"
            sc.attach_tree(tree, target)
        finally:
            os.close(tree)
        if source.hides_packages:
            _cover(target, source.path)
        flags = sc.NOSUID | sc.NODEV
        sc.restrict(target, flags if source.writable else flags | sc.READ_ONLY)
        return name

    def _free_name(self, *, is_folder: bool) -> str:
        """Returns the name of an unused mount point, a folder or a file."""
        if self._unused_names[is_folder]:
            return self._unused_names[is_folder].pop()
        self._num_names += 1
        name = str(self._num_names)
        if is_folder:
            os.mkdir(f"{SOURCES}/{name}")
        else:
            sc.write_text(f"{SOURCES}/{name}", "")
        return name
